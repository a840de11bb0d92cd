/* UTF-8 checked 32 bytes at a time: "Validating UTF-8 In Less Than One Instruction Per Byte" (Keiser and Lemire, 2021). Each
 * byte is judged with the one before it by three tables of 16, one for each half byte; a bit that all three have is an
 * error. */
#ifndef WEFT_UTF8_AVX2_H
#define WEFT_UTF8_AVX2_H

#include <immintrin.h>
#include <stdint.h>

enum {
    UTF8_TOO_SHORT = 1 << 0,  /* a lead byte, then no continuation */
    UTF8_TOO_LONG = 1 << 1,   /* ASCII, then a continuation */
    UTF8_OVERLONG_3 = 1 << 2, /* E0 80..9F */
    UTF8_TOO_LARGE = 1 << 3,  /* F4 90.., F5.. */
    UTF8_SURROGATE = 1 << 4,  /* ED A0.. */
    UTF8_OVERLONG_2 = 1 << 5, /* C0, C1 */
    UTF8_TOO_LARGE_1000 = 1 << 6,
    UTF8_OVERLONG_4 = 1 << 6, /* F0 80..8F */
    UTF8_TWO_CONTS = 1 << 7,  /* right only as the third or fourth of a sequence */
    UTF8_CARRY = UTF8_TOO_SHORT | UTF8_TOO_LONG | UTF8_TWO_CONTS,
};

static inline __m256i weft__utf8_table(__m256i halves, const uint8_t table[16]) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) (const void *) table)), halves);
}

/* The bytes, moved on by n, with the last of those before in front. */
#define WEFT_UTF8_BEFORE(bytes, before, n)                                                                                  \
    _mm256_alignr_epi8((bytes), _mm256_permute2x128_si256((before), (bytes), 0x21), 16 - (n))

static inline __m256i weft__utf8_pairs(__m256i bytes, __m256i one_before) {
    static const uint8_t first_high[16] = {UTF8_TOO_LONG,
                                           UTF8_TOO_LONG,
                                           UTF8_TOO_LONG,
                                           UTF8_TOO_LONG,
                                           UTF8_TOO_LONG,
                                           UTF8_TOO_LONG,
                                           UTF8_TOO_LONG,
                                           UTF8_TOO_LONG,
                                           UTF8_TWO_CONTS,
                                           UTF8_TWO_CONTS,
                                           UTF8_TWO_CONTS,
                                           UTF8_TWO_CONTS,
                                           UTF8_TOO_SHORT | UTF8_OVERLONG_2,
                                           UTF8_TOO_SHORT,
                                           UTF8_TOO_SHORT | UTF8_OVERLONG_3 | UTF8_SURROGATE,
                                           UTF8_TOO_SHORT | UTF8_TOO_LARGE | UTF8_TOO_LARGE_1000 | UTF8_OVERLONG_4};
    static const uint8_t first_low[16] = {UTF8_CARRY | UTF8_OVERLONG_3 | UTF8_OVERLONG_2 | UTF8_OVERLONG_4,
                                          UTF8_CARRY | UTF8_OVERLONG_2,
                                          UTF8_CARRY,
                                          UTF8_CARRY,
                                          UTF8_CARRY | UTF8_TOO_LARGE,
                                          UTF8_CARRY | UTF8_TOO_LARGE | UTF8_TOO_LARGE_1000,
                                          UTF8_CARRY | UTF8_TOO_LARGE | UTF8_TOO_LARGE_1000,
                                          UTF8_CARRY | UTF8_TOO_LARGE | UTF8_TOO_LARGE_1000,
                                          UTF8_CARRY | UTF8_TOO_LARGE | UTF8_TOO_LARGE_1000,
                                          UTF8_CARRY | UTF8_TOO_LARGE | UTF8_TOO_LARGE_1000,
                                          UTF8_CARRY | UTF8_TOO_LARGE | UTF8_TOO_LARGE_1000,
                                          UTF8_CARRY | UTF8_TOO_LARGE | UTF8_TOO_LARGE_1000,
                                          UTF8_CARRY | UTF8_TOO_LARGE | UTF8_TOO_LARGE_1000,
                                          UTF8_CARRY | UTF8_TOO_LARGE | UTF8_TOO_LARGE_1000 | UTF8_SURROGATE,
                                          UTF8_CARRY | UTF8_TOO_LARGE | UTF8_TOO_LARGE_1000,
                                          UTF8_CARRY | UTF8_TOO_LARGE | UTF8_TOO_LARGE_1000};
    static const uint8_t second_high[16] = {
        UTF8_TOO_SHORT,
        UTF8_TOO_SHORT,
        UTF8_TOO_SHORT,
        UTF8_TOO_SHORT,
        UTF8_TOO_SHORT,
        UTF8_TOO_SHORT,
        UTF8_TOO_SHORT,
        UTF8_TOO_SHORT,
        UTF8_TOO_LONG | UTF8_OVERLONG_2 | UTF8_TWO_CONTS | UTF8_OVERLONG_3 | UTF8_TOO_LARGE_1000 | UTF8_OVERLONG_4,
        UTF8_TOO_LONG | UTF8_OVERLONG_2 | UTF8_TWO_CONTS | UTF8_OVERLONG_3 | UTF8_TOO_LARGE,
        UTF8_TOO_LONG | UTF8_OVERLONG_2 | UTF8_TWO_CONTS | UTF8_SURROGATE | UTF8_TOO_LARGE,
        UTF8_TOO_LONG | UTF8_OVERLONG_2 | UTF8_TWO_CONTS | UTF8_SURROGATE | UTF8_TOO_LARGE,
        UTF8_TOO_SHORT,
        UTF8_TOO_SHORT,
        UTF8_TOO_SHORT,
        UTF8_TOO_SHORT};
    __m256i low = _mm256_set1_epi8(0x0F);
    __m256i a = weft__utf8_table(_mm256_and_si256(_mm256_srli_epi16(one_before, 4), low), first_high);
    __m256i b = weft__utf8_table(_mm256_and_si256(one_before, low), first_low);
    __m256i c = weft__utf8_table(_mm256_and_si256(_mm256_srli_epi16(bytes, 4), low), second_high);
    return _mm256_and_si256(_mm256_and_si256(a, b), c);
}

/* Not zero: something is wrong within these bytes, or with where those before them ended. A sequence that these do not end
 * is not wrong yet. */
static inline __m256i weft__utf8_errors(__m256i bytes, __m256i before) {
    __m256i pairs = weft__utf8_pairs(bytes, WEFT_UTF8_BEFORE(bytes, before, 1));
    __m256i third = _mm256_subs_epu8(WEFT_UTF8_BEFORE(bytes, before, 2), _mm256_set1_epi8((char) (0xE0 - 0x80)));
    __m256i fourth = _mm256_subs_epu8(WEFT_UTF8_BEFORE(bytes, before, 3), _mm256_set1_epi8((char) (0xF0 - 0x80)));
    __m256i must = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8((char) 0x80));
    return _mm256_xor_si256(must, pairs);
}

#endif
