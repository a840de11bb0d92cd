/* Listeners: accept, look who it is, refuse or serve. Several HTTP endpoints may share one. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admission.h"
#include "http_server.h"
#include "local.h"
#include "tcp.h"

/* Connections taken in one wake-up, so that a flood of new ones does not starve the old ones. */
#define ACCEPTS 64
/* How long nobody is accepted when there is not even a descriptor to refuse with. */
#define REST_MS 100

/* ---- refusing ---- */

static const weft_refusal no_descriptors = {503, "Out of file descriptors", "tooManyConnections"};

static int refusal_text(const weft_listener *listener, const weft_refusal *why, char *text, size_t size) {
    char body[200];
    int n = snprintf(
        body, sizeof body,
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":%d,\"message\":\"%s\",\"data\":{\"reason\":\"%s\"}}}\n",
        why->status, why->message, why->reason);
    if (!listener->http)
        return snprintf(text, size, "%s", body);
    return snprintf(text, size,
                    "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
                    why->status, weft__http_reason(why->status), n, body);
}

/* One sentence into a fresh socket, which has room for it. No connection is made for it: refusing must cost less than
 * serving. What was sent already is read away, because closing over unread bytes would take the sentence back. */
static void refuse_socket(weft_listener *listener, int fd, const weft_refusal *why) {
    char text[512];
    weft__server_note(listener->server, "refused a connection on %s: %s", listener->endpoints->text, why->message);
    if (!listener->tls) {
        int n = refusal_text(listener, why, text, sizeof text);
        (void) send(fd, text, (size_t) n, MSG_NOSIGNAL | MSG_DONTWAIT);
        shutdown(fd, SHUT_WR);
        (void) recv(fd, listener->server->loop->read, WEFT_LOOP_READ, MSG_DONTWAIT);
    }
    close(fd);
}

/* ---- serving ---- */

void weft__listener_serve(weft_listener *listener, int fd) {
    weft_origin origin;
    weft_conn_place place;
    weft__origin_of(fd, &origin);
    const weft_refusal *why = weft__admit(listener, &origin, &place);
    if (!why && listener->server->take) {
        weft__place_leave(listener->server, &place);
        why = listener->server->take(listener->server->take_ctx, listener, &origin, fd);
        if (!why)
            return;
    }
    if (why) {
        refuse_socket(listener, fd, why);
        return;
    }
    if (*origin.address)
        weft__tcp_tune(fd);
    int r = weft__conn_new(listener, fd, fd, &place);
    if (r < 0)
        weft__server_note(listener->server, "a connection on %s failed: %s", listener->endpoints->text, weft_strerror(r));
}

/* ---- accepting ---- */

/* Another thread may take the spare's number in the moment it is closed; then it is lost until somebody closes one. */
static bool have_spare(weft_server *server) {
    if (server->spare_fd < 0)
        server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return server->spare_fd >= 0;
}

static void for_all_sockets(weft_server *server, void (*each)(weft_accepting *accepting)) {
    for (weft_link *at = server->listeners.next; at != &server->listeners; at = at->next) {
        weft_listener *listener = WEFT_CONTAINER(at, weft_listener, link);
        for (size_t i = 0; i < listener->count; i++)
            if (listener->sockets[i].fd >= 0)
                each(&listener->sockets[i]);
    }
}

static void stop_accepting(weft_accepting *accepting) {
    uv_poll_stop(&accepting->poll);
}

static void on_acceptable(uv_poll_t *poll, int status, int events);

static void start_accepting(weft_accepting *accepting) {
    uv_poll_start(&accepting->poll, UV_READABLE, on_acceptable);
}

static void rest_from_accepting(weft_server *server) {
    for_all_sockets(server, stop_accepting);
    weft__timer_set(server->loop, &server->rest, weft_loop_now(server->loop) + REST_MS);
    if (!server->resting)
        weft_loop_hold(server->loop); /* a loop that watches nothing would end */
    server->resting = true;
}

void weft__listener_end_rest(weft_server *server) {
    weft__timer_stop(server->loop, &server->rest);
    if (server->resting)
        weft_loop_release(server->loop);
    server->resting = false;
}

