/* The loop's side of merging, listing and removing worktrees: what each thread is given, one after the other.
 *
 *     commit (worktree's thread) ──▶ merge (project's) ──▶ told
 *                                        └──conflicts──▶ left in the worktree (worktree's) ──▶ told */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "texts.h"
#include "worktrees_private.h"

/* ---- a merge ---- */

typedef struct merge_run {
    weft_snapshots *project, *worktree;
    tree_merge merge;
    bool only_commit;
    weft_merge_done *done;
    void *ctx;
} merge_run;

typedef struct merge_job {
    snap_job job;
    merge_run *run;
} merge_job;

static merge_run *run_of(snap_job *job) {
    return WEFT_CONTAINER(job, merge_job, job)->run;
}

static void free_run(merge_run *run) {
    snap s = {.own = run->project};
    weft__snap_tree_merge_done(&s, &run->merge);
    weft__free(run->project->alloc, run);
}

static weft_merged describe_merge(const tree_merge *merge) {
    return (weft_merged){.owner = merge->owner,
                         .by = *merge->by ? merge->by : NULL,
                         .name = merge->name,
                         .branch = merge->branch,
                         .how = weft__merge_hows[merge->how],
                         .into = merge->into,
                         .from = merge->old,
                         .to = merge->now,
                         .tip = merge->tip,
                         .before = merge->before,
                         .after = merge->after,
                         .files = merge->files,
                         .left = merge->left};
}

static void tell_merge(merge_run *run, int r, const char *message, bool in_worktree) {
    const tree_merge *merge = &run->merge;
    weft_merge_result result = {
        .r = r,
        .message = message,
        .conflicts = merge->conflicts.list,
        .conflict_count = merge->conflicts.count,
        .listed = merge->conflicts.listed,
        .in_worktree = in_worktree,
        .committed = merge->committed,
        .merged = describe_merge(merge),
    };
    run->done(run->ctx, &result);
    free_run(run);
}

static int give_merge(merge_run *run, weft_snapshots *to, void (*work)(snap_job *), void (*finish)(snap_job *, bool)) {
    merge_job *job = weft__zalloc(to->alloc, sizeof *job);
    if (!job)
        return -ENOMEM;
    job->run = run;
    return weft__snap_give(to, &job->job, work, finish);
}

static void run_leave(snap_job *job) {
    weft__snap_tree_leave_conflicts(&job->s, &run_of(job)->merge);
}

static void finish_leave(snap_job *job, bool lost) {
    if (lost)
        free_run(run_of(job));
    else
        tell_merge(run_of(job), job->s.r, job->s.message, true);
}

/* Where both come from is found where the project is, and told to the other thread in the place of the result. */
static void run_merge(snap_job *job) {
    tree_merge *merge = &run_of(job)->merge;
    char base[WEFT_SNAPSHOT_HEX];
    if (weft__snap_tree_merge(&job->s, merge) && merge->conflicted && weft__snap_tree_base(&job->s, merge, base))
        snprintf(merge->now, sizeof merge->now, "%s", base);
}

static void finish_merge(snap_job *job, bool lost) {
    merge_run *run = run_of(job);
    bool conflicted = job->s.r == 0 && run->merge.conflicted;
    int r = lost ? 0 : conflicted ? give_merge(run, run->worktree, run_leave, finish_leave) : job->s.r;
    if (lost)
        free_run(run);
    else if (r < 0 || !conflicted)
        tell_merge(run, r, job->s.r < 0 ? job->s.message : r < 0 ? weft_strerror(r) : "", false);
}

static void run_commit(snap_job *job) {
    weft__snap_tree_commit_all(&job->s, &run_of(job)->merge);
}

static void finish_commit(snap_job *job, bool lost) {
    merge_run *run = run_of(job);
    bool over = job->s.r < 0 || run->merge.conflicts.count || run->only_commit;
    int r = lost || over ? job->s.r : give_merge(run, run->project, run_merge, finish_merge);
    if (lost)
        free_run(run);
    else if (r < 0 || over)
        tell_merge(run, r, job->s.r < 0 ? job->s.message : r < 0 ? weft_strerror(r) : "", run->merge.conflicts.count > 0);
}

