/* The driver for ACP agents with agents that do what no agent should: tests/agents/acp_script.c plays them all. */
#include "agents/acp_scene.h"

#define HELLO "hear=initialize", "reply={\"protocolVersion\":1}"
#define OPEN HELLO, "hear=session/new", "reply={\"sessionId\":\"s1\"}"
#define PROMPTED OPEN, "hear=session/prompt"
#define DONE "reply={\"stopReason\":\"end_turn\"}"
#define ASK(id)                                                                                                             \
    "say={\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s1\","    \
    "\"toolCall\":{\"toolCallId\":\"t\"},\"options\":[{\"optionId\":\"yes\",\"name\":\"Yes\",\"kind\":\"allow_once\"},"     \
    "{\"name\":\"no id\"},7]}}"

#define UPDATE(update)                                                                                                      \
    "say={\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":{" update "}}}"

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
        {"a question that cannot be answered",
         {"", PROMPTED,
          "say={\"jsonrpc\":\"2.0\",\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s1\",\"options\":["
          "{\"optionId\":\"yes\",\"name\":\"Yes\",\"kind\":\"allow_once\"}]}}",
          "chunk=hi", DONE}},
        {"answers to nothing",
         {"", "say={\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}", "say={\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}",
          "say={\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"\"}}", PROMPTED, "chunk=hi", DONE}},
        {"no \"jsonrpc\"",
         {"", "hear=initialize", "say={\"id\":1,\"result\":{\"protocolVersion\":1}}", "hear=session/new",
          "say={\"id\":2,\"result\":{\"sessionId\":\"s1\",\"models\":{\"currentModelId\":\"m\"}}}", "hear=session/prompt",
          "chunk=hi", "say={\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}"}},
        {"terminals that are its own",
         {"", PROMPTED,
          UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"t\",\"title\":\"ls\",\"kind\":\"execute\",\"content\":[{"
                 "\"type\":\"terminal\",\"terminalId\":\"its own\"}]"),
          "chunk=hi", DONE}},
        {"updates that nobody knows, or has announced",
         {"", PROMPTED, UPDATE("\"sessionUpdate\":\"_vendor/thing\",\"x\":[null]"), UPDATE("\"sessionUpdate\":\"\""),
          UPDATE("\"sessionUpdate\":\"notice\",\"severity\":\"info\",\"title\":\"t\""),
          UPDATE("\"sessionUpdate\":\"plan_update\""), UPDATE("\"sessionUpdate\":7"), "chunk=hi", DONE}},
        {"a command that it runs without asking",
         {"", PROMPTED,
          UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"t\",\"title\":\"cat "
                 "x\",\"kind\":\"execute\",\"status\":\"completed\",\"rawInput\":{\"command\":[\"cat\",\"x\"]}"),
          "chunk=hi", DONE}},
        {"models of an older shape, and modes that are none",
         {"", HELLO, "hear=session/new",
          "reply={\"sessionId\":\"s1\",\"models\":{\"currentModelId\":\"m\",\"availableModels\":[{\"modelId\":\"m\","
          "\"name\":"
          "\"M\"}]},\"modes\":null,\"configOptions\":null}",
          "hear=session/prompt", "chunk=hi", DONE}},
        {"it does not exit", {"", PROMPTED, "chunk=hi", DONE, "linger"}},
        {"it exits at once, with an error", {"", PROMPTED, "chunk=hi", DONE, "exit=7"}},
        {"it crashes afterwards", {"", PROMPTED, "chunk=hi", DONE, "crash"}},
        {"it talks on afterwards", {"", PROMPTED, "chunk=hi", DONE, "chunk=too late", "eof", "say=bye", "err=bye"}},
        {"arrays that are no batches", {"", "say=[[],{},7,{\"id\":1}]", PROMPTED, "say=[\"x\"]", "chunk=hi", DONE}},
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
        {"no version",
         "protocolError",
         "answered initialize with something that cannot be used: it has no \"protocolVersion\" (",
         false,
         {"", "hear=initialize", "reply={}", "linger"}},
        {"nothing at all",
         "protocolError",
         "answered initialize with something that cannot be used: it must be",
         false,
         {"", "hear=initialize", "reply=null", "linger"}},
        {"a version of another kind",
         "protocolError",
         "answered initialize with something that cannot be used: /protocolVersion must be",
         false,
         {"", "hear=initialize", "reply={\"protocolVersion\":\"1\"}", "linger"}},
        {"no answer", "protocolError", "did not answer in time: initialize", true, {"", "linger"}},
        {"no ACP agent", "protocolError", "is it an ACP agent?", true, {"", "say=Usage: agent [options]", "linger"}},
        {"an answer that is none",
         "protocolError",
         "valid answer to initialize",
         true,
         {"", "hear=initialize", "say={\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", "linger"}},
        {"initialize refused",
         "agentError",
         "no thanks (-32603)",
         true,
         {"", "hear=initialize", "error={\"code\":-32603,\"message\":\"no thanks\"}", "linger"}},
        {"not logged in",
         "authRequired",
         "it is not logged in (Authentication required). Start it once",
         false,
         {"", HELLO, "hear=session/new", "error={\"code\":-32000,\"message\":\"Authentication required\"}", "linger"}},
        {"not logged in, and it says how",
         "authRequired",
         "it is not logged in (no key). It offers: Log in\\u000a, Key. Start it once",
         false,
         {"", "hear=initialize",
          "reply={\"protocolVersion\":1,\"authMethods\":[{\"name\":\"Log in\\n\"},7,{\"id\":\"x\"},{\"name\":\"Key\"}]}",
          "hear=session/new", "error={\"code\":-32000,\"message\":\"no key\"}", "linger"}},
        {"refused as root",
         "agentError",
         "Internal error: not as root (-32603)",
         true,
         {"", HELLO, "hear=session/new",
          "error={\"code\":-32603,\"message\":\"Internal error\",\"data\":{\"details\":\"not as root\"}}", "eof"}},
        {"no session",
         "protocolError",
         "answered session/new with something that cannot be used: it has no \"sessionId\" (",
         false,
         {"", HELLO, "hear=session/new", "reply={}", "linger"}},
        {"a session without a name",
         "protocolError",
         "answered session/new with something that cannot be used: /sessionId ",
         false,
         {"", HELLO, "hear=session/new", "reply={\"sessionId\":\"\"}", "linger"}},
        {"a name that is none",
         "protocolError",
         "answered session/new with something that cannot be used: /sessionId must be",
         false,
         {"", HELLO, "hear=session/new", "reply={\"sessionId\":7}", "linger"}},
        {"a name with a NUL",
         "protocolError",
         "did not name the session",
         false,
         {"", HELLO, "hear=session/new", "reply={\"sessionId\":\"a\\u0000b\"}", "linger"}},
        {"an end of a turn that is none",
         "protocolError",
         "answered session/prompt with something that cannot be used: it must be",
         false,
         {"", PROMPTED, "reply=[]", "linger"}},
        {"a reason that is none",
         "protocolError",
         "answered session/prompt with something that cannot be used: /stopReason must be",
         false,
         {"", PROMPTED, "reply={\"stopReason\":[]}", "linger"}},
        {"it closes its output", "protocolError", "closed its standard output", true, {"", PROMPTED, "close", "linger"}},
        {"it closes its output and exits", "exited", "status 4", true, {"", PROMPTED, "close", "exit=4"}},
        {"it exits at once", "exited", "status 5 before its turn was over\nbecause", true, {"", "err=because", "exit=5"}},
        {"it exits with 0 in the middle", "exited", "status 0", true, {"", PROMPTED, "chunk=hi", "exit=0"}},
        {"it crashes in the middle", "signalled", "Aborted", true, {"", PROMPTED, "crash"}},
        {"a batch of notifications",
         "protocolError",
         "sent a batch of messages, which ACP does not have",
         false,
         {"", "say=[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]", "until=-32600", "linger"}},
        {"an answer in a batch",
         "protocolError",
         "sent a batch of messages, which ACP does not have",
         false,
         {"", PROMPTED, "say= [{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}]", "hear=-32600",
          "linger"}},
        {"a question in a batch, and exit",
         "protocolError",
         "sent a batch of messages, which ACP does not have",
         false,
         {"", PROMPTED, "say=[1,{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"session/request_permission\",\"params\":{}}]",
          "hear=-32600", "eof"}},
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
        bool silent = strstr(rows[i].error, "in time") || strstr(rows[i].error, "ACP agent?");
        s.agent.timeout_ms = silent ? 300 : 0;
        s.option = "weft:stop"; /* how to log in is asked first, and nobody does */
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
    CHECK_INT(one_run_answer(s.run, "1", "yes"), 0);
    KIT_UNTIL(s.loop, s.asks == 3);
    CHECK_INT(one_run_answer(s.run, "3", NULL), 0);
    finish(&s);
    CHECK(s.end.ok);
    HEARD(&s, "\"title\":\"The agent asks for "
              "permission\",\"options\":[{\"id\":\"yes\",\"name\":\"Yes\",\"kind\":\"allow_once\"}]");
    HEARD(&s, "chunk hi");
}

