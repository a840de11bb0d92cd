/* Editing one message: bytes of a keyboard go in, a text with a cursor comes out. No terminal is touched here: who shows the
 * text asks for a row of it. Lines that were entered before can be had again, and text that is pasted (bracketed paste) is
 * one message, whatever line ends it has. */
#ifndef WEFT_LINE_EDITOR_H
#define WEFT_LINE_EDITOR_H

#include <stdbool.h>
#include <stddef.h>

#include <weft/base.h>

#include "buf.h"

/* A message is not longer than a line of standard input may be. */
#define WEFT_EDITOR_TEXT (1024 * 1024)
#define WEFT_EDITOR_HISTORY 500
/* What is searched for. */
#define WEFT_EDITOR_PATTERN 128
/* A control sequence of a key; longer ones are dropped. */
#define WEFT_EDITOR_KEY 16

typedef enum weft_edit {
    WEFT_EDIT_MORE,  /* go on */
    WEFT_EDIT_LINE,  /* Enter: weft__line_editor_text() is a message; weft__line_editor_next() begins another */
    WEFT_EDIT_END,   /* Ctrl-D where nothing was typed */
    WEFT_EDIT_CLEAR, /* Ctrl-L: clear the screen */
} weft_edit;

typedef struct weft_line_editor {
    const weft_alloc *alloc; /* NULL: the C library; set before anything else */
    weft_buf text;
    size_t cursor; /* of text, in bytes */
    char *history[WEFT_EDITOR_HISTORY];
    size_t history_count;
    size_t place;     /* in history; history_count: the message that is being written */
    char *draft;      /* that message, while another is looked at */
    weft_buf killed;  /* what was cut last */
    bool searching;   /* Ctrl-R */
    size_t match;     /* in history */
    size_t typed_len; /* of pattern */
    char pattern[WEFT_EDITOR_PATTERN];
    bool pasting, after_cr;
    int escape; /* of a control sequence: 0 none, 1 ESC, 2 CSI, 3 SS3 */
    char key[WEFT_EDITOR_KEY];
    size_t key_len;
    char partial[4]; /* a character whose other bytes are to come */
    size_t partial_len;
} weft_line_editor;

void weft__line_editor_done(weft_line_editor *editor);
/* One byte of the keyboard. What does not fit into the limits, or into memory, is dropped. */
weft_edit weft__line_editor_byte(weft_line_editor *editor, unsigned char byte);
/* The message, without line ends at its end. Borrowed until the next byte. "" without memory. */
const char *weft__line_editor_text(weft_line_editor *editor);
bool weft__line_editor_empty(const weft_line_editor *editor);
/* Begin another; the present one is remembered if there is something in it. */
void weft__line_editor_next(weft_line_editor *editor);
/* Drop what was typed. */
void weft__line_editor_drop(weft_line_editor *editor);
/* A message of an earlier time, the oldest first. */
void weft__line_editor_remember(weft_line_editor *editor, const char *text);

/* What to show in one row of so many columns: the part of the text around the cursor, with line ends and control characters
 * as something that can be seen. *ret_cursor: the column of the cursor. */
int weft__line_editor_row(weft_line_editor *editor, size_t columns, weft_buf *ret, size_t *ret_cursor);

#endif
