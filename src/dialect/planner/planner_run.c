/* run_plan: a plan's tasks, in the order of what they need, through the queue; answered when it has ended, with what came of
 * each. The plan is stored before it runs, and goes on when its caller has left: only cancelling the request ends it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "doc.h"
#include "planner.h"
#include "planner_plan.h"
#include "reply.h"
#include "write.h"

/* Of the answers of all tasks together: the end of each, an equal share. */
#define ANSWER_BYTES ((size_t) 512 << 10)

struct running {
    const weft_hub *hub;
    weft_req *req; /* NULL: nobody waits for the answer any more */
    weft_plan_waiter waiter;
    weft_event_listener listener; /* what its tasks write, and what is streamed */
    weft_planner_files *files;    /* of each task, while somebody waits; NULL: not */
    size_t file_count;
    uint64_t sequence;
    weft_buf said; /* everything that was streamed */
    bool waits, streams, withdrawn;
    int64_t time_limit_s;
    char id[WEFT_PLAN_ID]; /* "": not stored yet */
    char who[WEFT_WHO];
};

struct run {
    weft_json plan, options;
    const char *planId;
};
const weft_param weft__planner_run_params[] = {
    WEFT_MAY(struct run, plan, obj, "the plan, as create_plan answers it; or"),
    WEFT_MAY(struct run, planId, str, "the id of one that is stored and has not run"),
    WEFT_ALSO(struct run, planId, str, "plan_id"),
    WEFT_MAY(struct run, options, obj,
             "max_tasks, time_limit_seconds: narrower than the plan's; stream: tell what happens meanwhile; wait: false "
             "answers as soon as it runs"),
    WEFT_END(struct run),
};

/* ---- writing ---- */

static int write_plan(weft_buf *out, const weft_alloc *alloc, const weft_planned *planned) {
    char created[WEFT_STAMP], head[128];
    int n = snprintf(head, sizeof head, "{\"plan_id\":\"%s\",\"created_at\":\"%s\",", planned->id,
                     weft__stamp(planned->created_ms, created));
    int r = weft__buf_put(out, alloc, head, (size_t) n);
    if (r >= 0)
        r = weft__plan_write(planned->plan, alloc, out);
    return r < 0 ? r : weft__buf_put(out, alloc, "}", 1);
}

int weft__planner_reply_plan(weft_req *req, const weft_hub *hub, const weft_planned *planned) {
    weft_buf text = {0};
    int r = write_plan(&text, hub->alloc, planned);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"plan", weft_raw(weft__buf_head(&text), weft__buf_len(&text))}));
    else
        weft__reply_failure(req, r);
    weft__buf_done(&text, hub->alloc);
    return r;
}

static const char *status_of_step(const weft_planned_step *step) {
    static const char *const words[WEFT_STEP_STATES] = {
        [WEFT_STEP_WAITING] = "waiting",   [WEFT_STEP_QUEUED] = "queued",  [WEFT_STEP_RUNNING] = "running",
        [WEFT_STEP_COMPLETED] = "success", [WEFT_STEP_FAILED] = "failure", [WEFT_STEP_CANCELLED] = "cancelled",
        [WEFT_STEP_SKIPPED] = "skipped"};
    bool late = strcmp(step->reason, "timedOut") == 0 || strcmp(step->reason, "timeLimit") == 0;
    return late && step->state != WEFT_STEP_SKIPPED ? "timeout" : words[step->state];
}

/* What people read about a step that did not succeed. Of one that was stopped, its task says nothing. */
static const char *message_of_step(const weft_planned_step *step) {
    if (*step->error)
        return step->error;
    return strcmp(step->reason, "timeLimit") == 0 ? "The plan reached its time limit while it ran."
           : step->state == WEFT_STEP_CANCELLED   ? "It was cancelled."
                                                  : "";
}

/* The end of what it said, its share of the answer. */
static weft_bytes end_of_output(const weft_task *task, size_t most) {
    weft_bytes said = task ? task->tail : (weft_bytes){"", 0};
    size_t skip = said.len > most ? said.len - most : 0;
    while (skip && skip < said.len && ((unsigned char) said.data[skip] & 0xc0) == 0x80)
        skip++;
    return (weft_bytes){said.data + skip, said.len - skip};
}

