/* WebSocket framing beyond what Autobahn asks: lengths and masks that are not allowed, limits, what is zero-copy, encoding
 * with wrong hints, closing from our side, hostile streams, failing memory, and conversations between our own two sides. */
#include "websocket_kit.h"

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

/* ---- heads ---- */

typedef struct raw {
    const char *name;
    const char *data;
    size_t len;
    bool client; /* who reads it */
    size_t max;
    int r;
    size_t need; /* if r == 0 */
    int code;    /* if r < 0 */
} raw;

#define RAW(name, text, ...)                                                                                                \
    { name, text, sizeof(text) - 1, __VA_ARGS__ }
#define MAX 70000

TEST(heads) {
    static const raw rows[] = {
        RAW("nothing", "", false, MAX, 0, 0, 0),
        RAW("one byte", "\x81", false, MAX, 0, 0, 0),
        RAW("half a mask", "\x81\x82xx", false, MAX, 0, 0, 0),
        RAW("half a length", "\x81\xfe\x01", false, MAX, 0, 0, 0),
        RAW("known length", "\x81\x85mask", false, MAX, 0, 11, 0),
        RAW("known length, 16 bits", "\x81\xfe\x01\x00mask", false, MAX, 0, 264, 0),
        RAW("known length, 64 bits", "\x81\xff\x00\x00\x00\x00\x00\x01\x00\x00mask", false, MAX, 0, 14 + 65536, 0),
        RAW("known length, to the client", "\x81\x05", true, MAX, 0, 7, 0),
        RAW("known length of a ping", "\x89\x85maskab", false, MAX, 0, 11, 0),
        RAW("not masked, to the server", "\x81\x00", false, MAX, -EPROTO, 0, 1002),
        RAW("masked, to the client", "\x81\x80mask", true, MAX, -EPROTO, 0, 1002),
        RAW("a ping that is not masked, to the server", "\x89\x00", false, MAX, -EPROTO, 0, 1002),
        RAW("a ping that is masked, to the client", "\x89\x80mask", true, MAX, -EPROTO, 0, 1002),
        RAW("125 in 16 bits", "\x81\xfe\x00\x7d", false, MAX, -EPROTO, 0, 1002),
        RAW("0 in 16 bits", "\x82\x7e\x00\x00", true, MAX, -EPROTO, 0, 1002),
        RAW("126 in 16 bits", "\x82\x7e\x00\x7e", true, MAX, 0, 130, 0),
        RAW("65535 in 64 bits", "\x81\xff\x00\x00\x00\x00\x00\x00\xff\xff", false, MAX, -EPROTO, 0, 1002),
        RAW("5 in 64 bits", "\x81\x7f\x00\x00\x00\x00\x00\x00\x00\x05", true, MAX, -EPROTO, 0, 1002),
        RAW("the highest bit", "\x81\xff\x80\x00\x00\x00\x00\x01\x00\x00", false, SIZE_MAX, -EPROTO, 0, 1002),
        RAW("all bits", "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff", false, SIZE_MAX, -EPROTO, 0, 1002),
        RAW("the largest length there is", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff", false, MAX, -EMSGSIZE, 0, 1009),
        RAW("one over the limit", "\x82\x7f\x00\x00\x00\x00\x00\x01\x11\x71", true, MAX, -EMSGSIZE, 0, 1009),
        RAW("at the limit", "\x82\x7f\x00\x00\x00\x00\x00\x01\x11\x70", true, MAX, 0, 10 + MAX, 0),
        RAW("a small one over a small limit", "\x81\x06", true, 5, -EMSGSIZE, 0, 1009),
        RAW("a whole one over a small limit", "\x81\x06hello!", true, 5, -EMSGSIZE, 0, 1009),
        RAW("fragments over a small limit", "\x01\x03hey\x00\x02xx\x80\x01", true, 5, -EMSGSIZE, 0, 1009),
        RAW("a ping is not a message", "\x89\x05hey", true, 2, 0, 7, 0),
        RAW("a long ping, before its length", "\x89\x7e", true, MAX, -EPROTO, 0, 1002),
        RAW("the sum of two fragments must not wrap", "\x02\x01x\x80\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", true, MAX,
            -EMSGSIZE, 0, 1009),
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t chop = 0; chop < 3; chop++) {
            kit k;
            weft_frame frame = {.len = 77};
            size_t used = 0;
            test_row(rows[i].name);
            kit_init(&k, rows[i].client, &(weft_framing_opts){0});
            k.max_body = rows[i].max;
            k.moving = true;
            kit_play(&k, rows[i].data, rows[i].len, chop);
            CHECK_INT(k.broken, rows[i].r);
            CHECK_INT(k.frames, 0);
            if (rows[i].r < 0) {
                char close[2] = {(char) (rows[i].code >> 8), (char) rows[i].code};
                kit_expect(&k, &(kit_frame){0x88, close, 2}, 1);
            } else {
                CHECK_INT(k.framing->decode(&k.ws, kit_head(&k.in), weft__buf_len(&k.in), MAX, &used, &frame), 0);
                CHECK_INT(frame.len, rows[i].need);
            }
            kit_done(&k);
        }
    }
    test_row(NULL);
}

