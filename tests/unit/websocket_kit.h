/* What the WebSocket tests share: an endpoint that echoes as the ws-echo example does, built on a framing, and the other
 * side of the wire, written from the RFC and sharing nothing with the code under test.
 *
 * A frame is its first byte (FIN, RSV, opcode) and its payload, on the way in and on the way out. */
#ifndef WEBSOCKET_KIT_H
#define WEBSOCKET_KIT_H

#include <errno.h>
#include <stdlib.h>

#include "harness.h"
#include "websocket.h"
#include "zip.h"

#define KIT_MAX_BODY (32u << 20)

typedef struct kit_frame {
    unsigned first;
    const char *data;
    size_t len;
} kit_frame;

#define FRAME(first, text)                                                                                                  \
    { (first), (text), sizeof(text) - 1 }
#define TEXT(text) FRAME(0x81, text)
#define BINARY(text) FRAME(0x82, text)
#define PING(text) FRAME(0x89, text)
#define PONG(text) FRAME(0x8A, text)
#define BEGIN_TEXT(text) FRAME(0x01, text)
#define MORE(text) FRAME(0x100, text) /* a continuation; 0 would end a list */
#define LAST(text) FRAME(0x80, text)
#define CLOSE(text) FRAME(0x88, text)
#define CLOSE_1000 CLOSE("\x03\xe8")
#define CLOSE_1002 CLOSE("\x03\xea")
#define CLOSE_1007 CLOSE("\x03\xef")
#define CLOSE_1009 CLOSE("\x03\xf1")

/* How the bytes are cut: whole, frame by frame, or so many at a time. */
#define KIT_WHOLE 0
#define KIT_FRAMEWISE SIZE_MAX

static inline uint32_t kit_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) (*state >> 33);
}

/* Where a buffer's content begins, also when there is none. */
static inline char *kit_head(const weft_buf *buf) {
    static char nothing[WEFT_SLACK];
    return buf->data ? weft__buf_head(buf) : nothing;
}

/* ---- the other side ---- */

typedef struct kit_wire {
    uint64_t random;
    bool masked;
    weft_buf bytes;
} kit_wire;

static inline void kit_put(kit_wire *wire, const kit_frame *frame) {
    uint8_t head[14] = {(uint8_t) frame->first};
    size_t size = 2, wide = frame->len < 126 ? 0 : frame->len < 65536 ? 2 : 8;

    head[1] = (uint8_t) (wide == 0 ? frame->len : wide == 2 ? 126 : 127);
    for (size_t i = wide; i-- > 0;)
        head[size++] = (uint8_t) ((uint64_t) frame->len >> (8 * i));
    uint32_t mask = wire->masked ? kit_random(&wire->random) | 0x01010101 : 0;
    if (wire->masked) {
        head[1] |= 0x80;
        memcpy(head + size, &mask, 4);
        size += 4;
    }
    weft__buf_put(&wire->bytes, NULL, head, size);
    weft__buf_put(&wire->bytes, NULL, frame->data, frame->len);
    char *payload = weft__buf_tail(&wire->bytes) - frame->len;
    for (size_t i = 0; mask && i < frame->len; i++)
        payload[i] ^= ((const char *) &mask)[i & 3];
}

/* Read one frame of what came back; payload is unmasked where it lies. */
static inline bool kit_read(weft_buf *bytes, bool masked, kit_frame *ret) {
    uint8_t *p = (uint8_t *) kit_head(bytes);
    size_t n = weft__buf_len(bytes), size = 2, len;
    if (n < 2 || (p[1] >> 7) != masked)
        return false;
    len = p[1] & 127;
    size_t wide = len < 126 ? 0 : len == 126 ? 2 : 8;
    if (wide) {
        for (len = 0; wide-- && size < n;)
            len = len << 8 | p[size++];
        if (len < (p[1] % 128 == 126 ? 126u : 65536u))
            return false;
    }
    size += masked ? 4 : 0;
    if (n < size || n - size < len)
        return false;
    for (size_t i = 0; masked && i < len; i++)
        p[size + i] ^= p[size - 4 + (i & 3)];
    *ret = (kit_frame){p[0], (char *) p + size, len};
    bytes->start += size + len;
    return true;
}

/* ---- the endpoint under test ---- */

typedef struct kit {
    weft_ws ws;
    const weft_framing *framing;
    bool client; /* the endpoint is the client */
    const weft_alloc *alloc;
    size_t max_body;
    weft_buf in, out;
    bool moving; /* present the rest of the input at a new address each time */
    bool closed; /* a close frame came out: nothing may after it */
    bool over;
    int broken; /* what decode() said */
    size_t frames;
} kit;

static inline int kit_init(kit *k, bool client, const weft_framing_opts *opts) {
    *k = (kit){.framing = client ? &weft_websocket_client : &weft_websocket,
               .client = client,
               .alloc = opts->alloc,
               .max_body = KIT_MAX_BODY};
    return k->framing->init(&k->ws, opts);
}

static inline void kit_done(kit *k) {
    k->framing->done(&k->ws);
    weft__buf_done(&k->in, NULL);
    weft__buf_done(&k->out, k->alloc);
}

static inline int kit_say(kit *k, const char *body, size_t len, size_t hint, bool binary) {
    size_t mark = 0, before = weft__buf_len(&k->out);
    if (binary)
        weft__ws_next_binary(&k->ws);
    int r = k->framing->begin(&k->ws, &k->out, hint, &mark);
    if (r >= 0)
        r = weft__buf_put(&k->out, k->alloc, body, len);
    if (r >= 0)
        r = k->framing->end(&k->ws, &k->out, mark);
    if (r < 0)
        k->out.end = k->out.start + before;
    return r;
}

