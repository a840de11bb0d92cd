/* Gated tasks: sendTask, cancelTask, awaitTask, and what the hub knows of them. Gates are named, never described: what runs
 * is the configuration's. */
#include <errno.h>
#include <string.h>

#include "reply.h"
#include "wiggum.h"
#include "write.h"

#define LIST_MOST 200
#define LIST_USUAL 50

/* ---- errors ---- */

static const struct {
    const char *reason;
    int code;
} codes[] = {
    {"gateFailed", WIGGUM_GATE_FAILED},
    {"permissionDenied", WIGGUM_PERMISSION_DENIED},
    {"cancelled", WIGGUM_TASK_CANCELLED},
    {"contextOverflow", WIGGUM_CONTEXT_OVERFLOW},
};

int weft__wiggum_code(const char *reason) {
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(codes[i].reason, reason) == 0)
            return codes[i].code;
    return WEFT_INTERNAL_ERROR;
}

/* Nobody can act on an empty list: where nothing was recognised, what was printed is the finding. */
int weft__wiggum_findings(const weft_gate_result *result, const weft_alloc *alloc, weft_buf *out) {
    if (result->diagnostics && strcmp(result->diagnostics, "[]") != 0)
        return weft__buf_put(out, alloc, result->diagnostics, strlen(result->diagnostics));
    const char *text = result->why && *result->why ? result->why : result->output ? result->output : "";
    weft_val one = WEFT_OBJ({"severity", weft_str("error")}, {"message", weft_str(text)});
    weft_val list = weft_arr(&one, 1);
    return weft__write_val(out, alloc, &list);
}

/* ---- sending ---- */

struct send_params {
    const char *prompt, *agent, *permission, *isolation;
    weft_json gates;
    int64_t maxIterations;
    bool withChanges;
};
const weft_param weft__wiggum_send_params[] = {
    {"prompt", WEFT_PARAM_str, offsetof(struct send_params, prompt), WEFT_REQUIRED | WEFT_NONEMPTY,
     "what the agent should do"},
    {"gates", WEFT_PARAM_arr, offsetof(struct send_params, gates), WEFT_REQUIRED | WEFT_NONEMPTY,
     "names of tasks.gates that must pass"},
    {"maxIterations", WEFT_PARAM_int, offsetof(struct send_params, maxIterations), WEFT_NULLABLE,
     "how often the agent may try; 10 when absent, at most 100"},
    {"agent", WEFT_PARAM_str, offsetof(struct send_params, agent), WEFT_NULLABLE | WEFT_NONEMPTY,
     "the agent; the default agent when absent"},
    {"permission", WEFT_PARAM_str, offsetof(struct send_params, permission), WEFT_NULLABLE, WEFT_PERMISSION_HELP},
    {"isolation", WEFT_PARAM_str, offsetof(struct send_params, isolation), WEFT_NULLABLE, WEFT_ISOLATION_HELP},
    {"withChanges", WEFT_PARAM_bool, offsetof(struct send_params, withChanges), WEFT_NULLABLE, WEFT_WITH_CHANGES_HELP},
    WEFT_END(struct send_params),
};

static void on_task_sent(void *ctx, int r, const weft_gated *gated) {
    weft_req *req = ctx;
    if (r < 0)
        weft__reply_failure(req, r == -ECANCELED ? -ESHUTDOWN : r);
    else
        weft__reply_val(req, WEFT_OBJ({"taskId", weft_str(gated->id)}));
}

/* The names that there are, so that whoever mistyped one sees it. */
static int refuse_gate(weft_req *req, const weft_hub *hub, const char *name, size_t at) {
    char path[32], known[256] = "";
    const weft_json *all = hub->gates ? weft__gates_configured(hub->gates) : NULL;
    size_t len = 0;
    snprintf(path, sizeof path, "/gates/%zu", at);
    for (weft_iter it = all ? weft_iterate(all) : (weft_iter){0}; all && weft_next(&it);) {
        weft_bytes text;
        if (weft_bytes_of(&it.name, &text) < 0 || len + text.len + 3 > sizeof known)
            break;
        len += (size_t) snprintf(known + len, sizeof known - len, "%s%.*s", len ? ", " : "", (int) text.len, text.data);
    }
    if (!len)
        return weft__reply_invalid(req, path, "there is no gate \"%.64s\": tasks.gates has none", name);
    return weft__reply_invalid(req, path, "there is no gate \"%.64s\"; there are %s", name, known);
}

