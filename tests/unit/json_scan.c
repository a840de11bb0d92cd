/* The scanner: what is JSON and where a value ends, at every border that vectors, sentinels and limits have. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "buf.h"
#include "harness.h"
#include "json_reference.h"
#include "scan.h"

/* Memory that ends exactly where the slack ends: one byte further is a page that may not be read. */
static struct {
    char *base;
    size_t size;
} guarded;

static bool guard(void) {
    if (guarded.base)
        return true;
    size_t page = (size_t) sysconf(_SC_PAGESIZE);
    guarded.size = 4 * page;
    char *base = mmap(NULL, guarded.size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base + guarded.size, page, PROT_NONE) < 0)
        return false;
    guarded.base = base;
    return true;
}

/* The text so that NUL and slack fill the memory to its last byte. What lies in the slack must not matter: fill says what.
 */
static char *place(const char *text, size_t len, char fill) {
    char *start = guarded.base + guarded.size - WEFT_SLACK - 1 - len;
    memcpy(start, text, len);
    start[len] = '\0';
    memset(start + len + 1, fill, WEFT_SLACK);
    return start;
}

static bool scans(const char *text, size_t len) {
    bool first = false;
    for (size_t i = 0; i < 6; i++) {
        char *start = place(text, len, "\0\"\\}7\xBF"[i]);
        const char *end = weft__scan_value(weft__scan_ws(start), WEFT_MAX_DEPTH);
        bool valid = end && weft__scan_ws(end) == start + len;
        if (i == 0)
            first = valid;
        CHECK(valid == first);
    }
    return first;
}

struct row {
    const char *text;
    bool valid;
};

static void check_rows(const struct row *rows, size_t count) {
    REQUIRE(guard());
    for (size_t i = 0; i < count; i++) {
        test_row(rows[i].text);
        CHECK(scans(rows[i].text, strlen(rows[i].text)) == rows[i].valid);
        CHECK(reference_valid(rows[i].text, strlen(rows[i].text), WEFT_MAX_DEPTH) == rows[i].valid);
    }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof rows / sizeof rows[0])

/* They are read one after the other, without looking at what else an item could be. */
TEST(numbers_behind_numbers) {
    static const struct row rows[] = {
        {"[1,2,-3,4.5,6e7,-0.8E-9,0]", true},
        {"[0,0,-0,10]", true},
        {"[1,2 ,3, 4,\n5]", true},
        {"[1,\"a\",2,null,3,true,4,[5,6],7,{},8]", true},
        {"[[1,2],[3,4],[-5]]", true},
        {"{\"a\":[1,2],\"b\":3,\"c\":4}", true},
        {"[1,2", false},
        {"[1,2}", false},
        {"[1,2,", false},
        {"[1,2,]", false},
        {"[1,-]", false},
        {"[1,--2]", false},
        {"[1,2,01]", false},
        {"[1,2,-01]", false},
        {"[1,2,3.]", false},
        {"[1,2,3.e1]", false},
        {"[1,2,3e]", false},
        {"[1,2,+3]", false},
        {"[1,2,.3]", false},
        {"[1,2,3a]", false},
        {"[1,2\"a\"]", false},
        {"[1,2[3]]", false},
        {"[1,2:3]", false},
        {"{\"a\":1,2}", false},
        {"{\"a\":1,2,3}", false},
        {"1,2", false},
    };
    CHECK_ROWS(rows);
}

