/* One stream of bytes: a Unix socket, TCP, or a pair of pipes, with TLS inside when asked for. Servers and clients share it.
 *
 * Reading: one 64 KiB buffer per loop, or the memory the owner asks for. Writing: pulled from the owner's buffer by
 * weft__stream_flush(), one uv_try_write per flush; what the socket does not take is moved into one uv_write, and until
 * that is done the next flush waits. EPIPE and ECONNRESET are an end like any other. */
#ifndef WEFT_STREAM_H
#define WEFT_STREAM_H

#include <uv.h>

#include "buf.h"
#include "loop.h"
#include "tls.h"

typedef struct weft_stream weft_stream;

/* The protocol on top. The owner is whatever embeds the stream. */
typedef struct weft_stream_ops {
    /* Connected, and TLS is agreed on. */
    void (*on_open)(weft_stream *stream);
    /* Bytes, in memory that may be changed, WEFT_SLACK bytes behind. The stream flushes by itself afterwards. */
    void (*on_bytes)(weft_stream *stream, char *data, size_t len);
    /* No more bytes will come; why is 0 at a clean end, else a negative errno. Once. Writing may still work after a clean end
     * (half-closed): the owner decides when to close. */
    void (*on_end)(weft_stream *stream, int why);
    /* Closed completely; the memory may be freed. Once, never inside weft__stream_close(). */
    void (*on_closed)(weft_stream *stream);
    /* Where the next bytes should go; NULL (or a NULL member): the loop's buffer. */
    char *(*room)(weft_stream *stream, size_t *ret_size);
    /* The owner's output; may be swapped for an empty buffer. */
    weft_buf *(*out)(weft_stream *stream);
    /* How many bytes taken from out have not left yet. */
    void (*in_flight)(weft_stream *stream, size_t bytes);
} weft_stream_ops;

struct weft_stream {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    const weft_stream_ops *ops;
    weft_loop *loop;
    struct weft_tls *tls;         /* NULL: plain */
    struct weft_stream_out *more; /* the write under way; NULL: none */
    uv_stream_t *write_to;        /* stdio and exec: another handle than uv; otherwise NULL */
    bool reading, ended, closing, flush_queued;
};

#endif
