/* What an agent says on standard output, what there is to say about it on standard error, and one line at the bottom that
 * always says how things are: three voices on one terminal, none in the middle of another's line. Where standard error is no
 * terminal there is no bottom line. */
#ifndef WEFT_TERMINAL_STATUS_H
#define WEFT_TERMINAL_STATUS_H

#include "app.h"

typedef struct weft_terminal {
    const weft_app *app;
    bool silent;      /* no data, no bottom line: --json has one object at the end */
    bool middle;      /* standard output is in the middle of a line */
    bool drawn;       /* the bottom line is on the screen */
    uint64_t bytes;   /* of data so far */
    char bottom[256]; /* what it says */
} weft_terminal;

/* Data, as it comes. On a terminal only line ends and tabs of all control characters get through. */
void weft__terminal_data(weft_terminal *terminal, const char *text, size_t len);
/* The data's last line is ended if it is open. */
void weft__terminal_break(weft_terminal *terminal);
/* A whole line on standard error. ink may be NULL. */
void weft__terminal_line(weft_terminal *terminal, const char *ink, const char *format, ...) WEFT_PRINTF(3, 4);
/* Say how things are from now on. */
void weft__terminal_bottom(weft_terminal *terminal, const char *format, ...) WEFT_PRINTF(2, 3);
/* Take the bottom line away, before others write. */
void weft__terminal_clear(weft_terminal *terminal);

/* Prose of somebody else: as weft__put_text(), but lines stay lines. */
void weft__put_prose(const weft_screen *screen, const char *text, size_t len);

#endif
