/* A POST: look the name up, try its addresses one after the other, send the head and the body, read until the status is
 * known, or until the answer has ended.
 *
 *   LOOKUP ──on_post_lookup()──▶ CONNECT, one address after the other ──on_post_open()──▶ SENT
 *   SENT ──take_post_status()──▶ end_post()         any ──a failure, the time──▶ end_post()
 *   SENT ──take_post_head()──▶ READING ──take_post_body()──▶ end_post(), where the answer is read
 *   any ──weft__post_free()──▶ gone when the stream and the lookup are */
#include "post.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client_http.h"
#include "http1.h"
#include "stream.h"
#include "tcp.h"
#include "url.h"

#define TIMEOUT_MS 10000
#define MAX_INTERIM 8 /* 1xx answers before the real one */

/* One attempt at one address; lives until its stream is closed, which may be after the post. */
typedef struct attempt {
    weft_stream stream;
    weft_post *post; /* NULL: it was let go */
    weft_loop *loop;
} attempt;

struct weft_post {
    weft_loop *loop;
    const weft_alloc *alloc;
    void (*on_done)(void *ctx, int r, int status, const char *why);
    void (*on_head)(void *ctx, const weft_http_head *head);
    void (*on_body)(void *ctx, char *data, size_t len);
    void *ctx;
    bool reading; /* the head is known, and what comes is the body: */
    bool chunked;
    weft_chunked chunks;
    int64_t left; /* bytes of it; -1: up to the end of the connection */
    int status;
    weft_url url;
    weft_tls_ctx *tls;
    weft_buf out; /* the whole request */
    size_t sent;
    weft_buf in; /* the head of the answer */
    int interim;
    attempt *attempt;
    uv_getaddrinfo_t *lookup;
    struct addrinfo *addresses, *next;
    weft_timer timer;
    weft_later begin;
    bool over;
    char why[200];
};

/* ---- the end ---- */

static void let_go_of_attempt(weft_post *post) {
    if (!post->attempt)
        return;
    attempt *gone = post->attempt;
    gone->post = NULL;
    post->attempt = NULL;
    weft__stream_close(&gone->stream);
}

static void end_post(weft_post *post, int r, int status) {
    if (post->over)
        return;
    post->over = true;
    let_go_of_attempt(post);
    weft__timer_stop(post->loop, &post->timer);
    weft__later_cancel(&post->begin);
    if (r < 0 && !*post->why)
        snprintf(post->why, sizeof post->why, "%s", weft_strerror(r));
    post->on_done(post->ctx, r, status, post->why);
}

static void on_timeout(weft_timer *timer) {
    weft_post *post = WEFT_CONTAINER(timer, weft_post, timer);
    snprintf(post->why, sizeof post->why, "%s did not answer in time", post->url.host);
    end_post(post, -ETIMEDOUT, 0);
}

/* ---- one address ---- */

static void connect_next(weft_post *post, int why);

static attempt *attempt_of(weft_stream *stream) {
    return WEFT_CONTAINER(stream, attempt, stream);
}

static void on_post_open(weft_stream *stream) {
    weft__stream_flush(stream);
}

/* The length of the head, 0 more is needed. */
static int take_post_status(weft_post *post, weft_http_head *ret) {
    while (weft__buf_len(&post->in)) {
        int len = weft__http_response(weft__buf_head(&post->in), weft__buf_len(&post->in), ret);
        if (len <= 0)
            return len;
        if (ret->status >= 200)
            return len;
        if (++post->interim > MAX_INTERIM)
            return -EPROTO;
        weft__buf_take(&post->in, post->alloc, (size_t) len);
    }
    return 0;
}

/* A piece of the body. The callback may free the post, and the attempt knows: it lives until its stream is closed. */
static void take_post_body(attempt *of, char *data, size_t len) {
    weft_post *post = of->post;
    size_t used, body = len;
    int over = 0;
    if (post->chunked)
        over = weft__chunked(&post->chunks, data, len, &used, &body);
    else if (post->left >= 0) {
        body = (uint64_t) post->left < len ? (size_t) post->left : len;
        post->left -= (int64_t) body;
        over = post->left == 0;
    }
    if (over >= 0 && body)
        post->on_body(post->ctx, data, body);
    if (of->post && over != 0)
        end_post(post, over < 0 ? -EPROTO : 0, post->status);
}

/* An answer to a request without a body may say a length all the same; ours is no HEAD. */
static void enter_post_body(weft_post *post, const weft_http_head *head) {
    bool none = head->status == 204 || head->status == 304;
    post->reading = true;
    post->status = head->status;
    post->chunked = head->chunked && !none;
    post->left = none ? 0 : head->chunked ? -1 : head->content_length;
    weft__timer_stop(post->loop, &post->timer);
}

