/* A hub whose journal other hubs may have (store.wait): it waits for its turn and hands its clients on meanwhile. */
#ifndef WEFT_SERVE_LEAD_H
#define WEFT_SERVE_LEAD_H

#include "daemon.h"
#include "forward.h"
#include "lead.h"
#include "serve.h"

typedef struct weft_serve_lead_opts {
    weft_app *app;
    const weft_daemon *daemon;
    const weft_serve_settings *how;
    const weft_store_kind *kind;
    weft_loop *loop;
    weft_forward *forward;
    /* Somebody else has the journal: open the endpoints, for the forward; once. name is whose it is, "" not known. A failure
     * is explained. */
    weft_exit (*open)(void *ctx, const char *name);
    /* Another one has it now. */
    void (*led)(void *ctx, const char *name);
    /* SIGHUP. true: it means that we are to end. */
    bool (*hung_up)(void *ctx);
    void *ctx;
} weft_serve_lead_opts;

/* Run the loop until the journal is ours: *ret is the open store, and who comes waits from then on. NULL with WEFT_DONE:
 * somebody has told us to end. Failures are explained. */
weft_exit weft__serve_lead_wait(const weft_serve_lead_opts *opts, weft_store **ret);
/* What other hubs call this one. */
void weft__serve_lead_name(const weft_serve_settings *how, char ret[WEFT_LEAD_NAME]);

/* Looks after the lease of the one that leads. */
typedef struct weft_serve_lease {
    weft_loop *loop;
    const weft_store *store;
    int64_t lease_ms;
    weft_timer timer;
    void (*on_lost)(void *ctx); /* the journal may be another's soon: end what works for it at once */
    void *ctx;
} weft_serve_lease;
void weft__serve_lease_begin(weft_serve_lease *lease);
/* Harmless when it has not begun. */
void weft__serve_lease_end(weft_serve_lease *lease);

#endif
