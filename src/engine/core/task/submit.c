/* The commands on tasks: submit and cancel. Each checks what can be checked, counting what is under way as if it had
 * happened, and appends. */
#include <errno.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "engine_private.h"
#include "runners.h"

#define MAX_KEY 1024           /* bytes of an idempotency key: it is kept with the task */
#define MAX_METADATA (1 << 20) /* likewise */

/* ---- waiting for a task ---- */

void weft__waiters_run(weft_engine *engine, weft_link *waiters, int r, const weft_task *task) {
    weft_link now;
    /* Out of the task first: what is called may ask for more. */
    weft__list_push(waiters, &now);
    weft__list_remove(waiters);
    while (!weft__list_empty(&now)) {
        waiter *first = WEFT_CONTAINER(now.next, waiter, link);
        weft__list_remove(&first->link);
        weft_task_done *done = first->done;
        void *ctx = first->ctx;
        weft__free(engine->alloc, first);
        if (done)
            done(ctx, r, task);
    }
}

static int add_waiter(weft_engine *engine, weft_link *list, weft_task_done *done, void *ctx) {
    waiter *made = weft__zalloc(engine->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->done = done;
    made->ctx = ctx;
    weft__list_push(list, &made->link);
    return 0;
}

/* ---- submit ---- */

typedef struct submission {
    weft_engine *engine;
    known_task *task;
    known_session *made;      /* the session that is stored with it; NULL: it goes on with another */
    bool waits;               /* it takes a place in the queue */
    weft_isolation isolation; /* of made */
    int tries;                /* that failed because another writer took its number */
    weft_request *request;
    weft_task_done *done;
    void *ctx;
} submission;

/* Where it runs and as whom. */
struct choice {
    const weft_agent *agent;
    known_session *session; /* NULL: a new one */
    const char *runner;     /* where its session is, if that is on one */
};

static int choose_agent(weft_engine *engine, const weft_task_spec *spec, struct choice *ret) {
    const weft_agent *usual = weft__agent_default(engine);
    if (ret->session)
        usual = weft__agent_find(engine->agents, ret->session->pub.agent);
    ret->agent = spec->agent ? weft__agent_find(engine->agents, spec->agent) : usual;
    /* A name that is not configured is a persona, where the usual agent has such. */
    if (!ret->agent && spec->agent && usual && usual->persona_argv)
        ret->agent = usual;
    if (!ret->agent)
        return -ENOENT;
    return ret->session && strcmp(ret->agent->name, ret->session->pub.agent) != 0 ? -EINVAL : 0;
}

/* One that could begin now, or else the one that it is expected to wait for: who is free first will have it. */
static int choose_holder(const weft_engine *engine, const weft_task_spec *spec, struct choice *ret) {
    if (spec->session || spec->agent || spec->runner || spec->label ||
        (spec->isolation && spec->isolation != WEFT_ISOLATION_OFF))
        return -EINVAL;
    ret->agent = weft__role_pick(engine, spec->role, spec->task_type, NULL, true);
    return ret->agent ? 0 : -ENODEV;
}

/* Which runner has this session; NULL: it is here. */
static const char *runner_of_session(const weft_engine *engine, const known_session *session) {
    const char *at = strrchr(session->pub.agent, '@');
    const weft_agent *agent = at ? weft__runner_agent(engine, session->pub.agent) : NULL;
    return agent ? at + 1 : NULL;
}

static bool is_agent_there(const weft_agent *agent, const char *name) {
    size_t len = strlen(name);
    return strncmp(agent->name, name, len) == 0 && (!agent->name[len] || agent->name[len] == '@');
}

/* On another machine; a session that is there goes on there. */
static int choose_runner(const weft_engine *engine, const weft_task_spec *spec, struct choice *ret) {
    bool isolated = spec->isolation && spec->isolation != WEFT_ISOLATION_OFF;
    if (spec->role || isolated || (ret->session && (spec->label || (spec->runner && !ret->runner))))
        return -EINVAL;
    if (ret->session && ret->session->pub.isolation)
        return -EINVAL;
    if (!ret->session)
        ret->agent = weft__runner_pick(engine, spec->runner, spec->label, spec->agent, NULL, true);
    else if (!spec->runner || strcmp(spec->runner, ret->runner) == 0)
        ret->agent = weft__runner_agent(engine, ret->session->pub.agent);
    if (ret->session && ret->agent && spec->agent && !is_agent_there(ret->agent, spec->agent))
        return -EINVAL;
    return ret->agent ? 0 : ret->session ? -EINVAL : -ENODEV;
}

static int choose_session_and_agent(weft_engine *engine, const weft_task_spec *spec, struct choice *ret) {
    *ret = (struct choice){0};
    if (spec->role)
        return choose_holder(engine, spec, ret);
    if (spec->session) {
        ret->session = weft__session_known(engine, spec->session);
        if (!ret->session || !ret->session->stored)
            return -ESRCH;
        if (ret->session->pub.closed || ret->session->job)
            return -ESTALE;
        if (spec->isolation && ret->session->pub.isolation != weft__isolation_meant(engine, NULL, spec->isolation))
            return -EINVAL;
        ret->runner = runner_of_session(engine, ret->session);
    }
    bool lent = spec->runner || spec->label || ret->runner;
    int r = lent ? choose_runner(engine, spec, ret) : choose_agent(engine, spec, ret);
    if (r < 0)
        return r;
    size_t turns = ret->session ? ret->session->pub.turns + ret->session->claims : 0;
    return turns && spec->unless_busy ? -EBUSY : turns >= engine->limits.max_turns ? -EDQUOT : 0;
}

static bool is_of_group(const known_task *task, const char *group) {
    return task->group && strcmp(task->group, group) == 0;
}

static bool group_is_busy(const weft_engine *engine, const char *group) {
    for (weft_link *link = engine->slots.next; link != &engine->slots; link = link->next)
        if (is_of_group(WEFT_CONTAINER(link, known_task, slot), group))
            return true;
    for (weft_link *link = engine->queue.next; link != &engine->queue; link = link->next)
        if (is_of_group(WEFT_CONTAINER(link, known_task, place), group))
            return true;
    for (weft_link *link = engine->queueing_groups.next; link != &engine->queueing_groups; link = link->next)
        if (is_of_group(WEFT_CONTAINER(link, known_task, group_at), group))
            return true;
    return false;
}

static bool is_object(const char *json, const weft_alloc *alloc, int *ret_r) {
    weft_doc *doc = NULL;
    *ret_r = weft_doc_parse(json, strlen(json), alloc, &doc);
    bool yes = *ret_r >= 0 && weft_typeof(weft_doc_root(doc)) == WEFT_OBJECT;
    weft_doc_free(doc);
    if (!yes && *ret_r != -ENOMEM)
        *ret_r = -EINVAL;
    return yes;
}

static int check_submission(weft_engine *engine, const weft_task_spec *spec) {
    size_t len = spec->prompt ? strnlen(spec->prompt, engine->limits.max_prompt + 1) : 0;
    int r = 0;
    if (engine->phase != READY)
        return engine->phase < READY ? -EAGAIN : -ESHUTDOWN;
    if (len == 0 || (spec->agent && !*spec->agent) || (spec->key && spec->request) ||
        (spec->key && strnlen(spec->key, MAX_KEY + 1) > MAX_KEY))
        return -EINVAL;
    if (len > engine->limits.max_prompt || (spec->metadata && strnlen(spec->metadata, MAX_METADATA + 1) > MAX_METADATA))
        return -EMSGSIZE;
    if (spec->metadata && !is_object(spec->metadata, engine->alloc, &r))
        return r;
    return 0;
}

/* It may run at once if nothing that came before it could. What waits in the queue now waits for a slot that is not free, or
 * for its time; what is on its way there is not known yet, so it is let go first. */
static bool may_run(const weft_engine *engine, const struct choice *choice) {
    const known_session *session = choice->session;
    return weft__slot_free(engine, choice->agent->name) && (!engine->queueing || choice->agent->runner) &&
           (!session || (!session->pub.turns && !session->claims && weft__session_free(session)));
}

/* A digest, because a key of the store's is short and a caller's may be long. */
static void store_key(const char *key, char ret[5 + 2 * SHA256_DIGEST_LENGTH + 1]) {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *) key, strlen(key), digest);
    int n = snprintf(ret, 6, "task/");
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(ret + n + 2 * i, 3, "%02x", digest[i]);
}

