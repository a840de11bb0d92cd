/* The connection, its subscription, and going on after a loss. */
#include "event_follow.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "clock.h"
#include "debug.h"
#include "failure.h"

/* timeout(1) signals the program and then its group: that is one signal. Nobody presses Ctrl-C twice as fast. */
#define SAME_SIGNAL_NS (100 * 1000 * 1000)

static void subscribe_live(weft_event_follow *self);

static void clear_talk(const weft_event_follow *self) {
    if (self->opts.terminal)
        weft__terminal_clear(self->opts.terminal);
}

void weft__event_follow_end(weft_event_follow *self, weft_exit status) {
    if (self->over)
        return;
    self->over = true;
    self->status = status;
    weft_loop_stop(self->loop);
}

static void out_of_memory(weft_event_follow *self) {
    clear_talk(self);
    weft__event_follow_end(self, weft__fail(self->app, WEFT_FAILED, NULL, "out of memory"));
}

void weft__event_follow_call(weft_event_follow *self, const char *method, weft_val params, weft_on_answer *on_answer) {
    /* How long the hub takes is its business; a connection that is lost ends the call. */
    weft_call_opts opts = {.on_answer = on_answer, .ctx = self->opts.ctx, .timeout_ms = -1};
    if (!self->over && weft_call_start(self->peer, method, params, &opts, NULL) < 0)
        out_of_memory(self);
}

/* ---- events ---- */

static void on_followed_notification(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    weft_event_follow *self = data;
    (void) peer;
    if (self->over || !self->ready || strcmp(method, "event") != 0)
        return;
    uint64_t gseq = (uint64_t) weft_get_int(params, "gseq", 0);
    if (gseq <= self->gseq)
        return;
    self->gseq = gseq;
    self->opts.on_event(self->opts.ctx, params);
}

/* ---- the subscription ---- */

const char *weft__gap_words(const char *reason) {
    if (strcmp(reason, "trimmed") == 0)
        return "the events after this position are no longer kept; continuing with the oldest that is kept";
    if (strcmp(reason, "epochChanged") == 0)
        return "the journal was started anew, so earlier positions do not count; continuing from its beginning";
    if (strcmp(reason, "futureSeq") == 0)
        return "there is no such position yet; continuing with the next event";
    return reason;
}

/* What is still kept is worth having; a position that does not exist yet is waited for from now on. */
static void step_over(weft_event_follow *self, const char *reason) {
    self->resuming = false;
    if (self->opts.on_gap)
        self->opts.on_gap(self->opts.ctx, reason);
    if (self->over)
        return;
    self->positioned = false;
    self->opts.from.epoch = NULL;
    self->opts.from.after = 0;
    self->opts.from.now = strcmp(reason, "futureSeq") == 0;
    subscribe_live(self);
}

static void tell_resumed(weft_event_follow *self) {
    if (!self->resuming)
        return;
    self->resuming = false;
    clear_talk(self);
    weft__warn(self->app, "connected again; resumed behind event %" PRIu64 ", nothing was missed", self->gseq);
}

static void take_subscription(weft_event_follow *self, const weft_json *result) {
    uint64_t head = (uint64_t) weft_get_int(result, "head", 0);
    snprintf(self->epoch, sizeof self->epoch, "%s", weft_get_str(result, "epoch", ""));
    if (!self->positioned)
        self->gseq = self->opts.from.now ? head : self->opts.from.after;
    self->positioned = true;
    self->ready = true;
    tell_resumed(self);
    weft__remark(self->app, "epoch %s, behind event %" PRIu64 " of %" PRIu64, self->epoch, self->gseq, head);
    self->opts.on_ready(self->opts.ctx, head);
    self->was_ready = true;
}

