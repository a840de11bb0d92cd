/* Processes that live, see agent_pool.h.
 *
 *     opened ──a turn ends──▶ idle ──its time is over, retired, stopped──▶ ending ──on_end──▶ freed
 *            ◀──a turn────── idle
 *
 * A process is retired when it must take no more turns: its agent's configuration changed, a turn in it failed, the engine
 * stops, or it is to be ended with its turn. A retired process ends with its last turn, and then that turn has ended when
 * the process has, so that its exit status can be told. */
#include "agent_pool_private.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agent_program.h"
#include "beneath.h"
#include "run.h"
#include "worktrees.h"

/* Sessions without a turn that a process keeps: agents hold the whole conversation in memory. */
#define MOST_SESSIONS 32
/* Sessions that a process is given in its life: not every agent can be told to close one. */
#define MOST_OPENED 200

/* ---- memory ---- */

void weft__pool_session_close(pool_session *session) {
    pool_process *process = session->process;
    weft__pool_requests_end(process, session, -ENOTCONN);
    if (session->handle)
        process->driver->close(session->handle);
    weft__list_remove(&session->link);
    process->session_count--;
    weft__free(process->engine->alloc, session->settings);
    weft__free(process->engine->alloc, session);
}

void weft__pool_process_free(pool_process *process) {
    const weft_alloc *alloc = process->engine->alloc;
    weft__timer_stop(process->engine->loop, &process->idle);
    weft__later_cancel(&process->freeing);
    weft__list_remove(&process->link);
    weft__pool_requests_end(process, NULL, process->engine->phase == GONE ? -ECANCELED : -EPIPE);
    if (process->handle)
        process->driver->free(process->handle);
    while (!weft__list_empty(&process->sessions)) {
        pool_session *session = WEFT_CONTAINER(process->sessions.next, pool_session, link);
        session->handle = NULL; /* it went with the process */
        weft__pool_session_close(session);
    }
    weft_engine *engine = process->engine;
    weft__free(alloc, process->resolved);
    weft__free(alloc, process);
    weft__guests_tidy(engine);
}

static void free_ended(weft_later *later) {
    pool_process *process = WEFT_CONTAINER(later, pool_process, freeing);
    weft_engine *engine = process->engine;
    weft__pool_process_free(process);
    weft__stop_check(engine);
}

/* ---- ending ---- */

static void end_process(pool_process *process, bool force) {
    process->retired = process->ending = true;
    weft__timer_stop(process->engine->loop, &process->idle);
    process->driver->stop(process->handle, NULL, force);
}

void weft__pool_process_retire(pool_process *process) {
    process->retired = true;
    if (!process->turns && !process->requests && !process->ending)
        end_process(process, false);
}

static void idle_over(weft_timer *timer) {
    weft__pool_process_retire(WEFT_CONTAINER(timer, pool_process, idle));
}

/* How long a process of it is kept without a turn, after a conversation or after a task on its own; <=0: it ends with its
 * turn. */
static int64_t idle_ms(const weft_engine *engine, const weft_agent *agent, bool talks) {
    const weft_engine_limits *limits = &engine->limits;
    bool longer = talks && limits->talk_idle_ms > limits->idle_ms;
    return agent->idle_ms ? agent->idle_ms : longer ? limits->talk_idle_ms : limits->idle_ms;
}

static void end_oldest_idle(weft_engine *engine) {
    pool_process *oldest = NULL;
    size_t count = 0;
    for (weft_link *link = engine->processes.next; link != &engine->processes; link = link->next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        if (process->turns || process->requests || process->ending)
            continue;
        oldest = oldest ? oldest : process;
        count++;
    }
    if (count > engine->limits.max_idle)
        weft__pool_process_retire(oldest);
}

static void begin_idle(pool_process *process) {
    weft_engine *engine = process->engine;
    weft__timer_set(engine->loop, &process->idle,
                    weft__add_ms(weft__loop_fresh_now(engine->loop), idle_ms(engine, process->agent, process->talks)));
    end_oldest_idle(engine);
}

void weft__pool_process_settle(pool_process *process) {
    if (process->turns || process->requests || process->ending)
        return;
    if (process->retired)
        end_process(process, false);
    else
        begin_idle(process);
}

/* ---- turns ---- */

void weft__pool_turn_begin(pool_session *session, struct run *run) {
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
    static const char *const reasons[] = {"cancelled", "refused", "cannotResume", "sessionNotFound", "settingRefused"};
    for (size_t i = 0; end->reason && i < sizeof reasons / sizeof reasons[0]; i++)
        if (strcmp(end->reason, reasons[i]) == 0)
            return true;
    return end->ok;
}

