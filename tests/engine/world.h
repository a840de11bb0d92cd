/* An engine on a loop and a store of its own, with a driver whose runs the test plays by hand: it says what they output, ask
 * and how they end. Nothing sleeps: the loop turns until what is waited for has happened. */
#ifndef ENGINE_WORLD_H
#define ENGINE_WORLD_H

#include <errno.h>
#include <time.h>

#include "driver_single.h"
#include "engine.h"
#include "harness.h"
#include "loop.h"
#include "store/world.h"
#include "store_kind.h"

#define RUNS 256

/* ---- the driver ---- */

struct weft_run {
    const weft_run_host *host;
    void *ctx;
    bool paused, ended, freed;
    int cancels, forced;
    char prompt[64], task[32], persona[32], agent_session[64], agent[32], folder[128];
    char answer_key[32], answer[64];
    int answers;
};

static struct plays {
    struct weft_run *runs[RUNS];
    size_t count;
    size_t live;
    int refuse; /* start() fails so */
} plays;

static inline int play_start(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret) {
    if (plays.refuse < 0)
        return plays.refuse;
    if (plays.count == RUNS)
        return -ENOSPC;
    struct weft_run *run = calloc(1, sizeof *run);
    run->host = host;
    run->ctx = ctx;
    snprintf(run->prompt, sizeof run->prompt, "%s", spec->prompt);
    snprintf(run->task, sizeof run->task, "%s", spec->task);
    snprintf(run->persona, sizeof run->persona, "%s", spec->persona ? spec->persona : "");
    snprintf(run->agent, sizeof run->agent, "%s", spec->agent->name);
    snprintf(run->agent_session, sizeof run->agent_session, "%s", spec->agent_session ? spec->agent_session : "");
    snprintf(run->folder, sizeof run->folder, "%s", spec->folder);
    plays.runs[plays.count++] = run;
    plays.live++;
    *ret = run;
    return 0;
}

static inline int play_answer(weft_run *run, const char *key, const char *option) {
    snprintf(run->answer_key, sizeof run->answer_key, "%s", key);
    snprintf(run->answer, sizeof run->answer, "%s", option ? option : "(none)");
    run->answers++;
    return 0;
}

static inline void play_cancel(weft_run *run, bool force) {
    run->cancels++;
    run->forced += force;
}

static inline void play_pause(weft_run *run, bool paused) {
    run->paused = paused;
}

/* Kept, so that a test can look at it. */
static inline weft_run *play_free(weft_run *run) {
    CHECK(!run->freed);
    run->freed = true;
    plays.live--;
    return NULL;
}

static const weft_single play_runs = {
    .start = play_start,
    .answer = play_answer,
    .cancel = play_cancel,
    .pause = play_pause,
    .free = play_free,
};
static inline int play_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx,
                            weft_driver_process **ret) {
    return weft__single_open(&play_runs, spec, host, ctx, ret);
}
static const weft_driver play_driver = {.name = "play", .open = play_open, WEFT_SINGLE};
static const weft_driver *const play_drivers[] = {&play_driver, NULL};

static inline void play_reset(void) {
    for (size_t i = 0; i < plays.count; i++)
        free(plays.runs[i]);
    plays = (struct plays){0};
}

static inline weft_run *play_of(const char *task) {
    for (size_t i = plays.count; i-- > 0;)
        if (strcmp(plays.runs[i]->task, task) == 0)
            return plays.runs[i];
    return NULL;
}

static inline void play_say(weft_run *run, const char *text) {
    run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){text, strlen(text)});
}

static inline void play_end(weft_run *run, bool ok) {
    weft_run_end end = {.ok = ok, .exit_code = ok ? 0 : 1, .retryable = !ok};
    if (!ok) {
        end.reason = "exited";
        end.error = "it went wrong";
    }
    run->ended = true;
    run->host->on_end(run->ctx, &end);
}

/* ---- a store that fails when told to ---- */

static int play_store_fails; /* appends complete with this; 0: they work */

static inline void play_append(weft_store *store, weft_append_job *job) {
    weft_link jobs;
    if (!play_store_fails) {
        weft__memory.append(store, job);
        return;
    }
    weft__list_init(&jobs);
    job->job.r = play_store_fails;
    weft__list_push(&jobs, &job->job.link);
    weft__completions_put(&store->completions, &jobs);
}

static inline const weft_store_kind *play_store(void) {
    static weft_store_kind kind;
    kind = weft__memory;
    kind.append = play_append;
    play_store_fails = 0;
    return &kind;
}

/* ---- the world ---- */

typedef struct engine_world {
    store_world store;
    weft_loop *loop;
    weft_engine *engine;
    weft_engine_opts opts;
    int ready, ready_r, stopped;
    int64_t wall;   /* 0: the real one */
    int64_t steady; /* stands still unless the test moves it */
    weft_event_listener listener;
    char heard[65536]; /* types, with a blank behind each */
    size_t heard_len;
    uint64_t last_gseq;
} engine_world;

typedef struct task_outcome {
    int times, r;
    weft_task_state state;
    char id[32], session[32];
} task_outcome;

static const char *const world_persona[] = {"--agent", "{agent}", NULL};
static const weft_agent world_agents[] = {
    {.name = "one", .driver = "play", .persona_argv = world_persona},
    {.name = "two", .driver = "play", .max_running = 1, .advice = "Install it with: two."},
    {.name = "allow", .driver = "play", .permission = WEFT_PERMISSION_ALLOW},
    {.name = "deny", .driver = "play", .permission = WEFT_PERMISSION_DENY},
    {.name = "odd", .driver = "none"},
};
static const weft_agents world_all = {world_agents, sizeof world_agents / sizeof world_agents[0], "one"};

