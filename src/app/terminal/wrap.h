/* Text for people in lines of limited length. */
#ifndef WEFT_WRAP_H
#define WEFT_WRAP_H

#include <stdio.h>

/* What every terminal has. */
#define WEFT_WRAP_COLUMNS 80

/* The words of a text, from this column on; what does not fit goes to a new line, behind so many blanks. No line's end
 * behind it. */
void weft__put_wrapped(FILE *to, const char *text, size_t column, size_t indent);
/* Paragraphs, which an empty line ends: each wrapped anew. A line that begins with a blank stays as it is. */
void weft__put_paragraphs(FILE *to, const char *text);

#endif
