/* The table, and for each row the function that reads its samples. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loop.h"
#include "metrics.h"

const char *const weft__metric_types[] = {"counter", "gauge", "histogram"};

/* 16 µs to 67 s; what a method takes is mostly at one of these ends. */
static const weft_metric_scale micro = {1e6, 16, 12, false};
/* 1 ms to 4.6 hours, for tasks, and to 4 s, for turns of the loop. */
static const weft_metric_scale task_milli = {1e3, 16, 11, false}, turn_milli = {1e3, 1, 7, false};
/* 64 bytes to 16 MiB. */
static const weft_metric_scale bytes = {1, 64, 10, true};
static const weft_metric_scale appends = {1, 2, 6, true};

static const char in[] = "in", out_[] = "out";

/* ---- messages ---- */

static const weft_stats *stats_of(const weft_metric_out *out) {
    static const weft_stats none;
    const weft_service *service = out->from->hub->service;
    return service ? weft_service_stats(service) : &none;
}

static const weft_measures *measures_of(const weft_metric_out *out) {
    static const weft_measures none;
    weft_service *service = out->from->hub->service;
    const weft_measures *measures = service ? weft_service_measures(service) : NULL;
    return measures ? measures : &none;
}

static void collect_requests(weft_metric_out *out) {
    weft__sample_count(out, stats_of(out)->requests, in, NULL);
    weft__sample_count(out, stats_of(out)->calls, out_, NULL);
}

static void collect_notifications(weft_metric_out *out) {
    weft__sample_count(out, stats_of(out)->notifications, in, NULL);
    weft__sample_count(out, stats_of(out)->notifications_out, out_, NULL);
}

static void collect_wire(weft_metric_out *out) {
    weft__sample_count(out, stats_of(out)->bytes_in, in, NULL);
    weft__sample_count(out, stats_of(out)->bytes_out, out_, NULL);
}

static void collect_open(weft_metric_out *out) {
    weft__sample_count(out, stats_of(out)->open, NULL, NULL);
}

static void collect_batches(weft_metric_out *out) {
    weft__sample_count(out, stats_of(out)->batches, NULL, NULL);
}

static void collect_replays(weft_metric_out *out) {
    weft__sample_count(out, stats_of(out)->replayed, NULL, NULL);
}

static void collect_troubles(weft_metric_out *out) {
    const weft_stats *stats = stats_of(out);
    weft__sample_count(out, stats->cancelled, "cancelled", NULL);
    weft__sample_count(out, stats->expired, "expired", NULL);
    weft__sample_count(out, stats->rate_limited, "rateLimited", NULL);
    weft__sample_count(out, stats->too_large, "tooLarge", NULL);
    weft__sample_count(out, stats->parse_errors, "parseError", NULL);
    weft__sample_count(out, stats->stray_answers, "strayAnswer", NULL);
}

/* Those of the configuration, and the limits that every connection has. */
static void collect_refusals(weft_metric_out *out) {
    const weft_gate_counts *gates = &out->from->gates;
    weft__sample_count(out, gates->bad_signatures, "signature", NULL);
    weft__sample_count(out, stats_of(out)->rate_limited + gates->rates, "rate", NULL);
    weft__sample_count(out, stats_of(out)->too_large + gates->sizes, "size", NULL);
    weft__sample_count(out, gates->methods, "method", NULL);
}

static void collect_signatures(weft_metric_out *out) {
    weft__sample_count(out, out->from->gates.good_signatures, "accepted", NULL);
    weft__sample_count(out, out->from->gates.bad_signatures, "refused", NULL);
}

static const char *method_label(const weft_method_stats *stats) {
    return *stats->method ? stats->method : "unknown";
}

static void collect_durations(weft_metric_out *out) {
    const weft_measures *all = measures_of(out);
    for (size_t i = 0; i < all->method_count; i++)
        weft__sample_histogram(out, &all->methods[i]->duration_us, &micro, method_label(all->methods[i]));
}

static void collect_method_errors(weft_metric_out *out) {
    const weft_measures *all = measures_of(out);
    for (size_t i = 0; i < all->method_count; i++)
        weft__sample_count(out, all->methods[i]->errors, method_label(all->methods[i]), NULL);
}

static void collect_method_lost(weft_metric_out *out) {
    const weft_measures *all = measures_of(out);
    for (size_t i = 0; i < all->method_count; i++)
        weft__sample_count(out, all->methods[i]->lost, method_label(all->methods[i]), NULL);
}

static void collect_method_notifications(weft_metric_out *out) {
    const weft_measures *all = measures_of(out);
    for (size_t i = 0; i < all->method_count; i++)
        weft__sample_count(out, all->methods[i]->notifications, method_label(all->methods[i]), NULL);
}

