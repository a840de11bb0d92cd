/* Gated tasks: that gates decide, what an iteration is told, how it ends, and a daemon that dies in the middle. Agents and
 * gates are played by hand. */
#include "gated.h"
#include "engine/world.h"
#include "gated_private.h"

/* ---- gates ---- */

static struct played_gates {
    weft_gate_done *done;
    void *ctx;
    char gate[64], folder[256];
    int runs, cancels, refuse, missing;
} played;

static int check_gate(void *ctx, const char *gate, const char *folder) {
    (void) ctx;
    CHECK_STR(folder, "/tmp");
    if (played.missing)
        return played.missing;
    return strcmp(gate, "test") == 0 || strcmp(gate, "lint") == 0 ? 0 : -ESRCH;
}

static int run_gate(void *ctx, const char *gate, const char *folder, weft_gate_done *done, void *done_ctx,
                    uint64_t *ret_id) {
    (void) ctx;
    if (played.refuse)
        return played.refuse;
    CHECK(!played.done);
    played.done = done;
    played.ctx = done_ctx;
    played.runs++;
    snprintf(played.gate, sizeof played.gate, "%s", gate);
    snprintf(played.folder, sizeof played.folder, "%s", folder);
    *ret_id = (uint64_t) played.runs;
    return 0;
}

static void cancel_gate(void *ctx, uint64_t id) {
    (void) ctx;
    CHECK_INT(id, played.runs);
    played.cancels++;
}

static const weft_gate_runner runner = {.check = check_gate, .run = run_gate, .cancel = cancel_gate};

static void gate_ends(engine_world *w, const char *gate, int r, bool passed, const char *output) {
    ENGINE_UNTIL(w, played.done != NULL);
    REQUIRE(played.done != NULL);
    CHECK_TEXT(played.gate, strlen(played.gate), gate);
    weft_gate_done *done = played.done;
    played.done = NULL;
    done(played.ctx,
         &(weft_gate_report){
             .r = r, .passed = passed, .exit_code = passed ? 0 : 2, .ms = 7, .output = {output, strlen(output)}});
}

/* ---- the world ---- */

static weft_gated_tasks *tasks;
static int ready, ready_r;

static void on_ready(void *ctx, int r) {
    (void) ctx;
    ready++;
    ready_r = r;
}

static void open_gated(engine_world *w) {
    ready = 0;
    REQUIRE(weft__gated_new(&(weft_gated_opts){.engine = w->engine, .gates = runner}, on_ready, NULL, &tasks) == 0);
    CHECK(engine_wait(w, &ready, 1));
    CHECK_INT(ready_r, 0);
}

static void begin(engine_world *w, const weft_store_kind *kind) {
    played = (struct played_gates){0};
    engine_begin(w, kind);
    open_gated(w);
}

static void end(engine_world *w) {
    tasks = weft__gated_free(tasks);
    if (played.done) /* what ran is told to nobody */
        played.done(played.ctx, &(weft_gate_report){.r = -ECANCELED});
    played.done = NULL;
    engine_end(w);
}

static void crash_and_restart(engine_world *w) {
    tasks = weft__gated_free(tasks);
    if (played.done)
        played.done(played.ctx, &(weft_gate_report){.r = -ECANCELED});
    played.done = NULL;
    engine_restart(w);
    open_gated(w);
}

typedef struct gated_outcome {
    int times, r;
    weft_gated_state state;
    char id[WEFT_GATED_ID], reason[64];
} gated_outcome;

static void on_gated(void *ctx, int r, const weft_gated *gated) {
    gated_outcome *outcome = ctx;
    outcome->times++;
    outcome->r = r;
    if (!gated)
        return;
    outcome->state = gated->state;
    snprintf(outcome->id, sizeof outcome->id, "%s", gated->id);
    snprintf(outcome->reason, sizeof outcome->reason, "%s", gated->reason);
}

static const char *const both[] = {"lint", "test"};

