/* session/prompt and session/cancel. A prompt is a task of its session; it is answered when the task has ended, behind
 * everything that was said in it. Who prompts while a turn runs waits for it: tasks of one session run one after the other.
 *
 *     submitted ──stored──▶ awaited ──the task's end──▶ ended ──the client was told all of it──▶ answered
 *
 * A client that leaves gives up its answer, and not the turn: it can come back and load the session. With an idempotency key
 * it can also say the same again, and gets what the turn came to: then the answer is waited for all the same. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "acp.h"
#include "alloc.h"
#include "reply.h"

/* Longer than any id of a task. */
#define TASK_ID 64
/* What a task's metadata says of its origin. */
#define ORIGIN 128

struct prompt {
    weft_link unstored; /* in the client's list, until it is */
    const weft_hub *hub;
    bool old;           /* it is answered when it was accepted */
    bool keyed;         /* its answer is kept, for who says it again */
    weft_req *req;      /* NULL: nobody waits for the answer any more */
    bool withdrawn;     /* it was cancelled before there was a task */
    char task[TASK_ID]; /* "": not stored yet */
    char session[];
};

struct prompt_params {
    const char *sessionId;
    weft_json prompt;
};
const weft_param weft__acp_prompt_params[] = {
    WEFT_MUST(struct prompt_params, sessionId, str, "the session"),
    WEFT_ALSO(struct prompt_params, sessionId, str, "session_id"),
    {"prompt", WEFT_PARAM_arr, offsetof(struct prompt_params, prompt), WEFT_REQUIRED | WEFT_NONEMPTY,
     "what the person says: blocks of text, links and embedded texts"},
    WEFT_END(struct prompt_params),
};

/* Which connection it came from, so that this one is not told its own words. The next daemon counts its connections anew; a
 * client that has a name is the same there. */
static const char *origin_of(const weft_hub *hub, const weft_hub_client *client, char text[ORIGIN]) {
    const char *name = client ? weft__hub_client_name(client) : NULL;
    if (name) {
        snprintf(text, ORIGIN, "{\"source\":\"acp\",\"name\":\"%s\"}", name);
        return text;
    }
    snprintf(text, ORIGIN, "{\"source\":\"acp\",\"client\":%" PRIu64 ",\"hub\":\"%s\"}",
             client ? weft__hub_client_number(client) : 0, hub->host->started_at);
    return text;
}

static void ignore_end(void *ctx, int r, const weft_task *task) {
    (void) ctx, (void) r, (void) task;
}

/* ---- answering ---- */

const char *weft__acp_stop_reason(const weft_task *task) {
    static const char *const known[] = {"end_turn", "max_tokens", "max_turn_requests", "refusal"};
    if (task->state == WEFT_TASK_CANCELLED)
        return "cancelled";
    for (size_t i = 0; task->stop_reason && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i], task->stop_reason) == 0)
            return known[i];
    return task->state == WEFT_TASK_COMPLETED ? "end_turn" : NULL;
}

int weft__acp_failure_code(const weft_task *task) {
    bool login = task->reason && strcmp(task->reason, "authRequired") == 0;
    return login ? ACP_LOGIN_REQUIRED : WEFT_INTERNAL_ERROR;
}

static void answer_failed(weft_req *req, const weft_task *task) {
    const char *why = task->error ? task->error : "The agent failed";
    weft_fail(req, weft__acp_failure_code(task), why,
              WEFT_OBJ({"reason", weft_str(task->reason ? task->reason : "agentFailed")}, {"taskId", weft_str(task->id)}));
}

static void answer_prompt(void *ctx, int r) {
    struct prompt *prompt = ctx;
    weft_req *req = prompt->req;
    const weft_task *task = weft__task_find(prompt->hub->engine, prompt->task);
    const char *stop = task ? weft__acp_stop_reason(task) : "end_turn";
    (void) r; /* also a client that is not told any more may wait for this */
    if (req)
        weft_req_on_cancel(req, NULL, NULL);
    if (req && stop)
        weft_reply(req, WEFT_OBJ({"stopReason", weft_str(stop)}));
    else if (req)
        answer_failed(req, task);
    weft__free(prompt->hub->alloc, prompt);
}

