/* Starting "weft serve" in the background. It is this program again, in a session of its own, with pipes to us where a
 * terminal would be: what it says is passed on, and that both pipes are closed while it lives means that it is ready. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alloc.h"
#include "buf.h"
#include "daemon.h"
#include "failure.h"
#include "progress.h"
#include "read_all.h"
#include "serve_tell.h"

/* More than any command line that a person types, less than one that is a mistake. */
#define MAX_COMMAND_LINE (128 * 1024)
/* A daemon that has more to say before it is ready is cut off; the rest is in the log. */
#define MAX_TALK (64 * 1024)
/* Each time, another one had the folder and was gone again when we looked. */
#define TRIES 5
/* From closing its files to being gone, on a machine that is very busy. */
#define LAST_BREATH_MS 5000

/* The daemon while it is being born. */
typedef struct birth {
    pid_t pid;
    int out, err;        /* our ends of its pipes; -1: closed */
    weft_buf said, talk; /* what came through them */
} birth;

/* ---- arguments ---- */

static int read_command_line(pid_t pid, char *text, size_t size, size_t *ret_len) {
    char path[64];
    size_t len = 0;
    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long) pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = weft__read_all(fd, text, size, &len);
    close(fd);
    if (r < 0 || len == size)
        return r < 0 ? r : -E2BIG;
    text[len] = '\0';
    *ret_len = len;
    return 0;
}

/* Owned with *ret_memory. */
static int read_args(pid_t pid, const char *verb, char ***ret, char **ret_memory) {
    char *text = weft__alloc(NULL, MAX_COMMAND_LINE);
    size_t len = 0, count = 0;
    int r = text ? read_command_line(pid, text, MAX_COMMAND_LINE, &len) : -ENOMEM;
    for (size_t i = 0; r == 0 && i < len; i++)
        count += text[i] == '\0';
    if (r == 0 && (count < 2 || strcmp(text + strlen(text) + 1, verb) != 0))
        r = -ENOENT;
    char **args = r == 0 ? weft__zalloc(NULL, (count - 1) * sizeof *args) : NULL;
    if (!args) {
        weft__free(NULL, text);
        return r < 0 ? r : -ENOMEM;
    }
    char *at = text + strlen(text) + 1; /* the verb */
    for (size_t i = 0; i < count - 2; i++)
        args[i] = at += strlen(at) + 1;
    *ret = args;
    *ret_memory = text;
    return 0;
}

int weft__daemon_with_args(weft_app *app, pid_t pid, const char *verb, weft_exit (*act)(weft_app *app, char **args),
                           weft_exit *ret) {
    char **args, *memory;
    int r = read_args(pid, verb, &args, &memory);
    if (r < 0)
        return r;
    *ret = act(app, args);
    weft__free(NULL, args);
    weft__free(NULL, memory);
    return 0;
}

/* "weft serve --json ARGS", in the same layout. Owned, without what it points to. */
static char **serve_command(const weft_layout *layout, char **args) {
    static char serve[] = "serve", json[] = "--json", aiwg[] = "--aiwg";
    size_t count = 0;
    bool told = !layout->aiwg;
    for (; args[count]; count++)
        told |= strcmp(args[count], aiwg) == 0;
    char **argv = weft__zalloc(NULL, (count + 5) * sizeof *argv);
    if (!argv)
        return NULL;
    argv[0] = program_invocation_name;
    argv[1] = serve;
    argv[2] = json;
    memcpy(argv + 3, args, count * sizeof *argv);
    if (!told)
        argv[3 + count] = aiwg;
    return argv;
}

/* ---- the process ---- */

static int set_daemon_files(posix_spawn_file_actions_t *files, int out, int err) {
    int r = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(files, out, STDOUT_FILENO);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(files, err, STDERR_FILENO);
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(files, 3);
    return -r;
}

/* A session of its own, and no signal ignored or blocked because we were started that way. */
static int set_attributes(posix_spawnattr_t *attributes) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int r = posix_spawnattr_setsigmask(attributes, &none);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(attributes, &all);
    if (r == 0)
        r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return -r;
}

static int spawn_daemon(char **argv, int out, int err, pid_t *ret) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    char self[32];
    snprintf(self, sizeof self, "%ld", (long) getpid());
    setenv(WEFT_BACKGROUND, self, 1);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    int r = set_daemon_files(&files, out, err);
    if (r == 0)
        r = set_attributes(&attributes);
    if (r == 0)
        r = -posix_spawn(ret, "/proc/self/exe", &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return r;
}

