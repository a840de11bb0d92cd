/* Messages to WebSocket frames: one frame for a message, compressed where that was agreed on and pays; control frames; masks
 * when our side is the client. Nothing follows a close frame. */
#include <errno.h>

#include "websocket.h"
#include "zip.h"

/* Bodies up to this size are sent as they are: below it resetting the compressor costs more than the wire does. */
#define COMPRESS_OVER 1024

/* ---- heads ---- */

static size_t frame_head_size(const weft_ws *ws, size_t len) {
    return (len <= WEFT_WS_SHORT ? 2u : len <= UINT16_MAX ? 4u : 10u) + (ws->client ? 4u : 0u);
}

/* Write the head in front of a payload that is there already, and mask that payload if we must. */
static void seal_frame(weft_ws *ws, char *frame, unsigned first, size_t len) {
    uint8_t *p = (uint8_t *) frame;
    size_t wide = len <= WEFT_WS_SHORT ? 0 : len <= UINT16_MAX ? 2 : 8;

    p[0] = (uint8_t) first;
    p[1] = (uint8_t) ((ws->client ? WEFT_WS_MASKED : 0u) | (wide == 0 ? len : wide == 2 ? 126u : 127u));
    p += 2;
    while (wide)
        *p++ = (uint8_t) ((uint64_t) len >> (8 * --wide));
    if (ws->client) {
        uint32_t mask = weft__mask_next(&ws->masks);
        memcpy(p, &mask, 4);
        weft__mask((char *) p + 4, len, mask);
    }
}

/* ---- messages ---- */

int weft__ws_begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark) {
    weft_ws *ws = state;
    if (ws->close_sent)
        return -EPIPE;
    size_t room = frame_head_size(ws, hint);
    int r = weft__buf_reserve(out, ws->alloc, hint <= SIZE_MAX - room ? room + hint : hint);
    if (r < 0)
        return r;
    *ret_mark = weft__buf_len(out);
    *weft__buf_tail(out) = (char) room; /* end() wants to know, and the place is free until then */
    out->end += room;
    return 0;
}

/* The body is in place, behind a head of the right size. */
static int finish_frame(weft_ws *ws, weft_buf *out, size_t mark, unsigned first, size_t len) {
    unsigned opcode = ws->next_binary ? WEFT_WS_BINARY : WEFT_WS_TEXT;
    seal_frame(ws, weft__buf_head(out) + mark, first | opcode, len);
    ws->next_binary = false;
    return 0;
}

/* The head has another size than begin() thought: move the body. */
static int shift_body(weft_ws *ws, weft_buf *out, size_t mark, size_t room, size_t size) {
    size_t len = weft__buf_len(out) - mark - room;
    int r = size > room ? weft__buf_reserve(out, ws->alloc, size - room) : 0;
    if (r < 0)
        return r;
    char *frame = weft__buf_head(out) + mark;
    memmove(frame + size, frame + room, len);
    out->end = out->start + mark + size + len;
    return 0;
}

/* Put the compressed form in the body's place. 1 done; 0 it would not be smaller, or memory is short: send it as it is. Kept
 * out of line so that messages that are not compressed do not pay for its stack. */
__attribute__((noinline)) static int end_packed(weft_ws *ws, weft_buf *out, size_t mark, size_t room) {
    weft_buf packed = {0};
    char *frame = weft__buf_head(out) + mark;
    size_t len = weft__buf_len(out) - mark;
    int r = weft__zip_deflate(ws->zip, ws->window, frame + room, len - room, &packed);
    size_t small = weft__buf_len(&packed), size = frame_head_size(ws, small);
    bool fits = r >= 0 && small < len - room && size + small <= len;

    if (fits) {
        memcpy(frame + size, weft__buf_head(&packed), small);
        out->end = out->start + mark + size + small;
        finish_frame(ws, out, mark, WEFT_WS_FIN | WEFT_WS_RSV1, small);
    }
    weft__buf_done(&packed, ws->alloc);
    return fits;
}

int weft__ws_end(void *state, weft_buf *out, size_t mark) {
    weft_ws *ws = state;
    size_t room = (uint8_t) weft__buf_head(out)[mark], len = weft__buf_len(out) - mark - room,
           size = frame_head_size(ws, len);
    int r;

    if (ws->window && len > COMPRESS_OVER && end_packed(ws, out, mark, room))
        return 0;
    if (size != room && (r = shift_body(ws, out, mark, room, size)) < 0)
        return r;
    return finish_frame(ws, out, mark, WEFT_WS_FIN, len);
}

/* ---- control frames ---- */

static int put_control(weft_ws *ws, weft_buf *out, unsigned opcode, const char *payload, size_t n) {
    size_t size = frame_head_size(ws, n);
    int r = weft__buf_reserve(out, ws->alloc, size + n);
    if (r < 0)
        return r;
    char *frame = weft__buf_tail(out);
    if (n)
        memcpy(frame + size, payload, n);
    seal_frame(ws, frame, WEFT_WS_FIN | opcode, n);
    out->end += size + n;
    return 0;
}

/* As much of a reason as fits, cut between two characters; a reason that is no text is left out. */
static size_t fit_reason(const char *reason, size_t n, size_t max) {
    if (!weft__utf8_valid(reason, n))
        return 0;
    if (n <= max)
        return n;
    while (max && ((uint8_t) reason[max] & 0xC0) == 0x80)
        max--;
    return max;
}

static int put_close(weft_ws *ws, weft_buf *out, int code, const char *reason, size_t n) {
    char payload[WEFT_WS_SHORT];
    size_t len = 0;

    if (code == 0)
        code = ws->close_code ? ws->close_code : WEFT_WS_NORMAL;
    if (code != WEFT_WS_NO_CODE) {
        if (!weft__ws_code_valid(code))
            return -EINVAL;
        payload[0] = (char) (code >> 8);
        payload[1] = (char) code;
        len = fit_reason(reason, n, sizeof payload - 2);
        if (len)
            memcpy(payload + 2, reason, len);
        len += 2;
    }
    int r = put_control(ws, out, WEFT_WS_CLOSE, payload, len);
    if (r >= 0)
        ws->close_sent = true;
    return r;
}

int weft__ws_control(void *state, weft_buf *out, enum weft_frame_kind kind, int code, const char *payload, size_t n) {
    weft_ws *ws = state;
    if (kind != WEFT_FRAME_CLOSE && kind != WEFT_FRAME_PING && kind != WEFT_FRAME_PONG)
        return -EINVAL;
    if (ws->close_sent)
        return 0;
    if (kind == WEFT_FRAME_CLOSE)
        return put_close(ws, out, code, payload, n);
    if (n > WEFT_WS_SHORT)
        return -EINVAL;
    return put_control(ws, out, kind == WEFT_FRAME_PING ? WEFT_WS_PING : WEFT_WS_PONG, payload, n);
}