/* Who cancels a turn wants everything of it to end. Where processes are kept because somebody said so, that is for the agent
 * to see to. */
static bool is_stopped_for_good(const pool_process *process, const weft_turn_end *end) {
    bool cancelled = end->reason && strcmp(end->reason, "cancelled") == 0;
    return cancelled && process->turns == 1 && idle_ms(process->engine, process->agent, false) <= 0;
}

static void end_turn(pool_session *session, const weft_turn_end *end) {
    pool_process *process = session->process;
    struct run *run = leave_turn(session);
    if (!process->turns && !process->requests && !process->ending && !end->gone)
        begin_idle(process);
    if (session->stale && !end->gone)
        weft__pool_session_close(session);
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
    pool_session *session = ctx;
    if (session->run)
        weft__run_session(session->run, info);
    else
        weft__session_named(session->process->engine, session->id, info->agent_session);
    weft__pool_set_waiting(session);
}

static void pool_on_state(void *ctx, const char *name, const weft_json *value) {
    const pool_session *session = ctx;
    weft__session_told(session->process->engine, session->id, name, value);
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

static void pool_on_elicited(void *ctx, const char *elicitation) {
    const pool_session *session = ctx;
    if (session->run)
        weft__run_elicited(session->run, elicitation);
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

static void pool_on_changed(void *ctx, const weft_json *counts) {
    const pool_session *session = ctx;
    if (session->run)
        weft__run_changed_there(session->run, counts);
}

static void pool_on_told(void *ctx, uint64_t at) {
    const pool_session *session = ctx;
    if (session->run)
        weft__run_told(session->run, at);
}

static void pool_on_result(void *ctx, const weft_json *result) {
    const pool_session *session = ctx;
    if (session->run)
        weft__run_result(session->run, result);
}

static int opening_result(const weft_turn_end *end) {
    return end->ok                                                      ? 0
           : end->reason && strcmp(end->reason, "cannotResume") == 0    ? -EOPNOTSUPP
           : end->reason && strcmp(end->reason, "sessionNotFound") == 0 ? -ENOENT
           : end->gone                                                  ? -EPIPE
                                                                        : -EREMOTEIO;
}

/* It is open, or cannot be. */
static void end_pool_opening(pool_session *session, const weft_turn_end *end) {
    pool_process *process = session->process;
    pool_request *opening = session->opening;
    session->opening = NULL;
    process->turns--;
    weft__pool_request_end(opening, opening_result(end), NULL, end->error);
    process->retired |= !leaves_it_sound(end);
    if (end->gone)
        return;
    if (!end->ok || session->stale)
        weft__pool_session_close(session);
    weft__pool_process_settle(process);
}

static void pool_on_turn_end(void *ctx, const weft_turn_end *end) {
    pool_session *session = ctx;
    pool_process *process = session->process;
    weft__pool_end_waiting(session);
    if (session->opening) {
        end_pool_opening(session, end);
        return;
    }
    if (!session->run)
        return;
    if (!leaves_it_sound(end) || is_stopped_for_good(process, end) || process->engine->phase != READY)
        process->retired = true;
    if (end->gone || !process->retired || process->turns > 1 || process->requests) {
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
    .on_state = pool_on_state,
    .on_ask = pool_on_ask,
    .on_unask = pool_on_unask,
    .on_elicited = pool_on_elicited,
    .on_request = pool_on_request,
    .on_usage = pool_on_usage,
    .on_result = pool_on_result,
    .on_changed = pool_on_changed,
    .on_told = pool_on_told,
    .on_turn_end = pool_on_turn_end,
};

/* ---- which process ---- */

static bool same_list(const char *const *a, const char *const *b) {
    size_t i = 0;
    if (!a || !b)
        return a == b;
    while (a[i] && b[i] && strcmp(a[i], b[i]) == 0)
        i++;
    return !a[i] && !b[i];
}

bool weft__pool_same_agent(const weft_agent *a, const weft_agent *b) {
    return a == b || (weft__texts_equal(a->name, b->name) && weft__texts_equal(a->driver, b->driver) &&
                      same_list(a->argv, b->argv) && same_list(a->env, b->env) && a->outside == b->outside &&
                      a->idle_ms == b->idle_ms && a->wire == b->wire && a->runner == b->runner);
}

static const weft_driver *driver_named(const weft_engine *engine, const char *name) {
    for (const weft_driver *const *driver = engine->opts.drivers; driver && *driver; driver++)
        if (strcmp((*driver)->name, name) == 0)
            return *driver;
    return NULL;
}

const weft_driver *weft__pool_driver(const weft_engine *engine, const weft_agent *agent) {
    return agent->runner ? &weft__driver_runner : driver_named(engine, agent->driver);
}

bool weft__pool_has_place(const pool_process *process, const weft_agent *agent) {
    size_t most = agent->max_turns ? agent->max_turns : 1;
    return !process->retired && process->turns < most && weft__pool_same_agent(process->agent, agent);
}

/* A task on its own is not given to a process that is only there for conversations: what it starts must end with it. */
static bool may_be_kept(const weft_engine *engine, const weft_agent *agent, bool talks) {
    return idle_ms(engine, agent, talks) > 0;
}

static pool_session *find_idle_session(const weft_engine *engine, const weft_agent *agent, const char *id) {
    for (weft_link *link = engine->processes.next; link != &engine->processes; link = link->next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        for (weft_link *at = process->sessions.next; at != &process->sessions; at = at->next) {
            pool_session *session = WEFT_CONTAINER(at, pool_session, link);
            if (!session->run && !session->opening && weft__pool_has_place(process, agent) && strcmp(session->id, id) == 0)
                return session;
        }
    }
    return NULL;
}

pool_process *weft__pool_process_find(const weft_engine *engine, const weft_agent *agent) {
    pool_process *best = NULL;
    for (weft_link *link = engine->processes.next; link != &engine->processes; link = link->next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        if (weft__pool_has_place(process, agent) && (!best || process->turns < best->turns))
            best = process;
    }
    return best;
}

/* ---- opening ---- */

static pool_process *new_process(weft_engine *engine, const weft_agent *agent, const weft_driver *driver, bool talks) {
    pool_process *made = weft__zalloc(engine->alloc, sizeof *made);
    if (!made)
        return NULL;
    made->engine = engine;
    made->agent = agent;
    made->driver = driver;
    made->talks = talks;
    made->retired = driver->one_turn || !may_be_kept(engine, agent, talks);
    weft__list_init(&made->sessions);
    weft__list_push(&engine->processes, &made->link);
    weft__timer_init(&made->idle, idle_over);
    weft__later_init(&made->freeing, free_ended);
    return made;
}

int weft__pool_process_open(weft_engine *engine, const weft_agent *agent, const char *task, bool talks, pool_process **ret) {
    const weft_driver *driver = weft__pool_driver(engine, agent);
    pool_process *made = driver ? new_process(engine, agent, driver, talks) : NULL;
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
        weft__pool_process_free(made);
        return r;
    }
    engine->processes_started++;
    *ret = made;
    return 0;
}

static void close_oldest_session(pool_process *process) {
    pool_session *oldest = WEFT_CONTAINER(process->sessions.next, pool_session, link);
    if (process->session_count >= MOST_SESSIONS && !oldest->run && !oldest->opening)
        weft__pool_session_close(oldest);
}

/* Where it works. Its folder was found beneath ours when it was created, and must still be there, without a link on the way.
 * NULL: it is gone, or leads elsewhere. */
static const char *find_folder(const weft_engine *engine, const known_session *known, char room[PATH_MAX]) {
    char found[WEFT_BENEATH_PATH];
    if (known && known->pub.isolation)
        return known->pub.worktree && engine->opts.snapshots &&
                       weft__worktree_path(engine->opts.snapshots, known->pub.worktree, room) == 0
                   ? room
                   : NULL;
    if (!known || !*known->pub.folder)
        return engine->folder;
    if (weft__beneath_folder(engine->folder, known->pub.folder, false, found) < 0)
        return NULL;
    int n = snprintf(room, PATH_MAX, "%s/%s", engine->folder, found);
    return n < PATH_MAX ? room : NULL;
}

static int parse_or_null(const weft_engine *engine, const char *text, weft_doc **ret) {
    *ret = NULL;
    return text ? weft_doc_parse(text, strlen(text), engine->alloc, ret) : 0;
}

static bool has_server_named(const weft_json *list, const char *name) {
    for (weft_iter it = weft_iterate(list); weft_next(&it);)
        if (strcmp(weft_get_str(&it.value, "name", ""), name) == 0)
            return true;
    return false;
}

/* Those that the configuration gives the agent, behind the session's own: of two with one name the session's counts. */
static int put_more_servers(weft_buf *out, const weft_alloc *alloc, const weft_json *own, const weft_json *more) {
    int r = weft__buf_put(out, alloc, "[", 1);
    if (r >= 0 && weft_count(own))
        r = weft__buf_put(out, alloc, own->text + 1, own->len - 2);
    for (weft_iter it = weft_iterate(more); r >= 0 && weft_next(&it);) {
        if (has_server_named(own, weft_get_str(&it.value, "name", "")))
            continue;
        r = weft__buf_len(out) > 1 ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__buf_put(out, alloc, it.value.text, it.value.len);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

static int add_agent_servers(const pool_process *process, weft_doc **servers) {
    const weft_engine *engine = process->engine;
    weft_buf given = {0}, all = {0};
    weft_doc *more = NULL, *joined = NULL;
    weft_json none = {0};
    if (!engine->opts.agent_servers || process->driver->one_turn)
        return 0;
    int r = engine->opts.agent_servers(engine->opts.ctx, process->agent->name, &given);
    if (r >= 0 && weft__buf_len(&given))
        r = weft_doc_parse(weft__buf_head(&given), weft__buf_len(&given), engine->alloc, &more);
    if (r >= 0 && more)
        r = put_more_servers(&all, engine->alloc, *servers ? weft_doc_root(*servers) : &none, weft_doc_root(more));
    if (r >= 0 && more)
        r = weft_doc_parse(weft__buf_head(&all), weft__buf_len(&all), engine->alloc, &joined);
    if (joined) {
        weft_doc_free(*servers);
        *servers = joined;
    }
    weft_doc_free(more);
    weft__buf_done(&given, engine->alloc);
    weft__buf_done(&all, engine->alloc);
    return r;
}

/* As it is known; must_exist: only the conversation that it is to go on with. */
static int open_in_driver(pool_session *made, const known_session *known, bool must_exist) {
    pool_process *process = made->process;
    const weft_engine *engine = process->engine;
    char room[PATH_MAX];
    weft_doc *servers = NULL, *settings = NULL;
    const char *folder = find_folder(engine, known, room);
    int r = folder ? parse_or_null(engine, known ? known->pub.servers : NULL, &servers) : -ENOTDIR;
    if (r >= 0)
        r = add_agent_servers(process, &servers);
    if (r >= 0)
        r = parse_or_null(engine, known ? known->pub.settings : NULL, &settings);
    if (r >= 0 && settings &&
        !(made->settings = weft__strndup(engine->alloc, known->pub.settings, strlen(known->pub.settings))))
        r = -ENOMEM;
    if (r >= 0)
        r = process->driver->session(process->handle,
                                     &(weft_session_spec){
                                         .folder = folder,
                                         .agent_session = known ? known->pub.agent_session : NULL,
                                         .must_exist = must_exist,
                                         .mcp_servers = servers ? weft_doc_root(servers) : NULL,
                                         .settings = settings ? weft_doc_root(settings) : NULL,
                                     },
                                     &session_host, made, &made->handle);
    weft_doc_free(servers);
    weft_doc_free(settings);
    return r;
}

int weft__pool_session_open(pool_process *process, const known_session *known, const char *id, bool must_exist,
                            pool_session **ret) {
    size_t size = strlen(id) + 1;
    close_oldest_session(process);
    pool_session *made = weft__zalloc(process->engine->alloc, sizeof *made + size);
    if (!made)
        return -ENOMEM;
    memcpy(made->id, id, size);
    made->process = process;
    weft__list_push(&process->sessions, &made->link);
    process->session_count++;
    /* Somebody connected keeps nothing of a session, and no task goes on with one. */
    made->stale = process->agent->wire != NULL || process->agent->runner != NULL;
    process->retired |= !made->stale && ++process->opened >= MOST_OPENED;
    int r = open_in_driver(made, known, must_exist);
    if (r < 0) {
        made->handle = NULL;
        weft__pool_session_close(made);
        return r;
    }
    *ret = made;
    return 0;
}

/* ---- a turn ---- */

static int prompt_session(pool_session *session, struct run *run, const weft_turn_spec *turn) {
    pool_process *process = session->process;
    weft__pool_turn_begin(session, run);
    int r = process->driver->prompt(session->handle, turn);
    if (r < 0)
        leave_turn(session);
    else if (process->pid)
        weft__run_process(run, process->pid);
    return r;
}

/* A process that is busy with another turn may have it: from now on that knows less than the new one. */
void weft__pool_close(weft_engine *engine, const char *id) {
    for (weft_link *link = engine->processes.next; link != &engine->processes; link = link->next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        for (weft_link *at = process->sessions.next, *next; at != &process->sessions; at = next) {
            pool_session *session = WEFT_CONTAINER(at, pool_session, link);
            next = at->next;
            if (!session->run && !session->opening && strcmp(session->id, id) == 0)
                weft__pool_session_close(session);
        }
    }
}

static int prompt_in(pool_process *process, struct run *run, const weft_turn_spec *turn, pool_session **ret) {
    const known_task *task = run->task;
    weft__pool_close(process->engine, task->pub.session);
    int r = weft__pool_session_open(process, task->session, task->pub.session, false, ret);
    return r < 0 ? r : prompt_session(*ret, run, turn);
}

/* One that lives may be about to die: then it takes no turn, and a new one does. */
static bool prompt_living(weft_engine *engine, struct run *run, const weft_turn_spec *turn, pool_session **ret) {
    bool talks = weft__task_is_talk(&run->task->pub), kept = may_be_kept(engine, run->agent, talks);
    pool_session *session = kept ? find_idle_session(engine, run->agent, run->task->pub.session) : NULL;
    pool_process *process = session ? session->process : kept ? weft__pool_process_find(engine, run->agent) : NULL;
    if (!process)
        return false;
    process->talks |= talks;
    int r = session ? prompt_session(session, run, turn) : prompt_in(process, run, turn, &session);
    if (r >= 0)
        *ret = session;
    else
        weft__pool_process_retire(process);
    return r >= 0;
}

int weft__pool_prompt(weft_engine *engine, struct run *run, const weft_turn_spec *turn, pool_session **ret) {
    pool_process *process;
    pool_session *session;
    char room[PATH_MAX];
    if (!find_folder(engine, run->task->session, room))
        return -ENOTDIR;
    if (prompt_living(engine, run, turn, ret))
        return 0;
    int r = weft__pool_process_open(engine, run->agent, turn->task, weft__task_is_talk(&run->task->pub), &process);
    if (r < 0)
        return r;
    r = prompt_in(process, run, turn, &session);
    if (r < 0)
        weft__pool_process_free(process);
    else
        *ret = session;
    return r < 0 ? r : 0;
}

int weft__pool_answer(pool_session *session, const char *key, const char *option) {
    return session->leaving ? -ENOENT : session->process->driver->answer(session->handle, key, option);
}

int weft__pool_accept(pool_session *session, const char *key, const weft_json *content) {
    const weft_driver *driver = session->process->driver;
    if (session->leaving)
        return -ENOENT;
    return driver->accept ? driver->accept(session->handle, key, content) : driver->answer(session->handle, key, "accept");
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

void weft__pool_kept(pool_session *session, uint64_t at) {
    const weft_driver *driver = session->process->driver;
    if (driver->kept && !session->leaving)
        driver->kept(session->handle, at);
}

void weft__pool_let_go(pool_session *session) {
    pool_process *process = session->process;
    leave_turn(session);
    weft__pool_session_close(session);
    weft__pool_process_retire(process);
}

void weft__pool_forget_run(pool_session *session) {
    leave_turn(session);
    session->process->retired = true;
}

/* ---- all of them ---- */

void weft__pool_init(weft_engine *engine) {
    weft__list_init(&engine->processes);
    weft__pool_requests_init(engine);
}

/* Retiring calls nobody, but the driver may end a process at once: the next one is looked up before. */
void weft__pool_recheck(weft_engine *engine) {
    for (weft_link *link = engine->processes.next, *next; link != &engine->processes; link = next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        const weft_agent *now = weft__agent_known(engine, process->agent->name);
        next = link->next;
        if (!now || !weft__pool_same_agent(now, process->agent) || !may_be_kept(engine, now, process->talks))
            weft__pool_process_retire(process);
    }
}

void weft__pool_stop(weft_engine *engine, bool force) {
    for (weft_link *link = engine->processes.next, *next; link != &engine->processes; link = next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        next = link->next;
        process->retired = true;
        if (!process->turns && (force || !process->ending))
            end_process(process, force); /* requests under way fail */
    }
}

void weft__pool_drop(weft_engine *engine) {
    while (!weft__list_empty(&engine->processes))
        weft__pool_process_free(WEFT_CONTAINER(engine->processes.next, pool_process, link));
    weft__pool_requests_tell(engine);
}

weft_engine_figures weft__engine_figures(const weft_engine *engine) {
    weft_engine_figures ret = {.sessions = engine->session_count,
                               .questions = engine->question_count,
                               .processes_started = engine->processes_started};
    weft_open_terminal terminal;
    for (const weft_link *at = engine->processes.next; at != &engine->processes; at = at->next) {
        ret.processes++;
        ret.turns += WEFT_CONTAINER(at, pool_process, link)->turns;
    }
    while (weft__terminal_nth(engine, ret.terminals, &terminal))
        ret.terminals++;
    return ret;
}
