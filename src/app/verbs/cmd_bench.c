/* weft bench: how many requests a second an endpoint answers, and how long each takes. Closed loop: every connection keeps a
 * window of calls open and makes a new one for each that is answered. */
#include <errno.h>
#include <string.h>

#include "app.h"
#include "clock.h"
#include "debug.h"
#include "endpoint.h"
#include "failure.h"
#include "latency.h"
#include "loop.h"
#include "progress.h"
#include "signals.h"

#define CONNECTIONS 4
#define WINDOW 16
#define SIZE 64
#define DURATION_MS 5000
/* So many need no second machine to be silly. */
#define MAX_CONNECTIONS 10000
#define MAX_WINDOW 65536
#define MAX_SIZE (32 * 1024 * 1024)
#define DRAW_MS 100

typedef struct settings {
    int64_t connections, window, size, duration_ms, count;
    const char *method;
} settings;

typedef struct bench bench;

typedef struct slot {
    bench *bench;
    weft_peer *peer;
    int64_t begun_ns;
} slot;

typedef struct connection {
    bench *bench;
    weft_peer *peer;
    slot *slots;
    bool ready;
} connection;

struct bench {
    weft_app *app;
    settings how;
    weft_target target;
    weft_loop *loop;
    weft_service *service;
    weft_signals signals;
    weft_timer timer;
    connection *connections;
    size_t ready;
    char *params;
    size_t params_len;
    weft_latency latency;
    int64_t begun_ns, ended_ns;
    uint64_t started, open, errors;
    bool running, over;
    weft_exit status;
};

/* ---- the end ---- */

static void finish_bench(bench *self) {
    if (self->over)
        return;
    self->over = true;
    self->ended_ns = weft__clock_ns();
    weft_loop_stop(self->loop);
}

static void fail_bench(bench *self, weft_exit status) {
    self->status = status;
    finish_bench(self);
}

static void on_bench_signal(void *ctx) {
    finish_bench(ctx);
}

/* ---- calls ---- */

static void on_bench_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx);

static void start_call(slot *self) {
    bench *all = self->bench;
    if (all->over || (all->how.count && all->started >= (uint64_t) all->how.count))
        return;
    weft_call_opts opts = {.on_answer = on_bench_answer, .ctx = self, .timeout_ms = all->app->reach.timeout_ms};
    self->begun_ns = weft__clock_ns();
    int r = weft_call_start(self->peer, all->how.method, weft_raw(all->params, all->params_len), &opts, NULL);
    if (r < 0) {
        fail_bench(all, weft__fail_at(all->app, all->target.shown, r, weft_peer_trouble(self->peer)));
        return;
    }
    all->started++;
    all->open++;
}

/* The first refusal is explained; when there are some, the rest are only counted. */
static void note_error(bench *self, const weft_error *error) {
    const char *next = error->code == 429 ? "The server limits the rate; \"weft serve --no-rate\" does not." : NULL;
    if (self->errors++ == 0) {
        weft__progress_clear(self->app);
        bool json = self->app->common.json;
        self->app->common.json = false; /* the report says it */
        self->status = weft__fail_refused(self->app, self->how.method, error, next);
        self->app->common.json = json;
    }
}

static void on_bench_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    slot *self = ctx;
    bench *all = self->bench;
    if (all->over)
        return;
    all->open--;
    if (r == -ECONNRESET || r == -ENOTCONN)
        return; /* on_bench_state knows why */
    if (r < 0) {
        fail_bench(all, weft__fail_at(all->app, all->target.shown, r, weft_peer_trouble(peer)));
        return;
    }
    if (answer->error)
        note_error(all, answer->error);
    else
        weft__latency_add(&all->latency, (uint64_t) (weft__clock_ns() - self->begun_ns));
    start_call(self);
    if (all->open == 0)
        finish_bench(all);
}

/* ---- connections ---- */

static void on_time(weft_timer *timer) {
    bench *self = WEFT_CONTAINER(timer, bench, timer);
    char note[64];
    int64_t elapsed = (weft__clock_ns() - self->begun_ns) / 1000000;
    if (!self->how.count && elapsed >= self->how.duration_ms) {
        finish_bench(self);
        return;
    }
    double done = self->how.count ? (double) (self->started - self->open) / (double) self->how.count
                                  : (double) elapsed / (double) self->how.duration_ms;
    snprintf(note, sizeof note, "%.0f/s", (double) self->latency.count * 1000 / (double) (elapsed ? elapsed : 1));
    weft__progress_draw(self->app, done, elapsed, note);
    int64_t next = self->how.count ? DRAW_MS : self->how.duration_ms - elapsed;
    weft__timer_set(self->loop, timer, weft_loop_now(self->loop) + (next < DRAW_MS ? next : DRAW_MS));
}

