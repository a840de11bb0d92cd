/* Agents' processes that live: which one serves a turn, how long one is kept, and who hears what when one ends. The driver
 * is played by the test. */
#include "agent_pool.h"
#include "engine/world.h"

#define MOST 16

struct weft_driver_process {
    const weft_process_host *host;
    void *ctx;
    char task[32]; /* "": it may serve several */
    int sessions, stops, forced;
    bool freed, paused;
};

struct weft_driver_session {
    weft_driver_process *process;
    const weft_session_host *host;
    void *ctx;
    char prompt[32], again[32]; /* the conversation to go on with */
    char settings[128], servers[256], folder[128];
    int prompts, opens, stops, answers;
    bool closed, must_exist;
};

/* Something that was asked of an agent, and waits for the test to answer. */
typedef struct living_request {
    char what[128];
    weft_driver_done *done;
    void *ctx;
} living_request;

static struct {
    weft_driver_process processes[MOST];
    weft_driver_session sessions[MOST];
    int opened, begun, live;
    int refuse; /* prompt() of a session that has had a turn fails so */
    int set_r;  /* set() returns this */
    living_request requests[MOST];
    int asked;
} stage;

static int living_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret) {
    if (stage.opened == MOST)
        return -ENOSPC;
    weft_driver_process *process = &stage.processes[stage.opened++];
    *process = (weft_driver_process){.host = host, .ctx = ctx};
    snprintf(process->task, sizeof process->task, "%s", spec->task ? spec->task : "");
    stage.live++;
    *ret = process;
    return 0;
}

static int living_session(weft_driver_process *process, const weft_session_spec *spec, const weft_session_host *host,
                          void *ctx, weft_driver_session **ret) {
    if (stage.begun == MOST)
        return -ENOSPC;
    weft_driver_session *session = &stage.sessions[stage.begun++];
    *session = (weft_driver_session){.process = process, .host = host, .ctx = ctx};
    snprintf(session->again, sizeof session->again, "%s", spec->agent_session ? spec->agent_session : "");
    snprintf(session->folder, sizeof session->folder, "%s", spec->folder);
    if (spec->settings)
        snprintf(session->settings, sizeof session->settings, "%.*s", (int) spec->settings->len, spec->settings->text);
    if (spec->mcp_servers)
        snprintf(session->servers, sizeof session->servers, "%.*s", (int) spec->mcp_servers->len, spec->mcp_servers->text);
    session->must_exist = spec->must_exist;
    process->sessions++;
    *ret = session;
    return 0;
}

static int living_prompt(weft_driver_session *session, const weft_turn_spec *spec) {
    if (stage.refuse && session->prompts)
        return stage.refuse;
    if (!spec->prompt) {
        session->opens++;
        return 0;
    }
    session->prompts++;
    snprintf(session->prompt, sizeof session->prompt, "%s", spec->prompt);
    return 0;
}

static int living_ask(const char *verb, const char *what, weft_driver_done *done, void *ctx) {
    if (stage.asked == MOST)
        return -EBUSY;
    living_request *made = &stage.requests[stage.asked++];
    *made = (living_request){.done = done, .ctx = ctx};
    snprintf(made->what, sizeof made->what, "%s %s", verb, what);
    return 0;
}

static int living_set(weft_driver_session *session, const weft_session_setting *setting, weft_driver_done *done, void *ctx) {
    CHECK(!session->closed);
    if (stage.set_r)
        return stage.set_r;
    return living_ask(setting->name, weft_str_of(&setting->value, ""), done, ctx);
}

static int living_list(weft_driver_process *process, const char *folder, const char *cursor, weft_driver_done *done,
                       void *ctx) {
    (void) process, (void) cursor;
    return living_ask("list", folder ? folder : "", done, ctx);
}

static int living_remove(weft_driver_process *process, const char *agent_session, weft_driver_done *done, void *ctx) {
    (void) process;
    return living_ask("remove", agent_session, done, ctx);
}

static int living_answer(weft_driver_session *session, const char *key, const char *option) {
    (void) key, (void) option;
    session->answers++;
    return 0;
}

static void living_stop(weft_driver_process *process, weft_driver_session *session, bool force) {
    (session ? &session->stops : &process->stops)[0]++;
    process->forced += force;
}

static void living_pause(weft_driver_process *process, bool paused) {
    process->paused = paused;
}

static weft_driver_session *living_close(weft_driver_session *session) {
    CHECK(!session->closed);
    session->closed = true;
    return NULL;
}

static weft_driver_process *living_free(weft_driver_process *process) {
    CHECK(!process->freed);
    process->freed = true;
    stage.live--;
    return NULL;
}

static const weft_driver living = {
    .name = "living",
    .open = living_open,
    .session = living_session,
    .prompt = living_prompt,
    .answer = living_answer,
    .stop = living_stop,
    .set = living_set,
    .list = living_list,
    .remove = living_remove,
    .pause = living_pause,
    .close = living_close,
    .free = living_free,
};
static const weft_driver *const drivers[] = {&living, NULL};

static const char *const argv_old[] = {"agent", "old", NULL}, *const argv_new[] = {"agent", "new", NULL};
static const weft_agent agents_list[] = {
    {.name = "one", .driver = "living", .argv = argv_old},
    {.name = "shared", .driver = "living", .argv = argv_old, .max_turns = 2},
    {.name = "brief", .driver = "living", .argv = argv_old, .idle_ms = -1},
};
static const weft_agents agents = {agents_list, 3, "one"};

/* ---- playing it ---- */

static void begin(engine_world *w, weft_engine_limits limits) {
    memset(&stage, 0, sizeof stage);
    engine_open(w, play_store());
    w->opts.drivers = drivers;
    w->opts.agents = &agents;
    w->opts.limits = limits;
    CHECK_INT(world_start(w), 0);
}

