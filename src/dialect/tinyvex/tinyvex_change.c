/* tinyvex/mutation and tinyvex/action: finding the row, who may, and telling what came of it. */
#include "tinyvex_change.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "reply.h"
#include "request.h"

#define MESSAGE 1024
#define MEMBERS 8 /* of a result, at most */

struct tinyvex_caller {
    weft_hub *hub;
    weft_req *req;       /* NULL: a notification, which tinyvex/mutate_result answers */
    uint64_t client;     /* 0: no client of the hub */
    const char *by, *id; /* whose, and which request */
    char text[];
};

/* ---- what is said ---- */

/* A session is a thread here, and a task's prompt a message. Everything else has the same name. */
static size_t render_value(const weft_json *result, weft_member members[MEMBERS]) {
    static const struct {
        const char *name, *shown, *also;
    } names[] = {{"collection", "collection", NULL}, {"key", "key", NULL},        {"version", "version", NULL},
                 {"deleted", "deleted", NULL},       {"commit", "commit", NULL},  {"sessionId", "threadId", NULL},
                 {"taskId", "messageId", "taskId"},  {"already", "already", NULL}};
    enum { NAMES = sizeof names / sizeof names[0] };
    size_t count = 0;
    for (weft_iter it = weft_iterate(result); count + 2 <= MEMBERS && weft_next(&it);) {
        size_t i = 0;
        while (i < NAMES && !weft_name_is(&it, names[i].name))
            i++;
        if (i < NAMES)
            members[count++] = (weft_member){names[i].shown, weft_copy(&it.value)};
        if (i < NAMES && names[i].also)
            members[count++] = (weft_member){names[i].also, weft_copy(&it.value)};
    }
    return count;
}

/* What the outcome is as an error, when nobody gave one. */
struct failure {
    int code;
    const char *reason;
    char message[MESSAGE];
};

static struct failure describe_failure(int r) {
    struct failure is = {.code = WEFT_INTERNAL_ERROR};
    switch (r) {
    case -EEXIST:
        is.reason = "requestForgotten";
        snprintf(is.message, sizeof is.message,
                 "This request was done before; its answer is no longer remembered, and it is not done again");
        break;
    case -EOWNERDEAD:
        is.reason = "outcomeUnknown";
        snprintf(is.message, sizeof is.message,
                 "It is not known whether this was done: the daemon ended meanwhile. It is not done again");
        break;
    case -ESHUTDOWN:
    case -ECANCELED:
        is.code = 503;
        is.reason = "shuttingDown";
        snprintf(is.message, sizeof is.message, "The daemon is stopping");
        break;
    case -EXFULL:
        is.code = 503;
        is.reason = "storeBusy";
        snprintf(is.message, sizeof is.message, "Too much is waiting to be stored: try again in a moment");
        break;
    default:
        is.code = 507;
        is.reason = "storageFailed";
        snprintf(is.message, sizeof is.message, "It could not be stored: %s", weft_strerror(r));
        break;
    }
    return is;
}

/* ---- telling it ---- */

static void free_caller(tinyvex_caller *caller) {
    weft__free(caller->hub->alloc, caller);
}

/* Its own connection, if it is still there; else whoever comes in its name. */
static void tell_client(weft_hub *hub, uint64_t number, const char *by, weft_val params) {
    weft_hub_client *client = number ? weft__hub_clients_find(hub->clients, number) : NULL;
    int r = client ? weft_notify(weft__hub_client_peer(client), "tinyvex/mutate_result", params) : -EPIPE;
    if (r == -EPIPE)
        weft__tinyvex_tell_late(hub, by, params);
}

static void tell_result(const tinyvex_caller *caller, weft_val params) {
    tell_client(caller->hub, caller->client, caller->by, params);
}

static void answer_value(const tinyvex_caller *caller, weft_val value) {
    weft_val params = WEFT_OBJ({"requestId", weft_str(caller->id)}, {"value", value});
    if (!caller->req)
        tell_result(caller, params);
    else if (weft_reply(caller->req, params) == -EPIPE)
        weft__tinyvex_tell_late(caller->hub, caller->by, params);
}

static void answer_error(const tinyvex_caller *caller, int code, const char *message, weft_val data) {
    weft_val error = WEFT_OBJ({"code", weft_int(code)}, {"message", weft_str(message)}, {"data", data});
    weft_val params = WEFT_OBJ({"requestId", weft_str(caller->id)}, {"error", error});
    if (!caller->req)
        tell_result(caller, params);
    else if (weft_fail(caller->req, code, message, data) == -EPIPE)
        weft__tinyvex_tell_late(caller->hub, caller->by, params);
}

static void answer_failure(const tinyvex_caller *caller, int r) {
    struct failure is = describe_failure(r);
    answer_error(caller, is.code, is.message,
                 WEFT_OBJ({"reason", weft_str(is.reason)}, {"code", weft_str(TVX_MUTATION_FAILED)},
                          {"requestId", weft_str(caller->id)}));
}

