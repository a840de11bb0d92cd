/* Plans that run: the order of their steps, what a step is told, what fails with what, limits, and a daemon that dies. */
#include "plans.h"
#include "engine/world.h"

#define STEP(id, needs) "{\"id\":\"" id "\",\"type\":\"testing\",\"description\":\"do " id "\",\"dependencies\":[" needs "]}"
#define DIAMOND                                                                                                             \
    "{\"user_request\":\"a diamond\",\"tasks\":[" STEP("top", "") "," STEP("left", "\"top\"") "," STEP(                     \
        "right", "\"top\"") "," STEP("end", "\"left\",\"right\"") "]}"

typedef struct plan_outcome {
    int times, r;
    weft_plan_state state;
    char id[WEFT_PLAN_ID];
} plan_outcome;

static weft_plans *plans;
static int plans_ready, plans_ready_r;

static void on_plans_ready(void *ctx, int r) {
    (void) ctx;
    plans_ready++;
    plans_ready_r = r;
}

static void open_plans(engine_world *w) {
    plans_ready = 0;
    REQUIRE(weft__plans_new(&(weft_plans_opts){.engine = w->engine}, on_plans_ready, NULL, &plans) == 0);
    CHECK(engine_wait(w, &plans_ready, 1));
    CHECK_INT(plans_ready_r, 0);
}

static void begin(engine_world *w, const weft_store_kind *kind) {
    engine_begin(w, kind);
    open_plans(w);
}

static void end(engine_world *w) {
    plans = weft__plans_free(plans);
    engine_end(w);
}

static void crash_and_restart(engine_world *w) {
    plans = weft__plans_free(plans);
    engine_restart(w);
    open_plans(w);
}

static void plan_done(void *ctx, int r, const weft_planned *planned) {
    plan_outcome *outcome = ctx;
    outcome->times++;
    outcome->r = r;
    if (!planned)
        return;
    outcome->state = planned->state;
    snprintf(outcome->id, sizeof outcome->id, "%s", planned->id);
}

static weft_plan *read_plan(const char *text) {
    char why[WEFT_PLAN_WHY];
    weft_doc *doc = NULL;
    weft_plan *plan = NULL;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    CHECK_INT(weft__plan_read(weft_doc_root(doc), NULL, NULL, &plan, why), 0);
    weft_doc_free(doc);
    return plan;
}

static void create(engine_world *w, const char *text, plan_outcome *ret) {
    *ret = (plan_outcome){0};
    weft_plan *plan = read_plan(text);
    CHECK_INT(weft__plans_create(plans, plan, "ann", plan_done, ret), 0);
    CHECK(engine_wait(w, &ret->times, 1));
    CHECK_INT(ret->r, 0);
}

static int run(engine_world *w, const char *id, int64_t time_limit_s) {
    plan_outcome outcome = {0};
    int r = weft__plans_run(plans, id, time_limit_s, "ann", plan_done, &outcome);
    return r < 0 ? r : engine_wait(w, &outcome.times, 1) ? outcome.r : -ETIMEDOUT;
}

static void start(engine_world *w, const char *text, char id[WEFT_PLAN_ID]) {
    plan_outcome outcome;
    create(w, text, &outcome);
    memcpy(id, outcome.id, WEFT_PLAN_ID);
    CHECK_INT(run(w, id, 0), 0);
}

/* How far its steps are, as a letter for each: "cRw.": completed, running, waiting, ... */
static const char *states(const char *id) {
    static char text[WEFT_PLAN_STEPS + 1];
    const weft_planned *is = weft__plans_find(plans, id);
    if (!is)
        return "(none)";
    for (size_t i = 0; i < is->plan->count; i++)
        text[i] = "wqrcfxs"[is->steps[i].state];
    text[is->plan->count] = '\0';
    return text;
}

static bool states_are(const char *id, const char *want) {
    return strcmp(states(id), want) == 0;
}

