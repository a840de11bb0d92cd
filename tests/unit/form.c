/* Forms of agents: which can be filled in, and what is right. */
#include "form.h"

#include <errno.h>
#include <string.h>

#include "harness.h"

static weft_doc *parse(const char *text) {
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    return doc;
}

TEST(which_forms_can_be_filled_in) {
    static const struct {
        const char *schema, *why; /* NULL: it can */
    } rows[] = {
        {"{}", NULL},
        {"{\"type\":\"object\",\"properties\":{}}", NULL},
        {"{\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"number\"},\"c\":{\"type\":\"integer\"},\"d\":{"
         "\"type\":"
         "\"boolean\"}}}",
         NULL},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"oneOf\":[{\"const\":\"x\",\"title\":\"X\"}]},\"b\":{\"type\":"
         "\"array\","
         "\"items\":{\"type\":\"string\",\"enum\":[\"x\"]}},\"c\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":"
         "\"x\","
         "\"title\":\"X\"}]}}}}",
         NULL},
        {"[]", "the form is not an object"},
        {"{\"properties\":[]}", "its properties are not an object"},
        {"{\"properties\":{\"a\":{\"type\":\"object\"}}}", "a is of a kind that nobody can fill in"},
        {"{\"properties\":{\"a\":7}}", "a is of a kind"},
        {"{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{}}}}", "a is of a kind"},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"enum\":[]}}}", "a has nothing to choose from"},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"enum\":[7]}}}", "a has a choice that is not a text"},
        {"{\"properties\":{\"a\":{\"type\":\"string\"},\"\\u0061\":{\"type\":\"string\"}}}", "a is there twice"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char why[WEFT_FORM_WHY] = "";
        test_row(rows[i].schema);
        weft_doc *doc = parse(rows[i].schema);
        CHECK_INT(weft__form_check(weft_doc_root(doc), why), rows[i].why ? -EINVAL : 0);
        CHECK(strstr(why, rows[i].why ? rows[i].why : "") != NULL);
        weft_doc_free(doc);
    }
    test_row(NULL);
}

TEST(a_form_is_not_endless) {
    static char text[WEFT_FORM_BYTES + 100];
    char why[WEFT_FORM_WHY];
    for (size_t fields = WEFT_FORM_FIELDS; fields <= WEFT_FORM_FIELDS + 1; fields++) {
        size_t n = (size_t) snprintf(text, sizeof text, "{\"properties\":{");
        for (size_t i = 0; i < fields; i++)
            n += (size_t) snprintf(text + n, sizeof text - n, "%s\"f%zu\":{\"type\":\"string\"}", i ? "," : "", i);
        snprintf(text + n, sizeof text - n, "}}");
        weft_doc *doc = parse(text);
        CHECK_INT(weft__form_check(weft_doc_root(doc), why), fields > WEFT_FORM_FIELDS ? -EINVAL : 0);
        weft_doc_free(doc);
    }
    memset(text, ' ', sizeof text - 1);
    memcpy(text, "{\"title\":\"", 10);
    memcpy(text + sizeof text - 3, "\"}", 2);
    weft_doc *doc = parse(text);
    CHECK_INT(weft__form_check(weft_doc_root(doc), why), -EINVAL);
    weft_doc_free(doc);
}

static const char form[] =
    "{\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":4},\"port\":{\"type\":\"integer\","
    "\"minimum\":1,\"maximum\":65535,\"default\":80},\"rate\":{\"type\":\"number\",\"maximum\":1.5},\"fast\":{\"type\":"
    "\"boolean\",\"default\":false},\"env\":{\"type\":\"string\",\"enum\":[\"dev\",\"prod\"],\"default\":\"none of "
    "them\"},\"mail\":{\"type\":\"string\",\"format\":\"email\"},\"day\":{\"type\":\"string\",\"format\":\"date\"},\"at\":{"
    "\"type\":\"string\",\"format\":\"date-time\"},\"url\":{\"type\":\"string\",\"format\":\"uri\"},\"tags\":{\"type\":"
    "\"array\",\"minItems\":1,\"maxItems\":2,\"items\":{\"anyOf\":[{\"const\":\"a\",\"title\":\"A\"},{\"const\":\"b\","
    "\"title\":\"B\"},{\"const\":\"c\",\"title\":\"C\"}]}}},\"required\":[\"name\",7]}";