/* error is as weft__tinyvex_not_done() wrote it. */
static void answer_refusal(const tinyvex_caller *caller, const weft_json *error) {
    weft_json data = weft_get(error, "data");
    answer_error(caller, (int) weft_get_int(error, "code", WEFT_INTERNAL_ERROR), weft_get_str(error, "message", ""),
                 weft_copy(&data));
}

static void on_outcome(void *ctx, const weft_request_outcome *outcome) {
    tinyvex_caller *caller = ctx;
    weft_member members[MEMBERS];
    if (outcome->r == 0)
        answer_value(caller, weft_obj(members, render_value(&outcome->result, members)));
    else if (outcome->r > 0)
        answer_refusal(caller, &outcome->error);
    else
        answer_failure(caller, outcome->r);
    free_caller(caller);
}

/* ---- refusing ---- */

/* 0: there is none. */
static uint64_t client_number(const weft_hub *hub, weft_req *req) {
    const weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    return client ? weft__hub_client_number(client) : 0;
}

static int refuse_in_words(weft_req *req, const tinyvex_change *change, int code, const char *name, const char *reason,
                           const char *path, const char *message) {
    if (!weft_req_is_notification(req))
        return weft__tinyvex_refuse(weft__req_keep(req), code, name, reason, path, "%s", message);
    weft_val error = WEFT_OBJ(
        {"code", weft_int(code)}, {"message", weft_str(message)},
        {"data", WEFT_OBJ({"reason", weft_str(reason)}, {"code", weft_str(name)}, {"path", weft_str_or_none(path)})});
    *change->told = true;
    tell_client(change->hub, client_number(change->hub, req), change->by,
                WEFT_OBJ({"requestId", weft_str(change->request_id)}, {"error", error}));
    return 0;
}

