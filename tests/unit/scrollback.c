/* The end of what a terminal printed: cleaned, cut between characters, never over its limit. */
#include "scrollback.h"

#include <stdlib.h>

#include "harness.h"

#define FFFD "\xEF\xBF\xBD"

static void feed_all(weft_scrollback *it, const char *data, size_t len, size_t piece) {
    for (size_t at = 0; at < len; at += piece)
        weft__scrollback_feed(it, data + at, piece < len - at ? piece : len - at);
}

TEST(bytes_become_text) {
    static const struct {
        const char *name, *bytes;
        size_t len;
        const char *text;
    } rows[] = {
        {"nothing", "", 0, ""},
        {"plain", "abc\r\n\x1b[31mred", 12, "abc\r\n\x1b[31mre"},
        {"two bytes", "\xC3\xA9", 2, "\xC3\xA9"},
        {"four bytes", "a\xF0\x9F\x99\x82z", 6, "a\xF0\x9F\x99\x82z"},
        {"NUL", "a\0b", 3, "a" FFFD "b"},
        {"a byte that is none", "a\xFFz", 3, "a" FFFD "z"},
        {"overlong", "\xC0\xAF", 2, FFFD FFFD},
        {"a surrogate", "\xED\xA0\x80", 3, FFFD FFFD FFFD},
        {"begun, then plain", "\xE2\x82x", 3, FFFD "x"},
        {"begun, then another", "\xE2\x82\xE2\x82\xAC", 5, FFFD "\xE2\x82\xAC"},
        {"begun, then NUL", "\xE2\x82\0", 3, FFFD FFFD},
        {"begun at the end", "a\xF0\x9F", 3, "a" FFFD},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t piece = 1; piece < 8; piece++) {
            weft_scrollback it;
            bool truncated;
            test_row(rows[i].name);
            weft__scrollback_init(&it, NULL, 100);
            feed_all(&it, rows[i].bytes, rows[i].len, piece);
            weft__scrollback_end(&it);
            weft_bytes text = weft__scrollback_text(&it, SIZE_MAX, &truncated);
            CHECK_TEXT(text.data, text.len, rows[i].text);
            CHECK(!truncated);
            weft__scrollback_done(&it);
        }
    test_row(NULL);
}

TEST(the_front_is_cut_between_characters) {
    static const struct {
        const char *text;
        size_t limit;
        const char *kept;
        bool truncated;
    } rows[] = {
        {"abcdef", 6, "abcdef", false},
        {"abcdef", 5, "bcdef", true},
        {"abcdef", 0, "", true},
        {"", 0, "", false},
        {"a\xC3\xA9z", 3, "\xC3\xA9z", true},
        {"a\xC3\xA9z", 2, "z", true},
        {"\xF0\x9F\x99\x82", 4, "\xF0\x9F\x99\x82", false},
        {"\xF0\x9F\x99\x82", 3, "", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t piece = 1; piece < 8; piece++) {
            weft_scrollback it;
            bool truncated;
            test_row(rows[i].text);
            weft__scrollback_init(&it, NULL, rows[i].limit);
            feed_all(&it, rows[i].text, strlen(rows[i].text), piece);
            weft_bytes text = weft__scrollback_text(&it, SIZE_MAX, &truncated);
            CHECK_TEXT(text.data, text.len, rows[i].kept);
            CHECK_INT(truncated, rows[i].truncated);
            text = weft__scrollback_text(&it, 1, &truncated);
            CHECK(text.len <= 1);
            weft__scrollback_done(&it);
        }
    test_row(NULL);
}

/* A gigabyte, with numbers in it to know which end was kept. */
TEST(a_gigabyte_takes_no_more_than_twice_the_limit) {
    enum { LIMIT = 100000, PIECE = 1 << 16, PIECES = (1 << 30) / PIECE };
    test_memory memory;
    weft_scrollback it;
    bool truncated;
    char *piece = malloc(PIECE + 1), last[32];
    size_t most = 0;
    test_memory_init(&memory, 0);
    weft__scrollback_init(&it, &memory.alloc, LIMIT);
    memset(piece, '.', PIECE);
    for (int i = 0; i < PIECES; i++) {
        snprintf(last, sizeof last, "%06d", i);
        memcpy(piece + PIECE - 6, last, 6);
        weft__scrollback_feed(&it, piece, PIECE);
        most = it.kept.cap > most ? it.kept.cap : most;
    }
    weft_bytes text = weft__scrollback_text(&it, SIZE_MAX, &truncated);
    CHECK_INT(text.len, LIMIT);
    CHECK(truncated);
    CHECK_TEXT(text.data + text.len - 6, 6, last);
    CHECK(most <= 3 * LIMIT); /* twice, in sizes that double */
    weft__scrollback_done(&it);
    CHECK_INT(memory.live, 0);
    free(piece);
}

TEST(what_memory_has_no_room_for_is_said_to_be_lost) {
    for (long fail_at = 1; fail_at < 4; fail_at++) {
        test_memory memory;
        weft_scrollback it;
        bool truncated;
        test_memory_init(&memory, fail_at);
        weft__scrollback_init(&it, &memory.alloc, 1 << 20);
        for (int i = 0; i < 100; i++)
            weft__scrollback_feed(&it, "0123456789abcdef0123456789abcdef", 32);
        weft_bytes text = weft__scrollback_text(&it, SIZE_MAX, &truncated);
        CHECK(truncated);
        CHECK(text.len < 3200 && text.len % 32 == 0);
        weft__scrollback_done(&it);
        CHECK_INT(memory.live, 0);
    }
}

TEST_MAIN(CASE(bytes_become_text) CASE(the_front_is_cut_between_characters)
              CASE(a_gigabyte_takes_no_more_than_twice_the_limit) CASE(what_memory_has_no_room_for_is_said_to_be_lost))
