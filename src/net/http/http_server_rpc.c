/* JSON-RPC by POST: one body in, one body out. One peer per connection does it, made again when another caller comes. */
#include <errno.h>
#include <string.h>

#include "frame.h"
#include "http_server.h"
#include "link.h"
#include "trace.h"

#define OUT_SHARE (WEFT_LOOP_SCRATCH / 2)

static const weft_carrier carrier;

/* A deferred answer: look at it before the loop waits, when the request is really gone from the peer. */
static void on_rpc_output(weft_peer *peer, void *data) {
    (void) data;
    weft_conn *conn = weft__peer_carrier(peer, &carrier);
    if (conn)
        weft__stream_flush_later(&conn->stream);
}

static void on_rpc_free(weft_peer *peer, void *data) {
    weft_conn *conn = data;
    if (!conn->web || conn->web->rpc != peer)
        return;
    conn->web->rpc = NULL;
    weft__conn_close(conn, -EPIPE, true);
}

static int64_t rpc_now(void *data) {
    return weft__loop_fresh_now(((const weft_conn *) data)->stream.loop);
}

static const weft_carrier carrier = {.free = on_rpc_free, .now = rpc_now};

static void drop_peer(weft_web *web) {
    weft_peer *peer = web->rpc;
    web->rpc = NULL;
    weft_peer_free(peer);
}

static void keep_trace(weft_web *web, const weft_http_head *head) {
    size_t count;
    weft_bytes header = weft__http_find(head, "traceparent", &count);
    if (count != 1 || !weft__trace_parent(header, web->trace))
        web->trace[0] = '\0';
}

int weft__web_rpc_prepare(weft_conn *conn, const weft_asked *asked) {
    weft_web *web = conn->web;
    keep_trace(web, asked->head);
    weft_origin origin;
    char name[WEFT_CONN_NAME];
    weft_identity who;
    if (web->rpc && web->rpc_auth == conn->auth && web->rpc_endpoint == asked->endpoint)
        return 0;
    drop_peer(web);
    weft__web_identity(conn, asked, &origin, name, &who);
    weft_conn_peer how = {.framing = &weft__body, .identity = &who, .on_output = on_rpc_output};
    int r = weft__conn_peer_new(conn, &how, &web->rpc);
    if (r < 0)
        return r;
    weft__peer_set_carrier(web->rpc, &carrier, conn);
    web->rpc_auth = conn->auth;
    web->rpc_endpoint = asked->endpoint;
    return 0;
}

/* Whatever JSON-RPC has to say goes out as 200, errors too: the HTTP request itself went well. */
void weft__web_rpc_check(weft_conn *conn) {
    weft_web *web = conn->web;
    weft_peer *peer = web->rpc;
    if (!peer || weft_peer_open_requests(peer))
        return;
    weft_bytes out = weft_peer_output(peer);
    /* Who reads gzip may send it too, from the next request on (RFC 9110 section 12.5.3). */
    const char *accepts = web->takes_packed ? "Accept-Encoding: gzip\r\n" : NULL;
    if (!out.len) {
        weft__web_answer(conn, 204, NULL, accepts, out);
        return;
    }
    if (weft__web_answer(conn, 200, "application/json", accepts, out) >= 0 && web->rpc == peer)
        weft_peer_sent(peer, out.len);
}

void weft__web_rpc(weft_conn *conn, char *body, size_t len) {
    weft_web *web = conn->web;
    weft_peer *peer = web->rpc;
    weft_loop *loop = conn->stream.loop;
    weft__peer_lend(peer, loop->scratch + OUT_SHARE, OUT_SHARE);
    char trace[WEFT_TRACEPARENT]; /* a callback may end the connection, and web with it */
    memcpy(trace, web->trace, sizeof trace);
    weft__peer_set_trace(peer, *trace ? trace : NULL);
    int r = weft__peer_body(peer, body, len, weft_loop_now(loop));
    if (conn->web != web || web->rpc != peer)
        return; /* closed by a callback */
    weft__peer_set_trace(peer, NULL);
    weft__web_rpc_check(conn);
    if (web->rpc != peer)
        return;
    int returned = weft__peer_return(peer);
    if (r < 0 || returned < 0)
        drop_peer(web);
    if ((r < 0 || returned < 0) && web->state == WEFT_WEB_BUSY)
        weft__web_refuse(conn, r < 0 ? 400 : 503, r < 0 ? "badRequest" : "outOfMemory", NULL);
}
