/* A second opinion on what JSON is: slow, recursive, with an end pointer instead of a sentinel, written from the RFC and not
 * from the scanner, so that the two can be compared on texts nobody thought of. */
#ifndef JSON_REFERENCE_H
#define JSON_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct reference {
    const unsigned char *p, *end;
};

static bool reference_take(struct reference *ref, const char *literal) {
    size_t len = strlen(literal);
    if ((size_t) (ref->end - ref->p) < len || memcmp(ref->p, literal, len) != 0)
        return false;
    ref->p += len;
    return true;
}

static bool reference_in(struct reference *ref, const char *set) {
    if (ref->p == ref->end || *ref->p == '\0' || !strchr(set, *ref->p))
        return false;
    ref->p++;
    return true;
}

static void reference_ws(struct reference *ref) {
    while (reference_in(ref, " \t\r\n"))
        ;
}

/* A code point by value: decoded first, judged afterwards. */
static bool reference_utf8(struct reference *ref) {
    static const unsigned long least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = *ref->p++;
    int len = lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    if (lead < 0x80)
        return lead >= 0x20;
    if (!len)
        return false;
    unsigned long code = lead & (0x7Fu >> len);
    for (int i = 1; i < len; i++) {
        if (ref->p == ref->end || *ref->p >> 6 != 2)
            return false;
        code = code << 6 | (*ref->p++ & 0x3F);
    }
    return code >= least[len] && code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
}

static bool reference_string(struct reference *ref) {
    if (!reference_take(ref, "\""))
        return false;
    while (!reference_take(ref, "\"")) {
        if (ref->p == ref->end)
            return false;
        if (!reference_take(ref, "\\")) {
            if (!reference_utf8(ref))
                return false;
            continue;
        }
        if (reference_in(ref, "\"\\/bfnrt"))
            continue;
        if (!reference_take(ref, "u"))
            return false;
        for (int i = 0; i < 4; i++)
            if (!reference_in(ref, "0123456789abcdefABCDEF"))
                return false;
    }
    return true;
}

static bool reference_digits(struct reference *ref) {
    if (!reference_in(ref, "0123456789"))
        return false;
    while (reference_in(ref, "0123456789"))
        ;
    return true;
}

static bool reference_number(struct reference *ref) {
    reference_take(ref, "-");
    if (!reference_take(ref, "0") && (!reference_in(ref, "123456789") || (ref->p--, !reference_digits(ref))))
        return false;
    if (reference_take(ref, ".") && !reference_digits(ref))
        return false;
    if (!reference_in(ref, "eE"))
        return true;
    reference_in(ref, "+-");
    return reference_digits(ref);
}

static bool reference_value(struct reference *ref, int depth);

static bool reference_container(struct reference *ref, bool object, int depth) {
    const char *close = object ? "}" : "]";
    reference_ws(ref);
    if (depth == 0)
        return false;
    if (reference_take(ref, close))
        return true;
    for (;;) {
        reference_ws(ref);
        if (object) {
            if (!reference_string(ref))
                return false;
            reference_ws(ref);
            if (!reference_take(ref, ":"))
                return false;
            reference_ws(ref);
        }
        if (!reference_value(ref, depth - 1))
            return false;
        reference_ws(ref);
        if (reference_take(ref, close))
            return true;
        if (!reference_take(ref, ","))
            return false;
    }
}

static bool reference_value(struct reference *ref, int depth) {
    if (reference_take(ref, "{"))
        return reference_container(ref, true, depth);
    if (reference_take(ref, "["))
        return reference_container(ref, false, depth);
    if (ref->p < ref->end && *ref->p == '"')
        return reference_string(ref);
    return reference_take(ref, "true") || reference_take(ref, "false") || reference_take(ref, "null") ||
           reference_number(ref);
}

/* Is the whole text one value, nested no deeper than depth, white space around it allowed? */
static inline bool reference_valid(const char *text, size_t len, int depth) {
    const unsigned char *p = (const unsigned char *) text;
    struct reference ref = {p, p + len};
    reference_ws(&ref);
    if (!reference_value(&ref, depth))
        return false;
    reference_ws(&ref);
    return ref.p == ref.end;
}

#endif
