/* What a project's files were like at some moment, so that what a task changed can be shown and taken back.
 *
 * A snapshot is a tree of git's, made with plumbing and an index of our own. In a repository its objects are written there,
 * and one ref, refs/weft/..., keeps those that are needed; the user's index, branches, stash, hooks and reflogs are not
 * touched, and the repository's configuration is not read: no filter, hook or program of its own runs, and files are taken
 * byte by byte as they are. Without a repository the objects are in a bare one in the hub's own folder. Ignored files stay
 * out, and so do the hub's own. Other repositories inside are not entered: a tree has their commit. Files over a limit are
 * not stored: a tree has their size and time. Decisions 99 and 100 have the reasons.
 *
 * Everything is done on one thread (workers.h), one after the other; the loop does not wait. Paths are relative to the
 * folder and as the system has them: not always UTF-8. */
#ifndef WEFT_SNAPSHOTS_H
#define WEFT_SNAPSHOTS_H

#include "loop.h"

#define WEFT_SNAPSHOT_HEX 65           /* room for a tree's name */
#define WEFT_SNAPSHOT_WAIT_MS 20000    /* for a snapshot, until whoever wants it goes on without */
#define WEFT_SNAPSHOT_RUN_MS 120000    /* for one program of git */
#define WEFT_SNAPSHOT_FILE (64u << 20) /* bytes of a file; a larger one is not stored */
#define WEFT_SNAPSHOT_NEW_FILES 200000 /* that are new or changed since the last snapshot; more is refused, as are more: */
#define WEFT_SNAPSHOT_NEW_BYTES ((uint64_t) 2 << 30)
#define WEFT_SNAPSHOT_LIST (64u << 20)      /* bytes of all paths that changed */
#define WEFT_SNAPSHOT_DIFF (1u << 20)       /* bytes of a diff, unless somebody asks for more or less */
#define WEFT_SNAPSHOT_DIFF_MAX (16u << 20)  /* of one page */
#define WEFT_SNAPSHOT_DIFF_ALL (256u << 20) /* of a diff that is read in pages */
#define WEFT_SNAPSHOT_UNDO_FILES 50000      /* of one undo */
#define WEFT_SNAPSHOT_CONTEXT 1000          /* lines around a change */
#define WEFT_SNAPSHOT_RULES (256u << 10)    /* bytes of a repository's info/exclude; a larger one is not read */
#define WEFT_SNAPSHOT_WAITING 256           /* calls that have not begun */

typedef struct weft_snapshots weft_snapshots;
typedef struct weft_undone weft_undone;
struct weft_merged;

typedef struct weft_snapshots_opts {
    weft_loop *loop;
    const weft_alloc *alloc; /* is used from the thread too */
    const char *folder;      /* absolute */
    const char *state;       /* absolute: a folder of ours that is there already; snapshots are in "changes" in it */
    const char *mark;    /* of the journal that knows of the snapshots: what is there under another one is somebody else's,
                            a clone's for instance, and is removed unread; NULL: none */
    const char *project; /* the folder is a worktree of this folder's repository, and nothing else is worked with: what
                            somebody has put in its place is refused; NULL: any folder */
    const char *program; /* NULL: git in PATH, but none in the folder */
    uint64_t max_file;   /* 0: WEFT_SNAPSHOT_FILE */
    int64_t run_ms;      /* 0: WEFT_SNAPSHOT_RUN_MS */
    bool set_umask;      /* for what git makes and what an undo makes; else the process's */
    mode_t umask;
    /* An undo that was interrupted has been finished; from the loop. May be NULL. */
    void (*on_undone)(void *ctx, const weft_undone *undone);
    /* A merge of a worktree (worktrees.h), likewise. */
    void (*on_merged)(void *ctx, const struct weft_merged *merged);
    void *ctx;
} weft_snapshots_opts;

/* -ENOENT, -ENOTDIR: the folder. That git is not installed is told by the calls. The environment is copied now. */
int weft__snapshots_new(const weft_snapshots_opts *opts, weft_snapshots **ret);
/* A program that runs is ended and waited for; who waits is not told. Returns NULL. */
weft_snapshots *weft__snapshots_free(weft_snapshots *snapshots);

/* ---- taking one ---- */

/* r: -ETIMEDOUT it took too long (it goes on, and the next one is quicker), -ENOENT git is not installed, -EFBIG too much,
 * -EREMOTEIO git or the repository refuses, -ENOTSUP git cannot read the project's rules; message is a sentence for people,
 * "" with r 0. Borrowed. */
typedef struct weft_snapshot {
    int r;
    const char *message;
    const char *tree;
} weft_snapshot;

/* Somebody who waits for one. Embedded in its owner, who may cancel it; zero before. */
typedef struct weft_snapshot_wait {
    weft_link link;
    weft_snapshots *snapshots; /* NULL: it does not wait */
    weft_timer limit;
    char name[64];
    /* Once, never inside of weft__snapshots_take(). */
    void (*on_taken)(struct weft_snapshot_wait *wait, const weft_snapshot *snapshot);
} weft_snapshot_wait;

