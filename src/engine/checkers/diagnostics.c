/* Reading what compilers print. A line is one diagnostic (gcc, clang, tsc, go, JSON of cargo), or a headline whose place
 * stands below it (rustc, esbuild): that one waits until its place comes, or the next headline. */
#include "diagnostics.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include <weft/json.h>

#include "check_lines.h"
#include "utf8.h"
#include "utf8_stream.h"
#include "write.h"

#define HEADLINE_LINES 8 /* behind a headline, in which its place may stand */

typedef struct reading {
    weft_diagnostics *found;
    const char *folder;
    weft_severity severity;
    weft_bytes message, code; /* of the headline that waits for its place */
    int waiting;              /* lines left for that; 0: there is none */
    bool from_zero;           /* its columns are counted from 0 */
    bool no_memory;
} reading;

typedef struct found_place {
    weft_bytes file;
    int64_t line, column;
} found_place;

/* ---- one diagnostic ---- */

/* Valid UTF-8 without control characters. NULL: no memory. */
static const char *keep_text(reading *self, weft_bytes text, size_t most) {
    size_t len = weft__utf8_fit(text.data, text.len, most);
    char *made = weft__arena_alloc(&self->found->arena, len + 1);
    if (!made) {
        self->no_memory = true;
        return NULL;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char) text.data[i];
        made[i] = (char) (c < ' ' || c == 0x7f ? ' ' : c);
    }
    made[len] = '\0';
    if (weft__utf8_valid(made, len))
        return made;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char) made[i] >= 0x80)
            made[i] = '?';
    return made;
}

static weft_bytes relative_file(const reading *self, weft_bytes file) {
    size_t len = strlen(self->folder);
    while (weft__line_word(&file, "./"))
        while (file.len && *file.data == '/')
            weft__line_skip(&file, 1);
    if (len && file.len > len && memcmp(file.data, self->folder, len) == 0 && file.data[len] == '/')
        weft__line_skip(&file, len + 1);
    return file;
}

static bool is_same(const weft_diagnostic *a, const weft_diagnostic *b) {
    return a->line == b->line && a->column == b->column && a->severity == b->severity && strcmp(a->file, b->file) == 0 &&
           strcmp(a->message, b->message) == 0;
}

static int64_t place_within(int64_t number) {
    return number > 0 && number < WEFT_LINE_PLACES ? number : 0;
}

static void add_diagnostic(reading *self, const found_place *place, weft_severity severity, weft_bytes message,
                           weft_bytes code) {
    weft_diagnostics *found = self->found;
    weft_bytes file = place ? relative_file(self, place->file) : (weft_bytes){"", 0};
    weft_diagnostic one = {.line = place ? place_within(place->line) : 0,
                           .column = place ? place_within(place->column) : 0,
                           .severity = severity,
                           .file = keep_text(self, file, WEFT_DIAGNOSTIC_FILE),
                           .message = keep_text(self, message, WEFT_DIAGNOSTIC_MESSAGE),
                           .code = keep_text(self, code, WEFT_DIAGNOSTIC_CODE)};
    if (self->no_memory)
        return;
    for (size_t i = 0; i < found->count; i++)
        if (is_same(&found->items[i], &one)) /* a header that several files include */
            return;
    found->errors += severity == WEFT_SEVERITY_ERROR;
    found->warnings += severity == WEFT_SEVERITY_WARNING;
    if (found->count < WEFT_DIAGNOSTICS)
        found->items[found->count++] = one;
    else
        found->truncated = true;
}

static const weft_bytes no_text = {"", 0};

/* ---- headlines ---- */

static void end_headline(reading *self, const found_place *place) {
    if (!self->waiting)
        return;
    self->waiting = 0;
    if (place || self->severity == WEFT_SEVERITY_ERROR)
        add_diagnostic(self, place, self->severity, self->message, self->code);
}

static void begin_headline(reading *self, weft_severity severity, weft_bytes message, weft_bytes code, bool from_zero) {
    end_headline(self, NULL);
    self->severity = severity;
    self->message = message;
    self->code = code;
    self->from_zero = from_zero;
    self->waiting = HEADLINE_LINES;
}

static bool begins_with(weft_bytes text, const char *word) {
    return weft__line_word(&text, word);
}

static bool contains(weft_bytes text, const char *word) {
    return memmem(text.data, text.len, word, strlen(word)) != NULL;
}

