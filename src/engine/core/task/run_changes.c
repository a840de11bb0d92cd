/* The snapshots before and after a run, and what lies between them: the turn waits for the first, the end of the task for
 * the second, both with a limit. A task that had no first one runs all the same and says why.
 *
 * Several tasks may work in the folder at once. Whenever one begins or ends a snapshot is taken, so for each of the others
 * there is one span in which it was alone and one in which it was not. What changed in the latter may be anybody's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "run.h"
#include "utf8.h"

#define WHY_THERE 500 /* bytes of what another machine says why its changes are not known */

static weft_snapshots *snapshots_of(const struct run *run) {
    return run->changes.of;
}

static void copy_tree(char to[WEFT_SNAPSHOT_HEX], const char *tree) {
    snprintf(to, WEFT_SNAPSHOT_HEX, "%s", tree);
}

static void name_snapshot(const struct run *run, const char *which, char ret[ENGINE_ID + 16]) {
    snprintf(ret, ENGINE_ID + 16, "%s.%s", run->task->id, which);
}

/* ---- others ---- */

/* In these files. */
static bool is_working(const struct run *run, const weft_snapshots *of) {
    return run && run->changes.step == CHANGES_WORKS && run->changes.of == of;
}

/* From the last snapshot up to this one others may have changed files. Too many such spans become one long one. */
static void end_span(run_changes *changes, const char *tree) {
    if (changes->shared && strcmp(changes->last, tree) != 0) {
        bool full = changes->span_count == RUN_SPANS;
        size_t i = full ? RUN_SPANS - 1 : changes->span_count++;
        if (!full)
            copy_tree(changes->spans[i][0], changes->last);
        copy_tree(changes->spans[i][1], tree);
    }
    copy_tree(changes->last, tree);
}

static void note_other(run_changes *changes, const char *id) {
    for (size_t i = 0; i < changes->other_count; i++)
        if (strcmp(changes->others[i], id) == 0)
            return;
    if (changes->other_count < RUN_OTHERS)
        snprintf(changes->others[changes->other_count++], ENGINE_ID, "%s", id);
}

/* Does anybody but these two work? */
static bool others_work(weft_engine *engine, const struct run *a, const struct run *b) {
    for (weft_link *link = engine->slots.next; link != &engine->slots; link = link->next) {
        const struct run *run = WEFT_CONTAINER(link, known_task, slot)->run;
        if (run != a && run != b && is_working(run, a->changes.of))
            return true;
    }
    return false;
}

/* This run begins or ends with this snapshot. */
static void tell_others(struct run *run, const char *tree, bool begins) {
    weft_engine *engine = run->engine;
    for (weft_link *link = engine->slots.next; link != &engine->slots; link = link->next) {
        struct run *other = WEFT_CONTAINER(link, known_task, slot)->run;
        if (other == run || !is_working(other, run->changes.of))
            continue;
        end_span(&other->changes, tree);
        other->changes.shared = begins || others_work(engine, other, run);
        note_other(&other->changes, run->task->id);
        note_other(&run->changes, other->task->id);
    }
}

void weft__run_changes_foreign(weft_engine *engine, const weft_snapshots *of, const char *from, const char *to) {
    for (weft_link *link = engine->slots.next; link != &engine->slots; link = link->next) {
        struct run *run = WEFT_CONTAINER(link, known_task, slot)->run;
        if (!is_working(run, of))
            continue;
        bool shared = run->changes.shared;
        end_span(&run->changes, from);
        run->changes.shared = true;
        end_span(&run->changes, to);
        run->changes.shared = shared;
    }
}

/* Those of a worktree are also kept with the project's, because the worktree goes and the task stays. */
static void keep_with_project(const struct run *run, const char *which, const char *tree) {
    weft_snapshots *project = run->engine->opts.snapshots;
    char name[ENGINE_ID + 16];
    name_snapshot(run, which, name);
    if (project != run->changes.of && weft__snapshots_adopt(project, name, tree) < 0)
        weft__note(run->engine, "%s: a snapshot is kept only as long as its worktree", run->task->id);
}

/* ---- before ---- */

