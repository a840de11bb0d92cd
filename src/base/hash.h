/* FNV-1a: a name to a row of a table. Quick for short names, and no defence: who chooses names can choose them badly, so
 * what is found by it is limited in number. */
#ifndef WEFT_HASH_H
#define WEFT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WEFT_HASH 2166136261u /* to begin with */

static inline uint32_t weft__hash_more(uint32_t hash, const char *name, size_t len) {
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char) name[i]) * 16777619u;
    return hash;
}

static inline uint32_t weft__hash(const char *name) {
    return weft__hash_more(WEFT_HASH, name, strlen(name));
}

/* The same with 64 bits, for telling texts apart that are not kept. */
#define WEFT_HASH64 14695981039346656037u

static inline uint64_t weft__hash64_more(uint64_t hash, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char) text[i]) * 1099511628211u;
    return hash;
}

#endif
