/* git/status and git/diff. A diff of one file is what it changes beyond the index, else what it changes in the index, else
 * the whole of a file that git does not know yet: up to four questions to git, one after the other. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "cdev.h"
#include "reply.h"
#include "write.h"

struct diff_params {
    const char *path;
};
const weft_param weft__cdev_git_diff_params[] = {
    {"path", WEFT_PARAM_str, offsetof(struct diff_params, path), WEFT_NULLABLE,
     "of a file, from the project's folder; absent or empty: of all files that git knows"},
    WEFT_END(struct diff_params),
};

/* A request that waits for git, and perhaps for the disk. */
struct asking {
    weft_hub_wait wait;
    const weft_hub *hub;
    weft_req *req;
    weft_git_request next;
    char path[]; /* "": all files */
};

static void free_asking(weft_hub_wait *wait) {
    struct asking *asking = WEFT_CONTAINER(wait, struct asking, wait);
    weft__reply_failure(asking->req, -ESHUTDOWN);
    weft__free(asking->hub->alloc, asking);
}

static void finish_asking(struct asking *asking) {
    weft__hub_wait_over(&asking->wait);
    weft__free(asking->hub->alloc, asking);
}

/* A folder of a repository has a .git in it or above it. git itself is asked by git/status, not by status/get. */
static bool find_repository(const char *folder) {
    char path[4096];
    int len = snprintf(path, sizeof path - 8, "%s", folder);
    if (len < 0 || len >= (int) sizeof path - 8)
        return false;
    for (size_t n = (size_t) len; n; n--) {
        if (n < (size_t) len && path[n] != '/')
            continue;
        memcpy(path + n, "/.git", 6);
        if (access(path, F_OK) == 0)
            return true;
        memcpy(path, folder, (size_t) len);
    }
    return false;
}

/* Looking takes a call of the kernel for each folder above: once for all who ask in the same millisecond. */
bool weft__cdev_git_enabled(weft_hub *hub) {
    int64_t now = weft_loop_now(weft__engine_loop(hub->engine));
    if (hub->git && hub->git_looked_ms != now) {
        hub->git_found = find_repository(weft__engine_folder(hub->engine));
        hub->git_looked_ms = now;
    }
    return hub->git && hub->git_found;
}

/* ---- saying no ---- */

static const char *const causes[] = {
    [WEFT_GIT_NO_REPOSITORY] = "noRepository", [WEFT_GIT_ELSEWHERE] = "elsewhere", [WEFT_GIT_DUBIOUS] = "dubiousOwnership",
    [WEFT_GIT_UNTRUSTED] = "untrusted",        [WEFT_GIT_NOTHING] = "nothing",     [WEFT_GIT_REFUSED] = "refused",
};

static int refuse_git(weft_req *req, const char *cause, const char *details) {
    if (!req)
        return 0;
    return weft_fail(
        req, CDEV_GIT_FAILED, "Git operation failed",
        WEFT_OBJ({"reason", weft_str("gitFailed")}, {"cause", weft_str(cause)}, {"details", weft_str(details)}));
}

static int refuse_ask(weft_req *req, int r) {
    switch (r) {
    case -EAGAIN:
        return weft__reply_error(req, 429, "rateLimited", "Too many calls wait for git; try again in a moment");
    case -EINVAL:
        return weft__reply_invalid(req, "/path", "path must lead to a file in the project's folder");
    case -ENOENT:
        return refuse_git(req, "notInstalled", "git is not installed");
    case -ETIMEDOUT:
        return refuse_git(req, "timeout", "git took too long");
    default:
        return refuse_git(req, "failed", weft_strerror(r));
    }
}

/* true: it went well. */
static bool check_result(struct asking *asking, const weft_git_result *result) {
    if (result->r < 0)
        refuse_ask(asking->req, result->r);
    else if (result->refusal)
        refuse_git(asking->req, causes[result->refusal], result->message);
    else
        return true;
    finish_asking(asking);
    return false;
}

/* ---- asking ---- */

