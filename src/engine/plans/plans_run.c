/* What happens next in a plan. Everything goes through look_at_plan(): it sees what has become of the steps, stores that in
 * one append, and when that is durable and nothing new has come, it acts: submits steps that may run, or cancels those that
 * must end.
 *
 *     waiting ──submitted──▶ queued ◀──▶ running ──▶ completed, failed, cancelled
 *     waiting ──what it needs did not complete, or the plan stops──▶ skipped
 *
 * A step is submitted with a key of its own. If the daemon dies before it is stored that the step is queued, the next one
 * finds the task by the key and does not make another. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plans_private.h"
#include "utf8.h"
#include "write.h"

#define STEP_MEMBERS 7
#define STEP_KEY (WEFT_PLAN_ID + WEFT_PLAN_NAME + 8)

static void step_key(const known_plan *known, size_t i, char ret[STEP_KEY]) {
    snprintf(ret, STEP_KEY, "plan/%s/%s", known->id, known->plan->steps[i].id);
}

/* ---- when ---- */

void weft__plan_look(known_plan *known) {
    weft__later(known->plans->loop, &known->look);
}

/* Memory comes back soon, a disk that is full or broken does not. */
void weft__plan_look_again(known_plan *known, int r) {
    weft_plans *plans = known->plans;
    int64_t wait = r == -ENOMEM ? PLANS_MEMORY_MS : weft__engine_limits(plans->engine)->again_ms;
    weft__timer_set(plans->loop, &known->again, weft__add_ms(weft_loop_now(plans->loop), wait));
}

void weft__plan_again_due(weft_timer *timer) {
    weft__plan_look(WEFT_CONTAINER(timer, known_plan, again));
}

void weft__plan_limit_due(weft_timer *timer) {
    known_plan *known = WEFT_CONTAINER(timer, known_plan, limit);
    if (!known->want_stop)
        known->want_stop = "timeLimit";
    weft__plan_look(known);
}

/* The wall clock says how much of the time is over, also while no daemon ran; a clock that was set back gives it no more
 * than it had. */
static void set_limit(known_plan *known) {
    weft_plans *plans = known->plans;
    int64_t limit = known->pub.time_limit_ms, passed = weft__engine_now(plans->engine) - known->pub.started_ms;
    if (!limit)
        return;
    int64_t left = passed < 0 ? limit : passed > limit ? 0 : limit - passed;
    weft__timer_set(plans->loop, &known->limit, weft__add_ms(weft_loop_now(plans->loop), left));
}

/* ---- what has become of the steps ---- */

static void end_step(weft_planned_step *step, weft_step_state state, const char *reason, const char *error, int64_t now) {
    step->state = state;
    snprintf(step->reason, sizeof step->reason, "%s", reason);
    size_t len = weft__utf8_fit(error, strlen(error), sizeof step->error - 1);
    memcpy(step->error, error, len);
    step->error[len] = '\0';
    step->ended_ms = now;
}

static void see_task_end(weft_planned_step *step, const weft_task *task, const char *stopping) {
    static const weft_step_state states[WEFT_TASK_STATES] = {[WEFT_TASK_COMPLETED] = WEFT_STEP_COMPLETED,
                                                             [WEFT_TASK_FAILED] = WEFT_STEP_FAILED,
                                                             [WEFT_TASK_CANCELLED] = WEFT_STEP_CANCELLED};
    weft_step_state state = states[task->state];
    const char *reason = state == WEFT_STEP_FAILED ? task->reason : NULL;
    if (state == WEFT_STEP_COMPLETED && task->stop_reason && strcmp(task->stop_reason, "refusal") == 0) {
        end_step(step, WEFT_STEP_FAILED, "refused", "The agent refused.", task->completed_ms);
        return;
    }
    if (state == WEFT_STEP_CANCELLED)
        reason = stopping ? stopping : "cancelled";
    end_step(step, state, reason ? reason : "", state == WEFT_STEP_FAILED && task->error ? task->error : "",
             task->completed_ms);
}

