/* Sending webhooks: attempts and the time between them. */
#include "webhook.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "list.h"
#include "post.h"
#include "transport.h"

struct weft_webhooks {
    weft_webhook_opts opts;
    weft_tls_ctx *tls;
    weft_link list;
    size_t count;
};

typedef struct hook {
    weft_link link;
    weft_webhooks *hooks;
    weft_webhook_done *done;
    void *ctx;
    int attempts; /* begun */
    weft_post *post;
    weft_timer timer;
    weft_webhook what;
    weft_header *headers;
    size_t size;
    char text[]; /* the texts of what, behind the headers */
} hook;

static void free_hook(hook *h) {
    weft__timer_stop(h->hooks->opts.loop, &h->timer);
    weft__post_free(h->post);
    weft__list_remove(&h->link);
    h->hooks->count--;
    weft__free(h->hooks->opts.alloc, h->headers);
    explicit_bzero(h->text, h->size); /* a key may be in it */
    weft__free(h->hooks->opts.alloc, h);
}

static void finish_hook(hook *h, int r, const char *why) {
    weft_webhook_done *done = h->done;
    void *ctx = h->ctx;
    free_hook(h);
    if (done)
        done(ctx, r, why);
}

static bool may_help(int r, int status) {
    return r < 0 ? r != -EINVAL : status == 408 || status == 429 || status >= 500;
}

static void on_done(void *ctx, int r, int status, const char *why) {
    hook *h = ctx;
    const weft_webhook_opts *opts = &h->hooks->opts;
    char text[200];
    if (r == 0)
        snprintf(text, sizeof text, "the server answered %d", status);
    else
        snprintf(text, sizeof text, "%s", why);
    h->post = weft__post_free(h->post); /* and why with it */
    if (r == 0 && status >= 200 && status < 300)
        finish_hook(h, 0, "");
    else if (h->attempts >= opts->attempts || !may_help(r, status))
        finish_hook(h, r < 0 ? r : -EPROTO, text);
    else
        weft__timer_set(opts->loop, &h->timer, weft_loop_now(opts->loop) + (opts->retry_ms << (h->attempts - 1)));
}

static int post_hook(hook *h) {
    const weft_webhook_opts *opts = &h->hooks->opts;
    weft_post_opts post = {.url = h->what.url,
                           .body = h->what.body,
                           .type = h->what.type,
                           .method = h->what.method,
                           .headers = h->headers,
                           .timeout_ms = opts->timeout_ms,
                           .tls = h->hooks->tls,
                           .on_done = on_done,
                           .ctx = h};
    h->attempts++;
    return weft__post_new(opts->loop, &post, &h->post);
}

static void on_hook_retry(weft_timer *timer) {
    hook *h = WEFT_CONTAINER(timer, hook, timer);
    int r = post_hook(h);
    if (r < 0)
        finish_hook(h, r, weft_strerror(r));
}

/* The system's certificates take a while to read: not before somebody wants them, and once. */
static int prepare_tls(weft_webhooks *hooks, const char *url) {
    const weft_transport *transport = weft__transport_of(NULL, url);
    if (hooks->tls || !transport || !(transport->scheme.flags & WEFT_OVER_TLS))
        return 0;
    return weft__tls_client(&hooks->opts.tls, true, hooks->opts.alloc, &hooks->tls, NULL);
}

static const char *keep_text(char **at, const char *text) {
    size_t size = text ? strlen(text) + 1 : 0;
    char *kept = text ? memcpy(*at, text, size) : NULL;
    *at += size;
    return kept;
}

static size_t size_of_text(const char *text) {
    return text ? strlen(text) + 1 : 0;
}

static size_t count_headers(const weft_header *headers) {
    size_t count = 0;
    while (headers && headers[count].name)
        count++;
    return count;
}

static size_t size_of_hook(const weft_webhook *what) {
    size_t size = size_of_text(what->url) + size_of_text(what->method) + size_of_text(what->type) + what->body.len + 1;
    for (const weft_header *header = what->headers; header && header->name; header++)
        size += size_of_text(header->name) + size_of_text(header->value);
    return size;
}

static void keep_hook(hook *h, const weft_webhook *what) {
    char *at = h->text;
    h->what.url = keep_text(&at, what->url);
    h->what.method = keep_text(&at, what->method);
    h->what.type = keep_text(&at, what->type);
    for (size_t i = 0; what->headers && what->headers[i].name; i++)
        h->headers[i] = (weft_header){keep_text(&at, what->headers[i].name), keep_text(&at, what->headers[i].value)};
    if (what->body.len)
        memcpy(at, what->body.data, what->body.len);
    h->what.body = (weft_bytes){at, what->body.len};
}

static hook *new_hook(weft_webhooks *hooks, const weft_webhook *what) {
    size_t size = size_of_hook(what);
    hook *h = weft__zalloc(hooks->opts.alloc, sizeof *h + size);
    if (!h)
        return NULL;
    h->headers = weft__zalloc(hooks->opts.alloc, (count_headers(what->headers) + 1) * sizeof *h->headers);
    if (!h->headers)
        return weft__free(hooks->opts.alloc, h);
    h->size = size;
    keep_hook(h, what);
    return h;
}

int weft__webhook_send(weft_webhooks *hooks, const weft_webhook *what, weft_webhook_done *done, void *ctx) {
    if (hooks->count >= WEFT_WEBHOOKS_MAX)
        return -ENOBUFS;
    if (what->body.len > WEFT_WEBHOOK_BODY)
        return -EMSGSIZE;
    int r = prepare_tls(hooks, what->url);
    if (r < 0)
        return r;
    hook *h = new_hook(hooks, what);
    if (!h)
        return -ENOMEM;
    h->hooks = hooks;
    h->done = done;
    h->ctx = ctx;
    weft__timer_init(&h->timer, on_hook_retry);
    weft__list_push(&hooks->list, &h->link);
    hooks->count++;
    r = post_hook(h);
    if (r < 0)
        free_hook(h);
    return r;
}

int weft__webhooks_new(const weft_webhook_opts *opts, weft_webhooks **ret) {
    weft_webhooks *hooks = weft__zalloc(opts->alloc, sizeof *hooks);
    if (!hooks)
        return -ENOMEM;
    hooks->opts = *opts;
    hooks->opts.attempts = opts->attempts ? opts->attempts : 3;
    hooks->opts.retry_ms = opts->retry_ms ? opts->retry_ms : 1000;
    weft__list_init(&hooks->list);
    *ret = hooks;
    return 0;
}

weft_webhooks *weft__webhooks_free(weft_webhooks *hooks) {
    if (!hooks)
        return NULL;
    while (!weft__list_empty(&hooks->list))
        free_hook(WEFT_CONTAINER(hooks->list.next, hook, link));
    if (hooks->tls)
        weft__tls_ctx_unref(hooks->tls);
    return weft__free(hooks->opts.alloc, hooks);
}
