/* Endpoint URLs, as people type them. Strict enough to catch a typo, with a message for each. */
#ifndef WEFT_URL_H
#define WEFT_URL_H

#include "alloc.h"

typedef enum weft_scheme {
    WEFT_UNIX,
    WEFT_TCP,
    WEFT_TLS,
    WEFT_WS,
    WEFT_WSS,
    WEFT_HTTP,
    WEFT_HTTPS,
    WEFT_STDIO,
    WEFT_EXEC,
    WEFT_MEM,
} weft_scheme;

#define WEFT_URL_ARGS 64

/* Every string points into text_ and is never NULL. */
typedef struct weft_url {
    weft_scheme scheme;
    const char *name;                    /* of the scheme, a literal */
    const char *host;                    /* without brackets */
    int port;                            /* the scheme's default when absent; -1 when it has none */
    const char *path;                    /* unix: the socket, mem: the name; otherwise it starts with "/" and has no query */
    const char *query;                   /* without "?" */
    const char *argv[WEFT_URL_ARGS + 1]; /* exec: NULL-terminated */
    char *text_;
} weft_url;

/* -EINVAL or -ENOMEM with a sentence in *ret_why (static; ret_why may be NULL). Accepts "unix:PATH" and "unix://PATH"; a
 * bare path that starts with
 * "/" or "./" is a Unix socket. exec: splits at blanks; quotes and backslashes group, nothing is expanded. */
int weft__url_parse(const char *text, const weft_alloc *alloc, weft_url *ret, const char **ret_why);
void weft__url_done(weft_url *url, const weft_alloc *alloc);
/* How much of a URL's text people and logs may see: a query can hold a token. */
size_t weft__url_shown(const char *text, weft_scheme scheme);

#endif
