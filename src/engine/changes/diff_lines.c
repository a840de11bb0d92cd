/* A diff, line by line; see diff_lines.h. The counts of a hunk say how long it is: a line of a file may look like the head
 * of another one. */
#include "diff_lines.h"

#include <string.h>

#include "utf8.h"
#include "visible.h"

#define FILE_BEGINS "diff --git "
#define MAX_NUMBER 1000000000 /* of lines: what is larger is no number of git's */

static bool begins_with(weft_bytes text, const char *with) {
    size_t len = strlen(with);
    return text.len >= len && memcmp(text.data, with, len) == 0;
}

static weft_bytes without(weft_bytes text, size_t n) {
    return (weft_bytes){text.data + n, text.len - n};
}

/* Moves at behind the line and its end. */
static weft_bytes take_line(const char **at, const char *end) {
    const char *stop = memchr(*at, '\n', (size_t) (end - *at));
    weft_bytes line = {*at, (size_t) ((stop ? stop : end) - *at)};
    *at = stop ? stop + 1 : end;
    return line;
}

/* ---- paths ---- */

/* Behind a name with blanks git writes a tab. */
static weft_bytes trim_tab(weft_bytes written) {
    if (written.len && written.data[written.len - 1] == '\t')
        written.len--;
    return written;
}

/* Of "a/x b/x", where both names are the same: each is half of it. */
static void split_same(weft_bytes both, weft_diff_reader *reader) {
    if (both.len < 5 || both.len % 2 == 0 || both.data[both.len / 2] != ' ')
        return;
    reader->old_path = (weft_bytes){both.data, both.len / 2};
    reader->new_path = without(both, both.len / 2 + 1);
}

/* Of the file whose first line this is: in the lines of its head, else in that line itself. */
static void find_paths(weft_diff_reader *reader, weft_bytes first) {
    const char *at = reader->at;
    reader->old_path = reader->new_path = (weft_bytes){"", 0};
    reader->bare = false;
    split_same(without(first, sizeof FILE_BEGINS - 1), reader);
    while (at < reader->end) {
        weft_bytes line = take_line(&at, reader->end);
        if (begins_with(line, FILE_BEGINS) || begins_with(line, "@@ "))
            return;
        if (begins_with(line, "new file mode "))
            reader->old_path.len = 0;
        else if (begins_with(line, "deleted file mode "))
            reader->new_path.len = 0;
        else if (begins_with(line, "rename from "))
            reader->old_path = without(line, 12);
        else if (begins_with(line, "rename to ")) {
            reader->new_path = without(line, 10);
            reader->bare = true;
        } else if (begins_with(line, "--- ")) {
            reader->old_path = trim_tab(without(line, 4));
            reader->bare = false;
        } else if (begins_with(line, "+++ ")) {
            reader->new_path = trim_tab(without(line, 4));
            return;
        }
    }
}

static bool is_octal(const char *at, const char *end) {
    for (int i = 0; i < 3; i++)
        if (at + i >= end || at[i] < '0' || at[i] > '7')
            return false;
    return *at <= '3';
}

/* What stands behind a backslash in quotes. Moves at. 0: nothing that git writes. */
static char unescape(const char **at, const char *end) {
    static const char letters[] = "abfnrtv\"\\", values[] = "\a\b\f\n\r\t\v\"\\";
    const char *from = *at;
    if (is_octal(from, end)) {
        *at += 3;
        return (char) ((from[0] - '0') * 64 + (from[1] - '0') * 8 + (from[2] - '0'));
    }
    const char *found = from < end && *from ? strchr(letters, *from) : NULL;
    *at += 1;
    return found ? values[found - letters] : '\0';
}

static bool unquote(weft_bytes written, char ret[WEFT_DIFF_PATH]) {
    const char *at = written.data + 1, *end = written.data + written.len - 1;
    size_t len = 0;
    while (at < end && len < WEFT_DIFF_PATH - 1) {
        char c = *at++;
        if (c == '\\')
            c = unescape(&at, end);
        if (!c)
            return false;
        ret[len++] = c;
    }
    ret[len] = '\0';
    return at == end;
}

bool weft__diff_path(const weft_diff_reader *reader, bool old, char ret[WEFT_DIFF_PATH]) {
    weft_bytes written = old ? reader->old_path : reader->new_path;
    char path[WEFT_DIFF_PATH];
    bool quoted = written.len >= 2 && *written.data == '"' && written.data[written.len - 1] == '"';
    size_t prefix = reader->bare ? 0 : 2;
    if (!written.len || memchr(written.data, '\0', written.len) || (!quoted && written.len >= sizeof path))
        return false;
    if (written.len == 9 && memcmp(written.data, "/dev/null", 9) == 0)
        return false;
    if (quoted ? !unquote(written, path) : !memcpy(path, written.data, written.len))
        return false;
    size_t len = quoted ? strlen(path) : written.len;
    if (len <= prefix)
        return false;
    memcpy(ret, path + prefix, len - prefix);
    ret[len - prefix] = '\0';
    return true;
}

