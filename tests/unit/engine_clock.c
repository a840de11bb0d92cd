/* The wall clock jumps, by days, in both directions (F9): what is timed goes on as if it had not, nothing is removed that
 * was written today, schedules neither fire in bursts nor fall silent. */
#include "automation.h"
#include "engine/world.h"
#include "engine_private.h"
#include "scheduler.h"

#define HOUR ((int64_t) 3600 * 1000)
#define DAY (24 * HOUR)
#define NOW ((int64_t) 20000 * DAY)

/* ---- what is believed ---- */

TEST(a_moment_ahead_is_not_believed) {
    weft_trusted t;
    weft__trusted_begin(&t, NOW, 5, 0);
    CHECK_INT(weft__trusted_now(&t, NOW, 5), NOW);
    CHECK(weft__trusted_look(&t, NOW + 400 * DAY, HOUR));
    CHECK(!weft__trusted_look(&t, NOW + 400 * DAY + HOUR, 2 * HOUR));
    CHECK_INT(weft__trusted_now(&t, NOW + 400 * DAY + HOUR, 2 * HOUR), NOW + 2 * HOUR - 5);
    CHECK(!weft__trusted_look(&t, NOW + 3 * HOUR, 3 * HOUR));
    CHECK_INT(weft__trusted_now(&t, NOW + 3 * HOUR, 3 * HOUR), NOW + 3 * HOUR);
    /* The doubt begins anew. */
    CHECK(weft__trusted_look(&t, NOW + 400 * DAY, 26 * HOUR));
    CHECK(weft__trusted_now(&t, NOW + 400 * DAY, 26 * HOUR) < NOW + 2 * DAY);
}

TEST(what_lasts_is_believed) {
    weft_trusted t;
    weft__trusted_begin(&t, NOW, 0, 0);
    for (int64_t h = 1; h <= 26; h++)
        weft__trusted_look(&t, NOW + 40 * DAY + h * HOUR, h * HOUR);
    CHECK_INT(weft__trusted_now(&t, NOW + 41 * DAY + 2 * HOUR, 26 * HOUR), NOW + 41 * DAY + 2 * HOUR);
    /* Of two jumps, the one that has lasted. */
    for (int64_t h = 27; h <= 50; h++)
        CHECK(weft__trusted_look(&t, NOW + 80 * DAY + h * HOUR, h * HOUR) == (h == 27));
    weft__trusted_look(&t, NOW + 400 * DAY + 51 * HOUR, 51 * HOUR);
    CHECK_INT(weft__trusted_now(&t, NOW + 400 * DAY + 51 * HOUR, 51 * HOUR), NOW + 80 * DAY + 51 * HOUR);
}

TEST(back_and_small_steps_are_believed) {
    weft_trusted t;
    weft__trusted_begin(&t, NOW, 0, 0);
    CHECK(!weft__trusted_look(&t, NOW - 50 * DAY, HOUR));
    CHECK_INT(weft__trusted_now(&t, NOW - 50 * DAY, HOUR), NOW - 50 * DAY);
    CHECK(!weft__trusted_look(&t, NOW - 50 * DAY + HOUR + 60000, 2 * HOUR));
    CHECK_INT(weft__trusted_now(&t, NOW - 50 * DAY + HOUR + 60000, 2 * HOUR), NOW - 50 * DAY + HOUR + 60000);
    /* Between two looks, never ahead of what the clock says. */
    CHECK_INT(weft__trusted_now(&t, 17, 2 * HOUR), 17);
}

TEST(a_start_goes_on_from_the_last_event) {
    weft_trusted t;
    weft__trusted_begin(&t, NOW + 40 * DAY, HOUR, NOW);
    CHECK_INT(weft__trusted_now(&t, NOW + 40 * DAY, HOUR), NOW);
    weft__trusted_begin(&t, NOW, HOUR, NOW + 40 * DAY);
    CHECK_INT(weft__trusted_now(&t, NOW, HOUR), NOW);
}

