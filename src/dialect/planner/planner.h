/* The planner's vocabulary, for its files: a planner and executors, and what is asked of them. The table is in planner.c.
 * What is asked of a role is a task of the queue (roles.h), so that every other dialect sees it and can cancel it. */
#ifndef WEFT_PLANNER_H
#define WEFT_PLANNER_H

#include "buf.h"
#include "hub_clients.h"
#include "roles.h"

/* Its errors. */
#define PLANNER_FAILED (-32000) /* data.type says what it was */
#define PLANNER_UNAVAILABLE (-32001)
#define PLANNER_RATE_LIMITED (-32002)
#define PLANNER_UNAUTHENTICATED (-32003)

/* data.type of an error. */
#define PLANNER_TIMEOUT "TIMEOUT"
#define PLANNER_PARSE "PARSE_ERROR"
#define PLANNER_EXECUTION "EXECUTION_ERROR"

/* How long a holder may say nothing, and how often something is tried again that may be. */
#define PLANNER_QUIET_MS 30000
#define PLANNER_RETRIES 3

/* The errors that every row about roles has. */
#define PLANNER_ERROR_ROWS                                                                                                  \
    {PLANNER_FAILED, "Execution timeout", "executionTimeout"}, {PLANNER_FAILED, "Execution failed", "executionFailed"},     \
        {PLANNER_FAILED, "The answer cannot be read", "unreadableAnswer"}, {                                                \
        PLANNER_UNAVAILABLE, "Resource unavailable", "resourceUnavailable"                                                  \
    }

/* ---- planner_error.c ---- */

/* An error in the seed's form: data {type, details, stack_trace, recovery_suggestions, reason, retryable?, taskId?}. */
typedef struct weft_planner_error {
    int code;
    const char *type;           /* PLANNER_TIMEOUT, ... */
    const char *reason;         /* stable, camelCase; NULL: that of the code and type */
    const char *message;        /* NULL: that of the code */
    const char *details;        /* for people; NULL: "" */
    const char *stack_trace;    /* NULL: "" */
    const char *suggestions[4]; /* what to do about it; NULL ends them */
    bool retryable;
    const char *task; /* of the queue; NULL: none */
} weft_planner_error;
/* req may be NULL. */
int weft__planner_fail_with(weft_req *req, const weft_planner_error *error);
/* The usual case: the reason and the message follow from code and type, and there is one suggestion or NULL. */
int weft__planner_fail(weft_req *req, int code, const char *type, const char *details, const char *suggestion);
/* A task for a role could not be submitted. path: of the prompt. */
int weft__planner_not_submitted(weft_req *req, const weft_hub *hub, const char *role, const char *path, int r);

/* ---- planner_prompt.c ---- */

/* What an agent that reads text is told: the prompt, then what else was said (task type, context, options). Ends with a NUL
 * that does not count. -ENOMEM. */
int weft__planner_prompt(weft_buf *out, const weft_alloc *alloc, const char *prompt, const char *task_type,
                         const weft_json *context, const weft_json *options);
/* Is this a type of task that is known: the seed's, the stricter ones, or one that a holder registered? */
bool weft__planner_knows_type(const weft_hub *hub, const char *role, const char *task_type);

/* ---- planner_execute.c ---- */
weft_handler weft__planner_on_execute;
extern const weft_param weft__planner_execute_params[];

/* ---- planner_plan.c, planner_run.c ---- */
weft_handler weft__planner_on_create, weft__planner_on_run;
extern const weft_param weft__planner_create_params[], weft__planner_run_params[];

/* ---- planner_role.c ---- */
weft_handler weft__planner_on_roles;
extern const weft_param weft__planner_roles_params[];

#endif
