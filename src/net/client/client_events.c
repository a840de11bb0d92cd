/* Listening to server-sent events: one GET whose answer does not end. What it brings is fed to the client's peer. */
#include "client_events.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client_http.h"
#include "http1.h"
#include "sse_in.h"
#include "tcp.h"

/* Between WAITING and OPEN the stream's own machine runs; a listener that was let go (client->events is another, or none)
 * only waits for its stream to close.
 *
 * CONNECTING ──on_events_open()──▶ ASKING ──head of the answer──▶ LISTENING ──on_events_end()──▶ gone; another is started
 * when time has come */
struct weft_events {
    weft_stream stream;
    weft_client *client;
    weft_buf out;
    weft_buf head; /* of the answer, until it is whole */
    bool listening, chunked, let_go;
    weft_chunked chunks;
    weft_sse_in in;
};

typedef struct weft_events weft_events;

static weft_events *events_of_stream(weft_stream *stream) {
    return WEFT_CONTAINER(stream, weft_events, stream);
}

static void let_go_of_events(weft_events *events) {
    if (events->let_go)
        return;
    events->let_go = true;
    events->client->events = NULL;
    weft__stream_close(&events->stream);
}

static void listen_again_later(weft_client *client) {
    int64_t now = weft_loop_now(client->loop);
    weft__timer_set(client->loop, &client->events_again,
                    now + weft__backoff_next(&client->events_backoff, weft__any_number()));
}

/* It ended by itself: the client still wants it. */
static void lose_events(weft_events *events) {
    weft_client *client = events->client;
    if (events->let_go)
        return;
    let_go_of_events(events);
    listen_again_later(client);
}

/* ---- what comes ---- */

static bool on_server_event(char *data, size_t len, void *ctx) {
    weft_events *events = ctx;
    weft_client *client = events->client;
    client->delivered++;
    weft__peer_body(client->peer, data, len, weft_loop_now(client->loop));
    return !events->let_go;
}

static int take_events_body(weft_events *events, char *data, size_t len) {
    size_t used, body = len;
    int r = events->chunked ? weft__chunked(&events->chunks, data, len, &used, &body) : 0;
    if (r < 0)
        return r;
    int taken = weft__sse_in(&events->in, data, body, on_server_event, events);
    return taken < 0 ? taken : r > 0 ? -ECONNRESET : 0;
}

/* Asking again would not help: the same token is refused again, a server without events has none in a second either. The
 * client ends, and this listener with it; or this listener alone, where events were asked for in passing. */
static int refuse_listening(weft_events *events, int status) {
    weft_client *client = events->client;
    if (client->events_may_fail) {
        let_go_of_events(events);
        weft__client_want_events(client, false);
        return -ECONNRESET;
    }
    client->trouble[0] = '\0';
    int r = weft__http_refused(client, status, " when asked for events");
    weft__client_lost(client, client->wire, r == -EACCES ? r : -EOPNOTSUPP);
    return -ECONNRESET;
}

static int take_events_head(weft_events *events) {
    weft_http_head head;
    int len = weft__http_response(weft__buf_head(&events->head), weft__buf_len(&events->head), &head);
    if (len <= 0)
        return len;
    weft_bytes type = weft__http_find(&head, "content-type", NULL);
    weft__http_tell_reply(events->client, &head);
    if (events->let_go)
        return -ECONNRESET;
    if (head.status >= 400 && head.status < 500 && head.status != 408 && head.status != 429)
        return refuse_listening(events, head.status);
    if (head.status != 200 || type.len < 17 || memcmp(type.data, "text/event-stream", 17) != 0)
        return -EPROTO;
    events->listening = true;
    events->chunked = head.chunked;
    weft__backoff_reset(&events->client->events_backoff);
    weft__buf_take(&events->head, events->in.alloc, (size_t) len);
    return 0;
}

static int take_events_bytes(weft_events *events, char *data, size_t len) {
    if (events->listening)
        return take_events_body(events, data, len);
    int r = weft__buf_put(&events->head, events->in.alloc, data, len);
    if (r == 0)
        r = take_events_head(events);
    if (r == 0 && events->listening && weft__buf_len(&events->head) > 0) {
        r = take_events_body(events, weft__buf_head(&events->head), weft__buf_len(&events->head));
        weft__buf_done(&events->head, events->in.alloc);
    }
    return r;
}

/* ---- the stream ---- */

static void on_events_open(weft_stream *stream) {
    weft__stream_flush(stream);
}

