/* What goes with a session that is deleted. Its own stream is trimmed: what its agent said. Of the streams that everybody
 * shares the content of its events is taken out and their places stay: prompts, ends, titles, questions, worktrees; of plans
 * and gated tasks what became of its tasks; of runners what they said late of its tasks.
 *
 *     saving ──everything is saved──▶ reading ──a page──▶ removing ──stored──▶ reading ... ──the last page──▶ trimming
 *
 * First everything is saved, so that no start needs these events: the numbers of tasks, and how many there were. One that
 * was on its way meanwhile, and is behind what was saved, is left until the next save. It reads all of these streams that
 * is kept, and nobody waits for it but whoever deletes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine_private.h"

static const char *const shared_streams[] = {WEFT_STREAM_HUB, WEFT_STREAM_PLANS, WEFT_STREAM_GATED, WEFT_STREAM_RUNNERS};
#define SHARED_STREAMS (sizeof shared_streams / sizeof shared_streams[0])

#define ERASE_PAGE WEFT_STORE_EVENTS /* events: all of them may have to go in one append */

/* Outlives the engine while a page or an append is under way. */
typedef struct erasing {
    weft_link link;
    weft_engine *engine; /* NULL: it is gone */
    const weft_alloc *alloc;
    bool saving;
    int failed;     /* the save: why */
    bool under_way; /* with the store */
    bool more;
    bool behind;    /* the next event is not saved yet */
    uint64_t saves; /* that had been sent when it began: one that is behind them is behind everything that was on its way */
    size_t stream;  /* of those that are shared */
    uint64_t after; /* seq in it */
    void (*done)(void *ctx, int r);
    void *ctx;
    size_t count;
    uint64_t found[ERASE_PAGE];
    char session[ENGINE_ID];
} erasing;

static void finish_erasing(erasing *it, int r) {
    void (*done)(void *, int) = it->done;
    void *ctx = it->ctx;
    weft__list_remove(&it->link);
    weft__free(it->alloc, it);
    done(ctx, r);
}

/* The store has come back. true: somebody still wants to know. */
static bool is_wanted(erasing *it) {
    it->under_way = false;
    if (it->engine)
        return true;
    weft__free(it->alloc, it);
    return false;
}

