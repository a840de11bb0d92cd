/* What is inside the quotes: the escapes of a string that the scanner has accepted. Nothing is validated again. */
#include "escape.h"

#include <string.h>

#include "doc.h"

#define REPLACEMENT 0xFFFD /* what a surrogate without its other half becomes */

static unsigned hex_value(char c) {
    return (unsigned) (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

static unsigned hex4_value(const char *p) {
    return hex_value(p[0]) << 12 | hex_value(p[1]) << 8 | hex_value(p[2]) << 4 | hex_value(p[3]);
}

static size_t put_utf8(unsigned code, char *ret) {
    if (code < 0x80) {
        ret[0] = (char) code;
        return 1;
    }
    if (code < 0x800) {
        ret[0] = (char) (0xC0 | code >> 6);
        ret[1] = (char) (0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        ret[0] = (char) (0xE0 | code >> 12);
        ret[1] = (char) (0x80 | (code >> 6 & 0x3F));
        ret[2] = (char) (0x80 | (code & 0x3F));
        return 3;
    }
    ret[0] = (char) (0xF0 | code >> 18);
    ret[1] = (char) (0x80 | (code >> 12 & 0x3F));
    ret[2] = (char) (0x80 | (code >> 6 & 0x3F));
    ret[3] = (char) (0x80 | (code & 0x3F));
    return 4;
}

/* p is at "\u". The code point, with the second half of a pair when there is one; *p moves behind it. */
static unsigned read_unicode(const char **p, const char *end, bool *ret_lone) {
    unsigned code = hex4_value(*p + 2);
    *p += 6;
    if (code < 0xD800 || code > 0xDFFF)
        return code;
    if (code < 0xDC00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        unsigned second = hex4_value(*p + 2);
        if (second >= 0xDC00 && second <= 0xDFFF) {
            *p += 6;
            return 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
        }
    }
    *ret_lone = true;
    return REPLACEMENT;
}

const char *weft__escape_read(const char *p, const char *end, char ret[WEFT_ESCAPE_MAX], size_t *ret_len, bool *ret_lone) {
    static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    if (p[1] == 'u') {
        unsigned code = read_unicode(&p, end, ret_lone);
        *ret_len = put_utf8(code, ret);
        return p;
    }
    const char *letter = strchr(letters, p[1]);
    ret[0] = letter ? meanings[letter - letters] : p[1];
    *ret_len = 1;
    return p + 2;
}

size_t weft__unescape_strict(const char *raw, size_t raw_len, char *ret, bool *ret_lone) {
    const char *end = raw + raw_len;
    char *out = ret;
    *ret_lone = false;
    for (;;) {
        const char *escape = raw < end ? memchr(raw, '\\', (size_t) (end - raw)) : NULL;
        size_t plain = (size_t) ((escape ? escape : end) - raw);
        memcpy(out, raw, plain);
        out += plain;
        if (!escape)
            break;
        /* An escape is never shorter than what it stands for, so this cannot overrun memory as large as the raw text. */
        char bytes[WEFT_ESCAPE_MAX];
        size_t len;
        raw = weft__escape_read(escape, end, bytes, &len, ret_lone);
        memcpy(out, bytes, len);
        out += len;
    }
    *out = '\0';
    return (size_t) (out - ret);
}

size_t weft__unescape(const char *raw, size_t raw_len, char *ret) {
    bool lone;
    return weft__unescape_strict(raw, raw_len, ret, &lone);
}

/* The raw inside of a string that has escapes, against a name, piece by piece and without memory. */
static bool escaped_is(const char *p, const char *end, const char *name, const char *name_end) {
    while (p < end) {
        char bytes[WEFT_ESCAPE_MAX];
        size_t len = weft__next_piece(&p, end, bytes);
        if ((size_t) (name_end - name) < len || memcmp(name, bytes, len) != 0)
            return false;
        name += len;
    }
    return name == name_end;
}

bool weft__raw_is(weft_bytes raw, const char *name, size_t name_len) {
    const char *inside = raw.data + 1;
    size_t len = raw.len - 2;
    /* Most are told apart by their first letter. That of an empty text is its quote. */
    if (name_len && *inside != *name && *inside != '\\')
        return false;
    /* Every escape is longer than what it stands for: with equal lengths only a text without escapes can be equal, and a
     * name that is longer cannot. */
    if (len == name_len)
        return memcmp(inside, name, len) == 0 && !memchr(inside, '\\', len);
    return len > name_len && memchr(inside, '\\', len) && escaped_is(inside, inside + len, name, name + name_len);
}
