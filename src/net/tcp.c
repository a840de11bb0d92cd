/* Options of TCP sockets. */
#include "tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

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

void weft__tcp_probe(int fd) {
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, EVERY_SECONDS);
}
