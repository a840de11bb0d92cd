/* What is known of what tasks changed, comparing it, and putting it back. An undo is in the journal before it is answered;
 * one that was interrupted is finished and recorded at the next start. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kept_event.h"
#include "run.h"
#include "write.h"

#define SWEEP_MS 30000 /* behind a start, which has better things to do than to run git */
#define PAIRS 64       /* of trees between which others worked, of one session */

/* ---- what is known ---- */

static void take_tree(const weft_json *data, const char *name, char ret[WEFT_SNAPSHOT_HEX]) {
    weft_json member = weft_get(data, name);
    weft_bytes text;
    if (weft_bytes_of(&member, &text) < 0 || (text.len != 40 && text.len != 64))
        return;
    for (size_t i = 0; i < text.len; i++)
        if (!strchr("0123456789abcdef", text.data[i]))
            return;
    memcpy(ret, text.data, text.len);
    ret[text.len] = '\0';
}

static void take_number(const weft_json *data, const char *name, uint64_t *ret) {
    *ret = (uint64_t) weft__int_between(data, name, (int64_t) *ret, 0, INT64_MAX);
}

/* An array, as it is written. */
static weft_bytes array_of(const weft_json *data, const char *name, const char *known) {
    weft_json member = weft_get(data, name);
    if (weft_typeof(&member) == WEFT_ARRAY)
        return (weft_bytes){member.text, member.len};
    return (weft_bytes){known, known ? strlen(known) : 0};
}

static const char *put_bytes(char **at, weft_bytes text) {
    char *copy = *at;
    if (!text.len)
        return NULL;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    *at += text.len + 1;
    return copy;
}

/* What an event, or a document, says on top of what is known. */
static int merge_changes(weft_engine *engine, known_task *task, const weft_json *data) {
    static const weft_task_changes nothing = {0};
    const weft_task_changes *old = task->changes ? task->changes : &nothing;
    const char *why = NULL;
    if (weft__member(data, "why", &why) < 0)
        return -ENOMEM;
    weft_bytes spans = array_of(data, "spans", old->spans), others = array_of(data, "others", old->others);
    weft_task_changes *made =
        weft__zalloc(engine->alloc, sizeof *made + spans.len + others.len + (why ? strlen(why) : 0) + 3);
    if (!made)
        return -ENOMEM;
    memcpy(made, old, sizeof *made);
    char *at = made->text;
    made->spans = put_bytes(&at, spans);
    made->others = put_bytes(&at, others);
    made->why = put_bytes(&at, (weft_bytes){why, why ? strlen(why) : 0});
    take_tree(data, "before", made->before);
    take_tree(data, "after", made->after);
    take_tree(data, "from", made->from);
    take_tree(data, "to", made->to);
    take_tree(data, "merged", made->merged);
    made->undone = weft_get_bool(data, "undone", made->undone);
    made->late = weft_get_bool(data, "late", made->late);
    made->there = weft_get_bool(data, "there", made->there) || *weft_get_str(data, "runner", "");
    static const char *const names[] = {"files", "added", "modified", "deleted", "renamed", "additions", "deletions"};
    uint64_t *const numbers[] = {&made->files,   &made->added,     &made->modified, &made->deleted,
                                 &made->renamed, &made->additions, &made->deletions};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        take_number(data, names[i], numbers[i]);
    weft__free(engine->alloc, task->changes);
    task->pub.changes = task->changes = made;
    return 0;
}

int weft__task_apply_changes(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_task *task = weft__task_of(engine, data);
    (void) event;
    return task ? merge_changes(engine, task, data) : 0;
}

int weft__task_restore_changes(weft_engine *engine, known_task *task, const weft_json *data) {
    return weft_typeof(data) == WEFT_OBJECT ? merge_changes(engine, task, data) : 0;
}

void weft__task_forget_changes(weft_engine *engine, known_task *task) {
    bool kept = task->changes && *task->changes->before;
    if (kept && engine->opts.snapshots && engine->phase >= READY && engine->phase != GONE)
        (void) weft__snapshots_forget(engine->opts.snapshots, task->id);
    task->pub.changes = task->changes = weft__free(engine->alloc, task->changes);
}

