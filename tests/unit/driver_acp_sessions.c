/* Sessions of ACP agents that can and cannot: settings in each of their words, conversations that are gone on with, and what
 * is asked of an agent outside of a turn. tests/agents/acp_script.c plays them. */
#include "agents/kit.h"
#include "driver.h"

#define HELLO "hear=initialize", "reply={\"protocolVersion\":1}"
#define ABLE(what) "hear=initialize", "reply={\"protocolVersion\":1,\"agentCapabilities\":" what "}"
#define NEW(more) "hear=session/new", "reply={\"sessionId\":\"s1\"" more "}"
#define TURN "hear=session/prompt", "chunk=hello", "reply={\"stopReason\":\"end_turn\"}"
#define UPDATE(what)                                                                                                        \
    "say={\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":" what "}}"
#define MODES ",\"modes\":{\"currentModeId\":\"a\",\"availableModes\":[]}"
#define OPTIONS                                                                                                             \
    ",\"configOptions\":[{\"id\":\"which\",\"name\":\"\",\"category\":\"model\",\"type\":\"select\"},{\"id\":\"fast\","     \
    "\"name\":\"\",\"type\":\"boolean\"}]"

typedef struct play {
    weft_loop *loop;
    weft_agent agent;
    weft_driver_process *process;
    weft_driver_session *session;
    char folder[64], said[64], states[2048], reason[64], error[2048], answer[2048];
    int opened, ends, process_ends, answers, answer_r, fds;
    bool ok, renewed;
    const weft_session_setting *set_when_open;
} play;

static void hear_process(void *ctx, pid_t pid) {
    (void) ctx, (void) pid;
}

static void hear_end(void *ctx, int exit_code, int signal) {
    (void) exit_code, (void) signal;
    ((play *) ctx)->process_ends++;
}

static void hear_done(void *ctx, int r, const weft_json *result, const char *error) {
    play *p = ctx;
    p->answers++;
    p->answer_r = r;
    CHECK((result != NULL) == (r == 0));
    snprintf(p->answer, sizeof p->answer, "%.*s", result ? (int) result->len : (int) strlen(error ? error : ""),
             result  ? result->text
             : error ? error
                     : "");
}

static void hear_session(void *ctx, const weft_session_info *info) {
    play *p = ctx;
    p->opened++;
    p->renewed = info->renewed;
    if (p->set_when_open)
        CHECK_INT(weft__driver_acp.set(p->session, p->set_when_open, hear_done, p), 0);
}

static void hear_output(void *ctx, weft_run_stream stream, weft_bytes text) {
    (void) ctx, (void) stream, (void) text;
}

static void hear_update(void *ctx, const weft_json *update) {
    weft_json text = weft_pointer(update, "/content/text");
    snprintf(((play *) ctx)->said, 64, "%s", weft_str_of(&text, ""));
}

static void hear_state(void *ctx, const char *name, const weft_json *value) {
    play *p = ctx;
    size_t len = strlen(p->states);
    snprintf(p->states + len, sizeof p->states - len, "%s=%.*s;", name, (int) value->len, value->text);
}

static void hear_turn_end(void *ctx, const weft_turn_end *end) {
    play *p = ctx;
    p->ends++;
    p->ok = end->ok;
    snprintf(p->reason, sizeof p->reason, "%s", end->reason ? end->reason : "");
    snprintf(p->error, sizeof p->error, "%s", end->error ? end->error : "");
}

static void start(play *p, const char **argv, const weft_session_spec *spec) {
    static const weft_process_host process_host = {hear_process, hear_end};
    static const weft_session_host host = {.on_session = hear_session,
                                           .on_output = hear_output,
                                           .on_update = hear_update,
                                           .on_state = hear_state,
                                           .on_turn_end = hear_turn_end};
    static char path[4096];
    weft_loop *first; /* libuv opens some descriptors once */
    CHECK_INT(weft_loop_new(NULL, &first), 0);
    weft_loop_free(first);
    *p = (play){.agent = {.name = "it", .argv = argv}, .fds = kit_open_fds()};
    argv[0] = kit_program("agent_acp_script", path, sizeof path);
    snprintf(p->folder, sizeof p->folder, "/tmp");
    CHECK_INT(weft_loop_new(NULL, &p->loop), 0);
    CHECK_INT(weft__driver_acp.open(
                  &(weft_process_spec){
                      .loop = p->loop, .agent = &p->agent, .program = kit_weft(), .folder = p->folder, .grace_ms = 600},
                  &process_host, p, &p->process),
              0);
    if (spec)
        CHECK_INT(weft__driver_acp.session(p->process, spec, &host, p, &p->session), 0);
}

