/* What is known of tasks: those that wait and run, and as many of those that have ended as the limits allow.
 *
 *     queued ──task.started──▶ running ──task.completed, .failed, .cancelled──▶ ended
 *     queued ──task.cancelled──▶ ended        running ──task.retrying──▶ queued */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine_private.h"
#include "pack.h"
#include "utf8.h"

/* Of prompts and ends of output of tasks that have ended: what 10,000 usual ones need several times over. */
#define ENDED_BYTES ((size_t) 128 << 20)
#define SAID_BYTES 4096         /* of what is kept until it is saved: longer ones are few */
#define MAX_ATTEMPTS 1000000000 /* of one task, as the journal may say: one more can still be counted */

const char *const weft__task_states[WEFT_TASK_STATES] = {"queued", "running", "completed", "failed", "cancelled"};

static bool is_over(const known_task *task) {
    return task->pub.state >= WEFT_TASK_COMPLETED;
}

known_task *weft__task_known(const weft_engine *engine, const char *id) {
    weft_node *node = id ? weft__map_find(&engine->tasks, id) : NULL;
    return node ? WEFT_CONTAINER(node, known_task, node) : NULL;
}

known_task *weft__task_of(const weft_engine *engine, const weft_json *data) {
    char id[ENGINE_ID];
    known_task *task = weft__task_known(engine, weft__id(data, "taskId", id));
    return task && task->stored ? task : NULL;
}

void weft__name_numbered(char ret[ENGINE_ID], const char *kind, uint64_t number) {
    char digits[20], *at = digits + sizeof digits;
    size_t len = strlen(kind);
    do
        *--at = (char) ('0' + number % 10);
    while (number /= 10);
    while (at > digits + sizeof digits - 4)
        *--at = '0';
    memcpy(ret, kind, len);
    memcpy(ret + len, at, (size_t) (digits + sizeof digits - at));
    ret[len + (size_t) (digits + sizeof digits - at)] = '\0';
}

void weft__task_id(char ret[ENGINE_ID], uint64_t number) {
    weft__name_numbered(ret, "task-", number);
}

/* ---- life ---- */

static void fill_task(known_task *task, const task_parts *parts) {
    char *at = task->text;
    task->pub = (weft_task){
        .id = task->id,
        .number = parts->number,
        .prompt = weft__pack(&at, parts->prompt),
        .agent = weft__pack(&at, parts->agent),
        .runs_on = weft__pack(&at, parts->runs_on),
        .session = weft__pack(&at, parts->session),
        .metadata = weft__pack(&at, parts->metadata),
        .key = weft__pack(&at, parts->key),
        .traceparent = weft__pack(&at, parts->traceparent),
        .tracestate = weft__pack(&at, parts->tracestate),
        .priority = parts->priority,
        .timeout_ms = parts->timeout_ms,
        .retries = parts->retries,
        .depth = parts->depth,
        .permission = parts->permission,
        .role = weft__pack(&at, parts->role),
        .task_type = weft__pack(&at, parts->task_type),
        .runner = weft__pack(&at, parts->runner),
        .label = weft__pack(&at, parts->label),
        .quiet_ms = parts->quiet_ms,
        .exit_code = -1,
        .tail = {"", 0},
    };
    task->group = weft__pack(&at, parts->group);
    memcpy(task->id, parts->id, strnlen(parts->id, sizeof task->id - 1)); /* the rest is zeroes */
}

int weft__task_new(weft_engine *engine, const task_parts *parts, known_task **ret) {
    size_t text = weft__pack_size(parts->prompt) + weft__pack_size(parts->agent) + weft__pack_size(parts->runs_on) +
                  weft__pack_size(parts->session) + weft__pack_size(parts->metadata) + weft__pack_size(parts->key) +
                  weft__pack_size(parts->group) + weft__pack_size(parts->role) + weft__pack_size(parts->task_type) +
                  weft__pack_size(parts->traceparent) + weft__pack_size(parts->tracestate) + weft__pack_size(parts->runner) +
                  weft__pack_size(parts->label);
    known_task *task = weft__zalloc(engine->alloc, sizeof *task + text);
    if (!task)
        return -ENOMEM;
    fill_task(task, parts);
    task->engine = engine;
    task->bytes = sizeof *task + text;
    weft__list_init(&task->all);
    weft__list_init(&task->place);
    weft__list_init(&task->slot);
    weft__list_init(&task->group_at);
    weft__list_init(&task->turn);
    weft__list_init(&task->waiters);
    weft__list_init(&task->repeats);
    weft__saved_init(&task->saved, SAVED_TASK);
    weft__map_put(&engine->tasks, &task->node, task->id);
    if (task->pub.key && !weft__map_find(&engine->keys, task->pub.key))
        weft__map_put(&engine->keys, &task->key_node, task->pub.key);
    *ret = task;
    return 0;
}

