/* Writing JSON onto a buffer. Each function leaves the buffer as it was when it fails (-ENOMEM; -EINVAL for a value that
 * nests deeper than WEFT_MAX_DEPTH). */
#ifndef WEFT_WRITE_H
#define WEFT_WRITE_H

#include <weft/json.h>

#include "buf.h"

int weft__write_val(weft_buf *out, const weft_alloc *alloc, const weft_val *value);
/* Quotes and escapes; invalid UTF-8 becomes U+FFFD. */
int weft__write_str(weft_buf *out, const weft_alloc *alloc, const char *text, size_t len);
int weft__write_int(weft_buf *out, const weft_alloc *alloc, int64_t i);
/* Bytes as they are. */
int weft__write_raw(weft_buf *out, const weft_alloc *alloc, const char *text, size_t len);

/* How many bytes weft__write_val() will about write: exact for raw values, a guess for the rest. For reserving room. */
size_t weft__val_hint(const weft_val *value);

/* Shortest text of a finite double, as ECMAScript's Number::toString prints it. At most 32 bytes, no NUL; the length. */
size_t weft__print_double(double d, char *ret);

/* A text, or nothing where there is none: NULL or "". */
static inline weft_val weft__text_or_none(const char *text) {
    return text && *text ? weft_str(text) : weft_none();
}

#endif
