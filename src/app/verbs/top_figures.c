/* Reading metrics.get. What is not there, in an older or a newer hub, counts as nothing. */
#include "top_figures.h"

#include <stdlib.h>
#include <string.h>

#include "time_text.h"

/* Two answers, and the earlier one only if it is of the same run of the hub. */
typedef struct pair {
    weft_json before, now; /* the lists of metrics; before may be absent */
} pair;

static weft_json samples_of(const weft_json *metrics, const char *name) {
    for (weft_iter it = weft_iterate(metrics); metrics->text && weft_next(&it);)
        if (strcmp(weft_get_str(&it.value, "name", ""), name) == 0)
            return weft_get(&it.value, "samples");
    return (weft_json){0};
}

/* label NULL: the first. */
static weft_json sample_with(const weft_json *samples, const char *label, const char *value) {
    for (weft_iter it = weft_iterate(samples); samples->text && weft_next(&it);) {
        weft_json labels = weft_get(&it.value, "labels");
        if (!label || strcmp(weft_get_str(&labels, label, ""), value) == 0)
            return it.value;
    }
    return (weft_json){0};
}

static double member_of(const weft_json *object, const char *name) {
    weft_json value = object->text ? weft_get(object, name) : (weft_json){0};
    return value.text ? weft_num_of(&value, 0) : 0;
}

/* ---- numbers ---- */

static double value_in(const weft_json *metrics, const char *name, const char *label, const char *value) {
    weft_json samples = samples_of(metrics, name), sample = sample_with(&samples, label, value);
    return member_of(&sample, "value");
}

static double gauge(const pair *both, const char *name, const char *label, const char *value) {
    return value_in(&both->now, name, label, value);
}

static double growth(const pair *both, const char *name, const char *label, const char *value) {
    return value_in(&both->now, name, label, value) - value_in(&both->before, name, label, value);
}

static double growth_of_all(const pair *both, const char *name) {
    weft_json now = samples_of(&both->now, name), before = samples_of(&both->before, name);
    double sum = 0;
    for (weft_iter it = weft_iterate(&now); now.text && weft_next(&it);)
        sum += member_of(&it.value, "value");
    for (weft_iter it = weft_iterate(&before); before.text && weft_next(&it);)
        sum -= member_of(&it.value, "value");
    return sum;
}

/* ---- histograms ---- */

static double count_at(const weft_json *buckets, const weft_json *limit) {
    for (weft_iter it = weft_iterate(buckets); buckets->text && weft_next(&it);) {
        weft_json there = weft_at(&it.value, 0), count = weft_at(&it.value, 1);
        if (there.len == limit->len && memcmp(there.text, limit->text, limit->len) == 0)
            return weft_num_of(&count, 0);
    }
    return 0;
}

/* The limit of the bucket in which this part of what is new lies. The last has none: the one before it will do. */
static double quantile_of(const weft_json *before, const weft_json *now, double part, double total) {
    weft_json old = before->text ? weft_get(before, "buckets") : (weft_json){0}, all = weft_get(now, "buckets");
    double seen = 0, limit = 0;
    for (weft_iter it = weft_iterate(&all); weft_next(&it);) {
        weft_json at = weft_at(&it.value, 0), count = weft_at(&it.value, 1);
        limit = weft_typeof(&at) == WEFT_NUMBER ? weft_num_of(&at, limit) : limit;
        seen += weft_num_of(&count, 0) - count_at(&old, &at);
        if (seen > 0 && seen >= part * total)
            break;
    }
    return limit;
}

static weft_top_quantiles quantiles(const weft_json *before, const weft_json *now) {
    double total = now->text ? member_of(now, "count") - member_of(before, "count") : 0;
    if (total <= 0)
        return (weft_top_quantiles){-1, -1, -1};
    return (weft_top_quantiles){quantile_of(before, now, 0.5, total), quantile_of(before, now, 0.95, total),
                                quantile_of(before, now, 0.99, total)};
}

static weft_top_quantiles only_quantiles(const pair *both, const char *name) {
    weft_json now = samples_of(&both->now, name), before = samples_of(&both->before, name);
    weft_json first = sample_with(&now, NULL, NULL), old = sample_with(&before, NULL, NULL);
    return quantiles(&old, &first);
}

/* ---- methods ---- */