/* Everybody is there: all begin together. */
static void begin_bench(bench *self) {
    self->running = true;
    self->begun_ns = weft__clock_ns();
    weft__timer_set(self->loop, &self->timer, weft_loop_now(self->loop) + 1);
    for (int64_t w = 0; w < self->how.window; w++)
        for (int64_t c = 0; c < self->how.connections; c++)
            start_call(&self->connections[c].slots[w]);
}

static void connection_ready(connection *self) {
    bench *all = self->bench;
    self->ready = true;
    if (++all->ready == (size_t) all->how.connections)
        begin_bench(all);
}

static void on_bench_token_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    connection *self = ctx;
    bench *all = self->bench;
    (void) peer;
    if (all->over || r < 0)
        return; /* on_bench_state says why */
    if (answer->error && answer->error->code != WEFT_METHOD_NOT_FOUND)
        fail_bench(all, weft__fail_refused(all->app, "weft.auth", answer->error, "The server refused the token."));
    else
        connection_ready(self);
}

static void on_bench_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    connection *self = data;
    bench *all = self->bench;
    if (all->over)
        return;
    if (state == WEFT_PEER_CLOSED)
        fail_bench(all, weft__fail_at(all->app, all->target.shown, why, weft_peer_trouble(peer)));
    else if (state == WEFT_PEER_CONNECTED && weft__target_shows_by_call(&all->target))
        weft__target_show(peer, &all->target, on_bench_token_answer, self);
    else if (state == WEFT_PEER_CONNECTED && !self->ready)
        connection_ready(self);
}

static int open_connection(bench *self, connection *made) {
    weft_connect_opts opts = weft__target_opts(self->app, &self->target, self->service);
    opts.data = made;
    opts.on_state = on_bench_state;
    opts.no_deflate = true; /* compressing noise measures zlib */
    made->bench = self;
    made->slots = weft__zalloc(NULL, (size_t) self->how.window * sizeof *made->slots);
    if (!made->slots)
        return -ENOMEM;
    int r = weft_connect_on(self->loop, self->target.url, &opts, &made->peer, &self->target.trouble);
    for (int64_t i = 0; r >= 0 && i < self->how.window; i++)
        made->slots[i] = (slot){.bench = self, .peer = made->peer};
    return r;
}

static int open_bench(bench *self) {
    int r = weft_loop_new(NULL, &self->loop);
    if (r >= 0)
        r = weft__debug_service(&self->service);
    if (r >= 0)
        r = weft__signals_open(&self->signals, self->loop, on_bench_signal, self);
    weft__timer_init(&self->timer, on_time);
    self->connections = weft__zalloc(NULL, (size_t) self->how.connections * sizeof *self->connections);
    if (!self->connections)
        return -ENOMEM;
    for (int64_t i = 0; r >= 0 && i < self->how.connections; i++)
        r = open_connection(self, &self->connections[i]);
    return r;
}

static void close_bench(bench *self) {
    self->over = true;
    for (int64_t i = 0; self->connections && i < self->how.connections; i++) {
        weft_peer_free(self->connections[i].peer);
        weft__free(NULL, self->connections[i].slots);
    }
    weft__free(NULL, self->connections);
    weft__free(NULL, self->params);
    weft__signals_close(&self->signals);
    if (self->loop) {
        weft__timer_stop(self->loop, &self->timer);
        weft_loop_run(self->loop); /* closing many connections takes a few turns */
    }
    weft_loop_free(self->loop);
    weft_service_unref(self->service);
}

/* ---- the report ---- */

static void put_bench_json(const bench *self, double seconds) {
    const weft_latency *l = &self->latency;
    weft_val latency =
        WEFT_OBJ({"p50Ms", weft_num(weft__latency_at(l, 0.5) / 1e6)}, {"p99Ms", weft_num(weft__latency_at(l, 0.99) / 1e6)},
                 {"p999Ms", weft_num(weft__latency_at(l, 0.999) / 1e6)}, {"maxMs", weft_num((double) l->most / 1e6)});
    weft__put_line(&self->app->out,
                   WEFT_OBJ({"url", weft_str(self->target.shown)}, {"method", weft_str(self->how.method)},
                            {"connections", weft_int(self->how.connections)}, {"window", weft_int(self->how.window)},
                            {"size", weft_int(self->how.size)}, {"seconds", weft_num(seconds)},
                            {"requests", weft_uint(l->count)}, {"errors", weft_uint(self->errors)},
                            {"requestsPerSecond", weft_num((double) l->count / seconds)}, {"latency", latency}));
}

