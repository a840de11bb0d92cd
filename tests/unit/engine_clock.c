/* The wall clock jumps, by days, in both directions (F9, F19): what is timed goes on as if it had not, nothing is removed
 * because of it, schedules neither fire in bursts nor fall silent. */
#include "automation.h"
#include "engine/world.h"
#include "engine_private.h"
#include "scheduler.h"

#define HOUR ((int64_t) 3600 * 1000)
#define DAY (24 * HOUR)
#define NOW ((int64_t) 20000 * DAY)

/* ---- how old something is ---- */

TEST(only_time_that_was_observed_counts) {
    weft_age age = {0};
    CHECK_INT(weft__age_until(&age, 500 * DAY, 30 * DAY), 0);
    weft__age_begin(&age, 7 * DAY);
    CHECK_INT(weft__age_now(&age, 9 * DAY), 2 * DAY);
    CHECK_INT(weft__age_now(&age, 6 * DAY), 0); /* no steady clock goes back, but nothing depends on that */
    weft__age_note(&age, 10, weft__age_now(&age, 9 * DAY), 30 * DAY);
    weft__age_note(&age, 20, weft__age_now(&age, 19 * DAY), 30 * DAY);
    CHECK_INT(weft__age_until(&age, 39 * DAY, 30 * DAY), 0);
    CHECK_INT(weft__age_until(&age, 39 * DAY + 1, 30 * DAY), 10);
    CHECK_INT(weft__age_until(&age, 49 * DAY + 1, 30 * DAY), 20);
}

TEST(the_next_daemon_goes_on_from_what_was_written) {
    weft_age age = {0};
    weft__age_note(&age, 10, 2 * DAY, 30 * DAY);
    weft__age_note(&age, 20, 12 * DAY, 30 * DAY);
    weft__age_begin(&age, 1000 * DAY);
    CHECK_INT(weft__age_now(&age, 1000 * DAY), 12 * DAY);
    CHECK_INT(weft__age_until(&age, 1000 * DAY, 30 * DAY), 0);
    CHECK_INT(weft__age_until(&age, 1020 * DAY + 1, 30 * DAY), 10);
}

TEST(notes_that_make_no_sense_are_left_out) {
    weft_age age = {0};
    weft__age_note(&age, 1, -1, 30 * DAY);
    weft__age_note(&age, 2, INT64_MAX, 30 * DAY);
    CHECK_INT(age.count, 0);
    weft__age_begin(&age, 0);
    CHECK_INT(weft__age_now(&age, DAY), DAY);
}

TEST(points_are_few_and_reach_far_enough) {
    weft_age age = {0};
    int64_t hour = 0;
    weft__age_begin(&age, 0);
    for (; hour < 24 * 400; hour++)
        weft__age_note(&age, (uint64_t) hour + 1, hour * HOUR, 30 * DAY);
    CHECK_INT(age.count, WEFT_AGE_POINTS);
    uint64_t until = weft__age_until(&age, hour * HOUR, 30 * DAY);
    CHECK(until > 24 * 369 && until <= 24 * 370);
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
    ENGINE_UNTIL(w, !w->engine->retaining);
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
        /* Nor when it stays so: who knows. */
        w.wall = NOW + 60 * DAY;
        for (int day = 0; day < 3; day++) {
            w.wall += DAY;
            w.steady += DAY;
            retain(&w);
            CHECK_INT(trimmed(&w), 0);
        }
        /* But when so much time has gone by while we watched. */
        w.steady += 31 * DAY;
        retain(&w);
        CHECK(trimmed(&w) > 0);
        engine_end(&w);
    }
}

/* F19. Ahead, back, ahead again, for as many starts as one likes; some of them end with a kill. */
TEST(nothing_is_lost_to_a_clock_that_is_wrong_at_every_start) {
    static const int64_t days[] = {365, 365, 400, -9000, 4000, 4000, 4001, 0, 40, 80, 120};
    engine_world w;
    task_outcome t;
    engine_open(&w, &weft__sqlite);
    w.wall = NOW;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "keep me", &t), 0);
    play_end(play_of(t.id), true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    for (size_t i = 0; i < 4 * sizeof days / sizeof days[0]; i++) {
        w.wall = NOW + days[i % (sizeof days / sizeof days[0])] * DAY;
        w.steady += 2 * HOUR;
        engine_restart(&w);
        retain(&w);
        w.wall += 2 * DAY;
        retain(&w);
        CHECK_INT(trimmed(&w), 0);
        CHECK(weft__task_find(w.engine, t.id) != NULL);
    }
    engine_end(&w);
}

/* The journal says how long it was observed; only the daemons' own time makes it old, over all their runs. */
TEST(age_adds_up_over_runs) {
    engine_world w;
    engine_open(&w, &weft__sqlite);
    w.wall = NOW;
    CHECK_INT(world_start(&w), 0);
    retain(&w);
    for (int run = 0; run < 4; run++) {
        CHECK_INT(trimmed(&w), 0);
        w.steady += 8 * DAY;
        retain(&w);
        if (run < 3)
            engine_restart(&w);
    }
    CHECK(trimmed(&w) > 0);
    engine_end(&w);
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
    CASE(only_time_that_was_observed_counts)
    CASE(the_next_daemon_goes_on_from_what_was_written)
    CASE(notes_that_make_no_sense_are_left_out)
    CASE(points_are_few_and_reach_far_enough)
    CASE(nothing_is_lost_to_a_clock_that_is_wrong_for_a_moment)
    CASE(nothing_is_lost_to_a_clock_that_is_wrong_at_every_start)
    CASE(age_adds_up_over_runs)
    CASE(what_runs_and_waits_does_not_notice)
    CASE(set_back_while_away_a_question_waits_no_longer_than_it_may)
    CASE(a_retry_comes_although_the_clock_was_set)
    CASE(schedules_fire_once_after_a_jump)
)
