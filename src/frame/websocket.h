/* WebSocket frames (RFC 6455) with permessage-deflate (RFC 7692), after the handshake: what the two framings share, and what
 * a program that uses them without a peer needs besides the table in frame.h.
 *
 * A message of one frame is handed out where it lies. Only what must be put together (fragments) or unpacked (deflate) is
 * copied, into memory that is given back at the next call; an idle connection holds nothing but this struct.
 *
 * When decode() returns 0, what it left of the input may be unmasked already: present those bytes again as they lie, not as
 * they came. */
#ifndef WEFT_WEBSOCKET_H
#define WEFT_WEBSOCKET_H

#include "frame.h"
#include "mask.h"
#include "utf8_stream.h"

enum weft_ws_opcode {
    WEFT_WS_CONTINUATION = 0,
    WEFT_WS_TEXT = 1,
    WEFT_WS_BINARY = 2,
    WEFT_WS_CLOSE = 8, /* from here on: control frames */
    WEFT_WS_PING = 9,
    WEFT_WS_PONG = 10,
};

/* Bits of the first two bytes of a frame. */
enum {
    WEFT_WS_FIN = 0x80,
    WEFT_WS_RSV = 0x70,
    WEFT_WS_RSV1 = 0x40, /* of a message's first frame: the message is compressed */
    WEFT_WS_OPCODE = 0x0F,
    WEFT_WS_MASKED = 0x80,
    WEFT_WS_LENGTH = 0x7F,
};

/* The longest payload of a control frame, and of a frame whose length fits the second byte (RFC 6455 sections 5.2, 5.5). */
#define WEFT_WS_SHORT 125

/* Close codes (RFC 6455 section 7.4.1). */
enum {
    WEFT_WS_NORMAL = 1000,
    WEFT_WS_BAD_PROTOCOL = 1002,
    WEFT_WS_NO_CODE = 1005, /* the close frame was empty; never on the wire */
    WEFT_WS_BAD_TEXT = 1007,
    WEFT_WS_TOO_LARGE = 1009,
    WEFT_WS_FAILED = 1011,
};

typedef struct weft_ws {
    const weft_alloc *alloc;
    struct weft_zip *zip;
    unsigned window; /* for what we compress; 0: permessage-deflate is off */
    bool client;     /* our side masks, theirs does not */

    /* in */
    weft_buf message; /* fragments so far, or the message that was put together and handed out */
    size_t left;      /* of the fragment that is being collected, how many bytes are to come */
    size_t done;      /* of the frame at the front of the input, how many payload bytes are unmasked and checked */
    uint32_t mask;    /* for what is left */
    weft_utf8 text;   /* where the text of the current message stands; always whole between messages */
    uint8_t opcode;   /* of the fragmented message; 0: none is open */
    bool compressed;  /* so is that message */
    bool collecting;  /* inside a fragment; its header is behind us */
    bool last;        /* and it is the message's last one */
    bool handed_out;  /* message is borrowed by the caller until the next call */
    bool binary;      /* the body handed out last */
    bool closed;      /* their close frame has come: the rest is ignored */
    int broken;       /* what decode() failed with, for good */
    int close_code;   /* what a close frame of ours should say: what is wrong, or their code sent back */

    /* out */
    weft_masks masks;
    bool next_binary;
    bool close_sent;
} weft_ws;

int weft__ws_decode(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret);
int weft__ws_begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark);
int weft__ws_end(void *state, weft_buf *out, size_t mark);
int weft__ws_control(void *state, weft_buf *out, enum weft_frame_kind kind, int code, const char *payload, size_t n);

/* May this code stand in a close frame? */
bool weft__ws_code_valid(int code);

/* Was the body that decode() handed out last a binary message? */
static inline bool weft__ws_binary(const void *state) {
    return ((const weft_ws *) state)->binary;
}
/* Bytes of memory of the message that is being put together. */
static inline size_t weft__ws_memory(const void *state) {
    return ((const weft_ws *) state)->message.cap;
}
/* The next message that is begun, and only that one, is binary. */
static inline void weft__ws_next_binary(void *state) {
    ((weft_ws *) state)->next_binary = true;
}

#endif
