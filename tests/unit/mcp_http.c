/* MCP over HTTP with a server in another process, whose answers are JSON and events by turns; each allocation fails once. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "mcp_private.h"

/* ---- the server ---- */

/* All of a request: its body is as long as its head says. */
static bool read_request(int fd, char *text, size_t size) {
    size_t used = 0;
    for (;;) {
        ssize_t n = read(fd, text + used, size - 1 - used);
        if (n <= 0)
            return false;
        text[used += (size_t) n] = '\0';
        const char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
        if (body && (!length || strlen(body + 4) >= strtoul(length + 16, NULL, 10)))
            return true;
    }
}

static void answer_request(int fd, const char *text) {
    const char *id = strstr(text, "\"id\":"), *result = NULL;
    char out[2000] = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
    bool events = strstr(text, "tools/call") != NULL;
    if (strncmp(text, "GET", 3) == 0 || strstr(text, "server/discover"))
        snprintf(out, sizeof out, "HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n");
    else if (strstr(text, "\"initialize\""))
        result =
            "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":"
            "\"1\"}}";
    else if (strstr(text, "tools/list"))
        result = "{\"tools\":[{\"name\":\"t\",\"outputSchema\":{\"type\":\"object\"}}]}";
    else if (events)
        result = "{\"content\":[],\"structuredContent\":{}}";
    if (result && id)
        snprintf(
            out, sizeof out,
            "HTTP/1.1 200 OK\r\nMcp-Session-Id: s1\r\nContent-Type: %s\r\nConnection: close\r\n\r\n%s{\"jsonrpc\":\"2.0\","
            "\"id\":%d,\"result\":%s}\n\n",
            events ? "text/event-stream" : "application/json", events ? "id: 1\ndata: " : "", atoi(id + 5), result);
    if (write(fd, out, strlen(out)) < 0)
        return;
}

static void serve_for_ever(int listener) {
    static char text[1 << 16];
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd >= 0 && read_request(fd, text, sizeof text))
            answer_request(fd, text);
        close(fd);
    }
}

static pid_t start_server(int *ret_port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *) &address, size) < 0 || listen(fd, 100) < 0 ||
        getsockname(fd, (struct sockaddr *) &address, &size) < 0)
        return -1;
    *ret_port = ntohs(address.sin_port);
    pid_t pid = fork();
    if (pid == 0)
        serve_for_ever(fd);
    close(fd);
    return pid;
}

/* ---- the client ---- */

typedef struct outcome {
    int done, r;
    char text[500];
} outcome;

static void on_done(void *ctx, const weft_mcp_answer *answer) {
    outcome *o = ctx;
    o->done++;
    o->r = answer->r;
    snprintf(o->text, sizeof o->text, "%.*s", answer->result ? (int) answer->result->len : 0,
             answer->result ? answer->result->text : "");
}

static const weft_mcp_host host = {0};

static void call_once(const char *url, test_memory *memory, outcome *o) {
    weft_mcp_spec spec = {.name = "h", .transport = WEFT_MCP_HTTP, .url = url, .timeout_ms = 400};
    weft_mcp *mcp = NULL;
    weft_loop *loop = NULL;
    long fail_at = memory->fail_at;
    memory->fail_at = 0;
    REQUIRE(weft_loop_new(&memory->alloc, &loop) == 0);
    weft_loop_hold(loop); /* as a daemon's, which listens: a timer alone does not keep it */
    memory->count = 0;
    memory->fail_at = fail_at;
    weft_mcp_opts opts = {.loop = loop, .alloc = &memory->alloc, .folder = "/srv", .host = &host};
    weft_mcp_call call = {.method = "tools/call",
                          .params = WEFT_OBJ({"name", weft_str("t")}, {"arguments", weft_obj(NULL, 0)}),
                          .done = on_done,
                          .ctx = o};
    int r = weft__mcp_new(&opts, &mcp);
    if (r >= 0)
        r = weft__mcp_set(mcp, &(weft_mcp_specs){&spec, 1}, false);
    if (r >= 0)
        r = weft__mcp_request(weft__mcp_first(mcp), &call, NULL);
    while (r >= 0 && !o->done && weft_loop_once(loop, true) >= 0)
        ;
    if (r < 0)
        o->done++;
    weft__mcp_free(mcp);
    weft_loop_release(loop);
    weft_loop_free(loop);
}

TEST(a_call_with_each_allocation_failing) {
    int port = 0;
    char url[64];
    pid_t pid = start_server(&port);
    REQUIRE(pid > 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/mcp", port);
    long n = 0;
    for (bool failed = true; failed && n < 3000; n++) {
        outcome o = {0};
        test_memory memory;
        test_memory_init(&memory, n); /* the first time none fails */
        call_once(url, &memory, &o);
        failed = n == 0 || memory.count >= n;
        CHECK_INT(o.done, 1);
        CHECK_INT(memory.live, 0);
        if (n == 0)
            CHECK_STR(o.text, "{\"content\":[],\"structuredContent\":{}}");
    }
    CHECK(n > 100 && n < 3000);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

TEST_MAIN(CASE(a_call_with_each_allocation_failing))