static bool may_tell(const char *type) {
    static const char *const kinds[] = {"task.",     "session.", "question.", "worktree.",
                                        "approval.", "plan.",    "gated.",    "runner.late"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strncmp(type, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

/* By its session, or its task: older journals have only that in later events of a task. */
static bool is_about(const erasing *it, const weft_json *data) {
    char id[ENGINE_ID];
    const char *session = weft__id(data, "sessionId", id);
    if (session)
        return strcmp(session, it->session) == 0;
    const known_task *task = weft__task_of(it->engine, data);
    if (task)
        return strcmp(task->pub.session, it->session) == 0;
    return it->engine->erase_too && weft_get(data, "planId").text &&
           it->engine->erase_too(it->engine->erase_ctx, it->session, data);
}

/* 1: it must be saved first. */
static int look_at_event(erasing *it, const weft_event *event) {
    weft_doc *doc = NULL;
    if (!may_tell(event->type))
        return 0;
    int r = weft_doc_parse(event->data.data, event->data.len, it->alloc, &doc);
    if (r == -ENOMEM)
        return r;
    bool about = r >= 0 && is_about(it, weft_doc_root(doc)), saved = event->gseq <= it->engine->saved_gseq;
    if (about && saved)
        it->found[it->count++] = event->gseq;
    weft_doc_free(doc);
    return about && !saved;
}

static void on_erase_page(void *ctx, int r, const weft_page *page);

static void read_page_to_erase(erasing *it) {
    weft_query query = {.stream = shared_streams[it->stream], .after = it->after, .oldest = true, .max_events = ERASE_PAGE};
    int r = weft__store_read(it->engine->store, &query, on_erase_page, it);
    it->under_way = r >= 0;
    if (r < 0)
        finish_erasing(it, r);
}

static void on_stream_trimmed(void *ctx, int r, uint64_t removed) {
    erasing *it = ctx;
    (void) removed;
    if (is_wanted(it))
        finish_erasing(it, r < 0 ? weft__store_failure(r) : 0);
}

static void trim_stream(erasing *it) {
    char stream[sizeof WEFT_STREAM_SESSION + ENGINE_ID];
    snprintf(stream, sizeof stream, "%s%s", WEFT_STREAM_SESSION, it->session);
    weft_store *store = it->engine->store;
    int r = weft__store_trim(store, &(weft_trim){.stream = stream, .upto = weft__store_head(store)}, on_stream_trimmed, it);
    it->under_way = r >= 0;
    if (r < 0)
        finish_erasing(it, r);
}

static void save_before(erasing *it) {
    weft_engine *engine = it->engine;
    it->behind = false;
    it->saving = true;
    it->saves = engine->saves;
    weft__save(engine);
}

static void read_on(erasing *it) {
    if (it->behind)
        save_before(it);
    else if (it->more || ++it->stream < SHARED_STREAMS) {
        it->after = it->more ? it->after : 0;
        read_page_to_erase(it);
    } else
        trim_stream(it);
}

static void on_erased(void *ctx, int r, const weft_event *events, size_t count, bool repeat) {
    erasing *it = ctx;
    (void) events, (void) count, (void) repeat;
    if (!is_wanted(it))
        return;
    if (r < 0)
        finish_erasing(it, weft__store_failure(r));
    else
        read_on(it);
}

static void on_erase_page(void *ctx, int r, const weft_page *page) {
    erasing *it = ctx;
    if (!is_wanted(it))
        return;
    if (r != 0) {
        finish_erasing(it, r < 0 ? r : -EIO);
        return;
    }
    it->count = 0;
    it->more = page->more;
    for (size_t i = 0; r == 0 && i < page->count; i++) {
        r = look_at_event(it, &page->events[i]);
        it->after = r == 0 ? page->events[i].seq : it->after;
    }
    if (r < 0) {
        finish_erasing(it, r);
        return;
    }
    it->behind = r > 0;
    it->after = it->behind ? it->after : page->last;
    if (!it->count) {
        read_on(it);
        return;
    }
    r = weft__store_append(it->engine->store, &(weft_append){.removals = it->found, .removal_count = it->count}, on_erased,
                           it);
    it->under_way = r >= 0;
    if (r < 0)
        finish_erasing(it, r);
}

static void fail_erasings(weft_later *later) {
    weft_engine *engine = WEFT_CONTAINER(later, weft_engine, erase_later);
    for (weft_link *link = engine->erasings.next, *next; link != &engine->erasings; link = next) {
        erasing *it = WEFT_CONTAINER(link, erasing, link);
        next = link->next;
        if (it->failed < 0)
            finish_erasing(it, it->failed);
    }
}

/* A save may fail while it is asked for, by whoever deletes another session. */
void weft__erasings_saved(weft_engine *engine, int r, uint64_t number) {
    for (weft_link *link = engine->erasings.next, *next; link != &engine->erasings; link = next) {
        erasing *it = WEFT_CONTAINER(link, erasing, link);
        next = link->next;
        if (!it->saving || (r >= 0 && number <= it->saves))
            continue;
        it->saving = false;
        it->failed = weft__store_failure(r);
        if (r < 0)
            weft__later(engine->loop, &engine->erase_later);
        else
            read_page_to_erase(it);
    }
}

void weft__engine_erase_too(weft_engine *engine, weft_erase_too *too, void *ctx) {
    engine->erase_too = too;
    engine->erase_ctx = ctx;
}

void weft__erasings_init(weft_engine *engine) {
    weft__list_init(&engine->erasings);
    weft__later_init(&engine->erase_later, fail_erasings);
}

int weft__session_erase(weft_engine *engine, const char *session, void (*done)(void *ctx, int r), void *ctx) {
    erasing *made = weft__zalloc(engine->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    *made = (erasing){.engine = engine, .alloc = engine->alloc, .done = done, .ctx = ctx};
    strncat(made->session, session, sizeof made->session - 1);
    weft__list_push(&engine->erasings, &made->link);
    save_before(made);
    return 0;
}

void weft__erasings_drop(weft_engine *engine) {
    weft__later_cancel(&engine->erase_later);
    while (!weft__list_empty(&engine->erasings)) {
        erasing *it = WEFT_CONTAINER(engine->erasings.next, erasing, link);
        weft__list_remove(&it->link);
        it->engine = NULL;
        it->done(it->ctx, -ECANCELED);
        if (!it->under_way)
            weft__free(it->alloc, it);
    }
}
