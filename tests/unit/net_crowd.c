/* Many at once: who gets a place, who has to go, how long a request may take, how much memory all of them hold. */
#include "net_world.h"

#include <sys/resource.h>

#include "http_server.h"
#include "server.h"

#define JSON "Content-Type: application/json\r\n"
#define HOST "Host: localhost\r\n"
#define BEARER "Authorization: Bearer s3cret\r\n"
#define LINE "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n"
#define POST_WITH(headers) "POST /rpc HTTP/1.1\r\n" HOST JSON headers "Content-Length: 2\r\n\r\n{}"

static const weft_token tokens[] = {{"s3cret", "ann", NULL}, {0}};
static const weft_listen_opts guarded = {.tokens = tokens};

static world *crowd_world(const weft_server_opts *opts, const char *url) {
    world *w = world_new(opts, NULL);
    char path[100];
    CHECK_INT(weft_server_listen(w->server, url, &guarded), 0);
    snprintf(path, sizeof path, "unix:%s/s", w->folder);
    CHECK_INT(weft_server_listen(w->server, path, NULL), 0);
    return w;
}

static int connect_owner(const world *w) {
    char path[100];
    snprintf(path, sizeof path, "%s/s", w->folder);
    return world_connect_unix(path);
}

static void check_unix_serves(world *w) {
    int fd = connect_owner(w);
    world_say(w, fd, LINE);
    world_read_lines(w, fd, 1);
    CHECK_STR(w->text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
    close(fd);
}

/* Connect so many strangers who say the beginning of something and then nothing; each is accepted before the next comes. */
static void connect_strangers(world *w, int *fds, size_t count, const char *text) {
    for (size_t i = 0; i < count; i++) {
        fds[i] = world_connect_tcp(w, 0);
        world_say(w, fds[i], text);
        world_wait(w, -1, 0); /* a connection that is there is accepted in one turn, */
        world_wait(w, -1, 0); /* and what it says is read in the next */
    }
}

static void close_all(const int *fds, size_t count) {
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

#define STRANGERS 40

/* ---- places ---- */

/* Far more strangers than places at one address: whoever has a token still gets in from there, and the socket of the owner
 * is never affected. */
TEST(strangers_cannot_shut_out_the_owner) {
    static const char *const texts[] = {
        "",
        "GET /hea",
        "GET /health HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nx",
        "GET /health HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nx",
        "GET /health HTTP/1.1\r\n" HOST "\r\n",
        "POST /open HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nx",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int fds[STRANGERS];
        const char *body;
        world *w = crowd_world(&(weft_server_opts){.max_connections = 20, .max_strangers_per_address = 2},
                               "http://127.0.0.1:0/rpc");
        test_row(texts[i]);
        CHECK_INT(weft_server_public(w->server, "/open"), 0);
        connect_strangers(w, fds, STRANGERS, texts[i]);
        CHECK(w->server->stranger_count <= 8);
        CHECK_INT(world_http(w, 0, &body, POST_WITH(BEARER)), 200);
        check_unix_serves(w);
        close_all(fds, STRANGERS);
        world_free(w);
    }
    test_row(NULL);
}

TEST(strangers_have_few_places_in_all) {
    int fds[STRANGERS];
    const char *body;
    weft_server_opts opts = {.max_connections = 30, .max_strangers = 5, .max_strangers_per_address = 1000};
    world *w = crowd_world(&opts, "http://127.0.0.1:0/rpc");
    connect_strangers(w, fds, STRANGERS, "GET /hea");
    CHECK_INT((int64_t) w->server->stranger_count, 5);
    CHECK_INT(w->notes, 1); /* a stranger does not fill the log */
    CHECK_INT(world_read_all(w, fds[0]), 0);
    CHECK_INT(world_http(w, 0, &body, POST_WITH(BEARER)), 200);
    check_unix_serves(w);
    close_all(fds, STRANGERS);
    world_free(w);
}

static int connect_known(world *w) {
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"weft.auth\",\"params\":{\"token\":\"s3cret\"}}\n");
    world_read_lines(w, fd, 1);
    HAS(w, "\"result\"");
    return fd;
}

/* Who has shown a token stays, whoever comes; when all places are taken by such clients the next is refused. */
TEST(known_clients_keep_their_places) {
    int known[4], fds[STRANGERS];
    world *w = crowd_world(&(weft_server_opts){.max_connections = 4}, "tcp://127.0.0.1:0");
    CHECK_INT((int64_t) w->server->opts.max_strangers, 2);
    for (size_t i = 0; i < 3; i++)
        known[i] = connect_known(w);
    connect_strangers(w, fds, STRANGERS, "");
    CHECK_INT((int64_t) w->server->network_count, 4);
    known[3] = connect_known(w);
    for (size_t i = 0; i < 4; i++) {
        world_say(w, known[i], LINE);
        world_read_lines(w, known[i], 1);
        HAS(w, "\"result\"");
    }
    int late = world_connect_tcp(w, 0);
    CHECK_INT(world_read_all(w, late), 0);
    HAS(w, "\"code\":503");
    check_unix_serves(w);
    close(late);
    close_all(known, 4);
    close_all(fds, STRANGERS);
    world_free(w);
}

/* Strangers make room when descriptors run out, before anybody is refused. */
TEST(strangers_give_up_their_descriptors) {
    struct rlimit before, tight;
    world *w = crowd_world(NULL, "tcp://127.0.0.1:0");
    int stranger = world_connect_tcp(w, 0);
    WORLD_UNTIL(w, w->server->stranger_count == 1);
    int owner = connect_owner(w), last = dup(owner);
    getrlimit(RLIMIT_NOFILE, &before);
    tight = before;
    tight.rlim_cur = (rlim_t) last + 1;
    setrlimit(RLIMIT_NOFILE, &tight);
    world_say(w, owner, LINE);
    world_read_lines(w, owner, 1);
    setrlimit(RLIMIT_NOFILE, &before);
    HAS(w, "\"result\"");
    CHECK_INT((int64_t) w->server->stranger_count, 0);
    close(stranger);
    close(owner);
    close(last);
    world_free(w);
}

/* The descriptor that is kept for refusing can be lost to somebody else. Then nobody is accepted for a while, the loop does
 * not spin, and all is well as soon as there are descriptors again. */
TEST(the_spare_descriptor_is_lost) {
    struct rlimit before, tight;
    world *w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(w->server, "tcp://127.0.0.1:0", NULL), 0);
    int fd = world_connect_tcp(w, 0), last = dup(fd);
    dup2(fd, w->server->spare_fd); /* somebody else's now */
    int taken = w->server->spare_fd;
    w->server->spare_fd = -1;
    getrlimit(RLIMIT_NOFILE, &before);
    tight = before;
    tight.rlim_cur = (rlim_t) last + 1;
    setrlimit(RLIMIT_NOFILE, &tight);
    WORLD_UNTIL(w, w->server->resting);
    CHECK(!uv_is_active((uv_handle_t *) &WEFT_CONTAINER(w->server->listeners.next, weft_listener, link)->sockets[0].poll));
    close(taken);
    setrlimit(RLIMIT_NOFILE, &before);
    world_say(w, fd, LINE);
    world_read_lines(w, fd, 1);
    HAS(w, "\"result\"");
    close(fd);
    close(last);
    world_free(w);
}

