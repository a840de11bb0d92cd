/* Life, commands, and who waits for what. */
#include "plans.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plans_private.h"

const char *const weft__plan_states[WEFT_PLAN_STATES] = {"created", "running", "completed", "failed", "cancelled"};
const char *const weft__step_states[WEFT_STEP_STATES] = {"waiting", "queued",    "running", "completed",
                                                         "failed",  "cancelled", "skipped"};

void weft__plans_note(const weft_plans *plans, const char *format, ...) {
    char line[512];
    va_list args;
    if (!plans->opts.on_note)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    plans->opts.on_note(plans->opts.ctx, line);
}

void weft__plan_name(char ret[WEFT_PLAN_ID], uint64_t number) {
    snprintf(ret, WEFT_PLAN_ID, "plan_%08" PRIx32, (uint32_t) number);
}

bool weft__plan_is_shown(const known_plan *known) {
    return known->stored && !known->leaving && !known->stale;
}

bool weft__plan_is_over(weft_plan_state state) {
    return state >= WEFT_PLAN_COMPLETED;
}

bool weft__step_is_over(weft_step_state state) {
    return state >= WEFT_STEP_COMPLETED;
}

/* ---- calls of the engine's ---- */

plan_op *weft__plan_op(known_plan *plan, size_t step) {
    plan_op *made = weft__zalloc(plan->plans->alloc, sizeof *made);
    if (!made)
        return NULL;
    *made = (plan_op){.plans = plan->plans, .alloc = plan->plans->alloc, .plan = plan, .step = step};
    weft__list_push(&plan->plans->ops, &made->link);
    return made;
}

known_plan *weft__plan_op_end(plan_op *op, size_t *ret_step) {
    known_plan *plan = op->plans ? op->plan : NULL;
    if (ret_step)
        *ret_step = op->step;
    weft__list_remove(&op->link);
    weft__free(op->alloc, op);
    return plan;
}

/* ---- one plan ---- */

static void init_plan(known_plan *known) {
    weft__list_init(&known->link);
    weft__list_init(&known->starters);
    weft__list_init(&known->waiters);
    weft__later_init(&known->look, weft__plan_look_due);
    weft__timer_init(&known->again, weft__plan_again_due);
    weft__timer_init(&known->limit, weft__plan_limit_due);
}

known_plan *weft__plan_make(weft_plans *plans, weft_plan *plan, uint64_t number, const char *by) {
    size_t len = by ? strlen(by) : 0;
    known_plan *known = weft__zalloc(plans->alloc, sizeof *known + len + 1);
    if (!known)
        return NULL;
    init_plan(known);
    known->plans = plans;
    known->steps = weft__zalloc(plans->alloc, plan->count * sizeof *known->steps);
    known->next = weft__zalloc(plans->alloc, plan->count * sizeof *known->next);
    known->work = weft__zalloc(plans->alloc, plan->count * sizeof *known->work);
    if (!known->steps || !known->next || !known->work)
        return weft__plan_drop(known);
    if (len)
        memcpy(known->by, by, len);
    weft__plan_name(known->id, number);
    known->plan = plan;
    known->bytes = sizeof *known + len + plan->bytes + plan->count * (2 * sizeof *known->steps + sizeof *known->work);
    known->pub = (weft_planned){.id = known->id,
                                .number = number,
                                .plan = plan,
                                .steps = known->steps,
                                .by = known->by,
                                .time_limit_ms = plan->time_limit_s * 1000};
    return known;
}

known_plan *weft__plan_drop(known_plan *known) {
    weft_plans *plans = known->plans;
    if (!weft__list_empty(&known->link)) {
        plans->count--;
        plans->bytes -= known->bytes;
    }
    weft__list_remove(&known->link);
    weft__later_cancel(&known->look);
    weft__timer_stop(plans->loop, &known->again);
    weft__timer_stop(plans->loop, &known->limit);
    weft__free(plans->alloc, known->steps);
    weft__free(plans->alloc, known->next);
    weft__free(plans->alloc, known->work);
    weft__free(plans->alloc, known->start_by);
    weft__free(plans->alloc, known->stop_by);
    weft__plan_free(known->plan);
    return weft__free(plans->alloc, known);
}

void weft__plan_show(known_plan *known) {
    weft_plans *plans = known->plans;
    weft__list_push(&plans->all, &known->link);
    plans->count++;
    plans->bytes += known->bytes;
}