TEST(what_broke_stays_broken) {
    kit k;
    weft_frame frame;
    size_t used;
    char bad[] = "\x83\x80mask", good[] = "\x81\x80mask";
    kit_init(&k, false, &(weft_framing_opts){0});
    CHECK_INT(k.framing->decode(&k.ws, bad, 6, MAX, &used, &frame), -EPROTO);
    CHECK_INT(k.framing->decode(&k.ws, good, 6, MAX, &used, &frame), -EPROTO);
    kit_done(&k);
}

/* ---- bodies ---- */

TEST(a_whole_frame_is_handed_out_where_it_lies) {
    test_memory memory;
    kit k;
    kit_wire wire = {.random = 1, .masked = true};
    weft_frame frame;
    size_t used;
    test_memory_init(&memory, 1);
    kit_init(&k, false, &(weft_framing_opts){.alloc = &memory.alloc});
    kit_put(&wire, &(kit_frame) TEXT("in place"));
    kit_put(&wire, &(kit_frame) BINARY(""));
    kit_put(&wire, &(kit_frame) PING("me"));
    char *in = wire.bytes.data;
    size_t n = wire.bytes.end;

    REQUIRE(k.framing->decode(&k.ws, in, n, MAX, &used, &frame) == 1);
    CHECK(frame.kind == WEFT_FRAME_BODY && frame.body == in + 6 && used == 14);
    CHECK_TEXT(frame.body, frame.len, "in place");
    CHECK(!weft__ws_binary(&k.ws));
    in += used, n -= used;
    REQUIRE(k.framing->decode(&k.ws, in, n, MAX, &used, &frame) == 1);
    CHECK(frame.kind == WEFT_FRAME_BODY && frame.body == in + 6 && frame.len == 0);
    CHECK(weft__ws_binary(&k.ws));
    in += used, n -= used;
    REQUIRE(k.framing->decode(&k.ws, in, n, MAX, &used, &frame) == 1);
    CHECK(frame.kind == WEFT_FRAME_PING && frame.body == in + 6 && used == n);
    CHECK_TEXT(frame.body, frame.len, "me");
    CHECK_INT(memory.count, 0);
    kit_done(&k);
    weft__buf_done(&wire.bytes, NULL);
}

