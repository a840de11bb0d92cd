/* The engine: agents, sessions, tasks and questions, as read models over a journal of events.
 *
 * A command checks what can be checked, appends events and completes when they are durable. The engine acts on events when
 * the store delivers them, never when it sends them: reading the journal again at the next start leads to the same state.
 * Nothing is told, and nothing starts to run, before it is stored.
 *
 * The engine speaks no protocol and knows no client: dialects call it and render its events. It does not open the store and
 * does not read the configuration. Everything happens on the loop's thread; completions never run inside the call that
 * caused them. */
#ifndef WEFT_ENGINE_H
#define WEFT_ENGINE_H

#include "buf.h"
#include "driver.h"
#include "events.h"
#include "list.h"
#include "spent.h"
#include "store.h"
#include "terminals.h"
#include "worktrees.h"

typedef struct weft_engine weft_engine;
typedef struct weft_request weft_request; /* once.h */

/* What may be spent: a turn that goes beyond it is ended, and none begins behind it. Zero: no limit. */
typedef struct weft_cost_limits {
    weft_money task, day; /* in one currency; what is paid in another does not count */
    int64_t task_tokens, day_tokens;
} weft_cost_limits;

/* Zero means the default in the comment. */
typedef struct weft_engine_limits {
    size_t max_running;        /* tasks at a time: 4; SIZE_MAX: none, the queue stands still */
    size_t max_queue;          /* tasks waiting: 100 */
    size_t max_tasks;          /* that have ended and are remembered in memory: 10,000, and at most 128 MiB of them */
    size_t max_sessions;       /* that have no task and are remembered: 10,000 */
    size_t max_turns;          /* tasks of one session that have not ended: the one that runs and those behind it: 20 */
    size_t max_questions;      /* open at a time: 1,000 */
    size_t max_question_bytes; /* of all that are open: 32 MiB */
    size_t max_requests;       /* that are over and remembered (once.h): 50,000 */
    size_t max_request_bytes;  /* of their answers: 32 MiB */
    size_t max_items;          /* values of all collections (collections.h): 100,000 */
    size_t max_item_changes;   /* of them that are under way: 4,096 */
    size_t max_prompt;         /* bytes: 1 MiB */
    int64_t timeout_ms;        /* of a task: 2 h; <0 none */
    int64_t idle_ms;           /* how long an agent is kept without a turn: 5 min; <0 not at all, it ends with its turn */
    int64_t talk_idle_ms;      /* the same after a turn of a conversation, if that is longer: not */
    size_t max_idle;           /* agents that are kept so: 8 */
    int64_t grace_ms;          /* between SIGTERM and SIGKILL: 5 s */
    int64_t drain_ms;          /* how long running tasks may go on when the engine stops: 10 s */
    int64_t drain_kill_ms;     /* and how long they may then take to end, before they are killed: 5 s */
    int64_t question_ms;       /* how long a question waits: <=0 for ever */
    int64_t retry_ms;          /* before the first retry: 1 s, then twice as long each time, at most 60 s */
    int64_t again_ms;          /* between two attempts to store what must not be lost: 1 s */
    int64_t guests_ms;         /* after a start, tasks of a role wait so long for those who had registered: 10 s */
    uint64_t keep_bytes;       /* of all events: 1 GiB */
    int64_t keep_ms;           /* 30 days */
    uint64_t keep_output;      /* bytes of one session's stream: 16 MiB */
    int64_t lease_ms;          /* how long a runner that is away keeps its tasks: 5 min */
    size_t past_page;          /* documents of the past in one turn of the loop: 64, a fraction of a millisecond */
    weft_cost_limits cost;
} weft_engine_limits;