static int by_rate(const void *a, const void *b) {
    const weft_top_method *x = a, *y = b;
    if (x->rate != y->rate)
        return x->rate < y->rate ? 1 : -1;
    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void read_methods(const pair *both, weft_top_figures *ret) {
    static const char took[] = "weft_rpc_request_duration_seconds", failed[] = "weft_rpc_method_errors_total";
    weft_json now = samples_of(&both->now, took), before = samples_of(&both->before, took);
    for (weft_iter it = weft_iterate(&now); now.text && ret->method_count < WEFT_TOP_METHODS && weft_next(&it);) {
        weft_json labels = weft_get(&it.value, "labels");
        const char *name = weft_get_str(&labels, "method", "");
        weft_json old = sample_with(&before, "method", name);
        double total = member_of(&it.value, "count");
        if (total <= 0)
            continue;
        ret->methods[ret->method_count++] = (weft_top_method){.name = name,
                                                              .total = total,
                                                              .rate = (total - member_of(&old, "count")) / ret->seconds,
                                                              .errors = growth(both, failed, "method", name) / ret->seconds,
                                                              .took = quantiles(&old, &it.value)};
    }
    qsort(ret->methods, ret->method_count, sizeof ret->methods[0], by_rate);
}

static void read_clients(const pair *both, weft_top_figures *ret) {
    weft_json samples = samples_of(&both->now, "weft_connections");
    for (weft_iter it = weft_iterate(&samples);
         samples.text && ret->transport_count < WEFT_TOP_TRANSPORTS && weft_next(&it);) {
        weft_json labels = weft_get(&it.value, "labels");
        double count = member_of(&it.value, "value");
        ret->transports[ret->transport_count].name = weft_get_str(&labels, "transport", "");
        ret->transports[ret->transport_count++].count = count;
        ret->clients += count;
    }
}

/* ---- all ---- */

static double start_of(const weft_json *metrics) {
    return value_in(metrics, "process_start_time_seconds", NULL, NULL);
}

static double commits_of(const weft_json *metrics, const char *member) {
    weft_json samples = samples_of(metrics, "weft_store_group_appends"), sample = sample_with(&samples, NULL, NULL);
    return member_of(&sample, member);
}

static void read_rates(const pair *both, weft_top_figures *ret) {
    double commits = commits_of(&both->now, "count") - commits_of(&both->before, "count");
    double together = commits_of(&both->now, "sum") - commits_of(&both->before, "sum");
    ret->requests = growth(both, "weft_rpc_requests_total", "direction", "in") / ret->seconds;
    ret->notifications_out = growth(both, "weft_rpc_notifications_total", "direction", "out") / ret->seconds;
    ret->errors = growth_of_all(both, "weft_rpc_errors_total") / ret->seconds;
    ret->appends = growth(both, "weft_store_appends_total", NULL, NULL) / ret->seconds;
    ret->processor = growth(both, "process_cpu_seconds_total", NULL, NULL) / ret->seconds;
    ret->together = commits > 0 ? together / commits : 0;
}

static void read_gauges(const pair *both, weft_top_figures *ret) {
    ret->open = gauge(both, "weft_rpc_open_requests", NULL, NULL);
    ret->subscriptions = gauge(both, "weft_subscriptions", "state", "live");
    ret->replaying = gauge(both, "weft_subscriptions", "state", "replaying");
    ret->queued = gauge(both, "weft_tasks", "state", "queued");
    ret->running = gauge(both, "weft_tasks", "state", "running");
    ret->questions = gauge(both, "weft_questions_open", NULL, NULL);
    ret->processes = gauge(both, "weft_agent_processes", NULL, NULL);
    ret->turns = gauge(both, "weft_agent_turns", NULL, NULL);
    ret->store_queue = gauge(both, "weft_store_queue_bytes", NULL, NULL);
    ret->memory = gauge(both, "process_resident_memory_bytes", NULL, NULL);
}

void weft__top_figures(const weft_json *before, const weft_json *now, weft_top_figures *ret) {
    pair both = {.now = weft_get(now, "metrics")};
    double at = (double) weft__time_get(now, "timestamp") / 1e3, start = start_of(&both.now);
    *ret = (weft_top_figures){.uptime = start > 0 && at > start ? at - start : 0};
    ret->seconds = ret->uptime;
    if (before) {
        weft_json earlier = weft_get(before, "metrics");
        double then = (double) weft__time_get(before, "timestamp") / 1e3;
        if (start_of(&earlier) == start && at > then) {
            both.before = earlier;
            ret->seconds = at - then;
        }
    }
    if (ret->seconds <= 0)
        ret->seconds = 1e-3; /* the clock was set: rates are wrong for once, and nothing is divided by nothing */
    read_rates(&both, ret);
    read_gauges(&both, ret);
    read_clients(&both, ret);
    read_methods(&both, ret);
    ret->sync = only_quantiles(&both, "weft_store_sync_seconds");
    ret->wait = only_quantiles(&both, "weft_task_wait_seconds");
    ret->loop = only_quantiles(&both, "weft_loop_delay_seconds");
}
