/* One stream of bytes over uv_poll. It knows descriptors and TLS; it knows nothing of messages, peers or servers. */
#include "stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hint.h"
#include "write_pipe.h"

/* Plain bytes encrypted before the socket is asked to take them: four records, so that a slow reader costs us 64 KiB. */
#define TLS_PIECE (64 * 1024)
/* Pieces in one flush; the rest comes on the next turn, so that one fast reader does not keep the others waiting. */
#define TLS_PIECES 16

enum { NEW, CONNECTING, SHAKING, OPEN, FINISHING, CLOSING };

static void on_poll(uv_poll_t *handle, int status, int events);
static void on_out_poll(uv_poll_t *handle, int status, int events);

/* ---- watching ---- */

/* What poll should wake us for. When there is nothing to wait for, a socket is still watched for its end: epoll always
 * reports that, and UV_PRIORITIZED is the quietest reason to be asked at all. */
static int wanted_events(const weft_stream *stream) {
    if (stream->state == NEW || stream->state == CLOSING)
        return 0;
    if (stream->state == CONNECTING)
        return UV_WRITABLE;
    bool reading = !stream->ended && (!stream->paused || stream->state != OPEN);
    bool writing = stream->full && stream->out_fd == stream->fd;
    int events = (reading ? UV_READABLE : 0) | (writing ? UV_WRITABLE : 0);
    bool can_vanish = stream->socket && !stream->vanished && !stream->urgent;
    return events || !can_vanish ? events : UV_PRIORITIZED;
}

static bool holds_back(const weft_stream *stream) {
    return stream->paused && stream->state == OPEN && !stream->ended;
}

static void watch_exactly(weft_stream *stream) {
    int events = wanted_events(stream);
    if (events == stream->watching)
        return;
    stream->watching = (unsigned char) events;
    if (events)
        uv_poll_start(&stream->poll, events, on_poll);
    else
        uv_poll_stop(&stream->poll);
}

/* Most pauses are over before a byte comes: a request is answered, then the next one is sent. So the kernel is told of a
 * pause when one comes, in on_poll(), which spares two calls for each request. */
static void watch_stream(weft_stream *stream) {
    if (!holds_back(stream) || stream->watching != UV_READABLE || stream->full)
        watch_exactly(stream);
}

/* The other of two descriptors is watched while it is full, which on a pipe to a living reader is rare; and for its end once
 * the first has ended, which says no more then. */
static int wanted_out_events(const weft_stream *stream) {
    bool can_vanish = stream->state == OPEN && stream->ended && !stream->mute && !stream->urgent;
    return stream->full ? UV_WRITABLE : can_vanish ? UV_PRIORITIZED : 0;
}

static int watch_out(weft_stream *stream) {
    int events = wanted_out_events(stream);
    if (stream->out_fd == stream->fd || (!events && !stream->out_poll))
        return 0;
    if (!stream->out_poll) {
        uv_poll_t *poll = weft__alloc(stream->loop->alloc, sizeof *poll);
        if (!poll)
            return -ENOMEM;
        int r = uv_poll_init(&stream->loop->uv, poll, stream->out_fd);
        if (r < 0) {
            weft__free(stream->loop->alloc, poll);
            return r;
        }
        poll->data = stream;
        stream->out_poll = poll;
        stream->closes++;
    }
    return events ? uv_poll_start(stream->out_poll, events, on_out_poll) : uv_poll_stop(stream->out_poll);
}

/* ---- ends ---- */

static void maybe_done(weft_stream *stream) {
    if (stream->state == FINISHING && stream->shut && (stream->ended || !stream->socket))
        weft__stream_close(stream);
}

/* No more bytes. Told once; a second time only when a clean end turns out to have been a good-bye for good. */
static void end_reading(weft_stream *stream, int why) {
    if (stream->state == CLOSING || (stream->ended && (why == 0 || stream->vanished)))
        return;
    stream->ended = true;
    if (why < 0)
        stream->vanished = stream->mute = true;
    watch_stream(stream);
    watch_out(stream); /* without memory for it, their end is noticed when something is written */
    if (stream->state == FINISHING) {
        if (why < 0)
            weft__stream_close(stream);
        else
            maybe_done(stream);
        return;
    }
    stream->ops->on_end(stream, why);
}

/* Tell a failure from the loop, not from inside the owner's own call. */
static void end_later(weft_stream *stream, int why) {
    stream->error = why;
    weft__later(stream->loop, &stream->later);
}

