/* Deciding what an undo does to each path, on the thread, and writing that down before the first file is touched, so that an
 * undo that is interrupted can be finished.
 *
 * For a path that lies between two trees, before and after, there is what is on the disk now. As in after: the way back is
 * to what was before. As before: nothing is to be done. Otherwise both ways are merged, as git merge-file does it, with
 * after as the common ancestor; what cannot be merged is a conflict. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshots_private.h"

#define PLAN_MAX (64u << 20)
#define PLAN_WORD "weft-undo-1"
#define PLAN_NAME "undo.plan"

/* ---- conflicts ---- */

bool weft__snap_conflict(snap *s, snap_conflicts *conflicts, const char *path, const char *reason) {
    const weft_alloc *alloc = s->own->alloc;
    conflicts->count++;
    if (conflicts->listed == SNAP_CONFLICTS)
        return true;
    if (!conflicts->list && !(conflicts->list = weft__alloc(alloc, SNAP_CONFLICTS * sizeof *conflicts->list)))
        return weft__snap_fail(s, -ENOMEM);
    const char *copy = weft__strndup(alloc, path, strlen(path));
    if (!copy)
        return weft__snap_fail(s, -ENOMEM);
    conflicts->list[conflicts->listed++] = (weft_conflict){copy, reason};
    return true;
}

void weft__snap_conflicts_done(snap *s, snap_conflicts *conflicts) {
    for (size_t i = 0; i < conflicts->listed; i++)
        weft__free(s->own->alloc, (void *) (uintptr_t) conflicts->list[i].path);
    conflicts->list = weft__free(s->own->alloc, conflicts->list);
    conflicts->count = conflicts->listed = 0;
}

/* ---- the plan ---- */

bool weft__snap_plan_add(snap *s, snap_plan *plan, const snap_step *step) {
    if (plan->count == WEFT_SNAPSHOT_UNDO_FILES)
        return weft__snap_refuse(s, -EFBIG, "more than %d files would have to be put back", WEFT_SNAPSHOT_UNDO_FILES);
    if (plan->count == plan->cap) {
        size_t cap = plan->cap ? 2 * plan->cap : 64;
        snap_step *more = weft__resize(s->own->alloc, plan->steps, cap * sizeof *more);
        if (!more)
            return weft__snap_fail(s, -ENOMEM);
        plan->steps = more;
        plan->cap = cap;
    }
    plan->steps[plan->count++] = *step;
    return true;
}

void weft__snap_plan_done(snap *s, snap_plan *plan) {
    weft__buf_done(&plan->text, s->own->alloc);
    plan->steps = weft__free(s->own->alloc, plan->steps);
    plan->count = plan->cap = 0;
}

static void name_plan(const weft_snapshots *own, const char *name, char ret[PATH_MAX + 48]) {
    snprintf(ret, PATH_MAX + 48, "%s/changes/%s", own->state, name);
}

static bool put_word(snap *s, weft_buf *to, const char *word) {
    return weft__buf_put(to, s->own->alloc, word, strlen(word) + 1) == 0 || weft__snap_fail(s, -ENOMEM);
}

static bool put_steps(snap *s, const snap_plan *plan, weft_buf *to) {
    bool good = true;
    for (size_t i = 0; good && i < plan->count; i++) {
        const snap_step *step = &plan->steps[i];
        char line[192];
        snprintf(line, sizeof line, "%o %o %s %s", step->old_mode, step->new_mode, step->old_hex, step->new_hex);
        good = put_word(s, to, line) && put_word(s, to, step->path);
    }
    return good;
}

int weft__snap_write_durably(const char *path, weft_bytes text) {
    char beside[PATH_MAX + 64];
    snprintf(beside, sizeof beside, "%s.new", path);
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : 0;
    for (size_t done = 0; r == 0 && done < text.len;) {
        ssize_t n = write(fd, text.data + done, text.len - done);
        r = n < 0 ? -errno : 0;
        done += n > 0 ? (size_t) n : 0;
    }
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (fd >= 0)
        close(fd);
    if (r == 0 && rename(beside, path) < 0)
        r = -errno;
    if (r < 0)
        unlink(beside);
    return r;
}

