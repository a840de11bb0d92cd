/* A server on a loop and raw client sockets beside it, in one process and one thread. Nothing sleeps: the test waits in
 * poll() for its own socket and for the loop's descriptor, as a program with a loop of its own would.
 *
 * Everything is static and inline, so that each test program takes only this header. */
#ifndef NET_WORLD_H
#define NET_WORLD_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <weft/weft.h>

#include "clock.h"
#include "harness.h"

/* A test that waits longer than this has failed. */
#define WORLD_PATIENCE_MS 60000
#define WORLD_TEXT (1 << 20)

typedef struct world {
    weft_loop *loop;
    weft_service *service;
    weft_server *server;
    char folder[64];
    char note[512];
    int notes, opened, closed, why;
    weft_peer *last_peer;
    weft_req *kept;
    int cancelled;
    char text[WORLD_TEXT]; /* what a client read last */
    size_t len;
} world;

/* ---- methods ---- */

static inline int world_echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

static inline int world_who(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    const weft_identity *who = weft_req_identity(req);
    return weft_reply(req, WEFT_OBJ({"transport", weft_str(who->transport)}, {"dialect", weft_str(who->dialect)},
                                    {"name", weft_str(who->name)}, {"scopes", weft_str(who->scopes)},
                                    {"address", weft_str(who->address)}, {"uid", weft_int(who->uid)},
                                    {"authenticated", weft_bool(who->authenticated)}));
}

static inline void world_on_cancel(weft_req *req, int why, void *ctx) {
    world *w = ctx;
    w->cancelled = why;
    w->kept = NULL;
    weft_fail(req, -1, "gone", weft_none());
}

/* Answered by "release", or by the test. */
static inline int world_keep(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    world *w = ctx;
    w->kept = req;
    weft_req_on_cancel(req, world_on_cancel, w);
    return 0;
}

static inline int world_release(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    world *w = ctx;
    if (w->kept)
        weft_reply(w->kept, weft_str("kept"));
    w->kept = NULL;
    return weft_reply(req, weft_bool(true));
}

/* As many bytes as asked for. */
static inline int world_blob(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    weft_json first = weft_at(params, 0);
    size_t n = (size_t) weft_int_of(&first, 0);
    char *text = malloc(n + 1);
    memset(text, 'x', n);
    int r = weft_reply(req, weft_strn(text, n));
    free(text);
    return r;
}

static inline int world_bye(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    weft_peer *peer = weft_req_peer(req);
    int r = weft_reply(req, weft_str("bye"));
    weft_peer_free(peer);
    return r;
}

static inline int world_end(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    world *w = ctx;
    int r = weft_reply(req, weft_str("end"));
    w->server = weft_server_free(w->server);
    return r;
}

static const weft_method world_methods[] = {
    {.name = "echo", .handler = world_echo},
    {.name = "who", .handler = world_who},
    {.name = "keep", .handler = world_keep},
    {.name = "release", .handler = world_release},
    {.name = "blob", .handler = world_blob},
    {.name = "bye", .handler = world_bye},
    {.name = "end", .handler = world_end},
    {.name = "secret", .handler = world_echo, .scope = "admin"},
    {0},
};

/* ---- the server ---- */

static inline void world_on_open(weft_server *server, weft_peer *peer, void *data) {
    (void) server;
    world *w = data;
    w->opened++;
    w->last_peer = peer;
}

static inline void world_on_close(weft_server *server, weft_peer *peer, int why, void *data) {
    (void) server, (void) peer;
    world *w = data;
    w->closed++;
    w->why = why;
    w->last_peer = NULL;
}

static inline void world_on_note(weft_server *server, const char *line, void *data) {
    (void) server;
    world *w = data;
    w->notes++;
    snprintf(w->note, sizeof w->note, "%s", line);
}

/* The loop's own clock, so that the figures of a service are settled in its turns. */
static inline int64_t world_now_us(void *ctx) {
    (void) ctx;
    return weft__clock_ns() / 1000;
}

static inline world *world_new(const weft_server_opts *opts, const weft_limits *limits) {
    world *w = calloc(1, sizeof *w);
    weft_service_opts service = {.methods = world_methods, .ctx = w, .measure = true, .now_us = world_now_us};
    weft_server_opts server = opts ? *opts : (weft_server_opts){0};
    if (limits)
        service.limits = *limits;
    CHECK_INT(weft_service_new(&service, &w->service), 0);
    CHECK_INT(weft_loop_new(NULL, &w->loop), 0);
    server.service = w->service;
    server.data = w;
    server.on_open = world_on_open;
    server.on_close = world_on_close;
    server.on_note = world_on_note;
    CHECK_INT(weft_server_new(w->loop, &server, &w->server), 0);
    snprintf(w->folder, sizeof w->folder, "/tmp/weft-test-XXXXXX");
    CHECK(mkdtemp(w->folder) != NULL);
    return w;
}

