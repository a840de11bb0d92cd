/* The command line of one run of a cli agent, made from the agent's template. No shell is ever involved: what a caller wrote
 * is one argument or a part of one, and never an option. */
#ifndef WEFT_CLI_ARGV_H
#define WEFT_CLI_ARGV_H

#include "arena.h"
#include "driver_single.h"

/* Linux takes no argument above 128 KiB, and there is more in it than the prompt. */
#define WEFT_CLI_PROMPT ((size_t) 100 * 1024)

typedef struct weft_cli_argv {
    const char *const *argv, *const *env; /* NULL-terminated */
    bool on_stdin;                        /* the prompt is not among them */
    weft_arena arena;
} weft_cli_argv;

/* -EINVAL: the agent has no command line or takes no name, or the name would be taken for an option. Nothing to be done
 * then. */
int weft__cli_argv_init(weft_cli_argv *ret, const weft_run_spec *spec);
void weft__cli_argv_done(weft_cli_argv *argv);

#endif
