/* What a task says, told to one client: stream_start, stream_data with a sequence from 1, stream_end.
 *
 * It is told from the events of the task's session, as they become durable. A client that does not read is told no more, and
 * nothing is kept for it: when its connection has room again, the rest is read from the store.
 *
 *     live ──its connection is full──▶ behind ──it has room: pages of the store, up to the last event──▶ live
 *
 * When a holder dies in the middle and another begins anew, the client is told nothing twice: what the new attempt says is
 * compared with what was told, and only what is behind that is told. So the chunks are the output of the last attempt, byte
 * for byte; if it says something else, they cannot be, and the stream fails. Of what was told only a digest and the length
 * are kept. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "doc.h"
#include "planner.h"
#include "utf8.h"

/* Bytes of one chunk. */
#define CHUNK ((size_t) 32 * 1024)
#define STREAM_ID 64

/* Of the bytes so far, however they came in pieces: two lanes, so that equal digests mean equal bytes for all that is not
 * made to deceive, and an executor that wants to deceive need not die for it. */
typedef struct digest {
    uint64_t a, b;
} digest;

static const digest empty_digest = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x9e3779b97f4a7c15)};

static void digest_put(digest *of, const char *data, size_t len) {
    for (size_t i = 0; i < len; i++) {
        of->a = (of->a ^ (unsigned char) data[i]) * UINT64_C(0x100000001b3);
        of->b = (of->b + (unsigned char) data[i] + 1) * UINT64_C(0xff51afd7ed558ccd);
        of->b ^= of->b >> 29;
    }
}

struct weft_planner_stream {
    weft_client_part part;
    weft_planner_stream_spec spec; /* its texts are ours; client NULL: it has gone */
    uint64_t sequence;
    uint64_t at;     /* seq of the last event of the session that was told */
    uint64_t latest; /* and of the last there is */
    size_t within;   /* bytes of the next one that were told already */
    bool behind;
    bool reading; /* a page is under way */
    bool freed;
    bool over;  /* done was called */
    bool ends;  /* the task has ended, with this attempt */
    bool fails; /* without a result */
    int64_t last_attempt;
    int64_t attempt;         /* that the last event was of */
    uint64_t told, said;     /* bytes told, and bytes that the attempt has said */
    digest of_told, of_said; /* of_said counts while said < told */
    char id[STREAM_ID];
    char text[];
};

static weft_peer *peer_of(const weft_planner_stream *stream) {
    return weft__hub_client_peer(stream->spec.client);
}

/* Whatever came of it: who hears that a stream has begun hears that it has ended, and how many chunks there were. */
static int tell_stream_end(weft_planner_stream *stream) {
    return weft_notify(peer_of(stream), "stream_end",
                       WEFT_OBJ({"stream_id", weft_str(stream->id)}, {"total_chunks", weft_uint(stream->sequence)}));
}

static void finish_stream(weft_planner_stream *stream, int r) {
    if (stream->over)
        return;
    stream->over = true;
    weft__list_remove(&stream->part.link);
    int told = stream->spec.client ? tell_stream_end(stream) : 0;
    stream->spec.done(stream->spec.ctx, r < 0 ? r : told);
}

/* ---- telling ---- */

static int tell_chunk(weft_planner_stream *stream, const char *data, size_t len) {
    int r = weft_notify(peer_of(stream), "stream_data",
                        WEFT_OBJ({"stream_id", weft_str(stream->id)}, {"chunk", weft_strn(data, len)},
                                 {"sequence", weft_uint(stream->sequence + 1)}));
    if (r < 0)
        return r;
    stream->sequence++;
    stream->told += len;
    stream->said += len;
    digest_put(&stream->of_told, data, len);
    return 0;
}

/* What was told before, said again. */
static int compare_again(weft_planner_stream *stream, const char *data, size_t len) {
    digest_put(&stream->of_said, data, len);
    stream->said += len;
    if (stream->said < stream->told)
        return 0;
    return stream->of_said.a == stream->of_told.a && stream->of_said.b == stream->of_told.b ? 0 : -ESTALE;
}

static size_t chunk_length(const char *data, size_t len) {
    size_t n = len <= CHUNK ? len : weft__utf8_fit(data, len, CHUNK);
    return n ? n : CHUNK;
}

/* 1: all of it; 0: the connection is full. */
static int tell_text(weft_planner_stream *stream, weft_bytes text) {
    while (stream->within < text.len) {
        const char *data = text.data + stream->within;
        size_t len = text.len - stream->within;
        uint64_t again = stream->told - stream->said;
        if (!again && weft_peer_full(peer_of(stream)))
            return 0;
        size_t n = again ? (len < again ? len : (size_t) again) : chunk_length(data, len);
        int r = again ? compare_again(stream, data, n) : tell_chunk(stream, data, n);
        if (r < 0)
            return r;
        stream->within += n;
    }
    return 1;
}

static void begin_attempt(weft_planner_stream *stream, int64_t attempt) {
    if (stream->attempt == attempt)
        return;
    stream->attempt = attempt;
    stream->said = 0;
    stream->of_said = empty_digest;
}

/* One event of the session, in its order. 1: done with it; 0: the connection is full; <0. */
static int tell_event(weft_planner_stream *stream, const weft_event *event, const weft_json *data) {
    weft_bytes text;
    int r = 1;
    bool says = strcmp(event->type, "session.output") == 0 || strcmp(event->type, "session.update") == 0;
    if (says && strcmp(weft_get_str(data, "taskId", ""), stream->spec.task) == 0 &&
        (r = weft__output_text(event, data, &text)) > 0) {
        begin_attempt(stream, weft_get_int(data, "attempt", 1));
        r = tell_text(stream, text);
    } else if (r == 0)
        r = 1;
    if (r > 0) {
        stream->at = event->seq;
        stream->within = 0;
    }
    return r;
}

