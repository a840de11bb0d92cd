/* What the framings of byte streams share: finding a newline, heads that end in a length,
 * and NDJSON and Content-Length for the framing that chooses between them, which calls them directly. Private to this
 * folder. */
#ifndef WEFT_LINES_H
#define WEFT_LINES_H

#include "frame.h"
#include "hint.h"

#if defined(__SSE2__) && !defined(WEFT_PORTABLE)
#define WEFT_LINES_SSE2 1
#include <emmintrin.h>
#endif

/* White space between JSON texts (RFC 8259 section 2). */
static inline bool weft__is_space(char c) {
    return (unsigned char) c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t');
}

/* Most messages are shorter than this, and a call of memchr costs as much as looking through them in place. From there on
 * memchr's wider vectors win. */
#define WEFT_NEAR 256

/* The first newline among the first WEFT_NEAR bytes, or NULL. WEFT_SLACK bytes behind end may be read. */
static inline char *weft__find_near(char *p, const char *end) {
#ifdef WEFT_LINES_SSE2
    const __m128i newline = _mm_set1_epi8('\n');
    for (const char *stop = end - p < WEFT_NEAR ? end : p + WEFT_NEAR; p < stop; p += 32) {
        const __m128i *v = (const __m128i *) (const void *) p;
        unsigned low = (unsigned) _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(v), newline));
        unsigned high = (unsigned) _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(v + 1), newline));
        unsigned mask = low | high << 16;
        if (mask) {
            p += __builtin_ctz(mask);
            return p < end ? p : NULL;
        }
    }
    return NULL;
#else
    size_t n = end - p < WEFT_NEAR ? (size_t) (end - p) : WEFT_NEAR;
    return n ? memchr(p, '\n', n) : NULL;
#endif
}

/* The first newline, or NULL. WEFT_SLACK bytes behind end may be read. */
static inline char *weft__find_newline(char *p, const char *end) {
    char *newline = weft__find_near(p, end);
    if (newline || end - p <= WEFT_NEAR)
        return newline;
    return memchr(p + WEFT_NEAR, '\n', (size_t) (end - p) - WEFT_NEAR);
}

/* Only ASCII letters have a case here, whatever the locale says. */
static inline char weft__lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char) (c | 0x20) : c;
}
/* Is this text the same as one in lower case? */
bool weft__same_text(const char *text, size_t len, const char *lower);

/* 1*DIGIT and nothing else, at most INT64_MAX. -EPROTO. */
int weft__parse_length(const char *text, size_t len, int64_t *ret);

/* A frame whose head ends in the decimal length of the body and an empty line: "Content-Length: 84\r\n\r\n". The head is
 * written before the body is there, so room is left for as many digits as the hint has; digits is kept until the end. If the
 * guess was wrong the body moves by the difference: leading zeros or blanks would save that, but not every reader takes
 * them. */
int weft__sized_begin(weft_buf *out, const weft_alloc *alloc, weft_bytes head, size_t hint, unsigned *digits,
                      size_t *ret_mark);
int weft__sized_end(weft_buf *out, const weft_alloc *alloc, size_t head_len, unsigned digits, size_t mark);

/* NDJSON and Content-Length as plain functions with the signatures of the table; a state is one of these two structs. */
typedef struct weft_ndjson_state {
    const weft_alloc *alloc;
    size_t seen;   /* bytes of an unfinished line that hold no newline */
    bool skipping; /* inside a line that was reported as too large */
} weft_ndjson_state;

int weft__ndjson_init(void *state, const weft_framing_opts *opts);
int weft__ndjson_decode(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret);
int weft__ndjson_begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark);
int weft__ndjson_end(void *state, weft_buf *out, size_t mark);
int weft__ndjson_finish(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret);

typedef struct weft_content_length_state {
    const weft_alloc *alloc;
    size_t seen;            /* bytes of an unfinished header line that hold no newline */
    size_t head;            /* bytes of finished lines of this header block */
    int64_t length;         /* -1: not said yet */
    uint64_t skip;          /* bytes of a body that was reported as too large */
    bool in_body;           /* the header block is done with */
    unsigned digits;        /* of the frame being written */
    struct weft_gzip *gzip; /* NULL: not read */
    weft_buf plain;         /* the last body that was packed, until the next call */
    int8_t coding;          /* of the body that comes: 0 none, 1 gzip, <0 unreadable */
    bool coded;             /* a header has said so already */
    bool reads_gzip;        /* the other side has said so */
    bool announced;         /* we have said so */
    bool announces;         /* our next frame says so */
} weft_content_length_state;

int weft__content_length_init(void *state, const weft_framing_opts *opts);
int weft__content_length_decode(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret);
int weft__content_length_begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark);
int weft__content_length_end(void *state, weft_buf *out, size_t mark);
void weft__content_length_done(void *state);
int weft__content_length_finish(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret);

#endif
