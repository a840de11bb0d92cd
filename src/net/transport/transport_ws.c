/* WebSockets, plain or in TLS. */
#include "frame.h"
#include "server.h"
#include "transport.h"

const weft_transport weft__ws_transport = {.name = "ws",
                                           .scheme = WEFT_WS,
                                           .flags = WEFT_NETWORK | WEFT_OVER_HTTP | WEFT_UPGRADES,
                                           .framing = &weft_websocket_client,
                                           .handshake = &weft__ws_handshake,
                                           .begin = weft__begin_tcp,
                                           .listen = weft__listener_bind_net};

const weft_transport weft__wss_transport = {.name = "wss",
                                            .scheme = WEFT_WSS,
                                            .flags = WEFT_NETWORK | WEFT_OVER_TLS | WEFT_OVER_HTTP | WEFT_UPGRADES,
                                            .framing = &weft_websocket_client,
                                            .handshake = &weft__ws_handshake,
                                            .begin = weft__begin_tcp,
                                            .listen = weft__listener_bind_net};
