/* Agents that speak the Agent Client Protocol over their stdio. This file has the life of their process, and that all of it
 * goes. The sessions and turns in it are in acp_session.c.
 *
 *   INITIALIZING ──answered──▶ READY                              acp_talk.c
 *   any of them ──stopped, failed, output ended──▶ LEAVING        weft__acp_leave()
 *   any of them ──process gone──▶ OVER                            finish_process() */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "acp_private.h"
#include "sum.h"

/* What an agent gets to leave by itself after its input was closed, before it is asked to by signal. Some never do. */
#define LEAVE_MS 500
/* When its process is gone, its pipe ends as soon as what is in it was read. Should it not, somebody else has it open: so
 * often we look again. Each look leaves the loop a turn to read, however late that comes on a busy machine. */
#define LOOKS 5
#define LOOK_MS 100
/* What an agent gets to end its turn after it was cancelled: a third of the grace time, and no more than this. */
#define CANCEL_MS 2000
/* The whole of it, when nobody says. */
#define GRACE_MS 5000

/* ---- the grace time ---- */

/* Who was told to end is gone when it is over: the turn has the first part, the signals what is left of it. */
int64_t weft__acp_turn_grace(const weft_driver_process *process) {
    int64_t third = (process->grace_ms > 0 ? process->grace_ms : GRACE_MS) / 3;
    return third < CANCEL_MS ? third : CANCEL_MS;
}

static int64_t rest_of_grace(const weft_driver_process *process) {
    int64_t all = process->grace_ms > 0 ? process->grace_ms : GRACE_MS, third = all / 3;
    int64_t rest = all - weft__acp_turn_grace(process) - LEAVE_MS;
    return rest > third ? rest : third + 1;
}

/* ---- memory ---- */

void weft__acp_hold(weft_driver_process *process) {
    process->holds++;
}

void weft__acp_release(weft_driver_process *process) {
    const weft_alloc *alloc = process->alloc;
    if (--process->holds)
        return;
    weft__output_done(&process->err);
    weft__buf_done(&process->err_tail, alloc);
    weft__buf_done(&process->auth, alloc);
    weft__buf_done(&process->methods, alloc);
    weft__acp_shapes_free(process);
    weft__free(alloc, process->folder);
    weft__free(alloc, process);
}

/* ---- the conversation is over ---- */

static void hang_up(weft_driver_process *process) {
    weft_peer *peer = process->peer;
    process->peer = NULL;
    for (weft_link *link = process->sessions.next; link != &process->sessions; link = link->next)
        weft__acp_asks_cancel(WEFT_CONTAINER(link, weft_driver_session, link)); /* into what is still being sent */
    weft_peer_free(peer);
}

/* ---- the process ---- */

static void wait_ms(weft_driver_process *process, int64_t ms) {
    weft__timer_set(process->loop, &process->timer, weft__add_ms(weft__loop_fresh_now(process->loop), ms));
}

/* What it wrote before it ended may still be in the pipe, and may be the end of its turn: on_state (acp_talk.c) comes when
 * all of it was read. */
static void wait_for_end_of_pipe(weft_driver_process *process) {
    process->looks = LOOKS;
    wait_ms(process, LOOK_MS);
}

/* The host hears of the process before it hears from it, and hears nothing while it wants to. */
static void listen_or_pause(weft_driver_process *process) {
    bool now = process->started && !process->paused;
    if (process->peer)
        weft_peer_pause(process->peer, !now);
    weft__acp_stderr_heed(process, now);
    if (now && process->gone && process->peer)
        wait_for_end_of_pipe(process);
}

static void on_process_start(void *ctx, pid_t pid) {
    weft_driver_process *process = ctx;
    weft__acp_hold(process);
    process->started = true;
    listen_or_pause(process);
    process->host->on_process(process->ctx, pid);
    weft__acp_release(process);
}

