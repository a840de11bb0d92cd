/* weft listen: notifications as they come, one JSON object per line. A connection that is lost is made again; one that could
 * not be made in the first place is a failure, because then the URL is probably wrong. */
#include <errno.h>
#include <string.h>

#include "app.h"
#include "debug.h"
#include "endpoint.h"
#include "failure.h"
#include "loop.h"
#include "signals.h"

typedef struct settings {
    int64_t count;    /* 0: for ever */
    int64_t limit_ms; /* 0: none */
} settings;

typedef struct listening {
    weft_app *app;
    weft_target target;
    weft_loop *loop;
    weft_service *service;
    weft_peer *peer;
    weft_signals signals;
    weft_timer limit;
    int64_t left; /* notifications; <0: no end */
    bool was_connected, lost;
    weft_exit status;
} listening;

static void stop_listening(listening *self, weft_exit status) {
    self->status = status;
    weft_loop_stop(self->loop);
}

static void on_listen_signal(void *ctx) {
    stop_listening(ctx, WEFT_DONE);
}

static void on_listen_notification(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    listening *self = data;
    (void) peer;
    if (self->left == 0)
        return; /* behind the last one that was asked for, in the same read */
    weft_val value = params && params->text ? weft_copy(params) : weft_none();
    weft__put_line(&self->app->out, WEFT_OBJ({"method", weft_str(method)}, {"params", value}));
    if (ferror(self->app->out.file))
        stop_listening(self, WEFT_FAILED);
    else if (self->left > 0 && --self->left == 0)
        stop_listening(self, WEFT_DONE);
}

/* Listening for so long is what was asked for; with a count, that many notifications were. */
static void on_listen_limit(weft_timer *timer) {
    listening *self = (listening *) ((char *) timer - offsetof(listening, limit));
    if (!self->was_connected)
        stop_listening(self, weft__fail(self->app, WEFT_TOO_LATE, NULL, "%s: not connected in time", self->target.shown));
    else if (self->left > 0)
        stop_listening(self, weft__fail(self->app, WEFT_TOO_LATE, NULL, "%lld more notifications did not come in time",
                                        (long long) self->left));
    else if (self->lost)
        stop_listening(self, weft__fail(self->app, WEFT_UNREACHABLE, NULL,
                                        "%s: the connection was lost and was not made again in time", self->target.shown));
    else
        stop_listening(self, WEFT_DONE);
}

/* ---- the connection ---- */

static void on_listen_token_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    listening *self = ctx;
    (void) peer;
    if (r == 0 && answer->error && answer->error->code != WEFT_METHOD_NOT_FOUND)
        stop_listening(self, weft__fail_refused(self->app, "weft.auth", answer->error, "The server refused the token."));
}

static void on_listen_connected(listening *self) {
    weft__remark(self->app, "connected to %s", self->target.shown);
    self->was_connected = true;
    self->lost = false;
    if (weft__target_shows_by_call(&self->target) &&
        weft__target_show(self->peer, &self->target, on_listen_token_answer, self) < 0)
        stop_listening(self, weft__fail(self->app, WEFT_FAILED, NULL, "out of memory"));
}

static void on_listen_lost(listening *self, weft_peer_state state, int why) {
    const char *trouble = weft_peer_trouble(self->peer);
    self->lost = true;
    if (state == WEFT_PEER_CLOSED && self->target.scheme->flags & WEFT_OUR_STDIO)
        stop_listening(self, WEFT_DONE);
    else if (state == WEFT_PEER_CLOSED || !self->was_connected)
        stop_listening(self, weft__fail_at(self->app, self->target.shown, why, trouble));
    else
        weft__warn(self->app, "%s: %s; trying again", self->target.shown, *trouble ? trouble : weft_strerror(why));
}

static void on_listen_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    listening *self = data;
    self->peer = peer;
    if (state == WEFT_PEER_CONNECTED)
        on_listen_connected(self);
    else if (state != WEFT_PEER_CONNECTING)
        on_listen_lost(self, state, why);
}

static int open_listening(listening *self) {
    bool again = !(self->target.scheme->flags & WEFT_ENDS);
    int64_t limit_ms = ((const settings *) self->app->settings)->limit_ms;
    int r = weft_loop_new(NULL, &self->loop);
    if (r >= 0)
        r = weft__debug_service(&self->service);
    if (r >= 0)
        r = weft__signals_open(&self->signals, self->loop, on_listen_signal, self);
    if (r < 0)
        return r;
    if (limit_ms > 0)
        weft__timer_set(self->loop, &self->limit, weft__loop_fresh_now(self->loop) + limit_ms);
    weft_connect_opts opts = weft__target_opts(self->app, &self->target, self->service);
    opts.reconnect = again;
    opts.events = true;
    opts.data = self;
    opts.on_state = on_listen_state;
    opts.on_notification = on_listen_notification;
    return weft_connect_on(self->loop, self->target.url, &opts, &self->peer, &self->target.trouble);
}

static weft_exit listen_on(listening *self) {
    weft__timer_init(&self->limit, on_listen_limit);
    int r = open_listening(self);
    if (r >= 0)
        weft_loop_run(self->loop);
    weft__signals_close(&self->signals);
    if (self->loop)
        weft__timer_stop(self->loop, &self->limit);
    weft_peer_free(self->peer);
    if (self->loop)
        weft_loop_run(self->loop); /* its good-bye takes a turn or two */
    weft_loop_free(self->loop);
    weft_service_unref(self->service);
    return r < 0 ? weft__fail_at(self->app, self->target.shown, r, self->target.trouble.text) : self->status;
}

static weft_exit run_listen(weft_app *app) {
    const settings *how = app->settings;
    listening self = {.app = app, .left = how->count ? how->count : -1};
    weft_exit status = weft__only_url_check(app);
    if (status == WEFT_DONE)
        status = weft__target_take(app, &self.target);
    if (status == WEFT_DONE)
        status = listen_on(&self);
    weft__target_done(&self.target);
    return status;
}

static const weft_option options[] = {
    WEFT_OPTION(settings, count, number, "count", 'n', "N", "end after so many notifications"),
    WEFT_OPTION(settings, limit_ms, time, "timeout", 't', "TIME", "end after this time: 500ms, 5s, 2m (default: never)"),
    {0},
};

static const char *const examples[] = {
    "weft listen ws://127.0.0.1:8080/",
    "everything it says, one JSON object per line, until Ctrl-C",
    "weft listen -n 1 | jq .params",
    "the next thing the hub of this folder says",
    "weft listen -n 1 -t 10s",
    "the same, if it comes within ten seconds; status 7 if it does not",
    NULL,
};

const weft_verb weft__listen_verb = {
    .name = "listen",
    .help = "print notifications as they come",
    .usage = "[URL]",
    .examples = examples,
    .about = "A connection that is lost is made again, after 100 ms at first and 16 s at most. Ctrl-C ends with status 0.\n"
             "So does --timeout, unless --count notifications have not come by then: that is status 7.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_listen,
};
