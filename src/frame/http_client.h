/* JSON-RPC by POST over one keep-alive connection, our side being the client: each body is a request of its own, and the
 * answers come back in order. A framing like the others; who it talks to comes in weft_framing_opts.extra. */
#ifndef WEFT_HTTP_CLIENT_H
#define WEFT_HTTP_CLIENT_H

#include "frame.h"
#include "http1.h"

/* The strings are borrowed for the call of init() only. init() answers -EINVAL when there is none of these, or when a string
 * holds a byte that does not belong into a head (a line break above all). */
typedef struct weft_http_client_opts {
    const char *host;  /* as in the URL, with the port when it is not the scheme's own: "[::1]:8080" */
    const char *path;  /* "/rpc", with the query if there is one */
    const char *token; /* for Authorization: Bearer; NULL or "": none */
    const char *more;  /* headers of every request, each with its CRLF; checked already. NULL: none */
    bool gzip;         /* say that we read it, and pack requests once the server has said that it does */
    /* The head of an answer, borrowed. It must not feed. May be NULL. */
    void (*on_head)(void *ctx, const weft_http_head *head);
    void *ctx;
} weft_http_client_opts;

/* decode(): an answer with status 200 is a body, or any number of them if its type is text/event-stream: the data of each
 * event; an empty one, 202 and 204 are consumed in silence, and so is 1xx. Another status is a body if it carries a JSON-RPC
 * message, which servers send with 400 or 500; otherwise decode() fails, with -EACCES for 401 and 403, else with -EPROTO,
 * and weft__http_client_status() says which status it was. A body that is gzip is unpacked, also if nobody asked for it;
 * events that are break the protocol. */
extern const weft_framing weft__http_client;

/* Other opts from the next request on. -EINVAL, -ENOMEM: nothing has changed. */
int weft__http_client_change(void *state, const weft_http_client_opts *opts);
/* How many requests have been written and not been answered yet. */
size_t weft__http_client_pending(const void *state);
/* The last answer said that the connection ends with it. */
bool weft__http_client_over(const void *state);
/* Another connection follows: reading begins anew. What is pending goes over that one. */
void weft__http_client_again(void *state);
/* The status of the last answer, 0 before the first. state is the framing's. */
int weft__http_client_status(const void *state);

#endif
