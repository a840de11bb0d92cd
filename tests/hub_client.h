/* A client of a hub in a box (hub_world.h): a real peer without a socket. What it is told waits in its queue until the test
 * takes it, so a client that is not read from is slow, and its connection fills as a real one does. */
#ifndef HUB_CLIENT_H
#define HUB_CLIENT_H

#include "hub_world.h"
#include "link.h"

typedef struct hub_client {
    hub_world *world;
    weft_peer *peer; /* NULL: the hub, or the test, has ended it */
    char *line;      /* the last one taken */
} hub_client;

static inline void hub_client_gone(weft_peer *peer, void *carrier) {
    (void) peer;
    ((hub_client *) carrier)->peer = NULL;
}

static inline void hub_client_drained(weft_peer *peer, void *data) {
    (void) data;
    if (hub_stage->hub.clients)
        weft__hub_clients_drain(hub_stage->hub.clients, peer);
}

/* *c must stay where it is. */
static inline void hub_connect_with(hub_world *world, const char *dialect, const char *scopes, hub_client *c) {
    static const weft_carrier carrier = {.free = hub_client_gone};
    weft_identity who = {.transport = "mem",
                         .dialect = dialect,
                         .name = "tester",
                         .scopes = scopes,
                         .address = "",
                         .uid = 1000,
                         .pid = 1,
                         .authenticated = true};
    weft_peer_opts opts = {.framing = &weft_ndjson, .identity = &who, .on_drain = hub_client_drained};
    *c = (hub_client){.world = world};
    if (weft_peer_new(world->service, &opts, &c->peer) < 0)
        return;
    weft__peer_set_carrier(c->peer, &carrier, c);
    weft__hub_clients_open(world->hub.clients, c->peer);
}

static inline void hub_connect(hub_world *world, const char *dialect, hub_client *c) {
    hub_connect_with(world, dialect, "*", c);
}

static inline void hub_disconnect(hub_client *c) {
    if (c->peer && c->world->hub.clients)
        weft__hub_clients_close(c->world->hub.clients, c->peer);
    if (c->peer)
        weft_peer_free(c->peer);
    free(c->line);
    c->line = NULL;
}

/* One message, without its line end. */
static inline void hub_say(hub_client *c, const char *text) {
    if (c->peer)
        CHECK(weft_peer_feed(c->peer, text, strlen(text), 1) >= 0);
    if (c->peer)
        CHECK(weft_peer_feed(c->peer, "\n", 1, 1) >= 0);
}

/* The next line that is there; NULL: none. Borrowed until the next call. */
static inline const char *hub_take(hub_client *c) {
    weft_bytes out = c->peer ? weft_peer_output(c->peer) : (weft_bytes){"", 0};
    const char *end = memchr(out.data, '\n', out.len);
    if (!end)
        return NULL;
    size_t n = (size_t) (end - out.data);
    free(c->line);
    c->line = weft__strndup(NULL, out.data, n); /* it does not look behind what is ours to read */
    weft_peer_sent(c->peer, n + 1);
    if (c->peer && !weft_peer_full(c->peer)) /* what was said while it was full has not been read */
        weft_peer_feed(c->peer, NULL, 0, 1);
    return c->line;
}

/* The next line, waiting for it; "": it did not come, or the connection has ended. */
static inline const char *hub_wait(hub_client *c) {
    const char *line;
    int64_t until = hub_ms() + HUB_PATIENCE_MS;
    while (!(line = hub_take(c)) && c->peer && hub_ms() < until)
        hub_turn(c->world, 1);
    return line ? line : "";
}

/* The next line has this in it. */
#define HUB_TOLD(c, part) test_check(strstr(hub_wait(c), (part)) != NULL, __FILE__, __LINE__, (part))
/* It is told nothing more. */
#define HUB_SILENT(c)                                                                                                       \
    do {                                                                                                                    \
        hub_settle((c)->world);                                                                                             \
        const char *said_ = hub_take(c);                                                                                    \
        CHECK_STR(said_ ? said_ : "", "");                                                                                  \
    } while (0)

static int hub_pending; /* events that are on their way to the store */

static inline void hub_happened(void *ctx, int r) {
    (void) ctx;
    CHECK(r == 0 || r == -ECANCELED); /* the hub may be closed before */
    hub_pending--;
}

/* Something of this type happens in the stream "hub". A slow disk is waited for now and then. */
static inline void hub_happen(hub_world *world, const char *type, const char *message) {
    hub_pending++;
    CHECK_INT(weft__engine_append(world->engine, "hub", type, WEFT_OBJ({"message", weft_str(message)}), hub_happened, NULL),
              0);
    hub_turn(world, 0);
    HUB_UNTIL(world, hub_pending < 32);
}

/* A notice of about 1 KiB, whose message begins with the number. */
static inline void hub_make_notice(hub_world *w, int number) {
    char text[1200];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    text[snprintf(text, sizeof text, "%d", number)] = ' ';
    hub_happen(w, "notice", text);
}

/* Make notices until the connection is full. The number of the next. */
static inline int hub_fill_connection(hub_client *c, int number) {
    while (c->peer && !weft_peer_full(c->peer) && number < 10000)
        hub_make_notice(c->world, number++);
    CHECK(c->peer && weft_peer_full(c->peer));
    return number;
}

#endif