/* Also by a task that was submitted, which is not stored with the plan yet. */
static known_plan *find_by_task(const weft_plans *plans, const char *task, size_t *ret) {
    for (weft_link *link = plans->all.prev; link != &plans->all; link = link->prev) {
        known_plan *known = WEFT_CONTAINER(link, known_plan, link);
        if (known->pub.state != WEFT_PLAN_RUNNING)
            continue;
        for (size_t i = 0; i < known->plan->count; i++)
            if (strcmp(known->steps[i].task, task) == 0 || strcmp(known->work[i].task, task) == 0) {
                *ret = i;
                return known;
            }
    }
    return NULL;
}

void weft__plans_hear(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    weft_plans *plans = WEFT_CONTAINER(listener, weft_plans, listener);
    if (strcmp(event->type, "session.deleted") == 0)
        weft__plans_look_at_ended(plans);
    if (!plans->running || strncmp(event->type, "task.", 5) != 0)
        return;
    weft_json member = weft_get(data, "taskId");
    weft_bytes text;
    char id[32];
    if (weft_bytes_of(&member, &text) < 0 || text.len >= sizeof id)
        return;
    memcpy(id, text.data, text.len);
    id[text.len] = '\0';
    size_t i;
    known_plan *known = find_by_task(plans, id, &i);
    if (!known)
        return;
    const weft_task *task = weft__task_find(plans->engine, id);
    if (task && task->state >= WEFT_TASK_COMPLETED)
        see_task_end(&known->work[i].seen, task, known->next_stopping);
    weft__plan_look(known);
}

static void see_task(const known_plan *known, const step_work *work, weft_planned_step *step) {
    const weft_task *task = weft__task_find(known->plans->engine, step->task);
    if (!task && weft__step_is_over(work->seen.state)) {
        end_step(step, work->seen.state, work->seen.reason, work->seen.error, work->seen.ended_ms);
        return;
    }
    if (!task) {
        end_step(step, WEFT_STEP_FAILED, "forgotten", "What became of its task is no longer known.",
                 weft__engine_now(known->plans->engine));
        return;
    }
    if (task->started_ms)
        step->started_ms = task->started_ms;
    if (task->state >= WEFT_TASK_COMPLETED)
        see_task_end(step, task, known->next_stopping);
    else
        step->state = task->state == WEFT_TASK_RUNNING ? WEFT_STEP_RUNNING : WEFT_STEP_QUEUED;
}

/* A step that it needs and that did not complete; NULL: there is none. */
static const weft_plan_step *failed_need(const known_plan *known, const weft_plan_step *step, weft_step_state *ret) {
    for (size_t i = 0; i < step->need_count; i++) {
        *ret = known->next[step->needs[i]].state;
        if (weft__step_is_over(*ret) && *ret != WEFT_STEP_COMPLETED)
            return &known->plan->steps[step->needs[i]];
    }
    return NULL;
}

static void see_waiting(known_plan *known, size_t i, int64_t now) {
    weft_planned_step *step = &known->next[i];
    weft_step_state state;
    char error[WEFT_STEP_ERROR];
    const weft_plan_step *need = failed_need(known, &known->plan->steps[i], &state);
    if (known->work[i].refused < 0) {
        snprintf(error, sizeof error, "It could not be queued: %s.", weft_strerror(known->work[i].refused));
        end_step(step, WEFT_STEP_FAILED, "notQueued", error, now);
    } else if (known->work[i].submitting)
        return;
    else if (known->next_stopping)
        end_step(step, WEFT_STEP_SKIPPED, known->next_stopping,
                 strcmp(known->next_stopping, "timeLimit") == 0 ? "The plan reached its time limit."
                                                                : "The plan was cancelled.",
                 now);
    else if (need) {
        snprintf(error, sizeof error, "It needs %s, which %s.", need->id,
                 state == WEFT_STEP_FAILED      ? "failed"
                 : state == WEFT_STEP_CANCELLED ? "was cancelled"
                                                : "was skipped");
        end_step(step, WEFT_STEP_SKIPPED, "dependencyFailed", error, now);
    }
}

