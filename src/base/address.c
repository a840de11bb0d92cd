/* Grouping network addresses. Texts only: nothing is looked up. */
#include "address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

void weft__address_group(const char *address, char *ret, size_t size) {
    char bare[WEFT_ADDRESS];
    struct in6_addr parts;
    snprintf(bare, sizeof bare, "%.*s", (int) strcspn(address, "%"), address); /* without the zone of a link-local one */
    if (inet_pton(AF_INET6, bare, &parts) != 1)
        snprintf(ret, size, "%s", address);
    else if (IN6_IS_ADDR_V4MAPPED(&parts))
        inet_ntop(AF_INET, &parts.s6_addr[12], ret, (socklen_t) size);
    else {
        memset(&parts.s6_addr[8], 0, 8);
        inet_ntop(AF_INET6, &parts, ret, (socklen_t) size);
    }
}
