/* The scanner: one pass over a text, fully validating (RFC 8259, UTF-8), copying nothing.
 *
 * Contract for every function: the text ends with a NUL that the caller has put there, and WEFT_SLACK bytes behind that NUL
 * may be read. So nothing here checks for the end: a NUL is no valid byte anywhere in JSON, and the caller compares where
 * the scan stopped with where the text ends. Stack use is constant; nesting is counted, not recursed. */
#ifndef WEFT_SCAN_H
#define WEFT_SCAN_H

#include <weft/base.h>

#include "plain.h"

#define WEFT_MAX_DEPTH 128

/* The first byte that is not white space. */
static inline const char *weft__scan_ws(const char *p) {
    while ((unsigned char) *p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* p is at the first byte of a value. The byte behind the value, or NULL: invalid, or nested deeper than depth levels.
 * A scalar needs no depth; "[]" needs one. */
const char *weft__scan_value(const char *p, int depth);
/* The same when it is known that p is at an opening bracket. */
const char *weft__scan_container(const char *p, int depth);

/* The rest of a string from p, which lies inside it. *ret_escaped only ever becomes true; NULL: nobody wants to know. */
const char *weft__scan_string_rest(const char *p, bool *ret_escaped);

/* p is at an opening quote. The byte behind the closing quote, or NULL. *ret_escaped is set to whether there is a backslash.
 * Inline as far as the first vector, because most names and short values end there. */
static inline const char *weft__scan_string(const char *p, bool *ret_escaped) {
    *ret_escaped = false;
    size_t n = weft__plain_to_quote(p + 1);
    if (n < WEFT_STEP)
        return p + n + 2;
    return weft__scan_string_rest(p + 1, ret_escaped);
}

/* The same for who does not ask about escapes: nothing has to lie in memory then, and the caller needs no stack. */
static inline const char *weft__scan_any_string(const char *p) {
    size_t n = weft__plain_to_quote(p + 1);
    return n < WEFT_STEP ? p + n + 2 : weft__scan_string_rest(p + 1, NULL);
}

/* Like weft__scan_value for the params of a request; p is at '{'. Also finds the member "_meta" on the top level in the same
 * pass (the last one): its value's span goes to *ret_meta, which is zeroed if there is none. */
const char *weft__scan_params(const char *p, int depth, weft_bytes *ret_meta);

#endif
