/* Tasks: submitted, stored, run, ended, found again. */
#include "engine/world.h"

TEST(a_task_runs_and_completes) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__memory);
    CHECK_STR(w.heard, "hub.started ");
    world_forget(&w);
    CHECK_INT(submit(&w, "do it", &t), 0);
    CHECK_STR(t.id, "task-0000");
    CHECK_STR(t.session, "session-0000");
    CHECK_INT(t.state, WEFT_TASK_RUNNING);
    CHECK_STR(w.heard, "session.created task.queued task.started ");
    weft_run *run = play_of("task-0000");
    REQUIRE(run);
    CHECK_STR(run->prompt, "do it");
    CHECK_STR(run->agent, "one");
    run->host->on_process(run->ctx, 4711);
    play_say(run, "first\n");
    play_say(run, "second\n");
    play_end(run, true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    const weft_task *task = weft__task_find(w.engine, t.id);
    CHECK_TEXT(task->tail.data, task->tail.len, "first\nsecond\n");
    CHECK_INT(task->output_bytes, 13);
    CHECK_INT(task->exit_code, 0);
    CHECK_INT(task->pid, 0);
    CHECK(!task->error && task->completed_ms >= task->started_ms && task->started_ms >= task->created_ms);
    /* What came in one turn is one event. */
    CHECK_STR(w.heard, "session.created task.queued task.started task.process session.output task.completed ");
    engine_settle(&w);
    CHECK_INT(plays.live, 0);
    CHECK_INT(weft__task_counts(w.engine).of[WEFT_TASK_COMPLETED], 1);
    CHECK_INT(weft__task_counts(w.engine).of[WEFT_TASK_RUNNING], 0);
    engine_end(&w);
}

TEST(a_task_fails) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    play_end(play_of(t.id), false);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_FAILED);
    const weft_task *task = weft__task_find(w.engine, t.id);
    CHECK_STR(task->error, "it went wrong");
    CHECK_STR(task->reason, "exited");
    CHECK_INT(task->exit_code, 1);
    engine_end(&w);
}

TEST(what_cannot_be_submitted) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "", &t), -EINVAL);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){0}, &t), -EINVAL);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .session = "session-0009"}, &t), -ESRCH);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .metadata = "[]"}, &t), -EINVAL);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .metadata = "{"}, &t), -EINVAL);
    char *large = malloc((1 << 20) + 2);
    memset(large, 'x', (1 << 20) + 1);
    large[(1 << 20) + 1] = '\0';
    CHECK_INT(submit(&w, large, &t), -EMSGSIZE);
    large[1 << 20] = '\0';
    CHECK_INT(submit(&w, large, &t), 0);
    free(large);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .session = "session-0000", .unless_busy = true}, &t), -EBUSY);
    CHECK_INT(weft__task_counts(w.engine).of[WEFT_TASK_RUNNING], 1);
    engine_end(&w);
}

TEST(a_running_task_is_cancelled) {
    engine_world w;
    task_outcome t, first = {0}, second = {0};
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    play_say(run, "so far");
    CHECK_INT(weft__task_cancel(w.engine, t.id, "ann", task_done, &first), 0);
    CHECK_INT(weft__task_cancel(w.engine, t.id, "bob", task_done, &second), 0);
    CHECK(run->cancels >= 1 && !run->forced);
    engine_settle(&w);
    CHECK_INT(first.times, 0);
    CHECK(weft__task_find(w.engine, t.id)->stopping);
    /* That it says it went well does not matter. */
    play_end(run, true);
    CHECK(engine_wait(&w, &second.times, 1));
    CHECK_INT(first.r, 0);
    CHECK_INT(second.r, 0);
    CHECK_INT(first.state, WEFT_TASK_CANCELLED);
    const weft_task *task = weft__task_find(w.engine, t.id);
    CHECK_TEXT(task->tail.data, task->tail.len, "so far");
    CHECK(!task->stopping);
    CHECK_INT(weft__task_cancel(w.engine, t.id, "ann", task_done, &first), -EALREADY);
    CHECK_INT(weft__task_cancel(w.engine, "task-9999", "ann", task_done, &first), -ENOENT);
    engine_end(&w);
}

