/* A name to a row of a table. No defence: who chooses names can choose them badly, so what is found by it is limited in
 * number. It differs between machines and versions, and is never stored. */
#ifndef WEFT_HASH_H
#define WEFT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WEFT_HASH 2166136261u /* to begin with */

static inline uint64_t weft__hash_word(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

/* Up to 8 bytes as a number: those of 4 and more from two ends that may overlap. */
static inline uint64_t weft__hash_short(const char *name, size_t len) {
    uint32_t head, tail;
    if (len >= 4) {
        memcpy(&head, name, 4), memcpy(&tail, name + len - 4, 4);
        return (uint64_t) head << 32 | tail;
    }
    if (!len)
        return 0;
    return (uint64_t) (unsigned char) name[0] << 16 | (uint64_t) (unsigned char) name[len / 2] << 8 |
           (unsigned char) name[len - 1];
}

/* Eight bytes at a time: names are digests and ids, and one byte at a time each waits for the one before. */
static inline uint32_t weft__hash_more(uint32_t seed, const char *name, size_t len) {
    uint64_t hash = seed ^ (uint64_t) len << 32, word;
    const char *end = name + len;
    if (len <= 8)
        return (uint32_t) weft__hash_word(weft__hash_word(hash, weft__hash_short(name, len)), len);
    for (; end - name > 8; name += 8) {
        memcpy(&word, name, 8);
        hash = weft__hash_word(hash, word);
    }
    memcpy(&word, end - 8, 8);
    return (uint32_t) weft__hash_word(weft__hash_word(hash, word), len);
}

static inline uint32_t weft__hash(const char *name) {
    return weft__hash_more(WEFT_HASH, name, strlen(name));
}

/* FNV-1a with 64 bits, for telling texts apart that are not kept. It is the same everywhere: journals have it. */
#define WEFT_HASH64 14695981039346656037u

static inline uint64_t weft__hash64_more(uint64_t hash, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char) text[i]) * 1099511628211u;
    return hash;
}

#endif
