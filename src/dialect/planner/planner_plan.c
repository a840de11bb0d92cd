/* create_plan: a request becomes a plan, by whoever holds the role of the planner. What it says is a task's output like any
 * other; the plan is looked for in it and checked. An agent whose plan is wrong is told so and may try once more, in the
 * same session; somebody who speaks this protocol is expected to answer with a plan.
 *
 *     asked ──stored──▶ awaited ──the task's end──▶ read ──a plan──▶ stored ──▶ answered
 *                          ▲                          │ no plan, the first time
 *                          └──────── asked again ◀────┘ */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "doc.h"
#include "planner.h"
#include "planner_plan.h"
#include "reply.h"
#include "write.h"

/* Longer than any id of a task. */
#define TASK_ID 64

struct planning {
    const weft_hub *hub;
    weft_req *req;      /* NULL: nobody waits for the answer any more */
    bool withdrawn;     /* it was cancelled before there was a task */
    bool again;         /* it was told what is wrong with its first plan */
    char task[TASK_ID]; /* "": not stored yet */
    char session[TASK_ID];
    char who[WEFT_WHO];
    int64_t quiet_ms;
    weft_plan_limits limits;
    char request[];
};

struct create {
    const char *user_request;
    weft_json current_state, constraints, options;
};
const weft_param weft__planner_create_params[] = {
    {"user_request", WEFT_PARAM_str, offsetof(struct create, user_request), WEFT_REQUIRED | WEFT_NONEMPTY,
     "what the plan is for"},
    WEFT_MAY(struct create, current_state, obj, "completed_tasks, pending_tasks, context"),
    WEFT_MAY(struct create, constraints, obj, "max_tasks: at most 100; time_limit_seconds: for running it"),
    WEFT_MAY(struct create, options, obj, "timeout_ms: how long the planner may say nothing, 30000 when absent"),
    WEFT_END(struct create),
};

static void ignore_end(void *ctx, int r, const weft_task *task) {
    (void) ctx, (void) r, (void) task;
}

static void free_planning(struct planning *planning) {
    weft__free(planning->hub->alloc, planning);
}

static weft_req *take_request(struct planning *planning) {
    weft_req *req = planning->req;
    planning->req = NULL;
    if (req)
        weft_req_on_cancel(req, NULL, NULL);
    return req;
}

/* ---- what the planner is told ---- */

/* Begins with the word "plan": the demo agent goes by that, and finds the request behind "Request:". */
static int write_prompt(weft_buf *out, const weft_alloc *alloc, const struct create *in, int64_t max_tasks) {
    static const char how[] =
        "Plan the request below as tasks for other agents. Do not carry it out and do not change any files.\n\n"
        "Answer with one JSON object and nothing else:\n\n"
        "{\"tasks\":[{\"id\":\"task_001\",\"type\":\"code_generation\",\"description\":\"what to do, complete enough to be "
        "done without reading the request\",\"dependencies\":[],\"priority\":5}],\"estimated_time_seconds\":120,"
        "\"explanation\":\"why it is planned so\"}\n\n"
        "type is one of: code_generation, refactoring, analysis, testing, bug_fix, documentation. dependencies are ids of "
        "tasks that must be done before; tasks without any between them may run at the same time. priority is 1 to 10, "
        "higher "
        "is first. ";
    char most[80];
    int r = weft__buf_put_text(out, alloc, how);
    snprintf(most, sizeof most, "At most %lld tasks.", (long long) (max_tasks ? max_tasks : WEFT_PLAN_STEPS));
    if (r >= 0)
        r = weft__buf_put_text(out, alloc, most);
    if (r >= 0 && in->current_state.text)
        r = weft__buf_put_text(out, alloc, "\n\nWhat is done and known already:\n");
    if (r >= 0 && in->current_state.text)
        r = weft__buf_put(out, alloc, in->current_state.text, in->current_state.len);
    if (r >= 0)
        r = weft__buf_put_text(out, alloc, "\n\nRequest:\n");
    if (r >= 0)
        r = weft__buf_put_text(out, alloc, in->user_request);
    return r < 0 ? r : weft__buf_put(out, alloc, "", 1);
}

