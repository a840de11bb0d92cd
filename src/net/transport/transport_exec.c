/* A child's standard input and output. Nobody can listen there. */
#include "transport.h"

const weft_transport weft__exec_transport = {
    .scheme = {"exec", WEFT_URL_PROGRAM, .flags = WEFT_ENDS, .wrong = "exec: needs a program, for example exec:cat"},
    .begin = weft__begin_exec,
    .end = weft__end_exec};
