/* One connection of a server: a stream with a peer on it. What it may do is the listener's business, what its bytes mean the
 * peer's; HTTP comes before the peer and lives in http_server.c. */
#include "server.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admission.h"
#include "frame.h"
#include "http_server.h"
#include "link.h"
#include "tcp.h"
#include "unix_socket.h"

/* RFC 6455 section 7.4.1 and its registry: "service restart", come back. */
#define CLOSE_RESTART 1012

static const weft_stream_ops peer_ops, last_ops;
static const weft_carrier carrier;

static weft_conn *conn_of(weft_stream *stream) {
    return WEFT_CONTAINER(stream, weft_conn, stream);
}

weft_conn *weft__conn_of(const weft_peer *peer) {
    return weft__peer_carrier(peer, &carrier);
}

/* ---- who is there ---- */

static int64_t port_of_address(const struct sockaddr_storage *address) {
    if (address->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *) (const void *) address)->sin_port);
    return address->ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *) (const void *) address)->sin6_port) : 0;
}

void weft__origin_of(int fd, weft_origin *ret) {
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    struct ucred cred;
    socklen_t cred_len = sizeof cred;
    *ret = (weft_origin){.uid = -1, .pid = -1};
    if (getpeername(fd, (struct sockaddr *) &address, &len) < 0)
        return;
    if (address.ss_family != AF_UNIX) {
        getnameinfo((struct sockaddr *) &address, len, ret->address, sizeof ret->address, NULL, 0, NI_NUMERICHOST);
        weft__address_group(ret->address, ret->group, sizeof ret->group);
        ret->port = port_of_address(&address);
    } else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) == 0) {
        ret->uid = cred.uid;
        ret->pid = weft__unix_peer_gone(fd) ? -1 : cred.pid;
    }
}

/* A Unix socket knows its user. Elsewhere, without tokens, everybody who gets through is welcome: whom to let through is the
 * program's decision. */
void weft__conn_identity(weft_conn *conn, weft_origin *origin, char *name, weft_identity *ret) {
    const weft_endpoint *endpoint = conn->endpoint;
    weft__origin_of(conn->stream.fd, origin);
    *name = '\0';
    bool certified = conn->stream.tls && weft__tls_subject(conn->stream.tls, name, WEFT_CONN_NAME) > 0;
    bool local = endpoint->transport->scheme.flags & WEFT_KNOWS_USER;
    bool known = local ? origin->uid == (int64_t) geteuid() : certified || !endpoint->tokens.asked;
    *ret = (weft_identity){.transport = endpoint->url.scheme->name,
                           .local = !(endpoint->url.scheme->flags & WEFT_NETWORK),
                           .dialect = endpoint->dialect,
                           .name = name,
                           .scopes = known ? "*" : "",
                           .address = origin->address,
                           .uid = origin->uid,
                           .pid = origin->pid,
                           .port = origin->port,
                           .authenticated = known,
                           .endpoint = endpoint->text};
}

void weft__conn_known(weft_conn *conn) {
    conn->auth_until = INT64_MAX;
    weft__place_known(weft__conn_server(conn), &conn->place);
}

/* ---- the end ---- */

/* Keep what the peer has not sent: it goes before its last words do. */
static weft_buf *take_conn_output(weft_conn *conn) {
    const weft_alloc *alloc = conn->stream.loop->alloc;
    weft_bytes out = weft_peer_output(conn->peer);
    if (!out.len)
        return NULL;
    weft_buf *last = weft__zalloc(alloc, sizeof *last);
    if (last && weft__buf_put(last, alloc, out.data, out.len) < 0)
        last = weft__free(alloc, last);
    return last;
}

static void tell_close(weft_conn *conn, weft_peer *peer, int why) {
    weft_server *server = weft__conn_server(conn);
    if (!conn->told || !peer)
        return;
    conn->told = false;
    server->client_count--;
    if (server->opts.on_close)
        server->opts.on_close(server, peer, why, server->opts.data);
}

void weft__conn_tell_close(weft_conn *conn, int why) {
    tell_close(conn, conn->peer, why);
}

