/* Terminals: what they can do, and what must not reach them. The only place that writes escape sequences. */
#include "screen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "text_width.h"
#include "visible.h"

#define USUAL_WIDTH 80
#define INDENT 2

weft_screen weft__screen(FILE *file) {
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    weft_screen screen = {.file = file, .terminal = isatty(fileno(file))};
    screen.colour = screen.terminal && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
    return screen;
}

int weft__screen_width(const weft_screen *screen) {
    struct winsize size = {0};
    if (ioctl(fileno(screen->file), TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return USUAL_WIDTH;
    return size.ws_col;
}

int weft__screen_height(const weft_screen *screen) {
    struct winsize size = {0};
    return ioctl(fileno(screen->file), TIOCGWINSZ, &size) < 0 ? 0 : size.ws_row;
}

void weft__ink(const weft_screen *screen, const char *colour) {
    if (screen->colour)
        fprintf(screen->file, "\x1b[%sm", colour);
}

void weft__plain(const weft_screen *screen) {
    if (screen->colour)
        fputs("\x1b[0m", screen->file);
}

/* ---- text of others ---- */

static void put_escape(const weft_screen *screen, unsigned code) {
    char form[WEFT_ESCAPE_FORM];
    weft__put_escape(code, form);
    fputs(form, screen->file);
}

static bool is_shown(const weft_screen *screen, const char *text, size_t len, size_t *ret_n, unsigned *ret_code) {
    if (*text >= ' ' && *text <= '~' && *text != '\\') {
        *ret_n = 1;
        return true;
    }
    *ret_n = weft__code_point(text, len, ret_code);
    bool broken = *ret_code == 0xfffd && *ret_n == 1;
    return !broken && !weft__is_unseen(*ret_code) && !(screen->exact && weft__looks_escaped(text, len));
}

/* What can be shown as it is goes out together: standard error has no buffer, and each piece is a system call. */
void weft__put_text(const weft_screen *screen, const char *text, size_t len) {
    while (len > 0) {
        size_t shown = screen->terminal ? 0 : len, n = 0;
        unsigned code = 0;
        while (shown < len && is_shown(screen, text + shown, len - shown, &n, &code))
            shown += n;
        if (shown)
            fwrite(text, 1, shown, screen->file);
        if (shown == len)
            return;
        if (code == 0xfffd && n == 1)
            fputs("\xef\xbf\xbd", screen->file);
        else
            put_escape(screen, code);
        text += shown + n;
        len -= shown + n;
    }
}

/* Of one word; nobody's terminal is wider than the longest that counts. */
static size_t word_columns(const char *text, size_t len) {
    char word[512];
    snprintf(word, sizeof word, "%.*s", len < sizeof word ? (int) len : (int) sizeof word - 1, text);
    return weft__text_width(word);
}

void weft__put_sentence(const weft_screen *screen, const char *text, size_t column) {
    size_t indent = strspn(text, " "), width = (size_t) weft__screen_width(screen);
    bool begins = true;
    if (!screen->terminal || indent * 2 > width) {
        weft__put_text(screen, text, strlen(text));
        return;
    }
    while (*text) {
        size_t blanks = strspn(text, " "), len = strcspn(text + blanks, " ");
        size_t columns = word_columns(text + blanks, len);
        if (!begins && len && column + blanks + columns > width) {
            fprintf(screen->file, "\n%*s", (int) indent, "");
            column = indent;
        } else {
            fprintf(screen->file, "%*s", (int) blanks, "");
            column += blanks;
        }
        weft__put_text(screen, text + blanks, len);
        column += columns;
        text += blanks + len;
        begins = false;
    }
}

static bool needs_quotes(const char *path) {
    for (; *path; path++)
        if ((unsigned char) *path < 0x20 || *path == 0x7f || *path == '"' || *path == '\\')
            return true;
    return false;
}

void weft__put_path(const weft_screen *screen, const char *path) {
    static const char letters[][2] = {"\tt", "\nn", "\rr", "\"\"", "\\\\"};
    if (!needs_quotes(path)) {
        weft__put_text(screen, path, strlen(path));
        return;
    }
    fputc('"', screen->file);
    while (*path) {
        size_t plain = 0, i = 0;
        while ((unsigned char) path[plain] >= 0x20 && path[plain] != 0x7f && path[plain] != '"' && path[plain] != '\\')
            plain++;
        weft__put_text(screen, path, plain);
        path += plain;
        while (i < sizeof letters / sizeof letters[0] && letters[i][0] != *path)
            i++;
        if (*path && i < sizeof letters / sizeof letters[0])
            fprintf(screen->file, "\\%c", letters[i][1]);
        else if (*path)
            fprintf(screen->file, "\\%03o", (unsigned) (unsigned char) *path);
        path += *path != 0;
    }
    fputc('"', screen->file);
}

/* ---- JSON: a walk over the tokens of a text that has been validated ---- */

static bool is_json_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_space(const char *p, const char *end) {
    while (p < end && is_json_space(*p))
        p++;
    return p;
}

/* The end of the string, number or word that begins here. */
static const char *token_end(const char *p, const char *end) {
    if (*p != '"') {
        while (p < end && !is_json_space(*p) && !strchr(",:]}", *p))
            p++;
        return p;
    }
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\')
            p++;
    return p + 1;
}

static void put_token(const weft_screen *screen, const char *p, const char *after, bool is_name) {
    const char *ink = is_name                                 ? WEFT_INK_NAME
                      : *p == '"'                             ? WEFT_INK_STRING
                      : *p == '-' || (*p >= '0' && *p <= '9') ? WEFT_INK_NUMBER
                                                              : WEFT_INK_WORD;
    weft__ink(screen, ink);
    weft__put_text(screen, p, (size_t) (after - p));
    weft__plain(screen);
}

static void new_line(const weft_screen *screen, int depth) {
    fprintf(screen->file, "\n%*s", depth * INDENT, "");
}

/* One structural character. Empty containers stay in one line: the closing one is then the next token. */
static const char *put_mark(const weft_screen *screen, const char *p, const char *end, bool pretty, int *depth) {
    const char *next = skip_space(p + 1, end);
    bool opens = *p == '{' || *p == '[';
    bool closes = *p == '}' || *p == ']';
    if (opens && next < end && (*next == '}' || *next == ']')) {
        fprintf(screen->file, "%c%c", *p, *next);
        return next + 1;
    }
    *depth += opens ? 1 : closes ? -1 : 0;
    if (pretty && closes)
        new_line(screen, *depth);
    fputc(*p, screen->file);
    if (pretty && *p == ':')
        fputc(' ', screen->file);
    else if (pretty && !closes)
        new_line(screen, *depth);
    return p + 1;
}

static void put_json_value(const weft_screen *screen, const weft_json *value, bool pretty) {
    const char *p = value->text, *end = p ? p + value->len : NULL;
    int depth = 0;
    if (!p)
        fputs("null", screen->file);
    while ((p = skip_space(p, end)) < end) {
        if (strchr("{}[],:", *p)) {
            p = put_mark(screen, p, end, pretty, &depth);
            continue;
        }
        const char *after = token_end(p, end);
        const char *next = skip_space(after, end);
        put_token(screen, p, after, next < end && *next == ':');
        p = after;
    }
}

void weft__put_pretty(const weft_screen *screen, const weft_json *value) {
    put_json_value(screen, value, true);
}

void weft__put_compact(const weft_screen *screen, const weft_json *value) {
    put_json_value(screen, value, false);
}

void weft__put_line(const weft_screen *screen, weft_val value) {
    char *text;
    size_t len;
    if (weft_to_text(value, NULL, &text, &len) < 0)
        return;
    weft__put_compact(screen, &(weft_json){.text = text, .len = len});
    fputc('\n', screen->file);
    fflush(screen->file);
    weft_text_free(text, NULL);
}
