/* Programs under a guard, as the daemon sees them: one connection to the guard, one descriptor that says when the guard
 * itself has gone. The guard does the work (guard.c); what is decided here is only what to believe when it dies first. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "buf.h"
#include "guard.h"
#include "guard_image.h"
#include "guards.h"
#include "watch.h"

#define GRACE_MS 5000
/* Linux does not start a program with more arguments and environment than this, unless the stack's limit is raised: a
 * quarter of 8 MiB. The kernel says what really is too much. */
#define MAX_ORDER (8u << 20)
/* What a guard may take to kill everything, beyond the grace time. One that takes longer was stopped, or is being traced. */
#define GUARD_MS 1500

/* This program, also when another version has been put in its place; and the image, as the child sees it. */
#define OWN_FILE "/proc/self/exe"
#define IMAGE_FILE "/proc/self/fd/5"
_Static_assert(WEFT_GUARD_SELF == 5, "IMAGE_FILE names it");

/* waitid(P_PIDFD) is newer than some headers. */
#define BY_PIDFD ((idtype_t) 3)

extern char **environ;

struct weft_process {
    weft_loop *loop;
    const weft_alloc *alloc;
    void *ctx;
    void (*on_start)(void *ctx, pid_t pid);
    void (*on_end)(void *ctx, const weft_process_end *end);
    pid_t guard; /* not collected before on_end or free: the number stays its own */
    weft_guard_entry entry;
    pid_t group; /* the program's, before it begins */
    pid_t program;
    int control; /* -1: the guard has gone */
    int pidfd;
    weft_watch *notes; /* on control */
    weft_watch *gone;  /* on pidfd */
    bool start_told, end_known, sweeping;
    weft_timer late;  /* the guard should have ended everything by then */
    weft_timer sweep; /* the guard was killed: the next round against what it guarded */
    weft_guard_rounds rounds;
    int64_t grace_ms;
    weft_process_end end;
};

/* ---- what we were started with ---- */

/* The one thing here that belongs to the whole process, as umask and limits do. */
static struct {
    bool known;
    mode_t umask;
    struct rlimit files;
} found;

void weft__process_remember(void) {
    found.known = true;
    found.umask = umask(077);
    umask(found.umask);
    if (getrlimit(RLIMIT_NOFILE, &found.files) < 0)
        found.files = (struct rlimit){1024, 1024};
}

mode_t weft__process_umask(void) {
    if (!found.known)
        weft__process_remember();
    return found.umask;
}

/* ---- the order ---- */

static size_t count_strings(const char *const *list) {
    size_t count = 0;
    while (list && list[count])
        count++;
    return count;
}

static int put_order_text(weft_buf *buf, const weft_alloc *alloc, const char *text) {
    size_t size = strlen(text) + 1;
    return size > MAX_ORDER - weft__buf_len(buf) ? -E2BIG : weft__buf_put(buf, alloc, text, size);
}

static bool list_sets_variable(const char *const *list, const char *variable) {
    size_t name = strcspn(variable, "=") + 1;
    for (; list && *list; list++)
        if (strncmp(*list, variable, name) == 0)
            return true;
    return false;
}

/* Ours, but for the variables that the program's own list names, and the mark by which a later daemon finds what survived
 * us. */
static int put_env(weft_buf *buf, const weft_process_opts *opts, uint32_t *ret_count) {
    const weft_alloc *alloc = opts->alloc;
    const char *const *own = opts->env;
    bool bare = opts->bounds && opts->bounds->bare;
    const char *mark[] = {weft__guards_mark(), NULL};
    uint32_t count = *mark ? 1 : 0;
    int r = *mark ? put_order_text(buf, alloc, *mark) : 0;
    for (char **each = environ; r == 0 && !bare && *each; each++)
        if (!list_sets_variable(own, *each) && !list_sets_variable(mark, *each)) {
            r = put_order_text(buf, alloc, *each);
            count++;
        }
    for (; r == 0 && own && *own; own++)
        if (!list_sets_variable(mark, *own)) {
            r = put_order_text(buf, alloc, *own);
            count++;
        }
    *ret_count = count;
    return r;
}

