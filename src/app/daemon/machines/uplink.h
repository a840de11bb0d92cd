/* The way of a runner to its hub (docs/machines.md): it dials, says what it offers, takes leases as tasks of its own engine,
 * and delivers what happens to them from its own journal, in order, from where the hub has it.
 *
 * Nothing of the hub's decides what runs: it names an agent of this configuration and a folder beneath this one. */
#ifndef WEFT_UPLINK_H
#define WEFT_UPLINK_H

#include "app.h"
#include "engine.h"

typedef struct weft_uplink weft_uplink;

typedef struct weft_uplink_opts {
    weft_app *app;
    weft_loop *loop;
    weft_engine *engine;
    weft_service *service; /* what people have here: the hub may ask for the changes of its tasks */
    const char *url;
    const char *name; /* that we would like; NULL: the host's. Who shows a token has the name of that */
    weft_texts labels;
    weft_texts agents;  /* that are offered; none: the default agent */
    weft_texts folders; /* what the project is called at the hub; none: anything */
    size_t slots;
    /* The hub refuses us for good. That was said. From the loop. */
    void (*on_refused)(void *ctx);
    void *ctx;
} weft_uplink_opts;

/* Read what is known of leases, then dial; both go on by the loop. Failures are explained. The engine is ready. */
weft_exit weft__uplink_new(const weft_uplink_opts *opts, weft_uplink **ret);
/* How it is with the hub, as JSON: {hub, name, connected, why, agents, folders, slots, leases, behind}. Owned. -ENOMEM. */
int weft__uplink_about(const weft_uplink *uplink, char **ret, size_t *ret_len);
/* Before the engine goes. Returns NULL. */
weft_uplink *weft__uplink_free(weft_uplink *uplink);

#endif