TEST(a_queued_task_is_cancelled) {
    engine_world w;
    task_outcome t, queued, gone = {0}, again = {0};
    engine_open(&w, &weft__memory);
    w.opts.limits.max_running = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "runs", &t), 0);
    CHECK_INT(submit(&w, "waits", &queued), 0);
    CHECK_INT(queued.state, WEFT_TASK_QUEUED);
    CHECK_INT(weft__task_cancel(w.engine, queued.id, "ann", task_done, &gone), 0);
    CHECK_INT(weft__task_cancel(w.engine, queued.id, "ann", task_done, &again), 0);
    CHECK(engine_wait(&w, &again.times, 1));
    CHECK_INT(gone.r, 0);
    CHECK_INT(again.r, 0);
    CHECK_INT(gone.state, WEFT_TASK_CANCELLED);
    play_end(play_of(t.id), true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    engine_settle(&w);
    CHECK_INT(plays.count, 1);
    engine_end(&w);
}

/* The start of a queued task is on its way to the store when it is cancelled. */
TEST(a_task_is_cancelled_while_it_starts) {
    engine_world w;
    task_outcome t, queued, gone = {0};
    engine_open(&w, &weft__memory);
    w.opts.limits.max_running = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "runs", &t), 0);
    CHECK_INT(submit(&w, "waits", &queued), 0);
    play_end(play_of(t.id), true);
    bool asked = false;
    for (int i = 0; i < 50 && !asked; i++) {
        weft_loop_once(w.loop, false);
        /* Completed, and the next not yet running: its start is under way. */
        if (state_of(&w, t.id) == WEFT_TASK_COMPLETED && state_of(&w, queued.id) == WEFT_TASK_QUEUED)
            asked = weft__task_cancel(w.engine, queued.id, NULL, task_done, &gone) == 0;
    }
    CHECK(asked);
    CHECK(engine_wait(&w, &gone.times, 1));
    CHECK_INT(gone.r, 0);
    CHECK_INT(state_of(&w, queued.id), WEFT_TASK_CANCELLED);
    CHECK_INT(plays.count, 1);
    engine_end(&w);
}

TEST(a_task_that_ends_by_itself_was_not_cancelled) {
    engine_world w;
    task_outcome t, late = {0};
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    play_end(play_of(t.id), true);
    CHECK_INT(weft__task_cancel(w.engine, t.id, "ann", task_done, &late), 0);
    CHECK(engine_wait(&w, &late.times, 1));
    CHECK_INT(late.r, -EALREADY);
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_COMPLETED);
    CHECK_INT(play_of(t.id)->cancels, 0);
    engine_end(&w);
}

TEST(a_task_takes_too_long) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .timeout_ms = 1, .retries = 5}, &t), 0);
    weft_run *run = play_of(t.id);
    ENGINE_UNTIL(&w, run->cancels == 1);
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_RUNNING);
    play_end(run, true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_FAILED);
    CHECK_STR(weft__task_find(w.engine, t.id)->reason, "timedOut");
    CHECK_STR(weft__task_find(w.engine, t.id)->error, "It took longer than 1 ms.");
    engine_end(&w);
}

TEST(what_cannot_be_started_fails) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__memory);
    plays.refuse = -ENOENT;
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .agent = "two"}, &t), 0);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_FAILED);
    CHECK_STR(weft__task_find(w.engine, t.id)->reason, "spawnFailed");
    CHECK_STR(weft__task_find(w.engine, t.id)->error, "two is not installed. Install it with: two.");
    plays.refuse = 0;
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .agent = "odd"}, &t), 0);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_FAILED);
    CHECK_STR(weft__task_find(w.engine, t.id)->reason, "spawnFailed");
    engine_end(&w);
}

