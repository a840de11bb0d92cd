/* Framings: bytes to bodies and back. No I/O, no JSON.
 *
 * A framing is one const table; its state lies inside the peer (state_size bytes, zeroed, then init). Decoding works in the
 * caller's memory, which it may change (a WebSocket body is unmasked where it lies); what it hands out is borrowed until the
 * next call. */
#ifndef WEFT_FRAME_H
#define WEFT_FRAME_H

#include <weft/peer.h>

#include "buf.h"

enum weft_frame_kind {
    WEFT_FRAME_BODY,       /* one message; body/len; body[len] and WEFT_SLACK bytes behind may be read and written, but
                              body[len] belongs to the next frame: put back what was there */
    WEFT_FRAME_TOO_LARGE,  /* a body over max_body was or is being skipped; decoding goes on behind it. body/len is how it
                              begins, where that is known; len 0: it is not */
    WEFT_FRAME_UNREADABLE, /* a body was or is being skipped because of its coding: code 0 it is none that we read, 1 it is
                              not what it says; decoding goes on behind it */
    WEFT_FRAME_PING,       /* body/len is its payload: answer with control(PONG) */
    WEFT_FRAME_PONG,
    WEFT_FRAME_CLOSE, /* the other side is leaving; code, and body/len is its reason */
};

typedef struct weft_frame {
    enum weft_frame_kind kind;
    int code;
    char *body;
    size_t len;
} weft_frame;

typedef struct weft_framing_opts {
    const weft_alloc *alloc; /* borrowed for the state's life */
    uint64_t seed;           /* for masks; unpredictable in production */
    unsigned deflate;       /* permessage-deflate: 0 off, 9..15 the window our side may use; no context takeover both ways */
    struct weft_zip *zip;   /* compressor and decompressor shared by every connection of a service (zip.h); borrowed */
    struct weft_gzip *gzip; /* the same for Content-Encoding (gzip.h); borrowed. NULL: gzip is not read */
    bool offers_gzip;       /* say that we read it, before the other side has */
    const void *extra;      /* what one framing alone needs to know (http_client.h); borrowed for the state's life */
} weft_framing_opts;

enum {
    WEFT_FRAMING_LINES = 1 << 0,    /* a body must not contain a newline; whoever writes it, the JSON writer, sees to that */
    WEFT_FRAMING_MULTI = 1 << 1,    /* one body may hold several texts separated by newlines */
    WEFT_FRAMING_NO_CALLS = 1 << 2, /* nothing comes back, so our side cannot call */
    WEFT_FRAMING_NO_NOTES = 1 << 3, /* what goes out is an answer: our side cannot notify either */
};

struct weft_framing {
    const char *name;
    size_t state_size;
    unsigned flags;
    /* state is zeroed. May be NULL. */
    int (*init)(void *state, const weft_framing_opts *opts);
    /* Free what the state holds. May be NULL. */
    void (*done)(void *state);

    /* Find the next frame in n bytes, behind which WEFT_SLACK more may be read and written. *ret_used says how many of them
     * are finished with; the rest is presented again, at another address perhaps, with more behind it. Bodies over max_body
     * are not collected.
     * 1 a frame is in *ret; 0 more bytes are needed, and ret->len is how many the frame needs in all if that is known,
     * counted from the first that is not finished with, else 0; -EMSGSIZE, -EPROTO and others: broken, after which
     * a CLOSE with code 0 by control() says why to the other side. */
    int (*decode)(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret);

    /* Begin a body of about hint bytes at the end of out: leaves room for a header. *ret_mark is for end(). -ENOMEM. */
    int (*begin)(void *state, weft_buf *out, size_t hint, size_t *ret_mark);
    /* The body is everything behind the mark's header room; finish the frame. -ENOMEM: the caller cuts out back to mark. */
    int (*end)(void *state, weft_buf *out, size_t mark);
    /* Write a control frame: kind is PING, PONG or CLOSE (code, payload is the reason). A CLOSE with code 0 answers what
     * decode() found wrong (1002, 1007, 1009...). May be NULL: the framing has none. */
    int (*control)(void *state, weft_buf *out, enum weft_frame_kind kind, int code, const char *payload, size_t n);

    /* No more bytes will come, and n are left: the same as decode() for a frame that only the end of the input completes (a
     * last line without a newline, an HTTP body without a length). 1 a frame is in *ret, there is no other behind it; 0 the
     * input ended between frames; -EPROTO in the middle of one. Once, after decode() has returned 0. May be NULL: then what
     * is left is -EPROTO. */
    int (*finish)(void *state, char *in, size_t n, size_t max_body, size_t *ret_used, weft_frame *ret);
};

/* What a framing that looks at the first bytes has become; any other is itself. */
const weft_framing *weft__framing_in_use(const weft_framing *framing, const void *state);

/* Can a frame of this connection be given to others with the same framing? Not if what it reads was agreed on with it. */
bool weft__framing_shares(const weft_framing *framing, const void *state);

/* Framings that only transports need: one body and nothing around it (an HTTP answer), and server-sent events (out only). */
extern const weft_framing weft__body;
extern const weft_framing weft__sse;

/* mark is relative to out->start, so that a buffer may move between begin and end. */

#endif
