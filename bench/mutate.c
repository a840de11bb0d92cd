/* mutate URL FOLDER: how many mutations a second the hub takes (tinyvex's doc.put of 256 bytes), each with a requestId of
 * its own and acknowledged when it is on the disk, beside the same value set in Redis with appendfsync always.
 *
 * Every client has one under way, and a key of its own. Rounds alternate. -r SOCKET is Redis's; without it the anchor is the
 * bare disk: the same bytes appended to a file in FOLDER, with one fdatasync for a client's worth of them. Each figure is
 * the median of its rounds, the ratio the median of theirs. Prints one JSON line. */
#include "lib/disk.h"
#include "lib/hist.h"
#include "lib/lines.h"
#include "lib/median.h"
#include "lib/net.h"
#include "lib/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define VALUE 256

struct client {
    struct lines lines;
    uint64_t sent_ns;
    unsigned number;
};

/* The hub's, and Redis's. */
static struct client clients[2][DISK_MAX_CLIENTS];
static struct hist hist;
static char value[VALUE + 1];
static unsigned long long last_request;

static void ask(struct client *client, int redis) {
    char text[VALUE + 512];
    int len;
    if (redis)
        len = snprintf(text, sizeof text, "*3\r\n$3\r\nSET\r\n$8\r\nkey%05u\r\n$%d\r\n%s\r\n", client->number, VALUE, value);
    else
        len = snprintf(text, sizeof text,
                       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tinyvex/mutation\",\"params\":{\"requestId\":\"%d-%llu\","
                       "\"name\":\"doc.put\",\"args\":{\"collection\":\"bench\",\"key\":\"key%05u\",\"value\":\"%s\"}}}\n",
                       (int) getpid(), ++last_request, client->number, value);
    client->sent_ns = now_ns();
    if (redis && write(client->lines.fd, text, (size_t) len) != len)
        die("redis: %m");
    if (!redis)
        lines_send(&client->lines, text, (size_t) len);
}

/* How many were acknowledged. */
static unsigned take(struct client *client, int redis) {
    unsigned n = 0;
    size_t len;
    char *line;

    lines_read(&client->lines);
    while ((line = lines_here(&client->lines, &len))) {
        if (redis && strncmp(line, "+OK", 3) != 0)
            die("redis: %.100s", line);
        if (!redis && !lines_is_answer(line))
            continue;
        if (!redis && !strstr(line, "\"version\":"))
            die("not a version: %.300s", line);
        if (!redis)
            hist_add(&hist, now_ns() - client->sent_ns);
        n++;
    }
    return n;
}

static double rate(const struct disk_options *opt, int epoll, int redis, uint64_t *ret_cpu, unsigned long *ret_done) {
    struct epoll_event events[64];
    uint64_t begun = now_ns(), until = begun + (uint64_t) (opt->seconds / DISK_ROUNDS * 1e9), cpu = 0, after = 0;
    unsigned long done = 0, open = opt->clients;

    if (opt->pid && !redis)
        proc_cpu_ns(opt->pid, &cpu);
    for (unsigned i = 0; i < opt->clients; i++)
        ask(&clients[redis][i], redis);
    while (open) {
        int n = epoll_wait(epoll, events, 64, 20000);
        if (n <= 0)
            die("no answer in 20 s");
        for (int i = 0; i < n; i++) {
            struct client *client = events[i].data.ptr;
            unsigned answers = take(client, redis);
            done += answers;
            open -= answers;
            if (answers && now_ns() < until) {
                ask(client, redis);
                open++;
            }
        }
    }
    if (opt->pid && !redis)
        proc_cpu_ns(opt->pid, &after);
    *ret_cpu += after - cpu;
    *ret_done += done;
    return (double) done / ((double) (now_ns() - begun) / 1e9);
}

static int open_clients(const struct disk_options *opt, int redis) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    for (unsigned i = 0; i < opt->clients; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &clients[redis][i]};
        clients[redis][i].number = i;
        lines_open(&clients[redis][i].lines, redis ? opt->redis : opt->url);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, clients[redis][i].lines.fd, &event) < 0)
            die("epoll_ctl: %m");
    }
    return epoll;
}

static void measure(const struct disk_options *opt) {
    double anchor[DISK_ROUNDS], hub[DISK_ROUNDS], ratio[DISK_ROUNDS];
    int epoll = open_clients(opt, 0), other = opt->redis ? open_clients(opt, 1) : -1;
    uint64_t cpu = 0, no_cpu = 0;
    unsigned long done = 0, ignored = 0;

    for (int i = 0; i < DISK_ROUNDS; i++) {
        anchor[i] = opt->redis ? rate(opt, other, 1, &no_cpu, &ignored) : disk_rate(opt, VALUE);
        hub[i] = rate(opt, epoll, 0, &cpu, &done);
        ratio[i] = hub[i] / anchor[i];
    }
    double middle = median(ratio, DISK_ROUNDS);
    printf("{\"clients\":%u,\"anchor\":\"%s\",\"raw\":%.0f,\"rate\":%.0f,\"ratio\":%.3f,\"ratio_low\":%.3f,"
           "\"ratio_high\":%.3f,\"p50_us\":%.0f,\"p99_us\":%.0f,\"cpu_ns\":%.0f}\n",
           opt->clients, opt->redis ? "redis" : "raw", median(anchor, DISK_ROUNDS), median(hub, DISK_ROUNDS), middle,
           ratio[0], ratio[DISK_ROUNDS - 1], (double) hist_quantile(&hist, 0.5) / 1e3,
           (double) hist_quantile(&hist, 0.99) / 1e3, (double) cpu / (double) done);
}

static const char usage[] = "usage: mutate [-c CLIENTS] [-t SECONDS] [-p PID] [-r REDIS] URL FOLDER";

int main(int argc, char **argv) {
    struct disk_options opt = disk_options_read(argc, argv, "c:t:p:r:", usage);

    memset(value, 'v', VALUE);
    measure(&opt);
    return 0;
}
