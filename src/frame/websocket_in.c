/* WebSocket frames to messages. Strict: everything RFC 6455 and RFC 7692 forbid ends the connection with the code they name,
 * as soon as the bytes that have come show it.
 *
 * A frame that is a whole message stays in the input until it is complete, and is unmasked there, each byte once. A fragment
 * is taken out of the input as it comes. Control frames may stand between fragments and change nothing about them. */
#include <errno.h>

#include "websocket.h"
#include "zip.h"

/* A step took a whole fragment and there may be another frame behind it. */
#define GO_ON 2

typedef struct head {
    uint8_t first; /* FIN, RSV, opcode */
    uint8_t opcode;
    uint32_t mask;
    size_t size; /* of the head itself */
    uint64_t len;
} head;

/* Fail for good: with this errno, and this code in the close frame that control() will write. */
static int fail_with_code(weft_ws *ws, int r, int code) {
    ws->close_code = code;
    return ws->broken = r;
}

static int fail_protocol(weft_ws *ws) {
    return fail_with_code(ws, -EPROTO, WEFT_WS_BAD_PROTOCOL);
}

/* What unpacking, collecting or checking a message said, as a failure of the connection. */
static int fail_message(weft_ws *ws, int r) {
    if (r == -EMSGSIZE)
        return fail_with_code(ws, r, WEFT_WS_TOO_LARGE);
    if (r == -EILSEQ)
        return fail_with_code(ws, r, WEFT_WS_BAD_TEXT);
    if (r == -EBADMSG) /* not a deflate stream; to everybody above, -EBADMSG means bad JSON */
        return fail_with_code(ws, -EPROTO, WEFT_WS_BAD_TEXT);
    return fail_with_code(ws, r, WEFT_WS_FAILED);
}

/* ---- heads ---- */

/* May a frame begin with these two bytes, here and now? */
static bool head_allowed(const weft_ws *ws, unsigned first, unsigned second) {
    unsigned opcode = first & WEFT_WS_OPCODE, reserved = first & WEFT_WS_RSV;

    if (!(second & WEFT_WS_MASKED) != ws->client)
        return false;
    if (opcode >= WEFT_WS_CLOSE)
        return opcode <= WEFT_WS_PONG && !reserved && first & WEFT_WS_FIN && (second & WEFT_WS_LENGTH) <= WEFT_WS_SHORT;
    if (opcode == WEFT_WS_CONTINUATION)
        return !reserved && ws->opcode;
    return opcode <= WEFT_WS_BINARY && !ws->opcode && (!reserved || (reserved == WEFT_WS_RSV1 && ws->window));
}

static uint64_t big_endian(const uint8_t *p, size_t n) {
    uint64_t value = 0;
    while (n--)
        value = value << 8 | *p++;
    return value;
}

/* How long a data frame may be that adds to what is collected already. Compressed text may be longer than the message it
 * holds, by an eighth: that is what a compressor makes of noise that has only the fixed codes. */
static bool too_long(const weft_ws *ws, const head *h, size_t max_body) {
    bool compressed = h->opcode ? h->first & WEFT_WS_RSV1 : ws->compressed;
    uint64_t limit = max_body, before = h->opcode ? 0 : weft__buf_len(&ws->message);
    if (compressed)
        limit += limit / 8 + 64;
    return before > limit || h->len > limit - before;
}

/* 1 the head is whole and allowed, 0 more bytes are needed, <0 broken. */
static int read_frame_head(weft_ws *ws, const char *in, size_t n, size_t max_body, head *ret) {
    const uint8_t *p = (const uint8_t *) in;
    if (n < 2)
        return 0;
    if (!head_allowed(ws, p[0], p[1]))
        return fail_protocol(ws);

    uint64_t len = p[1] & WEFT_WS_LENGTH;
    size_t size = 2, wide = len <= WEFT_WS_SHORT ? 0 : len == 126 ? 2 : 8;
    if (wide) {
        if (n < size + wide)
            return 0;
        len = big_endian(p + size, wide);
        /* Only the shortest form is allowed, and the highest bit never (section 5.2). */
        if (len <= (wide == 2 ? WEFT_WS_SHORT : UINT16_MAX) || len > INT64_MAX)
            return fail_protocol(ws);
        size += wide;
    }
    *ret = (head){.first = p[0], .opcode = p[0] & WEFT_WS_OPCODE, .size = size, .len = len};
    if (ret->opcode < WEFT_WS_CLOSE && too_long(ws, ret, max_body))
        return fail_message(ws, -EMSGSIZE);
    if (ws->client)
        return 1;
    if (n < size + 4)
        return 0;
    memcpy(&ret->mask, p + size, 4);
    ret->size += 4;
    return 1;
}

