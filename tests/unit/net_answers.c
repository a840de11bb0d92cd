/* What routes answer: headers, what a client has already, and answers in parts with their limits. */
#include "net_world.h"

#define HOST "Host: localhost\r\n"
#define BYTES(text) ((weft_bytes){text, sizeof text - 1})

static weft_http_answer_opts next_answer;
static int answered;

static void answer_it(weft_http *http, void *ctx) {
    (void) ctx;
    answered = weft_http_answer_with(http, &next_answer);
}

static world *answer_world(weft_route_handler *handler) {
    world *w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(w->server, "http://127.0.0.1:0/rpc", NULL), 0);
    CHECK_INT(weft_server_route(w->server, "GET", "/it", handler, w), 0);
    CHECK_INT(weft_server_route(w->server, "POST", "/it", handler, w), 0);
    return w;
}

TEST(headers_are_sent) {
    static const weft_header headers[] = {{"Location", "/there"}, {"Set-Cookie", "a=b; Path=/"}, {0}};
    const char *body;
    world *w = answer_world(answer_it);
    next_answer = (weft_http_answer_opts){.status = 303, .type = "text/plain", .headers = headers, .body = BYTES("go")};
    CHECK_INT(world_http(w, 0, &body, "GET /it HTTP/1.1\r\n" HOST "\r\n"), 303);
    HAS(w, "\r\nLocation: /there\r\nSet-Cookie: a=b; Path=/\r\n");
    CHECK_STR(body, "go");
    next_answer = (weft_http_answer_opts){.cache = "no-store", .body = BYTES("x")};
    CHECK_INT(world_http(w, 0, &body, "GET /it HTTP/1.1\r\n" HOST "\r\n"), 200);
    HAS(w, "\r\nCache-Control: no-store\r\n");
    CHECK(strcasestr(w->text, "content-type") == NULL);
    world_free(w);
}

/* Nothing of a bad header reaches the client. */
TEST(bad_headers_are_refused) {
    const struct {
        const char *name;
        weft_http_answer_opts opts;
    } rows[] = {
        {"line break in a value", {.headers = (weft_header[]){{"X", "a\r\nY: b"}, {0}}}},
        {"line break in a name", {.headers = (weft_header[]){{"X\n", "a"}, {0}}}},
        {"blank in a name", {.headers = (weft_header[]){{"X Y", "a"}, {0}}}},
        {"no name", {.headers = (weft_header[]){{"", "a"}, {0}}}},
        {"no value", {.headers = (weft_header[]){{"X", NULL}, {0}}}},
        {"a length", {.headers = (weft_header[]){{"content-LENGTH", "3"}, {0}}}},
        {"a coding", {.headers = (weft_header[]){{"Transfer-Encoding", "chunked"}, {0}}}},
        {"a tag with a quote", {.etag = "a\"b"}},
        {"an empty tag", {.etag = ""}},
        {"a type with a line break", {.type = "text/html\r\nX: y"}},
        {"Cache-Control with a line break", {.cache = "a\nb"}},
        {"a status", {.status = 101}},
    };
    world *w = answer_world(answer_it);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *body;
        test_row(rows[i].name);
        next_answer = rows[i].opts;
        CHECK_INT(world_http(w, 0, &body, "GET /it HTTP/1.1\r\n" HOST "\r\n"), 500);
        CHECK_INT(answered, -EINVAL);
        CHECK_STR(body, "");
    }
    test_row(NULL);
    world_free(w);
}

