/* A hub in a box: loop, store in memory, engine, dialects and clients, with agents that do what the test says. The wall
 * clock stands still unless the test moves it.
 *
 * Everything is static and inline, so that each test program takes only this header. */
#ifndef HUB_WORLD_H
#define HUB_WORLD_H

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "alloc.h"
#include "driver_single.h"
#include "harness.h"
#include "hub_clients.h"
#include "loop.h"

/* A test that waits longer than this has failed. */
#define HUB_PATIENCE_MS 60000
/* 2026-01-01T00:00:00.000Z */
#define HUB_EPOCH_MS INT64_C(1767225600000)
#define HUB_RUNS 64

/* ---- an agent that the test plays ---- */

struct weft_run {
    struct hub_world *world;
    char task[64], prompt[1024], agent_session[64];
    const weft_run_host *host;
    void *ctx;
    bool over, paused;
};

typedef struct hub_world {
    weft_loop *loop;
    weft_store *store;
    weft_snapshots *snapshots;
    weft_engine *engine;
    weft_service *service;
    weft_dialects *dialects;
    weft_hub hub;
    weft_hub_host host;
    int64_t now;
    bool ready;
    bool parallel;   /* the setting cdev.parallel */
    int start_fails; /* agents do not start: a negative errno */
    weft_run *runs[HUB_RUNS];
    size_t run_count;
    pid_t next_pid;
    int stops; /* how often the daemon was asked to stop */
    bool stop_force;
    struct hub_gate {
        weft_gate_done *done;
        void *ctx;
        char gate[64];
        bool cancelled;
    } * gate_runs;       /* the gate that runs; NULL: none did */
    char heard[16][160]; /* what agents were told: "task-0000 cancel", ... */
    size_t heard_count;
} hub_world;

static hub_world *hub_stage; /* the world that is on: a driver knows no other */

static inline void hub_hear(hub_world *world, const char *task, const char *what, const char *a, const char *b) {
    if (world->heard_count < 16)
        snprintf(world->heard[world->heard_count++], 160, "%s %s%s%s%s%s", task, what, *a ? " " : "", a, *b ? " " : "", b);
}

static inline int hub_start(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret) {
    hub_world *world = hub_stage;
    if (world->start_fails)
        return world->start_fails;
    if (world->run_count == HUB_RUNS)
        return -ENOBUFS;
    weft_run *run = calloc(1, sizeof *run);
    *run = (weft_run){.world = world, .host = host, .ctx = ctx};
    snprintf(run->task, sizeof run->task, "%s", spec->task);
    snprintf(run->prompt, sizeof run->prompt, "%s", spec->prompt);
    snprintf(run->agent_session, sizeof run->agent_session, "%s", spec->agent_session ? spec->agent_session : "");
    world->runs[world->run_count++] = run;
    *ret = run;
    return 0;
}

static inline void hub_end(weft_run *run, const weft_run_end *end) {
    if (run->over)
        return;
    run->over = true;
    run->host->on_end(run->ctx, end);
}

static inline int hub_answer(weft_run *run, const char *key, const char *option) {
    hub_hear(run->world, run->task, "answer", key, option ? option : "none");
    return 0;
}

static inline void hub_cancel(weft_run *run, bool force) {
    hub_hear(run->world, run->task, force ? "kill" : "cancel", "", "");
}

static inline void hub_pause(weft_run *run, bool paused) {
    run->paused = paused;
}

static inline weft_run *hub_free(weft_run *run) {
    if (!run)
        return NULL;
    hub_world *world = run->world;
    for (size_t i = 0; i < world->run_count; i++)
        if (world->runs[i] == run) {
            memmove(&world->runs[i], &world->runs[i + 1], (world->run_count - i - 1) * sizeof run);
            world->run_count--;
            break;
        }
    free(run);
    return NULL;
}

static const weft_single hub_runs = {hub_start, hub_answer, hub_cancel, hub_pause, hub_free};
static inline int hub_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx,
                           weft_driver_process **ret) {
    return weft__single_open(&hub_runs, spec, host, ctx, ret);
}
static const weft_driver hub_driver = {.name = "played", .open = hub_open, WEFT_SINGLE};
static const weft_driver *const hub_drivers[] = {&hub_driver, &weft__driver_planner, NULL};

static const char *const hub_present[] = {"sh", "-c", NULL};
static const char *const hub_absent[] = {"weft-test-no-such-program", NULL};
static const weft_agent hub_agent_list[] = {
    {.name = "actor", .driver = "played", .about = "plays what the test says", .preset = true},
    {.name = "double", .driver = "played", .argv = hub_present, .timeout_ms = 1000},
    {.name = "ghost", .driver = "played", .argv = hub_absent, .advice = "there is no way to get it"},
};
static const weft_agents hub_agents = {hub_agent_list, 3, "actor"};

