/* Names to things, for names that are known beforehand and looked up in a text: the members of an object, the strings of an
 * enum. Built once; found by the first and last eight bytes of a name, or without looking where the order is as expected. */
#ifndef WEFT_NAMES_H
#define WEFT_NAMES_H

#include <string.h>

#include <weft/base.h>

#include "arena.h"

#define WEFT_NAMES_PAD 8 /* bytes behind a name that may be read */

typedef struct schema_name {
    weft_bytes name; /* with WEFT_NAMES_PAD bytes behind it */
    uint64_t head;   /* its first bytes */
    const struct schema_node *node;
    int64_t required; /* its number among those that must be there; -1: it need not */
    uint32_t next;    /* 1-based, in its slot; 0: none */
} schema_name;

typedef struct schema_names {
    schema_name *names;
    uint32_t *slots; /* 1-based */
    uint32_t count, cap, mask;
} schema_names;

static inline uint64_t weft__name_head(const char *p, size_t len) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return len >= sizeof word ? word : word & ((UINT64_C(1) << (8 * len)) - 1);
}

static inline uint32_t weft__name_slot(uint64_t head, const char *p, size_t len) {
    uint64_t tail = head, hash;
    if (len > sizeof tail)
        memcpy(&tail, p + len - sizeof tail, sizeof tail);
    hash = (head ^ len) * UINT64_C(0x9E3779B97F4A7C15) ^ tail * UINT64_C(0xC2B2AE3D27D4EB4F);
    return (uint32_t) ((hash * UINT64_C(0x9E3779B97F4A7C15)) >> 40);
}

static inline bool weft__name_equals(const schema_name *entry, uint64_t head, const char *p, size_t len) {
    return entry->head == head && entry->name.len == len &&
           (len <= sizeof head || memcmp(entry->name.data + 8, p + 8, len - 8) == 0);
}

/* The entry with this name, or NULL. *expected is where to look first, and where to look first the next time. p has
 * WEFT_NAMES_PAD bytes behind it. *steps counts what was compared in vain. */
static inline const schema_name *weft__names_find(const schema_names *names, const char *p, size_t len, uint32_t *expected,
                                                  size_t *steps) {
    if (!names->count)
        return NULL;
    uint64_t head = weft__name_head(p, len);
    if (*expected < names->count && weft__name_equals(&names->names[*expected], head, p, len))
        return &names->names[(*expected)++];
    for (uint32_t i = names->slots[weft__name_slot(head, p, len) & names->mask]; i; i = names->names[i - 1].next) {
        if (weft__name_equals(&names->names[i - 1], head, p, len)) {
            *expected = i;
            return &names->names[i - 1];
        }
        ++*steps;
    }
    return NULL;
}

/* Add a name, which is copied, or find it if it is there. NULL: no memory. Adding another one may move it. */
schema_name *weft__names_add(schema_names *names, weft_arena *arena, weft_bytes name);

#endif
