/* Time: what is due is done when the transport says what time it is. Calls and requests expire, silence is looked into. */
#include <errno.h>

#include "request.h"
#include "send.h"

/* Silence is counted from the first time we hear of time. */
static void set_now(weft_peer *peer, int64_t now_ms) {
    peer->now = now_ms;
    if (!peer->heard)
        peer->heard = now_ms;
}

void weft__peer_now(weft_peer *peer, int64_t now_ms) {
    set_now(peer, now_ms);
}

static bool can_ping(const weft_peer *peer) {
    return peer->framing->control && peer->service->limits.ping_ms > 0 && !peer->ended && !peer->offline;
}

/* When silence must be looked into. */
static inline int64_t silence_due(const weft_peer *peer) {
    if (!can_ping(peer))
        return INT64_MAX;
    const weft_limits *limits = &peer->service->limits;
    return peer->pinged ? weft__after(peer->pinged, limits->pong_ms) : weft__after(peer->heard, limits->ping_ms);
}

int64_t weft_peer_deadline(const weft_peer *peer) {
    const weft_due *top = weft__heap_top(&peer->due);
    int64_t silence = silence_due(peer);
    if (peer->status || weft__can_read(peer) || weft__has_drained(peer))
        return peer->now;
    return top && top->at < silence ? top->at : silence;
}

/* Nothing is kept, nothing is full, nothing has to be looked into. */
static inline bool rests(const weft_peer *peer) {
    bool marked = peer->full | peer->drained | peer->unread | peer->paused;
    bool keeps = peer->held || peer->in.cap || (peer->out.cap && !peer->out.lent) || peer->framing->control;
    return !marked && !keeps && !peer->status && !peer->soon_bytes;
}

static WEFT_NOINLINE void look_closely(const weft_peer *peer, weft_standing *ret) {
    ret->status = peer->status;
    ret->choked = weft__choked(peer);
    ret->can_read = weft__can_read(peer);
    ret->drained = weft__has_drained(peer);
    ret->deadline = weft_peer_deadline(peer);
    ret->memory = weft__peer_memory(peer);
}

static inline void look_at(const weft_peer *peer, weft_standing *ret) {
    if (!WEFT_LIKELY(rests(peer))) {
        look_closely(peer, ret);
        return;
    }
    const weft_due *top = weft__heap_top(&peer->due);
    *ret = (weft_standing){.deadline = top ? top->at : INT64_MAX};
}

void weft__peer_stand(const weft_peer *peer, weft_standing *ret) {
    look_at(peer, ret);
}

int weft__peer_taken(weft_peer *peer, size_t sent, weft_standing *ret) {
    if (peer->full)
        weft_peer_sent(peer, sent);
    else
        weft__buf_take(&peer->out, peer->service->alloc, sent);
    int r = weft__buf_return(&peer->out, peer->service->alloc);
    look_at(peer, ret);
    return r;
}

static int check_silence(weft_peer *peer) {
    if (silence_due(peer) > peer->now)
        return 0;
    if (peer->pinged)
        return -ETIMEDOUT;
    peer->pinged = peer->now;
    return weft__send_control(peer, WEFT_FRAME_PING, 0, NULL, 0);
}

static void expire_due(weft_peer *peer) {
    weft_due *top;
    while ((top = weft__heap_top(&peer->due)) && top->at <= peer->now) {
        weft_timed *timed = WEFT_CONTAINER(top, weft_timed, due);
        if (timed->kind == WEFT_TIMED_CALL)
            weft__calls_expire(peer, timed);
        else
            weft__req_abandon(WEFT_CONTAINER(timed, weft_req, timed), -ETIMEDOUT);
    }
}

static int run_tick(weft_peer *peer, char *data, size_t len) {
    (void) data, (void) len;
    expire_due(peer);
    int r = weft__peer_read_kept(peer);
    if (r >= 0)
        weft__peer_tell_drained(peer);
    return r < 0 ? r : check_silence(peer);
}

int weft_peer_tick(weft_peer *peer, int64_t now_ms) {
    set_now(peer, now_ms);
    return weft__peer_guarded(peer, run_tick, NULL, 0);
}