TEST(memory_is_given_back_after_a_message) {
    test_memory memory;
    kit k;
    kit_wire wire = {.masked = true};
    test_memory_init(&memory, 0);
    kit_init(&k, false, &(weft_framing_opts){.alloc = &memory.alloc});
    kit_put(&wire, &(kit_frame) BEGIN_TEXT("one "));
    kit_put(&wire, &(kit_frame) LAST("two"));
    kit_play(&k, wire.bytes.data, wire.bytes.end, KIT_WHOLE);
    CHECK_INT(k.frames, 1);
    CHECK(!k.ws.message.data);
    weft__buf_done(&k.out, &memory.alloc);
    CHECK_INT(memory.live, 0);
    kit_done(&k);
    weft__buf_done(&wire.bytes, NULL);
}

TEST(what_a_close_frame_says) {
    static const struct {
        const char *name;
        kit_frame in;
        int code;
        const char *reason;
    } rows[] = {
        {"nothing", CLOSE(""), 1005, ""},
        {"a code", CLOSE("\x03\xe9"), 1001, ""},
        {"a code and a reason",
         CLOSE("\x0f\xa0"
               "d\xc3\xa9part"),
         4000, "d\xc3\xa9part"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        kit k;
        kit_wire wire = {.random = 3, .masked = true};
        weft_frame frame;
        size_t used;
        test_row(rows[i].name);
        kit_init(&k, false, &(weft_framing_opts){0});
        kit_put(&wire, &rows[i].in);
        if (CHECK_INT(k.framing->decode(&k.ws, wire.bytes.data, wire.bytes.end, MAX, &used, &frame), 1)) {
            CHECK_INT(frame.kind, WEFT_FRAME_CLOSE);
            CHECK_INT(frame.code, rows[i].code);
            CHECK_TEXT(frame.body, frame.len, rows[i].reason);
        }
        kit_done(&k);
        weft__buf_done(&wire.bytes, NULL);
    }
    test_row(NULL);
}

/* ---- encoding ---- */

TEST(every_length_with_every_hint) {
    static const size_t lens[] = {0, 1, 125, 126, 127, 65535, 65536, 70000};
    char *body = malloc(MAX);
    REQUIRE(body);
    for (size_t i = 0; i < MAX; i++)
        body[i] = (char) ('a' + i % 26);
    for (size_t i = 0; i < COUNT(lens) * COUNT(lens) * 2; i++) {
        size_t len = lens[i / 2 % COUNT(lens)], hint = lens[i / 2 / COUNT(lens)];
        char name[64];
        kit k;
        snprintf(name, sizeof name, "%zu bytes, hint %zu, %s", len, hint, i % 2 ? "client" : "server");
        test_row(name);
        kit_init(&k, i % 2, &(weft_framing_opts){.seed = 4});
        CHECK_INT(kit_say(&k, "before", 6, 6, false), 0);
        CHECK_INT(kit_say(&k, body, len, hint, false), 0);
        CHECK_INT(kit_say(&k, "behind", 6, hint, true), 0);
        kit_expect(&k, (kit_frame[]){TEXT("before"), {0x81, body, len}, BINARY("behind")}, 3);
        kit_done(&k);
    }
    test_row(NULL);
    free(body);
}

TEST(only_the_next_message_is_binary) {
    kit k;
    kit_init(&k, false, &(weft_framing_opts){0});
    CHECK_INT(kit_say(&k, "a", 1, 1, true), 0);
    CHECK_INT(kit_say(&k, "b", 1, 1, false), 0);
    kit_expect(&k, (kit_frame[]){BINARY("a"), TEXT("b")}, 2);
    kit_done(&k);
}

/* Frames of the client carry masks that differ, and depend on the seed. */
TEST(masks_of_a_client) {
    enum { FRAMES = 100 };
    uint32_t masks[2][FRAMES];
    for (uint64_t seed = 0; seed < 2; seed++) {
        kit k;
        kit_init(&k, true, &(weft_framing_opts){.seed = seed});
        for (size_t i = 0; i < FRAMES; i++) {
            CHECK_INT(kit_say(&k, "", 0, 0, false), 0);
            memcpy(&masks[seed][i], weft__buf_tail(&k.out) - 4, 4);
        }
        kit_done(&k);
    }
    for (size_t i = 0; i < 2 * FRAMES; i++)
        for (size_t j = 0; j < i; j++)
            CHECK((&masks[0][0])[i] != (&masks[0][0])[j]);
}

/* ---- control frames of ours ---- */

#define E_ACUTE "\xc3\xa9"
#define E5 E_ACUTE E_ACUTE E_ACUTE E_ACUTE E_ACUTE
#define E60 E5 E5 E5 E5 E5 E5 E5 E5 E5 E5 E5 E5
#define X123 E60 "xyz"

TEST(closing) {
    static const struct {
        const char *name;
        int code;
        const char *reason;
        int r;
        kit_frame out;
    } rows[] = {
        {"nothing is wrong", 0, "", 0, CLOSE_1000},
        {"with a code", 1001, "", 0, CLOSE("\x03\xe9")},
        {"with a reason", 4999, "bye", 0,
         CLOSE("\x13\x87"
               "bye")},
        {"the longest reason", 1000, X123, 0, CLOSE("\x03\xe8" X123)},
        {"a longer reason", 1000, X123 "!", 0, CLOSE("\x03\xe8" X123)},
        {"a longer reason is cut between characters", 1000, E60 E5, 0, CLOSE("\x03\xe8" E60 E_ACUTE)},
        {"a reason that is no text is left out", 1000, "\xff", 0, CLOSE_1000},
        {"without a code", 1005, "lost", 0, CLOSE("")},
        {"a code that is not for the wire", 1006, "", -EINVAL, {0}},
        {"a code that is none", 999, "", -EINVAL, {0}},
        {"a code that is far too large", 70000, "", -EINVAL, {0}},
        {"a negative code", -1, "", -EINVAL, {0}},
    };
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        size_t row = i / 2;
        kit k;
        test_row(rows[row].name);
        kit_init(&k, i % 2, &(weft_framing_opts){.seed = 1});
        CHECK_INT(
            k.framing->control(&k.ws, &k.out, WEFT_FRAME_CLOSE, rows[row].code, rows[row].reason, strlen(rows[row].reason)),
            rows[row].r);
        kit_expect(&k, &rows[row].out, rows[row].r == 0);
        kit_done(&k);
    }
    test_row(NULL);
}