/* What came behind the head is in the same buffer, which is ours alone while the callbacks run. */
static void take_post_head(attempt *of, const weft_http_head *head, size_t len) {
    weft_post *post = of->post;
    const weft_alloc *alloc = post->alloc;
    weft_buf in = post->in;
    post->in = (weft_buf){0};
    enter_post_body(post, head);
    post->on_head(post->ctx, head);
    if (of->post && post->left == 0)
        end_post(post, 0, post->status);
    else if (of->post && weft__buf_len(&in) > len)
        take_post_body(of, weft__buf_head(&in) + len, weft__buf_len(&in) - len);
    weft__buf_done(&in, alloc);
}

static void on_post_bytes(weft_stream *stream, char *data, size_t len) {
    attempt *of = attempt_of(stream);
    weft_post *post = of->post;
    weft_http_head head;
    if (!post || !len)
        return;
    if (post->reading) {
        take_post_body(of, data, len);
        return;
    }
    int r = weft__buf_put(&post->in, post->alloc, data, len);
    if (r == 0)
        r = take_post_status(post, &head);
    if (r < 0)
        end_post(post, r, 0);
    else if (r > 0 && post->on_head)
        take_post_head(of, &head, (size_t) r);
    else if (r > 0)
        end_post(post, 0, head.status);
}

/* Before anything was sent, the next address is as good; afterwards a second request might be one too many. */
static void on_post_end(weft_stream *stream, int why) {
    weft_post *post = attempt_of(stream)->post;
    if (!post)
        return;
    const char *more = weft__stream_why(stream);
    if (*more)
        snprintf(post->why, sizeof post->why, "%s", more);
    let_go_of_attempt(post);
    if (post->reading)
        end_post(post, post->left < 0 && !post->chunked && why == 0 ? 0 : -ECONNRESET, post->status);
    else if (post->sent == 0 && !*post->why)
        connect_next(post, why ? why : -ECONNRESET);
    else
        end_post(post, why ? why : -ECONNRESET, 0);
}

static void on_post_closed(weft_stream *stream) {
    attempt *gone = attempt_of(stream);
    weft__free(gone->loop->alloc, gone);
}

static weft_bytes post_output(weft_stream *stream) {
    weft_post *post = attempt_of(stream)->post;
    if (!post)
        return (weft_bytes){0};
    return (weft_bytes){weft__buf_head(&post->out) + post->sent, weft__buf_len(&post->out) - post->sent};
}

static void post_sent(weft_stream *stream, size_t n) {
    weft_post *post = attempt_of(stream)->post;
    if (post)
        post->sent += n;
}

static const weft_stream_ops stream_ops = {
    .on_open = on_post_open,
    .on_bytes = on_post_bytes,
    .on_end = on_post_end,
    .on_closed = on_post_closed,
    .output = post_output,
    .sent = post_sent,
};

static int try_post_address(weft_post *post, const struct addrinfo *address) {
    int fd = -1;
    int r = weft__tcp_dial(address, &fd);
    if (r < 0)
        return r;
    attempt *made = weft__zalloc(post->loop->alloc, sizeof *made);
    r = made ? weft__stream_init(&made->stream, post->loop, &stream_ops, fd, fd) : -ENOMEM;
    if (r < 0) {
        close(fd);
        weft__free(post->loop->alloc, made);
        return r;
    }
    made->loop = post->loop;
    made->post = post;
    post->attempt = made;
    r = post->tls ? weft__stream_tls(&made->stream, post->tls, post->url.host) : 0;
    if (r == 0)
        r = weft__stream_start(&made->stream, true);
    if (r < 0)
        let_go_of_attempt(post);
    return r;
}

static void connect_next(weft_post *post, int why) {
    while (post->next) {
        const struct addrinfo *address = post->next;
        post->next = address->ai_next;
        why = try_post_address(post, address);
        if (why == 0)
            return;
    }
    end_post(post, why, 0);
}

/* ---- the name ---- */

static void on_post_lookup(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found) {
    weft_post *post = lookup->data;
    weft_loop *loop = WEFT_CONTAINER(lookup->loop, weft_loop, uv);
    weft__free(loop->alloc, lookup);
    if (!post) {
        uv_freeaddrinfo(found);
        return;
    }
    post->lookup = NULL;
    post->addresses = post->next = found;
    if (post->over)
        return;
    if (status < 0)
        snprintf(post->why, sizeof post->why, "%s: %s", post->url.host, uv_strerror(status));
    connect_next(post, -EHOSTUNREACH);
}

