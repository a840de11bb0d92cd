/* weft __guard: starts one program and answers for everything that comes of it. As a subreaper it inherits every process
 * that the program leaves behind, so "no child is left" means that nothing is. It talks to nobody but the daemon, holds no
 * descriptor but that connection, and stays small: it does not use the library.
 *
 * It is two processes: a keeper (guard_keeper.c), which the daemon started, and the guard proper, its child. An agent is the
 * same user and may kill or stop either; the other one notices and ends what is there.
 *
 *   RUNNING ──the program exits──▶ LEFT ─────1 s────▶ KILLING       note_program_end(), begin_killing()
 *           ──told to stop───────▶ ASKED ──the grace──▶ KILLING     take_command(), begin_killing()
 *   any ──told to kill, or the daemon or the keeper is gone──▶ KILLING     take_command(), take_signals()
 *   any ──no child is left──▶ the end is told                       reap_program() */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine.h"
#include "find_program.h"
#include "guard.h"
#include "process.h"

/* How long processes that the program left behind may take to end after SIGTERM. Nobody waits for their result. */
#define LEFT_MS 1000
/* The keeper's end comes as this signal, which is blocked and read from a descriptor. */
#define KEEPER_ENDED SIGTERM

typedef enum phase { RUNNING, ASKED, LEFT, KILLING } phase;

typedef struct job {
    weft_guard_order head;
    const char *folder;
    char **argv, **env, **confined; /* confined: NULL: it is not */
    void *map;
    size_t size;
} job;

typedef struct guard {
    phase phase;
    pid_t keeper, program;
    bool ended; /* the program itself has */
    int status; /* its wait status */
    int control, children;
    int64_t due; /* when the phase is over */
    int64_t grace_ms;
    weft_guard_rounds rounds;
} guard;

static void send_note(const guard *self, weft_guard_kind kind, int value) {
    weft_guard_note note = {(int32_t) kind, value};
    (void) send(self->control, &note, sizeof note, MSG_NOSIGNAL); /* a daemon that is gone shows as the end of input */
}

/* ---- the order ---- */

/* Strings in a row, as a list that ends with NULL. *text moves behind them. NULL: no memory, or they are not all there. */
static char **take_list(char **text, const char *end, uint32_t count) {
    char **list = count <= (size_t) (end - *text) ? calloc((size_t) count + 1, sizeof *list) : NULL;
    for (uint32_t i = 0; list && i < count; i++) {
        if (*text >= end) {
            free(list);
            return NULL;
        }
        list[i] = *text;
        *text += strlen(*text) + 1;
    }
    return list;
}

static int read_order(int fd, job *ret) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    size_t size = (size_t) st.st_size;
    if (size <= sizeof ret->head)
        return -EINVAL;
    char *text = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    if (text == MAP_FAILED)
        return -errno;
    ret->map = text;
    ret->size = size;
    const char *end = text + size;
    if (end[-1])
        return -EINVAL;
    memcpy(&ret->head, text, sizeof ret->head);
    text += sizeof ret->head;
    ret->folder = text;
    text += strlen(text) + 1;
    ret->argv = take_list(&text, end, ret->head.arg_count);
    ret->env = ret->argv ? take_list(&text, end, ret->head.env_count) : NULL;
    if (!ret->env || !ret->argv[0])
        return -EINVAL;
    if (!ret->head.confine_count)
        return 0;
    ret->confined = take_list(&text, end, ret->head.confine_count);
    return ret->confined ? 0 : -EINVAL;
}

/* A prompt and an environment are larger than the rest of the guard. */
static void forget_order(job *order) {
    free(order->argv);
    free(order->env);
    free(order->confined);
    if (order->map)
        munmap(order->map, order->size);
    *order = (job){.head = order->head};
}

/* ---- starting the program ---- */

static const char *path_of(char *const *env) {
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return NULL;
}

/* A group of its own; in a terminal also a session, so that what is typed there (^C, ^Z) reaches it as it would a person's
 * programs, and nothing else. Its number is the child's in both cases. */
