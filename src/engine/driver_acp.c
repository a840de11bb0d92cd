/* Agents that speak the Agent Client Protocol over their stdio. This file has the life of a run: its process, and that all
 * of it goes. The conversation is in acp_talk.c.
 *
 *   INITIALIZING ──answered──▶ OPENING ──session──▶ PROMPTING     acp_talk.c
 *   any of them ──turn over, refused, output ended──▶ LEAVING     weft__acp_leave()
 *   any of them ──process gone──▶ OVER                            on_process_end() */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "acp_run.h"
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
static int64_t turn_of_grace(int64_t grace_ms) {
    int64_t third = (grace_ms > 0 ? grace_ms : GRACE_MS) / 3;
    return third < CANCEL_MS ? third : CANCEL_MS;
}

static int64_t rest_of_grace(int64_t grace_ms) {
    int64_t all = grace_ms > 0 ? grace_ms : GRACE_MS, third = all / 3, rest = all - turn_of_grace(grace_ms) - LEAVE_MS;
    return rest > third ? rest : third + 1;
}

/* ---- memory ---- */

void weft__acp_hold(weft_run *run) {
    run->holds++;
}

void weft__acp_release(weft_run *run) {
    const weft_alloc *alloc = run->alloc;
    if (--run->holds)
        return;
    weft__output_done(&run->err);
    weft__buf_done(&run->err_tail, alloc);
    weft__buf_done(&run->auth, alloc);
    weft__free(alloc, run->folder);
    weft__free(alloc, run->prompt);
    weft__free(alloc, run->session);
    weft__free(alloc, run->error);
    weft__free(alloc, run->stop_reason);
    weft__free(alloc, run);
}

/* ---- the conversation is over ---- */

static void hang_up(weft_run *run) {
    weft_peer *peer = run->peer;
    run->peer = NULL;
    weft__acp_asks_cancel(run); /* into what is still being sent */
    weft_peer_free(peer);
}

/* ---- the process ---- */

static void wait_ms(weft_run *run, int64_t ms) {
    weft__timer_set(run->loop, &run->timer, weft__add_ms(weft__loop_fresh_now(run->loop), ms));
}

/* What it wrote before it ended may still be in the pipe, and may be the end of its turn: on_state (acp_talk.c) comes when
 * all of it was read. */
static void wait_for_end_of_pipe(weft_run *run) {
    run->looks = LOOKS;
    wait_ms(run, LOOK_MS);
}

/* The host hears of the process before it hears from it, and hears nothing while it wants to. */
static void heed(weft_run *run) {
    bool now = run->started && !run->paused;
    if (run->peer)
        weft_peer_pause(run->peer, !now);
    weft__acp_stderr_heed(run, now);
    if (now && run->gone && run->peer)
        wait_for_end_of_pipe(run);
}

static void on_process_start(void *ctx, pid_t pid) {
    weft_run *run = ctx;
    weft__acp_hold(run);
    run->started = true;
    heed(run);
    run->host.on_process(run->ctx, pid);
    weft__acp_release(run);
}

/* Everything that could call us again. */
static void shut(weft_run *run) {
    weft__timer_stop(run->loop, &run->timer);
    weft__later_cancel(&run->later);
    if (run->peer)
        hang_up(run);
    weft__acp_stderr_close(run);
    run->service = weft_service_unref(run->service);
    run->process = weft__process_free(run->process);
}

/* The process is gone and its last words have been heard. */
static void finish(weft_run *run) {
    if (run->state == WEFT_ACP_OVER)
        return;
    weft__timer_stop(run->loop, &run->timer);
    weft__acp_stderr_drain(run);
    if (!run->freed)
        weft__acp_finish(run, &run->process_end);
}

static void on_process_end(void *ctx, const weft_process_end *end) {
    weft_run *run = ctx;
    weft__acp_hold(run);
    run->gone = true;
    run->process_end = *end;
    if (run->peer && run->started)
        wait_for_end_of_pipe(run);
    else
        finish(run);
    weft__acp_release(run);
}

static void stop(weft_run *run, bool force) {
    if (run->gone)
        return;
    run->stopped = true;
    weft__process_stop(run->process, force);
}

/* ---- leaving ---- */

static void hang_up_and_wait(weft_run *run, int64_t ms) {
    run->state = WEFT_ACP_LEAVING;
    hang_up(run);
    wait_ms(run, ms);
}

void weft__acp_leave(weft_run *run) {
    if (run->freed || run->state >= WEFT_ACP_LEAVING)
        return;
    weft__acp_hold(run);
    hang_up_and_wait(run, LEAVE_MS);
    if (run->gone)
        finish(run);
    weft__acp_release(run);
}

/* true: there may be more in the pipe. While the host does not want it, we are called again when it does. */
static bool look_again(weft_run *run) {
    if (!run->gone)
        return false;
    if (run->paused)
        return !run->cancelling;
    if (run->looks-- <= 0)
        return false;
    wait_ms(run, LOOK_MS);
    return true;
}

