/* Gated tasks: a prompt, and gates that say whether it is done. Each iteration is a turn of one session, followed by the
 * gates; what those found is in the prompt of the next one, until all pass or the iterations are used up.
 *
 * An iteration is a task of the queue, with a key of its own, so that it becomes one task whenever the daemon dies. What
 * becomes of a gated task is stored before it is acted upon. After a restart it goes on: an iteration as tasks.on_restart
 * says, and a gate that ran is run again.
 *
 * It knows no protocol and no client. Everything happens on the loop's thread; completions never run inside the call that
 * caused them. */
#ifndef WEFT_GATED_H
#define WEFT_GATED_H

#include "engine.h"
#include "gates.h"

#define WEFT_GATED 200                          /* that are remembered: the oldest that has ended makes room */
#define WEFT_GATED_RUNNING 16                   /* at a time */
#define WEFT_GATED_GATES 16                     /* of one */
#define WEFT_GATED_ITERATIONS 100               /* at most, */
#define WEFT_GATED_USUAL 10                     /* and where nobody says how many */
#define WEFT_GATED_PROMPT ((size_t) 256 << 10)  /* bytes */
#define WEFT_GATED_FINDINGS ((size_t) 32 << 10) /* bytes of all findings in the next prompt */
#define WEFT_GATED_ID 24                        /* room for "gated-0000" */
#define WEFT_GATED_WHY 240                      /* room for a sentence */

typedef struct weft_gated_tasks weft_gated_tasks;

typedef enum weft_gated_state {
    WEFT_GATED_STATE_RUNNING,
    WEFT_GATED_STATE_COMPLETED, /* every gate has passed */
    WEFT_GATED_STATE_FAILED,
    WEFT_GATED_STATE_CANCELLED,
    WEFT_GATED_STATES,
} weft_gated_state;
extern const char *const weft__gated_states[WEFT_GATED_STATES]; /* "running", ... */

/* What a gate said last. */
typedef struct weft_gate_result {
    bool known; /* it has run */
    bool passed;
    int64_t iteration;
    int exit_code; /* -1: by a signal, or by its time limit */
    int64_t ms;
    const char *why;         /* it did not run to its end; "": it did */
    const char *output;      /* the end of what it printed; "" */
    const char *diagnostics; /* JSON, an array */
} weft_gate_result;

/* One iteration. */
typedef struct weft_gated_turn {
    char task[32];        /* of the queue */
    uint32_t ran, passed; /* gates, a bit for each */
} weft_gated_turn;

/* Borrowed until the next turn of the loop. */
typedef struct weft_gated {
    const char *id;
    uint64_t number;
    const char *prompt;
    const char *agent; /* as it was named; NULL: the default */
    const char *const *gates;
    size_t gate_count;
    int64_t max_iterations;
    weft_task_permission permission;
    weft_isolation isolation;
    const char *by;  /* who sent it; "": unknown */
    const char *key; /* the idempotency key it was sent with; "": none */
    weft_gated_state state;
    bool stopping;                   /* it runs, but was cancelled */
    int64_t iteration;               /* from 1; 0: none has begun */
    bool gating;                     /* the gates run, not the agent */
    const char *session;             /* "": none yet */
    const weft_gated_turn *turns;    /* iteration of them */
    const weft_gate_result *results; /* gate_count of them */
    const char *reason;              /* why it failed, one word: gateFailed, contextOverflow, permissionDenied, ...; "" */
    const char *error;               /* the same as a sentence; "" */
    const char *failed_gate;         /* of gateFailed: the first that did not pass; NULL */
    int64_t created_ms, ended_ms;    /* wall clock; 0: not yet */
    bool seen;                       /* somebody has looked at how it ended */
} weft_gated;

typedef struct weft_gated_opts {
    weft_engine *engine;
    weft_gate_runner gates;
    void (*on_note)(void *ctx, const char *line); /* may be NULL */
    void *ctx;
} weft_gated_opts;

/* After the engine is ready. What was stored is read; what ran goes on. on_ready runs once, later: 0, or the store's
 * failure: then it is tried again by itself. */
int weft__gated_new(const weft_gated_opts *opts, void (*on_ready)(void *ctx, int r), void *ctx, weft_gated_tasks **ret);
/* Before the engine and the runner of gates. What is under way completes with -ECANCELED. Returns NULL. */
weft_gated_tasks *weft__gated_free(weft_gated_tasks *tasks);

typedef struct weft_gated_spec {
    const char *prompt, *agent;
    const char *const *gates; /* at least one */
    size_t gate_count;
    int64_t max_iterations; /* 0: the usual */
    weft_task_permission permission;
    weft_isolation isolation;
    const char *by;
    const char *key; /* sent again with the same, it is the one that is there, as long as that is remembered; NULL: none */
} weft_gated_spec;

/* r 0: as it is stored. */
typedef void weft_gated_done(void *ctx, int r, const weft_gated *gated);
/* Everything is copied. -EINVAL an empty prompt, no gate, too many, one twice, or too many iterations; -EMSGSIZE the prompt
 * is too long; -EOVERFLOW it is longer than its agent's context_limit; -ENOENT no such agent; -ESRCH no such gate, -ENOEXEC
 * its program cannot be run, with its index in *ret_gate; -EALREADY it was sent with this key, see weft__gated_of_key();
 * -ENOTUNIQ something else was; -EUSERS too many run; -EAGAIN what was stored is not read yet; -ESHUTDOWN, -ENOMEM. */
int weft__gated_send(weft_gated_tasks *tasks, const weft_gated_spec *spec, weft_gated_done *done, void *ctx,
                     size_t *ret_gate);
/* done: it has ended, and everything of it. -ENOENT; -EALREADY it had. by may be NULL. */
int weft__gated_cancel(weft_gated_tasks *tasks, const char *id, const char *by, weft_gated_done *done, void *ctx);
/* done when it has ended. -ENOENT; -EALREADY it had. */
int weft__gated_await(weft_gated_tasks *tasks, const char *id, weft_gated_done *done, void *ctx);

/* Somebody has looked at how it ended. done may be NULL. 1: that is known already; -ENOENT; -EBUSY it runs. */
int weft__gated_seen(weft_gated_tasks *tasks, const char *id, const char *by, void (*done)(void *ctx, int r), void *ctx);

const weft_gated *weft__gated_find(const weft_gated_tasks *tasks, const char *id);
/* The one that was sent with this key; NULL: none. */
const weft_gated *weft__gated_of_key(const weft_gated_tasks *tasks, const char *key);
/* The one whose session this is; NULL: none. */
const weft_gated *weft__gated_of_session(const weft_gated_tasks *tasks, const char *session);
/* From the newest to the oldest; NULL ends it. */
const weft_gated *weft__gated_newest(const weft_gated_tasks *tasks);
const weft_gated *weft__gated_older(const weft_gated_tasks *tasks, const weft_gated *gated);

#endif
