/* Messages by POST, and server-sent events; plain or in TLS. */
#include "http_client.h"
#include "server.h"
#include "transport.h"

const weft_transport weft__http_transport = {.name = "http",
                                             .scheme = WEFT_HTTP,
                                             .flags = WEFT_NETWORK | WEFT_OVER_HTTP | WEFT_LAZY,
                                             .framing = &weft__http_client,
                                             .begin = weft__begin_tcp,
                                             .listen = weft__listener_bind_net};

const weft_transport weft__https_transport = {.name = "https",
                                              .scheme = WEFT_HTTPS,
                                              .flags = WEFT_NETWORK | WEFT_OVER_TLS | WEFT_OVER_HTTP | WEFT_LAZY,
                                              .framing = &weft__http_client,
                                              .begin = weft__begin_tcp,
                                              .listen = weft__listener_bind_net};
