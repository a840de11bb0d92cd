/* Tokens that come and go while the server runs. */
#include <openssl/sha.h>

#include "net_world.h"

#define HOST "Host: localhost\r\n"
#define WHO "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"who\"}"
#define AUTH(token) "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"weft.auth\",\"params\":{\"token\":\"" token "\"}}\n"

static const weft_token both[] = {{"s3cret", "ann", "admin"}, {"other", "bob", "read"}, {0}};
static const weft_token only_ann[] = {{"s3cret", "ann", "admin"}, {0}};
static const weft_token bob_works[] = {{"s3cret", "ann", "admin"}, {"other", "bob", "read work"}, {0}};
static const weft_token nobody[] = {{0}};

static world *token_world(const weft_token *tokens) {
    world *w = world_new(NULL, NULL);
    char url[64];
    CHECK_INT(weft_server_listen(w->server, "http://127.0.0.1:0/rpc", &(weft_listen_opts){.tokens = tokens}), 0);
    snprintf(url, sizeof url, "ws://127.0.0.1:%d/ws", world_port(w, 0));
    CHECK_INT(weft_server_listen(w->server, url, &(weft_listen_opts){.tokens = tokens}), 0);
    CHECK_INT(weft_server_listen(w->server, "tcp://127.0.0.1:0", &(weft_listen_opts){.tokens = tokens}), 0);
    CHECK_INT(weft_server_listen(w->server, "http://127.0.0.1:0/open", NULL), 0);
    return w;
}

static int ask(world *w, const char *token) {
    const char *body;
    return world_http(w, 0, &body,
                      "POST /rpc HTTP/1.1\r\n" HOST "Content-Type: application/json\r\nAuthorization: Bearer %s\r\n"
                      "Content-Length: 39\r\n\r\n" WHO,
                      token);
}

TEST(tokens_are_replaced) {
    const char *body;
    world *w = token_world(both);
    CHECK_INT(ask(w, "other"), 200);
    CHECK_INT(weft_server_tokens(w->server, only_ann), 0);
    CHECK_INT(ask(w, "other"), 401);
    CHECK_INT(ask(w, "s3cret"), 200);
    CHECK_INT(weft_server_tokens(w->server, bob_works), 0);
    CHECK_INT(ask(w, "other"), 200);
    HAS(w, "\"scopes\":\"read work\"");
    /* An empty list is a list: nobody comes in. Where none was asked for, none is. */
    CHECK_INT(weft_server_tokens(w->server, nobody), 0);
    CHECK_INT(ask(w, "s3cret"), 401);
    CHECK_INT(world_http(w, 0, &body, "GET /rpc HTTP/1.1\r\n" HOST "\r\n"), 401);
    CHECK_INT(world_http(w, 3, &body, "GET /open HTTP/1.1\r\n" HOST "\r\n"), 406);
    CHECK_INT(weft_server_tokens(w->server, NULL), 0);
    CHECK_INT(ask(w, "s3cret"), 401);
    world_free(w);
}

TEST(an_endpoint_is_closed_again) {
    const char *body;
    char url[64], ws[64];
    world *w = token_world(both);
    snprintf(url, sizeof url, "%s", weft_server_url(w->server, 0));
    snprintf(ws, sizeof ws, "%s", weft_server_url(w->server, 1));
    int port = world_port(w, 0);
    int fd = world_connect_tcp(w, 0);
    CHECK_INT(ask(w, "s3cret"), 200); /* the other one has been accepted by now */
    CHECK_INT(weft_server_unlisten(w->server, "http://127.0.0.1:1/rpc"), -ENOENT);
    CHECK_INT(weft_server_unlisten(w->server, url), 0);
    CHECK_INT(weft_server_unlisten(w->server, url), -ENOENT);
    CHECK_INT(weft_server_unlisten(w->server, ws), -ENOENT); /* on the same socket */
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK(strncmp(weft_server_url(w->server, 0), "tcp:", 4) == 0); /* those that are left move up */
    CHECK(weft_server_url(w->server, 2) == NULL);
    CHECK_INT(world_http(w, 1, &body, "GET /open HTTP/1.1\r\n" HOST "\r\n"), 406);
    /* The port is free, and can be served again. */
    snprintf(url, sizeof url, "http://127.0.0.1:%d/rpc", port);
    CHECK_INT(weft_server_listen(w->server, url, &(weft_listen_opts){.tokens = only_ann}), 0);
    CHECK_INT(world_http(w, 2, &body, "GET /rpc HTTP/1.1\r\n" HOST "\r\n"), 401);
    close(fd);
    world_free(w);
}

TEST(an_empty_list_lets_nobody_in) {
    world *w = token_world(nobody);
    CHECK_INT(ask(w, ""), 401);
    CHECK_INT(ask(w, "x"), 401);
    CHECK_INT(weft_server_tokens(w->server, both), 0);
    CHECK_INT(ask(w, "other"), 200);
    world_free(w);
}

TEST(a_digest_is_as_good) {
    unsigned char digest[32];
    SHA256((const unsigned char *) "hidden", 6, digest);
    world *w = token_world((weft_token[]){{.digest = digest, .name = "eve", .scopes = "read"}, {0}});
    CHECK_INT(ask(w, "hidden"), 200);
    HAS(w, "\"name\":\"eve\"");
    CHECK_INT(ask(w, "hidde"), 401);
    world_free(w);
}

static int open_tcp(world *w, const char *hello) {
    int fd = world_connect_tcp(w, 2);
    world_say(w, fd, hello);
    CHECK(world_read_until(w, fd, "\n"));
    HAS(w, "\"scopes\"");
    return fd;
}