static void leave_group(const job *order) {
    if (!order->head.terminal) {
        setpgid(0, 0);
        return;
    }
    setsid();
    ioctl(STDIN_FILENO, TIOCSCTTY, 0);
}

/* What bounds it beyond the user's rights. */
static int bound_program(const job *order) {
    const weft_guard_order *head = &order->head;
    struct rlimit none = {0, 0}, data = {head->max_data, head->max_data}, file = {head->max_file, head->max_file};
    if ((head->max_data && setrlimit(RLIMIT_DATA, &data) < 0) || (head->max_file && setrlimit(RLIMIT_FSIZE, &file) < 0))
        return -errno;
    if (head->max_data || head->max_file)
        setrlimit(RLIMIT_CORE, &none);
    return order->confined ? weft__confine(order->confined) : 0;
}

/* In the child. Returns only with what went wrong. */
static weft_guard_note become_program(const guard *self, const job *order) {
    char file[PATH_MAX];
    sigset_t none;
    struct rlimit files = {order->head.files_soft, order->head.files_hard};
    leave_group(order);
    send_note(self, WEFT_GUARD_FORKED, getpid()); /* should it kill the guard at once, its group is known */
    setrlimit(RLIMIT_NOFILE, &files);
    umask((mode_t) order->head.umask);
    if (chdir(order->folder) < 0)
        return (weft_guard_note){WEFT_GUARD_NO_FOLDER, errno};
    int r = weft__find_program(order->argv[0], path_of(order->env), file, sizeof file);
    if (r < 0)
        return (weft_guard_note){WEFT_GUARD_NO_PROGRAM, -r};
    r = bound_program(order);
    if (r < 0)
        return (weft_guard_note){WEFT_GUARD_NO_PROGRAM, -r};
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); /* handlers there are none: process.c saw to it */
    execve(file, order->argv, order->env);
    return (weft_guard_note){WEFT_GUARD_NO_PROGRAM, errno};
}

/* If the guard is killed, the program at least goes with it; the daemon sees to its group. */
static void tie_to(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
}

/* The pipe closes when the exec succeeds and brings a note when it does not. */
static int start_program(guard *self, const job *order, weft_guard_note *ret_failed) {
    int ends[2];
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        tie_to(parent);
        weft_guard_note failed = become_program(self, order);
        (void) !write(ends[1], &failed, sizeof failed);
        _exit(127);
    }
    int r = pid < 0 ? -errno : 0;
    close(ends[1]);
    self->program = pid;
    if (r == 0 && read(ends[0], ret_failed, sizeof *ret_failed) == sizeof *ret_failed)
        r = 1;
    close(ends[0]);
    return r;
}

/* ---- ending it ---- */

static void kill_at_once(guard *self) {
    self->phase = KILLING;
    self->due = weft__guard_now();
}

/* A stopped process hears SIGTERM when it goes on. */
static void ask_program_to_end(guard *self, phase next, int64_t wait_ms) {
    self->phase = next;
    self->due = weft__guard_now() + wait_ms;
    weft__guard_signal(SIGTERM);
    weft__guard_signal(SIGCONT);
}

static void note_program_end(guard *self, int status) {
    self->ended = true;
    self->status = status;
    int64_t soon = weft__guard_now() + LEFT_MS;
    if (self->phase == ASKED && self->due > soon)
        self->due = soon;
}

/* false: no child is left. */
static bool reap_program(guard *self) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == self->program)
            note_program_end(self, status);
    if (pid < 0 && errno == ECHILD)
        return false;
    if (self->ended && self->phase == RUNNING)
        ask_program_to_end(self, LEFT, LEFT_MS);
    return true;
}

/* One round of killing. Until the program was collected its group's number is its own, so that group comes first: at once,
 * and even where processes cannot be listed. */
static void kill_round(guard *self) {
    bool group = !self->ended && kill(-self->program, SIGKILL) == 0;
    int reached = weft__guard_signal(SIGKILL);
    if (group && reached < 1)
        reached = 1;
    weft__guard_rounds_count(&self->rounds, reached);
    self->due = self->rounds.due;
}

static void begin_killing(guard *self) {
    self->phase = KILLING;
    kill_round(self);
}

