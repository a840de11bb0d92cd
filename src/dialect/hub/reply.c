/* What the handlers of all dialects say alike. */
#include "reply.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_MESSAGE 1024
#define STORE_AGAIN_MS 1000 /* a disk that is not broken has stored a full queue by then */

const weft_param weft__no_params[] = {{0}};

weft_val weft__stamp_val(int64_t ms, char text[WEFT_STAMP]) {
    return ms ? weft_str(weft__stamp(ms, text)) : weft_null();
}

/* Asked of every change: snprintf() takes as long as finding its collection. */
static void print_uid(char text[WEFT_WHO], uint64_t uid) {
    char digits[20], *at = digits + sizeof digits;
    do
        *--at = (char) ('0' + uid % 10);
    while (uid /= 10);
    size_t len = (size_t) (digits + sizeof digits - at);
    memcpy(text, "uid ", 4);
    memcpy(text + 4, at, len);
    text[4 + len] = '\0';
}

const char *weft__who(const weft_identity *identity, char text[WEFT_WHO]) {
    if (*identity->name)
        snprintf(text, WEFT_WHO, "%s", identity->name);
    else if (identity->uid >= 0)
        print_uid(text, (uint64_t) identity->uid);
    else
        snprintf(text, WEFT_WHO, "%s", *identity->address ? identity->address : "unknown");
    return text;
}

weft_req *weft__req_keep(weft_req *req) {
    return weft_req_is_notification(req) ? NULL : req;
}

int weft__reply_val(weft_req *req, weft_val result) {
    return req ? weft_reply(req, result) : 0;
}

