/* What an agent did in its worktree and did not commit becomes a commit on the worktree's branch. It is made by git's
 * plumbing: no hook runs, nothing is signed, and files are stored byte by byte as they are. The author is the user.
 *
 *     files ──snapshot──▶ tree ──commit-tree──▶ commit ──▶ index of the worktree ──▶ branch
 *
 * Whatever is interrupted between two of these loses nothing: the files stay as they are, and the next attempt begins anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "worktrees_private.h"

#define IDENTITY 6 /* variables that say who the user is */

void weft__snap_tree_merge_done(snap *s, tree_merge *merge) {
    weft__snap_conflicts_done(s, &merge->conflicts);
    merge->message = weft__free(s->own->alloc, merge->message);
}

/* ---- asking the repository ---- */

bool weft__snap_tree_rev(snap *s, const char *what, char ret[WEFT_SNAPSHOT_HEX]) {
    const char *const argv[] = {"rev-parse", "--verify", "--quiet", "--end-of-options", what, NULL};
    *ret = '\0';
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true, .may_fail = true}))
        return false;
    return s->end.exit_code != 0 || weft__snap_take_hex(s, ret);
}

bool weft__snap_tree_is_ancestor(snap *s, const char *a, const char *b, bool *ret) {
    const char *const argv[] = {"merge-base", "--is-ancestor", a, b, NULL};
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true, .may_fail = true}))
        return false;
    *ret = s->end.exit_code == 0;
    return true;
}

static bool is_in_git_folder(const snap *s, const char *name) {
    char path[PATH_MAX + 32];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", s->own->place.repository.dir, name);
    return lstat(path, &st) == 0;
}

/* MERGE_HEAD is not among them: of a worktree's it is ours to go on with. */
static const char *under_way(const snap *s) {
    static const char *const signs[][2] = {{"rebase-merge", "a rebase"},
                                           {"rebase-apply", "a rebase"},
                                           {"CHERRY_PICK_HEAD", "a cherry-pick"},
                                           {"REVERT_HEAD", "a revert"},
                                           {"BISECT_LOG", "a bisect"}};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (is_in_git_folder(s, signs[i][0]))
            return signs[i][1];
    return NULL;
}

bool weft__snap_tree_head(snap *s, const char *where, char *ret, size_t size) {
    static const char *const argv[] = {"symbolic-ref", "--quiet", "HEAD", NULL};
    const char *what = under_way(s);
    if (what)
        return weft__snap_refuse(s, -EREMOTEIO, "%s is under way in %s; finish it or end it first", what, where);
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true, .may_fail = true}))
        return false;
    weft_bytes said = weft__snap_output(s);
    size_t prefix = sizeof "refs/heads/" - 1, len = said.len ? said.len - 1 : 0;
    if (s->end.exit_code != 0 || len <= prefix || memcmp(said.data, "refs/heads/", prefix) != 0)
        return weft__snap_refuse(s, -EREMOTEIO, "no branch is checked out in %s", where);
    if (len - prefix >= size)
        return weft__snap_fail(s, -ENAMETOOLONG);
    snprintf(ret, size, "%.*s", (int) (len - prefix), said.data + prefix);
    return true;
}

/* ---- writing a commit ---- */

/* What the daemon was started with, as a commit of the user's own would have it. */
static void find_identity(char room[IDENTITY][300], const char *ret[IDENTITY + 1]) {
    static const char *const names[IDENTITY] = {"GIT_AUTHOR_NAME",    "GIT_AUTHOR_EMAIL",    "GIT_AUTHOR_DATE",
                                                "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE"};
    size_t count = 0;
    for (size_t i = 0; i < IDENTITY; i++) {
        const char *value = strstr(names[i], "DATE") ? NULL : getenv(names[i]);
        if (!value || strlen(value) > 256)
            continue;
        snprintf(room[i], sizeof room[i], "%s=%s", names[i], value);
        ret[count++] = room[i];
    }
    ret[count] = NULL;
}

bool weft__snap_tree_commit_write(snap *s, const tree_commit *commit, char ret[WEFT_SNAPSHOT_HEX]) {
    char room[IDENTITY][300], tree[WEFT_SNAPSHOT_HEX + 16];
    const char *identity[IDENTITY + 1], *argv[12] = {"commit-tree", tree, "-F", "-", NULL};
    size_t count = 4;
    snprintf(tree, sizeof tree, "%s^{tree}", commit->tree);
    const char *const parents[] = {commit->first, commit->second};
    for (size_t i = 0; i < 2; i++)
        if (parents[i]) {
            argv[count++] = "-p";
            argv[count++] = parents[i];
        }
    argv[count] = NULL;
    find_identity(room, identity);
    snap_run run = {.argv = argv,
                    .input = {commit->message, strlen(commit->message)},
                    .theirs = !commit->ours,
                    .may_fail = true,
                    .env = commit->env ? commit->env : identity};
    if (!weft__snap_git(s, &run))
        return false;
    if (s->end.exit_code == 0)
        return weft__snap_take_hex(s, ret);
    bool nobody = strstr(s->end.errors, "tell me who you are") || strstr(s->end.errors, "empty ident");
    return nobody ? weft__snap_refuse(s, -EREMOTEIO,
                                      "git does not know who you are, so nothing can be committed: set user.name and "
                                      "user.email with git config")
                  : weft__snap_refuse(s, -EREMOTEIO, "git commit-tree: %s", s->end.errors);
}

