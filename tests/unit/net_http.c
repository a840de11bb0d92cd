/* The HTTP side of a server over real sockets: every check at its border, order, bodies, routes, events. */
#include "http_events.h"
#include "link.h"
#include "net_world.h"

#define ECHO "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[1]}"
#define ECHOED "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[1]}"
#define JSON "Content-Type: application/json\r\n"
#define HOST "Host: localhost\r\n"

static world *web_world(const weft_server_opts *opts, const weft_limits *limits, const weft_listen_opts *listen_opts) {
    world *w = world_new(opts, limits);
    CHECK_INT(weft_server_listen(w->server, "http://127.0.0.1:0/rpc", listen_opts), 0);
    return w;
}

static void post(world *w, int fd, const char *headers, const char *body) {
    char request[4096];
    snprintf(request, sizeof request, "POST /rpc HTTP/1.1\r\n" HOST "%sContent-Length: %zu\r\n\r\n%s", headers, strlen(body),
             body);
    world_say(w, fd, request);
}

TEST(post_is_answered) {
    static const struct {
        const char *name, *body;
        int status;
        const char *want;
    } rows[] = {
        {"call", ECHO, 200, ECHOED},
        {"notification", "{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}", 204, ""},
        {"batch", "[" ECHO "," ECHO "]", 200, "[" ECHOED "," ECHOED "]"},
        {"batch of notifications", "[{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}]", 204, ""},
        {"error", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nope\"}", 200, "-32601"},
        {"not JSON", "{\"jsonrpc\"", 200, "-32700"},
        {"empty body", "", 200, "-32700"},
    };
    world *w = web_world(NULL, NULL, NULL);
    int fd = world_connect_tcp(w, 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *body;
        test_row(rows[i].name);
        post(w, fd, JSON, rows[i].body);
        CHECK_INT(world_read_http(w, fd, &body), rows[i].status);
        CHECK(strstr(body, rows[i].want) != NULL);
        CHECK(strcasestr(w->text, "content-length") != NULL || rows[i].status == 204);
    }
    test_row(NULL);
    CHECK_INT(w->opened, 0); /* such a caller is no client to be told things */
    close(fd);
    world_free(w);
}

