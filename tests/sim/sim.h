/* The simulation: a real engine, clients and peers on virtual time, a store whose disk survives a kill, agents and clients
 * that do what a seed says, and a check of everything that was promised. One seed is one run and always the same run.
 *
 *   sim.c         the program: seeds, repeating a failed one with its steps, leaving out steps that do not matter
 *   sim_steps.c   the scheduler: which thing happens next; then the fair end, in which everything must come to rest
 *   sim_hub.c     adapter to the hub: engine, dialects, clients, connections. Only this file knows the subscribers'
 * interface sim_driver.c  adapter to drivers: agents that talk, ask, fail, crash and ignore. Only this file knows
 * weft_driver sim_store.c   the store's kind: the one in memory, which works when the scheduler says so and fails when it
 * says so sim_client.c  clients that speak JSON-RPC in bytes: they submit, cancel, answer, subscribe, read slowly, go and
 * resume sim_plans.c   plans that are made, run and cancelled, and what they must obey
 *   sim_gated.c   gated tasks, and sim_runners.c other machines that run tasks: likewise
 *   sim_truth.c   what is on the disk, and the rules that it must obey
 *
 * Everything is called from one thread, and there is one run at a time, so its state is one static struct per file. */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/json.h>

#include "store_kind.h"

/* ---- sim.c: chance, words and failure ---- */

#define SIM_NAME 32

/* A number below n (at least 1), or true in percent of the cases; each step has a source of its own. */
uint32_t sim_below(uint32_t n);
bool sim_chance(uint32_t percent);
/* Say what happens; shown when a failed run is repeated. */
void sim_say(const char *format, ...) WEFT_PRINTF(1, 2);
/* A promise was broken. The first is kept. What comes before the first colon names the promise. */
void sim_broken(const char *format, ...) WEFT_PRINTF(1, 2);
bool sim_is_broken(void);
/* For the comparison of two runs of one seed. */
void sim_digest(const void *data, size_t len);
/* Counts what is not freed. */
const weft_alloc *sim_alloc(void);
/* Its n-th allocation from now on fails; 0: none does. */
void sim_fail_memory(uint32_t n);
/* It has failed since. */
bool sim_memory_failed(void);

