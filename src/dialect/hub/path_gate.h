/* What a path gives without a call (GET /metrics, /events) is kept from whoever the gates of the configuration keep from the
 * method that gives the same. */
#ifndef WEFT_PATH_GATE_H
#define WEFT_PATH_GATE_H

#include "hub.h"

/* false: the caller has been refused. */
bool weft__path_may(const weft_hub *hub, weft_http *http, const char *method);

#endif