static weft_val json_or_none(const char *text) {
    return text ? weft_raw(text, strlen(text)) : weft_none();
}

weft_val weft__changes_val(const weft_task_changes *changes, bool trees, weft_member members[WEFT_CHANGES_MEMBERS]) {
    if (!changes)
        return weft_none();
    bool known = *changes->after || (changes->there && !changes->why);
    const weft_member all[] = {
        {"before", weft__text_or_none(trees ? changes->before : NULL)},
        {"after", weft__text_or_none(trees ? changes->after : NULL)},
        {"from", weft__text_or_none(trees ? changes->from : NULL)},
        {"to", weft__text_or_none(trees ? changes->to : NULL)},
        {"why", weft__text_or_none(changes->why)},
        {"files", known ? weft_uint(changes->files) : weft_none()},
        {"added", known ? weft_uint(changes->added) : weft_none()},
        {"modified", known ? weft_uint(changes->modified) : weft_none()},
        {"deleted", known ? weft_uint(changes->deleted) : weft_none()},
        {"renamed", known ? weft_uint(changes->renamed) : weft_none()},
        {"additions", known ? weft_uint(changes->additions) : weft_none()},
        {"deletions", known ? weft_uint(changes->deletions) : weft_none()},
        {"spans", json_or_none(trees ? changes->spans : NULL)},
        {"shared", !trees && changes->spans ? weft_bool(true) : weft_none()},
        {"others", json_or_none(changes->others)},
        {"late", changes->late ? weft_bool(true) : weft_none()},
        {"there", trees && changes->there ? weft_bool(true) : weft_none()},
        {"merged", weft__text_or_none(changes->merged)},
        {"undone", changes->undone || (trees && *changes->from) ? weft_bool(changes->undone) : weft_none()},
    };
    memcpy(members, all, sizeof all);
    return weft_obj(members, sizeof all / sizeof all[0]);
}

/* ---- pairs of trees between which others worked ---- */

typedef struct pairs {
    char trees[2 * PAIRS][WEFT_SNAPSHOT_HEX];
    const char *list[2 * PAIRS + 1];
    size_t count; /* of trees */
    bool full;
} pairs;

static void add_pair(pairs *to, const char *from, const char *until) {
    if (to->count == 2 * PAIRS)
        to->full = true;
    if (to->full || strcmp(from, until) == 0)
        return;
    for (int i = 0; i < 2; i++) {
        snprintf(to->trees[to->count], WEFT_SNAPSHOT_HEX, "%s", i ? until : from);
        to->list[to->count] = to->trees[to->count];
        to->count++;
    }
    to->list[to->count] = NULL;
}

static int add_spans(weft_engine *engine, pairs *to, const weft_task_changes *changes) {
    char last[WEFT_SNAPSHOT_HEX] = "";
    weft_doc *doc = NULL;
    if (!changes->spans)
        return 0;
    int r = weft_doc_parse(changes->spans, strlen(changes->spans), engine->alloc, &doc);
    if (r < 0)
        return r;
    for (weft_iter it = weft_iterate(weft_doc_root(doc)); weft_next(&it);) {
        const char *tree = weft_str_of(&it.value, "");
        if (*last)
            add_pair(to, last, tree);
        snprintf(last, sizeof last, "%s", *last ? "" : tree);
    }
    weft_doc_free(doc);
    return 0;
}

/* ---- comparing ---- */

/* Trees that were taken can be compared in any worktree of the repository; the files as they are only in their own. */
static int compare_with(weft_snapshots *of, const weft_comparison *how, const char *from, const char *to,
                        const pairs *shared, weft_compared_done *done, void *ctx) {
    weft_comparison what = *how;
    what.from = from;
    what.to = to;
    what.shared = shared->count ? shared->list : NULL;
    return weft__snapshots_compare(of, &what, done, ctx);
}

static bool is_working(const known_task *task) {
    return task->run && task->run->changes.step == CHANGES_WORKS;
}

