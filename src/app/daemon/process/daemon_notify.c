/* Readiness for systemd's Type=notify, without its library: one datagram per change. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "alloc.h"
#include "daemon.h"

/* Taken out of the environment: an agent must not be able to speak for us. */
char *weft__daemon_notify_take(void) {
    const char *path = getenv("NOTIFY_SOCKET");
    char *copy = path ? weft__strndup(NULL, path, strlen(path)) : NULL;
    unsetenv("NOTIFY_SOCKET");
    return copy;
}

void weft__daemon_notify(const char *path, const char *state) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    if (len < 2 || len >= sizeof address.sun_path || (*path != '/' && *path != '@'))
        return;
    memcpy(address.sun_path, path, len);
    if (*path == '@')
        address.sun_path[0] = '\0'; /* an abstract name: its length counts, and no NUL ends it */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t size = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + len);
    ssize_t n = sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *) &address, size);
    (void) n; /* a manager that does not listen is its own problem */
    close(fd);
}
