/* The loop's side: who waits for a snapshot, what the thread is given, and who is told. See snapshots.h. */
#include "snapshots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent_program.h"
#include "snapshots_private.h"
#include "texts.h"

static void run_job(weft_work *work) {
    snap_job *job = WEFT_CONTAINER(work, snap_job, work);
    job->run(job);
}

static void job_done(weft_work *work, bool lost) {
    snap_job *job = WEFT_CONTAINER(work, snap_job, work);
    job->finish(job, lost);
    weft__snap_done(&job->s);
    weft__free(job->s.own->alloc, job);
}

int weft__snap_give(weft_snapshots *own, snap_job *job, void (*run)(snap_job *), void (*finish)(snap_job *, bool)) {
    job->work = (weft_work){.run = run_job, .done = job_done};
    job->s.own = own;
    job->run = run;
    job->finish = finish;
    int r = weft__workers_give(own->workers, &job->work);
    if (r < 0)
        weft__free(own->alloc, job);
    return r;
}

/* ---- taking ---- */

typedef struct take_job {
    snap_job job;
    weft_link waits;
    char tree[WEFT_SNAPSHOT_HEX];
    size_t count;
    snap_keep keeps[];
} take_job;

static void run_take(snap_job *job) {
    take_job *take = WEFT_CONTAINER(job, take_job, job);
    weft_snapshots *own = job->s.own;
    if (!weft__snap_take(&job->s, take->tree))
        return;
    memcpy(own->latest, take->tree, sizeof own->latest);
    for (size_t i = 0; i < take->count; i++)
        take->keeps[i].tree = take->tree;
    weft__snap_keep(&job->s, take->keeps, take->count);
}

static void leave_waits(weft_snapshot_wait *wait) {
    weft__timer_stop(wait->snapshots->loop, &wait->limit);
    weft__list_remove(&wait->link);
    wait->snapshots = NULL;
}

static void tell_wait(weft_snapshot_wait *wait, const weft_snapshot *snapshot) {
    leave_waits(wait);
    wait->on_taken(wait, snapshot);
}

static void begin_taking(weft_snapshots *own);

static void finish_take(snap_job *job, bool lost) {
    take_job *take = WEFT_CONTAINER(job, take_job, job);
    weft_snapshots *own = job->s.own;
    weft_snapshot snapshot = {.r = job->s.r, .message = job->s.message, .tree = take->tree};
    own->taking = false;
    while (!weft__list_empty(&take->waits)) {
        weft_snapshot_wait *wait = WEFT_CONTAINER(take->waits.next, weft_snapshot_wait, link);
        if (lost)
            leave_waits(wait);
        else
            tell_wait(wait, &snapshot);
    }
    for (size_t i = 0; i < take->count; i++)
        weft__free(own->alloc, (void *) (uintptr_t) take->keeps[i].name);
    if (!lost)
        begin_taking(own);
}

static void fail_waits(weft_link *waits, int r) {
    weft_snapshot snapshot = {.r = r, .message = weft_strerror(r), .tree = ""};
    weft_link failed;
    weft__list_init(&failed);
    while (!weft__list_empty(waits)) {
        weft_link *first = waits->next;
        weft__list_remove(first);
        weft__list_push(&failed, first);
    }
    while (!weft__list_empty(&failed))
        tell_wait(WEFT_CONTAINER(failed.next, weft_snapshot_wait, link), &snapshot);
}

static take_job *new_take(weft_snapshots *own) {
    take_job *take = weft__zalloc(own->alloc, sizeof *take + own->wait_count * sizeof *take->keeps);
    if (!take)
        return NULL;
    weft__list_init(&take->waits);
    for (weft_link *at = own->waits.next; at != &own->waits; at = at->next) {
        const char *name = WEFT_CONTAINER(at, weft_snapshot_wait, link)->name;
        if (*name && !(take->keeps[take->count].name = weft__strndup(own->alloc, name, strlen(name))))
            break;
        take->count += *name != '\0';
    }
    return take;
}

static size_t named_waits(const weft_snapshots *own) {
    size_t count = 0;
    for (const weft_link *at = own->waits.next; at != &own->waits; at = at->next)
        count += *WEFT_CONTAINER(at, weft_snapshot_wait, link)->name != '\0';
    return count;
}

