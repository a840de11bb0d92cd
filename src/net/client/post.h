/* One request to a URL over a connection of its own: a webhook, the end of a session, a message of MCP. Of the answer only
 * the status counts and its body is not waited for, unless somebody wants to read it (on_head). Redirects are not followed:
 * where a body goes is said by the one who sends it.
 *
 * It knows nothing of trying again. */
#ifndef WEFT_POST_H
#define WEFT_POST_H

#include "http1.h"
#include "loop.h"
#include "tls.h"

typedef struct weft_post weft_post;

typedef struct weft_post_opts {
    const char *url;            /* http:// or https:// */
    weft_bytes body;            /* copied */
    const char *type;           /* Content-Type; NULL: there is no body */
    const char *method;         /* NULL: POST */
    const weft_header *headers; /* more of them, as in weft_connect_opts; NULL: none */
    const char *accept;         /* Accept; NULL: it is not said */
    int64_t timeout_ms;         /* for all of it, with on_head until that is called; 0: 10 s */
    weft_tls_ctx *tls;          /* referenced; https needs one */
    /* Once, from the loop: the status, or r < 0 and why as a sentence (borrowed). It may free the post. */
    void (*on_done)(void *ctx, int r, int status, const char *why);
    /* Read all of the answer: its head once (borrowed), then the pieces of its body as they come, which may be changed, with
     * WEFT_SLACK bytes behind each. on_done follows when it has ended; r is -ECONNRESET if that was in the middle. How long
     * a body may take, and how large it may be, is for them to say. Both may free the post. NULL: only the status counts. */
    void (*on_head)(void *ctx, const weft_http_head *head);
    void (*on_body)(void *ctx, char *data, size_t len);
    void *ctx;
} weft_post_opts;

/* -EINVAL: the URL, the method, a header, or https without tls; -ENOMEM. */
int weft__post_new(weft_loop *loop, const weft_post_opts *opts, weft_post **ret);
/* Also in the middle; nothing is called any more. Returns NULL. */
weft_post *weft__post_free(weft_post *post);

#endif
