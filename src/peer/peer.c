/* The life of a peer, and what can be asked of it. Bytes come in through input.c and leave through output.c; time passes in
 * tick.c. */
#include <errno.h>
#include <string.h>

#include "gate.h"
#include "link.h"

/* ---- life ---- */

static int start_framing(weft_peer *peer) {
    const weft_alloc *alloc = peer->service->alloc;
    weft_framing_opts opts = {
        .alloc = alloc,
        .seed = peer->seed,
        .deflate = peer->deflate,
        .zip = peer->service->zip,
        .gzip = peer->service->gzip,
        .offers_gzip = peer->gzip,
        .extra = peer->framing_extra,
    };
    peer->framing_state = weft__zalloc(alloc, peer->framing->state_size);
    if (!peer->framing_state)
        return -ENOMEM;
    /* Masks must not repeat themselves on the next connection (Knuth's multiplier: the state is as unknown as the seed). */
    peer->seed = peer->seed * 6364136223846793005u + 1442695040888963407u;
    int r = peer->framing->init ? peer->framing->init(peer->framing_state, &opts) : 0;
    if (r < 0)
        peer->framing_state = weft__free(alloc, peer->framing_state);
    return r;
}

static void stop_framing(weft_peer *peer) {
    if (peer->framing_state && peer->framing->done)
        peer->framing->done(peer->framing_state);
    peer->framing_state = weft__free(peer->service->alloc, peer->framing_state);
}

static void take_opts(weft_peer *peer, const weft_peer_opts *opts) {
    peer->framing = opts->framing ? opts->framing : &weft_detect;
    peer->style = (uint8_t) opts->style;
    peer->no_batch = opts->no_batch;
    peer->lenient = opts->lenient;
    peer->locked = opts->locked;
    peer->eager = opts->eager;
    peer->extras = opts->extras;
    peer->deflate = opts->deflate;
    peer->gzip = opts->gzip;
    peer->own_max_body = opts->max_body;
    peer->dialect_max_body = opts->dialect_max_body;
    peer->seed = opts->seed;
    peer->data = opts->data;
    peer->on_notification = opts->on_notification;
    peer->on_raw = opts->on_raw;
    peer->on_output = opts->on_output;
    peer->on_drain = opts->on_drain;
    peer->sign = opts->sign;
    peer->sign_ctx = opts->sign_ctx;
}

static void dispose_peer(weft_peer *peer) {
    weft_service *service = peer->service;
    const weft_alloc *alloc = service->alloc;
    peer->busy++; /* callbacks below must not dispose of it again */
    peer->ended = true;
    if (!peer->status)
        peer->status = -ECONNRESET;
    weft__held_free(peer, weft__held_take(peer));
    weft__calls_fail_all(peer, -ECONNRESET);
    weft__req_abandon_all(peer, -EPIPE);
    weft__calls_done(peer);
    weft__heap_done(&peer->due, alloc);
    weft__rate_leave(peer);
    stop_framing(peer);
    weft__buf_done(&peer->in, alloc);
    weft__buf_done(&peer->out, alloc);
    weft__free(alloc, peer->identity);
    weft__free(alloc, peer);
    weft_service_unref(service);
}

static void limit_to(size_t *size, size_t most) {
    *size = most && most < *size ? most : *size;
}

static void set_max_body(weft_peer *peer) {
    const weft_limits *limits = &peer->service->limits;
    peer->max_body = peer->identity->authenticated ? limits->max_body : limits->max_body_stranger;
    limit_to(&peer->max_body, peer->own_max_body);
    limit_to(&peer->max_body, peer->dialect_max_body);
}

size_t weft__peer_max_body(const weft_peer *peer) {
    return peer->max_body;
}

static int make_peer(weft_service *service, const weft_peer_opts *opts, weft_peer **ret) {
    weft_peer *peer = weft__zalloc(service->alloc, sizeof *peer);
    if (!peer)
        return -ENOMEM;
    peer->service = weft_service_ref(service);
    weft__list_init(&peer->requests);
    take_opts(peer, opts);
    peer->identity = weft__identity_copy(opts->identity, service->alloc);
    int r = peer->identity ? start_framing(peer) : -ENOMEM;
    if (r >= 0)
        r = weft__rate_join(peer);
    if (r < 0) {
        dispose_peer(peer);
        return r;
    }
    set_max_body(peer);
    *ret = peer;
    return 0;
}

int weft_peer_new(weft_service *service, const weft_peer_opts *opts, weft_peer **ret) {
    static const weft_peer_opts none;
    if (!opts)
        opts = &none;
    if (service)
        return make_peer(service, opts, ret);
    int r = weft_service_new(NULL, &service);
    if (r < 0)
        return r;
    r = make_peer(service, opts, ret);
    weft_service_unref(service);
    return r;
}

