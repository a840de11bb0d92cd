/* Asking a hub: a gate takes the request over, after the relay has looked at the caller's scope, and the hub's answer is the
 * relay's. The relay's token says at the hub what it may do; the caller's name goes along, so that its journal can say who
 * it was.
 *
 * What the hub said before its answer is stored here before the answer goes out: who submits a task finds it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "failure.h"
#include "relay_private.h"
#include "reply.h"
#include "write.h"

#define MOST_CALLS 4096 /* of one hub, under way */

/* What a hub is asked; everything else that reads is answered from the copy, and everything else that changes something is
 * refused. Methods that need the caller's own connection at the hub (prompts of editors, roles, pages) are not among them.
 */
static const char *const asked[] = {
    /* work */
    "task.submit", "task.cancel", "task.retry", "task.seen", "task.undo", "task.comment", "task.merge", "task.discard",
    "question.answer", "agent/respond", "agent/stop", "sendTask", "cancelTask", "awaitTask", "session.create",
    "session.prompt", "session.set", "session.open", "session.resume", "session.close", "session.delete", "agent.sessions",
    "approval.revoke", "plan.cancel", "build", "git.stage", "git.unstage", "git.discard", "git.commit", "terminal.write",
    "terminal.resize", "worktree.prune",
    /* administering the hub, not the relay */
    "agent.use", "agent.logout", "automation.enable", "automation.disable",
    /* reading what only the hub has: its files, its programs, its configuration */
    "agent.list", "approval.list", "automation.status", "build.last", "cost.get", "file/get", "file/list", "gated.get",
    "gated.list", "git.log", "git/diff", "git/status", "mcp/servers", "plan.get", "plan.list", "role.list", "runner.list",
    "task.changes", "task.diff", "terminal.get", "terminal.list", "worktree.list", NULL};

/* Changing something, or administering, that is the relay's own. */
static const char *const own[] = {"daemon.stop",   "daemon.reload",   "token.add",       "token.list",
                                  "token.revoke",  "pair.start",      "pair.status",     "pair.stop",
                                  "traffic.watch", "traffic.unwatch", "connection.list", NULL};

