/* What changes in the project, told while it happens. A change of a file is told as it is. Whatever else changes makes git
 * look again, one look at a time, and what it found is told if it differs from what was told before; then come the diffs of
 * the files that changed, as far as they are few.
 *
 *     resting ──a change──▶ asking git's status ──told──▶ asking for diffs, one by one ──all, or more has changed──▶ resting
 */
#include "cdev_changes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "cdev.h"
#include "git_watch.h"
#include "hash.h"
#include "reply.h"
#include "write.h"

#define MOST_DIFFS 8                  /* files of one look whose diffs are told; of more, none: git/diff has them */
#define MOST_DIFF ((size_t) 64 << 10) /* bytes of one diff */
#define MOST_NAMED 100                /* paths in git_status_changed */

struct weft_cdev_changes {
    weft_hub *hub;
    weft_git_watch *watch; /* NULL: nothing is watched */
    void (*on_note)(void *ctx, const char *line);
    void *note_ctx;
    bool asking;             /* git was asked something */
    bool again;              /* something has changed since */
    uint64_t told;           /* a digest of the status that was told last; 0: none was */
    char *paths[MOST_DIFFS]; /* files that changed since the last look */
    size_t path_count;
    bool many;                /* more than that */
    char *queued[MOST_DIFFS]; /* files whose diffs are to be told */
    size_t queued_count;
    weft_git_request diff; /* the one that git is asked for */
};

static const weft_alloc *alloc_of(const weft_cdev_changes *changes) {
    return changes->hub->alloc;
}

static cdev_note make_note_now(const weft_hub *hub, weft_rendering *rendering) {
    return (cdev_note){.hub = hub, .rendering = rendering, .time_ms = weft__engine_now(hub->engine)};
}

static bool anybody_listens(const weft_cdev_changes *changes) {
    return changes->hub->clients && weft__hub_clients_listen(changes->hub->clients, &weft__cdev);
}

/* ---- files ---- */

static void tell_file(const weft_hub *hub, weft_rendering *rendering, void *ctx) {
    static const char *const words[] = {
        [WEFT_FILE_CREATE] = "created", [WEFT_FILE_MODIFY] = "modified", [WEFT_FILE_DELETE] = "deleted"};
    const weft_change *change = ctx;
    cdev_note note = make_note_now(hub, rendering);
    CDEV_TELL(&note, "file_changed", {"path", weft_str(change->path)}, {"change", weft_str(words[change->kind])},
              {"size", change->kind == WEFT_FILE_DELETE ? weft_none() : weft_uint(change->size)});
}

static void forget_paths(weft_cdev_changes *changes) {
    while (changes->path_count)
        weft__free(alloc_of(changes), changes->paths[--changes->path_count]);
    changes->many = false;
}

/* Without memory for it the diff is left out: it is an extra. */
static void note_path(weft_cdev_changes *changes, const char *path) {
    for (size_t i = 0; i < changes->path_count; i++)
        if (strcmp(changes->paths[i], path) == 0)
            return;
    if (changes->path_count == MOST_DIFFS) {
        changes->many = true;
        return;
    }
    char *copy = weft__strndup(alloc_of(changes), path, strlen(path));
    if (copy)
        changes->paths[changes->path_count++] = copy;
}

static void on_file(void *ctx, const weft_change *change) {
    weft_cdev_changes *changes = ctx;
    if (!anybody_listens(changes))
        return;
    weft_change copy = *change;
    weft__hub_clients_tell(changes->hub->clients, &weft__cdev, tell_file, &copy);
    if (change->kind != WEFT_FILE_DELETE)
        note_path(changes, change->path);
}

/* ---- diffs ---- */

static void look_at_git(weft_cdev_changes *changes);
static void ask_next_diff(weft_cdev_changes *changes);

struct diff_told {
    const weft_cdev_changes *changes;
    const weft_git_diff *diff;
};

