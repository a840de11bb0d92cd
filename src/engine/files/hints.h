/* Paths to look at when they have settled: each once, in the order in which they are due. */
#ifndef WEFT_HINTS_H
#define WEFT_HINTS_H

#include "alloc.h"
#include "list.h"

#define WEFT_HINTS_MAX 1000
#define WEFT_HINTS_BUCKETS 1024 /* a power of two */

typedef struct weft_hint {
    weft_link link;
    struct weft_hint *next; /* in its bucket */
    int64_t due;
    char path[];
} weft_hint;

/* Zero it and call weft__hints_init(). */
typedef struct weft_hints {
    const weft_alloc *alloc;
    weft_link list;
    weft_hint *buckets[WEFT_HINTS_BUCKETS];
    size_t count;
} weft_hints;

void weft__hints_init(weft_hints *hints, const weft_alloc *alloc);
void weft__hints_clear(weft_hints *hints);
/* Due no earlier than those before it. 1 it is new, 0 it was there and stays due when it was; -ENOSPC there are too many,
 * -ENOMEM. */
int weft__hints_put(weft_hints *hints, const char *path, int64_t due);
/* The first that is due; NULL: there is none. */
weft_hint *weft__hints_first(const weft_hints *hints);
void weft__hints_drop(weft_hints *hints, weft_hint *hint);
/* Look at it again later, behind all others. */
void weft__hints_again(weft_hints *hints, weft_hint *hint, int64_t due);

#endif
