/* One body and nothing around it: what an HTTP answer carries. A transport that uses it knows by other means where a body
 * ends and hands it to the peer directly; body_decode() takes whatever lies there for one whole body. */
#include <errno.h>

#include "frame.h"

static int body_decode(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    (void) state;
    *ret_used = n;
    if (n == 0) {
        ret->len = 0;
        return 0;
    }
    if (n > max_body)
        *ret = (weft_frame){.kind = WEFT_FRAME_TOO_LARGE};
    else
        *ret = (weft_frame){.kind = WEFT_FRAME_BODY, .body = in, .len = n};
    return 1;
}

static int body_begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark) {
    (void) state, (void) hint;
    *ret_mark = weft__buf_len(out);
    return 0;
}

static int body_end(void *state, weft_buf *out, size_t mark) {
    (void) state, (void) out, (void) mark;
    return 0;
}

const weft_framing weft__body = {
    .name = "body",
    .flags = WEFT_FRAMING_NO_CALLS | WEFT_FRAMING_NO_NOTES,
    .decode = body_decode,
    .begin = body_begin,
    .end = body_end,
};