static void tell_diff(const weft_hub *hub, weft_rendering *rendering, void *ctx) {
    const struct diff_told *told = ctx;
    const weft_git_request *asked = &told->changes->diff;
    cdev_note note = make_note_now(hub, rendering);
    CDEV_TELL(&note, "git_diff", {"file", weft_str(asked->path)},
              {"diff", weft_strn(told->diff->text.data, told->diff->text.len)},
              {"additions", weft_uint(told->diff->additions)}, {"deletions", weft_uint(told->diff->deletions)},
              {"is_staged", weft_bool(false)}, {"is_new_file", weft_bool(asked->side == WEFT_GIT_NEW)},
              {"is_truncated", told->diff->truncated ? weft_bool(true) : weft_none()});
}

static void drop_queued(weft_cdev_changes *changes) {
    weft__free(alloc_of(changes), changes->queued[--changes->queued_count]);
}

static void on_diff(void *ctx, const weft_git_result *result) {
    weft_cdev_changes *changes = ctx;
    struct diff_told told = {changes, result->diff};
    changes->asking = false;
    if (result->diff && result->diff->text.len && anybody_listens(changes))
        weft__hub_clients_tell(changes->hub->clients, &weft__cdev, tell_diff, &told);
    drop_queued(changes);
    ask_next_diff(changes);
}

/* The first letter says how git knows the file: 'N' not at all, 'U' it does. When more has changed, that comes first. */
static void ask_next_diff(weft_cdev_changes *changes) {
    while (changes->queued_count && !changes->again) {
        const char *marked = changes->queued[changes->queued_count - 1];
        changes->diff = (weft_git_request){.what = WEFT_GIT_DIFF_OF,
                                           .side = *marked == 'N' ? WEFT_GIT_NEW : WEFT_GIT_UNSTAGED,
                                           .path = marked + 1,
                                           .max = MOST_DIFF};
        if (weft__git_ask(changes->hub->git, &changes->diff, on_diff, changes, NULL) >= 0) {
            changes->asking = true;
            return;
        }
        drop_queued(changes);
    }
    while (changes->queued_count)
        drop_queued(changes);
    if (changes->again)
        look_at_git(changes);
}

static const weft_git_file *find_changed(const weft_git_status *status, const char *path) {
    for (size_t i = 0; i < status->count; i++) {
        const weft_git_file *file = &status->files[i];
        if (strcmp(file->path, path) == 0 && file->worktree != '.' && !file->conflicted)
            return file;
    }
    return NULL;
}

/* Of the files that changed, those that git calls changed too. */
static void queue_diffs(weft_cdev_changes *changes, const weft_git_status *status) {
    for (size_t i = 0; i < changes->path_count && !changes->many; i++) {
        const char *path = changes->paths[i];
        const weft_git_file *file = find_changed(status, path);
        size_t size = strlen(path) + 1;
        char *marked = file ? weft__alloc(alloc_of(changes), size + 1) : NULL;
        if (!marked)
            continue;
        marked[0] = file->index == '?' ? 'N' : 'U';
        memcpy(marked + 1, path, size);
        changes->queued[changes->queued_count++] = marked;
    }
    forget_paths(changes);
}

/* ---- status ---- */

static uint64_t add_to_digest(uint64_t digest, const char *text) {
    digest = weft__hash64_more(digest, text ? text : "", text ? strlen(text) : 0);
    return weft__hash64_more(digest, "\xff", 1);
}

/* What the notification says, and which files it is about. */
static uint64_t digest_of(const weft_git_status *status) {
    char numbers[64];
    uint64_t digest = WEFT_HASH64;
    snprintf(numbers, sizeof numbers, "%" PRIu64 " %" PRIu64, status->ahead, status->behind);
    digest = add_to_digest(digest, status->branch);
    digest = add_to_digest(digest, status->head);
    digest = add_to_digest(digest, status->upstream);
    digest = add_to_digest(digest, numbers);
    for (size_t i = 0; i < status->count; i++) {
        const char state[] = {status->files[i].index, status->files[i].worktree, '\0'};
        digest = add_to_digest(add_to_digest(digest, status->files[i].path), state);
    }
    return digest ? digest : 1;
}