#define STATES_UNTIL(w, id, want)                                                                                           \
    do {                                                                                                                    \
        ENGINE_UNTIL(w, states_are(id, want));                                                                              \
        if (!states_are(id, want))                                                                                          \
            fprintf(stderr, "  is %s, not %s\n", states(id), want);                                                         \
    } while (0)

static weft_plan_state state_of_plan(const char *id) {
    const weft_planned *is = weft__plans_find(plans, id);
    return is ? is->state : WEFT_PLAN_STATES;
}

static const weft_planned_step *step_of(const char *id, const char *step) {
    const weft_planned *is = weft__plans_find(plans, id);
    for (size_t i = 0; is && i < is->plan->count; i++)
        if (strcmp(is->plan->steps[i].id, step) == 0)
            return &is->steps[i];
    return NULL;
}

static weft_run *play_step(const char *id, const char *step) {
    return play_of(step_of(id, step)->task);
}

static void finish(engine_world *w, const char *id, const char *step, const char *says, bool ok) {
    ENGINE_UNTIL(w, play_step(id, step) != NULL);
    if (says)
        play_say(play_step(id, step), says);
    play_end(play_step(id, step), ok);
}

/* ---- order ---- */

TEST(a_diamond) {
    engine_world w;
    char id[WEFT_PLAN_ID];
    begin(&w, &weft__memory);
    start(&w, DIAMOND, id);
    CHECK_TEXT(id, strlen(id), "plan_00000001");
    STATES_UNTIL(&w, id, "rwww");
    engine_settle(&w);
    CHECK_INT(plays.count, 1);
    finish(&w, id, "top", "the top is done", true);
    /* Both at once. */
    STATES_UNTIL(&w, id, "crrw");
    const weft_task *left = weft__task_find(w.engine, step_of(id, "left")->task);
    CHECK_STR(left->prompt,
              "do left\n\nThe tasks that this one depends on are done. They answered:\n\n### top\n\nthe top is done");
    CHECK(strstr(left->metadata, "\"planId\":\"plan_00000001\",\"planTask\":\"left\",\"method\":\"execute_task\"") != NULL);
    finish(&w, id, "right", "R", true);
    STATES_UNTIL(&w, id, "crcw");
    finish(&w, id, "left", NULL, true);
    STATES_UNTIL(&w, id, "cccr");
    CHECK(strstr(weft__task_find(w.engine, step_of(id, "end")->task)->prompt,
                 "### left\n\n(It said nothing.)\n\n### right\n\nR") != NULL);
    finish(&w, id, "end", "E", true);
    STATES_UNTIL(&w, id, "cccc");
    ENGINE_UNTIL(&w, state_of_plan(id) == WEFT_PLAN_COMPLETED);
    const weft_planned *is = weft__plans_find(plans, id);
    CHECK(is->started_ms && is->ended_ms >= is->started_ms && !is->stopping);
    CHECK(is->steps[3].started_ms && is->steps[3].ended_ms);
    CHECK_STR(is->by, "ann");
    CHECK(strstr(w.heard, "plan.created ") && strstr(w.heard, "plan.started ") && strstr(w.heard, "plan.finished "));
    CHECK_INT(run(&w, id, 0), -EALREADY);
    end(&w);
}

TEST(the_higher_priority_is_first_and_the_queue_is_not_filled) {
    engine_world w;
    char id[WEFT_PLAN_ID];
    engine_open(&w, &weft__memory);
    w.opts.limits.max_running = 1;
    CHECK_INT(world_start(&w), 0);
    open_plans(&w);
    start(&w,
          "{\"tasks\":[{\"id\":\"a\",\"type\":\"t\",\"prompt\":\"a\"},{\"id\":\"b\",\"type\":\"t\",\"prompt\":\"b\","
          "\"priority\":1},"
          "{\"id\":\"c\",\"type\":\"t\",\"prompt\":\"c\",\"priority\":9,\"dependencies\":[\"b\"]}]}",
          id);
    STATES_UNTIL(&w, id, "wrw");
    engine_settle(&w);
    CHECK(weft__task_waiting(w.engine, 0) == NULL);
    finish(&w, id, "b", NULL, true);
    STATES_UNTIL(&w, id, "wcr");
    finish(&w, id, "c", NULL, true);
    STATES_UNTIL(&w, id, "rcc");
    finish(&w, id, "a", NULL, true);
    ENGINE_UNTIL(&w, state_of_plan(id) == WEFT_PLAN_COMPLETED);
    end(&w);
}

