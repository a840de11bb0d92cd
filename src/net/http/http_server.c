/* HTTP on a connection: heads and bodies out of the bytes, one request after the other. What a request may do is judged in
 * http_server_head.c. */
#include "http_server.h"

#include <errno.h>
#include <stdio.h>

#include "admission.h"
#include "http_coding.h"
#include "link.h"

/* A connection that has been answered may stay this long without asking again, as most servers allow. */
#define IDLE_MS (75 * 1000)
/* A body comes at least this fast, over each body_ms: slower than the slowest line that somebody works with. */
#define BODY_BYTES_PER_SECOND 1024
/* Half of the loop's scratch area is for answers, half for the peer that makes them. */
#define OUT_SHARE (WEFT_LOOP_SCRATCH / 2)

static const weft_stream_ops web_ops;

static weft_conn *conn_of(weft_stream *stream) {
    return WEFT_CONTAINER(stream, weft_conn, stream);
}

static void due_in(weft_conn *conn, int64_t ms) {
    weft__stream_due(&conn->stream, weft__after(weft_loop_now(conn->stream.loop), ms));
}

/* ---- bodies ---- */

static void hand_on(weft_conn *conn, char *body, size_t len) {
    weft_web *web = conn->web;
    if (web->kind == WEFT_WEB_RPC)
        weft__web_rpc(conn, body, len);
    else if (web->kind == WEFT_WEB_ROUTE)
        weft__http_call(web->http, (weft_bytes){body, len});
    else if (web->kind == WEFT_WEB_HEALTH)
        weft__web_answer(conn, 200, "application/json", NULL, (weft_bytes){"{\"status\":\"ok\"}", 15});
}

/* A few bytes can unpack to gigabytes: the limit is that of a body that comes as it is. */
static void hand_on_unpacked(weft_conn *conn, const char *body, size_t len) {
    weft_web *web = conn->web;
    const weft_alloc *alloc = conn->stream.loop->alloc;
    weft_buf unpacked = {0};
    int r = weft__buf_reserve(&unpacked, alloc, 1); /* as in dispatch_chunked() */
    if (r >= 0)
        r = weft__unpack_body(weft__conn_server(conn), (weft_bytes){body, len}, web->body_max, &unpacked);
    if (r >= 0)
        hand_on(conn, weft__buf_head(&unpacked), weft__buf_len(&unpacked));
    else if (r == -EMSGSIZE)
        weft__web_refuse(conn, 413, "tooLarge", NULL);
    else
        weft__web_refuse(conn, r == -EBADMSG ? 400 : 503, r == -EBADMSG ? "badGzip" : "outOfMemory", NULL);
    weft__buf_done(&unpacked, alloc);
}

static void dispatch_body(weft_conn *conn, char *body, size_t len) {
    conn->web->state = WEFT_WEB_BUSY;
    if (conn->web->packed)
        hand_on_unpacked(conn, body, len);
    else
        hand_on(conn, body, len);
}

static size_t step_sized(weft_conn *conn, char *data, size_t len) {
    size_t need = conn->web->body_len;
    if (len < need)
        return 0;
    dispatch_body(conn, data, need);
    return need;
}

/* The scanner writes a NUL behind a body, so a body without bytes needs memory too. */
static int dispatch_chunked(weft_conn *conn) {
    const weft_alloc *alloc = conn->stream.loop->alloc;
    weft_buf body = conn->web->body;
    int r = weft__buf_reserve(&body, alloc, 1);
    conn->web->body = (weft_buf){0};
    if (r >= 0)
        dispatch_body(conn, weft__buf_head(&body), weft__buf_len(&body));
    weft__buf_done(&body, alloc);
    return r;
}

static size_t step_chunked(weft_conn *conn, char *data, size_t len) {
    weft_web *web = conn->web;
    size_t used = 0, got = 0;
    int r = len ? weft__chunked(&web->chunked, data, len, &used, &got) : 0;
    if (!len)
        return 0;
    if (r < 0) {
        weft__web_refuse(conn, 400, "badRequest", NULL);
        return len; /* nobody knows where the next request would begin */
    }
    if (got > web->body_max - weft__buf_len(&web->body))
        weft__web_refuse(conn, 413, "tooLarge", NULL);
    else if (weft__buf_put(&web->body, conn->stream.loop->alloc, data, got) < 0 || (r > 0 && dispatch_chunked(conn) < 0))
        weft__web_refuse(conn, 503, "outOfMemory", NULL);
    return used;
}

