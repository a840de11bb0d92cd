/* gzip with headers, between two peers and over real connections: only who has shown that it reads gzip gets it, only large
 * messages are packed, and what comes is limited while it is unpacked. */
#include "peer_kit.h"

#include "buf.h"
#include "frame.h"
#include "gzip.h"
#include "http_client.h"

#define MAX_BODY 100000

static int answer_echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}
static const weft_method methods[] = {{"echo", answer_echo}, {0}};

typedef struct pair {
    test_memory memory;
    weft_service *service;
    weft_peer *server, *client;
    int r;
    size_t answered;
    char seen[64];
} pair;

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    pair *p = ctx;
    (void) peer;
    p->r = r < 0 ? r : answer->error ? answer->error->code : 0;
    p->answered++;
}

static int open_pair(pair *p, bool gzip, long fail_at) {
    *p = (pair){0};
    test_memory_init(&p->memory, fail_at);
    weft_identity who = {.transport = "tcp", .name = "ann", .scopes = "*", .authenticated = true};
    weft_service_opts opts = {.methods = methods, .alloc = &p->memory.alloc, .limits.max_body = MAX_BODY};
    int r = weft_service_new(&opts, &p->service);
    if (r >= 0)
        r = weft_peer_new(p->service, &(weft_peer_opts){.framing = &weft_detect, .identity = &who}, &p->server);
    if (r >= 0)
        r = weft_peer_new(p->service, &(weft_peer_opts){.framing = &weft_content_length, .identity = &who, .gzip = gzip},
                          &p->client);
    return r;
}

static void close_pair(pair *p) {
    weft_peer_free(p->client);
    weft_peer_free(p->server);
    weft_service_unref(p->service);
    CHECK_INT(p->memory.live, 0);
}

static bool has(weft_bytes bytes, const char *part) {
    return bytes.len && memmem(bytes.data, bytes.len, part, strlen(part));
}

static char *much_text(size_t len) {
    char *text = malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        text[i] = "the same words again and again "[i % 31];
    text[len] = '\0';
    return text;
}

/* Call with a text of this length. Was the request packed, the answer? */
static int call_and_look(pair *p, size_t len, size_t piece, bool *ret_asked, bool *ret_answered) {
    char *text = much_text(len);
    weft_call_opts opts = {.on_answer = on_answer, .ctx = p};
    p->answered = 0;
    int r = weft_call_start(p->client, "echo", WEFT_OBJ({"text", weft_str(text)}), &opts, NULL);
    free(text);
    if (r < 0)
        return r;
    *ret_asked = has(weft_peer_output(p->client), "Content-Encoding: gzip\r\n");
    r = kit_pass(p->client, p->server, piece, 1);
    *ret_answered = has(weft_peer_output(p->server), "Content-Encoding: gzip\r\n");
    return r < 0 ? r : kit_pass(p->server, p->client, piece, 1);
}

TEST(both_learn_of_it) {
    static const size_t pieces[] = {1, 7, 1 << 20};
    for (size_t i = 0; i < 3; i++) {
        pair p;
        bool asked, answered;
        REQUIRE(open_pair(&p, true, 0) >= 0);
        /* The first request says that the client reads gzip, the first answer that the server does. */
        CHECK(call_and_look(&p, 5000, pieces[i], &asked, &answered) >= 0);
        CHECK(!asked && answered);
        CHECK(p.answered == 1 && p.r == 0);
        CHECK(call_and_look(&p, 5000, pieces[i], &asked, &answered) >= 0);
        CHECK(asked && answered);
        CHECK(p.answered == 1 && p.r == 0);
        CHECK(call_and_look(&p, 100, pieces[i], &asked, &answered) >= 0); /* not worth it */
        CHECK(!asked && !answered);
        CHECK(p.answered == 1 && p.r == 0);
        close_pair(&p);
    }
}

TEST(it_is_said_once) {
    pair p;
    bool asked, answered;
    REQUIRE(open_pair(&p, true, 0) >= 0);
    weft_call_opts opts = {.on_answer = on_answer, .ctx = &p};
    REQUIRE(weft_call_start(p.client, "echo", weft_none(), &opts, NULL) >= 0);
    CHECK(has(weft_peer_output(p.client), "Accept-Encoding: gzip\r\n"));
    CHECK_INT(memcmp(weft_peer_output(p.client).data, "Content-Length: ", 16), 0); /* or nobody would know what this is */
    kit_pass(p.client, p.server, 1, 1);
    CHECK(has(weft_peer_output(p.server), "Accept-Encoding: gzip\r\n"));
    kit_pass(p.server, p.client, 1, 1);
    REQUIRE(weft_call_start(p.client, "echo", weft_none(), &opts, NULL) >= 0);
    CHECK(!has(weft_peer_output(p.client), "Accept-Encoding"));
    kit_pass(p.client, p.server, 1, 1);
    CHECK(!has(weft_peer_output(p.server), "Accept-Encoding"));
    kit_pass(p.server, p.client, 1, 1);
    CHECK(call_and_look(&p, 3000, 1, &asked, &answered) >= 0);
    CHECK(asked && answered);
    close_pair(&p);
}