typedef struct weft_engine_opts {
    weft_loop *loop;
    weft_store *store; /* borrowed; the engine dispatches it */
    const weft_alloc *alloc;
    const weft_agents *agents;         /* borrowed */
    const weft_driver *const *drivers; /* NULL-terminated; borrowed */
    const char *program;               /* this binary; NULL: the one that runs */
    const char *folder;                /* absolute */
    const char *name;                  /* of this hub, where a journal has several; borrowed; NULL: it has one */
    bool isolate;                      /* sessions that say nothing of it work in worktrees */
    const weft_json *setup;            /* [{command[], timeout_ms?}]: what runs in a new worktree; copied; NULL: nothing */
    const weft_passage *passages;      /* what agents may ask of their client; borrowed; NULL: nothing but permission */
    void *passage_ctx;                 /* for the handlers of these */
    weft_snapshots *snapshots;         /* of the folder, before and after each turn; borrowed, freed before the engine, which
                                          is told of its on_undone by weft__task_undone(); NULL: none are taken */
    bool early;                        /* after a clean stop, be ready before the past is read: weft__engine_past() */
    bool copy;                         /* the journal is a copy of other hubs' (a relay's): what happened is known, as it is
                                          there, and nothing is done about it. Nothing is started, settled or asked here */
    bool requeue;                      /* tasks that ran when the daemon died are queued again instead of failed */
    bool resume; /* those whose agent can go on with its conversation are, and are told that they were interrupted */
    weft_engine_limits limits;
    int64_t (*wall_ms)(void *ctx);                /* NULL: the system's clock */
    int64_t (*steady_ms)(void *ctx);              /* one that nobody sets; NULL: the time since the machine was started */
    void (*on_note)(void *ctx, const char *line); /* for a log; may be NULL */
    /* The MCP servers that this agent gets in every session besides the session's own, in the form of ACP: a JSON array,
     * appended. Nothing: none. <0: the session cannot be opened now. May be NULL. */
    int (*agent_servers)(void *ctx, const char *agent, weft_buf *out);
    void *ctx;
} weft_engine_opts;

/* ---- its life ---- */

int weft__engine_new(const weft_engine_opts *opts, weft_engine **ret);
/* Read the journal. on_ready runs once, later: 0, everything is as it was, what was running has been failed or queued again
 * and that is durable; <0 the store's failure. */
int weft__engine_start(weft_engine *engine, void (*on_ready)(void *ctx, int r), void *ctx);
/* The past: tasks that have ended, and sessions without a task. 0: it is known. Otherwise, with opts.early, -EAGAIN: it is
 * being read; -EUCLEAN: it is damaged. Until it is known, what finds and lists tasks and sessions finds only what is not of
 * the past, and commands that name a session or a key, or a task that is not found, fail with -EAGAIN. Questions are of the
 * past too, if they are over. */
int weft__engine_past(const weft_engine *engine);
/* Be told once, when the past is known or the next attempt to read it fails (r < 0; others follow unless it is damaged).
 * Embedded in its owner; by removing the link one stops waiting. Not when it is known already. */
typedef struct weft_past_waiter {
    weft_link link;
    void (*on_past)(struct weft_past_waiter *waiter, int r);
} weft_past_waiter;
void weft__engine_await_past(weft_engine *engine, weft_past_waiter *waiter);
/* Nothing new is taken or started. Running tasks may go on for drain_ms and are then ended and failed with the reason
 * daemonStopped, at once with force; queued ones stay for the next start. on_stopped runs once, later, when all that is
 * durable, or cannot be made so: what the journal has as running the next start fails or queues again. Again with force: at
 * once; the callback that came last is the one that runs. */
void weft__engine_stop(weft_engine *engine, bool force, void (*on_stopped)(void *ctx), void *ctx);
/* Kill what runs, forget everything. Commands under way complete with -ECANCELED, questions that were asked do not. From
 * on_ready and on_stopped, but not from a listener or a completion of a command. Returns NULL. */
weft_engine *weft__engine_free(weft_engine *engine);

/* Limits and agents from a configuration that was read again. agents is borrowed from now on; running tasks keep theirs, so
 * the old ones must stay. */
void weft__engine_set(weft_engine *engine, const weft_agents *agents, const weft_engine_limits *limits);
/* What somebody switched: automation as a whole (rule NULL), or one rule. */
void weft__engine_each_switch(const weft_engine *engine,
                              void (*each)(void *ctx, const char *rule, bool enabled, int64_t time_ms), void *ctx);
/* What rules did last: the data of the last ten rule.fired, the oldest first. -ENOMEM: not all were shown. */
int weft__engine_each_firing(const weft_engine *engine, void (*each)(void *ctx, int64_t time_ms, const weft_json *data),
                             void *ctx);

const weft_engine_limits *weft__engine_limits(const weft_engine *engine); /* with the defaults filled in */
const weft_agents *weft__engine_agents(const weft_engine *engine);
weft_loop *weft__engine_loop(const weft_engine *engine);
weft_store *weft__engine_store(const weft_engine *engine);
const char *weft__engine_folder(const weft_engine *engine);
const weft_alloc *weft__engine_alloc(const weft_engine *engine);
/* The wall clock. */
int64_t weft__engine_now(const weft_engine *engine);
/* Events of the journal that could not be read and were passed over, since the start. */
uint64_t weft__engine_skipped(const weft_engine *engine);
/* Storing fails at the moment: the last append's errno, or what is wrong with the store's files. 0: all is well. */
int weft__engine_trouble(const weft_engine *engine);

