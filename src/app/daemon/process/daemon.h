/* The life of a daemon: exactly one per folder, from its lock to its last log line, and what others can find out about it.
 *
 * A daemon holds a lock on daemon.lock in its folder as long as it lives; the kernel lets go of it, however it ends. A pid
 * file is never believed: it is there for other people's tools, and to say that the daemon is ready. All paths are relative:
 * whoever asks stands in the project's folder. */
#ifndef WEFT_DAEMON_H
#define WEFT_DAEMON_H

#include <sys/types.h>

#include "app.h"
#include "clock.h"
#include "daemon_log.h"
#include "endpoint.h"

/* The variable by which "weft start" tells "weft serve" that it is to be in the background. */
#define WEFT_BACKGROUND "WEFT_BACKGROUND"

/* A store of a million events opens in seconds; who needs longer than this is stuck. */
#define WEFT_START_MS (120 * 1000)
/* Open requests get 10 s, and then there are connections to close. */
#define WEFT_STOP_MS (15 * 1000)

/* ---- being one: daemon.c ---- */

typedef struct weft_daemon {
    weft_app *app;
    weft_server *server;
    const struct weft_serve_config *config; /* what daemon.status says of it; NULL: nothing */
    const struct weft_relay *relay;         /* likewise; NULL: this hub is none */
    weft_log log;
    const struct weft_uplink *uplink; /* likewise: the hub that we are a runner of; NULL: we are none */
    char *notify;                     /* where the service manager listens; NULL: there is none */
    char started_at[WEFT_STAMP];
    int64_t started_ns;
    int lock;
    bool held;       /* this folder is ours: the lock, the pid file, the socket */
    bool background; /* started by "weft start" */
    bool announced;  /* the pid file is written */
    bool let_go;     /* of who started us */
    bool locked;     /* AIWG's lock is ours too */
} weft_daemon;

/* The folder becomes ours if it is wanted, and always in the background. Explained when it cannot, but for one case: in the
 * background WEFT_BUSY says silently that another has it. End with weft__daemon_leave() in any case. */
weft_exit weft__daemon_enter(weft_daemon *daemon, weft_app *app, const weft_log_opts *log, bool wanted);
/* This is the server whose endpoints are told of. */
void weft__daemon_offer(weft_daemon *daemon, weft_server *server);
/* All endpoints are open: tell whoever waits for it, and let go of the terminal. A failure is explained. */
weft_exit weft__daemon_ready(weft_daemon *daemon);
/* No new work is taken from here on. */
void weft__daemon_stopping(weft_daemon *daemon);
void weft__daemon_leave(weft_daemon *daemon);

int weft__daemon_write_pid(const weft_layout *layout);

/* ---- daemon_keep.c ---- */

typedef struct weft_daemon_keep weft_daemon_keep;
/* From now on, pid file, socket, endpoint.json and AIWG's lock are made again when somebody removes them. publish writes
 * endpoint.json. -ENOMEM. */
int weft__daemon_keep_new(weft_daemon *daemon, weft_loop *loop, bool (*publish)(void *ctx), void *ctx,
                          weft_daemon_keep **ret);
weft_daemon_keep *weft__daemon_keep_free(weft_daemon_keep *keep);

/* ---- daemon_aiwg_lock.c ---- */

/* Take the lock of AIWG's own daemon, where the layout has one. -EBUSY: *ret_holder has it, 0 when it cannot be seen. */
int weft__daemon_aiwg_lock(const weft_layout *layout, pid_t *ret_holder);
/* No daemon runs here: remove the lock and the pid file that one left which was killed. */
void weft__daemon_aiwg_clear(const weft_layout *layout);
/* Somebody has removed it: true, it is there again. */
bool weft__daemon_aiwg_relock(const weft_layout *layout);
/* Give it back, and take the pid file away, if they are ours. */
void weft__daemon_aiwg_unlock(const weft_layout *layout);
void weft__daemon_forget_own_pid(const weft_layout *layout);

