/* task.comment: what a person says about lines of a task's diff becomes the next prompt of its session. The lines are looked
 * up in the task's snapshots first; one that is not in the diff refuses all of it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "hub_methods.h"
#include "hub_methods_there.h"
#include "reply.h"
#include "review.h"
#include "write.h"

#define CONTEXT 3
#define DIFF_THERE                                                                                                          \
    (4 << 20) /* bytes of a diff that are fetched from another machine; what is behind it is looked up by file */

struct comment_params {
    const char *taskId, *text, *permission;
    weft_json comments, context;
};
const weft_param weft__hub_comment_params[] = {
    {"taskId", WEFT_PARAM_str, offsetof(struct comment_params, taskId), WEFT_REQUIRED | WEFT_NONEMPTY,
     "about what this task changed"},
    {"comments", WEFT_PARAM_arr, offsetof(struct comment_params, comments), WEFT_REQUIRED,
     "at most 200: {path, line, side, text}; side is \"new\" (when absent) or \"old\", without a line it is about the file"},
    {"text", WEFT_PARAM_str, offsetof(struct comment_params, text), WEFT_NULLABLE, "about all of it"},
    {"context", WEFT_PARAM_any, offsetof(struct comment_params, context), WEFT_NULLABLE,
     "lines around each change in the diff that was read, as for task.diff; default 3"},
    {"permission", WEFT_PARAM_str, offsetof(struct comment_params, permission), WEFT_NULLABLE, WEFT_PERMISSION_HELP},
    WEFT_END(struct comment_params),
};

/* A review that is being looked up. */
struct comment_call {
    weft_hub_wait wait;
    const weft_hub *hub;
    weft_req *req;
    weft_buf metadata; /* what is stored with the task */
    weft_doc *doc;     /* the same, read: the comments point into it */
    weft_comment *comments;
    size_t count;
    size_t asked; /* comments before this one have been looked for in the diffs of their files; 0: in the whole diff */
    const char *text;
    unsigned context;
    weft_task_permission permission;
    weft_trace trace;
    bool traced;
    char task[64], key[WEFT_KEY];
};

static void free_comment_call(struct comment_call *call) {
    const weft_alloc *alloc = call->hub->alloc;
    weft__comments_done(call->comments, call->count, alloc);
    weft__free(alloc, call->comments);
    weft_doc_free(call->doc);
    weft__buf_done(&call->metadata, alloc);
    weft__free(alloc, call);
}

static void end_comment_call(weft_hub_wait *wait) {
    struct comment_call *call = WEFT_CONTAINER(wait, struct comment_call, wait);
    weft__reply_failure(call->req, -ESHUTDOWN);
    free_comment_call(call);
}

/* ---- checking ---- */

/* Why it is none: a path behind "/comments/N", and a sentence. */
typedef struct comment_fault {
    const char *member, *why;
} comment_fault;

/* 1: a text without NUL of 1 to max bytes; 0: it is none; -ENOMEM. */
static int is_text(const weft_json *value, size_t max) {
    weft_bytes text;
    int r = weft_bytes_of(value, &text);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    return text.len && text.len <= max && !memchr(text.data, '\0', text.len);
}

static bool is_known_member(const weft_iter *it) {
    return weft_name_is(it, "path") || weft_name_is(it, "line") || weft_name_is(it, "side") || weft_name_is(it, "text");
}

static bool is_absent(const weft_json *value) {
    return !value->text || weft_typeof(value) == WEFT_NULL;
}