void weft__listener_resume(weft_timer *timer) {
    weft_server *server = WEFT_CONTAINER(timer, weft_server, rest);
    weft__listener_end_rest(server);
    for_all_sockets(server, start_accepting);
}

/* Without a descriptor to accept with, the socket would stay ready and the loop would spin. One was kept for this; if
 * somebody else took it in the moment when it was free, nobody is accepted for a while. */
static void refuse_for_want_of_descriptors(weft_listener *listener, int socket) {
    weft_server *server = listener->server;
    if (!have_spare(server)) {
        rest_from_accepting(server);
        return;
    }
    close(server->spare_fd);
    int fd = accept4(socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        refuse_socket(listener, fd, &no_descriptors);
    server->spare_fd = -1;
    have_spare(server);
}

/* true: there may be more. */
static bool accept_one(weft_accepting *accepting) {
    weft_listener *listener = accepting->listener;
    int fd = accept4(accepting->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        have_spare(listener->server); /* while there may be one */
        weft__listener_serve(listener, fd);
        return true;
    }
    switch (errno) {
    case EAGAIN:
        return false;
    case EMFILE:
    case ENFILE:
        if (weft__drop_stranger(listener->server))
            return true;
        refuse_for_want_of_descriptors(listener, accepting->fd);
        return false;
    case EINTR:
    case ECONNABORTED:
        return true;
    default:
        weft__server_note(listener->server, "accept on %s failed: %s", listener->endpoints->text, weft_strerror(-errno));
        return false;
    }
}

static void on_acceptable(uv_poll_t *poll, int status, int events) {
    (void) status, (void) events;
    weft_accepting *accepting = poll->data;
    weft_server *server = weft__server_ref(accepting->listener->server);
    for (int i = 0; i < ACCEPTS && accepting->fd >= 0 && accept_one(accepting); i++)
        continue;
    weft__server_unref(server);
}

static void on_accepting_closed(uv_handle_t *handle) {
    weft_accepting *accepting = handle->data;
    accepting->closing = false;
    weft__server_unref(accepting->listener->server);
}

static void name_bound(weft_accepting *accepting) {
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    if (getsockname(accepting->fd, (struct sockaddr *) &address, &len) == 0 && address.ss_family != AF_UNIX)
        weft__address_text((struct sockaddr *) &address, len, accepting->bound, sizeof accepting->bound);
}

/* A place that was never used, or whose socket is closed for good; NULL: none. */
static weft_accepting *free_place(weft_listener *listener) {
    for (size_t i = 0; i < WEFT_LISTENER_SOCKETS; i++) {
        weft_accepting *accepting = &listener->sockets[i];
        if (!accepting->listener || (accepting->fd < 0 && !accepting->closing))
            return accepting;
    }
    return NULL;
}

int weft__listener_accept_on(weft_listener *listener, int fd) {
    weft_accepting *accepting = free_place(listener);
    assert(accepting); /* whoever binds counts the places */
    int r = uv_poll_init(&listener->server->loop->uv, &accepting->poll, fd);
    if (r < 0) {
        close(fd);
        return r;
    }
    accepting->listener = listener;
    accepting->fd = fd;
    accepting->poll.data = accepting;
    weft__server_ref(listener->server);
    size_t used = (size_t) (accepting - listener->sockets) + 1;
    listener->count = listener->count > used ? listener->count : used;
    name_bound(accepting);
    return uv_poll_start(&accepting->poll, UV_READABLE, on_acceptable);
}

static void close_accepting(weft_accepting *accepting) {
    if (!accepting->listener || accepting->fd < 0)
        return;
    accepting->closing = true;
    uv_close((uv_handle_t *) &accepting->poll, on_accepting_closed);
    close(accepting->fd);
    accepting->fd = -1;
}

/* Nobody can reach the old socket any more: a name is the only way to it. */
static int listen_again(weft_listener *listener) {
    weft_unix_socket made = {0};
    int fd;
    if (!free_place(listener))
        return -EAGAIN;
    int r = weft__unix_listen(&made, listener->socket.path, listener->server->alloc, &fd);
    if (r < 0)
        return r;
    for (size_t i = 0; i < listener->count; i++)
        close_accepting(&listener->sockets[i]);
    weft__free(listener->server->alloc, listener->socket.path);
    listener->socket = made;
    r = weft__listener_accept_on(listener, fd);
    return r < 0 ? r : 1;
}

int weft__listener_renew(weft_listener *listener) {
    struct stat info;
    const weft_unix_socket *is = &listener->socket;
    if (!is->path)
        return 0;
    if (lstat(is->path, &info) == 0)
        return info.st_ino == is->ino && info.st_dev == is->dev ? 0 : -EADDRINUSE;
    return errno == ENOENT ? listen_again(listener) : -errno;
}

void weft__listener_close(weft_listener *listener) {
    for (size_t i = 0; i < listener->count; i++)
        close_accepting(&listener->sockets[i]);
    weft__unix_unlink(&listener->socket, listener->server->alloc);
    weft__local_close(listener);
}

void weft__listener_free(weft_listener *listener) {
    const weft_alloc *alloc = listener->server->alloc;
    weft__list_remove(&listener->link);
    weft__local_free(listener);
    weft__tls_ctx_unref(listener->tls);
    weft__free(alloc, listener);
}

/* ---- listening ---- */

/* One that has the same host and port already. Port 0 asks for a new one each time. */
static weft_listener *find_shared(const weft_server *server, const weft_endpoint *endpoint) {
    const weft_url *url = &endpoint->url;
    unsigned flags = endpoint->transport->scheme.flags;
    for (weft_link *at = server->listeners.next; at != &server->listeners; at = at->next) {
        weft_listener *listener = WEFT_CONTAINER(at, weft_listener, link);
        bool same = listener->endpoints && !listener->closed && listener->http && listener->port == url->port &&
                    strcmp(listener->endpoints->url.host, url->host) == 0;
        if (same && (flags & WEFT_OVER_HTTP) && !(flags & WEFT_OVER_TLS) == !listener->tls)
            return listener;
    }
    return NULL;
}

static int join_listener(weft_listener *listener, weft_endpoint *endpoint) {
    weft_endpoint **end = &listener->endpoints;
    for (; *end; end = &(*end)->next)
        if ((*end)->url.scheme == endpoint->url.scheme && strcmp((*end)->url.path, endpoint->url.path) == 0)
            return -EADDRINUSE;
    int r = weft__endpoint_name(endpoint, listener->port);
    if (r < 0)
        return r;
    *end = endpoint;
    endpoint->listener = listener;
    return 0;
}

static int open_tls(weft_listener *listener, const weft_listen_opts *opts) {
    char why[WEFT_TLS_WHY];
    if (!(listener->endpoints->transport->scheme.flags & WEFT_OVER_TLS))
        return 0;
    listener->demands_certificate = opts->tls.ca != NULL;
    int r = weft__tls_server(&opts->tls, listener->http, listener->server->alloc, &listener->tls, why);
    if (r < 0)
        weft__server_note(listener->server, "TLS: %s", why);
    return r;
}

/* A listener whose handles are closing stays in memory until they are closed: the server frees it. */
static int open_new_listener(weft_endpoint *endpoint, const weft_listen_opts *opts) {
    weft_server *server = endpoint->server;
    weft_listener *listener = weft__zalloc(server->alloc, sizeof *listener);
    if (!listener)
        return -ENOMEM;
    listener->server = server;
    listener->http = endpoint->transport->scheme.flags & WEFT_OVER_HTTP;
    listener->endpoints = endpoint;
    weft__list_push(&server->listeners, &listener->link);
    int r = open_tls(listener, opts);
    if (r >= 0)
        r = endpoint->transport->listen(listener, &endpoint->url);
    if (r >= 0)
        r = weft__endpoint_name(endpoint, listener->port);
    endpoint->listener = listener;
    if (r < 0) {
        weft__listener_close(listener);
        listener->endpoints = NULL;
    }
    return r;
}

int weft__listener_join(weft_endpoint *endpoint, const weft_listen_opts *opts) {
    weft_listener *shared = endpoint->url.port > 0 ? find_shared(endpoint->server, endpoint) : NULL;
    return shared ? join_listener(shared, endpoint) : open_new_listener(endpoint, opts);
}
