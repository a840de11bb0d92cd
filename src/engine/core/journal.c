/* Writing to the journal: drafts of events, and appends under way. A completion runs when the events are durable and the
 * read models have seen them, whichever comes last; after weft__engine_free() only the memory of an append is left for the
 * store's completion to find. */
#include <errno.h>

#include "engine_private.h"
#include "write.h"

#define TROUBLE_NOTE_MS 60000

struct sent {
    weft_link link;
    weft_engine *engine; /* NULL: it is gone */
    const weft_alloc *alloc;
    uint64_t gseq; /* of the last event; 0: not stored yet */
    sent_done *done;
    void *ctx;
};

/* ---- drafts ---- */

static int room_for_event(struct draft *draft) {
    size_t few = sizeof draft->few / sizeof draft->few[0];
    if (draft->count < (draft->more ? draft->cap : few))
        return 0;
    size_t cap = draft->more ? 2 * draft->cap : 4 * few;
    weft_event *events = weft__resize(draft->engine->alloc, draft->more, cap * sizeof *events);
    if (!events)
        return -ENOMEM;
    if (!draft->more)
        memcpy(events, draft->few, sizeof draft->few);
    draft->more = events;
    draft->cap = cap;
    return 0;
}

static weft_event *events_of(struct draft *draft) {
    return draft->more ? draft->more : draft->few;
}

void weft__draft_add(struct draft *draft, const char *stream, const char *type, weft_val data) {
    const weft_alloc *alloc = draft->engine->alloc;
    size_t before = weft__buf_len(&draft->text);
    if (draft->r >= 0)
        draft->r = room_for_event(draft);
    if (draft->r >= 0)
        draft->r = weft__write_val(&draft->text, alloc, &data);
    if (draft->r < 0)
        return;
    /* The text may still move: its place is known when the draft is sent. */
    events_of(draft)[draft->count++] = (weft_event){
        .stream = stream,
        .type = type,
        .data = {NULL, weft__buf_len(&draft->text) - before},
        .time_ms = weft__engine_now(draft->engine),
    };
}

static void place_texts(struct draft *draft) {
    const char *at = weft__buf_head(&draft->text);
    weft_event *events = events_of(draft);
    for (size_t i = 0; i < draft->count; i++) {
        events[i].data.data = at;
        at += events[i].data.len;
    }
}

/* ---- appends under way ---- */

static void finish_sent(struct sent *sent, int r) {
    weft__list_remove(&sent->link);
    if (sent->done)
        sent->done(sent->ctx, r);
    weft__free(sent->alloc, sent);
}

/* Once a minute at most: it is tried again every second, and the log is on the same disk. */
static void set_trouble(weft_engine *engine, int r) {
    int64_t now = weft_loop_now(engine->loop);
    if (r >= 0 && engine->trouble < 0)
        weft__note(engine, "what happens can be stored again");
    if (r < 0 && engine->trouble >= 0)
        engine->trouble_since = now;
    if (r < 0)
        weft__again(engine, &engine->probe, r);
    if (r < 0 && (!engine->trouble_noted || now - engine->trouble_noted > TROUBLE_NOTE_MS)) {
        engine->trouble_noted = now;
        weft__note(engine, "what happens cannot be stored: %s; trying again, and nothing is acknowledged meanwhile",
                   weft_strerror(r));
    }
    engine->trouble = r;
}

int weft__store_failure(int r) {
    static const struct {
        int store, here;
    } codes[] = {{-ESTALE, -ENOTRECOVERABLE}, {-EBUSY, -ENOLCK}, {-EDQUOT, -ENOSPC}, {-ETIMEDOUT, -ETIME}};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (r == codes[i].store)
            return codes[i].here;
    return r;
}

