/* The files beneath a folder, watched: what is created, changed and deleted is told by its path. inotify says where to look,
 * the comparison with what was there before says what has happened; so a queue that overflowed, a folder that filled up
 * before it was watched and a system without watches left (then it looks again every few seconds) are all the same case.
 *
 * Symbolic links are not followed. Folders are looked into but not told. Ignored, unless paths name them, are .git, .weft
 * and .aiwg wherever they are, what .gitignore files say, and what is given. A path's changes within WEFT_WATCHER_SETTLE_MS
 * are one; what has come and gone within it was never there. What is there at the start is not told. */
#ifndef WEFT_WATCHER_H
#define WEFT_WATCHER_H

#include "changes.h"

#define WEFT_WATCHER_SETTLE_MS 150
#define WEFT_WATCHER_POLL_MS 2000 /* between looks where there are no watches, or twenty times as long as a look takes */
#define WEFT_WATCHER_NODES 500000 /* files and folders: some 60 MB; what is beyond is not watched, said once */

typedef struct weft_watcher weft_watcher;

typedef struct weft_watcher_opts {
    weft_loop *loop;
    const weft_alloc *alloc;
    const char *folder;        /* absolute */
    const char *const *paths;  /* relative, may have wildcards: only these; NULL: all */
    const char *const *ignore; /* patterns as in a .gitignore; NULL: none */
    size_t max_watches;        /* 0: as many as the system gives; SIZE_MAX: none */
    size_t max_nodes;          /* 0: WEFT_WATCHER_NODES */
    int64_t poll_ms;           /* 0: WEFT_WATCHER_POLL_MS */
    int64_t settle_ms;         /* 0: WEFT_WATCHER_SETTLE_MS */
    bool all_files;            /* what .gitignore files say does not count */
    /* From the loop; they may not free the watcher. on_ready: the first look is over, changes are told from here on; may be
     * NULL. */
    void (*on_change)(void *ctx, const weft_change *change);
    void (*on_burst)(void *ctx, uint64_t count);
    void (*on_ready)(void *ctx);
    void (*on_note)(void *ctx, const char *line);
    void *ctx;
} weft_watcher_opts;

/* Looks around in small pieces, without keeping the loop. -ENOENT, -ENOTDIR, -EACCES: the folder; -ENOMEM. */
int weft__watcher_new(const weft_watcher_opts *opts, weft_watcher **ret);
weft_watcher *weft__watcher_free(weft_watcher *watcher);

typedef struct weft_watcher_stats {
    bool ready, polling;
    int failed; /* a negative errno: the folder itself has gone */
    size_t folders, files, watches;
    uint64_t told;
} weft_watcher_stats;
weft_watcher_stats weft__watcher_stats(const weft_watcher *watcher);

#endif
