/* agent/run and agent/stop: a task like any other, which its caller watches. */
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "cdev.h"
#include "reply.h"

/* A request to run, until the process is there and its number can be told.
 *
 *     submitted ──stored, waits for a slot──▶ answered "queued"      submitted ──stored, runs──▶ awaited
 *     awaited ──task.process──▶ answered "started"                   awaited ──the task's end──▶ answered with an error */
struct run {
    const weft_hub *hub;
    weft_req *req; /* NULL: nobody wants to know */
    bool resumes;
};

struct run_params {
    const char *prompt, *mode, *session_id, *agent_type, *sessionId, *agentType;
};
const weft_param weft__cdev_run_params[] = {
    {"prompt", WEFT_PARAM_str, offsetof(struct run_params, prompt), WEFT_REQUIRED | WEFT_NONEMPTY,
     "what the agent should do"},
    {"mode", WEFT_PARAM_str, offsetof(struct run_params, mode), WEFT_NULLABLE, "new or continue; new when absent"},
    {"session_id", WEFT_PARAM_str, offsetof(struct run_params, session_id), WEFT_NULLABLE, "the session to continue"},
    {"agent_type", WEFT_PARAM_str, offsetof(struct run_params, agent_type), WEFT_NULLABLE,
     "the name of an agent; the default agent when absent"},
    {"sessionId", WEFT_PARAM_str, offsetof(struct run_params, sessionId), WEFT_NULLABLE, "the same as session_id"},
    {"agentType", WEFT_PARAM_str, offsetof(struct run_params, agentType), WEFT_NULLABLE, "the same as agent_type"},
    WEFT_END(struct run_params),
};

/* What this dialect starts is one at a time, unless the configuration or the client's initialize says otherwise. */
#define GROUP "agent/run"

static bool runs_side_by_side(const weft_hub *hub, weft_req *req) {
    const weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    if (client && (weft__hub_client_flags(client) & CDEV_PARALLEL))
        return true;
    return hub->host->flag && hub->host->flag(hub->host->ctx, "cdev.parallel");
}

/* ---- answering ---- */

static void say_running(const struct run *run, const weft_task *task) {
    weft__reply_val(run->req, WEFT_OBJ({"status", weft_str(task->state == WEFT_TASK_QUEUED ? "queued" : "started")},
                                       {"session_id", weft_str(task->session)}, {"agent_type", weft_str(task->runs_on)},
                                       {"pid", task->pid ? weft_int(task->pid) : weft_none()},
                                       {"mode", weft_str(run->resumes ? "continue" : "new")}));
}

static void say_ended(const struct run *run, const weft_task *task) {
    const char *why = task->state == WEFT_TASK_CANCELLED ? "it was stopped" : task->error ? task->error : "it ended";
    if (task->state == WEFT_TASK_COMPLETED)
        say_running(run, task); /* it was quicker than we are */
    else if (run->req)
        weft_fail(run->req, CDEV_FAILED, "Agent execution error",
                  WEFT_OBJ({"reason", weft_str("agentFailed")}, {"details", weft_str(why)},
                           {"session_id", weft_str(task->session)}));
}

static bool is_task_over(const weft_task *task) {
    return task->state > WEFT_TASK_RUNNING;
}

/* Its state is what it says, because the engine applied the event before it was heard. */
static bool say_state_of_run(const struct run *run, const weft_task *task) {
    if (is_task_over(task))
        say_ended(run, task);
    else if (task->pid || task->state == WEFT_TASK_QUEUED)
        say_running(run, task);
    else
        return false;
    return true;
}

static bool on_run_task(void *ctx, const weft_event *event, const weft_json *data) {
    struct run *run = ctx;
    const weft_task *task = event ? weft__task_find(run->hub->engine, weft_get_str(data, "taskId", "")) : NULL;
    if (!task)
        weft__reply_failure(run->req, -ESHUTDOWN);
    else if (!say_state_of_run(run, task))
        return true;
    weft__free(run->hub->alloc, run);
    return false;
}

/* Whoever asked may have gone meanwhile. */
static weft_hub_client *client_of_run(const struct run *run) {
    weft_peer *peer = run->req ? weft_req_peer(run->req) : NULL;
    return peer ? weft__hub_client_of(run->hub->clients, peer) : NULL;
}

static void on_cdev_submitted(void *ctx, int r, const weft_task *task) {
    struct run *run = ctx;
    weft_hub_client *client = client_of_run(run);
    if (r < 0)
        weft__reply_failure(run->req, r);
    else if (client)
        weft__hub_client_started(client, task->session);
    if (r >= 0 && !say_state_of_run(run, task)) {
        r = weft__hub_clients_await(run->hub->clients, task->id, on_run_task, run);
        if (r >= 0)
            return;
        say_running(run, task);
    }
    weft__free(run->hub->alloc, run);
}

/* ---- asking ---- */

