/* The loop's own parts: deadlines, and work for later. */
#include "loop.h"

#include <errno.h>
#include <stdlib.h>

#include "harness.h"

#define MANY 500

typedef struct alarm_case {
    weft_timer timer;
    weft_loop *loop;
    int64_t due;
    int fired;
} alarm_case;

static int fired, disorder;

static void on_due(weft_timer *timer) {
    alarm_case *self = WEFT_CONTAINER(timer, alarm_case, timer);
    self->fired++;
    fired++;
    disorder += weft_loop_now(self->loop) < self->due;
}

TEST(timers_fire_once_and_not_early) {
    weft_loop *loop;
    static alarm_case alarms[MANY];
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    int64_t now = weft_loop_now(loop);
    fired = disorder = 0;
    srand(7);
    for (int i = 0; i < MANY; i++) {
        alarms[i] = (alarm_case){.loop = loop, .due = now + rand() % 20};
        weft__timer_init(&alarms[i].timer, on_due);
        weft__timer_set(loop, &alarms[i].timer, alarms[i].due);
    }
    int wanted = MANY;
    for (int i = 0; i < MANY; i++) {
        switch (i % 5) {
        case 0: /* later: costs nothing now */
            alarms[i].due = now + 20 + rand() % 10;
            weft__timer_set(loop, &alarms[i].timer, alarms[i].due);
            break;
        case 1: /* earlier */
            alarms[i].due = now;
            weft__timer_set(loop, &alarms[i].timer, now);
            break;
        case 2: /* never, by both ways */
            if (i % 2)
                weft__timer_stop(loop, &alarms[i].timer);
            else
                weft__timer_set(loop, &alarms[i].timer, INT64_MAX);
            wanted--;
            break;
        }
    }
    weft_loop_hold(loop); /* timers alone do not keep it running */
    while (fired < wanted)
        weft_loop_once(loop, true);
    weft_loop_release(loop);
    CHECK_INT(fired, wanted);
    CHECK_INT(disorder, 0);
    for (int i = 0; i < MANY; i++) {
        CHECK_INT(alarms[i].fired, i % 5 != 2);
        weft__timer_stop(loop, &alarms[i].timer);
    }
    CHECK_INT(weft_loop_once(loop, false), 0);
    weft_loop_free(loop);
}

/* Each one sets another in the past, and stops a third: neither may loop for ever nor fire what was stopped. */
static weft_timer *victim;

static void set_again(weft_timer *timer) {
    alarm_case *self = WEFT_CONTAINER(timer, alarm_case, timer);
    weft__timer_stop(self->loop, victim);
    if (++self->fired < 3)
        weft__timer_set(self->loop, timer, 0);
}

TEST(timers_change_timers) {
    weft_loop *loop;
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    alarm_case one = {.loop = loop}, two = {.loop = loop};
    weft__timer_init(&one.timer, set_again);
    weft__timer_init(&two.timer, on_due);
    victim = &two.timer;
    weft__timer_set(loop, &one.timer, weft_loop_now(loop));
    weft__timer_set(loop, &two.timer, weft_loop_now(loop) + 1);
    weft_loop_hold(loop);
    while (one.fired < 3)
        weft_loop_once(loop, true);
    weft_loop_release(loop);
    CHECK_INT(two.fired, 0);
    weft_loop_free(loop);
}

typedef struct task {
    weft_later later;
    weft_loop *loop;
    struct task *queue, *cancel;
    int runs;
} task;

static void run_task(weft_later *later) {
    task *self = WEFT_CONTAINER(later, task, later);
    self->runs++;
    if (self->queue)
        weft__later(self->loop, &self->queue->later);
    if (self->cancel)
        weft__later_cancel(&self->cancel->later);
}

TEST(later_runs_once_and_lets_the_loop_end) {
    weft_loop *loop;
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    task a = {.loop = loop}, b = {.loop = loop}, c = {.loop = loop};
    weft__later_init(&a.later, run_task);
    weft__later_init(&b.later, run_task);
    weft__later_init(&c.later, run_task);
    a.queue = &b;  /* from within */
    a.cancel = &c; /* which would have been next */
    weft__later(loop, &a.later);
    weft__later(loop, &a.later);
    weft__later(loop, &c.later);
    CHECK_INT(weft_loop_timeout_ms(loop), 0); /* somebody else's loop must not wait */
    CHECK_INT(weft_loop_run(loop), 0);
    CHECK_INT(a.runs, 1);
    CHECK_INT(b.runs, 1);
    CHECK_INT(c.runs, 0);
    weft__later(loop, &c.later);
    weft__later_cancel(&c.later);
    CHECK_INT(weft_loop_run(loop), 0); /* nothing left, although something was queued for a moment */
    CHECK_INT(c.runs, 0);
    weft_loop_free(loop);
}

