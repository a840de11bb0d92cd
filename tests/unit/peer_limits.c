/* Every limit of the peer at its border: one less is taken, one more is not, and what happens then. */
#include "peer_kit.h"

static int echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

#define MAX_KEPT 8
typedef struct kept {
    weft_req *reqs[MAX_KEPT];
    size_t count, told;
} kept;

static int keep(weft_req *req, const weft_json *params, void *ctx) {
    kept *all = ctx;
    (void) params;
    all->reqs[all->count++] = req;
    return 0;
}

static void give_up(weft_req *req, int why, void *ctx) {
    kept *all = ctx;
    (void) why;
    all->told++;
    weft_fail(req, WEFT_CANCELLED, "given up", weft_none());
}

static int watch(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    weft_req_on_cancel(req, give_up, ctx);
    return 0;
}

static const weft_method methods[] = {{"echo", echo}, {"keep", keep}, {"watch", watch}, {0}};

typedef struct fixture {
    test_memory memory;
    kept all;
    weft_service *service;
    weft_peer *peer;
    int drained;
} fixture;

static void on_drain(weft_peer *peer, void *data) {
    (void) peer;
    ((fixture *) data)->drained++;
}

static bool set_up(fixture *f, weft_limits limits, const weft_framing *framing) {
    *f = (fixture){0};
    test_memory_init(&f->memory, 0);
    weft_service_opts service = {.methods = methods, .ctx = &f->all, .limits = limits, .alloc = &f->memory.alloc};
    weft_peer_opts peer = {.framing = framing, .data = f, .on_drain = on_drain};
    return CHECK_INT(weft_service_new(&service, &f->service), 0) && CHECK_INT(weft_peer_new(f->service, &peer, &f->peer), 0);
}

static void tear_down(fixture *f) {
    weft_peer_free(f->peer);
    while (f->all.count)
        weft_reply(f->all.reqs[--f->all.count], weft_null());
    weft_service_unref(f->service);
    CHECK_INT(f->memory.live, 0);
}

/* ---- output ---- */

static size_t count_lines(const char *text) {
    size_t lines = 0;
    while ((text = strchr(text, '\n')))
        lines++, text++;
    return lines;
}