static int read_file(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params) {
    (void) ctx;
    CHECK_STR(call->task, "task-1");
    CHECK_STR(weft_get_str(params, "path", ""), "/x");
    return weft_reply(req, WEFT_OBJ({"content", weft_str("lines")}));
}

#define REQUEST(id, method)                                                                                                 \
    "say={\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{\"sessionId\":\"s1\",\"path\":\"/x\"}}"

/* What has a row is announced and answered; the rest is neither. */
TEST(asks_its_client) {
    static const weft_passage rows[] = {{"fs/read_text_file", read_file}, {0}};
    scene s;
    one_run_passages = rows;
    SCRIPT(&s,
           "hear=\"readTextFile\":true,\"writeTextFile\":false},\"terminal\":false,\"elicitation\":{\"form\":{},\"url\":{}},"
           "\"session\":{\"configOptions\":{\"boolean\":{}}}}",
           "reply={\"protocolVersion\":1}", "hear=session/new", "reply={\"sessionId\":\"s1\"}", "hear=session/prompt",
           REQUEST("7", "fs/read_text_file"), "hear={\"content\":\"lines\"}", REQUEST("8", "fs/write_text_file"),
           "hear=-32601", REQUEST("9", "terminal/create"), "hear=-32601",
           "say={\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"stopReason\":\"end_turn\",\"usage\":{\"totalTokens\":5}}}",
           "eof");
    CHECK(start_with(&s, "do it", NULL, NULL));
    one_run_passages = NULL;
    finish(&s);
    CHECK(s.end.ok);
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

/* Whatever a question looks like, it is asked, and what is left out of it is said. */
#define ASK_FOR(title, options)                                                                                             \
    "say={\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s1\","         \
    "\"toolCall\":{\"toolCallId\":\"t\",\"title\":" title "},\"options\":[" options "]}}"
#define YES "{\"optionId\":\"yes\",\"name\":\"Yes\",\"kind\":\"allow_once\"}"
TEST(asks_to_deceive) {
    static const struct {
        const char *what, *ask, *heard;
    } rows[] = {
        {"a NUL", ASK_FOR("\"ls\\u0000rm -r ~\"", YES), "\"title\":\"ls\\\\u0000rm -r ~\""},
        {"lines", ASK_FOR("\"ls\\n  1) No\\r\\t\"", YES), "\"title\":\"ls\\\\u000a  1) No\\\\u000d\\\\u0009\""},
        {"the other direction", ASK_FOR("\"a\\u202eb\xe2\x80\xae\"", YES), "\"title\":\"a\\\\u202eb\\\\u202e\""},
        {"characters without width", ASK_FOR("\"r\\u200bm\\u00ad\\udb40\\udc41\"", YES),
         "\"title\":\"r\\\\u200bm\\\\u00ad\\\\udb40\\\\udc41\""},
        {"what looks like an escape", ASK_FOR("\"\\\\u000a\\\\n\"", YES), "\"title\":\"\\\\u005cu000a\\\\n\""},
        {"no title", ASK_FOR("\"\"", YES), "\"title\":\"The agent asks for permission\""},
        {"a title that is none", ASK_FOR("[]", YES), "\"title\":\"The agent asks for permission\""},
        {"a name", ASK_FOR("\"x\"", "{\"optionId\":\"yes\",\"name\":\"No\\u0000\\n\",\"kind\":\"allow_once\"}"),
         "[{\"id\":\"yes\",\"name\":\"No\\\\u0000\\\\u000a\",\"kind\":\"allow_once\"}]"},
        {"a kind", ASK_FOR("\"x\"", "{\"optionId\":\"yes\",\"name\":\"No\",\"kind\":\"reject_once\\n\"}"),
         "[{\"id\":\"yes\",\"name\":\"No\",\"kind\":\"\"}]"},
        {"ids", ASK_FOR("\"x\"", YES ",{\"optionId\":\"a\\u0000b\"},{\"optionId\":\"\"},{\"optionId\":7}," YES),
         "stderr weft: 4 of the options that the agent offers cannot be shown\n\nask "
         "{\"kind\":\"permission\",\"title\":\"x\","
         "\"options\":[{\"id\":\"yes\",\"name\":\"Yes\",\"kind\":\"allow_once\"}]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        test_row(rows[i].what);
        SCRIPT(&s, PROMPTED, rows[i].ask, "hear=\"optionId\":\"yes\"", "chunk=hi", DONE);
        s.option = "yes";
        CHECK(start_with(&s, "do it", NULL, NULL));
        finish(&s);
        CHECK(s.end.ok);
        CHECK_INT(s.asks, 1);
        if (!CHECK(strstr(s.log, rows[i].heard)))
            printf("    %s\n", s.log);
    }
    test_row(NULL);
}

/* Longer than is shown: cut with a mark, and asked. Exactly as long as is shown: whole. */
TEST(asks_at_length) {
    static char title[40000], say[60000];
    static const struct {
        size_t len;
        const char *heard;
    } rows[] = {{4096, "xx\",\"options\""},
                {4097, "xx… (cut: 1 more bytes)\",\"options\""},
                {20000, "xx… (cut: 15904 more bytes)\","}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        memset(title, 'x', rows[i].len);
        title[rows[i].len] = '\0';
        snprintf(say, sizeof say, ASK_FOR("\"%s\"", YES), title);
        SCRIPT(&s, PROMPTED, say, "hear=\"optionId\":\"yes\"", DONE);
        s.option = "yes";
        CHECK(start_with(&s, "do it", NULL, NULL));
        finish(&s);
        CHECK(s.end.ok);
        CHECK_INT(s.asks, 1);
        HEARD(&s, rows[i].heard);
    }
}

/* More options than are shown, and more questions than anybody answers. */
TEST(asks_too_much) {
    static char options[8000], say[9000];
    static char asks[70][400];
    const char *argv[90] = {"", PROMPTED};
    scene s;
    size_t used = 0, count = 0;
    for (int i = 0; i < 40; i++)
        used += (size_t) snprintf(options + used, sizeof options - used, "%s{\"optionId\":\"yes%d\"}", i ? "," : "", i);
    snprintf(say, sizeof say, ASK_FOR("\"x\"", "%s"), options);
    SCRIPT(&s, PROMPTED, say, "hear=\"optionId\":\"yes31\"", DONE);
    s.option = "yes31";
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK(s.end.ok);
    HEARD(&s, "weft: 8 of the options");
    while (argv[count])
        count++;
    for (int i = 0; i < 65; i++) {
        snprintf(asks[i], sizeof asks[i], ASK("%d"), i);
        argv[count++] = asks[i];
    }
    argv[count++] = "hear=Too many questions are open";
    argv[count] = DONE;
    script(&s, argv);
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK_INT(s.asks, 64);
    HEARD(&s, "weft: a question of the agent was refused: Too many questions are open\n");
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
            s.run = one_run_free(s.run);
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
    HEARD(&s, "no end");
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

/* Its pipes do not end with it: somebody else has them too, and may even write. That is no reason to wait for ever. */
TEST(pipes_stay_open) {
    static const struct {
        const char *what, *last;
        bool cancelled;
    } rows[] = {{"it exits", "exit=6", false}, {"it is cancelled", "linger", true}};
    for (size_t i = 0; i < 2; i++) {
        scene s;
        test_row(rows[i].what);
        SCRIPT(&s, "hear=initialize", "err=because", "reply={\"protocolVersion\":1}", "hear=session/new",
               rows[i].last); /* it hears that after the host has heard of it */
        s.holds_pipes = s.frees_at_end = true;
        s.cancel_after = rows[i].cancelled ? "stderr because" : NULL;
        s.grace_ms = 100;
        CHECK(start_with(&s, "hi", NULL, NULL));
        KIT_UNTIL(s.loop, s.ends);
        CHECK_STR(s.reason, rows[i].cancelled ? "cancelled" : "exited");
        HEARD(&s, "stderr because");
        close(s.held[0]);
        close(s.held[1]);
        clean(&s);
    }
    test_row(NULL);
}

/* It ends while nobody listens: what it said last is heard when somebody does. */
TEST(paused_at_the_end) {
    scene s;
    SCRIPT(&s, PROMPTED, "chunk=one", "chunk=two", "err=three", DONE, "exit=0");
    s.pause_after = "chunk one";
    CHECK(start_with(&s, "hi", NULL, NULL));
    KIT_UNTIL(s.loop, !s.pause_after);
    KIT_UNTIL(s.loop, kit_all_collected());
    kit_turn(s.loop, 100);
    weft_loop_set_now(s.loop, weft_loop_now(s.loop) + 1000); /* twice as long as we wait for what does not come */
    kit_turn(s.loop, 100);
    CHECK_INT(s.ends, 0);
    NOT_HEARD(&s, "two");
    one_run_pause(s.run, false);
    finish(&s);
    CHECK(s.end.ok);
    HEARD(&s, "chunk two");
    HEARD(&s, "stderr three");
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

TEST_MAIN(CASE(survives) CASE(fails) CASE(not_installed) CASE(asks_twice) CASE(asks_its_client) CASE(asks_wrongly)
              CASE(asks_to_deceive) CASE(asks_at_length) CASE(asks_too_much) CASE(asks_and_leaves)
                  CASE(cancel_answers_questions) CASE(cancel_too_late) CASE(cancel_ends_it) CASE(cancel_is_ignored)
                      CASE(cancelled_early) CASE(freed_anywhere) CASE(goes_on) CASE(last_words) CASE(standard_error)
                          CASE(standard_error_silent) CASE(pipes_stay_open) CASE(paused_at_the_end) CASE(environment)
                              CASE(no_memory))
