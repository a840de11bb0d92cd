/* Their requests, from arrival to the one answer. Private to peer/. */
#ifndef WEFT_REQUEST_H
#define WEFT_REQUEST_H

#include <stddef.h>

#include "hint.h"
#include "peer_private.h"

/* A request that was answered is used again for the next one; this many are kept for when many were open, and so that a
 * second answer to one of them is known for what it is. */
#define WEFT_REQ_POOL 16384

enum {
    REQ_NOTIFICATION = 1 << 0,
    REQ_IN_HANDLER = 1 << 1, /* the handler has not returned yet */
    REQ_ANSWERED = 1 << 2,
    REQ_DEFERRED = 1 << 3,    /* the handler has returned without answering */
    REQ_TOKEN_KNOWN = 1 << 4, /* the params have been searched for one */
    REQ_MCP_TOKEN = 1 << 5,
    REQ_SOON = 1 << 6,                                  /* others wait for its answer */
    REQ_GATED = 1 << 7,                                 /* gates have to be told of its end */
    REQ_KEYED = 1 << 8,                                 /* its answer is kept for a retry */
    REQ_UNCARRIED = 1 << 9,                             /* of a call without a connection */
    REQ_OWN_IDENTITY = 1 << 10,                         /* a gate has said who sent it */
    REQ_MEASURED = 1 << 11,                             /* the meter has to be told of its end */
    REQ_EXCUSED = 1 << 12,                              /* excuse was answered in place of what the handler said */
    REQ_TAKEN = 1 << 13,                                /* whoever was to answer it has */
    REQ_UNUSUAL = REQ_DEFERRED | REQ_GATED | REQ_KEYED, /* more is to be done than to write the answer */
};

struct weft_req {
    /* Down to turn it is zeroed for each request, so it is short and together. */
    unsigned flags; /* REQ_...: one word, because a byte written and then read with its neighbours stalls the processor */
    uint32_t parts; /* how many were sent; MCP wants a number that rises */
    char *kept;     /* id and token, once the text they lay in is gone */
    struct weft_kept *idempotent; /* the answer will be stored here */
    const weft_method *form;      /* the row that it was handed on to; NULL: its own */
    void *bound;                  /* the params as a struct, until the handler returns; NULL: not bound */
    weft_on_cancel *on_cancel;
    weft_bytes token; /* of weft_part(), raw; found when first needed or when the params go away */
    weft_timed timed;

    uint16_t turn;   /* how often its memory was used: see weft__req_handle() */
    weft_peer *peer; /* NULL: the connection has gone */
    weft_service *service;
    const weft_method *row;
    struct weft_batch_in *batch;
    weft_bytes id;
    weft_bytes params; /* until the handler returns */
    weft_bytes meta;
    weft_doc *doc; /* for strings in meta, until the handler returns */
    int64_t deadline;
    size_t soon_bytes; /* with REQ_SOON: of its params */
    weft_link link;    /* in peer->requests once the handler has returned without answering */
    void *cancel_ctx;
    weft_req *next_waiter; /* another that waits for the same stored answer */
    weft_req *next_free;

    /* Only with REQ_GATED; what is a figure also with REQ_MEASURED. */
    const weft_gate *const *gate; /* the next to be asked */
    weft_bytes message, name;
    int64_t began_us;
    size_t bytes_in;
    int gone;                /* 0, or why the caller has given up */
    int excuse;              /* 0, or the code of what was answered in place of what the handler said */
    size_t bytes_out;        /* written for every request, because that costs less than to ask */
    weft_identity *identity; /* only with REQ_OWN_IDENTITY; owned */
    char trace_id[33];
};

/* What an answer says. */
typedef struct weft_outcome {
    int code; /* 0: result is the value; otherwise an error */
    const char *message;
    const weft_val *value; /* the result, or the error's data (NULL: none) */
} weft_outcome;

