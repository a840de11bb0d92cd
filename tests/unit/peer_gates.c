/* Gates: four that a program would write (a signature, a schema, a histogram, an access log), and what happens to a request
 * that one of them takes over. Only public headers are used; time is a number. */
#include "peer_kit.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#define MAX_LOG 4096

typedef struct world {
    test_memory memory;
    weft_service *service;
    weft_peer *peer;
    int64_t now_us;
    int ran;             /* handlers */
    weft_req *open;      /* kept by the handler "later" */
    weft_req *taken;     /* kept by the gate "holder" */
    int told;            /* -ECANCELED, ...: by weft_req_on_cancel() */
    char log[MAX_LOG];   /* of the gate "log" */
    uint64_t buckets[4]; /* of the gate "histogram": below 1 ms, 10 ms, 100 ms, the rest */
    uint64_t failed, bytes_in, bytes_out;
} world;

static world *stage;

/* ---- a signature over the raw bytes ---- */

static const char secret[] = "a secret";

static void put_hex(const unsigned char *bytes, size_t n, char *ret) {
    for (size_t i = 0; i < n; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

static void sign(weft_bytes method, weft_bytes id, weft_bytes params, char ret[65]) {
    char text[1024];
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int len = 0;
    int n = snprintf(text, sizeof text, "%.*s\n%.*s\n%.*s", (int) method.len, method.data, (int) id.len,
                     id.data ? id.data : "", (int) params.len, params.data ? params.data : "");
    HMAC(EVP_sha256(), secret, (int) sizeof secret - 1, (unsigned char *) text, (size_t) n, digest, &len);
    put_hex(digest, 32, ret);
}

static int check_signature(void *ctx, const weft_gate_request *request) {
    (void) ctx;
    char want[65];
    weft_json sig = weft_get(&request->message, "auth");
    sign(request->name, request->id, (weft_bytes){request->params.text, request->params.len}, want);
    if (strcmp(weft_str_of(&sig, ""), want) == 0)
        return 0;
    weft_fail(request->req, 401, sig.text ? "The signature is wrong" : "The signature is missing",
              WEFT_OBJ({"reason", weft_str("badSignature")}, {"id", weft_strn(request->id.data, request->id.len)}));
    return -EPERM;
}
static const weft_gate signature = {"signature", check_signature, NULL, NULL};

/* ---- a schema ---- */

/* Stands for a validator: every member of the params of "sum" is a number. */
static int check_schema(void *ctx, const weft_gate_request *request) {
    (void) ctx;
    if (!request->method || strcmp(request->method->name, "sum") != 0)
        return 0;
    for (weft_iter it = weft_iterate(&request->params); weft_next(&it);)
        if (weft_typeof(&it.value) != WEFT_NUMBER)
            return weft_fail(request->req, WEFT_INVALID_PARAMS, "Not a number",
                             WEFT_OBJ({"reason", weft_str("schema")}, {"name", weft_copy(&it.name)})),
                   -EINVAL;
    return 0;
}
static const weft_gate schema = {"schema", check_schema, NULL, NULL};

/* ---- a histogram ---- */

static void measure(void *ctx, const weft_gate_outcome *outcome) {
    (void) ctx;
    int64_t us = outcome->duration_us;
    stage->buckets[us < 1000 ? 0 : us < 10000 ? 1 : us < 100000 ? 2 : 3]++;
    stage->failed += outcome->code != 0;
    stage->bytes_in += outcome->bytes_in;
    stage->bytes_out += outcome->bytes_out;
}
static const weft_gate histogram = {"histogram", NULL, measure, NULL};

/* ---- an access log ---- */

static const char *end_of(const weft_gate_outcome *outcome) {
    switch (outcome->lost) {
    case -ECANCELED:
        return " cancelled";
    case -ETIMEDOUT:
        return " expired";
    case -EPIPE:
        return " lost";
    default:
        return outcome->notification ? " notification" : "";
    }
}

static void write_log(void *ctx, const weft_gate_outcome *outcome) {
    (void) ctx;
    size_t len = strlen(stage->log);
    snprintf(stage->log + len, MAX_LOG - len, "%s %.*s(%.*s) %d%s\n", outcome->identity->name, (int) outcome->name.len,
             outcome->name.data, (int) outcome->id.len, outcome->id.data ? outcome->id.data : "", outcome->code,
             end_of(outcome));
}
static const weft_gate access_log = {"log", NULL, write_log, NULL};

/* ---- a gate that asks somebody else first ---- */

static void on_cancel(weft_req *req, int why, void *ctx) {
    (void) req, (void) ctx;
    stage->told = why;
}

static int hold(void *ctx, const weft_gate_request *request) {
    const char *how = weft_get_str(&request->params, "gate", "");
    if (strcmp(how, "hold") != 0 && strcmp(how, "listen") != 0)
        return 0;
    if (ctx && stage->taken)
        return 0; /* the second of two lets it pass where the first was asked alone */
    stage->taken = request->req;
    if (strcmp(how, "listen") == 0)
        weft_req_on_cancel(request->req, on_cancel, NULL);
    return 1;
}
static const weft_gate holder = {"holder", hold, NULL, NULL};

static int say_no(void *ctx, const weft_gate_request *request) {
    (void) ctx;
    return (int) weft_get_int(&request->params, "no", 0);
}
static const weft_gate naysayer = {"naysayer", say_no, NULL, NULL};

/* ---- methods ---- */

static int answer_sum(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    int64_t sum = 0;
    stage->ran++;
    stage->now_us += 5000;
    for (weft_iter it = weft_iterate(params); weft_next(&it);)
        sum += weft_int_of(&it.value, 0);
    return weft_reply(req, weft_int(sum));
}

static int answer_echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    stage->ran++;
    return weft_reply(req, weft_copy(params));
}

static int answer_later(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    stage->ran++;
    stage->open = req;
    return 0;
}

static int answer_nothing(weft_req *req, const weft_json *params, void *ctx) {
    (void) req, (void) params, (void) ctx;
    stage->ran++;
    return -EIO;
}

static int answer_much(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    static char much[5000];
    memset(much, 'x', sizeof much);
    return weft_reply(req, weft_strn(much, sizeof much));
}

struct text {
    const char *text;
};
static const weft_param text_params[] = {{"text", WEFT_PARAM_str, offsetof(struct text, text), 0, "what to say"}, {0}};

static const weft_method methods[] = {
    {"sum", answer_sum},
    {"echo", answer_echo, text_params, .flags = WEFT_ROW_CHANGES},
    {"later", answer_later, .flags = WEFT_ROW_SOON},
    {"nothing", answer_nothing},
    {"much", answer_much},
    {"secret", answer_echo, .scope = "admin"},
    {0},
};

/* ---- the world ---- */

static int64_t clock_us(void *ctx) {
    (void) ctx;
    return stage->now_us;
}

static int open_world(world *w, const weft_gate *const *gates, long fail_at) {
    *w = (world){0};
    stage = w;
    test_memory_init(&w->memory, fail_at);
    weft_service_opts opts = {
        .methods = methods, .gates = gates, .now_us = clock_us, .alloc = &w->memory.alloc, .limits.max_answer = 4096};
    weft_identity ann = {.transport = "unix", .name = "ann", .scopes = "read", .authenticated = true};
    int r = weft_service_new(&opts, &w->service);
    return r < 0 ? r : weft_peer_new(w->service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &ann}, &w->peer);
}

