/* Any bytes, in both roles, with compression and without: however they are cut, the same frames come out and the same
 * failure.
 *
 * The first byte chooses the role, compression, the limit and how the bytes are cut; the rest is the stream. A run that gets
 * the stream whole is compared with one that gets it in pieces, at a new address each time. */
#include <stdlib.h>

#include "fuzz_memory.h"
#include "websocket.h"
#include "zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct run {
    weft_ws ws;
    const weft_framing *framing;
    weft_buf in;
    weft_buf seen; /* every frame that came out, one after the other */
    size_t max_body;
    int r;
} run;

static void start(run *it, uint8_t choice, weft_zip *zip) {
    weft_framing_opts opts = {.seed = choice, .deflate = choice & 2 ? 15 : 0, .zip = choice & 2 ? zip : NULL};
    *it = (run){.framing = choice & 1 ? &weft_websocket_client : &weft_websocket, .max_body = choice & 4 ? 100 : 1 << 20};
    require(it->framing->init(&it->ws, &opts) == 0);
}

static void note(run *it, const weft_frame *frame) {
    struct {
        int kind, code, binary;
        size_t len;
    } head = {(int) frame->kind, frame->kind == WEFT_FRAME_CLOSE ? frame->code : 0, weft__ws_binary(&it->ws), frame->len};
    weft__buf_put(&it->seen, NULL, &head, sizeof head);
    weft__buf_put(&it->seen, NULL, frame->body, frame->len);
    require(frame->kind != WEFT_FRAME_BODY || frame->len <= it->max_body);
    require(frame->kind != WEFT_FRAME_BODY || head.binary || weft__utf8_valid(frame->body, frame->len));
    if (frame->kind == WEFT_FRAME_BODY) {
        char behind = frame->body[frame->len];
        frame->body[frame->len] = '\0';
        frame->body[frame->len] = behind;
    }
}

/* Present what is left and n more bytes, in memory of exactly that size and the slack. */
static void feed(run *it, const uint8_t *data, size_t n) {
    size_t left = weft__buf_len(&it->in);
    char *moved = malloc(left + n + WEFT_SLACK);
    require(moved);
    if (left)
        memcpy(moved, weft__buf_head(&it->in), left);
    if (n)
        memcpy(moved + left, data, n);
    weft__buf_done(&it->in, NULL);
    it->in = (weft_buf){.data = moved, .end = left + n, .cap = left + n};
    do {
        weft_frame frame;
        size_t used = 0;
        it->r = it->framing->decode(&it->ws, weft__buf_head(&it->in), weft__buf_len(&it->in), it->max_body, &used, &frame);
        require(used <= weft__buf_len(&it->in));
        it->in.start += used;
        if (it->r > 0)
            note(it, &frame);
        else if (it->r == 0)
            require(frame.len == 0 || frame.len > weft__buf_len(&it->in));
    } while (it->r > 0);
}

/* What went wrong has a code that may be sent, once. */
static void finish(run *it) {
    weft_buf out = {0};
    size_t mark;
    require(it->framing->control(&it->ws, &out, WEFT_FRAME_CLOSE, 0, NULL, 0) == 0);
    size_t len = weft__buf_len(&out);
    require(len >= 2 && it->framing->control(&it->ws, &out, WEFT_FRAME_CLOSE, 0, NULL, 0) == 0 &&
            weft__buf_len(&out) == len);
    require(it->framing->begin(&it->ws, &out, 0, &mark) < 0);
    weft__buf_done(&out, NULL);
}

static void stop(run *it) {
    it->framing->done(&it->ws);
    weft__buf_done(&it->in, NULL);
    weft__buf_done(&it->seen, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    uint8_t choice = *data++;
    size_t step = (size_t) (choice >> 3) + 1;
    weft_zip *zip = NULL;
    run whole, parts;

    size--;
    require(weft__zip_new(NULL, &zip) == 0);
    start(&whole, choice, zip);
    feed(&whole, data, size);
    start(&parts, choice, zip);
    for (size_t i = 0; i < size && parts.r >= 0; i += step)
        feed(&parts, data + i, size - i < step ? size - i : step);
    require(whole.r == parts.r);
    require(whole.ws.close_code == parts.ws.close_code);
    require(weft__buf_len(&whole.seen) == weft__buf_len(&parts.seen));
    require(weft__buf_len(&whole.seen) == 0 ||
            memcmp(weft__buf_head(&whole.seen), weft__buf_head(&parts.seen), weft__buf_len(&whole.seen)) == 0);
    finish(&whole);
    stop(&whole);
    stop(&parts);
    weft__zip_free(zip);
    return 0;
}
