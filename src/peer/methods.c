/* Methods by name: adding, removing, walking. Looking up, which happens once per request, is in service.h. */
#include <errno.h>
#include <string.h>

#include "service.h"

#define FIRST_CAP 32

static struct weft_method_slot *find_method_slot(const weft_methods *methods, const char *name, size_t len) {
    return methods->cap ? weft__methods_slot(methods, name, len) : NULL;
}

static void insert_method(weft_methods *methods, const weft_method *row, uint32_t len) {
    uint32_t hash = weft__method_hash(row->name, len);
    size_t i = hash & (methods->cap - 1);
    while (methods->slots[i].row)
        i = (i + 1) & (methods->cap - 1);
    methods->used += methods->slots[i].hash == 0;
    methods->slots[i] = (struct weft_method_slot){row, hash, len};
    methods->count++;
}

static int grow_methods(weft_methods *methods, const weft_alloc *alloc) {
    weft_methods larger = {.cap = FIRST_CAP};
    while (larger.cap < methods->count * 4)
        larger.cap *= 2;
    larger.slots = weft__zalloc(alloc, larger.cap * sizeof *larger.slots);
    if (!larger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < methods->cap; i++)
        if (methods->slots[i].row)
            insert_method(&larger, methods->slots[i].row, methods->slots[i].len);
    weft__free(alloc, methods->slots);
    *methods = larger;
    return 0;
}

int weft__methods_add(weft_methods *methods, const weft_alloc *alloc, const weft_method *row) {
    size_t len = strlen(row->name);
    if (find_method_slot(methods, row->name, len))
        return -EEXIST;
    /* At most half full, tombstones included: a lookup that finds nothing must stop soon. */
    if (methods->used + 1 > methods->cap / 2 && grow_methods(methods, alloc) < 0)
        return -ENOMEM;
    insert_method(methods, row, (uint32_t) len);
    return 0;
}

int weft__methods_remove(weft_methods *methods, const char *name) {
    struct weft_method_slot *slot = find_method_slot(methods, name, strlen(name));
    if (!slot)
        return -ENOENT;
    *slot = (struct weft_method_slot){.hash = 1};
    methods->last = NULL;
    methods->count--;
    return 0;
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
