/* Cleaning and cutting what programs write: tables, every split, and lines without end. */
#include "output.h"

#include <errno.h>
#include <stdlib.h>

#include "harness.h"
#include "utf8_stream.h"

typedef struct heard {
    char *text;
    size_t len, cap, calls;
    bool bad;
} heard;

static void on_text(void *ctx, weft_bytes text) {
    heard *h = ctx;
    h->calls++;
    h->bad = h->bad || !weft__utf8_valid(text.data, text.len) || memchr(text.data, 0, text.len) || !text.len;
    if (h->len + text.len > h->cap) {
        h->cap = (h->len + text.len) * 2;
        h->text = realloc(h->text, h->cap);
    }
    memcpy(h->text + h->len, text.data, text.len);
    h->len += text.len;
}

#define FFFD "\xEF\xBF\xBD"

typedef struct row {
    const char *name, *in;
    size_t len;
    const char *out;
} row;
#define ROW(name, in, out)                                                                                                  \
    { name, in, sizeof in - 1, out }

static const row rows[] = {
    ROW("nothing", "", ""),
    ROW("a line", "hello\n", "hello\n"),
    ROW("two lines and a beginning", "a\nb\nc", "a\nb\nc"),
    ROW("empty lines", "\n\n\n", "\n\n\n"),
    ROW("carriage returns and escapes stay", "a\r\n\x1b[31mred\a\b\x7f\n", "a\r\n\x1b[31mred\a\b\x7f\n"),
    ROW("characters of every length", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\n", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\n"),
    ROW("NUL", "a\0b\0\n\0", "a" FFFD "b" FFFD "\n" FFFD),
    ROW("bytes that begin nothing", "a\x80\xFF\xC0z\n", "a" FFFD FFFD FFFD "z\n"),
    ROW("a broken character is one", "\xE2\x82(\xF0\x9F\x98(\n", FFFD "(" FFFD "(\n"),
    ROW("an overlong form", "\xE0\x80\x80\n", FFFD FFFD FFFD "\n"),
    ROW("a surrogate", "\xED\xA0\x80\n", FFFD FFFD FFFD "\n"),
    ROW("above U+10FFFF", "\xF4\x90\x80\x80\n", FFFD FFFD FFFD FFFD "\n"),
    ROW("a newline within a character", "\xE2\x82\n\xF0\n", FFFD "\n" FFFD "\n"),
    ROW("the end within a character", "x\xF0\x9F\x98", "x" FFFD),
    ROW("a broken one before a whole one", "\xE2\x82\xE2\x82\xAC\xC3\xC3\xA9", FFFD "\xE2\x82\xAC" FFFD "\xC3\xA9"),
};

static void feed_in_pieces(const row *r, size_t piece, bool flush) {
    heard h = {0};
    weft_output output;
    weft__output_init(&output, NULL, on_text, &h);
    for (size_t at = 0; at < r->len; at += piece) {
        CHECK_INT(weft__output_feed(&output, r->in + at, r->len - at < piece ? r->len - at : piece), 0);
        if (flush)
            weft__output_flush(&output);
    }
    CHECK_INT(weft__output_end(&output), 0);
    CHECK_TEXT(h.text ? h.text : "", h.len, r->out);
    CHECK(!h.bad);
    CHECK(!weft__output_holds(&output));
    weft__output_done(&output);
    free(h.text);
}

TEST(cleans_in_every_split) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        for (size_t piece = 1; piece <= rows[i].len + 1; piece++) {
            feed_in_pieces(&rows[i], piece, false);
            feed_in_pieces(&rows[i], piece, true);
        }
    }
    test_row(NULL);
}

TEST(hands_over_whole_lines_at_once) {
    heard h = {0};
    weft_output output;
    weft__output_init(&output, NULL, on_text, &h);
    weft__output_feed(&output, "a\nb\nc", 5);
    CHECK_TEXT(h.text, h.len, "a\nb\n");
    CHECK_INT(h.calls, 1);
    CHECK(weft__output_holds(&output));
    weft__output_feed(&output, "d", 1);
    CHECK_INT(h.calls, 1);
    weft__output_flush(&output); /* silence */
    CHECK_TEXT(h.text, h.len, "a\nb\ncd");
    CHECK(!weft__output_holds(&output));
    weft__output_flush(&output);
    CHECK_INT(h.calls, 2);
    weft__output_feed(&output, "e\nf", 3);
    CHECK_TEXT(h.text, h.len, "a\nb\ncde\n");
    CHECK_INT(weft__output_end(&output), 0);
    CHECK_TEXT(h.text, h.len, "a\nb\ncde\nf");
    weft__output_done(&output);
    free(h.text);
}

