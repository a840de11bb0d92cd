/* Where a project's files and objects are, and running git there; on the thread.
 *
 * git runs with a folder of ours as its GIT_DIR, also in a repository of the user's: so its configuration, hooks and
 * attributes are ours, and the only thing of the user's repository that is used is its folder of objects. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "snapshots_private.h"
#include "texts.h"
#include "utf8.h"

#define MAX_ARGS 48
#define MAX_EXTRA 8
#define OUTPUT (64u << 10)
#define PIPE_MS 1000 /* of a program of git, until it is asked whether it waits for a pipe */

/* Files as they are: whatever a .gitattributes says, nothing is converted, and no driver is looked for. */
static const char attributes[] = "* -text -ident -filter -working-tree-encoding !diff !merge !eol\n";
/* The hub's own files, and those of ours that are not renamed yet. */
static const char excludes[] = "\n.weft/\n.aiwg/daemon/\n.weft-*.tmp\n";

/* ---- failures ---- */

void weft__snap_done(snap *s) {
    weft__command_end_done(&s->end, s->own->alloc);
}

bool weft__snap_fail(snap *s, int r) {
    if (s->r == 0)
        s->r = r;
    if (!*s->message)
        snprintf(s->message, sizeof s->message, "%s", r == -ENOENT ? "git is not installed" : weft_strerror(r));
    return false;
}

/* What git says has names of files in it. */
static void tidy_words(char *text) {
    size_t len = strlen(text), to = 0;
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char) text[i];
        size_t n = c < 0x80 ? 1 : weft__utf8_len(text + i, len - i);
        if (!n || c < ' ' || c == 0x7f)
            text[to++] = c == '\n' && i + 1 < len ? ' ' : '?';
        else
            for (size_t k = 0; k < n; k++)
                text[to++] = text[i + k];
        i += n ? n : 1;
    }
    while (to && (text[to - 1] == ' ' || text[to - 1] == '?'))
        to--;
    text[to] = '\0';
}

bool weft__snap_refuse(snap *s, int r, const char *format, ...) {
    va_list args;
    if (s->r < 0)
        return false;
    s->r = r;
    va_start(args, format);
    vsnprintf(s->message, sizeof s->message, format, args);
    va_end(args);
    tidy_words(s->message);
    return false;
}

/* ---- running ---- */

typedef struct extra {
    char *list[MAX_EXTRA + 1];
    size_t count;
    bool failed;
} extra;

static void add_extra(snap *s, extra *more, const char *name, const char *value) {
    size_t len = strlen(name) + strlen(value);
    char *text = weft__alloc(s->own->alloc, len + 2);
    if (!text) {
        more->failed = true;
        return;
    }
    snprintf(text, len + 2, "%s=%s", name, value);
    more->list[more->count++] = text;
}

/* The list is separated by colons; a path that has one would have to be quoted. */
static bool may_be_alternate(const char *path) {
    return !strpbrk(path, ":\"\n");
}

static void add_own_place(snap *s, extra *more, const char *index, const char *work_tree) {
    const snap_place *place = &s->own->place;
    char own_objects[PATH_MAX + 16];
    snprintf(own_objects, sizeof own_objects, "%s/objects", place->own);
    add_extra(s, more, "GIT_DIR", place->own);
    add_extra(s, more, "GIT_WORK_TREE", work_tree ? work_tree : place->repository.top);
    add_extra(s, more, "GIT_INDEX_FILE", index ? index : place->index);
    if (!place->git)
        return;
    add_extra(s, more, "GIT_OBJECT_DIRECTORY", place->objects);
    if (may_be_alternate(own_objects))
        add_extra(s, more, "GIT_ALTERNATE_OBJECT_DIRECTORIES", own_objects);
}

static bool waits_for_pipe(void *ctx) {
    const snap *s = ctx;
    char path[PATH_MAX];
    return s->own->root >= 0 && weft__snap_find_pipe(s->own->root, path);
}

static bool refuse_pipe(snap *s, const char *name) {
    char path[PATH_MAX];
    if (!weft__snap_find_pipe(s->own->root, path))
        return weft__snap_refuse(s, -ETIMEDOUT, "git %s took too long", name);
    return weft__snap_refuse(s, -ENOTSUP, "%.300s is not a file but a pipe, and git waits for it for ever; remove it", path);
}

