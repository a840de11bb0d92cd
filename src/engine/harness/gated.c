/* Life, commands, and who waits for what. */
#include "gated.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gated_private.h"

const char *const weft__gated_states[WEFT_GATED_STATES] = {"running", "completed", "failed", "cancelled"};

void weft__gated_note(const weft_gated_tasks *tasks, const char *format, ...) {
    char line[512];
    va_list args;
    if (!tasks->opts.on_note)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    tasks->opts.on_note(tasks->opts.ctx, line);
}

void weft__gated_name(char ret[WEFT_GATED_ID], uint64_t number) {
    snprintf(ret, WEFT_GATED_ID, "gated-%04" PRIu32, (uint32_t) number);
}

/* ---- calls that are under way ---- */

gated_op *weft__gated_op(gated_task *task) {
    gated_op *made = weft__zalloc(task->of->alloc, sizeof *made);
    if (!made)
        return NULL;
    *made = (gated_op){.tasks = task->of, .alloc = task->of->alloc, .task = task};
    weft__list_push(&task->of->ops, &made->link);
    return made;
}

gated_task *weft__gated_op_end(gated_op *op) {
    gated_task *task = op->tasks ? op->task : NULL;
    weft__list_remove(&op->link);
    weft__free(op->alloc, op);
    return task;
}

/* ---- one of them ---- */

void weft__gate_result_done(weft_gate_result *result, const weft_alloc *alloc) {
    weft__free(alloc, (char *) (uintptr_t) result->why);
    weft__free(alloc, (char *) (uintptr_t) result->output);
    weft__free(alloc, (char *) (uintptr_t) result->diagnostics);
    *result = (weft_gate_result){0};
}

static int copy_gates(gated_task *task, const weft_gated_spec *spec) {
    const weft_alloc *alloc = task->of->alloc;
    task->gates = weft__zalloc(alloc, (spec->gate_count + 1) * sizeof *task->gates);
    for (size_t i = 0; task->gates && i < spec->gate_count; i++)
        if (!(task->gates[i] = weft__strndup(alloc, spec->gates[i], strlen(spec->gates[i]))))
            return -ENOMEM;
    return task->gates ? 0 : -ENOMEM;
}

static int fill_gated(gated_task *task, const weft_gated_spec *spec) {
    const weft_alloc *alloc = task->of->alloc;
    const char *by = spec->by ? spec->by : "", *key = spec->key ? spec->key : "";
    int r = copy_gates(task, spec);
    task->prompt = weft__strndup(alloc, spec->prompt, strlen(spec->prompt));
    task->by = weft__strndup(alloc, by, strlen(by));
    task->key = weft__strndup(alloc, key, strlen(key));
    if (r >= 0)
        r = weft__copy_or_null(alloc, spec->agent, &task->agent);
    return r < 0 || !task->prompt || !task->by || !task->key ? -ENOMEM : 0;
}

gated_task *weft__gated_make(weft_gated_tasks *tasks, const weft_gated_spec *spec, uint64_t number) {
    gated_task *task = weft__zalloc(tasks->alloc, sizeof *task);
    if (!task)
        return NULL;
    task->of = tasks;
    task->now.failed_gate = -1;
    weft__list_init(&task->link);
    weft__list_init(&task->waiters);
    weft__list_init(&task->repeats);
    weft__later_init(&task->look, weft__gated_look_due);
    weft__timer_init(&task->again, weft__gated_again_due);
    if (fill_gated(task, spec) < 0)
        return weft__gated_drop(task);
    weft__gated_name(task->id, number);
    task->pub = (weft_gated){.id = task->id,
                             .number = number,
                             .prompt = task->prompt,
                             .agent = task->agent,
                             .gates = (const char *const *) task->gates,
                             .gate_count = spec->gate_count,
                             .max_iterations = spec->max_iterations,
                             .permission = spec->permission,
                             .isolation = spec->isolation,
                             .by = task->by,
                             .key = task->key,
                             .turns = task->turns,
                             .results = task->results};
    weft__gated_publish(task);
    return task;
}

