/* weft top: what the hub does, live: methods by rate and how long they take, errors, tasks, the store, agents. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "alloc.h"
#include "buf.h"
#include "debug.h"
#include "failure.h"
#include "hub_call.h"
#include "link.h"
#include "loop.h"
#include "signals.h"
#include "time_text.h"
#include "top_figures.h"
#include "write.h"

#define USUAL_MS 1000
#define ANSWER_MS 10000
/* Lines above the table of methods, with its heads. */
#define HEAD_LINES 7
/* Of the terminal, when it does not say. */
#define USUAL_ROWS 24

typedef struct settings {
    int64_t every_ms; /* 0: the usual */
    bool once;
    const char *url;
} settings;

typedef struct top {
    weft_app *app;
    const settings *how;
    weft_target target;
    weft_loop *loop;
    weft_service *service;
    weft_peer *peer;
    weft_signals signals;
    weft_timer timer;
    weft_doc *before, *now; /* the last two answers */
    weft_exit status;
    bool was_connected, connected, asking, full_screen;
} top;

static void end_top(top *self, weft_exit status) {
    self->status = status;
    weft_loop_stop(self->loop);
}

/* ---- words ---- */

#define CELL 16
/* Columns of the hub's URL. */
#define URL_WIDTH 40

/* "850 µs" has no place in a column: 850us, 1.2ms, 34ms, 1.2s, 3m. */
static const char *put_took(double seconds, char ret[CELL]) {
    double us = seconds * 1e6;
    if (seconds < 0)
        snprintf(ret, CELL, "-");
    else if (us < 1000)
        snprintf(ret, CELL, "%.0fus", us);
    else if (us < 1e4)
        snprintf(ret, CELL, "%.1fms", us / 1e3);
    else if (us < 1e6)
        snprintf(ret, CELL, "%.0fms", us / 1e3);
    else if (us < 1e8)
        snprintf(ret, CELL, "%.1fs", us / 1e6);
    else
        snprintf(ret, CELL, "%.0fm", us / 6e7);
    return ret;
}

static const char *put_rate(double rate, char ret[CELL]) {
    snprintf(ret, CELL, rate >= 1000 ? "%.0f" : rate >= 10 ? "%.1f" : "%.2f", rate > 0 ? rate : 0);
    return ret;
}

