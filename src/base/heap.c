/* A binary heap of deadlines with entries that know their place. */
#include "heap.h"

#include <errno.h>

#define FIRST_CAP 8

static void heap_put_at(weft_heap *heap, size_t i, weft_due *due) {
    heap->due[i] = due;
    due->place = i + 1;
}

static void sift_up(weft_heap *heap, size_t i, weft_due *due) {
    for (; i > 0 && heap->due[(i - 1) / 2]->at > due->at; i = (i - 1) / 2)
        heap_put_at(heap, i, heap->due[(i - 1) / 2]);
    heap_put_at(heap, i, due);
}

static void sift_due_down(weft_heap *heap, size_t i, weft_due *due) {
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && heap->due[child + 1]->at < heap->due[child]->at)
            child++;
        if (heap->due[child]->at >= due->at)
            break;
        heap_put_at(heap, i, heap->due[child]);
        i = child;
    }
    heap_put_at(heap, i, due);
}

static int grow_heap(weft_heap *heap, const weft_alloc *alloc) {
    size_t cap = heap->cap ? heap->cap * 2 : FIRST_CAP;
    weft_due **due = weft__resize(alloc, heap->due, cap * sizeof *due);
    if (!due)
        return -ENOMEM;
    heap->due = due;
    heap->cap = cap;
    return 0;
}

int weft__heap_set(weft_heap *heap, const weft_alloc *alloc, weft_due *due, int64_t at) {
    if (due->place) {
        int64_t was = due->at;
        due->at = at;
        if (at < was)
            sift_up(heap, due->place - 1, due);
        else
            sift_due_down(heap, due->place - 1, due);
        return 0;
    }
    if (heap->count == heap->cap && grow_heap(heap, alloc) < 0)
        return -ENOMEM;
    due->at = at;
    sift_up(heap, heap->count++, due);
    return 0;
}

void weft__heap_remove(weft_heap *heap, weft_due *due) {
    if (!due->place)
        return;
    size_t i = due->place - 1;
    weft_due *last = heap->due[--heap->count];
    due->place = 0;
    if (last == due)
        return;
    if (last->at < due->at)
        sift_up(heap, i, last);
    else
        sift_due_down(heap, i, last);
}

void weft__heap_done(weft_heap *heap, const weft_alloc *alloc) {
    weft__free(alloc, heap->due);
    *heap = (weft_heap){0};
}
