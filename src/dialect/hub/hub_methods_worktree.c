/* Worktrees of tasks: bringing what was done there into the project, throwing it away, listing and cleaning up. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "hub_methods.h"
#include "reply.h"
#include "write.h"

struct merge {
    const char *taskId, *strategy, *message;
};
const weft_param weft__hub_merge_params[] = {
    {"taskId", WEFT_PARAM_str, offsetof(struct merge, taskId), WEFT_REQUIRED, "what its session did in its worktree"},
    {"strategy", WEFT_PARAM_str, offsetof(struct merge, strategy), WEFT_NULLABLE,
     "merge (default), squash (as one commit) or rebase (commit by commit)"},
    {"message", WEFT_PARAM_str, offsetof(struct merge, message), WEFT_NULLABLE,
     "of commits that are made; default: the prompt's first line"},
    WEFT_END(struct merge),
};
struct discard {
    const char *taskId;
    bool force;
};
const weft_param weft__hub_discard_worktree_params[] = {
    {"taskId", WEFT_PARAM_str, offsetof(struct discard, taskId), WEFT_REQUIRED, "the worktree of its session"},
    {"force", WEFT_PARAM_bool, offsetof(struct discard, force), WEFT_NULLABLE,
     "also if what is in it cannot be committed first, and is lost"},
    WEFT_END(struct discard),
};
struct prune {
    const char *name;
    bool dryRun;
};
const weft_param weft__hub_prune_params[] = {
    {"name", WEFT_PARAM_str, offsetof(struct prune, name), WEFT_NULLABLE, "only this one"},
    {"dryRun", WEFT_PARAM_bool, offsetof(struct prune, dryRun), WEFT_NULLABLE, "say which, and remove nothing"},
    WEFT_END(struct prune),
};

/* ---- refusals ---- */

static int refuse_worktree(weft_req *req, int r, const char *message) {
    if (r == -EALREADY)
        return weft__reply_error(req, 409, "alreadyMerged", "%s", message);
    if (r == -EREMOTEIO || r == -EPERM || r == -EXDEV || r == -EOPNOTSUPP)
        return weft__reply_error(req, 409, "worktreeRefused", "%s", message);
    return weft__hub_refuse_changes(req, r, message);
}

static int refuse_now(weft_req *req, const weft_hub *hub, const char *task, int r) {
    switch (r) {
    case -ENOTDIR:
        return weft__reply_error(req, 409, "noWorktree", "%s did not work in a worktree", task);
    case -ENODATA:
        return weft__reply_error(req, 409, "noWorktree", "the worktree of %s is not there", task);
    case -EBUSY:
        return weft__reply_error(req, 409, "worktreeBusy", "the session of %s has something to do in its worktree", task);
    case -EMFILE:
        return weft__reply_error(req, 429, "changesBusy", "too many worktrees are in use since the hub was started");
    default:
        return weft__hub_refuse_unknown(req, hub, task, r);
    }
}

/* ---- merge and discard ---- */

struct merge_call {
    const weft_hub *hub;
    weft_req *req;
    char taskId[64];
};