/* How much of what there is now. */
typedef struct weft_engine_figures {
    size_t sessions, questions; /* that are remembered; that are open */
    size_t processes, turns;    /* of agents: that live; turns that they have */
    uint64_t processes_started; /* since the start */
    size_t terminals;           /* that agents have open */
} weft_engine_figures;
weft_engine_figures weft__engine_figures(const weft_engine *engine);

/* ---- listening to events ---- */

/* Every event of every stream, in the order of gseq, once, after it was applied to the read models. Embedded in its owner.
 * Not called for the journal that weft__engine_start() reads. */
typedef struct weft_event_listener {
    weft_link link;
    void (*on_event)(struct weft_event_listener *listener, const weft_event *event, const weft_json *data);
} weft_event_listener;
void weft__engine_listen(weft_engine *engine, weft_event_listener *listener);
/* Asked of events of plans when a session is deleted: does this one go with it, although it does not name it? NULL: none. */
typedef bool weft_erase_too(void *ctx, const char *session, const weft_json *data);
void weft__engine_erase_too(weft_engine *engine, weft_erase_too *too, void *ctx);
void weft__engine_unlisten(weft_event_listener *listener);

/* Append an event of one's own: automation, files, notices. data is written now. done may be NULL. -EAGAIN: the journal has
 * not been read yet (so all commands); -ESHUTDOWN: the engine has stopped. */
int weft__engine_append(weft_engine *engine, const char *stream, const char *type, weft_val data,
                        void (*done)(void *ctx, int r), void *ctx);
/* Several of them in one append, with documents of one's own: all is stored, or nothing. At least one event. Everything is
 * copied. With a counter, done gets -EAGAIN when the number was taken meanwhile, and nothing was stored. */
typedef struct weft_engine_change {
    const char *stream;
    const char *const *types; /* of the events, */
    const weft_val *data;     /* and what each says */
    size_t count;
    const weft_document *documents;
    size_t document_count;
    const char *counter; /* NULL: none */
    uint64_t number;
} weft_engine_change;
int weft__engine_change(weft_engine *engine, const weft_engine_change *change, void (*done)(void *ctx, int r), void *ctx);

/* ---- tasks ---- */

typedef enum weft_task_state {
    WEFT_TASK_QUEUED,
    WEFT_TASK_RUNNING,
    WEFT_TASK_COMPLETED,
    WEFT_TASK_FAILED,
    WEFT_TASK_CANCELLED,
    WEFT_TASK_STATES,
} weft_task_state;
extern const char *const weft__task_states[WEFT_TASK_STATES]; /* "queued", ... */

/* What a task's agent may do without being asked about it, instead of what its agent's configuration says. */
typedef enum weft_task_permission {
    WEFT_TASK_AS_CONFIGURED,
    WEFT_TASK_ASKS,     /* nothing */
    WEFT_TASK_MAY_READ, /* read and search, in the project */
    WEFT_TASK_MAY_EDIT, /* and edit and move files there */
    WEFT_TASK_MAY_ALL,
} weft_task_permission;
extern const char *const weft__task_permissions[]; /* NULL, "ask", "read", "edit", "all", NULL */
/* What a task changed: two snapshots and what lies between them. */
typedef struct weft_task_changes {
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX]; /* "": none, or not yet */
    char from[WEFT_SNAPSHOT_HEX], to[WEFT_SNAPSHOT_HEX];      /* of the last time that it was put back, or was again; "" */
    const char *why;                                          /* there is none; NULL */
    const char *spans;  /* JSON: pairs of trees between which others worked too; NULL */
    const char *others; /* JSON: their ids, not all if they are many; NULL */
    bool undone;
    bool late;                      /* the second one was taken at a later start */
    bool there;                     /* the snapshots are on the runner that it ran on */
    char merged[WEFT_SNAPSHOT_HEX]; /* the commit of the project that has it, if it was in a worktree; "" */
    uint64_t files, added, modified, deleted, renamed, additions, deletions;
    char text[]; /* the memory of the above */
} weft_task_changes;
#define WEFT_CHANGES_MEMBERS 20
/* As JSON, in members; none when there is nothing to say. trees: also what only the engine needs. */
weft_val weft__changes_val(const weft_task_changes *changes, bool trees, weft_member members[WEFT_CHANGES_MEMBERS]);

