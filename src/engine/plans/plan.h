/* A plan: steps, what each of them needs, and what is wrong with it. It comes from outside (an agent's text, a planner, a
 * caller), so everything is checked before it is one: names, counts, sizes, what depends on what. It knows no engine.
 *
 * Two shapes are read: steps with "description" and "dependencies" each, and steps with "prompt" and one map of
 * "dependencies" beside them; also a mixture. The members "tasks" are called steps here, because a task is of the queue. */
#ifndef WEFT_PLAN_H
#define WEFT_PLAN_H

#include <weft/json.h>

#include "buf.h"

#define WEFT_PLAN_STEPS 100                  /* more than anybody reads before saying yes to it */
#define WEFT_PLAN_NEEDS 1000                 /* dependencies of all steps */
#define WEFT_PLAN_NAME 64                    /* bytes of a step's id, and of its type */
#define WEFT_PLAN_TEXT ((size_t) 32 << 10)   /* bytes of a description, a prompt, a context, the request */
#define WEFT_PLAN_BYTES ((size_t) 256 << 10) /* of the whole plan's text */
#define WEFT_PLAN_SECONDS (7 * 24 * 3600)    /* the longest time limit: a week */
#define WEFT_PLAN_PRIORITY 1000              /* from 0 */
#define WEFT_PLAN_WHY 512                    /* room for a sentence about what is wrong */

typedef struct weft_plan_step {
    const char *id, *type;
    const char *title;   /* what people read */
    const char *prompt;  /* what the agent is told; may be the title */
    const char *context; /* JSON, an object; NULL: none */
    int64_t priority;    /* higher is first */
    int64_t timeout_ms;  /* 0: the usual */
    size_t *needs;       /* indices of steps that must have succeeded before it */
    size_t need_count;
} weft_plan_step;

typedef struct weft_plan {
    const weft_alloc *alloc;
    weft_doc *doc;           /* the strings point into it */
    const char *request;     /* what the user asked for; "": unknown */
    const char *explanation; /* NULL: none */
    int64_t estimated_s;     /* 0: unknown */
    int64_t max_tasks;       /* as constrained; 0: not */
    int64_t time_limit_s;    /* 0: none */
    weft_plan_step *steps;
    size_t count;
    size_t *order; /* indices: each behind what it needs; of those that could be next, the highest priority first */
    size_t bytes;  /* of memory, about */
    size_t *needs; /* the memory of the steps' */
} weft_plan;

/* What the caller allows, besides the constraints in the plan itself: the narrower ones count. */
typedef struct weft_plan_limits {
    int64_t max_tasks;    /* 0: WEFT_PLAN_STEPS */
    int64_t time_limit_s; /* 0: none */
    const char *request;  /* for a plan that does not have it; NULL: none */
    bool written;         /* by weft__plan_write(), which may have made it longer than somebody else's may be */
} weft_plan_limits;

/* The value is copied. -EINVAL: it is no plan, why says in what; -ENOMEM. limits may be NULL. A plan in a member "plan" is
 * found there. */
int weft__plan_read(const weft_json *value, const weft_plan_limits *limits, const weft_alloc *alloc, weft_plan **ret,
                    char why[WEFT_PLAN_WHY]);
weft_plan *weft__plan_free(weft_plan *plan);
/* Members for an object, with a comma before each but the first: "user_request", "tasks", ... weft__plan_read() reads them
 * again. */
int weft__plan_write(const weft_plan *plan, const weft_alloc *alloc, weft_buf *out);
/* NULL-terminated: the types of tasks that the protocol names. Others are allowed, if they are names. */
extern const char *const weft__plan_types[];
/* 1 to WEFT_PLAN_NAME letters, digits, "_", "-" and "."; the first is a letter or a digit. */
bool weft__plan_is_name(const char *name);

/* The JSON object in what an agent says: the first fenced block, else the first balanced text, that is one and has "tasks"
 * or "plan". Of a long text only the last WEFT_PLAN_SAID bytes are looked at. -ENOENT: there is none; -ENOMEM. Owned. */
#define WEFT_PLAN_SAID ((size_t) 1 << 20)
int weft__plan_find(weft_bytes text, const weft_alloc *alloc, weft_doc **ret);

#endif
