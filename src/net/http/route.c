/* Routes: the program's own HTTP paths, and the requests handed to them. */
#include <errno.h>
#include <stdio.h>

#include "http_events.h"
#include "http_request.h"

struct weft_public {
    struct weft_public *next;
    char path[];
};

/* ---- the table ---- */

static bool path_matches(const char *pattern, weft_bytes path) {
    size_t len = strlen(pattern);
    if (len && pattern[len - 1] == '*')
        return path.len >= len - 1 && memcmp(path.data, pattern, len - 1) == 0;
    return weft__bytes_are(path, pattern);
}

/* A GET route answers HEAD too; the answer's body is left out when it is written. */
static bool route_takes(const weft_route *route, weft_bytes method) {
    return weft__bytes_are(method, route->method) || (weft__bytes_are(method, "HEAD") && strcmp(route->method, "GET") == 0);
}

static size_t route_strength(const weft_route *route) {
    size_t len = strlen(route->path);
    return len && route->path[len - 1] == '*' ? len : SIZE_MAX;
}

const weft_route *weft__route_find(const weft_server *server, weft_bytes method, weft_bytes path, char *ret_allow,
                                   size_t size) {
    const weft_route *best = NULL;
    size_t used = 0;
    *ret_allow = '\0';
    for (const weft_route *route = server->routes; route; route = route->next) {
        if (!path_matches(route->path, path))
            continue;
        if (route_takes(route, method) && (!best || route_strength(route) > route_strength(best)))
            best = route;
        if (used + strlen(route->method) + 3 < size)
            used += (size_t) snprintf(ret_allow + used, size - used, "%s%s", used ? ", " : "", route->method);
    }
    return best;
}

bool weft__route_public(const weft_server *server, weft_bytes path) {
    for (const struct weft_public *at = server->publics; at; at = at->next)
        if (path_matches(at->path, path))
            return true;
    return false;
}

static weft_route *free_route(const weft_alloc *alloc, weft_route *route) {
    weft__free(alloc, route->method);
    weft__free(alloc, route->path);
    return weft__free(alloc, route);
}

int weft_server_route(weft_server *server, const char *method, const char *path, weft_route_handler *handler, void *ctx) {
    const weft_alloc *alloc = server->alloc;
    if (!method || !path || !handler)
        return -EINVAL;
    weft_route *route = weft__zalloc(alloc, sizeof *route);
    if (!route)
        return -ENOMEM;
    *route = (weft_route){.next = server->routes,
                          .method = weft__strndup(alloc, method, strlen(method)),
                          .path = weft__strndup(alloc, path, strlen(path)),
                          .handler = handler,
                          .ctx = ctx};
    if (!route->method || !route->path) {
        free_route(alloc, route);
        return -ENOMEM;
    }
    server->routes = route;
    return 0;
}

int weft_server_public(weft_server *server, const char *path) {
    if (!path)
        return -EINVAL;
    struct weft_public *public = weft__alloc(server->alloc, sizeof *public + strlen(path) + 1);
    if (!public)
        return -ENOMEM;
    public->next = server->publics;
    memcpy(public->path, path, strlen(path) + 1);
    server->publics = public;
    return 0;
}

void weft__routes_done(weft_server *server) {
    while (server->routes) {
        weft_route *route = server->routes;
        server->routes = route->next;
        free_route(server->alloc, route);
    }
    while (server->publics) {
        struct weft_public *public = server->publics;
        server->publics = public->next;
        weft__free(server->alloc, public);
    }
}

/* ---- one request ---- */

static size_t request_text_size(const weft_asked *asked) {
    const weft_http_head *head = asked->head;
    size_t size = head->method.len + asked->path.len + asked->query.len + 3;
    if (asked->auth)
        size += strlen(asked->auth->name) + strlen(asked->auth->scopes) + 2;
    for (size_t i = 0; i < head->header_count; i++)
        size += head->headers[i].name.len + head->headers[i].value.len + 2;
    return size;
}

static const char *put_request_text(char **at, weft_bytes text) {
    char *start = *at;
    if (text.len)
        memcpy(start, text.data, text.len);
    start[text.len] = '\0';
    *at = start + text.len + 1;
    return start;
}