/* ---- heads ---- */

static int status_of(int r) {
    switch (r) {
    case -EMSGSIZE:
        return 431;
    case -ENOTSUP:
        return 505;
    case -ENOSYS:
        return 501;
    default:
        return 400;
    }
}

static const char *reason_of(int status) {
    return status == 431 ? "headTooLarge" : status == 505 ? "httpVersion" : status == 501 ? "transferCoding" : "badRequest";
}

/* Parse only when it can succeed or fail for good: a head that comes byte by byte must not be read from the start each time.
 */
static bool worth_parsing(weft_web *web, const char *data, size_t len) {
    size_t from = web->scanned > 3 ? web->scanned - 3 : 0;
    bool first = web->scanned == 0;
    web->scanned = len;
    return first || len >= WEFT_HTTP_MAX_HEAD || memmem(data + from, len - from, "\r\n\r\n", 4);
}

static int prepare_for_body(weft_conn *conn, const weft_asked *asked) {
    if (asked->kind == WEFT_WEB_RPC)
        return weft__web_rpc_prepare(conn, asked);
    if (asked->kind == WEFT_WEB_ROUTE)
        return weft__http_new(conn, asked, &conn->web->http);
    return 0;
}

static bool has_body(const weft_http_head *head) {
    return head->chunked || head->content_length > 0;
}

static void await_body(weft_conn *conn, const weft_http_head *head) {
    weft_web *web = conn->web;
    web->by_chunks = head->chunked;
    web->body_len = head->content_length > 0 ? (size_t) head->content_length : 0;
    web->chunked = (weft_chunked){0};
    web->state = WEFT_WEB_BODY;
    web->body_came = 0;
    web->body_until = weft__after(weft_loop_now(conn->stream.loop), weft__conn_server(conn)->opts.body_ms);
}

/* Nobody reads a body of these: what there is of it is thrown away with the connection, so that a stranger cannot stay here
 * by sending one slowly. */
static void pass_over_body(weft_conn *conn, const weft_http_head *head) {
    weft_web *web = conn->web;
    if (has_body(head))
        web->keep_alive = false;
    web->by_chunks = web->packed = false;
    web->body_len = 0;
    web->state = WEFT_WEB_BODY;
}

/* Before the body comes: is there too much of it, and does the client wait to be told that it is welcome? */
static int begin_body(weft_conn *conn, weft_asked *asked) {
    weft_web *web = conn->web;
    const weft_http_head *head = asked->head;
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const weft_limits *limits = weft__service_limits(weft__conn_server(conn)->service);
    if (asked->kind == WEFT_WEB_HEALTH) {
        pass_over_body(conn, head);
        return 0;
    }
    /* A body of a GET has no meaning (RFC 9110 section 9.3.1) and is a known way to smuggle a request past a proxy. */
    if (has_body(head) && (web->head_only || weft__bytes_are(head->method, "GET"))) {
        asked->reason = "bodyNotAllowed";
        return 400;
    }
    int coding = weft__body_coding(head);
    if (coding < 0) {
        snprintf(asked->extra, sizeof asked->extra, "Accept-Encoding: gzip\r\n");
        asked->reason = "contentEncoding";
        return 415;
    }
    web->packed = coding > 0 && has_body(head);
    web->body_max = asked->authenticated ? limits->max_body : limits->max_body_stranger;
    const size_t own[] = {asked->endpoint->max_body, asked->endpoint->dialect_max_body};
    for (size_t i = 0; i < 2; i++)
        web->body_max = own[i] && own[i] < web->body_max ? own[i] : web->body_max;
    if (head->content_length > 0 && (uint64_t) head->content_length > web->body_max) {
        asked->reason = "tooLarge";
        return 413;
    }
    await_body(conn, head);
    weft_bytes expect = weft__http_find(head, "expect", NULL);
    if (expect.data && !weft__http_has_token(expect, "100-continue"))
        return 417;
    if (expect.data && head->minor == 1 && (web->by_chunks || web->body_len))
        return weft__buf_put(&web->out, conn->stream.loop->alloc, go_on, sizeof go_on - 1) < 0 ? 503 : 0;
    return 0;
}

static char *keep_origin(weft_conn *conn, weft_bytes origin) {
    return origin.data ? weft__strndup(conn->stream.loop->alloc, origin.data, origin.len) : NULL;
}

