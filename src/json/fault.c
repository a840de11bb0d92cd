/* Finding the first fault of a text, token by token. Like the scanner it counts nesting instead of recursing, and the NUL
 * behind the text fails every test; unlike it, it remembers where it was. */
#include "fault.h"

#include <string.h>

#include "scan.h"
#include "utf8.h"

/* A walk over a text. Once why is set, p stays where it is: every step then does nothing. */
typedef struct walk {
    const char *p;
    const char *why;
    unsigned __int128 outer; /* a stack of bits, a one for an object */
    int level;
    bool object; /* the innermost open container is one */
} walk;

static bool record_fault(walk *self, const char *at, const char *why) {
    self->p = at;
    self->why = why;
    return false;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* ---- scalars ---- */

static bool is_escape(const char *p) {
    if (p[1] != 'u')
        return p[1] && strchr("\"\\/bfnrt", p[1]);
    for (int i = 2; i < 6; i++)
        if (!p[i] || !strchr("0123456789abcdefABCDEF", p[i]))
            return false;
    return true;
}

static bool take_string(walk *self, const char *end) {
    const char *string = self->p++;
    for (;;) {
        unsigned char c = (unsigned char) *self->p;
        if (c == '"') {
            self->p++;
            return true;
        }
        if (self->p == end || c == '\n' || c == '\r')
            return record_fault(self, string, "this string does not end on its line");
        if (c < 0x20)
            return record_fault(self, self->p, "a control character in a string must be written as an escape");
        size_t len = c >= 0x80 ? weft__utf8_len(self->p, WEFT_UTF8_MAX) : 1;
        if (!len)
            return record_fault(self, self->p, "this is not UTF-8");
        bool escape = c == '\\' && self->p + 1 < end;
        if (escape && !is_escape(self->p))
            return record_fault(self, self->p, "this is not an escape of JSON; a backslash itself is \\\\");
        self->p += !escape ? len : self->p[1] == 'u' ? 6 : 2;
    }
}

static bool take_digits(walk *self) {
    if (!is_digit(*self->p))
        return record_fault(self, self->p, "expected a digit");
    while (is_digit(*self->p))
        self->p++;
    return true;
}

static bool take_number(walk *self) {
    self->p += *self->p == '-';
    if (*self->p == '0') {
        self->p++;
        if (is_digit(*self->p))
            return record_fault(self, self->p - 1, "a number does not begin with 0");
    } else if (!take_digits(self))
        return false;
    if (*self->p == '.') {
        self->p++;
        if (!take_digits(self))
            return false;
    }
    if ((*self->p | 0x20) != 'e')
        return true;
    self->p++;
    self->p += *self->p == '+' || *self->p == '-';
    return take_digits(self);
}

static bool take_word(walk *self) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t len = strlen(words[i]);
        if (strncmp(self->p, words[i], len) == 0) {
            self->p += len;
            return true;
        }
    }
    return record_fault(self, self->p,
                        *self->p == '\'' ? "expected a value; strings are in double quotes" : "expected a value");
}

static bool take_scalar(walk *self, const char *end) {
    if (*self->p == '"')
        return take_string(self, end);
    return *self->p == '-' || is_digit(*self->p) ? take_number(self) : take_word(self);
}

/* ---- containers ---- */

static bool take_name(walk *self, const char *end) {
    if (*self->p != '"')
        return record_fault(self, self->p, "expected a name in double quotes");
    if (!take_string(self, end))
        return false;
    self->p = weft__scan_ws(self->p);
    if (*self->p != ':')
        return record_fault(self, self->p, "expected a ':'");
    self->p = weft__scan_ws(self->p + 1);
    return true;
}

/* At an opening bracket. Behind it, and behind the name of a first member; *ret_empty: it closes at once. */
static bool open_container(walk *self, const char *end, bool *ret_empty) {
    if (self->level == WEFT_MAX_DEPTH)
        return record_fault(self, self->p, "nested too deeply");
    self->level++;
    self->outer = self->outer << 1 | self->object;
    self->object = *self->p == '{';
    self->p = weft__scan_ws(self->p + 1);
    *ret_empty = *self->p == (self->object ? '}' : ']');
    return *ret_empty || !self->object || take_name(self, end);
}

/* Behind a value: close what closes here, then take the comma that must follow if something is still open. */
static bool close_containers(walk *self, const char *end) {
    self->p = weft__scan_ws(self->p);
    while (self->level > 0 && *self->p == (self->object ? '}' : ']')) {
        self->level--;
        self->object = self->outer & 1;
        self->outer >>= 1;
        self->p = weft__scan_ws(self->p + 1);
    }
    if (self->level == 0)
        return self->p == end || record_fault(self, self->p, "expected the end of the text");
    if (*self->p != ',')
        return record_fault(self, self->p, self->object ? "expected a ',' or a '}'" : "expected a ',' or a ']'");
    self->p = weft__scan_ws(self->p + 1);
    return !self->object || take_name(self, end);
}

weft_fault weft__fault_find(const char *text, size_t len) {
    walk self = {.p = weft__scan_ws(text)};
    const char *end = text + len;
    bool more = true;
    while (more) {
        bool empty = true;
        more = *self.p == '{' || *self.p == '[' ? open_container(&self, end, &empty) : take_scalar(&self, end);
        if (more && empty)
            more = close_containers(&self, end) && self.level > 0;
    }
    return (weft_fault){(size_t) (self.p - text), self.why};
}

/* ---- places ---- */

static const char *skip_mark(const char *text, size_t len) {
    return len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
}

weft_place weft__place_of(const char *text, size_t at) {
    weft_place place = {1, 1};
    const char *end = text + at;
    for (const char *p = skip_mark(text, at); p < end; p++) {
        bool line_end = *p == '\n' || (*p == '\r' && p[1] != '\n');
        if (line_end)
            place = (weft_place){place.line + 1, 1};
        else if (((unsigned char) *p & 0xC0) != 0x80)
            place.column++;
    }
    return place;
}