TEST(nothing_follows_a_close) {
    kit k;
    kit_init(&k, false, &(weft_framing_opts){0});
    CHECK_INT(k.framing->control(&k.ws, &k.out, WEFT_FRAME_PING, 0, "1", 1), 0);
    CHECK_INT(k.framing->control(&k.ws, &k.out, WEFT_FRAME_CLOSE, 1000, NULL, 0), 0);
    CHECK_INT(k.framing->control(&k.ws, &k.out, WEFT_FRAME_CLOSE, 1001, NULL, 0), 0);
    CHECK_INT(k.framing->control(&k.ws, &k.out, WEFT_FRAME_PONG, 0, NULL, 0), 0);
    CHECK_INT(kit_say(&k, "late", 4, 4, false), -EPIPE);
    kit_expect(&k, (kit_frame[]){PING("1"), CLOSE_1000}, 2);
    kit_done(&k);
}

TEST(pings_of_ours) {
    char payload[126];
    kit k;
    memset(payload, 'p', sizeof payload);
    kit_init(&k, true, &(weft_framing_opts){0});
    CHECK_INT(k.framing->control(&k.ws, &k.out, WEFT_FRAME_PING, 0, payload, 125), 0);
    CHECK_INT(k.framing->control(&k.ws, &k.out, WEFT_FRAME_PING, 0, payload, 126), -EINVAL);
    CHECK_INT(k.framing->control(&k.ws, &k.out, WEFT_FRAME_BODY, 0, payload, 1), -EINVAL);
    kit_expect(&k, &(kit_frame){0x89, payload, 125}, 1);
    kit_done(&k);
}

