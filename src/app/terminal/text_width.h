/* How many columns a text takes on a terminal: Chinese, Japanese, Korean and most emoji take two, accents none. What is
 * between the lines of Unicode (flags, families, skin tones) is counted piece by piece, as terminals that know no better
 * draw it. */
#ifndef WEFT_TEXT_WIDTH_H
#define WEFT_TEXT_WIDTH_H

#include <stddef.h>

/* Of a whole text. A byte that is not UTF-8 takes one column. */
size_t weft__text_width(const char *text);
/* The bytes of its beginning that fit into so many columns, with the accents of the last character. */
size_t weft__text_fit(const char *text, size_t columns);

#endif
