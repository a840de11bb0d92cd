/* Finding a row in the tables of wiring.c. */
#include <string.h>

#include "wiring.h"

const weft_store_kind *weft__store_named(const char *name) {
    for (const weft_store_kind *const *at = weft__stores; *at; at++)
        if (strcmp((*at)->name, name) == 0)
            return *at;
    return NULL;
}

const weft_store_kind *weft__store_first(bool lasts) {
    const weft_store_kind *const *at = weft__stores;
    while (*at && weft__store_lasts(*at) != lasts)
        at++;
    return *at;
}

const weft_driver *weft__driver_named(const char *name) {
    for (const weft_driver *const *at = weft__drivers; *at; at++)
        if (strcmp((*at)->name, name) == 0)
            return *at;
    return NULL;
}

/* Behind the end there is nothing to count, so the rows before it are counted. */
const char *weft__store_name(size_t index) {
    for (const weft_store_kind *const *at = weft__stores; *at; at++)
        if (index-- == 0)
            return (*at)->name;
    return NULL;
}

const char *weft__driver_name(size_t index) {
    for (const weft_driver *const *at = weft__drivers; *at; at++)
        if (index-- == 0)
            return (*at)->name;
    return NULL;
}
