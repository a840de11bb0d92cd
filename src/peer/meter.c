/* The figures of a service. Rows are made when their method is first called and stay until it is removed. */
#include "meter.h"

#include <errno.h>
#include <string.h>

#define FIRST_SLOTS 32

int weft__meter_new(const weft_alloc *alloc, struct weft_meter **ret) {
    struct weft_meter *meter = weft__zalloc(alloc, sizeof *meter);
    const weft_method_stats **stats = weft__alloc(alloc, sizeof *stats);
    if (!meter || !stats) {
        weft__free(alloc, meter);
        weft__free(alloc, (void *) stats);
        return -ENOMEM;
    }
    meter->began_us = WEFT_METER_IDLE;
    meter->unknown.method = "";
    meter->last = &meter->unknown; /* of no row */
    meter->run = meter->runs;
    meter->stats = stats;
    meter->stats[0] = &meter->unknown;
    meter->measures.methods = stats;
    meter->measures.method_count = 1;
    meter->measures.errors = meter->errors;
    *ret = meter;
    return 0;
}

struct weft_meter *weft__meter_free(struct weft_meter *meter, const weft_alloc *alloc) {
    if (!meter)
        return NULL;
    for (size_t i = 0; i < meter->cap; i++)
        weft__free(alloc, meter->slots[i].stats);
    weft__free(alloc, meter->slots);
    weft__free(alloc, (void *) meter->stats);
    return weft__free(alloc, meter);
}

/* ---- rows ---- */

