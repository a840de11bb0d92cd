/* Requests that are done once. A caller gives each of them an id; a repeat, by the same caller, gets the answer of the first
 * time, also after a restart and while the first is still under way. The same id with something else in it is refused.
 *
 * A mutation changes what the engine keeps. Its answer is stored in the same append as the change, so that both are there or
 * neither is. An action does something outside (a commit): that it begins is stored first, and what came of it afterwards.
 * If the daemon dies in between nobody knows whether it was done, which is then its answer; it is never done again.
 *
 * Remembered are the last WEFT_REQUESTS of them, with at most WEFT_REQUEST_BYTES of answers, none of them longer than events
 * are kept. Of one that is no longer remembered the store still knows the id, as long as it keeps the event: it is refused,
 * not done again. */
#ifndef WEFT_ONCE_H
#define WEFT_ONCE_H

#include "engine.h"

#define WEFT_REQUESTS 50000                     /* that are over and remembered: about 200 bytes each */
#define WEFT_REQUEST_BYTES ((size_t) 32 << 20)  /* of their answers */
#define WEFT_REQUEST_RESULT ((size_t) 32 << 10) /* of one answer: names and numbers, or what git said */
#define WEFT_REQUEST_ID 255                     /* bytes of an id, and of whoever it belongs to */
#define WEFT_REQUESTS_AT_ONCE 4096              /* under way, and as many who wait for one that is */

typedef struct weft_request_spec {
    const char *by;   /* the caller: another's request with the same id is another one */
    const char *id;   /* 1 to WEFT_REQUEST_ID bytes */
    const char *name; /* what it asks for, */
    weft_json args;   /* and with what; two that mean the same JSON are the same */
} weft_request_spec;

/* What came of it. All borrowed. */
typedef struct weft_request_outcome {
    int r;            /* 0 done: result. 1 refused: error. Below 0: neither is known, see below */
    weft_json result; /* as the engine stored it */
    weft_json error;  /* as weft__request_refuse() was given it */
    bool repeat;      /* it was done before */
} weft_request_outcome;
/* r: the store's failure; -EEXIST it was done before, and its answer is no longer remembered; -EOWNERDEAD it is an action
 * that began and whose end is not known; -ECANCELED the engine has gone. */
typedef void weft_request_done(void *ctx, const weft_request_outcome *outcome);

/* 0: it is new. The caller does it now and ends it, by one of the functions below. 1: it is not; done runs later, as for the
 * first. -EINVAL an id or a name that is none; -ENOTUNIQ the id was used for something else; -EUSERS too many are under way;
 * -EAGAIN the engine has not started; -ESHUTDOWN it stops; -ENOMEM. */
int weft__request_begin(weft_engine *engine, const weft_request_spec *spec, weft_request_done *done, void *ctx,
                        weft_request **ret);
/* Its command has completed with r. 0: its result is stored, and everybody who waits for it is told. It is freed. */
void weft__request_settle(weft_request *request, int r);
/* Nothing was done. Everybody who waits is told why; nothing is remembered. It is freed. */
void weft__request_refuse(weft_request *request, weft_val error);
/* There was nothing to do: remember this result, then tell it. Settled in any case. */
void weft__request_store(weft_request *request, weft_val result);

/* An action begins: on_begun when that is stored, and it may be done now (0), or never (<0; then it must be settled so).
 * <0 here: likewise, and on_begun does not run. */
int weft__request_act(weft_request *request, void (*on_begun)(void *ctx, int r), void *ctx);
/* It has ended: with a result, or refused with an error, which for an action is remembered as well. Settled in any case. */
void weft__request_acted(weft_request *request, weft_val result, weft_val error);

/* ---- commands that a request may stand for; those of tasks and new sessions have it in their orders ---- */

int weft__session_set_for(weft_engine *engine, weft_request *request, const char *id, const weft_session_setting *setting,
                          const char *by, weft_session_done *done, void *ctx);
int weft__session_close_for(weft_engine *engine, weft_request *request, const char *id, const char *by,
                            weft_session_done *done, void *ctx);
int weft__session_remove_for(weft_engine *engine, weft_request *request, const char *id, const char *by,
                             weft_session_done *done, void *ctx);

#endif