/* What sums up others is none itself. */
static bool is_summary(weft_bytes message) {
    return begins_with(message, "could not compile ") || begins_with(message, "aborting due to ") ||
           contains(message, " generated ") || begins_with(message, "build failed");
}

/* "error[E0308]: mismatched types", "warning: unused variable: `x`" at the beginning of a line. */
static bool take_rust_headline(reading *self, weft_bytes line) {
    weft_severity severity = WEFT_SEVERITY_ERROR;
    weft_bytes code = no_text;
    if (!weft__line_word(&line, "error")) {
        if (!weft__line_word(&line, "warning"))
            return false;
        severity = WEFT_SEVERITY_WARNING;
    }
    if (line.len && *line.data == '[') {
        const char *end = memchr(line.data, ']', line.len);
        if (!end)
            return false;
        code = (weft_bytes){line.data + 1, (size_t) (end - line.data) - 1};
        weft__line_skip(&line, code.len + 2);
    }
    if (!weft__line_word(&line, ": ") || !line.len)
        return false;
    if (is_summary(line))
        end_headline(self, NULL);
    else
        begin_headline(self, severity, line, code, false);
    return true;
}

/* "✘ [ERROR] message", "▲ [WARNING] message [code]"; the sign before it is another on some systems. */
static bool take_esbuild_headline(reading *self, weft_bytes line) {
    static const char error[] = " [ERROR] ", warning[] = " [WARNING] ";
    const char *at = memmem(line.data, line.len, error, sizeof error - 1);
    weft_severity severity = at ? WEFT_SEVERITY_ERROR : WEFT_SEVERITY_WARNING;
    size_t len = at ? sizeof error - 1 : sizeof warning - 1;
    weft_bytes code = no_text;
    if (!at)
        at = memmem(line.data, line.len, warning, sizeof warning - 1);
    if (!at || at - line.data > 4)
        return false;
    weft__line_skip(&line, (size_t) (at - line.data) + len);
    weft__line_rule(&line, &code);
    begin_headline(self, severity, line, code, true);
    return true;
}

/* ---- places ---- */

/* FILE:LINE:COLUMN at the beginning, the last ":" of the file being the one before the digits. Without blanks in its name,
 * unless spaced. */
static bool take_place(weft_bytes *line, bool spaced, found_place *ret) {
    for (size_t i = 1; i < line->len && i < PATH_MAX; i++) {
        weft_bytes rest = {line->data + i, line->len - i};
        char c = line->data[i - 1];
        if ((c == ' ' || c == '\t') && !spaced)
            return false;
        if (*rest.data != ':' || !weft__line_word(&rest, ":") || !weft__line_number(&rest, &ret->line))
            continue;
        ret->file = (weft_bytes){line->data, i};
        ret->column = 0;
        if (rest.len > 1 && *rest.data == ':' && rest.data[1] >= '0' && rest.data[1] <= '9') {
            weft__line_skip(&rest, 1);
            weft__line_number(&rest, &ret->column);
        }
        *line = rest;
        return true;
    }
    return false;
}

/* Below a headline: " --> src/main.rs:3:17" of rustc, "    src/a.js:3:8:" of esbuild. */
static bool take_place_below(reading *self, weft_bytes line) {
    found_place place;
    weft__line_blanks(&line);
    bool arrow = weft__line_word(&line, "--> ");
    if (!self->waiting || arrow == self->from_zero || !take_place(&line, true, &place))
        return false;
    if (self->from_zero && (line.len != 1 || *line.data != ':'))
        return false;
    if (self->from_zero)
        place.column++;
    end_headline(self, &place);
    return true;
}

static bool is_file(weft_bytes file) {
    return file.len <= WEFT_DIAGNOSTIC_FILE && (memchr(file.data, '.', file.len) || memchr(file.data, '/', file.len)) &&
           !contains(file, "://");
}

/* "Makefile"; but "12:30:45: error: ..." begins with a time. */
static bool is_plain_name(weft_bytes file) {
    bool letters = false;
    for (size_t i = 0; i < file.len; i++) {
        letters |= isalpha((unsigned char) file.data[i]) != 0;
        if (!isalnum((unsigned char) file.data[i]) && !strchr("_-+", file.data[i]))
            return false;
    }
    return letters;
}

static bool ends_with(weft_bytes text, const char *end) {
    size_t len = strlen(end);
    return text.len > len && memcmp(text.data + text.len - len, end, len) == 0;
}

