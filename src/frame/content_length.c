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

static int read_length(weft_content_length_state *self, const char *value, size_t len) {
    int64_t length;
    int r = weft__parse_length(value, len, &length);
    if (r < 0)
        return r;
    if (self->length >= 0 && self->length != length)
        return -EPROTO;
    self->length = length;
    return 0;
}

static bool is_name_byte(char c) {
    return (unsigned char) c > ' ' && (unsigned char) c < 0x7f;
}

/* One line without its end. */
static int read_header_line(weft_content_length_state *self, const char *line, size_t len) {
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
        return read_length(self, value, value_len);
    /* A body that we could not read anyhow; compressed ones are not asked for. */
    if (weft__same_text(line, name_len, "content-encoding"))
        return weft__same_text(value, value_len, "identity") ? 0 : -EPROTO;
    return 0;
}

/* Read lines up to the empty one; *pos moves behind what is finished with. 1 the block is complete, 0 more is needed. */
static int read_header_block(weft_content_length_state *self, char *in, size_t n, size_t *pos) {
    for (;;) {
        const char *newline = weft__find_newline(in + *pos + self->seen, in + n);
        const char *line = in + *pos;
        size_t len = newline ? (size_t) (newline - line) : n - *pos;
        if (self->head + len + (newline != NULL) > MAX_HEAD)
            return -EPROTO;
        self->seen = newline ? 0 : len;
        if (!newline)
            return 0;
        *pos += len + 1;
        self->head += len + 1;
        if (len && line[len - 1] == '\r')
            len--;
        if (len == 0)
            return self->length < 0 ? -EPROTO : 1;
        int r = read_header_line(self, line, len);
        if (r < 0)
            return r;
    }
}

static void next_frame(weft_content_length_state *self) {
    self->head = 0;
    self->length = -1;
    self->in_body = false;
}

/* Everything up to pos is done with and the body begins there. */
static int read_counted_body(weft_content_length_state *self, char *in, size_t pos, size_t n, size_t max_body,
                             size_t *ret_used, weft_frame *ret) {
    uint64_t length = (uint64_t) self->length, here = n - pos;
    if (length > max_body) {
        *ret_used = here < length ? n : pos + (size_t) length;
        *ret = (weft_frame){.kind = WEFT_FRAME_TOO_LARGE};
        self->skip = here < length ? length - here : 0;
        next_frame(self);
        return 1;
    }
    if (here < length) {
        *ret_used = pos;
        ret->len = (size_t) length;
        return 0;
    }
    *ret_used = pos + (size_t) length;
    *ret = (weft_frame){.kind = WEFT_FRAME_BODY, .body = in + pos, .len = (size_t) length};
    next_frame(self);
    return 1;
}

int weft__content_length_init(void *state, const weft_framing_opts *opts) {
    weft_content_length_state *self = state;
    self->alloc = opts->alloc;
    self->length = -1;
    return 0;
}

int weft__content_length_decode(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    weft_content_length_state *self = state;
    size_t pos = 0;
    if (self->skip) {
        pos = self->skip < n ? (size_t) self->skip : n;
        self->skip -= pos;
    }
    if (!self->in_body) {
        int r = read_header_block(self, in, n, &pos);
        if (r < 0)
            return r;
        if (r == 0) {
            *ret_used = pos;
            ret->len = 0;
            return 0;
        }
        self->in_body = true;
    }
    return read_counted_body(self, in, pos, n, max_body, ret_used, ret);
}

int weft__content_length_begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark) {
    weft_content_length_state *self = state;
    return weft__sized_begin(out, self->alloc, head, hint, &self->digits, ret_mark);
}

int weft__content_length_end(void *state, weft_buf *out, size_t mark) {
    weft_content_length_state *self = state;
    return weft__sized_end(out, self->alloc, head.len, self->digits, mark);
}

/* Only between two frames may the input end. */
int weft__content_length_finish(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    (void) in, (void) max_body, (void) ret;
    const weft_content_length_state *self = state;
    if (n || self->head || self->in_body || self->skip)
        return -EPROTO;
    *ret_used = 0;
    return 0;
}

const weft_framing weft_content_length = {
    .name = "content-length",
    .state_size = sizeof(weft_content_length_state),
    .init = weft__content_length_init,
    .decode = weft__content_length_decode,
    .begin = weft__content_length_begin,
    .end = weft__content_length_end,
    .finish = weft__content_length_finish,
};