static int send_spec(engine_world *w, const weft_gated_spec *spec, char id[WEFT_GATED_ID]) {
    gated_outcome outcome = {0};
    size_t gate;
    int r = weft__gated_send(tasks, spec, on_gated, &outcome, &gate);
    if (r < 0)
        return r;
    CHECK_INT(outcome.times, 0);
    CHECK(engine_wait(w, &outcome.times, 1));
    memcpy(id, outcome.id, WEFT_GATED_ID);
    return outcome.r;
}

static void send_gated(engine_world *w, size_t gates, int64_t most, char id[WEFT_GATED_ID]) {
    CHECK_INT(send_spec(w,
                        &(weft_gated_spec){.prompt = "make it right",
                                           .gates = gates == 1 ? both + 1 : both,
                                           .gate_count = gates,
                                           .max_iterations = most,
                                           .by = "ann"},
                        id),
              0);
}

static const weft_gated *of(const char *id) {
    return weft__gated_find(tasks, id);
}

/* The run of an iteration, when its agent works. */
static weft_run *turn(engine_world *w, const char *id, int64_t iteration) {
    ENGINE_UNTIL(w, of(id) && of(id)->iteration == iteration && *of(id)->turns[iteration - 1].task &&
                        play_of(of(id)->turns[iteration - 1].task) != NULL);
    return play_of(of(id)->turns[iteration - 1].task);
}

static const char *prompt_of(engine_world *w, const char *id, int64_t iteration) {
    const weft_task *task = weft__task_find(w->engine, of(id)->turns[iteration - 1].task);
    return task ? task->prompt : "";
}

static void play_stop(weft_run *run, const char *stop_reason) {
    weft_run_end over = {.ok = true, .exit_code = 0, .stop_reason = stop_reason};
    run->ended = true;
    run->host->on_end(run->ctx, &over);
}

/* ---- the way it should go ---- */

TEST(findings_reach_the_next_prompt) {
    engine_world w;
    char id[WEFT_GATED_ID];
    begin(&w, &weft__memory);
    send_gated(&w, 2, 0, id);
    CHECK_TEXT(id, strlen(id), "gated-0001");
    play_end(turn(&w, id, 1), true);
    CHECK_STR(prompt_of(&w, id, 1), "make it right");
    gate_ends(&w, "lint", 0, true, "fine");
    gate_ends(&w, "test", 0, false, "expected 4, got 5\n");
    weft_run *second = turn(&w, id, 2);
    CHECK(strstr(prompt_of(&w, id, 2), "make it right") != NULL);
    CHECK(strstr(prompt_of(&w, id, 2), "iteration 2 of 10") != NULL);
    CHECK(strstr(prompt_of(&w, id, 2), "### test: exit status 2") != NULL);
    CHECK(strstr(prompt_of(&w, id, 2), "expected 4, got 5") != NULL);
    CHECK(strstr(prompt_of(&w, id, 2), "lint") == NULL);
    CHECK_TEXT(played.folder, strlen(played.folder), "/tmp");
    play_end(second, true);
    gate_ends(&w, "lint", 0, true, "");
    gate_ends(&w, "test", 0, true, "");
    ENGINE_UNTIL(&w, of(id)->state == WEFT_GATED_STATE_COMPLETED);
    CHECK_INT(of(id)->iteration, 2);
    CHECK_INT(of(id)->turns[0].ran, 3);
    CHECK_INT(of(id)->turns[0].passed, 1);
    CHECK_INT(of(id)->turns[1].passed, 3);
    CHECK(strcmp(weft__task_find(w.engine, of(id)->turns[0].task)->session,
                 weft__task_find(w.engine, of(id)->turns[1].task)->session) == 0);
    CHECK(weft__gated_of_session(tasks, of(id)->session) == of(id));
    CHECK(strstr(w.heard, "gated.created ") && strstr(w.heard, "gated.finished "));
    end(&w);
}

