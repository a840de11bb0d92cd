/* Content-Length: the base protocol of LSP. A block of headers as in HTTP, an empty line, then as many bytes as they said.
 *
 * Header lines are read one at a time and forgotten at once, so a block that comes byte by byte is looked at once. Lines may
 * end in a bare LF, because hand-written peers do that; everything else that is odd breaks the connection, since whoever
 * misreads a length misreads all that follows. Must not look at the body. */
#include <errno.h>

#include "lines.h"

/* A block of headers, the empty line included. Real ones have 20 to 80 bytes; this is what HTTP servers allow for one. */
#define MAX_HEAD (8 * 1024)

#define HEAD "Content-Length: "
static const weft_bytes head = {HEAD, sizeof HEAD - 1};

static int read_length(weft_content_length_state *state, const char *value, size_t len) {
    int64_t length;
    int r = weft__parse_length(value, len, &length);
    if (r < 0)
        return r;
    if (state->length >= 0 && state->length != length)
        return -EPROTO;
    state->length = length;
    return 0;
}

static bool is_name_byte(char c) {
    return (unsigned char) c > ' ' && (unsigned char) c < 0x7f;
}

/* One line without its end. */
static int read_header(weft_content_length_state *state, const char *line, size_t len) {
    const char *colon = memchr(line, ':', len);
    if (!colon || colon == line)
        return -EPROTO;
    size_t name_len = (size_t) (colon - line);
    for (size_t i = 0; i < name_len; i++)
        if (!is_name_byte(line[i]))
            return -EPROTO;

    const char *value = colon + 1, *end = line + len;
    while (value < end && weft__is_space(*value))
        value++;
    while (end > value && weft__is_space(end[-1]))
        end--;
    size_t value_len = (size_t) (end - value);

    if (weft__same_text(line, name_len, "content-length"))
        return read_length(state, value, value_len);
    /* A body that we could not read anyhow; compressed ones are not asked for. */
    if (weft__same_text(line, name_len, "content-encoding"))
        return weft__same_text(value, value_len, "identity") ? 0 : -EPROTO;
    return 0;
}

/* Read lines up to the empty one; *pos moves behind what is finished with. 1 the block is complete, 0 more is needed. */
static int read_head(weft_content_length_state *state, char *in, size_t n, size_t *pos) {
    for (;;) {
        const char *newline = weft__find_newline(in + *pos + state->seen, in + n);
        const char *line = in + *pos;
        size_t len = newline ? (size_t) (newline - line) : n - *pos;
        if (state->head + len + (newline != NULL) > MAX_HEAD)
            return -EPROTO;
        state->seen = newline ? 0 : len;
        if (!newline)
            return 0;
        *pos += len + 1;
        state->head += len + 1;
        if (len && line[len - 1] == '\r')
            len--;
        if (len == 0)
            return state->length < 0 ? -EPROTO : 1;
        int r = read_header(state, line, len);
        if (r < 0)
            return r;
    }
}

static void next_frame(weft_content_length_state *state) {
    state->head = 0;
    state->length = -1;
    state->in_body = false;
}

/* Everything up to pos is done with and the body begins there. */
static int read_body(weft_content_length_state *state, char *in, size_t pos, size_t n, size_t max_body, size_t *ret_used,
                     weft_frame *ret) {
    uint64_t length = (uint64_t) state->length, here = n - pos;
    if (length > max_body) {
        *ret_used = here < length ? n : pos + (size_t) length;
        *ret = (weft_frame){.kind = WEFT_FRAME_TOO_LARGE};
        state->skip = here < length ? length - here : 0;
        next_frame(state);
        return 1;
    }
    if (here < length) {
        *ret_used = pos;
        ret->len = (size_t) length;
        return 0;
    }
    *ret_used = pos + (size_t) length;
    *ret = (weft_frame){.kind = WEFT_FRAME_BODY, .body = in + pos, .len = (size_t) length};
    next_frame(state);
    return 1;
}

int weft__content_length_decode(weft_content_length_state *state, char *in, size_t n, size_t max_body, size_t *ret_used,
                                weft_frame *ret) {
    size_t pos = 0;
    if (state->skip) {
        pos = state->skip < n ? (size_t) state->skip : n;
        state->skip -= pos;
    }
    if (!state->in_body) {
        int r = read_head(state, in, n, &pos);
        if (r < 0)
            return r;
        if (r == 0) {
            *ret_used = pos;
            ret->len = 0;
            return 0;
        }
        state->in_body = true;
    }
    return read_body(state, in, pos, n, max_body, ret_used, ret);
}

/* Only between two frames may the input end. */
int weft__content_length_finish(const weft_content_length_state *state, size_t n, size_t *ret_used) {
    if (n || state->head || state->in_body || state->skip)
        return -EPROTO;
    *ret_used = 0;
    return 0;
}

int weft__content_length_begin(weft_content_length_state *state, weft_buf *out, size_t hint, size_t *ret_mark) {
    return weft__sized_begin(out, state->alloc, head, hint, &state->digits, ret_mark);
}

int weft__content_length_end(weft_content_length_state *state, weft_buf *out, size_t mark) {
    return weft__sized_end(out, state->alloc, head.len, state->digits, mark);
}

int weft__content_length_init(weft_content_length_state *state, const weft_alloc *alloc) {
    state->alloc = alloc;
    state->length = -1;
    return 0;
}

static int init(void *state, const weft_framing_opts *opts) {
    return weft__content_length_init(state, opts->alloc);
}

static int decode(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    return weft__content_length_decode(state, in, n, max_body, ret_used, ret);
}

static int finish(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    (void) in, (void) max_body, (void) ret;
    return weft__content_length_finish(state, n, ret_used);
}

static int begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark) {
    return weft__content_length_begin(state, out, hint, ret_mark);
}

static int end(void *state, weft_buf *out, size_t mark) {
    return weft__content_length_end(state, out, mark);
}

const weft_framing weft_content_length = {
    .name = "content-length",
    .state_size = sizeof(weft_content_length_state),
    .init = init,
    .decode = decode,
    .begin = begin,
    .end = end,
    .finish = finish,
};
