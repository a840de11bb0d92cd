/* An agent: a program that does what a prompt says, and what is needed to start it. Only the host's configuration makes
 * agents; a caller chooses one by name and never says what runs. */
#ifndef WEFT_AGENT_H
#define WEFT_AGENT_H

#include <weft/base.h>

/* What happens when an agent asks whether it may do something. */
typedef enum weft_permission {
    WEFT_PERMISSION_ASK,   /* a person decides */
    WEFT_PERMISSION_ALLOW, /* the option that allows it once is taken; without one, a person decides */
    WEFT_PERMISSION_DENY,
} weft_permission;

/* Every string and list is borrowed for the agent's life; lists end with NULL. */
typedef struct weft_agent {
    const char *name;
    const char *driver;      /* the name of its row */
    const char *const *argv; /* "{prompt}" in an argument of a cli agent stands for the prompt; without one, the prompt is
                                the last argument. NULL: the driver brings it */
    const char *const *env;  /* NAME=VALUE, besides ours; NULL: none */
    const char *const *persona_argv; /* cli: arguments for a task that names an agent which is not configured, with "{agent}"
                                        for that name: AIWG's "--agent NAME". NULL: such a task is refused */
    bool prompt_on_stdin;            /* cli: the prompt is not an argument. Always so above 100 KiB */
    size_t max_running;              /* tasks at a time; 0: as many as the engine allows */
    int64_t timeout_ms;              /* of a task; 0: the engine's */
    int64_t idle_ms;                 /* how long its process is kept without a turn; 0: the engine's; <0 not at all */
    size_t max_turns;                /* in one process at a time; 0: 1 */
    size_t context_limit;            /* bytes of a prompt of a gated task (gated.h); 0: no limit */
    weft_permission permission;
    int isolation;       /* >0 in a worktree, <0 in the project's folder, where a task does not say it; 0: the engine's */
    const char *about;   /* what it is, in a few words; may be NULL */
    const char *advice;  /* what to do when it is not installed; may be NULL */
    const char *login;   /* how to log in; "{bin}" stands for the folder of its program, with a slash. May be NULL */
    const char *package; /* of npm, NAME@VERSION, that "weft agents install" fetches; NULL: it is installed otherwise */
    bool outside;        /* its program is looked for outside the project only, see agent_program.h */
    bool preset;         /* it came with Weft, not from a configuration */
    struct weft_planner_wire *wire;  /* it is not a program but somebody connected (driver_planner.h); NULL: a program */
    struct weft_runner_link *runner; /* it runs on another machine (driver_runner.h); NULL: here */
} weft_agent;

/* Who holds a role (planner, executor) by configuration. */
typedef struct weft_agent_role {
    const char *role; /* NULL ends a list of them */
    const char *const *agents;
} weft_agent_role;

typedef struct weft_agents {
    const weft_agent *list;
    size_t count;
    const char *fallback;         /* the name of the one that is used when a task names none */
    const weft_agent_role *roles; /* NULL: nothing is configured; then the fallback has every role */
} weft_agents;

/* NULL: there is none of this name. */
const weft_agent *weft__agent_find(const weft_agents *agents, const char *name);

#endif