TEST(the_iterations_are_used_up) {
    engine_world w;
    char id[WEFT_GATED_ID];
    gated_outcome outcome = {0};
    begin(&w, &weft__memory);
    send_gated(&w, 1, 2, id);
    CHECK_INT(weft__gated_await(tasks, id, on_gated, &outcome), 0);
    for (int64_t i = 1; i <= 2; i++) {
        play_end(turn(&w, id, i), true);
        gate_ends(&w, "test", 0, false, "no");
    }
    CHECK(engine_wait(&w, &outcome.times, 1));
    CHECK_INT(outcome.state, WEFT_GATED_STATE_FAILED);
    CHECK_TEXT(outcome.reason, strlen(outcome.reason), "gateFailed");
    CHECK_STR(of(id)->failed_gate, "test");
    CHECK_STR(of(id)->results[0].output, "no");
    CHECK_INT(weft__gated_await(tasks, id, on_gated, &outcome), -EALREADY);
    end(&w);
}

/* ---- other ends ---- */

static void see_end(const char *stop, bool ok, const char *reason) {
    engine_world w;
    char id[WEFT_GATED_ID];
    begin(&w, &weft__memory);
    send_gated(&w, 1, 0, id);
    weft_run *run = turn(&w, id, 1);
    if (stop)
        play_stop(run, stop);
    else
        play_end(run, ok);
    ENGINE_UNTIL(&w, of(id)->state == WEFT_GATED_STATE_FAILED);
    CHECK_STR(of(id)->reason, reason);
    CHECK_INT(played.runs, 0);
    end(&w);
}

TEST(an_agent_that_does_not_end_well) {
    test_row("its context is full");
    see_end("max_tokens", true, "contextOverflow");
    test_row("it refuses");
    see_end("refusal", true, "refused");
    test_row("it fails");
    see_end(NULL, false, "exited");
    test_row(NULL);
}

TEST(sent_again_with_its_key) {
    engine_world w;
    size_t gate;
    gated_outcome first = {0}, again = {0};
    begin(&w, &weft__sqlite);
    weft_gated_spec spec = {.prompt = "x", .gates = both, .gate_count = 2, .key = "ann: 1"}, other = spec;
    CHECK_INT(weft__gated_send(tasks, &spec, on_gated, &first, &gate), 0);
    test_row("before it is stored");
    CHECK(!weft__gated_of_key(tasks, "ann: 1"));
    CHECK_INT(weft__gated_send(tasks, &spec, on_gated, &again, &gate), 0);
    CHECK(engine_wait(&w, &first.times, 1) && engine_wait(&w, &again.times, 1));
    CHECK_INT(again.r, 0);
    CHECK_TEXT(again.id, strlen(again.id), first.id);
    test_row("when it is");
    other.max_iterations = WEFT_GATED_USUAL;
    CHECK_INT(weft__gated_send(tasks, &other, on_gated, &again, &gate), -EALREADY);
    CHECK(weft__gated_of_key(tasks, "ann: 1") == of(first.id));
    played.missing = -ENOENT;
    CHECK_INT(weft__gated_send(tasks, &spec, on_gated, &again, &gate), -EALREADY);
    played.missing = 0;
    test_row("something else");
    other = spec, other.gate_count = 1;
    CHECK_INT(weft__gated_send(tasks, &other, on_gated, &again, &gate), -ENOTUNIQ);
    other = spec, other.prompt = "y";
    CHECK_INT(weft__gated_send(tasks, &other, on_gated, &again, &gate), -ENOTUNIQ);
    test_row("after a restart");
    crash_and_restart(&w);
    CHECK_INT(weft__gated_send(tasks, &spec, on_gated, &again, &gate), -EALREADY);
    CHECK_STR(weft__gated_of_key(tasks, "ann: 1")->id, first.id);
    CHECK_INT(again.times, 1);
    test_row(NULL);
    end(&w);
}

TEST(a_gate_that_cannot_run) {
    engine_world w;
    char id[WEFT_GATED_ID];
    begin(&w, &weft__memory);
    send_gated(&w, 1, 0, id);
    play_end(turn(&w, id, 1), true);
    gate_ends(&w, "test", -EACCES, false, "");
    ENGINE_UNTIL(&w, of(id)->state == WEFT_GATED_STATE_FAILED);
    CHECK_STR(of(id)->reason, "gateUnavailable");
    send_gated(&w, 1, 0, id);
    played.refuse = -ENOENT;
    play_end(turn(&w, id, 1), true);
    ENGINE_UNTIL(&w, of(id)->state == WEFT_GATED_STATE_FAILED);
    CHECK_STR(of(id)->reason, "gateUnavailable");
    end(&w);
}