static void drop_take(weft_snapshots *own, take_job *take) {
    for (size_t i = 0; take && i < take->count; i++)
        weft__free(own->alloc, (void *) (uintptr_t) take->keeps[i].name);
}

/* All who wait share one. */
static void begin_taking(weft_snapshots *own) {
    if (own->taking || weft__list_empty(&own->waits))
        return;
    take_job *take = new_take(own);
    if (!take || take->count < named_waits(own)) {
        drop_take(own, take);
        weft__free(own->alloc, take);
        own->wait_count = 0;
        fail_waits(&own->waits, -ENOMEM);
        return;
    }
    own->wait_count = 0;
    while (!weft__list_empty(&own->waits)) {
        weft_link *first = own->waits.next;
        weft__list_remove(first);
        weft__list_push(&take->waits, first);
    }
    own->taking = true;
    take->job.work = (weft_work){.run = run_job, .done = job_done};
    take->job.s.own = own;
    take->job.run = run_take;
    take->job.finish = finish_take;
    int r = weft__workers_give(own->workers, &take->job.work);
    if (r == 0)
        return;
    own->taking = false;
    fail_waits(&take->waits, r);
    drop_take(own, take);
    weft__free(own->alloc, take);
}

static void take_due(weft_later *later) {
    begin_taking(WEFT_CONTAINER(later, weft_snapshots, later));
}

static void on_wait_over(weft_timer *timer) {
    weft_snapshot_wait *wait = WEFT_CONTAINER(timer, weft_snapshot_wait, limit);
    static const weft_snapshot late = {.r = -ETIMEDOUT, .message = "the snapshot took too long", .tree = ""};
    tell_wait(wait, &late);
}

static bool is_snapshot_name(const char *name) {
    return strlen(name) < 64 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == strlen(name);
}

int weft__snapshots_take(weft_snapshots *own, const char *name, int64_t wait_ms, weft_snapshot_wait *wait) {
    if (name && !is_snapshot_name(name))
        return -EINVAL;
    if (own->wait_count >= WEFT_SNAPSHOT_WAITING)
        return -EAGAIN;
    snprintf(wait->name, sizeof wait->name, "%s", name ? name : "");
    wait->snapshots = own;
    weft__timer_init(&wait->limit, on_wait_over);
    weft__timer_set(own->loop, &wait->limit,
                    weft__loop_fresh_now(own->loop) + (wait_ms > 0 ? wait_ms : WEFT_SNAPSHOT_WAIT_MS));
    weft__list_push(&own->waits, &wait->link);
    own->wait_count++;
    weft__later(own->loop, &own->later);
    return 0;
}

void weft__snapshot_cancel(weft_snapshot_wait *wait) {
    if (wait->snapshots)
        leave_waits(wait);
}

/* ---- forgetting ---- */

typedef struct forget_job {
    snap_job job;
    weft_buf owners;
} forget_job;

static bool forget_owners(snap *s, const weft_buf *owners) {
    size_t count = 0, i = 0;
    const char *at = weft__buf_head(owners), *end = weft__buf_tail(owners);
    for (const char *each = at; each < end; each += strlen(each) + 1)
        count++;
    snap_keep *keeps = weft__zalloc(s->own->alloc, (count + 1) * sizeof *keeps);
    if (!keeps)
        return weft__snap_fail(s, -ENOMEM);
    for (const char *each = at; each < end; each += strlen(each) + 1)
        keeps[i++].name = each;
    bool good = weft__snap_find(s) && weft__snap_keep(s, keeps, count);
    weft__free(s->own->alloc, keeps);
    return good;
}

static void run_forget(snap_job *job) {
    forget_job *forget = WEFT_CONTAINER(job, forget_job, job);
    forget_owners(&job->s, &forget->owners);
}

static void begin_forgetting(weft_snapshots *own);

/* What could not be forgotten is found by the next start's sweep. */
static void finish_forget(snap_job *job, bool lost) {
    forget_job *forget = WEFT_CONTAINER(job, forget_job, job);
    weft_snapshots *own = job->s.own;
    weft__buf_done(&forget->owners, own->alloc);
    own->forgetting = false;
    if (!lost)
        begin_forgetting(own);
}

