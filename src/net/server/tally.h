/* How many connections somebody has: by uid, by address. Entries exist only while they count something. */
#ifndef WEFT_TALLY_H
#define WEFT_TALLY_H

#include "alloc.h"
#include "list.h"

#define WEFT_TALLY_BUCKETS 64

typedef struct weft_tallied {
    weft_link link;
    size_t n;
    char key[]; /* NUL-terminated */
} weft_tallied;

/* Zero it, then init. */
typedef struct weft_tally {
    const weft_alloc *alloc;
    weft_link buckets[WEFT_TALLY_BUCKETS];
} weft_tally;

void weft__tally_init(weft_tally *tally, const weft_alloc *alloc);
/* One more of key, unless it has max already. -EUSERS: it has; -ENOMEM. */
int weft__tally_add(weft_tally *tally, const char *key, size_t max, weft_tallied **ret);
/* One less; NULL does nothing. */
void weft__tally_drop(weft_tally *tally, weft_tallied *count);

#endif