TEST(a_gate_that_takes_too_long) {
    engine_world w;
    char id[WEFT_GATED_ID];
    begin(&w, &weft__memory);
    send_gated(&w, 1, 0, id);
    play_end(turn(&w, id, 1), true);
    gate_ends(&w, "test", -ETIMEDOUT, false, "so far");
    turn(&w, id, 2);
    CHECK(strstr(prompt_of(&w, id, 2), "took too long") != NULL);
    end(&w);
}

/* ---- cancelling ---- */

static int cancel(engine_world *w, const char *id, gated_outcome *ret) {
    *ret = (gated_outcome){0};
    (void) w;
    return weft__gated_cancel(tasks, id, "bob", on_gated, ret);
}

TEST(cancelled_while_the_agent_works) {
    engine_world w;
    char id[WEFT_GATED_ID];
    gated_outcome outcome, again;
    begin(&w, &weft__memory);
    send_gated(&w, 1, 0, id);
    weft_run *run = turn(&w, id, 1);
    CHECK_INT(cancel(&w, id, &outcome), 0);
    CHECK_INT(cancel(&w, id, &again), 0);
    ENGINE_UNTIL(&w, run->cancels > 0);
    CHECK_INT(outcome.times, 0);
    play_end(run, false);
    CHECK(engine_wait(&w, &outcome.times, 1));
    CHECK(engine_wait(&w, &again.times, 1));
    CHECK_INT(outcome.state, WEFT_GATED_STATE_CANCELLED);
    CHECK_INT(cancel(&w, id, &outcome), -EALREADY);
    CHECK_INT(cancel(&w, "gated-0077", &outcome), -ENOENT);
    end(&w);
}

TEST(cancelled_while_a_gate_runs) {
    engine_world w;
    char id[WEFT_GATED_ID];
    gated_outcome outcome;
    begin(&w, &weft__memory);
    send_gated(&w, 2, 0, id);
    play_end(turn(&w, id, 1), true);
    ENGINE_UNTIL(&w, played.done != NULL);
    CHECK_INT(cancel(&w, id, &outcome), 0);
    ENGINE_UNTIL(&w, played.cancels > 0);
    gate_ends(&w, "lint", -ECANCELED, false, "");
    CHECK(engine_wait(&w, &outcome.times, 1));
    CHECK_INT(outcome.state, WEFT_GATED_STATE_CANCELLED);
    CHECK_INT(played.runs, 1);
    end(&w);
}

TEST(somebody_cancels_its_turn) {
    engine_world w;
    char id[WEFT_GATED_ID];
    task_outcome outcome = {0};
    begin(&w, &weft__memory);
    send_gated(&w, 1, 0, id);
    weft_run *run = turn(&w, id, 1);
    CHECK_INT(weft__task_cancel(w.engine, of(id)->turns[0].task, "bob", task_done, &outcome), 0);
    ENGINE_UNTIL(&w, run->cancels > 0);
    play_end(run, false);
    ENGINE_UNTIL(&w, of(id)->state == WEFT_GATED_STATE_CANCELLED);
    end(&w);
}

/* ---- permissions ---- */

TEST(a_permission_that_is_denied) {
    static const char question[] =
        "{\"kind\":\"permission\",\"title\":\"may I?\",\"options\":[{\"id\":\"y\",\"name\":\"Yes\",\"kind\":\"allow_once\"},"
        "{\"id\":\"n\",\"name\":\"No\",\"kind\":\"reject_once\"}],\"detail\":{}}";
    engine_world w;
    char id[WEFT_GATED_ID];
    begin(&w, &weft__memory);
    send_gated(&w, 1, 0, id);
    weft_run *run = turn(&w, id, 1);
    run->host->on_ask(run->ctx, "k", weft_raw(question, strlen(question)));
    ENGINE_UNTIL(&w, weft__question_first(w.engine, false) != NULL);
    CHECK_INT(weft__question_answer(w.engine, weft__question_first(w.engine, false)->id, "n", "bob", NULL, NULL, NULL), 0);
    ENGINE_UNTIL(&w, run->answers == 1);
    play_stop(run, "refusal");
    ENGINE_UNTIL(&w, of(id)->state == WEFT_GATED_STATE_FAILED);
    CHECK_STR(of(id)->reason, "permissionDenied");
    end(&w);
}

