/* The inside of a peer, for the files of this folder only. */
#ifndef WEFT_PEER_PRIVATE_H
#define WEFT_PEER_PRIVATE_H

#include <weft/peer.h>

#include "buf.h"
#include "doc.h"
#include "frame.h"
#include "heap.h"
#include "link.h"
#include "list.h"
#include "message.h"
#include "service.h"

/* Small, because ten thousand idle ones should fit in ten megabytes with their sockets: what a connection does not always
 * need is allocated when it is needed and given back. */
struct weft_peer {
    weft_service *service;
    const weft_framing *framing;
    void *framing_state;
    weft_buf in;  /* the beginning of a message that has not come whole */
    weft_buf out; /* framed messages that have not been sent */
    size_t in_flight;
    size_t max_body; /* depends on whether we know who it is */
    int64_t now;
    int64_t heard;      /* when bytes last came */
    int64_t pinged;     /* when we asked whether anybody is there; 0: we have not since bytes came */
    weft_link requests; /* theirs, waiting for our answer */
    size_t open_requests;
    struct weft_calls *calls;   /* ours, waiting for their answer; NULL until the first */
    weft_heap due;              /* deadlines of both */
    weft_identity *identity;    /* one block with its strings */
    struct weft_bucket *bucket; /* rate limit; NULL: none */
    const weft_carrier *carrier_table;
    void *carrier;
    void *data;
    void (*on_notification)(weft_peer *peer, const char *method, const weft_json *params, void *data);
    bool (*on_raw)(weft_peer *peer, weft_bytes body, bool binary, void *data);
    void (*on_output)(weft_peer *peer, void *data);
    void (*on_drain)(weft_peer *peer, void *data);
    const void *framing_extra;
    uint64_t seed;
    int status;    /* 0, or why it must be closed */
    unsigned busy; /* depth of calls that must not see the peer freed under them */
    unsigned deflate;
    uint8_t style; /* weft_style */
    bool no_batch, lenient, extras, locked;
    bool quiet;    /* inside feed or tick: the caller will look for output itself */
    bool full;     /* the soft limit was reached and not yet left */
    bool offline;  /* a client between two connections */
    bool finished; /* no more bytes will come, and all there were have been looked at */
    bool ended;    /* no more bytes will come and calls cannot be made */
    bool paused;   /* by the user: bytes are kept unread */
    bool freed;    /* weft_peer_free() was called while busy */
};

/* ---- time: one heap for both directions ---- */

typedef struct weft_timed {
    weft_due due;
    enum { WEFT_TIMED_CALL, WEFT_TIMED_REQUEST } kind;
} weft_timed;

/* ---- their requests: request.c ---- */

/* A request that was answered is used again for the next one; this many are kept for when many were open. */
#define WEFT_REQ_POOL 1024

struct weft_batch_in; /* answers being collected: batch_in.c */

enum {
    REQ_NOTIFICATION = 1 << 0,
    REQ_IN_HANDLER = 1 << 1, /* the handler has not returned yet */
    REQ_ANSWERED = 1 << 2,
    REQ_DEFERRED = 1 << 3,    /* the handler has returned without answering */
    REQ_TOKEN_KNOWN = 1 << 4, /* the params have been searched for one */
    REQ_MCP_TOKEN = 1 << 5,
};

struct weft_req {
    /* Down to peer it is zeroed for each request, so it is short and together. */
    unsigned flags; /* REQ_...: one word, because a byte written and then read with its neighbours stalls the processor */
    uint32_t parts; /* how many were sent; MCP wants a number that rises */
    char *kept;     /* id and token, once the text they lay in is gone */
    struct weft_kept *idempotent; /* the answer will be stored here */
    weft_on_cancel *on_cancel;
    weft_bytes token; /* of weft_part(), raw; found when first needed or when the params go away */
    weft_timed timed;