static void collect_method_bytes(weft_metric_out *out) {
    const weft_measures *all = measures_of(out);
    for (size_t i = 0; i < all->method_count; i++) {
        weft__sample_count(out, all->methods[i]->bytes_in, method_label(all->methods[i]), in);
        weft__sample_count(out, all->methods[i]->bytes_out, method_label(all->methods[i]), out_);
    }
}

static void collect_errors(weft_metric_out *out) {
    const weft_measures *all = measures_of(out);
    char code[16];
    for (size_t i = 0; i < all->error_count; i++) {
        snprintf(code, sizeof code, "%d", all->errors[i].code);
        weft__sample_count(out, all->errors[i].count, all->errors[i].code ? code : "other", all->errors[i].reason);
    }
}

static void collect_request_size(weft_metric_out *out) {
    weft__sample_histogram(out, &measures_of(out)->request_bytes, &bytes, NULL);
}

static void collect_answer_size(weft_metric_out *out) {
    weft__sample_histogram(out, &measures_of(out)->answer_bytes, &bytes, NULL);
}

/* ---- clients ---- */

static void collect_connections(weft_metric_out *out) {
    const weft_clients_figures *clients = &out->from->clients;
    for (size_t i = 0; i < clients->transport_count; i++)
        weft__sample_count(out, clients->transports[i].count, clients->transports[i].name, NULL);
}

static void collect_opened(weft_metric_out *out) {
    weft__sample_count(out, out->from->clients.opened, NULL, NULL);
}

static void collect_connection_memory(weft_metric_out *out) {
    const weft_server *server = out->from->hub->server;
    weft__sample_count(out, server ? weft_server_memory(server) : 0, NULL, NULL);
}

static void collect_subscriptions(weft_metric_out *out) {
    weft__sample_count(out, out->from->clients.live, "live", NULL);
    weft__sample_count(out, out->from->clients.replaying, "replaying", NULL);
}

/* ---- tasks and agents ---- */

static void collect_tasks(weft_metric_out *out) {
    weft_task_counts counts = weft__task_counts(out->from->hub->engine);
    for (int state = WEFT_TASK_QUEUED; state <= WEFT_TASK_RUNNING; state++)
        weft__sample_count(out, counts.of[state], weft__task_states[state], NULL);
}

static void collect_ended(weft_metric_out *out) {
    weft_task_counts counts = weft__task_counts(out->from->hub->engine);
    for (int state = WEFT_TASK_COMPLETED; state < WEFT_TASK_STATES; state++)
        weft__sample_count(out, counts.of[state], weft__task_states[state], NULL);
}

static void collect_submitted(weft_metric_out *out) {
    if (out->from->hub->metrics)
        weft__sample_count(out, out->from->hub->metrics->submitted, NULL, NULL);
}

static void collect_retries(weft_metric_out *out) {
    if (out->from->hub->metrics)
        weft__sample_count(out, out->from->hub->metrics->retries, NULL, NULL);
}

static void collect_wait(weft_metric_out *out) {
    if (out->from->hub->metrics)
        weft__sample_histogram(out, &out->from->hub->metrics->wait_ms, &task_milli, NULL);
}

static void collect_task_duration(weft_metric_out *out) {
    if (out->from->hub->metrics)
        weft__sample_histogram(out, &out->from->hub->metrics->duration_ms, &task_milli, NULL);
}

static void collect_processes(weft_metric_out *out) {
    weft__sample_count(out, out->from->engine.processes, NULL, NULL);
}

static void collect_processes_started(weft_metric_out *out) {
    weft__sample_count(out, out->from->engine.processes_started, NULL, NULL);
}

static void collect_turns(weft_metric_out *out) {
    weft__sample_count(out, out->from->engine.turns, NULL, NULL);
}

static void collect_sessions(weft_metric_out *out) {
    weft__sample_count(out, out->from->engine.sessions, NULL, NULL);
}

static void collect_questions(weft_metric_out *out) {
    weft__sample_count(out, out->from->engine.questions, NULL, NULL);
}

static void collect_terminals(weft_metric_out *out) {
    weft__sample_count(out, out->from->engine.terminals, NULL, NULL);
}

/* ---- the store ---- */

static void collect_appends(weft_metric_out *out) {
    weft__sample_count(out, out->from->store.appends, NULL, NULL);
}

static void collect_events(weft_metric_out *out) {
    weft__sample_count(out, out->from->store.events, NULL, NULL);
}

static void collect_event_bytes(weft_metric_out *out) {
    weft__sample_count(out, out->from->store.bytes, NULL, NULL);
}

