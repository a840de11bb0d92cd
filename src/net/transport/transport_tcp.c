/* Bytes over TCP, plain or in TLS. */
#include "server.h"
#include "transport.h"

const weft_transport weft__tcp_transport = {
    .scheme = {"tcp", WEFT_URL_HOST, .flags = WEFT_NETWORK}, .begin = weft__begin_tcp, .listen = weft__listener_bind_net};

const weft_transport weft__tls_transport = {.scheme = {"tls", WEFT_URL_HOST, .flags = WEFT_NETWORK | WEFT_OVER_TLS},
                                            .begin = weft__begin_tcp,
                                            .listen = weft__listener_bind_net};