static void close_world(world *w) {
    weft_peer_free(w->peer);
    weft_service_unref(w->service);
    CHECK_INT(w->memory.live, 0);
}

#define ASK(id, method, params) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":" params "}\n"
#define TELL(method, params) "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":" params "}\n"

static bool says(weft_peer *peer, const char *part) {
    char *text = kit_take(peer, NULL);
    bool found = strstr(text, part) != NULL;
    if (!found)
        printf("said: %s\n", text);
    free(text);
    return found;
}

/* ---- the four ---- */

static void say_signed(world *w, const char *method, const char *id, const char *params, const char *sig) {
    char line[1024], right[65];
    sign((weft_bytes){method, strlen(method)}, (weft_bytes){id, strlen(id)}, (weft_bytes){params, strlen(params)}, right);
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"auth\":\"%s\",%s%s%s\"method\":\"%s\",\"params\": %s }\n",
             sig ? sig : right, *id ? "\"id\":" : "", id, *id ? "," : "", method, params);
    CHECK_INT(kit_say(w->peer, line, 1), 0);
}

TEST(a_signature_over_raw_bytes) {
    static const weft_gate *const gates[] = {&signature, NULL};
    world w;
    REQUIRE(open_world(&w, gates, 0) == 0);
    /* White space and the way a number is written count: they are part of the bytes. */
    say_signed(&w, "sum", "1.0", "[ 1,2 ]", NULL);
    CHECK_SAYS(w.peer, "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"result\":3}\n");
    say_signed(&w, "sum", "\"a\"", "[1]", "00");
    CHECK_SAYS(w.peer, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":401,\"message\":\"The signature is "
                       "wrong\",\"data\":{\"reason\":\"badSignature\",\"id\":\"\\\"a\\\"\"}}}\n");
    kit_say(w.peer, ASK("2", "sum", "[1]"), 1);
    CHECK(says(w.peer, "The signature is missing"));
    /* Strangers do not learn which methods there are; who signs does. */
    kit_say(w.peer, ASK("3", "none", "[1]"), 1);
    CHECK(says(w.peer, "The signature is missing"));
    say_signed(&w, "none", "4", "[1]", NULL);
    CHECK(says(w.peer, "-32601"));
    CHECK_INT(w.ran, 1);
    say_signed(&w, "sum", "", "[1]", "00");
    CHECK_INT(w.ran, 1);
    say_signed(&w, "sum", "", "[1]", NULL);
    CHECK_INT(w.ran, 2);
    CHECK_SAYS(w.peer, "");
    close_world(&w);
}

