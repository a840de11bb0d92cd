/* The plans of the hub: stored when they are made, run step by step through the queue, and gone on with after a restart.
 *
 * A step of a plan is a task of the queue once everything that it needs has succeeded; its prompt carries what those steps
 * answered. A step that fails takes those with it that need it, and no others. Everything that becomes of a plan is stored
 * before it is acted upon: the step's key makes sure that it becomes one task, whenever the daemon dies.
 *
 * It knows no protocol and no client. Everything happens on the loop's thread; completions never run inside the call that
 * caused them. */
#ifndef WEFT_PLANS_H
#define WEFT_PLANS_H

#include "engine.h"
#include "plan.h"

#define WEFT_PLANS 200                        /* that are remembered: the oldest that does not run makes room */
#define WEFT_PLANS_BYTES ((size_t) 32 << 20)  /* of all that are remembered, about */
#define WEFT_PLANS_RUNNING 16                 /* at a time */
#define WEFT_PLAN_ANSWER ((size_t) 8 << 10)   /* bytes of one answer in the prompt of a step that needs it: its end, */
#define WEFT_PLAN_ANSWERS ((size_t) 32 << 10) /* and of all together */
#define WEFT_PLAN_ID 24                       /* room for "plan_00000001" */
#define WEFT_STEP_ERROR 200                   /* room for why a step failed */

typedef struct weft_plans weft_plans;

typedef enum weft_plan_state {
    WEFT_PLAN_CREATED,
    WEFT_PLAN_RUNNING,
    WEFT_PLAN_COMPLETED, /* every step has */
    WEFT_PLAN_FAILED,
    WEFT_PLAN_CANCELLED,
    WEFT_PLAN_STATES,
} weft_plan_state;
extern const char *const weft__plan_states[WEFT_PLAN_STATES]; /* "created", ... */

typedef enum weft_step_state {
    WEFT_STEP_WAITING, /* for what it needs, or for its place */
    WEFT_STEP_QUEUED,
    WEFT_STEP_RUNNING,
    WEFT_STEP_COMPLETED,
    WEFT_STEP_FAILED,
    WEFT_STEP_CANCELLED,
    WEFT_STEP_SKIPPED, /* it never was a task */
    WEFT_STEP_STATES,
} weft_step_state;
extern const char *const weft__step_states[WEFT_STEP_STATES]; /* "waiting", ... */

typedef struct weft_planned_step {
    weft_step_state state;
    char task[32];                /* of the queue; "": none yet */
    char reason[32];              /* why it did not complete, one word; "": it did, or has not ended */
    char error[WEFT_STEP_ERROR];  /* the same as a sentence; "": there is none */
    int64_t started_ms, ended_ms; /* wall clock; 0: not yet */
} weft_planned_step;

/* Borrowed until the next turn of the loop. */
typedef struct weft_planned {
    const char *id;
    uint64_t number;
    const weft_plan *plan;
    const weft_planned_step *steps; /* plan->count of them, in the plan's order */
    weft_plan_state state;
    const char *stopping; /* why what has not ended is being ended: "timeLimit", "cancelled"; NULL: it is not */
    const char *by;       /* who made it; "": unknown */
    int64_t time_limit_ms;
    int64_t created_ms, started_ms, ended_ms; /* wall clock; 0: not yet */
} weft_planned;

typedef struct weft_plans_opts {
    weft_engine *engine;
    const char *role; /* whose tasks the steps are (roles.h); NULL: the default agent's */
    int64_t retries;  /* of a step whose failure is worth another attempt: its agent crashed, its holder has left */
    void (*on_note)(void *ctx, const char *line); /* may be NULL */
    void *ctx;
} weft_plans_opts;

/* After the engine is ready. What was stored is read; plans that ran go on. on_ready runs once, later: 0, or the store's
 * failure: then there are no plans until it could be read, which is tried again by itself. */
int weft__plans_new(const weft_plans_opts *opts, void (*on_ready)(void *ctx, int r), void *ctx, weft_plans **ret);
/* Before the engine. What is under way completes with -ECANCELED, unless the engine has told it otherwise. */
weft_plans *weft__plans_free(weft_plans *plans);

/* r 0: the plan as it is stored. */
typedef void weft_plan_done(void *ctx, int r, const weft_planned *planned);
/* Store a plan, which is taken. -EAGAIN what was stored is not read yet, or cannot be; -ESHUTDOWN, -ENOMEM. by may be NULL.
 */
int weft__plans_create(weft_plans *plans, weft_plan *plan, const char *by, weft_plan_done *done, void *ctx);
/* done: it runs. time_limit_s narrows the plan's own; 0: it has that. -ENOENT no such plan; -EALREADY it has run, or does;
 * -EUSERS too many do. */
int weft__plans_run(weft_plans *plans, const char *id, int64_t time_limit_s, const char *by, weft_plan_done *done,
                    void *ctx);
/* done: it has ended, and so have all its tasks. -ENOENT; -EALREADY it had. by may be NULL. */
int weft__plans_cancel(weft_plans *plans, const char *id, const char *by, weft_plan_done *done, void *ctx);

const weft_planned *weft__plans_find(const weft_plans *plans, const char *id);
/* From the newest to the oldest; NULL ends it. */
const weft_planned *weft__plans_newest(const weft_plans *plans);
const weft_planned *weft__plans_older(const weft_plans *plans, const weft_planned *planned);

/* Be told once, when the plan has ended; planned NULL: the plans are gone. Embedded in its owner; by removing the link one
 * stops waiting. -ENOENT; -EALREADY it had ended. */
typedef struct weft_plan_waiter {
    weft_link link;
    void (*on_end)(struct weft_plan_waiter *waiter, const weft_planned *planned);
} weft_plan_waiter;
int weft__plans_await(weft_plans *plans, const char *id, weft_plan_waiter *waiter);

#endif
