/* The engine's life: following the journal, telling the listeners, stopping. Starting is in start.c.
 *
 *     new ──start──▶ folding ──journal read──▶ recovering ──what was running is settled──▶ ready ──stop──▶ stopping ──▶
 * stopped
 *
 * Every event comes in through deliver_event(): applied, told, acted on, in this order. When memory is short it is not
 * applied and not lost: the engine follows on from the last one it has applied. */
#include "engine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent_pool.h"
#include "collections.h"
#include "once.h"

#define MEMORY_AGAIN_MS 50

void weft__note(weft_engine *engine, const char *format, ...) {
    char line[512];
    va_list args;
    if (!engine->opts.on_note)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    engine->opts.on_note(engine->opts.ctx, line);
}

/* Memory comes back soon, a disk that is full or broken does not. */
void weft__again(weft_engine *engine, weft_timer *timer, int r) {
    int64_t wait = r == -ENOMEM ? MEMORY_AGAIN_MS : engine->limits.again_ms;
    weft__timer_set(engine->loop, timer, weft__add_ms(weft_loop_now(engine->loop), wait));
}

/* ---- limits ---- */

static size_t or_size(size_t value, size_t fallback) {
    return value ? value : fallback;
}

static int64_t or_ms(int64_t value, int64_t fallback) {
    return value ? value : fallback;
}

static weft_engine_limits fill_limits(const weft_engine_limits *given) {
    const int64_t second = 1000, day = 24 * 3600 * second;
    weft_engine_limits limits = {
        .max_running = or_size(given->max_running, 4),
        .max_queue = or_size(given->max_queue, 100),
        .max_tasks = or_size(given->max_tasks, 10000),
        .max_sessions = or_size(given->max_sessions, 10000),
        .max_turns = or_size(given->max_turns, 20),
        .max_questions = or_size(given->max_questions, 1000),
        .max_question_bytes = or_size(given->max_question_bytes, 32 << 20),
        .max_requests = or_size(given->max_requests, WEFT_REQUESTS),
        .max_request_bytes = or_size(given->max_request_bytes, WEFT_REQUEST_BYTES),
        .max_items = or_size(given->max_items, WEFT_ITEMS),
        .max_item_changes = or_size(given->max_item_changes, WEFT_ITEM_CHANGES),
        .max_prompt = or_size(given->max_prompt, 1 << 20),
        .timeout_ms = or_ms(given->timeout_ms, 2 * 3600 * second),
        .idle_ms = or_ms(given->idle_ms, 300 * second),
        .talk_idle_ms = given->talk_idle_ms,
        .max_idle = or_size(given->max_idle, 8),
        .grace_ms = or_ms(given->grace_ms, 5 * second),
        .drain_ms = or_ms(given->drain_ms, 10 * second),
        .drain_kill_ms = or_ms(given->drain_kill_ms, 5 * second),
        .question_ms = given->question_ms,
        .retry_ms = or_ms(given->retry_ms, second),
        .again_ms = or_ms(given->again_ms, second),
        .guests_ms = or_ms(given->guests_ms, 10 * second),
        .keep_bytes = given->keep_bytes ? given->keep_bytes : (uint64_t) 1 << 30,
        .keep_ms = or_ms(given->keep_ms, 30 * day),
        .keep_output = given->keep_output ? given->keep_output : (uint64_t) 16 << 20,
        .lease_ms = or_ms(given->lease_ms, 300 * second),
        .past_page = or_size(given->past_page, 64),
        .cost = given->cost,
    };
    return limits;
}

/* ---- listeners ---- */

void weft__engine_listen(weft_engine *engine, weft_event_listener *listener) {
    weft__list_push(&engine->listeners, &listener->link);
}

void weft__engine_unlisten(weft_event_listener *listener) {
    weft__list_remove(&listener->link);
}

/* Two marks in the list make it safe: listeners may go while they are told, and those that come have not heard of it. */
static void tell_listeners(weft_engine *engine, const weft_event *event, const weft_json *data) {
    if (weft__list_empty(&engine->listeners))
        return;
    weft__list_push(&engine->listeners, &engine->listener_stop);
    weft__list_push(engine->listeners.next, &engine->listener_at);
    while (engine->listener_at.next != &engine->listener_stop) {
        weft_link *next = engine->listener_at.next;
        weft__list_remove(&engine->listener_at);
        weft__list_push(next->next, &engine->listener_at);
        weft_event_listener *listener = WEFT_CONTAINER(next, weft_event_listener, link);
        listener->on_event(listener, event, data);
    }
    weft__list_remove(&engine->listener_at);
    weft__list_remove(&engine->listener_stop);
}