/* Borrowed until the next turn of the loop. Strings are never NULL but where it says so. */
typedef struct weft_task {
    const char *id; /* "task-0000" */
    uint64_t number;
    uint64_t gseq; /* of the event that queued it; 0: before this start */
    const char *prompt;
    const char *agent;   /* as the caller named it; NULL: it did not */
    const char *runs_on; /* the name of a configured agent, or of one that registered; of a role, the holder that it
                            started on last */
    const char *session;
    const char *metadata;                 /* JSON, an object */
    const char *key;                      /* idempotency; NULL: none */
    const char *traceparent, *tracestate; /* the trace that it belongs to; NULL: none */
    int64_t priority;
    weft_task_state state;
    bool stopping;                                /* it runs, but was asked to end */
    int64_t created_ms, started_ms, completed_ms; /* wall clock; 0: not yet */
    int64_t timeout_ms;                           /* <0 none */
    const char *role;                             /* whichever holder of it is free does this; NULL: the agent named */
    const char *task_type;                        /* and takes tasks of this type; NULL: any */
    const char *runner, *label;                   /* it runs on this runner, or one with this label; NULL: here */
    int64_t quiet_ms;                             /* how long its agent may say nothing; 0: for ever */
    int64_t attempt, retries;
    int64_t depth; /* of causes: 0 a person's */
    weft_task_permission permission;
    pid_t pid;                        /* 0: none */
    const char *error, *reason;       /* of a failure; NULL */
    const char *stop_reason;          /* NULL: none */
    int exit_code, signal;            /* -1, 0: none */
    const char *usage;                /* JSON, see events.h, of one that has ended; NULL: unknown */
    const weft_task_changes *changes; /* NULL: nobody looked */
    weft_bytes tail;                  /* the end of its output, of the last attempt, at most WEFT_TASK_TAIL bytes */
    uint64_t output_bytes;            /* all of it, in this attempt */
    bool output_cut;                  /* it said more than that, which could not be kept */
    bool seen;                        /* somebody has looked at how this attempt ended */
} weft_task;

/* Where the agent of a session works. */
typedef enum weft_isolation {
    WEFT_ISOLATION_NONE,         /* in the project's folder */
    WEFT_ISOLATION_WORKTREE,     /* in a worktree of its own (worktrees.h), made before its first turn, */
    WEFT_ISOLATION_WITH_CHANGES, /* with the changes in the project's files that are not committed */
    WEFT_ISOLATION_OFF,          /* of an order: in the project's folder, whatever is configured; NONE is as configured */
} weft_isolation;

/* Zero means the default or none. Borrowed. */
typedef struct weft_task_spec {
    const char *prompt;
    const char *agent;
    const char *session;     /* go on with this one, on its agent */
    const char *metadata;    /* JSON, an object; NULL: {} */
    const char *key;         /* a repeat with the same key is the same task */
    const weft_trace *trace; /* that its agent is told; NULL, or an empty one: none */
    int64_t priority;
    int64_t timeout_ms;    /* 0: the agent's or the engine's; <0 none */
    const char *role;      /* whoever holds it does this, see roles.h; then neither agent nor session is named */
    const char *task_type; /* only a holder that takes this type; NULL: any */
    const char *runner;    /* on this runner, see runners.h; NULL: here, or where its session is */
    const char *label;     /* on any runner with this label; NULL: none */
    int64_t quiet_ms;      /* it fails when its agent says nothing for so long; 0: it may */
    int64_t retries;
    int64_t depth;
    weft_task_permission permission;
    weft_isolation isolation; /* of the session that is made for it; one that is there has its own */
    const char *group;        /* refuse it with -EBUSY when a task of the same group is queued or running; NULL: of none */
    bool unless_busy;         /* refuse it with -EBUSY when its session has one; otherwise it waits behind that */
    weft_request *request;    /* that this is done for (once.h), instead of a key; NULL: none. Its result is {taskId,
                                 sessionId} */
} weft_task_spec;

/* r 0: the task as it is stored, running already if there was a slot. <0: nothing was stored. task is borrowed. */
typedef void weft_task_done(void *ctx, int r, const weft_task *task);

/* Fails now: -EINVAL an empty prompt, metadata that is no object, a key over 1 KiB, an agent that is not the session's, a
 * worktree for a role or in a session that has none;
 * -EMSGSIZE a prompt or metadata (1 MiB) too long; -ENOENT no such agent; -ENODEV nobody holds the role, or no such
 * runner is known; -ESRCH no such
 * session; -ESTALE that session is closed, or about to be; -EBUSY that session, or its group, has a task already; -EDQUOT so
 * many wait in that session already; -ENOBUFS the queue is full; -ESHUTDOWN the engine is stopping. Or later, with the
 * store's error, or -EEXIST: the key's task is in the journal, but no longer remembered. -ENOTUNIQ: the key was used for
 * another task, with another prompt, agent, session or other params.
 *
 * Tasks of one session run one after the other, in the order in which they were stored, whatever their priority: each is
 * the next turn of the conversation. One that is tried again keeps its place before those behind it. */
