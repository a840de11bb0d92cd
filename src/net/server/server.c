/* A server: endpoints in, connections out, and the orderly end of both. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "admission.h"
#include "gzip.h"
#include "http_server.h"
#include "link.h"
#include "local.h"
#include "login.h"

/* As in docs and headers: zero means these. */
#define MAX_CONNECTIONS 10000
#define MAX_CONNECTIONS_PER_UID 4096
#define MAX_STRANGERS 1024
#define MAX_STRANGERS_PER_ADDRESS 64
#define MAX_MEMORY ((size_t) 512 * 1024 * 1024)
#define AUTH_MS (5 * 1000)
#define HEAD_MS (10 * 1000)
#define BODY_MS (60 * 1000)
#define GRACE_MS (10 * 1000)

#define MAX_NOTE 512

static size_t size_or(size_t value, size_t fallback) {
    return value ? value : fallback;
}

static int64_t ms_or(int64_t value, int64_t fallback) {
    return value ? value : fallback;
}

static void set_defaults(weft_server_opts *opts) {
    opts->max_connections = size_or(opts->max_connections, MAX_CONNECTIONS);
    opts->max_connections_per_uid = size_or(opts->max_connections_per_uid, MAX_CONNECTIONS_PER_UID);
    opts->max_strangers = size_or(opts->max_strangers, MAX_STRANGERS);
    if (opts->max_strangers > opts->max_connections / 2) /* the others have places that strangers cannot take */
        opts->max_strangers = opts->max_connections > 1 ? opts->max_connections / 2 : 1;
    opts->max_memory = size_or(opts->max_memory, MAX_MEMORY);
    opts->max_strangers_per_address = size_or(opts->max_strangers_per_address, MAX_STRANGERS_PER_ADDRESS);
    opts->auth_ms = ms_or(opts->auth_ms, AUTH_MS);
    opts->head_ms = ms_or(opts->head_ms, HEAD_MS);
    opts->body_ms = ms_or(opts->body_ms, BODY_MS);
    opts->grace_ms = ms_or(opts->grace_ms, GRACE_MS);
}

void weft__server_note(weft_server *server, const char *format, ...) {
    char line[MAX_NOTE];
    va_list args;
    if (!server->opts.on_note && !server->listening)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (server->listening && !*server->trouble)
        snprintf(server->trouble, sizeof server->trouble, "%.*s", WEFT_TROUBLE_MAX - 1, line);
    if (server->opts.on_note)
        server->opts.on_note(server, line, server->opts.data);
}

void weft__server_take(weft_server *server, weft_take *take, void *ctx) {
    server->take = take;
    server->take_ctx = ctx;
}

/* ---- memory ---- */

weft_server *weft__server_ref(weft_server *server) {
    server->refs++;
    return server;
}

static void deliver_called(weft_later *later) {
    weft_service_deliver(WEFT_CONTAINER(later, weft_server, called)->service);
}

static void on_called(void *ctx) {
    weft_server *server = ctx;
    weft__later(server->loop, &server->called);
}

static void end_turn(weft_later *later) {
    weft__service_settle(WEFT_CONTAINER(later, weft_server, turn)->service);
}

static void on_turn(void *ctx) {
    weft_server *server = ctx;
    weft__later_first(server->loop, &server->turn);
}

static void destroy_server(weft_server *server) {
    const weft_alloc *alloc = server->alloc;
    weft__service_unset_wake(server->service, server);
    weft__service_unset_turn(server->service, server);
    weft__later_cancel(&server->called);
    weft__later_cancel(&server->turn);
    for (size_t i = 0; i < server->endpoint_count; i++)
        weft__endpoint_free(server->endpoints[i]);
    weft__free(alloc, server->endpoints);
    while (!weft__list_empty(&server->listeners))
        weft__listener_free(WEFT_CONTAINER(server->listeners.next, weft_listener, link));
    weft__routes_done(server);
    weft__logins_free(server);
    weft__gzip_free(server->gzip);
    weft_service_unref(server->service);
    if (server->spare_fd >= 0)
        close(server->spare_fd);
    weft_loop *loop = server->loop;
    weft__free(alloc, server);
    weft__loop_leave(loop);
}

void weft__server_unref(weft_server *server) {
    if (--server->refs == 0)
        destroy_server(server);
}

/* ---- stopping ---- */

static void for_all_conns(weft_server *server, void (*each)(weft_conn *conn)) {
    /* A connection leaves the list only when it is closed completely, which never happens inside a callback. */
    for (weft_link *at = server->conns.next; at != &server->conns; at = at->next)
        each(WEFT_CONTAINER(at, weft_conn, link));
}