static int write_merge_conflicts(weft_buf *out, const weft_alloc *alloc, const weft_merge_result *result) {
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

static weft_val some_text(const char *text) {
    return text && *text ? weft_str(text) : weft_none();
}

/* Conflicts are an answer, not an error. */
static int reply_merge(const struct merge_call *call, const weft_merge_result *result) {
    const weft_merged *merged = &result->merged;
    weft_buf out = {0};
    bool ok = !result->conflict_count;
    int r = write_merge_conflicts(&out, call->hub->alloc, result);
    if (r >= 0)
        r = weft__reply_val(call->req,
                            WEFT_OBJ({"taskId", weft_str(call->taskId)}, {"ok", weft_bool(ok)},
                                     {"worktree", some_text(merged->name)}, {"branch", weft_str(merged->branch)},
                                     {"strategy", weft_str(merged->how)}, {"into", some_text(merged->into)},
                                     {"commit", ok ? weft_str(merged->to) : weft_none()},
                                     {"files", weft_uint(ok ? merged->files : 0)},
                                     {"committed", result->committed ? weft_bool(true) : weft_none()},
                                     {"left", merged->left ? weft_uint(merged->left) : weft_none()},
                                     {"conflicts", weft_raw(weft__buf_head(&out), weft__buf_len(&out))},
                                     {"conflictCount", weft_uint(result->conflict_count)},
                                     {"where", ok ? weft_none() : weft_str(result->in_worktree ? "worktree" : "project")}));
    weft__buf_done(&out, call->hub->alloc);
    return r;
}

static void on_merge_over(void *ctx, const weft_merge_result *result) {
    struct merge_call *call = ctx;
    int r = result->r < 0 ? refuse_worktree(call->req, result->r, result->message) : reply_merge(call, result);
    if (r < 0)
        weft__reply_failure(call->req, r);
    weft__free(call->hub->alloc, call);
}

static void on_discard_over(void *ctx, const weft_merge_result *result) {
    struct merge_call *call = ctx;
    const weft_merged *merged = &result->merged;
    int r =
        result->r < 0
            ? refuse_worktree(call->req, result->r, result->message)
            : weft__reply_val(call->req, WEFT_OBJ({"taskId", weft_str(call->taskId)}, {"worktree", weft_str(merged->name)},
                                                  {"branch", weft_str(merged->branch)}, {"commit", some_text(merged->tip)}));
    if (r < 0)
        weft__reply_failure(call->req, r);
    weft__free(call->hub->alloc, call);
}

/* The engine always answers. */
static struct merge_call *new_merge_call(weft_req *req, const weft_hub *hub, const char *task) {
    struct merge_call *call = weft__zalloc(hub->alloc, sizeof *call);
    if (!call)
        return NULL;
    *call = (struct merge_call){.hub = hub, .req = weft__req_keep(req)};
    snprintf(call->taskId, sizeof call->taskId, "%s", task);
    return call;
}

static bool read_strategy(const char *said, weft_merge_how *ret) {
    *ret = WEFT_MERGE_MERGE;
    for (weft_merge_how how = 0; how < WEFT_MERGE_HOWS; how++)
        if (said && strcmp(said, weft__merge_hows[how]) == 0) {
            *ret = how;
            return true;
        }
    return !said;
}

int weft__hub_merge(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct merge *in = weft_req_params(req);
    char who[WEFT_WHO];
    weft_merge_order order = {.by = weft__who(weft_req_identity(req), who), .message = in->message};
    (void) params;
    if (!read_strategy(in->strategy, &order.how))
        return weft__reply_invalid(weft__req_keep(req), "/strategy", "strategy must be merge, squash or rebase");
    if (in->message && strlen(in->message) > WEFT_WORKTREE_MESSAGE)
        return weft__reply_invalid(weft__req_keep(req), "/message", "message must not have more than %d bytes",
                                   WEFT_WORKTREE_MESSAGE);
    struct merge_call *call = new_merge_call(req, hub, in->taskId);
    if (!call)
        return -ENOMEM;
    int r = weft__task_merge(hub->engine, in->taskId, &order, on_merge_over, call);
    if (r >= 0)
        return 0;
    weft__free(hub->alloc, call);
    return r == -ENOMEM ? r : refuse_now(weft__req_keep(req), hub, in->taskId, r);
}

int weft__hub_discard_worktree(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct discard *in = weft_req_params(req);
    char who[WEFT_WHO];
    weft_discard_order order = {.by = weft__who(weft_req_identity(req), who), .force = in->force};
    (void) params;
    struct merge_call *call = new_merge_call(req, hub, in->taskId);
    if (!call)
        return -ENOMEM;
    int r = weft__task_discard(hub->engine, in->taskId, &order, on_discard_over, call);
    if (r >= 0)
        return 0;
    weft__free(hub->alloc, call);
    return r == -ENOMEM ? r : refuse_now(weft__req_keep(req), hub, in->taskId, r);
}

/* ---- listing and cleaning up ---- */

struct list_call {
    weft_hub_wait wait;
    const weft_hub *hub;
    weft_req *req;
    bool prunes;
};

static void end_list_call(weft_hub_wait *wait) {
    struct list_call *call = WEFT_CONTAINER(wait, struct list_call, wait);
    weft__reply_failure(call->req, -ESHUTDOWN);
    weft__free(call->hub->alloc, call);
}

static const char *state_of_worktree(const weft_worktree_info *info, bool busy) {
    if (busy)
        return "busy";
    if (info->making)
        return "making";
    if (info->merging)
        return "conflicts";
    if (info->locked && !weft__worktree_holds(info))
        return "locked";
    return weft__worktree_holds(info) ? "work" : info->there ? "free" : "gone";
}

static int write_worktree(weft_buf *out, const struct list_call *call, const weft_worktree_info *info) {
    bool busy = false;
    const weft_session *session = weft__worktree_session(call->hub->engine, info->name, &busy);
    const weft_task *owner = weft__task_find(call->hub->engine, info->owner);
    const char *task = session && session->task ? session->task : owner ? owner->id : NULL;
    weft_val value = WEFT_OBJ(
        {"name", weft_str(info->name)}, {"path", weft_str(info->path)}, {"branch", weft_str(info->branch)},
        {"sessionId", session ? weft_str(session->id) : weft_none()}, {"taskId", weft_str_or_none(task)},
        {"state", weft_str(state_of_worktree(info, busy))}, {"changed", weft_uint(info->changed)},
        {"unknown", weft_uint(info->unknown)}, {"commits", weft_uint(info->commits)}, {"bytes", weft_uint(info->bytes)},
        {"files", weft_uint(info->files)}, {"removed", call->prunes ? weft_bool(info->removed) : weft_none()},
        {"why", call->prunes && info->why_not && *info->why_not ? weft_str(info->why_not) : weft_none()});
    return weft__write_val(out, call->hub->alloc, &value);
}

static int reply_worktrees(const struct list_call *call, const weft_worktree_list *list) {
    weft_buf out = {0};
    int r = weft__buf_put(&out, call->hub->alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < list->count; i++) {
        r = i ? weft__buf_put(&out, call->hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_worktree(&out, call, list->list[i]);
    }
    if (r >= 0)
        r = weft__buf_put(&out, call->hub->alloc, "]", 1);
    if (r >= 0)
        r = weft__reply_val(call->req, WEFT_OBJ({"worktrees", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, call->hub->alloc);
    return r;
}

static void on_worktrees(void *ctx, const weft_worktree_list *list) {
    struct list_call *call = ctx;
    int r = list->r < 0 ? refuse_worktree(call->req, list->r, list->message) : reply_worktrees(call, list);
    if (r < 0)
        weft__reply_failure(call->req, r);
    weft__hub_wait_over(&call->wait);
    weft__free(call->hub->alloc, call);
}

static struct list_call *new_list_call(weft_req *req, const weft_hub *hub, bool prunes) {
    struct list_call *call = weft__zalloc(hub->alloc, sizeof *call);
    if (call)
        *call = (struct list_call){.wait.on_end = end_list_call, .hub = hub, .req = weft__req_keep(req), .prunes = prunes};
    return call;
}

static int started_list(weft_req *req, const weft_hub *hub, struct list_call *call, int r) {
    if (r >= 0) {
        weft__hub_wait(hub->clients, &call->wait);
        return 0;
    }
    weft__free(hub->alloc, call);
    if (r == -EINVAL)
        return weft__reply_invalid(weft__req_keep(req), "/name", "there is no worktree of this name");
    return r == -ENOMEM ? r : weft__hub_refuse_unknown(weft__req_keep(req), hub, NULL, r);
}

int weft__hub_worktrees(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    (void) params;
    struct list_call *call = new_list_call(req, hub, false);
    return call ? started_list(req, hub, call, weft__worktrees_list(hub->engine, on_worktrees, call)) : -ENOMEM;
}

int weft__hub_prune(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct prune *in = weft_req_params(req);
    char who[WEFT_WHO];
    weft_prune_order order = {
        .by = weft__who(weft_req_identity(req), who), .name = in->name && *in->name ? in->name : NULL, .dry = in->dryRun};
    (void) params;
    struct list_call *call = new_list_call(req, hub, true);
    return call ? started_list(req, hub, call, weft__worktrees_prune(hub->engine, &order, on_worktrees, call)) : -ENOMEM;
}