/* What a planner is sent that speaks this protocol. */
static int write_metadata(weft_buf *out, const weft_alloc *alloc, const struct create *in) {
    weft_val params = WEFT_OBJ({"user_request", weft_str(in->user_request)},
                               {"current_state", in->current_state.text ? weft_copy(&in->current_state) : weft_obj(NULL, 0)},
                               {"constraints", in->constraints.text ? weft_copy(&in->constraints) : weft_obj(NULL, 0)});
    weft_val value = WEFT_OBJ({"source", weft_str("planner")}, {"method", weft_str("create_plan")}, {"params", params});
    int r = weft__write_val(out, alloc, &value);
    return r < 0 ? r : weft__buf_put(out, alloc, "", 1);
}

/* ---- what came of it ---- */

static void fail_planning(struct planning *planning, const weft_planner_error *error) {
    weft__planner_fail_with(take_request(planning), error);
    free_planning(planning);
}

static void fail_unreadable(struct planning *planning, const char *why) {
    char details[WEFT_PLAN_WHY + 64];
    snprintf(details, sizeof details, "What the planner said is not a plan: %s", why);
    fail_planning(planning, &(weft_planner_error){.code = PLANNER_FAILED,
                                                  .type = PLANNER_PARSE,
                                                  .details = details,
                                                  .suggestions = {"Say more exactly what is to be done, and ask again"},
                                                  .task = planning->task});
}

static void on_plan_stored(void *ctx, int r, const weft_planned *planned) {
    struct planning *planning = ctx;
    weft_req *req = take_request(planning);
    if (r < 0)
        weft__reply_failure(req, r == -ECANCELED ? -ESHUTDOWN : r);
    else if (req)
        weft__planner_reply_plan(req, planning->hub, planned);
    free_planning(planning);
}

static void store_plan(struct planning *planning, weft_plan *plan) {
    weft_plans *plans = planning->hub->plans;
    int r = plans ? weft__plans_create(plans, plan, planning->who, on_plan_stored, planning) : -EAGAIN;
    if (r >= 0)
        return;
    weft__plan_free(plan);
    weft__reply_failure(take_request(planning), r);
    free_planning(planning);
}

/* It is an agent that reads text, in a session that can be gone on with. */
static bool may_ask_again(const struct planning *planning) {
    const weft_task *task = weft__task_find(planning->hub->engine, planning->task);
    const weft_agent *agent = task ? weft__agent_find(weft__engine_agents(planning->hub->engine), task->runs_on) : NULL;
    return !planning->again && agent && strcmp(agent->driver, "planner") != 0 && planning->req;
}

static void on_planning_stored(void *ctx, int r, const weft_task *task);

static int ask_again(struct planning *planning, const char *why) {
    char prompt[WEFT_PLAN_WHY + 256];
    snprintf(prompt, sizeof prompt,
             "Plan it again: your answer cannot be used, because %s.\n\nAnswer with the corrected JSON object, whole, and "
             "nothing else.",
             why);
    weft_task_spec spec = {.prompt = prompt,
                           .session = planning->session,
                           .metadata = "{\"source\":\"planner\"}",
                           .quiet_ms = planning->quiet_ms};
    planning->again = true;
    *planning->task = '\0';
    return weft__task_submit(planning->hub->engine, &spec, on_planning_stored, planning);
}

static int check_step_files(const weft_hub *hub, const weft_plan_step *step, char why[WEFT_PLAN_WHY]) {
    weft_doc *context = NULL;
    size_t index = 0;
    int r = step->context ? weft_doc_parse(step->context, strlen(step->context), hub->alloc, &context) : 0;
    const char *wrong = context ? weft__planner_files_wrong(hub, weft_doc_root(context), &index) : NULL;
    weft_doc_free(context);
    if (!wrong)
        return r;
    snprintf(why, WEFT_PLAN_WHY, "%s: context.files[%zu]: %s", step->id, index, wrong);
    return -EINVAL;
}

int weft__planner_read_plan(const weft_hub *hub, const weft_json *value, const weft_plan_limits *limits, weft_plan **ret,
                            char why[WEFT_PLAN_WHY]) {
    weft_plan *plan;
    int r = weft__plan_read(value, limits, weft__engine_alloc(hub->engine), &plan, why);
    if (r < 0)
        return r;
    for (size_t i = 0; r >= 0 && i < plan->count; i++)
        r = check_step_files(hub, &plan->steps[i], why);
    if (r >= 0)
        *ret = plan;
    else
        weft__plan_free(plan);
    return r;
}