static void finish_submit(void *ctx, int r);

static int send_submission(weft_engine *engine, submission *made) {
    known_task *task = made->task;
    char key[5 + 2 * SHA256_DIGEST_LENGTH + 1];
    weft_member members[TASK_DATA];
    struct draft draft = {.engine = engine, .counter = COUNTER_TASK, .number = task->pub.number};
    if (made->made) {
        made->made->pub.isolation = made->isolation;
        weft__draft_add(&draft, WEFT_STREAM_HUB, "session.created",
                        WEFT_OBJ({"sessionId", weft_str(task->pub.session)}, {"agent", weft_str(task->pub.runs_on)},
                                 {"folder", weft_str(engine->folder)},
                                 {"isolation", weft_str_or_none(weft__isolation_name(made->isolation))}));
    }
    weft__draft_add(&draft, WEFT_STREAM_HUB, "task.queued", weft__task_data(task, members));
    if (!made->waits)
        weft__draft_add(
            &draft, WEFT_STREAM_HUB, "task.started",
            WEFT_OBJ({"taskId", weft_str(task->pub.id)}, {"sessionId", weft_str(task->pub.session)},
                     {"attempt", weft_int(1)},
                     {"agent", task->pub.role || weft__task_is_lent(task) ? weft_str(task->pub.runs_on) : weft_none()}));
    weft__request_add(made->request, &draft,
                      WEFT_OBJ({"sessionId", weft_str(task->pub.session)}, {"taskId", weft_str(task->pub.id)}));
    if (task->pub.key)
        store_key(task->pub.key, key);
    return weft__draft_send(&draft, task->pub.key ? key : weft__request_key(made->request), finish_submit, made);
}

