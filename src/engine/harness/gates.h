/* Gates: commands of the user's configuration that say whether a task is done. A caller names one and never says what runs.
 * A gate passes when its command exits with 0; what it printed otherwise are its findings. */
#ifndef WEFT_GATES_H
#define WEFT_GATES_H

#include "diagnostics.h"
#include "project_commands.h"

#define WEFT_GATE_NAME 64                   /* bytes */
#define WEFT_GATE_OUTPUT ((size_t) 8 << 10) /* bytes of the end of what it printed that are told */
#define WEFT_GATE_DIAGNOSTICS 50            /* that are told */
#define WEFT_GATE_MS 600000                 /* unless configured otherwise */

/* How a gate ended. Borrowed until the callback returns. */
typedef struct weft_gate_report {
    int r; /* 0: it ran; -ETIMEDOUT it took too long: it has not passed; -ECANCELED; -ENOENT there is no such gate any more;
              others: it could not be run */
    bool passed;
    int exit_code; /* -1: by a signal */
    int64_t ms;
    weft_bytes output;                   /* the end of it, valid UTF-8 */
    const weft_diagnostics *diagnostics; /* NULL: none */
} weft_gate_report;
typedef void weft_gate_done(void *ctx, const weft_gate_report *outcome);

/* What runs gates: the commands below, or what a test plays. */
typedef struct weft_gate_runner {
    void *ctx;
    /* Before anything begins. -ESRCH there is no such gate; -ENOENT its program is not there; -EACCES it may not be run.
     * What lies in the project's folder may still be made by an agent, so that is not looked for. */
    int (*check)(void *ctx, const char *gate, const char *folder);
    /* done runs once, never inside of this. -ENOENT, -EAGAIN, -ENOMEM. */
    int (*run)(void *ctx, const char *gate, const char *folder, weft_gate_done *done, void *done_ctx, uint64_t *ret_id);
    /* It ends with -ECANCELED, unless it has ended. */
    void (*cancel)(void *ctx, uint64_t id);
} weft_gate_runner;

typedef struct weft_gates weft_gates;

int weft__gates_new(weft_commands *commands, const weft_alloc *alloc, weft_gates **ret);
/* After the commands are freed, and after whoever waits for a gate: what ran ends with -ECANCELED. Returns NULL. */
weft_gates *weft__gates_free(weft_gates *gates);
/* An object of names, each an array of a program and its arguments. Copied; absent: none. -ENOMEM. */
int weft__gates_set(weft_gates *gates, const weft_json *configured, int64_t within_ms);
const weft_json *weft__gates_configured(const weft_gates *gates); /* NULL: none */
weft_gate_runner weft__gates_runner(weft_gates *gates);
/* As check() of the runner, with the program as it is configured in ret. */
int weft__gates_check(const weft_gates *gates, const char *gate, const char *folder, char *ret, size_t size);
/* A command line of the configuration as a list that ends with NULL, in memory of ret; -EINVAL, -ENOMEM. */
int weft__command_line(const weft_json *line, const weft_alloc *alloc, char ***ret);
void weft__command_line_free(char **line, const weft_alloc *alloc);

/* What people see of a command: the end of what it printed, at most WEFT_GATE_OUTPUT bytes; and that as plain UTF-8, into
 * ret, which has room for as many bytes. Its length. */
weft_bytes weft__end_of_output(const weft_command_report *report);
size_t weft__plain_output(weft_bytes text, char *ret);

#endif
