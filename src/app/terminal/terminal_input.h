/* A person at a terminal who writes messages while other things are shown: keys go to a line editor as they are pressed, and
 * what is typed is the lowest row of the screen (weft__terminal_edit()). While it is suspended the terminal is as everybody
 * else wants it, for questions that read whole lines. The terminal is put back whenever this ends. */
#ifndef WEFT_TERMINAL_INPUT_H
#define WEFT_TERMINAL_INPUT_H

#include <termios.h>

#include "line_editor.h"
#include "terminal_status.h"
#include "watch.h"

/* A message, borrowed; NULL: there will be no more. */
typedef void weft_on_message(void *ctx, const char *message);

typedef struct weft_terminal_input {
    weft_loop *loop;
    weft_terminal *terminal;
    weft_watch *watch;
    int fd;
    bool raw;          /* the terminal is ours */
    bool typed_before; /* and nothing was read since; there may be keys that were pressed before */
    struct termios before;
    weft_line_editor editor;
    weft_signal *continued; /* after Ctrl-Z */
    weft_on_message *on_message;
    void *ctx;
} weft_terminal_input;

/* Can a message be edited here: a terminal on both sides that knows how to move its cursor? */
bool weft__terminal_can_edit(void);
int weft__terminal_input_open(weft_terminal_input *input, weft_loop *loop, weft_terminal *terminal,
                              weft_on_message *on_message, void *ctx);
void weft__terminal_input_resume(weft_terminal_input *input);
void weft__terminal_input_suspend(weft_terminal_input *input);
void weft__terminal_input_close(weft_terminal_input *input);

#endif