/* ---- the engine ---- */

static uint64_t trimmed(engine_world *w) {
    store_outcome page;
    /* A trim that was asked for comes before this read. */
    CHECK_INT(world_append(&w->store, "other", "x"), 0);
    CHECK_INT(world_read(&w->store, &(weft_query){.oldest = true, .max_events = 1}, &page), 0);
    return page.trimmed;
}

static void retain(engine_world *w) {
    world_forget(w);
    CHECK_INT(weft__engine_append(w->engine, "hub", "notice", WEFT_OBJ({"message", weft_str("x")}), NULL, NULL), 0);
    ENGINE_UNTIL(w, strstr(w->heard, "notice ") != NULL);
    weft__retention_start(w->engine);
    ENGINE_UNTIL(w, strstr(w->heard, "hub.counted ") != NULL);
    engine_settle(w);
}

TEST(nothing_is_lost_to_a_clock_that_is_wrong_for_a_moment) {
    static const weft_store_kind *const kinds[] = {&weft__memory, &weft__sqlite};
    for (size_t i = 0; i < 2; i++) {
        engine_world w;
        task_outcome t;
        engine_open(&w, kinds[i]);
        w.wall = NOW;
        CHECK_INT(world_start(&w), 0);
        CHECK_INT(submit(&w, "keep me", &t), 0);
        play_end(play_of(t.id), true);
        ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
        w.wall = NOW + 365 * DAY;
        retain(&w);
        CHECK_INT(trimmed(&w), 0);
        w.wall = NOW + HOUR;
        w.steady = HOUR;
        retain(&w);
        CHECK_INT(trimmed(&w), 0);
        w.wall = 1;
        retain(&w);
        CHECK_INT(trimmed(&w), 0);
        /* It was not wrong after all: it lasts. */
        w.wall = NOW + 60 * DAY;
        w.steady = 2 * HOUR;
        retain(&w);
        CHECK_INT(trimmed(&w), 0);
        w.wall += DAY;
        w.steady += DAY;
        retain(&w);
        CHECK(trimmed(&w) > 0);
        engine_end(&w);
    }
}

static void ask(weft_run *run) {
    static const char options[] = "[{\"id\":\"y\",\"name\":\"Yes\",\"kind\":\"allow_once\"}]";
    run->host->on_ask(run->ctx, "k",
                      WEFT_OBJ({"title", weft_str("may I?")}, {"options", weft_raw(options, strlen(options))}));
}

TEST(what_runs_and_waits_does_not_notice) {
    engine_world w;
    task_outcome first, second, third;
    engine_open(&w, &weft__memory);
    w.wall = NOW;
    w.opts.limits.max_running = 1;
    w.opts.limits.question_ms = HOUR;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "1", .timeout_ms = HOUR}, &first), 0);
    ask(play_of(first.id));
    w.wall = NOW + 9 * DAY; /* between the asking and its being stored, and after */
    ENGINE_UNTIL(&w, weft__question_first(w.engine, false) != NULL);
    w.wall = NOW - 9 * DAY;
    CHECK_INT(submit(&w, "2", &second), 0);
    w.wall = NOW - 18 * DAY;
    CHECK_INT(submit(&w, "3", &third), 0);
    w.wall = NOW + 18 * DAY;
    engine_settle(&w);
    CHECK(weft__question_first(w.engine, false) != NULL);
    CHECK_INT(state_of(&w, first.id), WEFT_TASK_RUNNING);
    CHECK_INT(play_of(first.id)->cancels, 0);
    CHECK_STR(weft__task_waiting(w.engine, 0)->id, second.id);
    CHECK_STR(weft__task_waiting(w.engine, 1)->id, third.id);
    CHECK_STR(weft__task_newest(w.engine)->id, third.id);
    play_end(play_of(first.id), true);
    ENGINE_UNTIL(&w, play_of(second.id) != NULL);
    CHECK(!play_of(third.id));
    engine_end(&w);
}