static void on_draft_stored(void *ctx, int r, const weft_event *events, size_t count, bool repeat) {
    struct sent *sent = ctx;
    weft_engine *engine = sent->engine;
    if (!engine) {
        weft__free(sent->alloc, sent);
        return;
    }
    /* That a key or a number was used before is no trouble of the store's. */
    if (r == -EEXIST)
        repeat = true;
    set_trouble(engine, r < 0 && !repeat && r != -EAGAIN ? r : 0);
    if (r < 0 || repeat)
        finish_sent(sent, repeat ? 1 : weft__store_failure(r));
    else if ((sent->gseq = events[count - 1].gseq) <= engine->applied)
        finish_sent(sent, 0);
    else
        engine->lagging++;
    weft__stop_check(engine);
}

/* Whoever asks whether work may be sent here is told no, and sends none; so it is tried without being asked. */
static void probe_store(weft_timer *timer) {
    weft_engine *engine = WEFT_CONTAINER(timer, weft_engine, probe);
    struct draft draft = {.engine = engine};
    if (engine->trouble >= 0 || engine->phase != READY || !weft__list_empty(&engine->sent))
        return;
    weft__draft_add(&draft, WEFT_STREAM_HUB, "hub.recovered",
                    WEFT_OBJ({"error", weft_str(weft_strerror(engine->trouble))},
                             {"afterMs", weft_int(weft_loop_now(engine->loop) - engine->trouble_since)}));
    int r = weft__draft_send(&draft, NULL, NULL, NULL);
    if (r < 0)
        weft__again(engine, &engine->probe, r);
}

void weft__journal_init(weft_engine *engine) {
    weft__timer_init(&engine->probe, probe_store);
}

/* The first whose events the read models have seen; NULL: none. */
static struct sent *first_applied(const weft_engine *engine) {
    for (weft_link *link = engine->sent.next; link != &engine->sent; link = link->next) {
        struct sent *found = WEFT_CONTAINER(link, struct sent, link);
        if (found->gseq && found->gseq <= engine->applied)
            return found;
    }
    return NULL;
}

void weft__journal_settle(weft_engine *engine) {
    bool settled = false;
    /* Mostly none: the store tells followers before it completes an append. */
    for (struct sent *sent; engine->lagging && (sent = first_applied(engine)); settled = true) {
        engine->lagging--;
        finish_sent(sent, 0);
    }
    if (!settled)
        return;
    /* What waits until nothing is under way waited for these too. */
    weft__stop_check(engine);
}

int weft__draft_send(struct draft *draft, const char *key, sent_done *done, void *ctx) {
    weft_engine *engine = draft->engine;
    int r = draft->r;
    struct sent *made = r < 0 ? NULL : weft__zalloc(engine->alloc, sizeof *made);
    if (r >= 0 && !made)
        r = -ENOMEM;
    if (r >= 0) {
        place_texts(draft);
        made->engine = engine;
        made->alloc = engine->alloc;
        made->done = done;
        made->ctx = ctx;
        weft__list_push(&engine->sent, &made->link);
        r = weft__store_append(engine->store,
                               &(weft_append){.events = events_of(draft),
                                              .count = draft->count,
                                              .key = key,
                                              .documents = draft->document,
                                              .document_count = !draft->document   ? 0
                                                                : draft->documents ? draft->documents
                                                                                   : 1,
                                              .counter = draft->counter,
                                              .number = draft->number},
                               on_draft_stored, made);
        if (r < 0) {
            weft__list_remove(&made->link);
            weft__free(engine->alloc, made);
        }
    }
    weft__buf_done(&draft->text, engine->alloc);
    draft->more = weft__free(engine->alloc, draft->more);
    draft->count = draft->cap = 0;
    return r;
}

/* What is under way completes with -ECANCELED; whether it was stored, the next start will see. */
void weft__journal_drop(weft_engine *engine) {
    while (!weft__list_empty(&engine->sent)) {
        struct sent *first = WEFT_CONTAINER(engine->sent.next, struct sent, link);
        weft__list_remove(&first->link);
        bool is_stored = first->gseq != 0;
        if (first->done)
            first->done(first->ctx, -ECANCELED);
        first->engine = NULL;
        if (is_stored) /* the store has called already, only we were behind */
            weft__free(first->alloc, first);
    }
}
