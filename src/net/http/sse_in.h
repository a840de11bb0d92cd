/* Server-sent events coming in (WHATWG HTML section 9.2), a piece at a time: only their data is of interest. No I/O. */
#ifndef WEFT_SSE_IN_H
#define WEFT_SSE_IN_H

#include "buf.h"

/* Zero it first, but for alloc and max. */
typedef struct weft_sse_in {
    const weft_alloc *alloc;
    size_t max;    /* bytes of one event's data; what is over it is skipped */
    weft_buf line; /* the beginning of a line that has not come whole */
    weft_buf data; /* of the event that has not come whole */
    bool after_cr; /* a newline right behind belongs to it */
    bool too_large;
} weft_sse_in;

/* Take n bytes. on_event gets each event's data (WEFT_SLACK bytes behind may be written); false from it stops. 1 all were
 * taken, 0 it was stopped, -ENOMEM. */
int weft__sse_in(weft_sse_in *self, const char *bytes, size_t n, bool (*on_event)(char *data, size_t len, void *ctx),
                 void *ctx);
void weft__sse_in_done(weft_sse_in *self);

#endif