/* Its first snapshot, also when that is not stored yet; NULL: there is none. */
static const char *before_of(const known_task *task) {
    if (is_working(task))
        return task->run->changes.before;
    return task->changes && *task->changes->before ? task->changes->before : NULL;
}

static int compare_task(weft_engine *engine, const known_task *task, const weft_comparison *how, pairs *shared,
                        weft_compared_done *done, void *ctx) {
    const weft_task_changes *changes = task->changes;
    const char *before = before_of(task);
    bool works = is_working(task);
    if (!before || (!works && !*changes->after))
        return -ENODATA;
    int r = changes ? add_spans(engine, shared, changes) : 0;
    if (r < 0)
        return r;
    for (size_t i = 0; works && i < task->run->changes.span_count; i++)
        add_pair(shared, task->run->changes.spans[i][0], task->run->changes.spans[i][1]);
    return compare_with(works ? task->run->changes.of : engine->opts.snapshots, how, before, works ? NULL : changes->after,
                        shared, done, ctx);
}

/* From the first of its tasks to the last; what was done between two of them was done by somebody else. */
static int compare_session(weft_engine *engine, const char *id, const weft_comparison *how, pairs *shared,
                           weft_compared_done *done, void *ctx) {
    const char *first = NULL, *last = NULL;
    weft_snapshots *of = engine->opts.snapshots;
    bool works = false;
    for (weft_link *link = engine->all_tasks.next; link != &engine->all_tasks; link = link->next) {
        const known_task *task = WEFT_CONTAINER(link, known_task, all);
        const char *before = strcmp(task->pub.session, id) == 0 ? before_of(task) : NULL;
        if (!before || (!is_working(task) && !*task->changes->after))
            continue;
        if (last)
            add_pair(shared, last, before);
        int r = task->changes ? add_spans(engine, shared, task->changes) : 0;
        if (r < 0)
            return r;
        works = is_working(task);
        of = works ? task->run->changes.of : engine->opts.snapshots;
        first = first ? first : before;
        last = works ? before : task->changes->after;
    }
    return first ? compare_with(of, how, first, works ? NULL : last, shared, done, ctx) : -ENODATA;
}

int weft__task_compare(weft_engine *engine, const char *id, bool session, const weft_comparison *how,
                       weft_compared_done *done, void *ctx) {
    const known_task *task = session ? NULL : weft__task_known(engine, id);
    if (session ? !weft__session_find(engine, id) : !task || !task->stored)
        return -ENOENT;
    if (!engine->opts.snapshots)
        return -EOPNOTSUPP;
    pairs *shared = weft__zalloc(engine->alloc, sizeof *shared);
    if (!shared)
        return -ENOMEM;
    int r =
        session ? compare_session(engine, id, how, shared, done, ctx) : compare_task(engine, task, how, shared, done, ctx);
    weft__free(engine->alloc, shared);
    return r;
}

/* ---- undo ---- */

/* One at a time. asked ──▶ under way ──done──▶ to be recorded ──stored──▶ answered */
struct undo_record {
    kept_event event;
    weft_engine *engine;
    char owner[ENGINE_ID], by[256];
    char from[WEFT_SNAPSHOT_HEX], to[WEFT_SNAPSHOT_HEX];
    bool redo;
    size_t files, left;
    weft_undo_done *done; /* NULL: nobody waits */
    void *ctx;
};

/* Where what it changed is: what was merged is in the project. */
static weft_snapshots *undo_place(const weft_engine *engine, const known_task *task) {
    bool merged = task->changes && *task->changes->merged;
    return merged ? engine->opts.snapshots : weft__task_snapshots(engine, task);
}

/* Where the undo was done. */
static weft_snapshots *record_place(const struct undo_record *record) {
    const known_task *task = weft__task_known(record->engine, record->owner);
    return task ? undo_place(record->engine, task) : record->engine->opts.snapshots;
}

static void forget_plan(const struct undo_record *record) {
    weft_snapshots *of = record_place(record);
    if (of)
        weft__snapshots_undo_recorded(of);
}

