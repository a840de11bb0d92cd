/* Bytes over TCP, plain or in TLS. */
#include "server.h"
#include "transport.h"

const weft_transport weft__tcp_transport = {
    .name = "tcp", .scheme = WEFT_TCP, .flags = WEFT_NETWORK, .begin = weft__begin_tcp, .listen = weft__listener_bind_net};

const weft_transport weft__tls_transport = {.name = "tls",
                                            .scheme = WEFT_TLS,
                                            .flags = WEFT_NETWORK | WEFT_OVER_TLS,
                                            .begin = weft__begin_tcp,
                                            .listen = weft__listener_bind_net};
