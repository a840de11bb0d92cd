/* Where a text stops being JSON, and why: for people who wrote it by hand.
 *
 * The scanner only says no, because it is made for messages and for speed. This is asked afterwards, about texts of which a
 * person wants to know the line. It accepts exactly what the scanner accepts. */
#ifndef WEFT_FAULT_H
#define WEFT_FAULT_H

#include <weft/base.h>

typedef struct weft_fault {
    size_t at;       /* the first byte that cannot be; the text's length: it ends too early */
    const char *why; /* a literal; NULL: nothing is wrong */
} weft_fault;

/* The first fault of a whole text. The text ends with a NUL, with WEFT_SLACK bytes behind it, as the scanner needs it. */
weft_fault weft__fault_find(const char *text, size_t len);

/* Lines end with LF, CRLF or CR. Columns count characters from 1, not bytes; a byte order mark is none.
 * The byte at text[at] is looked at too. */
typedef struct weft_place {
    size_t line, column;
} weft_place;
weft_place weft__place_of(const char *text, size_t at);

#endif