static inline int kit_answer(kit *k, const weft_frame *frame) {
    char behind = '\0';
    switch (frame->kind) {
    case WEFT_FRAME_BODY:
        /* As the scanner does: a NUL behind the text while it works. */
        behind = frame->body[frame->len];
        frame->body[frame->len] = '\0';
        int r = kit_say(k, frame->body, frame->len, frame->len, weft__ws_binary(&k->ws));
        frame->body[frame->len] = behind;
        return r;
    case WEFT_FRAME_PING:
        return k->framing->control(&k->ws, &k->out, WEFT_FRAME_PONG, 0, frame->body, frame->len);
    case WEFT_FRAME_CLOSE:
        return k->framing->control(&k->ws, &k->out, WEFT_FRAME_CLOSE, 0, NULL, 0);
    default:
        return 0;
    }
}

#define KIT_CANARY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Hand the endpoint what it has not finished with and n more bytes. */
static inline void kit_feed(kit *k, const char *data, size_t n) {
    weft__buf_put(&k->in, NULL, data, n);
    if (k->moving) {
        weft_buf moved = {0};
        weft__buf_put(&moved, NULL, kit_head(&k->in), weft__buf_len(&k->in));
        weft__buf_done(&k->in, NULL);
        k->in = moved;
    }
    weft__buf_reserve(&k->in, NULL, 1);
    memcpy(weft__buf_tail(&k->in), KIT_CANARY, WEFT_SLACK);
    while (!k->over) {
        weft_frame frame;
        size_t used = 0, left = weft__buf_len(&k->in);
        int r = k->framing->decode(&k->ws, kit_head(&k->in), left, k->max_body, &used, &frame);
        CHECK(used <= left);
        CHECK(memcmp(weft__buf_tail(&k->in), KIT_CANARY, WEFT_SLACK) == 0);
        k->in.start += used;
        CHECK(!k->closed || r == 0);
        if (r < 0) {
            k->broken = r;
            k->over = true;
            k->framing->control(&k->ws, &k->out, WEFT_FRAME_CLOSE, 0, NULL, 0);
        } else if (r == 0) {
            CHECK(frame.len == 0 || frame.len > left - used);
            return;
        } else {
            k->frames++;
            k->closed = frame.kind == WEFT_FRAME_CLOSE;
            r = kit_answer(k, &frame);
            if (r < 0)
                k->broken = r, k->over = true;
        }
    }
}

static inline void kit_play(kit *k, const char *data, size_t n, size_t chop) {
    for (size_t i = 0, step = chop ? chop : n; i < n; i += step)
        kit_feed(k, data + i, n - i < step ? n - i : step);
}

/* ---- cases ---- */

#define KIT_FRAMES 16

typedef struct kit_case {
    const char *name;
    kit_frame in[KIT_FRAMES], out[KIT_FRAMES]; /* up to the first with first == 0 */
} kit_case;

static inline size_t kit_count(const kit_frame *frames) {
    size_t n = 0;
    while (n < KIT_FRAMES && frames[n].first)
        n++;
    return n;
}

static inline bool kit_same(const kit_frame *is, const kit_frame *want) {
    return CHECK_INT(is->first, want->first) && CHECK_INT(is->len, want->len) &&
           CHECK(memcmp(is->data, want->data, want->len) == 0);
}

/* Did exactly these frames come back? */
static inline void kit_expect(kit *k, const kit_frame *want, size_t count) {
    kit_frame is = {0};
    weft_buf out = k->out; /* only looked at */
    for (size_t i = 0; i < count; i++) {
        if (!CHECK(kit_read(&out, k->client, &is)) || !kit_same(&is, want + i))
            return;
    }
    CHECK_INT(weft__buf_len(&out), 0);
}

/* Play a case once. Unless it ends in a failure, the other side closes with 1000 at the end and gets that back. */
static inline void kit_run(const kit_case *c, bool client, size_t chop) {
    char row[120];
    kit k;
    kit_frame want[KIT_FRAMES + 1];
    static const kit_frame bye = CLOSE_1000;
    size_t in = kit_count(c->in), out = kit_count(c->out);
    bool failing = out && c->out[out - 1].first == 0x88;
    kit_wire wire = {.random = 7, .masked = !client};

    snprintf(row, sizeof row, "%s as %s, %zd at a time", c->name, client ? "client" : "server", (ssize_t) chop);
    test_row(row);
    kit_init(&k, client, &(weft_framing_opts){.seed = 42});
    memcpy(want, c->out, out * sizeof *want);
    want[out] = bye;
    for (size_t i = 0; i < in + !failing; i++) {
        kit_put(&wire, i < in ? &c->in[i] : &bye);
        if (chop == KIT_FRAMEWISE) {
            kit_feed(&k, kit_head(&wire.bytes), weft__buf_len(&wire.bytes));
            weft__buf_done(&wire.bytes, NULL);
        }
    }
    k.moving = weft__buf_len(&wire.bytes) < 2048;
    kit_play(&k, wire.bytes.data, weft__buf_len(&wire.bytes), chop);
    kit_expect(&k, want, out + !failing);
    kit_done(&k);
    weft__buf_done(&wire.bytes, NULL);
}

/* In both roles, cut in every way. */
static inline void kit_run_all(const kit_case *c) {
    static const size_t chops[] = {KIT_WHOLE, KIT_FRAMEWISE, 1, 2, 3, 7, 997, 1000};
    for (size_t i = 0; i < sizeof chops / sizeof chops[0]; i++) {
        kit_run(c, false, chops[i]);
        kit_run(c, true, chops[i]);
    }
    test_row(NULL);
}

#endif
