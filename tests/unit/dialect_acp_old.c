/* The older form of ACP: between the two forms nothing is lost, and a dialect that has ACP's words as well, as tinyvex does,
 * has them in that form. */
#include "acp_old.h"
#include "hub_client.h"

/* ---- the two forms ---- */

static char *rewrite(int (*write)(weft_buf *, const weft_alloc *, const weft_json *), const char *text,
                     const weft_alloc *alloc) {
    weft_doc *doc = NULL;
    weft_buf out = {0};
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    int r = write(&out, alloc, weft_doc_root(doc));
    char *copy = r < 0 ? NULL : weft__strndup(NULL, weft__buf_head(&out), weft__buf_len(&out));
    CHECK(r >= 0 || r == -ENOMEM);
    weft__buf_done(&out, alloc);
    weft_doc_free(doc);
    return copy;
}

static const struct {
    const char *name, *current, *old;
} updates[] = {
    {"words", "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"a\"}}",
     "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"content\":{\"type\":\"text\",\"text\":\"a\"}}}"},
    {"words with a name", "{\"sessionUpdate\":\"user_message_chunk\",\"content\":{\"type\":\"text\"},\"messageId\":\"m\"}",
     "{\"sessionUpdate\":\"user_message_chunk\",\"content\":{\"content\":{\"type\":\"text\"}},\"message_id\":\"m\"}"},
    {"a plan", "{\"sessionUpdate\":\"plan\",\"entries\":[]}", "{\"sessionUpdate\":\"plan\",\"plan\":{\"entries\":[]}}"},
    {"a call",
     "{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c\",\"title\":\"t\",\"rawInput\":{\"aB\":1},"
     "\"locations\":[{\"path\":\"/x\"}],\"_meta\":{\"someName\":1}}",
     "{\"sessionUpdate\":\"tool_call\",\"tool_call\":{\"call_id\":\"c\",\"name\":\"t\",\"arguments\":{\"aB\":1},"
     "\"locations\":[{\"path\":\"/x\"}]},\"_meta\":{\"someName\":1}}"},
    {"how it went",
     "{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c\",\"rawOutput\":{\"exit_code\":0},"
     "\"content\":[{\"type\":\"diff\",\"path\":\"/x\",\"oldText\":null,\"newText\":\"y\"}]}",
     "{\"sessionUpdate\":\"tool_call_update\",\"tool_call_update\":{\"call_id\":\"c\",\"output\":{\"exit_code\":0},"
     "\"content\":[{\"type\":\"diff\",\"path\":\"/x\",\"old_text\":null,\"new_text\":\"y\"}]}}"},
    {"a mode", "{\"sessionUpdate\":\"current_mode_update\",\"currentModeId\":\"m\"}",
     "{\"sessionUpdate\":\"current_mode_update\",\"current_mode_id\":\"m\"}"},
    {"commands",
     "{\"sessionUpdate\":\"available_commands_update\",\"availableCommands\":[{\"name\":\"n\",\"description\":\"d\","
     "\"input\":{\"type\":\"unstructured\",\"hint\":\"h\"}},{\"name\":\"m\",\"description\":\"e\",\"input\":null}]}",
     "{\"sessionUpdate\":\"available_commands_update\",\"available_commands\":[{\"name\":\"n\",\"description\":\"d\","
     "\"input\":{\"type\":\"unstructured\",\"hint\":\"h\"}},{\"name\":\"m\",\"description\":\"e\",\"input\":null}]}"},
    {"no kind", "{\"sessionUpdate\":7,\"x\":[[{\"aB\":[]}],1e400,\"\\u00e9\"]}",
     "{\"sessionUpdate\":7,\"x\":[[{\"a_b\":[]}],1e400,\"\\u00e9\"]}"},
};

TEST(there_and_back) {
    for (size_t i = 0; i < sizeof updates / sizeof updates[0]; i++) {
        test_row(updates[i].name);
        char *old = rewrite(weft__acp_old_update, updates[i].current, NULL);
        char *current = rewrite(weft__acp_current_update, updates[i].old, NULL);
        char *same = rewrite(weft__acp_current_update, updates[i].current, NULL);
        CHECK_STR(old, updates[i].old);
        CHECK_STR(current, updates[i].current);
        CHECK_STR(same, updates[i].current);
        free(old);
        free(current);
        free(same);
    }
}

