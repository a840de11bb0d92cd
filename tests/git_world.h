/* A git repository in a folder of its own, a home beside it, and calls that wait for their answers. Programs are started
 * without a shell. Everything is static and inline. */
#ifndef GIT_WORLD_H
#define GIT_WORLD_H

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "git.h"
#include "net_world.h"

extern char **environ;

typedef struct git_world {
    weft_loop *loop;
    weft_git *git;
    char folder[64];
    /* Of the last answer. */
    int answers, r;
    weft_git_refusal refusal;
    char message[512];
    char text[1 << 16]; /* of status, log and branches: in one line; of a diff: itself */
    weft_git_status status;
    weft_git_diff diff;
    size_t count;
    bool truncated;
    char commit[72];
} git_world;

/* path: below the world's folder. */
static inline const char *at(const git_world *w, const char *path) {
    static char full[4][PATH_MAX];
    static int next;
    next = (next + 1) % 4;
    snprintf(full[next], PATH_MAX, "%s/%s", w->folder, path);
    return full[next];
}

static inline void put(const git_world *w, const char *path, const char *text) {
    int fd = open(at(w, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (CHECK(fd >= 0)) {
        CHECK_INT(write(fd, text, strlen(text)), strlen(text));
        close(fd);
    }
}

static inline void dir(const git_world *w, const char *path) {
    CHECK_INT(mkdir(at(w, path), 0755), 0);
}

static inline void script(const git_world *w, const char *path, const char *text) {
    put(w, path, text);
    CHECK_INT(chmod(at(w, path), 0755), 0);
}

static inline bool is_there(const git_world *w, const char *path) {
    struct stat st;
    return lstat(at(w, path), &st) == 0;
}

/* The beginning of a file, also of one in /proc. */
static inline const char *small_file(const char *path, char *ret, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, ret, size - 1);
    ret[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
    return ret;
}

/* Run git in a folder of the world's as a person would. Its exit code. */
static inline int git_in(const git_world *w, const char *folder, const char *first, ...) {
    const char *argv[24] = {"git", "-C", at(w, folder), first};
    size_t count = 4;
    va_list list;
    va_start(list, first);
    while (count < 23 && (argv[count] = va_arg(list, const char *)))
        count++;
    va_end(list);
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status = -1;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&pid, "git", &files, NULL, (char *const *) (uintptr_t) argv, environ) == 0)
        waitpid(pid, &status, 0);
    posix_spawn_file_actions_destroy(&files);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define GIT(w, ...) CHECK_INT(git_in(w, "repo", __VA_ARGS__, NULL), 0)

/* ---- the world ---- */

static inline void git_world_begin(git_world *w) {
    memset(w, 0, sizeof *w);
    snprintf(w->folder, sizeof w->folder, "/tmp/weft-git-XXXXXX");
    CHECK(mkdtemp(w->folder) != NULL);
    CHECK_INT(weft_loop_new(NULL, &w->loop), 0);
    dir(w, "home");
    setenv("HOME", at(w, "home"), 1);
    setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    unsetenv("XDG_CONFIG_HOME");
    put(w, "home/.gitconfig",
        "[user]\n\tname = A Person\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = "
        "always\n");
    dir(w, "repo");
    GIT(w, "init", "-q");
}

static inline int git_world_open(git_world *w, const char *folder, weft_git_opts opts) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", at(w, folder));
    opts.loop = w->loop;
    opts.folder = path;
    return weft__git_new(&opts, &w->git);
}

static inline void git_world_close(git_world *w) {
    w->git = weft__git_free(w->git);
}

static inline void git_world_end(git_world *w) {
    git_world_close(w);
    weft_loop_free(w->loop);
    test_remove(w->folder);
}

/* ---- answers ---- */

static inline void git_world_say(git_world *w, const char *form, ...) __attribute__((format(printf, 2, 3)));
static inline void git_world_say(git_world *w, const char *form, ...) {
    size_t len = strlen(w->text);
    va_list list;
    va_start(list, form);
    vsnprintf(w->text + len, sizeof w->text - len, form, list);
    va_end(list);
}

