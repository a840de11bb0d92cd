/* ACP's dialect where a scene cannot show it: who may answer and choose, and clients that read slowly. */
#include "hub_client.h"

#define SAYS(id, method, params) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"" method "\",\"params\":" params "}"
#define NEW(id) SAYS(id, "session/new", "{\"cwd\":\"/srv/project\",\"mcpServers\":[]}")
#define LOAD(id) SAYS(id, "session/load", "{\"sessionId\":\"session-0000\",\"cwd\":\"/srv/project\",\"mcpServers\":[]}")
#define PROMPT(id)                                                                                                          \
    SAYS(id, "session/prompt", "{\"sessionId\":\"session-0000\",\"prompt\":[{\"type\":\"text\",\"text\":\"go\"}]}")
#define CHOOSES(id)                                                                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"y\"}}}"

static const char question[] = "{\"kind\":\"permission\",\"title\":\"may I?\",\"options\":[{\"id\":\"y\",\"name\":\"Yes\","
                               "\"kind\":\"allow_once\"}],\"detail\":{}}";

static bool is_agent(void *ctx, const weft_identity *who) {
    (void) ctx;
    return strcmp(who->name, "an agent") == 0;
}

static void become(hub_client *c, const char *name, const char *scopes, int64_t port) {
    weft_identity who = *weft_peer_identity(c->peer);
    who.name = name;
    who.scopes = scopes;
    who.port = port;
    CHECK_INT(weft_peer_set_identity(c->peer, &who), 0);
}

/* A person prompts; somebody else, who is this, follows the session, is asked and answers. */
static void somebody_answers(const char *name, const char *scopes) {
    hub_world w;
    hub_client person, other;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    w.host.is_agent = is_agent;
    hub_connect(&w, "acp", &person);
    hub_connect(&w, "acp", &other);
    become(&other, name, scopes, 0);
    hub_say(&person, NEW(1));
    HUB_TOLD(&person, "\"sessionId\":\"session-0000\"");
    hub_say(&other, LOAD(1));
    HUB_TOLD(&other, "\"id\":1,\"result\":{}");
    hub_say(&person, PROMPT(2));
    hub_settle(&w);
    weft_run *run = hub_run(&w, "task-0001");
    REQUIRE(run != NULL);
    run->host->on_ask(run->ctx, "k", weft_raw(question, strlen(question)));
    HUB_TOLD(&other, "user_message_chunk");
    HUB_TOLD(&other, "session/request_permission");
    hub_say(&other, CHOOSES(1));
    hub_settle(&w);
    CHECK_INT(w.heard_count, 0);
    CHECK_INT(weft__question_find(w.engine, "question-0000")->state, WEFT_QUESTION_OPEN);
    HUB_TOLD(&person, "session/request_permission");
    hub_say(&person, CHOOSES(1));
    hub_settle(&w);
    CHECK_STR(w.heard[0], "task-0001 answer k y");
    hub_end(run, &(weft_run_end){.ok = true});
    HUB_TOLD(&person, "\"stopReason\":\"end_turn\"");
    hub_disconnect(&person);
    hub_disconnect(&other);
    hub_done(&w);
}

TEST(an_agent_does_not_answer_itself) {
    somebody_answers("an agent", "*");
}

TEST(who_may_only_look_does_not_answer) {
    somebody_answers("a token", "read");
}

TEST(who_may_only_look_makes_nothing) {
    hub_world w;
    hub_client c;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    hub_connect(&w, "acp", &c);
    become(&c, "a token", "read", 0);
    hub_say(&c, NEW(1));
    HUB_TOLD(&c, "\"code\":403");
    hub_say(&c, PROMPT(2));
    HUB_TOLD(&c, "\"code\":403");
    hub_disconnect(&c);
    hub_done(&w);
}

