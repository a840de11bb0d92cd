/* git for clients of the hub: what the folder's repository looks like, and the few things that a person does with it.
 *
 * The program git does the work, on threads of its own (workers.h), a few at a time; the loop does not wait for it. Reading
 * runs nothing that the repository's configuration names: no hook, filter, textconv, external diff, fsmonitor, pager or
 * transport. Writing runs with the user's own configuration and hooks, and is refused unless the caller says that the
 * repository is trusted. Whose repository it is, git decides (safe.directory). Decision 61 has the reasons.
 *
 * All paths are relative to the folder that was given. If the repository's top is above it, only what lies in the folder is
 * shown and touched. Paths and texts are as git has them: not always UTF-8. */
#ifndef WEFT_GIT_H
#define WEFT_GIT_H

#include "loop.h"

#define WEFT_GIT_AT_ONCE 3       /* programs; at most one of them writes */
#define WEFT_GIT_WAITING 64      /* calls that have not begun */
#define WEFT_GIT_READ_MS 30000   /* for a read; a repository that hangs us by a pipe in its configuration ends here */
#define WEFT_GIT_WRITE_MS 120000 /* for a write: hooks may run tests */
#define WEFT_GIT_FILES 50000     /* of a status */
#define WEFT_GIT_COMMITS 1000    /* of a log */
#define WEFT_GIT_BRANCHES 2000   /* of a list of branches */
#define WEFT_GIT_DIFF (1u << 20) /* bytes of a diff, unless somebody asks for more or less */
#define WEFT_GIT_DIFF_MAX (16u << 20)
#define WEFT_GIT_OUTPUT (32u << 20)  /* bytes of anything else */
#define WEFT_GIT_PATHS (1u << 20)    /* bytes of the paths of one call */
#define WEFT_GIT_MESSAGE (64u << 10) /* bytes of a commit's message */
#define WEFT_GIT_FILTERS 256         /* that a configuration may define; a repository with more is refused */

typedef enum weft_git_what {
    WEFT_GIT_STATUS,
    WEFT_GIT_DIFF_OF,
    WEFT_GIT_LOG_OF,
    WEFT_GIT_LIST_BRANCHES,
    WEFT_GIT_STAGE,
    WEFT_GIT_UNSTAGE,
    WEFT_GIT_DISCARD,
    WEFT_GIT_COMMIT,
} weft_git_what;

typedef enum weft_git_side {
    WEFT_GIT_UNSTAGED, /* files against the index */
    WEFT_GIT_STAGED,   /* the index against HEAD */
    WEFT_GIT_BOTH,     /* files against HEAD */
    WEFT_GIT_NEW,      /* a file that git does not know, against nothing */
} weft_git_side;

/* What is not for the call is zero. */
typedef struct weft_git_request {
    weft_git_what what;
    const char *path;         /* diff, log: of this alone; NULL: of all. A new file's diff needs one */
    const char *const *paths; /* stage, unstage, discard; ends with NULL */
    bool all;                 /* stage, unstage: everything instead */
    bool untracked;           /* status: every file of new folders. discard: delete these files, which git does not know,
                                 instead of restoring files that it knows from the index */
    weft_git_side side;       /* diff */
    const char *ref;          /* log: from here; NULL: HEAD */
    bool follow;              /* log: the path is a file, and is followed to the names that it had before */
    size_t max, skip;         /* diff: bytes; log, branches: entries; 0: the limit above */
    bool remotes;             /* branches: those of remotes too */
    weft_bytes message;       /* commit */
    bool amend;               /* commit */
} weft_git_request;

/* ---- results: borrowed until the callback returns ---- */

typedef struct weft_git_file {
    const char *path, *orig_path; /* orig_path: it was renamed or copied from there; else NULL */
    char index, worktree; /* as in git's porcelain v2: "." unchanged, M T A D R C U; "?" for both: git does not know it */
    bool conflicted, submodule;
} weft_git_file;

