/* Asking the kernel which way it would send; nothing is sent. */
#include "lan_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

static bool write_address(const struct sockaddr_in *from, char ret[WEFT_LAN_ADDRESS]) {
    bool loopback = (ntohl(from->sin_addr.s_addr) >> 24) == 127, none = from->sin_addr.s_addr == 0;
    return !loopback && !none && inet_ntop(AF_INET, &from->sin_addr, ret, WEFT_LAN_ADDRESS);
}

/* Connecting a datagram socket chooses a route and sends nothing. The target is an address that nobody has (RFC 5737). */
static bool address_by_route(char ret[WEFT_LAN_ADDRESS]) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)}, from = {0};
    socklen_t len = sizeof from;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, "192.0.2.1", &to.sin_addr);
    bool found = fd >= 0 && connect(fd, (const struct sockaddr *) &to, sizeof to) == 0 &&
                 getsockname(fd, (struct sockaddr *) &from, &len) == 0 && write_address(&from, ret);
    if (fd >= 0)
        close(fd);
    return found;
}

static bool address_by_list(char ret[WEFT_LAN_ADDRESS]) {
    struct ifaddrs *list;
    bool found = false;
    if (getifaddrs(&list) < 0)
        return false;
    for (const struct ifaddrs *at = list; at && !found; at = at->ifa_next)
        if (at->ifa_addr && at->ifa_addr->sa_family == AF_INET && (at->ifa_flags & IFF_UP))
            found = write_address((const struct sockaddr_in *) (const void *) at->ifa_addr, ret);
    freeifaddrs(list);
    return found;
}

int weft__lan_address(char ret[WEFT_LAN_ADDRESS]) {
    return address_by_route(ret) || address_by_list(ret) ? 0 : -ENODEV;
}
