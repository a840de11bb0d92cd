/* A git worktree for a task: a checkout of its own on a branch of its own, so that an agent works beside the project's files
 * and not in them.
 *
 * A worktree lies in the hub's folder, "worktrees/NAME", which git must ignore; what we know of it is beside it in
 * "NAME.state". It is made by git's plumbing without hooks and filters, and nothing that the repository's configuration
 * names runs. Worktrees are made on the snapshots' thread, and need a repository of the user's. Decision 105 has the
 * reasons. */
#ifndef WEFT_WORKTREES_H
#define WEFT_WORKTREES_H

#include <limits.h>

#include "snapshots.h"

#define WEFT_WORKTREES 64 /* that have snapshots of their own in one run of the hub; each has a thread */

typedef struct weft_worktree_order {
    const char
        *owner; /* "task-0001": the worktree has this name, and its branch is "weft/task-0001", where these are free */
    const char *asker; /* told again with the result; at most 63 bytes */
    bool changes;      /* with the changes in the project's files that are not committed */
} weft_worktree_order;

/* r: -EREMOTEIO git or the repository refuses, and others as of a snapshot; message is a sentence for people, "" with r 0.
 * Borrowed. */
typedef struct weft_worktree {
    int r;
    const char *message;
    const char *owner, *asker, *name, *branch, *base; /* base: the commit that it began with */
} weft_worktree;
/* Once, never inside of the call; not when the snapshots are freed before. */
typedef void weft_worktree_done(void *ctx, const weft_worktree *made);

/* The worktree of this owner. One that is there already is left as it is, and told again; one that was only begun, because
 * the daemon ended, is begun anew. Copied. -EINVAL, -EAGAIN, -ENOMEM. */
int weft__worktree_make(weft_snapshots *snapshots, const weft_worktree_order *order, weft_worktree_done *done, void *ctx);
/* Where it is. -ENOENT: it is not there, or is no folder of this user; -ENAMETOOLONG. */
int weft__worktree_path(const weft_snapshots *snapshots, const char *name, char ret[PATH_MAX]);
/* Its snapshots, borrowed until the project's are freed. -ENOENT as above; -EMFILE: too many. */
int weft__worktree_snapshots(weft_snapshots *snapshots, const char *name, weft_snapshots **ret);

#endif
