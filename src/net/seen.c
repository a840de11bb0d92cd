/* A table with open addressing. It is at most half full; to make room it is written anew, larger or without the oldest. */
#include "seen.h"

#include <errno.h>
#include <string.h>

#define FIRST_CAP 64

static size_t home_slot(const weft_seen *seen, const unsigned char *id) {
    uint64_t word;
    memcpy(&word, id, sizeof word);
    return (size_t) word & (seen->cap - 1);
}

/* Its slot, or the free one where it would be. */
static weft_seen_slot *find_seen(const weft_seen *seen, const unsigned char *id) {
    size_t at = home_slot(seen, id);
    while (seen->slots[at].stamp && memcmp(seen->slots[at].id, id, WEFT_SEEN_ID) != 0)
        at = (at + 1) & (seen->cap - 1);
    return &seen->slots[at];
}

static void put_seen(weft_seen *seen, int64_t stamp, const unsigned char *id) {
    weft_seen_slot *slot = find_seen(seen, id);
    slot->stamp = stamp;
    memcpy(slot->id, id, WEFT_SEEN_ID);
    seen->count++;
}

/* Write it anew with so many slots. Stamps up to forget are left out, and refused from now on. */
static int rewrite_seen(weft_seen *seen, const weft_alloc *alloc, size_t cap, int64_t forget) {
    weft_seen next = {.cap = cap, .max = seen->max, .floor = seen->floor};
    next.slots = weft__zalloc(alloc, cap * sizeof *next.slots);
    if (!next.slots)
        return -ENOMEM;
    for (size_t i = 0; i < seen->cap; i++) {
        const weft_seen_slot *slot = &seen->slots[i];
        if (slot->stamp > forget)
            put_seen(&next, slot->stamp, slot->id);
        else if (slot->stamp > next.floor)
            next.floor = slot->stamp;
    }
    weft__free(alloc, seen->slots);
    *seen = next;
    return 0;
}

static size_t count_up_to(const weft_seen *seen, int64_t stamp) {
    size_t n = 0;
    for (size_t i = 0; i < seen->cap; i++)
        n += seen->slots[i].stamp && seen->slots[i].stamp <= stamp;
    return n;
}

static int64_t newest_stamp(const weft_seen *seen) {
    int64_t newest = 0;
    for (size_t i = 0; i < seen->cap; i++)
        newest = seen->slots[i].stamp > newest ? seen->slots[i].stamp : newest;
    return newest;
}

/* The first stamp with which so many go: halving what lies between, because stamps are few and signatures many. */
static int64_t stamp_to_forget(const weft_seen *seen, int64_t oldest, size_t many) {
    int64_t low = oldest, high = newest_stamp(seen);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (count_up_to(seen, middle) >= many)
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

static int make_room_to_see(weft_seen *seen, const weft_alloc *alloc, int64_t oldest) {
    if (!seen->cap)
        return rewrite_seen(seen, alloc, FIRST_CAP, 0);
    size_t stale = count_up_to(seen, oldest - 1), left = seen->count - stale;
    bool grows = left > seen->cap / 4 && seen->cap < 2 * seen->max;
    if (left >= seen->max - seen->max / 4 && !grows) /* a quarter at a time: writing it anew for each would cost too much */
        return rewrite_seen(seen, alloc, seen->cap, stamp_to_forget(seen, oldest, stale + seen->max / 4));
    return rewrite_seen(seen, alloc, grows ? seen->cap * 2 : seen->cap, oldest - 1);
}

int weft__seen_add(weft_seen *seen, const weft_alloc *alloc, int64_t stamp, const unsigned char id[WEFT_SEEN_ID],
                   int64_t oldest) {
    if (stamp <= seen->floor)
        return -ESTALE;
    if (seen->cap && find_seen(seen, id)->stamp)
        return 0;
    if (seen->count >= seen->cap / 2 || seen->count >= seen->max) {
        int r = make_room_to_see(seen, alloc, oldest);
        if (r < 0)
            return r;
    }
    if (stamp <= seen->floor) /* it is among those that had to be forgotten */
        return -ESTALE;
    put_seen(seen, stamp, id);
    return 1;
}

void weft__seen_done(weft_seen *seen, const weft_alloc *alloc) {
    seen->slots = weft__free(alloc, seen->slots);
    seen->cap = seen->count = 0;
}
