/* Loops: AIWG's supervisor above the queue of tasks. A loop is a prompt that is tried again when it fails, until it has
 * failed too often; so many run at a time, so many wait, and after failures in a row none is started for a while.
 *
 * A loop is a task of the engine at a time, with {loopId} as its metadata. What is known of loops is in memory, as in AIWG:
 * the tasks stay, the loops end with the daemon. Tasks that are submitted as tasks are no loops. */
#ifndef WEFT_AIWG_LOOPS_H
#define WEFT_AIWG_LOOPS_H

#include "hub.h"

typedef struct weft_aiwg_loops weft_aiwg_loops;

#define WEFT_AIWG_LOOP_ID 128      /* bytes of an id, as a caller may choose it */
#define WEFT_AIWG_LOOP_HISTORY 200 /* loops that have ended and are shown */
#define WEFT_AIWG_LOOP_WHY 512
#define WEFT_AIWG_LOOP_JOBS 64 /* jobs that are remembered: the configuration has fewer */

typedef struct weft_aiwg_loop_limits {
    int64_t max_running, max_queue;
    int64_t max_restarts, window_ms; /* so many failures within this time end a loop for good */
    int64_t threshold, cooldown_ms;  /* after so many failures in a row nothing is started for this long */
} weft_aiwg_loop_limits;

typedef struct weft_aiwg_loops_opts {
    const weft_hub *hub; /* borrowed, with its engine */
    weft_aiwg_loop_limits limits;
    /* Something has happened: "loop:started", and what of it, as a JSON text. From the loop. May be NULL. */
    void (*on_event)(void *ctx, const char *name, const char *data, size_t len);
    /* The agent of a loop has printed something. May be NULL. */
    void (*on_output)(void *ctx, const char *loop, weft_bytes text);
    void *ctx;
} weft_aiwg_loops_opts;

/* After the engine is ready. -ENOMEM. */
int weft__aiwg_loops_new(const weft_aiwg_loops_opts *opts, weft_aiwg_loops **ret);
weft_aiwg_loops *weft__aiwg_loops_free(weft_aiwg_loops *loops);
/* Nothing is started any more; what waits is forgotten. */
void weft__aiwg_loops_stop(weft_aiwg_loops *loops);

typedef struct weft_aiwg_loop_spec {
    const char *id; /* NULL: one is made */
    const char *prompt;
    int64_t priority;
    double cost_usd;          /* an estimate, for the day's budget */
    const char *job, *action; /* whose work it is; NULL: nobody's */
} weft_aiwg_loop_spec;
typedef struct weft_aiwg_loop_place {
    char id[WEFT_AIWG_LOOP_ID + 1];
    int64_t position; /* 0: it runs */
} weft_aiwg_loop_place;
/* -EPERM: refused, for the reason in why. -ENOMEM. */
int weft__aiwg_loops_submit(weft_aiwg_loops *loops, const weft_aiwg_loop_spec *spec, weft_aiwg_loop_place *ret,
                            char why[WEFT_AIWG_LOOP_WHY]);
/* false: there is none that waits or runs. by is for people. */
bool weft__aiwg_loops_cancel(weft_aiwg_loops *loops, const char *id, const char *by);
/* Send the processes of a loop a signal. false: there is no such loop, or it has no process. */
bool weft__aiwg_loops_kill(weft_aiwg_loops *loops, const char *id, int number);

typedef struct weft_aiwg_loops_state {
    size_t running, queued;
    weft_aiwg_loop_limits limits;
    const char *circuit; /* "closed", "open", "half-open" */
    int64_t failures, last_failure_ms, cooldown_left_ms;
    double budget, spent; /* of today, in USD; budget 0: none */
} weft_aiwg_loops_state;
void weft__aiwg_loops_state(weft_aiwg_loops *loops, weft_aiwg_loops_state *ret);

typedef enum weft_aiwg_loop_kind { WEFT_AIWG_RUNNING = 1, WEFT_AIWG_QUEUED = 2, WEFT_AIWG_FAILED = 4 } weft_aiwg_loop_kind;
/* A JSON array of those of these kinds. marked: with their "status", and how long they run. */
int weft__aiwg_loops_write(const weft_aiwg_loops *loops, weft_buf *out, unsigned kinds, bool marked);
/* Those that have ended, the newest first. */
int weft__aiwg_loops_write_history(const weft_aiwg_loops *loops, weft_buf *out, int64_t limit);
/* The jobs that started some: [{jobId, action, lastRun, runCount}]. */
int weft__aiwg_loops_write_jobs(const weft_aiwg_loops *loops, weft_buf *out);
/* {state, consecutiveFailures, lastFailureAt, cooldownRemainingMs} */
int weft__aiwg_loops_write_circuit(weft_aiwg_loops *loops, weft_buf *out);
/* {depth, maxDepth, oldest, priorityDistribution, estimatedWaitMs} */
int weft__aiwg_loops_write_queue(const weft_aiwg_loops *loops, weft_buf *out);

#endif
