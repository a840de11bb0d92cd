/* A real server for fuzzing above the codecs: HTTP, WebSocket and the peer behind them on one end of a socket pair, a client
 * that sends anything on the other end. One loop, one thread, no waiting: the loop turns as often as the client does
 * something.
 *
 * What must hold whatever is sent: nothing crashes, nothing stays allocated, every answer is framed as it should be. */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weft/weft.h>

#include "buf.h"
#include "fuzz_memory.h"
#include "http_events.h"
#include "http_server.h"
#include "server.h"

#define MAX_KEPT 8
/* Turns of the loop after which a connection that should be over is taken for stuck. */
#define MAX_TURNS 2000

#define FUZZ_TOKEN "s3cret"

/* ---- the server ---- */

typedef struct fuzz_world {
    weft_loop *loop;
    weft_service *service;
    weft_server *server;
    int client; /* -1: closed */
    uint32_t random;
    weft_req *kept[MAX_KEPT];
    size_t kept_count;
    weft_http *routes[MAX_KEPT];
    size_t route_count;
    weft_buf out; /* all that the server said */
    bool ended;   /* the server has ended its half */
} fuzz_world;

static inline unsigned fuzz_pick(fuzz_world *w, unsigned below) {
    w->random = w->random * 1664525 + 1013904223;
    return (w->random >> 16) % below;
}

static inline int fuzz_echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

static inline int fuzz_keep(weft_req *req, const weft_json *params, void *ctx) {
    fuzz_world *w = ctx;
    (void) params;
    if (w->kept_count == MAX_KEPT || weft_req_is_notification(req))
        return weft_refuse(req, 503, "full", "full");
    w->kept[w->kept_count++] = req;
    return 0;
}

static inline int fuzz_bye(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    weft_peer *peer = weft_req_peer(req);
    int r = weft_reply(req, weft_str("bye"));
    weft_peer_free(peer);
    return r;
}

static inline int fuzz_blob(weft_req *req, const weft_json *params, void *ctx) {
    static char text[6000];
    (void) params, (void) ctx;
    memset(text, 'x', sizeof text);
    weft_part(req, weft_str("part"));
    return weft_reply(req, weft_strn(text, sizeof text));
}

static const weft_method fuzz_methods[] = {
    {.name = "e", .handler = fuzz_echo},
    {.name = "k", .handler = fuzz_keep, .flags = WEFT_ROW_SOON | WEFT_ROW_CHANGES},
    {.name = "y", .handler = fuzz_bye},
    {.name = "b", .handler = fuzz_blob},
    {.name = "s", .handler = fuzz_echo, .scope = "admin"},
    {0},
};

static inline void fuzz_page(weft_http *http, void *ctx) {
    (void) ctx;
    weft_http_answer(http, 200, "text/html", (weft_bytes){"<p>", 3});
}

static inline void fuzz_form(weft_http *http, void *ctx) {
    fuzz_world *w = ctx;
    if (w->route_count == MAX_KEPT)
        weft_http_answer(http, 503, NULL, (weft_bytes){0});
    else
        w->routes[w->route_count++] = http;
}

static inline void fuzz_answer_kept(fuzz_world *w) {
    if (w->kept_count)
        weft_reply(w->kept[--w->kept_count], weft_bool(true));
    if (w->route_count)
        weft_http_answer(w->routes[--w->route_count], 201, "text/plain", (weft_bytes){"made", 4});
}

static inline weft_listener *fuzz_listener(fuzz_world *w) {
    return WEFT_CONTAINER(w->server->listeners.next, weft_listener, link);
}

/* A stream of the route's own, which it may end at once. */
static inline void fuzz_stream(weft_http *http, void *ctx) {
    weft_peer *peer = NULL;
    bool ends = strstr(weft_http_query(http), "end") != NULL;
    (void) ctx;
    if (weft__http_events(http, "stream", &peer) < 0)
        return;
    weft_notify(peer, "begin", weft_none());
    if (ends)
        weft_peer_free(peer);
}

static inline void fuzz_listen(fuzz_world *w, bool tokens) {
    static const weft_token list[] = {
        {.token = FUZZ_TOKEN, .name = "me"}, {.token = "small", .name = "guest", .scopes = "x"}, {0}};
    static const char *const origins[] = {"https://app.example", NULL};
    char url[64];
    weft_listen_opts opts = {.tokens = tokens ? list : NULL, .origins = origins};
    require(weft_server_listen(w->server, "http://127.0.0.1:0/rpc", &opts) == 0);
    snprintf(url, sizeof url, "ws://127.0.0.1:%d/ws", fuzz_listener(w)->port);
    require(weft_server_listen(w->server, url, &opts) == 0);
    require(weft_server_route(w->server, "GET", "/page", fuzz_page, w) == 0);
    require(weft_server_route(w->server, "POST", "/form*", fuzz_form, w) == 0);
    require(weft_server_route(w->server, "GET", "/stream", fuzz_stream, w) == 0);
    require(weft_server_public(w->server, "/page") == 0);
    require(weft_server_public(w->server, "/stream") == 0);
}

