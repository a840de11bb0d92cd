/* What a plan says of its steps goes with their tasks: when a session is deleted, and when a task is forgotten for its age.
 * What is left of such a step is its name and how it ended. A plan all of whose tasks are gone goes with them.
 *
 * It happens to plans that are over. One that was not stored before the daemon died is found at the next start, when what is
 * known of old tasks is read. */
#include <errno.h>
#include <string.h>

#include "plans_private.h"

static const char gone[] = "(no longer kept)";

static bool is_task_gone(const known_plan *known, size_t i) {
    return !weft__task_find(known->plans->engine, known->steps[i].task);
}

static bool says_something(const known_plan *known, size_t i) {
    return strcmp(known->plan->steps[i].prompt, gone) != 0 || *known->steps[i].error;
}

/* ---- storing it ---- */

static void on_forgotten(void *ctx, int r) {
    known_plan *known = weft__plan_op_end(ctx, NULL);
    if (!known)
        return;
    known->sending = false;
    if (r < 0) {
        weft__plan_look_again(known, r);
        return;
    }
    if (known->removing) {
        weft__plan_drop(known);
        return;
    }
    known->forgetting = false;
    memcpy(known->steps, known->next, known->plan->count * sizeof *known->steps);
    weft__plan_look(known); /* there may be more by now */
}

static int send_forgotten(known_plan *known, const char *type, const weft_document *documents) {
    weft_val data = WEFT_OBJ({"planId", weft_str(known->id)});
    plan_op *op = weft__plan_op(known, 0);
    int r = op ? weft__engine_change(known->plans->engine,
                                     &(weft_engine_change){.stream = WEFT_STREAM_PLANS,
                                                           .types = &type,
                                                           .data = &data,
                                                           .count = 1,
                                                           .documents = documents,
                                                           .document_count = 2},
                                     on_forgotten, op)
               : -ENOMEM;
    known->sending = r >= 0;
    if (r < 0 && op)
        weft__plan_op_end(op, NULL);
    return r;
}

static int remove_plan(known_plan *known) {
    char keys[2][PLANS_KEY];
    weft__plan_keys(known, keys[0], keys[1]);
    const weft_document documents[2] = {{.key = keys[0]}, {.key = keys[1]}};
    known->removing = true;
    return send_forgotten(known, "plan.removed", documents);
}

static void take_out_texts(known_plan *known) {
    memcpy(known->next, known->steps, known->plan->count * sizeof *known->next);
    known->next_state = known->pub.state;
    known->next_stopping = known->pub.stopping;
    known->next_started = known->pub.started_ms;
    known->next_ended = known->pub.ended_ms;
    known->next_limit = known->pub.time_limit_ms;
    for (size_t i = 0; i < known->plan->count; i++) {
        weft_plan_step *step = &known->plan->steps[i];
        if (!*known->steps[i].task || !is_task_gone(known, i))
            continue;
        step->title = step->prompt = gone;
        step->context = NULL;
        *known->next[i].error = '\0';
    }
    known->forgetting = true; /* until that is stored */
}

static int store_without(known_plan *known) {
    char keys[2][PLANS_KEY];
    weft_buf plan = {0}, state = {0};
    take_out_texts(known);
    weft__plan_keys(known, keys[0], keys[1]);
    int r = weft__plan_write_saved(known, &plan);
    if (r >= 0)
        r = weft__plan_write_state(known, &state);
    const weft_document documents[2] = {{keys[0], {weft__buf_head(&plan), weft__buf_len(&plan)}},
                                        {keys[1], {weft__buf_head(&state), weft__buf_len(&state)}}};
    if (r >= 0)
        r = send_forgotten(known, "plan.forgotten", documents);
    weft__buf_done(&plan, known->plans->alloc);
    weft__buf_done(&state, known->plans->alloc);
    return r;
}

/* ---- what is to go ---- */

void weft__plan_forget(known_plan *known) {
    size_t tasks = 0, left = 0, fresh = known->forgetting;
    if (weft__engine_past(known->plans->engine) < 0)
        return; /* it is looked at again when old tasks are known */
    for (size_t i = 0; i < known->plan->count; i++) {
        if (!*known->steps[i].task)
            continue;
        tasks++;
        left += !is_task_gone(known, i);
        fresh += is_task_gone(known, i) && says_something(known, i);
    }
    int r = tasks && !left ? remove_plan(known) : fresh ? store_without(known) : 0;
    if (r < 0)
        weft__plan_look_again(known, r);
}

/* What was asked for goes from the journal with the last of its sessions. */
bool weft__plans_erase_too(void *ctx, const char *session, const weft_json *data) {
    const weft_plans *plans = ctx;
    const known_plan *known = weft__plan_known(plans, weft_get_str(data, "planId", ""));
    bool of_it = false;
    for (size_t i = 0; known && i < known->plan->count; i++) {
        const weft_task *task = *known->steps[i].task ? weft__task_find(plans->engine, known->steps[i].task) : NULL;
        if (task && strcmp(task->session, session) != 0)
            return false;
        of_it |= task != NULL;
    }
    return of_it && weft__plan_is_over(known->pub.state);
}