static void part_from_peer(weft_conn *conn, int why, bool politely) {
    weft_peer *peer = conn->peer;
    if (!peer)
        return;
    if (politely)
        conn->last = take_conn_output(conn);
    weft__peer_set_carrier(peer, NULL, NULL);
    conn->peer = NULL;
    tell_close(conn, peer, why);
}

void weft__conn_close(weft_conn *conn, int why, bool politely) {
    weft_peer *peer = conn->peer;
    if (weft__stream_closing(&conn->stream))
        return;
    if (peer)
        weft__peer_enter(peer); /* on_close may free it */
    part_from_peer(conn, why, politely);
    if (conn->web)
        weft__web_abandon(conn);
    if (!conn->web)
        conn->stream.ops = &last_ops;
    if (politely)
        weft__stream_finish(&conn->stream);
    else
        weft__stream_hang_up(&conn->stream);
    weft_peer_free(peer);
    if (peer)
        weft__peer_leave(peer);
    weft__memory_count(conn);
}

/* The user freed the peer: that is how a program ends a connection. */
static void on_peer_free(weft_peer *peer, void *self) {
    (void) peer;
    weft_conn *conn = self;
    part_from_peer(conn, 0, true);
    conn->stream.ops = &last_ops;
    weft__stream_finish(&conn->stream);
    weft__memory_count(conn);
}

static int64_t conn_now(void *self) {
    return weft__loop_fresh_now(((const weft_conn *) self)->stream.loop);
}

static void on_conn_resume(weft_peer *peer, void *self) {
    weft_conn *conn = self;
    if (weft__peer_choked(peer) || conn->events)
        return;
    weft__stream_pause(&conn->stream, false);
    weft__stream_again(&conn->stream);
}

static const weft_carrier carrier = {.free = on_peer_free, .now = conn_now, .resume = on_conn_resume};

void weft__conn_on_closed(weft_stream *stream) {
    weft_conn *conn = conn_of(stream);
    weft_server *server = weft__conn_server(conn);
    weft__list_remove(&conn->link);
    weft__place_leave(server, &conn->place);
    server->held -= conn->held;
    weft__web_free(conn);
    if (conn->last)
        weft__buf_done(conn->last, server->alloc);
    weft__free(server->alloc, conn->last);
    weft__free(server->alloc, conn);
    server->conn_count--;
    weft__server_left(server);
    weft__server_unref(server);
}

static bool nothing_left(weft_conn *conn) {
    return weft_peer_open_requests(conn->peer) == 0 && weft_peer_output(conn->peer).len == 0 &&
           !weft__peer_stalled(conn->peer);
}

void weft__conn_leave(weft_conn *conn, bool now) {
    conn->leaving = true;
    if (conn->web)
        weft__web_leave(conn, now);
    else if (!conn->peer)
        weft__conn_close(conn, -ECANCELED, false);
    else if (now || weft_peer_open_requests(conn->peer) == 0) {
        weft_peer_close(conn->peer, CLOSE_RESTART, "service restart");
        weft__conn_close(conn, -ECANCELED, true);
    }
}

/* ---- the peer on the stream ---- */