static int start_merge(weft_snapshots *own, const weft_merge *merge, bool only_commit, weft_merge_done *done, void *ctx) {
    weft_snapshots *worktree;
    int r = weft__worktree_snapshots(own, merge->name, &worktree);
    if (r < 0)
        return r;
    if (merge->how >= WEFT_MERGE_HOWS || strlen(merge->message) > WEFT_WORKTREE_MESSAGE ||
        strlen(merge->owner) >= sizeof((tree_merge *) 0)->owner || strlen(merge->branch) >= sizeof((tree_merge *) 0)->branch)
        return -EINVAL;
    merge_run *run = weft__zalloc(own->alloc, sizeof *run);
    char *message = weft__strndup(own->alloc, merge->message, strlen(merge->message));
    if (!run || !message) {
        weft__free(own->alloc, message);
        weft__free(own->alloc, run);
        return -ENOMEM;
    }
    *run = (merge_run){.project = own, .worktree = worktree, .only_commit = only_commit, .done = done, .ctx = ctx};
    run->merge.how = merge->how;
    run->merge.message = message;
    snprintf(run->merge.owner, sizeof run->merge.owner, "%s", merge->owner);
    snprintf(run->merge.by, sizeof run->merge.by, "%s", merge->by ? merge->by : "");
    snprintf(run->merge.name, sizeof run->merge.name, "%s", merge->name);
    snprintf(run->merge.branch, sizeof run->merge.branch, "%s", merge->branch);
    r = give_merge(run, worktree, run_commit, finish_commit);
    if (r < 0)
        free_run(run);
    return r;
}

int weft__worktree_merge(weft_snapshots *own, const weft_merge *merge, weft_merge_done *done, void *ctx) {
    return start_merge(own, merge, false, done, ctx);
}

int weft__worktree_commit(weft_snapshots *own, const weft_merge *merge, weft_merge_done *done, void *ctx) {
    return start_merge(own, merge, true, done, ctx);
}

void weft__worktree_merge_recorded(weft_snapshots *own) {
    weft__snap_tree_plan_remove(own);
}

/* ---- one that was interrupted ---- */

typedef struct again_job {
    snap_job job;
    tree_merge merge;
    bool merged;
} again_job;

static void run_again(snap_job *job) {
    again_job *again = WEFT_CONTAINER(job, again_job, job);
    if (weft__snap_tree_conflicts_again(&job->s) && weft__snap_tree_land_is_open(job->s.own))
        again->merged = weft__snap_tree_land_again(&job->s, &again->merge) > 0;
}

static void finish_again(snap_job *job, bool lost) {
    again_job *again = WEFT_CONTAINER(job, again_job, job);
    const weft_snapshots *own = job->s.own;
    weft_merged merged = describe_merge(&again->merge);
    if (!lost && again->merged && own->on_merged)
        own->on_merged(own->ctx, &merged);
}

int weft__snap_look_for_merge(weft_snapshots *own) {
    if (!weft__snap_tree_conflicts_are_open(own) && !weft__snap_tree_land_is_open(own))
        return 0;
    again_job *again = weft__zalloc(own->alloc, sizeof *again);
    return again ? weft__snap_give(own, &again->job, run_again, finish_again) : -ENOMEM;
}

/* ---- listing and removing ---- */

typedef struct list_job {
    snap_job job;
    tree_looks looks;
    weft_prune prune; /* its texts lie in room */
    bool prunes;
    weft_worktree_listed *done;
    void *ctx;
    char room[];
} list_job;

