/* One prompt in one process, over the table of any driver: opened, prompted, and told to leave when its turn is over. on_end
 * comes when the process has gone. */
#ifndef AGENTS_ONE_RUN_H
#define AGENTS_ONE_RUN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_single.h"

/* What agents may ask of the next run's client; NULL: nothing. */
static const weft_passage *one_run_passages;

typedef struct one_run {
    const weft_driver *driver;
    weft_driver_process *process;
    weft_driver_session *session;
    weft_run_host host;
    void *ctx;
    bool leaving, freed;
    int calls;
    weft_turn_end end; /* texts are ours */
    char *texts[3];
} one_run;

static inline void one_run_release(one_run *run) {
    for (int i = 0; i < 3; i++)
        free(run->texts[i]);
    free(run);
}

static inline one_run *one_run_free(one_run *run) {
    if (!run)
        return NULL;
    run->freed = true;
    run->process = run->driver->free(run->process);
    if (!run->calls)
        one_run_release(run);
    return NULL;
}

/* A callback that frees it is followed by nothing. */
#define ONE_RUN_TELL(run, call)                                                                                             \
    do {                                                                                                                    \
        (run)->calls++;                                                                                                     \
        call;                                                                                                               \
        if (--(run)->calls == 0 && (run)->freed)                                                                            \
            one_run_release(run);                                                                                           \
    } while (0)

static inline void one_run_process(void *ctx, pid_t pid) {
    one_run *run = ctx;
    if (run->host.on_process)
        ONE_RUN_TELL(run, run->host.on_process(run->ctx, pid));
}

static inline void one_run_session(void *ctx, const weft_session_info *info) {
    one_run *run = ctx;
    if (run->host.on_session)
        ONE_RUN_TELL(run, run->host.on_session(run->ctx, info->agent_session));
}

static inline void one_run_output(void *ctx, weft_run_stream stream, weft_bytes text) {
    one_run *run = ctx;
    ONE_RUN_TELL(run, run->host.on_output(run->ctx, stream, text));
}

static inline void one_run_update(void *ctx, const weft_json *update) {
    one_run *run = ctx;
    ONE_RUN_TELL(run, run->host.on_update(run->ctx, update));
}

static inline void one_run_ask(void *ctx, const char *key, weft_val question) {
    one_run *run = ctx;
    ONE_RUN_TELL(run, run->host.on_ask(run->ctx, key, question));
}

static inline void one_run_unask(void *ctx, const char *key) {
    one_run *run = ctx;
    ONE_RUN_TELL(run, run->host.on_unask(run->ctx, key));
}

/* What was done at a URL, by its id; the last one of all runs. */
static char one_run_elicitation[64];

static inline void one_run_elicited(void *ctx, const char *elicitation) {
    (void) ctx;
    snprintf(one_run_elicitation, sizeof one_run_elicitation, "%s", elicitation);
}

static inline int one_run_request(void *ctx, const weft_passage *row, weft_req *req, const weft_json *params) {
    one_run *run = ctx;
    return row->handler(run->ctx, &(weft_passage_call){.session = "session-1", .task = "task-1"}, req, params);
}

static inline void one_run_turn_end(void *ctx, const weft_turn_end *end) {
    one_run *run = ctx;
    run->end = *end;
    const char **texts[] = {&run->end.reason, &run->end.error, &run->end.stop_reason};
    for (int i = 0; i < 3; i++)
        *texts[i] = run->texts[i] = *texts[i] ? strdup(*texts[i]) : NULL;
    run->leaving = true;
    if (!end->gone)
        run->driver->stop(run->process, NULL, false);
}

static inline void one_run_end(void *ctx, int exit_code, int signal) {
    one_run *run = ctx;
    run->end.exit_code = exit_code;
    run->end.signal = signal;
    ONE_RUN_TELL(run, run->host.on_end(run->ctx, &run->end));
}

static inline int one_run_answer(one_run *run, const char *key, const char *option) {
    return run->driver->answer(run->session, key, option);
}

/* content is JSON. */
static inline int one_run_accept(one_run *run, const char *key, const char *content) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(content, strlen(content), NULL, &doc);
    if (r >= 0)
        r = run->driver->accept(run->session, key, weft_doc_root(doc));
    weft_doc_free(doc);
    return r;
}

static inline void one_run_cancel(one_run *run, bool force) {
    run->driver->stop(run->process, run->leaving ? NULL : run->session, force);
}

static inline void one_run_pause(one_run *run, bool paused) {
    run->driver->pause(run->process, paused);
}

static inline int one_run_open(one_run *run, const weft_run_spec *spec) {
    static const weft_process_host process_host = {one_run_process, one_run_end};
    static const weft_session_host session_host = {
        .on_session = one_run_session,
        .on_output = one_run_output,
        .on_update = one_run_update,
        .on_ask = one_run_ask,
        .on_unask = one_run_unask,
        .on_elicited = one_run_elicited,
        .on_request = one_run_request,
        .on_turn_end = one_run_turn_end,
    };
    int r = run->driver->open(&(weft_process_spec){.loop = spec->loop,
                                                   .alloc = spec->alloc,
                                                   .agent = spec->agent,
                                                   .program = spec->program,
                                                   .folder = spec->folder,
                                                   .task = spec->task,
                                                   .grace_ms = spec->grace_ms,
                                                   .passages = one_run_passages},
                              &process_host, run, &run->process);
    if (r >= 0)
        r = run->driver->session(run->process, &(weft_session_spec){.agent_session = spec->agent_session}, &session_host,
                                 run, &run->session);
    if (r >= 0)
        r = run->driver->prompt(run->session,
                                &(weft_turn_spec){.task = spec->task, .prompt = spec->prompt, .persona = spec->persona});
    return r;
}

static inline int one_run_start(const weft_driver *driver, const weft_run_spec *spec, const weft_run_host *host, void *ctx,
                                one_run **ret) {
    one_run *run = calloc(1, sizeof *run);
    run->driver = driver;
    run->host = *host;
    run->ctx = ctx;
    int r = one_run_open(run, spec);
    if (r < 0) {
        one_run_free(run);
        return r;
    }
    *ret = run;
    return 0;
}

#endif
