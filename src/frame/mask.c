/* Masks of WebSocket frames: applying one sixteen bytes at a time, and a sequence of them that cannot be foreseen. */
#include "mask.h"

#include <string.h>

uint32_t weft__mask_turn(uint32_t mask, size_t n) {
    char twice[8];
    memcpy(twice, &mask, 4);
    memcpy(twice + 4, &mask, 4);
    memcpy(&mask, twice + (n & 3), 4);
    return mask;
}

#define HIGH_BITS 0x8080808080808080u

#if defined(__SSE2__) && !defined(WEFT_PORTABLE)
#include <emmintrin.h>

/* Both ends of a short text, which may overlap: both are read before either is written. tail is the mask as it meets the
 * last bytes. */
static bool mask_short(char *data, size_t n, uint32_t mask, uint32_t tail) {
    if (n >= 8) {
        uint64_t a, b;
        memcpy(&a, data, 8);
        memcpy(&b, data + n - 8, 8);
        a ^= mask | (uint64_t) mask << 32;
        b ^= tail | (uint64_t) tail << 32;
        memcpy(data, &a, 8);
        memcpy(data + n - 8, &b, 8);
        return (a | b) & HIGH_BITS;
    }
    if (n >= 4) {
        uint32_t a, b;
        memcpy(&a, data, 4);
        memcpy(&b, data + n - 4, 4);
        a ^= mask;
        b ^= tail;
        memcpy(data, &a, 4);
        memcpy(data + n - 4, &b, 4);
        return (a | b) & (uint32_t) HIGH_BITS;
    }
    unsigned seen = 0;
    for (size_t i = 0; i < n; i++, mask >>= 8)
        seen |= (unsigned) (data[i] = (char) (data[i] ^ (char) mask));
    return seen & 0x80;
}

static __m128i mask_sixteen(char *p, __m128i mask) {
    __m128i x = _mm_xor_si128(_mm_loadu_si128((const __m128i *) (const void *) p), mask);
    _mm_storeu_si128((__m128i *) (void *) p, x);
    return x;
}

bool weft__mask(char *data, size_t n, uint32_t mask) {
    /* Where SSE2 is, the first byte in memory is the lowest: turning the mask is a rotation. */
    unsigned turn = 8 * (n & 3);
    uint32_t tail = mask >> turn | mask << (-turn & 31);
    if (n < 16)
        return mask_short(data, n, mask, tail);

    /* The last sixteen bytes overlap the ones before, so they are read first and written last. */
    __m128i *last = (__m128i *) (void *) (data + n - 16);
    __m128i seen = _mm_xor_si128(_mm_loadu_si128(last), _mm_set1_epi32((int) tail)), end = seen;
    __m128i wide = _mm_set1_epi32((int) mask);
    char *p = data, *stop = data + n - 16;
    for (; stop - p >= 64; p += 64) {
        __m128i a = _mm_or_si128(mask_sixteen(p, wide), mask_sixteen(p + 16, wide));
        __m128i b = _mm_or_si128(mask_sixteen(p + 32, wide), mask_sixteen(p + 48, wide));
        seen = _mm_or_si128(seen, _mm_or_si128(a, b));
    }
    for (; p < stop; p += 16)
        seen = _mm_or_si128(seen, mask_sixteen(p, wide));
    _mm_storeu_si128(last, end);
    return _mm_movemask_epi8(seen) != 0;
}
#else
bool weft__mask(char *data, size_t n, uint32_t mask) {
    uint64_t wide = mask | (uint64_t) mask << 32, seen = 0, eight;
    unsigned char bytes[4], rest = 0;
    size_t i = 0;

    for (; n - i >= 8; i += 8) {
        memcpy(&eight, data + i, 8);
        eight ^= wide;
        memcpy(data + i, &eight, 8);
        seen |= eight;
    }
    memcpy(bytes, &mask, 4);
    for (; i < n; i++) {
        unsigned char byte = (unsigned char) ((unsigned char) data[i] ^ bytes[i & 3]);
        data[i] = (char) byte;
        rest |= byte;
    }
    return (seen & HIGH_BITS) || rest & 0x80;
}
#endif

static uint64_t rotate_left(uint64_t x, unsigned by) {
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] = rotate_left(v[2], 32);
}

/* One word of the text that is hashed. */
static void sip_word(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

/* SipHash-2-4 of a counter under a secret key. A mask must not let a server that has seen a thousand of them, and that
 * chooses what the client sends, work out the next one and so write bytes of its own choice through a proxy (RFC 6455
 * section 10.3). The usual quick generators fail that: their state follows from two or three outputs. SipHash was made to be
 * unpredictable to exactly such an observer, and at one call for each frame its 10 ns do not show. */
uint32_t weft__mask_next(weft_masks *masks) {
    uint64_t key[2] = {masks->key, ~masks->key};
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u,
                     key[1] ^ 0x7465646279746573u};
    sip_word(v, masks->count++);
    sip_word(v, (uint64_t) sizeof masks->count << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return (uint32_t) (v[0] ^ v[1] ^ v[2] ^ v[3]);
}
