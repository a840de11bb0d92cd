/* Making a worktree, on the thread. What is to be made is written down first, so that one that was only begun is known as
 * such: nobody has worked in it, and it is begun anew.
 *
 *     nothing ──write_record("making")──▶ begun ──git worktree add, files──▶ filled ──write_record("made")──▶ made
 *
 * git makes the branch and its own folder for the worktree. The files are checked out with our own git folder, which has no
 * configuration and whose attributes let nothing be converted. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worktrees_private.h"

#define LISTING (64u << 20)
#define RECORD 512
#define NAMES 100 /* that are tried until one is free */

/* ---- what is written down of one ---- */

typedef struct tree_place {
    char path[PATH_MAX], state[PATH_MAX + 8];
    bool begun, made;             /* by us, for this owner, */
    char base[WEFT_SNAPSHOT_HEX]; /* with this commit */
} tree_place;

static bool is_there(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0;
}

/* "mark owner step branch base", one line each. What is not of this journal is not read further. */
static bool read_lines(const snap *s, const char *state, snap_worktree *ret, char step[16]) {
    char path[PATH_MAX + 32], text[RECORD], *line[5], *rest = text;
    snprintf(path, sizeof path, "%s/record", state);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    for (size_t i = 0; i < 5; i++) {
        line[i] = rest;
        rest = strchr(rest, '\n');
        if (!rest)
            return false;
        *rest++ = '\0';
    }
    bool ours = strcmp(line[0], s->own->mark ? s->own->mark : "-") == 0 && strlen(line[1]) < sizeof ret->owner &&
                strlen(line[2]) < 16 && strncmp(line[3], "weft/", 5) == 0 && strlen(line[3]) < sizeof ret->branch &&
                weft__snap_is_hex(line[4]);
    if (!ours)
        return false;
    snprintf(ret->owner, sizeof ret->owner, "%s", line[1]);
    snprintf(step, 16, "%s", line[2]);
    snprintf(ret->branch, sizeof ret->branch, "%s", line[3]);
    snprintf(ret->base, sizeof ret->base, "%s", line[4]);
    return true;
}

static bool read_record(const snap *s, const char *state, snap_worktree *tree, bool *ret_made) {
    snap_worktree read;
    char step[16];
    if (!read_lines(s, state, &read, step) || strcmp(read.owner, tree->owner) != 0)
        return false;
    memcpy(tree->branch, read.branch, sizeof tree->branch);
    memcpy(tree->base, read.base, sizeof tree->base);
    *ret_made = strcmp(step, "making") != 0;
    return true;
}

static bool write_record(snap *s, const tree_place *at, const snap_worktree *tree, const char *step) {
    char path[PATH_MAX + 32], text[RECORD];
    int n = snprintf(text, sizeof text, "%s\n%s\n%s\n%s\n%s\n", s->own->mark ? s->own->mark : "-", tree->owner, step,
                     tree->branch, tree->base);
    snprintf(path, sizeof path, "%s/record", at->state);
    int r = weft__snap_write_durably(path, (weft_bytes){text, (size_t) n});
    return r == 0 || weft__snap_fail(s, r);
}

bool weft__snap_tree_record_read(const snap *s, const char *name, snap_worktree *ret, char *ret_step) {
    char state[PATH_MAX + 8];
    snprintf(ret->name, sizeof ret->name, "%s", name);
    int n = snprintf(state, sizeof state, "%s/worktrees/%s.state", s->own->state, name);
    return n < (int) sizeof state && read_lines(s, state, ret, ret_step);
}

bool weft__snap_tree_record_write(snap *s, const snap_worktree *tree, const char *step) {
    tree_place at = {0};
    int n = snprintf(at.state, sizeof at.state, "%s/worktrees/%s.state", s->own->state, tree->name);
    return n < (int) sizeof at.state ? write_record(s, &at, tree, step) : weft__snap_fail(s, -ENAMETOOLONG);
}

/* ---- a name for it ---- */

static bool has_ref(snap *s, const char *branch, bool *ret) {
    char ref[128];
    const char *const argv[] = {"rev-parse", "--verify", "--quiet", "--end-of-options", ref, NULL};
    snprintf(ref, sizeof ref, "refs/heads/%s", branch);
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true, .may_fail = true}))
        return false;
    *ret = s->end.exit_code == 0;
    return true;
}