static int64_t timeout_of(const weft_engine *engine, const weft_task_spec *spec, const weft_agent *agent) {
    int64_t ms = spec->timeout_ms ? spec->timeout_ms : agent->timeout_ms ? agent->timeout_ms : engine->limits.timeout_ms;
    return ms < 0 ? -1 : ms;
}

/* With the next number. session NULL: a new one, of the same number. */
static int number_task(weft_engine *engine, task_parts *parts, known_task **ret_task, known_session **ret_session) {
    char id[ENGINE_ID], session[ENGINE_ID];
    bool goes_on = parts->session != NULL;
    /* Taken whatever happens next: a number is never used twice. A journal that was tampered with may have a session of that
     * name already. */
    do {
        if (engine->next_task >= ENGINE_NUMBERS)
            return -EOVERFLOW;
        parts->number = engine->next_task++;
        weft__name_numbered(session, "session-", parts->number);
    } while (weft__session_known(engine, session));
    weft__task_id(id, parts->number);
    parts->id = id;
    parts->session = goes_on ? parts->session : session;
    int r = weft__task_new(engine, parts, ret_task);
    if (r >= 0 && !goes_on)
        r = weft__session_new(engine, session, parts->runs_on, ret_session);
    return r;
}

static const char *text_or_null(const char *text) {
    return *text ? text : NULL;
}

static int make_task(weft_engine *engine, const weft_task_spec *spec, const struct choice *choice, submission *made) {
    const char *there = choice->runner ? strrchr(choice->agent->name, '@') : NULL;
    char agent[2 * WEFT_RUNNER_NAME + 2];
    snprintf(agent, sizeof agent, "%.*s", there ? (int) (there - choice->agent->name) : 0, choice->agent->name);
    task_parts parts = {
        .prompt = spec->prompt,
        .agent = there ? agent : spec->agent,
        .runs_on = choice->agent->name,
        .session = choice->session ? choice->session->pub.id : NULL,
        .metadata = spec->metadata ? spec->metadata : "{}",
        .key = spec->key,
        .priority = spec->priority,
        .timeout_ms = timeout_of(engine, spec, choice->agent),
        .retries = spec->retries > 0 ? spec->retries : 0,
        .depth = spec->depth,
        .permission = spec->permission,
        .group = spec->group,
        .role = spec->role,
        .task_type = spec->task_type,
        .runner = choice->runner ? choice->runner : spec->runner,
        .label = spec->label,
        .quiet_ms = spec->quiet_ms > 0 ? spec->quiet_ms : 0,
        .traceparent = spec->trace ? text_or_null(spec->trace->traceparent) : NULL,
        .tracestate = spec->trace ? text_or_null(spec->trace->tracestate) : NULL,
    };
    return number_task(engine, &parts, &made->task, &made->made);
}

