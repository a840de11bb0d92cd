/* Building a table of names. The slots are made anew when the table has grown, so a name is found while it is being built.
 */
#include "names.h"

#define FIRST_CAP 8
#define SLOTS_PER_NAME 2

static void put_in_slot(schema_names *names, uint32_t index) {
    schema_name *entry = &names->names[index];
    uint32_t *slot = &names->slots[weft__name_slot(entry->head, entry->name.data, entry->name.len) & names->mask];
    entry->next = *slot;
    *slot = index + 1;
}

static bool grow_names(schema_names *names, weft_arena *arena) {
    uint32_t cap = names->cap ? names->cap * 2 : FIRST_CAP;
    schema_name *grown = weft__arena_alloc(arena, cap * sizeof *grown);
    uint32_t *slots = weft__arena_alloc(arena, cap * SLOTS_PER_NAME * sizeof *slots);
    if (!grown || !slots)
        return false;
    if (names->count)
        memcpy(grown, names->names, names->count * sizeof *grown);
    memset(slots, 0, cap * SLOTS_PER_NAME * sizeof *slots);
    names->names = grown;
    names->slots = slots;
    names->cap = cap;
    names->mask = cap * SLOTS_PER_NAME - 1;
    for (uint32_t i = 0; i < names->count; i++)
        put_in_slot(names, i);
    return true;
}

schema_name *weft__names_add(schema_names *names, weft_arena *arena, weft_bytes name) {
    char *copy = weft__arena_alloc(arena, name.len + WEFT_NAMES_PAD);
    if (!copy)
        return NULL;
    if (name.len)
        memcpy(copy, name.data, name.len);
    memset(copy + name.len, 0, WEFT_NAMES_PAD);
    uint32_t expected = UINT32_MAX;
    size_t steps = 0;
    const schema_name *found = weft__names_find(names, copy, name.len, &expected, &steps);
    if (found)
        return &names->names[found - names->names];
    if (names->count == names->cap && !grow_names(names, arena))
        return NULL;
    schema_name *entry = &names->names[names->count];
    *entry = (schema_name){.name = {copy, name.len}, .head = weft__name_head(copy, name.len), .required = -1};
    put_in_slot(names, names->count++);
    return entry;
}
