/* A shared notification as the transports see it. */
#ifndef WEFT_SHARED_H
#define WEFT_SHARED_H

#include <weft/peer.h>

/* The whole frame for this peer's kind of framing; borrowed from shared. -ENOTSUP: frames of this peer cannot be shared, use
 * weft_shared_send(). */
int weft__shared_frame(weft_shared *shared, weft_peer *peer, weft_bytes *ret);

/* Any message in place of a notification, for protocols that are not JSON-RPC. */
int weft__shared_message(weft_service *service, weft_val message, weft_shared **ret);

#endif
