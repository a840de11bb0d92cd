/* Requests of connections that are no clients, and requests that are open when their connection or the hub goes. */
#include "hub_world.h"

static weft_peer *peer_with(hub_world *w, const char *scopes) {
    weft_identity who = {
        .transport = "mem", .dialect = "weft", .name = "", .scopes = scopes, .address = "", .authenticated = true};
    weft_peer *peer = NULL;
    CHECK_INT(weft_peer_new(w->service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &who}, &peer), 0);
    return peer;
}

static weft_peer *peer_of(hub_world *w) {
    return peer_with(w, "*");
}

static void say(weft_peer *peer, const char *text) {
    CHECK_INT(weft_peer_feed(peer, text, strlen(text), 1), 0);
}

/* The output does not end with a NUL. */
static bool says(weft_peer *peer, const char *part) {
    weft_bytes out = weft_peer_output(peer);
    return memmem(out.data, out.len, part, strlen(part)) != NULL;
}

/* An HTTP POST has a peer that is never opened as a client. */
TEST(who_cannot_listen_cannot_subscribe) {
    hub_world w;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    weft_peer *post = peer_of(&w), *socket = peer_of(&w);
    static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"event.subscribe\"}\n";
    say(post, request);
    CHECK(says(post, "\"reason\":\"cannotListen\""));
    weft_peer_sent(post, weft_peer_output(post).len);
    weft__hub_clients_open(w.hub.clients, socket);
    say(post, request);
    CHECK(says(post, "\"reason\":\"cannotListen\""));
    say(post, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"agent/run\",\"params\":{\"prompt\":\"x\"}}\n");
    HUB_UNTIL(&w, hub_run(&w, "task-0000"));
    hub_run(&w, "task-0000")->host->on_process(hub_run(&w, "task-0000")->ctx, 77);
    HUB_UNTIL(&w, memmem(weft_peer_output(post).data, weft_peer_output(post).len, "\"pid\":77", 8));
    weft__hub_clients_close(w.hub.clients, post);
    weft_peer_free(post);
    weft__hub_clients_close(w.hub.clients, socket);
    weft_peer_free(socket);
    hub_done(&w);
}

/* Requests that wait for the store when their connection, or the hub, goes. */
TEST(requests_that_are_still_open_at_the_end) {
    static const char requests[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"event.subscribe\",\"params\":{\"after\":0}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"agent/run\",\"params\":{\"prompt\":\"x\"}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"agent.use\",\"params\":{\"agent\":\"double\"}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"task.submit\",\"params\":{\"prompt\":\"x\"}}\n";
    hub_world w;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    weft_peer *a = peer_of(&w), *b = peer_of(&w), *c = peer_of(&w);
    weft__hub_clients_open(w.hub.clients, a);
    weft__hub_clients_open(w.hub.clients, b);
    say(a, requests);
    weft__hub_clients_close(w.hub.clients, a);
    weft_peer_free(a);
    hub_settle(&w);
    static char much[64 * 1024];
    memset(much, 'x', sizeof much);
    weft_run *run = hub_run(&w, "task-0000");
    REQUIRE(run != NULL);
    run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){much, sizeof much});
    hub_settle(&w);
    say(c, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"task.get\",\"params\":{\"taskId\":\"task-0000\"}}\n");
    say(b, requests);
    CHECK_INT(weft_peer_open_requests(b), 3); /* agent/run is refused at once, the other one runs */
    CHECK_INT(weft_peer_open_requests(c), 1);
    hub_done(&w);
    weft_peer_free(b);
    weft_peer_free(c);
}

/* Who may work may not name what is run, nor where. */
TEST(programs_and_folders_need_their_scope) {
    static const char servers[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session.create\",\"params\":{\"mcpServers\":[{\"name\":\"x\"}]}}\n";
    static const char folder[] =
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session.create\",\"params\":{\"folder\":\"x\"}}\n";
    hub_world w;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    weft_peer *peer = peer_with(&w, "read work admin metrics");
    say(peer, servers);
    hub_settle(&w);
    CHECK(says(peer, "\"id\":1,\"error\":{\"code\":403") && says(peer, "forbidden"));
    say(peer, folder);
    hub_settle(&w);
    CHECK(says(peer, "\"id\":2,\"error\":{\"code\":403"));
    weft_peer_free(peer);
    peer = peer_with(&w, "work exec");
    say(peer, servers);
    say(peer, folder);
    hub_settle(&w);
    CHECK(says(peer, "agentCannot") && says(peer, "there is no such folder") && !says(peer, "forbidden"));
    weft_peer_free(peer);
    hub_done(&w);
}

TEST_MAIN(CASE(programs_and_folders_need_their_scope) CASE(who_cannot_listen_cannot_subscribe)
              CASE(requests_that_are_still_open_at_the_end))
