/* A hash map with chained rows; see map.h. */
#include "map.h"

#include <string.h>

#include "hash.h"

static weft_node **row_of(const weft_map *map, uint32_t hash) {
    if (!map->rows)
        return (weft_node **) &map->few[hash % WEFT_MAP_FEW];
    return &map->rows[hash & (map->cap - 1)];
}

static void push(weft_map *map, weft_node *node) {
    weft_node **row = row_of(map, node->hash);
    node->next = *row;
    *row = node;
}

/* Twice as many rows as there are things; without memory it stays as it is. */
static void grow(weft_map *map) {
    size_t was = map->rows ? map->cap : WEFT_MAP_FEW, cap = 4 * was;
    weft_node **rows = weft__zalloc(map->alloc, cap * sizeof(weft_node *));
    if (!rows)
        return;
    weft_map old = *map;
    weft_node **from = old.rows ? old.rows : old.few;
    map->rows = rows;
    map->cap = cap;
    for (size_t i = 0; i < was; i++)
        for (weft_node *node = from[i], *next; node; node = next) {
            next = node->next;
            push(map, node);
        }
    weft__free(map->alloc, old.rows);
    memset(map->few, 0, sizeof map->few);
}

void weft__map_put(weft_map *map, weft_node *node, const char *name) {
    if (map->count >= (map->rows ? map->cap : WEFT_MAP_FEW))
        grow(map);
    node->name = name;
    node->hash = weft__hash(name);
    push(map, node);
    map->count++;
}

weft_node *weft__map_find(const weft_map *map, const char *name) {
    uint32_t hash = weft__hash(name);
    for (weft_node *node = *row_of(map, hash); node; node = node->next)
        if (node->hash == hash && strcmp(node->name, name) == 0)
            return node;
    return NULL;
}

void weft__map_remove(weft_map *map, weft_node *node) {
    if (!node->name)
        return;
    weft_node **at = row_of(map, node->hash);
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    node->name = NULL;
    map->count--;
}

void weft__map_done(weft_map *map) {
    map->rows = weft__free(map->alloc, map->rows);
    map->count = map->cap = 0;
    memset(map->few, 0, sizeof map->few);
}