int weft__task_submit(weft_engine *engine, const weft_task_spec *spec, weft_task_done *done, void *ctx);
/* by is for people. done when it has ended, and its processes if they end with it, and that is durable. -ENOENT, -EALREADY
 * it has ended, -ESHUTDOWN. A task that ends by itself meanwhile: done with -EALREADY. */
int weft__task_cancel(weft_engine *engine, const char *id, const char *by, weft_task_done *done, void *ctx);
const weft_task *weft__task_find(const weft_engine *engine, const char *id);
/* Is it a turn of a conversation, in a session that was there before it? */
bool weft__task_is_talk(const weft_task *task);
/* Somebody has looked at how it ended; by: who. 1: that is known already, and done does not run. -ENOENT: there is none of
 * this id; -EBUSY: it has not ended; -ENOMEM, -EAGAIN, -ESHUTDOWN. */
int weft__task_seen(weft_engine *engine, const char *id, const char *by, void (*done)(void *ctx, int r), void *ctx);
/* The number that the next one gets. */
uint64_t weft__task_next(const weft_engine *engine);
/* The one that was submitted with this key; NULL: none is remembered. */
const weft_task *weft__task_find_key(const weft_engine *engine, const char *key);
/* A line of the hub's own among what its agent writes to standard error, for whoever watches. Nothing unless it runs. */
void weft__task_note(weft_engine *engine, const char *id, const char *line);
/* What the agent of a running task asks of its terminals: a passage (driver.h) hands it on. Every terminal is gone when the
 * task's turn is over. */
int weft__task_terminal(weft_engine *engine, const char *id, weft_terminals_call call, weft_req *req,
                        const weft_json *params);
/* Those that agents have open now, of all tasks; false: there are fewer, or there is none with this id. */
bool weft__terminal_nth(const weft_engine *engine, size_t n, weft_open_terminal *ret);
bool weft__terminal_find(const weft_engine *engine, const char *id, weft_open_terminal *ret);
/* From the newest to the oldest; NULL ends it. */
const weft_task *weft__task_newest(const weft_engine *engine);
const weft_task *weft__task_older(const weft_engine *engine, const weft_task *task);
/* The one that will run n-th of those that wait; NULL past the end. */
const weft_task *weft__task_waiting(const weft_engine *engine, size_t n);
/* By state, ever since the journal began. */
typedef struct weft_task_counts {
    uint64_t of[WEFT_TASK_STATES];
} weft_task_counts;
weft_task_counts weft__task_counts(const weft_engine *engine);
/* All its output that is kept (standard output, or the text of its messages), at most max bytes of the end of it. Read from
 * the store unless the tail is all. */
typedef void weft_output_done(void *ctx, int r, weft_bytes output);
int weft__task_output(weft_engine *engine, const char *id, size_t max, weft_output_done *done, void *ctx);
/* Text of an agent's in an event of a session's stream: standard output, or what a message says. 0: there is none. -ENOMEM.
 */
int weft__output_text(const weft_event *event, const weft_json *data, weft_bytes *ret);

/* What a task changed, up to now if it runs: the comparison's trees are filled in here. session: of all of its tasks, from
 * the first that is remembered on; what others did between them and meanwhile is marked as shared. -ENOENT no such task or
 * session; -EOPNOTSUPP no snapshots are taken here; -ENODATA none was taken for it; others as weft__snapshots_compare(). */
int weft__task_compare(weft_engine *engine, const char *id, bool session, const weft_comparison *how,
                       weft_compared_done *done, void *ctx);

typedef struct weft_undo_order {
    const char *by;
    bool redo;   /* put it there again, after an undo */
    bool shared; /* also what others may have changed */
} weft_undo_order;
/* Put back what it changed. done when that is in the journal, or with r < 0, or when there are conflicts and nothing was
 * done. -ENOENT, -EOPNOTSUPP, -ENODATA as above; -EBUSY it has not ended; -EALREADY it is undone, or with redo is not;
 * -EAGAIN another undo is under way. */
