/* The planner's vocabulary, for its files: a planner and executors, and what is asked of them. The table is in planner.c.
 * What is asked of a role is a task of the queue (roles.h), so that every other dialect sees it and can cancel it. */
#ifndef WEFT_PLANNER_H
#define WEFT_PLANNER_H

#include "buf.h"
#include "context.h"
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

/* What gates say of these methods (gates.md). The reasons of signatures are finer: this is the name of their code. */
#define PLANNER_GATE_ROWS                                                                                                   \
    {PLANNER_RATE_LIMITED, "Too many requests", "rateLimited"}, {                                                           \
        PLANNER_UNAUTHENTICATED, "Authentication failed", "authenticationFailed"                                            \
    }

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
int weft__planner_prompt(weft_buf *out, const weft_hub *hub, const char *prompt, const char *task_type,
                         const weft_json *context, const weft_json *options);
/* Is this a type of task that is known: the seed's, the stricter ones, or one that a holder registered? */
bool weft__planner_knows_type(const weft_hub *hub, const char *role, const char *task_type);

/* ---- planner_execute.c ---- */
weft_handler weft__planner_on_execute;
extern const weft_param weft__planner_execute_params[];

/* ---- planner_plan.c, planner_run.c ---- */
weft_handler weft__planner_on_create, weft__planner_on_run;
extern const weft_param weft__planner_create_params[], weft__planner_run_params[];

/* ---- planner_stream.c ---- */

/* What a task says, told to one client as it is stored: stream_start, stream_data, stream_end. */
typedef struct weft_planner_stream weft_planner_stream;
typedef struct weft_planner_stream_spec {
    const weft_hub *hub;
    weft_hub_client *client;
    const char *task, *session;
    const char *task_id; /* as the caller knows it */
    bool late;           /* it has said something already: that is read from the store first */
    /* Once: everything was told and the stream has ended, or why not: -ESTALE another attempt said something else than was
     * told already; -EPIPE the client has gone; -EOVERFLOW it read so slowly that what it was to be told is not kept any
     * more; other <0. Not from within weft__planner_stream_new(). */
    void (*done)(void *ctx, int r);
    void *ctx;
} weft_planner_stream_spec;
/* Tells the beginning. -ENOMEM and what weft_notify() returns. */
int weft__planner_stream_new(const weft_planner_stream_spec *spec, weft_planner_stream **ret);
/* An event of its task is being delivered. */
void weft__planner_stream_event(weft_planner_stream *stream, const weft_event *event, const weft_json *data);
/* The task has ended, with this attempt; fails: without a result. What is left is told first. */
void weft__planner_stream_end(weft_planner_stream *stream, int64_t attempt, bool fails);
/* A stream that is not over ends. NULL is fine. Returns NULL. */
weft_planner_stream *weft__planner_stream_free(weft_planner_stream *stream);

/* ---- planner_files.c ---- */

/* The files that a task wrote: by the diffs of its tool calls, or by two snapshots. */
typedef struct weft_planner_files {
    weft_buf modified, created; /* paths, each with a NUL behind it */
    size_t count;
} weft_planner_files;
/* An event of the task. What there is no memory or room for is left out. */
void weft__planner_files_event(weft_planner_files *files, const weft_hub *hub, const weft_event *event,
                               const weft_json *data);
/* Two snapshots were compared: that says it better. */
void weft__planner_files_compared(weft_planner_files *files, const weft_hub *hub, const weft_changed_list *list);
/* As a JSON list, behind what is in out. */
int weft__planner_files_write(const weft_planner_files *files, const weft_hub *hub, bool created, weft_buf *out);
/* What a holder says of its files: those that are paths in the project, relative to it, at most 1000. */
int weft__planner_files_said(const weft_hub *hub, const weft_json *list, weft_buf *out);
void weft__planner_files_done(weft_planner_files *files, const weft_alloc *alloc);

/* ---- planner_answer.c ---- */

/* What is known of a task that has ended. */
typedef struct weft_planner_outcome {
    const weft_hub *hub;
    const weft_json *result;         /* what a holder of this protocol said, or {"error":{}}; NULL: it is another */
    weft_bytes output;               /* otherwise all that it said */
    const weft_planner_files *files; /* and the files it wrote */
    const char *task_id;             /* the caller's own, of the stricter form; NULL: the seed's form */
} weft_planner_outcome;
/* Answer with a result or an error. req may be NULL. */
int weft__planner_answer(weft_req *req, const weft_planner_outcome *of, const weft_task *task);

/* ---- planner_role.c ---- */
weft_handler weft__planner_on_register, weft__planner_on_unregister, weft__planner_on_roles, weft__planner_on_stream;
extern const weft_param weft__planner_register_params[], weft__planner_unregister_params[], weft__planner_roles_params[],
    weft__planner_start_params[], weft__planner_data_params[], weft__planner_end_params[];

/* ---- planner_check.c ---- */
weft_handler weft__planner_on_validate;
extern const weft_param weft__planner_validate_params[];

/* ---- planner_context.c ---- */

/* Files of one context that are looked at, each with some calls of the system: more than anybody reads. */
#define PLANNER_FILES 1000

/* What is wrong with a file that a context names, as a sentence; NULL: it lies in the project, or would, also by its links,
 * and is a name and no option. Then its key is its path there. */
const char *weft__planner_file_wrong(const weft_hub *hub, const char *path, char ret_key[WEFT_CONTEXT_KEY + 1]);
/* The same of all in the member "files", and which it is. */
const char *weft__planner_files_wrong(const weft_hub *hub, const weft_json *context, size_t *ret_index);
weft_handler weft__planner_on_update, weft__planner_on_context;
extern const weft_param weft__planner_update_params[];

#endif
