/* Sums of times that cannot overflow: a time-out of 2^63 - 1 ms is a valid number and means "practically never". */
#ifndef WEFT_SUM_H
#define WEFT_SUM_H

#include <stdint.h>

/* That much later; a time-out so long that it means for ever stays one. */
static inline int64_t weft__after(int64_t now, int64_t ms) {
    return ms < INT64_MAX - now ? now + ms : INT64_MAX;
}

/* a + b, or the nearest number there is. */
static inline int64_t weft__add_ms(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (b > 0 ? INT64_MAX : INT64_MIN) : sum;
}

/* value, or the limit it lies beyond. */
static inline int64_t weft__clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

#endif