/* ---- following ---- */

static int deliver_event(weft_engine *engine, const weft_event *event) {
    static const weft_json nothing;
    weft_doc *doc = NULL;
    int r = weft_doc_parse(event->data.data, event->data.len, engine->alloc, &doc);
    if (r == -ENOMEM)
        return r;
    const weft_json *data = doc ? weft_doc_root(doc) : &nothing;
    weft_members members;
    if (doc)
        weft__doc_index(doc, &members); /* each listener looks for what concerns it */
    r = weft__apply(engine, event, data);
    if (r == -EBADMSG) {
        weft__skip(engine, event);
        r = 0;
    }
    if (r >= 0) {
        engine->applied = event->gseq;
        weft__retention_count(engine, event);
        tell_listeners(engine, event, data);
        weft__act(engine, event, data);
    }
    weft_doc_free(doc);
    return r;
}

static void follow_later(weft_engine *engine) {
    weft__again(engine, &engine->again, -ENOMEM);
}

static void on_events(void *ctx, const weft_event *events, size_t count) {
    weft_engine *engine = ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].gseq <= engine->applied)
            continue;
        if (deliver_event(engine, &events[i]) < 0) {
            engine->follow = weft__follow_free(engine->follow);
            follow_later(engine);
            return;
        }
    }
    weft__journal_settle(engine);
}

static void on_follow_end(void *ctx, int why) {
    weft_engine *engine = ctx;
    engine->follow = NULL;
    if (why != -ECANCELED)
        follow_later(engine);
}

int weft__follow(weft_engine *engine) {
    static const weft_follower follower = {.on_events = on_events, .on_end = on_follow_end};
    /* oldest: trimming one session's stream is no gap in what the engine knows. */
    return weft__store_follow(engine->store, &(weft_query){.after = engine->applied, .oldest = true}, &follower, engine,
                              &engine->follow);
}

/* Memory was short for something that must happen. */
static void on_engine_retry(weft_timer *timer) {
    weft_engine *engine = WEFT_CONTAINER(timer, weft_engine, again);
    if (!engine->follow && weft__follow(engine) < 0)
        follow_later(engine);
    for (weft_link *link = engine->slots.next, *next; link != &engine->slots; link = next) {
        known_task *task = WEFT_CONTAINER(link, known_task, slot);
        next = link->next;
        if (task->pub.state == WEFT_TASK_RUNNING && !task->run && engine->phase >= READY && !engine->opts.copy)
            weft__run_start(engine, task);
    }
}

/* What one turn of the loop appends is one group of the store's: fewer syncs, and the writer is woken once. */
static void release_due(weft_later *later) {
    weft__store_release(WEFT_CONTAINER(later, weft_engine, release_later)->store);
}

static void on_append_held(void *ctx) {
    weft_engine *engine = ctx;
    /* First: the disk works while the rest of the turn is done. */
    weft__later_first(engine->loop, &engine->release_later);
}

static void on_store(void *ctx, unsigned what) {
    weft_engine *engine = ctx;
    (void) what;
    weft__store_dispatch(engine->store);
}

/* ---- answers that are known at once ---- */

typedef struct answer {
    weft_link link;
    weft_task_done *done;
    void *ctx;
    int r;
    char id[ENGINE_ID];
} answer;

