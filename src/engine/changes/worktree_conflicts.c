/* A merge that git cannot do by itself is left in the worktree, where nobody's work is in danger: the project's branch is
 * merged into the worktree's, with marks in the files, as "git merge" would have left it. A person, or another prompt,
 * finishes it there; the next merge takes it from there.
 *
 * Everything in the worktree was committed before. What is to be written is in a plan first; one that was interrupted is
 * finished before anything else is done in the worktree. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "beneath.h"
#include "worktrees_private.h"

#define PLAN_WORD "weft-conflicts-1"
#define PLAN_NAME "conflicts.plan"
#define WORDS 7

static void remove_conflicts_plan(const snap *s) {
    char path[PATH_MAX + 48];
    snprintf(path, sizeof path, "%s/changes/" PLAN_NAME, s->own->state);
    unlink(path);
}

bool weft__snap_tree_conflicts_are_open(const weft_snapshots *own) {
    char path[PATH_MAX + 48];
    snprintf(path, sizeof path, "%s/changes/" PLAN_NAME, own->state);
    return access(path, F_OK) == 0;
}

/* ---- the index and what git knows of a merge ---- */

/* A path with more than one stage has none of its own: it is taken out first. */
static bool put_stages(snap *s, const weft_buf *stages, weft_buf *ret) {
    const char *begin = weft__buf_head(stages), *end = weft__buf_tail(stages);
    static const char zero[] = "0 0000000000000000000000000000000000000000000000000000000000000000";
    int name = strcmp(s->own->place.format, "sha256") == 0 ? 64 : 40;
    int r = 0;
    for (int round = 0; round < 2; round++)
        for (const char *at = begin; r == 0 && at && at < end;) {
            size_t len = strnlen(at, (size_t) (end - at));
            const char *tab = memchr(at, '\t', len);
            if (!tab)
                break;
            if (round == 0 && (r = weft__buf_put(ret, s->own->alloc, zero, (size_t) name + 2)) == 0)
                r = weft__buf_put(ret, s->own->alloc, tab, len - (size_t) (tab - at) + 1);
            else if (round == 1)
                r = weft__buf_put(ret, s->own->alloc, at, len + 1);
            at += len + 1;
        }
    return r == 0 || weft__snap_fail(s, r);
}

static bool write_in_git_folder(snap *s, const char *name, const char *text) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", s->own->place.repository.dir, name);
    int r = weft__snap_write_durably(path, (weft_bytes){text, strlen(text)});
    return r == 0 || weft__snap_fail(s, r);
}

static bool tell_git(snap *s, const char *into, const char *other, const char *tree, const weft_buf *stages) {
    char text[400], head[WEFT_SNAPSHOT_HEX + 2];
    weft_buf lines = {0};
    snprintf(text, sizeof text, "Merge branch '%s' into the worktree\n", into);
    snprintf(head, sizeof head, "%s\n", other);
    bool good = put_stages(s, stages, &lines) &&
                weft__snap_tree_index_put(s, tree, (weft_bytes){weft__buf_head(&lines), weft__buf_len(&lines)}) &&
                write_in_git_folder(s, "MERGE_MSG", text) && write_in_git_folder(s, "MERGE_MODE", "") &&
                write_in_git_folder(s, "MERGE_HEAD", head);
    weft__buf_done(&lines, s->own->alloc);
    return good;
}

/* ---- the files ---- */

static bool plan_files(snap *s, const char *tip, const char *tree, snap_entries *entries, snap_plan *plan) {
    char room[PATH_MAX];
    bool good = weft__snap_take(s, plan->from) && weft__snap_entries(s, tip, tree, entries);
    for (size_t i = 0; good && i < entries->count; i++) {
        const snap_entry *entry = &entries->list[i];
        snap_step step = {.path = entry->path, .old_mode = entry->old_mode, .new_mode = entry->new_mode};
        snprintf(step.old_hex, sizeof step.old_hex, "%s", entry->old_hex);
        snprintf(step.new_hex, sizeof step.new_hex, "%s", entry->new_hex);
        if (weft__beneath_check((weft_bytes){entry->path, strlen(entry->path)}, room) < 0)
            return weft__snap_refuse(s, -EREMOTEIO,
                                     "the project's branch has changed %.200s, which Weft leaves alone; merge it in the "
                                     "worktree with git",
                                     entry->path);
        good = entry->new_mode == SNAP_GITLINK || entry->old_mode == SNAP_GITLINK
                   ? weft__snap_refuse(s, -EREMOTEIO, "the project's branch has a submodule (%.200s)", entry->path)
                   : weft__snap_plan_add(s, plan, &step);
    }
    return good && weft__snap_plan_goal(s, plan);
}

static bool write_files(snap *s, const tree_merge *merge, const char *base, const char *tree) {
    snap_entries entries = {0};
    snap_plan plan = {0};
    snap_conflicts in_the_way = {0};
    bool good = plan_files(s, merge->tip, tree, &entries, &plan);
    const char *const words[WORDS] = {PLAN_WORD, merge->into, base, merge->tip, merge->old, plan.from, plan.to};
    good = good && weft__snap_plan_store(s, PLAN_NAME, words, WORDS, &plan) && weft__snap_apply(s, &plan, &in_the_way);
    if (good && in_the_way.count)
        good = weft__snap_refuse(s, -EREMOTEIO, "somebody is changing files in the worktree (%.200s); try again",
                                 in_the_way.listed ? in_the_way.list[0].path : "");
    if (!good)
        remove_conflicts_plan(s);
    weft__snap_conflicts_done(s, &in_the_way);
    weft__snap_plan_done(s, &plan);
    weft__snap_entries_done(s, &entries);
    return good;
}

bool weft__snap_tree_leave_conflicts(snap *s, tree_merge *merge) {
    char base[WEFT_SNAPSHOT_HEX], tree[WEFT_SNAPSHOT_HEX];
    weft_buf stages = {0};
    bool clean = false;
    snprintf(base, sizeof base, "%s", merge->now); /* what the project's thread found */
    bool good = weft__snap_find(s) && weft__snap_tree_three_way(s, base, merge->tip, merge->old, &clean, tree, &stages) &&
                write_files(s, merge, base, tree) && tell_git(s, merge->into, merge->old, tree, &stages);
    if (good)
        remove_conflicts_plan(s);
    weft__buf_done(&stages, s->own->alloc);
    return good;
}

bool weft__snap_tree_conflicts_again(snap *s) {
    const char *words[WORDS];
    snap_plan plan = {0};
    char tree[WEFT_SNAPSHOT_HEX];
    weft_buf stages = {0};
    bool clean = false;
    size_t left;
    if (weft__snap_plan_load(s, PLAN_NAME, words, WORDS, &plan) <= 0 || strcmp(words[0], PLAN_WORD) != 0)
        return true;
    bool good = weft__snap_find(s);
    for (size_t i = 2; i < WORDS; i++)
        good = good && weft__snap_is_hex(words[i]);
    if (good) {
        snprintf(plan.from, sizeof plan.from, "%s", words[5]);
        snprintf(plan.to, sizeof plan.to, "%s", words[6]);
    }
    good = good && weft__snap_finish(s, &plan, &left) &&
           weft__snap_tree_three_way(s, words[2], words[3], words[4], &clean, tree, &stages) &&
           tell_git(s, words[1], words[4], tree, &stages);
    if (good || s->r == 0)
        remove_conflicts_plan(s);
    weft__buf_done(&stages, s->own->alloc);
    weft__snap_plan_done(s, &plan);
    return good;
}
