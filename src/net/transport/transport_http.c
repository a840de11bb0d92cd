/* Messages by POST, and server-sent events; plain or in TLS. */
#include "http_client.h"
#include "server.h"
#include "transport.h"

const weft_transport weft__http_transport = {.scheme = {"http", WEFT_URL_WEB, 80, WEFT_NETWORK | WEFT_OVER_HTTP | WEFT_LAZY},
                                             .framing = &weft__http_client,
                                             .begin = weft__begin_tcp,
                                             .listen = weft__listener_bind_net};

const weft_transport weft__https_transport = {
    .scheme = {"https", WEFT_URL_WEB, 443, WEFT_NETWORK | WEFT_OVER_TLS | WEFT_OVER_HTTP | WEFT_LAZY},
    .framing = &weft__http_client,
    .begin = weft__begin_tcp,
    .listen = weft__listener_bind_net};