static void end_record(struct undo_record *record) {
    weft_engine *engine = record->engine;
    weft__kept_event_done(&record->event);
    engine->undo = NULL;
    weft__free(engine->alloc, record);
}

static void answer_record(struct undo_record *record, int r) {
    weft_undo_result result = {
        .r = r,
        .message = r < 0 ? weft_strerror(r) : "",
        .undone = {.owner = record->owner,
                   .by = record->by,
                   .from = record->from,
                   .to = record->to,
                   .redo = record->redo,
                   .files = record->files,
                   .left = record->left},
    };
    weft_undo_done *done = record->done;
    void *ctx = record->ctx;
    if (done)
        done(ctx, &result);
}

static void add_undone(const kept_event *event, struct draft *draft) {
    const struct undo_record *record = WEFT_CONTAINER(event, struct undo_record, event);
    const known_task *task = weft__task_known(record->engine, record->owner);
    weft__draft_add(
        draft, WEFT_STREAM_HUB, "task.undone",
        WEFT_OBJ({"taskId", weft_str(record->owner)}, {"sessionId", task ? weft_str(task->pub.session) : weft_none()},
                 {"by", weft__text_or_none(record->by)}, {"from", weft_str(record->from)}, {"to", weft_str(record->to)},
                 {"putBack", weft_uint(record->files)}, {"undone", weft_bool(!record->redo)},
                 {"left", record->left ? weft_uint(record->left) : weft_none()}));
}

static void on_undo_recorded(kept_event *event, int r) {
    struct undo_record *record = WEFT_CONTAINER(event, struct undo_record, event);
    if (r == 0)
        forget_plan(record);
    answer_record(record, r);
    end_record(record);
}

static void fill_record(struct undo_record *record, const weft_undone *undone) {
    snprintf(record->owner, sizeof record->owner, "%s", undone->owner);
    snprintf(record->by, sizeof record->by, "%s", undone->by ? undone->by : "");
    snprintf(record->from, sizeof record->from, "%s", undone->from);
    snprintf(record->to, sizeof record->to, "%s", undone->to);
    record->redo = undone->redo;
    record->files = undone->files;
    record->left = undone->left;
    record->event.due = true;
}

static void on_undo(void *ctx, const weft_undo_result *result) {
    struct undo_record *record = ctx;
    if (result->r == 0 && !result->conflict_count) {
        fill_record(record, &result->undone);
        weft__run_changes_foreign(record->engine, record_place(record), record->from, record->to);
        weft__kept_event_send(&record->event);
        return;
    }
    record->done(record->ctx, result);
    end_record(record);
}

static struct undo_record *new_record(weft_engine *engine) {
    struct undo_record *record = weft__zalloc(engine->alloc, sizeof *record);
    if (!record)
        return NULL;
    record->engine = engine;
    weft__kept_event_init(&record->event, engine, add_undone, on_undo_recorded);
    return engine->undo = record;
}

static int start_undo(weft_engine *engine, const known_task *task, const weft_undo_order *order, pairs *shared,
                      weft_undo_done *done, void *ctx) {
    const weft_task_changes *changes = task->changes;
    weft_snapshots *of = undo_place(engine, task);
    if (!of)
        return -ENODATA;
    int r = order->redo ? 0 : add_spans(engine, shared, changes);
    if (r == 0 && shared->full)
        r = -EFBIG;
    struct undo_record *record = r < 0 ? NULL : new_record(engine);
    if (!record)
        return r < 0 ? r : -ENOMEM;
    record->done = done;
    record->ctx = ctx;
    weft_undo undo = {
        .owner = task->id,
        .by = order->by,
        .before = order->redo ? changes->from : changes->before,
        .after = order->redo ? changes->to : changes->after,
        .shared = shared->count ? shared->list : NULL,
        .allow_shared = order->shared,
        .redo = order->redo,
    };
    r = weft__snapshots_undo(of, &undo, on_undo, record);
    if (r < 0)
        end_record(record);
    return r;
}

