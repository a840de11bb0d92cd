/* Drivers whose process is one turn: a prompt in, output, an exit status. Such a driver has only a run, from start to end;
 * driver_single.c makes a process, a session and a turn of it.
 *
 *     static int my_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret)
 * { return weft__single_open(&my_runs, spec, host, ctx, ret);
 *     }
 *     const weft_driver my_driver = {.name = "my", .open = my_open, WEFT_SINGLE}; */
#ifndef WEFT_DRIVER_SINGLE_H
#define WEFT_DRIVER_SINGLE_H

#include "driver.h"

typedef struct weft_run weft_run; /* each driver has its own */

/* Borrowed until start() returns, but for loop, alloc and agent. */
typedef struct weft_run_spec {
    weft_loop *loop;
    const weft_alloc *alloc;
    const weft_agent *agent;
    const char *program, *folder, *task, *prompt, *persona, *agent_session; /* as in driver.h */
    const char *traceparent, *tracestate;
    int64_t grace_ms;
} weft_run_spec;

typedef weft_turn_end weft_run_end;

/* As in driver.h; on_end is the turn's and the process's. */
typedef struct weft_run_host {
    void (*on_process)(void *ctx, pid_t pid);
    void (*on_session)(void *ctx, const char *agent_session);
    void (*on_output)(void *ctx, weft_run_stream stream, weft_bytes text);
    void (*on_update)(void *ctx, const weft_json *update);
    void (*on_ask)(void *ctx, const char *key, weft_val question);
    void (*on_unask)(void *ctx, const char *key);
    void (*on_end)(void *ctx, const weft_run_end *end);
} weft_run_host;

typedef struct weft_single {
    /* host is valid as long as the program runs. <0: nothing was started, on_end will not come. */
    int (*start)(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret);
    int (*answer)(weft_run *run, const char *key, const char *option);
    /* End it: SIGTERM to all its processes, then, after the grace time, SIGKILL. force: SIGKILL now. on_end follows. */
    void (*cancel)(weft_run *run, bool force);
    void (*pause)(weft_run *run, bool paused);
    weft_run *(*free)(weft_run *run);
} weft_single;

int weft__single_open(const weft_single *runs, const weft_process_spec *spec, const weft_process_host *host, void *ctx,
                      weft_driver_process **ret);
int weft__single_session(weft_driver_process *process, const weft_session_spec *spec, const weft_session_host *host,
                         void *ctx, weft_driver_session **ret);
int weft__single_prompt(weft_driver_session *session, const weft_turn_spec *spec);
int weft__single_answer(weft_driver_session *session, const char *key, const char *option);
void weft__single_stop(weft_driver_process *process, weft_driver_session *session, bool force);
void weft__single_pause(weft_driver_process *process, bool paused);
weft_driver_session *weft__single_close(weft_driver_session *session);
weft_driver_process *weft__single_free(weft_driver_process *process);

/* The rest of the table. */
#define WEFT_SINGLE                                                                                                         \
    .one_turn = true, .session = weft__single_session, .prompt = weft__single_prompt, .answer = weft__single_answer,        \
    .stop = weft__single_stop, .pause = weft__single_pause, .close = weft__single_close, .free = weft__single_free

#endif
