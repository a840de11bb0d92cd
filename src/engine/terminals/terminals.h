/* The terminals of one turn: what an agent asks of them in ACP's words (terminal/create, output, wait_for_exit, kill,
 * release), and what they printed, for the tool calls that show them. Whoever owns the turn owns this: when it is freed,
 * everything that was started in it is killed, and no other turn can name its terminals. */
#ifndef WEFT_TERMINALS_H
#define WEFT_TERMINALS_H

#include <limits.h>

#include <weft/method.h>

#include "terminal.h"

/* At a time; an agent releases what it no longer needs. */
#define WEFT_TERMINALS_MOST 32
/* Of what a terminal printed, so much of the end is kept with the tool call that shows it. */
#define WEFT_TERMINALS_SHOWN ((size_t) 16 << 10)
/* How ids of ours begin; other ids are the agent's own. */
#define WEFT_TERMINAL_PREFIX "weft-terminal-"
#define WEFT_TERMINAL_ID 32

typedef struct weft_terminals weft_terminals;

typedef struct weft_terminals_opts {
    weft_loop *loop;
    const weft_alloc *alloc;
    const char *guard;      /* as in process.h; borrowed for its life */
    const char *root;       /* absolute; terminals start there or beneath it; copied */
    const char *const *env; /* the agent's, NAME=VALUE; NULL: none. Borrowed for its life */
    int64_t grace_ms;
    void *ctx;
    /* A tool call shows a terminal that has ended or was released: an update of ACP with its content, which now has what was
     * printed. r <0: it cannot be told. Must not free the terminals. */
    void (*on_update)(void *ctx, int r, weft_val update);
} weft_terminals_opts;

typedef enum weft_terminals_call {
    WEFT_TERMINALS_CREATE,
    WEFT_TERMINALS_OUTPUT,
    WEFT_TERMINALS_WAIT,
    WEFT_TERMINALS_KILL,
    WEFT_TERMINALS_RELEASE,
} weft_terminals_call;

int weft__terminals_new(const weft_terminals_opts *opts, weft_terminals **ret);
/* Answer req now, or keep it and answer later. <0: as a handler of weft/method.h. */
int weft__terminals_take(weft_terminals *terminals, weft_terminals_call call, weft_req *req, const weft_json *params);
/* An update of the agent's, before it is stored. A tool call that shows terminals is remembered for on_update. 1: some of
 * them have ended, and ret has the update with what they printed; 0: it is well as it came; -ENOMEM. */
int weft__terminals_show(weft_terminals *terminals, const weft_json *update, weft_buf *ret);
/* The turn is being cancelled: all are asked to end, and are killed after the grace time; no more are started. */
void weft__terminals_stop(weft_terminals *terminals);
/* The turn is over: all are released. */
void weft__terminals_finish(weft_terminals *terminals);
/* What runs is killed, and requests that wait are answered; on_update is not called any more. Returns NULL. */
weft_terminals *weft__terminals_free(weft_terminals *terminals);

/* One that is open: not released. Borrowed until the next turn of the loop. */
typedef struct weft_open_terminal {
    const char *id;
    const char *command;        /* as it was asked for, for people; what is long is cut */
    const char *task, *session; /* whose it is; NULL from here, the engine knows */
    weft_terminal *terminal;
} weft_open_terminal;
/* The n-th, the oldest first; false: there are fewer. */
bool weft__terminals_nth(const weft_terminals *terminals, size_t n, weft_open_terminal *ret);

/* ---- terminal_order.c ---- */

/* Bytes of a command as people are shown it. */
#define WEFT_TERMINAL_COMMAND 256

/* A terminal as the params of terminal/create want it; argv, env, folder and limit are set in opts, and borrowed from ret
 * and params. <0: -ENOMEM, or -EINVAL: ret->why says why, for the agent. */
typedef struct weft_terminal_order {
    const char **argv, **env;
    weft_buf text; /* of env */
    char folder[PATH_MAX];
    char command[WEFT_TERMINAL_COMMAND];
    char why[200];
} weft_terminal_order;
int weft__terminal_order(const weft_terminals_opts *set, const weft_json *params, weft_terminal_order *ret,
                         weft_terminal_opts *opts);
void weft__terminal_order_done(weft_terminal_order *order, const weft_alloc *alloc);

/* ---- terminal_shown.c ---- */

/* What a terminal has printed, as its tool call shows it. */
typedef struct weft_terminal_print {
    weft_bytes text;
    bool truncated;
    bool running; /* it was released before it ended */
    int exit_code, signal;
} weft_terminal_print;

/* "SIGTERM". Borrowed from room, or for ever. */
const char *weft__signal_name(int signal, char room[16]);
/* Does a content of a tool call, a JSON array, show a terminal with this id? */
bool weft__content_shows(const weft_json *content, const char *id);
/* The content with, behind each terminal that find() knows to be over, what it printed. */
typedef bool weft_terminal_find(void *ctx, const char *id, weft_terminal_print *ret);
int weft__content_write(const weft_json *content, weft_terminal_find *find, void *ctx, const weft_alloc *alloc,
                        weft_buf *out);

#endif