/* An agent cannot mend that, so no turn is spent on it. */
static int refuse_program(weft_req *req, const weft_hub *hub, const char *name, size_t at) {
    char path[32], program[256] = "", message[512];
    int r = hub->gates ? weft__gates_check(hub->gates, name, weft__engine_folder(hub->engine), program, sizeof program)
                       : -ENOENT;
    snprintf(path, sizeof path, "/gates/%zu", at);
    snprintf(message, sizeof message, "The gate \"%.64s\" cannot run: %s \"%s\"%s", name,
             r == -EACCES ? "the program" : "there is no program", program,
             r == -EACCES           ? " may not be run"
             : strchr(program, '/') ? ""
                                    : " in the PATH of the hub");
    return req ? weft_fail(req, WEFT_INVALID_PARAMS, message,
                           WEFT_OBJ({"reason", weft_str("gateUnavailable")}, {"path", weft_str(path)},
                                    {"gate", weft_str(name)}, {"program", weft_str(program)}))
               : 0;
}

static int refuse_send(weft_req *req, const weft_hub *hub, const weft_gated_spec *spec, int r, size_t gate) {
    switch (r) {
    case -ESRCH:
        return refuse_gate(req, hub, spec->gates[gate], gate);
    case -ENOEXEC:
        return refuse_program(req, hub, spec->gates[gate], gate);
    case -ENOENT:
        return weft__reply_no_agent(req, hub, WEFT_INVALID_PARAMS, "invalidParams", "/agent",
                                    spec->agent ? spec->agent : "");
    case -EINVAL:
        return spec->max_iterations < 0 || spec->max_iterations > WEFT_GATED_ITERATIONS
                   ? weft__reply_invalid(req, "/maxIterations", "maxIterations must be from 1 to %d", WEFT_GATED_ITERATIONS)
                   : weft__reply_invalid(req, "/gates", "gates must be 1 to %d different names", WEFT_GATED_GATES);
    case -EMSGSIZE:
        return weft__reply_invalid(req, "/prompt", "the prompt of a gated task must not be longer than %zu bytes",
                                   WEFT_GATED_PROMPT);
    case -EOVERFLOW:
        return weft__reply_error(req, WIGGUM_CONTEXT_OVERFLOW, "contextOverflow",
                                 "The prompt is longer than the agent's context_limit");
    case -EUSERS:
        return weft__reply_error(req, 429, "rateLimited", "%d gated tasks run already", WEFT_GATED_RUNNING);
    default:
        return weft__reply_failure(weft__req_keep(req), r);
    }
}

/* 1: it was refused. */
static int read_gates(weft_req *req, const weft_json *list, const char *ret[WEFT_GATED_GATES], size_t *ret_count) {
    size_t n = 0;
    if (weft_count(list) > WEFT_GATED_GATES)
        return weft__reply_invalid(req, "/gates", "there must not be more than %d gates", WEFT_GATED_GATES), 1;
    for (weft_iter it = weft_iterate(list); weft_next(&it); n++)
        if (!(ret[n] = weft_typeof(&it.value) == WEFT_STRING ? weft_str_of(&it.value, NULL) : NULL) || !*ret[n])
            return weft__reply_invalid(req, "/gates", "gates must be names"), 1;
    *ret_count = n;
    return 0;
}