TEST(no_more_at_a_time_than_may_run) {
    engine_world w;
    char id[WEFT_PLAN_ID];
    engine_open(&w, &weft__memory);
    w.opts.limits.max_running = 2;
    CHECK_INT(world_start(&w), 0);
    open_plans(&w);
    start(&w, "{\"tasks\":[" STEP("a", "") "," STEP("b", "") "," STEP("c", "") "]}", id);
    STATES_UNTIL(&w, id, "rrw");
    engine_settle(&w);
    CHECK_INT(plays.count, 2);
    finish(&w, id, "a", NULL, true);
    STATES_UNTIL(&w, id, "crr");
    end(&w);
}

/* ---- what fails ---- */

TEST(a_step_that_fails_takes_those_with_it_that_need_it) {
    engine_world w;
    char id[WEFT_PLAN_ID];
    begin(&w, &weft__memory);
    start(&w,
          "{\"tasks\":[" STEP("bad", "") "," STEP("after", "\"bad\"") "," STEP("later", "\"after\"") "," STEP(
              "other", "") "," STEP("last", "\"other\"") "]}",
          id);
    STATES_UNTIL(&w, id, "rwwrw");
    finish(&w, id, "bad", NULL, false);
    STATES_UNTIL(&w, id, "fssrw");
    CHECK_STR(step_of(id, "bad")->reason, "exited");
    CHECK_STR(step_of(id, "bad")->error, "it went wrong");
    CHECK_STR(step_of(id, "after")->reason, "dependencyFailed");
    CHECK_STR(step_of(id, "after")->error, "It needs bad, which failed.");
    CHECK_STR(step_of(id, "later")->error, "It needs after, which was skipped.");
    CHECK_INT(state_of_plan(id), WEFT_PLAN_RUNNING);
    finish(&w, id, "other", NULL, true);
    finish(&w, id, "last", NULL, true);
    ENGINE_UNTIL(&w, state_of_plan(id) == WEFT_PLAN_FAILED);
    CHECK_TEXT(states(id), 5, "fsscc");
    end(&w);
}

TEST(a_task_that_somebody_cancels_is_a_step_that_did_not_complete) {
    engine_world w;
    char id[WEFT_PLAN_ID];
    task_outcome gone = {0};
    begin(&w, &weft__memory);
    start(&w, "{\"tasks\":[" STEP("a", "") "," STEP("b", "\"a\"") "]}", id);
    STATES_UNTIL(&w, id, "rw");
    CHECK_INT(weft__task_cancel(w.engine, step_of(id, "a")->task, "bob", task_done, &gone), 0);
    play_end(play_step(id, "a"), false);
    ENGINE_UNTIL(&w, state_of_plan(id) == WEFT_PLAN_FAILED);
    CHECK_TEXT(states(id), 2, "xs");
    CHECK_STR(step_of(id, "b")->error, "It needs a, which was cancelled.");
    end(&w);
}

static void heard_end(weft_plan_waiter *waiter, const weft_planned *planned) {
    (void) waiter;
    CHECK(planned && planned->state == WEFT_PLAN_FAILED);
    plans_ready++;
}

