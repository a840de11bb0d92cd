/* A driver speaks to one kind of agent. It knows three things: a process, the sessions (conversations) in it, and in each
 * session one turn at a time, from a prompt to its end. A process lives until it is stopped, fails, or, where the driver
 * says so (one_turn), until its turn is over.
 *
 * Callbacks never run inside the call that caused them, and nothing is called after free() of the process or close() of the
 * session. Everything they hand over is borrowed. Every callback may call any function of the table, also free() and
 * close(). A turn ends exactly once, with on_turn_end; a process exactly once, with on_end, when nothing of it is left: the
 * turns that it had have been ended before. No function of the table blocks. */
#ifndef WEFT_DRIVER_H
#define WEFT_DRIVER_H

#include <sys/types.h>

#include <weft/net.h>

#include "agent.h"
#include "session_settings.h"

typedef struct weft_driver_process weft_driver_process; /* each driver has its own */
typedef struct weft_driver_session weft_driver_session;

/* For whom an agent asks something of its client. Borrowed. */
typedef struct weft_passage_call {
    const char *session, *task;
} weft_passage_call;

/* What an agent may ask of its client, where no person needs to answer (files, terminals): one table of rows, which ends
 * with a zero one. What no row takes is not announced to agents, and is answered with "method not found". */
typedef struct weft_passage {
    const char *method; /* as ACP has it: fs/read_text_file, fs/write_text_file, terminal/create, ... */
    /* Answer req now, or keep it and answer later; weft_req_on_cancel() says when the agent no longer waits or is gone. <0:
     * it is not kept, and is answered with an internal error. call and params are borrowed. */
    int (*handler)(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params);
} weft_passage;

/* Borrowed until open() returns, but for loop, alloc, agent and passages. */
typedef struct weft_process_spec {
    weft_loop *loop;
    const weft_alloc *alloc;
    const weft_agent *agent;
    const char *program;          /* it guards what runs, and it is the demo agent; NULL: this binary */
    const char *folder;           /* absolute; where the process is started */
    const char *task;             /* in the environment as WEFT_TASK_ID; NULL: the process may serve several */
    int64_t grace_ms;             /* between asking its processes to end and killing them; 0: the default */
    const weft_passage *passages; /* what is announced; for the life of the process. NULL: nothing */
} weft_process_spec;

/* Borrowed until session() returns. */
typedef struct weft_session_spec {
    const char *folder;           /* absolute; where the agent works; NULL: the process's */
    const char *agent_session;    /* go on with this conversation of the agent's own; NULL: a new one */
    bool must_exist;              /* this one or none: if the agent cannot go on with it, or does not know it, the turn fails
                                     (cannotResume, sessionNotFound), and no new conversation is begun instead */
    bool replay;                  /* and tell what was said in it before, by on_update, where the agent can */
    const weft_json *mcp_servers; /* an array in the form of ACP; NULL: none */
    const weft_json
        *settings; /* to be set before the first turn (session_settings.h); NULL: none. If the agent does not take one
                      of them, the turn fails (settingRefused): it would run otherwise than was chosen */
} weft_session_spec;

/* Borrowed until prompt() returns. */
typedef struct weft_turn_spec {
    const char *task;     /* for people */
    const char *prompt;   /* NULL: only open the session; the turn ends well when it is open */
    const char *persona;  /* the agent as the caller named it, when none is configured under that name; NULL: none */
    const char *metadata; /* of the task, a JSON object: the planner driver finds in it what was asked (driver_planner.h) */
    const char *traceparent, *tracestate; /* the trace that the turn belongs to; NULL: none */
    uint64_t lease;    /* of a turn on a runner (driver_runner.h): the number of this attempt, which no other has */
    uint64_t lease_at; /* and what it said up to here is stored already: an earlier daemon began it */
} weft_turn_spec;

typedef enum weft_run_stream { WEFT_RUN_STDOUT, WEFT_RUN_STDERR } weft_run_stream;

