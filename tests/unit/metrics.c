/* The table of metrics: the page and the dashboard name what there is, and both forms say what was counted. */
#include <stdlib.h>

#include <weft/weft.h>

#include "harness.h"
#include "hub_client.h"
#include "metrics.h"

static char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    size_t n = file ? fread(text, 1, (1 << 20) - 1, file) : 0;
    if (file)
        fclose(file);
    CHECK(n > 0);
    return text;
}

static bool is_name_letter(char c) {
    return (c >= 'a' && c <= 'z') || c == '_';
}

static const weft_metric *find_metric(const char *name, size_t len) {
    for (const weft_metric *row = weft__metrics; row->name; row++)
        if (strlen(row->name) == len && memcmp(row->name, name, len) == 0)
            return row;
    return NULL;
}

/* A histogram is also known by the names of its parts. */
static bool is_metric(const char *name, size_t len) {
    static const char *const parts[] = {"_bucket", "_sum", "_count"};
    if (find_metric(name, len))
        return true;
    for (size_t i = 0; i < 3; i++) {
        size_t part = strlen(parts[i]);
        const weft_metric *row =
            len > part && memcmp(name + len - part, parts[i], part) == 0 ? find_metric(name, len - part) : NULL;
        if (row && row->type == WEFT_METRIC_HISTOGRAM)
            return true;
    }
    return false;
}

TEST(rows_are_well_formed) {
    for (const weft_metric *row = weft__metrics; row->name; row++) {
        size_t len = strlen(row->name);
        test_row(row->name);
        CHECK(strspn(row->name, "abcdefghijklmnopqrstuvwxyz_") == len);
        CHECK((len > 6 && strcmp(row->name + len - 6, "_total") == 0) == (row->type == WEFT_METRIC_COUNTER));
        CHECK(*row->help && row->help[strlen(row->help) - 1] != '.' && !strchr(row->help, '\\') && !strchr(row->help, '\n'));
        CHECK(find_metric(row->name, len) == row);
    }
    test_row(NULL);
}

/* Every row of the page, as the table has it. */
TEST(the_page_says_what_the_rows_say) {
    char *page = read_text("docs/metrics.md"), line[512];
    size_t rows = 0, lines = 0;
    for (const weft_metric *row = weft__metrics; row->name; row++, rows++) {
        char labels[64] = "";
        for (const char *at = row->labels; *at; at += strcspn(at, " "), at += *at == ' ')
            snprintf(labels + strlen(labels), sizeof labels - strlen(labels), "%s`%.*s`", *labels ? ", " : "",
                     (int) strcspn(at, " "), at);
        snprintf(line, sizeof line, "\n| `%s` | %s | %s | %s |\n", row->name, weft__metric_types[row->type], labels,
                 row->help);
        test_row(row->name);
        if (!CHECK(strstr(page, line)))
            printf("missing:%s", line);
    }
    test_row(NULL);
    for (const char *at = page; (at = strstr(at, "\n| `")); at++)
        lines += is_name_letter(at[4]) && strncmp(at + 4, "log.", 4) != 0;
    CHECK_INT(lines, rows);
    free(page);
}

TEST(the_dashboard_asks_for_what_there_is) {
    char *text = read_text("packaging/grafana-weft.json");
    static const char *const begins[] = {"weft_", "process_"};
    weft_doc *doc;
    size_t found = 0;
    REQUIRE(weft_doc_parse(text, strlen(text), NULL, &doc) == 0);
    for (size_t i = 0; i < 2; i++)
        for (const char *at = text; (at = strstr(at, begins[i])); found++) {
            size_t len = 0;
            while (is_name_letter(at[len]))
                len++;
            if (!CHECK(is_metric(at, len)))
                printf("no such metric: %.*s\n", (int) len, at);
            at += len;
        }
    CHECK(found > 30);
    weft_doc_free(doc);
    free(text);
}

