/* What the files of the streams have in common. */
#ifndef WEFT_TINYVEX_STREAM_H
#define WEFT_TINYVEX_STREAM_H

#include <errno.h>

#include "alloc.h"
#include "field.h"
#include "hub_clients_private.h"
#include "write.h"

/* A param of the stream that is a string; "" where it is none, or has a NUL in it. -ENOMEM. */
static inline int weft__stream_param(const weft_json *params, const char *name, const char **ret) {
    weft_json value = weft_get(params, name);
    int r = weft__field_text(&value, ret);
    if (r >= 0 && !*ret)
        *ret = "";
    return r;
}

/* Is it this string? Compared where it lies: for want of memory nothing may be left out. */
static inline bool weft__json_is(const weft_json *value, const char *text) {
    weft_iter it = {.name = *value};
    return weft_typeof(value) == WEFT_STRING && weft_name_is(&it, text);
}

/* Write a list: each item after a comma, but for the first. */
static inline int weft__stream_item(weft_buf *out, const weft_alloc *alloc, bool *first, weft_val item) {
    int r = *first ? 0 : weft__buf_put(out, alloc, ",", 1);
    *first = false;
    return r < 0 ? r : weft__write_val(out, alloc, &item);
}

#endif