/* ---- hostile streams ---- */

TEST(fragments_of_one_byte_by_the_thousand) {
    enum { FRAGMENTS = 50000 };
    kit k;
    kit_wire wire = {.random = 1, .masked = true};
    char *want = malloc(FRAGMENTS);
    REQUIRE(want);
    kit_init(&k, false, &(weft_framing_opts){0});
    for (size_t i = 0; i < FRAGMENTS; i++) {
        want[i] = (char) ('a' + i % 26);
        kit_put(&wire, &(kit_frame){i == 0, want + i, 1});
        kit_put(&wire, &(kit_frame){0, "", 0});
        if (i % 5 == 0)
            kit_put(&wire, &(kit_frame) PING("are you there?"));
    }
    kit_put(&wire, &(kit_frame) LAST(""));
    kit_play(&k, wire.bytes.data, wire.bytes.end, 1000);
    CHECK_INT(k.frames, FRAGMENTS / 5 + 1);
    CHECK_INT(k.broken, 0);
    kit_frame is = {0};
    for (size_t i = 0; i < FRAGMENTS / 5; i++)
        if (!CHECK(kit_read(&k.out, false, &is)) || !kit_same(&is, &(kit_frame) PONG("are you there?")))
            break;
    CHECK(kit_read(&k.out, false, &is) && kit_same(&is, &(kit_frame){0x81, want, FRAGMENTS}));
    free(want);
    kit_done(&k);
    weft__buf_done(&wire.bytes, NULL);
}

/* What a length promises is not reserved before it comes. */
TEST(a_promised_fragment_costs_nothing) {
    test_memory memory;
    kit k;
    weft_frame frame;
    size_t used;
    char in[] = "\x02\x7f\x00\x00\x00\x00\x01\xff\xff\xff"
                "x";
    test_memory_init(&memory, 0);
    kit_init(&k, true, &(weft_framing_opts){.alloc = &memory.alloc});
    CHECK_INT(k.framing->decode(&k.ws, in, sizeof in - 1, KIT_MAX_BODY, &used, &frame), 0);
    CHECK_INT(used, sizeof in - 1);
    CHECK_INT(frame.len, 0);
    CHECK(k.ws.message.cap <= 4096);
    kit_done(&k);
    CHECK_INT(memory.live, 0);
}

/* ---- failing memory ---- */

static int conversation(const weft_alloc *alloc, bool deflate) {
    static const kit_frame frames[] = {TEXT("plain"),  BEGIN_TEXT("in "),       PING("p"),
                                       LAST("pieces"), FRAME(0x42, "\xf2\x48"), LAST("\xcd\xc9\xc9\x07\x00")};
    weft_zip *zip = NULL;
    kit k = {0};
    kit_wire wire = {.masked = true};
    char body[3000];
    memset(body, 'b', sizeof body);
    int r = deflate ? weft__zip_new(alloc, &zip) : 0;
    if (r < 0)
        return r;
    kit_init(&k, false, &(weft_framing_opts){.alloc = alloc, .deflate = deflate ? 10 : 0, .zip = zip});
    for (size_t i = 0; i < (deflate ? 6u : 4u); i++)
        kit_put(&wire, &frames[i]);
    kit_play(&k, wire.bytes.data, wire.bytes.end, 3);
    r = k.broken;
    if (r >= 0)
        r = kit_say(&k, body, sizeof body, 0, false);
    if (r >= 0)
        r = k.framing->control(&k.ws, &k.out, WEFT_FRAME_CLOSE, 1000, NULL, 0);
    kit_done(&k);
    weft__buf_done(&wire.bytes, NULL);
    weft__zip_free(zip);
    return r;
}

