/* Conditions: every operator over what it is for and what it is not for, and expressions that would take for ever. */
#include "condition.h"

#include <errno.h>
#include <stdlib.h>

#include "harness.h"

static const char event_text[] =
    "{\"type\":\"file.modify\",\"source\":\"watcher\",\"depth\":0,\"payload\":{\"path\":\"src/"
    "a.ts\",\"size\":10,\"half\":0.5,"
    "\"ok\":true,\"none\":null,\"big\":9007199254740993,\"tags\":[\"x\",\"y\",3,{\"k\":1}],\"deep\":{\"er\":{\"est\":"
    "\"down\"}},"
    "\"obj\":{\"b\":1,\"a\":[1,2]},\"umlaut\":\"Gr\\u00fc\\u00dfe\",\"aaaa\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\","
    "\"payload\":{\"path\":\"inner\"}}}";

static int holds(const char *condition, char *why) {
    weft_doc *event, *doc;
    weft_condition *c = NULL;
    CHECK_INT(weft_doc_parse(event_text, strlen(event_text), NULL, &event), 0);
    CHECK_INT(weft_doc_parse(condition, strlen(condition), NULL, &doc), 0);
    int r = weft__condition_new(weft_doc_root(doc), NULL, &c, why);
    if (r == 0)
        r = weft__condition_holds(c, weft_doc_root(event));
    weft__condition_free(c);
    weft_doc_free(doc);
    weft_doc_free(event);
    return r;
}

TEST(operators) {
    static const struct {
        const char *field, *op, *value;
        int want;
    } rows[] = {
        {"payload.path", "eq", "\"src/a.ts\"", 1},
        {"path", "eq", "\"src/a.ts\"", 1},
        {"path", "eq", "\"src/a\\u002ets\"", 1},
        {"path", "eq", "\"src/b.ts\"", 0},
        {"type", "eq", "\"file.modify\"", 1},
        {"payload.payload.path", "eq", "\"inner\"", 1},
        {"payload.size", "eq", "10", 1},
        {"payload.size", "eq", "10.0", 1},
        {"payload.size", "eq", "\"10\"", 0},
        {"payload.big", "eq", "9007199254740992", 0},
        {"payload.ok", "eq", "true", 1},
        {"payload.ok", "eq", "false", 0},
        {"payload.none", "eq", "null", 1},
        {"payload.missing", "eq", "null", 1},
        {"payload.missing", "eq", "\"\"", 0},
        {"payload.obj", "eq", "{\"a\":[1,2.0],\"b\":1}", 1},
        {"payload.obj", "eq", "{\"a\":[2,1],\"b\":1}", 0},
        {"payload.path", "neq", "\"x\"", 1},
        {"payload.path", "neq", "\"src/a.ts\"", 0},
        {"payload.missing", "neq", "\"x\"", 1},
        {"payload.path", "contains", "\"/a\"", 1},
        {"payload.path", "contains", "\"\"", 1},
        {"payload.path", "contains", "\"/b\"", 0},
        {"payload.tags", "contains", "\"y\"", 1},
        {"payload.tags", "contains", "3", 1},
        {"payload.tags", "contains", "{\"k\":1}", 1},
        {"payload.tags", "contains", "\"z\"", 0},
        {"payload.size", "contains", "1", 0},
        {"payload.tags.1", "eq", "\"y\"", 1},
        {"payload.tags.3.k", "eq", "1", 1},
        {"payload.tags.9", "exists", "0", 0},
        {"payload.tags.-1", "exists", "0", 0},
        {"deep.er.est", "eq", "\"down\"", 1},
        {"payload.size", "gt", "9", 1},
        {"payload.size", "gt", "10", 0},
        {"payload.size", "gte", "10", 1},
        {"payload.size", "lt", "10.5", 1},
        {"payload.size", "lte", "9.99", 0},
        {"payload.half", "gt", "0.25", 1},
        {"payload.big", "gt", "9007199254740992", 1},
        {"payload.size", "gt", "\"9\"", 0},
        {"payload.missing", "lt", "1", 0},
        {"payload.path", "gt", "\"src/A.ts\"", 1},
        {"payload.path", "lte", "\"src/a.ts\"", 1},
        {"payload.path", "exists", "0", 1},
        {"payload.none", "exists", "0", 0},
        {"payload.missing", "exists", "0", 0},
        {"payload.missing", "not_exists", "0", 1},
        {"payload.none", "not_exists", "0", 1},
        {"payload.path", "matches", "\"^src/.*\\\\.ts$\"", 1},
        {"payload.path", "matches", "\"\\\\.js$\"", 0},
        {"payload.size", "matches", "\"^1\\\\d$\"", 1},
        {"payload.umlaut", "matches", "\"^Gr.\\u00dfe$\"", 1},
        {"payload.missing", "matches", "\".*\"", 0},
        /* Backtracking without end is given up. */
        {"payload.aaaa", "matches", "\"^(a+)+$\"", -EOVERFLOW},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256], name[128], why[WEFT_RULE_WHY] = "";
        snprintf(text, sizeof text, "{\"field\":\"%s\",\"operator\":\"%s\",\"value\":%s}", rows[i].field, rows[i].op,
                 rows[i].value);
        snprintf(name, sizeof name, "%s %s %s", rows[i].field, rows[i].op, rows[i].value);
        test_row(name);
        CHECK_INT(holds(text, why), rows[i].want);
        CHECK_INT(strlen(why), 0);
    }
    test_row(NULL);
}

