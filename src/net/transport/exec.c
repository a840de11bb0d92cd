/* Child processes for exec: endpoints. posix_spawn shares our memory until the exec, so a large program is not copied
 * (uv_spawn forks: 50 ms of blocked loop at 1 GB). A pidfd in the loop says when it has exited; no SIGCHLD handler, which
 * would be the program's business. */
#include "exec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a child may take to leave after its stdin ended, and after SIGTERM. Long enough to flush a file, short enough
 * for somebody who waits at a terminal. */
#define LEAVE_MS 1000
#define TERM_MS 2000

/* waitid(P_PIDFD) is newer than some headers. */
#define BY_PIDFD ((idtype_t) 3)

extern char **environ;

/* What is done to make it leave; each step waits for the one before.
 *
 * LIVING ──weft__child_end()──▶ LEAVING ──1 s──▶ TERMINATED ──2 s──▶ KILLED     next_step()
 *    └─────────┴──────────────exit, when we were told to end it──────┴────▶ reaped and closed    finish() */
enum step { LIVING, LEAVING, TERMINATED, KILLED };

struct weft_child {
    const weft_alloc *alloc;
    uv_poll_t poll; /* on the pidfd */
    uv_timer_t timer;
    int open_handles;
    pid_t pid; /* and of its process group */
    int pidfd;
    enum step step;
    bool exited;
    void (*on_exit)(void *ctx, int status);
    void *exit_ctx;
    void (*on_gone)(void *ctx);
    void *gone_ctx;
};

/* ---- finding the program ---- */

static int usable(const char *file) {
    struct stat st;
    if (stat(file, &st) < 0)
        return -ENOENT;
    if (!S_ISREG(st.st_mode) || access(file, X_OK) < 0)
        return -EACCES;
    return 0;
}

int weft__find_program(const char *name, const char *path, char *ret, size_t size) {
    if (strchr(name, '/')) {
        int n = snprintf(ret, size, "%s", name);
        return n < 0 || (size_t) n >= size ? -ENAMETOOLONG : usable(name);
    }
    int found = -ENOENT;
    for (const char *folder = path; folder && *name; folder = *folder ? folder + 1 : NULL) {
        size_t len = strcspn(folder, ":");
        /* An empty or relative folder in PATH means the current directory, where anybody may have put a program. */
        bool absolute = *folder == '/';
        int n = absolute ? snprintf(ret, size, "%.*s/%s", (int) len, folder, name) : -1;
        folder += len;
        if (n < 0 || (size_t) n >= size)
            continue;
        int r = usable(ret);
        if (r == 0)
            return 0;
        if (r == -EACCES)
            found = r;
    }
    return found;
}

/* ---- starting ---- */

/* Our end, then the child's, both above the standard descriptors: a program that closed its own stdin would otherwise get a
 * socket numbered 0, which the dup2s below would trample on. */
static int make_pair(int ret[2]) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    for (int i = 0; i < 2; i++) {
        if (pair[i] > 2)
            continue;
        int fd = fcntl(pair[i], F_DUPFD_CLOEXEC, 3);
        if (fd < 0) {
            int r = -errno;
            close(pair[0]);
            close(pair[1]);
            return r;
        }
        close(pair[i]);
        pair[i] = fd;
    }
    /* Only ours: a child does not expect a non-blocking stdin. */
    fcntl(pair[0], F_SETFL, fcntl(pair[0], F_GETFL) | O_NONBLOCK);
    memcpy(ret, pair, sizeof pair);
    return 0;
}

