/* The inside of worktrees behind their making: bringing their work into the project, and removing them. All of it runs on a
 * thread: that of the worktree's snapshots, or the project's. */
#ifndef WEFT_WORKTREES_PRIVATE_H
#define WEFT_WORKTREES_PRIVATE_H

#include "snapshots_private.h"
#include "worktrees.h"

#define TREE_SUBJECT 72 /* bytes of a commit's first line */

/* One merge, through all of its steps. */
typedef struct tree_merge {
    char owner[64], by[256], name[64], branch[96];
    weft_merge_how how;
    char *message;                                       /* of commits; owned by the merge */
    char tip[WEFT_SNAPSHOT_HEX];                         /* the branch's last commit, with all that is in the worktree */
    bool committed;                                      /* there was something that was not */
    char into[256];                                      /* the branch that is checked out in the project: "main" */
    char old[WEFT_SNAPSHOT_HEX], now[WEFT_SNAPSHOT_HEX]; /* its commit before and after */
    bool conflicted;                                     /* the two cannot be merged by themselves */
    bool landed;
    size_t files, left;
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX]; /* the project's files, as snapshots */
    snap_conflicts conflicts;
} tree_merge;
void weft__snap_tree_merge_done(snap *s, tree_merge *merge);

/* ---- worktree_commit.c ---- */

/* The name of a commit or the like in the user's repository; "": there is none. */
bool weft__snap_tree_rev(snap *s, const char *what, char ret[WEFT_SNAPSHOT_HEX]);
/* The branch that is checked out, "main"; refused in words when there is none, or a merge or the like is under way. where:
 * "the project's folder", "the worktree". */
bool weft__snap_tree_head(snap *s, const char *where, char *ret, size_t size);
bool weft__snap_tree_is_ancestor(snap *s, const char *a, const char *b, bool *ret);
typedef struct tree_commit {
    const char *tree, *first, *second; /* parents; NULL: none */
    const char *message;
    const char *const *env; /* who wrote it; NULL: the user */
    bool ours;              /* in our own git folder: nobody is told who the user is */
} tree_commit;
bool weft__snap_tree_commit_write(snap *s, const tree_commit *commit, char ret[WEFT_SNAPSHOT_HEX]);
/* Fill a new index from a tree, with the states of the files in it, and put it in the place of another. */
bool weft__snap_tree_index_put(snap *s, const char *tree, weft_bytes stages);
/* Everything that is in the worktree and not ignored becomes a commit on its branch, if it is not in one. On the worktree's
 * thread. */
bool weft__snap_tree_commit_all(snap *s, tree_merge *merge);

/* ---- worktree_merge.c ---- */

/* Merge two commits by a base. *ret_clean; ret_tree is the result, with marks where it is not clean; stages then are the
 * lines for an index. */
bool weft__snap_tree_three_way(snap *s, const char *base, const char *worktree, const char *project, bool *ret_clean,
                               char ret_tree[WEFT_SNAPSHOT_HEX], weft_buf *stages);
/* Into the project's checkout. On the project's thread. */
bool weft__snap_tree_merge(snap *s, tree_merge *merge);
bool weft__snap_tree_base(snap *s, const tree_merge *merge, char ret[WEFT_SNAPSHOT_HEX]);

/* ---- worktree_land.c ---- */

/* Files, branch and index of the project become those of merge->now; all or nothing, and what somebody has changed is in
 * the way. */
bool weft__snap_tree_land(snap *s, tree_merge *merge);
/* One that was interrupted: 1 it is finished, 0 there is none, or it was not begun, <0. */
int weft__snap_tree_land_again(snap *s, tree_merge *ret);
bool weft__snap_tree_land_is_open(const weft_snapshots *own);
void weft__snap_tree_plan_remove(const weft_snapshots *own);
/* What was merged last of a worktree, and which commit has it; both "" when nothing was. */
void weft__snap_tree_merged_read(const snap *s, const char *state, const char *name, char tip[WEFT_SNAPSHOT_HEX],
                                 char now[WEFT_SNAPSHOT_HEX]);

/* ---- worktree_conflicts.c ---- */

/* The project's branch is merged into the worktree as far as that goes; the rest is left there for somebody. On the
 * worktree's thread. */
bool weft__snap_tree_leave_conflicts(snap *s, tree_merge *merge);
/* One that was interrupted is finished; true also when there is none. */
bool weft__snap_tree_conflicts_again(snap *s);
bool weft__snap_tree_conflicts_are_open(const weft_snapshots *own);

/* ---- worktree_look.c ---- */

typedef struct tree_look {
    weft_worktree_info info; /* its texts are these: */
    char name[64], owner[64], branch[96], path[PATH_MAX];
    char tip[WEFT_SNAPSHOT_HEX];
    bool removing;
} tree_look;
typedef struct tree_looks {
    tree_look *list;
    size_t count, cap;
} tree_looks;
/* All that are there. name: only this; NULL: all. */
/* What it holds now. */
bool weft__snap_tree_look_inside(snap *s, tree_look *look);
bool weft__snap_tree_looks(snap *s, const char *name, bool sizes, tree_looks *ret);
void weft__snap_tree_looks_done(snap *s, tree_looks *looks);
/* Remove it, with its branch if that is still where it was looked at. Whoever calls this knows that nothing is lost. */
bool weft__snap_tree_remove(snap *s, const tree_look *look);

/* ---- worktree_make.c ---- */

/* Read what is written down; false: there is nothing, or it is of another journal. ret_step has room for 16. */
bool weft__snap_tree_record_read(const snap *s, const char *name, snap_worktree *ret, char *ret_step);
bool weft__snap_tree_record_write(snap *s, const snap_worktree *tree, const char *step);

#endif
