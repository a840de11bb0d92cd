/* One poll() for the three pipes, the process and the order to end it; see command.h. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "guards.h"

#define PIECE (64 * 1024)

/* waitid(P_PIDFD) is newer than some headers. */
#define BY_PIDFD ((idtype_t) 3)

/* RUNNING ──time, limit, cancel──▶ TERMINATED ──grace──▶ KILLED     signal_end()
 *    └──────────────────┴────exit of the program──────────┴──▶ over  */
typedef enum run_step { RUNNING, TERMINATED, KILLED } run_step;

typedef struct run {
    const weft_command *command;
    weft_command_end *end;
    pid_t pid;
    int pidfd;
    int in, out, err; /* our ends; -1: closed */
    int theirs[3];
    size_t written, errors_len;
    run_step step;
    int64_t due; /* the next step; INT64_MAX: none */
    int64_t ask; /* whether it is stuck; INT64_MAX: not any more */
    int failed;
} run;

static int64_t now_ms(void) {
    return weft__clock_ns() / 1000000;
}

/* ---- starting ---- */

static int make_pipe(int *ours, int *theirs, bool input) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ours = ends[input];
    *theirs = ends[!input];
    fcntl(*ours, F_SETFL, O_NONBLOCK);
    return 0;
}

static int make_pipes(run *r) {
    int e = 0;
    if (r->command->input.len)
        e = make_pipe(&r->in, &r->theirs[0], true);
    else if ((r->theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
        e = -errno;
    if (e == 0)
        e = make_pipe(&r->out, &r->theirs[1], false);
    return e < 0 ? e : make_pipe(&r->err, &r->theirs[2], false);
}

/* Above the standard numbers, or one dup2 below would replace what another still needs. */
static int lift_pipes(run *r) {
    for (int i = 0; i < 3; i++) {
        if (r->theirs[i] > 2)
            continue;
        int high = fcntl(r->theirs[i], F_DUPFD_CLOEXEC, 3);
        if (high < 0)
            return -errno;
        close(r->theirs[i]);
        r->theirs[i] = high;
    }
    return 0;
}

static void close_fd(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int set_files(posix_spawn_file_actions_t *files, const run *r) {
    int e = posix_spawn_file_actions_addfchdir_np(files, r->command->folder);
    for (int i = 0; e == 0 && i < 3; i++)
        e = posix_spawn_file_actions_adddup2(files, r->theirs[i], i);
    return e ? e : posix_spawn_file_actions_addclosefrom_np(files, 3);
}

static int set_command_attributes(posix_spawnattr_t *attr) {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int e = posix_spawnattr_setsigmask(attr, &none);
    if (e == 0)
        e = posix_spawnattr_setsigdefault(attr, &all);
    return e ? e : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
}

static int spawn_program(void *ctx, pid_t *ret) {
    run *r = ctx;
    const weft_command *command = r->command;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int e = posix_spawn_file_actions_init(&files);
    if (e)
        return -e;
    e = posix_spawnattr_init(&attr);
    if (e == 0) {
        e = set_files(&files, r);
        if (e == 0)
            e = set_command_attributes(&attr);
        if (e == 0)
            e = posix_spawn(ret, command->program, &files, &attr, (char *const *) (uintptr_t) command->argv,
                            (char *const *) (uintptr_t) command->env);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    return -e;
}

static int start_program_of_run(run *r) {
    int e = make_pipes(r);
    if (e == 0)
        e = lift_pipes(r);
    if (e == 0)
        e = weft__guards_start_helper(spawn_program, r, &r->pid);
    for (int i = 0; i < 3; i++)
        close_fd(&r->theirs[i]);
    if (e < 0)
        return e;
    r->pidfd = (int) syscall(SYS_pidfd_open, r->pid, 0);
    if (r->pidfd >= 0)
        return 0;
    e = -errno;
    kill(-r->pid, SIGKILL);
    waitpid(r->pid, NULL, 0);
    weft__guards_helper_gone(r->pid);
    return e;
}

/* ---- ending ---- */

/* The process is not collected yet, so the number is still its own. */
static void signal_end(run *r) {
    kill(-r->pid, r->step == RUNNING ? SIGTERM : SIGKILL);
    r->due = r->step == RUNNING ? now_ms() + WEFT_COMMAND_GRACE_MS : INT64_MAX;
    r->step = r->step == RUNNING ? TERMINATED : KILLED;
}

static void end_if_running(run *r) {
    if (r->step == RUNNING)
        signal_end(r);
}

/* ---- pipes ---- */

static void write_input(run *r) {
    weft_bytes input = r->command->input;
    ssize_t n = write(r->in, input.data + r->written, input.len - r->written);
    if (n > 0)
        r->written += (size_t) n;
    if (r->written == input.len || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_fd(&r->in);
}

/* Over the limit: throw away, or end the program. */
static void take_output(run *r, const char *data, size_t len) {
    weft_buf *output = &r->end->output;
    size_t room = r->command->max_output - weft__buf_len(output);
    if (len > room) {
        r->end->truncated = true;
        len = room;
        if (!r->command->read_on)
            end_if_running(r);
    }
    int e = weft__buf_put(output, r->command->alloc, data, len);
    if (e < 0) {
        r->failed = e;
        close_fd(&r->out);
        end_if_running(r);
    }
}

static void take_errors(run *r, const char *data, size_t len) {
    size_t room = WEFT_COMMAND_ERRORS - r->errors_len;
    len = len < room ? len : room;
    memcpy(r->end->errors + r->errors_len, data, len);
    r->errors_len += len;
}

/* false: there is nothing more for now. */
static bool read_pipe(run *r, int *fd, char *piece) {
    ssize_t n = *fd < 0 ? 0 : read(*fd, piece, PIECE);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0)
        close_fd(fd);
    else if (fd == &r->out)
        take_output(r, piece, (size_t) n);
    else
        take_errors(r, piece, (size_t) n);
    return *fd >= 0;
}

/* ---- waiting ---- */

static int wait_ms(const run *r) {
    int64_t next = r->due < r->ask ? r->due : r->ask;
    if (next == INT64_MAX)
        return -1;
    int64_t left = next - now_ms();
    return left < 0 ? 0 : left > 60000 ? 60000 : (int) left;
}

/* false: the program has ended. */
static bool wait_once(run *r, char *piece) {
    enum { PROCESS, OUT, ERR, IN, CANCEL };
    struct pollfd fds[] = {
        [PROCESS] = {r->pidfd, POLLIN, 0},
        [OUT] = {r->out, POLLIN, 0},
        [ERR] = {r->err, POLLIN, 0},
        [IN] = {r->in, POLLOUT, 0},
        [CANCEL] = {r->step == RUNNING ? r->command->cancel : -1, POLLIN, 0},
    };
    if (poll(fds, sizeof fds / sizeof fds[0], wait_ms(r)) < 0) {
        if (errno != EINTR)
            kill(-r->pid, SIGKILL);
        return errno == EINTR;
    }
    if (fds[CANCEL].revents) {
        r->end->cancelled = true;
        end_if_running(r);
    }
    if (r->ask <= now_ms()) {
        r->ask = INT64_MAX;
        r->end->stuck = r->step == RUNNING && r->command->is_stuck(r->command->ctx);
        if (r->end->stuck)
            end_if_running(r);
    }
    if (r->due <= now_ms()) {
        r->end->timed_out |= r->step == RUNNING;
        signal_end(r);
    }
    if (fds[IN].revents)
        write_input(r);
    if (fds[OUT].revents)
        read_pipe(r, &r->out, piece);
    if (fds[ERR].revents)
        read_pipe(r, &r->err, piece);
    return !fds[PROCESS].revents;
}

/* What it left behind may hold the pipes for ever; what it printed itself is in them by now. */
static void drain_pipes(run *r, char *piece) {
    while (r->out >= 0 && read_pipe(r, &r->out, piece))
        continue;
    while (r->err >= 0 && read_pipe(r, &r->err, piece))
        continue;
}

static void collect_exit(run *r) {
    siginfo_t info = {0};
    int e;
    do
        e = waitid(BY_PIDFD, (id_t) r->pidfd, &info, WEXITED);
    while (e < 0 && errno == EINTR);
    r->end->exit_code = e == 0 && info.si_code == CLD_EXITED ? info.si_status : -1;
    weft__guards_helper_gone(r->pid);
}

static int run_to_end(run *r) {
    char *piece = weft__alloc(r->command->alloc, PIECE);
    int e = piece ? start_program_of_run(r) : -ENOMEM;
    if (e == 0) {
        while (wait_once(r, piece))
            continue;
        drain_pipes(r, piece);
        collect_exit(r);
        close_fd(&r->pidfd);
        e = r->failed;
    }
    close_fd(&r->in);
    close_fd(&r->out);
    close_fd(&r->err);
    for (int i = 0; i < 3; i++)
        close_fd(&r->theirs[i]);
    weft__free(r->command->alloc, piece);
    return e;
}

int weft__command_run(const weft_command *command, weft_command_end *ret) {
    run r = {
        .command = command,
        .end = ret,
        .pidfd = -1,
        .in = -1,
        .out = -1,
        .err = -1,
        .theirs = {-1, -1, -1},
        .due = command->timeout_ms > 0 ? now_ms() + command->timeout_ms : INT64_MAX,
        .ask = command->is_stuck ? now_ms() + command->ask_ms : INT64_MAX,
    };
    memset(ret, 0, sizeof *ret);
    ret->exit_code = -1;
    int e = run_to_end(&r);
    if (e < 0)
        weft__command_end_done(ret, command->alloc);
    return e;
}

void weft__command_end_done(weft_command_end *end, const weft_alloc *alloc) {
    weft__buf_done(&end->output, alloc);
}
