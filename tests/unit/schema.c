/* JSON Schema: what is told about a misfit, what is refused when compiling, numbers, patterns, duplicates, limits, and every
 * allocation failing. Whether values fit is also tested by schema_suite.c with other people's tests. */
#include <errno.h>
#include <stdlib.h>

#include <weft/schema.h>

#include "decimal.h"
#include "harness.h"
#include "pattern.h"

static int compile(const char *text, const weft_schema_opts *opts, weft_schema **ret, weft_schema_report *report) {
    return weft_schema_compile(text, strlen(text), opts, ret, report);
}

/* Compile, parse, check. */
static int check(const char *schema_text, const char *value, const weft_schema_opts *opts, weft_schema_report *report) {
    weft_schema *schema = NULL;
    weft_doc *doc = NULL;
    int r = compile(schema_text, opts, &schema, report);
    if (!CHECK_INT(r, 0))
        return r;
    r = weft_doc_parse(value, strlen(value), opts ? opts->alloc : NULL, &doc);
    CHECK_INT(r, 0);
    if (r >= 0)
        r = weft_schema_check(schema, weft_doc_root(doc), report);
    weft_doc_free(doc);
    weft_schema_free(schema);
    return r;
}

/* ---- what is told ---- */

TEST(reports) {
    static const struct {
        const char *schema, *value, *instance, *keyword, *message;
    } rows[] = {
        {"{\"type\":\"string\"}", "1", "", "/type", "must be a string"},
        {"{\"type\":[\"string\",\"integer\",\"null\"]}", "1.5", "", "/type", "must be a string, an integer or null"},
        {"{\"properties\":{\"a/b\":{\"properties\":{\"~\":{\"minLength\":2}}}}}", "{\"a/b\":{\"\\u007e\":\"x\"}}",
         "/a~1b/~0", "/properties/a~1b/properties/~0/minLength", "must have at least 2 characters"},
        {"{\"required\":[\"a\",\"b\"]}", "{\"a\":1}", "", "/required", "has no \"b\""},
        {"{\"items\":{\"maximum\":3}}", "[1,2,4]", "/2", "/items/maximum", "must be at most 3"},
        {"{\"prefixItems\":[true,{\"type\":\"null\"}]}", "[1,2]", "/1", "/prefixItems/1/type", "must be null"},
        {"{\"additionalProperties\":false,\"properties\":{\"a\":true}}", "{\"a\":1,\"b\":2}", "/b", "/additionalProperties",
         "is not allowed"},
        {"{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"exclusiveMinimum\":0.5}}}", "0.5", "", "/$defs/n/exclusiveMinimum",
         "must be above 5e-1"},
        {"{\"minimum\":12.25}", "3", "", "/minimum", "must be at least 12.25"},
        {"{\"multipleOf\":7}", "15", "", "/multipleOf", "must be a multiple of 7"},
        {"{\"enum\":[1,\"a\"]}", "\"b\"", "", "/enum", "must be one of the values that are allowed"},
        {"{\"const\":{\"a\":[1]}}", "{\"a\":[2]}", "", "/const", "must be the one value that is allowed"},
        {"{\"not\":{}}", "1", "", "/not", "must not fit"},
        {"{\"oneOf\":[{},{}]}", "1", "", "/oneOf", "fits more than one of the 2 alternatives"},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"minLength\":3}]}", "\"x\"", "", "/anyOf", "fits none of the 2 alternatives"},
        {"{\"uniqueItems\":true}", "[{\"a\":1,\"b\":2},{\"b\":2.0,\"a\":1}]", "", "/uniqueItems",
         "must not have equal items"},
        {"{\"propertyNames\":{\"pattern\":\"^[a-z]+$\"}}", "{\"a1\":0}", "/a1", "/propertyNames/pattern",
         "does not match the pattern"},
        {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}", "", "/dependentRequired", "has \"a\", but no \"b\""},
        {"{\"contains\":{\"type\":\"null\"}}", "[1]", "", "/contains", "must have at least 1 items that fit"},
        {"{\"unevaluatedProperties\":false,\"allOf\":[{\"properties\":{\"a\":true}}]}", "{\"a\":1,\"b\":1}", "/b",
         "/unevaluatedProperties", "is not allowed"},
        {"{\"if\":{\"type\":\"string\"},\"then\":{\"minLength\":1}}", "\"\"", "", "/then/minLength", "must not be empty"},
        {"{\"minProperties\":2}", "{\"a\":1,\"\\u0061\":2}", "", "/minProperties", "must have at least 2 members"},
        {"false", "null", "", "", "is not allowed"},
        {"{\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"}", "{\"minLength\":-1}", "/minLength",
         "https://json-schema.org/draft/2020-12/meta/validation#/$defs/nonNegativeInteger/minimum", "must be at least 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        WEFT_SCHEMA_REPORT report = {0};
        test_row(rows[i].schema);
        CHECK_INT(check(rows[i].schema, rows[i].value, NULL, &report), -EBADMSG);
        if (!CHECK(report.count > 0))
            continue;
        CHECK_STR(report.errors[0].instance, rows[i].instance);
        CHECK_STR(report.errors[0].keyword, rows[i].keyword);
        CHECK_STR(report.errors[0].message, rows[i].message);
    }
}

