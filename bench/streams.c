/* streams fan [-c SUBSCRIBERS] [-n EVENTS] [-p PID] [-r REDIS] URL MUTATE_URL: a client puts documents, all subscribers of
 *     the stream "events" are told; beside the same messages to as many bare socket pairs, and beside as many subscribers
 *     of a channel of Redis, whose messages are as long and which syncs nothing.
 * streams storm [-c CLIENTS] [-n EVENTS] [-p PID] URL MUTATE_URL: all clients come at once, each with a position so many
 *     events ago, and have caught up when each has all of them, once and in order.
 * streams memory [-c SUBSCRIBERS] -p PID URL: what a subscription costs beside its connection, of one stream and of streams
 *     that nobody shares.
 *
 * Prints one JSON line. */
#include "lib/bare.h"
#include "lib/lines.h"
#include "lib/net.h"
#include "lib/proc.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define WINDOW 64 /* mutations under way */

struct subscriber {
    struct lines lines;
    uint64_t seq, events;
};

struct run {
    unsigned count;
    uint64_t events;
    pid_t pid;
    const char *url, *mutate_url;
    const char *redis; /* NULL: not beside it */
    struct subscriber *all;
};

static void send_subscribe(struct lines *l, const char *more) {
    lines_sendf(
        l,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tinyvex/subscribe\",\"params\":{\"subId\":\"s\",\"name\":\"events\","
        "\"params\":{\"types\":[\"doc.\"]}%s}}\n",
        more);
}

static void take(struct subscriber *s, const char *line) {
    if (strstr(line, "\"error\":"))
        die("refused: %s", line);
    if (!strstr(line, "\"method\":\"tinyvex/data\""))
        return;
    uint64_t seq = lines_number(line, "seq");
    if (seq <= s->seq)
        die("seq %lu after %lu", seq, s->seq);
    s->seq = seq;
    s->events++;
}

/* Put so many documents, a window of them at a time; round makes their names new. */
static void put_some(struct lines *l, uint64_t *sent, uint64_t *done, uint64_t events, long round) {
    static const char value[] = "................................................................";
    size_t len;
    for (char *line; (line = lines_here(l, &len));)
        if (strstr(line, "\"result\""))
            (*done)++;
        else if (strstr(line, "\"error\""))
            die("a mutation failed: %s", line);
    for (; *sent < events && *sent - *done < WINDOW; (*sent)++)
        lines_sendf(
            l,
            "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"method\":\"tinyvex/mutation\",\"params\":{\"requestId\":\"%ld-%ld-%lu\","
            "\"name\":\"doc.put\",\"args\":{\"collection\":\"bench\",\"key\":\"k%lu\",\"value\":\"%s\"}}}\n",
            *sent, (long) getpid(), round, *sent, *sent % 100, value);
}

/* Everything that is there; how many have all events now. */
static unsigned read_ready(int epoll, struct lines *mutator, uint64_t events) {
    struct epoll_event ready[64];
    unsigned complete = 0;
    size_t len;
    int n = epoll_wait(epoll, ready, 64, 20000);
    if (n <= 0)
        die("nothing for 20 s");
    for (int i = 0; i < n; i++) {
        struct subscriber *s = ready[i].data.ptr;
        if (!s) {
            lines_read(mutator);
            continue;
        }
        uint64_t before = s->events;
        lines_read(&s->lines);
        for (char *line; (line = lines_here(&s->lines, &len));)
            take(s, line);
        complete += before < events && s->events >= events;
    }
    return complete;
}

static int open_all(struct run *run, struct lines *mutator) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned i = 0; i < run->count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &run->all[i]};
        lines_open(&run->all[i].lines, run->url);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, run->all[i].lines.fd, &event) < 0)
            die("epoll_ctl: %m");
    }
    lines_open(mutator, run->mutate_url);
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, mutator->fd, &event) < 0)
        die("epoll_ctl: %m");
    return epoll;
}

/* ---- Redis ---- */

#define CHANNEL_HEAD "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n" /* of a message, before the length of its text */