int weft__task_undo(weft_engine *engine, const char *id, const weft_undo_order *order, weft_undo_done *done, void *ctx) {
    const known_task *task = weft__task_known(engine, id);
    if (!task || !task->stored)
        return -ENOENT;
    if (!engine->opts.snapshots)
        return -EOPNOTSUPP;
    if (engine->phase != READY)
        return engine->phase < READY ? -EAGAIN : -ESHUTDOWN;
    if (task->pub.state < WEFT_TASK_COMPLETED || task->run)
        return -EBUSY;
    if (!task->changes || !*task->changes->before || !*task->changes->after)
        return -ENODATA;
    if (task->changes->undone != order->redo)
        return -EALREADY;
    if (engine->undo || engine->merge)
        return -EAGAIN;
    pairs *shared = weft__zalloc(engine->alloc, sizeof *shared);
    int r = shared ? start_undo(engine, task, order, shared, done, ctx) : -ENOMEM;
    weft__free(engine->alloc, shared);
    return r;
}

/* It may have been recorded before the daemon ended. */
static void send_recovered(weft_engine *engine) {
    struct undo_record *record = engine->undo;
    if (!record || !record->event.due || record->done)
        return;
    const known_task *task = weft__task_known(engine, record->owner);
    bool known =
        task && task->changes && strcmp(task->changes->to, record->to) == 0 && task->changes->undone == !record->redo;
    if (!known && task) {
        weft__kept_event_send(&record->event);
        return;
    }
    forget_plan(record);
    end_record(record);
}

void weft__task_undone(weft_engine *engine, const weft_undone *undone) {
    if (engine->undo || !new_record(engine))
        return;
    fill_record(engine->undo, undone);
    if (engine->phase >= READY)
        send_recovered(engine);
}

int weft__task_undone_there(weft_engine *engine, const char *id, const weft_undo_order *order, uint64_t files,
                            void (*done)(void *ctx, int r), void *ctx) {
    const known_task *task = weft__task_known(engine, id);
    if (!task || !task->stored)
        return -ENOENT;
    return weft__engine_append(engine, WEFT_STREAM_HUB, "task.undone",
                               WEFT_OBJ({"taskId", weft_str(id)}, {"sessionId", weft_str(task->pub.session)},
                                        {"by", order->by && *order->by ? weft_str(order->by) : weft_none()},
                                        {"putBack", weft_uint(files)}, {"undone", weft_bool(!order->redo)}),
                               done, ctx);
}

/* ---- at a start ---- */

static bool is_known_owner(void *ctx, const char *owner) {
    return weft__task_known(ctx, owner) != NULL;
}

static void sweep_snapshots(weft_past_waiter *swept, int r) {
    weft_engine *engine = WEFT_CONTAINER(swept, weft_engine, swept);
    if (r == 0 && engine->phase == READY)
        (void) weft__snapshots_sweep(engine->opts.snapshots, is_known_owner, engine);
    if (r == 0 && engine->phase == READY)
        weft__worktrees_sweep(engine);
}

static void sweep_due(weft_timer *timer) {
    weft_engine *engine = WEFT_CONTAINER(timer, weft_engine, sweep_timer);
    if (weft__engine_past(engine) == 0)
        sweep_snapshots(&engine->swept, 0);
    else
        weft__engine_await_past(engine, &engine->swept);
}

/* Those that ran when the daemon ended have a first snapshot and no second one; it is taken now. */
typedef struct late_snapshot {
    weft_snapshot_wait wait;
    weft_engine *engine;
    weft_link link;
    char id[ENGINE_ID], before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
} late_snapshot;

static void free_late(late_snapshot *late) {
    weft__snapshot_cancel(&late->wait);
    weft__list_remove(&late->link);
    weft__free(late->engine->alloc, late);
}

