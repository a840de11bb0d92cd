/* JSON text without line ends: what is written must fit on a line, and a raw line end in valid JSON is only white space. */
#ifndef WEFT_FLAT_H
#define WEFT_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "plain.h"

#define WEFT_BYTES_OF(byte) (0x0101010101010101ULL * (byte))

static inline bool weft__control8(const char *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return ((word - WEFT_BYTES_OF(0x20)) & ~word & WEFT_BYTES_OF(0x80)) != 0;
}

/* Is there any byte below the space? Reads the text only, nothing behind it. */
static inline bool weft__has_control(const char *p, size_t len) {
    const char *end = p + len;
    if (len < 8) {
        for (; p < end; p++)
            if ((unsigned char) *p < 0x20)
                return true;
        return false;
    }
#if defined(__SSE2__) && !defined(WEFT_PORTABLE)
    if (len >= 16) {
        /* The last vector overlaps the one before it. */
        __m128i found = _mm_setzero_si128(), control = _mm_set1_epi8(0x1F);
        for (const char *at = p; at < end; at += 16) {
            __m128i v = _mm_loadu_si128((const __m128i *) (const void *) (at + 16 <= end ? at : end - 16));
            found = _mm_or_si128(found, _mm_cmpeq_epi8(_mm_min_epu8(v, control), v));
        }
        return _mm_movemask_epi8(found) != 0;
    }
#endif
    bool found = weft__control8(end - 8);
    for (; end - p >= 8; p += 8)
        found |= weft__control8(p);
    return found;
}

/* Line ends become blanks. */
static inline void weft__flatten(char *p, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (p[i] == '\n' || p[i] == '\r')
            p[i] = ' ';
}

/* memcpy for a few bytes costs more than the copy: these are at most 16. */
static inline void weft__copy_few(char *to, const char *from, size_t len) {
    uint64_t first, last;
    uint32_t head, tail;
    if (len >= 8) {
        memcpy(&first, from, 8), memcpy(&last, from + len - 8, 8);
        memcpy(to, &first, 8), memcpy(to + len - 8, &last, 8);
    } else if (len >= 4) {
        memcpy(&head, from, 4), memcpy(&tail, from + len - 4, 4);
        memcpy(to, &head, 4), memcpy(to + len - 4, &tail, 4);
    } else
        for (size_t i = 0; i < len; i++)
            to[i] = from[i];
}

#if defined(__SSE2__) && !defined(WEFT_PORTABLE)
/* Copy sixteen bytes; the top bit of each that is below the space. */
static inline __m128i weft__copy_control16(char *to, const char *from) {
    __m128i bytes = _mm_loadu_si128((const __m128i *) (const void *) from);
    _mm_storeu_si128((__m128i *) (void *) to, bytes);
    return _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
}
#endif

/* Copy, and say whether there is any byte below the space. */
static inline bool weft__copy_has_control(char *to, const char *text, size_t len) {
    if (len < 16) {
        weft__copy_few(to, text, len);
        return weft__has_control(text, len);
    }
#if defined(__SSE2__) && !defined(WEFT_PORTABLE)
    /* The last vector ends with the text and overlaps the one before it. */
    const size_t last = len - 16;
    __m128i found = weft__copy_control16(to + last, text + last);
    for (size_t at = 0; at < last; at += 16)
        found = _mm_or_si128(found, weft__copy_control16(to + at, text + at));
    return _mm_movemask_epi8(found) != 0;
#else
    memcpy(to, text, len);
    return weft__has_control(text, len);
#endif
}

/* Copy a JSON text, its line ends as blanks. Almost never is there any; the source is asked, because what was just written
 * is slow to read back. Behind the copy. */
static inline char *weft__copy_flat(char *to, const char *text, size_t len) {
    if (__builtin_expect(weft__copy_has_control(to, text, len), 0))
        weft__flatten(to, len);
    return to + len;
}

#endif