/* Of the files as they are now or a little later. name: it is kept under this name, "task-0001.before", until that is
 * forgotten; NULL: as long as nothing changes. Letters, digits, "-" and one "."; at most 63. One that is asked for while
 * another is being taken shares the next with all others. -EAGAIN: too much is waiting. */
int weft__snapshots_take(weft_snapshots *snapshots, const char *name, int64_t wait_ms, weft_snapshot_wait *wait);
void weft__snapshot_cancel(weft_snapshot_wait *wait);
/* Keep a tree that the snapshots of one of our worktrees took, under a name as above. */
int weft__snapshots_adopt(weft_snapshots *snapshots, const char *name, const char *tree);
/* What is kept under names that begin with owner and a "." is no longer needed. owner is "task-0001". -ENOMEM: not now. */
int weft__snapshots_forget(weft_snapshots *snapshots, const char *owner);
/* The same for everybody for whom known, called later, says false: at a start. */
int weft__snapshots_sweep(weft_snapshots *snapshots, bool (*known)(void *ctx, const char *owner), void *ctx);

/* ---- what differs ---- */

typedef enum weft_changed {
    WEFT_CHANGED_ADDED,
    WEFT_CHANGED_MODIFIED,
    WEFT_CHANGED_DELETED,
    WEFT_CHANGED_RENAMED,
    WEFT_CHANGED_TYPE, /* a file became a link, or the like */
    WEFT_CHANGED_KINDS,
} weft_changed;
extern const char *const weft__changed_names[WEFT_CHANGED_KINDS]; /* "added", ... */

typedef struct weft_changed_file {
    const char *path, *from; /* from: it was renamed; else NULL */
    weft_changed change;
    unsigned old_mode, new_mode; /* 0100644, 0100755, 0120000 a link, 0160000 another repository; 0: not there */
    bool binary, submodule;
    bool shared;                   /* see weft_comparison */
    bool too_large;                /* it is not stored; */
    uint64_t size;                 /* of one that is too large, now */
    uint64_t additions, deletions; /* lines; 0 for what has none */
} weft_changed_file;

typedef struct weft_changed_list {
    const weft_changed_file *files; /* by path */
    size_t count;
    size_t of[WEFT_CHANGED_KINDS];
    uint64_t additions, deletions;
} weft_changed_list;

typedef struct weft_compared {
    int r; /* as above; -ESTALE: a tree is not there any more */
    const char *message;
    const char *to;                /* the tree, also if it was taken for this */
    const weft_changed_list *list; /* of a comparison */
    weft_bytes text;               /* of a diff, as git prints it */
    bool truncated;                /* it has more behind this */
} weft_compared;
/* Once, never inside of the call; not when the snapshots are freed before. Everything is borrowed. */
typedef void weft_compared_done(void *ctx, const weft_compared *compared);

typedef struct weft_comparison {
    const char *from, *to; /* trees; to NULL: the files as they are now */
    bool text;             /* the diff; else the list */
    const char *path;      /* of this file, or of those in this folder, alone; NULL: of all */
    unsigned context;      /* lines around each change */
    size_t skip, max;      /* bytes of the diff; max 0: WEFT_SNAPSHOT_DIFF */
    const char *const
        *shared; /* of a list: pairs of trees, ending with NULL; what also lies between these is marked; NULL */
} weft_comparison;
/* Copied. -EINVAL: a path or tree that cannot be, or too much context; -EAGAIN, -ENOMEM. */
int weft__snapshots_compare(weft_snapshots *snapshots, const weft_comparison *comparison, weft_compared_done *done,
                            void *ctx);

/* ---- putting back ---- */

typedef struct weft_conflict {
    const char *path;
    const char *reason; /* "changed" since, "exists", "deleted", "binary", "submodule", "tooLarge", "shared", "inTheWay" */
} weft_conflict;

/* What an undo did: the files were as in from and are as in to, of which the paths that it was about differ. */
struct weft_undone {
    const char *owner, *by, *from, *to;
    bool redo;
    size_t files;
    size_t left; /* of one that was interrupted: files that somebody else changed before it was finished */
};

typedef struct weft_undo_result {
    int r; /* 0 also when there are conflicts: then nothing was done */
    const char *message;
    const weft_conflict *conflicts;
    size_t conflict_count; /* all of them; those that are listed are limited by listed */
    size_t listed;
    weft_undone undone; /* without conflicts */
} weft_undo_result;
typedef void weft_undo_done(void *ctx, const weft_undo_result *result);

typedef struct weft_undo {
    const char *owner;          /* "task-0001" */
    const char *by;             /* for people; NULL: nobody said */
    const char *before, *after; /* trees: what lies between them is put back, wherever it still is as in after */
    const char *const
        *shared;       /* pairs of trees, ending with NULL: what also lies between these may be somebody else's; NULL */
    bool allow_shared; /* and is put back all the same */
    bool redo;         /* for the result */
} weft_undo;
/* File by file, each a three-way merge of what is there now with the way back; all of them or none. Copied. When what it did
 * is on record, call weft__snapshots_undo_recorded(); until then it is told again at every start. */
int weft__snapshots_undo(weft_snapshots *snapshots, const weft_undo *undo, weft_undo_done *done, void *ctx);
void weft__snapshots_undo_recorded(weft_snapshots *snapshots);

#endif