static void finish(engine_world *w) {
    engine_end(w);
    CHECK_INT(stage.live, 0);
}

/* The session that has this prompt. */
static weft_driver_session *turn_of(const char *prompt) {
    for (int i = stage.begun; i-- > 0;)
        if (strcmp(stage.sessions[i].prompt, prompt) == 0)
            return &stage.sessions[i];
    return NULL;
}

static void run(engine_world *w, const char *agent, const char *session, const char *prompt, task_outcome *ret) {
    *ret = (task_outcome){0};
    CHECK_INT(submit_spec(w, &(weft_task_spec){.prompt = prompt, .agent = agent, .session = session}, ret), 0);
    ENGINE_UNTIL(w, turn_of(prompt) != NULL);
}

static void end_turn(weft_driver_session *session, const char *reason) {
    session->host->on_turn_end(
        session->ctx,
        &(weft_turn_end){
            .ok = !reason, .reason = reason, .error = reason, .exit_code = -1, .stop_reason = reason ? NULL : "end_turn"});
}

static void end_process(weft_driver_process *process, int exit_code) {
    process->host->on_end(process->ctx, exit_code, 0);
}

static void complete(engine_world *w, const char *prompt, const char *id) {
    end_turn(turn_of(prompt), NULL);
    ENGINE_UNTIL(w, state_of(w, id) == WEFT_TASK_COMPLETED);
}

TEST(the_next_turn_of_a_session_is_in_its_process) {
    engine_world w;
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "first", &a);
    CHECK_STR(stage.processes[0].task, "");
    stage.processes[0].host->on_process(stage.processes[0].ctx, 77);
    complete(&w, "first", a.id);
    CHECK_INT(weft__task_find(w.engine, a.id)->exit_code, -1);
    run(&w, NULL, a.session, "second", &b);
    CHECK_INT(stage.opened, 1);
    CHECK_INT(stage.begun, 1);
    CHECK_INT(stage.sessions[0].prompts, 2);
    ENGINE_UNTIL(&w, weft__task_find(w.engine, b.id)->pid == 77);
    complete(&w, "second", b.id);
    CHECK_INT(stage.processes[0].stops, 0);
    finish(&w);
}

TEST(another_session_uses_an_idle_process) {
    engine_world w;
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "first", &a);
    complete(&w, "first", a.id);
    run(&w, NULL, NULL, "second", &b);
    CHECK_INT(stage.opened, 1);
    CHECK_INT(stage.begun, 2);
    complete(&w, "second", b.id);
    finish(&w);
}

TEST(a_turn_at_a_time_unless_it_is_shared) {
    engine_world w;
    task_outcome a, b, c, d, e;
    begin(&w, (weft_engine_limits){.max_running = 8});
    run(&w, NULL, NULL, "a", &a);
    run(&w, NULL, NULL, "b", &b);
    CHECK_INT(stage.opened, 2);
    run(&w, "shared", NULL, "c", &c);
    run(&w, "shared", NULL, "d", &d);
    CHECK_INT(stage.opened, 3);
    CHECK_INT(stage.processes[2].sessions, 2);
    run(&w, "shared", NULL, "e", &e);
    CHECK_INT(stage.opened, 4);
    finish(&w);
}

TEST(a_crash_fails_all_turns_in_it) {
    engine_world w;
    task_outcome a, b, c;
    begin(&w, (weft_engine_limits){0});
    run(&w, "shared", NULL, "a", &a);
    run(&w, "shared", NULL, "b", &b);
    for (int i = 0; i < 2; i++)
        stage.sessions[i].host->on_turn_end(
            stage.sessions[i].ctx,
            &(weft_turn_end){.reason = "exited", .error = "it crashed", .gone = true, .exit_code = 3});
    end_process(&stage.processes[0], 3);
    ENGINE_UNTIL(&w, state_of(&w, a.id) == WEFT_TASK_FAILED && state_of(&w, b.id) == WEFT_TASK_FAILED);
    CHECK_STR(weft__task_find(w.engine, b.id)->reason, "exited");
    CHECK_INT(weft__task_find(w.engine, b.id)->exit_code, 3);
    run(&w, "shared", a.session, "c", &c);
    CHECK_INT(stage.opened, 2);
    CHECK(stage.processes[0].freed);
    complete(&w, "c", c.id);
    finish(&w);
}

TEST(who_has_no_turn_for_long_is_ended) {
    engine_world w;
    task_outcome a;
    begin(&w, (weft_engine_limits){.idle_ms = 1});
    run(&w, NULL, NULL, "a", &a);
    complete(&w, "a", a.id);
    ENGINE_UNTIL(&w, stage.processes[0].stops == 1);
    end_process(&stage.processes[0], 0);
    ENGINE_UNTIL(&w, stage.processes[0].freed);
    finish(&w);
}

TEST(so_many_are_kept) {
    engine_world w;
    task_outcome a, b, c;
    begin(&w, (weft_engine_limits){.max_idle = 2});
    run(&w, NULL, NULL, "a", &a);
    run(&w, NULL, NULL, "b", &b);
    run(&w, NULL, NULL, "c", &c);
    complete(&w, "b", b.id);
    complete(&w, "a", a.id);
    CHECK_INT(stage.processes[0].stops + stage.processes[1].stops, 0);
    complete(&w, "c", c.id);
    CHECK_INT(stage.processes[0].stops, 1); /* the one that was used first */
    CHECK_INT(stage.processes[1].stops + stage.processes[2].stops, 0);
    finish(&w);
}

