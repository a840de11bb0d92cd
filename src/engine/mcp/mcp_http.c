/* A server behind a URL. Streamable HTTP: each message is a POST of its own, answered with JSON or with server-sent events;
 * a GET listens to what is said unasked (not in the modern era). A stream that ends before the answer is listened to again
 * from its last event. The HTTP of 2024-11-05: one GET that never ends brings everything, after it has said where to POST.
 *
 * An exchange is one request of HTTP and its answer. Every callback of a post may end the server and all exchanges, so that
 * one which is being fed is only marked as gone and freed behind that. Redirects are not followed: headers may hold keys. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "client.h"
#include "link.h"
#include "mcp_headers.h"
#include "mcp_private.h"
#include "post.h"
#include "sse_in.h"

#define MOST_EXCHANGES 512
#define NOTIFY_MS 30000            /* for what has no answer */
#define ANSWER_MS (65 * 60 * 1000) /* requests have a limit of their own */
#define LISTEN_MS 30000            /* for the head of a stream's answer */
#define AGAIN_MS 1000              /* before listening again, unless the server says otherwise */
#define LONGEST_AGAIN 60000
#define MOST_AGAIN 20 /* times in a row that a stream brings nothing */
#define LONGEST_SESSION 256

typedef struct http_line {
    weft_mcp_server *server;
    weft_link exchanges;
    size_t count;
    weft_later flush;
    char session[LONGEST_SESSION + 1]; /* "": none */
    char *endpoint;                    /* older: where to POST; NULL: not known yet */
} http_line;

typedef struct exchange {
    weft_link link;
    http_line *line;
    weft_post *post;
    weft_timer timer; /* to listen again */
    int64_t call;     /* the request whose answer it brings; 0: none */
    bool listens;     /* it is the GET for what is said unasked */
    bool busy, gone;
    bool events; /* they come; otherwise a body */
    int status;
    unsigned fruitless; /* times that it was listened to again and brought nothing */
    weft_buf body;
    weft_sse_in in;
} exchange;

static bool is_sse(const weft_mcp_server *server) {
    return server->wire == &weft__mcp_sse;
}

static bool is_modern(const weft_mcp_server *server) {
    return strcmp(server->version, WEFT_MCP_MODERN) == 0;
}

/* ---- memory ---- */

static void free_exchange(exchange *self) {
    weft_mcp *mcp = self->line->server->mcp;
    self->gone = true;
    self->post = weft__post_free(self->post);
    weft__timer_stop(mcp->loop, &self->timer);
    if (!weft__list_empty(&self->link))
        self->line->count--;
    weft__list_remove(&self->link);
    if (self->busy)
        return;
    weft__buf_done(&self->body, mcp->alloc);
    weft__sse_in_done(&self->in);
    weft__free(mcp->alloc, self);
}

/* false: it went meanwhile, and now all of it has. */
static bool leave_exchange(exchange *self, const weft_alloc *alloc) {
    self->busy = false;
    if (!self->gone)
        return true;
    weft__buf_done(&self->body, alloc);
    weft__sse_in_done(&self->in);
    weft__free(alloc, self);
    return false;
}

static void on_listen_again(weft_timer *timer);

static exchange *new_exchange(http_line *line) {
    const weft_alloc *alloc = line->server->mcp->alloc;
    exchange *self = weft__zalloc(alloc, sizeof *self);
    if (!self)
        return NULL;
    self->line = line;
    self->in = (weft_sse_in){.alloc = alloc, .max = WEFT_MCP_LARGEST, .named = true};
    weft__timer_init(&self->timer, on_listen_again);
    weft__list_push(&line->exchanges, &self->link);
    line->count++;
    return self;
}

/* ---- feeding the peer ---- */

/* What it writes in return is not told by on_output: it goes out from here. */
static void feed_server(weft_mcp_server *server, char *data, size_t len) {
    weft_peer *peer = server->peer;
    int r = peer ? weft__peer_body(peer, data, len, weft_loop_now(server->mcp->loop)) : 0;
    http_line *line = server->line;
    if (server->peer != peer)
        return; /* what came has ended it, or made it begin again */
    if (r < 0)
        weft__mcp_failed(server, -ECONNRESET, "%s broke the protocol", server->spec->name);
    else if (line)
        weft__later(server->mcp->loop, &line->flush);
}