static bool is_named(const char *const *names, const char *name) {
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static const char *why_not(const weft_prune *prune, const tree_look *look) {
    const weft_worktree_info *info = &look->info;
    if (prune->rest && !look->removing)
        return "";
    if (is_named(prune->busy, look->name))
        return "its session has a task to do";
    if (look->removing || prune->force)
        return NULL;
    if (info->making)
        return "it is being made";
    if (info->locked)
        return "somebody has locked it (git worktree unlock)";
    if (info->merging)
        return "a merge is to be finished in it";
    return weft__worktree_holds(info) ? "it holds work that is nowhere else" : NULL;
}

/* All were looked at first, which takes its time: somebody may have saved a file meanwhile. */
static void look_once_more(snap *s, const weft_prune *prune, tree_look *look) {
    if (prune->force || look->removing)
        return;
    look->info.why_not = weft__snap_tree_look_inside(s, look) ? why_not(prune, look) : "it could not be looked at";
}

/* One that cannot be removed does not keep the others from it. */
static void prune_one(const snap *s, const weft_prune *prune, tree_look *look) {
    snap t = {.own = s->own};
    look->info.why_not = why_not(prune, look);
    if (look->info.why_not || prune->dry)
        return;
    look_once_more(&t, prune, look);
    if (look->info.why_not) {
        weft__snap_done(&t);
        return;
    }
    if (prune->tip)
        snprintf(look->tip, sizeof look->tip, "%s", prune->tip);
    look->info.removed = weft__snap_tree_remove(&t, look);
    if (!look->info.removed)
        look->info.why_not = "it could not be removed";
    weft__snap_done(&t);
}

static void run_list(snap_job *job) {
    list_job *list = WEFT_CONTAINER(job, list_job, job);
    bool sizes = !list->prune.force && !list->prune.rest;
    if (!weft__snap_tree_looks(&job->s, list->prune.name, sizes, &list->looks) || !list->prunes)
        return;
    for (size_t i = 0; i < list->looks.count; i++)
        prune_one(&job->s, &list->prune, &list->looks.list[i]);
}

static void finish_list(snap_job *job, bool lost) {
    list_job *list = WEFT_CONTAINER(job, list_job, job);
    const weft_alloc *alloc = job->s.own->alloc;
    const weft_worktree_info **all = lost ? NULL : weft__zalloc(alloc, (list->looks.count + 1) * sizeof *all);
    for (size_t i = 0; all && i < list->looks.count; i++)
        all[i] = &list->looks.list[i].info;
    weft_worktree_list told = {.r = !all && !lost ? -ENOMEM : job->s.r,
                               .message = job->s.message,
                               .list = all,
                               .count = all && job->s.r == 0 ? list->looks.count : 0};
    for (size_t i = 0; i < told.count; i++)
        if (all[i]->removed)
            weft__snap_drop_tree(job->s.own, all[i]->name);
    if (!lost)
        list->done(list->ctx, &told);
    weft__free(alloc, all);
    weft__snap_tree_looks_done(&job->s, &list->looks);
}

static int give_list(weft_snapshots *own, const weft_prune *prune, bool prunes, weft_worktree_listed *done, void *ctx) {
    size_t count = prune->busy ? weft__texts_count(prune->busy) : 0, bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += strlen(prune->busy[i]) + 1;
    size_t head = (count + 2) * sizeof(char *);
    list_job *list = weft__zalloc(own->alloc, sizeof *list + head + bytes + 2 * 96);
    if (!list)
        return -ENOMEM;
    uintptr_t begin = ((uintptr_t) list->room + sizeof(char *) - 1) / sizeof(char *) * sizeof(char *);
    const char **busy = (const char **) begin;
    char *at = (char *) (busy + count + 1);
    list->prune = *prune;
    list->prune.name = prune->name ? at : NULL;
    at += prune->name ? (size_t) snprintf(at, 96, "%s", prune->name) % 96 + 1 : 0;
    list->prune.tip = prune->tip ? at : NULL;
    at += prune->tip ? (size_t) snprintf(at, 96, "%s", prune->tip) % 96 + 1 : 0;
    for (size_t i = 0; i < count; i++) {
        busy[i] = at;
        at = stpcpy(at, prune->busy[i]) + 1;
    }
    list->prune.busy = busy;
    list->prunes = prunes;
    list->done = done;
    list->ctx = ctx;
    return weft__snap_give(own, &list->job, run_list, finish_list);
}

int weft__worktree_list(weft_snapshots *own, weft_worktree_listed *done, void *ctx) {
    return give_list(own, &(weft_prune){0}, false, done, ctx);
}

int weft__worktree_prune(weft_snapshots *own, const weft_prune *prune, weft_worktree_listed *done, void *ctx) {
    if (prune->name && (strlen(prune->name) >= 64 || !*prune->name ||
                        strspn(prune->name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(prune->name)))
        return -EINVAL;
    if (prune->tip && !weft__snap_is_hex(prune->tip))
        return -EINVAL;
    return give_list(own, prune, true, done, ctx);
}

/* ---- forgetting ---- */

typedef struct forget_tree_job {
    snap_job job;
    char name[64];
} forget_tree_job;

static void run_forget_tree(snap_job *job) {
    char path[PATH_MAX + 80];
    snprintf(path, sizeof path, "%s/worktrees/%s.state", job->s.own->state, WEFT_CONTAINER(job, forget_tree_job, job)->name);
    weft__snap_remove_whole(&job->s, path);
}

static void finish_forget_tree(snap_job *job, bool lost) {
    (void) job;
    (void) lost;
}

int weft__worktree_forget(weft_snapshots *own, const char *name) {
    forget_tree_job *forget = weft__zalloc(own->alloc, sizeof *forget);
    if (!forget)
        return -ENOMEM;
    snprintf(forget->name, sizeof forget->name, "%s", name);
    return weft__snap_give(own, &forget->job, run_forget_tree, finish_forget_tree);
}
