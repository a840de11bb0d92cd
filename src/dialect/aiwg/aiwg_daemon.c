/* The daemon itself, as AIWG's clients ask for it: is it there, how is it, stop it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "aiwg.h"
#include "buf.h"
#include "reply.h"
#include "utf8.h"
#include "write.h"

/* Of a prompt, in a status: characters. */
#define STATUS_PROMPT 80

int weft__aiwg_ping(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    char now[WEFT_STAMP];
    (void) params;
    return weft_reply(
        req, WEFT_OBJ({"pong", weft_bool(true)}, {"timestamp", weft_str(weft__stamp(weft__engine_now(hub->engine), now))}));
}

struct stop {
    bool force;
};
const weft_param weft__aiwg_stop_params[] = {
    {"force", WEFT_PARAM_bool, offsetof(struct stop, force), WEFT_NULLABLE,
     "end running tasks at once instead of waiting for them"},
    WEFT_END(struct stop),
};

int weft__aiwg_stop(weft_req *req, const weft_json *params, void *ctx) {
    weft_hub *hub = ctx;
    const struct stop *in = weft_req_params(req);
    (void) params;
    weft__reply_val(weft__req_keep(req), WEFT_OBJ({"stopping", weft_bool(true)}));
    hub->host->stop(hub->host->ctx, in->force);
    return 0;
}

/* ---- status ---- */

static weft_val first_characters(const char *text, size_t characters) {
    return weft_strn(text, weft__utf8_first(text, characters));
}

static int write_running(weft_buf *out, const weft_alloc *alloc, const weft_task *task) {
    char started[WEFT_STAMP];
    weft_val value = WEFT_OBJ({"id", weft_str(task->id)}, {"prompt", first_characters(task->prompt, STATUS_PROMPT)},
                              {"agent", weft_str(task->agent)}, {"startedAt", weft__stamp_val(task->started_ms, started)},
                              {"pid", task->pid ? weft_int(task->pid) : weft_null()});
    return weft__write_val(out, alloc, &value);
}

static int write_waiting(weft_buf *out, const weft_alloc *alloc, const weft_task *task) {
    weft_val value = WEFT_OBJ({"id", weft_str(task->id)}, {"prompt", first_characters(task->prompt, STATUS_PROMPT)},
                              {"agent", weft_str(task->agent)}, {"priority", weft_int(task->priority)});
    return weft__write_val(out, alloc, &value);
}