TEST(structure) {
    static const struct row rows[] = {
        {"{}", true},
        {"[]", true},
        {" \t\r\n[ \t\r\n] \t\r\n", true},
        {"{ \"a\" : 1 , \"b\" : [ ] }", true},
        {"[[],{},[[]],{\"a\":{}}]", true},
        {"{\"a\":1,\"a\":2}", true},
        {"{\"\":0}", true},
        {"null", true},
        {"true", true},
        {"false", true},
        {"\"\"", true},
        {"0", true},
        {"", false},
        {" ", false},
        {"[", false},
        {"]", false},
        {"{", false},
        {"}", false},
        {"[}", false},
        {"{]", false},
        {"[1}", false},
        {"{\"a\":1]", false},
        {"[1,]", false},
        {"[,1]", false},
        {"[,]", false},
        {"[1 2]", false},
        {"[1,,2]", false},
        {"{\"a\":1,}", false},
        {"{,\"a\":1}", false},
        {"{\"a\"}", false},
        {"{\"a\":}", false},
        {"{\"a\" 1}", false},
        {"{\"a\"::1}", false},
        {"{\"a\":1:2}", false},
        {"{\"a\",1}", false},
        {"{a:1}", false},
        {"{1:1}", false},
        {"{null:1}", false},
        {"{'a':1}", false},
        {"[\"a\":1]", false},
        {"[] []", false},
        {"{}{}", false},
        {"[]]", false},
        {"1 2", false},
        {"nul", false},
        {"nulll", false},
        {"Null", false},
        {"TRUE", false},
        {"tru", false},
        {"truee", false},
        {"fals", false},
        {"falsf", false},
        {"undefined", false},
        {"NaN", false},
        {"Infinity", false},
        {"-Infinity", false},
        {"[1]x", false},
        {"/* */1", false},
        {"1 // one", false},
        {"\xEF\xBB\xBF{}", false},
        {"\v1", false},
        {"\f1", false},
        {"\xC2\xA0"
         "1",
         false},
        {"[\xC2\xA0]", false},
    };
    CHECK_ROWS(rows);
}

TEST(numbers) {
    static const struct row rows[] = {
        {"0", true},
        {"-0", true},
        {"1", true},
        {"-1", true},
        {"10", true},
        {"1234567890", true},
        {"0.0", true},
        {"-0.0", true},
        {"0.5", true},
        {"1.25", true},
        {"1e1", true},
        {"1E1", true},
        {"1e+1", true},
        {"1e-1", true},
        {"0e0", true},
        {"0E+00", true},
        {"1.5e10", true},
        {"1e0001", true},
        {"1e999999999999999999999999", true},
        {"123456789012345678901234567890.123456789012345678901234567890", true},
        {"[0]", true},
        {"[-0,1]", true},
        {"[1.5 ]", true},
        {"", false},
        {"-", false},
        {"--1", false},
        {"+1", false},
        {"00", false},
        {"01", false},
        {"-01", false},
        {"1.", false},
        {".5", false},
        {"-.5", false},
        {"1.e1", false},
        {"1..2", false},
        {"1.2.3", false},
        {"1e", false},
        {"1e+", false},
        {"1e-", false},
        {"1E", false},
        {"1ee1", false},
        {"1e1.5", false},
        {"1e+-1", false},
        {"e1", false},
        {"0x10", false},
        {"0b1", false},
        {"1_000", false},
        {"1,000", false},
        {"1f", false},
        {"1n", false},
        {"[1.]", false},
        {"[1e]", false},
        {"[-]", false},
        {"[0-1]", false},
        {"1 000", false},
        {"\xEF\xBC\x91", false},
    };
    CHECK_ROWS(rows);
}

TEST(strings) {
    static const struct row rows[] = {
        {"\"a\"", true},
        {"\" \"", true},
        {"\"\x7F\"", true},
        {"\"/\"", true},
        {"\"'\"", true},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", true},
        {"\"\\u0000\\uFFFF\\uabcd\\uABCD\"", true},
        {"\"\\uD834\\uDD1E\"", true},
        {"\"\\uD800\"", true},
        {"\"\\uDC00\\uD800\"", true},
        {"\"", false},
        {"\"a", false},
        {"a\"", false},
        {"\"\\\"", false},
        {"\"\\\\\\\"", false},
        {"\"\\", false},
        {"\"\\x41\"", false},
        {"\"\\a\"", false},
        {"\"\\v\"", false},
        {"\"\\0\"", false},
        {"\"\\'\"", false},
        {"\"\\U0041\"", false},
        {"\"\\u\"", false},
        {"\"\\u0\"", false},
        {"\"\\u00\"", false},
        {"\"\\u000\"", false},
        {"\"\\u000g\"", false},
        {"\"\\u00 0\"", false},
        {"\"\\u+123\"", false},
        {"\"\\u-123\"", false},
        {"\"\\u\xC3\xA9"
         "12\"",
         false},
        {"\"\\ \"", false},
        {"\"\\\n\"", false},
        {"\"\n\"", false},
        {"\"\r\"", false},
        {"\"\t\"", false},
        {"\"\x01\"", false},
        {"\"\x1F\"", false},
        {"'a'", false},
        {"\"a\"b", false},
        {"\"a\" \"b\"", false},
    };
    CHECK_ROWS(rows);
}

