/* Who has the folder. A record lock and not flock(), because the kernel names its holder: to signal "the daemon of this
 * folder" then needs no file that could be old, and no guess whether a number was given to another program since. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon.h"

static struct flock whole_file(void) {
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

int weft__daemon_lock(int *ret_fd) {
    struct flock lock = whole_file();
    int fd = open(WEFT_HOME_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    if (fcntl(fd, F_SETLK, &lock) < 0) {
        int r = errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

int weft__daemon_holder(pid_t *ret) {
    struct flock lock = whole_file();
    int fd = open(WEFT_HOME_LOCK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    int r = fcntl(fd, F_GETLK, &lock) < 0 ? -errno : 0;
    close(fd);
    if (r < 0 || lock.l_type == F_UNLCK)
        return r;
    *ret = lock.l_pid > 0 ? lock.l_pid : 0;
    return 1;
}

bool weft__daemon_is_ready(pid_t pid) {
    char text[32] = "";
    int fd = open(WEFT_HOME_PID, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 && strtol(text, NULL, 10) == (long) pid;
}

/* Open first, look then: a process that still holds the lock is the one we opened. */
int weft__daemon_process(pid_t pid) {
    pid_t holder;
    int fd = (int) syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return -errno;
    if (weft__daemon_holder(&holder) == 1 && holder == pid)
        return fd;
    close(fd);
    return -ESRCH;
}

/* poll(), until the time is really over: a spinner's signals interrupt it. The number of descriptors that are ready, or 0.
 */
static int wait_for(struct pollfd *fds, nfds_t count, int64_t until_ns) {
    for (;;) {
        int64_t left_ms = (until_ns - weft__clock_ns()) / 1000000;
        int n = poll(fds, count, left_ms > 0 ? (int) left_ms : 0);
        if (n > 0 || (n == 0 && left_ms <= 0))
            return n;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
}

int weft__daemon_wait_end(int process, int64_t timeout_ms) {
    struct pollfd fd = {.fd = process, .events = POLLIN};
    return wait_for(&fd, 1, weft__clock_ns() + timeout_ms * 1000000);
}

/* fds: its process, and changes of the folder that the pid file appears in. */
static int watch_ready(pid_t pid, struct pollfd fds[2], int64_t until_ns) {
    char events[4096];
    while (!weft__daemon_is_ready(pid)) {
        int r = wait_for(fds, 2, until_ns);
        if (r <= 0)
            return r < 0 ? r : -ETIMEDOUT;
        if (fds[0].revents)
            return 0;
        if (read(fds[1].fd, events, sizeof events) < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
    }
    return 1;
}

int weft__daemon_wait_ready(pid_t pid, int64_t timeout_ms) {
    int64_t until_ns = weft__clock_ns() + timeout_ms * 1000000;
    if (pid == 0)
        return 1; /* nothing to watch it by */
    int process = weft__daemon_process(pid);
    if (process < 0)
        return process == -ESRCH ? 0 : process;
    int changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int r = changes < 0 || inotify_add_watch(changes, WEFT_HOME, IN_MOVED_TO) < 0 ? -errno : 0;
    if (r == 0)
        r = watch_ready(pid, (struct pollfd[]){{.fd = process, .events = POLLIN}, {.fd = changes, .events = POLLIN}},
                        until_ns);
    if (changes >= 0)
        close(changes);
    close(process);
    return r;
}
