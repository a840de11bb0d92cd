/* Listening on a host and a port: every address the name has, one port for all. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#include "server.h"

int weft__address_text(const struct sockaddr *address, socklen_t len, char *ret, size_t size) {
    return getnameinfo(address, len, ret, (socklen_t) size, NULL, 0, NI_NUMERICHOST) == 0 ? 0 : -EINVAL;
}

static void set_port(struct sockaddr *address, int port) {
    if (address->sa_family == AF_INET6)
        ((struct sockaddr_in6 *) (void *) address)->sin6_port = htons((uint16_t) port);
    else
        ((struct sockaddr_in *) (void *) address)->sin_port = htons((uint16_t) port);
}

static int port_of(int fd) {
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    getsockname(fd, (struct sockaddr *) &address, &len);
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *) (void *) &address)->sin6_port
                                               : ((struct sockaddr_in *) (void *) &address)->sin_port);
}

/* [::] takes IPv4 too, whatever the system's default, so that one URL means one thing everywhere. */
static int open_one(const struct addrinfo *info, bool alone) {
    int on = 1, off = 0;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (info->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, alone ? &off : &on, sizeof on);
    if (bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, WEFT_BACKLOG) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

/* An address that this machine does not have is passed over; one that is taken is not. */
static int bind_all(weft_listener *listener, struct addrinfo *list) {
    int r = -EADDRNOTAVAIL;
    for (struct addrinfo *at = list; at && listener->count < WEFT_LISTENER_SOCKETS; at = at->ai_next) {
        set_port(at->ai_addr, listener->port);
        int fd = open_one(at, list->ai_next == NULL);
        if (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT)
            continue;
        r = fd;
        if (r < 0)
            return r;
        listener->port = port_of(fd);
        r = weft__listener_accept_on(listener, fd);
        if (r < 0)
            return r;
    }
    return listener->count ? 0 : r;
}

int weft__listener_bind_net(weft_listener *listener, const weft_url *url) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
    int error = getaddrinfo(url->host, NULL, &hints, &list);
    if (error) {
        weft__server_note(listener->server, "%s: %s", url->host, gai_strerror(error));
        return error == EAI_MEMORY ? -ENOMEM : error == EAI_SYSTEM ? -errno : -EADDRNOTAVAIL;
    }
    listener->port = url->port;
    int r = bind_all(listener, list);
    freeaddrinfo(list);
    return r;
}
