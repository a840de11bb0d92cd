/* Writing AIWG's state files, in the form its own daemon writes them. */
#include "aiwg_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "aiwg_loops.h"
#include "aiwg_tasks_file.h"
#include "alloc.h"
#include "buf.h"
#include "clock.h"
#include "loop.h"
#include "utf8.h"
#include "write.h"

#define BEAT_MS 30000
/* After a change of a task: others follow it. A new one is written sooner, so that after a crash AIWG's own daemon does not
 * give its number to another. */
#define TASKS_MS 500
#define NEW_TASK_MS 50
/* Of a prompt: bytes. The file is for a glance. */
#define PROMPT 80
/* Of tasks in each list; more are counted only. */
#define MAX_LISTED 100

struct weft_aiwg_state {
    const weft_hub *hub;
    char state[64], heartbeat[64], tasks[64];
    const char *socket, *web;
    int64_t beat_ms;
    weft_aiwg_put *put;
    weft_timer timer, tasks_timer;
    weft_event_listener listener;
    bool tasks_changed, tasks_soon;
    int r;
};

/* A UTF-8 text cut between characters. */
static weft_val prompt_beginning(const char *text) {
    return weft_strn(text, weft__utf8_fit(text, strlen(text), PROMPT));
}

static int put_running_task(weft_buf *out, const weft_alloc *alloc, const weft_task *task) {
    char started[WEFT_STAMP];
    weft_val value =
        WEFT_OBJ({"id", weft_str(task->id)}, {"prompt", prompt_beginning(task->prompt)}, {"agent", weft_str(task->agent)},
                 {"startedAt", weft_str(weft__stamp(task->started_ms, started))},
                 {"pid", task->pid ? weft_int(task->pid) : weft_null()});
    return weft__write_val(out, alloc, &value);
}

static int put_queued(weft_buf *out, const weft_alloc *alloc, const weft_task *task) {
    weft_val value = WEFT_OBJ({"id", weft_str(task->id)}, {"prompt", prompt_beginning(task->prompt)},
                              {"agent", weft_str(task->agent)}, {"priority", weft_int(task->priority)});
    return weft__write_val(out, alloc, &value);
}

static int put_comma(weft_buf *out, const weft_alloc *alloc) {
    return out->data[out->end - 1] == '[' ? 0 : weft__write_raw(out, alloc, ",", 1);
}

static int put_running_tasks(weft_buf *out, const weft_hub *hub) {
    const weft_task *task = weft__task_newest(hub->engine);
    uint64_t left = weft__task_counts(hub->engine).of[WEFT_TASK_RUNNING];
    int r = weft__write_raw(out, hub->alloc, "{\"running\":[", 12);
    for (size_t n = 0; r >= 0 && task && left > 0 && n < MAX_LISTED; task = weft__task_older(hub->engine, task)) {
        if (task->state != WEFT_TASK_RUNNING)
            continue;
        r = put_comma(out, hub->alloc);
        if (r >= 0)
            r = put_running_task(out, hub->alloc, task);
        left--;
        n++;
    }
    if (r >= 0)
        r = weft__write_raw(out, hub->alloc, "],\"queued\":[", 12);
    for (size_t n = 0; r >= 0 && n < MAX_LISTED && (task = weft__task_waiting(hub->engine, n)); n++) {
        r = put_comma(out, hub->alloc);
        if (r >= 0)
            r = put_queued(out, hub->alloc, task);
    }
    return r < 0 ? r : weft__write_raw(out, hub->alloc, "]}", 2);
}

static int64_t rule_count(const weft_hub *hub) {
    char *text;
    size_t len;
    weft_doc *doc = NULL;
    if (!hub->automation || weft__automation_status(hub->automation, &text, &len) < 0)
        return 0;
    int64_t count = weft_doc_parse(text, len, hub->alloc, &doc) < 0 ? 0 : weft_get_int(weft_doc_root(doc), "ruleCount", 0);
    weft_doc_free(doc);
    weft_text_free(text, hub->alloc);
    return count;
}

static int put_file(const weft_aiwg_state *self, const char *path, weft_val value) {
    const weft_alloc *alloc = self->hub->alloc;
    char *text;
    size_t len;
    int r = weft_to_text(value, alloc, &text, &len);
    if (r < 0)
        return r;
    r = self->put(path, text, len);
    weft_text_free(text, alloc);
    return r;
}

/* What the engine and the automation say about themselves, collected for one file. */
typedef struct state_facts {
    weft_automation_health health;
    weft_val stats[WEFT_TASK_STATES];
    uint64_t total;
    weft_val issues[4];
    size_t issue_count;
} state_facts;

