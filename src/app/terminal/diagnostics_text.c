/* Diagnostics as lines. */
#include "diagnostics_text.h"

#include <string.h>

static void put_member(const weft_screen *screen, const weft_json *one, const char *name) {
    weft_json value = weft_get(one, name);
    weft_bytes text;
    if (weft_bytes_of(&value, &text) >= 0)
        weft__put_text(screen, text.data, text.len);
}

static void put_place(const weft_screen *screen, const weft_json *one) {
    int64_t line = weft_get_int(one, "line", 0), column = weft_get_int(one, "column", 0);
    if (!*weft_get_str(one, "file", ""))
        return;
    weft__ink(screen, WEFT_INK_BOLD);
    put_member(screen, one, "file");
    if (line)
        fprintf(screen->file, ":%lld", (long long) line);
    if (line && column)
        fprintf(screen->file, ":%lld", (long long) column);
    weft__plain(screen);
    fputs(": ", screen->file);
}

/* One whose message has several lines is somebody's output: it is shown as it is. */
static void put_diagnostic(const weft_screen *screen, const weft_json *one, const char *indent) {
    const char *severity = weft_get_str(one, "severity", "error");
    fputs(indent, screen->file);
    put_place(screen, one);
    weft__ink(screen, strcmp(severity, "error") == 0     ? WEFT_INK_BAD
                      : strcmp(severity, "warning") == 0 ? WEFT_INK_WARN
                                                         : WEFT_INK_DIM);
    weft__put_text(screen, severity, strlen(severity));
    weft__plain(screen);
    fputs(": ", screen->file);
    put_member(screen, one, "message");
    if (*weft_get_str(one, "code", "")) {
        fputs(" [", screen->file);
        put_member(screen, one, "code");
        fputc(']', screen->file);
    }
    fputc('\n', screen->file);
}

void weft__diagnostics_put(const weft_screen *screen, const weft_json *list, const char *indent) {
    for (weft_iter it = weft_iterate(list); weft_typeof(list) == WEFT_ARRAY && weft_next(&it);)
        put_diagnostic(screen, &it.value, indent);
}
