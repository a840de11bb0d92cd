/* The table of what agents may ask of their client. */
#include "passages.h"

const weft_passage weft__passages[] = {
    {"terminal/create", weft__passage_terminal_create},      {"terminal/output", weft__passage_terminal_output},
    {"terminal/wait_for_exit", weft__passage_terminal_wait}, {"terminal/kill", weft__passage_terminal_kill},
    {"terminal/release", weft__passage_terminal_release},    {0},
};
