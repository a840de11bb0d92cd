/* W3C trace context: what is one, and how a request carries it. */
#include "trace.h"
#include "peer_kit.h"

#define ID "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define GOOD "00-" ID "-" PARENT "-01"

TEST(traceparents) {
    static const struct {
        const char *text, *want; /* NULL: it is none */
    } rows[] = {
        {GOOD, GOOD},
        {"00-" ID "-" PARENT "-00", "00-" ID "-" PARENT "-00"},
        {"00-" ID "-" PARENT "-ff", "00-" ID "-" PARENT "-ff"},
        {"01-" ID "-" PARENT "-01", GOOD},
        {"cc-" ID "-" PARENT "-01-what-comes-later", GOOD},
        {"cc-" ID "-" PARENT "-01.what-comes-later", NULL},
        {"cc-" ID "-" PARENT "-010", NULL},
        {"ff-" ID "-" PARENT "-01", NULL},
        {GOOD "-", NULL},
        {GOOD " ", NULL},
        {" " GOOD, NULL},
        {"", NULL},
        {"00", NULL},
        {"00-" ID "-" PARENT "-0", NULL},
        {"00-" ID "-" PARENT "-0g", NULL},
        {"00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01", NULL},
        {"00-00000000000000000000000000000000-" PARENT "-01", NULL},
        {"00-" ID "-0000000000000000-01", NULL},
        {"00_" ID "-" PARENT "-01", NULL},
        {"00-" ID "_" PARENT "-01", NULL},
        {"00-" ID "-" PARENT "_01", NULL},
        {"0x-" ID "-" PARENT "-01", NULL},
        {".0-" ID "-" PARENT "-01", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[WEFT_TRACEPARENT] = "";
        char *text = strdup(rows[i].text); /* as long as it is, for the sanitizer */
        test_row(*text ? text : "(empty)");
        CHECK(weft__trace_parent((weft_bytes){text, strlen(text)}, got) == !!rows[i].want);
        CHECK_TEXT(got, strlen(got), rows[i].want ? rows[i].want : "");
        free(text);
    }
    test_row(NULL);
}

TEST(tracestates) {
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"rojo=00f067aa0ba902b7", true},
        {"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", true},
        {"a=1 , b=2,\tc=3", true},
        {"a=1,,b=2", true},
        {"tenant@system=1", true},
        {"1a=!\"#$%", true},
        {"", false},
        {",", false},
        {"a", false},
        {"a=", false},
        {"=1", false},
        {"A=1", false},
        {"@a=1", false},
        {"a=1=2", false},
        {"a=1\nb=2", false},
        {"a=\x7f", false},
        {"a=\xc3\xa4", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[WEFT_TRACESTATE] = "", *text = strdup(rows[i].text);
        test_row(*text ? text : "(empty)");
        CHECK(weft__trace_state((weft_bytes){text, strlen(text)}, got) == rows[i].good);
        CHECK_TEXT(got, strlen(got), rows[i].good ? text : "");
        free(text);
    }
    test_row(NULL);
    char many[WEFT_TRACESTATE + 1] = "", got[WEFT_TRACESTATE];
    for (int i = 0; i < 32; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%sa%d=1", i ? "," : "", i);
    CHECK(weft__trace_state((weft_bytes){many, strlen(many)}, got));
    strcat(many, ",b=1");
    CHECK(!weft__trace_state((weft_bytes){many, strlen(many)}, got));
    memset(many, 'a', WEFT_TRACESTATE);
    memcpy(many, "k=", 2);
    CHECK(!weft__trace_state((weft_bytes){many, WEFT_TRACESTATE}, got));
    CHECK(!weft__trace_state((weft_bytes){"a=1\0b=2", 7}, got));
}

/* ---- in a request ---- */

static weft_trace seen;
static bool found;
static char logged[64];

static int answer_trace(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    found = weft_req_trace(req, &seen);
    return weft_reply(req, weft_null());
}

static void note_trace(void *ctx, const weft_gate_outcome *outcome) {
    (void) ctx;
    snprintf(logged, sizeof logged, "%s", outcome->trace_id);
}

static void ask(weft_peer *peer, const char *params) {
    char text[1024];
    snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"trace\",\"params\":%s}\n", params);
    memset(&seen, 'x', sizeof seen);
    kit_say(peer, text, 1);
    free(kit_take(peer, NULL));
}

TEST(a_request_has_one) {
    static const weft_method methods[] = {{"trace", answer_trace}, {0}};
    static const weft_gate notes = {.name = "notes", .after = note_trace};
    static const weft_gate *const gates[] = {&notes, NULL};
    weft_service *service;
    weft_peer *peer;
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = methods, .gates = gates}, &service) == 0);
    REQUIRE(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
    ask(peer, "{\"_meta\":{\"traceparent\":\"" GOOD "\",\"tracestate\":\"a=1\"}}");
    CHECK(found);
    CHECK_TEXT(seen.traceparent, strlen(seen.traceparent), GOOD);
    CHECK_TEXT(seen.tracestate, strlen(seen.tracestate), "a=1");
    CHECK_TEXT(logged, strlen(logged), ID);
    ask(peer, "{\"_meta\":{\"traceparent\":\"" GOOD "\",\"tracestate\":\"no state\"}}");
    CHECK(found);
    CHECK_TEXT(seen.tracestate, strlen(seen.tracestate), "");
    static const char *const none[] = {"{}",
                                       "[]",
                                       "{\"_meta\":{}}",
                                       "{\"_meta\":{\"traceparent\":null}}",
                                       "{\"_meta\":{\"traceparent\":7,\"tracestate\":\"a=1\"}}",
                                       "{\"_meta\":{\"traceparent\":\"" GOOD "x\"}}",
                                       "{\"_meta\":{\"tracestate\":\"a=1\"}}",
                                       "{\"traceparent\":\"" GOOD "\"}"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        test_row(none[i]);
        ask(peer, none[i]);
        CHECK(!found);
        CHECK_TEXT(seen.traceparent, strlen(seen.traceparent), "");
        CHECK_TEXT(seen.tracestate, strlen(seen.tracestate), "");
        CHECK_TEXT(logged, strlen(logged), "");
    }
    test_row(NULL);
    weft_peer_free(peer);
    weft_service_unref(service);
}

TEST_MAIN(CASE(traceparents) CASE(tracestates) CASE(a_request_has_one))
