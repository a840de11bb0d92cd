/* What every framing must do, whatever its bytes look like. Joining it is one line, and its name in the list of cases:
 *
 *     FRAMING_SUITE(ndjson, .out = &weft_ndjson, .in = &weft_ndjson)
 *     TEST_MAIN(CASE(framing_ndjson))
 *
 * Bodies are written by one framing and read by another, so that a client's side can be paired with a server's. */
#ifndef SUITES_FRAMING_H
#define SUITES_FRAMING_H

#include <errno.h>
#include <stdlib.h>

#include "frame.h"
#include "harness.h"

typedef struct framing_pair {
    const char *name;
    const weft_framing *out, *in;        /* who writes and who reads */
    weft_framing_opts out_opts, in_opts; /* alloc is filled in by the suite */
    size_t overhead;                     /* bytes besides max_body that a reader may keep; 0: 16 KiB */
    /* What the bytes would be that make the reader ready, before the first frame. NULL: none. */
    const char *preface;
} framing_pair;

#define FRAMING_SUITE(suite, ...)                                                                                           \
    TEST(framing_##suite) {                                                                                                 \
        static const framing_pair pair = {.name = #suite, __VA_ARGS__};                                                     \
        framing_suite(&pair);                                                                                               \
    }

/* Sizes on both sides of every length that some framing treats in its own way. */
static const size_t framing_sizes[] = {1, 2, 9, 10, 84, 99, 100, 125, 126, 127, 999, 1000, 65535, 65536, 1 << 20};
#define FRAMING_SIZES (sizeof framing_sizes / sizeof framing_sizes[0])
#define FRAMING_NO_LIMIT ((size_t) 1 << 30)

static void framing_row(const framing_pair *pair, const char *what, size_t size) {
    char row[120];
    snprintf(row, sizeof row, "%s: %s, %zu bytes", pair->name, what, size);
    test_row(row);
}

/* A body like a JSON string; size 1 is a number. owned */
static char *framing_body(size_t size) {
    char *body = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        body[i] = (char) ('a' + i * 7 % 26);
    if (size)
        body[0] = body[size - 1] = size == 1 ? '1' : '"';
    body[size] = '\0';
    return body;
}

/* ---- writing ---- */

typedef struct framing_writer {
    const weft_framing *framing;
    const weft_alloc *alloc;
    void *state;
    weft_buf out;
} framing_writer;

static int framing_writer_init(framing_writer *self, const framing_pair *pair, const weft_alloc *alloc) {
    *self = (framing_writer){.framing = pair->out, .alloc = alloc};
    self->state = calloc(1, pair->out->state_size + 1);
    weft_framing_opts opts = pair->out_opts;
    opts.alloc = alloc;
    return pair->out->init ? pair->out->init(self->state, &opts) : 0;
}

static void framing_writer_done(framing_writer *self) {
    if (self->framing->done)
        self->framing->done(self->state);
    free(self->state);
    weft__buf_done(&self->out, self->alloc);
}

static int framing_write(framing_writer *self, const char *body, size_t len, size_t hint) {
    size_t mark;
    int r = self->framing->begin(self->state, &self->out, hint, &mark);
    if (r < 0)
        return r;
    r = weft__buf_put(&self->out, self->alloc, body, len);
    if (r >= 0)
        r = self->framing->end(self->state, &self->out, mark);
    if (r < 0)
        self->out.end = self->out.start + mark;
    return r;
}

/* ---- reading ---- */

typedef struct framing_reader {
    const weft_framing *framing;
    const weft_alloc *alloc;
    void *state;
    size_t max_body, limit;
    char *left; /* bytes not finished with, in memory of exactly their size and the slack */
    size_t left_len, left_cap;
    weft_buf log; /* what came out: for each frame its kind, its length, its bytes */
    size_t bodies, too_large;
    bool moving; /* present what is left at a new address each time */
    int r;
} framing_reader;

static int framing_reader_init(framing_reader *self, const framing_pair *pair, const weft_alloc *alloc, size_t max_body) {
    *self = (framing_reader){.framing = pair->in, .alloc = alloc, .max_body = max_body};
    self->limit = max_body + (pair->overhead ? pair->overhead : 16 * 1024);
    self->state = calloc(1, pair->in->state_size + 1);
    self->left_cap = 256;
    self->left = malloc(self->left_cap + WEFT_SLACK);
    weft_framing_opts opts = pair->in_opts;
    opts.alloc = alloc;
    return pair->in->init ? pair->in->init(self->state, &opts) : 0;
}

static void framing_reader_done(framing_reader *self) {
    if (self->framing->done)
        self->framing->done(self->state);
    free(self->state);
    free(self->left);
    weft__buf_done(&self->log, NULL);
}

static void framing_log(weft_buf *log, enum weft_frame_kind kind, const char *body, size_t len) {
    char head[1 + sizeof len] = {(char) kind};
    memcpy(head + 1, &len, sizeof len);
    CHECK(weft__buf_put(log, NULL, head, sizeof head) == 0);
    CHECK(weft__buf_put(log, NULL, body, len) == 0);
}

static void framing_add(framing_reader *self, const char *data, size_t n) {
    size_t len = self->left_len + n;
    if (self->moving || len > self->left_cap) {
        self->left_cap = self->moving ? len : 2 * len;
        char *moved = malloc(self->left_cap + WEFT_SLACK);
        if (self->left_len)
            memcpy(moved, self->left, self->left_len);
        free(self->left);
        self->left = moved;
    }
    if (n)
        memcpy(self->left + self->left_len, data, n);
    self->left_len = len;
    /* What lies behind is not part of the input, and looks like it could be. */
    memset(self->left + len, '\n', WEFT_SLACK);
}

static void framing_take(framing_reader *self, size_t used) {
    CHECK(used <= self->left_len);
    self->left_len -= used;
    memmove(self->left, self->left + used, self->left_len);
}

static void framing_keep(framing_reader *self, const weft_frame *frame) {
    bool has_body = frame->kind != WEFT_FRAME_TOO_LARGE && frame->kind != WEFT_FRAME_UNREADABLE;
    self->bodies += frame->kind == WEFT_FRAME_BODY;
    self->too_large += frame->kind == WEFT_FRAME_TOO_LARGE;
    framing_log(&self->log, frame->kind, frame->body, has_body ? frame->len : 0);
}

/* Hand in n bytes and take out all frames. */
static void framing_feed(framing_reader *self, const char *data, size_t n) {
    framing_add(self, data, n);
    size_t pos = 0;
    while (self->r >= 0) {
        size_t used = 0;
        weft_frame frame = {0};
        self->r = self->framing->decode(self->state, self->left + pos, self->left_len - pos, self->max_body, &used, &frame);
        if (self->r < 0)
            break;
        pos += used;
        if (self->r == 0)
            break;
        framing_keep(self, &frame);
    }
    framing_take(self, pos);
    CHECK(self->left_len <= self->limit);
}

/* In pieces whose sizes repeat; step 0 is the whole at once. */
static void framing_feed_pieces(framing_reader *self, const char *data, size_t n, size_t step) {
    static const size_t odd[] = {1, 2, 3, 5, 7, 11, 13, 17, 64, 4096};
    size_t turn = 0;
    for (size_t pos = 0, piece; pos < n; pos += piece) {
        piece = step == 0 ? n : step > 1 ? odd[turn++ % (sizeof odd / sizeof odd[0])] : 1;
        if (piece > n - pos)
            piece = n - pos;
        framing_feed(self, data + pos, piece);
    }
}

static void framing_open(framing_reader *self, const framing_pair *pair, size_t max_body) {
    CHECK_INT(framing_reader_init(self, pair, NULL, max_body), 0);
    if (pair->preface)
        framing_feed(self, pair->preface, strlen(pair->preface));
}

static void framing_check_log(const framing_reader *self, const weft_buf *want) {
    CHECK_INT(self->r, 0);
    CHECK_INT(self->left_len, 0);
    CHECK_INT(weft__buf_len(&self->log), weft__buf_len(want));
    CHECK(weft__buf_len(&self->log) == weft__buf_len(want) &&
          (!weft__buf_len(want) || memcmp(weft__buf_head(&self->log), weft__buf_head(want), weft__buf_len(want)) == 0));
}

/* ---- the tests ---- */

static void framing_each_size(const framing_pair *pair, const char *what, size_t step) {
    for (size_t i = 0; i < FRAMING_SIZES; i++) {
        framing_row(pair, what, framing_sizes[i]);
        char *body = framing_body(framing_sizes[i]);
        framing_writer writer;
        framing_reader reader;
        weft_buf want = {0};
        CHECK_INT(framing_writer_init(&writer, pair, NULL), 0);
        framing_open(&reader, pair, FRAMING_NO_LIMIT);
        reader.moving = framing_sizes[i] <= 1000;
        CHECK_INT(framing_write(&writer, body, framing_sizes[i], framing_sizes[i]), 0);
        framing_log(&want, WEFT_FRAME_BODY, body, framing_sizes[i]);
        framing_feed_pieces(&reader, weft__buf_head(&writer.out), weft__buf_len(&writer.out), step);
        framing_check_log(&reader, &want);
        weft__buf_done(&want, NULL);
        framing_reader_done(&reader);
        framing_writer_done(&writer);
        free(body);
    }
}

/* All sizes behind each other, with hints that are right, too small and too large. */
static void framing_glued(const framing_pair *pair, const char *what, size_t step) {
    framing_row(pair, what, 0);
    framing_writer writer;
    framing_reader reader;
    weft_buf want = {0};
    CHECK_INT(framing_writer_init(&writer, pair, NULL), 0);
    framing_open(&reader, pair, FRAMING_NO_LIMIT);
    /* The largest has come byte by byte on its own; once is enough. */
    for (size_t i = 0; i < FRAMING_SIZES - (step == 1); i++) {
        size_t hints[] = {framing_sizes[i], 0, 12345};
        char *body = framing_body(framing_sizes[i]);
        CHECK_INT(framing_write(&writer, body, framing_sizes[i], hints[i % 3]), 0);
        framing_log(&want, WEFT_FRAME_BODY, body, framing_sizes[i]);
        free(body);
    }
    framing_feed_pieces(&reader, weft__buf_head(&writer.out), weft__buf_len(&writer.out), step);
    framing_check_log(&reader, &want);
    weft__buf_done(&want, NULL);
    framing_reader_done(&reader);
    framing_writer_done(&writer);
}

/* A body of max bytes comes, one of max + extra is reported once and kept nowhere, and what follows comes again. */
static void framing_border(const framing_pair *pair, size_t max, size_t extra, size_t step) {
    framing_row(pair, "too large by", extra);
    char *body = framing_body(max + extra);
    framing_writer writer;
    framing_reader reader;
    weft_buf want = {0};
    CHECK_INT(framing_writer_init(&writer, pair, NULL), 0);
    framing_open(&reader, pair, max);
    CHECK_INT(framing_write(&writer, body, max, max), 0);
    framing_log(&want, WEFT_FRAME_BODY, body, max);
    CHECK_INT(framing_write(&writer, body, max + extra, max), 0);
    framing_log(&want, WEFT_FRAME_TOO_LARGE, NULL, 0);
    CHECK_INT(framing_write(&writer, "{}", 2, 2), 0);
    framing_log(&want, WEFT_FRAME_BODY, "{}", 2);
    framing_feed_pieces(&reader, weft__buf_head(&writer.out), weft__buf_len(&writer.out), step);
    framing_check_log(&reader, &want);
    weft__buf_done(&want, NULL);
    framing_reader_done(&reader);
    framing_writer_done(&writer);
    free(body);
}

/* No beginning of a frame is a body, and the end of the input does not make it one, unless a line may end that way. */
static void framing_truncated(const framing_pair *pair) {
    framing_row(pair, "truncated", 130);
    char *body = framing_body(130);
    framing_writer writer;
    CHECK_INT(framing_writer_init(&writer, pair, NULL), 0);
    CHECK_INT(framing_write(&writer, body, 130, 130), 0);
    for (size_t n = 1; n < weft__buf_len(&writer.out); n++) {
        framing_reader reader;
        framing_open(&reader, pair, FRAMING_NO_LIMIT);
        framing_feed(&reader, weft__buf_head(&writer.out), n);
        CHECK_INT(reader.bodies, 0);
        CHECK_INT(reader.r, 0);
        if (reader.framing->finish && !(pair->in->flags & WEFT_FRAMING_LINES)) {
            size_t used;
            weft_frame frame;
            CHECK_INT(reader.framing->finish(reader.state, reader.left, reader.left_len, 1000, &used, &frame), -EPROTO);
        }
        framing_reader_done(&reader);
    }
    framing_writer_done(&writer);
    free(body);
}

/* A framing that does not end at newlines carries them. */
static void framing_newlines(const framing_pair *pair) {
    static const char body[] = "{\n\"member of some length\":\r\n[1,2,3\n]}";
    if (pair->out->flags & WEFT_FRAMING_LINES)
        return;
    framing_row(pair, "newlines", sizeof body - 1);
    framing_writer writer;
    framing_reader reader;
    weft_buf want = {0};
    CHECK_INT(framing_writer_init(&writer, pair, NULL), 0);
    framing_open(&reader, pair, 1000);
    CHECK_INT(framing_write(&writer, body, sizeof body - 1, 10), 0);
    framing_log(&want, WEFT_FRAME_BODY, body, sizeof body - 1);
    framing_feed(&reader, weft__buf_head(&writer.out), weft__buf_len(&writer.out));
    framing_check_log(&reader, &want);
    weft__buf_done(&want, NULL);
    framing_reader_done(&reader);
    framing_writer_done(&writer);
}

/* Write three bodies into a small buffer; when memory fails, what was written before is still whole. */
static int framing_write_some(framing_writer *writer, size_t *ret_whole) {
    char *body = framing_body(3000);
    int r = 0;
    for (size_t len = 30; r >= 0 && len <= 3000; len *= 10) {
        r = framing_write(writer, body, len, 0);
        if (r >= 0)
            *ret_whole = weft__buf_len(&writer->out);
    }
    free(body);
    return r;
}

static void framing_short_memory(const framing_pair *pair) {
    framing_row(pair, "memory is short", 3000);
    int r = -ENOMEM;
    for (long fail_at = 1; r == -ENOMEM && fail_at < 1000; fail_at++) {
        test_memory memory;
        test_memory_init(&memory, fail_at);
        framing_writer writer;
        framing_reader reader;
        size_t whole = 0;
        r = framing_writer_init(&writer, pair, &memory.alloc);
        if (r >= 0)
            r = framing_write_some(&writer, &whole);
        CHECK(r == 0 || r == -ENOMEM);
        CHECK_INT(weft__buf_len(&writer.out), whole);
        if (framing_reader_init(&reader, pair, &memory.alloc, FRAMING_NO_LIMIT) >= 0) {
            framing_feed(&reader, pair->preface ? pair->preface : "", pair->preface ? strlen(pair->preface) : 0);
            framing_feed(&reader, whole ? weft__buf_head(&writer.out) : "", whole);
            CHECK(reader.r == 0 || reader.r == -ENOMEM);
            r = reader.r;
        } else
            r = -ENOMEM;
        r = memory.count >= fail_at ? -ENOMEM : r;
        framing_reader_done(&reader);
        framing_writer_done(&writer);
        CHECK_INT(memory.live, 0);
    }
    CHECK_INT(r, 0);
}

static inline void framing_suite(const framing_pair *pair) {
    framing_each_size(pair, "whole", 0);
    framing_each_size(pair, "byte by byte", 1);
    framing_each_size(pair, "odd pieces", 2);
    framing_glued(pair, "glued", 0);
    framing_glued(pair, "glued, byte by byte", 1);
    framing_glued(pair, "glued, odd pieces", 2);
    static const size_t extras[] = {1, 2, 100, 100000};
    for (size_t i = 0; i < sizeof extras / sizeof extras[0]; i++)
        for (size_t step = 0; step < 3; step++)
            framing_border(pair, 200, extras[i], step);
    framing_truncated(pair);
    framing_newlines(pair);
    framing_short_memory(pair);
}

#endif