static void collect_failures(weft_metric_out *out) {
    weft__sample_count(out, out->from->store.failures, NULL, NULL);
}

static void collect_store_queue(weft_metric_out *out) {
    weft__sample_count(out, out->from->store.queued_bytes, NULL, NULL);
}

static void collect_sync(weft_metric_out *out) {
    weft__sample_histogram(out, &out->from->store.sync_us, &micro, NULL);
}

static void collect_group(weft_metric_out *out) {
    weft__sample_histogram(out, &out->from->store.group, &appends, NULL);
}

/* ---- the process ---- */

static void collect_loop(weft_metric_out *out) {
    const weft_histogram *delays = weft__loop_delays(weft__engine_loop(out->from->hub->engine));
    if (delays)
        weft__sample_histogram(out, delays, &turn_milli, NULL);
}

static void collect_build(weft_metric_out *out) {
    weft__sample_count(out, 1, weft_version(), NULL);
}

static void collect_start(weft_metric_out *out) {
    if (out->from->hub->metrics)
        weft__sample_number(out, (double) out->from->hub->metrics->started_ms / 1e3);
}

static double seconds_of(struct timeval time) {
    return (double) time.tv_sec + (double) time.tv_usec / 1e6;
}

static void collect_cpu(weft_metric_out *out) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        weft__sample_number(out, seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
}

/* The second number of /proc/self/statm, in pages. Where there is no such file there is no sample. */
static void collect_memory(weft_metric_out *out) {
    unsigned long total, resident;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return;
    if (fscanf(file, "%lu %lu", &total, &resident) == 2)
        weft__sample_count(out, (uint64_t) resident * (uint64_t) sysconf(_SC_PAGESIZE), NULL, NULL);
    fclose(file);
}

/* ---- the table ---- */

#define COUNTER WEFT_METRIC_COUNTER
#define GAUGE WEFT_METRIC_GAUGE
#define HISTOGRAM WEFT_METRIC_HISTOGRAM

const weft_metric weft__metrics[] = {
    {"weft_rpc_requests_total", COUNTER, "direction", "Requests: in, from clients; out, to clients", collect_requests},
    {"weft_rpc_notifications_total", COUNTER, "direction", "Notifications: in, from clients; out, to clients",
     collect_notifications},
    {"weft_rpc_request_duration_seconds", HISTOGRAM, "method",
     "From a request to its answer, ready to be sent; unknown: names that no method has", collect_durations},
    {"weft_rpc_method_errors_total", COUNTER, "method", "Requests that were answered with an error", collect_method_errors},
    {"weft_rpc_method_lost_total", COUNTER, "method", "Requests whose connection had gone before they were answered",
     collect_method_lost},
    {"weft_rpc_method_notifications_total", COUNTER, "method", "Notifications that came", collect_method_notifications},
    {"weft_rpc_method_bytes_total", COUNTER, "method direction", "Bytes of requests (in) and their answers (out)",
     collect_method_bytes},
    {"weft_rpc_errors_total", COUNTER, "code reason", "Errors that were answered, by code and by data.reason",
     collect_errors},
    {"weft_rpc_request_size_bytes", HISTOGRAM, "", "How large requests were", collect_request_size},
    {"weft_rpc_answer_size_bytes", HISTOGRAM, "", "How large answers were", collect_answer_size},
    {"weft_rpc_wire_bytes_total", COUNTER, "direction", "Bytes of messages with their framing", collect_wire},
    {"weft_rpc_open_requests", GAUGE, "", "Requests that wait for their answer", collect_open},
    {"weft_rpc_batches_total", COUNTER, "", "Batches that came", collect_batches},
    {"weft_rpc_replays_total", COUNTER, "", "Retries of clients that were answered as the first time", collect_replays},
    {"weft_rpc_troubles_total", COUNTER, "kind",
     "Requests that were cancelled, expired or over the rate, and messages that were none", collect_troubles},
    {"weft_gate_refusals_total", COUNTER, "kind",
     "Requests and notifications without a good signature, over a rate, too large, or of a method that a list does not have",
     collect_refusals},
    {"weft_signatures_total", COUNTER, "outcome", "Signatures that were accepted; those that were wrong or missing, refused",
     collect_signatures},
    {"weft_connections", GAUGE, "transport", "Clients that are connected", collect_connections},
    {"weft_connections_opened_total", COUNTER, "", "Clients that ever were", collect_opened},
    {"weft_connection_memory_bytes", GAUGE, "", "In the buffers of all connections", collect_connection_memory},
    {"weft_subscriptions", GAUGE, "state", "Subscriptions that keep up, and those that are told from the store",
     collect_subscriptions},
    {"weft_tasks", GAUGE, "state", "Tasks that wait (the depth of the queue) and that run", collect_tasks},
    {"weft_tasks_ended_total", COUNTER, "state", "Tasks that have ended, since the journal began", collect_ended},
    {"weft_tasks_submitted_total", COUNTER, "", "Tasks that were submitted", collect_submitted},
    {"weft_task_retries_total", COUNTER, "", "Attempts of tasks that failed and were begun again", collect_retries},
    {"weft_task_wait_seconds", HISTOGRAM, "", "From a task's submission to its start", collect_wait},
    {"weft_task_duration_seconds", HISTOGRAM, "", "From a task's start to its end", collect_task_duration},
    {"weft_agent_processes", GAUGE, "", "Processes of agents that live", collect_processes},
    {"weft_agent_processes_started_total", COUNTER, "", "Processes of agents that were started", collect_processes_started},
    {"weft_agent_turns", GAUGE, "", "Prompts that agents work on", collect_turns},
    {"weft_sessions", GAUGE, "", "Sessions that are remembered", collect_sessions},
    {"weft_questions_open", GAUGE, "", "Questions that wait for a person", collect_questions},
    {"weft_terminals_open", GAUGE, "", "Terminals that agents have open", collect_terminals},
    {"weft_store_appends_total", COUNTER, "", "Appends to the journal", collect_appends},
    {"weft_store_events_total", COUNTER, "", "Events in these appends", collect_events},
    {"weft_store_bytes_total", COUNTER, "", "Bytes of these events", collect_event_bytes},
    {"weft_store_failures_total", COUNTER, "", "Appends that could not be stored", collect_failures},
    {"weft_store_queue_bytes", GAUGE, "", "Appends that are not durable yet", collect_store_queue},
    {"weft_store_sync_seconds", HISTOGRAM, "", "How long a commit took, which waits for the disk", collect_sync},
    {"weft_store_group_appends", HISTOGRAM, "", "Appends that became durable together", collect_group},
    {"weft_loop_delay_seconds", HISTOGRAM, "", "How long a turn of the loop took: others wait so long", collect_loop},
    {"weft_build_info", GAUGE, "version", "1, with the version that runs", collect_build},
    {"process_start_time_seconds", GAUGE, "", "When the hub was started, since 1970", collect_start},
    {"process_cpu_seconds_total", COUNTER, "", "Processor time of the hub itself", collect_cpu},
    {"process_resident_memory_bytes", GAUGE, "", "Memory of the hub itself", collect_memory},
    {0},
};

