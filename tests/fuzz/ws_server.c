/* A WebSocket from its handshake on: the HTTP server, the upgrade and the peer behind it. What is fuzzed is sent in frames
 * that are masked as they should be, so that the fuzzer reaches what lies behind them, and now and then as bare bytes.
 *
 * The first byte chooses tokens, compression and memory, the second seeds the cuts, then the rest is frames: a byte for the
 * kind of frame, one for its length, and the payload. */
#include "frame.h"
#include "fuzz_world.h"

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

static void upgrade(fuzz_world *w, bool deflate) {
    char head[500];
    int n = snprintf(head, sizeof head,
                     "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     "Sec-WebSocket-Version: 13\r\n" KEY "Authorization: Bearer " FUZZ_TOKEN "\r\n%s\r\n",
                     deflate ? "Sec-WebSocket-Extensions: permessage-deflate\r\n" : "");
    fuzz_send(w, head, (size_t) n);
}

/* kind: the frame's first byte, as it goes over the wire. */
static void send_frame(fuzz_world *w, uint8_t kind, const uint8_t *payload, size_t len) {
    char frame[256 + 8];
    size_t n = 0;
    frame[n++] = (char) kind;
    frame[n++] = (char) (0x80 | (len < 126 ? len : 126));
    if (len >= 126) {
        frame[n++] = (char) (len >> 8);
        frame[n++] = (char) len;
    }
    memcpy(frame + n, "\1\2\3\4", 4);
    n += 4;
    for (size_t i = 0; i < len; i++)
        frame[n + i] = (char) (payload[i] ^ (i % 4 + 1));
    n += len;
    size_t cut = fuzz_pick(w, 3) ? n : fuzz_pick(w, (unsigned) n);
    fuzz_send(w, frame, cut);
    fuzz_send(w, frame + cut, n - cut);
}

static bool see_body(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    weft_doc *doc;
    (void) peer, (void) data;
    require(!binary);
    require(weft_doc_parse(body.data, body.len, NULL, &doc) == 0);
    weft_doc_free(doc);
    return true;
}

/* Whatever the server sent are frames of JSON. */
static void check_frames(const char *at, const char *end, bool deflate) {
    weft_peer *reader;
    weft_identity who = {"ws", "", "", "", "", -1, -1, true};
    weft_peer_opts opts = {
        .framing = &weft_websocket_client, .deflate = deflate ? 15 : 0, .identity = &who, .on_raw = see_body};
    if (at == end)
        return;
    require(weft_peer_new(NULL, &opts, &reader) == 0);
    int r = weft_peer_feed(reader, at, (size_t) (end - at), 0);
    require(r == 0 || r == -ECONNRESET); /* a close frame is a good-bye */
    weft_peer_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_world w;
    int last;
    if (size < 2)
        return 0;
    fuzz_begin(&w, data[0] & 1, data[0] & 4, data[1]);
    upgrade(&w, data[0] & 2);
    for (size_t at = 2; at + 2 <= size;) {
        size_t len = data[at + 1] < size - at - 2 ? data[at + 1] : size - at - 2;
        if (data[at] == 0)
            fuzz_send(&w, (const char *) data + at + 2, len);
        else
            send_frame(&w, data[at], data + at + 2, len);
        at += 2 + len;
    }
    fuzz_end(&w);
    const char *frames = fuzz_check_answers(&w, &last);
    require(last == 101 || !last);
    if (last)
        check_frames(frames, weft__buf_tail(&w.out), data[0] & 2);
    fuzz_done(&w);
    return 0;
}
