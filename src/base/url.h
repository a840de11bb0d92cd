/* Endpoint URLs, as people type them. Strict enough to catch a typo, with a message for each. */
#ifndef WEFT_URL_H
#define WEFT_URL_H

#include "alloc.h"

/* What stands behind the colon of a scheme. */
typedef enum weft_url_form {
    WEFT_URL_NAME,    /* a path or a name, with or without "//" */
    WEFT_URL_NOTHING, /* or "//" alone */
    WEFT_URL_PROGRAM, /* a program and its arguments */
    WEFT_URL_HOST,    /* //host:port */
    WEFT_URL_WEB,     /* //host:port/path?query */
} weft_url_form;

/* What is known of every URL that begins with the name. The rows are the transports' (transport.h). */
typedef struct weft_scheme {
    const char *name;
    weft_url_form form;
    int port;          /* where the URL names none; 0: it must name one */
    unsigned flags;    /* what its transport is like (transport.h) */
    const char *wrong; /* a sentence for a URL that has nothing behind the colon, or something where nothing belongs */
} weft_scheme;

#define WEFT_URL_ARGS 64

/* Every string points into text_ and is never NULL. */
typedef struct weft_url {
    const weft_scheme *scheme;           /* borrowed */
    const char *host;                    /* without brackets */
    int port;                            /* the scheme's when absent; -1 when it has none */
    const char *path;                    /* WEFT_URL_NAME: the name; otherwise it starts with "/" and has no query */
    const char *query;                   /* without "?" */
    const char *argv[WEFT_URL_ARGS + 1]; /* WEFT_URL_PROGRAM: NULL-terminated */
    char *text_;
} weft_url;

/* Is it a path and no URL: "/..." or "./..."? Such a text has no scheme in front. */
bool weft__url_is_path(const char *text);
/* Take apart a URL of this scheme. -EINVAL or -ENOMEM with a sentence in *ret_why (static; ret_why may be NULL). A program
 * and its arguments are split at blanks; quotes and backslashes group, nothing is expanded. */
int weft__url_parse(const weft_scheme *scheme, const char *text, const weft_alloc *alloc, weft_url *ret,
                    const char **ret_why);
void weft__url_done(weft_url *url, const weft_alloc *alloc);
/* How much of a URL's text people and logs may see: a query can hold a token. */
size_t weft__url_shown(const char *text, const weft_scheme *scheme);

#endif
