/* A daemon from its lock to its end. What "weft serve" and "weft start" have in common is here; what a daemon does meanwhile
 * is not. */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "daemon_folder.h"
#include "failure.h"
#include "guards.h"
#include "private_file.h"

/* In the environment of every program that an agent runs: whose it is. */
#define WEFT_HUB_MARK "WEFT_HUB_ID"
/* Each time, somebody had the folder and was gone again when we looked. */
#define LOCK_TRIES 5
/* How long guards that were told to kill may keep us; they take some milliseconds, and go on without us. */
#define LAST_GUARDS_MS 1000
/* A URL may be long; in the log it is for people. */
#define MAX_LINE 1024

/* ---- entering ---- */

/* "weft start" puts its own process number there, so that a variable left in some environment means nothing. */
static bool is_background(void) {
    const char *parent = getenv(WEFT_BACKGROUND);
    bool yes = parent && strtol(parent, NULL, 10) == (long) getppid();
    unsetenv(WEFT_BACKGROUND);
    return yes;
}

static weft_exit explain_busy(const weft_daemon *daemon, pid_t pid) {
    if (daemon->background)
        return WEFT_BUSY;
    if (pid == 0)
        return weft__fail(daemon->app, WEFT_BUSY, "It may be in a container. Stop it where it was started.",
                          "a hub has this folder, but its process cannot be seen from here");
    return weft__fail(daemon->app, WEFT_BUSY, "\"weft status\" says how it is, \"weft stop\" ends it.",
                      "a hub is already running in this folder (pid %ld)", (long) pid);
}

/* A lock that nobody holds when we look for its holder was held by what a killed daemon had just started, or by a daemon
 * that has ended: it is our turn. -EBUSY: *ret_holder has it, 0 when it cannot be seen. */
static int take_lock(weft_daemon *daemon, pid_t *ret_holder) {
    const weft_layout *layout = daemon->app->layout;
    int r = -EBUSY;
    for (int i = 0; i < LOCK_TRIES && r == -EBUSY; i++) {
        r = weft__daemon_lock(layout, &daemon->lock);
        if (r == -EBUSY && weft__daemon_holder(layout, ret_holder) == 1)
            return r;
    }
    return r;
}

/* In the foreground there is none unless it was asked for: what is said for people is on the terminal. */
static weft_exit open_daemon_log(weft_daemon *daemon, const weft_log_opts *wanted) {
    const weft_layout *layout = daemon->app->layout;
    weft_log_opts opts = *wanted;
    bool kept = daemon->held && (daemon->background || layout->aiwg); /* whose programs look there in any case */
    if (!opts.file && kept)
        opts.file = layout->log;
    if (daemon->app->common.verbose)
        opts.level = NULL;
    int r = weft__log_open(&daemon->log, &opts);
    if (r < 0)
        return weft__fail(daemon->app, WEFT_FAILED, NULL, "%s: %s", opts.file, weft__private_why(r));
    daemon->app->log = &daemon->log;
    return WEFT_DONE;
}

static weft_exit explain_aiwg(const weft_daemon *daemon, pid_t pid) {
    const char *next = "Stop it first: \"aiwg daemon stop\", or whatever started it.";
    if (pid == 0)
        return weft__fail(daemon->app, WEFT_BUSY, next, "AIWG's own daemon is running in this folder");
    return weft__fail(daemon->app, WEFT_BUSY, next, "AIWG's own daemon is running in this folder (pid %ld)", (long) pid);
}

/* The pid file of one that was killed. That of a daemon that is not ours, AIWG's own, stays as long as that one lives; its
 * socket will tell us that the place is taken. */
static void forget_pid(const weft_layout *layout) {
    char text[32];
    int n = weft__private_read(layout->pid, text, sizeof text);
    pid_t pid = n > 0 ? (pid_t) strtol(text, NULL, 10) : 0;
    if (!layout->aiwg || pid <= 0 || pid == getpid() || kill(pid, 0) < 0)
        unlink(layout->pid);
}

