/* The escapes of a validated string, one at a time. */
#ifndef WEFT_ESCAPE_H
#define WEFT_ESCAPE_H

#include <weft/base.h>

#define WEFT_ESCAPE_MAX 4 /* bytes that one escape, or a surrogate pair of two, decodes to */

/* p is at the backslash of an escape inside a validated string that ends at end. Its UTF-8 goes to ret, its length to
 * *ret_len; the byte behind it. A surrogate without its other half becomes U+FFFD and sets *ret_lone. */
const char *weft__escape_read(const char *p, const char *end, char ret[WEFT_ESCAPE_MAX], size_t *ret_len, bool *ret_lone);

/* Like weft__unescape(), and *ret_lone is set to whether the text has a lone surrogate. */
size_t weft__unescape_strict(const char *raw, size_t raw_len, char *ret, bool *ret_lone);

/* What the inside of a raw string says next, an escape or a byte: its bytes and their number; *p moves behind it. */
static inline size_t weft__next_piece(const char **p, const char *end, char bytes[WEFT_ESCAPE_MAX]) {
    size_t len = 1;
    bool lone = false;
    if (**p == '\\')
        *p = weft__escape_read(*p, end, bytes, &len, &lone);
    else
        bytes[0] = *(*p)++;
    return len;
}

#endif
