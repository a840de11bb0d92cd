/* A connection of Streamable HTTP: a peer of the hub, and the streams by which what it says goes out.
 *
 * A message goes to the stream of the session that it is about, else to the connection's. While a stream has no reader, or a
 * slow one, its messages wait; when much waits, no more is taken from the peer, which is full then, and the hub tells it the
 * rest from the store. A connection that nobody reads from ends after a while; its sessions do not. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "acp_http.h"
#include "alloc.h"
#include "link.h"
#include "list.h"
#include "server.h"

/* Connections of all clients together: each may hold a few megabytes. */
#define MOST_CONNECTIONS 256
/* Streams and answers that are due, of one connection: as many as sessions that it may follow. */
#define MOST_STREAMS 1024
#define MOST_ANSWERS 1024
/* What may wait for readers before no more is taken from the peer. */
#define MOST_WAITING ((size_t) 1 << 20)
/* Without a reader. A client that reconnects does so at once. */
#define IDLE_MS 60000

typedef struct acp_stream {
    weft_link link;
    weft_acp_connection *connection;
    weft_http *http;  /* NULL: nobody reads */
    bool full;        /* until it has drained */
    weft_buf waiting; /* as it will be sent */
    char session[];   /* "": the connection's */
} acp_stream;

/* An answer that is due, and where it goes. */
typedef struct acp_answer {
    weft_link link;
    size_t id_len;
    bool if_read;       /* the session's stream, if somebody reads it; else the connection's */
    char *id, *session; /* in text; session "": the connection's stream */
    char text[];
} acp_answer;

struct weft_acp_connection {
    weft_link link;
    weft_acp_http *all;
    const weft_alloc *alloc;
    weft_peer *peer; /* NULL: the hub has ended it */
    weft_link streams, answers;
    size_t stream_count, answer_count, waiting;
    weft_later flush, end;
    weft_timer idle;
    char id[ACP_CONNECTION_ID];
};

static const weft_carrier carrier;

static weft_loop *loop_of(const weft_acp_connection *connection) {
    return weft__engine_loop(connection->all->hub->engine);
}

/* ---- streams ---- */

static acp_stream *find_stream(const weft_acp_connection *connection, const char *session) {
    for (weft_link *at = connection->streams.next; at != &connection->streams; at = at->next)
        if (strcmp(WEFT_CONTAINER(at, acp_stream, link)->session, session) == 0)
            return WEFT_CONTAINER(at, acp_stream, link);
    return NULL;
}

static int make_stream(weft_acp_connection *connection, const char *session, acp_stream **ret) {
    size_t size = strlen(session) + 1;
    if (connection->stream_count == MOST_STREAMS)
        return -ENOBUFS;
    acp_stream *stream = weft__zalloc(connection->alloc, sizeof *stream + size);
    if (!stream)
        return -ENOMEM;
    stream->connection = connection;
    memcpy(stream->session, session, size);
    weft__list_push(&connection->streams, &stream->link);
    connection->stream_count++;
    *ret = stream;
    return 0;
}

static int get_stream(weft_acp_connection *connection, const char *session, acp_stream **ret) {
    acp_stream *found = find_stream(connection, session);
    if (!found)
        return make_stream(connection, session, ret);
    *ret = found;
    return 0;
}

static void free_stream(acp_stream *stream) {
    weft_acp_connection *connection = stream->connection;
    weft__list_remove(&stream->link);
    connection->stream_count--;
    connection->waiting -= weft__buf_len(&stream->waiting);
    if (stream->http)
        weft_http_end(stream->http);
    weft__buf_done(&stream->waiting, connection->alloc);
    weft__free(connection->alloc, stream);
}

static bool has_reader(const weft_acp_connection *connection) {
    for (weft_link *at = connection->streams.next; at != &connection->streams; at = at->next)
        if (WEFT_CONTAINER(at, acp_stream, link)->http)
            return true;
    return false;
}

static void watch_readers(weft_acp_connection *connection) {
    weft_loop *loop = loop_of(connection);
    if (has_reader(connection))
        weft__timer_stop(loop, &connection->idle);
    else
        weft__timer_set(loop, &connection->idle, weft__loop_fresh_now(loop) + IDLE_MS);
}