static void begin_forgetting(weft_snapshots *own) {
    if (own->forgetting || !weft__buf_len(&own->forgotten))
        return;
    forget_job *forget = weft__zalloc(own->alloc, sizeof *forget);
    if (!forget)
        return;
    forget->owners = own->forgotten;
    own->forgotten = (weft_buf){0};
    own->forgetting = true;
    weft_buf owners = forget->owners;
    if (weft__snap_give(own, &forget->job, run_forget, finish_forget) < 0) {
        own->forgetting = false;
        own->forgotten = owners;
    }
}

int weft__snapshots_forget(weft_snapshots *own, const char *owner) {
    int r = weft__buf_put(&own->forgotten, own->alloc, owner, strlen(owner) + 1);
    if (r == 0)
        begin_forgetting(own);
    return r;
}

/* ---- keeping what another took ---- */

typedef struct adopt_job {
    snap_job job;
    char name[64], tree[WEFT_SNAPSHOT_HEX];
} adopt_job;

static void run_adopt(snap_job *job) {
    const adopt_job *adopt = WEFT_CONTAINER(job, adopt_job, job);
    snap_keep keep = {.name = adopt->name, .tree = adopt->tree};
    if (weft__snap_find(&job->s))
        weft__snap_keep(&job->s, &keep, 1);
}

/* What could not be kept is still kept by who took it. */
static void finish_adopt(snap_job *job, bool lost) {
    (void) job;
    (void) lost;
}

int weft__snapshots_adopt(weft_snapshots *own, const char *name, const char *tree) {
    if (!is_snapshot_name(name) || !weft__snap_is_hex(tree))
        return -EINVAL;
    adopt_job *adopt = weft__zalloc(own->alloc, sizeof *adopt);
    if (!adopt)
        return -ENOMEM;
    snprintf(adopt->name, sizeof adopt->name, "%s", name);
    snprintf(adopt->tree, sizeof adopt->tree, "%s", tree);
    return weft__snap_give(own, &adopt->job, run_adopt, finish_adopt);
}

/* ---- sweeping ---- */

typedef struct sweep_job {
    snap_job job;
    bool (*known)(void *ctx, const char *owner);
    void *ctx;
    weft_buf owners;
} sweep_job;

static void run_sweep(snap_job *job) {
    if (weft__snap_find(&job->s))
        weft__snap_owners(&job->s, &WEFT_CONTAINER(job, sweep_job, job)->owners);
}

static void finish_sweep(snap_job *job, bool lost) {
    sweep_job *sweep = WEFT_CONTAINER(job, sweep_job, job);
    weft_snapshots *own = job->s.own;
    const char *at = weft__buf_head(&sweep->owners), *end = weft__buf_tail(&sweep->owners), *last = "";
    for (; !lost && at < end; last = at, at += strlen(at) + 1)
        if (strcmp(at, last) != 0 && !sweep->known(sweep->ctx, at) &&
            weft__buf_put(&own->forgotten, own->alloc, at, strlen(at) + 1) < 0)
            break;
    weft__buf_done(&sweep->owners, own->alloc);
    if (!lost)
        begin_forgetting(own);
}

int weft__snapshots_sweep(weft_snapshots *own, bool (*known)(void *ctx, const char *owner), void *ctx) {
    sweep_job *sweep = weft__zalloc(own->alloc, sizeof *sweep);
    if (!sweep)
        return -ENOMEM;
    sweep->known = known;
    sweep->ctx = ctx;
    return weft__snap_give(own, &sweep->job, run_sweep, finish_sweep);
}

/* ---- comparing ---- */

static const char *put_text(char **at, const char *text) {
    const char *copy = *at;
    *at = stpcpy(*at, text) + 1;
    return copy;
}

/* Pointers first. */
static const char **aligned_room(char *room) {
    uintptr_t at = ((uintptr_t) room + sizeof(char *) - 1) / sizeof(char *) * sizeof(char *);
    return (const char **) at;
}

typedef struct compare_job {
    snap_job job;
    weft_comparison what; /* its texts lie in room */
    weft_compared_done *done;
    void *ctx;
    char to[WEFT_SNAPSHOT_HEX];
    snap_files files;
    bool truncated;
    char room[];
} compare_job;

