/* What goes out: one framed message at a time at the end of the peer's output, under its limits. */
#include <errno.h>

#include "peer_private.h"

/* A queue over the hard limit belongs to somebody who has stopped reading: never drop a message in silence, close instead, so
 * that the other side can come back and resume. */
static int refuse(weft_peer *peer, int status) {
    if (!peer->status)
        peer->status = status;
    if (!peer->quiet && peer->on_output)
        peer->on_output(peer, peer->data);
    return status;
}

int weft__send_begin(weft_peer *peer, size_t hint, weft_sending *ret) {
    if (peer->status)
        return -EPIPE;
    if (weft__send_queued(peer) >= peer->service->limits.out_hard)
        return peer->offline ? -ENOBUFS : refuse(peer, -ENOBUFS);
    int r = peer->framing->begin(peer->framing_state, &peer->out, hint, &ret->mark);
    ret->body = weft__buf_len(&peer->out);
    return r;
}

void weft__send_undo(weft_peer *peer, const weft_sending *sending) {
    peer->out.end = peer->out.start + sending->mark;
}

void weft__send_wake(weft_peer *peer) {
    if (weft__send_queued(peer) >= peer->service->limits.out_soft)
        peer->full = true;
    if (!peer->quiet && peer->on_output)
        peer->on_output(peer, peer->data);
}

int weft__send_end(weft_peer *peer, const weft_sending *sending) {
    weft_service *service = peer->service;
    if (service->on_message) {
        weft_bytes text = {weft__buf_head(&peer->out) + sending->body, weft__buf_len(&peer->out) - sending->body};
        service->on_message(service->ctx, peer, true, text);
    }
    int r = peer->framing->end(peer->framing_state, &peer->out, sending->mark);
    if (r < 0) {
        weft__send_undo(peer, sending);
        return r;
    }
    service->stats.bytes_out += weft__buf_len(&peer->out) - sending->mark;
    weft__send_wake(peer);
    return 0;
}

int weft__send_control(weft_peer *peer, enum weft_frame_kind kind, int code, const char *payload, size_t len) {
    if (!peer->framing->control)
        return 0;
    /* Pings of a peer that does not read must not fill the queue: what it does not read it does not miss. */
    if (weft__send_queued(peer) >= peer->service->limits.out_hard)
        return kind == WEFT_FRAME_CLOSE ? 0 : refuse(peer, -ENOBUFS);
    int r = peer->framing->control(peer->framing_state, &peer->out, kind, code, payload, len);
    if (r >= 0)
        weft__send_wake(peer);
    return r;
}
