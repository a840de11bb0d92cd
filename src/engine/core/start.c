/* Starting: what was saved is read, then the journal from there on, page by page, then what was running when the last daemon
 * ended is settled, durably, before anybody is told that the engine is ready. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "engine_private.h"

#define FOLD_PAGE 1024     /* events */
#define RECOVER_EVENTS 500 /* of one append */

/* ---- ready ---- */

static void ready_due(weft_later *later) {
    weft_engine *engine = WEFT_CONTAINER(later, weft_engine, ready_later);
    void (*on_ready)(void *, int) = engine->on_ready;
    engine->on_ready = NULL;
    if (engine->ready_r >= 0)
        weft__queue_run(engine);
    if (on_ready)
        on_ready(engine->ready_ctx, engine->ready_r);
}

void weft__started(weft_engine *engine, int r) {
    engine->ready_r = r;
    if (r >= 0 && engine->phase == RECOVERING) {
        engine->phase = READY;
        engine->guests_due = weft__add_ms(weft_loop_now(engine->loop), engine->limits.guests_ms);
        weft__retention_begin(engine);
        weft__past_begin(engine);
        weft__changes_started(engine);
        if (!engine->opts.copy)
            weft__runners_take_up(engine);
        weft__save_if_due(engine); /* a long journal was read */
    }
    weft__later(engine->loop, &engine->ready_later);
    weft__stop_check(engine);
}

/* ---- what was running ---- */

static void draft_lost(struct draft *draft, known_task *task) {
    const weft_task *pub = &task->pub;
    if (weft__task_survives(task))
        weft__draft_add(draft, WEFT_STREAM_HUB, "task.retrying",
                        WEFT_OBJ({"taskId", weft_str(pub->id)}, {"sessionId", weft_str(pub->session)},
                                 {"attempt", weft_int(pub->attempt)}, {"delayMs", weft_int(0)},
                                 {"error", weft_str("The daemon stopped while it ran.")},
                                 {"reason", weft_str("daemonRestarted")},
                                 {"resumes", weft__task_resumes(task) ? weft_bool(true) : weft_none()}));
    else
        weft__draft_add(
            draft, WEFT_STREAM_HUB, "task.failed",
            WEFT_OBJ({"taskId", weft_str(pub->id)}, {"sessionId", weft_str(pub->session)},
                     {"error", weft_str("The daemon stopped while it ran.")}, {"reason", weft_str("daemonRestarted")},
                     {"output", weft_strn(pub->tail.data, pub->tail.len)}, {"outputBytes", weft_uint(pub->output_bytes)},
                     {"outputFrom", task->output_from ? weft_uint(task->output_from) : weft_none()},
                     {"outputTo", task->output_from ? weft_uint(task->output_to) : weft_none()},
                     {"outputTruncated", pub->output_cut ? weft_bool(true) : weft_none()}));
}

static void recover_next_piece(weft_engine *engine);

static void on_piece_recovered(void *ctx, int r) {
    weft_engine *engine = ctx;
    if (engine->phase == GONE)
        return;
    if (r < 0)
        weft__started(engine, r);
    else
        recover_next_piece(engine);
}

/* Not before what ran is settled: a question of a task that has ended would expire and be withdrawn. */
static void set_expiries(weft_engine *engine) {
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next)
        weft__question_set_expiry(engine, WEFT_CONTAINER(link, known_question, link));
}

static void hub_started(void *ctx, int r) {
    weft_engine *engine = ctx;
    if (engine->phase == GONE)
        return;
    if (r >= 0 && !engine->opts.copy)
        set_expiries(engine);
    weft__started(engine, r);
}

/* Its task waits to run again: it stays open, and is that run's when it asks the same. Its task has ended: it is over. */
static void draft_left_open(struct draft *draft, const known_question *question) {
    const known_task *task = weft__task_known(draft->engine, question->pub.task);
    bool again = task && task->pub.state < WEFT_TASK_COMPLETED;
    if (again && question->pub.orphaned)
        return;
    weft__draft_add(draft, WEFT_STREAM_HUB, again ? "question.orphaned" : "question.withdrawn",
                    WEFT_OBJ(WEFT_OF_QUESTION(question), {"reason", again ? weft_none() : weft_str("taskEnded")}));
}

/* Tasks first: what becomes of them decides what becomes of their questions. */
static void draft_recovery(struct draft *draft) {
    weft_engine *engine = draft->engine;
    if (engine->opts.copy) /* what runs there has not ended with us */
        return;
    for (weft_link *link = engine->slots.next; link != &engine->slots && draft->count < RECOVER_EVENTS; link = link->next)
        if (!weft__task_is_lent(WEFT_CONTAINER(link, known_task, slot))) /* those go on at their runners */
            draft_lost(draft, WEFT_CONTAINER(link, known_task, slot));
    if (draft->count)
        return;
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions && draft->count < RECOVER_EVENTS;
         link = link->next) {
        known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (question->pub.state == WEFT_QUESTION_OPEN && question->pub.task)
            draft_left_open(draft, question);
    }
}