static int run_with(snap *s, const snap_run *run, char *const *made, const extra *more) {
    const snap_place *place = &s->own->place;
    const char *paths = run->magic ? "--no-pager" : "--literal-pathspecs";
    const char *argv[MAX_ARGS] = {"git", "--no-pager", paths, "-c", "core.logAllRefUpdates=false", NULL};
    char shared[96], ignored[PATH_MAX + 32];
    size_t count = 5, have = weft__texts_count((const char *const *) made);
    if (*place->shared) {
        snprintf(shared, sizeof shared, "core.sharedRepository=%s", place->shared);
        argv[count++] = "-c";
        argv[count++] = shared;
    }
    if (*place->excludes) {
        snprintf(ignored, sizeof ignored, "core.excludesFile=%s", place->excludes);
        argv[count++] = "-c";
        argv[count++] = ignored;
    }
    for (const char *const *at = run->argv; *at && count < MAX_ARGS - 1; at++)
        argv[count++] = *at;
    size_t said = run->env ? weft__texts_count(run->env) : 0;
    const char **env = weft__zalloc(s->own->alloc, (have + more->count + said + 1) * sizeof *env);
    if (!env)
        return -ENOMEM;
    for (size_t i = 0; i < have; i++)
        env[i] = made[i];
    for (size_t i = 0; i < more->count; i++)
        env[have + i] = more->list[i];
    for (size_t i = 0; i < said; i++)
        env[have + more->count + i] = run->env[i];
    weft__command_end_done(&s->end, s->own->alloc);
    int r = weft__command_run(
        &(weft_command){
            .alloc = s->own->alloc,
            .program = s->own->program,
            .argv = argv,
            .env = env,
            .folder = run->folder > 0 ? run->folder : s->own->root,
            .input = run->input,
            .max_output = run->max_output ? run->max_output : OUTPUT,
            .timeout_ms = s->own->run_ms,
            .cancel = s->own->cancel,
            .is_stuck = waits_for_pipe,
            .ctx = s,
            .ask_ms = PIPE_MS,
        },
        &s->end);
    weft__free(s->own->alloc, env);
    return r;
}

static int run_in_place(snap *s, const snap_run *run) {
    static const weft_git_settings none = {0};
    const snap_place *place = &s->own->place;
    extra more = {0};
    char **made = weft__git_env_make(&s->own->env, &place->repository, &none, false);
    if (!run->theirs)
        add_own_place(s, &more, run->index, run->work_tree);
    int r = made && !more.failed ? run_with(s, run, made, &more) : -ENOMEM;
    for (size_t i = 0; i < more.count; i++)
        weft__free(s->own->alloc, more.list[i]);
    weft__git_env_free(&s->own->env, made);
    return r;
}

/* What git does, for messages: settings stand before it. */
static const char *name_of_run(const snap_run *run) {
    const char *const *at = run->argv;
    while (strcmp(*at, "-c") == 0 && at[1] && at[2])
        at += 2;
    return *at;
}

bool weft__snap_git(snap *s, const snap_run *run) {
    const char *name = name_of_run(run);
    int r = run_in_place(s, run);
    if (r < 0)
        return weft__snap_fail(s, r);
    if (s->end.cancelled)
        return weft__snap_fail(s, -ECANCELED);
    if (s->end.stuck)
        return refuse_pipe(s, name);
    if (s->end.timed_out)
        return weft__snap_refuse(s, -ETIMEDOUT, "git %s took too long", name);
    if (s->end.truncated)
        return run->may_cut || weft__snap_refuse(s, -EFBIG, "there is too much for git %s", name);
    if (s->end.exit_code < 0)
        return weft__snap_refuse(s, -EIO, "git %s was ended", name);
    return s->end.exit_code == 0 || run->may_fail || weft__snap_refuse(s, -EREMOTEIO, "git %s: %s", name, s->end.errors);
}

weft_bytes weft__snap_output(const snap *s) {
    size_t len = weft__buf_len(&s->end.output);
    return (weft_bytes){len ? weft__buf_head(&s->end.output) : "", len};
}

bool weft__snap_is_hex(const char *text) {
    size_t len = strspn(text, "0123456789abcdef");
    return !text[len] && (len == 40 || len == 64);
}

bool weft__snap_take_hex(snap *s, char ret[WEFT_SNAPSHOT_HEX]) {
    weft_bytes said = weft__snap_output(s);
    char text[WEFT_SNAPSHOT_HEX];
    size_t len = said.len && said.data[said.len - 1] == '\n' ? said.len - 1 : said.len;
    if (len >= sizeof text)
        return weft__snap_refuse(s, -EBADMSG, "git did not name an object");
    memcpy(text, said.data, len);
    text[len] = '\0';
    if (!weft__snap_is_hex(text))
        return weft__snap_refuse(s, -EBADMSG, "git did not name an object");
    memcpy(ret, text, len + 1);
    return true;
}

