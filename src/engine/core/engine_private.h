/* The inside of the engine, for its own files: what it knows, how it writes to the journal, and who acts on what came back.
 *
 *   engine.c       life, the follower, listeners       start.c      reading the journal, settling what ran
 *   journal.c      drafts and appends under way        fold.c       which event changes what
 *   task.c         what is known of tasks              submit.c     the commands: submit, cancel
 *   task_output.c  what a task said, read back         queue.c      who runs next
 *   session.c      what is known of sessions           run.c        one run of a driver, from start to end
 *   question.c     questions and their answers         outbox.c     what a run says, on its way to the store
 *   agent.c        which agent                         retention.c  what is no longer kept
 *   agent_pool.c   the agents' processes that live     saved.c      what is known, saved by key
 *   agent_pool_requests.c  what is asked of them besides turns
 *   session_commands.c  create, set, close, delete     session_facts.c  what agents say holds for a session
 *   session_erase.c     what goes with a deleted one
 *   firings.c      what rules did last                 transcript.c what was said in a session, read back
 *   run_terminals.c  terminals of a run's agent       run_questions.c  what a run's agent asks
 *   task_tail.c    the end of what a task says          task_forget.c  tasks that have ended go
 *   context.c      what planner and executor are to know of
 *   once.c         requests that are done once         collections.c  values by key
 *   approval.c     answers that stand                   tool_call.c  what an agent asks permission for
 *   past.c         what is old, read after the start   roles.c      who holds a role, and who of them is free
 *   task_changes.c what a task changed, and putting it back
 *   run_changes.c  snapshots before and after a run
 *   task_worktree.c  a worktree for a session, before its first turn
 *   worktree_setup.c  commands that run in a new one    worktree_commands.c  merging, discarding, listing, cleaning up
 *   cost.c         what turns have cost, and the limits of it
 *   runners.c      other machines that run tasks
 *
 * A thing that is being stored is in its map already, with stored false, so that what is in flight counts where it must; it
 * cannot be found from outside before its event was delivered. */
#ifndef WEFT_ENGINE_PRIVATE_H
#define WEFT_ENGINE_PRIVATE_H

#include <string.h>

#include "age.h"
#include "buf.h"
#include "doc.h"
#include "engine.h"
#include "loop.h"
#include "map.h"
#include "sum.h"
#include "watch.h"

#define TASK_DATA 22 /* members of task.queued */
#define ENGINE_ID 32 /* room for "task-" and a number */
/* Of tasks and questions: every reader of JSON can hold it, and nobody comes so far by counting. */
#define ENGINE_NUMBERS ((uint64_t) 1 << 53)
/* What is to be stored takes its number of one of the store's counters, so that two writers never take the same. Whoever was
 * slower takes the next one and tries again, so often: each time somebody else had stored something, so all of them go on.
 */
#define ENGINE_TRIES 16
#define COUNTER_TASK "task"
#define COUNTER_QUESTION "question"