/* ---- what is written ---- */

static void collect_odd(weft_metric_out *out) {
    weft__sample_count(out, 7, "a\"b\\c\nd", NULL);
}

static char *write_one(const weft_metric_form *form, const weft_metric *metric, const weft_alloc *alloc, int *ret_r) {
    weft_buf buf = {0};
    weft_metric_out out = {.form = form, .metric = metric, .alloc = alloc, .buf = &buf};
    metric->collect(&out);
    if (out.r >= 0)
        form->end(&out);
    char *text = calloc(1, weft__buf_len(&buf) + 1);
    if (weft__buf_len(&buf))
        memcpy(text, weft__buf_head(&buf), weft__buf_len(&buf));
    weft__buf_done(&buf, alloc);
    *ret_r = out.r;
    return text;
}

TEST(labels_are_escaped) {
    static const weft_metric odd = {"odd", WEFT_METRIC_GAUGE, "what", "Odd", collect_odd};
    int r;
    char *text = write_one(&weft__metrics_prometheus, &odd, NULL, &r);
    CHECK_STR(text, "# HELP odd Odd.\n# TYPE odd gauge\nodd{what=\"a\\\"b\\\\c\\nd\"} 7\n");
    free(text);
    text = write_one(&weft__metrics_json, &odd, NULL, &r);
    CHECK_STR(text, "{\"name\":\"odd\",\"type\":\"gauge\",\"help\":\"Odd\",\"samples\":[{\"labels\":{\"what\":"
                    "\"a\\\"b\\\\c\\nd\"},\"value\":7}]}");
    free(text);
}

static weft_histogram some;
static const weft_metric_scale milli = {1e3, 4, 3, false};

static void collect_some(weft_metric_out *out) {
    weft__sample_histogram(out, &some, &milli, "x");
}

TEST(histograms_add_up) {
    static const weft_metric row = {"took_seconds", WEFT_METRIC_HISTOGRAM, "by", "Took", collect_some};
    static const uint64_t values[] = {0, 3, 4, 15, 16, 63, 64, 1000};
    int r;
    some = (weft_histogram){0};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        weft__histogram_add(&some, values[i]);
    char *text = write_one(&weft__metrics_prometheus, &row, NULL, &r);
    CHECK_STR(text, "# HELP took_seconds Took.\n# TYPE took_seconds histogram\n"
                    "took_seconds_bucket{by=\"x\",le=\"0.004\"} 2\n"
                    "took_seconds_bucket{by=\"x\",le=\"0.016\"} 4\n"
                    "took_seconds_bucket{by=\"x\",le=\"0.064\"} 6\n"
                    "took_seconds_bucket{by=\"x\",le=\"+Inf\"} 8\n"
                    "took_seconds_sum{by=\"x\"} 1.165\n"
                    "took_seconds_count{by=\"x\"} 8\n");
    free(text);
    text = write_one(&weft__metrics_json, &row, NULL, &r);
    CHECK(strstr(text, "\"count\":8,\"sum\":1.165,\"p50\":0.015,\"p95\":1.023,\"p99\":1.023,"
                       "\"buckets\":[[0.001,1],[0.004,1],[0.005,1],[0.016,1],[0.018,1],[0.064,1],[0.072,1],[1.024,1]]"));
    free(text);
    for (long fail_at = 1;; fail_at++) {
        test_memory memory;
        test_memory_init(&memory, fail_at);
        free(write_one(&weft__metrics_prometheus, &row, &memory.alloc, &r));
        CHECK_INT(memory.live, 0);
        if (memory.count < fail_at)
            break;
        CHECK_INT(r, -ENOMEM);
    }
}

TEST_MAIN(CASE(rows_are_well_formed) CASE(the_page_says_what_the_rows_say) CASE(the_dashboard_asks_for_what_there_is)
              CASE(labels_are_escaped) CASE(histograms_add_up))
