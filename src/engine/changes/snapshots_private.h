/* The inside of snapshots: the loop's side (snapshots.c) and the thread's (the others). */
#ifndef WEFT_SNAPSHOTS_PRIVATE_H
#define WEFT_SNAPSHOTS_PRIVATE_H

#include <limits.h>
#include <sys/stat.h>

#include "git_private.h"
#include "snapshots.h"

#define SNAP_MESSAGE 512
#define SNAP_GITLINK 0160000u
#define SNAP_SYMLINK 0120000u
#define SNAP_REGULAR 0100000u
/* A file that is too large has this in a tree instead of its content: a link to a commit that nobody has, whose name says
 * the file's size and time. */
#define SNAP_TOO_LARGE "77656674"

/* Where the files and the objects are. Of the thread. */
typedef struct snap_place {
    bool known;
    bool git;                   /* in a repository of the user's */
    weft_repository repository; /* without one: top is the folder */
    char own[PATH_MAX];         /* our git folder */
    char index[PATH_MAX + 16];
    char objects[PATH_MAX + 16];
    char format[16];
    char excludes[PATH_MAX]; /* core.excludesFile, "": none or the usual one */
    char shared[64];         /* core.sharedRepository, "": none */
    struct stat config;      /* of our git folder, as we made it */
    bool converts;           /* a setting of the user's may make git keep other bytes than are in the files */
} snap_place;

/* The snapshots of one worktree, with a thread of their own. */
typedef struct snap_tree {
    weft_link link;
    weft_snapshots *snapshots;
    char name[64];
} snap_tree;

struct weft_snapshots {
    weft_loop *loop;
    const weft_alloc *alloc;
    char *folder, *state, *program;
    char *mark;    /* NULL: none */
    char *project; /* of a worktree; NULL: it is none */
    dev_t dev;     /* of the folder, */
    ino_t ino;     /* which somebody may exchange for another, or for a link */
    int no_program;
    uint64_t max_file;
    int64_t run_ms;
    mode_t umask;
    bool set_umask;
    weft_git_env env;
    weft_workers *workers;
    int cancel; /* an eventfd: everything is being freed */
    void (*on_undone)(void *ctx, const weft_undone *undone);
    void (*on_merged)(void *ctx, const struct weft_merged *merged);
    void *ctx;
    /* Of the loop. */
    weft_link waits; /* for the next snapshot */
    size_t wait_count;
    weft_later later;   /* to begin one */
    bool taking;        /* one is under way */
    weft_buf forgotten; /* owners, each ends with NUL, for the next job that forgets */
    bool forgetting;
    weft_link trees; /* of worktrees, see worktrees.c */
    /* Of the thread. */
    snap_place place;
    int root; /* the place's top, open; -1 */
    char latest[WEFT_SNAPSHOT_HEX], kept[WEFT_SNAPSHOT_HEX];
    bool kept_known;
    struct stat index; /* the user's, when it was last asked for files that are tracked though ignored */
};

/* What a piece of work on the thread came to. */
typedef struct snap {
    weft_snapshots *own;
    int r;
    char message[SNAP_MESSAGE];
    weft_command_end end; /* of the last program */
} snap;

/* One piece of work. Texts that belong to it lie behind it. */
typedef struct snap_job {
    weft_work work;
    snap s;
    void (*run)(struct snap_job *job);
    void (*finish)(struct snap_job *job, bool lost); /* frees what is its own, not the job */
} snap_job;
/* The job is taken, also when this fails. */
int weft__snap_give(weft_snapshots *own, snap_job *job, void (*run)(snap_job *), void (*finish)(snap_job *, bool));

void weft__snap_done(snap *s);
/* Our failure, or a refusal in words. Both return false. */
bool weft__snap_fail(snap *s, int r);
bool weft__snap_refuse(snap *s, int r, const char *format, ...) WEFT_PRINTF(3, 4);

/* ---- snapshot_git.c ---- */

