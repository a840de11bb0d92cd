/* URI references, as far as schemas need them: made absolute (RFC 3986 section 5.2), and parted from their fragment. */
#ifndef WEFT_SCHEMA_URI_H
#define WEFT_SCHEMA_URI_H

#include <weft/base.h>

#include "arena.h"

/* The reference as seen from base, which may be "". NUL-terminated, in the arena; NULL: no memory. */
char *weft__uri_resolve(weft_arena *arena, const char *base, weft_bytes reference);
/* Cut a URI at its "#". What is behind that, percent-decoded in place; "" if there is none. NULL: it decodes to a NUL or is
 * no escape. */
char *weft__uri_cut_fragment(char *uri);

#endif