static void tell_late(late_snapshot *late, const weft_changed_list *of) {
    weft_engine *engine = late->engine;
    const known_task *task = weft__task_known(engine, late->id);
    if (task && of)
        (void) weft__engine_append(
            engine, WEFT_STREAM_HUB, "task.changed",
            WEFT_OBJ({"taskId", weft_str(late->id)}, {"sessionId", weft_str(task->pub.session)},
                     {"before", weft_str(late->before)}, {"after", weft_str(late->after)}, {"files", weft_uint(of->count)},
                     {"added", weft_uint(of->of[WEFT_CHANGED_ADDED])},
                     {"modified", weft_uint(of->of[WEFT_CHANGED_MODIFIED] + of->of[WEFT_CHANGED_TYPE])},
                     {"deleted", weft_uint(of->of[WEFT_CHANGED_DELETED])},
                     {"renamed", weft_uint(of->of[WEFT_CHANGED_RENAMED])}, {"additions", weft_uint(of->additions)},
                     {"deletions", weft_uint(of->deletions)}, {"late", weft_bool(true)}),
            NULL, NULL);
    free_late(late);
}

static void on_late_compared(void *ctx, const weft_compared *compared) {
    tell_late(ctx, compared->r == 0 ? compared->list : NULL);
}

static void on_late(weft_snapshot_wait *wait, const weft_snapshot *snapshot) {
    late_snapshot *late = WEFT_CONTAINER(wait, late_snapshot, wait);
    snprintf(late->after, sizeof late->after, "%s", snapshot->tree);
    weft_comparison what = {.from = late->before, .to = late->after};
    char name[ENGINE_ID + 16];
    int r = snapshot->r;
    snprintf(name, sizeof name, "%s.after", late->id);
    if (r == 0) /* also where it was taken in a worktree */
        (void) weft__snapshots_adopt(late->engine->opts.snapshots, name, late->after);
    if (r == 0)
        r = weft__snapshots_compare(late->engine->opts.snapshots, &what, on_late_compared, late);
    if (r < 0)
        free_late(late);
}

static void take_late(weft_engine *engine, const known_task *task) {
    char name[ENGINE_ID + 16];
    late_snapshot *late = weft__zalloc(engine->alloc, sizeof *late);
    if (!late)
        return;
    late->engine = engine;
    weft__list_push(&engine->late_snapshots, &late->link);
    late->wait.on_taken = on_late;
    snprintf(late->id, sizeof late->id, "%s", task->id);
    snprintf(late->before, sizeof late->before, "%s", task->changes->before);
    snprintf(name, sizeof name, "%s.after", task->id);
    weft_snapshots *of = weft__task_snapshots(engine, task);
    if (!of || weft__snapshots_take(of, name, 0, &late->wait) < 0)
        free_late(late);
}

static bool lacks_second(const known_task *task) {
    return task->pub.state >= WEFT_TASK_COMPLETED && task->changes && *task->changes->before && !*task->changes->after &&
           !task->changes->why;
}

void weft__changes_started(weft_engine *engine) {
    if (engine->phase < READY || !engine->opts.snapshots)
        return;
    send_recovered(engine);
    weft__worktrees_started(engine);
    for (weft_link *link = engine->all_tasks.next; link != &engine->all_tasks && engine->phase == READY; link = link->next)
        if (lacks_second(WEFT_CONTAINER(link, known_task, all)))
            take_late(engine, WEFT_CONTAINER(link, known_task, all));
    if (engine->swept.on_past)
        return;
    engine->swept.on_past = sweep_snapshots;
    weft__timer_init(&engine->sweep_timer, sweep_due);
    weft__timer_set(engine->loop, &engine->sweep_timer, weft__loop_fresh_now(engine->loop) + SWEEP_MS);
}

void weft__changes_drop(weft_engine *engine) {
    struct undo_record *record = engine->undo;
    while (!weft__list_empty(&engine->late_snapshots))
        free_late(WEFT_CONTAINER(engine->late_snapshots.next, late_snapshot, link));
    if (engine->swept.on_past)
        weft__timer_stop(engine->loop, &engine->sweep_timer);
    if (engine->swept.link.next)
        weft__list_remove(&engine->swept.link);
    if (!record)
        return;
    answer_record(record, -ECANCELED);
    end_record(record);
}
