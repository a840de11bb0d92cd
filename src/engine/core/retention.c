/* What is no longer kept: old events over all, and what one session says beyond its share.
 *
 * Events go from the old end, whatever they say. So before any goes, what is known is saved (saved.c), and none goes that
 * came after that. Nobody waits for it: a save is an append among others. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "engine_private.h"
#include "write.h"

#define MINUTE_MS ((int64_t) 60 * 1000)
#define HOUR_MS ((int64_t) 3600 * 1000)
#define DAY_MS (24 * HOUR_MS)
#define SLACK 8           /* trimmed when it has grown by an eighth of what is kept */
#define MAX_SWITCHES 1000 /* of rules that are remembered as switched: more than anybody writes */

/* A rule that somebody switched, or all of them (""). */
typedef struct switched {
    weft_link link;
    int64_t time_ms;
    bool enabled;
    char rule[];
} switched;

/* ---- the clock ---- */

/* It goes on while the machine sleeps, or every lid that was closed would look like a clock that was set. */
static int64_t steady_now(const weft_engine *engine) {
    struct timespec now;
    if (engine->opts.steady_ms)
        return engine->opts.steady_ms(engine->opts.ctx);
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t weft__retention_observed(const weft_engine *engine) {
    return weft__age_now(&engine->age, steady_now(engine));
}

static void note_observed(weft_engine *engine, const weft_event *event, const weft_json *data) {
    weft__age_note(&engine->age, event->gseq, weft_get_int(data, "observedMs", -1), engine->limits.keep_ms);
}

/* ---- the share of a session ---- */

static known_session *session_of_stream(const weft_engine *engine, const char *stream) {
    size_t prefix = sizeof WEFT_STREAM_SESSION - 1;
    return strncmp(stream, WEFT_STREAM_SESSION, prefix) == 0 ? weft__session_known(engine, stream + prefix) : NULL;
}

static void trim_session(weft_engine *engine, known_session *session) {
    uint64_t keep = engine->limits.keep_output;
    if (session->bytes < keep || session->bytes - keep < keep / SLACK)
        return;
    /* What could not be trimmed now is tried again when as much has come again. */
    session->bytes = keep;
    weft__store_trim(engine->store, &(weft_trim){.stream = session->stream, .bytes = keep}, NULL, NULL);
}

void weft__retention_count(weft_engine *engine, const weft_event *event) {
    known_session *session = session_of_stream(engine, event->stream);
    engine->bytes_since += event->data.len;
    if (session) {
        session->bytes += event->data.len;
        session->next_seq = event->seq + 1;
        trim_session(engine, session);
    }
    if (engine->bytes_since > engine->limits.keep_bytes / SLACK && engine->phase == READY)
        weft__retention_start(engine);
}

/* ---- choices that are kept ---- */

int weft__retention_write_switches(const weft_engine *engine, weft_buf *out) {
    int r = weft__buf_put(out, engine->alloc, "[", 1);
    for (weft_link *link = engine->switches.next; r >= 0 && link != &engine->switches; link = link->next) {
        const switched *one = WEFT_CONTAINER(link, switched, link);
        weft_val value =
            WEFT_OBJ({"enabled", weft_bool(one->enabled)}, {"ruleId", *one->rule ? weft_str(one->rule) : weft_none()},
                     {"time", weft_int(one->time_ms)});
        if (link != engine->switches.next)
            r = weft__buf_put(out, engine->alloc, ",", 1);
        if (r >= 0)
            r = weft__write_val(out, engine->alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, engine->alloc, "]", 1);
}

void weft__engine_each_switch(const weft_engine *engine,
                              void (*each)(void *ctx, const char *rule, bool enabled, int64_t time_ms), void *ctx) {
    for (weft_link *link = engine->switches.next; link != &engine->switches; link = link->next) {
        const switched *one = WEFT_CONTAINER(link, switched, link);
        each(ctx, *one->rule ? one->rule : NULL, one->enabled, one->time_ms);
    }
}

/* ---- at a start ---- */

/* Journals of earlier versions have what still mattered said again; documents have taken its place. */
int weft__retention_apply_kept(weft_engine *engine, const weft_event *event, const weft_json *data) {
    weft_json inner = weft_get(data, "data");
    weft_event was = *event;
    if (engine->phase != FOLDING)
        return 0;
    if (weft__member(data, "type", &was.type) < 0)
        return -ENOMEM;
    if (!was.type || strcmp(was.type, event->type) == 0)
        return 0;
    was.time_ms = weft_get_int(data, "time", event->time_ms);
    return weft__apply(engine, &was, &inner);
}

int weft__retention_apply_counted(weft_engine *engine, const weft_event *event, const weft_json *data) {
    note_observed(engine, event, data);
    return weft__task_apply_counted(engine, event, data);
}

int weft__retention_apply_stopped(weft_engine *engine, const weft_event *event, const weft_json *data) {
    note_observed(engine, event, data);
    return 0;
}

int weft__retention_apply_switched(weft_engine *engine, const weft_event *event, const weft_json *data) {
    const char *rule;
    weft_link *link = engine->switches.next;
    size_t count = 0;
    if (weft__member(data, "ruleId", &rule) < 0)
        return -ENOMEM;
    rule = rule ? rule : "";
    for (; link != &engine->switches && strcmp(WEFT_CONTAINER(link, switched, link)->rule, rule) != 0; link = link->next)
        count++;
    switched *one = link == &engine->switches ? NULL : WEFT_CONTAINER(link, switched, link);
    if (!one && count >= MAX_SWITCHES)
        return 0;
    if (!one) {
        size_t size = strlen(rule) + 1;
        one = weft__zalloc(engine->alloc, sizeof *one + size);
        if (!one)
            return -ENOMEM;
        memcpy(one->rule, rule, size);
        weft__list_push(&engine->switches, &one->link);
    }
    one->enabled = weft_get_bool(data, "enabled", true);
    one->time_ms = event->time_ms;
    return 0;
}

void weft__retention_drop(weft_engine *engine) {
    while (!weft__list_empty(&engine->switches)) {
        switched *one = WEFT_CONTAINER(engine->switches.next, switched, link);
        weft__list_remove(&one->link);
        weft__free(engine->alloc, one);
    }
}

/* ---- the work ---- */

static void set_next_pass(weft_engine *engine, int64_t next_ms) {
    weft__timer_set(engine->loop, &engine->retention_timer, weft_loop_now(engine->loop) + next_ms);
}

void weft__retention_saved(weft_engine *engine, uint64_t gseq) {
    weft__age_note(&engine->age, gseq, weft__retention_observed(engine), engine->limits.keep_ms);
    if (!engine->retaining || engine->phase != READY)
        return;
    engine->retaining = false;
    uint64_t upto = weft__age_until(&engine->age, steady_now(engine), engine->limits.keep_ms);
    weft__requests_forget_until(engine, upto);
    weft__store_trim(engine->store, &(weft_trim){.bytes = engine->limits.keep_bytes, .upto = upto, .before = gseq + 1}, NULL,
                     NULL);
}

void weft__retention_save_failed(weft_engine *engine) {
    if (!engine->retaining)
        return;
    engine->retaining = false;
    engine->bytes_since++;
    if (engine->phase == READY)
        set_next_pass(engine, MINUTE_MS);
}

void weft__retention_start(weft_engine *engine) {
    int64_t now = weft_loop_now(engine->loop);
    if (engine->retaining)
        return;
    set_next_pass(engine, HOUR_MS);
    /* A daemon that does nothing writes nothing, but once a day, because time goes on. */
    if (!engine->bytes_since && now < engine->retained + DAY_MS)
        return;
    engine->bytes_since = 0;
    engine->retained = now;
    engine->retaining = true;
    weft__save(engine);
}

/* A journal that begins now has nothing that could go. */
void weft__retention_begin(weft_engine *engine) {
    weft__age_begin(&engine->age, steady_now(engine));
    if (engine->fresh) {
        engine->bytes_since = 0;
        engine->retained = weft_loop_now(engine->loop);
    }
    weft__retention_start(engine);
}

static void on_retention_due(weft_timer *timer) {
    weft_engine *engine = WEFT_CONTAINER(timer, weft_engine, retention_timer);
    if (engine->phase == READY)
        weft__retention_start(engine);
}

void weft__retention_init(weft_engine *engine) {
    weft__list_init(&engine->switches);
    weft__timer_init(&engine->retention_timer, on_retention_due);
}
