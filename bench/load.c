/* load URL: keep a window of echo requests in flight on many connections and say how fast and at what cost they return.
 *
 * One thread, one epoll loop, no libweft. Every answer is checked byte for byte and matched by its id to the request
 * that waits for it; one wrong answer ends the run with an error, because a figure with wrong answers in it is none.
 * Prints one JSON line. Which core it runs on is the caller's business (bench/run pins it). */
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

#define EVENTS 256
#define STALL_MS 5000          /* a server that is silent this long has lost an answer */
#define IN_MIN (256 * 1024)    /* one read takes a whole window of small answers */
#define ANSWER_SLACK 4096      /* an answer with its head is at most this much larger than its request */
#define WINDOW_MAX (64 * 1024) /* leaves each slot over a thousand ids before they repeat */

struct options {
    const char *url;
    enum framing framing;
    unsigned connections, window;
    size_t size;
    double seconds, warmup;
    uint64_t count; /* stop after so many answers; 0 means by time alone */
    pid_t pid;      /* the server, 0 when its CPU is of no interest */
};

/* A place in a connection's window. Its id is ID_FIRST + turn * stride + its index, so an answer names its slot and a
 * late or doubled one names a turn that has passed. */
struct slot {
    uint64_t sent_ns;
    uint32_t id;
    uint32_t turn;
};

struct conn {
    int fd;
    int waiting; /* for EPOLLOUT */
    uint8_t *in, *out;
    size_t in_len, out_at, out_len;
    struct slot *slots;
};

struct load {
    struct options opt;
    struct endpoint ep;
    struct request req;
    struct expected expected;
    struct conn *conns;
    struct hist hist;
    size_t in_size, out_size;
    uint32_t stride; /* the window, rounded up to a power of two */
    uint64_t answers;
    uint64_t unanswered;
    int draining; /* nothing more is asked; what is unanswered must come */
    int epoll;
};

static void watch(struct load *load, struct conn *conn, int op, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = conn};

    if (epoll_ctl(load->epoll, op, conn->fd, &event) < 0)
        die("epoll_ctl: %m");
}

/* Queue the next request of a slot. There is always room: no more than a window of requests is ever unanswered. */
static void ask(struct load *load, struct conn *conn, uint32_t index, uint64_t now) {
    struct slot *slot = &conn->slots[index];

    if (conn->out_len + load->req.len > load->out_size) {
        memmove(conn->out, conn->out + conn->out_at, conn->out_len - conn->out_at);
        conn->out_len -= conn->out_at;
        conn->out_at = 0;
    }
    slot->id = ID_FIRST + (slot->turn * load->stride + index) % ID_SPAN;
    slot->turn = (slot->turn + 1) % (ID_SPAN / load->stride);
    slot->sent_ns = now;
    request_write(&load->req, slot->id, conn->out + conn->out_len);
    conn->out_len += load->req.len;
    load->unanswered++;
}

