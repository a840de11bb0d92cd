/* What a client makes of the answers to its WebSocket handshake and its HTTP requests: a server that says what the row says.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/weft.h>

#include "harness.h"
#include "http1.h"
#include "ws_handshake.h"

typedef struct exchange {
    const char *what;
    const char *url; /* with %d for the port */
    const char *token;
    const char *answer; /* %s is the right Sec-WebSocket-Accept */
    int want;           /* of connecting, or of the first call where connecting needs no answer */
    const char *trouble;
} exchange;

#define WS "ws://127.0.0.1:%d/path?q=1"
#define HTTP "http://127.0.0.1:%d/rpc"
#define SWITCH "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
#define ACCEPT "Sec-WebSocket-Accept: %s\r\n"

static const exchange rows[] = {
    {"a good answer", WS, NULL, SWITCH ACCEPT "\r\n", 0, ""},
    {"compression as offered", WS, NULL,
     SWITCH ACCEPT "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; "
                   "client_no_context_takeover\r\n\r\n",
     0, ""},
    {"unauthorized", WS, NULL, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", -EACCES,
     "the server wants a token (401 Unauthorized)"},
    {"forbidden", WS, "secret", "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", -EACCES,
     "the server refused the token (403 Forbidden)"},
    {"not found", WS, NULL, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", -ENOENT,
     "the server answered 404 Not Found instead of switching to WebSocket"},
    {"too often", WS, NULL, "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n", -EBUSY,
     "the server answered 429 Too Many Requests instead of switching to WebSocket"},
    {"too busy", WS, NULL, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", -EBUSY,
     "the server answered 503 Service Unavailable instead of switching to WebSocket"},
    {"an ordinary page", WS, NULL, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", -EPROTO,
     "the server answered 200 OK instead of switching to WebSocket"},
    {"no Upgrade", WS, NULL, "HTTP/1.1 101 x\r\nConnection: Upgrade\r\n" ACCEPT "\r\n", -EPROTO, NULL},
    {"another Upgrade", WS, NULL, "HTTP/1.1 101 x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n" ACCEPT "\r\n", -EPROTO, NULL},
    {"no Connection", WS, NULL, "HTTP/1.1 101 x\r\nUpgrade: websocket\r\n" ACCEPT "\r\n", -EPROTO, NULL},
    {"no accept", WS, NULL, SWITCH "\r\n", -EPROTO, NULL},
    {"the wrong accept", WS, NULL, SWITCH "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", -EPROTO,
     "the server's WebSocket handshake is wrong: Sec-WebSocket-Accept does not belong to our key"},
    {"two accepts", WS, NULL, SWITCH ACCEPT "Sec-WebSocket-Accept: x\r\n\r\n", -EPROTO, NULL},
    {"an extension nobody offered", WS, NULL, SWITCH ACCEPT "Sec-WebSocket-Extensions: x-webkit-frame\r\n\r\n", -EPROTO,
     NULL},
    {"a subprotocol nobody offered", WS, NULL, SWITCH ACCEPT "Sec-WebSocket-Protocol: chat\r\n\r\n", -EPROTO, NULL},
    {"not HTTP", WS, NULL, "220 mail.example.org ESMTP\r\n\r\n", -EPROTO, NULL},
    {"hangs up", WS, NULL, "", -ECONNRESET, NULL},
    {"half a head", WS, NULL, "HTTP/1.1 101 Swi", -ECONNRESET, NULL},
    {"HTTP, unauthorized", HTTP, NULL, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", -ECONNRESET,
     "the server wants a token (401 Unauthorized)"},
    {"HTTP, a page", HTTP, NULL, "HTTP/1.1 500 x\r\nContent-Length: 6\r\n\r\n<html>", -ECONNRESET,
     "the server answered 500 Internal Server Error"},
    {"HTTP, an answer until the end", HTTP, NULL, "HTTP/1.0 200 OK\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}", 0,
     ""},
    {"HTTP, an answer in chunks, then closed", HTTP, NULL,
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
     "10\r\n{\"jsonrpc\":\"2.0\"\r\n15\r\n,\"id\":1,\"result\":true\r\n1\r\n}\r\n0\r\n\r\n",
     0, ""},
};

