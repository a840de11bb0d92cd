/* Tasks as AIWG's clients know them: submit, cancel, list, get, count. */
#include <errno.h>
#include <string.h>

#include "aiwg.h"
#include "buf.h"
#include "find_text.h"
#include "link.h"
#include "reply.h"
#include "utf8.h"
#include "write.h"

#define LIST_DEFAULT 20
#define LIST_MAX 1000
/* What a caller adds to a task is a note, not a payload. */
#define MAX_METADATA (64 * 1024)
#define MAX_RETRIES 100
#define UNKNOWN "\"weft/params\":{" /* in the metadata: what came with a task and nobody here knows */
/* As much as is kept of one task's output. */
#define MAX_OUTPUT (16 * 1024 * 1024)
#define CHAT_PRIORITY 5

/* ---- submitting ---- */

struct submit {
    const char *prompt, *agent;
    int64_t priority;
    weft_json metadata;
    int64_t timeoutMs, retries;
    const char *sessionId, *permission, *isolation;
    bool withChanges;
    const char *runner, *label;
};
const weft_param weft__aiwg_submit_params[] = {
    {"prompt", WEFT_PARAM_str, offsetof(struct submit, prompt), WEFT_REQUIRED | WEFT_NONEMPTY, "what the agent should do"},
    {"agent", WEFT_PARAM_str, offsetof(struct submit, agent), WEFT_NULLABLE | WEFT_NONEMPTY,
     "the agent; the default agent when absent"},
    {"priority", WEFT_PARAM_int, offsetof(struct submit, priority), WEFT_NULLABLE, "higher runs first; 0 when absent"},
    {"metadata", WEFT_PARAM_obj, offsetof(struct submit, metadata), WEFT_NULLABLE, "kept with the task as it is"},
    {"timeoutMs", WEFT_PARAM_int, offsetof(struct submit, timeoutMs), WEFT_NULLABLE,
     "how long it may run; 0 as configured, below 0 for ever"},
    {"retries", WEFT_PARAM_int, offsetof(struct submit, retries), WEFT_NULLABLE, "how often to try again when it fails"},
    {"sessionId", WEFT_PARAM_str, offsetof(struct submit, sessionId), WEFT_NULLABLE | WEFT_NONEMPTY,
     "continue this session"},
    {"permission", WEFT_PARAM_str, offsetof(struct submit, permission), WEFT_NULLABLE, WEFT_PERMISSION_HELP},
    {"isolation", WEFT_PARAM_str, offsetof(struct submit, isolation), WEFT_NULLABLE, WEFT_ISOLATION_HELP},
    {"withChanges", WEFT_PARAM_bool, offsetof(struct submit, withChanges), WEFT_NULLABLE, WEFT_WITH_CHANGES_HELP},
    {"runner", WEFT_PARAM_str, offsetof(struct submit, runner), WEFT_NULLABLE | WEFT_NONEMPTY,
     "on this machine: one that runner.list has"},
    {"label", WEFT_PARAM_str, offsetof(struct submit, label), WEFT_NULLABLE | WEFT_NONEMPTY,
     "on any machine that has this label"},
    WEFT_END(struct submit),
};

/* path: of the prompt, which has two names. */
static int refuse_submit(weft_req *req, const weft_hub *hub, const weft_task_spec *spec, const char *path, int r) {
    switch (r) {
    case -ENOENT:
        return weft__reply_no_agent(req, hub, WEFT_INVALID_PARAMS, "invalidParams", "/agent",
                                    spec->agent ? spec->agent : "");
    case -ESRCH:
        return weft__reply_invalid(req, "/sessionId", "there is no session %s", spec->session ? spec->session : "");
    case -EBUSY:
        return weft__reply_error(req, 409, "sessionBusy", "The session has a task already: %s",
                                 spec->session ? spec->session : "");
    case -ENODEV:
        return weft__reply_error(req, WEFT_INVALID_PARAMS, "noRunner",
                                 "No machine %s%s%s%s is known that has this project%s%s: \"weft runner list\" shows them",
                                 spec->runner ? "called " : "with the label ", spec->runner ? spec->runner : spec->label,
                                 spec->runner && spec->label ? " with the label " : "",
                                 spec->runner && spec->label ? spec->label : "", spec->agent ? " and the agent " : "",
                                 spec->agent ? spec->agent : "");
    case -ENOBUFS:
        return weft__reply_error(req, AIWG_QUEUE_FULL, "queueFull", "Queue full: %zu tasks are waiting",
                                 weft__engine_limits(hub->engine)->max_queue);
    default:
        return weft__reply_not_submitted(req, hub, path, r);
    }
}