/* The peer must know that no answer will come. */
static void answer_call(weft_mcp_server *server, int64_t call, weft_val error) {
    char *text;
    size_t len;
    weft_buf body = {0};
    weft_val message = WEFT_OBJ({"jsonrpc", weft_str("2.0")}, {"id", weft_int(call)}, {"error", error});
    int r = weft_to_text(message, server->mcp->alloc, &text, &len);
    if (r >= 0) {
        r = weft__buf_put(&body, server->mcp->alloc, text, len);
        weft_text_free(text, server->mcp->alloc);
    }
    if (r >= 0)
        feed_server(server, weft__buf_head(&body), len);
    else
        weft__mcp_failed(server, -ENOMEM, "%s", weft_strerror(r));
    weft__buf_done(&body, server->mcp->alloc);
}

/* r and why as the one who asked is told. */
static void fail_call(weft_mcp_server *server, int64_t call, int status, int r, const char *why) {
    weft_mcp_request *request = weft__mcp_by_call(server, call);
    if (call && server->opening == call) {
        server->refused = status;
        if (!status) {
            weft__mcp_failed(server, -ECONNREFUSED, "%s cannot be reached: %s", server->spec->name, why);
            return;
        }
    } else if (request) {
        request->r = r;
        snprintf(request->why, sizeof request->why, "%s", why);
    } else
        return;
    answer_call(server, call, WEFT_OBJ({"code", weft_int(WEFT_INTERNAL_ERROR)}, {"message", weft_str(why)}));
}

static bool is_unanswered(const weft_mcp_server *server, int64_t call) {
    return call && (server->opening == call || weft__mcp_by_call(server, call));
}

/* ---- what comes ---- */

static int take_endpoint(http_line *line, const char *text, size_t len);

static bool on_http_event(char *data, size_t len, void *ctx) {
    exchange *self = ctx;
    weft_mcp_server *server = self->line->server;
    self->fruitless = 0;
    if (is_sse(server) && strcmp(self->in.event, "endpoint") == 0) {
        int r = take_endpoint(self->line, data, len);
        if (r < 0)
            weft__mcp_failed(server, -ECONNREFUSED, "%s wants messages to be sent elsewhere than to itself",
                             server->spec->name);
    } else if (len && (!*self->in.event || strcmp(self->in.event, "message") == 0))
        feed_server(server, data, len);
    return !self->gone;
}

static void on_http_body(void *ctx, char *data, size_t len) {
    exchange *self = ctx;
    weft_mcp_server *server = self->line->server;
    const weft_alloc *alloc = server->mcp->alloc;
    int r = 0;
    self->busy = true;
    if (self->events)
        r = weft__sse_in(&self->in, data, len, on_http_event, self);
    else if (weft__buf_len(&self->body) + len > WEFT_MCP_LARGEST)
        r = -EMSGSIZE;
    else
        r = weft__buf_put(&self->body, alloc, data, len);
    if (!leave_exchange(self, alloc))
        return;
    int64_t call = self->call;
    if (r < 0) {
        free_exchange(self);
        fail_call(server, call, 502, r, r == -EMSGSIZE ? "the answer of the server is too large" : weft_strerror(r));
    } else if (self->events && call && !is_unanswered(server, call))
        free_exchange(self); /* nothing follows an answer, and not every server ends the stream */
}

static void take_session(http_line *line, const weft_http_head *head) {
    weft_bytes said = weft__http_find(head, "mcp-session-id", NULL);
    if (!said.len || said.len > LONGEST_SESSION)
        return;
    for (size_t i = 0; i < said.len; i++)
        if (said.data[i] < 0x21 || said.data[i] > 0x7e)
            return;
    memcpy(line->session, said.data, said.len);
    line->session[said.len] = '\0';
}