/* It is on its way: it has a place in the queue or a slot until the outcome is known. */
static void take_place(weft_engine *engine, submission *made) {
    made->task->submitted = true;
    if (!made->waits) {
        made->task->starting = true;
        weft__list_push(&engine->slots, &made->task->slot);
    } else if (made->task->group)
        weft__list_push(&engine->queueing_groups, &made->task->group_at);
}

/* What another writer stored meanwhile may say the same as ours, and is then known by what we made: that stays. */
static void leave_place(const submission *made) {
    known_task *task = made->task;
    weft__list_remove(&task->group_at);
    task->submitted = false;
    /* One that was to wait may have been given a slot when its event was delivered, just now: that is not over. */
    if (made->waits)
        return;
    task->starting = false;
    if (task->pub.state == WEFT_TASK_QUEUED)
        weft__list_remove(&task->slot);
}

/* The same again, under the next number. */
static int number_again(weft_engine *engine, const submission *before, submission *ret) {
    const known_task *task = before->task;
    const weft_task *pub = &task->pub;
    task_parts parts = {
        .prompt = pub->prompt,
        .agent = pub->agent,
        .runs_on = pub->runs_on,
        .session = before->made ? NULL : pub->session,
        .metadata = pub->metadata,
        .key = pub->key,
        .priority = pub->priority,
        .timeout_ms = pub->timeout_ms,
        .retries = pub->retries,
        .depth = pub->depth,
        .permission = pub->permission,
        .group = task->group,
        .role = pub->role,
        .task_type = pub->task_type,
        .runner = pub->runner,
        .label = pub->label,
        .quiet_ms = pub->quiet_ms,
        .traceparent = pub->traceparent,
        .tracestate = pub->tracestate,
    };
    *ret = *before;
    ret->task = NULL;
    ret->made = NULL;
    return number_task(engine, &parts, &ret->task, &ret->made);
}

/* Who came to its session after it may be stored before it now: then those are first. */
static bool must_wait_now(const weft_engine *engine, const submission *made) {
    const known_session *session = made->made ? NULL : weft__session_known(engine, made->task->pub.session);
    return session && (session->pub.turns || session->claims > 1);
}

/* Another writer took its number: 0 it is under way again. */
static int submit_again(weft_engine *engine, submission *made) {
    submission next;
    if (engine->phase != READY || ++made->tries >= ENGINE_TRIES)
        return engine->phase == READY ? -EAGAIN : -ESHUTDOWN;
    /* The key is the new one's from here on, or nobody's. */
    weft__map_remove(&engine->keys, &made->task->key_node);
    int r = number_again(engine, made, &next);
    submission before = *made;
    if (r >= 0) {
        *made = next;
        made->waits |= must_wait_now(engine, made);
        r = send_submission(engine, made);
    }
    if (r < 0) {
        *made = before;
        weft__session_drop(engine, next.made);
        weft__task_drop(engine, next.task);
        return r;
    }
    engine->queueing += made->waits && !before.waits;
    leave_place(&before);
    weft__list_push(&before.task->repeats, &made->task->repeats);
    weft__list_remove(&before.task->repeats);
    take_place(engine, made);
    if (before.made) {
        before.made->claims--;
        made->made->claims++;
    }
    if (before.made && !before.made->stored)
        weft__session_drop(engine, before.made);
    if (!before.task->stored)
        weft__task_drop(engine, before.task);
    return 0;
}