static inline void fuzz_connect(fuzz_world *w) {
    int pair[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    w->client = pair[0];
    weft__listener_serve(fuzz_listener(w), pair[1]);
}

/* tight: there is so little memory for buffers that connections have to go for it. */
static inline void fuzz_begin(fuzz_world *w, bool tokens, bool tight, uint32_t seed) {
    *w = (fuzz_world){.random = seed, .client = -1};
    weft_service_opts opts = {
        .methods = fuzz_methods,
        .ctx = w,
        .alloc = &counting,
        .limits = {.max_body = 5000, .max_body_stranger = 2000, .out_soft = 4000, .max_batch = 20, .max_requests = 6}};
    require(weft_service_new(&opts, &w->service) == 0);
    weft_server_opts server = {.service = w->service, .data = w, .max_memory = tight ? 1500 : 0};
    require(weft_loop_new(&counting, &w->loop) == 0);
    require(weft_server_new(w->loop, &server, &w->server) == 0);
    fuzz_listen(w, tokens);
    fuzz_connect(w);
}

/* ---- the client ---- */

static inline void fuzz_read(fuzz_world *w) {
    char bytes[65536];
    ssize_t n;
    while (w->client >= 0 && !w->ended && (n = recv(w->client, bytes, sizeof bytes, MSG_DONTWAIT)) != -1) {
        require(weft__buf_put(&w->out, NULL, bytes, (size_t) n) == 0);
        w->ended = n == 0;
    }
}

static inline void fuzz_turn(fuzz_world *w) {
    weft_loop_once(w->loop, false);
}

/* One piece, and now and then something else that happens in a server's life. */
static inline void fuzz_send(fuzz_world *w, const char *data, size_t len) {
    while (len && w->client >= 0) {
        ssize_t n = send(w->client, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN)
            return; /* it has hung up */
        if (n > 0) {
            data += n;
            len -= (size_t) n;
        } else
            fuzz_read(w);
        fuzz_turn(w);
    }
    switch (fuzz_pick(w, 16)) {
    case 0:
    case 1:
    case 2:
        fuzz_answer_kept(w);
        break;
    case 3:
        weft_server_broadcast(w->server, "news", WEFT_ARR(weft_str("told")), NULL, NULL);
        break;
    case 4:
    case 5:
    case 6:
        fuzz_read(w);
        break;
    default:
        break;
    }
    fuzz_turn(w);
}

/* End the client's half, or vanish, and wait until the server has forgotten it. */
static inline void fuzz_end(fuzz_world *w) {
    bool vanishes = fuzz_pick(w, 4) == 0;
    if (vanishes) {
        close(w->client);
        w->client = -1;
    } else
        shutdown(w->client, SHUT_WR);
    for (int i = 0; i < MAX_TURNS && w->server->conn_count; i++) {
        fuzz_turn(w);
        fuzz_answer_kept(w);
        fuzz_read(w);
        if (w->ended && w->client >= 0) {
            close(w->client);
            w->client = -1;
        }
    }
    require(w->server->conn_count == 0 && w->server->network_count == 0 && w->server->held == 0);
    if (w->client >= 0)
        close(w->client);
    while (w->kept_count || w->route_count)
        fuzz_answer_kept(w);
    weft_server_free(w->server);
    weft_loop_free(w->loop);
    weft_service_unref(w->service);
    require(live == 0);
}

/* ---- looking at what came out ---- */

static inline size_t fuzz_content_length(const char *head, size_t len) {
    const char *at = memmem(head, len, "Content-Length: ", 16);
    return at ? (size_t) strtoul(at + 16, NULL, 10) : 0;
}

static inline bool fuzz_begins(const char *at, const char *end, const char *with) {
    size_t len = strlen(with);
    return (size_t) (end - at) >= len && memcmp(at, with, len) == 0;
}

/* Answer after answer; the last may be cut when the client left. Where the answers end and another protocol begins (101, an
 * event stream), or the end. */
static inline const char *fuzz_check_answers(const fuzz_world *w, int *ret_last) {
    const char *at = weft__buf_head(&w->out), *end = at ? at + weft__buf_len(&w->out) : at;
    *ret_last = 0;
    while (at < end) {
        const char *stop = memmem(at, (size_t) (end - at), "\r\n\r\n", 4);
        if (!stop)
            return end;
        require(fuzz_begins(at, end, "HTTP/1.1 "));
        require(stop - at >= 12 && isdigit((unsigned char) at[9]) && isdigit((unsigned char) at[10]) &&
                isdigit((unsigned char) at[11]));
        *ret_last = 100 * (at[9] - '0') + 10 * (at[10] - '0') + at[11] - '0';
        require(*ret_last >= 100 && *ret_last <= 599);
        size_t body = fuzz_content_length(at, (size_t) (stop - at));
        bool events = memmem(at, (size_t) (stop - at), "text/event-stream", 17) != NULL;
        at = stop + 4;
        if (*ret_last == 101 || (events && *ret_last == 200))
            return at;
        if (at == end || fuzz_begins(at, end, "HTTP/1.1 "))
            continue; /* the answer to a HEAD has no body */
        if (body > (size_t) (end - at))
            return end;
        require(body > 0);
        at += body;
    }
    return end;
}

static inline void fuzz_done(fuzz_world *w) {
    weft__buf_done(&w->out, NULL);
}

#endif