static void on_aiwg_submitted(void *ctx, int r, const weft_task *task) {
    weft_req *req = ctx;
    if (r < 0)
        weft__reply_failure(req, r);
    else
        weft__reply_val(req, WEFT_OBJ({"taskId", weft_str(task->id)}, {"state", weft_str(weft__task_states[task->state])}));
}

static bool is_known(const weft_iter *it) {
    for (const weft_param *param = weft__aiwg_submit_params; param->name; param++)
        if (weft_name_is(it, param->name))
            return true;
    /* Secrets are not kept, and _meta is about the message, not the task. */
    return weft_name_is(it, "_meta") || weft_name_is(it, "auth") || weft_name_is(it, "token");
}

/* Members we do not know are kept with the task, below one name: another system may know them. */
static int put_unknown(weft_buf *out, const weft_alloc *alloc, const weft_json *params) {
    bool any = false;
    int r = 0;
    for (weft_iter it = weft_iterate(params); r >= 0 && weft_next(&it);) {
        if (is_known(&it))
            continue;
        const char *before = any ? "," : UNKNOWN;
        any = true;
        r = weft__buf_put(out, alloc, before, strlen(before));
        if (r >= 0)
            r = weft__buf_put(out, alloc, it.name.text, it.name.len);
        if (r >= 0)
            r = weft__buf_put(out, alloc, ":", 1);
        if (r >= 0)
            r = weft__buf_put(out, alloc, it.value.text, it.value.len);
    }
    return r < 0 ? r : any ? weft__buf_put(out, alloc, "}", 1) : 0;
}

/* The metadata as it came, and behind it what else came. */
static int put_metadata(weft_buf *out, const weft_alloc *alloc, const weft_json *metadata, weft_bytes unknown) {
    size_t end = metadata->text ? metadata->len - 1 : 0;
    while (end > 0 && strchr(" \t\r\n", metadata->text[end - 1]))
        end--;
    bool empty = !end || (weft_typeof(metadata) == WEFT_OBJECT && weft_count(metadata) == 0);
    int r = end ? weft__buf_put(out, alloc, metadata->text, end) : weft__buf_put(out, alloc, "{", 1);
    if (r >= 0 && !empty)
        r = weft__buf_put(out, alloc, ",", 1);
    if (r >= 0)
        r = weft__buf_put(out, alloc, unknown.data, unknown.len);
    return r < 0 ? r : weft__buf_put(out, alloc, "}", 2); /* and its NUL */
}

/* The metadata of a task as a text of its own. -E2BIG. */
static int make_metadata(const weft_hub *hub, const weft_json *params, const weft_json *metadata, weft_buf *ret) {
    weft_buf unknown = {0};
    int r = weft_typeof(params) == WEFT_OBJECT ? put_unknown(&unknown, hub->alloc, params) : 0;
    if (metadata->len > MAX_METADATA || weft__buf_len(&unknown) > MAX_METADATA)
        r = -E2BIG;
    if (r >= 0 && weft__buf_len(&unknown))
        r = put_metadata(ret, hub->alloc, metadata, (weft_bytes){weft__buf_head(&unknown), weft__buf_len(&unknown)});
    else if (r >= 0 && metadata->text && (r = weft__buf_put(ret, hub->alloc, metadata->text, metadata->len)) >= 0)
        r = weft__buf_put(ret, hub->alloc, "", 1);
    weft__buf_done(&unknown, hub->alloc);
    return r;
}