static void run_compare(snap_job *job) {
    compare_job *compare = WEFT_CONTAINER(job, compare_job, job);
    const weft_comparison *what = &compare->what;
    snap *s = &job->s;
    if (what->to)
        snprintf(compare->to, sizeof compare->to, "%s", what->to);
    bool good = what->to ? weft__snap_find(s) : weft__snap_take(s, compare->to);
    if (good && !what->to)
        memcpy(s->own->latest, compare->to, sizeof s->own->latest);
    if (!good)
        return;
    if (what->text)
        weft__snap_text(s, what, compare->to, &compare->truncated);
    else if (weft__snap_files(s, what, compare->to, &compare->files))
        weft__snap_mark_shared(s, what->shared, &compare->files);
}

static void finish_compare(snap_job *job, bool lost) {
    compare_job *compare = WEFT_CONTAINER(job, compare_job, job);
    weft_bytes text = compare->what.text && job->s.r == 0 ? weft__snap_output(&job->s) : (weft_bytes){"", 0};
    size_t skip = compare->what.skip < text.len ? compare->what.skip : text.len;
    weft_compared compared = {
        .r = job->s.r,
        .message = job->s.message,
        .to = compare->to,
        .list = compare->what.text || job->s.r < 0 ? NULL : &compare->files.pub,
        .text = {text.data + skip, text.len - skip},
        .truncated = compare->truncated,
    };
    if (!lost)
        compare->done(compare->ctx, &compared);
    weft__snap_files_done(&job->s, &compare->files);
}

int weft__snapshots_compare(weft_snapshots *own, const weft_comparison *what, weft_compared_done *done, void *ctx) {
    size_t path = what->path ? strlen(what->path) + 1 : 0;
    bool bad = !weft__snap_is_hex(what->from) || (what->to && !weft__snap_is_hex(what->to)) ||
               (what->path && !weft__git_is_path(what->path)) || what->context > WEFT_SNAPSHOT_CONTEXT ||
               what->skip > WEFT_SNAPSHOT_DIFF_ALL;
    if (bad)
        return -EINVAL;
    size_t pairs = weft__texts_count(what->shared), list = (pairs + 2) * sizeof(char *);
    compare_job *compare = weft__zalloc(own->alloc, sizeof *compare + list + path + (pairs + 2) * WEFT_SNAPSHOT_HEX);
    if (!compare)
        return -ENOMEM;
    const char **shared = aligned_room(compare->room);
    char *at = (char *) (shared + pairs + 1);
    compare->what = *what;
    compare->what.from = memcpy(at, what->from, strlen(what->from) + 1);
    at += WEFT_SNAPSHOT_HEX;
    if (what->to)
        compare->what.to = memcpy(at, what->to, strlen(what->to) + 1);
    at += WEFT_SNAPSHOT_HEX;
    if (path)
        compare->what.path = memcpy(at, what->path, path);
    at += path;
    for (size_t i = 0; i < pairs; i++)
        shared[i] = put_text(&at, what->shared[i]);
    compare->what.shared = shared;
    compare->done = done;
    compare->ctx = ctx;
    return weft__snap_give(own, &compare->job, run_compare, finish_compare);
}

/* ---- undoing ---- */

typedef struct undo_job {
    snap_job job;
    weft_undo what; /* its texts lie in room */
    weft_undo_done *done;
    void *ctx;
    snap_plan plan;
    snap_conflicts conflicts;
    size_t left;
    bool recovered;
    char room[];
} undo_job;

static weft_undone describe_undo(const undo_job *undo) {
    const snap_plan *plan = &undo->plan;
    return (weft_undone){
        .owner = plan->owner,
        .by = *plan->by ? plan->by : NULL,
        .from = plan->from,
        .to = plan->to,
        .redo = plan->redo,
        .files = plan->count - (undo->left < plan->count ? undo->left : plan->count),
        .left = undo->left,
    };
}

static void free_undo(undo_job *undo) {
    weft__snap_plan_done(&undo->job.s, &undo->plan);
    weft__snap_conflicts_done(&undo->job.s, &undo->conflicts);
}

static void run_undo(snap_job *job) {
    undo_job *undo = WEFT_CONTAINER(job, undo_job, job);
    weft__snap_undo(&job->s, &undo->what, &undo->plan, &undo->conflicts);
}

static void finish_undo(snap_job *job, bool lost) {
    undo_job *undo = WEFT_CONTAINER(job, undo_job, job);
    weft_undo_result result = {
        .r = job->s.r,
        .message = job->s.message,
        .conflicts = undo->conflicts.list,
        .conflict_count = undo->conflicts.count,
        .listed = undo->conflicts.listed,
        .undone = describe_undo(undo),
    };
    if (!lost)
        undo->done(undo->ctx, &result);
    free_undo(undo);
}

