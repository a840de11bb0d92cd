/* What a hub asks of its runner: start a lease, answer a question, cancel; and what it tells: what it has, and what is over.
 * Each names a lease; one that is not ours is refused. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "option.h"
#include "session_settings.h"
#include "uplink_private.h"
#include "write.h"

/* A prompt with what goes with it. */
#define LARGEST (32 * 1024 * 1024)

struct lease_params {
    int64_t lease;
    const char *taskId;
};
static const weft_param lease_params[] = {
    WEFT_MUST_IN(struct lease_params, lease, int, 1, INT64_MAX, "which lease"),
    WEFT_MUST(struct lease_params, taskId, str, "the hub's task"),
    WEFT_END(struct lease_params),
};

static weft_uplink_lease *lease_asked(weft_uplink *self, weft_req *req) {
    const struct lease_params *in = weft_req_params(req);
    return weft__uplink_lease(self, (uint64_t) in->lease, in->taskId);
}

static int refuse_lease(weft_req *req) {
    return weft_refuse(req, 404, "there is no such lease here", "noLease");
}

/* ---- runner.start ---- */

struct start_params {
    int64_t lease;
    const char *taskId, *agent, *prompt, *sessionId, *folder, *traceparent, *tracestate;
    weft_json settings;
};
static const weft_param start_params[] = {
    WEFT_MUST_IN(struct start_params, lease, int, 1, INT64_MAX, "the lease"),
    WEFT_MUST(struct start_params, taskId, str, "the hub's task"),
    WEFT_MUST(struct start_params, agent, str, "which of the agents that are offered"),
    WEFT_MUST(struct start_params, prompt, str, "what it should do"),
    WEFT_MAY(struct start_params, sessionId, str, "go on with this session of the runner's"),
    WEFT_MAY(struct start_params, folder, str, "where, beneath the project's folder"),
    WEFT_MAY(struct start_params, traceparent, str, "the trace that it belongs to"),
    WEFT_MAY(struct start_params, tracestate, str, "likewise"),
    WEFT_MAY(struct start_params, settings, obj, "what was chosen for the session"),
    WEFT_END(struct start_params),
};

static int answer_started(weft_req *req, const weft_uplink_lease *lease) {
    return weft_reply(req, WEFT_OBJ({"taskId", weft_str(lease->task)}, {"sessionId", weft_str(lease->session)}));
}

static int refuse_start(weft_req *req, const char *agent, int r) {
    weft_val reason = WEFT_OBJ({"reason", weft_str(r == -ENOBUFS || r == -EXFULL || r == -EDQUOT    ? "runnerBusy"
                                                   : r == -ESHUTDOWN || r == -EAGAIN || r == -EBUSY ? "runnerStopping"
                                                                                                    : "refused")});
    if (r == -ENOENT)
        return weft_failf(req, 403, reason, "the agent %s is not offered there", agent);
    if (r == -EXDEV || r == -ENOTDIR)
        return weft_fail(req, 403, "the folder of the session is not there", reason);
    return weft_failf(req, 503, reason, "it could not be taken: %s", weft_strerror(r));
}

static bool offers(const weft_uplink *self, const char *agent) {
    for (size_t i = 0; i < self->opts.agents.count; i++)
        if (strcmp(self->opts.agents.items[i], agent) == 0)
            return weft__agent_find(weft__engine_agents(self->opts.engine), agent) != NULL;
    return false;
}

static void end_start(struct uplink_start *start) {
    weft__list_remove(&start->link);
    weft__free(NULL, start->prompt);
    weft__free(NULL, start);
}

static void on_lease_submitted(void *ctx, int r, const weft_task *task) {
    struct uplink_start *start = ctx;
    weft_uplink *self = start->uplink;
    weft_uplink_lease *lease = self && r >= 0 ? weft__uplink_lease(self, start->number, start->hub_task) : NULL;
    if (self && r >= 0 && !lease)
        lease = weft__uplink_lease_add(self, start->number, start->hub_task, task);
    if (lease)
        answer_started(start->req, lease);
    else
        refuse_start(start->req, start->agent, r < 0 ? r : self ? -ENOMEM : -ESHUTDOWN);
    if (lease)
        weft__uplink_deliver(self, lease);
    end_start(start);
}

