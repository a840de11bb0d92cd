/* What rules did last, and which approvals they have acted upon: known from the journal like everything else and saved with
 * it, so that automation need not read the journal for it at each start. */
#include <errno.h>
#include <string.h>

#include "engine_private.h"
#include "write.h"

#define FIRINGS 10         /* remembered: as many as are shown */
#define FIRING_BYTES 16384 /* of one: names, and a sentence on what went wrong */

typedef struct fired {
    weft_link link;
    int64_t time_ms;
    size_t len;
    char text[]; /* the event's data */
} fired;

static void drop_firing(weft_engine *engine, fired *old) {
    weft__list_remove(&old->link);
    weft__free(engine->alloc, old);
    engine->fired_count--;
}

static int add_firing(weft_engine *engine, int64_t time_ms, const weft_json *data) {
    if (data->len > FIRING_BYTES)
        return 0;
    fired *made = weft__alloc(engine->alloc, sizeof *made + data->len);
    if (!made)
        return -ENOMEM;
    made->time_ms = time_ms;
    made->len = data->len;
    memcpy(made->text, data->text, data->len);
    weft__list_push(&engine->fired, &made->link);
    if (++engine->fired_count > FIRINGS)
        drop_firing(engine, WEFT_CONTAINER(engine->fired.next, fired, link));
    return 0;
}

/* That it waits for an approval is the one thing a rule says of a question before it has acted upon it. */
int weft__firing_apply(weft_engine *engine, const weft_event *event, const weft_json *data) {
    char id[ENGINE_ID];
    int r = add_firing(engine, event->time_ms, data);
    known_question *question = weft__question_known(engine, weft__id(data, "questionId", id));
    if (r >= 0 && question && question->stored && !weft__field_is(data, "status", "pendingApproval"))
        question->pub.acted = true;
    return r;
}

int weft__firings_write(const weft_engine *engine, weft_buf *out) {
    int r = weft__buf_put(out, engine->alloc, "[", 1);
    for (weft_link *link = engine->fired.next; r >= 0 && link != &engine->fired; link = link->next) {
        const fired *one = WEFT_CONTAINER(link, fired, link);
        weft_val value = WEFT_OBJ({"time", weft_int(one->time_ms)}, {"data", weft_raw(one->text, one->len)});
        if (link != engine->fired.next)
            r = weft__buf_put(out, engine->alloc, ",", 1);
        if (r >= 0)
            r = weft__write_val(out, engine->alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, engine->alloc, "]", 1);
}

int weft__firings_restore(weft_engine *engine, const weft_json *saved) {
    int r = 0;
    engine->firings_saved = weft_typeof(saved) == WEFT_ARRAY;
    for (weft_iter it = weft_iterate(saved); r >= 0 && weft_next(&it);) {
        weft_json data = weft_get(&it.value, "data");
        if (weft_typeof(&data) == WEFT_OBJECT)
            r = add_firing(engine, weft_get_int(&it.value, "time", 0), &data);
    }
    return r;
}

void weft__firings_drop(weft_engine *engine) {
    while (!weft__list_empty(&engine->fired))
        drop_firing(engine, WEFT_CONTAINER(engine->fired.next, fired, link));
}

int weft__engine_each_firing(const weft_engine *engine, void (*each)(void *ctx, int64_t time_ms, const weft_json *data),
                             void *ctx) {
    for (weft_link *link = engine->fired.next; link != &engine->fired; link = link->next) {
        const fired *one = WEFT_CONTAINER(link, fired, link);
        weft_doc *doc;
        int r = weft_doc_parse(one->text, one->len, engine->alloc, &doc);
        if (r == -ENOMEM)
            return r;
        if (r < 0)
            continue;
        each(ctx, one->time_ms, weft_doc_root(doc));
        weft_doc_free(doc);
    }
    return 0;
}
