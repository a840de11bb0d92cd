/* Latencies counted in buckets: each power of two is cut into 32, so a percentile is right within 3 %, whatever the scale.
 */
#ifndef WEFT_LATENCY_H
#define WEFT_LATENCY_H

#include <stdint.h>

#include "screen.h"

#define WEFT_LATENCY_STEPS 32
#define WEFT_LATENCY_BUCKETS (60 * WEFT_LATENCY_STEPS)

typedef struct weft_latency {
    uint64_t counts[WEFT_LATENCY_BUCKETS];
    uint64_t count;
    uint64_t most; /* nanoseconds */
} weft_latency;

void weft__latency_add(weft_latency *all, uint64_t ns);
/* The latency in nanoseconds that this share (0 to 1) of them did not exceed; 0 when there are none. */
double weft__latency_at(const weft_latency *all, double share);
/* Rows of bars. */
void weft__latency_draw(const weft_latency *all, const weft_screen *screen);
/* A time for people: "12.3 us", "4.56 ms", "7.89 s". */
void weft__latency_text(double ns, char ret[32]);

#endif
