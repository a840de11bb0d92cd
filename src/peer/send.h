/* One framed message at a time at the end of the peer's output, under its limits. Inline, because every answer comes through
 * here; the rare cases are in send.c. Private to peer/. */
#ifndef WEFT_SEND_H
#define WEFT_SEND_H

#include "hint.h"
#include "peer_private.h"

typedef struct weft_sending {
    size_t mark; /* where the frame begins, from the buffer's start */
    size_t body; /* where its body begins */
} weft_sending;

static inline size_t weft__send_queued(const weft_peer *peer) {
    return weft__buf_len(&peer->out);
}
/* Say why nothing more can be sent: -EPIPE, or -ENOBUFS when the queue is over its hard limit and the peer is to be closed.
 */
int weft__send_refuse(weft_peer *peer);
/* The peer is to be closed because of this; its transport is told. */
int weft__send_fail(weft_peer *peer, int status);
/* Look at the limits and wake the transport. */
static inline void weft__send_wake(weft_peer *peer) {
    if (weft__send_queued(peer) >= peer->service->limits.out_soft)
        peer->full = true;
    if (!peer->quiet && !peer->freed && peer->on_output)
        peer->on_output(peer, peer->data);
}
static inline int weft__send_begin(weft_peer *peer, size_t hint, weft_sending *ret) {
    if (WEFT_RARELY(peer->status || weft__send_queued(peer) >= peer->service->limits.out_hard))
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
    if (WEFT_RARELY(service->on_message))
        weft__send_log(peer, sending);
    int r = peer->framing->end(peer->framing_state, &peer->out, sending->mark);
    if (WEFT_RARELY(r < 0)) {
        weft__send_undo(peer, sending);
        return r;
    }
    service->stats.bytes_out += weft__buf_len(&peer->out) - sending->mark;
    weft__send_wake(peer);
    return 0;
}
int weft__send_control(weft_peer *peer, enum weft_frame_kind kind, int code, const char *payload, size_t len);

#endif
