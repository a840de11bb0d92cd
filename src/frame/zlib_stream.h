/* A z_stream of zlib that takes its memory from our allocator. */
#ifndef WEFT_ZLIB_STREAM_H
#define WEFT_ZLIB_STREAM_H

#include <stdint.h>
#include <zlib.h>

#include "alloc.h"

static inline void *weft__zlib_alloc(void *opaque, unsigned count, unsigned size) {
    return weft__alloc(opaque, (size_t) count * size);
}

static inline void weft__zlib_free(void *opaque, void *ptr) {
    weft__free(opaque, ptr);
}

/* zlib wants the allocator without const and only hands it back. */
static inline z_stream weft__zlib_stream(const weft_alloc *alloc) {
    return (z_stream){.zalloc = weft__zlib_alloc, .zfree = weft__zlib_free, .opaque = (void *) (uintptr_t) alloc};
}

#endif
