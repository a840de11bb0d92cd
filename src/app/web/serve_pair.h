/* Pairing: a phone on the same network scans a code, and has a token of its own from then on.
 *
 * Nothing of it is open until somebody on this machine asks for it (pair.start). Then a listener with TLS is there, on one
 * address, with a certificate that devices know by its fingerprint, and a code of 128 random bits that counts for five
 * minutes and once. Afterwards the listener stays for the devices that were paired, until pair.stop or the hub's end; if
 * nobody came it is closed with the code. With the setting pair.keep it is opened again when the hub starts and there is a
 * paired device. */
#ifndef WEFT_SERVE_PAIR_H
#define WEFT_SERVE_PAIR_H

#include "serve.h"
#include "serve_tokens.h"

typedef struct weft_serve_pair weft_serve_pair;

typedef struct weft_serve_pair_opts {
    weft_app *app;
    weft_loop *loop;
    weft_server *server;
    weft_serve_tokens *tokens;
    bool held;  /* the folder is ours, and there is a place for the certificate */
    bool token; /* one is needed */
    /* Serve this URL, with this certificate, to who shows a token. */
    int (*listen)(void *ctx, const char *url, const weft_tls_opts *tls);
    void *ctx;
} weft_serve_pair_opts;

/* The rows of the methods; a name of NULL ends them. */
extern const weft_method weft__pair_rows[];
/* Add the route and the methods. */
int weft__serve_pair_new(const weft_serve_pair_opts *opts, weft_serve_pair **ret);
/* The hub has started: open the listener for devices again, if there are some. A failure is said. */
void weft__serve_pair_resume(weft_serve_pair *self);
/* After the server and the service, before the loop. */
weft_serve_pair *weft__serve_pair_free(weft_serve_pair *self);

#endif
