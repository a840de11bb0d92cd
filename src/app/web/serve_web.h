/* What "weft serve" has for browsers: the dashboard, logging in, and links that log in once. Sessions of browsers outlive a
 * restart of the hub: their digests are kept in the user's state folder. */
#ifndef WEFT_SERVE_WEB_H
#define WEFT_SERVE_WEB_H

#include "serve.h"

/* A link is typed, clicked or scanned soon after it was made. */
#define WEFT_LINK_MS (15 * 60 * 1000)
#define WEFT_LINK_SIZE 512

typedef struct weft_serve_web weft_serve_web;

typedef struct weft_serve_web_opts {
    weft_app *app;
    weft_server *server;
    const weft_serve_settings *how;
    bool held;  /* the folder is ours, and there is a place to keep sessions */
    bool token; /* one is needed */
} weft_serve_web_opts;

/* The rows of the methods; a name of NULL ends them. */
extern const weft_method weft__web_rows[];
/* Add routes and methods. What cannot be done is said, and the hub works without. <0: not even that. */
int weft__serve_web_new(const weft_serve_web_opts *opts, weft_serve_web **ret);
/* After the server and the service. */
weft_serve_web *weft__serve_web_free(weft_serve_web *self);
/* The address of the dashboard, without anything that logs in. -ENOENT: nobody serves HTTP here. */
int weft__serve_web_address(const weft_server *server, char ret[WEFT_LINK_SIZE]);
/* The same with a code for who holds the token of this name. */
int weft__serve_web_link(const weft_serve_web *self, const char *token_name, char ret[WEFT_LINK_SIZE]);

#endif