/* ---- the user's repository ---- */

static bool is_real_folder(const char *folder, const char *name) {
    char path[PATH_MAX + 32];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool may_hold_refs(const char *common) {
    char path[PATH_MAX + 32];
    struct stat st;
    snprintf(path, sizeof path, "%s/refs/weft", common);
    return is_real_folder(common, "refs") && (lstat(path, &st) < 0 || S_ISDIR(st.st_mode));
}

static bool is_plain_log(const char *git_folder, const char *path) {
    struct stat st;
    int folder = open(git_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = folder < 0 ? -errno : weft__beneath_open(folder, path, O_PATH, 0);
    bool plain = fd == -ENOENT || (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode));
    if (fd >= 0)
        close(fd);
    if (folder >= 0)
        close(folder);
    return plain;
}

/* git appends to the log of a ref wherever that is; a link there, which an archive may bring, would have it write into any
 * file. That of HEAD is written with its branch's. */
bool weft__snap_logs_are_plain(snap *s, const char *ref) {
    const weft_repository *repository = &s->own->place.repository;
    char path[512];
    bool plain = snprintf(path, sizeof path, "logs/%s", ref) < (int) sizeof path && is_plain_log(repository->common, path) &&
                 (strncmp(ref, "refs/heads/", 11) != 0 || is_plain_log(repository->dir, "logs/HEAD"));
    return plain || weft__snap_refuse(s, -EREMOTEIO, "the repository's logs are no files, or links to somewhere else");
}

/* As in git_run.c: a .git that leads elsewhere leads to a repository that says it belongs here. */
static bool repository_knows_us(snap *s) {
    snap_place *place = &s->own->place;
    char path[PATH_MAX + 16];
    const char *const argv[] = {"config", "--file", path, "--no-includes", "-z", "--get", "core.worktree", NULL};
    if (place->repository.knows_us)
        return true;
    snprintf(path, sizeof path, "%s/config", place->repository.common);
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true, .may_fail = true}))
        return false;
    weft_bytes said = weft__snap_output(s);
    bool good = s->end.exit_code == 0 && said.len && !said.data[said.len - 1] &&
                weft__repository_is_worktree(&place->repository, said.data);
    return good ||
           weft__snap_refuse(s, -EREMOTEIO, "the .git of this folder leads to a repository that does not know this folder");
}

static bool is_setting(const char *at, const char *name) {
    return strncmp(at, name, strlen(name)) == 0 && at[strlen(name)] == '\n';
}

/* name\nvalue\0, the last one counts. */
static void read_few_settings(snap *s) {
    snap_place *place = &s->own->place;
    weft_bytes said = weft__snap_output(s);
    for (const char *at = said.data, *end = at + said.len; at < end;) {
        size_t len = strnlen(at, (size_t) (end - at));
        const char *value = memchr(at, '\n', len);
        int rest = value ? (int) (at + len - value - 1) : 0;
        if (value && is_setting(at, "core.sharedrepository"))
            snprintf(place->shared, sizeof place->shared, "%.*s", rest, value + 1);
        else if (value && is_setting(at, "core.excludesfile"))
            snprintf(place->excludes, sizeof place->excludes, "%.*s", rest, value + 1);
        else if (!is_setting(at, "core.autocrlf") || strncmp(value + 1, "false", 5) != 0)
            place->converts = true; /* core.autocrlf, core.attributesFile */
        at += len + 1;
    }
}

static bool is_file_there(const char *folder, const char *name) {
    char path[2 * PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return lstat(path, &st) == 0;
}

/* Attributes that are not among the project's files. */
static void look_for_attributes(snap_place *place) {
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && *config ? is_file_there(config, "git/attributes") : home && is_file_there(home, ".config/git/attributes"))
        place->converts = true;
    if (is_file_there(place->repository.common, "info/attributes"))
        place->converts = true;
}

