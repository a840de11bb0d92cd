/* A driver speaks to one kind of agent: it starts the program, hands it a prompt and turns what comes back into the same few
 * callbacks. A run is one prompt on one agent, in one process, from its start to its end.
 *
 * Callbacks never run inside the call that caused them, except that nothing runs after free(). Everything they hand over is
 * borrowed. A run ends exactly once, with on_end, when nothing of its process is left. */
#ifndef WEFT_DRIVER_H
#define WEFT_DRIVER_H

#include <sys/types.h>

#include <weft/net.h>

#include "agent.h"

typedef struct weft_run weft_run; /* each driver has its own */

/* Borrowed until start() returns, but for loop, alloc and agent. */
typedef struct weft_run_spec {
    weft_loop *loop;
    const weft_alloc *alloc;
    const weft_agent *agent;
    const char *program; /* this binary: it guards what runs, and it is the demo agent */
    const char *folder;  /* absolute; where the agent works */
    const char *task;    /* for people: in the environment as WEFT_TASK_ID */
    const char *prompt;
    const char *persona;       /* the agent as the caller named it, when none is configured under that name; NULL: none */
    const char *agent_session; /* go on with this conversation of the agent's own; NULL: a new one */
    int64_t grace_ms;          /* between asking its processes to end and killing them */
} weft_run_spec;

typedef enum weft_run_stream { WEFT_RUN_STDOUT, WEFT_RUN_STDERR } weft_run_stream;

typedef struct weft_run_end {
    bool ok;        /* it did what it could: exit status 0, or a turn that ended by itself */
    bool cut;       /* some of its output was left out: a line was too long */
    bool retryable; /* another attempt might go better: it crashed, or exited with an error */
    const char
        *reason; /* when not ok, a stable camelCase name: spawnFailed, exited, signalled, protocolError, refused, ... */
    const char *error;       /* when not ok, for people: the end of standard error, or a sentence */
    const char *stop_reason; /* acp: as the agent said; NULL: it did not */
    int exit_code;           /* -1: it did not exit by itself */
    int signal;              /* that ended it; 0: none */
} weft_run_end;

typedef struct weft_run_host {
    /* It runs as this process. At most once, before everything else but on_end. */
    void (*on_process)(void *ctx, pid_t pid);
    /* The agent's own name for the conversation, for weft_run_spec.agent_session; NULL: it cannot be gone on with. */
    void (*on_session)(void *ctx, const char *agent_session);
    /* Text of a cli agent: whole lines with their ends where possible, valid UTF-8, without NUL. */
    void (*on_output)(void *ctx, weft_run_stream stream, weft_bytes text);
    /* One session update in the form of ACP v1: {"sessionUpdate":"agent_message_chunk",...}. */
    void (*on_update)(void *ctx, const weft_json *update);
    /* It asks a person; key is the driver's name for the question, for answer(). question is
     * {"kind":"permission","title":..., "options":[{"id","name","kind"}],"detail":{the tool call as it came}}, kinds as
     * ACP's: allow_once, allow_always, reject_once, reject_always. */
    void (*on_ask)(void *ctx, const char *key, weft_val question);
    /* It no longer waits for an answer to this. */
    void (*on_unask)(void *ctx, const char *key);
    void (*on_end)(void *ctx, const weft_run_end *end);
} weft_run_host;

typedef struct weft_driver {
    const char *name;
    /* May not block. 0: on_end will come; <0: it will not, and nothing was started. -ENOENT: there is no such program. */
    int (*start)(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret);
    /* A person's answer: an option's id; NULL: none was chosen (cancelled, timed out). -ENOENT: it does not wait for it. */
    int (*answer)(weft_run *run, const char *key, const char *option);
    /* End it: politely in the agent's own words where it has some, then SIGTERM to all its processes, then, after the grace
     * time, SIGKILL. force: SIGKILL now. Again with force is fine. on_end follows. */
    void (*cancel)(weft_run *run, bool force);
    /* Stop reading from it for a while, so that it waits instead of us growing. Also from within on_output and on_update. */
    void (*pause)(weft_run *run, bool paused);
    /* Forget it, also in the middle: its processes are killed, nothing is called any more. Returns NULL. */
    weft_run *(*free)(weft_run *run);
} weft_driver;

extern const weft_driver weft__driver_cli, weft__driver_acp, weft__driver_demo;

#endif