/* ---- samples ---- */

static bool begin_sample(weft_metric_out *out) {
    if (out->r >= 0 && out->samples++ == 0)
        out->form->begin(out);
    return out->r >= 0;
}

void weft__sample_count(weft_metric_out *out, uint64_t count, const char *value1, const char *value2) {
    const char *values[WEFT_METRIC_LABELS] = {value1, value2};
    if (begin_sample(out))
        out->form->number(out, values, weft_uint(count));
}

void weft__sample_number(weft_metric_out *out, double number) {
    const char *values[WEFT_METRIC_LABELS] = {0};
    if (begin_sample(out))
        out->form->number(out, values, weft_num(number));
}

void weft__sample_histogram(weft_metric_out *out, const weft_histogram *histogram, const weft_metric_scale *scale,
                            const char *value1) {
    const char *values[WEFT_METRIC_LABELS] = {value1};
    if (begin_sample(out))
        out->form->histogram(out, values, histogram, scale);
}

static void read_source(const weft_hub *hub, weft_metric_source *ret) {
    *ret = (weft_metric_source){.hub = hub, .engine = weft__engine_figures(hub->engine)};
    weft__store_stats(weft__engine_store(hub->engine), &ret->store);
    if (hub->clients)
        weft__hub_clients_figures(hub->clients, &ret->clients);
    if (hub->host && hub->host->gates)
        hub->host->gates(hub->host->ctx, &ret->gates);
}

int weft__metrics_write(const weft_hub *hub, const weft_metric_form *form, const char *prefix, weft_buf *ret) {
    weft_metric_source source;
    weft_metric_out out = {.form = form, .from = &source, .alloc = hub->alloc, .buf = ret};
    read_source(hub, &source);
    for (out.metric = weft__metrics; out.r >= 0 && out.metric->name; out.metric++) {
        if (strncmp(out.metric->name, prefix, strlen(prefix)) != 0)
            continue;
        out.samples = 0;
        out.metric->collect(&out);
        if (out.r >= 0 && out.samples) {
            form->end(&out);
            out.metrics++;
        }
    }
    return out.r;
}