TEST(a_schema) {
    static const weft_gate *const gates[] = {&schema, NULL};
    world w;
    REQUIRE(open_world(&w, gates, 0) == 0);
    /* Item by item: one of them is refused, the others are answered. */
    kit_say(w.peer,
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sum\",\"params\":{\"a\":1,\"b\":2}},"
            "{\"jsonrpc\":\"2.0\",\"method\":\"sum\",\"params\":{\"a\":\"x\"}},"
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"sum\",\"params\":{\"a\":1,\"b\":\"x\"}}]\n",
            1);
    CHECK_SAYS(w.peer,
               "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":3},{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32602,"
               "\"message\":\"Not a number\",\"data\":{\"reason\":\"schema\",\"name\":\"b\"}}}]\n");
    CHECK_INT(w.ran, 1);
    close_world(&w);
}

TEST(a_histogram) {
    static const weft_gate *const gates[] = {&histogram, NULL};
    static const char fast[] = ASK("1", "echo", "{}"), slow[] = ASK("2", "sum", "[1]"), later[] = ASK("3", "later", "{}");
    world w;
    REQUIRE(open_world(&w, gates, 0) == 0);
    kit_say(w.peer, fast, 1);
    CHECK_INT(w.bytes_in, sizeof fast - 2); /* without NUL and line end */
    CHECK_INT(w.bytes_out, sizeof "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}" - 1);
    kit_say(w.peer, slow, 1);
    kit_say(w.peer, later, 1);
    CHECK_INT(w.buckets[3], 0);
    w.now_us += 200000;
    weft_reply(w.open, weft_null());
    kit_say(w.peer, ASK("4", "nothing", "{}"), 1);
    CHECK_INT(w.buckets[0], 2);
    CHECK_INT(w.buckets[1], 1);
    CHECK_INT(w.buckets[3], 1);
    CHECK_INT(w.failed, 1);
    close_world(&w);
}

