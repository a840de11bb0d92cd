/* Loops, from their submission to their end.
 *
 *   queued ──slot──▶ running ──completed──▶ over            weft__aiwg_loops_submit(), start_waiting(), on_loop_event()
 *                    running ──failed─────▶ running again, or over for good
 *                    running ──cancelled──▶ over                                                              */
#include "aiwg_loops_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "cost.h"
#include "loop.h"

/* Failures of one loop that are remembered; more restarts than this are never allowed. */
#define MAX_FAILURES 1000
#define MAX_PROMPT (1024 * 1024)

static int64_t mono_now(const weft_aiwg_loops *loops) {
    return weft__loop_fresh_now(weft__engine_loop(loops->engine));
}

static void tell_loops_event(const weft_aiwg_loops *loops, const char *name, weft_val data) {
    char *text;
    size_t len;
    if (!loops->opts.on_event || weft_to_text(data, loops->alloc, &text, &len) < 0)
        return;
    loops->opts.on_event(loops->opts.ctx, name, text, len);
    weft_text_free(text, loops->alloc);
}

/* ---- the list ---- */

static aiwg_loop *find_in(const weft_link *list, const char *id, const char *task) {
    for (const weft_link *link = list->next; link != list; link = link->next) {
        aiwg_loop *loop = WEFT_CONTAINER(link, aiwg_loop, link);
        if (id ? strcmp(loop->id, id) == 0 : *loop->task && strcmp(loop->task, task) == 0)
            return loop;
    }
    return NULL;
}

static void free_loop(aiwg_loop *loop) {
    const weft_alloc *alloc = loop->alloc;
    weft__list_remove(&loop->link);
    weft__free(alloc, loop->prompt);
    weft_text_free(loop->metadata, alloc);
    weft__free(alloc, loop->failures);
    weft__free(alloc, loop);
}

/* What is kept with its tasks. */
static int note_origin(aiwg_loop *loop, const weft_aiwg_loop_spec *spec) {
    size_t len;
    return weft_to_text(WEFT_OBJ({"loopId", weft_str(loop->id)}, {"source", spec->job ? weft_str("scheduler") : weft_none()},
                                 {"jobId", weft_str_or_none(spec->job)}, {"action", weft_str_or_none(spec->action)}),
                        loop->alloc, &loop->metadata, &len);
}

static aiwg_loop *new_aiwg_loop(weft_aiwg_loops *loops, const weft_aiwg_loop_spec *spec) {
    aiwg_loop *loop = weft__zalloc(loops->alloc, sizeof *loop);
    if (!loop)
        return NULL;
    weft__list_init(&loop->link);
    loop->loops = loops;
    loop->alloc = loops->alloc;
    loop->priority = spec->priority;
    loop->prompt = weft__strndup(loops->alloc, spec->prompt, strlen(spec->prompt));
    loop->failures = weft__zalloc(loops->alloc, (size_t) loops->opts.limits.max_restarts * sizeof *loop->failures);
    if (!loop->prompt || !loop->failures) {
        free_loop(loop);
        return NULL;
    }
    if (spec->id)
        snprintf(loop->id, sizeof loop->id, "%s", spec->id);
    else
        snprintf(loop->id, sizeof loop->id, "loop-%lld-%llu", (long long) weft__engine_now(loops->engine),
                 (unsigned long long) ++loops->made);
    if (note_origin(loop, spec) < 0) {
        free_loop(loop);
        return NULL;
    }
    return loop;
}

/* ---- what is over ---- */