static void tell_git(const weft_hub *hub, weft_rendering *rendering, void *ctx) {
    const weft_git_status *status = ctx;
    weft_val named[MOST_NAMED];
    size_t count = status->count < MOST_NAMED ? status->count : MOST_NAMED;
    cdev_note note = make_note_now(hub, rendering);
    for (size_t i = 0; i < count; i++)
        named[i] = weft_str(status->files[i].path);
    CDEV_TELL(&note, "git_status_changed", {"branch", weft_str_or_none(status->branch)},
              {"ahead", status->compared ? weft_uint(status->ahead) : weft_none()},
              {"behind", status->compared ? weft_uint(status->behind) : weft_none()},
              {"staged_count", weft_uint(status->staged)}, {"unstaged_count", weft_uint(status->unstaged)},
              {"untracked_count", weft_uint(status->untracked)}, {"has_conflicts", weft_bool(status->conflicted > 0)},
              {"is_clean", weft_bool(status->is_clean)}, {"changed_files", weft_arr(named, count)});
}

static void on_status(void *ctx, const weft_git_result *result) {
    weft_cdev_changes *changes = ctx;
    uint64_t digest = result->status ? digest_of(result->status) : 0;
    changes->asking = false;
    if (result->status && digest != changes->told && anybody_listens(changes)) {
        weft_git_status status = *result->status;
        weft__hub_clients_tell(changes->hub->clients, &weft__cdev, tell_git, &status);
    }
    changes->told = digest;
    if (result->status)
        queue_diffs(changes, result->status);
    ask_next_diff(changes);
}

/* The queue of diffs is empty whenever git is asked for its status. */
static void look_at_git(weft_cdev_changes *changes) {
    weft_git_request request = {.what = WEFT_GIT_STATUS, .untracked = true};
    changes->again = changes->asking;
    if (changes->asking || !changes->hub->git)
        return;
    changes->asking = weft__git_ask(changes->hub->git, &request, on_status, changes, NULL) >= 0;
}

static void on_changed(void *ctx, unsigned what) {
    weft_cdev_changes *changes = ctx;
    (void) what;
    if (anybody_listens(changes) && weft__git_watch_has_repository(changes->watch))
        look_at_git(changes);
    else
        forget_paths(changes);
}

/* ---- life ---- */

static void on_note(void *ctx, const char *line) {
    const weft_cdev_changes *changes = ctx;
    if (changes->on_note)
        changes->on_note(changes->note_ctx, line);
}

int weft__cdev_changes_new(weft_hub *hub, void (*note)(void *ctx, const char *line), void *ctx, weft_cdev_changes **ret) {
    weft_cdev_changes *changes = weft__zalloc(hub->alloc, sizeof *changes);
    if (!changes)
        return -ENOMEM;
    changes->hub = hub;
    changes->on_note = note;
    changes->note_ctx = ctx;
    *ret = changes;
    return 0;
}

void weft__cdev_changes_start(weft_cdev_changes *changes) {
    weft_hub *hub = changes->hub;
    weft_git_watch_opts opts = {.loop = weft__engine_loop(hub->engine),
                                .alloc = hub->alloc,
                                .folder = weft__engine_folder(hub->engine),
                                .on_file = on_file,
                                .on_changed = on_changed,
                                .on_note = on_note,
                                .ctx = changes};
    if (!changes->watch && weft__git_watch_new(&opts, &changes->watch) >= 0)
        hub->watching = true;
}

weft_cdev_changes *weft__cdev_changes_free(weft_cdev_changes *changes) {
    if (!changes)
        return NULL;
    changes->hub->watching = false;
    weft__git_watch_free(changes->watch);
    forget_paths(changes);
    while (changes->queued_count)
        drop_queued(changes);
    return weft__free(alloc_of(changes), changes);
}