gated_task *weft__gated_drop(gated_task *task) {
    weft_gated_tasks *tasks = task->of;
    const weft_alloc *alloc = tasks->alloc;
    tasks->count -= !weft__list_empty(&task->link);
    weft__list_remove(&task->link);
    weft__later_cancel(&task->look);
    weft__timer_stop(tasks->loop, &task->again);
    for (size_t i = 0; i < WEFT_GATED_GATES; i++)
        weft__gate_result_done(&task->results[i], alloc);
    weft__gate_result_done(&task->pending.result, alloc);
    for (size_t i = 0; task->gates && task->gates[i]; i++)
        weft__free(alloc, task->gates[i]);
    weft__free(alloc, task->gates);
    weft__free(alloc, task->prompt);
    weft__free(alloc, task->agent);
    weft__free(alloc, task->by);
    weft__free(alloc, task->key);
    weft__free(alloc, task->stop_by);
    return weft__free(alloc, task);
}

void weft__gated_show(gated_task *task) {
    weft__list_push(&task->of->all, &task->link);
    task->of->count++;
}

void weft__gated_publish(gated_task *task) {
    const gated_now *now = &task->now;
    task->pub.state = now->state;
    task->pub.stopping = now->stopping && now->state == WEFT_GATED_STATE_RUNNING;
    task->pub.iteration = now->iteration;
    task->pub.gating = now->gating;
    task->pub.session = now->session;
    task->pub.reason = now->reason;
    task->pub.error = now->error;
    task->pub.failed_gate = now->failed_gate >= 0 ? task->gates[now->failed_gate] : NULL;
    task->pub.ended_ms = now->ended_ms;
    task->pub.seen = now->seen;
}

static bool is_shown(const gated_task *task) {
    return task->stored && !task->leaving;
}

gated_task *weft__gated_known(const weft_gated_tasks *tasks, const char *id) {
    for (weft_link *link = tasks->all.prev; link != &tasks->all; link = link->prev) {
        gated_task *task = WEFT_CONTAINER(link, gated_task, link);
        if (strcmp(task->id, id) == 0)
            return is_shown(task) ? task : NULL;
    }
    return NULL;
}

/* ---- who waits ---- */

