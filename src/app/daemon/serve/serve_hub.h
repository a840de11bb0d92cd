/* The hub behind a daemon's endpoints: store, engine, automation and dialects, put together in the right order and taken
 * apart in the opposite one. The only place that knows all of them; which there are is wiring.c's business. */
#ifndef WEFT_SERVE_HUB_H
#define WEFT_SERVE_HUB_H

#include "daemon.h"
#include "hub.h"
#include "serve.h"
#include "serve_gates.h"

/* How long a stop may take in all, unless limits.grace_ms says otherwise. */
#define WEFT_SERVE_GRACE_MS 10000

typedef struct weft_serve_hub weft_serve_hub;

typedef struct weft_serve_hub_opts {
    weft_app *app;
    weft_loop *loop;
    weft_daemon *daemon;
    const weft_serve_settings *how;
    const weft_store_kind *kind; /* of the journal; what does not last ends with us */
    weft_store *store;           /* open already, and taken, also on failure; NULL: it is to be opened */
    const char *name;            /* what other hubs of the journal call this one; NULL: there are none */
    weft_serve_gates *gates;     /* for their figures, and for paths */
    struct weft_relay *relay;    /* the journal is its copy of other hubs'; NULL: it is ours */
    /* A client asked the daemon to stop; from the loop. */
    void (*on_stop)(void *ctx, bool force);
    void *ctx;
} weft_serve_hub_opts;

/* Open the store, which takes seconds after an unclean stop. Failures are explained, but for one: with a relay, WEFT_BUSY
 * says that the journal is a copy of other hubs than its. */
weft_exit weft__serve_hub_open(const weft_serve_hub_opts *opts, weft_serve_hub **ret);
/* What connections of this URL speak until something decides otherwise. */
const char *weft__serve_hub_dialect(const weft_serve_hub *self, const char *url);
/* The rows of all dialects, for the service. */
const weft_method *weft__serve_hub_methods(const weft_serve_hub *self);
const weft_gate *const *weft__serve_hub_gates(weft_serve_hub *self);
/* Read the journal, clear up what an earlier daemon left, begin. Runs the loop until that is done; clients may come
 * afterwards. Failures are explained. */
weft_exit weft__serve_hub_start(weft_serve_hub *self, weft_server *server);
/* The default agent: as configured, or as somebody chose since. NULL: there is none of that name. */
const weft_agent *weft__serve_hub_agent(const weft_serve_hub *self);
weft_engine *weft__serve_hub_engine(const weft_serve_hub *self);
/* How many tasks run now. */
uint64_t weft__serve_hub_running(const weft_serve_hub *self);
/* The endpoints are open, so that the folder is surely ours: an AIWG daemon begins to write its state files. */
void weft__serve_hub_ready(weft_serve_hub *self);
/* Before the store opens there is a service and nothing behind it; afterwards these belong into weft_server_opts. */
void weft__serve_hub_opened(weft_serve_hub *self, weft_peer *peer);
void weft__serve_hub_closed(weft_serve_hub *self, weft_peer *peer);
void weft__serve_hub_drained(weft_serve_hub *self, weft_peer *peer);
/* on_raw: true, it was a command of a protocol that is not JSON-RPC, and is taken. */
bool weft__serve_hub_raw(weft_serve_hub *self, weft_peer *peer, weft_bytes body);
/* The configuration was read again. */
void weft__serve_hub_set(weft_serve_hub *self, const weft_serve_settings *how);
/* Take nothing new, let what runs end (not with force), then tell. Again with force is fine. */
void weft__serve_hub_stop(weft_serve_hub *self, bool force, void (*on_stopped)(void *ctx), void *ctx);
/* All work has ended: the journal may be another hub's as soon as it is closed. */
void weft__serve_hub_resign(weft_serve_hub *self);
weft_store *weft__serve_hub_store(const weft_serve_hub *self);
/* Before the server stops: end the connections that it does not know of. */
void weft__serve_hub_leave(weft_serve_hub *self);
/* The peers are gone: the clients go. Then, when the loop still runs, everything else. Returns NULL. */
weft_serve_hub *weft__serve_hub_close(weft_serve_hub *self);

#endif