TEST(refuses) {
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"{}", "no field"},
        {"5", "no field"},
        {"{\"field\":\"\"}", "no field"},
        {"{\"field\":\"a\"}", "no operator"},
        {"{\"field\":\"a\",\"operator\":\"like\"}", "no operator \"like\""},
        {"{\"field\":\"a\",\"operator\":\"eq\"}", "no value"},
        {"{\"field\":\"a\",\"operator\":\"matches\",\"value\":5}", "must be a text"},
        {"{\"field\":\"a\",\"operator\":\"matches\",\"value\":\"a(b\"}", "not valid at character 4"},
        {"{\"field\":\"a\",\"operator\":\"matches\",\"value\":\"\\\\C\"}", "regular expression"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char why[WEFT_RULE_WHY] = "";
        test_row(rows[i].text);
        CHECK_INT(holds(rows[i].text, why), -EINVAL);
        CHECK(strstr(why, rows[i].why) != NULL);
    }
    test_row(NULL);
}

/* An expression longer than the limit, and one that nests too deeply. */
TEST(limits) {
    char *text = malloc(8192), why[WEFT_RULE_WHY] = "";
    int n = sprintf(text, "{\"field\":\"a\",\"operator\":\"matches\",\"value\":\"");
    memset(text + n, 'a', 5000);
    strcpy(text + n + 5000, "\"}");
    CHECK_INT(holds(text, why), -EINVAL);
    memset(text + n, '(', 100);
    memset(text + n + 100, ')', 100);
    strcpy(text + n + 200, "\"}");
    CHECK_INT(holds(text, why), -EINVAL);
    free(text);
}

TEST(every_allocation) {
    const char *text = "{\"field\":\"path\",\"operator\":\"matches\",\"value\":\"^src\"}";
    weft_doc *doc, *event;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    CHECK_INT(weft_doc_parse(event_text, strlen(event_text), NULL, &event), 0);
    for (long n = 1; n < 100; n++) {
        test_memory memory;
        weft_condition *c = NULL;
        char why[WEFT_RULE_WHY] = "";
        test_memory_init(&memory, n);
        int r = weft__condition_new(weft_doc_root(doc), &memory.alloc, &c, why);
        if (r == 0)
            r = weft__condition_holds(c, weft_doc_root(event));
        weft__condition_free(c);
        CHECK_INT(memory.live, 0);
        if (r == 1)
            break;
        CHECK_INT(r, -ENOMEM);
        CHECK(n < 99);
    }
    weft_doc_free(doc);
    weft_doc_free(event);
}

TEST_MAIN(CASE(operators) CASE(refuses) CASE(limits) CASE(every_allocation))
