/* idle URL: what a connection costs a server in memory while nobody uses it.
 *
 * Opens thousands of connections, has one echo answered on each so that whatever a server sets up lazily is there, and
 * compares the server's memory with that after the first few hundred. Memory the kernel keeps for the sockets is the
 * same for everyone and is not counted. When the server or the descriptor limit stops us early, the figure is over what
 * was reached, and the reason is printed with it. */
#include "lib/net.h"
#include "lib/proc.h"
#include "lib/wire.h"
#include "lib/ws.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define BASELINE 500    /* after so many, one-time buffers and the allocator's first arenas exist */
#define WORTHWHILE 1000 /* fewer measured connections than this drown in page granularity */
#define BATCH 100
#define SPARE_FDS 64     /* the server's own descriptors, and ours */
#define ANSWER_TIMEOUT 5 /* seconds */
#define SETTLE_US 200000 /* lets the server finish its last loop turn before we look */
#define REQUEST_SIZE 84

struct idle {
    const char *url;
    unsigned connections;
    pid_t pid;
    struct endpoint ep;
    enum framing framing;
    struct request req;
    struct expected expected;
    uint8_t out[4096];
};

static int open_one(struct idle *idle, int *ret_fd) {
    struct timeval timeout = {.tv_sec = ANSWER_TIMEOUT};
    int fd = endpoint_connect(&idle->ep);

    if (fd < 0)
        return fd;
    (void) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    *ret_fd = fd;
    return idle->ep.scheme == SCHEME_WS ? ws_client_ask(fd, &idle->ep) : 0;
}

static int ask_one(struct idle *idle, int fd) {
    int r = idle->ep.scheme == SCHEME_WS ? ws_client_upgraded(fd) : 0;

    if (r < 0)
        return r;
    request_write(&idle->req, ID_FIRST, idle->out);
    return send(fd, idle->out, idle->req.len, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int await_one(struct idle *idle, int fd) {
    uint8_t in[4096];
    struct body body = {0};
    size_t have = 0;
    uint32_t id;
    int r = 0;

    while (r == 0) {
        ssize_t n = have < sizeof in ? recv(fd, in + have, sizeof in - have, 0) : 0;

        if (n <= 0)
            return n < 0 ? -errno : -ECONNRESET;
        have += (size_t) n;
        r = answer_next(idle->framing, in, have, &body);
    }
    return r < 0 ? r : answer_match(&idle->expected, &idle->req, &body, &id);
}

/* Open connections until there are `goal`, step by step for a batch at a time, because one after the other every round
 * trip would wait for the server to wake up. Returns how many there are and why there are not more, 0 for no reason. */
static unsigned open_until(struct idle *idle, unsigned have, unsigned goal, int *ret_reason) {
    int fds[BATCH], r = 0;

    while (have < goal && r >= 0) {
        unsigned batch = goal - have < BATCH ? goal - have : BATCH, opened = 0, asked = 0, answered = 0;

        while (opened < batch && (r = open_one(idle, &fds[opened])) >= 0)
            opened++;
        while (asked < opened && (r = ask_one(idle, fds[asked])) >= 0)
            asked++;
        while (answered < asked && (r = await_one(idle, fds[answered])) >= 0)
            answered++;
        have += answered;
        if (opened < batch || asked < opened)
            r = r < 0 ? r : -EMFILE;
    }
    *ret_reason = r < 0 ? r : 0;
    return have;
}

static struct proc_memory memory(const struct idle *idle) {
    struct proc_memory m;
    int r;

    usleep(SETTLE_US);
    r = proc_memory(idle->pid, &m);
    if (r < 0)
        die("process %d: %s", (int) idle->pid, strerror(-r));
    return m;
}

static double per(uint64_t before, uint64_t after, unsigned n) {
    return ((double) after - (double) before) / n;
}

static void measure(struct idle *idle) {
    struct proc_memory before, after;
    unsigned have;
    int reason;

    have = open_until(idle, 0, BASELINE, &reason);
    before = memory(idle);
    if (!reason)
        have = open_until(idle, have, idle->connections, &reason);
    after = memory(idle);
    if (have < BASELINE + WORTHWHILE)
        die("%s: only %u connections: %s", idle->url, have, strerror(-reason));
    have -= BASELINE;
    printf("{\"url\":\"%s\",\"connections\":%u,\"stopped\":\"%s\",\"rss_per_connection\":%.0f,\"pss_per_connection\":%.0f,"
           "\"dirty_per_connection\":%.0f,\"rss\":%lu}\n",
           idle->url, have + BASELINE, reason ? strerror(-reason) : "", per(before.rss, after.rss, have),
           per(before.pss, after.pss, have), per(before.private_dirty, after.private_dirty, have), after.rss);
}

static void parse_options(int argc, char **argv, struct idle *idle) {
    uint64_t fds = raise_nofile();
    int c;

    idle->connections = 10000;
    while ((c = getopt(argc, argv, "c:p:")) >= 0)
        if (c == 'c')
            idle->connections = (unsigned) strtoul(optarg, NULL, 10);
        else if (c == 'p')
            idle->pid = (pid_t) strtol(optarg, NULL, 10);
    if (optind != argc - 1 || !idle->pid)
        die("usage: idle [-c CONNECTIONS] -p PID URL   (unix:PATH, tcp://HOST:PORT, ws://HOST:PORT)");
    if (idle->connections > fds - SPARE_FDS)
        idle->connections = (unsigned) (fds - SPARE_FDS);
    idle->url = argv[optind];
    if (endpoint_parse(idle->url, &idle->ep) < 0)
        die("not a URL for this program: %s", idle->url);
    idle->framing = idle->ep.scheme == SCHEME_WS     ? FRAMING_WS
                    : idle->ep.scheme == SCHEME_HTTP ? FRAMING_HTTP
                                                     : FRAMING_NDJSON;
}

int main(int argc, char **argv) {
    struct idle idle = {0};

    parse_options(argc, argv, &idle);
    if (request_init(&idle.req, idle.framing, REQUEST_SIZE, idle.ep.host, idle.ep.path) < 0)
        die("out of memory");
    measure(&idle);
    return 0;
}
