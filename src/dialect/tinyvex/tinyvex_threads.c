/* Threads are the engine's sessions, and a message that is posted is the next prompt in one. Archived means closed: it takes
 * no more messages, and can be resumed by session.resume. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "reply.h"
#include "tinyvex_change.h"

/* A command under way. */
struct thread_call {
    const weft_hub *hub;
    weft_request *request;
    char id[64];
};

static struct thread_call *new_thread_call(const weft_hub *hub, weft_request *request, const char *id) {
    struct thread_call *call = weft__alloc(hub->alloc, sizeof *call);
    if (!call)
        return NULL;
    *call = (struct thread_call){.hub = hub, .request = request};
    snprintf(call->id, sizeof call->id, "%s", id);
    return call;
}

static void finish_thread_call(struct thread_call *call, int r, const char *why) {
    weft__tinyvex_settle(call->request, r, call->id, why);
    weft__free(call->hub->alloc, call);
}

static void on_thread_done(void *ctx, int r, const weft_session *session, const char *error) {
    (void) session;
    finish_thread_call(ctx, r, error);
}

static void on_message_done(void *ctx, int r, const weft_task *task) {
    (void) task;
    finish_thread_call(ctx, r, NULL);
}

/* ---- create ---- */

struct create_params {
    const char *title, *agent;
};
const weft_param weft__tinyvex_create_params[] = {
    {"title", WEFT_PARAM_str, offsetof(struct create_params, title), WEFT_NULLABLE | WEFT_NONEMPTY,
     "for people; at most 1024 bytes"},
    {"agent", WEFT_PARAM_str, offsetof(struct create_params, agent), WEFT_NULLABLE | WEFT_NONEMPTY,
     "who answers in it; the default agent when absent"},
    WEFT_END(struct create_params),
};

int weft__tinyvex_thread_create(weft_req *req, const weft_json *params, void *ctx) {
    const tinyvex_change *change = ctx;
    const struct create_params *in = weft_req_params(req);
    weft_request *request;
    (void) params;
    int r = weft__tinyvex_begin(req, change, &request);
    if (r < 0 || !request)
        return r;
    struct thread_call *call = new_thread_call(change->hub, request, "");
    weft_session_order order = {.title = in->title, .agent = in->agent, .request = request};
    r = call ? weft__session_create(change->hub->engine, &order, on_thread_done, call) : -ENOMEM;
    if (r >= 0)
        return 0;
    weft__free(change->hub->alloc, call);
    if (r == -ENOENT)
        weft__tinyvex_not_done(request, 0, "agentNotConfigured", "/args/agent", "There is no agent \"%.200s\"",
                               in->agent ? in->agent : "");
    else if (r == -EINVAL)
        weft__tinyvex_not_done(request, 0, "invalidParams", "/args/title", "title must have 1 to 1024 bytes");
    else
        weft__tinyvex_settle(request, r, "", NULL);
    return 0;
}

/* ---- rename ---- */

struct rename_params {
    const char *threadId;
    weft_json title;
};
const weft_param weft__tinyvex_rename_params[] = {
    {"threadId", WEFT_PARAM_str, offsetof(struct rename_params, threadId), WEFT_REQUIRED | WEFT_NONEMPTY, "which thread"},
    {"title", WEFT_PARAM_any, offsetof(struct rename_params, title), WEFT_REQUIRED,
     "for people, at most 1024 bytes; null: the one its agent gives it"},
    WEFT_END(struct rename_params),
};

int weft__tinyvex_thread_rename(weft_req *req, const weft_json *params, void *ctx) {
    const tinyvex_change *change = ctx;
    const struct rename_params *in = weft_req_params(req);
    weft_request *request;
    (void) params;
    int r = weft__tinyvex_begin(req, change, &request);
    if (r < 0 || !request)
        return r;
    struct thread_call *call = new_thread_call(change->hub, request, in->threadId);
    r = call ? weft__session_set_for(change->hub->engine, request, in->threadId,
                                     &(weft_session_setting){"title", NULL, in->title}, change->by, on_thread_done, call)
             : -ENOMEM;
    if (r >= 0)
        return 0;
    weft__free(change->hub->alloc, call);
    if (r == -EINVAL)
        weft__tinyvex_not_done(request, 0, "invalidParams", "/args/title", "title must have 1 to 1024 bytes, or be null");
    else
        weft__tinyvex_settle(request, r, in->threadId, NULL);
    return 0;
}

/* ---- archive, delete ---- */

