/* MCP servers without processes and sockets: a wire that is played, virtual time, and a server that says what the test
 * wants. What all of it allocates is counted, and each allocation fails once. */
#include <errno.h>
#include <stdlib.h>

#include "harness.h"
#include "mcp_private.h"

typedef struct world world;
/* What the server says to a message; NULL: nothing. */
typedef const char *script(world *w, const weft_json *message, const char *method, long long id);

struct world {
    test_memory memory;
    weft_loop *loop;
    weft_mcp *mcp;
    script *play;
    char reply[4096];
    int64_t now;
    int opened;
    int done, progress;
    int r;
    char text[2048]; /* result, error or why */
    weft_mcp_ask *ask;
    char asked[512];
    int unasked;
    char events[2048], sent[8192];
    int rounds; /* for scripts */
};

static world *the_world; /* wires and hosts have no room for it */

/* ---- the wire ---- */

static void ignore_output(weft_peer *peer, void *data) {
    (void) peer, (void) data;
}

static int played_open(weft_mcp_server *server) {
    weft_peer_opts opts = {.framing = &weft_ndjson, .style = WEFT_STYLE_MCP, .no_batch = true, .on_output = ignore_output};
    the_world->opened++;
    int r = weft_peer_new(server->service, &opts, &server->peer);
    server->line = &the_world;
    return r < 0 ? r : weft__mcp_negotiate(server);
}

static void played_close(weft_mcp_server *server) {
    (void) server;
}

static const weft_mcp_wire played = {.name = "played", .open = played_open, .close = played_close};

/* ---- the host ---- */

static void host_event(void *ctx, const char *type, weft_val data) {
    world *w = ctx;
    char *text = NULL;
    size_t len, used = strlen(w->events);
    if (weft_to_text(data, NULL, &text, &len) < 0)
        return;
    snprintf(w->events + used, sizeof w->events - used, "%s %s\n", type, text);
    weft_text_free(text, NULL);
}

static int host_ask(void *ctx, weft_mcp_ask *ask, const char *title, weft_val detail) {
    world *w = ctx;
    (void) detail;
    w->ask = ask;
    snprintf(w->asked, sizeof w->asked, "%s", title);
    return 0;
}

static void host_unask(void *ctx, weft_mcp_ask *ask) {
    world *w = ctx;
    w->unasked++;
    if (w->ask == ask)
        w->ask = NULL;
}

static const weft_mcp_host host = {.on_event = host_event, .ask = host_ask, .unask = host_unask};

/* ---- the world ---- */

static const char *const no_argv[] = {"server", NULL};
static const weft_mcp_spec specs[] = {{.name = "one", .transport = WEFT_MCP_STDIO, .argv = no_argv, .timeout_ms = 1000}};

static weft_mcp_server *only(const world *w) {
    return w->mcp ? weft__mcp_find(w->mcp, "one") : NULL;
}

static void world_open(world *w, script *play, long fail_at) {
    memset(w, 0, sizeof *w);
    the_world = w;
    w->play = play;
    w->now = 1000;
    CHECK_INT(weft_loop_new(NULL, &w->loop), 0);
    weft_loop_set_now(w->loop, w->now);
    test_memory_init(&w->memory, fail_at);
    weft_mcp_opts opts = {
        .loop = w->loop, .alloc = &w->memory.alloc, .folder = "/srv/a b", .host = &host, .ctx = w, .probe_ms = 500};
    if (weft__mcp_new(&opts, &w->mcp) >= 0)
        (void) weft__mcp_set(w->mcp, &(weft_mcp_specs){specs, 1}, false);
    if (only(w))
        only(w)->wire = &played;
}

static void say_to(world *w, const char *text) {
    weft_mcp_server *server = only(w);
    weft_peer *peer = server ? server->peer : NULL;
    if (peer && weft_peer_feed(peer, text, strlen(text), w->now) >= 0 && only(w)->peer == peer)
        (void) weft_peer_feed(peer, "\n", 1, w->now);
}