/* ---- a daemon that dies ---- */

static void finish_second(engine_world *w, const char *id) {
    play_end(turn(w, id, 2), true);
    gate_ends(w, "test", 0, true, "");
    ENGINE_UNTIL(w, of(id)->state == WEFT_GATED_STATE_COMPLETED);
}

TEST(it_dies_while_the_agent_works) {
    engine_world w;
    char id[WEFT_GATED_ID];
    played = (struct played_gates){0};
    engine_open(&w, &weft__sqlite);
    w.opts.requeue = true;
    CHECK_INT(world_start(&w), 0);
    open_gated(&w);
    send_gated(&w, 1, 0, id);
    play_end(turn(&w, id, 1), true);
    gate_ends(&w, "test", 0, false, "first finding");
    turn(&w, id, 2);
    crash_and_restart(&w);
    CHECK_INT(of(id)->iteration, 2);
    CHECK_STR(of(id)->results[0].output, "first finding");
    finish_second(&w, id);
    CHECK_INT(weft__task_counts(w.engine).of[WEFT_TASK_COMPLETED], 2);
    end(&w);
}

TEST(it_dies_and_tasks_fail_then) {
    engine_world w;
    char id[WEFT_GATED_ID];
    begin(&w, &weft__sqlite);
    send_gated(&w, 1, 0, id);
    turn(&w, id, 1);
    crash_and_restart(&w);
    ENGINE_UNTIL(&w, of(id)->state == WEFT_GATED_STATE_FAILED);
    CHECK(*of(id)->reason && strcmp(of(id)->reason, "gateFailed") != 0);
    end(&w);
}

TEST(it_dies_while_a_gate_runs) {
    engine_world w;
    char id[WEFT_GATED_ID];
    begin(&w, &weft__sqlite);
    send_gated(&w, 2, 0, id);
    play_end(turn(&w, id, 1), true);
    gate_ends(&w, "lint", 0, true, "");
    ENGINE_UNTIL(&w, played.done && strcmp(played.gate, "test") == 0);
    crash_and_restart(&w);
    gate_ends(&w, "test", 0, false, "again"); /* the one that had passed is not run again */
    play_end(turn(&w, id, 2), true);
    gate_ends(&w, "lint", 0, true, "");
    ENGINE_UNTIL(&w, played.done && strcmp(played.gate, "test") == 0);
    crash_and_restart(&w);
    gate_ends(&w, "test", 0, true, "");
    ENGINE_UNTIL(&w, of(id)->state == WEFT_GATED_STATE_COMPLETED);
    crash_and_restart(&w);
    CHECK_INT(of(id)->state, WEFT_GATED_STATE_COMPLETED);
    CHECK_INT(of(id)->iteration, 2);
    CHECK_STR(of(id)->prompt, "make it right");
    CHECK_STR(of(id)->by, "ann");
    send_gated(&w, 1, 0, id);
    CHECK_TEXT(id, strlen(id), "gated-0002");
    end(&w);
}

TEST(it_dies_while_it_is_being_cancelled) {
    engine_world w;
    char id[WEFT_GATED_ID];
    gated_outcome outcome;
    begin(&w, &weft__sqlite);
    send_gated(&w, 1, 0, id);
    play_end(turn(&w, id, 1), true);
    ENGINE_UNTIL(&w, played.done != NULL);
    CHECK_INT(cancel(&w, id, &outcome), 0);
    ENGINE_UNTIL(&w, of(id)->stopping);
    crash_and_restart(&w);
    CHECK_INT(outcome.r, -ECANCELED);
    ENGINE_UNTIL(&w, of(id)->state == WEFT_GATED_STATE_CANCELLED);
    CHECK_INT(played.runs, 1);
    end(&w);
}

/* ---- limits ---- */

