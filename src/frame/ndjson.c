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

static int too_large(size_t used, size_t *ret_used, weft_frame *ret) {
    *ret_used = used;
    *ret = (weft_frame){.kind = WEFT_FRAME_TOO_LARGE};
    return 1;
}

/* The line that begins at pos has no end yet. If its last byte is a CR, that may turn out to belong to its end. */
static int unfinished(weft_ndjson_state *state, const char *in, size_t pos, size_t n, size_t max_body, size_t *ret_used,
                      weft_frame *ret) {
    size_t len = n - pos;
    if (len > max_body && (len - max_body > 1 || in[n - 1] != '\r')) {
        state->skipping = true;
        state->seen = 0;
        return too_large(n, ret_used, ret);
    }
    state->seen = len;
    *ret_used = pos;
    ret->len = 0;
    return 0;
}

/* Drop what belongs to a line that was too large. The first byte behind it, or n. */
static size_t skip_line(weft_ndjson_state *state, char *in, size_t n) {
    const char *newline = weft__find_newline(in, in + n);
    if (!newline)
        return n;
    state->skipping = false;
    return (size_t) (newline - in) + 1;
}

int weft__ndjson_decode(weft_ndjson_state *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    size_t pos = state->skipping ? skip_line(state, in, n) : 0;
    if (state->seen == 0)
        while (pos < n && weft__is_space(in[pos]))
            pos++;

    const char *newline = weft__find_newline(in + pos + state->seen, in + n);
    if (!newline)
        return unfinished(state, in, pos, n, max_body, ret_used, ret);

    /* in[pos] is no white space, so the line holds at least one byte besides its end. */
    size_t end = (size_t) (newline - in);
    size_t used = end + 1;
    if (in[end - 1] == '\r')
        end--;
    state->seen = 0;
    if (end - pos > max_body)
        return too_large(used, ret_used, ret);
    *ret_used = used;
    *ret = (weft_frame){.kind = WEFT_FRAME_BODY, .body = in + pos, .len = end - pos};
    return 1;
}

int weft__ndjson_finish(weft_ndjson_state *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    size_t used;
    in[n] = '\n';
    int r = weft__ndjson_decode(state, in, n + 1, max_body, &used, ret);
    *ret_used = used > n ? n : used;
    return r;
}

int weft__ndjson_begin(weft_ndjson_state *state, weft_buf *out, size_t hint, size_t *ret_mark) {
    int r = weft__buf_reserve(out, state->alloc, hint + 1);
    if (r < 0)
        return r;
    *ret_mark = weft__buf_len(out);
    return 0;
}

int weft__ndjson_end(weft_ndjson_state *state, weft_buf *out, size_t mark) {
    int r = weft__buf_reserve(out, state->alloc, 1);
    if (r < 0)
        return r;
    weft__flatten(weft__buf_head(out) + mark, weft__buf_tail(out));
    out->data[out->end++] = '\n';
    return 0;
}

static int init(void *state, const weft_framing_opts *opts) {
    ((weft_ndjson_state *) state)->alloc = opts->alloc;
    return 0;
}

static int decode(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    return weft__ndjson_decode(state, in, n, max_body, ret_used, ret);
}

static int finish(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    return weft__ndjson_finish(state, in, n, max_body, ret_used, ret);
}

static int begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark) {
    return weft__ndjson_begin(state, out, hint, ret_mark);
}

static int end(void *state, weft_buf *out, size_t mark) {
    return weft__ndjson_end(state, out, mark);
}

const weft_framing weft_ndjson = {
    .name = "ndjson",
    .state_size = sizeof(weft_ndjson_state),
    .flags = WEFT_FRAMING_LINES,
    .init = init,
    .decode = decode,
    .begin = begin,
    .end = end,
    .finish = finish,
};