/* ---- waiting ---- */

static void take_command(guard *self) {
    char command = 0;
    ssize_t n = recv(self->control, &command, 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        close(self->control);
        self->control = -1;
    }
    if (n <= 0 || command == WEFT_GUARD_KILL)
        kill_at_once(self);
    else if (command == WEFT_GUARD_STOP && self->phase == RUNNING)
        ask_program_to_end(self, ASKED, self->grace_ms);
}

static int timeout_of(const guard *self) {
    if (self->phase == RUNNING)
        return -1;
    int64_t left = self->due - weft__guard_now();
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int) left;
}

/* Anybody may send the signal that the keeper's end sends; only who our parent is says that it has gone. */
static void take_signals(guard *self) {
    struct signalfd_siginfo info;
    while (read(self->children, &info, sizeof info) == sizeof info)
        if (info.ssi_signo == KEEPER_ENDED && getppid() != self->keeper)
            kill_at_once(self);
}

static void wait_for_something(guard *self) {
    struct pollfd ready[] = {{.fd = self->children, .events = POLLIN}, {.fd = self->control, .events = POLLIN}};
    poll(ready, 2, timeout_of(self));
    if (ready[0].revents)
        take_signals(self);
    if (ready[1].revents)
        take_command(self);
    if (self->phase != RUNNING && weft__guard_now() >= self->due)
        begin_killing(self);
}

static void watch_until_empty(guard *self) {
    while (reap_program(self) && self->rounds.vain < WEFT_VAIN_ROUNDS)
        wait_for_something(self);
    send_note(self, WEFT_GUARD_ENDED, self->ended ? self->status : SIGKILL);
}

/* ---- the guard ---- */

/* Nothing but SIGKILL ends a guard: all signals are blocked from its first instruction on (process.c), and again here for
 * whoever starts it by hand. Nobody but root looks into it or traces it. */
static void prepare_guard(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NAME, WEFT_GUARD_NAME);
    fcntl(WEFT_GUARD_CONTROL, F_SETFD, FD_CLOEXEC);
    fcntl(WEFT_GUARD_ORDER, F_SETFD, FD_CLOEXEC);
    close(WEFT_GUARD_SELF);
}

/* A session of its own, so that no signal to a group reaches both processes. */
static void leave_keeper(const guard *self) {
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, KEEPER_ENDED);
    if (getppid() != self->keeper)
        _exit(1); /* it was gone before it could be told */
}

static int guard_program(guard *self) {
    job order = {0};
    sigset_t heard;
    weft_guard_note failed = {WEFT_GUARD_NO_PROGRAM, 0};
    leave_keeper(self);
    int r = read_order(WEFT_GUARD_ORDER, &order);
    if (r == 0)
        r = start_program(self, &order, &failed);
    if (r < 0)
        failed.value = -r;
    forget_order(&order);
    if (r != 0) {
        send_note(self, (weft_guard_kind) failed.kind, failed.value);
        return 1;
    }
    self->grace_ms = order.head.grace_ms;
    send_note(self, WEFT_GUARD_STARTED, self->program);
    sigemptyset(&heard);
    sigaddset(&heard, SIGCHLD);
    sigaddset(&heard, KEEPER_ENDED);
    self->children = weft__guard_settle(&heard);
    if (self->children < 0)
        kill_at_once(self); /* it goes on without hearing of children, in rounds */
    watch_until_empty(self);
    return 0;
}

int weft__guard_main(int argc, char **argv) {
    guard self = {.control = WEFT_GUARD_CONTROL, .children = -1};
    (void) argc, (void) argv;
    prepare_guard();
    self.keeper = getpid();
    pid_t child = fork();
    if (child < 0)
        send_note(&self, WEFT_GUARD_NO_PROGRAM, errno);
    if (child < 0)
        return 1;
    return child == 0 ? guard_program(&self) : weft__guard_keep(child, WEFT_GUARD_CONTROL);
}

#ifdef WEFT_GUARD_ALONE /* the image that guard_image.h tells of */
int main(int argc, char **argv) {
    return weft__guard_main(argc, argv);
}
#endif
