/* Content-Encoding, for every framing that has headers: what the other side reads, what it sent, and what is worth packing.
 */
#ifndef WEFT_CODING_H
#define WEFT_CODING_H

#include "gzip.h"

/* Less fits into one packet anyway. */
#define WEFT_MIN_PACKED 1024

/* Does an Accept-Encoding allow gzip (RFC 9110 section 12.5.3)? */
bool weft__accepts_gzip(weft_bytes list);
/* What a Content-Encoding says: 0 nothing was done to the body, 1 gzip, -ENOTSUP another, or several. */
int weft__coding_of(weft_bytes value);
/* Pack a body if that makes it smaller: appended to out. 1 it is; 0 send it as it is. */
int weft__pack_if_worth(weft_gzip *gzip, const char *body, size_t len, weft_buf *out);

#endif