/* In an order in which each is behind what it needs, so that one that fails is seen by all behind it at once. */
static void see_steps(known_plan *known) {
    int64_t now = weft__engine_now(known->plans->engine);
    for (size_t n = 0; n < known->plan->count; n++) {
        size_t i = known->plan->order[n];
        known->next[i] = known->steps[i];
        if (weft__step_is_over(known->next[i].state))
            continue;
        if (!*known->next[i].task)
            memcpy(known->next[i].task, known->work[i].task, sizeof known->next[i].task);
        if (*known->next[i].task)
            see_task(known, &known->work[i], &known->next[i]);
        else
            see_waiting(known, i, now);
    }
}

static void count_steps(const known_plan *known, size_t ret[WEFT_STEP_STATES]) {
    memset(ret, 0, WEFT_STEP_STATES * sizeof *ret);
    for (size_t i = 0; i < known->plan->count; i++)
        ret[known->next[i].state]++;
}

static void see_end(known_plan *known) {
    size_t counts[WEFT_STEP_STATES];
    count_steps(known, counts);
    if (counts[WEFT_STEP_WAITING] || counts[WEFT_STEP_QUEUED] || counts[WEFT_STEP_RUNNING])
        return;
    bool cancelled = known->next_stopping && strcmp(known->next_stopping, "cancelled") == 0;
    /* What had completed before the stop was noticed has completed. */
    known->next_state = counts[WEFT_STEP_COMPLETED] == known->plan->count ? WEFT_PLAN_COMPLETED
                        : cancelled                                       ? WEFT_PLAN_CANCELLED
                                                                          : WEFT_PLAN_FAILED;
    known->next_ended = weft__engine_now(known->plans->engine);
}

static void see_changes(known_plan *known) {
    known->next_state = known->pub.state;
    known->next_started = known->pub.started_ms;
    known->next_ended = 0;
    if (!known->want_run)
        known->next_limit = known->pub.time_limit_ms;
    known->next_stopping = known->want_stop;
    if (known->pub.state == WEFT_PLAN_CREATED && known->want_run) {
        known->next_state = WEFT_PLAN_RUNNING;
        known->next_started = weft__engine_now(known->plans->engine);
    }
    see_steps(known);
    if (known->next_state == WEFT_PLAN_RUNNING || known->next_stopping)
        see_end(known);
}

/* ---- storing it ---- */

/* The events of one append, with the values that they point to. */
typedef struct plan_changes {
    const char *types[WEFT_PLAN_STEPS + 3];
    weft_val data[WEFT_PLAN_STEPS + 3];
    size_t count;
    weft_member members[WEFT_PLAN_STEPS][STEP_MEMBERS];
    weft_member started[3], stopping[3], finished[7];
} plan_changes;

static void add_change(plan_changes *changes, const char *type, const weft_member *members, size_t count) {
    changes->types[changes->count] = type;
    changes->data[changes->count++] = weft_obj(members, count);
}

static bool step_differs(const known_plan *known, size_t i) {
    return known->steps[i].state != known->next[i].state || strcmp(known->steps[i].task, known->next[i].task) != 0;
}

/* With its task's session, as every event about a task: whoever follows a session hears of it, also later. Of one that is
 * being deleted nothing is said any more. */
static void add_step(const known_plan *known, size_t i, plan_changes *changes) {
    const weft_planned_step *step = &known->next[i];
    const weft_task *task = *step->task ? weft__task_find(known->plans->engine, step->task) : NULL;
    bool stays = task && weft__session_stays(known->plans->engine, task->session);
    const weft_member members[STEP_MEMBERS] = {
        {"planId", weft_str(known->id)},
        {"id", weft_str(known->plan->steps[i].id)},
        {"state", weft_str(weft__step_states[step->state])},
        {"taskId", stays ? weft_str(task->id) : weft_none()},
        {"sessionId", stays ? weft_str(task->session) : weft_none()},
        {"reason", weft__text_or_none(step->reason)},
        {"error", stays || !*step->task ? weft__text_or_none(step->error) : weft_none()},
    };
    memcpy(changes->members[i], members, sizeof members);
    add_change(changes, "plan.task", changes->members[i], STEP_MEMBERS);
}