/* Rows lie in arrays: the lowest bits of their addresses tell nothing. */
static struct weft_meter_slot *find_meter_slot(struct weft_meter_slot *slots, size_t cap, const weft_method *row) {
    size_t i = (size_t) (((uintptr_t) row >> 3) * 0x9E3779B97F4A7C15u >> 17) & (cap - 1);
    while (slots[i].row && slots[i].row != row)
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

static void copy_meter_slots(const struct weft_meter *meter, struct weft_meter_slot *slots, size_t cap) {
    for (size_t i = 0; i < meter->cap; i++)
        if (meter->slots[i].row)
            *find_meter_slot(slots, cap, meter->slots[i].row) = meter->slots[i];
}

/* Room for one more; at most half is used. */
static int grow_meter(struct weft_meter *meter, const weft_alloc *alloc) {
    size_t cap = meter->cap ? 2 * meter->cap : FIRST_SLOTS;
    if (2 * meter->measures.method_count < meter->cap)
        return 0;
    struct weft_meter_slot *slots = weft__zalloc(alloc, cap * sizeof *slots);
    const weft_method_stats **stats =
        slots ? weft__resize(alloc, (void *) meter->stats, (cap / 2 + 1) * sizeof *stats) : NULL;
    if (!stats) {
        weft__free(alloc, slots);
        return -ENOMEM;
    }
    meter->measures.methods = meter->stats = stats;
    copy_meter_slots(meter, slots, cap);
    weft__free(alloc, meter->slots);
    meter->slots = slots;
    meter->cap = cap;
    return 0;
}

static weft_method_stats *add_meter_row(weft_service *service, const weft_method *row) {
    struct weft_meter *meter = service->meter;
    weft_method_stats *stats = grow_meter(meter, service->alloc) < 0 ? NULL : weft__zalloc(service->alloc, sizeof *stats);
    if (!stats)
        return &meter->unknown;
    stats->method = row->name;
    *find_meter_slot(meter->slots, meter->cap, row) = (struct weft_meter_slot){row, stats};
    meter->stats[meter->measures.method_count++] = stats;
    return stats;
}

weft_method_stats *weft__meter_find(weft_service *service, const weft_method *row) {
    struct weft_meter *meter = service->meter;
    struct weft_meter_slot *slot = row && meter->cap ? find_meter_slot(meter->slots, meter->cap, row) : NULL;
    weft_method_stats *stats = !row ? &meter->unknown : slot && slot->row ? slot->stats : add_meter_row(service, row);
    if (row && stats == &meter->unknown)
        return stats; /* there was no memory: it is tried again the next time */
    meter->last_row = row;
    return meter->last = stats;
}

/* The row that was found or made when the request began. Its method may have been removed since: then nothing is made. */
static weft_method_stats *find_begun(struct weft_meter *meter, const weft_method *row) {
    if (row == meter->last_row)
        return meter->last;
    struct weft_meter_slot *slot = row && meter->cap ? find_meter_slot(meter->slots, meter->cap, row) : NULL;
    return slot && slot->row ? slot->stats : &meter->unknown;
}

/* ---- a row goes ---- */

static void join_unknown(struct weft_meter *meter, const weft_method_stats *stats) {
    weft_method_stats *unknown = &meter->unknown;
    unknown->answers += stats->answers;
    unknown->errors += stats->errors;
    unknown->lost += stats->lost;
    unknown->notifications += stats->notifications;
    unknown->bytes_in += stats->bytes_in;
    unknown->bytes_out += stats->bytes_out;
    weft__histogram_join(&unknown->duration_us, &stats->duration_us);
}

static void forget_runs(struct weft_meter *meter, const weft_method_stats *stats) {
    for (size_t i = 0; i < meter->run_count; i++)
        if (meter->runs[i].stats == stats)
            meter->runs[i].stats = &meter->unknown;
}

/* Moves up those behind the one that goes, until one is where it belongs. */
static void close_meter_gap(struct weft_meter *meter, struct weft_meter_slot *gap) {
    size_t mask = meter->cap - 1, i = (size_t) (gap - meter->slots);
    *gap = (struct weft_meter_slot){0};
    while (meter->slots[i = (i + 1) & mask].row) {
        struct weft_meter_slot moved = meter->slots[i];
        meter->slots[i] = (struct weft_meter_slot){0};
        *find_meter_slot(meter->slots, meter->cap, moved.row) = moved;
    }
}

void weft__meter_forget(weft_service *service, const weft_method *row) {
    struct weft_meter *meter = service->meter;
    struct weft_meter_slot *slot = meter->cap ? find_meter_slot(meter->slots, meter->cap, row) : NULL;
    size_t i = 1;
    if (!slot || !slot->row)
        return;
    weft_method_stats *stats = slot->stats;
    join_unknown(meter, stats);
    forget_runs(meter, stats);
    while (meter->stats[i] != stats)
        i++;
    meter->stats[i] = meter->stats[--meter->measures.method_count];
    close_meter_gap(meter, slot);
    meter->last_row = NULL;
    meter->last = &meter->unknown;
    weft__free(service->alloc, stats);
}

/* ---- errors ---- */

static bool is_reason_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* data.reason, if it was written here as a member of its own. What was copied from somebody else's text is not looked at. */
static weft_bytes find_reason(const weft_val *data) {
    weft_bytes none = {"", 0};
    for (size_t i = 0; data && data->kind == WEFT_VAL_OBJ && i < data->len; i++) {
        const weft_member *member = &data->as.members[i];
        if (strcmp(member->name, "reason") != 0 || member->value.kind != WEFT_VAL_STR)
            continue;
        const char *text = member->value.as.s;
        size_t len = member->value.len, n = 0;
        while (n < len && n <= WEFT_METER_REASON && is_reason_letter(text[n]))
            n++;
        return n == len && n <= WEFT_METER_REASON ? (weft_bytes){text, len} : none;
    }
    return none;
}

static bool is_error(const weft_error_stats *error, int code, weft_bytes reason) {
    return error->code == code && strlen(error->reason) == reason.len && memcmp(error->reason, reason.data, reason.len) == 0;
}

/* The last place is for all that come when there is no other. */
static void count_error(struct weft_meter *meter, int code, weft_bytes reason) {
    size_t i = 0, *count = &meter->measures.error_count;
    while (i < *count && !is_error(&meter->errors[i], code, reason))
        i++;
    if (i >= WEFT_ERROR_STATS - 1) {
        i = WEFT_ERROR_STATS - 1;
        code = 0;
        reason.len = 0;
    }
    if (i >= *count) {
        memcpy(meter->reasons[i], reason.data, reason.len);
        meter->errors[i] = (weft_error_stats){.code = code, .reason = meter->reasons[i]};
        *count = i + 1;
    }
    meter->errors[i].count++;
}

/* ---- turns ---- */

void weft__service_set_turn(weft_service *service, void (*on_turn)(void *ctx), void *ctx) {
    if (service->meter && service->now_us) { /* a peer's clock may be another's then */
        service->on_turn = on_turn;
        service->turn_ctx = ctx;
    }
}

/* Nobody would end the turn that has begun. */
void weft__service_unset_turn(weft_service *service, const void *ctx) {
    if (!service->on_turn || service->turn_ctx != ctx)
        return;
    weft__service_settle(service);
    service->on_turn = NULL;
}

void weft__meter_begin_turn(weft_peer *peer) {
    weft_service *service = peer->service;
    service->meter->began_us = weft__peer_now_us(peer);
    if (service->on_turn)
        service->on_turn(service->turn_ctx);
}

static void add_run_up(struct weft_meter *meter, const struct weft_meter_run *run, uint64_t took) {
    run->stats->answers += run->count;
    run->stats->bytes_in += run->bytes_in;
    run->stats->bytes_out += run->bytes_out;
    weft__histogram_add_many(&run->stats->duration_us, took, run->count);
    meter->measures.request_bytes.count += run->count;
    meter->measures.request_bytes.sum += run->bytes_in;
    meter->measures.answer_bytes.count += run->count;
    meter->measures.answer_bytes.sum += run->bytes_out;
}

/* The turn may go on. */
static void settle_runs(struct weft_meter *meter, int64_t now_us) {
    uint64_t took = now_us > meter->began_us ? (uint64_t) (now_us - meter->began_us) : 0;
    for (size_t i = 0; i < meter->run_count; i++)
        add_run_up(meter, &meter->runs[i], took);
    meter->run_count = 0;
    meter->run = meter->runs;
    meter->run->stats = NULL;
}

void weft__meter_settle(weft_peer *peer) {
    struct weft_meter *meter = peer->service->meter;
    if (meter->run_count)
        settle_runs(meter, weft__peer_now_us(peer));
    meter->began_us = WEFT_METER_IDLE;
}

void weft__service_settle(weft_service *service) {
    struct weft_meter *meter = service->meter;
    if (meter->run_count)
        settle_runs(meter, service->now_us(service->ctx));
    meter->began_us = WEFT_METER_IDLE;
}

/* ---- counting ---- */

static void begin_run(weft_peer *peer, weft_method_stats *stats) {
    struct weft_meter *meter = peer->service->meter;
    struct weft_meter_run *run = meter->runs, *end = run + meter->run_count;
    while (run < end && run->stats != stats)
        run++;
    if (run == meter->runs + WEFT_METER_RUNS) {
        settle_runs(meter, weft__peer_now_us(peer));
        run = meter->runs;
    }
    if (run == meter->runs + meter->run_count) {
        *run = (struct weft_meter_run){.stats = stats};
        meter->run_count++;
    }
    meter->run = run;
}

static void count_run(struct weft_meter *meter, const weft_req *req) {
    struct weft_meter_run *run = meter->run;
    run->count++;
    run->bytes_in += req->bytes_in;
    run->bytes_out += req->bytes_out;
    meter->measures.request_bytes.of[weft__histogram_bucket(req->bytes_in)]++;
    meter->measures.answer_bytes.of[weft__histogram_bucket(req->bytes_out)]++;
}

/* Of a turn that has passed. */
static void count_late(struct weft_meter *meter, const weft_req *req, weft_method_stats *stats) {
    int64_t took = weft__peer_now_us(req->peer) - req->began_us;
    weft__histogram_add(&stats->duration_us, took > 0 ? (uint64_t) took : 0);
    weft__histogram_add(&meter->measures.request_bytes, req->bytes_in);
    weft__histogram_add(&meter->measures.answer_bytes, req->bytes_out);
    stats->answers++;
    stats->bytes_in += req->bytes_in;
    stats->bytes_out += req->bytes_out;
}

void weft__meter_answered_odd(weft_req *req, const weft_outcome *outcome) {
    struct weft_meter *meter = req->service->meter;
    bool excused = req->flags & REQ_EXCUSED; /* something else was answered, because it had to be */
    if (excused)
        count_error(meter, req->excuse, req->excuse == 413 ? (weft_bytes){"tooLarge", 8} : (weft_bytes){"", 0});
    else if (outcome->code)
        count_error(meter, outcome->code, find_reason(outcome->value));
    if (!(req->flags & REQ_MEASURED))
        return; /* what was no request */
    weft_method_stats *stats = find_begun(meter, req->row);
    stats->errors += excused || outcome->code;
    if (req->flags & REQ_DEFERRED) {
        count_late(meter, req, stats);
        return;
    }
    begin_run(req->peer, stats);
    count_run(meter, req);
}

void weft__meter_lost(weft_req *req) {
    if (req->flags & REQ_MEASURED)
        find_begun(req->service->meter, req->row)->lost++;
}

/* From within a turn, with what was answered in it. */
const weft_measures *weft_service_measures(weft_service *service) {
    struct weft_meter *meter = service->meter;
    if (meter && meter->run_count)
        settle_runs(meter, service->now_us ? service->now_us(service->ctx) : meter->began_us);
    return meter ? &meter->measures : NULL;
}