/* All of it was told. The last attempt has said at least as much as was told, unless it failed: then there is no output that
 * the chunks would have to be. */
static void end_if_told(weft_planner_stream *stream) {
    if (stream->over || !stream->ends || stream->behind)
        return;
    begin_attempt(stream, stream->last_attempt);
    finish_stream(stream, stream->said < stream->told && !stream->fails ? -ESTALE : 0);
}

/* ---- catching up ---- */

static void read_page(weft_planner_stream *stream);

static int tell_page(weft_planner_stream *stream, const weft_page *page) {
    int r = 1;
    for (size_t i = 0; r > 0 && i < page->count; i++) {
        weft_doc *doc = NULL;
        r = weft_doc_parse(page->events[i].data.data, page->events[i].data.len, stream->spec.hub->alloc, &doc);
        if (r >= 0)
            r = tell_event(stream, &page->events[i], weft_doc_root(doc));
        weft_doc_free(doc);
    }
    return r;
}

static void on_stream_page(void *ctx, int r, const weft_page *page) {
    weft_planner_stream *stream = ctx;
    stream->reading = false;
    if (stream->freed) {
        weft__free(stream->spec.hub->alloc, stream);
        return;
    }
    if (stream->over)
        return;
    if (r == 0) {
        stream->latest = page->head > stream->latest ? page->head : stream->latest;
        r = tell_page(stream, page);
        if (r > 0 && !page->count)
            stream->at = stream->latest;
    } else if (r > 0)
        r = r == WEFT_GAP_TRIMMED ? -EOVERFLOW : -EIO;
    if (r < 0)
        finish_stream(stream, r);
    else if (r > 0 && stream->at >= stream->latest) {
        stream->behind = false;
        end_if_told(stream);
    } else if (r > 0)
        read_page(stream);
}

static void read_page(weft_planner_stream *stream) {
    char name[WEFT_STORE_NAME + 1];
    snprintf(name, sizeof name, "%s%s", WEFT_STREAM_SESSION, stream->spec.session);
    weft_query query = {.stream = name, .after = stream->at};
    int r = weft__store_read(weft__engine_store(stream->spec.hub->engine), &query, on_stream_page, stream);
    stream->reading = r >= 0;
    if (r < 0)
        finish_stream(stream, r);
}

static void on_stream_drain(weft_client_part *part) {
    weft_planner_stream *stream = WEFT_CONTAINER(part, weft_planner_stream, part);
    if (stream->behind && !stream->reading && !weft_peer_full(peer_of(stream)))
        read_page(stream);
}

static void on_stream_gone(weft_client_part *part) {
    weft_planner_stream *stream = WEFT_CONTAINER(part, weft_planner_stream, part);
    stream->spec.client = NULL;
    finish_stream(stream, -EPIPE);
}

/* ---- outside ---- */

int weft__planner_stream_new(const weft_planner_stream_spec *spec, weft_planner_stream **ret) {
    const weft_alloc *alloc = spec->hub->alloc;
    size_t task = strlen(spec->task) + 1, session = strlen(spec->session) + 1;
    const char *number = strrchr(spec->task, '-');
    weft_planner_stream *stream = weft__zalloc(alloc, sizeof *stream + task + session);
    if (!stream)
        return -ENOMEM;
    stream->spec = *spec;
    stream->spec.task = memcpy(stream->text, spec->task, task);
    stream->spec.session = memcpy(stream->text + task, spec->session, session);
    stream->attempt = 1;
    stream->of_told = stream->of_said = empty_digest;
    stream->part = (weft_client_part){.on_gone = on_stream_gone, .on_drain = on_stream_drain};
    snprintf(stream->id, sizeof stream->id, "stream_%s", number ? number + 1 : spec->task);
    int r = weft_notify(weft__hub_client_peer(spec->client), "stream_start",
                        WEFT_OBJ({"stream_id", weft_str(stream->id)}, {"task_id", weft_str(spec->task_id)}));
    if (r < 0) {
        weft__free(alloc, stream);
        return r;
    }
    weft__hub_client_add(spec->client, &stream->part);
    stream->behind = spec->late;
    *ret = stream;
    if (spec->late)
        read_page(stream);
    return 0;
}

void weft__planner_stream_event(weft_planner_stream *stream, const weft_event *event, const weft_json *data) {
    if (stream->over || strncmp(event->stream, WEFT_STREAM_SESSION, sizeof WEFT_STREAM_SESSION - 1) != 0)
        return;
    stream->latest = event->seq;
    if (stream->behind)
        return;
    int r = tell_event(stream, event, data);
    if (r < 0)
        finish_stream(stream, r);
    else
        stream->behind = r == 0;
}

void weft__planner_stream_end(weft_planner_stream *stream, int64_t attempt, bool fails) {
    stream->ends = true;
    stream->fails = fails;
    stream->last_attempt = attempt;
    end_if_told(stream);
}

weft_planner_stream *weft__planner_stream_free(weft_planner_stream *stream) {
    if (!stream)
        return NULL;
    if (!stream->over && stream->spec.client)
        (void) tell_stream_end(stream);
    stream->over = stream->freed = true;
    weft__list_remove(&stream->part.link);
    if (!stream->reading)
        weft__free(stream->spec.hub->alloc, stream);
    return NULL;
}
