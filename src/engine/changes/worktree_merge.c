/* How the work of a worktree and what has become of the project are brought together: as a merge, as one commit on top, or
 * commit by commit. Nothing here touches a file: git merge-tree merges objects. It runs in our own git folder, so that no
 * merge driver and no attribute of the repository counts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "worktrees_private.h"

#define LISTING (16u << 20)
#define COMMITS 1000 /* that are put on top one by one */

const char *const weft__merge_hows[] = {
    [WEFT_MERGE_MERGE] = "merge", [WEFT_MERGE_SQUASH] = "squash", [WEFT_MERGE_REBASE] = "rebase"};

/* ---- three ways ---- */

/* A commit of nobody's that has this tree, so that the base is the one that we say. */
static bool stand_in(snap *s, const char *tree, const char *parent, const char *name, char ret[WEFT_SNAPSHOT_HEX]) {
    static const char *const nobody[] = {"GIT_AUTHOR_NAME=weft",
                                         "GIT_AUTHOR_EMAIL=weft",
                                         "GIT_AUTHOR_DATE=@0 +0000",
                                         "GIT_COMMITTER_NAME=weft",
                                         "GIT_COMMITTER_EMAIL=weft",
                                         "GIT_COMMITTER_DATE=@0 +0000",
                                         NULL};
    char ref[48];
    const char *const argv[] = {"update-ref", ref, ret, NULL};
    snprintf(ref, sizeof ref, "refs/heads/%s", name);
    return weft__snap_tree_commit_write(
               s, &(tree_commit){.tree = tree, .first = parent, .message = name, .env = nobody, .ours = true}, ret) &&
           weft__snap_git(s, &(snap_run){.argv = argv});
}

/* "tree NUL", then "mode name stage TAB path NUL" for each side of what is not clean. The names of the two are in the marks.
 */
static bool read_merged(snap *s, bool clean, char ret_tree[WEFT_SNAPSHOT_HEX], weft_buf *stages) {
    weft_bytes said = weft__snap_output(s);
    size_t len = strnlen(said.data, said.len);
    if (len == said.len || len >= WEFT_SNAPSHOT_HEX || !weft__snap_is_hex(said.data))
        return weft__snap_refuse(s, -EBADMSG, "git merge-tree was not understood");
    memcpy(ret_tree, said.data, len + 1);
    const char *rest = said.data + len + 1;
    size_t left = said.len - len - 1;
    return clean || weft__buf_put(stages, s->own->alloc, rest, left) == 0 || weft__snap_fail(s, -ENOMEM);
}

bool weft__snap_tree_three_way(snap *s, const char *base, const char *worktree, const char *project, bool *ret_clean,
                               char ret_tree[WEFT_SNAPSHOT_HEX], weft_buf *stages) {
    static const char *const argv[] = {"merge-tree", "--write-tree", "-z", "--no-messages", "worktree", "project", NULL};
    char common[WEFT_SNAPSHOT_HEX], sides[2][WEFT_SNAPSHOT_HEX];
    if (!stand_in(s, base, NULL, "base", common) || !stand_in(s, worktree, common, "worktree", sides[0]) ||
        !stand_in(s, project, common, "project", sides[1]))
        return false;
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .max_output = LISTING, .may_fail = true}))
        return false;
    if (s->end.exit_code > 1)
        return s->end.exit_code == 129 ? weft__snap_refuse(s, -EREMOTEIO, "git 2.38 or later is needed to merge worktrees")
                                       : weft__snap_refuse(s, -EREMOTEIO, "git merge-tree: %s", s->end.errors);
    *ret_clean = s->end.exit_code == 0;
    return read_merged(s, *ret_clean, ret_tree, stages);
}

/* The paths of the lines, each once. */
static bool list_conflicts(snap *s, const weft_buf *stages, snap_conflicts *ret) {
    const char *at = weft__buf_head(stages), *end = weft__buf_tail(stages), *last = "";
    for (size_t len; at && at < end; at += len + 1) {
        len = strnlen(at, (size_t) (end - at));
        const char *tab = memchr(at, '\t', len);
        if (at + len >= end || !tab)
            break;
        if (strcmp(tab + 1, last) != 0 && !weft__snap_conflict(s, ret, tab + 1, "conflict"))
            return false;
        last = tab + 1;
    }
    return true;
}

/* ---- where both come from ---- */

/* "": they have none. */
static bool find_common(snap *s, const tree_merge *merge, char ret[WEFT_SNAPSHOT_HEX]) {
    const char *const argv[] = {"merge-base", merge->old, merge->tip, NULL};
    *ret = '\0';
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true, .may_fail = true}))
        return false;
    return s->end.exit_code != 0 || weft__snap_take_hex(s, ret);
}

