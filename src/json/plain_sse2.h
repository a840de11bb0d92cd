/* Plain bytes of a string, sixteen at a time with SSE2, which every x86-64 has. Same functions as plain_portable.h. */
#ifndef WEFT_PLAIN_SSE2_H
#define WEFT_PLAIN_SSE2_H

#include <emmintrin.h>
#include <stddef.h>

#define WEFT_STEP 16 /* bytes that weft__plain() looks at */

/* The top bit of each byte that is a backslash, a control character or part of a UTF-8 sequence. Less the space with signed
 * saturation, control characters become negative, and bytes from 0x80 are and remain so. */
static inline __m128i weft__special_but_quote16(__m128i bytes) {
    __m128i backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    return _mm_or_si128(backslashes, _mm_subs_epi8(bytes, _mm_set1_epi8(' ')));
}

/* The same with quotes: each byte that is not plain. */
static inline __m128i weft__special16(const char *p) {
    __m128i bytes = _mm_loadu_si128((const __m128i *) (const void *) p);
    return _mm_or_si128(weft__special_but_quote16(bytes), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')));
}

/* How many of the WEFT_STEP bytes at p come before the first that is not plain. */
static inline size_t weft__plain(const char *p) {
    unsigned specials = (unsigned) _mm_movemask_epi8(weft__special16(p));
    return specials ? (size_t) __builtin_ctz(specials) : WEFT_STEP;
}

/* p is inside a string. How many bytes are left of it if it ends within WEFT_STEP bytes and all of them are plain, otherwise
 * WEFT_STEP. What follows waits for this number, and it is found from the quotes alone; that nothing else came before is a
 * branch, which the processor runs ahead of. */
static inline size_t weft__plain_to_quote(const char *p) {
    __m128i bytes = _mm_loadu_si128((const __m128i *) (const void *) p);
    unsigned quotes = (unsigned) _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')));
    unsigned others = (unsigned) _mm_movemask_epi8(weft__special_but_quote16(bytes));
    unsigned to_first_quote = quotes ^ (quotes - 1);
    return quotes && !(others & to_first_quote) ? (size_t) __builtin_ctz(quotes) : WEFT_STEP;
}

/* How many digits there are at p; WEFT_STEP: that many or more. Moved up, the digits are the ten largest signed numbers. */
static inline size_t weft__digits(const char *p) {
    __m128i moved = _mm_add_epi8(_mm_loadu_si128((const __m128i *) (const void *) p), _mm_set1_epi8(127 - '9'));
    unsigned others = (unsigned) _mm_movemask_epi8(_mm_cmplt_epi8(moved, _mm_set1_epi8(127 - 9)));
    return others ? (size_t) __builtin_ctz(others) : WEFT_STEP;
}

/* Are the next 64 bytes all plain? The four answers are joined before the one branch. */
static inline bool weft__plain64(const char *p) {
    __m128i low = _mm_or_si128(weft__special16(p), weft__special16(p + 16));
    __m128i high = _mm_or_si128(weft__special16(p + 32), weft__special16(p + 48));
    return _mm_movemask_epi8(_mm_or_si128(low, high)) == 0;
}

#endif
