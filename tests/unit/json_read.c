/* The lazy reader: types, members, items, pointers, values and what happens when they are not what was asked for. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "doc.h"
#include "harness.h"

/* A document of a literal; the tests that use it have no other way to fail. */
static weft_doc *parse(const char *text) {
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    return doc;
}

TEST(types) {
    static const struct {
        const char *text;
        weft_type type;
    } rows[] = {
        {"null", WEFT_NULL}, {"true", WEFT_BOOL},   {"false", WEFT_BOOL}, {"0", WEFT_NUMBER},
        {"-1", WEFT_NUMBER}, {"\"\"", WEFT_STRING}, {"[]", WEFT_ARRAY},   {" {} ", WEFT_OBJECT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].text);
        weft_doc *doc = parse(rows[i].text);
        CHECK_INT(weft_typeof(weft_doc_root(doc)), rows[i].type);
        weft_doc_free(doc);
    }
    test_row("absent");
    CHECK_INT(weft_typeof(NULL), WEFT_ABSENT);
    CHECK_INT(weft_typeof(&(weft_json){0}), WEFT_ABSENT);
}

TEST(documents) {
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse("", 0, NULL, &doc), -EBADMSG);
    CHECK_INT(weft_doc_parse(NULL, 0, NULL, &doc), -EINVAL);
    CHECK_INT(weft_doc_parse("[1", 2, NULL, &doc), -EBADMSG);
    CHECK_INT(weft_doc_parse("1 2", 3, NULL, &doc), -EBADMSG);
    CHECK_INT(weft_doc_parse("1\0", 2, NULL, &doc), -EBADMSG);
    CHECK(doc == NULL);
    CHECK(weft_doc_free(NULL) == NULL);

    /* The length counts, not a NUL behind it; white space is no part of the root. */
    CHECK_INT(weft_doc_parse("  12345", 4, NULL, &doc), 0);
    CHECK_TEXT(weft_doc_root(doc)->text, weft_doc_root(doc)->len, "12");
    weft_doc_freep(&doc);
    CHECK(doc == NULL);
}

TEST(keeping) {
    weft_doc *doc = parse("{\"a\":[1,\"t\\u0077o\"],\"b\":2}"), *kept = NULL;
    weft_json a = weft_get(weft_doc_root(doc), "a");
    CHECK_INT(weft_doc_keep(&a, NULL, &kept), 0);
    weft_doc_free(doc);
    REQUIRE(kept);
    CHECK_TEXT(weft_doc_root(kept)->text, weft_doc_root(kept)->len, "[1,\"t\\u0077o\"]");
    weft_json two = weft_at(weft_doc_root(kept), 1);
    CHECK_STR(weft_str_of(&two, ""), "two");
    weft_doc_free(kept);
    kept = NULL;
    CHECK_INT(weft_doc_keep(&(weft_json){0}, NULL, &kept), -EINVAL);
    CHECK_INT(weft_doc_keep(NULL, NULL, &kept), -EINVAL);
    CHECK(kept == NULL);
}