weft_peer *weft_peer_free(weft_peer *peer) {
    if (!peer || peer->freed)
        return NULL;
    peer->freed = true;
    peer->sign = NULL; /* its key may go with the carrier */
    if (!peer->status)
        peer->status = -ECONNRESET;
    if (peer->carrier_table) {
        const weft_carrier *table = peer->carrier_table;
        peer->carrier_table = NULL;
        table->free(peer, peer->carrier);
    }
    if (!peer->busy)
        dispose_peer(peer);
    return NULL;
}

void weft_peer_freep(weft_peer **peer) {
    *peer = weft_peer_free(*peer);
}

void weft__peer_enter(weft_peer *peer) {
    peer->busy++;
}

bool weft__peer_leave(weft_peer *peer) {
    if (--peer->busy || !peer->freed)
        return false;
    dispose_peer(peer);
    return true;
}

/* ---- the transport's side ---- */

int weft__peer_reset(weft_peer *peer, int why, const weft_framing *framing, bool again) {
    weft__peer_enter(peer);
    peer->ended = true; /* a call made from a callback below would be lost with the buffers */
    weft__held_free(peer, weft__held_take(peer));
    weft__req_abandon_all(peer, -EPIPE);
    weft__buf_done(&peer->in, peer->service->alloc);
    weft__buf_done(&peer->out, peer->service->alloc);
    stop_framing(peer);
    peer->framing = framing ? framing : peer->framing;
    peer->deflate = 0;
    peer->pinged = 0;
    peer->heard = peer->now;
    peer->full = peer->drained = peer->unread = peer->finished = false;
    int r = start_framing(peer);
    if (!peer->freed)
        peer->status = r < 0 ? r : 0;
    /* Only now, when a call that is made again from its callback goes into the new buffers. */
    peer->ended = !again;
    weft__calls_fail_all(peer, why);
    return weft__peer_leave(peer) ? -ECONNRESET : r;
}

void weft__peer_offline(weft_peer *peer) {
    peer->offline = true;
}

int weft__peer_online(weft_peer *peer, unsigned deflate, int64_t now_ms) {
    peer->offline = false;
    peer->now = peer->heard = now_ms;
    peer->pinged = 0;
    if (deflate == peer->deflate)
        return 0;
    stop_framing(peer);
    peer->deflate = deflate;
    int r = start_framing(peer);
    if (r < 0)
        peer->status = r;
    return r;
}

void weft__peer_set_extra(weft_peer *peer, const void *extra) {
    peer->framing_extra = extra;
}

int weft__peer_status(const weft_peer *peer) {
    return peer->status;
}

const weft_alloc *weft__peer_alloc(const weft_peer *peer) {
    return peer->service->alloc;
}

void *weft__peer_framing_state(weft_peer *peer) {
    return peer->framing_state;
}

const char *weft__peer_framing_name(const weft_peer *peer) {
    return weft__framing_in_use(peer->framing, peer->framing_state)->name;
}

void weft__peer_set_carrier(weft_peer *peer, const weft_carrier *table, void *carrier) {
    peer->carrier_table = table;
    peer->carrier = carrier;
}

void *weft__peer_carrier(const weft_peer *peer, const weft_carrier *table) {
    return peer->carrier_table == table ? peer->carrier : NULL;
}

/* ---- asking ---- */

bool weft_peer_full(const weft_peer *peer) {
    return peer->full;
}

bool weft__peer_choked(const weft_peer *peer) {
    return weft__choked(peer);
}

void weft_peer_pause(weft_peer *peer, bool paused) {
    bool was_paused = peer->paused;
    peer->paused = paused;
    if (was_paused && !paused && peer->carrier_table && peer->carrier_table->resume)
        peer->carrier_table->resume(peer, peer->carrier);
}

size_t weft_peer_open_requests(const weft_peer *peer) {
    return peer->open_requests;
}

size_t weft_peer_open_calls(const weft_peer *peer) {
    return weft__calls_count(peer);
}

void *weft_peer_data(const weft_peer *peer) {
    return peer->data;
}

void weft_peer_set_data(weft_peer *peer, void *data) {
    peer->data = data;
}

const weft_identity *weft_peer_identity(const weft_peer *peer) {
    return peer->identity;
}

int weft_peer_set_identity(weft_peer *peer, const weft_identity *identity) {
    weft_identity *copy = weft__identity_copy(identity, peer->service->alloc);
    if (!copy)
        return -ENOMEM;
    if (strcmp(copy->dialect, peer->identity->dialect) != 0)
        peer->dialect_max_body = 0;
    weft__free(peer->service->alloc, peer->identity);
    peer->identity = copy;
    set_max_body(peer);
    return weft__rate_join(peer);
}

void weft_peer_set_style(weft_peer *peer, weft_style style) {
    peer->style = (uint8_t) style;
}

weft_service *weft_peer_service(const weft_peer *peer) {
    return peer->service;
}

void weft__peer_lock(weft_peer *peer) {
    peer->locked = true;
}

void weft__peer_set_protocol(weft_peer *peer, weft_style style, bool no_batch) {
    peer->style = (uint8_t) style;
    peer->no_batch = no_batch;
}