/* Everything that was written goes to the script, line by line, and its answers come back. */
static bool play_once(world *w) {
    weft_mcp_server *server = only(w);
    weft_bytes out = server && server->peer ? weft_peer_output(server->peer) : (weft_bytes){0};
    static char text[1 << 16];
    if (!out.len || out.len >= sizeof text)
        return false;
    memcpy(text, out.data, out.len);
    text[out.len] = '\0';
    weft_peer_sent(server->peer, out.len);
    for (char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        weft_doc *doc = NULL;
        size_t used = strlen(w->sent);
        snprintf(w->sent + used, sizeof w->sent - used, "%s\n", line);
        CHECK_INT(weft_doc_parse(line, strlen(line), NULL, &doc), 0);
        const char *method = weft_get_str(weft_doc_root(doc), "method", "");
        const char *said = w->play(w, weft_doc_root(doc), method, weft_get_int(weft_doc_root(doc), "id", 0));
        weft_doc_free(doc);
        if (said)
            say_to(w, said);
    }
    return true;
}

static void settle(world *w) {
    for (int i = 0; i < 200; i++) {
        bool more = play_once(w);
        weft_loop_once(w->loop, false);
        if (!more && i > 3)
            return;
    }
}

static void pass(world *w, int64_t ms) {
    weft_loop_set_now(w->loop, w->now += ms);
    settle(w);
}

static void world_close(world *w) {
    w->mcp = weft__mcp_free(w->mcp);
    weft_loop_free(w->loop);
    CHECK_INT(w->memory.live, 0);
}

static void on_done(void *ctx, const weft_mcp_answer *answer) {
    world *w = ctx;
    w->done++;
    w->r = answer->r;
    if (answer->result)
        snprintf(w->text, sizeof w->text, "%.*s", (int) answer->result->len, answer->result->text);
    else if (answer->error)
        snprintf(w->text, sizeof w->text, "error %d %s", answer->error->code, answer->error->message);
    else
        snprintf(w->text, sizeof w->text, "%s", answer->why);
}

static void on_progress(void *ctx, const weft_json *progress) {
    world *w = ctx;
    w->progress += (int) weft_get_int(progress, "progress", 0);
}

static int ask_it(world *w, const char *method, weft_val params, const char *list, weft_mcp_request **ret) {
    weft_mcp_call call = {
        .method = method, .params = params, .list = list, .done = on_done, .on_progress = on_progress, .ctx = w};
    return only(w) ? weft__mcp_request(only(w), &call, ret) : -ENOENT;
}

/* ---- scripts ---- */

#define INIT                                                                                                                \
    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{},\"resources\":{\"subscribe\":true}},"               \
    "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}"

static const char *result(world *w, long long id, const char *json) {
    snprintf(w->reply, sizeof w->reply, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":%s}", id, json);
    return w->reply;
}

static const char *refuse(world *w, long long id) {
    snprintf(w->reply, sizeof w->reply, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"error\":{\"code\":-32601,\"message\":\"no\"}}",
             id);
    return w->reply;
}

static const char *older(world *w, const weft_json *message, const char *method, long long id) {
    weft_json params = weft_get(message, "params");
    if (strcmp(method, "initialize") == 0)
        return result(w, id, INIT);
    if (strcmp(method, "tools/list") == 0) /* in two pages */
        return result(w, id,
                      weft_get(&params, "cursor").text
                          ? "{\"tools\":[{\"name\":\"b\"}]}"
                          : "{\"tools\":[{\"name\":\"a\",\"outputSchema\":{\"type\":\"object\",\"required\":[\"n\"]}},7],"
                            "\"nextCursor\":\"c\"}");
    if (strcmp(method, "tools/call") == 0 && strcmp(weft_get_str(&params, "name", ""), "a") == 0)
        return result(w, id, "{\"content\":[],\"structuredContent\":{}}");
    if (strcmp(method, "tools/call") == 0)
        return result(w, id, "{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}");
    return id ? refuse(w, id) : NULL;
}

static const char *modern(world *w, const weft_json *message, const char *method, long long id) {
    weft_json params = weft_get(message, "params");
    if (strcmp(method, "server/discover") == 0)
        return result(
            w, id, "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}}}");
    if (strcmp(method, "tools/list") == 0)
        return result(w, id, "{\"resultType\":\"complete\",\"tools\":[{\"name\":\"b\"}]}");
    if (strcmp(method, "tools/call") == 0 && !weft_get(&params, "inputResponses").text)
        return result(
            w, id,
            "{\"resultType\":\"input_required\",\"requestState\":\"s\\u00e9\",\"inputRequests\":{\"k\":{\"method\":"
            "\"elicitation/create\",\"params\":{\"message\":\"Well?\",\"requestedSchema\":{\"type\":\"object\","
            "\"properties\":{}}}},\"r\":{\"method\":\"roots/list\"}}}");
    if (strcmp(method, "tools/call") == 0)
        return result(w, id, "{\"resultType\":\"complete\",\"content\":[]}");
    return id ? refuse(w, id) : NULL;
}