static void on_http_head(void *ctx, const weft_http_head *head) {
    exchange *self = ctx;
    weft_mcp_server *server = self->line->server;
    weft_bytes type = weft__http_find(head, "content-type", NULL);
    static const char events[] = "text/event-stream";
    self->status = head->status;
    self->events = head->status >= 200 && head->status < 300 && type.len >= sizeof events - 1 &&
                   strncasecmp(type.data, events, sizeof events - 1) == 0;
    if (self->call && server->opening == self->call && !is_modern(server) && head->status < 300)
        take_session(self->line, head);
}

/* ---- listening again ---- */

static int start_get(exchange *self);

static void on_listen_again(weft_timer *timer) {
    exchange *self = WEFT_CONTAINER(timer, exchange, timer);
    weft_mcp_server *server = self->line->server;
    int64_t call = self->call;
    if (start_get(self) >= 0)
        return;
    free_exchange(self);
    fail_call(server, call, 503, -ECONNRESET, "the server could not be listened to again");
}

/* The server says how long to wait; one that brings nothing is asked less and less often, and then no more. */
static bool listen_again(exchange *self) {
    weft_mcp_server *server = self->line->server;
    int64_t ms = self->in.retry_ms ? self->in.retry_ms : AGAIN_MS;
    if (self->fruitless++ >= MOST_AGAIN)
        return false;
    ms = self->fruitless > 2 ? ms * self->fruitless : ms;
    self->post = weft__post_free(self->post);
    weft__sse_in_restart(&self->in);
    weft__timer_set(server->mcp->loop, &self->timer,
                    weft__add_ms(weft__loop_fresh_now(server->mcp->loop), ms < LONGEST_AGAIN ? ms : LONGEST_AGAIN));
    return true;
}

/* ---- the end of an exchange ---- */

/* Some servers answer a status with what JSON-RPC has for it. false: this one did not. */
static bool pass_error_on(weft_mcp_server *server, exchange *self) {
    WEFT_AUTO(weft_doc) doc = NULL;
    int64_t call = self->call;
    if (!weft__buf_len(&self->body) ||
        weft_doc_parse(weft__buf_head(&self->body), weft__buf_len(&self->body), server->mcp->alloc, &doc) < 0)
        return false;
    weft_json error = weft_get(weft_doc_root(doc), "error");
    if (weft_typeof(&error) != WEFT_OBJECT || !weft_get(&error, "code").text)
        return false;
    free_exchange(self);
    if (call && server->opening == call)
        server->refused = 0;
    answer_call(server, call, weft_copy(&error));
    return true;
}

static void refuse_exchange(exchange *self) {
    weft_mcp_server *server = self->line->server;
    weft_mcp_request *request = weft__mcp_by_call(server, self->call);
    bool had_session = self->line->session[0] != '\0';
    int status = self->status;
    int64_t call = self->call;
    char why[100];
    if (status == 404 && had_session && request && !request->again && server->state == WEFT_MCP_READY) {
        weft__mcp_requeue(request);
        free_exchange(self);
        weft__mcp_begin_again(server);
        return;
    }
    bool legacy_probe = server->opening == call && (status == 400 || status == 404 || status == 405);
    if (call && !legacy_probe && pass_error_on(server, self))
        return;
    snprintf(why, sizeof why, "the server refused it: HTTP status %d%s", status,
             status == 401 || status == 403  ? ". Does it need a header with a key?"
             : status >= 300 && status < 400 ? ". It wants to be reached elsewhere"
                                             : "");
    free_exchange(self);
    fail_call(server, call, status, -ECONNRESET, why);
}

/* A stream has ended. If it was to bring an answer and has not, it may be gone on with, where events have ids. */
static void end_stream(exchange *self, int r) {
    weft_mcp_server *server = self->line->server;
    int64_t call = self->call;
    (void) r;
    if (is_sse(server) && self->listens) {
        weft__mcp_failed(server, -ECONNRESET, "%s ended the connection", server->spec->name);
        return;
    }
    bool wanted = self->listens || (is_unanswered(server, call) && self->in.id[0] && !is_modern(server));
    if (wanted && listen_again(self))
        return;
    free_exchange(self);
    fail_call(server, call, 502, -ECONNRESET, "the server ended the connection before it had answered");
}