TEST(a_failed_task_is_tried_again) {
    engine_world w;
    task_outcome t;
    engine_open(&w, &weft__memory);
    w.opts.limits.retry_ms = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .retries = 2}, &t), 0);
    for (int attempt = 1; attempt <= 3; attempt++) {
        ENGINE_UNTIL(&w, plays.count == (size_t) attempt);
        CHECK_INT(weft__task_find(w.engine, t.id)->attempt, attempt);
        play_say(play_of(t.id), "try");
        play_end(play_of(t.id), false);
        ENGINE_UNTIL(&w, state_of(&w, t.id) != WEFT_TASK_RUNNING);
        CHECK_INT(state_of(&w, t.id), attempt < 3 ? WEFT_TASK_QUEUED : WEFT_TASK_FAILED);
    }
    /* Only what the last one said is its output. */
    CHECK_INT(weft__task_find(w.engine, t.id)->output_bytes, 3);
    CHECK(strstr(w.heard, "task.retrying "));
    engine_end(&w);
}

TEST(a_key_is_one_task) {
    engine_world w;
    task_outcome t[3] = {{0}};
    weft_task_spec spec = {.prompt = "x", .key = "the key"};
    engine_begin(&w, &weft__memory);
    for (int i = 0; i < 2; i++) /* the second while the first is being stored */
        CHECK_INT(weft__task_submit(w.engine, &spec, task_done, &t[i]), 0);
    CHECK(engine_wait(&w, &t[1].times, 1));
    CHECK_INT(weft__task_submit(w.engine, &spec, task_done, &t[2]), 0);
    CHECK_INT(t[2].times, 0); /* never inside the call */
    CHECK(engine_wait(&w, &t[2].times, 1));
    for (int i = 0; i < 3; i++) {
        CHECK_INT(t[i].r, 0);
        CHECK_STR(t[i].id, "task-0000");
    }
    CHECK_INT(plays.count, 1);
    engine_end(&w);
}

TEST(personas_and_agents) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .agent = "writer"}, &t), 0);
    CHECK_STR(play_of(t.id)->persona, "writer");
    CHECK_STR(play_of(t.id)->agent, "one");
    CHECK_STR(weft__task_find(w.engine, t.id)->runs_on, "one");
    CHECK_STR(weft__task_find(w.engine, t.id)->agent, "writer");
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .agent = "two"}, &t), 0);
    CHECK_STR(play_of(t.id)->persona, "");
    CHECK_STR(play_of(t.id)->agent, "two");
    int chosen = 0;
    CHECK_INT(weft__agent_choose(w.engine, "nobody", NULL, NULL), -ENOENT);
    CHECK_STR(weft__agent_default(w.engine)->name, "one");
    CHECK_INT(weft__agent_choose(w.engine, "allow", world_ready, &w), 0);
    chosen = w.ready + 1;
    CHECK(engine_wait(&w, &w.ready, chosen));
    CHECK_STR(weft__agent_default(w.engine)->name, "allow");
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .agent = "writer"}, &t), -ENOENT); /* allow has no personas */
    CHECK_INT(weft__agent_choose(w.engine, NULL, NULL, NULL), 0);
    engine_settle(&w);
    CHECK_STR(weft__agent_default(w.engine)->name, "one");
    engine_end(&w);
}

TEST(a_session_goes_on) {
    engine_world w;
    task_outcome t, more;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .agent = "two"}, &t), 0);
    weft_run *run = play_of(t.id);
    run->host->on_session(run->ctx, "its own name");
    play_end(run, true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    const weft_session *session = weft__session_find(w.engine, t.session);
    REQUIRE(session);
    CHECK(!session->busy);
    CHECK_STR(session->agent_session, "its own name");
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .agent = "one", .session = t.session}, &more), -EINVAL);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .session = t.session}, &more), 0);
    CHECK_STR(more.session, t.session);
    CHECK_STR(play_of(more.id)->agent_session, "its own name");
    CHECK_STR(play_of(more.id)->agent, "two");
    CHECK(session->busy && session->tasks == 2);
    CHECK_STR(session->task, more.id);
    CHECK(weft__session_newest(w.engine) == session && !weft__session_older(w.engine, session));
    engine_end(&w);
}

