/* What a peer does on a WebSocket beside messages: pings, pongs and their time, closing, and who counts as alive. */
#include "peer_kit.h"

static int big(weft_req *req, const weft_json *params, void *ctx) {
    static char text[50000];
    (void) params, (void) ctx;
    memset(text, 'x', sizeof text);
    return weft_reply(req, weft_strn(text, sizeof text));
}

static const weft_method methods[] = {{"big", big}, {0}};

typedef struct fixture {
    weft_service *service;
    weft_peer *server, *client;
} fixture;

static bool set_up(fixture *f, weft_limits limits) {
    return CHECK_INT(weft_service_new(&(weft_service_opts){.methods = methods, .limits = limits}, &f->service), 0) &&
           CHECK_INT(weft_peer_new(f->service, &(weft_peer_opts){.framing = &weft_websocket}, &f->server), 0) &&
           CHECK_INT(weft_peer_new(f->service, &(weft_peer_opts){.framing = &weft_websocket_client, .seed = 1}, &f->client),
                     0);
}

static void tear_down(fixture *f) {
    weft_peer_free(f->server);
    weft_peer_free(f->client);
    weft_service_unref(f->service);
}

/* The first byte of what a peer says next (0: nothing), taken away. */
static int says(weft_peer *peer) {
    weft_bytes out = weft_peer_output(peer);
    int first = out.len ? (unsigned char) out.data[0] : 0;
    weft_peer_sent(peer, out.len);
    return first;
}

enum { TEXT = 0x81, CLOSE = 0x88, PING = 0x89, PONG = 0x8a };

TEST(ping_after_silence_then_dead) {
    fixture f;
    REQUIRE(set_up(&f, (weft_limits){0}));
    CHECK_INT(weft_peer_tick(f.server, 1000), 0);
    CHECK_INT(weft_peer_deadline(f.server), 26000);
    CHECK_INT(weft_peer_tick(f.server, 25999), 0);
    CHECK_INT(says(f.server), 0);
    CHECK_INT(weft_peer_tick(f.server, 26000), 0);
    CHECK_INT(says(f.server), PING);
    CHECK_INT(weft_peer_deadline(f.server), 36000);
    CHECK_INT(weft_peer_tick(f.server, 35999), 0);
    CHECK_INT(says(f.server), 0);
    CHECK_INT(weft_peer_tick(f.server, 36000), -ETIMEDOUT);
    CHECK_INT(weft_peer_tick(f.server, 36001), -ETIMEDOUT);
    tear_down(&f);
}

TEST(a_pong_or_anything_else_is_life) {
    fixture f;
    REQUIRE(set_up(&f, (weft_limits){0}));
    CHECK_INT(weft_peer_tick(f.server, 1000), 0);
    for (int64_t start = 1000; start < 200000; start += 30000) {
        CHECK_INT(weft_peer_feed(f.client, "", 0, start), 0); /* it is pinged itself otherwise */
        CHECK_INT(weft_peer_tick(f.server, start + 25000), 0);
        CHECK_INT((unsigned char) weft_peer_output(f.server).data[0], PING);
        CHECK_INT(kit_pump(f.server, f.client, 1, start + 30000), 0);
        CHECK_INT(weft_peer_deadline(f.server), start + 55000);
    }
    CHECK_INT(weft_notify(f.client, "n", weft_none()), 0);
    CHECK_INT(kit_pump(f.client, f.server, 3, 500000), 0);
    CHECK_INT(weft_peer_deadline(f.server), 525000);
    tear_down(&f);
}

TEST(other_times_and_none) {
    fixture f;
    REQUIRE(set_up(&f, (weft_limits){.ping_ms = 5, .pong_ms = 2}));
    CHECK_INT(weft_peer_tick(f.server, 100), 0);
    CHECK_INT(weft_peer_deadline(f.server), 105);
    CHECK_INT(weft_peer_tick(f.server, 105), 0);
    CHECK_INT(weft_peer_tick(f.server, 107), -ETIMEDOUT);
    tear_down(&f);
    REQUIRE(set_up(&f, (weft_limits){.ping_ms = -1}));
    CHECK_INT(weft_peer_tick(f.server, 100), 0);
    CHECK(weft_peer_deadline(f.server) == INT64_MAX);
    CHECK_INT(weft_peer_tick(f.server, 10000000), 0);
    CHECK_INT(says(f.server), 0);
    tear_down(&f);
}