/* The first name under which there is nothing, or what we began or made. A branch or a folder that is there belongs to
 * somebody else, an earlier journal for instance, and stays. */
static bool find_name(snap *s, snap_worktree *tree, tree_place *at) {
    for (int i = 1; i <= NAMES; i++) {
        bool taken = false;
        int n = i == 1 ? snprintf(tree->name, sizeof tree->name, "%.47s", tree->owner)
                       : snprintf(tree->name, sizeof tree->name, "%.47s-%d", tree->owner, i);
        if (n < 0 || snprintf(at->path, sizeof at->path, "%s/worktrees/%s", s->own->state, tree->name) >= PATH_MAX)
            return weft__snap_fail(s, -ENAMETOOLONG);
        snprintf(at->state, sizeof at->state, "%s.state", at->path);
        at->begun = read_record(s, at->state, tree, &at->made);
        memcpy(at->base, tree->base, sizeof at->base);
        if (at->begun)
            return true;
        snprintf(tree->branch, sizeof tree->branch, "weft/%s", tree->name);
        if (!has_ref(s, tree->branch, &taken))
            return false;
        if (!taken && !is_there(at->path) && !is_there(at->state))
            return true;
    }
    return weft__snap_refuse(s, -EREMOTEIO, "too many branches begin with weft/%s", tree->owner);
}

/* ---- may there be one? ---- */

static bool is_ignored(snap *s, const tree_place *at) {
    const char *const argv[] = {"check-ignore", "--quiet", "--no-index", "--", at->path, NULL};
    const char *top = s->own->place.repository.top;
    size_t len = strlen(top);
    if (strncmp(at->path, top, len) != 0 || (at->path[len] != '/' && len > 1))
        return true; /* it is not among the repository's files at all */
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true, .may_fail = true, .magic = true}))
        return false;
    if (s->end.exit_code > 1)
        return weft__snap_refuse(s, -EREMOTEIO, "git check-ignore: %s", s->end.errors);
    return s->end.exit_code == 0 ||
           weft__snap_refuse(s, -EREMOTEIO, "git does not ignore %s, so a worktree there would be among the project's files",
                             at->path);
}

bool weft__snap_is_whole_checkout(snap *s) {
    static const char *const argv[] = {"config", "--type=bool", "--get", "core.sparseCheckout", NULL};
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true, .may_fail = true}))
        return false;
    weft_bytes said = weft__snap_output(s);
    bool sparse = s->end.exit_code == 0 && said.len >= 4 && memcmp(said.data, "true", 4) == 0;
    return !sparse || weft__snap_refuse(s, -EREMOTEIO,
                                        "this is a sparse checkout, and worktrees of these are not made; work in the "
                                        "project's folder instead");
}

/* git would wait for what a pipe says. */
static bool has_plain_files(snap *s) {
    static const char *const names[] = {"HEAD", "config", "index", "packed-refs", "info/exclude", "info/attributes"};
    char path[PATH_MAX + 32];
    struct stat st;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", s->own->place.repository.common, names[i]);
        if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
            return weft__snap_refuse(s, -EREMOTEIO, "%s of the repository is not a file", names[i]);
    }
    return true;
}

/* A branch is a file where refs are files: beside one that is called weft there is no weft/x. */
static bool may_have_branch(snap *s, const snap_worktree *tree) {
    char ref[128];
    bool taken = false;
    if (!has_ref(s, "weft", &taken))
        return false;
    if (taken)
        return weft__snap_refuse(s, -EREMOTEIO,
                                 "the repository has a branch weft, and beside it git allows no branch %s; rename it "
                                 "(git branch -m weft NAME)",
                                 tree->branch);
    snprintf(ref, sizeof ref, "refs/heads/%s", tree->branch);
    return weft__snap_logs_are_plain(s, ref);
}

static bool find_base(snap *s, snap_worktree *tree) {
    static const char *const argv[] = {"rev-parse", "--verify", "--quiet", "HEAD^{commit}", NULL};
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true, .may_fail = true}))
        return false;
    if (s->end.exit_code != 0)
        return weft__snap_refuse(s, -EREMOTEIO,
                                 "the repository has no commit yet, so there is nothing to begin a worktree with");
    return weft__snap_take_hex(s, tree->base);
}

