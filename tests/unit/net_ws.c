/* From HTTP to WebSocket on a real socket: the handshake's rules, the bytes behind it, the good-byes. What frames may look
 * like is tested where frames are made. */
#include "net_world.h"
#include "server.h"

#define HOST "Host: localhost\r\n"
#define UPGRADE "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define V13 "Sec-WebSocket-Version: 13\r\n"
#define GET_WS "GET /ws HTTP/1.1\r\n" HOST
/* Masked with zeroes, which RFC 6455 does not forbid and people can read. */
#define FRAME(len) "\x81" len "\0\0\0\0"

static const weft_token tokens[] = {{"s3cret", "ann", "admin"}, {0}};

static world *ws_world(const weft_listen_opts *opts) {
    world *w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(w->server, "ws://127.0.0.1:0/ws", opts), 0);
    return w;
}

TEST(handshakes) {
    static const struct {
        const char *name, *request;
        int status;
        const char *has;
    } rows[] = {
        {"the RFC's own", GET_WS UPGRADE KEY V13 "\r\n", 101, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"},
        {"deflate", GET_WS UPGRADE KEY V13 "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n",
         101, "Sec-WebSocket-Extensions: permessage-deflate"},
        {"unknown extension", GET_WS UPGRADE KEY V13 "Sec-WebSocket-Extensions: x-thing\r\n\r\n", 101,
         "Upgrade: websocket\r\n"},
        {"a protocol is answered", GET_WS UPGRADE KEY V13 "Sec-WebSocket-Protocol: a, b\r\n\r\n", 101,
         "Sec-WebSocket-Protocol: a\r\n"},
        {"no upgrade at all", GET_WS "\r\n", 426, "Upgrade: websocket\r\n"},
        {"Connection does not say so", GET_WS "Upgrade: websocket\r\n" KEY V13 "\r\n", 426, ""},
        {"upgrade to something else", GET_WS "Connection: Upgrade\r\nUpgrade: h2c\r\n" KEY V13 "\r\n", 426, ""},
        {"no version", GET_WS UPGRADE KEY "\r\n", 426, "Sec-WebSocket-Version: 13\r\n"},
        {"old version", GET_WS UPGRADE KEY "Sec-WebSocket-Version: 8\r\n\r\n", 426, "Sec-WebSocket-Version: 13\r\n"},
        {"no key", GET_WS UPGRADE V13 "\r\n", 400, ""},
        {"short key", GET_WS UPGRADE V13 "Sec-WebSocket-Key: dGhl\r\n\r\n", 400, ""},
        {"two keys", GET_WS UPGRADE KEY KEY V13 "\r\n", 400, ""},
        {"POST", "POST /ws HTTP/1.1\r\n" HOST UPGRADE KEY V13 "\r\n", 405, "Allow: GET\r\n"},
        {"HTTP/1.0", "GET /ws HTTP/1.0\r\n" HOST UPGRADE KEY V13 "\r\n", 400, ""},
        {"with a body", GET_WS UPGRADE KEY V13 "Content-Length: 1\r\n\r\nx", 400, ""},
        {"another path", "GET /no HTTP/1.1\r\n" HOST UPGRADE KEY V13 "\r\n", 404, ""},
        {"another's page", GET_WS UPGRADE KEY V13 "Origin: http://evil.example\r\n\r\n", 403, ""},
        {"our own page", GET_WS UPGRADE KEY V13 "Origin: http://localhost\r\n\r\n", 101, ""},
        {"another's host", "GET /ws HTTP/1.1\r\nHost: evil.example\r\n" UPGRADE KEY V13 "\r\n", 421, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *body;
        world *w = ws_world(NULL);
        test_row(rows[i].name);
        CHECK_INT(world_http(w, 0, &body, "%s", rows[i].request), rows[i].status);
        HAS(w, rows[i].has);
        CHECK_INT(w->opened, rows[i].status == 101);
        world_free(w);
    }
    test_row(NULL);
}

TEST(tokens_of_browsers) {
    static const struct {
        const char *name, *header;
        int status;
        const char *has;
    } rows[] = {
        {"none", "", 401, "WWW-Authenticate"},
        {"as the only protocol", "Sec-WebSocket-Protocol: weft.token.s3cret\r\n", 101,
         "Sec-WebSocket-Protocol: weft.token.s3cret\r\n"},
        {"beside another", "Sec-WebSocket-Protocol: weft.token.s3cret, weft\r\n", 101, "Sec-WebSocket-Protocol: weft\r\n"},
        {"wrong", "Sec-WebSocket-Protocol: weft.token.x\r\n", 401, ""},
        {"header", "Authorization: Bearer s3cret\r\n", 101, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *body;
        world *w = ws_world(&(weft_listen_opts){.tokens = tokens});
        test_row(rows[i].name);
        CHECK_INT(world_http(w, 0, &body, GET_WS UPGRADE KEY V13 "%s\r\n", rows[i].header), rows[i].status);
        HAS(w, rows[i].has);
        world_free(w);
    }
    test_row(NULL);
}

static int open_ws(world *w) {
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd, GET_WS UPGRADE KEY V13 "\r\n");
    CHECK(world_read_until(w, fd, "\r\n\r\n"));
    return fd;
}

#define CALL "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}"
#define ANSWER "\x81\x26{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}"

TEST(messages_behind_the_head) {
    static const char request[] = GET_WS UPGRADE KEY V13 "\r\n" FRAME("\xa8") CALL;
    world *w = ws_world(NULL);
    for (size_t cut = 1; cut < sizeof request - 1; cut += 7) {
        int fd = world_connect_tcp(w, 0);
        world_send(w, fd, request, cut);
        world_wait(w, -1, 0);
        world_send(w, fd, request + cut, sizeof request - 1 - cut);
        CHECK(world_read_until(w, fd, ANSWER));
        close(fd);
    }
    world_free(w);
}

/* Who shows none may connect and is a stranger until it does, for a while; a wrong one is refused as ever. */
TEST(a_token_later) {
    const char *body;
    world *w = ws_world(&(weft_listen_opts){.tokens = tokens, .token_later = true});
    CHECK_INT(world_http(w, 0, &body, GET_WS UPGRADE KEY V13 "Authorization: Bearer x\r\n\r\n"), 401);
    int fd = open_ws(w);
    world_send(w, fd, FRAME("\xa8") CALL, sizeof(FRAME("\xa8") CALL) - 1);
    CHECK(world_read_until(w, fd, "\"code\":401"));
    CHECK_INT(w->opened, 0);
    close(fd);
    world_free(w);
    w = ws_world(&(weft_listen_opts){.tokens = tokens, .token_later = true});
    w->server->opts.auth_ms = 1;
    fd = open_ws(w);
    CHECK_INT(world_read_all(w, fd), 0); /* it is closed */
    CHECK_INT(w->opened, 0);
    close(fd);
    world_free(w);
}

TEST(half_closed_and_vanished) {
    world *w = ws_world(NULL);
    int fd = open_ws(w);
    close(fd);
    WORLD_UNTIL(w, w->closed == 1);
    fd = open_ws(w);
    world_send(w, fd, "\x88\x82\0\0\0\0\x03\xe8", 8);
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK_INT(w->len, 4);
    CHECK(memcmp(w->text, "\x88\x02\x03\xe8", 4) == 0); /* 1000 comes back */
    WORLD_UNTIL(w, w->closed == 2);
    CHECK_INT(w->why, 0);
    close(fd);
    world_free(w);
}

TEST(unmasked_frames_break_it) {
    world *w = ws_world(NULL);
    int fd = open_ws(w);
    world_send(w, fd, "\x81\x02{}", 4);
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK(w->len >= 4 && memcmp(w->text + 2, "\x03\xea", 2) == 0); /* 1002 */
    close(fd);
    world_free(w);
}

TEST(stop_says_restart) {
    world *w = ws_world(NULL);
    int fd = open_ws(w);
    weft_server_stop(w->server, NULL, NULL);
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK_TEXT(w->text, w->len, "\x88\x11\x03\xf4service restart");
    close(fd);
    world_free(w);
}

TEST(broadcast) {
    world *w = ws_world(NULL);
    int fd = open_ws(w);
    CHECK_INT(weft_server_broadcast(w->server, "news", weft_none(), NULL, NULL), 1);
    CHECK(world_read_until(w, fd, "\x81\x21{\"jsonrpc\":\"2.0\",\"method\":\"news\"}"));
    close(fd);
    world_free(w);
}

TEST(ping_and_silence) {
    weft_limits limits = {.ping_ms = 10, .pong_ms = 10};
    world *w = world_new(NULL, &limits);
    CHECK_INT(weft_server_listen(w->server, "ws://127.0.0.1:0/ws", NULL), 0);
    int fd = open_ws(w);
    world_read_all(w, fd); /* we never answer */
    CHECK(w->len >= 2 && memcmp(w->text, "\x89\0", 2) == 0);
    WORLD_UNTIL(w, w->closed == 1);
    CHECK_INT(w->why, -ETIMEDOUT);
    close(fd);
    world_free(w);
}

TEST(both_on_one_path) {
    char url[100];
    const char *body;
    world *w = ws_world(NULL);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/ws", world_port(w, 0));
    CHECK_INT(weft_server_listen(w->server, url, NULL), 0);
    CHECK_INT(world_http(w, 0, &body, GET_WS UPGRADE KEY V13 "\r\n"), 101);
    CHECK_INT(world_http(w, 0, &body,
                         "POST /ws HTTP/1.1\r\n" HOST "Content-Type: application/json\r\nContent-Length: 40\r\n\r\n" CALL),
              200);
    world_free(w);
}

/* clang-format off */
TEST_MAIN(
    CASE(handshakes)
    CASE(tokens_of_browsers)
    CASE(messages_behind_the_head)
    CASE(a_token_later) CASE(half_closed_and_vanished)
    CASE(unmasked_frames_break_it)
    CASE(stop_says_restart)
    CASE(broadcast)
    CASE(ping_and_silence)
    CASE(both_on_one_path)
)
