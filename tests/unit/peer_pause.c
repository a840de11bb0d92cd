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

/* ---- who sends without waiting for answers ---- */

#define STORED_MESSAGE (64 * 1024)
#define STORED_MESSAGES 200

typedef struct shelf {
    weft_req *reqs[STORED_MESSAGES + 1];
    int count;
} shelf;

/* It is being stored, and answered when it is. */
static int store(weft_req *req, const weft_json *params, void *ctx) {
    shelf *self = ctx;
    (void) params;
    self->reqs[self->count++] = req;
    return 0;
}

/* Answer the first so many that are open. */
static void answer_some(shelf *self, int from, int to) {
    for (int i = from; i < to; i++)
        CHECK_INT(weft_reply(self->reqs[i], weft_bool(true)), 0);
}

TEST(what_waits_to_be_stored_is_limited_for_each_peer) {
    weft_service *service = NULL;
    weft_peer *greedy = NULL, *other = NULL;
    shelf self = {0};
    static char message[STORED_MESSAGE];
    weft_method methods[] = {{"store", store, .ctx = &self, .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON}, {0}};
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = methods}, &service), 0);
    CHECK_INT(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &greedy), 0);
    CHECK_INT(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &other), 0);
    REQUIRE(greedy && other);
    for (int i = 0; i < STORED_MESSAGES; i++) {
        int n = snprintf(message, sizeof message, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"store\",\"params\":[\"", i);
        memset(message + n, 'x', sizeof message - (size_t) n);
        memcpy(message + sizeof message - 5, "\"]}\n", 4);
        CHECK(weft_peer_feed(greedy, message, sizeof message - 1, 1) >= 0);
    }
    int taken = self.count;
    CHECK(taken >= (4 << 20) / STORED_MESSAGE && taken < 70);
    /* Nobody else waits for that. */
    static const char small[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"store\",\"params\":[]}\n";
    CHECK_INT(weft_peer_feed(other, small, sizeof small - 1, 1), 0);
    CHECK_INT(self.count, taken + 1);
    /* And it goes on as things are stored, to the last. */
    answer_some(&self, 0, 10);
    CHECK(weft_peer_feed(greedy, "", 0, 2) >= 0);
    CHECK(self.count > taken + 5 && self.count < taken + 15);
    for (int done = 10; done < self.count;) {
        int until = self.count;
        answer_some(&self, done, until);
        done = until;
        CHECK(weft_peer_feed(greedy, "", 0, 3) >= 0);
    }
    CHECK_INT(self.count, STORED_MESSAGES + 1);
    weft_peer_free(greedy);
    weft_peer_free(other);
    weft_service_unref(service);
}

/* It says its last word with much still unread: everything is taken, nothing waits for ever. */
TEST(what_waits_is_taken_at_the_end) {
    weft_service *service = NULL;
    weft_peer *peer = NULL;
    shelf self = {0};
    static char message[STORED_MESSAGE];
    weft_method methods[] = {{"store", store, .ctx = &self, .flags = WEFT_ROW_CHANGES | WEFT_ROW_SOON}, {0}};
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = methods}, &service), 0);
    CHECK_INT(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer), 0);
    REQUIRE(peer);
    for (int i = 0; i < STORED_MESSAGES; i++) {
        int n = snprintf(message, sizeof message, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"store\",\"params\":[\"", i);
        memset(message + n, 'x', sizeof message - (size_t) n);
        memcpy(message + sizeof message - 5, "\"]}\n", 4);
        CHECK(weft_peer_feed(peer, message, sizeof message - 1, 1) >= 0);
    }
    CHECK_INT(weft_peer_eof(peer), 0);
    CHECK_INT(self.count, STORED_MESSAGES);
    answer_some(&self, 0, STORED_MESSAGES);
    weft_peer_free(peer);
    weft_service_unref(service);
}

TEST_MAIN(CASE(what_waits_to_be_stored_is_limited_for_each_peer) CASE(what_waits_is_taken_at_the_end) CASE(paused_before)
              CASE(paused_between_two) CASE(spoken_to_after_its_end))
