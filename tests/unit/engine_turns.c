/* Tasks of one session: one after the other, in their order, over retries, cancels and restarts. */
#include "engine/world.h"

static void queue_up(engine_world *w, const char *session, const char *prompt, int64_t priority, task_outcome *ret) {
    CHECK_INT(submit_spec(w, &(weft_task_spec){.prompt = prompt, .session = session, .priority = priority}, ret), 0);
}

static weft_run *run_of(engine_world *w, const char *task) {
    ENGINE_UNTIL(w, play_of(task) != NULL);
    return play_of(task);
}

static void end_well(engine_world *w, const char *task) {
    play_end(run_of(w, task), true);
    ENGINE_UNTIL(w, state_of(w, task) == WEFT_TASK_COMPLETED);
}

static void cancelled(void *ctx, int r, const weft_task *task) {
    (void) task;
    CHECK_INT(r, 0);
    ++*(int *) ctx;
}

TEST(they_run_one_after_the_other) {
    engine_world w;
    task_outcome a, b, c, other;
    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "a", &a), 0);
    queue_up(&w, a.session, "b", 0, &b);
    queue_up(&w, a.session, "c", 9, &c); /* a higher priority does not turn a conversation around */
    CHECK_INT(b.state, WEFT_TASK_QUEUED);
    const weft_session *session = weft__session_find(w.engine, a.session);
    CHECK_STR(session->turn, a.id);
    CHECK_STR(session->task, c.id);
    CHECK_INT(session->turns, 3);
    CHECK_INT(submit(&w, "other", &other), 0);
    CHECK_INT(other.state, WEFT_TASK_RUNNING); /* nor does it hold up other sessions */
    end_well(&w, a.id);
    run_of(&w, b.id);
    engine_settle(&w);
    CHECK(!play_of(c.id));
    CHECK_STR(weft__session_find(w.engine, a.session)->turn, b.id);
    end_well(&w, b.id);
    end_well(&w, c.id);
    session = weft__session_find(w.engine, a.session);
    CHECK(!session->busy && !session->turn && session->turns == 0 && session->tasks == 3);
    end_well(&w, other.id);
    engine_end(&w);
}

/* All of them are on their way to the store at once. */
TEST(so_they_do_when_they_come_at_once) {
    engine_world w;
    task_outcome first, many[5] = {{0}};
    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "first", &first), 0);
    end_well(&w, first.id);
    for (int i = 0; i < 5; i++)
        CHECK_INT(
            weft__task_submit(w.engine, &(weft_task_spec){.prompt = "x", .session = first.session}, task_done, &many[i]), 0);
    for (int i = 0; i < 5; i++)
        CHECK(engine_wait(&w, &many[i].times, 1));
    for (int i = 0; i < 5; i++) {
        run_of(&w, many[i].id);
        engine_settle(&w);
        CHECK_INT(plays.live, 1);
        end_well(&w, many[i].id);
    }
    engine_end(&w);
}

TEST(one_that_is_tried_again_keeps_its_place) {
    engine_world w;
    task_outcome a, b;
    engine_open(&w, play_store());
    w.opts.limits.retry_ms = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "a", .retries = 1}, &a), 0);
    queue_up(&w, a.session, "b", 0, &b);
    play_end(run_of(&w, a.id), false);
    ENGINE_UNTIL(&w, play_of(a.id)->ended == false);
    CHECK(!play_of(b.id));
    end_well(&w, a.id);
    end_well(&w, b.id);
    engine_end(&w);
}

TEST(one_of_them_can_be_cancelled) {
    engine_world w;
    task_outcome a, b, c;
    int done = 0;
    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "a", &a), 0);
    queue_up(&w, a.session, "b", 0, &b);
    queue_up(&w, a.session, "c", 0, &c);
    CHECK_INT(weft__task_cancel(w.engine, b.id, "ann", cancelled, &done), 0);
    CHECK(engine_wait(&w, &done, 1));
    CHECK_INT(play_of(a.id)->cancels, 0);
    end_well(&w, a.id);
    end_well(&w, c.id);
    CHECK(!play_of(b.id));
    engine_end(&w);
}

TEST(a_failed_one_does_not_hold_up_the_next) {
    engine_world w;
    task_outcome a, b;
    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "a", &a), 0);
    queue_up(&w, a.session, "b", 0, &b);
    play_end(run_of(&w, a.id), false);
    end_well(&w, b.id);
    CHECK_INT(state_of(&w, a.id), WEFT_TASK_FAILED);
    engine_end(&w);
}

TEST(so_many_wait_in_one_session) {
    engine_world w;
    task_outcome a, more;
    engine_open(&w, play_store());
    w.opts.limits.max_turns = 3;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "a", &a), 0);
    for (int i = 0; i < 2; i++)
        queue_up(&w, a.session, "b", 0, &more);
    CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "c", .session = a.session}, NULL, NULL), -EDQUOT);
    CHECK_INT(
        weft__task_submit(w.engine, &(weft_task_spec){.prompt = "c", .session = a.session, .unless_busy = true}, NULL, NULL),
        -EBUSY);
    CHECK_INT(submit(&w, "elsewhere", &more), 0);
    engine_end(&w);
}

/* The one that ran is failed, the others run in their order. With requeue it is the first again. */
static void over_a_restart(bool requeue) {
    engine_world w;
    task_outcome a, b, c;
    engine_open(&w, &weft__sqlite);
    w.opts.requeue = requeue;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "a", &a), 0);
    queue_up(&w, a.session, "b", 0, &b);
    queue_up(&w, a.session, "c", 5, &c);
    engine_restart(&w);
    if (requeue) {
        run_of(&w, a.id);
        CHECK(!play_of(b.id));
        end_well(&w, a.id);
    } else
        CHECK_INT(state_of(&w, a.id), WEFT_TASK_FAILED);
    run_of(&w, b.id);
    engine_settle(&w);
    CHECK(!play_of(c.id));
    end_well(&w, b.id);
    end_well(&w, c.id);
    engine_end(&w);
}

TEST(they_wait_over_a_restart) {
    over_a_restart(false);
    over_a_restart(true);
}

/* Storing one of them fails: it was never there. */
TEST(one_that_cannot_be_stored_leaves_no_gap) {
    engine_world w;
    task_outcome a, b, c = {0};
    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "a", &a), 0);
    play_store_fails = -ENOSPC;
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "lost", .session = a.session}, &c), -ENOSPC);
    play_store_fails = 0;
    CHECK_INT(weft__session_find(w.engine, a.session)->turns, 1);
    queue_up(&w, a.session, "b", 0, &b);
    end_well(&w, a.id);
    end_well(&w, b.id);
    engine_end(&w);
}

/* clang-format off */
TEST_MAIN(
    CASE(they_run_one_after_the_other)
    CASE(so_they_do_when_they_come_at_once)
    CASE(one_that_is_tried_again_keeps_its_place)
    CASE(one_of_them_can_be_cancelled)
    CASE(a_failed_one_does_not_hold_up_the_next)
    CASE(so_many_wait_in_one_session)
    CASE(they_wait_over_a_restart)
    CASE(one_that_cannot_be_stored_leaves_no_gap)
)