/* NULL is equal to NULL only. */
static inline bool weft__texts_equal(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether something is saved as it is known. */
typedef enum saved_kind { SAVED_TASK, SAVED_SESSION, SAVED_QUESTION, SAVED_REQUESTS } saved_kind;
typedef struct saved_mark {
    weft_link link; /* it has changed since */
    saved_kind kind;
    bool saved; /* there is a document of it */
} saved_mark;

/* What is known */

typedef struct known_session {
    weft_session pub;
    weft_node node;
    weft_link link; /* oldest first */
    bool stored;
    bool read_back;          /* its stream was read at the start */
    bool opening;            /* in a process, without a task: no task starts meanwhile */
    size_t claims;           /* tasks for it that are being stored */
    weft_link turns;         /* tasks that wait or run, in the order in which they do: pub.turns of them */
    struct session_job *job; /* it is being closed or deleted */
    saved_mark saved;
    char *agent_session, *folder, *title, *settings, *servers; /* the memory of pub's */
    char *worktree, *branch, *path;                            /* likewise */
    char *agent;                     /* that of pub.agent, once it has become another one's; NULL: that is in text */
    char *facts[WEFT_SESSION_FACTS]; /* likewise, */
    char *told[WEFT_SESSION_FACTS],
        *telling[WEFT_SESSION_FACTS]; /* those to be stored, and those on their way; NULL: none */
    weft_link told_at;                /* in engine->told: there are some */
    int64_t told_again;               /* no more of them are stored before this; monotonic */
    char task[ENGINE_ID];
    uint64_t bytes;       /* of its stream, since it was last trimmed */
    uint64_t next_seq;    /* that the next event of its stream will have; 0: not known, after a start */
    weft_spent spent;     /* cost.c's, of the turns that have ended, */
    uint64_t spent_at;    /* up to this event */
    weft_money cost_told; /* by its agent, of the whole conversation */
    const char *stream;
    char text[];
} known_session;

/* Somebody waits for a task: to be stored, or to end. */
typedef struct waiter {
    weft_link link;
    weft_task_done *done;
    void *ctx;
} waiter;

typedef struct known_task {
    weft_task pub;
    weft_engine *engine;
    weft_node node, key_node;
    weft_link all;   /* oldest first */
    weft_link place; /* in the queue, or among those that have ended, in the order of ending */
    weft_link slot;  /* among those that take one: running, or about to */
    bool stored;
    bool submitted;         /* by a command of ours that is not answered yet */
    bool starting;          /* task.started is under way */
    bool ending;            /* task.cancelled of a queued task is under way */
    bool leaving;           /* its session is being closed, so it is being cancelled */
    bool letting_go;        /* it goes on at its runner, and this daemon stops */
    bool resumes;           /* its last attempt was interrupted by a restart: the next one goes on with it */
    const char *group;      /* NULL: none */
    weft_link group_at;     /* in engine->queueing_groups */
    weft_link waiters;      /* for its end */
    weft_link repeats;      /* the same key, while it was being stored */
    int64_t not_before;     /* of a retry, monotonic */
    known_session *session; /* NULL: forgotten */
    weft_link turn;         /* in its session */
    struct run *run;
    uint64_t lease, lease_at;        /* of its attempt: its number, and what its runner said up to here is stored */
    uint64_t output_from, output_to; /* seq of its first and last event in the session's stream; 0: none */
    char *tail;                      /* tail_cap bytes, of which the end is shown */
    size_t tail_len, tail_cap;
    char *ended;                /* the strings of its end */
    char *by;                   /* who cancels it */
    char *holder;               /* of its role; the memory of pub.runs_on; NULL: that is in text */
    char *said;                 /* what weft__task_data() says, as text, until it is saved; NULL: not kept */
    weft_task_changes *changes; /* the memory of pub's */
    size_t bytes;
    weft_spent spent;  /* cost.c's, of the attempts that have ended, */
    uint64_t spent_at; /* up to this event */
    saved_mark saved;
    uint64_t end_seq;  /* of the event that ended it */
    uint64_t saved_at; /* gseq up to which the document that was read at the start knows of it */
    char id[ENGINE_ID];
    char text[];
} known_task;

typedef struct known_question {
    weft_question pub;
    weft_node node;
    weft_link link; /* oldest first */
    bool stored;
    bool configured;          /* an answer that nobody was asked for is on its way behind it: nobody else may end it */
    char auto_by[80];         /* whose that is, */
    char approval[ENGINE_ID]; /* and by which standing answer; "": none */
    weft_engine *engine;
    struct run *run; /* that asked; NULL: none, or gone */
    char *key;       /* the driver's name for it */
    weft_question_done *on_asked, *on_answer;
    void *ctx;
    int tries; /* to store it, that failed because its number was taken */
    weft_timer expiry;
    saved_mark saved;
    uint64_t number;
    int64_t timeout_ms;
    size_t bytes;                          /* of what is asked */
    const char *close_type, *close_reason; /* it is to be closed so; NULL: not yet */
    char *answer;                          /* the strings of the answer */
    const char *digest;
    char id[ENGINE_ID];
    char text[];
} known_question;

/* The engine */

typedef enum phase { NEW, FOLDING, RECOVERING, READY, STOPPING, STOPPED, GONE } phase;

struct weft_engine {
    weft_engine_opts opts;
    weft_engine_limits limits;
    const weft_alloc *alloc;
    weft_loop *loop;
    weft_store *store;
    const weft_agents *agents;
    char *folder, *program;
    int root; /* the folder, open, once a path in it was looked at; -1: not yet */
    phase phase;

    weft_watch *watch;
    weft_follow *follow;
    struct folding *folding;
    uint64_t applied; /* gseq of the last event the read models have seen */
    bool fresh;       /* there was no journal */
    uint64_t skipped; /* events that could not be read */
    weft_timer again; /* to follow on, when memory was short */
    weft_link sent;   /* appends under way */
    size_t lagging;   /* of them, stored but not yet applied */
    weft_link reads;  /* outputs being read */
    weft_link transcripts, transcripts_waiting;
    size_t transcript_count, transcript_waiting_count;
    int trouble;
    int64_t trouble_noted; /* when that was last said in the log; 0: never */
    int64_t trouble_since; /* monotonic */
    weft_timer probe;      /* to try whether it is over, although nobody wants to store anything */
    weft_link listeners, listener_at, listener_stop;

    weft_map tasks, keys, sessions, questions;
    weft_link all_tasks, queue, ended, slots, all_sessions, all_questions;
    weft_link processes, pool_requests; /* of agent_pool.c, agent_pool_requests.c */
    uint64_t processes_started;
    weft_later pool_later;
    weft_link session_jobs, told; /* session_commands.c's, session_facts.c's */
    weft_link erasings;           /* session_erase.c's */
    weft_later erase_later;
    weft_erase_too *erase_too; /* NULL: none */
    void *erase_ctx;
    weft_later session_later;
    weft_timer session_timer;
    size_t fact_bytes; /* of all sessions */
    size_t ended_count, ended_bytes, queue_count;
    size_t queueing;           /* submitted to wait, not yet stored */
    weft_link queueing_groups; /* those of them that have a group */
    size_t ends;               /* ends of tasks under way */
    size_t session_count, question_count, question_over;
    bool unattended;       /* nobody can answer questions any more */
    size_t sessions_stuck; /* so many were left when the last look found no more to forget; 0: there were not too many */
    size_t question_bytes; /* of the open ones */
    uint64_t next_task, next_question;
    weft_task_counts counts;
    char *chosen;     /* agent; NULL: as configured */
    weft_link guests; /* roles.c's: agents that registered */
    size_t guest_count;
    uint64_t guest_number;
    bool guests_before[2], guests_known; /* had planners, executors registered before the start, and is all of that read? */
    int64_t guests_due; /* monotonic: until then tasks of a role wait for who had registered before the start */
    weft_link runners;  /* runners.c's: that are or were connected */
    size_t runner_count;

    weft_map requests, known_requests; /* once.c's: under way, and over */
    weft_link all_requests, request_segments, request_repeats;
    weft_later request_later;
    struct evp_md_st *sha256; /* what once.c makes digests with, when it has made one */
    struct evp_md_ctx_st *hashing;
    size_t request_under_way, request_waiting, request_count, request_bytes;
    uint64_t next_segment;
    weft_map items; /* collections.c's */
    weft_link collections;
    size_t collection_count, item_count, item_bytes, item_changes, item_pending;
    uint64_t next_version;
    weft_link context, context_waiting; /* context.c's: entries, and changes */
    size_t context_count, context_bytes, context_changes;
    uint64_t context_version;
    weft_later context_later;

    weft_link approvals; /* approval.c's, */
    size_t approval_count;
    uint64_t approvals_at;           /* up to this event */
    struct weft_cost_row *cost_rows; /* cost.c's: WEFT_COST_ROWS of them, or NULL, */
    size_t cost_count;
    uint64_t cost_at; /* up to this event */

    weft_timer queue_timer, drain_timer, retention_timer;
    uint64_t bytes_since; /* delivered since the last retention */
    int64_t retained;     /* when that was; monotonic */
    weft_age age;         /* what is too old */
    bool retaining;       /* it is due: when everything is saved, what is too old goes */
    weft_link switches;   /* of automation.switched */
    weft_link fired;      /* of rule.fired, the oldest first */
    size_t fired_count;
    bool firings_saved;                       /* the hub's document that was read at the start has them */
    weft_link changed, forgotten, forgetting; /* since it was saved; forgetting: by the save under way */
    size_t changed_count, forgotten_count, unsaved_events;
    struct saving *saving;         /* under way */
    bool save_wanted, save_failed; /* as soon as that is done; the last one */
    uint64_t saves;                /* pieces that were sent */
    uint64_t saved_gseq;           /* everything up to here is saved, durably */
    uint64_t hub_seq;              /* of the last event of the hub's stream that was applied */
    weft_task_counts saved_counts; /* as they were read at the start */
    bool open_saved;               /* by the last save there is: what past.c needs at the next start */
    bool past_unread;              /* past.c's: it is still being read; */
    bool past_restoring;           /* a page of it is being taken in */
    int past_r;                    /* why it could not be read the last time */
    uint64_t past_after, past_trimmed;
    struct past_reading *past_reading;   /* under way */
    weft_link *past_task, *past_session; /* the last of each that was put in its place; NULL: none yet */
    weft_link past_waiters;
    weft_timer past_again;
    weft_later tidy, answer_later, ready_later, stopped_later, release_later;
    weft_link answers;
    void (*on_ready)(void *ctx, int r);
    void *ready_ctx;
    int ready_r;
    struct undo_record *undo;   /* task_changes.c's: under way, or to be recorded; NULL: none */
    struct merge_record *merge; /* worktree_commands.c's, likewise */
    weft_link prunes;           /* its calls that are under way */
    weft_doc *setup;            /* commands for new worktrees; NULL: none */
    size_t pruning;             /* worktrees are being removed: look for one before it is used */
    weft_timer sweep_timer;     /* to forget snapshots of tasks that are not known any more; */
    weft_past_waiter swept;     /* it waits for the past */
    weft_link late_snapshots;   /* that are being taken for what ran when a daemon ended */
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
    bool force, stop_sent;
};

/* journal.c */

/* Events to be appended together. A failure is remembered until it is sent. */
struct draft {
    weft_engine *engine;
    weft_buf text;
    weft_event few[4]; /* what most drafts have */
    weft_event *more;  /* instead of them, when there are more; NULL: there are not */
    size_t count, cap;
    int r;
    const char *counter; /* NULL, or the append takes this number of it; borrowed */
    uint64_t number;
    const weft_document *document; /* written with the events; NULL: none. Borrowed */
    size_t documents;              /* there are so many of them; 0: one */
};
/* stream and type are borrowed until the draft is sent. */
void weft__draft_add(struct draft *draft, const char *stream, const char *type, weft_val data);
/* r 0: stored and applied; 1: an append with this key was there before and nothing was stored; <0. */
typedef void sent_done(void *ctx, int r);
/* The draft is over in any case. done runs if 0 is returned, also when the engine is freed. */
int weft__draft_send(struct draft *draft, const char *key, sent_done *done, void *ctx);
/* An error of the store as the outcome of a command, where some of its errors mean something else: a session that is closed
 * is -ESTALE, too, one that has a task -EBUSY. */
int weft__store_failure(int r);
/* Run the completions of what has been applied by now. */
void weft__journal_settle(weft_engine *engine);
void weft__journal_drop(weft_engine *engine);
void weft__journal_init(weft_engine *engine);

/* fold.c */

/* Change the read models. -ENOMEM: nothing was changed. -EBADMSG: nor was it, and never can be; see weft__skip(). */
int weft__apply(weft_engine *engine, const weft_event *event, const weft_json *data);
/* Do what is to be done now that it has happened. */
void weft__act(weft_engine *engine, const weft_event *event, const weft_json *data);
/* An event that cannot be read was passed over: count it and say so. */
void weft__skip(weft_engine *engine, const weft_event *event);
/* The number of an event's task or question; -EBADMSG when it is none or is not the one in its id. */
int weft__number(const weft_json *number, const char *id, void (*name)(char ret[ENGINE_ID], uint64_t number), uint64_t *ret);
/* A whole number, at least low and at most high. */
int64_t weft__int_between(const weft_json *data, const char *name, int64_t fallback, int64_t low, int64_t high);
/* The same of values that weft__get_all() has found. */
int64_t weft__value_between(const weft_json *value, int64_t fallback, int64_t low, int64_t high);
int weft__value_string(const weft_json *value, const char **ret);
const char *weft__value_id(const weft_json *value, char ret[ENGINE_ID]);
bool weft__value_says(const weft_json *value, const char *text);
/* A member as a C string, borrowed from the document; NULL when it is absent or no string. */
int weft__member(const weft_json *data, const char *name, const char **ret);
/* A member that is one of our ids; NULL when it is not. Needs no memory. */
const char *weft__id(const weft_json *data, const char *name, char ret[ENGINE_ID]);
/* Is a member this string? */
bool weft__field_is(const weft_json *data, const char *name, const char *text);

/* start.c */
void weft__start_init(weft_engine *engine);
/* The engine is ready, or will not be (r < 0). */
void weft__started(weft_engine *engine, int r);
void weft__start_drop(weft_engine *engine);

/* past.c */
void weft__past_init(weft_engine *engine);
void weft__past_drop(weft_engine *engine);
/* For the hub's document. 1 written; 0 the next start must read everything first. */
int weft__past_write_open(weft_engine *engine, weft_buf *out);
/* May a start that found this document leave the past for later? Then take what is open from it. */
bool weft__past_may_wait(const weft_engine *engine, const weft_json *hub);
int weft__past_restore_open(weft_engine *engine, const weft_json *hub);
/* Into all_tasks, all_sessions: behind the others, or where an old one belongs. */
void weft__past_put_task(weft_engine *engine, known_task *task);
void weft__past_put_session(weft_engine *engine, known_session *session);
/* One of these links is about to go. */
void weft__past_leave(weft_engine *engine, const weft_link *link);
/* The engine is ready: read the rest. */
void weft__past_begin(weft_engine *engine);

/* engine.c */
/* Everything after what has been applied, and what comes. */
int weft__follow(weft_engine *engine);
/* Forget what is beyond the limits; nothing may be borrowed. */
void weft__tidy(weft_engine *engine);
/* Try what failed with r again in a while: set this timer. */
void weft__again(weft_engine *engine, weft_timer *timer, int r);
void weft__note(weft_engine *engine, const char *format, ...) WEFT_PRINTF(2, 3);
void weft__stop_check(weft_engine *engine);
/* Answer a command in a later turn of the loop. */
int weft__answer_later(weft_engine *engine, const char *id, int r, weft_task_done *done, void *ctx);

/* task.c */
known_task *weft__task_known(const weft_engine *engine, const char *id);
known_task *weft__task_of(const weft_engine *engine, const weft_json *data); /* stored, by its taskId */
typedef struct task_parts {
    const char *id, *prompt, *agent, *runs_on, *session, *metadata, *key, *group, *role, *task_type, *traceparent,
        *tracestate, *runner, *label;
    uint64_t number;
    int64_t priority, timeout_ms, retries, depth, quiet_ms;
    weft_task_permission permission;
} task_parts;
int weft__task_new(weft_engine *engine, const task_parts *parts, known_task **ret);
known_task *weft__task_drop(weft_engine *engine, known_task *task);
/* From the document that was saved of it. */
int weft__task_restore(weft_engine *engine, const weft_json *data);
/* At a start: those that ended are not remembered longer than the events that say so; these are gone up to seq. */
void weft__task_forget_trimmed(weft_engine *engine, uint64_t seq);
/* A session is deleted: so are its tasks that have ended. */
void weft__task_forget_session(weft_engine *engine, const char *session);
/* As task.queued says it. */
weft_val weft__task_data(const known_task *task, weft_member members[TASK_DATA]);
/* It is saved, or what was kept is not true any more. */
void weft__task_forget_said(known_task *task);
/* "task-0007": a kind of at most 16 characters and a number of at least four digits. Every submission needs some, and
 * snprintf() takes as long as the rest of making a task. */
/* Is it queued again when the daemon stops while it runs? And does it go on then, or begin anew? */
bool weft__task_survives(const known_task *task);
bool weft__task_resumes(const known_task *task);
void weft__name_numbered(char ret[ENGINE_ID], const char *kind, uint64_t number);
void weft__task_id(char ret[ENGINE_ID], uint64_t number);
/* It runs on this holder of its role. -ENOMEM. */
int weft__task_give(weft_engine *engine, known_task *task, const char *agent);
int weft__task_apply_queued(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__task_apply_started(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__task_apply_process(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__task_apply_seen(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__task_apply_retrying(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__task_apply_ended(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__task_apply_imported(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__task_apply_output(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__task_apply_counted(weft_engine *engine, const weft_event *event, const weft_json *data);
/* Forget the oldest of what has ended, down to the limits. */
void weft__task_tidy(weft_engine *engine);
/* The end of a text, at most max bytes, not beginning within a character. */
weft_bytes weft__text_end(const char *text, size_t len, size_t max);

/* task_changes.c */
int weft__task_apply_changes(weft_engine *engine, const weft_event *event, const weft_json *data);
/* From the document that was saved of it. */
int weft__task_restore_changes(weft_engine *engine, known_task *task, const weft_json *data);
/* The task goes, and what was kept for it. */
void weft__task_forget_changes(weft_engine *engine, known_task *task);
/* The engine is ready: what was left open is settled. */
/* task_worktree.c: the snapshots of the files that a task works on, those of its worktree for instance; NULL: there are
 * none.
 */
weft_snapshots *weft__task_snapshots(const weft_engine *engine, const known_task *task);
int weft__session_apply_worktree(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__session_clear_worktree(weft_engine *engine, known_session *session);
int weft__worktree_apply_merged(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__worktree_apply_removed(weft_engine *engine, const weft_event *event, const weft_json *data);
void weft__worktrees_started(weft_engine *engine);
void weft__worktrees_sweep(weft_engine *engine);
void weft__worktrees_drop(weft_engine *engine);
void weft__changes_started(weft_engine *engine);
void weft__changes_drop(weft_engine *engine);

/* submit.c */
void weft__waiters_run(weft_engine *engine, weft_link *waiters, int r, const weft_task *task);
/* The task has ended, or is queued again, and that is durable. */
void weft__task_settle(weft_engine *engine, known_task *task);
/* Cancel a task that somebody waits for: queued, or about to start. */
void weft__task_cancel_waiting(weft_engine *engine, known_task *task);

/* queue.c */
bool weft__slot_free(const weft_engine *engine, const char *agent);
/* How many tasks an agent has now, or is about to have; NULL: all agents. */
size_t weft__slots_taken(const weft_engine *engine, const char *agent);
void weft__queue_put(weft_engine *engine, known_task *task);
void weft__queue_run(weft_engine *engine);
void weft__queue_init(weft_engine *engine);

/* run.c */
struct run;
/* Look at what there is to do, in this turn of the loop. */
void weft__run_soon(struct run *run);
void weft__run_start(weft_engine *engine, known_task *task);
/* A person's cancel, or the engine's stop. */
void weft__run_cancel(struct run *run);
void weft__run_stop(struct run *run, bool force);
bool weft__run_is_ending(const struct run *run);
/* Its turn goes on elsewhere, and its task stays running: it is freed as soon as nothing of it is under way. */
void weft__run_let_go(struct run *run);
void weft__run_answer(struct run *run, known_question *question);
struct run *weft__run_free(struct run *run);

/* session.c */
known_session *weft__session_known(const weft_engine *engine, const char *id);
int weft__session_new(weft_engine *engine, const char *id, const char *agent, known_session **ret);
known_session *weft__session_drop(weft_engine *engine, known_session *session);
/* From the document that was saved of it. */
int weft__session_restore(weft_engine *engine, const weft_json *data);
void weft__session_stored(weft_engine *engine, known_session *session, int64_t now);
/* Title, folder, settings and servers; NULL: as it is. -ENOMEM. */
/* What an order comes to, with the configuration. */
static inline weft_isolation weft__isolation_meant(const weft_engine *engine, const weft_agent *agent,
                                                   weft_isolation ordered) {
    bool isolate = agent && agent->isolation ? agent->isolation > 0 : engine->opts.isolate;
    weft_isolation usual = isolate ? WEFT_ISOLATION_WORKTREE : WEFT_ISOLATION_NONE;
    return ordered == WEFT_ISOLATION_OFF ? WEFT_ISOLATION_NONE : ordered ? ordered : usual;
}
/* "worktree", "worktree+changes"; NULL: none. */
const char *weft__isolation_name(weft_isolation isolation);
/* A worktree was made for it. */
int weft__session_set_worktree(weft_engine *engine, known_session *session, const char *name, const char *branch);
int weft__session_fill(weft_engine *engine, known_session *session, const weft_session *from);
/* A task of it waits or runs, behind those with a lower number; it no longer does. */
void weft__session_join(known_session *session, known_task *task);
void weft__session_leave(known_task *task);
/* Another agent has it from now on. -ENOMEM. */
int weft__session_move(weft_engine *engine, known_session *session, const char *agent);
/* May the task that is its next run now? */
bool weft__session_free(const known_session *session);
int weft__session_apply_created(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__session_apply_agent(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__session_apply_state(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__session_apply_set(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__session_apply_closed(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__session_apply_deleted(weft_engine *engine, const weft_event *event, const weft_json *data);
/* From the document that was saved of it. */
int weft__session_restore(weft_engine *engine, const weft_json *data);
void weft__session_tidy(weft_engine *engine);

/* session_facts.c */
/* The agent says that this holds for a session: it is stored if it is news. */
void weft__session_told(weft_engine *engine, const char *id, const char *name, const weft_json *value);
/* A person set this, and the agent does not say itself what came of it: all who follow the session are told. */
void weft__session_told_setting(weft_engine *engine, const char *id, const weft_session_setting *set);
/* The agent's own name for it; NULL: it cannot be gone on with. */
void weft__session_named(weft_engine *engine, const char *id, const char *agent_session);
void weft__facts_send(weft_engine *engine);

/* session_commands.c */
void weft__sessions_init(weft_engine *engine);
/* Look at what there is to do, in this turn of the loop. */
void weft__sessions_soon(weft_engine *engine);
/* session.set was stored: a process that has the session open must know. */
void weft__session_act_set(weft_engine *engine, const weft_event *event, const weft_json *data);
/* What is under way completes with -ECANCELED. */
void weft__sessions_drop(weft_engine *engine);

/* session_erase.c */
/* Take everything that was said in a session, and of it, out of the journal. Nothing of it may run. done runs later, if 0 is
 * returned. */
int weft__session_erase(weft_engine *engine, const char *session, void (*done)(void *ctx, int r), void *ctx);
/* Everything is saved, by the save of this number, or could not be (r < 0). */
void weft__erasings_saved(weft_engine *engine, int r, uint64_t number);
void weft__erasings_init(weft_engine *engine);
/* What is under way completes with -ECANCELED. */
void weft__erasings_drop(weft_engine *engine);

/* question.c */
/* Which question, and whose: said in every event of its life, so that who hears of it need not know it. */
#define WEFT_OF_QUESTION(question)                                                                                          \
    {"questionId", weft_str((question)->id)}, {"taskId", weft_str_or_none((question)->pub.task)}, {                         \
        "sessionId", weft_str_or_none((question)->pub.session)                                                              \
    }
typedef struct question_parts {
    const char *id, *task, *session, *rule, *kind, *title, *digest;
    weft_bytes options, detail; /* JSON */
    uint64_t number;
    int64_t timeout_ms;
} question_parts;
known_question *weft__question_known(const weft_engine *engine, const char *id);
int weft__question_restore(weft_engine *engine, const weft_json *data);
void weft__question_id(char ret[ENGINE_ID], uint64_t number);
/* Its number went to another writer: give it the next one. It must not be stored. -EOVERFLOW. */
int weft__question_renumber(weft_engine *engine, known_question *question);
int weft__question_new(weft_engine *engine, const question_parts *parts, known_question **ret);
known_question *weft__question_drop(weft_engine *engine, known_question *question);
int weft__question_apply_asked(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__question_apply_over(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__question_apply_orphaned(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__question_apply_adopted(weft_engine *engine, const weft_event *event, const weft_json *data);
void weft__question_act_asked(weft_engine *engine, const weft_event *event, const weft_json *data);
void weft__question_act_over(weft_engine *engine, const weft_event *event, const weft_json *data);
void weft__question_tidy(weft_engine *engine);
weft_val weft__question_data(const known_question *question, weft_member members[16]);
/* Record that it is over without an answer; somebody may be quicker. */
void weft__question_close(weft_engine *engine, known_question *question, const char *type, const char *reason);
/* The task has ended: so have its questions. */
void weft__question_withdraw_all(weft_engine *engine, const char *task);
/* Its session is deleted: so are its questions that are over. */
void weft__question_forget_session(weft_engine *engine, const char *session);
void weft__question_set_expiry(weft_engine *engine, known_question *question);

/* question_ask.c */
/* What a run asks, as a question that is not stored yet or was orphaned. 0 with NULL: it cannot be asked. */
int weft__question_of_run(weft_engine *engine, struct run *run, const weft_task *task, const char *key, weft_val asked,
                          known_question **ret);

/* roles.c */
/* By name: a configured one, or one that registered. */
const weft_agent *weft__agent_known(const weft_engine *engine, const char *name);
/* Behind a start: was the last task of each role done by somebody who had registered? Until they are back, or too much time
 * has passed (weft__roles_due(), INT64_MAX: nobody is waited for), such tasks wait in the queue. */
void weft__guests_look(weft_engine *engine);
int64_t weft__roles_due(const weft_engine *engine);
/* The least busy holder of a role that has a slot, another one than avoid where there is one; avoid may be NULL. With any,
 * also one without a slot. NULL: there is none. */
const weft_agent *weft__role_pick(const weft_engine *engine, const char *role, const char *task_type, const char *avoid,
                                  bool any);
void weft__roles_init(weft_engine *engine);
/* Forget those who have left and have nothing any more. */
void weft__guests_tidy(weft_engine *engine);
void weft__guests_drop(weft_engine *engine);

/* runners.c */
struct weft_runner_link;
/* Is this attempt of a task on a runner? */
static inline bool weft__task_is_lent(const known_task *task) {
    return task->pub.runner || task->pub.label;
}
/* The least busy agent of a runner of this name, or with this label, that has a slot; another one than avoid where there is
 * one. agent: the name that it has there, NULL: any. With any, also one that is away or has no slot. */
const weft_agent *weft__runner_pick(const weft_engine *engine, const char *runner, const char *label, const char *agent,
                                    const char *avoid, bool any);
/* The agent that is called so here, "agent@runner"; NULL: there is none. */
const weft_agent *weft__runner_agent(const weft_engine *engine, const char *name);
/* The runner of such an agent has room for one more. */
bool weft__runner_has_slot(const weft_engine *engine, const weft_agent *agent);
/* At a start: its runner is away, and may come back. -ENOMEM. */
int weft__runner_expect(weft_engine *engine, const char *agent);
/* What it had is over: it is told. */
void weft__runner_task_over(weft_engine *engine, const known_task *task, const weft_event *event, const weft_json *data);
/* The daemon stops: what runs elsewhere goes on. */
void weft__runners_let_go(weft_engine *engine);
/* The daemon has started: what ran elsewhere is taken up again. */
void weft__runners_take_up(weft_engine *engine);
int weft__runner_apply_kept(weft_engine *engine, const weft_event *event, const weft_json *data);
/* Who was here: tasks may wait for them. */
int weft__runner_apply_known(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__runners_write(const weft_engine *engine, weft_buf *out);
int weft__runners_restore(weft_engine *engine, const weft_json *list);
void weft__runners_init(weft_engine *engine);
void weft__runners_drop(weft_engine *engine);

/* agent.c */
int weft__agent_apply_chosen(weft_engine *engine, const weft_event *event, const weft_json *data);

/* output.c */
void weft__reads_drop(weft_engine *engine);
/* transcript.c: likewise */
void weft__transcripts_drop(weft_engine *engine);

/* retention.c */
void weft__retention_init(weft_engine *engine);
void weft__retention_begin(weft_engine *engine);
/* Remove what is too old or too much, soon. */
void weft__retention_start(weft_engine *engine);
/* Everything up to gseq is saved, or it could not be. */
void weft__retention_saved(weft_engine *engine, uint64_t gseq);
void weft__retention_save_failed(weft_engine *engine);
/* As an array of {enabled, ruleId, time}. */
int weft__retention_write_switches(const weft_engine *engine, weft_buf *out);
void weft__retention_count(weft_engine *engine, const weft_event *event);
int weft__retention_apply_kept(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__retention_apply_switched(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__retention_apply_counted(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__retention_apply_stopped(weft_engine *engine, const weft_event *event, const weft_json *data);
/* How long the journal has been observed, in all. */
int64_t weft__retention_observed(const weft_engine *engine);
void weft__retention_drop(weft_engine *engine);

/* firings.c */
int weft__firing_apply(weft_engine *engine, const weft_event *event, const weft_json *data);
/* As an array of {time, data}. */
int weft__firings_write(const weft_engine *engine, weft_buf *out);
int weft__firings_restore(weft_engine *engine, const weft_json *saved);
void weft__firings_drop(weft_engine *engine);

/* approval.c */
int weft__approval_apply_given(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__approval_apply_revoked(weft_engine *engine, const weft_event *event, const weft_json *data);
void weft__approvals_forget_session(weft_engine *engine, const char *session);
/* As an array of {time, data}. */
int weft__approvals_write(const weft_engine *engine, weft_buf *out);
int weft__approvals_restore(weft_engine *engine, const weft_json *saved, uint64_t at);
void weft__approvals_drop(weft_engine *engine);
/* The standing answer that covers what this agent asks, and who gave it; NULL: none. */
const char *weft__approval_for(const weft_engine *engine, const weft_question *question, const char *agent, char *ret_by,
                               size_t size);
/* May it be done without asking, by the task's own policy? */
bool weft__policy_allows(const weft_engine *engine, const weft_question *question, weft_task_permission permission);
/* The data of approval.given, for an answer that is to stand. -EDOM: it cannot, and why says so. */
int weft__approval_make(const weft_engine *engine, const known_question *question, const weft_json *always, const char *by,
                        weft_buf *out, char *why); /* WEFT_FORM_WHY bytes */

/* cost.c */
/* A turn has ended, or an attempt. */
int weft__cost_apply(weft_engine *engine, const weft_event *event, const weft_json *data);
/* As an array of {day, agent, spent}. */
int weft__cost_write(const weft_engine *engine, weft_buf *out);
int weft__cost_restore(weft_engine *engine, const weft_json *rows, uint64_t at);
void weft__cost_drop(weft_engine *engine);
/* Is as much spent as may be? Then ret says so. */
bool weft__cost_day_is_over(const weft_engine *engine, char *ret, size_t size);
bool weft__cost_task_is_over(const struct run *run, char *ret, size_t size);

/* once.c */
/* What an event says of a request, in members: with its result or its error, or without either when it begins. */
weft_val weft__request_data(const weft_request *request, weft_val result, weft_val error, weft_member members[7]);
/* The store's key for the append that does it; NULL without a request. */
const char *weft__request_key(const weft_request *request);
/* Its event, with the others of its append. Nothing without a request. */
void weft__request_add(const weft_request *request, struct draft *draft, weft_val result);
/* request: the member of an event that was stored for one; absent: it was not. */
int weft__request_note(weft_engine *engine, const weft_event *event, const weft_json *request);
int weft__request_apply(weft_engine *engine, const weft_event *event, const weft_json *data);
void weft__requests_tidy(weft_engine *engine);
void weft__requests_forget_until(weft_engine *engine, uint64_t gseq);
/* The pieces in which they are saved. */
typedef struct request_segment request_segment;
request_segment *weft__requests_next(const weft_engine *engine, request_segment *after);
request_segment *weft__requests_of_mark(saved_mark *mark);
saved_mark *weft__requests_mark(request_segment *segment);
uint64_t weft__requests_number(const request_segment *segment);
int weft__requests_write(const request_segment *segment, const weft_alloc *alloc, weft_buf *out);
int weft__requests_restore(weft_engine *engine, const weft_json *data);
void weft__requests_init(weft_engine *engine);
void weft__requests_drop(weft_engine *engine);

/* collections.c */
#define WEFT_SAVED_ITEM "doc/" /* the documents of items begin so */
int weft__item_apply_put(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__item_apply_deleted(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__item_restore(weft_engine *engine, const weft_json *data);
void weft__items_init(weft_engine *engine);
void weft__items_drop(weft_engine *engine);

/* context.c */
#define WEFT_SAVED_CONTEXT "context" /* the key of its document */
int weft__context_apply(weft_engine *engine, const weft_event *event, const weft_json *data);
int weft__context_restore(weft_engine *engine, const weft_json *data);
/* Its document, as it is now. */
int weft__context_write(const weft_engine *engine, weft_buf *out);
void weft__context_init(weft_engine *engine);
/* What is under way completes with -ECANCELED. */
void weft__context_drop(weft_engine *engine);

/* saved.c */
#define WEFT_SAVED_HUB "hub" /* the key of the hub's own document */
void weft__saved_init(saved_mark *mark, saved_kind kind);
/* An event was applied: what it speaks of has changed. data NULL: no task, session or question. */
void weft__saved_note(weft_engine *engine, const weft_event *event, const weft_json *data);
/* This has changed. */
void weft__saved_changed(weft_engine *engine, saved_mark *mark);
/* It is no longer known. */
void weft__saved_forget(weft_engine *engine, saved_mark *mark, const char *id);
/* The document of a session, and its key. */
int weft__saved_session(weft_engine *engine, const known_session *session, weft_buf *out);
int weft__saved_task(weft_engine *engine, const known_task *task, weft_buf *out);
void weft__saved_session_key(const char *id, char ret[ENGINE_ID + 16]);
/* Save what has changed, now, or after the save under way. */
void weft__save(weft_engine *engine);
void weft__save_if_due(weft_engine *engine);
bool weft__save_unfinished(const weft_engine *engine);
/* At a start: a document; and all of them. */
int weft__saved_restore(weft_engine *engine, const weft_event *document);
/* The hub's document, if the past may be read later. 1: it was taken, and what is open with it; 0: all must be read. */
int weft__saved_restore_open(weft_engine *engine, const weft_event *document);
/* A document of the past, unless what it is about is known already. */
int weft__saved_restore_past(weft_engine *engine, const weft_event *document);
void weft__saved_restored(weft_engine *engine);
void weft__saved_drop(weft_engine *engine);

#endif
