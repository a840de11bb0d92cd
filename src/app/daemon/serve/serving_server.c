/* What clients meet of "weft serve": its service and server, where it listens, and the tokens it asks for. See serving.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "daemon_folder.h"
#include "debug.h"
#include "failure.h"
#include "link.h"
#include "loop.h"
#include "serving.h"
#include "trust_view.h"

#ifdef WEFT_CHECK_RESULTS
#define CHECK_RESULTS true
#else
#define CHECK_RESULTS false
#endif

#define FIRST_PORT 16180
#define PORT_TRIES 100

/* ---- the service and the server ---- */

void weft__serving_note(weft_server *server, const char *line, void *data) {
    const weft_serving *self = data;
    (void) server;
    weft__warn(self->app, "weft serve: %s", line);
}

/* Messages are logged past the log, on standard error: it must be asked whether it has become too large. */
static void on_serve_message(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text) {
    weft_serving *self = ctx;
    weft__debug_message(NULL, peer, outgoing, text);
    weft__log_rotate(&self->daemon.log);
}

static void on_client_open(weft_server *server, weft_peer *peer, void *data) {
    (void) server;
    weft__serve_hub_opened(((weft_serving *) data)->hub, peer);
}

static void on_client_close(weft_server *server, weft_peer *peer, int why, void *data) {
    weft_serving *self = data;
    (void) server, (void) why;
    weft__serve_hub_closed(self->hub, peer);
    if (weft__serving_is_child(self) && !self->stopping) /* nobody can come any more */
        weft__later(self->loop, &self->parent_gone);
}

/* It may still read, and is answered what it asked for. A question of an agent it cannot answer, and a child has nobody else
 * who could; a runner's and a relay's are answered at their hub. */
static bool on_client_eof(weft_peer *peer, void *data) {
    const weft_serving *self = weft__service_ctx(weft_peer_service(peer));
    (void) data;
    if (weft__serving_is_child(self) && !self->uplink && !self->relay)
        weft__questions_unattended(weft__serve_hub_engine(self->hub));
    return false;
}

static void on_client_drain(weft_server *server, weft_peer *peer, void *data) {
    (void) server;
    weft__serve_hub_drained(((weft_serving *) data)->hub, peer);
}

static int answer_echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

/* For trying out a connection; rpc.discover is the library's, everything else the dialects'. */
static const weft_method echo_row = {.name = "echo", .handler = answer_echo, .help = "answer the params as they came"};

static int answer_reload(weft_req *req, const weft_json *params, void *ctx) {
    weft_reload report = {0};
    (void) params;
    weft__serving_reload(ctx, &report);
    return weft__reload_reply(req, &report);
}

/* Beside the dialects' methods: what only the program itself can do. */
static int add_own_methods(weft_serving *self) {
    self->reload_row = weft__reload_row;
    self->reload_row.handler = answer_reload;
    self->hello = (weft_relay_hello){weft__serve_hub_engine(self->hub), self->relay};
    self->hello_row = weft__relay_hello_row;
    self->known_row = weft__relay_known_row;
    self->hello_row.ctx = self->known_row.ctx = &self->hello;
    int r = weft_service_add(self->service, &echo_row);
    if (r >= 0)
        r = weft_service_add(self->service, &self->hello_row);
    if (r >= 0)
        r = weft_service_add(self->service, &self->known_row);
    return r < 0 ? r : weft_service_add(self->service, &self->reload_row);
}

static bool on_client_raw(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    const weft_serving *self = weft__service_ctx(weft_peer_service(peer));
    (void) binary, (void) data;
    return weft__serve_hub_raw(self->hub, peer, body);
}

static int64_t steady_us(void *ctx) {
    (void) ctx;
    return weft__clock_ns() / 1000;
}