/* Nobody will read what we send. What they sent before leaving is still read; only when there was nothing more to come is
 * this the end. */
static void hush_stream(weft_stream *stream, int why) {
    stream->mute = true;
    stream->full = false;
    if (stream->ended || stream->state == SHAKING)
        end_later(stream, why);
}

/* ---- writing ---- */

/* How many bytes the descriptor took: fewer than len when it is full, all of them when nobody reads any more. */
static size_t push_bytes(weft_stream *stream, weft_bytes out) {
    if (stream->mute)
        return out.len;
    ssize_t n;
    do
        n = stream->socket ? send(stream->out_fd, out.data, out.len, MSG_NOSIGNAL)
                           : weft__write_pipe(stream->out_fd, out.data, out.len);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return (size_t) n;
    if (errno == EAGAIN)
        return 0;
    hush_stream(stream, -errno);
    return out.len;
}

/* true: everything there was has left. */
static bool flush_plain(weft_stream *stream) {
    weft_bytes out = stream->ops->output(stream);
    if (!out.len)
        return true;
    size_t n = push_bytes(stream, out);
    if (n)
        stream->ops->sent(stream, n);
    return n == out.len;
}

static bool flush_cipher(weft_stream *stream) {
    weft_bytes out = weft__tls_output(stream->tls);
    if (!out.len)
        return true;
    size_t n = push_bytes(stream, out);
    weft__tls_sent(stream->tls, n);
    return n == out.len;
}

/* Encrypt no more than the socket takes, so that what waits stays with the owner, who counts it. */
static bool flush_tls(weft_stream *stream) {
    for (int i = 0; i < TLS_PIECES; i++) {
        if (!flush_cipher(stream))
            return false;
        if (stream->state == CLOSING || stream->state == SHAKING || stream->shut)
            return true;
        weft_bytes out = stream->ops->output(stream);
        if (!out.len)
            return true;
        int n =
            stream->mute ? (int) out.len : weft__tls_write(stream->tls, out.data, out.len < TLS_PIECE ? out.len : TLS_PIECE);
        if (n < 0) {
            hush_stream(stream, n);
            n = (int) out.len;
        }
        stream->ops->sent(stream, (size_t) n);
    }
    weft__stream_flush_later(stream);
    return true;
}

static void end_our_half(weft_stream *stream) {
    if (stream->shut)
        return;
    if (stream->tls) {
        weft__tls_close(stream->tls);
        flush_cipher(stream);
    }
    stream->shut = true;
    if (stream->socket)
        shutdown(stream->out_fd, SHUT_WR);
}

static bool has_output(weft_stream *stream) {
    return stream->ops->output(stream).len || (stream->tls && weft__tls_output(stream->tls).len);
}

void weft__stream_flush(weft_stream *stream) {
    if (stream->state < SHAKING || stream->state == CLOSING || stream->full)
        return;
    bool all = stream->tls ? flush_tls(stream) : flush_plain(stream);
    if (stream->state == CLOSING)
        return;
    if (!all && !stream->mute) {
        stream->full = true;
        if (watch_out(stream) < 0)
            hush_stream(stream, -ENOMEM);
    } else if (stream->state != SHAKING && has_output(stream))
        weft__stream_flush_later(stream); /* sent() made room and the owner used it */
    else if (stream->state == FINISHING) {
        end_our_half(stream);
        maybe_done(stream);
    }
    if (!stream->running && stream->state != CLOSING)
        watch_stream(stream);
}

void weft__stream_flush_later(weft_stream *stream) {
    if (stream->state != CLOSING)
        weft__later(stream->loop, &stream->later);
}

static void on_writable(weft_stream *stream) {
    stream->full = false;
    weft__stream_flush(stream);
    if (stream->state != CLOSING && !stream->full)
        watch_out(stream);
}

/* Watched only for its end: has it come, or is this urgent data, which nobody asked for? */
static bool has_hung_up(int fd) {
    struct pollfd look = {.fd = fd};
    return poll(&look, 1, 0) > 0 && look.revents & (POLLHUP | POLLERR);
}

static void on_out_poll(uv_poll_t *handle, int status, int events) {
    weft_stream *stream = handle->data;
    if (status < 0 || (events & UV_PRIORITIZED && has_hung_up(stream->out_fd)))
        stream->mute = true; /* the reader of the pipe has gone */
    else if (events & UV_PRIORITIZED)
        stream->urgent = true;
    on_writable(stream);
    if (stream->mute && stream->ended)
        end_reading(stream, -ECONNRESET);
}