bool weft__snap_plan_store(snap *s, const char *name, const char *const *words, size_t count, const snap_plan *plan) {
    char path[PATH_MAX + 48];
    weft_buf text = {0};
    bool good = true;
    name_plan(s->own, name, path);
    for (size_t i = 0; good && i < count; i++)
        good = put_word(s, &text, words[i]);
    good = good && put_steps(s, plan, &text);
    int r = good ? weft__snap_write_durably(path, (weft_bytes){weft__buf_head(&text), weft__buf_len(&text)}) : 0;
    weft__buf_done(&text, s->own->alloc);
    return good && (r == 0 || weft__snap_fail(s, r));
}

static bool write_plan(snap *s, const snap_plan *plan) {
    const char *const words[] = {PLAN_WORD, plan->owner, plan->by, plan->redo ? "redo" : "undo", plan->from, plan->to};
    return weft__snap_plan_store(s, PLAN_NAME, words, sizeof words / sizeof words[0], plan);
}

void weft__snap_plan_remove(const weft_snapshots *own) {
    char path[PATH_MAX + 48];
    name_plan(own, PLAN_NAME, path);
    unlink(path);
}

/* The next text of the plan; NULL: there is none. */
static const char *next_word(const char **at, const char *end) {
    const char *word = *at;
    size_t len = strnlen(word, (size_t) (end - word));
    if (word + len >= end)
        return NULL;
    *at = word + len + 1;
    return word;
}

static bool read_steps(snap *s, const char *at, const char *end, snap_plan *ret) {
    for (const char *line, *path; (line = next_word(&at, end));) {
        snap_step step = {0};
        path = next_word(&at, end);
        if (!path ||
            sscanf(line, "%o %o %64[0-9a-f] %64[0-9a-f]", &step.old_mode, &step.new_mode, step.old_hex, step.new_hex) != 4)
            return false;
        step.path = path;
        if (!weft__snap_plan_add(s, ret, &step))
            return false;
    }
    return true;
}

static bool read_words(const char **at, const char *end, const char **ret, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!(ret[i] = next_word(at, end)))
            return false;
    return true;
}

static int read_whole(snap *s, int fd, weft_buf *ret) {
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > PLAN_MAX)
        return -EINVAL;
    int r = weft__buf_reserve(ret, s->own->alloc, (size_t) st.st_size + 1);
    while (r == 0 && ret->end < (size_t) st.st_size) {
        ssize_t n = read(fd, ret->data + ret->end, (size_t) st.st_size - ret->end);
        r = n < 0 ? -errno : n == 0 ? -EIO : 0;
        ret->end += n > 0 ? (size_t) n : 0;
    }
    return r;
}

int weft__snap_plan_load(snap *s, const char *name, const char **words, size_t count, snap_plan *ret) {
    char path[PATH_MAX + 48];
    *ret = (snap_plan){0};
    name_plan(s->own, name, path);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return 0;
    int r = read_whole(s, fd, &ret->text);
    close(fd);
    if (r == -ENOMEM)
        return r;
    const char *at = weft__buf_head(&ret->text), *end = weft__buf_tail(&ret->text);
    if (r == 0 && at && read_words(&at, end, words, count) && read_steps(s, at, end, ret))
        return 1;
    weft__snap_plan_done(s, ret);
    return s->r == -ENOMEM ? -ENOMEM : 0;
}

