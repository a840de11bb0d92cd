/* Times to come. */
#ifndef WEFT_AFTER_H
#define WEFT_AFTER_H

#include <weft/base.h>

/* That much later; a time-out so long that it means for ever stays one. */
static inline int64_t weft__after(int64_t now, int64_t ms) {
    return ms < INT64_MAX - now ? now + ms : INT64_MAX;
}

#endif
