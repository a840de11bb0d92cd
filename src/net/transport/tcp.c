/* Sockets of TCP; see tcp.h. */
#include "tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* Silence, then this many questions this far apart: 20 + 3 * 5 = 35 seconds. */
#define IDLE_SECONDS 20
#define EVERY_SECONDS 5
#define QUESTIONS 3

/* They fail on sockets that are not TCP's, which need none. */
static void set(int fd, int level, int name, int value) {
    (void) setsockopt(fd, level, name, &value, sizeof value);
}

void weft__tcp_tune(int fd) {
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, IDLE_SECONDS);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, EVERY_SECONDS);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, QUESTIONS);
}

int weft__tcp_dial(const struct addrinfo *address, int *ret) {
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    weft__tcp_tune(fd);
    if (connect(fd, address->ai_addr, address->ai_addrlen) < 0 && errno != EINPROGRESS) {
        int r = -errno;
        close(fd);
        return r;
    }
    *ret = fd;
    return 0;
}

void weft__tcp_probe(int fd) {
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, EVERY_SECONDS);
}
