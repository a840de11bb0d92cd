/* Processes that live, see agent_pool.h.
 *
 *     opened ──a turn ends──▶ idle ──its time is over, retired, stopped──▶ ending ──on_end──▶ freed
 *            ◀──a turn────── idle
 *
 * A process is retired when it must take no more turns: its agent's configuration changed, a turn in it failed, the engine
 * stops, or it is to be ended with its turn. A retired process ends with its last turn, and then that turn has ended when
 * the process has, so that its exit status can be told. */
#include "agent_pool.h"

#include <errno.h>
#include <string.h>

#include "agent_program.h"
#include "run.h"

/* Sessions without a turn that a process keeps: agents hold the whole conversation in memory. */
#define MOST_SESSIONS 32
/* Sessions that a process is given in its life: not every agent can be told to close one. */
#define MOST_OPENED 200

typedef struct pool_process {
    weft_link link; /* the one used last at the end */
    weft_engine *engine;
    const weft_driver *driver;
    weft_driver_process *handle;
    const weft_agent *agent;
    weft_agent *resolved; /* the agent with its program found; NULL: as it is configured. Owned */
    pid_t pid;            /* 0: it is not known to run */
    weft_link sessions;   /* the one used last at the end */
    size_t session_count, opened;
    size_t turns, pauses;
    bool retired, ending;
    weft_timer idle;
    weft_later freeing;
} pool_process;

struct pool_session {
    weft_link link;
    pool_process *process;
    weft_driver_session *handle;
    struct run *run; /* NULL: it has no turn */
    bool paused;
    bool leaving; /* its turn is over, and ends with the process */
    char id[];
};

/* ---- memory ---- */

static void close_pool_session(pool_session *session) {
    pool_process *process = session->process;
    if (session->handle)
        process->driver->close(session->handle);
    weft__list_remove(&session->link);
    process->session_count--;
    weft__free(process->engine->alloc, session);
}

static void free_process(pool_process *process) {
    const weft_alloc *alloc = process->engine->alloc;
    weft__timer_stop(process->engine->loop, &process->idle);
    weft__later_cancel(&process->freeing);
    weft__list_remove(&process->link);
    if (process->handle)
        process->driver->free(process->handle);
    while (!weft__list_empty(&process->sessions)) {
        pool_session *session = WEFT_CONTAINER(process->sessions.next, pool_session, link);
        session->handle = NULL; /* it went with the process */
        close_pool_session(session);
    }
    weft__free(alloc, process->resolved);
    weft__free(alloc, process);
}

static void free_ended(weft_later *later) {
    pool_process *process = WEFT_CONTAINER(later, pool_process, freeing);
    weft_engine *engine = process->engine;
    free_process(process);
    weft__stop_check(engine);
}

/* ---- ending ---- */

static void end_process(pool_process *process, bool force) {
    process->retired = process->ending = true;
    weft__timer_stop(process->engine->loop, &process->idle);
    process->driver->stop(process->handle, NULL, force);
}

static void retire(pool_process *process) {
    process->retired = true;
    if (!process->turns && !process->ending)
        end_process(process, false);
}

static void idle_over(weft_timer *timer) {
    retire(WEFT_CONTAINER(timer, pool_process, idle));
}

/* How long a process of it is kept without a turn; <=0: it ends with its turn. */
static int64_t idle_ms(const weft_engine *engine, const weft_agent *agent) {
    return agent->idle_ms ? agent->idle_ms : engine->limits.idle_ms;
}

static void end_oldest_idle(weft_engine *engine) {
    pool_process *oldest = NULL;
    size_t count = 0;
    for (weft_link *link = engine->processes.next; link != &engine->processes; link = link->next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        if (process->turns || process->ending)
            continue;
        oldest = oldest ? oldest : process;
        count++;
    }
    if (count > engine->limits.max_idle)
        retire(oldest);
}

static void begin_idle(pool_process *process) {
    weft_engine *engine = process->engine;
    weft__timer_set(engine->loop, &process->idle,
                    weft__add_ms(weft__loop_fresh_now(engine->loop), idle_ms(engine, process->agent)));
    end_oldest_idle(engine);
}

/* ---- turns ---- */

static void begin_turn(pool_session *session, struct run *run) {
    pool_process *process = session->process;
    session->run = run;
    process->turns++;
    weft__timer_set(process->engine->loop, &process->idle, INT64_MAX);
    weft__list_remove(&session->link);
    weft__list_push(&process->sessions, &session->link);
    weft__list_remove(&process->link);
    weft__list_push(&process->engine->processes, &process->link);
}

