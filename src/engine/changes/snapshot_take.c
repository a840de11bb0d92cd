/* Taking a snapshot, on the thread: what differs from our index is looked at and put into it, and the index written as a
 * tree. When nothing has changed, that is one walk over the files.
 *
 * The index begins as a copy of the user's, so that files that git knows already need not be read. git lists what may have
 * changed; each path is looked at here, without following links, before git is told to read it. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "snapshots_private.h"

#define INDEX_MAX ((off_t) 1 << 30) /* bytes of the user's index */
#define PIECE (64u << 10)
#define NESTED_MAX 64 /* repositories inside whose commit changed; each is a program */

/* ---- the index ---- */

static bool copy_bytes(int from, int to, char *piece) {
    for (;;) {
        ssize_t n = read(from, piece, PIECE);
        if (n <= 0)
            return n == 0;
        for (ssize_t done = 0, w; done < n; done += w)
            if ((w = write(to, piece + done, (size_t) (n - done))) <= 0)
                return false;
    }
}

/* The copy is as old as the original: git reads files again that were changed when the index was written, or later.
 * 1 copied, 0 there is none that can be used. */
static int copy_index(snap *s, const char *from, const char *to) {
    struct stat st;
    char beside[PATH_MAX + 32];
    int r = 0, in = open(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (in < 0)
        return 0;
    char *piece = weft__alloc(s->own->alloc, PIECE);
    snprintf(beside, sizeof beside, "%s.new", to);
    int out = piece ? open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    if (!piece)
        r = -ENOMEM;
    else if (out >= 0 && fstat(in, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= INDEX_MAX)
        r = copy_bytes(in, out, piece) && futimens(out, (struct timespec[2]){st.st_atim, st.st_mtim}) == 0 &&
            rename(beside, to) == 0;
    if (out >= 0)
        close(out);
    close(in);
    weft__free(s->own->alloc, piece);
    return r;
}

static bool put_path_end(snap *s, weft_buf *list, const char *path, size_t len) {
    if (weft__buf_put(list, s->own->alloc, path, len) < 0 || weft__buf_put(list, s->own->alloc, "", 1) < 0)
        return weft__snap_fail(s, -ENOMEM);
    return true;
}

static weft_bytes bytes_of(const weft_buf *buf) {
    return (weft_bytes){weft__buf_len(buf) ? weft__buf_head(buf) : "", weft__buf_len(buf)};
}

static bool update_index(snap *s, const char *option, const weft_buf *paths) {
    const char *const argv[] = {"update-index", "-z", option, "--stdin", NULL};
    return !weft__buf_len(paths) || weft__snap_git(s, &(snap_run){.argv = argv, .input = bytes_of(paths)});
}

static bool is_closed_path(const char *path) {
    char room[PATH_MAX];
    return weft__beneath_check((weft_bytes){path, strlen(path)}, room) < 0;
}

static bool is_attributes(const char *path) {
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, ".gitattributes") == 0;
}

/* What git knows of a file is what is in it, unless something converts on the way: line ends, a filter, git-lfs. Then git's
 * word does not count, and each file is read once. */
static bool forget_seed_times(snap *s) {
    static const char *const put[] = {"update-index", "-z", "--index-info", NULL};
    static const char *const refresh[] = {"update-index", "-q", "--refresh", "--ignore-submodules", NULL};
    weft_bytes said = weft__snap_output(s);
    weft_buf lines = {0};
    int r = 0;
    for (const char *at = said.data, *end = at + said.len; r == 0 && at < end; at += strlen(at) + 1)
        r = weft__buf_put(&lines, s->own->alloc, at + 2, strlen(at + 2) + 1);
    bool good = (r == 0 || weft__snap_fail(s, r)) &&
                weft__snap_git(s, &(snap_run){.argv = put, .input = bytes_of(&lines)}) &&
                weft__snap_git(s, &(snap_run){.argv = refresh, .may_fail = true, .may_cut = true});
    weft__buf_done(&lines, s->own->alloc);
    return good;
}

/* "H 100644 <name> 0\tpath": a small letter or an "S" hides changes from git, a stage is one side of a merge. */
static bool sort_seed(snap *s, weft_buf *hidden, weft_buf *removed) {
    weft_bytes said = weft__snap_output(s);
    bool good = true, converts = s->own->place.converts;
    for (const char *at = said.data, *end = at + said.len; good && at < end;) {
        size_t len = strnlen(at, (size_t) (end - at));
        const char *tab = memchr(at, '\t', len);
        if (!tab || tab - at < 4)
            return weft__snap_refuse(s, -EBADMSG, "git's index was not understood");
        converts |= is_attributes(tab + 1);
        if (tab[-1] != '0' || is_closed_path(tab + 1))
            good = put_path_end(s, removed, tab + 1, strlen(tab + 1));
        else if (islower((unsigned char) *at) || *at == 'S')
            good = put_path_end(s, hidden, tab + 1, strlen(tab + 1));
        at += len + 1;
    }
    return good && (!converts || forget_seed_times(s));
}

/* Both sides of a merge, hidden files and the hub's own go: what is on the disk counts. */
static bool tidy_seed(snap *s) {
    static const char *const list[] = {"ls-files", "-z", "-v", "--stage", NULL};
    weft_buf hidden = {0}, removed = {0};
    bool good = weft__snap_git(s, &(snap_run){.argv = list, .max_output = WEFT_SNAPSHOT_LIST * 2}) &&
                sort_seed(s, &hidden, &removed) && update_index(s, "--force-remove", &removed) &&
                update_index(s, "--no-assume-unchanged", &hidden) && update_index(s, "--no-skip-worktree", &hidden);
    weft__buf_done(&hidden, s->own->alloc);
    weft__buf_done(&removed, s->own->alloc);
    return good;
}

/* A copy that git cannot read is worth nothing, but it is no reason to fail: all files are read then. */
static bool seed_index(snap *s) {
    const snap_place *place = &s->own->place;
    char from[PATH_MAX + 16];
    struct stat st;
    if (!place->git || lstat(place->index, &st) == 0)
        return true;
    snprintf(from, sizeof from, "%s/index", place->repository.dir);
    int r = copy_index(s, from, place->index);
    if (r < 0)
        return weft__snap_fail(s, r);
    if (r == 0 || tidy_seed(s))
        return true;
    if (s->r == -ECANCELED || s->r == -ENOMEM || s->r == -ETIMEDOUT)
        return false;
    s->r = 0;
    *s->message = '\0';
    unlink(place->index);
    return true;
}

/* ---- what may have changed ---- */

typedef struct candidates {
    weft_buf add, remove, large, nested;
    size_t count;
    uint64_t bytes;
    int folder; /* the last one that was opened, */
    char folder_path[PATH_MAX];
} candidates;

static void free_candidates(snap *s, candidates *c) {
    weft_buf *bufs[] = {&c->add, &c->remove, &c->large, &c->nested};
    for (size_t i = 0; i < 4; i++)
        weft__buf_done(bufs[i], s->own->alloc);
    if (c->folder >= 0)
        close(c->folder);
}

/* The folder of a path, opened without following links; -1: there is none such. */
static int open_parent(snap *s, candidates *c, const char *path, size_t len) {
    if (c->folder >= 0 && strlen(c->folder_path) == len && memcmp(c->folder_path, path, len) == 0)
        return c->folder;
    if (c->folder >= 0)
        close(c->folder);
    c->folder = -1;
    if (len >= PATH_MAX)
        return -1;
    memcpy(c->folder_path, path, len);
    c->folder_path[len] = '\0';
    int fd = weft__beneath_open(s->own->root, len ? c->folder_path : ".", O_PATH | O_DIRECTORY, 0);
    return c->folder = fd < 0 ? -1 : fd;
}

static bool put_large(snap *s, candidates *c, const char *path, const struct stat *st) {
    static const char zeros[] = "000000000000000000000000";
    char line[128];
    bool longer = strcmp(s->own->place.format, "sha256") == 0;
    uint64_t time = (uint64_t) st->st_mtim.tv_sec * 1000000000u + (uint64_t) st->st_mtim.tv_nsec;
    int n = snprintf(line, sizeof line, "160000 " SNAP_TOO_LARGE "%016llx%016llx%s 0\t", (unsigned long long) st->st_size,
                     (unsigned long long) time, longer ? zeros : "");
    if (weft__buf_put(&c->large, s->own->alloc, line, (size_t) n) < 0)
        return weft__snap_fail(s, -ENOMEM);
    return put_path_end(s, &c->large, path, strlen(path));
}

static bool put_regular(snap *s, candidates *c, const char *path, const char *name, const struct stat *st) {
    if ((uint64_t) st->st_size > s->own->max_file)
        return put_large(s, c, path, st);
    if (faccessat(c->folder, name, R_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0)
        return true; /* nobody can say what is in it; as it was */
    c->bytes += (uint64_t) st->st_size;
    return put_path_end(s, &c->add, path, strlen(path));
}

static bool has_dot_git(int folder, const char *name) {
    struct stat st;
    int fd = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool has = fd >= 0 && fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (fd >= 0)
        close(fd);
    return has;
}

static bool put_candidate(snap *s, candidates *c, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct stat st;
    int folder = is_closed_path(path) ? -1 : open_parent(s, c, path, slash ? (size_t) (slash - path) : 0);
    if (folder < 0 || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return put_path_end(s, &c->remove, path, strlen(path));
    if (S_ISREG(st.st_mode))
        return put_regular(s, c, path, name, &st);
    if (S_ISLNK(st.st_mode))
        return put_path_end(s, &c->add, path, strlen(path));
    if (S_ISDIR(st.st_mode) && has_dot_git(folder, name))
        return put_path_end(s, &c->nested, path, strlen(path));
    return put_path_end(s, &c->remove, path, strlen(path));
}

/* "C path": changed, "R path": removed, "? path": new. Another repository has a slash at its end. */
static bool sort_candidates(snap *s, weft_buf *listed, candidates *c) {
    char *at = weft__buf_head(listed), *end = weft__buf_tail(listed);
    bool good = true;
    while (good && at < end) {
        size_t len = strnlen(at, (size_t) (end - at));
        if (len < 3 || at + len == end)
            return weft__snap_refuse(s, -EBADMSG, "git's list of files was not understood");
        if (at[len - 1] == '/')
            at[len - 1] = '\0';
        c->count++;
        good = put_candidate(s, c, at + 2);
        at += len + 1;
    }
    if (good && (c->count > WEFT_SNAPSHOT_NEW_FILES || c->bytes > WEFT_SNAPSHOT_NEW_BYTES))
        return weft__snap_refuse(s, -EFBIG,
                                 "too much is new at once: %zu files of %llu MiB; let git ignore what is not yours",
                                 c->count, (unsigned long long) (c->bytes >> 20));
    return good;
}

static bool list_candidates(snap *s, weft_buf *ret) {
    const char *prefix = s->own->place.repository.prefix;
    const char *const argv[] = {
        "ls-files", "-z", "-t", "-m", "-d", "-o", "--exclude-standard", "--", *prefix ? prefix : NULL, NULL};
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .max_output = WEFT_SNAPSHOT_LIST}))
        return false;
    *ret = s->end.output;
    s->end.output = (weft_buf){0};
    return true;
}