static void end_body(exchange *self) {
    weft_mcp_server *server = self->line->server;
    const weft_alloc *alloc = server->mcp->alloc;
    int64_t call = self->call;
    weft_buf body = self->body;
    self->body = (weft_buf){0};
    free_exchange(self);
    if (weft__buf_len(&body))
        feed_server(server, weft__buf_head(&body), weft__buf_len(&body));
    weft__buf_done(&body, alloc);
    if (!is_sse(server) && server->peer && is_unanswered(server, call))
        fail_call(server, call, 502, -EBADMSG, "the server answered without an answer");
}

static void fail_exchange(exchange *self, int r, const char *why) {
    weft_mcp_server *server = self->line->server;
    int64_t call = self->call;
    char text[300];
    if (self->listens && is_sse(server)) {
        weft__mcp_failed(server, -ECONNREFUSED, "%s cannot be reached: %s", server->spec->name, why);
        return;
    }
    if ((self->listens || self->in.id[0]) && listen_again(self))
        return;
    snprintf(text, sizeof text, "the server cannot be reached: %.200s", why);
    free_exchange(self);
    fail_call(server, call, 0, r == -ETIMEDOUT ? r : -ECONNRESET, text);
}

static void on_http_done(void *ctx, int r, int status, const char *why) {
    exchange *self = ctx;
    (void) status;
    if (self->events)
        end_stream(self, r);
    else if (r < 0 && !self->status)
        fail_exchange(self, r, why);
    else if (self->listens && is_sse(self->line->server))
        weft__mcp_failed(self->line->server, -ECONNREFUSED, "%s cannot be listened to: HTTP status %d",
                         self->line->server->spec->name, self->status);
    else if (self->listens)
        free_exchange(self); /* it has nothing to say unasked */
    else if (self->status >= 300)
        refuse_exchange(self);
    else if (r < 0)
        fail_exchange(self, r, why);
    else
        end_body(self);
}

/* ---- sending ---- */

static void add_common_headers(weft_mcp_headers *list, const http_line *line) {
    const weft_mcp_server *server = line->server;
    for (const weft_header *row = server->spec->headers; row && row->name; row++)
        weft__mcp_headers_add(list, row->name, row->value);
    if (is_sse(server))
        return;
    weft__mcp_headers_add(list, "MCP-Protocol-Version", server->version);
    weft__mcp_headers_add(list, "MCP-Session-Id", line->session);
}

static int need_tls(weft_mcp *mcp) {
    return mcp->tls ? 0 : weft__tls_client(&(weft_tls_opts){0}, true, mcp->alloc, &mcp->tls, NULL);
}

static int start_exchange(exchange *self, weft_post_opts *opts) {
    weft_mcp *mcp = self->line->server->mcp;
    int r = strncasecmp(opts->url, "https:", 6) == 0 ? need_tls(mcp) : 0;
    opts->tls = mcp->tls;
    opts->on_head = on_http_head;
    opts->on_body = on_http_body;
    opts->on_done = on_http_done;
    opts->ctx = self;
    self->status = 0;
    self->events = false;
    return r < 0 ? r : weft__post_new(mcp->loop, opts, &self->post);
}

static int start_get(exchange *self) {
    const weft_mcp_server *server = self->line->server;
    weft_mcp_headers headers = {0};
    add_common_headers(&headers, self->line);
    if (!is_sse(server))
        weft__mcp_headers_add(&headers, "Last-Event-ID", self->in.id);
    return start_exchange(self, &(weft_post_opts){.url = server->spec->url,
                                                  .method = "GET",
                                                  .accept = "text/event-stream",
                                                  .headers = headers.rows,
                                                  .timeout_ms = LISTEN_MS});
}

static exchange *find_exchange(const http_line *line, int64_t call) {
    for (weft_link *link = line->exchanges.next; call && link != &line->exchanges; link = link->next)
        if (WEFT_CONTAINER(link, exchange, link)->call == call)
            return WEFT_CONTAINER(link, exchange, link);
    return NULL;
}

