/* What each gate costs a request: the same requests through a peer without I/O, with none, with one gate, with several. Each
 * takes its turn in every round, and the ratio is to none in the same round. It prints and asserts nothing but that each
 * request was answered with its result.
 *
 * A further gate is a row of `rows`: how to make it, and which lines it is fed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weft/weft.h>

#include "median.h"

#define LINES 4096
#define ROUNDS 41
#define STAMP 1700000100
#define LINE_SIZE 1600

static const weft_sign_key keys[] = {{"bench", "0123456789abcdef0123456789abcdef", 32, NULL, NULL}, {0}};

static int answer_true(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, weft_bool(true));
}

/* As the hub's row has them: a table, and a schema for what is inside. */
struct params {
    const char *task_type, *prompt;
    weft_json context, options;
};
static const weft_param params[] = {
    WEFT_MUST(struct params, task_type, str, ""),
    WEFT_MUST(struct params, prompt, str, ""),
    WEFT_MAY(struct params, context, obj, ""),
    WEFT_MAY(struct params, options, obj, ""),
    WEFT_END(struct params),
};
/* clang-format off */
#define TEXT "{\"type\":[\"string\",\"null\"]}"
#define TEXTS "{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"string\"}}"
static const char schema[] =
    "{\"properties\":{"
        "\"context\":{\"type\":[\"object\",\"null\"],\"properties\":{\"files\":" TEXTS ",\"current_directory\":" TEXT ","
            "\"language\":" TEXT ",\"framework\":" TEXT ",\"dependencies\":" TEXTS ","
            "\"constraints\":{\"type\":[\"array\",\"object\",\"string\",\"null\"]}}},"
        "\"options\":{\"properties\":{\"language\":" TEXT ",\"framework\":" TEXT ",\"style_guide\":" TEXT ","
            "\"timeout_ms\":{\"type\":\"integer\",\"minimum\":1},\"max_retries\":{\"type\":[\"integer\",\"null\"]},"
            "\"stream\":{\"type\":[\"boolean\",\"null\"]}}}}}";
/* clang-format on */
static const weft_method methods[] = {{"execute_task", answer_true, params}, {0}};
static const weft_method with_schema[] = {{"execute_task", answer_true, params, .params_schema = schema}, {0}};

/* The clock of signatures: after their start, it stands still. */
static int64_t wall_ms(void *ctx) {
    int64_t *looks = ctx;
    return (*looks)++ ? (int64_t) STAMP * 1000 : (int64_t) (STAMP - 60) * 1000;
}
static int64_t steady_ms(void *ctx) {
    (void) ctx;
    return 0;
}

/* ---- what stands in the way ---- */

typedef struct setup {
    weft_service_opts opts;
    weft_signatures *signatures;
    int64_t looks;
    const weft_gate *gates[3];
} setup;

static void add_nothing(setup *with) {
    (void) with;
}

static void add_rate(setup *with) {
    with->opts.limits.rate_per_minute = 100000000;
}

static void add_signatures(setup *with) {
    weft_signatures_opts opts = {.keys = keys, .wall_ms = wall_ms, .steady_ms = steady_ms, .ctx = &with->looks};
    if (weft_signatures_new(&opts, &with->signatures) < 0)
        abort();
    with->gates[0] = weft_signatures_gate(with->signatures);
    with->opts.gates = with->gates;
}

static void add_signatures_and_rate(setup *with) {
    add_rate(with);
    add_signatures(with);
}

static void add_schema(setup *with) {
    with->opts.methods = with_schema;
}

static void add_schema_and_signatures(setup *with) {
    add_schema(with);
    add_signatures(with);
}