TEST(what_is_refused) {
    static const char *const twice[] = {"test", "test"}, *const unknown[] = {"test", "rm"};
    const char *many[WEFT_GATED_GATES + 1];
    engine_world w;
    char id[WEFT_GATED_ID];
    size_t gate = 9;
    gated_outcome outcome = {0};
    begin(&w, &weft__memory);
    for (size_t i = 0; i <= WEFT_GATED_GATES; i++)
        many[i] = "test";
    weft_gated_spec spec = {.prompt = "x", .gates = both, .gate_count = 2};
    weft_gated_spec bad = spec;
    bad.prompt = "";
    CHECK_INT(weft__gated_send(tasks, &bad, on_gated, &outcome, &gate), -EINVAL);
    bad = spec, bad.gate_count = 0;
    CHECK_INT(weft__gated_send(tasks, &bad, on_gated, &outcome, &gate), -EINVAL);
    bad = spec, bad.gates = many, bad.gate_count = WEFT_GATED_GATES + 1;
    CHECK_INT(weft__gated_send(tasks, &bad, on_gated, &outcome, &gate), -EINVAL);
    bad = spec, bad.gates = twice;
    CHECK_INT(weft__gated_send(tasks, &bad, on_gated, &outcome, &gate), -EINVAL);
    bad = spec, bad.gates = unknown;
    CHECK_INT(weft__gated_send(tasks, &bad, on_gated, &outcome, &gate), -ESRCH);
    CHECK_INT(gate, 1);
    played.missing = -ENOENT;
    CHECK_INT(weft__gated_send(tasks, &spec, on_gated, &outcome, &gate), -ENOEXEC);
    CHECK_INT(gate, 0);
    played.missing = 0;
    bad = spec, bad.max_iterations = WEFT_GATED_ITERATIONS + 1;
    CHECK_INT(weft__gated_send(tasks, &bad, on_gated, &outcome, &gate), -EINVAL);
    bad = spec, bad.agent = "nobody";
    CHECK_INT(weft__gated_send(tasks, &bad, on_gated, &outcome, &gate), -ENOENT);
    char *huge = malloc(WEFT_GATED_PROMPT + 2);
    memset(huge, 'x', WEFT_GATED_PROMPT + 1);
    huge[WEFT_GATED_PROMPT + 1] = '\0';
    bad = spec, bad.prompt = huge;
    CHECK_INT(weft__gated_send(tasks, &bad, on_gated, &outcome, &gate), -EMSGSIZE);
    free(huge);
    for (int i = 0; i < WEFT_GATED_RUNNING; i++)
        CHECK_INT(send_spec(&w, &spec, id), 0);
    CHECK_INT(weft__gated_send(tasks, &spec, on_gated, &outcome, &gate), -EUSERS);
    CHECK_INT(outcome.times, 0);
    end(&w);
}

TEST(the_oldest_makes_room) {
    engine_world w;
    char id[WEFT_GATED_ID];
    begin(&w, &weft__memory);
    for (int i = 0; i < WEFT_GATED + 2; i++) {
        send_gated(&w, 1, 1, id);
        play_stop(turn(&w, id, 1), "refusal");
        ENGINE_UNTIL(&w, of(id)->state == WEFT_GATED_STATE_FAILED);
        if (i % 64 == 63) { /* the stage has room for some hundred */
            engine_settle(&w);
            play_reset();
        }
    }
    CHECK(!of("gated-0001") && !of("gated-0002") && of("gated-0003"));
    int count = 0;
    for (const weft_gated *is = weft__gated_newest(tasks); is; is = weft__gated_older(tasks, is))
        count++;
    CHECK_INT(count, WEFT_GATED);
    crash_and_restart(&w);
    end(&w);
}

static void on_removed(void *ctx, int r, const weft_session *session, const char *error) {
    (void) session, (void) error;
    CHECK_INT(r, 0);
    (*(int *) ctx)++;
}

