/* "weft serve" from its start to its end. See serving.h. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "daemon_folder.h"
#include "failure.h"
#include "forward.h"
#include "guards.h"
#include "loop.h"
#include "serving.h"
#include "trust_view.h"
#include "wiring.h"

/* Guards that were told to kill; they take some milliseconds. */
#define LOST_MS 1000
/* What closing everything may take after the loop has stopped, out of the time a stop may take. */
#define CLOSING_MS 1000

/* ---- what it is ---- */

bool weft__serving_is_child(const weft_serving *self) {
    const weft_serve_settings *typed = self->app->settings;
    return typed->listen.count == 1 && weft__is_stdio(typed->listen.items[0]);
}

/* What happens does not outlive a child that speaks to its parent alone. */
const weft_store_kind *weft__serving_store_kind(const weft_serving *self) {
    return weft__serving_is_child(self) ? weft__store_first(false) : weft__store_named(self->how->store_kind);
}

/* Is this the daemon of its folder? Not one that keeps nothing and was given places of its own to listen at: it is
 * somebody's child, or beside the daemon on purpose. */
static bool is_projects(const weft_serving *self) {
    const weft_serve_settings *typed = self->app->settings;
    return weft__store_lasts(weft__serving_store_kind(self)) || typed->listen.count == 0;
}

/* ---- stopping, and reading the configuration again ---- */

static void on_serving_stopped(weft_server *server, void *ctx) {
    (void) server;
    weft_loop_stop(((weft_serving *) ctx)->loop);
}

/* Whoever watched the last tasks has been told how they ended. */
static void on_hub_stopped(void *ctx) {
    weft_serving *self = ctx;
    self->daemon.uplink = NULL;
    self->uplink = weft__uplink_free(self->uplink); /* the loop closes its connection */
    weft__relay_stop(self->relay);
    weft__serve_hub_leave(self->hub);
    weft__serve_hub_resign(self->hub);
    weft_server_stop(self->server, on_serving_stopped, self);
}

static void end_due(weft_timer *timer) {
    weft_loop_stop(WEFT_CONTAINER(timer, weft_serving, end)->loop);
}

static void limit_stop(weft_serving *self) {
    int64_t ms = self->how->server.grace_ms ? self->how->server.grace_ms : WEFT_SERVE_GRACE_MS;
    ms = ms > 2 * CLOSING_MS ? ms - CLOSING_MS : ms / 2 + 1;
    weft__timer_set(self->loop, &self->end, weft__loop_fresh_now(self->loop) + ms);
}