/* ---- what is tracked though it is ignored ---- */

/* Whether the user's index is another than when we asked last. */
static bool is_index_new(const snap *s, const char *path, struct stat *ret) {
    const struct stat *was = &s->own->index;
    return s->own->place.git && lstat(path, ret) == 0 && S_ISREG(ret->st_mode) &&
           (ret->st_ino != was->st_ino || ret->st_size != was->st_size || ret->st_mtim.tv_sec != was->st_mtim.tv_sec ||
            ret->st_mtim.tv_nsec != was->st_mtim.tv_nsec);
}

/* An index in parts can be read only where it is; the rules are ours there too. */
static bool list_forced(snap *s, const char *index) {
    char ours[PATH_MAX + 64], users[PATH_MAX + 32];
    const snap_place *place = &s->own->place;
    const char *prefix = *place->repository.prefix ? place->repository.prefix : NULL;
    const char *const argv[] = {"ls-files", "-z", "-c", "-i", "--exclude-standard", "--", prefix, NULL};
    const char *const there[] = {
        "ls-files", "-z",   "-c", "-i", "--exclude-per-directory=.gitignore", ours, *place->excludes ? users : ours,
        "--",       prefix, NULL};
    snprintf(ours, sizeof ours, "--exclude-from=%s/info/exclude", place->own);
    snprintf(users, sizeof users, "--exclude-from=%s", place->excludes);
    snap_run run = {.argv = argv, .index = index, .max_output = WEFT_SNAPSHOT_LIST, .may_fail = true};
    if (!weft__snap_git(s, &run) || s->end.exit_code == 0)
        return s->r == 0;
    run = (snap_run){.argv = there, .theirs = true, .max_output = WEFT_SNAPSHOT_LIST, .may_fail = true};
    return weft__snap_git(s, &run);
}

