/* The inside of the driver for holders that speak the planner's protocol: driver_planner.c has the process, planner_turn.c
 * the turns, answer_shape.c what an answer must look like.
 *
 * Every callback of the host may stop, close or free anything. Whoever calls one holds the process and does not go on with
 * it when it was freed, nor with a session that was closed. */
#ifndef WEFT_PLANNER_PRIVATE_H
#define WEFT_PLANNER_PRIVATE_H

#include "answer_shape.h"
#include "buf.h"
#include "driver_planner.h"
#include "loop.h"
#include "output.h"
#include "process.h"
#include "watch.h"

/* Of what a child writes to its standard error, this much of the end belongs to the error text. */
#define PLANNER_TAIL 4096
/* What one turn may say in all: it is compared with its result. */
#define PLANNER_SAID ((size_t) 16 << 20)
#define PLANNER_STREAM_ID 256

struct weft_driver_process {
    weft_link at_wire;
    weft_loop *loop;
    const weft_alloc *alloc;
    const weft_agent *agent;
    const weft_process_host *host;
    void *ctx;
    int64_t grace_ms;
    unsigned calls; /* callbacks that are under way: what is freed or closed within one goes behind it */
    bool freed;     /* nothing is called any more */
    bool over;      /* on_end was called */
    bool ending;    /* it takes no more turns */
    bool leaving;   /* a child was asked to end: its turns end when it has */
    bool paused;
    bool silent;                  /* a child's output has ended */
    bool started, gone, stopped;  /* a child: it runs; it has ended; we asked it to */
    weft_planner_wire own, *wire; /* a child has its own. NULL: it was lost */
    weft_process *process;
    weft_process_end process_end;
    weft_service *service;
    weft_schema *executed; /* what results of execute_task must look like */
    uint64_t noise;        /* lines that were no messages */
    weft_timer timer;
    weft_later later; /* tell the end */
    weft_link sessions, closed, asks;
    int err_fd;
    weft_watch *err_watch;
    weft_output err;
    weft_buf err_tail;
};

struct planner_call; /* one that is not answered yet */

struct weft_driver_session {
    weft_link link;
    weft_driver_process *process;
    const weft_session_host *host;
    void *ctx;
    bool closed;
    bool opened;   /* the host has heard of it */
    bool busy;     /* it has a turn */
    bool executes; /* which is execute_task */
    struct planner_call *call;
    bool decided;
    weft_turn_end end;
    char *error;
    weft_later later; /* tell it */
    /* What is streamed. */
    bool streams, stream_over;
    char stream_id[PLANNER_STREAM_ID];
    uint64_t chunks;
    weft_buf said;
};

/* driver_planner.c */
/* Close its input, then let it be ended; force: now. */
void weft__planner_end_child(weft_driver_process *process, bool force);
/* Is it a program of ours? Otherwise it is somebody connected. */
static inline bool weft__planner_is_child(const weft_driver_process *process) {
    return !process->agent->wire;
}
void weft__planner_hold(weft_driver_process *process);
void weft__planner_release(weft_driver_process *process);
weft_bytes weft__planner_stderr_tail(const weft_driver_process *process);

/* planner_turn.c */
int weft__planner_session(weft_driver_process *process, const weft_session_spec *spec, const weft_session_host *host,
                          void *ctx, weft_driver_session **ret);
int weft__planner_prompt_turn(weft_driver_session *session, const weft_turn_spec *spec);
int weft__planner_ask(weft_driver_process *process, const char *method, const weft_json *params, weft_driver_done *done,
                      void *ctx);
weft_driver_session *weft__planner_close(weft_driver_session *session);
/* Its later() has something to do, as soon as the host knows of the process. */
void weft__planner_session_soon(weft_driver_session *session);
/* How its turn ended; the first to say so is right. It is told later. reason NULL: well. */
void weft__planner_decide(weft_driver_session *session, bool retryable, const char *reason, const char *format, ...)
    WEFT_PRINTF(4, 5);
/* Of all turns but this one. */
void weft__planner_decide_others(weft_driver_process *process, const weft_driver_session *but, const char *why);
/* The turn is cancelled. */
void weft__planner_cancel(weft_driver_session *session);
/* Nothing can come any more: tell the ends of all turns, and of what was asked besides. */
void weft__planner_finish_turns(weft_driver_process *process);
/* The owner frees the process. */
void weft__planner_drop_turns(weft_driver_process *process);
/* Turns that have no stream yet. */
size_t weft__planner_unnamed(const weft_driver_process *process);
/* A notification of a stream. only: where it does not say for which turn it is, it is for the one that has none yet. */
bool weft__planner_hear(weft_driver_process *process, const char *method, const weft_json *params, bool only);

#endif