static void finish_submit(void *ctx, int r) {
    submission *made = ctx;
    weft_engine *engine = made->engine;
    known_task *task = made->task;
    weft_link repeats;
    weft_task_done *done = made->done;
    void *done_ctx = made->ctx;
    if (r == -EAGAIN && (r = submit_again(engine, made)) == 0)
        return;
    if (made->waits)
        engine->queueing--;
    leave_place(made);
    weft__list_push(&task->repeats, &repeats);
    weft__list_remove(&task->repeats);
    known_session *session = made->made ? made->made : weft__session_known(engine, task->pub.session);
    if (session)
        session->claims--;
    weft__sessions_soon(engine);
    if (r == 1) /* the key was there before: a task that is forgotten, or another node's */
        r = -EEXIST;
    if (r < 0 && !task->stored) {
        /* Another writer may have taken its name meanwhile. */
        if (made->made && !made->made->stored)
            weft__session_drop(engine, made->made);
        task = weft__task_drop(engine, task);
    }
    weft__free(engine->alloc, made);
    if (done)
        done(done_ctx, r, task ? &task->pub : NULL);
    weft__waiters_run(engine, &repeats, r, task ? &task->pub : NULL);
    if (engine->phase == READY)
        weft__queue_run(engine);
}

static bool is_isolated_so(const known_task *task, weft_isolation isolation) {
    const known_session *session = weft__session_known(task->engine, task->pub.session);
    return !isolation || !session || session->pub.isolation == weft__isolation_meant(task->engine, NULL, isolation);
}

/* A key stands for one submission. What the caller left to us is not compared. */
static bool is_repeat(const known_task *task, const weft_task_spec *spec) {
    const weft_task *pub = &task->pub;
    return is_isolated_so(task, spec->isolation) && strcmp(pub->prompt, spec->prompt) == 0 &&
           weft__texts_equal(pub->agent, spec->agent) &&
           weft__texts_equal(pub->metadata, spec->metadata ? spec->metadata : "{}") &&
           (!spec->session || strcmp(pub->session, spec->session) == 0) && pub->priority == spec->priority &&
           pub->permission == spec->permission && pub->retries == (spec->retries > 0 ? spec->retries : 0) &&
           weft__texts_equal(pub->role, spec->role) && weft__texts_equal(pub->label, spec->label) &&
           (!spec->runner || weft__texts_equal(pub->runner, spec->runner)) &&
           weft__texts_equal(pub->task_type, spec->task_type) &&
           (!spec->timeout_ms || pub->timeout_ms == (spec->timeout_ms < 0 ? -1 : spec->timeout_ms));
}

static int answer_repeat(weft_engine *engine, known_task *task, weft_task_done *done, void *ctx) {
    return task->stored ? weft__answer_later(engine, task->id, 0, done, ctx) : add_waiter(engine, &task->repeats, done, ctx);
}

static int submit_new(weft_engine *engine, const weft_task_spec *spec, const struct choice *choice, submission *made) {
    int r = make_task(engine, spec, choice, made);
    if (r >= 0)
        r = send_submission(engine, made);
    if (r < 0) {
        weft__session_drop(engine, made->made);
        weft__task_drop(engine, made->task);
        return r;
    }
    /* Also of one that comes with it: that may be found before the task is. */
    (choice->session ? choice->session : made->made)->claims++;
    if (made->waits)
        engine->queueing++;
    take_place(engine, made);
    return 0;
}

