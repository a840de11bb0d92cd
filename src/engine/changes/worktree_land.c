/* The project's checkout becomes the merged commit: files, branch and index. What somebody has changed there and not
 * committed is never written over: a path that the merge is about must be as it was committed, in the files and in the
 * index, or nothing is done.
 *
 *     locked ──plan written──▶ files change places ──update-ref──▶ merged ──index──▶ unlocked ──recorded──▶ plan removed
 *
 * git's own lock of the index is held meanwhile, so that no other git of the user's comes between. The lock is a link to a
 * file of ours: one that was left by a daemon that was killed is known by that, and removed. Interrupted before the branch
 * has moved, the next start goes on with the plan, unless the branch is at another commit by then: then the files stay as
 * they are. Interrupted behind that, only the index is left to do. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "worktrees_private.h"

#define PLAN_WORD "weft-merge-1"
#define PLAN_NAME "merge.plan"
#define WORDS 13
#define INDEX_MAX ((off_t) 1 << 30)

/* ---- names of files ---- */

typedef struct land_paths {
    char index[PATH_MAX + 32], lock[PATH_MAX + 32];         /* the user's */
    char beside[PATH_MAX + 32], beside_lock[PATH_MAX + 40]; /* the new one, until it is renamed */
    char mine[PATH_MAX + 48];                               /* what the lock is a link to */
} land_paths;

static void name_paths(const snap *s, land_paths *ret) {
    const char *dir = s->own->place.repository.dir;
    snprintf(ret->index, sizeof ret->index, "%s/index", dir);
    snprintf(ret->lock, sizeof ret->lock, "%s/index.lock", dir);
    snprintf(ret->beside, sizeof ret->beside, "%s/index.weft", dir);
    snprintf(ret->beside_lock, sizeof ret->beside_lock, "%s/index.weft.lock", dir);
    snprintf(ret->mine, sizeof ret->mine, "%s/changes/index.lock", s->own->state);
}

static bool is_there(const weft_snapshots *own, const char *name) {
    char path[PATH_MAX + 48];
    struct stat st;
    snprintf(path, sizeof path, "%s/changes/%s", own->state, name);
    return lstat(path, &st) == 0;
}

bool weft__snap_tree_land_is_open(const weft_snapshots *own) {
    return is_there(own, PLAN_NAME) || is_there(own, "index.lock");
}

void weft__snap_tree_plan_remove(const weft_snapshots *own) {
    char path[PATH_MAX + 48];
    snprintf(path, sizeof path, "%s/changes/" PLAN_NAME, own->state);
    unlink(path);
}

/* ---- the lock ---- */

