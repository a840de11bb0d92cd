/* The table of transports a client knows, and nothing else. */
#include "transport.h"

#include "frame.h"
#include "http_client.h"

static const weft_transport transports[] = {
    {.name = "unix", .scheme = WEFT_UNIX, .begin = weft__begin_unix},
    {.name = "tcp", .scheme = WEFT_TCP, .begin = weft__begin_tcp},
    {.name = "tls", .scheme = WEFT_TLS, .flags = WEFT_OVER_TLS, .begin = weft__begin_tcp},
    {.name = "ws",
     .scheme = WEFT_WS,
     .flags = WEFT_OVER_HTTP,
     .framing = &weft_websocket_client,
     .begin = weft__begin_tcp,
     .hello = weft__hello_ws,
     .hear = weft__hear_ws},
    {.name = "wss",
     .scheme = WEFT_WSS,
     .flags = WEFT_OVER_TLS | WEFT_OVER_HTTP,
     .framing = &weft_websocket_client,
     .begin = weft__begin_tcp,
     .hello = weft__hello_ws,
     .hear = weft__hear_ws},
    {.name = "http",
     .scheme = WEFT_HTTP,
     .flags = WEFT_OVER_HTTP | WEFT_LAZY,
     .framing = &weft__http_client,
     .begin = weft__begin_tcp},
    {.name = "https",
     .scheme = WEFT_HTTPS,
     .flags = WEFT_OVER_TLS | WEFT_OVER_HTTP | WEFT_LAZY,
     .framing = &weft__http_client,
     .begin = weft__begin_tcp},
    {.name = "stdio", .scheme = WEFT_STDIO, .begin = weft__begin_stdio},
    {.name = "exec", .scheme = WEFT_EXEC, .begin = weft__begin_exec, .end = weft__end_exec},
    {.name = "mem", .scheme = WEFT_MEM, .begin = weft__begin_mem},
};

const weft_transport *weft__transport(weft_scheme scheme) {
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++)
        if (transports[i].scheme == scheme)
            return &transports[i];
    return NULL;
}