TEST(utf8) {
    static const struct row rows[] = {
        {"\"\xC2\x80\"", true},         /* U+0080, the first of two bytes */
        {"\"\xDF\xBF\"", true},         /* U+07FF */
        {"\"\xE0\xA0\x80\"", true},     /* U+0800, the first of three */
        {"\"\xED\x9F\xBF\"", true},     /* U+D7FF, before the surrogates */
        {"\"\xEE\x80\x80\"", true},     /* U+E000, behind them */
        {"\"\xEF\xBF\xBD\"", true},     /* U+FFFD */
        {"\"\xEF\xBF\xBF\"", true},     /* U+FFFF, no character and yet valid */
        {"\"\xF0\x90\x80\x80\"", true}, /* U+10000, the first of four */
        {"\"\xF4\x8F\xBF\xBF\"", true}, /* U+10FFFF, the last */
        {"\"\x80\"", false},            /* a continuation alone */
        {"\"\xBF\"", false},
        {"\"\xC0\x80\"", false}, /* overlong NUL */
        {"\"\xC0\xAF\"", false}, /* overlong slash */
        {"\"\xC1\xBF\"", false},
        {"\"\xC2\"", false}, /* cut short */
        {"\"\xC2\x7F\"", false},
        {"\"\xC2\xC0\"", false},
        {"\"\xC2\x80\x80\"", false}, /* one too many */
        {"\"\xE0\x80\x80\"", false}, /* overlong */
        {"\"\xE0\x9F\xBF\"", false},
        {"\"\xE1\x80\"", false},
        {"\"\xE1\"", false},
        {"\"\xE1\x80\x7F\"", false},
        {"\"\xE1\x7F\x80\"", false},
        {"\"\xE1\x80\xC0\"", false},
        {"\"\xED\xA0\x80\"", false},             /* U+D800 */
        {"\"\xED\xBF\xBF\"", false},             /* U+DFFF */
        {"\"\xED\xA0\x81\xED\xB0\x80\"", false}, /* CESU-8 */
        {"\"\xF0\x80\x80\x80\"", false},         /* overlong */
        {"\"\xF0\x8F\xBF\xBF\"", false},
        {"\"\xF1\x80\x80\"", false},
        {"\"\xF1\x80\"", false},
        {"\"\xF1\"", false},
        {"\"\xF1\x80\x80\x7F\"", false},
        {"\"\xF1\x80\x7F\x80\"", false},
        {"\"\xF1\x7F\x80\x80\"", false},
        {"\"\xF1\xC0\x80\x80\"", false},
        {"\"\xF4\x90\x80\x80\"", false}, /* U+110000 */
        {"\"\xF5\x80\x80\x80\"", false},
        {"\"\xF8\x88\x80\x80\x80\"", false}, /* five bytes, of old */
        {"\"\xFC\x84\x80\x80\x80\x80\"", false},
        {"\"\xFE\"", false},
        {"\"\xFF\"", false},
        {"\xC3\xA9", false}, /* not in a string */
        {"{\"\xC3\xA9\":\"\xE2\x82\xAC\"}", true},
        {"{\"\xC3\":1}", false},
    };
    CHECK_ROWS(rows);
}