int weft__task_undo(weft_engine *engine, const char *id, const weft_undo_order *order, weft_undo_done *done, void *ctx);
/* An undo that was interrupted by an end of the daemon is over: record it. */
void weft__task_undone(weft_engine *engine, const weft_undone *undone);
/* It was done where its files are, on another machine: that is appended. done may be NULL. As weft__engine_append(). */
int weft__task_undone_there(weft_engine *engine, const char *id, const weft_undo_order *order, uint64_t files,
                            void (*done)(void *ctx, int r), void *ctx);

typedef struct weft_merge_order {
    const char *by;
    weft_merge_how how;
    const char *message; /* of commits that are made, at most WEFT_WORKTREE_MESSAGE; NULL: the prompt's first line */
} weft_merge_order;
/* Bring the work of the task's session, which is in a worktree, into the project (worktrees.h). done when that is in the
 * journal, or with r < 0, or with conflicts. -ENOENT no such task; -EOPNOTSUPP there are no snapshots here; -ENOTDIR it did
 * not work in a worktree; -ENODATA that is not there; -EBUSY something is done in it; -EAGAIN another merge is under way. */
int weft__task_merge(weft_engine *engine, const char *id, const weft_merge_order *order, weft_merge_done *done, void *ctx);
/* One that was interrupted by an end of the daemon is over: record it. */
void weft__task_merged(weft_engine *engine, const weft_merged *merged);

typedef struct weft_discard_order {
    const char *by;
    bool force; /* also what cannot be committed */
} weft_discard_order;
/* Remove the worktree of the task's session, and its branch, whatever they hold. All of it is committed first; merged.tip is
 * that commit, which git keeps for a while. As above. */
int weft__task_discard(weft_engine *engine, const char *id, const weft_discard_order *order, weft_merge_done *done,
                       void *ctx);

/* All worktrees of this journal. -EOPNOTSUPP; -EAGAIN not yet. */
int weft__worktrees_list(weft_engine *engine, weft_worktree_listed *done, void *ctx);
typedef struct weft_prune_order {
    const char *by;
    const char *name; /* this alone; NULL: all */
    bool dry;         /* only say which */
} weft_prune_order;
/* Remove those in which nothing is to be done and that hold nothing that is nowhere else. */
int weft__worktrees_prune(weft_engine *engine, const weft_prune_order *order, weft_worktree_listed *done, void *ctx);

/* ---- sessions ---- */

/* What holds for a session, as its agent said it last; see on_state in driver.h. */
typedef enum weft_session_fact {
    WEFT_SESSION_MODES,
    WEFT_SESSION_MODE,
    WEFT_SESSION_MODELS,
    WEFT_SESSION_OPTIONS,
    WEFT_SESSION_COMMANDS,
    WEFT_SESSION_TITLE,
    WEFT_SESSION_FACTS,
} weft_session_fact;
extern const char *const weft__session_facts[WEFT_SESSION_FACTS]; /* "modes", ... */

typedef struct weft_session {
    const char *id;
    const char *agent;
    const char *agent_session;             /* NULL: unknown */
    const char *folder;                    /* beneath the engine's; "": that itself */
    const char *title;                     /* that somebody gave it; NULL: none */
    const char *settings;                  /* JSON, see session_settings.h; NULL: nothing was chosen */
    const char *servers;                   /* JSON, the MCP servers in the form of ACP, with their secrets; NULL: none */
    const char *facts[WEFT_SESSION_FACTS]; /* JSON; NULL: unknown */
    bool closed;                           /* it takes no tasks until it is resumed */
    const char *task;                      /* the last one's id; NULL: none yet */
    const char *turn;                      /* the id of the one that runs, or will next; NULL: none */
    size_t turns;                          /* tasks that are queued or running */
    bool busy;                             /* there are some */
    int64_t created_ms, updated_ms;
    uint64_t tasks;
    uint64_t first; /* the gseq of the event that made it: what was said in it is not before; 0: not known */
    weft_isolation isolation;
    const char *worktree, *branch, *path; /* its name, its branch and where it is; NULL: not made yet */
} weft_session;
/* A new one, on its own. Zero means none. Borrowed. */
typedef struct weft_session_order {
    const char *agent;         /* NULL: the default */
    const char *folder;        /* beneath the engine's, relative or absolute; NULL: that itself */
    const char *title;         /* at most 1 KiB */
    const char *settings;      /* JSON (session_settings.h), at most WEFT_SETTINGS_BYTES */
    const char *servers;       /* JSON: ACP's mcpServers, at most 32 and 64 KiB */
    const char *agent_session; /* a conversation that the agent knows of: it is opened before anything is stored */
    weft_request *request;     /* that this is done for (once.h); NULL: none. Its result is {sessionId} */
    weft_isolation isolation;  /* not with a folder */
} weft_session_order;

