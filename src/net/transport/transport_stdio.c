/* Our own standard input and output: one connection that is there at once. */
#include "local.h"
#include "transport.h"

const weft_transport weft__stdio_transport = {
    .name = "stdio", .scheme = WEFT_STDIO, .begin = weft__begin_stdio, .listen = weft__local_listen_stdio};