known_task *weft__task_drop(weft_engine *engine, known_task *task) {
    if (!task)
        return NULL;
    assert(!task->run && weft__list_empty(&task->waiters) && weft__list_empty(&task->repeats));
    weft__saved_forget(engine, &task->saved, task->id);
    weft__past_leave(engine, &task->all);
    weft__list_remove(&task->all);
    weft__list_remove(&task->place);
    weft__list_remove(&task->slot);
    weft__list_remove(&task->group_at);
    weft__session_leave(task);
    weft__map_remove(&engine->tasks, &task->node);
    weft__map_remove(&engine->keys, &task->key_node);
    weft__free(engine->alloc, task->tail);
    weft__free(engine->alloc, task->ended);
    weft__free(engine->alloc, task->by);
    weft__free(engine->alloc, task->holder);
    weft__task_forget_said(task);
    weft__task_forget_changes(engine, task);
    return weft__free(engine->alloc, task);
}

void weft__task_tidy(weft_engine *engine) {
    /* The one that ended last stays whatever its size. */
    while ((engine->ended_count > engine->limits.max_tasks || engine->ended_bytes > ENDED_BYTES) &&
           engine->ended_count > 1) {
        weft_link *link = engine->ended.next;
        known_task *task = WEFT_CONTAINER(link, known_task, place);
        if (task->run || !weft__list_empty(&task->waiters))
            return;
        engine->ended_count--;
        engine->ended_bytes -= task->bytes;
        weft__task_drop(engine, task);
    }
}

/* ---- queued ---- */

/* The members of task.queued, and of a task in its document: where each is among those that were read, its name, and what is
 * written. "alone" is an earlier version's, and only read. */
/* clang-format off */
#define TASK_QUEUED(ROW)                                                                     \
    ROW(TASK_ID, "taskId", weft_str(pub->id))                                                \
    ROW(NUMBER, "number", weft_uint(pub->number))                                            \
    ROW(PROMPT, "prompt", weft_str(pub->prompt))                                             \
    ROW(AGENT, "agent", weft_str(pub->agent))                                                \
    ROW(RUNS_ON, "runsOn", weft_str(pub->runs_on))                                           \
    ROW(PRIORITY, "priority", weft_int(pub->priority))                                       \
    ROW(SESSION_ID, "sessionId", weft_str(pub->session))                                     \
    ROW(METADATA, "metadata", weft_raw(pub->metadata, strlen(pub->metadata)))                \
    ROW(TIMEOUT_MS, "timeoutMs", weft_int(pub->timeout_ms))                                  \
    ROW(RETRIES, "retries", weft_int(pub->retries))                                          \
    ROW(DEPTH, "depth", weft_int(pub->depth))                                                \
    ROW(KEY, "key", weft_str_or_none(pub->key))                                              \
    ROW(GROUP, "group", weft_str_or_none(task->group))                                       \
    ROW(PERMISSION, "permission", weft_str_or_none(weft__task_permissions[pub->permission])) \
    ROW(ROLE, "role", weft_str_or_none(pub->role))                                           \
    ROW(TASK_TYPE, "taskType", weft_str_or_none(pub->task_type))                             \
    ROW(QUIET_MS, "quietMs", pub->quiet_ms ? weft_int(pub->quiet_ms) : weft_none())          \
    ROW(RUNNER, "runner", weft_str_or_none(pub->runner))                                     \
    ROW(LABEL, "label", weft_str_or_none(pub->label))                                        \
    ROW(TRACEPARENT, "traceparent", weft_str_or_none(pub->traceparent))                      \
    ROW(TRACESTATE, "tracestate", weft_str_or_none(pub->tracestate))                         \
    ROW(ALONE, "alone", weft_none())
/* clang-format on */
#define PLACE_OF(place, name, value) place,
#define NAME_OF(place, name, value) [place] = name,
#define MEMBER_OF(place, name, value) {name, value},

enum { TASK_QUEUED(PLACE_OF) TASK_MEMBERS };
static const char *const task_members[] = {TASK_QUEUED(NAME_OF)};
static_assert(TASK_MEMBERS <= TASK_DATA, "a task's data has room for all of its members");

