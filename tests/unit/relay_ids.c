/* The hub's name before ids, and away again: what is an id, where ids stand, and what stays as it is. */
#include "harness.h"
#include "relay_private.h"

typedef struct row {
    const char *in, *out;
} row;

typedef int rewrite(weft_buf *out, const weft_json *value);

static int put_event(weft_buf *out, const weft_json *value) {
    return weft__relay_put_ids(out, value, "box:", false);
}

static int put_answer(weft_buf *out, const weft_json *value) {
    return weft__relay_put_ids(out, value, "box:", true);
}

static int put_alone(weft_buf *out, const weft_json *value) {
    return weft__relay_put_ids(out, value, "", true);
}

static int put_bare(weft_buf *out, const weft_json *value) {
    return weft__relay_put_bare(out, value, "box:");
}

static void check_rows(rewrite *how, const row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        weft_buf out = {0};
        weft_doc *doc, *whole = NULL;
        test_row(rows[i].in);
        CHECK_INT(0, weft_doc_parse(rows[i].in, strlen(rows[i].in), NULL, &doc));
        CHECK_INT(0, how(&out, weft_doc_root(doc)));
        CHECK_INT(strlen(rows[i].out), weft__buf_len(&out));
        CHECK(weft__buf_len(&out) == strlen(rows[i].out) &&
              memcmp(weft__buf_head(&out), rows[i].out, weft__buf_len(&out)) == 0);
        CHECK_INT(0, weft_doc_parse(weft__buf_head(&out), weft__buf_len(&out), NULL, &whole));
        weft_doc_free(whole);
        weft_doc_free(doc);
        weft__buf_done(&out, NULL);
    }
    test_row(NULL);
}
#define ROWS(how, rows) check_rows(how, rows, sizeof(rows) / sizeof(rows)[0])

TEST(events) {
    static const row rows[] = {
        {"{\"taskId\":\"task-0007\"}", "{\"taskId\":\"box:task-0007\"}"},
        {"{ \"taskId\" : \"task-0007\" , \"n\" : [ 1 ] }", "{\"taskId\":\"box:task-0007\",\"n\":[ 1 ]}"},
        {"{\"questionId\":\"question-1\",\"sessionId\":null}", "{\"questionId\":\"box:question-1\",\"sessionId\":null}"},
        {"{\"others\":[\"task-1\",\"x\",2]}", "{\"others\":[\"box:task-1\",\"x\",2]}"},
        /* what an agent says is not looked into, nor what is no id */
        {"{\"update\":{\"taskId\":\"task-1\"},\"text\":\"task-1\"}",
         "{\"update\":{\"taskId\":\"task-1\"},\"text\":\"task-1\"}"},
        {"{\"taskId\":\"task-\"}", "{\"taskId\":\"task-\"}"},
        {"{\"taskId\":\"task-1x\"}", "{\"taskId\":\"task-1x\"}"},
        /* a hub speaks of its own tasks, however it calls them */
        {"{\"taskId\":\"other:task-1\"}", "{\"taskId\":\"box:other:task-1\"}"},
        {"{\"taskId\":\"other\\u003atask-1\"}", "{\"taskId\":\"box:other\\u003atask-1\"}"},
        {"{\"taskId\":\"a:b:task-1\"}", "{\"taskId\":\"box:a:b:task-1\"}"},
        {"{\"taskId\":\":task-1\"}", "{\"taskId\":\":task-1\"}"},
        {"{\"task\\u0049d\":\"task-1\"}", "{\"task\\u0049d\":\"box:task-1\"}"},
        {"{\"taskId\":\"\\u0074ask-1\"}", "{\"taskId\":\"box:\\u0074ask-1\"}"},
        {"{\"key\":\"k\",\"a\":1}", "{\"a\":1}"},
        {"{\"key\":\"k\"}", "{}"},
        {"{}", "{}"},
        {"5", "5"},
        {"\"task-1\"", "\"task-1\""},
        {"[]", "[]"},
    };
    ROWS(put_event, rows);
}

TEST(answers) {
    static const row rows[] = {
        {"{\"tasks\":[{\"id\":\"task-1\",\"key\":\"k\"}]}", "{\"tasks\":[{\"id\":\"box:task-1\",\"key\":\"k\"}]}"},
        {"[{\"id\":\"plan-1\"},[],{}]", "[{\"id\":\"box:plan-1\"},[],{}]"},
        {"{\"id\":\"allow\"}", "{\"id\":\"allow\"}"},
        {"{\"id\":7}", "{\"id\":7}"},
    };
    ROWS(put_answer, rows);
    static const row alone[] = {{"{ \"id\": \"task-1\" }", "{ \"id\": \"task-1\" }"}};
    ROWS(put_alone, alone);
}

TEST(params) {
    static const row rows[] = {
        {"{\"taskId\":\"box:task-1\",\"hub\":\"box\"}", "{\"taskId\":\"task-1\"}"},
        {"{\"taskIds\":[\"box:task-1\",\"bix:task-1\"]}", "{\"taskIds\":[\"task-1\",\"bix:task-1\"]}"},
        {"{\"prompt\":\"box:task-1\"}", "{\"prompt\":\"box:task-1\"}"},
        {"{\"taskId\":\"box:in:task-1\"}", "{\"taskId\":\"in:task-1\"}"},
        {"{\"taskId\":\"bo\\u0078:task-1\"}", "{\"taskId\":\"task-1\"}"},
        {"{\"taskId\":\"box:task-x\"}", "{\"taskId\":\"box:task-x\"}"},
        {"{\"metadata\":{\"hub\":\"mine\"}}", "{\"metadata\":{\"hub\":\"mine\"}}"},
    };
    ROWS(put_bare, rows);
}

/* The name, or "" where there is none. */
TEST(named) {
    static const row rows[] = {
        {"{\"taskId\":\"box:task-1\"}", "box"},
        {"{\"prompt\":\"box:task-1\"}", ""},
        {"{\"taskId\":\":task-1\"}", ""},
        {"{\"taskId\":\"task-1\"}", ""},
        {"{\"taskId\":\"box:in:task-1\"}", "box"},
        {"{\"taskIds\":[\"a:task-1\",\"b:task-1\"]}", "a"},
        {"{\"taskIds\":[]}", ""},
        {"{\"taskId\":\"a234567890123456:task-1\"}", "a234567890123456"},
        {"{\"taskId\":\"a2345678901234567:task-1\"}", ""},
        {"[\"box:task-1\"]", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[WEFT_RELAY_NAME + 1] = "";
        weft_doc *doc;
        test_row(rows[i].in);
        CHECK_INT(0, weft_doc_parse(rows[i].in, strlen(rows[i].in), NULL, &doc));
        CHECK_INT(strlen(rows[i].out), weft__relay_named(weft_doc_root(doc), name));
        CHECK_STR(rows[i].out, name);
        weft_doc_free(doc);
    }
    test_row(NULL);
}

TEST_MAIN(CASE(events) CASE(answers) CASE(params) CASE(named))
