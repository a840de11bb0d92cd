/* The set-up commands of the configuration, run in a new worktree before its first turn: one after the other, each under a
 * guard of its own, with a limit of time and of output. One that fails fails the task, and says so. Their programs are the
 * user's: neither the project nor the worktree is looked for one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_program.h"
#include "process.h"
#include "run.h"
#include "utf8.h"
#include "watch.h"
#include "worktrees.h"

#define MAX_OUTPUT (16u << 20) /* bytes of one command; then it is ended */
#define TAIL 1024              /* of these are shown when it fails */
#define MAX_ARGS 64
#define TIMEOUT_MS 600000
#define GRACE_MS 2000

struct worktree_setup {
    struct run *run;
    size_t at; /* which command */
    weft_process *process;
    int fds[2]; /* standard output and error; -1 */
    weft_watch *watches[2];
    weft_timer late;
    weft_later next;
    size_t said, tail_len;
    char tail[TAIL];
    const char *why; /* it was ended; NULL */
    weft_process_end end;
    char program[PATH_MAX], folder[PATH_MAX];
    void (*on_set_up)(struct run *run, const char *why);
};

/* ---- which commands ---- */

static weft_json commands_of(const weft_engine *engine) {
    return engine->setup ? *weft_doc_root(engine->setup) : (weft_json){0};
}

bool weft__setup_is_due(const weft_engine *engine, const char *worktree) {
    weft_json commands = commands_of(engine);
    return weft_count(&commands) > 0 && !weft__worktree_is_set_up(engine->opts.snapshots, worktree);
}

/* ---- one command ---- */

static void close_stream(struct worktree_setup *self, int i) {
    self->watches[i] = weft__watch_free(self->watches[i]);
    if (self->fds[i] >= 0)
        close(self->fds[i]);
    self->fds[i] = -1;
}

static void keep_tail(struct worktree_setup *self, const char *text, size_t len) {
    size_t keep = len < TAIL ? len : TAIL;
    size_t old = self->tail_len + keep > TAIL ? TAIL - keep : self->tail_len;
    memmove(self->tail, self->tail + self->tail_len - old, old);
    memcpy(self->tail + old, text + len - keep, keep);
    self->tail_len = old + keep;
}

static void end_command(struct worktree_setup *self, const char *why) {
    if (!self->why)
        self->why = why;
    weft__process_stop(self->process, false);
}

/* 1: there may be more. */
static int read_stream(struct worktree_setup *self, int i) {
    weft_loop *loop = self->run->engine->loop;
    ssize_t n = read(self->fds[i], loop->read, WEFT_LOOP_READ);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) {
        close_stream(self, i);
        return 0;
    }
    bool had = self->said <= MAX_OUTPUT;
    self->said += (size_t) n;
    keep_tail(self, loop->read, (size_t) n);
    if (had && self->said > MAX_OUTPUT)
        end_command(self, "said too much");
    return 1;
}

static void on_out(void *ctx, unsigned what) {
    (void) what;
    read_stream(ctx, 0);
}

static void on_err(void *ctx, unsigned what) {
    (void) what;
    read_stream(ctx, 1);
}

static void on_setup_late(weft_timer *timer) {
    end_command(WEFT_CONTAINER(timer, struct worktree_setup, late), "took too long");
}

static void on_command_end(void *ctx, const weft_process_end *end) {
    struct worktree_setup *self = ctx;
    self->end = *end;
    weft__timer_stop(self->run->engine->loop, &self->late);
    weft__later(self->run->engine->loop, &self->next);
}