/* ---- the server: a child, one connection, one answer ---- */

static void answer(int fd, const exchange *row) {
    static char asked[20000], said[4096];
    size_t len = 0;
    weft_http_head head;
    int head_len = 0;
    while (head_len == 0) {
        ssize_t n = read(fd, asked + len, sizeof asked - len);
        if (n <= 0)
            _exit(1);
        len += (size_t) n;
        head_len = weft__http_request(asked, len, &head);
    }
    char accept[29] = "";
    weft_bytes key = weft__http_find(&head, "sec-websocket-key", NULL);
    if (key.data && weft__ws_key_valid(key))
        weft__ws_accept(key, accept);
    weft_bytes shown = weft__http_find(&head, "authorization", NULL);
    if (row->token && (shown.len != 13 || memcmp(shown.data, "Bearer secret", 13) != 0))
        _exit(1);
    int n = snprintf(said, sizeof said, row->answer, accept);
    if (write(fd, said, (size_t) n) != n)
        _exit(1);
    shutdown(fd, SHUT_WR);
    while (read(fd, asked, sizeof asked) > 0)
        ;
}

/* The port. The child is collected by run(). */
static int start_server(const exchange *row, pid_t *ret) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(listener, (struct sockaddr *) &address, size), 0);
    CHECK_INT(listen(listener, 1), 0);
    CHECK_INT(getsockname(listener, (struct sockaddr *) &address, &size), 0);
    *ret = fork();
    if (*ret == 0) {
        answer(accept(listener, NULL, NULL), row);
        _exit(0);
    }
    close(listener);
    return ntohs(address.sin_port);
}

static void run(const exchange *row) {
    char url[100];
    weft_trouble trouble = {""};
    pid_t server;
    WEFT_ANSWER answered = {0};
    WEFT_AUTO(weft_peer) peer = NULL;
    snprintf(url, sizeof url, row->url, start_server(row, &server));
    weft_connect_opts opts = {.token = row->token};
    int r = weft_connect_with(url, &opts, &peer, &trouble);
    if (r == 0 && strncmp(url, "http", 4) == 0)
        r = weft_call(peer, "x", weft_none(), &answered);
    CHECK_INT(r, row->want);
    const char *said = peer ? weft_peer_trouble(peer) : trouble.text;
    if (row->trouble)
        CHECK_STR(said, row->trouble);
    else
        CHECK(*said);
    peer = weft_peer_free(peer);
    int status = -1;
    waitpid(server, &status, 0);
    CHECK_INT(status, 0);
}

TEST(answers) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].what);
        run(&rows[i]);
    }
}

/* What is wrong is said before a packet is sent. */
TEST(refuses_to_begin) {
    static const struct {
        const char *url, *token, *trouble;
    } bad[] = {
        {"nonsense", NULL, "a URL begins with one of unix: tcp:// tls:// ws:// wss:// http:// https:// exec: stdio: mem:"},
        {"ws://127.0.0.1:1/", "two words", "a token must not contain spaces or control characters"},
        {"ws://127.0.0.1:1/", "a\r\nX: y", "a token must not contain spaces or control characters"},
        {"http://127.0.0.1:1/a b", NULL, "a URL has no blanks and nothing but ASCII in it; write %20 for a blank"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        weft_trouble trouble = {""};
        weft_peer *peer = NULL;
        weft_connect_opts opts = {.token = bad[i].token};
        test_row(bad[i].url);
        CHECK_INT(weft_connect_with(bad[i].url, &opts, &peer, &trouble), -EINVAL);
        CHECK_STR(trouble.text, bad[i].trouble);
        CHECK(!peer);
    }
}

TEST_MAIN(CASE(answers) CASE(refuses_to_begin))
