/* weft serve: a daemon in the current folder, until it is told to stop. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app.h"
#include "clock.h"
#include "daemon.h"
#include "daemon_folder.h"
#include "debug.h"
#include "failure.h"
#include "guards.h"
#include "link.h"
#include "loop.h"
#include "relay.h"
#include "serve.h"
#include "serve_gates.h"
#include "serve_hub.h"
#include "serve_lead.h"
#include "serve_pair.h"
#include "serve_reload.h"
#include "serve_tell.h"
#include "serve_tokens.h"
#include "serve_web.h"
#include "signals.h"
#include "standby.h"
#include "told_methods.h"
#include "trust_view.h"
#include "uplink.h"
#include "wiring.h"

#ifdef WEFT_CHECK_RESULTS
#define CHECK_RESULTS true
#else
#define CHECK_RESULTS false
#endif

#define FIRST_PORT 16180
#define PORT_TRIES 100
/* Guards that were told to kill; they take some milliseconds. */
#define LOST_MS 1000
/* What closing everything may take after the loop has stopped, out of the time a stop may take. */
#define CLOSING_MS 1000

typedef struct serving {
    weft_app *app;
    weft_serve_config *config;
    const weft_serve_settings *how;
    weft_loop *loop;
    weft_serve_hub *hub;
    weft_service *service;
    weft_told_methods *told; /* for rpc.discover */
    weft_server *server;
    weft_signals signals;
    weft_daemon daemon;
    weft_daemon_keep *keep; /* of the daemon's files */
    weft_serve_facts facts;
    weft_timer end;         /* a stop has taken its time */
    weft_later parent_gone; /* a child's only connection has ended */
    char *token;            /* NULL: none is needed */
    weft_serve_tokens *tokens;
    weft_serve_web *web;
    weft_serve_pair *pair;
    weft_serve_gates *gates;
    weft_uplink *uplink; /* to the hub that we are a runner of; NULL: we are none */
    weft_relay *relay;   /* what follows other hubs; NULL: we are none */
    weft_relay_hello hello;
    weft_method reload_row, hello_row, known_row;
    int signals_seen;
    bool stopping;
    bool anew; /* the relay's copy is to be made again, from nothing */
    bool published;
    bool on_stdio;
    bool failed; /* the hub that we are a runner of refuses us */
    /* One of several hubs with one journal. */
    weft_store *store;     /* open, and the hub's as soon as there is one */
    weft_forward *forward; /* while it waits, with a server that only hands on */
    weft_service *door_service;
    weft_server *door;
    int port; /* taken once, where none is configured; 0: not yet */
    weft_serve_lease lease;
    char name[WEFT_LEAD_NAME], led[WEFT_LEAD_NAME];
    bool entered, lost;
    bool reload; /* was asked for while it waited */
} serving;

static void stop_serving(void *ctx, bool force);

/* ---- opening ---- */

/* The server says something; connections of others are the more interesting part. */
static void on_serve_note(weft_server *server, const char *line, void *data) {
    const serving *self = data;
    (void) server;
    weft__warn(self->app, "weft serve: %s", line);
}

/* Messages are logged past the log, on standard error: it must be asked whether it has become too large. */
static void on_serve_message(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text) {
    serving *self = ctx;
    weft__debug_message(NULL, peer, outgoing, text);
    weft__log_rotate(&self->daemon.log);
}

/* Ten thousand connections need more descriptors than the usual soft limit. */
static void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void on_client_open(weft_server *server, weft_peer *peer, void *data) {
    (void) server;
    weft__serve_hub_opened(((serving *) data)->hub, peer);
}

/* Somebody's child, which speaks to its parent alone. */
static bool is_child(const serving *self) {
    const weft_serve_settings *typed = self->app->settings;
    return typed->listen.count == 1 && weft__is_stdio(typed->listen.items[0]);
}

static void on_parent_gone(weft_later *later) {
    serving *self = (serving *) ((char *) later - offsetof(serving, parent_gone));
    stop_serving(self, false);
}

static void on_client_close(weft_server *server, weft_peer *peer, int why, void *data) {
    serving *self = data;
    (void) server, (void) why;
    weft__serve_hub_closed(self->hub, peer);
    if (is_child(self) && !self->stopping) /* nobody can come any more */
        weft__later(self->loop, &self->parent_gone);
}

