/* Is this UTF-8? Sixteen ASCII bytes at a time; other code points one by one, by the table of RFC 3629 section 4. */
#include "utf8_stream.h"

#include <string.h>

#if defined(__SSE2__) && !defined(WEFT_PORTABLE)
#include <emmintrin.h>

static const uint8_t *skip_ascii(const uint8_t *p, const uint8_t *end) {
    while (end - p >= 16) {
        int high = _mm_movemask_epi8(_mm_loadu_si128((const __m128i *) (const void *) p));
        if (high)
            return p + __builtin_ctz((unsigned) high);
        p += 16;
    }
    while (p < end && *p < 0x80)
        p++;
    return p;
}
#else
static const uint8_t *skip_ascii(const uint8_t *p, const uint8_t *end) {
    uint64_t eight;
    while (end - p >= 8) {
        memcpy(&eight, p, 8);
        if (eight & 0x8080808080808080u)
            break;
        p += 8;
    }
    while (p < end && *p < 0x80)
        p++;
    return p;
}
#endif

/* What a lead byte asks for; need 0: it is none. Only the second byte of a sequence is ever narrower than 80..BF: that is
 * what keeps overlong forms (E0, F0), surrogates (ED) and what lies beyond U+10FFFF (F4) out. */
static weft_utf8 after_lead(uint8_t lead) {
    if (lead < 0xC2 || lead > 0xF4)
        return (weft_utf8){0};
    if (lead < 0xE0)
        return (weft_utf8){1, 0x80, 0xBF};
    if (lead < 0xF0)
        return (weft_utf8){2, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF};
    return (weft_utf8){3, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF};
}

static bool is_continuation(uint8_t byte) {
    return (byte & 0xC0) == 0x80;
}

/* The length of the sequence at p, where four bytes may be read; 0: it is invalid. */
static size_t sequence_len(const uint8_t *p) {
    uint8_t lead = p[0], second = p[1];
    if (lead < 0xE0)
        return lead >= 0xC2 && is_continuation(second) ? 2 : 0;
    if (lead < 0xF0) {
        bool narrow = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F);
        return !narrow && is_continuation(second) && is_continuation(p[2]) ? 3 : 0;
    }
    bool narrow = (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
    return lead < 0xF5 && !narrow && is_continuation(second) && is_continuation(p[2]) && is_continuation(p[3]) ? 4 : 0;
}

/* Everything that can be checked without looking where the end is: up to the last three bytes. NULL: invalid. */
static const uint8_t *skip_whole(const uint8_t *p, const uint8_t *end) {
    while (end - p >= 4) {
        if (*p < 0x80) {
            p = skip_ascii(p, end);
            continue;
        }
        size_t len = sequence_len(p);
        if (!len)
            return NULL;
        p += len;
    }
    return p;
}

bool weft__utf8_feed(weft_utf8 *state, const char *data, size_t n) {
    if (n == 0)
        return true; /* data may be NULL */
    const uint8_t *p = (const uint8_t *) data, *end = p + n;
    weft_utf8 at = *state;

    while (p < end) {
        if (at.need) {
            if (*p < at.low || *p > at.high)
                return false;
            at = (weft_utf8){(uint8_t) (at.need - 1), 0x80, 0xBF};
            p++;
        } else if (end - p >= 4) {
            p = skip_whole(p, end);
            if (!p)
                return false;
        } else if (*p < 0x80) {
            p++;
        } else {
            at = after_lead(*p++);
            if (!at.need)
                return false;
        }
    }
    *state = at;
    return true;
}

bool weft__utf8_valid(const char *data, size_t n) {
    weft_utf8 state = {0};
    return weft__utf8_feed(&state, data, n) && weft__utf8_whole(&state);
}
