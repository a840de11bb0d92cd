/* Clients that mean harm: what a stranger may cost, what a guesser may learn, and what our own answers must never say. */
#include <netinet/tcp.h>

#include "net_world.h"

#define HOST "Host: localhost\r\n"
#define JSON "Content-Type: application/json\r\n"

static const weft_token tokens[] = {{"s3cret", "ann", NULL}, {0}};

static world *web_world(const weft_server_opts *opts, const weft_limits *limits, const weft_listen_opts *listen_opts) {
    world *w = world_new(opts, limits);
    CHECK_INT(weft_server_listen(w->server, "http://127.0.0.1:0/rpc", listen_opts), 0);
    return w;
}

/* ---- what a stranger may cost ---- */

static void say_known(weft_http *http, void *ctx) {
    (void) ctx;
    const char *text = weft_http_identity(http)->authenticated ? "known" : "unknown";
    weft_http_answer(http, 200, "text/plain", (weft_bytes){text, strlen(text)});
}

/* Who shows nothing may send as little as before authentication on any other transport. */
TEST(bodies_of_strangers_are_small) {
    static const struct {
        const char *name, *target, *length, *body;
        int status;
    } rows[] = {
        {"public path, at the border", "POST /open", "Content-Length: 10", "0123456789", 200},
        {"public path, one more", "POST /open", "Content-Length: 11", "0123456789a", 413},
        {"public path, chunks at the border", "POST /open", "Transfer-Encoding: chunked", "a\r\n0123456789\r\n0\r\n\r\n",
         200},
        {"public path, chunks of one more", "POST /open", "Transfer-Encoding: chunked", "b\r\n0123456789a\r\n0\r\n\r\n",
         413},
        {"health", "GET /health", "Content-Length: 11", "0123456789a", 200}, /* nobody reads it */
        {"with a token", "POST /open?token=s3cret", "Content-Length: 11", "0123456789a", 200},
    };
    weft_limits limits = {.max_body = 100, .max_body_stranger = 10};
    world *w = web_world(NULL, &limits, &(weft_listen_opts){.tokens = tokens});
    CHECK_INT(weft_server_route(w->server, "POST", "/open", say_known, NULL), 0);
    CHECK_INT(weft_server_public(w->server, "/open"), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *body;
        test_row(rows[i].name);
        CHECK_INT(
            world_http(w, 0, &body, "%s HTTP/1.1\r\n" HOST "%s\r\n\r\n%s", rows[i].target, rows[i].length, rows[i].body),
            rows[i].status);
    }
    test_row(NULL);
    world_free(w);
}

/* Empty lines before a request are forgiven, but they buy no time. */
TEST(empty_lines_buy_no_time) {
    world *w = web_world(&(weft_server_opts){.head_ms = 30}, NULL, NULL);
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd, "\r\n");
    CHECK_INT(world_read_all(w, fd), 0);
    close(fd);
    world_free(w);
}

#define PIPELINED 40
#define BLOB 400000

static size_t read_some(world *w, int fd, size_t *ret_answers) {
    ssize_t n = world_wait(w, fd, POLLIN) ? recv(fd, w->text, WORLD_TEXT - 1, 0) : -1;
    if (n <= 0)
        return 0;
    /* Only the blobs are long, and an x is in nothing else. */
    for (ssize_t i = 0; i < n; i++)
        *ret_answers += w->text[i] == 'x';
    return (size_t) n;
}

/* Requests that were sent together are answered no faster than the answers are read, however long that takes: time is only
 * for heads that do not come. */
TEST(pipelined_answers_wait_for_the_reader) {
    static char requests[PIPELINED * 200];
    size_t xs = 0, len = 0;
    world *w = web_world(&(weft_server_opts){.head_ms = 500}, NULL, NULL);
    int fd = world_connect_tcp(w, 0);
    for (int i = 0; i < PIPELINED; i++)
        len += (size_t) sprintf(requests + len, "POST /rpc HTTP/1.1\r\n" HOST JSON "Content-Length: 60\r\n\r\n%-60s",
                                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"blob\",\"params\":[400000]}");
    world_send(w, fd, requests, len);
    for (int64_t until = world_ms() + 700; world_ms() < until;)
        world_wait(w, -1, 0);
    /* The system's buffers take some of them; ours must not take the rest. */
    CHECK(weft_service_stats(w->service)->requests < PIPELINED);
    while (xs < (size_t) PIPELINED * BLOB && read_some(w, fd, &xs))
        continue;
    CHECK_INT((int64_t) xs, (int64_t) PIPELINED * BLOB);
    CHECK_INT((int64_t) weft_service_stats(w->service)->requests, PIPELINED);
    close(fd);
    world_free(w);
}

