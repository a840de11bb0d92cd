/* The rules of "gates": which requests they hold for, and what they ask. Time is a number. */
#include "gate_rules.h"
#include "peer_kit.h"
#include "rates.h"

typedef struct world {
    test_memory memory;
    weft_doc *doc;
    weft_gate_rules *rules;
    weft_service *service;
    weft_peer *peer;
    int64_t now;
    const weft_gate *gates[2];
} world;

static int64_t now_ms(void *ctx) {
    return ((world *) ctx)->now;
}

static int answer_echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

static const weft_error_row planner_errors[] = {{-32002, "Too many requests", "rateLimited"}, {0}};
static const weft_method methods[] = {
    {"echo", answer_echo},
    {"task.get", answer_echo},
    {"execute_task", answer_echo, .errors = planner_errors},
    {0},
};

static int open_rules(world *w, const char *rows, long fail_at) {
    *w = (world){.now = 1000};
    test_memory_init(&w->memory, fail_at);
    int r = weft_doc_parse(rows, strlen(rows), NULL, &w->doc);
    weft_gate_rules_opts opts = {.rows = weft_doc_root(w->doc), .alloc = &w->memory.alloc, .now_ms = now_ms, .ctx = w};
    if (r >= 0)
        r = weft__gate_rules_new(&opts, &w->rules);
    if (r < 0)
        return r;
    w->gates[0] = weft__gate_rules_gate(w->rules);
    return weft_service_new(&(weft_service_opts){.methods = methods, .gates = w->gates, .alloc = &w->memory.alloc},
                            &w->service);
}

static void close_rules(world *w) {
    weft_peer_free(w->peer);
    weft_service_unref(w->service);
    weft__gate_rules_free(w->rules);
    weft_doc_free(w->doc);
    CHECK_INT(w->memory.live, 0);
}

static const weft_identity phone = {.transport = "ws",
                                    .dialect = "cdev",
                                    .name = "phone",
                                    .scopes = "read work",
                                    .address = "192.0.2.1",
                                    .authenticated = true,
                                    .endpoint = "ws://127.0.0.1:16180/ws"};

static void come_as(world *w, weft_identity who) {
    weft_peer_free(w->peer);
    w->peer = NULL;
    CHECK(weft_peer_new(w->service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &who}, &w->peer) >= 0);
}

/* 0 a result, else the error's code; *ret_wait its retryAfterMs. */
static int call_method(world *w, const char *method, int64_t *ret_wait) {
    char line[256];
    weft_doc *doc = NULL;
    size_t len;
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":[]}\n", method);
    kit_say(w->peer, line, w->now);
    char *said = kit_take(w->peer, &len);
    CHECK(weft_doc_parse(said, len, NULL, &doc) >= 0);
    weft_json error = weft_get(weft_doc_root(doc), "error"), data = weft_get(&error, "data");
    int code = (int) weft_get_int(&error, "code", 0);
    if (ret_wait)
        *ret_wait = weft_get_int(&data, "retryAfterMs", -1);
    weft_doc_free(doc);
    free(said);
    return code;
}

/* ---- which requests ---- */