/* Who never showed it gets everything as it always was. */
TEST(plain_stays_plain) {
    pair p;
    bool asked, answered;
    REQUIRE(open_pair(&p, false, 0) >= 0);
    for (int i = 0; i < 3; i++) {
        CHECK(call_and_look(&p, 20000, 4096, &asked, &answered) >= 0);
        CHECK(!asked && !answered);
        CHECK(!has(weft_peer_output(p.server), "Encoding"));
        CHECK(p.answered == 1 && p.r == 0);
    }
    kit_say(p.server, "Content-Length: 2\r\nAccept-Encoding: gzip;q=0\r\n\r\n{}", 1);
    CHECK(!has(weft_peer_output(p.server), "Accept-Encoding"));
    close_pair(&p);
}

/* One notification for many: each gets what it reads. */
TEST(shared_ones) {
    pair p, q;
    bool asked, answered;
    weft_shared *shared = NULL;
    REQUIRE(open_pair(&p, true, 0) >= 0);
    REQUIRE(open_pair(&q, false, 0) >= 0);
    weft_peer *plain = NULL;
    REQUIRE(weft_peer_new(p.service, &(weft_peer_opts){.framing = &weft_content_length}, &plain) >= 0);
    CHECK(call_and_look(&p, 2000, 4096, &asked, &answered) >= 0);
    char *text = much_text(4000);
    REQUIRE(weft_shared_new(p.service, "told", WEFT_OBJ({"text", weft_str(text)}), &shared) >= 0);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(weft_shared_send(shared, p.server), 0);
        CHECK_INT(weft_shared_send(shared, plain), 0);
        CHECK(has(weft_peer_output(p.server), "Content-Encoding: gzip"));
        CHECK(!has(weft_peer_output(plain), "Content-Encoding"));
        CHECK(has(weft_peer_output(plain), text));
        weft_peer_sent(p.server, weft_peer_output(p.server).len);
        weft_peer_sent(plain, weft_peer_output(plain).len);
    }
    free(text);
    weft_shared_free(shared);
    weft_peer_free(plain);
    close_pair(&p);
    close_pair(&q);
}

/* ---- what others send ---- */

static void feed_packed(pair *p, const char *packed, size_t len) {
    char head[80];
    int n = snprintf(head, sizeof head, "Content-Length: %zu\r\nContent-Encoding: gzip\r\n\r\n", len);
    CHECK(weft_peer_feed(p->server, head, (size_t) n, 1) >= 0);
    CHECK(weft_peer_feed(p->server, packed, len, 1) >= 0);
}

static bool says_reason(pair *p, const char *reason) {
    char *said = kit_take(p->server, NULL);
    bool found = strstr(said, reason) != NULL;
    if (!found)
        printf("said: %s\n", said);
    free(said);
    return found;
}

static void still_works(pair *p) {
    kit_say(p->server, "Content-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}", 1);
    CHECK(says_reason(p, "\"id\":1,\"result\":null"));
}

/* A hundred megabytes in a hundred kilobytes: stopped when the limit is reached, and the connection lives. */
TEST(a_bomb) {
    pair p;
    weft_gzip *gzip = NULL;
    weft_buf packed = {0};
    size_t large = (size_t) 50 << 20;
    char *zeroes = calloc(1, large);
    REQUIRE(open_pair(&p, false, 0) >= 0);
    REQUIRE(weft__gzip_new(NULL, &gzip) >= 0);
    REQUIRE(weft__gzip_pack(gzip, zeroes, large, &packed) >= 0);
    /* Longer than the limit as it comes: it is not even collected. */
    CHECK(weft__buf_len(&packed) > MAX_BODY);
    feed_packed(&p, weft__buf_head(&packed), weft__buf_len(&packed));
    CHECK(says_reason(&p, "tooLarge"));
    /* Small enough to come, and large inside. */
    packed.end = packed.start;
    REQUIRE(weft__gzip_pack(gzip, zeroes, large / 4, &packed) >= 0);
    CHECK(weft__buf_len(&packed) < MAX_BODY);
    feed_packed(&p, weft__buf_head(&packed), weft__buf_len(&packed));
    CHECK(says_reason(&p, "tooLarge"));
    still_works(&p);
    CHECK_INT(weft_service_stats(p.service)->too_large, 2);
    free(zeroes);
    weft__buf_done(&packed, NULL);
    weft__gzip_free(gzip);
    close_pair(&p);
}

