/* The writer: every kind of value, every escape, and a buffer that is as it was when something fails. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "harness.h"
#include "scan.h"
#include "write.h"

static void check_text(weft_val value, const char *want) {
    char *text = NULL;
    size_t len = 0;
    CHECK_INT(weft_to_text(value, NULL, &text, &len), 0);
    CHECK_TEXT(text, len, want);
    if (text)
        CHECK_INT(text[len], '\0');
    weft_text_free(text, NULL);
}

TEST(scalars) {
    check_text(weft_null(), "null");
    check_text(weft_none(), "null");
    check_text(weft_bool(true), "true");
    check_text(weft_bool(false), "false");
    check_text(weft_int(0), "0");
    check_text(weft_int(-1), "-1");
    check_text(weft_int(1234567890), "1234567890");
    check_text(weft_int(INT64_MAX), "9223372036854775807");
    check_text(weft_int(INT64_MIN), "-9223372036854775808");
    check_text(weft_uint(UINT64_MAX), "18446744073709551615");
    check_text(weft_num(0.1), "0.1");
    check_text(weft_num(-0.0), "0");
    check_text(weft_num(1e300), "1e+300");
    check_text(weft_num(NAN), "null");
    check_text(weft_num(INFINITY), "null");
    check_text(weft_num(-INFINITY), "null");
    check_text(weft_str(NULL), "null");
    check_text(weft_strn(NULL, 0), "null");
    check_text(weft_strn("abc", 2), "\"ab\"");
    check_text(weft_raw("[1, 2]", 6), "[1, 2]");
    check_text(weft_raw(NULL, 0), "null");
    check_text(weft_copy(&(weft_json){0}), "null");
    check_text(weft_copy(NULL), "null");
    check_text(weft_copy(&(weft_json){.text = "1.0e0,", .len = 5}), "1.0e0");
}

TEST(what_cannot_be_written) {
    char *text = NULL;
    CHECK_INT(weft_to_text(weft_raw("", 0), NULL, &text, NULL), -EINVAL);
    CHECK_INT(weft_to_text(weft_arr(NULL, 1), NULL, &text, NULL), -EINVAL);
    CHECK_INT(weft_to_text(WEFT_OBJ({"a", weft_obj(NULL, 1)}), NULL, &text, NULL), -EINVAL);
    CHECK(text == NULL);
}

TEST(containers) {
    check_text(weft_arr(NULL, 0), "[]");
    check_text(weft_obj(NULL, 0), "{}");
    check_text(WEFT_ARR(weft_int(1), weft_none(), weft_str("x")), "[1,null,\"x\"]");
    check_text(WEFT_OBJ({"a", weft_int(1)}, {"b\n", WEFT_ARR(weft_null(), WEFT_OBJ({"", weft_bool(true)}))}),
               "{\"a\":1,\"b\\n\":[null,{\"\":true}]}");
    /* Members that are none leave no trace, wherever they stand. */
    check_text(WEFT_OBJ({"a", weft_none()}), "{}");
    check_text(WEFT_OBJ({"a", weft_none()}, {"b", weft_int(1)}, {"c", weft_none()}, {"d", weft_int(2)}, {"e", weft_none()}),
               "{\"b\":1,\"d\":2}");
}

/* What is written fits on a line, wherever a copied text has its line ends and however long it is. The text ends exactly
 * where its memory does, so that a sanitizer sees a look beyond. */
TEST(line_ends_become_blanks) {
    static const char *const ends[] = {"\n", "\r", "\t"};
    for (size_t len = 2; len <= 70; len++)
        for (size_t at = 1; at + 1 < len; at++)
            for (size_t i = 0; i < 3; i++) {
                char *text = malloc(len), want[80];
                memset(text, ' ', len);
                text[0] = '[', text[len - 1] = ']', text[at] = ends[i][0];
                memcpy(want, text, len);
                want[at] = ends[i][0] == '\t' ? '\t' : ' ';
                want[len] = '\0';
                check_text(weft_raw(text, len), want);
                free(text);
            }
    check_text(WEFT_OBJ({"a", weft_raw("[\n1\r\n]", 6)}), "{\"a\":[ 1  ]}");
}