/* The length of a text that makes a message of this size, and its publication. */
static size_t write_publish(char *ret, size_t room, size_t size) {
    static char text[4096];
    size_t head = sizeof CHANNEL_HEAD - 1, len = size > head + 16 ? size - head - 8 : 1;
    if (len > sizeof text)
        len = sizeof text;
    memset(text, '.', len);
    int n = snprintf(ret, room, "*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$%zu\r\n%.*s\r\n", len, (int) len, text);
    return n > 0 && (size_t) n < room ? (size_t) n : 0;
}

static void publish_some(struct lines *l, const char *text, size_t len, uint64_t *sent, uint64_t *done, uint64_t events) {
    size_t ignored;
    for (char *line; (line = lines_here(l, &ignored));)
        if (*line == ':')
            (*done)++;
        else
            die("redis: %.100s", line);
    for (; *sent < events && *sent - *done < WINDOW; (*sent)++)
        lines_send(l, text, len);
}

static void subscribe_redis(struct run *run, struct subscriber *all, int epoll) {
    for (unsigned i = 0; i < run->count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        size_t len;
        lines_open(&all[i].lines, run->redis);
        lines_sendf(&all[i].lines, "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n");
        while (lines_next(&all[i].lines, &len)[0] != ':')
            ;
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].lines.fd, &event) < 0)
            die("epoll_ctl: %m");
    }
}

/* A message is over with the line behind the one that tells its length: so many lines of it. */
static unsigned take_messages(struct subscriber *s, uint64_t events) {
    uint64_t before = s->events / 7;
    size_t len;
    lines_read(&s->lines);
    while (lines_here(&s->lines, &len))
        s->events++;
    return before < events && s->events / 7 >= events;
}

/* Seconds until all have all of them. */
static double redis_seconds(struct run *run, size_t size) {
    struct subscriber *all = calloc(run->count, sizeof *all);
    struct lines publisher;
    struct epoll_event ready[64], event = {.events = EPOLLIN};
    char text[4096 + 128];
    size_t len = write_publish(text, sizeof text, size);
    uint64_t sent = 0, done = 0;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!all || !len)
        die("out of memory");
    subscribe_redis(run, all, epoll);
    lines_open(&publisher, run->redis);
    epoll_ctl(epoll, EPOLL_CTL_ADD, publisher.fd, &event);
    uint64_t begun = now_ns();
    for (unsigned left = run->count; left;) {
        publish_some(&publisher, text, len, &sent, &done, run->events);
        int n = epoll_wait(epoll, ready, 64, 20000);
        if (n <= 0)
            die("redis: nothing for 20 s");
        for (int i = 0; i < n; i++)
            if (!ready[i].data.ptr)
                lines_read(&publisher);
            else
                left -= take_messages(ready[i].data.ptr, run->events);
    }
    double seconds = (double) (now_ns() - begun) / 1e9;
    for (unsigned i = 0; i < run->count; i++)
        lines_close(&all[i].lines);
    lines_close(&publisher);
    close(epoll);
    free(all);
    return seconds;
}

/* ---- what is measured ---- */

static void fan(struct run *run) {
    struct lines mutator;
    uint64_t sent = 0, done = 0, cpu = 0, after = 0, bytes = 0;
    unsigned left = run->count;
    size_t len;
    int epoll = open_all(run, &mutator);
    for (unsigned i = 0; i < run->count; i++) {
        send_subscribe(&run->all[i].lines, "");
        lines_answer(&run->all[i].lines, &len);
        bytes -= run->all[i].lines.received;
    }
    if (run->pid)
        proc_cpu_ns(run->pid, &cpu);
    uint64_t begun = now_ns();
    while (left) {
        put_some(&mutator, &sent, &done, run->events, 0);
        left -= read_ready(epoll, &mutator, run->events);
    }
    double seconds = (double) (now_ns() - begun) / 1e9, all = (double) run->events * run->count;
    if (run->pid)
        proc_cpu_ns(run->pid, &after);
    for (unsigned i = 0; i < run->count; i++)
        bytes += run->all[i].lines.received;
    size_t size = (size_t) ((double) bytes / all);
    double bare = bare_seconds(run->count, run->events, size), redis = run->redis ? redis_seconds(run, size) : 0;
    printf("{\"subscribers\":%u,\"events\":%lu,\"bytes\":%zu,\"seconds\":%.3f,\"deliveries_per_second\":%.0f,"
           "\"bare_seconds\":%.3f,\"redis_per_second\":%.0f,\"cpu_ns\":%.0f}\n",
           run->count, run->events, size, seconds, all / seconds, bare, run->redis ? all / redis : 0,
           (double) (after - cpu) / all);
}

