/* A queue of bytes in one piece of memory. Its limit is checked by whoever knows what the bytes are. */
#include "buf.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>

#define FIRST_CAP 512

/* Memory of this size with the content at its front. What is ours and begins at the front already is resized, which for
 * large blocks moves pages instead of bytes. */
static char *move_to(const weft_buf *buf, const weft_alloc *alloc, size_t size) {
    size_t len = weft__buf_len(buf);
    if (!buf->lent && buf->start == 0)
        return weft__resize(alloc, buf->data, size);
    char *data = weft__alloc(alloc, size);
    if (!data)
        return NULL;
    if (len)
        memcpy(data, weft__buf_head(buf), len);
    if (!buf->lent)
        weft__free(alloc, buf->data);
    return data;
}

int weft__buf_grow(weft_buf *buf, const weft_alloc *alloc, size_t n) {
    size_t len = weft__buf_len(buf);

    /* Sliding down is cheaper than growing while at least half of the memory is free: each byte then moves at most once for
     * each byte that was taken. */
    if (buf->start && buf->start >= len && buf->cap - len >= n) {
        memmove(buf->data, buf->data + buf->start, len);
        buf->start = 0;
        buf->end = len;
        return 0;
    }
    if (n > SIZE_MAX / 4 - len)
        return -ENOMEM;
    size_t cap = buf->cap * 2 > FIRST_CAP ? buf->cap * 2 : FIRST_CAP;
    if (cap < len + n)
        cap = len + n;
    char *data = move_to(buf, alloc, cap + WEFT_SLACK);
    if (!data)
        return -ENOMEM;
    *buf = (weft_buf){.data = data, .end = len, .cap = cap};
    return 0;
}

void weft__buf_done(weft_buf *buf, const weft_alloc *alloc) {
    if (!buf->lent)
        weft__free(alloc, buf->data);
    *buf = (weft_buf){0};
}

void weft__buf_lend_again(weft_buf *buf, const weft_alloc *alloc, char *memory, size_t size) {
    if (weft__buf_len(buf) || buf->lent || size <= WEFT_SLACK)
        return;
    weft__buf_done(buf, alloc);
    *buf = (weft_buf){.data = memory, .cap = size - WEFT_SLACK, .lent = true};
}

int weft__buf_return_rest(weft_buf *buf, const weft_alloc *alloc) {
    weft_buf own = {0};
    int r = weft__buf_put(&own, alloc, weft__buf_head(buf), weft__buf_len(buf));
    *buf = own;
    return r;
}