TEST(escapes) {
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"\"", "\"\\\"\""},
        {"\\", "\"\\\\\""},
        {"/", "\"/\""},
        {"\b\t\n\f\r", "\"\\b\\t\\n\\f\\r\""},
        {"\x01\x02\x07\x0B\x0E\x1F", "\"\\u0001\\u0002\\u0007\\u000b\\u000e\\u001f\""},
        {" \x7F", "\" \x7F\""},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""},
        {"\xF4\x8F\xBF\xBF\xEF\xBF\xBF", "\"\xF4\x8F\xBF\xBF\xEF\xBF\xBF\""},
        {"\x80", "\"\xEF\xBF\xBD\""},
        {"\xC3", "\"\xEF\xBF\xBD\""},
        {"a\xC3z", "\"a\xEF\xBF\xBDz\""},
        {"\xC3\"", "\"\xEF\xBF\xBD\\\"\""},
        {"\xE2\x82", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xF0\x9F\x98", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xC0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xF4\x90\x80\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xFF\xFE", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"0123456789abcdef0123456789abcdef\n", "\"0123456789abcdef0123456789abcdef\\n\""},
        {"0123456789abcdef\"0123456789abcdef", "\"0123456789abcdef\\\"0123456789abcdef\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].want);
        check_text(weft_str(rows[i].text), rows[i].want);
    }
    test_row("NUL");
    check_text(weft_strn("a\0b", 3), "\"a\\u0000b\"");
}

/* A string of every length up to three vectors with one special at every place, in memory that ends with it, so that a
 * checker sees any read behind it. */
TEST(every_place_in_a_vector) {
    static const struct {
        const char *text, *want;
    } specials[] = {
        {"\n", "\\n"},
        {"\"", "\\\""},
        {"\xC3\xA9", "\xC3\xA9"},
        {"\xFF", "\xEF\xBF\xBD"},
        {"\\", "\\\\"},
        {"\x1F", "\\u001f"},
        {"\x7F", "\x7F"},
        {" ", " "},
        {"\xC3", "\xEF\xBF\xBD"},
    };
    for (size_t s = 0; s < sizeof specials / sizeof specials[0]; s++)
        for (size_t len = 0; len <= 50; len++)
            for (size_t at = 0; at <= len; at++) {
                char want[128] = "\"";
                size_t n = strlen(specials[s].text);
                char *text = malloc(len + n);
                REQUIRE(text);
                memset(text, 'x', len + n);
                memcpy(text + at, specials[s].text, n);
                memset(want + 1, 'x', at);
                strcpy(want + 1 + at, specials[s].want);
                memset(want + strlen(want), 'x', len - at);
                strcat(want, "\"");
                check_text(weft_strn(text, len + n), want);
                free(text);
            }
}

/* What the writer writes, the scanner accepts: every byte, alone and between others. */
TEST(always_valid) {
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) {
            char bytes[] = {(char) a, (char) b, 'x', (char) b, (char) a};
            char *text = NULL;
            size_t len = 0;
            CHECK_INT(weft_to_text(weft_strn(bytes, sizeof bytes), NULL, &text, &len), 0);
            weft_doc *doc = NULL;
            CHECK_INT(weft_doc_parse(text, len, NULL, &doc), 0);
            weft_doc_free(doc);
            weft_text_free(text, NULL);
        }
}

TEST(depth) {
    weft_val levels[130];
    char *text = NULL;
    size_t len = 0;
    levels[0] = weft_arr(NULL, 0);
    for (size_t i = 1; i < 130; i++)
        levels[i] = weft_arr(&levels[i - 1], 1);
    CHECK_INT(weft_to_text(levels[127], NULL, &text, &len), 0);
    CHECK_INT(len, 256);
    weft_text_free(text, NULL);
    text = NULL;
    CHECK_INT(weft_to_text(levels[128], NULL, &text, &len), -EINVAL);
    CHECK(text == NULL);
}

