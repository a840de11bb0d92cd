/* The peer: bytes in, messages dispatched, bytes out. Time and bytes are arguments; nothing here waits. */
#include <errno.h>
#include <string.h>

#include "flat.h"
#include "identity.h"
#include "peer_private.h"
#include "scan.h"
#include "websocket.h"

/* Below this much room a read into the peer's own buffer is not worth it. */
#define MIN_ROOM 4096

/* ---- life ---- */

static int start_framing(weft_peer *peer) {
    const weft_alloc *alloc = peer->service->alloc;
    weft_framing_opts opts = {
        .alloc = alloc,
        .seed = peer->seed,
        .deflate = peer->deflate,
        .zip = peer->service->zip,
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
    peer->extras = opts->extras;
    peer->deflate = opts->deflate;
    peer->seed = opts->seed;
    peer->data = opts->data;
    peer->on_notification = opts->on_notification;
    peer->on_raw = opts->on_raw;
    peer->on_output = opts->on_output;
    peer->on_drain = opts->on_drain;
}

static void dispose(weft_peer *peer) {
    weft_service *service = peer->service;
    const weft_alloc *alloc = service->alloc;
    peer->busy++; /* callbacks below must not dispose of it again */
    peer->ended = true;
    if (!peer->status)
        peer->status = -ECONNRESET;
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

static void set_max_body(weft_peer *peer) {
    const weft_limits *limits = &peer->service->limits;
    peer->max_body = peer->identity->authenticated ? limits->max_body : limits->max_body_stranger;
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
        dispose(peer);
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
    if (!peer->status)
        peer->status = -ECONNRESET;
    if (peer->carrier_table) {
        const weft_carrier *table = peer->carrier_table;
        peer->carrier_table = NULL;
        table->free(peer, peer->carrier);
    }
    if (!peer->busy)
        dispose(peer);
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
    dispose(peer);
    return true;
}

/* ---- bytes in ---- */

/* What is not one JSON text. */
static __attribute__((noinline)) void refuse_text(weft_peer *peer) {
    peer->service->stats.parse_errors++;
    weft__answer_error(peer, NULL, (weft_bytes){0}, WEFT_PARSE_ERROR, "Parse error", "parseError", NULL);
}

/* One text, or the first of several; where it ended. */
static inline const char *take_text(weft_peer *peer, const char *text, const char *end) {
    weft_msg msg;
    const char *rest = end;
    int r = weft__msg_parse(text, WEFT_MAX_DEPTH, peer->lenient, &msg, &rest);
    bool several = rest != end && (peer->framing->flags & WEFT_FRAMING_MULTI) && rest[-1] <= ' ' &&
                   memchr(text, '\n', (size_t) (rest - text));
    if (r < 0 || (rest != end && !several)) {
        refuse_text(peer);
        return end;
    }
    if (msg.kind == WEFT_MSG_BATCH)
        weft__batch_in_run(peer, text);
    else
        weft__dispatch(peer, &msg, NULL);
    return rest;
}

static bool is_binary(const weft_peer *peer) {
    bool websocket = peer->framing == &weft_websocket || peer->framing == &weft_websocket_client;
    return websocket && weft__ws_binary(peer->framing_state);
}

/* Somebody wants to see every body; true: and has taken this one. */
static __attribute__((noinline)) bool show_body(weft_peer *peer, weft_bytes body) {
    weft_service *service = peer->service;
    if (peer->on_raw && peer->on_raw(peer, body, is_binary(peer), peer->data))
        return true;
    if (peer->freed)
        return true;
    if (service->on_message)
        service->on_message(service->ctx, peer, false, body);
    return false;
}

static inline void take_body(weft_peer *peer, char *body, size_t len) {
    if ((peer->on_raw || peer->service->on_message) && show_body(peer, (weft_bytes){body, len}))
        return;
    /* The scanner wants a NUL behind the text; what lies there is the next frame's. */
    char saved = body[len];
    const char *end = body + len;
    body[len] = '\0';
    for (const char *text = take_text(peer, body, end); text < end && !peer->status;)
        text = take_text(peer, text, end);
    body[len] = saved;
}

static __attribute__((noinline)) int take_other_frame(weft_peer *peer, weft_frame *frame) {
    switch (frame->kind) {
    case WEFT_FRAME_BODY:
        break;
    case WEFT_FRAME_TOO_LARGE:
        peer->service->stats.too_large++;
        weft__answer_error(peer, NULL, (weft_bytes){0}, WEFT_INVALID_REQUEST, "Invalid Request", "tooLarge",
                           "the message is over the size limit");
        break;
    case WEFT_FRAME_PING:
        weft__send_control(peer, WEFT_FRAME_PONG, 0, frame->body, frame->len);
        break;
    case WEFT_FRAME_PONG:
        break;
    case WEFT_FRAME_CLOSE:
        weft__send_control(peer, WEFT_FRAME_CLOSE, 0, NULL, 0);
        return -ECONNRESET;
    }
    return peer->status;
}

static inline int take_frame(weft_peer *peer, weft_frame *frame) {
    if (frame->kind != WEFT_FRAME_BODY)
        return take_other_frame(peer, frame);
    take_body(peer, frame->body, frame->len);
    return peer->status;
}

/* The framing is broken: say so in its own words, or with an error if it has none. */
static int break_off(weft_peer *peer, int r) {
    if (peer->framing->control)
        weft__send_control(peer, WEFT_FRAME_CLOSE, 0, NULL, 0);
    else if (r != -ENOMEM)
        weft__answer_error(peer, NULL, (weft_bytes){0}, WEFT_PARSE_ERROR, "Parse error", "brokenFraming", NULL);
    return r;
}

/* Decode what is there. *ret_used bytes are finished with; *ret_want is how many the next frame needs in all, if known. */
static int process(weft_peer *peer, char *data, size_t len, size_t *ret_used, size_t *ret_want) {
    size_t used = 0;
    int r = 0;
    *ret_want = 0;
    while (used < len && !weft__peer_choked(peer)) {
        weft_frame frame;
        size_t n = 0;
        r = peer->framing->decode(peer->framing_state, data + used, len - used, peer->max_body, &n, &frame);
        if (r < 0) {
            r = break_off(peer, r);
            break;
        }
        used += n;
        if (r == 0) {
            *ret_want = frame.len;
            break;
        }
        r = take_frame(peer, &frame);
        if (r < 0)
            break;
    }
    *ret_used = used;
    return r;
}

/* Keep what was not finished with; reserve at once what the frame will need, so that it is copied once. */
static int keep_rest(weft_peer *peer, const char *data, size_t len, size_t want) {
    if (!len)
        return 0;
    int r = weft__buf_reserve(&peer->in, peer->service->alloc, want > len ? want : len);
    return r < 0 ? r : weft__buf_put(&peer->in, peer->service->alloc, data, len);
}

static int feed_kept(weft_peer *peer, char *data, size_t len) {
    size_t used, want;
    const weft_alloc *alloc = peer->service->alloc;
    if (len && data == weft__buf_tail(&peer->in))
        peer->in.end += len;
    else if (weft__buf_put(&peer->in, alloc, data, len) < 0)
        return -ENOMEM;
    int r = process(peer, weft__buf_head(&peer->in), weft__buf_len(&peer->in), &used, &want);
    weft__buf_take(&peer->in, alloc, used);
    if (r >= 0 && want > weft__buf_len(&peer->in))
        r = weft__buf_reserve(&peer->in, alloc, want - weft__buf_len(&peer->in));
    return r;
}

static int feed_fresh(weft_peer *peer, char *data, size_t len) {
    size_t used, want;
    int r = process(peer, data, len, &used, &want);
    return r < 0 ? r : keep_rest(peer, data + used, len - used, want);
}

/* Runs one of the feeding functions with the peer protected from being freed, and remembers why it must be closed. */
static int guarded(weft_peer *peer, int (*run)(weft_peer *peer, char *data, size_t len), char *data, size_t len) {
    if (peer->status)
        return peer->status;
    weft__peer_enter(peer);
    bool was_quiet = peer->quiet;
    peer->quiet = true;
    int r = run(peer, data, len);
    peer->quiet = was_quiet;
    if (r < 0 && !peer->status)
        peer->status = r;
    r = peer->status;
    return weft__peer_leave(peer) ? -ECONNRESET : r;
}

static void hear(weft_peer *peer, size_t len, int64_t now_ms) {
    peer->now = now_ms;
    peer->heard = now_ms;
    peer->pinged = 0;
    peer->service->stats.bytes_in += len;
}

int weft__peer_feed(weft_peer *peer, char *data, size_t len, int64_t now_ms) {
    hear(peer, len, now_ms);
    return guarded(peer, weft__buf_len(&peer->in) ? feed_kept : feed_fresh, data, len);
}

int weft_peer_feed(weft_peer *peer, const void *data, size_t len, int64_t now_ms) {
    /* The bytes are somebody else's and end where they end: they are decoded in a copy that may be changed. */
    hear(peer, len, now_ms);
    int r = weft__buf_put(&peer->in, peer->service->alloc, data, len);
    return r < 0 ? r : guarded(peer, feed_kept, NULL, 0);
}

static int feed_body(weft_peer *peer, char *body, size_t len) {
    take_body(peer, body, len);
    return 0;
}

int weft__peer_body(weft_peer *peer, char *body, size_t len, int64_t now_ms) {
    hear(peer, len, now_ms);
    return guarded(peer, feed_body, body, len);
}

static int finish_input(weft_peer *peer, char *data, size_t len) {
    weft_frame frame;
    size_t used = 0;
    if (!peer->framing->finish)
        return len ? -EPROTO : 0;
    int r = peer->framing->finish(peer->framing_state, data, len, peer->max_body, &used, &frame);
    return r > 0 ? take_frame(peer, &frame) : r;
}

/* Everything that is still there: whole messages kept back because the output was full or the user paused, of which there
 * will be no more, and what only the end completes. */
static int take_rest(weft_peer *peer, char *data, size_t len) {
    int r = 0;
    bool was_full = peer->full;
    while (r >= 0 && weft__peer_choked(peer) && weft__buf_len(&peer->in)) {
        peer->full = peer->paused = false;
        r = feed_kept(peer, data, len);
    }
    peer->full |= was_full;
    /* finish() may write a sentinel behind the bytes, so even none of them need memory that is ours. */
    if (r >= 0)
        r = weft__buf_reserve(&peer->in, peer->service->alloc, 1);
    if (r >= 0 && !peer->finished)
        r = finish_input(peer, weft__buf_head(&peer->in), weft__buf_len(&peer->in));
    peer->finished = true;
    weft__buf_done(&peer->in, peer->service->alloc);
    return r;
}

int weft__peer_last(weft_peer *peer) {
    return guarded(peer, take_rest, NULL, 0);
}

int weft_peer_eof(weft_peer *peer) {
    int r = 0;
    weft__peer_enter(peer);
    if (!peer->status && !peer->ended) {
        peer->quiet = true;
        r = take_rest(peer, NULL, 0);
        peer->quiet = false;
    }
    weft__buf_done(&peer->in, peer->service->alloc);
    peer->ended = true;
    weft__calls_fail_all(peer, -ECONNRESET);
    return weft__peer_leave(peer) ? -ECONNRESET : r;
}

char *weft__peer_room(weft_peer *peer, size_t *ret_size) {
    weft_buf *in = &peer->in;
    if (!weft__buf_len(in) || in->cap - in->end < MIN_ROOM)
        return NULL;
    *ret_size = in->cap - in->end;
    return weft__buf_tail(in);
}

bool weft__peer_stalled(const weft_peer *peer) {
    return !weft__peer_choked(peer) && !peer->status && weft__buf_len(&peer->in) > 0;
}

/* ---- bytes out ---- */

weft_bytes weft_peer_output(weft_peer *peer) {
    return (weft_bytes){peer->out.data ? weft__buf_head(&peer->out) : "", weft__buf_len(&peer->out)};
}

/* Half of the soft limit, so that it does not flutter. */
static void check_drain(weft_peer *peer) {
    if (!peer->full || weft__send_queued(peer) > peer->service->limits.out_soft / 2)
        return;
    peer->full = false;
    if (peer->on_drain && !peer->freed)
        peer->on_drain(peer, peer->data);
}

/* While the output is full nothing is read, and so no pong is heard. That bytes leave says the same: somebody takes them. */
static void count_as_heard(weft_peer *peer) {
    if (!peer->full)
        return;
    weft__peer_fresh_now(peer);
    peer->heard = peer->now;
    peer->pinged = 0;
}

void weft_peer_sent(weft_peer *peer, size_t n) {
    weft__buf_take(&peer->out, peer->service->alloc, n);
    if (n)
        count_as_heard(peer);
    check_drain(peer);
}

weft_buf *weft__peer_out(weft_peer *peer) {
    return &peer->out;
}

void weft__peer_in_flight(weft_peer *peer, size_t bytes) {
    if (bytes < peer->in_flight)
        count_as_heard(peer);
    peer->in_flight = bytes;
    check_drain(peer);
}

void weft__peer_lend(weft_peer *peer, char *memory, size_t size) {
    weft__buf_lend(&peer->out, peer->service->alloc, memory, size);
}

int weft__peer_return(weft_peer *peer) {
    return weft__buf_return(&peer->out, peer->service->alloc);
}

static int send_raw(weft_peer *peer, weft_bytes body, bool binary) {
    weft_sending sending;
    /* Who has ended its half may still listen. */
    if (peer->ended && (peer->offline || peer->freed))
        return -ENOTCONN;
    if (binary && (peer->framing == &weft_websocket || peer->framing == &weft_websocket_client))
        weft__ws_next_binary(peer->framing_state);
    int r = weft__send_begin(peer, body.len, &sending);
    if (r < 0)
        return r;
    r = weft__buf_put(&peer->out, peer->service->alloc, body.data, body.len);
    if (r < 0) {
        weft__send_undo(peer, &sending);
        return r;
    }
    if (weft__framing_in_use(peer->framing, peer->framing_state)->flags & WEFT_FRAMING_LINES)
        weft__flatten(weft__buf_tail(&peer->out) - body.len, body.len);
    return weft__send_end(peer, &sending);
}

int weft_peer_send_raw(weft_peer *peer, weft_bytes body, bool binary) {
    weft__peer_enter(peer);
    int r = send_raw(peer, body, binary);
    weft__peer_leave(peer);
    return r;
}

int weft_peer_close(weft_peer *peer, int code, const char *reason) {
    return weft__send_control(peer, WEFT_FRAME_CLOSE, code, reason, reason ? strlen(reason) : 0);
}

/* ---- time ---- */

/* Silence is counted from the first time we hear of time. */
static void set_now(weft_peer *peer, int64_t now_ms) {
    peer->now = now_ms;
    if (!peer->heard)
        peer->heard = now_ms;
}

void weft__peer_now(weft_peer *peer, int64_t now_ms) {
    set_now(peer, now_ms);
}

static bool can_ping(const weft_peer *peer) {
    return peer->framing->control && peer->service->limits.ping_ms > 0 && !peer->ended && !peer->offline;
}

/* When silence must be looked into. */
static int64_t silence_due(const weft_peer *peer) {
    if (!can_ping(peer))
        return INT64_MAX;
    const weft_limits *limits = &peer->service->limits;
    return peer->pinged ? weft__after(peer->pinged, limits->pong_ms) : weft__after(peer->heard, limits->ping_ms);
}

int64_t weft_peer_deadline(const weft_peer *peer) {
    const weft_due *top = weft__heap_top(&peer->due);
    int64_t silence = silence_due(peer);
    if (peer->status)
        return peer->now;
    return top && top->at < silence ? top->at : silence;
}

static int check_silence(weft_peer *peer) {
    if (silence_due(peer) > peer->now)
        return 0;
    if (peer->pinged)
        return -ETIMEDOUT;
    peer->pinged = peer->now;
    return weft__send_control(peer, WEFT_FRAME_PING, 0, NULL, 0);
}

static void expire_due(weft_peer *peer) {
    weft_due *top;
    while ((top = weft__heap_top(&peer->due)) && top->at <= peer->now) {
        weft_timed *timed = WEFT_CONTAINER(top, weft_timed, due);
        if (timed->kind == WEFT_TIMED_CALL)
            weft__calls_expire(peer, timed);
        else
            weft__req_abandon(WEFT_CONTAINER(timed, weft_req, timed), -ETIMEDOUT);
    }
}

static int run_tick(weft_peer *peer, char *data, size_t len) {
    (void) data, (void) len;
    expire_due(peer);
    return check_silence(peer);
}

int weft_peer_tick(weft_peer *peer, int64_t now_ms) {
    set_now(peer, now_ms);
    return guarded(peer, run_tick, NULL, 0);
}

/* ---- the transport's side ---- */

int weft__peer_reset(weft_peer *peer, int why, const weft_framing *framing, unsigned deflate) {
    weft__peer_enter(peer);
    peer->ended = true; /* a call made from a callback below would be lost with the buffers */
    weft__calls_fail_all(peer, why);
    weft__req_abandon_all(peer, -EPIPE);
    weft__buf_done(&peer->in, peer->service->alloc);
    weft__buf_done(&peer->out, peer->service->alloc);
    stop_framing(peer);
    peer->framing = framing ? framing : peer->framing;
    peer->deflate = deflate;
    peer->in_flight = 0;
    peer->pinged = 0;
    peer->heard = peer->now;
    peer->full = peer->ended = peer->finished = false;
    int r = start_framing(peer);
    peer->status = r < 0 ? r : 0;
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
    return peer->full || peer->paused;
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
    weft__free(peer->service->alloc, peer->identity);
    peer->identity = copy;
    set_max_body(peer);
    return weft__rate_join(peer);
}

weft_service *weft_peer_service(const weft_peer *peer) {
    return peer->service;
}
