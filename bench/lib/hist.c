/* The log-linear histogram of hist.h. It must stay cheap: hist_add() runs once per answer in the load generator. */
#include "hist.h"

#include <string.h>

static unsigned bucket_of(uint64_t value) {
    unsigned shift;

    if (value < (1u << HIST_BITS))
        return (unsigned) value;
    shift = 63u - (unsigned) __builtin_clzll(value) - HIST_BITS;
    return ((shift + 1) << HIST_BITS) + (unsigned) (value >> shift) - (1u << HIST_BITS);
}

/* The middle of a bucket, so that the error is as often too high as too low. */
static uint64_t value_of(unsigned bucket) {
    unsigned shift;
    uint64_t low;

    if (bucket < (1u << HIST_BITS))
        return bucket;
    shift = (bucket >> HIST_BITS) - 1;
    low = (uint64_t) ((1u << HIST_BITS) + (bucket & ((1u << HIST_BITS) - 1))) << shift;
    return low + ((UINT64_C(1) << shift) >> 1);
}

void hist_clear(struct hist *h) {
    memset(h, 0, sizeof *h);
}

void hist_add(struct hist *h, uint64_t value) {
    h->count[bucket_of(value)]++;
    h->total++;
    if (value > h->max)
        h->max = value;
}

uint64_t hist_quantile(const struct hist *h, double share) {
    uint64_t rank = (uint64_t) (share * (double) h->total), seen = 0;

    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        seen += h->count[i];
        if (seen > rank)
            return value_of(i) < h->max ? value_of(i) : h->max;
    }
    return h->max;
}
