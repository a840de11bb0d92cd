/* A child's standard input and output. Nobody can listen there. */
#include "transport.h"

const weft_transport weft__exec_transport = {
    .name = "exec", .scheme = WEFT_EXEC, .begin = weft__begin_exec, .end = weft__end_exec};