int weft__answer_later(weft_engine *engine, const char *id, int r, weft_task_done *done, void *ctx) {
    answer *made = weft__zalloc(engine->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->done = done;
    made->ctx = ctx;
    made->r = r;
    snprintf(made->id, sizeof made->id, "%s", id);
    weft__list_push(&engine->answers, &made->link);
    weft__later(engine->loop, &engine->answer_later);
    return 0;
}

static void run_answers(weft_engine *engine, int r) {
    while (!weft__list_empty(&engine->answers)) {
        answer *first = WEFT_CONTAINER(engine->answers.next, answer, link);
        const weft_task *task = weft__task_find(engine, first->id);
        weft__list_remove(&first->link);
        int result = r < 0 ? r : task ? first->r : -ENOENT;
        if (first->done)
            first->done(first->ctx, result, result < 0 ? NULL : task);
        weft__free(engine->alloc, first);
    }
}

static void answers_due(weft_later *later) {
    run_answers(WEFT_CONTAINER(later, weft_engine, answer_later), 0);
}

void weft__tidy(weft_engine *engine) {
    /* What is forgotten must not be read again, and what is oldest is not known yet. */
    if (engine->past_unread && engine->past_r != -EUCLEAN)
        return;
    weft__task_tidy(engine);
    weft__session_tidy(engine);
    weft__question_tidy(engine);
    weft__requests_tidy(engine);
}

static void tidy_due(weft_later *later) {
    weft__tidy(WEFT_CONTAINER(later, weft_engine, tidy));
}

/* ---- stop ---- */

static void stopped_due(weft_later *later) {
    weft_engine *engine = WEFT_CONTAINER(later, weft_engine, stopped_later);
    void (*on_stopped)(void *) = engine->on_stopped;
    engine->on_stopped = NULL;
    if (on_stopped)
        on_stopped(engine->stopped_ctx);
}

static void hub_stopped(void *ctx, int r) {
    weft_engine *engine = ctx;
    (void) r; /* the next start finds out what it needs without it */
    if (engine->phase == GONE)
        return;
    engine->phase = STOPPED;
    weft__later(engine->loop, &engine->stopped_later);
}

/* What was let go runs elsewhere. */
static bool something_runs(const weft_engine *engine) {
    if (engine->opts.copy)
        return false;
    for (weft_link *link = engine->slots.next; link != &engine->slots; link = link->next)
        if (!WEFT_CONTAINER(link, known_task, slot)->letting_go || WEFT_CONTAINER(link, known_task, slot)->run)
            return true;
    return false;
}

/* When nothing runs, nothing is under way and everything is saved, the last event. */
void weft__stop_check(weft_engine *engine) {
    struct draft draft = {.engine = engine};
    if (engine->phase != STOPPING || engine->stop_sent || something_runs(engine) || !weft__list_empty(&engine->sent) ||
        !weft__pool_empty(engine))
        return;
    if (weft__save_unfinished(engine)) {
        if (!engine->saving)
            weft__save(engine);
        return;
    }
    engine->stop_sent = true;
    weft__draft_add(&draft, WEFT_STREAM_HUB, "hub.stopped",
                    WEFT_OBJ({"observedMs", weft_int(weft__retention_observed(engine))}));
    int r = weft__draft_send(&draft, NULL, hub_stopped, engine);
    if (r < 0)
        hub_stopped(engine, r);
}

static void end_runs(weft_engine *engine) {
    for (weft_link *link = engine->slots.next, *next; link != &engine->slots; link = next) {
        known_task *task = WEFT_CONTAINER(link, known_task, slot);
        next = link->next;
        if (task->letting_go)
            continue;
        task->pub.stopping = true;
        if (task->run)
            weft__run_stop(task->run, engine->force);
    }
    weft__pool_stop(engine, engine->force);
}

/* First the running tasks are asked to end, then those that have not are killed: a stop has an end. */
static void on_drain_over(weft_timer *timer) {
    weft_engine *engine = WEFT_CONTAINER(timer, weft_engine, drain_timer);
    end_runs(engine);
    if (engine->force)
        return;
    engine->force = true;
    weft__timer_set(engine->loop, timer, weft__loop_fresh_now(engine->loop) + engine->limits.drain_kill_ms);
}

void weft__engine_stop(weft_engine *engine, bool force, void (*on_stopped)(void *ctx), void *ctx) {
    engine->on_stopped = on_stopped;
    engine->stopped_ctx = ctx;
    engine->force |= force;
    if (engine->phase == FOLDING || engine->phase == RECOVERING)
        weft__started(engine, -ESHUTDOWN);
    if (engine->phase == STOPPED || engine->phase <= FOLDING) {
        engine->phase = STOPPED;
        weft__later(engine->loop, &engine->stopped_later);
        return;
    }
    engine->phase = STOPPING;
    weft__sessions_soon(engine); /* commands on sessions under way fail */
    weft__timer_set(engine->loop, &engine->queue_timer, INT64_MAX);
    weft__pool_stop(engine, false);
    weft__runners_let_go(engine);
    if (force)
        end_runs(engine);
    else
        weft__timer_set(engine->loop, &engine->drain_timer,
                        weft__add_ms(weft_loop_now(engine->loop), engine->limits.drain_ms));
    weft__stop_check(engine);
}

/* ---- life ---- */

static void init_lists(weft_engine *engine) {
    weft_link *lists[] = {
        &engine->sent,
        &engine->reads,
        &engine->listeners,
        &engine->listener_at,
        &engine->listener_stop,
        &engine->all_tasks,
        &engine->queue,
        &engine->ended,
        &engine->slots,
        &engine->all_sessions,
        &engine->all_questions,
        &engine->answers,
        &engine->queueing_groups,
        &engine->changed,
        &engine->forgotten,
        &engine->forgetting,
        &engine->fired,
        &engine->approvals,
        &engine->transcripts,
        &engine->transcripts_waiting,
        &engine->late_snapshots,
        &engine->prunes,
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        weft__list_init(lists[i]);
    engine->tasks.alloc = engine->keys.alloc = engine->sessions.alloc = engine->questions.alloc = engine->alloc;
    weft__timer_init(&engine->again, on_engine_retry);
    weft__timer_init(&engine->drain_timer, on_drain_over);
    weft__queue_init(engine);
    weft__pool_init(engine);
    weft__roles_init(engine);
    weft__runners_init(engine);
    weft__sessions_init(engine);
    weft__requests_init(engine);
    weft__items_init(engine);
    weft__context_init(engine);
    weft__retention_init(engine);
    weft__past_init(engine);
    weft__later_init(&engine->tidy, tidy_due);
    weft__later_init(&engine->answer_later, answers_due);
    weft__later_init(&engine->release_later, release_due);
    weft__start_init(engine);
    weft__journal_init(engine);
    weft__later_init(&engine->stopped_later, stopped_due);
}

int weft__engine_new(const weft_engine_opts *opts, weft_engine **ret) {
    weft_engine *engine = weft__zalloc(opts->alloc, sizeof *engine);
    const char *folder = opts->folder ? opts->folder : "/";
    if (!engine)
        return -ENOMEM;
    engine->opts = *opts;
    engine->root = -1;
    engine->alloc = opts->alloc;
    engine->loop = opts->loop;
    engine->store = opts->store;
    engine->agents = opts->agents;
    engine->limits = fill_limits(&opts->limits);
    init_lists(engine);
    if (opts->program)
        engine->program = weft__strndup(engine->alloc, opts->program, strlen(opts->program));
    engine->folder = weft__strndup(engine->alloc, folder, strlen(folder));
    int r = (engine->program || !opts->program) && engine->folder ? 0 : -ENOMEM;
    if (r >= 0 && opts->setup)
        r = weft_doc_parse(opts->setup->text, opts->setup->len, engine->alloc, &engine->setup);
    if (r >= 0)
        r = weft__watch_new(engine->loop, weft__store_fd(engine->store), on_store, engine, &engine->watch);
    if (r < 0) {
        weft__engine_free(engine);
        return r;
    }
    weft__store_hold(engine->store, on_append_held, engine);
    *ret = engine;
    return 0;
}

static void free_tasks(weft_engine *engine) {
    while (!weft__list_empty(&engine->all_tasks)) {
        known_task *task = WEFT_CONTAINER(engine->all_tasks.next, known_task, all);
        weft__run_free(task->run);
        weft__waiters_run(engine, &task->waiters, -ECANCELED, NULL);
        weft__task_drop(engine, task);
    }
}

weft_engine *weft__engine_free(weft_engine *engine) {
    if (!engine)
        return NULL;
    engine->phase = GONE;
    weft__store_hold(engine->store, NULL, NULL);
    weft__watch_free(engine->watch);
    weft__follow_free(engine->follow);
    weft__start_drop(engine);
    weft__past_drop(engine);
    weft__journal_drop(engine);
    weft__saved_drop(engine);
    weft__reads_drop(engine);
    weft__transcripts_drop(engine);
    run_answers(engine, -ECANCELED);
    free_tasks(engine);
    weft__pool_drop(engine);
    weft__guests_drop(engine);
    weft__runners_drop(engine);
    weft__erasings_drop(engine);
    weft__changes_drop(engine);
    weft__worktrees_drop(engine);
    weft_doc_free(engine->setup);
    weft__sessions_drop(engine);
    weft__requests_drop(engine);
    weft__items_drop(engine);
    weft__context_drop(engine);
    while (!weft__list_empty(&engine->all_sessions))
        weft__session_drop(engine, WEFT_CONTAINER(engine->all_sessions.next, known_session, link));
    while (!weft__list_empty(&engine->all_questions))
        weft__question_drop(engine, WEFT_CONTAINER(engine->all_questions.next, known_question, link));
    while (!weft__list_empty(&engine->listeners))
        weft__list_remove(engine->listeners.next);
    weft_timer *timers[] = {&engine->again, &engine->queue_timer,   &engine->drain_timer, &engine->retention_timer,
                            &engine->probe, &engine->session_timer, &engine->past_again};
    for (size_t i = 0; i < sizeof timers / sizeof timers[0]; i++)
        weft__timer_stop(engine->loop, timers[i]);
    weft_later *laters[] = {&engine->tidy,          &engine->answer_later, &engine->ready_later,  &engine->stopped_later,
                            &engine->session_later, &engine->pool_later,   &engine->release_later};
    for (size_t i = 0; i < sizeof laters / sizeof laters[0]; i++)
        weft__later_cancel(laters[i]);
    weft_map *maps[] = {&engine->tasks, &engine->keys, &engine->sessions, &engine->questions};
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
        weft__map_done(maps[i]);
    weft__retention_drop(engine);
    weft__firings_drop(engine);
    weft__cost_drop(engine);
    weft__approvals_drop(engine);
    weft__free(engine->alloc, engine->chosen);
    weft__free(engine->alloc, engine->program);
    weft__free(engine->alloc, engine->folder);
    if (engine->root >= 0)
        close(engine->root);
    return weft__free(engine->alloc, engine);
}

void weft__engine_set(weft_engine *engine, const weft_agents *agents, const weft_engine_limits *limits) {
    engine->agents = agents;
    engine->limits = fill_limits(limits);
    weft__pool_recheck(engine);
    weft__later(engine->loop, &engine->tidy);
    weft__queue_run(engine);
}

int weft__engine_append(weft_engine *engine, const char *stream, const char *type, weft_val data,
                        void (*done)(void *ctx, int r), void *ctx) {
    struct draft draft = {.engine = engine};
    if (engine->phase < RECOVERING || engine->phase >= STOPPED)
        return engine->phase < RECOVERING ? -EAGAIN : -ESHUTDOWN;
    weft__draft_add(&draft, stream, type, data);
    return weft__draft_send(&draft, NULL, done, ctx);
}

int weft__engine_change(weft_engine *engine, const weft_engine_change *change, void (*done)(void *ctx, int r), void *ctx) {
    struct draft draft = {.engine = engine,
                          .counter = change->counter,
                          .number = change->number,
                          .document = change->documents,
                          .documents = change->document_count};
    if (engine->phase < RECOVERING || engine->phase >= STOPPED)
        return engine->phase < RECOVERING ? -EAGAIN : -ESHUTDOWN;
    for (size_t i = 0; i < change->count; i++)
        weft__draft_add(&draft, change->stream, change->types[i], change->data[i]);
    return weft__draft_send(&draft, NULL, done, ctx);
}

uint64_t weft__engine_skipped(const weft_engine *engine) {
    return engine->skipped;
}

const weft_engine_limits *weft__engine_limits(const weft_engine *engine) {
    return &engine->limits;
}

const weft_agents *weft__engine_agents(const weft_engine *engine) {
    return engine->agents;
}

weft_loop *weft__engine_loop(const weft_engine *engine) {
    return engine->loop;
}

weft_store *weft__engine_store(const weft_engine *engine) {
    return engine->store;
}

const char *weft__engine_folder(const weft_engine *engine) {
    return engine->folder;
}

const weft_alloc *weft__engine_alloc(const weft_engine *engine) {
    return engine->alloc;
}

int64_t weft__engine_now(const weft_engine *engine) {
    struct timespec now;
    if (engine->opts.wall_ms)
        return engine->opts.wall_ms(engine->opts.ctx);
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int weft__engine_trouble(const weft_engine *engine) {
    return engine->trouble < 0 ? engine->trouble : weft__store_look(engine->store);
}
