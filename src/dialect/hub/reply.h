/* What the handlers of all dialects say alike: times, who is asking, and failures that any method can meet. A handler that
 * answers later keeps weft__req_keep(req), which is NULL for a notification; everything here takes that NULL. */
#ifndef WEFT_REPLY_H
#define WEFT_REPLY_H

#include "hub.h"
#include "stamp.h"

/* A time as a value; 0: null. */
weft_val weft__stamp_val(int64_t ms, char text[WEFT_STAMP]);

/* Who this is, for people: the name of its token, else its user. */
#define WEFT_WHO 128
const char *weft__who(const weft_identity *identity, char text[WEFT_WHO]);

/* The params of methods that have none. */
extern const weft_param weft__no_params[];

weft_req *weft__req_keep(weft_req *req);
int weft__reply_val(weft_req *req, weft_val result);
int weft__reply_error(weft_req *req, int code, const char *reason, const char *format, ...) WEFT_PRINTF(4, 5);
/* A field that passed the table and is wrong nevertheless: -32602, with its path. */
int weft__reply_invalid(weft_req *req, const char *path, const char *format, ...) WEFT_PRINTF(3, 4);
/* The agent that was named is none; known ones are listed. */
int weft__reply_no_agent(weft_req *req, const weft_hub *hub, int code, const char *reason, const char *path,
                         const char *name);
/* What is nobody's fault: 503 while stopping or when the store's queue is full, otherwise 507. */
int weft__reply_failure(weft_req *req, int r);
/* The param "permission" of what submits a task. 0; 1: it was refused, and that is answered; <0. An agent cannot say it: it
 * would allow itself what it should ask for. */
#define WEFT_PERMISSION_HELP                                                                                                \
    "what its agent may do without asking: nothing (ask), read, edit in the project, or all; as configured when absent"
/* isolation and withChanges as params: 1 it was refused, <0. */
#define WEFT_ISOLATION_HELP                                                                                                 \
    "worktree: in a git worktree of its own, on a branch of its own; none: in the project's folder; as configured when "    \
    "absent"
#define WEFT_WITH_CHANGES_HELP "the worktree gets the changes in the project's files that are not committed"
int weft__isolation_read(weft_req *req, const char *said, bool with_changes, weft_isolation *ret);
int weft__permission_read(weft_req *req, const weft_hub *hub, const char *said, weft_task_permission *ret);

/* A task that could not be submitted, as far as all say it alike: its prompt, which has this path, or what is nobody's
 * fault. */
int weft__reply_not_submitted(weft_req *req, const weft_hub *hub, const char *path, int r);

/* A gated task is known by its session: what its iterations changed and cost together. NULL: the id is none of a gated task,
 * or that has no session yet. Borrowed until the next turn of the loop. */
const char *weft__session_of_gated(const weft_hub *hub, const char *id);

/* The rows of those, for a method's own. */
#define WEFT_ERROR_STOPPING                                                                                                 \
    { 503, "The daemon is stopping", "shuttingDown" }
#define WEFT_ERROR_STORAGE                                                                                                  \
    {507, "It could not be stored", "storageFailed"}, {                                                                     \
        503, "Too much is waiting to be stored", "storeBusy"                                                                \
    }
#define WEFT_ERROR_AGENT                                                                                                    \
    { 403, "Not for agents: the caller is a process of one, or has ended", "agentMayNot" }
#define WEFT_ERROR_PARAMS                                                                                                   \
    { WEFT_INVALID_PARAMS, "Invalid params", "invalidParams" }

/* The caller's idempotency key, made its own, so that nobody is given what another did. 0 without one (ret is empty) or
 * with; <0 after -32602 has been answered. Only before the handler returns. */
#define WEFT_KEY 256
int weft__idempotency_key(weft_req *req, char ret[WEFT_KEY]);

/* Why an agent stopped before it was done, in ACP's words; none when it was done, or did not say. */
weft_val weft__early_stop(const char *stop_reason);
/* What it cost, as its agent said; none when nobody knows. */
weft_val weft__usage_or_none(const weft_task *task);

#endif
