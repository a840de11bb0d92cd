/* replay [-t] [-p PID] URL COUNT: resume a subscription COUNT events before the head and take them all; every gseq once, in
 * order. -t: the stream "events" of tinyvex in place of event.subscribe.
 *
 * The anchor is what the same bytes cost on a bare socket: a thread writes them in pieces of 64 KiB, as the hub's
 * connections do, this one reads them. Rounds alternate, each figure is the median. Prints one JSON line. */
#include "lib/lines.h"
#include "lib/median.h"
#include "lib/net.h"
#include "lib/proc.h"

#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 9
#define PIECE (64 * 1024)

static uint64_t head_of(const char *url) {
    struct lines l;
    size_t len;

    lines_open(&l, url);
    lines_sendf(&l, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"event.subscribe\",\"params\":{}}\n");
    uint64_t head = lines_number(lines_answer(&l, &len), "head");
    lines_close(&l);
    return head;
}

static bool streams; /* of tinyvex */

static void subscribe(struct lines *l, uint64_t after) {
    if (streams)
        lines_sendf(l,
                    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tinyvex/subscribe\",\"params\":{\"subId\":\"s\","
                    "\"name\":\"events\",\"lastSeq\":%lu}}\n",
                    after);
    else
        lines_sendf(l, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"event.subscribe\",\"params\":{\"after\":%lu}}\n", after);
}

/* Milliseconds from the request to the last event; the bytes it took. */
static double replay(const char *url, uint64_t head, uint64_t count, uint64_t *ret_bytes) {
    const char *method = streams ? "\"method\":\"tinyvex/data\"" : "\"method\":\"event\"";
    struct lines l;
    size_t len;
    uint64_t at = head - count;

    lines_open(&l, url);
    uint64_t begun = now_ns();
    subscribe(&l, at);
    if (!strstr(lines_answer(&l, &len), "\"resumed\":true"))
        die("it cannot be resumed");
    while (at < head) {
        const char *line = lines_next(&l, &len);
        if (!strstr(line, method))
            continue;
        uint64_t gseq = lines_number(line, "gseq");
        if (gseq != at + 1)
            die("gseq %lu after %lu", gseq, at);
        at = gseq;
    }
    double ms = (double) (now_ns() - begun) / 1e6;
    *ret_bytes = l.received;
    lines_close(&l);
    return ms;
}

struct copy {
    int fd;
    uint64_t bytes;
};

static void *write_all(void *ctx) {
    static char piece[PIECE];
    struct copy *copy = ctx;

    for (uint64_t left = copy->bytes; left;) {
        ssize_t n = write(copy->fd, piece, left < PIECE ? left : PIECE);
        if (n <= 0)
            die("write: %m");
        left -= (uint64_t) n;
    }
    return NULL;
}

static double bare_copy(uint64_t bytes) {
    static char in[4 * PIECE];
    int pair[2];
    pthread_t writer;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        die("socketpair: %m");
    struct copy copy = {pair[0], bytes};
    uint64_t begun = now_ns();
    if (pthread_create(&writer, NULL, write_all, &copy) != 0)
        die("no thread");
    for (uint64_t left = bytes; left;) {
        ssize_t n = read(pair[1], in, sizeof in);
        if (n <= 0)
            die("read: %m");
        left -= (uint64_t) n;
    }
    double ms = (double) (now_ns() - begun) / 1e6;
    pthread_join(writer, NULL);
    close(pair[0]);
    close(pair[1]);
    return ms;
}

int main(int argc, char **argv) {
    double ours[ROUNDS], bare[ROUNDS];
    uint64_t bytes = 0, cpu = 0, after = 0;
    pid_t pid = 0;
    int c;

    while ((c = getopt(argc, argv, "p:t")) >= 0)
        if (c == 't')
            streams = true;
        else
            pid = (pid_t) strtol(optarg, NULL, 10);
    if (optind != argc - 2)
        die("usage: replay [-t] [-p PID] URL COUNT");
    const char *url = argv[optind];
    uint64_t count = strtoull(argv[optind + 1], NULL, 10), head = head_of(url);
    if (!count || head < count)
        die("there are only %lu events", head);
    replay(url, head, count, &bytes);
    if (pid)
        proc_cpu_ns(pid, &cpu);
    for (int i = 0; i < ROUNDS; i++) {
        ours[i] = replay(url, head, count, &bytes);
        bare[i] = bare_copy(bytes);
    }
    if (pid)
        proc_cpu_ns(pid, &after);
    double ms = median(ours, ROUNDS);
    printf("{\"events\":%lu,\"head\":%lu,\"bytes\":%lu,\"ms\":%.2f,\"best_ms\":%.2f,\"worst_ms\":%.2f,\"bare_ms\":%.3f,"
           "\"events_per_second\":%.0f,\"cpu_ns\":%.0f}\n",
           count, head, bytes, ms, ours[0], ours[ROUNDS - 1], median(bare, ROUNDS), (double) count / ms * 1e3,
           (double) (after - cpu) / ROUNDS / (double) count);
    return 0;
}