/* What waits goes out as one part. */
static void flush_stream(acp_stream *stream) {
    size_t len = weft__buf_len(&stream->waiting);
    if (!stream->http || stream->full || !len)
        return;
    int r = weft_http_write(stream->http, (weft_bytes){weft__buf_head(&stream->waiting), len});
    if (r < 0)
        return; /* on_gone comes, or it drains */
    stream->full = r > 0;
    stream->connection->waiting -= len;
    weft__buf_done(&stream->waiting, stream->connection->alloc);
    stream->waiting = (weft_buf){0};
}

static int put_event(acp_stream *stream, const char *line, size_t len) {
    const weft_alloc *alloc = stream->connection->alloc;
    size_t size = 6 + len + 2;
    int r = weft__buf_reserve(&stream->waiting, alloc, size);
    if (r < 0)
        return r;
    weft__buf_put(&stream->waiting, alloc, "data: ", 6);
    weft__buf_put(&stream->waiting, alloc, line, len);
    weft__buf_put(&stream->waiting, alloc, "\n\n", 2);
    stream->connection->waiting += size;
    return 0;
}

/* ---- where a message goes ---- */

static acp_answer *find_answer(const weft_acp_connection *connection, const weft_json *id) {
    for (weft_link *at = connection->answers.next; at != &connection->answers; at = at->next) {
        acp_answer *answer = WEFT_CONTAINER(at, acp_answer, link);
        if (answer->id_len == id->len && memcmp(answer->id, id->text, id->len) == 0)
            return answer;
    }
    return NULL;
}

static void free_answer(weft_acp_connection *connection, acp_answer *answer) {
    weft__list_remove(&answer->link);
    connection->answer_count--;
    weft__free(connection->alloc, answer);
}

static int expect_answer(weft_acp_connection *connection, const weft_acp_asks *asks) {
    const char *session = asks->session ? asks->session : "";
    weft_bytes id = asks->id;
    size_t session_len = strlen(session) + 1;
    if (connection->answer_count == MOST_ANSWERS)
        return -ENOBUFS;
    acp_answer *answer = weft__zalloc(connection->alloc, sizeof *answer + id.len + session_len);
    if (!answer)
        return -ENOMEM;
    answer->id_len = id.len;
    answer->if_read = asks->if_read;
    answer->id = memcpy(answer->text, id.data, id.len);
    answer->session = memcpy(answer->text + id.len, session, session_len);
    weft__list_push(&connection->answers, &answer->link);
    connection->answer_count++;
    return 0;
}

static int send_line(weft_acp_connection *connection, const char *session, const char *line, size_t len) {
    acp_stream *stream = NULL;
    int r = get_stream(connection, session, &stream);
    if (r >= 0)
        r = put_event(stream, line, len);
    if (r >= 0)
        flush_stream(stream);
    return r;
}

static const char *stream_of(const weft_acp_connection *connection, const acp_answer *answer) {
    const acp_stream *stream = find_stream(connection, answer->session);
    return answer->if_read && !(stream && stream->http) ? "" : answer->session;
}

static int route_line(weft_acp_connection *connection, const char *line, size_t len) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(line, len, connection->alloc, &doc);
    if (r < 0)
        return r;
    weft_json method = weft_get(weft_doc_root(doc), "method"), id = weft_get(weft_doc_root(doc), "id");
    weft_json about = weft_pointer(weft_doc_root(doc), "/params/sessionId");
    acp_answer *answer = method.text || !id.text ? NULL : find_answer(connection, &id);
    r = send_line(connection, answer ? stream_of(connection, answer) : weft_str_of(&about, ""), line, len);
    if (answer)
        free_answer(connection, answer);
    weft_doc_free(doc);
    return r;
}

/* ---- from the peer ---- */

static void end_soon(weft_acp_connection *connection) {
    weft__later(loop_of(connection), &connection->end);
}

static void route_output(weft_acp_connection *connection) {
    while (connection->peer && connection->waiting < MOST_WAITING) {
        weft_bytes out = weft_peer_output(connection->peer);
        const char *end = out.len ? memchr(out.data, '\n', out.len) : NULL;
        if (!end)
            return;
        size_t len = (size_t) (end - out.data);
        if (route_line(connection, out.data, len) < 0) {
            end_soon(connection); /* it cannot be told everything */
            return;
        }
        weft_peer_sent(connection->peer, len + 1);
    }
}

