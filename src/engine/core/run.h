/* The inside of a run, for run.c and outbox.c. */
#ifndef WEFT_RUN_H
#define WEFT_RUN_H

#include "agent_pool.h"
#include "terminals.h"

/* Why it is being ended. */
typedef enum run_stop { GOES_ON, CANCELLED, TIMED_OUT, DAEMON_STOPS, MEMORY_SHORT } run_stop;

struct run {
    weft_engine *engine;
    known_task *task;
    const weft_agent *agent; /* NULL: it is not configured any more */
    pool_session *turn;      /* NULL: it was never started, or is over */
    weft_timer timeout, again;
    weft_timer quiet; /* it may say nothing for so long; not set: for ever */
    bool fell_quiet;  /* and did */
    weft_later later; /* look at what there is to do */
    run_stop stop;
    bool kill; /* at once, when nothing of the driver's is being called */

    weft_link outbox, sent; /* parcels that wait, and those under way */
    size_t outbox_bytes;
    bool sending, paused;
    int tries; /* to store it, that failed because a number was taken, one after the other */
    int lost;  /* while stopping, something it said could not be stored: why; neither is its end then */
    weft_link refusals;

    weft_terminals *terminals; /* that its agent has; NULL: none yet */

    char denied[300]; /* what a person, the configuration or the clock did not allow, last; "": nothing */
    const char *no_reason;
    bool ended, closing; /* on_end has come; its last event is under way */
    bool withdrawn;      /* so are its questions */
    bool ok, retryable;
    bool cut; /* some of what it said could not be kept */
    int exit_code, signal;
    char *end_text; /* the memory of: */
    const char *reason, *error, *stop_reason;
    char *tokens, *context, *cost; /* run_usage.c's: JSON; NULL: unknown */
};

/* run.c: what the driver tells, by agent_pool.c */

void weft__run_process(struct run *run, pid_t pid);
void weft__run_session(struct run *run, const weft_session_info *info);
void weft__run_output(struct run *run, weft_run_stream stream, weft_bytes text);
void weft__run_update(struct run *run, const weft_json *update);
void weft__run_usage(struct run *run, const weft_json *usage);
void weft__run_result(struct run *run, const weft_json *result);
void weft__run_ask(struct run *run, const char *key, weft_val asked);
void weft__run_unask(struct run *run, const char *key);
void weft__run_elicited(struct run *run, const char *elicitation);
/* Its turn is over, and with it the run. */
void weft__run_ended(struct run *run, const weft_turn_end *end);
/* Its turn is over; the run is when the process has ended, which weft__run_left() says. */
void weft__run_leaves(struct run *run, const weft_turn_end *end);
void weft__run_left(struct run *run, int exit_code, int signal);

/* Something it said was kept (r >= 0), or was not: then it must not go on. */
void weft__run_kept(struct run *run, int r);
/* Which attempt of its task says this, if it is not the first. */
static inline weft_val weft__later_attempt(const struct run *run) {
    return run->task->pub.attempt > 1 ? weft_int(run->task->pub.attempt) : weft_none();
}
/* Store an update. */
int weft__run_put_update(struct run *run, weft_val update);

/* run_terminals.c */

/* An update that shows terminals, with what they printed; see weft__terminals_show(). */
int weft__run_show_terminals(struct run *run, const weft_json *update, weft_buf *ret);
/* The turn is cancelled; it is over; the run is forgotten in the middle. */
void weft__run_stop_terminals(struct run *run);
void weft__run_end_terminals(struct run *run);
void weft__run_drop_terminals(struct run *run);

/* run_usage.c: what it cost. */

void weft__usage_of_turn(struct run *run, const weft_json *usage);
void weft__usage_of_update(struct run *run, const weft_json *update);
/* {tokens?, context?, sessionCost?}; none: nothing is known. */
weft_val weft__usage_val(const struct run *run, weft_member members[3]);
void weft__usage_done(struct run *run);

/* outbox.c: what the run says, in order, as few appends as possible, nothing lost. */

/* -ENOMEM: this is lost, and the run must not go on. */
int weft__outbox_output(struct run *run, weft_run_stream stream, weft_bytes text);
/* One event; hub: of the hub's stream, otherwise the session's. */
int weft__outbox_event(struct run *run, bool hub, const char *type, weft_val data);
/* question.asked, or with an option question.answered by the configuration. Written when it is sent, because its number may
 * have to change until it is stored; the question is kept until then. */
int weft__outbox_question(struct run *run, known_question *question, const char *option);
/* Send what waits, unless something is under way. */
void weft__outbox_flush(struct run *run);
static inline bool weft__outbox_empty(const struct run *run) {
    return !run->sending && weft__list_empty(&run->outbox);
}
void weft__outbox_drop(struct run *run);

#endif