int weft__snap_plan_read(snap *s, snap_plan *ret) {
    const char *words[6];
    int r = weft__snap_plan_load(s, PLAN_NAME, words, 6, ret);
    if (r <= 0)
        return r;
    if (strcmp(words[0], PLAN_WORD) != 0 || !weft__snap_is_hex(words[4]) || !weft__snap_is_hex(words[5])) {
        weft__snap_plan_done(s, ret);
        return 0;
    }
    snprintf(ret->owner, sizeof ret->owner, "%s", words[1]);
    snprintf(ret->by, sizeof ret->by, "%s", words[2]);
    ret->redo = strcmp(words[3], "redo") == 0;
    snprintf(ret->from, sizeof ret->from, "%s", words[4]);
    snprintf(ret->to, sizeof ret->to, "%s", words[5]);
    return 1;
}

/* ---- one path ---- */

typedef struct side {
    unsigned mode; /* 0: not there */
    const char *hex;
} side;

static bool is_same(side a, side b) {
    return a.mode == b.mode && (!a.mode || strcmp(a.hex, b.hex) == 0);
}

static bool is_regular(side a) {
    return (a.mode & 0170000) == SNAP_REGULAR;
}

static const char *not_stored(side a) {
    return a.mode != SNAP_GITLINK ? NULL : weft__snap_is_too_large(a.mode, a.hex) ? "tooLarge" : "submodule";
}

bool weft__snap_blob(snap *s, const char *hex) {
    const char *const argv[] = {"cat-file", "blob", hex, NULL};
    return weft__snap_git(s, &(snap_run){.argv = argv, .max_output = (size_t) s->own->max_file + (64u << 20)});
}

static bool write_side(snap *s, const char *folder, const char *name, const char *hex) {
    char path[PATH_MAX + 64];
    if (!weft__snap_blob(s, hex))
        return false;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int r = weft__snap_write_durably(path, weft__snap_output(s));
    return r == 0 || weft__snap_fail(s, r);
}

/* 1 merged, its name is in ret; 0 it cannot be. */
static int merge_content(snap *s, side base, side ours, side theirs, char ret[WEFT_SNAPSHOT_HEX]) {
    static const char *const merge[] = {"merge-file", "-p", "-q", "ours", "base", "theirs", NULL};
    static const char *const store[] = {"hash-object", "-w", "--stdin", "--no-filters", NULL};
    char folder[PATH_MAX + 32];
    snprintf(folder, sizeof folder, "%s/changes/merge", s->own->state);
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return weft__snap_fail(s, -errno) - 1;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return weft__snap_fail(s, -errno) - 1;
    bool good =
        write_side(s, folder, "ours", ours.hex) && write_side(s, folder, "base", base.hex) &&
        write_side(s, folder, "theirs", theirs.hex) &&
        weft__snap_git(
            s, &(snap_run){.argv = merge, .max_output = 3 * (size_t) s->own->max_file, .may_fail = true, .folder = fd});
    int code = s->end.exit_code;
    weft_buf merged = s->end.output;
    s->end.output = (weft_buf){0};
    weft_bytes input = {weft__buf_len(&merged) ? weft__buf_head(&merged) : "", weft__buf_len(&merged)};
    if (good && code == 0)
        good = weft__snap_git(s, &(snap_run){.argv = store, .input = input}) && weft__snap_take_hex(s, ret);
    weft__buf_done(&merged, s->own->alloc);
    unlinkat(fd, "ours", 0);
    unlinkat(fd, "base", 0);
    unlinkat(fd, "theirs", 0);
    close(fd);
    return good ? code == 0 : -1;
}

/* Why these three cannot be merged as files; NULL: they can. */
static const char *cannot_merge(side base, side ours, side theirs) {
    if (!base.mode)
        return "exists";
    if (!ours.mode)
        return "deleted";
    return theirs.mode && is_regular(base) && is_regular(ours) && is_regular(theirs) ? NULL : "changed";
}