TEST(an_access_log) {
    static const weft_gate *const gates[] = {&naysayer, &holder, &access_log, NULL};
    world w;
    REQUIRE(open_world(&w, gates, 0) == 0);
    kit_say(w.peer, ASK("1", "echo", "{}"), 1);
    kit_say(w.peer, ASK("2", "none", "{}"), 1);
    kit_say(w.peer, ASK("3", "secret", "{}"), 1);
    kit_say(w.peer, ASK("4", "echo", "{\"text\":5}"), 1);
    kit_say(w.peer, ASK("5", "nothing", "{}"), 1);
    kit_say(w.peer, ASK("6", "much", "{}"), 1);
    kit_say(w.peer, TELL("echo", "{}"), 1);
    kit_say(w.peer, TELL("nothing", "{}"), 1);
    kit_say(w.peer, ASK("7", "sum", "{\"no\":-1}"), 1);  /* EPERM */
    kit_say(w.peer, ASK("8", "sum", "{\"no\":-13}"), 1); /* EACCES */
    kit_say(w.peer, ASK("9", "sum", "{\"no\":-22}"), 1); /* EINVAL */
    kit_say(w.peer, ASK("10", "sum", "{\"_meta\":{\"weft/deadlineMs\":0}}"), 1);
    kit_say(w.peer, ASK("11", "later", "{\"_meta\":{\"weft/deadlineMs\":5}}"), 1);
    weft_peer_tick(w.peer, 10);
    weft_reply(w.open, weft_null()); /* comes too late, and is not logged again */
    kit_say(w.peer, ASK("12", "later", "{}") TELL("$/cancelRequest", "{\"id\":12}"), 11);
    weft_reply(w.open, weft_null());
    kit_say(w.peer, ASK("13", "later", "{}"), 11);
    kit_say(w.peer, ASK("14", "sum", "{}"), 11); /* waits for 13, and goes with the connection */
    w.peer = weft_peer_free(w.peer);
    weft_reply(w.open, weft_null());
    CHECK_STR(w.log, "ann echo(1) 0\nann none(2) -32601\nann secret(3) 403\nann echo(4) -32602\nann nothing(5) -32603\n"
                     "ann much(6) 413\nann echo() 0 notification\nann nothing() -32603 notification\nann sum(7) 401\n"
                     "ann sum(8) 403\nann sum(9) -32603\nann sum(10) -32800\nann later(11) -32800 expired\n"
                     "ann later(12) -32800 cancelled\nann later(13) 0 lost\n");
    close_world(&w);
}

/* ---- taking over ---- */