weft_val weft__task_data(const known_task *task, weft_member members[TASK_DATA]) {
    const weft_task *pub = &task->pub;
    const weft_member all[] = {TASK_QUEUED(MEMBER_OF)};
    memcpy(members, all, sizeof all);
    return weft_obj(members, TASK_MEMBERS);
}

static int read_parts(const weft_json *of, task_parts *ret) {
    const struct {
        int member;
        const char **to;
    } strings[] = {
        {TASK_ID, &ret->id},
        {PROMPT, &ret->prompt},
        {AGENT, &ret->agent},
        {RUNS_ON, &ret->runs_on},
        {SESSION_ID, &ret->session},
        {KEY, &ret->key},
        {GROUP, &ret->group},
        {ROLE, &ret->role},
        {TASK_TYPE, &ret->task_type},
        {RUNNER, &ret->runner},
        {LABEL, &ret->label},
        {TRACEPARENT, &ret->traceparent},
        {TRACESTATE, &ret->tracestate},
    };
    *ret = (task_parts){0};
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        if (weft__value_string(&of[strings[i].member], strings[i].to) < 0)
            return -ENOMEM;
    ret->priority = weft_int_of(&of[PRIORITY], 0);
    ret->timeout_ms = weft__value_between(&of[TIMEOUT_MS], -1, -1, INT64_MAX);
    ret->retries = weft__value_between(&of[RETRIES], 0, 0, MAX_ATTEMPTS);
    ret->depth = weft__value_between(&of[DEPTH], 0, 0, MAX_ATTEMPTS);
    for (int i = WEFT_TASK_MAY_ALL; i > WEFT_TASK_AS_CONFIGURED; i--)
        if (weft__value_says(&of[PERMISSION], weft__task_permissions[i]))
            ret->permission = (weft_task_permission) i;
    ret->quiet_ms = weft__value_between(&of[QUIET_MS], 0, 0, INT64_MAX);
    if (!ret->group && weft_bool_of(&of[ALONE], false))
        ret->group = "agent/run";
    ret->prompt = ret->prompt ? ret->prompt : "";
    ret->runs_on = ret->runs_on ? ret->runs_on : "";
    /* It becomes the name of a stream. */
    if (!ret->session || !*ret->session || strlen(ret->session) >= ENGINE_ID)
        return -EBADMSG;
    return weft__number(&of[NUMBER], ret->id, weft__task_id, &ret->number);
}

/* Nearly every task has none. */
static int copy_metadata(weft_engine *engine, const weft_json *metadata, char **ret_copy, const char **ret) {
    *ret = "{}";
    if (weft_typeof(metadata) != WEFT_OBJECT || (metadata->len == 2 && memcmp(metadata->text, "{}", 2) == 0))
        return 0;
    *ret = *ret_copy = weft__strndup(engine->alloc, metadata->text, metadata->len);
    return *ret ? 0 : -ENOMEM;
}

/* of: its members, by task_members. */
static int task_from(weft_engine *engine, const weft_json *of, known_task **ret) {
    task_parts parts;
    char *copy = NULL;
    int r = read_parts(of, &parts);
    if (r >= 0)
        r = copy_metadata(engine, &of[METADATA], &copy, &parts.metadata);
    if (r >= 0)
        r = weft__task_new(engine, &parts, ret);
    weft__free(engine->alloc, copy);
    return r;
}

/* Its session may have been forgotten, or trimmed away; a task that waits or runs always has one. */
static int need_session(weft_engine *engine, const known_task *task, int64_t now) {
    known_session *session = weft__session_known(engine, task->pub.session);
    if (session && session->stored)
        return 0;
    int r = session ? 0 : weft__session_new(engine, task->pub.session, task->pub.runs_on, &session);
    if (r >= 0)
        weft__session_stored(engine, session, now);
    return r;
}

static void join_session(weft_engine *engine, known_task *task, int64_t now) {
    known_session *session = weft__session_known(engine, task->pub.session);
    if (!session)
        return;
    weft__session_join(session, task);
    session->pub.tasks++;
    session->pub.updated_ms = now;
    memcpy(session->task, task->id, sizeof session->task);
    session->pub.task = session->task;
    weft__saved_changed(engine, &session->saved);
}

/* Its document begins with what the event says. One of ours says it word for word, and is kept until the document is
 * written: that is a good part of the work for a task that only waits. */
static void keep_said(weft_engine *engine, known_task *task, const weft_event *event) {
    if (task->submitted && event->data.len <= SAID_BYTES)
        task->said = weft__strndup(engine->alloc, event->data.data, event->data.len);
}

void weft__task_forget_said(known_task *task) {
    task->said = weft__free(task->engine->alloc, task->said);
}