int weft__aiwg_submit(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct submit *in = weft_req_params(req);
    char key[WEFT_KEY];
    weft_buf metadata = {0};
    int r = weft__idempotency_key(req, key);
    if (r < 0)
        return r;
    if (in->retries < 0 || in->retries > MAX_RETRIES)
        return weft__reply_invalid(req, "/retries", "retries must be from 0 to %d", MAX_RETRIES);
    weft_task_permission permission;
    if ((r = weft__permission_read(req, hub, in->permission, &permission)) != 0)
        return r < 0 ? r : 0;
    weft_isolation isolation;
    if ((r = weft__isolation_read(req, in->isolation, in->withChanges, &isolation)) != 0)
        return r < 0 ? r : 0;
    if ((in->runner || in->label) && isolation && isolation != WEFT_ISOLATION_OFF)
        return weft__reply_invalid(req, "/isolation", "there are no worktrees on other machines");
    const weft_session *session = in->sessionId ? weft__session_find(hub->engine, in->sessionId) : NULL;
    weft_isolation wanted = isolation == WEFT_ISOLATION_OFF ? WEFT_ISOLATION_NONE : isolation;
    if (isolation && session && session->isolation != wanted)
        return weft__reply_invalid(req, "/isolation", "where a session works is said when it is made");
    r = make_metadata(hub, params, &in->metadata, &metadata);
    if (r < 0)
        weft__buf_done(&metadata, hub->alloc);
    if (r == -E2BIG)
        return weft__reply_invalid(req, "/metadata", "metadata must not be longer than %d bytes", MAX_METADATA);
    if (r < 0)
        return r;
    weft_trace trace;
    weft_task_spec spec = {.prompt = in->prompt,
                           .trace = weft_req_trace(req, &trace) ? &trace : NULL,
                           .agent = in->agent,
                           .session = in->sessionId,
                           .metadata = weft__buf_len(&metadata) ? weft__buf_head(&metadata) : NULL,
                           .key = *key ? key : NULL,
                           .priority = in->priority,
                           .timeout_ms = in->timeoutMs,
                           .retries = in->retries,
                           .permission = permission,
                           .isolation = isolation,
                           .runner = in->runner,
                           .label = in->label,
                           .unless_busy = true};
    r = weft__task_submit(hub->engine, &spec, on_aiwg_submitted, weft__req_keep(req));
    weft__buf_done(&metadata, hub->alloc);
    return r < 0 ? refuse_submit(weft__req_keep(req), hub, &spec, "/prompt", r) : 0;
}

/* ---- chat ---- */

struct weft_aiwg_chat {
    const char *message;
    int64_t priority;
};
const weft_param weft__aiwg_chat_params[] = {
    {"message", WEFT_PARAM_str, offsetof(struct weft_aiwg_chat, message), WEFT_REQUIRED | WEFT_NONEMPTY,
     "what to say to the agent"},
    {"priority", WEFT_PARAM_int, offsetof(struct weft_aiwg_chat, priority), WEFT_NULLABLE,
     "higher runs first; 5 when absent"},
    WEFT_END(struct weft_aiwg_chat),
};

const struct weft_aiwg_chat weft__aiwg_chat_defaults = {.priority = CHAT_PRIORITY};

static void on_chatted(void *ctx, int r, const weft_task *task) {
    weft_req *req = ctx;
    if (r < 0)
        weft__reply_failure(req, r);
    else
        weft__reply_val(req, WEFT_OBJ({"taskId", weft_str(task->id)}));
}

int weft__aiwg_chat(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct weft_aiwg_chat *in = weft_req_params(req);
    char key[WEFT_KEY];
    (void) params;
    int r = weft__idempotency_key(req, key);
    if (r < 0)
        return r;
    weft_trace trace;
    weft_task_spec spec = {.trace = weft_req_trace(req, &trace) ? &trace : NULL,
                           .prompt = in->message,
                           .metadata = "{\"source\":\"ipc-chat\"}",
                           .key = *key ? key : NULL,
                           .priority = in->priority};
    r = weft__task_submit(hub->engine, &spec, on_chatted, weft__req_keep(req));
    return r < 0 ? refuse_submit(weft__req_keep(req), hub, &spec, "/message", r) : 0;
}

