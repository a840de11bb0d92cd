/* execute_task: a task for whoever holds the role of the executor. It is answered when the task has ended.
 *
 *     submitted ──stored──▶ awaited ──the task's end──▶ ended ──its output was read──▶ answered
 *
 * A caller that goes away gives up the task as well, unless it gave an idempotency key: with that it can come back and ask
 * for the same. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "doc.h"
#include "planner.h"
#include "reply.h"
#include "utf8.h"
#include "write.h"

/* Longer than any id of a task. */
#define TASK_ID 64
/* Bytes of the id that a caller gives its task. */
#define CALLER_ID 256
/* Of the output that is answered. */
#define MAX_OUTPUT ((size_t) 8 << 20)

struct execution {
    const weft_hub *hub;
    weft_req *req;  /* NULL: nobody waits for the answer any more */
    bool withdrawn; /* it was cancelled before there was a task */
    bool keyed;
    bool strict;        /* it came in the form of the stricter schema, and is answered so */
    char task[TASK_ID]; /* "": not stored yet */
    char id[CALLER_ID + 1];
};

struct execute {
    const char *task_type, *prompt, *id;
    weft_json context, options, constraints;
    int64_t priority;
};
const weft_param weft__planner_execute_params[] = {
    {"task_type", WEFT_PARAM_str, offsetof(struct execute, task_type), WEFT_REQUIRED,
     "code_generation, refactoring, analysis, testing; or code_refactoring, code_analysis, bug_fix, documentation"},
    WEFT_ALSO(struct execute, task_type, str, "type"),
    {"prompt", WEFT_PARAM_str, offsetof(struct execute, prompt), WEFT_REQUIRED | WEFT_NONEMPTY, "what is to be done"},
    WEFT_MAY(struct execute, context, obj, "files, current_directory, dependencies, constraints"),
    WEFT_MAY(struct execute, options, obj,
             "language, framework, style_guide; timeout_ms: how long it may say nothing, 30000 when absent; max_retries: 0 "
             "to 3; stream"),
    WEFT_MAY(struct execute, id, str, "the caller's own name for the task"),
    WEFT_MAY(struct execute, priority, int, "1 to 10, higher runs first; 5 when absent"),
    WEFT_MAY(struct execute, constraints, obj, "timeout: seconds that it may say nothing; style; maxTokens"),
    WEFT_END(struct execute),
};

static void ignore_end(void *ctx, int r, const weft_task *task) {
    (void) ctx, (void) r, (void) task;
}

/* ---- answering ---- */

static void free_execution(struct execution *execution) {
    weft__free(execution->hub->alloc, execution);
}

static weft_req *take_request(struct execution *execution) {
    weft_req *req = execution->req;
    execution->req = NULL;
    if (req)
        weft_req_on_cancel(req, NULL, NULL);
    return req;
}

static void answer_failed(weft_req *req, const weft_task *task) {
    bool quiet = task->reason && strcmp(task->reason, "timedOut") == 0;
    bool unable = task->reason && strcmp(task->reason, "spawnFailed") == 0;
    weft_planner_error error = {
        .code = unable ? PLANNER_UNAVAILABLE : PLANNER_FAILED,
        .type = quiet ? PLANNER_TIMEOUT : PLANNER_EXECUTION,
        .details = task->error,
        .task = task->id,
    };
    if (quiet)
        error.suggestions[0] = "Give it more time with options.timeout_ms";
    else if (unable)
        error.suggestions[0] = "Look at it with \"weft doctor\"";
    else
        error.suggestions[0] = "Look at what it said with \"weft logs\" and the task's id";
    weft__planner_fail_with(req, &error);
}

static int64_t tokens_of(const weft_task *task, const weft_alloc *alloc) {
    static const char *const names[] = {"totalTokens", "total_tokens", "total"};
    weft_doc *doc = NULL;
    int64_t tokens = -1;
    if (!task->usage || weft_doc_parse(task->usage, strlen(task->usage), alloc, &doc) < 0)
        return -1;
    weft_json said = weft_get(weft_doc_root(doc), "tokens");
    for (size_t i = 0; tokens < 0 && i < sizeof names / sizeof names[0]; i++)
        tokens = weft_get_int(&said, names[i], -1);
    weft_doc_free(doc);
    return tokens;
}

