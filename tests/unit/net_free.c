/* A callback may end anything: its connection, its server, the loop's run. Worth most under AddressSanitizer. */
#include "net_world.h"

typedef struct scene {
    weft_server *server;
    weft_loop *loop;
    weft_service *service;
    int opened, closed, notes, asked;
    bool free_on_open, free_on_close, free_on_note, free_on_asked, peer_only;
} scene;

static void end(scene *s, weft_peer *peer) {
    if (s->peer_only)
        weft_peer_free(peer);
    else
        s->server = weft_server_free(s->server);
}

static void on_open(weft_server *server, weft_peer *peer, void *data) {
    scene *s = data;
    (void) server;
    if (s->opened++ == 0 && s->free_on_open)
        end(s, peer);
}

static void on_close(weft_server *server, weft_peer *peer, int why, void *data) {
    scene *s = data;
    (void) server, (void) why;
    if (s->closed++ == 0 && s->free_on_close)
        end(s, peer);
}

static void on_note(weft_server *server, const char *line, void *data) {
    scene *s = data;
    (void) server, (void) line;
    if (s->notes++ == 0 && s->free_on_note)
        s->server = weft_server_free(s->server);
}

static void on_route(weft_http *http, void *ctx) {
    scene *s = ctx;
    if (s->asked++ == 0 && s->free_on_asked)
        s->server = weft_server_free(s->server);
    weft_http_answer(http, 200, "text/plain", (weft_bytes){"x", 1});
}

static bool keep(weft_peer *peer, void *ctx) {
    scene *s = ctx;
    if (s->asked++ == 0)
        end(s, peer);
    return true;
}

static void scene_open(scene *s, size_t max_connections) {
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = world_methods}, &s->service), 0);
    CHECK_INT(weft_loop_new(NULL, &s->loop), 0);
    weft_server_opts opts = {.service = s->service,
                             .max_connections = max_connections,
                             .data = s,
                             .on_open = on_open,
                             .on_close = on_close,
                             .on_note = on_note};
    CHECK_INT(weft_server_new(s->loop, &opts, &s->server), 0);
}

static void scene_close(scene *s) {
    weft_server_free(s->server);
    weft_loop_free(s->loop);
    weft_service_unref(s->service);
}

static int connect_to(const char *url) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t) atoi(strrchr(url, ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(connect(fd, (struct sockaddr *) &address, sizeof address), 0);
    return fd;
}

static void turn(scene *s, int times) {
    for (int i = 0; i < times; i++) {
        struct pollfd wait = {.fd = weft_loop_fd(s->loop), .events = POLLIN};
        poll(&wait, 1, 5);
        weft_loop_once(s->loop, false);
    }
}

/* And a frame right behind. */
#define UPGRADE                                                                                                             \
    "GET /p HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"      \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81\x80\x01\x02\x03\x04"

static const char *const hellos[] = {
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\"}\n",
    UPGRADE,
    "GET /p HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n",
    "GET /route HTTP/1.1\r\nHost: localhost\r\n\r\nGET /route HTTP/1.1\r\nHost: localhost\r\n\r\n",
};
static const char *const urls[] = {"tcp://127.0.0.1:0", "ws://127.0.0.1:0/p", "http://127.0.0.1:0/p",
                                   "http://127.0.0.1:0/p"};

static void play(scene s, size_t transport) {
    scene_open(&s, s.free_on_note ? 1 : 0);
    CHECK_INT(weft_server_listen(s.server, urls[transport], NULL), 0);
    CHECK_INT(weft_server_route(s.server, "GET", "/route", on_route, &s), 0);
    char url[64];
    snprintf(url, sizeof url, "%s", weft_server_url(s.server, 0));
    char *slash = strchr(url + strlen("http://"), '/');
    if (slash)
        *slash = '\0';
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = connect_to(url);
        (void) send(fds[i], hellos[transport], strlen(hellos[transport]), MSG_NOSIGNAL);
    }
    turn(&s, 8);
    if (s.server && !s.free_on_close && !s.free_on_note)
        weft_server_broadcast(s.server, "news", weft_none(), keep, &s);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    turn(&s, 8);
    CHECK_INT(s.opened, s.closed);
    scene_close(&s);
}