static void on_client_drain(weft_server *server, weft_peer *peer, void *data) {
    (void) server;
    weft__serve_hub_drained(((serving *) data)->hub, peer);
}

static int answer_echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

/* For trying out a connection; rpc.discover is the library's, everything else the dialects'. */
static const weft_method echo_row = {.name = "echo", .handler = answer_echo, .help = "answer the params as they came"};

static void reload_all(serving *self, weft_reload *report);

static int answer_reload(weft_req *req, const weft_json *params, void *ctx) {
    weft_reload report = {0};
    (void) params;
    reload_all(ctx, &report);
    return weft__reload_reply(req, &report);
}

/* Beside the dialects' methods: what only the program itself can do. */
static int add_own_methods(serving *self) {
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
    const serving *self = weft__service_ctx(weft_peer_service(peer));
    (void) binary, (void) data;
    return weft__serve_hub_raw(self->hub, peer, body);
}

static int64_t steady_us(void *ctx) {
    (void) ctx;
    return weft__clock_ns() / 1000;
}

static int open_server(serving *self) {
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
    server_opts.on_note = on_serve_note;
    server_opts.on_open = on_client_open;
    server_opts.on_close = on_client_close;
    server_opts.on_drain = on_client_drain;
    server_opts.on_raw = on_client_raw;
    server_opts.data = self;
    return r < 0 ? r : weft_server_new(self->loop, &server_opts, &self->server);
}