static void remember_end(weft_aiwg_loops *loops, const aiwg_loop *loop, const char *outcome, const char *error) {
    if (loops->history_count == WEFT_AIWG_LOOP_HISTORY) {
        memmove(loops->history, loops->history + 1, (WEFT_AIWG_LOOP_HISTORY - 1) * sizeof *loops->history);
        loops->history_count--;
    }
    ended_loop *end = &loops->history[loops->history_count++];
    *end = (ended_loop){.outcome = outcome, .failed = error != NULL, .time_ms = weft__engine_now(loops->engine)};
    end->permanent = error && strcmp(outcome, "failed") != 0;
    snprintf(end->id, sizeof end->id, "%s", loop->id);
    snprintf(end->task, sizeof end->task, "%s", loop->task);
    snprintf(end->error, sizeof end->error, "%s", error ? error : "");
}

static bool is_lost(const weft_aiwg_loops *loops, const char *id) {
    for (size_t i = 0; i < loops->lost_count; i++)
        if (strcmp(loops->lost[i], id) == 0)
            return true;
    return false;
}

static void remember_lost(weft_aiwg_loops *loops, const char *id) {
    if (loops->lost_count == WEFT_AIWG_LOOP_HISTORY) {
        memmove(loops->lost, loops->lost + 1, (WEFT_AIWG_LOOP_HISTORY - 1) * sizeof *loops->lost);
        loops->lost_count--;
    }
    snprintf(loops->lost[loops->lost_count++], sizeof *loops->lost, "%s", id);
}

/* ---- starting ---- */

static void start_waiting(weft_aiwg_loops *loops);
static void end_loop(aiwg_loop *loop);

static void on_loop_cancelled(void *ctx, int r, const weft_task *task) {
    (void) ctx, (void) r, (void) task; /* its event says it */
}

static void on_loop_stored(void *ctx, int r, const weft_task *task) {
    aiwg_loop *loop = ctx;
    weft_aiwg_loops *loops = loop->loops;
    loop->submitting = false;
    if (!loops) {
        free_loop(loop);
        return;
    }
    if (r >= 0) {
        snprintf(loop->task, sizeof loop->task, "%s", task->id);
        tell_loops_event(loops, "loop:started", WEFT_OBJ({"loopId", weft_str(loop->id)}, {"taskId", weft_str(loop->task)}));
        if (loop->cancelled)
            weft__task_cancel(loops->engine, loop->task, "aiwg", on_loop_cancelled, NULL);
        return;
    }
    remember_end(loops, loop, "failed", weft_strerror(r));
    tell_loops_event(
        loops, "loop:failed",
        WEFT_OBJ({"loopId", weft_str(loop->id)}, {"error", weft_str(weft_strerror(r))}, {"permanent", weft_bool(false)}));
    weft__aiwg_circuit_dropped(&loops->circuit);
    end_loop(loop);
}

/* It is in the list of those that run. */
static int submit_task_of(aiwg_loop *loop) {
    weft_aiwg_loops *loops = loop->loops;
    weft_task_spec spec = {.prompt = loop->prompt, .priority = loop->priority, .metadata = loop->metadata};
    *loop->task = '\0';
    loop->since_ms = weft__engine_now(loops->engine);
    loop->submitting = true;
    weft__aiwg_circuit_begin(&loops->circuit, mono_now(loops));
    int r = weft__task_submit(loops->engine, &spec, on_loop_stored, loop);
    loop->submitting = r >= 0;
    return r;
}

static int run_loop(weft_aiwg_loops *loops, aiwg_loop *loop) {
    weft__list_push(&loops->running, &loop->link);
    loops->running_count++;
    int r = submit_task_of(loop);
    if (r < 0) {
        weft__list_remove(&loop->link);
        loops->running_count--;
    }
    return r;
}

static void give_up(weft_aiwg_loops *loops, aiwg_loop *loop, int r) {
    remember_end(loops, loop, "failed", weft_strerror(r));
    tell_loops_event(
        loops, "loop:failed",
        WEFT_OBJ({"loopId", weft_str(loop->id)}, {"error", weft_str(weft_strerror(r))}, {"permanent", weft_bool(false)}));
    free_loop(loop);
}

