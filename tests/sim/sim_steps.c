/* The scheduler: at every step something that could happen next does, by the seed. Afterwards the fair end: no more faults,
 * everything that can be done is done, time moves on only when there is nothing else to do, and all must come to rest. */
#include <errno.h>
#include <string.h>

#include "sim.h"

#define FAIR_ROUNDS 20000 /* more than any run needs; a run that needs them all is stuck */
#define BUSY_ROUNDS 300   /* so many in a row take some time */
#define FAIR_MS                                                                                                             \
    INT64_C(600000) /* no retry and no second attempt to store waits longer; retention would look at the queue              \
                     */

/* ---- what can happen ---- */

static void step_turn(void) {
    hub_turn();
}

static int chance_fault(void) {
    static const int errors[] = {-ENOSPC, -EIO};
    return sim_below(100) < sim_now_plan()->store_faults * 3 ? errors[sim_below(2)] : 0;
}

/* Several writes at once are one group. */
static void step_store(void) {
    size_t group = sim_below(4) + 1;
    if (store_reads() && (!store_writes() || sim_chance(50))) {
        store_read(chance_fault());
        return;
    }
    for (int fail = chance_fault(); group-- > 0 && store_writes();)
        store_write(fail);
}

static void step_driver(void) {
    driver_step();
}

static void step_client(void) {
    clients_act();
}

static void step_wire(void) {
    for (uint32_t n = sim_below(4) + 1; n > 0; n--)
        clients_wire(false);
}

static void step_drop(void) {
    clients_drop();
}

static void step_time(void) {
    int64_t due = hub_deadline(), wait = due - hub_now();
    if (sim_now_plan()->time_jumps && sim_chance(3))
        wait = (int64_t) (sim_below(3) + 1) * 3600 * 1000;
    else if (due == INT64_MAX || wait > 60000 || sim_chance(60))
        wait = sim_below(sim_chance(80) ? 50 : 1000);
    sim_say("time    + %lld ms", (long long) (wait > 0 ? wait : 0));
    hub_move_time(wait > 0 ? wait : 0);
}

static void step_kill(void) {
    hub_kill();
    if (sim_chance(10)) {
        sim_say("disk    lost");
        store_lose_disk();
    }
}

static void step_stop(void) {
    hub_stop(sim_chance(40));
}

static void step_trim(void) {
    const truth_task *task = truth_tasks() ? truth_task_at(sim_below((uint32_t) truth_tasks())) : NULL;
    if (task && store_writes() < 8)
        hub_trim(task->session, sim_below(6) + 1);
}

static void step_plan(void) {
    if (hub_is_ready())
        plans_step();
}

static void step_gated(void) {
    if (hub_is_ready())
        gated_step();
}

static void step_runners(void) {
    if (hub_is_ready())
        runners_step();
}

static void step_tend(void) {
    hub_tend();
}

/* ---- choosing ---- */

typedef struct choice {
    void (*run)(void);
    unsigned weight;
} choice;

static void run_step(const sim_plan *plan) {
    const choice choices[] = {
        {step_turn, 300},
        {step_store, plan->slow_disk ? 60 : 200},
        {step_driver, 150},
        {step_client, 110},
        {step_wire, 250},
        {step_time, 40},
        {step_tend, 30},
        {step_drop, plan->drops * 5},
        {step_kill, plan->kills * 3},
        {step_stop, plan->stops * 2},
        {step_trim, plan->trims * 5},
        {step_plan, plan->plans * 4},
        {step_gated, plan->gated * 4},
        {step_runners, plan->runners * 60},
    };
    unsigned total = 0;
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        total += choices[i].weight;
    unsigned at = sim_below(total);
    size_t i = 0;
    while (at >= choices[i].weight)
        at -= choices[i++].weight;
    /* Starting and ending a hub without memory is another test. */
    bool short_of_memory = choices[i].run != step_tend && choices[i].run != step_kill && hub_is_ready() &&
                           sim_below(1000) < plan->memory_faults * 20;
    if (short_of_memory)
        sim_fail_memory(sim_below(sim_chance(50) ? 8 : 60) + 1);
    choices[i].run();
    sim_fail_memory(0);
}

/* ---- the fair end ---- */

/* Everything that can be done now. False: there was nothing. */
static bool do_all(void) {
    bool done = false;
    for (; store_writes(); done = true)
        store_write(0);
    for (; store_reads(); done = true)
        store_read(0);
    for (int i = 0; i < 3; i++)
        hub_turn();
    done |= clients_wire(true);
    done |= hub_tend();
    return done || store_writes() || store_reads();
}

static bool at_rest(void) {
    return hub_is_ready() && hub_knows_past() && hub_has_heard(truth_head()) && !truth_open_tasks() && !driver_runs() &&
           truth_is_known() && hub_is_idle() && plans_at_rest() && gated_at_rest();
}

/* Time moves to the next deadline, and no further than FAIR_MS in all. */
static bool pass_time(int64_t until) {
    int64_t due = hub_deadline();
    if (due >= until)
        return false;
    hub_move_time(due > hub_now() ? due - hub_now() : 0);
    return true;
}

static void tell_stuck(void) {
    for (size_t i = 0; i < truth_tasks(); i++) {
        const truth_task *task = truth_task_at(i);
        if (task->state <= TRUTH_RUNNING)
            sim_broken("stuck: %s is %s, the engine says %s, and nothing happens any more", task->id,
                       task->state == TRUTH_QUEUED ? "queued" : "running", hub_is_ready() ? hub_task_state(task->id) : "");
    }
    sim_broken("stuck: the hub does not come to rest");
}

static void come_to_rest(void) {
    int64_t until = hub_now() + FAIR_MS;
    for (int round = 1; round < FAIR_ROUNDS && !sim_is_broken(); round++) {
        /* A client that catches up reads again and again until the engine has, which may wait for memory: time passes also
         * while somebody is busy. */
        if (round % BUSY_ROUNDS == 0)
            (void) pass_time(until);
        if (do_all() || (hub_is_ready() && (clients_mend() || runners_mend())))
            continue;
        if (driver_runs() || driver_waiting())
            driver_finish();
        else if (at_rest())
            return;
        else if (!pass_time(until))
            break;
    }
    tell_stuck();
}

/* Nothing runs, so that it stops at once; what it knows is the disk's. */
static void stop_well(void) {
    int64_t until = hub_now() + FAIR_MS;
    hub_stop(false);
    while (!sim_is_broken() && hub_is_stopping()) {
        if (do_all())
            continue;
        if (driver_runs() || driver_waiting())
            driver_finish();
        else if (!pass_time(until))
            sim_broken("stuck: the hub does not stop");
    }
}

void sim_play(const sim_plan *plan, const bool *skip) {
    for (unsigned step = 1; step <= plan->steps && !sim_is_broken(); step++) {
        if (skip && skip[step])
            continue;
        sim_begin_step(step);
        run_step(plan);
    }
    sim_begin_step(plan->steps + 1);
    sim_say("end     from here on everything is fair");
    if (!sim_is_broken())
        come_to_rest();
    if (!sim_is_broken())
        clients_check();
    if (!sim_is_broken())
        truth_check_engine(true);
    if (!sim_is_broken())
        stop_well();
}