/* 1: it is this text; 0: another; -ENOMEM: it cannot be decoded now. */
static int compare_text(const weft_json *value, const char *text) {
    weft_bytes is;
    int r = weft_bytes_of(value, &is);
    return r < 0 ? (r == -ENOMEM ? r : 0) : is.len == strlen(text) && memcmp(is.data, text, is.len) == 0;
}

/* Is what we are about to store what this event says? 1 yes, 0 no, -ENOMEM. */
static int is_task_as_said(const known_task *task, const weft_json *of) {
    const weft_task *pub = &task->pub;
    const weft_json *metadata = &of[METADATA];
    int r = strlen(pub->metadata) == metadata->len && memcmp(pub->metadata, metadata->text, metadata->len) == 0;
    if (r > 0)
        r = compare_text(&of[PROMPT], pub->prompt);
    if (r > 0)
        r = compare_text(&of[RUNS_ON], pub->runs_on);
    if (r > 0)
        r = compare_text(&of[SESSION_ID], pub->session);
    return r > 0 && pub->key ? compare_text(&of[KEY], pub->key) : r;
}

int weft__task_apply_queued(weft_engine *engine, const weft_event *event, const weft_json *data) {
    char id[ENGINE_ID];
    weft_json of[TASK_MEMBERS];
    weft__get_all(data, task_members, TASK_MEMBERS, of);
    known_task *task = weft__task_known(engine, weft__value_id(&of[TASK_ID], id));
    if (task && task->stored)
        return 0;
    int said = task ? is_task_as_said(task, of) : 1;
    if (said < 0)
        return said;
    if (!said) {
        /* Another writer was quicker with this number: ours will be refused. */
        weft__map_remove(&engine->tasks, &task->node);
        task = NULL;
    }
    int r = task ? 0 : task_from(engine, of, &task);
    if (r >= 0 && task)
        r = need_session(engine, task, event->time_ms);
    if (r < 0 || !task) {
        /* One that is being stored stays: the event comes again. */
        if (task && weft__list_empty(&task->slot) && !task->submitted)
            weft__task_drop(engine, task);
        return r;
    }
    task->stored = true;
    task->pub.created_ms = event->time_ms;
    task->pub.gseq = event->gseq;
    weft__list_push(&engine->all_tasks, &task->all);
    weft__queue_put(engine, task);
    engine->counts.of[WEFT_TASK_QUEUED]++;
    if (task->pub.number >= engine->next_task)
        engine->next_task = task->pub.number + 1;
    /* The session is saved first, so that it is read back before its task. */
    join_session(engine, task, event->time_ms);
    weft__saved_changed(engine, &task->saved);
    keep_said(engine, task, event);
    return 0;
}

/* ---- running ---- */

static void leave_queue(weft_engine *engine, known_task *task) {
    weft__list_remove(&task->place);
    engine->queue_count--;
    engine->counts.of[WEFT_TASK_QUEUED]--;
}

static void leave_slot(weft_engine *engine, known_task *task) {
    weft__list_remove(&task->slot);
    engine->counts.of[WEFT_TASK_RUNNING]--;
    task->pub.pid = 0;
    task->pub.stopping = false;
}

/* An attempt begins with nothing said: what the one before it said is in the session's stream. */
static void forget_output(known_task *task) {
    task->tail_len = 0;
    task->pub.tail = (weft_bytes){"", 0};
    task->pub.output_bytes = 0;
    task->output_from = task->output_to = 0;
    task->pub.output_cut = false;
}

int weft__task_give(weft_engine *engine, known_task *task, const char *agent) {
    if (strcmp(task->pub.runs_on, agent) == 0)
        return 0;
    char *copy = weft__strndup(engine->alloc, agent, strlen(agent));
    if (!copy)
        return -ENOMEM;
    weft__free(engine->alloc, task->holder);
    weft__task_forget_said(task); /* it said another one */
    task->pub.runs_on = task->holder = copy;
    return 0;
}

/* Of a role it runs on whichever holder was free, and so does its session. */
static int take_holder(weft_engine *engine, known_task *task, const weft_json *data) {
    const char *agent;
    if (weft__member(data, "agent", &agent) < 0)
        return -ENOMEM;
    if ((!task->pub.role && !weft__task_is_lent(task)) || !agent || !*agent)
        return 0;
    int r = weft__task_give(engine, task, agent);
    return r >= 0 && task->session ? weft__session_move(engine, task->session, agent) : r;
}

