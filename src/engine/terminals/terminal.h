/* One program in a terminal (a pty), under a guard: what it printed last, how it ended, and what is typed into it. It is
 * read whether or not anybody looks, so that it never waits for us; what does not fit is dropped from the front. */
#ifndef WEFT_TERMINAL_H
#define WEFT_TERMINAL_H

#include "process.h"
#include "scrollback.h"

/* Of what it printed, this much is kept at most. */
#define WEFT_TERMINAL_OUTPUT ((size_t) 1 << 20)
/* What was typed and not yet taken. */
#define WEFT_TERMINAL_INPUT ((size_t) 64 << 10)
#define WEFT_TERMINAL_COLS 120
#define WEFT_TERMINAL_ROWS 40

typedef struct weft_terminal weft_terminal;

typedef struct weft_terminal_opts {
    weft_loop *loop;
    const weft_alloc *alloc;
    const char *guard; /* as in process.h */
    const char *const *argv;
    const char *const *env; /* NAME=VALUE, besides ours; NULL: none */
    const char *folder;     /* absolute */
    size_t limit;           /* bytes of output that are kept; at most WEFT_TERMINAL_OUTPUT */
    weft_process_size size; /* 0: WEFT_TERMINAL_COLS, WEFT_TERMINAL_ROWS */
    int64_t grace_ms;
    void *ctx;
    /* It runs, or never will: then its end has an error, and on_end does not follow. Each callback may free the terminal. */
    void (*on_start)(void *ctx);
    /* All that it started has ended, and all that they printed was read. */
    void (*on_end)(void *ctx);
} weft_terminal_opts;

/* Everything is copied. <0: nothing was started. */
int weft__terminal_start(const weft_terminal_opts *opts, weft_terminal **ret);
/* What it printed, the last max bytes of it; borrowed until the next turn of the loop. */
weft_bytes weft__terminal_text(const weft_terminal *terminal, size_t max, bool *ret_truncated);
/* NULL: it has not ended. */
const weft_process_end *weft__terminal_end(const weft_terminal *terminal);
pid_t weft__terminal_pid(const weft_terminal *terminal); /* 0: it does not run yet */
/* Type this. -ENOBUFS: it does not take what was typed before; nothing of this is typed. -EPIPE: it has ended. */
int weft__terminal_type(weft_terminal *terminal, weft_bytes input);
/* -EPIPE: it has ended. */
int weft__terminal_resize(weft_terminal *terminal, weft_process_size size);
weft_process_size weft__terminal_size(const weft_terminal *terminal);
/* End all of it, see weft__process_stop(). on_end follows. */
void weft__terminal_kill(weft_terminal *terminal, bool force);
/* Kill what runs; nothing is called any more. Returns NULL. */
weft_terminal *weft__terminal_free(weft_terminal *terminal);

#endif
