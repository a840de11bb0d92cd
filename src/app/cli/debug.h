/* WEFT_DEBUG=1 or AIWG_IPC_DEBUG=1: every message on standard error, one JSON object per line, without what is secret. */
#ifndef WEFT_DEBUG_H
#define WEFT_DEBUG_H

#include "app.h"

bool weft__debug_wanted(void);
/* For weft_service_opts.on_message. */
void weft__debug_message(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text);
/* A service without methods that only logs; *ret is NULL when nobody wants a log. Owned: weft_service_unref(). */
int weft__debug_service(weft_service **ret);

#endif