static int submit_lease(struct uplink_start *start, const char *session) {
    weft_uplink *self = start->uplink;
    char key[WEFT_UPLINK_KEY], metadata[256];
    weft__uplink_key(self, start->number, key);
    snprintf(metadata, sizeof metadata, "{\"" WEFT_LEASE_MEMBER "\":{\"hub\":\"%s\",\"number\":%llu,\"task\":\"%s\"}}",
             self->epoch, (unsigned long long) start->number, start->hub_task);
    return weft__task_submit(self->opts.engine,
                             &(weft_task_spec){.prompt = start->prompt,
                                               .agent = session ? NULL : start->agent,
                                               .session = session,
                                               .metadata = metadata,
                                               .key = key,
                                               .isolation = WEFT_ISOLATION_OFF},
                             on_lease_submitted, start);
}

static void on_session_made(void *ctx, int r, const weft_session *session, const char *error) {
    struct uplink_start *start = ctx;
    (void) error;
    if (r >= 0)
        r = start->uplink ? submit_lease(start, session->id) : -ESHUTDOWN;
    if (r >= 0)
        return;
    refuse_start(start->req, start->agent, r);
    end_start(start);
}

/* One that a hub began here, with this agent, and that takes tasks: what people of this machine talk about is not a hub's.
 */
static const char *session_to_go_on(const weft_uplink *self, const struct start_params *in) {
    const weft_session *session = in->sessionId ? weft__session_find(self->opts.engine, in->sessionId) : NULL;
    const weft_task *last = session && session->task ? weft__task_find(self->opts.engine, session->task) : NULL;
    bool lent = last && last->metadata && strstr(last->metadata, WEFT_LEASE_MEMBER) && strstr(last->metadata, self->epoch);
    return lent && !session->closed && strcmp(session->agent, in->agent) == 0 ? session->id : NULL;
}

static int begin_start(weft_uplink *self, struct uplink_start *start, const struct start_params *in) {
    const char *session = session_to_go_on(self, in);
    char *settings = NULL;
    if (session || (!in->folder && !in->settings.text))
        return submit_lease(start, session);
    if (in->settings.text && !(settings = weft__strndup(NULL, in->settings.text, in->settings.len)))
        return -ENOMEM;
    int r = weft__session_create(self->opts.engine,
                                 &(weft_session_order){.agent = in->agent,
                                                       .folder = in->folder,
                                                       .settings = settings,
                                                       .isolation = in->folder ? WEFT_ISOLATION_NONE : WEFT_ISOLATION_OFF},
                                 on_session_made, start);
    weft__free(NULL, settings);
    return r;
}

/* Of a task's id only what an id can be goes into our journal. */
static bool is_task_id(const char *id) {
    return strlen(id) < WEFT_UPLINK_ID && strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(id) && *id;
}

static int take_start(weft_req *req, const weft_json *params, void *ctx) {
    weft_uplink *self = ctx;
    const struct start_params *in = weft_req_params(req);
    (void) params;
    weft_uplink_lease *lease = weft__uplink_lease(self, (uint64_t) in->lease, in->taskId);
    if (lease)
        return answer_started(req, lease);
    if (!self->up || !is_task_id(in->taskId))
        return weft_refuse(req, 409, "say hello first", "refused");
    if (!offers(self, in->agent) || strlen(in->agent) > WEFT_UPLINK_ID)
        return refuse_start(req, in->agent, -ENOENT);
    struct uplink_start *start = weft__zalloc(NULL, sizeof *start);
    if (!start || !(start->prompt = weft__strndup(NULL, in->prompt, strlen(in->prompt)))) {
        weft__free(NULL, start);
        return -ENOMEM;
    }
    start->uplink = self;
    start->req = req;
    start->number = (uint64_t) in->lease;
    snprintf(start->hub_task, sizeof start->hub_task, "%s", in->taskId);
    snprintf(start->agent, sizeof start->agent, "%s", in->agent);
    weft__list_push(&self->starts, &start->link);
    int r = begin_start(self, start, in);
    if (r >= 0)
        return 0;
    end_start(start);
    return refuse_start(req, in->agent, r);
}

/* ---- runner.answer, runner.cancel ---- */