/* What must have happened in some run of a thousand, or the simulation no longer looks where it should. */
#define SIM_SIGHTS(X)                                                                                                       \
    X(KILL, "the daemon was killed with something on its way to the disk")                                                  \
    X(EARLY, "the daemon was ready before it had read the past")                                                            \
    X(EARLY_ASKED, "somebody asked for a task of the past before that was read")                                            \
    X(EARLY_KILL, "the daemon was killed before it had read the past")                                                      \
    X(STOP, "the daemon stopped while tasks ran")                                                                           \
    X(LOST_DISK, "the disk was lost")                                                                                       \
    X(GHOST, "an append that failed was there after a kill")                                                                \
    X(WRITE_FAULT, "an append failed")                                                                                      \
    X(READ_FAULT, "a read failed")                                                                                          \
    X(MEMORY_FAULT, "memory was short")                                                                                     \
    X(MUTATION, "a value was changed")                                                                                      \
    X(MUTATION_AGAIN, "a change was repeated and gave the first answer")                                                    \
    X(REMOVAL, "contents of events were removed")                                                                           \
    X(TRIM, "events were trimmed")                                                                                          \
    X(RETRY, "a task was tried again")                                                                                      \
    X(REQUEUE, "a task was queued again after a kill")                                                                      \
    X(TIMEOUT, "a task took too long")                                                                                      \
    X(CANCEL, "a task was cancelled")                                                                                       \
    X(CANCEL_LATE, "a task ended before it was cancelled")                                                                  \
    X(ANSWER, "a question was answered")                                                                                    \
    X(ANSWER_LATE, "somebody else answered first")                                                                          \
    X(EXPIRED, "a question expired")                                                                                        \
    X(WITHDRAWN, "a question was withdrawn")                                                                                \
    X(ORPHANED, "a question outlived its agent")                                                                            \
    X(ADOPTED, "an agent found its question again")                                                                         \
    X(REPEAT, "a submission was repeated and gave the first task")                                                          \
    X(STREAM_RESUMED, "a stream went on where it was")                                                                      \
    X(STREAM_ANEW, "a stream began anew")                                                                                   \
    X(VIEW_KEPT, "a client came back and had the value already")                                                            \
    X(PIECES, "a value came in pieces")                                                                                     \
    X(SUPERSEDED, "a value that came in pieces was given up for a newer one")                                               \
    X(THREAD, "a client had what was said in a session")                                                                    \
    X(SKIPPED, "a client was told that values were skipped")                                                                \
    X(RESUMED, "a subscription went on where it was")                                                                       \
    X(TRIMMED_GAP, "a position was trimmed")                                                                                \
    X(EPOCH_GAP, "a position was of another epoch")                                                                         \
    X(FULL, "a connection was full")                                                                                        \
    X(CLOSED, "the hub closed a connection that missed something")                                                          \
    X(BEHIND, "a task waited behind another of its session")                                                                \
    X(SECOND_TURN, "a process had a second turn")                                                                           \
    X(NEIGHBOURS, "a process had two turns at a time")                                                                      \
    X(DEATH, "a process died with two turns")                                                                               \
    X(SET_LIVE, "something was set in a session that was open")                                                             \
    X(SET_AGAIN, "a session was opened with what had been set before")                                                      \
    X(SESSION_OPENED, "a session was opened without a task")                                                                \
    X(SESSION_CLOSED, "a session was closed while it had tasks")                                                            \
    X(SESSION_DELETED, "a session was deleted while it had tasks")                                                          \
    X(SESSION_RESUMED, "a closed session was resumed")                                                                      \
    X(PLAN, "a plan completed")                                                                                             \
    X(PLAN_ENDED, "a plan failed or was cancelled")                                                                         \
    X(PLAN_FORGOTTEN, "a plan forgot what it says of a task whose session is gone")                                         \
    X(PLAN_REMOVED, "a plan went with the last session of its tasks")                                                       \
    X(PLAN_RESUMED, "a plan went on after a restart and completed")                                                         \
    X(GATED, "a gated task completed")                                                                                      \
    X(GATED_AGAIN, "a gated task completed after another iteration")                                                        \
    X(GATED_ENDED, "a gated task failed or was cancelled")                                                                  \
    X(GATED_RESUMED, "a gated task went on after a restart and completed")                                                  \
    X(LENT, "a task completed on a runner")                                                                                 \
    X(LENT_RESUMED, "a task on a runner went on over a restart and completed")                                              \
    X(LEASE_OVER, "a lease was over, and its task was tried again")                                                         \
    X(LATE, "a runner said something of a lease that was over")

typedef enum sim_sight {
#define X(name, words) SAW_##name,
    SIM_SIGHTS(X)
#undef X
        SIM_SIGHT_COUNT
} sim_sight;
void sim_saw(sim_sight sight);

/* What a seed decides once, before the first step: how often which fault happens, and the limits. */
typedef struct sim_plan {
    unsigned steps, clients;
    unsigned store_faults, memory_faults, kills, stops, drops, trims, time_jumps, plans, gated, runners; /* weights */
    bool requeue, slow_disk;
    bool sessions;   /* clients create, set, close and delete sessions, and agents live */
    int64_t idle_ms; /* how long those live without a turn */
    bool threads;    /* clients follow what was said in a session */
    size_t chunk;    /* bytes of a value that are sent at a time; 0: more than a value has */
    size_t max_running, max_queue, out_soft;
    int64_t timeout_ms, question_ms;
    uint64_t keep_bytes, keep_output; /* 0: more than a run writes */
} sim_plan;
const sim_plan *sim_now_plan(void);

/* ---- sim_steps.c ---- */

/* Play the plan. skip: steps to leave out, by their number from 1; NULL: none. */
void sim_play(const sim_plan *plan, const bool *skip);
/* Begin step n: its source of chance, so that leaving one out does not change the others'. */
void sim_begin_step(unsigned step);

/* ---- sim_hub.c ---- */

