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
    int prompts, stops, answers;
    bool closed;
};

static struct {
    weft_driver_process processes[MOST];
    weft_driver_session sessions[MOST];
    int opened, begun, live;
    int refuse; /* prompt() of a session that has had a turn fails so */
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
    process->sessions++;
    *ret = session;
    return 0;
}

static int living_prompt(weft_driver_session *session, const weft_turn_spec *spec) {
    if (stage.refuse && session->prompts)
        return stage.refuse;
    session->prompts++;
    snprintf(session->prompt, sizeof session->prompt, "%s", spec->prompt);
    return 0;
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

/* clang-format off */
TEST_MAIN(
    CASE(the_next_turn_of_a_session_is_in_its_process)
    CASE(another_session_uses_an_idle_process)
    CASE(a_turn_at_a_time_unless_it_is_shared)
    CASE(a_crash_fails_all_turns_in_it)
    CASE(who_has_no_turn_for_long_is_ended)
    CASE(so_many_are_kept)
    CASE(a_failed_turn_ends_its_process_and_waits_for_it)
    CASE(one_that_is_not_kept_ends_with_its_turn)
    CASE(a_cancelled_turn_leaves_the_process)
    CASE(a_changed_agent_gets_a_new_process)
    CASE(one_that_is_about_to_go_takes_no_turn)
    CASE(the_stop_waits_for_those_without_a_turn)
    CASE(what_a_turn_cost_is_stored)
    CASE(it_is_paused_as_long_as_one_of_its_turns_is)
)