static int start_asking(weft_req *req, const weft_hub *hub, const char *path, const weft_git_request *first,
                        weft_git_done *done) {
    size_t size = strlen(path) + 1;
    if (!hub->git)
        return refuse_git(weft__req_keep(req), "notServed", "git is not served here");
    struct asking *asking = weft__alloc(hub->alloc, sizeof *asking + size);
    if (!asking)
        return -ENOMEM;
    *asking = (struct asking){.wait.on_end = free_asking, .hub = hub, .req = weft__req_keep(req), .next = *first};
    memcpy(asking->path, path, size);
    asking->next.path = *path ? asking->path : NULL;
    int r = weft__git_ask(hub->git, &asking->next, done, asking, NULL);
    if (r < 0) {
        weft__free(hub->alloc, asking);
        return r == -ENOMEM ? r : refuse_ask(weft__req_keep(req), r);
    }
    weft__hub_wait(hub->clients, &asking->wait);
    return 0;
}

static void ask_git_next(struct asking *asking, weft_git_done *done) {
    int r = weft__git_ask(asking->hub->git, &asking->next, done, asking, NULL);
    if (r >= 0)
        return;
    refuse_ask(asking->req, r);
    finish_asking(asking);
}

/* ---- status ---- */

typedef bool is_in_list(const weft_git_file *file);

static bool is_staged(const weft_git_file *file) {
    return !file->conflicted && file->index != '.' && file->index != '?';
}
static bool is_unstaged(const weft_git_file *file) {
    return !file->conflicted && file->worktree != '.' && file->worktree != '?';
}
static bool is_untracked(const weft_git_file *file) {
    return file->index == '?';
}
static bool is_conflicted(const weft_git_file *file) {
    return file->conflicted;
}