/* "mode type name\tpath", each ends with NUL; the paths alone stay in ret. */
static bool list_paths(snap *s, const char *commit, weft_buf *ret) {
    const char *const argv[] = {"ls-tree", "-r", "-z", "--full-tree", commit, NULL};
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .max_output = LISTING}))
        return false;
    weft_bytes said = weft__snap_output(s);
    for (const char *at = said.data, *end = at + said.len; at < end;) {
        size_t len = strnlen(at, (size_t) (end - at));
        const char *tab = memchr(at, '\t', len);
        if (!tab)
            return weft__snap_refuse(s, -EBADMSG, "git did not list files");
        if (len > 14 && memcmp(at, "160000 ", 7) == 0)
            return strncmp(at + 14, SNAP_TOO_LARGE, sizeof SNAP_TOO_LARGE - 1) == 0
                       ? weft__snap_refuse(s, -EREMOTEIO,
                                           "%.200s has changed and is too large to be taken along into a worktree", tab + 1)
                       : weft__snap_refuse(s, -EREMOTEIO,
                                           "the repository has a submodule (%.200s), whose files a worktree would not have; "
                                           "work in the project's folder instead",
                                           tab + 1);
        if (weft__buf_put(ret, s->own->alloc, tab + 1, (size_t) (at + len - tab)) < 0)
            return weft__snap_fail(s, -ENOMEM);
        at += len + 1;
    }
    return true;
}

/* Files that go through a filter, as those of git-lfs, would not be what the agent expects. "path filter value", each with
 * NUL. */
static bool has_no_filters(snap *s, const weft_buf *paths) {
    static const char *const argv[] = {"check-attr", "--stdin", "-z", "filter", NULL};
    weft_bytes input = {weft__buf_head(paths), weft__buf_len(paths)};
    if (!input.len)
        return true;
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true, .input = input, .max_output = 2 * LISTING}))
        return false;
    weft_bytes said = weft__snap_output(s);
    const char *path = "";
    size_t part = 0;
    for (const char *at = said.data, *end = at + said.len; at < end; part = (part + 1) % 3) {
        size_t len = strnlen(at, (size_t) (end - at));
        if (part == 0)
            path = at;
        if (part == 2 && strcmp(at, "unspecified") != 0 && strcmp(at, "unset") != 0)
            return weft__snap_refuse(s, -EREMOTEIO,
                                     "files of the repository go through a filter (%.60s: %.200s), which does not run for a "
                                     "worktree; work in the project's folder instead",
                                     at, path);
        at += len + 1;
    }
    return true;
}

static bool may_be_checked_out(snap *s, const char *commit) {
    weft_buf paths = {0};
    bool good = list_paths(s, commit, &paths) && has_no_filters(s, &paths);
    weft__buf_done(&paths, s->own->alloc);
    return good;
}

/* ---- making it ---- */

/* One that was only begun: nobody has worked in it. The branch goes only if it still is what it began with. */
static bool forget_begun(snap *s, const char *path, const char *branch, const char *base) {
    char ref[128];
    const char *const remove[] = {"worktree", "remove", "--force", "--force", path, NULL};
    const char *const forget[] = {"update-ref", "-d", ref, base, NULL};
    snprintf(ref, sizeof ref, "refs/heads/%s", branch);
    return weft__snap_git(s, &(snap_run){.argv = remove, .theirs = true, .may_fail = true}) &&
           weft__snap_remove_whole(s, path) &&
           weft__snap_git(s, &(snap_run){.argv = forget, .theirs = true, .may_fail = true});
}

static bool prepare_place(snap *s, const snap_worktree *tree, const tree_place *at) {
    char folder[PATH_MAX + 16];
    snprintf(folder, sizeof folder, "%s/worktrees", s->own->state);
    if (!weft__snap_make_folder(s, folder) || !is_ignored(s, at))
        return false;
    if (at->begun && !forget_begun(s, at->path, tree->branch, at->base))
        return false;
    return weft__snap_make_folder(s, at->state) && write_record(s, at, tree, "making");
}

