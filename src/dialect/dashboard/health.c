/* health.history: figures of the last 15 minutes, one sample every five seconds, in memory of a fixed size. What is counted
 * from the start on is in metrics.get; a sample has what was added since the one before. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "dashboard_methods.h"
#include "loop.h"
#include "metrics.h"
#include "reply.h"
#include "write.h"

#define SAMPLE_MS 5000
#define SAMPLES 180 /* 15 minutes */
/* The reasons of errors that are told apart, those that came first; others are counted together. */
#define REASONS 24

typedef struct health_sample {
    int64_t time_ms; /* wall clock */
    uint64_t connections, requests, notifications, errors, bytes_in, bytes_out, open;
    uint64_t queued, running, questions;
    uint64_t sync_p99_us, syncs, events, event_bytes, store_queue, store_bytes;
    uint64_t loop_p99_ms, loop_max_ms;
    uint64_t memory, connection_memory;
    uint32_t by_reason[REASONS];
} health_sample;

/* What was counted up to the last sample. */
typedef struct health_before {
    uint64_t requests, notifications, errors, bytes_in, bytes_out, events, event_bytes;
    uint64_t by_reason[REASONS];
    weft_histogram sync_us, loop_ms;
} health_before;

struct weft_health {
    weft_hub *hub;
    weft_timer timer;
    health_before before;
    size_t count; /* ever taken */
    health_sample samples[SAMPLES];
};

/* ---- taking ---- */

static uint64_t since(uint64_t now, uint64_t *before) {
    uint64_t added = now > *before ? now - *before : 0;
    *before = now;
    return added;
}

/* What came since, as a histogram of its own. */
static void histogram_since(const weft_histogram *now, weft_histogram *before, weft_histogram *ret) {
    *ret = (weft_histogram){.count = since(now->count, &before->count), .sum = since(now->sum, &before->sum)};
    for (size_t i = 0; i < WEFT_HISTOGRAM_BUCKETS; i++)
        ret->of[i] = since(now->of[i], &before->of[i]);
}

static void sample_messages(struct weft_health *self, health_sample *to) {
    const weft_stats *stats = weft_service_stats(self->hub->service);
    const weft_measures *measures = weft_service_measures(self->hub->service);
    uint64_t errors = 0;
    to->requests = since(stats->requests, &self->before.requests);
    to->notifications = since(stats->notifications, &self->before.notifications);
    to->bytes_in = since(stats->bytes_in, &self->before.bytes_in);
    to->bytes_out = since(stats->bytes_out, &self->before.bytes_out);
    to->open = stats->open;
    for (size_t i = 0; measures && i < measures->error_count; i++) {
        errors += measures->errors[i].count;
        if (i < REASONS)
            to->by_reason[i] = (uint32_t) since(measures->errors[i].count, &self->before.by_reason[i]);
    }
    to->errors = since(errors, &self->before.errors);
}

static void sample_store(struct weft_health *self, health_sample *to) {
    weft_store_stats store;
    weft_histogram added;
    weft__store_stats(weft__engine_store(self->hub->engine), &store);
    histogram_since(&store.sync_us, &self->before.sync_us, &added);
    to->syncs = added.count;
    to->sync_p99_us = weft_histogram_quantile(&added, 0.99);
    to->events = since(store.events, &self->before.events);
    to->event_bytes = since(store.bytes, &self->before.event_bytes);
    to->store_queue = store.queued_bytes;
    if (self->hub->host && self->hub->host->store_size)
        to->store_bytes = self->hub->host->store_size(self->hub->host->ctx);
}

static void sample_loop(struct weft_health *self, health_sample *to) {
    const weft_histogram *delays = weft__loop_delays(weft__engine_loop(self->hub->engine));
    weft_histogram added;
    if (!delays)
        return;
    histogram_since(delays, &self->before.loop_ms, &added);
    to->loop_p99_ms = weft_histogram_quantile(&added, 0.99);
    to->loop_max_ms = weft_histogram_quantile(&added, 1);
}

/* The second number of /proc/self/statm, in pages; 0 where there is no such file. */
static uint64_t resident_bytes(void) {
    unsigned long total, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%lu %lu", &total, &resident) != 2)
        resident = 0;
    fclose(file);
    return (uint64_t) resident * (uint64_t) sysconf(_SC_PAGESIZE);
}

static void take_sample(struct weft_health *self) {
    const weft_hub *hub = self->hub;
    health_sample *to = &self->samples[self->count++ % SAMPLES];
    weft_task_counts tasks = weft__task_counts(hub->engine);
    weft_clients_figures clients = {0};
    *to = (health_sample){.time_ms = weft__engine_now(hub->engine),
                          .queued = tasks.of[WEFT_TASK_QUEUED],
                          .running = tasks.of[WEFT_TASK_RUNNING],
                          .questions = weft__engine_figures(hub->engine).questions,
                          .memory = resident_bytes(),
                          .connection_memory = hub->server ? weft_server_memory(hub->server) : 0};
    if (hub->clients)
        weft__hub_clients_figures(hub->clients, &clients);
    for (size_t i = 0; i < clients.transport_count; i++)
        to->connections += clients.transports[i].count;
    if (hub->service)
        sample_messages(self, to);
    sample_store(self, to);
    sample_loop(self, to);
}

