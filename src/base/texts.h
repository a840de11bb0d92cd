/* Lists of texts that end with NULL, as argv and environ do. */
#ifndef WEFT_TEXTS_H
#define WEFT_TEXTS_H

#include <stddef.h>

/* list NULL: 0. */
static inline size_t weft__texts_count(const char *const *list) {
    size_t count = 0;
    while (list && list[count])
        count++;
    return count;
}

#endif