static int write_order(const weft_process_opts *opts, weft_buf *buf) {
    const char *const *confined = opts->bounds ? opts->bounds->confined : NULL;
    weft_guard_order head = {
        .files_soft = found.files.rlim_cur,
        .files_hard = found.files.rlim_max,
        .grace_ms = opts->grace_ms > 0 ? opts->grace_ms : GRACE_MS,
        .umask = (uint32_t) found.umask,
        .terminal = opts->terminal != NULL,
        .arg_count = (uint32_t) count_strings(opts->argv),
        .confine_count = (uint32_t) count_strings(confined),
        .max_data = opts->bounds ? opts->bounds->max_data : 0,
        .max_file = opts->bounds ? opts->bounds->max_file : 0,
    };
    int r = weft__buf_put(buf, opts->alloc, &head, sizeof head);
    if (r == 0)
        r = put_order_text(buf, opts->alloc, opts->folder ? opts->folder : ".");
    for (const char *const *arg = opts->argv; r == 0 && *arg; arg++)
        r = put_order_text(buf, opts->alloc, *arg);
    if (r == 0)
        r = put_env(buf, opts, &head.env_count);
    for (const char *const *path = confined; r == 0 && path && *path; path++)
        r = put_order_text(buf, opts->alloc, *path);
    if (r == 0)
        memcpy(weft__buf_head(buf), &head, sizeof head);
    return r;
}

/* ret: a descriptor of a file in memory. */
static int make_order(const weft_process_opts *opts, int *ret) {
    weft_buf buf = {0};
    int r = write_order(opts, &buf);
    int fd = r == 0 ? memfd_create("weft-order", MFD_CLOEXEC) : -1;
    if (r == 0 && fd < 0)
        r = -errno;
    for (size_t done = 0, len = weft__buf_len(&buf); r == 0 && done < len;) {
        ssize_t n = write(fd, weft__buf_head(&buf) + done, len - done);
        if (n < 0 && errno != EINTR)
            r = -errno;
        done += n > 0 ? (size_t) n : 0;
    }
    weft__buf_done(&buf, opts->alloc);
    if (r < 0 && fd >= 0)
        close(fd);
    if (r == 0)
        *ret = fd;
    return r;
}

/* ---- descriptors ---- */

/* Our ends first. STDIN, STDOUT and STDERR are numbered as the program sees them. */
enum { CONTROL = 3, ORDER = 4, PLACES = 5 };
typedef struct plumbing {
    int ours[PLACES], theirs[PLACES]; /* -1: none */
} plumbing;

static void close_all(int fds[PLACES]) {
    for (int i = 0; i < PLACES; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* Out of the way of the numbers that the guard's will get: a daemon with a closed stdin would have one of these there. */
static int lift_fd(int *fd) {
    if (*fd < 0 || *fd >= WEFT_GUARD_FDS)
        return 0;
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, WEFT_GUARD_FDS);
    if (high < 0)
        return -errno;
    close(*fd);
    *fd = high;
    return 0;
}

static int connect_place(plumbing *p, int place) {
    int ends[2];
    int r = place == CONTROL ? socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) : pipe2(ends, O_CLOEXEC);
    if (r < 0)
        return -errno;
    p->ours[place] = ends[place == STDIN_FILENO];
    p->theirs[place] = ends[place != STDIN_FILENO];
    /* Only ours: a program does not expect descriptors that may say EAGAIN. */
    fcntl(p->ours[place], F_SETFL, fcntl(p->ours[place], F_GETFL) | O_NONBLOCK);
    r = lift_fd(&p->ours[place]);
    return r < 0 ? r : lift_fd(&p->theirs[place]);
}

/* The program's end of a terminal. It must not become ours, should we have none. */
static int open_terminal_end(int ours) {
    char path[64];
    int flags = O_RDWR | O_NOCTTY | O_CLOEXEC;
    int fd = ioctl(ours, TIOCGPTPEER, flags);
    if (fd < 0 && errno != EMFILE && errno != ENFILE && ptsname_r(ours, path, sizeof path) == 0)
        fd = open(path, flags); /* a filter of system calls may not know the better way */
    return fd < 0 ? -errno : fd;
}