/* Everything that could call us again. */
static void shut_process(weft_driver_process *process) {
    weft__timer_stop(process->loop, &process->timer);
    weft__later_cancel(&process->later);
    if (process->peer)
        hang_up(process);
    weft__acp_stderr_close(process);
    process->service = weft_service_unref(process->service);
    process->process = weft__process_free(process->process);
}

/* The process is gone and its last words have been heard. */
static void finish_process(weft_driver_process *process) {
    const weft_process_end *end = &process->process_end;
    if (process->state == WEFT_ACP_OVER)
        return;
    weft__timer_stop(process->loop, &process->timer);
    weft__acp_stderr_drain(process);
    weft__acp_stderr_end(process);
    if (process->freed)
        return;
    process->state = WEFT_ACP_OVER;
    weft__acp_sessions_finish(process);
    weft__acp_requests_finish(process);
    if (!process->freed)
        process->host->on_end(process->ctx, end->error < 0 ? -1 : end->exit_code, process->stopped ? 0 : end->signal);
}

static void on_process_end(void *ctx, const weft_process_end *end) {
    weft_driver_process *process = ctx;
    weft__acp_hold(process);
    process->gone = true;
    process->process_end = *end;
    if (process->peer && process->started)
        wait_for_end_of_pipe(process);
    else
        finish_process(process);
    weft__acp_release(process);
}

static void stop_processes(weft_driver_process *process, bool force) {
    if (process->gone)
        return;
    process->stopped = true;
    weft__process_stop(process->process, force);
}

/* ---- leaving ---- */

static void hang_up_and_wait(weft_driver_process *process) {
    process->state = WEFT_ACP_LEAVING;
    hang_up(process);
    wait_ms(process, LEAVE_MS);
}

void weft__acp_leave(weft_driver_process *process) {
    if (process->freed || process->state >= WEFT_ACP_LEAVING)
        return;
    weft__acp_hold(process);
    hang_up_and_wait(process);
    if (process->gone)
        finish_process(process);
    weft__acp_release(process);
}

/* true: there may be more in the pipe. While the host does not want it, we are called again when it does. */
static bool look_at_pipe_again(weft_driver_process *process) {
    if (!process->gone)
        return false;
    if (process->paused)
        return !process->ending;
    if (process->looks-- <= 0)
        return false;
    wait_ms(process, LOOK_MS);
    return true;
}

/* The time is over that the agent had to exit, or that whoever else holds its pipe had to close it. */
static void on_acp_due(weft_timer *timer) {
    weft_driver_process *process = WEFT_CONTAINER(timer, weft_driver_process, timer);
    if (look_at_pipe_again(process))
        return;
    process->deaf = !process->ending;
    weft__acp_hold(process);
    weft__acp_leave(process);
    if (!process->freed)
        stop_processes(process, false);
    weft__acp_release(process);
}

/* ---- starting ---- */

/* What the agent's configuration says, and which task this is. The list is owned, its texts are borrowed. */
static const char **make_env(const weft_agent *agent, const char *task, const weft_alloc *alloc) {
    size_t count = 0;
    while (agent->env && agent->env[count])
        count++;
    const char **env = weft__zalloc(alloc, (count + 2) * sizeof *env);
    if (!env)
        return NULL;
    for (size_t i = 0; i < count; i++)
        env[i] = agent->env[i];
    env[count] = task;
    return env;
}

static int start_process(weft_driver_process *process, const weft_process_spec *spec, const char *const *argv,
                         int ret_fds[3]) {
    char task[256];
    snprintf(task, sizeof task, "WEFT_TASK_ID=%s", spec->task ? spec->task : "");
    const char **env = make_env(spec->agent, spec->task ? task : NULL, spec->alloc);
    if (!env)
        return -ENOMEM;
    weft_process_opts opts = {
        .loop = spec->loop,
        .alloc = spec->alloc,
        .guard = spec->program,
        .argv = argv,
        .env = env,
        .folder = spec->folder,
        .grace_ms = rest_of_grace(process),
        .ctx = process,
        .on_start = on_process_start,
        .on_end = on_process_end,
    };
    int r = weft__process_start(&opts, &process->process, ret_fds);
    weft__free(spec->alloc, env);
    return r;
}

