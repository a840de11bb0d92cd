/* Who runs when: slots, priorities, limits at their borders, with everything in flight at once. */
#include "engine/world.h"

#define MANY 100

TEST(slots_and_places_are_exact) {
    engine_world w;
    static task_outcome t[MANY];
    int refused = 0, running = 0, queued = 0;
    engine_open(&w, &weft__memory);
    w.opts.limits.max_running = 3;
    w.opts.limits.max_queue = 10;
    CHECK_INT(world_start(&w), 0);
    memset(t, 0, sizeof t);
    /* All in one turn: nothing is stored yet when the last comes. */
    for (int i = 0; i < MANY; i++) {
        int r = weft__task_submit(w.engine, &(weft_task_spec){.prompt = "x"}, task_done, &t[i]);
        CHECK(r == 0 || r == -ENOBUFS);
        refused += r == -ENOBUFS;
    }
    CHECK_INT(refused, MANY - 13);
    CHECK(engine_wait(&w, &t[12].times, 1));
    for (int i = 0; i < 13; i++) {
        running += t[i].state == WEFT_TASK_RUNNING;
        queued += t[i].state == WEFT_TASK_QUEUED;
    }
    CHECK_INT(running, 3);
    CHECK_INT(queued, 10);
    CHECK_INT(plays.count, 3);
    CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "x"}, task_done, &t[20]), -ENOBUFS);
    play_end(play_of("task-0001"), true);
    ENGINE_UNTIL(&w, plays.count == 4);
    CHECK_STR(plays.runs[3]->task, "task-0003");
    engine_settle(&w);
    CHECK_INT(plays.count, 4);
    /* One place is free again. */
    CHECK_INT(submit(&w, "x", &t[20]), 0);
    CHECK_STR(t[20].id, "task-0013");
    CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "x"}, task_done, &t[21]), -ENOBUFS);
    engine_end(&w);
}

static void run_out(engine_world *w, size_t count) {
    while (plays.count < count) {
        size_t was = plays.count;
        play_end(plays.runs[was - 1], true);
        ENGINE_UNTIL(w, plays.count > was);
    }
}

TEST(higher_priority_first_then_in_order) {
    engine_world w;
    task_outcome t;
    static const int64_t priorities[] = {0, 0, 5, -1, 5, 9};
    static const char *const order[] = {"task-0006", "task-0003", "task-0005", "task-0001", "task-0002", "task-0004"};
    engine_open(&w, &weft__memory);
    w.opts.limits.max_running = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "first", &t), 0);
    for (size_t i = 0; i < 6; i++)
        CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .priority = priorities[i]}, &t), 0);
    for (size_t i = 0; i < 6; i++)
        CHECK_STR(weft__task_waiting(w.engine, i)->id, order[i]);
    CHECK(!weft__task_waiting(w.engine, 6));
    run_out(&w, 7);
    for (size_t i = 0; i < 6; i++)
        CHECK_STR(plays.runs[i + 1]->task, order[i]);
    engine_end(&w);
}

TEST(an_agent_has_its_own_limit) {
    engine_world w;
    task_outcome t[4] = {{0}};
    engine_begin(&w, &weft__memory);
    for (int i = 0; i < 3; i++)
        CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "x", .agent = "two"}, task_done, &t[i]), 0);
    CHECK(engine_wait(&w, &t[2].times, 1));
    CHECK_INT(t[0].state, WEFT_TASK_RUNNING);
    CHECK_INT(t[1].state, WEFT_TASK_QUEUED);
    /* Those that wait for it do not hold up another's. */
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .agent = "one"}, &t[3]), 0);
    CHECK_INT(t[3].state, WEFT_TASK_RUNNING);
    play_end(play_of("task-0000"), true);
    ENGINE_UNTIL(&w, plays.count == 3);
    CHECK_STR(plays.runs[2]->task, "task-0001");
    engine_settle(&w);
    CHECK_INT(plays.count, 3);
    engine_end(&w);
}

