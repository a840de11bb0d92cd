/* Counting what happens to tasks. */
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "metrics.h"

static void count_between(weft_histogram *histogram, int64_t from_ms, int64_t to_ms) {
    if (from_ms > 0 && to_ms > 0)
        weft__histogram_add(histogram, to_ms > from_ms ? (uint64_t) (to_ms - from_ms) : 0);
}

static void count_start(weft_hub_metrics *metrics, const weft_event *event, const weft_json *data, const weft_task *task) {
    if (weft_get_int(data, "attempt", 1) <= 1)
        count_between(&metrics->wait_ms, task->created_ms, event->time_ms);
}

/* One that was cancelled before it ran has no duration. */
static void count_end(weft_hub_metrics *metrics, const weft_event *event, const weft_task *task) {
    count_between(&metrics->duration_ms, task->started_ms, event->time_ms);
}

static void on_metrics_event(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    weft_hub_metrics *metrics = WEFT_CONTAINER(listener, weft_hub_metrics, listener);
    const char *what = strncmp(event->type, "task.", 5) == 0 ? event->type + 5 : "";
    bool started = strcmp(what, "started") == 0;
    if (strcmp(what, "queued") == 0)
        metrics->submitted++;
    else if (strcmp(what, "retrying") == 0)
        metrics->retries++;
    else if (started || strcmp(what, "completed") == 0 || strcmp(what, "failed") == 0 || strcmp(what, "cancelled") == 0) {
        const weft_task *task = weft__task_find(metrics->hub->engine, weft_get_str(data, "taskId", ""));
        if (task && started)
            count_start(metrics, event, data, task);
        else if (task)
            count_end(metrics, event, task);
    }
}

int weft__hub_metrics_new(weft_hub *hub) {
    weft_hub_metrics *metrics = weft__zalloc(hub->alloc, sizeof *metrics);
    if (!metrics)
        return -ENOMEM;
    metrics->hub = hub;
    metrics->listener.on_event = on_metrics_event;
    metrics->started_ms = weft__engine_now(hub->engine);
    weft__engine_listen(hub->engine, &metrics->listener);
    hub->metrics = metrics;
    return 0;
}

weft_hub_metrics *weft__hub_metrics_free(weft_hub *hub) {
    if (hub->metrics)
        weft__engine_unlisten(&hub->metrics->listener);
    return hub->metrics = weft__free(hub->alloc, hub->metrics);
}
