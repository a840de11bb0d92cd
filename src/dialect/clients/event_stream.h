/* GET /events: the hub's events as server-sent events, for browsers and curl. */
#ifndef WEFT_EVENT_STREAM_H
#define WEFT_EVENT_STREAM_H

#include "hub.h"

/* Add the route. hub is borrowed and must outlive the server; until hub->clients is there the route answers 503. */
int weft__event_stream_route(weft_hub *hub, weft_server *server);

#endif