void hub_open(void);
void hub_close(void); /* everything, also the disk */
int64_t hub_now(void);
void hub_move_time(int64_t ms);
/* When something is due next; INT64_MAX: nothing is. */
int64_t hub_deadline(void);
void hub_turn(void);
/* The daemon dies: connections end, what is not on the disk is lost. */
void hub_kill(void);
/* It is asked to stop. */
void hub_stop(bool force);
/* Start it again when it is down, or finish a start or stop that has got so far. True: something was done. */
bool hub_tend(void);
bool hub_is_ready(void);
bool hub_is_stopping(void);
/* Ready, and nothing that is kept is still to be read. */
bool hub_knows_past(void);
/* Everything up to this event was delivered: without memory that is tried again later. */
bool hub_has_heard(uint64_t gseq);
/* Nothing is to be computed for those who follow streams. */
bool hub_is_idle(void);
/* Keep so many events of a session's stream. */
void hub_trim(const char *session, uint64_t rows);
/* What the engine says of a task: its state's name; NULL: it does not know it. */
const char *hub_task_state(const char *id);
/* The id of a question that is open, the n-th; NULL: there are not so many. */
const char *hub_open_question(size_t n);
size_t hub_max_running(const char *agent); /* NULL: of all */
bool hub_is_open(const char *question);
/* The mode that the engine knows of a session: "": none was chosen; NULL: it does not know the session. */
const char *hub_session_mode(const char *id);
bool hub_session_closed(const char *id);

/* A connection, as the client's end sees it. */
typedef struct hub_conn hub_conn;
/* ctx is handed to on_lost when the hub ends the connection; its last bytes came through on_bytes before. NULL: refused. */
hub_conn *hub_connect(const char *name, const char *dialect, void *ctx);
void hub_disconnect(hub_conn *conn);
/* false: the hub ended it. */
bool hub_feed(hub_conn *conn, const char *data, size_t len);
/* Take at most max bytes of what it has to say to the client. */
size_t hub_take(hub_conn *conn, char *into, size_t max);
/* Events up to this gseq were told before the connection was there. */
uint64_t hub_told(void);

/* ---- sim_driver.c ---- */

typedef struct weft_driver weft_driver;
extern const weft_driver sim_driver, sim_living;
void driver_open(void);
void driver_close(void);
/* The disk is another: what was said before is not on it. */
void driver_forget(void);
size_t driver_runs(void);    /* that have not ended */
size_t driver_waiting(void); /* what else agents have not answered yet */
/* One of them does something. */
void driver_step(void);
/* One of them comes to its end. */
void driver_finish(void);
/* The hub was killed, and all runs with it. */
void driver_killed(void);
/* The start of an attempt was stored. */
void driver_begin(const char *task);
/* This was stored as output of a task; it must be what the agent said next. */
void driver_check_output(const char *task, const char *text, size_t len);
/* The end of a task was stored: all it said must have been. */
void driver_check_end(const char *task, const char *reason);

/* ---- sim_plans.c ---- */

typedef struct weft_engine weft_engine;
void plans_open(void);
/* The daemon has its plans, or no longer. */
void plans_start(weft_engine *engine);
void plans_stop(void);
/* Somebody makes one and runs it, or cancels one. */
void plans_step(void);
bool plans_at_rest(void);
/* This was stored. */
void plans_truth(const char *type, const weft_json *data);
/* The disk is another. */
void plans_forget(void);

/* ---- sim_gated.c ---- */

/* The same for gated tasks, whose gates end by chance. */
void gated_open(void);
void gated_start(weft_engine *engine);
void gated_stop(void);
void gated_step(void);
bool gated_at_rest(void);
void gated_truth(const char *type, const weft_json *data);
void gated_forget(void);

/* ---- sim_runners.c ---- */

/* The same for other machines that run tasks. */
void runners_open(void);
void runners_close(void);
void runners_start(weft_engine *engine);
void runners_stop(void);
void runners_step(void);
/* In the fair end: all of them come, end what they have and tell it. True: something was done. */
bool runners_mend(void);
void runners_truth(uint64_t gseq, const char *type, const weft_json *data);
void runners_forget(void);

/* ---- sim_store.c ---- */

