/* git.commit: an action. That it begins is stored before git runs, and what came of it afterwards. */
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "git_refusal.h"
#include "tinyvex_change.h"

struct commit_params {
    const char *message;
    bool all, amend;
};
const weft_param weft__tinyvex_commit_params[] = {
    {"message", WEFT_PARAM_str, offsetof(struct commit_params, message), WEFT_REQUIRED | WEFT_NONEMPTY, "at most 64 KiB"},
    {"all", WEFT_PARAM_bool, offsetof(struct commit_params, all), WEFT_NULLABLE,
     "stage everything in the project's folder first"},
    {"amend", WEFT_PARAM_bool, offsetof(struct commit_params, amend), WEFT_NULLABLE, "replace the last commit"},
    WEFT_END(struct commit_params),
};

struct committing {
    weft_hub_wait wait;
    weft_hub *hub;
    weft_request *request;
    bool stage, amend;
    size_t len;
    char message[];
};

static void free_committing(struct committing *it) {
    weft__hub_wait_over(&it->wait);
    weft__free(it->hub->alloc, it);
}

/* The daemon stops. If git was running, nobody knows; the next start will say so. */
static void end_committing(weft_hub_wait *wait) {
    struct committing *it = WEFT_CONTAINER(wait, struct committing, wait);
    weft_request *request = it->request;
    free_committing(it);
    weft__request_settle(request, -ESHUTDOWN);
}

/* What it was refused with is its answer from now on. */
static void refuse_commit(struct committing *it, const weft_git_words *words) {
    weft_request *request = it->request;
    weft_git_words said = *words;
    free_committing(it);
    weft__request_acted(
        request, weft_none(),
        WEFT_OBJ({"code", weft_int(WEFT_INTERNAL_ERROR)}, {"message", weft_str(said.message)},
                 {"data", WEFT_OBJ({"reason", weft_str(said.reason)}, {"code", weft_str(TVX_MUTATION_FAILED)})}));
}

static void on_committed(void *ctx, const weft_git_result *result);

static void ask_next(struct committing *it) {
    weft_git_request stage = {.what = WEFT_GIT_STAGE, .all = true};
    weft_git_request commit = {.what = WEFT_GIT_COMMIT, .message = {it->message, it->len}, .amend = it->amend};
    int r = weft__git_ask(it->hub->git, it->stage ? &stage : &commit, on_committed, it, NULL);
    if (r >= 0)
        return;
    weft_git_words words = weft__git_not_asked(r);
    refuse_commit(it, &words);
}

static void on_committed(void *ctx, const weft_git_result *result) {
    struct committing *it = ctx;
    weft_request *request = it->request;
    weft_git_words words;
    char commit[72] = "";
    if (weft__git_refused(result, &words)) {
        refuse_commit(it, &words);
        return;
    }
    if (it->stage) {
        it->stage = false;
        ask_next(it);
        return;
    }
    strncat(commit, result->commit ? result->commit : "", sizeof commit - 1);
    free_committing(it);
    weft__request_acted(request, WEFT_OBJ({"commit", weft_str(commit)}), weft_none());
}

static void on_commit_begun(void *ctx, int r) {
    struct committing *it = ctx;
    weft_request *request = it->request;
    if (r >= 0) {
        ask_next(it);
        return;
    }
    free_committing(it);
    weft__request_settle(request, r);
}

static int check_commit(weft_req *req, const tinyvex_change *change, size_t len) {
    if (len > WEFT_GIT_MESSAGE)
        return weft__tinyvex_refuse_args(req, change, "/args/message", "message must have at most %u bytes",
                                         WEFT_GIT_MESSAGE);
    if (change->hub->git)
        return 0;
    int r =
        weft__tinyvex_refuse_change(req, change, 501, TVX_MUTATION_FAILED, "gitNotServed", NULL, "git is not served here");
    return r < 0 ? r : -ENOTSUP;
}

int weft__tinyvex_git_commit(weft_req *req, const weft_json *params, void *ctx) {
    const tinyvex_change *change = ctx;
    const struct commit_params *in = weft_req_params(req);
    const weft_alloc *alloc = change->hub->alloc;
    size_t len = strlen(in->message);
    weft_request *request;
    (void) params;
    int r = check_commit(req, change, len);
    if (r >= 0)
        r = weft__tinyvex_begin(req, change, &request);
    if (r < 0 || !request)
        return r;
    struct committing *it = weft__alloc(alloc, sizeof *it + len + 1);
    if (!it) {
        weft__request_settle(request, -ENOMEM);
        return 0;
    }
    *it = (struct committing){.wait.on_end = end_committing,
                              .hub = change->hub,
                              .request = request,
                              .stage = in->all,
                              .amend = in->amend,
                              .len = len};
    memcpy(it->message, in->message, len + 1);
    weft__hub_wait(change->hub->clients, &it->wait);
    r = weft__request_act(request, on_commit_begun, it);
    if (r >= 0)
        return 0;
    free_committing(it);
    weft__request_settle(request, r);
    return 0;
}
