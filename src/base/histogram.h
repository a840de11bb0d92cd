/* Counting values into the histogram of <weft/stats.h>. It has no memory of its own and cannot fail. */
#ifndef WEFT_HISTOGRAM_H
#define WEFT_HISTOGRAM_H

#include <weft/stats.h>

/* Each doubling has so many buckets. */
#define WEFT_HISTOGRAM_PARTS 8

static inline size_t weft__histogram_bucket(uint64_t value) {
    if (value < WEFT_HISTOGRAM_PARTS)
        return (size_t) value;
    if (value >> 32)
        return WEFT_HISTOGRAM_BUCKETS - 1;
    unsigned doubling = 31u - (unsigned) __builtin_clz((unsigned) value); /* 3 to 31 */
    return (doubling - 3) * WEFT_HISTOGRAM_PARTS + (size_t) (value >> (doubling - 3));
}

static inline void weft__histogram_add_many(weft_histogram *histogram, uint64_t value, uint64_t times) {
    histogram->of[weft__histogram_bucket(value)] += times;
    histogram->count += times;
    histogram->sum += value * times;
}

static inline void weft__histogram_add(weft_histogram *histogram, uint64_t value) {
    weft__histogram_add_many(histogram, value, 1);
}

/* What one counted is counted by the other as well. */
void weft__histogram_join(weft_histogram *histogram, const weft_histogram *other);

#endif