TEST(the_time_limit) {
    engine_world w;
    plan_outcome made;
    weft_plan_waiter waiter = {.on_end = heard_end};
    begin(&w, &weft__memory);
    int64_t now = weft_loop_now(w.loop);
    weft_loop_set_now(w.loop, now);
    create(&w,
           "{\"constraints\":{\"time_limit_seconds\":100},\"tasks\":[" STEP("a", "") "," STEP("b", "\"a\"") "," STEP(
               "c", "") "]}",
           &made);
    CHECK_INT(run(&w, made.id, 10), 0); /* the narrower one */
    STATES_UNTIL(&w, made.id, "rwr");
    CHECK_INT(weft__plans_find(plans, made.id)->time_limit_ms, 10000);
    CHECK_INT(weft__plans_await(plans, made.id, &waiter), 0);
    finish(&w, made.id, "c", NULL, true);
    STATES_UNTIL(&w, made.id, "rwc");
    weft_loop_set_now(w.loop, now += 5000); /* the limit is counted from a wall clock, which goes on */
    engine_settle(&w);
    CHECK_TEXT(states(made.id), 3, "rwc");
    weft_loop_set_now(w.loop, now += 5000);
    /* The task is told to end, and nothing new begins. */
    STATES_UNTIL(&w, made.id, "rsc");
    CHECK_STR(weft__plans_find(plans, made.id)->stopping, "timeLimit");
    ENGINE_UNTIL(&w, play_step(made.id, "a")->cancels == 1);
    plans_ready = 0;
    play_end(play_step(made.id, "a"), false);
    CHECK(engine_wait(&w, &plans_ready, 1));
    CHECK_TEXT(states(made.id), 3, "xsc");
    CHECK_STR(step_of(made.id, "a")->reason, "timeLimit");
    CHECK_STR(step_of(made.id, "b")->error, "The plan reached its time limit.");
    CHECK_INT(weft__plans_await(plans, made.id, &waiter), -EALREADY);
    end(&w);
}

TEST(a_plan_is_cancelled) {
    engine_world w;
    char id[WEFT_PLAN_ID];
    plan_outcome first = {0}, second = {0}, made;
    begin(&w, &weft__memory);
    start(&w, DIAMOND, id);
    STATES_UNTIL(&w, id, "rwww");
    CHECK_INT(weft__plans_cancel(plans, id, "bob", plan_done, &first), 0);
    CHECK_INT(weft__plans_cancel(plans, id, NULL, plan_done, &second), 0);
    ENGINE_UNTIL(&w, play_step(id, "top")->cancels == 1);
    CHECK_INT(first.times, 0);
    play_end(play_step(id, "top"), false);
    CHECK(engine_wait(&w, &first.times, 1) && engine_wait(&w, &second.times, 1));
    CHECK(first.r == 0 && first.state == WEFT_PLAN_CANCELLED);
    CHECK_TEXT(states(id), 4, "xsss");
    CHECK_INT(weft__plans_cancel(plans, id, NULL, plan_done, &second), -EALREADY);
    CHECK_INT(weft__plans_cancel(plans, "plan_000000ff", NULL, plan_done, &second), -ENOENT);
    /* One that never ran. */
    create(&w, DIAMOND, &made);
    first = (plan_outcome){0};
    CHECK_INT(weft__plans_cancel(plans, made.id, NULL, plan_done, &first), 0);
    CHECK(engine_wait(&w, &first.times, 1));
    CHECK_INT(first.state, WEFT_PLAN_CANCELLED);
    CHECK_INT(run(&w, made.id, 0), -EALREADY);
    end(&w);
}

/* A key that somebody has taken for something else: the step cannot be queued, and says so. */
TEST(a_step_that_cannot_be_queued) {
    engine_world w;
    plan_outcome made;
    task_outcome t;
    begin(&w, &weft__memory);
    create(&w, "{\"tasks\":[" STEP("a", "") "," STEP("b", "\"a\"") "]}", &made);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "mine", .key = "plan/plan_00000001/a"}, &t), 0);
    CHECK_INT(run(&w, made.id, 0), 0);
    ENGINE_UNTIL(&w, state_of_plan(made.id) == WEFT_PLAN_FAILED);
    CHECK_TEXT(states(made.id), 2, "fs");
    CHECK_STR(step_of(made.id, "a")->reason, "notQueued");
    end(&w);
}

/* ---- limits ---- */