/* What the client says comes by requests of its own, so nothing waits to be read before there is more to say. */
static void take_output(weft_acp_connection *connection) {
    route_output(connection);
    if (connection->peer)
        weft__peer_tell_drained(connection->peer);
}

static void on_flush(weft_later *later) {
    take_output(WEFT_CONTAINER(later, weft_acp_connection, flush));
}

static void on_end(weft_later *later) {
    weft__acp_connection_free(WEFT_CONTAINER(later, weft_acp_connection, end));
}

static void on_idle(weft_timer *timer) {
    weft__acp_connection_free(WEFT_CONTAINER(timer, weft_acp_connection, idle));
}

static void on_output(weft_peer *peer, void *data) {
    weft_acp_connection *connection = weft__peer_carrier(peer, &carrier);
    (void) data;
    if (connection)
        weft__later(loop_of(connection), &connection->flush);
}

static void on_peer_drain(weft_peer *peer, void *data) {
    const weft_acp_connection *connection = weft__peer_carrier(peer, &carrier);
    (void) data;
    if (connection)
        weft__hub_clients_drain(connection->all->hub->clients, peer);
}

/* The hub ends it, so that it comes back and loads; or we do. */
static void on_peer_free(weft_peer *peer, void *data) {
    weft_acp_connection *connection = data;
    if (connection->peer != peer)
        return;
    connection->peer = NULL;
    end_soon(connection);
}

static int64_t connection_now(void *data) {
    return weft__loop_fresh_now(loop_of(data));
}

static const weft_carrier carrier = {.free = on_peer_free, .now = connection_now};

/* ---- readers ---- */

static void on_stream_drain(weft_http *http, void *ctx) {
    acp_stream *stream = ctx;
    (void) http;
    stream->full = false;
    flush_stream(stream);
    take_output(stream->connection);
}

static void on_stream_gone(weft_http *http, void *ctx) {
    acp_stream *stream = ctx;
    stream->http = NULL;
    stream->full = false;
    weft_http_end(http);
    watch_readers(stream->connection);
}

int weft__acp_connection_stream(weft_acp_connection *connection, const char *session, weft_http *http) {
    acp_stream *stream = NULL;
    int r = get_stream(connection, session ? session : "", &stream);
    if (r < 0)
        return r;
    if (stream->http)
        return -EBUSY;
    weft_http_answer_opts opts = {.type = "text/event-stream", .cache = "no-cache", .body = {": \n\n", 4}};
    r = weft_http_begin(http, &opts,
                        &(weft_http_stream){.on_drain = on_stream_drain, .on_gone = on_stream_gone, .ctx = stream});
    if (r < 0)
        return r;
    stream->http = http;
    watch_readers(connection);
    flush_stream(stream);
    take_output(connection);
    return 0;
}

/* ---- from the client ---- */

static int set_identity(weft_acp_connection *connection, const weft_identity *who) {
    weft_identity now = *who;
    now.dialect = weft_peer_identity(connection->peer)->dialect;
    return weft_peer_set_identity(connection->peer, &now);
}

/* The text is read, and written to, in a buffer with room behind it. */
static int feed_body(weft_acp_connection *connection, weft_bytes body) {
    weft_buf copy = {0};
    int r = weft__buf_put(&copy, connection->alloc, body.data, body.len);
    if (r >= 0)
        r = weft__peer_body(connection->peer, weft__buf_head(&copy), body.len, weft_loop_now(loop_of(connection)));
    weft__buf_done(&copy, connection->alloc);
    return r;
}

int weft__acp_connection_feed(weft_acp_connection *connection, const weft_identity *who, weft_bytes body,
                              const weft_acp_asks *asks) {
    int r = connection->peer ? set_identity(connection, who) : -EPIPE;
    if (r >= 0 && asks->id.len)
        r = expect_answer(connection, asks);
    if (r >= 0)
        r = feed_body(connection, body);
    if (r >= 0)
        weft__later(loop_of(connection), &connection->flush);
    return r;
}

int weft__acp_connection_first(weft_acp_connection *connection, char **ret, size_t *ret_len) {
    weft_bytes out = connection->peer ? weft_peer_output(connection->peer) : (weft_bytes){0};
    const char *end = out.len ? memchr(out.data, '\n', out.len) : NULL;
    *ret = NULL;
    if (!end)
        return 0;
    *ret_len = (size_t) (end - out.data);
    *ret = weft__strndup(connection->alloc, out.data, *ret_len);
    if (!*ret)
        return -ENOMEM;
    weft_peer_sent(connection->peer, *ret_len + 1);
    return 0;
}