static void prompt(play *p, const char *text) {
    int ends = p->ends;
    CHECK_INT(weft__driver_acp.prompt(p->session, &(weft_turn_spec){.task = "task-1", .prompt = text}), 0);
    KIT_UNTIL(p->loop, p->ends > ends);
}

static void finish(play *p) {
    weft__driver_acp.stop(p->process, NULL, false);
    KIT_UNTIL(p->loop, p->process_ends);
    weft__driver_acp.free(p->process);
    weft_loop_run(p->loop);
    weft_loop_free(p->loop);
    CHECK_INT(kit_open_fds(), p->fds);
}

#define PLAY(p, spec, ...)                                                                                                  \
    const char *argv_##p[] = {"", __VA_ARGS__, NULL};                                                                       \
    play p;                                                                                                                 \
    start(&p, argv_##p, spec)

/* settings and what the agent must hear */
static weft_doc *parsed(const char *text) {
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    return doc;
}

TEST(settings_in_each_of_its_words) {
    static const struct {
        const char *what, *settings, *argv[16];
    } rows[] = {
        {"a mode", "{\"mode\":\"b\"}", {"", HELLO, NEW(MODES), "hear=\"session/set_mode\"", "reply={}", TURN, "eof"}},
        {"a model",
         "{\"model\":\"m\"}",
         {"", HELLO, NEW(",\"models\":{\"currentModelId\":\"l\"}"), "hear=\"modelId\":\"m\"", "reply={}", TURN, "eof"}},
        {"a model that is an option, and a switch",
         "{\"options\":{\"fast\":true},\"model\":\"m\"}",
         {"", HELLO, NEW(OPTIONS), "hear=\"configId\":\"which\",\"value\":\"m\"", "reply={\"configOptions\":[]}",
          "hear=\"configId\":\"fast\",\"type\":\"boolean\",\"value\":true", "reply={\"configOptions\":[]}", TURN, "eof"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        play p;
        const char *argv[16];
        weft_doc *doc = parsed(rows[i].settings);
        test_row(rows[i].what);
        memcpy(argv, rows[i].argv, sizeof argv);
        start(&p, argv, &(weft_session_spec){.settings = weft_doc_root(doc)});
        weft_doc_free(doc);
        prompt(&p, "x");
        CHECK(p.ok);
        CHECK_STR(p.error, "");
        CHECK_STR(p.said, "hello");
        CHECK((strstr(p.states, "mode=\"b\";") != NULL) == (i == 0)); /* it said another when it was opened */
        finish(&p);
    }
}

/* A turn that would run otherwise than was chosen does not run. */
TEST(settings_that_it_does_not_take) {
    static const struct {
        const char *what, *settings, *error, *argv[16];
    } rows[] = {
        {"it has no modes", "{\"mode\":\"b\"}", "has no mode", {"", HELLO, NEW(), "eof"}},
        {"it has no options", "{\"options\":{\"fast\":true}}", "has no option fast", {"", HELLO, NEW(MODES), "eof"}},
        {"it refuses",
         "{\"mode\":\"b\"}",
         "No: never",
         {"", HELLO, NEW(MODES), "hear=\"session/set_mode\"",
          "error={\"code\":1,\"message\":\"No\",\"data\":{\"details\":\"never\"}}", "eof"}},
        {"one of two", "{\"mode\":\"b\",\"options\":{\"fast\":true}}", "has no option fast", {"", HELLO, NEW(MODES), "eof"}},
        {"no settings", "{\"mode\":7}", "could not be read", {"", HELLO, NEW(MODES), "eof"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        play p;
        const char *argv[16];
        weft_doc *doc = parsed(rows[i].settings);
        test_row(rows[i].what);
        memcpy(argv, rows[i].argv, sizeof argv);
        start(&p, argv, &(weft_session_spec){.settings = weft_doc_root(doc)});
        weft_doc_free(doc);
        prompt(&p, "x");
        CHECK_STR(p.reason, "settingRefused");
        CHECK(strstr(p.error, rows[i].error) != NULL);
        CHECK_STR(p.said, "");
        finish(&p);
    }
}

TEST(it_is_set_while_it_is_open) {
    weft_doc *mode = parsed("\"b\""), *on = parsed("false");
    PLAY(p, &(weft_session_spec){0}, HELLO, NEW(MODES OPTIONS), TURN, "hear=\"modeId\":\"b\"", "reply={}",
         "hear=\"configId\":\"fast\"", "reply={\"configOptions\":[{\"id\":\"fast\",\"currentValue\":false}]}",
         "hear=\"configId\":\"slow\"", "error={\"code\":-32602,\"message\":\"No such option\"}", "eof");
    weft_session_setting set = {"mode", NULL, *weft_doc_root(mode)};
    prompt(&p, "x");
    CHECK(strstr(p.states, "modes={") != NULL && strstr(p.states, "options=[") != NULL);
    CHECK_INT(weft__driver_acp.set(p.session, &set, hear_done, &p), 0);
    KIT_UNTIL(p.loop, p.answers == 1);
    CHECK_INT(p.answer_r, 0);
    set = (weft_session_setting){"option", "fast", *weft_doc_root(on)};
    p.states[0] = '\0';
    CHECK_INT(weft__driver_acp.set(p.session, &set, hear_done, &p), 0);
    KIT_UNTIL(p.loop, p.answers == 2);
    CHECK_STR(p.states, "options=[{\"id\":\"fast\",\"currentValue\":false}];");
    set.option = "slow";
    CHECK_INT(weft__driver_acp.set(p.session, &set, hear_done, &p), 0);
    KIT_UNTIL(p.loop, p.answers == 3);
    CHECK_INT(p.answer_r, -EREMOTEIO);
    CHECK_STR(p.answer, "No such option");
    finish(&p);
    weft_doc_free(mode);
    weft_doc_free(on);
}

/* The agent has none of it, or ends before it answers. */
TEST(it_cannot_be_set) {
    weft_doc *mode = parsed("\"b\"");
    const weft_session_setting set = {"mode", NULL, *weft_doc_root(mode)};
    PLAY(p, &(weft_session_spec){0}, HELLO, NEW(), TURN, "eof");
    prompt(&p, "x");
    CHECK_INT(weft__driver_acp.set(p.session, &set, hear_done, &p), -EOPNOTSUPP);
    finish(&p);
    PLAY(q, &(weft_session_spec){0}, HELLO, NEW(MODES), TURN, "hear=set_mode", "exit=3");
    prompt(&q, "x");
    CHECK_INT(weft__driver_acp.set(q.session, &set, hear_done, &q), 0);
    KIT_UNTIL(q.loop, q.process_ends);
    CHECK_INT(q.answers, 1);
    CHECK_INT(q.answer_r, -EPIPE);
    CHECK_STR(q.answer, "it ended before it answered");
    finish(&q);
    weft_doc_free(mode);
}

/* What is set as soon as it is open comes before the prompt that waits, and the prompt waits for the answer. */
TEST(a_prompt_waits_for_what_is_set) {
    weft_doc *mode = parsed("\"b\"");
    const weft_session_setting set = {"mode", NULL, *weft_doc_root(mode)};
    PLAY(p, &(weft_session_spec){0}, HELLO, NEW(MODES), "hear=set_mode", "reply={}", TURN, "eof");
    p.set_when_open = &set;
    prompt(&p, "x");
    CHECK(p.ok && p.answers == 1 && p.answer_r == 0);
    CHECK_STR(p.said, "hello");
    finish(&p);
    weft_doc_free(mode);
}

TEST(what_holds_is_heard_outside_of_a_turn_too) {
    PLAY(p, &(weft_session_spec){0}, HELLO, NEW(), TURN,
         UPDATE("{\"sessionUpdate\":\"current_mode_update\",\"currentModeId\":\"z\"}"),
         UPDATE("{\"sessionUpdate\":\"current_mode_update\",\"currentModeId\":7}"),
         UPDATE("{\"sessionUpdate\":\"available_commands_update\",\"availableCommands\":[]}"),
         UPDATE("{\"sessionUpdate\":\"config_option_update\",\"configOptions\":{}}"),
         UPDATE("{\"sessionUpdate\":\"session_info_update\",\"title\":\"T\"}"),
         UPDATE("{\"sessionUpdate\":\"session_info_update\",\"title\":null}"), "eof");
    prompt(&p, "x");
    KIT_UNTIL(p.loop, strstr(p.states, "title=null"));
    CHECK_STR(p.states, "mode=\"z\";commands=[];title=\"T\";title=null;");
    finish(&p);
}

TEST(it_goes_on_with_this_one_or_none) {
    const weft_session_spec spec = {.agent_session = "old", .must_exist = true};
    PLAY(p, &spec, HELLO, "eof");
    prompt(&p, NULL);
    CHECK_STR(p.reason, "cannotResume");
    CHECK_INT(p.opened, 0);
    finish(&p);
    PLAY(q, &spec, ABLE("{\"sessionCapabilities\":{\"resume\":{}}}"), "hear=session/resume",
         "error={\"code\":-32002,\"message\":\"Unknown session\"}", "eof");
    prompt(&q, NULL);
    CHECK_STR(q.reason, "sessionNotFound");
    CHECK(strstr(q.error, "Unknown session") != NULL);
    finish(&q);
    PLAY(s, &spec, ABLE("{\"loadSession\":true}"), "hear=session/load", "reply={\"modes\":{\"currentModeId\":\"a\"}}",
         "eof");
    prompt(&s, NULL);
    CHECK(s.ok && s.opened == 1 && !s.renewed);
    CHECK_STR(s.states, "modes={\"currentModeId\":\"a\"};");
    finish(&s);
}

TEST(it_works_in_its_folder_with_its_servers) {
    weft_doc *servers = parsed("[{\"name\":\"x\",\"command\":\"/bin/x\",\"args\":[],\"env\":[]}]");
    const weft_session_spec spec = {.folder = "/usr", .mcp_servers = weft_doc_root(servers)};
    PLAY(p, &spec, HELLO, "hear=\"cwd\":\"/usr\",\"mcpServers\":[{\"name\":\"x\"", "reply={\"sessionId\":\"s1\"}", TURN,
         "eof");
    prompt(&p, "x");
    CHECK(p.ok);
    finish(&p);
    weft_doc_free(servers);
}

/* A turn that waits for its session is cancelled while another runs: what opens the session is given up in ACP's words, and
 * the other goes on. */
TEST(cancelled_beside_another) {
    static const weft_session_host second = {.on_session = hear_session,
                                             .on_output = hear_output,
                                             .on_update = hear_update,
                                             .on_state = hear_state,
                                             .on_turn_end = hear_turn_end};
    const weft_session_spec spec = {0};
    play q = {0};
    PLAY(p, &spec, HELLO, NEW(""), "hear=session/prompt", "chunk=hello", "hear=session/new",
         "hear={\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":4}}",
         "say={\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":-32800,\"message\":\"cancelled\"}}",
         "say={\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}", "eof");
    CHECK_INT(weft__driver_acp.prompt(p.session, &(weft_turn_spec){.task = "task-1", .prompt = "x"}), 0);
    KIT_UNTIL(p.loop, *p.said);
    CHECK_INT(weft__driver_acp.session(p.process, &spec, &second, &q, &q.session), 0);
    CHECK_INT(weft__driver_acp.prompt(q.session, &(weft_turn_spec){.task = "task-2", .prompt = "y"}), 0);
    weft__driver_acp.stop(p.process, q.session, false);
    CHECK_INT(q.ends, 0); /* nothing is called from inside */
    KIT_UNTIL(p.loop, q.ends && p.ends);
    CHECK_STR(&q.reason[0], "cancelled");
    CHECK(p.ok);
    finish(&p);
}

TEST(logging_out) {
    PLAY(p, NULL, ABLE("{\"auth\":{\"logout\":{}}}"), "hear=\"method\":\"logout\"", "reply={}", "eof");
    CHECK_INT(weft__driver_acp.logout(p.process, hear_done, &p), 0);
    KIT_UNTIL(p.loop, p.answers == 1);
    CHECK_INT(p.answer_r, 0);
    finish(&p);
    PLAY(q, NULL, HELLO, "eof"); /* asked before it is known that it cannot, and afterwards */
    CHECK_INT(weft__driver_acp.logout(q.process, hear_done, &q), 0);
    KIT_UNTIL(q.loop, q.answers == 1);
    CHECK_INT(q.answer_r, -EOPNOTSUPP);
    CHECK_INT(weft__driver_acp.logout(q.process, hear_done, &q), -EOPNOTSUPP);
    finish(&q);
}

TEST(its_conversations) {
    PLAY(p, NULL, ABLE("{\"sessionCapabilities\":{\"list\":{},\"delete\":null}}"), "hear=\"cwd\":\"/usr\",\"cursor\":\"c\"",
         "reply={\"sessions\":[{\"sessionId\":\"a\",\"cwd\":\"/usr\"}]}", "hear=session/list", "reply=7",
         "hear=session/list", "reply={\"sessions\":{}}", "eof");
    CHECK_INT(weft__driver_acp.list(p.process, "/usr", "c", hear_done, &p), 0);
    KIT_UNTIL(p.loop, p.answers == 1);
    CHECK(p.answer_r == 0 && strstr(p.answer, "\"a\"") != NULL);
    CHECK_INT(weft__driver_acp.remove(p.process, "a", hear_done, &p), -EOPNOTSUPP);
    CHECK_INT(weft__driver_acp.list(p.process, NULL, NULL, hear_done, &p), 0);
    KIT_UNTIL(p.loop, p.answers == 2);
    CHECK_INT(p.answer_r, -EREMOTEIO);
    CHECK(strstr(p.answer, "its answer cannot be used: it must be") != NULL);
    CHECK_INT(weft__driver_acp.list(p.process, NULL, NULL, hear_done, &p), 0);
    KIT_UNTIL(p.loop, p.answers == 3);
    CHECK(strstr(p.answer, "/sessions must be") != NULL);
    finish(&p);
    PLAY(q, NULL, HELLO, "eof"); /* asked before it is known that it cannot */
    CHECK_INT(weft__driver_acp.remove(q.process, "a", hear_done, &q), 0);
    CHECK_INT(weft__driver_acp.list(q.process, NULL, NULL, hear_done, &q), 0);
    KIT_UNTIL(q.loop, q.answers == 2);
    CHECK_INT(q.answer_r, -EOPNOTSUPP);
    finish(&q);
}

TEST(so_many_requests_at_a_time) {
    PLAY(p, NULL, "linger");
    for (int i = 0; i < 256; i++)
        CHECK_INT(weft__driver_acp.list(p.process, NULL, NULL, hear_done, &p), 0);
    CHECK_INT(weft__driver_acp.list(p.process, NULL, NULL, hear_done, &p), -EBUSY);
    finish(&p);
    CHECK_INT(p.answers, 256);
}

/* clang-format off */
TEST_MAIN(
    CASE(settings_in_each_of_its_words)
    CASE(settings_that_it_does_not_take)
    CASE(it_is_set_while_it_is_open)
    CASE(it_cannot_be_set)
    CASE(a_prompt_waits_for_what_is_set)
    CASE(what_holds_is_heard_outside_of_a_turn_too)
    CASE(it_goes_on_with_this_one_or_none)
    CASE(it_works_in_its_folder_with_its_servers)
    CASE(cancelled_beside_another) CASE(logging_out) CASE(its_conversations)
    CASE(so_many_requests_at_a_time)
)