/* Somebody has had his time: the agent, to end its turn or to exit; whoever holds its pipe, when it is gone. */
static void on_due(weft_timer *timer) {
    weft_run *run = WEFT_CONTAINER(timer, weft_run, timer);
    if (look_again(run))
        return;
    if (run->cancelling)
        weft__acp_decide_cancelled(run);
    run->deaf = !run->decided;
    weft__acp_hold(run);
    weft__acp_leave(run);
    if (!run->freed)
        stop(run, false);
    weft__acp_release(run);
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

static int start_process(weft_run *run, const weft_run_spec *spec, const char *const *argv, int ret_fds[3]) {
    char task[256];
    snprintf(task, sizeof task, "WEFT_TASK_ID=%s", spec->task ? spec->task : "");
    const char **env = make_env(spec->agent, task, spec->alloc);
    if (!env)
        return -ENOMEM;
    weft_process_opts opts = {
        .loop = spec->loop,
        .alloc = spec->alloc,
        .guard = spec->program,
        .argv = argv,
        .env = env,
        .folder = spec->folder,
        .grace_ms = rest_of_grace(spec->grace_ms),
        .ctx = run,
        .on_start = on_process_start,
        .on_end = on_process_end,
    };
    int r = weft__process_start(&opts, &run->process, ret_fds);
    weft__free(spec->alloc, env);
    return r;
}

static int copy(const weft_run *run, const char *text, char **ret) {
    *ret = text ? weft__strndup(run->alloc, text, strlen(text)) : NULL;
    return text && !*ret ? -ENOMEM : 0;
}

static int copy_spec(weft_run *run, const weft_run_spec *spec) {
    int r = copy(run, spec->folder, &run->folder);
    if (r == 0)
        r = copy(run, spec->prompt, &run->prompt);
    if (r == 0)
        r = copy(run, spec->agent_session, &run->session);
    return r;
}

static int begin(weft_run *run, const weft_run_spec *spec, const char *const *argv) {
    int fds[3];
    int r = start_process(run, spec, argv, fds);
    if (r < 0)
        return r;
    r = weft__acp_stderr_open(run, fds[2]);
    if (r < 0) {
        close(fds[0]);
        close(fds[1]);
        return r;
    }
    return weft__acp_talk(run, fds[1], fds[0]);
}

weft_run *weft__acp_free(weft_run *run) {
    if (!run)
        return NULL;
    run->freed = true;
    shut(run);
    weft__acp_release(run);
    return NULL;
}

int weft__acp_new(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret) {
    weft_run *run = weft__zalloc(spec->alloc, sizeof *run);
    if (!run)
        return -ENOMEM;
    run->loop = spec->loop;
    run->alloc = spec->alloc;
    run->agent = spec->agent;
    run->host = *host;
    run->ctx = ctx;
    run->grace_ms = spec->grace_ms;
    run->holds = 1;
    weft__list_init(&run->asks);
    weft__timer_init(&run->timer, on_due);
    weft__acp_talk_init(run);
    weft__acp_stderr_init(run);
    int r = copy_spec(run, spec);
    if (r < 0) {
        weft__acp_free(run);
        return r;
    }
    *ret = run;
    return 0;
}

int weft__acp_start(const weft_run_spec *spec, const char *const *argv, const weft_run_host *host, void *ctx,
                    weft_run **ret) {
    weft_run *run;
    int r = weft__acp_new(spec, host, ctx, &run);
    if (r < 0)
        return r;
    r = begin(run, spec, argv);
    if (r < 0) {
        weft__acp_free(run);
        return r;
    }
    *ret = run;
    return 0;
}

/* ---- the table ---- */

static int acp_start(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret) {
    if (!spec->agent->argv || !spec->agent->argv[0])
        return -EINVAL;
    return weft__acp_start(spec, spec->agent->argv, host, ctx, ret);
}

/* In ACP's own words first: the agent ends its turn and may put its things in order. Before there is a turn there is nothing
 * to put in order. */
void weft__acp_cancel(weft_run *run, bool force) {
    int64_t ms = turn_of_grace(run->grace_ms);
    bool first = !run->cancelling;
    if (run->state == WEFT_ACP_OVER)
        return;
    run->cancelling = true;
    if (!force && run->state == WEFT_ACP_PROMPTING && run->peer) {
        if (!first)
            return;
        weft_notify(run->peer, "session/cancel", WEFT_OBJ({"sessionId", weft_str(run->session)}));
        weft__acp_asks_cancel(run);
        wait_ms(run, ms);
        return;
    }
    weft__acp_decide_cancelled(run);
    if (run->state < WEFT_ACP_LEAVING && !run->gone)
        hang_up_and_wait(run, LEAVE_MS);
    stop(run, force);
}

void weft__acp_pause(weft_run *run, bool paused) {
    run->paused = paused;
    heed(run);
}

const weft_driver weft__driver_acp = {
    .name = "acp",
    .start = acp_start,
    .answer = weft__acp_answer,
    .cancel = weft__acp_cancel,
    .pause = weft__acp_pause,
    .free = weft__acp_free,
};
