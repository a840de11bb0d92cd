/* submit URL FOLDER: how many tasks a second the hub takes, each acknowledged when it is on the disk, beside the bare disk.
 *
 * Every client has one submission under way. Rounds alternate with the same number of bytes appended to a file in FOLDER,
 * with an fdatasync for each, or for a client's worth of them: the disk's own work comes and goes within a second. Each
 * figure is the median of its rounds, the ratio the median of theirs. The hub must have tasks.paused and a large
 * tasks.max_queue. Clients of the Unix socket are told of everybody's tasks, as AIWG's are; those of a WebSocket are not.
 * Prints one JSON line. */
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

#define PROMPT 200
#define STORED 560 /* bytes of the two events of a submission with such a prompt, without the database's own */

struct client {
    struct lines lines;
    uint64_t sent_ns;
};

static struct client clients[DISK_MAX_CLIENTS];
static struct hist hist;
static char request[PROMPT + 128];
static size_t request_len;

static void ask(struct client *client) {
    client->sent_ns = now_ns();
    lines_send(&client->lines, request, request_len);
}

/* How many of its submissions were acknowledged. */
static unsigned take(struct client *client) {
    unsigned n = 0;
    size_t len;
    char *line;

    lines_read(&client->lines);
    while ((line = lines_here(&client->lines, &len)))
        if (lines_is_answer(line)) {
            if (!strstr(line, "\"taskId\":\"task-"))
                die("not a task: %.300s", line);
            hist_add(&hist, now_ns() - client->sent_ns);
            n++;
        }
    return n;
}

static double hub_rate(const struct disk_options *opt, int epoll, uint64_t *ret_cpu, unsigned long *ret_done) {
    struct epoll_event events[64];
    uint64_t begun = now_ns(), until = begun + (uint64_t) (opt->seconds / DISK_ROUNDS * 1e9), cpu = 0, after = 0;
    unsigned long done = 0, open = opt->clients;

    if (opt->pid)
        proc_cpu_ns(opt->pid, &cpu);
    for (unsigned i = 0; i < opt->clients; i++)
        ask(&clients[i]);
    while (open) {
        int n = epoll_wait(epoll, events, 64, 20000);
        if (n <= 0)
            die("no answer in 20 s");
        for (int i = 0; i < n; i++) {
            struct client *client = events[i].data.ptr;
            unsigned answers = take(client);
            done += answers;
            open -= answers;
            if (answers && now_ns() < until) {
                ask(client);
                open++;
            }
        }
    }
    if (opt->pid)
        proc_cpu_ns(opt->pid, &after);
    *ret_cpu += after - cpu;
    *ret_done += done;
    return (double) done / ((double) (now_ns() - begun) / 1e9);
}

static int open_clients(const struct disk_options *opt) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    for (unsigned i = 0; i < opt->clients; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &clients[i]};
        lines_open(&clients[i].lines, opt->url);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, clients[i].lines.fd, &event) < 0)
            die("epoll_ctl: %m");
    }
    return epoll;
}

static void measure(const struct disk_options *opt) {
    double raw[DISK_ROUNDS], hub[DISK_ROUNDS], ratio[DISK_ROUNDS];
    int epoll = open_clients(opt);
    uint64_t cpu = 0;
    unsigned long done = 0;

    for (int i = 0; i < DISK_ROUNDS; i++) {
        raw[i] = disk_rate(opt, STORED);
        hub[i] = hub_rate(opt, epoll, &cpu, &done);
        ratio[i] = hub[i] / raw[i];
    }
    double middle = median(ratio, DISK_ROUNDS);
    printf("{\"clients\":%u,\"raw\":%.0f,\"rate\":%.0f,\"ratio\":%.3f,\"ratio_low\":%.3f,\"ratio_high\":%.3f,"
           "\"p50_us\":%.0f,\"p99_us\":%.0f,\"cpu_ns\":%.0f}\n",
           opt->clients, median(raw, DISK_ROUNDS), median(hub, DISK_ROUNDS), middle, ratio[0], ratio[DISK_ROUNDS - 1],
           (double) hist_quantile(&hist, 0.5) / 1e3, (double) hist_quantile(&hist, 0.99) / 1e3,
           (double) cpu / (double) done);
}

static const char usage[] = "usage: submit [-c CLIENTS] [-t SECONDS] [-p PID] URL FOLDER";

int main(int argc, char **argv) {
    struct disk_options opt = disk_options_read(argc, argv, "c:t:p:", usage);

    request_len = (size_t) snprintf(
        request, sizeof request,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.submit\",\"params\":{\"prompt\":\"%0*d\"}}\n", PROMPT, 0);
    measure(&opt);
    return 0;
}
