/* The agents' processes that live: which one serves a turn, how long one without a turn is kept, and that all end with the
 * engine. A process serves several sessions where its driver can; a session stays in the process that has it, so that its
 * next turn needs no start.
 *
 * For run.c, which has the turns, and engine.c, which has the life of it all. */
#ifndef WEFT_AGENT_POOL_H
#define WEFT_AGENT_POOL_H

#include "engine_private.h"

/* A session in a process that lives. It has the turn of a run, or none. */
typedef struct pool_session pool_session;

void weft__pool_init(weft_engine *engine);
/* Give the run's prompt to the process that has its session, to another of its agent, or to a new one. 0: weft__run_ended()
 * will be called; <0 nothing was started. */
int weft__pool_prompt(weft_engine *engine, struct run *run, const weft_turn_spec *turn, pool_session **ret);
int weft__pool_answer(pool_session *session, const char *key, const char *option);
/* End the turn; force: with its process, now. */
void weft__pool_cancel(pool_session *session, bool force);
void weft__pool_pause(pool_session *session, bool paused);
/* The run is freed: nothing is told to it any more. */
void weft__pool_forget_run(pool_session *session);
/* The configuration was read again: processes of an agent that changed take no more turns. */
void weft__pool_recheck(weft_engine *engine);
/* The engine stops: those without a turn end now, the others with theirs. */
void weft__pool_stop(weft_engine *engine, bool force);
static inline bool weft__pool_empty(const weft_engine *engine) {
    return weft__list_empty(&engine->processes);
}
/* Kill and forget all. */
void weft__pool_drop(weft_engine *engine);

#endif
