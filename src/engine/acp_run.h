/* One run of an ACP agent, for the files of the driver only: driver_acp.c has its life, acp_talk.c the conversation,
 * acp_asks.c the questions, acp_stderr.c what it says besides, acp_end.c how it ended.
 *
 * Every callback of the host may cancel or free the run. Whoever calls one holds the run (weft__acp_hold) and does not go on
 * with it when it was freed. */
#ifndef WEFT_ACP_RUN_H
#define WEFT_ACP_RUN_H

#include "buf.h"
#include "driver.h"
#include "list.h"
#include "loop.h"
#include "output.h"
#include "process.h"
#include "watch.h"

/* Of what the agent writes to its standard error, this much of the end belongs to the error text. */
#define WEFT_ACP_TAIL 4096

typedef enum weft_acp_state {
    WEFT_ACP_INITIALIZING,
    WEFT_ACP_OPENING, /* session/new, session/load or session/resume is under way */
    WEFT_ACP_PROMPTING,
    WEFT_ACP_LEAVING, /* how it ended is known or the connection is gone; the process is not yet */
    WEFT_ACP_OVER,    /* on_end has been called */
} weft_acp_state;

typedef void weft_acp_on_answer(weft_run *run, int r, const weft_answer *answer);

struct weft_run {
    weft_loop *loop;
    const weft_alloc *alloc;
    const weft_agent *agent;
    weft_run_host host;
    void *ctx;
    char *folder;
    char *prompt;     /* until it is sent; owned */
    char *session;    /* the agent's name for it: the one to go on with, then the one that is open; NULL: none yet. Owned */
    int64_t grace_ms; /* 0: the default */
    weft_acp_state state;
    unsigned holds; /* the owner's, one per open call, one per callback under way */
    bool freed;     /* nothing is called any more */
    bool replaying; /* what comes is history */
    bool can_load, can_resume;
    bool cancelling;
    bool stopped; /* we asked its processes to end */
    bool deaf;    /* it closed its output and went on running */
    bool batched; /* it sent a batch */
    bool paused;
    bool started; /* the process is known to run */
    int looks;    /* left, at a pipe that does not end */
    bool gone;    /* the process is known to have ended, like this */
    weft_process_end process_end;
    weft_process *process;
    weft_service *service;
    weft_peer *peer;               /* NULL: the conversation is over */
    weft_acp_on_answer *on_answer; /* to the call that is open */
    weft_timer timer;
    weft_later later; /* the conversation cannot go on, found out where nothing may be called */
    uint64_t noise;   /* lines on its standard output that were no messages */
    weft_link asks;
    size_t ask_count;
    uint64_t last_ask;
    int err_fd;
    weft_watch *err_watch; /* NULL: its standard error has ended */
    weft_timer err_timer;
    weft_output err;
    weft_buf err_tail;
    weft_buf auth; /* the names of its ways to log in */
    bool decided;
    weft_run_end end; /* error and stop_reason are ours */
    char *error;
    char *stop_reason;
};

/* ---- driver_acp.c ---- */

void weft__acp_hold(weft_run *run);
void weft__acp_release(weft_run *run);
/* The conversation is over: close its input, and see to it that it goes. May free the run, unless it is held. */
void weft__acp_leave(weft_run *run);
/* A run that has no process yet, and can be freed. -ENOMEM. */
int weft__acp_new(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret);
/* Start this program; the rest of driver.h's start(). */
int weft__acp_start(const weft_run_spec *spec, const char *const *argv, const weft_run_host *host, void *ctx,
                    weft_run **ret);

/* The driver's functions, for the one that differs only in what it starts. */
void weft__acp_cancel(weft_run *run, bool force);
void weft__acp_pause(weft_run *run, bool paused);
weft_run *weft__acp_free(weft_run *run);

/* ---- acp_end.c ---- */

/* How it ended; the first to say so is right. reason NULL: it is ok. */
void weft__acp_decide(weft_run *run, bool retryable, const char *reason, const char *format, ...) WEFT_PRINTF(4, 5);
void weft__acp_decide_cancelled(weft_run *run);
/* The turn ended with this, as the agent says; "" unknown. */
void weft__acp_decide_stop(weft_run *run, const char *stop_reason);
/* The agent refused a call. */
void weft__acp_decide_error(weft_run *run, const char *method, const weft_error *error);
/* The process is gone: complete what is known, tell the host. */
void weft__acp_finish(weft_run *run, const weft_process_end *end);

/* ---- acp_talk.c ---- */

void weft__acp_talk_init(weft_run *run);
/* Take both descriptors and begin the conversation. */
int weft__acp_talk(weft_run *run, int in, int out);

/* ---- acp_stderr.c ---- */

void weft__acp_stderr_init(weft_run *run);
/* Take the descriptor, and do not read it yet. */
int weft__acp_stderr_open(weft_run *run, int fd);
/* Read it from now on, or do not. */
void weft__acp_stderr_heed(weft_run *run, bool now);
/* The process is gone: read its last words. */
void weft__acp_stderr_drain(weft_run *run);
void weft__acp_stderr_close(weft_run *run);
/* The end of what it wrote, without line ends behind it. Borrowed. */
weft_bytes weft__acp_stderr_tail(const weft_run *run);

/* ---- acp_asks.c ---- */

weft_handler weft__acp_ask;
int weft__acp_answer(weft_run *run, const char *key, const char *option);
/* Answer all of them with "cancelled". */
void weft__acp_asks_cancel(weft_run *run);

#endif
