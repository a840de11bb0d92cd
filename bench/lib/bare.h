/* The limit for telling many: the same messages to as many bare socket pairs, written by another thread. */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net.h"
#include "proc.h"

struct bare {
    unsigned count;
    uint64_t rounds;
    size_t size;
    int *fds;
};

static inline void *bare_write_all(void *ctx) {
    struct bare *bare = ctx;
    char *message = calloc(1, bare->size);

    for (uint64_t r = 0; message && r < bare->rounds; r++)
        for (unsigned i = 0; i < bare->count; i++)
            for (size_t at = 0; at < bare->size;) {
                ssize_t n = write(bare->fds[i], message + at, bare->size - at);
                if (n <= 0)
                    die("write: %m");
                at += (size_t) n;
            }
    free(message);
    return NULL;
}

/* Seconds for so many messages of this size to each of so many. */
static inline double bare_seconds(unsigned count, uint64_t rounds, size_t size) {
    static char in[256 * 1024];
    struct epoll_event events[64];
    struct bare bare = {count, rounds, size, calloc(count, sizeof(int))};
    int epoll = epoll_create1(EPOLL_CLOEXEC), pair[2];
    pthread_t writer;

    for (unsigned i = 0; i < count; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
            die("socketpair: %m");
        bare.fds[i] = pair[0];
        epoll_ctl(epoll, EPOLL_CTL_ADD, pair[1], &(struct epoll_event){.events = EPOLLIN, .data.fd = pair[1]});
    }
    uint64_t begun = now_ns(), left = (uint64_t) size * rounds * count;
    if (pthread_create(&writer, NULL, bare_write_all, &bare) != 0)
        die("no thread");
    while (left) {
        int n = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < n; i++) {
            ssize_t got = read(events[i].data.fd, in, sizeof in);
            left -= got > 0 ? (uint64_t) got : 0;
        }
    }
    double seconds = (double) (now_ns() - begun) / 1e9;
    pthread_join(writer, NULL);
    return seconds;
}

#endif
