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
#include "sum.h"

/* Small, because ten thousand idle ones should fit in ten megabytes with their sockets: what a connection does not always
 * need is allocated when it is needed and given back. */
struct weft_peer {
    /* Down to bucket: looked at for every message. Together, because what else a turn of the loop does has driven them out
     * of the processor's cache, and each line of it that comes back costs. */
    weft_service *service;
    const weft_framing *framing;
    void *framing_state;
    weft_buf in;     /* the beginning of a message that has not come whole */
    weft_buf out;    /* framed messages that have not been sent */
    size_t max_body; /* depends on whether we know who it is */
    int64_t now;
    int64_t heard;          /* when bytes last came */
    int64_t pinged;         /* when we asked whether anybody is there; 0: we have not since bytes came */
    struct weft_held *held; /* a message that waits for answers; NULL: none */
    size_t soon_bytes;      /* params of the open requests that soon counts: what waits to be stored for this peer */
    bool (*on_raw)(weft_peer *peer, weft_bytes body, bool binary, void *data);
    int status;    /* 0, or why it must be closed */
    unsigned busy; /* depth of calls that must not see the peer freed under them */
    uint32_t soon; /* open requests for which others wait: WEFT_ROW_SOON */
    bool looking;  /* one of them only looks at something: all others wait */
    uint8_t style; /* weft_style */
    bool no_batch, lenient, extras, eager, locked, gzip;
    bool quiet : 1;             /* inside feed or tick: the caller will look for output itself */
    bool full : 1;              /* the soft limit was reached and not yet left */
    bool drained : 1;           /* it was left, and on_drain is to run when what came in meanwhile has had its turn */
    bool unread : 1;            /* of what is kept, something could be read but for the soft limit or a pause */
    bool offline : 1;           /* a client between two connections */
    bool finished : 1;          /* no more bytes will come, and all there were have been looked at */
    bool ended : 1;             /* no more bytes will come and calls cannot be made */
    bool paused : 1;            /* by the user: bytes are kept unread */
    bool freed : 1;             /* weft_peer_free() was called while busy */
    bool uncarried : 1;         /* of a call without a connection */
    weft_heap due;              /* deadlines of both */
    struct weft_bucket *bucket; /* rate limit; NULL: none */

    weft_link requests; /* theirs, waiting for our answer */
    size_t open_requests;
    struct weft_calls *calls; /* ours, waiting for their answer; NULL until the first */
    weft_identity *identity;  /* one block with its strings */
    const weft_carrier *carrier_table;
    void *carrier;
    void *data;
    void (*on_notification)(weft_peer *peer, const char *method, const weft_json *params, void *data);
    void (*on_output)(weft_peer *peer, void *data);
    void (*on_drain)(weft_peer *peer, void *data);
    int (*sign)(void *ctx, weft_bytes method, weft_bytes id, weft_bytes params, char *ret, size_t size);
    void *sign_ctx;
    const void *framing_extra;
    uint64_t seed;
    const char *trace;       /* the header traceparent of what is being fed; NULL: none */
    size_t own_max_body;     /* never more than this; 0: no such limit */
    size_t dialect_max_body; /* the same until its dialect changes */
    unsigned deflate;
};

/* ---- time: one heap for both directions ---- */

typedef struct weft_timed {
    weft_due due;
    enum { WEFT_TIMED_CALL, WEFT_TIMED_REQUEST } kind;
} weft_timed;

/* ---- our calls: call.c ---- */

void weft__calls_answer(weft_peer *peer, const weft_msg *msg, weft_doc *doc);
/* Is a call with this id open? */
bool weft__calls_wait_for(const weft_peer *peer, weft_bytes id);
/* A message that was too large begins like this, with a NUL behind it. True: it was an answer, and the call that waits for
 * it, if there is one, has failed with -EMSGSIZE. */
bool weft__calls_too_large(weft_peer *peer, const char *text);
/* 1 the part was for one of our calls, 0 not. */
int weft__calls_part(weft_peer *peer, int64_t token, const weft_json *part);
void weft__calls_fail_all(weft_peer *peer, int why);
void weft__calls_expire(weft_peer *peer, weft_timed *timed);
size_t weft__calls_count(const weft_peer *peer);
void weft__calls_done(weft_peer *peer);

/* ---- batches coming in: batch_in.c ---- */

struct weft_batch_in; /* answers being collected */

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

/* ---- keeping the order: held.c ---- */

/* Must this message wait for the answers to those before it? */
bool weft__held_must_wait(const weft_peer *peer, const weft_msg *msg);
/* Keep this text, from which nothing was done yet; the peer is choked until the answers are given. -ENOMEM. */
int weft__held_keep(weft_peer *peer, const char *text, size_t len);
/* Its time has come: the text and its length; taken off the peer. Free with weft__held_free(). NULL: there is none. */
struct weft_held *weft__held_take(weft_peer *peer);
char *weft__held_text(struct weft_held *held, size_t *ret_len);
void weft__held_free(const weft_peer *peer, struct weft_held *held);
/* A request for which others wait, with so many bytes of params, has been answered, or never will be. */
void weft__held_answered(weft_peer *peer, size_t bytes);
/* A request of this row is open, and others wait for it. */
void weft__held_begun(weft_peer *peer, const weft_method *row, size_t bytes);

/* ---- kept input: input.c ---- */

/* There is some, and nothing keeps it back any more. */
bool weft__peer_can_read(const weft_peer *peer);
/* Take it. As weft_peer_feed(), inside weft__peer_guarded(). */
int weft__peer_read_kept(weft_peer *peer);

/* ---- helpers ---- */

/* So much of one peer waits to be stored at a time; then it is not read from until some is. All peers share the store's
 * queue, which is sixteen times as long, and who sends without waiting for answers must not fill it for everybody. */
#define WEFT_SOON_BYTES ((size_t) 4 << 20)

/* weft__peer_choked() for this folder, which asks before each message. */
static inline bool weft__choked(const weft_peer *peer) {
    return peer->full || peer->paused || (peer->held && peer->soon) || peer->soon_bytes >= WEFT_SOON_BYTES;
}

/* weft__peer_can_read() for this folder. */
static inline bool weft__can_read(const weft_peer *peer) {
    return (peer->unread || peer->held) && !weft__choked(peer) && !peer->status && !peer->ended;
}

/* weft__peer_has_drained() for this folder. */
static inline bool weft__has_drained(const weft_peer *peer) {
    return peer->drained && !peer->full && !peer->status;
}

/* What time it is now if the carrier knows: a handler may have taken its time since the bytes came. */
static inline void weft__peer_fresh_now(weft_peer *peer) {
    if (peer->carrier_table && peer->carrier_table->now)
        peer->now = peer->carrier_table->now(peer->carrier);
}

/* The same in microseconds, by the service's clock if it has one. */
static inline int64_t weft__peer_now_us(weft_peer *peer) {
    const weft_service *service = peer->service;
    if (service->now_us)
        return service->now_us(service->ctx);
    weft__peer_fresh_now(peer);
    return peer->now * 1000;
}

/* Run something with the peer protected from being freed and quiet, and remember why it must be closed. */
int weft__peer_guarded(weft_peer *peer, int (*run)(weft_peer *peer, char *data, size_t len), char *data, size_t len);

/* One block, freed with weft__free(). NULL gives nobody in particular; NULL strings become "". identity.c. */
weft_identity *weft__identity_copy(const weft_identity *from, const weft_alloc *alloc);

static inline weft_json weft__json_of(weft_bytes span, weft_doc *doc) {
    return (weft_json){.text = span.data, .len = span.len, .doc = doc};
}

#endif
