/* Looking: at one path when there was a hint, at one folder after the other when there was not.
 *
 *   hint ──settled──▶ look_at_path()     a path of which inotify said something
 *   folder queued ──▶ scan, in slices    new folders, everything after an overflow, unwatched folders now and then
 *
 * Both end in compare_with_disk(), the only place that changes the tree and tells of it. */
#include "watcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "hints.h"
#include "paths.h"
#include "tree.h"
#include "watch.h"

#define SLICE_NS 1000000       /* of looking before the loop does something else; it may come twice in a turn */
#define EVENT_ROOM (16 * 1024) /* bytes of events read at a time */
#define INTERESTING                                                                                                         \
    (IN_CREATE | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW |       \
     IN_EXCL_UNLINK | IN_MOVE_SELF)

static const char *const always_ignored[] = {".git", ".weft", ".aiwg"};

/* How to look: without telling, and into the folders that are known already. */
typedef struct look {
    bool quiet, deep;
} look;

struct weft_watcher {
    weft_watcher_opts opts;
    const weft_alloc *alloc;
    char *folder;
    weft_paths paths;
    weft_ignore *ignore;
    int root_fd, inotify;
    weft_watch *watch;
    weft_tree tree;
    weft_changes changes;

    weft_hints hints;
    weft_timer settle;

    weft_link queue;      /* folders to be scanned */
    weft_link unwatched;  /* folders to be polled */
    DIR *dir;             /* the scan under way; NULL: none */
    weft_folder *scanned; /* its folder; NULL: it was removed meanwhile */
    look scan_look;
    weft_later later;
    weft_timer poll;
    int64_t scan_began; /* of all that is queued */

    bool ready, polling, said_polling, said_full;
    bool rescan; /* when settled, look at everything */
    int failed;
    uint64_t told;
};

static void note_line(weft_watcher *watcher, const char *line) {
    if (watcher->opts.on_note)
        watcher->opts.on_note(watcher->opts.ctx, line);
}

/* ---- what is of interest ---- */

/* The nearest word counts: what was given, then the .gitignore of the folder, then of the ones above it. */
static bool is_ignored(const weft_watcher *watcher, const weft_entry *parent, const char *path, bool folder) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof always_ignored / sizeof always_ignored[0]; i++)
        if (strcmp(name, always_ignored[i]) == 0)
            return !weft__paths_name(&watcher->paths, path); /* whoever names it means it */
    weft_ignored word = weft__ignore_says(watcher->ignore, path, folder);
    for (const weft_entry *node = parent; word == WEFT_IGNORE_NO_WORD && node; node = node->parent) {
        word = weft__ignore_says(node->folder->ignore, name, folder);
        if (node->parent)
            name -= strlen(node->name) + 1;
    }
    return word == WEFT_IGNORE_YES;
}

/* ---- telling ---- */

static void tell_entry_change(weft_watcher *watcher, weft_change_kind kind, const weft_entry *node) {
    char path[PATH_MAX];
    if (weft__tree_path(node, path) < 0)
        return;
    watcher->told++;
    weft__changes_put(&watcher->changes, &(weft_change){kind, node->size, path});
}

/* ---- watching folders ---- */

static void scan_soon(weft_watcher *watcher) {
    weft__later(watcher->opts.loop, &watcher->later);
}

static void queue_folder(weft_watcher *watcher, weft_folder *folder) {
    weft__list_remove(&folder->queue);
    weft__list_push(&watcher->queue, &folder->queue);
    scan_soon(watcher);
}

static int64_t poll_ms(const weft_watcher *watcher) {
    return watcher->opts.poll_ms ? watcher->opts.poll_ms : WEFT_WATCHER_POLL_MS;
}

static int64_t settle_ms(const weft_watcher *watcher) {
    return watcher->opts.settle_ms ? watcher->opts.settle_ms : WEFT_WATCHER_SETTLE_MS;
}

/* No watch is to be had for this one: look at it again and again. */
static void poll_folder(weft_watcher *watcher, weft_folder *folder) {
    weft__list_remove(&folder->unwatched);
    weft__list_push(&watcher->unwatched, &folder->unwatched);
    if (!watcher->said_polling)
        note_line(watcher,
                  "there are not enough inotify watches for all folders (fs.inotify.max_user_watches): some are looked at "
                  "every few seconds instead");
    watcher->said_polling = watcher->polling = true;
}

