/* The order of requests on one connection. A method may need a moment to store what it changes; whoever asks for something
 * behind it wants to see the change. One message waits here and the connection is not read meanwhile, so that nothing grows.
 */
#include <errno.h>

#include "request.h"

struct weft_held {
    size_t len;
    char text[]; /* and WEFT_SLACK bytes */
};

static bool starts_with(weft_bytes name, const char *start) {
    size_t len = strlen(start);
    return name.len >= len && memcmp(name.data, start, len) == 0;
}

/* What changes something is stored together with others like it; what only looks wants to see them all. */
static bool is_stored_together(const weft_method *row) {
    return (row->flags & WEFT_ROW_SOON) && (row->flags & WEFT_ROW_CHANGES);
}

/* Answers never wait: who waits for them may be the one that the others wait for. Nor does cancelling, or progress. */
bool weft__held_must_wait(const weft_peer *peer, const weft_msg *msg) {
    if (msg->kind == WEFT_MSG_BATCH || msg->kind == WEFT_MSG_INVALID)
        return true;
    if (msg->kind == WEFT_MSG_ANSWER || starts_with(msg->method, "$/") || starts_with(msg->method, "notifications/"))
        return false;
    const weft_method *row = weft__methods_resolve(&peer->service->methods, msg->method.data, msg->method.len);
    return !row || peer->looking || !is_stored_together(row);
}

void weft__held_begun(weft_peer *peer, const weft_method *row, size_t bytes) {
    peer->soon++;
    peer->soon_bytes += bytes;
    peer->looking |= !is_stored_together(row);
}

int weft__held_keep(weft_peer *peer, const char *text, size_t len) {
    struct weft_held *held = weft__alloc(peer->service->alloc, sizeof *held + len + WEFT_SLACK);
    if (!held)
        return -ENOMEM;
    held->len = len;
    memcpy(held->text, text, len);
    memset(held->text + len, 0, WEFT_SLACK);
    peer->held = held;
    return 0;
}

struct weft_held *weft__held_take(weft_peer *peer) {
    struct weft_held *held = peer->held;
    peer->held = NULL;
    return held;
}

char *weft__held_text(struct weft_held *held, size_t *ret_len) {
    *ret_len = held->len;
    return held->text;
}

void weft__held_free(const weft_peer *peer, struct weft_held *held) {
    weft__free(peer->service->alloc, held);
}

void weft__held_answered(weft_peer *peer, size_t bytes) {
    bool was_much = peer->soon_bytes >= WEFT_SOON_BYTES;
    peer->soon--;
    peer->soon_bytes -= bytes;
    peer->looking &= peer->soon > 0;
    bool goes_on = (!peer->soon && peer->held) || (was_much && peer->soon_bytes < WEFT_SOON_BYTES);
    if (goes_on && peer->carrier_table && peer->carrier_table->resume)
        peer->carrier_table->resume(peer, peer->carrier);
}