/* 1: it is right; 0: ret says why not; -ENOMEM. */
static int check_comment(const weft_json *value, comment_fault *ret) {
    *ret = (comment_fault){"", "a comment must be an object with path, line, side and text"};
    if (weft_typeof(value) != WEFT_OBJECT)
        return 0;
    for (weft_iter it = weft_iterate(value); weft_next(&it);)
        if (!is_known_member(&it))
            return 0;
    weft_json path = weft_get(value, "path"), line = weft_get(value, "line"), side = weft_get(value, "side"),
              text = weft_get(value, "text");
    int path_r = is_text(&path, WEFT_DIFF_PATH - 1), text_r = is_text(&text, WEFT_REVIEW_TEXT);
    int side_r = is_absent(&side) ? 1 : is_text(&side, 8);
    if (path_r < 0 || text_r < 0 || side_r < 0)
        return -ENOMEM;
    const char *name = is_absent(&side) ? "new" : weft_str_of(&side, "");
    if (!path_r)
        *ret = (comment_fault){"/path", "path must be the name of a file in the diff"};
    else if (!is_absent(&line) && (weft_int_of(&line, 0) < 1 || weft_int_of(&line, 0) > WEFT_REVIEW_NUMBER))
        *ret = (comment_fault){"/line", "line must be a whole number from 1 on"};
    else if (!side_r || (strcmp(name, "new") != 0 && strcmp(name, "old") != 0))
        *ret = (comment_fault){"/side", "side must be new or old"};
    else if (!text_r)
        *ret = (comment_fault){"/text", "text must not be empty, and not longer than 65536 bytes"};
    else
        return 1;
    return 0;
}

/* 1: they are right; 0: that they are not was answered; -ENOMEM. */
static int check_comments(weft_req *req, const struct comment_params *in) {
    char path[64];
    size_t i = 0, count = weft_count(&in->comments);
    comment_fault fault;
    if (count > WEFT_REVIEW_COMMENTS) {
        weft__reply_invalid(req, "/comments", "there must not be more than %d comments", WEFT_REVIEW_COMMENTS);
        return 0;
    }
    if (in->text && strlen(in->text) > WEFT_REVIEW_TEXT) {
        weft__reply_invalid(req, "/text", "text must not be longer than %d bytes", WEFT_REVIEW_TEXT);
        return 0;
    }
    if (!count && (!in->text || !*in->text)) {
        weft__reply_invalid(req, "/comments", "there is no comment, and no text");
        return 0;
    }
    for (weft_iter it = weft_iterate(&in->comments); weft_next(&it); i++) {
        int r = check_comment(&it.value, &fault);
        if (r > 0)
            continue;
        snprintf(path, sizeof path, "/comments/%zu%s", i, fault.member);
        if (r == 0)
            weft__reply_invalid(req, path, "comment %zu: %s", i, fault.why);
        return r;
    }
    return 1;
}

/* ---- keeping ---- */