static bool on_prompt_task(void *ctx, const weft_event *event, const weft_json *data) {
    struct prompt *prompt = ctx;
    const weft_task *task = event ? weft__task_find(prompt->hub->engine, prompt->task) : NULL;
    (void) data;
    if (task && task->state <= WEFT_TASK_RUNNING)
        return true;
    if (event) {
        weft__acp_when_told(weft__acp_client_of(prompt->hub, prompt->req), prompt->session, answer_prompt, prompt);
        return false;
    }
    if (prompt->req) {
        weft_req_on_cancel(prompt->req, NULL, NULL);
        weft__reply_failure(prompt->req, -ESHUTDOWN);
    }
    weft__free(prompt->hub->alloc, prompt);
    return false;
}

/* Cancelled: the turn ends, and that is the answer. The connection has gone: the turn goes on. */
static void on_request_over(weft_req *req, int why, void *ctx) {
    struct prompt *prompt = ctx;
    char who[WEFT_WHO];
    if (why == -EPIPE && prompt->keyed)
        return;
    if (why != -ECANCELED) {
        prompt->req = NULL;
        weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
        return;
    }
    prompt->withdrawn = true;
    if (*prompt->task)
        weft__task_cancel(prompt->hub->engine, prompt->task, weft__who(weft_req_identity(req), who), ignore_end, NULL);
}

static void refuse_stored(struct prompt *prompt, int r) {
    if (prompt->req) {
        weft_req_on_cancel(prompt->req, NULL, NULL);
        weft__reply_failure(prompt->req, r);
    }
    weft__free(prompt->hub->alloc, prompt);
}

/* Its end is told to all who follow the session. */
static void answer_accepted(struct prompt *prompt) {
    if (prompt->req) {
        weft_req_on_cancel(prompt->req, NULL, NULL);
        weft_reply(prompt->req, WEFT_OBJ({"ok", weft_bool(true)}));
    }
    weft__free(prompt->hub->alloc, prompt);
}

static void on_submitted(void *ctx, int r, const weft_task *task) {
    struct prompt *prompt = ctx;
    const weft_hub *hub = prompt->hub;
    weft__list_remove(&prompt->unstored);
    if (r >= 0 && prompt->old && !prompt->withdrawn) {
        answer_accepted(prompt);
        return;
    }
    if (r >= 0)
        snprintf(prompt->task, sizeof prompt->task, "%s", task->id);
    /* The same prompt again, by its key: its end may have been told already. */
    if (r >= 0 && task->state > WEFT_TASK_RUNNING) {
        weft__acp_when_told(weft__acp_client_of(hub, prompt->req), prompt->session, answer_prompt, prompt);
        return;
    }
    if (r >= 0)
        r = weft__hub_clients_await(hub->clients, task->id, on_prompt_task, prompt);
    if (r >= 0 && prompt->withdrawn)
        weft__task_cancel(hub->engine, prompt->task, "client", ignore_end, NULL);
    if (r < 0)
        refuse_stored(prompt, r);
}

/* ---- asking ---- */

static int refuse_prompt(weft_req *req, const weft_hub *hub, const char *session, int r) {
    switch (r) {
    case -ESRCH:
        return weft__acp_no_session(req, session);
    case -ESTALE:
        return weft__reply_error(req, ACP_NOT_FOUND, "sessionClosed",
                                 "The session is closed; session/load takes it up again");
    case -ENOENT:
        return weft__reply_error(req, WEFT_INTERNAL_ERROR, "agentNotConfigured",
                                 "The agent of this session is no longer configured");
    case -EDQUOT:
    case -ENOBUFS:
        return weft__reply_error(req, 429, "rateLimited", "Too many prompts are waiting");
    default:
        return weft__reply_not_submitted(req, hub, "/prompt", r);
    }
}

