/* One connection of a client: the stream, its handshake, and the peer's bytes. It knows nothing of trying again, and it does
 * not outlive its stream, its lookup or its child. */
#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "client.h"
#include "client_http.h"

static weft_wire *wire_of(weft_stream *stream) {
    return WEFT_CONTAINER(stream, weft_wire, stream);
}

void weft__wire_gone(weft_wire *wire) {
    weft_client *client = wire->client;
    const weft_alloc *alloc = client->loop->alloc;
    if (--wire->holds)
        return;
    weft__timer_stop(client->loop, &wire->timer);
    weft__later_cancel(&wire->resume);
    weft__buf_done(&wire->out, alloc);
    weft__buf_done(&wire->in, alloc);
    weft__free(alloc, wire->stdio);
    weft__free(alloc, wire);
    weft__client_unref(client);
}

/* ---- bytes ---- */

/* HTTP: the server said that it closes now. What is still to be sent goes over the next connection. */
static bool is_spent(const weft_wire *wire) {
    const weft_client *client = wire->client;
    return client->transport->scheme.flags & WEFT_LAZY && weft__peer_status(client->peer) == 0 &&
           weft__http_client_over(weft__peer_framing_state(client->peer));
}

/* Between here and its end the client may be freed, the wire let go, or both. */
static void feed_wire(weft_wire *wire, char *data, size_t len) {
    weft_client *client = weft__client_ref(wire->client);
    weft_loop *loop = client->loop;
    weft_peer *peer = client->peer;
    wire->holds++;
    client->delivered++;
    weft__peer_lend(peer, loop->scratch, WEFT_LOOP_SCRATCH);
    int r = weft__peer_feed(peer, data, len, weft_loop_now(loop));
    if (weft__wire_current(wire) && is_spent(wire)) {
        r = weft__peer_return(peer);
        weft__client_lost(client, wire, r);
    } else if (weft__wire_current(wire)) {
        weft__stream_flush(&wire->stream);
        int returned = weft__peer_return(peer);
        if (r >= 0)
            r = returned;
        if (r < 0 && client->transport->scheme.flags & WEFT_LAZY)
            r = weft__http_describe(client, r);
        if (r < 0)
            weft__client_lost(client, wire, r);
        else {
            weft__stream_pause(&wire->stream, weft__peer_choked(peer));
            weft__client_schedule(client);
        }
    }
    weft__wire_gone(wire);
    weft__client_unref(client);
}

static void make_wire_ready(weft_wire *wire) {
    wire->ready = true;
    weft__client_ready(wire->client, wire);
}

/* The answer to our handshake, and whatever came right behind it. */
static void hear_handshake(weft_wire *wire, char *data, size_t len) {
    weft_client *client = wire->client;
    int r = weft__buf_put(&wire->in, client->loop->alloc, data, len);
    if (r == 0)
        r = client->transport->handshake->hear(wire, weft__buf_head(&wire->in), weft__buf_len(&wire->in));
    if (r == 0)
        return;
    if (r < 0) {
        weft__client_lost(client, wire, r);
        return;
    }
    wire->holds++;
    weft__buf_take(&wire->in, client->loop->alloc, (size_t) r);
    make_wire_ready(wire);
    if (weft__wire_current(wire) && weft__buf_len(&wire->in) > 0)
        feed_wire(wire, weft__buf_head(&wire->in), weft__buf_len(&wire->in));
    weft__buf_done(&wire->in, client->loop->alloc);
    weft__wire_gone(wire);
}

static void resume_wire(weft_later *later) {
    weft_wire *wire = WEFT_CONTAINER(later, weft_wire, resume);
    char none[WEFT_SLACK];
    if (weft__wire_current(wire) && wire->ready)
        feed_wire(wire, none, 0);
}

/* ---- what the stream asks and tells ---- */

static void on_wire_open(weft_stream *stream) {
    weft_wire *wire = wire_of(stream);
    weft_client *client = wire->client;
    if (!weft__wire_current(wire))
        return;
    if (!client->transport->handshake) {
        make_wire_ready(wire);
        return;
    }
    int r = client->transport->handshake->hello(wire);
    if (r < 0)
        weft__client_lost(client, wire, r);
    else
        weft__stream_flush(stream);
}

static void on_wire_bytes(weft_stream *stream, char *data, size_t len) {
    weft_wire *wire = wire_of(stream);
    if (!weft__wire_current(wire))
        return;
    if (wire->ready)
        feed_wire(wire, data, len);
    else if (wire->client->transport->handshake)
        hear_handshake(wire, data, len);
}

/* The user may have something to say to a peer that has ended its half. */
static bool wire_stays_after_end(weft_wire *wire) {
    weft_client *client = wire->client;
    if (!wire->ready || !client->opts.on_eof)
        return false;
    wire->holds++;
    int r = weft_peer_eof(client->peer);
    bool stays = !weft__wire_current(wire) || (r >= 0 && client->opts.on_eof(client->peer, weft_peer_data(client->peer)));
    stays |= !weft__wire_current(wire); /* let go by the callback: there is nothing left to lose */
    if (weft__wire_current(wire))
        weft__stream_flush_later(&wire->stream);
    weft__wire_gone(wire);
    return stays;
}

/* A last message that ends with the connection and not with a newline is one all the same. false: a callback let go of the
 * wire. */
static bool take_last(weft_wire *wire) {
    weft_client *client = weft__client_ref(wire->client);
    wire->holds++;
    client->delivered++;
    weft__peer_last(client->peer);
    bool current = weft__wire_current(wire);
    weft__wire_gone(wire);
    weft__client_unref(client);
    return current;
}

