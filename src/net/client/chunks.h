/* A value that comes in pieces: the notifications tinyvex/transitionChunk of one subscription, joined again. No I/O. */
#ifndef WEFT_CHUNKS_H
#define WEFT_CHUNKS_H

#include "buf.h"

#include <weft/json.h>

/* Zero it first. */
typedef struct weft_chunks {
    weft_buf text;
    uint64_t transition; /* a hash of its id */
    int64_t seq, part, total;
} weft_chunks;

/* Add the next piece. 1 the value is whole: weft_chunks.text; 0 more is to come. The first piece of another value takes the
 * place of what there is. -EPROTO: it is not the next piece; -EMSGSIZE: more than max bytes; -ENOMEM. After 1 and <0 call
 * weft__chunks_drop(). */
int weft__chunks_add(weft_chunks *chunks, const weft_json *params, size_t max, const weft_alloc *alloc);
void weft__chunks_drop(weft_chunks *chunks, const weft_alloc *alloc);

#endif
