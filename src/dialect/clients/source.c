/* What a subscription listens to: one stream, everything, or what a filter lets through; and from that, what a reader would
 * miss if it were gone. */
#include <stdio.h>
#include <string.h>

#include "field.h"
#include "hub_clients_private.h"
#include "pack.h"

static bool is_same_name(const char *a, const char *b) {
    return a && b && strcmp(a, b) == 0;
}

/* ---- what it wants ---- */

static bool wants_type(const weft_event_source *source, const char *type) {
    for (size_t i = 0; i < source->type_count; i++)
        if (strncmp(type, source->types[i], strlen(source->types[i])) == 0)
            return true;
    return source->type_count == 0;
}

/* NULL: there is none. -ENOMEM is told apart from that, so that nothing is passed over for want of memory. */
static int read_member_text(const weft_json *data, const char *name, const char **ret) {
    weft_json value = weft_get(data, name);
    *ret = NULL;
    return value.text ? weft__field_text(&value, ret) : 0;
}

/* The answer to a question names the question only; the question knows its task. */
static int find_task(const weft_engine *engine, const weft_json *data, const char **ret) {
    const char *id = NULL;
    int r = read_member_text(data, "taskId", ret);
    if (r >= 0 && !*ret)
        r = read_member_text(data, "questionId", &id);
    const weft_question *question = r >= 0 && id ? weft__question_find(engine, id) : NULL;
    if (question)
        *ret = question->task;
    return r;
}

static int is_of_task(const weft_engine *engine, const weft_json *data, const char *task) {
    const char *id;
    int r = find_task(engine, data, &id);
    return r < 0 ? r : is_same_name(id, task);
}

/* Likewise most events of a task do not name its session. */
static int is_of_session(const weft_engine *engine, const weft_json *data, const char *session) {
    const char *own, *id = NULL;
    int r = read_member_text(data, "sessionId", &own);
    if (r >= 0 && !own)
        r = find_task(engine, data, &id);
    const weft_task *task = r >= 0 && id ? weft__task_find(engine, id) : NULL;
    return r < 0 ? r : is_same_name(task ? task->session : own, session);
}

bool weft__source_may_want(const weft_event_source *source, const weft_event *event) {
    static const char prefix[] = WEFT_STREAM_SESSION;
    if (!wants_type(source, event->type))
        return false;
    bool of_session = source->session && strncmp(event->stream, prefix, sizeof prefix - 1) == 0;
    return !of_session || strcmp(event->stream + sizeof prefix - 1, source->session) == 0;
}

bool weft__source_reads(const weft_event_source *source) {
    return source->task || source->session || source->collection;
}

static int is_of_collection(const weft_json *data, const char *collection) {
    const char *own;
    int r = read_member_text(data, "collection", &own);
    return r < 0 ? r : is_same_name(own, collection);
}

int weft__source_wants(const weft_event_source *source, const weft_engine *engine, const weft_event *event,
                       const weft_json *data) {
    if (!wants_type(source, event->type) || (source->stream && !is_same_name(event->stream, source->stream)))
        return 0;
    int r = source->task ? is_of_task(engine, data, source->task) : 1;
    if (r > 0 && source->collection)
        r = is_of_collection(data, source->collection);
    return r > 0 && source->session ? is_of_session(engine, data, source->session) : r;
}

/* ---- what it would miss ---- */

static bool wants_sessions(const weft_event_source *source) {
    return wants_type(source, "session.output") || wants_type(source, "session.update");
}

/* The session it is about; NULL: not about one, or one that is not known any more. */
static const char *session_of(const weft_event_source *source, const weft_engine *engine) {
    const weft_task *task = source->task ? weft__task_find(engine, source->task) : NULL;
    return source->session ? source->session : task ? task->session : NULL;
}

/* Sessions' streams are trimmed one by one, whenever one says much. That is a gap only for those who follow that session.
 * Without a source it is a dialect's words: nobody can resume them, and what is kept is all there is to say. */
void weft__source_query(const weft_event_source *source, const weft_engine *engine, weft_query *query, char *name) {
    if (!source) {
        query->oldest = true;
        return;
    }
    query->stream = source->stream;
    if (source->stream)
        return;
    const char *session = session_of(source, engine);
    if (!wants_sessions(source)) {
        query->aside = WEFT_STREAM_SESSION;
        return;
    }
    if (!session || strlen(session) + sizeof WEFT_STREAM_SESSION > WEFT_STREAM_NAME)
        return;
    snprintf(name, WEFT_STREAM_NAME, "%s%s", WEFT_STREAM_SESSION, session);
    query->aside = WEFT_STREAM_SESSION;
    query->but = name;
}

/* ---- life ---- */

weft_event_source *weft__source_new(const weft_subscription_spec *spec, const weft_alloc *alloc) {
    size_t size = sizeof(weft_event_source) + spec->type_count * sizeof(char *) + weft__pack_size(spec->stream) +
                  weft__pack_size(spec->task) + weft__pack_size(spec->session) + weft__pack_size(spec->collection);
    for (size_t i = 0; i < spec->type_count; i++)
        size += weft__pack_size(spec->types[i]);
    weft_event_source *source = weft__zalloc(alloc, size);
    if (!source)
        return NULL;
    char *at = (char *) &source->types[spec->type_count];
    source->stream = weft__pack(&at, spec->stream);
    source->task = weft__pack(&at, spec->task);
    source->session = weft__pack(&at, spec->session);
    source->collection = weft__pack(&at, spec->collection);
    source->type_count = spec->type_count;
    for (size_t i = 0; i < spec->type_count; i++)
        source->types[i] = weft__pack(&at, spec->types[i]);
    return source;
}
