/* Endpoints that are no sockets of the system. */
#include "local.h"

#include <errno.h>

int weft__local_open(weft_listener *listener, const weft_url *url) {
    (void) listener, (void) url;
    return -ENOTSUP;
}

void weft__local_close(weft_listener *listener) {
    (void) listener;
}

void weft__local_free(weft_listener *listener) {
    (void) listener;
}