TEST(lines_have_no_pings) {
    weft_peer *peer;
    REQUIRE(weft_peer_new(NULL, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
    CHECK_INT(weft_peer_tick(peer, 1), 0);
    CHECK(weft_peer_deadline(peer) == INT64_MAX);
    weft_peer_free(peer);
}

/* While a large answer drains slowly nothing is read, so a pong cannot be heard; that bytes leave is as good a sign of life.
 */
TEST(a_slow_reader_is_not_dead) {
    fixture f;
    REQUIRE(set_up(&f, (weft_limits){.out_soft = 1000}));
    CHECK_INT(weft_peer_tick(f.server, 1), 0);
    weft_call_opts opts = {.timeout_ms = -1};
    CHECK_INT(weft_call_start(f.client, "big", weft_none(), &opts, NULL), 0);
    CHECK_INT(kit_pass(f.client, f.server, 100, 1), 0);
    CHECK(weft_peer_full(f.server));
    int64_t now = 1;
    int r = 0;
    while (weft_peer_output(f.server).len > 2000 && r == 0) {
        now += 9000;
        weft_peer_sent(f.server, 1000);
        r = weft_peer_tick(f.server, now);
    }
    CHECK_INT(r, 0);
    CHECK(now > 300000);
    /* Nothing leaves any more: 25 s until the question, 10 s for the answer. */
    int64_t last = now;
    while (r == 0 && now < last + 100000)
        r = weft_peer_tick(f.server, now += 1000);
    CHECK_INT(r, -ETIMEDOUT);
    CHECK(now <= last + 36000);
    tear_down(&f);
}

/* ---- closing ---- */

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer, (void) answer;
    *(int *) ctx = r;
}

static int code_of(weft_peer *peer) {
    weft_bytes out = weft_peer_output(peer);
    if (out.len < 4 || (unsigned char) out.data[0] != CLOSE)
        return 0;
    int code = (unsigned char) out.data[2] << 8 | (unsigned char) out.data[3];
    return code;
}

TEST(closing) {
    fixture f;
    int r = 1;
    REQUIRE(set_up(&f, (weft_limits){0}));
    weft_call_opts opts = {.on_answer = on_answer, .ctx = &r};
    CHECK_INT(weft_call_start(f.client, "nobody", weft_none(), &opts, NULL), 0);
    says(f.client);
    CHECK_INT(weft_peer_close(f.server, 4321, "enough"), 0);
    CHECK_INT(code_of(f.server), 4321);
    CHECK_INT(kit_pass(f.server, f.client, 1, 0), -ECONNRESET);
    CHECK_INT(says(f.client), CLOSE);                               /* answered in kind */
    CHECK_INT(weft_peer_feed(f.client, "\x81", 1, 0), -ECONNRESET); /* and nothing after it is looked at */
    f.client = weft_peer_free(f.client);
    CHECK_INT(r, -ECONNRESET);
    tear_down(&f);
}

TEST(codes_for_what_is_wrong) {
    static const struct {
        const char *name;
        const char *bytes;
        size_t len;
        int code;
    } rows[] = {
        {"unmasked", "\x81\x02{}", 4, 1002},
        {"reserved bit", "\xc1\x80\0\0\0\0", 6, 1002},
        {"reserved opcode", "\x83\x80\0\0\0\0", 6, 1002},
        {"long ping", "\x89\xfe\x01\x00\0\0\0\0", 8, 1002},
        {"bad UTF-8", "\x81\x81\0\0\0\0\xff", 7, 1007},
        {"forbidden close code", "\x88\x82\0\0\0\0\x03\xed", 8, 1002},
        {"too large", "\x82\xff\0\0\0\0\x7f\0\0\0\0\0\0\0", 14, 1009},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fixture f;
        test_row(rows[i].name);
        if (!set_up(&f, (weft_limits){0}))
            return;
        CHECK(weft_peer_feed(f.server, rows[i].bytes, rows[i].len, 0) < 0);
        CHECK_INT(code_of(f.server), rows[i].code);
        CHECK(weft_peer_tick(f.server, 1) < 0);
        CHECK(weft_notify(f.server, "n", weft_none()) < 0);
        tear_down(&f);
    }
    test_row(NULL);
}

/* A flood of pings without reading the pongs must end, not grow. */
TEST(pings_without_end) {
    fixture f;
    REQUIRE(set_up(&f, (weft_limits){.out_soft = 1000, .out_hard = 2000}));
    int r = 0;
    size_t most = 0;
    for (int i = 0; i < 10000 && r == 0; i++) {
        r = weft_peer_feed(f.server, "\x89\x84\0\0\0\0ping", 10, 0);
        size_t queued = weft_peer_output(f.server).len;
        most = queued > most ? queued : most;
    }
    CHECK(most <= 2010);
    tear_down(&f);
}

TEST_MAIN(CASE(ping_after_silence_then_dead) CASE(a_pong_or_anything_else_is_life) CASE(other_times_and_none)
              CASE(lines_have_no_pings) CASE(a_slow_reader_is_not_dead) CASE(closing) CASE(codes_for_what_is_wrong)
                  CASE(pings_without_end))
