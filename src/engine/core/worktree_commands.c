/* Merging, discarding, listing and cleaning up worktrees, as commands. What was done is in the journal before it is
 * answered; a merge or a removal that was interrupted is finished and recorded at the next start. */
#include "worktrees.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kept_event.h"
#include "run.h"
#include "utf8.h"
#include "write.h"

#define SUBJECT 72    /* bytes of a commit's first line */
#define LISTED 20     /* conflicts that the journal names */
#define MAX_BUSY 4096 /* names of worktrees in which something is to be done */

/* ---- what is known ---- */

static int set_merged(weft_engine *engine, known_task *task, const weft_json *data) {
    weft_json to = weft_get(data, "to");
    char text[WEFT_SNAPSHOT_HEX + 32];
    weft_bytes hex;
    weft_doc *doc = NULL;
    if (weft_bytes_of(&to, &hex) < 0 || (hex.len != 40 && hex.len != 64))
        return 0;
    for (size_t i = 0; i < hex.len; i++)
        if (!strchr("0123456789abcdef", hex.data[i]) || !hex.data[i])
            return 0;
    int n = snprintf(text, sizeof text, "{\"merged\":\"%.*s\"}", (int) hex.len, hex.data);
    int r = weft_doc_parse(text, (size_t) n, engine->alloc, &doc);
    if (r < 0)
        return r;
    r = weft__task_restore_changes(engine, task, weft_doc_root(doc));
    weft_doc_free(doc);
    weft__saved_changed(engine, &task->saved);
    return r;
}

/* All that the session had done by then is in the project. */
int weft__worktree_apply_merged(weft_engine *engine, const weft_event *event, const weft_json *data) {
    const known_task *named = weft__task_of(engine, data);
    int r = 0;
    (void) event;
    for (weft_link *link = engine->all_tasks.next; named && r >= 0 && link != &engine->all_tasks; link = link->next) {
        known_task *task = WEFT_CONTAINER(link, known_task, all);
        bool ended = task->pub.state >= WEFT_TASK_COMPLETED && task->changes;
        if (task == named || (ended && strcmp(task->pub.session, named->pub.session) == 0))
            r = set_merged(engine, task, data);
    }
    return r;
}

/* The next turn of its session gets a new one. */
int weft__worktree_apply_removed(weft_engine *engine, const weft_event *event, const weft_json *data) {
    char id[ENGINE_ID];
    (void) event;
    known_session *session = weft__id(data, "sessionId", id) ? weft__session_known(engine, id) : NULL;
    if (!session || !session->pub.worktree || !weft__field_is(data, "worktree", session->pub.worktree))
        return 0;
    return weft__session_clear_worktree(engine, session);
}

/* ---- who works where ---- */

static bool is_in_project(const known_task *task) {
    const known_session *session = weft__session_known(task->engine, task->pub.session);
    return !session || !session->pub.isolation;
}

size_t weft__task_beside(const weft_engine *engine, const char *id, const char **ret, size_t max) {
    const known_task *task = weft__task_known(engine, id);
    size_t count = 0;
    if (!task || task->pub.state >= WEFT_TASK_COMPLETED || !is_in_project(task))
        return 0;
    for (const weft_link *link = engine->slots.next; link != &engine->slots && count < max; link = link->next) {
        const known_task *other = WEFT_CONTAINER(link, known_task, slot);
        if (other != task && is_in_project(other))
            ret[count++] = other->id;
    }
    return count;
}

/* ---- which worktree ---- */

static const known_session *session_of_worktree(const weft_engine *engine, const char *name) {
    for (const weft_link *link = engine->all_sessions.next; link != &engine->all_sessions; link = link->next) {
        const known_session *session = WEFT_CONTAINER(link, known_session, link);
        if (session->pub.worktree && strcmp(session->pub.worktree, name) == 0)
            return session;
    }
    return NULL;
}

static bool is_at_work(const known_session *session) {
    return session->pub.turns || session->claims || session->opening;
}

const weft_session *weft__worktree_session(const weft_engine *engine, const char *name, bool *ret_busy) {
    const known_session *session = session_of_worktree(engine, name);
    *ret_busy = session && is_at_work(session);
    return session ? &session->pub : NULL;
}