static inline void world_ready(void *ctx, int r) {
    engine_world *world = ctx;
    world->ready++;
    world->ready_r = r;
}

static inline void world_stopped(void *ctx) {
    ((engine_world *) ctx)->stopped++;
}

static inline int64_t world_wall(void *ctx) {
    engine_world *world = ctx;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return world->wall ? world->wall : (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline int64_t world_steady(void *ctx) {
    return ((engine_world *) ctx)->steady;
}

static inline void world_hear(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    engine_world *world = WEFT_CONTAINER(listener, engine_world, listener);
    (void) data;
    CHECK(event->gseq > world->last_gseq);
    world->last_gseq = event->gseq;
    if (world->heard_len + strlen(event->type) + 2 < sizeof world->heard)
        world->heard_len +=
            (size_t) snprintf(world->heard + world->heard_len, sizeof world->heard - world->heard_len, "%s ", event->type);
}

static inline void world_forget(engine_world *world) {
    world->heard_len = 0;
    world->heard[0] = '\0';
}

/* One turn of the loop that waits for something to do, but not for a timer that is hours away: what never comes is a
 * failure of this test, not of all after it. */
static inline void world_turn(engine_world *world) {
    struct pollfd fd = {.fd = weft_loop_fd(world->loop), .events = POLLIN};
    int timeout = weft_loop_timeout_ms(world->loop);
    poll(&fd, 1, timeout < 0 || timeout > 1000 ? 1000 : timeout);
    weft_loop_once(world->loop, false);
}

/* Turn the loop until *times is as high as this. */
static inline bool engine_wait(engine_world *world, const int *times, int want) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (*times < want) {
        world_turn(world);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - start.tv_sec > WORLD_PATIENCE_MS / 1000)
            return test_check(false, __FILE__, __LINE__, "nothing happened");
    }
    return true;
}

/* Until nothing is to be done any more without anybody doing something: some turns that find nothing. */
static inline void engine_settle(engine_world *world) {
    for (int i = 0; i < 20; i++)
        weft_loop_once(world->loop, false);
}

#define ENGINE_UNTIL(world, x)                                                                                              \
    do {                                                                                                                    \
        struct timespec start_, now_;                                                                                       \
        clock_gettime(CLOCK_MONOTONIC, &start_);                                                                            \
        now_ = start_;                                                                                                      \
        while (!(x) && now_.tv_sec - start_.tv_sec < WORLD_PATIENCE_MS / 1000) {                                            \
            world_turn(world);                                                                                              \
            clock_gettime(CLOCK_MONOTONIC, &now_);                                                                          \
        }                                                                                                                   \
        CHECK(x);                                                                                                           \
    } while (0)

static inline int world_start(engine_world *world) {
    world->opts.loop = world->loop;
    world->opts.store = world->store.store;
    if (!world->opts.drivers)
        world->opts.drivers = play_drivers;
    if (!world->opts.agents)
        world->opts.agents = &world_all;
    world->opts.folder = "/tmp";
    world->opts.wall_ms = world_wall;
    world->opts.steady_ms = world_steady;
    world->opts.ctx = world;
    world->ready = 0;
    world->last_gseq = 0;
    int r = weft__engine_new(&world->opts, &world->engine);
    if (r < 0)
        return r;
    world->listener.on_event = world_hear;
    weft__engine_listen(world->engine, &world->listener);
    r = weft__engine_start(world->engine, world_ready, world);
    if (r < 0)
        return r;
    engine_wait(world, &world->ready, 1);
    return world->ready_r;
}

static inline void engine_open(engine_world *world, const weft_store_kind *kind) {
    memset(world, 0, sizeof *world);
    world_init(&world->store, kind);
    REQUIRE(world_open(&world->store));
    REQUIRE(weft_loop_new(NULL, &world->loop) == 0);
}

static inline void engine_begin(engine_world *world, const weft_store_kind *kind) {
    engine_open(world, kind);
    CHECK_INT(world_start(world), 0);
}

static inline void engine_end(engine_world *world) {
    world->engine = weft__engine_free(world->engine);
    CHECK_INT(plays.live, 0);
    world_done(&world->store);
    weft_loop_free(world->loop);
    play_reset();
}

/* As if the daemon had died: nothing is said good-bye to. */
static inline void engine_crash(engine_world *world) {
    world->engine = weft__engine_free(world->engine);
    world_reopen(&world->store);
    weft_loop_once(world->loop, false);
    play_reset();
}

static inline void engine_restart(engine_world *world) {
    engine_crash(world);
    CHECK_INT(world_start(world), 0);
}

/* ---- commands ---- */

static inline void task_done(void *ctx, int r, const weft_task *task) {
    task_outcome *outcome = ctx;
    outcome->times++;
    outcome->r = r;
    if (!task)
        return;
    outcome->state = task->state;
    snprintf(outcome->id, sizeof outcome->id, "%s", task->id);
    snprintf(outcome->session, sizeof outcome->session, "%s", task->session);
}

static inline int submit_spec(engine_world *world, const weft_task_spec *spec, task_outcome *ret) {
    *ret = (task_outcome){0};
    int r = weft__task_submit(world->engine, spec, task_done, ret);
    return r < 0 ? r : engine_wait(world, &ret->times, 1) ? ret->r : -ETIMEDOUT;
}

static inline int submit(engine_world *world, const char *prompt, task_outcome *ret) {
    return submit_spec(world, &(weft_task_spec){.prompt = prompt}, ret);
}

static inline weft_task_state state_of(const engine_world *world, const char *id) {
    const weft_task *task = weft__task_find(world->engine, id);
    return CHECK(task != NULL) ? task->state : WEFT_TASK_STATES;
}

#endif
