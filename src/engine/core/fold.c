/* Which event changes what, and what follows from it: the one table through which the journal is read at the start and
 * everything that is delivered later. Applying changes what is known and nothing else; acting is for what happens now. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "engine_private.h"

#define SKIP_NOTES 20 /* lines in the log: enough to see what is wrong */

typedef struct fold {
    const char *type;
    int (*apply)(weft_engine *engine, const weft_event *event, const weft_json *data);
    void (*act)(weft_engine *engine, const weft_event *event, const weft_json *data); /* NULL: nothing */
    bool apart; /* it changes nothing that is saved with a task, a session or a question, or says itself what it changed */
} fold;

int weft__value_string(const weft_json *value, const char **ret) {
    weft_bytes text;
    *ret = weft_str_of(value, NULL);
    if (*ret || weft_typeof(value) != WEFT_STRING)
        return 0;
    /* One with a NUL in it, or no memory to decode it: only the second is a failure. */
    return weft_bytes_of(value, &text) >= 0 && memchr(text.data, '\0', text.len) ? 0 : -ENOMEM;
}

int weft__member(const weft_json *data, const char *name, const char **ret) {
    weft_json member = weft_get(data, name);
    return weft__value_string(&member, ret);
}

/* Ours are plain, and a plain string is read without memory. */
const char *weft__value_id(const weft_json *value, char ret[ENGINE_ID]) {
    weft_bytes text;
    if (weft_bytes_of(value, &text) < 0 || text.len >= ENGINE_ID)
        return NULL;
    memcpy(ret, text.data, text.len);
    ret[text.len] = '\0';
    return ret;
}

const char *weft__id(const weft_json *data, const char *name, char ret[ENGINE_ID]) {
    weft_json member = weft_get(data, name);
    return weft__value_id(&member, ret);
}

bool weft__value_says(const weft_json *value, const char *text) {
    weft_bytes is;
    return weft_bytes_of(value, &is) >= 0 && is.len == strlen(text) && memcmp(is.data, text, is.len) == 0;
}

bool weft__field_is(const weft_json *data, const char *name, const char *text) {
    weft_json member = weft_get(data, name);
    return weft__value_says(&member, text);
}

int64_t weft__value_between(const weft_json *value, int64_t fallback, int64_t low, int64_t high) {
    return weft__clamp(weft_int_of(value, fallback), low, high);
}

int64_t weft__int_between(const weft_json *data, const char *name, int64_t fallback, int64_t low, int64_t high) {
    weft_json member = weft_get(data, name);
    return weft__value_between(&member, fallback, low, high);
}

int weft__number(const weft_json *value, const char *id, void (*name)(char ret[ENGINE_ID], uint64_t number), uint64_t *ret) {
    char expected[ENGINE_ID];
    int64_t number = weft_int_of(value, -1);
    if (!id || number < 0 || (uint64_t) number >= ENGINE_NUMBERS)
        return -EBADMSG;
    name(expected, (uint64_t) number);
    const char *colon = strrchr(id, ':'); /* behind it: at a relay of several hubs, the hub's name stands before it */
    if (strcmp(expected, colon ? colon + 1 : id) != 0)
        return -EBADMSG;
    *ret = (uint64_t) number;
    return 0;
}

void weft__skip(weft_engine *engine, const weft_event *event) {
    if (++engine->skipped <= SKIP_NOTES)
        weft__note(engine, "event %" PRIu64 " of the journal (%.64s) cannot be read and is passed over%s", event->gseq,
                   event->type, engine->skipped == SKIP_NOTES ? "; further ones are counted, not listed" : "");
}

static void act_queue(weft_engine *engine, const weft_event *event, const weft_json *data) {
    (void) event;
    (void) data;
    weft__queue_run(engine);
}

static void act_started(weft_engine *engine, const weft_event *event, const weft_json *data) {
    (void) event;
    known_task *task = weft__task_of(engine, data);
    if (task && task->pub.state == WEFT_TASK_RUNNING && !task->run)
        weft__run_start(engine, task);
}

static void act_retrying(weft_engine *engine, const weft_event *event, const weft_json *data) {
    weft__runner_task_over(engine, weft__task_of(engine, data), event, data);
    act_queue(engine, event, data);
}

/* A question of a task that has ended is not open: also one that was left by an earlier run. At a start, start.c does it. */
static void act_ended(weft_engine *engine, const weft_event *event, const weft_json *data) {
    char id[ENGINE_ID];
    weft__runner_task_over(engine, weft__task_of(engine, data), event, data);
    if (engine->phase >= READY && weft__id(data, "taskId", id))
        weft__question_withdraw_all(engine, id);
    act_queue(engine, event, data);
}