/* The run has no turn any more; the session may have another. */
static struct run *leave_turn(pool_session *session) {
    struct run *run = session->run;
    session->run = NULL;
    session->leaving = false;
    session->process->turns--;
    weft__pool_pause(session, false);
    return run;
}

/* A failed turn may have left the agent in any state: the next one gets a new process. */
static bool leaves_it_sound(const weft_turn_end *end) {
    return end->ok || (end->reason && (strcmp(end->reason, "cancelled") == 0 || strcmp(end->reason, "refused") == 0));
}

static void end_turn(pool_session *session, const weft_turn_end *end) {
    pool_process *process = session->process;
    struct run *run = leave_turn(session);
    if (!process->turns && !process->ending && !end->gone)
        begin_idle(process);
    weft__run_ended(run, end);
}

/* ---- what the driver tells ---- */

static void pool_on_process(void *ctx, pid_t pid) {
    pool_process *process = ctx;
    process->pid = pid;
    for (weft_link *link = process->sessions.next; link != &process->sessions; link = link->next) {
        const pool_session *session = WEFT_CONTAINER(link, pool_session, link);
        if (session->run)
            weft__run_process(session->run, pid);
    }
}

static void pool_on_end(void *ctx, int exit_code, int signal) {
    pool_process *process = ctx;
    weft_engine *engine = process->engine;
    process->retired = process->ending = true;
    weft__timer_stop(engine->loop, &process->idle);
    for (weft_link *link = process->sessions.next; link != &process->sessions; link = link->next) {
        pool_session *session = WEFT_CONTAINER(link, pool_session, link);
        if (session->run && session->leaving)
            weft__run_left(leave_turn(session), exit_code, signal);
    }
    weft__later(engine->loop, &process->freeing);
}

static void pool_on_session(void *ctx, const weft_session_info *info) {
    const pool_session *session = ctx;
    if (session->run)
        weft__run_session(session->run, info);
}

static void pool_on_output(void *ctx, weft_run_stream stream, weft_bytes text) {
    const pool_session *session = ctx;
    if (session->run)
        weft__run_output(session->run, stream, text);
}

static void pool_on_update(void *ctx, const weft_json *update) {
    const pool_session *session = ctx;
    if (session->run)
        weft__run_update(session->run, update);
}

static void pool_on_ask(void *ctx, const char *key, weft_val question) {
    const pool_session *session = ctx;
    if (session->run)
        weft__run_ask(session->run, key, question);
}

static void pool_on_unask(void *ctx, const char *key) {
    const pool_session *session = ctx;
    if (session->run)
        weft__run_unask(session->run, key);
}

static int pool_on_request(void *ctx, const weft_passage *row, weft_req *req, const weft_json *params) {
    const pool_session *session = ctx;
    if (!session->run)
        return weft_fail(req, WEFT_METHOD_NOT_FOUND, "Method not found", weft_none());
    const weft_task *task = &session->run->task->pub;
    return row->handler(session->process->engine->opts.passage_ctx,
                        &(weft_passage_call){.session = task->session, .task = task->id}, req, params);
}

static void pool_on_usage(void *ctx, const weft_json *usage) {
    const pool_session *session = ctx;
    if (session->run)
        weft__run_usage(session->run, usage);
}

static void pool_on_turn_end(void *ctx, const weft_turn_end *end) {
    pool_session *session = ctx;
    pool_process *process = session->process;
    if (!session->run)
        return;
    if (!leaves_it_sound(end) || process->engine->phase != READY)
        process->retired = true;
    if (end->gone || !process->retired || process->turns > 1) {
        end_turn(session, end);
        return;
    }
    session->leaving = true;
    weft__run_leaves(session->run, end);
    end_process(process, false);
}

static const weft_process_host process_host = {.on_process = pool_on_process, .on_end = pool_on_end};
static const weft_session_host session_host = {
    .on_session = pool_on_session,
    .on_output = pool_on_output,
    .on_update = pool_on_update,
    .on_ask = pool_on_ask,
    .on_unask = pool_on_unask,
    .on_request = pool_on_request,
    .on_usage = pool_on_usage,
    .on_turn_end = pool_on_turn_end,
};