/* ---- cancelling ---- */

struct id {
    const char *taskId;
};
const weft_param weft__aiwg_id_params[] = {
    {"taskId", WEFT_PARAM_str, offsetof(struct id, taskId), WEFT_REQUIRED | WEFT_NONEMPTY, "which task"},
    WEFT_END(struct id),
};

static int refuse_unknown_task(weft_req *req, const char *id) {
    return weft__reply_error(req, AIWG_TASK_NOT_FOUND, "taskNotFound", "Task not found: %s", id);
}

static int refuse_ended(weft_req *req, const weft_task *task) {
    const char *state = task ? weft__task_states[task->state] : "over";
    return weft__reply_error(req, AIWG_TASK_NOT_CANCELLABLE, "taskNotCancellable", "Task cannot be cancelled: it is %s",
                             state);
}

static void on_task_cancelled(void *ctx, int r, const weft_task *task) {
    weft_req *req = ctx;
    if (r == -EALREADY)
        refuse_ended(req, task);
    else if (r < 0)
        weft__reply_failure(req, r);
    else
        weft__reply_val(req, WEFT_OBJ({"cancelled", weft_bool(true)}));
}

int weft__aiwg_cancel(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct id *in = weft_req_params(req);
    char who[WEFT_WHO];
    (void) params;
    int r = weft__task_cancel(hub->engine, in->taskId, weft__who(weft_req_identity(req), who), on_task_cancelled,
                              weft__req_keep(req));
    if (r == -ENOENT)
        return refuse_unknown_task(req, in->taskId);
    if (r == -EALREADY)
        return refuse_ended(req, weft__task_find(hub->engine, in->taskId));
    return r < 0 ? weft__reply_failure(req, r) : 0;
}

/* ---- showing ---- */

/* What is done with a task's value, which lies on the stack. */
typedef int say_value(void *ctx, const weft_val *value);

/* output is a JSON string, because the whole of it may be large and is said twice. */
static int show_task(const weft_task *task, weft_val output, bool cut, say_value *say, void *ctx) {
    char created[WEFT_STAMP], started[WEFT_STAMP], completed[WEFT_STAMP];
    weft_val value = WEFT_OBJ(
        {"id", weft_str(task->id)}, {"prompt", weft_str(task->prompt)}, {"agent", weft_str(task->agent)},
        {"priority", weft_int(task->priority)}, {"state", weft_str(weft__task_states[task->state])},
        {"createdAt", weft__stamp_val(task->created_ms, created)}, {"startedAt", weft__stamp_val(task->started_ms, started)},
        {"completedAt", weft__stamp_val(task->completed_ms, completed)},
        {"pid", task->pid ? weft_int(task->pid) : weft_null()},
        {"result", task->state == WEFT_TASK_COMPLETED ? output : weft_null()},
        {"error", task->state == WEFT_TASK_FAILED ? weft_str(task->error ? task->error : "") : weft_null()},
        {"output", output}, {"metadata", weft_raw(task->metadata, strlen(task->metadata))},
        {"outputTruncated", cut || task->output_cut ? weft_bool(true) : weft_none()},
        {"stopReason", weft__early_stop(task->stop_reason)}, {"usage", weft__usage_or_none(task)});
    return say(ctx, &value);
}

struct listing {
    weft_buf *out;
    const weft_alloc *alloc;
};

static int add_to_list(void *ctx, const weft_val *value) {
    const struct listing *listing = ctx;
    return weft__write_val(listing->out, listing->alloc, value);
}

static int write_task(weft_buf *out, const weft_alloc *alloc, const weft_task *task, weft_val output, bool cut) {
    return show_task(task, output, cut, add_to_list, &(struct listing){out, alloc});
}

