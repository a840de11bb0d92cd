/* Server-sent events (WHATWG HTML, section 9.2): one data line and an empty line for each body. Out only: a client says
 * nothing on such a stream. */
#include <errno.h>

#include "lines.h"

#define FIELD "data: "
#define FIELD_LEN (sizeof FIELD - 1)
#define END_OF_EVENT "\n\n"
/* A comment, which browsers ignore and proxies take for a sign of life. */
#define COMMENT ":\n\n"

typedef struct sse_state {
    const weft_alloc *alloc;
} sse_state;

static int sse_init(void *state, const weft_framing_opts *opts) {
    ((sse_state *) state)->alloc = opts->alloc;
    return 0;
}

static int sse_decode(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    (void) state, (void) in, (void) n, (void) max_body, (void) ret_used, (void) ret;
    return -ENOTSUP;
}

static int sse_begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark) {
    sse_state *self = state;
    size_t mark = weft__buf_len(out);
    if (hint > SIZE_MAX / 2)
        return -ENOMEM;
    int r = weft__buf_reserve(out, self->alloc, FIELD_LEN + hint + 2);
    if (r < 0)
        return r;
    memcpy(weft__buf_tail(out), FIELD, FIELD_LEN);
    out->end += FIELD_LEN;
    *ret_mark = mark;
    return 0;
}

static int sse_end(void *state, weft_buf *out, size_t mark) {
    sse_state *self = state;
    (void) mark; /* the body is one line already: whoever writes it sees to that */
    return weft__buf_put(out, self->alloc, END_OF_EVENT, sizeof END_OF_EVENT - 1);
}

static int sse_control(void *state, weft_buf *out, enum weft_frame_kind kind, int code, const char *payload, size_t n) {
    (void) code, (void) payload, (void) n;
    sse_state *self = state;
    return kind == WEFT_FRAME_PING ? weft__buf_put(out, self->alloc, COMMENT, sizeof COMMENT - 1) : 0;
}

const weft_framing weft__sse = {
    .name = "sse",
    .state_size = sizeof(sse_state),
    .flags = WEFT_FRAMING_LINES | WEFT_FRAMING_NO_CALLS,
    .init = sse_init,
    .decode = sse_decode,
    .begin = sse_begin,
    .end = sse_end,
    .control = sse_control,
};