TEST(soft_limit_stalls_and_resumes) {
    fixture f;
    REQUIRE(set_up(&f, (weft_limits){.out_soft = 1000, .out_hard = 100000}, &weft_ndjson));
    static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[\"0123456789\"]}\n";
    for (int i = 0; i < 100; i++)
        CHECK_INT(kit_say(f.peer, line, 0), 0);
    CHECK(weft_peer_full(f.peer));
    CHECK(weft_peer_output(f.peer).len >= 1000 && weft_peer_output(f.peer).len < 1100);

    size_t answers = 0;
    int rounds = 0;
    while (weft_peer_output(f.peer).len && rounds++ < 100) {
        char *text = kit_take(f.peer, NULL);
        answers += count_lines(text);
        free(text);
        CHECK(!weft_peer_full(f.peer));
        CHECK_INT(weft_peer_feed(f.peer, "", 0, 0), 0);
    }
    CHECK_INT(answers, 100);
    CHECK(rounds > 4);
    CHECK(f.drained >= 1); /* once input leaves room: it goes first */
    tear_down(&f);
}

/* What was kept back is not lost when the other side closes its half. */
TEST(soft_limit_meets_the_end) {
    fixture f;
    REQUIRE(set_up(&f, (weft_limits){.out_soft = 1000, .out_hard = 100000}, &weft_ndjson));
    static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[\"0123456789\"]}\n";
    for (int i = 0; i < 100; i++)
        CHECK_INT(kit_say(f.peer, line, 0), 0);
    CHECK_INT(weft_peer_feed(f.peer, line, sizeof line - 2, 0), 0); /* the last without its newline */
    CHECK(weft_peer_full(f.peer));
    weft_peer_pause(f.peer, true);
    CHECK_INT(weft_peer_eof(f.peer), 0);
    char *text = kit_take(f.peer, NULL);
    CHECK_INT(count_lines(text), 101);
    CHECK(strstr(text, "error") == NULL);
    free(text);
    tear_down(&f);
}

TEST(soft_limit_drains_at_half) {
    fixture f;
    REQUIRE(set_up(&f, (weft_limits){.out_soft = 1000}, &weft_ndjson));
    while (!weft_peer_full(f.peer))
        CHECK_INT(weft_notify(f.peer, "n", weft_none()), 0);
    size_t queued = weft_peer_output(f.peer).len;
    weft_peer_sent(f.peer, queued - 501);
    CHECK(weft_peer_full(f.peer));
    CHECK_INT(f.drained, 0);
    weft_peer_sent(f.peer, 1);
    CHECK(!weft_peer_full(f.peer));
    CHECK_INT(f.drained, 0); /* not inside this call: what came in goes first */
    CHECK_INT(weft_peer_deadline(f.peer), 0);
    CHECK_INT(weft_peer_tick(f.peer, 0), 0);
    CHECK_INT(f.drained, 1);
    CHECK(weft_peer_deadline(f.peer) > 0);
    tear_down(&f);
}

TEST(hard_limit_closes) {
    fixture f;
    REQUIRE(set_up(&f, (weft_limits){.out_soft = 1000, .out_hard = 2000}, &weft_ndjson));
    int r = 0;
    while (weft_peer_output(f.peer).len < 2000 && r >= 0)
        r = weft_notify(f.peer, "n", weft_none());
    CHECK_INT(r, 0);
    CHECK_INT(weft_peer_tick(f.peer, 1), 0);
    CHECK_INT(weft_notify(f.peer, "n", weft_none()), -ENOBUFS);
    CHECK_INT(weft_peer_tick(f.peer, 1), -ENOBUFS);
    CHECK_INT(weft_peer_deadline(f.peer), 1);
    CHECK(weft_notify(f.peer, "n", weft_none()) < 0);
    CHECK(kit_say(f.peer, "{}\n", 1) < 0);
    tear_down(&f);
}

TEST(one_answer_may_pass_the_hard_limit) {
    fixture f;
    REQUIRE(set_up(&f, (weft_limits){.out_soft = 1000, .out_hard = 2000}, &weft_ndjson));
    char text[6000];
    int n = snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[\"%05000d\"]}\n", 0);
    CHECK_INT(weft_peer_feed(f.peer, text, (size_t) n, 0), 0);
    CHECK(weft_peer_output(f.peer).len > 5000);
    CHECK(weft_peer_full(f.peer));
    weft_peer_sent(f.peer, weft_peer_output(f.peer).len);
    CHECK_INT(weft_notify(f.peer, "n", weft_none()), 0);
    tear_down(&f);
}

TEST(answer_limit) {
    fixture f;
    static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[1234567890]}\n";
    static const char answer[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[1234567890]}";
    REQUIRE(set_up(&f, (weft_limits){.max_answer = sizeof answer - 1}, &weft_ndjson));
    CHECK_INT(kit_say(f.peer, line, 0), 0);
    char *text = kit_take(f.peer, NULL);
    CHECK_TEXT(text, sizeof answer - 1, answer);
    free(text);
    tear_down(&f);
    REQUIRE(set_up(&f, (weft_limits){.max_answer = sizeof answer - 2}, &weft_ndjson));
    CHECK_INT(kit_say(f.peer, line, 0), 0);
    CHECK_SAYS(f.peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":413,\"message\":\"The answer is too large\","
                       "\"data\":{\"reason\":\"tooLarge\"}}}\n");
    tear_down(&f);
}

TEST(answer_limit_of_a_batch) {
    fixture f;
    REQUIRE(set_up(&f, (weft_limits){.max_answer = 100}, &weft_ndjson));
    CHECK_INT(kit_say(f.peer,
                      "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[1]},"
                      "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\",\"params\":[2]},"
                      "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"echo\",\"params\":[3]}]\n",
                      0),
              0);
    char *text = kit_take(f.peer, NULL);
    CHECK(strstr(text, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":[2]}") != NULL);
    CHECK(strstr(text, "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":413") != NULL);
    CHECK(text[0] == '[' && strcmp(text + strlen(text) - 2, "]\n") == 0);
    free(text);
    tear_down(&f);
}

/* ---- calls and requests ---- */

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer, (void) r, (void) answer;
    ++*(int *) ctx;
}

TEST(open_calls) {
    fixture f;
    int completed = 0;
    int64_t id;
    weft_call_opts opts = {.on_answer = on_answer, .ctx = &completed};
    REQUIRE(set_up(&f, (weft_limits){.max_calls = 3}, &weft_ndjson));
    for (int i = 0; i < 3; i++)
        CHECK_INT(weft_call_start(f.peer, "m", weft_none(), &opts, &id), 0);
    size_t queued = weft_peer_output(f.peer).len;
    CHECK_INT(weft_call_start(f.peer, "m", weft_none(), &opts, &id), -ENOBUFS);
    CHECK_INT(weft_peer_output(f.peer).len, queued);
    CHECK_INT(weft_peer_open_calls(f.peer), 3);
    CHECK_INT(kit_say(f.peer, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1}\n", 0), 0);
    CHECK_INT(completed, 1);
    CHECK_INT(weft_call_start(f.peer, "m", weft_none(), &opts, &id), 0);
    CHECK_INT(weft_call_start(f.peer, "m", weft_none(), &opts, &id), -ENOBUFS);
    f.peer = weft_peer_free(f.peer);
    CHECK_INT(completed, 4);
    tear_down(&f);
}

TEST(open_requests) {
    fixture f;
    REQUIRE(set_up(&f, (weft_limits){.max_requests = 2}, &weft_ndjson));
    for (int i = 1; i <= 3; i++)
        CHECK_INT(kit_say(f.peer, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"keep\"}\n", 0), 0);
    CHECK_INT(weft_peer_open_requests(f.peer), 2);
    CHECK_SAYS(f.peer,
               "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":429,\"message\":\"Too many requests are waiting for an "
               "answer\"}}\n");
    CHECK_INT(weft_reply(f.all.reqs[2], weft_null()), 0); /* its answer has been given */
    CHECK_INT(weft_peer_output(f.peer).len, 0);
    CHECK_INT(weft_reply(f.all.reqs[1], weft_null()), 0);
    f.all.count = 1;
    free(kit_take(f.peer, NULL));
    CHECK_INT(kit_say(f.peer, "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"keep\"}\n", 0), 0);
    CHECK_INT(weft_peer_open_requests(f.peer), 2);
    tear_down(&f);
}

/* Who asked to hear that an answer is not wanted must hear it here too, or would keep the request for ever. */
TEST(open_requests_tells_the_handler) {
    fixture f;
    REQUIRE(set_up(&f, (weft_limits){.max_requests = 1}, &weft_ndjson));
    for (int i = 1; i <= 2; i++)
        CHECK_INT(kit_say(f.peer, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"watch\"}\n", 0), 0);
    CHECK_INT(f.all.told, 1);
    CHECK_INT(weft_peer_open_requests(f.peer), 1);
    f.peer = weft_peer_free(f.peer);
    CHECK_INT(f.all.told, 2);
    tear_down(&f);
}

/* ---- input ---- */

TEST(batch_items) {
    fixture f;
    static const char *const batches[] = {
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"},{\"jsonrpc\":\"2.0\",\"method\":\"echo\"},{}]\n",
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"},{\"jsonrpc\":\"2.0\",\"method\":\"echo\"},{},{}]\n",
    };
    REQUIRE(set_up(&f, (weft_limits){.max_batch = 3}, &weft_ndjson));
    CHECK_INT(kit_say(f.peer, batches[0], 0), 0);
    char *text = kit_take(f.peer, NULL);
    CHECK(strstr(text, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}") == text);
    free(text);
    CHECK_INT(kit_say(f.peer, batches[1], 0), 0);
    text = kit_take(f.peer, NULL);
    CHECK(strstr(text, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600") == text);
    CHECK(strstr(text, "tooLarge") != NULL);
    free(text);
    tear_down(&f);
}

/* One body of this size to a peer of this framing, as a client of that framing would send it. */
static int send_body(weft_peer *client, weft_peer *server, size_t size, size_t piece) {
    static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[\"";
    char *body = malloc(size);
    memset(body, 'x', size);
    memcpy(body, head, sizeof head - 1);
    memcpy(body + size - 3, "\"]}", 3);
    weft_peer_send_raw(client, (weft_bytes){body, size}, false);
    free(body);
    return kit_pass(client, server, piece, 0);
}

static size_t answered; /* by what the client heard */
static bool heard_error;
static bool listen_raw(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    (void) peer, (void) binary, (void) data;
    answered++;
    heard_error = memmem(body.data, body.len, "tooLarge", 8) != NULL;
    return true;
}

static void body_limit(const kit_framing *framing, bool known, size_t piece) {
    weft_service *service;
    weft_peer *server, *client;
    weft_identity who = {"tcp", "", "", "", "", -1, -1, known};
    weft_limits limits = {.max_body = 3000, .max_body_stranger = 300};
    size_t limit = known ? 3000 : 300;
    answered = 0;
    if (!CHECK_INT(weft_service_new(&(weft_service_opts){.methods = methods, .limits = limits}, &service), 0))
        return;
    weft_peer_new(service, &(weft_peer_opts){.framing = framing->server, .deflate = framing->deflate, .identity = &who},
                  &server);
    weft_peer_new(NULL, &(weft_peer_opts){.framing = framing->client, .deflate = framing->deflate, .on_raw = listen_raw},
                  &client);
    CHECK_INT(send_body(client, server, limit, piece), 0);
    CHECK_INT(kit_pass(server, client, piece, 0), 0);
    CHECK(answered == 1 && !heard_error);
    int r = send_body(client, server, limit + 1, piece);
    if (framing->server == &weft_websocket) {
        CHECK_INT(r, -EMSGSIZE);
        size_t len;
        char *out = kit_take(server, &len);
        CHECK(len >= 4 && (unsigned char) out[0] == 0x88 && (unsigned char) out[2] == 1009 >> 8 &&
              (unsigned char) out[3] == (1009 & 255));
        free(out);
    } else {
        CHECK_INT(r, 0);
        kit_pass(server, client, piece, 0);
        CHECK(answered == 2 && heard_error);
        CHECK_INT(send_body(client, server, 100, piece), 0);
        kit_pass(server, client, piece, 0);
        CHECK(answered == 3 && !heard_error);
    }
    weft_peer_free(server);
    weft_peer_free(client);
    weft_service_unref(service);
}

TEST(body_size) {
    static const size_t pieces[] = {1, 7, SIZE_MAX / 2};
    for (size_t i = 0; i < KIT_FRAMINGS; i++)
        for (int known = 0; known <= 1; known++)
            for (size_t p = 0; p < 3; p++) {
                char row[100];
                snprintf(row, sizeof row, "%s, %s, pieces of %zu", kit_framings[i].name, known ? "known" : "stranger",
                         pieces[p]);
                test_row(row);
                body_limit(&kit_framings[i], known, pieces[p]);
            }
    test_row(NULL);
}

TEST(becoming_known_raises_the_limit) {
    fixture f;
    char line[600];
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[%0400d]}\n", 0);
    memset(strchr(line, '['), ' ', 401);
    *strchr(line, ']') = '[';
    strcpy(strchr(line, '['), "[]}\n");
    REQUIRE(set_up(&f, (weft_limits){.max_body = 3000, .max_body_stranger = 300}, &weft_ndjson));
    CHECK_INT(kit_say(f.peer, line, 0), 0);
    char *text = kit_take(f.peer, NULL);
    CHECK(strstr(text, "tooLarge") != NULL);
    free(text);
    weft_identity who = {"tcp", "", "me", "*", "", -1, -1, true};
    CHECK_INT(weft_peer_set_identity(f.peer, &who), 0);
    CHECK_INT(kit_say(f.peer, line, 0), 0);
    CHECK_SAYS(f.peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[]}\n");
    tear_down(&f);
}

/* ---- time ---- */

TEST(a_timeout_beyond_all_time) {
    fixture f;
    int completed = 0;
    weft_call_opts opts = {.on_answer = on_answer, .ctx = &completed, .timeout_ms = INT64_MAX};
    REQUIRE(set_up(&f, (weft_limits){0}, &weft_ndjson));
    CHECK_INT(weft_peer_tick(f.peer, 1000), 0);
    CHECK_INT(weft_call_start(f.peer, "m", weft_none(), &opts, NULL), 0);
    CHECK_INT(weft_peer_tick(f.peer, INT64_MAX / 2), 0);
    CHECK_INT(completed, 0);
    tear_down(&f);
}

/* ---- the rate of a client ---- */

/* How many of three requests on a new connection are answered; two a minute are allowed. */
static int served_on_a_new_connection(weft_service *service, const char *name, const char *address, int64_t now) {
    weft_identity who = {"tcp", "", name, *name ? "*" : "", address, -1, -1, *name != '\0'};
    weft_peer *peer;
    int served = 0;
    if (!CHECK_INT(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &who}, &peer), 0))
        return -1;
    for (int i = 0; i < 3; i++) {
        CHECK_INT(kit_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n", now), 0);
        char *answer = kit_take(peer, NULL);
        served += strstr(answer, "\"result\"") != NULL;
        free(answer);
    }
    weft_peer_free(peer);
    return served;
}

TEST(the_rate_is_the_clients_not_the_connections) {
    static const struct {
        const char *about, *name, *address;
        int64_t now;
        int served;
    } rows[] = {
        {"nobody in particular", "", "192.0.2.1", 1000000, 2},
        {"comes again", "", "192.0.2.1", 1000000, 0},
        {"comes again through an IPv6 socket", "", "::ffff:192.0.2.1", 1000000, 0},
        {"another address", "", "192.0.2.2", 1000000, 2},
        {"an IPv6 address", "", "2001:db8:0:1::5", 1000000, 2},
        {"its neighbour in the same 64 bits", "", "2001:db8:0:1:ffff::6", 1000000, 0},
        {"the next 64 bits", "", "2001:db8:0:2::5", 1000000, 2},
        {"a token behind an address that is used up", "ann", "192.0.2.1", 1000000, 2},
        {"the same token from elsewhere", "ann", "192.0.2.9", 1000000, 0},
        {"a token named like an address", "192.0.2.3", "192.0.2.9", 1000000, 2},
        {"that address", "", "192.0.2.3", 1000000, 2},
        {"half a minute later", "", "192.0.2.1", 1030000, 1},
        {"a minute later", "ann", "192.0.2.9", 1090000, 2},
    };
    fixture f;
    if (!set_up(&f, (weft_limits){.rate_per_minute = 2}, &weft_ndjson))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].about);
        CHECK_INT(served_on_a_new_connection(f.service, rows[i].name, rows[i].address, rows[i].now), rows[i].served);
    }
    test_row(NULL);
    tear_down(&f);
}

/* More addresses than are counted one by one: the rest share, and nobody who was counted is forgotten. */
TEST(the_rate_of_very_many_addresses) {
    fixture f;
    char address[32];
    if (!set_up(&f, (weft_limits){.rate_per_minute = 2}, &weft_ndjson))
        return;
    for (int i = 0; i < 16384; i++) {
        weft_identity who = {"tcp", "", "", "", address, -1, -1, false};
        weft_peer *peer;
        snprintf(address, sizeof address, "10.%d.%d.1", i / 256, i % 256);
        if (!CHECK_INT(weft_peer_new(f.service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &who}, &peer), 0))
            break;
        CHECK_INT(kit_say(peer, "{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}\n", 1000), 0);
        weft_peer_free(peer);
    }
    CHECK_INT(served_on_a_new_connection(f.service, "", "11.0.0.1", 1000), 2);
    CHECK_INT(served_on_a_new_connection(f.service, "", "11.0.0.2", 1000), 0);
    CHECK_INT(served_on_a_new_connection(f.service, "", "10.0.0.1", 1000), 1);
    tear_down(&f);
}

/* How many of five are answered. */
static int served_of(weft_service *service, const char *scopes, const char *method) {
    weft_identity who = {"tcp", "", "box", scopes, "192.0.2.1", -1, -1, true};
    weft_peer *peer;
    char request[96];
    int served = 0;
    if (!CHECK_INT(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &who}, &peer), 0))
        return -1;
    snprintf(request, sizeof request, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"}\n", method);
    for (int i = 0; i < 5; i++) {
        CHECK_INT(kit_say(peer, request, 1000000), 0);
        char *answer = kit_take(peer, NULL);
        served += strstr(answer, "\"result\"") != NULL;
        free(answer);
    }
    weft_peer_free(peer);
    return served;
}

