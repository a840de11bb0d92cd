/* Two peers and the bytes between them, for the tests of the peer: what one has queued is fed to the other, in pieces of any
 * size. Time is a number. */
#ifndef PEER_KIT_H
#define PEER_KIT_H

#include <errno.h>
#include <stdlib.h>

#include <weft/weft.h>

#include "harness.h"

/* The framings that a connection can have, by the name of what serves and what calls. */
typedef struct kit_framing {
    const char *name;
    const weft_framing *server, *client;
    unsigned deflate;
} kit_framing;

static const kit_framing kit_framings[] = {
    {"ndjson", &weft_ndjson, &weft_ndjson, 0},
    {"content-length", &weft_content_length, &weft_content_length, 0},
    {"detected lines", &weft_detect, &weft_ndjson, 0},
    {"detected headers", &weft_detect, &weft_content_length, 0},
    {"websocket", &weft_websocket, &weft_websocket_client, 0},
    {"websocket, compressed", &weft_websocket, &weft_websocket_client, 15},
};
#define KIT_FRAMINGS (sizeof kit_framings / sizeof kit_framings[0])

/* Everything that a peer has to say, taken away from it. Owned: free(). */
static inline char *kit_take(weft_peer *peer, size_t *ret_len) {
    weft_bytes out = weft_peer_output(peer);
    char *text = malloc(out.len + 1);
    memcpy(text, out.data, out.len);
    text[out.len] = '\0';
    if (ret_len)
        *ret_len = out.len;
    weft_peer_sent(peer, out.len);
    return text;
}

static inline int kit_say(weft_peer *peer, const char *text, int64_t now) {
    return weft_peer_feed(peer, text, strlen(text), now);
}

#define CHECK_SAYS(peer, want)                                                                                              \
    do {                                                                                                                    \
        char *says_ = kit_take(peer, NULL);                                                                                 \
        CHECK_STR(says_, want);                                                                                             \
        free(says_);                                                                                                        \
    } while (0)

/* Hand from's output to to, piece by piece. What feeding returned last. */
static inline int kit_pass(weft_peer *from, weft_peer *to, size_t piece, int64_t now) {
    int r = 0;
    size_t len;
    char *bytes = kit_take(from, &len);
    for (size_t at = 0; at < len && r >= 0; at += piece) {
        size_t n = len - at < piece ? len - at : piece;
        r = weft_peer_feed(to, bytes + at, n, now);
    }
    free(bytes);
    return r;
}

/* Until neither has anything to say. */
static inline int kit_pump(weft_peer *a, weft_peer *b, size_t piece, int64_t now) {
    int r = 0;
    while (r >= 0 && (weft_peer_output(a).len || weft_peer_output(b).len)) {
        r = kit_pass(a, b, piece, now);
        if (r >= 0)
            r = kit_pass(b, a, piece, now);
    }
    return r;
}

#endif