static void flush(struct load *load, struct conn *conn) {
    ssize_t n;

    if (conn->out_at == conn->out_len)
        return;
    n = send(conn->fd, conn->out + conn->out_at, conn->out_len - conn->out_at, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN)
        die("%s: send: %m", load->opt.url);
    if (n > 0)
        conn->out_at += (size_t) n;
    if (conn->out_at == conn->out_len)
        conn->out_at = conn->out_len = 0;
    if (conn->waiting != (conn->out_len > 0)) {
        conn->waiting = conn->out_len > 0;
        watch(load, conn, EPOLL_CTL_MOD, conn->waiting ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
}

static void take(struct load *load, struct conn *conn, const struct body *body, uint64_t now) {
    uint32_t id, index;

    if (answer_match(&load->expected, &load->req, body, &id) < 0)
        die("%s: wrong answer: %.*s", load->opt.url, (int) (body->n < 300 ? body->n : 300), (const char *) body->p);
    index = (id - ID_FIRST) & (load->stride - 1);
    if (id < ID_FIRST || index >= load->opt.window || conn->slots[index].id != id)
        die("%s: answer with id %u, which nobody waits for", load->opt.url, id);
    load->unanswered--;
    if (load->draining) {
        conn->slots[index].id = 0;
        return;
    }
    hist_add(&load->hist, now - conn->slots[index].sent_ns);
    load->answers++;
    ask(load, conn, index, now);
}

static void receive(struct load *load, struct conn *conn) {
    ssize_t n = recv(conn->fd, conn->in + conn->in_len, load->in_size - conn->in_len, 0);
    uint64_t now = now_ns();
    size_t at = 0;
    struct body body;
    int r;

    if (n == 0)
        die("%s: the server closed a connection", load->opt.url);
    if (n < 0 && errno != EAGAIN)
        die("%s: recv: %m", load->opt.url);
    if (n < 0)
        return;
    conn->in_len += (size_t) n;
    while ((r = answer_next(load->opt.framing, conn->in + at, conn->in_len - at, &body)) > 0) {
        at += body.used;
        if (body.n)
            take(load, conn, &body, now);
    }
    if (r < 0 || (!at && conn->in_len == load->in_size))
        die("%s: not an answer: %.*s", load->opt.url, (int) (conn->in_len - at < 300 ? conn->in_len - at : 300),
            (const char *) conn->in + at);
    conn->in_len -= at;
    memmove(conn->in, conn->in + at, conn->in_len);
    flush(load, conn);
}

/* Serve events until the clock reaches `until`, enough answers came or none is missing. Returns the time it stopped. */
static uint64_t run(struct load *load, uint64_t until, uint64_t count) {
    struct epoll_event events[EVENTS];

    for (;;) {
        uint64_t now = now_ns();
        int n;

        if (now >= until || (count && load->answers >= count) || !load->unanswered)
            return now;
        n = epoll_wait(load->epoll, events, EVENTS, STALL_MS);
        if (n == 0)
            die("%s: no answer for %d s, %lu missing", load->opt.url, STALL_MS / 1000, load->unanswered);
        for (int i = 0; i < n; i++) {
            struct conn *conn = events[i].data.ptr;

            if (events[i].events & EPOLLOUT)
                flush(load, conn);
            if (events[i].events & ~(uint32_t) EPOLLOUT)
                receive(load, conn);
        }
    }
}

static void conn_open(struct load *load, struct conn *conn) {
    int r;

    conn->in = malloc(load->in_size);
    conn->out = malloc(load->out_size);
    conn->slots = calloc(load->opt.window, sizeof *conn->slots);
    if (!conn->in || !conn->out || !conn->slots)
        die("out of memory");
    conn->fd = endpoint_connect(&load->ep);
    if (conn->fd < 0)
        die("%s: connect: %s", load->opt.url, strerror(-conn->fd));
    if (load->ep.scheme == SCHEME_WS && (r = ws_client_handshake(conn->fd, &load->ep)) < 0)
        die("%s: WebSocket handshake: %s", load->opt.url, strerror(-r));
    r = socket_nonblock(conn->fd);
    if (r < 0)
        die("fcntl: %s", strerror(-r));
    watch(load, conn, EPOLL_CTL_ADD, EPOLLIN);
}

static void open_all(struct load *load) {
    const struct options *opt = &load->opt;

    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    load->conns = calloc(opt->connections, sizeof *load->conns);
    if (!load->conns)
        die("out of memory");
    for (load->stride = 1; load->stride < opt->window;)
        load->stride *= 2;
    load->out_size = opt->window * load->req.len;
    load->in_size = load->req.len + ANSWER_SLACK > IN_MIN ? load->req.len + ANSWER_SLACK : IN_MIN;
    for (unsigned i = 0; i < opt->connections; i++)
        conn_open(load, &load->conns[i]);
    for (unsigned i = 0; i < opt->connections; i++) {
        for (uint32_t slot = 0; slot < opt->window; slot++)
            ask(load, &load->conns[i], slot, now_ns());
        flush(load, &load->conns[i]);
    }
}

static uint64_t server_cpu(const struct options *opt) {
    uint64_t ns = 0;
    int r = opt->pid ? proc_cpu_ns(opt->pid, &ns) : 0;

    if (r < 0)
        die("process %d: %s", (int) opt->pid, strerror(-r));
    return ns;
}

static void report(const struct load *load, double seconds, uint64_t cpu_ns) {
    static const char *const framings[] = {"ndjson", "length", "http", "ws"};
    const struct options *opt = &load->opt;
    const struct hist *h = &load->hist;

    printf("{\"url\":\"%s\",\"framing\":\"%s\",\"connections\":%u,\"window\":%u,\"size\":%zu,\"seconds\":%.3f,"
           "\"requests\":%lu,\"rps\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f",
           opt->url, framings[opt->framing], opt->connections, opt->window, opt->size, seconds, load->answers,
           (double) load->answers / seconds, (double) hist_quantile(h, 0.5) / 1e3, (double) hist_quantile(h, 0.99) / 1e3,
           (double) hist_quantile(h, 0.999) / 1e3, (double) h->max / 1e3);
    if (opt->pid)
        printf(",\"cpu_ns\":%.1f,\"cpu_share\":%.3f", (double) cpu_ns / (double) load->answers,
               (double) cpu_ns / 1e9 / seconds);
    puts("}");
}

static void measure(struct load *load) {
    uint64_t start, end, cpu;

    start = run(load, now_ns() + (uint64_t) (load->opt.warmup * 1e9), 0);
    cpu = server_cpu(&load->opt);
    hist_clear(&load->hist);
    load->answers = 0;
    end = run(load, start + (uint64_t) (load->opt.seconds * 1e9), load->opt.count);
    cpu = server_cpu(&load->opt) - cpu;
    if (!load->answers)
        die("%s: no answers in %.1f s", load->opt.url, load->opt.seconds);
    load->draining = 1;
    run(load, UINT64_MAX, 0);
    report(load, (double) (end - start) / 1e9, cpu);
}

static const char usage[] =
    "usage: load [options] URL\n"
    "  URL                 unix:PATH, tcp://HOST:PORT, ws://HOST:PORT[/PATH], http://HOST:PORT[/PATH]\n"
    "  -c, --connections N 64\n"
    "  -w, --window N      requests in flight per connection, 1\n"
    "  -s, --size BYTES    JSON text of a request, 84\n"
    "  -t, --seconds S     measured time, 2\n"
    "  -u, --warmup S      unmeasured time before it, 0.3\n"
    "  -n, --count N       stop earlier, after N answers\n"
    "  -f, --framing F     ndjson or length, for unix: and tcp://\n"
    "  -p, --pid PID       the server, to report its CPU per request";

static void parse_options(int argc, char **argv, struct load *load) {
    static const struct option names[] = {
        {"connections", 1, 0, 'c'}, {"window", 1, 0, 'w'},  {"size", 1, 0, 's'},
        {"seconds", 1, 0, 't'},     {"warmup", 1, 0, 'u'},  {"count", 1, 0, 'n'},
        {"pid", 1, 0, 'p'},         {"framing", 1, 0, 'f'}, {0},
    };
    struct options opt = {.connections = 64, .window = 1, .size = 84, .seconds = 2, .warmup = 0.3};
    int c;

    while ((c = getopt_long(argc, argv, "c:w:s:t:u:n:p:f:", names, NULL)) >= 0)
        switch (c) {
        case 'c':
            opt.connections = (unsigned) strtoul(optarg, NULL, 10);
            break;
        case 'w':
            opt.window = (unsigned) strtoul(optarg, NULL, 10);
            break;
        case 's':
            opt.size = strtoul(optarg, NULL, 10);
            break;
        case 't':
            opt.seconds = strtod(optarg, NULL);
            break;
        case 'u':
            opt.warmup = strtod(optarg, NULL);
            break;
        case 'n':
            opt.count = strtoul(optarg, NULL, 10);
            break;
        case 'p':
            opt.pid = (pid_t) strtol(optarg, NULL, 10);
            break;
        case 'f':
            if (framing_parse(optarg, &opt.framing) < 0)
                die("unknown framing %s", optarg);
            break;
        default:
            die("%s", usage);
        }
    if (optind != argc - 1 || !opt.connections || !opt.window || opt.window > WINDOW_MAX)
        die("%s", usage);
    opt.url = argv[optind];
    if (endpoint_parse(opt.url, &load->ep) < 0)
        die("not a URL for this program: %s", opt.url);
    if (load->ep.scheme == SCHEME_WS)
        opt.framing = FRAMING_WS;
    if (load->ep.scheme == SCHEME_HTTP)
        opt.framing = FRAMING_HTTP;
    load->opt = opt;
}

int main(int argc, char **argv) {
    struct load *load = calloc(1, sizeof *load);

    if (!load)
        die("out of memory");
    parse_options(argc, argv, load);
    raise_nofile();
    if (request_init(&load->req, load->opt.framing, load->opt.size, load->ep.host, load->ep.path) < 0)
        die("a request cannot have %zu bytes", load->opt.size);
    open_all(load);
    measure(load);
    return 0;
}