/* ---- payloads ---- */

/* Unmask bytes of a data frame where they lie, and follow the text that they are part of. */
static int take_bytes(weft_ws *ws, char *data, size_t n, uint32_t mask, bool text) {
    bool high = ws->client || weft__mask(data, n, mask);
    if (!text || (!high && weft__utf8_whole(&ws->text)))
        return 0;
    return weft__utf8_feed(&ws->text, data, n) ? 0 : fail_message(ws, -EILSEQ);
}

static int hand_out(weft_ws *ws, char *body, size_t len, bool binary, weft_frame *ret) {
    ws->binary = binary;
    *ret = (weft_frame){.kind = WEFT_FRAME_BODY, .body = body, .len = len};
    return 1;
}

/* Unpack a whole message into ws->message, which data may be part of. */
static int hand_out_unpacked(weft_ws *ws, const char *data, size_t n, size_t max_body, bool binary, weft_frame *ret) {
    weft_buf plain = {0};
    int r = weft__buf_reserve(&plain, ws->alloc, 1); /* so that even an empty body is somewhere */
    if (r >= 0)
        r = weft__zip_inflate(ws->zip, data, n, max_body, &plain);
    if (r >= 0 && !binary && !weft__utf8_valid(weft__buf_head(&plain), weft__buf_len(&plain)))
        r = -EILSEQ;
    weft__buf_done(&ws->message, ws->alloc);
    ws->message = plain;
    ws->handed_out = true;
    if (r < 0)
        return fail_message(ws, r);
    return hand_out(ws, weft__buf_head(&plain), weft__buf_len(&plain), binary, ret);
}

/* A frame that is a whole message. */
static int take_whole(weft_ws *ws, const head *h, char *in, size_t n, size_t max_body, size_t *used, weft_frame *ret) {
    char *body = in + h->size;
    size_t len = (size_t) h->len, have = n - h->size < len ? n - h->size : len;
    bool binary = h->opcode == WEFT_WS_BINARY, compressed = h->first & WEFT_WS_RSV1;

    if (have > ws->done) {
        uint32_t mask = ws->done ? weft__mask_turn(h->mask, ws->done) : h->mask;
        int r = take_bytes(ws, body + ws->done, have - ws->done, mask, !binary && !compressed);
        if (r < 0)
            return r;
    }
    if (have < len) {
        ws->done = have;
        ret->len = h->size + len;
        return 0;
    }
    ws->done = 0;
    *used += h->size + len;
    if (compressed)
        return hand_out_unpacked(ws, body, len, max_body, binary, ret);
    if (!weft__utf8_whole(&ws->text))
        return fail_message(ws, -EILSEQ);
    return hand_out(ws, body, len, binary, ret);
}

/* The message is complete; in is where the input goes on. */
static int finish_message(weft_ws *ws, char *in, size_t max_body, weft_frame *ret) {
    bool binary = ws->opcode == WEFT_WS_BINARY;
    ws->opcode = 0;
    size_t len = weft__buf_len(&ws->message);
    char *body = len ? weft__buf_head(&ws->message) : in;
    if (ws->compressed)
        return hand_out_unpacked(ws, body, len, max_body, binary, ret);
    if (!weft__utf8_whole(&ws->text))
        return fail_message(ws, -EILSEQ);
    ws->handed_out = true;
    return hand_out(ws, body, len, binary, ret);
}

/* Take what there is of a fragment. */
static int collect_fragment(weft_ws *ws, char *in, size_t n, size_t max_body, size_t *used, weft_frame *ret) {
    size_t take = n < ws->left ? n : ws->left;
    int r = take_bytes(ws, in, take, ws->mask, ws->opcode == WEFT_WS_TEXT && !ws->compressed);
    if (r < 0)
        return r;
    r = weft__buf_put(&ws->message, ws->alloc, in, take);
    if (r < 0)
        return fail_message(ws, r);
    ws->mask = weft__mask_turn(ws->mask, take);
    ws->left -= take;
    *used += take;
    if (ws->left)
        return 0;
    ws->collecting = false;
    return ws->last ? finish_message(ws, in + take, max_body, ret) : GO_ON;
}

static void begin_fragment(weft_ws *ws, const head *h) {
    if (h->opcode) {
        ws->opcode = h->opcode;
        ws->compressed = h->first & WEFT_WS_RSV1;
    }
    ws->last = h->first & WEFT_WS_FIN;
    ws->left = (size_t) h->len;
    ws->mask = h->mask;
    ws->collecting = true;
}

/* ---- control frames ---- */