static int look_up_host(weft_post *post) {
    char port[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG};
    snprintf(port, sizeof port, "%d", post->url.port);
    post->lookup = weft__zalloc(post->loop->alloc, sizeof *post->lookup);
    if (!post->lookup)
        return -ENOMEM;
    post->lookup->data = post;
    int r = uv_getaddrinfo(&post->loop->uv, post->lookup, on_post_lookup, post->url.host, port, &hints);
    if (r < 0)
        post->lookup = weft__free(post->loop->alloc, post->lookup);
    return r;
}

static void begin_post(weft_later *later) {
    weft_post *post = WEFT_CONTAINER(later, weft_post, begin);
    int r = look_up_host(post);
    if (r < 0)
        end_post(post, r, 0);
}

/* ---- life ---- */

static int write_post_request(weft_post *post, const weft_post_opts *opts, const char *more) {
    const weft_url *url = &post->url;
    char port[16] = "", length[24];
    bool usual = url->port == url->scheme->port, six = strchr(url->host, ':') != NULL;
    if (!usual)
        snprintf(port, sizeof port, ":%d", url->port);
    snprintf(length, sizeof length, "%zu", opts->body.len);
    const char *const texts[] = {opts->method ? opts->method : "POST",
                                 " ",
                                 url->path,
                                 *url->query ? "?" : "",
                                 url->query,
                                 " HTTP/1.1\r\nHost: ",
                                 six ? "[" : "",
                                 url->host,
                                 six ? "]" : "",
                                 port,
                                 "\r\nUser-Agent: weft/" WEFT_VERSION "\r\n",
                                 more ? more : "",
                                 opts->accept ? "Accept: " : "",
                                 opts->accept ? opts->accept : "",
                                 opts->accept ? "\r\n" : "",
                                 opts->type ? "Content-Type: " : "",
                                 opts->type ? opts->type : "",
                                 opts->type ? "\r\nContent-Length: " : "",
                                 opts->type ? length : "",
                                 opts->type ? "\r\n" : "",
                                 "Connection: close\r\n\r\n"};
    int r = 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && r == 0; i++)
        r = weft__buf_put(&post->out, post->alloc, texts[i], strlen(texts[i]));
    return r < 0 ? r : weft__buf_put(&post->out, post->alloc, opts->body.data, opts->body.len);
}

static bool is_method(const char *text) {
    return *text && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(text);
}

static int prepare_post(weft_post *post, const weft_post_opts *opts) {
    int r = weft__transport_parse(NULL, opts->url, post->alloc, &post->url, NULL);
    if (r < 0)
        return r;
    bool tls = post->url.scheme->flags & WEFT_OVER_TLS;
    if (!weft__is_http(post->url.scheme) || (tls && !opts->tls))
        return -EINVAL;
    if ((opts->method && !is_method(opts->method)) || (!opts->type && opts->body.len))
        return -EINVAL;
    post->tls = tls ? weft__tls_ctx_ref(opts->tls) : NULL;
    char *more = NULL;
    int made = weft__headers_text(opts->headers, post->alloc, &more);
    if (made >= 0)
        made = write_post_request(post, opts, more);
    weft__free(post->alloc, more);
    return made;
}

int weft__post_new(weft_loop *loop, const weft_post_opts *opts, weft_post **ret) {
    weft_post *post = weft__zalloc(loop->alloc, sizeof *post);
    if (!post)
        return -ENOMEM;
    post->loop = loop;
    post->alloc = loop->alloc;
    post->on_done = opts->on_done;
    post->on_head = opts->on_head;
    post->on_body = opts->on_body;
    post->ctx = opts->ctx;
    weft__timer_init(&post->timer, on_timeout);
    weft__later_init(&post->begin, begin_post);
    int r = prepare_post(post, opts);
    if (r < 0) {
        weft__post_free(post);
        return r;
    }
    int64_t timeout = opts->timeout_ms ? opts->timeout_ms : TIMEOUT_MS;
    weft__timer_set(loop, &post->timer, weft__after(weft__loop_fresh_now(loop), timeout));
    weft__later(loop, &post->begin);
    *ret = post;
    return 0;
}

weft_post *weft__post_free(weft_post *post) {
    if (!post)
        return NULL;
    let_go_of_attempt(post);
    weft__timer_stop(post->loop, &post->timer);
    weft__later_cancel(&post->begin);
    if (post->lookup) {
        post->lookup->data = NULL;
        uv_cancel((uv_req_t *) post->lookup);
    }
    uv_freeaddrinfo(post->addresses);
    if (post->tls)
        weft__tls_ctx_unref(post->tls);
    weft__url_done(&post->url, post->alloc);
    weft__buf_done(&post->out, post->alloc);
    weft__buf_done(&post->in, post->alloc);
    return weft__free(post->alloc, post);
}