/* git itself looks whose repository it is, and refuses one of somebody else. */
static bool ask_repository(snap *s) {
    static const char *const format[] = {"rev-parse", "--show-object-format", NULL};
    static const char *const settings[] = {
        "config", "-z", "--type=path", "--get-regexp", "^core\\.(sharedrepository|excludesfile|autocrlf|attributesfile)$",
        NULL,
    };
    snap_place *place = &s->own->place;
    const char *common = place->repository.common;
    if (!repository_knows_us(s) || !weft__snap_git(s, &(snap_run){.argv = format, .theirs = true}))
        return false;
    weft_bytes said = weft__snap_output(s);
    snprintf(place->format, sizeof place->format, "%.*s", said.len ? (int) said.len - 1 : 0, said.data);
    if (strcmp(place->format, "sha1") != 0 && strcmp(place->format, "sha256") != 0)
        return weft__snap_refuse(s, -EREMOTEIO, "the repository has objects of an unknown format");
    if (!weft__snap_git(s, &(snap_run){.argv = settings, .theirs = true, .may_fail = true}))
        return false;
    read_few_settings(s);
    look_for_attributes(place);
    if (!is_real_folder(common, "objects") || !may_hold_refs(common))
        return weft__snap_refuse(s, -EREMOTEIO, "the repository's objects or refs are links to somewhere else");
    snprintf(place->objects, sizeof place->objects, "%s/objects", common);
    return true;
}

/* ---- what is ours ---- */

static int write_small(const char *folder, const char *name, weft_bytes a, weft_bytes b) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    bool good = write(fd, a.data, a.len) == (ssize_t) a.len && write(fd, b.data, b.len) == (ssize_t) b.len;
    close(fd);
    return good ? 0 : -EIO;
}

/* What is not a small file is not read. */
bool weft__snap_excludes(snap *s, weft_buf *ret) {
    const snap_place *place = &s->own->place;
    char path[PATH_MAX + 32];
    struct stat st;
    snprintf(path, sizeof path, "%s/info/exclude", place->repository.common);
    int fd = place->git ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    int r = 0;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= WEFT_SNAPSHOT_RULES) {
        r = weft__buf_reserve(ret, s->own->alloc, WEFT_SNAPSHOT_RULES);
        ssize_t n = r < 0 ? 0 : read(fd, ret->data, WEFT_SNAPSHOT_RULES);
        ret->end = n > 0 ? (size_t) n : 0;
    }
    if (fd >= 0)
        close(fd);
    return r == 0 || weft__snap_fail(s, r);
}

bool weft__snap_use_excludes(snap *s, const weft_buf *text) {
    weft_bytes theirs = {weft__buf_len(text) ? weft__buf_head(text) : "", weft__buf_len(text)};
    int r = write_small(s->own->place.own, "info/exclude", theirs, (weft_bytes){excludes, sizeof excludes - 1});
    return r == 0 || weft__snap_fail(s, r);
}

static bool copy_excludes(snap *s) {
    weft_buf text = {0};
    bool good = weft__snap_excludes(s, &text) && weft__snap_use_excludes(s, &text);
    weft__buf_done(&text, s->own->alloc);
    return good;
}

bool weft__snap_make_folder(snap *s, const char *path) {
    struct stat st;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return weft__snap_fail(s, -errno);
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return weft__snap_refuse(s, -EPERM, "%s is not a folder of this user", path);
    return true;
}

/* Nobody else uses it, so a lock in it is of a program that was killed. */
static void remove_locks(const snap_place *place) {
    static const char *const names[] = {"index.lock", "own.index.lock",   "undo.index.lock",
                                        "HEAD.lock",  "packed-refs.lock", "config.lock"};
    char path[PATH_MAX + 32];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", place->own, names[i]);
        unlink(path);
    }
}

/* The folder is ours, and so are its files, but an agent can write to them: what would have git read other settings or
 * attributes there, and with them run something outside of the agent's guard, is put right before each use. */
static bool is_untouched(const snap_place *place) {
    static const char *const strange[] = {"commondir", "config.worktree"};
    char path[PATH_MAX + 32];
    struct stat st;
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", place->own, strange[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/config", place->own);
    return lstat(path, &st) == 0 && st.st_ino == place->config.st_ino && st.st_size == place->config.st_size &&
           st.st_ctim.tv_sec == place->config.st_ctim.tv_sec && st.st_ctim.tv_nsec == place->config.st_ctim.tv_nsec;
}

static bool write_attributes(snap *s) {
    int r = write_small(s->own->place.own, "info/attributes", (weft_bytes){attributes, sizeof attributes - 1},
                        (weft_bytes){"", 0});
    return r == 0 || weft__snap_fail(s, r);
}

