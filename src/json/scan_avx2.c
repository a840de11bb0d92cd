/* Long strings on machines with AVX2: the same rules, in one pass, with 32 bytes at a time. Compiled for these machines
 * only, and called only there (scan.c asks). What it says about a text is what scan.c says; tests compare the two. */
#include "scan_wide.h"

#ifdef WEFT_SCAN_WIDE

#include <string.h>

#include "hint.h"
#include "plain_avx2.h"
#include "scan.h"
#include "utf8_avx2.h"

/* How long the escape is by the letter behind its backslash; 0: there is none. */
static const uint8_t escape_lens[256] = {
    ['"'] = 2, ['\\'] = 2, ['/'] = 2, ['b'] = 2, ['f'] = 2, ['n'] = 2, ['r'] = 2, ['t'] = 2, ['u'] = 6};

static bool is_wide_hex(char c) {
    return (unsigned char) (c - '0') < 10 || (unsigned char) ((c | 0x20) - 'a') < 6;
}

/* p is at a backslash. The length of the escape; 0: it is none. */
static inline size_t wide_escape(const char *p) {
    size_t len = escape_lens[(unsigned char) p[1]];
    if (len != 6)
        return len;
    return is_wide_hex(p[2]) && is_wide_hex(p[3]) && is_wide_hex(p[4]) && is_wide_hex(p[5]) ? 6 : 0;
}

/* p is at the beginning of a character. The first quote, backslash or control character from there, or NULL: what lies
 * before it is no UTF-8. */
static const char *skip_wide_utf8(const char *p) {
    static const int8_t places[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                      16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    __m256i before = _mm256_setzero_si256();
    for (;;) {
        __m256i bytes = weft__load32(p);
        uint32_t ends = weft__ends32(bytes);
        size_t n = ends ? (size_t) __builtin_ctz(ends) : 32;
        if (ends) /* what lies behind is as if it were ASCII, which no sequence goes on with */
            bytes =
                _mm256_and_si256(bytes, _mm256_cmpgt_epi8(_mm256_set1_epi8((char) n), weft__load32((const char *) places)));
        __m256i errors = weft__utf8_errors(bytes, before);
        if (!_mm256_testz_si256(errors, errors))
            return NULL;
        p += n;
        if (ends)
            return p;
        before = bytes;
    }
}

/* p is inside a string. The byte behind its closing quote, or NULL. Escapes are taken without looking at the bytes again. */
static WEFT_NOINLINE const char *wide_string_rest(const char *p, bool *escaped) {
    for (;;) {
        uint64_t specials = weft__special32(weft__load32(p));
        const char *next = p + 32;
        while (specials) {
            size_t at = (size_t) __builtin_ctzll(specials), len;
            char c = p[at];
            if (c == '"')
                return p + at + 1;
            if (c == '\\') {
                if (escaped)
                    *escaped = true;
                if (!(len = wide_escape(p + at)))
                    return NULL;
                specials &= ~(uint64_t) 0 << (at + len);
                if (at + len > 32)
                    next = p + at + len;
                continue;
            }
            if ((unsigned char) c < ' ' || !(next = skip_wide_utf8(p + at)))
                return NULL;
            break;
        }
        p = next;
    }
}

const char *weft__scan_string_rest_avx2(const char *p, bool *ret_escaped) {
    return wide_string_rest(p, ret_escaped);
}

#endif