TEST(its_session_is_deleted) {
    engine_world w;
    char id[WEFT_GATED_ID];
    int removed = 0;
    begin(&w, &weft__sqlite);
    send_gated(&w, 1, 1, id);
    play_stop(turn(&w, id, 1), "refusal");
    ENGINE_UNTIL(&w, of(id)->state == WEFT_GATED_STATE_FAILED);
    CHECK_INT(weft__session_remove(w.engine, of(id)->session, "ann", on_removed, &removed), 0);
    ENGINE_UNTIL(&w, removed == 1 && !of(id));
    crash_and_restart(&w);
    CHECK(!of(id));
    end(&w);
}

static const weft_agent narrow_agents[] = {{.name = "one", .driver = "play", .context_limit = 1500}};
static const weft_agents narrow = {narrow_agents, 1, "one"};

TEST(a_narrow_context) {
    engine_world w;
    char id[WEFT_GATED_ID], prompt[1600], output[8000];
    size_t gate;
    gated_outcome outcome = {0};
    played = (struct played_gates){0};
    engine_open(&w, &weft__memory);
    w.opts.agents = &narrow;
    CHECK_INT(world_start(&w), 0);
    open_gated(&w);
    memset(prompt, 'x', sizeof prompt - 1);
    prompt[sizeof prompt - 1] = '\0';
    weft_gated_spec spec = {.prompt = prompt, .gates = both + 1, .gate_count = 1};
    CHECK_INT(weft__gated_send(tasks, &spec, on_gated, &outcome, &gate), -EOVERFLOW);
    prompt[100] = '\0';
    memset(output, 'y', sizeof output - 1);
    output[sizeof output - 1] = '\0';
    CHECK_INT(send_spec(&w, &spec, id), 0);
    play_end(turn(&w, id, 1), true);
    gate_ends(&w, "test", 0, false, output);
    turn(&w, id, 2);
    CHECK(strlen(prompt_of(&w, id, 2)) <= 1500);
    CHECK(strstr(prompt_of(&w, id, 2), "yyyyyyyyyy") != NULL);
    prompt[100] = 'x', prompt[1000] = '\0'; /* no room for findings */
    CHECK_INT(send_spec(&w, &spec, id), 0);
    play_end(turn(&w, id, 1), true);
    gate_ends(&w, "test", 0, false, output);
    ENGINE_UNTIL(&w, of(id)->state == WEFT_GATED_STATE_FAILED);
    CHECK_STR(of(id)->reason, "contextOverflow");
    end(&w);
}

TEST(a_store_that_fails_for_a_while) {
    engine_world w;
    char id[WEFT_GATED_ID];
    const weft_store_kind *kind = play_store();
    played = (struct played_gates){0};
    engine_open(&w, kind);
    w.opts.limits.again_ms = 10;
    CHECK_INT(world_start(&w), 0);
    open_gated(&w);
    send_gated(&w, 1, 0, id);
    weft_run *run = turn(&w, id, 1);
    play_end(run, true);
    ENGINE_UNTIL(&w, played.done != NULL);
    play_store_fails = -ENOSPC;
    gate_ends(&w, "test", 0, true, "");
    for (int i = 0; i < 20; i++)
        world_turn(&w);
    CHECK_INT(of(id)->state, WEFT_GATED_STATE_RUNNING);
    play_store_fails = 0;
    ENGINE_UNTIL(&w, of(id)->state == WEFT_GATED_STATE_COMPLETED);
    end(&w);
}

TEST_MAIN(CASE(findings_reach_the_next_prompt) CASE(the_iterations_are_used_up) CASE(an_agent_that_does_not_end_well)
              CASE(sent_again_with_its_key) CASE(a_gate_that_cannot_run) CASE(a_gate_that_takes_too_long)
                  CASE(cancelled_while_the_agent_works) CASE(cancelled_while_a_gate_runs) CASE(somebody_cancels_its_turn)
                      CASE(a_permission_that_is_denied) CASE(it_dies_while_the_agent_works) CASE(it_dies_and_tasks_fail_then)
                          CASE(it_dies_while_a_gate_runs) CASE(it_dies_while_it_is_being_cancelled) CASE(what_is_refused)
                              CASE(the_oldest_makes_room) CASE(its_session_is_deleted) CASE(a_narrow_context)
                                  CASE(a_store_that_fails_for_a_while))
