/* A batch that came in: its items are dispatched one by one, its answers are collected and sent as one array when the last
 * is there. Nothing is sent when none of its items wanted an answer. */
#include <errno.h>

#include "send.h"

struct weft_batch_in {
    weft_service *service; /* referenced: the last answer may come after the connection has gone */
    weft_buf text;
    size_t waiting; /* items not answered yet, and one for the dispatching itself */
};

weft_buf *weft__batch_in_text(struct weft_batch_in *batch) {
    return &batch->text;
}

static void send_batch_answers(struct weft_batch_in *batch, weft_peer *peer) {
    weft_sending sending;
    const weft_alloc *alloc = batch->service->alloc;
    size_t len = weft__buf_len(&batch->text);
    int r = weft__send_begin(peer, len + 1, &sending);
    if (r < 0)
        return;
    r = weft__buf_put(&peer->out, alloc, weft__buf_head(&batch->text), len);
    if (r >= 0)
        r = weft__buf_put(&peer->out, alloc, "]", 1);
    if (r >= 0)
        r = weft__send_end(peer, &sending);
    else
        weft__send_undo(peer, &sending);
    if (r == -ENOMEM && !peer->status)
        peer->status = r; /* the callers must not wait for ever */
}

void weft__batch_in_answered(struct weft_batch_in *batch, weft_peer *peer) {
    if (--batch->waiting)
        return;
    weft_service *service = batch->service;
    if (peer && weft__buf_len(&batch->text))
        send_batch_answers(batch, peer);
    weft__buf_done(&batch->text, service->alloc);
    weft__free(service->alloc, batch);
    weft_service_unref(service);
}

static size_t count_items(const char *text, bool lenient, size_t limit) {
    weft_msg item;
    size_t count = 0;
    while (count <= limit && weft__batch_next(&text, lenient, &item) > 0)
        count++;
    return count;
}

static void run_items(weft_peer *peer, const char *text, size_t count) {
    weft_service *service = peer->service;
    struct weft_batch_in *batch = weft__zalloc(service->alloc, sizeof *batch);
    if (!batch) {
        peer->status = -ENOMEM;
        return;
    }
    batch->service = weft_service_ref(service);
    batch->waiting = count + 1;
    weft_msg item;
    while (weft__batch_next(&text, peer->lenient, &item) > 0) {
        if (peer->freed) /* by the handler of an item before this one */
            weft__batch_in_answered(batch, NULL);
        else
            weft__dispatch(peer, &item, batch);
    }
    weft__batch_in_answered(batch, peer);
}

void weft__batch_in_run(weft_peer *peer, const char *text) {
    size_t limit = peer->service->limits.max_batch;
    peer->service->stats.batches++;
    const weft_bytes no_id = {0};
    if (peer->no_batch) {
        weft__answer_error(peer, NULL, no_id, WEFT_INVALID_REQUEST, "Invalid Request", "invalidRequest",
                           "batches are not part of this protocol");
        return;
    }
    size_t count = count_items(text, peer->lenient, limit);
    if (count == 0)
        weft__answer_error(peer, NULL, no_id, WEFT_INVALID_REQUEST, "Invalid Request", "invalidRequest",
                           "the batch is empty");
    else if (count > limit)
        weft__answer_error(peer, NULL, no_id, WEFT_INVALID_REQUEST, "Invalid Request", "tooLarge",
                           "the batch has too many items");
    else
        run_items(peer, text, count);
}