static int post_message(exchange *self, const weft_json *message, const char *text, size_t len) {
    http_line *line = self->line;
    const weft_mcp_server *server = line->server;
    weft_mcp_headers headers = {0};
    weft_buf room = {0};
    add_common_headers(&headers, line);
    int r = is_modern(server) ? weft__mcp_headers_modern(&headers, server, message, self->call, &room) : 0;
    if (r >= 0)
        r = start_exchange(self, &(weft_post_opts){.url = is_sse(server) ? line->endpoint : server->spec->url,
                                                   .body = {text, len},
                                                   .type = "application/json",
                                                   .accept = "application/json, text/event-stream",
                                                   .headers = headers.rows,
                                                   .timeout_ms = self->call ? ANSWER_MS : NOTIFY_MS});
    weft__buf_done(&room, server->mcp->alloc);
    return r;
}

/* In the modern era answers are not sent, and closing the stream is the way to cancel; in the one before it is closed too.
 * There the session begins with initialize, which has none to name. true: it is not sent. */
static bool is_kept_back(http_line *line, const weft_json *message) {
    const char *method = weft_get_str(message, "method", "");
    if (strcmp(method, "initialize") == 0)
        line->session[0] = '\0';
    if (strcmp(method, "notifications/cancelled") == 0) {
        weft_json params = weft_get(message, "params");
        exchange *open = find_exchange(line, weft_get_int(&params, "requestId", 0));
        if (open)
            free_exchange(open);
        return is_modern(line->server);
    }
    return is_modern(line->server) && !*method;
}

static void send_message(http_line *line, const char *text, size_t len) {
    weft_mcp_server *server = line->server;
    WEFT_AUTO(weft_doc) doc = NULL;
    int r = weft_doc_parse(text, len, server->mcp->alloc, &doc);
    if (r >= 0 && is_kept_back(line, weft_doc_root(doc)))
        return;
    exchange *self = r >= 0 && line->count < MOST_EXCHANGES ? new_exchange(line) : NULL;
    int64_t call = doc && weft_get(weft_doc_root(doc), "method").text ? weft_get_int(weft_doc_root(doc), "id", 0) : 0;
    if (self)
        self->call = call;
    r = self ? post_message(self, weft_doc_root(doc), text, len) : -ENOBUFS;
    if (r >= 0)
        return;
    if (self)
        free_exchange(self);
    fail_call(server, call, 502, -ECONNRESET, r == -EINVAL ? "it cannot be sent by HTTP" : weft_strerror(r));
}

/* Each line is a message of its own. The output is copied: sending may make more of it. */
static void flush_messages(weft_later *later) {
    http_line *line = WEFT_CONTAINER(later, http_line, flush);
    weft_mcp_server *server = line->server;
    const weft_alloc *alloc = server->mcp->alloc;
    weft_bytes out = server->peer ? weft_peer_output(server->peer) : (weft_bytes){0};
    weft_buf copy = {0};
    if (!out.len || (is_sse(server) && !line->endpoint))
        return;
    if (weft__buf_put(&copy, alloc, out.data, out.len) < 0) {
        weft__mcp_failed(server, -ENOMEM, "out of memory");
        return;
    }
    weft_peer_sent(server->peer, out.len);
    while (weft__buf_len(&copy) && server->line == line) {
        const char *text = weft__buf_head(&copy), *end = memchr(text, '\n', weft__buf_len(&copy));
        size_t len = end ? (size_t) (end - text) : weft__buf_len(&copy);
        if (len)
            send_message(line, text, len);
        weft__buf_take(&copy, alloc, end ? len + 1 : len);
    }
    weft__buf_done(&copy, alloc);
}

static void on_http_output(weft_peer *peer, void *data) {
    http_line *line = data;
    (void) peer;
    weft__later(line->server->mcp->loop, &line->flush);
}

/* ---- life ---- */