/* ---- the worktree's index ---- */

static bool fill_index(snap *s, const char *index, const char *tree, weft_bytes stages) {
    const char *const read[] = {"read-tree", tree, NULL};
    static const char *const add[] = {"update-index", "-z", "--index-info", NULL};
    static const char *const refresh[] = {"update-index", "-q", "--unmerged", "--refresh", NULL};
    return weft__snap_git(s, &(snap_run){.argv = read, .index = index}) &&
           (!stages.len || weft__snap_git(s, &(snap_run){.argv = add, .index = index, .input = stages})) &&
           weft__snap_git(s, &(snap_run){.argv = refresh, .index = index, .may_fail = true});
}

/* By a rename, so that a program that is killed leaves no lock. Nobody but us works in the worktree now. */
bool weft__snap_tree_index_put(snap *s, const char *tree, weft_bytes stages) {
    char index[PATH_MAX + 32], lock[PATH_MAX + 40], to[PATH_MAX + 32];
    snprintf(index, sizeof index, "%s/index.weft", s->own->place.repository.dir);
    snprintf(lock, sizeof lock, "%s.lock", index);
    snprintf(to, sizeof to, "%s/index", s->own->place.repository.dir);
    unlink(index);
    unlink(lock);
    if (fill_index(s, index, tree, stages))
        return rename(index, to) == 0 || weft__snap_fail(s, -errno);
    unlink(index);
    return false;
}

/* ---- is all of it fit for a commit? ---- */

static bool has_line_with(weft_bytes text, const char *begin) {
    size_t len = strlen(begin);
    for (const char *at = text.data, *end = at + text.len; (at = memmem(at, (size_t) (end - at), begin, len)); at += len)
        if (at == text.data || at[-1] == '\n')
            return true;
    return false;
}

static bool check_marks(snap *s, const snap_entry *entry, snap_conflicts *conflicts) {
    if ((entry->new_mode & 0170000) != SNAP_REGULAR)
        return true;
    if (!weft__snap_blob(s, entry->new_hex))
        return false;
    weft_bytes text = weft__snap_output(s);
    bool marked = has_line_with(text, "<<<<<<< ") && has_line_with(text, ">>>>>>> ");
    return !marked || weft__snap_conflict(s, conflicts, entry->path, "marked");
}

static bool add_change(snap *s, snap_plan *plan, const char *path, unsigned mode, const char *hex, const char *old_hex) {
    snap_step step = {.path = path, .new_mode = mode};
    snprintf(step.old_hex, sizeof step.old_hex, "%s", old_hex);
    snprintf(step.new_hex, sizeof step.new_hex, "%s", hex);
    return weft__snap_plan_add(s, plan, &step);
}

/* The hub's own files stay as they were committed; what is new and ignored is not committed. */
static bool mend_changes(snap *s, const snap_entries *entries, snap_plan *plan) {
    char room[PATH_MAX];
    bool *ignored = weft__zalloc(s->own->alloc, (entries->count + 1) * sizeof *ignored);
    bool good = ignored ? weft__snap_ignored_now(s, entries, ignored) : weft__snap_fail(s, -ENOMEM);
    for (size_t i = 0; good && i < entries->count; i++) {
        const snap_entry *entry = &entries->list[i];
        if (ignored[i] || weft__beneath_check((weft_bytes){entry->path, strlen(entry->path)}, room) < 0)
            good = add_change(s, plan, entry->path, entry->old_mode, entry->old_hex, entry->new_hex);
    }
    weft__free(s->own->alloc, ignored);
    return good;
}

/* What was taken out of git's index and is ignored goes, though the file is there ("git rm --cached"). An index that cannot
 * be read has nothing to say. */
static bool mend_untracked(snap *s, const char *had, snap_entries *staged, snap_plan *plan) {
    char index[PATH_MAX + 16];
    size_t count = 0;
    snprintf(index, sizeof index, "%s/index", s->own->place.repository.dir);
    if (!weft__snap_staged(s, had, index, staged)) {
        bool unread = s->r == -EREMOTEIO || s->r == -EBADMSG;
        s->r = unread ? 0 : s->r;
        *s->message = unread ? '\0' : *s->message;
        return unread;
    }
    for (size_t i = 0; i < staged->count; i++)
        if (staged->list[i].old_mode && !staged->list[i].new_mode) {
            snap_entry gone = staged->list[i];
            gone.new_mode = gone.old_mode;
            gone.old_mode = 0;
            staged->list[count++] = gone; /* as if it were new */
        }
    staged->count = count;
    bool *ignored = weft__zalloc(s->own->alloc, (count + 1) * sizeof *ignored);
    bool good = ignored ? weft__snap_ignored_now(s, staged, ignored) : weft__snap_fail(s, -ENOMEM);
    for (size_t i = 0; good && i < count; i++)
        if (ignored[i])
            good = add_change(s, plan, staged->list[i].path, 0, staged->list[i].old_hex, staged->list[i].old_hex);
    weft__free(s->own->alloc, ignored);
    return good;
}