static int64_t clock_us(void *ctx) {
    struct timespec ts;
    (void) ctx;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void add_metrics(setup *with) {
    with->opts.measure = true;
    with->opts.now_us = clock_us;
}

static void add_all(setup *with) {
    add_schema_and_signatures(with);
    add_rate(with);
    add_metrics(with);
}

static const struct {
    const char *name;
    void (*add)(setup *with);
    bool is_signed;
} rows[] = {
    {"none", add_nothing, false},
    {"rate", add_rate, false},
    {"schema", add_schema, false},
    {"HMAC, request not signed", add_signatures, false},
    {"HMAC", add_signatures, true},
    {"HMAC and rate", add_signatures_and_rate, true},
    {"schema and HMAC", add_schema_and_signatures, true},
    {"metrics", add_metrics, false},
    {"all of these", add_all, true},
};
#define ROWS (sizeof rows / sizeof rows[0])

/* ---- lines ---- */

static char *plain[LINES], *with_auth[LINES];

static void make_lines(size_t size) {
    char text[LINE_SIZE], auth[WEFT_AUTH_MAX], id[16], nonce[16];
    int n = snprintf(text, sizeof text,
                     "{\"task_type\":\"testing\",\"prompt\":\"%0*d\",\"context\":{\"files\":[\"a.js\",\"b.js\"],"
                     "\"current_directory\":\"/src\",\"dependencies\":[\"react\"],\"constraints\":[]},\"options\":"
                     "{\"language\":\"javascript\",\"timeout_ms\":1000,\"stream\":false}}",
                     (int) size, 1);
    for (int i = 0; i < LINES; i++) {
        snprintf(id, sizeof id, "%d", i + 1);
        snprintf(nonce, sizeof nonce, "n%d", i);
        free(plain[i]);
        free(with_auth[i]);
        if (weft_sign(&keys[0], STAMP, nonce, (weft_bytes){"execute_task", 12}, (weft_bytes){id, strlen(id)},
                      (weft_bytes){text, (size_t) n}, auth, sizeof auth) < 0 ||
            asprintf(&plain[i], "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"execute_task\",\"params\":%s}\n", id, text) <
                0 ||
            asprintf(&with_auth[i],
                     "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"execute_task\",\"params\":%s,\"auth\":%s}\n", id, text,
                     auth) < 0)
            abort();
    }
}

/* ---- measuring ---- */

static double cpu_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}

static double measure(size_t row) {
    setup with = {.opts = {.methods = methods}};
    weft_service *service = NULL;
    weft_peer *peer = NULL;
    weft_identity who = {.transport = "tcp", .name = "bench", .scopes = "*", .address = "192.0.2.1", .authenticated = true};
    char *const *lines = rows[row].is_signed ? with_auth : plain;
    rows[row].add(&with);
    if (weft_service_new(&with.opts, &service) < 0 ||
        weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &who}, &peer) < 0)
        abort();
    double start = cpu_ns();
    for (int i = 0; i < LINES; i++) {
        weft_peer_feed(peer, lines[i], strlen(lines[i]), 1000);
        weft_peer_sent(peer, weft_peer_output(peer).len);
    }
    double took = (cpu_ns() - start) / LINES;
    const weft_stats *stats = weft_service_stats(service);
    if (stats->answers != LINES || stats->errors)
        abort();
    weft_peer_free(peer);
    weft_service_unref(service);
    weft_signatures_free(with.signatures);
    return took;
}

static void measure_all(size_t size) {
    static double took[ROWS][ROUNDS], ratio[ROWS][ROUNDS];
    make_lines(size);
    for (size_t row = 0; row < ROWS; row++)
        measure(row);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t row = 0; row < ROWS; row++) {
            took[row][round] = measure(row);
            ratio[row][round] = took[row][round] / took[0][round];
        }
    for (size_t row = 0; row < ROWS; row++)
        printf("%-28s %5zu bytes %8.0f ns/req %7.2f x none\n", rows[row].name, strlen(plain[0]), median(took[row], ROUNDS),
               median(ratio[row], ROUNDS));
}

int main(void) {
    measure_all(40);
    measure_all(1024);
    return 0;
}
