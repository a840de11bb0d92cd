/* A process, a session and a turn, made of one run. The process is started with its turn and ends with it.
 *
 *     OPENED ──prompt──▶ RUNNING ──on_end of the run──▶ OVER      a process that is stopped while OPENED is OVER as well */
#include "driver_single.h"

#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "list.h"
#include "loop.h"

struct weft_driver_session {
    weft_driver_process *process;
    const weft_session_host *host;
    void *ctx;
    char *folder, *agent_session;
    bool open;
};

struct weft_driver_process {
    const weft_single *runs;
    weft_loop *loop;
    const weft_alloc *alloc;
    const weft_agent *agent;
    char *program, *folder;
    int64_t grace_ms;
    const weft_process_host *host;
    void *ctx;
    weft_driver_session session;
    weft_run *run;
    weft_later never_ran; /* it was stopped before it had a turn */
    bool over, freed, paused;
    int calls; /* callbacks that are under way: freed within one, it is freed behind it */
};

/* ---- memory ---- */

static void close_single_session(weft_driver_session *session) {
    const weft_alloc *alloc = session->process->alloc;
    session->folder = weft__free(alloc, session->folder);
    session->agent_session = weft__free(alloc, session->agent_session);
    session->open = false;
}

static void release_single(weft_driver_process *process) {
    close_single_session(&process->session);
    weft__free(process->alloc, process->program);
    weft__free(process->alloc, process->folder);
    weft__free(process->alloc, process);
}

static void leave_single(weft_driver_process *process) {
    if (--process->calls == 0 && process->freed)
        release_single(process);
}

/* ---- what the run tells ---- */

static void single_on_process(void *ctx, pid_t pid) {
    weft_driver_process *process = ctx;
    process->host->on_process(process->ctx, pid);
}

static void single_on_session(void *ctx, const char *agent_session) {
    const weft_driver_session *session = &((weft_driver_process *) ctx)->session;
    if (session->open)
        session->host->on_session(session->ctx, &(weft_session_info){.agent_session = agent_session});
}

static void single_on_output(void *ctx, weft_run_stream stream, weft_bytes text) {
    const weft_driver_session *session = &((weft_driver_process *) ctx)->session;
    if (session->open)
        session->host->on_output(session->ctx, stream, text);
}

static void single_on_update(void *ctx, const weft_json *update) {
    const weft_driver_session *session = &((weft_driver_process *) ctx)->session;
    if (session->open)
        session->host->on_update(session->ctx, update);
}

static void single_on_ask(void *ctx, const char *key, weft_val question) {
    const weft_driver_session *session = &((weft_driver_process *) ctx)->session;
    if (session->open)
        session->host->on_ask(session->ctx, key, question);
}

static void single_on_unask(void *ctx, const char *key) {
    const weft_driver_session *session = &((weft_driver_process *) ctx)->session;
    if (session->open)
        session->host->on_unask(session->ctx, key);
}

static void single_on_end(void *ctx, const weft_run_end *end) {
    weft_driver_process *process = ctx;
    const weft_driver_session *session = &process->session;
    weft_turn_end told = *end;
    told.gone = true;
    process->calls++;
    process->over = true;
    if (session->open)
        session->host->on_turn_end(session->ctx, &told);
    if (!process->freed)
        process->host->on_end(process->ctx, end->exit_code, end->signal);
    leave_single(process);
}

static const weft_run_host single_host = {
    .on_process = single_on_process,
    .on_session = single_on_session,
    .on_output = single_on_output,
    .on_update = single_on_update,
    .on_ask = single_on_ask,
    .on_unask = single_on_unask,
    .on_end = single_on_end,
};

/* ---- the table ---- */

static void on_never_ran(weft_later *later) {
    weft_driver_process *process = WEFT_CONTAINER(later, weft_driver_process, never_ran);
    process->host->on_end(process->ctx, -1, 0);
}

int weft__single_open(const weft_single *runs, const weft_process_spec *spec, const weft_process_host *host, void *ctx,
                      weft_driver_process **ret) {
    weft_driver_process *process = weft__zalloc(spec->alloc, sizeof *process);
    if (!process)
        return -ENOMEM;
    process->runs = runs;
    process->loop = spec->loop;
    process->alloc = spec->alloc;
    process->agent = spec->agent;
    process->grace_ms = spec->grace_ms;
    process->host = host;
    process->ctx = ctx;
    process->session.process = process;
    weft__later_init(&process->never_ran, on_never_ran);
    if (weft__copy_or_null(spec->alloc, spec->program, &process->program) < 0 ||
        weft__copy_or_null(spec->alloc, spec->folder, &process->folder) < 0) {
        release_single(process);
        return -ENOMEM;
    }
    *ret = process;
    return 0;
}

int weft__single_session(weft_driver_process *process, const weft_session_spec *spec, const weft_session_host *host,
                         void *ctx, weft_driver_session **ret) {
    weft_driver_session *session = &process->session;
    if (session->open || process->run || process->over)
        return process->over ? -EPIPE : -EBUSY;
    session->host = host;
    session->ctx = ctx;
    session->open = true;
    if (weft__copy_or_null(process->alloc, spec->folder, &session->folder) < 0 ||
        weft__copy_or_null(process->alloc, spec->agent_session, &session->agent_session) < 0) {
        close_single_session(session);
        return -ENOMEM;
    }
    *ret = session;
    return 0;
}

int weft__single_prompt(weft_driver_session *session, const weft_turn_spec *spec) {
    weft_driver_process *process = session->process;
    if (!spec->prompt)
        return -ENOTSUP;
    if (process->run || process->over)
        return process->over ? -EPIPE : -EBUSY;
    int r = process->runs->start(
        &(weft_run_spec){
            .loop = process->loop,
            .alloc = process->alloc,
            .agent = process->agent,
            .program = process->program,
            .folder = session->folder ? session->folder : process->folder,
            .task = spec->task,
            .prompt = spec->prompt,
            .persona = spec->persona,
            .traceparent = spec->traceparent,
            .tracestate = spec->tracestate,
            .agent_session = session->agent_session,
            .grace_ms = process->grace_ms,
        },
        &single_host, process, &process->run);
    if (r < 0)
        process->run = NULL;
    else if (process->paused)
        process->runs->pause(process->run, true);
    return r;
}

int weft__single_answer(weft_driver_session *session, const char *key, const char *option) {
    weft_driver_process *process = session->process;
    return process->run && !process->over ? process->runs->answer(process->run, key, option) : -ENOENT;
}

void weft__single_stop(weft_driver_process *process, weft_driver_session *session, bool force) {
    if (process->over)
        return;
    if (process->run)
        process->runs->cancel(process->run, force);
    else if (!session) {
        process->over = true;
        weft__later(process->loop, &process->never_ran);
    }
}

void weft__single_pause(weft_driver_process *process, bool paused) {
    process->paused = paused;
    if (process->run && !process->over)
        process->runs->pause(process->run, paused);
}

weft_driver_session *weft__single_close(weft_driver_session *session) {
    if (!session)
        return NULL;
    weft_driver_process *process = session->process;
    close_single_session(session);
    if (process->run && !process->over)
        process->runs->cancel(process->run, false);
    return NULL;
}

weft_driver_process *weft__single_free(weft_driver_process *process) {
    if (!process || process->freed)
        return NULL;
    process->freed = true;
    process->session.open = false;
    weft__later_cancel(&process->never_ran);
    if (process->run)
        process->run = process->runs->free(process->run);
    if (!process->calls)
        release_single(process);
    return NULL;
}