static int listen_with(serving *self, const char *url, bool network, const weft_tls_opts *tls) {
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

static int listen_at_url(serving *self, const char *url, bool network) {
    const weft_serve_settings *how = self->how;
    return listen_with(self, url, network, &(weft_tls_opts){.cert = how->tls_cert, .key = how->tls_key, .ca = how->tls_ca});
}

static int listen_for_devices(void *ctx, const char *url, const weft_tls_opts *tls) {
    return listen_with(ctx, url, true, tls);
}

static weft_exit explain_listen(const serving *self, const char *url, int r) {
    if (r == -EADDRINUSE)
        return weft__fail(self->app, WEFT_BUSY, "Perhaps a daemon is running here already: weft ping", "%s: %s", url,
                          weft_strerror(r));
    return weft__fail(self->app, r == -EINVAL || r == -ENOTSOCK ? WEFT_USAGE : WEFT_FAILED, NULL, "%s: %s", url,
                      r == -ENOTSOCK ? "a file that is not a socket is in the way" : weft_strerror(r));
}

/* HTTP and WebSocket share the first free port. */
static weft_exit listen_on_port(serving *self) {
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

/* The socket by which the other verbs find us. */
#define HOME_URL 64
static const char *home_url(const serving *self, char ret[HOME_URL]) {
    snprintf(ret, HOME_URL, "unix:%s", self->app->layout->socket);
    return ret;
}

static weft_exit listen_at_home(serving *self) {
    char url[HOME_URL];
    int r = self->daemon.held ? listen_at_url(self, home_url(self, url), false) : 0;
    return r < 0 ? explain_listen(self, url, r) : WEFT_DONE;
}

/* We listen there anyway, and may be told so as well. */
static bool is_home(const serving *self, const char *text) {
    char url[HOME_URL];
    return self->daemon.held && strcmp(home_url(self, url), text) == 0;
}

static weft_exit listen_as_told(serving *self) {
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

/* ---- the token ---- */

/* All the URLs are looked at before anything is opened or made. *ret_network: one of them is on the network. */
static weft_exit check_urls(const serving *self, bool *ret_network) {
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

static weft_exit get_token(serving *self, bool network) {
    if (self->how->auth && strcmp(self->how->auth, "none") == 0) {
        if (network)
            weft__warn(self->app, "weft serve: --auth none: every user and program of this machine may call this daemon");
        return WEFT_DONE;
    }
    if (!network)
        return WEFT_DONE;
    return self->how->token_file ? weft__token_read(self->app, self->how->token_file, &self->token)
                                 : weft__daemon_folder_token(self->app, &self->token);
}

/* Those that were given out by name. */
static weft_exit get_tokens(serving *self) {
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

static void reload_tokens(serving *self) {
    char why[WEFT_TRUST_WHY] = "";
    if (weft__serve_tokens_apply(self->tokens, why) < 0)
        weft__warn(self->app, "weft serve: %s", why);
}

/* ---- running ---- */

static void on_serving_stopped(weft_server *server, void *ctx) {
    (void) server;
    weft_loop_stop(((serving *) ctx)->loop);
}

/* Whoever watched the last tasks has been told how they ended. */
static void on_hub_stopped(void *ctx) {
    serving *self = ctx;
    self->daemon.uplink = NULL;
    self->uplink = weft__uplink_free(self->uplink); /* the loop closes its connection */
    weft__relay_stop(self->relay);
    weft__serve_hub_leave(self->hub);
    weft__serve_hub_resign(self->hub);
    weft_server_stop(self->server, on_serving_stopped, self);
}

static void end_due(weft_timer *timer) {
    weft_loop_stop(WEFT_CONTAINER(timer, serving, end)->loop);
}

static void limit_stop(serving *self) {
    int64_t ms = self->how->server.grace_ms ? self->how->server.grace_ms : WEFT_SERVE_GRACE_MS;
    ms = ms > 2 * CLOSING_MS ? ms - CLOSING_MS : ms / 2 + 1;
    weft__timer_set(self->loop, &self->end, weft__loop_fresh_now(self->loop) + ms);
}

static void stop_serving(void *ctx, bool force) {
    serving *self = ctx;
    if (!self->stopping) {
        self->keep = weft__daemon_keep_free(self->keep);
        weft__daemon_stopping(&self->daemon);
        if (self->app->layout->aiwg) /* as its daemon: what is under way ends, nothing begins */
            weft_server_refuse(self->server);
        limit_stop(self);
    }
    self->stopping = true;
    weft__serve_hub_stop(self->hub, force, on_hub_stopped, self);
}

/* Whoever pressed Ctrl-C should know why nothing seems to happen. */
static void say_stopping(const serving *self) {
    uint64_t running = weft__serve_hub_running(self->hub);
    if (running && !self->daemon.background)
        weft__warn(self->app, "stopping when %llu task%s ended, in some seconds at most; once more stops at once",
                   (unsigned long long) running, running == 1 ? " has" : "s have");
    else
        weft__remark(self->app, "stopping; once more to stop at once");
}

/* The first asks for an orderly end, the second for any end. */
static void on_serve_signal(void *ctx) {
    serving *self = ctx;
    if (self->signals_seen++ > 0) {
        weft_loop_stop(self->loop);
        return;
    }
    say_stopping(self);
    stop_serving(self, false);
}

static void reload_all(serving *self, weft_reload *report) {
    weft__serve_config_reload(self->config, self->server, report);
    reload_tokens(self);
}

static void on_serve_hangup(void *ctx) {
    serving *self = ctx;
    if (weft__serve_config_hung_up(self->config))
        on_serve_signal(self);
    else
        reload_all(self, NULL);
}

static void on_config(void *ctx, const weft_serve_settings *now) {
    serving *self = ctx;
    if (!self->stopping)
        weft__serve_hub_set(self->hub, now);
}

static bool publish_again(void *ctx) {
    return weft__serve_publish(&((serving *) ctx)->facts);
}

static void on_uplink_refused(void *ctx) {
    serving *self = ctx;
    self->failed = true;
    if (!self->stopping)
        stop_serving(self, false);
}

static weft_exit open_uplink(serving *self) {
    const weft_serve_settings *typed = self->app->settings;
    size_t most = self->how->engine.max_running;
    if (!typed->hub_url)
        return WEFT_DONE;
    weft_uplink_opts opts = {.app = self->app,
                             .loop = self->loop,
                             .engine = weft__serve_hub_engine(self->hub),
                             .service = self->service,
                             .url = typed->hub_url,
                             .name = typed->runner_name,
                             .labels = typed->runner_labels,
                             .agents = typed->runner_agents,
                             .folders = typed->runner_folders,
                             .slots = typed->runner_slots   ? (size_t) typed->runner_slots
                                      : most && most < 1024 ? most
                                                            : 4,
                             .on_refused = on_uplink_refused,
                             .ctx = self};
    weft_exit status = weft__uplink_new(&opts, &self->uplink);
    self->daemon.uplink = self->uplink;
    return status;
}

/* What happens does not outlive a child that speaks to its parent alone. */
static const weft_store_kind *store_kind(const serving *self) {
    return is_child(self) ? weft__store_first(false) : weft__store_named(self->how->store_kind);
}

/* ---- a relay ---- */

static void on_relay_anew(void *ctx) {
    serving *self = ctx;
    self->anew = true;
    if (!self->stopping)
        stop_serving(self, true);
}

static weft_exit open_relay(serving *self) {
    const weft_serve_settings *typed = self->app->settings;
    const weft_store_kind *kind = store_kind(self);
    if (!typed->relay.count)
        return WEFT_DONE;
    if (weft__store_lasts(kind) && !weft__store_has_files(kind)) /* it may have to begin anew */
        return weft__fail(self->app, WEFT_USAGE, "Leave out store.kind in the folder of the relay.",
                          "a relay keeps its copy in a file, not in a database of others");
    weft_relay_opts opts = {.app = self->app,
                            .loop = self->loop,
                            .hubs = typed->relay,
                            .token_file = typed->relay_token_file,
                            .on_anew = on_relay_anew,
                            .ctx = self};
    weft_exit status = weft__relay_new(&opts, &self->relay);
    self->daemon.relay = self->relay;
    return status;
}

/* What is only a copy is made again. */
static void remove_copy(const serving *self) {
    static const char *const ends[] = {"", "-wal", "-shm", "-mark"};
    const char *store = self->how->store_path ? self->how->store_path : self->app->layout->store;
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(path, sizeof path, "%s%s", store, ends[i]);
        if (unlink(path) < 0 && errno != ENOENT)
            weft__warn(self->app, "weft serve: %s: %s", path, weft_strerror(-errno));
    }
}

/* ---- several hubs, one journal ---- */

/* The lease has nearly run out: another may take the journal when it is over. What works for it ends now; that it ended,
 * whoever has the journal next finds out. */
static void on_lease_lost(void *ctx) {
    serving *self = ctx;
    weft__warn(self->app,
               "weft serve: the journal cannot be reached, and may be another hub's soon: what runs here is ended");
    self->lost = !self->stopping;
    weft_loop_stop(self->loop);
}

/* A child keeps nothing, and so has no journal that others could have. */
static bool takes_turns(const serving *self) {
    return self->how->store_wait && !is_child(self);
}

static int keep_lease(serving *self) {
    char folder[PATH_MAX], *reach;
    if (!takes_turns(self))
        return 0;
    int r = getcwd(folder, sizeof folder) ? 0 : -errno;
    if (r == 0)
        r = weft__forward_reach(self->server, folder, self->token != NULL, &reach);
    if (r < 0)
        return r;
    r = weft__store_reach(weft__serve_hub_store(self->hub), reach);
    weft_text_free(reach, NULL);
    self->lease = (weft_serve_lease){.loop = self->loop,
                                     .store = weft__serve_hub_store(self->hub),
                                     .lease_ms = self->how->store_lease_ms,
                                     .on_lost = on_lease_lost,
                                     .ctx = self};
    weft__serve_lease_begin(&self->lease);
    return r;
}

static weft_exit serve_until_stopped(serving *self) {
    weft__serve_config_hear(self->config, on_config, self);
    self->signals.on_hangup = on_serve_hangup;
    int r = weft__signals_open(&self->signals, self->loop, on_serve_signal, self);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    const weft_agent *agent = weft__serve_hub_agent(self->hub);
    self->facts = (weft_serve_facts){.app = self->app,
                                     .server = self->server,
                                     .how = self->how,
                                     .agent = agent ? agent->name : "",
                                     .driver = agent ? agent->driver : "",
                                     .token = self->token != NULL,
                                     .held = self->daemon.held,
                                     .on_stdio = self->on_stdio,
                                     .web = self->web};
    self->published = weft__serve_publish(&self->facts);
    weft__serve_hub_ready(self->hub);
    weft_exit status = weft__daemon_ready(&self->daemon);
    if (status)
        return status;
    status = open_uplink(self);
    if (status)
        return status;
    if (self->relay && weft__relay_start(self->relay, weft__serve_hub_engine(self->hub)) < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "out of memory");
    r = keep_lease(self);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    if (self->reload)
        reload_all(self, NULL);
    self->reload = false;
    if (!self->daemon.background && !self->uplink)
        weft__serve_say_what_next(&self->facts);
    if (self->daemon.held && weft__daemon_keep_new(&self->daemon, self->loop, publish_again, self, &self->keep) < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "out of memory");
    weft_loop_run(self->loop);
    return self->failed ? WEFT_FAILED : WEFT_DONE;
}

/* Who is a runner serves nobody but its own user. */
static bool is_runner(const serving *self) {
    const weft_serve_settings *typed = self->app->settings;
    return typed->hub_url != NULL;
}

/* Is this the daemon of its folder? Not one that keeps nothing and was given places of its own to listen at: it is
 * somebody's child, or beside the daemon on purpose. */
static bool is_projects(const serving *self) {
    const weft_serve_settings *typed = self->app->settings;
    return weft__store_lasts(store_kind(self)) || typed->listen.count == 0;
}

static int open_web(serving *self) {
    weft_serve_web_opts web = {
        .app = self->app, .server = self->server, .how = self->how, .held = self->daemon.held, .token = self->token != NULL};
    weft_serve_pair_opts pair = {.app = self->app,
                                 .loop = self->loop,
                                 .server = self->server,
                                 .tokens = self->tokens,
                                 .held = self->daemon.held,
                                 .token = self->token != NULL,
                                 .listen = listen_for_devices,
                                 .ctx = self};
    int r = weft__serve_web_new(&web, &self->web);
    return r < 0 ? r : weft__serve_pair_new(&pair, &self->pair);
}

static weft_exit open_hub(serving *self) {
    weft_exit status = open_relay(self);
    if (status)
        return status;
    weft_serve_hub_opts opts = {.app = self->app,
                                .loop = self->loop,
                                .daemon = &self->daemon,
                                .how = self->how,
                                .kind = store_kind(self),
                                .store = self->store,
                                .name = self->store ? self->name : NULL,
                                .gates = self->gates,
                                .relay = self->relay,
                                .on_stop = stop_serving,
                                .ctx = self};
    status = weft__serve_hub_open(&opts, &self->hub);
    self->store = NULL;
    if (status == WEFT_BUSY && self->relay) { /* it is of other hubs than were typed now */
        weft__warn(self->app, "weft serve: the copy here is of other hubs; it begins anew");
        self->anew = true;
    }
    if (status)
        return status;
    int r = open_server(self);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    weft__daemon_offer(&self->daemon, self->server);
    self->daemon.config = self->config;
    r = weft__serve_tokens_offer(self->tokens, self->server);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    r = open_web(self);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "the dashboard: %s", weft_strerror(r));
    return weft__serve_hub_start(self->hub, self->server);
}

/* Be a standby as long as nobody promotes it. *ret_ended: it was stopped before. */
static weft_exit stand_by(serving *self, bool *ret_ended) {
    const weft_serve_settings *typed = self->app->settings;
    const char *path = self->how->store_path ? self->how->store_path : self->app->layout->store;
    weft_standby_opts opts = {.app = self->app,
                              .daemon = &self->daemon,
                              .path = path,
                              .url = typed->standby_of,
                              .token_file = typed->standby_token,
                              .ca = typed->standby_ca,
                              .discard = typed->discard};
    bool hub = true;
    *ret_ended = false;
    if (!typed->standby_of)
        return typed->discard || typed->standby_token || typed->standby_ca
                   ? weft__misused(self->app, "--discard, --standby-token and --standby-ca belong to --standby-of")
                   : WEFT_DONE;
    if (typed->relay.count)
        return weft__misused(self->app, "--standby-of and --relay do not go together: a standby serves nobody");
    if (!self->daemon.held || !weft__store_has_files(store_kind(self)) || !weft__store_lasts(store_kind(self)))
        return weft__misused(self->app, "a standby keeps its copy in a file: store.kind must be sqlite");
    weft_exit status = weft__standby_run(&opts, &hub);
    *ret_ended = !hub;
    return status;
}

static weft_exit listen_everywhere(serving *self) {
    weft_exit status = listen_at_home(self);
    if (status == WEFT_DONE)
        status = self->how->listen.count ? listen_as_told(self) : is_runner(self) ? WEFT_DONE : listen_on_port(self);
    return status;
}

/* ---- waiting for the journal ---- */

static void publish_waiting(serving *self) {
    self->facts = (weft_serve_facts){.app = self->app,
                                     .server = self->server,
                                     .how = self->how,
                                     .agent = "",
                                     .driver = "",
                                     .token = self->token != NULL,
                                     .held = self->daemon.held,
                                     .on_stdio = true, /* what is written there is for those who start a hub that serves */
                                     .waits_for = self->led};
    self->published = weft__serve_publish(&self->facts);
}

static void on_led(void *ctx, const char *name) {
    serving *self = ctx;
    snprintf(self->led, sizeof self->led, "%s", name);
    weft__warn(self->app, "weft serve: %s has the journal; waiting for it, and handing clients on",
               *name ? name : "another hub");
    publish_waiting(self);
}

static weft_exit open_doors(void *ctx, const char *name) {
    serving *self = ctx;
    weft_service_opts opts = {.title = "weft", .version = weft_version(), .limits = self->how->limits};
    weft_server_opts server_opts = self->how->server;
    int r = weft_service_new(&opts, &self->door_service);
    server_opts.service = self->door_service;
    server_opts.on_note = on_serve_note;
    server_opts.data = self;
    if (r >= 0)
        r = weft_server_new(self->loop, &server_opts, &self->door);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    weft__server_take(self->door, weft__forward_take, self->forward);
    self->server = self->door;
    weft__daemon_offer(&self->daemon, self->server);
    weft_exit status = listen_everywhere(self);
    if (status)
        return status;
    on_led(self, name);
    return weft__daemon_ready(&self->daemon);
}

/* Its endpoints are free then, or are opened by our own server in the same moment. */
static void close_doors(serving *self) {
    if (self->server == self->door)
        self->server = NULL;
    self->door = weft_server_free(self->door);
    self->door_service = weft_service_unref(self->door_service);
}

static bool on_hung_up(void *ctx) {
    serving *self = ctx;
    bool ends = weft__serve_config_hung_up(self->config);
    self->reload |= !ends;
    return ends;
}

/* *ret_go: it is ours. */
static weft_exit wait_for_journal(serving *self, bool *ret_go) {
    *ret_go = true;
    if (!takes_turns(self))
        return WEFT_DONE;
    int r = weft__forward_new(self->loop, &self->forward);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    const weft_serve_lead_opts opts = {.app = self->app,
                                       .daemon = &self->daemon,
                                       .how = self->how,
                                       .kind = store_kind(self),
                                       .loop = self->loop,
                                       .forward = self->forward,
                                       .open = open_doors,
                                       .led = on_led,
                                       .hung_up = on_hung_up,
                                       .ctx = self};
    weft__serve_lead_name(self->how, self->name);
    weft_exit status = weft__serve_lead_wait(&opts, &self->store);
    *ret_go = self->store != NULL;
    self->server = NULL;
    return status;
}

static weft_exit enter_folder(serving *self) {
    if (self->entered)
        return WEFT_DONE;
    self->entered = true;
    return weft__daemon_enter(&self->daemon, self->app, &self->how->log, is_projects(self));
}

static weft_exit open_and_serve(serving *self) {
    bool network, ended = false, go = false;
    weft_exit status = check_urls(self, &network);
    if (status == WEFT_DONE)
        status = enter_folder(self);
    if (status == WEFT_DONE)
        status = get_token(self, network);
    if (status == WEFT_DONE)
        status = get_tokens(self);
    if (status == WEFT_DONE)
        status = weft__serve_gates_open(self->app, self->how, &self->gates);
    if (status)
        return status;
    raise_descriptor_limit();
    signal(SIGPIPE, SIG_IGN); /* standard output may be a peer that leaves */
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a disk that is full: an error, not our end */
    status = stand_by(self, &ended);
    if (status || ended)
        return status;
    int r = weft_loop_new(NULL, &self->loop);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    status = wait_for_journal(self, &go);
    if (status || !go)
        return status;
    status = open_hub(self);
    close_doors(self);
    if (status == WEFT_DONE)
        status = listen_everywhere(self);
    if (status)
        return status;
    if (self->forward)
        weft__forward_serve(self->forward, self->server);
    if (self->how->pair_keep)
        weft__serve_pair_resume(self->pair);
    return serve_until_stopped(self);
}

/* In this order: who uses something goes before it. */
static void end_round(serving *self) {
    if (self->published)
        weft__daemon_folder_withdraw(self->app->layout);
    self->published = false;
    weft__serve_lease_end(&self->lease);
    weft__signals_close(&self->signals);
    self->uplink = weft__uplink_free(self->uplink);
    self->keep = weft__daemon_keep_free(self->keep);
    if (self->loop)
        weft__timer_stop(self->loop, &self->end);
    weft__relay_stop(self->relay);
    close_doors(self);
    self->forward = weft__forward_free(self->forward);
    self->server = weft_server_free(self->server);
    weft__later_cancel(&self->parent_gone);
    self->service = weft_service_unref(self->service);
    self->told = weft__told_methods_free(self->told);
    self->daemon.relay = NULL;
    self->relay = weft__relay_free(self->relay);
    self->hub = weft__serve_hub_close(self->hub);
    self->web = weft__serve_web_free(self->web);
    self->pair = weft__serve_pair_free(self->pair);
    self->gates = weft__serve_gates_free(self->gates);
    self->loop = weft_loop_free(self->loop);
    self->tokens = weft__free(NULL, self->tokens);
    self->token = weft__free(NULL, self->token);
    if (self->lost)
        weft__guards_finish(LOST_MS);
}

/* Who has lost the journal waits for its turn again, and a relay copies anew what it can no longer follow. */
static bool goes_on(const serving *self, weft_exit status) {
    bool anew = self->anew && !self->signals_seen;
    if (anew)
        remove_copy(self);
    return anew || (self->lost && status == WEFT_DONE);
}

weft_exit weft__serve_run(weft_app *app) {
    serving self = {.app = app, .daemon.app = app};
    weft__timer_init(&self.end, end_due);
    weft__later_init(&self.parent_gone, on_parent_gone);
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"; to serve at a URL, write --listen URL", app->args[0]);
    weft_serve_settings *typed = app->settings;
    if (typed->stdio && typed->listen.count < WEFT_MAX_TEXTS)
        typed->listen.items[typed->listen.count++] = "stdio:";
    app->layout = typed->aiwg ? &weft__layout_aiwg : &weft__layout_weft;
    weft_exit status = weft__daemon_folder_check(app);
    if (status == WEFT_DONE)
        status = weft__trust_gate(app, typed, false);
    if (status == WEFT_DONE)
        status = weft__serve_config_new(app, &self.config);
    if (status == WEFT_DONE && weft__serve_config_is_strange(self.config)) { /* it was changed a moment ago */
        status = weft__fail(app, WEFT_UNAUTHORISED, WEFT_TRUST_NEXT, "the configuration is not trusted");
        weft__serve_config_free(self.config);
    }
    if (status)
        return status;
    self.how = weft__serve_config_settings(self.config);
    do {
        self.lost = self.anew = self.stopping = self.on_stdio = false;
        status = open_and_serve(&self);
        end_round(&self);
    } while (goes_on(&self, status));
    weft__serve_config_free(self.config);
    weft__daemon_leave(&self.daemon); /* the last, so that who waits for our end finds nothing of us */
    return status;
}

const weft_option weft__serve_options[] = {
    WEFT_OPTION(weft_serve_settings, listen, list, "listen", 'l', "URL", "serve here instead of the usual places"),
    WEFT_OPTION(weft_serve_settings, stdio, flag, "stdio", 0, NULL,
                "serve whoever started this, on standard input and output; the same as --listen stdio:"),
    {.name = "auth",
     .kind = WEFT_OPTION_text,
     .value = "HOW",
     .offset = offsetof(weft_serve_settings, auth),
     .help = "what network clients must show",
     .choices = "token none"},
    WEFT_OPTION(weft_serve_settings, token_file, text, "token-file", 0, "FILE",
                "the token (default .weft/token, made on the first start)"),
    WEFT_OPTION(weft_serve_settings, tls_cert, text, "tls-cert", 0, "FILE", "certificate for tls://, wss:// and https://"),
    WEFT_OPTION(weft_serve_settings, tls_key, text, "tls-key", 0, "FILE", "the key that belongs to it"),
    WEFT_OPTION(weft_serve_settings, tls_ca, text, "tls-ca", 0, "FILE", "clients must have a certificate signed by this"),
    WEFT_OPTION(weft_serve_settings, hosts, list, "allow-host", 0, "NAME", "a Host header to accept besides loopback's"),
    WEFT_OPTION(weft_serve_settings, origins, list, "allow-origin", 0, "ORIGIN",
                "a web page's origin to accept besides our own"),
    WEFT_OPTION(weft_serve_settings, insecure_listen, flag, "insecure-listen", 0, NULL,
                "listen beyond this machine without TLS"),
    WEFT_OPTION(weft_serve_settings, rate, number, "rate", 0, "N", "requests a minute for a network client (default 6000)"),
    WEFT_OPTION(weft_serve_settings, no_rate, flag, "no-rate", 0, NULL, "no limit of requests"),
    WEFT_OPTION(weft_serve_settings, relay, list, "relay", 0, "HUB",
                "follow this hub and serve what happens there: a name of \"weft hubs\", a URL, or NAME=URL"),
    WEFT_OPTION(weft_serve_settings, relay_token_file, text, "relay-token-file", 0, "FILE",
                "the token for hubs that are written as URLs"),
    WEFT_OPTION(weft_serve_settings, standby_of, text, "standby-of", 0, "URL",
                "copy the journal of the hub there until \"weft promote\"; then be a hub"),
    WEFT_OPTION(weft_serve_settings, standby_token, text, "standby-token", 0, "FILE",
                "file with the token for it, which has the scope \"standby\""),
    WEFT_OPTION(weft_serve_settings, standby_ca, text, "standby-ca", 0, "FILE", "who signs its certificate"),
    WEFT_OPTION(weft_serve_settings, discard, flag, "discard", 0, NULL,
                "with --standby-of: move a journal aside that is here and is no copy of that hub's"),
    WEFT_OPTION(weft_serve_settings, store_wait, flag, "wait", 0, NULL,
                "wait while another hub has the journal on PostgreSQL, and take over when it is gone"),
    WEFT_OPTION(weft_serve_settings, aiwg, flag, "aiwg", 0, NULL, "be an AIWG daemon: its files in .aiwg, its agent"),
    {0},
};

static const char *const examples[] = {
    "weft serve",
    "on the Unix socket .weft/daemon.sock, and on http and ws at 127.0.0.1:16180 with a token",
    "weft serve --listen unix:/tmp/x.sock --listen tcp://127.0.0.1:4000",
    "somewhere else",
    "weft serve --listen wss://0.0.0.0:8443/ws --tls-cert cert.pem --tls-key key.pem --allow-host example.org",
    "for other machines",
    "weft serve --relay box",
    "a relay: what happens at the hub box, for clients of its own",
    "weft serve --standby-of wss://hub.example:8443/ws --standby-token token",
    "copy that hub's journal, to take its place when it is gone",
    NULL,
};

const weft_verb weft__serve_verb = {
    .name = "serve",
    .help = "run the hub of this folder in the foreground",
    .begins = "the hub",
    .usage = "",
    .examples = examples,
    .about =
        "It runs agents, stores what happens in .weft, and answers everything \"weft methods\" lists. WEFT_DEBUG=1 logs\n"
        "every message on standard error, secrets removed. SIGINT and SIGTERM let tasks and open requests finish (10 s\n"
        "at most); a second one does not. SIGHUP reads the configuration again; \"weft config -h\" has more about that.\n",
    .options = weft__serve_options,
    .settings_size = sizeof(weft_serve_settings),
    .run = weft__serve_run,
};
