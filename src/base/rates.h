/* So many a minute for each of many: buckets by name that fill steadily and are emptied by what is taken.
 *
 * Bounded: a bucket that is full again is forgotten when its row is looked at, and when there are too many of them all
 * further names share one. */
#ifndef WEFT_RATES_H
#define WEFT_RATES_H

#include "alloc.h"

typedef struct weft_rates weft_rates;

int weft__rates_new(const weft_alloc *alloc, weft_rates **ret);
weft_rates *weft__rates_free(weft_rates *rates);
/* Take one. Who has taken none for a while has per_minute of them. 0 it is yours; otherwise how many milliseconds to wait.
 * One name has one rate. Without memory nothing is given: a second. */
int64_t weft__rates_take(weft_rates *rates, const char *name, int64_t per_minute, int64_t now_ms);
size_t weft__rates_count(const weft_rates *rates);

#endif
