/* Answers: one head, one body, in one piece of memory. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "admission.h"
#include "http_coding.h"

/* A head of ours without what others made as long as they liked: status line and three headers. */
#define MAX_HEAD 256

const char *weft__server_date(weft_server *server) {
    time_t now = time(NULL);
    struct tm parts;
    if (now != (time_t) server->date_second) {
        server->date_second = now;
        gmtime_r(&now, &parts);
        strftime(server->date, sizeof server->date, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    }
    return server->date;
}

/* These end with their head, whatever it says: what followed would be taken for the next answer (RFC 9112 section 6.3). */
static bool is_bodiless(int status) {
    return status == 204 || status == 304;
}

/* A header whose value is as long as somebody made it. */
static int put_answer_header(weft_web *web, const weft_alloc *alloc, const char *name, const char *value) {
    if (!value)
        return 0;
    int r = weft__buf_put(&web->out, alloc, name, strlen(name));
    if (r >= 0)
        r = weft__buf_put(&web->out, alloc, value, strlen(value));
    return r < 0 ? r : weft__buf_put(&web->out, alloc, "\r\n", 2);
}

int weft__web_head(weft_conn *conn, int status, const char *type, const char *extra, const char *length) {
    weft_web *web = conn->web;
    const weft_alloc *alloc = conn->stream.loop->alloc;
    char head[MAX_HEAD];
    int n = snprintf(head, sizeof head, "HTTP/1.1 %d %s\r\nDate: %s\r\n%s%s", status, weft__http_reason(status),
                     weft__server_date(weft__conn_server(conn)), length, web->keep_alive ? "" : "Connection: close\r\n");
    assert(n > 0 && (size_t) n < sizeof head);
    int r = weft__buf_put(&web->out, alloc, head, (size_t) n);
    if (r >= 0 && extra)
        r = weft__buf_put(&web->out, alloc, extra, strlen(extra));
    if (r >= 0)
        r = put_answer_header(web, alloc, "Content-Type: ", type);
    if (r >= 0)
        r = put_answer_header(
            web, alloc, "Vary: Origin\r\nAccess-Control-Expose-Headers: *\r\nAccess-Control-Allow-Origin: ", web->origin);
    return r < 0 ? r : weft__buf_put(&web->out, alloc, "\r\n", 2);
}

/* A 204 says nothing about a body (RFC 9110 section 8.6). */
static int write_answer_head(weft_conn *conn, int status, const char *type, const char *extra, size_t len) {
    char length[48] = "";
    if (!is_bodiless(status))
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", len);
    return weft__web_head(conn, status, type, extra, length);
}

void weft__web_answered(weft_conn *conn) {
    weft_web *web = conn->web;
    web->origin = weft__free(conn->stream.loop->alloc, web->origin);
    weft__stream_flush_later(&conn->stream);
    weft__memory_count(conn);
    if (!web->keep_alive) {
        web->state = WEFT_WEB_DONE;
        weft__conn_close(conn, 0, true);
        return;
    }
    web->state = WEFT_WEB_HEAD;
    web->rested = true;
    web->scanned = 0;
    weft__stream_pause(&conn->stream, false);
}

static int answer_plain(weft_conn *conn, int status, const char *type, const char *extra, weft_bytes body) {
    weft_web *web = conn->web;
    int r = write_answer_head(conn, status, type, extra, body.len);
    if (r >= 0 && body.len && !web->head_only && !is_bodiless(status))
        r = weft__buf_put(&web->out, conn->stream.loop->alloc, body.data, body.len);
    if (r < 0)
        weft__conn_close(conn, r, false);
    else
        weft__web_answered(conn);
    return r;
}

/* A body that is worth packing: packed for who takes that, and caches are told that it depends. If it cannot be packed, it
 * goes out as it is. */
static int answer_text(weft_conn *conn, int status, const char *type, const char *extra, weft_bytes body) {
    static const char vary[] = "Vary: Accept-Encoding\r\n", coding[] = "Content-Encoding: gzip\r\n";
    const weft_alloc *alloc = conn->stream.loop->alloc;
    weft_buf packed = {0}, headers = {0};
    bool pack = conn->web->takes_packed && weft__pack_body(weft__conn_server(conn), body, &packed) >= 0;
    if (pack)
        body = (weft_bytes){weft__buf_head(&packed), weft__buf_len(&packed)};
    int r = weft__buf_put(&headers, alloc, vary, sizeof vary - 1);
    if (r >= 0 && pack)
        r = weft__buf_put(&headers, alloc, coding, sizeof coding - 1);
    if (r >= 0 && extra)
        r = weft__buf_put(&headers, alloc, extra, strlen(extra));
    if (r >= 0)
        r = weft__buf_put(&headers, alloc, "", 1);
    if (r >= 0)
        r = answer_plain(conn, status, type, weft__buf_head(&headers), body);
    else
        weft__conn_close(conn, r, false);
    weft__buf_done(&headers, alloc);
    weft__buf_done(&packed, alloc);
    return r;
}

int weft__web_answer(weft_conn *conn, int status, const char *type, const char *extra, weft_bytes body) {
    bool text = !is_bodiless(status) && weft__worth_gzip(type, extra, body.len);
    return text ? answer_text(conn, status, type, extra, body) : answer_plain(conn, status, type, extra, body);
}

/* Nobody knows what a refused client sends next, and whether it is the body that was not wanted: such a connection ends,
 * unless there was no body. */
void weft__web_refuse(weft_conn *conn, int status, const char *reason, const char *extra) {
    char body[200];
    weft_web *web = conn->web;
    bool harmless = web->state == WEFT_WEB_HEAD && (status == 404 || status == 405 || status == 406 || status == 401);
    if (!harmless)
        web->keep_alive = false;
    int n = snprintf(body, sizeof body, "{\"status\":%d,\"error\":\"%s\",\"reason\":\"%s\"}\n", status,
                     weft__http_reason(status), reason);
    weft__web_answer(conn, status, "application/json", extra, (weft_bytes){body, (size_t) n});
}