int weft__snapshots_undo(weft_snapshots *own, const weft_undo *what, weft_undo_done *done, void *ctx) {
    size_t pairs = 0;
    while (what->shared && what->shared[pairs])
        pairs++;
    if (!is_snapshot_name(what->owner) || strchr(what->owner, '.') || !weft__snap_is_hex(what->before) ||
        !weft__snap_is_hex(what->after))
        return -EINVAL;
    size_t size = (pairs + 1) * sizeof(char *) + strlen(what->owner) + (what->by ? strlen(what->by) : 0) + 2 +
                  (pairs + 2) * WEFT_SNAPSHOT_HEX;
    undo_job *undo = weft__zalloc(own->alloc, sizeof *undo + size + sizeof(char *));
    if (!undo)
        return -ENOMEM;
    const char **shared = aligned_room(undo->room);
    char *at = (char *) (shared + pairs + 1);
    undo->what = *what;
    undo->what.owner = put_text(&at, what->owner);
    undo->what.by = what->by ? put_text(&at, what->by) : NULL;
    undo->what.before = put_text(&at, what->before);
    undo->what.after = put_text(&at, what->after);
    for (size_t i = 0; i < pairs; i++)
        shared[i] = put_text(&at, what->shared[i]);
    undo->what.shared = shared;
    undo->done = done;
    undo->ctx = ctx;
    return weft__snap_give(own, &undo->job, run_undo, finish_undo);
}

void weft__snapshots_undo_recorded(weft_snapshots *own) {
    weft__snap_plan_remove(own);
}

/* ---- an undo that was interrupted ---- */

static void run_recover(snap_job *job) {
    undo_job *undo = WEFT_CONTAINER(job, undo_job, job);
    int r = weft__snap_plan_read(&job->s, &undo->plan);
    if (r < 0)
        weft__snap_fail(&job->s, r);
    undo->recovered = r > 0 && weft__snap_find(&job->s) && weft__snap_finish(&job->s, &undo->plan, &undo->left);
}

static void finish_recover(snap_job *job, bool lost) {
    undo_job *undo = WEFT_CONTAINER(job, undo_job, job);
    weft_snapshots *own = job->s.own;
    weft_undone undone = describe_undo(undo);
    if (!lost && undo->recovered && own->on_undone)
        own->on_undone(own->ctx, &undone);
    free_undo(undo);
}

static int look_for_plan(weft_snapshots *own) {
    char path[PATH_MAX + 32];
    struct stat st;
    snprintf(path, sizeof path, "%s/changes/undo.plan", own->state);
    if (lstat(path, &st) < 0)
        return 0;
    undo_job *undo = weft__zalloc(own->alloc, sizeof *undo);
    return undo ? weft__snap_give(own, &undo->job, run_recover, finish_recover) : -ENOMEM;
}

/* ---- whose it is ---- */

#define MARK_BYTES 128

static void run_clear(snap_job *job) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/changes.gone", job->s.own->state);
    (void) weft__snap_remove_tree(path);
}

static void finish_clear(snap_job *job, bool lost) {
    (void) job;
    (void) lost;
}

static bool has_mark(const char *path, const char *mark) {
    char is[MARK_BYTES] = "";
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, is, sizeof is - 1);
    if (fd >= 0)
        close(fd);
    return n == (ssize_t) strlen(mark) && memcmp(is, mark, (size_t) n) == 0;
}

static int write_mark(const char *folder, const char *path, const char *mark) {
    if (mkdir(folder, 0700) < 0)
        return -errno;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : write(fd, mark, strlen(mark)) == (ssize_t) strlen(mark) ? 0 : -EIO;
    if (fd >= 0)
        close(fd);
    return r;
}

/* Also what another start could not remove. */
static int claim_folder(weft_snapshots *own, const char *mark) {
    char folder[PATH_MAX + 32], path[PATH_MAX + 48], gone[PATH_MAX + 32];
    struct stat st;
    snprintf(folder, sizeof folder, "%s/changes", own->state);
    snprintf(path, sizeof path, "%s/mark", folder);
    snprintf(gone, sizeof gone, "%s/changes.gone", own->state);
    if (!mark || has_mark(path, mark))
        return 0;
    if (lstat(gone, &st) == 0)
        (void) weft__snap_remove_tree(gone);
    bool was = rename(folder, gone) == 0;
    if (!was && errno != ENOENT)
        return -errno;
    int r = write_mark(folder, path, mark);
    snap_job *job = r == 0 && was ? weft__zalloc(own->alloc, sizeof *job) : NULL;
    return r < 0 ? r : job ? weft__snap_give(own, job, run_clear, finish_clear) : was ? -ENOMEM : 0;
}