known_plan *weft__plan_known(const weft_plans *plans, const char *id) {
    for (weft_link *link = plans->all.prev; link != &plans->all; link = link->prev) {
        known_plan *known = WEFT_CONTAINER(link, known_plan, link);
        if (strcmp(known->id, id) == 0)
            return weft__plan_is_shown(known) ? known : NULL;
    }
    return NULL;
}

/* ---- making one ---- */

typedef struct creation {
    plan_op *op;
    known_plan *plan;
    weft_plan_done *done;
    void *ctx;
    int tries;
    const weft_alloc *alloc;
} creation;

enum { MOST_LEAVING = 16 }; /* make room for one more at a time; the rest follow with the next ones */

static bool may_leave(const known_plan *known) {
    return known->stored && !known->leaving && !known->sending && known->pub.state != WEFT_PLAN_RUNNING && !known->want_run;
}

/* The oldest that may go, beyond what may stay when this one comes. They are marked. */
static size_t choose_leaving(weft_plans *plans, const known_plan *comes, known_plan *ret[MOST_LEAVING]) {
    size_t n = 0, count = plans->count, bytes = plans->bytes;
    for (weft_link *link = plans->all.next; link != &plans->all && n < MOST_LEAVING; link = link->next) {
        known_plan *known = WEFT_CONTAINER(link, known_plan, link);
        bool full = count >= WEFT_PLANS || bytes + comes->bytes > WEFT_PLANS_BYTES;
        if ((!full && !known->stale) || !may_leave(known))
            continue;
        known->leaving = comes->pub.number;
        ret[n++] = known;
        count--;
        bytes -= known->bytes;
    }
    return n;
}

static uint64_t first_that_stays(const weft_plans *plans, uint64_t fallback) {
    for (weft_link *link = plans->all.next; link != &plans->all; link = link->next) {
        const known_plan *known = WEFT_CONTAINER(link, known_plan, link);
        if (!known->leaving)
            return known->pub.number < fallback ? known->pub.number : fallback;
    }
    return fallback;
}

/* Those that were to make room: they are gone, or stay. */
static void settle_leaving(weft_plans *plans, uint64_t number, bool gone) {
    for (weft_link *link = plans->all.next, *next; link != &plans->all; link = next) {
        known_plan *known = WEFT_CONTAINER(link, known_plan, link);
        next = link->next;
        if (known->leaving != number)
            continue;
        if (gone)
            weft__plan_drop(known);
        else
            known->leaving = 0;
    }
}

static void creation_stored(void *ctx, int r);

/* The documents of an append that makes a plan, with their texts. */
typedef struct creation_texts {
    char keys[2 + 2 * MOST_LEAVING][PLANS_KEY];
    weft_document documents[2 + 2 * MOST_LEAVING];
    size_t count;
    weft_buf plan, index;
} creation_texts;

static int fill_creation(weft_plans *plans, known_plan *known, creation_texts *texts) {
    known_plan *leaving[MOST_LEAVING];
    size_t n = choose_leaving(plans, known, leaving);
    int r = weft__plan_write_saved(known, &texts->plan);
    if (r >= 0)
        r = weft__plans_write_index(plans, first_that_stays(plans, known->pub.number), known->pub.number + 1, &texts->index);
    if (r < 0)
        return r;
    weft__plan_keys(known, texts->keys[0], texts->keys[1]);
    texts->documents[0] = (weft_document){texts->keys[0], {weft__buf_head(&texts->plan), weft__buf_len(&texts->plan)}};
    texts->documents[1] = (weft_document){PLANS_INDEX, {weft__buf_head(&texts->index), weft__buf_len(&texts->index)}};
    texts->count = 2;
    for (size_t i = 0; i < n; i++) {
        char(*keys)[PLANS_KEY] = &texts->keys[texts->count];
        weft__plan_keys(leaving[i], keys[0], keys[1]);
        texts->documents[texts->count++] = (weft_document){.key = keys[0]};
        texts->documents[texts->count++] = (weft_document){.key = keys[1]};
    }
    return 0;
}