/* ---- reading ---- */

static void deliver_bytes(weft_stream *stream, char *data, size_t len) {
    if (stream->state == OPEN)
        stream->ops->on_bytes(stream, data, len);
}

static char *stream_room(weft_stream *stream, size_t *ret_size) {
    char *memory = stream->ops->room && stream->state == OPEN ? stream->ops->room(stream, ret_size) : NULL;
    if (!memory) {
        memory = stream->loop->read;
        *ret_size = WEFT_LOOP_READ;
    }
    return memory;
}

static void stream_opened(weft_stream *stream) {
    stream->state = OPEN;
    stream->ops->on_open(stream);
}

/* Decrypt what has arrived. What stays inside while the owner is not reading is fetched when it reads again. */
static void read_tls(weft_stream *stream) {
    while ((stream->state == OPEN && !stream->paused && !stream->ended) || stream->state == FINISHING) {
        size_t size;
        char *memory = stream_room(stream, &size);
        int n = weft__tls_read(stream->tls, memory, size);
        if (n <= 0) {
            if (n < 0)
                end_reading(stream, n == -ECONNRESET ? 0 : n);
            return;
        }
        memset(memory + n, 0, WEFT_SLACK);
        deliver_bytes(stream, memory, (size_t) n);
    }
}

static void shake_hands(weft_stream *stream) {
    int r = weft__tls_handshake(stream->tls);
    if (r < 0) {
        flush_cipher(stream); /* the alert that says why */
        end_reading(stream, r);
    } else if (r > 0)
        stream_opened(stream);
}

static void take_cipher(weft_stream *stream, const char *data, size_t len) {
    int r = weft__tls_put(stream->tls, data, len);
    if (r < 0) {
        end_reading(stream, r);
        return;
    }
    if (stream->state == SHAKING)
        shake_hands(stream);
    read_tls(stream);
}

/* The end of the socket without TLS's own good-bye may be somebody cutting the line (RFC 8446 section 6.1). */
static int read_failed(const weft_stream *stream, ssize_t n) {
    if (n < 0)
        return -errno;
    return stream->tls && stream->state != FINISHING ? -ECONNRESET : 0;
}

/* recv() where it works: on the way through read() the kernel asks what only files need, for a twentieth of the cost of a
 * short request. */
static ssize_t take_bytes(weft_stream *stream, char *memory, size_t size) {
    return stream->socket ? recv(stream->fd, memory, size, 0) : read(stream->fd, memory, size);
}

/* Plain bytes on a socket, both ways open: nothing stands between what is read and what is answered. */
static inline bool is_plain(const weft_stream *stream) {
    static const weft_stream usual = {.socket = true};
    static const weft_stream asked = {.socket = true, .paused = true, .ended = true, .mute = true, .full = true};
    bool open = stream->state == OPEN && (stream->marks & asked.marks) == usual.marks;
    return open && !stream->tls && stream->ops->take;
}

/* What came between is seen to in the usual way, and the rest of what is to be sent. */
static WEFT_NOINLINE void catch_up(weft_stream *stream) {
    weft__stream_flush(stream);
    stream->running = false;
    if (stream->state != CLOSING)
        watch_stream(stream);
}

/* Nothing was read. */
static WEFT_NOINLINE void read_nothing(weft_stream *stream, ssize_t n) {
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    stream->running = true;
    end_reading(stream, n < 0 ? -errno : 0);
    catch_up(stream);
}

/* read_once() for what most wake-ups are: a request on a plain socket, and its answer. A processor that guards its return
 * addresses against other people has forgotten ours after each system call, and guesses each return wrong that is still to
 * come; so both calls are made from here, not from below. */
static inline void answer_at_once(weft_stream *stream) {
    size_t size;
    __builtin_prefetch(&stream->timer); /* a read takes longer than memory */
    char *memory = stream_room(stream, &size);
    ssize_t n = recv(stream->fd, memory, size, 0);
    if (WEFT_RARELY(n <= 0)) {
        read_nothing(stream, n);
        return;
    }
    memset(memory + n, 0, WEFT_SLACK); /* the scanner looks there */
    stream->running = true;
    stream->ops->take(stream, memory, (size_t) n);
    weft_bytes out = is_plain(stream) ? stream->ops->output(stream) : (weft_bytes){0};
    ssize_t sent = out.len ? send(stream->out_fd, out.data, out.len, MSG_NOSIGNAL) : 0;
    if (stream->state == OPEN && stream->ops->settle)
        stream->ops->settle(stream, sent > 0 ? (size_t) sent : 0);
    if (WEFT_LIKELY(is_plain(stream) && sent == (ssize_t) out.len))
        stream->running = false;
    else
        catch_up(stream); /* what was not sent is tried again, which sees to why it was not */
}

