/* A proxy between two transports: whoever connects gets a connection of its own to the other side, and every message passes
 * as it came. The slower side sets the pace. Who ends its half of the connection still gets what the other side answers.
 *
 *     proxy ws://127.0.0.1:8080/ unix:./echo.sock */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#define QUIET_MS 5000

static const char *target;

/* Two peers that belong together; each is the other's weft_peer_data() through this. */
typedef struct pair {
    weft_peer *near, *far; /* NULL: gone */
    weft_timer *quiet;     /* since near has ended its half */
} pair;

static void free_pair(pair *self) {
    weft_timer_free(self->quiet);
    free(self);
}

static weft_peer *other_of(pair *self, const weft_peer *peer) {
    return peer == self->near ? self->far : self->near;
}

/* Every message, before it is looked at as JSON. */
static bool pass(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    pair *self = data;
    weft_peer *other = self ? other_of(self, peer) : NULL;
    if (!other)
        return true;
    if (self->quiet)
        weft_timer_start(self->quiet, QUIET_MS, 0);
    if (weft_peer_send_raw(other, body, binary) < 0)
        weft_peer_free(self->near); /* a message would be missing: on_near_close() ends both */
    else if (weft_peer_full(other))
        weft_peer_pause(peer, true); /* until on_drain of the other */
    return true;
}

static void resume(weft_peer *peer, void *data) {
    pair *self = data;
    weft_peer *other = self ? other_of(self, peer) : NULL;
    if (other)
        weft_peer_pause(other, false);
}

static void on_near_drain(weft_server *server, weft_peer *peer, void *data) {
    (void) server, (void) data;
    resume(peer, weft_peer_data(peer));
}

static void on_quiet(weft_timer *timer, void *ctx) {
    pair *self = ctx;
    (void) timer;
    weft_peer_free(self->near); /* on_near_close() ends both */
}

/* It may still be owed answers. Nobody counts them here: it is kept until the other side has been quiet for a while. */
static bool on_near_eof(weft_peer *peer, void *data) {
    pair *self = data;
    (void) peer;
    if (!self || !self->far || weft_timer_new(weft_peer_loop(self->far), on_quiet, self, &self->quiet) < 0)
        return false;
    weft_timer_start(self->quiet, QUIET_MS, 0);
    return true;
}

static void on_far_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    pair *self = data;
    if (state != WEFT_PEER_CLOSED && state != WEFT_PEER_DISCONNECTED)
        return;
    if (why < 0)
        fprintf(stderr, "proxy: %s: %s\n", target, weft_peer_trouble(peer));
    self->far = NULL;
    weft_peer_free(peer);
    if (self->near)
        weft_peer_free(self->near); /* on_near_close() does the rest */
    else
        free_pair(self);
}

static void on_near_open(weft_server *server, weft_peer *peer, void *data) {
    pair *self = calloc(1, sizeof *self);
    weft_trouble trouble = {""};
    (void) data;
    weft_connect_opts opts = {.on_raw = pass, .on_drain = resume, .on_state = on_far_state, .data = self};
    weft_peer_set_data(peer, self);
    if (self && weft_connect_on(weft_server_loop(server), target, &opts, &self->far, &trouble) >= 0) {
        self->near = peer;
        return;
    }
    fprintf(stderr, "proxy: %s\n", trouble.text);
    weft_peer_set_data(peer, NULL);
    free(self);
    weft_peer_free(peer);
}

static void on_near_close(weft_server *server, weft_peer *peer, int why, void *data) {
    pair *self = weft_peer_data(peer);
    (void) server, (void) why, (void) data;
    if (!self)
        return;
    self->near = NULL;
    if (self->far)
        weft_peer_free(self->far); /* its on_state is not told of that */
    free_pair(self);
}

int main(int argc, char **argv) {
    WEFT_AUTO(weft_loop) loop = NULL;
    WEFT_AUTO(weft_server) server = NULL;
    weft_service *service = NULL;
    if (argc != 3)
        return fprintf(stderr, "usage: proxy LISTEN-URL TARGET-URL\n"), 2;
    target = argv[2];

    int r = weft_loop_new(NULL, &loop);
    if (r >= 0)
        r = weft_service_new(NULL, &service);
    if (r >= 0)
        r = weft_server_new(loop,
                            &(weft_server_opts){.service = service,
                                                .on_open = on_near_open,
                                                .on_close = on_near_close,
                                                .on_drain = on_near_drain,
                                                .on_raw = pass,
                                                .on_eof = on_near_eof},
                            &server);
    weft_service_unref(service);
    if (r >= 0 && (r = weft_server_listen(server, argv[1], NULL)) < 0)
        fprintf(stderr, "proxy: %s\n", weft_server_trouble(server));
    if (r >= 0) {
        fprintf(stderr, "listening on %s\n", weft_server_url(server, 0));
        r = weft_server_run(server);
    }
    return r < 0;
}