TEST(a_failed_turn_ends_its_process_and_waits_for_it) {
    engine_world w;
    task_outcome a;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    end_turn(turn_of("a"), "agentError");
    engine_settle(&w);
    CHECK_INT(state_of(&w, a.id), WEFT_TASK_RUNNING);
    CHECK_INT(stage.processes[0].stops, 1);
    end_process(&stage.processes[0], 4);
    ENGINE_UNTIL(&w, state_of(&w, a.id) == WEFT_TASK_FAILED);
    CHECK_INT(weft__task_find(w.engine, a.id)->exit_code, 4);
    finish(&w);
}

TEST(one_that_is_not_kept_ends_with_its_turn) {
    engine_world w;
    task_outcome a;
    begin(&w, (weft_engine_limits){0});
    run(&w, "brief", NULL, "a", &a);
    CHECK_STR(stage.processes[0].task, a.id);
    end_turn(turn_of("a"), NULL);
    CHECK_INT(stage.processes[0].stops, 1);
    end_process(&stage.processes[0], 0);
    ENGINE_UNTIL(&w, state_of(&w, a.id) == WEFT_TASK_COMPLETED);
    CHECK_INT(weft__task_find(w.engine, a.id)->exit_code, 0);
    finish(&w);
}

static void cancelled(void *ctx, int r, const weft_task *task) {
    (void) task;
    CHECK_INT(r, 0);
    ++*(int *) ctx;
}

/* Only a conversation is gone on with: what a task on its own starts ends with it. */
TEST(a_process_is_kept_for_a_conversation) {
    engine_world w;
    task_outcome a, b, c, d;
    begin(&w, (weft_engine_limits){.idle_ms = -1, .talk_idle_ms = 3600000});
    run(&w, NULL, NULL, "task", &a);
    CHECK_STR(stage.processes[0].task, a.id);
    end_turn(turn_of("task"), NULL);
    CHECK_INT(stage.processes[0].stops, 1);
    end_process(&stage.processes[0], 0);
    ENGINE_UNTIL(&w, state_of(&w, a.id) == WEFT_TASK_COMPLETED);
    run(&w, NULL, a.session, "talk", &b);
    CHECK_INT(stage.opened, 2);
    CHECK_STR(stage.processes[1].task, "");
    complete(&w, "talk", b.id);
    CHECK_INT(stage.processes[1].stops, 0);
    run(&w, NULL, NULL, "alone", &c); /* not in the one that is kept */
    CHECK_INT(stage.opened, 3);
    run(&w, NULL, a.session, "more", &d);
    CHECK_INT(stage.opened, 3);
    CHECK_INT(weft__task_cancel(w.engine, d.id, "test", NULL, NULL), 0);
    engine_settle(&w);
    end_turn(turn_of("more"), "cancelled");
    CHECK_INT(stage.processes[1].stops, 1); /* with all that it started */
    end_process(&stage.processes[1], 0);
    ENGINE_UNTIL(&w, state_of(&w, d.id) == WEFT_TASK_CANCELLED);
    finish(&w);
}

TEST(a_cancelled_turn_leaves_the_process) {
    engine_world w;
    task_outcome a, b;
    int done = 0;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    CHECK_INT(weft__task_cancel(w.engine, a.id, "ann", cancelled, &done), 0);
    CHECK_INT(stage.sessions[0].stops, 1);
    CHECK_INT(stage.processes[0].stops, 0);
    end_turn(turn_of("a"), "cancelled");
    CHECK(engine_wait(&w, &done, 1));
    run(&w, NULL, a.session, "b", &b);
    CHECK_INT(stage.opened, 1);
    complete(&w, "b", b.id);
    finish(&w);
}

TEST(a_changed_agent_gets_a_new_process) {
    weft_agent changed[3], same[3];
    engine_world w;
    task_outcome a, b, c;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    run(&w, "shared", NULL, "b", &b);
    complete(&w, "a", a.id);
    memcpy(same, agents_list, sizeof same);
    weft__engine_set(w.engine, &(weft_agents){same, 3, "one"}, &w.opts.limits);
    CHECK_INT(stage.processes[0].stops, 0); /* other memory, the same agent */
    memcpy(changed, agents_list, sizeof changed);
    changed[0].argv = changed[1].argv = argv_new;
    const weft_agents now = {changed, 3, "one"};
    weft__engine_set(w.engine, &now, &w.opts.limits);
    CHECK_INT(stage.processes[0].stops, 1);
    CHECK_INT(stage.processes[1].stops, 0); /* it has a turn */
    run(&w, NULL, a.session, "c", &c);
    CHECK_INT(stage.opened, 3);
    end_turn(turn_of("b"), NULL);
    CHECK_INT(stage.processes[1].stops, 1);
    end_process(&stage.processes[0], 0);
    end_process(&stage.processes[1], 0);
    ENGINE_UNTIL(&w, state_of(&w, b.id) == WEFT_TASK_COMPLETED);
    complete(&w, "c", c.id);
    finish(&w);
}

TEST(one_that_is_about_to_go_takes_no_turn) {
    engine_world w;
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    stage.sessions[0].host->on_session(stage.sessions[0].ctx, &(weft_session_info){.agent_session = "own"});
    complete(&w, "a", a.id);
    stage.refuse = -EPIPE;
    run(&w, NULL, a.session, "b", &b);
    CHECK_INT(stage.opened, 2);
    CHECK_STR(stage.sessions[1].again, "own"); /* it goes on in the new one */
    CHECK(stage.sessions[0].closed);
    CHECK_INT(stage.processes[0].stops, 1);
    complete(&w, "b", b.id);
    finish(&w);
}