/* What ran is settled, piece by piece; each piece that was applied is no longer found by the next. */
static void recover_next_piece(weft_engine *engine) {
    struct draft draft = {.engine = engine};
    sent_done *done = on_piece_recovered;
    draft_recovery(&draft);
    if (!draft.count && draft.r >= 0) {
        done = hub_started;
        weft__draft_add(&draft, WEFT_STREAM_HUB, "hub.started",
                        WEFT_OBJ({"pid", weft_int(getpid())}, {"version", weft_str(weft_version())},
                                 {"hub", weft_str_or_none(engine->opts.name)}));
    }
    int r = weft__draft_send(&draft, NULL, done, engine);
    if (r < 0)
        weft__started(engine, r);
}

static void on_folded(weft_engine *engine) {
    engine->phase = RECOVERING;
    int r = weft__follow(engine);
    if (r < 0)
        weft__started(engine, r);
    else
        recover_next_piece(engine);
}

/* ---- reading the journal ---- */

/* Outlives the engine when that is freed while a page is under way. */
typedef struct folding {
    weft_engine *engine; /* NULL: it is gone */
    const weft_alloc *alloc;
    const char *stream; /* NULL: what is saved */
    bool hub_only;      /* of that, the hub's document */
    bool rest;          /* of that, what is not known yet */
    uint64_t after;
    uint64_t saved_seq; /* of the hub's stream: what was saved knows the events up to here */
    int r;              /* what went wrong, while the next page was already on its way */
} folding;

/* Documents of earlier versions do not say what rules did: the events do, as far as they are kept. */
static bool is_saved_already(const folding *fold, const weft_event *event) {
    return strcmp(fold->stream, WEFT_STREAM_HUB) == 0 && event->seq <= fold->saved_seq &&
           strcmp(event->type, "rule.fired") != 0;
}

static int fold_event(const folding *fold, const weft_event *event) {
    static const weft_json nothing;
    weft_engine *engine = fold->engine;
    weft_doc *doc = NULL;
    if (is_saved_already(fold, event))
        return 0;
    int r = weft_doc_parse(event->data.data, event->data.len, engine->alloc, &doc);
    if (r == -ENOMEM)
        return r;
    r = weft__apply(engine, event, doc ? weft_doc_root(doc) : &nothing);
    weft_doc_free(doc);
    if (r != -EBADMSG)
        return r;
    weft__skip(engine, event);
    return 0;
}

static int next_page(folding *fold);

/* After the hub's stream, what the tasks said that were running: few, and their end should not say less than they did. A
 * session is marked, because a journal that was tampered with may have several running tasks in one. */
static const char *next_stream(const weft_engine *engine) {
    for (weft_link *link = engine->slots.next; link != &engine->slots; link = link->next) {
        known_session *session = WEFT_CONTAINER(link, known_task, slot)->session;
        if (session && !session->read_back) {
            session->read_back = true;
            return session->stream;
        }
    }
    return NULL;
}

/* What a session said is trimmed from its old end: its first event that is kept may not be its task's first. */
static int note_trimmed(weft_engine *engine, const weft_page *page) {
    weft_doc *doc;
    int r = weft_doc_parse(page->events[0].data.data, page->events[0].data.len, engine->alloc, &doc);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    known_task *task = weft__task_of(engine, weft_doc_root(doc));
    if (task && task->pub.state == WEFT_TASK_RUNNING)
        task->pub.output_cut = true;
    weft_doc_free(doc);
    return 0;
}

/* What was saved is known: the events behind it are next. */
static void begin_events(folding *fold) {
    weft_engine *engine = fold->engine;
    weft__saved_restored(engine);
    fold->stream = WEFT_STREAM_HUB;
    fold->saved_seq = engine->hub_seq;
    fold->after = engine->firings_saved ? engine->hub_seq : 0;
}

/* The hub's document alone is enough, or all are read. 0, <0. */
static int take_hub_document(folding *fold, const weft_page *page) {
    int r = page->count ? weft__saved_restore_open(fold->engine, &page->events[0]) : 0;
    fold->hub_only = false;
    fold->after = 0;
    if (r > 0)
        begin_events(fold);
    return r < 0 ? r : next_page(fold);
}

/* 1 everything is read, 0 more to come, <0. */
static int choose_next_page(folding *fold, const weft_page *page) {
    weft_engine *engine = fold->engine;
    fold->after = page->last;
    if (!page->more && !fold->stream)
        begin_events(fold);
    else if (!page->more) {
        fold->stream = next_stream(engine);
        fold->after = 0;
    }
    return fold->stream || page->more ? next_page(fold) : 1;
}

