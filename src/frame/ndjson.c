/* NDJSON: one text per line. The hottest path of the library: a small message should cost a few nanoseconds here.
 *
 * White space before a text is skipped, newlines included, so blank lines and CRLF need no code of their own. A search that
 * found no newline is resumed where it stopped, so that a line that comes byte by byte is looked at once.
 *
 * A line longer than max_body (its end not counted, be it LF or CRLF) is reported when that is certain and dropped as it
 * comes, so no more than max_body + 1 bytes of a line ever need to be kept.
 *
 * At the end of the input a last line without a newline still counts: finish() does what decode() does once a newline has
 * been put behind the bytes that are left. Must not look at the JSON. */
#include <errno.h>

#include "lines.h"

/* Of a line that is dropped so much is shown, to tell what it was. */
#define SHOWN 4096

/* The same of a line that comes in pieces as of one that is there. */
static int too_large(char *line, size_t max_body, size_t used, size_t *ret_used, weft_frame *ret) {
    *ret_used = used;
    *ret = (weft_frame){.kind = WEFT_FRAME_TOO_LARGE, .body = line, .len = max_body < SHOWN ? max_body : SHOWN};
    return 1;
}

/* The line that begins at pos has no end yet. If its last byte is a CR, that may turn out to belong to its end. */
WEFT_COLD static int wait_for_newline(weft_ndjson_state *self, char *in, size_t pos, size_t n, size_t max_body,
                                      size_t *ret_used, weft_frame *ret) {
    size_t len = n - pos;
    if (len > max_body && (len - max_body > 1 || in[n - 1] != '\r')) {
        self->skipping = true;
        self->seen = 0;
        return too_large(in + pos, max_body, n, ret_used, ret);
    }
    self->seen = len;
    *ret_used = pos;
    ret->len = 0;
    return 0;
}

/* Drop what belongs to a line that was too large. The first byte behind it, or n. */
WEFT_COLD static size_t skip_line(weft_ndjson_state *self, char *in, size_t n) {
    const char *newline = weft__find_newline(in, in + n);
    if (!newline)
        return n;
    self->skipping = false;
    return (size_t) (newline - in) + 1;
}

/* The line that begins at pos ends at newline. */
static inline int take_whole_line(weft_ndjson_state *self, char *in, size_t pos, size_t newline, size_t max_body,
                                  size_t *ret_used, weft_frame *ret) {
    /* in[pos] is no white space, so the line holds at least one byte besides its end. */
    size_t len = newline - pos - (in[newline - 1] == '\r');
    self->seen = 0;
    if (len > max_body)
        return too_large(in + pos, max_body, newline + 1, ret_used, ret);
    *ret_used = newline + 1;
    *ret = (weft_frame){.kind = WEFT_FRAME_BODY, .body = in + pos, .len = len};
    return 1;
}

/* Nothing near; the line may be a long one. */
WEFT_COLD static int look_further(weft_ndjson_state *self, char *in, size_t pos, size_t n, size_t max_body, size_t *ret_used,
                                  weft_frame *ret) {
    size_t from = pos + self->seen + WEFT_NEAR;
    const char *newline = from < n ? memchr(in + from, '\n', n - from) : NULL;
    if (!newline)
        return wait_for_newline(self, in, pos, n, max_body, ret_used, ret);
    return take_whole_line(self, in, pos, (size_t) (newline - in), max_body, ret_used, ret);
}

int weft__ndjson_init(void *state, const weft_framing_opts *opts) {
    ((weft_ndjson_state *) state)->alloc = opts->alloc;
    return 0;
}

/* Anything: after blank lines, in the middle of a line, a long line. */
WEFT_NOINLINE static int decode_any(weft_ndjson_state *self, char *in, size_t n, size_t max_body, size_t *ret_used,
                                    weft_frame *ret) {
    size_t pos = self->skipping ? skip_line(self, in, n) : 0;
    if (self->seen == 0)
        while (pos < n && weft__is_space(in[pos]))
            pos++;

    const char *newline = weft__find_near(in + pos + self->seen, in + n);
    if (!newline)
        return look_further(self, in, pos, n, max_body, ret_used, ret);
    return take_whole_line(self, in, pos, (size_t) (newline - in), max_body, ret_used, ret);
}

static int decode_nothing(size_t *ret_used, weft_frame *ret) {
    *ret_used = 0;
    ret->len = 0;
    return 0;
}

/* Nearly always a short line begins right here and is there as a whole; and behind the last one there is nothing. */
int weft__ndjson_decode(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    weft_ndjson_state *self = state;
    if (!n)
        return decode_nothing(ret_used, ret);
    bool fresh = !self->skipping && self->seen == 0 && (unsigned char) *in > ' ';
    const char *newline = fresh ? weft__find_near(in, in + n) : NULL;
    if (WEFT_RARELY(!newline))
        return decode_any(self, in, n, max_body, ret_used, ret);
    return take_whole_line(self, in, 0, (size_t) (newline - in), max_body, ret_used, ret);
}

int weft__ndjson_begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark) {
    weft_ndjson_state *self = state;
    int r = weft__buf_reserve(out, self->alloc, hint + 1);
    if (r < 0)
        return r;
    *ret_mark = weft__buf_len(out);
    return 0;
}

int weft__ndjson_end(void *state, weft_buf *out, size_t mark) {
    weft_ndjson_state *self = state;
    int r = weft__buf_reserve(out, self->alloc, 1);
    if (r < 0)
        return r;
    (void) mark; /* the body is one line already: whoever writes it sees to that */
    out->data[out->end++] = '\n';
    return 0;
}

int weft__ndjson_finish(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    size_t used;
    in[n] = '\n';
    int r = weft__ndjson_decode(state, in, n + 1, max_body, &used, ret);
    *ret_used = used > n ? n : used;
    return r;
}

const weft_framing weft_ndjson = {
    .name = "ndjson",
    .state_size = sizeof(weft_ndjson_state),
    .flags = WEFT_FRAMING_LINES,
    .init = weft__ndjson_init,
    .decode = weft__ndjson_decode,
    .begin = weft__ndjson_begin,
    .end = weft__ndjson_end,
    .finish = weft__ndjson_finish,
};