/* Two submissions for one session in one turn, for callers that do not want to wait: the second finds it taken. */
TEST(a_session_has_one_task) {
    engine_world w;
    task_outcome t, a = {0};
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    play_end(play_of(t.id), true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    weft_task_spec spec = {.prompt = "x", .session = t.session, .unless_busy = true};
    CHECK_INT(weft__task_submit(w.engine, &spec, task_done, &a), 0);
    CHECK_INT(weft__task_submit(w.engine, &spec, task_done, &a), -EBUSY);
    CHECK(engine_wait(&w, &a.times, 1));
    engine_end(&w);
}

typedef struct mortal_ear {
    weft_event_listener listener;
    int heard;
    engine_world *world;
    struct mortal_ear *other;
} mortal_ear;

static void hear_once(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    mortal_ear *mortal = WEFT_CONTAINER(listener, mortal_ear, listener);
    (void) event;
    (void) data;
    mortal->heard++;
    weft__engine_unlisten(&mortal->listener);
    if (mortal->other)
        weft__engine_listen(mortal->world->engine, &mortal->other->listener);
    mortal->other = NULL;
}

TEST(ears_come_and_go_while_they_are_told) {
    engine_world w;
    mortal_ear late = {.listener = {.on_event = hear_once}}, first = {.listener = {.on_event = hear_once}, .other = &late};
    engine_begin(&w, &weft__memory);
    late.world = first.world = &w;
    weft__engine_listen(w.engine, &first.listener);
    CHECK_INT(weft__engine_append(w.engine, "files", "file.create", WEFT_OBJ({"path", weft_str("a")}), NULL, NULL), 0);
    engine_settle(&w);
    CHECK_INT(first.heard, 1);
    CHECK_INT(late.heard, 0);
    CHECK_INT(weft__engine_append(w.engine, "files", "file.create", WEFT_OBJ({"path", weft_str("b")}), NULL, NULL), 0);
    engine_settle(&w);
    CHECK_INT(first.heard, 1);
    CHECK_INT(late.heard, 1);
    engine_end(&w);
}

TEST(stop_waits_for_what_runs) {
    engine_world w;
    task_outcome t, u;
    engine_open(&w, &weft__memory);
    w.opts.limits.max_running = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "runs", &t), 0);
    CHECK_INT(submit(&w, "waits", &u), 0);
    weft__engine_stop(w.engine, false, world_stopped, &w);
    CHECK_INT(submit(&w, "late", &u), -ESHUTDOWN);
    engine_settle(&w);
    CHECK_INT(w.stopped, 0);
    CHECK_INT(play_of(t.id)->cancels, 0);
    play_end(play_of(t.id), true);
    CHECK(engine_wait(&w, &w.stopped, 1));
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_COMPLETED);
    CHECK_INT(state_of(&w, "task-0001"), WEFT_TASK_QUEUED);
    CHECK(strstr(w.heard, "task.completed hub.stopped "));
    engine_end(&w);
}

TEST(stop_ends_what_does_not_end) {
    engine_world w;
    task_outcome t;
    engine_open(&w, &weft__memory);
    w.opts.limits.drain_ms = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "runs", &t), 0);
    weft__engine_stop(w.engine, false, world_stopped, &w);
    weft_run *run = play_of(t.id);
    ENGINE_UNTIL(&w, run->cancels == 1);
    CHECK_INT(run->forced, 0);
    weft__engine_stop(w.engine, true, world_stopped, &w);
    CHECK_INT(run->forced, 1);
    play_end(run, false);
    CHECK(engine_wait(&w, &w.stopped, 1));
    engine_settle(&w);
    CHECK_INT(w.stopped, 1);
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_FAILED);
    CHECK_STR(weft__task_find(w.engine, t.id)->reason, "daemonStopped");
    engine_end(&w);
}

/* It ends in the middle of everything: what waits is told so, what runs is freed. */
TEST(freed_in_the_middle) {
    engine_world w;
    task_outcome t, under_way = {0}, cancelled = {0};
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "runs", &t), 0);
    play_say(play_of(t.id), "half a");
    CHECK_INT(weft__task_cancel(w.engine, t.id, "ann", task_done, &cancelled), 0);
    CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "x"}, task_done, &under_way), 0);
    w.engine = weft__engine_free(w.engine);
    CHECK_INT(cancelled.r, -ECANCELED);
    CHECK_INT(under_way.r, -ECANCELED);
    CHECK(play_of(t.id)->freed);
    engine_end(&w);
}

