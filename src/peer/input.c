/* Bytes in: frames are decoded where they lie, each body is one message or several, each message is dispatched. */
#include <errno.h>
#include <string.h>

#include "hint.h"
#include "meter.h"
#include "scan.h"
#include "send.h"
#include "websocket.h"

/* Below this much room a read into the peer's own buffer is not worth it. */
#define MIN_ROOM 4096

/* What is not one JSON text. */
static WEFT_COLD void refuse_text(weft_peer *peer) {
    peer->service->stats.parse_errors++;
    weft__answer_error(peer, NULL, (weft_bytes){0}, WEFT_PARSE_ERROR, "Parse error", "parseError", NULL);
}

/* May another text follow this one in the same body? A body of a WebSocket may hold several lines; who ends no line may put
 * anything behind. */
static WEFT_NOINLINE bool may_follow_text(const weft_peer *peer, const char *text, const char *rest) {
    if (peer->eager)
        return true;
    return (peer->framing->flags & WEFT_FRAMING_MULTI) && rest[-1] <= ' ' && memchr(text, '\n', (size_t) (rest - text));
}

/* This one and what stands behind it in its body wait. Without memory for that, order cannot be kept: close. */
static WEFT_COLD void hold_rest(weft_peer *peer, const char *text, const char *end) {
    int r = weft__held_keep(peer, text, (size_t) (end - text));
    if (r < 0)
        peer->status = r;
}

