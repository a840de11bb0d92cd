/* One notification for many peers: written once, framed once per kind of framing, copied to each.
 *
 * Copying 300 bytes costs less than keeping count of who still needs them. */
#include <errno.h>
#include <string.h>

#include "encode.h"
#include "send.h"
#include "shared.h"
#include "write.h"

/* NDJSON, Content-Length, WebSocket plain and with compression, server-sent events. */
#define MAX_KINDS 8

struct weft_shared {
    weft_service *service;
    weft_buf body;
    size_t kinds;
    struct kind {
        const weft_framing *framing;
        unsigned deflate;
        weft_buf frame;
    } kind[MAX_KINDS];
};

/* With a method it is a notification, otherwise the value itself. */
static int make_shared(weft_service *service, const char *method, weft_val value, weft_shared **ret) {
    weft_shared *shared = weft__zalloc(service->alloc, sizeof *shared);
    if (!shared)
        return -ENOMEM;
    shared->service = weft_service_ref(service);
    int r = method ? weft__write_request(&shared->body, service->alloc, 0, method, &value, NULL)
                   : weft__write_val(&shared->body, service->alloc, &value);
    if (r < 0) {
        weft_shared_free(shared);
        return r;
    }
    *ret = shared;
    return 0;
}

int weft_shared_new(weft_service *service, const char *method, weft_val params, weft_shared **ret) {
    int r = weft__request_fits(method, &params);
    return r < 0 ? r : make_shared(service, method, params, ret);
}

int weft__shared_message(weft_service *service, weft_val message, weft_shared **ret) {
    return make_shared(service, NULL, message, ret);
}

static int frame_body(weft_peer *peer, weft_buf *out, const weft_buf *body) {
    size_t mark;
    const weft_framing *framing = peer->framing;
    int r = framing->begin(peer->framing_state, out, weft__buf_len(body), &mark);
    if (r >= 0)
        r = weft__buf_put(out, peer->service->alloc, weft__buf_head(body), weft__buf_len(body));
    return r < 0 ? r : framing->end(peer->framing_state, out, mark);
}

/* The whole frame for this peer's kind of framing; borrowed from shared. -ENOTSUP: frames of this peer cannot be shared. */
static int shared_frame(weft_shared *shared, weft_peer *peer, weft_bytes *ret) {
    const weft_framing *framing = weft__framing_in_use(peer->framing, peer->framing_state);
    struct kind *kind = shared->kind;
    if (!weft__framing_shares(peer->framing, peer->framing_state)) /* a client's mask, or gzip that not everybody reads */
        return -ENOTSUP;
    while (kind < shared->kind + shared->kinds && (kind->framing != framing || kind->deflate != peer->deflate))
        kind++;
    if (kind == shared->kind + MAX_KINDS)
        return -ENOTSUP;
    if (kind == shared->kind + shared->kinds) {
        weft_buf frame = {0};
        int r = frame_body(peer, &frame, &shared->body);
        if (r < 0) {
            weft__buf_done(&frame, shared->service->alloc);
            return r;
        }
        *kind = (struct kind){framing, peer->deflate, frame};
        shared->kinds++;
    }
    *ret = (weft_bytes){weft__buf_head(&kind->frame), weft__buf_len(&kind->frame)};
    return 0;
}

static int send_own(weft_shared *shared, weft_peer *peer) {
    weft_sending sending;
    int r = weft__send_begin(peer, weft__buf_len(&shared->body), &sending);
    if (r < 0)
        return r;
    r = weft__buf_put(&peer->out, peer->service->alloc, weft__buf_head(&shared->body), weft__buf_len(&shared->body));
    if (r >= 0)
        return weft__send_end(peer, &sending);
    weft__send_undo(peer, &sending);
    return r;
}

static int send_shared_to(weft_shared *shared, weft_peer *peer) {
    weft_bytes frame;
    weft_service *service = peer->service;
    if (peer->status || peer->ended)
        return -EPIPE;
    if (peer->framing->flags & WEFT_FRAMING_NO_NOTES)
        return -ENOTSUP;
    int r = shared_frame(shared, peer, &frame);
    service->stats.notifications_out++;
    if (r == -ENOTSUP)
        return send_own(shared, peer);
    if (r < 0)
        return r;
    if (weft__send_queued(peer) >= service->limits.out_hard) {
        peer->status = -ENOBUFS;
        weft__send_wake(peer);
        return -ENOBUFS;
    }
    r = weft__buf_put(&peer->out, service->alloc, frame.data, frame.len);
    if (r < 0)
        return r;
    if (service->on_message)
        service->on_message(service->ctx, peer, true,
                            (weft_bytes){weft__buf_head(&shared->body), weft__buf_len(&shared->body)});
    service->stats.bytes_out += frame.len;
    weft__send_wake(peer);
    return 0;
}

int weft_shared_send(weft_shared *shared, weft_peer *peer) {
    weft__peer_enter(peer);
    int r = send_shared_to(shared, peer);
    weft__peer_leave(peer);
    return r;
}

weft_shared *weft_shared_free(weft_shared *shared) {
    if (!shared)
        return NULL;
    weft_service *service = shared->service;
    for (size_t i = 0; i < shared->kinds; i++)
        weft__buf_done(&shared->kind[i].frame, service->alloc);
    weft__buf_done(&shared->body, service->alloc);
    weft__free(service->alloc, shared);
    weft_service_unref(service);
    return NULL;
}

void weft_shared_freep(weft_shared **shared) {
    *shared = weft_shared_free(*shared);
}