static void close_listeners(weft_server *server) {
    weft__listener_end_rest(server);
    weft__timer_stop(server->loop, &server->expiry);
    for (weft_link *at = server->listeners.next; at != &server->listeners; at = at->next)
        weft__listener_close(WEFT_CONTAINER(at, weft_listener, link));
}

static void tell_stopped(weft_later *later) {
    weft_server *server = WEFT_CONTAINER(later, weft_server, stopped);
    weft__timer_stop(server->loop, &server->timer);
    server->has_stopped = true;
    if (server->running)
        weft_loop_stop(server->loop);
    if (server->on_stopped)
        server->on_stopped(server, server->stopped_ctx);
}

void weft__server_left(weft_server *server) {
    if (server->stopping && server->conn_count == 0)
        weft__later(server->loop, &server->stopped);
}

static void leave_now(weft_conn *conn) {
    weft__conn_leave(conn, true);
}

static void leave_when_done(weft_conn *conn) {
    weft__conn_leave(conn, false);
}

static void close_now(weft_conn *conn) {
    weft__conn_close(conn, -ECANCELED, false);
}

static void on_grace_over(weft_timer *timer) {
    for_all_conns(WEFT_CONTAINER(timer, weft_server, timer), leave_now);
}

void weft_server_refuse(weft_server *server) {
    close_listeners(server);
}

int weft_server_renew(weft_server *server) {
    int made = 0;
    for (weft_link *at = server->listeners.next; at != &server->listeners; at = at->next) {
        int r = server->stopping ? 0 : weft__listener_renew(WEFT_CONTAINER(at, weft_listener, link));
        if (r < 0)
            return r;
        made |= r;
    }
    return made;
}

void weft_server_stop(weft_server *server, void (*on_stopped)(weft_server *server, void *ctx), void *ctx) {
    if (server->stopping || server->freed)
        return;
    weft_loop *loop = server->loop;
    bool inner = weft__loop_enter(loop); /* on_close may free the loop, and the server */
    server->stopping = true;
    server->on_stopped = on_stopped;
    server->stopped_ctx = ctx;
    server->refs++;
    close_listeners(server);
    weft__timer_set(loop, &server->timer, weft__after(weft__loop_fresh_now(loop), server->opts.grace_ms));
    for_all_conns(server, leave_when_done);
    weft__server_left(server);
    weft__server_unref(server);
    weft__loop_exit(loop, inner);
}

weft_server *weft_server_free(weft_server *server) {
    if (!server || server->freed)
        return NULL;
    weft_loop *loop = server->loop;
    bool inner = weft__loop_enter(loop);
    server->freed = true;
    server->stopping = false;
    if (server->running)
        weft_loop_stop(loop);
    close_listeners(server);
    for_all_conns(server, close_now);
    server->opts.on_open = NULL;
    server->opts.on_close = NULL;
    server->opts.on_note = NULL;
    weft__timer_stop(server->loop, &server->timer);
    weft__later_cancel(&server->stopped);
    weft__later_cancel(&server->relief);
    weft__later_cancel(&server->revoke);
    weft__server_unref(server);
    weft__loop_exit(loop, inner);
    return NULL;
}

void weft_server_freep(weft_server **server) {
    *server = weft_server_free(*server);
}

/* ---- beginning ---- */

int weft_server_new(weft_loop *loop, const weft_server_opts *opts, weft_server **ret) {
    if (!opts || !opts->service)
        return -EINVAL;
    weft_server *server = weft__zalloc(loop->alloc, sizeof *server);
    if (!server)
        return -ENOMEM;
    server->refs = 1;
    weft__loop_join(loop);
    server->loop = loop;
    server->alloc = loop->alloc;
    server->service = weft_service_ref(opts->service);
    server->opts = *opts;
    set_defaults(&server->opts);
    weft__list_init(&server->listeners);
    weft__list_init(&server->conns);
    weft__list_init(&server->strangers_by_age);
    weft__tally_init(&server->by_uid, server->alloc);
    weft__tally_init(&server->strangers, server->alloc);
    weft__timer_init(&server->timer, on_grace_over);
    weft__timer_init(&server->rest, weft__listener_resume);
    weft__later_init(&server->stopped, tell_stopped);
    weft__later_init(&server->relief, weft__memory_relieve);
    weft__later_init(&server->revoke, weft__tokens_revoke);
    weft__timer_init(&server->expiry, weft__tokens_expired);
    weft__later_init(&server->called, deliver_called);
    weft__later_init(&server->turn, end_turn);
    weft__service_set_wake(server->service, on_called, server);
    weft__service_set_turn(server->service, on_turn, server);
    server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *ret = server;
    return 0;
}