/* Every two-byte beginning, judged by value in the reference. */
TEST(utf8_pairs) {
    REQUIRE(guard());
    long wrong = 0;
    for (unsigned a = 0x80; a < 0x100; a++)
        for (unsigned b = 0x20; b < 0x100; b++)
            for (unsigned tail = 0; tail < 3; tail++) {
                char text[8] = {'"', (char) a, (char) b, (char) 0x80, (char) 0x80, 0};
                text[3 + tail] = '"';
                size_t len = 4 + tail;
                char *start = place(text, len, '\0');
                wrong += (weft__scan_value(start, 1) == start + len) != reference_valid(text, len, 1);
            }
    CHECK_INT(wrong, 0);
}

static void nest(char *text, const char *open, const char *inside, char close, int levels) {
    char *p = text;
    for (int i = 0; i < levels; i++)
        p = stpcpy(p, open);
    p = stpcpy(p, inside);
    memset(p, close, (size_t) levels);
    p[levels] = '\0';
}

TEST(depth) {
    static const struct {
        const char *name, *open, *inside;
        char close;
        int levels;
        bool valid;
    } rows[] = {
        {"127 arrays", "[", "", ']', 127, true},           {"128 arrays", "[", "", ']', 128, true},
        {"129 arrays", "[", "", ']', 129, false},          {"128 objects", "{\"a\":", "{}", '}', 127, true},
        {"129 objects", "{\"a\":", "{}", '}', 128, false}, {"a scalar in 128", "[", "1", ']', 128, true},
        {"2000 arrays", "[", "", ']', 2000, false},        {"64", "[", "", ']', 64, true},
        {"65 with blanks", "[ ", " 1 ", ']', 65, true},
    };
    char text[16384];
    REQUIRE(guard());
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        nest(text, rows[i].open, rows[i].inside, rows[i].close, rows[i].levels);
        CHECK(scans(text, strlen(text)) == rows[i].valid);
        CHECK(reference_valid(text, strlen(text), WEFT_MAX_DEPTH) == rows[i].valid);
    }
    test_row("depth as asked for");
    CHECK(weft__scan_value(place("1", 1, 0), 0) != NULL);
    CHECK(weft__scan_value(place("[]", 2, 0), 0) == NULL);
    CHECK(weft__scan_value(place("[]", 2, 0), 1) != NULL);
    CHECK(weft__scan_value(place("[{}]", 4, 0), 1) == NULL);
    CHECK(weft__scan_value(place("[{}]", 4, 0), 2) != NULL);
    nest(text, "[", "", ']', 129);
    CHECK(weft__scan_value(place(text, strlen(text), 0), 1000) == NULL);
}

static const char sample[] =
    "{\"jsonrpc\": \"2.0\", \"id\": -1.5e+10, \"method\": \"t\\u00e9st/\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\","
    "\n \"params\": [true, false, null, {\"k\": []}, \"a longer string that fills two vectors\\n\", 0.25]}";

TEST(truncated) {
    REQUIRE(guard());
    REQUIRE(scans(sample, strlen(sample)));
    for (size_t len = 0; len < strlen(sample); len++)
        CHECK(!scans(sample, len));
}

/* One byte changed, at every place: the same verdict as the reference. */
TEST(one_byte_changed) {
    static const char bytes[] = "\0\x01\x1F\n \"\\/{}[]:,-+.019eEutfn\x7F\x80\xBF\xC2\xE0\xED\xF0\xF4\xFF";
    char text[sizeof sample];
    REQUIRE(guard());
    for (size_t at = 0; at < strlen(sample); at++) {
        memcpy(text, sample, sizeof sample);
        for (size_t i = 0; i < sizeof bytes - 1; i++) {
            text[at] = bytes[i];
            char *start = place(text, strlen(sample), '"');
            const char *end = weft__scan_value(weft__scan_ws(start), WEFT_MAX_DEPTH);
            bool valid = end && weft__scan_ws(end) == start + strlen(sample);
            if (!CHECK(valid == reference_valid(text, strlen(sample), WEFT_MAX_DEPTH)))
                printf("  byte %zu as 0x%02x\n", at, (unsigned char) bytes[i]);
        }
    }
}

