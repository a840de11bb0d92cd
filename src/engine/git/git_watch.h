/* One place that says "files have changed" and "git's state has changed", so that everybody who shows a project asks again
 * at the same moment and not too often. Built on watchers (watcher.h): one for the files, and one or two for the few files
 * of the repository that say where HEAD is, what is staged and where branches are. It runs no program; reading by git.h
 * changes none of these files, so it does not cause itself.
 *
 * The repository is looked for at the start, and while there is none now and then: "git init" is noticed, and so is a
 * repository that goes. */
#ifndef WEFT_GIT_WATCH_H
#define WEFT_GIT_WATCH_H

#include "changes.h"

#define WEFT_GIT_WATCH_SETTLE_MS 200 /* from the first hint: what belongs together is told once */
#define WEFT_GIT_WATCH_REST_MS 1000  /* between two calls of on_changed at least */
#define WEFT_GIT_WATCH_LOOK_MS 5000  /* between looks for a repository where there is none */
#define WEFT_GIT_WATCH_REFS 20000    /* files of the repository that are watched; more are not */

enum {
    WEFT_CHANGED_FILES = 1 << 0, /* of the project; .gitignore counts */
    WEFT_CHANGED_HEAD = 1 << 1,  /* another branch, a merge or rebase begun or ended */
    WEFT_CHANGED_INDEX = 1 << 2, /* something was staged, or git has looked at files */
    WEFT_CHANGED_REFS = 1 << 3,  /* branches, remotes and what they are compared with */
    WEFT_CHANGED_GIT = WEFT_CHANGED_HEAD | WEFT_CHANGED_INDEX | WEFT_CHANGED_REFS,
};

typedef struct weft_git_watch weft_git_watch;

typedef struct weft_git_watch_opts {
    weft_loop *loop;
    const weft_alloc *alloc;
    const char *folder;                  /* absolute */
    const char *const *ignore;           /* patterns as in a .gitignore; NULL: none */
    int64_t settle_ms, rest_ms, look_ms; /* 0: as above */
    /* From the loop; they may not free the watch. on_file and on_note may be NULL. */
    void (*on_file)(void *ctx, const weft_change *change); /* as it is, at the watcher's pace */
    void (*on_changed)(void *ctx, unsigned what);
    void (*on_note)(void *ctx, const char *line);
    void *ctx;
} weft_git_watch_opts;

/* -ENOENT, -ENOTDIR, -EACCES: the folder; -ENOMEM. */
int weft__git_watch_new(const weft_git_watch_opts *opts, weft_git_watch **ret);
weft_git_watch *weft__git_watch_free(weft_git_watch *watch);
/* Everything has been looked at once: what changes from now on is told. */
bool weft__git_watch_ready(const weft_git_watch *watch);
/* There is a repository, and it is watched. */
bool weft__git_watch_has_repository(const weft_git_watch *watch);

#endif