int weft__tinyvex_refuse_change(weft_req *req, const tinyvex_change *change, int code, const char *name, const char *reason,
                                const char *path, const char *format, ...) {
    char message[MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return refuse_in_words(req, change, code, name, reason, path, message);
}

int weft__tinyvex_refuse_args(weft_req *req, const tinyvex_change *change, const char *path, const char *format, ...) {
    static const char before[] = "Invalid params: ";
    char message[MESSAGE];
    va_list args;
    memcpy(message, before, sizeof before);
    va_start(args, format);
    vsnprintf(message + sizeof before - 1, sizeof message - (sizeof before - 1), format, args);
    va_end(args);
    int r = refuse_in_words(req, change, WEFT_INVALID_PARAMS, TVX_MUTATION_FAILED, "invalidParams", path, message);
    return r < 0 ? r : -EINVAL;
}

void weft__tinyvex_not_done(weft_request *request, int code, const char *reason, const char *path, const char *format, ...) {
    char message[MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    int shown = code ? code : path ? WEFT_INVALID_PARAMS : WEFT_INTERNAL_ERROR;
    weft__request_refuse(request,
                         WEFT_OBJ({"code", weft_int(shown)}, {"message", weft_str(message)},
                                  {"data", WEFT_OBJ({"reason", weft_str(reason)}, {"code", weft_str(TVX_MUTATION_FAILED)},
                                                    {"path", weft_str_or_none(path)})}));
}

void weft__tinyvex_settle(weft_request *request, int r, const char *id, const char *why) {
    switch (r) {
    case -ESRCH:
        weft__tinyvex_not_done(request, 0, "sessionNotFound", "/args/threadId", "There is no thread %s", id);
        break;
    case -ESTALE:
        weft__tinyvex_not_done(request, 0, "sessionClosed", NULL, "The thread is archived, or about to be: %s", id);
        break;
    case -EUSERS:
        weft__tinyvex_not_done(request, 503, "agentsBusy", NULL, "Too many agents are being asked: try again in a moment");
        break;
    case -EDQUOT:
        weft__tinyvex_not_done(request, 429, "sessionQueueFull", NULL, "Too many messages wait in this thread");
        break;
    case -ENOBUFS:
        weft__tinyvex_not_done(request, 429, "queueFull", NULL, "Too many tasks wait");
        break;
    case -EOPNOTSUPP:
    case -EREMOTEIO:
    case -EPIPE:
    case -ETIMEDOUT:
        weft__tinyvex_not_done(request, 0, "agentRefused", NULL, "The agent did not do it%s%s", why ? ": " : "",
                               why ? why : "");
        break;
    default:
        weft__request_settle(request, r);
        break;
    }
}

/* ---- beginning ---- */

static tinyvex_caller *new_caller(weft_req *req, const tinyvex_change *change) {
    weft_hub *hub = change->hub;
    size_t by = strlen(change->by) + 1, id = strlen(change->request_id) + 1;
    tinyvex_caller *made = weft__alloc(hub->alloc, sizeof *made + by + id);
    if (!made)
        return NULL;
    *made = (tinyvex_caller){.hub = hub, .req = weft__req_keep(req), .client = client_number(hub, req)};
    made->by = memcpy(made->text, change->by, by);
    made->id = memcpy(made->text + by, change->request_id, id);
    return made;
}

static int refuse_begin(weft_req *req, const tinyvex_change *change, int r) {
    switch (r) {
    case -EINVAL:
        return weft__tinyvex_refuse_args(req, change, "/requestId", "requestId must have 1 to %d bytes", WEFT_REQUEST_ID);
    case -ENOTUNIQ:
        return weft__tinyvex_refuse_change(req, change, WEFT_INVALID_PARAMS, TVX_MUTATION_FAILED, "requestIdReused",
                                           "/requestId", "This requestId was used for something else");
    case -EUSERS:
        return weft__tinyvex_refuse_change(req, change, 503, TVX_MUTATION_FAILED, "storeBusy", NULL,
                                           "Too many changes are under way: try again in a moment");
    case -ENOMEM:
        return r;
    default:
        return weft__tinyvex_refuse_change(req, change, 503, TVX_MUTATION_FAILED, "shuttingDown", NULL,
                                           "The daemon is stopping");
    }
}

int weft__tinyvex_begin(weft_req *req, const tinyvex_change *change, weft_request **ret) {
    weft_request_spec spec = {.by = change->by, .id = change->request_id, .name = change->row->name, .args = change->args};
    tinyvex_caller *caller = new_caller(req, change);
    if (!caller)
        return -ENOMEM;
    *ret = NULL;
    int r = weft__request_begin(change->hub->engine, &spec, on_outcome, caller, ret);
    if (r >= 0)
        return 0;
    free_caller(caller);
    int refused = refuse_begin(req, change, r);
    return refused < 0 ? refused : r;
}

/* ---- the methods ---- */

struct change_params {
    const char *requestId, *name;
    weft_json args;
};
const weft_param weft__tinyvex_change_params[] = {
    {"requestId", WEFT_PARAM_str, offsetof(struct change_params, requestId), WEFT_REQUIRED | WEFT_NONEMPTY,
     "a name for this request that you use once; a repeat with the same one gets the same answer"},
    {"name", WEFT_PARAM_str, offsetof(struct change_params, name), WEFT_REQUIRED | WEFT_NONEMPTY, "what to do"},
    {"args", WEFT_PARAM_any, offsetof(struct change_params, args), WEFT_NULLABLE, "with what: an object, by name"},
    WEFT_END(struct change_params),
};

static const weft_method *find_row(const weft_method *rows, const char *name) {
    for (; rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

static int refuse_name(weft_req *req, const tinyvex_change *change, const weft_method *rows, const char *name) {
    char known[512];
    int len = 0;
    for (const weft_method *row = rows; row->name && len >= 0 && (size_t) len < sizeof known; row++)
        len += snprintf(known + len, sizeof known - (size_t) len, "%s%s", row == rows ? "" : ", ", row->name);
    return weft__tinyvex_refuse_change(req, change, WEFT_INVALID_PARAMS, TVX_MUTATION_FAILED, "unknownName", "/name",
                                       "There is no \"%.100s\"; there is %s", name, known);
}

/* The gates have let the method pass; the row may want more. */
static int check_caller(weft_req *req, const tinyvex_change *change) {
    const weft_identity *who = weft_req_identity(req);
    const weft_hub_host *host = change->hub->host;
    const weft_method *row = change->row;
    if (!weft_has_scope(who, row->scope))
        return weft__tinyvex_refuse_change(req, change, 403, TVX_UNAUTHORIZED, "forbidden", NULL, "%s needs the scope %s",
                                           row->name, row->scope);
    if ((row->flags & WEFT_FOR_PEOPLE) && host && host->is_agent && host->is_agent(host->ctx, who))
        return weft__tinyvex_refuse_change(req, change, 403, TVX_UNAUTHORIZED, "agentMayNot", NULL,
                                           "%s is not for agents: the caller is a process of one, or has ended", row->name);
    return 1;
}

/* What the library finds wrong in the args of a notification it has nobody to tell of. */
static int hand_change_on(weft_req *req, tinyvex_change *change) {
    int r = weft__req_pass_on_at(req, change->row, &change->args, "/args", change);
    if (r == -EINVAL && weft_req_is_notification(req) && !*change->told)
        weft__tinyvex_refuse_args(req, change, "/args", "args are not those of %s", change->row->name);
    return r;
}

static int do_change(weft_req *req, weft_hub *hub, const weft_method *rows) {
    const struct change_params *in = weft_req_params(req);
    static const weft_json nothing = {"{}", 2, NULL};
    bool told = false;
    tinyvex_change change = {
        .hub = hub, .row = find_row(rows, in->name), .request_id = in->requestId, .args = in->args, .told = &told};
    _Static_assert(sizeof change.by >= WEFT_WHO, "a caller's name fits");
    weft__who(weft_req_identity(req), change.by);
    if (!change.row)
        return refuse_name(req, &change, rows, in->name);
    int r = check_caller(req, &change);
    if (r <= 0)
        return r;
    if (!change.args.text)
        change.args = nothing;
    if (weft_typeof(&change.args) != WEFT_OBJECT)
        return weft__tinyvex_refuse_args(req, &change, "/args", "args must be an object");
    return hand_change_on(req, &change);
}

int weft__tinyvex_on_mutation(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return do_change(req, ctx, weft__tinyvex_mutations);
}

int weft__tinyvex_on_action(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return do_change(req, ctx, weft__tinyvex_actions);
}