TEST(holds_for_what_it_says) {
    static const struct {
        const char *rule;
        int code; /* of "task.get" from the phone */
    } rows[] = {
        {"[{\"allow\":[\"echo\"]}]", 403},
        {"[{\"allow\":[\"task.*\"]}]", 0},
        {"[{\"allow\":[\"*\"]}]", 0},
        {"[{\"token\":\"phone\",\"allow\":[\"echo\"]}]", 403},
        {"[{\"token\":\"desk\",\"allow\":[\"echo\"]}]", 0},
        {"[{\"listen\":\"ws://*\",\"allow\":[\"echo\"]}]", 403},
        {"[{\"listen\":\"unix:*\",\"allow\":[\"echo\"]}]", 0},
        {"[{\"listen\":\"*/ws\",\"allow\":[\"echo\"]}]", 403},
        {"[{\"dialect\":\"cdev\",\"allow\":[\"echo\"]}]", 403},
        {"[{\"dialect\":\"planner\",\"allow\":[\"echo\"]}]", 0},
        {"[{\"scopes\":\"read work\",\"allow\":[\"echo\"]}]", 403},
        {"[{\"scopes\":\"work read\",\"allow\":[\"echo\"]}]", 403},
        {"[{\"scopes\":\"read,work\",\"allow\":[\"echo\"]}]", 403},
        {"[{\"scopes\":\"work, read\",\"allow\":[\"echo\"]}]", 403},
        {"[{\"scopes\":\"read\",\"allow\":[\"echo\"]}]", 0},
        {"[{\"scopes\":\"*\",\"allow\":[\"echo\"]}]", 0},
        {"[{\"methods\":[\"echo\",\"task.*\"],\"allow\":[\"echo\"]}]", 403},
        {"[{\"methods\":[\"echo\"],\"allow\":[\"x\"]}]", 0},
        {"[{\"token\":\"phone\",\"dialect\":\"planner\",\"allow\":[\"echo\"]}]", 0},
        {"[{\"allow\":[\"*\"]},{\"token\":\"phone\",\"allow\":[\"echo\"]}]", 403},
        {"[{\"max_message\":40}]", -32600},
        {"[{\"max_message\":400}]", 0},
        {"[{\"methods\":[\"echo\"],\"max_message\":40}]", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world w;
        test_row(rows[i].rule);
        REQUIRE(open_rules(&w, rows[i].rule, 0) >= 0);
        come_as(&w, phone);
        CHECK_INT(call_method(&w, "task.get", NULL), rows[i].code);
        /* A name that is written otherwise is the same method. */
        CHECK_INT(call_method(&w, "task.\\u0067et", NULL), rows[i].code);
        close_rules(&w);
    }
    test_row(NULL);
}

TEST(a_refusal_says_why) {
    world w;
    REQUIRE(open_rules(&w, "[{\"allow\":[\"*\"]},{\"token\":\"phone\",\"allow\":[\"echo\"]}]", 0) >= 0);
    come_as(&w, phone);
    kit_say(w.peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.get\"}\n", 1);
    CHECK_SAYS(w.peer,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":403,\"message\":\"phone may not call task.get: gates[1] "
               "allows others\",\"data\":{\"reason\":\"methodNotAllowed\"}}}\n");
    /* Also for names that nobody has: a list of what may be called is not a way to find out what there is. */
    CHECK_INT(call_method(&w, "none", NULL), 403);
    close_rules(&w);
}

TEST(signatures_are_asked_for) {
    weft_gate_request request = {.identity = &phone, .name = {"execute_task", 12}};
    world w;
    REQUIRE(open_rules(&w, "[{\"methods\":[\"execute_*\"],\"require\":\"signature\"},{\"rate_per_minute\":5}]", 0) >= 0);
    CHECK(weft__gate_rules_sign(w.rules));
    CHECK(weft__gate_rules_required(w.rules, &request));
    request.name = (weft_bytes){"echo", 4};
    CHECK(!weft__gate_rules_required(w.rules, &request));
    close_rules(&w);
}

TEST(sizes_of_endpoints) {
    world w;
    REQUIRE(open_rules(&w,
                       "[{\"listen\":\"tcp://*\",\"max_message\":500},{\"dialect\":\"acp\",\"max_message\":300},"
                       "{\"token\":\"phone\",\"max_message\":10},{\"max_message\":900}]",
                       0) >= 0);
    CHECK_INT(weft__gate_rules_max_body(w.rules, "tcp://127.0.0.1:1", NULL), 500);
    CHECK_INT(weft__gate_rules_max_body(w.rules, "tcp://127.0.0.1:1", "acp"), 300);
    CHECK_INT(weft__gate_rules_max_body(w.rules, "tcp://127.0.0.1:1", "aiwg"), 0);
    CHECK_INT(weft__gate_rules_max_body(w.rules, "unix:x", NULL), 900);
    close_rules(&w);
}

/* A peer with a size of its own does not keep larger messages, whoever it is. */
TEST(a_peer_has_a_size_of_its_own) {
    world w;
    char line[600];
    REQUIRE(open_rules(&w, "[]", 0) >= 0);
    weft_peer *peer = NULL;
    REQUIRE(weft_peer_new(w.service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &phone, .max_body = 200},
                          &peer) >= 0);
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[\"%0300d\"]}\n", 1);
    kit_say(peer, line, 1);
    CHECK_SAYS(peer, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"Invalid Request\",\"data\":{"
                     "\"reason\":\"tooLarge\",\"detail\":\"the message is over the size limit\"}}}\n");
    REQUIRE(weft_peer_set_identity(peer, &phone) >= 0);
    kit_say(peer, line, 1);
    char *said = kit_take(peer, NULL);
    CHECK(strstr(said, "tooLarge"));
    free(said);
    weft_peer_free(peer);
    /* One that belongs to the dialect goes with it. */
    weft_identity other = phone;
    weft_peer_opts opts = {.framing = &weft_ndjson, .identity = &phone, .max_body = 1000, .dialect_max_body = 200};
    REQUIRE(weft_peer_new(w.service, &opts, &peer) >= 0);
    kit_say(peer, line, 1);
    said = kit_take(peer, NULL);
    CHECK(strstr(said, "tooLarge"));
    free(said);
    other.dialect = "acp";
    REQUIRE(weft_peer_set_identity(peer, &other) >= 0);
    kit_say(peer, line, 1);
    said = kit_take(peer, NULL);
    CHECK(strstr(said, "\"id\":1,\"result\""));
    free(said);
    weft_peer_free(peer);
    close_rules(&w);
}

