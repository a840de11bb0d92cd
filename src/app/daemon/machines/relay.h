/* A relay: a hub that follows other hubs and serves what happens there to clients of its own.
 *
 * Its journal is a copy of theirs, event by event, and its engine knows from it what theirs know; so everything that reads
 * works as it does there, and asks nobody. What changes something is asked of the hub that it is about, by the relay's
 * token, in the name of the caller. The relay itself starts, answers and ends nothing.
 *
 * One hub: ids are as they are there. Several: each begins with the hub's name and a colon, "box:task-0007". */
#ifndef WEFT_RELAY_H
#define WEFT_RELAY_H

#include <weft/gate.h>

#include "app.h"
#include "engine.h"

#define WEFT_RELAY_HUBS 16
#define WEFT_RELAY_NAME 16 /* bytes of a hub's name: it stands before every id */

typedef struct weft_relay weft_relay;

typedef struct weft_relay_opts {
    weft_app *app;
    weft_loop *loop;
    weft_texts hubs;        /* as typed: a name of "weft hubs", a URL, or NAME=URL */
    const char *token_file; /* for those that were typed as URLs; NULL: none */
    const char *ca; /* who signs the certificates of hubs of which it is not known; NULL: those that the system trusts */
    /* What a hub has cannot be gone on from: the copy must begin anew. From the loop, once. */
    void (*on_anew)(void *ctx);
    void *ctx;
} weft_relay_opts;

/* Read what was typed. Nothing is connected yet. Failures are explained. */
weft_exit weft__relay_new(const weft_relay_opts *opts, weft_relay **ret);
/* Leave the hubs; what they were asked is answered. From the loop, before the server stops. */
void weft__relay_stop(weft_relay *relay);
/* After the service of its gate. Returns NULL. */
weft_relay *weft__relay_free(weft_relay *relay);

/* Is this journal a copy that a relay keeps? Before the engine starts; it waits for the store. 1 yes, 0 no, <0. */
int weft__relay_is_copy(weft_store *store);
/* May this relay go on with this journal? It notes whose it is in one that is empty. WEFT_BUSY: it is a relay's of other
 * hubs, and must begin anew. Other failures are explained. */
weft_exit weft__relay_claim(weft_relay *relay, weft_store *store);
/* The engine is ready: dial. -ENOMEM. */
int weft__relay_start(weft_relay *relay, weft_engine *engine);

/* Which requests are asked of a hub: the last gate before the handlers. For the relay's life. */
const weft_gate *weft__relay_gate(weft_relay *relay);
/* Does a relay ask a hub this? Then the member "hub" of the params may say which hub. */
bool weft__relay_forwards(const char *method);
/* {"hubs": [...]} for daemon.status. Owned text. */
int weft__relay_about(const weft_relay *relay, char **ret, size_t *ret_len);

/* relay.hello, which every hub answers: whether it can be followed by that one. The ctx is the weft_relay_hello. */
typedef struct weft_relay_hello {
    weft_engine *engine;
    const weft_relay *relay; /* NULL: this hub is none */
} weft_relay_hello;
extern const weft_method weft__relay_hello_row;
/* relay.known, likewise: what is known of that whose events are gone. The same ctx. */
extern const weft_method weft__relay_known_row;

#endif
