/* The figures that a service keeps about its methods. Only public headers are used; time is a number. */
#include "peer_kit.h"

typedef struct world {
    test_memory memory;
    weft_service *service;
    weft_peer *peer;
    int64_t now_us;
    uint64_t clock_reads;
    weft_req *open;
    char extra_name[16];
    weft_method extra;
} world;

static world *stage;

static int64_t clock_us(void *ctx) {
    (void) ctx;
    stage->clock_reads++;
    return stage->now_us;
}

static int answer_echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    stage->now_us += 100;
    return weft_reply(req, weft_copy(params));
}

static int answer_later(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    stage->open = req;
    return 0;
}

static int answer_refusal(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    if (weft_typeof(params) == WEFT_ARRAY)
        return weft_fail(req, 404, "No", WEFT_OBJ({"detail", weft_int(1)}, {"reason", weft_str("notFound")}));
    return weft_fail(req, (int) weft_get_int(params, "code", 1), "No",
                     WEFT_OBJ({"reason", weft_str(weft_get_str(params, "reason", ""))}));
}

static int answer_much(weft_req *req, const weft_json *params, void *ctx) {
    static char much[5000];
    (void) params, (void) ctx;
    memset(much, 'x', sizeof much);
    return weft_reply(req, weft_strn(much, sizeof much));
}

static const weft_method methods[] = {
    {"echo", answer_echo},       {"later", answer_later}, {"kept", answer_echo, .flags = WEFT_ROW_CHANGES},
    {"refusal", answer_refusal}, {"much", answer_much},   {0},
};

static int open_world(world *w, long fail_at) {
    *w = (world){.now_us = 5000000};
    stage = w;
    test_memory_init(&w->memory, fail_at);
    weft_service_opts opts = {
        .methods = methods, .now_us = clock_us, .measure = true, .alloc = &w->memory.alloc, .limits.max_answer = 4096};
    int r = weft_service_new(&opts, &w->service);
    return r < 0 ? r : weft_peer_new(w->service, &(weft_peer_opts){.framing = &weft_ndjson}, &w->peer);
}

static void close_world(world *w) {
    weft_peer_free(w->peer);
    weft_service_unref(w->service);
    CHECK_INT(w->memory.live, 0);
}

static const weft_method_stats *find_stats(const world *w, const char *method) {
    static const weft_method_stats none = {.method = "none"};
    const weft_measures *all = weft_service_measures(w->service);
    for (size_t i = 0; i < all->method_count; i++)
        if (strcmp(all->methods[i]->method, method) == 0)
            return all->methods[i];
    return &none;
}

static uint64_t find_errors(const world *w, int code, const char *reason) {
    const weft_measures *all = weft_service_measures(w->service);
    for (size_t i = 0; i < all->error_count; i++)
        if (all->errors[i].code == code && strcmp(all->errors[i].reason, reason) == 0)
            return all->errors[i].count;
    return 0;
}

#define ASK(id, method, params) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":" params "}\n"
#define TELL(method, params) "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":" params "}\n"

static void say(world *w, const char *text) {
    kit_say(w->peer, text, 1);
    free(kit_take(w->peer, NULL));
}

TEST(nothing_is_measured_unasked) {
    weft_service *service;
    REQUIRE(weft_service_new(NULL, &service) == 0);
    CHECK(!weft_service_measures(service));
    weft_service_unref(service);
}

TEST(requests_are_counted) {
    world w;
    REQUIRE(open_world(&w, 0) == 0);
    say(&w, ASK("1", "echo", "[1]"));
    say(&w, TELL("echo", "[1]"));
    const weft_method_stats *echo = find_stats(&w, "echo");
    CHECK_INT(echo->answers, 1);
    CHECK_INT(echo->notifications, 1);
    CHECK_INT(echo->errors, 0);
    CHECK_INT(echo->bytes_in, strlen(ASK("1", "echo", "[1]")) - 1);
    CHECK_INT(echo->bytes_out, strlen("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[1]}"));
    CHECK_INT(echo->duration_us.count, 1);
    CHECK_INT(echo->duration_us.sum, 100);
    const weft_measures *all = weft_service_measures(w.service);
    CHECK_INT(all->request_bytes.count, 1);
    CHECK_INT(all->answer_bytes.sum, echo->bytes_out);
    CHECK_INT(all->method_count, 2); /* and the one of unknown names */
    CHECK_INT(find_stats(&w, "later")->answers, 0);
    close_world(&w);
}

/* What is read together is ready to be sent together; the clock is read twice for all of it. */
TEST(what_comes_together_is_measured_together) {
    world w;
    REQUIRE(open_world(&w, 0) == 0);
    say(&w, ASK("1", "echo", "[]") ASK("2", "kept", "[]") ASK("3", "echo", "[]") ASK("4", "refusal", "[]"));
    CHECK_INT(w.clock_reads, 2);
    CHECK_INT(find_stats(&w, "echo")->duration_us.count, 2);
    CHECK_INT(find_stats(&w, "echo")->duration_us.sum, 600);
    CHECK_INT(find_stats(&w, "refusal")->duration_us.sum, 300);
    say(&w, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\"}]\n");
    CHECK_INT(find_stats(&w, "echo")->duration_us.count, 4);
    CHECK_INT(find_stats(&w, "echo")->answers, 4);
    CHECK_INT(find_stats(&w, "echo")->duration_us.sum, 1000);
    close_world(&w);
}

