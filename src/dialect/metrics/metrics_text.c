/* The two forms: Prometheus's text, and JSON. */
#include <stdio.h>
#include <string.h>

#include "metrics.h"
#include "write.h"

/* ---- Prometheus ---- */

static void put_text(weft_metric_out *out, const char *text, size_t len) {
    if (out->r >= 0)
        out->r = weft__buf_put(out->buf, out->alloc, text, len);
}

static void put_string(weft_metric_out *out, const char *text) {
    put_text(out, text, strlen(text));
}

/* As the format wants it within quotes. */
static void put_escaped(weft_metric_out *out, const char *text) {
    for (; *text; text++)
        if (*text == '\\' || *text == '"')
            put_text(out, (const char[]){'\\', *text}, 2);
        else if (*text == '\n')
            put_text(out, "\\n", 2);
        else
            put_text(out, text, 1);
}

static void put_number(weft_metric_out *out, weft_val number) {
    char text[32];
    if (number.kind == WEFT_VAL_UINT)
        put_text(out, text, (size_t) snprintf(text, sizeof text, "%llu", (unsigned long long) number.as.u));
    else
        put_text(out, text, weft__print_double(number.as.d, text));
}

/* {method="echo",le="0.1"} */
static void put_labels(weft_metric_out *out, const char *const *values, const char *limit) {
    const char *name = out->metric->labels, *separator = "{";
    for (size_t i = 0; *name; i++) {
        size_t len = strcspn(name, " ");
        put_string(out, separator);
        put_text(out, name, len);
        put_string(out, "=\"");
        put_escaped(out, values[i] ? values[i] : "");
        put_string(out, "\"");
        separator = ",";
        name += len + (name[len] == ' ');
    }
    if (limit) {
        put_string(out, separator);
        put_string(out, "le=\"");
        put_string(out, limit);
        put_string(out, "\"");
        separator = ",";
    }
    if (*separator == ',')
        put_string(out, "}");
}

static void put_sample(weft_metric_out *out, const char *suffix, const char *const *values, const char *limit,
                       weft_val number) {
    put_string(out, out->metric->name);
    put_string(out, suffix);
    put_labels(out, values, limit);
    put_string(out, " ");
    put_number(out, number);
    put_string(out, "\n");
}

static void begin_prometheus(weft_metric_out *out) {
    put_string(out, "# HELP ");
    put_string(out, out->metric->name);
    put_string(out, " ");
    put_string(out, out->metric->help);
    put_string(out, ".\n# TYPE ");
    put_string(out, out->metric->name);
    put_string(out, " ");
    put_string(out, weft__metric_types[out->metric->type]);
    put_string(out, "\n");
}

static void end_prometheus(weft_metric_out *out) {
    (void) out;
}

static void put_prometheus(weft_metric_out *out, const char *const *values, weft_val number) {
    put_sample(out, "", values, NULL, number);
}

static void put_prometheus_histogram(weft_metric_out *out, const char *const *values, const weft_histogram *histogram,
                                     const weft_metric_scale *scale) {
    uint64_t limit = scale->first;
    char text[32];
    for (size_t i = 0; i < scale->count; i++, limit *= 4) {
        text[weft__print_double((double) (limit - scale->whole) / scale->per, text)] = '\0';
        put_sample(out, "_bucket", values, text, weft_uint(weft_histogram_below(histogram, limit)));
    }
    put_sample(out, "_bucket", values, "+Inf", weft_uint(histogram->count));
    put_sample(out, "_sum", values, NULL, weft_num((double) histogram->sum / scale->per));
    put_sample(out, "_count", values, NULL, weft_uint(histogram->count));
}

const weft_metric_form weft__metrics_prometheus = {begin_prometheus, end_prometheus, put_prometheus,
                                                   put_prometheus_histogram};

/* ---- JSON ---- */

static void put_metric_value(weft_metric_out *out, weft_val value) {
    if (out->r >= 0)
        out->r = weft__write_val(out->buf, out->alloc, &value);
}

static void begin_json(weft_metric_out *out) {
    put_string(out, out->metrics ? ",{\"name\":" : "{\"name\":");
    put_metric_value(out, weft_str(out->metric->name));
    put_string(out, ",\"type\":");
    put_metric_value(out, weft_str(weft__metric_types[out->metric->type]));
    put_string(out, ",\"help\":");
    put_metric_value(out, weft_str(out->metric->help));
    put_string(out, ",\"samples\":[");
}

static void end_json(weft_metric_out *out) {
    put_string(out, "]}");
}

static void put_json_labels(weft_metric_out *out, const char *const *values) {
    const char *name = out->metric->labels, *separator = "";
    put_string(out, out->samples > 1 ? ",{\"labels\":{" : "{\"labels\":{");
    for (size_t i = 0; *name; i++, separator = ",") {
        size_t len = strcspn(name, " ");
        put_string(out, separator);
        put_metric_value(out, weft_strn(name, len));
        put_string(out, ":");
        put_metric_value(out, weft_str(values[i] ? values[i] : ""));
        name += len + (name[len] == ' ');
    }
    put_string(out, "},");
}

static void put_json(weft_metric_out *out, const char *const *values, weft_val number) {
    put_json_labels(out, values);
    put_string(out, "\"value\":");
    put_metric_value(out, number);
    put_string(out, "}");
}

/* The buckets that are not empty, each with its upper limit: who asks twice can tell what came in between. The last has
 * none. */
static void put_json_buckets(weft_metric_out *out, const weft_histogram *histogram, const weft_metric_scale *scale) {
    const char *separator = "";
    put_string(out, ",\"buckets\":[");
    for (size_t i = 0; i < WEFT_HISTOGRAM_BUCKETS; i++) {
        uint64_t limit = weft_histogram_limit(i);
        if (!histogram->of[i])
            continue;
        put_string(out, separator);
        put_metric_value(out,
                         WEFT_ARR(limit == UINT64_MAX ? weft_null() : weft_num((double) (limit - scale->whole) / scale->per),
                                  weft_uint(histogram->of[i])));
        separator = ",";
    }
    put_string(out, "]");
}

static weft_val quantile_val(const weft_histogram *histogram, const weft_metric_scale *scale, double part) {
    return histogram->count ? weft_num((double) weft_histogram_quantile(histogram, part) / scale->per) : weft_null();
}

static void put_json_histogram(weft_metric_out *out, const char *const *values, const weft_histogram *histogram,
                               const weft_metric_scale *scale) {
    static const char *const names[] = {",\"p50\":", ",\"p95\":", ",\"p99\":"};
    static const double parts[] = {0.5, 0.95, 0.99};
    put_json_labels(out, values);
    put_string(out, "\"count\":");
    put_metric_value(out, weft_uint(histogram->count));
    put_string(out, ",\"sum\":");
    put_metric_value(out, weft_num((double) histogram->sum / scale->per));
    for (size_t i = 0; i < 3; i++) {
        put_string(out, names[i]);
        put_metric_value(out, quantile_val(histogram, scale, parts[i]));
    }
    put_json_buckets(out, histogram, scale);
    put_string(out, "}");
}

const weft_metric_form weft__metrics_json = {begin_json, end_json, put_json, put_json_histogram};
