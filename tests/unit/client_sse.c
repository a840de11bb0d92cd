/* Server-sent events: whole, and byte by byte. */
#include "sse_in.h"

#include "harness.h"

typedef struct heard {
    char text[1000];
    size_t len;
    int left; /* stop after this many; <0 never */
} heard;

static bool on_event(char *data, size_t len, void *ctx) {
    heard *all = ctx;
    all->len += (size_t) snprintf(all->text + all->len, sizeof all->text - all->len, "[%.*s]", (int) len, data);
    return --all->left != 0;
}

static const struct {
    const char *what, *in, *want;
} rows[] = {
    {"one", "data: a\n\n", "[a]"},
    {"without the blank", "data:a\n\n", "[a]"},
    {"only one blank goes", "data:  a\n\n", "[ a]"},
    {"two", "data: a\n\ndata: b\n\n", "[a][b]"},
    {"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", "[a][b]"},
    {"CR", "data: a\r\rdata: b\r\r", "[a][b]"},
    {"several lines", "data: a\ndata: b\n\n", "[a\nb]"},
    {"an empty line of data", "data:\n\n", "[]"},
    {"comments and other fields", ": hello\nevent: x\nid: 7\nretry: 5\ndata: a\n: more\n\n", "[a]"},
    {"nothing but comments", ":\n\n:\n\n", ""},
    {"a name that only begins so", "datax: a\n\n", ""},
    {"not finished", "data: a\n", ""},
    {"too long, then another", "data: 0123456789012345678901234567890123456789\n\ndata: b\n\n", "[b]"},
    {"too long, and no data", "x: 0123456789012345678901234567890123456789\ndata: b\n\n", "[b]"},
    {"too long in lines, then another", "data: 012345678901\ndata: 012345678901\ndata: 0123456789\n\ndata: b\n\n", "[b]"},
};

static void check(const char *in, size_t step, const char *want) {
    heard all = {.left = -1};
    test_memory memory;
    test_memory_init(&memory, 0);
    weft_sse_in sse = {.alloc = &memory.alloc, .max = 32};
    size_t len = strlen(in);
    for (size_t at = 0; at < len; at += step)
        CHECK_INT(weft__sse_in(&sse, in + at, len - at < step ? len - at : step, on_event, &all), 1);
    CHECK_TEXT(all.text, all.len, want);
    weft__sse_in_done(&sse);
    CHECK_INT(memory.live, 0);
}

TEST(events) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].what);
        check(rows[i].in, strlen(rows[i].in), rows[i].want);
        check(rows[i].in, 1, rows[i].want);
        check(rows[i].in, 3, rows[i].want);
    }
}

/* ---- names, ids, and how long to wait ---- */

typedef struct named {
    weft_sse_in in;
    char text[500];
    size_t len;
} named;

static bool on_named(char *data, size_t len, void *ctx) {
    named *all = ctx;
    all->len += (size_t) snprintf(all->text + all->len, sizeof all->text - all->len, "[%s|%s|%.*s]", all->in.event,
                                  all->in.id, (int) len, data);
    return true;
}

static const struct {
    const char *what, *in, *want, *id;
    int64_t retry;
} named_rows[] = {
    {"all of them", "event: message\nid: 7\nretry: 500\ndata: a\n\n", "[message|7|a]", "7", 500},
    {"without blanks", "event:x\nid:y\ndata:a\n\n", "[x|y|a]", "y", 0},
    {"an id without data", "id: 9\n\n", "", "9", 0},
    {"a name is for one event, an id for all", "event: e\nid: 1\ndata: a\n\ndata: b\n\n", "[e|1|a][|1|b]", "1", 0},
    {"an id is taken back", "id: 1\ndata: a\n\nid\ndata: b\n\n", "[|1|a][||b]", "", 0},
    {"no number", "retry: soon\nretry: -1\nretry: 1x\nretry:\ndata: a\n\n", "[||a]", "", 0},
    {"a number that is too large", "retry: 12345678901234567890\n\n", "", "", 0},
    {"a name that is too long", "event: 0123456789012345678901234567890123456789\ndata: a\n\n", "[||a]", "", 0},
};

TEST(names) {
    for (size_t i = 0; i < sizeof named_rows / sizeof named_rows[0]; i++)
        for (size_t step = 1; step < 40; step += 6) {
            named all = {.in = {.max = 100, .named = true}};
            size_t len = strlen(named_rows[i].in);
            test_row(named_rows[i].what);
            for (size_t at = 0; at < len; at += step)
                CHECK_INT(weft__sse_in(&all.in, named_rows[i].in + at, len - at < step ? len - at : step, on_named, &all),
                          1);
            CHECK_TEXT(all.text, all.len, named_rows[i].want);
            CHECK_STR(all.in.id, named_rows[i].id);
            CHECK_INT(all.in.retry_ms, named_rows[i].retry);
            weft__sse_in_restart(&all.in);
            CHECK_STR(all.in.id, named_rows[i].id);
            weft__sse_in_done(&all.in);
        }
}

TEST(stops_when_told) {
    heard all = {.left = 1};
    weft_sse_in sse = {.max = 100};
    CHECK_INT(weft__sse_in(&sse, "data: a\n\ndata: b\n\n", 18, on_event, &all), 0);
    CHECK_TEXT(all.text, all.len, "[a]");
    weft__sse_in_done(&sse);
}

TEST(failing_memory) {
    for (long n = 1;; n++) {
        heard all = {.left = -1};
        test_memory memory;
        test_memory_init(&memory, n);
        weft_sse_in sse = {.alloc = &memory.alloc, .max = 100};
        int r = weft__sse_in(&sse, "data: a\nda", 10, on_event, &all);
        if (r > 0)
            r = weft__sse_in(&sse, "ta: b\n\n", 7, on_event, &all);
        weft__sse_in_done(&sse);
        CHECK_INT(memory.live, 0);
        if (r > 0) {
            CHECK_TEXT(all.text, all.len, "[a\nb]");
            CHECK(n > 1);
            return;
        }
    }
}

TEST_MAIN(CASE(events) CASE(names) CASE(stops_when_told) CASE(failing_memory))