/* At the border: as many bytes as are allowed, and one more. */
TEST(exactly_the_limit) {
    pair p;
    weft_gzip *gzip = NULL;
    char *body = malloc(MAX_BODY + 2);
    REQUIRE(open_pair(&p, false, 0) >= 0);
    REQUIRE(weft__gzip_new(NULL, &gzip) >= 0);
    for (size_t extra = 0; extra < 2; extra++) {
        weft_buf packed = {0};
        memset(body, ' ', MAX_BODY + 1);
        memcpy(body, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"echo\"}", 40);
        REQUIRE(weft__gzip_pack(gzip, body, MAX_BODY + extra, &packed) >= 0);
        feed_packed(&p, weft__buf_head(&packed), weft__buf_len(&packed));
        CHECK(says_reason(&p, extra ? "tooLarge" : "\"id\":7"));
        weft__buf_done(&packed, NULL);
    }
    free(body);
    weft__gzip_free(gzip);
    close_pair(&p);
}

TEST(what_is_no_gzip) {
    pair p;
    weft_gzip *gzip = NULL;
    weft_buf packed = {0};
    REQUIRE(open_pair(&p, false, 0) >= 0);
    REQUIRE(weft__gzip_new(NULL, &gzip) >= 0);
    REQUIRE(weft__gzip_pack(gzip, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"echo\"}", 40, &packed) >= 0);
    feed_packed(&p, "{\"jsonrpc\":\"2.0\"}", 17);
    CHECK(says_reason(&p, "is not gzip"));
    feed_packed(&p, "", 0);
    CHECK(says_reason(&p, "is not gzip"));
    feed_packed(&p, weft__buf_head(&packed), weft__buf_len(&packed) - 1); /* cut off */
    CHECK(says_reason(&p, "is not gzip"));
    REQUIRE(weft__buf_put(&packed, NULL, "x", 1) >= 0); /* something behind it */
    feed_packed(&p, weft__buf_head(&packed), weft__buf_len(&packed));
    CHECK(says_reason(&p, "is not gzip"));
    packed.data[packed.end - 6] ^= 1; /* its checksum */
    feed_packed(&p, weft__buf_head(&packed), weft__buf_len(&packed) - 1);
    CHECK(says_reason(&p, "is not gzip"));
    still_works(&p);
    kit_say(p.server, "Content-Length: 2\r\nContent-Encoding: br\r\n\r\n{}", 1);
    CHECK(says_reason(&p, "no Content-Encoding but gzip and identity is understood"));
    still_works(&p);
    weft__buf_done(&packed, NULL);
    weft__gzip_free(gzip);
    close_pair(&p);
}

/* Each allocation fails once: an error or a close, and what cannot be packed goes out as it is. */
TEST(without_memory) {
    for (long at = 1;; at++) {
        pair p;
        bool asked, answered, fine = false;
        int r = open_pair(&p, true, at);
        for (int i = 0; r >= 0 && i < 3; i++) {
            r = call_and_look(&p, 5000, 4096, &asked, &answered);
            fine = r >= 0 && p.answered == 1 && p.r == 0;
        }
        bool over = p.memory.count < at;
        close_pair(&p);
        if (over) {
            CHECK(fine);
            break;
        }
    }
}

/* ---- what a server answers to an HTTP client ---- */

/* An answer with this body, said to be gzip. What comes out: "<too large>", an error, or the body. */
static void answer_packed(const char *more, weft_bytes body, size_t max, char *ret, size_t size) {
    static const weft_http_client_opts nobody = {.host = "a", .path = "/"};
    const weft_framing *framing = &weft__http_client;
    weft_gzip *gzip = NULL;
    char head[200];
    CHECK(weft__gzip_new(NULL, &gzip) >= 0);
    void *state = calloc(1, framing->state_size);
    CHECK(framing->init(state, &(weft_framing_opts){.gzip = gzip, .extra = &nobody}) >= 0);
    int n = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n%sContent-Length: %zu\r\n\r\n", more,
                     body.len);
    char *in = calloc(1, (size_t) n + body.len + WEFT_SLACK);
    memcpy(in, head, (size_t) n);
    memcpy(in + n, body.data, body.len);
    weft_frame frame = {0};
    size_t used = 0;
    int r = framing->decode(state, in, (size_t) n + body.len, max, &used, &frame);
    if (r == 1 && frame.kind == WEFT_FRAME_BODY)
        snprintf(ret, size, "%.*s", (int) frame.len, frame.body);
    else
        snprintf(ret, size, "%s", r == 1 ? "<too large>" : weft_strerror(r));
    CHECK(r < 0 || used == (size_t) n + body.len);
    free(in);
    framing->done(state);
    free(state);
    weft__gzip_free(gzip);
}

