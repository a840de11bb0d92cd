/* Which signatures of one key have been used. Bounded: when there is no more room, the oldest are forgotten, and what was
 * stamped like them or before is refused from then on. So forgetting never lets a signature count twice, whatever the clock
 * does. */
#ifndef WEFT_SEEN_H
#define WEFT_SEEN_H

#include "alloc.h"

/* The first half of a signature that was found right: nobody without the key can choose it. */
#define WEFT_SEEN_ID 16

typedef struct weft_seen_slot {
    int64_t stamp; /* 0: free */
    unsigned char id[WEFT_SEEN_ID];
} weft_seen_slot;

typedef struct weft_seen {
    weft_seen_slot *slots;
    size_t cap, count;
    size_t max;    /* at least 16 */
    int64_t floor; /* only stamps above this one are accepted */
} weft_seen;

/* Remember one; stamp is in seconds and above 0. 1 it is new; 0 it was used before; -ESTALE it is not above the floor;
 * -ENOMEM. Stamps below oldest are forgotten when room is needed. */
int weft__seen_add(weft_seen *seen, const weft_alloc *alloc, int64_t stamp, const unsigned char id[WEFT_SEEN_ID],
                   int64_t oldest);
void weft__seen_done(weft_seen *seen, const weft_alloc *alloc);

#endif
