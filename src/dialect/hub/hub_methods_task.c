/* What the hub knows of tasks beyond what AIWG's clients expect: task.get and task.list have their members and no others. */
#include <string.h>

#include "hub_methods.h"
#include "reply.h"
#include "runners.h"
#include "write.h"

#define MAX_IDS 1000
#define BESIDE 8 /* tasks in the same files that are named */

struct about {
    weft_json taskIds;
};
const weft_param weft__hub_about_params[] = {
    {"taskIds", WEFT_PARAM_arr, offsetof(struct about, taskIds), WEFT_REQUIRED, "which tasks, at most 1000"},
    WEFT_END(struct about),
};

static int write_about(weft_buf *out, const weft_hub *hub, const weft_task *task) {
    weft_member changes[WEFT_CHANGES_MEMBERS];
    char waits[WEFT_RUNNER_WAITS];
    const weft_session *session = weft__session_find(hub->engine, task->session);
    const char *others[BESIDE];
    weft_val beside[BESIDE];
    size_t count = weft__task_beside(hub->engine, task->id, others, BESIDE);
    for (size_t i = 0; i < count; i++)
        beside[i] = weft_str(others[i]);
    weft_val value = WEFT_OBJ(
        {"id", weft_str(task->id)}, {"agent", weft_str(task->runs_on)}, {"sessionId", weft_str(task->session)},
        {"attempt", weft_int(task->attempt)}, {"retries", weft_int(task->retries)},
        {"timeoutMs", task->timeout_ms < 0 ? weft_null() : weft_int(task->timeout_ms)}, {"reason", weft_str(task->reason)},
        {"waits", weft_str_or_none(weft__task_waits(hub->engine, task->id, waits))},
        {"stopReason", weft_str_or_none(task->stop_reason)}, {"usage", weft__usage_or_none(task)},
        {"changes", weft__changes_val(task->changes, false, changes)},
        {"branch", weft_str_or_none(session ? session->branch : NULL)},
        {"worktree", weft_str_or_none(session ? session->path : NULL)},
        {"beside", count ? weft_arr(beside, count) : weft_none()});
    return weft__write_val(out, hub->alloc, &value);
}

/* What is no id, or nobody's, is left out: a task may be forgotten between a list and this. */
static int write_found_tasks(weft_buf *out, const weft_hub *hub, const weft_json *ids) {
    bool first = true;
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (weft_iter it = weft_iterate(ids); r >= 0 && weft_next(&it);) {
        const char *id = weft_str_of(&it.value, NULL);
        const weft_task *task = id ? weft__task_find(hub->engine, id) : NULL;
        if (!task)
            continue;
        r = first ? 0 : weft__buf_put(out, hub->alloc, ",", 1);
        first = false;
        if (r >= 0)
            r = write_about(out, hub, task);
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

int weft__hub_about(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct about *in = weft_req_params(req);
    weft_buf out = {0};
    (void) params;
    if (weft_count(&in->taskIds) > MAX_IDS)
        return weft__reply_invalid(req, "/taskIds", "taskIds must not be more than %d", MAX_IDS);
    int r = write_found_tasks(&out, hub, &in->taskIds);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"tasks", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, hub->alloc);
    return r;
}
