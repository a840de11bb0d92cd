/* bare_echo URL...: the limit everything else is measured against.
 *
 * An epoll loop that sends the same frames back and does nothing else: no JSON, no limits, no timers. On unix: and tcp:
 * bytes go back as they came; on ws: every frame goes back unmasked, after a handshake. It is meant to be as good as such
 * a loop gets: level-triggered, one read of up to 64 KiB and one write per wake-up, no other system call unless the
 * socket is full. It must not grow features; whatever it does not do is what a multiple of it stands for. */
#include "lib/net.h"
#include "lib/ws.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define READ_SIZE (64 * 1024)
#define EVENTS 256

/* Room before the bytes read: completing a head begun in an earlier read may write more than it consumes. */
#define HEADROOM 16

enum kind { LISTENER, BYTES, HANDSHAKE, FRAMES };

struct conn {
    int fd;
    uint8_t kind;
    uint8_t next;      /* for a listener, the kind its connections start with */
    uint8_t head_have; /* bytes of an incomplete frame head */
    uint8_t mask[4];   /* rotated, so that mask[0] belongs to the next payload byte */
    uint8_t head[WS_HEAD_MAX];
    uint64_t payload; /* bytes of the current frame still to come */
    uint8_t *unsent;  /* what the socket did not take; no reading until it is gone */
    uint32_t unsent_at, unsent_len;
};

struct loop {
    int epoll;
    uint8_t buf[HEADROOM + READ_SIZE];
};

static void watch(struct loop *loop, struct conn *conn, int op, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = conn};

    if (epoll_ctl(loop->epoll, op, conn->fd, &event) < 0)
        die("epoll_ctl: %m");
}

static struct conn *conn_new(struct loop *loop, int fd, enum kind kind) {
    struct conn *conn = calloc(1, sizeof *conn);

    if (!conn)
        die("out of memory");
    conn->fd = fd;
    conn->kind = (uint8_t) kind;
    watch(loop, conn, EPOLL_CTL_ADD, EPOLLIN);
    return conn;
}

static void conn_free(struct conn *conn) {
    close(conn->fd);
    free(conn->unsent);
    free(conn);
}