/* One for each format of objects: a repository may be made anew with the other. Its configuration is always made anew. */
static bool make_own(snap *s) {
    snap_place *place = &s->own->place;
    char path[PATH_MAX + 32], format[40];
    const char *const init[] = {"init", "--quiet", "--bare", "--template=", format, place->own, NULL};
    snprintf(path, sizeof path, "%s/changes", s->own->state);
    snprintf(format, sizeof format, "--object-format=%s", place->format);
    if (!weft__snap_make_folder(s, path))
        return false;
    if (strlen(path) + 16 >= sizeof place->own)
        return weft__snap_fail(s, -ENAMETOOLONG);
    snprintf(place->own, sizeof place->own, "%.*s/%s", (int) sizeof place->own - 16, path, place->format);
    snprintf(place->index, sizeof place->index, "%s/%s", place->own, place->git ? "index" : "own.index");
    if (!weft__snap_make_folder(s, place->own))
        return false;
    remove_locks(place);
    (void) is_untouched(place);
    snprintf(path, sizeof path, "%s/config", place->own);
    unlink(path);
    if (!weft__snap_git(s, &(snap_run){.argv = init, .theirs = true}))
        return false;
    if (lstat(path, &place->config) < 0)
        return weft__snap_fail(s, -errno);
    snprintf(path, sizeof path, "%s/info", place->own);
    return weft__snap_make_folder(s, path);
}

/* ---- finding ---- */

static bool is_same_place(const snap_place *place, const weft_repository *found, bool git) {
    return place->known && place->git == git && strcmp(place->repository.top, found->top) == 0 &&
           strcmp(place->repository.prefix, found->prefix) == 0 && strcmp(place->repository.common, found->common) == 0;
}

static bool move_to_place(snap *s, const weft_repository *found, bool git) {
    snap_place *place = &s->own->place;
    *place = (snap_place){.git = git, .repository = *found, .format = "sha1"};
    s->own->kept_known = false;
    s->own->index = (struct stat){0};
    *s->own->latest = '\0';
    if (s->own->root >= 0)
        close(s->own->root);
    s->own->root = open(found->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->own->root < 0)
        return weft__snap_fail(s, -errno);
    place->known = (!git || ask_repository(s)) && make_own(s);
    return place->known;
}

static const char *kind_of_folder(const snap *s) {
    return s->own->project ? "the worktree" : "the project's folder";
}

/* A link, or another folder, in its place would have files elsewhere read and written. */
static bool is_still_there(snap *s) {
    struct stat st;
    if (lstat(s->own->folder, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? weft__snap_refuse(s, -EREMOTEIO, "%s is not there any more", kind_of_folder(s))
                   : weft__snap_fail(s, -errno);
    if (st.st_dev == s->own->dev && st.st_ino == s->own->ino)
        return true;
    return weft__snap_refuse(s, -EREMOTEIO, "somebody has put something else in the place of %s", kind_of_folder(s));
}

/* Without its .git it would be a folder of the project's repository, and with another one a repository of its own. */
static bool is_still_worktree(snap *s, const weft_repository *found, int r) {
    weft_repository of;
    if (!s->own->project || (r < 0 && r != -ENOENT))
        return true;
    bool good = r == 0 && strcmp(found->top, s->own->folder) == 0 && weft__repository_find(s->own->project, &of) == 0 &&
                strcmp(found->common, of.common) == 0;
    return good || weft__snap_refuse(s, -EREMOTEIO, "this is not the worktree any more: its .git is gone or is another one");
}

bool weft__snap_find(snap *s) {
    weft_repository found = {0};
    if (!s->own->program)
        return weft__snap_fail(s, s->own->no_program);
    if (!is_still_there(s))
        return false;
    int r = weft__repository_find(s->own->folder, &found);
    if (!is_still_worktree(s, &found, r))
        return false;
    if (r == -EXDEV)
        return weft__snap_refuse(s, -EREMOTEIO,
                                 "the .git of this folder leads to a repository that does not know this folder");
    if (r < 0 && r != -ENOENT)
        return weft__snap_fail(s, r);
    if (r == -ENOENT) {
        found = (weft_repository){0};
        snprintf(found.top, sizeof found.top, "%s", s->own->folder);
    }
    bool same = is_same_place(&s->own->place, &found, r == 0) && is_untouched(&s->own->place);
    return (same || move_to_place(s, &found, r == 0)) && write_attributes(s) && copy_excludes(s);
}
