/* task.retry: the prompt of a task that is over, submitted again. A task that was made for a conversation goes on in it; one
 * that had a session of its own begins anew. */
#include <errno.h>
#include <string.h>

#include "hub_methods.h"
#include "link.h"
#include "reply.h"
#include "write.h"

#define RETRY_OF "weft/retryOf" /* in the metadata of the new task: the old one */

struct retry {
    const char *taskId;
};
const weft_param weft__hub_retry_params[] = {
    WEFT_MUST(struct retry, taskId, str, "which task; it must have ended"),
    WEFT_END(struct retry),
};

static void on_retried(void *ctx, int r, const weft_task *task) {
    weft_req *req = ctx;
    if (r < 0)
        weft__reply_failure(req, r);
    else
        weft__reply_val(req, WEFT_OBJ({"taskId", weft_str(task->id)}, {"sessionId", weft_str(task->session)},
                                      {"state", weft_str(weft__task_states[task->state])}));
}

static int refuse_retry(weft_req *req, const weft_hub *hub, int r) {
    const weft_engine_limits *limits = weft__engine_limits(hub->engine);
    switch (r) {
    case -EDQUOT:
        return weft__reply_error(req, 429, "sessionQueueFull", "The session has %zu tasks already", limits->max_turns);
    case -ENOBUFS:
        return weft__reply_error(req, 429, "queueFull", "Queue full: %zu tasks are waiting", limits->max_queue);
    case -ENODEV:
        return weft__reply_error(req, 409, "noRunner", "The machine that it ran on is not known now: \"weft runner list\"");
    case -ENOENT:
        return weft__reply_error(req, 409, "agentNotConfigured", "The task's agent is no longer configured");
    case -ESRCH:
    case -ESTALE:
        return weft__reply_error(req, 409, "sessionClosed", "The task's session is closed or deleted");
    default:
        return weft__reply_not_submitted(req, hub, "/taskId", r);
    }
}

/* The metadata of the old task, and which one that is. */
static int write_metadata(weft_buf *out, const weft_alloc *alloc, const weft_task *task) {
    WEFT_AUTO(weft_doc) doc = NULL;
    const char *text = task->metadata ? task->metadata : "{}";
    int r = weft_doc_parse(text, strlen(text), alloc, &doc);
    if (r >= 0)
        r = weft__buf_put(out, alloc, "{", 1);
    for (weft_iter it = weft_iterate(r >= 0 ? weft_doc_root(doc) : &(weft_json){0}); r >= 0 && weft_next(&it);) {
        if (weft_name_is(&it, RETRY_OF))
            continue;
        r = weft__buf_put(out, alloc, it.name.text, it.name.len);
        if (r >= 0)
            r = weft__buf_put(out, alloc, ":", 1);
        if (r >= 0)
            r = weft__buf_put(out, alloc, it.value.text, it.value.len);
        if (r >= 0)
            r = weft__buf_put(out, alloc, ",", 1);
    }
    weft_val id = weft_str(task->id);
    if (r >= 0)
        r = weft__buf_put(out, alloc, "\"" RETRY_OF "\":", strlen("\"" RETRY_OF "\":"));
    if (r >= 0)
        r = weft__write_val(out, alloc, &id);
    return r < 0 ? r : weft__buf_put(out, alloc, "}", 2); /* and its NUL */
}

static bool has_ended(const weft_task *task) {
    return task->state != WEFT_TASK_QUEUED && task->state != WEFT_TASK_RUNNING;
}

int weft__hub_retry(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct retry *in = weft_req_params(req);
    const weft_task *task = weft__task_find(hub->engine, in->taskId);
    weft_buf metadata = {0};
    char key[WEFT_KEY];
    (void) params;
    int r = weft__idempotency_key(req, key);
    if (r < 0)
        return r;
    if (!task)
        return weft__reply_error(req, 404, "taskNotFound", "There is no task %s", in->taskId);
    if (!has_ended(task))
        return weft__reply_error(req, 409, "taskNotEnded", "The task is still %s", weft__task_states[task->state]);
    if (task->role)
        return weft__reply_error(req, 409, "taskOfRole", "The task belongs to a plan: run the plan again");
    const weft_session *session = weft__session_find(hub->engine, task->session);
    bool goes_on = weft__task_is_talk(task);
    r = write_metadata(&metadata, hub->alloc, task);
    if (r >= 0)
        r = weft__task_submit(hub->engine,
                              &(weft_task_spec){.prompt = task->prompt,
                                                .agent = goes_on ? NULL : task->agent,
                                                .session = goes_on ? task->session : NULL,
                                                .runner = goes_on ? NULL : task->runner,
                                                .label = goes_on ? NULL : task->label,
                                                .metadata = weft__buf_head(&metadata),
                                                .key = *key ? key : NULL,
                                                .priority = task->priority,
                                                .timeout_ms = task->timeout_ms,
                                                .retries = task->retries,
                                                .permission = task->permission,
                                                .isolation = session && !goes_on ? session->isolation : WEFT_ISOLATION_NONE},
                              on_retried, weft__req_keep(req));
    weft__buf_done(&metadata, hub->alloc);
    return r < 0 ? refuse_retry(weft__req_keep(req), hub, r) : 0;
}
