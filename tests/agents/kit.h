/* What the tests of guarded programs share: where the programs are, and who of those that carry a mark still lives. */
#ifndef AGENTS_KIT_H
#define AGENTS_KIT_H

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "loop.h"

/* Nothing waits longer. Only a failure takes so long: a machine may be busy and a sanitizer slow. */
#define PATIENCE_MS 60000

static inline int64_t kit_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A program beside this one: "../weft", "agent_naughty". */
static inline const char *kit_program(const char *name, char *ret, size_t size) {
    ssize_t n = readlink("/proc/self/exe", ret, size - 64);
    ret[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(ret, '/');
    snprintf(slash ? slash + 1 : ret, 64, "%s", name);
    return ret;
}

static inline const char *kit_weft(void) {
    static char path[4096];
    return *path ? path : kit_program("../weft", path, sizeof path);
}

static inline const char *kit_naughty(void) {
    static char path[4096];
    return *path ? path : kit_program("agent_naughty", path, sizeof path);
}

/* ---- marks ---- */

/* NAUGHTY_MARK=... of this process and test; for the environment of what it starts. */
static inline const char *kit_mark(void) {
    static char mark[64];
    static unsigned count;
    snprintf(mark, sizeof mark, "NAUGHTY_MARK=%d.%u.", (int) getpid(), ++count);
    return mark;
}

static inline bool kit_has(const char *pid, const char *what, const char *mark) {
    static char text[1 << 20];
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/%s", pid, what);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t len = 0;
    ssize_t n;
    while (len < sizeof text && (n = read(fd, text + len, sizeof text - len)) > 0)
        len += (size_t) n;
    close(fd);
    return memmem(text, len, mark, strlen(mark)) != NULL;
}

/* How many processes were started with this in their environment and still live. */
static inline int kit_marked(const char *mark) {
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int count = 0;
    while (dir && (entry = readdir(dir)))
        count += isdigit((unsigned char) entry->d_name[0]) && atoi(entry->d_name) != getpid() &&
                 kit_has(entry->d_name, "environ", mark);
    if (dir)
        closedir(dir);
    return count;
}

/* How many there are when there are as many as wanted, or the time is over. They are not our children: nothing but /proc
 * tells of them, so it is looked at again and again. */
static inline int kit_wait_marked(const char *mark, int wanted, int64_t within_ms) {
    int64_t until = kit_now() + within_ms;
    int count;
    while ((count = kit_marked(mark)) != wanted && kit_now() < until)
        poll(NULL, 0, 2);
    return count;
}

/* Those that are left when all have gone, or the time is over. */
static inline int kit_wait_gone(const char *mark, int64_t within_ms) {
    return kit_wait_marked(mark, 0, within_ms);
}

/* ---- what must be the same before and after ---- */

static inline int kit_open_fds(void) {
    DIR *dir = opendir("/proc/self/fd");
    int count = -3; /* ., .. and the folder itself */
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

/* No child is left, not even a zombie. */
static inline bool kit_no_children(void) {
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

/* The same, without collecting any: guards are collected by who started them. */
static inline bool kit_all_collected(void) {
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == -1 && errno == ECHILD;
}

/* Wait until a child has ended, and leave it to be collected; at once if there is none. */
static inline void kit_await_exit(void) {
    siginfo_t info;
    while (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) == -1 && errno == EINTR)
        ;
}

/* Guards of what was freed have a moment to go. */
static inline bool kit_children_go(void) {
    int64_t until = kit_now() + PATIENCE_MS;
    while (!kit_no_children() && kit_now() < until)
        poll(NULL, 0, 1); /* no descriptor tells of children that nobody has a pidfd of */
    return kit_no_children();
}

/* ---- what waits to be read ---- */

/* The most that lies in one of this process's pipes and sockets. */
static inline int kit_unread(void) {
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    int most = 0, count;
    while (dir && (entry = readdir(dir)))
        if (isdigit((unsigned char) entry->d_name[0]) && atoi(entry->d_name) > 2 &&
            ioctl(atoi(entry->d_name), FIONREAD, &count) == 0 && count > most)
            most = count;
    if (dir)
        closedir(dir);
    return most;
}

/* So many turns of the loop, none of which waits: what is ready is taken by then, by whoever wants it. */
static inline void kit_turn(weft_loop *loop, int turns) {
    while (turns-- > 0)
        weft_loop_once(loop, false);
}

/* Run the loop until something has become true. */
#define KIT_UNTIL(loop, condition)                                                                                          \
    do {                                                                                                                    \
        int64_t kit_until = kit_now() + PATIENCE_MS;                                                                        \
        while (!(condition) && kit_now() < kit_until) {                                                                     \
            struct pollfd kit_poll = {.fd = weft_loop_fd(loop), .events = POLLIN};                                          \
            poll(&kit_poll, 1, 1); /* not longer: the condition may be about something else than the loop */                \
            weft_loop_once((loop), false);                                                                                  \
        }                                                                                                                   \
        CHECK(condition);                                                                                                   \
    } while (0)

#endif