/* What an agent says need not be what the form expects. */
TEST(odd_updates) {
    static const char *const rows[][2] = {
        {"7", "{\"sessionUpdate\":null}"},
        {"{\"sessionUpdate\":\"plan\",\"plan\":7}", "{\"sessionUpdate\":\"plan\",\"plan\":{\"plan\":7}}"},
        {"{\"sessionUpdate\":\"agent_message_chunk\"}",
         "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"content\":null}}"},
        {"{\"sessionUpdate\":\"available_commands_update\",\"availableCommands\":{}}",
         "{\"sessionUpdate\":\"available_commands_update\",\"available_commands\":{}}"},
        {"{\"sessionUpdate\":\"available_commands_update\",\"availableCommands\":[1,{\"input\":{\"hint\":\"h\"}}]}",
         "{\"sessionUpdate\":\"available_commands_update\",\"available_commands\":[1,{\"input\":{\"type\":\"unstructured\","
         "\"hint\":\"h\"}}]}"},
        {"{\"sessionUpdate\":\"x\",\"\":1,\"a b\":2,\"_A\":3,\"\\u0041b\":4}",
         "{\"sessionUpdate\":\"x\",\"\":1,\"a b\":2,\"_A\":3,\"ab\":4}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *old = rewrite(weft__acp_old_update, rows[i][0], NULL);
        CHECK_STR(old, rows[i][1]);
        free(old);
    }
}

TEST(files_of_tinyvex) {
    static const char *const names[] = {
        "agent_message_chunk", "agent_thought_chunk", "user_message_chunk",  "plan",
        "tool_call",           "tool_call_update",    "current_mode_update", "available_commands_update"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        char *canonical = NULL, *again = NULL;
        size_t len;
        weft_doc *doc = NULL, *back = NULL;
        snprintf(path, sizeof path, "tinyvex/acp-fixtures/session_update_%s.json", names[i]);
        test_row(names[i]);
        char *file = test_data(path, &len);
        if (!file) {
            test_skip("shared/data/tinyvex is not there");
            return;
        }
        CHECK_INT(weft_doc_parse(file, strlen(file), NULL, &doc), 0);
        weft_json update = weft_pointer(weft_doc_root(doc), "/params/update");
        CHECK_INT(weft_to_canonical(&update, NULL, &canonical, &len), 0);
        char *current = rewrite(weft__acp_current_update, canonical, NULL);
        CHECK(strstr(current, "_id") == NULL && strstr(current, "\"content\":{\"content\"") == NULL);
        char *old = rewrite(weft__acp_old_update, current, NULL);
        CHECK_INT(weft_doc_parse(old, strlen(old), NULL, &back), 0);
        CHECK_INT(weft_to_canonical(weft_doc_root(back), NULL, &again, &len), 0);
        CHECK_STR(again, canonical);
        weft_text_free(canonical, NULL);
        weft_text_free(again, NULL);
        weft_doc_free(doc);
        weft_doc_free(back);
        free(current);
        free(old);
        free(file);
    }
}

/* Each allocation fails once. */
TEST(without_memory) {
    for (size_t i = 0; i < sizeof updates / sizeof updates[0]; i++)
        for (long n = 1, done = 0; !done; n++) {
            test_memory memory;
            test_memory_init(&memory, n);
            char *old = rewrite(weft__acp_old_update, updates[i].current, &memory.alloc);
            done = old != NULL;
            free(old);
            CHECK_INT(memory.live, 0);
        }
}

/* ---- a dialect that has ACP as well ---- */

static int answer_second(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, weft_str(weft_req_identity(req)->dialect));
}

static void render_second(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    (void) hub, (void) data;
    if (strcmp(event->type, "notice") == 0)
        weft__render_notify(rendering, NULL, "second", weft_none());
}

static const weft_method second_methods[] = {{.name = "second/connect", .handler = answer_second, .flags = WEFT_DECIDES},
                                             {0}};
static const weft_dialect second = {
    .name = "second", .methods = second_methods, .render = render_second, .also = "acp", .also_variant = "old"};
static const weft_dialect *const with_second[] = {&weft__aiwg, &weft__cdev, &weft__acp, &weft__hub_methods, &second, NULL};

