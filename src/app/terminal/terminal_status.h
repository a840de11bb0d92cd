/* What an agent says on standard output, what there is to say about it on standard error, and one line at the bottom that
 * always says how things are: three voices on one terminal, none in the middle of another's line. Where standard error is no
 * terminal there is no bottom line. */
#ifndef WEFT_TERMINAL_STATUS_H
#define WEFT_TERMINAL_STATUS_H

#include "app.h"

struct weft_line_editor;

typedef struct weft_terminal {
    const weft_app *app;
    struct weft_line_editor *editor; /* what a person is typing, shown in the lowest row; NULL: nobody edits here */
    bool idle;                       /* nothing goes on: the row is there also while it is empty */
    bool silent;                     /* no data, no bottom line: --json has one object at the end */
    bool middle;                     /* standard output is in the middle of a line */
    bool drawn;                      /* the bottom line, or what is being typed, is on the screen */
    bool below;                      /* and stands in the row below a line of data that is not complete */
    uint64_t bytes;                  /* of data so far */
    char bottom[256];                /* what it says */
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

/* Show what is being typed, if there is an editor; again after whatever else was shown. */
void weft__terminal_edit(weft_terminal *terminal);
/* A message that was typed stays on the screen. */
void weft__terminal_said(weft_terminal *terminal, const char *message);

/* Prose of somebody else: as weft__put_text(), but lines stay lines. */
void weft__put_prose(const weft_screen *screen, const char *text, size_t len);

#endif
