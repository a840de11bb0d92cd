/* session/list, session/get, session/watch, session/unwatch. */
#include <errno.h>
#include <string.h>

#include "cdev.h"
#include "reply.h"
#include "write.h"

#define LIST_DEFAULT 20
#define LIST_MAX 1000
#define SUMMARY 100 /* bytes of a prompt that say what a session is about */

int weft__cdev_no_session(weft_req *req, const char *id) {
    return weft__reply_error(req, CDEV_NO_SESSION, "sessionNotFound", "Session not found: %.200s", id);
}

/* ---- listing ---- */

struct sessions_params {
    int64_t limit;
    const char *agent_type, *agentType;
};
const weft_param weft__cdev_sessions_params[] = {
    {"limit", WEFT_PARAM_int, offsetof(struct sessions_params, limit), WEFT_NULLABLE,
     "how many; 20 when absent or 0, at most 1000"},
    {"agent_type", WEFT_PARAM_str, offsetof(struct sessions_params, agent_type), WEFT_NULLABLE,
     "only sessions with this agent"},
    {"agentType", WEFT_PARAM_str, offsetof(struct sessions_params, agentType), WEFT_NULLABLE, "the same as agent_type"},
    WEFT_END(struct sessions_params),
};

static size_t summary_length(const char *prompt) {
    size_t len = strnlen(prompt, SUMMARY + 1);
    if (len > SUMMARY)
        for (len = SUMMARY; len && ((unsigned char) prompt[len] & 0xC0) == 0x80;)
            len--;
    return len;
}

/* How many messages there are only its transcript knows; prompts are counted anyway. */
static int write_session(const weft_hub *hub, const weft_session *session, weft_buf *out) {
    const weft_task *task = session->task ? weft__task_find(hub->engine, session->task) : NULL;
    char created[WEFT_STAMP], updated[WEFT_STAMP];
    weft_val last = weft_str(weft__stamp(session->updated_ms, updated));
    weft_val value =
        WEFT_OBJ({"id", weft_str(session->id)}, {"session_id", weft_str(session->id)},
                 {"agent_type", weft_str(session->agent)}, {"agent_session_id", weft_str_or_none(session->agent_session)},
                 {"summary", task ? weft_strn(task->prompt, summary_length(task->prompt)) : weft_none()},
                 {"message_count", weft_uint(session->tasks)},
                 {"created_at", weft_str(weft__stamp(session->created_ms, created))}, {"updated_at", last},
                 {"last_updated", last}, {"status", weft_str(weft__cdev_state_of(session->busy ? task : NULL))});
    return weft__write_val(out, hub->alloc, &value);
}