static inline void git_world_take_status(git_world *w, const weft_git_status *status) {
    w->status = *status;
    git_world_say(w, "%s", status->branch ? status->branch : "(none)");
    for (size_t i = 0; i < status->count && i < 200; i++) {
        const weft_git_file *file = &status->files[i];
        git_world_say(w, "|%c%c %s", file->index, file->worktree, file->path);
        if (file->orig_path)
            git_world_say(w, "<%s", file->orig_path);
    }
    w->count = status->count;
    w->truncated = status->truncated;
}

static inline void git_world_done(void *ctx, const weft_git_result *result) {
    git_world *w = ctx;
    w->answers++;
    w->r = result->r;
    w->refusal = result->refusal;
    snprintf(w->message, sizeof w->message, "%s", result->message);
    w->text[0] = '\0';
    if (result->status)
        git_world_take_status(w, result->status);
    if (result->diff) {
        w->diff = *result->diff;
        w->truncated = result->diff->truncated;
        git_world_say(w, "%.*s", (int) result->diff->text.len, result->diff->text.data);
    }
    for (size_t i = 0; result->log && i < result->log->count && i < 200; i++)
        git_world_say(w, "%s%s", i ? "|" : "", result->log->commits[i].subject);
    for (size_t i = 0; result->branches && i < result->branches->count && i < 200; i++)
        git_world_say(w, "%s%s%s", i ? "|" : "", result->branches->branches[i].current ? "*" : "",
                      result->branches->branches[i].name);
    if (result->log || result->branches) {
        w->count = result->log ? result->log->count : result->branches->count;
        w->truncated = result->log ? result->log->truncated : result->branches->truncated;
    }
    snprintf(w->commit, sizeof w->commit, "%s", result->commit ? result->commit : "");
}

static inline void git_world_turn(git_world *w) {
    struct pollfd p = {.fd = weft_loop_fd(w->loop), .events = POLLIN};
    int timeout = weft_loop_timeout_ms(w->loop);
    poll(&p, 1, timeout < 0 || timeout > 50 ? 50 : timeout);
    weft_loop_once(w->loop, false);
}

#define GIT_UNTIL(w, condition)                                                                                             \
    do {                                                                                                                    \
        int64_t until_ = world_ms() + WORLD_PATIENCE_MS;                                                                    \
        while (!(condition) && world_ms() < until_)                                                                         \
            git_world_turn(w);                                                                                              \
        CHECK(condition);                                                                                                   \
    } while (0)

/* The answer's refusal, or r when it is below zero; -1000 when it was not accepted, with w->r saying why. */
static inline int git_world_ask(git_world *w, weft_git_request request) {
    int before = w->answers;
    w->text[0] = w->message[0] = '\0';
    w->r = weft__git_ask(w->git, &request, git_world_done, w, NULL);
    if (w->r < 0)
        return -1000;
    CHECK_INT(w->answers, before); /* never inside the call */
    GIT_UNTIL(w, w->answers > before);
    return w->r < 0 ? w->r : (int) w->refusal;
}

static inline void git_world_open_repo(git_world *w) {
    CHECK_INT(git_world_open(w, "repo", (weft_git_opts){.may_write = true}), 0);
}

static inline void git_world_begin_with_commit(git_world *w) {
    git_world_begin(w);
    put(w, "repo/a", "1\n2\n3\n");
    dir(w, "repo/sub");
    put(w, "repo/sub/b", "b\n");
    GIT(w, "add", ".");
    GIT(w, "commit", "-qm", "first");
    git_world_open_repo(w);
}

#define ASK(w, ...) git_world_ask(w, (weft_git_request){__VA_ARGS__})
#define CHECK_SAID(w, want) CHECK_TEXT((w)->text, strlen((w)->text), want)

#endif