bool weft__diff_file(const weft_diff_reader *reader, char ret[WEFT_DIFF_PATH]) {
    return weft__diff_path(reader, false, ret) || weft__diff_path(reader, true, ret);
}

/* ---- lines ---- */

/* false: there is none. Moves at. */
static bool read_number(const char **at, const char *end, size_t *ret) {
    const char *from = *at;
    size_t number = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
        if ((number = 10 * number + (size_t) (**at - '0')) > MAX_NUMBER)
            return false;
    *ret = number;
    return *at > from;
}

/* "-1,3" or, of one line, "-1". Moves at. */
static bool read_range(const char **at, const char *end, char mark, size_t *ret_first, size_t *ret_count) {
    if (*at >= end || **at != mark)
        return false;
    ++*at;
    *ret_count = 1;
    if (!read_number(at, end, ret_first))
        return false;
    if (*at < end && **at == ',') {
        ++*at;
        return read_number(at, end, ret_count);
    }
    return true;
}

static bool read_hunk(weft_bytes line, weft_diff_reader *reader) {
    weft_diff_reader made = *reader;
    if (!begins_with(line, "@@ "))
        return false;
    const char *at = line.data + 3, *end = line.data + line.len;
    if (!read_range(&at, end, '-', &made.before, &made.before_left) || at >= end || *at++ != ' ' ||
        !read_range(&at, end, '+', &made.now, &made.now_left) || at >= end || *at != ' ')
        return false;
    *reader = made;
    return true;
}

/* A line of a hunk. An empty one has lost its blank on the way: it is on both sides. */
static weft_diff_kind read_content(weft_diff_reader *reader, weft_diff_line *line) {
    char mark = line->text.len ? *line->text.data : ' ';
    bool old = mark == ' ' || mark == '-', now = mark == ' ' || mark == '+';
    if (mark == '\\')
        return WEFT_DIFF_NOTE;
    if ((!old && !now) || (old && !reader->before_left) || (now && !reader->now_left)) {
        reader->before_left = reader->now_left = 0;
        return WEFT_DIFF_HEAD;
    }
    if (old) {
        line->before = reader->before++;
        reader->before_left--;
    }
    if (now) {
        line->now = reader->now++;
        reader->now_left--;
    }
    return old && now ? WEFT_DIFF_SAME : now ? WEFT_DIFF_ADDED : WEFT_DIFF_REMOVED;
}

bool weft__diff_next(weft_diff_reader *reader, weft_diff_line *ret) {
    if (reader->at >= reader->end)
        return false;
    *ret = (weft_diff_line){.kind = WEFT_DIFF_HEAD, .text = take_line(&reader->at, reader->end)};
    if (reader->before_left || reader->now_left)
        ret->kind = read_content(reader, ret);
    if (reader->before_left || reader->now_left || ret->kind != WEFT_DIFF_HEAD)
        return true;
    if (begins_with(ret->text, FILE_BEGINS)) {
        ret->kind = WEFT_DIFF_FILE;
        find_paths(reader, ret->text);
    } else if (read_hunk(ret->text, reader))
        ret->kind = WEFT_DIFF_HUNK;
    else if (begins_with(ret->text, "\\ "))
        ret->kind = WEFT_DIFF_NOTE;
    return true;
}

int weft__diff_show(weft_buf *out, const weft_alloc *alloc, weft_bytes line, size_t most) {
    size_t fit = line.len && line.data[line.len - 1] == '\r' ? line.len - 1 : line.len;
    bool cut = fit > most;
    int r = 0;
    fit = cut ? weft__utf8_fit(line.data, fit, most) : fit;
    for (size_t at = 0, n; r >= 0 && at < fit; at += n) {
        char form[WEFT_ESCAPE_FORM];
        unsigned code;
        n = weft__code_point(line.data + at, fit - at, &code);
        if (code == 0xfffd && n == 1)
            r = weft__buf_put(out, alloc, "\xef\xbf\xbd", 3);
        else if (code != '\t' && weft__is_unseen(code))
            r = weft__buf_put(out, alloc, form, (size_t) weft__put_escape(code, form));
        else
            r = weft__buf_put(out, alloc, line.data + at, n);
    }
    return r >= 0 && cut ? weft__buf_put(out, alloc, " ...", 4) : r;
}