int weft__task_submit(weft_engine *engine, const weft_task_spec *spec, weft_task_done *done, void *ctx) {
    struct choice choice;
    int r = check_submission(engine, spec);
    if (r < 0)
        return r;
    if (engine->past_unread && (spec->key || spec->session))
        return -EAGAIN;
    weft_node *known = spec->key ? weft__map_find(&engine->keys, spec->key) : NULL;
    if (known) {
        known_task *task = WEFT_CONTAINER(known, known_task, key_node);
        return is_repeat(task, spec) ? answer_repeat(engine, task, done, ctx) : -ENOTUNIQ;
    }
    r = choose_session_and_agent(engine, spec, &choice);
    if (r < 0)
        return r;
    if (spec->group && group_is_busy(engine, spec->group))
        return -EBUSY;
    bool waits = !may_run(engine, &choice);
    if (waits && engine->queue_count + engine->queueing >= engine->limits.max_queue)
        return -ENOBUFS;
    submission *made = weft__zalloc(engine->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    *made = (submission){.engine = engine,
                         .waits = waits,
                         .isolation = spec->role || choice.agent->runner
                                          ? WEFT_ISOLATION_NONE
                                          : weft__isolation_meant(engine, choice.agent, spec->isolation),
                         .request = spec->request,
                         .done = done,
                         .ctx = ctx};
    r = submit_new(engine, spec, &choice, made);
    if (r < 0)
        weft__free(engine->alloc, made);
    return r;
}

/* ---- cancel ---- */

void weft__task_settle(weft_engine *engine, known_task *task) {
    if (task->pub.state >= WEFT_TASK_COMPLETED)
        weft__waiters_run(engine, &task->waiters, task->pub.state == WEFT_TASK_CANCELLED ? 0 : -EALREADY, &task->pub);
}

static void cancel_stored(void *ctx, int r) {
    known_task *task = ctx;
    weft_engine *engine = task->engine;
    engine->ends--;
    task->ending = false;
    if (r < 0) {
        weft__waiters_run(engine, &task->waiters, r, NULL);
        if (engine->phase == READY)
            weft__queue_run(engine);
        return;
    }
    weft__task_settle(engine, task);
}

static int cancel_queued(weft_engine *engine, known_task *task) {
    struct draft draft = {.engine = engine};
    weft__draft_add(&draft, WEFT_STREAM_HUB, "task.cancelled",
                    WEFT_OBJ({"taskId", weft_str(task->pub.id)}, {"sessionId", weft_str(task->pub.session)},
                             {"by", weft_str_or_none(task->by)},
                             {"output", weft_strn(task->pub.tail.data, task->pub.tail.len)},
                             {"outputBytes", weft_uint(task->pub.output_bytes)},
                             {"outputFrom", task->output_from ? weft_uint(task->output_from) : weft_none()},
                             {"outputTo", task->output_from ? weft_uint(task->output_to) : weft_none()},
                             {"outputTruncated", task->pub.output_cut ? weft_bool(true) : weft_none()}));
    int r = weft__draft_send(&draft, NULL, cancel_stored, task);
    if (r >= 0) {
        task->ending = true;
        engine->ends++;
    }
    return r;
}

/* Queued: cancelled now. About to start: as soon as it has. Running: its run is told. Ending already: it is waited for. */
static int begin_cancel(weft_engine *engine, known_task *task) {
    if (task->ending)
        return 0;
    if (task->pub.state == WEFT_TASK_QUEUED && !task->starting)
        return cancel_queued(engine, task);
    if (task->run && weft__run_is_ending(task->run))
        return 0;
    task->pub.stopping = true;
    if (task->run)
        weft__run_cancel(task->run);
    return 0;
}

void weft__task_cancel_waiting(weft_engine *engine, known_task *task) {
    int r = begin_cancel(engine, task);
    if (r < 0)
        weft__waiters_run(engine, &task->waiters, r, NULL);
}

int weft__task_cancel(weft_engine *engine, const char *id, const char *by, weft_task_done *done, void *ctx) {
    known_task *task = weft__task_known(engine, id);
    if (engine->phase != READY && engine->phase != STOPPING)
        return engine->phase < READY ? -EAGAIN : -ESHUTDOWN;
    if (!task || !task->stored)
        return engine->past_unread ? -EAGAIN : -ENOENT;
    if (task->pub.state >= WEFT_TASK_COMPLETED)
        return -EALREADY;
    if (by && !task->by && !(task->by = weft__strndup(engine->alloc, by, strlen(by))))
        return -ENOMEM;
    int r = add_waiter(engine, &task->waiters, done, ctx);
    if (r < 0)
        return r;
    r = begin_cancel(engine, task);
    if (r < 0) {
        weft_link *last = task->waiters.prev;
        weft__list_remove(last);
        weft__free(engine->alloc, WEFT_CONTAINER(last, waiter, link));
    }
    return r;
}