static int submit_prompt(weft_req *req, const weft_hub *hub, const struct prompt_params *in, const char *text) {
    weft_hub_client *client = weft__acp_client_of(hub, req);
    char origin[ORIGIN], key[WEFT_KEY];
    size_t size = strlen(in->sessionId) + 1;
    int r = weft__idempotency_key(req, key);
    if (r < 0)
        return r;
    struct prompt *prompt = weft__zalloc(hub->alloc, sizeof *prompt + size);
    if (!prompt)
        return -ENOMEM;
    *prompt =
        (struct prompt){.hub = hub, .old = weft__acp_is_old(hub, req), .keyed = *key != '\0', .req = weft__req_keep(req)};
    memcpy(prompt->session, in->sessionId, size);
    weft__list_init(&prompt->unstored);
    weft_trace trace;
    weft_task_spec spec = {.trace = weft_req_trace(req, &trace) ? &trace : NULL,
                           .prompt = text,
                           .session = in->sessionId,
                           .metadata = origin_of(hub, client, origin),
                           .key = *key ? key : NULL};
    r = weft__task_submit(hub->engine, &spec, on_submitted, prompt);
    if (r < 0) {
        weft__free(hub->alloc, prompt);
        return refuse_prompt(weft__req_keep(req), hub, in->sessionId, r);
    }
    if (client)
        weft__list_push(weft__hub_client_unstored(client), &prompt->unstored);
    if (prompt->req)
        weft_req_on_cancel(prompt->req, on_request_over, prompt);
    return 0;
}

static int refuse_content(weft_req *req, size_t block, const char *why) {
    char path[40];
    snprintf(path, sizeof path, "/prompt/%zu", block);
    return weft__reply_invalid(req, path, "%s", why);
}

/* Who prompts in a session follows it, also if it did not open it. */
int weft__acp_on_prompt(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct prompt_params *in = weft_req_params(req);
    weft_hub_client *client = weft__acp_client_of(hub, req);
    const char *why = "";
    size_t bad;
    weft_buf text = {0};
    (void) params;
    if (!weft__session_find(hub->engine, in->sessionId))
        return weft__acp_no_session(req, in->sessionId);
    bool knew = !client || weft__acp_follows(client, in->sessionId);
    int r = client ? weft__acp_follow(client, in->sessionId) : 0;
    if (r >= 0 && !knew)
        weft__acp_ask_open(client, in->sessionId, false);
    if (r >= 0)
        r = weft__acp_content(&in->prompt, hub->alloc, &text, &bad, &why);
    if (r == -EINVAL)
        r = refuse_content(req, bad, why);
    else if (r >= 0)
        r = submit_prompt(req, hub, in, weft__buf_head(&text));
    weft__buf_done(&text, hub->alloc);
    return r;
}

/* ---- cancelling ---- */

struct cancel_params {
    const char *sessionId;
};
const weft_param weft__acp_cancel_params[] = {
    WEFT_MUST(struct cancel_params, sessionId, str, "the session whose turn ends"),
    WEFT_ALSO(struct cancel_params, sessionId, str, "session_id"),
    WEFT_END(struct cancel_params),
};

static void withdraw_unstored(weft_hub_client *client, const char *session) {
    weft_link *all = weft__hub_client_unstored(client);
    for (weft_link *at = all->next; at != all; at = at->next) {
        struct prompt *prompt = WEFT_CONTAINER(at, struct prompt, unstored);
        prompt->withdrawn |= strcmp(prompt->session, session) == 0;
    }
}

/* The turn that runs ends, whoever asked for it; what waits behind it ends if this connection asked for it, also if it is
 * not stored yet. */
int weft__acp_on_cancel(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct cancel_params *in = weft_req_params(req);
    const weft_session *session = weft__session_find(hub->engine, in->sessionId);
    weft_hub_client *client = weft__acp_client_of(hub, req);
    char origin[ORIGIN], who[WEFT_WHO];
    const weft_task *task;
    (void) params;
    if (!session)
        return weft__acp_no_session(req, in->sessionId);
    weft__who(weft_req_identity(req), who);
    origin_of(hub, client, origin);
    for (size_t n = 0; client && (task = weft__task_waiting(hub->engine, n)); n++)
        if (strcmp(task->session, session->id) == 0 && strcmp(task->metadata, origin) == 0)
            weft__task_cancel(hub->engine, task->id, who, ignore_end, NULL);
    if (client)
        withdraw_unstored(client, session->id);
    if (session->turn)
        weft__task_cancel(hub->engine, session->turn, who, ignore_end, NULL);
    return weft_reply(req, weft_obj(NULL, 0));
}