/* FILE:LINE:COLUMN: severity: message [rule] of gcc and clang; of go without a severity. */
static bool take_compiler_line(reading *self, weft_bytes line) {
    found_place place = {0};
    weft_bytes rest = line, rule = no_text;
    weft_severity severity = WEFT_SEVERITY_ERROR;
    weft__line_blanks(&rest);
    weft__line_word(&rest, "vet: ");
    bool indented = rest.data != line.data;
    if (!take_place(&rest, true, &place) || !weft__line_word(&rest, ":"))
        return false;
    weft__line_blanks(&rest);
    bool said = weft__line_severity(&rest, &severity);
    if (!is_file(place.file) && !(said && is_plain_name(place.file)))
        return false;
    bool go = ends_with(place.file, ".go") && !memchr(place.file.data, ' ', place.file.len);
    if (!rest.len || (said ? indented : !go))
        return false;
    if (said)
        weft__line_rule(&rest, &rule);
    add_diagnostic(self, &place, severity, rest, rule);
    return true;
}

/* FILE:(.text+0x5): undefined reference to `foo' */
static bool take_linker_line(reading *self, weft_bytes line) {
    static const char at[] = ":(.";
    const char *mark = memmem(line.data, line.len, at, sizeof at - 1);
    size_t len = mark ? (size_t) (mark - line.data) : 0;
    const char *end = mark ? memmem(mark, line.len - len, "): ", 3) : NULL;
    if (!end || !len)
        return false;
    found_place place = {.file = {line.data, len}};
    const char *name = memmem(place.file.data, len, ": ", 2); /* "/usr/bin/ld: b.c" */
    if (name)
        weft__line_skip(&place.file, (size_t) (name - place.file.data) + 2);
    weft__line_skip(&line, (size_t) (end - line.data) + 3);
    add_diagnostic(self, &place, WEFT_SEVERITY_ERROR, line, no_text);
    return true;
}

/* ---- tsc ---- */

/* "error TS2322: message" */
static bool take_typescript_message(reading *self, const found_place *place, weft_bytes line) {
    weft_severity severity = WEFT_SEVERITY_ERROR;
    if (!weft__line_word(&line, "error TS")) {
        if (!weft__line_word(&line, "warning TS"))
            return false;
        severity = WEFT_SEVERITY_WARNING;
    }
    const char *colon = memchr(line.data, ':', line.len);
    if (!colon)
        return false;
    weft_bytes code = {line.data - 2, (size_t) (colon - line.data) + 2};
    weft__line_skip(&line, code.len - 1);
    weft__line_blanks(&line);
    add_diagnostic(self, place, severity, line, code);
    return true;
}

/* FILE(LINE,COLUMN): ..., or with --pretty FILE:LINE:COLUMN - ... */
static bool take_typescript_line(reading *self, weft_bytes line) {
    found_place place = {0};
    weft_bytes pretty = line;
    if (take_place(&pretty, true, &place) && weft__line_word(&pretty, " - ") &&
        take_typescript_message(self, &place, pretty))
        return true;
    const char *open = memchr(line.data, '(', line.len);
    if (!open)
        return take_typescript_message(self, NULL, line);
    place = (found_place){.file = {line.data, (size_t) (open - line.data)}};
    weft__line_skip(&line, place.file.len + 1);
    return weft__line_number(&line, &place.line) && weft__line_word(&line, ",") && weft__line_number(&line, &place.column) &&
           weft__line_word(&line, "): ") && take_typescript_message(self, &place, line);
}

/* ---- JSON of cargo and rustc ---- */

static weft_bytes text_of_member(reading *self, const weft_json *object, const char *name) {
    weft_json value = weft_get(object, name);
    weft_bytes text = no_text;
    if (weft_typeof(&value) == WEFT_STRING && weft_bytes_of(&value, &text) == -ENOMEM)
        self->no_memory = true;
    return text;
}

