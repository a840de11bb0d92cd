/* A route that answers with server-sent events instead of a body. For the program's routes that follow something. */
#ifndef WEFT_HTTP_EVENTS_H
#define WEFT_HTTP_EVENTS_H

#include <weft/net.h>

/* Answer with an event stream: the connection becomes a peer that only talks, with this dialect, and on_open has run when
 * this returns. Only from within the route's handler; the request is over in any case. ret is borrowed: the connection owns
 * it. <0: it was answered with 503, or the connection has ended. */
int weft__http_events(weft_http *http, const char *dialect, weft_peer **ret);

#endif
