/* Reading a transcript: the session's stream page by page, each event folded, and each task's prompt before the first event
 * of it. Tasks of one session run one after the other, so their events lie one task after the other too.
 *
 *     waiting ──a place is free──▶ counting ──where the window lies is known──▶ keeping ──▶ done
 *     waiting ──a place is free──▶ keeping ──▶ done                             any ──the engine goes──▶ -ECANCELED
 *
 * A window at the beginning is kept while everything is counted. Any other needs the count first, so the stream is read
 * twice, both times up to the same event. */
#include "transcript.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transcript_fold.h"

typedef struct transcript_read {
    weft_link link;
    weft_engine *engine; /* NULL: it is gone */
    const weft_alloc *alloc;
    weft_later later;
    weft_transcript_spec spec;
    bool counting;
    bool reading; /* a page is under way */
    uint64_t after;
    transcript_fold fold;
    uint64_t *tasks; /* numbers of the session's tasks, in order */
    size_t task_count, next_task;
    weft_transcript_done *done;
    void *ctx;
    char id[WEFT_TRANSCRIPT_ID];
    char session[ENGINE_ID];
    char stream[sizeof WEFT_STREAM_SESSION + ENGINE_ID];
} transcript_read;

static void start_next(weft_engine *engine);

static void discard_transcript(transcript_read *old) {
    weft__list_remove(&old->link);
    weft__later_cancel(&old->later);
    weft__transcript_fold_reset(&old->fold);
    weft__free(old->alloc, old->tasks);
    weft__free(old->alloc, old);
}

static void finish_transcript(transcript_read *old, int r) {
    weft_engine *engine = old->engine;
    const transcript_fold *fold = &old->fold;
    /* A kept item begins with its public part, so the list of them is a list of those. */
    weft_transcript transcript = {.items = (const weft_transcript_item *const *) (const void *) fold->items,
                                  .count = fold->kept,
                                  .first = fold->kept                 ? fold->first
                                           : fold->from < fold->count ? fold->from
                                                                      : fold->count,
                                  .total = fold->count,
                                  .until = old->spec.until};
    weft__list_remove(&old->link);
    engine->transcript_count--;
    old->done(old->ctx, r < 0 ? r : 0, r < 0 ? NULL : &transcript);
    discard_transcript(old);
    start_next(engine);
}

/* ---- prompts ---- */

static int compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;
    return (x > y) - (x < y);
}

static bool is_wanted_task(const transcript_read *to, const weft_task *task) {
    return task->gseq <= to->spec.until && strcmp(task->session, to->session) == 0;
}

static int list_tasks(transcript_read *to) {
    size_t count = 0;
    for (const weft_task *task = weft__task_newest(to->engine); task; task = weft__task_older(to->engine, task))
        count += is_wanted_task(to, task);
    to->tasks = weft__alloc(to->alloc, (count + 1) * sizeof *to->tasks);
    if (!to->tasks)
        return -ENOMEM;
    for (const weft_task *task = weft__task_newest(to->engine); task; task = weft__task_older(to->engine, task))
        if (is_wanted_task(to, task))
            to->tasks[to->task_count++] = task->number;
    qsort(to->tasks, to->task_count, sizeof *to->tasks, compare_numbers);
    return 0;
}

/* A task may have been forgotten meanwhile. */
static int add_prompts(transcript_read *to, uint64_t upto) {
    int r = 0;
    for (; r >= 0 && to->next_task < to->task_count && to->tasks[to->next_task] <= upto; to->next_task++) {
        char id[ENGINE_ID];
        weft__task_id(id, to->tasks[to->next_task]);
        const weft_task *task = weft__task_find(to->engine, id);
        if (task)
            r = weft__transcript_fold_prompt(&to->fold, task);
    }
    return r;
}

static uint64_t number_of_task(const weft_json *data) {
    static const char kind[] = "task-";
    char id[ENGINE_ID];
    if (!weft__id(data, "taskId", id) || strncmp(id, kind, sizeof kind - 1) != 0)
        return 0;
    return strtoull(id + sizeof kind - 1, NULL, 10);
}

/* ---- pages ---- */

static int take_said(transcript_read *to, const weft_event *event) {
    weft_doc *doc;
    int r = weft_doc_parse(event->data.data, event->data.len, to->alloc, &doc);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    const weft_json *data = weft_doc_root(doc);
    if (to->next_task < to->task_count)
        r = add_prompts(to, number_of_task(data));
    if (r >= 0)
        r = weft__transcript_fold_event(&to->fold, event, data);
    weft_doc_free(doc);
    return r;
}

static void request_page(transcript_read *from);

