/* What a standby answers on its own socket: how far it is, and that it may be promoted. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "failure.h"
#include "stamp.h"
#include "standby_private.h"

#define FIRST_MS 10000

static weft_val stamp_or_null(int64_t ms, char text[WEFT_STAMP]) {
    return ms ? weft_str(weft__stamp(ms, text)) : weft_null();
}

static const char *state_of(const weft_standby *self) {
    static const char *const words[] = {[WEFT_STANDBY_AWAY] = "away",
                                        [WEFT_STANDBY_GREETING] = "waiting",
                                        [WEFT_STANDBY_PAGES] = "copying",
                                        [WEFT_STANDBY_CHANGES] = "following"};
    return self->phase == WEFT_STANDBY_CHANGES && self->open ? "copying" : words[self->phase];
}

static const weft_replica_state *journal_state(const weft_standby *self) {
    static const weft_replica_state none;
    return self->journal ? weft__replica_state(self->journal) : &none;
}

static uint64_t behind(const weft_standby *self) {
    uint64_t head = journal_state(self)->head;
    return self->said_head > head ? self->said_head - head : 0;
}

/* For how long has the copy not had everything? While the hub is away, at least since it was last heard. */
static int64_t behind_ms(const weft_standby *self, int64_t now) {
    bool level = self->phase == WEFT_STANDBY_CHANGES && !self->open && !behind(self);
    int64_t since = self->level_ms ? self->level_ms : journal_state(self)->heard_ms;
    return level || !since || now < since ? 0 : now - since;
}

/* ---- daemon.status ---- */

static int answer_status(weft_req *req, const weft_json *params, void *ctx) {
    const weft_standby *self = ctx;
    const weft_replica_state *state = journal_state(self);
    const weft_daemon *daemon = self->opts.daemon;
    char folder[PATH_MAX], heard[WEFT_STAMP];
    bool well = self->phase == WEFT_STANDBY_CHANGES && !self->open && !*self->trouble;
    uint64_t copied = self->copy ? weft__replica_state(self->copy)->head : 0;
    weft_val urls[] = {weft_str(weft_server_url(self->server, 0))};
    (void) params;
    weft_val standby =
        WEFT_OBJ({"of", weft_str(self->target.shown)}, {"state", weft_str(state_of(self))},
                 {"whole", weft_bool(self->journal)}, {"epoch", self->journal ? weft_str(state->epoch) : weft_null()},
                 {"head", weft_uint(state->head)}, {"hubHead", weft_uint(self->said_head)},
                 {"behind", weft_uint(behind(self))}, {"behindMs", weft_int(behind_ms(self, weft__standby_now()))},
                 {"heardAt", stamp_or_null(self->heard_ms, heard)}, {"copied", self->copy ? weft_uint(copied) : weft_none()},
                 {"error", *self->trouble ? weft_str(self->trouble) : weft_none()});
    return weft_reply(
        req,
        WEFT_OBJ(
            {"pid", weft_int(getpid())}, {"uptime_seconds", weft_int((weft__clock_ns() - daemon->started_ns) / 1000000000)},
            {"started_at", weft_str(daemon->started_at)}, {"health", weft_str(well ? "healthy" : "degraded")},
            {"subsystems",
             WEFT_OBJ({"standby", WEFT_OBJ({"error", *self->trouble ? weft_str(self->trouble) : weft_none()})})},
            {"weft", WEFT_OBJ({"version", weft_str(weft_version())}, {"folder", weft_str(getcwd(folder, sizeof folder))},
                              {"urls", weft_arr(urls, 1)}, {"standby", standby})}));
}

static int answer_ping(weft_req *req, const weft_json *params, void *ctx) {
    char now[WEFT_STAMP];
    (void) params, (void) ctx;
    return weft_reply(req,
                      WEFT_OBJ({"pong", weft_bool(true)}, {"timestamp", weft_str(weft__stamp(weft__standby_now(), now))}));
}

/* ---- ending ---- */

static void on_server_stopped(weft_server *server, void *ctx) {
    weft_standby *self = ctx;
    (void) server;
    self->ended = true;
    weft_loop_stop(self->loop);
}

static void end_standby(weft_standby *self) {
    if (self->stopping)
        return;
    self->stopping = self->settled = true;
    weft__standby_hang_up(self);
    weft_server_stop(self->server, on_server_stopped, self);
}

static int answer_stop(weft_req *req, const weft_json *params, void *ctx) {
    weft_standby *self = ctx;
    (void) params;
    int r = weft_reply(req, WEFT_OBJ({"stopping", weft_bool(true)}));
    weft__daemon_stopping(self->opts.daemon);
    end_standby(self);
    return r;
}

/* ---- standby.promote ---- */

struct promote {
    bool force;
};
static const weft_param promote_params[] = {
    {"force", WEFT_PARAM_bool, offsetof(struct promote, force), WEFT_NULLABLE, "although the hub still answers"},
    WEFT_END(struct promote),
};