static int set_files(posix_spawn_file_actions_t *files, int fd, bool quiet_stderr) {
    int r = posix_spawn_file_actions_adddup2(files, fd, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(files, fd, 1);
    if (r == 0 && quiet_stderr)
        r = posix_spawn_file_actions_addopen(files, 2, "/dev/null", O_WRONLY, 0);
    /* Descriptors that a library of the program opened without close-on-exec stay with us too. */
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(files, 3);
    return -r;
}

static int set_signals(posix_spawnattr_t *attr) {
    sigset_t set;
    sigemptyset(&set);
    int r = posix_spawnattr_setsigmask(attr, &set);
    sigfillset(&set);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(attr, &set);
    if (r == 0)
        r = posix_spawnattr_setpgroup(attr, 0);
    if (r == 0)
        r = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    return -r;
}

static int spawn(const char *file, const char *const *argv, int fd, bool quiet_stderr, pid_t *ret) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int r = posix_spawn_file_actions_init(&files);
    if (r)
        return -r;
    r = posix_spawnattr_init(&attr);
    if (r) {
        posix_spawn_file_actions_destroy(&files);
        return -r;
    }
    r = set_files(&files, fd, quiet_stderr);
    if (r == 0)
        r = set_signals(&attr);
    if (r == 0)
        r = -posix_spawn(ret, file, &files, &attr, (char *const *) (uintptr_t) argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return r;
}

/* ---- ending ---- */

/* Collect the exit status, having asked what is left of the group to go: while the leader is not collected the number cannot
 * belong to another group. */
static int reap(weft_child *child) {
    siginfo_t info = {0};
    kill(-child->pid, SIGTERM);
    if (waitid(BY_PIDFD, (id_t) child->pidfd, &info, WEXITED | WNOHANG) < 0)
        return -1;
    if (info.si_code == CLD_EXITED)
        return (info.si_status & 0xff) << 8;
    return info.si_status & 0x7f;
}

static void handle_closed(uv_handle_t *handle) {
    weft_child *child = handle->data;
    if (--child->open_handles)
        return;
    close(child->pidfd);
    if (child->on_gone)
        child->on_gone(child->gone_ctx);
    weft__free(child->alloc, child);
}

static void finish(weft_child *child) {
    uv_close((uv_handle_t *) &child->poll, handle_closed);
    uv_close((uv_handle_t *) &child->timer, handle_closed);
}

static void exited(uv_poll_t *poll, int status, int events) {
    weft_child *child = poll->data;
    (void) status;
    (void) events;
    uv_poll_stop(poll);
    child->exited = true;
    int wait_status = reap(child);
    if (child->step != LIVING)
        finish(child);
    else if (child->on_exit)
        child->on_exit(child->exit_ctx, wait_status);
}

static void next_step(uv_timer_t *timer) {
    weft_child *child = timer->data;
    if (child->step == LEAVING) {
        child->step = TERMINATED;
        kill(-child->pid, SIGTERM);
        uv_timer_start(timer, next_step, TERM_MS, 0);
    } else {
        child->step = KILLED;
        kill(-child->pid, SIGKILL);
    }
}

/* ---- the child ---- */

static int watch(weft_child *child, uv_loop_t *loop) {
    int r = uv_poll_init(loop, &child->poll, child->pidfd);
    if (r < 0)
        return r;
    /* Neither of these can fail: there is nothing to undo behind uv_poll_init(). */
    uv_timer_init(loop, &child->timer);
    child->open_handles = 2;
    child->poll.data = child->timer.data = child;
    return uv_poll_start(&child->poll, UV_READABLE, exited);
}

/* The child runs but cannot be watched: it must not stay behind. Blocks until the killed process is gone, which is soon. */
static void destroy(weft_child *child) {
    kill(-child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    if (child->pidfd >= 0)
        close(child->pidfd);
}

int weft__child_new(uv_loop_t *loop, const char *const *argv, bool quiet_stderr, const weft_alloc *alloc, weft_child **ret,
                    int *ret_fd) {
    char file[PATH_MAX];
    int pair[2];
    int r = weft__find_program(argv[0], getenv("PATH"), file, sizeof file);
    if (r < 0)
        return r;
    weft_child *child = weft__zalloc(alloc, sizeof *child);
    if (!child)
        return -ENOMEM;
    child->alloc = alloc;
    r = make_pair(pair);
    if (r < 0)
        goto no_pair;
    r = spawn(file, argv, pair[1], quiet_stderr, &child->pid);
    close(pair[1]);
    if (r < 0)
        goto no_child;
    child->pidfd = (int) syscall(SYS_pidfd_open, child->pid, 0);
    r = child->pidfd < 0 ? -errno : watch(child, loop);
    if (r < 0) {
        destroy(child);
        goto no_child;
    }
    *ret = child;
    *ret_fd = pair[0];
    return 0;

no_child:
    close(pair[0]);
no_pair:
    weft__free(alloc, child);
    return r;
}

void weft__child_on_exit(weft_child *child, void (*on_exit)(void *ctx, int status), void *ctx) {
    child->on_exit = on_exit;
    child->exit_ctx = ctx;
}

void weft__child_end(weft_child *child, void (*on_gone)(void *ctx), void *ctx) {
    child->on_gone = on_gone;
    child->gone_ctx = ctx;
    child->step = LEAVING;
    if (child->exited)
        finish(child);
    else
        uv_timer_start(&child->timer, next_step, LEAVE_MS, 0);
}

void weft__child_hurry(weft_child *child) {
    next_step(&child->timer);
}
