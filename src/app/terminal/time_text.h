/* Times and durations as people say them. On the wire a time is a number of milliseconds or an ISO 8601 text. */
#ifndef WEFT_TIME_H
#define WEFT_TIME_H

#include <weft/json.h>

/* The wall clock in milliseconds. */
int64_t weft__time_now(void);
/* A time of the wire in milliseconds; 0: there is none. */
int64_t weft__time_of(const weft_json *value);
int64_t weft__time_get(const weft_json *object, const char *name);
/* A time as people type it, in milliseconds. That long ago: "10m", "-10m", "10m ago", with ms, s, m or min, h, d, w. A time
 * of today, here: "11:00", "11:00:30". A day or a time of it, here: "2026-01-31", "2026-01-31 12:00",
 * "2026-01-31T12:00:30.5", and elsewhere with "Z" or "+02:00" behind it. "now", "today", "yesterday". -EINVAL: it is none of
 * these. */
int weft__time_typed(const char *text, int64_t now_ms, int64_t *ret);
/* weft__time_typed()'s forms, for a person who typed something else. */
#define WEFT_TIME_FORMS "a time (11:00, 2026-01-31, 2026-01-31T12:00), 10m for ten minutes ago"

#define WEFT_TIME_TEXT 32
/* "450 ms", "12 s", "3 min 4 s", "2 h 5 min", "3 d 4 h". Returns ret. */
const char *weft__duration(char ret[WEFT_TIME_TEXT], int64_t ms);
/* The time of day here, "12:34:56.789"; with the date when that is not today's. Returns ret. */
const char *weft__time_of_day(char ret[WEFT_TIME_TEXT], int64_t ms);
/* The date and the time here, "2026-01-31 12:34:56". Returns ret. */
const char *weft__time_and_date(char ret[WEFT_TIME_TEXT], int64_t ms);
/* The same of a time of the wire; otherwise, where text is none, or NULL. */
const char *weft__time_shown(char ret[WEFT_TIME_TEXT], const char *text, const char *otherwise);

#endif
