/* What tasks and sessions changed in the project's files, and putting it back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "hub_methods.h"
#include "hub_methods_there.h"
#include "reply.h"
#include "write.h"

#define FILES 1000 /* in one answer, unless somebody asks for more or less */
#define FILES_MAX 10000
#define CONTEXT 3
#define PAGE_THERE ((int64_t) 4 << 20) /* bytes of a diff that are fetched at a time from another machine */

struct changes {
    const char *taskId, *sessionId, *path;
    weft_json context;
    int64_t skip, limit, offset, maxBytes;
};
const weft_param weft__hub_changes_params[] = {
    {"taskId", WEFT_PARAM_str, offsetof(struct changes, taskId), WEFT_NULLABLE, "of this task"},
    {"sessionId", WEFT_PARAM_str, offsetof(struct changes, sessionId), WEFT_NULLABLE,
     "of all tasks of this session instead"},
    {"path", WEFT_PARAM_str, offsetof(struct changes, path), WEFT_NULLABLE, "of this file or folder alone"},
    {"skip", WEFT_PARAM_int, offsetof(struct changes, skip), WEFT_NULLABLE, "how many files to leave out, by path"},
    {"limit", WEFT_PARAM_int, offsetof(struct changes, limit), WEFT_NULLABLE, "how many files; default 1000"},
    WEFT_END(struct changes),
};
const weft_param weft__hub_diff_params[] = {
    {"taskId", WEFT_PARAM_str, offsetof(struct changes, taskId), WEFT_NULLABLE, "of this task"},
    {"sessionId", WEFT_PARAM_str, offsetof(struct changes, sessionId), WEFT_NULLABLE,
     "of all tasks of this session instead"},
    {"path", WEFT_PARAM_str, offsetof(struct changes, path), WEFT_NULLABLE, "of this file or folder alone"},
    {"context", WEFT_PARAM_any, offsetof(struct changes, context), WEFT_NULLABLE, "lines around each change; default 3"},
    {"offset", WEFT_PARAM_int, offsetof(struct changes, offset), WEFT_NULLABLE, "where to go on: next of the last answer"},
    {"maxBytes", WEFT_PARAM_int, offsetof(struct changes, maxBytes), WEFT_NULLABLE, "how many bytes; default 1 MiB"},
    WEFT_END(struct changes),
};
struct undo {
    const char *taskId;
    bool redo, shared;
};
const weft_param weft__hub_undo_params[] = {
    {"taskId", WEFT_PARAM_str, offsetof(struct undo, taskId), WEFT_REQUIRED, "what this task changed"},
    {"redo", WEFT_PARAM_bool, offsetof(struct undo, redo), WEFT_NULLABLE, "after an undo: put it there again"},
    {"shared", WEFT_PARAM_bool, offsetof(struct undo, shared), WEFT_NULLABLE,
     "also files that others may have changed at the same time"},
    WEFT_END(struct undo),
};

/* A request that waits for snapshots. */
struct changes_call {
    weft_hub_wait wait;
    const weft_hub *hub;
    weft_req *req;
    size_t skip, limit, offset;
    char taskId[64], sessionId[64], by[WEFT_WHO];
    bool redo;
    weft_doc *said; /* by a runner that has undone it */
};

static void end_changes_call(weft_hub_wait *wait) {
    struct changes_call *call = WEFT_CONTAINER(wait, struct changes_call, wait);
    weft__reply_failure(call->req, -ESHUTDOWN);
    weft__free(call->hub->alloc, call);
}

static void finish_changes_call(struct changes_call *call) {
    weft__hub_wait_over(&call->wait);
    weft__free(call->hub->alloc, call);
}

/* ---- refusals ---- */

int weft__hub_refuse_changes(weft_req *req, int r, const char *message) {
    switch (r) {
    case -ENOENT:
        return weft__reply_error(req, 501, "changesFailed", "%s", message);
    case -ESTALE:
        return weft__reply_error(req, 410, "changesGone", "%s", message);
    case -ETIMEDOUT:
        return weft__reply_error(req, 504, "changesTimedOut", "%s", message);
    case -ENOMEM:
    case -ECANCELED:
        return weft__reply_failure(req, r == -ECANCELED ? -ESHUTDOWN : r);
    default:
        return weft__reply_error(req, 500, "changesFailed", "%s", message);
    }
}