    weft_peer *peer; /* NULL: the connection has gone */
    weft_service *service;
    const weft_method *row;
    struct weft_batch_in *batch;
    weft_bytes id;
    weft_bytes params; /* until the handler returns */
    weft_bytes meta;
    weft_doc *doc; /* for strings in meta, until the handler returns */
    int64_t deadline;
    weft_link link; /* in peer->requests once the handler has returned without answering */
    void *cancel_ctx;
    weft_req *next_waiter; /* another that waits for the same stored answer */
    weft_req *next_free;
};

/* What an answer says. */
typedef struct weft_outcome {
    int code; /* 0: result is the value; otherwise an error */
    const char *message;
    const weft_val *value; /* the result, or the error's data (NULL: none) */
} weft_outcome;

/* For this peer, with nothing in it yet. NULL: no memory. */
weft_req *weft__req_alloc(weft_service *service);
static inline weft_req *weft__req_new(weft_peer *peer) {
    weft_service *service = peer->service;
    weft_req *req = service->pool;
    if (req) {
        service->pool = req->next_free;
        service->pooled--;
    } else if (!(req = weft__req_alloc(service)))
        return NULL;
    memset(req, 0, offsetof(weft_req, peer));
    req->timed.kind = WEFT_TIMED_REQUEST;
    req->deadline = INT64_MAX;
    req->peer = peer;
    req->service = service;
    return req;
}
void weft__req_dispose(weft_req *req); /* what is rarely needed */
static inline void weft__req_release(weft_req *req) {
    weft_service *service = req->service;
    if (req->kept || (req->flags & REQ_DEFERRED) || service->pooled >= WEFT_REQ_POOL) {
        weft__req_dispose(req);
        return;
    }
    req->next_free = service->pool;
    service->pool = req;
    service->pooled++;
}
/* Give the one answer. req is taken unless its handler is still running. */
int weft__req_finish(weft_req *req, const weft_outcome *outcome);
/* Answer with text kept from another: `"result":...` or `"error":...`. */
int weft__req_finish_kept(weft_req *req, weft_bytes outcome);
/* Run a request or notification through its handler and see to what the handler left undone. */
void weft__req_run(weft_req *req, const weft_json *params);
/* Keep it for later, its text is about to go. <0: it has been answered with why that is impossible, and only waits to be
 * released by whoever was to answer it. */
int weft__req_defer(weft_req *req);
/* The caller does not want it any more. */
void weft__req_abandon(weft_req *req, int why);
void weft__req_abandon_all(weft_peer *peer, int why);
weft_req *weft__req_by_id(weft_peer *peer, weft_bytes id);

/* ---- our calls: call.c ---- */

struct weft_call_state;
void weft__calls_answer(weft_peer *peer, const weft_msg *msg, weft_doc *doc);
/* 1 the part was for one of our calls, 0 not. */
int weft__calls_part(weft_peer *peer, int64_t token, const weft_json *part);
void weft__calls_fail_all(weft_peer *peer, int why);
void weft__calls_expire(weft_peer *peer, weft_timed *timed);
size_t weft__calls_count(const weft_peer *peer);
void weft__calls_done(weft_peer *peer);

/* ---- batches coming in: batch_in.c ---- */

void weft__batch_in_run(weft_peer *peer, const char *text);
/* The answers so far, "[" in front and commas between. */
weft_buf *weft__batch_in_text(struct weft_batch_in *batch);
/* One more item is answered, or needs no answer; the last one sends the array unless peer is NULL. */
void weft__batch_in_answered(struct weft_batch_in *batch, weft_peer *peer);

/* ---- one message: dispatch.c ---- */

void weft__dispatch(weft_peer *peer, const weft_msg *msg, struct weft_batch_in *batch);
/* An answer to something that never became a request. */
void weft__answer_error(weft_peer *peer, struct weft_batch_in *batch, weft_bytes id, int code, const char *message,
                        const char *reason, const char *detail);

/* ---- gates: gate.c, rate.c, idempotency.c ---- */

