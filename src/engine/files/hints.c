/* A list by time and a table by path. */
#include "hints.h"

#include <errno.h>
#include <string.h>

#include "hash.h"

static weft_hint **bucket_of(weft_hints *hints, const char *path) {
    return &hints->buckets[weft__hash(path) & (WEFT_HINTS_BUCKETS - 1)];
}

void weft__hints_init(weft_hints *hints, const weft_alloc *alloc) {
    hints->alloc = alloc;
    weft__list_init(&hints->list);
}

void weft__hints_clear(weft_hints *hints) {
    for (weft_hint *first; (first = weft__hints_first(hints));)
        weft__hints_drop(hints, first);
}

int weft__hints_put(weft_hints *hints, const char *path, int64_t due) {
    weft_hint **bucket = bucket_of(hints, path);
    size_t len = strlen(path);
    for (const weft_hint *hint = *bucket; hint; hint = hint->next)
        if (strcmp(hint->path, path) == 0)
            return 0;
    if (hints->count == WEFT_HINTS_MAX)
        return -ENOSPC;
    weft_hint *hint = weft__zalloc(hints->alloc, sizeof *hint + len + 1);
    if (!hint)
        return -ENOMEM;
    memcpy(hint->path, path, len + 1);
    hint->due = due;
    hint->next = *bucket;
    *bucket = hint;
    weft__list_push(&hints->list, &hint->link);
    hints->count++;
    return 1;
}

weft_hint *weft__hints_first(const weft_hints *hints) {
    return weft__list_empty(&hints->list) ? NULL : WEFT_CONTAINER(hints->list.next, weft_hint, link);
}

void weft__hints_drop(weft_hints *hints, weft_hint *hint) {
    weft_hint **at = bucket_of(hints, hint->path);
    while (*at != hint)
        at = &(*at)->next;
    *at = hint->next;
    weft__list_remove(&hint->link);
    hints->count--;
    weft__free(hints->alloc, hint);
}

void weft__hints_again(weft_hints *hints, weft_hint *hint, int64_t due) {
    hint->due = due;
    weft__list_remove(&hint->link);
    weft__list_push(&hints->list, &hint->link);
}
