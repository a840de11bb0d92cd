/* A git worktree for a task: a checkout of its own on a branch of its own, so that an agent works beside the project's files
 * and not in them.
 *
 * A worktree lies in the hub's folder, "worktrees/NAME", which git must ignore; what we know of it is beside it in
 * "NAME.state". It is made by git's plumbing without hooks and filters, and nothing that the repository's configuration
 * names runs. Worktrees are made on the snapshots' thread, and need a repository of the user's. Decisions 105 and 110 have
 * the reasons. */
#ifndef WEFT_WORKTREES_H
#define WEFT_WORKTREES_H

#include <limits.h>

#include "snapshots.h"

#define WEFT_WORKTREE_MESSAGE 4096 /* bytes of a commit's message */
#define WEFT_WORKTREES 64          /* that have snapshots of their own in one run of the hub; each has a thread */

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
    bool set_up;                                      /* weft__worktree_set_up() was called for it */
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
/* What has to be done in a new one is done. -errno. */
int weft__worktree_set_up(const weft_snapshots *snapshots, const char *name);
bool weft__worktree_is_set_up(const weft_snapshots *snapshots, const char *name);

/* ---- bringing its work into the project ---- */

typedef enum weft_merge_how {
    WEFT_MERGE_MERGE,  /* as git merge: a commit with two parents, or none if the project has not gone on */
    WEFT_MERGE_SQUASH, /* as one commit */
    WEFT_MERGE_REBASE, /* commit by commit */
    WEFT_MERGE_HOWS,
} weft_merge_how;
extern const char *const weft__merge_hows[WEFT_MERGE_HOWS]; /* "merge", ... */

typedef struct weft_merge {
    const char *owner, *by;    /* a task's id; for people, NULL: nobody said */
    const char *name, *branch; /* of the worktree */
    weft_merge_how how;
    const char *message; /* of commits that are made; at most WEFT_WORKTREE_MESSAGE */
} weft_merge;

typedef struct weft_merged {
    const char *owner, *by, *name, *branch, *how;
    const char *into, *from, *to; /* the project's branch, and its commit before and after */
    const char *tip;              /* of the worktree's branch */
    const char *before, *after;   /* snapshots of the project's files */
    size_t files;                 /* of the project that have changed */
    size_t left;                  /* of one that was interrupted: files that somebody else had changed meanwhile */
} weft_merged;

typedef struct weft_merge_result {
    int r; /* 0 also when there are conflicts; -EALREADY: all of it is in the project */
    const char *message;
    /* Without in_worktree: paths in the project that are in the way; nothing was done. With it: those that are left in the
     * worktree, with marks in them, for somebody to finish; or that still have marks ("marked"). */
    const weft_conflict *conflicts;
    size_t conflict_count, listed;
    bool in_worktree;
    bool committed; /* what was in the worktree and not committed is now */
    weft_merged merged;
} weft_merge_result;
/* Once, never inside of the call; not when the snapshots are freed before. Borrowed. */
typedef void weft_merge_done(void *ctx, const weft_merge_result *result);

/* All that is in the worktree is committed on its branch, and the branch is brought into the one that is checked out in the
 * project. Nothing that somebody has changed there is touched. When it is on record, call weft__worktree_merge_recorded();
 * until then it is told again at every start. Copied. -ENOENT: there is no such worktree; -EINVAL, -EAGAIN, -ENOMEM. */
int weft__worktree_merge(weft_snapshots *snapshots, const weft_merge *merge, weft_merge_done *done, void *ctx);
void weft__worktree_merge_recorded(weft_snapshots *snapshots);
/* Only the first half: commit all of it. merged.tip is the branch's commit. */
int weft__worktree_commit(weft_snapshots *snapshots, const weft_merge *merge, weft_merge_done *done, void *ctx);

/* ---- which there are ---- */

typedef struct weft_worktree_info {
    const char *name, *owner, *branch, *path, *tip;
    bool there;           /* the folder is */
    bool making, unclear; /* it is not whole; nobody can say what it holds */
    bool merging;         /* a merge is to be finished in it */
    bool locked;          /* with "git worktree lock": whoever did that wants to keep it */
    uint64_t changed, unknown,
        commits;           /* files that are not committed, that git does not know, commits of no branch of others */
    uint64_t bytes, files; /* on the disk */
    bool removed;          /* by this call */
    const char *why_not;   /* it was not, in words; NULL */
} weft_worktree_info;
/* Does it hold work that is nowhere else? */
static inline bool weft__worktree_holds(const weft_worktree_info *info) {
    return info->changed || info->unknown || info->commits || info->unclear;
}

typedef struct weft_worktree_list {
    int r;
    const char *message;
    const weft_worktree_info *const *list;
    size_t count;
} weft_worktree_list;
typedef void weft_worktree_listed(void *ctx, const weft_worktree_list *list);

int weft__worktree_list(weft_snapshots *snapshots, weft_worktree_listed *done, void *ctx);
/* Remove what holds nothing that is nowhere else. busy, names that end with NULL, are left alone. name: this alone, NULL:
 * all. dry: only say which. force: also if it holds something: somebody has said so, and its branch's commit, tip, is known.
 */
typedef struct weft_prune {
    const char *name, *tip;
    const char *const *busy;
    bool dry, force;
    bool rest; /* only what was being removed when a daemon ended */
} weft_prune;
int weft__worktree_prune(weft_snapshots *snapshots, const weft_prune *prune, weft_worktree_listed *done, void *ctx);
/* That it was removed is in the journal: nothing has to be known of it any more. -ENOMEM, -EAGAIN: not now. */
int weft__worktree_forget(weft_snapshots *snapshots, const char *name);

#endif