TEST(answers_in_prompts_are_cut) {
    engine_world w;
    char id[WEFT_PLAN_ID];
    static char said[12001];
    for (size_t i = 0; i + 2 < sizeof said; i += 2)
        memcpy(said + i, "\xc3\xa9", 2);
    begin(&w, &weft__memory);
    start(&w, "{\"tasks\":[" STEP("a", "") "," STEP("b", "\"a\"") "]}", id);
    STATES_UNTIL(&w, id, "rw");
    play_say(play_step(id, "a"), "x");
    finish(&w, id, "a", said, true);
    STATES_UNTIL(&w, id, "cr");
    const char *prompt = weft__task_find(w.engine, step_of(id, "b")->task)->prompt;
    CHECK(strstr(prompt, "### a (the end of its answer)\n\n\xc3\xa9") != NULL);
    CHECK(strlen(prompt) < WEFT_PLAN_ANSWER + 200 && strlen(prompt) > WEFT_PLAN_ANSWER);
    end(&w);
}

TEST(so_many_run_and_so_many_are_remembered) {
    engine_world w;
    char id[WEFT_PLAN_ID];
    plan_outcome made;
    engine_open(&w, &weft__sqlite);
    w.opts.limits.max_running = SIZE_MAX;
    CHECK_INT(world_start(&w), 0);
    open_plans(&w);
    for (int i = 0; i < WEFT_PLANS_RUNNING; i++)
        start(&w, "{\"tasks\":[" STEP("a", "") "]}", id);
    create(&w, DIAMOND, &made);
    CHECK_INT(run(&w, made.id, 0), -EUSERS);
    for (int i = WEFT_PLANS_RUNNING + 1; i < WEFT_PLANS; i++)
        create(&w, DIAMOND, &made);
    CHECK(weft__plans_find(plans, "plan_00000011") != NULL);
    create(&w, DIAMOND, &made);
    /* The oldest that does not run has made room. */
    CHECK(weft__plans_find(plans, "plan_00000011") == NULL);
    CHECK(weft__plans_find(plans, "plan_00000001") != NULL);
    size_t n = 0;
    for (const weft_planned *is = weft__plans_newest(plans); is; is = weft__plans_older(plans, is))
        n++;
    CHECK_INT(n, WEFT_PLANS);
    crash_and_restart(&w);
    CHECK(weft__plans_find(plans, "plan_00000011") == NULL);
    CHECK(weft__plans_find(plans, "plan_00000001") != NULL);
    CHECK_STR(weft__plans_newest(plans)->id, "plan_000000c9");
    create(&w, DIAMOND, &made);
    CHECK_TEXT(made.id, strlen(made.id), "plan_000000ca");
    end(&w);
}

/* ---- a daemon that dies ---- */

TEST(it_goes_on_where_it_was) {
    engine_world w;
    char id[WEFT_PLAN_ID];
    engine_open(&w, &weft__sqlite);
    w.opts.requeue = true;
    CHECK_INT(world_start(&w), 0);
    open_plans(&w);
    start(&w, DIAMOND, id);
    STATES_UNTIL(&w, id, "rwww");
    finish(&w, id, "top", "first", true);
    STATES_UNTIL(&w, id, "crrw");
    finish(&w, id, "left", "second", true);
    STATES_UNTIL(&w, id, "ccrw");
    int64_t started = weft__plans_find(plans, id)->started_ms;
    crash_and_restart(&w);
    CHECK_INT(weft__plans_find(plans, id)->started_ms, started);
    CHECK_STR(weft__plans_find(plans, id)->plan->request, "a diamond");
    CHECK_STR(weft__plans_find(plans, id)->by, "ann");
    /* Only the one that ran runs again. */
    ENGINE_UNTIL(&w, plays.count == 1);
    STATES_UNTIL(&w, id, "ccrw");
    CHECK_STR(plays.runs[0]->task, step_of(id, "right")->task);
    finish(&w, id, "right", "third", true);
    STATES_UNTIL(&w, id, "cccr");
    CHECK(strstr(weft__task_find(w.engine, step_of(id, "end")->task)->prompt, "### left\n\nsecond\n\n### right\n\nthird") !=
          NULL);
    finish(&w, id, "end", NULL, true);
    ENGINE_UNTIL(&w, state_of_plan(id) == WEFT_PLAN_COMPLETED);
    CHECK_INT(weft__task_counts(w.engine).of[WEFT_TASK_COMPLETED], 4);
    crash_and_restart(&w);
    CHECK_INT(state_of_plan(id), WEFT_PLAN_COMPLETED);
    CHECK_TEXT(states(id), 4, "cccc");
    end(&w);
}