static void collect_facts(const weft_hub *hub, state_facts *ret) {
    weft_task_counts counts = weft__task_counts(hub->engine);
    *ret = (state_facts){0};
    if (hub->automation)
        ret->health = weft__automation_health(hub->automation);
    const int failures[] = {weft__engine_trouble(hub->engine), ret->health.failed, ret->health.watch_failed,
                            ret->health.schedule_failed};
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        if (failures[i] < 0)
            ret->issues[ret->issue_count++] = weft_str(weft_strerror(failures[i]));
    for (size_t i = 0; i < WEFT_TASK_STATES; i++) {
        ret->stats[i] = weft_uint(counts.of[i]);
        ret->total += counts.of[i];
    }
}

/* AIWG's supervisor in a few words. */
typedef struct loops_texts {
    char concurrency[48], queue[48], budget[64];
    const char *circuit;
} loops_texts;

static void write_loops_texts(const weft_hub *hub, loops_texts *ret) {
    weft_aiwg_loops_state is;
    *ret = (loops_texts){.circuit = ""};
    if (!hub->loops)
        return;
    weft__aiwg_loops_state(hub->loops, &is);
    snprintf(ret->concurrency, sizeof ret->concurrency, "%zu/%lld", is.running, (long long) is.limits.max_running);
    snprintf(ret->queue, sizeof ret->queue, "%zu/%lld", is.queued, (long long) is.limits.max_queue);
    ret->circuit = is.circuit;
    if (is.budget > 0)
        snprintf(ret->budget, sizeof ret->budget, "$%.2f/$%.2f", is.spent, is.budget);
    else
        snprintf(ret->budget, sizeof ret->budget, "unlimited");
}

static int write_state(const weft_aiwg_state *self, const char *now, const weft_buf *tasks) {
    const weft_hub *hub = self->hub;
    const weft_hub_host *host = hub->host;
    size_t most = weft__engine_limits(hub->engine)->max_running;
    state_facts is;
    collect_facts(hub, &is);
    const char *fires = is.health.last_fires ? is.health.last_fires : "{}";
    weft_val ipc = WEFT_OBJ({"socket", weft_str(self->socket)},
                            {"clients", weft_uint(hub->server ? weft_server_clients(hub->server) : 0)});
    weft_val agents = WEFT_OBJ({"running", is.stats[WEFT_TASK_RUNNING]}, {"queued", is.stats[WEFT_TASK_QUEUED]},
                               {"max_concurrency", weft_uint(most == SIZE_MAX ? 0 : most)},
                               {"tasks", weft_raw(weft__buf_head(tasks), weft__buf_len(tasks))});
    weft_val task_stats = WEFT_OBJ({"total", weft_uint(is.total)}, {"queued", is.stats[WEFT_TASK_QUEUED]},
                                   {"running", is.stats[WEFT_TASK_RUNNING]}, {"completed", is.stats[WEFT_TASK_COMPLETED]},
                                   {"failed", is.stats[WEFT_TASK_FAILED]}, {"cancelled", is.stats[WEFT_TASK_CANCELLED]});
    const char *paths = is.health.watching ? is.health.watch_list : NULL;
    weft_val watcher =
        WEFT_OBJ({"enabled", weft_bool(is.health.watching)}, {"paths", paths ? weft_raw(paths, strlen(paths)) : weft_none()},
                 {"events_received", is.health.watching ? weft_uint(is.health.watch_events) : weft_none()});
    weft_val scheduler = WEFT_OBJ({"enabled", weft_bool(is.health.scheduling)},
                                  {"jobs", is.health.scheduling ? weft_uint(is.health.jobs) : weft_none()},
                                  {"last_fires", is.health.scheduling ? weft_raw(fires, strlen(fires)) : weft_none()});
    weft_val health = WEFT_OBJ({"status", weft_str(is.issue_count ? "degraded" : "healthy")}, {"last_check", weft_str(now)},
                               {"issues", weft_arr(is.issues, is.issue_count)});
    weft_val off = WEFT_OBJ({"enabled", weft_bool(false)});
    loops_texts loops;
    write_loops_texts(hub, &loops);
    return put_file(
        self, self->state,
        WEFT_OBJ(
            {"pid", weft_int(getpid())}, {"started_at", weft_str(host->started_at)}, {"last_heartbeat", weft_str(now)},
            {"uptime_seconds", weft_int(host->uptime_s(host->ctx))}, {"restart_count", weft_int(0)}, {"ipc", ipc},
            {"agents", agents}, {"task_stats", task_stats},
            {"monitors", WEFT_OBJ({"file_watcher", watcher}, {"webhook", off}, {"scheduler", scheduler})},
            {"automation", WEFT_OBJ({"enabled", weft_bool(is.health.enabled)}, {"rule_count", weft_int(rule_count(hub))})},
            {"daemon_supervisor",
             !hub->loops ? weft_none()
                         : WEFT_OBJ({"concurrency", weft_str(loops.concurrency)}, {"queue", weft_str(loops.queue)},
                                    {"circuit", weft_str(loops.circuit)}, {"budget", weft_str(loops.budget)})},
            {"web_server", self->web ? WEFT_OBJ({"url", weft_str(self->web)}) : weft_null()}, {"health", health}));
}

