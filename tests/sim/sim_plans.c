/* Plans in the simulation: somebody makes and runs them, and cancels some. What their tasks may do, and when a plan may end,
 * is checked against what is on the disk. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "plans.h"
#include "sim.h"

#define MOST_PLANS 256
#define MOST_STEPS 5

/* A plan as it was made; which one it became is known by its request. */
typedef struct sim_made {
    unsigned steps;
    unsigned needs[MOST_STEPS]; /* a bit for each */
    char id[SIM_NAME];          /* "": not on the disk */
    bool finished, resumed, removed;
} sim_made;

static struct {
    weft_plans *plans;
    bool told;
    sim_made made[MOST_PLANS];
    size_t count;
} box;

/* ---- making them ---- */

static void write_plan(const sim_made *made, size_t number, char *ret, size_t size) {
    int n = snprintf(ret, size, "{\"user_request\":\"wish-%zu\",\"tasks\":[", number);
    for (unsigned i = 0; i < made->steps; i++) {
        n += snprintf(ret + n, size - (size_t) n,
                      "%s{\"id\":\"s%u\",\"type\":\"t\",\"prompt\":\"p%zu-%u\",\"priority\":%u,\"dependencies\":[",
                      i ? "," : "", i, number, i, sim_below(3));
        bool first = true;
        for (unsigned need = 0; need < i; need++)
            if (made->needs[i] & 1u << need) {
                n += snprintf(ret + n, size - (size_t) n, "%s\"s%u\"", first ? "" : ",", need);
                first = false;
            }
        n += snprintf(ret + n, size - (size_t) n, "]}");
    }
    snprintf(ret + n, size - (size_t) n, "]}");
}

static void ignore_plan(void *ctx, int r, const weft_planned *planned) {
    (void) ctx, (void) r, (void) planned;
}

static void on_made(void *ctx, int r, const weft_planned *planned) {
    (void) ctx;
    if (r >= 0 && box.plans)
        (void) weft__plans_run(box.plans, planned->id, sim_chance(20) ? sim_below(20) + 1 : 0, NULL, ignore_plan, NULL);
}

static void make_plan(void) {
    char text[2048], why[WEFT_PLAN_WHY];
    weft_doc *doc = NULL;
    weft_plan *plan = NULL;
    if (box.count == MOST_PLANS)
        return;
    sim_made *made = &box.made[box.count];
    *made = (sim_made){.steps = sim_below(MOST_STEPS) + 1};
    for (unsigned i = 1; i < made->steps; i++)
        made->needs[i] = sim_below(1u << i);
    write_plan(made, box.count++, text, sizeof text);
    if (weft_doc_parse(text, strlen(text), NULL, &doc) < 0)
        abort();
    int r = weft__plan_read(weft_doc_root(doc), NULL, sim_alloc(), &plan, why);
    weft_doc_free(doc);
    if (r == -EINVAL)
        sim_broken("plan: a plan that is right was refused: %s", why);
    if (r >= 0)
        r = weft__plans_create(box.plans, plan, NULL, on_made, NULL);
    sim_say("plan    %zu is made: %d", box.count - 1, r);
    if (r < 0)
        weft__plan_free(plan);
}

static void cancel_plan(void) {
    for (const weft_planned *is = weft__plans_newest(box.plans); is; is = weft__plans_older(box.plans, is))
        if (is->state == WEFT_PLAN_RUNNING && sim_chance(50)) {
            sim_say("plan    %s is cancelled", is->id);
            (void) weft__plans_cancel(box.plans, is->id, "sim", ignore_plan, NULL);
            return;
        }
}

void plans_step(void) {
    if (!box.plans)
        return;
    if (sim_chance(70))
        make_plan();
    else
        cancel_plan();
}

/* ---- the daemon ---- */

static void on_plans_ready(void *ctx, int r) {
    (void) ctx;
    sim_say("plans   read: %d", r);
}

void plans_start(weft_engine *engine) {
    if (!sim_now_plan()->plans)
        return;
    if (weft__plans_new(&(weft_plans_opts){.engine = engine, .retries = 1}, on_plans_ready, NULL, &box.plans) < 0)
        abort();
    for (size_t i = 0; i < box.count; i++)
        box.made[i].resumed |= *box.made[i].id && !box.made[i].finished;
}

void plans_stop(void) {
    box.plans = weft__plans_free(box.plans);
}

void plans_open(void) {
    memset(&box, 0, sizeof box);
}