TEST(set_back_while_away_a_question_waits_no_longer_than_it_may) {
    engine_world w;
    task_outcome t;
    engine_open(&w, &weft__sqlite);
    w.wall = NOW;
    w.opts.limits.question_ms = 200;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "x", &t), 0);
    ask(play_of(t.id));
    ENGINE_UNTIL(&w, weft__question_first(w.engine, false) != NULL);
    w.wall = NOW - 9 * DAY;
    engine_restart(&w);
    ENGINE_UNTIL(&w, !weft__question_first(w.engine, false));
    engine_end(&w);
}

TEST(a_retry_comes_although_the_clock_was_set) {
    engine_world w;
    task_outcome t;
    engine_open(&w, &weft__memory);
    w.wall = NOW;
    w.opts.limits.retry_ms = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .retries = 1, .timeout_ms = 300}, &t), 0);
    play_end(play_of(t.id), false);
    w.wall = NOW - 9 * DAY;
    ENGINE_UNTIL(&w, plays.count == 2);
    w.wall = NOW - 18 * DAY;
    ENGINE_UNTIL(&w, play_of(t.id)->cancels > 0); /* its time is over */
    play_end(play_of(t.id), false);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_FAILED);
    engine_end(&w);
}

/* ---- schedules ---- */

typedef struct clock_scene {
    int64_t wall;
    int fired;
} clock_scene;

static int64_t scene_now(void *ctx) {
    return ((clock_scene *) ctx)->wall;
}

static void scene_fire(void *ctx, const char *job, const char *schedule) {
    (void) job;
    (void) schedule;
    ((clock_scene *) ctx)->fired++;
}

TEST(schedules_fire_once_after_a_jump) {
    clock_scene s = {.wall = NOW + 1000};
    weft_loop *loop;
    weft_scheduler *scheduler;
    weft_cron cron;
    const char *why;
    setenv("TZ", "UTC", 1);
    tzset();
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    weft_scheduler_opts opts = {.loop = loop, .now_ms = scene_now, .on_fire = scene_fire, .ctx = &s};
    CHECK_INT(weft__scheduler_new(&opts, &scheduler), 0);
    CHECK_INT(weft__cron_parse("* * * * *", &cron, &why), 0);
    CHECK_INT(weft__scheduler_add(scheduler, "minute", "* * * * *", &cron), 0);
    struct {
        int64_t wall;
        int fires;
    } steps[] = {
        {NOW + 59000, 0},
        {NOW + 60000, 1},
        {NOW + 100 * DAY, 1}, /* not once for every minute of a hundred days */
        {NOW + 100 * DAY, 0},
        {NOW - 100 * DAY + 1, 0},
        {NOW - 100 * DAY + 59000, 0},
        {NOW - 100 * DAY + 60000, 1}, /* and not silent for two hundred days */
        {NOW - 100 * DAY + 30000, 0}, /* a small step back: the minute is not fired twice */
        {NOW - 100 * DAY + 61000, 0},
        {NOW - 100 * DAY + 120000, 1},
        {NOW, 1},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        s.wall = steps[i].wall;
        s.fired = 0;
        weft__scheduler_look(scheduler);
        if (!CHECK_INT(s.fired, steps[i].fires))
            printf("  step %zu\n", i);
    }
    weft__scheduler_free(scheduler);
    weft_loop_free(loop);
}

/* clang-format off */
TEST_MAIN(
    CASE(a_moment_ahead_is_not_believed)
    CASE(what_lasts_is_believed)
    CASE(back_and_small_steps_are_believed)
    CASE(a_start_goes_on_from_the_last_event)
    CASE(nothing_is_lost_to_a_clock_that_is_wrong_for_a_moment)
    CASE(what_runs_and_waits_does_not_notice)
    CASE(set_back_while_away_a_question_waits_no_longer_than_it_may)
    CASE(a_retry_comes_although_the_clock_was_set)
    CASE(schedules_fire_once_after_a_jump)
)
