/* Columns of texts on a terminal. */
#include "text_width.h"

#include "harness.h"

static const struct {
    const char *name, *text;
    size_t width;
} rows[] = {
    {"nothing", "", 0},
    {"ASCII", "hello", 5},
    {"Latin", "na\xc3\xafve", 5},
    {"Chinese", "\xe4\xbf\xae\xe5\xa4\x8d\xe6\xb5\x8b\xe8\xaf\x95", 8},
    {"Korean in parts", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", 2},
    {"half-width kana", "\xef\xbd\xb1", 1},
    {"full-width letter", "\xef\xbc\xa1", 2},
    {"emoji", "\xf0\x9f\x9a\x80", 2},
    {"an accent of its own", "e\xcc\x81", 1},
    {"several accents", "a\xcc\x81\xcc\xa7z", 2},
    {"a zero-width joiner",
     "a\xe2\x80\x8d"
     "b",
     2},
    {"a flag", "\xf0\x9f\x87\xab\xf0\x9f\x87\xb7", 2},
    {"not UTF-8",
     "a\xff\xfe"
     "b",
     4},
    {"cut short", "a\xe4\xbf", 3},
    {"mixed", "fix \xe6\xb5\x8b\xe8\xaf\x95 now", 12},
};

TEST(width) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        CHECK_INT(weft__text_width(rows[i].text), rows[i].width);
    }
    test_row(NULL);
}

/* What fits is never wider than asked, and what is left out would not have fitted. */
TEST(fit) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        for (size_t columns = 0; columns <= rows[i].width + 1; columns++) {
            char part[64] = "";
            size_t n = weft__text_fit(rows[i].text, columns);
            memcpy(part, rows[i].text, n);
            CHECK(weft__text_width(part) <= columns);
            CHECK(!rows[i].text[n] || weft__text_width(part) + 2 > columns);
        }
    }
    test_row(NULL);
    CHECK_INT(weft__text_fit("e\xcc\x81x", 1), 3);
    CHECK_INT(weft__text_fit("\xe4\xbf\xae", 1), 0);
}

TEST_MAIN(CASE(width) CASE(fit))