static weft_bytes text_bytes(const char *text) {
    return (weft_bytes){text, strlen(text)};
}

/* The token may be gone before the answer. */
static void keep_auth(weft_http *http, const weft_auth *auth, char **at) {
    if (!auth)
        return;
    http->identity.name = put_request_text(at, text_bytes(auth->name));
    http->identity.scopes = put_request_text(at, text_bytes(auth->scopes));
}

/* The query without "token=...", which must not come into anybody's log. */
static const char *put_query(char **at, weft_bytes query) {
    char *start = *at, *to = start;
    for (const char *from = query.data, *end = from + query.len; from < end;) {
        const char *amp = memchr(from, '&', (size_t) (end - from));
        size_t len = (size_t) ((amp ? amp : end) - from);
        if (len < 6 || memcmp(from, "token=", 6) != 0) {
            if (to > start)
                *to++ = '&';
            memcpy(to, from, len);
            to += len;
        }
        from += len + 1;
    }
    *to = '\0';
    *at = to + 1;
    return start;
}

int weft__http_new(weft_conn *conn, const weft_asked *asked, weft_http **ret) {
    const weft_http_head *head = asked->head;
    const weft_alloc *alloc = conn->stream.loop->alloc;
    size_t table = sizeof(weft_http) + head->header_count * sizeof((weft_http *) NULL)->headers[0];
    weft_http *http = weft__zalloc(alloc, table + request_text_size(asked));
    if (!http)
        return -ENOMEM;
    char *at = (char *) http + table;
    http->conn = conn;
    http->alloc = alloc;
    http->route = asked->route;
    weft__web_identity(conn, asked, &http->origin, http->name, &http->identity);
    keep_auth(http, asked->auth, &at);
    http->method = put_request_text(&at, head->method);
    http->path = put_request_text(&at, asked->path);
    http->query = put_query(&at, asked->query);
    http->chunked = head->minor >= 1;
    http->header_count = head->header_count;
    for (size_t i = 0; i < head->header_count; i++) {
        http->headers[i].name = put_request_text(&at, head->headers[i].name);
        http->headers[i].value = put_request_text(&at, head->headers[i].value);
    }
    *ret = http;
    return 0;
}

void weft__http_free(weft_http *http) {
    weft__buf_done(&http->body, http->alloc);
    weft__free(http->alloc, http);
}

void weft__http_call(weft_http *http, weft_bytes body) {
    if (weft__buf_put(&http->body, http->alloc, body.data, body.len) < 0) {
        weft_http_answer(http, 503, NULL, (weft_bytes){0});
        return;
    }
    http->called = true;
    http->route->handler(http, http->route->ctx);
}

/* A request whose handler has not been called yet has no other owner. */
void weft__http_orphan(weft_http *http) {
    http->conn = NULL;
    if (!http->called)
        weft__http_free(http);
    else if (http->streams && http->stream.on_gone)
        http->stream.on_gone(http, http->stream.ctx);
}

const char *weft_http_method(const weft_http *http) {
    return http->method;
}

const char *weft_http_path(const weft_http *http) {
    return http->path;
}

const char *weft_http_query(const weft_http *http) {
    return http->query;
}

const char *weft_http_header(const weft_http *http, const char *name) {
    for (size_t i = 0; name && i < http->header_count; i++)
        if (strcasecmp(http->headers[i].name, name) == 0)
            return http->headers[i].value;
    return NULL;
}

weft_bytes weft_http_body(const weft_http *http) {
    return (weft_bytes){weft__buf_head(&http->body), weft__buf_len(&http->body)};
}

const weft_identity *weft_http_identity(const weft_http *http) {
    return &http->identity;
}

int weft__http_events(weft_http *http, const char *dialect, weft_peer **ret) {
    weft_conn *conn = http->conn;
    weft_identity who = http->identity;
    if (!conn) {
        weft__http_free(http);
        return -EPIPE;
    }
    who.dialect = dialect;
    conn->web->http = NULL; /* it is over, and not the connection's to tell */
    int r = weft__web_stream(conn, &who, ret);
    if (r < 0 && r != -EPIPE) {
        conn->web->http = http;
        weft_http_answer(http, 503, NULL, (weft_bytes){0});
        return r;
    }
    weft__http_free(http);
    return r;
}