static const char *silent(world *w, const weft_json *message, const char *method, long long id) {
    (void) w, (void) message, (void) method, (void) id;
    return NULL;
}

/* It says nothing to what it does not know, as some do. */
static const char *deaf(world *w, const weft_json *message, const char *method, long long id) {
    return strcmp(method, "server/discover") == 0 ? NULL : older(w, message, method, id);
}

static const char *quiet_call(world *w, const weft_json *message, const char *method, long long id) {
    return strcmp(method, "tools/call") == 0 ? NULL : older(w, message, method, id);
}

static const char *more_and_more(world *w, const weft_json *message, const char *method, long long id) {
    if (strcmp(method, "server/discover") == 0)
        return modern(w, message, method, id);
    if (strcmp(method, "tools/list") == 0)
        return result(w, id, "{\"tools\":[]}");
    w->rounds++;
    return result(w, id, "{\"resultType\":\"input_required\",\"requestState\":\"x\"}");
}

/* ---- tests ---- */

#define CALL(name_) WEFT_OBJ({"name", weft_str(name_)}, {"arguments", weft_obj(NULL, 0)})

TEST(the_older_era) {
    world w;
    world_open(&w, older, 0);
    CHECK_INT(ask_it(&w, "tools/list", weft_none(), "tools", NULL), 0);
    CHECK_INT(w.done, 0);
    settle(&w);
    CHECK_INT(w.done, 1);
    CHECK_STR(w.text,
              "{\"tools\":[{\"name\":\"a\",\"outputSchema\":{\"type\":\"object\",\"required\":[\"n\"]}},{\"name\":\"b\"}]}");
    CHECK(strstr(w.sent, "server/discover") && strstr(w.sent, "\"2025-11-25\"") &&
          strstr(w.sent, "notifications/initialized"));
    CHECK(strstr(w.events, "mcp.started") != NULL);
    CHECK_INT(ask_it(&w, "tools/call", CALL("b"), NULL, NULL), 0);
    settle(&w);
    CHECK_STR(w.text, "{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}");
    CHECK_INT(ask_it(&w, "tools/call", CALL("a"), NULL, NULL), 0);
    settle(&w);
    CHECK_INT(w.r, -EBADMSG);
    CHECK(strstr(w.text, "outputSchema") != NULL);
    CHECK_INT(ask_it(&w, "prompts/get", weft_none(), NULL, NULL), 0);
    settle(&w);
    CHECK_STR(w.text, "error -32601 no");
    CHECK_INT(w.opened, 1);
    world_close(&w);
}