static void take_answer(struct planning *planning, weft_bytes said) {
    char why[WEFT_PLAN_WHY] = "there is no JSON object with \"tasks\" in it";
    const weft_alloc *alloc = planning->hub->alloc;
    weft_doc *doc = NULL;
    weft_plan *plan = NULL;
    int r = weft__plan_find(said, alloc, &doc);
    if (r >= 0)
        r = weft__planner_read_plan(planning->hub, weft_doc_root(doc), &planning->limits, &plan, why);
    weft_doc_free(doc);
    if (r >= 0) {
        store_plan(planning, plan);
        return;
    }
    if (r == -ENOMEM) {
        weft__reply_failure(take_request(planning), r);
        free_planning(planning);
        return;
    }
    if (!may_ask_again(planning) || ask_again(planning, why) < 0)
        fail_unreadable(planning, why);
}

static void on_planner_output(void *ctx, int r, weft_bytes output) {
    struct planning *planning = ctx;
    if (r >= 0 && planning->req) {
        take_answer(planning, output);
        return;
    }
    weft__reply_failure(take_request(planning), r == -ECANCELED ? -ESHUTDOWN : r);
    free_planning(planning);
}

static void fail_by_task(struct planning *planning, const weft_task *task) {
    bool quiet = task->reason && strcmp(task->reason, "timedOut") == 0;
    bool unable = task->reason && strcmp(task->reason, "spawnFailed") == 0;
    fail_planning(planning, &(weft_planner_error){.code = unable ? PLANNER_UNAVAILABLE : PLANNER_FAILED,
                                                  .type = quiet ? PLANNER_TIMEOUT : PLANNER_EXECUTION,
                                                  .details = task->error,
                                                  .suggestions = {quiet ? "Give it more time with options.timeout_ms"
                                                                        : "Look at the planner with \"weft doctor\""},
                                                  .task = planning->task});
}

static void take_end(struct planning *planning, const weft_task *task) {
    const weft_hub *hub = planning->hub;
    if (task && task->state == WEFT_TASK_COMPLETED && planning->req) {
        int r = weft__task_output(hub->engine, planning->task, WEFT_PLAN_SAID, on_planner_output, planning);
        if (r >= 0)
            return;
        weft__reply_failure(take_request(planning), r);
        free_planning(planning);
    } else if (task && task->state == WEFT_TASK_FAILED)
        fail_by_task(planning, task);
    else
        fail_planning(planning, &(weft_planner_error){.code = WEFT_CANCELLED,
                                                      .type = PLANNER_EXECUTION,
                                                      .details = "The planning was cancelled",
                                                      .task = planning->task});
}

static bool on_planner_event(void *ctx, const weft_event *event, const weft_json *data) {
    struct planning *planning = ctx;
    const weft_task *task = event ? weft__task_find(planning->hub->engine, planning->task) : NULL;
    (void) data;
    if (task && task->state <= WEFT_TASK_RUNNING)
        return true;
    if (event) {
        take_end(planning, task);
        return false;
    }
    weft__reply_failure(take_request(planning), -ESHUTDOWN);
    free_planning(planning);
    return false;
}

/* ---- asking ---- */

/* Nobody would read the plan: the planner is told to stop. */
static void on_request_over(weft_req *req, int why, void *ctx) {
    struct planning *planning = ctx;
    if (why != -ECANCELED && why != -ETIMEDOUT) {
        planning->req = NULL;
        weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
    }
    planning->withdrawn = true;
    if (*planning->task)
        weft__task_cancel(planning->hub->engine, planning->task, planning->who, ignore_end, NULL);
}

