/* The stream "threads": the conversations there are. A thread is a session of the engine. */
#include <string.h>

#include "reply.h"
#include "tinyvex_stream.h"

#define MOST_THREADS 500 /* the newest; a list that people look at */

static const weft_param params[] = {{0}};

static weft_event_source *threads_source(const weft_json *of, const weft_alloc *alloc) {
    static const char *const types[] = {"session.created", "session.agent",   "session.opened",
                                        "session.state",   "session.set",     "session.closed",
                                        "session.resumed", "session.deleted", "task."};
    (void) of;
    return weft__source_new(&(weft_subscription_spec){.types = types, .type_count = sizeof types / sizeof types[0]}, alloc);
}

static weft_val title_of(const weft_session *session) {
    const char *fact = session->facts[WEFT_SESSION_TITLE];
    if (session->title)
        return weft_str(session->title);
    return fact ? weft_raw(fact, strlen(fact)) : weft_null();
}

static int write_thread(weft_buf *out, const weft_alloc *alloc, const weft_session *session, bool *first) {
    char created[WEFT_STAMP], updated[WEFT_STAMP];
    return weft__stream_item(out, alloc, first,
                             WEFT_OBJ({"id", weft_str(session->id)}, {"title", title_of(session)},
                                      {"agent", weft_str(session->agent)},
                                      {"createdAt", weft__stamp_val(session->created_ms, created)},
                                      {"updatedAt", weft__stamp_val(session->updated_ms, updated)},
                                      {"busy", weft_bool(session->busy)}, {"archived", weft_bool(session->closed)},
                                      {"taskId", weft_str(session->task)}, {"tasks", weft_uint(session->tasks)}));
}

static void compute_threads(const weft_hub *hub, const weft_json *of, weft_computing *computing) {
    weft_buf *out = weft__computing_out(computing);
    size_t left = MOST_THREADS;
    bool first = true;
    (void) of;
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (const weft_session *session = weft__session_newest(hub->engine); r >= 0 && session && left--;
         session = weft__session_older(hub->engine, session))
        r = write_thread(out, hub->alloc, session, &first);
    weft__computing_done(computing, r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1));
}

const weft_stream_kind weft__stream_threads = {.name = "threads",
                                               .help = "the conversations, the newest first",
                                               .params = params,
                                               .class = WEFT_CLASS_STATE,
                                               .source = threads_source,
                                               .compute = compute_threads};
