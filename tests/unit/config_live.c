/* What changes while clients are connected: the limits of a service, the hosts and origins of a server. */
#include "net_world.h"
#include "peer_kit.h"

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n"
#define PONG "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n"

static weft_peer *new_client(weft_service *service) {
    static const weft_identity who = {.transport = "tcp", .address = "192.0.2.1"};
    weft_peer *peer = NULL;
    CHECK_INT(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &who}, &peer), 0);
    return peer;
}

/* How many of n requests at this time are answered with a result. */
static int ask(weft_peer *peer, int n, int64_t now) {
    int answered = 0;
    for (int i = 0; i < n; i++) {
        CHECK_INT(kit_say(peer, PING, now), 0);
        char *says = kit_take(peer, NULL);
        answered += strcmp(says, PONG) == 0;
        free(says);
    }
    return answered;
}

TEST(the_rate_of_connected_clients) {
    weft_service *service = NULL;
    weft_service_opts opts = {.methods = world_methods, .limits = {.rate_per_minute = 2}};
    CHECK_INT(weft_service_new(&opts, &service), 0);
    weft_peer *peer = new_client(service);
    CHECK_INT(ask(peer, 5, 1), 2);
    weft_service_set_limits(service, &(weft_limits){.rate_per_minute = 0});
    CHECK_INT(ask(peer, 5, 2), 5);
    weft_service_set_limits(service, &(weft_limits){.rate_per_minute = 3});
    CHECK_INT(ask(peer, 5, 2 + 60000), 3);
    weft_peer_free(peer);
    weft_service_unref(service);
}

TEST(a_rate_where_there_was_none) {
    weft_service *service = NULL;
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = world_methods}, &service), 0);
    weft_peer *old = new_client(service);
    weft_service_set_limits(service, &(weft_limits){.rate_per_minute = 1});
    CHECK_INT(ask(old, 3, 1), 3);
    weft_peer *fresh = new_client(service);
    CHECK_INT(ask(fresh, 3, 1), 1);
    weft_peer_free(old);
    weft_peer_free(fresh);
    weft_service_unref(service);
}

TEST(other_limits) {
    weft_service *service = NULL;
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = world_methods, .limits = {.max_batch = 1}}, &service), 0);
    weft_peer *peer = new_client(service);
    static const char batch[] = "[{\"jsonrpc\":\"2.0\",\"method\":\"echo\"},{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}]\n";
    CHECK_INT(kit_say(peer, batch, 1), 0);
    CHECK(weft_peer_output(peer).len > 0);
    weft_peer_sent(peer, weft_peer_output(peer).len);
    /* Zero is the default again. */
    weft_service_set_limits(service, &(weft_limits){0});
    CHECK_INT(kit_say(peer, batch, 1), 0);
    CHECK_INT(weft_peer_output(peer).len, 0);
    weft_peer_free(peer);
    weft_service_unref(service);
}

/* The status of a request to either endpoint. */
static int health(world *w, size_t endpoint, const char *header) {
    char request[256];
    const char *body;
    snprintf(request, sizeof request, "GET /health HTTP/1.1\r\n%s\r\n\r\n", header);
    return world_http(w, endpoint, &body, request);
}

#define OF_HOST "Host: weft.example"
#define OF_PAGE "Host: localhost\r\nOrigin: https://app.example"

TEST(hosts_and_origins) {
    static const char *const hosts[] = {"weft.example", NULL}, *const origins[] = {"https://app.example", NULL};
    world *w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(w->server, "http://127.0.0.1:0/rpc", NULL), 0);
    CHECK_INT(weft_server_listen(w->server, "ws://127.0.0.1:0/ws", &(weft_listen_opts){.hosts = hosts}), 0);
    CHECK_INT(health(w, 0, OF_HOST), 421);
    CHECK_INT(health(w, 1, OF_HOST), 200);
    CHECK_INT(health(w, 0, OF_PAGE), 403);
    CHECK_INT(weft_server_allow(w->server, hosts, origins), 0);
    for (size_t i = 0; i < 2; i++) {
        CHECK_INT(health(w, i, OF_HOST), 200);
        CHECK_INT(health(w, i, OF_PAGE), 200);
    }
    CHECK_INT(weft_server_allow(w->server, NULL, NULL), 0);
    for (size_t i = 0; i < 2; i++) {
        CHECK_INT(health(w, i, OF_HOST), 421);
        CHECK_INT(health(w, i, OF_PAGE), 403);
    }
    world_free(w);
}

/* All of the change, or nothing of it. */
TEST(failing_allocations) {
    static const char *const before[] = {"before.example", NULL}, *const after[] = {"after.example", "more", NULL};
    test_memory memory;
    weft_service *service = NULL;
    weft_loop *loop = NULL;
    weft_server *server = NULL;
    int r = -ENOMEM;
    test_memory_init(&memory, 0);
    CHECK_INT(weft_service_new(&(weft_service_opts){.alloc = &memory.alloc}, &service), 0);
    CHECK_INT(weft_loop_new(&memory.alloc, &loop), 0);
    CHECK_INT(weft_server_new(loop, &(weft_server_opts){.service = service}, &server), 0);
    weft_listen_opts opts = {.hosts = before, .origins = before};
    CHECK_INT(weft_server_listen(server, "http://127.0.0.1:0/rpc", &opts), 0);
    CHECK_INT(weft_server_listen(server, "http://127.0.0.1:0/rpc", &opts), 0);
    long live = memory.live, failed = 0;
    for (long n = 1; r == -ENOMEM && n < 100; n++) {
        memory.fail_at = memory.count + n;
        r = weft_server_allow(server, after, after);
        failed += r < 0;
        if (r < 0)
            CHECK_INT(memory.live, live);
    }
    CHECK_INT(r, 0);
    CHECK(failed > 4);
    weft_server_free(server);
    weft_loop_free(loop);
    weft_service_unref(service);
    CHECK_INT(memory.live, 0);
}

TEST_MAIN(CASE(the_rate_of_connected_clients) CASE(a_rate_where_there_was_none) CASE(other_limits) CASE(hosts_and_origins)
              CASE(failing_allocations))
