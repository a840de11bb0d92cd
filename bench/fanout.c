/* fanout URL: how many deliveries a second a broadcast server makes to many WebSocket clients.
 *
 * One of the clients sends {"jsonrpc":"2.0","method":"publish","params":["..."]} and every client, the sender included,
 * must get one notification for it. The text starts with a number that counts up; every client checks that what it gets
 * has the right size and the next number, so a delivery that is lost, doubled or out of order ends the run with an error.
 * The notification's own wording is the server's business: a first publish shows how long it makes a message, and the
 * text is then cut to the size asked for. */
#include "lib/net.h"
#include "lib/proc.h"
#include "lib/wire.h"
#include "lib/ws.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

#define EVENTS 256
#define STALL_MS 5000
#define READ_SIZE (64 * 1024)
#define CARRY_MAX 4096 /* also the largest notification */
#define DIGITS 8
#define WINDOW_MAX 4096

static const char publish_head[] = "{\"jsonrpc\":\"2.0\",\"method\":\"publish\",\"params\":[\"";
static const char publish_tail[] = "\"]}";

struct client {
    int fd;
    uint32_t next; /* the number its next notification must carry */
    uint32_t carry_len;
    uint8_t carry[CARRY_MAX]; /* an incomplete frame; untouched, and so free, while reads end on frame borders */
};

struct fanout {
    const char *url;
    struct endpoint ep;
    struct client *clients;
    unsigned n_clients, window;
    size_t size;      /* of a notification, in JSON text */
    size_t text_size; /* of a publish's params[0] that makes it so */
    size_t number_at; /* where in a notification the number stands */
    double seconds, warmup;
    pid_t pid;
    int epoll;
    uint32_t published;
    uint64_t delivered;
    uint8_t *out; /* a window of publishes, and what the socket has not taken */
    size_t out_at, out_len;
    uint8_t in[CARRY_MAX + READ_SIZE];
};

/* Append one masked publish. The mask is constant; that it is one at all is what the server must bear. */
static void publish(struct fanout *f) {
    static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    const size_t head = sizeof publish_head - 1, tail = sizeof publish_tail - 1;
    size_t size = head + f->text_size + tail;
    uint8_t *p = f->out + f->out_len;
    uint8_t *json = p + ws_head_write(p, WS_TEXT, size, mask);
    char number[DIGITS + 1];

    memcpy(json, publish_head, head);
    memset(json + head, 'x', f->text_size);
    snprintf(number, sizeof number, "%08u", f->published % 100000000u);
    memcpy(json + head, number, DIGITS);
    memcpy(json + head + f->text_size, publish_tail, tail);
    ws_mask(json, json, size, mask);
    f->out_len += (size_t) (json - p) + size;
    f->published++;
}

static void flush(struct fanout *f) {
    ssize_t n;

    if (f->out_at == f->out_len)
        return;
    n = send(f->clients[0].fd, f->out + f->out_at, f->out_len - f->out_at, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN)
        die("%s: send: %m", f->url);
    if (n > 0)
        f->out_at += (size_t) n;
    if (f->out_at == f->out_len)
        f->out_at = f->out_len = 0;
}

/* Publish again when half of the window has reached everybody: bursts, as a busy publisher makes them, and always more
 * in the server's queue while it sends. */
static void refill(struct fanout *f) {
    uint64_t done = f->delivered / f->n_clients, busy = f->published - done;

    if (!f->out_len && busy <= f->window / 2)
        for (; busy < f->window; busy++)
            publish(f);
    flush(f);
}

static void deliver(struct fanout *f, struct client *client, const struct body *body) {
    uint32_t number = 0;

    if (body->n != f->size)
        die("%s: a notification of %zu bytes instead of %zu: %.*s", f->url, body->n, f->size, (int) body->n,
            (const char *) body->p);
    for (size_t i = 0; i < DIGITS; i++)
        number = number * 10 + (uint32_t) (body->p[f->number_at + i] - '0');
    if (number != client->next)
        die("%s: notification %u instead of %u", f->url, number, client->next);
    client->next = (client->next + 1) % 100000000u;
    f->delivered++;
}

/* Reads share one buffer, so that a thousand clients do not cost the generator a thousand cold ones. */
static void receive(struct fanout *f, struct client *client) {
    uint8_t *p = f->in + CARRY_MAX - client->carry_len, *end;
    ssize_t n = recv(client->fd, f->in + CARRY_MAX, READ_SIZE, 0);
    struct body body;
    int r;

    if (n == 0 || (n < 0 && errno != EAGAIN))
        die("%s: a client lost its connection: %s", f->url, n ? strerror(errno) : "closed");
    if (n < 0)
        return;
    memcpy(p, client->carry, client->carry_len);
    end = f->in + CARRY_MAX + n;
    while ((r = answer_next(FRAMING_WS, p, (size_t) (end - p), &body)) > 0) {
        p += body.used;
        if (body.n)
            deliver(f, client, &body);
    }
    if (r < 0 || end - p > CARRY_MAX)
        die("%s: not a notification", f->url);
    client->carry_len = (uint32_t) (end - p);
    memcpy(client->carry, p, client->carry_len);
}

static uint64_t run(struct fanout *f, uint64_t until) {
    struct epoll_event events[EVENTS];

    for (;;) {
        uint64_t now = now_ns();
        int n;

        if (now >= until)
            return now;
        refill(f);
        n = epoll_wait(f->epoll, events, EVENTS, STALL_MS);
        if (n == 0)
            die("%s: no delivery for %d s; %lu of %lu arrived", f->url, STALL_MS / 1000, f->delivered,
                (uint64_t) f->published * f->n_clients);
        for (int i = 0; i < n; i++)
            receive(f, events[i].data.ptr);
    }
}

