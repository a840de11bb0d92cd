/* Unix sockets. The kernel knows who is at the other end, so no token is needed. */
#include "server.h"
#include "transport.h"

static int listen_unix(weft_listener *listener, const weft_url *url) {
    int fd;
    int r = weft__unix_listen(&listener->socket, url->path, listener->server->alloc, &fd);
    return r < 0 ? r : weft__listener_accept_on(listener, fd);
}

const weft_transport weft__unix_transport = {
    .name = "unix", .scheme = WEFT_UNIX, .flags = WEFT_KNOWS_USER, .begin = weft__begin_unix, .listen = listen_unix};
