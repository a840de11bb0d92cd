/* How long a client waits before it tries again. No clock and no randomness of its own: both are the caller's. */
#ifndef WEFT_BACKOFF_H
#define WEFT_BACKOFF_H

#include <stdint.h>

/* Zero it first. */
typedef struct weft_backoff {
    unsigned failures; /* in a row */
} weft_backoff;

/* Milliseconds until the next attempt; random is any number, evenly spread. */
int64_t weft__backoff_next(weft_backoff *backoff, uint32_t random);
/* A connection lived: the next failure is the first again. */
void weft__backoff_reset(weft_backoff *backoff);

#endif
