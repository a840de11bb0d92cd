/* The descendants of this process, by what /proc says about everybody's parent. Only a subreaper may trust it: for anybody
 * else, a process whose parent has died belongs to init and is found no more. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"

/* The kernel has no more process numbers than this (PID_MAX_LIMIT). */
#define MAX_PROCESSES (4u << 20)
#define ROUND_MIN_MS 1
#define ROUND_MAX_MS 64

typedef struct process {
    pid_t pid, parent, group;
    bool ours;
} process;

typedef struct processes {
    process *list;
    size_t count, cap;
} processes;

/* ---- listing ---- */

/* "PID (NAME) STATE PARENT GROUP ...", where NAME may hold anything, also blanks and brackets. */
static bool read_process(int proc, const char *name, process *ret) {
    char path[32], text[512];
    int parent, group;
    snprintf(path, sizeof path, "%.16s/stat", name);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false; /* it has gone meanwhile */
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest, ") %*c %d %d", &parent, &group) != 2)
        return false;
    *ret = (process){.pid = (pid_t) atoi(name), .parent = parent, .group = group};
    return true;
}

static int add_process(processes *all, process one) {
    if (all->count == all->cap) {
        size_t cap = all->cap ? all->cap * 2 : 256;
        process *list = cap <= MAX_PROCESSES ? realloc(all->list, cap * sizeof *list) : NULL;
        if (!list)
            return -ENOMEM;
        all->list = list;
        all->cap = cap;
    }
    all->list[all->count++] = one;
    return 0;
}

/* What did not fit into memory is found when the others have gone. */
static int list_processes(processes *all) {
    DIR *dir = opendir("/proc");
    if (!dir)
        return -errno;
    struct dirent *entry;
    process one;
    while ((entry = readdir(dir)))
        if (isdigit((unsigned char) entry->d_name[0]) && read_process(dirfd(dir), entry->d_name, &one) &&
            add_process(all, one) < 0)
            break;
    closedir(dir);
    return 0;
}

/* ---- the tree ---- */

static int by_pid(const void *a, const void *b) {
    pid_t left = ((const process *) a)->pid, right = ((const process *) b)->pid;
    return (left > right) - (left < right);
}

static bool is_our_process(const processes *all, pid_t pid) {
    const process *found = bsearch(&(process){.pid = pid}, all->list, all->count, sizeof *all->list, by_pid);
    return found && found->ours;
}

static void mark_children(processes *all, pid_t self, bool (*spared)(void *ctx, pid_t child), void *ctx) {
    for (size_t i = 0; i < all->count; i++)
        all->list[i].ours = all->list[i].parent == self && !(spared && spared(ctx, all->list[i].pid));
}

/* A child's number is nearly always above its parent's, so one walk upwards finds nearly all and the second sees that it
 * did. Where numbers began again from below, it takes some more. */
static void mark_descendants(processes *all) {
    qsort(all->list, all->count, sizeof *all->list, by_pid);
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < all->count; i++)
            if (!all->list[i].ours && is_our_process(all, all->list[i].parent))
                more = all->list[i].ours = true;
    }
}

/* A group is signalled whole: a fork waits for that, so that none of a group that forks and forks is missed. It holds nobody
 * else's processes, because groups lie within a session, and ours are in our session or in their own. Only our own group,
 * which one of them may have joined, is us. */
static int signal_ours(const processes *all, pid_t self, int signal) {
    int reached = 0;
    pid_t last = 0;
    bool allowed = false;
    for (size_t i = 0; i < all->count; i++) {
        const process *one = &all->list[i];
        if (!one->ours)
            continue;
        bool whole = one->group > 1 && one->group != self;
        if (!whole || one->group != last)
            allowed = kill(whole ? -one->group : one->pid, signal) == 0;
        last = whole ? one->group : 0;
        reached += allowed;
    }
    return reached;
}

int weft__guard_signal(int signal) {
    processes all = {0};
    pid_t self = getpid();
    int r = list_processes(&all);
    if (r == 0 && all.count) {
        mark_children(&all, self, NULL, NULL);
        mark_descendants(&all);
        r = signal_ours(&all, self, signal);
    }
    free(all.list);
    return r;
}

int weft__tree_kill(bool (*spared)(void *ctx, pid_t child), void *ctx) {
    processes all = {0};
    pid_t self = getpid();
    int r = list_processes(&all);
    if (r == 0 && all.count) {
        mark_children(&all, self, spared, ctx);
        mark_descendants(&all);
        r = signal_ours(&all, self, SIGKILL);
        for (size_t i = 0; i < all.count; i++)
            if (all.list[i].ours && all.list[i].parent == self)
                waitpid(all.list[i].pid, NULL, WNOHANG);
    }
    free(all.list);
    return r;
}

/* ---- rounds ---- */

int64_t weft__guard_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void weft__guard_rounds_count(weft_guard_rounds *rounds, int reached) {
    rounds->vain = reached > 0 ? 0 : rounds->vain + 1;
    rounds->wait_ms = rounds->wait_ms ? rounds->wait_ms * 2 : ROUND_MIN_MS;
    if (rounds->wait_ms > ROUND_MAX_MS)
        rounds->wait_ms = ROUND_MAX_MS;
    rounds->due = weft__guard_now() + rounds->wait_ms;
}
