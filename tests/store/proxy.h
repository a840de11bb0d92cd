/* A proxy in front of PostgreSQL's socket that cuts connections at a chosen byte, as a network does. One thread; connections
 * are pairs of descriptors. */
#ifndef STORE_PROXY_H
#define STORE_PROXY_H

#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "store/world.h"

#define PROXY_PAIRS 16

typedef struct proxy_pair {
    int client, server; /* -1: closed */
} proxy_pair;

typedef struct proxy {
    char folder[64]; /* where the proxy's socket is */
    char target[96];
    int listener, wake;
    pthread_t thread;
    proxy_pair pairs[PROXY_PAIRS];
    _Atomic bool stop, closed;     /* closed: everybody is cut, and nobody let in */
    _Atomic long cut_to, cut_from; /* bytes to the server, and from it, until all are cut; -1: never */
    _Atomic long to, from;         /* bytes since they were last set to 0 */
    _Atomic int cuts;
} proxy;

static inline struct sockaddr_un proxy_address(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return address;
}

static inline void proxy_cut_pair(proxy_pair *pair) {
    if (pair->client >= 0)
        close(pair->client);
    if (pair->server >= 0)
        close(pair->server);
    pair->client = pair->server = -1;
}

static inline void proxy_cut_all(proxy *p) {
    for (int i = 0; i < PROXY_PAIRS; i++)
        proxy_cut_pair(&p->pairs[i]);
    atomic_store(&p->cut_to, -1);
    atomic_store(&p->cut_from, -1);
    atomic_fetch_add(&p->cuts, 1);
}

static inline void proxy_accept(proxy *p) {
    int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC), i = 0;
    struct sockaddr_un address = proxy_address(p->target);
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (i < PROXY_PAIRS && p->pairs[i].client >= 0)
        i++;
    if (i == PROXY_PAIRS || atomic_load(&p->closed) || connect(server, (struct sockaddr *) &address, sizeof address) < 0) {
        close(client);
        close(server);
        return;
    }
    p->pairs[i] = (proxy_pair){client, server};
}

/* Move what there is; at the chosen byte the rest is lost and everything is cut. */
static inline bool proxy_move(proxy *p, int from, int to, _Atomic long *count, _Atomic long *cut) {
    char block[65536];
    ssize_t n = read(from, block, sizeof block);
    if (n <= 0)
        return false;
    long before = atomic_fetch_add(count, n), at = atomic_load(cut);
    bool cuts = at >= 0 && before + n >= at;
    size_t len = cuts ? (size_t) (at > before ? at - before : 0) : (size_t) n;
    for (size_t done = 0; done < len;) {
        ssize_t wrote = write(to, block + done, len - done);
        if (wrote <= 0)
            return false;
        done += (size_t) wrote;
    }
    if (cuts)
        proxy_cut_all(p);
    return true;
}

static inline void *proxy_main(void *ctx) {
    proxy *p = ctx;
    while (!atomic_load(&p->stop)) {
        struct pollfd fds[2 * PROXY_PAIRS + 2] = {{.fd = p->wake, .events = POLLIN}, {.fd = p->listener, .events = POLLIN}};
        for (int i = 0; i < PROXY_PAIRS; i++) {
            fds[2 + 2 * i] = (struct pollfd){.fd = p->pairs[i].client, .events = POLLIN};
            fds[3 + 2 * i] = (struct pollfd){.fd = p->pairs[i].server, .events = POLLIN};
        }
        poll(fds, 2 * PROXY_PAIRS + 2, -1);
        uint64_t ignored;
        if (fds[0].revents && read(p->wake, &ignored, sizeof ignored) > 0 && atomic_load(&p->closed))
            proxy_cut_all(p);
        for (int i = 0; i < PROXY_PAIRS; i++) {
            proxy_pair *pair = &p->pairs[i];
            if (pair->client >= 0 && fds[2 + 2 * i].fd == pair->client && fds[2 + 2 * i].revents &&
                !proxy_move(p, pair->client, pair->server, &p->to, &p->cut_to))
                proxy_cut_pair(pair);
            if (pair->server >= 0 && fds[3 + 2 * i].fd == pair->server && fds[3 + 2 * i].revents &&
                !proxy_move(p, pair->server, pair->client, &p->from, &p->cut_from))
                proxy_cut_pair(pair);
        }
        if (fds[1].revents)
            proxy_accept(p);
    }
    for (int i = 0; i < PROXY_PAIRS; i++)
        proxy_cut_pair(&p->pairs[i]);
    return NULL;
}

static inline void proxy_wake(const proxy *p) {
    const uint64_t one = 1;
    CHECK(write(p->wake, &one, sizeof one) == sizeof one);
}

static inline void proxy_close(proxy *p, bool closed) {
    atomic_store(&p->closed, closed);
    proxy_wake(p);
}

/* The socket of a server in this folder. */
static inline bool proxy_start(proxy *p, const char *folder) {
    *p = (proxy){.wake = eventfd(0, EFD_CLOEXEC)};
    atomic_store(&p->cut_to, -1);
    atomic_store(&p->cut_from, -1);
    for (int i = 0; i < PROXY_PAIRS; i++)
        p->pairs[i].client = p->pairs[i].server = -1;
    snprintf(p->folder, sizeof p->folder, "/tmp/weft-proxy-XXXXXX");
    snprintf(p->target, sizeof p->target, "%.70s/.s.PGSQL.5432", folder);
    if (!mkdtemp(p->folder))
        return false;
    char path[96];
    snprintf(path, sizeof path, "%s/.s.PGSQL.5432", p->folder);
    struct sockaddr_un address = proxy_address(path);
    p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(p->listener, (struct sockaddr *) &address, sizeof address) == 0 && listen(p->listener, 16) == 0 &&
           pthread_create(&p->thread, NULL, proxy_main, p) == 0;
}

static inline void proxy_done(proxy *p) {
    atomic_store(&p->stop, true);
    proxy_wake(p);
    pthread_join(p->thread, NULL);
    close(p->listener);
    close(p->wake);
    test_remove(p->folder);
}

#endif