static void answer_done(const struct execution *execution, weft_req *req, const weft_task *task, weft_bytes output) {
    int64_t tokens = tokens_of(task, execution->hub->alloc);
    int64_t took = task->started_ms ? task->completed_ms - task->started_ms : 0;
    weft_val metadata = WEFT_OBJ({"execution_time_ms", weft_int(took > 0 ? took : 0)},
                                 {"tokens_used", tokens < 0 ? weft_none() : weft_int(tokens)},
                                 {"model", weft_str(task->runs_on)}, {"task_id", weft_str(task->id)});
    weft_val none = weft_arr(NULL, 0);
    weft_reply(req, WEFT_OBJ({"task_id", execution->strict ? weft_str(execution->id) : weft_none()},
                             {"status", weft_str("success")},
                             {"output", WEFT_OBJ({"code", weft_strn(output.data, output.len)}, {"explanation", weft_str("")},
                                                 {"files_modified", none}, {"files_created", none})},
                             {"metadata", metadata}, {"metrics", execution->strict ? metadata : weft_none()}));
}

static void on_executed_output(void *ctx, int r, weft_bytes output) {
    struct execution *execution = ctx;
    weft_req *req = take_request(execution);
    const weft_task *task = weft__task_find(execution->hub->engine, execution->task);
    if (req && r >= 0 && task)
        answer_done(execution, req, task, output);
    else if (req)
        weft__reply_failure(req, r == -ECANCELED ? -ESHUTDOWN : r < 0 ? r : -ESRCH);
    free_execution(execution);
}

static void answer_execution(struct execution *execution) {
    const weft_hub *hub = execution->hub;
    const weft_task *task = weft__task_find(hub->engine, execution->task);
    if (task && task->state == WEFT_TASK_COMPLETED && execution->req) {
        int r = weft__task_output(hub->engine, execution->task, MAX_OUTPUT, on_executed_output, execution);
        if (r >= 0)
            return;
        weft__reply_failure(take_request(execution), r);
    } else if (execution->req && task && task->state == WEFT_TASK_FAILED)
        answer_failed(take_request(execution), task);
    else if (execution->req)
        weft__planner_fail_with(take_request(execution), &(weft_planner_error){.code = WEFT_CANCELLED,
                                                                               .type = PLANNER_EXECUTION,
                                                                               .details = "The task was cancelled",
                                                                               .task = execution->task});
    free_execution(execution);
}

static bool on_executing(void *ctx, const weft_event *event, const weft_json *data) {
    struct execution *execution = ctx;
    const weft_task *task = event ? weft__task_find(execution->hub->engine, execution->task) : NULL;
    (void) data;
    if (task && task->state <= WEFT_TASK_RUNNING)
        return true;
    if (event) {
        answer_execution(execution);
        return false;
    }
    weft__reply_failure(take_request(execution), -ESHUTDOWN);
    free_execution(execution);
    return false;
}

/* Cancelled: the task ends, and that is the answer. The connection has gone: nobody would read what it does. */
static void on_request_over(weft_req *req, int why, void *ctx) {
    struct execution *execution = ctx;
    char who[WEFT_WHO];
    bool gone = why != -ECANCELED && why != -ETIMEDOUT;
    weft__who(weft_req_identity(req), who);
    if (gone) {
        execution->req = NULL;
        weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
    }
    if (gone && execution->keyed)
        return;
    execution->withdrawn = true;
    if (*execution->task)
        weft__task_cancel(execution->hub->engine, execution->task, who, ignore_end, NULL);
}

static void on_execution_stored(void *ctx, int r, const weft_task *task) {
    struct execution *execution = ctx;
    const weft_hub *hub = execution->hub;
    if (r >= 0)
        snprintf(execution->task, sizeof execution->task, "%s", task->id);
    /* The same again, by its key: it may have ended already. */
    if (r >= 0 && task->state > WEFT_TASK_RUNNING) {
        answer_execution(execution);
        return;
    }
    if (r >= 0)
        r = weft__hub_clients_await(hub->clients, task->id, on_executing, execution);
    if (r >= 0 && execution->withdrawn)
        weft__task_cancel(hub->engine, execution->task, "client", ignore_end, NULL);
    if (r < 0) {
        weft__reply_failure(take_request(execution), r);
        free_execution(execution);
    }
}

/* ---- asking ---- */

