/* Three voices. */
#include "talk.h"

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

void weft__talk_clear(weft_talk *talk) {
    if (!talk->drawn)
        return;
    fputs("\r\x1b[K", talk->app->err.file);
    fflush(talk->app->err.file);
    talk->drawn = false;
}

void weft__talk_data(weft_talk *talk, const char *text, size_t len) {
    if (len == 0 || talk->silent)
        return;
    weft__talk_clear(talk);
    weft__put_prose(&talk->app->out, text, len);
    fflush(talk->app->out.file);
    talk->middle = text[len - 1] != '\n';
    talk->bytes += len;
}

void weft__talk_break(weft_talk *talk) {
    if (talk->middle)
        fputc('\n', talk->app->out.file);
    fflush(talk->app->out.file);
    talk->middle = false;
}

void weft__talk_line(weft_talk *talk, const char *ink, const char *format, ...) {
    const weft_screen *err = &talk->app->err;
    char line[MAX_LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    weft__talk_clear(talk);
    if (talk->app->out.terminal && err->terminal)
        weft__talk_break(talk);
    if (ink)
        weft__ink(err, ink);
    weft__put_text(err, line, strlen(line));
    if (ink)
        weft__plain(err);
    fputc('\n', err->file);
    fflush(err->file);
}

/* Cut to the width: a line that wraps cannot be taken back. */
static void draw_bottom(weft_talk *talk) {
    const weft_screen *err = &talk->app->err;
    size_t room = (size_t) weft__screen_width(err) - 1;
    fputs("\r", err->file);
    weft__ink(err, WEFT_INK_DIM);
    weft__put_text(err, talk->bottom, weft__utf8_first(talk->bottom, room));
    weft__plain(err);
    fputs("\x1b[K", err->file);
    fflush(err->file);
    talk->drawn = true;
}

void weft__talk_bottom(weft_talk *talk, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(talk->bottom, sizeof talk->bottom, format, args);
    va_end(args);
    /* It must stay one line of this length: what an agent wrote into it is not shown as escapes, but as blanks. */
    for (char *c = talk->bottom; *c; c++)
        if ((unsigned char) *c < ' ' || *c == 0x7f)
            *c = ' ';
    if (talk->app->err.colour && !talk->silent && !(talk->middle && talk->app->out.terminal))
        draw_bottom(talk);
}