static int64_t earlier_time(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void schedule_conn(weft_conn *conn) {
    weft__stream_due(&conn->stream, earlier_time(weft_peer_deadline(conn->peer), conn->auth_until));
}

/* The user may have something to say to a peer that has ended its half. May end the connection. */
static bool conn_stays_after_end(weft_conn *conn) {
    weft_peer *peer = conn->peer;
    bool (*on_eof)(weft_peer * peer, void *data) = weft__conn_server(conn)->opts.on_eof;
    bool stays = on_eof && on_eof(peer, weft_peer_data(peer));
    if (conn->peer != peer)
        return true; /* freed by the callback */
    if (stays)
        weft__stream_flush_later(&conn->stream);
    if (stays)
        weft__tcp_probe(conn->stream.fd);
    return stays;
}

static void take_end(weft_conn *conn) {
    weft_peer *peer = conn->peer;
    int r = weft_peer_eof(peer);
    if (conn->peer != peer)
        return;
    if (r >= 0 && conn_stays_after_end(conn))
        return;
    conn->leaving = true; /* it may have closed only its half: what it asked for is still answered */
    if (r < 0 || weft_peer_open_requests(conn->peer) == 0)
        weft__conn_close(conn, r, true);
    else
        weft__tcp_probe(conn->stream.fd);
}

/* After anything that may have changed how the peer is doing. */
static inline void settle_as(weft_conn *conn, const weft_standing *how, int r) {
    if (r < 0) {
        /* Who has not read 8 MiB will not read them in two seconds either. */
        weft__conn_close(conn, r == -ECONNRESET ? 0 : r, r != -ENOBUFS && r != -ETIMEDOUT);
        return;
    }
    if (conn->ending && !weft__peer_holds(conn->peer)) {
        conn->ending = false;
        take_end(conn);
        return;
    }
    if (conn->leaving && nothing_left(conn)) {
        weft__conn_leave(conn, false);
        return;
    }
    if (how->choked != conn->stream.paused)
        weft__stream_pause(&conn->stream, how->choked);
    int64_t due = earlier_time(how->deadline, conn->auth_until);
    if (due != conn->stream.timer.due)
        weft__stream_due(&conn->stream, due);
    /* Most requests leave nothing behind, and nothing was there before. */
    if (conn->held || how->memory)
        weft__memory_count(conn);
}

static void settle_conn(weft_conn *conn, int r) {
    weft_standing how;
    weft__peer_stand(conn->peer, &how);
    settle_as(conn, &how, r);
}

void weft__conn_feed(weft_conn *conn, char *data, size_t len) {
    weft_peer *peer = conn->peer;
    weft_loop *loop = conn->stream.loop;
    if (!peer)
        return;
    weft__peer_lend(peer, loop->scratch, WEFT_LOOP_SCRATCH);
    int r = weft__peer_feed(peer, data, len, weft_loop_now(loop));
    if (conn->peer != peer)
        return; /* freed by a callback */
    bool was_full = weft_peer_full(peer);
    weft__stream_flush(&conn->stream);
    if (conn->peer != peer)
        return;
    if (was_full && !weft_peer_full(peer))
        weft__stream_again(&conn->stream); /* it may have kept bytes back, and the socket took everything at once */
    int returned = weft__peer_return(peer);
    settle_conn(conn, r < 0 ? r : returned);
}

/* The same in two parts, between which the stream sends (weft_stream_ops). */
static void take_conn_bytes(weft_stream *stream, char *data, size_t len) {
    weft_conn *conn = conn_of(stream);
    weft_peer *peer = conn->peer;
    if (!peer || conn->events)
        return;
    weft__peer_take(peer, data, len, weft_loop_now(stream->loop), stream->loop->scratch, WEFT_LOOP_SCRATCH);
}

static void settle_conn_bytes(weft_stream *stream, size_t sent) {
    weft_conn *conn = conn_of(stream);
    weft_peer *peer = conn->peer;
    weft_standing how;
    if (!peer || conn->events)
        return;
    int returned = weft__peer_taken(peer, sent, &how);
    if (how.can_read)
        weft__stream_again(stream); /* it had kept bytes back, and the socket took everything at once */
    if (how.drained)
        weft__stream_drained(stream);
    settle_as(conn, &how, how.status < 0 ? how.status : returned);
}

static void on_conn_bytes(weft_stream *stream, char *data, size_t len) {
    weft_conn *conn = conn_of(stream);
    if (!conn->events)
        weft__conn_feed(conn, data, len);
}

void weft__conn_note_end(weft_conn *conn, int why) {
    const char *sentence = weft__stream_why(&conn->stream);
    if (why < 0 && *sentence)
        weft__server_note(weft__conn_server(conn), "a connection on %s ended: %s", conn->endpoint->text, sentence);
}

static void on_conn_end(weft_stream *stream, int why) {
    weft_conn *conn = conn_of(stream);
    weft__conn_note_end(conn, why);
    if (!conn->peer || why < 0 || conn->events) {
        weft__conn_close(conn, why, false);
        return;
    }
    conn->ending = weft__peer_holds(conn->peer);
    if (!conn->ending)
        take_end(conn);
}

static char *conn_room(weft_stream *stream, size_t *ret_size) {
    weft_conn *conn = conn_of(stream);
    return conn->peer && !conn->events ? weft__peer_room(conn->peer, ret_size) : NULL;
}

static weft_bytes conn_output(weft_stream *stream) {
    weft_conn *conn = conn_of(stream);
    return conn->peer ? weft_peer_output(conn->peer) : (weft_bytes){0};
}

static void conn_sent(weft_stream *stream, size_t n) {
    weft_conn *conn = conn_of(stream);
    weft_peer *peer = conn->peer;
    weft_peer_sent(peer, n);
    if (conn->peer != peer)
        return;
    if (!weft__peer_choked(peer))
        weft__stream_pause(stream, false);
    if (weft__peer_has_drained(peer))
        weft__stream_drained(stream);
    if (conn->held)
        weft__memory_count(conn);
    if (conn->leaving && nothing_left(conn))
        weft__conn_leave(conn, false);
}

static void on_conn_drained(weft_stream *stream) {
    weft_peer *peer = conn_of(stream)->peer;
    if (peer)
        weft__peer_tell_drained(peer);
}

static void on_conn_due(weft_stream *stream) {
    weft_conn *conn = conn_of(stream);
    weft_peer *peer = conn->peer;
    int64_t now = weft_loop_now(stream->loop);
    if (!peer || now >= conn->auth_until) {
        weft__conn_close(conn, -ETIMEDOUT, peer != NULL);
        return;
    }
    if (conn->events) {
        weft__sse_keep_alive(conn);
        return;
    }
    int r = weft_peer_tick(peer, now);
    if (conn->peer != peer)
        return;
    weft__stream_flush(stream);
    if (conn->peer == peer)
        settle_conn(conn, r);
}

/* Output outside of a read: a deferred answer, a notification, a broadcast. Once per turn for all of it. */
static void on_peer_output(weft_peer *peer, void *data) {
    (void) data;
    weft_conn *conn = weft__conn_of(peer);
    if (!conn || conn->web)
        return;
    weft__stream_flush_later(&conn->stream);
    weft__memory_count(conn);
    if (weft__peer_status(peer) < 0)
        weft__stream_due(&conn->stream, weft_loop_now(conn->stream.loop));
    else if (!conn->events)
        schedule_conn(conn);
}

/* The peer's data may be its user's by now; the server's callbacks get the server's. */
static void on_peer_drain(weft_peer *peer, void *data) {
    weft_conn *conn = weft__conn_of(peer);
    weft_server *server = conn ? weft__conn_server(conn) : NULL;
    (void) data;
    if (server && server->opts.on_drain)
        server->opts.on_drain(server, peer, server->opts.data);
}

int weft__conn_peer_new(weft_conn *conn, const weft_conn_peer *how, weft_peer **ret) {
    const weft_endpoint *endpoint = conn->endpoint;
    weft_peer_opts opts = {.framing = how->framing,
                           .identity = how->identity,
                           .style = endpoint->style,
                           .no_batch = endpoint->no_batch,
                           .lenient = endpoint->lenient,
                           .max_body = endpoint->max_body,
                           .dialect_max_body = endpoint->dialect_max_body,
                           .deflate = how->deflate,
                           .locked = how->locked,
                           .data = endpoint->server->opts.data,
                           .on_raw = endpoint->server->opts.on_raw,
                           .on_output = how->on_output ? how->on_output : on_peer_output,
                           .on_drain = on_peer_drain};
    weft_peer *peer;
    int r = weft_peer_new(endpoint->server->service, &opts, &peer);
    if (r < 0)
        return r;
    weft__peer_now(peer, weft_loop_now(conn->stream.loop));
    *ret = peer;
    return 0;
}

int weft__conn_attach(weft_conn *conn, const weft_conn_peer *how) {
    int r = weft__conn_peer_new(conn, how, &conn->peer);
    if (r < 0)
        return r;
    weft__peer_set_carrier(conn->peer, &carrier, conn);
    conn->stream.ops = &peer_ops;
    schedule_conn(conn);
    return 0;
}

void weft__conn_tell_open(weft_conn *conn) {
    weft_server *server = weft__conn_server(conn);
    if (conn->told || !conn->peer)
        return;
    conn->told = true;
    server->client_count++;
    if (server->opts.on_open)
        server->opts.on_open(server, conn->peer, server->opts.data);
}

static void on_conn_open(weft_stream *stream) {
    weft_conn *conn = conn_of(stream);
    weft_origin origin;
    char name[WEFT_CONN_NAME];
    weft_identity who;
    weft__conn_identity(conn, &origin, name, &who);
    weft_conn_peer how = {.framing = &weft_detect, .identity = &who, .locked = !who.authenticated && conn->place.stranger};
    if (!how.locked)
        weft__conn_known(conn);
    int r = weft__conn_attach(conn, &how);
    if (r < 0)
        weft__conn_close(conn, r, false);
    else if (!how.locked)
        weft__conn_tell_open(conn);
}

static const weft_stream_ops peer_ops = {
    .on_open = on_conn_open,
    .on_bytes = on_conn_bytes,
    .take = take_conn_bytes,
    .settle = settle_conn_bytes,
    .on_end = on_conn_end,
    .on_closed = weft__conn_on_closed,
    .room = conn_room,
    .output = conn_output,
    .sent = conn_sent,
    .on_drained = on_conn_drained,
    .on_due = on_conn_due,
};

/* ---- after the peer: only what it left is sent ---- */

static weft_bytes last_output(weft_stream *stream) {
    weft_conn *conn = conn_of(stream);
    return conn->last ? (weft_bytes){weft__buf_head(conn->last), weft__buf_len(conn->last)} : (weft_bytes){0};
}

static void last_sent(weft_stream *stream, size_t n) {
    weft__buf_take(conn_of(stream)->last, stream->loop->alloc, n);
    weft__memory_count(conn_of(stream));
}

/* Nothing is done with these any more: the stream is finishing. */
static void ignore_bytes(weft_stream *stream, char *data, size_t len) {
    (void) stream, (void) data, (void) len;
}

static void ignore_end(weft_stream *stream, int why) {
    (void) why;
    weft__stream_close(stream);
}

static const weft_stream_ops last_ops = {
    .on_bytes = ignore_bytes,
    .on_end = ignore_end,
    .on_closed = weft__conn_on_closed,
    .output = last_output,
    .sent = last_sent,
    .on_due = weft__stream_close,
};

/* ---- the beginning ---- */

static void close_pair(int in, int out) {
    close(in);
    if (out != in)
        close(out);
}

static int start_conn(weft_conn *conn, weft_listener *listener) {
    int r = listener->tls ? weft__stream_tls(&conn->stream, listener->tls, NULL) : 0;
    if (r >= 0 && listener->http)
        r = weft__web_new(conn);
    if (r >= 0)
        r = weft__stream_start(&conn->stream, false);
    return r;
}

static void move_in(weft_server *server, weft_conn *conn, weft_conn_place *place) {
    conn->place = *place;
    weft__list_init(&conn->place.by_age);
    if (place->stranger)
        weft__list_push(&server->strangers_by_age, &conn->place.by_age);
}

int weft__conn_new(weft_listener *listener, int in, int out, weft_conn_place *place) {
    weft_server *server = listener->server;
    weft_conn *conn = weft__zalloc(server->alloc, sizeof *conn);
    int r = conn ? weft__stream_init(&conn->stream, server->loop, &peer_ops, in, out) : -ENOMEM;
    if (r < 0) {
        weft__place_leave(server, place);
        weft__free(server->alloc, conn);
        close_pair(in, out);
        return r;
    }
    move_in(server, conn, place);
    int64_t now = weft_loop_now(server->loop);
    conn->endpoint = listener->endpoints;
    conn->auth_until = place->stranger || listener->tls ? weft__after(now, server->opts.auth_ms) : INT64_MAX;
    weft__list_push(&server->conns, &conn->link);
    server->conn_count++;
    weft__server_ref(server);
    r = start_conn(conn, listener);
    if (r < 0) {
        weft__stream_close(&conn->stream);
        return r;
    }
    weft__stream_due(&conn->stream,
                     listener->http && !listener->tls ? weft__after(now, server->opts.head_ms) : conn->auth_until);
    return 0;
}