int weft__serving_open_server(weft_serving *self) {
    weft_service_opts opts = {
        .methods = weft__serve_hub_methods(self->hub),
        .gates = weft__serve_gates_list(self->gates, weft__serve_hub_gates(self->hub)),
        .title = "weft",
        .version = weft_version(),
        .limits = self->how->limits,
        .measure = true,
        .now_us = steady_us,
        .on_message = weft__debug_wanted() ? on_serve_message : NULL,
        .ctx = self,
        .check_results = CHECK_RESULTS,
        .named_errors = self->app->layout->aiwg,
    };
    weft_server_opts server_opts = self->how->server;
    self->told = weft__told_methods_new();
    if (self->told)
        opts.notifications = weft__told_methods_rows(self->told);
    int r = self->told ? weft_service_new(&opts, &self->service) : -ENOMEM;
    if (r >= 0)
        r = add_own_methods(self);
    server_opts.service = self->service;
    server_opts.on_note = weft__serving_note;
    server_opts.on_open = on_client_open;
    server_opts.on_close = on_client_close;
    server_opts.on_drain = on_client_drain;
    server_opts.on_eof = on_client_eof;
    server_opts.on_raw = on_client_raw;
    server_opts.data = self;
    return r < 0 ? r : weft_server_new(self->loop, &server_opts, &self->server);
}

/* ---- where it listens ---- */

static int listen_with(weft_serving *self, const char *url, bool network, const weft_tls_opts *tls) {
    const weft_serve_settings *how = self->how;
    weft_listen_opts opts = {
        .tls = *tls,
        .tokens = network && self->token ? self->tokens->tokens : NULL,
        .hosts = how->hosts.count ? how->hosts.items : NULL,
        .origins = how->origins.count ? how->origins.items : NULL,
        .dialect = self->hub ? weft__serve_hub_dialect(self->hub, url) : "",
    };
    weft__serve_gates_limit(self->gates, url, &opts);
    opts.token_later = strcmp(opts.dialect, "tinyvex") == 0; /* tinyvex/auth.setToken */
    if (strcmp(opts.dialect, "acp") == 0)
        opts.id_header = "Acp-Connection-Id"; /* as its remote transport has it */
    return weft_server_listen(self->server, url, &opts);
}

static int listen_at_url(weft_serving *self, const char *url, bool network) {
    const weft_serve_settings *how = self->how;
    return listen_with(self, url, network, &(weft_tls_opts){.cert = how->tls_cert, .key = how->tls_key, .ca = how->tls_ca});
}

int weft__serving_listen_for_devices(void *ctx, const char *url, const weft_tls_opts *tls) {
    return listen_with(ctx, url, true, tls);
}

static weft_exit explain_listen(const weft_serving *self, const char *url, int r) {
    if (r == -EADDRINUSE)
        return weft__fail(self->app, WEFT_BUSY, "Perhaps a hub is running here already: weft ping", "%s: %s", url,
                          weft_strerror(r));
    return weft__fail(self->app, r == -EINVAL || r == -ENOTSOCK ? WEFT_USAGE : WEFT_FAILED, NULL, "%s: %s", url,
                      r == -ENOTSOCK ? "a file that is not a socket is in the way" : weft_strerror(r));
}

/* HTTP and WebSocket share the first free port. */
static weft_exit listen_on_port(weft_serving *self) {
    char url[64];
    int r = -EADDRINUSE, port = self->port;
    if (port) {
        snprintf(url, sizeof url, "http://127.0.0.1:%d/rpc", port++);
        r = listen_at_url(self, url, true);
    }
    for (port = r == -EADDRINUSE ? FIRST_PORT : port; port < FIRST_PORT + PORT_TRIES && r == -EADDRINUSE; port++) {
        snprintf(url, sizeof url, "http://127.0.0.1:%d/rpc", port);
        r = listen_at_url(self, url, true);
    }
    self->port = r < 0 ? self->port : port - 1;
    static const char *const paths[] = {"ws", "acp", "tinyvex", "wiggum", "aiwg"};
    size_t count = sizeof paths / sizeof paths[0] - !self->app->layout->aiwg; /* the last is for AIWG's own clients */
    for (size_t i = 0; r >= 0 && i < count; i++) {
        snprintf(url, sizeof url, "ws://127.0.0.1:%d/%s", port - 1, paths[i]);
        r = listen_at_url(self, url, true);
    }
    return r < 0 ? explain_listen(self, url, r) : WEFT_DONE;
}

