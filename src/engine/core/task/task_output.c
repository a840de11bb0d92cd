/* What a task said, read back from its session's stream: the end of it, as much as is asked for and kept. */
#include <errno.h>
#include <string.h>

#include "engine_private.h"

#define MAX_OUTPUT ((size_t) 64 << 20) /* of one answer */

typedef struct reading {
    weft_link link;
    weft_engine *engine; /* NULL: it is gone */
    const weft_alloc *alloc;
    weft_later later;
    uint64_t after, last; /* seq */
    size_t max;
    weft_buf text;
    weft_output_done *done;
    void *ctx;
    bool reading; /* a page is under way */
    char task[ENGINE_ID];
    char stream[];
} reading;

static void free_output_reading(reading *old) {
    weft__list_remove(&old->link);
    weft__later_cancel(&old->later);
    weft__buf_done(&old->text, old->alloc);
    weft__free(old->alloc, old);
}

static void finish_reading(reading *old, int r) {
    weft_bytes text = {"", 0};
    if (r >= 0 && weft__buf_len(&old->text))
        text = weft__text_end(weft__buf_head(&old->text), weft__buf_len(&old->text), old->max);
    weft__list_remove(&old->link);
    old->done(old->ctx, r < 0 ? r : 0, text);
    free_output_reading(old);
}

/* Only the end is wanted: what is surely before it goes. */
static int add_to_end(reading *to, weft_bytes text) {
    int r = weft__buf_put(&to->text, to->alloc, text.data, text.len);
    size_t len = weft__buf_len(&to->text);
    if (r >= 0 && len > 2 * to->max)
        weft__buf_take(&to->text, to->alloc, len - to->max);
    return r;
}

static int take_output_event(reading *to, const weft_event *event) {
    weft_doc *doc;
    weft_bytes text;
    int r = weft_doc_parse(event->data.data, event->data.len, to->alloc, &doc);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    const weft_json *data = weft_doc_root(doc);
    if (weft__field_is(data, "taskId", to->task) && (r = weft__output_text(event, data, &text)) > 0)
        r = add_to_end(to, text);
    weft_doc_free(doc);
    return r;
}

static void request_output(reading *from);

static void on_output_page(void *ctx, int r, const weft_page *page) {
    reading *to = ctx;
    to->reading = false;
    if (!to->engine) {
        free_output_reading(to);
        return;
    }
    for (size_t i = 0; r == 0 && i < page->count && page->events[i].seq <= to->last; i++)
        r = take_output_event(to, &page->events[i]);
    if (r >= 0)
        to->after = page->last;
    if (r < 0 || !page->more || to->after >= to->last)
        finish_reading(to, r);
    else
        request_output(to);
}

static void request_output(reading *from) {
    weft_query query = {.stream = from->stream, .after = from->after, .oldest = true};
    int r = weft__store_read(from->engine->store, &query, on_output_page, from);
    if (r < 0)
        finish_reading(from, r);
    else
        from->reading = true;
}

static void begin_reading(weft_later *later) {
    reading *made = WEFT_CONTAINER(later, reading, later);
    if (made->last)
        request_output(made);
    else
        finish_reading(made, 0);
}

int weft__task_output(weft_engine *engine, const char *id, size_t max, weft_output_done *done, void *ctx) {
    known_task *task = weft__task_known(engine, id);
    if (!task || !task->stored)
        return -ENOENT;
    size_t stream = sizeof WEFT_STREAM_SESSION - 1, session = strlen(task->pub.session) + 1;
    reading *made = weft__zalloc(engine->alloc, sizeof *made + stream + session);
    if (!made)
        return -ENOMEM;
    made->engine = engine;
    made->alloc = engine->alloc;
    made->max = max < MAX_OUTPUT ? max : MAX_OUTPUT;
    made->done = done;
    made->ctx = ctx;
    memcpy(made->stream, WEFT_STREAM_SESSION, stream);
    memcpy(made->stream + stream, task->pub.session, session);
    memcpy(made->task, task->id, sizeof made->task);
    weft__later_init(&made->later, begin_reading);
    weft__list_init(&made->link);
    /* Of one that is known without its events, as at a relay, there is only its end. */
    bool all = task->pub.tail.len >= task->pub.output_bytes || task->pub.tail.len >= made->max || !task->output_from;
    if (all && weft__buf_put(&made->text, made->alloc, task->pub.tail.data, task->pub.tail.len) < 0) {
        free_output_reading(made);
        return -ENOMEM;
    }
    if (!all && task->output_from) {
        made->after = task->output_from - 1;
        made->last = task->output_to;
    }
    weft__list_push(&engine->reads, &made->link);
    weft__later(engine->loop, &made->later);
    return 0;
}

void weft__reads_drop(weft_engine *engine) {
    while (!weft__list_empty(&engine->reads)) {
        reading *first = WEFT_CONTAINER(engine->reads.next, reading, link);
        weft__list_remove(&first->link);
        weft__later_cancel(&first->later);
        first->done(first->ctx, -ECANCELED, (weft_bytes){"", 0});
        first->engine = NULL;
        if (!first->reading)
            free_output_reading(first);
    }
}
