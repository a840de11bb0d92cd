/* Content-Length: the base protocol of LSP. A block of headers as in HTTP, an empty line, then as many bytes as they said.
 *
 * Header lines are read one at a time and forgotten at once, so a block that comes byte by byte is looked at once. Lines may
 * end in a bare LF, because hand-written peers do that; everything else that is odd breaks the connection, since whoever
 * misreads a length misreads all that follows. Must not look at the body.
 *
 * Bodies may be packed: "Content-Encoding: gzip", to who has shown that it reads it, by sending some or by "Accept-Encoding:
 * gzip" in any block of headers. Our side shows it when the other side has, or first if it was told to. The length is that
 * of the packed body and counts before it is unpacked, and so does what comes out, while it does. */
#include <errno.h>
#include <stdio.h>

#include "coding.h"
#include "lines.h"

/* A block of headers, the empty line included. Real ones have 20 to 80 bytes; this is what HTTP servers allow for one. */
#define MAX_HEAD (8 * 1024)

#define ACCEPTS "Accept-Encoding: gzip\r\n"
#define PACKED "Content-Encoding: gzip\r\n"
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

/* The other side reads gzip. It is told the same, once. */
static void learn_of_gzip(weft_content_length_state *self) {
    self->announces |= self->gzip && !self->announced;
    self->reads_gzip = true;
}

/* Twice is too often, also of the same: who unpacks once and who unpacks twice would read different messages. */
static void read_coding(weft_content_length_state *self, weft_bytes value) {
    int coding = self->coded ? -ENOTSUP : weft__coding_of(value);
    self->coded = true;
    self->coding = coding < 0 || (coding && !self->gzip) ? -1 : (int8_t) coding;
    if (self->coding > 0)
        learn_of_gzip(self);
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
    if (weft__same_text(line, name_len, "content-encoding"))
        read_coding(self, (weft_bytes){value, value_len});
    else if (weft__same_text(line, name_len, "accept-encoding") && weft__accepts_gzip((weft_bytes){value, value_len}))
        learn_of_gzip(self);
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
    self->coding = 0;
    self->coded = false;
}

/* The body is not wanted: skip what is here and what will come. */
static int skip_counted(weft_content_length_state *self, size_t pos, size_t n, enum weft_frame_kind kind, size_t *ret_used,
                        weft_frame *ret) {
    uint64_t length = (uint64_t) self->length, here = n - pos;
    *ret_used = here < length ? n : pos + (size_t) length;
    *ret = (weft_frame){.kind = kind};
    self->skip = here < length ? length - here : 0;
    next_frame(self);
    return 1;
}

/* A whole packed body. What is too large when it is unpacked, or cannot be, is not a body. */
static int unpack_counted(weft_content_length_state *self, const char *body, size_t max_body, weft_frame *ret) {
    int r = weft__gzip_unpack(self->gzip, body, (size_t) self->length, max_body, &self->plain);
    if (r == -ENOMEM)
        return r;
    if (r == -EMSGSIZE)
        *ret = (weft_frame){.kind = WEFT_FRAME_TOO_LARGE};
    else if (r < 0)
        *ret = (weft_frame){.kind = WEFT_FRAME_UNREADABLE, .code = 1};
    else
        *ret =
            (weft_frame){.kind = WEFT_FRAME_BODY, .body = weft__buf_head(&self->plain), .len = weft__buf_len(&self->plain)};
    return 0;
}

/* Everything up to pos is done with and the body begins there. */
static int read_counted_body(weft_content_length_state *self, char *in, size_t pos, size_t n, size_t max_body,
                             size_t *ret_used, weft_frame *ret) {
    uint64_t length = (uint64_t) self->length, here = n - pos;
    if (length > max_body)
        return skip_counted(self, pos, n, WEFT_FRAME_TOO_LARGE, ret_used, ret);
    if (self->coding < 0)
        return skip_counted(self, pos, n, WEFT_FRAME_UNREADABLE, ret_used, ret);
    if (here < length) {
        *ret_used = pos;
        ret->len = (size_t) length;
        return 0;
    }
    int r = 0;
    if (self->coding)
        r = unpack_counted(self, in + pos, max_body, ret);
    else
        *ret = (weft_frame){.kind = WEFT_FRAME_BODY, .body = in + pos, .len = (size_t) length};
    if (r < 0)
        return r;
    *ret_used = pos + (size_t) length;
    next_frame(self);
    return 1;
}

int weft__content_length_init(void *state, const weft_framing_opts *opts) {
    weft_content_length_state *self = state;
    self->alloc = opts->alloc;
    self->length = -1;
    self->gzip = opts->gzip;
    self->announces = opts->gzip && opts->offers_gzip;
    return 0;
}

void weft__content_length_done(void *state) {
    weft_content_length_state *self = state;
    weft__buf_done(&self->plain, self->alloc);
}

int weft__content_length_decode(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    weft_content_length_state *self = state;
    size_t pos = 0;
    if (self->plain.data)
        weft__buf_done(&self->plain, self->alloc);
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

/* Write the frame anew with the packed body, which is the smaller one: there is room. */
static int write_packed(weft_content_length_state *self, weft_buf *out, size_t mark, const weft_buf *packed) {
    char text[sizeof HEAD + 24 + sizeof PACKED];
    int n = snprintf(text, sizeof text, HEAD "%zu\r\n" PACKED "\r\n", weft__buf_len(packed));
    out->end = out->start + mark;
    int r = weft__buf_put(out, self->alloc, text, (size_t) n);
    return r < 0 ? r : weft__buf_put(out, self->alloc, weft__buf_head(packed), weft__buf_len(packed));
}

/* Pack the body behind the mark if the other side reads that and it pays. 1 it is packed, 0 it is as it was. */
static int pack_frame(weft_content_length_state *self, weft_buf *out, size_t mark) {
    weft_buf packed = {0};
    size_t body_at = mark + head.len + self->digits + 4, len = weft__buf_len(out) - body_at;
    int r = weft__pack_if_worth(self->gzip, weft__buf_head(out) + body_at, len, &packed);
    if (r > 0 && write_packed(self, out, mark, &packed) < 0)
        r = -ENOMEM;
    weft__buf_done(&packed, self->alloc);
    return r;
}

/* Behind the first header, because that is how others know what this is. */
static int announce_gzip(weft_content_length_state *self, weft_buf *out, size_t mark) {
    int r = weft__buf_reserve(out, self->alloc, sizeof ACCEPTS);
    if (r < 0)
        return r;
    char *frame = weft__buf_head(out) + mark, *line = memchr(frame, '\n', weft__buf_len(out) - mark);
    memmove(line + 1 + sizeof ACCEPTS - 1, line + 1, (size_t) (weft__buf_tail(out) - line) - 1);
    memcpy(line + 1, ACCEPTS, sizeof ACCEPTS - 1);
    out->end += sizeof ACCEPTS - 1;
    self->announces = false;
    self->announced = true;
    return 0;
}

int weft__content_length_end(void *state, weft_buf *out, size_t mark) {
    weft_content_length_state *self = state;
    int r = self->gzip && self->reads_gzip ? pack_frame(self, out, mark) : 0;
    if (r == 0)
        r = weft__sized_end(out, self->alloc, head.len, self->digits, mark);
    return r >= 0 && self->announces ? announce_gzip(self, out, mark) : r < 0 ? r : 0;
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
    .done = weft__content_length_done,
    .decode = weft__content_length_decode,
    .begin = weft__content_length_begin,
    .end = weft__content_length_end,
    .finish = weft__content_length_finish,
};
