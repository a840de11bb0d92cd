/* Memory that is given back all at once: the decoded strings of one message, for instance. */
#ifndef WEFT_ARENA_H
#define WEFT_ARENA_H

#include "alloc.h"

typedef struct weft_arena {
    struct weft_arena_block *blocks; /* newest first */
    const weft_alloc *alloc;
} weft_arena;

/* NULL when memory is short. Aligned for anything. */
void *weft__arena_alloc(weft_arena *arena, size_t size);
/* Give everything back. */
void weft__arena_done(weft_arena *arena);

#endif