TEST(members) {
    weft_doc *doc =
        parse("{ \"a\" : 1, \"b\" : { \"a\" : 2 }, \"\\u0063\\n\" : 3, \"a\" : 4, \"\" : 5, \"a\\\\b\" : 6,"
              " \"\xC3\xA9\" : 7, \"e\\u20ac\\ud83d\\ude00\" : 8, \"\\u0000\":9, \"lone\\ud800\":10, \"aa\":11 }");
    const weft_json *root = weft_doc_root(doc);
    static const struct {
        const char *name;
        int64_t value;
    } rows[] = {
        {"a", 4}, /* the last one */
        {"c\n", 3},
        {"", 5},
        {"a\\b", 6},
        {"\xC3\xA9", 7},
        {"e\xE2\x82\xAC\xF0\x9F\x98\x80", 8},
        {"lone\xEF\xBF\xBD", 10},
        {"aa", 11},
        {"A", -1},
        {"a\\\\b", -1},
        {"\\u0063\\n", -1},
        {"c", -1},
        {"c\n\n", -1},
        {"b ", -1},
        {"aaa", -1},
        {"e\xE2\x82\xAC", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        CHECK_INT(weft_get_int(root, rows[i].name, -1), rows[i].value);
    }
    test_row("nested");
    weft_json b = weft_get(root, "b");
    CHECK_INT(weft_get_int(&b, "a", -1), 2);
    CHECK_TEXT(b.text, b.len, "{ \"a\" : 2 }");
    CHECK_INT(weft_count(root), 11);
    test_row("not an object");
    weft_json a = weft_get(root, "a"), none = weft_get(&a, "a");
    CHECK_INT(weft_typeof(&none), WEFT_ABSENT);
    none = weft_get(&none, "a");
    CHECK_INT(weft_typeof(&none), WEFT_ABSENT);
    none = weft_get(NULL, "a");
    CHECK_INT(weft_typeof(&none), WEFT_ABSENT);
    weft_doc_free(doc);
}

/* One walk finds what so many calls of weft_get() find. */
TEST(members_at_once) {
    static const char *const names[] = {"a", "b", "c", "d\"", ""};
    static const char *const texts[] = {
        "{}",
        "{\"a\":1,\"b\":[1,{\"c\":5}],\"c\":\"x\"}",
        "{\"c\":1,\"b\":2,\"a\":3}",
        "{\"x\":0,\"b\":1,\"y\":{\"a\":2},\"\":3,\"b\":4,\"a\":5,\"a\":6}",
        "{ \"d\\\"\" : true , \"\\u0061\" : null , \"ab\" : 1 }",
        "[\"a\",1]",
        "\"a\"",
        "7",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        weft_doc *doc;
        weft_json found[5];
        REQUIRE(weft_doc_parse(texts[i], strlen(texts[i]), NULL, &doc) == 0);
        memset(found, 'x', sizeof found);
        weft__get_all(weft_doc_root(doc), names, 5, found);
        for (size_t n = 0; n < 5; n++) {
            weft_json one = weft_get(weft_doc_root(doc), names[n]);
            if (!CHECK(one.text == found[n].text && one.len == found[n].len && one.doc == found[n].doc))
                printf("  \"%s\" in %s\n", names[n], texts[i]);
        }
        weft_doc_free(doc);
    }
    weft_json none[5];
    weft__get_all(NULL, names, 5, none);
    CHECK(!none[0].text && !none[4].text);
}

TEST(items) {
    weft_doc *doc = parse("[ \"a\" , [ 1 , 2 ] , { \"x\" : \"]\" } , -1.5e3, \"]\\\"\" , true ]");
    const weft_json *root = weft_doc_root(doc);
    static const char *const want[] = {"\"a\"", "[ 1 , 2 ]", "{ \"x\" : \"]\" }", "-1.5e3", "\"]\\\"\"", "true"};
    for (size_t i = 0; i < 6; i++) {
        weft_json item = weft_at(root, i);
        CHECK_TEXT(item.text, item.len, want[i]);
    }
    weft_json none = weft_at(root, 6), object = weft_at(root, 2);
    CHECK_INT(weft_typeof(&none), WEFT_ABSENT);
    none = weft_at(root, SIZE_MAX);
    CHECK_INT(weft_typeof(&none), WEFT_ABSENT);
    none = weft_at(&object, 0);
    CHECK_INT(weft_typeof(&none), WEFT_ABSENT);
    none = weft_at(NULL, 0);
    CHECK_INT(weft_typeof(&none), WEFT_ABSENT);
    CHECK_INT(weft_count(root), 6);
    CHECK_INT(weft_count(&object), 1);
    CHECK_INT(weft_count(&none), 0);
    weft_doc_free(doc);
}

TEST(iterating) {
    weft_doc *doc = parse("{\"a\":1,\"\\u0061\":[\"x\"],\"b\":{}}");
    char seen[256] = "";
    for (weft_iter it = weft_iterate(weft_doc_root(doc)); weft_next(&it);)
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%.*s=%.*s%s;", (int) it.name.len, it.name.text,
                 (int) it.value.len, it.value.text, weft_name_is(&it, "a") ? " a" : "");
    CHECK_TEXT(seen, strlen(seen), "\"a\"=1 a;\"\\u0061\"=[\"x\"] a;\"b\"={};");
    weft_doc_free(doc);

    doc = parse("[\"a\",[],1]");
    size_t count = 0;
    weft_iter it = weft_iterate(weft_doc_root(doc));
    for (; weft_next(&it); count++) {
        CHECK_INT(weft_typeof(&it.name), WEFT_ABSENT);
        CHECK(!weft_name_is(&it, "a"));
    }
    CHECK_INT(count, 3);
    CHECK(!weft_next(&it));
    weft_doc_free(doc);

    static const char *const empty[] = {"[]", "{}", "[ ]", "{\n}", "1", "\"[1]\"", "null"};
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        doc = parse(empty[i]);
        it = weft_iterate(weft_doc_root(doc));
        CHECK(!weft_next(&it));
        weft_doc_free(doc);
    }
    it = weft_iterate(NULL);
    CHECK(!weft_next(&it));
}

