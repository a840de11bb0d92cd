/* Who runs next: the highest priority first, in the order of arrival within one, as long as there is a slot over all and one
 * of its agent's. A task that waits for a slot of its agent's, or for the one before it in its session, does not hold up
 * those behind it. */
#include "engine_private.h"

#include <stdio.h>
#include <string.h>

#include "runners.h"

/* Those on runners do not take one of ours. */
size_t weft__slots_taken(const weft_engine *engine, const char *agent) {
    size_t n = 0;
    for (weft_link *link = engine->slots.next; link != &engine->slots; link = link->next) {
        const known_task *task = WEFT_CONTAINER(link, known_task, slot);
        n += agent ? strcmp(task->pub.runs_on, agent) == 0 : !weft__task_is_lent(task);
    }
    return n;
}

bool weft__slot_free(const weft_engine *engine, const char *agent) {
    const weft_agent *known = agent ? weft__agent_known(engine, agent) : NULL;
    size_t max = engine->limits.max_running == SIZE_MAX ? 0 : engine->limits.max_running;
    if (known && known->runner)
        return max && weft__runner_has_slot(engine, known);
    if (weft__slots_taken(engine, NULL) >= max)
        return false;
    return !known || !known->max_running || weft__slots_taken(engine, agent) < known->max_running;
}

static bool runs_before(const known_task *a, const known_task *b) {
    return a->pub.priority != b->pub.priority ? a->pub.priority > b->pub.priority : a->pub.number < b->pub.number;
}

/* From the end, because most come in the order in which they will go. */
void weft__queue_put(weft_engine *engine, known_task *task) {
    weft_link *after = engine->queue.prev;
    while (after != &engine->queue && runs_before(task, WEFT_CONTAINER(after, known_task, place)))
        after = after->prev;
    weft__list_push(after->next, &task->place);
    engine->queue_count++;
}

static void start_stored(void *ctx, int r) {
    known_task *task = ctx;
    weft_engine *engine = task->engine;
    task->starting = false;
    if (r >= 0 || engine->phase == GONE)
        return;
    weft__list_remove(&task->slot);
    task->pub.stopping = false;
    if (!weft__list_empty(&task->waiters))
        weft__task_cancel_waiting(engine, task);
    weft__again(engine, &engine->queue_timer, r);
}

/* Who does it is decided when it starts. */
static bool is_placed(const known_task *task) {
    return task->pub.role || weft__task_is_lent(task);
}

/* After an attempt that failed, another one than that was tried where there is one. */
static const weft_agent *holder_for(const weft_engine *engine, const known_task *task) {
    const weft_task *pub = &task->pub;
    const char *before = pub->attempt ? pub->runs_on : NULL;
    if (weft__task_is_lent(task))
        return engine->limits.max_running == SIZE_MAX
                   ? NULL
                   : weft__runner_pick(engine, pub->runner, pub->label, pub->agent, before, false);
    return weft__role_pick(engine, pub->role, pub->task_type, before, false);
}

static bool has_free_agent(const weft_engine *engine, const known_task *task) {
    return is_placed(task) ? holder_for(engine, task) != NULL : weft__slot_free(engine, task->pub.runs_on);
}

/* Take the slot now: what is under way counts. */
static int start_task_of_queue(weft_engine *engine, known_task *task) {
    struct draft draft = {.engine = engine};
    const weft_agent *holder = is_placed(task) ? holder_for(engine, task) : NULL;
    if (holder && weft__task_give(engine, task, holder->name) < 0)
        return -ENOMEM;
    weft__draft_add(&draft, WEFT_STREAM_HUB, "task.started",
                    WEFT_OBJ({"taskId", weft_str(task->pub.id)}, {"sessionId", weft_str(task->pub.session)},
                             {"attempt", weft_int(task->pub.attempt + 1)},
                             {"agent", holder ? weft_str(holder->name) : weft_none()}));
    task->starting = true;
    int r = weft__draft_send(&draft, NULL, start_stored, task);
    if (r >= 0)
        weft__list_push(&engine->slots, &task->slot);
    else
        task->starting = false;
    return r;
}

/* Every task before it in its session has ended. */
static bool has_its_turn(const known_task *task) {
    return !task->session || (task->session->turns.next == &task->turn && weft__session_free(task->session));
}

/* The first that may run; *ret_due is when one more may. */
static known_task *next_to_run(weft_engine *engine, int64_t *ret_due) {
    int64_t now = weft_loop_now(engine->loop);
    *ret_due = engine->queue_count ? weft__roles_due(engine) : INT64_MAX;
    for (weft_link *link = engine->queue.next; link != &engine->queue; link = link->next) {
        known_task *task = WEFT_CONTAINER(link, known_task, place);
        if (task->starting || task->ending || !has_its_turn(task) || !has_free_agent(engine, task))
            continue;
        if (task->not_before <= now)
            return task;
        if (task->not_before < *ret_due)
            *ret_due = task->not_before;
    }
    return NULL;
}

void weft__queue_run(weft_engine *engine) {
    int64_t due = INT64_MAX;
    known_task *task;
    if (engine->opts.copy)
        return;
    if (engine->phase == READY && !engine->guests_known)
        weft__guests_look(engine);
    while (engine->phase == READY && (weft__slot_free(engine, NULL) || engine->runner_count) &&
           (task = next_to_run(engine, &due))) {
        int r = start_task_of_queue(engine, task);
        if (r < 0) {
            weft__again(engine, &engine->queue_timer, r);
            return;
        }
    }
    weft__timer_set(engine->loop, &engine->queue_timer, due);
}

static void on_queue_due(weft_timer *timer) {
    weft__queue_run(WEFT_CONTAINER(timer, weft_engine, queue_timer));
}

void weft__queue_init(weft_engine *engine) {
    weft__timer_init(&engine->queue_timer, on_queue_due);
}

const weft_task *weft__task_waiting(const weft_engine *engine, size_t n) {
    weft_link *link = engine->queue.next;
    while (n-- > 0 && link != &engine->queue)
        link = link->next;
    return link == &engine->queue ? NULL : &WEFT_CONTAINER(link, known_task, place)->pub;
}

/* ---- why one waits ---- */

static const char *waits_for_slot(const weft_engine *engine, const char *agent, char ret[WEFT_RUNNER_WAITS]) {
    size_t running = weft__slots_taken(engine, NULL);
    if (running >= engine->limits.max_running)
        snprintf(ret, WEFT_RUNNER_WAITS, "%zu %s already (tasks.max_running)", running, running == 1 ? "runs" : "run");
    else if (!weft__slot_free(engine, agent))
        snprintf(ret, WEFT_RUNNER_WAITS, "%s has no free place (max_running)", agent);
    else
        return NULL;
    return ret;
}

const char *weft__task_waits(const weft_engine *engine, const char *id, char ret[WEFT_RUNNER_WAITS]) {
    const known_task *task = weft__task_known(engine, id);
    if (!task || task->pub.state != WEFT_TASK_QUEUED || task->starting || engine->opts.copy || engine->phase != READY)
        return NULL;
    if (engine->limits.max_running == SIZE_MAX)
        snprintf(ret, WEFT_RUNNER_WAITS, "tasks are paused (tasks.paused)");
    else if (!has_its_turn(task))
        snprintf(ret, WEFT_RUNNER_WAITS, "its session is busy");
    else if (task->not_before > weft_loop_now(engine->loop))
        snprintf(ret, WEFT_RUNNER_WAITS, "it is tried again soon");
    else
        return is_placed(task) ? weft__runner_waits(engine, id, ret) : waits_for_slot(engine, task->pub.runs_on, ret);
    return ret;
}
