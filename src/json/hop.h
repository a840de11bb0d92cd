/* Going on by a length that was found, without waiting for it.
 *
 * A length comes out of a vector after some fifteen cycles, and where the next token begins depends on it: a scanner that
 * adds it up waits for each token in turn. Here the length chooses a jump, which the processor guesses (names repeat, and so
 * do their lengths), and the address behind it is known at once. */
#ifndef WEFT_HOP_H
#define WEFT_HOP_H

#include <stddef.h>

/* Otherwise the compiler sees that all cases add n, and does. */
#define WEFT_OPAQUE(p) __asm__("" : "+r"(p))

static inline const char *weft__hop(const char *p, size_t n) {
    switch (n) {
    case 0:
        WEFT_OPAQUE(p);
        return p;
    case 1:
        p += 1;
        WEFT_OPAQUE(p);
        return p;
    case 2:
        p += 2;
        WEFT_OPAQUE(p);
        return p;
    case 3:
        p += 3;
        WEFT_OPAQUE(p);
        return p;
    case 4:
        p += 4;
        WEFT_OPAQUE(p);
        return p;
    case 5:
        p += 5;
        WEFT_OPAQUE(p);
        return p;
    case 6:
        p += 6;
        WEFT_OPAQUE(p);
        return p;
    case 7:
        p += 7;
        WEFT_OPAQUE(p);
        return p;
    case 8:
        p += 8;
        WEFT_OPAQUE(p);
        return p;
    case 9:
        p += 9;
        WEFT_OPAQUE(p);
        return p;
    case 10:
        p += 10;
        WEFT_OPAQUE(p);
        return p;
    case 11:
        p += 11;
        WEFT_OPAQUE(p);
        return p;
    case 12:
        p += 12;
        WEFT_OPAQUE(p);
        return p;
    case 13:
        p += 13;
        WEFT_OPAQUE(p);
        return p;
    case 14:
        p += 14;
        WEFT_OPAQUE(p);
        return p;
    case 15:
        p += 15;
        WEFT_OPAQUE(p);
        return p;
    default:
        return p + n;
    }
}

#endif
