/* Endpoints that are no sockets of the system: our own stdin and stdout, and names inside this loop. */
#ifndef WEFT_LOCAL_H
#define WEFT_LOCAL_H

#include "server.h"

/* listen() of their transports. */
int weft__local_listen_stdio(weft_listener *listener, const weft_url *url);
int weft__local_listen_mem(weft_listener *listener, const weft_url *url);
/* No more connections. Harmless when it is another kind of listener. */
void weft__local_close(weft_listener *listener);
void weft__local_free(weft_listener *listener);

#endif