static void set_circuit_timer(weft_aiwg_loops *loops) {
    int64_t now = mono_now(loops), left = weft__aiwg_circuit_left(&loops->circuit, now);
    if (left > 0)
        weft__timer_set(weft__engine_loop(loops->engine), &loops->timer, now + left);
}

static void start_waiting(weft_aiwg_loops *loops) {
    while (!loops->stopping && loops->queued_count && loops->running_count < (size_t) loops->opts.limits.max_running &&
           weft__aiwg_circuit_allows(&loops->circuit, mono_now(loops))) {
        aiwg_loop *loop = WEFT_CONTAINER(loops->queued.next, aiwg_loop, link);
        weft__list_remove(&loop->link);
        loops->queued_count--;
        int r = run_loop(loops, loop);
        if (r < 0)
            give_up(loops, loop, r);
    }
}

static void on_circuit_due(weft_timer *timer) {
    weft_aiwg_loops *loops = WEFT_CONTAINER(timer, weft_aiwg_loops, timer);
    start_waiting(loops);
}

/* ---- ending ---- */

static void end_loop(aiwg_loop *loop) {
    weft_aiwg_loops *loops = loop->loops;
    loops->running_count--;
    free_loop(loop);
    start_waiting(loops);
}

static void loop_completed(aiwg_loop *loop) {
    weft_aiwg_loops *loops = loop->loops;
    remember_end(loops, loop, "completed", NULL);
    tell_loops_event(loops, "loop:completed", WEFT_OBJ({"loopId", weft_str(loop->id)}, {"taskId", weft_str(loop->task)}));
    if (weft__aiwg_circuit_succeeded(&loops->circuit))
        tell_loops_event(loops, "circuit:recover", WEFT_OBJ({"state", weft_str("closed")}));
    end_loop(loop);
}

/* One more failure; true: there were so many within the window that it is lost. */
static bool fails_too_often(aiwg_loop *loop, int64_t now) {
    const weft_aiwg_loop_limits *limits = &loop->loops->opts.limits;
    size_t old = 0;
    while (old < loop->failure_count && loop->failures[old] < now - limits->window_ms)
        old++;
    loop->failure_count -= old;
    memmove(loop->failures, loop->failures + old, loop->failure_count * sizeof *loop->failures);
    loop->failures[loop->failure_count++] = now;
    return loop->failure_count >= (size_t) limits->max_restarts;
}

static void loop_lost(aiwg_loop *loop, const char *error) {
    weft_aiwg_loops *loops = loop->loops;
    static const char reason[] = "restart intensity exceeded";
    remember_lost(loops, loop->id);
    remember_end(loops, loop, "permanently-failed", error);
    tell_loops_event(loops, "loop:failed",
                     WEFT_OBJ({"loopId", weft_str(loop->id)}, {"error", weft_str(error)}, {"permanent", weft_bool(true)},
                              {"reason", weft_str(reason)}));
    end_loop(loop);
}

static void loop_failed(aiwg_loop *loop, const char *error) {
    weft_aiwg_loops *loops = loop->loops;
    int64_t now = mono_now(loops);
    loops->last_failure_ms = weft__engine_now(loops->engine);
    if (weft__aiwg_circuit_failed(&loops->circuit, now)) {
        tell_loops_event(loops, "circuit:trip", WEFT_OBJ({"consecutiveFailures", weft_int(loops->circuit.failures)}));
        set_circuit_timer(loops);
    }
    if (fails_too_often(loop, now)) {
        loop_lost(loop, error);
        return;
    }
    int r = loops->stopping ? -ESHUTDOWN : submit_task_of(loop);
    if (r < 0) {
        loops->running_count--;
        weft__list_remove(&loop->link);
        give_up(loops, loop, r);
    }
}

static void loop_cancelled(aiwg_loop *loop) {
    weft__aiwg_circuit_dropped(&loop->loops->circuit);
    end_loop(loop);
}

/* ---- what happens to tasks ---- */