/* One text, or the first of several; where it ended. */
static inline const char *take_message_text(weft_peer *peer, const char *text, const char *end) {
    weft_msg msg;
    const char *rest = end;
    int r = weft__msg_parse(text, WEFT_MAX_DEPTH, peer->lenient, &msg, &rest);
    bool broken = r < 0 || (rest != end && !may_follow_text(peer, text, rest));
    if (WEFT_RARELY(peer->soon) && (broken || weft__held_must_wait(peer, &msg))) {
        hold_rest(peer, text, end);
        return end;
    }
    if (WEFT_RARELY(broken)) {
        refuse_text(peer);
        return end;
    }
    if (WEFT_RARELY(msg.kind == WEFT_MSG_BATCH))
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
static WEFT_NOINLINE bool show_body(weft_peer *peer, weft_bytes body) {
    weft_service *service = peer->service;
    if (peer->on_raw && peer->on_raw(peer, body, is_binary(peer), peer->data))
        return true;
    if (peer->freed)
        return true;
    if (service->on_message)
        service->on_message(service->ctx, peer, false, body);
    return false;
}

static inline void take_texts(weft_peer *peer, char *body, size_t len) {
    /* The scanner wants a NUL behind the text; what lies there is the next frame's. */
    char saved = body[len];
    const char *end = body + len;
    body[len] = '\0';
    for (const char *text = take_message_text(peer, body, end); text < end && !peer->status;)
        text = take_message_text(peer, text, end);
    body[len] = saved;
}

static inline void take_message_body(weft_peer *peer, char *body, size_t len) {
    if (WEFT_RARELY(peer->on_raw || peer->service->on_message) && show_body(peer, (weft_bytes){body, len}))
        return;
    take_texts(peer, body, len);
}

/* What waited for answers, which have been given; it may have to wait again. */
static WEFT_COLD void take_held(weft_peer *peer) {
    size_t len;
    struct weft_held *held = weft__held_take(peer);
    char *text = weft__held_text(held, &len);
    take_texts(peer, text, len);
    weft__held_free(peer, held);
}

/* Who waits for an answer must not hear of it as silence. The NUL is for the scanner. */
static bool was_answer(weft_peer *peer, weft_frame *frame) {
    if (!frame->len)
        return false;
    char saved = frame->body[frame->len];
    frame->body[frame->len] = '\0';
    bool was = weft__calls_too_large(peer, frame->body);
    frame->body[frame->len] = saved;
    return was;
}

static WEFT_NOINLINE int take_other_frame(weft_peer *peer, weft_frame *frame) {
    switch (frame->kind) {
    case WEFT_FRAME_BODY:
        break;
    case WEFT_FRAME_TOO_LARGE:
        peer->service->stats.too_large++;
        if (was_answer(peer, frame))
            break;
        weft__answer_error(peer, NULL, (weft_bytes){0}, WEFT_INVALID_REQUEST, "Invalid Request", "tooLarge",
                           "the message is over the size limit");
        break;
    case WEFT_FRAME_UNREADABLE:
        weft__answer_error(peer, NULL, (weft_bytes){0}, WEFT_INVALID_REQUEST, "Invalid Request", "contentEncoding",
                           frame->code ? "the body is not gzip, although its Content-Encoding says so"
                                       : "no Content-Encoding but gzip and identity is understood");
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
    if (WEFT_RARELY(frame->kind != WEFT_FRAME_BODY))
        return take_other_frame(peer, frame);
    take_message_body(peer, frame->body, frame->len);
    return peer->status;
}

/* The framing is broken: say so in its own words, or with an error if it has none. */
static int break_off(weft_peer *peer, int r) {
    if (peer->framing->control)
        weft__send_control(peer, WEFT_FRAME_CLOSE, 0, NULL, 0);
    else if (weft__framing_in_use(peer->framing, peer->framing_state) == &weft_content_length && r != -ENOMEM)
        weft__answer_error(peer, NULL, (weft_bytes){0}, WEFT_PARSE_ERROR, "Parse error", "brokenFraming", NULL);
    return r;
}

/* Is this unfinished line one or more whole texts already? Looked at only when its last byte could end one. */
static bool is_whole_text(char *line, size_t len) {
    if (!len || (line[len - 1] != '}' && line[len - 1] != ']'))
        return false;
    char saved = line[len];
    const char *p = line, *end = line + len;
    line[len] = '\0';
    while (p && p < end)
        p = (p = weft__scan_value(p, WEFT_MAX_DEPTH)) ? weft__scan_ws(p) : NULL;
    line[len] = saved;
    return p == end;
}

/* The line has not ended; take it all the same when that was asked for and it is whole. 1 taken, 0 not, <0 close. */
static int take_unended(weft_peer *peer, char *line, size_t len) {
    weft_frame frame;
    size_t used;
    if (!peer->eager || weft__framing_in_use(peer->framing, peer->framing_state) != &weft_ndjson ||
        !is_whole_text(line, len))
        return 0;
    int r = peer->framing->finish(peer->framing_state, line, len, peer->max_body, &used, &frame);
    if (r > 0)
        r = take_frame(peer, &frame);
    return r < 0 ? r : 1;
}

/* Decode what is there. *ret_used bytes are finished with; *ret_want is how many the next frame needs in all, if known. */
static WEFT_ALWAYS_INLINE int decode_frames(weft_peer *peer, char *data, size_t len, size_t *ret_used, size_t *ret_want) {
    size_t used = 0;
    int r = 0;
    *ret_want = 0;
    while (data && !weft__choked(peer)) {
        /* Also when nothing is left: a framing that put a message together gives its memory back at the next call. */
        weft_frame frame;
        size_t n = 0;
        r = peer->framing->decode(peer->framing_state, data + used, len - used, peer->max_body, &n, &frame);
        if (WEFT_RARELY(r < 0)) {
            r = break_off(peer, r);
            break;
        }
        used += n;
        if (r == 0) {
            *ret_want = frame.len;
            r = take_unended(peer, data + used, len - used);
            used = r > 0 ? len : used;
            break;
        }
        r = take_frame(peer, &frame);
        if (r < 0)
            break;
    }
    *ret_used = used;
    peer->unread = used < len && weft__choked(peer);
    return r;
}

/* Keep what was not finished with; reserve at once what the frame will need, so that it is copied once. */
static int keep_undecoded(weft_peer *peer, const char *data, size_t len, size_t want) {
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
    if (peer->in.cap) /* the scanner looks behind what it reads, and finds something that can be looked at */
        memset(weft__buf_tail(&peer->in), 0, WEFT_SLACK);
    if (peer->held && !weft__choked(peer))
        take_held(peer);
    if (peer->status)
        return peer->status;
    int r = decode_frames(peer, weft__buf_head(&peer->in), weft__buf_len(&peer->in), &used, &want);
    weft__buf_take(&peer->in, alloc, used);
    if (r >= 0 && want > weft__buf_len(&peer->in))
        r = weft__buf_reserve(&peer->in, alloc, want - weft__buf_len(&peer->in));
    return r;
}

bool weft__peer_can_read(const weft_peer *peer) {
    return weft__can_read(peer);
}

int weft__peer_read_kept(weft_peer *peer) {
    return weft__peer_can_read(peer) ? feed_kept(peer, NULL, 0) : 0;
}

static WEFT_ALWAYS_INLINE int feed_fresh(weft_peer *peer, char *data, size_t len) {
    size_t used, want;
    int r = decode_frames(peer, data, len, &used, &want);
    return r < 0 ? r : keep_undecoded(peer, data + used, len - used, want);
}

/* Runs one of the feeding functions with the peer protected from being freed, and remembers why it must be closed. */
static WEFT_ALWAYS_INLINE int run_guarded(weft_peer *peer, int (*run)(weft_peer *peer, char *data, size_t len), char *data,
                                          size_t len) {
    if (peer->status)
        return peer->status;
    peer->busy++;
    bool was_quiet = peer->quiet;
    peer->quiet = true;
    int r = run(peer, data, len);
    peer->quiet = was_quiet;
    weft__meter_fed(peer);
    if (r < 0 && !peer->status)
        peer->status = r;
    r = peer->status;
    if (WEFT_LIKELY(peer->busy > 1 || !peer->freed)) {
        peer->busy--;
        return r;
    }
    return weft__peer_leave(peer) ? -ECONNRESET : r;
}

int weft__peer_guarded(weft_peer *peer, int (*run)(weft_peer *peer, char *data, size_t len), char *data, size_t len) {
    return run_guarded(peer, run, data, len);
}

static void note_heard(weft_peer *peer, size_t len, int64_t now_ms) {
    peer->now = now_ms;
    peer->heard = now_ms;
    peer->pinged = 0;
    peer->service->stats.bytes_in += len;
}

int weft__peer_feed(weft_peer *peer, char *data, size_t len, int64_t now_ms) {
    note_heard(peer, len, now_ms);
    return weft__peer_guarded(peer, weft__buf_len(&peer->in) || peer->held ? feed_kept : feed_fresh, data, len);
}

void weft__peer_take(weft_peer *peer, char *data, size_t len, int64_t now_ms, char *memory, size_t size) {
    weft__buf_lend(&peer->out, peer->service->alloc, memory, size);
    note_heard(peer, len, now_ms);
    if (weft__buf_len(&peer->in) || peer->held)
        weft__peer_guarded(peer, feed_kept, data, len);
    else
        run_guarded(peer, feed_fresh, data, len);
}

/* Nobody carries this peer: with what has come, all has had its turn that there is. */
static int feed_uncarried(weft_peer *peer, char *data, size_t len) {
    int r = feed_kept(peer, data, len);
    if (r >= 0)
        weft__peer_tell_drained(peer);
    return r;
}

int weft_peer_feed(weft_peer *peer, const void *data, size_t len, int64_t now_ms) {
    /* The bytes are somebody else's and end where they end: they are decoded in a copy that may be changed. */
    note_heard(peer, len, now_ms);
    int r = weft__buf_put(&peer->in, peer->service->alloc, data, len);
    return r < 0 ? r : weft__peer_guarded(peer, feed_uncarried, NULL, 0);
}

static int feed_body(weft_peer *peer, char *body, size_t len) {
    take_message_body(peer, body, len);
    return 0;
}

int weft__peer_body(weft_peer *peer, char *body, size_t len, int64_t now_ms) {
    note_heard(peer, len, now_ms);
    return weft__peer_guarded(peer, feed_body, body, len);
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
    uint32_t soon = peer->soon;
    size_t soon_bytes = peer->soon_bytes;
    while (r >= 0 && (peer->held || (weft__choked(peer) && weft__buf_len(&peer->in)))) {
        peer->full = peer->paused = false;
        peer->soon = 0; /* rather out of order than not at all */
        peer->soon_bytes = 0;
        r = feed_kept(peer, data, len);
        soon += peer->soon;
        soon_bytes += peer->soon_bytes;
    }
    peer->soon = soon;
    peer->soon_bytes = soon_bytes;
    peer->full |= was_full;
    /* finish() may write a sentinel behind the bytes, so even none of them need memory that is ours. */
    if (r >= 0)
        r = weft__buf_reserve(&peer->in, peer->service->alloc, 1);
    if (r >= 0)
        memset(weft__buf_tail(&peer->in), 0, WEFT_SLACK); /* the scanner looks there */
    if (r >= 0 && !peer->finished)
        r = finish_input(peer, weft__buf_head(&peer->in), weft__buf_len(&peer->in));
    peer->finished = true;
    weft__buf_done(&peer->in, peer->service->alloc);
    return r;
}

int weft__peer_last(weft_peer *peer) {
    return weft__peer_guarded(peer, take_rest, NULL, 0);
}

int weft_peer_eof(weft_peer *peer) {
    int r = 0;
    weft__peer_enter(peer);
    if (!peer->status && !peer->ended) {
        peer->quiet = true;
        r = take_rest(peer, NULL, 0);
        peer->quiet = false;
        weft__meter_fed(peer);
    }
    weft__buf_done(&peer->in, peer->service->alloc);
    peer->ended = true;
    weft__calls_fail_all(peer, -ECONNRESET);
    return weft__peer_leave(peer) ? -ECONNRESET : r;
}

/* The bytes are about to be read, which takes longer than memory does: what they will need of the peer comes meanwhile. */
static inline void fetch_peer(const weft_peer *peer) {
    for (size_t at = 64; at < offsetof(weft_peer, requests); at += 64)
        __builtin_prefetch((const char *) peer + at);
    __builtin_prefetch(peer->framing_state);
}

char *weft__peer_room(weft_peer *peer, size_t *ret_size) {
    weft_buf *in = &peer->in;
    fetch_peer(peer);
    if (!weft__buf_len(in) || in->cap - in->end < MIN_ROOM)
        return NULL;
    *ret_size = in->cap - in->end;
    return weft__buf_tail(in);
}

bool weft__peer_holds(const weft_peer *peer) {
    return peer->held && !peer->status;
}

bool weft__peer_stalled(const weft_peer *peer) {
    return !weft__choked(peer) && !peer->status && (peer->held || weft__buf_len(&peer->in) > 0);
}
