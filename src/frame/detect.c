/* Either NDJSON or Content-Length, decided by the first bytes of the connection and answered in kind.
 *
 * The first bytes that are no white space decide: "Content-" or "Accept-", in any case, begins a header, anything else is a
 * line. While only a part of such a word is there, decoding waits; a newline is no part of it and so decides too. Until
 * there is a decision we write NDJSON. Must not do any framing itself. */
#include <errno.h>

#include "lines.h"

/* Of the headers that there are: Content-Length, Content-Type, Content-Encoding, Accept-Encoding. */
static const char *const words[] = {"content-", "accept-"};

enum mode { UNDECIDED, LINES, HEADERS };

typedef struct detect_state {
    enum mode mode;
    weft_ndjson_state lines;
    weft_content_length_state headers;
} detect_state;

static enum mode compare_word(const char *word, const char *in, size_t n) {
    size_t i = 0;
    for (; i < n && word[i]; i++)
        if (weft__lower(in[i]) != word[i])
            return LINES;
    return word[i] ? UNDECIDED : HEADERS;
}

static enum mode decide_mode(const char *in, size_t n) {
    enum mode mode = compare_word(words[0], in, n);
    return mode == LINES ? compare_word(words[1], in, n) : mode;
}

static int decode_decided(detect_state *self, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    if (self->mode == LINES)
        return weft__ndjson_decode(&self->lines, in, n, max_body, ret_used, ret);
    return weft__content_length_decode(&self->headers, in, n, max_body, ret_used, ret);
}

static int decode_first(detect_state *self, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    size_t blank = 0;
    while (blank < n && weft__is_space(in[blank]))
        blank++;
    self->mode = decide_mode(in + blank, n - blank);
    if (self->mode == UNDECIDED) {
        *ret_used = blank;
        ret->len = 0;
        return 0;
    }
    int r = decode_decided(self, in + blank, n - blank, max_body, ret_used, ret);
    if (r >= 0)
        *ret_used += blank;
    return r;
}

static WEFT_NOINLINE int decode_other(detect_state *self, char *in, size_t n, size_t max_body, size_t *ret_used,
                                      weft_frame *ret) {
    if (self->mode == UNDECIDED)
        return decode_first(self, in, n, max_body, ret_used, ret);
    return decode_decided(self, in, n, max_body, ret_used, ret);
}

static int detect_decode(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    detect_state *self = state;
    if (WEFT_LIKELY(self->mode == LINES))
        return weft__ndjson_decode(&self->lines, in, n, max_body, ret_used, ret);
    return decode_other(self, in, n, max_body, ret_used, ret);
}

static int detect_begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark) {
    detect_state *self = state;
    if (self->mode == HEADERS)
        return weft__content_length_begin(&self->headers, out, hint, ret_mark);
    return weft__ndjson_begin(&self->lines, out, hint, ret_mark);
}

static int detect_end(void *state, weft_buf *out, size_t mark) {
    detect_state *self = state;
    if (self->mode == HEADERS)
        return weft__content_length_end(&self->headers, out, mark);
    return weft__ndjson_end(&self->lines, out, mark);
}

static int detect_finish(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    detect_state *self = state;
    if (self->mode == HEADERS)
        return weft__content_length_finish(&self->headers, in, n, max_body, ret_used, ret);
    return weft__ndjson_finish(&self->lines, in, n, max_body, ret_used, ret);
}

static int detect_init(void *state, const weft_framing_opts *opts) {
    detect_state *self = state;
    int r = weft__ndjson_init(&self->lines, opts);
    return r < 0 ? r : weft__content_length_init(&self->headers, opts);
}

static void detect_done(void *state) {
    weft__content_length_done(&((detect_state *) state)->headers);
}

bool weft__framing_shares(const weft_framing *framing, const void *state) {
    const weft_content_length_state *headers = NULL;
    if (framing == &weft_content_length)
        headers = state;
    else if (framing == &weft_detect && ((const detect_state *) state)->mode == HEADERS)
        headers = &((const detect_state *) state)->headers;
    return framing != &weft_websocket_client && (!headers || !(headers->reads_gzip || headers->announces));
}

const weft_framing *weft__framing_in_use(const weft_framing *framing, const void *state) {
    if (framing != &weft_detect)
        return framing;
    return ((const detect_state *) state)->mode == HEADERS ? &weft_content_length : &weft_ndjson;
}

const weft_framing weft_detect = {
    .name = "detect",
    .state_size = sizeof(detect_state),
    .flags = WEFT_FRAMING_LINES,
    .init = detect_init,
    .done = detect_done,
    .decode = detect_decode,
    .begin = detect_begin,
    .end = detect_end,
    .finish = detect_finish,
};
