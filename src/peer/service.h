/* What all peers of a service share: methods, limits, counters, a pool of requests. Private to peer/. */
#ifndef WEFT_SERVICE_H
#define WEFT_SERVICE_H

#include <string.h>

#include <weft/peer.h>

#include "alloc.h"
#include "hint.h"
#include "list.h"

/* Methods by name, open addressing; rows are borrowed. */
struct weft_method_slot {
    const weft_method *row; /* NULL: free, or a tombstone when hash is 1 */
    uint32_t hash;
    uint32_t len;
};
typedef struct weft_methods {
    struct weft_method_slot *slots;
    size_t cap;  /* a power of two */
    size_t used; /* rows and tombstones */
    size_t count;
    const weft_method *last; /* found last: callers repeat themselves. NULL: none, or the table has changed */
    size_t last_len;
} weft_methods;

int weft__methods_add(weft_methods *methods, const weft_alloc *alloc, const weft_method *row);
int weft__methods_remove(weft_methods *methods, const char *name);
/* A few bytes tell names apart ("task.submit", "task.cancel"); the rest is compared once. name is not empty. */
static inline uint32_t weft__method_hash(const char *name, size_t len) {
    const unsigned char *bytes = (const unsigned char *) name;
    uint32_t mixed =
        (uint32_t) len * 0x9E3779B1u ^ bytes[0] ^ (uint32_t) bytes[len / 2] << 8 ^ (uint32_t) bytes[len - 1] << 16;
    mixed *= 0x85EBCA6Bu;
    return (mixed ^ mixed >> 15) | 2; /* 0 and 1 have a meaning of their own */
}
/* memcmp for a few bytes costs more than the comparison. */
static inline bool weft__same_name(const char *a, const char *b, size_t len) {
    uint64_t x, y;
    uint32_t u, v;
    if (len > 16 || len < 4)
        return memcmp(a, b, len) == 0;
    if (len < 8) {
        memcpy(&u, a, 4), memcpy(&v, b, 4);
        uint32_t head = u ^ v;
        memcpy(&u, a + len - 4, 4), memcpy(&v, b + len - 4, 4);
        return !(head | (u ^ v));
    }
    memcpy(&x, a, 8), memcpy(&y, b, 8);
    uint64_t first = x ^ y;
    memcpy(&x, a + len - 8, 8), memcpy(&y, b + len - 8, 8);
    return !(first | (x ^ y));
}
/* The table is never empty: there is always rpc.discover, and at most half of it is used. */
static inline struct weft_method_slot *weft__methods_slot(const weft_methods *methods, const char *name, size_t len) {
    uint32_t hash = weft__method_hash(name, len);
    for (size_t i = hash & (methods->cap - 1);; i = (i + 1) & (methods->cap - 1)) {
        struct weft_method_slot *slot = &methods->slots[i];
        if (slot->hash == hash && slot->len == len && weft__same_name(slot->row->name, name, len))
            return slot;
        if (slot->hash == 0)
            return NULL;
    }
}
static inline const weft_method *weft__methods_find(const weft_methods *methods, const char *name, size_t len) {
    struct weft_method_slot *slot = len && methods->cap ? weft__methods_slot(methods, name, len) : NULL;
    return slot ? slot->row : NULL;
}
/* The same for a request that has arrived. */
static WEFT_ALWAYS_INLINE const weft_method *weft__methods_resolve(weft_methods *methods, const char *name, size_t len) {
    const weft_method *last = methods->last;
    if (methods->last_len == len && last && weft__same_name(last->name, name, len))
        return last;
    methods->last = weft__methods_find(methods, name, len);
    methods->last_len = len;
    return methods->last;
}
/* In no particular order: NULL at the end, *at begins at 0. */
const weft_method *weft__methods_next(const weft_methods *methods, size_t *at);
void weft__methods_done(weft_methods *methods, const weft_alloc *alloc);

/* Among the flags of methods: every one of them. */
#define WEFT_GATE_ALL (1u << 15)

/* Hear every message in and out from now on, beside on_message; NULL: no more. The tap must not send, nor free a peer. While
 * nobody hears, messages cost nothing more. */
void weft__service_tap(weft_service *service, void (*tap)(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text),
                       void *ctx);

/* Calls without a connection: service_call.c. */
struct weft_service_calls;
/* Nobody but they hold the service any more: complete them with -ECANCELED. */
void weft__service_calls_end(weft_service *service);
void weft__service_calls_done(weft_service *service);

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
    char *description;                /* NULL: none */
    const weft_method *notifications; /* what we tell, for discovery; NULL: none */
    int (*authorize)(void *ctx, const weft_identity *who, const weft_method *method);
    void (*on_message)(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text);
    void (*log)(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text); /* on_message of the options */
    void (*tap)(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text); /* weft__service_tap() */
    void *tap_ctx;
    int64_t (*now_us)(void *ctx);
    const weft_gate *const *gates; /* NULL: none */
    unsigned gate_flags;           /* of methods that gates want to see, or WEFT_GATE_ALL */
    unsigned guarded;              /* the same, with authorize counted among them */
    bool tells;                    /* some of them want to hear how requests end */
    void (*on_ready)(void *ctx);
    void (*wake)(void *ctx); /* instead of on_ready; NULL: not set */
    void *wake_ctx;
    bool check_results;
    bool named_errors;
    struct weft_row_schemas *schemas; /* NULL until the first row with one */
    struct weft_service_calls *calls; /* without a connection; NULL until the first */
    size_t inner_refs;                /* of refs: those of such calls */
    bool closing;                     /* all other references have gone */
    struct weft_req *pool;            /* free requests, linked by next_free */
    size_t pooled;
    uint16_t turns;                  /* where those of new memory begin */
    struct weft_gzip *gzip;          /* the same for Content-Encoding */
    struct weft_zip *zip;            /* shared by WebSocket connections that compress */
    struct weft_idempotent *answers; /* kept for retries; NULL until the first */
    struct weft_buckets *buckets;    /* rate limits by client; NULL until the first */
    struct weft_meter *meter;        /* NULL: nothing is measured */
    void (*on_turn)(void *ctx);      /* a turn of it has begun; NULL: it ends with what one peer is fed */
    void *turn_ctx;
};

#endif
