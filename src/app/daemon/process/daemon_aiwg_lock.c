/* The lock of AIWG's own daemon: a file that is created exclusively and holds its number. Its daemon does not start while
 * the file is there; we do, if the process is gone or is no daemon of this folder, and nobody answers at the socket. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon.h"
#include "private_file.h"

#define LOCK_TRIES 5
/* Between creating it and writing its number, AIWG's daemon does nothing else. */
#define NAME_TRIES 20
#define NAME_STEP_MS 10
/* From its start until it looks for the lock. */
#define LEAVE_TRIES 20
#define LEAVE_STEP_MS 50
/* The program that AIWG's daemon is, in its command line. */
#define DAEMON_MAIN "daemon-main"

static bool is_in_this_folder(pid_t pid) {
    char path[64];
    struct stat theirs, ours;
    snprintf(path, sizeof path, "/proc/%ld/cwd", (long) pid);
    return stat(path, &theirs) == 0 && stat(".", &ours) == 0 && theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev;
}

/* The command line: texts, each with its NUL. */
static size_t read_command(pid_t pid, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long) pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t) n : 0;
}

static bool runs_daemon_main(pid_t pid) {
    char text[4096];
    size_t len = read_command(pid, text, sizeof text);
    return len && memmem(text, len, DAEMON_MAIN, strlen(DAEMON_MAIN));
}

/* Its number; 0: it has none, also after a moment. */
static pid_t locked_by(const weft_layout *layout) {
    char text[32];
    for (int i = 0; i < NAME_TRIES; i++) {
        int n = weft__private_read(layout->foreign_lock, text, sizeof text);
        if (n != 0)
            return n > 0 ? (pid_t) strtol(text, NULL, 10) : 0;
        nanosleep(&(struct timespec){.tv_nsec = NAME_STEP_MS * 1000000L}, NULL);
    }
    return 0;
}

static pid_t number_in(const char *path) {
    char text[32];
    return weft__private_read(path, text, sizeof text) > 0 ? (pid_t) strtol(text, NULL, 10) : 0;
}

/* One that has ended and was not waited for yet has no folder. */
static bool is_aiwgs(pid_t pid) {
    return pid > 0 && pid != getpid() && is_in_this_folder(pid) && runs_daemon_main(pid);
}

/* Is it node with the program, and not an editor that has the program's text open? */
static bool is_node_with_daemon_main(pid_t pid) {
    char text[4096];
    size_t len = read_command(pid, text, sizeof text), at = 0;
    const char *name = strrchr(text, '/');
    name = name ? name + 1 : text;
    if (strncmp(name, "node", 4) != 0 && strcmp(name, "bun") != 0)
        return false;
    do
        at += strlen(text + at) + 1;
    while (at < len && text[at] == '-');
    const char *program = at < len ? strrchr(text + at, '/') : NULL;
    program = program ? program + 1 : at < len ? text + at : "";
    return strncmp(program, DAEMON_MAIN, strlen(DAEMON_MAIN)) == 0;
}

/* One whose files somebody has removed is found among our processes. 0: there is none. */
static pid_t find_aiwgs(void) {
    DIR *processes = opendir("/proc");
    pid_t found = 0;
    for (const struct dirent *entry; processes && !found && (entry = readdir(processes));) {
        pid_t pid = (pid_t) strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != getpid() && is_in_this_folder(pid) && is_node_with_daemon_main(pid))
            found = pid;
    }
    if (processes)
        closedir(processes);
    return found;
}

/* AIWG's daemon of this folder; 0: none runs, and what there is was left behind. One in a container is known by its socket
 * alone: -1. Any of its files may have been removed. */
static pid_t living_holder(const weft_layout *layout) {
    pid_t pid = access(layout->foreign_lock, F_OK) == 0 ? locked_by(layout) : 0;
    if (!is_aiwgs(pid))
        pid = number_in(layout->pid);
    if (is_aiwgs(pid) || (pid = find_aiwgs()) > 0)
        return pid;
    return weft__daemon_answers(layout) ? -1 : 0;
}

static int create_lock(const weft_layout *layout) {
    char text[32];
    int fd = open(layout->foreign_lock, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int n = snprintf(text, sizeof text, "%ld", (long) getpid());
    int r = write(fd, text, (size_t) n) == n ? 0 : -EIO;
    close(fd);
    return r;
}

/* There was no lock: one that runs all the same had its lock removed, or is about to find ours and to end. Who listens has
 * been there for longer. */
static pid_t lasting_holder(const weft_layout *layout) {
    pid_t holder = living_holder(layout);
    for (int i = 0; holder > 0 && i < LEAVE_TRIES; i++) {
        nanosleep(&(struct timespec){.tv_nsec = LEAVE_STEP_MS * 1000000L}, NULL);
        holder = living_holder(layout);
    }
    return holder;
}

int weft__daemon_aiwg_lock(const weft_layout *layout, pid_t *ret_holder) {
    int r = layout->foreign_lock ? -EEXIST : 0;
    for (int i = 0; i < LOCK_TRIES && r == -EEXIST; i++) {
        r = create_lock(layout);
        if (r < 0 && r != -EEXIST)
            break;
        pid_t holder = r < 0 ? living_holder(layout) : lasting_holder(layout);
        bool is_ours = r == 0;
        if (holder ? is_ours : !is_ours)
            unlink(layout->foreign_lock);
        if (holder) {
            *ret_holder = holder > 0 ? holder : 0;
            return -EBUSY;
        }
    }
    return r;
}

/* As a start does, but for the socket, which keeps nobody from starting. */
void weft__daemon_aiwg_clear(const weft_layout *layout) {
    int fd;
    if (!layout->foreign_lock || weft__daemon_lock(layout, &fd) < 0)
        return;
    if (living_holder(layout) == 0) {
        unlink(layout->foreign_lock);
        if (!is_aiwgs(number_in(layout->pid)))
            unlink(layout->pid);
    }
    weft__daemon_unlock(fd);
}

static bool names_us(const char *path) {
    return number_in(path) == getpid();
}

bool weft__daemon_aiwg_relock(const weft_layout *layout) {
    return layout->foreign_lock && access(layout->foreign_lock, F_OK) < 0 && create_lock(layout) >= 0;
}

void weft__daemon_aiwg_unlock(const weft_layout *layout) {
    if (layout->foreign_lock && names_us(layout->foreign_lock))
        unlink(layout->foreign_lock);
}

void weft__daemon_forget_own_pid(const weft_layout *layout) {
    if (names_us(layout->pid))
        unlink(layout->pid);
}
