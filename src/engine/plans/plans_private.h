/* The inside of the plans, for their own files.
 *
 *   plan.c          what a plan is, and what is wrong with it      plan_find.c   the JSON in what an agent says
 *   plans.c         life, commands, who waits                      plans_run.c   what happens next in a plan that runs
 *   plans_saved.c   documents: writing, and reading at the start   plans_forget.c   what goes with a deleted session */
#ifndef WEFT_PLANS_PRIVATE_H
#define WEFT_PLANS_PRIVATE_H

#include "list.h"
#include "loop.h"
#include "plans.h"

#define PLANS_COUNTER "plan"
#define PLANS_INDEX "plans"      /* the key of the document that says which plans there are */
#define PLANS_KEY 40             /* room for the key of a plan's documents */
#define PLANS_TRIES 16           /* to take a number that another writer did not */
#define PLANS_NUMBERS UINT32_MAX /* an id has eight hexadecimal digits */

#define PLANS_MEMORY_MS 50 /* when memory was short, it is tried again after so long */

/* What is under way for a step. */
typedef struct step_work {
    bool submitting, cancelling;
    char task[32];          /* it was submitted; that is not stored yet. "": it is, or was not */
    int refused;            /* it cannot become a task, for this reason; 0: it can */
    weft_planned_step seen; /* how its task ended, kept from when that was heard: the task may be forgotten before it is
                               stored. Waiting: it has not */
} step_work;

/* Somebody waits for a plan to start. */
typedef struct starter {
    weft_link link;
    weft_plan_done *done;
    void *ctx;
} starter;

typedef struct known_plan {
    weft_planned pub;
    weft_plans *plans;
    weft_link link; /* in the order of numbers */
    weft_plan *plan;
    weft_planned_step *steps; /* as they are stored, */
    weft_planned_step *next;  /* as they are being stored, */
    step_work *work;          /* and what is done for them. NULL in a plan that has ended */
    bool stored;
    bool stale;       /* it is too old to be known; its documents go with the next append that makes a plan */
    uint64_t leaving; /* its documents are being deleted, because the plan of this number comes; 0: it stays */
    bool sending;     /* an append is under way */
    bool forgetting;  /* texts of steps were taken out, and that is not stored */
    bool removing;    /* all of it is to go */
    bool resumed;     /* nothing is left to find out about it after a restart */
    bool want_run;
    const char *want_stop; /* why; NULL: it may go on */
    char *start_by, *stop_by;
    weft_plan_state next_state;
    const char *next_stopping;
    int64_t next_started, next_ended, next_limit;
    weft_link starters, waiters;
    weft_later look; /* see what there is to do */
    weft_timer again, limit;
    uint64_t at; /* gseq before its end, or its making */
    size_t bytes;
    char id[WEFT_PLAN_ID];
    char by[];
} known_plan;

struct weft_plans {
    weft_engine *engine;
    weft_loop *loop;
    const weft_alloc *alloc;
    weft_plans_opts opts;
    weft_link all;
    size_t count, running, bytes;
    uint64_t next_number;
    bool ready;
    void (*on_ready)(void *ctx, int r);
    void *ready_ctx;
    struct plans_reading *reading; /* under way */
    weft_link ops;                 /* calls of the engine that are under way */
    weft_event_listener listener;
    weft_past_waiter past;
    weft_later ready_later;
    int ready_r;
    bool ready_told;
    weft_timer read_again;
};

/* A call of the engine's that is under way for a plan. */
typedef struct plan_op {
    weft_link link;
    weft_plans *plans; /* NULL: they are gone */
    const weft_alloc *alloc;
    known_plan *plan;
    size_t step;
} plan_op;
/* NULL: no memory. */
plan_op *weft__plan_op(known_plan *plan, size_t step);
/* It has completed: the plan, or NULL when the plans are gone. It is freed. */
known_plan *weft__plan_op_end(plan_op *op, size_t *ret_step);

void weft__plans_note(const weft_plans *plans, const char *format, ...) WEFT_PRINTF(2, 3);
/* As it is in the map of ids. */
void weft__plan_name(char ret[WEFT_PLAN_ID], uint64_t number);
known_plan *weft__plan_known(const weft_plans *plans, const char *id);
bool weft__plan_is_shown(const known_plan *known);
bool weft__plan_is_over(weft_plan_state state);
bool weft__step_is_over(weft_step_state state);

/* plan is taken; NULL: no memory, and it is not. It is in no list. */
known_plan *weft__plan_make(weft_plans *plans, weft_plan *plan, uint64_t number, const char *by);
known_plan *weft__plan_drop(known_plan *known);
/* Into the list. */
void weft__plan_show(known_plan *known);

/* ---- plans_run.c ---- */

/* See what there is to do, in this turn of the loop. */
void weft__plan_look(known_plan *known);
void weft__plans_hear(weft_event_listener *listener, const weft_event *event, const weft_json *data);
void weft__plan_look_due(weft_later *later);
void weft__plan_again_due(weft_timer *timer);
void weft__plan_limit_due(weft_timer *timer);
void weft__plans_look_at_ended(const weft_plans *plans);
/* The same, when what failed so is worth another try. */
void weft__plan_look_again(known_plan *known, int r);
/* After a restart: what it was doing is found in the journal. */
void weft__plan_resume(known_plan *known);

/* ---- plans_forget.c ---- */

/* Of a plan that is over, for which nothing is under way: what it says of tasks that are not known any more goes. */
void weft__plan_forget(known_plan *known);
/* weft_engine_erase_too (engine.h). ctx: the plans. */
bool weft__plans_erase_too(void *ctx, const char *session, const weft_json *data);

/* ---- plans_saved.c ---- */

void weft__plan_keys(const known_plan *known, char plan[PLANS_KEY], char state[PLANS_KEY]);
/* The texts of the documents: the plan, how far it is (as it is being stored), and which plans there will be. */
int weft__plan_write_saved(const known_plan *known, weft_buf *out);
int weft__plan_write_state(const known_plan *known, weft_buf *out);
int weft__plans_write_index(const weft_plans *plans, uint64_t first, uint64_t next, weft_buf *out);
int weft__plans_read(weft_plans *plans);
void weft__plans_read_drop(weft_plans *plans);
/* Everything is read (r 0). */
void weft__plans_read_end(weft_plans *plans, int r);

#endif