TEST(a_gate_takes_a_request_over) {
    static const weft_gate again = {"again", hold, NULL, &stage};
    static const weft_gate *const gates[] = {&holder, &again, &naysayer, &access_log, NULL};
    world w;
    REQUIRE(open_world(&w, gates, 0) == 0);
    kit_say(w.peer, ASK("1", "sum", "{\"gate\":\"hold\",\"a\":4}") ASK("2", "sum", "{\"a\":5}"), 1);
    CHECK_SAYS(w.peer, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":5}\n");
    CHECK_INT(weft_peer_open_requests(w.peer), 1);
    weft_req *first = w.taken;
    CHECK_INT(weft_req_continue(first), 0); /* the second gate was busy: it let it pass */
    CHECK_SAYS(w.peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":4}\n");
    CHECK_INT(weft_peer_open_requests(w.peer), 0);

    /* The second takes it over as well; then the handler answers later. */
    kit_say(w.peer, ASK("3", "later", "{\"gate\":\"hold\",\"workDoneToken\":\"t\"}"), 1);
    first = w.taken;
    w.taken = NULL;
    CHECK_INT(weft_req_continue(first), 0);
    REQUIRE(w.taken == first);
    CHECK_INT(w.ran, 2);
    CHECK_INT(weft_req_continue(first), 0);
    REQUIRE(w.open == first);
    CHECK_INT(weft_part(w.open, weft_int(1)), 1);
    CHECK_SAYS(w.peer, "{\"jsonrpc\":\"2.0\",\"method\":\"$/progress\",\"params\":{\"token\":\"t\",\"value\":1}}\n");
    CHECK_INT(weft_reply(w.open, weft_str("at last")), 0);
    CHECK_SAYS(w.peer, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":\"at last\"}\n");

    /* It answers itself, a gate behind it refuses, the params are wrong, there is no such method. */
    kit_say(w.peer, ASK("4", "sum", "{\"gate\":\"hold\"}"), 1);
    CHECK_INT(weft_refuse(w.taken, 403, "Not today", "notToday"), 0);
    CHECK(says(w.peer, "notToday"));
    kit_say(w.peer, ASK("5", "sum", "{\"gate\":\"hold\",\"no\":-13}"), 1);
    CHECK_INT(weft_req_continue(w.taken), 0);
    CHECK(says(w.peer, "403"));
    kit_say(w.peer, ASK("6", "echo", "{\"gate\":\"hold\",\"text\":7}"), 1);
    CHECK_INT(weft_req_continue(w.taken), 0);
    CHECK(says(w.peer, "/text"));
    kit_say(w.peer, ASK("7", "none", "{\"gate\":\"hold\"}"), 1);
    CHECK_INT(weft_req_continue(w.taken), 0);
    CHECK(says(w.peer, "-32601"));

    /* A notification, and one of a batch. */
    kit_say(w.peer, TELL("sum", "{\"gate\":\"hold\"}"), 1);
    CHECK_INT(w.ran, 3);
    CHECK_INT(weft_req_continue(w.taken), 0);
    CHECK_INT(w.ran, 4);
    kit_say(w.peer,
            "[{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"sum\",\"params\":{\"gate\":\"hold\",\"a\":1}},"
            "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"sum\",\"params\":[2]}]\n",
            1);
    CHECK_SAYS(w.peer, "");
    CHECK_INT(weft_req_continue(w.taken), 0);
    CHECK_SAYS(w.peer, "[{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":2},{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":1}]\n");
    CHECK_STR(w.log, "ann sum(2) 0\nann sum(1) 0\nann later(3) 0\nann sum(4) 403\nann sum(5) 403\nann echo(6) -32602\n"
                     "ann none(7) -32601\nann sum() 0 notification\nann sum(9) 0\nann sum(8) 0\n");
    close_world(&w);
}

static int continued;

static int continue_at_once(void *ctx, const weft_gate_request *request) {
    (void) ctx;
    continued = weft_req_continue(request->req);
    return 0;
}

/* A request passes once, and not from before() itself: its handler would run twice, or on memory that has gone. */
TEST(a_request_passes_once) {
    static const weft_gate hasty = {"hasty", continue_at_once, NULL, NULL};
    static const weft_gate *const gates[] = {&hasty, &holder, &access_log, NULL};
    world w;
    REQUIRE(open_world(&w, gates, 0) == 0);
    kit_say(w.peer, ASK("1", "sum", "{\"a\":4}"), 1);
    CHECK_INT(continued, -EINVAL);
    CHECK_SAYS(w.peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":4}\n");
    kit_say(w.peer, ASK("2", "later", "{\"gate\":\"hold\"}"), 1);
    CHECK_INT(weft_req_continue(w.taken), 0);
    CHECK_INT(w.ran, 2);
    CHECK_INT(weft_req_continue(w.taken), -EALREADY);
    CHECK_INT(w.ran, 2);
    CHECK_INT(weft_reply(w.open, weft_int(5)), 0);
    CHECK_SAYS(w.peer, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":5}\n");
    CHECK_INT(weft_req_continue(w.taken), -EALREADY);
    CHECK_STR(w.log, "ann sum(1) 0\nann later(2) 0\n");
    close_world(&w);
}

