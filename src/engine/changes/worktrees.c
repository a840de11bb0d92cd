/* The loop's side of worktrees: who asks for one, where it is, and its snapshots. See worktrees.h. */
#include "worktrees.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshots_private.h"

/* ---- making ---- */

typedef struct worktree_job {
    snap_job job;
    snap_worktree tree;
    char asker[64];
    weft_worktree_done *done;
    void *ctx;
} worktree_job;

static void run_worktree(snap_job *job) {
    weft__snap_worktree(&job->s, &WEFT_CONTAINER(job, worktree_job, job)->tree);
}

static void finish_worktree(snap_job *job, bool lost) {
    const worktree_job *made = WEFT_CONTAINER(job, worktree_job, job);
    weft_worktree told = {
        .r = job->s.r,
        .message = job->s.message,
        .owner = made->tree.owner,
        .asker = made->asker,
        .name = made->tree.name,
        .branch = made->tree.branch,
        .base = made->tree.base,
        .set_up = made->tree.set_up,
    };
    if (!lost)
        made->done(made->ctx, &told);
}

/* A name of ours: it becomes a folder's, and a part of a branch's. */
static bool is_tree_name(const char *name) {
    size_t len = strlen(name);
    return len && len < 48 && *name != '-' && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

int weft__worktree_make(weft_snapshots *own, const weft_worktree_order *order, weft_worktree_done *done, void *ctx) {
    if (!is_tree_name(order->owner))
        return -EINVAL;
    worktree_job *made = weft__zalloc(own->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    snprintf(made->tree.owner, sizeof made->tree.owner, "%s", order->owner);
    snprintf(made->asker, sizeof made->asker, "%s", order->asker);
    made->tree.changes = order->changes;
    made->done = done;
    made->ctx = ctx;
    return weft__snap_give(own, &made->job, run_worktree, finish_worktree);
}

/* ---- where it is ---- */

int weft__worktree_path(const weft_snapshots *own, const char *name, char ret[PATH_MAX]) {
    char path[PATH_MAX];
    struct stat st;
    if (!is_tree_name(name))
        return -ENOENT;
    int n = snprintf(path, sizeof path, "%s/worktrees/%s", own->state, name);
    if (n >= (int) sizeof path)
        return -ENAMETOOLONG;
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return -ENOENT;
    memcpy(ret, path, (size_t) n + 1);
    return 0;
}

static void name_set_up(const weft_snapshots *own, const char *name, char ret[2 * PATH_MAX]) {
    snprintf(ret, 2 * PATH_MAX, "%s/worktrees/%s.state/set-up", own->state, name);
}

int weft__worktree_set_up(const weft_snapshots *own, const char *name) {
    char path[2 * PATH_MAX];
    if (!is_tree_name(name))
        return -EINVAL;
    name_set_up(own, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

bool weft__worktree_is_set_up(const weft_snapshots *own, const char *name) {
    char path[2 * PATH_MAX];
    name_set_up(own, name, path);
    return access(path, F_OK) == 0;
}

/* ---- its snapshots ---- */

static int new_tree(weft_snapshots *own, const char *name, snap_tree **ret) {
    char folder[PATH_MAX], state[2 * PATH_MAX];
    int r = weft__worktree_path(own, name, folder);
    snap_tree *tree = r < 0 ? NULL : weft__zalloc(own->alloc, sizeof *tree);
    if (!tree)
        return r < 0 ? r : -ENOMEM;
    snprintf(state, sizeof state, "%s/worktrees/%s.state", own->state, name);
    snprintf(tree->name, sizeof tree->name, "%s", name);
    r = weft__snapshots_new(
        &(weft_snapshots_opts){
            .loop = own->loop,
            .alloc = own->alloc,
            .folder = folder,
            .state = state,
            .mark = own->mark,
            .project = own->folder,
            .program = own->program,
            .max_file = own->max_file,
            .run_ms = own->run_ms,
            .set_umask = own->set_umask,
            .umask = own->umask,
            .on_undone = own->on_undone,
            .on_merged = own->on_merged,
            .ctx = own->ctx,
        },
        &tree->snapshots);
    if (r < 0)
        weft__free(own->alloc, tree);
    else
        *ret = tree;
    return r;
}

int weft__worktree_snapshots(weft_snapshots *own, const char *name, weft_snapshots **ret) {
    size_t count = 0;
    snap_tree *tree;
    for (weft_link *at = own->trees.next; at != &own->trees; at = at->next, count++) {
        tree = WEFT_CONTAINER(at, snap_tree, link);
        if (strcmp(tree->name, name) == 0) {
            *ret = tree->snapshots;
            return 0;
        }
    }
    if (count >= WEFT_WORKTREES)
        return -EMFILE;
    int r = new_tree(own, name, &tree);
    if (r < 0)
        return r;
    weft__list_push(&own->trees, &tree->link);
    *ret = tree->snapshots;
    return 0;
}

static void drop_tree(weft_snapshots *own, snap_tree *tree) {
    weft__list_remove(&tree->link);
    weft__snapshots_free(tree->snapshots);
    weft__free(own->alloc, tree);
}

void weft__snap_drop_tree(weft_snapshots *own, const char *name) {
    for (weft_link *at = own->trees.next; at != &own->trees; at = at->next)
        if (strcmp(WEFT_CONTAINER(at, snap_tree, link)->name, name) == 0) {
            drop_tree(own, WEFT_CONTAINER(at, snap_tree, link));
            return;
        }
}

void weft__snap_drop_trees(weft_snapshots *own) {
    while (!weft__list_empty(&own->trees))
        drop_tree(own, WEFT_CONTAINER(own->trees.next, snap_tree, link));
}
