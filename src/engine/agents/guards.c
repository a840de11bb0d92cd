/* Guards that live, guards that are going, and processes that have lost theirs. See guards.h. */
#include "guards.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard.h"
#include "list.h"
#include "watch.h"

/* Guards of freed processes that were not yet collected. They live for some milliseconds. */
#define MAX_LEAVING 256
/* Children that were there before us: those of a shell that became the daemon by exec. More of them are not remembered, and
 * then nothing without the mark is killed. */
#define MAX_FOREIGN 64
#define MAX_MARK 128
/* Few run at once; whoever starts them has a queue. */
#define MAX_HELPERS 64
/* A guard that was stopped once may have been stopped by mistake. One that is stopped again and again does no work. */
#define MAX_STOPS 3
/* The kernel gives out at most so much environment: a quarter of the largest stack that is usual. */
#define MAX_ENVIRON (8u << 20)
/* Rounds of killing while somebody waits: some dozen milliseconds, in which any number of processes goes. */
#define WAITED_ROUNDS 32
/* How often the processes left over from an earlier daemon are looked for; each time only those born meanwhile are left. */
#define LEFTOVER_ROUNDS 64
/* How long a killed process may take to end. One that the kernel holds takes longer, and is not waited for. */
#define LEFTOVER_MS 1000

static struct {
    bool adopted;
    char mark[MAX_MARK];
    pid_t foreign[MAX_FOREIGN];
    size_t foreign_count;
    pid_t leaving[MAX_LEAVING];
    size_t leaving_count;
    weft_link living;
    int children; /* an eventfd: SIGCHLD came */
    weft_watch *watch;
} guards = {.children = -1};

/* Of any thread. The lock is held while one is started and while orphans are killed, so that each is on the list before
 * anybody looks. */
static struct {
    pthread_mutex_t lock;
    pid_t list[MAX_HELPERS];
    size_t count;
} helpers = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the mark ---- */

static bool env_has_mark(const char *text, size_t len, const char *mark) {
    size_t size = strlen(mark) + 1;
    for (const char *at = text; (at = memmem(at, len - (size_t) (at - text), mark, size)); at++)
        if (at == text || at[-1] == '\0')
            return true;
    return false;
}

/* The environment that the program of a process was started with. Unreadable (another user's): it bears nothing. */
static bool process_bears(const char *pid, const char *mark) {
    char path[64], *text = NULL;
    size_t len = 0, cap = 0;
    ssize_t n = 0;
    snprintf(path, sizeof path, "/proc/%.16s/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    do {
        len += (size_t) n;
        cap = cap ? cap * 2 : 16384;
        char *more = cap <= MAX_ENVIRON ? realloc(text, cap) : NULL;
        if (!more)
            break;
        text = more;
    } while ((n = read(fd, text + len, cap - len)) > 0);
    close(fd);
    bool yes = text && env_has_mark(text, len, mark);
    free(text);
    return yes;
}

static bool is_ancestor(pid_t pid) {
    char path[64], text[512];
    for (pid_t at = getpid(); at > 1;) {
        if (at == pid)
            return true;
        snprintf(path, sizeof path, "/proc/%ld/stat", (long) at);
        int fd = open(path, O_RDONLY | O_CLOEXEC), parent = 0;
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            close(fd);
        text[n > 0 ? n : 0] = '\0';
        const char *rest = strrchr(text, ')');
        if (!rest || sscanf(rest, ") %*c %d", &parent) != 1)
            return false;
        at = parent;
    }
    return false;
}

/* The process is held by a descriptor before it is looked at, so that nobody who got its number meanwhile is killed. An
 * agent may have started us, and then we have its mark: we and our ancestors stay. */
static bool kill_if_marked(const char *name, const char *mark) {
    pid_t pid = (pid_t) atoi(name);
    int fd = (int) syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return false;
    bool killed =
        process_bears(name, mark) && !is_ancestor(pid) && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
    if (killed) /* it ends soon, not at once: the next round must not find it again */
        (void) poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, LEFTOVER_MS);
    close(fd);
    return killed;
}

