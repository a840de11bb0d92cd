/* Strings copied one behind the other into one piece of memory, which is what a thing and its names are freed with. First
 * count the bytes, then put them in; NULL takes none and stays NULL. */
#ifndef WEFT_PACK_H
#define WEFT_PACK_H

#include <string.h>

static inline size_t weft__pack_size(const char *text) {
    return text ? strlen(text) + 1 : 0;
}

/* So many bytes and a NUL; at moves behind them. */
static inline char *weft__pack_bytes(char **at, const void *text, size_t len) {
    char *copy = *at;
    if (!text)
        return NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    *at += len + 1;
    return copy;
}

static inline char *weft__pack(char **at, const char *text) {
    return weft__pack_bytes(at, text, text ? strlen(text) : 0);
}

#endif