/* The caller does not wait for the gate: it cancels, its time is over, its connection goes. */
TEST(a_taken_request_is_given_up) {
    static const weft_gate *const gates[] = {&holder, &access_log, NULL};
    world w;
    REQUIRE(open_world(&w, gates, 0) == 0);
    kit_say(w.peer, ASK("1", "sum", "{\"gate\":\"hold\"}") TELL("$/cancelRequest", "{\"id\":1}"), 1);
    CHECK(says(w.peer, "-32800"));
    CHECK_INT(weft_req_continue(w.taken), -ECANCELED);
    kit_say(w.peer, ASK("2", "sum", "{\"gate\":\"hold\",\"_meta\":{\"weft/deadlineMs\":5}}"), 1);
    CHECK_INT(weft_peer_deadline(w.peer), 6);
    weft_peer_tick(w.peer, 6);
    CHECK(says(w.peer, "deadlineExceeded"));
    CHECK_INT(weft_req_continue(w.taken), -ECANCELED);

    /* Who listens answers it itself. */
    kit_say(w.peer, ASK("3", "sum", "{\"gate\":\"listen\"}") TELL("$/cancelRequest", "{\"id\":3}"), 7);
    CHECK_INT(w.told, -ECANCELED);
    CHECK_INT(weft_refuse(w.taken, WEFT_CANCELLED, "Given up", "cancelled"), 0);
    CHECK(says(w.peer, "Given up"));
    kit_say(w.peer, ASK("4", "sum", "{\"gate\":\"listen\"}"), 7);
    w.peer = weft_peer_free(w.peer);
    CHECK_INT(w.told, -EPIPE);
    CHECK_INT(weft_req_continue(w.taken), -ECANCELED);
    CHECK_INT(w.ran, 0);
    CHECK_STR(w.log, "ann sum(1) -32800 cancelled\nann sum(2) -32800 expired\nann sum(3) -32800 cancelled\n"
                     "ann sum(4) 0 lost\n");
    close_world(&w);
}

/* A retry that comes while the first run is at the gate, and one that comes after it. */
TEST(retries_meet_the_gate_too) {
#define KEYED(id) ASK(id, "echo", "{\"gate\":\"hold\",\"_meta\":{\"weft/idempotencyKey\":\"k\"}}")
    static const weft_gate *const gates[] = {&holder, &histogram, NULL};
    world w;
    REQUIRE(open_world(&w, gates, 0) == 0);
    kit_say(w.peer, KEYED("1"), 1);
    weft_req *first = w.taken;
    kit_say(w.peer, KEYED("2"), 1);
    weft_req *second = w.taken;
    CHECK_INT(weft_req_continue(second), 0);
    CHECK(says(w.peer, "\"id\":2,\"result\""));
    CHECK_INT(weft_req_continue(first), 0);
    CHECK(says(w.peer, "\"id\":1,\"result\""));
    CHECK_INT(w.ran, 1);
    CHECK_INT(w.buckets[0], 2);
    close_world(&w);
}

/* Once per allocation with that allocation failing: each request is answered or the connection is closed, and every gate
 * hears of each end exactly once. */
TEST(memory_fails) {
    static const weft_gate *const gates[] = {&holder, &histogram, NULL};
    static const char *const texts[] = {
        ASK("1", "sum", "{\"gate\":\"hold\"}"),
        ASK("2", "later", "{\"gate\":\"hold\",\"x\":\"\\u0041\"}"),
        ASK("3", "echo",
            "{\"gate\":\"hold\",\"text\":\"\\u0041\",\"_meta\":{\"weft/idempotencyKey\":\"k\","
            "\"weft/deadlineMs\":9}}"),
        "["
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"sum\",\"params\":{\"gate\":\"hold\"}}"
        "]\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bool failed = true;
        for (long fail_at = 1; failed && fail_at < 200; fail_at++) {
            world w;
            if (open_world(&w, gates, fail_at) == 0) {
                int r = kit_say(w.peer, texts[i], 1);
                if (w.taken)
                    weft_req_continue(w.taken);
                if (w.open)
                    weft_reply(w.open, weft_null());
                uint64_t ends = w.buckets[0] + w.buckets[1];
                /* Without memory for the request itself nobody has heard of it: the connection is closed. */
                CHECK(ends == 1 || (ends == 0 && (r < 0 || weft_peer_tick(w.peer, 1) < 0)));
            }
            failed = w.memory.count >= fail_at;
            close_world(&w);
        }
        CHECK(!failed);
    }
}

TEST_MAIN(CASE(a_signature_over_raw_bytes) CASE(a_schema) CASE(a_histogram) CASE(an_access_log)
              CASE(a_gate_takes_a_request_over) CASE(a_request_passes_once) CASE(a_taken_request_is_given_up)
                  CASE(retries_meet_the_gate_too) CASE(memory_fails))
