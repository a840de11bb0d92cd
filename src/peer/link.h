/* The peer as the transports see it: the same four verbs as in <weft/peer.h>, without copying.
 *
 * A transport reads into memory that it owns (one shared buffer for all its connections), lends the peer a scratch area for
 * output, feeds, writes what came out, and ends the loan. */
#ifndef WEFT_PEER_LINK_H
#define WEFT_PEER_LINK_H

#include <weft/peer.h>

#include "buf.h"

/* Like weft_peer_feed(), but the bytes are decoded where they lie: they may be changed, and WEFT_SLACK bytes behind them may
 * be read and written. */
int weft__peer_feed(weft_peer *peer, char *data, size_t len, int64_t now_ms);

/* Where the next bytes are best read to: the peer's own buffer when a large message is half there (then hand in the
 * same pointer to weft__peer_feed(), which knows it), otherwise NULL: use your own. At least 4 KiB when not NULL. */
char *weft__peer_room(weft_peer *peer, size_t *ret_size);

/* The other side has ended its half: look at what only the end completes, a last line without its newline. Unlike after
 * weft_peer_eof() calls stay open; whoever carries the peer says when the connection is over. */
int weft__peer_last(weft_peer *peer);

/* One whole body, as HTTP delivers it; the framing is not involved in decoding it. Same memory rules as weft__peer_feed().
 */
int weft__peer_body(weft_peer *peer, char *body, size_t len, int64_t now_ms);

/* Output that has not been sent. */
weft_buf *weft__peer_out(weft_peer *peer);
/* Bytes of the framing's own between two messages: fields of server-sent events. -EPIPE: it is over. */
int weft__peer_put(weft_peer *peer, const char *bytes, size_t len);

/* Work in this memory until the loan ends (see buf.h). */
void weft__peer_lend(weft_peer *peer, char *memory, size_t size);
int weft__peer_return(weft_peer *peer);

/* Bytes of memory in its buffers: of a message that has not come whole, of one that waits, of what has not been sent. */
size_t weft__peer_memory(const weft_peer *peer);

/* The largest message that is taken from the other side now. */
size_t weft__peer_max_body(const weft_peer *peer);

/* Do not read: the output is full, or the user paused it. */
bool weft__peer_choked(const weft_peer *peer);
/* Bytes were kept unread because of that, and need not be any more: feed none to go on. */
bool weft__peer_stalled(const weft_peer *peer);
/* A message waits for the answer to one before it. When the bytes end meanwhile, say so only afterwards: order is kept. */
bool weft__peer_holds(const weft_peer *peer);
/* 0, or why this connection must be closed (a queue over its hard limit, for instance); weft_peer_tick() says so too. */
int weft__peer_status(const weft_peer *peer);

/* How a peer is doing, all that a transport wants to know after each message in one call. */
typedef struct weft_standing {
    int status;       /* weft__peer_status() */
    bool choked;      /* weft__peer_choked() */
    bool can_read;    /* bytes were kept unread, and need not be any more */
    bool drained;     /* weft__peer_has_drained() */
    int64_t deadline; /* weft_peer_deadline() */
    size_t memory;    /* weft__peer_memory() */
} weft_standing;
void weft__peer_stand(const weft_peer *peer, weft_standing *ret);

/* A turn in two calls. weft__peer_lend() and weft__peer_feed(), whose result is the status afterwards ... */
void weft__peer_take(weft_peer *peer, char *data, size_t len, int64_t now_ms, char *memory, size_t size);
/* ... and, when the output was sent as far as could be, weft_peer_sent(), weft__peer_return(), whose result this is, and
 * weft__peer_stand(). */
int weft__peer_taken(weft_peer *peer, size_t sent, weft_standing *ret);

/* What time it is, for calls started outside feed and tick. */
void weft__peer_now(weft_peer *peer, int64_t now_ms);

/* Between these the peer is not freed; leave() frees it if that was asked for meanwhile, and says so. */
void weft__peer_enter(weft_peer *peer);
bool weft__peer_leave(weft_peer *peer);

/* The connection ended: tell open requests -EPIPE, drop buffers, start the framing afresh (NULL keeps the one there is),
 * complete open calls with why. again: another connection may follow, and calls that are made from those completions, or
 * later, are queued for it; otherwise they are refused. */
int weft__peer_reset(weft_peer *peer, int why, const weft_framing *framing, bool again);

/* Is on_drain to be told? Whoever carries the peer's bytes reads once more, feeds that, and then tells it. */
bool weft__peer_has_drained(const weft_peer *peer);
void weft__peer_tell_drained(weft_peer *peer);

/* There is no connection at the moment: nobody is pinged, and a full queue refuses more without giving up what it holds. */
void weft__peer_offline(weft_peer *peer);
/* There is one, with this compression. What was queued before is kept. */
int weft__peer_online(weft_peer *peer, unsigned deflate, int64_t now_ms);
/* What the framing alone needs to know (weft_framing_opts.extra); borrowed. Takes effect with the next weft__peer_reset().
 */
void weft__peer_set_extra(weft_peer *peer, const void *extra);

/* A copy of an answer that outlives the callback; weft_answer_done() frees it. */
int weft__answer_keep(const weft_answer *answer, const weft_alloc *alloc, weft_answer *ret);

/* What was decided after the connection was made: the names of cancelling and progress, and whether batches are refused. */
void weft__peer_set_protocol(weft_peer *peer, weft_style style, bool no_batch);

/* From now on it is answered 401, but for methods with WEFT_ROW_OPEN, until its identity is authenticated again. */
void weft__peer_lock(weft_peer *peer);

/* The header traceparent of the HTTP request whose body is fed next; NULL: none. Borrowed until it is set again. */
void weft__peer_set_trace(weft_peer *peer, const char *traceparent);

/* Who sees to it that weft_service_deliver() is called, in place of weft_service_opts.on_ready: the last one to say so. */
void weft__service_set_wake(weft_service *service, void (*wake)(void *ctx), void *ctx);
/* Not this one any more. */
void weft__service_unset_wake(weft_service *service, const void *ctx);

/* The same for its figures (meter.h): on_turn is called when requests have come, and weft__service_settle() before the
 * answers leave. Without, what one peer is fed is a turn. */
void weft__service_set_turn(weft_service *service, void (*on_turn)(void *ctx), void *ctx);
void weft__service_unset_turn(weft_service *service, const void *ctx);
void weft__service_settle(weft_service *service);

/* A service's limits, with no zeroes left. */
const weft_limits *weft__service_limits(const weft_service *service);
/* weft_service_opts.ctx: what belongs to all its peers, also for callbacks that get only what belongs to one. */
void *weft__service_ctx(const weft_service *service);

const weft_alloc *weft__peer_alloc(const weft_peer *peer);
/* For who knows which framing it is. */
void *weft__peer_framing_state(weft_peer *peer);
/* The name of the framing that is in use, for people. */
const char *weft__peer_framing_name(const weft_peer *peer);

/* Whoever carries this peer's bytes. free() is called by weft_peer_free() before anything else, and never again. */
typedef struct weft_carrier {
    void (*free)(weft_peer *peer, void *carrier);
    /* What time it is when a call is made outside of feed and tick; NULL: what weft__peer_now() said last. */
    int64_t (*now)(void *carrier);
    /* The user's pause is over: read again, and feed what was kept. May be NULL. */
    void (*resume)(weft_peer *peer, void *carrier);
} weft_carrier;
void weft__peer_set_carrier(weft_peer *peer, const weft_carrier *table, void *carrier);
void *weft__peer_carrier(const weft_peer *peer, const weft_carrier *table); /* NULL when it is another's */

#endif