static int write_result(weft_buf *out, const struct running *running, const weft_planned *planned, size_t i) {
    const weft_hub *hub = running->hub;
    const weft_planned_step *step = &planned->steps[i];
    const weft_task *task = *step->task ? weft__task_find(hub->engine, step->task) : NULL;
    const weft_planner_files none = {0}, *files = i < running->file_count ? &running->files[i] : &none;
    weft_bytes said = end_of_output(task, ANSWER_BYTES / planned->plan->count);
    weft_buf modified = {0}, created = {0};
    int64_t took = step->started_ms && step->ended_ms > step->started_ms ? step->ended_ms - step->started_ms : 0;
    int r = weft__planner_files_write(files, hub, false, &modified);
    if (r >= 0)
        r = weft__planner_files_write(files, hub, true, &created);
    weft_val error = WEFT_OBJ({"code", weft_str(step->reason)}, {"message", weft_str(message_of_step(step))});
    weft_val metadata =
        WEFT_OBJ({"execution_time_ms", weft_int(took)}, {"task_id", *step->task ? weft_str(step->task) : weft_none()},
                 {"model", task ? weft_str(task->runs_on) : weft_none()});
    weft_val output = WEFT_OBJ({"code", weft_strn(said.data, said.len)}, {"explanation", weft_str("")},
                               {"files_modified", weft_raw(weft__buf_head(&modified), weft__buf_len(&modified))},
                               {"files_created", weft_raw(weft__buf_head(&created), weft__buf_len(&created))},
                               {"truncated", task && task->output_bytes > said.len ? weft_bool(true) : weft_none()});
    weft_val value = WEFT_OBJ({"task_id", weft_str(planned->plan->steps[i].id)}, {"status", weft_str(status_of_step(step))},
                              {"output", output}, {"error", *step->reason ? error : weft_none()}, {"metadata", metadata});
    if (r >= 0)
        r = weft__write_val(out, hub->alloc, &value);
    weft__buf_done(&modified, hub->alloc);
    weft__buf_done(&created, hub->alloc);
    return r;
}