TEST(a_few_are_remembered) {
    engine_world w;
    task_outcome t;
    engine_open(&w, &weft__memory);
    w.opts.limits.max_tasks = 3;
    w.opts.limits.max_sessions = 2;
    CHECK_INT(world_start(&w), 0);
    for (int i = 0; i < 6; i++) {
        CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .key = i ? NULL : "old"}, &t), 0);
        play_end(play_of(t.id), true);
        ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    }
    engine_settle(&w);
    int count = 0, sessions = 0;
    for (const weft_task *task = weft__task_newest(w.engine); task; task = weft__task_older(w.engine, task))
        count++;
    for (const weft_session *s = weft__session_newest(w.engine); s; s = weft__session_older(w.engine, s))
        sessions++;
    CHECK_INT(count, 3);
    CHECK_INT(sessions, 2);
    CHECK(!weft__task_find(w.engine, "task-0002") && weft__task_find(w.engine, "task-0003"));
    CHECK_INT(weft__task_counts(w.engine).of[WEFT_TASK_COMPLETED], 6);
    /* Its key is in the journal still. */
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .key = "old"}, &t), -EEXIST);
    CHECK_INT(plays.count, 6);
    engine_end(&w);
}

/* Another writer of the journal takes a number first: its task is known as it says, and ours is refused. */
TEST(another_writer_takes_the_number) {
    static const char theirs[] =
        "{\"taskId\":\"task-0000\",\"number\":0,\"prompt\":\"theirs\",\"agent\":null,\"runsOn\":\"one\","
        "\"priority\":0,\"sessionId\":\"session-0000\",\"metadata\":{},\"timeoutMs\":1000}";
    engine_world w;
    task_outcome t = {0};
    engine_begin(&w, &weft__memory);
    store_world other = w.store;
    other.opts.beside = w.store.store;
    REQUIRE(world_open(&other));
    weft_event event = {.stream = "hub", .type = "task.queued", .data = {theirs, sizeof theirs - 1}, .time_ms = 5};
    weft_append append = {.events = &event, .count = 1, .counter = "task", .number = 0};
    CHECK_INT(weft__store_append(other.store, &append, NULL, NULL), 0);
    CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "ours"}, task_done, &t), 0);
    ENGINE_UNTIL(&w, t.times == 1);
    CHECK_INT(t.r, -EAGAIN);
    const weft_task *task = weft__task_find(w.engine, "task-0000");
    REQUIRE(task);
    CHECK_STR(task->prompt, "theirs");
    CHECK(weft__session_find(w.engine, "session-0000") != NULL);
    CHECK_INT(submit(&w, "ours", &t), 0);
    CHECK_STR(t.id, "task-0001");
    CHECK_STR(weft__task_find(w.engine, "task-0001")->prompt, "ours");
    other.store = weft__store_close(other.store);
    engine_end(&w);
}

/* clang-format off */
TEST_MAIN(
    CASE(another_writer_takes_the_number) CASE(a_task_runs_and_completes)
    CASE(a_task_fails)
    CASE(what_cannot_be_submitted)
    CASE(a_running_task_is_cancelled)
    CASE(a_queued_task_is_cancelled)
    CASE(a_task_is_cancelled_while_it_starts)
    CASE(a_task_that_ends_by_itself_was_not_cancelled)
    CASE(a_task_takes_too_long)
    CASE(what_cannot_be_started_fails)
    CASE(a_failed_task_is_tried_again)
    CASE(a_key_is_one_task)
    CASE(personas_and_agents)
    CASE(a_session_goes_on)
    CASE(a_session_has_one_task)
    CASE(ears_come_and_go_while_they_are_told)
    CASE(stop_waits_for_what_runs)
    CASE(stop_ends_what_does_not_end)
    CASE(freed_in_the_middle)
    CASE(a_few_are_remembered)
)