int weft__wiggum_send(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct send_params *in = weft_req_params(req);
    const char *gates[WEFT_GATED_GATES];
    char who[WEFT_WHO], key[WEFT_KEY];
    size_t gate = 0;
    weft_gated_spec spec = {.prompt = in->prompt,
                            .agent = in->agent,
                            .gates = gates,
                            .max_iterations = in->maxIterations,
                            .by = weft__who(weft_req_identity(req), who)};
    (void) params;
    int r = read_gates(req, &in->gates, gates, &spec.gate_count);
    if (r == 0)
        r = weft__permission_read(req, hub, in->permission, &spec.permission);
    if (r == 0)
        r = weft__isolation_read(req, in->isolation, in->withChanges, &spec.isolation);
    if (r == 0)
        r = weft__idempotency_key(req, key);
    if (r != 0)
        return r < 0 ? r : 0;
    spec.key = *key ? key : NULL;
    if (!hub->gated)
        return weft__reply_failure(weft__req_keep(req), -ESHUTDOWN);
    r = weft__gated_send(hub->gated, &spec, on_task_sent, weft__req_keep(req), &gate);
    if (r == -EALREADY) {
        on_task_sent(weft__req_keep(req), 0, weft__gated_of_key(hub->gated, key));
        return 0;
    }
    return r < 0 ? refuse_send(weft__req_keep(req), hub, &spec, r, gate) : 0;
}

/* ---- one of them ---- */

struct id_params {
    const char *taskId;
};
const weft_param weft__wiggum_id_params[] = {
    {"taskId", WEFT_PARAM_str, offsetof(struct id_params, taskId), WEFT_REQUIRED | WEFT_NONEMPTY, "as sendTask answered it"},
    WEFT_END(struct id_params),
};

static int refuse_unknown(weft_req *req, const char *id) {
    return weft__reply_error(req, 404, "gatedNotFound", "There is no gated task %.64s", id);
}

static void on_task_cancelled(void *ctx, int r, const weft_gated *gated) {
    weft_req *req = ctx;
    if (r < 0)
        weft__reply_failure(req, r == -ECANCELED ? -ESHUTDOWN : r);
    else
        weft__reply_val(req, WEFT_OBJ({"taskId", weft_str(gated->id)},
                                      {"cancelled", weft_bool(gated->state == WEFT_GATED_STATE_CANCELLED)},
                                      {"state", weft_str(weft__gated_states[gated->state])}));
}

int weft__wiggum_cancel(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct id_params *in = weft_req_params(req);
    char who[WEFT_WHO];
    (void) params;
    int r = hub->gated ? weft__gated_cancel(hub->gated, in->taskId, weft__who(weft_req_identity(req), who),
                                            on_task_cancelled, weft__req_keep(req))
                       : -ENOENT;
    if (r == -ENOENT)
        return refuse_unknown(req, in->taskId);
    if (r == -EALREADY) {
        on_task_cancelled(weft__req_keep(req), 0, weft__gated_find(hub->gated, in->taskId));
        return 0;
    }
    return r < 0 ? weft__reply_failure(weft__req_keep(req), r) : 0;
}

/* ---- how it ended ---- */

static int first_failed(const weft_gated *gated) {
    for (size_t i = 0; gated->failed_gate && i < gated->gate_count; i++)
        if (strcmp(gated->gates[i], gated->failed_gate) == 0)
            return (int) i;
    return -1;
}

static void answer_failed(weft_req *req, const weft_gated *gated) {
    int gate = first_failed(gated);
    weft_buf findings = {0};
    int r = gate >= 0 && gated->results[gate].known ? weft__wiggum_findings(&gated->results[gate], NULL, &findings) : 0;
    bool cancelled = gated->state == WEFT_GATED_STATE_CANCELLED;
    if (r < 0)
        weft__reply_error(req, WEFT_INTERNAL_ERROR, "outOfMemory", "Internal error");
    else if (req)
        weft_fail(
            req, weft__wiggum_code(gated->reason),
            cancelled       ? "The task was cancelled"
            : *gated->error ? gated->error
                            : "The task failed",
            WEFT_OBJ({"reason", weft_str(cancelled ? "taskCancelled" : gated->reason)}, {"taskId", weft_str(gated->id)},
                     {"iterations", weft_int(gated->iteration)}, {"gate", weft_str_or_none(gated->failed_gate)},
                     {"findings", weft__buf_len(&findings) ? weft_raw(weft__buf_head(&findings), weft__buf_len(&findings))
                                                           : weft_none()}));
    weft__buf_done(&findings, NULL);
}

