/* Whoever types on standard input, a person or a pipe: lines, one at a time and only when one is wanted. Editing a line is
 * the terminal's business. */
#ifndef WEFT_STDIN_LINES_H
#define WEFT_STDIN_LINES_H

#include "buf.h"
#include "watch.h"

/* A line without its end, borrowed; NULL: the input has ended. What is longer than WEFT_STDIN_LINE comes in pieces. */
typedef void weft_on_line(void *ctx, const char *line);
#define WEFT_STDIN_LINE (1024 * 1024)

typedef struct weft_stdin_lines {
    weft_loop *loop;
    weft_watch *watch; /* NULL: a file, which never lets anybody wait */
    int fd;
    int flags; /* of standard input, to be put back; -1: they were not changed */
    bool open;
    bool ended;
    weft_buf buf;
    weft_later later;
    weft_on_line *on_line; /* NULL: no line is wanted */
    void *ctx;
} weft_stdin_lines;

/* Is there a person who can be asked something: a terminal on both sides? */
bool weft__stdin_is_person(void);

int weft__stdin_lines_open(weft_stdin_lines *stdin_lines, weft_loop *loop);
/* One line, later; NULL: none any more. */
void weft__stdin_lines_want(weft_stdin_lines *stdin_lines, weft_on_line *on_line, void *ctx);
void weft__stdin_lines_close(weft_stdin_lines *stdin_lines);

#endif