static int add_watch(weft_watcher *watcher, const char *path) {
    char full[2 * PATH_MAX];
    if (watcher->inotify < 0 || (watcher->opts.max_watches && watcher->tree.watched >= watcher->opts.max_watches))
        return -ENOSPC;
    snprintf(full, sizeof full, "%s/%s", watcher->folder, path);
    int wd = inotify_add_watch(watcher->inotify, full, INTERESTING);
    return wd < 0 ? -errno : wd;
}

/* Before it is read, so that nothing can happen between the two. */
static void watch_folder(weft_watcher *watcher, weft_folder *folder, const char *path) {
    if (folder->wd >= 0)
        return;
    int wd = add_watch(watcher, path);
    if (wd >= 0) {
        weft__tree_set_wd(&watcher->tree, folder, wd);
        weft__list_remove(&folder->unwatched);
    } else if (wd == -ENOSPC || wd == -ENOMEM)
        poll_folder(watcher, folder);
}

/* ---- .gitignore ---- */

/* What it says has changed: files come into sight or vanish from it without anything having happened to them. */
static void ignore_changed(weft_watcher *watcher, weft_folder *folder) {
    folder->quiet = folder->deep = true;
    queue_folder(watcher, folder);
}

/* ---- comparing ---- */

/* It is no longer there, and neither is what was in it. */
static void drop_entry(weft_watcher *watcher, weft_entry *top, bool quiet) {
    weft_entry *node = top, *parent;
    do {
        while (node->folder && !weft__list_empty(&node->folder->children))
            node = WEFT_CONTAINER(node->folder->children.next, weft_entry, link);
        parent = node == top ? NULL : node->parent;
        if (!node->folder && !quiet)
            tell_entry_change(watcher, WEFT_FILE_DELETE, node);
        if (node->folder && node->folder->wd >= 0)
            inotify_rm_watch(watcher->inotify, node->folder->wd);
        if (node->folder && node->folder == watcher->scanned)
            watcher->scanned = NULL;
        weft__tree_remove(&watcher->tree, node);
        node = parent;
    } while (node);
}

static int add_node(weft_watcher *watcher, weft_entry *parent, const char *name, bool folder, weft_entry **ret) {
    int r = weft__tree_add(&watcher->tree, parent, name, folder, ret);
    if (r < 0 && !watcher->said_full) {
        watcher->said_full = true;
        note_line(watcher, r == -ENOSPC ? "there are too many files to watch: some are not"
                                        : "memory is short: some files are not watched");
    }
    return r;
}

static void compare_folder(weft_watcher *watcher, weft_entry *parent, weft_entry *node, const char *name,
                           const struct stat *st, look how) {
    bool is_new = !node;
    if (is_new && add_node(watcher, parent, name, true, &node) < 0)
        return;
    node->scan = parent->folder->scan;
    node->inode = st->st_ino;
    weft_folder *folder = node->folder;
    if (!is_new && !folder->closed && !how.deep)
        return;
    /* One that waits for its first look at the start stays quiet. */
    folder->quiet |= how.quiet;
    folder->deep |= how.deep;
    queue_folder(watcher, folder);
}

static void compare_file(weft_watcher *watcher, weft_entry *parent, weft_entry *node, const char *name,
                         const struct stat *st, look how) {
    bool is_new = !node;
    if (is_new && add_node(watcher, parent, name, false, &node) < 0)
        return;
    node->scan = parent->folder->scan;
    bool same = weft__tree_same(node, st);
    if (how.quiet || (same && !is_new))
        return;
    tell_entry_change(watcher, is_new ? WEFT_FILE_CREATE : WEFT_FILE_MODIFY, node);
    if (strcmp(name, ".gitignore") == 0)
        ignore_changed(watcher, parent->folder);
}

/* What is there now (st NULL: nothing) against what was there. */
static void compare_with_disk(weft_watcher *watcher, weft_entry *parent, const char *name, const char *path,
                              const struct stat *st, look how) {
    weft_entry *node = weft__tree_find(&watcher->tree, parent, name);
    bool folder = st && S_ISDIR(st->st_mode), file = st && (S_ISREG(st->st_mode) || S_ISLNK(st->st_mode));
    if (st && (!weft__paths_want(&watcher->paths, path, folder) || is_ignored(watcher, parent, path, folder)))
        return;
    /* Something else under the same name is not the same thing changed. */
    if (node && (!(folder || file) || (node->folder != NULL) != folder || (folder && node->inode != st->st_ino))) {
        bool was_ignore = !node->folder && strcmp(name, ".gitignore") == 0;
        drop_entry(watcher, node, how.quiet);
        node = NULL;
        if (was_ignore && !how.quiet)
            ignore_changed(watcher, parent->folder);
    }
    if (folder)
        compare_folder(watcher, parent, node, name, st, how);
    else if (file)
        compare_file(watcher, parent, node, name, st, how);
}