static void on_followed_subscribed(weft_event_follow *self, int r, const weft_answer *answer) {
    if (r == -ECONNRESET || r == -ENOTCONN)
        return; /* on_followed_state() says more */
    if (r < 0) {
        clear_talk(self);
        weft__event_follow_end(self, weft__fail_at(self->app, self->target.shown, r, NULL));
    } else if (answer->error && answer->error->code == 503 && self->positioned) {
        return; /* it is stopping and will close the connection */
    } else if (answer->error) {
        clear_talk(self);
        weft__event_follow_end(self, weft__hub_call_refused(self->app, "event.subscribe", answer->error));
    } else if (*weft_get_str(answer->result, "reason", "")) {
        step_over(self, weft_get_str(answer->result, "reason", ""));
    } else {
        take_subscription(self, answer->result);
    }
}

/* One call, and which subscription it was for: memory that goes with its answer. */
typedef struct asking {
    weft_event_follow *events;
    uint64_t round;
} asking;

static void on_subscribe_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    asking *ask = ctx;
    weft_event_follow *self = ask->events;
    bool current = ask->round == self->round;
    (void) peer;
    weft__free(NULL, ask);
    if (current && !self->over)
        on_followed_subscribed(self, r, answer);
}

static void subscribe_live(weft_event_follow *self) {
    const weft_event_follow_from *from = &self->opts.from;
    const char *epoch = self->positioned ? self->epoch : from->epoch;
    weft_val types[WEFT_MAX_TEXTS];
    size_t count = from->types ? from->types->count : 0;
    bool now = from->now && !self->positioned;
    asking *ask = weft__zalloc(NULL, sizeof *ask);
    if (!ask) {
        out_of_memory(self);
        return;
    }
    for (size_t i = 0; i < count; i++)
        types[i] = weft_str(from->types->items[i]);
    *ask = (asking){self, ++self->round};
    self->ready = false;
    weft_val params =
        WEFT_OBJ({"after", now ? weft_none() : weft_uint(self->positioned ? self->gseq : from->after)},
                 {"epoch", epoch && !now ? weft_str(epoch) : weft_none()},
                 {"types", count ? weft_arr(types, count) : weft_none()}, {"taskId", weft_str_or_none(from->task)});
    if (weft_call_start(self->peer, "event.subscribe", params,
                        &(weft_call_opts){.on_answer = on_subscribe_answer, .ctx = ask}, NULL) < 0) {
        weft__free(NULL, ask);
        out_of_memory(self);
    }
}

void weft__event_follow_turn(weft_event_follow *self, const weft_event_follow_from *from) {
    self->opts.from = *from;
    self->positioned = false;
    if (!self->over && !self->lost)
        subscribe_live(self);
}

/* ---- the subscription as a stream ---- */

static void start_stream(weft_event_follow *self);

static void on_stream_value(weft_sub *sub, const weft_sub_value *value, void *ctx) {
    weft_event_follow *self = ctx;
    (void) sub;
    if (self->over)
        return;
    self->gseq = value->seq;
    self->opts.on_event(self->opts.ctx, value->value);
}

static void take_stream(weft_event_follow *self) {
    snprintf(self->epoch, sizeof self->epoch, "%s", weft_sub_journal(self->sub));
    self->gseq = weft_sub_seq(self->sub);
    self->positioned = self->ready = true;
    tell_resumed(self);
    weft__remark(self->app, "epoch %s, behind event %" PRIu64, self->epoch, self->gseq);
    self->opts.on_ready(self->opts.ctx, 0);
    self->was_ready = true;
}

/* As step_over(): the stream would go on with what comes next, which is right for a position that does not exist yet. */
static void step_over_in_stream(weft_event_follow *self, const char *reason) {
    bool next = strcmp(reason, "futureSeq") == 0;
    self->resuming = false;
    if (self->opts.on_gap)
        self->opts.on_gap(self->opts.ctx, reason);
    if (self->over)
        return;
    if (next) {
        take_stream(self);
        return;
    }
    self->sub = weft_sub_free(self->sub);
    self->opts.from.epoch = NULL;
    self->opts.from.after = 0;
    self->opts.from.now = false;
    start_stream(self);
}

static void on_stream_ended(weft_event_follow *self, const weft_sub_news *news) {
    clear_talk(self);
    if (news->error)
        weft__event_follow_end(self, weft__hub_call_refused(self->app, "tinyvex/subscribe", news->error));
    else
        weft__event_follow_end(self, weft__fail_at(self->app, self->target.shown, news->why, NULL));
}

