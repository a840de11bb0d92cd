/* What an MCP server sends, above the framing: a server of either era that says anything at any moment, as lines and as
 * server-sent events.
 *
 * The first byte: bit 0 which era is claimed to begin with, bit 1 whether what follows comes as events, bits 2.. how it is
 * cut. In what follows, "@I" stands for the number of the call that waits. What must hold: nothing crashes, what is asked
 * ends exactly once, all that is sent is lines of JSON, events do not depend on how they are cut, and nothing is left. */
#include <stdint.h>
#include <string.h>

#include "fuzz_memory.h"
#include "link.h"
#include "mcp_private.h"
#include "sse_in.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LARGEST_INPUT 4096

static int open_fuzzed(weft_mcp_server *server) {
    weft_peer_opts opts = {.framing = &weft_ndjson, .style = WEFT_STYLE_MCP, .no_batch = true};
    server->line = &live;
    int r = weft_peer_new(server->service, &opts, &server->peer);
    return r < 0 ? r : weft__mcp_negotiate(server);
}

static void close_fuzzed(weft_mcp_server *server) {
    (void) server;
}

static const weft_mcp_wire fuzzed = {.name = "fuzzed", .open = open_fuzzed, .close = close_fuzzed};

static weft_mcp_ask *last_ask;

static int ask_nobody(void *ctx, weft_mcp_ask *ask, const char *title, weft_val detail) {
    char *text;
    size_t len;
    (void) ctx, (void) title;
    require(weft_to_text(detail, NULL, &text, &len) >= 0);
    weft_text_free(text, NULL);
    last_ask = ask;
    return 0;
}

static void unask_nobody(void *ctx, weft_mcp_ask *ask) {
    (void) ctx;
    if (last_ask == ask)
        last_ask = NULL;
}

static const weft_mcp_host host = {.ask = ask_nobody, .unask = unask_nobody};

static void count_done(void *ctx, const weft_mcp_answer *answer) {
    require(answer->r < 0 || !answer->result != !answer->error);
    ++*(int *) ctx;
}

/* ---- both sides ---- */

static void read_output(weft_mcp_server *server) {
    weft_bytes out = server->peer ? weft_peer_output(server->peer) : (weft_bytes){0};
    for (size_t at = 0; at < out.len;) {
        const char *end = memchr(out.data + at, '\n', out.len - at);
        size_t len = end ? (size_t) (end - out.data) - at : out.len - at;
        weft_doc *doc = NULL;
        require(end && weft_doc_parse(out.data + at, len, NULL, &doc) == 0);
        weft_doc_free(doc);
        at += len + 1;
    }
    if (out.len)
        weft_peer_sent(server->peer, out.len);
}

static void say_bytes(weft_mcp *mcp, const char *text, size_t len) {
    weft_mcp_server *server = weft__mcp_first(mcp);
    weft_peer *peer = server->peer;
    if (peer && weft_peer_feed(peer, text, len, 1) < 0 && server->peer == peer)
        weft__mcp_failed(server, -5, "it broke the protocol");
}

static bool say_event(char *data, size_t len, void *ctx) {
    weft_mcp_server *server = weft__mcp_first(ctx);
    weft_peer *peer = server->peer;
    if (peer && weft__peer_body(peer, data, len, 1) < 0 && server->peer == peer)
        weft__mcp_failed(server, -5, "it broke the protocol");
    return true;
}

/* The call that waits: the one that negotiates, or the first request that was sent. */
static long long waiting_call(const weft_mcp_server *server) {
    if (server->opening)
        return server->opening;
    for (weft_link *link = server->requests.next; link != &server->requests; link = link->next)
        if (WEFT_CONTAINER(link, weft_mcp_request, link)->call)
            return WEFT_CONTAINER(link, weft_mcp_request, link)->call;
    return 0;
}

static void say_line(weft_mcp *mcp, const char *text, size_t len, weft_sse_in *events) {
    char line[LARGEST_INPUT + 64], *at = memmem(text, len, "@I", 2);
    int n = at ? snprintf(line, sizeof line, "%.*s%lld%.*s", (int) (at - text), text, waiting_call(weft__mcp_first(mcp)),
                          (int) (text + len - at - 2), at + 2)
               : snprintf(line, sizeof line, "%.*s", (int) len, text);
    size_t used = n < 0 || (size_t) n >= sizeof line - 2 ? sizeof line - 2 : (size_t) n;
    line[used++] = '\n';
    if (events)
        require(weft__sse_in(events, line, used, say_event, mcp) >= 0);
    else
        say_bytes(mcp, line, used);
}