static bool lock_index(snap *s, const land_paths *at) {
    int fd = open(at->mine, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return weft__snap_fail(s, -errno);
    close(fd);
    if (link(at->mine, at->lock) == 0)
        return true;
    int r = -errno;
    unlink(at->mine);
    return r == -EEXIST
               ? weft__snap_refuse(s, -EREMOTEIO, "another git is at work in the project's folder (%s is there)", at->lock)
               : weft__snap_refuse(s, r, "the repository's index cannot be locked: %s", weft_strerror(r));
}

static void unlock_index(const land_paths *at) {
    struct stat mine, lock;
    bool ours = lstat(at->mine, &mine) == 0 && lstat(at->lock, &lock) == 0 && mine.st_ino == lock.st_ino &&
                mine.st_dev == lock.st_dev;
    if (ours)
        unlink(at->lock);
    unlink(at->beside);
    unlink(at->beside_lock);
    unlink(at->mine);
}

/* ---- the index ---- */

static int copy_bytes(int from, int to) {
    char room[65536];
    for (ssize_t n; (n = read(from, room, sizeof room)) != 0;) {
        if (n < 0 && errno != EINTR)
            return -errno;
        for (ssize_t done = 0; done < n;) {
            ssize_t w = write(to, room + done, (size_t) (n - done));
            if (w < 0 && errno != EINTR)
                return -errno;
            done += w > 0 ? w : 0;
        }
    }
    return 0;
}

/* The copy has the permissions of the user's. Without an index there is an empty one. */
static bool copy_index(snap *s, const land_paths *at) {
    struct stat st;
    unlink(at->beside);
    unlink(at->beside_lock);
    int from = open(at->index, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (from < 0)
        return errno == ENOENT || weft__snap_fail(s, -errno);
    bool fit = fstat(from, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < INDEX_MAX;
    int to = fit ? open(at->beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    int r = fit ? to < 0 ? -errno : copy_bytes(from, to) : -EFBIG;
    if (r == 0 && fchmod(to, st.st_mode & 0777) < 0)
        r = -errno;
    if (r == 0 && futimens(to, (struct timespec[2]){st.st_atim, st.st_mtim}) < 0)
        r = -errno; /* as old as the original: git reads files again that were changed later */
    if (to >= 0)
        close(to);
    close(from);
    return r == 0 || weft__snap_fail(s, r);
}

static int put_index_line(snap *s, weft_buf *to, unsigned mode, const char *hex, const char *path) {
    char line[128];
    int n = snprintf(line, sizeof line, "%o %s 0\t", mode, hex);
    int r = weft__buf_put(to, s->own->alloc, line, (size_t) n);
    return r < 0 ? r : weft__buf_put(to, s->own->alloc, path, strlen(path) + 1);
}

/* What goes first, so that it is not in the way of what comes. Paths that are staged are not touched. */
static bool change_index(snap *s, const land_paths *at, const snap_entries *entries, const snap_entries *staged) {
    static const char *const argv[] = {"update-index", "-z", "--add", "--replace", "--index-info", NULL};
    weft_buf lines = {0};
    int r = 0;
    for (int there = 0; there < 2; there++)
        for (size_t i = 0; r == 0 && i < entries->count; i++) {
            const snap_entry *entry = &entries->list[i];
            if ((entry->new_mode != 0) == there && !weft__snap_entry(staged, entry->path))
                r = put_index_line(s, &lines, entry->new_mode, there ? entry->new_hex : entry->old_hex, entry->path);
        }
    weft_bytes input = {weft__buf_len(&lines) ? weft__buf_head(&lines) : "", weft__buf_len(&lines)};
    bool good = r == 0 ? !input.len || weft__snap_git(s, &(snap_run){.argv = argv, .index = at->beside, .input = input})
                       : weft__snap_fail(s, r);
    weft__buf_done(&lines, s->own->alloc);
    return good;
}

/* The states of the new files too, so that the user's next status has nothing to read; without them it reads them. The
 * branch has moved: nothing here can undo that, so nothing here fails. */
static void put_index(const snap *s, const land_paths *at) {
    static const char *const refresh[] = {"update-index", "-q", "--unmerged", "--refresh", NULL};
    snap t = {.own = s->own};
    struct stat st;
    if (lstat(at->beside, &st) < 0)
        return; /* nothing has changed in an index that is not there */
    (void) weft__snap_git(&t, &(snap_run){.argv = refresh, .index = at->beside, .may_fail = true});
    weft__snap_done(&t);
    (void) !rename(at->beside, at->index);
}

static bool prepare_index(snap *s, const tree_merge *merge, const land_paths *at, const snap_entries *entries,
                          snap_entries *staged) {
    return copy_index(s, at) && weft__snap_staged(s, merge->old, at->beside, staged) && change_index(s, at, entries, staged);
}

/* ---- what is to be done ---- */

/* since: what the person has changed there; NULL: nothing. */
static bool decide_landing(snap *s, const snap_entry *entry, const snap_entry *since, const snap_entry *staged,
                           snap_plan *plan, snap_conflicts *conflicts) {
    char room[PATH_MAX];
    if (weft__beneath_check((weft_bytes){entry->path, strlen(entry->path)}, room) < 0)
        return weft__snap_conflict(s, conflicts, entry->path, "closed");
    if (entry->old_mode == SNAP_GITLINK || entry->new_mode == SNAP_GITLINK)
        return weft__snap_conflict(s, conflicts, entry->path, "submodule");
    if (staged)
        return weft__snap_conflict(s, conflicts, entry->path, "staged");
    if (since && since->new_mode == entry->new_mode && (!since->new_mode || strcmp(since->new_hex, entry->new_hex) == 0))
        return true; /* it is so already */
    if (since)
        return weft__snap_conflict(s, conflicts, entry->path,
                                   !entry->old_mode   ? "exists"
                                   : !since->new_mode ? "deleted"
                                                      : "changed");
    snap_step step = {.path = entry->path, .old_mode = entry->old_mode, .new_mode = entry->new_mode};
    snprintf(step.old_hex, sizeof step.old_hex, "%s", entry->old_hex);
    snprintf(step.new_hex, sizeof step.new_hex, "%s", entry->new_hex);
    return weft__snap_plan_add(s, plan, &step);
}

static bool plan_landing(snap *s, tree_merge *merge, const snap_entries *entries, const snap_entries *staged,
                         snap_plan *plan) {
    snap_entries since = {0};
    bool good = weft__snap_take(s, plan->from) && weft__snap_entries(s, merge->old, plan->from, &since);
    for (size_t i = 0; good && i < entries->count; i++) {
        const snap_entry *entry = &entries->list[i];
        good = decide_landing(s, entry, weft__snap_entry(&since, entry->path), weft__snap_entry(staged, entry->path), plan,
                              &merge->conflicts);
    }
    weft__snap_entries_done(s, &since);
    return good && (merge->conflicts.count > 0 || weft__snap_plan_goal(s, plan));
}

static bool store_landing(snap *s, const tree_merge *merge, const snap_plan *plan) {
    const char *const words[WORDS] = {
        PLAN_WORD,   merge->owner, merge->by,  merge->name, merge->branch, weft__merge_hows[merge->how],
        merge->into, merge->old,   merge->now, merge->tip,  plan->from,    plan->to,
        "merge"};
    return weft__snap_plan_store(s, PLAN_NAME, words, WORDS, plan);
}

/* ---- doing it ---- */

static bool move_branch(snap *s, const tree_merge *merge) {
    char ref[300], why[200];
    const char *const argv[] = {"update-ref", "-m", why, ref, merge->now, merge->old, NULL};
    snprintf(ref, sizeof ref, "refs/heads/%s", merge->into);
    snprintf(why, sizeof why, "weft: %s of %s", weft__merge_hows[merge->how], merge->branch);
    return weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true});
}

/* The files go back to what they were, as far as nobody has changed them in this moment. */
static bool take_back_files(snap *s, const snap_plan *plan) {
    snap t = {.own = s->own};
    snap_plan back = {0};
    size_t left = 0;
    bool good = true;
    snprintf(back.from, sizeof back.from, "%s", plan->to);
    snprintf(back.to, sizeof back.to, "%s", plan->from);
    for (size_t i = 0; good && i < plan->count; i++) {
        snap_step step = {
            .path = plan->steps[i].path, .old_mode = plan->steps[i].new_mode, .new_mode = plan->steps[i].old_mode};
        snprintf(step.old_hex, sizeof step.old_hex, "%s", plan->steps[i].new_hex);
        snprintf(step.new_hex, sizeof step.new_hex, "%s", plan->steps[i].old_hex);
        good = weft__snap_plan_add(&t, &back, &step);
    }
    good = good && weft__snap_finish(&t, &back, &left);
    weft__snap_plan_done(&t, &back);
    weft__snap_done(&t);
    return good;
}

static void name_merged(const char *state, const char *name, char ret[PATH_MAX + 64]) {
    snprintf(ret, PATH_MAX + 64, "%s/worktrees/%s.state/merged", state, name);
}

/* It says only what may be left out the next time: without it more is looked at. */
static void write_merged(const snap *s, const tree_merge *merge) {
    char path[PATH_MAX + 64], text[2 * WEFT_SNAPSHOT_HEX + 4];
    name_merged(s->own->state, merge->name, path);
    int n = snprintf(text, sizeof text, "%s %s\n", merge->tip, merge->now);
    (void) weft__snap_write_durably(path, (weft_bytes){text, (size_t) n});
}

void weft__snap_tree_merged_read(const snap *s, const char *state, const char *name, char tip[WEFT_SNAPSHOT_HEX],
                                 char now[WEFT_SNAPSHOT_HEX]) {
    char path[PATH_MAX + 64], text[2 * WEFT_SNAPSHOT_HEX + 8] = "";
    (void) s;
    name_merged(state, name, path);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    *tip = *now = '\0';
    if (n <= 0 || sscanf(text, "%64[0-9a-f] %64[0-9a-f]", tip, now) != 2 || !weft__snap_is_hex(tip) ||
        !weft__snap_is_hex(now))
        *tip = *now = '\0';
}

/* Where the branch could not be moved the files are taken back. If not even that is possible, because the daemon stops for
 * instance, the plan stays, and the next start goes on with it. */
static bool take_landing(snap *s, tree_merge *merge, const land_paths *at, const snap_plan *plan) {
    if (!store_landing(s, merge, plan))
        return false;
    bool good = !plan->count || weft__snap_apply(s, plan, &merge->conflicts);
    if (!good || merge->conflicts.count) {
        weft__snap_tree_plan_remove(s->own); /* nothing was done */
        return good;
    }
    if (!move_branch(s, merge)) {
        if (take_back_files(s, plan))
            weft__snap_tree_plan_remove(s->own);
        return false;
    }
    merge->landed = true;
    merge->files = plan->count;
    snprintf(merge->before, sizeof merge->before, "%s", plan->from);
    snprintf(merge->after, sizeof merge->after, "%s", plan->to);
    write_merged(s, merge);
    put_index(s, at);
    return true;
}

bool weft__snap_tree_land(snap *s, tree_merge *merge) {
    snap_entries entries = {0}, staged = {0};
    snap_plan plan = {0};
    land_paths at;
    name_paths(s, &at);
    if (!lock_index(s, &at))
        return false;
    bool good = weft__snap_entries(s, merge->old, merge->now, &entries) && prepare_index(s, merge, &at, &entries, &staged) &&
                plan_landing(s, merge, &entries, &staged, &plan);
    if (good && !merge->conflicts.count)
        good = take_landing(s, merge, &at, &plan);
    unlock_index(&at);
    weft__snap_plan_done(s, &plan);
    weft__snap_entries_done(s, &staged);
    weft__snap_entries_done(s, &entries);
    return good;
}

/* ---- going on ---- */

static bool load_landing(snap *s, tree_merge *ret, snap_plan *plan) {
    const char *words[WORDS];
    int r = weft__snap_plan_load(s, PLAN_NAME, words, WORDS, plan);
    if (r < 0)
        weft__snap_fail(s, r);
    if (r <= 0 || strcmp(words[0], PLAN_WORD) != 0 || strcmp(words[12], "merge") != 0)
        return false;
    for (size_t i = 7; i < 12; i++)
        if (!weft__snap_is_hex(words[i]))
            return false;
    snprintf(ret->owner, sizeof ret->owner, "%s", words[1]);
    snprintf(ret->by, sizeof ret->by, "%s", words[2]);
    snprintf(ret->name, sizeof ret->name, "%s", words[3]);
    snprintf(ret->branch, sizeof ret->branch, "%s", words[4]);
    for (weft_merge_how how = 0; how < WEFT_MERGE_HOWS; how++)
        if (strcmp(words[5], weft__merge_hows[how]) == 0)
            ret->how = how;
    snprintf(ret->into, sizeof ret->into, "%s", words[6]);
    snprintf(ret->old, sizeof ret->old, "%s", words[7]);
    snprintf(ret->now, sizeof ret->now, "%s", words[8]);
    snprintf(ret->tip, sizeof ret->tip, "%s", words[9]);
    snprintf(plan->from, sizeof plan->from, "%s", words[10]);
    snprintf(plan->to, sizeof plan->to, "%s", words[11]);
    snprintf(ret->before, sizeof ret->before, "%s", words[10]);
    snprintf(ret->after, sizeof ret->after, "%s", words[11]);
    return true;
}

/* The index of a merge whose branch has moved; one that cannot be locked is somebody's by now. */
static void put_index_again(snap *s, const tree_merge *merge, const land_paths *at) {
    snap t = {.own = s->own};
    snap_entries entries = {0}, staged = {0};
    if (lock_index(&t, at)) {
        if (weft__snap_entries(&t, merge->old, merge->now, &entries) && prepare_index(&t, merge, at, &entries, &staged))
            put_index(s, at);
        unlock_index(at);
    }
    weft__snap_entries_done(&t, &staged);
    weft__snap_entries_done(&t, &entries);
    weft__snap_done(&t);
}

/* Is the project still where it was, or is it merged already? Anything else is somebody's who has gone on by himself. */
static bool go_on_landing(snap *s, tree_merge *merge, const snap_plan *plan, const land_paths *at) {
    char ref[300], into[256], is[WEFT_SNAPSHOT_HEX];
    bool merged = false;
    snprintf(ref, sizeof ref, "refs/heads/%s", merge->into);
    if (!weft__snap_tree_rev(s, ref, is) || !*is || !weft__snap_tree_is_ancestor(s, merge->now, is, &merged) ||
        !weft__snap_tree_head(s, "the project's folder", into, sizeof into))
        return false;
    bool here = strcmp(into, merge->into) == 0;
    if (!merged && (!here || strcmp(is, merge->old) != 0))
        return false;
    if (!merged && (!weft__snap_finish(s, plan, &merge->left) || !move_branch(s, merge)))
        return false;
    if (here && (!merged || strcmp(is, merge->now) == 0))
        put_index_again(s, merge, at);
    merge->landed = true;
    merge->files = plan->count - (merge->left < plan->count ? merge->left : plan->count);
    write_merged(s, merge);
    return true;
}

int weft__snap_tree_land_again(snap *s, tree_merge *ret) {
    snap_plan plan = {0};
    land_paths at;
    if (!weft__snap_find(s))
        return s->r;
    name_paths(s, &at);
    unlock_index(&at);
    bool done = load_landing(s, ret, &plan) && go_on_landing(s, ret, &plan, &at);
    weft__snap_plan_done(s, &plan);
    if (!done && s->r == 0)
        weft__snap_tree_plan_remove(s->own);
    return s->r < 0 ? s->r : done;
}
