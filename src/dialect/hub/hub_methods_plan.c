/* What the hub knows of plans: plan.list, plan.get, plan.cancel. How one is made and run is the planner's vocabulary. */
#include <errno.h>
#include <string.h>

#include "hub_methods.h"
#include "reply.h"
#include "write.h"

struct plan_name {
    const char *planId;
};
const weft_param weft__hub_plan_params[] = {
    {"planId", WEFT_PARAM_str, offsetof(struct plan_name, planId), WEFT_REQUIRED | WEFT_NONEMPTY, "which plan"},
    WEFT_END(struct plan_name),
};
struct plans_page {
    int64_t limit;
};
const weft_param weft__hub_plans_params[] = {
    WEFT_MAY(struct plans_page, limit, int, "how many; 50 when absent"),
    WEFT_END(struct plans_page),
};

#define MOST_PLANS 50

/* ---- writing ---- */

static int write_counts(weft_buf *out, const weft_alloc *alloc, const weft_planned *planned) {
    size_t counts[WEFT_STEP_STATES] = {0};
    weft_member members[WEFT_STEP_STATES];
    for (size_t i = 0; i < planned->plan->count; i++)
        counts[planned->steps[i].state]++;
    for (size_t i = 0; i < WEFT_STEP_STATES; i++)
        members[i] = (weft_member){weft__step_states[i], weft_uint(counts[i])};
    weft_val value = weft_obj(members, WEFT_STEP_STATES);
    return weft__write_val(out, alloc, &value);
}

/* tasks: JSON, a list of them; empty: they are left out. */
static int write_planned(weft_buf *out, const weft_alloc *alloc, const weft_planned *planned, weft_bytes tasks) {
    char created[WEFT_STAMP], started[WEFT_STAMP], ended[WEFT_STAMP];
    weft_buf counts = {0};
    int r = write_counts(&counts, alloc, planned);
    weft_val value = WEFT_OBJ(
        {"id", weft_str(planned->id)}, {"state", weft_str(weft__plan_states[planned->state])},
        {"stopping", weft_str_or_none(planned->stopping)}, {"request", weft_str(planned->plan->request)},
        {"createdBy", weft__text_or_none(planned->by)}, {"createdAt", weft__stamp_val(planned->created_ms, created)},
        {"startedAt", weft__stamp_val(planned->started_ms, started)}, {"endedAt", weft__stamp_val(planned->ended_ms, ended)},
        {"timeLimitMs", planned->time_limit_ms ? weft_int(planned->time_limit_ms) : weft_null()},
        {"taskCount", weft_uint(planned->plan->count)},
        {"counts", weft_raw(weft__buf_head(&counts), weft__buf_len(&counts))},
        {"explanation", tasks.len ? weft_str_or_none(planned->plan->explanation) : weft_none()},
        {"estimatedSeconds", tasks.len && planned->plan->estimated_s ? weft_int(planned->plan->estimated_s) : weft_none()},
        {"tasks", tasks.len ? weft_raw(tasks.data, tasks.len) : weft_none()});
    if (r >= 0)
        r = weft__write_val(out, alloc, &value);
    weft__buf_done(&counts, alloc);
    return r;
}

static int write_step(weft_buf *out, const weft_alloc *alloc, const weft_planned *planned, size_t i) {
    const weft_plan_step *step = &planned->plan->steps[i];
    const weft_planned_step *is = &planned->steps[i];
    char started[WEFT_STAMP], ended[WEFT_STAMP];
    weft_val needs[WEFT_PLAN_STEPS];
    for (size_t n = 0; n < step->need_count; n++)
        needs[n] = weft_str(planned->plan->steps[step->needs[n]].id);
    weft_val value =
        WEFT_OBJ({"id", weft_str(step->id)}, {"type", weft_str(step->type)}, {"description", weft_str(step->title)},
                 {"dependencies", weft_arr(needs, step->need_count)}, {"priority", weft_int(step->priority)},
                 {"state", weft_str(weft__step_states[is->state])}, {"taskId", *is->task ? weft_str(is->task) : weft_null()},
                 {"reason", weft__text_or_none(is->reason)}, {"error", weft__text_or_none(is->error)},
                 {"startedAt", weft__stamp_val(is->started_ms, started)}, {"endedAt", weft__stamp_val(is->ended_ms, ended)});
    return weft__write_val(out, alloc, &value);
}