const weft_store_kind *store_kind(void);
void store_open_disk(void);
void store_close_disk(void);
size_t store_writes(void); /* jobs that wait */
size_t store_reads(void);
/* Work on the oldest; fail: with this error instead. */
void store_write(int fail);
void store_read(int fail);
/* The next open finds an empty disk with another epoch. */
void store_lose_disk(void);
/* Kill: a part of what waits becomes durable, the rest is lost. Otherwise close() finishes all. */
void store_set_killed(bool killed);

/* ---- sim_client.c ---- */

void clients_open(size_t count);
void clients_close(void);
/* One of them makes a request, or connects. */
void clients_act(void);
/* Bytes move between one of them and the hub; fair: all bytes of all. True: something moved. */
bool clients_wire(bool fair);
void clients_drop(void);
/* In the fair end: connect and subscribe again where that was wanted. True: something was done. */
bool clients_mend(void);
/* Everybody has heard everything, and no request is without an answer. */
void clients_check(void);
/* Called by the hub: it ended this client's connection. */
void client_lost(void *ctx);
void client_hear(void *ctx, const char *data, size_t len);
/* The daemon was killed: those requests will never be answered. */
void clients_cut(void);

/* ---- sim_truth.c ---- */

typedef enum truth_state {
    TRUTH_NONE,
    TRUTH_QUEUED,
    TRUTH_RUNNING,
    TRUTH_COMPLETED,
    TRUTH_FAILED,
    TRUTH_CANCELLED
} truth_state;
typedef struct truth_task {
    char id[SIM_NAME], agent[SIM_NAME], session[SIM_NAME];
    char key[64], prompt[64];
    truth_state state;
    int64_t attempt;
    uint64_t queued; /* by this event */
} truth_task;
typedef struct truth_question {
    char id[SIM_NAME], task[SIM_NAME], title[64];
    char end[24]; /* "answered", ...; "": it is open */
    char option[24], by[SIM_NAME];
} truth_question;
typedef struct truth_session {
    char id[SIM_NAME], agent[SIM_NAME], mode[16];
    bool closed, deleted;
    unsigned sets, closes, resumes;
} truth_session;
typedef struct truth_event {
    uint64_t gseq, seq;
    int64_t time_ms;
    size_t len;
    const char *stream, *type, *data;
    char task[SIM_NAME], session[SIM_NAME]; /* that it is about; "": none */
    bool names_task, names_session;         /* in its data; otherwise the engine must know */
    bool trimmed, unseen;                   /* unseen: it was trimmed before the engine had seen it */
    bool removed;                           /* its content was taken out */
} truth_event;

void truth_open(const char *epoch);
void truth_close(void);
/* These events are durable from now on. */
void truth_append(const weft_event *events, size_t count);
/* The content of these was taken out. */
void truth_remove(const uint64_t *gseqs, size_t count);
/* After a trim: this is what is kept. How many events went. */
uint64_t truth_keep(const weft_page *page);
const char *truth_epoch(void);
uint64_t truth_head(void);
const truth_event *truth_at(uint64_t gseq); /* NULL: there was none */
/* An event after this position is no longer kept. */
bool truth_trimmed_after(uint64_t gseq);
bool truth_session_trimmed(const char *session);
/* What the disk has as the result of a request: the version of its change; 0: there was nothing to change. false: it has
 * none.
 */
bool truth_request(const char *by, const char *id, uint64_t *ret_version);
const truth_task *truth_find(const char *id);
size_t truth_tasks(void);
const truth_task *truth_task_at(size_t index);
size_t truth_sessions(void);
/* Tasks of a session that have not ended. */
size_t truth_unfinished(const char *session);
const truth_session *truth_session_at(size_t index);
const truth_session *truth_session_find(const char *id);
const truth_question *truth_question_find(const char *id);
/* The last one a task asked under this title. */
const truth_question *truth_question_titled(const char *task, const char *title);
/* Tasks that have not ended. */
size_t truth_open_tasks(void);
/* The engine has seen the ends of all tasks that have ended. */
bool truth_is_known(void);
/* What the engine says must be what the disk says. settled: it has seen all that is there. */
void truth_check_engine(bool settled);
/* It has read all that is kept. */
void truth_check_past(void);
/* A task that was told of, whose events were not trimmed and whose session was not deleted. */
bool truth_is_kept(const char *id);

#endif
