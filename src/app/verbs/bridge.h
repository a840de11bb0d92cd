/* Standard input and output joined with an endpoint, for verbs that are a bridge and something before it. */
#ifndef WEFT_BRIDGE_H
#define WEFT_BRIDGE_H

#include "app.h"
#include "endpoint.h"

/* A call of ours to the other side before anything passes. Borrowed. */
typedef struct weft_bridge_greeting {
    const char *method;
    weft_val params;
    const char *if_refused; /* what a person can do then; NULL: nothing in particular */
} weft_bridge_greeting;

/* Until either side ends. greeting may be NULL. Failures are explained; the target stays the caller's. */
weft_exit weft__bridge_stdio(weft_app *app, weft_target *to, const weft_bridge_greeting *greeting);

#endif