/* What the program writes comes as it is: a newline without a carriage return before it. What is typed is UTF-8. */
static int set_terminal(int ours, int theirs, const weft_process_size *size) {
    struct winsize window = {.ws_col = size->cols, .ws_row = size->rows};
    struct termios how;
    if (tcgetattr(theirs, &how) < 0)
        return -errno;
    how.c_oflag &= ~(tcflag_t) ONLCR;
    how.c_iflag |= IUTF8;
    return tcsetattr(theirs, TCSANOW, &how) < 0 || ioctl(ours, TIOCSWINSZ, &window) < 0 ? -errno : 0;
}

/* One terminal in three places. */
static int connect_terminal(plumbing *p, const weft_process_size *size) {
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    p->ours[0] = fd;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    int r = unlockpt(fd) < 0 ? -errno : open_terminal_end(fd);
    if (r < 0)
        return r;
    p->theirs[0] = r;
    r = set_terminal(fd, p->theirs[0], size);
    for (int i = 1; r == 0 && i < 3; i++)
        if ((p->theirs[i] = fcntl(p->theirs[0], F_DUPFD_CLOEXEC, WEFT_GUARD_FDS)) < 0)
            r = -errno;
    if (r == 0)
        r = lift_fd(&p->ours[0]);
    return r < 0 ? r : lift_fd(&p->theirs[0]);
}

static int lay_pipes(const weft_process_opts *opts, plumbing *ret) {
    for (int i = 0; i < PLACES; i++)
        ret->ours[i] = ret->theirs[i] = -1;
    int r = opts->terminal ? connect_terminal(ret, opts->terminal) : 0;
    for (int place = opts->terminal ? CONTROL : 0; r == 0 && place < ORDER; place++)
        r = connect_place(ret, place);
    if (r == 0)
        r = make_order(opts, &ret->theirs[ORDER]);
    if (r == 0)
        r = lift_fd(&ret->theirs[ORDER]);
    if (r < 0) {
        close_all(ret->ours);
        close_all(ret->theirs);
    }
    return r;
}

/* ---- starting the guard ---- */

static int set_files(posix_spawn_file_actions_t *files, const plumbing *p, int image) {
    static const int numbers[PLACES] = {0, 1, 2, WEFT_GUARD_CONTROL, WEFT_GUARD_ORDER};
    int r = 0;
    for (int i = 0; r == 0 && i < PLACES; i++)
        r = posix_spawn_file_actions_adddup2(files, p->theirs[i], numbers[i]);
    if (r == 0 && image >= 0)
        r = posix_spawn_file_actions_adddup2(files, image, WEFT_GUARD_SELF);
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(files, WEFT_GUARD_FDS);
    return r;
}

/* A session of its own, so that neither a terminal nor a signal to our group reaches it; every signal blocked before its
 * first instruction. */
static int set_guard_attributes(posix_spawnattr_t *attr) {
    sigset_t all;
    sigfillset(&all);
    int r = posix_spawnattr_setsigmask(attr, &all);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(attr, &all);
    if (r == 0)
        r = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    return r;
}

/* From a file, or from the image if there is one. The program's name among the arguments is for people who look at the list
 * of processes. */