typedef struct weft_git_status {
    const char *branch;   /* NULL: detached */
    const char *head;     /* the commit; NULL: there is none yet */
    const char *upstream; /* NULL: none */
    bool compared;        /* ahead and behind are known */
    uint64_t ahead, behind;
    weft_git_file *files;
    size_t count, staged, unstaged, untracked, conflicted; /* one file may count as staged and as unstaged */
    bool is_clean, truncated;
    const char *root, *name; /* the repository's top and its last name */
} weft_git_status;

typedef struct weft_git_diff {
    weft_bytes text; /* as git prints it */
    uint64_t additions, deletions, files;
    bool is_new, is_binary, truncated; /* is_new: of one file that is not in HEAD, or not in the index */
} weft_git_diff;

typedef struct weft_git_commit {
    const char *hash, *parents, *author, *email, *refs, *subject, *body;
    int64_t author_time, commit_time; /* seconds */
} weft_git_commit;

typedef struct weft_git_log {
    weft_git_commit *commits;
    size_t count;
    bool truncated;
} weft_git_log;

typedef struct weft_git_branch {
    const char *name, *hash, *upstream, *subject; /* upstream "": none. Names are whole: refs/heads/main */
    int64_t commit_time;
    bool current, remote;
} weft_git_branch;

typedef struct weft_git_branches {
    weft_git_branch *branches; /* the latest first */
    size_t count;
    bool truncated;
} weft_git_branches;

/* Why git, or the repository, says no. That is not our failure. */
typedef enum weft_git_refusal {
    WEFT_GIT_OK,
    WEFT_GIT_NO_REPOSITORY, /* the folder is in none */
    WEFT_GIT_ELSEWHERE,     /* .git leads to a repository that does not know this folder */
    WEFT_GIT_DUBIOUS,       /* somebody else owns it, and the user has not said that it is safe */
    WEFT_GIT_UNTRUSTED,     /* writing was not allowed by the caller */
    WEFT_GIT_NOTHING,       /* there is nothing to commit */
    WEFT_GIT_REFUSED,       /* anything else: see the message */
} weft_git_refusal;

typedef struct weft_git_result {
    int r; /* ours: -ECANCELED, -ETIMEDOUT, -ENOENT (git is not installed), -EBADMSG (not understood), -ENOMEM, ... */
    weft_git_refusal refusal;
    const char *message; /* what git said, or a sentence of ours; valid UTF-8; "" */
    /* The one that was asked for, when r and refusal are 0. */
    const weft_git_status *status;
    const weft_git_diff *diff;
    const weft_git_log *log;
    const weft_git_branches *branches;
    const char *commit; /* the new commit */
} weft_git_result;

/* Runs once for each call that was accepted, never inside of it; not when the git is freed before. It may make other calls,
 * but not free the git. */
typedef void weft_git_done(void *ctx, const weft_git_result *result);

/* ---- calls ---- */

typedef struct weft_git weft_git;

typedef struct weft_git_opts {
    weft_loop *loop;
    const weft_alloc *alloc;   /* is used from the threads too */
    const char *folder;        /* absolute */
    const char *program;       /* NULL: git in PATH, but none in the folder */
    bool may_write;            /* the user has trusted this repository */
    int64_t read_ms, write_ms; /* 0: as above */
    bool set_umask;            /* for what git makes; else the process's */
    mode_t umask;
} weft_git_opts;

/* -ENOENT, -ENOTDIR: the folder. That git is not installed is told by the calls. The environment is copied now. */
int weft__git_new(const weft_git_opts *opts, weft_git **ret);
/* Programs that run are ended, and waited for. Returns NULL. */
weft_git *weft__git_free(weft_git *git);
/* The user trusts the repository, or does so no more. */
void weft__git_set_may_write(weft_git *git, bool may_write);

/* Everything is copied. Reads do not wait for writes. Writes are done one after the other, in the order in which they came.
 * ret_id, if not NULL, is for weft__git_cancel(). -EINVAL: a path, a ref, a message that cannot be; -EAGAIN: too many are
 * waiting; -E2BIG; -ENOMEM. */
int weft__git_ask(weft_git *git, const weft_git_request *request, weft_git_done *done, void *ctx, uint64_t *ret_id);
/* Its result will be -ECANCELED, unless it is done already. A program that runs is ended with its process group. */
void weft__git_cancel(weft_git *git, uint64_t id);

#endif
