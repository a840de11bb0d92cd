/* Names from others: what may go to a program and to a terminal. */
#include "plain_name.h"

#include "harness.h"

typedef struct row {
    const char *text;
    const char *wrong; /* a part of what is said; NULL: it is fine */
} row;

static void check_rows(weft_name_kind kind, const row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char *wrong = weft__name_wrong((weft_bytes){rows[i].text, strlen(rows[i].text)}, kind);
        test_row(rows[i].text);
        CHECK(rows[i].wrong ? wrong && strstr(wrong, rows[i].wrong) : !wrong);
    }
    test_row(NULL);
}
#define ROWS(kind, rows) check_rows(kind, rows, sizeof(rows) / sizeof(rows)[0])

TEST(words) {
    static const row rows[] = {
        {"c", NULL},
        {"c++", NULL},
        {"C#", NULL},
        {"objective-c", NULL},
        {"python3.11", NULL},
        {"", "empty"},
        {"-rf", "dash"},
        {"--config=/etc/passwd", "dash"},
        {"@args", "letter or digit"},
        {"..", "letter or digit"},
        {"a/b", "character"},
        {"a b", "character"},
        {"a;b", "character"},
        {"$(id)", "letter or digit"},
        {"a\nb", "character"},
        {"a\x1b[2J", "character"},
        {"caf\xc3\xa9", "character"},
    };
    ROWS(WEFT_NAME_WORD, rows);
    char long_word[130];
    memset(long_word, 'a', sizeof long_word);
    CHECK(!weft__name_wrong((weft_bytes){long_word, 128}, WEFT_NAME_WORD));
    CHECK(weft__name_wrong((weft_bytes){long_word, 129}, WEFT_NAME_WORD));
    CHECK(weft__name_wrong((weft_bytes){"a\0b", 3}, WEFT_NAME_WORD));
}

TEST(rules) {
    static const row rows[] = {
        {"E501", NULL},
        {"no-unused-vars", NULL},
        {"@typescript-eslint/no-explicit-any", NULL},
        {"clang-analyzer-core.NullDereference", NULL},
        {"plugin:vue/recommended", NULL},
        {"", "empty"},
        {"@", "empty"},
        {"-Werror", "dash"},
        {"@-x", "dash"},
        {"a/-x", "dash"},
        {"a/../b", "letter or digit"},
        {"/etc/passwd", "empty"},
        {"a//b", "empty"},
        {"a/", "empty"},
        {"@@a", "letter or digit"},
        {"a,b", "character"},
    };
    ROWS(WEFT_NAME_RULE, rows);
}

TEST(lines) {
    static const row rows[] = {
        {"PL/SQL", NULL},
        {"Visual Basic .NET", NULL},
        {"@types/node", NULL},
        {"src/Bericht \xc3\xbc"
         "ber a.txt",
         NULL},
        {"\xe6\x97\xa5\xe6\x9c\xac.md", NULL},
        {"a\xe2\x80\x8c"
         "b",
         NULL}, /* letters that are not joined */
        {"", "empty"},
        {"two\nlines", "control"},
        {"a\tb", "control"},
        {"a\x7f", "control"},
        {"\x1b]0;title\x07", "control"},
        {"a\xc2\x9b"
         "2J",
         "control"}, /* the one-byte form of ESC [ */
        {"a\xe2\x80\xa8"
         "b",
         "control"}, /* a line's end */
        {"a\xe2\x80\xae"
         "txt.exe",
         "control"},
        {"a\xe2\x81\xa6", "control"},
        {"a\xff", "UTF-8"},
        {"a\xed\xa0\x80", "UTF-8"},
        {"\xf0\x9f\x98", "UTF-8"},
    };
    ROWS(WEFT_NAME_LINE, rows);
    CHECK(weft__name_wrong((weft_bytes){"a\0b", 3}, WEFT_NAME_LINE));
}

TEST_MAIN(CASE(words) CASE(rules) CASE(lines))
