/* Three voices. */
#include "terminal_status.h"

#include <stdarg.h>
#include <string.h>

#include "utf8.h"

#define MAX_LINE 1024

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
    fputs("\r\x1b[K", terminal->app->err.file);
    fflush(terminal->app->err.file);
    terminal->drawn = false;
}

void weft__terminal_data(weft_terminal *terminal, const char *text, size_t len) {
    if (len == 0 || terminal->silent)
        return;
    weft__terminal_clear(terminal);
    weft__put_prose(&terminal->app->out, text, len);
    fflush(terminal->app->out.file);
    terminal->middle = text[len - 1] != '\n';
    terminal->bytes += len;
}

void weft__terminal_break(weft_terminal *terminal) {
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
    weft__put_text(err, line, strlen(line));
    if (ink)
        weft__plain(err);
    fputc('\n', err->file);
    fflush(err->file);
}

/* Cut to the width: a line that wraps cannot be taken back. */
static void draw(weft_terminal *terminal) {
    const weft_screen *err = &terminal->app->err;
    size_t room = (size_t) weft__screen_width(err) - 1;
    fputs("\r", err->file);
    weft__ink(err, WEFT_INK_DIM);
    weft__put_text(err, terminal->bottom, weft__utf8_first(terminal->bottom, room));
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
    if (terminal->app->err.colour && !terminal->silent && !(terminal->middle && terminal->app->out.terminal))
        draw(terminal);
}
