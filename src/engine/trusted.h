/* How much of what the wall clock says is believed before anything is removed for its age.
 *
 * A clock that is ahead for a moment (a wrong battery-backed clock, a slip of the hand) would make everything look old, and
 * what is removed then does not come back when the clock does. So a jump ahead counts only when it has lasted a day; until
 * then time goes on from before it. Back is always believed: then less is removed. It does not read clocks itself and times
 * nothing but this. */
#ifndef WEFT_TRUSTED_H
#define WEFT_TRUSTED_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: nothing is believed yet. */
typedef struct weft_trusted {
    int64_t offset; /* of the believed wall clock to the steady one */
    int64_t doubted, since;
    bool doubting;
} weft_trusted;

/* last_ms: the wall clock when it was last known, 0: never. */
void weft__trusted_begin(weft_trusted *trusted, int64_t wall_ms, int64_t steady_ms, int64_t last_ms);
/* To be called now and then. True when it begins to doubt. */
bool weft__trusted_look(weft_trusted *trusted, int64_t wall_ms, int64_t steady_ms);
/* Never later than wall_ms. */
int64_t weft__trusted_now(const weft_trusted *trusted, int64_t wall_ms, int64_t steady_ms);

#endif