/* beside: who works in the same files now. */
static void tell_before(struct run *run, const char *tree, const char *why) {
    weft_val beside[RUN_OTHERS];
    for (size_t i = 0; i < run->changes.other_count; i++)
        beside[i] = weft_str(run->changes.others[i]);
    weft__run_kept(
        run, weft__outbox_event(
                 run, true, "task.snapshot",
                 WEFT_OBJ({"taskId", weft_str(run->task->id)}, {"sessionId", weft_str(run->task->pub.session)},
                          {"before", weft_str_or_none(tree)}, {"why", weft_str_or_none(why)},
                          {"beside", run->changes.other_count ? weft_arr(beside, run->changes.other_count) : weft_none()})));
}

static void begin_work(struct run *run, const char *tree) {
    run->changes.step = CHANGES_WORKS;
    copy_tree(run->changes.before, tree);
    copy_tree(run->changes.last, tree);
    run->changes.shared = others_work(run->engine, run, NULL);
    tell_others(run, tree, true);
}

static void on_before(weft_snapshot_wait *wait, const weft_snapshot *snapshot) {
    struct run *run = WEFT_CONTAINER(wait, struct run, changes.wait);
    if (snapshot->r == 0) {
        keep_with_project(run, "before", snapshot->tree);
        begin_work(run, snapshot->tree);
    } else
        run->changes.step = CHANGES_SETTLED;
    tell_before(run, snapshot->r == 0 ? snapshot->tree : NULL, snapshot->r == 0 ? NULL : snapshot->message);
    weft__run_go_on(run);
}

/* A task that is tried again goes on from where it was first. */
bool weft__run_changes_begin(struct run *run) {
    const weft_task_changes *known = run->task->changes;
    char name[ENGINE_ID + 16];
    run->changes.step = CHANGES_SETTLED;
    run->changes.of = weft__task_snapshots(run->engine, run->task);
    if (!snapshots_of(run))
        return false;
    if (known && *known->before) {
        begin_work(run, known->before);
        return false;
    }
    name_snapshot(run, "before", name);
    run->changes.wait.on_taken = on_before;
    int r = weft__snapshots_take(snapshots_of(run), name, 0, &run->changes.wait);
    if (r < 0)
        tell_before(run, NULL, weft_strerror(r));
    else
        run->changes.step = CHANGES_BEFORE;
    return r >= 0;
}

bool weft__run_changes_stop(struct run *run) {
    if (run->changes.step != CHANGES_BEFORE)
        return false;
    weft__snapshot_cancel(&run->changes.wait);
    run->changes.step = CHANGES_SETTLED;
    return true;
}

void weft__run_changes_give_up(struct run *run) {
    if (run->changes.step == CHANGES_NONE || run->changes.step == CHANGES_COMPARES)
        return;
    weft__snapshot_cancel(&run->changes.wait);
    run->changes.step = CHANGES_SETTLED;
    weft__run_soon(run);
}

/* ---- after ---- */