static uint64_t minus_or_zero(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* Everything is counted: say which items are to be kept. -ENOENT: there is no item with that id. */
static int place_window(transcript_read *to) {
    const weft_transcript_spec *spec = &to->spec;
    transcript_fold *fold = &to->fold;
    bool backwards = spec->window == WEFT_WINDOW_LAST || spec->window == WEFT_WINDOW_BEFORE;
    uint64_t edge = fold->count, total = fold->count;
    if (spec->id && !fold->found)
        return -ENOENT;
    if (spec->id)
        edge = spec->window == WEFT_WINDOW_AFTER ? fold->found_at + 1 : fold->found_at;
    weft__transcript_fold_reset(fold);
    fold->keep_last = backwards;
    fold->from = backwards ? minus_or_zero(minus_or_zero(edge, spec->offset), spec->limit) : edge + spec->offset;
    fold->to = backwards ? minus_or_zero(edge, spec->offset) : fold->from + spec->limit;
    fold->to = fold->to < total ? fold->to : total;
    return 0;
}

static void end_pass(transcript_read *to) {
    int r = add_prompts(to, UINT64_MAX);
    if (r >= 0 && to->counting)
        r = place_window(to);
    if (r < 0 || !to->counting) {
        finish_transcript(to, r);
        return;
    }
    to->counting = false;
    to->after = 0;
    to->next_task = 0;
    request_page(to);
}

static void on_transcript_page(void *ctx, int r, const weft_page *page) {
    transcript_read *to = ctx;
    to->reading = false;
    if (!to->engine) {
        discard_transcript(to);
        return;
    }
    for (size_t i = 0; r == 0 && i < page->count; i++)
        r = take_said(to, &page->events[i]);
    if (r >= 0)
        to->after = page->last;
    if (r < 0)
        finish_transcript(to, r);
    else if (page->more)
        request_page(to);
    else
        end_pass(to);
}

static void request_page(transcript_read *from) {
    weft_query query = {.stream = from->stream, .after = from->after, .until = from->spec.until, .oldest = true};
    int r = weft__store_read(from->engine->store, &query, on_transcript_page, from);
    if (r < 0)
        finish_transcript(from, r);
    else
        from->reading = true;
}

/* ---- beginning and ending ---- */

static void begin_transcript(weft_later *later) {
    transcript_read *made = WEFT_CONTAINER(later, transcript_read, later);
    int r = list_tasks(made);
    made->fold.seek = made->counting ? made->spec.id : NULL;
    if (!made->counting) {
        made->fold.from = made->spec.offset;
        made->fold.to = made->spec.offset + made->spec.limit;
    }
    if (r < 0)
        finish_transcript(made, r);
    else
        request_page(made);
}

static void start_next(weft_engine *engine) {
    while (engine->transcript_count < WEFT_TRANSCRIPT_READS && !weft__list_empty(&engine->transcripts_waiting)) {
        transcript_read *next = WEFT_CONTAINER(engine->transcripts_waiting.next, transcript_read, link);
        weft__list_remove(&next->link);
        weft__list_push(&engine->transcripts, &next->link);
        engine->transcript_waiting_count--;
        engine->transcript_count++;
        weft__later(engine->loop, &next->later);
    }
}

static void fill_in_spec(transcript_read *made, const weft_transcript_spec *spec) {
    const weft_engine *engine = made->engine;
    made->spec = *spec;
    made->spec.session = made->session;
    snprintf(made->session, sizeof made->session, "%s", spec->session);
    snprintf(made->stream, sizeof made->stream, "%s%s", WEFT_STREAM_SESSION, spec->session);
    bool named = spec->window == WEFT_WINDOW_BEFORE || spec->window == WEFT_WINDOW_AFTER;
    if (named)
        snprintf(made->id, sizeof made->id, "%s", spec->id);
    made->spec.id = named ? made->id : NULL;
    if (!spec->limit || spec->limit > WEFT_TRANSCRIPT_ITEMS)
        made->spec.limit = WEFT_TRANSCRIPT_ITEMS;
    if (spec->offset > UINT64_MAX / 2)
        made->spec.offset = UINT64_MAX / 2;
    if (!spec->until || spec->until > engine->applied)
        made->spec.until = engine->applied;
    made->counting = spec->window != WEFT_WINDOW_FIRST;
}

int weft__transcript_read(weft_engine *engine, const weft_transcript_spec *spec, weft_transcript_done *done, void *ctx) {
    if (!weft__session_find(engine, spec->session))
        return -ESRCH;
    if (spec->id && strlen(spec->id) >= WEFT_TRANSCRIPT_ID)
        return -EINVAL;
    if (engine->transcript_waiting_count >= WEFT_TRANSCRIPT_WAITING)
        return -EBUSY;
    transcript_read *made = weft__zalloc(engine->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->engine = engine;
    made->alloc = engine->alloc;
    made->done = done;
    made->ctx = ctx;
    fill_in_spec(made, spec);
    weft__transcript_fold_init(&made->fold, engine->alloc);
    weft__later_init(&made->later, begin_transcript);
    weft__list_push(&engine->transcripts_waiting, &made->link);
    engine->transcript_waiting_count++;
    start_next(engine);
    return 0;
}

static void drop_list(weft_link *list) {
    while (!weft__list_empty(list)) {
        transcript_read *first = WEFT_CONTAINER(list->next, transcript_read, link);
        weft__list_remove(&first->link);
        weft__later_cancel(&first->later);
        first->done(first->ctx, -ECANCELED, NULL);
        first->engine = NULL;
        if (!first->reading)
            discard_transcript(first);
    }
}

void weft__transcripts_drop(weft_engine *engine) {
    drop_list(&engine->transcripts);
    drop_list(&engine->transcripts_waiting);
}