static int refuse_run(weft_req *req, const weft_hub *hub, const weft_task_spec *spec, int r) {
    switch (r) {
    case -ENOENT:
        return weft__reply_no_agent(req, hub, CDEV_NO_AGENT, "agentNotConfigured", "/agent_type",
                                    spec->agent ? spec->agent : "");
    case -ESRCH:
        return weft__cdev_no_session(req, spec->session);
    case -EBUSY:
        return weft__reply_error(req, CDEV_BUSY, "agentBusy", "An agent is already running");
    case -ENOBUFS:
        return weft__reply_error(req, 429, "rateLimited", "Too many tasks are waiting");
    default:
        return weft__reply_not_submitted(req, hub, "/prompt", r);
    }
}

/* <0 after an answer. */
static int check_run(weft_req *req, const weft_hub *hub, const struct run_params *in, bool *ret_resumes) {
    *ret_resumes = in->mode && strcmp(in->mode, "continue") == 0;
    if (in->mode && !*ret_resumes && strcmp(in->mode, "new") != 0)
        return weft__reply_invalid(req, "/mode", "mode must be \"new\" or \"continue\""), -EINVAL;
    if (*ret_resumes && (!in->session_id || !*in->session_id))
        return weft__reply_invalid(req, "/session_id", "session_id is missing, and mode is \"continue\""), -EINVAL;
    if (in->agent_type && !weft__agent_find(weft__engine_agents(hub->engine), in->agent_type))
        return weft__reply_no_agent(req, hub, CDEV_NO_AGENT, "agentNotConfigured", "/agent_type", in->agent_type), -EINVAL;
    return 0;
}

int weft__cdev_run(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    struct run_params *in = weft_req_params(req);
    char key[WEFT_KEY];
    bool resumes;
    (void) params;
    int r = weft__idempotency_key(req, key);
    in->session_id = in->session_id ? in->session_id : in->sessionId;
    in->agent_type = in->agent_type ? in->agent_type : in->agentType;
    if (r < 0 || (r = check_run(req, hub, in, &resumes)) < 0)
        return r;
    struct run *run = weft__alloc(hub->alloc, sizeof *run);
    if (!run)
        return -ENOMEM;
    *run = (struct run){hub, weft__req_keep(req), resumes};
    weft_trace trace;
    weft_task_spec spec = {.prompt = in->prompt,
                           .trace = weft_req_trace(req, &trace) ? &trace : NULL,
                           .agent = resumes ? NULL : in->agent_type,
                           .session = resumes ? in->session_id : NULL,
                           .metadata = "{\"source\":\"cdev\"}",
                           .key = *key ? key : NULL,
                           .group = runs_side_by_side(hub, req) ? NULL : GROUP,
                           .unless_busy = true};
    r = weft__task_submit(hub->engine, &spec, on_cdev_submitted, run);
    if (r >= 0)
        return 0;
    weft__free(hub->alloc, run);
    return refuse_run(weft__req_keep(req), hub, &spec, r);
}

/* ---- stopping ---- */

struct stop_params {
    const char *session_id, *sessionId;
};
const weft_param weft__cdev_stop_params[] = {
    {"session_id", WEFT_PARAM_str, offsetof(struct stop_params, session_id), WEFT_NULLABLE | WEFT_NONEMPTY,
     "which; the one this connection started, else the one it watches, else the only one"},
    {"sessionId", WEFT_PARAM_str, offsetof(struct stop_params, sessionId), WEFT_NULLABLE | WEFT_NONEMPTY,
     "the same as session_id"},
    WEFT_END(struct stop_params),
};

static int refuse_idle(weft_req *req) {
    return weft__reply_error(req, CDEV_IDLE, "agentIdle", "No agent is currently running");
}

/* It ended by itself meanwhile: it has stopped all the same. */
static void on_task_stopped(void *ctx, int r, const weft_task *task) {
    weft_req *req = ctx;
    (void) task;
    if (r < 0 && r != -EALREADY)
        weft__reply_failure(req, r);
    else
        weft__reply_val(req, WEFT_OBJ({"status", weft_str("stopped")}));
}

int weft__cdev_stop(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct stop_params *in = weft_req_params(req);
    char who[WEFT_WHO];
    (void) params;
    const char *id = in->session_id ? in->session_id : in->sessionId;
    const weft_session *session = id ? weft__session_find(hub->engine, id) : weft__cdev_session(hub, weft_req_peer(req));
    if (!session && id)
        return weft__cdev_no_session(req, id);
    if (!session || !session->turn)
        return refuse_idle(req);
    int r = weft__task_cancel(hub->engine, session->turn, weft__who(weft_req_identity(req), who), on_task_stopped,
                              weft__req_keep(req));
    if (r == -ENOENT || r == -EALREADY)
        return refuse_idle(req);
    return r < 0 ? weft__reply_failure(req, r) : 0;
}