static aiwg_loop *loop_of_event(const weft_aiwg_loops *loops, const weft_json *data) {
    char id[32];
    weft_json value = weft_get(data, "taskId");
    weft_bytes text;
    if (!loops->running_count || weft_bytes_of(&value, &text) < 0 || text.len >= sizeof id)
        return NULL;
    memcpy(id, text.data, text.len);
    id[text.len] = '\0';
    return find_in(&loops->running, NULL, id);
}

static void on_loop_event(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    weft_aiwg_loops *loops = WEFT_CONTAINER(listener, weft_aiwg_loops, listener);
    bool said = strcmp(event->type, "session.output") == 0 || strcmp(event->type, "session.update") == 0;
    bool completed = strcmp(event->type, "task.completed") == 0, failed = strcmp(event->type, "task.failed") == 0;
    if (!said && !completed && !failed && strcmp(event->type, "task.cancelled") != 0)
        return;
    aiwg_loop *loop = loop_of_event(loops, data);
    weft_bytes text;
    if (!loop)
        return;
    if (said) {
        if (loops->opts.on_output && weft__output_text(event, data, &text) > 0)
            loops->opts.on_output(loops->opts.ctx, loop->id, text);
    } else if (completed)
        loop_completed(loop);
    else if (failed && !loop->killed)
        loop_failed(loop, weft_get_str(data, "error", "it failed"));
    else
        loop_cancelled(loop);
}

/* ---- submitting ---- */

/* The day's budget is the engine's (cost.day), which also holds back tasks that are no loops. */
static double usd_of(int64_t nano) {
    return (double) nano / WEFT_NANO;
}

void weft__aiwg_loops_state(weft_aiwg_loops *loops, weft_aiwg_loops_state *ret) {
    int64_t now = mono_now(loops);
    weft_spent spent;
    weft_money day = weft__engine_limits(loops->engine)->cost.day;
    weft__cost_today(loops->engine, &spent);
    *ret = (weft_aiwg_loops_state){
        .running = loops->running_count,
        .queued = loops->queued_count,
        .limits = loops->opts.limits,
        .circuit = weft__aiwg_circuit_name(&loops->circuit, now),
        .failures = loops->circuit.failures,
        .last_failure_ms = loops->last_failure_ms,
        .cooldown_left_ms = weft__aiwg_circuit_left(&loops->circuit, now),
        .budget = strcmp(day.currency, "USD") == 0 ? usd_of(day.nano) : 0,
        .spent = usd_of(weft__spent_in(&spent, "USD")),
    };
}

static void warn_of_budget(weft_aiwg_loops *loops, const weft_aiwg_loops_state *state) {
    bool near = state->budget > 0 && state->spent >= state->budget * 0.9;
    char percent[16];
    snprintf(percent, sizeof percent, "%.1f", near ? state->spent / state->budget * 100 : 0);
    if (near && !loops->warned)
        tell_loops_event(loops, "budget:warning",
                         WEFT_OBJ({"budgetUsed", weft_num(state->spent)}, {"dailyLimit", weft_num(state->budget)},
                                  {"percentUsed", weft_str(percent)}));
    loops->warned = near;
}

