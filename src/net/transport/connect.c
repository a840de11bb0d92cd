/* Every transport, for clients and for servers. A new one is a file and a line or two here. */
#include "transport.h"

extern const weft_transport weft__unix_transport, weft__tcp_transport, weft__tls_transport, weft__ws_transport,
    weft__wss_transport, weft__http_transport, weft__https_transport, weft__stdio_transport, weft__exec_transport,
    weft__mem_transport;

/* One per line, so that adding one changes one. */
/* clang-format off */
static const weft_transport *const transports[] = {
    &weft__unix_transport,
    &weft__tcp_transport,
    &weft__tls_transport,
    &weft__ws_transport,
    &weft__wss_transport,
    &weft__http_transport,
    &weft__https_transport,
    &weft__stdio_transport,
    &weft__exec_transport,
    &weft__mem_transport,
};
/* clang-format on */

const weft_transport *weft__transport(weft_scheme scheme) {
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++)
        if (transports[i]->scheme == scheme)
            return transports[i];
    return NULL;
}