/* Files that somebody has added with force are in no list of what is new. */
static bool add_forced(snap *s, candidates *c) {
    char path[PATH_MAX + 16];
    struct stat st;
    bool good = true;
    snprintf(path, sizeof path, "%s/index", s->own->place.repository.dir);
    if (!is_index_new(s, path, &st))
        return true;
    if (!list_forced(s, path))
        return false;
    weft_bytes said = s->end.exit_code == 0 ? weft__snap_output(s) : (weft_bytes){"", 0};
    for (const char *at = said.data, *end = at + said.len; good && at < end; at += strlen(at) + 1)
        good = put_candidate(s, c, at);
    s->own->index = st;
    return good;
}

/* ---- both ---- */

/* One by one: one without a commit cannot be added, and git stops there. */
static bool add_nested(snap *s, const candidates *c) {
    static const char *const argv[] = {"update-index", "-z", "--add", "--replace", "--remove", "--stdin", NULL};
    size_t count = 0;
    for (const char *at = weft__buf_head(&c->nested), *end = weft__buf_tail(&c->nested); at < end && count++ < NESTED_MAX;
         at += strlen(at) + 1)
        if (!weft__snap_git(s, &(snap_run){.argv = argv, .input = {at, strlen(at) + 1}, .may_fail = true}))
            return false;
    return true;
}