TEST(what_ran_has_failed_unless_it_is_queued_again) {
    engine_world w;
    char id[WEFT_PLAN_ID];
    begin(&w, &weft__sqlite);
    start(&w, DIAMOND, id);
    STATES_UNTIL(&w, id, "rwww");
    crash_and_restart(&w);
    ENGINE_UNTIL(&w, state_of_plan(id) == WEFT_PLAN_FAILED);
    CHECK_TEXT(states(id), 4, "fsss");
    CHECK_STR(step_of(id, "top")->reason, "daemonRestarted");
    end(&w);
}

/* The daemon dies at each append of a plan's life: before it is stored, and behind it. Whatever was lost, no step runs
 * twice that had ended, and the plan ends. */
static int appends_left, ends_of[8];

static void play_run(engine_world *w, const char *id) {
    for (size_t i = 0; i < plays.count; i++) {
        weft_run *is = plays.runs[i];
        if (is->ended)
            continue;
        const weft_task *task = weft__task_find(w->engine, is->task);
        (void) id;
        if (task && task->state == WEFT_TASK_RUNNING)
            play_end(is, true);
    }
}

static void count_ends(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    (void) listener;
    if (strcmp(event->type, "task.completed") == 0)
        ends_of[atoi(weft_get_str(data, "taskId", "task-0007") + 5) & 7]++;
    if (appends_left > 0)
        appends_left--;
}

static bool dies_after(int appends) {
    engine_world w;
    char id[WEFT_PLAN_ID] = "plan_00000001";
    plan_outcome made = {0}, ran = {0};
    weft_event_listener counter = {.on_event = count_ends};
    memset(ends_of, 0, sizeof ends_of);
    engine_open(&w, &weft__sqlite);
    w.opts.requeue = true;
    CHECK_INT(world_start(&w), 0);
    weft__engine_listen(w.engine, &counter);
    open_plans(&w);
    appends_left = appends;
    weft_plan *plan = read_plan(DIAMOND);
    CHECK_INT(weft__plans_create(plans, plan, NULL, plan_done, &made), 0);
    bool asked = false;
    while (appends_left > 0 && state_of_plan(id) != WEFT_PLAN_COMPLETED) {
        world_turn(&w);
        if (!asked && weft__plans_find(plans, id))
            asked = weft__plans_run(plans, id, 0, NULL, plan_done, &ran) == 0;
        play_run(&w, id);
    }
    bool died = appends_left == 0;
    weft__engine_unlisten(&counter);
    plans = weft__plans_free(plans);
    engine_restart(&w);
    weft__engine_listen(w.engine, &counter);
    open_plans(&w);
    if (!weft__plans_find(plans, id)) {
        plan = read_plan(DIAMOND);
        made = (plan_outcome){0};
        CHECK_INT(weft__plans_create(plans, plan, NULL, plan_done, &made), 0);
        CHECK(engine_wait(&w, &made.times, 1));
        memcpy(id, made.id, sizeof id);
    }
    if (state_of_plan(id) == WEFT_PLAN_CREATED)
        CHECK_INT(run(&w, id, 0), 0);
    for (int turns = 0; state_of_plan(id) == WEFT_PLAN_RUNNING && turns < 10000; turns++) {
        world_turn(&w);
        play_run(&w, id);
    }
    CHECK_INT(state_of_plan(id), WEFT_PLAN_COMPLETED);
    CHECK_TEXT(states(id), 4, "cccc");
    CHECK_INT(weft__task_counts(w.engine).of[WEFT_TASK_COMPLETED], 4);
    for (size_t i = 0; i < 8; i++)
        CHECK(ends_of[i] <= 1);
    weft__engine_unlisten(&counter);
    end(&w);
    return died;
}

