/* Patterns that are a row of character sets, each repeated: ^[a-z][a-z0-9_-]*$, ^\d{4}-\d\d-\d\d$, ^x-. Each set takes all
 * it can get. That is right as long as what it takes could not begin what follows; other patterns are not simple. Sets hold
 * ASCII only, so a byte of a longer character is in none of them. */
#include <string.h>

#include "pattern_private.h"

#define MOST_REPEATS 100000

static bool is_digit(char c) {
    return (unsigned char) (c - '0') < 10;
}

static void set_add(uint64_t set[2], unsigned char from, unsigned char to) {
    for (unsigned c = from; c <= to && c < 128; c++)
        set[c / 64] |= UINT64_C(1) << c % 64;
}

static bool set_has(const uint64_t set[2], unsigned char c) {
    return c < 128 && (set[c / 64] >> c % 64 & 1);
}

/* p is behind a backslash. A set of its own, or one character; false: neither. */
static bool read_escape(char c, uint64_t set[2]) {
    switch (c) {
    case 'd':
        set_add(set, '0', '9');
        return true;
    case 'w':
        set_add(set, '0', '9');
        set_add(set, 'a', 'z');
        set_add(set, 'A', 'Z');
        set_add(set, '_', '_');
        return true;
    default:
        if (!c || !strchr("^$\\.*+?()[]{}|/-", c))
            return false;
        set_add(set, (unsigned char) c, (unsigned char) c);
        return true;
    }
}

static bool is_plain(char c) {
    return (unsigned char) c >= ' ' && (unsigned char) c < 127 && !strchr("\\]^[", c);
}

/* p is behind the opening bracket. The byte behind the closing one, or NULL. */
static const char *read_set(const char *p, const char *end, uint64_t set[2]) {
    if (p == end || *p == '^' || *p == ']')
        return NULL;
    while (p < end && *p != ']') {
        if (*p == '\\') {
            if (p + 2 >= end || p[2] == '-' || !read_escape(p[1], set))
                return NULL;
            p += 2;
        } else if (!is_plain(*p)) {
            return NULL;
        } else if (p + 2 < end && p[1] == '-' && p[2] != ']') {
            if (!is_plain(p[2]) || p[2] < p[0])
                return NULL;
            set_add(set, (unsigned char) p[0], (unsigned char) p[2]);
            p += 3;
        } else {
            set_add(set, (unsigned char) *p, (unsigned char) *p);
            p++;
        }
    }
    return p < end ? p + 1 : NULL;
}

static const char *read_piece(const char *p, const char *end, uint64_t set[2]) {
    if (*p == '[')
        return read_set(p + 1, end, set);
    if (*p == '\\')
        return p + 1 < end && read_escape(p[1], set) ? p + 2 : NULL;
    if ((unsigned char) *p < ' ' || (unsigned char) *p >= 127 || strchr("^$.*+?()[]{}|", *p))
        return NULL;
    set_add(set, (unsigned char) *p, (unsigned char) *p);
    return p + 1;
}

static const char *read_count(const char *p, const char *end, uint32_t *ret) {
    uint32_t n = 0;
    if (p == end || !is_digit(*p))
        return NULL;
    for (; p < end && is_digit(*p); p++) {
        n = n * 10 + (uint32_t) (*p - '0');
        if (n > MOST_REPEATS)
            return NULL;
    }
    *ret = n;
    return p;
}

/* {2}, {2,} or {2,5}; p is behind the opening brace. */
static const char *read_braces(const char *p, const char *end, simple_piece *ret) {
    p = read_count(p, end, &ret->least);
    if (!p || p == end)
        return NULL;
    ret->most = ret->least;
    if (*p == ',') {
        p++;
        ret->most = UINT32_MAX;
        if (p < end && *p != '}')
            p = read_count(p, end, &ret->most);
    }
    return p && p < end && *p == '}' && ret->most >= ret->least ? p + 1 : NULL;
}

static bool is_repeat(char c) {
    return c == '*' || c == '+' || c == '?' || c == '{';
}

static const char *read_repeat(const char *p, const char *end, simple_piece *ret) {
    ret->least = ret->most = 1;
    if (p == end || !is_repeat(*p))
        return p;
    if (*p == '{') {
        p = read_braces(p + 1, end, ret);
    } else {
        ret->least = *p == '+';
        ret->most = *p == '?' ? 1 : UINT32_MAX;
        p++;
    }
    return p && p < end && is_repeat(*p) ? NULL : p; /* lazy ones are not simple */
}

static bool overlap(const simple_piece *a, const simple_piece *b) {
    return (a->set[0] & b->set[0]) || (a->set[1] & b->set[1]);
}

/* Does no piece that may stop early take what a later one needs? */
static bool never_goes_back(const simple_pattern *simple) {
    for (size_t i = 0; i < simple->count; i++) {
        bool open = simple->pieces[i].most != simple->pieces[i].least;
        for (size_t j = i + 1; open && j < simple->count; j++) {
            if (overlap(&simple->pieces[i], &simple->pieces[j]))
                return false;
            open = simple->pieces[j].least == 0;
        }
    }
    return true;
}

bool weft__simple_parse(weft_bytes text, simple_pattern *ret) {
    const char *p = text.data, *end = p + text.len;
    memset(ret, 0, sizeof *ret);
    if (p == end || *p++ != '^')
        return false;
    while (p < end && !(*p == '$' && p + 1 == end)) {
        if (ret->count == SIMPLE_PIECES)
            return false;
        simple_piece *piece = &ret->pieces[ret->count++];
        p = read_piece(p, end, piece->set);
        p = p ? read_repeat(p, end, piece) : NULL;
        if (!p)
            return false;
    }
    ret->to_end = p < end;
    return never_goes_back(ret);
}

bool weft__simple_matches(const simple_pattern *simple, const char *text, size_t len) {
    const char *p = text, *end = text + len;
    for (size_t i = 0; i < simple->count; i++) {
        const simple_piece *piece = &simple->pieces[i];
        uint32_t n = 0;
        while (n < piece->most && p < end && set_has(piece->set, (unsigned char) *p)) {
            p++;
            n++;
        }
        if (n < piece->least)
            return false;
    }
    return !simple->to_end || p == end;
}
