/* One request to a URL over a connection of its own, for what is not JSON-RPC: a webhook, the end of a session. Of the
 * answer only the status counts; its body is not waited for. Redirects are not followed: where a body goes is said by the
 * one who sends it.
 *
 * It knows nothing of trying again. */
#ifndef WEFT_POST_H
#define WEFT_POST_H

#include "loop.h"
#include "tls.h"

typedef struct weft_post weft_post;

typedef struct weft_post_opts {
    const char *url;            /* http:// or https:// */
    weft_bytes body;            /* copied */
    const char *type;           /* Content-Type; NULL: there is no body */
    const char *method;         /* NULL: POST */
    const weft_header *headers; /* more of them, as in weft_connect_opts; NULL: none */
    int64_t timeout_ms;         /* for all of it; 0: 10 s */
    weft_tls_ctx *tls;          /* referenced; https needs one */
    /* Once, from the loop: the status, or r < 0 and why as a sentence (borrowed). It may free the post. */
    void (*on_done)(void *ctx, int r, int status, const char *why);
    void *ctx;
} weft_post_opts;

/* -EINVAL: the URL, the method, a header, or https without tls; -ENOMEM. */
int weft__post_new(weft_loop *loop, const weft_post_opts *opts, weft_post **ret);
/* Also in the middle; nothing is called any more. Returns NULL. */
weft_post *weft__post_free(weft_post *post);

#endif