/* One read per wake-up: level-triggered polling brings us back if there is more, after the others had their turn. */
static void read_once(weft_stream *stream) {
    size_t size = WEFT_LOOP_READ;
    char *memory = stream->tls ? stream->loop->read : stream_room(stream, &size);
    ssize_t n = take_bytes(stream, memory, size);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    stream->running = true;
    if (n > 0)
        memset(memory + n, 0, WEFT_SLACK); /* the scanner looks there */
    if (n <= 0)
        end_reading(stream, read_failed(stream, n));
    else if (stream->tls)
        take_cipher(stream, memory, (size_t) n);
    else
        deliver_bytes(stream, memory, (size_t) n);
    weft__stream_flush(stream);
    stream->running = false;
    if (stream->state != CLOSING)
        watch_stream(stream);
}

/* ---- opening ---- */

static void begin_open(weft_stream *stream) {
    if (!stream->tls) {
        stream_opened(stream);
        if (stream->state != CLOSING)
            weft__stream_flush(stream);
        return;
    }
    stream->state = SHAKING;
    shake_hands(stream);
    if (stream->state != CLOSING)
        weft__stream_flush(stream);
}

static void on_stream_connected(weft_stream *stream) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    if (error) {
        stream->state = OPEN; /* as far as it will ever be */
        end_reading(stream, -error);
    } else
        begin_open(stream);
    if (stream->state != CLOSING)
        watch_stream(stream);
}

static void look_for_end(weft_stream *stream) {
    if (has_hung_up(stream->fd)) {
        stream->mute = true;
        stream->full = false;
        weft__stream_flush(stream); /* forget what was to be sent */
        if (stream->ended)
            end_reading(stream, -ECONNRESET);
        stream->vanished = true;
    } else
        stream->urgent = true;
    if (stream->state != CLOSING)
        watch_stream(stream);
}

/* libuv reports POLLERR as a failure and stops watching; reading then says what it is. */
static WEFT_NOINLINE void take_other_events(weft_stream *stream, int status, int events) {
    if (status < 0) {
        stream->watching = 0;
        events = UV_READABLE | (stream->full ? UV_WRITABLE : 0);
    }
    if (stream->state == CONNECTING) {
        on_stream_connected(stream);
        return;
    }
    if (status >= 0 && events & UV_READABLE && holds_back(stream)) {
        events &= ~UV_READABLE;
        watch_exactly(stream);
    }
    if (events & UV_PRIORITIZED)
        look_for_end(stream);
    if (events & UV_WRITABLE && stream->state != CLOSING)
        on_writable(stream);
    if (events & UV_READABLE && stream->state != CLOSING) {
        if (stream->ended)
            look_for_end(stream);
        else
            read_once(stream);
    }
}

static void on_poll(uv_poll_t *handle, int status, int events) {
    weft_stream *stream = WEFT_CONTAINER(handle, weft_stream, poll);
    if (WEFT_LIKELY(status == 0 && events == UV_READABLE && is_plain(stream))) {
        answer_at_once(stream);
        return;
    }
    take_other_events(stream, status, events);
}

/* What the owner kept, then what the descriptor has, then the owner may fill the output again. */
static void resume_reading(weft_stream *stream) {
    bool drained = stream->drained;
    stream->resumed = stream->drained = false;
    deliver_bytes(stream, stream->loop->read, 0);
    if (!drained)
        return;
    if (stream->state == OPEN && !stream->paused && !stream->ended)
        read_once(stream);
    if (stream->state == OPEN && stream->ops->on_drained)
        stream->ops->on_drained(stream);
}

static void on_stream_later(weft_later *later) {
    weft_stream *stream = WEFT_CONTAINER(later, weft_stream, later);
    if (stream->error) {
        int why = stream->error;
        stream->error = 0;
        end_reading(stream, why);
        return;
    }
    if (stream->state == NEW) {
        begin_open(stream);
        return;
    }
    if (stream->resumed)
        resume_reading(stream);
    if (stream->tls)
        read_tls(stream);
    weft__stream_flush(stream);
}

