/* Sessions: conversations with agents, on their own. They are made, shown, set, prompted, closed, resumed and deleted here;
 * what is said in them are events. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "hub_methods.h"
#include "reply.h"
#include "utf8.h"
#include "write.h"

#define LIST_DEFAULT 20
#define LIST_MAX 1000
#define MAX_OWN 1000    /* of one page of an agent's sessions: each is looked for among ours */
#define PROMPT_SHOWN 80 /* bytes of a prompt in a list */
#define EXEC "exec"     /* the scope of who may name programs and folders for an agent */

/* ---- showing ---- */

static weft_val raw_or_none(const char *json) {
    return json ? weft_raw(json, strlen(json)) : weft_none();
}

static weft_val title_of(const weft_session *session) {
    return session->title ? weft_str(session->title) : raw_or_none(session->facts[WEFT_SESSION_TITLE]);
}

/* The names of its MCP servers: the rest may be secret. */
static int write_servers(weft_buf *out, const weft_alloc *alloc, const char *servers) {
    weft_doc *doc = NULL;
    int r = servers ? weft_doc_parse(servers, strlen(servers), alloc, &doc) : 0;
    if (r >= 0)
        r = weft__buf_put(out, alloc, "[", 1);
    bool first = true;
    for (weft_iter it = weft_iterate(doc ? weft_doc_root(doc) : &(weft_json){0}); r >= 0 && doc && weft_next(&it);) {
        weft_json name = weft_get(&it.value, "name");
        r = first ? 0 : weft__buf_put(out, alloc, ",", 1);
        first = false;
        if (r >= 0)
            r = weft__buf_put(out, alloc, name.text, name.len);
    }
    weft_doc_free(doc);
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

/* By what a person knows a session without a title again: how its last prompt begins. */
static weft_val prompt_of(const weft_hub *hub, const weft_session *session) {
    const weft_task *task = session->task ? weft__task_find(hub->engine, session->task) : NULL;
    size_t len = task ? strlen(task->prompt) : 0;
    return task ? weft_strn(task->prompt, len > PROMPT_SHOWN ? weft__utf8_fit(task->prompt, len, PROMPT_SHOWN) : len)
                : weft_none();
}

static int write_row(weft_buf *out, const weft_hub *hub, const weft_session *session) {
    char created[WEFT_STAMP], updated[WEFT_STAMP];
    weft_val value = WEFT_OBJ(
        {"id", weft_str(session->id)}, {"agent", weft_str(session->agent)},
        {"createdAt", weft__stamp_val(session->created_ms, created)},
        {"updatedAt", weft__stamp_val(session->updated_ms, updated)}, {"taskId", weft_str(session->task)},
        {"busy", weft_bool(session->busy)}, {"tasks", weft_uint(session->tasks)}, {"prompt", prompt_of(hub, session)},
        {"title", title_of(session)}, {"folder", *session->folder ? weft_str(session->folder) : weft_none()},
        {"closed", session->closed ? weft_bool(true) : weft_none()}, {"branch", weft_str_or_none(session->branch)});
    return weft__write_val(out, hub->alloc, &value);
}

static int write_whole(weft_buf *out, const weft_alloc *alloc, const weft_session *session) {
    char created[WEFT_STAMP], updated[WEFT_STAMP];
    weft_buf servers = {0};
    int r = write_servers(&servers, alloc, session->servers);
    const char *const *facts = session->facts;
    weft_val value = WEFT_OBJ(
        {"id", weft_str(session->id)}, {"agent", weft_str(session->agent)},
        {"createdAt", weft__stamp_val(session->created_ms, created)},
        {"updatedAt", weft__stamp_val(session->updated_ms, updated)}, {"taskId", weft_str(session->task)},
        {"busy", weft_bool(session->busy)}, {"tasks", weft_uint(session->tasks)}, {"title", title_of(session)},
        {"folder", weft_str(session->folder)}, {"closed", weft_bool(session->closed)}, {"turn", weft_str(session->turn)},
        {"turns", weft_uint(session->turns)}, {"agentSessionId", weft_str(session->agent_session)},
        {"settings", session->settings ? weft_raw(session->settings, strlen(session->settings)) : weft_obj(NULL, 0)},
        {"mcpServers", weft_raw(weft__buf_head(&servers), weft__buf_len(&servers))},
        {"modes", raw_or_none(facts[WEFT_SESSION_MODES])}, {"mode", raw_or_none(facts[WEFT_SESSION_MODE])},
        {"models", raw_or_none(facts[WEFT_SESSION_MODELS])}, {"options", raw_or_none(facts[WEFT_SESSION_OPTIONS])},
        {"commands", raw_or_none(facts[WEFT_SESSION_COMMANDS])},
        {"isolation", session->isolation ? weft_str("worktree") : weft_none()},
        {"branch", weft_str_or_none(session->branch)}, {"worktree", weft_str_or_none(session->path)});
    if (r >= 0)
        r = weft__write_val(out, alloc, &value);
    weft__buf_done(&servers, alloc);
    return r;
}

/* It is answered in any case. */
static int say_session(weft_req *req, const weft_hub *hub, const weft_session *session) {
    weft_buf out = {0};
    int r = write_whole(&out, hub->alloc, session);
    r = r < 0 ? weft__reply_failure(req, r)
              : weft__reply_val(req, WEFT_OBJ({"session", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, hub->alloc);
    return r;
}

/* ---- refusing ---- */

static int refuse_unknown(weft_req *req, const char *id) {
    return weft__reply_error(req, 404, "sessionNotFound", "Session not found: %s", id);
}

/* What the agent did not do; why is its own sentence, or NULL. */
static int refuse_by_agent(weft_req *req, int r, const char *why) {
    switch (r) {
    case -EOPNOTSUPP:
        return weft__reply_error(req, 501, "agentCannot", "The agent cannot do this%s%s", why ? ": " : "", why ? why : "");
    case -ENOENT:
        return weft__reply_error(req, 404, "agentSessionNotFound", "%s", why ? why : "The agent does not know this session");
    case -ETIMEDOUT:
        return weft__reply_error(req, 504, "agentTimedOut", "The agent did not answer in time");
    case -EPIPE:
        return weft__reply_error(req, 502, "agentEnded", "The agent has ended%s%s", why ? ": " : "", why ? why : "");
    default:
        return weft__reply_error(req, 502, "agentRefused", "The agent refused: %s", why ? why : "it did not say why");
    }
}

static bool is_by_agent(int r) {
    return r == -EOPNOTSUPP || r == -ENOENT || r == -ETIMEDOUT || r == -EPIPE || r == -EREMOTEIO;
}

static int refuse_command(weft_req *req, const char *id, int r, const char *why) {
    if (is_by_agent(r))
        return refuse_by_agent(req, r, why);
    if (r == -ESRCH)
        return refuse_unknown(req, id);
    if (r == -EUSERS)
        return weft__reply_error(req, 503, "agentsBusy", "Too many agents are being asked: try again in a moment");
    if (r == -EEXIST)
        return weft__reply_error(req, 409, "agentSessionTaken", "Another session goes on with this one of the agent's");
    if (r == -ESTALE)
        return weft__reply_error(req, 409, "sessionClosed", "The session is closed, or about to be: %s", id);
    return weft__reply_failure(req, r);
}

/* ---- commands under way ---- */

struct session_call {
    const weft_hub *hub;
    weft_req *req;
    const char *flag; /* the member of the answer; NULL: the session */
    char id[64];
};

static void on_session_done(void *ctx, int r, const weft_session *session, const char *error) {
    struct session_call *call = ctx;
    if (r < 0)
        refuse_command(call->req, call->id, r, error);
    else if (call->flag)
        weft__reply_val(call->req, WEFT_OBJ({call->flag, weft_bool(true)}, {"sessionId", weft_str(call->id)},
                                            {"agentError", weft_str_or_none(error)}));
    else if (!session)
        refuse_unknown(call->req, call->id);
    else
        say_session(call->req, call->hub, session);
    weft__free(call->hub->alloc, call);
}

static struct session_call *new_call(weft_req *req, const weft_hub *hub, const char *id, const char *flag) {
    struct session_call *call = weft__alloc(hub->alloc, sizeof *call);
    if (!call)
        return NULL;
    *call = (struct session_call){.hub = hub, .req = weft__req_keep(req), .flag = flag};
    snprintf(call->id, sizeof call->id, "%s", id);
    return call;
}

/* r of a command that has just been given. */
static int finish_giving(struct session_call *call, weft_req *req, int r) {
    if (r >= 0)
        return 0;
    char id[sizeof call->id];
    memcpy(id, call->id, sizeof id);
    weft__free(call->hub->alloc, call);
    return r == -ENOMEM ? r : refuse_command(weft__req_keep(req), id, r, NULL);
}

/* ---- session.list, session.get ---- */

struct sessions {
    int64_t limit;
};
const weft_param weft__hub_sessions_params[] = {
    {"limit", WEFT_PARAM_int, offsetof(struct sessions, limit), WEFT_NULLABLE,
     "how many; 20 when absent or 0, at most 1000"},
    WEFT_END(struct sessions),
};

static int write_sessions(weft_buf *out, const weft_hub *hub, int64_t limit, uint64_t *ret_total) {
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (const weft_session *session = weft__session_newest(hub->engine); r >= 0 && session;
         session = weft__session_older(hub->engine, session)) {
        if ((*ret_total)++ >= (uint64_t) limit)
            continue;
        r = *ret_total > 1 ? weft__buf_put(out, hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_row(out, hub, session);
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

int weft__hub_sessions(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct sessions *in = weft_req_params(req);
    weft_buf out = {0};
    (void) params;
    uint64_t total = 0;
    if (in->limit < 0)
        return weft__reply_invalid(req, "/limit", "limit must not be negative");
    int r = write_sessions(&out, hub, in->limit == 0 ? LIST_DEFAULT : MIN(in->limit, LIST_MAX), &total);
    if (r >= 0)
        r = weft_reply(
            req, WEFT_OBJ({"sessions", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}, {"total", weft_uint(total)}));
    weft__buf_done(&out, hub->alloc);
    return r;
}

struct session_id {
    const char *sessionId;
};
const weft_param weft__hub_session_params[] = {
    {"sessionId", WEFT_PARAM_str, offsetof(struct session_id, sessionId), WEFT_REQUIRED | WEFT_NONEMPTY, "which session"},
    WEFT_END(struct session_id),
};

int weft__hub_session_get(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct session_id *in = weft_req_params(req);
    (void) params;
    const weft_session *session = weft__session_find(hub->engine, in->sessionId);
    return session ? say_session(weft__req_keep(req), hub, session) : refuse_unknown(req, in->sessionId);
}

/* ---- session.create ---- */

struct create {
    const char *agent, *folder, *title, *agentSessionId;
    const char *mode, *model;
    weft_json options, mcpServers;
    const char *isolation;
    bool withChanges;
};
const weft_param weft__hub_create_params[] = {
    {"agent", WEFT_PARAM_str, offsetof(struct create, agent), WEFT_NULLABLE | WEFT_NONEMPTY,
     "the agent; the default agent when absent"},
    {"folder", WEFT_PARAM_str, offsetof(struct create, folder), WEFT_NULLABLE | WEFT_NONEMPTY,
     "where it works, in the project's folder; that itself when absent; needs the scope exec"},
    {"title", WEFT_PARAM_str, offsetof(struct create, title), WEFT_NULLABLE | WEFT_NONEMPTY,
     "for people; at most 1024 bytes"},
    {"agentSessionId", WEFT_PARAM_str, offsetof(struct create, agentSessionId), WEFT_NULLABLE | WEFT_NONEMPTY,
     "go on with this session of the agent's own, see agent.sessions"},
    {"mode", WEFT_PARAM_str, offsetof(struct create, mode), WEFT_NULLABLE | WEFT_NONEMPTY, "set before the first prompt"},
    {"model", WEFT_PARAM_str, offsetof(struct create, model), WEFT_NULLABLE | WEFT_NONEMPTY, "likewise"},
    {"options", WEFT_PARAM_obj, offsetof(struct create, options), WEFT_NULLABLE,
     "likewise: values of the agent's options, by their ids"},
    {"mcpServers", WEFT_PARAM_arr, offsetof(struct create, mcpServers), WEFT_NULLABLE,
     "MCP servers for the agent, as ACP has them, at most 32; needs the scope exec"},
    {"isolation", WEFT_PARAM_str, offsetof(struct create, isolation), WEFT_NULLABLE, WEFT_ISOLATION_HELP},
    {"withChanges", WEFT_PARAM_bool, offsetof(struct create, withChanges), WEFT_NULLABLE, WEFT_WITH_CHANGES_HELP},
    WEFT_END(struct create),
};

/* Everything that was chosen, as the engine keeps it. NULL text: nothing. */
static int write_settings(const struct create *in, const weft_alloc *alloc, weft_buf *out) {
    bool options = in->options.text && weft_count(&in->options);
    if (!in->mode && !in->model && !options)
        return 0;
    weft_val value = WEFT_OBJ({"mode", weft_str_or_none(in->mode)}, {"model", weft_str_or_none(in->model)},
                              {"options", options ? weft_copy(&in->options) : weft_none()});
    int r = weft__write_val(out, alloc, &value);
    return r < 0 ? r : weft__buf_put(out, alloc, "", 1);
}

static int write_copy(const weft_json *json, const weft_alloc *alloc, weft_buf *out) {
    if (!json->text)
        return 0;
    weft_val value = weft_copy(json);
    int r = weft__write_val(out, alloc, &value);
    return r < 0 ? r : weft__buf_put(out, alloc, "", 1);
}

/* Say which of ours has it: that is the one to use. */
static int refuse_taken(weft_req *req, const weft_hub *hub, const struct create *in) {
    const weft_agent *usual = weft__agent_default(hub->engine);
    const char *agent = in->agent ? in->agent : usual ? usual->name : "";
    const weft_session *ours = weft__session_find_own(hub->engine, agent, in->agentSessionId);
    if (!req)
        return 0;
    return weft_fail(
        req, 409, "Another session goes on with this one of the agent's",
        WEFT_OBJ({"reason", weft_str("agentSessionTaken")}, {"sessionId", weft_str_or_none(ours ? ours->id : NULL)}));
}

static int refuse_create(weft_req *req, const weft_hub *hub, const struct create *in, int r) {
    switch (r) {
    case -ENOENT:
        return weft__reply_no_agent(req, hub, WEFT_INVALID_PARAMS, "invalidParams", "/agent", in->agent ? in->agent : "");
    case -EXDEV:
    case -ELOOP:
        return weft__reply_invalid(req, "/folder", "folder must lie in the project's folder");
    case -ENOTDIR:
    case -EACCES:
    case -ENAMETOOLONG:
        return weft__reply_invalid(req, "/folder", "there is no such folder");
    case -EINVAL:
        return weft__reply_invalid(req, "", "the title, an option or an MCP server is none");
    case -EMSGSIZE:
        return weft__reply_invalid(req, "", "there are too many options or MCP servers, or they are too long");
    case -EEXIST:
        return refuse_taken(req, hub, in);
    default:
        return refuse_command(req, "", r, NULL);
    }
}

static int create_session(weft_req *req, const weft_hub *hub, const struct create *in, const weft_session_order *order) {
    struct session_call *call = new_call(req, hub, "", NULL);
    if (!call)
        return -ENOMEM;
    int r = weft__session_create(hub->engine, order, on_session_done, call);
    if (r >= 0)
        return 0;
    weft__free(hub->alloc, call);
    return r == -ENOMEM ? r : refuse_create(weft__req_keep(req), hub, in, r);
}

int weft__hub_session_create(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct create *in = weft_req_params(req);
    weft_buf settings = {0}, servers = {0};
    (void) params;
    if ((in->mcpServers.text || in->folder) && !weft_has_scope(weft_req_identity(req), EXEC))
        return weft__reply_error(req, 403, "forbidden", "To name a folder or MCP servers the scope exec is needed");
    weft_isolation isolation;
    int r = weft__isolation_read(req, in->isolation, in->withChanges, &isolation);
    if (r != 0)
        return r < 0 ? r : 0;
    if (isolation && isolation != WEFT_ISOLATION_OFF && (in->folder || in->agentSessionId))
        return weft__reply_invalid(req, "/isolation", "a worktree is not for a folder or a session of the agent's own");
    r = write_settings(in, hub->alloc, &settings);
    if (r >= 0)
        r = write_copy(&in->mcpServers, hub->alloc, &servers);
    if (r >= 0)
        r = create_session(req, hub, in,
                           &(weft_session_order){.agent = in->agent,
                                                 .folder = in->folder,
                                                 .title = in->title,
                                                 .settings = weft__buf_len(&settings) ? weft__buf_head(&settings) : NULL,
                                                 .servers = weft__buf_len(&servers) ? weft__buf_head(&servers) : NULL,
                                                 .agent_session = in->agentSessionId,
                                                 .isolation = isolation});
    weft__buf_done(&settings, hub->alloc);
    weft__buf_done(&servers, hub->alloc);
    return r;
}

/* ---- session.set ---- */

struct set {
    const char *sessionId, *name, *option;
    weft_json value;
};
const weft_param weft__hub_set_params[] = {
    {"sessionId", WEFT_PARAM_str, offsetof(struct set, sessionId), WEFT_REQUIRED | WEFT_NONEMPTY, "which session"},
    {"name", WEFT_PARAM_str, offsetof(struct set, name), WEFT_REQUIRED | WEFT_NONEMPTY, "mode, model, option or title"},
    {"value", WEFT_PARAM_any, offsetof(struct set, value), WEFT_REQUIRED,
     "a text; of an option also true or false; a title may be null"},
    {"option", WEFT_PARAM_str, offsetof(struct set, option), WEFT_NULLABLE | WEFT_NONEMPTY, "the id of the option"},
    WEFT_END(struct set),
};

static int refuse_set(weft_req *req, const struct set *in) {
    static const char *const names[] = {"mode", "model", "option", "title"};
    bool known = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        known |= strcmp(in->name, names[i]) == 0;
    if (!known)
        return weft__reply_invalid(req, "/name", "name must be mode, model, option or title");
    if (in->option ? strcmp(in->name, "option") != 0 : strcmp(in->name, "option") == 0)
        return weft__reply_invalid(req, "/option", "option must name an option, and nothing else has one");
    return weft__reply_invalid(req, "/value", "value is none that can be set");
}

int weft__hub_session_set(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct set *in = weft_req_params(req);
    char who[WEFT_WHO];
    (void) params;
    struct session_call *call = new_call(req, hub, in->sessionId, NULL);
    if (!call)
        return -ENOMEM;
    int r = weft__session_set(hub->engine, in->sessionId, &(weft_session_setting){in->name, in->option, in->value},
                              weft__who(weft_req_identity(req), who), on_session_done, call);
    if (r != -EINVAL && r != -EMSGSIZE)
        return finish_giving(call, req, r);
    weft__free(hub->alloc, call);
    return refuse_set(weft__req_keep(req), in);
}

/* ---- session.open, session.resume, session.close, session.delete ---- */

int weft__hub_session_open(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct session_id *in = weft_req_params(req);
    (void) params;
    struct session_call *call = new_call(req, hub, in->sessionId, NULL);
    if (!call)
        return -ENOMEM;
    int r = weft__session_open(hub->engine, in->sessionId, on_session_done, call);
    if (r != -EBUSY)
        return finish_giving(call, req, r);
    weft__free(hub->alloc, call);
    return weft__reply_error(req, 409, "sessionBusy", "The session has a task already: %s", in->sessionId);
}

/* One of the commands that only need to know which, and who says so. */
typedef int session_verb(weft_engine *engine, const char *id, const char *by, weft_session_done *done, void *ctx);

static int give_command(weft_req *req, const weft_hub *hub, session_verb *verb, const char *flag, const char *already) {
    const struct session_id *in = weft_req_params(req);
    char who[WEFT_WHO];
    struct session_call *call = new_call(req, hub, in->sessionId, flag);
    if (!call)
        return -ENOMEM;
    int r = verb(hub->engine, in->sessionId, weft__who(weft_req_identity(req), who), on_session_done, call);
    if (r != -EALREADY)
        return finish_giving(call, req, r);
    weft__free(hub->alloc, call);
    return weft__reply_error(req, 409, already, "The session is %s already: %s",
                             strcmp(already, "sessionOpen") == 0 ? "open" : "closed", in->sessionId);
}

int weft__hub_session_resume(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return give_command(req, ctx, weft__session_resume, NULL, "sessionOpen");
}

int weft__hub_session_close(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return give_command(req, ctx, weft__session_close, "closed", "sessionClosed");
}

int weft__hub_session_delete(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return give_command(req, ctx, weft__session_remove, "deleted", "sessionClosed");
}

/* ---- session.prompt ---- */

struct prompt {
    const char *sessionId, *prompt;
    int64_t timeoutMs, retries;
    const char *permission;
};
const weft_param weft__hub_prompt_params[] = {
    {"sessionId", WEFT_PARAM_str, offsetof(struct prompt, sessionId), WEFT_REQUIRED | WEFT_NONEMPTY, "which session"},
    {"prompt", WEFT_PARAM_str, offsetof(struct prompt, prompt), WEFT_REQUIRED | WEFT_NONEMPTY, "what the agent should do"},
    {"timeoutMs", WEFT_PARAM_int, offsetof(struct prompt, timeoutMs), WEFT_NULLABLE,
     "how long it may run; 0 as configured, below 0 for ever"},
    {"retries", WEFT_PARAM_int, offsetof(struct prompt, retries), WEFT_NULLABLE, "how often to try again when it fails"},
    {"permission", WEFT_PARAM_str, offsetof(struct prompt, permission), WEFT_NULLABLE, WEFT_PERMISSION_HELP},
    WEFT_END(struct prompt),
};

static void on_prompted(void *ctx, int r, const weft_task *task) {
    weft_req *req = ctx;
    if (r < 0)
        weft__reply_failure(req, r);
    else
        weft__reply_val(req, WEFT_OBJ({"taskId", weft_str(task->id)}, {"sessionId", weft_str(task->session)},
                                      {"state", weft_str(weft__task_states[task->state])}));
}

static int refuse_prompt(weft_req *req, const weft_hub *hub, const struct prompt *in, int r) {
    const weft_engine_limits *limits = weft__engine_limits(hub->engine);
    if (r == -EDQUOT)
        return weft__reply_error(req, 429, "sessionQueueFull", "The session has %zu tasks already", limits->max_turns);
    if (r == -ENOBUFS)
        return weft__reply_error(req, 429, "queueFull", "Queue full: %zu tasks are waiting", limits->max_queue);
    if (r == -ENOENT)
        return weft__reply_error(req, 409, "agentNotConfigured", "The session's agent is no longer configured");
    if (r == -ESRCH || r == -ESTALE)
        return refuse_command(req, in->sessionId, r, NULL);
    return weft__reply_not_submitted(req, hub, "/prompt", r);
}

int weft__hub_session_prompt(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct prompt *in = weft_req_params(req);
    char key[WEFT_KEY];
    weft_trace trace;
    (void) params;
    int r = weft__idempotency_key(req, key);
    if (r < 0)
        return r;
    weft_task_permission permission;
    if ((r = weft__permission_read(req, hub, in->permission, &permission)) != 0)
        return r < 0 ? r : 0;
    r = weft__task_submit(hub->engine,
                          &(weft_task_spec){.prompt = in->prompt,
                                            .permission = permission,
                                            .trace = weft_req_trace(req, &trace) ? &trace : NULL,
                                            .session = in->sessionId,
                                            .key = *key ? key : NULL,
                                            .timeout_ms = in->timeoutMs,
                                            .retries = in->retries},
                          on_prompted, weft__req_keep(req));
    return r < 0 ? refuse_prompt(weft__req_keep(req), hub, in, r) : 0;
}

/* ---- agent.sessions ---- */

struct own {
    const char *agent, *folder, *cursor;
};
const weft_param weft__hub_own_params[] = {
    {"agent", WEFT_PARAM_str, offsetof(struct own, agent), WEFT_NULLABLE | WEFT_NONEMPTY,
     "whose; the default agent's when absent"},
    {"folder", WEFT_PARAM_str, offsetof(struct own, folder), WEFT_NULLABLE | WEFT_NONEMPTY,
     "only those that were held there, in the project's folder"},
    {"cursor", WEFT_PARAM_str, offsetof(struct own, cursor), WEFT_NULLABLE | WEFT_NONEMPTY, "nextCursor of the page before"},
    WEFT_END(struct own),
};

/* Ours that goes on with it; null: none. */
static weft_val session_going_on(const weft_hub *hub, const char *agent, const char *agent_session) {
    const weft_session *session = weft__session_find_own(hub->engine, agent, agent_session);
    return weft_str(session ? session->id : NULL);
}

static int write_own(weft_buf *out, const weft_hub *hub, const char *agent, const weft_json *result) {
    weft_json list = weft_get(result, "sessions");
    bool first = true;
    size_t count = weft_typeof(&list) == WEFT_ARRAY ? 0 : MAX_OWN;
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (weft_iter it = weft_iterate(&list); r >= 0 && count < MAX_OWN && weft_next(&it); count++) {
        const char *id = weft_get_str(&it.value, "sessionId", NULL), *folder = weft_get_str(&it.value, "cwd", NULL);
        if (!id)
            continue;
        weft_val value = WEFT_OBJ({"agentSessionId", weft_str(id)}, {"sessionId", session_going_on(hub, agent, id)},
                                  {"folder", weft_str_or_none(folder)},
                                  {"title", weft_str_or_none(weft_get_str(&it.value, "title", NULL))},
                                  {"updatedAt", weft_str_or_none(weft_get_str(&it.value, "updatedAt", NULL))});
        r = first ? 0 : weft__buf_put(out, hub->alloc, ",", 1);
        first = false;
        if (r >= 0)
            r = weft__write_val(out, hub->alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

static void on_own(void *ctx, int r, const weft_json *result, const char *error) {
    struct session_call *call = ctx;
    weft_buf out = {0};
    if (r >= 0)
        r = write_own(&out, call->hub, call->id, result);
    if (is_by_agent(r))
        refuse_by_agent(call->req, r, error);
    else if (r < 0)
        weft__reply_failure(call->req, r);
    else
        weft__reply_val(call->req, WEFT_OBJ({"sessions", weft_raw(weft__buf_head(&out), weft__buf_len(&out))},
                                            {"nextCursor", weft_str_or_none(weft_get_str(result, "nextCursor", NULL))}));
    weft__buf_done(&out, call->hub->alloc);
    weft__free(call->hub->alloc, call);
}

int weft__hub_agent_sessions(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct own *in = weft_req_params(req);
    (void) params;
    const weft_agent *usual = weft__agent_default(hub->engine);
    struct session_call *call = new_call(req, hub, in->agent ? in->agent : usual ? usual->name : "", NULL);
    if (!call)
        return -ENOMEM;
    int r = weft__agent_sessions(hub->engine, in->agent, in->folder, in->cursor, on_own, call);
    if (r >= 0)
        return 0;
    weft__free(hub->alloc, call);
    if (r == -EOPNOTSUPP || r == -EPIPE)
        return refuse_by_agent(weft__req_keep(req), r, NULL);
    return r == -ENOMEM ? r : refuse_create(weft__req_keep(req), hub, &(struct create){.agent = in->agent}, r);
}

/* ---- logging out ---- */

struct logout {
    const char *agent;
};
const weft_param weft__hub_logout_params[] = {
    {"agent", WEFT_PARAM_str, offsetof(struct logout, agent), WEFT_REQUIRED | WEFT_NONEMPTY, "its name"},
    WEFT_END(struct logout),
};

static void on_logged_out(void *ctx, int r, const weft_json *result, const char *error) {
    struct session_call *call = ctx;
    (void) result;
    if (is_by_agent(r))
        refuse_by_agent(call->req, r, error);
    else if (r < 0)
        weft__reply_failure(call->req, r);
    else
        weft__reply_val(call->req, WEFT_OBJ({"loggedOut", weft_bool(true)}, {"agent", weft_str(call->id)}));
    weft__free(call->hub->alloc, call);
}

int weft__hub_agent_logout(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct logout *in = weft_req_params(req);
    (void) params;
    struct session_call *call = new_call(req, hub, in->agent, NULL);
    if (!call)
        return -ENOMEM;
    int r = weft__agent_logout(hub->engine, in->agent, on_logged_out, call);
    if (r >= 0)
        return 0;
    weft__free(hub->alloc, call);
    if (r == -EOPNOTSUPP || r == -EPIPE)
        return refuse_by_agent(weft__req_keep(req), r, NULL);
    return r == -ENOMEM ? r : refuse_create(weft__req_keep(req), hub, &(struct create){.agent = in->agent}, r);
}