/* ---- which process ---- */

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_list(const char *const *a, const char *const *b) {
    size_t i = 0;
    if (!a || !b)
        return a == b;
    while (a[i] && b[i] && strcmp(a[i], b[i]) == 0)
        i++;
    return !a[i] && !b[i];
}

/* Would it be started in the same way? */
static bool same_agent(const weft_agent *a, const weft_agent *b) {
    return a == b || (same_text(a->name, b->name) && same_text(a->driver, b->driver) && same_list(a->argv, b->argv) &&
                      same_list(a->env, b->env) && a->outside == b->outside && a->idle_ms == b->idle_ms);
}

static const weft_driver *driver_named(const weft_engine *engine, const char *name) {
    for (const weft_driver *const *driver = engine->opts.drivers; driver && *driver; driver++)
        if (strcmp((*driver)->name, name) == 0)
            return *driver;
    return NULL;
}

static bool has_place(const pool_process *process, const weft_agent *agent) {
    size_t most = agent->max_turns ? agent->max_turns : 1;
    return !process->retired && process->turns < most && same_agent(process->agent, agent);
}

static pool_session *find_session(const weft_engine *engine, const weft_agent *agent, const char *id) {
    for (weft_link *link = engine->processes.next; link != &engine->processes; link = link->next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        for (weft_link *at = process->sessions.next; at != &process->sessions; at = at->next) {
            pool_session *session = WEFT_CONTAINER(at, pool_session, link);
            if (!session->run && has_place(process, agent) && strcmp(session->id, id) == 0)
                return session;
        }
    }
    return NULL;
}

/* The one with the fewest turns. */
static pool_process *find_process(const weft_engine *engine, const weft_agent *agent) {
    pool_process *best = NULL;
    for (weft_link *link = engine->processes.next; link != &engine->processes; link = link->next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        if (has_place(process, agent) && (!best || process->turns < best->turns))
            best = process;
    }
    return best;
}

/* ---- opening ---- */

static pool_process *new_process(weft_engine *engine, const weft_agent *agent, const weft_driver *driver) {
    pool_process *made = weft__zalloc(engine->alloc, sizeof *made);
    if (!made)
        return NULL;
    made->engine = engine;
    made->agent = agent;
    made->driver = driver;
    made->retired = driver->one_turn || idle_ms(engine, agent) <= 0;
    weft__list_init(&made->sessions);
    weft__list_push(&engine->processes, &made->link);
    weft__timer_init(&made->idle, idle_over);
    weft__later_init(&made->freeing, free_ended);
    return made;
}

static int open_process(weft_engine *engine, const weft_agent *agent, const char *task, pool_process **ret) {
    const weft_driver *driver = driver_named(engine, agent->driver);
    pool_process *made = driver ? new_process(engine, agent, driver) : NULL;
    if (!made)
        return driver ? -ENOMEM : -ENOTSUP;
    int r = weft__agent_resolve(agent, engine->folder, engine->alloc, &made->resolved);
    if (r >= 0)
        r = driver->open(
            &(weft_process_spec){
                .loop = engine->loop,
                .alloc = engine->alloc,
                .agent = made->resolved ? made->resolved : agent,
                .program = engine->program,
                .folder = engine->folder,
                .task = made->retired ? task : NULL,
                .grace_ms = engine->limits.grace_ms,
                .passages = engine->opts.passages,
            },
            &process_host, made, &made->handle);
    if (r < 0) {
        made->handle = NULL;
        free_process(made);
        return r;
    }
    *ret = made;
    return 0;
}

static void close_oldest_session(pool_process *process) {
    pool_session *oldest = WEFT_CONTAINER(process->sessions.next, pool_session, link);
    if (process->session_count >= MOST_SESSIONS && !oldest->run)
        close_pool_session(oldest);
}

static int open_session(pool_process *process, const known_session *known, const char *id, pool_session **ret) {
    size_t size = strlen(id) + 1;
    close_oldest_session(process);
    pool_session *made = weft__zalloc(process->engine->alloc, sizeof *made + size);
    if (!made)
        return -ENOMEM;
    memcpy(made->id, id, size);
    made->process = process;
    weft__list_push(&process->sessions, &made->link);
    process->session_count++;
    process->retired |= ++process->opened >= MOST_OPENED;
    int r = process->driver->session(process->handle,
                                     &(weft_session_spec){
                                         .folder = process->engine->folder,
                                         .agent_session = known ? known->pub.agent_session : NULL,
                                     },
                                     &session_host, made, &made->handle);
    if (r < 0) {
        made->handle = NULL;
        close_pool_session(made);
        return r;
    }
    *ret = made;
    return 0;
}