static void on_task_ended(void *ctx, int r, const weft_gated *gated) {
    weft_req *req = ctx;
    if (r < 0)
        weft__reply_failure(req, r == -ECANCELED ? -ESHUTDOWN : r);
    else if (gated->state == WEFT_GATED_STATE_COMPLETED)
        weft__reply_val(req, WEFT_OBJ({"taskId", weft_str(gated->id)}, {"state", weft_str("completed")},
                                      {"iterations", weft_int(gated->iteration)}, {"sessionId", weft_str(gated->session)}));
    else
        answer_failed(req, gated);
}

int weft__wiggum_await(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct id_params *in = weft_req_params(req);
    (void) params;
    int r = hub->gated ? weft__gated_await(hub->gated, in->taskId, on_task_ended, weft__req_keep(req)) : -ENOENT;
    if (r == -ENOENT)
        return refuse_unknown(req, in->taskId);
    if (r == -EALREADY) {
        on_task_ended(weft__req_keep(req), 0, weft__gated_find(hub->gated, in->taskId));
        return 0;
    }
    return r < 0 ? weft__reply_failure(weft__req_keep(req), r) : 0;
}

/* ---- looking ---- */

static int write_turns(weft_buf *out, const weft_alloc *alloc, const weft_gated *gated) {
    int r = weft__buf_put(out, alloc, "[", 1);
    for (int64_t i = 0; r >= 0 && i < gated->iteration; i++) {
        weft_val passed[WEFT_GATED_GATES], failed[WEFT_GATED_GATES];
        size_t good = 0, bad = 0;
        for (size_t n = 0; n < gated->gate_count; n++)
            if (gated->turns[i].ran & 1u << n) {
                if (gated->turns[i].passed & 1u << n)
                    passed[good++] = weft_str(gated->gates[n]);
                else
                    failed[bad++] = weft_str(gated->gates[n]);
            }
        weft_val value = WEFT_OBJ({"iteration", weft_int(i + 1)}, {"taskId", weft__text_or_none(gated->turns[i].task)},
                                  {"passed", weft_arr(passed, good)}, {"failed", weft_arr(failed, bad)});
        r = i ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__write_val(out, alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

static int write_gate(weft_buf *out, const weft_alloc *alloc, const weft_gated *gated, size_t i) {
    const weft_gate_result *result = &gated->results[i];
    weft_buf findings = {0};
    int r = result->known && !result->passed ? weft__wiggum_findings(result, alloc, &findings) : 0;
    weft_val value = WEFT_OBJ(
        {"gate", weft_str(gated->gates[i])}, {"passed", result->known ? weft_bool(result->passed) : weft_null()},
        {"iteration", result->known ? weft_int(result->iteration) : weft_none()},
        {"exitCode", result->known && result->exit_code >= 0 ? weft_int(result->exit_code) : weft_none()},
        {"durationMs", result->known ? weft_int(result->ms) : weft_none()}, {"why", weft__text_or_none(result->why)},
        {"findings", weft__buf_len(&findings) ? weft_raw(weft__buf_head(&findings), weft__buf_len(&findings)) : weft_none()},
        {"output", result->known && !result->passed ? weft_str(result->output) : weft_none()});
    if (r >= 0)
        r = weft__write_val(out, alloc, &value);
    weft__buf_done(&findings, alloc);
    return r;
}

static int write_gates(weft_buf *out, const weft_alloc *alloc, const weft_gated *gated) {
    int r = weft__buf_put(out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < gated->gate_count; i++) {
        r = i ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_gate(out, alloc, gated, i);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

/* whole: with its iterations, and what its gates said. */
static int write_gated(weft_buf *out, const weft_alloc *alloc, const weft_gated *gated, bool whole) {
    char created[WEFT_STAMP], ended[WEFT_STAMP];
    weft_buf turns = {0}, gates = {0};
    weft_val names[WEFT_GATED_GATES];
    int r = whole ? write_turns(&turns, alloc, gated) : 0;
    if (r >= 0 && whole)
        r = write_gates(&gates, alloc, gated);
    for (size_t i = 0; i < gated->gate_count; i++)
        names[i] = weft_str(gated->gates[i]);
    weft_val value = WEFT_OBJ(
        {"taskId", weft_str(gated->id)}, {"state", weft_str(weft__gated_states[gated->state])},
        {"stopping", gated->stopping ? weft_bool(true) : weft_none()}, {"prompt", weft_str(gated->prompt)},
        {"agent", weft_str_or_none(gated->agent)}, {"gates", weft_arr(names, gated->gate_count)},
        {"iteration", weft_int(gated->iteration)}, {"maxIterations", weft_int(gated->max_iterations)},
        {"phase", gated->state == WEFT_GATED_STATE_RUNNING ? weft_str(gated->gating ? "gates" : "agent") : weft_none()},
        {"sessionId", weft__text_or_none(gated->session)}, {"createdBy", weft__text_or_none(gated->by)},
        {"createdAt", weft__stamp_val(gated->created_ms, created)}, {"endedAt", weft__stamp_val(gated->ended_ms, ended)},
        {"reason", weft__text_or_none(gated->reason)}, {"error", weft__text_or_none(gated->error)},
        {"failedGate", weft_str_or_none(gated->failed_gate)}, {"seen", gated->seen ? weft_bool(true) : weft_none()},
        {"iterations", whole ? weft_raw(weft__buf_head(&turns), weft__buf_len(&turns)) : weft_none()},
        {"results", whole ? weft_raw(weft__buf_head(&gates), weft__buf_len(&gates)) : weft_none()});
    if (r >= 0)
        r = weft__write_val(out, alloc, &value);
    weft__buf_done(&turns, alloc);
    weft__buf_done(&gates, alloc);
    return r;
}

int weft__wiggum_get(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct id_params *in = weft_req_params(req);
    const weft_gated *gated = hub->gated ? weft__gated_find(hub->gated, in->taskId) : NULL;
    weft_buf out = {0};
    (void) params;
    if (!gated)
        return refuse_unknown(req, in->taskId);
    int r = write_gated(&out, hub->alloc, gated, true);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"task", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, hub->alloc);
    return r;
}

struct list_params {
    int64_t limit;
};
const weft_param weft__wiggum_list_params[] = {
    {"limit", WEFT_PARAM_int, offsetof(struct list_params, limit), WEFT_NULLABLE, "how many; 50 when absent"},
    WEFT_END(struct list_params),
};

/* The gates that sendTask may name. */
static int write_configured(weft_buf *out, const weft_hub *hub) {
    const weft_json *all = hub->gates ? weft__gates_configured(hub->gates) : NULL;
    bool first = true;
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (weft_iter it = all ? weft_iterate(all) : (weft_iter){0}; r >= 0 && all && weft_next(&it); first = false) {
        weft_val name = weft_copy(&it.name);
        r = first ? 0 : weft__buf_put(out, hub->alloc, ",", 1);
        if (r >= 0)
            r = weft__write_val(out, hub->alloc, &name);
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

int weft__wiggum_list(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct list_params *in = weft_req_params(req);
    int64_t left = in->limit ? in->limit : LIST_USUAL;
    weft_buf out = {0}, configured = {0};
    bool first = true;
    (void) params;
    if (left < 1 || left > LIST_MOST)
        return weft__reply_invalid(req, "/limit", "limit must be from 1 to %d", LIST_MOST);
    int r = weft__buf_put(&out, hub->alloc, "[", 1);
    for (const weft_gated *is = hub->gated ? weft__gated_newest(hub->gated) : NULL; r >= 0 && is && left-- > 0;
         is = weft__gated_older(hub->gated, is)) {
        r = first ? 0 : weft__buf_put(&out, hub->alloc, ",", 1);
        first = false;
        if (r >= 0)
            r = write_gated(&out, hub->alloc, is, false);
    }
    if (r >= 0)
        r = weft__buf_put(&out, hub->alloc, "]", 1);
    if (r >= 0)
        r = write_configured(&configured, hub);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"tasks", weft_raw(weft__buf_head(&out), weft__buf_len(&out))},
                                     {"gates", weft_raw(weft__buf_head(&configured), weft__buf_len(&configured))}));
    weft__buf_done(&configured, hub->alloc);
    weft__buf_done(&out, hub->alloc);
    return r;
}