static int answer_promote(weft_req *req, const weft_json *params, void *ctx) {
    weft_standby *self = ctx;
    const struct promote *in = weft_req_params(req);
    char heard[WEFT_STAMP];
    (void) params;
    if (self->stopping)
        return weft_refuse(req, 503, "The standby is stopping", "shuttingDown");
    if (!self->journal)
        return weft_refuse(req, 409, "There is no whole copy of the journal yet", "noCopy");
    if (self->phase != WEFT_STANDBY_AWAY && !in->force)
        return weft_refuse(req, 409, "The hub still answers: stop it first, or two hubs go on with the same past",
                           "hubAnswers");
    uint64_t missing = behind(self), said = self->said_head;
    int64_t now = weft__standby_now(), heard_ms = self->heard_ms, age_ms = behind_ms(self, now);
    weft__standby_hang_up(self);
    int r = weft__replica_promote(self->journal);
    if (r < 0) {
        weft__standby_dial(self);
        return weft_failf(req, 507, WEFT_OBJ({"reason", weft_str("storageFailed")}), "It could not be stored: %s",
                          weft_strerror(r));
    }
    self->promoted = true;
    const weft_replica_state *state = journal_state(self);
    weft__warn(
        self->opts.app,
        "weft serve: promoted: the journal of %s up to event %llu is this hub's own now; %llu that it had are known to be "
        "missing, and what it stored after it was last heard",
        self->target.shown, (unsigned long long) state->head, (unsigned long long) missing);
    r = weft_reply(req,
                   WEFT_OBJ({"of", weft_str(self->target.shown)}, {"epoch", weft_str(state->epoch)},
                            {"head", weft_uint(state->head)}, {"hubHead", weft_uint(said)}, {"missing", weft_uint(missing)},
                            {"heardAt", stamp_or_null(heard_ms, heard)}, {"behindMs", weft_int(age_ms)}));
    weft__daemon_forget_own_pid(self->opts.app->layout); /* until the hub is ready */
    end_standby(self);
    return r;
}

/* ---- everything else ---- */

static int refuse_others(void *ctx, const weft_gate_request *request) {
    const weft_standby *self = ctx;
    static const char own[] = "rpc.";
    if (request->method || (request->name.len >= sizeof own - 1 && memcmp(request->name.data, own, sizeof own - 1) == 0))
        return 0;
    weft_failf(request->req, 503, WEFT_OBJ({"reason", weft_str("standby")}),
               "This is a standby of %s and does nothing else; \"weft promote\" makes it a hub", self->target.shown);
    return -ESHUTDOWN;
}

static void on_standby_signal(void *ctx) {
    weft_standby *self = ctx;
    if (self->stopping) {
        self->ended = true;
        weft_loop_stop(self->loop);
        return;
    }
    weft__daemon_stopping(self->opts.daemon);
    end_standby(self);
}

static void on_standby_hangup(void *ctx) {
    weft_standby *self = ctx;
    weft__remark(self->opts.app, "a standby has no settings to reload");
}

static int64_t steady_us(void *ctx) {
    (void) ctx;
    return weft__clock_ns() / 1000;
}

static const weft_method methods[] = {
    {.name = "ping", .handler = answer_ping, .help = "check that the standby is there; answers with its time"},
    {.name = "daemon.status", .handler = answer_status, .help = "how far the copy is"},
    {.name = "daemon.stop", .handler = answer_stop, .help = "stop the standby", .flags = WEFT_ROW_CHANGES},
    {.name = "standby.promote",
     .handler = answer_promote,
     .params = promote_params,
     .help = "make this a hub, with a new epoch; the answer says what may be missing",
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT},
    {0},
};

static void on_patience(weft_timer *timer) {
    WEFT_CONTAINER(timer, weft_standby, patience)->settled = true;
}

/* Whoever starts it is told that it does not work while they are there; and a small journal is copied by then. */
static void await_first(weft_standby *self) {
    weft__timer_init(&self->patience, on_patience);
    weft__timer_set(self->loop, &self->patience, weft__loop_fresh_now(self->loop) + FIRST_MS);
    while (!self->settled && weft_loop_once(self->loop, true) >= 0)
        continue;
    weft__timer_stop(self->loop, &self->patience);
}

weft_exit weft__standby_serve(weft_standby *self) {
    weft_app *app = self->opts.app;
    self->others = (weft_gate){.name = "standby", .before = refuse_others, .ctx = self};
    self->gates[0] = &self->others;
    weft_service_opts service = {.methods = methods,
                                 .gates = self->gates,
                                 .title = "weft standby",
                                 .version = weft_version(),
                                 .ctx = self,
                                 .now_us = steady_us};
    char url[128];
    snprintf(url, sizeof url, "unix:%s", app->layout->socket);
    int r = weft_service_new(&service, &self->service);
    if (r >= 0)
        r = weft_server_new(self->loop, &(weft_server_opts){.service = self->service, .data = self}, &self->server);
    if (r >= 0)
        r = weft_server_listen(self->server, url, &(weft_listen_opts){.dialect = "weft"});
    self->signals.on_hangup = on_standby_hangup;
    if (r >= 0)
        r = weft__signals_open(&self->signals, self->loop, on_standby_signal, self);
    if (r < 0)
        return weft__fail(app, r == -EADDRINUSE ? WEFT_BUSY : WEFT_FAILED, NULL, "%s: %s", url, weft_strerror(r));
    weft__daemon_offer(self->opts.daemon, self->server);
    weft__standby_dial(self);
    await_first(self);
    if (self->refused)
        return WEFT_FAILED;
    weft_exit status = weft__daemon_ready(self->opts.daemon);
    if (status)
        return status;
    if (!self->ended)
        weft_loop_run(self->loop);
    return self->refused ? WEFT_FAILED : WEFT_DONE;
}