TEST(refusals) {
    static const struct {
        const char *name, *request;
        int status;
        const char *has; /* in the answer */
        bool closes;
    } rows[] = {
        {"health", "GET /health HTTP/1.1\r\n" HOST "\r\n", 200, "{\"status\":\"ok\"}", false},
        {"health by HEAD", "HEAD /health HTTP/1.1\r\n" HOST "\r\n", 200, "Content-Length: 15\r\n", false},
        {"health by POST", "POST /health HTTP/1.1\r\n" HOST "\r\n", 405, "Allow: GET, HEAD\r\n", false},
        {"no such path", "GET /no HTTP/1.1\r\n" HOST "\r\n", 404, "notFound", false},
        {"DELETE", "DELETE /rpc HTTP/1.1\r\n" HOST "\r\n", 405, "Allow: GET, POST, OPTIONS\r\n", false},
        {"GET without event-stream", "GET /rpc HTTP/1.1\r\n" HOST "\r\n", 406, "onlyEventStream", false},
        {"no content type", "POST /rpc HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n{}", 415, "notJson", true},
        {"form", "POST /rpc HTTP/1.1\r\n" HOST "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415, "notJson",
         true},
        {"json with parameters",
         "POST /rpc HTTP/1.1\r\n" HOST "Content-Type: Application/JSON; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}", 200,
         "-32600", false},
        {"json-rpc", "POST /rpc HTTP/1.1\r\n" HOST "Content-Type: application/json-rpc\r\nContent-Length: 2\r\n\r\n{}", 200,
         "-32600", false},
        {"no host", "GET /health HTTP/1.1\r\n\r\n", 400, "", true},
        {"two hosts", "GET /health HTTP/1.1\r\n" HOST HOST "\r\n", 400, "", true},
        {"another's host", "GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, "hostNotServed", true},
        {"loopback with any port", "GET /health HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", 200, "ok", false},
        {"IPv6 loopback", "GET /health HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200, "ok", false},
        {"host that only begins right", "GET /health HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 421, "", true},
        {"another's origin", "GET /health HTTP/1.1\r\n" HOST "Origin: http://evil.example\r\n\r\n", 403, "originNotAllowed",
         true},
        {"null origin", "GET /health HTTP/1.1\r\n" HOST "Origin: null\r\n\r\n", 403, "originNotAllowed", true},
        {"own origin", "GET /health HTTP/1.1\r\n" HOST "Origin: http://localhost\r\n\r\n", 200,
         "Access-Control-Allow-Origin: http://localhost\r\n", false},
        {"own origin, other scheme", "GET /health HTTP/1.1\r\n" HOST "Origin: https://localhost\r\n\r\n", 403, "", true},
        {"preflight",
         "OPTIONS /rpc HTTP/1.1\r\n" HOST "Origin: http://localhost\r\nAccess-Control-Request-Method: POST\r\n\r\n", 204,
         "Access-Control-Allow-Methods: GET, POST, DELETE\r\nAccess-Control-Allow-Headers: authorization, *\r\n", false},
        {"preflight from elsewhere",
         "OPTIONS /rpc HTTP/1.1\r\n" HOST "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n\r\n", 403,
         "", true},
        {"OPTIONS", "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 204, "Allow: ", false},
        {"garbage", "\x16\x03\x01 hello\r\n\r\n", 400, "badRequest", true},
        {"bare LF", "GET /health HTTP/1.1\nHost: localhost\n\n", 400, "", true},
        {"folded header", "GET /health HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", 400, "", true},
        {"HTTP/2.0", "GET /health HTTP/2.0\r\n" HOST "\r\n", 505, "", true},
        {"unknown transfer coding", "POST /rpc HTTP/1.1\r\n" HOST JSON "Transfer-Encoding: gzip\r\n\r\n", 501, "", true},
        {"both lengths", "POST /rpc HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400,
         "", true},
        {"unknown expectation", "POST /rpc HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\nExpect: magic\r\n\r\n{}", 417, "",
         true},
        {"HTTP/1.0 closes", "GET /health HTTP/1.0\r\n" HOST "\r\n", 200, "Connection: close\r\n", true},
        {"asked to close", "GET /health HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 200, "Connection: close\r\n", true},
        {"query is no path", "GET /health?x=/no HTTP/1.1\r\n" HOST "\r\n", 200, "ok", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *body;
        world *w = web_world(NULL, NULL, NULL);
        test_row(rows[i].name);
        int fd = world_connect_tcp(w, 0);
        world_say(w, fd, rows[i].request);
        if (strncmp(rows[i].request, "HEAD", 4) == 0)
            CHECK(world_read_until(w, fd, "\r\n\r\n"));
        else
            CHECK_INT(world_read_http(w, fd, &body), rows[i].status);
        HAS(w, rows[i].has);
        /* Open means: the next request is answered. */
        world_say(w, fd, "GET /health HTTP/1.1\r\n" HOST "\r\n");
        if (rows[i].closes)
            CHECK_INT(world_read_all(w, fd), 0);
        else
            CHECK_INT(world_read_http(w, fd, &body), 200);
        close(fd);
        world_free(w);
    }
    test_row(NULL);
}

TEST(listed_hosts_and_origins) {
    static const char *const hosts[] = {"weft.example", NULL}, *const origins[] = {"https://app.example", NULL};
    const char *body;
    world *w = web_world(NULL, NULL, &(weft_listen_opts){.hosts = hosts, .origins = origins});
    CHECK_INT(world_http(w, 0, &body, "GET /health HTTP/1.1\r\nHost: Weft.example:99\r\n\r\n"), 200);
    CHECK_INT(world_http(w, 0, &body, "GET /health HTTP/1.1\r\nHost: x.weft.example\r\n\r\n"), 421);
    CHECK_INT(world_http(w, 0, &body, "GET /health HTTP/1.1\r\n" HOST "Origin: https://app.example\r\n\r\n"), 200);
    HAS(w, "Vary: Origin\r\nAccess-Control-Expose-Headers: *\r\nAccess-Control-Allow-Origin: https://app.example\r\n");
    CHECK_INT(world_http(w, 0, &body, "GET /health HTTP/1.1\r\n" HOST "Origin: https://app.example:444\r\n\r\n"), 403);
    world_free(w);
}

TEST(head_limits) {
    const char *body;
    char *big = malloc(20000);
    for (int over = 0; over < 2; over++) {
        world *w = web_world(NULL, NULL, NULL);
        int fd = world_connect_tcp(w, 0), n = sprintf(big, "GET /health HTTP/1.1\r\n" HOST "X: ");
        test_row(over ? "one byte too long" : "16 KiB");
        memset(big + n, 'x', 20000 - (size_t) n);
        strcpy(big + 16 * 1024 - 4 + over, "\r\n\r\n");
        world_say(w, fd, big);
        CHECK_INT(world_read_http(w, fd, &body), over ? 431 : 200);
        close(fd);
        world_free(w);
    }
    for (int count = 100; count <= 101; count++) {
        world *w = web_world(NULL, NULL, NULL);
        int fd = world_connect_tcp(w, 0), n = sprintf(big, "GET /health HTTP/1.1\r\n" HOST);
        test_row(count == 100 ? "100 headers" : "101 headers");
        for (int i = 1; i < count; i++)
            n += sprintf(big + n, "X: y\r\n");
        strcpy(big + n, "\r\n");
        world_say(w, fd, big);
        CHECK_INT(world_read_http(w, fd, &body), count == 100 ? 200 : 431);
        close(fd);
        world_free(w);
    }
    test_row(NULL);
    free(big);
}

TEST(slow_heads_and_bodies_end) {
    const char *body;
    world *w = web_world(&(weft_server_opts){.head_ms = 30}, NULL, NULL);
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd, "GET /health HT");
    CHECK_INT(world_read_http(w, fd, &body), 408);
    CHECK_INT(world_read_all(w, fd), 0);
    close(fd);
    fd = world_connect_tcp(w, 0); /* nothing at all: closed without a word */
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK_INT(w->len, 0);
    close(fd);
    world_free(w);
}

TEST(body_limit) {
    weft_limits limits = {.max_body = 100};
    for (int chunked = 0; chunked < 2; chunked++)
        for (size_t len = 100; len <= 101; len++) {
            char text[300], row[40];
            const char *answer;
            world *w = web_world(NULL, &limits, NULL);
            int fd = world_connect_tcp(w, 0);
            snprintf(row, sizeof row, "%s %zu", chunked ? "chunked" : "sized", len);
            test_row(row);
            snprintf(text, sizeof text, "POST /rpc HTTP/1.1\r\n" HOST JSON "%s\r\n\r\n",
                     chunked      ? "Transfer-Encoding: chunked"
                     : len == 100 ? "Content-Length: 100"
                                  : "Content-Length: 101");
            world_say(w, fd, text);
            snprintf(text, sizeof text, chunked ? "%zx\r\n" ECHO "%*s\r\n0\r\n\r\n" : "%.0zu" ECHO "%*s", len,
                     (int) (len - strlen(ECHO)), "");
            const char *start = chunked ? text : strchr(text, '{');
            world_say(w, fd, start);
            CHECK_INT(world_read_http(w, fd, &answer), len == 100 ? 200 : 413);
            CHECK(len == 100 || strstr(answer, "\"tooLarge\"") != NULL);
            close(fd);
            world_free(w);
        }
    test_row(NULL);
}

TEST(chunked_bytes_one_at_a_time) {
    const char *body;
    world *w = web_world(NULL, NULL, NULL);
    int fd = world_connect_tcp(w, 0);
    const char *request =
        "POST /rpc HTTP/1.1\r\n" HOST JSON "Transfer-Encoding: chunked\r\n\r\n"
        "a\r\n{\"jsonrpc\"\r\n2b;x=y\r\n:\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[1]}\r\n0\r\nT: x\r\n\r\n";
    for (const char *at = request; *at; at++) {
        world_send(w, fd, at, 1);
        world_wait(w, -1, 0);
    }
    CHECK_INT(world_read_http(w, fd, &body), 200);
    CHECK_STR(body, ECHOED);
    close(fd);
    world_free(w);
}

/* A body may have no bytes, and a broken one may be cut anywhere; the server lives on and says what it should. */
TEST(chunked_bodies_at_the_border) {
    static const struct {
        const char *name, *chunks;
        int status;
        const char *has;
        bool closes;
    } rows[] = {
        {"empty", "0\r\n\r\n", 200, "-32700", false},
        {"empty with a trailer", "0\r\nT: x\r\n\r\n", 200, "-32700", false},
        {"one byte", "1\r\n7\r\n0\r\n\r\n", 200, "-32600", false},
        {"no size", "\r\n", 400, "badRequest", true},
        {"not a size", "x\r\n", 400, "badRequest", true},
        {"broken behind a chunk", "2\r\n{}x\r\n0\r\n\r\n", 400, "badRequest", true},
        {"broken end", "2\r\n{}\r\n0\r\n\r ", 400, "badRequest", true},
        {"a size beyond all numbers", "ffffffffffffffffff\r\n", 400, "badRequest", true},
    };
    world *w = web_world(NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int cut = 0; cut < 2; cut++) {
            const char *body;
            int fd = world_connect_tcp(w, 0);
            test_row(rows[i].name);
            world_say(w, fd, "POST /rpc HTTP/1.1\r\n" HOST JSON "Transfer-Encoding: chunked\r\n\r\n");
            for (const char *at = rows[i].chunks; cut && *at; at++) {
                world_send(w, fd, at, 1);
                world_wait(w, -1, 0);
            }
            if (!cut)
                world_say(w, fd, rows[i].chunks);
            CHECK_INT(world_read_http(w, fd, &body), rows[i].status);
            CHECK(strstr(body, rows[i].has) != NULL);
            if (!rows[i].closes)
                world_say(w, fd, "GET /health HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
            CHECK_INT(world_read_all(w, fd), 0);
            CHECK((strstr(w->text, "{\"status\":\"ok\"}") != NULL) == !rows[i].closes);
            close(fd);
        }
    test_row(NULL);
    world_free(w);
}

TEST(large_body_in_pieces) {
    const char *body;
    size_t len = 300000;
    char head[200], *text = malloc(len + 100);
    world *w = web_world(NULL, NULL, NULL);
    int n = sprintf(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[\"");
    memset(text + n, 'y', len - (size_t) n);
    strcpy(text + len, "\"]}");
    int fd = world_connect_tcp(w, 0);
    snprintf(head, sizeof head, "POST /rpc HTTP/1.1\r\n" HOST JSON "Content-Length: %zu\r\n\r\n", strlen(text));
    world_say(w, fd, head);
    world_say(w, fd, text);
    CHECK_INT(world_read_http(w, fd, &body), 200);
    CHECK(w->len > len);
    free(text);
    close(fd);
    world_free(w);
}

static void hello(weft_http *http, void *ctx) {
    char text[300];
    world *w = ctx;
    weft_bytes body = weft_http_body(http);
    const char *header = weft_http_header(http, "x-thing");
    int n = snprintf(text, sizeof text, "%s %s ? %s [%s] %.*s %d", weft_http_method(http), weft_http_path(http),
                     weft_http_query(http), header ? header : "", (int) body.len, body.data,
                     weft_http_identity(http)->authenticated);
    CHECK(weft_http_header(http, "none") == NULL);
    w->opened = 100;
    CHECK_INT(weft_http_answer(http, 201, "text/plain", (weft_bytes){text, (size_t) n}), 0);
}

static weft_http *kept_http;

static void keep_http(weft_http *http, void *ctx) {
    (void) ctx;
    kept_http = http;
}

/* Wherever HEAD is asked, its answer has no body, whatever it says of one: the next answer follows it at once. */
TEST(head_everywhere) {
    static const struct {
        const char *name, *target, *headers;
        int status;
        bool closes;
    } rows[] = {
        {"health", "/health", "", 200, false},
        {"a route", "/it", "", 200, false},
        {"a route of POST", "/form", "", 405, false},
        {"messages", "/rpc", "", 405, false},
        {"events", "/rpc", "Accept: text/event-stream\r\n", 405, false},
        {"a WebSocket", "/ws", "Upgrade: websocket\r\nConnection: upgrade\r\n", 405, false},
        {"nothing", "/no", "", 404, false},
        {"an origin that is not ours", "/health", "Origin: https://evil.example\r\n", 403, true},
    };
    world *w = web_world(NULL, NULL, NULL);
    char url[64];
    snprintf(url, sizeof url, "ws://127.0.0.1:%d/ws", world_port(w, 0));
    CHECK_INT(weft_server_listen(w->server, url, NULL), 0);
    CHECK_INT(weft_server_route(w->server, "GET", "/it", hello, w), 0);
    CHECK_INT(weft_server_route(w->server, "POST", "/form", hello, w), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char request[400];
        int fd = world_connect_tcp(w, 0);
        test_row(rows[i].name);
        snprintf(request, sizeof request,
                 "HEAD %s HTTP/1.1\r\n" HOST "%s\r\nGET /health HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
                 rows[i].target, rows[i].headers);
        world_say(w, fd, request);
        CHECK_INT(world_read_all(w, fd), 0);
        int status = atoi(w->text + 9);
        CHECK(status == rows[i].status || (rows[i].status == 200 && status == 201));
        const char *end = strstr(w->text, "\r\n\r\n");
        CHECK(end && (rows[i].closes ? end[4] == '\0' : strncmp(end + 4, "HTTP/1.1 200 OK\r\n", 17) == 0));
        close(fd);
    }
    test_row(NULL);
    world_free(w);
}

TEST(expectations) {
    static const struct {
        const char *name, *head;
        int status;
    } rows[] = {
        {"something else", "POST /rpc HTTP/1.1\r\n" HOST JSON "Expect: miracles\r\nContent-Length: 2\r\n\r\n", 417},
        {"too much to come", "POST /rpc HTTP/1.1\r\n" HOST JSON "Expect: 100-continue\r\nContent-Length: 999999999\r\n\r\n",
         413},
        {"not JSON", "POST /rpc HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n", 415},
        {"chunks", "POST /rpc HTTP/1.1\r\n" HOST JSON "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n", 100},
        {"nothing to come", "POST /rpc HTTP/1.1\r\n" HOST JSON "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n", 200},
        {"events with a body", "GET /rpc HTTP/1.1\r\n" HOST "Accept: text/event-stream\r\nContent-Length: 5\r\n\r\nhello",
         400},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *body;
        world *w = web_world(NULL, NULL, NULL);
        test_row(rows[i].name);
        int fd = world_connect_tcp(w, 0);
        world_say(w, fd, rows[i].head);
        CHECK_INT(world_read_http(w, fd, &body), rows[i].status);
        close(fd);
        world_free(w);
    }
    test_row(NULL);
}

TEST(expect_100_continue) {
    const char *body;
    world *w = web_world(NULL, NULL, NULL);
    int fd = world_connect_tcp(w, 0);
    char head[300];
    snprintf(head, sizeof head, "POST /rpc HTTP/1.1\r\n" HOST JSON "Expect: 100-continue\r\nContent-Length: %zu\r\n\r\n",
             strlen(ECHO));
    world_say(w, fd, head);
    CHECK(world_read_until(w, fd, "\r\n\r\n"));
    CHECK_STR(w->text, "HTTP/1.1 100 Continue\r\n\r\n");
    world_say(w, fd, ECHO);
    CHECK_INT(world_read_http(w, fd, &body), 200);
    close(fd);
    world_free(w);
}

/* Answers come in the order of the requests, also when the first takes its time. */
TEST(pipelining_keeps_order) {
    world *w = web_world(NULL, NULL, NULL);
    int fd = world_connect_tcp(w, 0);
    post(w, fd, JSON, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"keep\"}");
    post(w, fd, JSON, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\"}");
    world_say(w, fd, "GET /health HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    WORLD_UNTIL(w, w->kept != NULL);
    for (int i = 0; i < 5; i++)
        world_wait(w, -1, 0);
    weft_reply(w->kept, weft_str("first"));
    w->kept = NULL;
    CHECK_INT(world_read_all(w, fd), 0);
    const char *first = strstr(w->text, "\"first\""), *second = strstr(w->text, "\"id\":2"), *third = strstr(w->text, "ok");
    CHECK(first && second && third && first < second && second < third);
    close(fd);
    world_free(w);
}

TEST(half_closed_post_is_answered) {
    world *w = web_world(NULL, NULL, NULL);
    int fd = world_connect_tcp(w, 0);
    post(w, fd, JSON, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"keep\"}");
    shutdown(fd, SHUT_WR);
    WORLD_UNTIL(w, w->kept != NULL);
    world_wait(w, -1, 0);
    weft_reply(w->kept, weft_str("late"));
    w->kept = NULL;
    CHECK_INT(world_read_all(w, fd), 0);
    HAS(w, "\"late\"");
    close(fd);
    world_free(w);
}

TEST(stop_answers_what_is_open) {
    world *w = web_world(NULL, NULL, NULL);
    int busy = world_connect_tcp(w, 0), idle = world_connect_tcp(w, 0);
    post(w, busy, JSON, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"keep\"}");
    WORLD_UNTIL(w, w->kept != NULL);
    weft_server_stop(w->server, NULL, NULL);
    CHECK_INT(world_read_all(w, idle), 0);
    weft_reply(w->kept, weft_str("last"));
    w->kept = NULL;
    CHECK_INT(world_read_all(w, busy), 0);
    HAS(w, "Connection: close");
    HAS(w, "\"last\"");
    close(busy);
    close(idle);
    world_free(w);
}

TEST(post_of_a_client_that_vanishes) {
    world *w = web_world(NULL, NULL, NULL);
    int fd = world_connect_tcp(w, 0);
    struct linger hard = {.l_onoff = 1};
    post(w, fd, JSON, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"keep\"}");
    WORLD_UNTIL(w, w->kept != NULL);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd); /* a reset */
    WORLD_UNTIL(w, w->cancelled == -EPIPE);
    world_free(w);
}

TEST(bye_in_a_post) {
    world *w = web_world(NULL, NULL, NULL);
    int fd = world_connect_tcp(w, 0);
    post(w, fd, JSON, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"bye\"}");
    CHECK_INT(world_read_all(w, fd), 0);
    close(fd);
    fd = world_connect_tcp(w, 0);
    post(w, fd, JSON, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"end\"}");
    world_read_all(w, fd);
    CHECK(w->server == NULL);
    close(fd);
    world_free(w);
}

/* ---- tokens ---- */

static const weft_token tokens[] = {{"s3cret", "ann", "admin"}, {"other", "bob", "read"}, {0}};

TEST(token_ways) {
    static const struct {
        const char *name, *target, *header;
        int status;
        const char *has;
    } rows[] = {
        {"none", "/rpc", "", 401, "WWW-Authenticate: Bearer realm=\"weft\"\r\n"},
        {"wrong", "/rpc", "Authorization: Bearer nope\r\n", 401, "error=\"invalid_token\""},
        {"almost", "/rpc", "Authorization: Bearer s3cre\r\n", 401, "invalid_token"},
        {"not bearer", "/rpc", "Authorization: Basic s3cret\r\n", 401, ""},
        {"bearer", "/rpc", "Authorization: Bearer s3cret\r\n", 200, "\"name\":\"ann\",\"scopes\":\"admin\""},
        {"bearer, any case", "/rpc", "authorization: bearer s3cret\r\n", 200, "\"name\":\"ann\""},
        {"another's", "/rpc", "Authorization: Bearer other\r\n", 200, "\"name\":\"bob\",\"scopes\":\"read\""},
        {"query", "/rpc?a=b&token=s3cret", "", 200, "\"authenticated\":true"},
        {"query, wrong", "/rpc?token=", "", 401, ""},
        {"unknown path tells nothing", "/no", "", 401, ""},
    };
    world *w = web_world(NULL, NULL, &(weft_listen_opts){.tokens = tokens});
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *body;
        test_row(rows[i].name);
        CHECK_INT(world_http(w, 0, &body,
                             "POST %s HTTP/1.1\r\n" HOST JSON
                             "%sContent-Length: 39\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"who\"}",
                             rows[i].target, rows[i].header),
                  rows[i].status);
        HAS(w, rows[i].has);
    }
    test_row("health needs none");
    const char *body;
    CHECK_INT(world_http(w, 0, &body, "GET /health HTTP/1.1\r\n" HOST "\r\n"), 200);
    test_row(NULL);
    world_free(w);
}

TEST(wrong_tokens_are_braked) {
    const char *body;
    static const char wrong[] = "GET /rpc HTTP/1.1\r\n" HOST "Authorization: Bearer x\r\n\r\n";
    world *w = web_world(NULL, NULL, &(weft_listen_opts){.tokens = tokens});
    for (int i = 0; i < 10; i++)
        CHECK_INT(world_http(w, 0, &body, wrong), 401);
    CHECK_INT(world_http(w, 0, &body, wrong), 429);
    HAS(w, "Retry-After: ");
    CHECK_INT(world_http(w, 0, &body, "GET /health HTTP/1.1\r\n" HOST "\r\n"), 200);
    /* A right one never is: the guesser may be somebody else behind the same address. */
    CHECK_INT(world_http(w, 0, &body, "GET /rpc?token=s3cret HTTP/1.1\r\n" HOST "\r\n"), 406);
    world_free(w);
}

/* A page can make the browser ask here with any token in the URL: what it does is not counted as the user's. */
TEST(pages_do_not_brake_the_user) {
    const char *body;
    world *w = web_world(NULL, NULL, &(weft_listen_opts){.tokens = tokens});
    for (int i = 0; i < 12; i++)
        CHECK_INT(world_http(w, 0, &body, "GET /rpc?token=x%d HTTP/1.1\r\n" HOST "Sec-Fetch-Site: cross-site\r\n\r\n", i),
                  i < 10 ? 401 : 429);
    for (int i = 0; i < 12; i++)
        CHECK_INT(world_http(w, 0, &body, "GET /rpc HTTP/1.1\r\n" HOST "\r\n"), 401); /* none at all is no guess */
    CHECK_INT(world_http(w, 0, &body, "GET /rpc?token=old HTTP/1.1\r\n" HOST "\r\n"), 401);
    CHECK_INT(world_http(w, 0, &body, "GET /rpc?token=s3cret HTTP/1.1\r\n" HOST "Sec-Fetch-Site: cross-site\r\n\r\n"), 406);
    world_free(w);
}

/* ---- routes ---- */

TEST(routes) {
    const char *body;
    world *w = web_world(NULL, NULL, &(weft_listen_opts){.tokens = tokens});
    CHECK_INT(weft_server_route(w->server, "GET", "/hello", hello, w), 0);
    CHECK_INT(weft_server_route(w->server, "POST", "/hello", hello, w), 0);
    CHECK_INT(weft_server_route(w->server, "GET", "/files/*", hello, w), 0);
    CHECK_INT(weft_server_route(w->server, "GET", "/later", keep_http, w), 0);
    CHECK_INT(weft_server_public(w->server, "/files/*"), 0);
    CHECK_INT(world_http(w, 0, &body, "GET /hello?a=1&token=other HTTP/1.1\r\n" HOST "X-Thing:  v \r\n\r\n"), 201);
    CHECK_STR(body, "GET /hello ? a=1 [v]  1");
    CHECK_INT(world_http(w, 0, &body, "POST /hello?token=other HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody"), 201);
    CHECK_STR(body, "POST /hello ?  [] body 1");
    CHECK_INT(world_http(w, 0, &body, "PUT /hello?token=other HTTP/1.1\r\n" HOST "\r\n"), 405);
    HAS(w, "Allow: ");
    CHECK_INT(world_http(w, 0, &body, "GET /hello HTTP/1.1\r\n" HOST "\r\n"), 401);
    CHECK_INT(world_http(w, 0, &body, "GET /files/a/b HTTP/1.1\r\n" HOST "\r\n"), 201);
    CHECK_STR(body, "GET /files/a/b ?  []  0");
    /* Answered later; and never, because the client has gone. */
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd, "GET /later?token=other HTTP/1.1\r\n" HOST "\r\n");
    WORLD_UNTIL(w, kept_http != NULL);
    CHECK_INT(weft_http_answer(kept_http, 200, NULL, (weft_bytes){0}), 0);
    CHECK_INT(world_read_http(w, fd, &body), 200);
    kept_http = NULL;
    world_say(w, fd, "GET /later?token=other HTTP/1.1\r\n" HOST "\r\n");
    WORLD_UNTIL(w, kept_http != NULL);
    w->server = weft_server_free(w->server);
    CHECK_INT(weft_http_answer(kept_http, 200, NULL, (weft_bytes){0}), -EPIPE);
    close(fd);
    world_free(w);
}

/* ---- server-sent events ---- */

TEST(events) {
    world *w = web_world(NULL, NULL, NULL);
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd, "GET /rpc HTTP/1.1\r\n" HOST "Accept: text/event-stream\r\n\r\n");
    CHECK(world_read_until(w, fd, "\r\n\r\n"));
    HAS(w, "Content-Type: text/event-stream\r\n");
    CHECK_INT(w->opened, 1);
    CHECK_INT(weft_server_broadcast(w->server, "news", weft_none(), NULL, NULL), 1);
    world_read_until(w, fd, "\n\n");
    CHECK_STR(w->text, "data: {\"jsonrpc\":\"2.0\",\"method\":\"news\"}\n\n");
    CHECK_INT(weft_notify(w->last_peer, "you", weft_none()), 0);
    world_read_until(w, fd, "\n\n");
    CHECK_STR(w->text, "data: {\"jsonrpc\":\"2.0\",\"method\":\"you\"}\n\n");
    close(fd);
    WORLD_UNTIL(w, w->closed == 1);
    world_free(w);
}

static int streams_began;

static void stream_it(weft_http *http, void *ctx) {
    weft_peer *peer = NULL;
    world *w = ctx;
    bool ends = strcmp(weft_http_query(http), "end") == 0;
    int r = weft__http_events(http, "mine", &peer);
    CHECK_INT(r, 0);
    CHECK(peer == w->last_peer); /* on_open has run */
    CHECK_INT(weft__peer_put(peer, "id: 7\n", 6), 0);
    CHECK_INT(weft_notify(peer, "first", weft_none()), 0);
    streams_began++;
    if (ends)
        weft_peer_free(peer);
}

/* A route may answer with a stream of its own. What the client sends behind its request is nobody's. */
TEST(a_route_of_events) {
    world *w = web_world(NULL, NULL, NULL);
    CHECK_INT(weft_server_route(w->server, "GET", "/stream", stream_it, w), 0);
    streams_began = 0;
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd, "GET /stream HTTP/1.1\r\n" HOST "\r\nGET /stream HTTP/1.1\r\n" HOST "\r\n");
    CHECK(world_read_until(w, fd, "\n\n"));
    HAS(w, "Content-Type: text/event-stream\r\n");
    HAS(w, "\r\n\r\nid: 7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"first\"}\n\n");
    CHECK_INT(weft_notify(w->last_peer, "second", weft_none()), 0);
    world_read_until(w, fd, "\n\n");
    CHECK_STR(w->text, "data: {\"jsonrpc\":\"2.0\",\"method\":\"second\"}\n\n");
    CHECK_INT(w->opened, 1);
    CHECK_INT(streams_began, 1);
    close(fd);
    WORLD_UNTIL(w, w->closed == 1);
    /* The handler ends it at once: what it said is still sent. */
    fd = world_connect_tcp(w, 0);
    world_say(w, fd, "GET /stream?end HTTP/1.1\r\n" HOST "\r\n");
    CHECK(world_read_until(w, fd, "\n\n"));
    HAS(w, "\"first\"");
    WORLD_UNTIL(w, w->closed == 2);
    close(fd);
    world_free(w);
}

TEST(many_endpoints_one_port) {
    char url[100];
    const char *body;
    world *w = web_world(NULL, NULL, NULL);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/two", world_port(w, 0));
    CHECK_INT(weft_server_listen(w->server, url, &(weft_listen_opts){.dialect = "second"}), 0);
    CHECK_INT(weft_server_listen(w->server, url, NULL), -EADDRINUSE);
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", world_port(w, 0));
    CHECK_INT(weft_server_listen(w->server, url, NULL), -EADDRINUSE);
    snprintf(url, sizeof url, "https://127.0.0.1:%d/x", world_port(w, 0));
    CHECK(weft_server_listen(w->server, url, NULL) < 0);
    CHECK_INT(world_http(w, 0, &body,
                         "POST /two HTTP/1.1\r\n" HOST JSON
                         "Content-Length: 39\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"who\"}"),
              200);
    HAS(w, "\"dialect\":\"second\"");
    CHECK(weft_server_url(w->server, 2) == NULL);
    world_free(w);
}

/* clang-format off */
TEST_MAIN(
    CASE(post_is_answered)
    CASE(refusals)
    CASE(listed_hosts_and_origins)
    CASE(head_limits)
    CASE(slow_heads_and_bodies_end)
    CASE(body_limit)
    CASE(chunked_bytes_one_at_a_time)
    CASE(chunked_bodies_at_the_border)
    CASE(large_body_in_pieces)
    CASE(head_everywhere)
    CASE(expectations)
    CASE(expect_100_continue)
    CASE(pipelining_keeps_order)
    CASE(half_closed_post_is_answered)
    CASE(stop_answers_what_is_open)
    CASE(post_of_a_client_that_vanishes)
    CASE(bye_in_a_post)
    CASE(token_ways)
    CASE(wrong_tokens_are_braked)
    CASE(pages_do_not_brake_the_user)
    CASE(routes)
    CASE(events)
    CASE(a_route_of_events)
    CASE(many_endpoints_one_port)
)
