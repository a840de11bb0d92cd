/* Sockets for the benchmarks: endpoints by URL, without libweft, so that what is measured is not also the ruler.
 *
 * unix:PATH, tcp://HOST:PORT, ws://HOST:PORT[/PATH] and http://HOST:PORT[/PATH] with numeric IPv4 hosts (or localhost)
 * and paths that fit sockaddr_un: nothing else is ever needed to load a server on this machine. */
#ifndef BENCH_NET_H
#define BENCH_NET_H

#include <stdint.h>
#include <sys/socket.h>

enum scheme { SCHEME_UNIX, SCHEME_TCP, SCHEME_WS, SCHEME_HTTP };

struct endpoint {
    enum scheme scheme;
    struct sockaddr_storage addr;
    socklen_t addr_len;
    char host[64];  /* "127.0.0.1:4000", what a Host header wants; empty for Unix sockets */
    char path[128]; /* "/" when the URL has none */
};

/* 0, or -EINVAL when the URL is not one of the above. */
int endpoint_parse(const char *url, struct endpoint *ret);

/* A blocking connected socket (TCP_NODELAY where it applies), or a negative errno. */
int endpoint_connect(const struct endpoint *ep);

/* A non-blocking listening socket, or a negative errno. A Unix socket left over at the path is removed first. */
int endpoint_listen(const struct endpoint *ep);

/* Without Nagle an answer leaves when it is written; harmless on Unix sockets. */
void socket_nodelay(int fd);
int socket_nonblock(int fd);

/* Raise the descriptor limit to the hard one and return it. */
uint64_t raise_nofile(void);

uint64_t now_ns(void);

/* Print "NAME: MESSAGE" to stderr and exit 1. A benchmark that cannot go on has nothing to clean up. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
