/* GET /events: what event.subscribe gives on other connections, as server-sent events. Each event has its position as its
 * id, "EPOCH:GSEQ"; a browser that reconnects sends the last one it saw as Last-Event-ID and goes on exactly there. Where
 * that cannot be (trimmed, another epoch), one event of the type "gap" says why, and the stream goes on from now.
 *
 *   ?since=EPOCH:GSEQ or GSEQ   go on behind this position; 0: everything that is kept; absent: from now on
 *   ?types=task.,question.      only types that begin so
 *   ?task=ID  ?session=ID       only events about these
 *
 * A slow reader costs no memory: it is told from the store, as every other subscriber is. */
#include "event_stream.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http_events.h"
#include "http_query.h"
#include "hub_clients.h"
#include "hub_methods.h"
#include "link.h"
#include "path_gate.h"

#define MAX_TYPES 64 /* of ?types=: more than there are */
#define RETRY "retry: 1000\n\n"

/* What a request asks for. The strings lie in text. */
typedef struct stream_query {
    char *text;
    const char *since, *task, *session;
    char *types;
} stream_query;

/* ---- the query ---- */

/* Names that are not ours are ignored: a token comes this way too. */
static void take_pair(stream_query *query, const char *name, char *value) {
    if (strcmp(name, "since") == 0)
        query->since = value;
    else if (strcmp(name, "types") == 0)
        query->types = value;
    else if (strcmp(name, "task") == 0)
        query->task = value;
    else if (strcmp(name, "session") == 0)
        query->session = value;
}

static int read_query(const weft_hub *hub, const weft_http *http, stream_query *ret) {
    const char *text = weft_http_query(http), *last = weft_http_header(http, "Last-Event-ID");
    const char *name;
    char *value;
    *ret = (stream_query){.text = weft__strndup(hub->alloc, text, strlen(text))};
    if (!ret->text)
        return -ENOMEM;
    for (char *rest = ret->text; weft__query_next(&rest, &name, &value);)
        take_pair(ret, name, value);
    /* What a browser saw last is newer than the address it began with. */
    if (last && *last)
        ret->since = last;
    return 0;
}

/* epoch has WEFT_EPOCH + 1 bytes. false: it is no position. */
static bool read_event_id(const char *text, char *epoch, weft_subscription_spec *spec) {
    const char *colon = text ? strrchr(text, ':') : NULL, *number = colon ? colon + 1 : text;
    char *end;
    spec->live = !text || !*text;
    if (spec->live)
        return true;
    if (!isdigit((unsigned char) *number))
        return false;
    errno = 0;
    spec->after = strtoull(number, &end, 10);
    if (*end || errno || spec->after > INT64_MAX)
        return false;
    if (!colon)
        return true;
    /* A longer one is of no journal: "" is another's too. */
    size_t len = (size_t) (colon - text);
    snprintf(epoch, WEFT_EPOCH + 1, "%.*s", len > WEFT_EPOCH ? 0 : (int) len, text);
    spec->epoch = epoch;
    return true;
}

static size_t split_types(char *text, const char **ret) {
    char *save = NULL;
    size_t count = 0;
    for (char *type = text ? strtok_r(text, ",", &save) : NULL; type && count < MAX_TYPES; type = strtok_r(NULL, ",", &save))
        ret[count++] = type;
    return count;
}

/* ---- the stream ---- */

/* What the callbacks need; freed by the last of them. */
typedef struct event_stream {
    const weft_hub *hub;
    weft_hub_client *client;
} event_stream;

static int put_stream_line(const event_stream *stream, const char *line) {
    return weft__peer_put(weft__hub_client_peer(stream->client), line, strlen(line));
}

static int put_position(const event_stream *stream, uint64_t head) {
    return weft__subscription_mark(weft__hub_client_subscription(stream->client, NULL), head);
}

static int tell_gap(const event_stream *stream, int gap, uint64_t head) {
    const char *epoch = weft__store_epoch(weft__engine_store(stream->hub->engine));
    int r = put_stream_line(stream, "event: gap\n");
    if (r >= 0)
        r = put_position(stream, head);
    return r < 0 ? r
                 : weft_notify(weft__hub_client_peer(stream->client), "event.gap",
                               WEFT_OBJ({"reason", weft_str(weft__gap_name(gap))}, {"epoch", weft_str(epoch)},
                                        {"head", weft_uint(head)}));
}

/* From now on, with a position to come back to before anything has happened. */
static void on_stream_live(void *ctx, int r, uint64_t head) {
    event_stream *stream = ctx;
    const weft_alloc *alloc = stream->hub->alloc;
    if (r == 0)
        r = put_position(stream, head);
    if (r == 0)
        r = put_stream_line(stream, "\n");
    if (r != 0 && r != -ECANCELED)
        weft__hub_client_lose(stream->client);
    weft__free(alloc, stream);
}

