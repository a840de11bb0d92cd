/* A wall clock as the wire and people's files have it: ISO 8601 with milliseconds, in UTC. */
#ifndef WEFT_STAMP_H
#define WEFT_STAMP_H

#include <stdint.h>

/* "2026-01-31T12:34:56.789Z" and its NUL, and room for years that nobody will see. */
#define WEFT_STAMP 32

/* Of milliseconds since 1970. Returns text. */
const char *weft__stamp(int64_t ms, char text[WEFT_STAMP]);

#endif