/* Those that run, the oldest first. */
static int add_running(weft_buf *out, const weft_hub *hub) {
    size_t count = (size_t) weft__task_counts(hub->engine).of[WEFT_TASK_RUNNING], found = 0;
    const weft_task **tasks = weft__alloc(hub->alloc, (count + 1) * sizeof(const weft_task *));
    int r = tasks ? 0 : -ENOMEM;
    for (const weft_task *task = weft__task_newest(hub->engine); r >= 0 && task && found < count;
         task = weft__task_older(hub->engine, task))
        if (task->state == WEFT_TASK_RUNNING)
            tasks[found++] = task;
    for (size_t i = found; r >= 0 && i-- > 0;) {
        r = i + 1 < found ? weft__buf_put(out, hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_running(out, hub->alloc, tasks[i]);
    }
    weft__free(hub->alloc, (void *) tasks);
    return r;
}

/* Those that wait, in the order in which they will run. */
static int add_waiting(weft_buf *out, const weft_hub *hub) {
    const weft_task *task;
    int r = 0;
    for (size_t i = 0; r >= 0 && (task = weft__task_waiting(hub->engine, i)); i++) {
        r = i ? weft__buf_put(out, hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_waiting(out, hub->alloc, task);
    }
    return r;
}

static int write_tasks(weft_buf *out, const weft_hub *hub) {
    static const char begin[] = "{\"running\":[", middle[] = "],\"queued\":[", end[] = "]}";
    int r = weft__buf_put(out, hub->alloc, begin, sizeof begin - 1);
    if (r >= 0)
        r = add_running(out, hub);
    if (r >= 0)
        r = weft__buf_put(out, hub->alloc, middle, sizeof middle - 1);
    if (r >= 0)
        r = add_waiting(out, hub);
    return r < 0 ? r : weft__buf_put(out, hub->alloc, end, sizeof end - 1);
}

static weft_val trouble_text(int r) {
    return r < 0 ? weft_str(weft_strerror(r)) : weft_none();
}

static weft_val raw_or(const char *text, const char *otherwise) {
    return text ? weft_raw(text, strlen(text)) : weft_raw(otherwise, strlen(otherwise));
}

/* Texts that somebody else wrote, owned here until the answer is out. */
struct pieces {
    char *automation, *about;
    size_t automation_len, about_len;
    weft_buf tasks;
};

static int collect_status(const weft_hub *hub, struct pieces *ret) {
    const weft_hub_host *host = hub->host;
    int r = write_tasks(&ret->tasks, hub);
    if (r >= 0 && hub->automation && weft__automation_health(hub->automation).failed >= 0)
        r = weft__automation_status(hub->automation, &ret->automation, &ret->automation_len);
    if (r >= 0 && host->about)
        r = host->about(host->ctx, &ret->about, &ret->about_len);
    return r;
}

/* AIWG names them; where nobody has named any, it is said how many folders there are. */
static weft_val watched_paths(const weft_automation_health *health) {
    if (!health->watching)
        return weft_none();
    return health->watch_list ? raw_or(health->watch_list, "[]") : weft_uint(health->watch_paths);
}

static int say_status(weft_req *req, const weft_hub *hub, const struct pieces *pieces) {
    static const char none[] = "{\"enabled\":false,\"ruleCount\":0,\"rules\":[],\"recentExecutions\":[]}";
    const weft_hub_host *host = hub->host;
    weft_automation_health health = {.failed = hub->automation_failed};
    weft_task_counts counts = weft__task_counts(hub->engine);
    size_t most = weft__engine_limits(hub->engine)->max_running;
    int storing = weft__engine_trouble(hub->engine);
    uint64_t skipped = weft__engine_skipped(hub->engine);
    if (hub->automation)
        health = weft__automation_health(hub->automation);
    bool well = storing >= 0 && health.failed >= 0 && health.watch_failed >= 0 && health.schedule_failed >= 0;
    weft_val supervisor =
        WEFT_OBJ({"running", weft_uint(counts.of[WEFT_TASK_RUNNING])}, {"queued", weft_uint(counts.of[WEFT_TASK_QUEUED])},
                 {"maxConcurrency", weft_uint(most == SIZE_MAX ? 0 : most)},
                 {"tasks", weft_raw(weft__buf_head(&pieces->tasks), weft__buf_len(&pieces->tasks))});
    weft_val watcher =
        WEFT_OBJ({"enabled", weft_bool(health.watching)}, {"paths", watched_paths(&health)},
                 {"events_received", health.watching ? weft_uint(health.watch_events) : weft_none()},
                 {"polling", health.polling ? weft_bool(true) : weft_none()}, {"error", trouble_text(health.watch_failed)});
    weft_val scheduler = WEFT_OBJ({"enabled", weft_bool(health.scheduling)},
                                  {"jobs", health.scheduling ? weft_uint(health.jobs) : weft_none()},
                                  {"last_fires", health.scheduling ? raw_or(health.last_fires, "{}") : weft_none()},
                                  {"error", trouble_text(health.schedule_failed)});
    weft_val automation = pieces->automation ? weft_raw(pieces->automation, pieces->automation_len) : raw_or(NULL, none);
    weft_val subsystems =
        WEFT_OBJ({"ipc", WEFT_OBJ({"clients", weft_uint(hub->server ? weft_server_clients(hub->server) : 0)})},
                 {"supervisor", supervisor}, {"automation", automation}, {"file_watcher", watcher}, {"scheduler", scheduler},
                 {"messaging", WEFT_OBJ({"enabled", weft_bool(false)})},
                 {"store", storing < 0 || skipped ? WEFT_OBJ({"error", trouble_text(storing)},
                                                             {"skipped_events", skipped ? weft_uint(skipped) : weft_none()})
                                                  : weft_none()});
    return weft_reply(req, WEFT_OBJ({"pid", weft_int(getpid())}, {"uptime_seconds", weft_int(host->uptime_s(host->ctx))},
                                    {"started_at", weft_str(host->started_at)},
                                    {"health", weft_str(well ? "healthy" : "degraded")}, {"subsystems", subsystems},
                                    {"weft", pieces->about ? weft_raw(pieces->about, pieces->about_len) : weft_none()}));
}

int weft__aiwg_status(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    struct pieces pieces = {0};
    (void) params;
    int r = collect_status(hub, &pieces);
    if (r >= 0)
        r = say_status(req, hub, &pieces);
    weft_text_free(pieces.automation, weft__engine_alloc(hub->engine));
    weft_text_free(pieces.about, hub->alloc);
    weft__buf_done(&pieces.tasks, hub->alloc);
    return r;
}
