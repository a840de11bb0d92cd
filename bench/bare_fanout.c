/* bare_fanout ws://HOST:PORT: the limit for a broadcast, to set a fan-out figure against.
 *
 * Every text frame a client sends goes to all clients, unmasked and otherwise as it came. What arrived in one turn of
 * the loop is joined in one buffer and written to each client with one call. No JSON, no subscriptions, no limits. */
#include "lib/net.h"
#include "lib/ws.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define READ_SIZE (64 * 1024)
#define TURN_MAX (1024 * 1024) /* frames joined before they are sent */
#define EVENTS 256
#define CLIENTS_MAX 16384

struct client {
    int fd;
    int upgraded;
    unsigned index; /* in the list of clients */
    uint8_t *in;    /* an incomplete frame; only publishers ever have one */
    size_t in_len;
    uint8_t *unsent;
    size_t unsent_len;
};

struct hub {
    int epoll, listener;
    unsigned n_clients;
    size_t joined_len;
    struct client *clients[CLIENTS_MAX];
    uint8_t in[2 * READ_SIZE];
    uint8_t joined[TURN_MAX];
};

static void watch(struct hub *hub, int op, int fd, uint32_t events, void *data) {
    struct epoll_event event = {.events = events, .data.ptr = data};

    if (epoll_ctl(hub->epoll, op, fd, &event) < 0)
        die("epoll_ctl: %m");
}

static void client_free(struct hub *hub, struct client *client) {
    hub->clients[client->index] = hub->clients[--hub->n_clients];
    hub->clients[client->index]->index = client->index;
    close(client->fd);
    free(client->in);
    free(client->unsent);
    free(client);
}

static void accept_all(struct hub *hub) {
    int fd;

    while ((fd = accept4(hub->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct client *client = calloc(1, sizeof *client);

        if (!client || hub->n_clients == CLIENTS_MAX)
            die("too many clients");
        socket_nodelay(fd);
        client->fd = fd;
        client->index = hub->n_clients;
        hub->clients[hub->n_clients++] = client;
        watch(hub, EPOLL_CTL_ADD, fd, EPOLLIN, client);
    }
}

static void keep(struct hub *hub, struct client *client, const uint8_t *p, size_t n) {
    uint8_t *grown = realloc(client->unsent, client->unsent_len + n);

    if (!grown)
        die("out of memory");
    if (!client->unsent)
        watch(hub, EPOLL_CTL_MOD, client->fd, EPOLLIN | EPOLLOUT, client);
    client->unsent = grown;
    memcpy(client->unsent + client->unsent_len, p, n);
    client->unsent_len += n;
}

/* A broken connection is noticed by the read that follows. */
static void put(struct hub *hub, struct client *client, const uint8_t *p, size_t n) {
    ssize_t sent = client->unsent ? 0 : send(client->fd, p, n, MSG_NOSIGNAL);

    if (sent < 0 && errno != EAGAIN)
        return;
    if (sent < 0)
        sent = 0;
    if ((size_t) sent < n)
        keep(hub, client, p + sent, n - (size_t) sent);
}

static void flush(struct hub *hub, struct client *client) {
    ssize_t sent = send(client->fd, client->unsent, client->unsent_len, MSG_NOSIGNAL);

    if (sent < 0)
        return;
    client->unsent_len -= (size_t) sent;
    memmove(client->unsent, client->unsent + sent, client->unsent_len);
    if (client->unsent_len)
        return;
    free(client->unsent);
    client->unsent = NULL;
    watch(hub, EPOLL_CTL_MOD, client->fd, EPOLLIN, client);
}

static void broadcast(struct hub *hub) {
    for (unsigned i = 0; i < hub->n_clients && hub->joined_len; i++)
        if (hub->clients[i]->upgraded)
            put(hub, hub->clients[i], hub->joined, hub->joined_len);
    hub->joined_len = 0;
}

/* Join every whole frame of p to the turn's output; returns the bytes taken, negative for a frame we cannot pass on. */
static ssize_t join(struct hub *hub, const uint8_t *p, size_t n) {
    const uint8_t *start = p, *end = p + n;
    struct ws_head head;

    while (ws_head_read(p, (size_t) (end - p), &head) && (size_t) (end - p) - head.size >= head.payload) {
        uint8_t *out;

        if (!head.masked || head.opcode == WS_CLOSE || head.payload > READ_SIZE)
            return -EPROTO;
        if (hub->joined_len + WS_HEAD_MAX + head.payload > TURN_MAX)
            broadcast(hub);
        out = hub->joined + hub->joined_len;
        out += ws_head_write(out, head.opcode, head.payload, NULL);
        ws_mask(out, p + head.size, head.payload, head.mask);
        hub->joined_len = (size_t) (out - hub->joined) + head.payload;
        p += head.size + head.payload;
    }
    return p - start;
}

static int keep_incomplete(struct client *client, const uint8_t *p, size_t n) {
    if (n > READ_SIZE)
        return -EMSGSIZE;
    if (n && !client->in && !(client->in = malloc(READ_SIZE)))
        return -ENOMEM;
    if (n)
        memcpy(client->in, p, n);
    client->in_len = n;
    return 0;
}

static int receive(struct hub *hub, struct client *client) {
    ssize_t n, taken;

    if (client->in_len)
        memcpy(hub->in, client->in, client->in_len);
    n = recv(client->fd, hub->in + client->in_len, READ_SIZE, 0);
    if (n <= 0)
        return n < 0 && errno == EAGAIN ? 0 : -ECONNRESET;
    if (!client->upgraded) {
        char answer[256];
        int r = ws_server_answer((char *) hub->in, (size_t) n, answer, sizeof answer);

        if (r >= 0)
            put(hub, client, (uint8_t *) answer, (size_t) r);
        client->upgraded = 1;
        return r;
    }
    n += (ssize_t) client->in_len;
    taken = join(hub, hub->in, (size_t) n);
    return taken < 0 ? (int) taken : keep_incomplete(client, hub->in + taken, (size_t) (n - taken));
}

static void serve(struct hub *hub) {
    struct epoll_event events[EVENTS];

    for (;;) {
        int n = epoll_wait(hub->epoll, events, EVENTS, -1);

        for (int i = 0; i < n; i++) {
            struct client *client = events[i].data.ptr;

            if (!client) {
                accept_all(hub);
                continue;
            }
            if (events[i].events & EPOLLOUT && client->unsent)
                flush(hub, client);
            if (events[i].events & ~(uint32_t) EPOLLOUT && receive(hub, client) < 0)
                client_free(hub, client);
        }
        broadcast(hub);
    }
}

int main(int argc, char **argv) {
    struct hub *hub = calloc(1, sizeof *hub);
    struct endpoint ep;

    if (argc != 2 || !hub || endpoint_parse(argv[1], &ep) < 0 || ep.scheme != SCHEME_WS)
        die("usage: bare_fanout ws://HOST:PORT");
    raise_nofile();
    hub->epoll = epoll_create1(EPOLL_CLOEXEC);
    hub->listener = endpoint_listen(&ep);
    if (hub->listener < 0)
        die("%s: %s", argv[1], strerror(-hub->listener));
    watch(hub, EPOLL_CTL_ADD, hub->listener, EPOLLIN, NULL);
    serve(hub);
}