static void accept_all(struct loop *loop, struct conn *listener) {
    int fd;

    while ((fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        socket_nodelay(fd);
        conn_new(loop, fd, listener->next);
    }
}

/* Keep what the socket refused and wait for room. */
static void keep(struct loop *loop, struct conn *conn, const uint8_t *p, size_t n) {
    conn->unsent = malloc(n);
    if (!conn->unsent)
        die("out of memory");
    memcpy(conn->unsent, p, n);
    conn->unsent_at = 0;
    conn->unsent_len = (uint32_t) n;
    watch(loop, conn, EPOLL_CTL_MOD, EPOLLOUT);
}

/* All of it now, or the rest later. Negative when the connection is broken. */
static int put(struct loop *loop, struct conn *conn, const uint8_t *p, size_t n) {
    ssize_t sent;

    if (!n)
        return 0;
    sent = send(conn->fd, p, n, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN)
        return -errno;
    if (sent < 0)
        sent = 0;
    if ((size_t) sent < n)
        keep(loop, conn, p + sent, n - (size_t) sent);
    return 0;
}

static int flush(struct loop *loop, struct conn *conn) {
    ssize_t sent = send(conn->fd, conn->unsent + conn->unsent_at, conn->unsent_len - conn->unsent_at, MSG_NOSIGNAL);

    if (sent < 0)
        return errno == EAGAIN ? 0 : -errno;
    conn->unsent_at += (uint32_t) sent;
    if (conn->unsent_at < conn->unsent_len)
        return 0;
    free(conn->unsent);
    conn->unsent = NULL;
    watch(loop, conn, EPOLL_CTL_MOD, EPOLLIN);
    return 0;
}

/* Unmask what is there of the current payload to `out`. */
static size_t echo_payload(struct conn *conn, uint8_t *out, const uint8_t *in, size_t n) {
    if (n > conn->payload)
        n = (size_t) conn->payload;
    ws_mask(out, in, n, conn->mask);
    conn->payload -= n;
    if (n & 3) {
        uint8_t mask[4];

        for (size_t i = 0; i < 4; i++)
            mask[i] = conn->mask[(i + n) & 3];
        memcpy(conn->mask, mask, 4);
    }
    return n;
}

/* Take a frame head, perhaps begun in an earlier read, and write the answer's. Returns the bytes consumed, 0 with the
 * head kept when it is incomplete, negative when the frame is not one a client may send. */
static int echo_head(struct conn *conn, uint8_t **out, const uint8_t *in, size_t n) {
    size_t take = WS_HEAD_MAX - conn->head_have;
    uint8_t joined[WS_HEAD_MAX];
    struct ws_head head;
    int complete;

    if (!conn->head_have) {
        complete = ws_head_read(in, n, &head);
    } else {
        take = take < n ? take : n;
        memcpy(joined, conn->head, conn->head_have);
        memcpy(joined + conn->head_have, in, take);
        complete = ws_head_read(joined, conn->head_have + take, &head);
    }
    if (!complete) {
        memcpy(conn->head + conn->head_have, in, n);
        conn->head_have = (uint8_t) (conn->head_have + n);
        return 0;
    }
    if (!head.masked)
        return -EPROTO;
    memcpy(conn->mask, head.mask, 4);
    conn->payload = head.payload;
    *out += ws_head_write(*out, head.opcode == WS_PING ? WS_PONG : head.opcode, head.payload, NULL);
    take = head.size - conn->head_have;
    conn->head_have = 0;
    return (int) take;
}

/* Payload passes through as it comes, in place: an answer's head is always shorter than the masked one it replaces, so
 * writing from the start of the buffer never overtakes reading from behind the headroom. */
static int echo_frames(struct loop *loop, struct conn *conn, size_t n) {
    const uint8_t *in = loop->buf + HEADROOM, *end = in + n;
    uint8_t *out = loop->buf;

    while (in < end) {
        size_t echoed;

        if (!conn->payload) {
            int head = echo_head(conn, &out, in, (size_t) (end - in));

            if (head < 0)
                return head;
            if (!head)
                break;
            in += head;
        }
        echoed = echo_payload(conn, out, in, (size_t) (end - in));
        in += echoed;
        out += echoed;
    }
    return put(loop, conn, loop->buf, (size_t) (out - loop->buf));
}

/* Clients of this benchmark send the whole upgrade at once and wait for the answer. */
static int answer_handshake(struct loop *loop, struct conn *conn, size_t n) {
    char answer[256];
    int r = ws_server_answer((char *) loop->buf + HEADROOM, n, answer, sizeof answer);

    if (r < 0)
        return r;
    conn->kind = FRAMES;
    return put(loop, conn, (uint8_t *) answer, (size_t) r);
}

static int echo(struct loop *loop, struct conn *conn) {
    uint8_t *in = loop->buf + HEADROOM;
    ssize_t n = recv(conn->fd, in, READ_SIZE, 0);

    if (n <= 0)
        return n < 0 && errno == EAGAIN ? 0 : -ECONNRESET;
    switch (conn->kind) {
    case BYTES:
        return put(loop, conn, in, (size_t) n);
    case HANDSHAKE:
        return answer_handshake(loop, conn, (size_t) n);
    default:
        return echo_frames(loop, conn, (size_t) n);
    }
}

static void serve(struct loop *loop) {
    struct epoll_event events[EVENTS];

    for (;;) {
        int n = epoll_wait(loop->epoll, events, EVENTS, -1);

        for (int i = 0; i < n; i++) {
            struct conn *conn = events[i].data.ptr;

            if (conn->kind == LISTENER)
                accept_all(loop, conn);
            else if ((conn->unsent ? flush(loop, conn) : echo(loop, conn)) < 0)
                conn_free(conn);
        }
    }
}

int main(int argc, char **argv) {
    struct loop *loop = malloc(sizeof *loop);

    if (argc < 2 || !loop)
        die("usage: bare_echo URL...   (unix:PATH, tcp://HOST:PORT, ws://HOST:PORT)");
    raise_nofile();
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 1; i < argc; i++) {
        struct endpoint ep;
        int fd;

        if (endpoint_parse(argv[i], &ep) < 0 || ep.scheme == SCHEME_HTTP)
            die("cannot serve %s", argv[i]);
        fd = endpoint_listen(&ep);
        if (fd < 0)
            die("%s: %s", argv[i], strerror(-fd));
        conn_new(loop, fd, LISTENER)->next = ep.scheme == SCHEME_WS ? HANDSHAKE : BYTES;
    }
    serve(loop);
}
