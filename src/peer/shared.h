/* A shared notification as the transports see it. */
#ifndef WEFT_SHARED_H
#define WEFT_SHARED_H

#include <weft/peer.h>

/* The whole frame for this peer's kind of framing; borrowed from shared. -ENOTSUP: frames of this peer cannot be shared, use
 * weft_shared_send(). */
int weft__shared_frame(weft_shared *shared, weft_peer *peer, weft_bytes *ret);

#endif