TEST(failing_memory) {
    for (int deflate = 0; deflate < 2; deflate++) {
        long fail_at = 0, failed = 0;
        test_memory memory;
        do {
            test_memory_init(&memory, ++fail_at);
            int r = conversation(&memory.alloc, deflate);
            CHECK(r == 0 || r == -ENOMEM);
            CHECK_INT(memory.live, 0);
            failed += r < 0;
        } while (memory.count >= fail_at && fail_at < 1000);
        CHECK(failed > 2 && fail_at < 1000);
    }
}

/* ---- our two sides with each other ---- */

/* Move what one side has said to the other, in pieces of odd sizes. */
static void carry(kit *from, kit *to, uint64_t *random) {
    while (weft__buf_len(&from->out)) {
        size_t n = kit_random(random) % 3000 + 1, len = weft__buf_len(&from->out);
        n = n < len ? n : len;
        kit_feed(to, kit_head(&from->out), n);
        weft__buf_take(&from->out, NULL, n);
    }
}

/* A body of any bytes; text is kept to characters of two bytes, so that it is UTF-8 and not ASCII. */
static void invent(weft_buf *body, bool binary, uint64_t *random) {
    size_t len = kit_random(random) % (kit_random(random) % 8 ? 300 : 90000);
    unsigned spread = kit_random(random) % 2 ? 4 : 256;
    body->end = body->start;
    weft__buf_reserve(body, NULL, 2 * len + 1);
    for (size_t i = 0; i < len; i++) {
        unsigned byte = kit_random(random) % spread;
        if (!binary)
            *weft__buf_tail(body) = (char) (0xC2 + byte % 16), body->end++;
        *weft__buf_tail(body) = (char) (binary ? byte : 0x80 + byte % 64), body->end++;
    }
}

TEST(there_and_back) {
    for (unsigned window = 0; window <= 15; window += window ? 6 : 9) {
        uint64_t random = window + 1;
        weft_zip *zip = NULL;
        weft_buf body = {0};
        kit client, server;
        REQUIRE(weft__zip_new(NULL, &zip) == 0);
        kit_init(&client, true, &(weft_framing_opts){.seed = 5, .deflate = window, .zip = zip});
        kit_init(&server, false, &(weft_framing_opts){.seed = 6, .deflate = window, .zip = zip});
        for (int i = 0; i < 300; i++) {
            bool binary = kit_random(&random) % 2;
            weft_frame frame = {0};
            size_t used = 0;
            invent(&body, binary, &random);
            CHECK_INT(kit_say(&client, body.data, body.end, kit_random(&random) % 100000, binary), 0);
            carry(&client, &server, &random);
            /* The server has echoed; read it as the client does, but do not echo again. */
            CHECK_INT(client.framing->decode(&client.ws, kit_head(&server.out), weft__buf_len(&server.out), KIT_MAX_BODY,
                                             &used, &frame),
                      1);
            CHECK_INT(used, weft__buf_len(&server.out));
            CHECK_INT(weft__ws_binary(&client.ws), binary);
            if (!CHECK_INT(frame.len, body.end) || !CHECK(memcmp(frame.body, body.data, body.end) == 0))
                break;
            weft__buf_take(&server.out, NULL, used);
        }
        CHECK_INT(server.frames, 300);
        weft__buf_done(&body, NULL);
        kit_done(&client);
        kit_done(&server);
        weft__zip_free(zip);
    }
}

TEST_MAIN(CASE(heads) CASE(what_broke_stays_broken) CASE(a_whole_frame_is_handed_out_where_it_lies)
              CASE(memory_is_given_back_after_a_message) CASE(what_a_close_frame_says) CASE(every_length_with_every_hint)
                  CASE(only_the_next_message_is_binary) CASE(masks_of_a_client) CASE(closing) CASE(nothing_follows_a_close)
                      CASE(pings_of_ours) CASE(fragments_of_one_byte_by_the_thousand) CASE(a_promised_fragment_costs_nothing)
                          CASE(failing_memory) CASE(there_and_back))