/* ---- the time of a request ---- */

static weft_conn *only_conn(const world *w) {
    return WEFT_CONTAINER(w->server->conns.next, weft_conn, link);
}

static void answer_route(weft_http *http, void *ctx) {
    (void) ctx;
    weft_http_answer(http, 200, "text/plain", weft_http_body(http));
}

/* Nobody reads the body of a health check: it is answered before the body is there, and the connection ends. */
TEST(bodies_that_nobody_reads) {
    static const struct {
        const char *name, *request;
        int status;
    } rows[] = {
        {"health, sized", "GET /health HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nx", 200},
        {"health, chunked", "HEAD /health HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nx", 200},
        {"health, expecting", "GET /health HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n", 200},
        {"a page", "GET /page HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n", 400},
        {"a page, chunked, by HEAD", "HEAD /page HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 400},
        {"no such path", "POST /no HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n", 404},
        {"options", "OPTIONS /rpc HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n", 204},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world *w = world_new(NULL, NULL);
        test_row(rows[i].name);
        CHECK_INT(weft_server_listen(w->server, "http://127.0.0.1:0/rpc", NULL), 0);
        CHECK_INT(weft_server_route(w->server, "GET", "/page", answer_route, NULL), 0);
        int fd = world_connect_tcp(w, 0);
        world_say(w, fd, rows[i].request);
        CHECK_INT(world_read_all(w, fd), 0);
        CHECK_INT(atoi(w->text + 9), rows[i].status);
        HAS(w, "Connection: close\r\n");
        close(fd);
        world_free(w);
    }
    test_row(NULL);
}

TEST(bodies_that_hardly_move) {
    static const char *const heads[] = {"Content-Length: 100000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n1"};
    for (size_t i = 0; i < 2; i++) {
        world *w = world_new(&(weft_server_opts){.body_ms = 100}, NULL);
        char head[200];
        CHECK_INT(weft_server_listen(w->server, "http://127.0.0.1:0/rpc", NULL), 0);
        int fd = world_connect_tcp(w, 0);
        snprintf(head, sizeof head, "POST /rpc HTTP/1.1\r\n" HOST JSON "%s", heads[i]);
        world_say(w, fd, head);
        /* A byte now and then is not enough, however long it goes on. */
        struct pollfd look = {.fd = fd, .events = POLLIN};
        for (int64_t until = world_ms() + WORLD_PATIENCE_MS, sent = 0; world_ms() < until && poll(&look, 1, 0) == 0;) {
            if (sent < 50 && world_ms() % 10 == 0)
                sent += send(fd, i ? ";" : "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
            world_wait(w, -1, 0);
        }
        CHECK_INT(world_read_all(w, fd), 0);
        HAS(w, "HTTP/1.1 408 ");
        close(fd);
        world_free(w);
    }
}

/* One that moves is looked at again and again, and may take as long as it is. */
TEST(bodies_that_move) {
    const char *answer;
    char filler[8192];
    world *w = world_new(&(weft_server_opts){.body_ms = 1000}, NULL);
    CHECK_INT(weft_server_listen(w->server, "http://127.0.0.1:0/rpc", NULL), 0);
    memset(filler, ' ', sizeof filler);
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd, "POST /rpc HTTP/1.1\r\n" HOST JSON "Content-Length: 16386\r\n\r\n");
    WORLD_UNTIL(w, !weft__list_empty(&w->server->conns) && only_conn(w)->web->state == WEFT_WEB_BODY);
    int64_t until = only_conn(w)->web->body_until;
    world_send(w, fd, filler, sizeof filler);
    WORLD_UNTIL(w, only_conn(w)->web->body_until > until);
    world_send(w, fd, filler, sizeof filler);
    world_say(w, fd, "{}");
    CHECK_INT(world_read_http(w, fd, &answer), 200);
    close(fd);
    world_free(w);
}

/* Times so long that they mean for ever are not over at once. */
TEST(times_beyond_all_time) {
    const char *body;
    weft_server_opts opts = {.auth_ms = INT64_MAX, .head_ms = INT64_MAX, .body_ms = INT64_MAX, .grace_ms = INT64_MAX};
    world *w = crowd_world(&opts, "http://127.0.0.1:0/rpc");
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd, "POST /rpc HTTP/1.1\r\n" HOST JSON BEARER "Content-Le");
    for (int i = 0; i < 3; i++)
        world_wait(w, -1, 0);
    world_say(w, fd, "ngth: 2\r\n\r\n{");
    for (int i = 0; i < 3; i++)
        world_wait(w, -1, 0);
    world_say(w, fd, "}");
    CHECK_INT(world_read_http(w, fd, &body), 200);
    int owner = connect_owner(w);
    world_say(w, owner, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"keep\"}\n");
    WORLD_UNTIL(w, w->kept != NULL);
    weft_server_stop(w->server, NULL, NULL);
    for (int i = 0; i < 3; i++)
        world_wait(w, -1, 0);
    weft_reply(w->kept, weft_str("last"));
    world_read_lines(w, owner, 1);
    HAS(w, "\"last\"");
    close(fd);
    close(owner);
    world_free(w);
}