static void on_events_bytes(weft_stream *stream, char *data, size_t len) {
    weft_events *events = events_of_stream(stream);
    weft_client *client = weft__client_ref(events->client);
    if (!events->let_go && take_events_bytes(events, data, len) < 0)
        lose_events(events);
    if (client->peer && client->wire && client->wire->ready)
        weft__wire_flush(client->wire); /* answers to what came */
    weft__client_unref(client);
}

static void on_events_end(weft_stream *stream, int why) {
    (void) why;
    lose_events(events_of_stream(stream));
}

static void on_events_closed(weft_stream *stream) {
    weft_events *events = events_of_stream(stream);
    weft_client *client = events->client;
    const weft_alloc *alloc = events->in.alloc;
    weft__buf_done(&events->out, alloc);
    weft__buf_done(&events->head, alloc);
    weft__sse_in_done(&events->in);
    weft__free(alloc, events);
    weft__client_unref(client);
}

static weft_bytes events_output(weft_stream *stream) {
    weft_events *events = events_of_stream(stream);
    return (weft_bytes){weft__buf_head(&events->out), weft__buf_len(&events->out)};
}

static void events_sent(weft_stream *stream, size_t n) {
    weft_events *events = events_of_stream(stream);
    weft__buf_take(&events->out, events->in.alloc, n);
}

static const weft_stream_ops stream_ops = {
    .on_open = on_events_open,
    .on_bytes = on_events_bytes,
    .on_end = on_events_end,
    .on_closed = on_events_closed,
    .output = events_output,
    .sent = events_sent,
};

/* ---- life ---- */

static int write_events_request(weft_events *events) {
    const weft_http_client_opts *http = &events->client->http;
    const char *const texts[] = {"GET ",
                                 http->path,
                                 " HTTP/1.1\r\nHost: ",
                                 http->host,
                                 "\r\nAccept: text/event-stream\r\n",
                                 http->token ? "Authorization: Bearer " : "",
                                 http->token ? http->token : "",
                                 http->token ? "\r\n" : "",
                                 http->more ? http->more : "",
                                 "\r\n"};
    int r = 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && r == 0; i++)
        r = weft__buf_put(&events->out, events->in.alloc, texts[i], strlen(texts[i]));
    return r;
}

/* Where the calls go, too; the name is not looked up again. */
static int connect_to_same(weft_events *events) {
    const weft_client *client = events->client;
    int fd = socket(client->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int r = 0;
    weft__tcp_tune(fd);
    if (connect(fd, (const struct sockaddr *) &client->address, client->address_size) < 0 && errno != EINPROGRESS)
        r = -errno;
    if (r == 0)
        r = weft__stream_init(&events->stream, events->client->loop, &stream_ops, fd, fd);
    if (r < 0)
        close(fd);
    return r;
}

static int start_events(weft_events *events) {
    weft_client *client = events->client;
    int r = client->tls ? weft__stream_tls(&events->stream, client->tls, client->url.host) : 0;
    if (r == 0)
        r = weft__stream_start(&events->stream, true);
    return r;
}

static int listen_now(weft_client *client) {
    const weft_alloc *alloc = client->loop->alloc;
    weft_events *events = weft__zalloc(alloc, sizeof *events);
    if (!events)
        return -ENOMEM;
    events->in = (weft_sse_in){.alloc = alloc, .max = weft__service_limits(weft_peer_service(client->peer))->max_body};
    events->client = client;
    int r = write_events_request(events);
    if (r == 0)
        r = connect_to_same(events);
    if (r < 0) {
        weft__buf_done(&events->out, alloc);
        weft__free(alloc, events);
        return r;
    }
    weft__client_ref(client);
    client->events = events;
    if (start_events(events) < 0)
        lose_events(events);
    return 0;
}

void weft__events_prepare(weft_client *client) {
    client->address_size = sizeof client->address;
    if (getpeername(client->wire->stream.fd, (struct sockaddr *) &client->address, &client->address_size) < 0)
        client->address_size = 0;
}

void weft__events_again(weft_client *client) {
    if (client->address_size && !client->events && listen_now(client) < 0)
        listen_again_later(client);
}

int weft_peer_listen(weft_peer *peer) {
    weft_client *client = weft__client_of(peer);
    if (!client || !(client->transport->scheme.flags & WEFT_LAZY))
        return -ENOTSUP;
    if (client->state == WEFT_PEER_CLOSED)
        return -ENOTCONN;
    if (client->opts.events)
        return 0;
    client->events_may_fail = true;
    weft__client_want_events(client, true);
    if (client->state == WEFT_PEER_CONNECTED)
        weft__events_again(client);
    return 0;
}

void weft__events_stop(weft_client *client) {
    weft__timer_stop(client->loop, &client->events_again);
    if (client->events)
        let_go_of_events(client->events);
}