static int send_creation(creation *made) {
    static const char *const type = "plan.created";
    known_plan *known = made->plan;
    weft_plans *plans = known->plans;
    creation_texts texts = {0};
    known->pub.created_ms = weft__engine_now(plans->engine);
    known->at = weft__store_head(weft__engine_store(plans->engine));
    int r = fill_creation(plans, known, &texts);
    weft_val data =
        WEFT_OBJ({"planId", weft_str(known->id)}, {"request", weft_str(known->plan->request)},
                 {"tasks", weft_uint(known->plan->count)}, {"by", *known->by ? weft_str(known->by) : weft_none()});
    if (r >= 0)
        r = weft__engine_change(plans->engine,
                                &(weft_engine_change){.stream = WEFT_STREAM_PLANS,
                                                      .types = &type,
                                                      .data = &data,
                                                      .count = 1,
                                                      .documents = texts.documents,
                                                      .document_count = texts.count,
                                                      .counter = PLANS_COUNTER,
                                                      .number = known->pub.number},
                                creation_stored, made);
    weft__buf_done(&texts.plan, plans->alloc);
    weft__buf_done(&texts.index, plans->alloc);
    if (r < 0)
        settle_leaving(plans, known->pub.number, false);
    return r;
}

/* Another writer took its number. */
static int create_again(creation *made) {
    known_plan *known = made->plan;
    weft_plans *plans = known->plans;
    if (++made->tries >= PLANS_TRIES || plans->next_number >= PLANS_NUMBERS)
        return -EAGAIN;
    settle_leaving(plans, known->pub.number, false);
    known->pub.number = plans->next_number++;
    weft__plan_name(known->id, known->pub.number);
    return send_creation(made);
}

static void creation_stored(void *ctx, int r) {
    creation *made = ctx;
    known_plan *known = made->op->plans ? made->plan : NULL;
    if (known && r == -EAGAIN && (r = create_again(made)) == 0)
        return;
    weft_plans *plans = made->op->plans;
    weft_plan_done *done = made->done;
    void *done_ctx = made->ctx;
    weft__plan_op_end(made->op, NULL);
    weft__free(made->alloc, made);
    if (!plans) {
        done(done_ctx, -ECANCELED, NULL);
        return;
    }
    settle_leaving(plans, known->pub.number, r >= 0);
    if (r >= 0)
        known->stored = true;
    else
        known = weft__plan_drop(known);
    done(done_ctx, r < 0 ? r : 0, known ? &known->pub : NULL);
}

int weft__plans_create(weft_plans *plans, weft_plan *plan, const char *by, weft_plan_done *done, void *ctx) {
    if (!plans->ready)
        return -EAGAIN;
    if (plans->next_number >= PLANS_NUMBERS)
        return -EOVERFLOW;
    creation *made = weft__zalloc(plans->alloc, sizeof *made);
    known_plan *known = made ? weft__plan_make(plans, plan, plans->next_number, by) : NULL;
    plan_op *op = known ? weft__plan_op(known, 0) : NULL;
    int r = op ? 0 : -ENOMEM;
    if (r >= 0) {
        *made = (creation){.op = op, .plan = known, .done = done, .ctx = ctx, .alloc = plans->alloc};
        plans->next_number++;
        r = send_creation(made);
    }
    if (r >= 0) {
        weft__plan_show(known);
        return 0;
    }
    if (op)
        weft__plan_op_end(op, NULL);
    if (known)
        known->plan = NULL; /* it stays the caller's */
    if (known)
        weft__plan_drop(known);
    weft__free(plans->alloc, made);
    return r;
}

/* ---- running and ending one ---- */

static int find_plan(weft_plans *plans, const char *id, known_plan **ret) {
    if (!plans->ready)
        return -EAGAIN;
    *ret = weft__plan_known(plans, id);
    return *ret ? 0 : -ENOENT;
}

int weft__plans_run(weft_plans *plans, const char *id, int64_t time_limit_s, const char *by, weft_plan_done *done,
                    void *ctx) {
    known_plan *known;
    int r = find_plan(plans, id, &known);
    if (r < 0)
        return r;
    if (known->pub.state != WEFT_PLAN_CREATED || known->want_run || known->want_stop)
        return -EALREADY;
    if (plans->running >= WEFT_PLANS_RUNNING)
        return -EUSERS;
    starter *made = weft__zalloc(plans->alloc, sizeof *made);
    char *who = NULL;
    if (!made || weft__copy_or_null(plans->alloc, by, &who) < 0) {
        weft__free(plans->alloc, made);
        return -ENOMEM;
    }
    weft__free(plans->alloc, known->start_by);
    known->start_by = who;
    *made = (starter){.done = done, .ctx = ctx};
    weft__list_push(&known->starters, &made->link);
    int64_t own = known->plan->time_limit_s;
    int64_t limit = !time_limit_s ? own : own && own < time_limit_s ? own : time_limit_s;
    known->next_limit = limit * 1000;
    known->want_run = true;
    plans->running++;
    weft__plan_look(known);
    return 0;
}

