/* Endpoints that are no sockets of the system: stdin and stdout are one connection that is there at once, a name inside the
 * loop takes any number. */
#include "local.h"

#include <errno.h>
#include <unistd.h>

#include "admission.h"
#include "mem.h"
#include "stdfd.h"

struct weft_local {
    weft_listener *listener;
    weft_mem mem;
    weft_stdio stdio;
    bool has_stdio;
};

static void on_connect(weft_mem *mem, int fd) {
    weft__listener_serve(WEFT_CONTAINER(mem, struct weft_local, mem)->listener, fd);
}

/* Two that read one input would each get a part of it. */
static bool has_stdio(const weft_server *server) {
    for (const weft_link *at = server->listeners.next; at != &server->listeners; at = at->next) {
        const weft_listener *listener = WEFT_CONTAINER(at, const weft_listener, link);
        if (listener->local && listener->local->has_stdio)
            return true;
    }
    return false;
}

static int open_stdio(struct weft_local *local) {
    if (has_stdio(local->listener->server))
        return -EADDRINUSE;
    int r = weft__stdio_open(&local->stdio, STDIN_FILENO, STDOUT_FILENO);
    if (r < 0)
        return r;
    local->has_stdio = true;
    weft_conn_place place;
    const weft_refusal *why = weft__admit(local->listener, &(weft_origin){0}, &place);
    return why ? -EUSERS : weft__conn_new(local->listener, local->stdio.in.fd, local->stdio.out.fd, &place);
}

static int open_local(weft_listener *listener) {
    struct weft_local *local = weft__zalloc(listener->server->alloc, sizeof *local);
    if (!local)
        return -ENOMEM;
    listener->local = local;
    local->listener = listener;
    local->mem.on_connect = on_connect;
    return 0;
}

int weft__local_listen_stdio(weft_listener *listener, const weft_url *url) {
    (void) url;
    int r = open_local(listener);
    return r < 0 ? r : open_stdio(listener->local);
}

int weft__local_listen_mem(weft_listener *listener, const weft_url *url) {
    int r = open_local(listener);
    return r < 0 ? r : weft__mem_listen(listener->server->loop, &listener->local->mem, url->path);
}

void weft__local_close(weft_listener *listener) {
    if (listener->local)
        weft__mem_close(&listener->local->mem);
}

/* Every connection is closed by now, and with them the descriptors that stdio stands on. */
void weft__local_free(weft_listener *listener) {
    if (listener->local && listener->local->has_stdio)
        weft__stdio_done(&listener->local->stdio);
    weft__free(listener->server->alloc, listener->local);
}