TEST(an_answer_that_comes_later) {
    world w;
    REQUIRE(open_world(&w, 0) == 0);
    say(&w, ASK("1", "later", "[]"));
    CHECK_INT(find_stats(&w, "later")->answers, 0);
    CHECK_INT(weft_service_stats(w.service)->open, 1);
    w.now_us += 2500000;
    weft_reply(w.open, weft_null());
    CHECK_INT(find_stats(&w, "later")->duration_us.sum, 2500000);
    CHECK_INT(weft_service_stats(w.service)->open, 0);
    /* One that nobody waits for any more is lost, and has no duration. */
    say(&w, ASK("2", "later", "[]"));
    w.peer = weft_peer_free(w.peer);
    weft_reply(w.open, weft_null());
    CHECK_INT(find_stats(&w, "later")->answers, 1);
    CHECK_INT(find_stats(&w, "later")->lost, 1);
    CHECK_INT(weft_service_stats(w.service)->open, 0);
    close_world(&w);
}

/* A caller's words never become a row or a label. */
TEST(names_that_no_method_has_are_one_row) {
    world w;
    char text[256];
    REQUIRE(open_world(&w, 0) == 0);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, ASK("%d", "made.up.%d", "[]"), i, i);
        say(&w, text);
    }
    say(&w, TELL("also.made.up", "[]"));
    say(&w, ASK("1", "\\u0065cho", "[]")); /* the same name, written otherwise */
    CHECK_INT(weft_service_measures(w.service)->method_count, 2);
    CHECK_INT(find_stats(&w, "")->answers, 1000);
    CHECK_INT(find_stats(&w, "")->errors, 1000);
    CHECK_INT(find_stats(&w, "")->notifications, 1);
    CHECK_INT(find_stats(&w, "echo")->answers, 1);
    CHECK_INT(find_errors(&w, -32601, "methodNotFound"), 1000);
    close_world(&w);
}

TEST(errors_by_code_and_reason) {
    world w;
    char text[256];
    REQUIRE(open_world(&w, 0) == 0);
    say(&w, ASK("1", "refusal", "[]"));
    say(&w, "no JSON\n");
    say(&w, "{\"jsonrpc\":\"2.0\",\"id\":1}\n");
    say(&w, ASK("2", "much", "[]"));
    CHECK_INT(find_errors(&w, 404, "notFound"), 1);
    CHECK_INT(find_errors(&w, -32700, "parseError"), 1);
    CHECK_INT(find_errors(&w, -32600, "invalidRequest"), 1);
    CHECK_INT(find_stats(&w, "much")->errors, 1); /* an answer that is too large is replaced by an error */
    CHECK_INT(find_errors(&w, 413, "tooLarge"), 1);
    CHECK_INT(find_stats(&w, "")->answers, 0); /* what was no request is none */
    /* What is no short word is counted without it. */
    static const char *const odd[] = {"two words", "q\\\"uote", "line\\n", "",
                                      "aVeryLongReasonThatNobodyWouldEverWriteInTheirCode"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        snprintf(text, sizeof text, ASK("3", "refusal", "{\"code\":7,\"reason\":\"%s\"}"), odd[i]);
        say(&w, text);
    }
    CHECK_INT(find_errors(&w, 7, ""), 5);
    /* However many codes there are, the list has an end. */
    for (int i = 1000; i < 1500; i++) {
        snprintf(text, sizeof text, ASK("4", "refusal", "{\"code\":%d}"), i);
        say(&w, text);
    }
    const weft_measures *all = weft_service_measures(w.service);
    uint64_t sum = 0;
    CHECK_INT(all->error_count, WEFT_ERROR_STATS);
    for (size_t i = 0; i < all->error_count; i++)
        sum += all->errors[i].count;
    CHECK_INT(sum, 4 + 5 + 500);
    CHECK_INT(all->errors[WEFT_ERROR_STATS - 1].code, 0);
    CHECK(all->errors[WEFT_ERROR_STATS - 1].count > 300);
    close_world(&w);
}

TEST(a_retry_is_answered_again) {
    world w;
    REQUIRE(open_world(&w, 0) == 0);
    say(&w, ASK("1", "kept", "{\"_meta\":{\"weft/idempotencyKey\":\"k\"}}"));
    say(&w, ASK("2", "kept", "{\"_meta\":{\"weft/idempotencyKey\":\"k\"}}"));
    CHECK_INT(weft_service_stats(w.service)->replayed, 1);
    CHECK_INT(find_stats(&w, "kept")->answers, 2);
    close_world(&w);
}