static void on_stream_news(weft_sub *sub, const weft_sub_news *news, void *ctx) {
    weft_event_follow *self = ctx;
    (void) sub;
    if (self->over)
        return;
    if (news->state == WEFT_SUB_LIVE || news->state == WEFT_SUB_RESUMED)
        take_stream(self);
    else if (news->state == WEFT_SUB_SNAPSHOT)
        step_over_in_stream(self, news->reason);
    else if (news->state == WEFT_SUB_ENDED)
        on_stream_ended(self, news);
}

/* Once: from then on it comes back by itself. */
static void start_stream(weft_event_follow *self) {
    const weft_event_follow_from *from = &self->opts.from;
    weft_val types[WEFT_MAX_TEXTS];
    size_t count = from->types ? from->types->count : 0;
    for (size_t i = 0; i < count; i++)
        types[i] = weft_str(from->types->items[i]);
    weft_sub_opts opts = {.on_value = on_stream_value, .on_state = on_stream_news, .ctx = self};
    if (!from->now) {
        opts.journal = from->epoch ? from->epoch : "";
        opts.last_seq = from->after;
    }
    int r = weft_subscribe(
        self->peer, "events",
        WEFT_OBJ({"types", count ? weft_arr(types, count) : weft_none()}, {"taskId", weft_str_or_none(from->task)}), &opts,
        &self->sub);
    if (r < 0) {
        clear_talk(self);
        weft__event_follow_end(self, weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r)));
    }
}

/* ---- the connection ---- */

static void on_followed_token_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_event_follow *self = ctx;
    (void) peer;
    if (self->over || r < 0 || !answer->error || answer->error->code == WEFT_METHOD_NOT_FOUND)
        return;
    clear_talk(self);
    weft__event_follow_end(self, weft__fail_refused(self->app, "weft.auth", answer->error, "The server refused the token."));
}

static void on_followed_connected(weft_event_follow *self) {
    weft__timer_stop(self->loop, &self->patience);
    self->resuming = self->resuming || self->lost;
    self->was_connected = true;
    self->lost = false;
    if (weft__target_shows_by_call(&self->target) &&
        weft__target_show(self->peer, &self->target, on_followed_token_answer, self) < 0)
        out_of_memory(self);
    else if (!self->opts.by_stream)
        subscribe_live(self);
    else if (!self->sub)
        start_stream(self);
}

static void on_impatient(weft_timer *timer) {
    weft_event_follow *self = (weft_event_follow *) ((char *) timer - offsetof(weft_event_follow, patience));
    clear_talk(self);
    weft__event_follow_end(
        self, weft__fail(self->app, WEFT_UNREACHABLE,
                         "\"weft start\" starts the hub of a folder; what was submitted is then in \"weft task list\".",
                         "%s: the connection was lost and could not be made again", self->target.shown));
}

static void on_followed_limit(weft_timer *timer) {
    weft_event_follow *self = (weft_event_follow *) ((char *) timer - offsetof(weft_event_follow, limit));
    clear_talk(self);
    if (!self->was_ready)
        weft__event_follow_end(self,
                               weft__fail(self->app, WEFT_TOO_LATE, "Wait longer with --timeout, for example --timeout 60s.",
                                          "%s: no answer in time", self->target.shown));
    else if (self->lost)
        weft__event_follow_end(self,
                               weft__fail(self->app, WEFT_UNREACHABLE, NULL,
                                          "%s: the connection was lost and was not made again in time", self->target.shown));
    else if (self->opts.on_limit)
        self->opts.on_limit(self->opts.ctx);
    else
        weft__event_follow_end(self, WEFT_DONE);
}

