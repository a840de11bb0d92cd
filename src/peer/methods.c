/* Methods by name. Looked up once per request, so the hash reads at most sixteen bytes of the name and its length. */
#include <errno.h>
#include <string.h>

#include "service.h"

#define FIRST_CAP 32

struct weft_method_slot {
    const weft_method *row; /* NULL: free, or a tombstone when hash is 1 */
    uint32_t hash;
    uint32_t len;
};

static uint64_t load(const char *p, size_t n) {
    uint64_t word = 0;
    memcpy(&word, p, n);
    return word;
}

static inline uint32_t hash_name(const char *name, size_t len) {
    uint64_t first, last;
    if (len >= 8) {
        memcpy(&first, name, 8);
        memcpy(&last, name + len - 8, 8);
    } else if (len >= 4) {
        uint32_t a, b;
        memcpy(&a, name, 4);
        memcpy(&b, name + len - 4, 4);
        first = a, last = b;
    } else {
        first = load(name, len);
        last = 0;
    }
    uint64_t mixed = (first ^ (len * 0x9E3779B97F4A7C15ULL)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 29) ^ last) * 0x94D049BB133111EBULL;
    return (uint32_t) (mixed >> 32) | 2; /* 0 and 1 have a meaning of their own */
}

static struct weft_method_slot *find(const weft_methods *methods, const char *name, size_t len) {
    if (!methods->cap)
        return NULL;
    uint32_t hash = hash_name(name, len);
    for (size_t i = hash & (methods->cap - 1);; i = (i + 1) & (methods->cap - 1)) {
        struct weft_method_slot *slot = &methods->slots[i];
        if (slot->hash == hash && slot->len == len && memcmp(slot->row->name, name, len) == 0)
            return slot;
        if (slot->hash == 0)
            return NULL;
    }
}

static void insert(weft_methods *methods, const weft_method *row, uint32_t len) {
    uint32_t hash = hash_name(row->name, len);
    size_t i = hash & (methods->cap - 1);
    while (methods->slots[i].row)
        i = (i + 1) & (methods->cap - 1);
    methods->used += methods->slots[i].hash == 0;
    methods->slots[i] = (struct weft_method_slot){row, hash, len};
    methods->count++;
}

static int grow(weft_methods *methods, const weft_alloc *alloc) {
    weft_methods larger = {.cap = FIRST_CAP};
    while (larger.cap < methods->count * 4)
        larger.cap *= 2;
    larger.slots = weft__zalloc(alloc, larger.cap * sizeof *larger.slots);
    if (!larger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < methods->cap; i++)
        if (methods->slots[i].row)
            insert(&larger, methods->slots[i].row, methods->slots[i].len);
    weft__free(alloc, methods->slots);
    *methods = larger;
    return 0;
}

int weft__methods_add(weft_methods *methods, const weft_alloc *alloc, const weft_method *row) {
    size_t len = strlen(row->name);
    if (find(methods, row->name, len))
        return -EEXIST;
    /* At most half full, tombstones included: a lookup that finds nothing must stop soon. */
    if (methods->used + 1 > methods->cap / 2 && grow(methods, alloc) < 0)
        return -ENOMEM;
    insert(methods, row, (uint32_t) len);
    return 0;
}

int weft__methods_remove(weft_methods *methods, const char *name) {
    struct weft_method_slot *slot = find(methods, name, strlen(name));
    if (!slot)
        return -ENOENT;
    *slot = (struct weft_method_slot){.hash = 1};
    methods->count--;
    return 0;
}

const weft_method *weft__methods_find(const weft_methods *methods, const char *name, size_t len) {
    struct weft_method_slot *slot = find(methods, name, len);
    return slot ? slot->row : NULL;
}

const weft_method *weft__methods_next(const weft_methods *methods, size_t *at) {
    while (*at < methods->cap) {
        const weft_method *row = methods->slots[(*at)++].row;
        if (row)
            return row;
    }
    return NULL;
}

void weft__methods_done(weft_methods *methods, const weft_alloc *alloc) {
    weft__free(alloc, methods->slots);
    *methods = (weft_methods){0};
}