/* 0 pass, or <0 after the refusal is in *ret (a static text each). */
int weft__gate_ask(weft_peer *peer, const weft_method *row, weft_outcome *ret);
static inline int weft__gate(weft_peer *peer, const weft_method *row, weft_outcome *ret) {
    return peer->locked || row->scope || peer->service->authorize ? weft__gate_ask(peer, row, ret) : 0;
}
/* 0 pass, else milliseconds to wait. */
int64_t weft__rate_take(weft_peer *peer);
int weft__rate_join(weft_peer *peer);
void weft__rate_leave(weft_peer *peer);
void weft__rate_done(weft_service *service);

/* 1 the request was answered or waits for another's answer; 0 go on, and its answer will be kept if it has a key. */
int weft__idempotent_begin(weft_req *req);
void weft__idempotent_store(weft_req *req, weft_bytes outcome);
void weft__idempotent_forget(weft_req *req);
void weft__idempotent_done(weft_service *service);

/* ---- sending: send.c ---- */

typedef struct weft_sending {
    size_t mark; /* where the frame begins, from the buffer's start */
    size_t body; /* where its body begins */
} weft_sending;

static inline size_t weft__send_queued(const weft_peer *peer) {
    return weft__buf_len(&peer->out) + peer->in_flight;
}
/* Say why nothing more can be sent: -EPIPE, or -ENOBUFS when the queue is over its hard limit and the peer is to be closed.
 */
int weft__send_refuse(weft_peer *peer);
/* Look at the limits and wake the transport. */
static inline void weft__send_wake(weft_peer *peer) {
    if (weft__send_queued(peer) >= peer->service->limits.out_soft)
        peer->full = true;
    if (!peer->quiet && !peer->freed && peer->on_output)
        peer->on_output(peer, peer->data);
}
static inline int weft__send_begin(weft_peer *peer, size_t hint, weft_sending *ret) {
    if (peer->status || weft__send_queued(peer) >= peer->service->limits.out_hard)
        return weft__send_refuse(peer);
    int r = peer->framing->begin(peer->framing_state, &peer->out, hint, &ret->mark);
    ret->body = weft__buf_len(&peer->out);
    return r;
}
static inline void weft__send_undo(weft_peer *peer, const weft_sending *sending) {
    peer->out.end = peer->out.start + sending->mark;
}
void weft__send_log(weft_peer *peer, const weft_sending *sending);
static inline int weft__send_end(weft_peer *peer, const weft_sending *sending) {
    weft_service *service = peer->service;
    if (service->on_message)
        weft__send_log(peer, sending);
    int r = peer->framing->end(peer->framing_state, &peer->out, sending->mark);
    if (r < 0) {
        weft__send_undo(peer, sending);
        return r;
    }
    service->stats.bytes_out += weft__buf_len(&peer->out) - sending->mark;
    weft__send_wake(peer);
    return 0;
}
int weft__send_control(weft_peer *peer, enum weft_frame_kind kind, int code, const char *payload, size_t len);
/* ---- helpers ---- */

/* Outside of feed and tick, what time it is now if the carrier knows. */
static inline void weft__peer_fresh_now(weft_peer *peer) {
    if (!peer->quiet && peer->carrier_table && peer->carrier_table->now)
        peer->now = peer->carrier_table->now(peer->carrier);
}

/* That much later; a time-out so long that it means for ever stays one. */
static inline int64_t weft__after(int64_t now, int64_t ms) {
    return ms < INT64_MAX - now ? now + ms : INT64_MAX;
}

/* Between these the peer is not freed; leave() frees it if that was asked for meanwhile, and says so. */
void weft__peer_enter(weft_peer *peer);
bool weft__peer_leave(weft_peer *peer);

static inline weft_json weft__json_of(weft_bytes span, weft_doc *doc) {
    return (weft_json){.text = span.data, .len = span.len, .doc = doc};
}

#endif
