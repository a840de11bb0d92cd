/* An editor on standard input and output, and a hub that may come and go. What passes is looked at as far as it takes to go
 * on with the next hub where the last one stopped: which sessions the editor follows and how far it was told of each, which
 * of its requests are not answered, and what the hub has asked it. */
#ifndef WEFT_ACP_RELAY_H
#define WEFT_ACP_RELAY_H

#include "app.h"

typedef struct weft_acp_relay_opts {
    const char *agent;                /* of the sessions it makes; NULL: the default */
    weft_exit (*find)(weft_app *app); /* see that a hub runs, and explain why none can */
    const char *if_refused;           /* what a person can do when the hub refuses the agent */
} weft_acp_relay_opts;

/* Until the editor ends, or no hub can be had. */
weft_exit weft__acp_relay(weft_app *app, const weft_acp_relay_opts *opts);

#endif