/* What was merged as one commit, or commit by commit, has no commit in common with the branch; it is written down. It counts
 * until the branch has merged the project's: then what they have in common is newer, and not in what was merged. */
bool weft__snap_tree_base(snap *s, const tree_merge *merge, char ret[WEFT_SNAPSHOT_HEX]) {
    char tip[WEFT_SNAPSHOT_HEX], now[WEFT_SNAPSHOT_HEX];
    bool has = false, goes_on = false, knows = false, is_older = false;
    weft__snap_tree_merged_read(s, s->own->state, merge->name, tip, now);
    if (!find_common(s, merge, ret))
        return false;
    if (*tip && (!weft__snap_tree_is_ancestor(s, now, merge->old, &has) ||
                 !weft__snap_tree_is_ancestor(s, tip, merge->tip, &goes_on) ||
                 (*ret && (!weft__snap_tree_is_ancestor(s, now, ret, &knows) ||
                           !weft__snap_tree_is_ancestor(s, ret, tip, &is_older)))))
        return false;
    if (*tip && has && goes_on && (!knows || is_older))
        snprintf(ret, WEFT_SNAPSHOT_HEX, "%s", tip);
    return *ret || weft__snap_refuse(s, -EREMOTEIO, "%s and %s have no commit in common", merge->into, merge->branch);
}

/* ---- commit by commit ---- */

/* Author, date and message of a commit, as variables and a text in room. */
static bool read_author(snap *s, const char *commit, char room[3][300], const char *ret_env[4], char **ret_message) {
    const char *const argv[] = {"show", "-s", "--no-show-signature", "--format=%an%x00%ae%x00%ad%x00%B", "--date=raw",
                                commit, NULL};
    static const char *const names[] = {"GIT_AUTHOR_NAME=", "GIT_AUTHOR_EMAIL=", "GIT_AUTHOR_DATE=@"};
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true}))
        return false;
    weft_bytes said = weft__snap_output(s);
    const char *at = said.data, *end = at + said.len;
    for (size_t i = 0; i < 3; i++) {
        size_t len = strnlen(at, (size_t) (end - at));
        if (at + len >= end)
            return weft__snap_refuse(s, -EBADMSG, "git show was not understood");
        snprintf(room[i], 300, "%s%.250s", names[i], at);
        ret_env[i] = room[i];
        at += len + 1;
    }
    ret_env[3] = NULL;
    *ret_message = weft__strndup(s->own->alloc, at, (size_t) (end - at));
    return *ret_message || weft__snap_fail(s, -ENOMEM);
}

/* parent ──▶ commit, put on top of *now. What changes nothing there is left out. */
static bool put_on_top(snap *s, const char *commit, const char *parent, char now[WEFT_SNAPSHOT_HEX]) {
    char tree[WEFT_SNAPSHOT_HEX], had[WEFT_SNAPSHOT_HEX], what[WEFT_SNAPSHOT_HEX + 16], room[3][300], *message = NULL;
    const char *env[4];
    weft_buf stages = {0};
    bool clean = false;
    bool good = weft__snap_tree_three_way(s, parent, commit, now, &clean, tree, &stages);
    weft__buf_done(&stages, s->own->alloc);
    if (good && !clean)
        return weft__snap_refuse(s, -EREMOTEIO,
                                 "commit %.12s cannot be put on top by itself; use the strategy merge or squash", commit);
    snprintf(what, sizeof what, "%s^{tree}", now);
    good = good && weft__snap_tree_rev(s, what, had);
    if (!good || strcmp(tree, had) == 0)
        return good;
    good = read_author(s, commit, room, env, &message) &&
           weft__snap_tree_commit_write(s, &(tree_commit){.tree = tree, .first = now, .message = message, .env = env}, now);
    weft__free(s->own->alloc, message);
    return good;
}