static const char *put_size(double bytes, char ret[CELL]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    while (bytes >= 1024 && unit < 3) {
        bytes /= 1024;
        unit++;
    }
    snprintf(ret, CELL, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return ret;
}

/* ---- the screen ---- */

/* A line of it. On a full screen what stood there before is cleared. */
static void end_line(const top *self) {
    fputs(self->full_screen ? "\033[K\n" : "\n", self->app->out.file);
}

static void put_top_label(const top *self, const char *label) {
    weft__ink(&self->app->out, WEFT_INK_DIM);
    fprintf(self->app->out.file, "%-10s", label);
    weft__plain(&self->app->out);
}

/* The end of a long one says which hub it is. */
static void put_shown_url(FILE *out, const char *url) {
    size_t len = strlen(url), skip = len > URL_WIDTH ? len - (URL_WIDTH - 1) : 0;
    while (skip && ((unsigned char) url[skip] & 0xc0) == 0x80)
        skip++;
    fprintf(out, skip ? "…%-*s" : "%-*s", skip ? URL_WIDTH - 1 : URL_WIDTH, url + skip);
}

static void put_title(const top *self, const weft_top_figures *now) {
    char up[WEFT_TIME_TEXT], about[WEFT_TIME_TEXT];
    FILE *out = self->app->out.file;
    weft__ink(&self->app->out, WEFT_INK_BOLD);
    put_shown_url(out, self->target.shown);
    weft__plain(&self->app->out);
    fprintf(out, " up %-16s", weft__duration(up, (int64_t) now->uptime * 1000));
    if (self->connected)
        fprintf(out, "last %s", weft__duration(about, (int64_t) (now->seconds * 1000 + 0.5) / 10 * 10));
    else
        fputs("not connected", out);
    end_line(self);
}

static void put_summary(const top *self, const weft_top_figures *now) {
    char a[CELL], b[CELL], c[CELL], d[CELL];
    FILE *out = self->app->out.file;
    put_top_label(self, "requests");
    fprintf(out, "%s/s, errors %s/s, %.0f open, told %s/s", put_rate(now->requests, a), put_rate(now->errors, b), now->open,
            put_rate(now->notifications_out, c));
    end_line(self);
    put_top_label(self, "clients");
    fprintf(out, "%.0f", now->clients);
    for (size_t i = 0; i < now->transport_count && i < 5; i++)
        fprintf(out, "%s%.0f %.8s", i ? ", " : " (", now->transports[i].count, now->transports[i].name);
    fprintf(out, "%s, %.0f subscriptions, %.0f behind", now->transport_count ? ")" : "", now->subscriptions, now->replaying);
    end_line(self);
    put_top_label(self, "tasks");
    fprintf(out, "%.0f running, %.0f waiting, wait p95 %s; %.0f agents, %.0f questions", now->running, now->queued,
            put_took(now->wait.p95, a), now->processes, now->questions);
    end_line(self);
    put_top_label(self, "store");
    fprintf(out, "%s appends/s, sync p50 %s p99 %s, %.1f together, %s queued", put_rate(now->appends, a),
            put_took(now->sync.p50, b), put_took(now->sync.p99, c), now->together, put_size(now->store_queue, d));
    end_line(self);
    put_top_label(self, "process");
    fprintf(out, "%.1f %% of a core, %s, loop p99 %s", now->processor * 100, put_size(now->memory, a),
            put_took(now->loop.p99, b));
    end_line(self);
}

static void put_methods(const top *self, const weft_top_figures *now, size_t rows) {
    FILE *out = self->app->out.file;
    weft__ink(&self->app->out, WEFT_INK_BOLD);
    fprintf(out, "%-30s%9s%8s%8s%8s%8s%9s", "METHOD", "RATE/S", "ERR/S", "P50", "P95", "P99", "TOTAL");
    weft__plain(&self->app->out);
    end_line(self);
    for (size_t i = 0; i < now->method_count && i < rows; i++) {
        const weft_top_method *one = &now->methods[i];
        char rate[CELL], errors[CELL], p50[CELL], p95[CELL], p99[CELL];
        char name[32];
        snprintf(name, sizeof name, "%.29s", one->name); /* a method's name is ASCII */
        weft__put_text(&self->app->out, name, strlen(name));
        fprintf(out, "%*s%9s%8s%8s%8s%8s%9.0f", (int) (30 - strlen(name)), "", put_rate(one->rate, rate),
                put_rate(one->errors, errors), put_took(one->took.p50, p50), put_took(one->took.p95, p95),
                put_took(one->took.p99, p99), one->total);
        end_line(self);
    }
}

static size_t rows_of_screen(const top *self) {
    struct winsize size;
    if (!self->full_screen)
        return WEFT_TOP_METHODS;
    if (ioctl(fileno(self->app->out.file), TIOCGWINSZ, &size) < 0 || size.ws_row == 0)
        size.ws_row = USUAL_ROWS;
    return size.ws_row > HEAD_LINES + 1 ? (size_t) size.ws_row - HEAD_LINES - 1 : 1;
}

static void put_screen(const top *self, const weft_top_figures *now) {
    FILE *out = self->app->out.file;
    if (self->full_screen)
        fputs("\033[H", out);
    put_title(self, now);
    put_summary(self, now);
    put_methods(self, now, rows_of_screen(self));
    fputs(self->full_screen ? "\033[J" : self->how->once ? "" : "\n", out);
    fflush(out);
}

/* ---- JSON ---- */

static weft_val took_val(double seconds) {
    return seconds < 0 ? weft_null() : weft_num((double) (int64_t) (seconds * 1e6 + 0.5) / 1e3);
}

static weft_val rate_val(double rate) {
    return weft_num((double) (int64_t) ((rate > 0 ? rate : 0) * 1000 + 0.5) / 1000);
}

#define QUANTILES(of)                                                                                                       \
    {"p50Ms", took_val((of).p50)}, {"p95Ms", took_val((of).p95)}, {                                                         \
        "p99Ms", took_val((of).p99)                                                                                         \
    }

static int put_json_methods(const weft_top_figures *now, weft_buf *out) {
    int r = weft__buf_put(out, NULL, "[", 1);
    for (size_t i = 0; r >= 0 && i < now->method_count; i++) {
        const weft_top_method *one = &now->methods[i];
        weft_val value =
            WEFT_OBJ({"method", weft_str(one->name)}, {"perSecond", rate_val(one->rate)},
                     {"errorsPerSecond", rate_val(one->errors)}, QUANTILES(one->took), {"total", weft_num(one->total)});
        r = i ? weft__buf_put(out, NULL, ",", 1) : 0;
        if (r >= 0)
            r = weft__write_val(out, NULL, &value);
    }
    return r < 0 ? r : weft__buf_put(out, NULL, "]", 1);
}

static void put_json_line(const top *self, const weft_top_figures *now) {
    weft_buf methods = {0};
    weft_member transports[WEFT_TOP_TRANSPORTS];
    for (size_t i = 0; i < now->transport_count; i++)
        transports[i] = (weft_member){now->transports[i].name, weft_num(now->transports[i].count)};
    if (put_json_methods(now, &methods) >= 0)
        weft__put_line(
            &self->app->out,
            WEFT_OBJ(
                {"seconds", rate_val(now->seconds)}, {"uptimeSeconds", rate_val(now->uptime)},
                {"requests", WEFT_OBJ({"perSecond", rate_val(now->requests)}, {"errorsPerSecond", rate_val(now->errors)},
                                      {"open", weft_num(now->open)})},
                {"clients", weft_obj(transports, now->transport_count)},
                {"subscriptions", WEFT_OBJ({"live", weft_num(now->subscriptions)}, {"replaying", weft_num(now->replaying)})},
                {"tasks", WEFT_OBJ({"running", weft_num(now->running)}, {"queued", weft_num(now->queued)},
                                   {"wait", WEFT_OBJ(QUANTILES(now->wait))})},
                {"agents", WEFT_OBJ({"processes", weft_num(now->processes)}, {"turns", weft_num(now->turns)},
                                    {"questions", weft_num(now->questions)})},
                {"store",
                 WEFT_OBJ({"appendsPerSecond", rate_val(now->appends)}, {"appendsTogether", rate_val(now->together)},
                          {"queueBytes", weft_num(now->store_queue)}, {"sync", WEFT_OBJ(QUANTILES(now->sync))})},
                {"process", WEFT_OBJ({"cores", rate_val(now->processor)}, {"memoryBytes", weft_num(now->memory)},
                                     {"loop", WEFT_OBJ(QUANTILES(now->loop))})},
                {"methods", weft_raw(weft__buf_head(&methods), weft__buf_len(&methods))}));
    fflush(self->app->out.file);
    weft__buf_done(&methods, NULL);
}

/* ---- asking ---- */

static void show_figures(top *self) {
    weft_top_figures *now = self->now ? weft__alloc(NULL, sizeof *now) : NULL;
    if (!now)
        return;
    weft__top_figures(self->before ? weft_doc_root(self->before) : NULL, weft_doc_root(self->now), now);
    if (!self->app->common.json)
        put_screen(self, now);
    else if (self->connected)
        put_json_line(self, now);
    weft__free(NULL, now);
}

static void ask_later(top *self) {
    int64_t every = self->how->every_ms ? self->how->every_ms : USUAL_MS;
    weft__timer_set(self->loop, &self->timer, weft__loop_fresh_now(self->loop) + every);
}

static void on_figures(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    top *self = ctx;
    weft_doc *kept = NULL;
    (void) peer;
    self->asking = false;
    if (r == 0 && answer->error) {
        end_top(self, weft__fail_refused(self->app, "metrics.get", answer->error,
                                         "It needs the scope metrics: \"weft token add NAME --scope metrics\"."));
        return;
    }
    if (r == 0 && weft_doc_keep(answer->result, NULL, &kept) < 0) {
        end_top(self, weft__fail(self->app, WEFT_FAILED, NULL, "out of memory"));
        return;
    }
    if (r == 0) {
        weft_doc_free(self->before);
        self->before = self->now;
        self->now = kept;
        show_figures(self);
    }
    if (r == 0 && (self->how->once || ferror(self->app->out.file)))
        end_top(self, WEFT_DONE);
    else
        ask_later(self);
}

static void ask_figures(top *self) {
    weft_call_opts opts = {.on_answer = on_figures, .ctx = self, .timeout_ms = ANSWER_MS};
    if (self->asking || !self->connected)
        return;
    self->asking = weft_call_start(self->peer, "metrics.get", weft_none(), &opts, NULL) >= 0;
    if (!self->asking)
        ask_later(self);
}

static void on_top_due(weft_timer *timer) {
    ask_figures(WEFT_CONTAINER(timer, top, timer));
}

/* ---- the connection ---- */

static void on_top_token(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    top *self = ctx;
    (void) peer;
    if (r == 0 && answer->error && answer->error->code != WEFT_METHOD_NOT_FOUND)
        end_top(self, weft__fail_refused(self->app, "weft.auth", answer->error, "The server refused the token."));
    else
        ask_figures(self);
}

static void on_top_connected(top *self) {
    self->was_connected = self->connected = true;
    if (!weft__target_shows_by_call(&self->target))
        ask_figures(self);
    else if (weft__target_show(self->peer, &self->target, on_top_token, self) < 0)
        end_top(self, weft__fail(self->app, WEFT_FAILED, NULL, "out of memory"));
}

/* The hub may be restarted: what was last seen stays on the screen, and says that it is not live. */
static void on_top_lost(top *self, weft_peer_state state, int why) {
    const char *trouble = weft_peer_trouble(self->peer);
    bool was = self->connected;
    self->connected = false;
    if (state == WEFT_PEER_CLOSED || !self->was_connected || self->how->once)
        end_top(self, weft__target_fail(self->app, &self->target, why, trouble));
    else if (was && self->full_screen)
        show_figures(self);
    else if (was)
        weft__warn(self->app, "%s: %s; trying again", self->target.shown, *trouble ? trouble : weft_strerror(why));
}

static void on_top_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    top *self = data;
    self->peer = peer;
    if (state == WEFT_PEER_CONNECTED)
        on_top_connected(self);
    else if (state != WEFT_PEER_CONNECTING)
        on_top_lost(self, state, why);
}