TEST(a_queue_that_stands_still) {
    engine_world w;
    task_outcome t;
    engine_open(&w, &weft__memory);
    w.opts.limits.max_running = SIZE_MAX;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "x", &t), 0);
    CHECK_INT(t.state, WEFT_TASK_QUEUED);
    engine_settle(&w);
    CHECK_INT(plays.count, 0);
    weft_engine_limits limits = {.max_running = 2};
    weft__engine_set(w.engine, &world_all, &limits);
    CHECK_INT(weft__engine_limits(w.engine)->max_running, 2);
    ENGINE_UNTIL(&w, plays.count == 1);
    engine_end(&w);
}

/* A slot becomes free while a task that has to wait is being stored: it starts when its event comes, and once. */
TEST(a_slot_for_one_that_is_being_stored) {
    engine_world w;
    task_outcome t[2] = {{0}};
    engine_open(&w, &weft__memory);
    w.opts.limits.max_running = SIZE_MAX;
    CHECK_INT(world_start(&w), 0);
    for (int i = 0; i < 2; i++)
        CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "x"}, task_done, &t[i]), 0);
    weft__engine_set(w.engine, &world_all, &(weft_engine_limits){.max_running = 4});
    ENGINE_UNTIL(&w, plays.count == 2);
    engine_settle(&w);
    CHECK_INT(plays.count, 2);
    const char *first = strstr(w.heard, "task.started ");
    CHECK(first && (first = strstr(first + 1, "task.started ")));
    CHECK(!first || !strstr(first + 1, "task.started "));
    engine_end(&w);
}

TEST(a_group_has_one_task) {
    engine_world w;
    task_outcome t = {0}, u = {0};
    weft_task_spec alone = {.prompt = "x", .group = "one"}, other = {.prompt = "x"};
    engine_begin(&w, &weft__memory);
    CHECK_INT(weft__task_submit(w.engine, &alone, task_done, &t), 0);
    CHECK_INT(weft__task_submit(w.engine, &alone, task_done, &u), -EBUSY);
    CHECK(engine_wait(&w, &t.times, 1));
    CHECK_INT(weft__task_submit(w.engine, &alone, task_done, &u), -EBUSY);
    CHECK_INT(submit_spec(&w, &other, &u), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .group = "two"}, &u), 0);
    play_end(play_of(t.id), true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    CHECK_INT(submit_spec(&w, &alone, &u), 0);
    engine_end(&w);
}

/* The same with the queue standing still: those that wait count as well. */
TEST(a_group_has_one_task_in_the_queue) {
    engine_world w;
    task_outcome t = {0}, u = {0};
    weft_task_spec alone = {.prompt = "x", .group = "one"};
    engine_open(&w, &weft__memory);
    w.opts.limits.max_running = SIZE_MAX;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(weft__task_submit(w.engine, &alone, task_done, &t), 0);
    CHECK_INT(weft__task_submit(w.engine, &alone, task_done, &u), -EBUSY);
    CHECK(engine_wait(&w, &t.times, 1));
    CHECK_INT(weft__task_submit(w.engine, &alone, task_done, &u), -EBUSY);
    CHECK_INT(weft__task_cancel(w.engine, t.id, NULL, task_done, &u), 0);
    CHECK(engine_wait(&w, &u.times, 1));
    CHECK_INT(submit_spec(&w, &alone, &u), 0);
    engine_end(&w);
}

/* clang-format off */
TEST_MAIN(
    CASE(slots_and_places_are_exact)
    CASE(higher_priority_first_then_in_order)
    CASE(an_agent_has_its_own_limit)
    CASE(a_queue_that_stands_still)
    CASE(a_slot_for_one_that_is_being_stored)
    CASE(a_group_has_one_task)
    CASE(a_group_has_one_task_in_the_queue)
)
