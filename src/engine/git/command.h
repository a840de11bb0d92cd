/* Run a program to its end and collect what it prints. It waits, so it is called on a thread that may (workers.h); another
 * thread ends it by a descriptor.
 *
 * The program gets a session of its own (no terminal to ask at), default signals, /dev/null or the given input as standard
 * input, and no other descriptor of ours. When its time is over, it has printed too much or nobody wants it any more, its
 * process group gets SIGTERM, so that it can remove its lock files, and after a moment SIGKILL. */
#ifndef WEFT_COMMAND_H
#define WEFT_COMMAND_H

#include "buf.h"

#define WEFT_COMMAND_ERRORS 4096 /* bytes of standard error that are kept, the first ones */
#define WEFT_COMMAND_GRACE_MS 1000

typedef struct weft_command {
    const weft_alloc *alloc;
    const char *program; /* absolute */
    const char *const *argv, *const *env;
    int folder;         /* to run in: a descriptor */
    weft_bytes input;   /* to its standard input */
    size_t max_output;  /* bytes of standard output */
    bool read_on;       /* what is beyond is thrown away; else the program is ended */
    int64_t timeout_ms; /* 0: none */
    int cancel;         /* a descriptor: readable means end it; -1: none */
    /* Asked once, on this thread, if it runs for longer than ask_ms: true, it waits for what will not come, and is ended.
     * May be NULL. */
    bool (*is_stuck)(void *ctx);
    void *ctx;
    int64_t ask_ms;
} weft_command;

typedef struct weft_command_end {
    int exit_code; /* -1: it did not exit by itself */
    bool truncated, timed_out, cancelled, stuck;
    weft_buf output;
    char errors[WEFT_COMMAND_ERRORS + 1]; /* ends with NUL */
} weft_command_end;

/* <0: it was not started, or there was no memory for what it printed; then ret needs no done(). */
int weft__command_run(const weft_command *command, weft_command_end *ret);
void weft__command_end_done(weft_command_end *end, const weft_alloc *alloc);

#endif