int weft__hub_refuse_unknown(weft_req *req, const weft_hub *hub, const char *task, int r) {
    const weft_task *found = task ? weft__task_find(hub->engine, task) : NULL;
    const char *why = found && found->changes && found->changes->why ? found->changes->why : NULL;
    bool waits = found && found->state == WEFT_TASK_QUEUED;
    switch (r) {
    case -ENOENT:
        return weft__reply_error(req, 404, task ? "taskNotFound" : "sessionNotFound", "there is no such %s",
                                 task ? "task" : "session");
    case -EOPNOTSUPP:
        return weft__reply_error(req, 501, "changesNotKept", "what tasks change is not kept here (changes.enabled)");
    case -ENODATA:
        return weft__reply_error(req, 409, "changesUnknown", "what it changed is not known: %s",
                                 why     ? why
                                 : waits ? "it has not begun"
                                         : "no snapshot was taken");
    case -EBUSY:
        return weft__reply_error(req, 409, "taskNotEnded", "the task has not ended");
    case -EALREADY:
        return weft__reply_error(req, 409, "alreadyUndone", "there is nothing to %s",
                                 found && found->changes && found->changes->undone ? "undo: it is undone"
                                                                                   : "put there again");
    case -EAGAIN:
        return weft__reply_error(req, 429, "changesBusy", "another undo, or too much else, is under way; try again");
    case -EFBIG:
        return weft__reply_error(req, 409, "changesShared", "others worked at the same time too often to tell apart");
    case -EINVAL:
        return weft__reply_invalid(req, "/path", "path must be relative to the project's folder");
    default:
        return weft__reply_failure(req, r);
    }
}

/* ---- the list ---- */

static const char *mode_name(unsigned mode, char ret[8]) {
    snprintf(ret, 8, "%06o", mode);
    return ret;
}

static int write_file(weft_buf *out, const weft_alloc *alloc, const weft_changed_file *file) {
    char old_mode[8], new_mode[8];
    bool modes = file->old_mode && file->new_mode && file->old_mode != file->new_mode;
    bool counted = !file->binary && !file->submodule && !file->too_large;
    weft_val value = WEFT_OBJ({"path", weft_str(file->path)}, {"change", weft_str(weft__changed_names[file->change])},
                              {"from", weft_str_or_none(file->from)},
                              {"oldMode", modes ? weft_str(mode_name(file->old_mode, old_mode)) : weft_none()},
                              {"newMode", modes ? weft_str(mode_name(file->new_mode, new_mode)) : weft_none()},
                              {"additions", counted ? weft_uint(file->additions) : weft_none()},
                              {"deletions", counted ? weft_uint(file->deletions) : weft_none()},
                              {"binary", file->binary ? weft_bool(true) : weft_none()},
                              {"submodule", file->submodule ? weft_bool(true) : weft_none()},
                              {"tooLarge", file->too_large ? weft_bool(true) : weft_none()},
                              {"size", file->too_large && file->size ? weft_uint(file->size) : weft_none()},
                              {"shared", file->shared ? weft_bool(true) : weft_none()});
    return weft__write_val(out, alloc, &value);
}