static int give_birth(const weft_layout *layout, char **args, birth *ret) {
    int out[2], err[2];
    char **argv = serve_command(layout, args);
    if (!argv)
        return -ENOMEM;
    if (pipe2(out, O_CLOEXEC) < 0) {
        weft__free(NULL, argv);
        return -errno;
    }
    int r = pipe2(err, O_CLOEXEC) < 0 ? -errno : 0;
    if (r == 0) {
        r = spawn_daemon(argv, out[1], err[1], &ret->pid);
        close(err[1]);
        ret->err = err[0];
    }
    close(out[1]);
    ret->out = out[0];
    weft__free(NULL, argv);
    return r;
}

static void birth_done(birth *self) {
    if (self->out >= 0)
        close(self->out);
    if (self->err >= 0)
        close(self->err);
    weft__buf_done(&self->said, NULL);
    weft__buf_done(&self->talk, NULL);
}

/* ---- listening to it ---- */

static void take_from_pipe(int *fd, weft_buf *into) {
    char bytes[4096];
    ssize_t n = read(*fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
        return;
    if (n > 0 && weft__buf_len(into) + (size_t) n <= MAX_TALK)
        weft__buf_put(into, NULL, bytes, (size_t) n);
    if (n <= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* Until it has closed both pipes. 0, or -ETIMEDOUT. */
static int listen_to(birth *self) {
    int64_t until_ns = weft__clock_ns() + (int64_t) WEFT_START_MS * 1000000;
    while (self->out >= 0 || self->err >= 0) {
        struct pollfd fds[] = {{.fd = self->out, .events = POLLIN}, {.fd = self->err, .events = POLLIN}};
        int64_t left_ms = (until_ns - weft__clock_ns()) / 1000000;
        if (left_ms <= 0)
            return -ETIMEDOUT;
        if (poll(fds, 2, (int) left_ms) < 0 && errno != EINTR)
            return -errno;
        if (fds[0].revents)
            take_from_pipe(&self->out, &self->said);
        if (fds[1].revents)
            take_from_pipe(&self->err, &self->talk);
    }
    return 0;
}

/* It closed its pipes by ending, or because it is ready? *ret is its exit status then. A process closes its files before it
 * can be waited for, so one that has not said that it is ready is given a moment. */
static bool has_ended(const weft_layout *layout, pid_t pid, int *ret) {
    int process = weft__daemon_is_ready(layout, pid) ? -1 : (int) syscall(SYS_pidfd_open, pid, 0);
    if (process >= 0) {
        weft__daemon_wait_end(process, LAST_BREATH_MS);
        close(process);
    }
    return waitpid(pid, ret, WNOHANG) == pid;
}

/* ---- telling ---- */

/* What the daemon said, to our terminal. */
static void pass_talk_on(const weft_app *app, const weft_buf *talk) {
    const char *line = weft__buf_head(talk), *end = line ? line + weft__buf_len(talk) : NULL;
    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t) (end - line));
        size_t len = (size_t) ((stop ? stop : end) - line);
        weft__put_text(&app->err, line, len);
        fputc('\n', app->err.file);
        line += len + 1;
    }
}

static void try_these(const weft_app *app, const weft_json *endpoint) {
    const char *program = program_invocation_name;
    weft_json agent = weft_get(endpoint, "agent");
    const char *name = weft_get_str(&agent, "name", "");
    fputs("\nTry:\n", app->err.file);
    weft__serve_say_verbs(app->err.file, *name ? name : "the agent", weft_get_str(&agent, "driver", ""));
    fprintf(app->err.file, "\"%s status\", \"%s logs -f\" and \"%s stop\" are about the hub itself.\n", program, program,
            program);
}

static weft_exit tell_daemon(const weft_app *app, pid_t pid, bool started) {
    char folder[PATH_MAX];
    WEFT_AUTO(weft_doc) endpoint = weft__daemon_endpoint(app->layout);
    if (!getcwd(folder, sizeof folder))
        *folder = '\0';
    if (app->common.json) {
        weft_val about = endpoint ? weft_copy(weft_doc_root(endpoint)) : weft_none();
        weft__put_line(&app->out, WEFT_OBJ({"state", weft_str(started ? "started" : "running")},
                                           {"pid", pid ? weft_int(pid) : weft_none()}, {"folder", weft_str(folder)},
                                           {"endpoint", about}));
        return WEFT_DONE;
    }
    fprintf(app->err.file, "%s in ", started ? "started" : "already running");
    weft__put_text(&app->err, folder, strlen(folder));
    if (pid)
        fprintf(app->err.file, ", pid %ld\n", (long) pid);
    else
        fputs(", where it cannot be seen from here (a container's, perhaps)\n", app->err.file);
    if (!started || !endpoint)
        return WEFT_DONE;
    weft_json urls = weft_get(weft_doc_root(endpoint), "urls");
    for (weft_iter it = weft_iterate(&urls); weft_next(&it);)
        fprintf(app->err.file, "listening on %s\n", weft_str_of(&it.value, ""));
    /* Of one that runs already, another agent may have been chosen since. */
    try_these(app, started && endpoint ? weft_doc_root(endpoint) : &(weft_json){0});
    return WEFT_DONE;
}