TEST(the_stop_waits_for_those_without_a_turn) {
    engine_world w;
    task_outcome a;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    complete(&w, "a", a.id);
    weft__engine_stop(w.engine, false, world_stopped, &w);
    engine_settle(&w);
    CHECK_INT(stage.processes[0].stops, 1);
    CHECK_INT(w.stopped, 0);
    weft__engine_stop(w.engine, true, world_stopped, &w);
    CHECK_INT(stage.processes[0].forced, 1);
    end_process(&stage.processes[0], 0);
    CHECK(engine_wait(&w, &w.stopped, 1));
    finish(&w);
}

TEST(what_a_turn_cost_is_stored) {
    static const char text[] = "{\"totalTokens\":5}";
    engine_world w;
    task_outcome a;
    weft_doc *doc;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    CHECK_INT(weft_doc_parse(text, sizeof text - 1, NULL, &doc), 0);
    stage.sessions[0].host->on_usage(stage.sessions[0].ctx, weft_doc_root(doc));
    weft_doc_free(doc);
    complete(&w, "a", a.id);
    CHECK(strstr(w.heard, "session.usage task.completed ") != NULL);
    finish(&w);
}

/* One pipe for all: it rests while any of them has too much. */
TEST(it_is_paused_as_long_as_one_of_its_turns_is) {
    static char much[8 << 20];
    engine_world w;
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    run(&w, "shared", NULL, "a", &a);
    run(&w, "shared", NULL, "b", &b);
    memset(much, 'x', sizeof much);
    for (int i = 0; i < 2; i++)
        stage.sessions[i].host->on_output(stage.sessions[i].ctx, WEFT_RUN_STDOUT, (weft_bytes){much, sizeof much});
    CHECK(stage.processes[0].paused);
    ENGINE_UNTIL(&w, !stage.processes[0].paused);
    complete(&w, "a", a.id);
    complete(&w, "b", b.id);
    finish(&w);
}

/* ---- sessions on their own ---- */

typedef struct session_outcome {
    int times, r;
    char id[32], why[256], result[256];
} session_outcome;

static void session_done(void *ctx, int r, const weft_session *session, const char *error) {
    session_outcome *outcome = ctx;
    outcome->times++;
    outcome->r = r;
    if (session)
        snprintf(outcome->id, sizeof outcome->id, "%s", session->id);
    snprintf(outcome->why, sizeof outcome->why, "%s", error ? error : "");
}

static void listed(void *ctx, int r, const weft_json *result, const char *error) {
    session_outcome *outcome = ctx;
    outcome->times++;
    outcome->r = r;
    snprintf(outcome->result, sizeof outcome->result, "%.*s", result ? (int) result->len : 0, result ? result->text : "");
    snprintf(outcome->why, sizeof outcome->why, "%s", error ? error : "");
}

static weft_doc *parsed(const char *text) {
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    return doc;
}

/* The n-th request is answered. */
static void answer(int n, int r, const char *json, const char *error) {
    weft_doc *doc = json ? parsed(json) : NULL;
    stage.requests[n].done(stage.requests[n].ctx, r, doc ? weft_doc_root(doc) : NULL, error);
    weft_doc_free(doc);
}

static void create(engine_world *w, const weft_session_order *order, session_outcome *ret) {
    *ret = (session_outcome){0};
    CHECK_INT(weft__session_create(w->engine, order, session_done, ret), 0);
    CHECK(engine_wait(w, &ret->times, 1));
    CHECK_INT(ret->r, 0);
}

static int set(engine_world *w, const char *id, const char *mode, session_outcome *ret) {
    char text[64];
    snprintf(text, sizeof text, "\"%s\"", mode);
    weft_doc *doc = parsed(text);
    *ret = (session_outcome){0};
    int r = weft__session_set(w->engine, id, &(weft_session_setting){"mode", NULL, *weft_doc_root(doc)}, "ann", session_done,
                              ret);
    weft_doc_free(doc);
    return r;
}

static void tell_state(weft_driver_session *session, const char *name, const char *json) {
    weft_doc *doc = parsed(json);
    session->host->on_state(session->ctx, name, weft_doc_root(doc));
    weft_doc_free(doc);
}

#define SECRET "[{\"name\":\"db\",\"command\":\"/bin/db\",\"env\":[{\"name\":\"KEY\",\"value\":\"hunter2\"}]}]"

TEST(a_session_has_its_settings_and_servers) {
    engine_world w;
    session_outcome s;
    task_outcome a;
    store_outcome page = {0};
    begin(&w, (weft_engine_limits){0});
    create(&w, &(weft_session_order){.settings = "{\"mode\":\"plan\"}", .servers = SECRET}, &s);
    run(&w, NULL, s.id, "a", &a);
    CHECK_STR(stage.sessions[0].settings, "{\"mode\":\"plan\"}");
    CHECK_STR(stage.sessions[0].servers, SECRET);
    complete(&w, "a", a.id);
    /* Everybody may read events: the secret is in none of them. */
    CHECK_INT(world_read(&w.store, &(weft_query){.stream = "hub", .oldest = true}, &page), 0);
    CHECK(strstr(page.text, "\"servers\":[\"db\"]") != NULL);
    CHECK(strstr(page.text, "hunter2") == NULL);
    finish(&w);
}

#define OTHER "[{\"name\":\"new\",\"command\":\"/bin/new\",\"env\":[{\"name\":\"KEY\",\"value\":\"swordfish\"}]}]"