static int write_texts(weft_buf *out, const weft_alloc *alloc, const char *texts, size_t size, size_t count) {
    int r = weft__buf_put(out, alloc, "[", 1);
    for (size_t i = 0; r == 0 && i < count; i++) {
        char item[WEFT_SNAPSHOT_HEX + 8];
        int n = snprintf(item, sizeof item, "%s\"%s\"", i ? "," : "", texts + i * size);
        r = weft__buf_put(out, alloc, item, (size_t) n);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

static weft_val raw_of(const weft_buf *buf, bool any) {
    return any ? weft_raw(weft__buf_head(buf), weft__buf_len(buf)) : weft_none();
}

static void settle(struct run *run, const weft_changed_list *list, const char *why) {
    static const weft_changed_list nothing = {0};
    run_changes *changes = &run->changes;
    const weft_alloc *alloc = run->engine->alloc;
    weft_buf spans = {0}, others = {0};
    const weft_changed_list *of = list ? list : &nothing;
    bool differ = of->count > 0;
    int r = write_texts(&spans, alloc, changes->spans[0][0], WEFT_SNAPSHOT_HEX, 2 * changes->span_count);
    if (r == 0)
        r = write_texts(&others, alloc, changes->others[0], ENGINE_ID, changes->other_count);
    if (r == 0)
        r = weft__outbox_event(
            run, true, "task.changed",
            WEFT_OBJ({"taskId", weft_str(run->task->id)}, {"sessionId", weft_str(run->task->pub.session)},
                     {"before", weft_str(changes->before)}, {"after", why ? weft_none() : weft_str(changes->after)},
                     {"files", weft_uint(of->count)}, {"added", weft_uint(of->of[WEFT_CHANGED_ADDED])},
                     {"modified", weft_uint(of->of[WEFT_CHANGED_MODIFIED] + of->of[WEFT_CHANGED_TYPE])},
                     {"deleted", weft_uint(of->of[WEFT_CHANGED_DELETED])},
                     {"renamed", weft_uint(of->of[WEFT_CHANGED_RENAMED])}, {"additions", weft_uint(of->additions)},
                     {"deletions", weft_uint(of->deletions)}, {"spans", raw_of(&spans, changes->span_count && differ)},
                     {"others", raw_of(&others, changes->span_count && differ)}, {"why", weft_str_or_none(why)}));
    weft__buf_done(&spans, alloc);
    weft__buf_done(&others, alloc);
    if (r < 0)
        weft__note(run->engine, "%s: out of memory, what it changed is not known", run->task->id);
    changes->step = CHANGES_SETTLED;
    weft__run_soon(run);
}

static void on_after_compared(void *ctx, const weft_compared *compared) {
    struct run *run = ctx;
    settle(run, compared->list, compared->r < 0 ? compared->message : NULL);
}

static void on_after(weft_snapshot_wait *wait, const weft_snapshot *snapshot) {
    struct run *run = WEFT_CONTAINER(wait, struct run, changes.wait);
    run_changes *changes = &run->changes;
    if (snapshot->r < 0) {
        settle(run, NULL, snapshot->message);
        return;
    }
    copy_tree(changes->after, snapshot->tree);
    keep_with_project(run, "after", snapshot->tree);
    end_span(changes, snapshot->tree);
    tell_others(run, snapshot->tree, false);
    changes->step = CHANGES_COMPARES;
    weft_comparison what = {.from = changes->before, .to = changes->after};
    bool same = strcmp(changes->before, changes->after) == 0;
    int r = same ? 0 : weft__snapshots_compare(snapshots_of(run), &what, on_after_compared, run);
    if (same || r < 0)
        settle(run, NULL, r < 0 ? weft_strerror(r) : NULL);
    if (same && *changes->before) /* nothing to look at later */
        (void) weft__snapshots_forget(snapshots_of(run), run->task->id);
    if (same && *changes->before && snapshots_of(run) != run->engine->opts.snapshots)
        (void) weft__snapshots_forget(run->engine->opts.snapshots, run->task->id);
}

bool weft__run_changes_end(struct run *run) {
    run_changes *changes = &run->changes;
    char name[ENGINE_ID + 16];
    if (changes->step != CHANGES_WORKS)
        return changes->step == CHANGES_SETTLED || changes->step == CHANGES_NONE;
    if (run->engine->force) { /* the next start does it */
        changes->step = CHANGES_SETTLED;
        return true;
    }
    name_snapshot(run, "after", name);
    changes->step = CHANGES_AFTER;
    changes->wait.on_taken = on_after;
    int r = weft__snapshots_take(snapshots_of(run), name, 0, &changes->wait);
    if (r < 0)
        settle(run, NULL, weft_strerror(r));
    return r < 0;
}

/* ---- on another machine ---- */

static weft_val count_in(const weft_json *counts, const char *name) {
    return weft_uint((uint64_t) weft__int_between(counts, name, 0, 0, INT64_MAX));
}

/* The snapshots are there: what they are called there says nothing here. */
void weft__run_changed_there(struct run *run, const weft_json *counts) {
    const weft_task *task = &run->task->pub;
    const char *at = strrchr(task->runs_on, '@'), *why = weft_get_str(counts, "why", NULL);
    weft_val reason = why ? weft_strn(why, weft__utf8_fit(why, strlen(why), WHY_THERE)) : weft_none();
    if (!at)
        return;
    weft__run_kept(
        run, weft__outbox_event(run, true, "task.changed",
                                WEFT_OBJ({"taskId", weft_str(task->id)}, {"sessionId", weft_str(task->session)},
                                         {"runner", weft_str(at + 1)}, {"files", count_in(counts, "files")},
                                         {"added", count_in(counts, "added")}, {"modified", count_in(counts, "modified")},
                                         {"deleted", count_in(counts, "deleted")}, {"renamed", count_in(counts, "renamed")},
                                         {"additions", count_in(counts, "additions")},
                                         {"deletions", count_in(counts, "deletions")}, {"why", reason})));
}