typedef struct snap_run {
    const char *const *argv; /* behind "git" */
    weft_bytes input;
    size_t max_output;      /* 0: 64 KiB */
    const char *index;      /* another index; NULL: the place's */
    bool theirs;            /* in the user's repository, with its configuration made harmless, and not in ours */
    bool may_fail;          /* its exit code is for the caller */
    bool may_cut;           /* so is too much output */
    bool magic;             /* it refuses paths that mean only themselves */
    int folder;             /* -1 or 0: the place's top */
    const char *work_tree;  /* of ours: whose files are meant; NULL: the place's */
    const char *const *env; /* more variables, ending with NULL; NULL: none */
} snap_run;
/* Find where the files and objects are, and make what is ours. */
bool weft__snap_find(snap *s);
bool weft__snap_git(snap *s, const snap_run *run);
weft_bytes weft__snap_output(const snap *s);
/* The name of an object that was printed. */
bool weft__snap_take_hex(snap *s, char ret[WEFT_SNAPSHOT_HEX]);
bool weft__snap_is_hex(const char *text);

/* What the user's repository ignores by itself, in info/exclude; and having ours ignore that. */
bool weft__snap_excludes(snap *s, weft_buf *ret);
bool weft__snap_use_excludes(snap *s, const weft_buf *text);

bool weft__snap_make_folder(snap *s, const char *path);
/* A ref that is to be changed, "refs/heads/x": refused in words when what git writes about it would go elsewhere. */
bool weft__snap_logs_are_plain(snap *s, const char *ref);

/* ---- snapshot_pipes.c ---- */

/* A named pipe that git reads in a folder beneath root, as a path from there. */
bool weft__snap_find_pipe(int root, char ret[PATH_MAX]);

/* ---- worktree_make.c ---- */

typedef struct snap_worktree {
    char owner[64];
    bool changes;
    char name[64], branch[96], base[WEFT_SNAPSHOT_HEX];
    bool set_up;
} snap_worktree;
bool weft__snap_worktree(snap *s, snap_worktree *tree);
bool weft__snap_is_whole_checkout(snap *s);
/* Free the snapshots of one worktree, or of all: worktrees.c. */
void weft__snap_drop_tree(weft_snapshots *own, const char *name);
void weft__snap_drop_trees(weft_snapshots *own);
/* A merge that was interrupted is finished, of the project or in a worktree: worktree_jobs.c. */
int weft__snap_look_for_merge(weft_snapshots *own);

/* ---- snapshot_take.c ---- */

bool weft__snap_take(snap *s, char ret[WEFT_SNAPSHOT_HEX]);

/* ---- snapshot_keep.c ---- */

typedef struct snap_keep {
    const char *name; /* "task-0001.before" */
    const char *tree; /* NULL: no longer. Then a name without "." means all of its owner's */
} snap_keep;
/* All of them, and the latest, in one step. With "task-0001.before" also "task-0001.rules", what is ignored now. */
bool weft__snap_keep(snap *s, const snap_keep *keeps, size_t count);
/* The tree that is kept under this name; "": none is. */
bool weft__snap_kept(snap *s, const char *name, char ret[WEFT_SNAPSHOT_HEX]);
/* The ref that keeps the snapshots of a folder. */
void weft__snap_ref_of(const char *folder, char ret[48]);
/* The owners of everything that is kept, each ends with NUL. */
bool weft__snap_owners(snap *s, weft_buf *ret);

/* ---- snapshot_diff.c ---- */

/* One line of a raw diff. */
typedef struct snap_entry {
    unsigned old_mode, new_mode;
    char old_hex[WEFT_SNAPSHOT_HEX], new_hex[WEFT_SNAPSHOT_HEX];
    char status;
    char *path, *from;
} snap_entry;
typedef struct snap_entries {
    weft_buf text; /* what the paths point into */
    snap_entry *list;
    size_t count, cap;
} snap_entries;
/* Without renames, by path. */
bool weft__snap_entries(snap *s, const char *from, const char *to, snap_entries *ret);
/* The same for an index: what is staged since a commit. Of paths that are not merged status is 'U'. */
bool weft__snap_staged(snap *s, const char *from, const char *index, snap_entries *ret);
void weft__snap_entries_done(snap *s, snap_entries *entries);
const snap_entry *weft__snap_entry(const snap_entries *entries, const char *path);
bool weft__snap_is_too_large(unsigned mode, const char *hex);