int weft__reply_error(weft_req *req, int code, const char *reason, const char *format, ...) {
    char message[MAX_MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return req ? weft_refuse(req, code, message, reason) : 0;
}

int weft__reply_invalid(weft_req *req, const char *path, const char *format, ...) {
    char message[MAX_MESSAGE] = "Invalid params: ";
    size_t begun = strlen(message);
    va_list args;
    va_start(args, format);
    vsnprintf(message + begun, sizeof message - begun, format, args);
    va_end(args);
    if (!req)
        return 0;
    return weft_fail(req, WEFT_INVALID_PARAMS, message,
                     WEFT_OBJ({"reason", weft_str("invalidParams")}, {"path", weft_str(path)}));
}

static int say_too_long(weft_req *req, const weft_hub *hub, const char *path) {
    char message[MAX_MESSAGE];
    snprintf(message, sizeof message, "The prompt is longer than %zu bytes", weft__engine_limits(hub->engine)->max_prompt);
    return req ? weft_fail(req, 413, message, WEFT_OBJ({"reason", weft_str("tooLarge")}, {"path", weft_str(path)})) : 0;
}

/* More than this nobody reads in a message; agent.list has them all. */
#define MAX_NAMED 32

int weft__reply_no_agent(weft_req *req, const weft_hub *hub, int code, const char *reason, const char *path,
                         const char *name) {
    const weft_agents *agents = weft__engine_agents(hub->engine);
    weft_val known[MAX_NAMED];
    char message[MAX_MESSAGE];
    size_t count = agents->count < MAX_NAMED ? agents->count : MAX_NAMED;
    int n = snprintf(message, sizeof message, "There is no agent \"%.200s\"; there is ", name);
    for (size_t i = 0; i < count; i++) {
        known[i] = weft_str(agents->list[i].name);
        if (n >= 0 && (size_t) n < sizeof message)
            n += snprintf(message + n, sizeof message - (size_t) n, "%s%s", i ? ", " : "", agents->list[i].name);
    }
    if (!req)
        return 0;
    return weft_fail(req, code, message,
                     WEFT_OBJ({"reason", weft_str(reason)}, {"path", weft_str(path)}, {"known", weft_arr(known, count)}));
}

int weft__reply_failure(weft_req *req, int r) {
    if (r == -ESHUTDOWN)
        return weft__reply_error(req, 503, "shuttingDown", "The daemon is stopping");
    if (r == -ENOTUNIQ)
        return weft__reply_error(req, 409, "idempotencyKeyReused",
                                 "The idempotency key was used before, for a task with other params");
    if (r == -EXFULL && req)
        return weft_fail(req, 503, "Too much is waiting to be stored: try again in a moment",
                         WEFT_OBJ({"reason", weft_str("storeBusy")}, {"retryAfterMs", weft_int(STORE_AGAIN_MS)}));
    return weft__reply_error(req, 507, "storageFailed", "It could not be stored: %s", weft_strerror(r));
}

int weft__reply_not_submitted(weft_req *req, const weft_hub *hub, const char *path, int r) {
    if (r == -EINVAL)
        return weft__reply_invalid(req, path, "%s must not be empty", path + 1);
    if (r == -EMSGSIZE)
        return say_too_long(req, hub, path);
    return weft__reply_failure(req, r);
}

int weft__idempotency_key(weft_req *req, char ret[WEFT_KEY]) {
    weft_json key = weft_req_meta(req, "weft/idempotencyKey");
    char who[WEFT_WHO];
    ret[0] = '\0';
    if (!key.text)
        return 0;
    const char *text = weft_str_of(&key, "");
    int n = snprintf(ret, WEFT_KEY, "%s: %s", weft__who(weft_req_identity(req), who), text);
    if (*text && n < WEFT_KEY)
        return 0;
    weft__reply_invalid(req, "/_meta/weft~1idempotencyKey", "the key must be a string of 1 to %d bytes",
                        WEFT_KEY - WEFT_WHO);
    return -EINVAL;
}

weft_val weft__early_stop(const char *stop_reason) {
    return weft_str_or_none(stop_reason && strcmp(stop_reason, "end_turn") != 0 ? stop_reason : NULL);
}

weft_val weft__usage_or_none(const weft_task *task) {
    return task->usage ? weft_raw(task->usage, strlen(task->usage)) : weft_none();
}

int weft__isolation_read(weft_req *req, const char *said, bool with_changes, weft_isolation *ret) {
    int r = 0;
    *ret = WEFT_ISOLATION_NONE;
    if (said && strcmp(said, "worktree") == 0)
        *ret = with_changes ? WEFT_ISOLATION_WITH_CHANGES : WEFT_ISOLATION_WORKTREE;
    else if (said && strcmp(said, "none") != 0)
        r = weft__reply_invalid(req, "/isolation", "isolation must be none or worktree");
    else if (!with_changes) {
        *ret = said ? WEFT_ISOLATION_OFF : WEFT_ISOLATION_NONE;
        return 0;
    } else
        r = weft__reply_invalid(req, "/withChanges", "withChanges is for isolation worktree");
    return r < 0 ? r : *ret ? 0 : 1;
}

int weft__permission_read(weft_req *req, const weft_hub *hub, const char *said, weft_task_permission *ret) {
    const weft_hub_host *host = hub->host;
    *ret = WEFT_TASK_AS_CONFIGURED;
    if (!said)
        return 0;
    for (int i = WEFT_TASK_ASKS; i <= WEFT_TASK_MAY_ALL; i++)
        if (strcmp(said, weft__task_permissions[i]) == 0)
            *ret = (weft_task_permission) i;
    int r = 0;
    if (*ret == WEFT_TASK_AS_CONFIGURED)
        r = weft__reply_invalid(req, "/permission", "permission must be ask, read, edit or all");
    else if (*ret > WEFT_TASK_ASKS && host && host->is_agent && host->is_agent(host->ctx, weft_req_identity(req)))
        r = weft__reply_error(req, 403, "agentMayNot", "An agent cannot allow what another agent does");
    else
        return 0;
    return r < 0 ? r : 1;
}

const char *weft__session_of_gated(const weft_hub *hub, const char *id) {
    const weft_gated *gated = hub->gated && id ? weft__gated_find(hub->gated, id) : NULL;
    return gated && *gated->session ? gated->session : NULL;
}
