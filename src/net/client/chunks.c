/* Joining the pieces of a value. They come in order on one connection, so anything else is an error of the other side. */
#include "chunks.h"

#include <errno.h>

#include "hash.h"

void weft__chunks_drop(weft_chunks *chunks, const weft_alloc *alloc) {
    weft__buf_done(&chunks->text, alloc);
    *chunks = (weft_chunks){0};
}

/* The place of a piece; its text is not looked at. */
static int read_place(const weft_json *params, weft_chunks *ret) {
    weft_json transition = weft_get(params, "transitionId");
    *ret =
        (weft_chunks){.transition = weft__hash64_more(WEFT_HASH64, transition.text ? transition.text : "", transition.len),
                      .seq = weft_get_int(params, "seq", -1),
                      .part = weft_get_int(params, "part", 0),
                      .total = weft_get_int(params, "total", 0)};
    return ret->seq < 0 || ret->part < 1 || ret->part > ret->total ? -EPROTO : 0;
}

static bool is_next_piece(const weft_chunks *chunks, const weft_chunks *place) {
    return place->part == chunks->part + 1 && place->transition == chunks->transition && place->seq == chunks->seq &&
           place->total == chunks->total;
}

int weft__chunks_add(weft_chunks *chunks, const weft_json *params, size_t max, const weft_alloc *alloc) {
    weft_json piece = weft_get(params, "chunk");
    weft_chunks place;
    weft_bytes text;
    int r = read_place(params, &place);
    if (r < 0)
        return r;
    if (place.part == 1)
        weft__chunks_drop(chunks, alloc);
    else if (!is_next_piece(chunks, &place))
        return -EPROTO;
    r = weft_bytes_of(&piece, &text);
    if (r < 0)
        return r == -EINVAL ? -EPROTO : r;
    if (text.len > max - weft__buf_len(&chunks->text))
        return -EMSGSIZE;
    r = weft__buf_put(&chunks->text, alloc, text.data, text.len);
    if (r < 0)
        return r;
    place.text = chunks->text;
    *chunks = place;
    return chunks->part == chunks->total;
}
