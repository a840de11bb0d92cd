/* Hints from two or three watchers become one; see git_watch.h.
 *
 *   a change ──▶ hint_change() ──settled, and rested──▶ tell_hinted()
 *   no repository, or it has gone ──▶ look_for_git() now and then, and when files change */
#include "git_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "repository.h"
#include "sum.h"
#include "watcher.h"

/* What is in a repository's own folder, and what is in the one it may share with others. */
enum { OWN, COMMON, PLACES };

static const char *const own_paths[] = {
    "HEAD", "index", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply", NULL,
};
static const char *const common_paths[] = {"refs", "packed-refs", "reftable", "config", NULL};
static const char *const all_paths[] = {
    "HEAD",         "index", "MERGE_HEAD",  "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge",
    "rebase-apply", "refs",  "packed-refs", "reftable",         "config",      NULL,
};

struct weft_git_watch {
    weft_git_watch_opts opts;
    const weft_alloc *alloc;
    char *folder; /* without links */
    weft_watcher *files, *git[PLACES];
    unsigned hinted;
    int64_t told_at;
    weft_timer tell, look;
    bool lost; /* a watcher of the repository has said that its folder has gone */
};

static int64_t or_default(int64_t value, int64_t otherwise) {
    return value ? value : otherwise;
}

/* ---- hints ---- */

static void hint_change(weft_git_watch *watch, unsigned what) {
    int64_t now = weft_loop_now(watch->opts.loop);
    int64_t settled = weft__add_ms(now, or_default(watch->opts.settle_ms, WEFT_GIT_WATCH_SETTLE_MS));
    int64_t rested = weft__add_ms(watch->told_at, or_default(watch->opts.rest_ms, WEFT_GIT_WATCH_REST_MS));
    if (!watch->hinted)
        weft__timer_set(watch->opts.loop, &watch->tell, settled > rested ? settled : rested);
    watch->hinted |= what;
}

static void look_soon(weft_git_watch *watch, int64_t ms) {
    weft__timer_set(watch->opts.loop, &watch->look, weft__add_ms(weft_loop_now(watch->opts.loop), ms));
}

static void tell_hinted(weft_timer *timer) {
    weft_git_watch *watch = WEFT_CONTAINER(timer, weft_git_watch, tell);
    unsigned what = watch->hinted;
    watch->hinted = 0;
    watch->told_at = weft_loop_now(watch->opts.loop);
    if (what & WEFT_CHANGED_FILES && !watch->git[OWN])
        look_soon(watch, 0);
    watch->opts.on_changed(watch->opts.ctx, what);
}

/* ---- files ---- */

static void file_changed(void *ctx, const weft_change *change) {
    weft_git_watch *watch = ctx;
    hint_change(watch, WEFT_CHANGED_FILES);
    if (watch->opts.on_file)
        watch->opts.on_file(watch->opts.ctx, change);
}

static void files_burst(void *ctx, uint64_t count) {
    (void) count;
    hint_change(ctx, WEFT_CHANGED_FILES);
}

static void files_note(void *ctx, const char *line) {
    weft_git_watch *watch = ctx;
    if (watch->opts.on_note)
        watch->opts.on_note(watch->opts.ctx, line);
}

/* ---- the repository ---- */

static unsigned meaning_of(const char *path) {
    static const char *const refs[] = {"refs/", "packed-refs", "reftable/", "config"};
    for (size_t i = 0; i < sizeof refs / sizeof refs[0]; i++)
        if (strncmp(path, refs[i], strlen(refs[i])) == 0)
            return WEFT_CHANGED_REFS;
    return strcmp(path, "index") == 0 ? WEFT_CHANGED_INDEX : WEFT_CHANGED_HEAD;
}

/* git writes under another name first; that is not a change yet. */
static bool is_lock(const char *path) {
    size_t len = strlen(path);
    return len > 5 && strcmp(path + len - 5, ".lock") == 0;
}

/* Snapshots are ours (snapshots.h), and change nothing that anybody shows. */
static bool is_ours(const char *path) {
    static const char refs[] = "refs/weft";
    return strncmp(path, refs, sizeof refs - 1) == 0 && (path[sizeof refs - 1] == '/' || !path[sizeof refs - 1]);
}

static void git_changed(void *ctx, const weft_change *change) {
    if (!is_lock(change->path) && !is_ours(change->path))
        hint_change(ctx, meaning_of(change->path));
}

static void git_burst(void *ctx, uint64_t count) {
    (void) count;
    hint_change(ctx, WEFT_CHANGED_GIT);
}

/* Its watcher may say this from the middle of its work, so it is freed later. What else it says (there are not enough
 * watches) the files' watcher has said already. */