TEST(strings) {
    static const struct {
        const char *text, *decoded;
    } rows[] = {
        {"\"\"", ""},
        {"\"plain\"", "plain"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u07FF\\u0800\\uFFFF\"", "A\xC3\xA9\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF"},
        {"\"\\ud83d\\uDE00\"", "\xF0\x9F\x98\x80"},
        {"\"\\uD800\\uDC00\\uDBFF\\uDFFF\"", "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"},
        {"\"\\ud800\"", "\xEF\xBF\xBD"},
        {"\"\\udc00\"", "\xEF\xBF\xBD"},
        {"\"\\ud800\\ud800\"", "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\"\\ud800\\ud83d\\ude00\"", "\xEF\xBF\xBD\xF0\x9F\x98\x80"},
        {"\"\\ud800\\n\"", "\xEF\xBF\xBD\n"},
        {"\"\\ud800x\\udc00\"", "\xEF\xBF\xBDx\xEF\xBF\xBD"},
        {"\"\\ud800\\u0041\"", "\xEF\xBF\xBD"
                               "A"},
        {"\"\\ud800\\\\udc00\"", "\xEF\xBF\xBD\\udc00"},
        {"\"a\\nb\\nc\"", "a\nb\nc"},
        {"\"\xC3\xA9\\t\xE2\x82\xAC\"", "\xC3\xA9\t\xE2\x82\xAC"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].text);
        weft_doc *doc = parse(rows[i].text);
        const weft_json *root = weft_doc_root(doc);
        weft_bytes text = {0};
        CHECK_STR(weft_str_of(root, NULL), rows[i].decoded);
        CHECK_INT(weft_bytes_of(root, &text), 0);
        CHECK_TEXT(text.data, text.len, rows[i].decoded);
        CHECK(weft__raw_is((weft_bytes){root->text, root->len}, rows[i].decoded, strlen(rows[i].decoded)));
        weft_doc_free(doc);
    }
    test_row("with a NUL");
    weft_doc *doc = parse("\"a\\u0000b\"");
    weft_bytes text = {0};
    CHECK_STR(weft_str_of(weft_doc_root(doc), "fallback"), "fallback");
    CHECK_INT(weft_bytes_of(weft_doc_root(doc), &text), 0);
    CHECK(text.len == 3 && memcmp(text.data, "a\0b", 3) == 0);
    weft_doc_free(doc);
}