static int start_talking(weft_driver_process *process, const weft_process_spec *spec, const char *const *argv) {
    int fds[3];
    int r = start_process(process, spec, argv, fds);
    if (r < 0)
        return r;
    r = weft__acp_stderr_open(process, fds[2]);
    if (r < 0) {
        close(fds[0]);
        close(fds[1]);
        return r;
    }
    return weft__acp_talk(process, fds[1], fds[0]);
}

weft_driver_process *weft__acp_free(weft_driver_process *process) {
    if (!process || process->freed)
        return NULL;
    process->freed = true;
    shut_process(process);
    weft__acp_sessions_drop(process);
    weft__acp_requests_drop(process, NULL);
    weft__acp_release(process);
    return NULL;
}

int weft__acp_new(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret) {
    weft_driver_process *process = weft__zalloc(spec->alloc, sizeof *process);
    if (!process)
        return -ENOMEM;
    process->loop = spec->loop;
    process->alloc = spec->alloc;
    process->agent = spec->agent;
    process->host = host;
    process->ctx = ctx;
    process->grace_ms = spec->grace_ms;
    process->passages = spec->passages;
    process->holds = 1;
    weft__list_init(&process->sessions);
    weft__list_init(&process->requests);
    weft__timer_init(&process->timer, on_acp_due);
    weft__acp_talk_init(process);
    weft__acp_stderr_init(process);
    process->folder = weft__strndup(spec->alloc, spec->folder, strlen(spec->folder));
    if (!process->folder) {
        weft__acp_free(process);
        return -ENOMEM;
    }
    *ret = process;
    return 0;
}

int weft__acp_start(const weft_process_spec *spec, const char *const *argv, const weft_process_host *host, void *ctx,
                    weft_driver_process **ret) {
    weft_driver_process *process;
    int r = weft__acp_new(spec, host, ctx, &process);
    if (r < 0)
        return r;
    r = start_talking(process, spec, argv);
    if (r < 0) {
        weft__acp_free(process);
        return r;
    }
    *ret = process;
    return 0;
}

/* ---- the table ---- */

static int acp_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret) {
    if (!spec->agent->argv || !spec->agent->argv[0])
        return -EINVAL;
    return weft__acp_start(spec, spec->agent->argv, host, ctx, ret);
}

/* Nothing is called from here: the end of a process that has gone already is found by the timer. */
static void end_process(weft_driver_process *process) {
    process->ending = true;
    if (process->state >= WEFT_ACP_LEAVING)
        return;
    if (process->gone)
        wait_ms(process, 0);
    else
        hang_up_and_wait(process);
}

static void stop_whole_process(weft_driver_process *process, bool force) {
    weft__acp_decide_all(process, true, "agentEnded", "the process of %s was ended in the middle of this turn",
                         process->agent->name);
    end_process(process);
    if (force)
        stop_processes(process, true);
}

void weft__acp_stop_for(weft_driver_session *session, bool force) {
    weft_driver_process *process = session->process;
    weft__acp_decide_cancelled(session);
    weft__acp_decide_all(process, true, "agentEnded",
                         "the process of %s was ended because another turn in it was cancelled and did not end",
                         process->agent->name);
    end_process(process);
    stop_processes(process, force);
}

/* In ACP's own words first: the agent ends its turn and may put its things in order. Before there is a turn there is nothing
 * to put in order. */
void weft__acp_stop(weft_driver_process *process, weft_driver_session *session, bool force) {
    if (process->freed || process->state == WEFT_ACP_OVER)
        return;
    if (!session)
        stop_whole_process(process, force);
    else if (session->turn != WEFT_ACP_IDLE && (force || weft__acp_cancel_politely(session)))
        weft__acp_stop_for(session, force);
}

void weft__acp_pause(weft_driver_process *process, bool paused) {
    process->paused = paused;
    listen_or_pause(process);
}

const weft_driver weft__driver_acp = {.name = "acp", .open = acp_open, WEFT_ACP_TABLE};