/* What a holder that speaks this protocol is sent, with the task: {"source":"planner","method":...,"params":{...}}. */
static int write_metadata(weft_buf *out, const weft_alloc *alloc, const struct execute *in) {
    weft_val params = WEFT_OBJ({"task_type", weft_str(in->task_type)},
                               {"prompt", weft_str(in->prompt)},
                               {"context", in->context.text ? weft_copy(&in->context) : weft_obj(NULL, 0)},
                               {"options", in->options.text ? weft_copy(&in->options) : weft_obj(NULL, 0)});
    weft_val value = WEFT_OBJ({"source", weft_str("planner")}, {"method", weft_str("execute_task")}, {"params", params});
    int r = weft__write_val(out, alloc, &value);
    return r < 0 ? r : weft__buf_put(out, alloc, "", 1);
}

static int submit_execution(weft_req *req, const weft_hub *hub, const struct execute *in, const weft_task_spec *spec) {
    struct execution *execution = weft__zalloc(hub->alloc, sizeof *execution);
    if (!execution)
        return -ENOMEM;
    *execution = (struct execution){
        .hub = hub, .req = weft__req_keep(req), .keyed = spec->key || weft_req_is_notification(req), .strict = in->id};
    snprintf(execution->id, sizeof execution->id, "%s", in->id ? in->id : "");
    int r = weft__task_submit(hub->engine, spec, on_execution_stored, execution);
    if (r < 0) {
        free_execution(execution);
        return weft__planner_not_submitted(weft__req_keep(req), hub, WEFT_ROLE_EXECUTOR, "/prompt", r);
    }
    if (execution->req)
        weft_req_on_cancel(execution->req, on_request_over, execution);
    return 0;
}

/* options.timeout_ms, or the stricter form's constraints.timeout, in seconds. <0: it is none. */
static int64_t quiet_of(const struct execute *in) {
    weft_json ms = weft_get(&in->options, "timeout_ms"), s = weft_get(&in->constraints, "timeout");
    int64_t most = (int64_t) 24 * 3600 * 1000;
    int64_t quiet = ms.text ? weft_int_of(&ms, -1) : s.text ? weft_int_of(&s, -1) : PLANNER_QUIET_MS / 1000;
    if (!ms.text && quiet > 0)
        quiet = quiet < most / 1000 ? quiet * 1000 : most;
    return quiet <= 0 ? -1 : quiet < most ? quiet : most;
}

static int refuse_type(weft_req *req, const char *task_type) {
    return weft__reply_invalid(req, "/task_type",
                               "%.64s is no type of task; there is code_generation, refactoring, analysis, testing, "
                               "code_refactoring, code_analysis, bug_fix, documentation",
                               task_type);
}

int weft__planner_on_execute(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct execute *in = weft_req_params(req);
    int64_t quiet_ms = quiet_of(in), retries = weft_get_int(&in->options, "max_retries", PLANNER_RETRIES);
    char key[WEFT_KEY];
    weft_buf text = {0}, metadata = {0};
    (void) params;
    if (!weft__planner_knows_type(hub, WEFT_ROLE_EXECUTOR, in->task_type))
        return refuse_type(req, in->task_type);
    if (quiet_ms < 0)
        return weft__reply_invalid(req, "/options/timeout_ms", "the timeout must be a positive number of milliseconds");
    if (in->id && strnlen(in->id, CALLER_ID + 1) > CALLER_ID)
        return weft__reply_invalid(req, "/id", "id must be at most %d bytes", CALLER_ID);
    int r = weft__idempotency_key(req, key);
    if (r < 0)
        return r;
    r = weft__planner_prompt(&text, hub->alloc, in->prompt, in->task_type, &in->context, &in->options);
    if (r >= 0)
        r = write_metadata(&metadata, hub->alloc, in);
    if (r >= 0)
        r = submit_execution(req, hub, in,
                             &(weft_task_spec){.prompt = weft__buf_head(&text),
                                               .metadata = weft__buf_head(&metadata),
                                               .role = WEFT_ROLE_EXECUTOR,
                                               .task_type = in->task_type,
                                               .quiet_ms = quiet_ms,
                                               .priority = in->priority,
                                               .retries = retries < 0                 ? 0
                                                          : retries > PLANNER_RETRIES ? PLANNER_RETRIES
                                                                                      : retries,
                                               .key = *key ? key : NULL});
    weft__buf_done(&text, hub->alloc);
    weft__buf_done(&metadata, hub->alloc);
    return r;
}
