/* Relaxed JSON: what is blanked, what is still refused, and that every fault is found where it is. */
#include <errno.h>
#include <stdlib.h>

#include "buf.h"
#include "doc.h"
#include "harness.h"
#include "json_reference.h"
#include "relaxed.h"
#include "scan.h"

TEST(blanked) {
    static const struct {
        const char *name, *text, *strict;
    } rows[] = {
        {"strict", "{\"a\": [1, 2]}\n", "{\"a\": [1, 2]}\n"},
        {"a line comment", "{} // no\n", "{}      \n"},
        {"a line comment at the end", "{} // no", "{}      "},
        {"an empty line comment", "{}//", "{}  "},
        {"it ends with CRLF", "// a\r\n{}", "    \r\n{}"},
        {"it ends with CR", "// a\r{}", "    \r{}"},
        {"a block comment", "{/* no */}", "{        }"},
        {"an empty block comment", "/**/{}", "    {}"},
        {"a block comment of stars", "/****/{}", "      {}"},
        {"over lines", "/* a\n * b\r\n */{}", "    \n    \r\n   {}"},
        {"a line comment in a block comment", "/* // */{}", "        {}"},
        {"a block comment in a line comment", "// /*\n{}", "     \n{}"},
        {"quotes in comments", "/* \" */[1]// \"", "       [1]    "},
        {"a comment in a string", "[\"// no\", \"/* no */\"]", "[\"// no\", \"/* no */\"]"},
        {"behind an escaped quote", "[\"\\\"// no\"]", "[\"\\\"// no\"]"},
        {"behind an escaped backslash", "[\"\\\\\"]// yes", "[\"\\\\\"]      "},
        {"inside of values", "{\"a\"/**/:/**/1/**/}", "{\"a\"    :    1    }"},
        {"a trailing comma in an array", "[1,2,]", "[1,2 ]"},
        {"a trailing comma in an object", "{\"a\":1,}", "{\"a\":1 }"},
        {"in each level", "[[1,],{\"a\":[],},]", "[[1 ],{\"a\":[] } ]"},
        {"behind a literal", "[true,]", "[true ]"},
        {"behind a string that ends in one", "[\"a,\",]", "[\"a,\" ]"},
        {"with white space", "[1 , \n\t]", "[1   \n\t]"},
        {"with comments", "[1, // a\n/* b */ ]", "[1      \n        ]"},
        {"with a comment before", "[1 /* a */, ]", "[1          ]"},
        {"a comma and a bracket in a string", "[\",]\"]", "[\",]\"]"},
        {"a byte order mark", "\xef\xbb\xbf{}", "   {}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_doc *doc = NULL;
        weft_fault fault;
        size_t len = strlen(rows[i].text);
        test_row(rows[i].name);
        CHECK_INT(weft__relaxed_parse(rows[i].text, len, NULL, &doc, &fault), 0);
        if (doc)
            CHECK_TEXT(doc->text, len, rows[i].strict);
        weft_doc_free(doc);
    }
}

TEST(faults) {
    static const struct {
        const char *text;
        size_t line, column;
        const char *why;
    } rows[] = {
        {"", 1, 1, "expected a value"},
        {" \n ", 2, 2, "expected a value"},
        {"// only a comment\n", 2, 1, "expected a value"},
        {"\xef\xbb\xbf", 1, 1, "expected a value"},
        {"\xef\xbb\xbf[1 2]", 1, 4, "expected a ',' or a ']'"},
        {"{} {}", 1, 4, "expected the end of the text"},
        {"1,", 1, 2, "expected the end of the text"},
        {"]", 1, 1, "expected a value"},
        {"/", 1, 1, "expected a value"},
        {"{} /", 1, 4, "expected the end of the text"},
        {"{} / * */", 1, 4, "expected the end of the text"},
        {"{", 1, 2, "expected a name in double quotes"},
        {"{\n  a: 1\n}", 2, 3, "expected a name in double quotes"},
        {"{'a': 1}", 1, 2, "expected a name in double quotes"},
        {"{\"a\" 1}", 1, 6, "expected a ':'"},
        {"{\"a\"", 1, 5, "expected a ':'"},
        {"{\"a\":}", 1, 6, "expected a value"},
        {"{\"a\":'b'}", 1, 6, "expected a value; strings are in double quotes"},
        {"{\"a\":1 \"b\":2}", 1, 8, "expected a ',' or a '}'"},
        {"{\"a\":1]", 1, 7, "expected a ',' or a '}'"},
        {"{\"a\":1", 1, 7, "expected a ',' or a '}'"},
        {"[1 2]", 1, 4, "expected a ',' or a ']'"},
        {"[1}", 1, 3, "expected a ',' or a ']'"},
        {"[[1]", 1, 5, "expected a ',' or a ']'"},
        /* Commas that are no trailing ones. */
        {"[,]", 1, 2, "expected a value"},
        {"{,}", 1, 2, "expected a name in double quotes"},
        {"[1,,]", 1, 4, "expected a value"},
        {"[1,,2]", 1, 4, "expected a value"},
        {"[1,/* , */,]", 1, 11, "expected a value"},
        {"{\"a\":,}", 1, 6, "expected a value"},
        {"{\"a\",}", 1, 6, "expected a ':'"},
        {"{\"a\":1,,}", 1, 8, "expected a name in double quotes"},
        {"[1,}", 1, 4, "expected a ',' or a ']'"},
        {"[1,", 1, 4, "expected a value"},
        {"{\"a\":1},", 1, 8, "expected the end of the text"},
        /* Comments. */
        {"{} /* a", 1, 4, "this comment does not end"},
        {"{\n/* a\n", 2, 1, "this comment does not end"},
        {"/*/{}", 1, 1, "this comment does not end"},
        {"/* a /* b */ c */{}", 1, 14, "expected a value"},
        {"{} */", 1, 4, "expected the end of the text"},
        {"[1 2 /* a", 1, 4, "expected a ',' or a ']'"},
        {"# no\n{}", 1, 1, "expected a value"},
        /* Lines and columns. */
        {"{\r\n\r\n x}", 3, 2, "expected a name in double quotes"},
        {"{\r\r x}", 3, 2, "expected a name in double quotes"},
        {"{\"a\": 1, // \xc3\xa9\n x}", 2, 2, "expected a name in double quotes"},
        {"{\"\xc3\xa9\xe2\x82\xac\": x}", 1, 8, "expected a value"},
        {"/* \xc3\xa9\xc3\xa9 */ x", 1, 10, "expected a value"},
        /* Strings. */
        {"[\"a", 1, 2, "this string does not end on its line"},
        {"[\"a\\", 1, 2, "this string does not end on its line"},
        {"[\"a\\\"]", 1, 2, "this string does not end on its line"},
        {"{\n \"a\n\": 1}", 2, 2, "this string does not end on its line"},
        {"[\"a\r\n\"]", 1, 2, "this string does not end on its line"},
        {"[\"a\tb\"]", 1, 4, "a control character in a string must be written as an escape"},
        {"[\"C:\\dir\"]", 1, 5, "this is not an escape of JSON; a backslash itself is \\\\"},
        {"[\"\\u12g4\"]", 1, 3, "this is not an escape of JSON; a backslash itself is \\\\"},
        {"[\"\\u12\"]", 1, 3, "this is not an escape of JSON; a backslash itself is \\\\"},
        {"[\"a\xff\"]", 1, 4, "this is not UTF-8"},
        {"[\"\xc3\"]", 1, 3, "this is not UTF-8"},
        /* Numbers and words. */
        {"[01]", 1, 2, "a number does not begin with 0"},
        {"[-]", 1, 3, "expected a digit"},
        {"[-01]", 1, 3, "a number does not begin with 0"},
        {"[1.]", 1, 4, "expected a digit"},
        {"[1e]", 1, 4, "expected a digit"},
        {"[1e+]", 1, 5, "expected a digit"},
        {"[.5]", 1, 2, "expected a value"},
        {"[+5]", 1, 2, "expected a value"},
        {"[0x10]", 1, 3, "expected a ',' or a ']'"},
        {"[tru]", 1, 2, "expected a value"},
        {"[truex]", 1, 6, "expected a ',' or a ']'"},
        {"[True]", 1, 2, "expected a value"},
        {"[NaN]", 1, 2, "expected a value"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_doc *doc = NULL;
        weft_fault fault = {0};
        test_row(rows[i].text);
        CHECK_INT(weft__relaxed_parse(rows[i].text, strlen(rows[i].text), NULL, &doc, &fault), -EBADMSG);
        weft_place place = weft__place_of(rows[i].text, fault.at);
        CHECK_INT(place.line, rows[i].line);
        CHECK_INT(place.column, rows[i].column);
        CHECK_STR(fault.why, rows[i].why);
    }
}

TEST(depth) {
    char text[2 * WEFT_MAX_DEPTH + 3];
    weft_doc *doc = NULL;
    weft_fault fault = {0};
    memset(text, '[', WEFT_MAX_DEPTH);
    memset(text + WEFT_MAX_DEPTH, ']', WEFT_MAX_DEPTH);
    CHECK_INT(weft__relaxed_parse(text, 2 * WEFT_MAX_DEPTH, NULL, &doc, &fault), 0);
    doc = weft_doc_free(doc);
    memset(text, '[', WEFT_MAX_DEPTH + 1);
    memset(text + WEFT_MAX_DEPTH + 1, ']', WEFT_MAX_DEPTH + 1);
    CHECK_INT(weft__relaxed_parse(text, 2 * WEFT_MAX_DEPTH + 2, NULL, &doc, &fault), -EBADMSG);
    CHECK_INT(fault.at, WEFT_MAX_DEPTH);
    CHECK_STR(fault.why, "nested too deeply");
}

TEST(a_nul) {
    static const char text[] = "{\"a\": 1}\0// more";
    static const char inside[] = "[\"a\0b\"]";
    weft_doc *doc = NULL;
    weft_fault fault = {0};
    CHECK_INT(weft__relaxed_parse(text, sizeof text - 1, NULL, &doc, &fault), -EBADMSG);
    CHECK_INT(fault.at, 8);
    CHECK_INT(weft__relaxed_parse(inside, sizeof inside - 1, NULL, &doc, &fault), -EBADMSG);
    CHECK_INT(fault.at, 3);
    CHECK_STR(fault.why, "a control character in a string must be written as an escape");
}

/* Every beginning of a text, and the text with any byte replaced: the fault finder and the reference agree on what is JSON.
 */
TEST(agrees_with_the_reference) {
    static const char text[] = "{\"a\\u00e9\\n\": [1, -0.5e+3, true, null, {}], \"\xc3\xa9\": {\"b\": false}}";
    static const char bytes[] = "\"\\{}[],:x0-.e/*\n\x01\xff ";
    char copy[sizeof text + WEFT_SLACK];
    size_t len = sizeof text - 1, disagreed = 0, valid = 0;
    for (size_t n = 0; n <= len; n++) {
        memset(copy, 0, sizeof copy);
        memcpy(copy, text, n);
        disagreed += (weft__fault_find(copy, n).why == NULL) != reference_valid(copy, n, WEFT_MAX_DEPTH);
    }
    for (size_t i = 0; i < len; i++)
        for (size_t j = 0; j < sizeof bytes; j++) {
            memset(copy, 0, sizeof copy);
            memcpy(copy, text, len);
            copy[i] = bytes[j];
            bool is = reference_valid(copy, len, WEFT_MAX_DEPTH);
            valid += is;
            disagreed += (weft__fault_find(copy, len).why == NULL) != is;
        }
    CHECK_INT(disagreed, 0);
    CHECK(valid > 0);
}

TEST(failing_allocations) {
    static const char text[] = "{\"a\": 1, /* b */}";
    test_memory memory;
    int r = -ENOMEM;
    for (long fail_at = 1; r == -ENOMEM && fail_at < 100; fail_at++) {
        weft_doc *doc = NULL;
        weft_fault fault;
        test_memory_init(&memory, fail_at);
        r = weft__relaxed_parse(text, strlen(text), &memory.alloc, &doc, &fault);
        weft_doc_free(doc);
        CHECK_INT(memory.live, 0);
    }
    CHECK_INT(r, 0);
}

TEST_MAIN(CASE(blanked) CASE(faults) CASE(depth) CASE(a_nul) CASE(agrees_with_the_reference) CASE(failing_allocations))
