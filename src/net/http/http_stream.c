/* Answers of routes that come in parts: chunks, or server-sent events. The request stays with its route until it says that
 * the answer is complete. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "admission.h"
#include "http_request.h"

/* As for the messages of a peer: over the first the route is asked to wait, over the second it is refused. */
#define SOFT_LIMIT ((size_t) 1 << 20)
#define HARD_LIMIT ((size_t) 8 << 20)
/* A route that waited goes on when this much is left, so that the socket does not run dry. */
#define LOW_MARK (SOFT_LIMIT / 4)

bool weft__http_streams(const weft_web *web) {
    return web->http && web->http->streams;
}

bool weft__http_streams_events(const weft_web *web) {
    return weft__http_streams(web) && web->http->events;
}

void weft__http_sent(weft_conn *conn) {
    weft_http *http = conn->web->http;
    if (!http || !http->full || weft__buf_len(&conn->web->out) > LOW_MARK)
        return;
    http->full = false;
    if (http->stream.on_drain)
        http->stream.on_drain(http, http->stream.ctx);
}

/* A part in the answer's coding. All of it or nothing. */
static int put_coded_part(weft_http *http, weft_bytes part) {
    weft_web *web = http->conn->web;
    char size[24];
    int n = http->chunked ? snprintf(size, sizeof size, "%zx\r\n", part.len) : 0;
    if (web->head_only || !part.len)
        return 0;
    int r = weft__buf_reserve(&web->out, http->alloc, (size_t) n + part.len + 2);
    if (r < 0)
        return r;
    weft__buf_put(&web->out, http->alloc, size, (size_t) n);
    weft__buf_put(&web->out, http->alloc, part.data, part.len);
    return http->chunked ? weft__buf_put(&web->out, http->alloc, "\r\n", 2) : 0;
}

/* Of a head that could not be written whole nothing stays. */
static int begin_answer(weft_http *http, int status, const weft_http_answer_opts *opts, const char *extra) {
    weft_web *web = http->conn->web;
    size_t before = weft__buf_len(&web->out);
    bool keep_alive = web->keep_alive;
    web->keep_alive = keep_alive && http->chunked;
    int r = weft__web_head(http->conn, status, opts->type, extra, http->chunked ? "Transfer-Encoding: chunked\r\n" : "");
    if (r >= 0)
        r = put_coded_part(http, opts->body);
    if (r >= 0)
        return 0;
    web->out.end -= weft__buf_len(&web->out) - before;
    web->keep_alive = keep_alive;
    return r;
}

static void start_streaming(weft_http *http, const char *type, const weft_http_stream *stream) {
    static const char events[] = "text/event-stream";
    weft_conn *conn = http->conn;
    http->streams = true;
    http->events = type && strncmp(type, events, sizeof events - 1) == 0;
    http->stream = stream ? *stream : (weft_http_stream){0};
    weft__stream_pause(&conn->stream, weft__buf_len(&conn->web->in) > 0);
    weft__stream_flush_later(&conn->stream);
    weft__memory_count(conn);
}

int weft_http_begin(weft_http *http, const weft_http_answer_opts *opts, const weft_http_stream *stream) {
    static const weft_http_answer_opts none;
    weft_buf headers = {0};
    if (!http->conn)
        return -EPIPE;
    if (http->streams)
        return -EALREADY;
    opts = opts ? opts : &none;
    int r = weft__http_judge_answer(http, opts, &headers);
    if (r == 204 || r == 304)
        r = -EINVAL;
    if (r >= 0)
        r = begin_answer(http, r, opts, weft__buf_len(&headers) ? weft__buf_head(&headers) : NULL);
    weft__buf_done(&headers, http->alloc);
    if (r >= 0)
        start_streaming(http, opts->type, stream);
    return r;
}

int weft_http_write(weft_http *http, weft_bytes part) {
    weft_conn *conn = http->conn;
    if (!conn)
        return -EPIPE;
    if (!http->streams)
        return -EINVAL; /* it would come before the head */
    if (weft__buf_len(&conn->web->out) > HARD_LIMIT)
        return -ENOBUFS;
    int r = put_coded_part(http, part);
    if (r < 0)
        return r;
    weft__stream_flush_later(&conn->stream);
    weft__memory_count(conn);
    http->full |= weft__buf_len(&conn->web->out) > SOFT_LIMIT;
    return http->full;
}

int weft_http_end(weft_http *http) {
    static const char last[] = "0\r\n\r\n";
    weft_conn *conn = http->conn;
    if (!http->streams)
        return weft_http_answer(http, 500, NULL, (weft_bytes){0}) < 0 ? -EPIPE : -EINVAL;
    weft_web *web = conn ? conn->web : NULL;
    int r = conn ? 0 : -EPIPE;
    if (conn && http->chunked && !web->head_only)
        r = weft__buf_put(&web->out, http->alloc, last, sizeof last - 1);
    if (conn)
        web->http = NULL;
    weft__http_free(http);
    if (conn && r < 0)
        weft__conn_close(conn, r, false);
    else if (conn)
        weft__web_answered(conn);
    return r;
}
