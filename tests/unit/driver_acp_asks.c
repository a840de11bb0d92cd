/* What ACP agents ask of people besides permission: forms, URLs, and how to log in. tests/agents/acp_script.c plays them. */
#include "agents/acp_scene.h"

#define HELLO "hear=initialize", "reply={\"protocolVersion\":1}"
#define OPEN HELLO, "hear=session/new", "reply={\"sessionId\":\"s1\"}"
#define PROMPTED OPEN, "hear=session/prompt"
/* The request that was heard last may be another: the prompt's number is the third. */
#define DONE "say={\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}", "eof"
#define ELICIT(id, params)                                                                                                  \
    "say={\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"elicitation/create\",\"params\":{" params "}}"
#define FORM                                                                                                                \
    "\"sessionId\":\"s1\",\"mode\":\"form\",\"message\":\"Which\\nbranch?\",\"requestedSchema\":{\"type\":\"object\","      \
    "\"properties\":{\"branch\":{\"type\":\"string\"}},\"required\":[\"branch\"]}"
#define PAGE(id)                                                                                                            \
    "\"sessionId\":\"s1\",\"mode\":\"url\",\"message\":\"Log in\",\"url\":\"https://example.org/\",\"elicitationId\":\"" id \
    "\""
#define SAY(method, params) "say={\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":{" params "}}"

static void script(scene *s, const char *const *argv) {
    static char path[4096];
    prepare(s, &weft__driver_acp);
    s->agent.argv = argv;
    s->grace_ms = 1000;
    ((const char **) (uintptr_t) argv)[0] = kit_program("agent_acp_script", path, sizeof path);
}
#define SCRIPT(s, ...)                                                                                                      \
    const char *script_argv[] = {"", __VA_ARGS__, NULL};                                                                    \
    script((s), script_argv)

/* ---- forms ---- */

TEST(a_form_is_filled_in) {
    scene s;
    SCRIPT(&s, PROMPTED, ELICIT("7", FORM),
           "hear={\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"action\":\"accept\",\"content\":{\"branch\":\"main\"}}}",
           "chunk=hi", DONE);
    s.content = "{\"branch\":\"main\"}";
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK(s.end.ok);
    HEARD(&s, "chunk hi");
    HEARD(&s, "ask {\"kind\":\"elicitation\",\"title\":\"Which\\\\u000abranch?\",\"options\":[{\"id\":\"accept\",\"name\":"
              "\"Send\",\"kind\":\"allow_once\"},{\"id\":\"decline\",\"name\":\"Decline\",\"kind\":\"reject_once\"}],"
              "\"detail\":{\"mode\":\"form\",\"message\":\"Which\\nbranch?\",\"requestedSchema\":{\"type\":\"object\","
              "\"properties\":{\"branch\":{\"type\":\"string\"}},\"required\":[\"branch\"]}}}");
}

/* What every other answer says to the agent. */
TEST(a_form_is_not_filled_in) {
    static const struct {
        const char *option, *heard;
    } rows[] = {{"decline", "hear=\"result\":{\"action\":\"decline\"}}"},
                {NULL, "hear=\"result\":{\"action\":\"cancel\"}}"}};
    for (size_t i = 0; i < 2; i++) {
        scene s;
        SCRIPT(&s, PROMPTED, ELICIT("7", FORM), rows[i].heard, "chunk=hi", DONE);
        CHECK(start_with(&s, "do it", NULL, NULL));
        KIT_UNTIL(s.loop, s.asks);
        CHECK_INT(one_run_answer(s.run, s.key, rows[i].option), 0);
        CHECK_INT(one_run_answer(s.run, s.key, rows[i].option), -ENOENT);
        CHECK_INT(one_run_accept(s.run, s.key, "{}"), -ENOENT);
        finish(&s);
        CHECK(s.end.ok);
        HEARD(&s, "chunk hi");
    }
}