typedef struct ender {
    weft_plan_waiter waiter;
    const weft_alloc *alloc;
    weft_plan_done *done;
    void *ctx;
} ender;

static void tell_ender(weft_plan_waiter *waiter, const weft_planned *planned) {
    ender *end = WEFT_CONTAINER(waiter, ender, waiter);
    end->done(end->ctx, planned ? 0 : -ECANCELED, planned);
    weft__free(end->alloc, end);
}

int weft__plans_cancel(weft_plans *plans, const char *id, const char *by, weft_plan_done *done, void *ctx) {
    known_plan *known;
    int r = find_plan(plans, id, &known);
    if (r < 0)
        return r;
    if (weft__plan_is_over(known->pub.state))
        return -EALREADY;
    ender *made = weft__zalloc(plans->alloc, sizeof *made);
    char *who = NULL;
    if (!made || weft__copy_or_null(plans->alloc, by, &who) < 0) {
        weft__free(plans->alloc, made);
        return -ENOMEM;
    }
    *made = (ender){.waiter = {.on_end = tell_ender}, .alloc = plans->alloc, .done = done, .ctx = ctx};
    weft__list_push(&known->waiters, &made->waiter.link);
    if (known->want_stop)
        weft__free(plans->alloc, who);
    else
        known->stop_by = who;
    if (!known->want_stop)
        known->want_stop = "cancelled";
    weft__plan_look(known);
    return 0;
}

int weft__plans_await(weft_plans *plans, const char *id, weft_plan_waiter *waiter) {
    known_plan *known;
    int r = find_plan(plans, id, &known);
    if (r < 0)
        return r;
    if (weft__plan_is_over(known->pub.state))
        return -EALREADY;
    weft__list_push(&known->waiters, &waiter->link);
    return 0;
}

/* ---- looking ---- */

const weft_planned *weft__plans_find(const weft_plans *plans, const char *id) {
    const known_plan *known = weft__plan_known(plans, id);
    return known ? &known->pub : NULL;
}

static const weft_planned *shown_before(const weft_plans *plans, const weft_link *link) {
    for (link = link->prev; link != &plans->all; link = link->prev) {
        const known_plan *known = WEFT_CONTAINER(link, known_plan, link);
        if (weft__plan_is_shown(known))
            return &known->pub;
    }
    return NULL;
}

const weft_planned *weft__plans_newest(const weft_plans *plans) {
    return shown_before(plans, &plans->all);
}

const weft_planned *weft__plans_older(const weft_plans *plans, const weft_planned *planned) {
    return shown_before(plans, &WEFT_CONTAINER(planned, known_plan, pub)->link);
}

/* ---- life ---- */

static void tell_ready(weft_later *later) {
    weft_plans *plans = WEFT_CONTAINER(later, weft_plans, ready_later);
    plans->on_ready(plans->ready_ctx, plans->ready_r);
}

static void resume_all(weft_plans *plans) {
    for (weft_link *link = plans->all.next; link != &plans->all; link = link->next)
        weft__plan_resume(WEFT_CONTAINER(link, known_plan, link));
}

void weft__plans_look_at_ended(const weft_plans *plans) {
    for (weft_link *link = plans->all.next; link != &plans->all; link = link->next) {
        known_plan *known = WEFT_CONTAINER(link, known_plan, link);
        if (weft__plan_is_over(known->pub.state))
            weft__plan_look(known);
    }
}

static void on_past(weft_past_waiter *waiter, int r) {
    weft_plans *plans = WEFT_CONTAINER(waiter, weft_plans, past);
    r = r < 0 ? weft__engine_past(plans->engine) : 0;
    if (r == 0) {
        resume_all(plans);
        weft__plans_look_at_ended(plans);
    } else if (r == -EAGAIN)
        weft__engine_await_past(plans->engine, waiter);
    else if (plans->running)
        weft__plans_note(plans, "plans that were running cannot go on: what is known of old tasks is damaged");
}