static void take_request_head(weft_conn *conn, const weft_http_head *head) {
    weft_web *web = conn->web;
    weft_asked asked;
    int status = weft__web_judge(conn, head, &asked);
    conn->endpoint = asked.endpoint;
    conn->auth = asked.auth ? asked.auth->id : 0;
    conn->session = asked.auth ? asked.session : 0;
    web->kind = (unsigned char) asked.kind;
    web->keep_alive = head->keep_alive && !conn->leaving;
    web->head_only = weft__bytes_are(head->method, "HEAD");
    web->takes_packed = weft__accepts_gzip(weft__http_find(head, "accept-encoding", NULL));
    web->origin = keep_origin(conn, asked.origin);
    if (status == 0 && asked.authenticated)
        weft__conn_known(conn);
    if (status == 0 && asked.kind == WEFT_WEB_SOCKET)
        status = weft__web_upgrade(conn, &asked);
    else if (status == 0 && asked.kind == WEFT_WEB_EVENTS)
        status = weft__web_events(conn, &asked);
    else if (status == 0 && (status = begin_body(conn, &asked)) == 0 && prepare_for_body(conn, &asked) < 0)
        status = 503;
    /* A body that nobody will read must not be taken for the next request. */
    if (status && has_body(head))
        web->keep_alive = false;
    if (status == 204)
        weft__web_answer(conn, 204, NULL, asked.extra, (weft_bytes){0});
    else if (status)
        weft__web_refuse(conn, status, asked.reason ? asked.reason : "refused", asked.extra);
}

static size_t step_head(weft_conn *conn, char *data, size_t len) {
    weft_web *web = conn->web;
    weft_http_head head;
    /* An empty line before a request is forgiven (RFC 9112 section 2.2). */
    if (web->scanned == 0 && len >= 2 && data[0] == '\r' && data[1] == '\n')
        return 2;
    if (!len || (len == 1 && *data == '\r') || !worth_parsing(web, data, len))
        return 0;
    int r = weft__http_request(data, len, &head);
    if (r == 0)
        return 0;
    web->scanned = 0;
    if (r < 0) {
        web->keep_alive = web->head_only = web->takes_packed = false;
        weft__web_refuse(conn, status_of(r), reason_of(status_of(r)), NULL);
        return len;
    }
    take_request_head(conn, &head);
    /* A body that is already complete: there is none. */
    if (conn->web == web && web->state == WEFT_WEB_BODY && !web->by_chunks && web->body_len == 0)
        dispatch_body(conn, data + r, 0);
    return (size_t) r;
}

/* ---- the pump ---- */

/* One step: how many bytes are finished with, 0 wait. */
static size_t step_request(weft_conn *conn, char *data, size_t len) {
    weft_web *web = conn->web;
    if (web->state == WEFT_WEB_HEAD)
        return step_head(conn, data, len);
    if (web->state == WEFT_WEB_BODY)
        return web->by_chunks ? step_chunked(conn, data, len) : step_sized(conn, data, len);
    return web->state == WEFT_WEB_DONE ? len : 0;
}

/* Answers that nobody fetches are enough of them: the requests behind wait, or one read full of short requests could ask for
 * gigabytes. */
static bool is_full(const weft_web *web) {
    return weft__buf_len(&web->out) > OUT_SHARE;
}

static size_t take_requests(weft_conn *conn, weft_web *web, char *data, size_t len) {
    size_t used = 0, n;
    while (conn->web == web && !weft__stream_closing(&conn->stream) && !is_full(web) &&
           (n = step_request(conn, data + used, len - used)) > 0)
        used += n;
    return used;
}

/* The time for a head begins with its first byte, or with the answer before it when that byte is there already. Until then,
 * and while the other side is to read and not to send, the connection may rest. An empty line is neither a head nor a rest.
 */
static void await_head(weft_conn *conn) {
    weft_web *web = conn->web;
    int64_t head_ms = weft__conn_server(conn)->opts.head_ms;
    bool begun = weft__buf_len(&web->in) > 0 && !is_full(web);
    if (web->rested || is_full(web))
        due_in(conn, begun ? head_ms : IDLE_MS);
    else if (begun && conn->stream.timer.due > weft__after(weft_loop_now(conn->stream.loop), head_ms))
        due_in(conn, head_ms);
    web->rested = false;
}