/* After a clean stop there is nothing behind what was saved but that. Anything else may be about the past. */
static bool needs_past(const folding *fold, const weft_page *page) {
    bool needed = false;
    for (size_t i = 0; fold->engine->past_unread && fold->stream && i < page->count; i++)
        needed |= strcmp(page->events[i].type, "hub.stopped") != 0 && strcmp(page->events[i].type, "hub.started") != 0;
    return needed;
}

static int read_past_first(folding *fold) {
    fold->engine->past_unread = false;
    fold->rest = true;
    fold->stream = NULL;
    fold->after = 0;
    return next_page(fold);
}

static int restore_saved(const folding *fold, const weft_event *document) {
    weft_engine *engine = fold->engine;
    if (!fold->rest)
        return weft__saved_restore(engine, document);
    engine->past_restoring = true;
    int r = weft__saved_restore_past(engine, document);
    engine->past_restoring = false;
    return r;
}

static void forget_trimmed(weft_engine *engine, uint64_t seq) {
    engine->past_trimmed = seq;
    if (!engine->past_unread)
        weft__task_forget_trimmed(engine, seq);
}

/* r 1: everything is read. */
static void end_folding(folding *fold, int r) {
    weft_engine *engine = fold->engine;
    engine->folding = weft__free(engine->alloc, fold);
    if (r < 0)
        weft__started(engine, r);
    else
        on_folded(engine);
}

static void on_fold_page(void *ctx, int r, const weft_page *page) {
    folding *fold = ctx;
    weft_engine *engine = fold->engine;
    if (!engine || engine->phase != FOLDING) {
        if (engine)
            engine->folding = NULL;
        weft__free(fold->alloc, fold);
        return;
    }
    if (r == 0)
        r = fold->r;
    if (r == 0 && (fold->hub_only || needs_past(fold, page))) {
        r = fold->hub_only ? take_hub_document(fold, page) : read_past_first(fold);
        if (r < 0)
            end_folding(fold, r);
        return;
    }
    /* The next page of what was saved is read while this one is taken in. */
    bool ahead = r == 0 && !fold->stream && page->more;
    if (ahead) {
        fold->after = page->last;
        r = next_page(fold);
        ahead = r == 0;
    }
    for (size_t i = 0; r == 0 && i < page->count; i++)
        r = fold->stream ? fold_event(fold, &page->events[i]) : restore_saved(fold, &page->events[i]);
    if (r == 0 && fold->stream && strcmp(fold->stream, WEFT_STREAM_HUB) != 0 && !fold->after && page->count && page->trimmed)
        r = note_trimmed(engine, page);
    if (r == 0 && fold->stream && strcmp(fold->stream, WEFT_STREAM_HUB) == 0)
        forget_trimmed(engine, page->trimmed);
    weft__tidy(engine);
    if (ahead) {
        fold->r = r;
        return;
    }
    if (r > 0) /* a gap, which there cannot be: it is read from the oldest on */
        r = -EIO;
    if (r == 0)
        r = choose_next_page(fold, page);
    if (r != 0)
        end_folding(fold, r);
}

static int next_page(folding *fold) {
    weft_query query = {
        .stream = fold->hub_only ? WEFT_SAVED_HUB : fold->stream,
        .after = fold->after,
        .until = fold->stream ? fold->engine->applied : 0,
        .documents = !fold->stream,
        .oldest = true,
        .max_events = FOLD_PAGE,
        .max_bytes = 1 << 20,
    };
    return weft__store_read(fold->engine->store, &query, on_fold_page, fold);
}

int weft__engine_start(weft_engine *engine, void (*on_ready)(void *ctx, int r), void *ctx) {
    assert(engine->phase == NEW);
    folding *fold = weft__zalloc(engine->alloc, sizeof *fold);
    if (!fold)
        return -ENOMEM;
    fold->engine = engine;
    fold->alloc = engine->alloc;
    fold->hub_only = engine->opts.early;
    engine->applied = weft__store_head(engine->store);
    engine->fresh = engine->applied == 0;
    int r = weft__watch_set(engine->watch, WEFT_WATCH_READ);
    /* An empty journal needs no reading; until 0 would mean all of it. */
    if (r >= 0 && engine->applied)
        r = next_page(fold);
    if (r < 0 || !engine->applied)
        weft__free(engine->alloc, fold);
    else
        engine->folding = fold;
    if (r < 0)
        return r;
    engine->phase = FOLDING;
    engine->on_ready = on_ready;
    engine->ready_ctx = ctx;
    if (!engine->folding)
        on_folded(engine);
    return 0;
}

void weft__start_init(weft_engine *engine) {
    weft__later_init(&engine->ready_later, ready_due);
}

void weft__start_drop(weft_engine *engine) {
    if (engine->folding)
        engine->folding->engine = NULL;
}