#define SAYS(id, method, params) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"" method "\",\"params\":" params "}"
#define CONNECT(id) SAYS(id, "second/connect", "{}")
#define OLD(id) SAYS(id, "initialize", "{\"protocol_version\":\"0.7.0\"}")
#define CURRENT(id) SAYS(id, "initialize", "{\"protocolVersion\":1}")
#define NEW(id) SAYS(id, "session/new", "{\"cwd\":\"/srv/project\",\"mcpServers\":[]}")
#define PROMPT(id)                                                                                                          \
    SAYS(id, "session/prompt", "{\"session_id\":\"session-0000\",\"prompt\":[{\"type\":\"text\",\"text\":\"go\"}]}")

static void says_a_word(hub_world *w, const char *task) {
    static const char word[] = "word\n";
    weft_run *run = hub_run(w, task);
    REQUIRE(run != NULL);
    run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){word, sizeof word - 1});
    hub_settle(w);
}

/* It hears its own words and those of its sessions, in the older form unless it asks for the current one, in either order.
 */
TEST(both_on_one_connection) {
    hub_world w;
    hub_client a, b;
    CHECK_INT(hub_init(&w, &(hub_opts){.dialects = with_second}), 0);
    hub_connect(&w, "cdev", &a);
    hub_connect(&w, "acp", &b);
    hub_say(&a, CONNECT(1));
    HUB_TOLD(&a, "\"result\":\"second\"");
    hub_say(&a, NEW(2));
    HUB_TOLD(&a, "{\"session_id\":\"session-0000\"}");
    hub_say(&a, SAYS(3, "session/list", "{}")); /* a name that cdev has, too */
    HUB_TOLD(&a, "\"session_id\":\"session-0000\",\"cwd\":");
    hub_say(&a, OLD(4));
    HUB_TOLD(&a, "\"protocol_version\"");
    hub_say(&b, OLD(1));
    HUB_TOLD(&b, "\"protocol_version\"");
    hub_say(&b, SAYS(2, "session/load", "{\"session_id\":\"session-0000\"}"));
    HUB_TOLD(&b, "\"id\":2,\"result\":{}");
    hub_say(&b, CONNECT(3));
    HUB_TOLD(&b, "\"result\":\"second\"");
    hub_say(&a, PROMPT(5));
    HUB_TOLD(&a, "\"id\":5,\"result\":{\"ok\":true}");
    HUB_TOLD(&b, "user_message_chunk");
    says_a_word(&w, "task-0001");
    HUB_TOLD(&a, "{\"session_id\":\"session-0000\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\"");
    HUB_TOLD(&b, "{\"session_id\":\"session-0000\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\"");
    hub_happen(&w, "notice", "x");
    HUB_TOLD(&a, "\"method\":\"second\"");
    HUB_TOLD(&b, "\"method\":\"second\"");
    hub_end(hub_run(&w, "task-0001"), &(weft_run_end){.ok = true});
    HUB_TOLD(&a, "_weft/turn_ended");
    HUB_TOLD(&b, "_weft/turn_ended");
    hub_say(&b, SAYS(4, "initialize", "{}")); /* cdev's */
    HUB_TOLD(&b, "dialectDecided");
    hub_disconnect(&a);
    hub_disconnect(&b);
    hub_done(&w);
}

TEST(the_current_form_beside_it) {
    hub_world w;
    hub_client a;
    CHECK_INT(hub_init(&w, &(hub_opts){.dialects = with_second}), 0);
    hub_connect(&w, "second", &a);
    hub_say(&a, CONNECT(1));
    HUB_TOLD(&a, "\"result\":\"second\"");
    hub_say(&a, CURRENT(2));
    HUB_TOLD(&a, "\"protocolVersion\":1");
    hub_say(&a, NEW(3));
    HUB_TOLD(&a, "{\"sessionId\":\"session-0000\"}");
    hub_say(&a, PROMPT(4));
    hub_settle(&w);
    says_a_word(&w, "task-0001");
    HUB_TOLD(&a, "{\"sessionId\":\"session-0000\",\"update\":");
    hub_end(hub_run(&w, "task-0001"), &(weft_run_end){.ok = true});
    HUB_TOLD(&a, "\"stopReason\":\"end_turn\"");
    hub_disconnect(&a);
    hub_done(&w);
}

TEST_MAIN(CASE(there_and_back) CASE(odd_updates) CASE(files_of_tinyvex) CASE(without_memory) CASE(both_on_one_connection)
              CASE(the_current_form_beside_it))