static bool put_into_index(snap *s, const candidates *c) {
    static const char *const add[] = {"update-index", "-z", "--add", "--replace", "--remove", "--stdin", NULL};
    static const char *const large[] = {"update-index", "-z", "--add", "--replace", "--index-info", NULL};
    return update_index(s, "--force-remove", &c->remove) &&
           (!weft__buf_len(&c->add) || weft__snap_git(s, &(snap_run){.argv = add, .input = bytes_of(&c->add)})) &&
           (!weft__buf_len(&c->large) || weft__snap_git(s, &(snap_run){.argv = large, .input = bytes_of(&c->large)})) &&
           add_nested(s, c);
}

static bool renew_index(snap *s) {
    weft_buf listed = {0};
    candidates c = {.folder = -1};
    bool good = list_candidates(s, &listed) && sort_candidates(s, &listed, &c) && add_forced(s, &c) && put_into_index(s, &c);
    free_candidates(s, &c);
    weft__buf_done(&listed, s->own->alloc);
    return good;
}

/* ---- the tree ---- */

/* Of the folder alone. 1 written, 0 the index knows of objects that are gone, or cannot be read. */
static int write_tree(snap *s, char ret[WEFT_SNAPSHOT_HEX]) {
    char prefix[PATH_MAX + 16];
    const char *const argv[] = {"write-tree", *s->own->place.repository.prefix ? prefix : NULL, NULL};
    const char *const empty[] = {"mktree", NULL};
    snprintf(prefix, sizeof prefix, "--prefix=%s", s->own->place.repository.prefix);
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .may_fail = true}))
        return -1;
    if (s->end.exit_code != 0 && strstr(s->end.errors, "not found") && argv[1])
        return weft__snap_git(s, &(snap_run){.argv = empty}) && weft__snap_take_hex(s, ret) ? 1 : -1;
    if (s->end.exit_code != 0)
        return 0;
    return weft__snap_take_hex(s, ret) ? 1 : -1;
}

static bool forget_failure(snap *s) {
    if (s->r != -EREMOTEIO && s->r != 0)
        return false;
    s->r = 0;
    *s->message = '\0';
    unlink(s->own->place.index);
    return true;
}

static int try_to_take(snap *s, char ret[WEFT_SNAPSHOT_HEX]) {
    return seed_index(s) && renew_index(s) ? write_tree(s, ret) : s->r == -EREMOTEIO ? 0 : -1;
}

/* An index that does not work is made anew, once. */
bool weft__snap_take(snap *s, char ret[WEFT_SNAPSHOT_HEX]) {
    if (!weft__snap_find(s))
        return false;
    int r = try_to_take(s, ret);
    if (r == 0 && forget_failure(s))
        r = try_to_take(s, ret);
    if (r > 0)
        return true;
    return weft__snap_refuse(s, -EREMOTEIO, "git write-tree: %s", s->end.errors);
}