/* The task's session, if it has a worktree in which nothing is done now. */
static int find_worktree(weft_engine *engine, const char *id, const known_task **ret_task, const known_session **ret) {
    const known_task *task = weft__task_known(engine, id);
    if (!task || !task->stored)
        return -ENOENT;
    if (!engine->opts.snapshots)
        return -EOPNOTSUPP;
    if (engine->phase != READY)
        return engine->phase < READY ? -EAGAIN : -ESHUTDOWN;
    const known_session *session = weft__session_known(engine, task->pub.session);
    if (!session || !session->pub.isolation)
        return -ENOTDIR;
    if (is_at_work(session))
        return -EBUSY;
    if (!session->pub.worktree)
        return -ENODATA;
    if (engine->undo || engine->merge)
        return -EAGAIN;
    *ret_task = task;
    *ret = session;
    return 0;
}

/* The prompt's first line, as a commit's. */
static void write_message(const known_task *task, const char *given, char *ret, size_t size) {
    const char *prompt = task->pub.prompt + strspn(task->pub.prompt, " \t\r\n");
    size_t len = strcspn(prompt, "\r\n"), to = 0;
    if (given && *given) {
        snprintf(ret, size, "%s", given);
        return;
    }
    for (size_t i = 0; i < len && to < SUBJECT;) {
        size_t n = (unsigned char) prompt[i] < 0x80 ? 1 : weft__utf8_len(prompt + i, len - i);
        bool plain = n == 1 && (unsigned char) prompt[i] >= ' ' && prompt[i] != 0x7f;
        if (to + n > SUBJECT)
            break;
        for (size_t k = 0; k < n && (n > 1 || plain); k++)
            ret[to++] = prompt[i + k];
        i += n ? n : 1;
    }
    snprintf(ret + to, size - to, "%s\n\nWeft-Task: %s\n", to ? "" : "What an agent did", task->id);
}

/* ---- a merge, or a discard: one at a time ---- */

/* asked ──▶ under way ──done──▶ to be recorded ──stored──▶ answered */
struct merge_record {
    kept_event event;
    weft_engine *engine;
    bool discard, force;
    char owner[ENGINE_ID], session[ENGINE_ID], by[256], name[64], branch[96], how[16], into[256];
    char from[WEFT_SNAPSHOT_HEX], to[WEFT_SNAPSHOT_HEX], tip[WEFT_SNAPSHOT_HEX];
    size_t files, left;
    bool committed;
    weft_merge_done *done; /* NULL: nobody waits */
    void *ctx;
};

static struct merge_record *new_merge(weft_engine *engine);

static void end_merge(struct merge_record *record) {
    weft_engine *engine = record->engine;
    weft__kept_event_done(&record->event);
    engine->merge = NULL;
    weft__free(engine->alloc, record);
}

static void answer_merge(const struct merge_record *record, int r) {
    weft_merge_result result = {
        .r = r,
        .message = r < 0 ? weft_strerror(r) : "",
        .committed = record->committed,
        .merged = {.owner = record->owner,
                   .by = record->by,
                   .name = record->name,
                   .branch = record->branch,
                   .how = record->how,
                   .into = record->into,
                   .from = record->from,
                   .to = record->to,
                   .tip = record->tip,
                   .files = record->files,
                   .left = record->left},
    };
    if (record->done)
        record->done(record->ctx, &result);
}

static void forget_merge(const struct merge_record *record) {
    weft_snapshots *of = record->engine->opts.snapshots;
    if (record->discard)
        (void) weft__worktree_forget(of, record->name);
    else
        weft__worktree_merge_recorded(of);
}

static void on_merge_recorded(kept_event *event, int r) {
    struct merge_record *record = WEFT_CONTAINER(event, struct merge_record, event);
    if (r == 0)
        forget_merge(record);
    answer_merge(record, r);
    end_merge(record);
}

static void add_merged(const kept_event *event, struct draft *draft) {
    const struct merge_record *record = WEFT_CONTAINER(event, struct merge_record, event);
    if (record->discard)
        weft__draft_add(draft, WEFT_STREAM_HUB, "worktree.discarded",
                        WEFT_OBJ({"taskId", weft_str(record->owner)}, {"sessionId", weft__text_or_none(record->session)},
                                 {"by", weft__text_or_none(record->by)}, {"worktree", weft_str(record->name)},
                                 {"branch", weft_str(record->branch)}, {"tip", weft__text_or_none(record->tip)}));
    else
        weft__draft_add(draft, WEFT_STREAM_HUB, "worktree.merged",
                        WEFT_OBJ({"taskId", weft_str(record->owner)}, {"sessionId", weft__text_or_none(record->session)},
                                 {"by", weft__text_or_none(record->by)}, {"worktree", weft_str(record->name)},
                                 {"branch", weft_str(record->branch)}, {"strategy", weft_str(record->how)},
                                 {"into", weft_str(record->into)}, {"from", weft_str(record->from)},
                                 {"to", weft_str(record->to)}, {"tip", weft_str(record->tip)},
                                 {"files", weft_uint(record->files)},
                                 {"left", record->left ? weft_uint(record->left) : weft_none()}));
}