TEST(notifications_that_we_send) {
    world w;
    weft_batch *batch;
    weft_shared *shared;
    REQUIRE(open_world(&w, 0) == 0);
    weft_notify(w.peer, "a", weft_none());
    REQUIRE(weft_batch_new(w.peer, &batch) == 0);
    weft_batch_notify(batch, "b", weft_none());
    weft_batch_send(batch);
    REQUIRE(weft_shared_new(w.service, "c", weft_none(), &shared) == 0);
    weft_shared_send(shared, w.peer);
    weft_shared_free(shared);
    CHECK_INT(weft_service_stats(w.service)->notifications_out, 3);
    close_world(&w);
}

/* More methods than the first table has room for, added and removed while one of them has an open request. */
TEST(methods_come_and_go) {
    enum { MANY = 200 };
    static weft_method rows[MANY];
    static char names[MANY][16];
    world w;
    char text[256];
    REQUIRE(open_world(&w, 0) == 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "extra.%d", i);
        rows[i] = (weft_method){.name = names[i], .handler = i == 7 ? answer_later : answer_echo};
        REQUIRE(weft_service_add(w.service, &rows[i]) == 0);
        snprintf(text, sizeof text, ASK("1", "extra.%d", "[]"), i);
        say(&w, text);
    }
    CHECK_INT(weft_service_measures(w.service)->method_count, MANY + 1);
    for (int i = 0; i < MANY; i += 1 + (i > 100)) {
        REQUIRE(weft_service_remove(w.service, names[i]) == 0);
        memset(&rows[i], 0xdb, sizeof rows[i]); /* it is not looked at any more */
    }
    weft_reply(w.open, weft_null());
    CHECK_INT(find_stats(&w, "extra.102")->answers, 1);
    CHECK_INT(find_stats(&w, "")->answers, 151);
    CHECK_INT(find_stats(&w, "")->duration_us.count, 151);
    CHECK_INT(weft_service_measures(w.service)->method_count, MANY + 1 - 151 + 0);
    close_world(&w);
}

TEST(histograms) {
    weft_histogram h = {0};
    uint64_t before = 0;
    for (size_t i = 0; i < WEFT_HISTOGRAM_BUCKETS; i++) {
        CHECK(weft_histogram_limit(i) > before);
        before = weft_histogram_limit(i);
    }
    CHECK_INT(weft_histogram_limit(7), 8);
    CHECK_INT(weft_histogram_limit(8), 9);
    CHECK_INT(weft_histogram_limit(15), 16);
    CHECK_INT(weft_histogram_limit(16), 18);
    CHECK(before == UINT64_MAX);
    CHECK_INT(weft_histogram_quantile(&h, 0.5), 0);
    world w;
    REQUIRE(open_world(&w, 0) == 0);
    static const int64_t took[] = {0, 1, 7, 8, 15, 16, 1000, 4095, 4096, (int64_t) 1 << 33};
    for (size_t i = 0; i < sizeof took / sizeof took[0]; i++) {
        say(&w, ASK("1", "later", "[]"));
        w.now_us += took[i];
        weft_reply(w.open, weft_null());
    }
    h = find_stats(&w, "later")->duration_us;
    CHECK_INT(weft_histogram_below(&h, 8), 3);
    CHECK_INT(weft_histogram_below(&h, 16), 5);
    CHECK_INT(weft_histogram_below(&h, 4096), 8);
    CHECK_INT(weft_histogram_below(&h, UINT64_MAX), 10);
    CHECK_INT(weft_histogram_quantile(&h, 0), 0);
    CHECK_INT(weft_histogram_quantile(&h, 0.5), 15);
    uint64_t high = weft_histogram_quantile(&h, 0.7);
    CHECK(high >= 1000 && high <= 1125);
    CHECK_INT(weft_histogram_quantile(&h, 1), (int64_t) 1 << 32);
    close_world(&w);
}

TEST(memory_fails) {
    bool failed = true;
    for (long fail_at = 1; failed && fail_at < 200; fail_at++) {
        world w;
        if (open_world(&w, fail_at) == 0) {
            say(&w, ASK("1", "echo", "[]") ASK("2", "refusal", "[]") ASK("3", "echo", "[]"));
            uint64_t answers =
                find_stats(&w, "")->answers + find_stats(&w, "echo")->answers + find_stats(&w, "refusal")->answers;
            CHECK_INT(answers, weft_service_stats(w.service)->answers);
        }
        failed = w.memory.count >= fail_at;
        close_world(&w);
    }
    CHECK(!failed);
}

TEST_MAIN(CASE(nothing_is_measured_unasked) CASE(requests_are_counted) CASE(what_comes_together_is_measured_together)
              CASE(an_answer_that_comes_later) CASE(names_that_no_method_has_are_one_row) CASE(errors_by_code_and_reason)
                  CASE(a_retry_is_answered_again) CASE(notifications_that_we_send) CASE(methods_come_and_go) CASE(histograms)
                      CASE(memory_fails))