/* ---- daemon_lock.c ---- */

/* -EBUSY: another holds it. The lock lasts until it is given back, or we end. */
int weft__daemon_lock(const weft_layout *layout, int *ret_fd);
void weft__daemon_unlock(int fd);
/* 1 a daemon has this folder; *ret is its process, 0 if that cannot be seen from here (a container's). 0 there is none. */
int weft__daemon_holder(const weft_layout *layout, pid_t *ret);
/* Has this one said that it is ready, and is not stopping? AIWG's pid file stays until the end; there, endpoint.json goes
 * first. */
bool weft__daemon_is_ready(const weft_layout *layout, pid_t pid);
/* Has it begun to stop? Of one that is not ready. */
bool weft__daemon_is_stopping(const weft_layout *layout, pid_t pid);
/* Wait until it is. 1 ready, 0 it has ended, -ETIMEDOUT. */
int weft__daemon_wait_ready(const weft_layout *layout, pid_t pid, int64_t timeout_ms);
/* Its process, safe against numbers that are used again: a pidfd to close. -ESRCH: it is not the holder any more. */
int weft__daemon_process(const weft_layout *layout, pid_t pid);
/* 1 it has ended, 0 time is up. */
int weft__daemon_wait_end(int process, int64_t timeout_ms);

/* ---- daemon_project.c ---- */

/* Go to the project's folder: the nearest one, from here upward, with a daemon's folder of ours. 1 there, 0 there is none
 * and we stay. */
int weft__daemon_project(const weft_layout *layout);
/* The hub of every verb that has not been given a URL. The same in whichever layout comes first, Weft's own before AIWG's
 * unless only that one's daemon runs. It becomes the app's. Root's folder counts too while its socket is there. */
int weft__daemon_find(weft_app *app);
/* AIWG's own daemon, and one that keeps nothing, hold no lock: does anybody listen at the socket of this folder? */
bool weft__daemon_answers(const weft_layout *layout);
/* weft__daemon_find() without going there: the folder, absolute, when it is 1. */
int weft__daemon_look(weft_app *app, char ret_folder[WEFT_FOLDER_PATH]);
/* One or the other: AIWG's layout if that was asked for, else whichever is found. */
int weft__daemon_choose(weft_app *app, bool aiwg);
#define WEFT_OPTION_AIWG(type) WEFT_OPTION(type, aiwg, flag, "aiwg", 0, NULL, "of the daemon with AIWG's files, in .aiwg")
/* What the daemon has written about itself: endpoint.json. Owned; NULL: nothing that can be read. */
weft_doc *weft__daemon_endpoint(const weft_layout *layout);

/* ---- daemon_start.c, daemon_stop.c ---- */

/* Call act with the arguments behind the verb in a process's command line: NULL-terminated, borrowed. <0: it was not called;
 * -ENOENT: the verb is another. */
int weft__daemon_with_args(weft_app *app, pid_t pid, const char *verb, weft_exit (*act)(weft_app *app, char **args),
                           weft_exit *ret);
/* "weft serve" with these arguments, in the background; back when it is ready, or runs already. Tells and explains. */
weft_exit weft__daemon_start(weft_app *app, char **args);
/* Ask it to end and wait. *ret_pid is 0 when there was none. A failure is explained. */
weft_exit weft__daemon_stop(const weft_app *app, int64_t grace_ms, bool force, pid_t *ret_pid, bool *ret_killed);

/* ---- daemon_notify.c ---- */

/* The socket of the service manager that started us, and nobody below us (NOTIFY_SOCKET, sd_notify(3)). Owned; NULL: none.
 */
char *weft__daemon_notify_take(void);
/* A line for it; path may be NULL. */
void weft__daemon_notify(const char *path, const char *state);

/* ---- daemon_status.c ---- */

/* The member "weft" of daemon.status. Owned text. */
int weft__daemon_about(const weft_daemon *daemon, char **ret, size_t *ret_len);

#endif
