/* What fuzz targets share: a check that ends the process, and an allocator that counts, so that a target can say that
 * nothing is left. */
#ifndef FUZZ_MEMORY_H
#define FUZZ_MEMORY_H

#include <stdbool.h>
#include <stdlib.h>

#include <weft/base.h>

static inline void require(bool ok) {
    if (!ok)
        abort();
}

static long live;

static inline void *count_resize(void *ctx, void *ptr, size_t size) {
    (void) ctx;
    if (!size) {
        live -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    live += ptr == NULL;
    return realloc(ptr, size);
}

static const weft_alloc counting = {count_resize, NULL};

#endif
