/* Names to things, whose places in the map lie inside them. It never fails: where memory is short its rows only get longer.
 */
#ifndef WEFT_MAP_H
#define WEFT_MAP_H

#include "alloc.h"

#define WEFT_MAP_FEW 16 /* rows without memory of their own */

typedef struct weft_node {
    struct weft_node *next; /* in its row */
    const char *name;       /* borrowed from the thing; NULL: it is in no map */
    uint32_t hash;
} weft_node;

/* All zero, apart from alloc, is an empty map. */
typedef struct weft_map {
    const weft_alloc *alloc;
    weft_node **rows; /* NULL: few */
    size_t cap, count;
    weft_node *few[WEFT_MAP_FEW];
} weft_map;

/* The name must not be there yet. */
void weft__map_put(weft_map *map, weft_node *node, const char *name);
weft_node *weft__map_find(const weft_map *map, const char *name);
/* Harmless when it is in no map. */
void weft__map_remove(weft_map *map, weft_node *node);
/* Forget the rows; what was in it is the caller's. */
void weft__map_done(weft_map *map);

#endif
