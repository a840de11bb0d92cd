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

TEST_MAIN(CASE(events) CASE(stops_when_told) CASE(failing_memory))
