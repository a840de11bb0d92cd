/* A name inside the loop, for tests and for parts of one program. */
#include "local.h"
#include "transport.h"

const weft_transport weft__mem_transport = {
    .scheme = {"mem", WEFT_URL_NAME, .flags = WEFT_IN_LOOP, .wrong = "mem: needs a name"},
    .begin = weft__begin_mem,
    .listen = weft__local_listen_mem};