static int kill_marked(const char *mark) {
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int count = 0;
    if (!dir)
        return -errno;
    while ((entry = readdir(dir)))
        count += isdigit((unsigned char) entry->d_name[0]) && kill_if_marked(entry->d_name, mark);
    closedir(dir);
    return count;
}

/* Until nobody is left who bears the mark: what is killed may have forked before. */
static int kill_leftovers(const char *mark) {
    int total = 0, n = 1;
    for (int i = 0; i < LEFTOVER_ROUNDS && n > 0; i++) {
        n = kill_marked(mark);
        total += n > 0 ? n : 0;
    }
    return n < 0 ? n : total;
}

/* ---- becoming their parent ---- */

static void on_sigchld(int number) {
    int saved = errno;
    (void) number;
    (void) !write(guards.children, &(uint64_t){1}, sizeof(uint64_t));
    errno = saved;
}

static bool note_foreign(void *ctx, pid_t child) {
    (void) ctx;
    if (guards.foreign_count < MAX_FOREIGN)
        guards.foreign[guards.foreign_count++] = child;
    return true;
}

static int hear_of_children(void) {
    struct sigaction action = {.sa_handler = on_sigchld, .sa_flags = SA_RESTART};
    guards.children = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (guards.children < 0)
        return -errno;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGCHLD, &action, NULL) < 0 ? -errno : 0;
}

int weft__guards_adopt(const char *mark) {
    if (strlen(mark) >= sizeof guards.mark)
        return -ENAMETOOLONG;
    if (!guards.adopted && weft__tree_kill(note_foreign, NULL) < 0)
        guards.foreign_count = MAX_FOREIGN; /* who was there is not known */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return -errno;
    int r = guards.children < 0 ? hear_of_children() : 0;
    if (r < 0)
        return r;
    snprintf(guards.mark, sizeof guards.mark, "%s", mark);
    guards.adopted = true;
    return kill_leftovers(mark);
}

const char *weft__guards_mark(void) {
    return guards.adopted ? guards.mark : NULL;
}

/* ---- orphans ---- */

static bool is_pid_in_list(const pid_t *list, size_t count, pid_t pid) {
    for (size_t i = 0; i < count; i++)
        if (list[i] == pid)
            return true;
    return false;
}

static bool is_living_guard(pid_t pid) {
    for (weft_link *at = guards.living.next; at && at != &guards.living; at = at->next)
        if (WEFT_CONTAINER(at, weft_guard_entry, link)->pid == pid)
            return true;
    return false;
}

/* Where there were children before us, an orphan may be theirs: then only the mark says that it is an agent's. */
static bool is_spared(void *ctx, pid_t child) {
    char name[24];
    (void) ctx;
    if (is_living_guard(child) || is_pid_in_list(guards.leaving, guards.leaving_count, child) ||
        is_pid_in_list(guards.foreign, guards.foreign_count, child) || is_pid_in_list(helpers.list, helpers.count, child))
        return true;
    snprintf(name, sizeof name, "%ld", (long) child);
    return guards.foreign_count && !process_bears(name, guards.mark);
}

int weft__guards_kill_orphans(void) {
    if (!guards.adopted)
        return 0;
    pthread_mutex_lock(&helpers.lock);
    int r = weft__tree_kill(is_spared, NULL);
    pthread_mutex_unlock(&helpers.lock);
    return r;
}

static void kill_orphans_now(void) {
    for (int i = 0; i < WAITED_ROUNDS && weft__guards_kill_orphans() > 0; i++)
        poll(NULL, 0, 1);
}

/* ---- helpers ---- */

int weft__guards_start_helper(int (*start)(void *ctx, pid_t *ret), void *ctx, pid_t *ret) {
    pthread_mutex_lock(&helpers.lock);
    int r = helpers.count < MAX_HELPERS ? start(ctx, ret) : -EAGAIN;
    if (r >= 0)
        helpers.list[helpers.count++] = *ret;
    pthread_mutex_unlock(&helpers.lock);
    return r;
}

