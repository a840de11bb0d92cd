/* Where output goes: whether it is a terminal, whether it has colours, and how to keep what others wrote from steering it.
 */
#ifndef WEFT_SCREEN_H
#define WEFT_SCREEN_H

#include <stdio.h>

#include <weft/json.h>

typedef struct weft_screen {
    FILE *file;
    bool terminal;
    bool colour; /* on a terminal, unless NO_COLOR or TERM=dumb says otherwise */
    bool exact;  /* a backslash that looks like one of our escapes is shown as an escape, too */
} weft_screen;

weft_screen weft__screen(FILE *file);
int weft__screen_width(const weft_screen *screen);
/* How many rows it has; 0: not known. */
int weft__screen_height(const weft_screen *screen);

/* The colours in use, as the numbers of ECMA-48's SGR. */
#define WEFT_INK_NAME "34"
#define WEFT_INK_STRING "32"
#define WEFT_INK_NUMBER "36"
#define WEFT_INK_WORD "35"
#define WEFT_INK_BOLD "1"
#define WEFT_INK_DIM "2"
#define WEFT_INK_BAD "31"
#define WEFT_INK_WARN "33"

/* Begin a colour; end it with weft__plain(). Nothing without colours. */
void weft__ink(const weft_screen *screen, const char *colour);
void weft__plain(const weft_screen *screen);

/* Text that somebody else wrote. On a terminal, control characters and those that turn the direction of writing are shown
 * as \u escapes; elsewhere it goes out as it is. */
void weft__put_text(const weft_screen *screen, const char *text, size_t len);

/* A sentence, from this column on. On a terminal it is broken between words at its width; further lines begin under the
 * first word. No line's end behind it. */
void weft__put_sentence(const weft_screen *screen, const char *text, size_t column);

/* A file's name, which stays on its line: one with control characters, quotes or backslashes is written in quotes, as git
 * does. */
void weft__put_path(const weft_screen *screen, const char *path);

/* A JSON value: indented and in colours, or in one line. No line end behind it. */
void weft__put_pretty(const weft_screen *screen, const weft_json *value);
void weft__put_compact(const weft_screen *screen, const weft_json *value);
/* A value of ours in one line, with the line's end. */
void weft__put_line(const weft_screen *screen, weft_val value);

#endif