static void fill_merge(struct merge_record *record, const weft_merged *merged) {
    const known_task *task = weft__task_known(record->engine, merged->owner);
    snprintf(record->owner, sizeof record->owner, "%s", merged->owner);
    snprintf(record->session, sizeof record->session, "%s", task ? task->pub.session : "");
    snprintf(record->by, sizeof record->by, "%s", merged->by ? merged->by : "");
    snprintf(record->name, sizeof record->name, "%s", merged->name);
    snprintf(record->branch, sizeof record->branch, "%s", merged->branch);
    snprintf(record->how, sizeof record->how, "%s", merged->how);
    snprintf(record->into, sizeof record->into, "%s", merged->into);
    snprintf(record->from, sizeof record->from, "%s", merged->from);
    snprintf(record->to, sizeof record->to, "%s", merged->to);
    snprintf(record->tip, sizeof record->tip, "%s", merged->tip);
    record->files = merged->files;
    record->left = merged->left;
}

/* That it could not be merged is worth knowing for whoever looks at the task; nothing depends on it. */
static void tell_conflicts(const struct merge_record *record, const weft_merge_result *result) {
    weft_val paths[LISTED];
    size_t count = result->listed < LISTED ? result->listed : LISTED;
    for (size_t i = 0; i < count; i++)
        paths[i] = weft_str(result->conflicts[i].path);
    (void) weft__engine_append(
        record->engine, WEFT_STREAM_HUB, "worktree.conflicted",
        WEFT_OBJ({"taskId", weft_str(record->owner)}, {"sessionId", weft__text_or_none(record->session)},
                 {"by", weft__text_or_none(record->by)}, {"worktree", weft_str(record->name)},
                 {"branch", weft_str(record->branch)}, {"into", weft__text_or_none(result->merged.into)},
                 {"paths", weft_arr(paths, count)}, {"count", weft_uint(result->conflict_count)}),
        NULL, NULL);
}

static void on_merge(void *ctx, const weft_merge_result *result) {
    struct merge_record *record = ctx;
    fill_merge(record, &result->merged);
    record->committed = result->committed;
    if (result->r == 0 && !result->conflict_count) {
        weft__run_changes_foreign(record->engine, record->engine->opts.snapshots, result->merged.before,
                                  result->merged.after);
        record->event.due = true;
        weft__kept_event_send(&record->event);
        return;
    }
    if (result->r == 0 && result->in_worktree)
        tell_conflicts(record, result);
    record->done(record->ctx, result);
    end_merge(record);
}

static struct merge_record *new_merge(weft_engine *engine) {
    struct merge_record *record = weft__zalloc(engine->alloc, sizeof *record);
    if (!record)
        return NULL;
    record->engine = engine;
    weft__kept_event_init(&record->event, engine, add_merged, on_merge_recorded);
    return engine->merge = record;
}

int weft__task_merge(weft_engine *engine, const char *id, const weft_merge_order *order, weft_merge_done *done, void *ctx) {
    const known_task *task = NULL;
    const known_session *session = NULL;
    char message[WEFT_WORKTREE_MESSAGE + 1];
    int r = find_worktree(engine, id, &task, &session);
    struct merge_record *record = r < 0 ? NULL : new_merge(engine);
    if (!record)
        return r < 0 ? r : -ENOMEM;
    record->done = done;
    record->ctx = ctx;
    write_message(task, order->message, message, sizeof message);
    weft_merge merge = {.owner = task->id,
                        .by = order->by,
                        .name = session->pub.worktree,
                        .branch = session->pub.branch,
                        .how = order->how,
                        .message = message};
    r = weft__worktree_merge(engine->opts.snapshots, &merge, on_merge, record);
    if (r < 0)
        end_merge(record);
    return r == -ENOENT ? -ENODATA : r;
}

/* It may have been recorded before the daemon ended. */
static void send_merged_again(weft_engine *engine) {
    struct merge_record *record = engine->merge;
    if (!record || !record->event.due || record->done)
        return;
    const known_task *task = weft__task_known(engine, record->owner);
    if (task && !(task->changes && strcmp(task->changes->merged, record->to) == 0)) {
        snprintf(record->session, sizeof record->session, "%s", task->pub.session);
        weft__kept_event_send(&record->event);
        return;
    }
    forget_merge(record);
    end_merge(record);
}

