/* The inside of a run, for run.c and outbox.c. */
#ifndef WEFT_RUN_H
#define WEFT_RUN_H

#include "agent_pool.h"
#include "snapshots.h"
#include "terminals.h"

/* Why it is being ended. */
typedef enum run_stop { GOES_ON, CANCELLED, TIMED_OUT, DAEMON_STOPS, MEMORY_SHORT, COST_LIMIT } run_stop;

/* none ──▶ BEFORE ──taken──▶ WORKS ──ended──▶ AFTER ──taken──▶ COMPARES ──▶ SETTLED     run_changes.c
 *   └───────────────┴──not possible, or not wanted any more──┴────────────────▲  */
typedef enum run_changes_step {
    CHANGES_NONE,
    CHANGES_BEFORE,
    CHANGES_WORKS,
    CHANGES_AFTER,
    CHANGES_COMPARES,
    CHANGES_SETTLED
} run_changes_step;
#define RUN_SPANS 8  /* more become one */
#define RUN_OTHERS 8 /* that are named */
typedef struct run_changes {
    run_changes_step step;
    weft_snapshot_wait wait;
    weft_snapshots *of; /* the files that it works on; NULL: no snapshots are taken */
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
    char last[WEFT_SNAPSHOT_HEX]; /* the last that was taken, by whoever */
    bool shared;                  /* others work too since then */
    char spans[RUN_SPANS][2][WEFT_SNAPSHOT_HEX];
    size_t span_count;
    char others[RUN_OTHERS][ENGINE_ID];
    size_t other_count;
} run_changes;

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
    uint64_t idle_at; /* told, and nothing of it was to be stored */
    int tries;        /* to store it, that failed because a number was taken, one after the other */
    bool apart;       /* what it said and its end could not be stored together */
    int lost;         /* while stopping, something it said could not be stored: why; neither is its end then */
    weft_link refusals;

    weft_terminals *terminals; /* that its agent has; NULL: none yet */

    char denied[300]; /* what a person, the configuration or the clock did not allow, last; "": nothing */
    const char *no_reason;
    bool ended, closing; /* on_end has come; its last event is under way */
    bool withdrawn;      /* so are its questions */
    bool ok, retryable;
    bool cut;  /* some of what it said could not be kept */
    bool deaf; /* on a runner, likewise: nothing behind that is taken, or a restart would go on behind the hole */
    int exit_code, signal;
    char *end_text; /* the memory of: */
    const char *reason, *error, *stop_reason;
    char *tokens, *context, *cost; /* run_usage.c's: JSON; NULL: unknown */
    weft_money cost_now;           /* the session's sum, as it was told last */
    char over[200];                /* which limit of cost it has reached; "": none */
    run_changes changes;
    bool awaits_worktree;         /* it is being made; its turn starts behind it */
    struct worktree_setup *setup; /* commands run in it; NULL: not now */
};

/* run.c: what the driver tells, by agent_pool.c */

void weft__run_process(struct run *run, pid_t pid);
void weft__run_session(struct run *run, const weft_session_info *info);
void weft__run_output(struct run *run, weft_run_stream stream, weft_bytes text);
void weft__run_update(struct run *run, const weft_json *update);
void weft__run_usage(struct run *run, const weft_json *usage);
void weft__run_changed_there(struct run *run, const weft_json *counts);
void weft__run_result(struct run *run, const weft_json *result);
/* Everything up to this number of its runner's was told. */
void weft__run_told(struct run *run, uint64_t at);
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

/* run_questions.c */

/* Questions that nobody can be asked: the agent hears that nothing was chosen. */
void weft__run_tell_refusals(struct run *run);

/* run_usage.c: what it cost. */

void weft__usage_of_turn(struct run *run, const weft_json *usage);
void weft__usage_of_update(struct run *run, const weft_json *update);
/* {tokens?, context?, sessionCost?, cost?}; none: nothing is known. */
typedef struct usage_parts {
    weft_member members[4], cost[2];
    char amount[WEFT_MONEY_TEXT], currency[WEFT_CURRENCY];
} usage_parts;
weft_val weft__usage_val(const struct run *run, usage_parts *parts);
/* What the turn has cost up to now; false: nobody said. */
bool weft__usage_cost(const struct run *run, weft_money *ret);
void weft__usage_done(struct run *run);

/* run_changes.c: snapshots before and after. */

/* true: the turn has to wait, and weft__run_go_on() is called when it may start. */
bool weft__run_changes_begin(struct run *run);
/* The turn is over. false: the run is not to be closed yet; it is looked at again. */
bool weft__run_changes_end(struct run *run);
/* The turn is not to start any more. true: it was waiting to. */
bool weft__run_changes_stop(struct run *run);
/* There is no time for it. */
void weft__run_changes_give_up(struct run *run);
/* An undo changed the files from one tree to another: what runs did not do that. */
void weft__run_changes_foreign(weft_engine *engine, const weft_snapshots *of, const char *from, const char *to);
void weft__run_go_on(struct run *run);

/* task_worktree.c: where it works. */

/* true: the turn has to wait for its worktree, or does not start; weft__run_begin() is called when it is there. */
bool weft__run_worktree_begin(struct run *run);
/* The turn is not to start any more. true: it was waiting to. */
bool weft__run_worktree_stop(struct run *run);

/* worktree_setup.c: commands that run in a new one. */

bool weft__setup_is_due(const weft_engine *engine, const char *worktree);
/* on_set_up once, later, with why it failed; NULL: it has not. */
int weft__setup_begin(struct run *run, void (*on_set_up)(struct run *run, const char *why));
void weft__setup_drop(struct run *run);
void weft__run_begin(struct run *run);

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
/* Everything up to this number of its runner's is in it. True: nothing of that waits. */
bool weft__outbox_mark(struct run *run, uint64_t at);
void weft__outbox_drop(struct run *run);

/* What the end of a task says of its output. */
typedef struct run_said {
    weft_buf text; /* its end, and perhaps more before that */
    uint64_t bytes, from, to;
} run_said;
/* May what waits be stored in one append with the end? */
bool weft__outbox_may_close(const struct run *run);
/* All that waits, into the draft of the end; said is then what it will be. What goes wrong is in the draft. */
void weft__outbox_close(struct run *run, struct draft *draft, run_said *said);
/* They are stored; or cannot be (<0), and what waited is stored alone, before the end. */
void weft__outbox_closed(struct run *run, int r);

#endif
