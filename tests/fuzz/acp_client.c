/* What editors say to the hub, above the codec: two clients of ACP, in the current form and in the older one, and an agent,
 * all of which do anything at any moment.
 *
 * The first byte says who begins how. Then come steps that end with a line end: "a" or "b" and what that client says as a
 * line, "u" and what the agent says as the update of a session, "q" and what it asks, "e" the end of its turn, "f" its
 * failure, "d" a client that goes and comes again. What must hold: nothing crashes, all that is said to a client is lines of
 * JSON, and nothing is left allocated. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_memory.h"
#include "hub_client.h"

#define MAX_STEPS 40

/* The checks of the hub in a box. */
bool test_check(bool ok, const char *file, int line, const char *what) {
    (void) file, (void) line, (void) what;
    require(ok);
    return ok;
}

bool test_check_int(int64_t is, int64_t want, const char *file, int line, const char *what) {
    return test_check(is == want, file, line, what);
}

bool test_check_text(const char *is, size_t is_len, const char *want, size_t want_len, const char *file, int line,
                     const char *what) {
    return test_check(is && is_len == want_len && memcmp(is, want, want_len) == 0, file, line, what);
}

/* ---- clients ---- */

static void begin_client(hub_world *w, hub_client *c, unsigned how) {
    static const char *const beginnings[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":\"initialize\",\"params\":{\"protocol_version\":\"0.7.0\"}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":\"initialize\",\"params\":{\"protocolVersion\":1,"
        "\"clientCapabilities\":{\"_meta\":"
        "{\"weft/positions\":true}}}}\n",
        "",
    };
    static const char made[] =
        "{\"jsonrpc\":\"2.0\",\"id\":\"n\",\"method\":\"session/new\",\"params\":{\"cwd\":\"/srv/project\","
        "\"mcpServers\":[]}}\n";
    const char *first = beginnings[how % 4];
    hub_connect(w, how & 4 ? "cdev" : "acp", c);
    require(weft_peer_feed(c->peer, first, strlen(first), 1) >= 0);
    if (how & 8)
        require(weft_peer_feed(c->peer, made, strlen(made), 1) >= 0);
    hub_settle(w);
}

static void read_client(hub_client *c) {
    for (const char *line; (line = hub_take(c));) {
        weft_doc *doc = NULL;
        require(weft_doc_parse(line, strlen(line), NULL, &doc) == 0);
        weft_doc_free(doc);
    }
}

static void say_line(hub_client *c, const char *text, size_t len) {
    if (c->peer && weft_peer_feed(c->peer, text, len, 1) < 0)
        hub_disconnect(c);
    if (c->peer && weft_peer_feed(c->peer, "\n", 1, 1) < 0)
        hub_disconnect(c);
}

/* ---- the agent ---- */

static weft_run *any_run(hub_world *w) {
    for (size_t i = 0; i < w->run_count; i++)
        if (!w->runs[i]->over)
            return w->runs[i];
    return NULL;
}

static void update_session(weft_run *run, const char *text, size_t len) {
    weft_doc *doc = NULL;
    if (weft_doc_parse(text, len, NULL, &doc) < 0)
        return;
    run->host->on_update(run->ctx, weft_doc_root(doc));
    weft_doc_free(doc);
}

static void ask_question(weft_run *run, const char *text, size_t len) {
    weft_doc *doc = NULL;
    if (weft_doc_parse(text, len, NULL, &doc) < 0)
        return;
    if (weft_typeof(weft_doc_root(doc)) == WEFT_OBJECT)
        run->host->on_ask(run->ctx, "k", weft_raw(text, len));
    weft_doc_free(doc);
}

/* ---- steps ---- */

static void take_step(hub_world *w, hub_client clients[2], const char *text, size_t len) {
    weft_run *run = any_run(w);
    char what = len ? *text++ : ' ';
    len -= len > 0;
    if (what == 'a' || what == 'b')
        say_line(&clients[what == 'b'], text, len);
    else if (what == 'd') {
        hub_disconnect(&clients[len % 2]);
        begin_client(w, &clients[len % 2], len ? (unsigned char) *text : 0);
    } else if (run && what == 'u')
        update_session(run, text, len);
    else if (run && what == 'q')
        ask_question(run, text, len);
    else if (run && (what == 'e' || what == 'f'))
        hub_end(run, &(weft_run_end){.ok = what == 'e', .reason = what == 'e' ? NULL : "agentError", .error = "it broke"});
    hub_settle(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hub_world w;
    hub_client clients[2];
    const char *at = (const char *) data, *end = at + size;
    unsigned how = size ? data[0] : 0;
    live = 0;
    require(hub_init(&w, &(hub_opts){.alloc = &counting}) == 0);
    begin_client(&w, &clients[0], how);
    begin_client(&w, &clients[1], how >> 4);
    at += size > 0;
    for (int steps = 0; at < end && steps < MAX_STEPS; steps++) {
        const char *stop = memchr(at, '\n', (size_t) (end - at));
        size_t len = (size_t) ((stop ? stop : end) - at);
        take_step(&w, clients, at, len);
        read_client(&clients[0]);
        read_client(&clients[1]);
        at += len + 1;
    }
    for (weft_run *run; (run = any_run(&w));) {
        hub_end(run, &(weft_run_end){.ok = true});
        hub_settle(&w);
    }
    hub_disconnect(&clients[0]);
    hub_disconnect(&clients[1]);
    hub_done(&w);
    require(live == 0);
    return 0;
}
