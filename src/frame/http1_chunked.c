/* Chunked bodies (RFC 9112 section 7.1), decoded where they lie, a piece at a time.
 *
 * As strict as the heads: CRLF only, no blank behind a size, sizes without sign or prefix. Extensions are passed over and
 * trailers thrown away, both within limits, because nobody here asks for them. */
#include <errno.h>

#include "http1.h"
#include "http1_bytes.h"

/* A size line with its extensions. Nobody is known to send an extension; this is room for an honest one. */
#define MAX_SIZE_LINE 256
/* All trailers together: half of what a head may have. */
#define MAX_TRAILERS (8 * 1024)

/*  SIZE ──digit──▶ DIGITS ──;──▶ EXTENSION ──CR──▶ SIZE_LF ──LF──▶ DATA ──all──▶ DATA_CR ──▶ DATA_LF ──▶ SIZE
 *                                                          ──size 0──▶ LINE
 *  LINE ──name──▶ NAME ──:──▶ FIELD ──CR──▶ FIELD_LF ──▶ LINE      LINE ──CR──▶ LAST_LF ──▶ DONE */
enum { SIZE, DIGITS, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, LINE, NAME, FIELD, FIELD_LF, LAST_LF, DONE };

static int size_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char) (c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool is_class(char c, unsigned char class) {
    return weft__http_bytes[(unsigned char) c] & class;
}

/* The state behind this byte of a size, or -EBADMSG. */
static int step_size(weft_chunked *self, char c) {
    int digit = size_digit(c);
    if (digit >= 0) {
        if (self->left > (uint64_t) INT64_MAX >> 4)
            return -EBADMSG;
        self->left = self->left << 4 | (uint64_t) digit;
        return DIGITS;
    }
    if (self->state == SIZE)
        return -EBADMSG;
    return c == '\r' ? SIZE_LF : c == ';' ? EXTENSION : -EBADMSG;
}

static int after_size(weft_chunked *self) {
    self->line = 0;
    return self->left ? DATA : LINE;
}

/* The state behind this byte, which is not one of the body's, or -EBADMSG. */
static int chunked_step(weft_chunked *self, char c) {
    switch (self->state) {
    case SIZE:
    case DIGITS:
        return step_size(self, c);
    case EXTENSION:
        return c == '\r' ? SIZE_LF : is_class(c, HTTP_VALUE) ? EXTENSION : -EBADMSG;
    case SIZE_LF:
        return c == '\n' ? after_size(self) : -EBADMSG;
    case DATA_CR:
        return c == '\r' ? DATA_LF : -EBADMSG;
    case DATA_LF:
        self->line = 0;
        return c == '\n' ? SIZE : -EBADMSG;
    case LINE:
        return c == '\r' ? LAST_LF : is_class(c, HTTP_TOKEN) ? NAME : -EBADMSG;
    case NAME:
        return c == ':' ? FIELD : is_class(c, HTTP_TOKEN) ? NAME : -EBADMSG;
    case FIELD:
        return c == '\r' ? FIELD_LF : is_class(c, HTTP_VALUE) ? FIELD : -EBADMSG;
    case FIELD_LF:
        return c == '\n' ? LINE : -EBADMSG;
    default:
        return c == '\n' ? DONE : -EBADMSG;
    }
}

static int read_chunked_byte(weft_chunked *self, char c) {
    size_t limit = self->state < DATA ? MAX_SIZE_LINE : MAX_TRAILERS;
    if (++self->line > limit)
        return -EBADMSG;
    int next = chunked_step(self, c);
    if (next >= 0)
        self->state = next;
    return next < 0 ? next : 0;
}

/* Bring body bytes forward to where the body so far ends. How many there were. */
static size_t read_data(weft_chunked *self, char *to, const char *from, size_t n) {
    size_t take = self->left < n ? (size_t) self->left : n;
    if (to != from)
        memmove(to, from, take);
    self->left -= take;
    if (self->left == 0)
        self->state = DATA_CR;
    return take;
}

int weft__chunked(weft_chunked *state, char *in, size_t n, size_t *ret_used, size_t *ret_body) {
    size_t pos = 0, body = 0;
    while (pos < n && state->state != DONE) {
        if (state->state == DATA) {
            size_t take = read_data(state, in + body, in + pos, n - pos);
            body += take;
            pos += take;
            continue;
        }
        int r = read_chunked_byte(state, in[pos++]);
        if (r < 0)
            return r;
    }
    *ret_used = pos;
    *ret_body = body;
    return state->state == DONE;
}