TEST(names_of_raw_strings) {
    static const struct {
        const char *raw, *name;
        bool same;
    } rows[] = {
        {"\"\"", "", true},
        {"\"a\"", "", false},
        {"\"\"", "a", false},
        {"\"abc\"", "abc", true},
        {"\"abc\"", "abd", false},
        {"\"abc\"", "ab", false},
        {"\"ab\"", "abc", false},
        {"\"a\\nc\"", "a\nc", true},
        {"\"a\\nc\"", "a\\nc", false}, /* as long as the raw text, and yet another name */
        {"\"a\\nc\"", "a\ncd", false},
        {"\"a\\nc\"", "a\n", false},
        {"\"\\u0061\"", "a", true},
        {"\"\\u0061\"", "ab", false},
        {"\"\\u0061b\"", "a", false},
        {"\"\\u00e9\"", "\xC3", false},
        {"\"\\u00e9\"", "\xC3\xA9", true},
        {"\"\\u00e9\"", "\xC3\xA8", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].raw);
        CHECK(weft__raw_is((weft_bytes){rows[i].raw, strlen(rows[i].raw)}, rows[i].name, strlen(rows[i].name)) ==
              rows[i].same);
    }
}

/* Without a document there is nowhere to put a decoded string, or even its NUL. */
TEST(strings_without_document) {
    weft_doc *doc = parse("[\"plain\",\"esc\\n\"]");
    weft_json plain = weft_at(weft_doc_root(doc), 0), escaped = weft_at(weft_doc_root(doc), 1);
    weft_bytes text = {0};
    plain.doc = escaped.doc = NULL;
    CHECK_STR(weft_str_of(&plain, "fallback"), "fallback");
    CHECK_INT(weft_bytes_of(&plain, &text), 0);
    CHECK_TEXT(text.data, text.len, "plain");
    CHECK_STR(weft_str_of(&escaped, "fallback"), "fallback");
    CHECK_INT(weft_bytes_of(&escaped, &text), -ENOMEM);
    weft_doc_free(doc);
}

TEST(fallbacks) {
    weft_doc *doc = parse("{\"s\":\"x\",\"i\":7,\"d\":1.5,\"t\":true,\"f\":false,\"n\":null,\"a\":[],\"huge\":1e999,"
                          "\"large\":18446744073709551615,\"one\":1.0,\"digits\":\"7\"}");
    const weft_json *root = weft_doc_root(doc);
    weft_bytes text;
    CHECK_STR(weft_get_str(root, "s", "-"), "x");
    CHECK_STR(weft_get_str(root, "i", "-"), "-");
    CHECK_STR(weft_get_str(root, "n", "-"), "-");
    CHECK_STR(weft_get_str(root, "none", "-"), "-");
    CHECK(weft_get_str(root, "none", NULL) == NULL);
    CHECK_INT(weft_get_int(root, "i", -1), 7);
    CHECK_INT(weft_get_int(root, "one", -1), 1);
    CHECK_INT(weft_get_int(root, "d", -1), -1);
    CHECK_INT(weft_get_int(root, "huge", -1), -1);
    CHECK_INT(weft_get_int(root, "large", -1), -1);
    CHECK_INT(weft_get_int(root, "digits", -1), -1);
    CHECK_INT(weft_get_int(root, "t", -1), -1);
    CHECK(weft_get_num(root, "d", -1) == 1.5);
    CHECK(weft_get_num(root, "i", -1) == 7);
    CHECK(weft_get_num(root, "large", -1) == 18446744073709551616.0);
    CHECK(weft_get_num(root, "huge", -1) == -1);
    CHECK(weft_get_num(root, "s", -1) == -1);
    CHECK(weft_get_bool(root, "t", false));
    CHECK(!weft_get_bool(root, "f", true));
    CHECK(weft_get_bool(root, "n", true));
    CHECK(!weft_get_bool(root, "i", false));
    weft_json i = weft_get(root, "i");
    CHECK_INT(weft_bytes_of(&i, &text), -EINVAL);
    CHECK_INT(weft_bytes_of(&(weft_json){0}, &text), -EINVAL);
    weft_doc_free(doc);
}