static void set_timer(struct weft_health *self) {
    weft_loop *loop = weft__engine_loop(self->hub->engine);
    weft__timer_set(loop, &self->timer, weft__loop_fresh_now(loop) + SAMPLE_MS);
}

static void sample_due(weft_timer *timer) {
    struct weft_health *self = WEFT_CONTAINER(timer, struct weft_health, timer);
    take_sample(self);
    set_timer(self);
}

/* The first sample is taken at once, so that what was counted before is not in the next. */
int weft__health_new(weft_hub *hub) {
    struct weft_health *self = weft__zalloc(hub->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->hub = hub;
    weft__timer_init(&self->timer, sample_due);
    hub->health = self;
    take_sample(self);
    set_timer(self);
    return 0;
}

void weft__health_free(weft_hub *hub) {
    if (!hub->health)
        return;
    weft__timer_stop(weft__engine_loop(hub->engine), &hub->health->timer);
    hub->health = weft__free(hub->alloc, hub->health);
}

/* ---- showing ---- */

/* Those of the reasons that came in it: {"timeout":2}. */
static int write_reasons(const struct weft_health *self, const health_sample *from, weft_buf *out) {
    const weft_alloc *alloc = self->hub->alloc;
    const weft_measures *measures = weft_service_measures(self->hub->service);
    bool first = true;
    int r = weft__buf_put(out, alloc, "{", 1);
    for (size_t i = 0; r >= 0 && measures && i < REASONS && i < measures->error_count; i++) {
        char code[16], number[24];
        const char *reason = measures->errors[i].reason;
        snprintf(code, sizeof code, "%d", measures->errors[i].code);
        int n = snprintf(number, sizeof number, ":%u", from->by_reason[i]);
        if (!from->by_reason[i])
            continue;
        r = first ? 0 : weft__buf_put(out, alloc, ",", 1);
        first = false;
        reason = *reason ? reason : code;
        if (r >= 0)
            r = weft__write_str(out, alloc, reason, strlen(reason));
        if (r >= 0)
            r = weft__buf_put(out, alloc, number, (size_t) n);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "}", 1);
}

static int write_sample(const struct weft_health *self, const health_sample *from, weft_buf *out) {
    weft_buf reasons = {0};
    int r = self->hub->service ? write_reasons(self, from, &reasons) : weft__buf_put(&reasons, self->hub->alloc, "{}", 2);
    weft_val sample = WEFT_OBJ(
        {"time", weft_int(from->time_ms)}, {"connections", weft_uint(from->connections)},
        {"requests", weft_uint(from->requests)}, {"notifications", weft_uint(from->notifications)},
        {"errors", weft_uint(from->errors)}, {"reasons", weft_raw(weft__buf_head(&reasons), weft__buf_len(&reasons))},
        {"bytesIn", weft_uint(from->bytes_in)}, {"bytesOut", weft_uint(from->bytes_out)}, {"open", weft_uint(from->open)},
        {"queued", weft_uint(from->queued)}, {"running", weft_uint(from->running)},
        {"questions", weft_uint(from->questions)}, {"syncs", weft_uint(from->syncs)},
        {"syncP99Us", weft_uint(from->sync_p99_us)}, {"events", weft_uint(from->events)},
        {"eventBytes", weft_uint(from->event_bytes)}, {"storeQueue", weft_uint(from->store_queue)},
        {"storeBytes", weft_uint(from->store_bytes)}, {"loopP99Ms", weft_uint(from->loop_p99_ms)},
        {"loopMaxMs", weft_uint(from->loop_max_ms)}, {"memory", weft_uint(from->memory)},
        {"connectionMemory", weft_uint(from->connection_memory)});
    if (r >= 0)
        r = weft__write_val(out, self->hub->alloc, &sample);
    weft__buf_done(&reasons, self->hub->alloc);
    return r;
}

static int write_samples(const struct weft_health *self, weft_buf *out) {
    size_t count = self->count < SAMPLES ? self->count : SAMPLES;
    int r = weft__buf_put(out, self->hub->alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < count; i++) {
        r = i ? weft__buf_put(out, self->hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_sample(self, &self->samples[(self->count - count + i) % SAMPLES], out);
    }
    return r < 0 ? r : weft__buf_put(out, self->hub->alloc, "]", 1);
}

int weft__dashboard_health(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    weft_buf samples = {0};
    char started[WEFT_STAMP];
    (void) params;
    int r = hub->health ? write_samples(hub->health, &samples) : weft__buf_put(&samples, hub->alloc, "[]", 2);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"intervalMs", weft_int(SAMPLE_MS)},
                                     {"startedAt", weft__stamp_val(hub->metrics ? hub->metrics->started_ms : 0, started)},
                                     {"samples", weft_raw(weft__buf_head(&samples), weft__buf_len(&samples))}));
    weft__buf_done(&samples, hub->alloc);
    return r;
}