TEST(all_misfits_are_told) {
    WEFT_SCHEMA_REPORT report = {0};
    const char *schema =
        "{\"properties\":{\"a\":{\"type\":\"string\",\"minLength\":2},\"b\":{\"items\":{\"type\":\"null\"}}},"
        "\"required\":[\"c\",\"d\"]}";
    CHECK_INT(check(schema, "{\"a\":\"x\",\"b\":[null,1,2]}", NULL, &report), -EBADMSG);
    CHECK_INT(report.count, 5);
    CHECK(!report.more);
    CHECK_STR(report.errors[0].instance, "/a");
    CHECK_STR(report.errors[1].instance, "/b/1");
    CHECK_STR(report.errors[2].instance, "/b/2");
    CHECK_STR(report.errors[4].message, "has no \"d\"");
    CHECK_INT(check("{\"items\":false}", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]", NULL, &report), -EBADMSG);
    CHECK_INT(report.count, WEFT_SCHEMA_ERRORS);
    CHECK(report.more);
    CHECK_INT(check("{\"items\":true}", "[1]", NULL, &report), 0);
    CHECK_INT(report.count, 0);
}

/* ---- schemas that are none ---- */

TEST(refused) {
    static const struct {
        const char *schema;
        int r;
        const char *keyword;
    } rows[] = {
        {"", -EBADMSG, ""},
        {"{", -EBADMSG, ""},
        {"1", -EBADMSG, ""},
        {"{\"type\":\"text\"}", -EBADMSG, "/type"},
        {"{\"type\":[]}", -EBADMSG, "/type"},
        {"{\"properties\":{\"a\":{\"minLength\":-1}}}", -EBADMSG, "/properties/a/minLength"},
        {"{\"maxItems\":1.5}", -EBADMSG, "/maxItems"},
        {"{\"multipleOf\":0}", -EBADMSG, "/multipleOf"},
        {"{\"pattern\":\"(\"}", -EBADMSG, "/pattern"},
        {"{\"pattern\":\"(*UCP)a\"}", -EBADMSG, "/pattern"},
        {"{\"pattern\":\"(?R)\"}", -EBADMSG, "/pattern"},
        {"{\"pattern\":\"\\\\K\"}", -EBADMSG, "/pattern"},
        {"{\"allOf\":[]}", -EBADMSG, "/allOf"},
        {"{\"anyOf\":[1]}", -EBADMSG, "/anyOf/0"},
        {"{\"items\":[{}]}", -EBADMSG, "/items"},
        {"{\"required\":[1]}", -EBADMSG, "/required"},
        {"{\"$ref\":\"#/no\"}", -ENOENT, "/$ref"},
        {"{\"$ref\":\"#no\"}", -ENOENT, "/$ref"},
        {"{\"$ref\":\"http://example.com/x\"}", -ENOENT, "/$ref"},
        {"{\"$ref\":\"#/%\"}", -ENOENT, "/$ref"},
        {"{\"$ref\":\"a\\u0000b\"}", -EBADMSG, "/$ref"},
        {"{\"$id\":\"#x\"}", -EBADMSG, "/$id"},
        {"{\"$schema\":\"http://json-schema.org/draft-04/schema#\"}", -ENOTSUP, "/$schema"},
        {"{\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"b\":{\"$anchor\":\"x\"}}}", -EBADMSG, "/$defs/b/$anchor"},
        {"{\"$defs\":{\"a\":{\"$id\":\"x\"},\"b\":{\"$id\":\"x\"}}}", -EBADMSG, "/$defs/b/$id"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        WEFT_SCHEMA_REPORT report = {0};
        weft_schema *schema = NULL;
        test_row(rows[i].schema);
        CHECK_INT(compile(rows[i].schema, NULL, &schema, &report), rows[i].r);
        CHECK(schema == NULL);
        if (CHECK_INT(report.count, 1))
            CHECK_STR(report.errors[0].keyword, rows[i].keyword);
        CHECK_INT(compile(rows[i].schema, NULL, &schema, NULL), rows[i].r);
    }
}

/* ---- numbers ---- */

TEST(numbers) {
    static const struct {
        const char *schema, *value;
        bool fits;
    } rows[] = {
        {"{\"maximum\":9007199254740992}", "9007199254740993", false},
        {"{\"maximum\":18446744073709551615}", "18446744073709551616", false},
        {"{\"minimum\":1e400}", "1e399", false},
        {"{\"minimum\":1e400}", "1e401", true},
        {"{\"minimum\":-1e400}", "-1e401", false},
        {"{\"const\":1}", "1.0", true},
        {"{\"const\":0}", "-0.0e9", true},
        {"{\"const\":100}", "1e2", true},
        {"{\"const\":0.1}", "0.1000000000000000000000000000001", false},
        {"{\"const\":123456789012345678901234567890}", "123456789012345678901234567890.0", true},
        {"{\"type\":\"integer\"}", "1e300", true},
        {"{\"type\":\"integer\"}", "10e-1", true},
        {"{\"type\":\"integer\"}", "1e-1", false},
        {"{\"type\":\"integer\"}", "9999999999999999999.5", false},
        {"{\"multipleOf\":0.01}", "4.35", true},
        {"{\"multipleOf\":0.01}", "4.351", false},
        {"{\"multipleOf\":1e-300}", "1e300", true},
        {"{\"multipleOf\":3}", "1e1000000000", false},
        {"{\"multipleOf\":3}", "111111111111111111111111111111", true},
        {"{\"multipleOf\":123456789012345678901234567891}", "246913578024691357802469135782", true},
        {"{\"multipleOf\":123456789012345678901234567891}", "246913578024691357802469135783", false},
        {"{\"multipleOf\":4096}", "1e12", true},
        {"{\"multipleOf\":8192}", "1e12", false},
        {"{\"multipleOf\":0.3}", "-0.9", true},
        {"{\"multipleOf\":7}", "0", true},
        {"{\"enum\":[1,2,3.5]}", "35e-1", true},
        {"{\"uniqueItems\":true}", "[1,1.0]", false},
        {"{\"uniqueItems\":true}", "[12345678901234567890,12345678901234567891]", true},
        {"{\"uniqueItems\":true}", "[[1],[1.0e0]]", false},
        {"{\"uniqueItems\":true}", "[1,true,\"1\",null,[],{}]", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char row[256];
        snprintf(row, sizeof row, "%s %s", rows[i].schema, rows[i].value);
        test_row(row);
        CHECK_INT(check(rows[i].schema, rows[i].value, NULL, NULL), rows[i].fits ? 0 : -EBADMSG);
    }
}

/* Small decimals against arithmetic on integers: all pairs. */
TEST(decimals_by_arithmetic) {
    for (int a = -30; a <= 130; a++)
        for (int b = 1; b <= 60; b++)
            for (int scale = 0; scale <= 2; scale++) {
                char a_text[32], b_text[32];
                schema_decimal x, y;
                long long ten = scale == 2 ? 100 : scale == 1 ? 10 : 1;
                snprintf(a_text, sizeof a_text, "%de-%d", a, scale); /* a / ten */
                snprintf(b_text, sizeof b_text, "%d", b);
                weft__decimal_read(a_text, strlen(a_text), &x);
                weft__decimal_read(b_text, strlen(b_text), &y);
                long long difference = a - b * ten;
                int order = weft__decimal_compare(&x, &y);
                if ((order > 0) != (difference > 0) || (order < 0) != (difference < 0) ||
                    weft__decimal_is_multiple(&x, &y) != (a % (b * ten) == 0) ||
                    weft__decimal_is_integer(&x) != (a % ten == 0)) {
                    char row[80];
                    snprintf(row, sizeof row, "%s and %s", a_text, b_text);
                    test_row(row);
                    CHECK(false);
                }
            }
}

/* ---- patterns ---- */

TEST(patterns) {
    static const struct {
        const char *pattern, *text;
        bool found, simple;
    } rows[] = {
        {"^[a-z][a-z0-9_-]*$", "task-1", true, true}, /* the first set takes one character, whatever comes */
        {"^[a-z]+$", "abc", true, true},
        {"^[a-z]+$", "abC", false, true},
        {"^[a-z]+$", "", false, true},
        {"^[a-z]+$", "abc\n", false, true},
        {"^\\d{4}-\\d\\d-\\d\\d$", "2026-11-16", true, true},
        {"^\\d{4}-\\d\\d-\\d\\d$", "2026-11-1", false, true},
        {"^x-", "x-y", true, true},
        {"^x-", "y-x-", false, true},
        {"^a*b?c{2,3}$", "aacc", true, true},
        {"^a*b?c{2,3}$", "bcccc", false, true},
        {"^a*ab$", "aaab", true, false},
        {"^a{2}a*$", "aaa", true, true},
        {"^[^a]$", "\xC3\xA9", true, false},
        {"^.$", "\xF0\x9F\x98\x80", true, false},
        {"^\\w+$", "\xC3\xA9", false, true},
        {"a|b", "xxb", true, false},
        {"^a|b$", "cb", true, false},
        {"^(a+)+$", "aaaa", true, false},
        {"^a+?$", "aa", true, false},
        {"^[]a]$", "a]", false, false},
        {"^[a\\]]+$", "a]", true, true},
        {"^[a-]+$", "a-", true, true},
        {"^\\.$", ".", true, true},
        {"^\\.$", "x", false, true},
        {"^$", "", true, true},
        {"^$", "a", false, true},
        {"^", "a", true, true},
        {"", "a", true, false},
        {"\\u0061\\u{62}", "xab", true, false},
        {"^\\ud83d\\ude00$", "\xF0\x9F\x98\x80", true, false},
        {"[[:alpha:]]", "a]", true, false},
        {"[[:alpha:]]", "a", false, false},
        {"^\\S+$", "a\xC2\xA0", false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        schema_patterns patterns = {0};
        weft_arena arena = {0};
        const schema_pattern *pattern = NULL;
        const char *why = "";
        pattern_run run = {.left = 100000};
        test_row(rows[i].pattern);
        CHECK_INT(
            weft__pattern_compile(&patterns, &arena, (weft_bytes){rows[i].pattern, strlen(rows[i].pattern)}, &pattern, &why),
            0);
        if (pattern) {
            CHECK_INT(weft__pattern_find(pattern, &patterns, &run, rows[i].text, strlen(rows[i].text)), rows[i].found);
            CHECK_INT(weft__pattern_is_simple(pattern), rows[i].simple);
        }
        weft__pattern_run_done(&run);
        weft__patterns_done(&patterns);
        weft__arena_done(&arena);
    }
}

/* ---- duplicate members: the last one counts ---- */

TEST(duplicates) {
    static const struct {
        const char *schema, *value;
        bool fits;
    } rows[] = {
        {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":1,\"a\":\"x\"}", true},
        {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":1,\"b\":2,\"\\u0061\":\"x\"}", true},
        {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":\"x\",\"a\":1}", false},
        {"{\"not\":{\"properties\":{\"a\":{\"type\":\"string\"}}}}", "{\"a\":1,\"a\":\"x\"}", false},
        {"{\"additionalProperties\":{\"type\":\"null\"}}", "{\"z\":1,\"z\":null}", true},
        {"{\"unevaluatedProperties\":{\"type\":\"null\"}}", "{\"z\":1,\"z\":null}", true},
        {"{\"unevaluatedProperties\":{\"type\":\"null\"}}", "{\"z\":null,\"z\":1}", false},
        {"{\"maxProperties\":1}", "{\"a\":1,\"a\":2}", true},
        {"{\"minProperties\":2}", "{\"a\":1,\"a\":2}", false},
        {"{\"const\":{\"a\":2}}", "{\"a\":1,\"a\":2}", true},
        {"{\"uniqueItems\":true}", "[{\"a\":1,\"a\":2},{\"a\":2}]", false},
        /* and in a schema */
        {"{\"type\":\"string\",\"type\":\"null\"}", "null", true},
        {"{\"properties\":{\"a\":false,\"a\":true}}", "{\"a\":1}", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        WEFT_SCHEMA_REPORT report = {0};
        char row[256];
        snprintf(row, sizeof row, "%s %s", rows[i].schema, rows[i].value);
        test_row(row);
        CHECK_INT(check(rows[i].schema, rows[i].value, NULL, &report), rows[i].fits ? 0 : -EBADMSG);
        CHECK((report.count == 0) == rows[i].fits);
    }
}

/* ---- limits ---- */

TEST(limits) {
    static const struct {
        const char *name, *schema, *value;
        weft_schema_opts opts;
        int compiled, checked;
    } rows[] = {
        {"a reference to itself", "{\"$ref\":\"#\"}", "1", {0}, 0, -E2BIG},
        {"and within another", "{\"allOf\":[{\"$ref\":\"#\"}]}", "1", {0}, 0, -E2BIG},
        {"depth", "{\"items\":{\"$ref\":\"#\"}}", "[[[[[]]]]]", {.max_depth = 8}, 0, -E2BIG},
        {"depth that suffices", "{\"items\":{\"$ref\":\"#\"}}", "[[[[[]]]]]", {.max_depth = 11}, 0, 0},
        {"nodes", "{\"allOf\":[{},{},{}]}", "1", {.max_nodes = 3}, -E2BIG, 0},
        {"bytes", "{\"allOf\":[{},{},{}]}", "1", {.max_bytes = 10}, -E2BIG, 0},
        {"steps", "{\"items\":{\"minimum\":0}}", "[1,1,1,1,1,1,1,1,1,1]", {.max_steps = 10}, 0, -E2BIG},
        {"twice for each level",
         "{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"}],"
         "\"$defs\":{\"a\":{\"properties\":{\"a\":{\"$ref\":\"#\"}}}}}",
         "{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}}}}}}}}",
         {.max_steps = 5000},
         0,
         -E2BIG},
        {"patterns for each member",
         "{\"patternProperties\":{\"^a\":{},\"^b\":{},\"^c\":{},\"^d\":{},\"^e\":{}}}",
         "{\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9}",
         {.max_steps = 50},
         0,
         -E2BIG},
        {"names that depend on others",
         "{\"dependentRequired\":{\"a\":[],\"b\":[],\"c\":[],\"d\":[],\"e\":[],\"f\":[],\"g\":[]}}",
         "{\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9}",
         {.max_steps = 50},
         0,
         -E2BIG},
        {"a pattern that goes back and forth",
         "{\"pattern\":\"^(a|a)*$\"}",
         "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"",
         {0},
         0,
         -E2BIG},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_schema *schema = NULL;
        weft_doc *doc = NULL;
        WEFT_SCHEMA_REPORT report = {0};
        test_row(rows[i].name);
        CHECK_INT(compile(rows[i].schema, &rows[i].opts, &schema, &report), rows[i].compiled);
        CHECK_INT(weft_doc_parse(rows[i].value, strlen(rows[i].value), NULL, &doc), 0);
        if (schema && doc)
            CHECK_INT(weft_schema_check(schema, weft_doc_root(doc), &report), rows[i].checked);
        weft_doc_free(doc);
        weft_schema_free(schema);
    }
}

/* Work grows with the size, not with its square: an array of many items that differ in their last byte, and many members
 * that each have a duplicate far away. */
TEST(large_values) {
    enum { COUNT = 20000 };
    size_t len = 0, size = COUNT * 40;
    char *text = malloc(size);
    weft_schema *schema = NULL;
    weft_doc *doc = NULL;
    REQUIRE(text);
    text[len++] = '[';
    for (int i = 0; i < COUNT; i++)
        len += (size_t) snprintf(text + len, size - len, "%s{\"a\":\"x\\u0079\",\"b\":%d}", i ? "," : "", i);
    text[len++] = ']';
    CHECK_INT(compile("{\"uniqueItems\":true,\"items\":{\"required\":[\"b\"]}}", NULL, &schema, NULL), 0);
    CHECK_INT(weft_doc_parse(text, len, NULL, &doc), 0);
    CHECK_INT(weft_schema_check(schema, weft_doc_root(doc), NULL), 0);
    weft_doc_free(doc);
    weft_schema_free(schema);

    len = 0;
    text[len++] = '{';
    for (int i = 0; i < COUNT; i++)
        len += (size_t) snprintf(text + len, size - len, "%s\"k%d\":%s", i ? "," : "", i % (COUNT / 2),
                                 i < COUNT / 2 ? "1" : "\"\"");
    text[len++] = '}';
    CHECK_INT(compile("{\"additionalProperties\":{\"type\":\"string\"}}", NULL, &schema, NULL), 0);
    CHECK_INT(weft_doc_parse(text, len, NULL, &doc), 0);
    CHECK_INT(weft_schema_check(schema, weft_doc_root(doc), NULL), -E2BIG); /* it would take half of COUNT squared */
    weft_doc_free(doc);
    weft_schema_free(schema);
    free(text);
}

TEST(items_that_are_compared) {
    enum { COUNT = 1000001 };
    char *text = malloc(COUNT * 9);
    size_t len = 0;
    weft_schema *schema = NULL;
    weft_doc *doc = NULL;
    REQUIRE(text);
    text[len++] = '[';
    for (int i = 0; i < COUNT; i++)
        len += (size_t) sprintf(text + len, i ? ",%d" : "%d", i);
    text[len++] = ']';
    CHECK_INT(compile("{\"uniqueItems\":true}", NULL, &schema, NULL), 0);
    CHECK_INT(weft_doc_parse(text, len, NULL, &doc), 0);
    CHECK_INT(weft_schema_check(schema, weft_doc_root(doc), NULL), -E2BIG);
    weft_doc_free(doc);
    weft_schema_free(schema);
    free(text);
}

/* More names than fit into the words on the stack. */
TEST(many_names) {
    enum { COUNT = 700 };
    char *text = malloc(COUNT * 64), *value = malloc(COUNT * 16);
    size_t len = 0, value_len = 0;
    WEFT_SCHEMA_REPORT report = {0};
    REQUIRE(text && value);
    len += (size_t) sprintf(text, "{\"unevaluatedProperties\":false,\"required\":[");
    for (int i = 0; i < COUNT; i++)
        len += (size_t) sprintf(text + len, "%s\"name%d\"", i ? "," : "", i);
    len += (size_t) sprintf(text + len, "],\"anyOf\":[{\"patternProperties\":{\"^name\":{\"type\":\"integer\"}}}]}");
    for (int i = 0; i < COUNT; i++)
        value_len += (size_t) sprintf(value + value_len, "%s\"name%d\":%d", i ? "," : "{", COUNT - 1 - i, i);
    sprintf(value + value_len, "}");
    CHECK_INT(check(text, value, NULL, &report), 0);
    value_len = 0;
    for (int i = 1; i < COUNT; i++)
        value_len += (size_t) sprintf(value + value_len, "%s\"name%d\":%d", i > 1 ? "," : "{", i, i);
    sprintf(value + value_len, "}");
    CHECK_INT(check(text, value, NULL, &report), -EBADMSG);
    CHECK_INT(report.count, 1);
    free(text);
    free(value);
}

/* ---- other schemas ---- */

static int find_other(void *ctx, const char *uri, weft_bytes *ret) {
    const char *text = NULL;
    *(int *) ctx += 1;
    if (strcmp(uri, "http://example.com/b") == 0)
        text = "{\"$defs\":{\"n\":{\"type\":\"number\"}},\"$ref\":\"a#/$defs/x\"}";
    else if (strcmp(uri, "http://example.com/bad") == 0)
        text = "{\"type\":1}";
    else
        return strcmp(uri, "http://example.com/broken") == 0 ? -EIO : -ENOENT;
    *ret = (weft_bytes){text, strlen(text)};
    return 0;
}

TEST(others) {
    int asked = 0;
    weft_schema_opts opts = {.find = find_other, .ctx = &asked, .uri = "http://example.com/a"};
    WEFT_SCHEMA_REPORT report = {0};
    weft_schema *schema = NULL;
    const char *text =
        "{\"items\":{\"$ref\":\"b\"},\"prefixItems\":[{\"$ref\":\"b#/$defs/n\"}],\"$defs\":{\"x\":{\"type\":\"null\"}}}";
    CHECK_INT(check(text, "[1,null]", &opts, &report), 0);
    CHECK_INT(asked, 1);
    CHECK_INT(check(text, "[\"\"]", &opts, &report), -EBADMSG);
    CHECK_STR(report.errors[0].keyword, "http://example.com/b#/$defs/n/type");
    CHECK_INT(compile("{\"$ref\":\"bad\"}", &opts, &schema, &report), -EBADMSG);
    CHECK_STR(report.errors[0].keyword, "http://example.com/bad#/type");
    CHECK_INT(compile("{\"$ref\":\"broken\"}", &opts, &schema, &report), -EIO);
    CHECK_INT(compile("{\"$ref\":\"nowhere\"}", &opts, &schema, &report), -ENOENT);
}

TEST(metaschemas) {
    static const struct {
        const char *schema, *value;
        bool fits;
    } rows[] = {
        {"{\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"}", "{\"properties\":{\"a\":{\"type\":\"text\"}}}",
         false},
        {"{\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"}", "{\"properties\":{\"a\":{\"type\":\"string\"}}}",
         true},
        {"{\"$ref\":\"http://json-schema.org/draft-07/schema#\"}", "{\"items\":[{\"minLength\":\"1\"}]}", false},
        {"{\"$ref\":\"http://json-schema.org/draft-07/schema#\"}", "{\"items\":[{\"minLength\":1}]}", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].value);
        CHECK_INT(check(rows[i].schema, rows[i].value, NULL, NULL), rows[i].fits ? 0 : -EBADMSG);
    }
}

TEST(formats_are_asked_for) {
    weft_schema_opts opts = {.check_formats = true};
    WEFT_SCHEMA_REPORT report = {0};
    CHECK_INT(check("{\"format\":\"ipv4\"}", "\"1.2.3\"", NULL, &report), 0);
    CHECK_INT(check("{\"format\":\"ipv4\"}", "\"1.2.3\"", &opts, &report), -EBADMSG);
    CHECK_STR(report.errors[0].message, "does not have the format \"ipv4\"");
    CHECK_INT(check("{\"format\":\"nobody knows\"}", "\"1.2.3\"", &opts, &report), 0);
    CHECK_INT(check("{\"format\":\"ipv4\"}", "1", &opts, &report), 0);
}

TEST(absent) {
    weft_schema *schema = NULL;
    weft_json nothing = {0};
    CHECK_INT(compile("true", NULL, &schema, NULL), 0);
    CHECK_INT(weft_schema_check(schema, &nothing, NULL), -EINVAL);
    CHECK_INT(weft_schema_check(schema, NULL, NULL), -EINVAL);
    schema = weft_schema_free(schema);
    CHECK(weft_schema_free(NULL) == NULL);
    weft_schema_freep(&schema);
}

/* ---- memory ---- */

static const char whole_schema[] =
    "{\"$id\":\"http://example.com/x\",\"$defs\":{\"n\":{\"$anchor\":\"n\",\"type\":\"number\",\"multipleOf\":0.5},"
    "\"d\":{\"$dynamicAnchor\":\"d\"},\"e\":{\"$id\":\"e\",\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"}},"
    "\"properties\":{\"n\":{\"$ref\":\"#n\"},\"d\":{\"$dynamicRef\":\"#d\"},\"u\":{\"uniqueItems\":true,\"contains\":{"
    "\"const\":[1]}},"
    "\"e\":{\"enum\":[null,true,1,\"x\",{\"b\":1,\"a\":2}]},\"s\":{\"$ref\":\"e\"},\"p\":{\"pattern\":\"(a|b)c\",\"format\":"
    "\"date\"}},"
    "\"patternProperties\":{\"z$\":{\"minimum\":1}},\"required\":[\"n\",\"\\u0070\"],\"minProperties\":2,"
    "\"dependentRequired\":{\"n\":[\"p\"]},\"unevaluatedProperties\":{\"maxLength\":3},"
    "\"if\":{\"required\":[\"q\"]},\"else\":{\"properties\":{\"\\\"\":true}},\"anyOf\":[{\"properties\":{\"y\":true}}]}";
