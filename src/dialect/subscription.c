/* Subscriptions: the events themselves, from a position or from now on, for those who want more than their dialect says. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "feed_private.h"
#include "link.h"
#include "pack.h"
#include "reply.h"

#define ID_ROOM 64 /* our ids are shorter */

/* ---- what it lets through ---- */

static bool is(const char *a, const char *b) {
    return a && b && strcmp(a, b) == 0;
}

static bool wants_type(const weft_filter *filter, const char *type) {
    for (size_t i = 0; i < filter->type_count; i++)
        if (strncmp(type, filter->types[i], strlen(filter->types[i])) == 0)
            return true;
    return filter->type_count == 0;
}

/* An id in an event's data. It needs no memory: an event must not be missed because there is none. NULL: there is none, or
 * none that could be ours. */
static const char *id_in(const weft_json *data, const char *name, char ret[ID_ROOM]) {
    weft_json value = weft_get(data, name);
    weft_bytes text;
    if (weft_typeof(&value) != WEFT_STRING || weft_text(&value, &text) < 0 || text.len >= ID_ROOM)
        return NULL;
    memcpy(ret, text.data, text.len);
    ret[text.len] = '\0';
    return ret;
}

/* The answer to a question names the question only; the question knows its task. */
static const char *task_of(const weft_engine *engine, const weft_json *data, char room[ID_ROOM]) {
    const char *task = id_in(data, "taskId", room);
    const char *id = task ? NULL : id_in(data, "questionId", room);
    const weft_question *question = id ? weft__question_find(engine, id) : NULL;
    return question ? question->task : task;
}

/* Likewise most events of a task do not name its session. */
static bool is_of_session(const weft_engine *engine, const weft_json *data, const char *session) {
    char room[ID_ROOM];
    const char *own = id_in(data, "sessionId", room);
    if (own)
        return is(own, session);
    const char *id = task_of(engine, data, room);
    const weft_task *task = id ? weft__task_find(engine, id) : NULL;
    return task && is(task->session, session);
}

bool weft__subscription_reads(const weft_guest *guest) {
    return guest->filter->task || guest->filter->session;
}

bool weft__subscription_wants(const weft_guest *guest, const weft_event *event, const weft_json *data) {
    const weft_engine *engine = guest->feed->hub->engine;
    const weft_filter *filter = guest->filter;
    char room[ID_ROOM];
    return wants_type(filter, event->type) && (!filter->task || is(task_of(engine, data, room), filter->task)) &&
           (!filter->session || is_of_session(engine, data, filter->session));
}

static bool wants_sessions(const weft_filter *filter) {
    return wants_type(filter, "session.output") || wants_type(filter, "session.update");
}

/* The session it is about; NULL: not about one, or one that is not known any more. */
static const char *session_of(const weft_guest *guest) {
    const weft_filter *filter = guest->filter;
    const weft_task *task = filter->task ? weft__task_find(guest->feed->hub->engine, filter->task) : NULL;
    return filter->session ? filter->session : task ? task->session : NULL;
}

/* Sessions' streams are trimmed one by one, whenever one says much. That is a gap only for those who follow that session. */
void weft__subscription_judge(const weft_guest *guest, weft_query *query, char *stream) {
    const char *session = session_of(guest);
    if (!wants_sessions(guest->filter)) {
        query->aside = WEFT_STREAM_SESSION;
        return;
    }
    if (!session || strlen(session) + sizeof WEFT_STREAM_SESSION > WEFT_STREAM_NAME)
        return;
    snprintf(stream, WEFT_STREAM_NAME, "%s%s", WEFT_STREAM_SESSION, session);
    query->aside = WEFT_STREAM_SESSION;
    query->but = stream;
}