TEST(appending) {
    weft_buf buf = {0};
    CHECK_INT(weft__write_raw(&buf, NULL, "[", 1), 0);
    CHECK_INT(weft__write_int(&buf, NULL, -17), 0);
    CHECK_INT(weft__write_raw(&buf, NULL, ",", 1), 0);
    CHECK_INT(weft__write_str(&buf, NULL, "a\tb", 3), 0);
    CHECK_INT(weft__write_raw(&buf, NULL, ",", 1), 0);
    CHECK_INT(weft__write_val(&buf, NULL, &(weft_val){.kind = WEFT_VAL_NONE}), 0);
    CHECK_INT(weft__write_raw(&buf, NULL, "]", 1), 0);
    CHECK_TEXT(weft__buf_head(&buf), weft__buf_len(&buf), "[-17,\"a\\tb\",null]");
    weft__buf_done(&buf, NULL);
}

TEST(hints) {
    weft_val raw = weft_raw("[1,2]", 5), object = WEFT_OBJ({"name", weft_str("value")}, {"list", WEFT_ARR(weft_int(1))});
    CHECK_INT(weft__val_hint(&raw), 5);
    CHECK(weft__val_hint(&object) >= strlen("{\"name\":\"value\",\"list\":[1]}"));
    CHECK(weft__val_hint(&object) < 100);
}

/* Write into a buffer that already holds something and has been read from; on failure it must hold just that. */
static int write_with(const weft_alloc *alloc, weft_val value, const char *want) {
    weft_buf buf = {0};
    int r = weft__buf_put(&buf, alloc, "xxbefore", 8);
    if (r < 0)
        return r;
    weft__buf_take(&buf, alloc, 2);
    r = weft__write_val(&buf, alloc, &value);
    CHECK_TEXT(weft__buf_head(&buf), weft__buf_len(&buf), r < 0 ? "before" : want);
    weft__buf_done(&buf, alloc);
    return r;
}

TEST(memory_runs_out) {
    enum { LONG = 3000 };
    char text[LONG + 1], want[2 * LONG + 64];
    char *p = stpcpy(want, "before{\"a\":[\"");
    for (size_t i = 0; i < LONG; i++) {
        text[i] = i % 3 ? 'x' : '\n';
        p = stpcpy(p, i % 3 ? "x" : "\\n");
    }
    text[LONG] = '\0';
    strcpy(p, "\",1.5,-7]}");
    weft_val list[] = {weft_str(text), weft_num(1.5), weft_int(-7)};
    weft_member members[] = {{"a", weft_arr(list, 3)}};
    long failed = 0;
    for (;;) {
        test_memory memory;
        test_memory_init(&memory, failed + 1);
        int r = write_with(&memory.alloc, weft_obj(members, 1), want);
        CHECK_INT(memory.live, 0);
        if (r >= 0)
            break;
        CHECK_INT(r, -ENOMEM);
        if (++failed > 100)
            break;
    }
    CHECK(failed >= 3 && failed <= 100);
}

TEST(text_without_memory) {
    test_memory memory;
    char *text = NULL;
    size_t len = 42;
    test_memory_init(&memory, 1);
    CHECK_INT(weft_to_text(weft_int(1), &memory.alloc, &text, &len), -ENOMEM);
    CHECK(text == NULL && len == 42);
    CHECK_INT(memory.live, 0);
}

TEST_MAIN(CASE(scalars) CASE(what_cannot_be_written) CASE(containers) CASE(line_ends_become_blanks) CASE(escapes)
              CASE(every_place_in_a_vector) CASE(always_valid) CASE(depth) CASE(appending) CASE(hints) CASE(memory_runs_out)
                  CASE(text_without_memory))
