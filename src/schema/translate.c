/* ECMA-262 to PCRE2. Both agree on most; what PCRE2 has beyond that is refused, so that a schema means the same everywhere,
 * and what means something else there is written so that it does not. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pattern_private.h"

/* White space and line ends, as ECMA-262 has them, inside of a set. */
#define SPACES "\\t\\n\\x0B\\f\\r \\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}\\x{FEFF}"
#define NO_LINE_END "[^\\n\\r\\x{2028}\\x{2029}]"

typedef struct translation {
    const char *p, *end;
    weft_buf *out;
    const weft_alloc *alloc;
    const char *why;
    bool in_set;
    int r;
} translation;

static void put(translation *t, const char *text, size_t len) {
    if (t->r >= 0)
        t->r = weft__buf_put(t->out, t->alloc, text, len);
}

static void put_text(translation *t, const char *text) {
    put(t, text, strlen(text));
}

static void refuse(translation *t, const char *why) {
    if (t->r < 0)
        return;
    t->r = -EBADMSG;
    t->why = why;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Up to most hex digits at p; how many. */
static size_t read_hex(const char *p, const char *end, size_t most, unsigned *ret) {
    size_t n = 0;
    *ret = 0;
    for (; n < most && p + n < end && hex_digit(p[n]) >= 0; n++)
        *ret = *ret << 4 | (unsigned) hex_digit(p[n]);
    return n;
}

static void put_character(translation *t, unsigned code) {
    char text[16];
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
        refuse(t, "names a character that is none");
        return;
    }
    snprintf(text, sizeof text, "\\x{%X}", code);
    put_text(t, text);
}

