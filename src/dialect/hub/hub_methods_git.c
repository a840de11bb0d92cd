/* What a person does with the project's repository: stage, unstage, discard and commit. git runs with the user's own
 * configuration and hooks, if the configuration allows it (git.write). */
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "git_refusal.h"
#include "hub_methods.h"
#include "reply.h"

#define PATHS 10000 /* of one call; their bytes are limited by git.h */

struct git_paths {
    weft_json paths;
    bool all, untracked;
};
const weft_param weft__hub_git_paths_params[] = {
    {"paths", WEFT_PARAM_arr, offsetof(struct git_paths, paths), WEFT_NULLABLE,
     "files and folders, from the project's folder; taken as they are, without patterns"},
    {"all", WEFT_PARAM_bool, offsetof(struct git_paths, all), WEFT_NULLABLE, "everything in the project's folder instead"},
    WEFT_END(struct git_paths),
};
const weft_param weft__hub_git_discard_params[] = {
    {"paths", WEFT_PARAM_arr, offsetof(struct git_paths, paths), WEFT_REQUIRED | WEFT_NONEMPTY,
     "files and folders, from the project's folder; taken as they are, without patterns"},
    {"untracked", WEFT_PARAM_bool, offsetof(struct git_paths, untracked), WEFT_NULLABLE,
     "delete these, which git does not know, instead of restoring files that it knows"},
    WEFT_END(struct git_paths),
};
struct git_commit {
    const char *message;
    bool amend;
};
const weft_param weft__hub_git_commit_params[] = {
    {"message", WEFT_PARAM_str, offsetof(struct git_commit, message), WEFT_REQUIRED | WEFT_NONEMPTY, "at most 64 KiB"},
    {"amend", WEFT_PARAM_bool, offsetof(struct git_commit, amend), WEFT_NULLABLE, "replace the last commit"},
    WEFT_END(struct git_commit),
};

/* A request that waits for git. */
struct git_call {
    weft_hub_wait wait;
    const weft_hub *hub;
    weft_req *req;
};

static void end_git_call(weft_hub_wait *wait) {
    struct git_call *call = WEFT_CONTAINER(wait, struct git_call, wait);
    weft__reply_failure(call->req, -ESHUTDOWN);
    weft__free(call->hub->alloc, call);
}

static int refuse_git_call(weft_req *req, const weft_git_words *words) {
    return weft__reply_error(req, words->code, words->reason, "%s", words->message);
}

static void on_git_done(void *ctx, const weft_git_result *result) {
    struct git_call *call = ctx;
    weft_git_words words;
    if (weft__git_refused(result, &words))
        refuse_git_call(call->req, &words);
    else
        weft__reply_val(call->req, WEFT_OBJ({"ok", weft_bool(true)}, {"commit", weft_str_or_none(result->commit)}));
    weft__hub_wait_over(&call->wait);
    weft__free(call->hub->alloc, call);
}

static int ask_git(weft_req *req, const weft_hub *hub, const weft_git_request *request, const char *path) {
    if (!hub->git)
        return weft__reply_error(weft__req_keep(req), 501, "gitNotServed", "git is not served here");
    struct git_call *call = weft__alloc(hub->alloc, sizeof *call);
    if (!call)
        return -ENOMEM;
    *call = (struct git_call){.wait.on_end = end_git_call, .hub = hub, .req = weft__req_keep(req)};
    int r = weft__git_ask(hub->git, request, on_git_done, call, NULL);
    if (r >= 0) {
        weft__hub_wait(hub->clients, &call->wait);
        return 0;
    }
    weft__free(hub->alloc, call);
    if (r == -EINVAL || r == -E2BIG)
        return weft__reply_invalid(weft__req_keep(req), path, "%s", r == -E2BIG ? "too long" : "not possible");
    weft_git_words words = weft__git_not_asked(r);
    return r == -ENOMEM ? r : refuse_git_call(weft__req_keep(req), &words);
}

/* The paths of the params, as git wants them. NULL with 0: refused. */
static int read_paths(weft_req *req, const weft_hub *hub, const weft_json *list, const char ***ret) {
    size_t count = 0;
    const char **paths = weft__zalloc(hub->alloc, (weft_count(list) + 1) * sizeof *paths);
    *ret = paths;
    if (!paths)
        return -ENOMEM;
    for (weft_iter it = weft_iterate(list); weft_next(&it);)
        if ((paths[count++] = weft_str_of(&it.value, NULL)) == NULL) {
            *ret = weft__free(hub->alloc, paths);
            return weft__reply_invalid(weft__req_keep(req), "/paths", "paths must be strings");
        }
    return 0;
}

static int ask_on_paths(weft_req *req, const weft_hub *hub, weft_git_what what) {
    const struct git_paths *in = weft_req_params(req);
    const char **paths = NULL;
    size_t count = in->paths.text ? weft_count(&in->paths) : 0;
    if (in->all ? count > 0 : count == 0)
        return weft__reply_invalid(weft__req_keep(req), "/paths", "name paths, or all");
    if (count > PATHS)
        return weft__reply_invalid(weft__req_keep(req), "/paths", "at most %d paths", PATHS);
    int r = count ? read_paths(req, hub, &in->paths, &paths) : 0;
    if (r < 0 || (count && !paths))
        return r;
    r = ask_git(req, hub, &(weft_git_request){.what = what, .paths = paths, .all = in->all, .untracked = in->untracked},
                "/paths");
    weft__free(hub->alloc, paths);
    return r;
}

int weft__hub_git_stage(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return ask_on_paths(req, ctx, WEFT_GIT_STAGE);
}

int weft__hub_git_unstage(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return ask_on_paths(req, ctx, WEFT_GIT_UNSTAGE);
}

int weft__hub_git_discard(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return ask_on_paths(req, ctx, WEFT_GIT_DISCARD);
}

int weft__hub_git_commit(weft_req *req, const weft_json *params, void *ctx) {
    const struct git_commit *in = weft_req_params(req);
    (void) params;
    weft_git_request request = {.what = WEFT_GIT_COMMIT, .message = {in->message, strlen(in->message)}, .amend = in->amend};
    return ask_git(req, ctx, &request, "/message");
}
