/* ACP by Streamable HTTP, on a real server in a hub in a box: messages by POST, what is said by event streams; limits, slow
 * and missing readers, and every allocation above the engine failing once. What statuses requests get is in
 * tests/interop/acp_sdk.mjs. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "acp_http.h"
#include "hub_client.h"

typedef struct http_world {
    hub_world hub;
    weft_server *server;
    weft_acp_http *acp;
    test_memory memory;
    char connection[64];
    char text[1 << 20]; /* what was read last */
    size_t len;
} http_world;

static http_world world;

static bool begin(http_world *w, long fail_at) {
    *w = (http_world){0};
    test_memory_init(&w->memory, fail_at);
    int r = hub_init(&w->hub, &(hub_opts){.alloc = &w->memory.alloc, .service.out_soft = 65536});
    if (r < 0)
        return false;
    CHECK_INT(weft_server_new(w->hub.loop, &(weft_server_opts){.service = w->hub.service}, &w->server), 0);
    CHECK_INT(weft_server_listen(w->server, "ws://127.0.0.1:0/acp", NULL), 0);
    w->hub.hub.server = w->server;
    return weft__acp_http_new(&w->hub.hub, w->server, &w->acp) >= 0;
}

static void end(http_world *w) {
    weft__acp_http_free(w->acp);
    weft_server_free(w->server);
    hub_done(&w->hub);
    CHECK_INT(w->memory.live, 0);
}

/* ---- a client's socket ---- */

static int dial(const http_world *w) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *url = weft_server_url(w->server, 0);
    to.sin_port = htons((uint16_t) atoi(strrchr(url, ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(connect(fd, (struct sockaddr *) &to, sizeof to), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void say(http_world *w, int fd, const char *method, const char *session, const char *body) {
    char text[4096];
    int n = snprintf(text, sizeof text,
                     "%s /acp HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%s%s%s%s%s%sContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     method, strcmp(method, "GET") == 0 ? "Accept: text/event-stream\r\n" : "",
                     *w->connection ? "Acp-Connection-Id: " : "", w->connection, *w->connection ? "\r\n" : "",
                     session ? "Acp-Session-Id: " : "", session ? session : "", session ? "\r\n" : "", strlen(body), body);
    CHECK_INT(write(fd, text, (size_t) n), n);
    w->len = 0;
    w->text[0] = '\0';
}

static void read_some(http_world *w, int fd) {
    ssize_t n;
    while (w->len + 1 < sizeof w->text && (n = read(fd, w->text + w->len, sizeof w->text - w->len - 1)) > 0)
        w->len += (size_t) n;
    w->text[w->len] = '\0';
}

/* Until this has come; where allocations fail, it may not. */
static bool comes(http_world *w, int fd, const char *part) {
    int64_t until = hub_ms() + HUB_PATIENCE_MS;
    for (int turns = 0; !strstr(w->text, part) && hub_ms() < until && (!w->memory.fail_at || turns < 60); turns++) {
        hub_turn(&w->hub, w->memory.fail_at ? 0 : 5);
        read_some(w, fd);
    }
    return strstr(w->text, part) != NULL || w->memory.fail_at;
}

#define COMES(w, fd, part) test_check(comes(w, fd, part), __FILE__, __LINE__, (part))

/* A message in a connection of its own. */
static void post(http_world *w, const char *session, const char *body, const char *status) {
    int fd = dial(w);
    say(w, fd, "POST", session, body);
    COMES(w, fd, status);
    close(fd);
}

static int stream(http_world *w, const char *session) {
    int fd = dial(w);
    say(w, fd, "GET", session, "");
    COMES(w, fd, "text/event-stream");
    return fd;
}

static void initialize(http_world *w) {
    int fd = dial(w);
    say(w, fd, "POST", NULL, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}");
    COMES(w, fd, "\"protocolVersion\":1");
    const char *header = strstr(w->text, "Acp-Connection-Id: ");
    if (header)
        snprintf(w->connection, sizeof w->connection, "%.32s", header + 19);
    close(fd);
}

#define NEW                                                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/new\",\"params\":{\"cwd\":\"/srv/project\",\"mcpServers\":[]}}"
#define PROMPT                                                                                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"session-0000\",\"prompt\":["   \
    "{\"type\":\"text\",\"text\":\"go\"}]}}"
static const char question[] = "{\"kind\":\"permission\",\"title\":\"may I?\",\"options\":[{\"id\":\"y\",\"name\":\"Yes\","
                               "\"kind\":\"allow_once\"}],\"detail\":{}}";

/* ---- a whole turn ---- */

static long whole_turn(long fail_at) {
    http_world *w = &world;
    if (begin(w, fail_at)) {
        initialize(w);
        int all = stream(w, NULL);
        post(w, NULL, NEW, "202");
        w->len = 0, w->text[0] = '\0';
        COMES(w, all, "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"sessionId\":\"session-0000\"}}\n\n");
        int one = stream(w, "session-0000");
        post(w, "session-0000", PROMPT, "202");
        hub_settle(&w->hub);
        weft_run *run = hub_run(&w->hub, "task-0001");
        CHECK(run || fail_at);
        if (run) {
            run->host->on_ask(run->ctx, "k", weft_raw(question, strlen(question)));
            w->len = 0, w->text[0] = '\0';
            COMES(w, one, "session/request_permission");
            post(w, "session-0000",
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"y\"}}}",
                 "202");
            hub_settle(&w->hub);
            CHECK(fail_at || strcmp(w->hub.heard[0], "task-0001 answer k y") == 0);
            run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){"done\n", 5});
            hub_end(run, &(weft_run_end){.ok = true});
            w->len = 0, w->text[0] = '\0';
            COMES(w, one, "\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}\n\n");
            CHECK(fail_at || strstr(w->text, "\"text\":\"done\\n\""));
        }
        close(one);
        int bye = dial(w);
        say(w, bye, "DELETE", NULL, "");
        COMES(w, bye, "202");
        CHECK(fail_at || w->acp->count == 0);
        close(bye);
        w->len = 0, w->text[0] = '\0';
        COMES(w, all, "0\r\n\r\n"); /* its streams have ended */
        close(all);
        hub_settle(&w->hub);
    }
    end(w);
    return w->memory.count;
}

TEST(a_whole_turn) {
    char row[64];
    long allocations = whole_turn(0);
    for (long n = 1; n <= allocations; n++) {
        snprintf(row, sizeof row, "failing allocation %ld", n);
        test_row(row);
        whole_turn(n);
    }
    test_row(NULL);
}

/* ---- readers ---- */

#define LINES 4000

static void say_much(weft_run *run) {
    char line[1024];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (int i = 0; i < LINES; i++) {
        line[snprintf(line, sizeof line, "<%d>", i)] = 'x';
        run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){line, sizeof line});
        if (i % 50 == 0)
            hub_settle(run->world);
    }
}

