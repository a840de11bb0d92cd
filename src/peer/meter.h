/* Counting requests for <weft/stats.h>: how many, how long, how large, how they ended. Private to peer/.
 *
 * What it costs is the clock, so that is read twice in a turn: when its first request begins, and when all that came was
 * dealt with and the answers are ready to be sent. A server's turn is that of its loop; without one it is what a peer is
 * fed. A request that is answered in a later turn is measured for itself. Within a turn only sums are kept. */
#ifndef WEFT_METER_H
#define WEFT_METER_H

#include "histogram.h"
#include "request.h"

/* Methods that are called in one turn; with more, the clock is read once more. */
#define WEFT_METER_RUNS 16
/* A reason is a word of ours. What is longer, or is none, is counted without. */
#define WEFT_METER_REASON 40
#define WEFT_METER_IDLE INT64_MIN

struct weft_meter {
    int64_t began_us; /* of the turn: when its first request began. WEFT_METER_IDLE: none did */
    size_t run_count;
    struct weft_meter_run {
        weft_method_stats *stats;
        uint64_t count, bytes_in, bytes_out;
    } runs[WEFT_METER_RUNS];     /* answered in this turn with a result: added when it is over */
    struct weft_meter_run *run;  /* the last one; its stats are NULL when there is none */
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
void weft__meter_begin_turn(weft_peer *peer);
/* It was answered; before it is released. The service has a meter. */
void weft__meter_answered_odd(weft_req *req, const weft_outcome *outcome);
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
    if (meter->began_us == WEFT_METER_IDLE)
        weft__meter_begin_turn(req->peer);
    weft_method_stats *stats = weft__meter_of(req->service, req->row);
    if (req->flags & REQ_NOTIFICATION)
        stats->notifications++;
    else
        req->flags |= REQ_MEASURED;
    req->bytes_in = bytes;
}

/* It will be answered in a later turn. */
static inline void weft__meter_defer(weft_req *req) {
    if (req->flags & REQ_MEASURED)
        req->began_us = req->service->meter->began_us;
}

/* Most requests are answered at once with a result, and come behind another of their method. */
static inline void weft__meter_answered(weft_req *req, const weft_outcome *outcome) {
    struct weft_meter *meter = req->service->meter;
    struct weft_meter_run *run = meter->run;
    bool usual = (req->flags & (REQ_MEASURED | REQ_DEFERRED | REQ_EXCUSED)) == REQ_MEASURED && !outcome->code;
    if (!usual || req->row != meter->last_row || run->stats != meter->last) {
        weft__meter_answered_odd(req, outcome);
        return;
    }
    run->count++;
    run->bytes_in += req->bytes_in;
    run->bytes_out += req->bytes_out;
    meter->measures.request_bytes.of[weft__histogram_bucket(req->bytes_in)]++;
    meter->measures.answer_bytes.of[weft__histogram_bucket(req->bytes_out)]++;
}

/* What came for a peer was dealt with. */
static inline void weft__meter_fed(weft_peer *peer) {
    const weft_service *service = peer->service;
    if (service->meter && service->meter->began_us != WEFT_METER_IDLE && !service->on_turn)
        weft__meter_settle(peer);
}

#endif
