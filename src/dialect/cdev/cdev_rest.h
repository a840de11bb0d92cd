/* The REST endpoints that cdev had before JSON-RPC, on the hub's HTTP port. */
#ifndef WEFT_CDEV_REST_H
#define WEFT_CDEV_REST_H

#include "hub.h"

/* Add the routes. hub is borrowed and must outlive the server. */
int weft__cdev_rest_routes(weft_hub *hub, weft_server *server);

#endif
