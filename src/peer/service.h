/* What all peers of a service share: methods, limits, counters, a pool of requests. Private to peer/. */
#ifndef WEFT_SERVICE_H
#define WEFT_SERVICE_H

#include <weft/peer.h>

#include "alloc.h"
#include "list.h"

/* Methods by name, open addressing; rows are borrowed. */
typedef struct weft_methods {
    struct weft_method_slot *slots;
    size_t cap; /* a power of two */
    size_t used; /* rows and tombstones */
    size_t count;
} weft_methods;

int weft__methods_add(weft_methods *methods, const weft_alloc *alloc, const weft_method *row);
int weft__methods_remove(weft_methods *methods, const char *name);
const weft_method *weft__methods_find(const weft_methods *methods, const char *name, size_t len);
/* In no particular order: NULL at the end, *at begins at 0. */
const weft_method *weft__methods_next(const weft_methods *methods, size_t *at);
void weft__methods_done(weft_methods *methods, const weft_alloc *alloc);

struct weft_service {
    size_t refs;
    weft_methods methods;
    weft_limits limits; /* no zeroes left */
    weft_stats stats;
    const weft_alloc *alloc;
    weft_alloc alloc_copy;
    void *ctx;
    char *title;
    char *version;
    int (*authorize)(void *ctx, const weft_identity *who, const weft_method *method);
    void (*on_message)(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text);
    struct weft_req *pool; /* free requests, linked by next_free */
    size_t pooled;
    struct weft_zip *zip;              /* shared by WebSocket connections that compress */
    struct weft_idempotent *answers;   /* kept for retries; NULL until the first */
    struct weft_buckets *buckets;      /* rate limits by client; NULL until the first */
};

#endif
