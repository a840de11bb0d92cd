/* The inside of gated tasks, for their own files.
 *
 *   gated.c         life, commands, who waits            gated_run.c      what happens next in one that runs
 *   gated_prompt.c  what an iteration is told            gated_saved.c    documents: writing, and reading at the start */
#ifndef WEFT_GATED_PRIVATE_H
#define WEFT_GATED_PRIVATE_H

#include "gated.h"
#include "list.h"
#include "loop.h"

#define GATED_COUNTER "gated"
#define GATED_INDEX "gated" /* the key of the document that says which there are */
#define GATED_KEY 48        /* room for the key of a document */
#define GATED_TRIES 16      /* to take a number that another writer did not */
#define GATED_NUMBERS INT32_MAX
#define GATED_MEMORY_MS 50 /* when memory was short, it is tried again after so long */

/* What is stored of how far it is. */
typedef struct gated_now {
    weft_gated_state state;
    bool stopping, gating;
    int64_t iteration;
    char task[32]; /* of this iteration; "": not queued yet */
    char session[64];
    char reason[32], error[WEFT_GATED_WHY];
    int64_t ended_ms;
    int failed_gate; /* -1: none */
    bool seen;       /* how it ended */
} gated_now;

/* How the task of an iteration ended, kept from when that was heard: the task may be forgotten before it is stored. */
typedef struct gated_seen {
    bool ended;
    weft_task_state state;
    char reason[32], stop_reason[32], error[WEFT_GATED_WHY];
} gated_seen;

/* A gate that has run, and is not stored yet. Its texts are owned. */
typedef struct gate_pending {
    bool there;
    bool sent; /* it is part of what is being stored */
    size_t gate;
    weft_gate_result result;
    int failed; /* it cannot be run at all, for this reason */
} gate_pending;

typedef struct gated_waiter {
    weft_link link;
    weft_gated_done *done;
    void *ctx;
} gated_waiter;

typedef struct gated_task {
    weft_gated pub;
    weft_gated_tasks *of;
    weft_link link; /* in the order of numbers */
    char id[WEFT_GATED_ID];
    char *prompt, *agent, *by, *key, *stop_by;
    char **gates;   /* names */
    gated_now now;  /* as it is stored, */
    gated_now next; /* and as it is being stored */
    weft_gated_turn turns[WEFT_GATED_ITERATIONS];
    weft_gate_result results[WEFT_GATED_GATES]; /* texts are owned */
    bool stored, sending, resumed, want_stop, submitting, cancelling, gate_runs;
    bool leaving;       /* its documents are being deleted */
    bool want_removed;  /* its session was deleted: nothing of what was said there is kept */
    bool denied;        /* a permission was, in this iteration */
    int refused;        /* the iteration cannot become a task, for this reason; 0: it can */
    char submitted[32]; /* it did; that is not stored yet. "": it is, or did not */
    gated_seen seen;
    gate_pending pending;
    uint64_t gate_run; /* of the runner */
    weft_link waiters;
    weft_link repeats; /* who sent it again before it was stored */
    weft_later look;
    weft_timer again;
} gated_task;

struct weft_gated_tasks {
    weft_engine *engine;
    weft_loop *loop;
    const weft_alloc *alloc;
    weft_gated_opts opts;
    weft_link all;
    size_t count, running;
    uint64_t next_number;
    bool ready, ready_told;
    int ready_r;
    void (*on_ready)(void *ctx, int r);
    void *ready_ctx;
    struct gated_reading *reading; /* under way */
    weft_link ops;                 /* calls of the engine that are under way */
    weft_event_listener listener;
    weft_past_waiter past;
    weft_later ready_later;
    weft_timer read_again;
};

/* A call that is under way for a gated task. */
typedef struct gated_op {
    weft_link link;
    weft_gated_tasks *tasks; /* NULL: they are gone */
    const weft_alloc *alloc;
    gated_task *task;
} gated_op;
gated_op *weft__gated_op(gated_task *task); /* NULL: no memory */
/* It has completed: the gated task, or NULL when all are gone. It is freed. */
gated_task *weft__gated_op_end(gated_op *op);

void weft__gated_note(const weft_gated_tasks *tasks, const char *format, ...) WEFT_PRINTF(2, 3);
void weft__gated_name(char ret[WEFT_GATED_ID], uint64_t number);
gated_task *weft__gated_known(const weft_gated_tasks *tasks, const char *id);
/* In no list. NULL: no memory. */
gated_task *weft__gated_make(weft_gated_tasks *tasks, const weft_gated_spec *spec, uint64_t number);
gated_task *weft__gated_drop(gated_task *task);
void weft__gated_show(gated_task *task); /* into the list */
/* What others see follows from now. */
void weft__gated_publish(gated_task *task);
/* It has ended: whoever waits is told. */
void weft__gated_tell(gated_task *task);
void weft__gate_result_done(weft_gate_result *result, const weft_alloc *alloc);

/* ---- gated_run.c ---- */

/* See what there is to do, in this turn of the loop. */
void weft__gated_look(gated_task *task);
void weft__gated_look_due(weft_later *later);
void weft__gated_again_due(weft_timer *timer);
void weft__gated_hear(weft_event_listener *listener, const weft_event *event, const weft_json *data);
/* After a restart: what it was doing is found in the journal. */
void weft__gated_resume(gated_task *task);

/* ---- gated_prompt.c ---- */

/* What the next iteration is told, with its NUL. limit: bytes, without it; 0: none. -EOVERFLOW: it does not fit. */
int weft__gated_prompt(const gated_task *task, int64_t iteration, size_t limit, weft_buf *out);
/* The limit of the agent that does it; 0: none. */
size_t weft__gated_limit(const gated_task *task);

/* ---- gated_saved.c ---- */

void weft__gated_keys(const gated_task *task, char fixed[GATED_KEY], char state[GATED_KEY]);
int weft__gated_write_fixed(const gated_task *task, weft_buf *out);
/* As it is being stored, with the pending gate. */
int weft__gated_write_state(const gated_task *task, weft_buf *out);
int weft__gated_write_index(const weft_gated_tasks *tasks, uint64_t first, uint64_t next, weft_buf *out);
int weft__gated_read(weft_gated_tasks *tasks);
void weft__gated_read_drop(weft_gated_tasks *tasks);
void weft__gated_read_end(weft_gated_tasks *tasks, int r);

#endif