static bool is_among(const char *const *list, const char *name) {
    while (*list && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

bool weft__relay_forwards(const char *method) {
    return is_among(asked, method);
}

/* A request that a hub was asked, until it has answered and what came before the answer is stored. */
typedef struct forwarded {
    weft_link link; /* hub->calls, then hub->held */
    relay_hub *hub;
    weft_req *req;
    int64_t call;
    uint64_t number; /* held: until this batch is stored */
    weft_doc *result;
} forwarded;

static forwarded *drop_forwarded(forwarded *it) {
    weft__list_remove(&it->link);
    weft_doc_free(it->result);
    return weft__free(NULL, it);
}

static int refuse_away(weft_req *req, const relay_hub *hub, const char *what) {
    return weft__reply_error(req, 503, "hubAway", "The hub %s cannot be reached%s: %s", hub->name, what,
                             *hub->trouble ? hub->trouble : "not connected");
}

/* ---- the answer ---- */

static void answer_with(const forwarded *it) {
    const weft_json *result = weft_doc_root(it->result);
    weft_buf text = {0};
    int r = weft__relay_put_ids(&text, result, it->hub->prefix, true);
    if (r >= 0)
        weft_reply(it->req, weft_raw(weft__buf_head(&text), weft__buf_len(&text)));
    else
        weft__reply_failure(it->req, r);
    weft__buf_done(&text, NULL);
}

static void answer_error(const forwarded *it, const weft_error *error) {
    weft_buf data = {0};
    int r = error->data.text ? weft__relay_put_ids(&data, &error->data, it->hub->prefix, true) : 0;
    weft_fail(it->req, error->code, error->message,
              r >= 0 && weft__buf_len(&data) ? weft_raw(weft__buf_head(&data), weft__buf_len(&data)) : weft_none());
    weft__buf_done(&data, NULL);
}

/* Everything that came before it: what is being filled, or is under way. */
static uint64_t last_batch(const relay_hub *hub) {
    return hub->count ? hub->filling : hub->sending;
}

static void on_forwarded(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    forwarded *it = ctx;
    relay_hub *hub = it->hub;
    (void) peer;
    if (r >= 0 && answer->result)
        r = weft_doc_keep(answer->result, NULL, &it->result);
    if (r == -ECONNRESET)
        refuse_away(it->req, hub, " any more; whether it was done is not known");
    else if (r == -ECANCELED)
        weft_fail(it->req, WEFT_CANCELLED, "Request cancelled", weft_none());
    else if (r < 0)
        weft__reply_failure(it->req, r);
    else if (answer->error)
        answer_error(it, answer->error);
    it->number = last_batch(hub);
    bool is_held = it->result && it->number;
    if (it->result && !is_held)
        answer_with(it);
    if (!is_held) {
        drop_forwarded(it);
        return;
    }
    weft__list_remove(&it->link);
    weft__list_push(&hub->held, &it->link);
}

void weft__relay_release(relay_hub *hub, uint64_t number) {
    while (!weft__list_empty(&hub->held)) {
        forwarded *first = WEFT_CONTAINER(hub->held.next, forwarded, link);
        if (first->number > number)
            return;
        answer_with(first);
        drop_forwarded(first);
    }
}

/* ---- the request ---- */

/* Which hub: that of the ids, or that of the member "hub", or the first. NULL: answered. */
static relay_hub *choose_hub(weft_relay *relay, weft_req *req, const weft_json *params) {
    char name[WEFT_RELAY_NAME + 1] = "";
    const char *said = weft_typeof(params) == WEFT_OBJECT ? weft_get_str(params, "hub", "") : "";
    if (relay->count == 1 && !*said)
        return &relay->hubs[0];
    if (!weft__relay_named(params, name))
        snprintf(name, sizeof name, "%s", strlen(said) < sizeof name ? said : "?");
    else if (*said && strcmp(said, name) != 0) {
        weft__reply_invalid(weft__req_keep(req), "/hub", "hub is another one than that of the ids");
        return NULL;
    }
    if (!*name)
        return &relay->hubs[0];
    for (size_t i = 0; i < relay->count; i++)
        if (strcmp(relay->hubs[i].name, name) == 0)
            return &relay->hubs[i];
    weft__reply_error(weft__req_keep(req), 404, "hubNotFound", "This relay follows no hub \"%.64s\"", name);
    return NULL;
}

/* The members of an object behind others that stand there already, but for this one. */
static int put_others(weft_buf *out, const weft_json *object, const char *except) {
    int r = 0;
    for (weft_iter it = weft_iterate(object); r >= 0 && weft_next(&it);) {
        if (weft_name_is(&it, except))
            continue;
        r = weft__buf_put(out, NULL, ",", 1);
        if (r >= 0)
            r = weft__buf_put(out, NULL, it.name.text, it.name.len);
        if (r >= 0)
            r = weft__buf_put(out, NULL, ":", 1);
        if (r >= 0)
            r = weft__buf_put(out, NULL, it.value.text, it.value.len);
    }
    return r;
}

/* params._meta, with who asks; what the caller said of that is left out. */
static int put_meta(weft_buf *out, const weft_json *params, const weft_identity *who) {
    char name[WEFT_WHO];
    weft_json meta = weft_typeof(params) == WEFT_OBJECT ? weft_get(params, "_meta") : (weft_json){0};
    int r = weft__buf_put_text(out, NULL, "{\"weft/for\":");
    weft__who(who, name);
    if (r >= 0)
        r = weft__write_str(out, NULL, name, strlen(name));
    if (r >= 0 && meta.text)
        r = put_others(out, &meta, "weft/for");
    return r < 0 ? r : weft__buf_put(out, NULL, "}", 1);
}

/* Positional params have no room for a name: they go as they are. */
static int put_params(weft_buf *out, const relay_hub *hub, const weft_json *params, const weft_identity *who) {
    weft_buf bare = {0};
    WEFT_AUTO(weft_doc) doc = NULL;
    if (weft_typeof(params) == WEFT_ARRAY)
        return weft__buf_put(out, NULL, params->text, params->len);
    int r = params->text ? weft__relay_put_bare(&bare, params, hub->prefix) : weft__buf_put(&bare, NULL, "{}", 2);
    if (r >= 0)
        r = weft_doc_parse(weft__buf_head(&bare), weft__buf_len(&bare), NULL, &doc);
    weft__buf_done(&bare, NULL);
    if (r >= 0)
        r = weft__buf_put_text(out, NULL, "{\"_meta\":");
    if (r >= 0)
        r = put_meta(out, params, who);
    if (r >= 0)
        r = put_others(out, weft_doc_root(doc), "_meta");
    return r < 0 ? r : weft__buf_put(out, NULL, "}", 1);
}

/* The hub is told, and may have done it. The answer comes from on_forwarded(), which may run within this call. */
static void on_caller_gone(weft_req *req, int why, void *ctx) {
    const forwarded *it = ctx;
    (void) req, (void) why;
    if (it->hub->peer && !it->result)
        weft_cancel(it->hub->peer, it->call);
}

static int forward(relay_hub *hub, const weft_gate_request *request) {
    weft_buf params = {0};
    weft_req *req = request->req;
    if (weft_peer_open_calls(hub->peer) >= MOST_CALLS)
        return weft__reply_error(weft__req_keep(req), 429, "hubBusy", "The hub %s has too many requests of this relay's",
                                 hub->name),
               -EBUSY;
    forwarded *it = weft__zalloc(NULL, sizeof *it);
    int r = it ? put_params(&params, hub, &request->params, request->identity) : -ENOMEM;
    if (it) {
        it->hub = hub;
        it->req = req;
        weft__list_push(&hub->calls, &it->link);
    }
    if (r >= 0)
        r = weft_call_start(hub->peer, request->method->name, weft_raw(weft__buf_head(&params), weft__buf_len(&params)),
                            &(weft_call_opts){.on_answer = on_forwarded, .ctx = it, .timeout_ms = -1}, &it->call);
    weft__buf_done(&params, NULL);
    if (r < 0) {
        if (it)
            drop_forwarded(it);
        weft__reply_failure(weft__req_keep(req), r);
        return r;
    }
    weft_req_on_cancel(req, on_caller_gone, it);
    return 1;
}

static bool changes_something(const weft_method *method) {
    const char *scope = method->scope;
    return scope && (strcmp(scope, WEFT_WORK) == 0 || strcmp(scope, WEFT_ADMIN) == 0 || strcmp(scope, WEFT_RUNNER) == 0);
}

/* A relay has none: an empty list would look as if the hub had none either. */
static bool follows_documents(const weft_gate_request *request) {
    bool positional = weft_typeof(&request->params) == WEFT_ARRAY;
    weft_json stream = positional ? weft_at(&request->params, 1) : weft_get(&request->params, "name");
    return strcmp(request->method->name, "tinyvex/subscribe") == 0 && strcmp(weft_str_of(&stream, ""), "documents") == 0;
}

int weft__relay_before(void *ctx, const weft_gate_request *request) {
    weft_relay *relay = ctx;
    const weft_method *method = request->method;
    if (!method || !weft_has_scope(request->identity, method->scope))
        return 0; /* it is refused behind us, as everywhere */
    bool asks = is_among(asked, method->name);
    if (!asks && !follows_documents(request) && (!changes_something(method) || is_among(own, method->name)))
        return 0;
    if (!asks)
        return weft__reply_error(weft__req_keep(request->req), 501, "notOnRelay",
                                 "A relay does not do this; connect to the hub itself"),
               -EOPNOTSUPP;
    relay_hub *hub = choose_hub(relay, request->req, &request->params);
    if (!hub)
        return -EINVAL;
    if (!hub->connected || !hub->peer)
        return refuse_away(weft__req_keep(request->req), hub, ""), -ENOTCONN;
    return forward(hub, request);
}
