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
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .session = "session-0000"}, &t), -EBUSY);
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

/* clang-format off */
TEST_MAIN(
    CASE(a_task_runs_and_completes)
    CASE(a_task_fails)
    CASE(what_cannot_be_submitted)
    CASE(a_running_task_is_cancelled)
)
