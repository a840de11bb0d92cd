/* The hub's figures: one table of rows, each with a name, a type, labels and a sentence. The text for Prometheus at
 * /metrics, the answer of metrics.get and the page docs/metrics.md all come from these rows, or are compared with them.
 *
 * A label's value is one of our own words: a method that there is, a transport, a state. What a caller chose is never one.
 */
#ifndef WEFT_METRICS_H
#define WEFT_METRICS_H

#include "buf.h"
#include "histogram.h"
#include "hub_clients.h"

/* ---- what is counted ---- */

/* Counts what happens to tasks, from the engine's events. */
typedef struct weft_hub_metrics {
    weft_event_listener listener;
    const weft_hub *hub;
    int64_t started_ms; /* wall clock */
    uint64_t submitted, retries;
    weft_histogram wait_ms, duration_ms; /* from being queued to the first start; from that to the end */
} weft_hub_metrics;

/* Listens from now on. hub->metrics is set. -ENOMEM. */
int weft__hub_metrics_new(weft_hub *hub);
/* Before the engine goes. NULL is fine. Returns NULL. */
weft_hub_metrics *weft__hub_metrics_free(weft_hub *hub);

/* ---- the rows ---- */

typedef enum weft_metric_type { WEFT_METRIC_COUNTER, WEFT_METRIC_GAUGE, WEFT_METRIC_HISTOGRAM } weft_metric_type;
extern const char *const weft__metric_types[]; /* "counter", ... */

typedef struct weft_metric_out weft_metric_out;
typedef struct weft_metric {
    const char *name;
    weft_metric_type type;
    const char *labels; /* their names, separated by blanks; "": none */
    const char *help;   /* one sentence without a full stop */
    void (*collect)(weft_metric_out *out);
} weft_metric;
/* Ends with a NULL name. */
extern const weft_metric weft__metrics[];

/* ---- samples, for the functions that collect ---- */

#define WEFT_METRIC_LABELS 2

/* What the rows are read from, at one moment. */
typedef struct weft_metric_source {
    const weft_hub *hub;
    weft_store_stats store;
    weft_engine_figures engine;
    weft_clients_figures clients;
    weft_gate_counts gates;
} weft_metric_source;

/* How a histogram is shown: so many of its values are a second, or a byte; whole: they are whole numbers and do not lie in
 * between. Prometheus gets buckets from first on, each four times as wide as the one before. */
typedef struct weft_metric_scale {
    double per;
    uint64_t first;
    size_t count;
    bool whole;
} weft_metric_scale;

/* A form of writing samples. Each leaves a failure in out->r. */
typedef struct weft_metric_form {
    void (*begin)(weft_metric_out *out);
    void (*end)(weft_metric_out *out);
    void (*number)(weft_metric_out *out, const char *const *values, weft_val number);
    void (*histogram)(weft_metric_out *out, const char *const *values, const weft_histogram *histogram,
                      const weft_metric_scale *scale);
} weft_metric_form;

struct weft_metric_out {
    const weft_metric_form *form;
    const weft_metric_source *from;
    const weft_metric *metric;
    const weft_alloc *alloc;
    weft_buf *buf;
    size_t samples; /* of this metric, so far */
    size_t metrics; /* that were written */
    int r;
};

/* values: of the labels, in their order. */
void weft__sample_count(weft_metric_out *out, uint64_t count, const char *value1, const char *value2);
void weft__sample_number(weft_metric_out *out, double number);
void weft__sample_histogram(weft_metric_out *out, const weft_histogram *histogram, const weft_metric_scale *scale,
                            const char *value1);

/* Write all rows whose names begin so. -ENOMEM. */
int weft__metrics_write(const weft_hub *hub, const weft_metric_form *form, const char *prefix, weft_buf *out);

/* In the text format of Prometheus, version 0.0.4. */
extern const weft_metric_form weft__metrics_prometheus;
/* The items of an array, as metrics.get answers them. */
extern const weft_metric_form weft__metrics_json;

/* GET /metrics. */
int weft__metrics_route(weft_hub *hub, weft_server *server);

/* The row metrics.get, which is in hub_methods.c. */
weft_handler weft__hub_metrics_get;
extern const weft_param weft__hub_metrics_params[];

#endif