/* A string of every length with something special at every place of it, at every alignment. */
TEST(every_place_in_a_vector) {
    static const char *const specials[] = {"\\n",  "\\u00e9", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\\\\", "\x01",
                                           "\n",   "\xC3",    "\x80",     "\\x",          "\xE2\x82",         "\x1F", "\xFF",
                                           "\\\"", ""};
    enum { LONGEST = 150 };
    char text[LONGEST + 16];
    long wrong = 0;
    REQUIRE(guard());
    for (size_t s = 0; s < sizeof specials / sizeof specials[0]; s++)
        for (size_t total = 0; total <= LONGEST; total++)
            for (size_t at = 0; at <= total; at++) {
                size_t n = strlen(specials[s]), len = total + n + 2;
                memset(text, 'x', sizeof text);
                text[0] = text[len - 1] = '"';
                memcpy(text + 1 + at, specials[s], n);
                /* Placed at the guard, a longer text starts at another alignment. */
                char *start = place(text, len, 'x');
                bool valid = weft__scan_value(start, 0) == start + len;
                wrong += valid != reference_valid(text, len, 0);
            }
    CHECK_INT(wrong, 0);
}

/* Long enough for the 64-byte steps, and each place of such a step. */
TEST(long_strings) {
    enum { LEN = 1024 };
    char text[LEN];
    REQUIRE(guard());
    for (size_t at = 1; at < LEN - 1; at++) {
        memset(text, 'x', LEN);
        text[0] = text[LEN - 1] = '"';
        text[at] = '\x1F';
        char *start = place(text, LEN, 0);
        CHECK(weft__scan_value(start, 0) == NULL);
        start[at] = '"';
        CHECK(weft__scan_value(start, 0) == start + at + 1);
        start[at] = '\x7F';
        CHECK(weft__scan_value(start, 0) == start + LEN);
    }
}

TEST(string) {
    static const struct {
        const char *text;
        long len; /* -1: NULL */
        bool escaped;
    } rows[] = {
        {"\"\"", 2, false},
        {"\"ab\":1", 4, false},
        {"\"a\\nb\",", 6, true},
        {"\"0123456789abcdef\" ", 18, false},
        {"\"0123456789abcde\\t\" ", 19, true},
        {"\"0123456789abcdef\\t\" ", 20, true},
        {"\"\xC3\xA9\"", 4, false},
        {"\"\xC3\xA9\\\"\"x", 6, true},
        {"\"ab", -1, false},
        {"\"a\nb\"", -1, false},
    };
    REQUIRE(guard());
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].text);
        bool escaped = !rows[i].escaped;
        char *start = place(rows[i].text, strlen(rows[i].text), '"');
        const char *end = weft__scan_string(start, &escaped);
        CHECK_INT(end ? end - start : -1, rows[i].len);
        if (end)
            CHECK(escaped == rows[i].escaped);
    }
}

TEST(params) {
    static const struct {
        const char *text, *meta; /* NULL: none */
        bool valid;
    } rows[] = {
        {"{}", NULL, true},
        {"{ }", NULL, true},
        {"{\"a\":1}", NULL, true},
        {"{\"_meta\":{\"x\":1}}", "{\"x\":1}", true},
        {"{ \"_meta\" : 7 , \"a\" : [ ] }", "7", true},
        {"{\"a\":{\"_meta\":1}}", NULL, true},
        {"{\"a\":[{\"_meta\":1}],\"_meta\":\"m\"}", "\"m\"", true},
        {"{\"_meta\":1,\"_meta\":{}}", "{}", true},
        {"{\"_meta\":1,\"\\u005fmeta\":2}", "2", true},
        {"{\"\\u005f\\u006D\\u0065\\u0074\\u0061\":null}", "null", true},
        {"{\"_met\\u0061\":[1, 2]}", "[1, 2]", true},
        {"{\"_metA\":1,\"_met\":2,\"_meta_\":3,\"__meta\":4}", NULL, true},
        {"{\"_me\\ta\":1}", NULL, true},
        {"{\"_meta\\u0000\":1}", NULL, true},
        {"{", NULL, false},
        {"{\"_meta\"}", NULL, false},
        {"{\"_meta\":}", NULL, false},
        {"{\"_meta\":1,}", NULL, false},
        {"{,}", NULL, false},
        {"{\"a\":1 \"b\":2}", NULL, false},
        {"{\"_meta\":1]", NULL, false},
        {"{\"_meta\":1", NULL, false},
        {"{_meta:1}", NULL, false},
    };
    REQUIRE(guard());
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].text);
        size_t len = strlen(rows[i].text);
        char *start = place(rows[i].text, len, '}');
        weft_bytes meta = {"untouched", 9};
        const char *end = weft__scan_params(start, WEFT_MAX_DEPTH, &meta);
        CHECK((end == start + len) == rows[i].valid);
        if (!rows[i].valid)
            CHECK_TEXT(meta.data, meta.len, "untouched");
        else if (rows[i].meta)
            CHECK_TEXT(meta.data, meta.len, rows[i].meta);
        else
            CHECK(meta.data == NULL && meta.len == 0);
    }
}

