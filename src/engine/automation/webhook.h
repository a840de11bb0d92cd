/* Webhooks: a request with a body to a URL, tried again when that may help (no connection, 408, 429, 5xx), and what came of
 * it. That the answer was 2xx is all that is wanted of it. */
#ifndef WEFT_WEBHOOK_H
#define WEFT_WEBHOOK_H

#include <weft/net.h>

#define WEFT_WEBHOOKS_MAX 32            /* under way at a time */
#define WEFT_WEBHOOK_BODY (1024 * 1024) /* bytes of one */

typedef struct weft_webhooks weft_webhooks;

/* Zero means the default in the comment. */
typedef struct weft_webhook_opts {
    weft_loop *loop;
    const weft_alloc *alloc;
    int attempts;       /* 3 */
    int64_t timeout_ms; /* of each: 10 s */
    int64_t retry_ms;   /* before the second, twice as long before the third: 1 s */
    weft_tls_opts tls;  /* the system's roots; used at the first https URL, the strings are borrowed */
} weft_webhook_opts;

int weft__webhooks_new(const weft_webhook_opts *opts, weft_webhooks **ret);
/* What is under way is dropped; nothing is called any more. Returns NULL. */
weft_webhooks *weft__webhooks_free(weft_webhooks *hooks);

/* r 0: it was taken. <0: why is a sentence (borrowed). Later, from the loop. */
typedef void weft_webhook_done(void *ctx, int r, const char *why);
typedef struct weft_webhook {
    const char *url;
    const char *method;         /* NULL: POST */
    const char *type;           /* of the body; NULL: there is none */
    const weft_header *headers; /* NULL: no more than those of every request */
    weft_bytes body;
} weft_webhook;
/* Send it; all of it is copied. -ENOBUFS too many are under way, -EMSGSIZE, -EINVAL the URL or a header, -ENOMEM, or what is
 * wrong with the certificates. */
int weft__webhook_send(weft_webhooks *hooks, const weft_webhook *what, weft_webhook_done *done, void *ctx);

#endif