bool plans_at_rest(void) {
    if (!sim_now_plan()->plans)
        return true;
    for (const weft_planned *is = box.plans ? weft__plans_newest(box.plans) : NULL; is;
         is = weft__plans_older(box.plans, is))
        if (is->state == WEFT_PLAN_RUNNING)
            return false;
    for (size_t i = 0; i < box.count; i++)
        if (*box.made[i].id && !box.made[i].finished && !truth_trimmed_after(0) && box.plans &&
            !weft__plans_find(box.plans, box.made[i].id))
            return false;
    return box.plans != NULL;
}

/* ---- what is on the disk ---- */

static sim_made *find_made(const char *id) {
    for (size_t i = 0; i < box.count; i++)
        if (strcmp(box.made[i].id, id) == 0)
            return &box.made[i];
    return NULL;
}

static const truth_task *task_of(const sim_made *made, unsigned step) {
    char key[64];
    snprintf(key, sizeof key, "plan/%s/s%u", made->id, step);
    for (size_t i = 0; i < truth_tasks(); i++)
        if (strcmp(truth_task_at(i)->key, key) == 0)
            return truth_task_at(i);
    return NULL;
}

/* A step of a plan is a task only when everything that it needs has completed, and never again when the plan is over. */
static void check_queued(const weft_json *data) {
    char id[SIM_NAME];
    unsigned step;
    if (sscanf(weft_get_str(data, "key", ""), "plan/%31[^/]/s%u", id, &step) != 2)
        return;
    const sim_made *made = find_made(id);
    if (!made || step >= made->steps) {
        sim_broken("plan: a task of %s, which is not on the disk", id);
        return;
    }
    if (made->finished)
        sim_broken("plan: s%u of %s was queued after the plan had ended", step, id);
    for (unsigned need = 0; need < step; need++) {
        const truth_task *task = task_of(made, need);
        if (made->needs[step] & 1u << need && (!task || task->state != TRUTH_COMPLETED))
            sim_broken("plan: s%u of %s was queued before s%u had completed", step, id, need);
    }
}

static void check_finished(sim_made *made, const weft_json *data) {
    unsigned completed = 0;
    const char *state = weft_get_str(data, "state", "");
    if (made->finished)
        sim_broken("plan: %s ended twice", made->id);
    made->finished = true;
    for (unsigned i = 0; i < made->steps; i++) {
        const truth_task *task = task_of(made, i);
        if (task && task->state <= TRUTH_RUNNING)
            sim_broken("plan: %s ended before its s%u", made->id, i);
        completed += task && task->state == TRUTH_COMPLETED;
    }
    if ((strcmp(state, "completed") == 0) != (completed == made->steps))
        sim_broken("plan: %s is %s, and %u of %u have completed", made->id, state, completed, made->steps);
    sim_saw(strcmp(state, "completed") == 0 ? SAW_PLAN : SAW_PLAN_ENDED);
    if (made->resumed && strcmp(state, "completed") == 0)
        sim_saw(SAW_PLAN_RESUMED);
}

void plans_truth(const char *type, const weft_json *data) {
    size_t number;
    if (strcmp(type, "task.queued") == 0)
        check_queued(data);
    if (strncmp(type, "plan.", 5) != 0)
        return;
    const char *id = weft_get_str(data, "planId", "");
    if (strcmp(type, "plan.created") == 0 && sscanf(weft_get_str(data, "request", ""), "wish-%zu", &number) == 1) {
        if (find_made(id))
            sim_broken("plan: the id %s is used twice", id);
        snprintf(box.made[number].id, sizeof box.made[number].id, "%s", id);
        return;
    }
    sim_made *made = find_made(id);
    if (!made)
        sim_broken("plan: %s for %s, which is not on the disk", type, id);
    else if (strcmp(type, "plan.finished") == 0)
        check_finished(made, data);
    else if (strcmp(type, "plan.forgotten") == 0 || strcmp(type, "plan.removed") == 0) {
        if (!made->finished || made->removed)
            sim_broken("plan: %s for %s, which %s", type, id, made->removed ? "is gone" : "has not ended");
        made->removed = strcmp(type, "plan.removed") == 0;
        sim_saw(made->removed ? SAW_PLAN_REMOVED : SAW_PLAN_FORGOTTEN);
    } else if (made->finished)
        sim_broken("plan: %s for %s, which has ended", type, id);
}

/* The disk is another. */
void plans_forget(void) {
    for (size_t i = 0; i < box.count; i++)
        *box.made[i].id = '\0';
}