static int open_socket(world *w, const char *token) {
    char request[400];
    int fd = world_connect_tcp(w, 1);
    snprintf(request, sizeof request,
             "GET /ws?token=%s HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
             token);
    world_say(w, fd, request);
    CHECK(world_read_until(w, fd, "\r\n\r\n"));
    CHECK_INT(atoi(w->text + 9), 101);
    return fd;
}

static int open_events(world *w, const char *token) {
    char request[200];
    int fd = world_connect_tcp(w, 0);
    snprintf(request, sizeof request, "GET /rpc?token=%s HTTP/1.1\r\n" HOST "Accept: text/event-stream\r\n\r\n", token);
    world_say(w, fd, request);
    CHECK(world_read_until(w, fd, "\r\n\r\n"));
    CHECK_INT(atoi(w->text + 9), 200);
    return fd;
}

static int open_idle(world *w, const char *token) {
    char request[200];
    const char *body;
    int fd = world_connect_tcp(w, 0);
    snprintf(request, sizeof request, "GET /no?token=%s HTTP/1.1\r\n" HOST "\r\n", token);
    world_say(w, fd, request);
    CHECK_INT(world_read_http(w, fd, &body), 404);
    return fd;
}

/* Every kind of connection that showed the token ends; the others stay, and are asked for nothing. */
TEST(revoking_closes_connections) {
    world *w = token_world(both);
    int bobs[] = {open_tcp(w, AUTH("other")), open_socket(w, "other"), open_events(w, "other"), open_idle(w, "other")};
    int anns[] = {open_tcp(w, AUTH("s3cret")), open_socket(w, "s3cret"), open_events(w, "s3cret")};
    CHECK_INT(w->opened, 6);
    CHECK_INT(weft_server_tokens(w->server, both), 0); /* nothing has changed */
    for (int i = 0; i < 3; i++)
        world_wait(w, -1, 0);
    CHECK_INT(w->closed, 0);
    CHECK_INT(weft_server_tokens(w->server, only_ann), 0);
    for (size_t i = 0; i < sizeof bobs / sizeof bobs[0]; i++) {
        test_row((const char *const[]){"tcp", "ws", "events", "idle"}[i]);
        CHECK_INT(world_read_all(w, bobs[i]), 0);
        if (i == 1)
            CHECK(w->len > 4 && memcmp(w->text, "\x88", 1) == 0 && memcmp(w->text + 2, "\x03\xf0", 2) == 0); /* 1008 */
        close(bobs[i]);
    }
    test_row(NULL);
    CHECK_INT(w->closed, 3);
    CHECK_INT(w->why, -EACCES);
    CHECK_INT(weft_server_broadcast(w->server, "news", weft_none(), NULL, NULL), 3);
    for (size_t i = 0; i < sizeof anns / sizeof anns[0]; i++) {
        CHECK(world_read_until(w, anns[i], "news"));
        close(anns[i]);
    }
    world_free(w);
}

static int revoke_all(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    world *w = ctx;
    int r = weft_server_tokens(w->server, nobody);
    return r < 0 ? r : weft_reply(req, weft_str("revoked"));
}

/* Who revokes the token it showed is answered first. */
TEST(revoking_ones_own) {
    static const weft_method method = {.name = "revoke", .handler = revoke_all};
    world *w = token_world(both);
    CHECK_INT(weft_service_add(w->service, &method), 0);
    int fd = open_tcp(w, AUTH("s3cret"));
    world_say(w, fd, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"revoke\"}\n");
    CHECK_INT(world_read_all(w, fd), 0);
    HAS(w, "\"revoked\"");
    close(fd);
    world_free(w);
}

static weft_http *kept;

static void keep_it(weft_http *http, void *ctx) {
    (void) ctx;
    kept = http;
}

/* What a route knows of its caller outlives the token. */
TEST(a_request_under_way_keeps_its_name) {
    world *w = token_world(both);
    CHECK_INT(weft_server_route(w->server, "GET", "/later", keep_it, NULL), 0);
    int fd = world_connect_tcp(w, 0);
    kept = NULL;
    world_say(w, fd, "GET /later?token=other HTTP/1.1\r\n" HOST "\r\n");
    WORLD_UNTIL(w, kept != NULL);
    CHECK_INT(weft_server_tokens(w->server, nobody), 0);
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK_STR(weft_http_identity(kept)->name, "bob");
    CHECK_STR(weft_http_identity(kept)->scopes, "read");
    CHECK_INT(weft_http_answer(kept, 200, NULL, (weft_bytes){0}), -EPIPE);
    close(fd);
    world_free(w);
}

TEST(tokens_expire) {
    int64_t now = (int64_t) time(NULL);
    weft_token list[] = {{.token = "old", .name = "o", .expires_at = now - 1},
                         {.token = "soon", .name = "s", .expires_at = now + 2},
                         {.token = "long", .name = "l", .expires_at = INT64_MAX},
                         {0}};
    world *w = token_world(list);
    CHECK_INT(ask(w, "old"), 401);
    CHECK_INT(ask(w, "long"), 200);
    int fd = open_events(w, "soon"), other = open_events(w, "long");
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK((int64_t) time(NULL) >= now + 2);
    CHECK_INT(ask(w, "soon"), 401);
    CHECK_INT(w->closed, 1);
    close(fd);
    close(other);
    world_free(w);
}

/* clang-format off */
TEST_MAIN(
    CASE(tokens_are_replaced)
    CASE(an_endpoint_is_closed_again)
    CASE(an_empty_list_lets_nobody_in)
    CASE(a_digest_is_as_good)
    CASE(revoking_closes_connections)
    CASE(revoking_ones_own)
    CASE(a_request_under_way_keeps_its_name)
    CASE(tokens_expire)
)