/* Where a row's params are bound to: on the stack of whoever calls the handler. */
typedef union weft_params_memory {
    max_align_t align;
    char bytes[WEFT_PARAMS_MAX];
} weft_params_memory;
/* How large the struct is that a table's end names; 0: it names none, or there is no table. */
size_t weft__params_size(const weft_param *table);
/* Check params by the row, and bind them if its table says how large the struct is. Returns as weft_bind(). */
int weft__params_bind(weft_req *req, const weft_method *row, const weft_json *params, void *memory);
/* As weft_req_pass_on(), for params that are a part of the request's own: at is the JSON Pointer of that part, for errors.
 */
int weft__req_pass_on_at(weft_req *handle, const weft_method *row, const weft_json *params, const char *at, void *ctx);

/* For this peer, with nothing in it yet. NULL: no memory. */
weft_req *weft__req_alloc(weft_service *service);
static inline weft_req *weft__req_new(weft_peer *peer) {
    weft_service *service = peer->service;
    weft_req *req = service->pool;
    if (WEFT_LIKELY(req)) {
        service->pool = req->next_free;
        service->pooled--;
    } else if (!(req = weft__req_alloc(service)))
        return NULL;
    memset(req, 0, offsetof(weft_req, turn));
    req->timed.kind = WEFT_TIMED_REQUEST;
    req->deadline = INT64_MAX;
    req->peer = peer;
    req->service = service;
    return req;
}
/* ---- what users hold ---- */

/* Memory of requests is used again, and a program that answers one twice must not answer another's. What it gets is not a
 * pointer but a handle: the address, with the turn of its memory in the 16 bits that no address uses. An address that uses
 * them, or that has none to spare, is its own handle. Our own pointers are handles that always fit. */
#if UINTPTR_MAX > 0xFFFFFFFF
#define WEFT_REQ_TURN 48
static inline weft_req *weft__req_handle(weft_req *req) {
    uintptr_t address = (uintptr_t) req;
    return address >> WEFT_REQ_TURN ? req : (weft_req *) (address | (uintptr_t) req->turn << WEFT_REQ_TURN);
}
/* NULL: it was answered, and is gone. */
static inline weft_req *weft__req_of(weft_req *handle) {
    uintptr_t bits = (uintptr_t) handle, turn = bits >> WEFT_REQ_TURN;
    weft_req *req = (weft_req *) (bits & (((uintptr_t) 1 << WEFT_REQ_TURN) - 1));
    return !turn || req->turn == turn ? req : NULL;
}
static inline void weft__req_next_turn(weft_req *req) {
    req->turn = (uint16_t) (req->turn + 1 + (req->turn == UINT16_MAX)); /* never 0 */
}
#else
static inline weft_req *weft__req_handle(weft_req *req) {
    return req;
}
static inline weft_req *weft__req_of(weft_req *handle) {
    return handle;
}
static inline void weft__req_next_turn(weft_req *req) {
    req->turn++;
}
#endif

void weft__req_dispose(weft_req *req); /* what is rarely needed */
static inline void weft__req_release(weft_req *req) {
    weft_service *service = req->service;
    if (WEFT_RARELY((req->flags & (REQ_DEFERRED | REQ_OWN_IDENTITY)) || service->pooled >= WEFT_REQ_POOL)) {
        weft__req_dispose(req);
        return;
    }
    weft__req_next_turn(req);
    req->next_free = service->pool;
    service->pool = req;
    service->pooled++;
}
/* Give the one answer. req is taken unless its handler is still running. */
int weft__req_finish(weft_req *req, const weft_outcome *outcome);
/* Answer with text kept from another: `"result":...` or `"error":...`. */
int weft__req_finish_kept(weft_req *req, weft_bytes outcome);
/* Keep it for later, its text is about to go; whole: all of the text, because it has not come to its handler yet. <0: it has
 * been answered with why that is impossible, and only waits to be released by whoever was to answer it. */
int weft__req_defer(weft_req *req, bool whole);
/* When the caller stops waiting, if its params say so. */
void weft__req_read_deadline(weft_req *req);
/* It has at most so long, whatever its caller says. */
void weft__req_limit(weft_req *req, int64_t ms);
/* The caller does not want it any more. */
void weft__req_abandon(weft_req *req, int why);
void weft__req_abandon_all(weft_peer *peer, int why);
weft_req *weft__req_by_id(weft_peer *peer, weft_bytes id);

#endif
