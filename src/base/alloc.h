/* The allocator hook, so that a program or a test can bring its own memory. NULL means the C library's. */
#ifndef WEFT_ALLOC_H
#define WEFT_ALLOC_H

#include <weft/base.h>

/* Each returns NULL when memory is short; every caller checks. */
void *weft__alloc(const weft_alloc *alloc, size_t size);
void *weft__zalloc(const weft_alloc *alloc, size_t size);
void *weft__resize(const weft_alloc *alloc, void *ptr, size_t size);
char *weft__strndup(const weft_alloc *alloc, const char *text, size_t len);
/* A copy of a text that may be NULL, then so is the copy. -ENOMEM. */
int weft__copy_or_null(const weft_alloc *alloc, const char *text, char **ret);
/* free(NULL) does nothing. Returns NULL, so that p = weft__free(a, p) forgets it. */
void *weft__free(const weft_alloc *alloc, void *ptr);

#endif