#define HOME_URL 64
/* The socket by which the other verbs find us. */
static const char *home_url(const weft_serving *self, char ret[HOME_URL]) {
    snprintf(ret, HOME_URL, "unix:%s", self->app->layout->socket);
    return ret;
}

static weft_exit listen_at_home(weft_serving *self) {
    char url[HOME_URL];
    int r = self->daemon.held ? listen_at_url(self, home_url(self, url), false) : 0;
    return r < 0 ? explain_listen(self, url, r) : WEFT_DONE;
}

/* We listen there anyway, and may be told so as well. */
static bool is_home(const weft_serving *self, const char *text) {
    char url[HOME_URL];
    return self->daemon.held && strcmp(home_url(self, url), text) == 0;
}

static weft_exit listen_as_told(weft_serving *self) {
    for (size_t i = 0; i < self->how->listen.count; i++) {
        const char *text = self->how->listen.items[i];
        weft_url url;
        weft_exit status = weft__url_check(self->app, text, &url);
        if (status)
            return status;
        bool network = weft__serve_is_network(&url);
        self->on_stdio |= weft__is_stdio(text);
        weft__url_done(&url, NULL);
        int r = is_home(self, text) ? 0 : listen_at_url(self, text, network);
        if (r < 0)
            return explain_listen(self, text, r);
    }
    return WEFT_DONE;
}

/* Who is a runner serves nobody but its own user. */
static bool is_runner(const weft_serving *self) {
    const weft_serve_settings *typed = self->app->settings;
    return typed->hub_url != NULL;
}

weft_exit weft__serving_listen(weft_serving *self) {
    weft_exit status = listen_at_home(self);
    if (status == WEFT_DONE)
        status = self->how->listen.count ? listen_as_told(self) : is_runner(self) ? WEFT_DONE : listen_on_port(self);
    return status;
}

/* ---- the tokens ---- */

weft_exit weft__serving_check_urls(const weft_serving *self, bool *ret_network) {
    *ret_network = self->how->listen.count == 0;
    for (size_t i = 0; i < self->how->listen.count; i++) {
        weft_url url;
        weft_exit status = weft__url_check(self->app, self->how->listen.items[i], &url);
        if (status)
            return status;
        *ret_network |= weft__serve_is_network(&url);
        status = weft__serve_check(self->app, self->how, &url);
        weft__url_done(&url, NULL);
        if (status)
            return status;
    }
    return WEFT_DONE;
}

weft_exit weft__serving_get_token(weft_serving *self, bool network) {
    if (self->how->auth && strcmp(self->how->auth, "none") == 0) {
        if (network)
            weft__warn(self->app, "weft serve: --auth none: every user and program of this machine may call this hub");
        return WEFT_DONE;
    }
    if (!network)
        return WEFT_DONE;
    return self->how->token_file ? weft__token_read(self->app, self->how->token_file, &self->token)
                                 : weft__daemon_folder_token(self->app, &self->token);
}

weft_exit weft__serving_get_tokens(weft_serving *self) {
    char why[WEFT_TRUST_WHY] = "";
    self->tokens = weft__zalloc(NULL, sizeof *self->tokens);
    if (!self->tokens)
        return weft__fail(self->app, WEFT_FAILED, NULL, "out of memory");
    self->tokens->layout = self->app->layout;
    self->tokens->first = self->token;
    if (weft__serve_tokens_load(self->tokens, why) < 0)
        weft__warn(self->app, "weft serve: %s", why);
    return WEFT_DONE;
}

void weft__serving_reload_tokens(weft_serving *self) {
    char why[WEFT_TRUST_WHY] = "";
    if (weft__serve_tokens_apply(self->tokens, why) < 0)
        weft__warn(self->app, "weft serve: %s", why);
}
