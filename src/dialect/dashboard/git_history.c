/* git.log: what became of the project, or of one file under all the names it had. Read with a neutral configuration, as all
 * reads of git are. */
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "dashboard_methods.h"
#include "git_refusal.h"
#include "reply.h"
#include "write.h"

#define LOG_DEFAULT 50
#define LOG_MOST 500
/* Nobody pages that far. */
#define SKIP_MOST 1000000

struct history {
    const char *path;
    int64_t limit, skip;
};
const weft_param weft__dashboard_log_params[] = {
    {"path", WEFT_PARAM_str, offsetof(struct history, path), WEFT_NULLABLE,
     "of this file, from the project's folder, and of what it was called before; of the whole project when absent"},
    {"limit", WEFT_PARAM_int, offsetof(struct history, limit), WEFT_NULLABLE, "commits; 50 when absent or 0, at most 500"},
    {"skip", WEFT_PARAM_int, offsetof(struct history, skip), WEFT_NULLABLE, "how many of the latest to leave out"},
    WEFT_END(struct history),
};

struct log_call {
    weft_hub_wait wait;
    const weft_hub *hub;
    weft_req *req;
};

static void end_log_call(weft_hub_wait *wait) {
    struct log_call *call = WEFT_CONTAINER(wait, struct log_call, wait);
    weft__reply_failure(call->req, -ESHUTDOWN);
    weft__free(call->hub->alloc, call);
}

static int write_commit(weft_buf *out, const weft_alloc *alloc, const weft_git_commit *commit) {
    char time[WEFT_STAMP];
    weft_val value =
        WEFT_OBJ({"id", weft_str(commit->hash)}, {"author", weft_str(commit->author)}, {"email", weft_str(commit->email)},
                 {"time", weft__stamp_val(commit->author_time * 1000, time)}, {"subject", weft_str(commit->subject)},
                 {"body", weft_str(commit->body)});
    return weft__write_val(out, alloc, &value);
}

static void answer_log(const struct log_call *call, const weft_git_log *log) {
    const weft_alloc *alloc = call->hub->alloc;
    weft_buf out = {0};
    int r = weft__buf_put(&out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < log->count; i++) {
        r = i ? weft__buf_put(&out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_commit(&out, alloc, &log->commits[i]);
    }
    if (r >= 0)
        r = weft__buf_put(&out, alloc, "]", 1);
    if (r >= 0)
        weft__reply_val(call->req, WEFT_OBJ({"commits", weft_raw(weft__buf_head(&out), weft__buf_len(&out))},
                                            {"more", weft_bool(log->truncated)}));
    else
        weft__reply_failure(call->req, r);
    weft__buf_done(&out, alloc);
}

static void on_log(void *ctx, const weft_git_result *result) {
    struct log_call *call = ctx;
    weft_git_words words;
    if (weft__git_refused(result, &words))
        weft__reply_error(call->req, words.code, words.reason, "%s", words.message);
    else
        answer_log(call, result->log);
    weft__hub_wait_over(&call->wait);
    weft__free(call->hub->alloc, call);
}

static int refuse_log(weft_req *req, int r) {
    if (r == -ENOMEM)
        return r;
    if (r == -EINVAL || r == -E2BIG)
        return weft__reply_invalid(weft__req_keep(req), "/path", "%s",
                                   r == -E2BIG ? "too long" : "not a path in the project");
    weft_git_words words = weft__git_not_asked(r);
    return weft__reply_error(weft__req_keep(req), words.code, words.reason, "%s", words.message);
}

int weft__dashboard_log(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct history *in = weft_req_params(req);
    (void) params;
    if (in->limit < 0 || in->limit > LOG_MOST)
        return weft__reply_invalid(req, "/limit", "limit must be at most %d", LOG_MOST);
    if (in->skip < 0 || in->skip > SKIP_MOST)
        return weft__reply_invalid(req, "/skip", "skip must be at most %d", SKIP_MOST);
    if (!hub->git)
        return weft__reply_error(req, 501, "gitNotServed", "git is not served here");
    struct log_call *call = weft__alloc(hub->alloc, sizeof *call);
    if (!call)
        return -ENOMEM;
    *call = (struct log_call){.wait.on_end = end_log_call, .hub = hub, .req = weft__req_keep(req)};
    weft_git_request request = {.what = WEFT_GIT_LOG_OF,
                                .path = in->path,
                                .follow = in->path != NULL,
                                .max = in->limit ? (size_t) in->limit : LOG_DEFAULT,
                                .skip = (size_t) in->skip};
    int r = weft__git_ask(hub->git, &request, on_log, call, NULL);
    if (r >= 0) {
        weft__hub_wait(hub->clients, &call->wait);
        return 0;
    }
    weft__free(hub->alloc, call);
    return refuse_log(req, r);
}
