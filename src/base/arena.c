/* Memory that is given back all at once. Blocks double, so that a large message needs few of them. */
#include "arena.h"

#define FIRST_BLOCK 960 /* with its head still small to the C library, which is quick with small pieces */
#define LARGEST_BLOCK (256 * 1024)

struct weft_arena_block {
    struct weft_arena_block *next;
    size_t used;
    size_t cap;
    _Alignas(max_align_t) char data[];
};

static struct weft_arena_block *add_block(weft_arena *arena, size_t size) {
    size_t cap = arena->blocks ? arena->blocks->cap * 2 : FIRST_BLOCK;
    if (cap > LARGEST_BLOCK)
        cap = LARGEST_BLOCK;
    if (cap < size)
        cap = size;
    struct weft_arena_block *block = weft__alloc(arena->alloc, sizeof *block + cap);
    if (!block)
        return NULL;
    block->next = arena->blocks;
    block->used = 0;
    block->cap = cap;
    return arena->blocks = block;
}

void *weft__arena_alloc(weft_arena *arena, size_t size) {
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
    struct weft_arena_block *block = arena->blocks;
    if (!block || block->cap - block->used < size)
        block = add_block(arena, size);
    if (!block)
        return NULL;
    void *ptr = block->data + block->used;
    block->used += size;
    return ptr;
}

void weft__arena_done(weft_arena *arena) {
    while (arena->blocks) {
        struct weft_arena_block *next = arena->blocks->next;
        weft__free(arena->alloc, arena->blocks);
        arena->blocks = next;
    }
}
