/* Tool calls as clients of the hub's ACP side see them: without ids of terminals that the hub runs. */
#include "acp.h"

#include <errno.h>

#include "harness.h"

#define OURS "{\"type\":\"terminal\",\"terminalId\":\"weft-terminal-0123456789abcdef\"}"
#define THEIRS "{\"type\":\"terminal\",\"terminalId\":\"call_7\"}"
#define TEXT "{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"x\"}}"

static const struct {
    const char *name, *call, *shown; /* NULL: as it is */
} rows[] = {
    {"no content", "{\"toolCallId\":\"t\"}", NULL},
    {"content that is no list", "{\"content\":{\"type\":\"text\",\"text\":\"weft-terminal-\"}}", NULL},
    {"none of ours", "{\"content\":[" TEXT "," THEIRS "]}", NULL},
    {"odd elements", "{\"content\":[null,7,[],{},{\"terminalId\":8},{\"terminalId\":\"\"}]}", NULL},
    {"one of ours alone", "{\"toolCallId\":\"t\",\"content\":[" OURS "],\"title\":\"y\"}",
     "{\"toolCallId\":\"t\",\"content\":[],\"title\":\"y\"}"},
    {"among others", "{\"content\":[" TEXT "," OURS "," THEIRS "," OURS "," TEXT "]}",
     "{\"content\":[" TEXT "," THEIRS "," TEXT "]}"},
    {"first", "{\"content\":[" OURS "," TEXT "]}", "{\"content\":[" TEXT "]}"},
};

static int hide(const char *call, const weft_alloc *alloc, weft_buf *ret) {
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse(call, strlen(call), NULL, &doc), 0);
    int r = weft__acp_hide_terminals(weft_doc_root(doc), alloc, ret);
    weft_doc_free(doc);
    return r;
}

TEST(ids_of_ours_are_left_out) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_buf shown = {0};
        test_row(rows[i].name);
        CHECK_INT(hide(rows[i].call, NULL, &shown), rows[i].shown != NULL);
        CHECK_TEXT(weft__buf_len(&shown) ? weft__buf_head(&shown) : "", weft__buf_len(&shown),
                   rows[i].shown ? rows[i].shown : "");
        weft__buf_done(&shown, NULL);
    }
    test_row(NULL);
}

TEST(memory_may_be_short) {
    const char *call = rows[5].call;
    for (long fail_at = 1;; fail_at++) {
        weft_buf shown = {0};
        test_memory memory;
        test_memory_init(&memory, fail_at);
        int r = hide(call, &memory.alloc, &shown);
        CHECK(r == 1 || r == -ENOMEM);
        weft__buf_done(&shown, &memory.alloc);
        CHECK_INT(memory.live, 0);
        if (r == 1)
            return;
    }
}

TEST_MAIN(CASE(ids_of_ours_are_left_out) CASE(memory_may_be_short))