/* Whoever loads it may bring others: its next turn is opened with them. */
TEST(it_is_given_other_servers) {
    engine_world w;
    session_outcome s;
    task_outcome a, b;
    store_outcome page = {0};
    begin(&w, (weft_engine_limits){0});
    create(&w, &(weft_session_order){.servers = SECRET}, &s);
    run(&w, NULL, s.id, "a", &a);
    CHECK_INT(weft__session_give_servers(w.engine, "session-9999", OTHER), -ESRCH);
    CHECK_INT(weft__session_give_servers(w.engine, s.id, "[{}]"), -EINVAL);
    CHECK_INT(weft__session_give_servers(w.engine, s.id, SECRET), 0);
    CHECK_INT(weft__session_give_servers(w.engine, s.id, OTHER), 0);
    complete(&w, "a", a.id);
    run(&w, NULL, s.id, "b", &b);
    CHECK_STR(stage.sessions[1].servers, OTHER);
    complete(&w, "b", b.id);
    CHECK_INT(world_read(&w.store, &(weft_query){.stream = "hub", .oldest = true}, &page), 0);
    CHECK(strstr(page.text, "swordfish") == NULL);
    finish(&w);
}

TEST(it_is_set_where_it_is_open) {
    engine_world w;
    session_outcome s, o, p;
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    create(&w, &(weft_session_order){0}, &s);
    CHECK_INT(set(&w, s.id, "early", &o), 0); /* it is open nowhere */
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(stage.asked, 0);
    run(&w, NULL, s.id, "a", &a);
    CHECK_STR(stage.sessions[0].settings, "{\"mode\":\"early\"}");
    CHECK_INT(set(&w, s.id, "live", &o), 0);
    CHECK_STR(stage.requests[0].what, "mode live");
    engine_settle(&w);
    CHECK_INT(o.times, 0); /* not before the agent has taken it */
    answer(0, 0, "{}", NULL);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(o.r, 0);
    CHECK_STR(weft__session_find(w.engine, s.id)->settings, "{\"mode\":\"live\"}");
    CHECK_STR(weft__session_find(w.engine, s.id)->facts[WEFT_SESSION_MODE], "\"live\"");
    CHECK_INT(set(&w, s.id, "never", &p), 0);
    answer(1, -EREMOTEIO, NULL, "No such mode");
    CHECK(engine_wait(&w, &p.times, 1));
    CHECK_INT(p.r, -EREMOTEIO);
    CHECK_STR(p.why, "No such mode");
    CHECK_STR(weft__session_find(w.engine, s.id)->settings, "{\"mode\":\"live\"}");
    complete(&w, "a", a.id);
    run(&w, NULL, s.id, "b", &b); /* in the same place */
    CHECK_INT(stage.begun, 1);
    complete(&w, "b", b.id);
    finish(&w);
}

/* A new process is told again. One that goes while it is being told leaves the setting for the next. */
TEST(it_is_set_again_in_another_process) {
    engine_world w;
    session_outcome o;
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    CHECK_INT(set(&w, a.session, "plan", &o), 0);
    end_turn(turn_of("a"), "agentError");
    end_process(&stage.processes[0], 1);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(o.r, 0);
    ENGINE_UNTIL(&w, state_of(&w, a.id) == WEFT_TASK_FAILED);
    run(&w, NULL, a.session, "b", &b);
    CHECK_STR(turn_of("b")->settings, "{\"mode\":\"plan\"}");
    complete(&w, "b", b.id);
    finish(&w);
}

TEST(what_is_set_while_it_opens_waits) {
    engine_world w;
    session_outcome o, p;
    task_outcome a;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    stage.set_r = -EAGAIN;
    CHECK_INT(set(&w, a.session, "plan", &o), 0);
    stage.set_r = 0;
    engine_settle(&w);
    CHECK_INT(o.times + stage.asked, 0);
    stage.sessions[0].host->on_session(stage.sessions[0].ctx, &(weft_session_info){.agent_session = "own"});
    CHECK_STR(stage.requests[0].what, "mode plan");
    answer(0, 0, "{}", NULL);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(o.r, 0);
    stage.set_r = -EAGAIN;
    CHECK_INT(set(&w, a.session, "ask", &p), 0);
    complete(&w, "a", a.id); /* it was not opened after all */
    CHECK(engine_wait(&w, &p.times, 1));
    CHECK_INT(p.r, 0);
    CHECK_STR(weft__session_find(w.engine, a.session)->settings, "{\"mode\":\"ask\"}");
    CHECK(stage.sessions[0].closed); /* and has a new place the next time */
    finish(&w);
}

TEST(what_the_agent_says_holds_is_kept) {
    engine_world w;
    task_outcome a;
    session_outcome o;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    weft_driver_session *s = turn_of("a");
    tell_state(s, "modes", "{\"currentModeId\":\"x\",\"availableModes\":[{\"id\":\"x\"},{\"id\":\"y\"}]}");
    tell_state(s, "commands", "[1]");
    tell_state(s, "commands", "[2]");
    tell_state(s, "unknown", "[2]");
    complete(&w, "a", a.id);
    tell_state(s, "commands", "[3]"); /* outside of a turn */
    const weft_session *known = weft__session_find(w.engine, a.session);
    ENGINE_UNTIL(&w, known->facts[WEFT_SESSION_COMMANDS] && strcmp(known->facts[WEFT_SESSION_COMMANDS], "[3]") == 0);
    CHECK_STR(known->facts[WEFT_SESSION_MODE], "\"x\"");
    world_forget(&w);
    tell_state(s, "commands", "[3]"); /* no news */
    engine_settle(&w);
    CHECK_STR(w.heard, "");
    stage.set_r = -ENOTCONN; /* it is not open, and modes are known */
    CHECK_INT(set(&w, a.session, "z", &o), -EINVAL);
    CHECK_INT(set(&w, a.session, "y", &o), 0);
    CHECK(engine_wait(&w, &o.times, 1));
    finish(&w);
}