/* A snapshot is not quite what git would commit. */
static bool mend_tree(snap *s, const char *had, char tree[WEFT_SNAPSHOT_HEX]) {
    snap_entries entries = {0}, staged = {0};
    snap_plan plan = {0};
    bool good = weft__snap_entries(s, had, tree, &entries) && mend_changes(s, &entries, &plan) &&
                mend_untracked(s, had, &staged, &plan);
    snprintf(plan.from, sizeof plan.from, "%s", tree);
    good = good && (!plan.count || weft__snap_plan_goal(s, &plan));
    if (good && plan.count)
        snprintf(tree, WEFT_SNAPSHOT_HEX, "%s", plan.to);
    weft__snap_plan_done(s, &plan);
    weft__snap_entries_done(s, &staged);
    weft__snap_entries_done(s, &entries);
    return good;
}

/* merging: marks of a merge that we left there are not to be committed. */
static bool may_be_committed(snap *s, const char *tip, const char *tree, bool merging, snap_conflicts *conflicts) {
    snap_entries entries = {0};
    bool good = weft__snap_entries(s, tip, tree, &entries);
    for (size_t i = 0; good && i < entries.count; i++) {
        const snap_entry *entry = &entries.list[i];
        if (weft__snap_is_too_large(entry->new_mode, entry->new_hex))
            good = weft__snap_refuse(s, -EREMOTEIO, "%.200s is too large to be committed by Weft; commit it yourself",
                                     entry->path);
        else if (entry->new_mode == SNAP_GITLINK && entry->old_mode != SNAP_GITLINK)
            good = weft__snap_refuse(s, -EREMOTEIO, "%.200s is a repository of its own inside of the worktree", entry->path);
        else if (merging)
            good = check_marks(s, entry, conflicts);
    }
    weft__snap_entries_done(s, &entries);
    return good;
}

/* ---- all of it ---- */

static bool forget_merge_head(const snap *s) {
    static const char *const names[] = {"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "AUTO_MERGE"};
    char path[PATH_MAX + 32];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", s->own->place.repository.dir, names[i]);
        unlink(path);
    }
    return true;
}

/* Behind an interruption the merge may be in the branch already. */
static bool add_commit(snap *s, tree_merge *merge, const char *tree, const char *other) {
    char ref[128], made[WEFT_SNAPSHOT_HEX];
    bool known = false;
    const char *const argv[] = {"update-ref", "-m", "weft: what was not committed", ref, made, merge->tip, NULL};
    if (*other && !weft__snap_tree_is_ancestor(s, other, merge->tip, &known))
        return false;
    tree_commit commit = {
        .tree = tree, .first = merge->tip, .second = *other && !known ? other : NULL, .message = merge->message};
    snprintf(ref, sizeof ref, "refs/heads/%s", merge->branch);
    if (!weft__snap_logs_are_plain(s, ref))
        return false;
    if (!weft__snap_tree_commit_write(s, &commit, made) || !weft__snap_tree_index_put(s, tree, (weft_bytes){"", 0}) ||
        !weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true}))
        return false;
    snprintf(merge->tip, sizeof merge->tip, "%s", made);
    merge->committed = true;
    return forget_merge_head(s);
}

bool weft__snap_tree_commit_all(snap *s, tree_merge *merge) {
    char tree[WEFT_SNAPSHOT_HEX], had[WEFT_SNAPSHOT_HEX], other[WEFT_SNAPSHOT_HEX], branch[256];
    if (!weft__snap_take(s, tree))
        return false;
    if (!s->own->place.git)
        return weft__snap_refuse(s, -EREMOTEIO, "the worktree is not in a git repository any more");
    if (!weft__snap_tree_head(s, "the worktree", branch, sizeof branch))
        return false;
    if (strcmp(branch, merge->branch) != 0)
        return weft__snap_refuse(s, -EREMOTEIO,
                                 "the branch %.200s is checked out in the worktree, not %s; merge it yourself", branch,
                                 merge->branch);
    if (!weft__snap_tree_rev(s, "HEAD^{commit}", merge->tip) || !weft__snap_tree_rev(s, "HEAD^{tree}", had) ||
        !weft__snap_tree_rev(s, "MERGE_HEAD^{commit}", other))
        return false;
    if (!*merge->tip || !*had)
        return weft__snap_refuse(s, -EREMOTEIO, "the worktree's branch has no commit");
    if (!mend_tree(s, had, tree))
        return false;
    bool same = strcmp(tree, had) == 0;
    if (same && !*other)
        return true;
    if (!may_be_committed(s, merge->tip, tree, *other, &merge->conflicts))
        return false;
    return merge->conflicts.count > 0 || add_commit(s, merge, tree, other);
}
