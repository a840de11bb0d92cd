/* AIWG's supervisor, as its operators ask for it (AIWG 2026.5.1): loops, the queue, the circuit breaker, the budget, the
 * machine. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "aiwg.h"
#include "aiwg_actions.h"
#include "aiwg_loops.h"
#include "aiwg_machine.h"
#include "buf.h"
#include "reply.h"

#define HISTORY_DEFAULT 20

static int refuse_ops(weft_req *req) {
    return weft__reply_error(req, AIWG_UNAVAILABLE, "subsystemUnavailable", "The supervisor is not running");
}

/* What was written, or why it could not be. The text is freed. */
static int reply_text(weft_req *req, const weft_hub *hub, weft_buf *text, int r) {
    if (r >= 0)
        r = weft_reply(req, weft_raw(weft__buf_head(text), weft__buf_len(text)));
    weft__buf_done(text, hub->alloc);
    return r;
}

struct listing {
    const char *filter;
};
const weft_param weft__aiwg_processes_params[] = {
    {"filter", WEFT_PARAM_str, offsetof(struct listing, filter), WEFT_NULLABLE, "all, running, queued or failed"},
    WEFT_END(struct listing),
};

int weft__aiwg_processes(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct listing *in = weft_req_params(req);
    const char *filter = in->filter ? in->filter : "all";
    unsigned kinds = strcmp(filter, "running") == 0  ? WEFT_AIWG_RUNNING
                     : strcmp(filter, "queued") == 0 ? WEFT_AIWG_QUEUED
                     : strcmp(filter, "failed") == 0 ? WEFT_AIWG_FAILED
                                                     : WEFT_AIWG_RUNNING | WEFT_AIWG_QUEUED | WEFT_AIWG_FAILED;
    weft_buf text = {0};
    (void) params;
    if (!hub->loops)
        return refuse_ops(req);
    return reply_text(req, hub, &text, weft__aiwg_loops_write(hub->loops, &text, kinds, true));
}

struct killing {
    const char *loopId, *signal;
};
const weft_param weft__aiwg_kill_params[] = {
    {"loopId", WEFT_PARAM_str, offsetof(struct killing, loopId), WEFT_REQUIRED | WEFT_NONEMPTY, "which loop"},
    {"signal", WEFT_PARAM_str, offsetof(struct killing, signal), WEFT_NULLABLE | WEFT_NONEMPTY,
     "SIGTERM (when absent), SIGKILL or SIGINT"},
    WEFT_END(struct killing),
};

static int signal_number(const char *name) {
    return strcmp(name, "SIGTERM") == 0   ? SIGTERM
           : strcmp(name, "SIGKILL") == 0 ? SIGKILL
           : strcmp(name, "SIGINT") == 0  ? SIGINT
                                          : 0;
}

int weft__aiwg_kill(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct killing *in = weft_req_params(req);
    const char *name = in->signal ? in->signal : "SIGTERM";
    int number = signal_number(name);
    (void) params;
    if (!hub->loops)
        return refuse_ops(req);
    if (!number)
        return weft__reply_error(req, WEFT_INVALID_PARAMS, "invalidParams",
                                 "Invalid signal: %.64s. Must be one of: SIGTERM, SIGKILL, SIGINT", name);
    bool killed = weft__aiwg_loops_kill(hub->loops, in->loopId, number);
    return weft_reply(req,
                      WEFT_OBJ({"killed", weft_bool(killed)}, {"loopId", weft_str(in->loopId)}, {"signal", weft_str(name)}));
}

int weft__aiwg_resources(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    weft_aiwg_machine is;
    weft_aiwg_loops_state state;
    (void) params;
    if (!hub->loops)
        return refuse_ops(req);
    weft__aiwg_loops_state(hub->loops, &state);
    weft__aiwg_machine(&is);
    return weft_reply(
        req, WEFT_OBJ({"cpu", WEFT_OBJ({"percent", weft_num(is.cpu_percent)}, {"cores", weft_int(is.cores)})},
                      {"memory", WEFT_OBJ({"totalMb", weft_int(is.total_mb)}, {"usedMb", weft_int(is.total_mb - is.free_mb)},
                                          {"freeMb", weft_int(is.free_mb)}, {"percentUsed", weft_num(is.memory_percent)},
                                          {"heapUsedMb", weft_num(is.own_mb)})},
                      {"loadAvg",
                       WEFT_OBJ({"1m", weft_num(is.load[0])}, {"5m", weft_num(is.load[1])}, {"15m", weft_num(is.load[2])})},
                      {"queueDepth", weft_uint(state.queued)}, {"uptime", weft_int(hub->host->uptime_s(hub->host->ctx))}));
}

int weft__aiwg_circuit_status(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    weft_buf text = {0};
    (void) params;
    if (!hub->loops)
        return refuse_ops(req);
    return reply_text(req, hub, &text, weft__aiwg_loops_write_circuit(hub->loops, &text));
}

int weft__aiwg_queue(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    weft_buf text = {0};
    (void) params;
    if (!hub->loops)
        return refuse_ops(req);
    return reply_text(req, hub, &text, weft__aiwg_loops_write_queue(hub->loops, &text));
}

struct history {
    int64_t limit;
};
const struct weft_aiwg_history_defaults { int64_t limit; } weft__aiwg_history_defaults = {HISTORY_DEFAULT};
const weft_param weft__aiwg_history_params[] = {
    {"limit", WEFT_PARAM_int, offsetof(struct history, limit), WEFT_NULLABLE, "how many; 20 when absent"},
    WEFT_END(struct history),
};

int weft__aiwg_history(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct history *in = weft_req_params(req);
    weft_buf text = {0};
    (void) params;
    if (!hub->loops)
        return refuse_ops(req);
    return reply_text(req, hub, &text, weft__aiwg_loops_write_history(hub->loops, &text, in->limit));
}

int weft__aiwg_schedule(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    weft_buf jobs = {0};
    weft_val names[8];
    size_t count = 0;
    (void) params;
    if (!hub->loops)
        return refuse_ops(req);
    for (const char *name; count < sizeof names / sizeof names[0] && (name = weft__aiwg_action_name(count)); count++)
        names[count] = weft_str(name);
    bool on = hub->automation && weft__automation_health(hub->automation).scheduling;
    int r = weft__aiwg_loops_write_jobs(hub->loops, &jobs);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"started", weft_bool(on)}, {"registeredActions", weft_arr(names, count)},
                                     {"jobHistory", weft_raw(weft__buf_head(&jobs), weft__buf_len(&jobs))}));
    weft__buf_done(&jobs, hub->alloc);
    return r;
}

static double rounded(double value, double parts) {
    return round(value * parts) / parts;
}

int weft__aiwg_budget(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    weft_aiwg_loops_state state;
    (void) params;
    if (!hub->loops)
        return refuse_ops(req);
    weft__aiwg_loops_state(hub->loops, &state);
    double left = state.budget > state.spent ? state.budget - state.spent : 0;
    bool limited = state.budget > 0;
    return weft_reply(req, WEFT_OBJ({"dailyLimit", weft_num(state.budget)}, {"spent", weft_num(rounded(state.spent, 10000))},
                                    {"remaining", limited ? weft_num(rounded(left, 10000)) : weft_str("unlimited")},
                                    {"percentUsed", weft_num(limited ? rounded(state.spent / state.budget * 100, 10) : 0)},
                                    {"currency", weft_str("USD")}));
}
