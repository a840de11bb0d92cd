/* How old events are, without asking what day it is.
 *
 * What is removed for its age does not come back, and a wall clock can be wrong for a moment, for a year, and at any number
 * of starts. So age is counted in time during which a daemon had the journal open, by a clock that nobody can set. How much
 * that was is written into the journal now and then, and each such note is a point: everything up to it is at least as old.
 * Time between two daemons, or after the last note of one that was killed, does not count: then things are kept longer. It
 * does not read clocks itself. */
#ifndef WEFT_AGE_H
#define WEFT_AGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "weft/json.h"

#define WEFT_AGE_POINTS 256 /* they are kept at least a 128th of the longest age apart, so this is twice as far back */

typedef struct weft_age_point {
    int64_t observed_ms;
    uint64_t gseq;
} weft_age_point;

/* All zero: nothing was observed yet. */
typedef struct weft_age {
    int64_t before_ms; /* observed by earlier daemons */
    int64_t begun_ms;  /* by the steady clock */
    bool begun;
    weft_age_point points[WEFT_AGE_POINTS]; /* a ring */
    size_t first, count;
} weft_age;

/* This daemon begins to observe. */
void weft__age_begin(weft_age *age, int64_t steady_ms);
/* Time observed in all. */
int64_t weft__age_now(const weft_age *age, int64_t steady_ms);
/* The event with this gseq says that so much had been observed when it was written. keep_ms: the longest age that matters.
 */
void weft__age_note(weft_age *age, uint64_t gseq, int64_t observed_ms, int64_t keep_ms);
/* The points as an array of [observedMs, gseq], and back. */
int weft__age_write(const weft_age *age, const weft_alloc *alloc, weft_buf *out);
void weft__age_read(weft_age *age, const weft_json *points, int64_t keep_ms);
/* The highest gseq up to which everything is older than keep_ms; 0: nothing is. */
uint64_t weft__age_until(const weft_age *age, int64_t steady_ms, int64_t keep_ms);

#endif