/* Raw byte streams show their token by a method, which is there as soon as somebody may need it. */
static int offer_auth(const weft_endpoint *endpoint) {
    unsigned flags = endpoint->transport->scheme.flags;
    bool bytes = (flags & WEFT_NETWORK) && !(flags & WEFT_OVER_HTTP);
    int r = bytes && endpoint->tokens.asked ? weft_service_add(endpoint->server->service, &weft__auth_method) : 0;
    return r == -EEXIST ? 0 : r;
}

static int listen_at(weft_server *server, const char *url, const weft_listen_opts *opts) {
    weft_endpoint *endpoint;
    size_t size = (server->endpoint_count + 1) * sizeof *server->endpoints;
    weft_endpoint **endpoints = weft__resize(server->alloc, server->endpoints, size);
    if (!endpoints)
        return -ENOMEM;
    server->endpoints = endpoints;
    int r = weft__endpoint_new(server, url, opts, &endpoint);
    if (r < 0)
        return r;
    r = offer_auth(endpoint);
    if (r >= 0)
        r = weft__listener_join(endpoint, opts);
    if (r < 0) {
        weft__endpoint_free(endpoint);
        return r;
    }
    weft__tokens_number(server, &endpoint->tokens);
    server->endpoints[server->endpoint_count++] = endpoint;
    weft__tokens_watch(server);
    return 0;
}

/* Whoever found out more has said so in a note. */
static void explain_listening(weft_server *server, const char *url, int r) {
    if (*server->trouble)
        return;
    const char *why = r == -EADDRINUSE      ? "somebody answers there already"
                      : r == -EADDRNOTAVAIL ? "this machine does not have that address"
                      : r == -EACCES        ? "this user may not listen there"
                      : r == -ESHUTDOWN     ? "the server was stopped"
                                            : weft_strerror(r);
    snprintf(server->trouble, sizeof server->trouble, "%.150s: %.100s", url, why);
}

int weft_server_listen(weft_server *server, const char *url, const weft_listen_opts *opts) {
    static const weft_listen_opts none = {0};
    *server->trouble = '\0';
    server->listening = true;
    int r = !url ? -EINVAL : server->stopping ? -ESHUTDOWN : listen_at(server, url, opts ? opts : &none);
    server->listening = false;
    if (r < 0)
        explain_listening(server, url ? url : "no URL", r);
    return r;
}

const char *weft_server_trouble(const weft_server *server) {
    return server->trouble;
}

const char *weft_server_url(const weft_server *server, size_t index) {
    for (size_t i = 0; i < server->endpoint_count; i++)
        if (!server->endpoints[i]->listener->closed && index-- == 0)
            return server->endpoints[i]->text;
    return NULL;
}

static weft_listener *listener_at(const weft_server *server, const char *url) {
    for (size_t i = 0; i < server->endpoint_count; i++)
        if (!server->endpoints[i]->listener->closed && strcmp(server->endpoints[i]->text, url) == 0)
            return server->endpoints[i]->listener;
    return NULL;
}

int weft_server_unlisten(weft_server *server, const char *url) {
    weft_listener *listener = url ? listener_at(server, url) : NULL;
    if (!listener)
        return -ENOENT;
    listener->closed = true;
    weft__server_ref(server);
    weft__listener_close(listener);
    for (weft_link *at = server->conns.next; at != &server->conns;
         at = at->next) { /* they stay there until they are closed */
        weft_conn *conn = WEFT_CONTAINER(at, weft_conn, link);
        if (conn->endpoint->listener == listener)
            weft__conn_leave(conn, true);
    }
    weft__server_unref(server);
    return 0;
}

size_t weft_server_clients(const weft_server *server) {
    return server->client_count;
}

size_t weft_server_memory(const weft_server *server) {
    return server->held;
}

weft_service *weft_server_service(const weft_server *server) {
    return server->service;
}

weft_loop *weft_server_loop(const weft_server *server) {
    return server->loop;
}

/* ---- broadcast ---- */

int weft_server_broadcast(weft_server *server, const char *method, weft_val params, bool (*keep)(weft_peer *peer, void *ctx),
                          void *ctx) {
    weft_shared *shared;
    int told = 0, r = weft_shared_new(server->service, method, params, &shared);
    if (r < 0)
        return r;
    weft_loop *loop = server->loop;
    bool inner = weft__loop_enter(loop); /* keep() may free everything */
    server->refs++;
    for (weft_link *at = server->conns.next; at != &server->conns; at = at->next) {
        weft_conn *conn = WEFT_CONTAINER(at, weft_conn, link);
        if (conn->told && (!keep || keep(conn->peer, ctx)) && conn->peer && weft_shared_send(shared, conn->peer) >= 0)
            told++;
    }
    weft_shared_free(shared);
    weft__server_unref(server);
    weft__loop_exit(loop, inner);
    return told;
}
