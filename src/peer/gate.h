/* What stands between a request and its handler: scope, rate, and an answer that is there already. Private to peer/. */
#ifndef WEFT_GATE_H
#define WEFT_GATE_H

#include "request.h"

/* Must it be asked at all? */
static inline bool weft__gate_closed(const weft_peer *peer, const weft_method *row) {
    return peer->locked || row->scope || peer->service->authorize;
}
/* 0 pass, or <0 after the refusal is in *ret (a static text each). */
int weft__gate_ask(weft_peer *peer, const weft_method *row, weft_outcome *ret);
/* 0 pass, else milliseconds to wait. */
int64_t weft__rate_take(weft_peer *peer);
int weft__rate_join(weft_peer *peer);
void weft__rate_leave(weft_peer *peer);
void weft__rate_done(weft_service *service);

/* 1 the request was answered or waits for another's answer; 0 go on, and its answer will be kept if it has a key. */
int weft__idempotent_begin(weft_req *req);
void weft__idempotent_store(weft_req *req, weft_bytes outcome);
void weft__idempotent_forget(weft_req *req);
void weft__idempotent_done(weft_service *service);

#endif