static int write_files(weft_buf *out, const struct changes_call *call, const weft_changed_list *list) {
    const weft_alloc *alloc = call->hub->alloc;
    int r = weft__buf_put(out, alloc, "[", 1);
    for (size_t i = call->skip; r >= 0 && i < list->count && i - call->skip < call->limit; i++) {
        if (i > call->skip)
            r = weft__buf_put(out, alloc, ",", 1);
        if (r >= 0)
            r = write_file(out, alloc, &list->files[i]);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

static weft_val id_or_none(const char *id) {
    return *id ? weft_str(id) : weft_none();
}

static int reply_list(const struct changes_call *call, const weft_changed_list *list) {
    weft_buf out = {0};
    const weft_task *task = *call->taskId ? weft__task_find(call->hub->engine, call->taskId) : NULL;
    const weft_task_changes *changes = task ? task->changes : NULL;
    size_t shared = 0;
    for (size_t i = 0; i < list->count; i++)
        shared += list->files[i].shared;
    int r = write_files(&out, call, list);
    bool more = call->skip < list->count && list->count - call->skip > call->limit;
    if (r >= 0)
        r = weft__reply_val(
            call->req,
            WEFT_OBJ({"taskId", id_or_none(call->taskId)}, {"sessionId", id_or_none(call->sessionId)},
                     {"files", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}, {"total", weft_uint(list->count)},
                     {"added", weft_uint(list->of[WEFT_CHANGED_ADDED])},
                     {"modified", weft_uint(list->of[WEFT_CHANGED_MODIFIED] + list->of[WEFT_CHANGED_TYPE])},
                     {"deleted", weft_uint(list->of[WEFT_CHANGED_DELETED])},
                     {"renamed", weft_uint(list->of[WEFT_CHANGED_RENAMED])}, {"additions", weft_uint(list->additions)},
                     {"deletions", weft_uint(list->deletions)}, {"truncated", weft_bool(more)},
                     {"running", weft_bool(task && task->state == WEFT_TASK_RUNNING)},
                     {"shared", shared ? weft_uint(shared) : weft_none()},
                     {"others", shared && changes && changes->others ? weft_raw(changes->others, strlen(changes->others))
                                                                     : weft_none()},
                     {"late", changes && changes->late ? weft_bool(true) : weft_none()},
                     {"undone", changes && changes->undone ? weft_bool(true) : weft_none()}));
    weft__buf_done(&out, call->hub->alloc);
    return r;
}

static void on_listed(void *ctx, const weft_compared *compared) {
    struct changes_call *call = ctx;
    int r = compared->r < 0 ? weft__hub_refuse_changes(call->req, compared->r, compared->message)
                            : reply_list(call, compared->list);
    if (r < 0)
        weft__reply_failure(call->req, r);
    finish_changes_call(call);
}

/* ---- the diff ---- */

/* A page ends with a line, if it has one. */
static weft_bytes whole_lines(weft_bytes text, bool truncated) {
    const char *end = truncated && text.len ? memrchr(text.data, '\n', text.len) : NULL;
    return end ? (weft_bytes){text.data, (size_t) (end + 1 - text.data)} : text;
}

static void on_diffed(void *ctx, const weft_compared *compared) {
    struct changes_call *call = ctx;
    weft_bytes text = whole_lines(compared->text, compared->truncated);
    if (compared->r < 0)
        weft__hub_refuse_changes(call->req, compared->r, compared->message);
    else
        weft__reply_val(call->req,
                        WEFT_OBJ({"taskId", id_or_none(call->taskId)}, {"sessionId", id_or_none(call->sessionId)},
                                 {"diff", weft_strn(text.data, text.len)}, {"truncated", weft_bool(compared->truncated)},
                                 {"next", compared->truncated ? weft_uint(call->offset + text.len) : weft_none()}));
    finish_changes_call(call);
}

/* Which of them is; NULL: none. */
static const char *out_of_range(const struct changes *in, int64_t context) {
    if (in->skip < 0)
        return "/skip";
    if (in->limit < 0 || in->limit > FILES_MAX)
        return "/limit";
    if (context < 0 || context > WEFT_SNAPSHOT_CONTEXT)
        return "/context";
    if (in->offset < 0 || in->offset > WEFT_SNAPSHOT_DIFF_ALL)
        return "/offset";
    return in->maxBytes < 0 || in->maxBytes > WEFT_SNAPSHOT_DIFF_MAX ? "/maxBytes" : NULL;
}

/* ---- on a runner ---- */

static bool is_of_session(const struct changes_call *call) {
    return *call->sessionId != '\0';
}

static const char *id_of(const struct changes_call *call) {
    return is_of_session(call) ? call->sessionId : call->taskId;
}

static void on_there(void *ctx, int r, const weft_answer *answer) {
    struct changes_call *call = ctx;
    r = weft__hub_pass_there(call->req, call->hub, id_of(call), is_of_session(call), r, answer);
    if (r < 0)
        weft__reply_failure(call->req, r);
    finish_changes_call(call);
}

/* It is answered in any case. */
static int ask_there(struct changes_call *call, const char *method, weft_val params, weft__there_done *done) {
    int r = weft__hub_ask_there(call->hub, id_of(call), is_of_session(call), method, params, done, call);
    if (r >= 0) {
        weft__hub_wait(call->hub->clients, &call->wait);
        return 0;
    }
    r = weft__hub_refuse_there(call->req, call->hub, id_of(call), is_of_session(call), r);
    weft__free(call->hub->alloc, call);
    return r;
}

static weft_val count_or_none(int64_t value) {
    return value > 0 ? weft_int(value) : weft_none();
}

static int ask_for_changes_there(struct changes_call *call, const struct changes *in, bool text) {
    bool context = weft_typeof(&in->context) == WEFT_NUMBER;
    return ask_there(call, text ? "task.diff" : "task.changes",
                     WEFT_OBJ({"path", weft_str_or_none(in->path)}, {"skip", count_or_none(in->skip)},
                              {"limit", count_or_none(in->limit)}, {"offset", count_or_none(in->offset)},
                              {"maxBytes", count_or_none(in->maxBytes < PAGE_THERE ? in->maxBytes : PAGE_THERE)},
                              {"context", context ? weft_copy(&in->context) : weft_none()}),
                     on_there);
}

static int ask_for_changes(weft_req *req, const weft_hub *hub, bool text) {
    const struct changes *in = weft_req_params(req);
    bool session = in->sessionId && *in->sessionId;
    const char *id = session ? in->sessionId : in->taskId;
    if (!id || !*id || (session && in->taskId && *in->taskId))
        return weft__reply_invalid(weft__req_keep(req), "/taskId", "name a task or a session");
    const char *gated = session ? NULL : weft__session_of_gated(hub, id);
    session |= gated != NULL;
    id = gated ? gated : id;
    int64_t context = weft_typeof(&in->context) == WEFT_NUMBER ? weft_int_of(&in->context, -1) : CONTEXT;
    const char *bad = out_of_range(in, context);
    if (bad)
        return weft__reply_invalid(weft__req_keep(req), bad, "%s is out of range", bad + 1);
    struct changes_call *call = weft__zalloc(hub->alloc, sizeof *call);
    if (!call)
        return -ENOMEM;
    *call = (struct changes_call){
        .wait.on_end = end_changes_call,
        .hub = hub,
        .req = weft__req_keep(req),
        .skip = in->skip > 0 ? (size_t) in->skip : 0,
        .limit = in->limit > 0 ? (size_t) in->limit : FILES,
        .offset = in->offset > 0 ? (size_t) in->offset : 0,
    };
    snprintf(session ? call->sessionId : call->taskId, sizeof call->taskId, "%s", id);
    if (weft__hub_is_there(hub, id, session))
        return ask_for_changes_there(call, in, text);
    weft_comparison how = {
        .text = text,
        .path = in->path && *in->path ? in->path : NULL,
        .context = (unsigned) context,
        .skip = call->offset,
        .max = in->maxBytes > 0 ? (size_t) in->maxBytes : 0,
    };
    int r = weft__task_compare(hub->engine, id, session, &how, text ? on_diffed : on_listed, call);
    if (r >= 0) {
        weft__hub_wait(hub->clients, &call->wait);
        return 0;
    }
    weft__free(hub->alloc, call);
    return r == -ENOMEM ? r : weft__hub_refuse_unknown(weft__req_keep(req), hub, session ? NULL : id, r);
}

int weft__hub_changes(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return ask_for_changes(req, ctx, false);
}

int weft__hub_diff(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return ask_for_changes(req, ctx, true);
}

/* ---- undo ---- */

static int write_conflicts(weft_buf *out, const weft_alloc *alloc, const weft_undo_result *result) {
    int r = weft__buf_put(out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < result->listed; i++) {
        weft_val value =
            WEFT_OBJ({"path", weft_str(result->conflicts[i].path)}, {"reason", weft_str(result->conflicts[i].reason)});
        r = i ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__write_val(out, alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

/* What was merged is put back in the project, whatever became of the worktree. */
static const char *where_undone(const struct changes_call *call) {
    const weft_task *task = weft__task_find(call->hub->engine, call->taskId);
    const weft_session *session = task ? weft__session_find(call->hub->engine, task->session) : NULL;
    bool merged = task && task->changes && *task->changes->merged;
    return session && session->isolation && !merged ? "worktree" : "project";
}

/* Conflicts are an answer, not an error: nothing was done, and here is why. */
static int reply_undo(const struct changes_call *call, const weft_undo_result *result) {
    weft_buf out = {0};
    bool undone = !result->conflict_count;
    int r = write_conflicts(&out, call->hub->alloc, result);
    if (r >= 0)
        r = weft__reply_val(call->req, WEFT_OBJ({"taskId", weft_str(call->taskId)}, {"ok", weft_bool(undone)},
                                                {"files", undone ? weft_uint(result->undone.files) : weft_uint(0)},
                                                {"conflicts", weft_raw(weft__buf_head(&out), weft__buf_len(&out))},
                                                {"conflictCount", weft_uint(result->conflict_count)},
                                                {"where", weft_str(where_undone(call))}));
    weft__buf_done(&out, call->hub->alloc);
    return r;
}

static void on_undo_over(void *ctx, const weft_undo_result *result) {
    struct changes_call *call = ctx;
    int r = result->r < 0 ? weft__hub_refuse_changes(call->req, result->r, result->message) : reply_undo(call, result);
    if (r < 0)
        weft__reply_failure(call->req, r);
    weft__free(call->hub->alloc, call);
}

/* It was put back there, whether we could store that or not. */
static void on_undone_there(void *ctx, int r) {
    struct changes_call *call = ctx;
    weft_answer answer = {.result = weft_doc_root(call->said)};
    (void) r;
    weft__hub_pass_there(call->req, call->hub, call->taskId, false, 0, &answer);
    weft_doc_free(call->said);
    weft__free(call->hub->alloc, call);
}

/* Stored before it is answered, as at home. The engine always calls back, so the clients may go meanwhile. */
static void on_undo_there(void *ctx, int r, const weft_answer *answer) {
    struct changes_call *call = ctx;
    const weft_undo_order order = {.by = call->by, .redo = call->redo};
    bool undone = r >= 0 && answer->result && weft_get_bool(answer->result, "ok", false);
    if (!undone || weft_doc_keep(answer->result, call->hub->alloc, &call->said) < 0) {
        on_there(ctx, r, answer);
        return;
    }
    weft__hub_wait_over(&call->wait);
    r = weft__task_undone_there(call->hub->engine, call->taskId, &order, (uint64_t) weft_get_int(answer->result, "files", 0),
                                on_undone_there, call);
    if (r < 0)
        on_undone_there(call, r);
}

static int ask_for_undo_there(struct changes_call *call, const struct undo *in) {
    return ask_there(
        call, "task.undo",
        WEFT_OBJ({"redo", in->redo ? weft_bool(true) : weft_none()}, {"shared", in->shared ? weft_bool(true) : weft_none()}),
        on_undo_there);
}

int weft__hub_undo(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct undo *in = weft_req_params(req);
    char who[WEFT_WHO];
    (void) params;
    if (weft__session_of_gated(hub, in->taskId))
        return weft__reply_invalid(weft__req_keep(req), "/taskId",
                                   "a gated task is undone by its iterations, the last one first");
    struct changes_call *call = weft__zalloc(hub->alloc, sizeof *call);
    if (!call)
        return -ENOMEM;
    /* The engine always answers. */
    *call = (struct changes_call){.wait.on_end = end_changes_call, .hub = hub, .req = weft__req_keep(req), .redo = in->redo};
    snprintf(call->taskId, sizeof call->taskId, "%s", in->taskId);
    snprintf(call->by, sizeof call->by, "%s", weft__who(weft_req_identity(req), who));
    const weft_task *task = weft__task_find(hub->engine, in->taskId);
    if (task && task->state >= WEFT_TASK_COMPLETED && weft__hub_is_there(hub, in->taskId, false))
        return ask_for_undo_there(call, in);
    weft_undo_order order = {.by = call->by, .redo = in->redo, .shared = in->shared};
    int r = weft__task_undo(hub->engine, in->taskId, &order, on_undo_over, call);
    if (r >= 0)
        return 0;
    weft__free(hub->alloc, call);
    return r == -ENOMEM ? r : weft__hub_refuse_unknown(weft__req_keep(req), hub, in->taskId, r);
}
