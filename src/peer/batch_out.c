/* Several of our calls and notifications in one message. Each call is in the books from the moment it joins, so that it
 * completes exactly once whether the batch is sent, fails or is thrown away. */
#include <errno.h>

#include "call.h"
#include "encode.h"
#include "send.h"

#define FIRST_CAP 8

struct weft_batch {
    weft_peer *peer;
    weft_service *service;
    weft_buf text;
    struct joined {
        int64_t id;
        weft_call_opts opts;
    } * calls;
    size_t count, cap;
};

int weft_batch_new(weft_peer *peer, weft_batch **ret) {
    weft_batch *batch = weft__zalloc(peer->service->alloc, sizeof *batch);
    if (!batch)
        return -ENOMEM;
    batch->peer = peer;
    batch->service = weft_service_ref(peer->service);
    *ret = batch;
    return 0;
}

static int open_item(weft_batch *batch) {
    return weft__buf_put(&batch->text, batch->service->alloc, weft__buf_len(&batch->text) ? "," : "[", 1);
}

static int remember_call(weft_batch *batch, int64_t id, const weft_call_opts *opts) {
    if (batch->count == batch->cap) {
        size_t cap = batch->cap ? batch->cap * 2 : FIRST_CAP;
        struct joined *calls = weft__resize(batch->service->alloc, batch->calls, cap * sizeof *calls);
        if (!calls)
            return -ENOMEM;
        batch->calls = calls;
        batch->cap = cap;
    }
    batch->calls[batch->count++] = (struct joined){id, *opts};
    return 0;
}

int weft_batch_call(weft_batch *batch, const char *method, weft_val params, const weft_call_opts *opts, int64_t *ret_id) {
    static const weft_call_opts none;
    int64_t id;
    size_t before = weft__buf_len(&batch->text);
    opts = opts ? opts : &none;
    int r = weft__call_open(batch->peer, opts, &id);
    if (r < 0)
        return r;
    r = open_item(batch);
    if (r >= 0)
        r = weft__call_write(batch->peer, &batch->text, id, method, &params, opts);
    if (r >= 0)
        r = remember_call(batch, id, opts);
    if (r < 0) {
        batch->text.end = batch->text.start + before;
        weft__call_undo(batch->peer, id);
        return r;
    }
    batch->service->stats.calls++;
    if (ret_id)
        *ret_id = id;
    return 0;
}

int weft_batch_notify(weft_batch *batch, const char *method, weft_val params) {
    size_t before = weft__buf_len(&batch->text);
    int r = open_item(batch);
    if (r >= 0)
        r = weft__request_write(batch->peer, &batch->text, 0, method, &params, NULL);
    if (r < 0)
        batch->text.end = batch->text.start + before;
    else
        batch->service->stats.notifications_out++;
    return r;
}

static int send_batch(weft_batch *batch) {
    weft_sending sending;
    weft_peer *peer = batch->peer;
    size_t len = weft__buf_len(&batch->text);
    if (!len)
        return 0;
    int r = weft__send_begin(peer, len + 1, &sending);
    if (r < 0)
        return r;
    r = weft__buf_put(&peer->out, batch->service->alloc, weft__buf_head(&batch->text), len);
    if (r >= 0)
        r = weft__buf_put(&peer->out, batch->service->alloc, "]", 1);
    if (r >= 0)
        return weft__send_end(peer, &sending);
    weft__send_undo(peer, &sending);
    return r;
}

static void dispose_batch(weft_batch *batch) {
    weft_service *service = batch->service;
    weft__buf_done(&batch->text, service->alloc);
    weft__free(service->alloc, batch->calls);
    weft__free(service->alloc, batch);
    weft_service_unref(service);
}

/* Out of the books first, told afterwards: a callback may do anything, also free the peer. */
static void fail_batch(weft_batch *batch, int why) {
    weft_peer *peer = batch->peer;
    for (size_t i = 0; i < batch->count; i++)
        if (!weft__call_undo(peer, batch->calls[i].id))
            batch->calls[i].opts.on_answer = NULL;
    weft__peer_enter(peer);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->calls[i].opts.on_answer)
            batch->calls[i].opts.on_answer(peer, why, NULL, batch->calls[i].opts.ctx);
    weft__peer_leave(peer);
}

int weft_batch_send(weft_batch *batch) {
    weft_peer *peer = batch->peer;
    weft__peer_enter(peer);
    int r = send_batch(batch);
    if (r < 0)
        fail_batch(batch, r);
    weft__peer_leave(peer);
    dispose_batch(batch);
    return r;
}

weft_batch *weft_batch_free(weft_batch *batch) {
    if (!batch)
        return NULL;
    fail_batch(batch, -ECANCELED);
    dispose_batch(batch);
    return NULL;
}

void weft_batch_freep(weft_batch **batch) {
    *batch = weft_batch_free(*batch);
}