static void on_top_signal(void *ctx) {
    end_top(ctx, WEFT_DONE);
}

/* ---- the verb ---- */

static int open_top(top *self) {
    int r = weft_loop_new(NULL, &self->loop);
    if (r >= 0)
        r = weft__debug_service(&self->service);
    if (r >= 0)
        r = weft__signals_open(&self->signals, self->loop, on_top_signal, self);
    if (r < 0)
        return r;
    weft_connect_opts opts = weft__target_opts(self->app, &self->target, self->service);
    opts.reconnect = !self->how->once;
    opts.data = self;
    opts.on_state = on_top_state;
    return weft_connect_on(self->loop, self->target.url, &opts, &self->peer, &self->target.trouble);
}

/* The terminal's other screen, without a cursor; what was on it comes back. Lines that are too long are cut, not continued:
 * the first rows would be pushed off a narrow screen. */
static void use_full_screen(const top *self, bool begin) {
    if (!self->full_screen)
        return;
    fputs(begin ? "\033[?1049h\033[?25l\033[?7l\033[H\033[J" : "\033[?7h\033[?25h\033[?1049l", self->app->out.file);
    fflush(self->app->out.file);
}

static void close_top(top *self) {
    weft__signals_close(&self->signals);
    if (self->loop)
        weft__timer_stop(self->loop, &self->timer);
    weft_peer_free(self->peer);
    if (self->loop)
        weft_loop_run(self->loop); /* its good-bye takes a turn or two */
    weft_loop_free(self->loop);
    weft_service_unref(self->service);
    weft_doc_free(self->before);
    weft_doc_free(self->now);
}

