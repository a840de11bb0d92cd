/* Text of others as a person must see it: whatever steers a terminal, hides or turns the order of what is read becomes a \u
 * escape. A backslash that would begin such an escape by itself becomes one too, so that what is shown says exactly what was
 * sent. */
#ifndef WEFT_VISIBLE_H
#define WEFT_VISIBLE_H

#include "buf.h"

/* The code point at text and its length; what is no UTF-8 counts as one byte, U+FFFD. len is not 0. */
size_t weft__code_point(const char *text, size_t len, unsigned *ret);
/* Does it have no shape of its own: a control character, a direction, an invisible one? */
bool weft__is_unseen(unsigned code);
/* Is this a backslash that reads as the beginning of an escape? */
bool weft__looks_escaped(const char *text, size_t len);
/* The escape of a code point, as JSON has it: two of them beyond U+FFFF. Its length. */
#define WEFT_ESCAPE_FORM 16
int weft__put_escape(unsigned code, char ret[WEFT_ESCAPE_FORM]);

/* Append at most `most` bytes of the text's visible form; what is left out is counted in a mark behind it. -ENOMEM. */
int weft__visible_put(weft_buf *out, const weft_alloc *alloc, weft_bytes text, size_t most);

#endif