static void git_note(void *ctx, const char *line) {
    weft_git_watch *watch = ctx;
    (void) line;
    for (int i = 0; i < PLACES; i++)
        if (watch->git[i] && weft__watcher_stats(watch->git[i]).failed && !watch->lost) {
            watch->lost = true;
            look_soon(watch, 0);
        }
}

static int watch_place(weft_git_watch *watch, int place, const char *folder, const char *const *paths) {
    return weft__watcher_new(&(weft_watcher_opts){.loop = watch->opts.loop,
                                                  .alloc = watch->alloc,
                                                  .folder = folder,
                                                  .paths = paths,
                                                  .max_nodes = WEFT_GIT_WATCH_REFS,
                                                  .on_change = git_changed,
                                                  .on_burst = git_burst,
                                                  .on_note = git_note,
                                                  .ctx = watch},
                             &watch->git[place]);
}

static void drop_git(weft_git_watch *watch) {
    for (int i = 0; i < PLACES; i++)
        watch->git[i] = weft__watcher_free(watch->git[i]);
    watch->lost = false;
}

/* 1 it is watched, 0 there is none. */
static int watch_git(weft_git_watch *watch) {
    weft_repository repository;
    if (weft__repository_find(watch->folder, &repository) < 0)
        return 0;
    bool same = strcmp(repository.dir, repository.common) == 0;
    int r = watch_place(watch, OWN, repository.dir, same ? all_paths : own_paths);
    if (r == 0 && !same)
        r = watch_place(watch, COMMON, repository.common, common_paths);
    if (r < 0)
        drop_git(watch);
    return r == -ENOMEM ? r : r == 0;
}

static void look_for_git(weft_timer *timer) {
    weft_git_watch *watch = WEFT_CONTAINER(timer, weft_git_watch, look);
    if (watch->lost) {
        drop_git(watch);
        hint_change(watch, WEFT_CHANGED_GIT);
    }
    if (watch->git[OWN])
        return;
    if (watch_git(watch) > 0)
        hint_change(watch, WEFT_CHANGED_GIT);
    else
        look_soon(watch, or_default(watch->opts.look_ms, WEFT_GIT_WATCH_LOOK_MS));
}

/* ---- life ---- */

static int start_git_watch(weft_git_watch *watch) {
    watch->folder = weft__alloc(watch->alloc, PATH_MAX);
    if (!watch->folder)
        return -ENOMEM;
    if (!realpath(watch->opts.folder, watch->folder))
        return -errno;
    int r = weft__watcher_new(&(weft_watcher_opts){.loop = watch->opts.loop,
                                                   .alloc = watch->alloc,
                                                   .folder = watch->folder,
                                                   .ignore = watch->opts.ignore,
                                                   .on_change = file_changed,
                                                   .on_burst = files_burst,
                                                   .on_note = files_note,
                                                   .ctx = watch},
                              &watch->files);
    if (r == 0)
        r = watch_git(watch);
    if (r == 0)
        look_soon(watch, or_default(watch->opts.look_ms, WEFT_GIT_WATCH_LOOK_MS));
    return r < 0 ? r : 0;
}

int weft__git_watch_new(const weft_git_watch_opts *opts, weft_git_watch **ret) {
    weft_git_watch *watch = weft__zalloc(opts->alloc, sizeof *watch);
    if (!watch)
        return -ENOMEM;
    watch->opts = *opts;
    watch->alloc = opts->alloc;
    watch->told_at = INT64_MIN;
    weft__timer_init(&watch->tell, tell_hinted);
    weft__timer_init(&watch->look, look_for_git);
    int r = start_git_watch(watch);
    watch->opts.folder = NULL;
    watch->opts.ignore = NULL;
    if (r < 0) {
        weft__git_watch_free(watch);
        return r;
    }
    *ret = watch;
    return 0;
}

weft_git_watch *weft__git_watch_free(weft_git_watch *watch) {
    if (!watch)
        return NULL;
    weft__timer_stop(watch->opts.loop, &watch->tell);
    weft__timer_stop(watch->opts.loop, &watch->look);
    drop_git(watch);
    weft__watcher_free(watch->files);
    weft__free(watch->alloc, watch->folder);
    return weft__free(watch->alloc, watch);
}

bool weft__git_watch_ready(const weft_git_watch *watch) {
    bool ready = weft__watcher_stats(watch->files).ready;
    for (int i = 0; i < PLACES; i++)
        ready &= !watch->git[i] || weft__watcher_stats(watch->git[i]).ready;
    return ready;
}

bool weft__git_watch_has_repository(const weft_git_watch *watch) {
    return watch->git[OWN] && !watch->lost;
}
