/* NDJSON, Content-Length and their detection: however the bytes are cut, the same frames come out, and what is written by
 * one is read back by it, also packed. The first byte chooses the framing and whether gzip is read, the second the limit,
 * the third the size of the pieces. */
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "fuzz_memory.h"
#include "gzip.h"

#define KEEP_LIMIT (16 * 1024)

static weft_gzip *gzip; /* NULL: packed bodies are refused */

typedef struct trace {
    weft_buf log;
    int r;
} trace;

static void note(trace *trace, char kind, const char *body, size_t len) {
    require(weft__buf_put(&trace->log, NULL, &kind, 1) == 0);
    require(weft__buf_put(&trace->log, NULL, &len, sizeof len) == 0);
    require(weft__buf_put(&trace->log, NULL, body, len) == 0);
}

/* Everything that lies in left[0..*n) up to where more is needed; what is used is cut off. */
static void drain(const weft_framing *framing, void *state, char *left, size_t *n, size_t max, trace *trace) {
    size_t pos = 0;
    do {
        size_t used = 0;
        weft_frame frame = {0};
        trace->r = framing->decode(state, left + pos, *n - pos, max, &used, &frame);
        if (trace->r < 0)
            break;
        require(used <= *n - pos);
        if (trace->r == 1 && frame.kind == WEFT_FRAME_BODY) {
            bool inside = frame.body >= left + pos && frame.body + frame.len <= left + pos + used;
            require(frame.len <= max && (inside || gzip)); /* what was packed lies elsewhere */
            note(trace, 'b', frame.body, frame.len);
        } else if (trace->r == 1)
            note(trace, frame.kind == WEFT_FRAME_UNREADABLE ? 'u' : 'l', NULL, 0);
        pos += used;
    } while (trace->r == 1);
    *n -= pos;
    memmove(left, left + pos, *n);
}

static trace decode_pieces(const weft_framing *framing, const char *data, size_t size, size_t max, size_t piece) {
    trace trace = {0};
    void *state = calloc(1, framing->state_size);
    char *left = malloc(size + WEFT_SLACK);
    size_t n = 0;
    require(framing->init(state, &(weft_framing_opts){.gzip = gzip}) == 0);
    for (size_t pos = 0; pos < size && trace.r >= 0; pos += piece) {
        size_t add = piece < size - pos ? piece : size - pos;
        memcpy(left + n, data + pos, add);
        n += add;
        drain(framing, state, left, &n, max, &trace);
        require(n <= max + KEEP_LIMIT);
    }
    size_t used = 0;
    weft_frame frame = {0};
    if (trace.r >= 0) {
        trace.r = framing->finish(state, left, n, max, &used, &frame);
        if (trace.r == 1)
            note(&trace, frame.kind == WEFT_FRAME_BODY ? 'b' : 'l', frame.body,
                 frame.kind == WEFT_FRAME_BODY ? frame.len : 0);
    }
    free(left);
    if (framing->done)
        framing->done(state);
    free(state);
    return trace;
}

static void compare(const trace *a, const trace *b) {
    require(a->r == b->r);
    require(weft__buf_len(&a->log) == weft__buf_len(&b->log));
    require(!weft__buf_len(&a->log) ||
            memcmp(weft__buf_head(&a->log), weft__buf_head(&b->log), weft__buf_len(&a->log)) == 0);
}

static void round_trip(const weft_framing *framing, const char *body, size_t len) {
    if ((framing->flags & WEFT_FRAMING_LINES) && memchr(body, '\n', len)) /* whoever writes a body keeps these out of it */
        return;
    void *state = calloc(1, framing->state_size);
    weft_buf out = {0};
    size_t mark;
    require(framing->init(state, &(weft_framing_opts){.gzip = gzip}) == 0);
    require(framing->begin(state, &out, len / 3, &mark) == 0);
    require(weft__buf_put(&out, NULL, body, len) == 0);
    require(framing->end(state, &out, mark) == 0);
    if (framing->done)
        framing->done(state);
    free(state);

    trace trace = decode_pieces(framing, weft__buf_head(&out), weft__buf_len(&out), len, SIZE_MAX / 2);
    if (framing == &weft_content_length)
        require(trace.r == 0 && weft__buf_len(&trace.log) == 1 + sizeof len + len &&
                (!len || memcmp(weft__buf_head(&trace.log) + 1 + sizeof len, body, len) == 0));
    else
        require(trace.r >= 0 && weft__buf_len(&trace.log) <= 1 + sizeof len + len);
    weft__buf_done(&trace.log, NULL);
    weft__buf_done(&out, NULL);
}

/* To who has said that it reads gzip: the same body arrives, however often it is repeated. */
static void round_trip_packed(const char *body, size_t len) {
    static const char shows[] = "Content-Length: 0\r\nAccept-Encoding: gzip\r\n\r\n";
    const weft_framing *framing = &weft_content_length;
    char in[sizeof shows + WEFT_SLACK] = {0};
    void *state = calloc(1, framing->state_size);
    weft_buf out = {0}, large = {0};
    weft_frame frame = {0};
    size_t mark, used;
    for (int i = 0; i < 20; i++)
        require(weft__buf_put(&large, NULL, body, len) == 0);
    memcpy(in, shows, sizeof shows - 1);
    require(framing->init(state, &(weft_framing_opts){.gzip = gzip}) == 0);
    require(framing->decode(state, in, sizeof shows - 1, 10, &used, &frame) == 1);
    require(framing->begin(state, &out, 0, &mark) == 0);
    require(weft__buf_put(&out, NULL, weft__buf_head(&large), weft__buf_len(&large)) == 0);
    require(framing->end(state, &out, mark) == 0);
    framing->done(state);
    free(state);
    size_t size = weft__buf_len(&large);
    trace trace = decode_pieces(framing, weft__buf_head(&out), weft__buf_len(&out), size, 100);
    require(trace.r == 0 && weft__buf_len(&trace.log) == 1 + sizeof size + size);
    require(!size || memcmp(weft__buf_head(&trace.log) + 1 + sizeof size, weft__buf_head(&large), size) == 0);
    weft__buf_done(&trace.log, NULL);
    weft__buf_done(&out, NULL);
    weft__buf_done(&large, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const weft_framing *const framings[] = {&weft_ndjson, &weft_content_length, &weft_detect};
    if (size < 3)
        return 0;
    const weft_framing *framing = framings[data[0] % 3];
    gzip = NULL;
    if (data[0] & 64)
        require(weft__gzip_new(NULL, &gzip) == 0);
    size_t max = data[1], piece = 1 + data[2] % 40;
    const char *bytes = (const char *) data + 3;
    size -= 3;

    trace whole = decode_pieces(framing, bytes, size, max, SIZE_MAX / 2);
    trace pieces = decode_pieces(framing, bytes, size, max, piece);
    trace single = decode_pieces(framing, bytes, size, max, 1);
    compare(&whole, &pieces);
    compare(&whole, &single);
    weft__buf_done(&whole.log, NULL);
    weft__buf_done(&pieces.log, NULL);
    weft__buf_done(&single.log, NULL);
    if (framing != &weft_detect)
        round_trip(framing, bytes, size);
    if (gzip && size < 2000)
        round_trip_packed(bytes, size);
    gzip = weft__gzip_free(gzip);
    return 0;
}