static void put_report(const bench *self, double seconds) {
    const weft_latency *l = &self->latency;
    FILE *to = self->app->out.file;
    char p50[32], p99[32], p999[32], most[32];
    weft__latency_text(weft__latency_at(l, 0.5), p50);
    weft__latency_text(weft__latency_at(l, 0.99), p99);
    weft__latency_text(weft__latency_at(l, 0.999), p999);
    weft__latency_text((double) l->most, most);
    fprintf(to, "%s, %s, %lld connections, window %lld, %lld bytes\n", self->target.shown, self->how.method,
            (long long) self->how.connections, (long long) self->how.window, (long long) self->how.size);
    fprintf(to, "%llu requests in %.2f s: ", (unsigned long long) l->count, seconds);
    weft__ink(&self->app->out, WEFT_INK_BOLD);
    fprintf(to, "%.0f requests/s", (double) l->count / seconds);
    weft__plain(&self->app->out);
    fprintf(to, "\np50 %s, p99 %s, p99.9 %s, most %s\n", p50, p99, p999, most);
    if (self->errors)
        fprintf(to, "%llu were refused\n", (unsigned long long) self->errors);
    if (l->count)
        weft__latency_draw(l, &self->app->out);
}

static void report_bench(const bench *self) {
    double seconds = (double) (self->ended_ns - self->begun_ns) / 1e9;
    if (!self->running || self->latency.count + self->errors == 0)
        return;
    if (self->app->common.json)
        put_bench_json(self, seconds);
    else
        put_report(self, seconds);
}

/* ---- the command line ---- */

static int64_t number_or(int64_t value, int64_t fallback) {
    return value ? value : fallback;
}

static weft_exit read_settings(bench *self) {
    const settings *given = self->app->settings;
    settings *how = &self->how;
    *how = (settings){
        .connections = number_or(given->connections, CONNECTIONS),
        .window = number_or(given->window, WINDOW),
        .size = number_or(given->size, SIZE),
        .duration_ms = number_or(given->duration_ms, DURATION_MS),
        .count = given->count,
        .method = given->method ? given->method : "echo",
    };
    if (how->connections > MAX_CONNECTIONS || how->window > MAX_WINDOW || how->size > MAX_SIZE)
        return weft__misused(self->app, "at most %d connections, a window of %d and %d bytes", MAX_CONNECTIONS, MAX_WINDOW,
                             MAX_SIZE);
    return WEFT_DONE;
}

/* {"text":"xxx..."}, size bytes of x. */
static int make_params(bench *self) {
    static const char before[] = "{\"text\":\"", after[] = "\"}";
    size_t size = (size_t) self->how.size;
    self->params_len = size + strlen(before) + strlen(after);
    self->params = weft__alloc(NULL, self->params_len + 1);
    if (!self->params)
        return -ENOMEM;
    memset(self->params, 'x', self->params_len);
    memcpy(self->params, before, strlen(before));
    memcpy(self->params + strlen(before) + size, after, sizeof after);
    return 0;
}

static weft_exit measure_load(bench *self) {
    int r = make_params(self);
    if (r >= 0)
        r = open_bench(self);
    if (r >= 0)
        weft_loop_run(self->loop);
    finish_bench(self);
    weft__progress_clear(self->app);
    if (r < 0)
        self->status = weft__fail_at(self->app, self->target.shown, r, self->target.trouble.text);
    report_bench(self);
    close_bench(self);
    return self->status;
}

static weft_exit run_bench(weft_app *app) {
    bench *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    self->app = app;
    weft_exit status = read_settings(self);
    if (status == WEFT_DONE)
        status = weft__only_url_check(app);
    if (status == WEFT_DONE)
        status = weft__target_take(app, &self->target);
    if (status == WEFT_DONE)
        status = measure_load(self);
    weft__target_done(&self->target);
    weft__free(NULL, self);
    return status;
}

static const weft_option options[] = {
    WEFT_OPTION(settings, connections, number, "connections", 'c', "N", "how many connections (default 4)"),
    WEFT_OPTION(settings, window, number, "window", 'w', "N", "open calls per connection (default 16)"),
    WEFT_OPTION(settings, size, number, "size", 's', "BYTES", "text in each call's params (default 64)"),
    WEFT_OPTION(settings, duration_ms, time, "duration", 'd', "TIME", "how long (default 5s)"),
    WEFT_OPTION(settings, count, number, "count", 'n', "N", "so many requests instead"),
    WEFT_OPTION(settings, method, text, "method", 'm', "NAME", "what to call (default echo)"),
    {0},
};

static const char *const examples[] = {
    "weft bench",
    "the hub of this folder, 5 seconds",
    "weft bench -c 64 -w 32 -d 10s unix:/run/echo.sock",
    "64 connections with 32 open calls each, 10 seconds",
    "weft bench -c 1 -w 1 -n 10k --json ws://127.0.0.1:8080/",
    "the latency of ten thousand calls one after another, for a script",
    NULL,
};

const weft_verb weft__bench_verb = {
    .name = "bench",
    .help = "measure requests per second and latencies",
    .usage = "[URL]",
    .examples = examples,
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_bench,
};