static int write_results(weft_buf *out, const struct running *running, const weft_planned *planned) {
    const weft_hub *hub = running->hub;
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < planned->plan->count; i++) {
        r = i ? weft__buf_put(out, hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_result(out, running, planned, i);
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

/* Some of it may have succeeded. */
static const char *status_of_plan(const weft_planned *planned) {
    bool any = false;
    if (planned->state <= WEFT_PLAN_RUNNING)
        return "running";
    if (planned->state != WEFT_PLAN_FAILED)
        return planned->state == WEFT_PLAN_COMPLETED ? "success" : "cancelled";
    for (size_t i = 0; i < planned->plan->count; i++)
        any |= planned->steps[i].state == WEFT_STEP_COMPLETED;
    return planned->stopping ? "timeout" : any ? "partial" : "failure";
}

static int reply_results(weft_req *req, const struct running *running, const weft_planned *planned) {
    const weft_hub *hub = running->hub;
    weft_buf results = {0};
    int64_t took = planned->ended_ms > planned->started_ms ? planned->ended_ms - planned->started_ms : 0;
    int r = write_results(&results, running, planned);
    if (r < 0)
        weft__reply_failure(req, r);
    else
        weft__reply_val(
            req, WEFT_OBJ({"plan_id", weft_str(planned->id)}, {"status", weft_str(status_of_plan(planned))},
                          {"results", weft_raw(weft__buf_head(&results), weft__buf_len(&results))},
                          {"output", running->streams
                                         ? weft_strn(weft__buf_len(&running->said) ? weft__buf_head(&running->said) : "",
                                                     weft__buf_len(&running->said))
                                         : weft_none()},
                          {"metadata", WEFT_OBJ({"execution_time_ms", weft_int(took)})}));
    weft__buf_done(&results, hub->alloc);
    return r;
}

/* ---- streaming ---- */

static void stream_id(const struct running *running, char ret[WEFT_PLAN_ID + 8]) {
    snprintf(ret, WEFT_PLAN_ID + 8, "stream_%s", running->id);
}

static weft_peer *streams_to(const struct running *running) {
    return running->streams && running->req ? weft_req_peer(running->req) : NULL;
}

static void start_stream(struct running *running) {
    char id[WEFT_PLAN_ID + 8];
    weft_peer *peer = streams_to(running);
    stream_id(running, id);
    if (peer)
        weft_notify(peer, "stream_start", WEFT_OBJ({"stream_id", weft_str(id)}, {"task_id", weft_str(running->id)}));
}

/* A plan has at most a few lines for each of its hundred tasks, so nothing has to wait here. */
static void stream_line(struct running *running, const char *line) {
    char id[WEFT_PLAN_ID + 8];
    weft_peer *peer = streams_to(running);
    stream_id(running, id);
    if (!peer || weft__buf_put(&running->said, running->hub->alloc, line, strlen(line)) < 0)
        return;
    weft_notify(
        peer, "stream_data",
        WEFT_OBJ({"stream_id", weft_str(id)}, {"chunk", weft_str(line)}, {"sequence", weft_uint(++running->sequence)}));
}

static void end_stream(struct running *running) {
    char id[WEFT_PLAN_ID + 8];
    weft_peer *peer = streams_to(running);
    stream_id(running, id);
    if (peer)
        weft_notify(peer, "stream_end",
                    WEFT_OBJ({"stream_id", weft_str(id)}, {"total_chunks", weft_uint(running->sequence)}));
}

static void stream_event(struct running *running, const weft_json *data) {
    char line[WEFT_PLAN_NAME + WEFT_STEP_ERROR + 64];
    const char *error = weft_get_str(data, "error", "");
    if (strcmp(weft_get_str(data, "planId", ""), running->id) != 0)
        return;
    snprintf(line, sizeof line, "%s %s%s%s\n", weft_get_str(data, "id", ""), weft_get_str(data, "state", ""),
             *error ? ": " : "", error);
    stream_line(running, line);
}

/* ---- what its tasks write ---- */

/* By its key, which it has before the plan knows which task it is. file_count: it is none of ours. */
static size_t step_of_task(const struct running *running, const char *id) {
    const weft_task *task = weft__task_find(running->hub->engine, id);
    const weft_planned *planned = weft__plans_find(running->hub->plans, running->id);
    size_t len = strlen("plan/") + strlen(running->id) + 1, i = 0;
    char prefix[WEFT_PLAN_ID + 8];
    snprintf(prefix, sizeof prefix, "plan/%s/", running->id);
    if (!task || !planned || !task->key || strncmp(task->key, prefix, len) != 0)
        return running->file_count;
    while (i < running->file_count && strcmp(planned->plan->steps[i].id, task->key + len) != 0)
        i++;
    return i;
}

static void note_files(struct running *running, const weft_event *event, const weft_json *data) {
    size_t i = step_of_task(running, weft_get_str(data, "taskId", ""));
    if (i < running->file_count)
        weft__planner_files_event(&running->files[i], running->hub, event, data);
}

static void on_running_event(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    struct running *running = WEFT_CONTAINER(listener, struct running, listener);
    if (running->streams && strcmp(event->type, "plan.task") == 0)
        stream_event(running, data);
    else if (strcmp(event->type, "session.update") == 0)
        note_files(running, event, data);
}

/* Without memory for it, what they write is not known. */
static void listen_to_tasks(struct running *running) {
    const weft_planned *planned = weft__plans_find(running->hub->plans, running->id);
    size_t count = planned ? planned->plan->count : 0;
    if (!running->waits || !count)
        return;
    running->files = weft__zalloc(running->hub->alloc, count * sizeof *running->files);
    running->file_count = running->files ? count : 0;
    weft__engine_listen(running->hub->engine, &running->listener);
}

/* ---- running ---- */

static void free_running(struct running *running) {
    weft__list_remove(&running->waiter.link);
    weft__engine_unlisten(&running->listener);
    for (size_t i = 0; i < running->file_count; i++)
        weft__planner_files_done(&running->files[i], running->hub->alloc);
    weft__free(running->hub->alloc, running->files);
    weft__buf_done(&running->said, running->hub->alloc);
    weft__free(running->hub->alloc, running);
}

static weft_req *take_request(struct running *running) {
    weft_req *req = running->req;
    running->req = NULL;
    if (req)
        weft_req_on_cancel(req, NULL, NULL);
    return req;
}

static void ignore_plan(void *ctx, int r, const weft_planned *planned) {
    (void) ctx, (void) r, (void) planned;
}

static void fail_running(struct running *running, int r) {
    weft_req *req = take_request(running);
    if (r == -ENOENT)
        weft__reply_error(req, 404, "planNotFound", "There is no such plan");
    else if (r == -EALREADY)
        weft__reply_error(req, 409, "planHasRun", "The plan runs already, or has run");
    else if (r == -EUSERS)
        weft__reply_error(req, 429, "tooManyPlans", "Too many plans are running: at most %d do", WEFT_PLANS_RUNNING);
    else
        weft__reply_failure(req, r == -ECANCELED ? -ESHUTDOWN : r);
    free_running(running);
}

static void on_plan_end(weft_plan_waiter *waiter, const weft_planned *planned) {
    struct running *running = WEFT_CONTAINER(waiter, struct running, waiter);
    if (!planned) {
        fail_running(running, -ECANCELED);
        return;
    }
    end_stream(running);
    reply_results(take_request(running), running, planned);
    free_running(running);
}

static void on_plan_running(void *ctx, int r, const weft_planned *planned) {
    struct running *running = ctx;
    if (r < 0) {
        fail_running(running, r);
        return;
    }
    if (running->waits && running->req && (r = weft__plans_await(running->hub->plans, running->id, &running->waiter)) >= 0) {
        if (running->withdrawn)
            weft__plans_cancel(running->hub->plans, running->id, running->who, ignore_plan, NULL);
        return;
    }
    reply_results(take_request(running), running, planned);
    free_running(running);
}

static void start_running(struct running *running) {
    start_stream(running);
    listen_to_tasks(running);
    int r = weft__plans_run(running->hub->plans, running->id, running->time_limit_s, running->who, on_plan_running, running);
    if (r < 0)
        fail_running(running, r);
}

static void on_plan_made(void *ctx, int r, const weft_planned *planned) {
    struct running *running = ctx;
    if (r < 0) {
        fail_running(running, r);
        return;
    }
    snprintf(running->id, sizeof running->id, "%s", planned->id);
    start_running(running);
}

/* Cancelled: so is the plan. The connection has gone: the plan goes on, it is stored and can be asked for. */
static void on_request_over(weft_req *req, int why, void *ctx) {
    struct running *running = ctx;
    if (why != -ECANCELED && why != -ETIMEDOUT) {
        running->req = NULL;
        weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
        return;
    }
    running->withdrawn = true;
    if (!weft__list_empty(&running->waiter.link))
        weft__plans_cancel(running->hub->plans, running->id, running->who, ignore_plan, NULL);
}

/* ---- asking ---- */

static int refuse_plan(weft_req *req, const char *why) {
    return weft__reply_invalid(req, "/plan", "the plan cannot run: %s", why);
}

static int check_options(weft_req *req, const struct run *in, weft_plan_limits *ret) {
    ret->max_tasks = weft__planner_number(&in->options, "max_tasks", WEFT_PLAN_STEPS);
    ret->time_limit_s = weft__planner_number(&in->options, "time_limit_seconds", WEFT_PLAN_SECONDS);
    if (ret->max_tasks < 0)
        return weft__reply_invalid(req, "/options/max_tasks", "max_tasks must be a whole number from 1 on");
    if (ret->time_limit_s < 0)
        return weft__reply_invalid(req, "/options/time_limit_seconds",
                                   "time_limit_seconds must be a whole number from 1 on");
    return 1;
}

static struct running *new_running(weft_req *req, const weft_hub *hub, const struct run *in) {
    struct running *running = weft__zalloc(hub->alloc, sizeof *running);
    if (!running)
        return NULL;
    running->hub = hub;
    running->req = weft__req_keep(req);
    running->waits = weft_get_bool(&in->options, "wait", true);
    running->streams = running->waits && weft_get_bool(&in->options, "stream", false);
    running->waiter.on_end = on_plan_end;
    running->listener.on_event = on_running_event;
    weft__list_init(&running->waiter.link);
    weft__list_init(&running->listener.link);
    weft__who(weft_req_identity(req), running->who);
    if (running->req)
        weft_req_on_cancel(running->req, on_request_over, running);
    return running;
}

static int run_stored(weft_req *req, const weft_hub *hub, const struct run *in, const weft_plan_limits *limits) {
    const weft_planned *planned = weft__plans_find(hub->plans, in->planId);
    if (planned && limits->max_tasks && planned->plan->count > (size_t) limits->max_tasks)
        return weft__reply_invalid(req, "/options/max_tasks", "the plan has %zu tasks", planned->plan->count);
    struct running *running = new_running(req, hub, in);
    if (!running)
        return -ENOMEM;
    running->time_limit_s = limits->time_limit_s;
    snprintf(running->id, sizeof running->id, "%s", in->planId);
    start_running(running);
    return 0;
}

static int run_new(weft_req *req, const weft_hub *hub, const struct run *in, const weft_plan_limits *limits) {
    char why[WEFT_PLAN_WHY];
    weft_plan *plan = NULL;
    int r = weft__planner_read_plan(hub, &in->plan, limits, &plan, why);
    if (r < 0)
        return r == -EINVAL ? refuse_plan(req, why) : r;
    struct running *running = new_running(req, hub, in);
    r = running ? weft__plans_create(hub->plans, plan, running->who, on_plan_made, running) : -ENOMEM;
    if (r >= 0)
        return 0;
    weft__plan_free(plan);
    if (!running)
        return r;
    fail_running(running, r);
    return 0;
}

int weft__planner_on_run(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct run *in = weft_req_params(req);
    weft_plan_limits limits = {0};
    (void) params;
    int r = check_options(req, in, &limits);
    if (r <= 0)
        return r;
    if (!in->plan.text == !in->planId)
        return weft__reply_invalid(req, "/plan", "either plan or planId must be given");
    if (!hub->plans)
        return weft__planner_fail(req, PLANNER_UNAVAILABLE, PLANNER_EXECUTION, "Plans are not kept here", NULL);
    return in->planId ? run_stored(req, hub, in, &limits) : run_new(req, hub, in, &limits);
}