TEST(what_is_filled_in) {
    static const struct {
        const char *content, *answer; /* or why not */
        bool refused;
    } rows[] = {
        {"{\"name\":\"ab\"}", "{\"name\":\"ab\",\"port\":80,\"fast\":false}", false},
        {"{\"fast\":true,\"name\":\"\u00e4\u00f6\u00fc\u00df\",\"port\":8080,\"rate\":1e-3}",
         "{\"name\":\"\u00e4\u00f6\u00fc\u00df\",\"port\":8080,\"rate\":1e-3,\"fast\":true}", false},
        {"{\"name\":\"ab\",\"port\":null}", "{\"name\":\"ab\",\"port\":80,\"fast\":false}", false},
        {"{\"name\":\"ab\",\"env\":\"prod\",\"tags\":[\"a\",\"c\"],\"mail\":\"a@b\",\"day\":\"2026-02-03\",\"at\":"
         "\"2026-02-03T04:05:06Z\",\"url\":\"https://x\"}",
         "{\"name\":\"ab\",\"port\":80,\"fast\":false,\"env\":\"prod\",\"mail\":\"a@b\",\"day\":\"2026-02-03\",\"at\":"
         "\"2026-02-03T04:05:06Z\",\"url\":\"https://x\",\"tags\":[\"a\",\"c\"]}",
         false},
        {"{\"name\":\"ab\",\"port\":8.0e1}", "{\"name\":\"ab\",\"port\":8.0e1,\"fast\":false}", false},
        {"{}", "name is missing", true},
        {"[]", "is not an object", true},
        {"{\"name\":\"a\"}", "name must have at least 2 characters", true},
        {"{\"name\":\"abcde\"}", "name must have at most 4 characters", true},
        {"{\"name\":7}", "name must be a text", true},
        {"{\"name\":\"ab\",\"port\":0}", "port must not be below 1", true},
        {"{\"name\":\"ab\",\"port\":65536}", "port must not be above 65535", true},
        {"{\"name\":\"ab\",\"port\":1.5}", "port must be a whole number", true},
        {"{\"name\":\"ab\",\"port\":\"80\"}", "port must be a whole number", true},
        {"{\"name\":\"ab\",\"rate\":2}", "rate must not be above 1.5", true},
        {"{\"name\":\"ab\",\"rate\":1e999}", "rate must be a number", true},
        {"{\"name\":\"ab\",\"fast\":\"yes\"}", "fast must be true or false", true},
        {"{\"name\":\"ab\",\"env\":\"test\"}", "env must be one of its choices", true},
        {"{\"name\":\"ab\",\"env\":[\"dev\"]}", "env must be one of its choices", true},
        {"{\"name\":\"ab\",\"tags\":[]}", "tags must have at least 1 choices", true},
        {"{\"name\":\"ab\",\"tags\":[\"a\",\"b\",\"c\"]}", "tags must have at most 2 choices", true},
        {"{\"name\":\"ab\",\"tags\":[\"d\"]}", "tags must be one of its choices", true},
        {"{\"name\":\"ab\",\"tags\":\"a\"}", "tags must be a list of its choices", true},
        {"{\"name\":\"ab\",\"mail\":\"a b@c\"}", "mail must be an e-mail address", true},
        {"{\"name\":\"ab\",\"mail\":\"\"}", "mail must be an e-mail address", true},
        {"{\"name\":\"ab\",\"day\":\"2026-13-01\"}", "day must be a date", true},
        {"{\"name\":\"ab\",\"day\":\"2026-12-01x\"}", "day must be a date", true},
        {"{\"name\":\"ab\",\"at\":\"2026-12-01\"}", "at must be a date and a time", true},
        {"{\"name\":\"ab\",\"url\":\"x y\"}", "url must be a URI", true},
        {"{\"name\":\"ab\",\"more\":1}", "more is not a field of the form", true},
    };
    weft_doc *schema = parse(form);
    char why[WEFT_FORM_WHY];
    CHECK_INT(weft__form_check(weft_doc_root(schema), why), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_buf out = {0};
        test_row(rows[i].content);
        weft_doc *content = parse(rows[i].content);
        int r = weft__form_fill(weft_doc_root(schema), weft_doc_root(content), NULL, &out, why);
        CHECK_INT(r, rows[i].refused ? -EINVAL : 0);
        if (rows[i].refused && !strstr(why, rows[i].answer))
            CHECK_STR(&why[0], rows[i].answer);
        if (!rows[i].refused)
            CHECK_TEXT(weft__buf_head(&out), weft__buf_len(&out), rows[i].answer);
        weft__buf_done(&out, NULL);
        weft_doc_free(content);
    }
    test_row(NULL);
    weft_doc_free(schema);
}

TEST(memory_is_short) {
    weft_doc *schema = parse(form), *content = parse("{\"name\":\"ab\"}");
    test_memory memory;
    bool reached = true;
    for (long n = 1; reached; n++) {
        char why[WEFT_FORM_WHY];
        weft_buf out = {0};
        test_memory_init(&memory, n);
        int r = weft__form_fill(weft_doc_root(schema), weft_doc_root(content), &memory.alloc, &out, why);
        reached = memory.count >= n;
        CHECK_INT(r, reached ? -ENOMEM : 0);
        weft__buf_done(&out, &memory.alloc);
        CHECK_INT(memory.live, 0);
    }
    weft_doc_free(schema);
    weft_doc_free(content);
}

TEST_MAIN(CASE(which_forms_can_be_filled_in) CASE(a_form_is_not_endless) CASE(what_is_filled_in) CASE(memory_is_short))
