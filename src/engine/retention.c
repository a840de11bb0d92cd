/* What is no longer kept: old events over all, and what one session says beyond its share. */
#include "engine_private.h"

#define HOUR_MS ((int64_t) 3600 * 1000)
#define SLACK 8 /* a stream is trimmed when it has grown by an eighth of what is kept */

static known_session *session_of(const weft_engine *engine, const char *stream) {
    size_t prefix = sizeof WEFT_STREAM_SESSION - 1;
    return strncmp(stream, WEFT_STREAM_SESSION, prefix) == 0 ? weft__session_known(engine, stream + prefix) : NULL;
}

static void trim_session(weft_engine *engine, known_session *session) {
    uint64_t keep = engine->limits.keep_output;
    if (session->bytes < keep + keep / SLACK)
        return;
    /* What could not be trimmed now is tried again when as much has come again. */
    session->bytes = keep;
    weft__store_trim(engine->store, &(weft_trim){.stream = session->stream, .bytes = keep}, NULL, NULL);
}

void weft__retention_count(weft_engine *engine, const weft_event *event) {
    known_session *session = session_of(engine, event->stream);
    engine->kept_bytes += event->data.len;
    if (!session)
        return;
    session->bytes += event->data.len;
    trim_session(engine, session);
}

static void due(weft_timer *timer) {
    weft__retention_start(WEFT_CONTAINER(timer, weft_engine, retention_timer));
}

void weft__retention_init(weft_engine *engine) {
    weft__timer_init(&engine->retention_timer, due);
}

void weft__retention_start(weft_engine *engine) {
    weft__timer_set(engine->loop, &engine->retention_timer, weft_loop_now(engine->loop) + HOUR_MS);
}