/* ---- a turn ---- */

static int prompt_session(pool_session *session, struct run *run, const weft_turn_spec *turn) {
    pool_process *process = session->process;
    begin_turn(session, run);
    int r = process->driver->prompt(session->handle, turn);
    if (r < 0)
        leave_turn(session);
    else if (process->pid)
        weft__run_process(run, process->pid);
    return r;
}

/* A process that is busy with another turn may have it: from now on that knows less than the new one. */
static void close_elsewhere(weft_engine *engine, const char *id) {
    for (weft_link *link = engine->processes.next; link != &engine->processes; link = link->next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        for (weft_link *at = process->sessions.next, *next; at != &process->sessions; at = next) {
            pool_session *session = WEFT_CONTAINER(at, pool_session, link);
            next = at->next;
            if (!session->run && strcmp(session->id, id) == 0)
                close_pool_session(session);
        }
    }
}

static int prompt_in(pool_process *process, struct run *run, const weft_turn_spec *turn, pool_session **ret) {
    const known_task *task = run->task;
    close_elsewhere(process->engine, task->pub.session);
    int r = open_session(process, task->session, task->pub.session, ret);
    return r < 0 ? r : prompt_session(*ret, run, turn);
}

/* One that lives may be about to die: then it takes no turn, and a new one does. */
static bool prompt_living(weft_engine *engine, struct run *run, const weft_turn_spec *turn, pool_session **ret) {
    pool_session *session = find_session(engine, run->agent, run->task->pub.session);
    pool_process *process = session ? session->process : find_process(engine, run->agent);
    if (!process)
        return false;
    int r = session ? prompt_session(session, run, turn) : prompt_in(process, run, turn, &session);
    if (r >= 0)
        *ret = session;
    else
        retire(process);
    return r >= 0;
}

int weft__pool_prompt(weft_engine *engine, struct run *run, const weft_turn_spec *turn, pool_session **ret) {
    pool_process *process;
    pool_session *session;
    if (prompt_living(engine, run, turn, ret))
        return 0;
    int r = open_process(engine, run->agent, turn->task, &process);
    if (r < 0)
        return r;
    r = prompt_in(process, run, turn, &session);
    if (r < 0)
        free_process(process);
    else
        *ret = session;
    return r < 0 ? r : 0;
}

int weft__pool_answer(pool_session *session, const char *key, const char *option) {
    return session->leaving ? -ENOENT : session->process->driver->answer(session->handle, key, option);
}

void weft__pool_cancel(pool_session *session, bool force) {
    pool_process *process = session->process;
    process->driver->stop(process->handle, session->leaving ? NULL : session->handle, force);
}

void weft__pool_pause(pool_session *session, bool paused) {
    pool_process *process = session->process;
    if (session->paused == paused)
        return;
    session->paused = paused;
    process->pauses += paused ? 1 : (size_t) -1;
    if (process->pauses == (paused ? 1 : 0))
        process->driver->pause(process->handle, paused);
}

void weft__pool_forget_run(pool_session *session) {
    leave_turn(session);
    session->process->retired = true;
}

/* ---- all of them ---- */

void weft__pool_init(weft_engine *engine) {
    weft__list_init(&engine->processes);
}

/* Retiring calls nobody, but the driver may end a process at once: the next one is looked up before. */
void weft__pool_recheck(weft_engine *engine) {
    for (weft_link *link = engine->processes.next, *next; link != &engine->processes; link = next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        const weft_agent *now = weft__agent_find(engine->agents, process->agent->name);
        next = link->next;
        if (!now || !same_agent(now, process->agent) || idle_ms(engine, now) <= 0)
            retire(process);
    }
}

void weft__pool_stop(weft_engine *engine, bool force) {
    for (weft_link *link = engine->processes.next, *next; link != &engine->processes; link = next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        next = link->next;
        process->retired = true;
        if (!process->turns && (force || !process->ending))
            end_process(process, force);
    }
}

void weft__pool_drop(weft_engine *engine) {
    while (!weft__list_empty(&engine->processes))
        free_process(WEFT_CONTAINER(engine->processes.next, pool_process, link));
}