void weft__serving_stop(void *ctx, bool force) {
    weft_serving *self = ctx;
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

static void on_parent_gone(weft_later *later) {
    weft_serving *self = WEFT_CONTAINER(later, weft_serving, parent_gone);
    weft__serving_stop(self, false);
}

/* Whoever pressed Ctrl-C should know why nothing seems to happen. */
static void say_stopping(const weft_serving *self) {
    uint64_t running = weft__serve_hub_running(self->hub);
    if (running && !self->daemon.background)
        weft__warn(self->app, "stopping when %llu task%s ended, in some seconds at most; once more stops at once",
                   (unsigned long long) running, running == 1 ? " has" : "s have");
    else
        weft__remark(self->app, "stopping; once more to stop at once");
}

/* The first asks for an orderly end, the second for any end. */
static void on_serve_signal(void *ctx) {
    weft_serving *self = ctx;
    if (self->signals_seen++ > 0) {
        weft_loop_stop(self->loop);
        return;
    }
    say_stopping(self);
    weft__serving_stop(self, false);
}

void weft__serving_reload(weft_serving *self, weft_reload *report) {
    weft__serve_config_reload(self->config, self->server, report);
    weft__serving_reload_tokens(self);
}

static void on_serve_hangup(void *ctx) {
    weft_serving *self = ctx;
    if (weft__serve_config_hung_up(self->config))
        on_serve_signal(self);
    else
        weft__serving_reload(self, NULL);
}

static void on_config(void *ctx, const weft_serve_settings *now) {
    weft_serving *self = ctx;
    if (!self->stopping)
        weft__serve_hub_set(self->hub, now);
}

static bool publish_again(void *ctx) {
    return weft__serve_publish(&((weft_serving *) ctx)->facts);
}

/* ---- opening ---- */

static int open_web(weft_serving *self) {
    weft_serve_web_opts web = {
        .app = self->app, .server = self->server, .how = self->how, .held = self->daemon.held, .token = self->token != NULL};
    weft_serve_pair_opts pair = {.app = self->app,
                                 .loop = self->loop,
                                 .server = self->server,
                                 .tokens = self->tokens,
                                 .held = self->daemon.held,
                                 .token = self->token != NULL,
                                 .listen = weft__serving_listen_for_devices,
                                 .ctx = self};
    int r = weft__serve_web_new(&web, &self->web);
    return r < 0 ? r : weft__serve_pair_new(&pair, &self->pair);
}

static weft_exit open_hub(weft_serving *self) {
    weft_exit status = weft__serving_open_relay(self);
    if (status)
        return status;
    weft_serve_hub_opts opts = {.app = self->app,
                                .loop = self->loop,
                                .daemon = &self->daemon,
                                .how = self->how,
                                .kind = weft__serving_store_kind(self),
                                .store = self->store,
                                .name = self->store ? self->name : NULL,
                                .gates = self->gates,
                                .relay = self->relay,
                                .on_stop = weft__serving_stop,
                                .ctx = self};
    status = weft__serve_hub_open(&opts, &self->hub);
    self->store = NULL;
    if (status == WEFT_BUSY && self->relay) { /* it is of other hubs than were typed now */
        weft__warn(self->app, "weft serve: the copy here is of other hubs; it begins anew");
        self->anew = true;
    }
    if (status)
        return status;
    int r = weft__serving_open_server(self);
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

/* ---- serving ---- */

static weft_exit serve_until_stopped(weft_serving *self) {
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
                                     .relays = self->relay,
                                     .on_stdio = self->on_stdio,
                                     .web = self->web};
    self->published = weft__serve_publish(&self->facts);
    weft__serve_hub_ready(self->hub);
    weft_exit status = weft__daemon_ready(&self->daemon);
    if (status)
        return status;
    status = weft__serving_open_uplink(self);
    if (status)
        return status;
    if (self->relay && weft__relay_start(self->relay, weft__serve_hub_engine(self->hub)) < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "out of memory");
    r = weft__serving_keep_lease(self);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    if (self->reload)
        weft__serving_reload(self, NULL);
    self->reload = false;
    if (!self->daemon.background && !self->uplink)
        weft__serve_say_what_next(&self->facts);
    if (self->daemon.held && weft__daemon_keep_new(&self->daemon, self->loop, publish_again, self, &self->keep) < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "out of memory");
    weft_loop_run(self->loop);
    return self->failed ? WEFT_FAILED : WEFT_DONE;
}

/* Ten thousand connections need more descriptors than the usual soft limit. */
static void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static weft_exit enter_folder(weft_serving *self) {
    if (self->entered)
        return WEFT_DONE;
    self->entered = true;
    return weft__daemon_enter(&self->daemon, self->app, &self->how->log, is_projects(self));
}

static weft_exit open_and_serve(weft_serving *self) {
    bool network, ended = false, go = false;
    weft_exit status = weft__serving_check_urls(self, &network);
    if (status == WEFT_DONE)
        status = enter_folder(self);
    if (status == WEFT_DONE)
        status = weft__serving_get_token(self, network);
    if (status == WEFT_DONE)
        status = weft__serving_get_tokens(self);
    if (status == WEFT_DONE)
        status = weft__serve_gates_open(self->app, self->how, &self->gates);
    if (status)
        return status;
    raise_descriptor_limit();
    signal(SIGPIPE, SIG_IGN); /* standard output may be a peer that leaves */
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a disk that is full: an error, not our end */
    status = weft__serving_stand_by(self, &ended);
    if (status || ended)
        return status;
    int r = weft_loop_new(NULL, &self->loop);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    status = weft__serving_wait(self, &go);
    if (status || !go)
        return status;
    status = open_hub(self);
    weft__serving_close_doors(self);
    if (status == WEFT_DONE)
        status = weft__serving_listen(self);
    if (status)
        return status;
    weft__serve_gates_warn(self->gates, self->app, self->service);
    if (self->forward)
        weft__forward_serve(self->forward, self->server);
    if (self->how->pair_keep)
        weft__serve_pair_resume(self->pair);
    return serve_until_stopped(self);
}

/* In this order: who uses something goes before it. */
static void end_round(weft_serving *self) {
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
    weft__serving_close_doors(self);
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
static bool goes_on(const weft_serving *self, weft_exit status) {
    bool anew = self->anew && !self->signals_seen;
    if (anew)
        weft__serving_remove_copy(self);
    return anew || (self->lost && status == WEFT_DONE);
}

weft_exit weft__serve_run(weft_app *app) {
    weft_serving self = {.app = app, .daemon.app = app};
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