struct thread_params {
    const char *threadId;
};
const weft_param weft__tinyvex_thread_params[] = {
    {"threadId", WEFT_PARAM_str, offsetof(struct thread_params, threadId), WEFT_REQUIRED | WEFT_NONEMPTY, "which thread"},
    WEFT_END(struct thread_params),
};

typedef int thread_verb(weft_engine *engine, weft_request *request, const char *id, const char *by, weft_session_done *done,
                        void *ctx);

static int end_thread(weft_req *req, const tinyvex_change *change, thread_verb *verb) {
    const struct thread_params *in = weft_req_params(req);
    weft_request *request;
    int r = weft__tinyvex_begin(req, change, &request);
    if (r < 0 || !request)
        return r;
    struct thread_call *call = new_thread_call(change->hub, request, in->threadId);
    r = call ? verb(change->hub->engine, request, in->threadId, change->by, on_thread_done, call) : -ENOMEM;
    if (r >= 0)
        return 0;
    weft__free(change->hub->alloc, call);
    if (r == -EALREADY) /* it is as they want it: remember that it was */
        weft__request_store(request, WEFT_OBJ({"sessionId", weft_str(in->threadId)}, {"already", weft_bool(true)}));
    else
        weft__tinyvex_settle(request, r, in->threadId, NULL);
    return 0;
}

int weft__tinyvex_thread_archive(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return end_thread(req, ctx, weft__session_close_for);
}

int weft__tinyvex_thread_delete(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return end_thread(req, ctx, weft__session_remove_for);
}

/* ---- messages ---- */

struct message_params {
    const char *threadId, *text, *agent;
};
const weft_param weft__tinyvex_post_params[] = {
    {"threadId", WEFT_PARAM_str, offsetof(struct message_params, threadId), WEFT_REQUIRED | WEFT_NONEMPTY, "which thread"},
    {"text", WEFT_PARAM_str, offsetof(struct message_params, text), WEFT_REQUIRED | WEFT_NONEMPTY,
     "what its agent should do, behind what it was told before"},
    WEFT_END(struct message_params),
};
const weft_param weft__tinyvex_prompt_params[] = {
    {"text", WEFT_PARAM_str, offsetof(struct message_params, text), WEFT_REQUIRED | WEFT_NONEMPTY,
     "what the agent should do"},
    {"threadId", WEFT_PARAM_str, offsetof(struct message_params, threadId), WEFT_NULLABLE | WEFT_NONEMPTY,
     "in this thread; a new one when absent"},
    {"agent", WEFT_PARAM_str, offsetof(struct message_params, agent), WEFT_NULLABLE | WEFT_NONEMPTY,
     "who; the thread's agent, or the default one, when absent"},
    WEFT_END(struct message_params),
};

static void refuse_message(weft_request *request, const weft_hub *hub, const struct message_params *in, int r) {
    if (r == -EINVAL && in->agent && in->threadId)
        weft__tinyvex_not_done(request, 0, "invalidParams", "/args/agent", "The thread has another agent");
    else if (r == -ENOENT)
        weft__tinyvex_not_done(request, 0, "agentNotConfigured", in->agent ? "/args/agent" : NULL,
                               "The agent is not configured");
    else if (r == -EMSGSIZE)
        weft__tinyvex_not_done(request, 413, "tooLarge", "/args/text", "The text is longer than %zu bytes",
                               weft__engine_limits(hub->engine)->max_prompt);
    else
        weft__tinyvex_settle(request, r, in->threadId ? in->threadId : "", NULL);
}

static int send_message(weft_req *req, const tinyvex_change *change) {
    const struct message_params *in = weft_req_params(req);
    weft_request *request;
    int r = weft__tinyvex_begin(req, change, &request);
    if (r < 0 || !request)
        return r;
    struct thread_call *call = new_thread_call(change->hub, request, in->threadId ? in->threadId : "");
    weft_trace trace;
    weft_task_spec spec = {.prompt = in->text,
                           .trace = weft_req_trace(req, &trace) ? &trace : NULL,
                           .session = in->threadId,
                           .agent = in->agent,
                           .metadata = "{\"source\":\"tinyvex\"}",
                           .request = request};
    r = call ? weft__task_submit(change->hub->engine, &spec, on_message_done, call) : -ENOMEM;
    if (r >= 0)
        return 0;
    weft__free(change->hub->alloc, call);
    refuse_message(request, change->hub, in, r);
    return 0;
}

int weft__tinyvex_message_post(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return send_message(req, ctx);
}

int weft__tinyvex_agent_prompt(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return send_message(req, ctx);
}
