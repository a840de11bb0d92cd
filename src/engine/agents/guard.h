/* What a daemon and the guard of one program say to each other. Private to process.c and guard*.c: both are always the same
 * binary, so the form may change at will.
 *
 * The guard finds its order in a sealed-off file in memory and not in its arguments, which everybody on the machine can
 * read, nor in its environment, where an agent's LD_PRELOAD would get into the guard. */
#ifndef WEFT_GUARD_H
#define WEFT_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The descriptors of a guard besides the three it hands on to the program. The last is what it was started from, if that is
 * the image in memory. */
enum { WEFT_GUARD_CONTROL = 3, WEFT_GUARD_ORDER = 4, WEFT_GUARD_SELF = 5, WEFT_GUARD_FDS = 6 };

/* Both processes of a guard are called so; who descends from one of them belongs to an agent. */
#define WEFT_GUARD_NAME "weft-guard"

/* At the beginning of the order. Behind it, each with its NUL: the folder, the arguments, the whole environment, and what
 * the program is confined to (confine.h). */
typedef struct weft_guard_order {
    uint64_t files_soft, files_hard; /* RLIMIT_NOFILE */
    int64_t grace_ms;
    uint32_t umask;
    uint32_t terminal; /* not 0: the three descriptors are one, and become its controlling terminal */
    uint32_t arg_count, env_count;
    uint32_t confine_count;      /* 0: it is not confined */
    uint64_t max_data, max_file; /* RLIMIT_DATA and RLIMIT_FSIZE; 0: as they are */
} weft_guard_order;

/* Commands, a byte each. The end of the connection is WEFT_GUARD_KILL too. */
enum { WEFT_GUARD_STOP = 's', WEFT_GUARD_KILL = 'k' };

/* What it says, a packet each: the first; one of the next three; and after WEFT_GUARD_STARTED, when nothing is left, the
 * last. */
typedef enum weft_guard_kind {
    WEFT_GUARD_FORKED,     /* value: the group the program will have; before it can do anything */
    WEFT_GUARD_STARTED,    /* value: the program's pid */
    WEFT_GUARD_NO_FOLDER,  /* value: an errno */
    WEFT_GUARD_NO_PROGRAM, /* value: an errno */
    WEFT_GUARD_ENDED,      /* value: the program's wait status */
} weft_guard_kind;

typedef struct weft_guard_note {
    int32_t kind;
    int32_t value;
} weft_guard_note;

/* ---- guard_tree.c ---- */

/* Send a signal to every descendant of this process, whatever group or session it is in. The number of those that could be
 * sent one, zombies included, or a negative errno when the processes cannot be listed. What is born meanwhile may be missed:
 * call again until wait() knows of no child. */
int weft__guard_signal(int signal);
/* SIGKILL to every descendant of this process but those that spared() names and what descends from them. Children of this
 * process that have ended are collected. The number of those that were left before it, or a negative errno. */
int weft__tree_kill(bool (*spared)(void *ctx, pid_t child), void *ctx);

/* Rounds of killing, until wait() knows of no child. What a round missed was born during it, and the killed need a moment to
 * go. */
typedef struct weft_guard_rounds {
    int64_t due; /* the next one, by weft__guard_now() */
    int wait_ms; /* between two; 0: none was made yet */
    int vain;    /* in so many, nothing could be killed, though something is left */
} weft_guard_rounds;

/* Processes that so many rounds could not kill belong to another user (sudo) and are not ours to end. */
#define WEFT_VAIN_ROUNDS 5

int64_t weft__guard_now(void);
/* A round was made and reached so many. */
void weft__guard_rounds_count(weft_guard_rounds *rounds, int reached);

/* ---- guard_keeper.c ---- */

/* The first of a guard's two processes, until the guard and everything below it has gone. Its exit status. */
int weft__guard_keep(pid_t guard, int control);
/* Hear of these signals by descriptor, and hold on to nothing that the program has: three descriptors that lead nowhere, no
 * folder. The descriptor, or a negative errno. */
int weft__guard_settle(const sigset_t *signals);

#endif