static int write_steps(weft_buf *out, const weft_alloc *alloc, const weft_planned *planned) {
    int r = weft__buf_put(out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < planned->plan->count; i++) {
        r = i ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_step(out, alloc, planned, i);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

static int reply_plan(weft_req *req, const weft_hub *hub, const weft_planned *planned) {
    weft_buf steps = {0}, plan = {0};
    int r = write_steps(&steps, hub->alloc, planned);
    if (r >= 0)
        r = write_planned(&plan, hub->alloc, planned, (weft_bytes){weft__buf_head(&steps), weft__buf_len(&steps)});
    if (r >= 0)
        weft__reply_val(req, WEFT_OBJ({"plan", weft_raw(weft__buf_head(&plan), weft__buf_len(&plan))}));
    else
        weft__reply_failure(req, r);
    weft__buf_done(&steps, hub->alloc);
    weft__buf_done(&plan, hub->alloc);
    return 0;
}

/* ---- the methods ---- */

static int refuse_no_plan(weft_req *req) {
    return weft__reply_error(req, 404, "planNotFound", "There is no such plan");
}

int weft__hub_plans(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct plans_page *in = weft_req_params(req);
    int64_t left = in->limit ? in->limit : MOST_PLANS;
    weft_buf out = {0};
    (void) params;
    if (in->limit < 0 || in->limit > WEFT_PLANS)
        return weft__reply_invalid(req, "/limit", "limit must be from 1 to %d", WEFT_PLANS);
    int r = weft__buf_put(&out, hub->alloc, "[", 1);
    const weft_planned *planned = hub->plans ? weft__plans_newest(hub->plans) : NULL;
    for (; r >= 0 && planned && left-- > 0; planned = weft__plans_older(hub->plans, planned)) {
        r = weft__buf_len(&out) > 1 ? weft__buf_put(&out, hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_planned(&out, hub->alloc, planned, (weft_bytes){0});
    }
    if (r >= 0)
        r = weft__buf_put(&out, hub->alloc, "]", 1);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"plans", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, hub->alloc);
    return r;
}

int weft__hub_plan_get(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct plan_name *in = weft_req_params(req);
    const weft_planned *planned = hub->plans ? weft__plans_find(hub->plans, in->planId) : NULL;
    (void) params;
    return planned ? reply_plan(req, hub, planned) : refuse_no_plan(req);
}

/* Outlives the request: the plan may take a while to end. */
struct plan_cancel {
    const weft_hub *hub;
    weft_req *req;
};

static void on_plan_cancelled(void *ctx, int r, const weft_planned *planned) {
    struct plan_cancel *cancel = ctx;
    const weft_hub *hub = cancel->hub;
    weft_req *req = cancel->req;
    weft__free(hub->alloc, cancel);
    if (r < 0)
        weft__reply_failure(req, r == -ECANCELED ? -ESHUTDOWN : r);
    else
        weft__reply_val(req,
                        WEFT_OBJ({"planId", weft_str(planned->id)}, {"state", weft_str(weft__plan_states[planned->state])}));
}

int weft__hub_plan_cancel(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct plan_name *in = weft_req_params(req);
    char who[WEFT_WHO];
    (void) params;
    struct plan_cancel *cancel = hub->plans ? weft__zalloc(hub->alloc, sizeof *cancel) : NULL;
    if (!cancel)
        return hub->plans ? -ENOMEM : refuse_no_plan(req);
    *cancel = (struct plan_cancel){hub, weft__req_keep(req)};
    int r = weft__plans_cancel(hub->plans, in->planId, weft__who(weft_req_identity(req), who), on_plan_cancelled, cancel);
    if (r >= 0)
        return 0;
    weft__free(hub->alloc, cancel);
    return r == -ENOENT     ? refuse_no_plan(req)
           : r == -EALREADY ? weft__reply_error(req, 409, "planEnded", "The plan has ended already")
                            : weft__reply_failure(req, r);
}
