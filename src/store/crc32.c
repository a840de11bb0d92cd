/* Every event and document is summed when it is stored and when it is read. zlib takes five instructions for a byte. With a
 * carry-less multiplication sixteen bytes are folded onto the next sixteen in four: both halves are multiplied by x to the
 * power of the distance over which they move, modulo the polynomial, so that the remainder stays the same. */
#include "crc32.h"

#include <zlib.h>

#if defined(__x86_64__) && !defined(WEFT_PORTABLE)

#include <emmintrin.h>
#include <stdbool.h>
#include <wmmintrin.h>

#define LANE 16
#define LANES 4

__attribute__((target("pclmul"))) static __m128i fold(__m128i value, __m128i onto, __m128i factors) {
    __m128i low = _mm_clmulepi64_si128(value, factors, 0x00), high = _mm_clmulepi64_si128(value, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), onto);
}

static __m128i load_lane(const unsigned char *at) {
    return _mm_loadu_si128((const __m128i *) (const void *) at);
}

/* At least one lane, and whole lanes only. What is left of all of them is one, whose sum is that of all the bytes. */
__attribute__((target("pclmul"))) static __m128i fold_lanes(uint32_t sum, const unsigned char *at, size_t len) {
    /* x to the power of 544 and 480 (four lanes, and 32 bits more or less), of 160 and 96 (one), bits reversed. */
    const __m128i far = _mm_set_epi64x(0x1c6e41596, 0x154442bd4), near = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    __m128i first = _mm_xor_si128(load_lane(at), _mm_cvtsi32_si128((int) ~sum));
    const unsigned char *end = at + len;
    if (len >= LANES * LANE) {
        __m128i b = load_lane(at + LANE), c = load_lane(at + 2 * LANE), d = load_lane(at + 3 * LANE);
        for (at += LANES * LANE; end - at >= LANES * LANE; at += LANES * LANE) {
            first = fold(first, load_lane(at), far);
            b = fold(b, load_lane(at + LANE), far);
            c = fold(c, load_lane(at + 2 * LANE), far);
            d = fold(d, load_lane(at + 3 * LANE), far);
        }
        first = fold(fold(fold(first, b, near), c, near), d, near);
    } else
        at += LANE;
    for (; at < end; at += LANE)
        first = fold(first, load_lane(at), near);
    return first;
}

/* 128 bits become 96, 64, and then 32 by Barrett's reduction: the quotient is a product with the polynomial's inverse. */
__attribute__((target("pclmul"))) static uint32_t sum_lane(__m128i lane) {
    const __m128i near = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0), last = _mm_set_epi64x(0, 0x163cd6124);
    const __m128i polynomial = _mm_set_epi64x(0x1f7011641, 0x1db710641), low = _mm_set_epi64x(0, 0xffffffff);
    lane = _mm_xor_si128(_mm_clmulepi64_si128(lane, near, 0x10), _mm_srli_si128(lane, 8));
    lane = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(lane, low), last, 0x00), _mm_srli_si128(lane, 4));
    __m128i quotient = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(lane, low), polynomial, 0x10), low);
    lane = _mm_xor_si128(lane, _mm_clmulepi64_si128(quotient, polynomial, 0x00));
    return ~(uint32_t) _mm_cvtsi128_si32(_mm_srli_si128(lane, 4));
}

static bool can_fold(void) {
    return __builtin_cpu_supports("pclmul");
}

uint32_t weft__crc32(uint32_t sum, const void *data, size_t len) {
    size_t whole = len / LANE * LANE;
    if (whole && can_fold())
        sum = sum_lane(fold_lanes(sum, data, whole));
    else
        whole = 0;
    return whole == len ? sum : (uint32_t) crc32_z(sum, (const Bytef *) data + whole, len - whole);
}

#else

uint32_t weft__crc32(uint32_t sum, const void *data, size_t len) {
    return len ? (uint32_t) crc32_z(sum, data, len) : sum;
}

#endif
