/* The inside of the loops, for their own files: aiwg_loops.c, their life, and aiwg_loops_show.c, what is shown of them. */
#ifndef WEFT_AIWG_LOOPS_PRIVATE_H
#define WEFT_AIWG_LOOPS_PRIVATE_H

#include "aiwg_circuit.h"
#include "aiwg_loops.h"

/* Of an error, in the history: it is for a glance, the task has all of it. */
#define AIWG_LOOP_ERROR 400

typedef struct aiwg_loop {
    weft_link link;
    weft_aiwg_loops *loops; /* NULL: they are gone, and a completion is still to come */
    const weft_alloc *alloc;
    char id[WEFT_AIWG_LOOP_ID + 1];
    char task[32]; /* "": not stored yet */
    char *prompt, *metadata;
    int64_t priority;
    int64_t since_ms;  /* wall clock: it runs, or waits, since */
    int64_t *failures; /* monotonic, the oldest first */
    size_t failure_count;
    bool submitting; /* a completion is to come */
    bool killed;     /* by somebody: it is not started again */
    bool cancelled;  /* as soon as its task is known */
} aiwg_loop;

typedef struct ended_loop {
    char id[WEFT_AIWG_LOOP_ID + 1], task[32], error[AIWG_LOOP_ERROR];
    const char *outcome;
    bool failed, permanent;
    int64_t time_ms;
} ended_loop;

typedef struct job_run {
    char job[WEFT_AIWG_LOOP_ID + 1], action[64];
    int64_t last_ms; /* wall clock */
    uint64_t count;
} job_run;

struct weft_aiwg_loops {
    weft_aiwg_loops_opts opts;
    const weft_alloc *alloc;
    weft_engine *engine;
    weft_event_listener listener;
    weft_link running, queued;
    size_t running_count, queued_count;
    weft_aiwg_circuit circuit;
    int64_t last_failure_ms; /* wall clock; 0: none */
    weft_timer timer;        /* the circuit may be tried again */
    ended_loop *history;     /* the oldest first */
    size_t history_count;
    char (*lost)[WEFT_AIWG_LOOP_ID + 1]; /* ids that failed for good, the oldest first */
    size_t lost_count;
    job_run jobs[WEFT_AIWG_LOOP_JOBS];
    size_t job_count;
    uint64_t made; /* ids */
    bool warned;   /* of the budget */
    bool stopping;
};

#endif