static void on_planning_stored(void *ctx, int r, const weft_task *task) {
    struct planning *planning = ctx;
    const weft_hub *hub = planning->hub;
    if (r >= 0) {
        snprintf(planning->task, sizeof planning->task, "%s", task->id);
        snprintf(planning->session, sizeof planning->session, "%s", task->session);
        r = weft__hub_clients_await(hub->clients, task->id, on_planner_event, planning);
    }
    if (r >= 0 && planning->withdrawn)
        weft__task_cancel(hub->engine, planning->task, planning->who, ignore_end, NULL);
    if (r < 0) {
        weft__reply_failure(take_request(planning), r);
        free_planning(planning);
    }
}

/* A whole number in an object, from 1 on; 0: it is absent; <0: it is none. */
int64_t weft__planner_number(const weft_json *object, const char *name, int64_t most) {
    weft_json value = weft_get(object, name);
    weft_type type = weft_typeof(&value);
    if (type == WEFT_ABSENT || type == WEFT_NULL)
        return 0;
    int64_t number = weft_int_of(&value, -1);
    return number < 1 ? -1 : number < most ? number : most;
}

static struct planning *new_planning(weft_req *req, const weft_hub *hub, const struct create *in) {
    size_t len = strlen(in->user_request) + 1;
    struct planning *planning = weft__zalloc(hub->alloc, sizeof *planning + len);
    if (!planning)
        return NULL;
    planning->hub = hub;
    planning->req = weft__req_keep(req);
    memcpy(planning->request, in->user_request, len);
    planning->limits.request = planning->request;
    weft__who(weft_req_identity(req), planning->who);
    return planning;
}

static int submit_planning(weft_req *req, struct planning *planning, const struct create *in) {
    const weft_hub *hub = planning->hub;
    weft_buf prompt = {0}, metadata = {0};
    int r = write_prompt(&prompt, hub->alloc, in, planning->limits.max_tasks);
    if (r >= 0)
        r = write_metadata(&metadata, hub->alloc, in);
    if (r >= 0)
        r = weft__task_submit(hub->engine,
                              &(weft_task_spec){.prompt = weft__buf_head(&prompt),
                                                .metadata = weft__buf_head(&metadata),
                                                .role = WEFT_ROLE_PLANNER,
                                                .quiet_ms = planning->quiet_ms,
                                                .retries = PLANNER_RETRIES},
                              on_planning_stored, planning);
    weft__buf_done(&prompt, hub->alloc);
    weft__buf_done(&metadata, hub->alloc);
    if (r < 0) {
        free_planning(planning);
        return weft__planner_not_submitted(weft__req_keep(req), hub, WEFT_ROLE_PLANNER, "/user_request", r);
    }
    if (planning->req)
        weft_req_on_cancel(planning->req, on_request_over, planning);
    return 0;
}

int weft__planner_on_create(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct create *in = weft_req_params(req);
    int64_t quiet_ms = weft__planner_number(&in->options, "timeout_ms", (int64_t) 24 * 3600 * 1000);
    int64_t max_tasks = weft__planner_number(&in->constraints, "max_tasks", WEFT_PLAN_STEPS);
    int64_t time_limit_s = weft__planner_number(&in->constraints, "time_limit_seconds", WEFT_PLAN_SECONDS);
    (void) params;
    if (strnlen(in->user_request, WEFT_PLAN_TEXT + 1) > WEFT_PLAN_TEXT)
        return weft__reply_invalid(req, "/user_request", "user_request must be at most %zu bytes", WEFT_PLAN_TEXT);
    if (max_tasks < 0)
        return weft__reply_invalid(req, "/constraints/max_tasks", "max_tasks must be a whole number from 1 on");
    if (time_limit_s < 0)
        return weft__reply_invalid(req, "/constraints/time_limit_seconds",
                                   "time_limit_seconds must be a whole number from 1 on");
    if (quiet_ms < 0)
        return weft__reply_invalid(req, "/options/timeout_ms", "the timeout must be a positive number of milliseconds");
    if (!hub->plans)
        return weft__planner_fail(req, PLANNER_UNAVAILABLE, PLANNER_EXECUTION, "Plans are not kept here", NULL);
    struct planning *planning = new_planning(req, hub, in);
    if (!planning)
        return -ENOMEM;
    planning->limits.max_tasks = max_tasks;
    planning->limits.time_limit_s = time_limit_s;
    planning->quiet_ms = quiet_ms ? quiet_ms : PLANNER_QUIET_MS;
    return submit_planning(req, planning, in);
}
