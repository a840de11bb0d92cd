/* Handing connections on. See forward.h. */
#include "forward.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weft/json.h>

#include "admission.h"
#include "config.h"
#include "descent.h"
#include "loop.h"
#include "tcp.h"
#include "watch.h"

#define MAX_PAIRS 4096
#define PIECE (64 * 1024)
#define WAIT_MS 30000 /* for a hub that has the journal */
#define AGAIN_MS 100  /* the other one has just begun to lead, and does not listen yet */
#define MACHINE 128
#define MAX_URL 1024

static const weft_refusal too_many = {503, "Too many connections", "tooManyConnections"};
static const weft_refusal an_agent = {403, "Agents speak to the hub that runs them", "agent"};
static const weft_refusal no_way = {
    503, "This hub waits for its journal, and the hub that has it cannot be reached this way: use its URL", "hubWaits"};

/* Where the other hub can be reached. */
typedef struct place {
    unsigned flags;
    int port;
    struct sockaddr_storage address;
    socklen_t len;
    char path[PATH_MAX]; /* of a Unix socket */
} place;

typedef struct half {
    int fd;
    weft_watch *watch;
    weft_buf pending; /* for it, and not taken yet */
    bool ended;       /* says nothing more */
    bool shut;        /* is told nothing more */
} half;

typedef struct pair {
    weft_link link;
    weft_forward *forward;
    unsigned flags; /* how it came */
    int port;
    int64_t until;
    bool connecting;
    half near, far;
} pair;

struct weft_forward {
    weft_loop *loop;
    char machine[MACHINE];
    place places[WEFT_MAX_TEXTS];
    size_t count;
    char *reach;
    bool led; /* somebody has the journal */
    weft_link pairs;
    size_t pair_count;
    weft_timer again;
};

/* ---- where ---- */

/* Loopback and files are the same to those who have the same kernel and the same network. */
static void name_machine(char ret[MACHINE]) {
    char boot[48] = "", net[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && !fgets(boot, sizeof boot, file))
        *boot = '\0';
    if (file)
        fclose(file);
    boot[strcspn(boot, "\n")] = '\0';
    ssize_t n = readlink("/proc/self/ns/net", net, sizeof net - 1);
    net[n > 0 ? n : 0] = '\0';
    snprintf(ret, MACHINE, "%s %s", boot, net);
}

static unsigned kind_of(unsigned flags) {
    return flags & (WEFT_OVER_TLS | WEFT_OVER_HTTP | WEFT_KNOWS_USER);
}

static bool take_scheme(const char *text, place *ret) {
    weft_url url;
    if (weft__transport_parse(NULL, text, NULL, &url, NULL) < 0)
        return false;
    ret->flags = kind_of(url.scheme->flags);
    ret->port = url.port;
    weft__url_done(&url, NULL);
    return true;
}

static int write_url(const char *text, const char *folder, bool token, char *ret, size_t size) {
    weft_url url;
    char host[256];
    int r = weft__transport_parse(NULL, text, NULL, &url, NULL), n = -1;
    if (r < 0)
        return r;
    unsigned flags = url.scheme->flags;
    bool any = strcmp(url.host, "0.0.0.0") == 0 || strcmp(url.host, "::") == 0;
    if (flags & WEFT_KNOWS_USER)
        n = snprintf(ret, size, "unix:%s%s%s", *url.path == '/' ? "" : folder, *url.path == '/' ? "" : "/", url.path);
    else if ((flags & WEFT_NETWORK) && token && any && gethostname(host, sizeof host) == 0)
        n = snprintf(ret, size, "%s://%s:%d%s", url.scheme->name, host, url.port, (flags & WEFT_OVER_HTTP) ? url.path : "");
    else if ((flags & WEFT_NETWORK) && token)
        n = snprintf(ret, size, "%s", text);
    weft__url_done(&url, NULL);
    return n > 0 && (size_t) n < size ? 0 : -ENOENT;
}

/* Endpoints that share a port are one place. */
static bool is_same_door(char texts[][MAX_URL], size_t last) {
    place made, other;
    for (size_t i = 0; i < last; i++)
        if (take_scheme(texts[last], &made) && take_scheme(texts[i], &other) && made.port > 0 && made.port == other.port &&
            made.flags == other.flags)
            return true;
    return false;
}