int weft__task_apply_started(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_task *task = weft__task_of(engine, data);
    if (!task || task->pub.state != WEFT_TASK_QUEUED)
        return 0;
    if (take_holder(engine, task, data) < 0)
        return -ENOMEM;
    leave_queue(engine, task);
    if (weft__list_empty(&task->slot))
        weft__list_push(&engine->slots, &task->slot);
    task->pub.state = WEFT_TASK_RUNNING;
    engine->counts.of[WEFT_TASK_RUNNING]++;
    task->pub.attempt = weft__int_between(data, "attempt", task->pub.attempt + 1, 0, MAX_ATTEMPTS);
    task->pub.started_ms = event->time_ms;
    task->lease = event->gseq;
    task->lease_at = 0;
    forget_output(task);
    return 0;
}

int weft__task_apply_process(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_task *task = weft__task_of(engine, data);
    (void) event;
    if (task && task->pub.state == WEFT_TASK_RUNNING)
        task->pub.pid = (pid_t) weft__int_between(data, "pid", 0, 0, INT_MAX);
    return 0;
}

int weft__task_apply_seen(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_task *task = weft__task_of(engine, data);
    (void) event;
    if (task && task->pub.state >= WEFT_TASK_COMPLETED)
        task->pub.seen = true;
    return 0;
}

int weft__task_seen(weft_engine *engine, const char *id, const char *by, void (*done)(void *ctx, int r), void *ctx) {
    const weft_task *task = weft__task_find(engine, id);
    if (!task)
        return -ENOENT;
    if (task->state < WEFT_TASK_COMPLETED)
        return -EBUSY;
    if (task->seen)
        return 1;
    return weft__engine_append(
        engine, WEFT_STREAM_HUB, "task.seen",
        WEFT_OBJ({"taskId", weft_str(id)}, {"sessionId", weft_str(task->session)}, {"by", weft_str_or_none(by)}), done, ctx);
}

/* The agent must know its conversation by a name, or what it did is lost. */
bool weft__task_resumes(const known_task *task) {
    return task->engine->opts.resume && task->session && task->session->agent_session;
}

bool weft__task_survives(const known_task *task) {
    return task->engine->opts.requeue || weft__task_resumes(task);
}

int weft__task_apply_retrying(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_task *task = weft__task_of(engine, data);
    if (weft__cost_apply(engine, event, data) < 0)
        return -ENOMEM;
    if (!task || task->pub.state != WEFT_TASK_RUNNING)
        return 0;
    leave_slot(engine, task);
    task->pub.state = WEFT_TASK_QUEUED;
    task->resumes = weft_get_bool(data, "resumes", false);
    task->pub.started_ms = 0;
    engine->counts.of[WEFT_TASK_QUEUED]++;
    weft__queue_put(engine, task);
    /* At a start nobody knows how much of the delay is over; little is lost by not waiting for the rest. */
    int64_t delay = weft__int_between(data, "delayMs", 0, 0, INT64_MAX);
    task->not_before = engine->phase == FOLDING ? 0 : weft__add_ms(weft_loop_now(engine->loop), delay);
    return 0;
}

/* ---- ended ---- */

static weft_task_state state_after(const char *type) {
    return strcmp(type, "task.completed") == 0 ? WEFT_TASK_COMPLETED
           : strcmp(type, "task.failed") == 0  ? WEFT_TASK_FAILED
                                               : WEFT_TASK_CANCELLED;
}

/* What an event of a run says of it is far less. */
#define USAGE_BYTES (16 * 1024)

/* What its end needs memory for. */
typedef struct ending {
    const char *error, *reason, *stop_reason, *usage;
    char *strings;
    char *tail; /* NULL: it has one already */
    size_t tail_len;
} ending;

/* The members of the events that end a task, and of "end" in its document. */
enum {
    COMPLETED_MS,
    END_SEQ,
    ERROR_TEXT,
    REASON,
    STOP_REASON,
    EXIT_CODE,
    SIGNAL,
    USAGE,
    OUTPUT,
    OUTPUT_BYTES,
    OUTPUT_FROM,
    OUTPUT_TO,
    OUTPUT_TRUNCATED,
    SEEN
};
static const char *const end_members[] = {
    [COMPLETED_MS] = "completedMs",
    [END_SEQ] = "seq",
    [ERROR_TEXT] = "error",
    [REASON] = "reason",
    [STOP_REASON] = "stopReason",
    [EXIT_CODE] = "exitCode",
    [SIGNAL] = "signal",
    [USAGE] = "usage",
    [OUTPUT] = "output",
    [OUTPUT_BYTES] = "outputBytes",
    [OUTPUT_FROM] = "outputFrom",
    [OUTPUT_TO] = "outputTo",
    [OUTPUT_TRUNCATED] = "outputTruncated",
    [SEEN] = "seen",
};
#define END_MEMBERS (sizeof end_members / sizeof end_members[0])