TEST(the_modern_era) {
    world w;
    world_open(&w, modern, 0);
    CHECK_INT(ask_it(&w, "tools/call", CALL("b"), NULL, NULL), 0);
    settle(&w);
    CHECK_INT(w.done, 0);
    CHECK_STR(w.asked, "The MCP server one asks: Well?");
    REQUIRE(w.ask != NULL);
    weft__mcp_answered(w.ask, "decline", NULL);
    settle(&w);
    CHECK_STR(w.text, "{\"resultType\":\"complete\",\"content\":[]}");
    CHECK(strstr(w.sent, "initialize") == NULL);
    CHECK(strstr(w.sent, "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"") != NULL);
    CHECK(strstr(w.sent, "\"requestState\":\"s\\u00e9\"") != NULL);
    CHECK(strstr(w.sent, "\"k\":{\"action\":\"decline\"}") != NULL);
    CHECK(strstr(w.sent, "\"r\":{\"roots\":[{\"uri\":\"file:///srv/a%20b\",\"name\":\"a b\"}]}") != NULL);
    world_close(&w);
}

TEST(input_is_not_asked_for_for_ever) {
    world w;
    world_open(&w, more_and_more, 0);
    ask_it(&w, "tools/call", CALL("b"), NULL, NULL);
    settle(&w);
    CHECK_INT(w.done, 1);
    CHECK_INT(w.r, -EMSGSIZE);
    CHECK_INT(w.rounds, WEFT_MCP_ROUNDS + 1);
    world_close(&w);
}

TEST(a_server_that_ignores_what_it_does_not_know) {
    world w;
    world_open(&w, deaf, 0);
    ask_it(&w, "tools/list", weft_none(), "tools", NULL);
    settle(&w);
    CHECK_INT(w.done, 0);
    pass(&w, 600); /* the probe is over */
    CHECK_INT(w.done, 1);
    CHECK_INT(w.r, 0);
    world_close(&w);
}

TEST(a_server_that_says_nothing) {
    world w;
    world_open(&w, silent, 0);
    ask_it(&w, "tools/list", weft_none(), "tools", NULL);
    settle(&w);
    pass(&w, 600);
    pass(&w, 600); /* the request's own time */
    CHECK_INT(w.done, 1);
    CHECK_INT(w.r, -ETIMEDOUT);
    pass(&w, 60000);
    CHECK(strstr(w.events, "mcp.failed") != NULL);
    CHECK_INT(only(&w)->state, WEFT_MCP_RESTING);
    pass(&w, 60000);
    CHECK_INT(only(&w)->state, WEFT_MCP_IDLE);
    world_close(&w);
}

TEST(time_progress_and_cancelling) {
    world w;
    weft_mcp_request *request = NULL;
    world_open(&w, quiet_call, 0);
    ask_it(&w, "tools/call", CALL("b"), NULL, &request);
    settle(&w);
    CHECK_INT(w.done, 0);
    for (int i = 0; i < 5; i++) { /* each is told, and gives it more time */
        char text[200];
        pass(&w, 900);
        snprintf(text, sizeof text,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"weft-%llu\","
                 "\"progress\":1}}",
                 (unsigned long long) request->number);
        say_to(&w, text);
    }
    CHECK_INT(w.progress, 5);
    CHECK_INT(w.done, 0);
    pass(&w, 1100);
    CHECK_INT(w.r, -ETIMEDOUT);
    CHECK(strstr(w.sent, "notifications/cancelled") != NULL);
    w.sent[0] = '\0';
    ask_it(&w, "tools/call", CALL("b"), NULL, &request);
    settle(&w);
    weft__mcp_cancel(request);
    CHECK_INT(w.done, 1); /* told later */
    settle(&w);
    CHECK_INT(w.done, 2);
    CHECK_INT(w.r, -ECANCELED);
    CHECK(strstr(w.sent, "notifications/cancelled") != NULL);
    world_close(&w);
}

TEST(what_a_server_may_ask) {
    world w;
    world_open(&w, quiet_call, 0);
    ask_it(&w, "tools/call", CALL("b"), NULL, NULL);
    settle(&w);
    w.sent[0] = '\0';
    say_to(&w, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}");
    say_to(&w, "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"method\":\"roots/list\"}");
    say_to(&w, "{\"jsonrpc\":\"2.0\",\"id\":\"u\",\"method\":\"fs/read\"}");
    say_to(&w, "{\"jsonrpc\":\"2.0\",\"id\":\"j\",\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"url\":"
               "\"javascript:alert(1)\"}}");
    say_to(&w, "{\"jsonrpc\":\"2.0\",\"id\":\"f\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\","
               "\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\"}}}}}");
    settle(&w);
    CHECK(strstr(w.sent, "\"id\":\"p\",\"result\":{}") && strstr(w.sent, "\"id\":\"u\",\"error\":{\"code\":-32601"));
    CHECK(strstr(w.sent, "\"id\":\"j\",\"error\":{\"code\":-32602") && strstr(w.sent, "\"id\":\"f\",\"error\""));
    CHECK(w.ask == NULL);
    for (int i = 0; i < WEFT_MCP_ASKS + 1; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "{\"jsonrpc\":\"2.0\",\"id\":\"q%d\",\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[{"
                 "\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"two and two\"}}]}}",
                 i);
        say_to(&w, text);
    }
    settle(&w);
    CHECK(strstr(w.asked, "two and two") != NULL);
    CHECK(strstr(w.sent, "too many questions") != NULL);
    CHECK_INT(only(&w)->ask_count, WEFT_MCP_ASKS);
    say_to(&w, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"q7\"}}");
    settle(&w);
    CHECK_INT(w.unasked, 1);
    CHECK_INT(only(&w)->ask_count, WEFT_MCP_ASKS - 1);
    weft__mcp_failed(only(&w), -ECONNRESET, "gone");
    settle(&w);
    CHECK_INT(w.unasked, WEFT_MCP_ASKS);
    CHECK_INT(w.done, 1);
    world_close(&w);
}

TEST(changes_are_told_once_a_second) {
    world w;
    world_open(&w, older, 0);
    CHECK_INT(only(&w) ? weft__mcp_subscribe(only(&w), "x://a") : -1, 0);
    CHECK_INT(weft__mcp_subscribe(only(&w), "x://a"), -EALREADY);
    settle(&w);
    CHECK(strstr(w.sent, "resources/subscribe") != NULL);
    w.events[0] = '\0';
    for (int i = 0; i < 100; i++)
        say_to(&w, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    say_to(&w, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"x://a\"}}");
    say_to(&w, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"x://b\"}}");
    CHECK_STR(w.events, "mcp.resourceUpdated {\"server\":\"one\",\"uri\":\"x://a\"}\n");
    pass(&w, 1100);
    CHECK_STR(w.events, "mcp.resourceUpdated {\"server\":\"one\",\"uri\":\"x://a\"}\n"
                        "mcp.listChanged {\"server\":\"one\",\"list\":\"tools\"}\n");
    CHECK_INT(weft__mcp_unsubscribe(only(&w), "x://a"), 0);
    CHECK_INT(weft__mcp_unsubscribe(only(&w), "x://a"), -ENOENT);
    settle(&w);
    CHECK(strstr(w.sent, "resources/unsubscribe") != NULL);
    pass(&w, 6 * 60 * 1000);
    CHECK_INT(only(&w)->state, WEFT_MCP_IDLE);
    CHECK(strstr(w.events, "mcp.ended {\"server\":\"one\",\"reason\":\"idle\"}") != NULL);
    world_close(&w);
}

TEST(limits_on_what_is_asked) {
    world w;
    world_open(&w, silent, 0);
    int r = 0, count = 0;
    while ((r = ask_it(&w, "tools/list", weft_none(), NULL, NULL)) == 0)
        count++;
    CHECK_INT(r, -ENOBUFS);
    CHECK_INT(count, WEFT_MCP_REQUESTS);
    weft__mcp_end(w.mcp);
    settle(&w);
    CHECK_INT(w.done, WEFT_MCP_REQUESTS);
    CHECK_INT(ask_it(&w, "tools/list", weft_none(), NULL, NULL), -ESHUTDOWN);
    world_close(&w);
}

TEST(a_server_that_is_another_now) {
    static const char *const other[] = {"other", NULL};
    weft_mcp_spec changed = specs[0];
    world w;
    world_open(&w, quiet_call, 0);
    ask_it(&w, "tools/call", CALL("b"), NULL, NULL);
    settle(&w);
    changed.idle_ms = 5;
    CHECK_INT(weft__mcp_set(w.mcp, &(weft_mcp_specs){&changed, 1}, false), 0);
    settle(&w);
    CHECK_INT(w.done, 0);
    weft_mcp_spec replaced = changed;
    replaced.argv = other;
    CHECK_INT(weft__mcp_set(w.mcp, &(weft_mcp_specs){&replaced, 1}, false), 0);
    settle(&w);
    CHECK_INT(w.done, 1);
    CHECK_INT(w.r, -ECANCELED);
    CHECK_INT(only(&w)->state, WEFT_MCP_IDLE);
    world_close(&w);
}

TEST(where_messages_are_sent) {
    static const struct {
        const char *base, *text, *want;
    } rows[] = {
        {"http://h:80/sse", "/messages?s=1", "http://h:80/messages?s=1"},
        {"http://h/a/sse?x=/y", "messages", "http://h/a/messages"},
        {"http://h", "messages", "http://h/messages"},
        {"http://h/sse", "http://h:80/m", "http://h:80/m"},
        {"http://h/sse", "HTTP://other/m", NULL},
        {"http://h/sse", "http://h:81/m", NULL},
        {"http://h/sse", "https://h/m", NULL},
        {"http://h/sse", "//other/m", NULL},
        {"http://h/sse", "http://h@other/m", NULL},
        {"http://h/sse", "http://h.other/m", NULL},
        {"http://h/sse", "javascript:x", "http://h/javascript:x"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *url = NULL;
        test_row(rows[i].text);
        int r = weft__mcp_resolve(rows[i].base, (weft_bytes){rows[i].text, strlen(rows[i].text)}, NULL, &url);
        CHECK_INT(r, rows[i].want ? 0 : -EINVAL);
        if (rows[i].want)
            CHECK_STR(url, rows[i].want);
        weft__free(NULL, url);
    }
}

TEST(headers_say_what_the_message_says) {
    static const struct {
        const char *text, *want;
    } rows[] = {{"plain", "plain"},
                {"", ""},
                {"h\xc3\xa9", "=?base64?aMOp?="},
                {" x", "=?base64?IHg=?="},
                {"a\r\nb", "=?base64?YQ0KYg==?="},
                {"=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_buf out = {0};
        test_row(rows[i].want);
        CHECK_INT(weft__mcp_header_value(NULL, (weft_bytes){rows[i].text, strlen(rows[i].text)}, &out), 0);
        CHECK_TEXT(weft__buf_len(&out) ? weft__buf_head(&out) : "", weft__buf_len(&out), rows[i].want);
        weft__buf_done(&out, NULL);
    }
}

/* A tool whose marks are not right is none that can be used. */
static const char *marked(world *w, const weft_json *message, const char *method, long long id) {
    if (strcmp(method, "tools/list") == 0)
        return result(
            w, id,
            "{\"tools\":[{\"name\":\"good\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"o\":{\"type\":\"object\","
            "\"properties\":{\"p\":{\"type\":\"string\",\"x-mcp-header\":\"P\"}}},\"n\":{\"type\":\"integer\","
            "\"x-mcp-header\":\"N\"}}}},"
            "{\"name\":\"twice\",\"inputSchema\":{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},\"b\":{"
            "\"type\":\"string\",\"x-mcp-header\":\"a\"}}}},"
            "{\"name\":\"items\",\"inputSchema\":{\"properties\":{\"a\":{\"items\":{\"type\":\"string\",\"x-mcp-header\":"
            "\"A\"}}}}},"
            "{\"name\":\"break\",\"inputSchema\":{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\\r\\nB\"}}"
            "}}]}");
    return modern(w, message, method, id);
}

TEST(params_that_are_headers_too) {
    world w;
    weft_doc *params = NULL;
    weft_buf out = {0};
    static const char text[] = "{\"name\":\"good\",\"arguments\":{\"o\":{\"p\":\"\\u00e9\"},\"n\":42}}";
    static const char want[] = "Mcp-Param-P\0=?base64?w6k=?=\0Mcp-Param-N\00042";
    world_open(&w, marked, 0);
    ask_it(&w, "tools/list", weft_none(), "tools", NULL);
    settle(&w);
    CHECK(strstr(w.text, "good") && !strstr(w.text, "twice") && !strstr(w.text, "items") && !strstr(w.text, "break"));
    CHECK_INT(weft_doc_parse(text, sizeof text - 1, NULL, &params), 0);
    CHECK_INT(weft__mcp_param_headers(only(&w), weft_doc_root(params), &out), 0);
    CHECK(weft__buf_len(&out) == sizeof want && memcmp(weft__buf_head(&out), want, sizeof want) == 0);
    weft__buf_done(&out, &w.memory.alloc);
    weft_doc_free(params);
    world_close(&w);
}

/* Everything from the start to an answer, with each allocation failing once: one end for each request, nothing left. */
static void try_memory(script *play, const char *name) {
    long fail_at = 1;
    for (bool failed = true; failed && fail_at < 5000; fail_at++) {
        world w;
        world_open(&w, play, fail_at);
        int asked = ask_it(&w, "tools/list", weft_none(), "tools", NULL) >= 0;
        settle(&w);
        asked += ask_it(&w, "tools/call", CALL("b"), NULL, NULL) >= 0;
        settle(&w);
        if (w.ask)
            weft__mcp_answered(w.ask, "accept", NULL);
        settle(&w);
        pass(&w, 120000);
        CHECK_INT(w.done, asked);
        failed = w.memory.count >= fail_at;
        world_close(&w);
    }
    test_row(name);
    CHECK(fail_at > 50 && fail_at < 5000);
    test_row(NULL);
}

TEST(memory_fails) {
    try_memory(older, "the older era");
    try_memory(modern, "the modern era");
}

TEST_MAIN(CASE(the_older_era) CASE(the_modern_era) CASE(input_is_not_asked_for_for_ever)
              CASE(a_server_that_ignores_what_it_does_not_know) CASE(a_server_that_says_nothing)
                  CASE(time_progress_and_cancelling) CASE(what_a_server_may_ask) CASE(changes_are_told_once_a_second)
                      CASE(limits_on_what_is_asked) CASE(a_server_that_is_another_now) CASE(where_messages_are_sent)
                          CASE(headers_say_what_the_message_says) CASE(params_that_are_headers_too) CASE(memory_fails))