/* A line of n times what, then "\nnext\n"; fed in pieces. What is kept of it is the longest beginning that fits. */
static void long_line(const char *what, size_t times, size_t piece, bool flush, size_t kept, size_t cut) {
    heard h = {0};
    weft_output output;
    size_t unit = strlen(what), len = unit * times;
    char *in = malloc(len + 6), mark[64] = "\nnext\n";
    for (size_t i = 0; i < times; i++)
        memcpy(in + i * unit, what, unit);
    memcpy(in + len, "\nnext\n", 6);
    weft__output_init(&output, NULL, on_text, &h);
    for (size_t at = 0; at < len + 6; at += piece) {
        CHECK_INT(weft__output_feed(&output, in + at, len + 6 - at < piece ? len + 6 - at : piece), 0);
        if (flush)
            weft__output_flush(&output);
    }
    if (cut)
        snprintf(mark, sizeof mark, "\xE2\x80\xA6 (%zu bytes cut)\nnext\n", cut);
    CHECK(!h.bad);
    CHECK_INT(h.len, kept + strlen(mark));
    CHECK(memcmp(h.text, in, kept) == 0);
    CHECK_TEXT(h.text + kept, h.len - kept, mark);
    weft__output_done(&output);
    free(h.text);
    free(in);
}

TEST(cuts_long_lines) {
    const size_t most = WEFT_OUTPUT_LINE, third = most / 3;
    for (int flush = 0; flush < 2; flush++)
        for (size_t piece = 4093; piece < 600000; piece = piece * 3 + 1) {
            long_line("x", most - 1, piece, flush, most - 1, 0);
            long_line("x", most, piece, flush, most, 0);
            long_line("x", most + 1, piece, flush, most, 1);
            long_line("x", most * 3, piece, flush, most, most * 2);
            long_line("\xE2\x82\xAC", third, piece, flush, third * 3, 0);
        }
    long_line("\xE2\x82\xAC", third + 1, 65536, false, third * 3, 3);
    long_line("\xE2\x82\xAC", third * 2, most * 4, false, third * 3, third * 3);
}

TEST(a_line_that_never_ends_takes_no_memory) {
    test_memory memory;
    heard h = {0};
    weft_output output;
    static char block[1 << 16];
    memset(block, 'x', sizeof block);
    test_memory_init(&memory, 0);
    weft__output_init(&output, &memory.alloc, on_text, &h);
    for (int i = 0; i < 16384; i++) /* a gigabyte */
        CHECK_INT(weft__output_feed(&output, block, sizeof block), 0);
    CHECK_INT(h.len, WEFT_OUTPUT_LINE);
    CHECK_INT(memory.live, 0);
    CHECK_INT(weft__output_end(&output), 0);
    CHECK_TEXT(h.text + WEFT_OUTPUT_LINE, h.len - WEFT_OUTPUT_LINE, "\xE2\x80\xA6 (1073479680 bytes cut)");
    weft__output_done(&output);
    CHECK_INT(memory.live, 0);
    free(h.text);
}

TEST(every_allocation_may_fail) {
    static const char in[] = "one\ntwo \xFF\xE2\x82\xAC\nthree\xE2\x82";
    for (long fail_at = 1;; fail_at++) {
        test_memory memory;
        heard h = {0};
        weft_output output;
        test_memory_init(&memory, fail_at);
        weft__output_init(&output, &memory.alloc, on_text, &h);
        int r = 0;
        for (size_t i = 0; i < sizeof in - 1; i++)
            if (weft__output_feed(&output, in + i, 1) < 0)
                r = -ENOMEM;
        if (weft__output_end(&output) < 0)
            r = -ENOMEM;
        weft__output_done(&output);
        CHECK(!h.bad);
        CHECK_INT(memory.live, 0);
        free(h.text);
        if (r == 0)
            return;
    }
}

TEST_MAIN(CASE(cleans_in_every_split) CASE(hands_over_whole_lines_at_once) CASE(cuts_long_lines)
              CASE(a_line_that_never_ends_takes_no_memory) CASE(every_allocation_may_fail))
