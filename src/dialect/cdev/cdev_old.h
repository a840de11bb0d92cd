/* The commands that cdev had before JSON-RPC, on the same WebSocket: {"command", "payload", "request_id"}. */
#ifndef WEFT_CDEV_OLD_H
#define WEFT_CDEV_OLD_H

#include "hub.h"

/* For weft_server_opts.on_raw: is this body such a command? Then it is taken, and answered with events of the old form. From
 * its first command on, a connection that has not said initialize is told everything in that form. */
bool weft__cdev_old_take(weft_hub *hub, weft_peer *peer, weft_bytes body);

#endif
