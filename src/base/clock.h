/* What time it is, for people and for measuring. */
#ifndef WEFT_CLOCK_H
#define WEFT_CLOCK_H

#include "stamp.h"

/* The wall clock as ISO 8601 with milliseconds, in UTC. Returns text. */
const char *weft__clock_text(char text[WEFT_STAMP]);
/* Monotonic nanoseconds. */
int64_t weft__clock_ns(void);

#endif