static inline void world_free(world *w) {
    weft_server_free(w->server);
    weft_loop_free(w->loop);
    weft_service_unref(w->service);
    test_remove(w->folder);
    free(w);
}

/* ---- clients ---- */

static inline int64_t world_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Let the server work until the client's socket is ready for one of events, or for one turn when fd is -1. The events, 0:
 * the patience is over. */
static inline int world_wait(world *w, int fd, short events) {
    int64_t until = world_ms() + WORLD_PATIENCE_MS;
    for (;;) {
        struct pollfd polls[2] = {{.fd = weft_loop_fd(w->loop), .events = POLLIN}, {.fd = fd, .events = events}};
        int timeout = weft_loop_timeout_ms(w->loop);
        poll(polls, 2, timeout < 0 || timeout > 100 ? 100 : timeout);
        if (fd >= 0 && polls[1].revents)
            return polls[1].revents;
        weft_loop_once(w->loop, false);
        if (fd < 0)
            return 1;
        if (world_ms() > until)
            return 0;
    }
}

/* Until a condition holds; false when patience is over. */
#define WORLD_UNTIL(w, condition)                                                                                           \
    do {                                                                                                                    \
        int64_t until_ = world_ms() + WORLD_PATIENCE_MS;                                                                    \
        while (!(condition) && world_ms() < until_)                                                                         \
            world_wait((w), -1, 0);                                                                                         \
        CHECK(condition);                                                                                                   \
    } while (0)

static inline int world_connect_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int r = connect(fd, (struct sockaddr *) &address, sizeof address) < 0 ? -errno : 0;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    if (r < 0)
        close(fd);
    return r < 0 ? r : fd;
}

static inline int world_port(const world *w, size_t index) {
    const char *url = weft_server_url(w->server, index);
    const char *host = strstr(url, "://") + 3;
    const char *close = strchr(host, ']');
    return atoi(strchr(close ? close : host, ':') + 1);
}

static inline int world_connect_tcp(const world *w, size_t index) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t) world_port(w, index));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = connect(fd, (struct sockaddr *) &address, sizeof address) < 0 ? -errno : 0;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    if (r < 0)
        close(fd);
    return r < 0 ? r : fd;
}

static inline void world_send(world *w, int fd, const char *data, size_t len) {
    while (len) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            data += n;
            len -= (size_t) n;
        } else if (errno != EAGAIN || !world_wait(w, fd, POLLOUT))
            return;
    }
}

static inline void world_say(world *w, int fd, const char *text) {
    world_send(w, fd, text, strlen(text));
}

/* Read once more. 1 bytes, 0 the end, <0 broken or no patience left. */
static inline int world_more(world *w, int fd) {
    if (!world_wait(w, fd, POLLIN))
        return -ETIMEDOUT;
    ssize_t n = recv(fd, w->text + w->len, sizeof w->text - 1 - w->len, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN ? 1 : -errno;
    w->len += (size_t) n;
    w->text[w->len] = '\0';
    return n > 0;
}

/* Everything until the end. 0, or why it did not end well. */
static inline int world_read_all(world *w, int fd) {
    int r;
    w->len = 0;
    w->text[0] = '\0';
    while ((r = world_more(w, fd)) > 0)
        continue;
    return r;
}

static inline void world_read_lines(world *w, int fd, int lines) {
    w->len = 0;
    w->text[0] = '\0';
    for (;;) {
        int found = 0;
        for (const char *at = w->text; (at = strchr(at, '\n')); at++)
            found++;
        if (found >= lines || world_more(w, fd) <= 0)
            return;
    }
}

/* Until the text holds this. */
static inline bool world_read_until(world *w, int fd, const char *needle) {
    w->len = 0;
    w->text[0] = '\0';
    while (!memmem(w->text, w->len, needle, strlen(needle)))
        if (world_more(w, fd) <= 0)
            return false;
    return true;
}

/* One HTTP answer: its status; w->text is all of it, *ret_body its body. */
static inline int world_read_http(world *w, int fd, const char **ret_body) {
    static const char none[] = "";
    *ret_body = none;
    w->len = 0;
    w->text[0] = '\0';
    for (;;) {
        char *end = strstr(w->text, "\r\n\r\n");
        char *length = end ? strcasestr(w->text, "content-length:") : NULL;
        size_t need = length && length < end ? (size_t) atol(length + 15) : 0;
        if (end && w->len >= (size_t) (end + 4 - w->text) + need) {
            *ret_body = end + 4;
            return atoi(w->text + 9);
        }
        if (world_more(w, fd) <= 0)
            return -1;
    }
}

/* Ask once on a connection of its own and read the answer. */
static inline int world_http(world *w, size_t index, const char **ret_body, const char *format, ...) {
    char request[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(request, sizeof request, format, args);
    va_end(args);
    int fd = world_connect_tcp(w, index);
    world_say(w, fd, request);
    int status = world_read_http(w, fd, ret_body);
    close(fd);
    return status;
}

#define HAS(w, needle) CHECK(strstr((w)->text, needle) != NULL)

#endif
