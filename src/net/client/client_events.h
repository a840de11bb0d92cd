/* HTTP: a second connection on which the server sends notifications as server-sent events. It comes and goes with the
 * client's connection, and by itself when the server ends it. */
#ifndef WEFT_CLIENT_EVENTS_H
#define WEFT_CLIENT_EVENTS_H

#include "client.h"

/* Listen at the address that the client's wire, which is ready, is connected to. Failing is not fatal: it is tried again. */
void weft__events_start(weft_client *client);
/* The same address, after a while. */
void weft__events_again(weft_client *client);
void weft__events_stop(weft_client *client);

#endif