/* The oldest run of this task that is not over; NULL: none. */
static inline weft_run *hub_run(hub_world *world, const char *task) {
    for (size_t i = 0; i < world->run_count; i++)
        if (strcmp(world->runs[i]->task, task) == 0 && !world->runs[i]->over)
            return world->runs[i];
    return NULL;
}

/* ---- time ---- */

static inline int64_t hub_wall(void *ctx) {
    return ((hub_world *) ctx)->now;
}

static inline int64_t hub_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* One turn of the loop, waiting a little for something to do. */
static inline void hub_turn(hub_world *world, int wait_ms) {
    struct pollfd fd = {.fd = weft_loop_fd(world->loop), .events = POLLIN};
    int timeout = weft_loop_timeout_ms(world->loop);
    poll(&fd, 1, timeout < 0 || timeout > wait_ms ? wait_ms : timeout);
    weft_loop_once(world->loop, false);
    if (world->service) /* a server would do it */
        weft_service_deliver(world->service);
}

#define HUB_UNTIL(world, condition)                                                                                         \
    do {                                                                                                                    \
        int64_t until_ = hub_ms() + HUB_PATIENCE_MS;                                                                        \
        while (!(condition) && hub_ms() < until_)                                                                           \
            hub_turn((world), 10);                                                                                          \
        CHECK(condition);                                                                                                   \
    } while (0)

/* As many turns as anything here needs to come to rest: the store works at once, and nothing waits for anybody else. */
static inline void hub_settle(hub_world *world) {
    for (int i = 0; i < 40; i++)
        hub_turn(world, 0);
}

/* ---- the hub ---- */

static inline int64_t hub_uptime(void *ctx) {
    (void) ctx;
    return 17;
}

static inline int hub_about(void *ctx, char **ret, size_t *ret_len) {
    hub_world *world = ctx;
    return weft_to_text(WEFT_OBJ({"version", weft_str("0.0.0")}), world->hub.alloc, ret, ret_len);
}

static inline void hub_stop(void *ctx, bool force) {
    hub_world *world = ctx;
    world->stops++;
    world->stop_force = force;
}

static inline bool hub_flag(void *ctx, const char *name) {
    return ((hub_world *) ctx)->parallel && strcmp(name, "cdev.parallel") == 0;
}

static inline void hub_ready(void *ctx, int r) {
    CHECK_INT(r, 0);
    ((hub_world *) ctx)->ready = true;
}

typedef struct hub_opts {
    const weft_alloc *alloc;     /* of everything above the engine */
    const weft_store_kind *kind; /* NULL: memory */
    const char *path, *vfs;
    const char *folder; /* of the project; NULL: one that is not there */
    const char *state;  /* a folder for snapshots of it; NULL: none are taken */
    size_t store_queue; /* 0: as usual */
    weft_engine_limits limits;
    weft_limits service;
    const char *rules;                   /* JSON; NULL: no automation */
    const weft_dialect *const *dialects; /* NULL: all there are */
    bool unchecked; /* results are not checked against their rows' schemas: where each allocation fails in turn, compiling
                       them would be most of what is tried */
} hub_opts;

static inline void hub_automate(hub_world *world, const char *rules) {
    static const char jobs[] = "[{\"id\":\"nightly\",\"schedule\":\"0 3 * * *\"}]";
    weft_doc *rules_doc = NULL, *jobs_doc = NULL;
    CHECK_INT(weft_doc_parse(rules, strlen(rules), NULL, &rules_doc), 0);
    CHECK_INT(weft_doc_parse(jobs, strlen(jobs), NULL, &jobs_doc), 0);
    weft_automation_opts opts = {.enabled = true, .rules = weft_doc_root(rules_doc), .jobs = weft_doc_root(jobs_doc)};
    CHECK_INT(weft__automation_new(world->engine, &opts, &world->hub.automation), 0);
    weft_doc_free(rules_doc);
    weft_doc_free(jobs_doc);
}

/* ---- gates that the test plays ---- */

static inline int hub_check_gate(void *ctx, const char *gate, const char *folder) {
    (void) ctx, (void) folder;
    return strcmp(gate, "test") == 0 || strcmp(gate, "lint") == 0 ? 0 : -ESRCH;
}

/* One at a time, until hub_gate_ends(). */
static inline int hub_run_gate(void *ctx, const char *gate, const char *folder, weft_gate_done *done, void *done_ctx,
                               uint64_t *ret_id) {
    hub_world *world = ctx;
    (void) folder;
    if (!world->gate_runs)
        world->gate_runs = calloc(1, sizeof *world->gate_runs);
    if (world->gate_runs->done)
        return -EAGAIN;
    *world->gate_runs = (struct hub_gate){.done = done, .ctx = done_ctx};
    snprintf(world->gate_runs->gate, sizeof world->gate_runs->gate, "%s", gate);
    *ret_id = 1;
    return 0;
}

static inline void hub_cancel_gate(void *ctx, uint64_t id) {
    hub_world *world = ctx;
    (void) id;
    world->gate_runs->cancelled = true;
}