static const fold folds[] = {
    {"session.output", weft__task_apply_output, NULL},
    {"session.update", weft__task_apply_output, NULL},
    {"session.created", weft__session_apply_created, NULL, .apart = true},
    {"session.agent", weft__session_apply_agent, NULL},
    {"session.state", weft__session_apply_state, NULL},
    {"session.set", weft__session_apply_set, weft__session_act_set},
    {"session.closed", weft__session_apply_closed, NULL},
    {"session.resumed", weft__session_apply_closed, NULL},
    {"session.deleted", weft__session_apply_deleted, NULL},
    {"worktree.made", weft__session_apply_worktree, NULL},
    {"worktree.merged", weft__worktree_apply_merged, NULL},
    {"worktree.discarded", weft__worktree_apply_removed, NULL},
    {"worktree.removed", weft__worktree_apply_removed, NULL},
    {"task.queued", weft__task_apply_queued, act_queue, .apart = true},
    {"task.started", weft__task_apply_started, act_started},
    {"runner.kept", weft__runner_apply_kept, NULL},
    {"runner.known", weft__runner_apply_known, NULL},
    {"task.process", weft__task_apply_process, NULL},
    {"task.snapshot", weft__task_apply_changes, NULL},
    {"task.changed", weft__task_apply_changes, NULL},
    {"task.undone", weft__task_apply_changes, NULL},
    {"task.seen", weft__task_apply_seen, NULL},
    {"task.retrying", weft__task_apply_retrying, act_retrying},
    {"task.completed", weft__task_apply_ended, act_ended},
    {"task.failed", weft__task_apply_ended, act_ended},
    {"task.cancelled", weft__task_apply_ended, act_ended},
    {"task.imported", weft__task_apply_imported, NULL},
    {"question.asked", weft__question_apply_asked, weft__question_act_asked},
    {"question.answered", weft__question_apply_over, weft__question_act_over},
    {"question.expired", weft__question_apply_over, weft__question_act_over},
    {"question.withdrawn", weft__question_apply_over, weft__question_act_over},
    {"question.orphaned", weft__question_apply_orphaned, NULL},
    {"question.adopted", weft__question_apply_adopted, weft__question_act_over},
    {"approval.given", weft__approval_apply_given, NULL},
    {"approval.revoked", weft__approval_apply_revoked, NULL},
    {"doc.put", weft__item_apply_put, NULL, .apart = true},
    {"doc.deleted", weft__item_apply_deleted, NULL, .apart = true},
    {"context.changed", weft__context_apply, NULL},
    {"request.begun", weft__request_apply, NULL},
    {"request.done", weft__request_apply, NULL},
    {"agent.chosen", weft__agent_apply_chosen, NULL},
    {"automation.switched", weft__retention_apply_switched, NULL},
    {"rule.fired", weft__firing_apply, NULL},
    {"hub.counted", weft__retention_apply_counted, NULL},
    {"hub.stopped", weft__retention_apply_stopped, NULL},
    {"hub.kept", weft__retention_apply_kept, NULL},
};

static const fold *find_fold(const char *type) {
    for (size_t i = 0; i < sizeof folds / sizeof folds[0]; i++)
        if (*folds[i].type == *type && strcmp(folds[i].type, type) == 0)
            return &folds[i];
    return NULL;
}

int weft__apply(weft_engine *engine, const weft_event *event, const weft_json *data) {
    const fold *row = find_fold(event->type);
    if (row && weft_typeof(data) != WEFT_OBJECT)
        return -EBADMSG;
    int r = row ? row->apply(engine, event, data) : 0;
    if (r >= 0)
        weft__saved_note(engine, event, row && row->apart ? NULL : data);
    return r;
}

static void on_copy_erased(void *ctx, int r) {
    weft_engine *engine = ctx;
    if (r < 0 && r != -ECANCELED)
        weft__note(engine, "what a deleted session said could not be erased: %s", weft_strerror(r));
}

/* The hub has taken out what was said in it; so does its copy. */
static void erase_copy(weft_engine *engine, const weft_json *data) {
    char id[ENGINE_ID];
    const char *session = weft__id(data, "sessionId", id);
    int r = session ? weft__session_erase(engine, session, on_copy_erased, engine) : 0;
    if (r < 0)
        on_copy_erased(engine, r);
}

void weft__act(weft_engine *engine, const weft_event *event, const weft_json *data) {
    const fold *row = engine->opts.copy ? NULL : find_fold(event->type);
    if (engine->opts.copy && strcmp(event->type, "session.deleted") == 0)
        erase_copy(engine, data);
    if (row && row->act)
        row->act(engine, event, data);
}