static void on_followed_lost(weft_event_follow *self, bool for_good, int why) {
    const char *trouble = weft_peer_trouble(self->peer);
    self->ready = false;
    if (for_good || !self->was_connected) {
        clear_talk(self);
        weft__event_follow_end(self, weft__target_fail(self->app, &self->target, why, trouble));
        return;
    }
    if (self->lost)
        return;
    self->lost = true;
    clear_talk(self);
    weft__warn(self->app, "%s; trying again%s", *trouble ? trouble : weft_strerror(why),
               self->target.here ? ". If the hub is gone, \"weft start\" starts it" : "");
    if (self->opts.patience_ms > 0)
        weft__timer_set(self->loop, &self->patience, weft__after(weft__loop_fresh_now(self->loop), self->opts.patience_ms));
}

static void on_followed_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    weft_event_follow *self = data;
    self->peer = peer;
    if (self->over)
        return;
    if (state == WEFT_PEER_CONNECTED)
        on_followed_connected(self);
    else if (state != WEFT_PEER_CONNECTING)
        on_followed_lost(self, state == WEFT_PEER_CLOSED, why);
}

static void on_followed_signal(void *ctx) {
    weft_event_follow *self = ctx;
    int64_t before = self->signalled_ns;
    self->signalled_ns = weft__clock_ns();
    if (before && self->signalled_ns - before < SAME_SIGNAL_NS)
        return;
    if (self->opts.on_signal)
        self->opts.on_signal(self->opts.ctx);
    else {
        if (self->app->err.terminal)
            fputc('\n', self->app->err.file); /* behind the ^C of the terminal */
        weft__event_follow_end(self, WEFT_DONE);
    }
}

/* The terminal is gone. */
static void on_followed_hangup(void *ctx) {
    weft__event_follow_end(ctx, WEFT_FAILED);
}

/* ---- its life ---- */

static int open_live(weft_event_follow *self) {
    int r = weft_loop_new(NULL, &self->loop);
    if (r >= 0)
        r = weft__debug_service(&self->service);
    if (r < 0)
        return r;
    weft__timer_init(&self->patience, on_impatient);
    weft__timer_init(&self->limit, on_followed_limit);
    if (self->opts.limit_ms > 0)
        weft__timer_set(self->loop, &self->limit, weft__loop_fresh_now(self->loop) + self->opts.limit_ms);
    self->signals.on_hangup = on_followed_hangup;
    r = weft__signals_open(&self->signals, self->loop, on_followed_signal, self);
    if (r < 0)
        return r;
    weft_connect_opts opts = weft__target_opts(self->app, &self->target, self->service);
    opts.reconnect = !(self->target.scheme->flags & WEFT_ENDS);
    opts.extras = true;
    opts.data = self;
    opts.on_state = on_followed_state;
    opts.on_notification = on_followed_notification;
    return weft_connect_on(self->loop, self->target.url, &opts, &self->peer, &self->target.trouble);
}

static weft_exit run_all(weft_event_follow *self) {
    int r = open_live(self);
    if (r >= 0)
        weft_loop_run(self->loop);
    bool ended = self->over;
    self->over = true;
    clear_talk(self);
    if (r >= 0 && self->opts.on_close)
        self->opts.on_close(self->opts.ctx);
    if (self->loop) {
        weft__timer_stop(self->loop, &self->patience);
        weft__timer_stop(self->loop, &self->limit);
    }
    weft__signals_close(&self->signals);
    self->sub = weft_sub_free(self->sub);
    self->peer = weft_peer_free(self->peer);
    if (self->loop)
        weft_loop_run(self->loop); /* its good-bye takes a turn or two */
    self->loop = weft_loop_free(self->loop);
    self->service = weft_service_unref(self->service);
    if (r < 0)
        return weft__target_fail(self->app, &self->target, r, self->target.trouble.text);
    return ended ? self->status : WEFT_FAILED;
}

weft_exit weft__event_follow_run(weft_event_follow *self, weft_app *app, const weft_event_follow_opts *opts) {
    *self = (weft_event_follow){.app = app, .opts = *opts};
    weft_exit status = weft__hub_call_target(app, opts->url, &self->target);
    if (status == WEFT_DONE)
        status = run_all(self);
    weft__target_done(&self->target);
    return status;
}