/* The last of each is stored, however often it is said while storing fails. */
TEST(facts_are_stored_when_that_works_again) {
    engine_world w;
    task_outcome a;
    char text[32];
    begin(&w, (weft_engine_limits){.again_ms = 1});
    run(&w, NULL, NULL, "a", &a);
    play_store_fails = -ENOSPC;
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "[%d]", i);
        tell_state(turn_of("a"), "commands", text);
        engine_settle(&w);
    }
    play_store_fails = 0;
    const weft_session *known = weft__session_find(w.engine, a.session);
    ENGINE_UNTIL(&w, known->facts[WEFT_SESSION_COMMANDS] && strcmp(known->facts[WEFT_SESSION_COMMANDS], "[49]") == 0);
    char *large = malloc(70000);
    memset(large, ' ', 70000);
    large[0] = '[';
    large[65535] = ']';
    large[65536] = '\0';
    tell_state(turn_of("a"), "options", large);
    ENGINE_UNTIL(&w, known->facts[WEFT_SESSION_OPTIONS] != NULL);
    large[65535] = ' ';
    large[65536] = ']';
    large[65537] = '\0';
    tell_state(turn_of("a"), "models", large); /* one byte too many */
    engine_settle(&w);
    CHECK(!known->facts[WEFT_SESSION_MODELS]);
    free(large);
    complete(&w, "a", a.id);
    finish(&w);
}

TEST(it_is_opened_without_a_task) {
    engine_world w;
    session_outcome s, o = {0};
    task_outcome a = {0};
    begin(&w, (weft_engine_limits){0});
    create(&w, &(weft_session_order){0}, &s);
    CHECK_INT(weft__session_open(w.engine, s.id, session_done, &o), 0);
    CHECK_INT(weft__session_open(w.engine, s.id, session_done, &o), -EBUSY);
    CHECK_INT(stage.sessions[0].opens, 1);
    /* A task waits until it is open, and is then in the same place. */
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "a", .session = s.id}, &a), 0);
    CHECK_INT(a.state, WEFT_TASK_QUEUED);
    stage.sessions[0].host->on_session(stage.sessions[0].ctx, &(weft_session_info){.agent_session = "own"});
    tell_state(&stage.sessions[0], "commands", "[]");
    end_turn(&stage.sessions[0], NULL);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(o.r, 0);
    CHECK(weft__session_find(w.engine, s.id)->facts[WEFT_SESSION_COMMANDS] != NULL);
    CHECK(weft__session_find(w.engine, s.id)->agent_session != NULL);
    ENGINE_UNTIL(&w, turn_of("a") != NULL);
    CHECK_INT(stage.begun, 1);
    CHECK_STR(weft__session_find(w.engine, s.id)->agent_session, "own");
    complete(&w, "a", a.id);
    finish(&w);
}

static const char *const go_on_errors[] = {"cannotResume", "sessionNotFound", "agentError"};

TEST(a_conversation_of_the_agents_own) {
    static const int results[] = {-EOPNOTSUPP, -ENOENT, -EREMOTEIO};
    engine_world w;
    session_outcome o = {0};
    task_outcome a;
    begin(&w, (weft_engine_limits){0});
    for (int i = 0; i < 3; i++) {
        o = (session_outcome){0};
        CHECK_INT(weft__session_create(w.engine, &(weft_session_order){.agent_session = "theirs"}, session_done, &o), 0);
        CHECK(stage.sessions[i].must_exist);
        CHECK_STR(stage.sessions[i].again, "theirs");
        end_turn(&stage.sessions[i], go_on_errors[i]);
        CHECK(engine_wait(&w, &o.times, 1));
        CHECK_INT(o.r, results[i]);
        CHECK_STR(o.why, go_on_errors[i]);
        CHECK(stage.sessions[i].closed);
    }
    CHECK(!weft__session_newest(w.engine)); /* nothing was stored */
    CHECK_INT(stage.processes[0].stops, 1); /* the last may have left it in any state */
    o = (session_outcome){0};
    CHECK_INT(weft__session_create(w.engine, &(weft_session_order){.agent_session = "theirs"}, session_done, &o), 0);
    stage.sessions[3].host->on_session(stage.sessions[3].ctx, &(weft_session_info){.agent_session = "theirs"});
    tell_state(&stage.sessions[3], "commands", "[]");
    end_turn(&stage.sessions[3], NULL);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(o.r, 0);
    CHECK_STR(weft__session_find(w.engine, o.id)->agent_session, "theirs");
    CHECK(weft__session_find(w.engine, o.id)->facts[WEFT_SESSION_COMMANDS] != NULL); /* whoever is answered finds it */
    CHECK_INT(weft__session_create(w.engine, &(weft_session_order){.agent_session = "theirs"}, session_done, &o), -EEXIST);
    run(&w, NULL, o.id, "a", &a);
    CHECK_INT(stage.begun, 4); /* where it was opened */
    complete(&w, "a", a.id);
    finish(&w);
}

