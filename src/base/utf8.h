/* One UTF-8 sequence, checked as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. And where a
 * text that is UTF-8 may be cut. */
#ifndef WEFT_UTF8_H
#define WEFT_UTF8_H

#include <weft/base.h>

#define WEFT_UTF8_MAX 4 /* bytes of the longest sequence */

static inline bool weft__utf8_follows(unsigned char c) {
    return (c & 0xC0) == 0x80;
}

/* The length of the sequence at p, whose first byte is 0x80 or more; 0 when it is invalid or does not fit into room bytes.
 * Bytes are looked at in order, each only if the one before it allows one, so a text that ends in NUL needs no room check:
 * pass WEFT_UTF8_MAX and the comparisons vanish. */
static inline size_t weft__utf8_len(const char *text, size_t room) {
    const unsigned char *p = (const unsigned char *) text;
    unsigned char lead = p[0];
    if (lead < 0xE0)
        return lead >= 0xC2 && room >= 2 && weft__utf8_follows(p[1]) ? 2 : 0;
    if (lead < 0xF0) {
        /* E0 80..9F would be overlong, ED A0..BF are the surrogates. */
        unsigned char low = lead == 0xE0 ? 0xA0 : 0x80, high = lead == 0xED ? 0x9F : 0xBF;
        return room >= 3 && p[1] >= low && p[1] <= high && weft__utf8_follows(p[2]) ? 3 : 0;
    }
    /* F0 80..8F would be overlong, F4 90 and more lie above U+10FFFF. */
    unsigned char low = lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xF4 ? 0x8F : 0xBF;
    return lead <= 0xF4 && room >= 4 && p[1] >= low && p[1] <= high && weft__utf8_follows(p[2]) && weft__utf8_follows(p[3])
               ? 4
               : 0;
}

/* How much of a text's beginning fits into max bytes, not ending within a character. */
static inline size_t weft__utf8_fit(const char *text, size_t len, size_t max) {
    if (len <= max)
        return len;
    while (max && weft__utf8_follows((unsigned char) text[max]))
        max--;
    return max;
}

/* Where the first character at or behind from begins. */
static inline size_t weft__utf8_from(const char *text, size_t len, size_t from) {
    while (from < len && weft__utf8_follows((unsigned char) text[from]))
        from++;
    return from;
}

/* The bytes of the first so many characters. */
static inline size_t weft__utf8_first(const char *text, size_t characters) {
    size_t n = 0;
    while (text[n] && (weft__utf8_follows((unsigned char) text[n]) || characters-- > 0))
        n++;
    return n;
}

#endif
