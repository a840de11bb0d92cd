/* Endpoints and sockets of net.h. Nothing here knows about messages. */
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A thousand clients connect in one burst; the kernel caps this at net.core.somaxconn. */
#define BACKLOG 4096

static int parse_unix(const char *path, struct endpoint *ep) {
    struct sockaddr_un *un = (struct sockaddr_un *) &ep->addr;
    size_t len = strlen(path);

    if (!len || len >= sizeof un->sun_path)
        return -EINVAL;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, len + 1);
    ep->addr_len = sizeof *un;
    return 0;
}

static int parse_inet(const char *rest, struct endpoint *ep) {
    struct sockaddr_in *in = (struct sockaddr_in *) &ep->addr;
    size_t authority = strcspn(rest, "/");
    const char *path = rest[authority] ? rest + authority : "/";
    char host[sizeof ep->host], *colon, *end;
    unsigned long port;

    if (authority >= sizeof host || strlen(path) >= sizeof ep->path)
        return -EINVAL;
    memcpy(host, rest, authority);
    host[authority] = 0;
    memcpy(ep->host, host, authority + 1);
    memcpy(ep->path, path, strlen(path) + 1);
    colon = strrchr(host, ':');
    if (!colon)
        return -EINVAL;
    *colon = 0;
    port = strtoul(colon + 1, &end, 10);
    if (*end || end == colon + 1 || port > 65535)
        return -EINVAL;
    in->sin_family = AF_INET;
    in->sin_port = htons((uint16_t) port);
    ep->addr_len = sizeof *in;
    return inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1", &in->sin_addr) == 1 ? 0 : -EINVAL;
}

int endpoint_parse(const char *url, struct endpoint *ret) {
    static const struct {
        const char *prefix;
        enum scheme scheme;
        int (*parse)(const char *rest, struct endpoint *ep);
    } schemes[] = {
        {"unix:", SCHEME_UNIX, parse_unix},
        {"tcp://", SCHEME_TCP, parse_inet},
        {"ws://", SCHEME_WS, parse_inet},
        {"http://", SCHEME_HTTP, parse_inet},
    };

    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        struct endpoint ep = {.scheme = schemes[i].scheme};
        size_t len = strlen(schemes[i].prefix);
        int r;

        if (strncmp(url, schemes[i].prefix, len))
            continue;
        r = schemes[i].parse(url + len, &ep);
        if (r >= 0)
            *ret = ep;
        return r;
    }
    return -EINVAL;
}

int endpoint_connect(const struct endpoint *ep) {
    int fd = socket(ep->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *) &ep->addr, ep->addr_len) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    if (ep->scheme != SCHEME_UNIX)
        socket_nodelay(fd);
    return fd;
}

int endpoint_listen(const struct endpoint *ep) {
    int one = 1, fd = socket(ep->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    if (ep->scheme == SCHEME_UNIX)
        unlink(((const struct sockaddr_un *) &ep->addr)->sun_path);
    else
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (const struct sockaddr *) &ep->addr, ep->addr_len) < 0 || listen(fd, BACKLOG) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

void socket_nodelay(int fd) {
    int one = 1;

    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int socket_nonblock(int fd) {
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

uint64_t raise_nofile(void) {
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 1024;
    limit.rlim_cur = limit.rlim_max;
    (void) setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}

uint64_t now_ns(void) {
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

void die(const char *format, ...) {
    va_list args;

    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}