TEST(it_dies_behind_every_event) {
    int n = 1;
    while (n < 200 && dies_after(n))
        n++;
    CHECK(n > 15 && n < 200);
}

TEST(the_time_goes_on_while_nobody_is_there) {
    engine_world w;
    plan_outcome made;
    engine_open(&w, &weft__sqlite);
    w.opts.requeue = true;
    w.wall = 1000000;
    CHECK_INT(world_start(&w), 0);
    open_plans(&w);
    create(&w, DIAMOND, &made);
    CHECK_INT(run(&w, made.id, 60), 0);
    STATES_UNTIL(&w, made.id, "rwww");
    w.wall += 61000;
    crash_and_restart(&w);
    STATES_UNTIL(&w, made.id, "rsss");
    ENGINE_UNTIL(&w, play_step(made.id, "top")->cancels == 1);
    play_end(play_step(made.id, "top"), false);
    ENGINE_UNTIL(&w, state_of_plan(made.id) == WEFT_PLAN_FAILED);
    end(&w);
}

TEST(it_goes_on_ending) {
    engine_world w;
    char id[WEFT_PLAN_ID];
    plan_outcome gone = {0};
    engine_open(&w, &weft__sqlite);
    w.opts.requeue = true;
    CHECK_INT(world_start(&w), 0);
    open_plans(&w);
    start(&w, DIAMOND, id);
    STATES_UNTIL(&w, id, "rwww");
    CHECK_INT(weft__plans_cancel(plans, id, "bob", plan_done, &gone), 0);
    STATES_UNTIL(&w, id, "rsss");
    crash_and_restart(&w);
    CHECK_INT(gone.r, -ECANCELED);
    CHECK_STR(weft__plans_find(plans, id)->stopping, "cancelled");
    ENGINE_UNTIL(&w, play_step(id, "top") && play_step(id, "top")->cancels == 1);
    play_end(play_step(id, "top"), false);
    ENGINE_UNTIL(&w, state_of_plan(id) == WEFT_PLAN_CANCELLED);
    end(&w);
}

/* As long as it may be, and longer when it is written with everything that it left out. */
TEST(a_long_plan_is_read_again) {
    engine_world w;
    plan_outcome made;
    size_t size = WEFT_PLAN_BYTES + 1, len;
    char *text = malloc(size);
    len = (size_t) snprintf(text, size, "{\"tasks\":[");
    for (int i = 0; i < WEFT_PLAN_STEPS; i++) {
        len += (size_t) snprintf(text + len, size - len, "%s{\"id\":\"t%d\",\"type\":\"t\",\"prompt\":\"", i ? "," : "", i);
        memset(text + len, 'x', 2570);
        len += 2570;
        len += (size_t) snprintf(text + len, size - len, "\"}");
    }
    len += (size_t) snprintf(text + len, size - len, "]}");
    CHECK(len < size && len > WEFT_PLAN_BYTES - 2 * WEFT_PLAN_STEPS * 20);
    begin(&w, &weft__sqlite);
    create(&w, text, &made);
    crash_and_restart(&w);
    CHECK_INT(state_of_plan(made.id), WEFT_PLAN_CREATED);
    free(text);
    end(&w);
}

/* ---- the past ---- */