static int spawn_from(const char *file, int image, const weft_process_opts *opts, const plumbing *p, pid_t *ret) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    const char *argv[] = {"weft", "__guard", opts->argv[0], NULL};
    int r = posix_spawn_file_actions_init(&files);
    if (r)
        return -r;
    r = posix_spawnattr_init(&attr);
    if (r == 0) {
        r = set_files(&files, p, image);
        if (r == 0)
            r = set_guard_attributes(&attr);
        if (r == 0)
            r = posix_spawn(ret, file, &files, &attr, (char *const *) (uintptr_t) argv, environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    return -r;
}

/* Not because something is short just now: the kernel does not want to run it, whatever the reason. */
static bool is_refusal(int r) {
    return r < 0 && r != -EAGAIN && r != -ENOMEM && r != -EMFILE && r != -ENFILE;
}

/* A program that is "this one", by the name OWN_FILE, is so only below a guard that is this one too. */
static int spawn_guard(const weft_process_opts *opts, const plumbing *p, pid_t *ret) {
    int image = opts->guard || strcmp(opts->argv[0], OWN_FILE) == 0 ? -ENOENT : weft__guard_image(WEFT_GUARD_FDS);
    if (image >= 0) {
        int r = spawn_from(IMAGE_FILE, image, opts, p, ret);
        if (!is_refusal(r))
            return r;
        weft__guard_image_refuse();
    }
    return spawn_from(opts->guard ? opts->guard : OWN_FILE, -1, opts, p, ret);
}

/* ---- what the guard says ---- */

static void take_note(weft_process *process, const weft_guard_note *note) {
    weft_process_end *end = &process->end;
    if (note->kind == WEFT_GUARD_FORKED || note->kind == WEFT_GUARD_STARTED) {
        process->group = note->value;
        process->program = note->kind == WEFT_GUARD_STARTED ? note->value : 0;
        return;
    }
    process->end_known = true;
    if (note->kind != WEFT_GUARD_ENDED) {
        end->error = -note->value;
        end->folder = note->kind == WEFT_GUARD_NO_FOLDER;
    } else if (WIFEXITED(note->value))
        end->exit_code = WEXITSTATUS(note->value);
    else
        end->signal = WTERMSIG(note->value);
}

static void take_notes(weft_process *process) {
    weft_guard_note note;
    ssize_t n;
    while ((n = recv(process->control, &note, sizeof note, MSG_DONTWAIT)) == sizeof note)
        take_note(process, &note);
    if (n >= 0 || (errno != EAGAIN && errno != EINTR))
        weft__watch_set(process->notes, 0); /* closed; the pidfd will say that it has gone */
}

/* true: somebody was told, who may have freed the process. */
static bool tell_start(weft_process *process) {
    if (process->program <= 0 || process->start_told)
        return false;
    process->start_told = true;
    if (!process->on_start)
        return false;
    process->on_start(process->ctx, process->program);
    return true;
}

static void on_notes(void *ctx, unsigned what) {
    (void) what;
    take_notes(ctx);
    tell_start(ctx);
}

/* ---- the end ---- */

static void let_go_of_guard(weft_process *process) {
    weft__timer_stop(process->loop, &process->late);
    process->notes = weft__watch_free(process->notes);
    process->gone = weft__watch_free(process->gone);
    close(process->control);
    close(process->pidfd);
    process->control = process->pidfd = -1;
}

/* The guard has died without a word: somebody killed it. */
static void assume_end(weft_process *process, int guard_signal) {
    if (process->group > 0) {
        process->end.signal = guard_signal ? guard_signal : SIGKILL;
    } else
        process->end.error = -EIO;
}

static void end_sweep(weft_process *process) {
    weft__timer_stop(process->loop, &process->sweep);
    if (process->sweeping)
        weft_loop_release(process->loop);
    process->sweeping = false;
}

/* What it guarded has become our child, and is killed here in rounds. The end is told when nothing is left. */
static void sweep_due(weft_timer *timer) {
    weft_process *process = WEFT_CONTAINER(timer, weft_process, sweep);
    if (weft__guards_kill_orphans() > 0) {
        weft__guard_rounds_count(&process->rounds, 1);
        weft__timer_set(process->loop, &process->sweep, weft__loop_fresh_now(process->loop) + process->rounds.wait_ms);
        return;
    }
    end_sweep(process);
    process->on_end(process->ctx, &process->end);
}

/* A process that was never our child, because we are no subreaper, has lost the program's group at least. */
static void start_sweep(weft_process *process) {
    if (process->group > 0)
        kill(-process->group, SIGKILL);
    process->sweeping = true;
    weft_loop_hold(process->loop);
    sweep_due(&process->sweep);
}

static void on_gone(void *ctx, unsigned what) {
    weft_process *process = ctx;
    siginfo_t info = {0};
    (void) what;
    take_notes(process);
    if (tell_start(process))
        return; /* the watch calls again, unless it was freed */
    if (waitid(BY_PIDFD, (id_t) process->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
        return;
    /* A guard whose keeper was killed may have told the end already, and is our child. */
    bool lost = !process->end_known || info.si_code != CLD_EXITED;
    if (!process->end_known)
        assume_end(process, info.si_code == CLD_EXITED ? 0 : info.si_status);
    let_go_of_guard(process);
    weft__guards_remove(&process->entry);
    weft__guards_collect();
    if (lost)
        start_sweep(process);
    else
        process->on_end(process->ctx, &process->end);
}

/* It should have ended everything long ago: it is in somebody's hands. What it guarded becomes ours. */
static void guard_late(weft_timer *timer) {
    kill(WEFT_CONTAINER(timer, weft_process, late)->guard, SIGKILL);
}

/* ---- the process ---- */

static int watch_guard(weft_process *process) {
    process->pidfd = (int) syscall(SYS_pidfd_open, process->guard, 0);
    if (process->pidfd < 0)
        return -errno;
    int r = weft__watch_new(process->loop, process->control, on_notes, process, &process->notes);
    if (r >= 0)
        r = weft__watch_new(process->loop, process->pidfd, on_gone, process, &process->gone);
    if (r >= 0)
        r = weft__watch_set(process->notes, WEFT_WATCH_READ);
    return r < 0 ? r : weft__watch_set(process->gone, WEFT_WATCH_READ);
}

static int begin_process(weft_process *process, const weft_process_opts *opts, plumbing *p) {
    int r = spawn_guard(opts, p, &process->guard);
    close_all(p->theirs);
    process->control = p->ours[CONTROL];
    if (r < 0) {
        close_all(p->ours);
        return r;
    }
    weft__guards_add(process->loop, &process->entry, process->guard);
    r = watch_guard(process);
    if (r < 0) {
        process->notes = weft__watch_free(process->notes);
        process->gone = weft__watch_free(process->gone);
        if (process->pidfd >= 0)
            close(process->pidfd);
        close_all(p->ours);
        weft__guards_leave(&process->entry);
    }
    return r;
}

int weft__process_start(const weft_process_opts *opts, weft_process **ret, int ret_fds[3]) {
    plumbing p;
    if (!opts->argv || !opts->argv[0])
        return -EINVAL;
    weft__guards_collect();
    if (!found.known)
        weft__process_remember();
    weft_process *process = weft__zalloc(opts->alloc, sizeof *process);
    if (!process)
        return -ENOMEM;
    *process = (weft_process){
        .loop = opts->loop,
        .alloc = opts->alloc,
        .ctx = opts->ctx,
        .on_start = opts->on_start,
        .on_end = opts->on_end,
        .control = -1,
        .pidfd = -1,
        .grace_ms = opts->grace_ms > 0 ? opts->grace_ms : GRACE_MS,
        .end = {.exit_code = -1},
    };
    weft__timer_init(&process->late, guard_late);
    weft__timer_init(&process->sweep, sweep_due);
    int r = lay_pipes(opts, &p);
    if (r == 0)
        r = begin_process(process, opts, &p);
    if (r < 0) {
        weft__free(opts->alloc, process);
        return r;
    }
    memcpy(ret_fds, p.ours, 3 * sizeof *ret_fds);
    *ret = process;
    return 0;
}

void weft__process_stop(weft_process *process, bool force) {
    char command = force ? WEFT_GUARD_KILL : WEFT_GUARD_STOP;
    if (process->control < 0)
        return;
    (void) send(process->control, &command, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    kill(process->guard, SIGCONT); /* in case somebody stopped it */
    int64_t due = weft__loop_fresh_now(process->loop) + GUARD_MS + (force ? 0 : process->grace_ms);
    if (due < process->late.due)
        weft__timer_set(process->loop, &process->late, due);
}

weft_process *weft__process_free(weft_process *process) {
    if (!process)
        return NULL;
    end_sweep(process);
    if (process->control >= 0) {
        kill(process->guard, SIGCONT);
        let_go_of_guard(process);
        weft__guards_leave(&process->entry);
    }
    return weft__free(process->alloc, process);
}
