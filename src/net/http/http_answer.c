/* Whole answers of routes: their headers are checked here, because names and values often come from elsewhere (a file's
 * name, a database) and must not end their line. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "http1_bytes.h"
#include "http_request.h"

/* ---- what may be said ---- */

static bool is_value(const char *text) {
    return weft__http_is(text, HTTP_VALUE);
}

/* An entity tag has no quotes and no blanks in it (RFC 9110 section 8.8.3). */
static bool is_tag(const char *text) {
    for (const char *at = text; *at; at++)
        if ((unsigned char) *at <= ' ' || *at == '"' || *at == 0x7f)
            return false;
    return *text != '\0';
}

/* What these say is the server's to decide, or has a member of its own. */
static bool is_reserved(const char *name) {
    static const char *const names[] = {"content-length", "transfer-encoding", "connection", "date", "content-type",
                                        "etag",           "cache-control"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_header(const weft_header *header) {
    return *header->name && weft__http_is(header->name, HTTP_TOKEN) && !is_reserved(header->name) && header->value &&
           is_value(header->value);
}

static bool is_answer(const weft_http_answer_opts *opts) {
    for (const weft_header *at = opts->headers; at && at->name; at++)
        if (!is_header(at))
            return false;
    return (!opts->status || (opts->status >= 200 && opts->status <= 599)) && (!opts->type || is_value(opts->type)) &&
           (!opts->cache || is_value(opts->cache)) && (!opts->etag || is_tag(opts->etag));
}

/* ---- saying it ---- */

static int put_header_line(weft_buf *out, const weft_alloc *alloc, const char *const *texts) {
    int r = 0;
    for (; r >= 0 && *texts; texts++)
        r = weft__buf_put(out, alloc, *texts, strlen(*texts));
    return r < 0 ? r : weft__buf_put(out, alloc, "\r\n", 2);
}

/* The tag is a weak one, because the same content may go out compressed. */
static int put_headers(weft_buf *out, const weft_alloc *alloc, const weft_http_answer_opts *opts) {
    int r = 0;
    if (opts->etag)
        r = put_header_line(out, alloc, (const char *const[]){"ETag: W/\"", opts->etag, "\"", NULL});
    if (r >= 0 && opts->cache)
        r = put_header_line(out, alloc, (const char *const[]){"Cache-Control: ", opts->cache, NULL});
    for (const weft_header *at = opts->headers; r >= 0 && at && at->name; at++)
        r = put_header_line(out, alloc, (const char *const[]){at->name, ": ", at->value, NULL});
    return r;
}

int weft__http_judge_answer(const weft_http *http, const weft_http_answer_opts *opts, weft_buf *ret) {
    if (!is_answer(opts))
        return -EINVAL;
    int r = put_headers(ret, http->alloc, opts);
    if (r >= 0 && weft__buf_len(ret))
        r = weft__buf_put(ret, http->alloc, "", 1);
    return r < 0 ? r : opts->status ? opts->status : 200;
}

/* ---- If-None-Match ---- */

/* Is this tag in the list? Weak or strong is the same here (RFC 9110 section 13.1.2). */
static bool lists_tag(const char *list, const char *tag) {
    size_t len = strlen(tag);
    if (strcmp(list, "*") == 0)
        return true;
    for (const char *at = list, *end; (at = strchr(at, '"')) && (end = strchr(at + 1, '"')); at = end + 1)
        if ((size_t) (end - at - 1) == len && memcmp(at + 1, tag, len) == 0)
            return true;
    return false;
}

static bool has_it_already(const weft_http *http, const weft_http_answer_opts *opts) {
    const char *list = weft_http_header(http, "if-none-match");
    bool reads = strcmp(http->method, "GET") == 0 || strcmp(http->method, "HEAD") == 0;
    return list && opts->etag && reads && (!opts->status || opts->status == 200) && lists_tag(list, opts->etag);
}

/* ---- the answer ---- */

int weft_http_answer_with(weft_http *http, const weft_http_answer_opts *opts) {
    static const weft_http_answer_opts none;
    weft_conn *conn = http->conn;
    if (http->streams) { /* its head has been sent: all that can be done is to end it */
        weft_http_end(http);
        return -EALREADY;
    }
    opts = opts ? opts : &none;
    weft_buf headers = {0};
    int r = -EPIPE, status = weft__http_judge_answer(http, opts, &headers);
    bool fine = status >= 0, same = fine && has_it_already(http, opts);
    if (conn) {
        conn->web->http = NULL;
        r = weft__web_answer(conn,
                             same                ? 304
                             : fine              ? status
                             : status == -ENOMEM ? 503
                                                 : 500,
                             fine && !same ? opts->type : NULL,
                             fine && weft__buf_len(&headers) ? weft__buf_head(&headers) : NULL,
                             fine && !same ? opts->body : (weft_bytes){0});
    }
    weft__buf_done(&headers, http->alloc);
    weft__http_free(http);
    return r < 0 || fine ? r : status;
}

int weft_http_answer(weft_http *http, int status, const char *type, weft_bytes body) {
    return weft_http_answer_with(http, &(weft_http_answer_opts){.status = status ? status : -1, .type = type, .body = body});
}