TEST(packed_answers) {
    weft_gzip *gzip = NULL;
    weft_buf packed = {0};
    char said[100];
    char *large = calloc(1, 1 << 20);
    REQUIRE(weft__gzip_new(NULL, &gzip) >= 0);
    REQUIRE(weft__gzip_pack(gzip, "{\"jsonrpc\":\"2.0\"}", 17, &packed) >= 0);
    weft_bytes small = {weft__buf_head(&packed), weft__buf_len(&packed)};
    answer_packed("", small, 1000, said, sizeof said);
    CHECK_TEXT(said, strlen(said), "{\"jsonrpc\":\"2.0\"}");
    answer_packed("", (weft_bytes){small.data, small.len - 1}, 1000, said, sizeof said); /* cut off */
    CHECK_TEXT(said, strlen(said), weft_strerror(-EPROTO));
    answer_packed("Content-Type: text/event-stream\r\n", small, 1000, said, sizeof said);
    CHECK_TEXT(said, strlen(said), weft_strerror(-EPROTO));
    packed.end = packed.start;
    REQUIRE(weft__gzip_pack(gzip, large, 1 << 20, &packed) >= 0); /* a bomb: a thousand times its size */
    answer_packed("", (weft_bytes){weft__buf_head(&packed), weft__buf_len(&packed)}, 5000, said, sizeof said);
    CHECK_TEXT(said, strlen(said), "<too large>");
    free(large);
    weft__buf_done(&packed, NULL);
    weft__gzip_free(gzip);
}

/* ---- over real connections ---- */

typedef struct counted {
    int answered, failed;
} counted;

static void on_counted(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    counted *count = ctx;
    (void) peer;
    count->answered++;
    count->failed += r < 0 || answer->error;
}

/* How many bytes three large calls take, in and out at the server. */
static uint64_t bytes_of_calls(const char *url, const weft_framing *framing, bool gzip, uint64_t *ret_out) {
    weft_loop *loop = NULL;
    weft_server *server = NULL;
    weft_service *service = NULL;
    weft_peer *client = NULL;
    counted count = {0};
    char *text = much_text(50000);
    CHECK(weft_service_new(&(weft_service_opts){.methods = methods}, &service) >= 0);
    CHECK(weft_loop_new(NULL, &loop) >= 0);
    CHECK(weft_server_new(loop, &(weft_server_opts){.service = service}, &server) >= 0);
    CHECK(weft_server_listen(server, url, NULL) >= 0);
    weft_service *own = NULL; /* its counters are the client's */
    CHECK(weft_service_new(NULL, &own) >= 0);
    weft_connect_opts opts = {.service = own, .gzip = gzip, .framing = framing};
    CHECK(weft_connect_on(loop, weft_server_url(server, 0), &opts, &client, NULL) >= 0);
    for (int i = 0; i < 3; i++) {
        weft_call_opts call = {.on_answer = on_counted, .ctx = &count};
        CHECK(weft_call_start(client, "echo", WEFT_OBJ({"text", weft_str(text)}), &call, NULL) >= 0);
        while (count.answered <= i)
            weft_loop_once(loop, true);
    }
    CHECK_INT(count.failed, 0);
    uint64_t in = weft_service_stats(own)->bytes_in, out = weft_service_stats(own)->bytes_out;
    weft_peer_free(client);
    weft_server_free(server);
    while (weft_loop_once(loop, false) > 0)
        continue;
    weft_loop_free(loop);
    weft_service_unref(service);
    weft_service_unref(own);
    free(text);
    *ret_out = out;
    return in;
}

TEST(over_connections) {
    static const struct {
        const char *name, *url;
        const weft_framing *framing;
    } rows[] = {
        {"unix", "unix:build/tests/gzip-test.sock", &weft_content_length},
        {"tcp", "tcp://127.0.0.1:0", &weft_content_length},
        {"http", "http://127.0.0.1:0/rpc", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t out;
        test_row(rows[i].name);
        uint64_t in = bytes_of_calls(rows[i].url, rows[i].framing, false, &out);
        CHECK(in > 150000 && out > 150000);
        in = bytes_of_calls(rows[i].url, rows[i].framing, true, &out);
        CHECK(in < 10000);                 /* the server knows from the first request on */
        CHECK(out > 50000 && out < 60000); /* the client from the first answer on */
        /* Lines have no headers: they are what they are. */
        if (rows[i].framing) {
            in = bytes_of_calls(rows[i].url, &weft_ndjson, true, &out);
            CHECK(in > 150000 && out > 150000);
        }
    }
    test_row(NULL);
}

TEST_MAIN(CASE(both_learn_of_it) CASE(it_is_said_once) CASE(plain_stays_plain) CASE(shared_ones) CASE(a_bomb)
              CASE(exactly_the_limit) CASE(what_is_no_gzip) CASE(without_memory) CASE(packed_answers) CASE(over_connections))