static void read_later(weft_plans *plans, int r) {
    int64_t wait = r == -ENOMEM ? PLANS_MEMORY_MS : weft__engine_limits(plans->engine)->again_ms;
    weft__timer_set(plans->loop, &plans->read_again, weft__add_ms(weft_loop_now(plans->loop), wait));
}

static void on_read_due(weft_timer *timer) {
    weft_plans *plans = WEFT_CONTAINER(timer, weft_plans, read_again);
    int r = weft__plans_read(plans);
    if (r < 0)
        read_later(plans, r);
}

/* A part of them is none: it is all read again. */
static void forget_read(weft_plans *plans) {
    while (!weft__list_empty(&plans->all))
        weft__plan_drop(WEFT_CONTAINER(plans->all.next, known_plan, link));
    plans->running = 0;
}

/* What a plan was doing is found among the tasks, of which some may be of the past. */
void weft__plans_read_end(weft_plans *plans, int r) {
    plans->ready = r >= 0;
    if (!plans->ready_told) {
        plans->ready_told = true;
        plans->ready_r = r;
        weft__later(plans->loop, &plans->ready_later);
    }
    if (r < 0) {
        forget_read(plans);
        if (r != -ECANCELED)
            read_later(plans, r);
        return;
    }
    weft__engine_listen(plans->engine, &plans->listener);
    weft__engine_erase_too(plans->engine, weft__plans_erase_too, plans);
    if (weft__engine_past(plans->engine) < 0)
        weft__engine_await_past(plans->engine, &plans->past);
    else
        on_past(&plans->past, 0);
}

int weft__plans_new(const weft_plans_opts *opts, void (*on_ready)(void *ctx, int r), void *ctx, weft_plans **ret) {
    const weft_alloc *alloc = weft__engine_alloc(opts->engine);
    weft_plans *plans = weft__zalloc(alloc, sizeof *plans);
    if (!plans)
        return -ENOMEM;
    plans->engine = opts->engine;
    plans->loop = weft__engine_loop(opts->engine);
    plans->alloc = alloc;
    plans->opts = *opts;
    plans->on_ready = on_ready;
    plans->ready_ctx = ctx;
    plans->next_number = 1;
    plans->listener.on_event = weft__plans_hear;
    plans->past.on_past = on_past;
    weft__list_init(&plans->all);
    weft__list_init(&plans->ops);
    weft__list_init(&plans->listener.link);
    weft__list_init(&plans->past.link);
    weft__later_init(&plans->ready_later, tell_ready);
    weft__timer_init(&plans->read_again, on_read_due);
    int r = weft__plans_read(plans);
    if (r < 0)
        weft__free(alloc, plans);
    else
        *ret = plans;
    return r;
}

static void tell_gone(known_plan *known) {
    while (!weft__list_empty(&known->starters)) {
        starter *first = WEFT_CONTAINER(known->starters.next, starter, link);
        weft__list_remove(&first->link);
        first->done(first->ctx, -ECANCELED, NULL);
        weft__free(known->plans->alloc, first);
    }
    while (!weft__list_empty(&known->waiters)) {
        weft_plan_waiter *first = WEFT_CONTAINER(known->waiters.next, weft_plan_waiter, link);
        weft__list_remove(&first->link);
        first->on_end(first, NULL);
    }
}

weft_plans *weft__plans_free(weft_plans *plans) {
    if (!plans)
        return NULL;
    weft__plans_read_drop(plans);
    weft__engine_unlisten(&plans->listener);
    weft__engine_erase_too(plans->engine, NULL, NULL);
    weft__list_remove(&plans->past.link);
    weft__later_cancel(&plans->ready_later);
    weft__timer_stop(plans->loop, &plans->read_again);
    while (!weft__list_empty(&plans->ops)) {
        plan_op *first = WEFT_CONTAINER(plans->ops.next, plan_op, link);
        weft__list_remove(&first->link);
        first->plans = NULL;
    }
    while (!weft__list_empty(&plans->all)) {
        known_plan *first = WEFT_CONTAINER(plans->all.next, known_plan, link);
        tell_gone(first);
        weft__plan_drop(first);
    }
    return weft__free(plans->alloc, plans);
}
