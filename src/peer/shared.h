/* What the library's own parts share beyond weft_shared_new(). */
#ifndef WEFT_SHARED_H
#define WEFT_SHARED_H

#include <weft/peer.h>

/* Any message in place of a notification, for protocols that are not JSON-RPC. */
int weft__shared_message(weft_service *service, weft_val message, weft_shared **ret);

#endif
