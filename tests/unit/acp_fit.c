/* What agents say, as clients of the hub's ACP side are told it: what version 1 does not have is left out. */
#include "acp.h"

#include <errno.h>

#include "harness.h"

#define TEXT "{\"type\":\"text\",\"text\":\"x\"}"
#define SELECT                                                                                                              \
    "{\"id\":\"m\",\"name\":\"M\",\"type\":\"select\",\"currentValue\":\"a\",\"options\":[{\"value\":\"a\",\"name\":"       \
    "\"A\"}]}"
#define FLAG "{\"id\":\"f\",\"name\":\"F\",\"type\":\"boolean\",\"currentValue\":true}"

enum { AS_IT_IS = 0, WRITTEN = 1 };

static const struct {
    const char *name, *kind, *said, *told; /* NULL: as it is */
    int r;
} rows[] = {
    {"a text", "agent_message_chunk", "{\"content\":" TEXT ",\"more\":{\"x\":1}}"},
    {"a resource", "agent_message_chunk",
     "{\"content\":{\"type\":\"resource\",\"resource\":{\"uri\":\"u\",\"blob\":\"\"}}}"},
    {"a name that is none", "agent_thought_chunk", "{\"messageId\":7,\"content\":" TEXT "}", "{\"content\":" TEXT "}",
     WRITTEN},
    {"no content", "agent_message_chunk", "{}", NULL, -EBADMSG},
    {"content that is a text", "agent_message_chunk", "{\"content\":\"x\"}", NULL, -EBADMSG},
    {"a text without one", "agent_message_chunk", "{\"content\":{\"type\":\"text\"}}", NULL, -EBADMSG},
    {"content of no kind", "agent_message_chunk", "{\"content\":{\"type\":\"hologram\"}}", NULL, -EBADMSG},
    {"a call", "tool_call",
     "{\"toolCallId\":\"t\",\"title\":\"T\",\"kind\":\"read\",\"status\":\"failed\",\"content\":[{\"type\":\"diff\","
     "\"path\":"
     "\"/x\",\"oldText\":null,\"newText\":\"\"}],\"locations\":[{\"path\":\"/x\",\"line\":3}],\"rawInput\":[]}"},
    {"a call of no kind", "tool_call", "{\"toolCallId\":\"t\",\"kind\":\"cook\",\"status\":\"done\",\"title\":\"T\"}",
     "{\"toolCallId\":\"t\",\"title\":\"T\"}", WRITTEN},
    {"a call without a title", "tool_call", "{\"toolCallId\":\"t\"}", NULL, -EBADMSG},
    {"a call with a number", "tool_call", "{\"toolCallId\":5,\"title\":[]}", NULL, -EBADMSG},
    {"items that are none", "tool_call_update",
     "{\"toolCallId\":\"t\",\"content\":[5,{\"type\":\"content\",\"content\":" TEXT
     "},{\"type\":\"x\"}],\"locations\":[null]}",
     "{\"toolCallId\":\"t\",\"content\":[{\"type\":\"content\",\"content\":" TEXT "}],\"locations\":[]}", WRITTEN},
    {"nothing new", "tool_call_update", "{\"toolCallId\":\"t\",\"title\":null,\"kind\":null,\"content\":null}"},
    {"a list that is none", "tool_call_update", "{\"toolCallId\":\"t\",\"content\":\"x\"}", "{\"toolCallId\":\"t\"}",
     WRITTEN},
    {"a plan", "plan", "{\"entries\":[{\"content\":\"c\",\"priority\":\"low\",\"status\":\"pending\"}]}"},
    {"entries that are none", "plan", "{\"entries\":[{\"content\":\"c\"},7]}", "{\"entries\":[]}", WRITTEN},
    {"a plan that is a text", "plan", "{\"entries\":\"x\"}", NULL, -EBADMSG},
    {"usage", "usage_update", "{\"used\":1,\"size\":2,\"cost\":{\"amount\":0.5,\"currency\":\"USD\"}}"},
    {"a cost that is none", "usage_update", "{\"used\":1,\"size\":2,\"cost\":5}", "{\"used\":1,\"size\":2}", WRITTEN},
    {"usage below nothing", "usage_update", "{\"used\":-1,\"size\":2}", NULL, -EBADMSG},
    {"options", "config_option_update", "{\"configOptions\":[" SELECT "," FLAG "]}"},
    {"without flags", ACP_FIT_SELECTS, "{\"configOptions\":[" FLAG "," SELECT "]}", "{\"configOptions\":[" SELECT "]}",
     WRITTEN},
    {"an option that is none", "config_option_update", "{\"configOptions\":[{\"id\":1}]}", "{\"configOptions\":[]}",
     WRITTEN},
    {"commands", "available_commands_update",
     "{\"availableCommands\":[{\"name\":\"a\",\"description\":\"d\",\"input\":null},{\"name\":\"b\"}]}",
     "{\"availableCommands\":[{\"name\":\"a\",\"description\":\"d\",\"input\":null}]}", WRITTEN},
    {"no object", "plan", "[]", NULL, -EBADMSG},
};

