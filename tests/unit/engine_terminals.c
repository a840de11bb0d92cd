/* Terminals of a task's agent: who gets one, that they end with the turn however it ends, and that what they printed is read
 * back with the tool call that shows them. */
#include "engine/world.h"

#include "agents/kit.h"
#include "transcript.h"

typedef struct scene {
    engine_world w;
    weft_service *service;
    task_outcome task;
    int answers, code;
    char answer[1024], id[WEFT_TERMINAL_ID];
} scene;

static int take(weft_req *req, const weft_json *params, void *ctx) {
    static const char *const names[] = {"create", "output", "wait", "kill", "release"};
    scene *s = ctx;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(weft_req_method(req), names[i]) == 0)
            return weft__task_terminal(s->w.engine, weft_get_str(params, "task", s->task.id), (weft_terminals_call) i, req,
                                       params);
    return -ENOENT;
}

static const weft_method methods[] = {{.name = "create", .handler = take},  {.name = "output", .handler = take},
                                      {.name = "wait", .handler = take},    {.name = "kill", .handler = take},
                                      {.name = "release", .handler = take}, {0}};

static void on_called(void *ctx, int r, const weft_answer *answer) {
    scene *s = ctx;
    s->answers++;
    s->code = r < 0 ? r : answer->error ? answer->error->code : 0;
    snprintf(s->answer, sizeof s->answer, "%.*s", r < 0 || answer->error ? 1000 : (int) answer->result->len,
             r < 0           ? ""
             : answer->error ? answer->error->message
                             : answer->result->text);
}

static void ask(scene *s, const char *method, const char *params) {
    CHECK_INT(weft_service_call(s->service, NULL, method, weft_raw(params, strlen(params)), on_called, s, NULL), 0);
}

static int call(scene *s, const char *method, const char *params) {
    int before = s->answers;
    ask(s, method, params);
    KIT_UNTIL(s->w.loop, (weft_service_deliver(s->service), s->answers > before));
    return s->code;
}

static int about(scene *s, const char *method) {
    char params[100];
    snprintf(params, sizeof params, "{\"terminalId\":\"%s\"}", s->id);
    return call(s, method, params);
}

static void begin(scene *s, const char *agent) {
    memset(s, 0, sizeof *s);
    engine_open(&s->w, play_store());
    s->w.opts.program = kit_weft();
    s->w.opts.limits.grace_ms = 600;
    CHECK_INT(world_start(&s->w), 0);
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = methods, .ctx = s}, &s->service), 0);
    CHECK_INT(submit_spec(&s->w, &(weft_task_spec){.prompt = "x", .agent = agent}, &s->task), 0);
}

static void finish(scene *s) {
    engine_end(&s->w);
    weft_service_deliver(s->service);
    weft_service_unref(s->service);
    CHECK(kit_children_go());
}

static void create(scene *s, const char *params) {
    CHECK_INT(call(s, "create", params), 0);
    snprintf(s->id, sizeof s->id, "%.*s", (int) strcspn(s->answer + 15, "\""), s->answer + 15);
}

static void update(scene *s, const char *format) {
    char json[500];
    weft_doc *doc = NULL;
    weft_run *run = play_of(s->task.id);
    snprintf(json, sizeof json, format, s->id);
    if (CHECK(weft_doc_parse(json, strlen(json), NULL, &doc) >= 0))
        run->host->on_update(run->ctx, weft_doc_root(doc));
    weft_doc_free(doc);
}

#define SHOWN                                                                                                               \
    "{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"t\",\"title\":\"x\",\"content\":[{\"type\":\"terminal\","            \
    "\"terminalId\":\"%s\"}]}"
#define DONE "{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t\",\"status\":\"completed\"}%.0s"

/* ---- what is read back ---- */

typedef struct tool_read {
    int times;
    char content[2000];
} tool_read;

static void on_transcript(void *ctx, int r, const weft_transcript *transcript) {
    tool_read *read = ctx;
    read->times++;
    CHECK_INT(r, 0);
    for (size_t i = 0; transcript && i < transcript->count; i++)
        if (transcript->items[i]->said == WEFT_SAID_TOOL)
            snprintf(read->content, sizeof read->content, "%.*s", (int) transcript->items[i]->members[WEFT_TOOL_CONTENT].len,
                     transcript->items[i]->members[WEFT_TOOL_CONTENT].data);
}

static void expect_shown(scene *s, const char *text) {
    tool_read read = {0};
    char want[2000];
    snprintf(want, sizeof want,
             "[{\"type\":\"terminal\",\"terminalId\":\"%s\"},{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":"
             "\"%s\"}}]",
             s->id, text);
    CHECK_INT(weft__transcript_read(s->w.engine, &(weft_transcript_spec){.session = s->task.session}, on_transcript, &read),
              0);
    engine_wait(&s->w, &read.times, 1);
    CHECK_STR(read.content, want);
}

TEST(what_it_printed_is_read_back) {
    scene s;
    begin(&s, "one");
    create(&s, "{\"command\":\"echo hello\"}");
    update(&s, SHOWN);
    CHECK_INT(about(&s, "wait"), 0);
    CHECK_INT(about(&s, "release"), 0);
    update(&s, DONE);
    play_end(play_of(s.task.id), true);
    ENGINE_UNTIL(&s.w, state_of(&s.w, s.task.id) == WEFT_TASK_COMPLETED);
    expect_shown(&s, "```\\nhello\\n```");
    finish(&s);
}