TEST(callbacks_may_end_everything) {
    static const struct {
        const char *name;
        scene start;
    } rows[] = {
        {"server, in on_open", {.free_on_open = true}},
        {"peer, in on_open", {.free_on_open = true, .peer_only = true}},
        {"server, in on_close", {.free_on_close = true}},
        {"peer, in on_close", {.free_on_close = true, .peer_only = true}},
        {"server, in on_note", {.free_on_note = true}},
        {"server, in a route", {.free_on_asked = true}},
        {"server, while telling all", {0}},
        {"peer, while telling all", {.peer_only = true}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t transport = 0; transport < 4; transport++) {
            char row[100];
            snprintf(row, sizeof row, "%s, %zu %s", rows[i].name, transport, urls[transport]);
            test_row(row);
            play(rows[i].start, transport);
        }
    test_row(NULL);
}

/* ---- outside of a turn ---- */

typedef enum ending { END_LOOP, END_SERVER, STOP_SERVER, END_BOTH } ending;

typedef struct last {
    weft_loop *loop;
    weft_server *server;
    ending how;
    int times;
} last;

static void end_from_callback(last *self) {
    if (self->times++)
        return;
    if (self->how == STOP_SERVER)
        weft_server_stop(self->server, NULL, NULL);
    if (self->how == END_SERVER || self->how == END_BOTH)
        self->server = weft_server_free(self->server);
    if (self->how == END_LOOP || self->how == END_BOTH)
        self->loop = weft_loop_free(self->loop);
}

static void on_last_close(weft_server *server, weft_peer *peer, int why, void *data) {
    (void) server, (void) peer, (void) why;
    end_from_callback(data);
}

static bool keep_none(weft_peer *peer, void *ctx) {
    (void) peer;
    end_from_callback(ctx);
    return true;
}

/* What a program calls between two turns runs callbacks, too, and these may do as much. */
static void end_outside(const char *url, ending how, int call, int conns) {
    test_memory memory;
    weft_service *service;
    last self = {.how = how};
    int fds[3];
    test_memory_init(&memory, 0);
    REQUIRE(weft_service_new(NULL, &service) == 0);
    REQUIRE(weft_loop_new(&memory.alloc, &self.loop) == 0);
    weft_server_opts opts = {.service = service, .data = &self, .on_close = on_last_close, .grace_ms = 1};
    REQUIRE(weft_server_new(self.loop, &opts, &self.server) == 0);
    REQUIRE(weft_server_listen(self.server, url, NULL) == 0);
    for (int i = 0; i < conns; i++)
        fds[i] = connect_to(weft_server_url(self.server, 0));
    for (int i = 0; i < 200 && weft_server_clients(self.server) < (size_t) conns; i++) {
        struct pollfd wait = {.fd = weft_loop_fd(self.loop), .events = POLLIN};
        poll(&wait, 1, 5);
        weft_loop_once(self.loop, false);
    }
    CHECK_INT(weft_server_clients(self.server), conns);
    if (call == 0)
        self.server = weft_server_free(self.server);
    else if (call == 1)
        weft_server_stop(self.server, NULL, NULL);
    else
        weft_server_broadcast(self.server, "news", weft_none(), keep_none, &self);
    CHECK(self.times > 0);
    for (int i = 0; i < conns; i++)
        close(fds[i]);
    if (how == END_SERVER || how == END_BOTH || call == 0)
        self.server = NULL;
    self.server = weft_server_free(self.server);
    self.loop = weft_loop_free(self.loop);
    CHECK_INT(memory.live, 0);
    weft_service_unref(service);
}

TEST(callbacks_outside_of_a_turn_may_end_everything) {
    static const char *const calls[] = {"weft_server_free", "weft_server_stop", "weft_server_broadcast"};
    static const char *const hows[] = {"loop", "server", "stop", "both"};
    for (int call = 0; call < 3; call++)
        for (int how = END_LOOP; how <= END_BOTH; how++)
            for (int conns = 1; conns <= 3; conns += 2) {
                char row[100];
                snprintf(row, sizeof row, "%s, in it: %s, %d connections", calls[call], hows[how], conns);
                test_row(row);
                end_outside("tcp://127.0.0.1:0", (ending) how, call, conns);
            }
    test_row(NULL);
}

/* clang-format off */
TEST_MAIN(
    CASE(callbacks_outside_of_a_turn_may_end_everything)
    CASE(callbacks_may_end_everything)
)
