/* Three voices. */
#include "terminal_status.h"

#include <stdarg.h>
#include <string.h>

#include "line_editor.h"
#include "text_width.h"

#define MAX_LINE 1024
#define EDIT_PROMPT "> "

void weft__put_prose(const weft_screen *screen, const char *text, size_t len) {
    const char *end = text + len;
    while (text < end) {
        const char *at = text;
        while (at < end && *at != '\n' && *at != '\t')
            at++;
        bool dos = at > text && at < end && *at == '\n' && at[-1] == '\r';
        weft__put_text(screen, text, (size_t) (at - text) - (dos && screen->terminal));
        if (at < end)
            fputc(*at, screen->file);
        text = at + 1;
    }
}

void weft__terminal_clear(weft_terminal *terminal) {
    if (!terminal->drawn)
        return;
    /* Back to where the data goes on, if it is in the middle of a line. */
    fputs(terminal->below ? "\r\x1b[K\x1b"
                            "8"
                          : "\r\x1b[K",
          terminal->app->err.file);
    fflush(terminal->app->err.file);
    terminal->drawn = terminal->below = false;
}

void weft__terminal_data(weft_terminal *terminal, const char *text, size_t len) {
    if (len == 0 || terminal->silent)
        return;
    weft__terminal_clear(terminal);
    weft__put_prose(&terminal->app->out, text, len);
    fflush(terminal->app->out.file);
    terminal->middle = text[len - 1] != '\n';
    terminal->bytes += len;
    weft__terminal_edit(terminal);
}

void weft__terminal_break(weft_terminal *terminal) {
    if (terminal->middle)
        weft__terminal_clear(terminal);
    if (terminal->middle)
        fputc('\n', terminal->app->out.file);
    fflush(terminal->app->out.file);
    terminal->middle = false;
}

void weft__terminal_line(weft_terminal *terminal, const char *ink, const char *format, ...) {
    const weft_screen *err = &terminal->app->err;
    char line[MAX_LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    weft__terminal_clear(terminal);
    if (terminal->app->out.terminal && err->terminal)
        weft__terminal_break(terminal);
    if (ink)
        weft__ink(err, ink);
    weft__put_sentence(err, line, 0);
    if (ink)
        weft__plain(err);
    fputc('\n', err->file);
    fflush(err->file);
    weft__terminal_edit(terminal);
}

/* Cut to the width: a line that wraps cannot be taken back. */
static void draw_bottom(weft_terminal *terminal) {
    const weft_screen *err = &terminal->app->err;
    size_t room = (size_t) weft__screen_width(err) - 1;
    fputs("\r", err->file);
    weft__ink(err, WEFT_INK_DIM);
    weft__put_text(err, terminal->bottom, weft__text_fit(terminal->bottom, room));
    weft__plain(err);
    fputs("\x1b[K", err->file);
    fflush(err->file);
    terminal->drawn = true;
}

void weft__terminal_bottom(weft_terminal *terminal, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(terminal->bottom, sizeof terminal->bottom, format, args);
    va_end(args);
    /* It must stay one line of this length: what an agent wrote into it is not shown as escapes, but as blanks. */
    for (char *c = terminal->bottom; *c; c++)
        if ((unsigned char) *c < ' ' || *c == 0x7f)
            *c = ' ';
    if (terminal->editor && (terminal->idle || !weft__line_editor_empty(terminal->editor)))
        return; /* what a person types is more important */
    if (terminal->app->err.colour && !terminal->silent && !(terminal->middle && terminal->app->out.terminal))
        draw_bottom(terminal);
}

/* ---- what is being typed ---- */

/* A row below the line that is not complete, which may scroll: down and up again, then remember the place. */
static void go_below(weft_terminal *terminal) {
    fputs("\x1b"
          "D\x1b[A\x1b"
          "7\x1b[B\r",
          terminal->app->err.file);
    terminal->below = true;
}

static void put_edit_prompt(const weft_screen *err, const weft_line_editor *editor) {
    weft__ink(err, WEFT_INK_BOLD);
    if (editor->searching)
        fprintf(err->file, "search %s: ", editor->pattern);
    else
        fputs(EDIT_PROMPT, err->file);
    weft__plain(err);
}

void weft__terminal_edit(weft_terminal *terminal) {
    weft_line_editor *editor = terminal->editor;
    const weft_screen *err = &terminal->app->err;
    weft_buf row = {0};
    if (!editor)
        return;
    weft__terminal_clear(terminal);
    if (!terminal->idle && weft__line_editor_empty(editor) && !editor->searching)
        return;
    size_t before = editor->searching ? strlen("search : ") + weft__text_width(editor->pattern) : strlen(EDIT_PROMPT);
    size_t width = (size_t) weft__screen_width(err), cursor = 0, room = width > before + 8 ? width - before - 1 : 8;
    if (weft__line_editor_row(editor, room, &row, &cursor) >= 0) {
        if (terminal->middle && terminal->app->out.terminal)
            go_below(terminal);
        put_edit_prompt(err, editor);
        weft__put_text(err, weft__buf_len(&row) ? weft__buf_head(&row) : "", weft__buf_len(&row));
        fprintf(err->file, "\x1b[K\r\x1b[%zuC", before + cursor);
        fflush(err->file);
        terminal->drawn = true;
    }
    weft__buf_done(&row, NULL);
}

void weft__terminal_said(weft_terminal *terminal, const char *message) {
    const weft_screen *err = &terminal->app->err;
    weft__terminal_clear(terminal);
    weft__terminal_break(terminal);
    weft__ink(err, WEFT_INK_BOLD);
    fputs(EDIT_PROMPT, err->file);
    weft__plain(err);
    for (const char *line = message; *line;) {
        size_t len = strcspn(line, "\n");
        weft__put_text(err, line, len);
        line += len + (line[len] == '\n');
        fputs(*line ? "\n  " : "", err->file);
    }
    fputc('\n', err->file);
    fflush(err->file);
}