/* What is over is remembered as long as the events that say so, as tasks are; what runs always is. */
TEST(what_is_trimmed_is_forgotten) {
    engine_world w;
    char running[WEFT_PLAN_ID];
    plan_outcome old, made;
    store_outcome done = {0};
    engine_open(&w, &weft__sqlite);
    w.opts.requeue = true;
    CHECK_INT(world_start(&w), 0);
    open_plans(&w);
    create(&w, DIAMOND, &old);
    start(&w, DIAMOND, running);
    STATES_UNTIL(&w, running, "rwww");
    engine_settle(&w);
    uint64_t head = weft__store_head(w.store.store);
    CHECK_INT(weft__store_trim(w.store.store, &(weft_trim){.upto = head}, world_trimmed, &done), 0);
    ENGINE_UNTIL(&w, done.times == 1);
    crash_and_restart(&w);
    CHECK(weft__plans_find(plans, old.id) == NULL);
    CHECK_STR(weft__plans_newest(plans)->id, running);
    CHECK(weft__plans_older(plans, weft__plans_newest(plans)) == NULL);
    CHECK_INT(run(&w, old.id, 0), -ENOENT);
    create(&w, DIAMOND, &made);
    CHECK_TEXT(made.id, strlen(made.id), "plan_00000003");
    /* Its documents went when the next plan was made. */
    done = (store_outcome){0};
    weft_query query = {.documents = true, .stream = "plan/plan_00000001"};
    CHECK_INT(weft__store_read(w.store.store, &query, world_read_done, &done), 0);
    ENGINE_UNTIL(&w, done.times == 1);
    CHECK_INT(done.count, 0);
    end(&w);
}

/* ---- a disk that fails ---- */

TEST(nothing_happens_that_is_not_stored) {
    engine_world w;
    plan_outcome made;
    begin(&w, play_store());
    create(&w, DIAMOND, &made);
    play_store_fails = -ENOSPC;
    CHECK_INT(run(&w, made.id, 0), -ENOSPC);
    CHECK_INT(state_of_plan(made.id), WEFT_PLAN_CREATED);
    play_store_fails = 0;
    CHECK_INT(run(&w, made.id, 0), 0);
    STATES_UNTIL(&w, made.id, "rwww");
    play_store_fails = -ENOSPC;
    play_end(play_step(made.id, "top"), true);
    engine_settle(&w);
    CHECK_TEXT(states(made.id), 4, "rwww");
    play_store_fails = 0;
    STATES_UNTIL(&w, made.id, "crrw");
    end(&w);
}

/* What is stored of a plan is damaged: it does not run again, and the others are there. */
TEST(documents_that_cannot_be_read) {
    engine_world w;
    char id[WEFT_PLAN_ID];
    plan_outcome other;
    store_outcome done = {0};
    begin(&w, &weft__sqlite);
    start(&w, DIAMOND, id);
    STATES_UNTIL(&w, id, "rwww");
    create(&w, DIAMOND, &other);
    static const char text[] = "{\"state\":\"running\",\"steps\":[]}";
    weft_document bad[] = {{"plan-state/plan_00000001", {text, sizeof text - 1}}};
    CHECK_INT(
        weft__store_append(w.store.store, &(weft_append){.documents = bad, .document_count = 1}, world_appended, &done), 0);
    ENGINE_UNTIL(&w, done.times == 1);
    crash_and_restart(&w);
    CHECK_INT(state_of_plan(id), WEFT_PLAN_FAILED);
    CHECK_INT(state_of_plan(other.id), WEFT_PLAN_CREATED);
    end(&w);
}

TEST_MAIN(CASE(a_diamond) CASE(the_higher_priority_is_first_and_the_queue_is_not_filled) CASE(no_more_at_a_time_than_may_run)
              CASE(a_step_that_fails_takes_those_with_it_that_need_it)
                  CASE(a_task_that_somebody_cancels_is_a_step_that_did_not_complete) CASE(the_time_limit)
                      CASE(a_plan_is_cancelled) CASE(a_step_that_cannot_be_queued) CASE(answers_in_prompts_are_cut)
                          CASE(so_many_run_and_so_many_are_remembered) CASE(it_goes_on_where_it_was)
                              CASE(what_ran_has_failed_unless_it_is_queued_again) CASE(it_dies_behind_every_event)
                                  CASE(the_time_goes_on_while_nobody_is_there) CASE(it_goes_on_ending)
                                      CASE(a_long_plan_is_read_again) CASE(what_is_trimmed_is_forgotten)
                                          CASE(nothing_happens_that_is_not_stored) CASE(documents_that_cannot_be_read))