/* How long the other side may now take, and whether we want to hear from it at all. */
static void settle_web(weft_conn *conn) {
    weft_web *web = conn->web;
    /* Behind an answer that comes in parts only the other side's end is waited for. */
    bool busy = web->state == WEFT_WEB_BUSY && !(weft__http_streams(web) && !weft__buf_len(&web->in));
    weft__stream_pause(&conn->stream, busy || (is_full(web) && !weft__http_streams(web)));
    if (web->state == WEFT_WEB_BODY)
        weft__stream_due(&conn->stream, web->body_until);
    else if (web->state == WEFT_WEB_BUSY)
        weft__stream_due(&conn->stream, web->rpc ? weft_peer_deadline(web->rpc) : INT64_MAX);
    else if (web->state == WEFT_WEB_HEAD)
        await_head(conn);
    weft__memory_count(conn);
}

/* The stream is a peer's now: the bytes behind the head are its first. */
static void hand_over_to_peer(weft_conn *conn, weft_web *web, char *data, size_t len) {
    const weft_alloc *alloc = conn->stream.loop->alloc;
    if (conn->peer && weft_peer_identity(conn->peer)->authenticated) /* a stranger is told of when it is none any more */
        weft__conn_tell_open(conn);
    if (len && conn->peer && !conn->events)
        weft__conn_feed(conn, data, len);
    weft__buf_done(&web->in, alloc);
    weft__free(alloc, web);
}

static int keep_unread(weft_web *web, const weft_alloc *alloc, bool buffered, const char *data, size_t used, size_t len) {
    if (!buffered)
        return weft__buf_put(&web->in, alloc, data + used, len - used);
    weft__buf_take(&web->in, alloc, used);
    return 0;
}

static void on_web_bytes(weft_stream *stream, char *data, size_t len) {
    weft_conn *conn = conn_of(stream);
    weft_web *web = conn->web;
    const weft_alloc *alloc = stream->loop->alloc;
    bool buffered = weft__buf_len(&web->in) > 0;
    web->body_came += len;
    if (buffered && weft__buf_put(&web->in, alloc, data, len) < 0) {
        weft__conn_close(conn, -ENOMEM, false);
        return;
    }
    if (buffered) {
        data = weft__buf_head(&web->in);
        len = weft__buf_len(&web->in);
    }
    weft__buf_lend(&web->out, alloc, stream->loop->scratch, OUT_SHARE);
    web->taking = true;
    size_t used = take_requests(conn, web, data, len);
    web->taking = false;
    if (web->became) {
        hand_over_to_peer(conn, web, data + used, len - used);
        return;
    }
    int r = keep_unread(web, alloc, buffered, data, used, len);
    bool was_full = is_full(web);
    weft__stream_flush(stream);
    if (was_full && !is_full(web))
        weft__stream_again(stream); /* the socket took everything at once, and there may be more requests */
    if (weft__buf_return(&web->out, alloc) < 0 || r < 0)
        weft__conn_close(conn, -ENOMEM, false);
    else if (!weft__stream_closing(stream))
        settle_web(conn);
}

static void on_web_open(weft_stream *stream) {
    weft_conn *conn = conn_of(stream);
    due_in(conn, weft__conn_server(conn)->opts.head_ms);
}

static void on_web_end(weft_stream *stream, int why) {
    weft_conn *conn = conn_of(stream);
    weft__conn_note_end(conn, why);
    if (why == 0 && conn->web->state == WEFT_WEB_BUSY && !weft__http_streams(conn->web))
        conn->web->keep_alive = false;
    else
        weft__conn_close(conn, why, why == 0);
}

static weft_bytes web_output(weft_stream *stream) {
    weft_conn *conn = conn_of(stream);
    if (conn->web->state == WEFT_WEB_BUSY && conn->web->kind == WEFT_WEB_RPC)
        weft__web_rpc_check(conn);
    return (weft_bytes){weft__buf_head(&conn->web->out), weft__buf_len(&conn->web->out)};
}

static void web_sent(weft_stream *stream, size_t n) {
    weft_conn *conn = conn_of(stream);
    weft__buf_take(&conn->web->out, stream->loop->alloc, n);
    if (conn->held)
        weft__memory_count(conn);
    if (conn->web->state != WEFT_WEB_BUSY && !is_full(conn->web))
        weft__stream_pause(stream, false);
    weft__http_sent(conn);
}