static const char *end_reason(const known_plan *known) {
    return known->next_state == WEFT_PLAN_COMPLETED ? "" : known->next_stopping ? known->next_stopping : "taskFailed";
}

static void add_end(const known_plan *known, plan_changes *changes) {
    size_t counts[WEFT_STEP_STATES];
    count_steps(known, counts);
    const weft_member members[7] = {
        {"planId", weft_str(known->id)},
        {"state", weft_str(weft__plan_states[known->next_state])},
        {"reason", weft__text_or_none(end_reason(known))},
        {"completed", weft_uint(counts[WEFT_STEP_COMPLETED])},
        {"failed", weft_uint(counts[WEFT_STEP_FAILED])},
        {"cancelled", weft_uint(counts[WEFT_STEP_CANCELLED])},
        {"skipped", weft_uint(counts[WEFT_STEP_SKIPPED])},
    };
    memcpy(changes->finished, members, sizeof members);
    add_change(changes, "plan.finished", changes->finished, 7);
}

static void add_changes(const known_plan *known, plan_changes *changes) {
    changes->count = 0;
    if (known->pub.state == WEFT_PLAN_CREATED && known->want_run) {
        changes->started[0] = (weft_member){"planId", weft_str(known->id)};
        changes->started[1] = (weft_member){"by", weft__text_or_none(known->start_by)};
        changes->started[2] = (weft_member){"timeLimitMs", known->next_limit ? weft_int(known->next_limit) : weft_none()};
        add_change(changes, "plan.started", changes->started, 3);
    }
    if (known->next_stopping && !known->pub.stopping) {
        changes->stopping[0] = (weft_member){"planId", weft_str(known->id)};
        changes->stopping[1] = (weft_member){"reason", weft_str(known->next_stopping)};
        changes->stopping[2] = (weft_member){"by", weft__text_or_none(known->stop_by)};
        add_change(changes, "plan.stopping", changes->stopping, 3);
    }
    for (size_t i = 0; i < known->plan->count; i++)
        if (step_differs(known, i))
            add_step(known, i, changes);
    if (weft__plan_is_over(known->next_state))
        add_end(known, changes);
}

static void tell_starters(known_plan *known, int r) {
    weft_link now;
    weft__list_push(&known->starters, &now);
    weft__list_remove(&known->starters);
    while (!weft__list_empty(&now)) {
        starter *first = WEFT_CONTAINER(now.next, starter, link);
        weft_plan_done *done = first->done;
        void *ctx = first->ctx;
        weft__list_remove(&first->link);
        weft__free(known->plans->alloc, first);
        done(ctx, r, r < 0 ? NULL : &known->pub);
    }
}

static void tell_waiters(known_plan *known) {
    weft_link now;
    weft__list_push(&known->waiters, &now);
    weft__list_remove(&known->waiters);
    while (!weft__list_empty(&now)) {
        weft_plan_waiter *first = WEFT_CONTAINER(now.next, weft_plan_waiter, link);
        weft__list_remove(&first->link);
        first->on_end(first, &known->pub);
    }
}

/* It could not be stored that it starts: it has not started. */
static void start_failed(known_plan *known, int r) {
    known->want_run = false;
    known->plans->running--;
    tell_starters(known, r);
}

/* What only a plan that runs needs. */
static void settle_ended(known_plan *known) {
    weft_plans *plans = known->plans;
    weft__timer_set(plans->loop, &known->limit, INT64_MAX);
    weft__timer_set(plans->loop, &known->again, INT64_MAX);
    known->stop_by = weft__free(plans->alloc, known->stop_by);
}

static void take_changes(known_plan *known) {
    bool starts = known->pub.state == WEFT_PLAN_CREATED && known->want_run;
    memcpy(known->steps, known->next, known->plan->count * sizeof *known->steps);
    known->pub.state = known->next_state;
    known->pub.stopping = known->next_stopping;
    known->pub.started_ms = known->next_started;
    known->pub.ended_ms = known->next_ended;
    known->pub.time_limit_ms = known->next_limit;
    if (starts) {
        known->want_run = false;
        known->resumed = true;
        set_limit(known);
    }
    if (weft__plan_is_over(known->pub.state)) {
        known->plans->running -= known->pub.started_ms != 0;
        settle_ended(known);
    }
    if (starts)
        tell_starters(known, 0);
    if (weft__plan_is_over(known->pub.state))
        tell_waiters(known);
    weft__plan_look(known);
}