static weft_exit run_top(weft_app *app) {
    top self = {.app = app, .how = app->settings};
    weft_exit status = weft__only_url_check(app);
    if (status == WEFT_DONE && app->arg_count && self.how->url)
        status = weft__misused(app, "one hub at a time: --url, or \"%s\"", app->args[0]);
    if (status == WEFT_DONE)
        status = weft__hub_call_target(app, app->arg_count ? app->args[0] : self.how->url, &self.target);
    if (status) {
        weft__target_done(&self.target);
        return status;
    }
    weft__timer_init(&self.timer, on_top_due);
    self.full_screen = app->out.terminal && !app->common.json && !self.how->once;
    int r = open_top(&self);
    if (r >= 0) {
        use_full_screen(&self, true);
        weft_loop_run(self.loop);
        use_full_screen(&self, false);
    }
    status = r < 0 ? weft__target_fail(app, &self.target, r, self.target.trouble.text) : self.status;
    close_top(&self);
    weft__target_done(&self.target);
    return status;
}

static const weft_option options[] = {
    WEFT_OPTION(settings, every_ms, time, "interval", 'i', "TIME", "how often: 500ms, 5s (default 1s)"),
    WEFT_OPTION(settings, once, flag, "once", '1', NULL, "show it once, for the time since the hub's start"),
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft top",
    "until Ctrl-C; a hub that is restarted is found again",
    "weft top --once",
    "since the hub's start, without drawing",
    "weft top --json --interval 10s | jq .requests.perSecond",
    "one JSON object every ten seconds",
    NULL,
};

const weft_verb weft__top_verb = {
    .name = "top",
    .help = "show live what the hub does: methods, errors, tasks, the store",
    .usage = "[URL]",
    .examples = examples,
    .about =
        "The figures are those of metrics.get, which needs the scope metrics. A quantile is at most an eighth too high.\n"
        "The first screen is about the time since the hub's start, the others about the time since the one before.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_top,
};
