/* A peer that is paused by its user, and one that is spoken to after it has said its last word. */
#include <weft/weft.h>

#include "harness.h"

static const char two[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[1]}\n"
                          "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\",\"params\":[2]}\n";
static const char first[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[1]}\n";
static const char both[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[1]}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":[2]}\n";

typedef struct tap {
    int bodies;
    bool pause; /* at the first */
} tap;

static int echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

static bool on_raw(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    tap *self = data;
    (void) body, (void) binary;
    if (++self->bodies == 1 && self->pause)
        weft_peer_pause(peer, true);
    return false;
}

static weft_peer *new_peer(weft_service **service, tap *data) {
    static const weft_method methods[] = {{"echo", echo}, {0}};
    weft_peer *peer;
    if (!CHECK_INT(weft_service_new(&(weft_service_opts){.methods = methods}, service), 0))
        return NULL;
    weft_peer_opts opts = {.framing = &weft_ndjson, .on_raw = on_raw, .data = data};
    return CHECK_INT(weft_peer_new(*service, &opts, &peer), 0) ? peer : NULL;
}

static void check_output(weft_peer *peer, const char *want) {
    weft_bytes out = weft_peer_output(peer);
    CHECK_TEXT(out.data, out.len, want);
}

TEST(paused_before) {
    weft_service *service = NULL;
    tap data = {0};
    weft_peer *peer = new_peer(&service, &data);
    REQUIRE(peer);
    weft_peer_pause(peer, true);
    CHECK_INT(weft_peer_feed(peer, two, strlen(two), 1), 0);
    CHECK_INT(data.bodies, 0);
    check_output(peer, "");
    CHECK(!weft_peer_full(peer)); /* that is about what we send */
    weft_peer_pause(peer, false);
    CHECK_INT(data.bodies, 0); /* not inside the call */
    CHECK_INT(weft_peer_feed(peer, "", 0, 2), 0);
    check_output(peer, both);
    weft_peer_free(peer);
    weft_service_unref(service);
}

TEST(paused_between_two) {
    weft_service *service = NULL;
    tap data = {.pause = true};
    weft_peer *peer = new_peer(&service, &data);
    REQUIRE(peer);
    CHECK_INT(weft_peer_feed(peer, two, strlen(two), 1), 0);
    CHECK_INT(data.bodies, 1);
    check_output(peer, first);
    CHECK_INT(weft_peer_feed(peer, "", 0, 2), 0);
    CHECK_INT(data.bodies, 1);
    weft_peer_pause(peer, false);
    CHECK_INT(weft_peer_feed(peer, "", 0, 3), 0);
    check_output(peer, both);
    weft_peer_free(peer);
    weft_service_unref(service);
}

TEST(spoken_to_after_its_end) {
    weft_service *service = NULL;
    tap data = {0}, other = {0};
    weft_peer *peer = new_peer(&service, &data);
    REQUIRE(peer);
    CHECK_INT(weft_peer_eof(peer), 0);
    CHECK_INT(weft_peer_send_raw(peer, (weft_bytes){"[]", 2}, false), 0);
    check_output(peer, "[]\n");
    weft_peer_set_data(peer, &other);
    CHECK(weft_peer_data(peer) == &other);
    weft_peer_free(peer);
    weft_service_unref(service);
}

TEST_MAIN(CASE(paused_before) CASE(paused_between_two) CASE(spoken_to_after_its_end))
