/* What time it is, for people and for measuring. */
#ifndef WEFT_CLOCK_H
#define WEFT_CLOCK_H

#include <stdint.h>

/* "2026-01-31T12:34:56.789Z" and its NUL. */
#define WEFT_CLOCK_TEXT 25

/* The wall clock as ISO 8601 with milliseconds, in UTC. Returns text. */
const char *weft__clock_text(char text[WEFT_CLOCK_TEXT]);
/* The same for milliseconds since 1970. */
const char *weft__clock_text_at(int64_t ms, char text[WEFT_CLOCK_TEXT]);
/* Monotonic nanoseconds. */
int64_t weft__clock_ns(void);

#endif