static bool put_all_on_top(snap *s, tree_merge *merge, const char *base) {
    char range[2 * WEFT_SNAPSHOT_HEX + 2], commit[WEFT_SNAPSHOT_HEX], parent[WEFT_SNAPSHOT_HEX], more[2];
    const char *const argv[] = {"rev-list", "--reverse", "--topo-order", "--parents", range, NULL};
    snprintf(range, sizeof range, "%s..%s", base, merge->tip);
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true, .max_output = LISTING}))
        return false;
    weft_buf lines = s->end.output;
    s->end.output = (weft_buf){0};
    bool good = weft__buf_put(&lines, s->own->alloc, "", 1) == 0 || weft__snap_fail(s, -ENOMEM);
    size_t count = 0;
    for (const char *at = good ? weft__buf_head(&lines) : ""; good && *at;
         at = strchr(at, '\n') ? strchr(at, '\n') + 1 : "") {
        char line[4 * WEFT_SNAPSHOT_HEX];
        snprintf(line, sizeof line, "%.*s", (int) strcspn(at, "\n"), at);
        int parts = sscanf(line, "%64[0-9a-f] %64[0-9a-f] %1s", commit, parent, more);
        if (parts != 2)
            good = weft__snap_refuse(s, -EREMOTEIO,
                                     "%s has merges in it, which a rebase does not keep; use the strategy merge or squash",
                                     merge->branch);
        else if (++count > COMMITS)
            good = weft__snap_refuse(s, -EFBIG, "%s has more than %d commits", merge->branch, COMMITS);
        else
            good = put_on_top(s, commit, parent, merge->now);
    }
    weft__buf_done(&lines, s->own->alloc);
    return good;
}

/* ---- all of it ---- */

static bool make_result(snap *s, tree_merge *merge, const char *base, const char *tree) {
    char message[600];
    tree_commit commit = {.tree = tree, .first = merge->old, .message = merge->message};
    snprintf(merge->now, sizeof merge->now, "%s", merge->old);
    if (merge->how == WEFT_MERGE_REBASE)
        return put_all_on_top(s, merge, base);
    if (merge->how == WEFT_MERGE_MERGE) {
        snprintf(message, sizeof message, "Merge branch '%s' into %s\n\nWeft-Task: %s\n", merge->branch, merge->into,
                 merge->owner);
        commit.second = merge->tip;
        commit.message = message;
    }
    return weft__snap_tree_commit_write(s, &commit, merge->now);
}

/* merge->now, or merge->conflicted with the list. */
static bool bring_together(snap *s, tree_merge *merge) {
    char base[WEFT_SNAPSHOT_HEX], tree[WEFT_SNAPSHOT_HEX];
    weft_buf stages = {0};
    bool clean = false;
    if (!weft__snap_tree_base(s, merge, base))
        return false;
    if (strcmp(base, merge->tip) == 0)
        return weft__snap_refuse(s, -EALREADY, "all of %s is in %s already", merge->branch, merge->into);
    if (merge->how == WEFT_MERGE_MERGE && strcmp(base, merge->old) == 0) {
        snprintf(merge->now, sizeof merge->now, "%s", merge->tip);
        return true;
    }
    bool good = weft__snap_tree_three_way(s, base, merge->tip, merge->old, &clean, tree, &stages);
    if (good && !clean)
        good = list_conflicts(s, &stages, &merge->conflicts);
    weft__buf_done(&stages, s->own->alloc);
    merge->conflicted = good && !clean;
    return good && (merge->conflicted || make_result(s, merge, base, tree));
}

bool weft__snap_tree_merge(snap *s, tree_merge *merge) {
    char ref[300], tip[WEFT_SNAPSHOT_HEX], other[WEFT_SNAPSHOT_HEX];
    if (!weft__snap_find(s))
        return false;
    if (!s->own->place.git || *s->own->place.repository.prefix)
        return weft__snap_refuse(s, -EREMOTEIO, "the project's folder is not the top of a git repository");
    snprintf(ref, sizeof ref, "refs/heads/%s", merge->branch);
    if (!weft__snap_is_whole_checkout(s) ||
        !weft__snap_tree_head(s, "the project's folder", merge->into, sizeof merge->into) ||
        !weft__snap_tree_rev(s, "HEAD^{commit}", merge->old) || !weft__snap_tree_rev(s, ref, tip) ||
        !weft__snap_tree_rev(s, "MERGE_HEAD^{commit}", other))
        return false;
    if (*other)
        return weft__snap_refuse(s, -EREMOTEIO, "a merge is under way in the project's folder; finish it or end it first");
    if (!*merge->old || strcmp(tip, merge->tip) != 0)
        return weft__snap_refuse(s, -EREMOTEIO, "%s has just been changed by somebody; try again", merge->branch);
    if (strcmp(merge->into, merge->branch) == 0)
        return weft__snap_refuse(s, -EREMOTEIO, "%s itself is checked out in the project's folder", merge->branch);
    snprintf(ref, sizeof ref, "refs/heads/%s", merge->into);
    if (!weft__snap_logs_are_plain(s, ref))
        return false;
    return bring_together(s, merge) && (merge->conflicted || weft__snap_tree_land(s, merge));
}
