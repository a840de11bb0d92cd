/* Server-sent events coming in (WHATWG HTML section 9.2), a piece at a time: their data, and for who wants them their names,
 * the last id and the time to wait before listening again. No I/O. */
#ifndef WEFT_SSE_IN_H
#define WEFT_SSE_IN_H

#include "buf.h"

#define WEFT_SSE_NAME 32 /* bytes of an event's name; a longer one is none that we know */
#define WEFT_SSE_ID 1024 /* of an id; a longer one is not kept */

/* Zero it first, but for alloc, max and named. */
typedef struct weft_sse_in {
    const weft_alloc *alloc;
    size_t max;                    /* bytes of one event's data; what is over it is skipped */
    weft_buf line;                 /* the beginning of a line that has not come whole */
    weft_buf data;                 /* of the event that has not come whole */
    bool after_cr;                 /* a newline right behind belongs to it */
    bool too_large;                /* the event that is coming */
    bool skipping;                 /* the line that is coming, up to its end */
    bool named;                    /* keep what follows too */
    char event[WEFT_SSE_NAME + 1]; /* name of the event that is coming, or is being told; "": it has none */
    char id[WEFT_SSE_ID + 1];      /* the last one, also of an event without data; "": none */
    int64_t retry_ms;              /* as the server said last; 0: it did not */
} weft_sse_in;

/* Take n bytes. on_event gets each event's data (WEFT_SLACK bytes behind may be written); false from it stops. 1 all were
 * taken, 0 it was stopped, -ENOMEM. */
int weft__sse_in(weft_sse_in *self, const char *bytes, size_t n, bool (*on_event)(char *data, size_t len, void *ctx),
                 void *ctx);
/* Another stream follows: forget what has begun, but not the last id and the time to wait. */
void weft__sse_in_restart(weft_sse_in *self);
void weft__sse_in_done(weft_sse_in *self);

#endif
