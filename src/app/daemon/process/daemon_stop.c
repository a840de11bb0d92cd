/* Stopping the daemon of this folder, and waiting until it has ended. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon.h"
#include "failure.h"
#include "private_file.h"
#include "progress.h"

/* After SIGKILL only the kernel is in the way. */
#define KILL_MS 5000

static int send_signal(int process, int number) {
    int r = syscall(SYS_pidfd_send_signal, process, number, NULL, 0) < 0 ? -errno : 0;
    return r == -ESRCH ? 0 : r; /* it has ended by itself */
}

/* 1 it has ended, 0 it has not. */
static int ask_to_end(const weft_app *app, int process, int number, int64_t timeout_ms) {
    int r = send_signal(process, number);
    if (r < 0)
        return r;
    weft__spinner_start(app, "stopping");
    r = weft__daemon_wait_end(process, timeout_ms);
    weft__spinner_stop();
    return r;
}

static weft_exit end_daemon_process(const weft_app *app, int process, int64_t grace_ms, bool force, bool *ret_killed) {
    int r = ask_to_end(app, process, SIGTERM, grace_ms);
    *ret_killed = r == 0 && force;
    if (*ret_killed)
        r = ask_to_end(app, process, SIGKILL, KILL_MS);
    if (r == 0)
        return weft__fail(app, WEFT_TOO_LATE, "It may have work that takes longer: --timeout 60s waits, --force kills it.",
                          "the hub has not ended after %.3g s", (double) grace_ms / 1000);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

weft_exit weft__daemon_stop(const weft_app *app, int64_t grace_ms, bool force, pid_t *ret_pid, bool *ret_killed) {
    *ret_pid = 0;
    *ret_killed = false;
    pid_t pid;
    int r = weft__daemon_holder(app->layout, &pid);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s: %s", app->layout->lock, weft__private_why(r));
    if (r == 0) {
        weft__daemon_aiwg_clear(app->layout);
        return WEFT_DONE;
    }
    if (pid == 0)
        return weft__fail(app, WEFT_FAILED, "Stop it where it was started, in a container perhaps.",
                          "a hub has this folder, but its process cannot be seen from here");
    int process = weft__daemon_process(app->layout, pid);
    if (process == -ESRCH)
        return WEFT_DONE;
    if (process < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "pid %ld: %s", (long) pid, weft_strerror(process));
    *ret_pid = pid;
    weft_exit status = end_daemon_process(app, process, grace_ms, force, ret_killed);
    close(process);
    return status;
}
