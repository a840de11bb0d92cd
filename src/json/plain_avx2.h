/* Plain bytes of a string, 32 at a time with AVX2. For files that are compiled for it. */
#ifndef WEFT_PLAIN_AVX2_H
#define WEFT_PLAIN_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

static inline __m256i weft__load32(const char *p) {
    return _mm256_loadu_si256((const __m256i *) (const void *) p);
}

static inline uint32_t weft__mask32(__m256i bytes) {
    return (uint32_t) _mm256_movemask_epi8(bytes);
}

/* A bit for each quote, backslash and control character: what ends a run of text. */
static inline uint32_t weft__ends32(__m256i bytes) {
    __m256i quotes = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('"'));
    __m256i slashes = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\\'));
    __m256i controls = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1F)), bytes);
    return weft__mask32(_mm256_or_si256(_mm256_or_si256(quotes, slashes), controls));
}

/* The same with bytes of UTF-8 sequences: a bit for each byte that is not plain. */
static inline uint32_t weft__special32(__m256i bytes) {
    __m256i quotes = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('"'));
    __m256i slashes = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\\'));
    __m256i others = _mm256_subs_epi8(bytes, _mm256_set1_epi8(' '));
    return weft__mask32(_mm256_or_si256(_mm256_or_si256(quotes, slashes), others));
}

#endif