void weft__guards_helper_gone(pid_t pid) {
    pthread_mutex_lock(&helpers.lock);
    for (size_t i = 0; i < helpers.count; i++)
        if (helpers.list[i] == pid) {
            helpers.list[i] = helpers.list[--helpers.count];
            break;
        }
    pthread_mutex_unlock(&helpers.lock);
}

/* ---- guards that are going ---- */

void weft__guards_collect(void) {
    size_t kept = 0;
    bool killed = false;
    for (size_t i = 0; i < guards.leaving_count; i++) {
        int status = 0;
        pid_t r = waitpid(guards.leaving[i], &status, WNOHANG);
        if (r == 0)
            guards.leaving[kept++] = guards.leaving[i];
        killed |= r > 0 && WIFSIGNALED(status);
    }
    guards.leaving_count = kept;
    if (killed)
        kill_orphans_now();
}

/* A loop that may be freed at once cannot watch it, so it is collected when something is done with processes next, or when
 * SIGCHLD says so; if there are too many, now. */
void weft__guards_leave(weft_guard_entry *entry) {
    pid_t pid = entry->pid;
    weft__guards_remove(entry);
    weft__guards_collect();
    if (guards.leaving_count < MAX_LEAVING)
        guards.leaving[guards.leaving_count++] = pid;
    else
        waitpid(pid, NULL, 0);
    weft__guards_collect();
}

/* ---- guards that live ---- */

static void wake_stopped_guard(weft_guard_entry *entry) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t) entry->pid, &info, WSTOPPED | WNOHANG) < 0 || info.si_pid == 0)
        return;
    kill(entry->pid, ++entry->stops > MAX_STOPS ? SIGKILL : SIGCONT);
}

static void on_children(void *ctx, unsigned what) {
    uint64_t count;
    (void) ctx, (void) what;
    (void) !read(guards.children, &count, sizeof count);
    for (weft_link *at = guards.living.next; at != &guards.living; at = at->next)
        wake_stopped_guard(WEFT_CONTAINER(at, weft_guard_entry, link));
    weft__guards_collect();
}

/* Without it, a guard that is stopped is noticed when it is told to end. */
static void watch_children(weft_loop *loop) {
    if (!guards.adopted || guards.watch || weft__watch_new(loop, guards.children, on_children, NULL, &guards.watch) < 0)
        return;
    weft__watch_quiet(guards.watch);
    if (weft__watch_set(guards.watch, WEFT_WATCH_READ) < 0)
        guards.watch = weft__watch_free(guards.watch);
}

void weft__guards_add(weft_loop *loop, weft_guard_entry *entry, pid_t pid) {
    if (!guards.living.next)
        weft__list_init(&guards.living);
    *entry = (weft_guard_entry){.pid = pid};
    weft__list_push(&guards.living, &entry->link);
    watch_children(loop);
}

/* The watch goes with the last guard, so that the loop may be freed then. */
void weft__guards_remove(weft_guard_entry *entry) {
    if (!entry->pid)
        return;
    weft__list_remove(&entry->link);
    entry->pid = 0;
    if (weft__list_empty(&guards.living))
        guards.watch = weft__watch_free(guards.watch);
}

void weft__guards_finish(int64_t within_ms) {
    int64_t until = weft__guard_now() + within_ms;
    weft__guards_collect();
    while (weft__guards_kill_orphans() > 0 || guards.leaving_count) {
        int64_t left = until - weft__guard_now();
        struct pollfd ready = {.fd = guards.children, .events = POLLIN};
        if (left <= 0)
            return;
        if (poll(&ready, 1, left < 10 ? (int) left : 10) > 0)
            (void) !read(guards.children, &(uint64_t){0}, sizeof(uint64_t));
        weft__guards_collect();
    }
}