static void on_changes_stored(void *ctx, int r) {
    known_plan *known = weft__plan_op_end(ctx, NULL);
    if (!known)
        return;
    known->sending = false;
    if (r >= 0) {
        take_changes(known);
        return;
    }
    if (known->want_run)
        start_failed(known, r);
    weft__plan_look_again(known, r);
}

static int send_changes(known_plan *known, const plan_changes *changes) {
    weft_plans *plans = known->plans;
    char key[PLANS_KEY], state[PLANS_KEY];
    weft_buf text = {0};
    plan_op *op = weft__plan_op(known, 0);
    known->at = weft__store_head(weft__engine_store(plans->engine));
    int r = op ? weft__plan_write_state(known, &text) : -ENOMEM;
    weft__plan_keys(known, key, state);
    if (r >= 0)
        r = weft__engine_change(
            plans->engine,
            &(weft_engine_change){.stream = WEFT_STREAM_PLANS,
                                  .types = changes->types,
                                  .data = changes->data,
                                  .count = changes->count,
                                  .documents = &(weft_document){state, {weft__buf_head(&text), weft__buf_len(&text)}},
                                  .document_count = 1},
            on_changes_stored, op);
    weft__buf_done(&text, plans->alloc);
    if (r < 0 && op)
        weft__plan_op_end(op, NULL);
    return r;
}

/* 1: an append is under way; 0: there is nothing new. */
static int store_changes(known_plan *known) {
    see_changes(known);
    plan_changes *changes = weft__alloc(known->plans->alloc, sizeof *changes);
    if (!changes)
        return -ENOMEM;
    add_changes(known, changes);
    int r = changes->count ? send_changes(known, changes) : 0;
    known->sending = r >= 0 && changes->count;
    r = r < 0 ? r : known->sending;
    weft__free(known->plans->alloc, changes);
    return r;
}

/* ---- submitting ---- */

static weft_bytes end_of_answer(const weft_task *task, size_t room) {
    size_t most = WEFT_PLAN_ANSWER < room ? WEFT_PLAN_ANSWER : room;
    size_t skip = task->tail.len > most ? task->tail.len - most : 0;
    while (skip < task->tail.len && skip && ((unsigned char) task->tail.data[skip] & 0xc0) == 0x80)
        skip++;
    return (weft_bytes){task->tail.data + skip, task->tail.len - skip};
}

static int put_answer(const known_plan *known, size_t need, size_t room, weft_buf *out) {
    const weft_alloc *alloc = known->plans->alloc;
    const weft_plan_step *step = &known->plan->steps[need];
    const weft_task *task = weft__task_find(known->plans->engine, known->steps[need].task);
    weft_bytes said = task ? end_of_answer(task, room) : (weft_bytes){"", 0};
    bool cut = task && (said.len < task->tail.len || task->tail.len < task->output_bytes);
    int r = weft__buf_put_text(out, alloc, "\n\n### ");
    if (r >= 0)
        r = weft__buf_put_text(out, alloc, step->id);
    if (r >= 0)
        r = weft__buf_put_text(out, alloc, cut ? " (the end of its answer)\n\n" : "\n\n");
    if (r >= 0 && said.len)
        r = weft__buf_put(out, alloc, said.data, said.len);
    else if (r >= 0)
        r = weft__buf_put_text(out, alloc, task ? "(It said nothing.)" : "(Its answer is no longer kept.)");
    return r;
}

