/* Who has the folder. The lock belongs to an open file (F_OFD_SETLK), so that no other code of the daemon can lose it by
 * opening and closing the same file, as it could a record lock. Its holder writes its number into the file; it is believed
 * of a process that has the file open while the lock is held, and so never of one that was given a dead daemon's number. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon.h"
#include "private_file.h"
#include "read_all.h"

/* Between locking and writing its number, a daemon does nothing else. */
#define NAME_MS 1000
/* A program that is being started begins when the machine gets to it. */
#define BEGIN_MS (60 * 1000)

static struct flock whole_file(void) {
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

/* poll(), until the time is really over: a spinner's signals interrupt it. The number of descriptors that are ready, or 0.
 */
static int poll_until(struct pollfd *fds, nfds_t count, int64_t until_ns) {
    for (;;) {
        int64_t left_ms = (until_ns - weft__clock_ns()) / 1000000;
        int n = poll(fds, count, left_ms > 0 ? (int) left_ms : 0);
        if (n > 0 || (n == 0 && left_ms <= 0))
            return n;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
}

/* ---- the lock ---- */

/* Always as long, so that it is replaced in one write. */
static int write_name(int fd) {
    char text[24];
    int n = snprintf(text, sizeof text, "%-20ld\n", (long) getpid());
    return pwrite(fd, text, (size_t) n, 0) == n ? 0 : -EIO;
}

int weft__daemon_lock(const weft_layout *layout, int *ret_fd) {
    struct flock lock = whole_file();
    int fd = weft__private_open(layout->lock, O_RDWR | O_CREAT);
    if (fd < 0)
        return fd;
    int r = fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : write_name(fd);
    if (r < 0) {
        close(fd);
        return r == -EACCES || r == -EAGAIN ? -EBUSY : r;
    }
    *ret_fd = fd;
    return 0;
}

/* Our number goes too, so that nobody takes it from there and signals whoever has it next. */
void weft__daemon_unlock(int fd) {
    int r = ftruncate(fd, 0);
    (void) r;
    close(fd);
}

/* Asks without taking it, so that nobody who looks can be in the way of somebody who starts. */
static int is_locked(int fd) {
    struct flock lock = whole_file();
    if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
        return -errno;
    return lock.l_type != F_UNLCK;
}

/* writing: in such a way that it could hold the lock, as nobody does who only asks. */
static bool has_open(pid_t pid, const struct stat *file, bool writing) {
    char path[64];
    struct dirent *entry;
    struct stat info, link;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%ld/fd", (long) pid);
    DIR *folder = opendir(path);
    while (folder && !found && (entry = readdir(folder)))
        found = fstatat(dirfd(folder), entry->d_name, &info, 0) == 0 && info.st_ino == file->st_ino &&
                info.st_dev == file->st_dev &&
                (!writing ||
                 (fstatat(dirfd(folder), entry->d_name, &link, AT_SYMLINK_NOFOLLOW) == 0 && (link.st_mode & S_IWUSR)));
    if (folder)
        closedir(folder);
    return found;
}

/* A process that was killed has its files until it gets to its end, which takes a while on a busy machine. */
static bool is_killed(pid_t pid) {
    char path[64], text[4096];
    size_t len = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long) pid);
    int status = open(path, O_RDONLY | O_CLOEXEC);
    if (status < 0)
        return false;
    int r = weft__read_all(status, text, sizeof text - 1, &len);
    close(status);
    text[r < 0 ? 0 : len] = '\0';
    const char *pending = strstr(text, "\nShdPnd:");
    return pending && (strtoull(pending + 8, NULL, 16) >> (SIGKILL - 1) & 1);
}

/* Who the file says, if that can be true; else 0. */
static pid_t named_holder(int fd) {
    char text[24] = "";
    struct stat info;
    if (pread(fd, text, sizeof text - 1, 0) <= 0 || fstat(fd, &info) < 0)
        return 0;
    pid_t pid = (pid_t) strtol(text, NULL, 10);
    return pid > 0 && has_open(pid, &info, false) && !is_killed(pid) ? pid : 0;
}

/* Has one of our own kind that can be seen the file open? */
static bool is_open_in_one_of_us(int fd) {
    struct stat file, self, exe;
    char path[300];
    struct dirent *entry;
    bool found = false;
    if (fstat(fd, &file) < 0 || stat("/proc/self/exe", &self) < 0)
        return false;
    DIR *folder = opendir("/proc");
    while (folder && !found && (entry = readdir(folder))) {
        pid_t pid = (pid_t) strtol(entry->d_name, NULL, 10);
        snprintf(path, sizeof path, "/proc/%s/exe", entry->d_name);
        found = pid > 0 && pid != getpid() && stat(path, &exe) == 0 && exe.st_ino == self.st_ino &&
                exe.st_dev == self.st_dev && has_open(pid, &file, true);
    }
    if (folder)
        closedir(folder);
    return found;
}

