/* Collections of JSON values by key: what clients keep here for themselves and each other. A collection is there as long as
 * it has a value. Every change has a version, a number that rises over all collections, so that one who read a value can say
 * "only if it is still that one".
 *
 * Values lie in documents of the store, written with the event that says which has changed. The event does not have the
 * value: what is deleted or replaced is gone. All values are in memory, which is why their number and size are limited. */
#ifndef WEFT_COLLECTIONS_H
#define WEFT_COLLECTIONS_H

#include "engine.h"

#define WEFT_COLLECTION_NAME 64               /* bytes of a collection's name */
#define WEFT_ITEM_KEY 180                     /* bytes of a key; with the name it is the key of a document in the store */
#define WEFT_ITEM_BYTES ((size_t) 256 << 10)  /* of one value's text */
#define WEFT_ITEMS 100000                     /* of all collections, unless the engine's limits say otherwise */
#define WEFT_ITEMS_BYTES ((size_t) 128 << 20) /* of all values */
#define WEFT_COLLECTIONS 1000
#define WEFT_ITEM_CHANGES 4096 /* under way; likewise */

/* Borrowed until the next turn of the loop. */
typedef struct weft_item {
    const char *collection, *key;
    weft_bytes value; /* JSON, as it came */
    uint64_t version;
    int64_t updated_ms;
} weft_item;

/* A letter, then letters, digits, "_", "-" and "."; 1 to WEFT_ITEM_KEY bytes without control characters. */
bool weft__collection_is_name(const char *name);
bool weft__item_is_key(const char *key);

const weft_item *weft__item_find(const weft_engine *engine, const char *collection, const char *key);
/* In the order of the bytes of their keys. NULL: there is none. */
const weft_item *weft__item_first(const weft_engine *engine, const char *collection);
const weft_item *weft__item_next(const weft_engine *engine, const weft_item *item);
size_t weft__collection_count(const weft_engine *engine, const char *collection);
/* The collections in the order of their names; after NULL: the first. NULL: that was the last. */
const char *weft__collection_after(const weft_engine *engine, const char *name);

typedef struct weft_item_change {
    const char *collection, *key;
    weft_json value; /* absent: it is deleted */
    int64_t expect;  /* only if its version is this one; 0: only if there is none; <0: whatever there is */
    weft_request
        *request; /* that this is done for; NULL: none. Its result is {collection, key, version} or {..., deleted} */
} weft_item_change;

/* version: of the change; 0: there was nothing to delete. r: -ESTALE it is not the expected version; version is the one
 * that it has. -EDQUOT: too many values, or too many bytes of them; or the store's error, or -EEXIST (once.h). */
typedef void weft_item_done(void *ctx, int r, uint64_t version);
/* Changes of one value take effect in the order in which they came; one with an expectation waits for those before it.
 * -EINVAL: a name or a key that is none; -EMSGSIZE the value is too long; -EUSERS too many are under way; -EAGAIN,
 * -ESHUTDOWN, -ENOMEM; and what can be said at once of the above. 1: there was nothing to delete, and no request that would
 * have to know. done does not run then. */
int weft__item_change(weft_engine *engine, const weft_item_change *change, weft_item_done *done, void *ctx);

#endif
