/* The keeper of a guard: the process between the daemon and the guard. It waits. When the guard is killed, everything that
 * was below it becomes the keeper's, and is killed; when the guard is stopped, it is continued. When the daemon has gone,
 * the guard does its work, and the keeper sees to it that it does. It never speaks to the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard.h"

/* A guard that was stopped once may have been stopped by mistake. One that is stopped again and again does no work. */
#define MAX_STOPS 3
/* How long the guard may take to kill everything after the daemon has gone; then the keeper does it. */
#define GUARD_MS 1000
/* The exit status when the guard was lost. */
#define LOST 3

typedef struct keeper {
    pid_t guard;
    int control, children;
    int stops;
    bool killing;
    int64_t due; /* when the guard's time is over; INT64_MAX: it has time */
    int exit_code;
    weft_guard_rounds rounds;
} keeper;

int weft__guard_settle(const sigset_t *signals) {
    int fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int r = fd < 0 || null < 0 || chdir("/") < 0 ? -errno : fd;
    for (int i = 0; null >= 0 && i < 3; i++)
        dup3(null, i, O_CLOEXEC);
    if (null >= 0)
        close(null);
    if (r < 0 && fd >= 0)
        close(fd);
    return r;
}

static void kill_the_rest(keeper *self) {
    if (self->killing)
        return;
    self->killing = true;
    self->rounds.due = weft__guard_now();
}

static void guard_stopped(keeper *self) {
    if (++self->stops <= MAX_STOPS)
        kill(self->guard, SIGCONT);
    else
        kill_the_rest(self);
}

static void guard_ended(keeper *self, int status) {
    self->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : LOST;
    kill_the_rest(self); /* usually there is nothing, and the keeper ends at once */
}

/* false: no child is left. */
static bool reap_children(keeper *self) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0)
        if (pid == self->guard && WIFSTOPPED(status))
            guard_stopped(self);
        else if (pid == self->guard)
            guard_ended(self, status);
    return pid == 0 || errno != ECHILD;
}

static int keeper_timeout(const keeper *self) {
    int64_t due = self->killing ? self->rounds.due : self->due;
    if (due == INT64_MAX)
        return self->children < 0 ? 1 : -1; /* it cannot hear of children: it looks for them */
    int64_t left = due - weft__guard_now();
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int) left;
}

/* Commands are for the guard; only the end of the connection is seen here. */
static void keeper_wait(keeper *self) {
    struct signalfd_siginfo info;
    struct pollfd ready[] = {{.fd = self->children, .events = POLLIN}, {.fd = self->control}};
    poll(ready, 2, keeper_timeout(self));
    while (ready[0].revents && read(self->children, &info, sizeof info) == sizeof info)
        continue;
    if (ready[1].revents) {
        close(self->control);
        self->control = -1;
        self->due = weft__guard_now() + GUARD_MS;
    }
    if (weft__guard_now() >= self->due)
        kill_the_rest(self);
    if (self->killing && weft__guard_now() >= self->rounds.due)
        weft__guard_rounds_count(&self->rounds, weft__guard_signal(SIGKILL));
}

int weft__guard_keep(pid_t guard, int control) {
    keeper self = {.guard = guard, .control = control, .due = INT64_MAX, .exit_code = LOST};
    sigset_t children;
    close(WEFT_GUARD_ORDER);
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    self.children = weft__guard_settle(&children);
    while (reap_children(&self) && self.rounds.vain < WEFT_VAIN_ROUNDS)
        keeper_wait(&self);
    return self.exit_code;
}