/* The lock is held: wait for the name if it is not there yet. It never comes when the holder was killed: it has the file
 * open until its end, and a program that it was starting until its exec; then it is closed for the last time. That takes a
 * moment, and on a busy machine a long one. */
static pid_t wait_for_name(const weft_layout *layout, int fd) {
    char events[1024];
    int64_t until_ns = weft__clock_ns() + (int64_t) NAME_MS * 1000000;
    pid_t pid = named_holder(fd);
    int changes = pid ? -1 : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (changes < 0)
        return pid;
    int64_t last_ns = until_ns + (int64_t) BEGIN_MS * 1000000;
    if (inotify_add_watch(changes, layout->lock, IN_MODIFY | IN_CLOSE_WRITE) >= 0)
        while (!(pid = named_holder(fd)) && is_locked(fd) == 1) {
            int n = poll_until(&(struct pollfd){.fd = changes, .events = POLLIN}, 1, until_ns);
            if (n == 0 && until_ns < last_ns && is_open_in_one_of_us(fd))
                until_ns += (int64_t) NAME_MS * 1000000;
            else if (n <= 0 || (read(changes, events, sizeof events) < 0 && errno != EAGAIN && errno != EINTR))
                break;
        }
    close(changes);
    return pid;
}

int weft__daemon_holder(const weft_layout *layout, pid_t *ret) {
    int fd = weft__private_open(layout->lock, O_RDONLY);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    int r = is_locked(fd);
    pid_t pid = r == 1 ? wait_for_name(layout, fd) : 0;
    if (r == 1 && pid == 0)
        r = is_locked(fd); /* it may have ended while we waited for its name */
    close(fd);
    if (r == 1)
        *ret = pid;
    return r;
}

/* ---- its process ---- */

static bool has_pid_file(const weft_layout *layout, pid_t pid) {
    char text[32];
    return weft__private_read(layout->pid, text, sizeof text) > 0 && strtol(text, NULL, 10) == (long) pid;
}

bool weft__daemon_is_ready(const weft_layout *layout, pid_t pid) {
    return has_pid_file(layout, pid) && (!layout->aiwg || access(layout->endpoint, F_OK) == 0);
}

bool weft__daemon_is_stopping(const weft_layout *layout, pid_t pid) {
    return layout->aiwg ? has_pid_file(layout, pid) : access(layout->endpoint, F_OK) == 0;
}

/* Open first, look then: a process that still holds the lock is the one we opened. */
int weft__daemon_process(const weft_layout *layout, pid_t pid) {
    pid_t holder;
    int fd = (int) syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return -errno;
    if (weft__daemon_holder(layout, &holder) == 1 && holder == pid)
        return fd;
    close(fd);
    return -ESRCH;
}

int weft__daemon_wait_end(int process, int64_t timeout_ms) {
    struct pollfd fd = {.fd = process, .events = POLLIN};
    return poll_until(&fd, 1, weft__clock_ns() + timeout_ms * 1000000);
}

/* fds: its process, and changes of the folder that the pid file appears in. */
static int watch_ready(const weft_layout *layout, pid_t pid, struct pollfd fds[2], int64_t until_ns) {
    char events[4096];
    while (!weft__daemon_is_ready(layout, pid)) {
        int r = poll_until(fds, 2, until_ns);
        if (r <= 0)
            return r < 0 ? r : -ETIMEDOUT;
        if (fds[0].revents)
            return 0;
        if (read(fds[1].fd, events, sizeof events) < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
    }
    return 1;
}

int weft__daemon_wait_ready(const weft_layout *layout, pid_t pid, int64_t timeout_ms) {
    int64_t until_ns = weft__clock_ns() + timeout_ms * 1000000;
    if (pid == 0)
        return 1; /* nothing to watch it by */
    int process = weft__daemon_process(layout, pid);
    if (process < 0)
        return process == -ESRCH ? 0 : process;
    int changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int r = changes < 0 || inotify_add_watch(changes, layout->pid_folder, IN_MOVED_TO) < 0 ? -errno : 0;
    if (r == 0)
        r = watch_ready(layout, pid, (struct pollfd[]){{.fd = process, .events = POLLIN}, {.fd = changes, .events = POLLIN}},
                        until_ns);
    if (changes >= 0)
        close(changes);
    close(process);
    return r;
}
