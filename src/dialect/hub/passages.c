/* The table of what agents may ask of their client. */
#include "passages.h"

const weft_passage weft__passages[] = {
    {"fs/read_text_file", weft__passage_read_file},
    {"fs/write_text_file", weft__passage_write_file},
    {0},
};