TEST(pointers) {
    /* The document and most rows are those of RFC 6901 section 5. */
    weft_doc *doc =
        parse("{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,\"i\\\\j\":5,\"k\\\"l\":6,"
              "\" \":7,\"m~n\":8,\"~1\":9,\"\\u00e9\\u002f\":10,\"o\":{\"p\":[[],{\"q\":11}],\"\":{\"\":12}},"
              "\"x\":1,\"x\":{\"y\":13},\"0\":14,\"-\":15}");
    static const struct {
        const char *pointer, *want; /* NULL: nowhere */
    } rows[] = {
        {"/foo", "[\"bar\",\"baz\"]"},
        {"/foo/0", "\"bar\""},
        {"/foo/1", "\"baz\""},
        {"/", "0"},
        {"/a~1b", "1"},
        {"/c%d", "2"},
        {"/e^f", "3"},
        {"/g|h", "4"},
        {"/i\\j", "5"},
        {"/k\"l", "6"},
        {"/ ", "7"},
        {"/m~0n", "8"},
        {"/~01", "9"},
        {"/\xC3\xA9~1", "10"},
        {"/o/p/1/q", "11"},
        {"/o/p/0", "[]"},
        {"/o//", "12"},
        {"/x/y", "13"},
        {"/0", "14"},
        {"/-", "15"},
        {"/foo/2", NULL},
        {"/foo/-", NULL},
        {"/foo/00", NULL},
        {"/foo/01", NULL},
        {"/foo/+1", NULL},
        {"/foo/-1", NULL},
        {"/foo/1 ", NULL},
        {"/foo/", NULL},
        {"/foo/a", NULL},
        {"/foo/18446744073709551616", NULL},
        {"/foo/99999999999999999999999999", NULL},
        {"/foo/0/", NULL},
        {"/foo/0/0", NULL},
        {"/a/b", NULL},
        {"/m~n", NULL},
        {"/m~2n", NULL},
        {"/m~", NULL},
        {"foo", NULL},
        {"#/foo", NULL},
        {"/fo", NULL},
        {"/fooo", NULL},
        {"/none", NULL},
        {"/none/foo", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].pointer);
        weft_json found = weft_pointer(weft_doc_root(doc), rows[i].pointer);
        if (rows[i].want)
            CHECK_TEXT(found.text, found.len, rows[i].want);
        else
            CHECK_INT(weft_typeof(&found), WEFT_ABSENT);
    }
    test_row("the whole document");
    weft_json whole = weft_pointer(weft_doc_root(doc), "");
    CHECK(whole.text == weft_doc_root(doc)->text && whole.len == weft_doc_root(doc)->len);
    whole = weft_pointer(NULL, "");
    CHECK_INT(weft_typeof(&whole), WEFT_ABSENT);
    weft_doc_free(doc);
}

static int read_with(const weft_alloc *alloc) {
    static const char text_of_doc[] = "{\"a\":\"\\u0041\",\"b\":[\"x\"]}";
    weft_doc *doc = NULL, *kept = NULL;
    int r = weft_doc_parse(text_of_doc, strlen(text_of_doc), alloc, &doc);
    if (r < 0)
        return r;
    weft_json a = weft_get(weft_doc_root(doc), "a");
    weft_bytes text;
    r = weft_bytes_of(&a, &text);
    if (r >= 0)
        CHECK_TEXT(text.data, text.len, "A");
    else
        CHECK_STR(weft_str_of(&a, "fallback"), "A"); /* the next allocation works again */
    if (r >= 0)
        r = weft_doc_keep(&a, alloc, &kept);
    if (r >= 0)
        r = weft_str_of(weft_doc_root(kept), NULL) ? 0 : -ENOMEM;
    weft_doc_free(kept);
    weft_doc_free(doc);
    return r;
}

TEST(memory_runs_out) {
    long failed = 0;
    for (;;) {
        test_memory memory;
        test_memory_init(&memory, failed + 1);
        int r = read_with(&memory.alloc);
        CHECK_INT(memory.live, 0);
        if (r >= 0)
            break;
        CHECK_INT(r, -ENOMEM);
        if (++failed > 100)
            break;
    }
    CHECK_INT(failed, 4); /* two documents with their copies, two decoded strings */
}