/* Over the network a folder and programs are chosen only with the scope for it. */
TEST(choosing_over_the_network) {
    static const char elsewhere[] = SAYS(1, "session/new", "{\"cwd\":\"/srv/project/sub\",\"mcpServers\":[]}");
    static const char servers[] =
        SAYS(2, "session/new",
             "{\"cwd\":\"/srv/project\",\"mcpServers\":[{\"name\":\"x\",\"command\":\"/bin/x\",\"args\":[],\"env\":[]}]}");
    hub_world w;
    hub_client c;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    hub_connect(&w, "acp", &c);
    become(&c, "a token", "read work", 4711);
    hub_say(&c, elsewhere);
    HUB_TOLD(&c, "\"code\":403");
    hub_say(&c, servers);
    HUB_TOLD(&c, "\"code\":403");
    hub_say(&c, NEW(3));
    HUB_TOLD(&c, "\"sessionId\":\"session-0000\"");
    become(&c, "a token", "read work exec", 4711);
    hub_say(&c, elsewhere);
    HUB_TOLD(&c, "there is no such folder");
    hub_say(&c, servers);
    HUB_TOLD(&c, "this agent takes no MCP servers");
    hub_disconnect(&c);
    hub_done(&w);
}

/* Its number was another connection's, before the daemon was started again. */
TEST(a_prompt_of_an_earlier_daemon_is_told) {
    hub_world w;
    hub_client c;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    hub_connect(&w, "acp", &c);
    hub_say(&c, NEW(1));
    HUB_TOLD(&c, "\"sessionId\":\"session-0000\"");
    weft_task_spec spec = {.prompt = "from before",
                           .session = "session-0000",
                           .metadata = "{\"source\":\"acp\",\"client\":1,\"hub\":\"2025-12-31T00:00:00.000Z\"}"};
    CHECK_INT(weft__task_submit(w.engine, &spec, NULL, NULL), 0);
    HUB_TOLD(&c, "from before");
    hub_say(&c, PROMPT(2));
    hub_settle(&w);
    hub_end(hub_run(&w, "task-0001"), &(weft_run_end){.ok = true});
    HUB_UNTIL(&w, hub_run(&w, "task-0002"));
    hub_end(hub_run(&w, "task-0002"), &(weft_run_end){.ok = true});
    HUB_TOLD(&c, "\"stopReason\":\"end_turn\"");
    hub_disconnect(&c);
    hub_done(&w);
}

/* The cancel comes before the store has the prompt. */
TEST(a_prompt_that_is_being_stored_is_cancelled) {
    hub_world w;
    hub_client c;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    hub_connect(&w, "acp", &c);
    hub_say(&c, NEW(1));
    HUB_TOLD(&c, "\"sessionId\":\"session-0000\"");
    hub_say(&c, PROMPT(2));
    CHECK(weft__task_find(w.engine, "task-0001") == NULL);
    hub_say(&c, "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"session-0000\"}}");
    hub_settle(&w);
    weft_run *run = hub_run(&w, "task-0001");
    if (run)
        hub_end(run, &(weft_run_end){.reason = "cancelled"});
    HUB_TOLD(&c, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"stopReason\":\"cancelled\"}}");
    hub_disconnect(&c);
    hub_done(&w);
}

/* ---- slow readers ---- */

#define LINES 300

static void say_much(weft_run *run, int from, int to) {
    char line[1024];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (int i = from; i < to; i++) {
        int n = snprintf(line, sizeof line, "%d ", i);
        line[n] = 'x';
        run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){line, sizeof line});
        hub_settle(run->world);
    }
}

/* All numbers of the lines that were told, in order, until something else is. */
static int read_lines(hub_client *c, const char **ret_last) {
    int next = 0;
    const char *line;
    while (strstr(line = hub_wait(c), "agent_message_chunk"))
        for (const char *at = strstr(line, "\"text\":\"") + 8; at; at = strstr(at, "\\n"), at = at ? at + 2 : NULL) {
            if (*at == '"')
                break;
            CHECK_INT(atoi(at), next);
            next++;
        }
    *ret_last = line;
    return next;
}