static bool merge_path(snap *s, snap_step *step, side base, side ours, side theirs, const char **ret_conflict) {
    *ret_conflict = cannot_merge(base, ours, theirs);
    if (*ret_conflict)
        return true;
    step->new_mode = ours.mode == base.mode ? theirs.mode : ours.mode;
    const char *hex = strcmp(theirs.hex, base.hex) == 0 || strcmp(ours.hex, theirs.hex) == 0 ? ours.hex
                      : strcmp(ours.hex, base.hex) == 0                                      ? theirs.hex
                                                                                             : NULL;
    if (hex) {
        snprintf(step->new_hex, sizeof step->new_hex, "%s", hex);
        return true;
    }
    int r = merge_content(s, base, ours, theirs, step->new_hex);
    *ret_conflict = r == 0 ? "changed" : NULL;
    return r >= 0;
}

static void fill_step(snap_step *step, const char *path, side ours, side to) {
    *step = (snap_step){.path = path, .old_mode = ours.mode, .new_mode = to.mode};
    snprintf(step->old_hex, sizeof step->old_hex, "%s", ours.hex);
    snprintf(step->new_hex, sizeof step->new_hex, "%s", to.hex);
}

static bool decide_path(snap *s, const snap_entry *entry, const snap_entry *since, bool shared, snap_plan *plan,
                        snap_conflicts *conflicts) {
    side theirs = {entry->old_mode, entry->old_hex}, base = {entry->new_mode, entry->new_hex}, ours = base;
    const char *conflict = NULL;
    snap_step step;
    if (since)
        ours = (side){since->new_mode, since->new_hex};
    if (is_same(ours, theirs))
        return true;
    fill_step(&step, entry->path, ours, theirs);
    conflict = not_stored(theirs) ? not_stored(theirs) : not_stored(base);
    if (!conflict && shared)
        conflict = "shared";
    if (!conflict && !is_same(ours, base) && !merge_path(s, &step, base, ours, theirs, &conflict))
        return false;
    if (conflict)
        return weft__snap_conflict(s, conflicts, entry->path, conflict);
    bool nothing = is_same(ours, (side){step.new_mode, step.new_hex});
    return nothing || weft__snap_plan_add(s, plan, &step);
}

/* ---- all paths ---- */

/* Paths that lie between any of the pairs. */
static bool read_shared(snap *s, const weft_undo *undo, snap_entries lists[], size_t max, size_t *ret) {
    *ret = 0;
    for (const char *const *at = undo->allow_shared ? NULL : undo->shared; at && at[0] && at[1]; at += 2) {
        if (*ret == max)
            return weft__snap_refuse(s, -EFBIG, "others worked at the same time too often to tell whose changes are whose");
        if (!weft__snap_entries(s, at[0], at[1], &lists[*ret]))
            return false;
        ++*ret;
    }
    return true;
}

#define SHARED_MAX 64

/* What git ignored before the task was there before it, as far as anybody knows, and stays as it is. */
static bool decide_each(snap *s, const weft_undo *undo, snap_entries *entries, const snap_entries *since,
                        const snap_entries *shared, size_t count, snap_plan *plan, snap_conflicts *conflicts) {
    bool *ignored = weft__zalloc(s->own->alloc, (entries->count + 1) * sizeof *ignored);
    bool good = ignored ? undo->redo || weft__snap_ignored_by(s, undo->owner, undo->before, entries, ignored)
                        : weft__snap_fail(s, -ENOMEM);
    for (size_t i = 0; good && i < entries->count; i++) {
        const char *path = entries->list[i].path;
        bool found = false;
        for (size_t k = 0; k < count; k++)
            found |= weft__snap_entry(&shared[k], path) != NULL;
        good = ignored[i] || decide_path(s, &entries->list[i], weft__snap_entry(since, path), found, plan, conflicts);
    }
    weft__free(s->own->alloc, ignored);
    return good;
}

static bool decide_all(snap *s, const weft_undo *undo, snap_entries *entries, snap_plan *plan, snap_conflicts *conflicts) {
    snap_entries since = {0}, *shared = weft__zalloc(s->own->alloc, SHARED_MAX * sizeof *shared);
    size_t count = 0;
    if (!shared)
        return weft__snap_fail(s, -ENOMEM);
    bool good = weft__snap_entries(s, undo->after, plan->from, &since) && read_shared(s, undo, shared, SHARED_MAX, &count) &&
                decide_each(s, undo, entries, &since, shared, count, plan, conflicts);
    for (size_t k = 0; k < count; k++)
        weft__snap_entries_done(s, &shared[k]);
    weft__free(s->own->alloc, shared);
    weft__snap_entries_done(s, &since);
    return good;
}

