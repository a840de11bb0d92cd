/* tell [-c SUBSCRIBERS] [-n LINES] [-p PID] URL SUBMIT_URL AGENT: one task prints lines, many subscribers are told of them.
 * tell talk [LINES]: what that agent runs; the last argument is the prompt, a number of lines.
 *
 * Every subscriber must get every line, and every gseq in order. The hub joins lines that come at once into one event, so
 * both are reported: lines and events, delivered to all of them. The anchor is the same bytes, in messages of the same size,
 * written to as many bare socket pairs by another thread. Prints one JSON line. */
#include "lib/bare.h"
#include "lib/lines.h"
#include "lib/net.h"
#include "lib/proc.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LINE 100

struct subscriber {
    struct lines lines;
    uint64_t gseq, events, seen;
};

struct figures {
    double seconds;
    uint64_t events, bytes;
};

static int talk(unsigned long count) {
    char line[LINE + 1];

    for (unsigned long i = 0; i < count; i++) {
        int n = snprintf(line, sizeof line, "line %08lu ", i);
        memset(line + n, '.', (size_t) (LINE - 1 - n));
        line[LINE - 1] = '\n';
        if (write(1, line, LINE) != LINE)
            return 1;
    }
    return 0;
}

static uint64_t count_lines(const char *text) {
    uint64_t n = 0;

    while ((text = strstr(text, "\\n"))) {
        n++;
        text += 2;
    }
    return n;
}

static void take(struct subscriber *s, const char *line) {
    if (!strstr(line, "\"type\":\"session.output\""))
        return;
    uint64_t gseq = lines_number(line, "gseq");
    if (gseq <= s->gseq)
        die("gseq %lu after %lu", gseq, s->gseq);
    s->gseq = gseq;
    s->events++;
    s->seen += count_lines(line);
}

static int subscribe_all(struct subscriber *all, unsigned count, const char *url) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    size_t len;

    for (unsigned i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        lines_open(&all[i].lines, url);
        lines_sendf(
            &all[i].lines,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"event.subscribe\",\"params\":{\"types\":[\"session.output\"]}}\n");
        lines_answer(&all[i].lines, &len);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].lines.fd, &event) < 0)
            die("epoll_ctl: %m");
    }
    return epoll;
}

static struct figures hub(struct subscriber *all, unsigned count, const char *url, uint64_t expected, const char *submit_url,
                          const char *agent) {
    struct epoll_event events[64];
    struct lines submitter;
    struct figures f = {0};
    unsigned left = count;
    int epoll = subscribe_all(all, count, url);
    size_t len;

    lines_open(&submitter, submit_url);
    uint64_t begun = now_ns();
    lines_sendf(
        &submitter,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.submit\",\"params\":{\"prompt\":\"%lu\",\"agent\":\"%s\"}}\n",
        expected, agent);
    lines_answer(&submitter, &len);
    lines_close(&submitter);
    while (left) {
        int n = epoll_wait(epoll, events, 64, 20000);
        if (n <= 0)
            die("nothing for 20 s, %u subscribers miss something", left);
        for (int i = 0; i < n; i++) {
            struct subscriber *s = events[i].data.ptr;
            uint64_t before = s->seen;
            char *line;
            lines_read(&s->lines);
            while ((line = lines_here(&s->lines, &len)))
                take(s, line);
            left -= before < expected && s->seen >= expected;
        }
    }
    f.seconds = (double) (now_ns() - begun) / 1e9;
    for (unsigned i = 0; i < count; i++) {
        if (all[i].seen != expected)
            die("%lu lines instead of %lu", all[i].seen, expected);
        f.events += all[i].events;
        f.bytes += all[i].lines.received;
    }
    return f;
}

int main(int argc, char **argv) {
    unsigned count = 100;
    uint64_t lines = 20000, cpu = 0, after = 0;
    pid_t pid = 0;
    int c;

    if (argc > 1 && strcmp(argv[1], "talk") == 0)
        return talk(strtoul(argv[argc - 1], NULL, 10));
    while ((c = getopt(argc, argv, "c:n:p:")) >= 0)
        if (c == 'c')
            count = (unsigned) strtoul(optarg, NULL, 10);
        else if (c == 'n')
            lines = strtoull(optarg, NULL, 10);
        else
            pid = (pid_t) strtol(optarg, NULL, 10);
    if (optind != argc - 3 || !count || !lines)
        die("usage: tell [-c SUBSCRIBERS] [-n LINES] [-p PID] URL SUBMIT_URL AGENT");
    raise_nofile();
    struct subscriber *all = calloc(count, sizeof *all);
    if (!all)
        die("out of memory");
    if (pid)
        proc_cpu_ns(pid, &cpu);
    struct figures f = hub(all, count, argv[optind], lines, argv[optind + 1], argv[optind + 2]);
    if (pid)
        proc_cpu_ns(pid, &after);
    uint64_t rounds = f.events / count;
    double bare = bare_seconds(count, rounds, (size_t) (f.bytes / f.events));
    printf("{\"subscribers\":%u,\"lines\":%lu,\"seconds\":%.3f,\"lines_per_second\":%.0f,\"events_per_second\":%.0f,\"event_"
           "bytes\":%lu,"
           "\"bare_seconds\":%.3f,\"cpu_ns_per_line\":%.1f,\"cpu_ns_per_event\":%.0f}\n",
           count, lines, f.seconds, (double) (lines * count) / f.seconds, (double) f.events / f.seconds, f.bytes / f.events,
           bare, (double) (after - cpu) / (double) (lines * count), (double) (after - cpu) / (double) f.events);
    return 0;
}
