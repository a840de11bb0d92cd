/* What stands between a request and its handler: rate, scope, the user's gates, and an answer that is there already. Private
 * to peer/. */
#ifndef WEFT_GATE_H
#define WEFT_GATE_H

#include "request.h"

/* Is there nothing to ask? Then the request is its handler's. */
static inline bool weft__gate_open(const weft_peer *peer, const weft_method *row) {
    return row && !row->scope && !peer->locked && !peer->bucket && !((row->flags | WEFT_GATE_ALL) & peer->service->guarded);
}
/* One place decides whether a request goes on: rate, the gates, scope, and whether there is such a method. false: it has
 * been answered, or a gate has taken it over. */
bool weft__gate_admit(weft_req *req, const weft_msg *msg, const weft_json *params);
/* The rest of the gates, for a request that one of them had taken over. */
bool weft__gate_resume(weft_req *req, const weft_json *params);
/* Tell the gates how it ended; once. The request has REQ_GATED and a peer. */
void weft__gate_ended(weft_req *req, int code, int lost);
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
