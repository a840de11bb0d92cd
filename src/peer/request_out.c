/* Writing a request or notification of ours, signed where that was asked for. How to sign is not known here: that needs a
 * clock, random numbers and a key. */
#include <errno.h>

#include "call.h"
#include "encode.h"
#include "scan.h"

/* More than a signature needs (WEFT_AUTH_MAX), with its name. */
#define MAX_AUTH 600
#define AUTH_NAME ",\"auth\":"

/* The message is what lies behind before; its last byte is the closing brace. */
static int add_auth(weft_peer *peer, weft_buf *out, size_t before) {
    char auth[MAX_AUTH];
    const char *text, *rest;
    weft_msg msg;
    int r = weft__buf_reserve(out, peer->service->alloc, 1);
    if (r < 0)
        return r;
    text = weft__buf_head(out) + before;
    *weft__buf_tail(out) = '\0'; /* for the scanner */
    r = weft__msg_parse(text, WEFT_MAX_DEPTH, false, &msg, &rest);
    if (r >= 0)
        r = peer->sign(peer->sign_ctx, msg.method, msg.id, msg.params, auth, sizeof auth);
    if (r < 0)
        return r;
    size_t len = (size_t) r;
    r = weft__buf_reserve(out, peer->service->alloc, sizeof AUTH_NAME + len);
    if (r < 0)
        return r;
    out->end--;
    weft__buf_put(out, peer->service->alloc, AUTH_NAME, sizeof AUTH_NAME - 1);
    weft__buf_put(out, peer->service->alloc, auth, len);
    return weft__buf_put(out, peer->service->alloc, "}", 1);
}

int weft__request_write(weft_peer *peer, weft_buf *out, int64_t id, const char *method, const weft_val *params,
                        const weft_extras *extras) {
    size_t before = weft__buf_len(out);
    int r = weft__request_fits(method, params);
    if (r >= 0)
        r = weft__write_request(out, peer->service->alloc, id, method, params, extras);
    if (r < 0 || !peer->sign)
        return r;
    r = add_auth(peer, out, before);
    if (r < 0)
        out->end = out->start + before;
    return r;
}
