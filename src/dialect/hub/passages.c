/* The table of what agents may ask of their client. */
#include "passages.h"

const weft_passage weft__passages[] = {
    {"fs/read_text_file", weft__passage_read_file},          {"fs/write_text_file", weft__passage_write_file},
    {"terminal/create", weft__passage_terminal_create},      {"terminal/output", weft__passage_terminal_output},
    {"terminal/wait_for_exit", weft__passage_terminal_wait}, {"terminal/kill", weft__passage_terminal_kill},
    {"terminal/release", weft__passage_terminal_release},    {0},
};
