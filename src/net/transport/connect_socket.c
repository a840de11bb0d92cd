/* Wires over sockets: Unix paths of any length, and TCP to every address a name has. Nothing in here blocks. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"
#include "mem.h"
#include "tcp.h"
#include "unix_socket.h"

/* A listener whose backlog is full answers EAGAIN, and there is no event for the moment it is not: ask again this often. */
#define FULL_BACKLOG_MS 10

/* ---- Unix ---- */

/* A socket's file can be given to anybody; who listens is known to the kernel. */
static int check_listener(weft_client *client, int fd) {
    struct ucred listener;
    socklen_t len = sizeof listener;
    if (!client->opts.same_user)
        return 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &len) < 0)
        return -errno;
    if (listener.uid == geteuid() || listener.uid == 0)
        return 0;
    weft__client_trouble(client, "another user's process listens there");
    return -EACCES;
}

static void try_unix_again(weft_timer *timer) {
    weft_wire *wire = WEFT_CONTAINER(timer, weft_wire, timer);
    int r = weft__begin_unix(wire);
    if (r < 0)
        weft__client_lost(wire->client, wire, r);
}

int weft__begin_unix(weft_wire *wire) {
    weft_loop *loop = wire->client->loop;
    int fd;
    int r = weft__unix_dial(wire->client->url.path, &fd);
    if (r == -EAGAIN) {
        wire->timer.on_due = try_unix_again;
        weft__timer_set(loop, &wire->timer, weft_loop_now(loop) + FULL_BACKLOG_MS);
        return 0;
    }
    if (r >= 0 && (r = check_listener(wire->client, fd)) < 0)
        close(fd);
    return r < 0 ? r : weft__wire_start(wire, fd, fd, false);
}

/* ---- inside the loop ---- */

int weft__begin_mem(weft_wire *wire) {
    int fd;
    int r = weft__mem_connect(wire->client->loop, wire->client->url.path, &fd);
    return r < 0 ? r : weft__wire_start(wire, fd, fd, false);
}

/* ---- TCP ---- */

/* Take the next address of the list; the ones behind it are tried when this one fails. */
static int connect_tcp(weft_wire *wire) {
    weft_client *client = wire->client;
    const struct addrinfo *address = client->next_address;
    client->next_address = address->ai_next;
    int fd, r = weft__tcp_dial(address, &fd);
    return r < 0 ? r : weft__wire_start(wire, fd, fd, true);
}

static int lookup_error(weft_wire *wire, int status) {
    weft_client *client = wire->client;
    weft__client_trouble(client, "%s: %s", client->url.host, uv_strerror(status));
    return status == UV_EAI_MEMORY ? -ENOMEM : -EHOSTUNREACH;
}

static void on_wire_lookup(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found) {
    weft_wire *wire = lookup->data;
    weft_client *client = wire->client;
    wire->lookup = weft__free(client->loop->alloc, lookup);
    if (weft__wire_current(wire)) {
        client->addresses = client->next_address = found;
        found = NULL;
        int r = status < 0 ? lookup_error(wire, status) : connect_tcp(wire);
        if (r < 0)
            weft__client_lost(client, wire, r);
    }
    uv_freeaddrinfo(found);
    weft__wire_gone(wire);
}

static int start_lookup(weft_wire *wire, const char *port, const struct addrinfo *hints) {
    weft_client *client = wire->client;
    wire->lookup = weft__zalloc(client->loop->alloc, sizeof *wire->lookup);
    if (!wire->lookup)
        return -ENOMEM;
    wire->lookup->data = wire;
    int r = uv_getaddrinfo(&client->loop->uv, wire->lookup, on_wire_lookup, client->url.host, port, hints);
    if (r < 0) {
        wire->lookup = weft__free(client->loop->alloc, wire->lookup);
        return r;
    }
    wire->holds++;
    return 0;
}

int weft__begin_tcp(weft_wire *wire) {
    weft_client *client = wire->client;
    char port[16];
    if (client->next_address)
        return connect_tcp(wire);
    snprintf(port, sizeof port, "%d", client->url.port);
    /* A number needs no question to anybody, and no thread to ask it. */
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    if (getaddrinfo(client->url.host, port, &hints, &client->addresses) == 0) {
        client->next_address = client->addresses;
        return connect_tcp(wire);
    }
    client->addresses = NULL;
    hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
    return start_lookup(wire, port, &hints);
}
