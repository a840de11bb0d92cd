/* A binary heap of deadlines whose entries lie inside the things that wait: the earliest is on top, any can be moved or
 * removed in O(log n). */
#ifndef WEFT_HEAP_H
#define WEFT_HEAP_H

#include "alloc.h"

typedef struct weft_due {
    int64_t at;
    size_t place; /* 1-based; 0: in no heap */
} weft_due;

typedef struct weft_heap {
    weft_due **due;
    size_t count;
    size_t cap;
} weft_heap;

/* Put it in, or move it if it is in already. -ENOMEM; then it is where it was. */
int weft__heap_set(weft_heap *heap, const weft_alloc *alloc, weft_due *due, int64_t at);
/* Harmless when it is in no heap. */
void weft__heap_remove(weft_heap *heap, weft_due *due);
void weft__heap_done(weft_heap *heap, const weft_alloc *alloc);
/* NULL when empty. */
static inline weft_due *weft__heap_top(const weft_heap *heap) {
    return heap->count ? heap->due[0] : NULL;
}

#endif