TEST(what_a_client_has_is_not_sent_again) {
    static const struct {
        const char *name, *method, *shown;
        int status;
    } rows[] = {
        {"nothing", "GET", "", 200},
        {"the same", "GET", "If-None-Match: \"v1\"\r\n", 304},
        {"the same, weak", "GET", "If-None-Match: W/\"v1\"\r\n", 304},
        {"in a list", "GET", "If-None-Match: \"v0\", W/\"v1\"\r\n", 304},
        {"anything", "GET", "If-None-Match: *\r\n", 304},
        {"another", "GET", "If-None-Match: \"v2\"\r\n", 200},
        {"only begins so", "GET", "If-None-Match: \"v11\"\r\n", 200},
        {"without quotes", "GET", "If-None-Match: v1\r\n", 200},
        {"an unclosed quote", "GET", "If-None-Match: \"v1\r\n", 200},
        {"POST", "POST", "If-None-Match: \"v1\"\r\nContent-Length: 0\r\n", 200},
    };
    world *w = answer_world(answer_it);
    next_answer = (weft_http_answer_opts){.type = "text/html", .etag = "v1", .cache = "no-cache", .body = BYTES("page")};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *body;
        test_row(rows[i].name);
        CHECK_INT(world_http(w, 0, &body, "%s /it HTTP/1.1\r\n" HOST "%s\r\n", rows[i].method, rows[i].shown),
                  rows[i].status);
        HAS(w, "\r\nETag: W/\"v1\"\r\nCache-Control: no-cache\r\n");
        CHECK_STR(body, rows[i].status == 304 ? "" : "page");
    }
    test_row("HEAD");
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd,
              "HEAD /it HTTP/1.1\r\n" HOST "\r\nHEAD /it HTTP/1.1\r\n" HOST "If-None-Match: \"v1\"\r\n"
              "Connection: close\r\n\r\n");
    CHECK_INT(world_read_all(w, fd), 0);
    HAS(w, "Content-Length: 4\r\n");
    HAS(w, "\r\n\r\nHTTP/1.1 304 Not Modified\r\n");
    close(fd);
    world_free(w);
}

/* ---- in parts ---- */

static weft_http *streamed;
static int drained, gone;

static void on_drain(weft_http *http, void *ctx) {
    (void) ctx;
    CHECK(http == streamed);
    drained++;
}

static void on_gone(weft_http *http, void *ctx) {
    (void) ctx;
    CHECK(http == streamed);
    gone++;
}

static void begin_it(weft_http *http, void *ctx) {
    (void) ctx;
    static const weft_http_stream stream = {.on_drain = on_drain, .on_gone = on_gone};
    drained = gone = 0;
    streamed = http;
    answered = weft_http_begin(http, &next_answer, &stream);
}