TEST(what_an_agent_knows_of_is_listed) {
    engine_world w;
    session_outcome o = {0};
    begin(&w, (weft_engine_limits){0});
    CHECK_INT(weft__agent_sessions(w.engine, "nobody", NULL, NULL, listed, &o), -ENOENT);
    CHECK_INT(weft__agent_sessions(w.engine, NULL, "/etc", NULL, listed, &o), -EXDEV);
    CHECK_INT(weft__agent_sessions(w.engine, NULL, ".", "c", listed, &o), 0);
    CHECK_STR(stage.requests[0].what, "list /tmp");
    CHECK_INT(weft__agent_sessions(w.engine, NULL, NULL, NULL, listed, &o), 0);
    CHECK_INT(stage.opened, 1); /* one process for both */
    answer(0, 0, "{\"sessions\":[]}", NULL);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_STR(o.result, "{\"sessions\":[]}");
    CHECK_INT(stage.processes[0].stops, 0);
    answer(1, -EREMOTEIO, NULL, "no");
    CHECK(engine_wait(&w, &o.times, 2));
    CHECK(o.r == -EREMOTEIO && strcmp(o.why, "no") == 0);
    /* One that is not kept ends when it has answered. */
    CHECK_INT(weft__agent_sessions(w.engine, "brief", NULL, NULL, listed, &o), 0);
    answer(2, 0, "{}", NULL);
    CHECK_INT(stage.processes[1].stops, 1);
    end_process(&stage.processes[1], 0);
    CHECK(engine_wait(&w, &o.times, 3));
    /* One that dies first. */
    CHECK_INT(weft__agent_sessions(w.engine, "brief", NULL, NULL, listed, &o), 0);
    end_process(&stage.processes[2], 1);
    CHECK(engine_wait(&w, &o.times, 4));
    CHECK_INT(o.r, -EPIPE);
    CHECK_INT(weft__agent_sessions(w.engine, NULL, NULL, NULL, listed, &o), 0);
    finish(&w); /* and one that is never answered */
    CHECK_INT(o.times, 5);
    CHECK_INT(o.r, -ECANCELED);
}

TEST(so_much_is_asked_of_agents_at_a_time) {
    engine_world w;
    session_outcome o = {0};
    begin(&w, (weft_engine_limits){0});
    for (int i = 0; i < 8; i++)
        CHECK_INT(weft__agent_sessions(w.engine, NULL, NULL, NULL, listed, &o), 0);
    CHECK_INT(weft__agent_sessions(w.engine, NULL, NULL, NULL, listed, &o), -EUSERS);
    CHECK_INT(weft__session_create(w.engine, &(weft_session_order){.agent_session = "x"}, session_done, &o), -EUSERS);
    answer(0, 0, "{}", NULL);
    CHECK_INT(weft__agent_sessions(w.engine, NULL, NULL, NULL, listed, &o), 0);
    finish(&w);
    CHECK_INT(o.times, 9);
}

TEST(a_closed_session_gives_up_its_place) {
    engine_world w;
    session_outcome o = {0};
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    stage.sessions[0].host->on_session(stage.sessions[0].ctx, &(weft_session_info){.agent_session = "own"});
    complete(&w, "a", a.id);
    CHECK_INT(weft__session_close(w.engine, a.session, NULL, session_done, &o), 0);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK(stage.sessions[0].closed);
    CHECK_INT(stage.processes[0].stops, 0);
    CHECK_INT(weft__session_resume(w.engine, a.session, NULL, session_done, &o), 0);
    CHECK(engine_wait(&w, &o.times, 2));
    run(&w, NULL, a.session, "b", &b);
    CHECK_STR(turn_of("b")->again, "own");
    complete(&w, "b", b.id);
    finish(&w);
}

TEST(a_deleted_session_is_deleted_at_the_agent) {
    static const struct {
        int r;
        const char *error;
    } rows[] = {{0, NULL}, {-EREMOTEIO, "It is locked"}, {-EOPNOTSUPP, "it does not offer this"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        engine_world w;
        session_outcome o = {0};
        task_outcome a;
        begin(&w, (weft_engine_limits){0});
        run(&w, NULL, NULL, "a", &a);
        stage.sessions[0].host->on_session(stage.sessions[0].ctx, &(weft_session_info){.agent_session = "own"});
        complete(&w, "a", a.id);
        CHECK_INT(weft__session_remove(w.engine, a.session, NULL, session_done, &o), 0);
        ENGINE_UNTIL(&w, stage.asked == 1);
        CHECK_STR(stage.requests[0].what, "remove own");
        CHECK(stage.sessions[0].closed); /* before that */
        CHECK(weft__session_find(w.engine, a.session) != NULL);
        answer(0, rows[i].r, rows[i].r ? NULL : "{}", rows[i].error);
        CHECK(engine_wait(&w, &o.times, 1));
        CHECK_INT(o.r, 0); /* ours is gone in any case, and what is left is said */
        CHECK_STR(o.why, rows[i].error ? rows[i].error : "");
        CHECK(!weft__session_find(w.engine, a.session));
        finish(&w);
    }
}

/* ---- what agents ask of their client ---- */

static int passage_calls;
static char passage_heard[128];

static int read_file(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params) {
    passage_calls++;
    snprintf(passage_heard, sizeof passage_heard, "%s %s %s", call->session, call->task, weft_get_str(params, "path", ""));
    CHECK(ctx == &passage_calls);
    return weft_reply(req, WEFT_OBJ({"content", weft_str("text")}));
}

static const weft_passage passages[] = {{"fs/read_text_file", read_file}, {0}};

/* A request of an agent's comes through a peer: this one has nobody on its other side but the test. */
static int hand_on(weft_req *req, const weft_json *params, void *ctx) {
    weft_driver_session *session = ctx;
    return session->host->on_request(session->ctx, &passages[0], req, params);
}

static void ask_client(weft_driver_session *session, char *ret, size_t size) {
    static const char line[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fs/read_text_file\",\"params\":{\"path\":\"/x\"}}\n";
    const weft_method methods[] = {{.name = "fs/read_text_file", .handler = hand_on, .help = ""}, {0}};
    weft_service *service;
    weft_peer *peer;
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = methods, .ctx = session}, &service), 0);
    CHECK_INT(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer), 0);
    CHECK(weft_peer_feed(peer, line, sizeof line - 1, 0) >= 0);
    weft_bytes out = weft_peer_output(peer);
    snprintf(ret, size, "%.*s", (int) out.len, out.data);
    weft_peer_free(peer);
    weft_service_unref(service);
}

