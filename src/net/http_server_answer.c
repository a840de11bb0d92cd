/* Answers: one head, one body, in one piece of memory. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "http_server.h"

/* A head of ours without the origin: status line, six headers, and what a refusal adds. */
#define MAX_HEAD 768

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

/* A 204 has no body and says nothing about one (RFC 9110 section 8.6). */
static int write_head(weft_conn *conn, int status, const char *type, const char *extra, size_t len) {
    weft_web *web = conn->web;
    const weft_alloc *alloc = conn->stream.loop->alloc;
    char head[MAX_HEAD], length[48] = "";
    if (status != 204)
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", len);
    int n = snprintf(head, sizeof head, "HTTP/1.1 %d %s\r\nDate: %s\r\n%s%s%s%s%s%s", status, weft__http_reason(status),
                     weft__server_date(weft__conn_server(conn)), type ? "Content-Type: " : "", type ? type : "",
                     type ? "\r\n" : "", length, web->keep_alive ? "" : "Connection: close\r\n", extra ? extra : "");
    int r = weft__buf_put(&web->out, alloc, head, (size_t) n);
    if (r >= 0 && web->origin) {
        weft_buf *out = &web->out;
        static const char allow[] = "Vary: Origin\r\nAccess-Control-Allow-Origin: ";
        r = weft__buf_put(out, alloc, allow, sizeof allow - 1);
        if (r >= 0)
            r = weft__buf_put(out, alloc, web->origin, strlen(web->origin));
        if (r >= 0)
            r = weft__buf_put(out, alloc, "\r\n", 2);
    }
    return r < 0 ? r : weft__buf_put(&web->out, alloc, "\r\n", 2);
}

/* Ready for the next, or done. */
static void answered(weft_conn *conn) {
    weft_web *web = conn->web;
    web->origin = weft__free(conn->stream.loop->alloc, web->origin);
    weft__stream_flush_later(&conn->stream);
    if (!web->keep_alive) {
        web->state = WEFT_WEB_DONE;
        weft__conn_close(conn, 0, true);
        return;
    }
    web->state = WEFT_WEB_HEAD;
    web->scanned = 0;
    weft__stream_pause(&conn->stream, false);
}

int weft__web_answer(weft_conn *conn, int status, const char *type, const char *extra, weft_bytes body) {
    weft_web *web = conn->web;
    int r = write_head(conn, status, type, extra, body.len);
    if (r >= 0 && body.len && !web->head_only)
        r = weft__buf_put(&web->out, conn->stream.loop->alloc, body.data, body.len);
    if (r < 0)
        weft__conn_close(conn, r, false);
    else
        answered(conn);
    return r;
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