static int write_heartbeat(const weft_aiwg_state *self, const char *now) {
    const weft_hub_host *host = self->hub->host;
    return put_file(self, self->heartbeat,
                    WEFT_OBJ({"pid", weft_int(getpid())}, {"timestamp", weft_str(now)},
                             {"uptime_seconds", weft_int(host->uptime_s(host->ctx))}));
}

static void write_both(weft_aiwg_state *self) {
    char now[WEFT_STAMP];
    weft_buf tasks = {0};
    weft__clock_text(now);
    self->r = put_running_tasks(&tasks, self->hub);
    if (self->r >= 0)
        self->r = write_state(self, now, &tasks);
    if (self->r >= 0)
        self->r = write_heartbeat(self, now);
    weft__buf_done(&tasks, self->hub->alloc);
}

static void on_state_due(weft_timer *timer) {
    weft_aiwg_state *self = (weft_aiwg_state *) ((char *) timer - offsetof(weft_aiwg_state, timer));
    weft_loop *loop = weft__engine_loop(self->hub->engine);
    write_both(self);
    weft__timer_set(loop, timer, weft_loop_now(loop) + self->beat_ms);
}

/* ---- tasks.json ---- */

static void write_tasks_file(weft_aiwg_state *self) {
    weft_buf text = {0};
    self->tasks_changed = self->tasks_soon = false;
    int r = weft__aiwg_tasks_write(self->hub, &text);
    if (r >= 0)
        r = self->put(self->tasks, weft__buf_head(&text), weft__buf_len(&text));
    if (r < 0)
        self->r = r;
    weft__buf_done(&text, self->hub->alloc);
}

static void on_tasks_due(weft_timer *timer) {
    write_tasks_file(WEFT_CONTAINER(timer, weft_aiwg_state, tasks_timer));
}

static void on_task_changed(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    weft_aiwg_state *self = WEFT_CONTAINER(listener, weft_aiwg_state, listener);
    weft_loop *loop = weft__engine_loop(self->hub->engine);
    bool is_new = strcmp(event->type, "task.queued") == 0;
    (void) data;
    if (strncmp(event->type, "task.", 5) != 0 || (self->tasks_changed && (!is_new || self->tasks_soon)))
        return;
    self->tasks_changed = true;
    self->tasks_soon = is_new;
    weft__timer_set(loop, &self->tasks_timer, weft_loop_now(loop) + (is_new ? NEW_TASK_MS : TASKS_MS));
}

int weft__aiwg_state_new(const weft_aiwg_state_opts *opts, weft_aiwg_state **ret) {
    weft_aiwg_state *self = weft__zalloc(opts->hub->alloc, sizeof *self);
    weft_loop *loop = weft__engine_loop(opts->hub->engine);
    if (!self)
        return -ENOMEM;
    self->hub = opts->hub;
    self->socket = opts->socket;
    self->web = opts->web;
    self->put = opts->put;
    self->beat_ms = opts->beat_ms ? opts->beat_ms : BEAT_MS;
    snprintf(self->state, sizeof self->state, "%s/state.json", opts->folder);
    snprintf(self->heartbeat, sizeof self->heartbeat, "%s/heartbeat", opts->folder);
    snprintf(self->tasks, sizeof self->tasks, "%s/tasks.json", opts->folder);
    write_both(self);
    weft__timer_init(&self->timer, on_state_due);
    weft__timer_init(&self->tasks_timer, on_tasks_due);
    weft__timer_set(loop, &self->timer, weft_loop_now(loop) + self->beat_ms);
    self->listener.on_event = on_task_changed;
    weft__engine_listen(self->hub->engine, &self->listener);
    *ret = self;
    return 0;
}

weft_aiwg_state *weft__aiwg_state_free(weft_aiwg_state *self) {
    if (!self)
        return NULL;
    weft__engine_unlisten(&self->listener);
    weft__timer_stop(weft__engine_loop(self->hub->engine), &self->timer);
    weft__timer_stop(weft__engine_loop(self->hub->engine), &self->tasks_timer);
    if (self->tasks_changed)
        write_tasks_file(self);
    write_both(self);
    return weft__free(self->hub->alloc, self);
}

int weft__aiwg_state_trouble(const weft_aiwg_state *self) {
    return self->r;
}