/* p is behind "\u". */
static void take_unicode(translation *t) {
    unsigned code, low;
    if (t->p < t->end && *t->p == '{') {
        size_t n = read_hex(t->p + 1, t->end, 6, &code);
        if (!n || t->p + 1 + n >= t->end || t->p[1 + n] != '}') {
            refuse(t, "has \\u{ without digits or without }");
            return;
        }
        t->p += n + 2;
        put_character(t, code);
        return;
    }
    if (read_hex(t->p, t->end, 4, &code) != 4) {
        refuse(t, "has \\u without four digits");
        return;
    }
    t->p += 4;
    bool high = code >= 0xD800 && code < 0xDC00 && t->end - t->p >= 6 && t->p[0] == '\\' && t->p[1] == 'u';
    if (high && read_hex(t->p + 2, t->end, 4, &low) == 4 && low >= 0xDC00 && low < 0xE000) {
        t->p += 6;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    put_character(t, code);
}

/* Names of properties that PCRE2 knows by another one. */
static const struct {
    const char *name, *pcre2;
} properties[] = {
    {"Letter", "L"},
    {"Cased_Letter", "L&"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Titlecase_Letter", "Lt"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
    {"Mark", "M"},
    {"Nonspacing_Mark", "Mn"},
    {"Spacing_Mark", "Mc"},
    {"Enclosing_Mark", "Me"},
    {"Number", "N"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Letter_Number", "Nl"},
    {"Other_Number", "No"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Connector_Punctuation", "Pc"},
    {"Dash_Punctuation", "Pd"},
    {"Open_Punctuation", "Ps"},
    {"Close_Punctuation", "Pe"},
    {"Initial_Punctuation", "Pi"},
    {"Final_Punctuation", "Pf"},
    {"Other_Punctuation", "Po"},
    {"Symbol", "S"},
    {"Math_Symbol", "Sm"},
    {"Currency_Symbol", "Sc"},
    {"Modifier_Symbol", "Sk"},
    {"Other_Symbol", "So"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Line_Separator", "Zl"},
    {"Paragraph_Separator", "Zp"},
    {"Other", "C"},
    {"Control", "Cc"},
    {"cntrl", "Cc"},
    {"Format", "Cf"},
    {"Surrogate", "Cs"},
    {"Private_Use", "Co"},
    {"Unassigned", "Cn"},
};

static weft_bytes without_prefix(weft_bytes name) {
    static const char *const prefixes[] = {"General_Category=", "gc=", "Script_Extensions=", "scx=", "Script=", "sc="};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t n = strlen(prefixes[i]);
        if (name.len > n && memcmp(name.data, prefixes[i], n) == 0)
            return (weft_bytes){name.data + n, name.len - n};
    }
    return name;
}

/* p is behind "\p" or "\P". */
static void take_property(translation *t, char letter) {
    const char *close = t->p < t->end && *t->p == '{' ? memchr(t->p, '}', (size_t) (t->end - t->p)) : NULL;
    if (!close) {
        refuse(t, "has \\p without {NAME}");
        return;
    }
    weft_bytes name = without_prefix((weft_bytes){t->p + 1, (size_t) (close - t->p) - 1});
    char escape[3] = {'\\', letter, '{'};
    t->p = close + 1;
    put(t, escape, sizeof escape);
    for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++)
        if (name.len == strlen(properties[i].name) && memcmp(name.data, properties[i].name, name.len) == 0)
            name = (weft_bytes){properties[i].pcre2, strlen(properties[i].pcre2)};
    put(t, name.data, name.len);
    put_text(t, "}");
}

static bool is_letter(char c) {
    return (unsigned char) ((c | 0x20) - 'a') < 26;
}

/* p is behind a backslash. */
static void take_escape(translation *t) {
    char c = t->p < t->end ? *t->p : '\0';
    char both[2] = {'\\', c};
    if (t->p == t->end) {
        refuse(t, "ends with a backslash");
        return;
    }
    t->p++;
    switch (c) {
    case 's':
        put_text(t, t->in_set ? SPACES : "[" SPACES "]");
        return;
    case 'S':
        put_text(t, t->in_set ? "\\S" : "[^" SPACES "]");
        return;
    case 'v':
        put_text(t, "\\x0B");
        return;
    case 'u':
        take_unicode(t);
        return;
    case 'p':
    case 'P':
        take_property(t, c);
        return;
    default:
        if (is_letter(c) && !strchr("dDwWbBnrtfcxk", c))
            refuse(t, "has an escape that ECMA-262 does not know");
        else if ((unsigned char) c >= 0x80)
            put(t, &c, 1);
        else
            put(t, both, sizeof both);
    }
}

/* p is behind "(". What may follow "(?" is little. */
static void take_group(translation *t) {
    size_t left = (size_t) (t->end - t->p);
    put_text(t, "(");
    if (left && t->p[0] == '*')
        refuse(t, "repeats nothing");
    if (left < 2 || t->p[0] != '?')
        return;
    bool behind = t->p[1] == '<' && left > 2 && (t->p[2] == '=' || t->p[2] == '!' || t->p[2] == '_' || is_letter(t->p[2]));
    if (!strchr(":=!", t->p[1]) && !behind)
        refuse(t, "has a group that ECMA-262 does not know");
}

static void take_one(translation *t) {
    char c = *t->p++;
    if (c == '\\') {
        take_escape(t);
    } else if (t->in_set) {
        t->in_set = c != ']';
        if (c == '[')
            put_text(t, "\\["); /* otherwise [:name:] would be a class */
        else
            put(t, &c, 1);
    } else if (c == '.') {
        put_text(t, NO_LINE_END);
    } else if (c == '(') {
        take_group(t);
    } else {
        t->in_set = c == '[';
        put(t, &c, 1);
        if (t->in_set && t->p < t->end && *t->p == '^')
            put(t, t->p++, 1);
    }
}

int weft__pattern_translate(weft_bytes text, const weft_alloc *alloc, weft_buf *out, const char **ret_why) {
    translation t = {.p = text.data, .end = text.data + text.len, .out = out, .alloc = alloc};
    while (t.r >= 0 && t.p < t.end)
        take_one(&t);
    if (t.r == -EBADMSG)
        *ret_why = t.why;
    return t.r;
}