/* ---- scanning ---- */

/* It was not among the entries. If it is still there it is ignored by now, which is nothing to tell. */
static void drop_unseen(weft_watcher *watcher, weft_entry *node) {
    struct stat st;
    bool gone = fstatat(dirfd(watcher->dir), node->name, &st, AT_SYMLINK_NOFOLLOW) < 0;
    drop_entry(watcher, node, watcher->scan_look.quiet || !gone);
}

static void end_scan(weft_watcher *watcher) {
    weft_folder *folder = watcher->scanned;
    weft_link *next = folder ? folder->children.next : NULL;
    while (folder && next != &folder->children) {
        weft_entry *child = WEFT_CONTAINER(next, weft_entry, link);
        next = next->next;
        if (child->scan != folder->scan)
            drop_unseen(watcher, child);
    }
    if (folder)
        folder->known = true;
    closedir(watcher->dir);
    watcher->dir = NULL;
    watcher->scanned = NULL;
}

static void begin_scan(weft_watcher *watcher, weft_folder *folder) {
    char path[PATH_MAX];
    weft__list_remove(&folder->queue);
    watcher->scan_look = (look){folder->quiet, folder->deep};
    folder->quiet = folder->deep = false;
    if (weft__tree_path(folder->node, path) < 0)
        return;
    watch_folder(watcher, folder, path);
    int fd = openat(watcher->root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    folder->closed = fd < 0;
    if (fd < 0)
        return;
    weft__ignore_free(folder->ignore);
    folder->ignore = watcher->opts.all_files ? NULL : weft__ignore_read(fd, watcher->alloc);
    watcher->dir = fdopendir(fd);
    folder->closed = !watcher->dir;
    if (!watcher->dir) {
        close(fd);
        return;
    }
    watcher->scanned = folder;
    folder->scan++;
}

/* 1 it was something to look at, 0 the end of the folder. */
static int scan_entry(weft_watcher *watcher) {
    struct dirent *entry = watcher->scanned ? readdir(watcher->dir) : NULL;
    char path[PATH_MAX];
    struct stat st;
    if (!entry)
        return 0;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
        return 1;
    weft_entry *parent = watcher->scanned->node;
    if (weft__tree_path(parent, path) < 0)
        return 1;
    size_t len = strlen(path);
    int n = snprintf(path + len, sizeof path - len, "%s%s", len ? "/" : "", entry->d_name);
    if (n >= (int) (sizeof path - len) || fstatat(dirfd(watcher->dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 1;
    compare_with_disk(watcher, parent, entry->d_name, path, &st, watcher->scan_look);
    return 1;
}

static void all_scanned(weft_watcher *watcher) {
    int64_t now = weft__loop_fresh_now(watcher->opts.loop), took = now - watcher->scan_began;
    watcher->scan_began = 0;
    watcher->polling = !weft__list_empty(&watcher->unwatched);
    if (watcher->polling) {
        int64_t wait = took * 20 > poll_ms(watcher) ? took * 20 : poll_ms(watcher);
        weft__timer_set(watcher->opts.loop, &watcher->poll, now + wait);
    }
    if (watcher->ready)
        return;
    watcher->ready = true;
    if (watcher->opts.on_ready)
        watcher->opts.on_ready(watcher->opts.ctx);
}

/* The loop's time stands still meanwhile. */
static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static void scan_slice(weft_later *later) {
    weft_watcher *watcher = WEFT_CONTAINER(later, weft_watcher, later);
    if (!watcher->scan_began)
        watcher->scan_began = weft__loop_fresh_now(watcher->opts.loop);
    for (int64_t end = now_ns() + SLICE_NS; now_ns() < end;) {
        if (watcher->dir && !scan_entry(watcher))
            end_scan(watcher);
        else if (!watcher->dir && weft__list_empty(&watcher->queue)) {
            all_scanned(watcher);
            return;
        } else if (!watcher->dir)
            begin_scan(watcher, WEFT_CONTAINER(watcher->queue.next, weft_folder, queue));
    }
    scan_soon(watcher);
}

static void on_poll(weft_timer *timer) {
    weft_watcher *watcher = WEFT_CONTAINER(timer, weft_watcher, poll);
    for (weft_link *link = watcher->unwatched.next; link != &watcher->unwatched; link = link->next)
        queue_folder(watcher, WEFT_CONTAINER(link, weft_folder, unwatched));
}

static void look_at_everything(weft_watcher *watcher) {
    watcher->tree.root->folder->deep = true;
    queue_folder(watcher, watcher->tree.root->folder);
}

/* ---- hints ---- */

/* false: its folder is being scanned, it is too early to say what is new. */
static bool look_at_path(weft_watcher *watcher, const char *path) {
    const char *name;
    struct stat st;
    weft_entry *parent = weft__tree_parent(&watcher->tree, path, &name);
    if (!parent)
        return true;
    if (!parent->folder->known)
        return parent->folder->closed;
    int r = fstatat(watcher->root_fd, path, &st, AT_SYMLINK_NOFOLLOW);
    if (r == 0 || errno == ENOENT || errno == ENOTDIR)
        compare_with_disk(watcher, parent, name, path, r == 0 ? &st : NULL, (look){0});
    return true;
}

/* Is the folder still where it was? We hold it open, so the system does not say when it has gone; but it rarely goes
 * without something in it going first. */
static void check_root(weft_watcher *watcher) {
    struct stat ours, there;
    bool same = fstat(watcher->root_fd, &ours) == 0 && stat(watcher->folder, &there) == 0 && ours.st_ino == there.st_ino &&
                ours.st_dev == there.st_dev;
    if (same || watcher->failed)
        return;
    watcher->failed = -ENOENT;
    note_line(watcher, "the folder itself has gone: nothing is watched any more");
}

static void on_settled(weft_timer *timer) {
    weft_watcher *watcher = WEFT_CONTAINER(timer, weft_watcher, settle);
    int64_t now = weft_loop_now(watcher->opts.loop);
    check_root(watcher);
    if (watcher->rescan) {
        watcher->rescan = false;
        weft__hints_clear(&watcher->hints);
        look_at_everything(watcher);
        return;
    }
    for (weft_hint *hint; (hint = weft__hints_first(&watcher->hints));) {
        if (hint->due > now) {
            weft__timer_set(watcher->opts.loop, &watcher->settle, hint->due);
            return;
        }
        if (look_at_path(watcher, hint->path))
            weft__hints_drop(&watcher->hints, hint);
        else
            weft__hints_again(&watcher->hints, hint, now + settle_ms(watcher));
    }
}

static void rescan_soon(weft_watcher *watcher) {
    weft__hints_clear(&watcher->hints);
    watcher->rescan = true;
    weft__timer_set(watcher->opts.loop, &watcher->settle, weft_loop_now(watcher->opts.loop) + settle_ms(watcher));
}

/* The time runs from the first hint about a path, so that one that never rests is told of too. */
static void put_hint(weft_watcher *watcher, const char *path) {
    int64_t due = weft_loop_now(watcher->opts.loop) + settle_ms(watcher);
    int r = watcher->rescan ? 0 : weft__hints_put(&watcher->hints, path, due);
    if (r < 0)
        rescan_soon(watcher);
    else if (r > 0 && watcher->hints.count == 1)
        weft__timer_set(watcher->opts.loop, &watcher->settle, due);
}

/* ---- inotify ---- */

static void take_inotify_event(weft_watcher *watcher, const struct inotify_event *event) {
    char path[PATH_MAX];
    if (event->mask & IN_Q_OVERFLOW) {
        rescan_soon(watcher);
        return;
    }
    weft_folder *folder = weft__tree_by_wd(&watcher->tree, event->wd);
    if (!folder)
        return;
    if (event->mask & IN_IGNORED)
        weft__tree_set_wd(&watcher->tree, folder, -1);
    if (!event->len && folder->node == watcher->tree.root)
        check_root(watcher);
    if (!event->len || weft__tree_path(folder->node, path) < 0)
        return;
    size_t len = strlen(path);
    if (snprintf(path + len, sizeof path - len, "%s%s", len ? "/" : "", event->name) < (int) (sizeof path - len))
        put_hint(watcher, path);
}

/* At most one buffer a turn: others have work to do as well. */
static void on_inotify(void *ctx, unsigned what) {
    (void) what;
    weft_watcher *watcher = ctx;
    _Alignas(struct inotify_event) char room[EVENT_ROOM];
    ssize_t n = read(watcher->inotify, room, sizeof room);
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *event = (const void *) (room + at);
        take_inotify_event(watcher, event);
        at += (ssize_t) (sizeof *event + event->len);
    }
}

/* ---- life ---- */

static void on_change(void *ctx, const weft_change *change) {
    weft_watcher *watcher = ctx;
    watcher->opts.on_change(watcher->opts.ctx, change);
}

static void on_burst(void *ctx, uint64_t count) {
    weft_watcher *watcher = ctx;
    if (watcher->opts.on_burst)
        watcher->opts.on_burst(watcher->opts.ctx, count);
}

static int copy_opts(weft_watcher *watcher) {
    const char *const *ignore = watcher->opts.ignore;
    watcher->folder = weft__strndup(watcher->alloc, watcher->opts.folder, strlen(watcher->opts.folder));
    int r = watcher->folder ? weft__paths_init(&watcher->paths, watcher->opts.paths, watcher->alloc) : -ENOMEM;
    if (r == 0)
        r = weft__ignore_new(watcher->alloc, &watcher->ignore);
    for (size_t i = 0; r == 0 && ignore && ignore[i]; i++)
        r = weft__ignore_add(watcher->ignore, (weft_bytes){ignore[i], strlen(ignore[i])});
    watcher->opts.folder = NULL;
    watcher->opts.paths = watcher->opts.ignore = NULL;
    return r;
}

static int open_watcher(weft_watcher *watcher) {
    watcher->root_fd = open(watcher->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (watcher->root_fd < 0)
        return -errno;
    /* Without a queue of the system's (users have few of them) everything is polled. */
    if (watcher->opts.max_watches != SIZE_MAX)
        watcher->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watcher->inotify < 0)
        return 0;
    int r = weft__watch_new(watcher->opts.loop, watcher->inotify, on_inotify, watcher, &watcher->watch);
    if (r == 0)
        r = weft__watch_set(watcher->watch, WEFT_WATCH_READ);
    if (r == 0)
        weft__watch_quiet(watcher->watch);
    return r;
}

static void prepare_watcher(weft_watcher *watcher) {
    watcher->root_fd = watcher->inotify = -1;
    weft__hints_init(&watcher->hints, watcher->alloc);
    weft__list_init(&watcher->queue);
    weft__list_init(&watcher->unwatched);
    weft__timer_init(&watcher->settle, on_settled);
    weft__timer_init(&watcher->poll, on_poll);
    weft__later_init(&watcher->later, scan_slice);
    watcher->changes = (weft_changes){
        .loop = watcher->opts.loop, .alloc = watcher->alloc, .on_change = on_change, .on_burst = on_burst, .ctx = watcher};
    weft__changes_init(&watcher->changes);
}

int weft__watcher_new(const weft_watcher_opts *opts, weft_watcher **ret) {
    weft_watcher *watcher = weft__zalloc(opts->alloc, sizeof *watcher);
    if (!watcher)
        return -ENOMEM;
    watcher->opts = *opts;
    watcher->alloc = opts->alloc;
    prepare_watcher(watcher);
    int r = weft__tree_init(&watcher->tree, opts->max_nodes ? opts->max_nodes : WEFT_WATCHER_NODES, opts->alloc);
    if (r == 0)
        r = copy_opts(watcher);
    if (r == 0)
        r = open_watcher(watcher);
    if (r < 0) {
        weft__watcher_free(watcher);
        return r;
    }
    weft_folder *root = watcher->tree.root->folder;
    root->quiet = root->deep = true;
    queue_folder(watcher, root);
    *ret = watcher;
    return 0;
}

weft_watcher *weft__watcher_free(weft_watcher *watcher) {
    if (!watcher)
        return NULL;
    weft__later_cancel(&watcher->later);
    weft__timer_stop(watcher->opts.loop, &watcher->settle);
    weft__timer_stop(watcher->opts.loop, &watcher->poll);
    weft__changes_done(&watcher->changes);
    weft__watch_free(watcher->watch);
    if (watcher->dir)
        closedir(watcher->dir);
    if (watcher->inotify >= 0)
        close(watcher->inotify);
    if (watcher->root_fd >= 0)
        close(watcher->root_fd);
    weft__hints_clear(&watcher->hints);
    weft__tree_done(&watcher->tree);
    weft__ignore_free(watcher->ignore);
    weft__paths_done(&watcher->paths);
    weft__free(watcher->alloc, watcher->folder);
    return weft__free(watcher->alloc, watcher);
}

weft_watcher_stats weft__watcher_stats(const weft_watcher *watcher) {
    const weft_tree *tree = &watcher->tree;
    return (weft_watcher_stats){.ready = watcher->ready,
                                .polling = watcher->polling,
                                .failed = watcher->failed,
                                .folders = tree->folders,
                                .files = tree->count - tree->folders,
                                .watches = tree->watched,
                                .told = watcher->told};
}
