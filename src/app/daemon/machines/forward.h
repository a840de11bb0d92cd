/* Connections of a hub that waits for its journal: they are handed on to the hub that has it, byte for byte, so that a
 * client need not know which one that is. Who may do what is the other hub's to say: it sees the token, and TLS goes through
 * to it.
 *
 * What is refused: an agent, which could pass for a person from here; whoever comes another way than the other hub can be
 * reached; and whoever waits too long for one that has the journal. */
#ifndef WEFT_FORWARD_H
#define WEFT_FORWARD_H

#include "server.h"

typedef struct weft_forward weft_forward;

int weft__forward_new(weft_loop *loop, weft_forward **ret);
/* Closes all of them. Returns NULL. */
weft_forward *weft__forward_free(weft_forward *forward);
/* How a hub with these endpoints is reached, for the others: owned text. Those of the network only if a token is needed
 * there: from here on it would not be seen where somebody comes from. */
int weft__forward_reach(const weft_server *server, const char *folder, bool token, char **ret);
/* From now on it is reached so; "" nobody has the journal, and who comes waits. May look up a name. */
void weft__forward_to(weft_forward *forward, const char *reach);
/* Whoever still waits is served by this server of ours. */
void weft__forward_serve(weft_forward *forward, weft_server *server);
/* A weft_take; ctx is the forward. */
const struct weft_refusal *weft__forward_take(void *ctx, const weft_listener *listener, const struct weft_origin *origin,
                                              int fd);

#endif