static int write_sessions(const weft_hub *hub, const char *agent, uint64_t limit, weft_buf *out, uint64_t *ret_total) {
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (const weft_session *session = weft__session_newest(hub->engine); r >= 0 && session;
         session = weft__session_older(hub->engine, session)) {
        if ((agent && strcmp(agent, session->agent) != 0) || (*ret_total)++ >= limit)
            continue;
        r = *ret_total > 1 ? weft__buf_put(out, hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_session(hub, session, out);
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

int weft__cdev_sessions(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct sessions_params *in = weft_req_params(req);
    const weft_session *current = weft__cdev_session(hub, weft_req_peer(req));
    weft_buf out = {0};
    uint64_t total = 0;
    (void) params;
    if (in->limit < 0)
        return weft__reply_invalid(req, "/limit", "limit must not be negative");
    int64_t limit = in->limit == 0 ? LIST_DEFAULT : in->limit < LIST_MAX ? in->limit : LIST_MAX;
    int r = write_sessions(hub, in->agent_type ? in->agent_type : in->agentType, (uint64_t) limit, &out, &total);
    if (r >= 0)
        r = weft_reply(req,
                       WEFT_OBJ({"sessions", weft_raw(weft__buf_head(&out), weft__buf_len(&out))},
                                {"total", weft_uint(total)}, {"current", weft_str_or_none(current ? current->id : NULL)}));
    weft__buf_done(&out, hub->alloc);
    return r;
}

/* ---- one session ---- */

struct session_params {
    const char *session_id, *sessionId;
};
#define SESSION_ID                                                                                                          \
    {"session_id", WEFT_PARAM_str, offsetof(struct session_params, session_id), WEFT_NULLABLE, "which session"}, {          \
        "sessionId", WEFT_PARAM_str, offsetof(struct session_params, sessionId), WEFT_NULLABLE, "the same as session_id"    \
    }
const weft_param weft__cdev_session_get_params[] = {SESSION_ID, WEFT_END(struct session_params)};
const weft_param weft__cdev_watch_params[] = {SESSION_ID, WEFT_END(struct session_params)};
const weft_param weft__cdev_unwatch_params[] = {
    {"session_id", WEFT_PARAM_str, offsetof(struct session_params, session_id), WEFT_NULLABLE, "which; all when absent"},
    {"sessionId", WEFT_PARAM_str, offsetof(struct session_params, sessionId), WEFT_NULLABLE, "the same as session_id"},
    WEFT_END(struct session_params),
};

static const char *session_param(const struct session_params *in) {
    return in->session_id ? in->session_id : in->sessionId;
}

/* NULL after an answer. */
static const weft_session *find_session_or_refuse(weft_req *req, const weft_hub *hub) {
    const char *id = session_param(weft_req_params(req));
    const weft_session *session = id && *id ? weft__session_find(hub->engine, id) : NULL;
    if (!id || !*id)
        weft__reply_invalid(req, "/session_id", "session_id is missing");
    else if (!session)
        weft__cdev_no_session(req, id);
    return session;
}

int weft__cdev_session_get(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const weft_session *session = find_session_or_refuse(req, hub);
    weft_buf out = {0};
    (void) params;
    if (!session)
        return 0;
    int r = write_session(hub, session, &out);
    if (r >= 0)
        r = weft_reply(req, weft_raw(weft__buf_head(&out), weft__buf_len(&out)));
    weft__buf_done(&out, hub->alloc);
    return r;
}

/* ---- watching ---- */

static int refuse_watch(weft_req *req, int r) {
    if (r == -ENOSPC)
        return weft__reply_error(req, 429, "tooManyWatches", "A connection may watch %d sessions; end one of them",
                                 WEFT_CLIENT_WATCHES);
    return r;
}

/* since_seq: what happened up to there is in session/messages with until_seq, and what comes later is told. */
static int answer_watch(weft_req *req, const weft_hub *hub, const weft_hub_client *client, const char *id) {
    weft_buf pending = {0};
    int r = weft__cdev_write_pending(hub, id, &pending);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"status", weft_str("watching")}, {"watching", weft_bool(true)},
                                     {"session_id", weft_str(id)},
                                     {"since_seq", weft_uint(weft__hub_client_watches_since(client, id))},
                                     {"pending", weft_raw(weft__buf_head(&pending), weft__buf_len(&pending))}));
    weft__buf_done(&pending, hub->alloc);
    return r;
}

int weft__cdev_watch(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    (void) params;
    const weft_session *session = find_session_or_refuse(req, hub);
    if (!session)
        return 0;
    if (!client)
        return weft__reply_error(req, WEFT_INVALID_REQUEST, "cannotListen",
                                 "Logs cannot be delivered here; connect by WebSocket");
    int r = weft__hub_client_watch(client, session->id);
    return r < 0 ? refuse_watch(req, r) : answer_watch(req, hub, client, session->id);
}

int weft__cdev_unwatch(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const char *id = session_param(weft_req_params(req));
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    (void) params;
    if (client && id)
        weft__hub_client_unwatch(client, id);
    else if (client)
        weft__hub_client_unwatch_all(client);
    return weft_reply(req, WEFT_OBJ({"status", weft_str("unwatched")}, {"watching", weft_bool(false)}));
}