/* ---- memory ---- */

#define MIB ((size_t) 1024 * 1024)

/* The beginning of a long message, of which nobody knows yet how long it will be. */
static void say_much(world *w, int fd, size_t len) {
    char *text = malloc(len);
    memset(text, 'x', len);
    text[0] = '"';
    world_send(w, fd, text, len);
    free(text);
}

/* What is held is counted exactly, and given back whatever becomes of the message. */
TEST(memory_is_counted) {
    world *w = crowd_world(NULL, "tcp://127.0.0.1:0");
    int fd = connect_owner(w);
    say_much(w, fd, 300000);
    WORLD_UNTIL(w, w->server->held >= 300000);
    CHECK(w->server->held <= MIB);
    world_say(w, fd, "\"\n");
    world_read_lines(w, fd, 1);
    HAS(w, "-32600");
    CHECK_INT((int64_t) w->server->held, 0);
    say_much(w, fd, 300000);
    WORLD_UNTIL(w, w->server->held >= 300000);
    close(fd);
    WORLD_UNTIL(w, w->closed == 1);
    CHECK_INT((int64_t) w->server->held, 0);
    world_free(w);
}

TEST(unread_answers_are_counted) {
    world *w = crowd_world(NULL, "tcp://127.0.0.1:0");
    int fd = connect_owner(w);
    for (int i = 0; i < 3; i++)
        world_say(w, fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"blob\",\"params\":[900000]}\n");
    WORLD_UNTIL(w, w->server->held >= MIB);
    while (w->server->held && world_wait(w, fd, POLLIN))
        CHECK(recv(fd, w->text, WORLD_TEXT - 1, MSG_DONTWAIT) != 0);
    CHECK_INT((int64_t) w->server->held, 0);
    weft_server_broadcast(w->server, "news", weft_none(), NULL, NULL);
    close(fd);
    WORLD_UNTIL(w, w->closed == 1);
    CHECK_INT((int64_t) w->server->held, 0);
    world_free(w);
}