int weft__aiwg_write_task(weft_buf *out, const weft_alloc *alloc, const weft_task *task, size_t most) {
    weft_bytes tail = task->tail;
    size_t from = tail.len > most ? weft__utf8_from(tail.data, tail.len, tail.len - most) : 0;
    return write_task(out, alloc, task, weft_strn(tail.data ? tail.data + from : "", tail.len - from),
                      task->output_bytes > tail.len - from);
}

static size_t max_answer(const weft_hub *hub) {
    return weft__service_limits(hub->service)->max_answer;
}

struct list {
    const char *state, *search;
    int64_t limit;
};
const weft_param weft__aiwg_list_params[] = {
    {"state", WEFT_PARAM_str, offsetof(struct list, state), WEFT_NULLABLE,
     "only those that are queued, running, completed, failed or cancelled"},
    {"limit", WEFT_PARAM_int, offsetof(struct list, limit), WEFT_NULLABLE, "how many; 20 when absent or 0, at most 1000"},
    {"search", WEFT_PARAM_str, offsetof(struct list, search), WEFT_NULLABLE,
     "only those whose prompt, id or agent has this text; the case of letters A to Z does not matter"},
    WEFT_END(struct list),
};

/* The end of each output is said twice, and a byte may become six: a long list has shorter ends, so that it can be sent. */
static weft_bytes tail_of(const weft_hub *hub, const weft_task *task, int64_t limit) {
    size_t most = max_answer(hub) / (size_t) limit / 16;
    weft_bytes tail = task->tail;
    size_t from = tail.len > most ? weft__utf8_from(tail.data, tail.len, tail.len - most) : 0;
    return (weft_bytes){tail.data + from, tail.len - from};
}

static bool text_has(const char *text, const char *part) {
    return text && weft__find_text((weft_bytes){text, strlen(text)}, part);
}

static bool list_wants(const struct list *in, const weft_task *task) {
    if (in->state && strcmp(in->state, weft__task_states[task->state]) != 0)
        return false;
    return !in->search || text_has(task->prompt, in->search) || text_has(task->id, in->search) ||
           text_has(task->runs_on, in->search);
}