TEST(params_depth) {
    weft_bytes meta;
    REQUIRE(guard());
    CHECK(weft__scan_params(place("{}", 2, 0), 0, &meta) == NULL);
    CHECK(weft__scan_params(place("{}", 2, 0), 1, &meta) != NULL);
    CHECK(weft__scan_params(place("{\"a\":1}", 7, 0), 1, &meta) != NULL);
    CHECK(weft__scan_params(place("{\"a\":[]}", 8, 0), 1, &meta) == NULL);
    CHECK(weft__scan_params(place("{\"a\":[]}", 8, 0), 2, &meta) != NULL);
}

/* Every prefix and every changed byte: weft__scan_params() accepts an object exactly when weft__scan_value() does. */
TEST(params_agree_with_value) {
    static const char text[] = "{\"a\":[1,{}],\"_m\\u0065ta\":{\"b\":\"c\"}, \"_meta\":-1.5e3 }";
    static const char bytes[] = "\0 \"\\{}[]:,0ex\x80";
    char changed[sizeof text];
    weft_bytes meta;
    REQUIRE(guard());
    for (size_t at = 1; at < strlen(text); at++)
        for (size_t i = 0; i < sizeof bytes - 1; i++) {
            memcpy(changed, text, sizeof text);
            changed[at] = bytes[i];
            char *start = place(changed, strlen(text), 0);
            CHECK(weft__scan_params(start, WEFT_MAX_DEPTH, &meta) == weft__scan_value(start, WEFT_MAX_DEPTH));
        }
}

/* Numbers of a million digits and a million brackets take no more stack than small ones. */
TEST(hostile_sizes) {
    enum { SIZE = 1000000 };
    char *text = malloc(SIZE + 1 + WEFT_SLACK);
    REQUIRE(text);
    memset(text, '9', SIZE);
    memset(text + SIZE, 0, 1 + WEFT_SLACK);
    CHECK(weft__scan_value(text, 0) == text + SIZE);
    text[1] = '.';
    CHECK(weft__scan_value(text, 0) == text + SIZE);
    text[2] = 'e';
    CHECK(weft__scan_value(text, 0) == NULL);
    memset(text, '[', SIZE);
    CHECK(weft__scan_value(text, WEFT_MAX_DEPTH) == NULL);
    memset(text, ' ', SIZE);
    CHECK(weft__scan_ws(text) == text + SIZE);
    CHECK(weft__scan_value(weft__scan_ws(text), WEFT_MAX_DEPTH) == NULL);
    free(text);
}

TEST_MAIN(CASE(structure) CASE(numbers_behind_numbers) CASE(numbers) CASE(strings) CASE(utf8) CASE(utf8_pairs) CASE(depth)
              CASE(truncated) CASE(one_byte_changed) CASE(every_place_in_a_vector) CASE(long_strings) CASE(string)
                  CASE(params) CASE(params_depth) CASE(params_agree_with_value) CASE(hostile_sizes))