static void storm(struct run *run) {
    struct lines mutator;
    struct subscriber *first = &run->all[0];
    uint64_t sent = 0, done = 0;
    char position[64];
    size_t len;
    unsigned left = run->count;
    int epoll = open_all(run, &mutator);
    send_subscribe(&first->lines, "");
    uint64_t start = lines_number(lines_answer(&first->lines, &len), "startSeq");
    while (first->events < run->events) {
        put_some(&mutator, &sent, &done, run->events, 1);
        read_ready(epoll, &mutator, run->events);
    }
    first->events = first->seq = 0;
    snprintf(position, sizeof position, ",\"lastSeq\":%lu", start);
    uint64_t begun = now_ns();
    for (unsigned i = 0; i < run->count; i++)
        send_subscribe(&run->all[i].lines, position);
    while (left)
        left -= read_ready(epoll, &mutator, run->events);
    double seconds = (double) (now_ns() - begun) / 1e9;
    printf("{\"clients\":%u,\"events\":%lu,\"seconds\":%.3f,\"deliveries_per_second\":%.0f}\n", run->count, run->events,
           seconds, (double) run->events * run->count / seconds);
}

static double dirty_bytes(pid_t pid) {
    struct proc_memory memory;
    if (proc_memory(pid, &memory) < 0)
        die("the memory of %ld cannot be read", (long) pid);
    return (double) memory.private_dirty;
}

/* On a few connections, with as many subscriptions each as are allowed. */
static double cost_of(struct run *run, const char *form) {
    struct lines *l = calloc(64, sizeof *l); /* they stay, so that the next ones need memory of their own */
    size_t len;
    unsigned connections = (run->count + 999) / 1000, n = 0;
    if (connections > 64 || !l)
        die("at most 64,000 subscribers");
    for (unsigned c = 0; c < connections; c++)
        lines_open(&l[c], run->url);
    double before = dirty_bytes(run->pid);
    for (unsigned c = 0; c < connections; c++)
        for (unsigned i = 0; i < 1000 && n < run->count; i++, n++) {
            char params[64];
            snprintf(params, sizeof params, form, n);
            lines_sendf(
                &l[c],
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tinyvex/subscribe\",\"params\":{\"subId\":\"s%u\",\"name\":"
                "\"events\",\"params\":{\"types\":[\"%s\"]}}}\n",
                n, params);
            if (!strstr(lines_answer(&l[c], &len), "\"accepted\":true"))
                die("it was not accepted");
        }
    double after = dirty_bytes(run->pid);
    return (after - before) / run->count;
}

static void memory(struct run *run) {
    double shared = cost_of(run, "none."), apart = cost_of(run, "none.%u");
    printf("{\"subscribers\":%u,\"shared_bytes\":%.0f,\"apart_bytes\":%.0f}\n", run->count, shared, apart);
}

int main(int argc, char **argv) {
    static const char usage[] =
        "usage: streams fan|storm|memory [-c COUNT] [-n EVENTS] [-p PID] [-r REDIS] URL [MUTATE_URL]";
    struct run run = {.count = 1000, .events = 1000};
    int c;
    while ((c = getopt(argc, argv, "c:n:p:r:")) >= 0)
        if (c == 'c')
            run.count = (unsigned) strtoul(optarg, NULL, 10);
        else if (c == 'n')
            run.events = strtoull(optarg, NULL, 10);
        else if (c == 'r')
            run.redis = optarg;
        else
            run.pid = (pid_t) strtol(optarg, NULL, 10);
    const char *what = optind < argc ? argv[optind++] : "";
    bool alone = strcmp(what, "memory") == 0;
    if (argc - optind != 2 - alone || !run.count || !run.events || (alone && !run.pid))
        die("%s", usage);
    run.url = argv[optind];
    run.mutate_url = argv[argc - 1];
    raise_nofile();
    run.all = calloc(run.count, sizeof *run.all);
    if (!run.all)
        die("out of memory");
    if (strcmp(what, "fan") == 0)
        fan(&run);
    else if (strcmp(what, "storm") == 0)
        storm(&run);
    else if (alone)
        memory(&run);
    else
        die("%s", usage);
    return 0;
}