static int prepare_end(weft_engine *engine, const known_task *task, const weft_json *of, ending *ret) {
    weft_bytes text = {"", 0};
    *ret = (ending){0};
    if (weft__value_string(&of[ERROR_TEXT], &ret->error) < 0 || weft__value_string(&of[REASON], &ret->reason) < 0 ||
        weft__value_string(&of[STOP_REASON], &ret->stop_reason) < 0 || weft_bytes_of(&of[OUTPUT], &text) == -ENOMEM)
        return -ENOMEM;
    bool used = weft_typeof(&of[USAGE]) == WEFT_OBJECT && of[USAGE].len <= USAGE_BYTES;
    size_t size = weft__pack_size(ret->error) + weft__pack_size(ret->reason) + weft__pack_size(ret->stop_reason) +
                  (used ? of[USAGE].len + 1 : 0);
    if (size && !(ret->strings = weft__alloc(engine->alloc, size)))
        return -ENOMEM;
    char *at = ret->strings;
    ret->error = weft__pack(&at, ret->error);
    ret->reason = weft__pack(&at, ret->reason);
    ret->stop_reason = weft__pack(&at, ret->stop_reason);
    ret->usage = used ? weft__pack_bytes(&at, of[USAGE].text, of[USAGE].len) : NULL;
    text = weft__text_end(text.data, text.len, WEFT_TASK_TAIL);
    /* Of what a copy was told there may be less than there was. */
    bool takes = text.len && (!task->tail || engine->opts.copy);
    if (takes) {
        ret->tail = weft__strndup(engine->alloc, text.data, text.len);
        ret->tail_len = text.len;
    }
    if (takes && !ret->tail) {
        weft__free(engine->alloc, ret->strings);
        return -ENOMEM;
    }
    return 0;
}

/* It will not grow any more: no more memory than it needs. */
static void settle_tail(weft_engine *engine, known_task *task, const ending *end) {
    if (end->tail) {
        weft__free(engine->alloc, task->tail);
        task->tail = end->tail;
        task->tail_len = task->tail_cap = end->tail_len;
        task->pub.tail = (weft_bytes){task->tail, task->tail_len};
    } else if (task->tail) {
        size_t len = task->pub.tail.len;
        /* An empty one may be a literal. */
        memmove(task->tail, task->pub.tail.data, len);
        char *less = weft__resize(engine->alloc, task->tail, len ? len : 1);
        task->tail = less ? less : task->tail;
        task->tail_len = task->tail_cap = len;
        task->pub.tail = (weft_bytes){task->tail, len};
    }
}

/* At least 0. */
static uint64_t count_or(const weft_json *value, uint64_t fallback) {
    int64_t count = weft_int_of(value, -1);
    return count < 0 ? fallback : (uint64_t) count;
}

static uint64_t read_count(const weft_json *data, const char *name, uint64_t fallback) {
    weft_json value = weft_get(data, name);
    return count_or(&value, fallback);
}

static void take_end(weft_engine *engine, known_task *task, const weft_json *of, const ending *end) {
    task->ended = end->strings;
    task->pub.error = end->error;
    task->pub.reason = end->reason;
    task->pub.stop_reason = end->stop_reason;
    task->pub.usage = end->usage;
    task->pub.exit_code = (int) weft__value_between(&of[EXIT_CODE], -1, -1, INT_MAX);
    task->pub.signal = (int) weft__value_between(&of[SIGNAL], 0, 0, INT_MAX);
    task->pub.output_bytes = count_or(&of[OUTPUT_BYTES], task->pub.output_bytes);
    /* A copy of the journal counts its own places in the stream of a session. */
    if (!engine->opts.copy || !task->output_from) {
        task->output_from = count_or(&of[OUTPUT_FROM], task->output_from);
        task->output_to = count_or(&of[OUTPUT_TO], task->output_to);
    }
    task->pub.output_cut = weft_bool_of(&of[OUTPUT_TRUNCATED], task->pub.output_cut);
    task->pub.seen = weft_bool_of(&of[SEEN], false);
    settle_tail(engine, task, end);
}

static void leave_session(known_task *task, int64_t now) {
    if (task->session)
        task->session->pub.updated_ms = now;
    weft__session_leave(task);
}

