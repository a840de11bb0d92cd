/* Numbers for people. */
#ifndef WEFT_NUMBER_TEXT_H
#define WEFT_NUMBER_TEXT_H

#include <stdint.h>

#define WEFT_GROUPED 32

/* With a comma before every three digits: 1,115. Returns ret. */
const char *weft__grouped(char ret[WEFT_GROUPED], int64_t number);

#endif
