/* Our own standard input and output: one connection that is there at once. */
#include "local.h"
#include "transport.h"

const weft_transport weft__stdio_transport = {
    .scheme = {"stdio", WEFT_URL_NOTHING, .flags = WEFT_ENDS | WEFT_OUR_STDIO, .wrong = "stdio: takes nothing behind it"},
    .begin = weft__begin_stdio,
    .listen = weft__local_listen_stdio};