int weft__task_apply_ended(weft_engine *engine, const weft_event *event, const weft_json *data) {
    weft_task_state state = state_after(event->type);
    known_task *task = weft__task_of(engine, data);
    ending end;
    if (weft__cost_apply(engine, event, data) < 0)
        return -ENOMEM;
    if (!task) { /* queued so long ago that this is no longer kept */
        engine->counts.of[state]++;
        return 0;
    }
    if (is_over(task)) {
        /* Its document is newer than the counts. */
        engine->counts.of[state] += engine->phase == FOLDING && event->gseq <= task->saved_at;
        return 0;
    }
    weft_json of[END_MEMBERS];
    weft__get_all(data, end_members, END_MEMBERS, of);
    if (prepare_end(engine, task, of, &end) < 0)
        return -ENOMEM;
    if (task->pub.state == WEFT_TASK_QUEUED)
        leave_queue(engine, task);
    else
        leave_slot(engine, task);
    weft__list_remove(&task->slot);
    take_end(engine, task, of, &end);
    task->pub.state = state;
    task->pub.completed_ms = event->time_ms;
    task->end_seq = event->seq;
    task->bytes += task->tail_cap;
    engine->counts.of[state]++;
    engine->ended_count++;
    engine->ended_bytes += task->bytes;
    weft__list_push(&engine->ended, &task->place);
    leave_session(task, event->time_ms);
    weft__later(engine->loop, &engine->tidy);
    return 0;
}

/* ---- saved ---- */

static weft_task_state state_named(const weft_json *name) {
    weft_task_state state = WEFT_TASK_QUEUED;
    while (state < WEFT_TASK_STATES && !weft__value_says(name, weft__task_states[state]))
        state++;
    return state;
}

/* By time, because what ended first is forgotten first; from the end, because most are in order. */
static void put_ended(weft_engine *engine, known_task *task) {
    weft_link *after = engine->ended.prev;
    while (after != &engine->ended && WEFT_CONTAINER(after, known_task, place)->pub.completed_ms > task->pub.completed_ms)
        after = after->prev;
    weft__list_push(after->next, &task->place);
    task->bytes += task->tail_cap;
    engine->ended_count++;
    engine->ended_bytes += task->bytes;
}

/* Waits or runs. */
static void put_alive(weft_engine *engine, known_task *task) {
    weft__session_join(weft__session_known(engine, task->pub.session), task);
    engine->counts.of[task->pub.state]++;
    if (task->pub.state == WEFT_TASK_QUEUED)
        weft__queue_put(engine, task);
    else
        weft__list_push(&engine->slots, &task->slot);
}

/* The members of a task's document. */
enum { STATE, SAVED_AT, CREATED_MS, STARTED_MS, ATTEMPT, ASKED, CHANGES, ENDED, SPENT, RESUMES, LEASE, LEASE_AT };
static const char *const saved_members[] = {
    [STATE] = "state",     [SAVED_AT] = "at",     [CREATED_MS] = "createdMs", [STARTED_MS] = "startedMs",
    [ATTEMPT] = "attempt", [ASKED] = "task",      [CHANGES] = "changes",      [ENDED] = "end",
    [SPENT] = "spent",     [RESUMES] = "resumes", [LEASE] = "lease",          [LEASE_AT] = "leaseAt",
};
#define SAVED_MEMBERS (sizeof saved_members / sizeof saved_members[0])