/* Who listens to events without reading them is closed at the hard limit; who reads hears all of them. */
TEST(events_that_nobody_reads) {
    weft_limits limits = {.out_soft = 10000, .out_hard = 100000};
    char *text = calloc(1, 50001);
    size_t heard = 0;
    world *w = web_world(NULL, &limits, NULL);
    int reader = world_connect_tcp(w, 0), sleeper = world_connect_tcp(w, 0), small = 4096;
    setsockopt(sleeper, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    memset(text, 'x', 50000);
    world_say(w, reader, "GET /rpc HTTP/1.1\r\n" HOST "Accept: text/event-stream\r\n\r\n");
    world_say(w, sleeper, "GET /rpc HTTP/1.1\r\n" HOST "Accept: text/event-stream\r\n\r\n");
    WORLD_UNTIL(w, w->opened == 2);
    CHECK(world_read_until(w, reader, "\r\n\r\n"));
    size_t told = 0;
    for (; told < 1000 && w->closed == 0; told++) {
        CHECK(weft_server_broadcast(w->server, "news", WEFT_OBJ({"t", weft_strn(text, 50000)}), NULL, NULL) >= 1);
        while (heard < (told + 1) * 50000 && read_some(w, reader, &heard))
            continue;
    }
    CHECK_INT(w->closed, 1);
    CHECK_INT(w->why, -ENOBUFS);
    CHECK_INT((int64_t) heard, (int64_t) told * 50000);
    CHECK_INT((int64_t) weft_server_clients(w->server), 1);
    close(reader);
    close(sleeper);
    free(text);
    world_free(w);
}

/* ---- what a guesser may learn ---- */

/* A public path says whether a token was right, so wrong ones count there too. */
TEST(public_paths_are_no_place_to_guess) {
    const char *body;
    world *w = web_world(NULL, NULL, &(weft_listen_opts){.tokens = tokens});
    CHECK_INT(weft_server_route(w->server, "GET", "/login", say_known, NULL), 0);
    CHECK_INT(weft_server_public(w->server, "/login"), 0);
    CHECK_INT(world_http(w, 0, &body, "GET /login?token=s3cret HTTP/1.1\r\n" HOST "\r\n"), 200);
    CHECK_STR(body, "known");
    for (int i = 0; i < 10; i++) {
        CHECK_INT(world_http(w, 0, &body, "GET /login?token=guess%d HTTP/1.1\r\n" HOST "\r\n", i), 200);
        CHECK_STR(body, "unknown");
    }
    CHECK_INT(world_http(w, 0, &body, "GET /login?token=s3cret HTTP/1.1\r\n" HOST "\r\n"), 200);
    CHECK_STR(body, "known"); /* a right one is never braked */
    CHECK_INT(world_http(w, 0, &body, "GET /rpc?token=guess HTTP/1.1\r\n" HOST "\r\n"), 429);
    world_free(w);
}

TEST(hosts_to_the_letter) {
    static const struct {
        const char *host;
        int status;
    } rows[] = {
        {"localhost", 200},
        {"LOCALHOST:1", 200},
        {"localhost:", 200},
        {"[::1]", 200},
        {"[::1]:65535", 200},
        {"127.0.0.1:80", 200},
        {"localhost.", 421},
        {"localhost:80x", 400},
        {"localhost:1:2", 400},
        {"[::1]evil", 400},
        {"[::1].evil", 400},
        {"[::1]:8a", 400},
        {"[::1", 400},
        {"[]", 400},
        {":80", 400},
        {"", 400},
        {"127.0.0.2", 421},
        {"0x7f.1", 421},
        {"evil@localhost", 400},
        {"::1", 400},
    };
    world *w = web_world(NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *body;
        test_row(rows[i].host);
        CHECK_INT(world_http(w, 0, &body, "GET /health HTTP/1.1\r\nHost: %s\r\n\r\n", rows[i].host), rows[i].status);
    }
    test_row(NULL);
    world_free(w);
}

/* ---- what our own answers must never say ---- */

typedef struct wanted {
    int status;
    const char *type;
    int r;
} wanted;

static void answer_as_wanted(weft_http *http, void *ctx) {
    wanted *want = ctx;
    want->r = weft_http_answer(http, want->status, want->type, (weft_bytes){"BODY", 4});
}

/* Whatever the program hands us, the next answer begins where the client looks for it. */
TEST(answers_of_routes_stay_in_their_frame) {
    static char long_type[3000];
    static const struct {
        const char *name;
        int status;
        const char *type;
        int r, sent;
        bool body;
    } rows[] = {
        {"as usual", 200, "text/plain", 0, 200, true},
        {"204 has no body", 204, "text/plain", 0, 204, false},
        {"304 has no body", 304, "text/plain", 0, 304, false},
        {"a long type", 200, long_type, 0, 200, true},
        {"a header of its own", 200, "text/plain\r\nX-Evil: 1", -EINVAL, 500, false},
        {"a lone line feed", 200, "text/plain\nX-Evil: 1", -EINVAL, 500, false},
        {"a status that is none", 42, "text/plain", -EINVAL, 500, false},
        {"a status that is no answer", 101, "text/plain", -EINVAL, 500, false},
    };
    memset(long_type, 'a', sizeof long_type - 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wanted want = {rows[i].status, rows[i].type, 1};
        char line[40];
        world *w = web_world(NULL, NULL, NULL);
        test_row(rows[i].name);
        CHECK_INT(weft_server_route(w->server, "GET", "/it", answer_as_wanted, &want), 0);
        int fd = world_connect_tcp(w, 0);
        world_say(w, fd, "GET /it HTTP/1.1\r\n" HOST "\r\nGET /health HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
        CHECK_INT(world_read_all(w, fd), 0);
        snprintf(line, sizeof line, "HTTP/1.1 %d ", rows[i].sent);
        CHECK_INT(strncmp(w->text, line, strlen(line)), 0);
        CHECK_INT(want.r, rows[i].r);
        CHECK((strstr(w->text, "BODY") != NULL) == rows[i].body);
        CHECK(!strstr(w->text, "X-Evil"));
        const char *end = strstr(w->text, "\r\n\r\n");
        const char *next = end ? strstr(end, "HTTP/1.1 200 ") : NULL;
        CHECK(next && next == end + 4 + (rows[i].body ? 4 : 0));
        close(fd);
        world_free(w);
    }
    test_row(NULL);
}

/* ---- a peer that vanishes ---- */

static int server_end_of(int client) {
    struct sockaddr_in mine, its;
    socklen_t len = sizeof mine;
    CHECK_INT(getsockname(client, (struct sockaddr *) &mine, &len), 0);
    for (int fd = 3; fd < 256; fd++) {
        len = sizeof its;
        if (fd != client && getpeername(fd, (struct sockaddr *) &its, &len) == 0 && its.sin_family == AF_INET &&
            its.sin_port == mine.sin_port)
            return fd;
    }
    return -1;
}

/* Lines have no pings: that a silent peer has gone is found out by the system, within the 35 seconds that all have. */
TEST(silent_peers_are_probed) {
    static const char *const urls[] = {"tcp://127.0.0.1:0", "http://127.0.0.1:0/rpc"};
    for (size_t i = 0; i < 2; i++) {
        world *w = world_new(NULL, NULL);
        test_row(urls[i]);
        CHECK_INT(weft_server_listen(w->server, urls[i], NULL), 0);
        int client = world_connect_tcp(w, 0), fd, values[4] = {0};
        WORLD_UNTIL(w, (fd = server_end_of(client)) >= 0);
        socklen_t len = sizeof values[0];
        CHECK_INT(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &values[0], &len), 0);
        CHECK_INT(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &values[1], &len), 0);
        CHECK_INT(getsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &values[2], &len), 0);
        CHECK_INT(getsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &values[3], &len), 0);
        CHECK_INT(values[0], 1);
        CHECK(values[1] + values[2] * values[3] <= 35);
        close(client);
        world_free(w);
    }
    test_row(NULL);
}

/* clang-format off */
TEST_MAIN(
    CASE(bodies_of_strangers_are_small)
    CASE(empty_lines_buy_no_time)
    CASE(pipelined_answers_wait_for_the_reader)
    CASE(events_that_nobody_reads)
    CASE(public_paths_are_no_place_to_guess)
    CASE(hosts_to_the_letter)
    CASE(answers_of_routes_stay_in_their_frame)
    CASE(silent_peers_are_probed)
)
