/* A queue of bytes in one piece of memory: appended at the end, taken from the front, never over its limit.
 *
 * Whatever it holds, WEFT_SLACK bytes behind the end may be read and written, because the scanner reads in vectors and puts
 * a NUL behind the text it works on.
 *
 * A buffer can work in lent memory: a connection that answers at once never allocates, and ten thousand idle ones cost
 * nothing. What is still there when the loan ends is copied out. */
#ifndef WEFT_BUF_H
#define WEFT_BUF_H

#include <assert.h>
#include <string.h>

#include "alloc.h"

#define WEFT_SLACK 64

typedef struct weft_buf {
    char *data;
    size_t start; /* first byte not yet taken */
    size_t end;
    size_t cap; /* usable bytes, slack not counted */
    bool lent;
} weft_buf;

static inline size_t weft__buf_len(const weft_buf *buf) {
    return buf->end - buf->start;
}
/* NULL while it has no memory: C does not define NULL + 0. */
static inline char *weft__buf_head(const weft_buf *buf) {
    return buf->data ? buf->data + buf->start : NULL;
}
static inline char *weft__buf_tail(const weft_buf *buf) {
    return buf->data ? buf->data + buf->end : NULL;
}

/* Make room for n more bytes behind the end. -ENOMEM; the content is untouched then. */
int weft__buf_grow(weft_buf *buf, const weft_alloc *alloc, size_t n);
static inline int weft__buf_reserve(weft_buf *buf, const weft_alloc *alloc, size_t n) {
    return buf->cap - buf->end >= n ? 0 : weft__buf_grow(buf, alloc, n);
}
static inline int weft__buf_put(weft_buf *buf, const weft_alloc *alloc, const void *data, size_t n) {
    int r = weft__buf_reserve(buf, alloc, n);
    if (r < 0)
        return r;
    if (n)
        memcpy(buf->data + buf->end, data, n);
    buf->end += n;
    return 0;
}
static inline int weft__buf_put_text(weft_buf *buf, const weft_alloc *alloc, const char *text) {
    return weft__buf_put(buf, alloc, text, strlen(text));
}
void weft__buf_done(weft_buf *buf, const weft_alloc *alloc);
/* Forget n bytes at the front; memory of an emptied buffer that is not lent is given back. */
static inline void weft__buf_take(weft_buf *buf, const weft_alloc *alloc, size_t n) {
    assert(n <= weft__buf_len(buf));
    buf->start += n;
    if (buf->start < buf->end)
        return;
    if (buf->lent)
        buf->start = buf->end = 0;
    else
        weft__buf_done(buf, alloc);
}

/* Work in this memory (size includes the slack) until weft__buf_return(). Does nothing unless the buffer is empty and there
 * is more memory than slack. */
void weft__buf_lend_again(weft_buf *buf, const weft_alloc *alloc, char *memory, size_t size);
static inline void weft__buf_lend(weft_buf *buf, const weft_alloc *alloc, char *memory, size_t size) {
    if (buf->data || size <= WEFT_SLACK)
        weft__buf_lend_again(buf, alloc, memory, size);
    else
        *buf = (weft_buf){.data = memory, .cap = size - WEFT_SLACK, .lent = true};
}
/* End the loan; what is left moves to memory of its own. -ENOMEM: what was left is lost and the buffer is empty. */
int weft__buf_return_rest(weft_buf *buf, const weft_alloc *alloc);
static inline int weft__buf_return(weft_buf *buf, const weft_alloc *alloc) {
    if (!buf->lent)
        return 0;
    if (weft__buf_len(buf))
        return weft__buf_return_rest(buf, alloc);
    *buf = (weft_buf){0};
    return 0;
}

#endif