/* A long string ends at the first quote behind an even number of backslashes, wherever it stands. */
TEST(long_strings_are_passed) {
    for (size_t len = 0; len < 80; len++)
        for (size_t slashes = 0; slashes < 6; slashes++) {
            char text[200], *p = text;
            p += sprintf(p, "[\"");
            memset(p, 'x', len), p += len;
            memset(p, '\\', slashes), p += slashes;
            p += sprintf(p, slashes % 2 ? "\"yy\",7]" : "\",7]");
            weft_doc *doc = NULL;
            REQUIRE(weft_doc_parse(text, (size_t) (p - text), NULL, &doc) == 0);
            weft_json second = weft_at(weft_doc_root(doc), 1);
            CHECK_INT(weft_int_of(&second, 0), 7);
            CHECK_INT(weft_count(weft_doc_root(doc)), 2);
            weft_doc_free(doc);
        }
}

/* An index finds what a walk finds, and nothing else. */
TEST(members_by_index) {
    static const char *const names[] = {"a", "b", "c", "d\"", "", "ab"};
    static const char *const texts[] = {
        "{}",
        " {\"a\":1,\"b\":[1,{\"c\":5}],\"c\":\"x\"} ",
        "{\"x\":0,\"b\":1,\"y\":{\"a\":2},\"\":3,\"b\":4,\"a\":5,\"a\":6}",
        "{ \"c\" : {\"a\":{\"c\":1},\"b\":[]} ,\"ab\":\"\\\"\"}",
        "{ \"d\\\"\" : true , \"\\u0061\" : null , \"ab\" : 1 }", /* escapes: none is made */
        "{\"a\":0,\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9,\"10\":10,\"11\":11,\"12\":12,"
        "\"13\":13,\"14\":14,\"15\":15,\"16\":16,\"17\":17,\"18\":18,\"19\":19,\"20\":20,\"21\":21,\"22\":22,\"b\":23}",
        "{\"a\":0,\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9,\"10\":10,\"11\":11,\"12\":12,"
        "\"13\":13,\"14\":14,\"15\":15,\"16\":16,\"17\":17,\"18\":18,\"19\":19,\"20\":20,\"21\":21,\"22\":22,\"b\":23,\"c\":"
        "24}",
        "[\"a\",1]",
        "7",
    };
    static const bool indexed[] = {true, true, true, true, false, true, false, true, true};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        weft_doc *plain = parse(texts[i]), *quick = parse(texts[i]);
        weft_members members;
        weft_json found[6];
        weft__doc_index(quick, &members);
        test_row(texts[i]);
        CHECK((quick->members != NULL) == indexed[i]);
        weft__get_all(weft_doc_root(quick), names, 6, found);
        for (size_t n = 0; n < 6; n++) {
            weft_json one = weft_get(weft_doc_root(plain), names[n]), same = weft_get(weft_doc_root(quick), names[n]);
            CHECK(same.len == one.len && !same.text == !one.text && (!one.len || memcmp(same.text, one.text, one.len) == 0));
            CHECK(same.text == found[n].text && same.len == found[n].len && same.doc == found[n].doc);
        }
        weft_json c = weft_get(weft_doc_root(quick), "c"), a = weft_get(&c, "a"), deep = weft_get(&a, "c");
        CHECK_INT(weft_int_of(&deep, -1), i == 3 ? 1 : -1);
        weft_doc_free(plain);
        weft_doc_free(quick);
    }
}

TEST_MAIN(CASE(long_strings_are_passed) CASE(types) CASE(documents) CASE(keeping) CASE(members) CASE(members_at_once)
              CASE(members_by_index) CASE(items) CASE(iterating) CASE(strings) CASE(names_of_raw_strings)
                  CASE(strings_without_document) CASE(fallbacks) CASE(pointers) CASE(memory_runs_out))
