/* status [options] URL: "how are you" again and again, on many connections, one at a time on each: status/get over a
 * WebSocket, GET of the path with REST.
 *
 * The answers have times in them, so they are not compared byte by byte: each must be a result, or have the status 200.
 * Prints one JSON line. bench/run has the same number of bare echoes of as many bytes beside it. */
#include "lib/hist.h"
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
#include <unistd.h>

#define ROOM (64 * 1024)
#define STALL_MS 5000

static const char method[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status/get\"}";

struct client {
    int fd;
    uint64_t sent_ns;
    uint8_t in[ROOM];
    size_t len;
};

struct status {
    const char *url;
    struct endpoint ep;
    enum framing framing;
    uint8_t ask[512];
    size_t ask_len;
    struct client *clients;
    unsigned count;
    struct hist hist;
    uint64_t answers, bytes;
    int epoll;
};

static void make_request(struct status *s) {
    static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};

    if (s->framing == FRAMING_HTTP) {
        int n = snprintf((char *) s->ask, sizeof s->ask, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", s->ep.path, s->ep.host);
        s->ask_len = (size_t) n;
        return;
    }
    size_t head = ws_head_write(s->ask, WS_TEXT, sizeof method - 1, mask);
    ws_mask(s->ask + head, (const uint8_t *) method, sizeof method - 1, mask);
    s->ask_len = head + sizeof method - 1;
}

static void ask_status(struct status *s, struct client *client) {
    client->sent_ns = now_ns();
    if (send(client->fd, s->ask, s->ask_len, MSG_NOSIGNAL) != (ssize_t) s->ask_len)
        die("%s: send: %m", s->url);
}

static void open_client(struct status *s, struct client *client) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    int r = 0;

    client->fd = endpoint_connect(&s->ep);
    if (client->fd < 0)
        die("%s: connect: %s", s->url, strerror(-client->fd));
    if (s->framing == FRAMING_WS && (r = ws_client_handshake(client->fd, &s->ep)) < 0)
        die("%s: WebSocket handshake: %s", s->url, strerror(-r));
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, client->fd, &event) < 0)
        die("epoll_ctl: %m");
    ask_status(s, client);
}

static int is_right(const struct status *s, const struct client *client, const struct body *body) {
    static const char ok[] = "HTTP/1.1 200 ", result[] = "\"result\":{";

    if (s->framing == FRAMING_HTTP)
        return memcmp(client->in, ok, sizeof ok - 1) == 0;
    return memmem(body->p, body->n, result, sizeof result - 1) != NULL;
}

/* Heartbeats and other notifications have no id; they come between. */
static int is_notification(const struct status *s, const struct body *body) {
    return s->framing == FRAMING_WS && (!body->n || !memmem(body->p, body->n, "\"id\":1", 6));
}

static void receive(struct status *s, struct client *client) {
    ssize_t n = recv(client->fd, client->in + client->len, sizeof client->in - client->len, 0);
    struct body body;

    if (n <= 0)
        die("%s: the server closed a connection", s->url);
    client->len += (size_t) n;
    while (answer_next(s->framing, client->in, client->len, &body) > 0) {
        int told = is_notification(s, &body);
        if (!told && !is_right(s, client, &body))
            die("%s: wrong answer: %.*s", s->url, (int) (client->len < 300 ? client->len : 300), (const char *) client->in);
        s->bytes += told ? 0 : body.n;
        client->len -= body.used;
        memmove(client->in, client->in + body.used, client->len);
        if (told)
            continue;
        hist_add(&s->hist, now_ns() - client->sent_ns);
        s->answers++;
        ask_status(s, client);
    }
}

static uint64_t run(struct status *s, double seconds) {
    struct epoll_event events[64];
    uint64_t until = now_ns() + (uint64_t) (seconds * 1e9), now;

    while ((now = now_ns()) < until) {
        int n = epoll_wait(s->epoll, events, 64, STALL_MS);
        if (n <= 0)
            die("%s: no answer for %d s", s->url, STALL_MS / 1000);
        for (int i = 0; i < n; i++)
            receive(s, events[i].data.ptr);
    }
    return now;
}

static void measure(struct status *s, double warmup, double seconds, pid_t pid) {
    uint64_t cpu = 0, after = 0;
    uint64_t begun = run(s, warmup);

    hist_clear(&s->hist);
    s->answers = s->bytes = 0;
    if (pid && proc_cpu_ns(pid, &cpu) < 0)
        die("process %d cannot be read", (int) pid);
    uint64_t ended = run(s, seconds);
    if (pid)
        proc_cpu_ns(pid, &after);
    if (!s->answers)
        die("%s: no answers", s->url);
    printf("{\"url\":\"%s\",\"connections\":%u,\"answer_bytes\":%lu,\"rps\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"cpu_ns\":"
           "%.1f}\n",
           s->url, s->count, s->bytes / s->answers, (double) s->answers * 1e9 / (double) (ended - begun),
           (double) hist_quantile(&s->hist, 0.5) / 1e3, (double) hist_quantile(&s->hist, 0.99) / 1e3,
           (double) (after - cpu) / (double) s->answers);
}

int main(int argc, char **argv) {
    static struct status s = {.count = 64};
    double seconds = 1, warmup = 0.2;
    pid_t pid = 0;
    int c;

    while ((c = getopt(argc, argv, "c:t:u:p:")) >= 0)
        if (c == 'c')
            s.count = (unsigned) strtoul(optarg, NULL, 10);
        else if (c == 't')
            seconds = strtod(optarg, NULL);
        else if (c == 'u')
            warmup = strtod(optarg, NULL);
        else
            pid = (pid_t) strtol(optarg, NULL, 10);
    if (optind != argc - 1 || !s.count)
        die("usage: status [-c CONNECTIONS] [-t SECONDS] [-u WARMUP] [-p PID] URL");
    s.url = argv[optind];
    if (endpoint_parse(s.url, &s.ep) < 0 || (s.ep.scheme != SCHEME_WS && s.ep.scheme != SCHEME_HTTP))
        die("not a URL for this program: %s", s.url);
    s.framing = s.ep.scheme == SCHEME_WS ? FRAMING_WS : FRAMING_HTTP;
    s.epoll = epoll_create1(EPOLL_CLOEXEC);
    s.clients = calloc(s.count, sizeof *s.clients);
    if (!s.clients)
        die("out of memory");
    raise_nofile();
    make_request(&s);
    for (unsigned i = 0; i < s.count; i++)
        open_client(&s, &s.clients[i]);
    measure(&s, warmup, seconds, pid);
    return 0;
}