static void on_resumed(void *ctx, int r, uint64_t head) {
    event_stream *stream = ctx;
    const weft_alloc *alloc = stream->hub->alloc;
    if (r > 0) {
        r = tell_gap(stream, r, head);
        if (r >= 0)
            r = weft__subscription_go_live(weft__hub_client_subscription(stream->client, NULL), on_stream_live, stream);
        if (r >= 0)
            return;
    }
    if (r < 0 && r != -ECANCELED)
        weft__hub_client_lose(stream->client);
    weft__free(alloc, stream);
}

static int begin_stream(weft_hub *hub, weft_peer *peer, const weft_subscription_spec *spec) {
    weft_hub_client *client = weft__hub_client_of(hub->clients, peer);
    event_stream *stream = client ? weft__alloc(hub->alloc, sizeof *stream) : NULL;
    if (!stream)
        return client ? -ENOMEM : -EPIPE;
    *stream = (event_stream){hub, client};
    int r = put_stream_line(stream, RETRY);
    if (r >= 0)
        r = weft__hub_client_subscribe(client, spec, spec->live ? on_stream_live : on_resumed, stream);
    if (r < 0)
        weft__free(hub->alloc, stream);
    return r;
}

/* ---- the route ---- */

static void answer_json(weft_http *http, int status, const char *text) {
    weft_http_answer(http, status, "application/json", (weft_bytes){text, strlen(text)});
}

/* It needs what event.subscribe needs. */
static bool may_follow_events(const weft_identity *who) {
    for (const weft_method *row = weft__hub_methods.methods; row->name; row++)
        if (strcmp(row->name, "event.subscribe") == 0)
            return weft_has_scope(who, row->scope);
    return false;
}

static void stream_events(weft_hub *hub, weft_http *http, const stream_query *query) {
    const char *types[MAX_TYPES];
    char epoch[WEFT_EPOCH + 1] = "";
    weft_subscription_spec spec = {.task = query->task, .session = query->session, .types = types, .marks = true};
    weft_peer *peer = NULL;
    if (!read_event_id(query->since, epoch, &spec)) {
        answer_json(http, 400,
                    "{\"error\":\"badPosition\",\"message\":\"since and Last-Event-ID are EPOCH:GSEQ, or GSEQ alone\"}");
        return;
    }
    spec.type_count = split_types(query->types, types);
    /* A dialect that nobody has: it hears events, and nothing in somebody's words. */
    if (weft__http_events(http, "events", &peer) >= 0 && begin_stream(hub, peer, &spec) < 0)
        weft_peer_free(peer);
}

static void on_events_route(weft_http *http, void *ctx);

/* Whose events are told depends on tasks that may not be known yet. */
typedef struct early_stream {
    weft_past_waiter waiter;
    weft_hub *hub;
    weft_http *http;
} early_stream;

static void on_stream_past(weft_past_waiter *waiter, int r) {
    early_stream *early = WEFT_CONTAINER(waiter, early_stream, waiter);
    if (r < 0)
        answer_json(early->http, 503, "{\"error\":\"storageFailed\"}");
    else
        on_events_route(early->http, early->hub);
    weft__free(early->hub->alloc, early);
}

static void await_past(weft_hub *hub, weft_http *http) {
    early_stream *early = weft__alloc(hub->alloc, sizeof *early);
    if (!early) {
        answer_json(http, 503, "{\"error\":\"outOfMemory\"}");
        return;
    }
    *early = (early_stream){.waiter = {.on_past = on_stream_past}, .hub = hub, .http = http};
    weft__engine_await_past(hub->engine, &early->waiter);
}

static void on_events_route(weft_http *http, void *ctx) {
    weft_hub *hub = ctx;
    stream_query query;
    if (!hub->clients || hub->stopping)
        answer_json(http, 503, "{\"error\":\"starting or stopping\"}");
    else if (!may_follow_events(weft_http_identity(http)))
        answer_json(http, 403, "{\"error\":\"forbidden\",\"message\":\"This token may not follow events\"}");
    else if (strcmp(weft_http_method(http), "GET") != 0)
        weft_http_answer(http, 200, "text/event-stream", (weft_bytes){0});
    else if (weft__engine_past(hub->engine) == -EAGAIN)
        await_past(hub, http);
    else if (weft__engine_past(hub->engine) < 0)
        answer_json(http, 503, "{\"error\":\"storageFailed\"}");
    else if (!weft__path_may(hub, http, "event.subscribe"))
        return;
    else if (read_query(hub, http, &query) < 0)
        answer_json(http, 503, "{\"error\":\"outOfMemory\"}");
    else {
        stream_events(hub, http, &query);
        weft__free(hub->alloc, query.text);
    }
}

int weft__event_stream_route(weft_hub *hub, weft_server *server) {
    return weft_server_route(server, "GET", "/events", on_events_route, hub);
}