static void client_open(struct fanout *f, struct client *client) {
    struct timeval timeout = {.tv_sec = STALL_MS / 1000};
    int r;

    client->fd = endpoint_connect(&f->ep);
    if (client->fd < 0)
        die("%s: connect: %s", f->url, strerror(-client->fd));
    (void) setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    r = ws_client_handshake(client->fd, &f->ep);
    if (r < 0)
        die("%s: WebSocket handshake: %s", f->url, strerror(-r));
}

/* Wait, blocking, for the one notification of the first publish. */
static void await_first(struct fanout *f, struct client *client, struct body *body) {
    size_t have = 0;
    int r = 0;

    while (r <= 0 || !body->n) {
        ssize_t n = recv(client->fd, f->in + have, CARRY_MAX - have, 0);

        if (n <= 0)
            die("%s: the first publish did not reach every client", f->url);
        have += (size_t) n;
        r = answer_next(FRAMING_WS, f->in, have, body);
        if (r < 0)
            die("%s: not a notification", f->url);
    }
    client->next = f->published;
}

/* Learn from the first notification how much the server writes around the text. */
static void calibrate(struct fanout *f) {
    struct body body = {0};
    const uint8_t *number;

    f->text_size = DIGITS;
    publish(f);
    flush(f);
    for (unsigned i = f->n_clients; i-- > 0;)
        await_first(f, &f->clients[i], &body);
    number = memmem(body.p, body.n, "00000000", DIGITS);
    if (!number)
        die("%s: the notification does not carry what was published: %.*s", f->url, (int) body.n, (const char *) body.p);
    f->number_at = (size_t) (number - body.p);
    if (body.n > f->size)
        die("%s: a notification cannot have %zu bytes, the shortest has %zu", f->url, f->size, body.n);
    f->text_size = DIGITS + f->size - body.n;
    f->delivered = f->n_clients;
}

static void open_all(struct fanout *f) {
    f->out = malloc(f->window * (f->size + CARRY_MAX));
    f->clients = calloc(f->n_clients, sizeof *f->clients);
    f->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!f->out || !f->clients || f->epoll < 0)
        die("out of memory");
    for (unsigned i = 0; i < f->n_clients; i++)
        client_open(f, &f->clients[i]);
    calibrate(f);
    for (unsigned i = 0; i < f->n_clients; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &f->clients[i]};

        if (socket_nonblock(f->clients[i].fd) < 0 || epoll_ctl(f->epoll, EPOLL_CTL_ADD, f->clients[i].fd, &event) < 0)
            die("epoll_ctl: %m");
    }
}

static void measure(struct fanout *f) {
    uint64_t start, end, before, cpu_before = 0, cpu = 0;
    double seconds;

    start = run(f, now_ns() + (uint64_t) (f->warmup * 1e9));
    before = f->delivered;
    if (f->pid && proc_cpu_ns(f->pid, &cpu_before) < 0)
        die("process %d is gone", (int) f->pid);
    end = run(f, start + (uint64_t) (f->seconds * 1e9));
    if (f->pid && proc_cpu_ns(f->pid, &cpu) < 0)
        die("process %d is gone", (int) f->pid);
    seconds = (double) (end - start) / 1e9;
    before = f->delivered - before;
    printf("{\"url\":\"%s\",\"clients\":%u,\"window\":%u,\"size\":%zu,\"seconds\":%.3f,\"deliveries\":%lu,"
           "\"deliveries_per_second\":%.0f",
           f->url, f->n_clients, f->window, f->size, seconds, before, (double) before / seconds);
    if (f->pid)
        printf(",\"cpu_ns\":%.1f,\"cpu_share\":%.3f", (double) (cpu - cpu_before) / (double) before,
               (double) (cpu - cpu_before) / 1e9 / seconds);
    puts("}");
}

static const char usage[] =
    "usage: fanout [-c CLIENTS] [-w PUBLISHES IN FLIGHT] [-s BYTES] [-t SECONDS] [-u WARM-UP] [-p PID] ws://…";

static void parse_options(int argc, char **argv, struct fanout *f) {
    int c;

    f->n_clients = 1000;
    f->window = 64;
    f->size = 256;
    f->seconds = 2;
    f->warmup = 0.3;
    while ((c = getopt(argc, argv, "c:w:s:t:u:p:")) >= 0)
        switch (c) {
        case 'c':
            f->n_clients = (unsigned) strtoul(optarg, NULL, 10);
            break;
        case 'w':
            f->window = (unsigned) strtoul(optarg, NULL, 10);
            break;
        case 's':
            f->size = strtoul(optarg, NULL, 10);
            break;
        case 't':
            f->seconds = strtod(optarg, NULL);
            break;
        case 'u':
            f->warmup = strtod(optarg, NULL);
            break;
        case 'p':
            f->pid = (pid_t) strtol(optarg, NULL, 10);
            break;
        default:
            die("%s", usage);
        }
    if (optind != argc - 1 || !f->n_clients || !f->window || f->window > WINDOW_MAX || f->size > CARRY_MAX - WS_HEAD_MAX)
        die("%s", usage);
    f->url = argv[optind];
    if (endpoint_parse(f->url, &f->ep) < 0 || f->ep.scheme != SCHEME_WS)
        die("not a WebSocket URL: %s", f->url);
}

int main(int argc, char **argv) {
    struct fanout *f = calloc(1, sizeof *f);

    if (!f)
        die("out of memory");
    parse_options(argc, argv, f);
    if (raise_nofile() < f->n_clients + 16)
        die("the descriptor limit is too low for %u clients", f->n_clients);
    open_all(f);
    measure(f);
    return 0;
}
