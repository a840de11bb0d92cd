/* watchers [-c WATCHERS] [-n LINES] [-r LINES_PER_SECOND] [-p PID] [-b] WS_URL[,WS_URL...] SUBMIT_URL AGENT: phones watch
 * one session whose agent writes steadily; with several URLs (relays of a hub) they take turns. How long is a line under
 * way, from the agent's write to the watcher? watchers talk "LINES RATE": what that agent runs.
 *
 * Each line has the time at which it was written. Every watcher must get every line, in order. The anchor is a thread that
 * writes messages of the same size, at the same pace, to as many bare socket pairs; -b leaves it out. Prints one JSON line.
 */
#include "lib/hist.h"
#include "lib/lines.h"
#include "lib/net.h"
#include "lib/proc.h"

#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define LINE 80
#define MARK "at "

struct watcher {
    struct lines lines;
    uint64_t seen;
};

static void wait_until_ns(uint64_t ns) {
    struct timespec at = {(time_t) (ns / 1000000000), (long) (ns % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static int talk(const char *prompt) {
    char line[LINE + 1];
    unsigned long count = 0, rate = 1;

    if (sscanf(prompt, "%lu %lu", &count, &rate) != 2 || !rate)
        die("talk: \"LINES RATE\" is expected, not %s", prompt);
    uint64_t begun = now_ns();
    for (unsigned long i = 0; i < count; i++) {
        wait_until_ns(begun + i * 1000000000 / rate);
        int n = snprintf(line, sizeof line, MARK "%020lu line %08lu ", now_ns(), i);
        memset(line + n, '.', (size_t) (LINE - 1 - n));
        line[LINE - 1] = '\n';
        if (write(1, line, LINE) != LINE)
            return 1;
    }
    return 0;
}

/* One notification is one line, or several of them. */
static void take_lines(struct watcher *w, const char *text, struct hist *hist, uint64_t now) {
    const char *at = strstr(text, "\"method\":\"claude_log\"");

    while (at && (at = strstr(at, MARK))) {
        char *end;
        uint64_t written = strtoull(at + strlen(MARK), &end, 10);
        if (strncmp(end, " line ", 6) != 0 || strtoull(end + 6, NULL, 10) != w->seen)
            die("line %lu was expected: %.200s", w->seen, text);
        hist_add(hist, now > written ? now - written : 0);
        w->seen++;
        at = end;
    }
}

static void begin_session(struct lines *owner, const char *agent, char *ret, size_t size) {
    size_t len;

    lines_sendf(owner, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session.create\",\"params\":{\"agent\":\"%s\"}}\n",
                agent);
    const char *line = lines_answer(owner, &len), *id = strstr(line, "\"id\":\"session-");
    if (!id)
        die("no session: %.300s", line);
    snprintf(ret, size, "%.*s", (int) strcspn(id + 6, "\""), id + 6);
}

#define MOST_URLS 8

static unsigned split_urls(char *text, char *ret[MOST_URLS]) {
    unsigned n = 0;
    for (char *url = strtok(text, ","); url && n < MOST_URLS; url = strtok(NULL, ","))
        ret[n++] = url;
    return n;
}

/* A relay hears of it a moment later. */
static void await_session(const char *url, const char *session) {
    for (unsigned tries = 0; tries < 5000; tries++) {
        struct lines l = {0};
        size_t len;
        lines_open(&l, url);
        lines_sendf(&l, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session.get\",\"params\":{\"sessionId\":\"%s\"}}\n",
                    session);
        char *line = lines_next(&l, &len);
        while (strncmp(line, "{\"jsonrpc\":\"2.0\",\"id\":1,", 24) != 0)
            line = lines_next(&l, &len);
        bool known = strstr(line, "\"result\":") != NULL;
        lines_close(&l);
        if (known)
            return;
        wait_until_ns(now_ns() + 1000000);
    }
    die("%s does not know the session", url);
}

static int watch_all(struct watcher *all, unsigned count, char *urls_text, const char *session) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    char *urls[MOST_URLS];
    unsigned url_count = split_urls(urls_text, urls);
    size_t len;

    for (unsigned i = 0; i < url_count; i++)
        await_session(urls[i], session);

    for (unsigned i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        lines_open(&all[i].lines, urls[i % url_count]);
        lines_sendf(&all[i].lines,
                    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/watch\",\"params\":{\"session_id\":\"%s\"}}\n",
                    session);
        lines_answer(&all[i].lines, &len);
        all[i].lines.received = 0;
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].lines.fd, &event) < 0)
            die("epoll_ctl: %m");
    }
    return epoll;
}

static void watch(struct watcher *all, unsigned count, int epoll, uint64_t expected, struct hist *hist) {
    struct epoll_event events[64];
    size_t len;

    for (unsigned left = count; left;) {
        int n = epoll_wait(epoll, events, 64, 20000);
        if (n <= 0)
            die("nothing for 20 s, %u watchers miss something", left);
        for (int i = 0; i < n; i++) {
            struct watcher *w = events[i].data.ptr;
            uint64_t before = w->seen;
            char *line;
            lines_read(&w->lines);
            uint64_t now = now_ns();
            while ((line = lines_here(&w->lines, &len)))
                take_lines(w, line, hist, now);
            left -= before < expected && w->seen >= expected;
        }
    }
    for (unsigned i = 0; i < count; i++)
        if (all[i].seen != expected)
            die("%lu lines instead of %lu", all[i].seen, expected);
}