static void on_stream_timer(weft_timer *timer) {
    weft_stream *stream = WEFT_CONTAINER(timer, weft_stream, timer);
    if (stream->state == FINISHING)
        weft__stream_close(stream);
    else
        stream->ops->on_due(stream);
}

static bool is_socket(int fd) {
    int type;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
}

int weft__stream_init(weft_stream *stream, weft_loop *loop, const weft_stream_ops *ops, int in, int out) {
    *stream = (weft_stream){.ops = ops, .loop = loop, .fd = in, .out_fd = out, .state = NEW};
    int r = uv_poll_init(&loop->uv, &stream->poll, in);
    if (r < 0)
        return r;
    stream->poll.data = stream;
    stream->closes = 1;
    stream->socket = in == out && is_socket(in);
    if (out != in)
        (void) fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
    weft__later_init(&stream->later, on_stream_later);
    weft__timer_init(&stream->timer, on_stream_timer);
    return 0;
}

int weft__stream_tls(weft_stream *stream, weft_tls_ctx *ctx, const char *host) {
    assert(stream->state == NEW && !stream->tls);
    return weft__tls_new(ctx, host, &stream->tls);
}

int weft__stream_start(weft_stream *stream, bool connecting) {
    assert(stream->state == NEW);
    if (connecting) {
        stream->state = CONNECTING;
        watch_stream(stream);
    } else
        weft__later(stream->loop, &stream->later);
    return 0;
}

void weft__stream_again(weft_stream *stream) {
    stream->resumed = true;
    weft__stream_flush_later(stream);
}

void weft__stream_drained(weft_stream *stream) {
    stream->drained = true;
    weft__stream_again(stream);
}

void weft__stream_pause(weft_stream *stream, bool paused) {
    if (stream->paused == paused || stream->state == CLOSING)
        return;
    stream->paused = paused;
    if (!paused)
        weft__stream_again(stream);
    if (!stream->running)
        watch_stream(stream);
}

void weft__stream_due(weft_stream *stream, int64_t due) {
    if (stream->state != FINISHING && stream->state != CLOSING)
        weft__timer_set(stream->loop, &stream->timer, due);
}

/* ---- closing ---- */

void weft__stream_finish(weft_stream *stream) {
    if (stream->state == FINISHING || stream->state == CLOSING)
        return;
    if (stream->state != OPEN || stream->vanished) {
        weft__stream_close(stream);
        return;
    }
    weft__timer_set(stream->loop, &stream->timer, weft__loop_fresh_now(stream->loop) + WEFT_STREAM_LINGER_MS);
    stream->state = FINISHING;
    stream->paused = false;
    weft__later(stream->loop, &stream->later);
}

static void on_handle_closed(uv_handle_t *handle) {
    weft_stream *stream = handle->data;
    if (--stream->closes)
        return;
    weft__free(stream->loop->alloc, stream->out_poll);
    stream->tls = weft__tls_free(stream->tls);
    stream->ops->on_closed(stream);
}

/* On TCP a plain close looks to the other side like the end of our half only, and it would go on answering. A reset tells it
 * that nobody is there. Unix sockets tell by themselves. */
static void reset_on_close(int fd) {
    struct linger now = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

void weft__stream_close(weft_stream *stream) {
    if (stream->state == CLOSING)
        return;
    if (stream->state >= OPEN && stream->socket && !stream->shut && !stream->ended)
        reset_on_close(stream->fd);
    stream->state = CLOSING;
    weft__later_cancel(&stream->later);
    weft__timer_stop(stream->loop, &stream->timer);
    uv_close((uv_handle_t *) &stream->poll, on_handle_closed);
    if (stream->out_poll)
        uv_close((uv_handle_t *) stream->out_poll, on_handle_closed);
    close(stream->fd);
    if (stream->out_fd != stream->fd)
        close(stream->out_fd);
}

void weft__stream_hang_up(weft_stream *stream) {
    if ((stream->state == OPEN || stream->state == FINISHING) && !stream->full)
        end_our_half(stream);
    stream->shut = true;
    weft__stream_close(stream);
}

bool weft__stream_closing(const weft_stream *stream) {
    return stream->state == CLOSING;
}

const char *weft__stream_why(const weft_stream *stream) {
    return stream->tls ? weft__tls_why(stream->tls) : "";
}