TEST(parts_are_chunks) {
    const char *body;
    world *w = answer_world(begin_it);
    int fd = world_connect_tcp(w, 0);
    next_answer = (weft_http_answer_opts){.type = "text/plain", .body = BYTES("one")};
    world_say(w, fd, "GET /it HTTP/1.1\r\n" HOST "\r\n");
    CHECK(world_read_until(w, fd, "one\r\n"));
    HAS(w, "Transfer-Encoding: chunked\r\n");
    HAS(w, "\r\n\r\n3\r\none\r\n");
    CHECK(strcasestr(w->text, "content-length") == NULL);
    CHECK_INT(weft_http_write(streamed, BYTES("")), 0); /* would be the end of the answer */
    CHECK_INT(weft_http_write(streamed, BYTES("twentytwentytwenty")), 0);
    CHECK(world_read_until(w, fd, "12\r\ntwentytwentytwenty\r\n"));
    /* The next request waits until the answer is complete. */
    world_say(w, fd, "GET /health HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < 3; i++)
        world_wait(w, -1, 0);
    CHECK_INT(gone, 0);
    CHECK_INT(weft_http_end(streamed), 0);
    CHECK(world_read_until(w, fd, "{\"status\":\"ok\"}"));
    CHECK(strncmp(w->text, "0\r\n\r\nHTTP/1.1 200 OK\r\n", 22) == 0);
    close(fd);
    /* What cannot be begun is answered otherwise. */
    next_answer = (weft_http_answer_opts){.status = 204};
    fd = world_connect_tcp(w, 0);
    world_say(w, fd, "GET /it HTTP/1.1\r\n" HOST "\r\n");
    streamed = NULL;
    WORLD_UNTIL(w, streamed != NULL);
    CHECK_INT(answered, -EINVAL);
    CHECK_INT(weft_http_answer(streamed, 204, NULL, (weft_bytes){0}), 0);
    CHECK_INT(world_read_http(w, fd, &body), 204);
    close(fd);
    world_free(w);
}

static int wrong[6];

static void begin_in_a_wrong_order(weft_http *http, void *ctx) {
    int order = *weft_http_query(http) - '0';
    (void) ctx;
    CHECK(weft_http_header(http, NULL) == NULL);
    if (order == 0)
        wrong[0] = weft_http_write(http, BYTES("early"));
    if (order == 1) {
        wrong[1] = weft_http_end(http);
        return;
    }
    if (order == 2) {
        wrong[2] = weft_http_answer_with(http, NULL);
        return;
    }
    CHECK_INT(weft_http_begin(http, NULL, NULL), 0);
    wrong[3] = weft_http_begin(http, NULL, NULL);
    CHECK_INT(weft_http_write(http, BYTES("part")), 0);
    if (order == 3)
        wrong[4] = weft_http_answer(http, 200, "text/plain", BYTES("another"));
    else
        CHECK_INT(weft_http_end(http), 0);
}

/* The client gets one answer that is one, whatever the route does. */
TEST(parts_in_a_wrong_order) {
    static const char end[] = "4\r\npart\r\n0\r\n\r\n";
    world *w = answer_world(begin_in_a_wrong_order);
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd,
              "GET /it?0 HTTP/1.1\r\n" HOST "\r\nGET /it?1 HTTP/1.1\r\n" HOST "\r\nGET /it?2 HTTP/1.1\r\n" HOST
              "\r\nGET /it?3 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK_INT(wrong[0], -EINVAL);
    CHECK_INT(wrong[1], -EINVAL);
    CHECK_INT(wrong[2], 0);
    CHECK_INT(wrong[3], -EALREADY);
    CHECK_INT(wrong[4], -EALREADY);
    HAS(w, "4\r\npart\r\n0\r\n\r\nHTTP/1.1 500 ");
    HAS(w, "\r\n\r\nHTTP/1.1 200 OK\r\n");
    CHECK(strstr(w->text, "early") == NULL && strstr(w->text, "another") == NULL);
    CHECK(w->len > sizeof end && strcmp(w->text + w->len - (sizeof end - 1), end) == 0);
    close(fd);
    world_free(w);
}

TEST(parts_for_old_clients_and_heads) {
    world *w = answer_world(begin_it);
    next_answer = (weft_http_answer_opts){.type = "text/plain", .body = BYTES("one")};
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd, "GET /it HTTP/1.0\r\n" HOST "\r\n");
    CHECK(world_read_until(w, fd, "one"));
    CHECK(strstr(w->text, "chunked") == NULL);
    HAS(w, "Connection: close\r\n");
    CHECK_INT(weft_http_write(streamed, BYTES("two")), 0);
    CHECK_INT(weft_http_end(streamed), 0);
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK_STR(w->text, "two");
    close(fd);
    fd = world_connect_tcp(w, 0);
    world_say(w, fd, "HEAD /it HTTP/1.1\r\n" HOST "\r\n");
    CHECK(world_read_until(w, fd, "\r\n\r\n"));
    CHECK_INT(weft_http_write(streamed, BYTES("two")), 0);
    CHECK_INT(weft_http_end(streamed), 0);
    world_say(w, fd, "GET /health HTTP/1.1\r\n" HOST "\r\n");
    CHECK(world_read_until(w, fd, "ok"));
    CHECK(strncmp(w->text, "HTTP/1.1 200", 12) == 0);
    close(fd);
    world_free(w);
}