/* The last line it printed is its error, for programs. */
static void pass_on_error(const weft_app *app, const weft_buf *said) {
    size_t len = weft__buf_len(said);
    const char *text = weft__buf_head(said);
    const char *before = len ? memrchr(text, '\n', len - 1) : NULL;
    if (before) {
        len -= (size_t) (before + 1 - text);
        text = before + 1;
    }
    fwrite(text ? text : "", 1, len, app->out.file);
}

static weft_exit tell_failure(const weft_app *app, const birth *self, int status) {
    static const char *const next = "\"weft logs\" may say why.";
    if (WIFSIGNALED(status))
        return weft__fail(app, WEFT_FAILED, next, "the hub was killed by signal %d (%s)", WTERMSIG(status),
                          strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == 0)
        return weft__fail(app, WEFT_FAILED, next, "the hub was stopped as soon as it had started");
    if (!weft__buf_len(&self->talk))
        return weft__fail(app, WEFT_FAILED, next, "the hub ended with status %d", WEXITSTATUS(status));
    /* It has explained itself, and that was passed on. */
    if (app->common.json)
        pass_on_error(app, &self->said);
    return (weft_exit) WEXITSTATUS(status);
}

/* ---- starting ---- */

/* There is one. WEFT_DONE told; *ret_again: it went away before it was ready, so that it is our turn. */
static weft_exit join_daemon(const weft_app *app, pid_t pid, bool *ret_again) {
    weft__spinner_start(app, "waiting for the hub to be ready");
    int r = weft__daemon_wait_ready(app->layout, pid, WEFT_START_MS);
    weft__spinner_stop();
    *ret_again = r == 0;
    if (r == -ETIMEDOUT)
        return weft__fail(app, WEFT_TOO_LATE, "\"weft logs\" may say why; \"weft stop --force\" ends it.",
                          "a hub is starting here (pid %ld), but is not ready", (long) pid);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    return r == 0 ? WEFT_DONE : tell_daemon(app, pid, false);
}

static weft_exit await_birth(const weft_app *app, birth *self, bool *ret_again) {
    int status = 0;
    weft__spinner_start(app, "starting");
    int r = listen_to(self);
    bool ended = r == 0 && has_ended(app->layout, self->pid, &status);
    weft__spinner_stop();
    if (r < 0)
        return weft__fail(app, WEFT_TOO_LATE, "\"weft logs\" may say why; \"weft stop --force\" ends it.",
                          "the hub (pid %ld) is not ready after %d s", (long) self->pid, WEFT_START_MS / 1000);
    pass_talk_on(app, &self->talk);
    /* Without a word: somebody else was faster. */
    *ret_again = ended && WIFEXITED(status) && WEXITSTATUS(status) == WEFT_BUSY && !weft__buf_len(&self->talk);
    if (*ret_again)
        return WEFT_DONE;
    return ended ? tell_failure(app, self, status) : tell_daemon(app, self->pid, true);
}

static weft_exit try_once(const weft_app *app, char **args, bool *ret_again) {
    pid_t holder;
    int r = weft__daemon_holder(app->layout, &holder);
    if (r == 1)
        return join_daemon(app, holder, ret_again);
    birth self = {.out = -1, .err = -1};
    r = give_birth(app->layout, args, &self);
    weft_exit status =
        r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : await_birth(app, &self, ret_again);
    birth_done(&self);
    return status;
}

weft_exit weft__daemon_start(weft_app *app, char **args) {
    weft_exit status = WEFT_DONE;
    bool again = true;
    for (int i = 0; i < TRIES && again; i++) {
        again = false;
        status = try_once(app, args, &again);
    }
    return again
               ? weft__fail(app, WEFT_BUSY, "Try again in a moment.", "another command is starting or stopping the hub here")
               : status;
}