static int fit(const char *kind, const char *said, const weft_alloc *alloc, weft_buf *ret) {
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse(said, strlen(said), NULL, &doc), 0);
    int r = weft__acp_fit(kind, weft_doc_root(doc), alloc, ret);
    weft_doc_free(doc);
    return r;
}

TEST(what_cannot_be_shown_is_left_out) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_buf told = {0};
        test_row(rows[i].name);
        CHECK_INT(fit(rows[i].kind, rows[i].said, NULL, &told), rows[i].r);
        CHECK_TEXT(weft__buf_len(&told) ? weft__buf_head(&told) : "", weft__buf_len(&told),
                   rows[i].told ? rows[i].told : "");
        weft__buf_done(&told, NULL);
    }
    test_row(NULL);
}

static bool may_choose(const char *option, const char *value) {
    weft_doc *one = NULL, *other = NULL;
    CHECK_INT(weft_doc_parse(option, strlen(option), NULL, &one), 0);
    CHECK_INT(weft_doc_parse(value, strlen(value), NULL, &other), 0);
    bool may = weft__acp_may_choose(weft_doc_root(one), weft_doc_root(other));
    weft_doc_free(one);
    weft_doc_free(other);
    return may;
}

TEST(values_of_options) {
    static const char grouped[] =
        "{\"type\":\"select\",\"options\":[{\"group\":\"g\",\"name\":\"G\",\"options\":[{\"value\":"
        "\"b\",\"name\":\"B\"}]}]}";
    CHECK(may_choose(SELECT, "\"a\""));
    CHECK(!may_choose(SELECT, "\"b\""));
    CHECK(!may_choose(SELECT, "true"));
    CHECK(may_choose(grouped, "\"b\""));
    CHECK(!may_choose(grouped, "\"g\""));
    CHECK(may_choose(FLAG, "false"));
    CHECK(!may_choose(FLAG, "\"true\""));
    CHECK(may_choose("{\"type\":\"dial\"}", "7"));
}

static const struct {
    const char *name, *servers;
    bool right;
} servers[] = {
    {"none", "[]", true},
    {"a program", "[{\"name\":\"x\",\"command\":\"/x\",\"args\":[\"-v\"],\"env\":[{\"name\":\"A\",\"value\":\"\"}]}]", true},
    {"by http", "[{\"type\":\"http\",\"name\":\"x\",\"url\":\"http://x\",\"headers\":[]}]", true},
    {"a name alone", "[{\"name\":\"x\"}]", false},
    {"no name", "[{\"command\":\"/x\",\"args\":[],\"env\":[]}]", false},
    {"an environment that is an object", "[{\"name\":\"x\",\"command\":\"/x\",\"args\":[],\"env\":{\"A\":\"b\"}}]", false},
    {"arguments that are a text", "[{\"name\":\"x\",\"command\":\"/x\",\"args\":\"-v\",\"env\":[]}]", false},
    {"another type", "[{\"type\":\"pigeon\",\"name\":\"x\",\"url\":\"u\",\"headers\":[]}]", false},
    {"by http, nowhere", "[{\"type\":\"http\",\"name\":\"x\",\"headers\":[]}]", false},
    {"a number", "[7]", false},
};

TEST(servers_that_an_agent_would_refuse) {
    for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++) {
        weft_doc *doc = NULL;
        test_row(servers[i].name);
        CHECK_INT(weft_doc_parse(servers[i].servers, strlen(servers[i].servers), NULL, &doc), 0);
        CHECK_INT(weft__acp_wrong_servers(weft_doc_root(doc)) == NULL, servers[i].right);
        weft_doc_free(doc);
    }
    test_row(NULL);
}

TEST(memory_may_be_short) {
    for (long fail_at = 1;; fail_at++) {
        weft_buf told = {0};
        test_memory memory;
        test_memory_init(&memory, fail_at);
        int r = fit("plan", "{\"entries\":[7]}", &memory.alloc, &told);
        CHECK(r == 1 || r == -ENOMEM);
        weft__buf_done(&told, &memory.alloc);
        CHECK_INT(memory.live, 0);
        if (r == 1)
            return;
    }
}

TEST_MAIN(CASE(what_cannot_be_shown_is_left_out) CASE(values_of_options) CASE(servers_that_an_agent_would_refuse)
              CASE(memory_may_be_short))