void weft__task_merged(weft_engine *engine, const weft_merged *merged) {
    if (engine->merge || !new_merge(engine))
        return;
    fill_merge(engine->merge, merged);
    engine->merge->event.due = true;
    if (engine->phase >= READY)
        send_merged_again(engine);
}

/* ---- discarding ---- */

static void fail_discard(struct merge_record *record, int r, const char *message) {
    weft_merge_result result = {.r = r, .message = message};
    record->done(record->ctx, &result);
    end_merge(record);
}

static void on_discarded(void *ctx, const weft_worktree_list *list) {
    struct merge_record *record = ctx;
    const weft_worktree_info *info = list->count == 1 ? list->list[0] : NULL;
    record->engine->pruning--;
    if (list->r < 0 || !info || !info->removed) {
        fail_discard(record, list->r < 0 ? list->r : -EREMOTEIO,
                     list->r < 0             ? list->message
                     : info && info->why_not ? info->why_not
                                             : "the worktree is not there");
        return;
    }
    record->event.due = true;
    weft__kept_event_send(&record->event);
}

static void start_removal(struct merge_record *record) {
    weft_engine *engine = record->engine;
    weft_prune prune = {.name = record->name, .tip = *record->tip ? record->tip : NULL, .force = true};
    weft__pool_close(engine, record->session);
    int r = weft__worktree_prune(engine->opts.snapshots, &prune, on_discarded, record);
    if (r < 0)
        fail_discard(record, r, weft_strerror(r));
    else
        engine->pruning++;
}

/* What cannot be committed is lost, if that is wanted. */
static void on_committed(void *ctx, const weft_merge_result *result) {
    struct merge_record *record = ctx;
    bool kept = result->r == 0 && !result->conflict_count;
    if (kept)
        snprintf(record->tip, sizeof record->tip, "%s", result->merged.tip);
    record->committed = result->committed;
    if (kept || record->force)
        start_removal(record);
    else
        fail_discard(record, result->r < 0 ? result->r : -EREMOTEIO,
                     result->r < 0 ? result->message : "a merge is not finished in the worktree");
}

int weft__task_discard(weft_engine *engine, const char *id, const weft_discard_order *order, weft_merge_done *done,
                       void *ctx) {
    const known_task *task = NULL;
    const known_session *session = NULL;
    char message[WEFT_WORKTREE_MESSAGE + 1];
    int r = find_worktree(engine, id, &task, &session);
    struct merge_record *record = r < 0 ? NULL : new_merge(engine);
    if (!record)
        return r < 0 ? r : -ENOMEM;
    record->done = done;
    record->ctx = ctx;
    record->discard = true;
    record->force = order->force;
    snprintf(record->owner, sizeof record->owner, "%s", task->id);
    snprintf(record->session, sizeof record->session, "%s", task->pub.session);
    snprintf(record->by, sizeof record->by, "%s", order->by ? order->by : "");
    snprintf(record->name, sizeof record->name, "%s", session->pub.worktree);
    snprintf(record->branch, sizeof record->branch, "%s", session->pub.branch);
    write_message(task, NULL, message, sizeof message);
    weft_merge merge = {.owner = record->owner, .name = record->name, .branch = record->branch, .message = message};
    r = weft__worktree_commit(engine->opts.snapshots, &merge, on_committed, record);
    if (r < 0)
        end_merge(record);
    return r == -ENOENT ? -ENODATA : r;
}

/* ---- listing and cleaning up ---- */

typedef struct prune_call {
    weft_engine *engine;
    weft_link link;
    char by[256];
    weft_worktree_listed *done;
    void *ctx;
} prune_call;

typedef struct removal {
    weft_engine *engine;
    char name[64];
} removal;

/* Not stored: it is told again at the next start. */
static void on_removal_stored(void *ctx, int r) {
    removal *over = ctx;
    weft_engine *engine = over->engine;
    if (r >= 0 && engine->phase != GONE)
        (void) weft__worktree_forget(engine->opts.snapshots, over->name);
    weft__free(engine->alloc, over);
}