/* The sentence that AIWG's clients print. */
static int refuse_loop(const weft_aiwg_loops *loops, const weft_aiwg_loop_spec *spec, const weft_aiwg_loops_state *state,
                       bool allowed, char why[WEFT_AIWG_LOOP_WHY]) {
    const char *id = spec->id ? spec->id : "";
    if (loops->stopping)
        snprintf(why, WEFT_AIWG_LOOP_WHY, "DaemonSupervisor is shutting down");
    else if (is_lost(loops, id))
        snprintf(why, WEFT_AIWG_LOOP_WHY, "Loop %s is permanently failed (restart intensity exceeded)", id);
    else if (strlen(id) > WEFT_AIWG_LOOP_ID || strlen(spec->prompt) > MAX_PROMPT)
        snprintf(why, WEFT_AIWG_LOOP_WHY, "The %s is too long", strlen(id) > WEFT_AIWG_LOOP_ID ? "loopId" : "prompt");
    else if (find_in(&loops->running, id, NULL) || find_in(&loops->queued, id, NULL))
        snprintf(why, WEFT_AIWG_LOOP_WHY, "Loop %s is running already", id);
    else if (!allowed)
        snprintf(why, WEFT_AIWG_LOOP_WHY, "Circuit breaker is %s: %lld consecutive failures. Cooldown remaining: %llds",
                 state->circuit, (long long) state->failures, (long long) (state->cooldown_left_ms + 999) / 1000);
    else if (state->budget > 0 && state->spent + spec->cost_usd >= state->budget)
        snprintf(why, WEFT_AIWG_LOOP_WHY, "Daily budget exceeded: $%.2f used of $%.2f limit", state->spent, state->budget);
    else if (state->queued >= (size_t) state->limits.max_queue)
        snprintf(why, WEFT_AIWG_LOOP_WHY, "Queue full: %zu/%lld. Cannot enqueue loop %s", state->queued,
                 (long long) state->limits.max_queue, id);
    else
        return 0;
    return -EPERM;
}

/* Higher priority first, in the order of their coming within one. */
static int64_t put_in_queue(weft_aiwg_loops *loops, aiwg_loop *loop) {
    weft_link *before = loops->queued.next;
    int64_t position = 1;
    while (before != &loops->queued && WEFT_CONTAINER(before, aiwg_loop, link)->priority >= loop->priority) {
        before = before->next;
        position++;
    }
    weft__list_push(before, &loop->link);
    loops->queued_count++;
    loop->since_ms = weft__engine_now(loops->engine);
    return position;
}

static void remember_job(weft_aiwg_loops *loops, const weft_aiwg_loop_spec *spec) {
    size_t i = 0;
    while (i < loops->job_count && strcmp(loops->jobs[i].job, spec->job) != 0)
        i++;
    if (i == WEFT_AIWG_LOOP_JOBS)
        return;
    job_run *run = &loops->jobs[i];
    if (i == loops->job_count) {
        loops->job_count++;
        snprintf(run->job, sizeof run->job, "%s", spec->job);
    }
    snprintf(run->action, sizeof run->action, "%s", spec->action);
    run->last_ms = weft__engine_now(loops->engine);
    run->count++;
}

int weft__aiwg_loops_submit(weft_aiwg_loops *loops, const weft_aiwg_loop_spec *spec, weft_aiwg_loop_place *ret,
                            char why[WEFT_AIWG_LOOP_WHY]) {
    weft_aiwg_loops_state state;
    weft__aiwg_loops_state(loops, &state);
    int r = refuse_loop(loops, spec, &state, weft__aiwg_circuit_allows(&loops->circuit, mono_now(loops)), why);
    if (r < 0)
        return r;
    warn_of_budget(loops, &state);
    aiwg_loop *loop = new_aiwg_loop(loops, spec);
    if (!loop)
        return -ENOMEM;
    weft_aiwg_loop_place place = {.position = 0};
    snprintf(place.id, sizeof place.id, "%s", loop->id);
    if (state.running >= (size_t) state.limits.max_running) {
        place.position = put_in_queue(loops, loop);
        tell_loops_event(loops, "loop:queued",
                         WEFT_OBJ({"loopId", weft_str(loop->id)}, {"position", weft_int(place.position)},
                                  {"queueDepth", weft_uint(loops->queued_count)}));
    } else if ((r = run_loop(loops, loop)) < 0) {
        free_loop(loop);
        snprintf(why, WEFT_AIWG_LOOP_WHY, "%s", r == -ENOBUFS ? "Queue full" : weft_strerror(r));
        return r == -ENOMEM ? r : -EPERM;
    }
    if (spec->job)
        remember_job(loops, spec);
    *ret = place;
    return 0;
}

