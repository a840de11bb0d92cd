/* Plain bytes of a string, eight at a time in an ordinary register. Same functions as plain_sse2.h. */
#ifndef WEFT_PLAIN_PORTABLE_H
#define WEFT_PLAIN_PORTABLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WEFT_STEP 8 /* bytes that weft__plain() looks at */

#define WEFT_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The top bit of each byte that is not plain: a quote, a backslash, a control character or part of a UTF-8 sequence. A
 * borrow may also mark bytes above a true mark (towards the end of the text), so only the first mark and "none" mean
 * something. */
static inline uint64_t weft__special8(const char *p) {
    uint64_t bytes;
    memcpy(&bytes, p, sizeof bytes);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    uint64_t quotes = (bytes ^ WEFT_EACH('"')) - WEFT_EACH(1);
    uint64_t backslashes = (bytes ^ WEFT_EACH('\\')) - WEFT_EACH(1);
    uint64_t controls = bytes - WEFT_EACH(' ');
    return (quotes | backslashes | controls | bytes) & WEFT_EACH(0x80);
}

/* How many of the WEFT_STEP bytes at p come before the first that is not plain. */
static inline size_t weft__plain(const char *p) {
    uint64_t specials = weft__special8(p);
    return specials ? (size_t) __builtin_ctzll(specials) / 8 : WEFT_STEP;
}

/* p is inside a string. How many bytes are left of it if it ends within WEFT_STEP bytes and all of them are plain, otherwise
 * WEFT_STEP. */
static inline size_t weft__plain_to_quote(const char *p) {
    size_t n = weft__plain(p);
    return n < WEFT_STEP && p[n] == '"' ? n : WEFT_STEP;
}

/* How many digits there are at p; WEFT_STEP: that many or more. */
static inline size_t weft__digits(const char *p) {
    size_t n = 0;
    while (n < WEFT_STEP && (unsigned char) (p[n] - '0') < 10)
        n++;
    return n;
}

/* Are the next 64 bytes all plain? */
static inline bool weft__plain64(const char *p) {
    uint64_t specials = 0;
    for (int i = 0; i < 64; i += 8)
        specials |= weft__special8(p + i);
    return specials == 0;
}

#endif