/* It is running when the turn ends: what it had printed is there, the task ends after it, and it is killed. */
TEST(one_that_runs_ends_with_the_turn) {
    scene s;
    begin(&s, "one");
    create(&s, "{\"command\":\"echo hello; exec sleep 1000\"}");
    update(&s, SHOWN);
    KIT_UNTIL(s.w.loop, (about(&s, "output"), strstr(s.answer, "hello")));
    int before = s.answers;
    char params[100];
    snprintf(params, sizeof params, "{\"terminalId\":\"%s\"}", s.id);
    ask(&s, "wait", params);
    play_end(play_of(s.task.id), false);
    ENGINE_UNTIL(&s.w, state_of(&s.w, s.task.id) == WEFT_TASK_FAILED);
    weft_service_deliver(s.service);
    CHECK_INT(s.answers, before + 1);
    CHECK_STR(s.answer, "{\"exitCode\":null,\"signal\":\"SIGKILL\"}");
    CHECK(kit_children_go());
    expect_shown(&s, "```\\nhello\\n```\\nended when it was released");
    CHECK_INT(about(&s, "output"), -32603);
    CHECK_STR(s.answer, "The turn is over");
    finish(&s);
}

/* ---- who gets one ---- */

TEST(who_may_only_read_gets_none) {
    scene s;
    begin(&s, "deny");
    CHECK_INT(call(&s, "create", "{\"command\":\"ls\"}"), -32603);
    CHECK_STR(s.answer, "This agent may only read (\"permission\": \"deny\"): it gets no terminal");
    finish(&s);
}

TEST(a_task_has_no_terminal_of_another) {
    scene s;
    char params[100];
    begin(&s, "one");
    create(&s, "{\"command\":\"sleep 1000\"}");
    task_outcome first = s.task;
    CHECK_INT(submit(&s.w, "y", &s.task), 0);
    CHECK_INT(about(&s, "output"), -32002);
    CHECK_INT(about(&s, "kill"), -32002);
    CHECK_INT(about(&s, "release"), -32002);
    snprintf(params, sizeof params, "{\"task\":\"%s\",\"terminalId\":\"%s\"}", first.id, s.id);
    CHECK_INT(call(&s, "output", params), 0);
    CHECK_INT(call(&s, "output", "{\"task\":\"task-9999\",\"terminalId\":\"x\"}"), -32603);
    finish(&s);
}

/* ---- cancelling ---- */

TEST(a_wait_is_answered_when_the_task_is_cancelled) {
    scene s;
    task_outcome cancelled = {0};
    char params[100];
    begin(&s, "one");
    create(&s, "{\"command\":\"trap '' TERM HUP; while :; do sleep 1000; done\"}");
    update(&s, SHOWN);
    snprintf(params, sizeof params, "{\"terminalId\":\"%s\"}", s.id);
    int before = s.answers;
    ask(&s, "wait", params);
    CHECK_INT(weft__task_cancel(s.w.engine, s.task.id, "me", task_done, &cancelled), 0);
    KIT_UNTIL(s.w.loop, (weft_service_deliver(s.service), s.answers > before));
    CHECK(strstr(s.answer, "\"exitCode\":null,\"signal\":\"SIG"));
    CHECK_INT(cancelled.times, 0); /* the agent has the turn still */
    CHECK_INT(call(&s, "create", "{\"command\":\"ls\"}"), -32603);
    CHECK_STR(s.answer, "The turn is being ended");
    play_end(play_of(s.task.id), false);
    engine_wait(&s.w, &cancelled.times, 1);
    CHECK_INT(cancelled.state, WEFT_TASK_CANCELLED);
    finish(&s);
}

TEST(the_engine_goes_with_terminals_open) {
    scene s;
    begin(&s, "one");
    create(&s, "{\"command\":\"trap '' TERM HUP; while :; do echo x; done\"}");
    update(&s, SHOWN);
    finish(&s);
}

/* ---- when events cannot be stored ---- */

TEST(what_it_printed_waits_for_the_store) {
    scene s;
    begin(&s, "one");
    create(&s, "{\"command\":\"echo hello\"}");
    update(&s, SHOWN);
    play_store_fails = -ENOSPC;
    CHECK_INT(about(&s, "wait"), 0);
    play_end(play_of(s.task.id), true);
    engine_settle(&s.w);
    CHECK_INT(state_of(&s.w, s.task.id), WEFT_TASK_RUNNING);
    play_store_fails = 0;
    ENGINE_UNTIL(&s.w, state_of(&s.w, s.task.id) == WEFT_TASK_COMPLETED);
    expect_shown(&s, "```\\nhello\\n```");
    finish(&s);
}

TEST_MAIN(CASE(what_it_printed_is_read_back) CASE(one_that_runs_ends_with_the_turn) CASE(who_may_only_read_gets_none)
              CASE(a_task_has_no_terminal_of_another) CASE(a_wait_is_answered_when_the_task_is_cancelled)
                  CASE(the_engine_goes_with_terminals_open) CASE(what_it_printed_waits_for_the_store))