int weft__forward_reach(const weft_server *server, const char *folder, bool token, char **ret) {
    char machine[MACHINE], texts[WEFT_MAX_TEXTS][MAX_URL];
    weft_val urls[WEFT_MAX_TEXTS];
    size_t count = 0, len;
    const char *url;
    name_machine(machine);
    for (size_t i = 0; count < WEFT_MAX_TEXTS && (url = weft_server_url(server, i)); i++)
        if (write_url(url, folder, token, texts[count], sizeof texts[count]) == 0 && !is_same_door(texts, count)) {
            urls[count] = weft_str(texts[count]);
            count++;
        }
    return weft_to_text(WEFT_OBJ({"machine", weft_str(machine)}, {"urls", weft_arr(urls, count)}), NULL, ret, &len);
}

static bool is_loopback(const struct sockaddr_storage *address) {
    const struct sockaddr_in *four = (const struct sockaddr_in *) (const void *) address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *) (const void *) address;
    if (address->ss_family == AF_INET)
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    return address->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

/* A name is looked up once for each hub that leads, while nothing else is there to be done. */
static bool find_address(const weft_url *url, place *at) {
    char port[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG}, *found;
    snprintf(port, sizeof port, "%d", url->port);
    if (strcmp(url->host, "127.0.0.1") == 0 || strcmp(url->host, "::1") == 0)
        hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST;
    if (getaddrinfo(url->host, port, &hints, &found) != 0)
        return false;
    memcpy(&at->address, found->ai_addr, found->ai_addrlen);
    at->len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

static bool take_place(const char *text, bool same_machine, place *at) {
    weft_url url;
    *at = (place){0};
    if (weft__transport_parse(NULL, text, NULL, &url, NULL) < 0)
        return false;
    at->flags = kind_of(url.scheme->flags);
    at->port = url.port;
    bool good;
    if (url.scheme->flags & WEFT_KNOWS_USER)
        good = same_machine && snprintf(at->path, sizeof at->path, "%s", url.path) < (int) sizeof at->path;
    else
        good = (url.scheme->flags & WEFT_NETWORK) && find_address(&url, at) && (same_machine || !is_loopback(&at->address));
    weft__url_done(&url, NULL);
    return good;
}

static const place *place_for(const weft_forward *self, unsigned flags, int port) {
    const place *found = NULL;
    for (size_t i = 0; i < self->count; i++) {
        const place *at = &self->places[i];
        if (at->flags == flags && (!found || (at->port == port && found->port != port)))
            found = at;
    }
    return found;
}

static int dial(const place *at, int *ret) {
    if (at->flags & WEFT_KNOWS_USER)
        return weft__unix_dial(at->path, ret);
    int fd = socket(at->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *) &at->address, at->len) < 0 && errno != EINPROGRESS) {
        int r = -errno;
        close(fd);
        return r;
    }
    *ret = fd;
    return 0;
}

/* ---- one connection ---- */

static void done_half(half *self) {
    weft__watch_free(self->watch);
    if (self->fd >= 0)
        close(self->fd);
    weft__buf_done(&self->pending, NULL);
    *self = (half){.fd = -1};
}

static void end_pair(pair *self) {
    self->forward->pair_count--;
    weft__list_remove(&self->link);
    done_half(&self->near);
    done_half(&self->far);
    weft__free(NULL, self);
}