static int say_nothing(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, weft_null());
}

TEST(what_is_not_counted) {
    static const weft_method rows[] = {{.name = "tell", .handler = say_nothing, .scope = "box", .flags = WEFT_ROW_UNCOUNTED},
                                       {.name = "ask", .handler = say_nothing, .scope = "box"},
                                       {0}};
    weft_service *service;
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = rows, .limits.rate_per_minute = 2}, &service) >= 0);
    CHECK_INT(served_of(service, "box", "tell"), 5);
    CHECK_INT(served_of(service, "other", "tell"), 0); /* who may not is counted */
    CHECK_INT(weft_service_stats(service)->rate_limited, 3);
    CHECK_INT(served_of(service, "box", "tell"), 5);
    CHECK_INT(served_of(service, "box", "ask"), 0);
    weft_service_unref(service);
}

TEST_MAIN(CASE(soft_limit_stalls_and_resumes) CASE(soft_limit_meets_the_end) CASE(soft_limit_drains_at_half)
              CASE(hard_limit_closes) CASE(one_answer_may_pass_the_hard_limit) CASE(answer_limit)
                  CASE(answer_limit_of_a_batch) CASE(open_calls) CASE(open_requests) CASE(open_requests_tells_the_handler)
                      CASE(batch_items) CASE(body_size) CASE(becoming_known_raises_the_limit) CASE(a_timeout_beyond_all_time)
                          CASE(the_rate_is_the_clients_not_the_connections) CASE(the_rate_of_very_many_addresses)
                              CASE(what_is_not_counted))
