/* What the framings of byte streams share: finding a newline, keeping newlines out of a body, heads that end in a length,
 * and direct calls to NDJSON and Content-Length for the framing that chooses between them. Private to this folder. */
#ifndef WEFT_LINES_H
#define WEFT_LINES_H

#include "frame.h"

#if defined(__SSE2__) && !defined(WEFT_PORTABLE)
#define WEFT_LINES_SSE2 1
#include <emmintrin.h>
#endif

/* White space between JSON texts (RFC 8259 section 2). */
static inline bool weft__is_space(char c) {
    return (unsigned char) c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t');
}

/* The first newline, or NULL. WEFT_SLACK bytes behind end may be read. */
static inline char *weft__find_newline(char *p, const char *end) {
#ifdef WEFT_LINES_SSE2
    /* Most messages are shorter than this, and a call of memchr costs as much as looking through 100 bytes here. From there
     * on memchr's wider vectors win. */
    enum { NEAR = 256 };
    const __m128i newline = _mm_set1_epi8('\n');
    for (const char *near = p + NEAR; p < end && p < near; p += 16) {
        int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *) (const void *) p), newline));
        if (mask) {
            p += __builtin_ctz((unsigned) mask);
            return p < end ? p : NULL;
        }
    }
#endif
    return p < end ? memchr(p, '\n', (size_t) (end - p)) : NULL;
}

/* Replace every raw CR and LF by a space: in valid JSON they are white space, and on the wire they would end the line. */
static inline void weft__flatten(char *p, const char *end) {
#ifdef WEFT_LINES_SSE2
    const __m128i newline = _mm_set1_epi8('\n'), carriage = _mm_set1_epi8('\r');
    for (; end - p >= 16; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *) (const void *) p);
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, newline), _mm_cmpeq_epi8(v, carriage));
        if (!_mm_movemask_epi8(hit))
            continue;
        /* c ^ ((c ^ ' ') & hit): a space where it hit. */
        v = _mm_xor_si128(v, _mm_and_si128(_mm_xor_si128(v, _mm_set1_epi8(' ')), hit));
        _mm_storeu_si128((__m128i *) (void *) p, v);
    }
#endif
    for (; p < end; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
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

typedef struct weft_ndjson_state {
    const weft_alloc *alloc;
    size_t seen;   /* bytes of an unfinished line that hold no newline */
    bool skipping; /* inside a line that was reported as too large */
} weft_ndjson_state;

int weft__ndjson_decode(weft_ndjson_state *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret);
int weft__ndjson_finish(weft_ndjson_state *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret);
int weft__ndjson_begin(weft_ndjson_state *state, weft_buf *out, size_t hint, size_t *ret_mark);
int weft__ndjson_end(weft_ndjson_state *state, weft_buf *out, size_t mark);

typedef struct weft_content_length_state {
    const weft_alloc *alloc;
    size_t seen;     /* bytes of an unfinished header line that hold no newline */
    size_t head;     /* bytes of finished lines of this header block */
    int64_t length;  /* -1: not said yet */
    uint64_t skip;   /* bytes of a body that was reported as too large */
    bool in_body;    /* the header block is done with */
    unsigned digits; /* of the frame being written */
} weft_content_length_state;

int weft__content_length_init(weft_content_length_state *state, const weft_alloc *alloc);
int weft__content_length_decode(weft_content_length_state *state, char *in, size_t n, size_t max_body, size_t *ret_used,
                                weft_frame *ret);
int weft__content_length_finish(const weft_content_length_state *state, size_t n, size_t *ret_used);
int weft__content_length_begin(weft_content_length_state *state, weft_buf *out, size_t hint, size_t *ret_mark);
int weft__content_length_end(weft_content_length_state *state, weft_buf *out, size_t mark);

#endif
