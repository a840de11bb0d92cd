/* One stream of bytes: a socket, or a pair of pipes, with TLS inside when asked for. Servers and clients share it.
 *
 * It stands on uv_poll, not on uv_stream: the same system calls (one read and one send per wake-up), half the memory, no
 * request objects, and the send can say MSG_NOSIGNAL, which libuv's cannot, so that a library never raises SIGPIPE in the
 * program that uses it (on pipes, which know no such flag, the signal is held back around the write).
 *
 * Reading: into one buffer per loop, or where the owner says. Writing: pulled from the owner's output by
 * weft__stream_flush(); what the socket does not take stays with the owner until the socket is writable again. EPIPE and
 * ECONNRESET are an end like any other.
 *
 *   opened ──connected, TLS agreed──▶ open      on_open()       open ──weft__stream_finish()──▶ finishing
 *   finishing ──all sent, other side ended, or time is up──▶ closing
 *   any ──weft__stream_close()──▶ closing ──▶ on_closed()                                                            */
#ifndef WEFT_STREAM_H
#define WEFT_STREAM_H

#include "buf.h"
#include "loop.h"
#include "tls.h"

typedef struct weft_stream weft_stream;

/* The protocol on top. The owner is whatever embeds the stream. Every callback may close or finish the stream. */
typedef struct weft_stream_ops {
    /* Connected, and TLS is agreed on. Called once, never inside weft__stream_start(). */
    void (*on_open)(weft_stream *stream);
    /* Bytes, in memory that may be changed, WEFT_SLACK bytes behind. The stream flushes by itself afterwards. Comes once
     * with no bytes (len 0) when reading goes on after a pause, so that an owner that kept some back can go on with them. */
    void (*on_bytes)(weft_stream *stream, char *data, size_t len);
    /* For who reads and answers at once, instead of on_bytes where it is possible: take() takes bytes and leaves what there
     * is to be sent to the stream, settle() comes when that was tried, with what sent() would be told. Not inside one
     * another: each call that has to return behind a system call costs (see answer_at_once()). Both or neither may be NULL.
     */
    void (*take)(weft_stream *stream, char *data, size_t len);
    void (*settle)(weft_stream *stream, size_t sent);
    /* No more bytes will come: 0 a clean end, else why not (weft__stream_why() may know more). Once; not after finish or
     * close. After a clean end writing still works (the other side may only have shut down its half): the owner finishes or
     * closes now or later. After an unclean one, also when on_open was never called, the owner closes. It may come a second
     * time with an error, when the other side vanishes altogether after a clean end. */
    void (*on_end)(weft_stream *stream, int why);
    /* Closed completely; the memory may be freed. Once, never inside weft__stream_close(). */
    void (*on_closed)(weft_stream *stream);
    /* Where the next bytes should go; NULL (or a NULL member): the loop's buffer. */
    char *(*room)(weft_stream *stream, size_t *ret_size);
    /* What is to be sent, borrowed until sent(); and how much of it has left. */
    weft_bytes (*output)(weft_stream *stream);
    void (*sent)(weft_stream *stream, size_t n);
    /* What weft__stream_drained() asks for: on_bytes has had its turn. Only if that is called. */
    void (*on_drained)(weft_stream *stream);
    /* The time set by weft__stream_due() has come. */
    void (*on_due)(weft_stream *stream);
} weft_stream_ops;

struct weft_stream {
    uv_poll_t poll;
    const weft_stream_ops *ops;
    weft_loop *loop;
    weft_tls *tls;  /* NULL: plain */
    int fd, out_fd; /* the same for a socket */
    int error;      /* to be told by on_end on a later turn */
    unsigned char state;
    unsigned char watching; /* what poll is set to */
    unsigned char closes;   /* handles that are not closed yet */
    union {
        struct {
            bool socket : 1;   /* send() works on it */
            bool paused : 1;   /* by the owner */
            bool ended : 1;    /* nothing more will come */
            bool vanished : 1; /* the other side has gone altogether */
            bool mute : 1;     /* nobody reads what we send: it is thrown away */
            bool full : 1;     /* the socket took only part; wait until it is writable */
            bool urgent : 1;   /* out-of-band data: do not watch for it again */
            bool shut : 1;     /* our half has ended */
        };
        unsigned char marks; /* all of these, to be asked at once */
    };
    bool resumed : 1; /* on_bytes is to be called without bytes */
    bool drained : 1; /* on_drained is to be called, after that and after one read */
    bool running : 1; /* inside read_once(): the flush comes afterwards */
    weft_timer timer;
    weft_later later;
    uv_poll_t *out_poll; /* for out_fd when it is another descriptor and had to be watched; NULL: none */
};

/* Take over a connected or connecting socket, or a pair of descriptors (in, out); non-blocking from now on. Descriptors 0 to
 * 2 are only borrowed. Nothing happens before weft__stream_start(). On failure the descriptors stay the caller's; on success
 * the stream must be closed and its memory kept until on_closed. */
int weft__stream_init(weft_stream *stream, weft_loop *loop, const weft_stream_ops *ops, int in, int out);
/* Wrap it in TLS; before start. host: see weft__tls_new(). */
int weft__stream_tls(weft_stream *stream, weft_tls_ctx *ctx, const char *host);
/* Begin: wait for a connection under way (connecting), shake hands, read. on_open follows. */
int weft__stream_start(weft_stream *stream, bool connecting);

/* Send what there is, now. Never calls on_end: a failure is told by it on a later turn. */
void weft__stream_flush(weft_stream *stream);
/* The same before the loop waits again. For output that appeared outside of on_bytes. */
void weft__stream_flush_later(weft_stream *stream);
/* Call on_bytes without bytes before the loop waits again: the owner kept input back and can go on with it. */
void weft__stream_again(weft_stream *stream);
/* The same, then read once, then call on_drained: the owner has room for output, and what came in meanwhile goes first. */
void weft__stream_drained(weft_stream *stream);
/* Do not read for a while: the other side does not take what we send. */
void weft__stream_pause(weft_stream *stream, bool paused);
/* Call on_due once when this time (weft_loop_now()) has come; INT64_MAX: not. Moving it later is free. */
void weft__stream_due(weft_stream *stream, int64_t due);

/* Send what there is, end our half, wait for the other side's end, at most for WEFT_STREAM_LINGER_MS; then close. Input is
 * thrown away meanwhile. Closing at once instead would let the system throw away answers that have not arrived yet. */
#define WEFT_STREAM_LINGER_MS 2000
void weft__stream_finish(weft_stream *stream);
/* Close now. Harmless when it is closing already. on_closed follows on a later turn. The other side learns by a reset that
 * nobody waits for its answers; after hang_up it sees an ordinary end of what we had to say. */
void weft__stream_close(weft_stream *stream);
void weft__stream_hang_up(weft_stream *stream);
bool weft__stream_closing(const weft_stream *stream);

/* More about a failure than errno says (TLS), as a sentence; never NULL. */
const char *weft__stream_why(const weft_stream *stream);

#endif
