/* RFC 8785, with vectors of our own. */
#include <errno.h>
#include <stdlib.h>

#include <weft/json.h>

#include "harness.h"

/* The canonical form of a text, or the errno; owned. */
static int canonical(const char *text, const weft_alloc *alloc, char **ret, size_t *ret_len) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(text, strlen(text), alloc, &doc);
    if (r < 0)
        return r;
    r = weft_to_canonical(weft_doc_root(doc), alloc, ret, ret_len);
    weft_doc_free(doc);
    return r;
}

TEST(forms) {
    static const struct {
        const char *text, *canonical;
    } rows[] = {
        {"null", "null"},
        {" true ", "true"},
        {"[ ]", "[]"},
        {"{ }", "{}"},
        {"[1, 2 ,3 ]", "[1,2,3]"},
        {"{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}"},
        {"{\"a\":1,\"b\":{\"d\":1,\"c\":[{\"z\":0,\"y\":0}]}}", "{\"a\":1,\"b\":{\"c\":[{\"y\":0,\"z\":0}],\"d\":1}}"},
        {"{\"aa\":1,\"a\":2,\"\":3}", "{\"\":3,\"a\":2,\"aa\":1}"},
        {"{\"10\":1,\"9\":2,\"1\":3}", "{\"1\":3,\"10\":1,\"9\":2}"},
        {"{\"a\":1,\"A\":2,\"_\":3}", "{\"A\":2,\"_\":3,\"a\":1}"},
        /* the last of duplicates, in whatever spelling */
        {"{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"},
        {"{\"\\u0061\":1,\"a\":2,\"\\u0061\":3}", "{\"a\":3}"},
        {"{\"a\":1,\"a\":1,\"a\":1,\"a\":4}", "{\"a\":4}"},
        /* UTF-16 order: U+1F600 is D83D DE00 and comes before U+E000 and U+FB33 */
        {"{\"\xEF\xAC\xB3\":1,\"\xF0\x9F\x98\x80\":2,\"\xED\x9F\xBF\":3,\"\xEE\x80\x80\":4}",
         "{\"\xED\x9F\xBF\":3,\"\xF0\x9F\x98\x80\":2,\"\xEE\x80\x80\":4,\"\xEF\xAC\xB3\":1}"},
        {"{\"\xF0\x9F\x98\x81\":1,\"\xF0\x9F\x98\x80\":2,\"\xF4\x8F\xBF\xBF\":3,\"\xF0\x90\x80\x80\":4}",
         "{\"\xF0\x90\x80\x80\":4,\"\xF0\x9F\x98\x80\":2,\"\xF0\x9F\x98\x81\":1,\"\xF4\x8F\xBF\xBF\":3}"},
        {"{\"x\\uFB33\":1,\"x\\ud83d\\ude00\":2,\"x\":3}", "{\"x\":3,\"x\xF0\x9F\x98\x80\":2,\"x\xEF\xAC\xB3\":1}"},
        /* strings: one spelling */
        {"\"\\u0041\\/\\u00e9\\u20AC\\uD83D\\uDE00\"", "\"A/\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""},
        {"\"\\u0008\\u0009\\u000a\\u000C\\u000D\\u0022\\u005C\"", "\"\\b\\t\\n\\f\\r\\\"\\\\\""},
        {"\"\\u0000\\u000B\\u001F\\u007f\"", "\"\\u0000\\u000b\\u001f\x7F\""},
        {"\"\\u2028\\ufeff\"", "\"\xE2\x80\xA8\xEF\xBB\xBF\""},
        /* numbers as ECMAScript has them */
        {"[1.0,-0,0.0,1e2,1E-7,1e21,1e20,0.000001]", "[1,0,0,100,1e-7,1e+21,100000000000000000000,0.000001]"},
        {"333333333.33333329", "333333333.3333333"},
        {"1e-400", "0"},
        {"9007199254740993", "9007199254740992"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *is = NULL, *again = NULL;
        size_t len = 0, again_len = 0;
        test_row(rows[i].text);
        CHECK_INT(canonical(rows[i].text, NULL, &is, &len), 0);
        CHECK_TEXT(is, len, rows[i].canonical);
        if (is)
            CHECK_INT(canonical(is, NULL, &again, &again_len), 0);
        CHECK_TEXT(again, again_len, rows[i].canonical);
        weft_text_free(is, NULL);
        weft_text_free(again, NULL);
    }
}

TEST(refused) {
    static const char *const rows[] = {
        "\"\\ud800\"",     "\"\\udc00\"",        "\"\\ud800x\"", "[\"\\ud800\\ud800\"]",
        "{\"\\udfff\":1}", "\"\\udc00\\ud800\"", "1e309",        "[-1e400]",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *is = NULL;
        size_t len = 42;
        test_row(rows[i]);
        CHECK_INT(canonical(rows[i], NULL, &is, &len), -EBADMSG);
        CHECK(is == NULL && len == 42);
    }
    test_row("absent");
    char *is = NULL;
    size_t len;
    CHECK_INT(weft_to_canonical(&(weft_json){0}, NULL, &is, &len), -EINVAL);
}

/* Enough members for every turn of the sort, from several orders. */
TEST(many_members) {
    enum { COUNT = 1000 };
    static const unsigned steps[] = {1, 999, 7, 333, 501};
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        char *text = malloc(COUNT * 16), *p = text, *is = NULL, *want = malloc(COUNT * 16), *w = want;
        size_t len = 0;
        if (CHECK(text && want)) {
            *p++ = '{', *w++ = '{';
            for (unsigned i = 0; i < COUNT; i++) {
                unsigned n = i * steps[s] % COUNT;
                p += sprintf(p, "\"k%03u\":%u%s", n, n, i + 1 < COUNT ? "," : "}");
                w += sprintf(w, "\"k%03u\":%u%s", i, i, i + 1 < COUNT ? "," : "}");
            }
            CHECK_INT(canonical(text, NULL, &is, &len), 0);
            CHECK_TEXT(is, len, want);
        }
        weft_text_free(is, NULL);
        free(text);
        free(want);
    }
}

TEST(depth) {
    char text[257] = {0}, *is = NULL;
    size_t len = 0;
    memset(text, '[', 128);
    memset(text + 128, ']', 128);
    CHECK_INT(canonical(text, NULL, &is, &len), 0);
    CHECK_TEXT(is, len, text);
    weft_text_free(is, NULL);
}

TEST(memory_runs_out) {
    static const char text[] = "{\"b\\n\":[1,2,{\"x\":\"\\u0041\\\\\"}],\"a\":{\"c\":null,\"\\u0062\":1.5}}";
    long failed = 0;
    for (long n = 1; n < 1000; n++) {
        test_memory memory;
        char *is = NULL;
        size_t len = 0;
        test_memory_init(&memory, n);
        int r = canonical(text, &memory.alloc, &is, &len);
        if (r >= 0) {
            CHECK_TEXT(is, len, "{\"a\":{\"b\":1.5,\"c\":null},\"b\\n\":[1,2,{\"x\":\"A\\\\\"}]}");
            weft_text_free(is, &memory.alloc);
            CHECK_INT(memory.live, 0);
            break;
        }
        failed++;
        CHECK_INT(r, -ENOMEM);
        CHECK(is == NULL);
        CHECK_INT(memory.live, 0);
    }
    CHECK(failed >= 5);
}

TEST_MAIN(CASE(forms) CASE(refused) CASE(many_members) CASE(depth) CASE(memory_runs_out))