/* ---- life ---- */

static int open_snapshots(weft_snapshots *own, const weft_snapshots_opts *opts) {
    char real[PATH_MAX];
    struct stat st;
    if (!realpath(opts->folder, real) || stat(real, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    if (strlen(real) > PATH_MAX - 256 || strlen(opts->state) > PATH_MAX - 256)
        return -ENAMETOOLONG;
    own->folder = weft__strndup(own->alloc, real, strlen(real));
    own->state = weft__strndup(own->alloc, opts->state, strlen(opts->state));
    own->mark = opts->mark ? weft__strndup(own->alloc, opts->mark, strlen(opts->mark)) : NULL;
    own->project = opts->project ? weft__strndup(own->alloc, opts->project, strlen(opts->project)) : NULL;
    own->dev = st.st_dev;
    own->ino = st.st_ino;
    int r = own->folder && own->state && (own->mark || !opts->mark) && (own->project || !opts->project)
                ? weft__git_find(opts->program, own->folder, own->alloc, &own->program, &own->no_program)
                : -ENOMEM;
    if (r == 0)
        r = weft__git_env_init(&own->env, own->folder, own->alloc);
    if (r == 0 && (own->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        r = -errno;
    if (r == 0)
        r = weft__workers_new(&(weft_workers_opts){.loop = opts->loop,
                                                   .alloc = opts->alloc,
                                                   .threads = 1,
                                                   .max_waiting = WEFT_SNAPSHOT_WAITING,
                                                   .set_umask = opts->set_umask,
                                                   .umask = opts->umask},
                              &own->workers);
    if (r == 0)
        r = claim_folder(own, opts->mark);
    if (r == 0)
        r = look_for_plan(own);
    return r < 0 ? r : weft__snap_look_for_merge(own);
}

int weft__snapshots_new(const weft_snapshots_opts *opts, weft_snapshots **ret) {
    weft_snapshots *own = weft__zalloc(opts->alloc, sizeof *own);
    if (!own)
        return -ENOMEM;
    own->loop = opts->loop;
    own->alloc = opts->alloc;
    own->env.alloc = opts->alloc;
    own->max_file = opts->max_file ? opts->max_file : WEFT_SNAPSHOT_FILE;
    own->run_ms = opts->run_ms ? opts->run_ms : WEFT_SNAPSHOT_RUN_MS;
    own->umask = opts->set_umask ? opts->umask : 022;
    own->set_umask = opts->set_umask;
    own->on_undone = opts->on_undone;
    own->on_merged = opts->on_merged;
    own->ctx = opts->ctx;
    own->cancel = own->root = -1;
    weft__list_init(&own->waits);
    weft__list_init(&own->trees);
    weft__later_init(&own->later, take_due);
    int r = open_snapshots(own, opts);
    if (r < 0) {
        weft__snapshots_free(own);
        return r;
    }
    *ret = own;
    return 0;
}

weft_snapshots *weft__snapshots_free(weft_snapshots *own) {
    if (!own)
        return NULL;
    weft__snap_drop_trees(own);
    weft__later_cancel(&own->later);
    if (own->cancel >= 0)
        (void) eventfd_write(own->cancel, 1);
    own->workers = weft__workers_free(own->workers);
    while (!weft__list_empty(&own->waits))
        leave_waits(WEFT_CONTAINER(own->waits.next, weft_snapshot_wait, link));
    weft__buf_done(&own->forgotten, own->alloc);
    weft__git_env_done(&own->env);
    if (own->cancel >= 0)
        close(own->cancel);
    if (own->root >= 0)
        close(own->root);
    weft__free(own->alloc, own->program);
    weft__free(own->alloc, own->folder);
    weft__free(own->alloc, own->state);
    weft__free(own->alloc, own->mark);
    weft__free(own->alloc, own->project);
    return weft__free(own->alloc, own);
}