/* Two that queue each other for ever must not keep the loop from its descriptors. */
TEST(later_does_not_starve_the_loop) {
    weft_loop *loop;
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    task a = {.loop = loop}, b = {.loop = loop};
    weft__later_init(&a.later, run_task);
    weft__later_init(&b.later, run_task);
    a.queue = &b;
    b.queue = &a;
    weft__later(loop, &a.later);
    for (int i = 0; i < 10; i++)
        CHECK_INT(weft_loop_once(loop, true), 1);
    CHECK(a.runs + b.runs >= 10 && a.runs + b.runs <= 40);
    weft__later_cancel(&a.later);
    weft__later_cancel(&b.later);
    weft_loop_free(loop);
}

TEST(no_memory) {
    for (long fail = 1;; fail++) {
        test_memory memory;
        weft_loop *loop = NULL;
        test_memory_init(&memory, fail);
        int r = weft_loop_new(&memory.alloc, &loop);
        CHECK_INT(r, fail <= 3 ? -ENOMEM : 0);
        weft_loop_free(loop);
        CHECK_INT(memory.live, 0);
        if (r == 0)
            break;
    }
}

/* Time that a simulation moves: hours pass at once, timers run at their time and in its order. */
TEST(virtual_time_stands_still_until_it_is_moved) {
    weft_loop *loop;
    alarm_case soon = {0}, late = {0};
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    weft_loop_set_now(loop, 1000);
    soon.loop = late.loop = loop;
    weft__timer_init(&soon.timer, on_due);
    weft__timer_init(&late.timer, on_due);
    CHECK_INT(weft_loop_deadline(loop), INT64_MAX);
    weft__timer_set(loop, &late.timer, 1000 + 3600 * 1000);
    weft__timer_set(loop, &soon.timer, 1500);
    weft_loop_once(loop, true);
    CHECK_INT(weft_loop_now(loop), 1000);
    CHECK_INT(weft__loop_fresh_now(loop), 1000);
    CHECK_INT(weft_loop_deadline(loop), 1500);
    weft_loop_set_now(loop, 1499);
    weft_loop_once(loop, true);
    CHECK_INT(soon.fired, 0);
    weft_loop_set_now(loop, weft_loop_deadline(loop));
    weft_loop_once(loop, true);
    CHECK_INT(soon.fired, 1);
    CHECK_INT(late.fired, 0);
    weft_loop_set_now(loop, weft_loop_deadline(loop));
    weft_loop_once(loop, true);
    CHECK_INT(late.fired, 1);
    CHECK_INT(weft_loop_now(loop), 1000 + 3600 * 1000);
    weft_loop_free(loop);
}

/* clang-format off */
TEST(turns_are_counted) {
    test_memory memory;
    weft_loop *loop;
    test_memory_init(&memory, 0);
    REQUIRE(weft_loop_new(&memory.alloc, &loop) == 0);
    CHECK(!weft__loop_delays(loop));
    memory.fail_at = memory.count + 1;
    CHECK_INT(weft__loop_measure(loop), -ENOMEM);
    CHECK_INT(weft__loop_measure(loop), 0);
    CHECK_INT(weft__loop_measure(loop), 0);
    weft_loop_hold(loop);
    for (int i = 0; i < 3; i++)
        weft_loop_once(loop, false);
    weft_loop_release(loop);
    CHECK_INT(weft__loop_delays(loop)->count, 3);
    weft_loop_free(loop);
    CHECK_INT(memory.live, 0);
}

TEST_MAIN(
    CASE(timers_fire_once_and_not_early)
    CASE(timers_change_timers)
    CASE(later_runs_once_and_lets_the_loop_end)
    CASE(later_does_not_starve_the_loop)
    CASE(no_memory)
    CASE(virtual_time_stands_still_until_it_is_moved)
    CASE(turns_are_counted)
)