/* Over the limit the largest goes, and the others go on. */
TEST(too_much_memory_in_all) {
    int fds[4];
    world *w = crowd_world(&(weft_server_opts){.max_memory = 2 * MIB}, "tcp://127.0.0.1:0");
    for (size_t i = 0; i < 4; i++) {
        fds[i] = connect_owner(w);
        say_much(w, fds[i], 200000 + 50000 * i);
    }
    WORLD_UNTIL(w, w->opened == 4 && w->server->held >= 4 * 200000);
    CHECK_INT(w->closed, 0);
    say_much(w, fds[1], 1500000);
    WORLD_UNTIL(w, w->closed >= 1);
    CHECK_INT(w->why, -ENOBUFS);
    CHECK_INT(w->closed, 1);
    CHECK(w->server->held <= 2 * MIB);
    CHECK(strstr(w->note, "all connections together hold") != NULL);
    world_read_all(w, fds[1]); /* its end, or a reset over what it had still to say */
    world_say(w, fds[0], "\"\n" LINE);
    world_read_lines(w, fds[0], 2);
    HAS(w, "\"result\"");
    close_all(fds, 4);
    world_free(w);
}

/* Strangers go first, though others hold more. */
TEST(memory_of_strangers_goes_first) {
    char *message = malloc(3000001);
    world *w = crowd_world(&(weft_server_opts){.max_memory = 3 * MIB}, "http://127.0.0.1:0/rpc");
    CHECK_INT(weft_server_public(w->server, "/open"), 0);
    CHECK_INT(weft_server_route(w->server, "POST", "/open", answer_route, NULL), 0);
    int owner = connect_owner(w), stranger = world_connect_tcp(w, 0);
    world_say(w, stranger, "POST /open HTTP/1.1\r\n" HOST "Content-Length: 900000\r\n\r\n");
    say_much(w, stranger, 300000);
    WORLD_UNTIL(w, w->server->held >= 300000);
    world_say(w, owner, "Content-Length: 3000000\r\n\r\n{"); /* memory is there for all of it */
    CHECK_INT(world_read_all(w, stranger), 0);
    HAS(w, "HTTP/1.1 503 ");
    CHECK(w->server->held >= 3000000);
    memset(message, ' ', 3000000);
    message[2999998] = '}';
    message[2999999] = '\0';
    world_say(w, owner, message);
    CHECK(world_read_until(w, owner, "-32600"));
    CHECK_INT(w->closed, 0);
    free(message);
    close(owner);
    close(stranger);
    world_free(w);
}

/* clang-format off */
TEST_MAIN(
    CASE(strangers_cannot_shut_out_the_owner)
    CASE(strangers_have_few_places_in_all)
    CASE(known_clients_keep_their_places)
    CASE(strangers_give_up_their_descriptors)
    CASE(the_spare_descriptor_is_lost)
    CASE(bodies_that_nobody_reads)
    CASE(bodies_that_hardly_move)
    CASE(bodies_that_move)
    CASE(times_beyond_all_time)
    CASE(memory_is_counted)
    CASE(unread_answers_are_counted)
    CASE(too_much_memory_in_all)
    CASE(memory_of_strangers_goes_first)
)
