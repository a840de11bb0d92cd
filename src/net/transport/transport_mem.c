/* A name inside the loop, for tests and for parts of one program. */
#include "local.h"
#include "transport.h"

const weft_transport weft__mem_transport = {
    .name = "mem", .scheme = WEFT_MEM, .begin = weft__begin_mem, .listen = weft__local_listen_mem};