static void on_wire_end(weft_stream *stream, int why) {
    weft_wire *wire = wire_of(stream);
    if (!weft__wire_current(wire)) {
        weft__stream_close(stream);
        return;
    }
    const char *sentence = weft__stream_why(stream);
    if (why < 0 && *sentence)
        weft__client_trouble(wire->client, "%s", sentence);
    wire->ended = true;
    if (why == 0 && wire->ready && !(wire->client->transport->scheme.flags & WEFT_LAZY) && !take_last(wire))
        return;
    if (why == 0 && wire_stays_after_end(wire))
        return;
    /* A child's last words are worth more with its exit status. */
    if (wire->child && !wire->exited)
        weft__wait_for_exit(wire);
    else
        weft__client_lost(wire->client, wire, why);
}

static void on_wire_closed(weft_stream *stream) {
    weft_wire *wire = wire_of(stream);
    if (wire->stdio)
        weft__stdio_done(wire->stdio);
    weft__wire_gone(wire);
}

static char *wire_room(weft_stream *stream, size_t *ret_size) {
    weft_wire *wire = wire_of(stream);
    return wire->ready && weft__wire_current(wire) ? weft__peer_room(wire->client->peer, ret_size) : NULL;
}

static weft_bytes wire_output(weft_stream *stream) {
    weft_wire *wire = wire_of(stream);
    if (wire->ready && weft__wire_current(wire))
        return weft_peer_output(wire->client->peer);
    return (weft_bytes){weft__buf_head(&wire->out), weft__buf_len(&wire->out)};
}

static void wire_sent(weft_stream *stream, size_t n) {
    weft_wire *wire = wire_of(stream);
    weft_client *client = wire->client;
    if (!wire->ready || !weft__wire_current(wire)) {
        weft__buf_take(&wire->out, client->loop->alloc, n);
        return;
    }
    wire->holds++;
    weft__client_ref(client);
    weft_peer_sent(client->peer, n);
    if (weft__wire_current(wire) && !weft__peer_choked(client->peer)) {
        weft__stream_pause(stream, false);
        if (weft__peer_stalled(client->peer))
            weft__later(client->loop, &wire->resume);
    }
    if (weft__wire_current(wire) && weft__peer_has_drained(client->peer))
        weft__stream_drained(stream);
    weft__wire_gone(wire);
    weft__client_unref(client);
}

/* on_drain may do anything. */
static void on_wire_drained(weft_stream *stream) {
    weft_wire *wire = wire_of(stream);
    weft_client *client = wire->client;
    if (!wire->ready || !weft__wire_current(wire))
        return;
    wire->holds++;
    weft__client_ref(client);
    weft__peer_tell_drained(client->peer);
    weft__wire_gone(wire);
    weft__client_unref(client);
}

static const weft_stream_ops stream_ops = {
    .on_open = on_wire_open,
    .on_bytes = on_wire_bytes,
    .on_end = on_wire_end,
    .on_closed = on_wire_closed,
    .room = wire_room,
    .output = wire_output,
    .sent = wire_sent,
    .on_drained = on_wire_drained,
};

/* ---- life ---- */

int weft__wire_new(weft_client *client, weft_wire **ret) {
    weft_wire *wire = weft__zalloc(client->loop->alloc, sizeof *wire);
    if (!wire)
        return -ENOMEM;
    wire->client = weft__client_ref(client);
    wire->holds = 1;
    weft__later_init(&wire->resume, resume_wire);
    weft__timer_init(&wire->timer, NULL);
    *ret = wire;
    return 0;
}

static void close_fds(int in, int out) {
    close(in);
    if (out != in)
        close(out);
}

int weft__wire_start(weft_wire *wire, int in, int out, bool connecting) {
    weft_client *client = wire->client;
    int r = weft__stream_init(&wire->stream, client->loop, &stream_ops, in, out);
    if (r < 0) {
        close_fds(in, out);
        return r;
    }
    wire->has_stream = true;
    wire->holds++;
    if (client->tls)
        r = weft__stream_tls(&wire->stream, client->tls, client->url.host);
    if (r >= 0)
        r = weft__stream_start(&wire->stream, connecting);
    return r;
}

void weft__wire_resume(weft_wire *wire) {
    if (weft__peer_choked(wire->client->peer))
        return;
    weft__stream_pause(&wire->stream, false);
    weft__later(wire->client->loop, &wire->resume);
}

void weft__wire_flush(weft_wire *wire) {
    weft__stream_flush_later(&wire->stream);
}

bool weft__wire_unsent(const weft_wire *wire) {
    return wire->has_stream && wire->stream.tls && weft__tls_output(wire->stream.tls).len > 0;
}

/* What the peer has queued leaves with the wire: an answer to a broken message, a WebSocket's good-bye. */
static void take_wire_output(weft_wire *wire, weft_peer *peer) {
    weft_bytes left = weft_peer_output(peer);
    weft__buf_done(&wire->out, wire->client->loop->alloc);
    if (left.len > 0)
        weft__buf_put(&wire->out, wire->client->loop->alloc, left.data, left.len);
}

void weft__wire_let_go(weft_wire *wire, bool politely) {
    weft_client *client = wire->client;
    assert(client->wire == wire);
    if (wire->ready && politely)
        take_wire_output(wire, client->peer);
    wire->ready = false;
    client->wire = NULL;
    weft__timer_stop(client->loop, &wire->timer);
    weft__later_cancel(&wire->resume);
    if (wire->has_stream && politely)
        weft__stream_finish(&wire->stream);
    else if (wire->has_stream)
        weft__stream_close(&wire->stream);
    if (wire->lookup)
        uv_cancel((uv_req_t *) wire->lookup); /* one that has begun cannot be; its answer is thrown away */
    if (client->transport->end)
        client->transport->end(wire);
    weft__wire_gone(wire);
}