static const char good_value[] =
    "{\"n\":1.5,\"d\":{},\"u\":[[1],[2],{\"b\":[],\"a\":1,\"a\":2}],\"e\":{\"a\":2,\"b\":1},\"s\":{\"type\":\"null\"},"
    "\"p\":\"xac\",\"z\":1,\"\\u0078\":\"abc\",\"y\":0}";
static const char bad_value[] =
    "{\"n\":1.4,\"u\":[[1],[1]],\"e\":{},\"s\":{\"type\":\"nul\"},\"\\u0070\":\"xa\\u0062\",\"x\":\"abcd\"}";

static int run_whole(const weft_alloc *alloc, const char *value) {
    weft_schema_opts opts = {.alloc = alloc};
    weft_schema *schema = NULL;
    weft_doc *doc = NULL;
    WEFT_SCHEMA_REPORT report = {0};
    int r = compile(whole_schema, &opts, &schema, &report);
    if (r >= 0)
        r = weft_doc_parse(value, strlen(value), alloc, &doc);
    if (r >= 0)
        r = weft_schema_check(schema, weft_doc_root(doc), &report);
    weft_doc_free(doc);
    weft_schema_free(schema);
    return r;
}

static void fail_each(const char *value, int want) {
    test_memory memory;
    test_memory_init(&memory, 0);
    CHECK_INT(run_whole(&memory.alloc, value), want);
    CHECK_INT(memory.live, 0);
    long count = memory.count;
    CHECK(count > 20);
    for (long i = 1; i <= count; i++) {
        test_memory_init(&memory, i);
        int r = run_whole(&memory.alloc, value);
        if (r != -ENOMEM && r != want) /* a map without memory is only slower */
            CHECK_INT(r, -ENOMEM);
        CHECK_INT(memory.live, 0);
    }
}

TEST(every_allocation) {
    fail_each(good_value, 0);
    fail_each(bad_value, -EBADMSG);
}

TEST_MAIN(CASE(reports) CASE(all_misfits_are_told) CASE(refused) CASE(numbers) CASE(decimals_by_arithmetic) CASE(patterns)
              CASE(duplicates) CASE(limits) CASE(large_values) CASE(items_that_are_compared) CASE(many_names) CASE(others)
                  CASE(metaschemas) CASE(formats_are_asked_for) CASE(absent) CASE(every_allocation))