static int write_comments(weft_buf *out, const weft_alloc *alloc, const weft_json *comments) {
    int r = weft__buf_put(out, alloc, "[", 1);
    bool first = true;
    for (weft_iter it = weft_iterate(comments); r >= 0 && weft_next(&it);) {
        weft_json path = weft_get(&it.value, "path"), text = weft_get(&it.value, "text");
        int64_t line = weft_get_int(&it.value, "line", 0);
        const char *side = weft_get_str(&it.value, "side", "new");
        weft_val value = WEFT_OBJ({"path", weft_copy(&path)}, {"line", line ? weft_int(line) : weft_none()},
                                  {"side", line ? weft_str(side) : weft_none()}, {"text", weft_copy(&text)});
        r = first ? 0 : weft__buf_put(out, alloc, ",", 1);
        first = false;
        if (r >= 0)
            r = weft__write_val(out, alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

/* What a client can show of it later: {"review": {taskId, by, text, comments}}. */
static int write_review(struct comment_call *call, const struct comment_params *in, const char *by) {
    const weft_alloc *alloc = call->hub->alloc;
    weft_buf list = {0};
    int r = write_comments(&list, alloc, &in->comments);
    if (r >= 0) {
        weft_val value = WEFT_OBJ({"review", WEFT_OBJ({"taskId", weft_str(in->taskId)}, {"by", weft_str(by)},
                                                      {"text", in->text && *in->text ? weft_str(in->text) : weft_none()},
                                                      {"comments", weft_raw(weft__buf_head(&list), weft__buf_len(&list))})});
        r = weft__write_val(&call->metadata, alloc, &value);
    }
    if (r >= 0)
        r = weft__buf_put(&call->metadata, alloc, "", 1);
    weft__buf_done(&list, alloc);
    return r;
}

/* What was written, as the comments to look for. */
static int read_review(struct comment_call *call) {
    const weft_alloc *alloc = call->hub->alloc;
    int r = weft_doc_parse(weft__buf_head(&call->metadata), weft__buf_len(&call->metadata) - 1, alloc, &call->doc);
    if (r < 0)
        return r;
    weft_json review = weft_get(weft_doc_root(call->doc), "review"), list = weft_get(&review, "comments");
    size_t count = weft_count(&list);
    call->comments = weft__zalloc(alloc, (count + 1) * sizeof *call->comments);
    if (!call->comments)
        return -ENOMEM;
    call->count = count;
    size_t i = 0;
    for (weft_iter it = weft_iterate(&list); i < count && weft_next(&it); i++) {
        call->comments[i] = (weft_comment){
            .path = weft_get_str(&it.value, "path", NULL),
            .text = weft_get_str(&it.value, "text", NULL),
            .line = (size_t) weft_get_int(&it.value, "line", 0),
            .old = strcmp(weft_get_str(&it.value, "side", "new"), "old") == 0,
        };
        if (!call->comments[i].path || !call->comments[i].text)
            return -ENOMEM; /* both were checked: only memory is missing */
    }
    weft_json text = weft_get(&review, "text");
    call->text = text.text ? weft_str_of(&text, NULL) : NULL;
    return text.text && !call->text ? -ENOMEM : 0;
}

/* ---- submitting ---- */

static void on_comment_submitted(void *ctx, int r, const weft_task *task) {
    weft_req *req = ctx;
    if (r < 0)
        weft__reply_failure(req, r);
    else
        weft__reply_val(req, WEFT_OBJ({"taskId", weft_str(task->id)}, {"sessionId", weft_str(task->session)},
                                      {"state", weft_str(weft__task_states[task->state])}));
}

static int refuse_comment(const struct comment_call *call, int r) {
    const weft_engine_limits *limits = weft__engine_limits(call->hub->engine);
    if (r == -EDQUOT)
        return weft__reply_error(call->req, 429, "sessionQueueFull", "The session has %zu tasks already", limits->max_turns);
    if (r == -ENOBUFS)
        return weft__reply_error(call->req, 429, "queueFull", "Queue full: %zu tasks are waiting", limits->max_queue);
    if (r == -ENOENT || r == -EINVAL)
        return weft__reply_error(call->req, 409, "agentNotConfigured", "The task's agent is no longer configured");
    return weft__reply_not_submitted(call->req, call->hub, "/comments", r);
}

/* The conversation to go on with; NULL: it is over, or its agent would not know of it any more. One that is busy is gone on
 * with in any case: what is said waits behind what runs. */
static const weft_session *session_to_go_on(const weft_hub *hub, const weft_task *task) {
    const weft_session *session = weft__session_find(hub->engine, task->session);
    bool usable = session && !session->closed;
    return usable && (session->busy || session->agent_session) ? session : NULL;
}

static int submit_in(const struct comment_call *call, const weft_task *task, const weft_session *session) {
    const weft_alloc *alloc = call->hub->alloc;
    bool remembers = session && session->agent_session;
    weft_buf prompt = {0};
    int r = weft__review_write_prompt(&prompt, alloc,
                                      &(weft_review_prompt){.task = task->id,
                                                            .about = remembers ? NULL : task->prompt,
                                                            .text = call->text,
                                                            .list = call->comments,
                                                            .count = call->count});
    if (r >= 0)
        r = weft__task_submit(call->hub->engine,
                              &(weft_task_spec){.prompt = weft__buf_head(&prompt),
                                                .session = session ? session->id : NULL,
                                                .agent = session                       ? NULL
                                                         : task->agent                 ? task->agent
                                                         : task->runner || task->label ? NULL
                                                                                       : task->runs_on,
                                                .runner = session ? NULL : task->runner,
                                                .label = session ? NULL : task->label,
                                                .metadata = weft__buf_head(&call->metadata),
                                                .permission = call->permission,
                                                .trace = call->traced ? &call->trace : NULL,
                                                .key = *call->key ? call->key : NULL},
                              on_comment_submitted, call->req);
    weft__buf_done(&prompt, alloc);
    return r;
}

/* The same review again, by its key: what it became is not written anew, because the files may have changed since. 1: it is
 * answered, or will be; 0: there is none; <0. */
static int answer_again(const struct comment_call *call) {
    const weft_task *known = *call->key ? weft__task_find_key(call->hub->engine, call->key) : NULL;
    if (!known || strcmp(known->metadata, weft__buf_head(&call->metadata)) != 0)
        return 0;
    int r = weft__task_submit(call->hub->engine,
                              &(weft_task_spec){.prompt = known->prompt,
                                                .session = known->session,
                                                .agent = known->agent,
                                                .metadata = known->metadata,
                                                .permission = call->permission,
                                                .key = call->key},
                              on_comment_submitted, call->req);
    return r < 0 ? r : 1;
}

/* All comments are found. The request is answered in any case. */
static void submit_comments(struct comment_call *call) {
    const weft_task *task = weft__task_find(call->hub->engine, call->task);
    int r = answer_again(call);
    if (r == 0 && !task) {
        weft__reply_error(call->req, 404, "taskNotFound", "there is no such task");
        return;
    }
    const weft_session *session = r == 0 ? session_to_go_on(call->hub, task) : NULL;
    if (r == 0) {
        r = submit_in(call, task, session);
        if (session && (r == -ESTALE || r == -ESRCH)) /* it is being closed */
            r = submit_in(call, task, NULL);
    }
    if (r < 0)
        refuse_comment(call, r);
}

/* ---- looking up ---- */

static void refuse_line(const struct comment_call *call, size_t i) {
    const weft_comment *comment = &call->comments[i];
    char path[40];
    snprintf(path, sizeof path, "/comments/%zu", i);
    if (comment->line)
        weft__reply_invalid(call->req, path, "comment %zu: line %zu (%s) of %.200s is not in the diff", i, comment->line,
                            comment->old ? "old" : "new", comment->path);
    else
        weft__reply_invalid(call->req, path, "comment %zu: %.200s is not in the diff", i, comment->path);
}

static size_t first_missing(const struct comment_call *call) {
    size_t i = 0;
    while (i < call->count && call->comments[i].found)
        i++;
    return i;
}

static int ask_for_diff(struct comment_call *call, const char *path);

/* 1: another diff is on its way. What is not in the diff of everything may be in that of its file: there a renamed file is a
 * new one, and what did not fit into one answer fits. */
static int look_further(struct comment_call *call) {
    size_t missing = first_missing(call);
    if (missing == call->count || missing < call->asked)
        return 0;
    call->asked = missing + 1;
    int r = ask_for_diff(call, call->comments[missing].path);
    return r == -EINVAL ? 0 : r < 0 ? r : 1; /* a path that cannot be is not in the diff */
}

static void on_comment_diff(void *ctx, const weft_compared *compared) {
    struct comment_call *call = ctx;
    int r =
        compared->r < 0 ? compared->r : weft__comments_find(call->comments, call->count, compared->text, call->hub->alloc);
    if (r >= 0 && (r = look_further(call)) == 1)
        return;
    weft__hub_wait_over(&call->wait);
    if (compared->r < 0)
        weft__hub_refuse_changes(call->req, compared->r, compared->message);
    else if (r < 0)
        weft__reply_failure(call->req, r);
    else if (first_missing(call) < call->count)
        refuse_line(call, first_missing(call));
    else
        submit_comments(call);
    free_comment_call(call);
}

static void on_diff_there(void *ctx, int r, const weft_answer *answer) {
    struct comment_call *call = ctx;
    if (r >= 0 && answer->result) {
        weft_json diff = weft_get(answer->result, "diff");
        weft_compared compared = {0};
        if (weft_bytes_of(&diff, &compared.text) < 0)
            compared.text = (weft_bytes){"", 0};
        on_comment_diff(call, &compared);
        return;
    }
    weft__hub_wait_over(&call->wait);
    weft__hub_pass_there(call->req, call->hub, call->task, false, r, answer);
    free_comment_call(call);
}

static int ask_for_diff(struct comment_call *call, const char *path) {
    if (weft__hub_is_there(call->hub, call->task, false))
        return weft__hub_ask_there(call->hub, call->task, false, "task.diff",
                                   WEFT_OBJ({"path", weft_str_or_none(path)}, {"context", weft_uint(call->context)},
                                            {"maxBytes", weft_uint(DIFF_THERE)}),
                                   on_diff_there, call);
    weft_comparison how = {.text = true, .path = path, .context = call->context, .max = WEFT_SNAPSHOT_DIFF_MAX};
    return weft__task_compare(call->hub->engine, call->task, false, &how, on_comment_diff, call);
}

/* ---- the method ---- */

/* 0: call is under way, and somebody else frees it; 1: it is over, and answered. */
static int begin_comment_call(struct comment_call *call) {
    int r = answer_again(call);
    if (r != 0) {
        if (r < 0)
            refuse_comment(call, r);
        return 1;
    }
    if (!weft__task_find(call->hub->engine, call->task)) {
        weft__hub_refuse_unknown(call->req, call->hub, call->task, -ENOENT);
        return 1;
    }
    if (!call->count) {
        submit_comments(call);
        return 1;
    }
    r = ask_for_diff(call, NULL);
    if (r >= 0)
        weft__hub_wait(call->hub->clients, &call->wait);
    else if (weft__hub_is_there(call->hub, call->task, false))
        weft__hub_refuse_there(call->req, call->hub, call->task, false, r);
    else
        weft__hub_refuse_unknown(call->req, call->hub, call->task, r);
    return r < 0;
}

static int fill_comment_call(struct comment_call *call, const struct comment_params *in, weft_req *req) {
    char who[WEFT_WHO];
    snprintf(call->task, sizeof call->task, "%s", in->taskId);
    call->traced = weft_req_trace(req, &call->trace);
    int r = write_review(call, in, weft__who(weft_req_identity(req), who));
    return r < 0 ? r : read_review(call);
}

int weft__hub_comment(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct comment_params *in = weft_req_params(req);
    struct comment_call made = {.hub = hub, .wait.on_end = end_comment_call};
    (void) params;
    int64_t context = weft_typeof(&in->context) == WEFT_NUMBER ? weft_int_of(&in->context, -1) : CONTEXT;
    int r = weft__idempotency_key(req, made.key);
    if (r < 0)
        return r;
    if ((r = weft__permission_read(req, hub, in->permission, &made.permission)) != 0)
        return r < 0 ? r : 0;
    if (context < 0 || context > WEFT_SNAPSHOT_CONTEXT)
        return weft__reply_invalid(weft__req_keep(req), "/context", "context is out of range");
    if ((r = check_comments(weft__req_keep(req), in)) <= 0)
        return r;
    struct comment_call *call = weft__alloc(hub->alloc, sizeof *call);
    if (!call)
        return -ENOMEM;
    *call = made;
    call->context = (unsigned) context;
    r = fill_comment_call(call, in, req);
    if (r < 0) {
        free_comment_call(call);
        return r;
    }
    call->req = weft__req_keep(req);
    if (begin_comment_call(call))
        free_comment_call(call);
    return 0;
}