static weft_filter *filter_of(const weft_subscription_spec *spec, const weft_alloc *alloc) {
    size_t size = sizeof(weft_filter) + spec->type_count * sizeof(char *) + weft__pack_size(spec->task) +
                  weft__pack_size(spec->session);
    for (size_t i = 0; i < spec->type_count; i++)
        size += weft__pack_size(spec->types[i]);
    weft_filter *filter = weft__zalloc(alloc, size);
    if (!filter)
        return NULL;
    char *at = (char *) &filter->types[spec->type_count];
    filter->task = weft__pack(&at, spec->task);
    filter->session = weft__pack(&at, spec->session);
    filter->type_count = spec->type_count;
    for (size_t i = 0; i < spec->type_count; i++)
        filter->types[i] = weft__pack(&at, spec->types[i]);
    return filter;
}

/* ---- what is said ---- */

#define EVENT(event, time)                                                                                                  \
    WEFT_OBJ({"gseq", weft_uint((event)->gseq)}, {"seq", weft_uint((event)->seq)}, {"stream", weft_str((event)->stream)},   \
             {"type", weft_str((event)->type)}, {"time", weft_str(weft__stamp((event)->time_ms, time))},                    \
             {"data", weft_raw((event)->data.data, (event)->data.len)})

int weft__subscription_share(weft_feed *feed, const weft_event *event, weft_shared **ret) {
    char time[WEFT_STAMP];
    return weft_shared_new(feed->hub->service, "event", EVENT(event, time), ret);
}

int weft__subscription_mark(weft_guest *guest, uint64_t gseq) {
    char line[WEFT_EPOCH + 40];
    if (!guest->positions)
        return 0;
    int n = snprintf(line, sizeof line, "id: %s:%" PRIu64 "\n",
                     weft__store_epoch(weft__engine_store(guest->feed->hub->engine)), gseq);
    int r = weft__peer_put(guest->peer, line, (size_t) n);
    return r == -EPIPE ? 0 : r;
}

int weft__subscription_tell(weft_guest *guest, const weft_event *event) {
    char time[WEFT_STAMP];
    int r = weft__subscription_mark(guest, event->gseq);
    if (r < 0)
        return r;
    r = weft_notify(guest->peer, "event", EVENT(event, time));
    return r == -ENOTSUP || r == -EPIPE ? 0 : r;
}

/* ---- beginning and end ---- */

void weft__subscription_done(weft_guest *guest, int r, uint64_t head) {
    weft_subscribed *done = guest->done;
    guest->done = NULL;
    if (done)
        done(guest->done_ctx, r, head);
}

void weft__guest_unsubscribe(weft_guest *guest) {
    weft__hearing_stop(&guest->events);
    guest->filter = weft__free(guest->feed->alloc, guest->filter);
    weft__subscription_done(guest, -ECANCELED, guest->feed->told);
}

int weft__guest_subscribe(weft_guest *guest, const weft_subscription_spec *spec, weft_subscribed *done, void *ctx) {
    weft_feed *feed = guest->feed;
    if (spec->type_count > WEFT_FEED_WATCHES)
        return -ENOSPC;
    if (guest->lost)
        return -EPIPE;
    weft_filter *filter = filter_of(spec, feed->alloc);
    if (!filter)
        return -ENOMEM;
    bool replaces = guest->filter != NULL;
    weft__guest_unsubscribe(guest);
    weft_query query = {.after = spec->after, .epoch = spec->epoch, .oldest = !spec->live && !spec->after};
    if (spec->live)
        query = (weft_query){.after = weft__store_head(weft__engine_store(feed->hub->engine))};
    guest->filter = filter;
    int r = weft__hearing_start(&guest->events, &query);
    if (r < 0) {
        guest->filter = weft__free(feed->alloc, filter);
        /* It has lost the subscription it had, and an error does not say so. */
        if (replaces)
            weft__guest_lose(guest);
        return r;
    }
    guest->done = done;
    guest->done_ctx = ctx;
    return 0;
}

int weft__guest_go_live(weft_guest *guest, weft_subscribed *done, void *ctx) {
    if (guest->lost)
        return -EPIPE;
    weft__hearing_stop(&guest->events);
    int r = weft__hearing_start(&guest->events,
                                &(weft_query){.after = weft__store_head(weft__engine_store(guest->feed->hub->engine))});
    if (r < 0)
        return r;
    guest->done = done;
    guest->done_ctx = ctx;
    return 0;
}