/* What an agent must not inherit: somebody's token, descriptors that were meant for us, and the trace of who started us. */
static void clean_environment(void) {
    static const char *const names[] = {"WEFT_TOKEN",    "LISTEN_FDS",   "LISTEN_PID",  "LISTEN_FDNAMES",
                                        "WATCHDOG_USEC", "WATCHDOG_PID", "TRACEPARENT", "TRACESTATE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

/* What loses its guard becomes ours from here on. The mark is the same for every daemon of this folder, so that this one
 * finds what is left of one that was killed together with its guards. */
static void adopt_orphans(weft_daemon *daemon) {
    struct stat info = {0};
    char mark[96];
    if (daemon->held && fstat(daemon->lock, &info) == 0)
        snprintf(mark, sizeof mark, "%s=%llx-%llx", WEFT_HUB_MARK, (unsigned long long) info.st_dev,
                 (unsigned long long) info.st_ino);
    else
        snprintf(mark, sizeof mark, "%s=pid-%ld-%lld", WEFT_HUB_MARK, (long) getpid(), (long long) daemon->started_ns);
    int r = weft__guards_adopt(mark);
    if (r < 0)
        weft__warn(daemon->app, "weft serve: processes that lose their guard cannot be adopted: %s", weft_strerror(r));
    else if (r > 0)
        weft__warn(daemon->app, "weft serve: %d process%s of an earlier hub's agents still ran; killed", r,
                   r == 1 ? "" : "es");
}

weft_exit weft__daemon_enter(weft_daemon *daemon, weft_app *app, const weft_log_opts *log, bool wanted) {
    *daemon = (weft_daemon){.app = app, .started_ns = weft__clock_ns(), .background = is_background()};
    daemon->notify = weft__daemon_notify_take();
    clean_environment();
    weft__clock_text(daemon->started_at);
    if (!wanted && !daemon->background) {
        weft_exit opened = open_daemon_log(daemon, log);
        adopt_orphans(daemon);
        return opened;
    }
    if (daemon->background)
        umask(077);
    weft_exit status = weft__daemon_folder_make(app);
    if (status)
        return status;
    pid_t holder = 0;
    int r = take_lock(daemon, &holder);
    if (r == -EBUSY)
        return explain_busy(daemon, holder);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s: %s", app->layout->lock, weft__private_why(r));
    daemon->held = true;
    r = weft__daemon_aiwg_lock(app->layout, &holder);
    if (r == -EBUSY)
        return explain_aiwg(daemon, holder);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s: %s", app->layout->foreign_lock, weft_strerror(r));
    daemon->locked = true;
    forget_pid(app->layout);
    weft__daemon_folder_withdraw(app->layout);
    status = open_daemon_log(daemon, log);
    if (status)
        return status;
    adopt_orphans(daemon);
    r = weft__daemon_folder_default_config(app->layout);
    if (r > 0)
        weft__remark(app, "%s did not exist: it was written, with AIWG's defaults", app->layout->config);
    else if (r < 0)
        weft__warn(app, "weft serve: %s: %s", app->layout->config, weft_strerror(r));
    return WEFT_DONE;
}

void weft__daemon_offer(weft_daemon *daemon, weft_server *server) {
    daemon->server = server;
}

/* ---- being ready ---- */

int weft__daemon_write_pid(const weft_layout *layout) {
    char text[32];
    int n = snprintf(text, sizeof text, "%ld\n", (long) getpid());
    return weft__daemon_folder_put(layout->pid, text, (size_t) n);
}

/* Closing the pipes of "weft start" is what tells it that we are ready. Talk for people goes nowhere from then on. */
static void let_go_of_starter(weft_daemon *daemon) {
    FILE *nowhere = fopen("/dev/null", "we");
    if (!nowhere)
        return;
    fflush(daemon->app->out.file);
    dup2(fileno(nowhere), STDOUT_FILENO);
    daemon->app->err.file = nowhere;
    weft__log_take_stderr(&daemon->log);
}

/* The first and the last line are what AIWG's users and scripts wait for. */
static void log_urls(weft_daemon *daemon) {
    char line[MAX_LINE];
    const char *url;
    const weft_layout *layout = daemon->app->layout;
    if (layout->aiwg && daemon->held) {
        snprintf(line, sizeof line, "IPC server listening on %s", layout->socket);
        weft__log_put(&daemon->log, WEFT_LOG_INFO, line);
    }
    for (size_t i = 0; (url = weft_server_url(daemon->server, i)); i++) {
        snprintf(line, sizeof line, "listening on %s", url);
        weft__log_put(&daemon->log, WEFT_LOG_INFO, line);
    }
    if (layout->aiwg)
        weft__log_put(&daemon->log, WEFT_LOG_INFO, "Daemon started successfully");
}

weft_exit weft__daemon_ready(weft_daemon *daemon) {
    int r = daemon->held ? weft__daemon_write_pid(daemon->app->layout) : 0;
    if (r < 0)
        return weft__fail(daemon->app, WEFT_FAILED, NULL, "%s: %s", daemon->app->layout->pid, weft_strerror(r));
    daemon->announced = daemon->held;
    log_urls(daemon);
    weft__daemon_notify(daemon->notify, "READY=1");
    if (daemon->background && !daemon->let_go)
        let_go_of_starter(daemon);
    daemon->let_go = true;
    return WEFT_DONE;
}

/* ---- ending ---- */

/* Who starts one now waits for our end, and is not told that we are ready: the pid file goes first. AIWG's programs believe
 * that one, so there it stays until we end, and endpoint.json goes. */
void weft__daemon_stopping(weft_daemon *daemon) {
    const weft_layout *layout = daemon->app->layout;
    if (daemon->announced && layout->aiwg)
        weft__daemon_folder_withdraw(layout);
    else if (daemon->announced)
        weft__daemon_forget_own_pid(layout);
    if (layout->aiwg)
        weft__log_put(&daemon->log, WEFT_LOG_INFO, "Shutdown initiated");
    weft__log_put(&daemon->log, WEFT_LOG_INFO, "stopping");
    weft__daemon_notify(daemon->notify, "STOPPING=1");
}

void weft__daemon_leave(weft_daemon *daemon) {
    weft__guards_finish(LAST_GUARDS_MS);
    if (daemon->announced)
        weft__daemon_forget_own_pid(daemon->app->layout);
    if (daemon->locked)
        weft__daemon_aiwg_unlock(daemon->app->layout);
    if (daemon->announced && daemon->app->layout->aiwg)
        weft__log_put(&daemon->log, WEFT_LOG_INFO, "Daemon stopped gracefully");
    if (daemon->announced)
        weft__log_put(&daemon->log, WEFT_LOG_INFO, "stopped");
    daemon->app->log = NULL;
    daemon->notify = weft__free(NULL, daemon->notify);
    weft__log_close(&daemon->log);
    if (daemon->held)
        weft__daemon_unlock(daemon->lock);
    daemon->held = false;
}