/* --force twice: what git knows of one that it only began is locked, and is replaced. */
static bool add_worktree(snap *s, const snap_worktree *tree, const tree_place *at) {
    const char *const argv[] = {"-c",         "gc.auto=0", "worktree", "add",        "--force", "--force",  "--no-checkout",
                                "--no-track", "--quiet",   "-b",       tree->branch, at->path,  tree->base, NULL};
    return weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true});
}

static bool check_out(snap *s, const tree_place *at, const char *what) {
    weft_repository found;
    char index[PATH_MAX + 16];
    const char *const argv[] = {"read-tree", "--reset", "-u", what, NULL};
    int r = weft__repository_find(at->path, &found);
    if (r < 0 || strcmp(found.common, s->own->place.repository.common) != 0)
        return weft__snap_refuse(s, -EREMOTEIO, "git made a worktree that is not of this repository");
    int folder = open(at->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return weft__snap_fail(s, -errno);
    snprintf(index, sizeof index, "%s/index", found.dir);
    bool good = weft__snap_git(s, &(snap_run){.argv = argv, .index = index, .work_tree = at->path, .folder = folder});
    close(folder);
    return good;
}

/* The files are those of a snapshot, and the index is the commit's: so they are changes that are not committed. */
static bool reset_index(snap *s, const snap_worktree *tree, const tree_place *at) {
    weft_repository found;
    char index[PATH_MAX + 16];
    const char *const argv[] = {"read-tree", tree->base, NULL};
    static const char *const refresh[] = {"update-index", "-q", "--refresh", NULL};
    if (weft__repository_find(at->path, &found) < 0)
        return weft__snap_fail(s, -ENOENT);
    int folder = open(at->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return weft__snap_fail(s, -errno);
    snprintf(index, sizeof index, "%s/index", found.dir);
    bool good =
        weft__snap_git(s, &(snap_run){.argv = argv, .index = index, .work_tree = at->path, .folder = folder}) &&
        weft__snap_git(
            s, &(snap_run){.argv = refresh, .index = index, .work_tree = at->path, .folder = folder, .may_fail = true});
    close(folder);
    return good;
}

/* What cannot be removed now is known as begun. */
static void take_back(snap *s, const snap_worktree *tree, const tree_place *at) {
    snap t = {.own = s->own};
    if (forget_begun(&t, at->path, tree->branch, tree->base))
        weft__snap_remove_whole(&t, at->state);
    weft__snap_done(&t);
}

static bool fill_place(snap *s, const snap_worktree *tree, const tree_place *at, const char *files) {
    return add_worktree(s, tree, at) && check_out(s, at, files) && (!tree->changes || reset_index(s, tree, at)) &&
           write_record(s, at, tree, "made");
}

bool weft__snap_worktree(snap *s, snap_worktree *tree) {
    tree_place at = {0};
    char files[WEFT_SNAPSHOT_HEX];
    if (!weft__snap_find(s))
        return false;
    if (!s->own->place.git)
        return weft__snap_refuse(s, -EREMOTEIO,
                                 "this folder is not in a git repository, so there are no worktrees; \"git init\" and a "
                                 "first commit make it one");
    if (*s->own->place.repository.prefix)
        return weft__snap_refuse(s, -EREMOTEIO,
                                 "the project's folder is not the top of its repository, and worktrees are made only there");
    if (!find_name(s, tree, &at))
        return false;
    if (at.made && is_there(at.path)) {
        char path[PATH_MAX + 32];
        snprintf(path, sizeof path, "%s/set-up", at.state);
        tree->set_up = is_there(path);
        return true;
    }
    if (at.made)
        return weft__snap_refuse(s, -EREMOTEIO, "the worktree of this session was removed; its branch is %s", tree->branch);
    if (!has_plain_files(s) || !may_have_branch(s, tree) || !weft__snap_is_whole_checkout(s) || !find_base(s, tree))
        return false;
    if (tree->changes && !weft__snap_take(s, files))
        return false;
    if (!tree->changes)
        snprintf(files, sizeof files, "%s", tree->base);
    if (!may_be_checked_out(s, files) || !prepare_place(s, tree, &at))
        return false;
    bool good = fill_place(s, tree, &at, files);
    if (!good)
        take_back(s, tree, &at);
    return good;
}