/* r 0: the session as it is stored. <0: nothing was; error is a sentence of the agent's or NULL. Both are borrowed. */
typedef void weft_session_done(void *ctx, int r, const weft_session *session, const char *error);

/* Is it known, and not being deleted? What is stored of another one would outlive it. */
bool weft__session_stays(const weft_engine *engine, const char *id);
/* Each fails now, or completes later: with the store's error; with -EOPNOTSUPP the agent cannot, -ENOENT it does not know
 * that conversation, -EREMOTEIO it refused, or -EPIPE or -ETIMEDOUT it did not answer.
 *
 * -EUSERS: too much is being asked of agents; try again.
 *
 * create: -ENOENT no such agent; -EEXIST one of ours goes on with that conversation; -EINVAL a title, settings or servers
 * that are none; -EMSGSIZE; -EOPNOTSUPP the driver has no settings, servers or conversations; -EXDEV the folder lies
 * elsewhere, -ENOTDIR there is none. For the others: -ESRCH no such session; -ESTALE it is being closed or deleted. set: a
 * mode, a model or an option (session_settings.h), or the name "title" with a string or null. Where the session is open in a
 * process, the agent takes it first; otherwise it is set when the session is opened. -EINVAL: no such setting. open: in a
 * process, without a task, so that what holds for it is known. -EBUSY: it has a task, or is being opened. close: its tasks
 * are cancelled, its place in a process is given up. -EALREADY. resume: it takes tasks again. -EALREADY. remove: it is
 * closed, then deleted: the agent's own copy, its stream, its tasks and questions that have ended, and it. done gets no
 * session; with an error beside r 0 the agent still has its copy, and that says why. */
int weft__session_create(weft_engine *engine, const weft_session_order *order, weft_session_done *done, void *ctx);
int weft__session_set(weft_engine *engine, const char *id, const weft_session_setting *setting, const char *by,
                      weft_session_done *done, void *ctx);
int weft__session_open(weft_engine *engine, const char *id, weft_session_done *done, void *ctx);
int weft__session_close(weft_engine *engine, const char *id, const char *by, weft_session_done *done, void *ctx);
int weft__session_resume(weft_engine *engine, const char *id, const char *by, weft_session_done *done, void *ctx);
int weft__session_remove(weft_engine *engine, const char *id, const char *by, weft_session_done *done, void *ctx);
/* Other MCP servers for it, in the form of an order's. Its agent is told them when the session is opened anew, which its
 * next turn does. They are saved with the session and are in no event. 0 also when it has them already; -ESRCH no such
 * session; -EINVAL, -EMSGSIZE, -EOPNOTSUPP as create; -EAGAIN, -ESHUTDOWN, -ENOMEM. */
int weft__session_give_servers(weft_engine *engine, const char *id, const char *servers);

const weft_session *weft__session_find(const weft_engine *engine, const char *id);
/* Tasks that run in the same files as this one, which runs or will: their ids, borrowed. Returns how many, at most max. */
size_t weft__task_beside(const weft_engine *engine, const char *id, const char **ret, size_t max);
/* Whose a worktree is; NULL: nobody's any more. *ret_busy: something is done in it, or will be. */
const weft_session *weft__worktree_session(const weft_engine *engine, const char *name, bool *ret_busy);
/* The one that goes on with this conversation of an agent's; NULL: none does. */
const weft_session *weft__session_find_own(const weft_engine *engine, const char *agent, const char *agent_session);
/* Is it in a mode that is known to change nothing, as its agent said last, also when that is not stored yet? An agent in
 * such a mode does not write; should it try all the same, it does not do so through us. */
bool weft__session_only_reads(const weft_engine *engine, const char *id);
/* What its agent said last of this, as JSON, also when that is not stored yet: for who has set it. NULL: nothing. */
const char *weft__session_fact(const weft_engine *engine, const char *id, weft_session_fact fact);
const weft_session *weft__session_newest(const weft_engine *engine);
const weft_session *weft__session_older(const weft_engine *engine, const weft_session *session);

/* ---- agents ---- */

/* The agent for tasks that name none: the chosen one, else the configured one. */
const weft_agent *weft__agent_default(const weft_engine *engine);
/* Was it chosen by weft__agent_choose(), and not by the configuration? */
bool weft__agent_is_chosen(const weft_engine *engine);
/* The conversations that an agent knows of, also those that began elsewhere: a page of them as ACP has it, {sessions,
 * nextCursor}. folder: only those beneath the engine's folder that were held there; NULL: in all. done as in driver.h.
 * -ENOENT no such agent; -EOPNOTSUPP it cannot; -EXDEV, -ENOTDIR as above. */
