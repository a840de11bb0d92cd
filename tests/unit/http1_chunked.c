/* Chunked bodies: whole, cut in two at every place, and byte by byte. */
#include <errno.h>
#include <stdlib.h>

#include "harness.h"
#include "http1.h"

typedef struct scene {
    const char *name;
    const char *in;
    const char *body;
    int want;         /* 1 complete, 0 not yet, <0 refused */
    const char *rest; /* what is left over behind a complete body; NULL: nothing */
} scene;

typedef struct outcome {
    int r;
    size_t used;
    char body[256];
    size_t body_len;
} outcome;

static void feed(weft_chunked *state, outcome *out, const char *in, size_t n) {
    char *copy = malloc(n ? n : 1);
    size_t used = 0, body = 0;
    memcpy(copy, in, n);
    out->r = weft__chunked(state, copy, n, &used, &body);
    if (out->r >= 0) {
        CHECK(used <= n && body <= used);
        memcpy(out->body + out->body_len, copy, body);
        out->body_len += body;
        out->used += used;
    }
    free(copy);
}

static void check(const scene *row, const outcome *out) {
    CHECK_INT(out->r, row->want);
    if (row->want >= 0)
        CHECK_TEXT(out->body, out->body_len, row->body);
    if (row->want >= 0)
        CHECK_TEXT(row->in + out->used, strlen(row->in + out->used), row->rest ? row->rest : "");
}

static void run(const scene *row) {
    size_t len = strlen(row->in);
    for (size_t split = 0; split <= len; split++) {
        weft_chunked state = {0};
        outcome out = {0};
        feed(&state, &out, row->in, split);
        if (out.r == 0 && split < len)
            feed(&state, &out, row->in + split, len - split);
        check(row, &out);
    }
    weft_chunked state = {0};
    outcome out = {0};
    for (size_t i = 0; i < len && out.r == 0; i++)
        feed(&state, &out, row->in + i, 1);
    check(row, &out);
}

TEST(rows) {
    static const scene rows[] = {
        {"nothing", "", "", 0, NULL},
        {"empty", "0\r\n\r\n", "", 1, NULL},
        {"one", "5\r\nhello\r\n0\r\n\r\n", "hello", 1, NULL},
        {"two", "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", 1, NULL},
        {"hexadecimal", "a\r\n0123456789\r\nA\r\nabcdefghij\r\n0\r\n\r\n", "0123456789abcdefghij", 1, NULL},
        {"leading zeros", "005\r\nhello\r\n000\r\n\r\n", "hello", 1, NULL},
        {"CRLF in the data", "4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n", 1, NULL},
        {"an extension", "5;a=b\r\nhello\r\n0;c\r\n\r\n", "hello", 1, NULL},
        {"an extension in quotes", "5;a=\"b;\t c\"\r\nhello\r\n0\r\n\r\n", "hello", 1, NULL},
        {"trailers", "5\r\nhello\r\n0\r\nA: b\r\nC:\r\n\r\n", "hello", 1, NULL},
        {"more behind it", "5\r\nhello\r\n0\r\n\r\nGET / ", "hello", 1, "GET / "},
        {"not yet: size", "5", "", 0, NULL},
        {"not yet: data", "5\r\nhel", "hel", 0, NULL},
        {"not yet: end of data", "5\r\nhello\r", "hello", 0, NULL},
        {"not yet: last line", "5\r\nhello\r\n0\r\n", "hello", 0, NULL},
        {"not yet: end of trailers", "0\r\nA: b\r\n\r", "", 0, NULL},

        {"no size", "\r\nhello\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"no size but an extension", ";a\r\n", "", -EBADMSG, NULL},
        {"a prefix", "0x5\r\nhello\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"a sign", "+5\r\nhello\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"negative", "-5\r\nhello\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"a blank before", " 5\r\nhello\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"a blank behind", "5 \r\nhello\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"a blank before an extension", "5 ;a\r\nhello\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"an underscore", "5_0\r\n", "", -EBADMSG, NULL},
        {"no digit", "g\r\n", "", -EBADMSG, NULL},
        {"2^63", "8000000000000000\r\n", "", -EBADMSG, NULL},
        {"2^64 + 5", "10000000000000005\r\nhello\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"bare LF behind a size", "5\nhello\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"bare CR behind a size", "5\rhello\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"bare LF in an extension", "5;a\nhello\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"bare CR in an extension", "5;a\rb\r\nhello\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"a control in an extension", "5;\x01\r\n", "", -EBADMSG, NULL},
        {"bare LF behind the data", "5\r\nhello\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"data too long", "5\r\nhello!\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"data too short", "5\r\nhell\r\n0\r\n\r\n", "", -EBADMSG, NULL},
        {"a CR and something", "5\r\nhello\rX", "", -EBADMSG, NULL},
        {"bare LF at the end", "0\r\n\n", "", -EBADMSG, NULL},
        {"a CR and something at the end", "0\r\n\rX", "", -EBADMSG, NULL},
        {"a request instead of the last line", "0\r\nGET / HTTP/1.1\r\n", "", -EBADMSG, NULL},
        {"a folded trailer", "0\r\nA: b\r\n c\r\n\r\n", "", -EBADMSG, NULL},
        {"a blank before a trailer's colon", "0\r\nA : b\r\n\r\n", "", -EBADMSG, NULL},
        {"bare LF behind a trailer", "0\r\nA: b\n\r\n", "", -EBADMSG, NULL},
        {"a control in a trailer", "0\r\nA: \x01\r\n\r\n", "", -EBADMSG, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        run(&rows[i]);
    }
}

/* The largest size is taken at its word; what comes is data. */
TEST(largest_size) {
    weft_chunked state = {0};
    outcome out = {0};
    feed(&state, &out, "7fffffffffffffff\r\nabc", 21);
    CHECK_INT(out.r, 0);
    CHECK_TEXT(out.body, out.body_len, "abc");
    CHECK(state.left == (uint64_t) INT64_MAX - 3);
}

/* How many bytes of this repeated line are taken before the decoder has enough. */
static size_t endure(const char *start, const char *line, bool *ret_refused) {
    weft_chunked state = {0};
    outcome out = {0};
    size_t n = 0;
    feed(&state, &out, start, strlen(start));
    for (n = 0; n < 100000 && out.r == 0; n++) {
        out.body_len = 0;
        feed(&state, &out, line + n % strlen(line), 1);
    }
    *ret_refused = out.r == -EBADMSG;
    return n;
}

TEST(limits) {
    bool refused;
    /* "5;" and 252 bytes more leave room for CRLF in 256; byte 257 is one too many. */
    CHECK_INT(endure("5;", "x", &refused), 255);
    CHECK(refused);
    CHECK_INT(endure("", "0", &refused), 257);
    CHECK(refused);
    CHECK_INT(endure("0\r\n", "A: b\r\n", &refused), 8193);
    CHECK(refused);
    CHECK_INT(endure("0\r\nA", "A", &refused), 8192);
    CHECK(refused);
    /* The limit is for one line, not for all of them. */
    CHECK_INT(endure("", "1;0123456789\r\nx\r\n", &refused), 100000);
    CHECK(!refused);
}

TEST(done_stays_done) {
    weft_chunked state = {0};
    outcome out = {0};
    feed(&state, &out, "0\r\n\r\n", 5);
    feed(&state, &out, "5\r\n", 3);
    CHECK_INT(out.r, 1);
    CHECK_INT(out.used, 5);
}

TEST_MAIN(CASE(rows) CASE(largest_size) CASE(limits) CASE(done_stays_done))