typedef struct weft_turn_end {
    bool ok;        /* it did what it could: exit status 0, or a turn that ended by itself */
    bool cut;       /* some of its output was left out: a line was too long */
    bool retryable; /* another attempt might go better: it crashed, or exited with an error */
    bool gone;      /* the process is, and on_end comes next: exit_code and signal say how it ended */
    const char
        *reason; /* when not ok, a stable camelCase name: spawnFailed, exited, signalled, protocolError, refused, ... */
    const char *error;       /* when not ok, for people: the end of standard error, or a sentence */
    const char *stop_reason; /* acp: as the agent said; NULL: it did not */
    int exit_code;           /* -1: it did not exit by itself, or lives */
    int signal;              /* that ended it; 0: none */
} weft_turn_end;

/* What is known of a session when it is open. */
typedef struct weft_session_info {
    const char *agent_session; /* the agent's own name for it, for weft_session_spec; NULL: it cannot be gone on with */
    bool renewed;              /* the one that was to be gone on with is lost, this is a new one */
} weft_session_info;

/* How a request that is not a turn was answered. 0: the agent did it; result is what it said, in the form of ACP.
 * -EOPNOTSUPP: it cannot; -EREMOTEIO: it refused; -EPIPE: its process has ended; -ETIMEDOUT; in these cases error says so
 * for people, otherwise it is NULL. */
typedef void weft_driver_done(void *ctx, int r, const weft_json *result, const char *error);

typedef struct weft_process_host {
    /* It runs as this process. At most once, before everything else but the ends. */
    void (*on_process)(void *ctx, pid_t pid);
    /* Nothing of it is left. exit_code -1: it did not exit by itself; signal 0: none, or one of ours. */
    void (*on_end)(void *ctx, int exit_code, int signal);
} weft_process_host;

typedef struct weft_session_host {
    /* It is open, or was opened again. */
    void (*on_session)(void *ctx, const weft_session_info *info);
    /* Text besides messages: what a cli agent prints, and standard error. Whole lines with their ends where possible, valid
     * UTF-8, without NUL. Standard error goes to every session that has a turn: it belongs to the process. */
    void (*on_output)(void *ctx, weft_run_stream stream, weft_bytes text);
    /* One session update in the form of ACP v1: {"sessionUpdate":"agent_message_chunk",...}. */
    void (*on_update)(void *ctx, const weft_json *update);
    /* What holds for the session from now on, as the agent says, in the form of ACP: "modes" {currentModeId,
     * availableModes}, "mode" an id, "models" {currentModelId, availableModels}, "options" [configOption], "commands"
     * [availableCommand], "title" text or null. Also outside of a turn. An update that says so is told by on_update as well.
     * May be NULL. */
    void (*on_state)(void *ctx, const char *name, const weft_json *value);
    /* It asks a person; key is the driver's name for the question in this session, for answer(). question is
     * {"kind":..., "title":..., "options":[{"id","name","kind"}],"detail":{}}, kinds of options as ACP's: allow_once,
     * allow_always, reject_once, reject_always. By kind, detail is
     *     permission    the tool call as it came
     *     elicitation   {mode: "form", message, requestedSchema, toolCallId?}: to be filled in and given to accept(); or
     * {mode: "url", message, url, elicitationId, toolCallId?}: a person goes there login         {error, authMethods[]}: the
     * agent is not logged in; the options are its ways to, and to try again */
    void (*on_ask)(void *ctx, const char *key, weft_val question);
    /* It no longer waits for an answer to this. */
    void (*on_unask)(void *ctx, const char *key);
    /* What a person was sent to a URL for is done there, as the agent says. May be NULL. */
    void (*on_elicited)(void *ctx, const char *elicitation);
    /* It asks its client for something that this row takes; returns what the row's handler does. NULL: nobody answers. */
    int (*on_request)(void *ctx, const weft_passage *row, weft_req *req, const weft_json *params);
    /* What the turn has cost, as the agent says: tokens, perhaps a price. Before its end. May be NULL. */
    void (*on_usage)(void *ctx, const weft_json *usage);
    /* What came of the turn, where the agent's protocol has a form for that besides text (driver_planner.h): what it
     * answered, an object. Before its end. May be NULL. */
    void (*on_result)(void *ctx, const weft_json *result);
    /* What the turn changed in files that are on another machine, in counts: as the data of task.changed. Before its end.
     * May be NULL. */
    void (*on_changed)(void *ctx, const weft_json *counts);
    /* Everything up to this number of the other side's has been told. May be NULL. */
    void (*on_told)(void *ctx, uint64_t at);
    /* The turn is over. */
    void (*on_turn_end)(void *ctx, const weft_turn_end *end);
} weft_session_host;