static int write_paths(const weft_alloc *alloc, const weft_git_status *status, is_in_list *wanted, weft_buf *out) {
    bool first = true;
    int r = weft__buf_put(out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < status->count; i++) {
        if (!wanted(&status->files[i]))
            continue;
        r = first ? 0 : weft__buf_put(out, alloc, ",", 1);
        first = false;
        if (r >= 0)
            r = weft__write_str(out, alloc, status->files[i].path, strlen(status->files[i].path));
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

static int write_files(const weft_alloc *alloc, const weft_git_status *status, weft_buf *out) {
    int r = weft__buf_put(out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < status->count; i++) {
        const weft_git_file *file = &status->files[i];
        weft_val value =
            WEFT_OBJ({"path", weft_str(file->path)}, {"index", weft_strn(&file->index, 1)},
                     {"worktree", weft_strn(&file->worktree, 1)}, {"orig_path", weft_str_or_none(file->orig_path)});
        r = i ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__write_val(out, alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

enum { STAGED, UNSTAGED, UNTRACKED, CONFLICTED, FILES, LISTS };

static int write_lists(const weft_alloc *alloc, const weft_git_status *status, weft_buf lists[LISTS]) {
    static is_in_list *const kinds[] = {is_staged, is_unstaged, is_untracked, is_conflicted};
    int r = 0;
    for (size_t i = 0; r >= 0 && i < FILES; i++)
        r = write_paths(alloc, status, kinds[i], &lists[i]);
    return r < 0 ? r : write_files(alloc, status, &lists[FILES]);
}

static weft_val raw_of_buf(const weft_buf *json) {
    return weft_raw(weft__buf_head(json), weft__buf_len(json));
}

static void answer_status(const struct asking *asking, const weft_git_status *status) {
    const weft_alloc *alloc = asking->hub->alloc;
    weft_buf lists[LISTS] = {0};
    weft_val none = weft_none();
    if (write_lists(alloc, status, lists) < 0)
        weft__reply_error(asking->req, WEFT_INTERNAL_ERROR, "outOfMemory", "Internal error");
    else
        weft__reply_val(
            asking->req,
            WEFT_OBJ({"branch", weft_str_or_none(status->branch)}, {"head", weft_str_or_none(status->head)},
                     {"upstream", weft_str_or_none(status->upstream)},
                     {"ahead", status->compared ? weft_uint(status->ahead) : none},
                     {"behind", status->compared ? weft_uint(status->behind) : none}, {"staged", raw_of_buf(&lists[STAGED])},
                     {"unstaged", raw_of_buf(&lists[UNSTAGED])}, {"untracked", raw_of_buf(&lists[UNTRACKED])},
                     {"conflicted", raw_of_buf(&lists[CONFLICTED])}, {"files", raw_of_buf(&lists[FILES])},
                     {"is_clean", weft_bool(status->is_clean)}, {"repo_name", weft_str(status->name)},
                     {"repo_root", weft_str(status->root)}, {"truncated", status->truncated ? weft_bool(true) : none}));
    for (size_t i = 0; i < LISTS; i++)
        weft__buf_done(&lists[i], alloc);
}

static void on_status(void *ctx, const weft_git_result *result) {
    struct asking *asking = ctx;
    if (!check_result(asking, result))
        return;
    answer_status(asking, result->status);
    finish_asking(asking);
}

int weft__cdev_git_status(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return start_asking(req, ctx, "", &(weft_git_request){.what = WEFT_GIT_STATUS}, on_status);
}

/* ---- diff ---- */

static void answer_diff(struct asking *asking, const weft_git_diff *diff) {
    bool fresh = asking->next.side == WEFT_GIT_NEW;
    weft_bytes text = diff ? diff->text : (weft_bytes){"", 0};
    weft__reply_val(asking->req, WEFT_OBJ({"path", weft_str(asking->path)}, {"diff", weft_strn(text.data, text.len)},
                                          {"is_staged", weft_bool(diff && asking->next.side == WEFT_GIT_STAGED)},
                                          {"is_new", weft_bool(fresh || (diff && diff->is_new))},
                                          {"is_truncated", weft_bool(diff && diff->truncated)},
                                          {"additions", diff ? weft_uint(diff->additions) : weft_int(0)},
                                          {"deletions", diff ? weft_uint(diff->deletions) : weft_int(0)}));
    finish_asking(asking);
}

/* git has nothing to say about it: it has not changed, or it is not there. */
static void on_looked(void *ctx, const weft_file_result *result) {
    struct asking *asking = ctx;
    if (result->r >= 0 || result->r == -EISDIR) {
        answer_diff(asking, NULL);
        return;
    }
    weft__cdev_no_file(asking->req, asking->path, "there is no such file, and git knows of no change to it");
    finish_asking(asking);
}

static void look_for_file(struct asking *asking) {
    weft_file_read one = {.path = {asking->path, strlen(asking->path)}, .max = 1};
    int r = asking->hub->files ? weft__files_read(asking->hub->files, &one, on_looked, asking) : -ENOENT;
    if (r < 0)
        on_looked(asking, &(weft_file_result){.r = r});
}

static void on_diff(void *ctx, const weft_git_result *result);

static bool has_untracked(const weft_git_status *status, const char *path) {
    for (size_t i = 0; i < status->count; i++)
        if (is_untracked(&status->files[i]) && strcmp(status->files[i].path, path) == 0)
            return true;
    return false;
}

static void on_known(void *ctx, const weft_git_result *result) {
    struct asking *asking = ctx;
    if (!check_result(asking, result))
        return;
    if (!has_untracked(result->status, asking->path)) {
        look_for_file(asking);
        return;
    }
    asking->next = (weft_git_request){.what = WEFT_GIT_DIFF_OF, .side = WEFT_GIT_NEW, .path = asking->path};
    ask_git_next(asking, on_diff);
}

static void on_diff(void *ctx, const weft_git_result *result) {
    struct asking *asking = ctx;
    if (!check_result(asking, result))
        return;
    if (result->diff->text.len || !*asking->path || asking->next.side == WEFT_GIT_NEW) {
        answer_diff(asking, result->diff);
    } else if (asking->next.side == WEFT_GIT_UNSTAGED) {
        asking->next.side = WEFT_GIT_STAGED;
        ask_git_next(asking, on_diff);
    } else {
        asking->next = (weft_git_request){.what = WEFT_GIT_STATUS, .untracked = true};
        ask_git_next(asking, on_known);
    }
}

int weft__cdev_git_diff(weft_req *req, const weft_json *params, void *ctx) {
    const struct diff_params *in = weft_req_params(req);
    const char *path = in->path ? in->path : "";
    weft_git_request first = {.what = WEFT_GIT_DIFF_OF, .side = *path ? WEFT_GIT_UNSTAGED : WEFT_GIT_BOTH};
    (void) params;
    return start_asking(req, ctx, path, &first, on_diff);
}