/* Nobody reads the session's stream: a megabyte or two waits, and the rest stays in the store until somebody does. */
TEST(nobody_reads) {
    http_world *w = &world;
    CHECK(begin(w, 0));
    initialize(w);
    int all = stream(w, NULL);
    post(w, NULL, NEW, "202");
    COMES(w, all, "session-0000");
    post(w, "session-0000", PROMPT, "202");
    hub_settle(&w->hub);
    weft_run *run = hub_run(&w->hub, "task-0001");
    REQUIRE(run != NULL);
    const weft_acp_connection *connection =
        weft__acp_connection_find(w->acp, w->connection, &(weft_identity){.name = "", .scopes = "*"});
    REQUIRE(connection != NULL);
    say_much(run);
    hub_end(run, &(weft_run_end){.ok = true});
    hub_settle(&w->hub);
    CHECK(weft__acp_connection_waiting(connection) >= 1 << 20);
    CHECK(weft__acp_connection_waiting(connection) < (1 << 20) + (128 << 10));
    int one = stream(w, "session-0000");
    int next = 0;
    char want[16];
    int64_t until = hub_ms() + HUB_PATIENCE_MS;
    while (!strstr(w->text, "end_turn") && hub_ms() < until) {
        hub_turn(&w->hub, 5);
        read_some(w, one);
        snprintf(want, sizeof want, "<%d>", next);
        for (const char *at = w->text; (at = strstr(at, want)); next++)
            snprintf(want, sizeof want, "<%d>", next + 1);
        /* What was looked through is not needed any more, but for an end that may be cut. */
        size_t keep = w->len < 2048 ? w->len : 2048;
        memmove(w->text, w->text + w->len - keep, keep + 1);
        w->len = keep;
    }
    CHECK_INT(next, LINES);
    close(one);
    close(all);
    end(w);
}

TEST(too_many_streams_and_answers) {
    http_world *w = &world;
    char id[32], body[256];
    int r = 0;
    CHECK(begin(w, 0));
    initialize(w);
    weft_acp_connection *connection =
        weft__acp_connection_find(w->acp, w->connection, &(weft_identity){.name = "", .scopes = "*"});
    REQUIRE(connection != NULL);
    const weft_identity who = {
        .transport = "http", .dialect = "", .name = "", .scopes = "*", .address = "", .authenticated = true};
    for (int i = 0; i < 1025 && r >= 0; i++) {
        snprintf(id, sizeof id, "%d", i);
        int n = snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"session/list\",\"params\":{}}", i);
        r = weft__acp_connection_feed(connection, &who, (weft_bytes){body, (size_t) n},
                                      &(weft_acp_asks){.id = {id, strlen(id)}, .session = id});
        CHECK(r >= 0 || (r == -ENOBUFS && i == 1024));
    }
    CHECK_INT(r, -ENOBUFS);
    hub_settle(&w->hub); /* each answer has made a stream of its own, which is as many as there may be */
    int fd = dial(w);
    say(w, fd, "GET", "one more", "");
    COMES(w, fd, "429");
    close(fd);
    end(w);
}

TEST(too_many_connections) {
    http_world *w = &world;
    const weft_identity who = {
        .transport = "http", .dialect = "", .name = "", .scopes = "*", .address = "", .authenticated = true};
    weft_acp_connection *made;
    CHECK(begin(w, 0));
    for (int i = 0; i < 256; i++)
        CHECK_INT(weft__acp_connection_new(w->acp, &who, &made), 0);
    CHECK_INT(weft__acp_connection_new(w->acp, &who, &made), -ENOBUFS);
    int fd = dial(w);
    say(w, fd, "POST", NULL, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}");
    COMES(w, fd, "429");
    close(fd);
    end(w);
}

TEST_MAIN(CASE(a_whole_turn) CASE(nobody_reads) CASE(too_many_streams_and_answers) CASE(too_many_connections))