/* ---- how events are cut ---- */

static bool hash_event(char *data, size_t len, void *ctx) {
    uint64_t *hash = ctx;
    for (size_t i = 0; i < len; i++)
        *hash = (*hash ^ (unsigned char) data[i]) * 1099511628211u;
    *hash = (*hash ^ 0x100) * 1099511628211u;
    return true;
}

static uint64_t hash_events(const char *data, size_t size, size_t piece, char id[WEFT_SSE_ID + 1], int64_t *ret_retry) {
    weft_sse_in in = {.alloc = &counting, .max = 256, .named = true};
    uint64_t hash = 14695981039346656037u;
    for (size_t at = 0; at < size; at += piece)
        require(weft__sse_in(&in, data + at, piece < size - at ? piece : size - at, hash_event, &hash) == 1);
    memcpy(id, in.id, sizeof in.id);
    *ret_retry = in.retry_ms;
    weft__sse_in_done(&in);
    return hash;
}

static void check_cuts(const char *data, size_t size, size_t piece) {
    static char whole_id[WEFT_SSE_ID + 1], cut_id[WEFT_SSE_ID + 1];
    int64_t whole_retry, cut_retry;
    if (!size)
        return;
    uint64_t whole = hash_events(data, size, size, whole_id, &whole_retry);
    require(whole == hash_events(data, size, piece, cut_id, &cut_retry));
    require(strcmp(whole_id, cut_id) == 0 && whole_retry == cut_retry);
}

/* ---- all of it ---- */

static void play(weft_loop *loop, const char *data, size_t size, unsigned how) {
    static const char *const argv[] = {"x", NULL};
    static const weft_mcp_spec spec = {.name = "x", .transport = WEFT_MCP_STDIO, .argv = argv};
    weft_mcp_opts opts = {.loop = loop, .alloc = &counting, .folder = "/srv", .host = &host};
    weft_sse_in events = {.alloc = &counting, .max = 1024, .named = true};
    weft_mcp *mcp;
    int done = 0;
    require(weft__mcp_new(&opts, &mcp) == 0 && weft__mcp_set(mcp, &(weft_mcp_specs){&spec, 1}, false) == 0);
    weft_mcp_server *server = weft__mcp_first(mcp);
    weft_mcp_call call = {.method = "tools/call",
                          .params = WEFT_OBJ({"name", weft_str("t")}, {"arguments", weft_obj(NULL, 0)}),
                          .done = count_done,
                          .ctx = &done};
    weft_mcp_call list = {.method = "tools/list", .list = "tools", .done = count_done, .ctx = &done};
    server->wire = &fuzzed;
    server->era = how & 1 ? WEFT_MCP_IS_LEGACY : WEFT_MCP_UNKNOWN;
    last_ask = NULL;
    require(weft__mcp_subscribe(server, "x://a") == 0);
    require(weft__mcp_request(server, &call, NULL) == 0 && weft__mcp_request(server, &list, NULL) == 0);
    for (const char *at = data, *end = data + size; at < end;) {
        const char *stop = memchr(at, '\n', (size_t) (end - at));
        size_t len = (size_t) ((stop ? stop : end) - at);
        say_line(mcp, at, len, how & 2 ? &events : NULL);
        if (last_ask && (len & 1)) {
            weft_mcp_ask *ask = last_ask;
            last_ask = NULL;
            weft__mcp_answered(ask, len & 2 ? "accept" : NULL, NULL);
        }
        read_output(server);
        weft_loop_once(loop, false);
        at += len + 1;
    }
    weft__sse_in_done(&events);
    weft__mcp_free(mcp);
    require(done == 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weft_loop *loop;
    if (size < 1 || size > LARGEST_INPUT)
        return 0;
    require(weft_loop_new(NULL, &loop) == 0);
    weft_loop_set_now(loop, 1000);
    play(loop, (const char *) data + 1, size - 1, data[0]);
    check_cuts((const char *) data + 1, size - 1, 1 + (data[0] >> 2) % 7);
    weft_loop_free(loop);
    require(live == 0);
    return 0;
}
