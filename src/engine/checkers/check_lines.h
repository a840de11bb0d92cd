/* Taking lines of compilers apart: what the parsers of checkers and of builds share. Everything moves the front of a text
 * that is borrowed, and nothing reads beyond its length. */
#ifndef WEFT_CHECK_LINES_H
#define WEFT_CHECK_LINES_H

#include "checkers.h"

#define WEFT_LINE_PLACES ((int64_t) 1 << 24) /* lines and columns are below that */

/* The next line, without its end. false: there is none. */
bool weft__line_next(weft_bytes *text, weft_bytes *ret);
void weft__line_skip(weft_bytes *text, size_t n);
void weft__line_blanks(weft_bytes *text);
bool weft__line_word(weft_bytes *text, const char *word);
/* Digits; more than WEFT_LINE_PLACES is not counted further. */
bool weft__line_number(weft_bytes *text, int64_t *ret);
/* "error: ", "warning: ", "note: " and what others write for them. false: none is there, and ret is untouched. */
bool weft__line_severity(weft_bytes *rest, weft_severity *ret);
/* "[-Wunused]" or "(rule)" at the end: a name without blanks. It is cut off; -W and -Werror= are no part of it. */
bool weft__line_rule(weft_bytes *message, weft_bytes *ret);

#endif