/* ---- life ---- */

static int make_id(char ret[ACP_CONNECTION_ID]) {
    unsigned char bytes[(ACP_CONNECTION_ID - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
        return -EIO;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* All peers of the hub have the same data before they are opened. */
static int open_peer(weft_acp_connection *connection, const weft_identity *who) {
    weft_hub *hub = connection->all->hub;
    weft_identity speaks = *who;
    speaks.dialect = "acp";
    weft_peer_opts opts = {.framing = &weft_ndjson,
                           .identity = &speaks,
                           .data = hub->server->opts.data,
                           .on_output = on_output,
                           .on_drain = on_peer_drain};
    weft_peer *peer = NULL;
    int r = weft_peer_new(hub->service, &opts, &peer);
    if (r < 0)
        return r;
    connection->peer = peer;
    weft__peer_set_carrier(peer, &carrier, connection);
    weft__hub_clients_open(hub->clients, peer); /* which frees it when memory is short */
    return connection->peer ? 0 : -ENOMEM;
}

int weft__acp_connection_new(weft_acp_http *all, const weft_identity *who, weft_acp_connection **ret) {
    const weft_alloc *alloc = all->hub->alloc;
    if (all->count == MOST_CONNECTIONS)
        return -ENOBUFS;
    weft_acp_connection *connection = weft__zalloc(alloc, sizeof *connection);
    if (!connection)
        return -ENOMEM;
    connection->all = all;
    connection->alloc = alloc;
    weft__list_init(&connection->streams);
    weft__list_init(&connection->answers);
    weft__later_init(&connection->flush, on_flush);
    weft__later_init(&connection->end, on_end);
    weft__timer_init(&connection->idle, on_idle);
    weft__list_push(&all->connections, &connection->link);
    all->count++;
    int r = make_id(connection->id);
    if (r >= 0)
        r = open_peer(connection, who);
    if (r < 0) {
        weft__acp_connection_free(connection);
        return r;
    }
    watch_readers(connection);
    *ret = connection;
    return 0;
}

weft_acp_connection *weft__acp_connection_free(weft_acp_connection *connection) {
    weft_hub *hub = connection->all->hub;
    weft_peer *peer = connection->peer;
    connection->peer = NULL;
    weft__list_remove(&connection->link);
    connection->all->count--;
    weft__later_cancel(&connection->flush);
    weft__later_cancel(&connection->end);
    weft__timer_stop(loop_of(connection), &connection->idle);
    if (peer) {
        weft__hub_clients_close(hub->clients, peer);
        weft_peer_free(peer);
    }
    while (!weft__list_empty(&connection->streams))
        free_stream(WEFT_CONTAINER(connection->streams.next, acp_stream, link));
    while (!weft__list_empty(&connection->answers))
        free_answer(connection, WEFT_CONTAINER(connection->answers.next, acp_answer, link));
    weft__later_cancel(&connection->flush);
    weft__later_cancel(&connection->end);
    return weft__free(connection->alloc, connection);
}

void weft__acp_connections_end(weft_acp_http *all) {
    while (!weft__list_empty(&all->connections)) {
        weft_acp_connection *first = WEFT_CONTAINER(all->connections.next, weft_acp_connection, link);
        take_output(first);
        weft__acp_connection_free(first);
    }
}

size_t weft__acp_connection_waiting(const weft_acp_connection *connection) {
    return connection->waiting;
}

const char *weft__acp_connection_id(const weft_acp_connection *connection) {
    return connection->id;
}

/* An id is no secret that is enough by itself: the token must be the one that it was made with. */
weft_acp_connection *weft__acp_connection_find(const weft_acp_http *all, const char *id, const weft_identity *who) {
    for (weft_link *at = all->connections.next; at != &all->connections; at = at->next) {
        weft_acp_connection *connection = WEFT_CONTAINER(at, weft_acp_connection, link);
        if (!connection->peer || strcmp(connection->id, id) != 0)
            continue;
        const weft_identity *owner = weft_peer_identity(connection->peer);
        return strcmp(owner->name, who->name) == 0 && strcmp(owner->scopes, who->scopes) == 0 ? connection : NULL;
    }
    return NULL;
}
