/* The allocator hook. Nothing else in Weft calls malloc. */
#include "alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void *weft__resize(const weft_alloc *alloc, void *ptr, size_t size) {
    if (alloc && alloc->resize)
        return alloc->resize(alloc->ctx, ptr, size);
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, size);
}

void *weft__alloc(const weft_alloc *alloc, size_t size) {
    return weft__resize(alloc, NULL, size ? size : 1);
}

void *weft__zalloc(const weft_alloc *alloc, size_t size) {
    void *ptr = weft__alloc(alloc, size);
    if (ptr)
        memset(ptr, 0, size);
    return ptr;
}

char *weft__strndup(const weft_alloc *alloc, const char *text, size_t len) {
    char *copy = weft__alloc(alloc, len + 1);
    if (copy) {
        if (len)
            memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

int weft__copy_or_null(const weft_alloc *alloc, const char *text, char **ret) {
    char *copy = text ? weft__strndup(alloc, text, strlen(text)) : NULL;
    if (text && !copy)
        return -ENOMEM;
    *ret = copy;
    return 0;
}

void *weft__free(const weft_alloc *alloc, void *ptr) {
    if (ptr)
        weft__resize(alloc, ptr, 0);
    return NULL;
}