typedef struct snap_files {
    weft_buf text;
    weft_changed_file *list;
    weft_changed_list pub;
} snap_files;
bool weft__snap_files(snap *s, const weft_comparison *what, const char *to, snap_files *ret);
bool weft__snap_mark_shared(snap *s, const char *const *pairs, snap_files *files);
void weft__snap_files_done(snap *s, snap_files *files);
bool weft__snap_text(snap *s, const weft_comparison *what, const char *to, bool *ret_truncated);

/* ---- snapshot_remove.c ---- */

/* A folder with all that is in it, or a file; 0 also when it is not there. */
int weft__snap_remove_tree(const char *path);
bool weft__snap_remove_whole(snap *s, const char *path);

/* ---- snapshot_ignored.c ---- */

/* Which of the files that are new git ignores: as the checkout is now, where what is in its index is not ignored; and by the
 * rules of the tree that they are new since, which are asked only when the rules have changed. ret has a place for each of
 * the entries, all false. */
bool weft__snap_ignored_now(snap *s, const snap_entries *entries, bool *ret);
/* owner: whose snapshot the tree is. */
bool weft__snap_ignored_by(snap *s, const char *owner, const char *tree, const snap_entries *entries, bool *ret);
/* A tree that has what the repository ignores by itself; "": it ignores nothing so. */
bool weft__snap_rules(snap *s, char ret[WEFT_SNAPSHOT_HEX]);

/* ---- snapshot_undo.c, snapshot_apply.c ---- */

/* What is to become of one path. */
typedef struct snap_step {
    const char *path;
    unsigned old_mode, new_mode; /* 0: not there */
    char old_hex[WEFT_SNAPSHOT_HEX], new_hex[WEFT_SNAPSHOT_HEX];
} snap_step;
typedef struct snap_plan {
    weft_buf text; /* what the steps of one that was read point into */
    char owner[64], by[256];
    bool redo;
    char from[WEFT_SNAPSHOT_HEX], to[WEFT_SNAPSHOT_HEX];
    snap_step *steps;
    size_t count, cap;
} snap_plan;

#define SNAP_CONFLICTS 1000 /* that are listed */
typedef struct snap_conflicts {
    weft_conflict *list; /* their paths are owned */
    size_t count, listed;
} snap_conflicts;
bool weft__snap_conflict(snap *s, snap_conflicts *conflicts, const char *path, const char *reason);
void weft__snap_conflicts_done(snap *s, snap_conflicts *conflicts);

/* All of the steps or none: with conflicts none was taken. The files were as in plan->from a moment ago. */
bool weft__snap_apply(snap *s, const snap_plan *plan, snap_conflicts *conflicts);
/* The same for a plan that was interrupted, as far as nobody has changed the files since. */
bool weft__snap_finish(snap *s, const snap_plan *plan, size_t *ret_left);

bool weft__snap_undo(snap *s, const weft_undo *undo, snap_plan *plan, snap_conflicts *conflicts);
/* 1 read, 0 there is none. A plan that cannot be read is none. */
int weft__snap_plan_read(snap *s, snap_plan *ret);
void weft__snap_plan_done(snap *s, snap_plan *plan);
void weft__snap_plan_remove(const weft_snapshots *own);
/* Any plan, in the file "changes/NAME": words, then the steps. Reading: 1, 0 as above; the words point into ret->text. */
bool weft__snap_plan_store(snap *s, const char *name, const char *const *words, size_t count, const snap_plan *plan);
int weft__snap_plan_load(snap *s, const char *name, const char **ret_words, size_t count, snap_plan *ret);
/* Set plan->to: what the files are like, plan->from, with the steps taken. */
bool weft__snap_plan_goal(snap *s, snap_plan *plan);
/* A small file, whole or not at all, and on the disk. */
int weft__snap_write_durably(const char *path, weft_bytes text);
bool weft__snap_plan_add(snap *s, snap_plan *plan, const snap_step *step);
/* An object's content, in s->end.output. */
bool weft__snap_blob(snap *s, const char *hex);

#endif