/* What it is told: its prompt, its context, and what the steps that it needs answered. NUL-terminated. */
static int write_prompt(const known_plan *known, const weft_plan_step *step, weft_buf *out) {
    const weft_alloc *alloc = known->plans->alloc;
    int r = weft__buf_put_text(out, alloc, step->prompt);
    if (r >= 0 && step->context)
        r = weft__buf_put_text(out, alloc, "\n\nContext: ");
    if (r >= 0 && step->context)
        r = weft__buf_put_text(out, alloc, step->context);
    if (r >= 0 && step->need_count)
        r = weft__buf_put_text(out, alloc, "\n\nThe tasks that this one depends on are done. They answered:");
    for (size_t i = 0; r >= 0 && i < step->need_count; i++)
        r = put_answer(known, step->needs[i], WEFT_PLAN_ANSWERS / step->need_count, out);
    return r < 0 ? r : weft__buf_put(out, alloc, "", 1);
}

/* It will never be a task. Everything else may pass: the queue is full, the disk is, nobody holds the role at the moment. */
static bool is_refused(int r) {
    return r == -EINVAL || r == -EMSGSIZE || r == -ENOENT || r == -ENOTUNIQ || r == -EEXIST;
}

static void on_submitted(void *ctx, int r, const weft_task *task) {
    size_t i;
    known_plan *known = weft__plan_op_end(ctx, &i);
    if (!known)
        return;
    known->work[i].submitting = false;
    if (r >= 0)
        snprintf(known->work[i].task, sizeof known->work[i].task, "%s", task->id);
    else if (is_refused(r))
        known->work[i].refused = r;
    else
        weft__plan_look_again(known, r);
    if (r >= 0 || is_refused(r))
        weft__plan_look(known);
}

static int submit_text(known_plan *known, size_t i, const char *prompt, const char *metadata) {
    const weft_plan_step *step = &known->plan->steps[i];
    char key[STEP_KEY];
    step_key(known, i, key);
    plan_op *op = weft__plan_op(known, i);
    if (!op)
        return -ENOMEM;
    weft_task_spec spec = {.prompt = prompt,
                           .metadata = metadata,
                           .key = key,
                           .timeout_ms = step->timeout_ms,
                           .role = known->plans->opts.role,
                           .task_type = known->plans->opts.role ? step->type : NULL,
                           .retries = known->plans->opts.retries};
    int r = weft__task_submit(known->plans->engine, &spec, on_submitted, op);
    if (r < 0)
        weft__plan_op_end(op, NULL);
    return r;
}

/* Whose step it is, and what a holder of the role is sent that speaks the planner's protocol (driver_planner.h). */
static int write_metadata(const known_plan *known, const weft_plan_step *step, const char *prompt, char **ret) {
    size_t len;
    weft_val params =
        WEFT_OBJ({"task_type", weft_str(step->type)}, {"prompt", weft_str(prompt)},
                 {"context", step->context ? weft_raw(step->context, strlen(step->context)) : weft_obj(NULL, 0)},
                 {"options", weft_obj(NULL, 0)});
    return weft_to_text(WEFT_OBJ({"source", weft_str("plan")}, {"planId", weft_str(known->id)},
                                 {"planTask", weft_str(step->id)}, {"method", weft_str("execute_task")}, {"params", params}),
                        known->plans->alloc, ret, &len);
}

static int submit_step(known_plan *known, size_t i) {
    const weft_alloc *alloc = known->plans->alloc;
    weft_buf prompt = {0};
    char *metadata = NULL;
    int r = write_prompt(known, &known->plan->steps[i], &prompt);
    if (r >= 0)
        r = write_metadata(known, &known->plan->steps[i], weft__buf_head(&prompt), &metadata);
    if (r >= 0)
        r = submit_text(known, i, weft__buf_head(&prompt), metadata);
    weft_text_free(metadata, alloc);
    weft__buf_done(&prompt, alloc);
    return r;
}

static bool may_submit(const known_plan *known, size_t i) {
    const weft_plan_step *step = &known->plan->steps[i];
    const step_work *work = &known->work[i];
    if (known->steps[i].state != WEFT_STEP_WAITING || *work->task || work->submitting || work->refused)
        return false;
    for (size_t n = 0; n < step->need_count; n++)
        if (known->steps[step->needs[n]].state != WEFT_STEP_COMPLETED)
            return false;
    return true;
}