/* ---- rates ---- */

TEST(so_many_a_minute) {
    world w;
    int64_t wait;
    REQUIRE(open_rules(&w, "[{\"methods\":[\"echo\"],\"rate_per_minute\":6}]", 0) >= 0);
    come_as(&w, phone);
    for (int i = 0; i < 6; i++)
        CHECK_INT(call_method(&w, "echo", NULL), 0);
    CHECK_INT(call_method(&w, "echo", &wait), 429);
    CHECK_INT(wait, 10000);
    CHECK_INT(call_method(&w, "task.get", NULL), 0); /* no rule holds for it */
    come_as(&w, phone);                              /* connecting anew gains nothing */
    w.now += 9999;
    CHECK_INT(call_method(&w, "echo", &wait), 429);
    CHECK_INT(wait, 1);
    w.now += 1;
    CHECK_INT(call_method(&w, "echo", NULL), 0);
    CHECK_INT(call_method(&w, "echo", NULL), 429);
    w.now -= 5000; /* a clock that goes back gives nothing */
    CHECK_INT(call_method(&w, "echo", NULL), 429);
    /* Others have their own. */
    weft_identity other = phone;
    other.name = "desk";
    come_as(&w, other);
    CHECK_INT(call_method(&w, "echo", NULL), 0);
    /* After a minute all of them are there again, and no more. */
    come_as(&w, phone);
    w.now += 3600 * 1000;
    for (int i = 0; i < 6; i++)
        CHECK_INT(call_method(&w, "echo", NULL), 0);
    CHECK_INT(call_method(&w, "echo", NULL), 429);
    close_rules(&w);
}

/* A number means what the dialect of the method says. */
TEST(a_row_has_its_own_code) {
    world w;
    int64_t wait;
    REQUIRE(open_rules(&w, "[{\"rate_per_minute\":1}]", 0) >= 0);
    come_as(&w, phone);
    CHECK_INT(call_method(&w, "execute_task", NULL), 0);
    CHECK_INT(call_method(&w, "execute_task", &wait), -32002);
    CHECK_INT(wait, 60000);
    CHECK_INT(call_method(&w, "echo", NULL), 429);
    CHECK_INT(weft__gate_rules_stats(w.rules).rates, 2);
    close_rules(&w);
}

/* The same from the limit of the service itself. */
TEST(a_row_has_its_own_code_for_the_limit_of_all) {
    weft_service *service = NULL;
    world w = {0};
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = methods, .limits.rate_per_minute = 2}, &service) >= 0);
    REQUIRE(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &phone}, &w.peer) >= 0);
    CHECK_INT(call_method(&w, "execute_task", NULL), 0);
    CHECK_INT(call_method(&w, "echo", NULL), 0);
    CHECK_INT(call_method(&w, "execute_task", NULL), -32002);
    CHECK_INT(call_method(&w, "echo", NULL), 429);
    weft_peer_free(w.peer);
    weft_service_unref(service);
}

static void note_unknown(void *ctx, size_t index, const char *member, const char *pattern) {
    char *text = ctx;
    snprintf(text + strlen(text), 256 - strlen(text), "%zu %s %s\n", index, member, pattern);
}

TEST(patterns_that_are_like_no_method_are_told) {
    char told[256] = "";
    world w;
    REQUIRE(open_rules(
                &w,
                "[{\"allow\":[\"echo\",\"task.*\",\"tsak.*\"]},{\"methods\":[\"execute_taks\",\"rpc.discover\"],\"require\":"
                "\"signature\"},{\"methods\":[\"*\"],\"rate_per_minute\":5}]",
                0) >= 0);
    CHECK_INT(weft__gate_rules_unknown(w.rules, w.service, note_unknown, told), 0);
    CHECK_TEXT(told, strlen(told), "0 allow tsak.*\n1 methods execute_taks\n");
    close_rules(&w);
}

