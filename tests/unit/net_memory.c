/* Every allocation of a server fails once: no crash, no leak, and each client gets its answer or the end of its connection.
 */
#include "http_events.h"
#include "net_world.h"

#define CALL "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}"

static const weft_token tokens[] = {{"t", "ann", NULL}, {0}};
static const char *const names[] = {"a", "b", NULL};

typedef struct scene {
    const char *name;
    const char *url; /* of the second endpoint */
    const char *say;
    const char *answer;
} scene;

static const scene scenes[] = {
    {"bytes", "tcp://127.0.0.1:0", CALL "\n", "}\n"},
    {"half a message", "tcp://127.0.0.1:0", "{\"jsonrpc\":\"2.0\"\n" CALL "\n{\"jso", "}\n"},
    {"post", "http://127.0.0.1:0/rpc",
     "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n" CALL "GET /hea",
     "HTTP/1.1 "},
    {"chunks", "http://127.0.0.1:0/rpc",
     "POST /rpc HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Type: application/json\r\n"
     "Transfer-Encoding: chunked\r\n\r\n28\r\n" CALL "\r\n0\r\n\r\n",
     "HTTP/1.1 "},
    {"route", "http://127.0.0.1:0/rpc", "GET /route HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 "},
    {"events", "http://127.0.0.1:0/rpc", "GET /rpc HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n",
     "HTTP/1.1 "},
    {"route of events", "http://127.0.0.1:0/rpc", "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 "},
    {"route with headers", "http://127.0.0.1:0/rpc", "GET /headers HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 "},
    {"route in parts", "http://127.0.0.1:0/rpc", "GET /parts HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 "},
    {"login", "http://127.0.0.1:0/rpc", "GET /login HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 "},
    {"websocket", "ws://127.0.0.1:0/ws",
     "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
     "HTTP/1.1 "},
};

static void route(weft_http *http, void *ctx) {
    (void) ctx;
    weft_http_answer(http, 200, "text/plain", weft_http_body(http));
}

static void stream_route(weft_http *http, void *ctx) {
    weft_peer *peer = NULL;
    (void) ctx;
    if (weft__http_events(http, "stream", &peer) >= 0)
        weft_notify(peer, "begin", weft_none());
}

static const weft_header headers[] = {{"X-One", "1"}, {"X-Two", "2"}, {0}};

static void headers_route(weft_http *http, void *ctx) {
    (void) ctx;
    weft_http_answer_with(http, &(weft_http_answer_opts){.etag = "e", .headers = headers, .body = {"body", 4}});
}

static void parts_route(weft_http *http, void *ctx) {
    static char part[70000]; /* more than the loop lends */
    (void) ctx;
    if (weft_http_begin(http, &(weft_http_answer_opts){.headers = headers, .body = {"1", 1}}, NULL) < 0) {
        weft_http_answer(http, 503, NULL, (weft_bytes){0});
        return;
    }
    weft_http_write(http, (weft_bytes){part, sizeof part});
    weft_http_end(http);
}

static int add_routes(weft_server *server) {
    static const struct {
        const char *path;
        weft_route_handler *handler;
    } rows[] = {{"/route", route}, {"/stream", stream_route}, {"/headers", headers_route}, {"/parts", parts_route}};
    int r = 0;
    for (size_t i = 0; r >= 0 && i < sizeof rows / sizeof rows[0]; i++)
        r = weft_server_route(server, "GET", rows[i].path, rows[i].handler, NULL);
    return r < 0 ? r : weft_server_login(server, NULL);
}

static int serve(world *w, test_memory *memory, const scene *s) {
    char url[100];
    int r = weft_service_new(&(weft_service_opts){.methods = world_methods, .ctx = w, .alloc = &memory->alloc}, &w->service);
    if (r >= 0)
        r = weft_loop_new(&memory->alloc, &w->loop);
    if (r >= 0)
        r = weft_server_new(w->loop, &(weft_server_opts){.service = w->service}, &w->server);
    if (r >= 0)
        r = weft_server_listen(w->server, s->url, &(weft_listen_opts){.hosts = names, .origins = names, .dialect = "d"});
    if (r >= 0)
        r = add_routes(w->server);
    snprintf(url, sizeof url, "unix:%s/s", w->folder);
    if (r >= 0)
        r = weft_server_listen(w->server, url, NULL);
    return r < 0 ? r : weft_server_listen(w->server, "tcp://127.0.0.1:0", &(weft_listen_opts){.tokens = tokens});
}

static void talk(world *w, const scene *s) {
    int fd = world_connect_tcp(w, 0);
    if (fd < 0)
        return;
    world_say(w, fd, s->say);
    bool answered = world_read_until(w, fd, s->answer);
    /* Without an answer there was an end, and not our patience's. */
    if (!answered)
        CHECK(world_more(w, fd) != -ETIMEDOUT);
    weft_server_broadcast(w->server, "news", weft_none(), NULL, NULL);
    weft_loop_once(w->loop, false);
    close(fd);
}

static bool run(const scene *s, long fail_at) {
    test_memory memory;
    world *w = calloc(1, sizeof *w);
    char command[100];
    snprintf(w->folder, sizeof w->folder, "/tmp/weft-test-XXXXXX");
    CHECK(mkdtemp(w->folder) != NULL);
    test_memory_init(&memory, fail_at);
    if (serve(w, &memory, s) >= 0)
        talk(w, s);
    weft_server_free(w->server);
    weft_loop_free(w->loop);
    weft_service_unref(w->service);
    CHECK_INT(memory.live, 0);
    snprintf(command, sizeof command, "%s/s", w->folder);
    unlink(command);
    snprintf(command, sizeof command, "%s/s.lock", w->folder);
    unlink(command);
    rmdir(w->folder);
    free(w);
    return memory.count >= fail_at;
}

TEST(every_allocation_fails_once) {
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        long fail_at = 1;
        test_row(scenes[i].name);
        while (run(&scenes[i], fail_at))
            fail_at++;
        CHECK(fail_at > 30);
    }
    test_row(NULL);
}

/* clang-format off */
TEST_MAIN(
    CASE(every_allocation_fails_once)
)