bool weft__aiwg_loops_cancel(weft_aiwg_loops *loops, const char *id, const char *by) {
    aiwg_loop *waits = find_in(&loops->queued, id, NULL), *runs = find_in(&loops->running, id, NULL);
    if (waits) {
        loops->queued_count--;
        free_loop(waits);
        return true;
    }
    if (!runs)
        return false;
    runs->killed = true; /* it may end by itself meanwhile, and is not to be started again */
    if (!*runs->task)
        runs->cancelled = true;
    else if (weft__task_cancel(loops->engine, runs->task, by, on_loop_cancelled, NULL) < 0)
        return false;
    return true;
}

bool weft__aiwg_loops_kill(weft_aiwg_loops *loops, const char *id, int number) {
    aiwg_loop *loop = find_in(&loops->running, id, NULL);
    const weft_task *task = loop && *loop->task ? weft__task_find(loops->engine, loop->task) : NULL;
    if (!task || task->state != WEFT_TASK_RUNNING || task->pid <= 0)
        return false;
    if (kill(-task->pid, number) < 0 && kill(task->pid, number) < 0)
        return false;
    loop->killed = true;
    return true;
}

/* ---- life ---- */

int weft__aiwg_loops_new(const weft_aiwg_loops_opts *opts, weft_aiwg_loops **ret) {
    const weft_alloc *alloc = opts->hub->alloc;
    weft_aiwg_loops *loops = weft__zalloc(alloc, sizeof *loops);
    if (!loops)
        return -ENOMEM;
    loops->opts = *opts;
    loops->alloc = alloc;
    loops->engine = opts->hub->engine;
    int64_t *restarts = &loops->opts.limits.max_restarts;
    *restarts = *restarts > MAX_FAILURES ? MAX_FAILURES : *restarts < 1 ? 1 : *restarts;
    loops->circuit = (weft_aiwg_circuit){.threshold = opts->limits.threshold, .cooldown_ms = opts->limits.cooldown_ms};
    weft__list_init(&loops->running);
    weft__list_init(&loops->queued);
    weft__list_init(&loops->listener.link);
    weft__timer_init(&loops->timer, on_circuit_due);
    loops->history = weft__zalloc(alloc, WEFT_AIWG_LOOP_HISTORY * sizeof *loops->history);
    loops->lost = weft__zalloc(alloc, WEFT_AIWG_LOOP_HISTORY * sizeof *loops->lost);
    if (!loops->history || !loops->lost) {
        weft__aiwg_loops_free(loops);
        return -ENOMEM;
    }
    loops->listener.on_event = on_loop_event;
    weft__engine_listen(loops->engine, &loops->listener);
    *ret = loops;
    return 0;
}

void weft__aiwg_loops_stop(weft_aiwg_loops *loops) {
    if (!loops)
        return;
    loops->stopping = true;
    while (!weft__list_empty(&loops->queued))
        free_loop(WEFT_CONTAINER(loops->queued.next, aiwg_loop, link));
    loops->queued_count = 0;
}

weft_aiwg_loops *weft__aiwg_loops_free(weft_aiwg_loops *loops) {
    if (!loops)
        return NULL;
    weft__aiwg_loops_stop(loops);
    weft__engine_unlisten(&loops->listener);
    weft__timer_stop(weft__engine_loop(loops->engine), &loops->timer);
    while (!weft__list_empty(&loops->running)) {
        aiwg_loop *loop = WEFT_CONTAINER(loops->running.next, aiwg_loop, link);
        weft__list_remove(&loop->link);
        loop->loops = NULL;
        if (!loop->submitting)
            free_loop(loop);
    }
    weft__free(loops->alloc, loops->history);
    weft__free(loops->alloc, loops->lost);
    return weft__free(loops->alloc, loops);
}