typedef struct weft_driver {
    const char *name;
    bool one_turn;   /* the process ends with its turn, and has one session */
    bool built_in;   /* the driver brings its agent: no program is configured */
    bool never_asks; /* its agents do what they do without asking anybody */
    /* Start it, or remember what is to be started with the first turn. 0: on_end will come; <0: it will not, and nothing was
     * started. -ENOENT: there is no such program. */
    int (*open)(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret);
    /* A session in it; it is opened when the process is ready. Any number where the driver is not one_turn, else one. A
     * session that cannot be opened ends its turn; the next turn tries again. */
    int (*session)(weft_driver_process *process, const weft_session_spec *spec, const weft_session_host *host, void *ctx,
                   weft_driver_session **ret);
    /* 0: on_turn_end will come. -EBUSY: the session has a turn. -EPIPE: the process ends or has ended. -ENOTSUP: it cannot
     * be opened without a prompt. */
    int (*prompt)(weft_driver_session *session, const weft_turn_spec *spec);
    /* A person's answer: an option's id; NULL: none was chosen (cancelled, timed out). -ENOENT: it does not wait for it. */
    int (*answer)(weft_driver_session *session, const char *key, const char *option);
    /* The same for an elicitation that was accepted: what was filled in, an object; NULL: there was nothing to fill in. May
     * be NULL: no agent of this driver asks for that. */
    int (*accept)(weft_driver_session *session, const char *key, const weft_json *content);
    /* session: end its turn, in the agent's own words where it has some. When the agent does not obey within a part of the
     * grace time, or has no words, its process is ended, and every other turn in it fails. force: at once.
     * NULL: end the process: close its input, then SIGTERM to all its processes, then, after the grace time, SIGKILL. force:
     * SIGKILL now. Again with force is fine. on_end follows. */
    void (*stop)(weft_driver_process *process, weft_driver_session *session, bool force);
    /* Requests that are not turns. Each of these may be NULL: no agent of this driver can. 0: done runs once, later, but not
     * behind close() of the session or free() of the process. <0: it does not run.
     *
     * set: a mode, a model, an option, also in the middle of a turn. Within on_session it comes before the prompt that
     * waits. -EAGAIN: the session is being opened; -ENOTCONN: it is neither open nor being opened; -EOPNOTSUPP: the agent
     * has no such thing.
     * list: the conversations that the agent knows of, in this folder (NULL: in any), from a page's cursor (NULL: the
     * first). remove: one that it knows of, and that is not open, is deleted there. logout: it forgets who is logged in. */
    int (*set)(weft_driver_session *session, const weft_session_setting *setting, weft_driver_done *done, void *ctx);
    int (*list)(weft_driver_process *process, const char *folder, const char *cursor, weft_driver_done *done, void *ctx);
    int (*remove)(weft_driver_process *process, const char *agent_session, weft_driver_done *done, void *ctx);
    int (*logout)(weft_driver_process *process, weft_driver_done *done, void *ctx);
    /* Ask it something that is neither a turn nor any of these, in the words of its protocol. */
    int (*ask)(weft_driver_process *process, const char *method, const weft_json *params, weft_driver_done *done, void *ctx);
    /* What on_told said up to this number is durable. NULL: nobody on the other side waits for that. */
    void (*kept)(weft_driver_session *session, uint64_t at);
    /* Stop reading from the process for a while, so that it waits instead of us growing. */
    void (*pause)(weft_driver_process *process, bool paused);
    /* Forget the session; the process lives on. A turn that it has is cancelled and not told of. Returns NULL. */
    weft_driver_session *(*close)(weft_driver_session *session);
    /* Forget the process and its sessions, also in the middle: it is killed, nothing is called any more. Returns NULL. */
    weft_driver_process *(*free)(weft_driver_process *process);
} weft_driver;

extern const weft_driver weft__driver_cli, weft__driver_acp, weft__driver_demo, weft__driver_planner;
/* Not among those that a configuration can name: its agents come from who is connected (driver_runner.h). */
extern const weft_driver weft__driver_runner;

#endif