/* Never one of the project's, or of the worktree's, which an agent or a commit could have put there. */
static int find_program(struct worktree_setup *self, const char *name) {
    const char *folder = self->run->engine->opts.folder;
    if (!strchr(name, '/'))
        return weft__find_outside(name, folder, self->program, sizeof self->program);
    char real[PATH_MAX];
    size_t len = strlen(folder);
    if (*name != '/' || !realpath(name, real))
        return *name == '/' ? -errno : -EXDEV;
    if (strncmp(real, folder, len) == 0 && (real[len] == '/' || !real[len]))
        return -EXDEV;
    return snprintf(self->program, sizeof self->program, "%s", name) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int watch_streams(struct worktree_setup *self) {
    static void (*const on[])(void *, unsigned) = {on_out, on_err};
    int r = 0;
    for (int i = 0; i < 2 && r >= 0; i++) {
        r = weft__watch_new(self->run->engine->loop, self->fds[i], on[i], self, &self->watches[i]);
        if (r >= 0)
            r = weft__watch_set(self->watches[i], WEFT_WATCH_READ);
    }
    return r;
}

static int start_command(struct worktree_setup *self, const weft_json *command) {
    weft_engine *engine = self->run->engine;
    weft_json argv_json = weft_get(command, "command");
    const char *argv[MAX_ARGS + 1] = {NULL}, *path = getenv("PATH");
    char room[32768];
    int fds[3];
    size_t count = 0;
    for (weft_iter it = weft_iterate(&argv_json); weft_next(&it) && count < MAX_ARGS;)
        argv[count++] = weft_str_of(&it.value, "");
    int r = count ? find_program(self, argv[0]) : -EINVAL;
    if (r < 0)
        return r;
    if (path && strlen(path) + WEFT_OUTSIDE_PATH > sizeof room)
        return -ENAMETOOLONG;
    argv[0] = self->program;
    if (path)
        weft__outside_path(room, engine->opts.folder);
    const char *const env[] = {path ? room : NULL, NULL};
    weft_process_opts opts = {.loop = engine->loop,
                              .alloc = engine->alloc,
                              .guard = engine->opts.program,
                              .argv = argv,
                              .env = env,
                              .folder = self->folder,
                              .grace_ms = GRACE_MS,
                              .ctx = self,
                              .on_end = on_command_end};
    r = weft__process_start(&opts, &self->process, fds);
    if (r < 0)
        return r;
    close(fds[0]);
    self->fds[0] = fds[1];
    self->fds[1] = fds[2];
    int64_t within = weft_get_int(command, "timeout_ms", TIMEOUT_MS);
    weft__timer_set(engine->loop, &self->late, weft__add_ms(weft__loop_fresh_now(engine->loop), within));
    return watch_streams(self);
}

/* ---- one after the other ---- */

static void end_setup(struct worktree_setup *self, const char *why) {
    struct run *run = self->run;
    void (*on_set_up)(struct run *, const char *) = self->on_set_up;
    char text[TAIL + 1024];
    snprintf(text, sizeof text, "%s", why ? why : "");
    weft__setup_drop(run);
    on_set_up(run, why ? text : NULL);
}

static void fail_setup(struct worktree_setup *self, const char *how) {
    char text[TAIL + 512], tail[TAIL + 1];
    weft_json commands = commands_of(self->run->engine), command = weft_at(&commands, self->at),
              argv = weft_get(&command, "command"), first = weft_at(&argv, 0);
    size_t to = 0;
    for (size_t i = 0; i < self->tail_len;) {
        unsigned char c = (unsigned char) self->tail[i];
        size_t n = c < 0x80 ? 1 : weft__utf8_len(self->tail + i, self->tail_len - i);
        bool plain = n > 1 || c >= ' ' || c == '\n';
        for (size_t k = 0; k < n && plain; k++)
            tail[to++] = self->tail[i + k];
        i += n ? n : 1;
    }
    while (to && (tail[to - 1] == '\n' || tail[to - 1] == ' '))
        to--;
    tail[to] = '\0';
    snprintf(text, sizeof text, "The set-up command %.100s of the worktree %s%s%s", weft_str_of(&first, ""), how,
             *tail ? ": " : "", tail);
    end_setup(self, text);
}

static void run_next(struct worktree_setup *self) {
    weft_engine *engine = self->run->engine;
    weft_json commands = commands_of(engine);
    self->said = self->tail_len = 0;
    self->why = NULL;
    if (self->at >= weft_count(&commands)) {
        int r = weft__worktree_set_up(engine->opts.snapshots, self->run->task->session->pub.worktree);
        end_setup(self, r < 0 ? weft_strerror(r) : NULL);
        return;
    }
    weft_json command = weft_at(&commands, self->at);
    int r = start_command(self, &command);
    if (r < 0 && !self->process)
        fail_setup(self, r == -EXDEV    ? "is a program of the project, which is not run"
                         : r == -ENOENT ? "is not there"
                                        : weft_strerror(r));
    else if (r < 0)
        end_command(self, weft_strerror(r));
}

static void command_over(weft_later *later) {
    struct worktree_setup *self = WEFT_CONTAINER(later, struct worktree_setup, next);
    char how[64];
    for (int i = 0; i < 2; i++)
        for (int left = 32; left && self->fds[i] >= 0 && read_stream(self, i) > 0;)
            left--;
    for (int i = 0; i < 2; i++)
        close_stream(self, i);
    self->process = weft__process_free(self->process);
    if (!self->why && self->end.error == 0 && self->end.exit_code == 0) {
        self->at++;
        run_next(self);
        return;
    }
    snprintf(how, sizeof how, self->end.signal ? "was ended by signal %d" : "ended with status %d",
             self->end.signal ? self->end.signal : self->end.exit_code);
    fail_setup(self, self->why ? self->why : self->end.error ? weft_strerror(self->end.error) : how);
}

static void setup_begins(weft_later *later) {
    struct worktree_setup *self = WEFT_CONTAINER(later, struct worktree_setup, next);
    weft__later_init(&self->next, command_over);
    run_next(self);
}

int weft__setup_begin(struct run *run, void (*on_set_up)(struct run *run, const char *why)) {
    weft_engine *engine = run->engine;
    struct worktree_setup *self = weft__zalloc(engine->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->run = run;
    self->on_set_up = on_set_up;
    self->fds[0] = self->fds[1] = -1;
    int r = weft__worktree_path(engine->opts.snapshots, run->task->session->pub.worktree, self->folder);
    if (r < 0) {
        weft__free(engine->alloc, self);
        return r;
    }
    weft__timer_init(&self->late, on_setup_late);
    weft__later_init(&self->next, setup_begins);
    run->setup = self;
    weft__later(engine->loop, &self->next);
    return 0;
}

void weft__setup_drop(struct run *run) {
    struct worktree_setup *self = run->setup;
    if (!self)
        return;
    run->setup = NULL;
    for (int i = 0; i < 2; i++)
        close_stream(self, i);
    weft__process_free(self->process);
    weft__timer_stop(run->engine->loop, &self->late);
    weft__later_cancel(&self->next);
    weft__free(run->engine->alloc, self);
}
