/* The agents' processes that live: which one serves a turn, how long one without a turn is kept, and that all end with the
 * engine. A process serves several sessions where its driver can; a session stays in the process that has it, so that its
 * next turn needs no start.
 *
 * For run.c, which has the turns, session_commands.c, which asks agents for other things, and engine.c, which has the life
 * of it all. */
#ifndef WEFT_AGENT_POOL_H
#define WEFT_AGENT_POOL_H

#include "engine_private.h"

/* A session in a process that lives. It has the turn of a run, or none. */
typedef struct pool_session pool_session;

void weft__pool_init(weft_engine *engine);
/* The driver of an agent; NULL: it is not there. */
const weft_driver *weft__pool_driver(const weft_engine *engine, const weft_agent *agent);
/* Give the run's prompt to the process that has its session, to another of its agent, or to a new one. 0: weft__run_ended()
 * will be called; <0 nothing was started. */
int weft__pool_prompt(weft_engine *engine, struct run *run, const weft_turn_spec *turn, pool_session **ret);
int weft__pool_answer(pool_session *session, const char *key, const char *option);
int weft__pool_accept(pool_session *session, const char *key, const weft_json *content);
/* End the turn; force: with its process, now. */
void weft__pool_cancel(pool_session *session, bool force);
void weft__pool_pause(pool_session *session, bool paused);
/* What the run was told up to this number is durable. */
void weft__pool_kept(pool_session *session, uint64_t at);
/* The run is freed, and its turn goes on without us: on a runner. */
void weft__pool_let_go(pool_session *session);
/* The run is freed: nothing is told to it any more. */
void weft__pool_forget_run(pool_session *session);
/* What is asked of agents besides turns. done is called once, later, as driver.h has it, also when the engine is freed
 * (-ECANCELED); <0: it is not. A process is opened where none lives, and kept as after a turn.
 *
 * -EUSERS: so much is asked of agents already that no more processes are started for it.
 * open: the session, without a turn. must_exist as in driver.h. -EBUSY: it has a turn, or is being opened.
 * set: -ENOTCONN, now or later: no process has it open. */
int weft__pool_open(weft_engine *engine, const weft_agent *agent, const known_session *session, bool must_exist,
                    weft_driver_done *done, void *ctx);
int weft__pool_set(weft_engine *engine, const char *session, const weft_session_setting *setting, weft_driver_done *done,
                   void *ctx);
int weft__pool_list(weft_engine *engine, const weft_agent *agent, const char *folder, const char *cursor,
                    weft_driver_done *done, void *ctx);
int weft__pool_remove(weft_engine *engine, const weft_agent *agent, const char *agent_session, weft_driver_done *done,
                      void *ctx);
int weft__pool_logout(weft_engine *engine, const weft_agent *agent, weft_driver_done *done, void *ctx);
/* In the words of its protocol. */
int weft__pool_ask(weft_engine *engine, const weft_agent *agent, const char *method, const weft_json *params,
                   weft_driver_done *done, void *ctx);
/* The session gives up its place: it must not have a turn. */
void weft__pool_close(weft_engine *engine, const char *session);
/* Its settings are others now: a process that was opened with the old ones, and was not told, has no place for it after its
 * turn. */
void weft__pool_refresh(weft_engine *engine, const known_session *session);
/* The same, whatever has changed. */
void weft__pool_reopen(weft_engine *engine, const char *session);
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