struct bare {
    unsigned count;
    uint64_t rounds, rate;
    size_t size;
    int *fds;
};

static void *write_all(void *ctx) {
    const struct bare *bare = ctx;
    char *message = calloc(1, bare->size);
    uint64_t begun = now_ns();

    for (uint64_t r = 0; message && r < bare->rounds; r++) {
        wait_until_ns(begun + r * 1000000000 / bare->rate);
        uint64_t now = now_ns();
        memcpy(message, &now, sizeof now);
        for (unsigned i = 0; i < bare->count; i++)
            if (write(bare->fds[i], message, bare->size) != (ssize_t) bare->size)
                die("write: %m");
    }
    free(message);
    return NULL;
}

static void read_bare(const struct bare *bare, int fd, struct hist *hist, uint64_t *left) {
    static char in[256 * 1024];
    ssize_t got = read(fd, in, sizeof in - sizeof in % bare->size);
    uint64_t now = now_ns(), written;

    if (got <= 0 || (size_t) got % bare->size)
        die("read: %m");
    for (char *at = in; at < in + got; at += bare->size) {
        memcpy(&written, at, sizeof written);
        hist_add(hist, now - written);
        (*left)--;
    }
}

static void watch_bare(unsigned count, uint64_t rounds, uint64_t rate, size_t size, struct hist *hist) {
    struct epoll_event events[64];
    struct bare bare = {count, rounds, rate, size, calloc(count, sizeof(int))};
    int epoll = epoll_create1(EPOLL_CLOEXEC), pair[2];
    pthread_t writer;

    for (unsigned i = 0; i < count; i++) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
            die("socketpair: %m");
        bare.fds[i] = pair[0];
        epoll_ctl(epoll, EPOLL_CTL_ADD, pair[1], &(struct epoll_event){.events = EPOLLIN, .data.fd = pair[1]});
    }
    if (pthread_create(&writer, NULL, write_all, &bare) != 0)
        die("no thread");
    for (uint64_t left = rounds * count; left;) {
        int n = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < n; i++)
            read_bare(&bare, events[i].data.fd, hist, &left);
    }
    pthread_join(writer, NULL);
}

static double quantile_ms(const struct hist *hist, double share) {
    return (double) hist_quantile(hist, share) / 1e6;
}

int main(int argc, char **argv) {
    static struct hist hub, bare;
    unsigned count = 1000;
    uint64_t lines = 3000, rate = 1000, cpu = 0, after = 0, bytes = 0;
    struct proc_memory before = {0}, during = {0};
    struct lines owner;
    char session[64];
    pid_t pid = 0;
    bool without_bare = false;
    int c;

    if (argc > 2 && strcmp(argv[1], "talk") == 0)
        return talk(argv[argc - 1]);
    while ((c = getopt(argc, argv, "c:n:r:p:b")) >= 0)
        if (c == 'c')
            count = (unsigned) strtoul(optarg, NULL, 10);
        else if (c == 'n')
            lines = strtoull(optarg, NULL, 10);
        else if (c == 'r')
            rate = strtoull(optarg, NULL, 10);
        else if (c == 'b')
            without_bare = true;
        else
            pid = (pid_t) strtol(optarg, NULL, 10);
    if (optind != argc - 3 || !count || !lines || !rate)
        die("usage: watchers [-c WATCHERS] [-n LINES] [-r LINES_PER_SECOND] [-p PID] [-b] WS_URL[,WS_URL...] SUBMIT_URL "
            "AGENT");
    raise_nofile();
    struct watcher *all = calloc(count, sizeof *all);
    if (!all)
        die("out of memory");
    if (pid)
        proc_memory(pid, &before);
    lines_open(&owner, argv[optind + 1]);
    begin_session(&owner, argv[optind + 2], session, sizeof session);
    int epoll = watch_all(all, count, argv[optind], session);
    if (pid)
        proc_cpu_ns(pid, &cpu);
    uint64_t begun = now_ns();
    lines_sendf(&owner,
                "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session.prompt\",\"params\":{\"sessionId\":\"%s\",\"prompt\":\"%"
                "lu %lu\"}}\n",
                session, lines, rate);
    watch(all, count, epoll, lines, &hub);
    double seconds = (double) (now_ns() - begun) / 1e9;
    if (pid) {
        proc_cpu_ns(pid, &after);
        proc_memory(pid, &during);
    }
    for (unsigned i = 0; i < count; i++)
        bytes += all[i].lines.received;
    size_t size = (size_t) (bytes / (lines * count));
    if (!without_bare)
        watch_bare(count, lines, rate, size < 8 ? 8 : size, &bare);
    printf("{\"watchers\":%u,\"lines\":%lu,\"rate\":%lu,\"seconds\":%.2f,\"line_bytes\":%zu,\"p50_ms\":%.3f,\"p99_ms\":%.3f,"
           "\"max_ms\":%.3f,"
           "\"bare_p50_ms\":%.3f,\"bare_p99_ms\":%.3f,\"cpu_share\":%.3f,\"cpu_ns\":%.0f,\"rss_before\":%lu,\"rss\":%lu}\n",
           count, lines, rate, seconds, size, quantile_ms(&hub, 0.5), quantile_ms(&hub, 0.99), (double) hub.max / 1e6,
           quantile_ms(&bare, 0.5), quantile_ms(&bare, 0.99), (double) (after - cpu) / 1e9 / seconds,
           (double) (after - cpu) / (double) (lines * count), before.rss, during.rss);
    return 0;
}