struct answer_params {
    int64_t lease;
    const char *taskId, *questionId, *option;
    weft_json content;
};
static const weft_param answer_params[] = {
    WEFT_MUST_IN(struct answer_params, lease, int, 1, INT64_MAX, "which lease"),
    WEFT_MUST(struct answer_params, taskId, str, "the hub's task"),
    WEFT_MUST(struct answer_params, questionId, str, "the runner's question"),
    {"option", WEFT_PARAM_str, offsetof(struct answer_params, option), WEFT_NULLABLE,
     "the option that was chosen; null: none"},
    {"content", WEFT_PARAM_obj, offsetof(struct answer_params, content), WEFT_NULLABLE, "what was filled in"},
    WEFT_END(struct answer_params),
};

static int take_answer(weft_req *req, const weft_json *params, void *ctx) {
    weft_uplink *self = ctx;
    const struct answer_params *in = weft_req_params(req);
    const weft_uplink_lease *lease = weft__uplink_lease(self, (uint64_t) in->lease, in->taskId);
    const weft_question *question = weft__question_find(self->opts.engine, in->questionId);
    bool filled = in->content.text != NULL;
    (void) params;
    if (!lease || !question || !question->task || strcmp(question->task, lease->task) != 0)
        return refuse_lease(req);
    int r = weft__question_answer_with(
        self->opts.engine, in->questionId,
        &(weft_question_answer){.option = filled       ? "accept"
                                          : in->option ? in->option
                                                       : WEFT_OPTION_DENIED,
                                .by = self->shown,
                                .content = filled && weft_count(&in->content) ? &in->content : NULL},
        NULL, NULL);
    if (r < 0 && r != -EALREADY)
        return weft_failf(req, 400, weft_none(), "%s", weft_strerror(r));
    return weft_reply(req, WEFT_OBJ({"answered", weft_bool(r >= 0)}));
}

static int take_cancel(weft_req *req, const weft_json *params, void *ctx) {
    weft_uplink *self = ctx;
    const weft_uplink_lease *lease = lease_asked(self, req);
    (void) params;
    if (!lease)
        return refuse_lease(req);
    int r = weft__task_cancel(self->opts.engine, lease->task, self->shown, NULL, NULL);
    if (r < 0 && r != -EALREADY)
        return weft_failf(req, 503, weft_none(), "%s", weft_strerror(r));
    return weft_reply(req, WEFT_OBJ({"cancelling", weft_bool(r >= 0)}));
}

/* ---- runner.kept, runner.released ---- */

static int take_kept(weft_req *req, const weft_json *params, void *ctx) {
    weft_uplink_lease *lease = lease_asked(ctx, req);
    uint64_t at = (uint64_t) weft_get_int(params, "at", 0);
    if (lease && at > lease->kept && at <= weft__store_head(weft__engine_store(((weft_uplink *) ctx)->opts.engine)))
        lease->kept = at;
    return weft_reply(req, weft_null());
}

static int take_released(weft_req *req, const weft_json *params, void *ctx) {
    weft_uplink_lease *lease = lease_asked(ctx, req);
    bool late = weft_get_bool(params, "late", false);
    if (lease && late && !weft__uplink_lease_told(lease)) /* told: one that was cancelled, and said so */
        weft__uplink_lease_over(ctx, lease);
    else if (lease)
        weft__uplink_release(ctx, lease);
    return weft_reply(req, weft_null());
}

static const weft_method methods[] = {
    {.name = "runner.start", .handler = take_start, .params = start_params, .help = "run a turn of an agent for the hub"},
    {.name = "runner.answer", .handler = take_answer, .params = answer_params, .help = "a person has answered a question"},
    {.name = "runner.cancel", .handler = take_cancel, .params = lease_params, .help = "end a lease"},
    {.name = "runner.ask",
     .handler = weft__uplink_ask,
     .params = weft__uplink_ask_params,
     .help = "what a lease changed in the files, and to put it back"},
    {.name = "runner.kept",
     .handler = take_kept,
     .params = lease_params,
     .help = "the hub has stored what happened up to here"},
    {.name = "runner.released", .handler = take_released, .params = lease_params, .help = "the lease is over for the hub"},
    {0},
};

int weft__uplink_service(weft_uplink *self) {
    return weft_service_new(&(weft_service_opts){.methods = methods,
                                                 .ctx = self,
                                                 .title = "weft runner",
                                                 .version = weft_version(),
                                                 .limits = {.max_body = LARGEST}},
                            &self->service);
}