/* Has enough come since it was last looked at? Then look again later. */
static bool body_moves(weft_conn *conn) {
    weft_web *web = conn->web;
    int64_t body_ms = weft__conn_server(conn)->opts.body_ms;
    uint64_t seconds = (uint64_t) body_ms / 1000, rest = (uint64_t) body_ms % 1000;
    if (web->body_came / BODY_BYTES_PER_SECOND < seconds || web->body_came < rest * BODY_BYTES_PER_SECOND / 1000)
        return false;
    web->body_came = 0;
    web->body_until = weft__after(weft_loop_now(conn->stream.loop), body_ms);
    return true;
}

static void on_web_due(weft_stream *stream) {
    weft_conn *conn = conn_of(stream);
    weft_web *web = conn->web;
    bool begun = web->state == WEFT_WEB_BODY || weft__buf_len(&web->in) > 0;
    if (web->state == WEFT_WEB_BODY && body_moves(conn))
        weft__stream_due(stream, web->body_until);
    else if (web->state == WEFT_WEB_BUSY) {
        if (web->rpc && weft_peer_tick(web->rpc, weft_loop_now(stream->loop)) >= 0 && conn->web->rpc)
            weft__stream_due(stream, weft_peer_deadline(web->rpc));
        weft__stream_flush_later(stream);
    } else if (begun && web->state != WEFT_WEB_DONE) {
        web->keep_alive = false;
        weft__web_refuse(conn, 408, "timeout", NULL);
    } else
        weft__conn_close(conn, -ETIMEDOUT, true);
}

static const weft_stream_ops web_ops = {
    .on_open = on_web_open,
    .on_bytes = on_web_bytes,
    .on_end = on_web_end,
    .on_closed = weft__conn_on_closed,
    .output = web_output,
    .sent = web_sent,
    .on_due = on_web_due,
};

/* ---- beginning and end ---- */

int weft__web_new(weft_conn *conn) {
    conn->web = weft__zalloc(conn->stream.loop->alloc, sizeof *conn->web);
    if (!conn->web)
        return -ENOMEM;
    conn->stream.ops = &web_ops;
    return 0;
}

void weft__web_abandon(weft_conn *conn) {
    weft_web *web = conn->web;
    weft_peer *rpc = web->rpc;
    web->state = WEFT_WEB_DONE;
    web->rpc = NULL;
    weft_peer_free(rpc);
    if (web->http)
        weft__http_orphan(web->http);
    web->http = NULL;
}

void weft__web_leave(weft_conn *conn, bool now) {
    conn->web->keep_alive = false;
    if (now || conn->web->state != WEFT_WEB_BUSY || weft__http_streams_events(conn->web))
        weft__conn_close(conn, -ECANCELED, true);
}

void weft__web_free(weft_conn *conn) {
    weft_web *web = conn->web;
    const weft_alloc *alloc = conn->stream.loop->alloc;
    if (!web)
        return;
    weft__web_abandon(conn);
    weft__buf_done(&web->in, alloc);
    weft__buf_done(&web->out, alloc);
    weft__buf_done(&web->body, alloc);
    weft__free(alloc, web->origin);
    conn->web = weft__free(alloc, web);
}

/* While on_web_bytes() works in the web's memory, it is given back there. */
int weft__web_become(weft_conn *conn, const weft_conn_peer *how, weft_bytes head) {
    weft_web *web = conn->web;
    const weft_alloc *alloc = conn->stream.loop->alloc;
    int r = weft__conn_attach(conn, how);
    if (r < 0)
        return r;
    weft_buf *out = weft__peer_out(conn->peer);
    r = weft__buf_put(out, weft__peer_alloc(conn->peer), weft__buf_head(&web->out), weft__buf_len(&web->out));
    if (r >= 0)
        r = weft__buf_put(out, weft__peer_alloc(conn->peer), head.data, head.len);
    weft__web_abandon(conn);
    weft__buf_done(&web->out, alloc);
    web->origin = weft__free(alloc, web->origin);
    web->became = true;
    conn->web = NULL;
    if (!web->taking) { /* a route that answers later */
        weft__buf_done(&web->in, alloc);
        weft__buf_done(&web->body, alloc);
        weft__free(alloc, web);
        weft__stream_pause(&conn->stream, false);
    }
    if (r < 0)
        weft__conn_close(conn, r, false);
    return 0;
}
