/* Reading histograms. */
#include "histogram.h"

uint64_t weft_histogram_limit(size_t bucket) {
    if (bucket >= WEFT_HISTOGRAM_BUCKETS - 1)
        return UINT64_MAX;
    if (bucket < WEFT_HISTOGRAM_PARTS)
        return bucket + 1;
    size_t doubling = bucket / WEFT_HISTOGRAM_PARTS - 1; /* 0: 8 to 15 */
    return (uint64_t) (WEFT_HISTOGRAM_PARTS + bucket % WEFT_HISTOGRAM_PARTS + 1) << doubling;
}

uint64_t weft_histogram_below(const weft_histogram *histogram, uint64_t limit) {
    uint64_t count = 0;
    for (size_t i = 0; i < WEFT_HISTOGRAM_BUCKETS && weft_histogram_limit(i) <= limit; i++)
        count += histogram->of[i];
    return count;
}

/* The largest value of the bucket in which it lies: never less than the truth. */
uint64_t weft_histogram_quantile(const weft_histogram *histogram, double part) {
    double wanted = part * (double) histogram->count;
    uint64_t seen = 0;
    for (size_t i = 0; i < WEFT_HISTOGRAM_BUCKETS && histogram->count; i++) {
        seen += histogram->of[i];
        if (histogram->of[i] && (double) seen >= wanted)
            return i == WEFT_HISTOGRAM_BUCKETS - 1 ? (uint64_t) 1 << 32 : weft_histogram_limit(i) - 1;
    }
    return 0;
}

void weft__histogram_join(weft_histogram *histogram, const weft_histogram *other) {
    for (size_t i = 0; i < WEFT_HISTOGRAM_BUCKETS; i++)
        histogram->of[i] += other->of[i];
    histogram->count += other->count;
    histogram->sum += other->sum;
}
