/* One compressor and one decompressor for every connection of a service: a context for each would cost 300 kB a connection.
 * Possible because nobody takes context over from one message to the next (RFC 7692). */
#ifndef WEFT_ZIP_H
#define WEFT_ZIP_H

#include "buf.h"

typedef struct weft_zip weft_zip;

int weft__zip_new(const weft_alloc *alloc, weft_zip **ret); /* cheap: zlib states are made when first used */
weft_zip *weft__zip_free(weft_zip *zip);
/* Append the compressed form of a message to out, without the trailing 00 00 ff ff. */
int weft__zip_deflate(weft_zip *zip, unsigned window, const char *data, size_t len, weft_buf *out);
/* Append the message. -EMSGSIZE as soon as it is over max; -EBADMSG not a deflate stream. */
int weft__zip_inflate(weft_zip *zip, const char *data, size_t len, size_t max, weft_buf *out);

#endif