static int open_line(weft_mcp_server *server) {
    static const weft_identity nobody = {.transport = "http",
                                         .dialect = "",
                                         .name = "",
                                         .scopes = "",
                                         .address = "",
                                         .uid = -1,
                                         .pid = -1,
                                         .authenticated = true,
                                         .endpoint = ""};
    http_line *line = weft__zalloc(server->mcp->alloc, sizeof *line);
    if (!line)
        return -ENOMEM;
    line->server = server;
    weft__list_init(&line->exchanges);
    weft__later_init(&line->flush, flush_messages);
    weft_peer_opts opts = {.framing = &weft_ndjson,
                           .identity = &nobody,
                           .style = WEFT_STYLE_MCP,
                           .no_batch = true,
                           .data = line,
                           .on_output = on_http_output};
    int r = weft_peer_new(server->service, &opts, &server->peer);
    if (r < 0) {
        weft__free(server->mcp->alloc, line);
        return r;
    }
    server->line = line;
    return 0;
}

static int http_open(weft_mcp_server *server) {
    int r = open_line(server);
    return r < 0 ? r : weft__mcp_negotiate(server);
}

static int start_listening(http_line *line) {
    exchange *self = new_exchange(line);
    if (!self)
        return -ENOMEM;
    self->listens = true;
    int r = start_get(self);
    if (r < 0)
        free_exchange(self);
    return r;
}

static void http_listen(weft_mcp_server *server) {
    if (!is_modern(server))
        (void) start_listening(server->line); /* who cannot be listened to is not heard */
}

static int sse_open(weft_mcp_server *server) {
    int r = open_line(server);
    server->version[0] = '\0';
    weft__timer_set(server->mcp->loop, &server->timer, weft__add_ms(weft__loop_fresh_now(server->mcp->loop), LISTEN_MS));
    return r < 0 ? r : start_listening(server->line);
}

/* ---- where to POST, in the older HTTP ---- */

static int take_endpoint(http_line *line, const char *text, size_t len) {
    weft_mcp_server *server = line->server;
    const weft_alloc *alloc = server->mcp->alloc;
    if (line->endpoint)
        return 0; /* it is said once */
    int r = weft__mcp_resolve(server->spec->url, (weft_bytes){text, len}, alloc, &line->endpoint);
    return r < 0 ? r : weft__mcp_negotiate(server);
}

/* ---- ending ---- */

/* The end of a session, which nobody waits for. */
typedef struct session_end {
    weft_link link;
    weft_mcp *mcp;
    weft_post *post;
} session_end;

static void free_session_end(session_end *self) {
    weft__list_remove(&self->link);
    weft__post_free(self->post);
    weft__free(self->mcp->alloc, self);
}

static void on_session_ended(void *ctx, int r, int status, const char *why) {
    (void) r, (void) status, (void) why;
    free_session_end(ctx);
}

static void delete_session(const http_line *line) {
    weft_mcp *mcp = line->server->mcp;
    weft_mcp_headers headers = {0};
    session_end *self = weft__zalloc(mcp->alloc, sizeof *self);
    if (!self)
        return;
    self->mcp = mcp;
    weft__list_push(&mcp->ending, &self->link);
    add_common_headers(&headers, line);
    if (weft__post_new(mcp->loop,
                       &(weft_post_opts){.url = line->server->spec->url,
                                         .method = "DELETE",
                                         .headers = headers.rows,
                                         .tls = mcp->tls,
                                         .on_done = on_session_ended,
                                         .ctx = self},
                       &self->post) < 0)
        free_session_end(self);
}

static void http_close(weft_mcp_server *server) {
    http_line *line = server->line;
    weft_mcp *mcp = server->mcp;
    if (line->session[0] && server->state != WEFT_MCP_RESTING)
        delete_session(line);
    while (!weft__list_empty(&line->exchanges))
        free_exchange(WEFT_CONTAINER(line->exchanges.next, exchange, link));
    weft__later_cancel(&line->flush);
    weft__free(mcp->alloc, line->endpoint);
    weft__free(mcp->alloc, line);
}

void weft__mcp_http_forget(weft_mcp *mcp) {
    while (!weft__list_empty(&mcp->ending))
        free_session_end(WEFT_CONTAINER(mcp->ending.next, session_end, link));
}

const weft_mcp_wire weft__mcp_http = {.name = "http", .open = http_open, .listen = http_listen, .close = http_close};
const weft_mcp_wire weft__mcp_sse = {.name = "sse", .open = sse_open, .close = http_close};
