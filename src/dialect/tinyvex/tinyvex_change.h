/* Mutations and actions: what tinyvex/mutation and tinyvex/action do, by name. Each is a row like a method's, with params,
 * scope and help; its handler has the change as its ctx. It looks at its params, begins the change, and gives the engine the
 * command; a repeat never comes so far as to do it again (once.h). */
#ifndef WEFT_TINYVEX_CHANGE_H
#define WEFT_TINYVEX_CHANGE_H

#include "collections.h"
#include "once.h"
#include "tinyvex.h"

/* What is asked for, while the row's handler runs. */
typedef struct tinyvex_change {
    weft_hub *hub;
    const weft_method *row;
    const char *request_id;
    weft_json args;
    char by[WEFT_REQUEST_ID + 1];
    bool *told; /* that it was refused, where it is a notification */
} tinyvex_change;

/* One who waits for the outcome. */
typedef struct tinyvex_caller tinyvex_caller;

/* Begin it. 0 with a request: do it now, and settle it (once.h); the caller is answered then. 0 without: it was done before,
 * or is under way; the caller is answered in a while. <0: it has been refused; return that. */
int weft__tinyvex_begin(weft_req *req, const tinyvex_change *change, weft_request **ret);
/* Nothing was done: tell everybody who waits for it why. code: 0 for -32603; path: of an argument, then it is -32602. */
void weft__tinyvex_not_done(weft_request *request, int code, const char *reason, const char *path, const char *format, ...)
    WEFT_PRINTF(5, 6);
/* What a command of the engine says: settle the request with r, or refuse it in words. id is the thread's; why is the
 * agent's sentence, or NULL. */
void weft__tinyvex_settle(weft_request *request, int r, const char *id, const char *why);
/* Refuse it before anything begins. A notification has no answer: tinyvex/mutate_result says it. */
int weft__tinyvex_refuse_change(weft_req *req, const tinyvex_change *change, int code, const char *name, const char *reason,
                                const char *path, const char *format, ...) WEFT_PRINTF(7, 8);
/* The same with -32602: an argument is wrong. Returns what the handler returns, <0. */
int weft__tinyvex_refuse_args(weft_req *req, const tinyvex_change *change, const char *path, const char *format, ...)
    WEFT_PRINTF(4, 5);

/* The rows: each ends with a NULL name. */
extern const weft_method weft__tinyvex_mutations[], weft__tinyvex_actions[];

/* ---- tinyvex_threads.c ---- */
weft_handler weft__tinyvex_thread_create, weft__tinyvex_thread_rename, weft__tinyvex_thread_archive,
    weft__tinyvex_thread_delete, weft__tinyvex_message_post, weft__tinyvex_agent_prompt;
extern const weft_param weft__tinyvex_create_params[], weft__tinyvex_rename_params[], weft__tinyvex_thread_params[],
    weft__tinyvex_post_params[], weft__tinyvex_prompt_params[];

/* ---- tinyvex_docs.c ---- */
weft_handler weft__tinyvex_doc_put, weft__tinyvex_doc_delete;
extern const weft_param weft__tinyvex_put_params[], weft__tinyvex_doc_params[];

/* ---- tinyvex_git.c ---- */
weft_handler weft__tinyvex_git_commit;
extern const weft_param weft__tinyvex_commit_params[];

/* ---- tinyvex_late.c ---- */

/* What came of a change whose caller had gone: it is told to the same caller's connections that are there, or when it comes
 * back. Without memory for it, or with too many, the oldest is not told; a repeat of the request always is. */
void weft__tinyvex_tell_late(weft_hub *hub, const char *by, weft_val params);
/* This client has come: tell it what is kept for it. */
void weft__tinyvex_came(weft_hub *hub, weft_hub_client *client);

#endif