static void tell_removed(weft_engine *engine, const weft_worktree_info *info, const char *by) {
    const known_session *session = session_of_worktree(engine, info->name);
    struct draft draft = {.engine = engine};
    removal *over = weft__zalloc(engine->alloc, sizeof *over);
    if (!over)
        return;
    over->engine = engine;
    snprintf(over->name, sizeof over->name, "%s", info->name);
    if (session)
        weft__pool_close(engine, session->pub.id);
    weft__draft_add(&draft, WEFT_STREAM_HUB, "worktree.removed",
                    WEFT_OBJ({"sessionId", session ? weft_str(session->pub.id) : weft_none()},
                             {"by", weft__text_or_none(by)}, {"worktree", weft_str(info->name)},
                             {"branch", weft_str(info->branch)}, {"bytes", weft_uint(info->bytes)}));
    if (weft__draft_send(&draft, NULL, on_removal_stored, over) < 0)
        weft__free(engine->alloc, over);
}

static void on_pruned(void *ctx, const weft_worktree_list *list) {
    prune_call *call = ctx;
    weft_engine *engine = call->engine;
    engine->pruning--;
    for (size_t i = 0; i < list->count && engine->phase == READY; i++)
        if (list->list[i]->removed)
            tell_removed(engine, list->list[i], call->by);
    if (call->done)
        call->done(call->ctx, list);
    weft__list_remove(&call->link);
    weft__free(engine->alloc, call);
}

static size_t find_busy(const weft_engine *engine, const char **ret) {
    size_t count = 0;
    for (const weft_link *link = engine->all_sessions.next; link != &engine->all_sessions && count < MAX_BUSY;
         link = link->next) {
        const known_session *session = WEFT_CONTAINER(link, known_session, link);
        if (session->pub.worktree && is_at_work(session))
            ret[count++] = session->pub.worktree;
    }
    if (engine->merge && count < MAX_BUSY)
        ret[count++] = engine->merge->name;
    ret[count] = NULL;
    return count;
}

static int start_prune(weft_engine *engine, weft_prune *prune, const char *by, weft_worktree_listed *done, void *ctx) {
    prune_call *call = weft__zalloc(engine->alloc, sizeof *call);
    const char **busy = weft__zalloc(engine->alloc, (MAX_BUSY + 1) * sizeof *busy);
    int r = call && busy ? 0 : -ENOMEM;
    if (r == 0) {
        *call = (prune_call){.engine = engine, .done = done, .ctx = ctx};
        snprintf(call->by, sizeof call->by, "%s", by ? by : "");
        weft__list_push(&engine->prunes, &call->link);
        if (find_busy(engine, busy) == MAX_BUSY)
            r = -EAGAIN;
        prune->busy = busy;
    }
    if (r == 0)
        r = weft__worktree_prune(engine->opts.snapshots, prune, on_pruned, call);
    if (r == 0)
        engine->pruning++;
    weft__free(engine->alloc, busy);
    if (r < 0 && call) {
        if (call->link.next)
            weft__list_remove(&call->link);
        weft__free(engine->alloc, call);
    }
    return r;
}

static int check_worktrees(const weft_engine *engine) {
    if (!engine->opts.snapshots)
        return -EOPNOTSUPP;
    if (engine->phase != READY)
        return engine->phase < READY ? -EAGAIN : -ESHUTDOWN;
    return weft__engine_past(engine); /* whose they are must be known */
}

int weft__worktrees_list(weft_engine *engine, weft_worktree_listed *done, void *ctx) {
    int r = check_worktrees(engine);
    return r < 0 ? r : weft__worktree_list(engine->opts.snapshots, done, ctx);
}

int weft__worktrees_prune(weft_engine *engine, const weft_prune_order *order, weft_worktree_listed *done, void *ctx) {
    weft_prune prune = {.name = order->name, .dry = order->dry};
    int r = check_worktrees(engine);
    return r < 0 ? r : start_prune(engine, &prune, order->by, done, ctx);
}

/* ---- at a start, and at the end ---- */

void weft__worktrees_started(weft_engine *engine) {
    send_merged_again(engine);
}

void weft__worktrees_sweep(weft_engine *engine) {
    weft_prune prune = {.rest = true};
    (void) start_prune(engine, &prune, NULL, NULL, NULL);
}

void weft__worktrees_drop(weft_engine *engine) {
    while (!weft__list_empty(&engine->prunes)) {
        prune_call *call = WEFT_CONTAINER(engine->prunes.next, prune_call, link);
        weft__list_remove(&call->link);
        weft__free(engine->alloc, call);
    }
    if (!engine->merge)
        return;
    answer_merge(engine->merge, -ECANCELED);
    end_merge(engine->merge);
}
