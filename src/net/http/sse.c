/* Server-sent events: a peer that only talks. Notifications and broadcasts go out as events until the client hangs up. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "frame.h"
#include "http_server.h"
#include "link.h"

/* Proxies give up on a silent answer after 30 to 60 seconds. */
#define KEEP_ALIVE_MS (15 * 1000)
#define COMMENT ":\n\n"

/* The connection is an event stream from here on. */
static int become_stream(weft_conn *conn, const weft_identity *who, weft_bytes origin) {
    char head[512];
    weft_conn_peer how = {.framing = &weft__sse, .identity = who};
    bool cors = origin.data && origin.len < 200;
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                     "Connection: close\r\n%s%.*s%s\r\n",
                     weft__server_date(weft__conn_server(conn)), cors ? "Vary: Origin\r\nAccess-Control-Allow-Origin: " : "",
                     cors ? (int) origin.len : 0, cors ? origin.data : "", cors ? "\r\n" : "");
    conn->events = true;
    int r = weft__web_become(conn, &how, (weft_bytes){head, (size_t) n});
    if (r < 0)
        conn->events = false;
    else
        weft__stream_due(&conn->stream, weft_loop_now(conn->stream.loop) + KEEP_ALIVE_MS);
    return r;
}

int weft__web_events(weft_conn *conn, weft_asked *asked) {
    char name[WEFT_CONN_NAME];
    weft_origin origin;
    weft_identity who;
    weft__web_identity(conn, asked, &origin, name, &who);
    if (become_stream(conn, &who, asked->origin) >= 0)
        return 0;
    asked->reason = "outOfMemory";
    return 503;
}

int weft__web_stream(weft_conn *conn, const weft_identity *who, weft_peer **ret) {
    const char *origin = conn->web->origin;
    int r = become_stream(conn, who, (weft_bytes){origin, origin ? strlen(origin) : 0});
    if (r < 0)
        return r;
    weft__conn_tell_open(conn);
    *ret = conn->peer;
    return conn->peer ? 0 : -EPIPE;
}

void weft__sse_keep_alive(weft_conn *conn) {
    weft_buf *out = weft__peer_out(conn->peer);
    int r = weft__peer_status(conn->peer);
    if (r >= 0 && !weft__buf_len(out))
        r = weft__buf_put(out, weft__peer_alloc(conn->peer), COMMENT, sizeof COMMENT - 1);
    if (r < 0) {
        weft__conn_close(conn, r, r != -ENOBUFS); /* what has not been read so far is not worth a copy */
        return;
    }
    weft__stream_flush(&conn->stream);
    weft__stream_due(&conn->stream, weft_loop_now(conn->stream.loop) + KEEP_ALIVE_MS);
}
