/* A program and everything it starts, under a guard: the small program that this one carries (guard_image.h), or this
 * binary again ("weft __guard"). It has a pipe to us, is the reaper of all that the program leaves behind, and when we tell
 * it to, or are gone ourselves, nothing of that stays, whatever session or group it moved to.
 *
 * The program gets a process group of its own, the signals, the umask and the descriptor limit that we were started with,
 * and no descriptor of ours but its three. These are pipes, or a terminal (a pty): then it leads a session of its own, whose
 * controlling terminal that is. */
#ifndef WEFT_PROCESS_H
#define WEFT_PROCESS_H

#include <sys/types.h>

#include <weft/net.h>

typedef struct weft_process weft_process;

typedef struct weft_process_end {
    int exit_code; /* -1: it did not exit by itself */
    int signal;    /* that ended it; 0: none */
    int error;     /* it was never started: a negative errno (-ENOENT, -EACCES, ...); 0: it was */
    bool folder;   /* the error is about the folder, not about the program */
} weft_process_end;

/* Columns and rows of a terminal. */
typedef struct weft_process_size {
    unsigned short cols, rows;
} weft_process_size;

/* What a program may do beyond being the user's. */
typedef struct weft_process_bounds {
    const char *const *confined; /* to these, see confine.h; NULL: to nothing */
    uint64_t max_data, max_file; /* bytes of its memory, and of a file that it writes; 0: no limit of ours */
    bool bare;                   /* it has none of our environment but the mark of guards.h */
} weft_process_bounds;

typedef struct weft_process_opts {
    weft_loop *loop;
    const weft_alloc *alloc;
    const char *guard; /* the file to start the guard from; NULL: what this program carries (guard_image.h), or itself */
    const char *const *argv;           /* a name without a slash is looked for in the absolute folders of PATH */
    const char *const *env;            /* NAME=VALUE, besides ours; NULL: none */
    const char *folder;                /* to start in */
    int64_t grace_ms;                  /* between SIGTERM and SIGKILL; 0: 5 s */
    const weft_process_size *terminal; /* it runs in a terminal of this size; NULL: with three pipes */
    const weft_process_bounds *bounds; /* NULL: none */
    void *ctx;
    /* It runs. Not called when it could not be started. May be NULL. */
    void (*on_start)(void *ctx, pid_t pid);
    /* The program has ended and nothing of what it started is left. Exactly once, unless freed before. */
    void (*on_end)(void *ctx, const weft_process_end *end);
} weft_process_opts;

/* What the daemon found when it started, before it raised limits or changed its umask; guards give it back to programs. Call
 * once, early in main(). */
void weft__process_remember(void);
/* The umask of then: the user's, for files that are made for the user. */
mode_t weft__process_umask(void);

/* Start it. Everything is copied. ret_fds are our ends of its stdin, stdout and stderr: pipes, non-blocking, close-on-exec,
 * owned by the caller. Of a terminal only the first is there, for both directions; the others are -1. <0: nothing was
 * started. A program that is not there is told by on_end. */
int weft__process_start(const weft_process_opts *opts, weft_process **ret, int ret_fds[3]);
/* End all of it: SIGTERM, after the grace time SIGKILL; force: SIGKILL now. on_end follows. */
void weft__process_stop(weft_process *process, bool force);
/* Nothing is called any more; what still runs is killed by the guard. Returns NULL. */
weft_process *weft__process_free(weft_process *process);

/* The guard itself: main() of "weft __guard ...". */
int weft__guard_main(int argc, char **argv);

#endif