static inline weft_gate_runner hub_gate_runner(hub_world *world) {
    return (weft_gate_runner){.ctx = world, .check = hub_check_gate, .run = hub_run_gate, .cancel = hub_cancel_gate};
}

/* The gate that runs has ended so. */
static inline void hub_gate_ends(hub_world *world, int r, bool passed, const char *output) {
    struct hub_gate gate = *world->gate_runs;
    world->gate_runs->done = NULL;
    gate.done(gate.ctx,
              &(weft_gate_report){
                  .r = r, .passed = passed, .exit_code = passed ? 0 : 1, .ms = 5, .output = {output, strlen(output)}});
}

/* 0, or -ENOMEM; in either case hub_done(). */
static inline int hub_init(hub_world *world, const hub_opts *opts) {
    static const weft_dialect *const all[] = {&weft__aiwg,
                                              &weft__cdev,
                                              &weft__acp,
                                              &weft__tinyvex,
                                              &weft__planner,
                                              &weft__wiggum,
                                              &weft__hub_methods,
                                              &weft__dashboard_methods,
                                              NULL};
    static char why[WEFT_STORE_WHY];
    *world = (hub_world){.now = HUB_EPOCH_MS, .next_pid = 4000};
    hub_stage = world;
    CHECK_INT(weft_loop_new(NULL, &world->loop), 0);
    weft_store_opts store = {.path = opts->path, .vfs = opts->vfs, .max_queue = opts->store_queue};
    CHECK_INT(weft__store_open(opts->kind ? opts->kind : &weft__memory, &store, &world->store, why), 0);
    if (opts->state)
        CHECK_INT(
            weft__snapshots_new(&(weft_snapshots_opts){.loop = world->loop, .folder = opts->folder, .state = opts->state},
                                &world->snapshots),
            0);
    weft_engine_opts engine = {.loop = world->loop,
                               .store = world->store,
                               .agents = &hub_agents,
                               .drivers = hub_drivers,
                               .folder = opts->folder ? opts->folder : "/srv/project",
                               .snapshots = world->snapshots,
                               .limits = opts->limits,
                               .wall_ms = hub_wall,
                               .ctx = world};
    CHECK_INT(weft__engine_new(&engine, &world->engine), 0);
    CHECK_INT(weft__engine_start(world->engine, hub_ready, world), 0);
    HUB_UNTIL(world, world->ready);
    world->host = (weft_hub_host){.version = "0.0.0",
                                  .started_at = "2026-01-01T00:00:00.000Z",
                                  .uptime_s = hub_uptime,
                                  .about = hub_about,
                                  .stop = hub_stop,
                                  .flag = hub_flag,
                                  .ctx = world};
    world->hub = (weft_hub){.engine = world->engine, .host = &world->host, .alloc = opts->alloc};
    if (opts->rules)
        hub_automate(world, opts->rules);
    world->ready = false;
    CHECK_INT(weft__plans_new(&(weft_plans_opts){.engine = world->engine, .role = "executor"}, hub_ready, world,
                              &world->hub.plans),
              0);
    HUB_UNTIL(world, world->ready);
    world->ready = false;
    CHECK_INT(weft__gated_new(&(weft_gated_opts){.engine = world->engine, .gates = hub_gate_runner(world)}, hub_ready, world,
                              &world->hub.gated),
              0);
    HUB_UNTIL(world, world->ready);
    int r = weft__dialects_new(opts->dialects ? opts->dialects : all, &world->hub, opts->alloc, &world->dialects);
    if (r < 0)
        return r;
    weft_service_opts service = {.methods = weft__dialects_methods(world->dialects),
                                 .gates = weft__dialects_gates(world->dialects),
                                 .alloc = opts->alloc,
                                 .measure = true,
                                 .limits = opts->service,
                                 .check_results = !opts->unchecked};
    r = weft_service_new(&service, &world->service);
    world->hub.service = world->service;
    return r < 0 ? r : weft__hub_clients_new(&world->hub, world->dialects, &world->hub.clients);
}

static inline void hub_done(hub_world *world) {
    if (world->hub.clients)
        world->hub.clients = weft__hub_clients_free(world->hub.clients);
    world->hub.automation = weft__automation_free(world->hub.automation);
    world->hub.plans = weft__plans_free(world->hub.plans);
    world->hub.gated = weft__gated_free(world->hub.gated);
    if (world->gate_runs && world->gate_runs->done)
        hub_gate_ends(world, -ECANCELED, false, "");
    free(world->gate_runs);
    world->snapshots = weft__snapshots_free(world->snapshots);
    world->engine = weft__engine_free(world->engine);
    world->store = weft__store_close(world->store);
    weft_service_unref(world->service);
    weft__dialects_free(world->dialects);
    for (int i = 0; i < 4; i++) /* what is closed is finished by the loop */
        weft_loop_once(world->loop, false);
    world->loop = weft_loop_free(world->loop);
}

#endif