/* The answer comes behind everything that was said, also when that could not be sent at once. */
TEST(a_slow_client_is_answered_last) {
    hub_world w;
    hub_client c;
    const char *last;
    CHECK_INT(hub_init(&w, &(hub_opts){.service.out_soft = 65536}), 0);
    hub_connect(&w, "acp", &c);
    hub_say(&c, NEW(1));
    HUB_TOLD(&c, "\"sessionId\":\"session-0000\"");
    hub_say(&c, PROMPT(2));
    hub_settle(&w);
    weft_run *run = hub_run(&w, "task-0001");
    REQUIRE(run != NULL);
    say_much(run, 0, LINES);
    hub_end(run, &(weft_run_end){.ok = true});
    hub_settle(&w);
    CHECK(weft_peer_full(c.peer));
    CHECK_INT(weft__task_find(w.engine, "task-0001")->state, WEFT_TASK_COMPLETED);
    CHECK_INT(read_lines(&c, &last), LINES);
    CHECK(strstr(last, "\"id\":2,\"result\":{\"stopReason\":\"end_turn\"}") != NULL);
    hub_disconnect(&c);
    hub_done(&w);
}

/* Who loads in the middle, and reads slowly, is told everything once and in order. */
TEST(loading_slowly_while_more_is_said) {
    hub_world w;
    hub_client c, late;
    const char *last;
    CHECK_INT(hub_init(&w, &(hub_opts){.service.out_soft = 65536}), 0);
    hub_connect(&w, "acp", &c);
    hub_say(&c, NEW(1));
    HUB_TOLD(&c, "\"sessionId\":\"session-0000\"");
    hub_say(&c, PROMPT(2));
    hub_settle(&w);
    weft_run *run = hub_run(&w, "task-0001");
    REQUIRE(run != NULL);
    say_much(run, 0, LINES);
    hub_connect(&w, "acp", &late);
    hub_say(&late, LOAD(1));
    hub_settle(&w);
    CHECK(weft_peer_full(late.peer));
    say_much(run, LINES, 2 * LINES);
    HUB_TOLD(&late, "user_message_chunk");
    /* What was said until it had caught up comes before the answer. */
    CHECK_INT(read_lines(&late, &last), 2 * LINES);
    CHECK(strstr(last, "\"id\":1,\"result\":{}") != NULL);
    say_much(run, 0, 1);
    HUB_TOLD(&late, "agent_message_chunk");
    HUB_SILENT(&late);
    hub_disconnect(&late);
    hub_disconnect(&c);
    hub_done(&w);
}

/* One that goes while it is told, and one that closes the session while its prompt waits to be answered. */
TEST(leaving_in_the_middle) {
    hub_world w;
    hub_client c, other;
    CHECK_INT(hub_init(&w, &(hub_opts){.service.out_soft = 65536}), 0);
    hub_connect(&w, "acp", &c);
    hub_connect(&w, "acp", &other);
    hub_say(&c, NEW(1));
    HUB_TOLD(&c, "\"sessionId\":\"session-0000\"");
    hub_say(&c, PROMPT(2));
    hub_settle(&w);
    weft_run *run = hub_run(&w, "task-0001");
    REQUIRE(run != NULL);
    say_much(run, 0, LINES);
    hub_say(&other, LOAD(1));
    hub_settle(&w);
    CHECK(weft_peer_full(other.peer));
    hub_disconnect(&other);
    hub_end(run, &(weft_run_end){.ok = true});
    hub_settle(&w);
    hub_disconnect(&c); /* its answer waits behind what it has not read */
    hub_settle(&w);
    hub_done(&w);
}

TEST_MAIN(CASE(a_prompt_that_is_being_stored_is_cancelled) CASE(an_agent_does_not_answer_itself)
              CASE(who_may_only_look_does_not_answer) CASE(who_may_only_look_makes_nothing) CASE(choosing_over_the_network)
                  CASE(a_prompt_of_an_earlier_daemon_is_told) CASE(a_slow_client_is_answered_last)
                      CASE(loading_slowly_while_more_is_said) CASE(leaving_in_the_middle))