static int add_waiter(const gated_task *task, weft_link *list, weft_gated_done *done, void *ctx) {
    gated_waiter *made = weft__zalloc(task->of->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    *made = (gated_waiter){.done = done, .ctx = ctx};
    weft__list_push(list, &made->link);
    return 0;
}

static void tell_waiters(const gated_task *task, weft_link *list, int r) {
    const weft_alloc *alloc = task->of->alloc;
    while (!weft__list_empty(list)) {
        gated_waiter *first = WEFT_CONTAINER(list->next, gated_waiter, link);
        gated_waiter told = *first;
        weft__list_remove(&first->link);
        weft__free(alloc, first);
        told.done(told.ctx, r, r < 0 ? NULL : &task->pub);
    }
}

/* ---- sending one ---- */

typedef struct sending {
    gated_op *op;
    weft_gated_done *done;
    void *ctx;
    gated_task *leaves; /* makes room; NULL: nobody has to */
    int tries;
    const weft_alloc *alloc;
} sending;

static gated_task *choose_leaving(const weft_gated_tasks *tasks) {
    for (weft_link *link = tasks->all.next; tasks->count >= WEFT_GATED && link != &tasks->all; link = link->next) {
        gated_task *task = WEFT_CONTAINER(link, gated_task, link);
        if (is_shown(task) && !task->sending && task->now.state != WEFT_GATED_STATE_RUNNING)
            return task;
    }
    return NULL;
}

static uint64_t first_number(const weft_gated_tasks *tasks, uint64_t fallback) {
    for (weft_link *link = tasks->all.next; link != &tasks->all; link = link->next) {
        const gated_task *task = WEFT_CONTAINER(link, gated_task, link);
        if (!task->leaving)
            return task->pub.number < fallback ? task->pub.number : fallback;
    }
    return fallback;
}

static void on_sent(void *ctx, int r);

static int append_sent(sending *made) {
    static const char *const type = "gated.created";
    gated_task *task = made->op->task;
    weft_gated_tasks *tasks = task->of;
    char keys[4][GATED_KEY];
    weft_buf fixed = {0}, index = {0};
    task->pub.created_ms = weft__engine_now(tasks->engine);
    if (!made->leaves && (made->leaves = choose_leaving(tasks)))
        made->leaves->leaving = true;
    int r = weft__gated_write_fixed(task, &fixed);
    if (r >= 0)
        r = weft__gated_write_index(tasks, first_number(tasks, task->pub.number), task->pub.number + 1, &index);
    weft__gated_keys(task, keys[0], keys[1]);
    if (made->leaves)
        weft__gated_keys(made->leaves, keys[2], keys[3]);
    weft_document documents[4] = {{keys[0], {weft__buf_head(&fixed), weft__buf_len(&fixed)}},
                                  {GATED_INDEX, {weft__buf_head(&index), weft__buf_len(&index)}},
                                  {.key = keys[2]},
                                  {.key = keys[3]}};
    weft_val gates[WEFT_GATED_GATES];
    for (size_t i = 0; i < task->pub.gate_count; i++)
        gates[i] = weft_str(task->gates[i]);
    weft_val data = WEFT_OBJ({"gatedId", weft_str(task->id)}, {"gates", weft_arr(gates, task->pub.gate_count)},
                             {"maxIterations", weft_int(task->pub.max_iterations)}, {"agent", weft_str_or_none(task->agent)},
                             {"by", *task->by ? weft_str(task->by) : weft_none()});
    if (r >= 0)
        r = weft__engine_change(tasks->engine,
                                &(weft_engine_change){.stream = WEFT_STREAM_GATED,
                                                      .types = &type,
                                                      .data = &data,
                                                      .count = 1,
                                                      .documents = documents,
                                                      .document_count = made->leaves ? 4 : 2,
                                                      .counter = GATED_COUNTER,
                                                      .number = task->pub.number},
                                on_sent, made);
    weft__buf_done(&fixed, tasks->alloc);
    weft__buf_done(&index, tasks->alloc);
    return r;
}

/* Another writer took its number. */
static int send_again(sending *made) {
    gated_task *task = made->op->task;
    if (++made->tries >= GATED_TRIES || task->of->next_number >= GATED_NUMBERS)
        return -EAGAIN;
    task->pub.number = task->of->next_number++;
    weft__gated_name(task->id, task->pub.number);
    return append_sent(made);
}

static void settle_leaving(gated_task *leaves, bool gone) {
    if (leaves && gone)
        weft__gated_drop(leaves);
    else if (leaves)
        leaves->leaving = false;
}

static void on_sent(void *ctx, int r) {
    sending *made = ctx;
    if (made->op->tasks && r == -EAGAIN && (r = send_again(made)) == 0)
        return;
    gated_task *task = weft__gated_op_end(made->op);
    weft_gated_done *done = made->done;
    void *done_ctx = made->ctx;
    gated_task *leaves = made->leaves;
    weft__free(made->alloc, made);
    if (!task) {
        done(done_ctx, -ECANCELED, NULL);
        return;
    }
    settle_leaving(leaves, r >= 0);
    if (r >= 0) {
        task->stored = task->resumed = true;
        weft__gated_look(task);
    }
    tell_waiters(task, &task->repeats, r < 0 ? r : 0);
    if (r < 0) {
        task->of->running--;
        task = weft__gated_drop(task);
    }
    done(done_ctx, r < 0 ? r : 0, task ? &task->pub : NULL);
}

/* ---- what may be sent ---- */

/* Also one that is not stored yet. */
static gated_task *find_key(const weft_gated_tasks *tasks, const char *key) {
    for (weft_link *link = tasks->all.prev; *key && link != &tasks->all; link = link->prev) {
        gated_task *task = WEFT_CONTAINER(link, gated_task, link);
        if (strcmp(task->key, key) == 0)
            return task->leaving ? NULL : task;
    }
    return NULL;
}

static bool are_gates_equal(const weft_gated *is, const weft_gated_spec *spec) {
    size_t i = 0;
    while (i < is->gate_count && i < spec->gate_count && strcmp(is->gates[i], spec->gates[i]) == 0)
        i++;
    return i == is->gate_count && i == spec->gate_count;
}

static bool is_sent_again(const weft_gated *is, const weft_gated_spec *spec) {
    int64_t most = spec->max_iterations ? spec->max_iterations : WEFT_GATED_USUAL;
    bool agent = is->agent && spec->agent ? strcmp(is->agent, spec->agent) == 0 : is->agent == spec->agent;
    return spec->prompt && strcmp(is->prompt, spec->prompt) == 0 && agent && are_gates_equal(is, spec) &&
           is->max_iterations == most && is->permission == spec->permission && is->isolation == spec->isolation;
}

/* Whatever else is wrong with it by now: it was right when it was sent. */
static int answer_again(gated_task *task, const weft_gated_spec *spec, weft_gated_done *done, void *ctx) {
    if (!is_sent_again(&task->pub, spec))
        return -ENOTUNIQ;
    return task->stored ? -EALREADY : add_waiter(task, &task->repeats, done, ctx);
}

static int check_gates(const weft_gated_tasks *tasks, const weft_gated_spec *spec, size_t *ret_gate) {
    const weft_gate_runner *runner = &tasks->opts.gates;
    if (!spec->gate_count || spec->gate_count > WEFT_GATED_GATES)
        return -EINVAL;
    for (size_t i = 0; i < spec->gate_count; i++) {
        *ret_gate = i;
        if (strlen(spec->gates[i]) > WEFT_GATE_NAME)
            return -ESRCH;
        int r = runner->check(runner->ctx, spec->gates[i], weft__engine_folder(tasks->engine));
        if (r < 0)
            return r == -ESRCH ? -ESRCH : -ENOEXEC;
        for (size_t n = 0; n < i; n++)
            if (strcmp(spec->gates[n], spec->gates[i]) == 0)
                return -EINVAL;
    }
    return 0;
}

static int check_gated(const weft_gated_tasks *tasks, const weft_gated_spec *spec, size_t *ret_gate) {
    const weft_agents *agents = weft__engine_agents(tasks->engine);
    const weft_agent *agent = spec->agent ? weft__agent_find(agents, spec->agent) : weft__agent_default(tasks->engine);
    if (!tasks->ready)
        return -EAGAIN;
    if (!spec->prompt || !*spec->prompt || spec->max_iterations < 0 || spec->max_iterations > WEFT_GATED_ITERATIONS)
        return -EINVAL;
    if (strlen(spec->prompt) > WEFT_GATED_PROMPT)
        return -EMSGSIZE;
    if (spec->agent && !agent)
        return -ENOENT;
    if (agent && agent->context_limit && strlen(spec->prompt) > agent->context_limit)
        return -EOVERFLOW;
    int r = check_gates(tasks, spec, ret_gate);
    if (r >= 0 && tasks->running >= WEFT_GATED_RUNNING)
        return -EUSERS;
    return r;
}

int weft__gated_send(weft_gated_tasks *tasks, const weft_gated_spec *spec, weft_gated_done *done, void *ctx,
                     size_t *ret_gate) {
    gated_task *same = spec->key ? find_key(tasks, spec->key) : NULL;
    int r = same ? answer_again(same, spec, done, ctx) : check_gated(tasks, spec, ret_gate);
    if (r < 0 || same)
        return r;
    weft_gated_spec whole = *spec;
    whole.max_iterations = spec->max_iterations ? spec->max_iterations : WEFT_GATED_USUAL;
    sending *made = weft__zalloc(tasks->alloc, sizeof *made);
    gated_task *task = made ? weft__gated_make(tasks, &whole, tasks->next_number) : NULL;
    gated_op *op = task ? weft__gated_op(task) : NULL;
    r = op ? 0 : -ENOMEM;
    if (r >= 0) {
        *made = (sending){.op = op, .done = done, .ctx = ctx, .alloc = tasks->alloc};
        tasks->next_number++;
        r = append_sent(made);
    }
    if (r >= 0) {
        tasks->running++;
        weft__gated_show(task);
        return 0;
    }
    if (made)
        settle_leaving(made->leaves, false);
    if (op)
        weft__gated_op_end(op);
    if (task)
        weft__gated_drop(task);
    weft__free(tasks->alloc, made);
    return r;
}

/* ---- waiting and ending ---- */

void weft__gated_tell(gated_task *task) {
    tell_waiters(task, &task->waiters, 0);
}

static int find_running(weft_gated_tasks *tasks, const char *id, gated_task **ret) {
    if (!tasks->ready)
        return -EAGAIN;
    *ret = weft__gated_known(tasks, id);
    if (!*ret)
        return -ENOENT;
    return (*ret)->now.state != WEFT_GATED_STATE_RUNNING ? -EALREADY : 0;
}

int weft__gated_await(weft_gated_tasks *tasks, const char *id, weft_gated_done *done, void *ctx) {
    gated_task *task;
    int r = find_running(tasks, id, &task);
    return r < 0 ? r : add_waiter(task, &task->waiters, done, ctx);
}

int weft__gated_cancel(weft_gated_tasks *tasks, const char *id, const char *by, weft_gated_done *done, void *ctx) {
    gated_task *task;
    char *who = NULL;
    int r = find_running(tasks, id, &task);
    if (r >= 0)
        r = weft__copy_or_null(tasks->alloc, by, &who);
    if (r >= 0)
        r = add_waiter(task, &task->waiters, done, ctx);
    if (r < 0 || task->want_stop)
        weft__free(tasks->alloc, who);
    else
        task->stop_by = who;
    if (r < 0)
        return r;
    task->want_stop = true;
    weft__gated_look(task);
    return 0;
}

/* ---- how it ended was looked at ---- */

typedef struct marking {
    gated_op *op;
    void (*done)(void *ctx, int r);
    void *ctx;
    const weft_alloc *alloc;
} marking;

static void on_seen_stored(void *ctx, int r) {
    marking made = *(marking *) ctx;
    weft__free(made.alloc, ctx);
    gated_task *task = weft__gated_op_end(made.op);
    if (task && r >= 0) {
        task->now.seen = true;
        weft__gated_publish(task);
    }
    if (made.done)
        made.done(made.ctx, r);
}

static int append_seen(gated_task *task, const char *by, marking *made) {
    static const char *const type = "gated.seen";
    char fixed[GATED_KEY], state[GATED_KEY];
    weft_val data = WEFT_OBJ({"gatedId", weft_str(task->id)}, {"by", weft_str_or_none(by)});
    weft_buf text = {0};
    task->next = task->now;
    task->next.seen = true;
    int r = weft__gated_write_state(task, &text);
    weft__gated_keys(task, fixed, state);
    if (r >= 0)
        r = weft__engine_change(
            task->of->engine,
            &(weft_engine_change){.stream = WEFT_STREAM_GATED,
                                  .types = &type,
                                  .data = &data,
                                  .count = 1,
                                  .documents = &(weft_document){state, {weft__buf_head(&text), weft__buf_len(&text)}},
                                  .document_count = 1},
            on_seen_stored, made);
    weft__buf_done(&text, task->of->alloc);
    return r;
}

int weft__gated_seen(weft_gated_tasks *tasks, const char *id, const char *by, void (*done)(void *ctx, int r), void *ctx) {
    gated_task *task;
    int r = find_running(tasks, id, &task);
    if (r != -EALREADY)
        return r < 0 ? r : -EBUSY;
    if (task->now.seen)
        return 1;
    marking *made = weft__alloc(tasks->alloc, sizeof *made);
    gated_op *op = made ? weft__gated_op(task) : NULL;
    if (op)
        *made = (marking){.op = op, .done = done, .ctx = ctx, .alloc = tasks->alloc};
    r = op ? append_seen(task, by, made) : -ENOMEM;
    if (r >= 0)
        return 0;
    if (op)
        weft__gated_op_end(op);
    weft__free(tasks->alloc, made);
    return r;
}

/* ---- looking ---- */

const weft_gated *weft__gated_find(const weft_gated_tasks *tasks, const char *id) {
    const gated_task *task = weft__gated_known(tasks, id);
    return task ? &task->pub : NULL;
}

const weft_gated *weft__gated_of_key(const weft_gated_tasks *tasks, const char *key) {
    gated_task *task = find_key(tasks, key);
    return task && is_shown(task) ? &task->pub : NULL;
}

const weft_gated *weft__gated_of_session(const weft_gated_tasks *tasks, const char *session) {
    for (weft_link *link = tasks->all.prev; link != &tasks->all; link = link->prev) {
        const gated_task *task = WEFT_CONTAINER(link, gated_task, link);
        if (is_shown(task) && strcmp(task->now.session, session) == 0)
            return &task->pub;
    }
    return NULL;
}

static const weft_gated *shown_before(const weft_gated_tasks *tasks, const weft_link *link) {
    for (link = link->prev; link != &tasks->all; link = link->prev) {
        const gated_task *task = WEFT_CONTAINER(link, gated_task, link);
        if (is_shown(task))
            return &task->pub;
    }
    return NULL;
}

const weft_gated *weft__gated_newest(const weft_gated_tasks *tasks) {
    return shown_before(tasks, &tasks->all);
}

const weft_gated *weft__gated_older(const weft_gated_tasks *tasks, const weft_gated *gated) {
    return shown_before(tasks, &WEFT_CONTAINER(gated, gated_task, pub)->link);
}

/* ---- life ---- */

static void tell_ready(weft_later *later) {
    weft_gated_tasks *tasks = WEFT_CONTAINER(later, weft_gated_tasks, ready_later);
    tasks->on_ready(tasks->ready_ctx, tasks->ready_r);
}

static void resume_all(weft_gated_tasks *tasks) {
    for (weft_link *link = tasks->all.next; link != &tasks->all; link = link->next)
        weft__gated_resume(WEFT_CONTAINER(link, gated_task, link));
}

static void on_past(weft_past_waiter *waiter, int r) {
    weft_gated_tasks *tasks = WEFT_CONTAINER(waiter, weft_gated_tasks, past);
    r = r < 0 ? weft__engine_past(tasks->engine) : 0;
    if (r == 0)
        resume_all(tasks);
    else if (r == -EAGAIN)
        weft__engine_await_past(tasks->engine, waiter);
    else
        weft__gated_note(tasks, "gated tasks that were running cannot go on: what is known of old tasks is damaged");
}

static void read_later(weft_gated_tasks *tasks, int r) {
    int64_t wait = r == -ENOMEM ? GATED_MEMORY_MS : weft__engine_limits(tasks->engine)->again_ms;
    weft__timer_set(tasks->loop, &tasks->read_again, weft__add_ms(weft_loop_now(tasks->loop), wait));
}

static void on_read_due(weft_timer *timer) {
    weft_gated_tasks *tasks = WEFT_CONTAINER(timer, weft_gated_tasks, read_again);
    int r = weft__gated_read(tasks);
    if (r < 0)
        read_later(tasks, r);
}

/* A part of them is none: it is all read again. */
static void forget_read(weft_gated_tasks *tasks) {
    while (!weft__list_empty(&tasks->all))
        weft__gated_drop(WEFT_CONTAINER(tasks->all.next, gated_task, link));
    tasks->running = 0;
}

/* What one was doing is found among the tasks, of which some may be of the past. */
void weft__gated_read_end(weft_gated_tasks *tasks, int r) {
    tasks->ready = r >= 0;
    if (!tasks->ready_told) {
        tasks->ready_told = true;
        tasks->ready_r = r;
        weft__later(tasks->loop, &tasks->ready_later);
    }
    if (r < 0) {
        forget_read(tasks);
        if (r != -ECANCELED)
            read_later(tasks, r);
        return;
    }
    weft__engine_listen(tasks->engine, &tasks->listener);
    if (tasks->running && weft__engine_past(tasks->engine) < 0)
        weft__engine_await_past(tasks->engine, &tasks->past);
    else
        resume_all(tasks);
}

int weft__gated_new(const weft_gated_opts *opts, void (*on_ready)(void *ctx, int r), void *ctx, weft_gated_tasks **ret) {
    const weft_alloc *alloc = weft__engine_alloc(opts->engine);
    weft_gated_tasks *tasks = weft__zalloc(alloc, sizeof *tasks);
    if (!tasks)
        return -ENOMEM;
    tasks->engine = opts->engine;
    tasks->loop = weft__engine_loop(opts->engine);
    tasks->alloc = alloc;
    tasks->opts = *opts;
    tasks->on_ready = on_ready;
    tasks->ready_ctx = ctx;
    tasks->next_number = 1;
    tasks->listener.on_event = weft__gated_hear;
    tasks->past.on_past = on_past;
    weft__list_init(&tasks->all);
    weft__list_init(&tasks->ops);
    weft__list_init(&tasks->listener.link);
    weft__list_init(&tasks->past.link);
    weft__later_init(&tasks->ready_later, tell_ready);
    weft__timer_init(&tasks->read_again, on_read_due);
    int r = weft__gated_read(tasks);
    if (r < 0)
        weft__free(alloc, tasks);
    else
        *ret = tasks;
    return r;
}

weft_gated_tasks *weft__gated_free(weft_gated_tasks *tasks) {
    if (!tasks)
        return NULL;
    weft__gated_read_drop(tasks);
    weft__engine_unlisten(&tasks->listener);
    weft__list_remove(&tasks->past.link);
    weft__later_cancel(&tasks->ready_later);
    weft__timer_stop(tasks->loop, &tasks->read_again);
    while (!weft__list_empty(&tasks->ops)) {
        gated_op *first = WEFT_CONTAINER(tasks->ops.next, gated_op, link);
        weft__list_remove(&first->link);
        first->tasks = NULL;
    }
    while (!weft__list_empty(&tasks->all)) {
        gated_task *first = WEFT_CONTAINER(tasks->all.next, gated_task, link);
        tell_waiters(first, &first->repeats, -ECANCELED);
        tell_waiters(first, &first->waiters, -ECANCELED);
        weft__gated_drop(first);
    }
    return weft__free(tasks->alloc, tasks);
}
