/* Where a verb goes: a URL from the command line, or the daemon of this folder; and what it needs to get in. */
#ifndef WEFT_ENDPOINT_H
#define WEFT_ENDPOINT_H

#include "app.h"
#include "transport.h"

/* Does this argument say where to go, or try to? A method name never does. */
bool weft__is_url(const char *arg);
/* For verbs that take a URL and nothing else. A mistake is explained. */
weft_exit weft__only_url_check(const weft_app *app);
/* Is it a URL of our own standard input and output? */
bool weft__is_stdio(const char *url);
/* Check a URL that was typed. A mistake is explained. */
weft_exit weft__url_check(const weft_app *app, const char *text, weft_url *ret);

typedef struct weft_target {
    char *url;    /* owned */
    char *shown;  /* the same for people and logs: without its query, which may hold a token. Owned */
    char *token;  /* owned; NULL: none */
    char *cacert; /* the file of certificates to trust; owned; NULL: the system's */
    char *secret; /* of the key to sign with; owned; NULL: none */
    weft_sign_key key;
    const weft_scheme *scheme;
    bool here;            /* nobody typed it: the daemon of this folder */
    bool own_socket;      /* the URL names the socket of the folder itself, as "weft status" does */
    weft_trouble trouble; /* why connecting failed, when there is no peer to ask */
} weft_target;

/* Take the URL off the front of the arguments if there is one; otherwise find the daemon's socket in this folder or above
 * it: Weft's own or, if there is none in the same folder, that of an AIWG daemon. Reads the token too. Failures are
 * explained; free with weft__target_done(). */
weft_exit weft__target_take(weft_app *app, weft_target *ret);
/* The same for a URL that was typed elsewhere. */
weft_exit weft__target_of(const weft_app *app, const char *url, weft_target *ret);
void weft__target_done(weft_target *target);
/* Our failure r to reach it, explained as weft__fail_at() does; the daemon of this folder can be started. */
weft_exit weft__target_fail(const weft_app *app, const weft_target *target, int r, const char *trouble);

/* The first line of a file: a token. Owned. Failures are explained. */
weft_exit weft__token_read(const weft_app *app, const char *path, char **ret);

/* Byte streams have no header to show a token in: it is the first call. on_answer is told how it went; a server that asks
 * for no token does not know the method, which is as good. -ENOMEM. */
bool weft__target_shows_by_call(const weft_target *target);
int weft__target_show(weft_peer *peer, const weft_target *target, weft_on_answer *on_answer, void *ctx);

/* What the command line says about connecting to this target. service is for the log; see debug.h. */
weft_connect_opts weft__target_opts(const weft_app *app, weft_target *target, weft_service *service);

#endif
