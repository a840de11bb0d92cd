/* Exponential backoff with jitter, as a pure function of the failures so far and a random number. */
#include "backoff.h"

/* A restarting server is back within a tenth of a second more often than not; one that is down for an hour should not
 * cost more than a few attempts a minute. */
#define FIRST_MS 100
#define LONGEST_MS 16000

/* The shift of FIRST_MS at which LONGEST_MS is passed. Counting stops there, so that the shift never overflows. */
#define MOST_FAILURES 8

int64_t weft__backoff_next(weft_backoff *backoff, uint32_t random) {
    int64_t base = (int64_t) FIRST_MS << backoff->failures;
    if (base > LONGEST_MS)
        base = LONGEST_MS;
    if (backoff->failures < MOST_FAILURES)
        backoff->failures++;
    /* From half to one and a half of it: clients that lost one server together do not come back together. */
    return base / 2 + (int64_t) (((uint64_t) base * random) >> 32);
}

void weft__backoff_reset(weft_backoff *backoff) {
    backoff->failures = 0;
}