static void add_rust_message(reading *self, const weft_json *message) {
    weft_bytes level = text_of_member(self, message, "level"), text = text_of_member(self, message, "message");
    weft_json spans = weft_get(message, "spans"), code = weft_get(message, "code");
    bool error = begins_with(level, "error"), warning = begins_with(level, "warning");
    found_place place = {.file = no_text};
    bool placed = false;
    if ((!error && !warning) || is_summary(text))
        return;
    for (weft_iter it = weft_iterate(&spans); weft_typeof(&spans) == WEFT_ARRAY && !placed && weft_next(&it);)
        if (weft_get_bool(&it.value, "is_primary", false)) {
            place = (found_place){text_of_member(self, &it.value, "file_name"), weft_get_int(&it.value, "line_start", 0),
                                  weft_get_int(&it.value, "column_start", 0)};
            placed = true;
        }
    if (placed || error)
        add_diagnostic(self, placed ? &place : NULL, error ? WEFT_SEVERITY_ERROR : WEFT_SEVERITY_WARNING, text,
                       text_of_member(self, &code, "code"));
}

static bool take_json_line(reading *self, weft_bytes line) {
    weft_doc *doc = NULL;
    if (!line.len || *line.data != '{' || !contains(line, "\"message\""))
        return false;
    int r = weft_doc_parse(line.data, line.len, self->found->arena.alloc, &doc);
    self->no_memory |= r == -ENOMEM;
    if (r < 0)
        return false;
    weft_json message = weft_get(weft_doc_root(doc), "message");
    if (weft_typeof(&message) == WEFT_OBJECT)
        add_rust_message(self, &message);
    else
        add_rust_message(self, weft_doc_root(doc));
    weft_doc_free(doc);
    return true;
}

/* ---- all of it ---- */

static void read_diagnostic_line(reading *self, weft_bytes line) {
    if (take_esbuild_headline(self, line) || take_place_below(self, line) || take_json_line(self, line) ||
        take_typescript_line(self, line) || take_compiler_line(self, line) || take_linker_line(self, line) ||
        take_rust_headline(self, line))
        return;
    if (self->waiting == 1)
        end_headline(self, NULL);
    else if (self->waiting)
        self->waiting--;
}

/* Colours of a terminal: ESC [ parameters letter. The text as it would be without them. NULL: no memory. */
static char *without_colours(reading *self, weft_bytes text, size_t *ret_len) {
    char *made = weft__arena_alloc(&self->found->arena, text.len + 1), *to = made;
    for (size_t i = 0; made && i < text.len; i++) {
        if (text.data[i] == '\033' && i + 1 < text.len && text.data[i + 1] == '[') {
            for (i += 2; i < text.len && ((unsigned char) text.data[i] < '@' || (unsigned char) text.data[i] > '~'); i++)
                if (text.data[i] == '\n')
                    break;
            continue;
        }
        *to++ = text.data[i];
    }
    *ret_len = made ? (size_t) (to - made) : 0;
    return made;
}

int weft__diagnostics_read(weft_diagnostics *found, weft_bytes text, const char *folder) {
    reading self = {.found = found, .folder = folder};
    size_t len;
    char *plain = without_colours(&self, text, &len);
    if (!plain)
        return -ENOMEM;
    weft_bytes rest = {plain, len}, line;
    while (!self.no_memory && weft__line_next(&rest, &line))
        read_diagnostic_line(&self, line);
    end_headline(&self, NULL);
    return self.no_memory ? -ENOMEM : 0;
}

void weft__diagnostics_done(weft_diagnostics *found) {
    weft__arena_done(&found->arena);
    found->count = 0;
}

weft_val weft__diagnostic_val(const weft_diagnostic *one, weft_member members[WEFT_DIAGNOSTIC_MEMBERS]) {
    members[0] = (weft_member){"file", *one->file ? weft_str(one->file) : weft_none()};
    members[1] = (weft_member){"line", one->line ? weft_int(one->line) : weft_none()};
    members[2] = (weft_member){"column", one->column ? weft_int(one->column) : weft_none()};
    members[3] = (weft_member){"severity", weft_str(weft__severities[one->severity])};
    members[4] = (weft_member){"message", weft_str(one->message)};
    members[5] = (weft_member){"code", *one->code ? weft_str(one->code) : weft_none()};
    return weft_obj(members, WEFT_DIAGNOSTIC_MEMBERS);
}

int weft__diagnostics_write(const weft_diagnostics *found, size_t most, const weft_alloc *alloc, weft_buf *out) {
    int r = weft__buf_put(out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < found->count && i < most; i++) {
        weft_member members[WEFT_DIAGNOSTIC_MEMBERS];
        weft_val value = weft__diagnostic_val(&found->items[i], members);
        r = i ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__write_val(out, alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}