int weft__task_restore(weft_engine *engine, const weft_json *data) {
    char id[ENGINE_ID];
    known_task *task = NULL;
    ending end = {0};
    weft_json saved[SAVED_MEMBERS], asked[TASK_MEMBERS], ended[END_MEMBERS];
    weft__get_all(data, saved_members, SAVED_MEMBERS, saved);
    weft__get_all(&saved[ASKED], task_members, TASK_MEMBERS, asked);
    weft__get_all(&saved[ENDED], end_members, END_MEMBERS, ended);
    weft_task_state state = state_named(&saved[STATE]);
    /* What waits was known when the engine became ready. */
    bool late = engine->phase >= READY && state < WEFT_TASK_COMPLETED;
    if (state == WEFT_TASK_STATES || late || weft_typeof(&saved[ASKED]) != WEFT_OBJECT ||
        weft__task_known(engine, weft__value_id(&asked[TASK_ID], id)))
        return -EBADMSG;
    int r = task_from(engine, asked, &task);
    if (r >= 0)
        r = state >= WEFT_TASK_COMPLETED ? prepare_end(engine, task, ended, &end)
                                         : need_session(engine, task, weft_int_of(&saved[CREATED_MS], 0));
    if (r >= 0 && (r = weft__task_restore_changes(engine, task, &saved[CHANGES])) < 0) {
        weft__free(engine->alloc, end.strings);
        weft__free(engine->alloc, end.tail);
    }
    if (r < 0) {
        weft__task_drop(engine, task);
        return r;
    }
    task->stored = task->saved.saved = true;
    task->saved_at = count_or(&saved[SAVED_AT], 0);
    weft__spent_read(&task->spent, &saved[SPENT]);
    task->resumes = weft_bool_of(&saved[RESUMES], false);
    task->lease = count_or(&saved[LEASE], 0);
    task->lease_at = count_or(&saved[LEASE_AT], 0);
    task->spent_at = task->saved_at;
    task->pub.state = state;
    task->pub.attempt = weft__value_between(&saved[ATTEMPT], 0, 0, MAX_ATTEMPTS);
    task->pub.created_ms = weft_int_of(&saved[CREATED_MS], 0);
    task->pub.started_ms = weft_int_of(&saved[STARTED_MS], 0);
    weft__past_put_task(engine, task);
    if (task->pub.number >= engine->next_task)
        engine->next_task = task->pub.number + 1;
    if (state < WEFT_TASK_COMPLETED) {
        put_alive(engine, task);
        return 0;
    }
    task->pub.completed_ms = weft_int_of(&ended[COMPLETED_MS], 0);
    task->end_seq = count_or(&ended[END_SEQ], 0);
    take_end(engine, task, ended, &end);
    put_ended(engine, task);
    return 0;
}

/* One that is known came from its document, which may be newer than the counts. */
int weft__task_apply_imported(weft_engine *engine, const weft_event *event, const weft_json *data) {
    weft_json name = weft_get(data, "state");
    weft_task_state state = state_named(&name);
    known_task *task = weft__task_of(engine, data);
    if (state < WEFT_TASK_COMPLETED || state == WEFT_TASK_STATES)
        return -EBADMSG;
    if (task) {
        engine->counts.of[state] += engine->phase == FOLDING && event->gseq <= task->saved_at;
        return 0;
    }
    int r = weft__task_restore(engine, data);
    task = r < 0 ? NULL : weft__task_of(engine, data);
    if (!task)
        return r < 0 ? r : -EBADMSG;
    task->saved.saved = false;
    task->saved_at = 0;
    task->pub.gseq = event->gseq;
    task->end_seq = event->seq;
    engine->counts.of[state]++;
    return 0;
}

uint64_t weft__task_next(const weft_engine *engine) {
    return engine->next_task;
}

int weft__task_apply_counted(weft_engine *engine, const weft_event *event, const weft_json *data) {
    (void) event;
    weft_json totals = weft_get(data, "totals");
    uint64_t tasks = read_count(data, "tasks", 0), questions = read_count(data, "questions", 0);
    if (tasks > ENGINE_NUMBERS || questions > ENGINE_NUMBERS)
        return -EBADMSG;
    if (tasks > engine->next_task)
        engine->next_task = tasks;
    if (questions > engine->next_question)
        engine->next_question = questions;
    for (int state = WEFT_TASK_COMPLETED; state < WEFT_TASK_STATES; state++)
        engine->counts.of[state] = read_count(&totals, weft__task_states[state], engine->counts.of[state]);
    return 0;
}

/* ---- for everybody ---- */

/* One that was made for its task has its number. */
bool weft__task_is_talk(const weft_task *task) {
    const char *number = strrchr(task->id, '-'), *session = strrchr(task->session, '-');
    return !number || !session || strcmp(number, session) != 0;
}

const weft_task *weft__task_find(const weft_engine *engine, const char *id) {
    known_task *task = weft__task_known(engine, id);
    return task && task->stored ? &task->pub : NULL;
}

const weft_task *weft__task_find_key(const weft_engine *engine, const char *key) {
    weft_node *node = weft__map_find(&engine->keys, key);
    const known_task *task = node ? WEFT_CONTAINER(node, known_task, key_node) : NULL;
    return task && task->stored ? &task->pub : NULL;
}

static const weft_task *task_at(const weft_engine *engine, const weft_link *link) {
    return link == &engine->all_tasks ? NULL : &WEFT_CONTAINER(link, known_task, all)->pub;
}

const weft_task *weft__task_newest(const weft_engine *engine) {
    return task_at(engine, engine->all_tasks.prev);
}

const weft_task *weft__task_older(const weft_engine *engine, const weft_task *task) {
    return task_at(engine, WEFT_CONTAINER(task, known_task, pub)->all.prev);
}

weft_task_counts weft__task_counts(const weft_engine *engine) {
    return engine->counts;
}
