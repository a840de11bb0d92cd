/* Counting requests for <weft/stats.h>: how many, how long, how large, how they ended. Private to peer/.
 *
 * The clock is what it costs, so it is read twice for all that one read of a connection brings: when the first request of it
 * begins, and when all of it has been dealt with and its answers are ready to be sent. A request that is answered later is
 * measured when it is. */
#ifndef WEFT_METER_H
#define WEFT_METER_H

#include "histogram.h"
#include "request.h"

/* Methods that are called in one read of a connection; with more, the clock is read once more. */
#define WEFT_METER_RUNS 16
/* A reason is a word of ours. What is longer, or is none, is counted without. */
#define WEFT_METER_REASON 40
#define WEFT_METER_IDLE INT64_MIN

struct weft_meter {
    int64_t began_us; /* of the turn: when the first request of what is being read began. WEFT_METER_IDLE: none did */
    size_t run_count;
    struct weft_meter_run {
        weft_method_stats *stats;
        uint64_t count;
    } runs[WEFT_METER_RUNS];     /* answered in this turn: their time is known when it is over */
    const weft_method *last_row; /* found last */
    weft_method_stats *last;
    weft_measures measures;
    weft_method_stats unknown;
    struct weft_meter_slot {
        const weft_method *row; /* NULL: free */
        weft_method_stats *stats;
    } * slots;                       /* by row, open addressing */
    size_t cap;                      /* a power of two, or 0 */
    const weft_method_stats **stats; /* measures.methods: unknown, then those of rows, owned; cap / 2 + 1 have room */
    weft_error_stats errors[WEFT_ERROR_STATS];
    char reasons[WEFT_ERROR_STATS][WEFT_METER_REASON + 1];
};

int weft__meter_new(const weft_alloc *alloc, struct weft_meter **ret);
struct weft_meter *weft__meter_free(struct weft_meter *meter, const weft_alloc *alloc);
/* A row is not registered any more: what was counted for it is counted as unknown. */
void weft__meter_forget(weft_service *service, const weft_method *row);
/* Never NULL: without memory for a row it is the one of unknown names. */
weft_method_stats *weft__meter_find(weft_service *service, const weft_method *row);
/* It was answered; before it is released. The service has a meter. */
void weft__meter_answered(weft_req *req, int code, const weft_val *data);
/* Its connection has gone. */
void weft__meter_lost(weft_req *req);
/* The turn is over. */
void weft__meter_settle(weft_peer *peer);

static inline weft_method_stats *weft__meter_of(weft_service *service, const weft_method *row) {
    struct weft_meter *meter = service->meter;
    return row == meter->last_row ? meter->last : weft__meter_find(service, row);
}

/* A request or a notification begins. */
static inline void weft__meter_begin(weft_req *req, size_t bytes) {
    struct weft_meter *meter = req->service->meter;
    weft_method_stats *stats = weft__meter_of(req->service, req->row);
    if (req->flags & REQ_NOTIFICATION) {
        stats->notifications++;
        return;
    }
    if (meter->began_us == WEFT_METER_IDLE)
        meter->began_us = weft__peer_now_us(req->peer);
    req->flags |= REQ_MEASURED;
    req->began_us = meter->began_us;
    req->bytes_in = bytes;
    req->gone = req->excuse = 0;
}

static inline void weft__meter_turn_over(weft_peer *peer) {
    if (peer->service->meter && peer->service->meter->began_us != WEFT_METER_IDLE)
        weft__meter_settle(peer);
}

#endif
