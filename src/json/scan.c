/* The scanner. It decides whether a text is JSON and where its values end; it never copies, allocates or recurses, and it
 * reads no byte that its contract (a NUL behind the text, slack behind the NUL) does not allow.
 *
 * Nothing here asks "is this the end?": the NUL fails every test that a byte of JSON would have to pass. */
#include "scan.h"

#include <string.h>

#include "alloc.h"
#include "buf.h"
#include "doc.h"
#include "hint.h"
#include "hop.h"
#include "scan_wide.h"
#include "utf8.h"

/* Vectors tried before a string is taken for a long one, which is then read 64 bytes at a time. */
#define SHORT_STEPS 4

static bool is_digit(char c) {
    return (unsigned char) (c - '0') < 10;
}

static bool is_hex(char c) {
    return is_digit(c) || (unsigned char) ((c | 0x20) - 'a') < 6;
}

/* p is at a backslash. The byte behind the escape, or NULL. Any four hex digits will do: RFC 8259 section 8.2 allows lone
 * surrogates in a text, what they decode to is the reader's business. */
static const char *scan_escape(const char *p) {
    switch (p[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return p + 2;
    case 'u':
        return is_hex(p[2]) && is_hex(p[3]) && is_hex(p[4]) && is_hex(p[5]) ? p + 6 : NULL;
    default:
        return NULL;
    }
}

/* p is at a byte of a string that is not plain and not the closing quote. What follows the escapes and UTF-8 sequences that
 * begin here, or NULL. They come in runs (Chinese text, Windows line ends), so one call takes them all. */
static const char *scan_special(const char *p, bool *ret_escaped) {
    do {
        if (*p == '\\') {
            if (ret_escaped)
                *ret_escaped = true;
            p = scan_escape(p);
        } else {
            size_t len = (unsigned char) *p >= 0x80 ? weft__utf8_len(p, WEFT_UTF8_MAX) : 0;
            p = len ? p + len : NULL;
        }
    } while (p && (*p == '\\' || (unsigned char) *p >= 0x80));
    return p;
}

/* The first byte from p that is not plain. */
static const char *skip_plain(const char *p) {
    for (int i = 0; i < SHORT_STEPS; i++) {
        size_t n = weft__plain(p);
        p += n;
        if (n < WEFT_STEP)
            return p;
    }
    while (weft__plain64(p))
        p += 64;
    size_t n;
    do {
        n = weft__plain(p);
        p += n;
    } while (n == WEFT_STEP);
    return p;
}

const char *weft__scan_string_rest_base(const char *p, bool *ret_escaped) {
    /* The caller has seen that the first vector does not hold the end, not why. */
    if (weft__plain(p) == WEFT_STEP) {
        size_t n = weft__plain_to_quote(p + WEFT_STEP);
        if (n < WEFT_STEP)
            return p + WEFT_STEP + n + 1;
    }
    for (;;) {
        p = skip_plain(p);
        if (*p == '"')
            return p + 1;
        p = scan_special(p, ret_escaped);
        if (!p)
            return NULL;
    }
}

const char *weft__scan_string_rest(const char *p, bool *ret_escaped) {
#ifdef WEFT_SCAN_WIDE
    if (weft__has_avx2())
        return weft__scan_string_rest_avx2(p, ret_escaped);
#endif
    return weft__scan_string_rest_base(p, ret_escaped);
}

static const char *skip_digits(const char *p) {
    while (is_digit(*p))
        p++;
    return p;
}

/* The same where there are many: a fraction. */
static inline const char *skip_many_digits(const char *p) {
    size_t n = weft__digits(p);
    p = weft__hop(p, n);
    return n == WEFT_STEP ? skip_digits(p) : p;
}

/* The fraction and exponent of a number, p behind its integer part. The byte behind the number, or NULL. */
static inline const char *scan_fraction(const char *p) {
    if (*p == '.') {
        if (!is_digit(p[1]))
            return NULL;
        p = skip_many_digits(p + 2);
    }
    if ((*p | 0x20) == 'e') {
        p++;
        p += *p == '+' || *p == '-';
        if (!is_digit(*p))
            return NULL;
        p = skip_digits(p + 1);
    }
    return p;
}

/* p is at a minus or a digit. */
static inline const char *scan_number(const char *p) {
    p += *p == '-';
    if (!is_digit(*p))
        return NULL;
    p = *p == '0' ? p + 1 : skip_digits(p + 1);
    return *p == '.' || (*p | 0x20) == 'e' ? scan_fraction(p) : p;
}

/* p is at an opening quote, of a string that most likely is short. */
static inline const char *scan_short_string(const char *p) {
    size_t n = weft__plain_to_quote(p + 1);
    return n < WEFT_STEP ? weft__hop(p + 2, n) : weft__scan_string_rest(p + 1, NULL);
}

/* p is at the first byte of a value that is no container. */
static inline const char *scan_scalar(const char *p) {
    if (*p == '"')
        return weft__scan_any_string(p);
    switch (*p) {
    case 't':
        return memcmp(p, "true", 4) == 0 ? p + 4 : NULL;
    case 'f':
        return memcmp(p + 1, "alse", 4) == 0 ? p + 5 : NULL;
    case 'n':
        return memcmp(p, "null", 4) == 0 ? p + 4 : NULL;
    default:
        return scan_number(p);
    }
}

/* p is at an item of an array that is no container. What follows it, and the numbers behind it if it is one. */
static inline const char *scan_items(const char *p) {
    if (!is_digit(*p) && *p != '-')
        return scan_scalar(p);
    for (;;) {
        p = scan_number(p);
        if (!p || *p != ',' || (!is_digit(p[1]) && p[1] != '-'))
            return p;
        p++;
    }
}

/* p is at the name of a member. The first byte of its value, or NULL. */
static inline const char *scan_name(const char *p) {
    if (*p != '"')
        return NULL;
    p = scan_short_string(p);
    if (!p)
        return NULL;
    if ((unsigned char) *p <= ' ')
        p = weft__scan_ws(p);
    if (*p++ != ':')
        return NULL;
    return (unsigned char) *p <= ' ' ? weft__scan_ws(p) : p;
}

static inline bool is_opening(char c) {
    return (c | 0x20) == '{'; /* '[' is 0x5B, '{' is 0x7B */
}

/* What is open is a stack of bits, a one for an object, in two words: no array, so no stack protector, and the level that is
 * open lies in a register. */
const char *weft__scan_container(const char *p, int depth) {
    unsigned __int128 outer = 0;
    bool object = false;
    int level = 0;

    if (depth > WEFT_MAX_DEPTH)
        depth = WEFT_MAX_DEPTH;
    for (;;) {
        if (is_opening(*p)) {
            if (++level > depth)
                return NULL;
            outer = outer << 1 | object;
            object = *p == '{';
            p++;
            if ((unsigned char) *p <= ' ')
                p = weft__scan_ws(p);
            if (*p != (object ? '}' : ']')) {
                if (object && !(p = scan_name(p)))
                    return NULL;
                continue;
            }
        } else {
            p = object ? scan_scalar(p) : scan_items(p);
            if (!p)
                return NULL;
            if ((unsigned char) *p <= ' ')
                p = weft__scan_ws(p);
        }
        while (*p == (object ? '}' : ']')) {
            p++;
            if (--level == 0)
                return p;
            object = outer & 1;
            outer >>= 1;
            if ((unsigned char) *p <= ' ')
                p = weft__scan_ws(p);
        }
        if (*p != ',')
            return NULL;
        p++;
        if ((unsigned char) *p <= ' ')
            p = weft__scan_ws(p);
        if (object && !(p = scan_name(p)))
            return NULL;
    }
}

const char *weft__scan_value(const char *p, int depth) {
    if (is_opening(*p))
        return weft__scan_container(p, depth);
    return scan_scalar(p);
}

/* Is this string (quotes included) the name "_meta"? Any spelling of it but the plain one has an escape. */
static bool is_meta(const char *name, const char *end, bool escaped) {
    return escaped ? weft__raw_is((weft_bytes){name, (size_t) (end - name)}, "_meta", 5) : memcmp(name, "\"_meta\"", 7) == 0;
}

/* p is where a member should begin. The first byte behind its value and the white space after that, or NULL. */
static const char *scan_member(const char *p, int depth, weft_bytes *ret_meta) {
    const char *name = p;
    bool escaped;
    if (*p != '"')
        return NULL;
    p = weft__scan_string(p, &escaped);
    if (!p)
        return NULL;
    bool found = is_meta(name, p, escaped);
    p = weft__scan_ws(p);
    if (*p != ':')
        return NULL;
    const char *value = weft__scan_ws(p + 1);
    p = weft__scan_value(value, depth);
    if (!p)
        return NULL;
    if (found)
        *ret_meta = (weft_bytes){value, (size_t) (p - value)};
    return weft__scan_ws(p);
}

const char *weft__scan_params(const char *p, int depth, weft_bytes *ret_meta) {
    weft_bytes meta = {0};
    if (depth < 1)
        return NULL;
    p = weft__scan_ws(p + 1);
    if (*p != '}') {
        p = scan_member(p, depth - 1, &meta);
        while (p && *p == ',')
            p = scan_member(weft__scan_ws(p + 1), depth - 1, &meta);
    }
    if (!p || *p != '}')
        return NULL;
    *ret_meta = meta;
    return p + 1;
}