/* Of those that may, the highest priority, and the first of the plan among equals; count: there is none. */
static size_t next_step(const known_plan *known) {
    const weft_plan *plan = known->plan;
    size_t best = plan->count;
    for (size_t i = 0; i < plan->count; i++)
        if (may_submit(known, i) && (best == plan->count || plan->steps[i].priority > plan->steps[best].priority))
            best = i;
    return best;
}

/* No more than could run at a time: what waits in the queue would be before a step of a higher priority that comes later,
 * and would fill it for everybody else. */
static bool has_room(const known_plan *known) {
    size_t most = weft__engine_limits(known->plans->engine)->max_running, n = 0;
    for (size_t i = 0; i < known->plan->count; i++)
        n += known->work[i].submitting || (known->steps[i].state == WEFT_STEP_WAITING && *known->work[i].task) ||
             known->steps[i].state == WEFT_STEP_QUEUED || known->steps[i].state == WEFT_STEP_RUNNING;
    return n < (most == SIZE_MAX ? 1 : most);
}

static void submit_steps(known_plan *known) {
    size_t i;
    while (has_room(known) && (i = next_step(known)) < known->plan->count) {
        int r = submit_step(known, i);
        if (r >= 0)
            known->work[i].submitting = true;
        else if (is_refused(r)) {
            known->work[i].refused = r;
            weft__plan_look(known);
        } else {
            weft__plan_look_again(known, r);
            return;
        }
    }
}

/* ---- cancelling ---- */

static void on_step_cancelled(void *ctx, int r, const weft_task *task) {
    size_t i;
    known_plan *known = weft__plan_op_end(ctx, &i);
    (void) task;
    if (!known)
        return;
    known->work[i].cancelling = false;
    if (r >= 0 || r == -EALREADY)
        weft__plan_look(known);
    else
        weft__plan_look_again(known, r);
}

static void cancel_step(known_plan *known, size_t i) {
    plan_op *op = weft__plan_op(known, i);
    const char *by = known->stop_by ? known->stop_by : "plan";
    int r = op ? weft__task_cancel(known->plans->engine, known->steps[i].task, by, on_step_cancelled, op) : -ENOMEM;
    known->work[i].cancelling = r >= 0;
    if (r < 0 && op)
        weft__plan_op_end(op, NULL);
    if (r < 0 && r != -EALREADY)
        weft__plan_look_again(known, r);
}

static void cancel_steps(known_plan *known) {
    for (size_t i = 0; i < known->plan->count; i++) {
        const weft_planned_step *step = &known->steps[i];
        if (*step->task && !weft__step_is_over(step->state) && !known->work[i].cancelling)
            cancel_step(known, i);
    }
}

/* ---- all of it ---- */

static void look_at_plan(known_plan *known) {
    if (!known->stored || known->leaving || known->sending)
        return;
    if (weft__plan_is_over(known->pub.state)) {
        weft__plan_forget(known);
        return;
    }
    if (known->pub.state == WEFT_PLAN_RUNNING && !known->resumed)
        return;
    int r = store_changes(known);
    if (r < 0 && known->want_run)
        start_failed(known, r);
    if (r < 0)
        weft__plan_look_again(known, r);
    if (r != 0 || known->pub.state != WEFT_PLAN_RUNNING)
        return;
    if (known->pub.stopping)
        cancel_steps(known);
    else
        submit_steps(known);
}

void weft__plan_look_due(weft_later *later) {
    look_at_plan(WEFT_CONTAINER(later, known_plan, look));
}

/* A task that was submitted, when the daemon died before it was stored which one it is. */
static void find_task(known_plan *known, size_t i) {
    char key[STEP_KEY];
    step_key(known, i, key);
    const weft_task *task = weft__task_find_key(known->plans->engine, key);
    if (task)
        snprintf(known->work[i].task, sizeof known->work[i].task, "%s", task->id);
}

void weft__plan_resume(known_plan *known) {
    if (known->pub.state != WEFT_PLAN_RUNNING || known->resumed)
        return;
    for (size_t i = 0; i < known->plan->count; i++)
        if (known->steps[i].state == WEFT_STEP_WAITING && !*known->steps[i].task)
            find_task(known, i);
    known->resumed = true;
    set_limit(known);
    weft__plan_look(known);
}