bool weft__snap_plan_goal(snap *s, snap_plan *plan) {
    char index[PATH_MAX + 32];
    const char *const read[] = {"read-tree", plan->from, NULL};
    static const char *const change[] = {"update-index", "-z", "--add", "--replace", "--index-info", NULL};
    static const char *const write[] = {"write-tree", "--missing-ok", NULL};
    weft_buf lines = {0};
    int r = 0;
    snprintf(index, sizeof index, "%s/undo.index", s->own->place.own);
    for (int there = 0; there < 2; there++) /* what goes first, so that it is not in the way */
        for (size_t i = 0; r == 0 && i < plan->count; i++) {
            const snap_step *step = &plan->steps[i];
            char line[128];
            if ((step->new_mode != 0) != there)
                continue;
            int n = snprintf(line, sizeof line, "%o %s 0\t", step->new_mode, step->new_mode ? step->new_hex : step->old_hex);
            r = weft__buf_put(&lines, s->own->alloc, line, (size_t) n);
            if (r == 0)
                r = weft__buf_put(&lines, s->own->alloc, step->path, strlen(step->path) + 1);
        }
    weft_bytes input = {weft__buf_len(&lines) ? weft__buf_head(&lines) : "", weft__buf_len(&lines)};
    bool good = (r == 0 || weft__snap_fail(s, r)) && weft__snap_git(s, &(snap_run){.argv = read, .index = index}) &&
                weft__snap_git(s, &(snap_run){.argv = change, .index = index, .input = input}) &&
                weft__snap_git(s, &(snap_run){.argv = write, .index = index}) && weft__snap_take_hex(s, plan->to);
    weft__buf_done(&lines, s->own->alloc);
    unlink(index);
    return good;
}

static bool keep_ends(snap *s, const snap_plan *plan) {
    char from[80], to[80];
    snprintf(from, sizeof from, "%s.from", plan->owner);
    snprintf(to, sizeof to, "%s.to", plan->owner);
    const snap_keep keeps[] = {{from, plan->from}, {to, plan->to}};
    return weft__snap_keep(s, keeps, 2);
}

static bool carry_out(snap *s, snap_plan *plan, snap_conflicts *conflicts) {
    if (!plan->count) {
        snprintf(plan->to, sizeof plan->to, "%s", plan->from);
        return keep_ends(s, plan) && write_plan(s, plan);
    }
    if (!weft__snap_plan_goal(s, plan) || !keep_ends(s, plan) || !write_plan(s, plan))
        return false;
    bool good = weft__snap_apply(s, plan, conflicts);
    if (!good || conflicts->count)
        weft__snap_plan_remove(s->own); /* nothing was done */
    return good;
}

bool weft__snap_undo(snap *s, const weft_undo *undo, snap_plan *plan, snap_conflicts *conflicts) {
    snap_entries entries = {0};
    snprintf(plan->owner, sizeof plan->owner, "%s", undo->owner);
    snprintf(plan->by, sizeof plan->by, "%s", undo->by ? undo->by : "");
    plan->redo = undo->redo;
    bool good = weft__snap_take(s, plan->from) && weft__snap_entries(s, undo->before, undo->after, &entries) &&
                decide_all(s, undo, &entries, plan, conflicts);
    if (good && !conflicts->count)
        good = carry_out(s, plan, conflicts);
    /* The steps point into the entries. */
    plan->count = good ? plan->count : 0;
    for (size_t i = 0; i < plan->count; i++)
        plan->steps[i].path = NULL;
    weft__snap_entries_done(s, &entries);
    return good;
}