/* Cancelling the turn, or the request, answers it in the protocol's words. */
TEST(a_form_is_cancelled) {
    scene s;
    SCRIPT(&s, PROMPTED, ELICIT("7", FORM), "hear=session/cancel", "hear={\"action\":\"cancel\"}",
           "say={\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"stopReason\":\"cancelled\"}}", "eof");
    s.cancel_after = "ask {";
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK_STR(s.stop, "cancelled");
}

TEST(the_agent_gives_its_form_up) {
    scene s;
    SCRIPT(&s, PROMPTED, ELICIT("7", FORM), SAY("$/cancel_request", "\"requestId\":7"), "hear=-32800", "chunk=hi", DONE);
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK(s.end.ok);
    CHECK_INT(s.unasks, 1);
}

TEST(what_cannot_be_asked) {
    static const struct {
        const char *what, *params, *heard;
    } rows[] = {
        {"no schema", "\"sessionId\":\"s1\",\"mode\":\"form\",\"message\":\"m\"", "hear=the form is not an object"},
        {"a field of another kind",
         "\"sessionId\":\"s1\",\"mode\":\"form\",\"message\":\"m\",\"requestedSchema\":{\"properties\":{\"a\":{\"type\":"
         "\"object\"}}}",
         "hear=a is of a kind that nobody can fill in"},
        {"another mode", "\"sessionId\":\"s1\",\"mode\":\"_voice\",\"message\":\"m\"", "hear=-32602"},
        {"a program as a page",
         "\"sessionId\":\"s1\",\"mode\":\"url\",\"url\":\"javascript:alert(1)\",\"elicitationId\":\"e\"",
         "hear=http and https only"},
        {"a file as a page", "\"sessionId\":\"s1\",\"mode\":\"url\",\"url\":\"file:///etc/passwd\",\"elicitationId\":\"e\"",
         "hear=http and https only"},
        {"a page without a name", "\"sessionId\":\"s1\",\"mode\":\"url\",\"url\":\"https://x/\"", "hear=elicitationId"},
        {"of another session",
         "\"sessionId\":\"other\",\"mode\":\"form\",\"message\":\"m\",\"requestedSchema\":{\"properties\":{}}",
         "hear={\"action\":\"cancel\"}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        char say[600];
        test_row(rows[i].what);
        snprintf(say, sizeof say, ELICIT("7", "%s"), rows[i].params);
        SCRIPT(&s, PROMPTED, say, rows[i].heard, "chunk=hi", DONE);
        CHECK(start_with(&s, "do it", NULL, NULL));
        finish(&s);
        CHECK(s.end.ok);
        CHECK_INT(s.asks, 0);
        HEARD(&s, "chunk hi");
    }
    test_row(NULL);
}

/* A form without a mode is one of the first drafts; one without a session is about what is being opened. */
TEST(a_form_before_the_session) {
    scene s;
    SCRIPT(&s, HELLO, "hear=session/new",
           ELICIT("7", "\"requestId\":2,\"message\":\"\",\"requestedSchema\":{\"properties\":{}}"),
           "hear={\"action\":\"accept\",\"content\":{}}",
           "say={\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"sessionId\":\"s1\"}}", "hear=session/prompt", "chunk=hi", DONE);
    s.content = "{}";
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK(s.end.ok);
    HEARD(&s, "\"title\":\"The agent asks for input\"");
    HEARD(&s, "chunk hi");
}

/* ---- URLs ---- */

TEST(a_person_goes_to_a_page) {
    scene s;
    *one_run_elicitation = '\0';
    SCRIPT(&s, PROMPTED, ELICIT("7", PAGE("e1")), "hear=\"result\":{\"action\":\"accept\"}}",
           SAY("elicitation/complete", "\"elicitationId\":\"other\""),
           SAY("elicitation/complete", "\"elicitationId\":\"e1\""), "chunk=hi", DONE);
    s.option = "accept";
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK(s.end.ok);
    HEARD(&s,
          "\"detail\":{\"mode\":\"url\",\"message\":\"Log in\",\"url\":\"https://example.org/\",\"elicitationId\":\"e1\"}");
    CHECK_STR(&one_run_elicitation[0], "e1");
    CHECK_INT(s.unasks, 0);
}

/* Whoever goes there without answering here is done all the same. */
TEST(the_page_was_enough) {
    scene s;
    SCRIPT(&s, PROMPTED, ELICIT("7", PAGE("e1")), SAY("elicitation/complete", "\"elicitationId\":\"e1\""),
           "hear=\"result\":{\"action\":\"accept\"}}", "chunk=hi", DONE);
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK(s.end.ok);
    CHECK_INT(s.unasks, 1);
}

/* ---- logging in ---- */

#define METHODS                                                                                                             \
    "hear=initialize", "reply={\"protocolVersion\":1,\"authMethods\":[{\"id\":\"web\",\"name\":\"Web\\n\",\"description\":" \
                       "\"in a browser\"},"                                                                                 \
                       "{\"id\":\"tty\",\"name\":\"Terminal\",\"type\":\"terminal\"},{\"id\":\"\"},7]}"
#define NO_KEY "error={\"code\":-32000,\"message\":\"no key\"}"

TEST(a_person_says_how_to_log_in) {
    scene s;
    SCRIPT(&s, METHODS, "hear=session/new", NO_KEY, "hear=\"method\":\"authenticate\",\"params\":{\"methodId\":\"web\"}",
           "reply={}", "hear=session/new", "reply={\"sessionId\":\"s1\"}", "hear=session/prompt", "chunk=hi",
           "reply={\"stopReason\":\"end_turn\"}");
    s.option = "web";
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK(s.end.ok);
    CHECK_INT(s.asks, 1);
    HEARD(&s, "ask {\"kind\":\"login\",\"title\":\"it is not logged in (no key). It offers: Web\\\\u005cu000a, Terminal.");
    HEARD(&s, "\"options\":[{\"id\":\"web\",\"name\":\"Web\\\\u000a: in a browser\",\"kind\":\"allow_once\"},{\"id\":\"weft:"
              "retry\",\"name\":\"Try again, because you have logged in\",\"kind\":\"allow_once\"},{\"id\":\"weft:stop\","
              "\"name\":\"Give up\",\"kind\":\"reject_once\"}]");
    HEARD(&s, "\"detail\":{\"error\":\"no key\",\"authMethods\":[{\"id\":\"web\",");
    HEARD(&s, "chunk hi");
}

TEST(logged_in_elsewhere) {
    scene s;
    SCRIPT(&s, HELLO, "hear=session/new", NO_KEY, "hear=session/new", "reply={\"sessionId\":\"s1\"}", "hear=session/prompt",
           "chunk=hi", "reply={\"stopReason\":\"end_turn\"}");
    CHECK(start_with(&s, "do it", NULL, NULL));
    KIT_UNTIL(s.loop, s.asks);
    CHECK_INT(one_run_answer(s.run, s.key, "weft:retry"), 0);
    finish(&s);
    CHECK(s.end.ok);
    HEARD(&s, "\"authMethods\":[]");
}

/* So often, and no more. */
TEST(logging_in_does_not_help) {
    scene s;
    SCRIPT(&s, METHODS, "hear=session/new", NO_KEY, "hear=authenticate", "reply={}", "hear=session/new", NO_KEY,
           "hear=authenticate", "error={\"code\":-32603,\"message\":\"no such user\"}", "hear=authenticate", "reply={}",
           "hear=session/new", NO_KEY, "linger");
    s.option = "web";
    CHECK(start_with(&s, "do it", NULL, NULL));
    finish(&s);
    CHECK_STR(s.reason, "authRequired");
    CHECK_INT(s.asks, 3);
    HEARD(&s, "not logged in (no such user)");
    CHECK(strstr(s.error, "it is not logged in (no key). It offers: Web") != NULL);
}

TEST(nobody_logs_in) {
    static const char *const options[] = {"weft:stop", NULL};
    for (size_t i = 0; i < 2; i++) {
        scene s;
        SCRIPT(&s, METHODS, "hear=session/new", NO_KEY, "eof");
        CHECK(start_with(&s, "do it", NULL, NULL));
        KIT_UNTIL(s.loop, s.asks);
        CHECK_INT(one_run_answer(s.run, s.key, options[i]), 0);
        CHECK_INT(s.ends, 0); /* nothing is called from inside */
        finish(&s);
        CHECK_STR(s.reason, "authRequired");
    }
}

/* At each point of it: the turn ends as cancelled, or with its process. */
TEST(logging_in_is_interrupted) {
    static const struct {
        const char *what, *option, *cancel_after, *reason, *argv[24];
    } rows[] = {
        {"cancelled while somebody is asked",
         NULL,
         "ask {",
         "cancelled",
         {"", METHODS, "hear=session/new", NO_KEY, "linger"}},
        {"cancelled while it logs in",
         "web",
         "stderr opens a browser",
         "cancelled",
         {"", METHODS, "hear=session/new", NO_KEY, "hear=authenticate", "err=opens a browser", "linger"}},
        {"it ends while somebody is asked", NULL, NULL, "exited", {"", METHODS, "hear=session/new", NO_KEY, "exit=3"}},
        {"it ends while it logs in",
         "web",
         NULL,
         "exited",
         {"", METHODS, "hear=session/new", NO_KEY, "hear=authenticate", "exit=3"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        const char *argv[24];
        test_row(rows[i].what);
        memcpy(argv, rows[i].argv, sizeof argv);
        script(&s, argv);
        s.option = rows[i].option;
        s.cancel_after = rows[i].cancel_after;
        CHECK(start_with(&s, "do it", NULL, NULL));
        finish(&s);
        CHECK_STR(s.reason, rows[i].reason);
    }
    test_row(NULL);
}

/* The owner frees it at each point. */
TEST(freed_in_the_middle) {
    static const char *const after[] = {"ask {\"kind\":\"login", "ask {\"kind\":\"elicitation", "chunk hi"};
    for (size_t i = 0; i < 3; i++) {
        scene s;
        SCRIPT(&s, METHODS, "hear=session/new", NO_KEY, "hear=session/new", "reply={\"sessionId\":\"s1\"}",
               "hear=session/prompt", ELICIT("7", FORM), "chunk=hi", "linger");
        s.free_after = after[i];
        CHECK(start_with(&s, "do it", NULL, NULL));
        KIT_UNTIL(s.loop, s.asks);
        if (s.run)
            CHECK_INT(one_run_answer(s.run, s.key, "weft:retry"), 0);
        finish(&s);
    }
}

/* Each allocation fails once: the turn ends, well or not, and nothing is left. */
TEST(memory_is_short) {
    bool failed = true;
    for (long at = 1; failed && at < 1000; at++) {
        scene s;
        test_memory memory;
        char row[32];
        SCRIPT(&s, METHODS, "hear=session/new", NO_KEY, "hear=session/new", "reply={\"sessionId\":\"s1\"}",
               "hear=session/prompt", ELICIT("7", FORM), "hear=\"id\":7", ELICIT("8", PAGE("e")), "hear=\"id\":8",
               SAY("elicitation/complete", "\"elicitationId\":\"e\""), "reply={\"stopReason\":\"end_turn\"}", "eof");
        test_memory_init(&memory, at);
        snprintf(row, sizeof row, "allocation %ld", at);
        test_row(row);
        s.option = "weft:retry";
        if (start_with(&s, "do it", NULL, &memory.alloc))
            KIT_UNTIL(s.loop, s.ends);
        failed = memory.count >= at;
        clean(&s);
        CHECK_INT(memory.live, 0);
    }
    CHECK(!failed);
}

TEST_MAIN(CASE(a_form_is_filled_in) CASE(a_form_is_not_filled_in) CASE(a_form_is_cancelled) CASE(the_agent_gives_its_form_up)
              CASE(what_cannot_be_asked) CASE(a_form_before_the_session) CASE(a_person_goes_to_a_page)
                  CASE(the_page_was_enough) CASE(a_person_says_how_to_log_in) CASE(logged_in_elsewhere)
                      CASE(logging_in_does_not_help) CASE(nobody_logs_in) CASE(logging_in_is_interrupted)
                          CASE(freed_in_the_middle) CASE(memory_is_short))
