/* Bytes out, as the transport takes them: what has left makes room, and below the soft limit there is room again. */
#include <errno.h>
#include <string.h>

#include "flat.h"
#include "send.h"
#include "websocket.h"

weft_bytes weft_peer_output(weft_peer *peer) {
    return (weft_bytes){peer->out.data ? weft__buf_head(&peer->out) : "", weft__buf_len(&peer->out)};
}

/* Half of the soft limit, so that it does not flutter. Who streams fills the room at once, and while there is none nothing
 * is read: so what came in meanwhile, which may call the stream off, has its turn before on_drain has. */
static void check_drain(weft_peer *peer) {
    if (!peer->full || weft__send_queued(peer) > peer->service->limits.out_soft / 2)
        return;
    peer->full = false;
    peer->drained = peer->on_drain != NULL;
}

bool weft__peer_has_drained(const weft_peer *peer) {
    return weft__has_drained(peer);
}

void weft__peer_tell_drained(weft_peer *peer) {
    if (!weft__peer_has_drained(peer) || peer->freed)
        return;
    peer->drained = false;
    weft__peer_enter(peer);
    peer->on_drain(peer, peer->data);
    weft__peer_leave(peer);
}

/* While the output is full nothing is read, and so no pong is heard. That bytes leave says the same: somebody takes them. */
static void count_as_heard(weft_peer *peer) {
    if (!peer->full)
        return;
    weft__peer_fresh_now(peer);
    peer->heard = peer->now;
    peer->pinged = 0;
}

void weft_peer_sent(weft_peer *peer, size_t n) {
    size_t queued = weft__buf_len(&peer->out);
    weft__buf_take(&peer->out, peer->service->alloc, n < queued ? n : queued);
    if (n)
        count_as_heard(peer);
    check_drain(peer);
}

weft_buf *weft__peer_out(weft_peer *peer) {
    return &peer->out;
}

void weft__peer_lend(weft_peer *peer, char *memory, size_t size) {
    weft__buf_lend(&peer->out, peer->service->alloc, memory, size);
}

size_t weft__peer_memory(const weft_peer *peer) {
    size_t held = peer->in.cap + (peer->out.lent ? 0 : peer->out.cap), waiting;
    if (peer->held) {
        weft__held_text(peer->held, &waiting);
        held += waiting;
    }
    if (peer->framing == &weft_websocket || peer->framing == &weft_websocket_client)
        held += weft__ws_memory(peer->framing_state);
    return held;
}

int weft__peer_return(weft_peer *peer) {
    return weft__buf_return(&peer->out, peer->service->alloc);
}

static int send_raw(weft_peer *peer, weft_bytes body, bool binary) {
    weft_sending sending;
    /* Who has ended its half may still listen. */
    if (peer->ended && (peer->offline || peer->freed))
        return -ENOTCONN;
    if (binary && (peer->framing == &weft_websocket || peer->framing == &weft_websocket_client))
        weft__ws_next_binary(peer->framing_state);
    int r = weft__send_begin(peer, body.len, &sending);
    if (r < 0)
        return r;
    r = weft__buf_put(&peer->out, peer->service->alloc, body.data, body.len);
    if (r < 0) {
        weft__send_undo(peer, &sending);
        return r;
    }
    if (weft__framing_in_use(peer->framing, peer->framing_state)->flags & WEFT_FRAMING_LINES)
        weft__flatten(weft__buf_tail(&peer->out) - body.len, body.len);
    return weft__send_end(peer, &sending);
}

int weft_peer_send_raw(weft_peer *peer, weft_bytes body, bool binary) {
    weft__peer_enter(peer);
    int r = send_raw(peer, body, binary);
    weft__peer_leave(peer);
    return r;
}

int weft_peer_close(weft_peer *peer, int code, const char *reason) {
    return weft__send_control(peer, WEFT_FRAME_CLOSE, code, reason, reason ? strlen(reason) : 0);
}