/* Send what there is. <0 it is gone. */
static int push(half *to, const char *data, size_t len) {
    size_t sent = 0;
    while (sent < len) {
        ssize_t n = send(to->fd, data + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            return -errno;
        sent += (size_t) n;
    }
    return (int) sent;
}

static int flush_pending(half *to) {
    size_t len = weft__buf_len(&to->pending);
    int n = len ? push(to, weft__buf_head(&to->pending), len) : 0;
    if (n > 0)
        weft__buf_take(&to->pending, NULL, (size_t) n);
    return n < 0 ? n : 0;
}

/* One piece, so that nobody keeps the others waiting. <0 it is over. */
static int carry(weft_loop *loop, half *from, half *to) {
    if (from->ended || weft__buf_len(&to->pending))
        return 0;
    ssize_t n = recv(from->fd, loop->read, PIECE, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0) {
        from->ended = true;
        return 0;
    }
    int sent = push(to, loop->read, (size_t) n);
    if (sent < 0)
        return sent;
    return sent < n ? weft__buf_put(&to->pending, NULL, loop->read + sent, (size_t) (n - sent)) : 0;
}

static int end_half(const half *from, half *to) {
    if (!from->ended || to->shut || weft__buf_len(&to->pending))
        return 0;
    to->shut = true;
    return shutdown(to->fd, SHUT_WR) < 0 ? -errno : 0;
}

static unsigned interest(const half *self, const half *other) {
    unsigned what = 0;
    if (!self->ended && !weft__buf_len(&other->pending))
        what |= WEFT_WATCH_READ;
    if (weft__buf_len(&self->pending))
        what |= WEFT_WATCH_WRITE;
    return what;
}

static void move(pair *self) {
    weft_loop *loop = self->forward->loop;
    half *near = &self->near, *far = &self->far;
    int r = flush_pending(near);
    if (r >= 0)
        r = flush_pending(far);
    if (r >= 0)
        r = carry(loop, near, far);
    if (r >= 0)
        r = carry(loop, far, near);
    if (r >= 0)
        r = end_half(near, far);
    if (r >= 0)
        r = end_half(far, near);
    if (r >= 0 && !(near->shut && far->shut))
        r = weft__watch_set(near->watch, interest(near, far));
    if (r >= 0 && !(near->shut && far->shut))
        r = weft__watch_set(far->watch, interest(far, near));
    if (r < 0 || (near->shut && far->shut))
        end_pair(self);
}

static void on_near(void *ctx, unsigned what) {
    (void) what;
    move(ctx);
}

static void on_far(void *ctx, unsigned what) {
    pair *self = ctx;
    int trouble = 0;
    socklen_t len = sizeof trouble;
    (void) what;
    if (self->connecting && (getsockopt(self->far.fd, SOL_SOCKET, SO_ERROR, &trouble, &len) < 0 || trouble)) {
        end_pair(self);
        return;
    }
    self->connecting = false;
    move(self);
}

/* 1 under way, 0 not yet, <0 it cannot be. */
static int begin_pair(pair *self) {
    weft_forward *forward = self->forward;
    const place *at = place_for(forward, self->flags, self->port);
    if (!forward->led)
        return 0;
    int fd = -1, r = at ? dial(at, &fd) : -EHOSTUNREACH;
    if (r == -ECONNREFUSED || r == -ENOENT || r == -EAGAIN)
        return 0;
    if (r < 0)
        return r;
    weft__tcp_tune(fd);
    self->far.fd = fd;
    self->connecting = true;
    r = weft__watch_new(forward->loop, fd, on_far, self, &self->far.watch);
    if (r >= 0)
        r = weft__watch_new(forward->loop, self->near.fd, on_near, self, &self->near.watch);
    if (r >= 0)
        r = weft__watch_set(self->far.watch, WEFT_WATCH_WRITE);
    return r < 0 ? r : 1;
}

/* ---- all of them ---- */

static void look_again(weft_forward *self) {
    int64_t now = weft__loop_fresh_now(self->loop);
    bool waits = false;
    for (weft_link *link = self->pairs.next, *next; link != &self->pairs; link = next) {
        pair *one = WEFT_CONTAINER(link, pair, link);
        next = link->next;
        if (one->far.fd >= 0)
            continue;
        if (now >= one->until || begin_pair(one) < 0)
            end_pair(one);
        else
            waits |= one->far.fd < 0;
    }
    weft__timer_set(self->loop, &self->again, waits ? now + AGAIN_MS : INT64_MAX);
}

static void on_again(weft_timer *timer) {
    look_again(WEFT_CONTAINER(timer, weft_forward, again));
}

static bool is_agent(const weft_origin *origin, unsigned flags) {
    if (flags & WEFT_KNOWS_USER)
        return origin->pid < 0 || (origin->pid > 0 && weft__descends_from_guard((pid_t) origin->pid) != 0);
    return weft__connection_of_agent(origin->address, origin->port) != 0;
}

const weft_refusal *weft__forward_take(void *ctx, const weft_listener *listener, const weft_origin *origin, int fd) {
    weft_forward *self = ctx;
    unsigned flags = kind_of(listener->endpoints->transport->scheme.flags);
    if (self->pair_count >= MAX_PAIRS)
        return &too_many;
    if (is_agent(origin, flags))
        return &an_agent;
    if (self->led && !place_for(self, flags, listener->port))
        return &no_way;
    pair *made = weft__zalloc(NULL, sizeof *made);
    if (!made)
        return &too_many;
    weft__tcp_tune(fd);
    *made = (pair){.forward = self,
                   .flags = flags,
                   .port = listener->port,
                   .until = weft__loop_fresh_now(self->loop) + WAIT_MS,
                   .near = {.fd = fd},
                   .far = {.fd = -1}};
    weft__list_push(&self->pairs, &made->link);
    self->pair_count++;
    int r = begin_pair(made);
    if (r < 0)
        end_pair(made);
    else if (r == 0)
        weft__timer_set(self->loop, &self->again, weft__loop_fresh_now(self->loop) + AGAIN_MS);
    return NULL;
}

/* The one before may be there and not know that it has lost the journal. */
static void end_joined(weft_forward *self) {
    for (weft_link *link = self->pairs.next, *next; link != &self->pairs; link = next) {
        next = link->next;
        if (WEFT_CONTAINER(link, pair, link)->far.fd >= 0)
            end_pair(WEFT_CONTAINER(link, pair, link));
    }
}

void weft__forward_to(weft_forward *self, const char *reach) {
    weft_doc *doc = NULL;
    if (self->reach && strcmp(self->reach, reach) == 0)
        return;
    end_joined(self);
    weft__free(NULL, self->reach);
    self->reach = weft__strndup(NULL, reach, strlen(reach)); /* NULL: it is taken apart again next time */
    self->count = 0;
    self->led = *reach != '\0';
    if (self->led && weft_doc_parse(reach, strlen(reach), NULL, &doc) >= 0) {
        weft_json urls = weft_get(weft_doc_root(doc), "urls");
        bool same = strcmp(weft_get_str(weft_doc_root(doc), "machine", ""), self->machine) == 0;
        for (weft_iter it = weft_iterate(&urls); weft_next(&it) && self->count < WEFT_MAX_TEXTS;)
            self->count += take_place(weft_str_of(&it.value, ""), same, &self->places[self->count]);
    }
    weft_doc_free(doc);
    look_again(self);
}

int weft__forward_new(weft_loop *loop, weft_forward **ret) {
    weft_forward *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->loop = loop;
    name_machine(self->machine);
    weft__list_init(&self->pairs);
    weft__timer_init(&self->again, on_again);
    *ret = self;
    return 0;
}

static weft_listener *listener_for(const weft_server *server, unsigned flags, int port) {
    weft_listener *found = NULL;
    for (weft_link *at = server->listeners.next; at != &server->listeners; at = at->next) {
        weft_listener *listener = WEFT_CONTAINER(at, weft_listener, link);
        bool fits = listener->endpoints && kind_of(listener->endpoints->transport->scheme.flags) == flags;
        if (fits && (!found || (listener->port == port && found->port != port)))
            found = listener;
    }
    return found;
}

void weft__forward_serve(weft_forward *self, weft_server *server) {
    end_joined(self);
    while (!weft__list_empty(&self->pairs)) {
        pair *one = WEFT_CONTAINER(self->pairs.next, pair, link);
        weft_listener *listener = listener_for(server, one->flags, one->port);
        if (listener) {
            weft__listener_serve(listener, one->near.fd);
            one->near.fd = -1;
        }
        end_pair(one);
    }
}

weft_forward *weft__forward_free(weft_forward *self) {
    if (!self)
        return NULL;
    while (!weft__list_empty(&self->pairs))
        end_pair(WEFT_CONTAINER(self->pairs.next, pair, link));
    weft__timer_stop(self->loop, &self->again);
    weft__free(NULL, self->reach);
    return weft__free(NULL, self);
}
