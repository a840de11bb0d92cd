/* What goes out, one framed message at a time at the end of the peer's output: the rare cases. The usual ones are inline in
 * peer_private.h. */
#include <errno.h>

#include "link.h"
#include "send.h"

/* A queue over the hard limit belongs to somebody who has stopped reading: never drop a message in silence, close instead,
 * so that the other side can come back and resume. */
int weft__send_fail(weft_peer *peer, int status) {
    if (!peer->status)
        peer->status = status;
    if (!peer->quiet && !peer->freed && peer->on_output)
        peer->on_output(peer, peer->data);
    return status;
}

int weft__send_refuse(weft_peer *peer) {
    if (peer->status)
        return -EPIPE;
    return peer->offline ? -ENOBUFS : weft__send_fail(peer, -ENOBUFS);
}

void weft__send_log(weft_peer *peer, const weft_sending *sending) {
    weft_bytes text = {weft__buf_head(&peer->out) + sending->body, weft__buf_len(&peer->out) - sending->body};
    peer->service->on_message(peer->service->ctx, peer, true, text);
}

int weft__send_control(weft_peer *peer, enum weft_frame_kind kind, int code, const char *payload, size_t len) {
    if (!peer->framing->control)
        return 0;
    /* Pings of a peer that does not read must not fill the queue: what it does not read it does not miss. */
    if (weft__send_queued(peer) >= peer->service->limits.out_hard)
        return kind == WEFT_FRAME_CLOSE ? 0 : weft__send_fail(peer, -ENOBUFS);
    int r = peer->framing->control(peer->framing_state, &peer->out, kind, code, payload, len);
    if (r >= 0)
        weft__send_wake(peer);
    return r;
}

int weft__peer_put(weft_peer *peer, const char *bytes, size_t len) {
    if (peer->status || peer->freed)
        return -EPIPE;
    int r = weft__buf_put(&peer->out, peer->service->alloc, bytes, len);
    if (r >= 0)
        weft__send_wake(peer);
    return r;
}