static int take_close(weft_ws *ws, char *payload, size_t n, weft_frame *ret) {
    ws->closed = true;
    ws->close_code = WEFT_WS_NO_CODE;
    *ret = (weft_frame){.kind = WEFT_FRAME_CLOSE, .code = WEFT_WS_NO_CODE, .body = payload};
    if (n == 0)
        return 1;
    int code = n < 2 ? 0 : (int) big_endian((const uint8_t *) payload, 2);
    if (!weft__ws_code_valid(code))
        return fail_protocol(ws);
    if (!weft__utf8_valid(payload + 2, n - 2))
        return fail_message(ws, -EILSEQ);
    ret->code = ws->close_code = code;
    ret->body = payload + 2;
    ret->len = n - 2;
    return 1;
}

static int take_control(weft_ws *ws, const head *h, char *in, size_t n, size_t *used, weft_frame *ret) {
    char *payload = in + h->size;
    size_t len = (size_t) h->len;
    if (n < h->size + len) {
        ret->len = h->size + len;
        return 0;
    }
    if (!ws->client)
        weft__mask(payload, len, h->mask);
    *used += h->size + len;
    if (h->opcode == WEFT_WS_CLOSE)
        return take_close(ws, payload, len, ret);
    enum weft_frame_kind kind = h->opcode == WEFT_WS_PING ? WEFT_FRAME_PING : WEFT_FRAME_PONG;
    *ret = (weft_frame){.kind = kind, .body = payload, .len = len};
    return 1;
}

/* ---- all together ---- */

/* 1 a frame is in *ret, GO_ON, 0 more bytes are needed, <0 broken. */
static int ws_step(weft_ws *ws, char *in, size_t n, size_t max_body, size_t *used, weft_frame *ret) {
    head h;
    if (ws->collecting)
        return collect_fragment(ws, in, n, max_body, used, ret);
    int r = read_frame_head(ws, in, n, max_body, &h);
    if (r <= 0)
        return r;
    if (h.opcode >= WEFT_WS_CLOSE)
        return take_control(ws, &h, in, n, used, ret);
    if (h.opcode && h.first & WEFT_WS_FIN)
        return take_whole(ws, &h, in, n, max_body, used, ret);
    begin_fragment(ws, &h);
    *used += h.size;
    return GO_ON;
}

/* A whole message that lies in the input, plain and in one frame of up to 64 KiB, with nothing else going on: nearly every
 * frame there is. 1 it is in *ret, <0 broken; 0 it is something else, and nothing has been touched. */
static int decode_quick(weft_ws *ws, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    const uint8_t *p = (const uint8_t *) in;
    if (n < 6 || ws->closed | ws->opcode | ws->handed_out || ws->done || ws->broken)
        return 0;
    if ((p[0] != (WEFT_WS_FIN | WEFT_WS_TEXT) && p[0] != (WEFT_WS_FIN | WEFT_WS_BINARY)) || p[1] >> 7 == ws->client)
        return 0;
    size_t len = p[1] & WEFT_WS_LENGTH, size = ws->client ? 2 : 6;
    if (len > WEFT_WS_SHORT) {
        size += 2;
        len = len == 126 ? (size_t) big_endian(p + 2, 2) : 0;
        if (len <= WEFT_WS_SHORT)
            return 0;
    }
    if (n < size || n - size < len || len > max_body)
        return 0;

    bool binary = p[0] & WEFT_WS_BINARY, high = true;
    if (!ws->client) {
        uint32_t mask;
        memcpy(&mask, in + size - 4, 4);
        high = weft__mask(in + size, len, mask);
    }
    if (high && !binary && !weft__utf8_valid(in + size, len))
        return fail_message(ws, -EILSEQ);
    *ret_used = size + len;
    return hand_out(ws, in + size, len, binary, ret);
}

static int decode_any(weft_ws *ws, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    weft_frame frame = {0};
    size_t used = 0;
    int r;

    if (ws->broken)
        return ws->broken;
    if (ws->handed_out) {
        weft__buf_done(&ws->message, ws->alloc);
        ws->handed_out = false;
    }
    if (ws->closed || n == 0) {
        *ret_used = n;
        *ret = frame;
        return 0;
    }
    do
        r = ws_step(ws, in + used, n - used, max_body, &used, &frame);
    while (r == GO_ON);
    if (r >= 0) {
        *ret_used = used;
        *ret = frame;
    }
    return r;
}

int weft__ws_decode(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret) {
    int r = decode_quick(state, in, n, max_body, ret_used, ret);
    return r ? r : decode_any(state, in, n, max_body, ret_used, ret);
}
