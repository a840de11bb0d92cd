/* A latency histogram with a bounded relative error, so that p99.9 of millions of requests costs one increment each.
 *
 * Buckets are log-linear: every power of two is cut into 2^HIST_BITS equal parts, which keeps every reported value
 * within 1/64 of the true one. It does not keep single values and does not know what a unit is; we feed nanoseconds. */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

#include <stdint.h>

#define HIST_BITS 6
#define HIST_BUCKETS ((64 - HIST_BITS) << HIST_BITS)

struct hist {
    uint64_t total;
    uint64_t max;
    uint64_t count[HIST_BUCKETS];
};

void hist_clear(struct hist *h);
void hist_add(struct hist *h, uint64_t value);

/* The value below which `share` (0..1) of everything added lies; 0 when nothing was added. */
uint64_t hist_quantile(const struct hist *h, double share);

#endif
