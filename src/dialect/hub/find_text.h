/* Searching for a text as people do. */
#ifndef WEFT_FIND_TEXT_H
#define WEFT_FIND_TEXT_H

#include "weft/base.h"

/* The first place of part in text, where the case of letters A to Z does not matter; NULL when it is not there. */
const char *weft__find_text(weft_bytes text, const char *part);

#endif