/* A client that does not read: the route is asked to wait, then refused; it goes on when there is room. */
TEST(a_slow_reader_is_waited_for) {
    enum { PART = 256 * 1024 };
    static char part[PART];
    world *w = answer_world(begin_it);
    next_answer = (weft_http_answer_opts){.type = "text/plain"};
    int fd = world_connect_tcp(w, 0), r = 0;
    memset(part, 'x', sizeof part);
    world_say(w, fd, "GET /it HTTP/1.1\r\n" HOST "\r\n");
    CHECK(world_read_until(w, fd, "\r\n\r\n"));
    size_t written = 0;
    for (int i = 0; i < 1000 && r == 0; i++) {
        r = weft_http_write(streamed, (weft_bytes){part, PART});
        written += PART;
        world_wait(w, -1, 0);
    }
    CHECK_INT(r, 1);
    CHECK_INT(drained, 0);
    for (int i = 0; i < 1000 && r == 1; i++)
        if ((r = weft_http_write(streamed, (weft_bytes){part, PART})) >= 0)
            written += PART;
    CHECK_INT(r, -ENOBUFS);
    size_t got = 0;
    while (!drained && (w->len = 0, world_more(w, fd) > 0))
        got += w->len;
    CHECK_INT(drained, 1);
    CHECK_INT(weft_http_write(streamed, BYTES("the end")), 0);
    CHECK_INT(weft_http_end(streamed), 0);
    do {
        w->len = 0;
        CHECK(world_more(w, fd) > 0);
        got += w->len;
    } while (!memmem(w->text, w->len, "0\r\n\r\n", 5) && got < written * 2);
    CHECK(got > written && got < written + 4096); /* and the chunks' own lines */
    close(fd);
    world_free(w);
}

TEST(a_client_that_goes_is_told) {
    for (int half = 0; half < 2; half++) {
        world *w = answer_world(begin_it);
        next_answer = (weft_http_answer_opts){.type = "text/event-stream", .body = BYTES("data: 1\n\n")};
        int fd = world_connect_tcp(w, 0);
        test_row(half ? "its half" : "altogether");
        world_say(w, fd, "GET /it HTTP/1.1\r\n" HOST "\r\n");
        CHECK(world_read_until(w, fd, "data: 1\n\n"));
        if (half)
            shutdown(fd, SHUT_WR);
        else
            close(fd);
        WORLD_UNTIL(w, gone == 1);
        CHECK_INT(weft_http_write(streamed, BYTES("data: 2\n\n")), -EPIPE);
        CHECK_INT(weft_http_end(streamed), -EPIPE);
        if (half)
            close(fd);
        world_free(w);
    }
    test_row(NULL);
}

static void on_stopped(weft_server *server, void *ctx) {
    (void) server;
    *(bool *) ctx = true;
}

/* An event stream has no end of its own to wait for; another answer in parts has. */
TEST(a_stop_ends_event_streams) {
    for (int events = 0; events < 2; events++) {
        bool stopped = false;
        world *w = answer_world(begin_it);
        test_row(events ? "events" : "an answer");
        next_answer = (weft_http_answer_opts){.type = events ? "text/event-stream" : "text/plain", .body = BYTES("x")};
        int fd = world_connect_tcp(w, 0);
        world_say(w, fd, "GET /it HTTP/1.1\r\n" HOST "\r\n");
        CHECK(world_read_until(w, fd, "1\r\nx\r\n"));
        weft_server_stop(w->server, on_stopped, &stopped);
        if (events)
            CHECK_INT(gone, 1);
        else
            CHECK_INT(weft_http_write(streamed, BYTES("rest")), 0);
        weft_http_end(streamed);
        CHECK_INT(world_read_all(w, fd), 0);
        CHECK_STR(w->text, events ? "" : "4\r\nrest\r\n0\r\n\r\n");
        close(fd);
        WORLD_UNTIL(w, stopped);
        world_free(w);
    }
    test_row(NULL);
}

/* clang-format off */
TEST_MAIN(
    CASE(headers_are_sent)
    CASE(bad_headers_are_refused)
    CASE(what_a_client_has_is_not_sent_again)
    CASE(parts_are_chunks) CASE(parts_in_a_wrong_order)
    CASE(parts_for_old_clients_and_heads)
    CASE(a_slow_reader_is_waited_for)
    CASE(a_client_that_goes_is_told)
    CASE(a_stop_ends_event_streams)
)