/* GET /metrics gives what metrics.get gives. */
TEST(a_path_is_asked_like_its_method) {
    static const struct {
        const char *rules;
        int first, second; /* of "metrics.get" by a path */
    } rows[] = {
        {"[]", 0, 0},
        {"[{\"token\":\"phone\",\"allow\":[\"task.*\"]}]", -EACCES, -EACCES},
        {"[{\"token\":\"desk\",\"allow\":[\"task.*\"]}]", 0, 0},
        {"[{\"token\":\"phone\",\"allow\":[\"metrics.*\"]}]", 0, 0},
        {"[{\"methods\":[\"metrics.get\"],\"require\":\"signature\"}]", -ENOKEY, -ENOKEY},
        {"[{\"methods\":[\"task.*\"],\"require\":\"signature\"}]", 0, 0},
        {"[{\"methods\":[\"metrics.get\"],\"rate_per_minute\":1}]", 0, -EBUSY},
        {"[{\"methods\":[\"metrics.get\"],\"rate_per_minute\":1},{\"allow\":[\"echo\"]}]", -EACCES, -EACCES},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world w;
        int64_t wait = -1;
        test_row(rows[i].rules);
        REQUIRE(open_rules(&w, rows[i].rules, 0) >= 0);
        CHECK_INT(weft__gate_rules_path(w.rules, &phone, "metrics.get", &wait), rows[i].first);
        CHECK_INT(weft__gate_rules_path(w.rules, &phone, "metrics.get", &wait), rows[i].second);
        CHECK_INT(wait, rows[i].second == -EBUSY ? 60000 : -1);
        CHECK_INT(weft__gate_rules_stats(w.rules).methods, rows[i].first == -EACCES ? 2 : 0);
        CHECK_INT(weft__gate_rules_stats(w.rules).rates, rows[i].second == -EBUSY);
        close_rules(&w);
    }
    test_row(NULL);
}

/* Notifications too, which nobody answers. */
TEST(refusals_are_counted) {
    world w;
    REQUIRE(open_rules(&w, "[{\"methods\":[\"echo\"],\"max_message\":60},{\"allow\":[\"echo\"]}]", 0) >= 0);
    come_as(&w, phone);
    CHECK_INT(call_method(&w, "task.get", NULL), 403);
    kit_say(w.peer, "{\"jsonrpc\":\"2.0\",\"method\":\"task.get\"}\n", w.now);
    kit_say(w.peer, "{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"params\":[\"long enough to be too long\"]}\n", w.now);
    CHECK_INT(call_method(&w, "echo", NULL), 0);
    weft_gate_rules_stats stats = weft__gate_rules_stats(w.rules);
    CHECK_INT(stats.methods, 2);
    CHECK_INT(stats.sizes, 1);
    CHECK_INT(stats.rates, 0);
    close_rules(&w);
}

TEST(names_are_bounded) {
    weft_rates *rates = NULL;
    char name[32];
    REQUIRE(weft__rates_new(NULL, &rates) >= 0);
    for (int i = 0; i < 40000; i++) {
        snprintf(name, sizeof name, "client %d", i);
        weft__rates_take(rates, name, 2, 1000);
    }
    CHECK(weft__rates_count(rates) <= 16385);
    CHECK(weft__rates_take(rates, "one more", 2, 1000) > 0); /* shares with those that came too late */
    for (int i = 0; i < 4000; i++) {
        snprintf(name, sizeof name, "later %d", i);
        weft__rates_take(rates, name, 2, 1000000);
    }
    CHECK(weft__rates_count(rates) < 6000); /* those that are full again are forgotten */
    weft__rates_free(rates);
}

TEST(rules_without_memory) {
    static const char rows[] = "[{\"listen\":\"*\",\"token\":\"phone\",\"methods\":[\"a\",\"echo\"],\"allow\":[\"echo\"],"
                               "\"rate_per_minute\":5}]";
    long at = 0;
    for (bool failed = true; failed;) {
        world w;
        at++;
        int r = open_rules(&w, rows, at);
        failed = r < 0;
        if (r < 0)
            CHECK_INT(r, -ENOMEM);
        close_rules(&w);
    }
    CHECK(at > 4);
}

TEST_MAIN(CASE(holds_for_what_it_says) CASE(a_refusal_says_why) CASE(signatures_are_asked_for) CASE(sizes_of_endpoints)
              CASE(a_peer_has_a_size_of_its_own) CASE(so_many_a_minute) CASE(a_row_has_its_own_code)
                  CASE(a_row_has_its_own_code_for_the_limit_of_all) CASE(a_path_is_asked_like_its_method)
                      CASE(patterns_that_are_like_no_method_are_told) CASE(refusals_are_counted) CASE(names_are_bounded)
                          CASE(rules_without_memory))