int weft__agent_sessions(weft_engine *engine, const char *agent, const char *folder, const char *cursor,
                         weft_driver_done *done, void *ctx);
/* Let the agent forget who is logged in there. done as in driver.h. -ENOENT no such agent; -EOPNOTSUPP it cannot. */
int weft__agent_logout(weft_engine *engine, const char *agent, weft_driver_done *done, void *ctx);
/* Choose it for good; NULL: as configured. -ENOENT. */
int weft__agent_choose(weft_engine *engine, const char *name, void (*done)(void *ctx, int r), void *ctx);

/* ---- questions ---- */

typedef enum weft_question_state {
    WEFT_QUESTION_OPEN,
    WEFT_QUESTION_ANSWERED,
    WEFT_QUESTION_EXPIRED,
    WEFT_QUESTION_WITHDRAWN,
} weft_question_state;
extern const char *const weft__question_states[]; /* "open", ... */

typedef struct weft_question {
    const char *id;                    /* "question-0000" */
    const char *task, *session, *rule; /* NULL where it is not about one */
    const char *kind;                  /* "permission", "elicitation", "login" of an agent, "approval" of a rule */
    const char *title;
    const char *options; /* JSON: [{"id","name","kind"}] */
    const char *detail;  /* JSON: what exactly is asked for, as it came */
    weft_question_state state;
    bool orphaned; /* the agent that asked has gone with an earlier daemon; the answer is kept for when it asks again */
    int64_t created_ms, expires_ms; /* 0: never */
    const char *option, *by, *text; /* the answer; NULL: none */
    const char *approval;           /* the standing answer that gave it, or was given with it (approval.h); NULL: none */
    const char *content;            /* of a form that was filled in, JSON; NULL: none */
    bool acted;                     /* it is over, and its rule has said what came of it */
} weft_question;

typedef struct weft_question_spec {
    const char *task, *session, *rule, *kind, *title;
    weft_val options, detail;
} weft_question_spec;

/* Ask. on_asked: it is stored, or r < 0. -EINVAL: no kind, no title, one over 16 KiB, or no options with ids; -ENOBUFS too
 * many are open, or too many bytes of them. on_answer runs once when it is answered (option and the person's name), expires,
 * or is withdrawn (option NULL); not again after a restart: who asks then must find its question by weft__question_find().
 */
typedef void weft_question_done(void *ctx, int r, const weft_question *question);
int weft__question_ask(weft_engine *engine, const weft_question_spec *spec, weft_question_done *on_asked,
                       weft_question_done *on_answer, void *ctx);
/* The first valid answer wins. -ENOENT, -EINVAL no such option, -EALREADY, now or later, somebody was first or it is over.
 * text may be NULL. What is to be filled in has its defaults; -EDOM: these are not enough. */
int weft__question_answer(weft_engine *engine, const char *id, const char *option, const char *by, const char *text,
                          weft_question_done *done, void *ctx);
/* The same with what was filled in (form.h), for an elicitation that is accepted; NULL: nothing was. -EDOM: that is not
 * right, and why says so, or there is nothing to fill in. why may be NULL. */
typedef struct weft_question_answer {
    const char *option, *by, *text;
    const weft_json *content;
    const weft_json *always; /* answer the same so from now on: {scope, command?, path?}; NULL: only this once. -EDOM: that
                                is not possible, and why says so */
    char *why;               /* WEFT_FORM_WHY bytes */
} weft_question_answer;
int weft__question_answer_with(weft_engine *engine, const char *id, const weft_question_answer *answer,
                               weft_question_done *done, void *ctx);
/* Who asked does not wait for an answer any more. reason is static: it goes into the event. -ENOENT; -EALREADY it is over.
 */
int weft__question_withdraw(weft_engine *engine, const char *id, const char *reason);
/* Nobody is there any more who could answer: what is asked, now or later, is withdrawn with the reason "nobodyLeft". */
void weft__questions_unattended(weft_engine *engine);
const weft_question *weft__question_find(const weft_engine *engine, const char *id);
/* The open ones, oldest first; with all also those that are over and still remembered (1,000). */
const weft_question *weft__question_first(const weft_engine *engine, bool all);
const weft_question *weft__question_next(const weft_engine *engine, const weft_question *question, bool all);

#endif