TEST(what_an_agent_asks_of_its_client_comes_to_one_place) {
    engine_world w;
    task_outcome a;
    char answered[512], expected[128];
    memset(&stage, 0, sizeof stage);
    passage_calls = 0;
    engine_open(&w, play_store());
    w.opts.drivers = drivers;
    w.opts.agents = &agents;
    w.opts.passages = passages;
    w.opts.passage_ctx = &passage_calls;
    CHECK_INT(world_start(&w), 0);
    run(&w, NULL, NULL, "a", &a);
    ask_client(turn_of("a"), answered, sizeof answered);
    CHECK(strstr(answered, "\"content\":\"text\"") != NULL);
    snprintf(expected, sizeof expected, "%s %s /x", a.session, a.id);
    CHECK_STR(&passage_heard[0], expected);
    weft_driver_session *session = turn_of("a");
    complete(&w, "a", a.id);
    ask_client(session, answered, sizeof answered); /* outside of a turn there is nobody to ask for */
    CHECK(strstr(answered, "-32601") != NULL);
    CHECK_INT(passage_calls, 1);
    finish(&w);
}

/* ---- what it cost ---- */

static void say_json(weft_driver_session *session, bool usage, const char *text) {
    weft_doc *doc;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    if (usage)
        session->host->on_usage(session->ctx, weft_doc_root(doc));
    else
        session->host->on_update(session->ctx, weft_doc_root(doc));
    weft_doc_free(doc);
}

/* The last of each counts; what was not said is not there, also after a start, and what is no number never was. */
TEST(what_a_turn_cost_is_kept_with_its_task) {
    static const char whole[] =
        "{\"tokens\":{\"totalTokens\":7},\"context\":{\"used\":5,\"size\":9},"
        "\"sessionCost\":{\"amount\":0.25,\"currency\":\"USD\"},\"cost\":{\"amount\":0.25,\"currency\":\"USD\"}}";
    engine_world w;
    task_outcome a, b, c;
    memset(&stage, 0, sizeof stage);
    engine_open(&w, &weft__sqlite);
    w.opts.drivers = drivers;
    w.opts.agents = &agents;
    CHECK_INT(world_start(&w), 0);
    run(&w, NULL, NULL, "a", &a);
    say_json(turn_of("a"), false, "{\"sessionUpdate\":\"usage_update\",\"used\":1,\"size\":9}");
    say_json(turn_of("a"), false,
             "{\"sessionUpdate\":\"usage_update\",\"used\":5,\"size\":9,\"cost\":{\"amount\":0.25,\"currency\":\"USD\"}}");
    say_json(turn_of("a"), false, "{\"sessionUpdate\":\"usage_update\",\"used\":\"x\",\"cost\":{\"amount\":\"y\"}}");
    say_json(turn_of("a"), true, "{\"totalTokens\":7}");
    complete(&w, "a", a.id);
    CHECK_STR(weft__task_find(w.engine, a.id)->usage, whole);
    run(&w, NULL, a.session, "b", &b);
    complete(&w, "b", b.id);
    CHECK(!weft__task_find(w.engine, b.id)->usage);
    run(&w, NULL, NULL, "c", &c);
    say_json(turn_of("c"), true, "{\"totalTokens\":1}");
    end_turn(turn_of("c"), "refused");
    ENGINE_UNTIL(&w, state_of(&w, c.id) == WEFT_TASK_FAILED);
    CHECK_STR(weft__task_find(w.engine, c.id)->usage, "{\"tokens\":{\"totalTokens\":1}}");
    engine_restart(&w);
    CHECK_STR(weft__task_find(w.engine, a.id)->usage, whole);
    CHECK(!weft__task_find(w.engine, b.id)->usage);
    finish(&w);
}

/* clang-format off */
TEST_MAIN(
    CASE(what_a_turn_cost_is_kept_with_its_task)
    CASE(a_session_has_its_settings_and_servers) CASE(it_is_given_other_servers)
    CASE(it_is_set_where_it_is_open)
    CASE(it_is_set_again_in_another_process)
    CASE(what_is_set_while_it_opens_waits)
    CASE(what_the_agent_says_holds_is_kept)
    CASE(facts_are_stored_when_that_works_again)
    CASE(it_is_opened_without_a_task)
    CASE(a_conversation_of_the_agents_own)
    CASE(what_an_agent_knows_of_is_listed)
    CASE(so_much_is_asked_of_agents_at_a_time)
    CASE(a_closed_session_gives_up_its_place)
    CASE(a_deleted_session_is_deleted_at_the_agent)
    CASE(what_an_agent_asks_of_its_client_comes_to_one_place)
    CASE(the_next_turn_of_a_session_is_in_its_process)
    CASE(another_session_uses_an_idle_process)
    CASE(a_turn_at_a_time_unless_it_is_shared)
    CASE(a_crash_fails_all_turns_in_it)
    CASE(who_has_no_turn_for_long_is_ended)
    CASE(so_many_are_kept)
    CASE(a_failed_turn_ends_its_process_and_waits_for_it)
    CASE(one_that_is_not_kept_ends_with_its_turn)
    CASE(a_process_is_kept_for_a_conversation) CASE(a_cancelled_turn_leaves_the_process)
    CASE(a_changed_agent_gets_a_new_process)
    CASE(one_that_is_about_to_go_takes_no_turn)
    CASE(the_stop_waits_for_those_without_a_turn)
    CASE(what_a_turn_cost_is_stored)
    CASE(it_is_paused_as_long_as_one_of_its_turns_is)
)
