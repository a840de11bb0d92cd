/* Masks of WebSocket frames (RFC 6455 section 5.3): applying one, and where a client's come from.
 *
 * A mask is four bytes kept in a uint32_t in the order in which they lie in the frame, whatever the machine's byte order. */
#ifndef WEFT_MASK_H
#define WEFT_MASK_H

#include <weft/base.h>

/* XOR n bytes with the mask, in place; the mask's first byte meets the first byte. Exactly these n bytes are touched.
 * Is there a byte over 127 in the result? If not it is ASCII, and nobody needs to look again. */
bool weft__mask(char *data, size_t n, uint32_t mask);
/* The mask as it continues after n bytes. */
uint32_t weft__mask_turn(uint32_t mask, size_t n);

/* A sequence of masks. */
typedef struct weft_masks {
    uint64_t key;
    uint64_t count;
} weft_masks;
uint32_t weft__mask_next(weft_masks *masks);

#endif