static int write_list(weft_buf *out, const weft_hub *hub, const struct list *in) {
    const weft_alloc *alloc = hub->alloc;
    int64_t left = in->limit;
    int r = weft__buf_put(out, alloc, "[", 1);
    for (const weft_task *task = weft__task_newest(hub->engine); r >= 0 && task && left;
         task = weft__task_older(hub->engine, task)) {
        if (!list_wants(in, task))
            continue;
        weft_bytes tail = tail_of(hub, task, in->limit);
        if (left-- < in->limit)
            r = weft__buf_put(out, alloc, ",", 1);
        if (r >= 0)
            r = write_task(out, alloc, task, weft_strn(tail.data ? tail.data : "", tail.len), task->output_bytes > tail.len);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

int weft__aiwg_list(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    struct list *in = weft_req_params(req);
    weft_buf out = {0};
    (void) params;
    if (in->limit < 0)
        return weft__reply_invalid(req, "/limit", "limit must not be negative");
    in->limit = in->limit == 0 ? LIST_DEFAULT : in->limit > LIST_MAX ? LIST_MAX : in->limit;
    int r = write_list(&out, hub, in);
    if (r >= 0)
        r = weft_reply(req, weft_raw(weft__buf_head(&out), weft__buf_len(&out)));
    weft__buf_done(&out, hub->alloc);
    return r;
}

/* A request for one task, while its output is being read. */
struct get {
    const weft_hub *hub;
    weft_req *req;
    weft_task_state state; /* when reading began: what was read belongs to it */
    int64_t attempt;
    char id[];
};

/* The end of the output as a JSON string, as much of it as can be said twice in one answer. */
static int write_output(weft_buf *out, const weft_hub *hub, weft_bytes output, bool *ret_cut) {
    size_t most = max_answer(hub) / 2 - max_answer(hub) / 16;
    for (;;) {
        int r = weft__write_str(out, hub->alloc, output.data ? output.data : "", output.len);
        size_t len = weft__buf_len(out);
        if (r < 0 || len <= most)
            return r;
        /* What is left out is a share of what was too much, and a little more: it converges at once. */
        size_t keep = (size_t) ((double) output.len * (double) most / (double) len * 0.95);
        weft__buf_done(out, hub->alloc);
        size_t from = weft__utf8_from(output.data, output.len, output.len - keep);
        output = (weft_bytes){output.data + from, output.len - from};
        *ret_cut = true;
    }
}

static int answer_get(void *ctx, const weft_val *value) {
    weft__reply_val(((const struct get *) ctx)->req, *value);
    return 0;
}

/* Written straight into the answer: with a large output every copy counts. */
static int say_task(struct get *get, const weft_task *task, weft_bytes output) {
    weft_buf text = {0};
    bool cut = output.len < task->output_bytes;
    int r = write_output(&text, get->hub, output, &cut);
    if (r >= 0)
        r = show_task(task, weft_raw(weft__buf_head(&text), weft__buf_len(&text)), cut, answer_get, get);
    weft__buf_done(&text, get->hub->alloc);
    return r;
}

static void on_task_output(void *ctx, int r, weft_bytes output);

static int read_output(struct get *get, const weft_task *task) {
    get->state = task->state;
    get->attempt = task->attempt;
    return weft__task_output(get->hub->engine, get->id, MAX_OUTPUT, on_task_output, get);
}

/* It ended, or began again, while its output was read: state and output would be of different moments. */
static bool has_moved(const struct get *get, const weft_task *task) {
    return task->state != get->state || task->attempt != get->attempt;
}

static void on_task_output(void *ctx, int r, weft_bytes output) {
    struct get *get = ctx;
    const weft_task *task = weft__task_find(get->hub->engine, get->id);
    if (task && r >= 0 && has_moved(get, task) && (r = read_output(get, task)) >= 0)
        return;
    if (!task)
        refuse_unknown_task(get->req, get->id);
    else if (r == -ECANCELED)
        weft__reply_failure(get->req, -ESHUTDOWN);
    else if (r < 0)
        weft__reply_error(get->req, 507, "storageFailed", "The output cannot be read: %s", weft_strerror(r));
    else if ((r = say_task(get, task, output)) < 0)
        weft__reply_error(get->req, WEFT_INTERNAL_ERROR, "outOfMemory", "The output cannot be shown: %s", weft_strerror(r));
    weft__free(get->hub->alloc, get);
}

int weft__aiwg_get(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct id *in = weft_req_params(req);
    (void) params;
    if (weft_req_is_notification(req))
        return 0;
    const weft_task *task = weft__task_find(hub->engine, in->taskId);
    if (!task)
        return refuse_unknown_task(req, in->taskId);
    size_t size = strlen(in->taskId) + 1;
    struct get *get = weft__alloc(hub->alloc, sizeof *get + size);
    if (!get)
        return -ENOMEM;
    get->hub = hub;
    get->req = req;
    memcpy(get->id, in->taskId, size);
    int r = read_output(get, task);
    if (r >= 0)
        return 0;
    weft__free(hub->alloc, get);
    return weft__reply_failure(req, r);
}

int weft__aiwg_stats(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    weft_task_counts counts = weft__task_counts(hub->engine);
    uint64_t total = 0;
    (void) params;
    for (size_t i = 0; i < WEFT_TASK_STATES; i++)
        total += counts.of[i];
    return weft_reply(req, WEFT_OBJ({"total", weft_uint(total)}, {"queued", weft_uint(counts.of[WEFT_TASK_QUEUED])},
                                    {"running", weft_uint(counts.of[WEFT_TASK_RUNNING])},
                                    {"completed", weft_uint(counts.of[WEFT_TASK_COMPLETED])},
                                    {"failed", weft_uint(counts.of[WEFT_TASK_FAILED])},
                                    {"cancelled", weft_uint(counts.of[WEFT_TASK_CANCELLED])}));
}
