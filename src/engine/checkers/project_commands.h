/* The project's own commands: its build, and the gates that say whether a task is done. Each is a command line of the
 * user's configuration, never of a caller. It runs under a guard, as an agent does, with a time limit; of what it prints the
 * beginning and the end are kept.
 *
 * In one folder one runs at a time, because two builds in one tree disturb each other; the others wait in the order in which
 * they came. */
#ifndef WEFT_PROJECT_COMMANDS_H
#define WEFT_PROJECT_COMMANDS_H

#include "loop.h"

#define WEFT_COMMANDS_AT_ONCE 2                 /* in different folders; more would only make each of them slower */
#define WEFT_COMMANDS_WAITING 64                /* that have not begun */
#define WEFT_COMMANDS_HEAD ((size_t) 512 << 10) /* bytes of output that are kept: the first, */
#define WEFT_COMMANDS_TAIL ((size_t) 512 << 10) /* and the last of what comes behind them */
#define WEFT_COMMANDS_ARGS 128                  /* of one command line */

typedef struct weft_commands weft_commands;

typedef struct weft_commands_opts {
    weft_loop *loop;
    const weft_alloc *alloc;
    const char *guard; /* as in process.h */
} weft_commands_opts;

/* Borrowed until the callback returns. */
typedef struct weft_command_report {
    int r;                 /* 0: it ran to its end; -ETIMEDOUT, -ECANCELED, -ENOMEM, or why it could not be started */
    int exit_code, signal; /* of r 0: -1 and the signal that ended it, or the status */
    weft_bytes head,
        tail;       /* of what it printed, standard output and standard error as they came; between them may be a gap */
    uint64_t bytes; /* that it printed */
    int64_t ms;     /* it took */
} weft_command_report;

typedef struct weft_command_order {
    const char *const *argv; /* ends with NULL */
    const char *folder;      /* absolute */
    int64_t within_ms;
    /* It begins to run. May be NULL. */
    void (*on_begin)(void *ctx);
    /* What it printed just now. May be NULL. It must not cancel. */
    void (*on_text)(void *ctx, weft_bytes text);
    /* Once, never inside of weft__commands_run(); not when the commands are freed before. */
    void (*on_end)(void *ctx, const weft_command_report *report);
    void *ctx;
} weft_command_order;

int weft__commands_new(const weft_commands_opts *opts, weft_commands **ret);
/* What runs is killed. Returns NULL. */
weft_commands *weft__commands_free(weft_commands *commands);
/* Everything is copied. ret_id is for weft__commands_cancel(). -EINVAL no program; -E2BIG too many arguments; -EAGAIN too
 * many wait; -ENOMEM. */
int weft__commands_run(weft_commands *commands, const weft_command_order *order, uint64_t *ret_id);
/* It ends with -ECANCELED, unless it has ended. */
void weft__commands_cancel(weft_commands *commands, uint64_t id);

#endif
