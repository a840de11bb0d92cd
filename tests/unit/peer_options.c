/* Options and questions of the public headers that no scene uses: each does what its comment says, at its border. */
#include "peer_kit.h"

#define CALL(id, method, params) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":" params "}\n"

typedef struct seen {
    int runs;
    char id[40], meta[40];
    int64_t deadline;
    bool notification, flag, service;
} seen;

static int look(weft_req *req, const weft_json *params, void *ctx) {
    seen *s = ctx;
    weft_json meta = weft_req_meta(req, "x"), flag = weft_get(params, "flag");
    weft_bytes id = weft_req_id(req);
    s->runs++;
    s->notification = weft_req_is_notification(req);
    s->deadline = weft_req_deadline(req);
    s->flag = weft_bool_of(&flag, true);
    s->service = weft_peer_service(weft_req_peer(req)) != NULL;
    snprintf(s->id, sizeof s->id, "%.*s", (int) id.len, id.data);
    snprintf(s->meta, sizeof s->meta, "%s", weft_str_of(&meta, "none"));
    return weft_reply(req, weft_int(s->runs));
}

static const weft_method methods[] = {
    {.name = "look", .handler = look},
    {.name = "change", .handler = look, .flags = WEFT_ROW_CHANGES},
    {.name = "scoped", .handler = look, .scope = "admin"},
    {0},
};

static weft_peer *make(weft_service_opts opts, const weft_peer_opts *peer_opts) {
    weft_service *service;
    weft_peer *peer = NULL;
    opts.methods = methods;
    CHECK_INT(weft_service_new(&opts, &service), 0);
    CHECK_INT(weft_peer_new(service, peer_opts, &peer), 0);
    weft_service_unref(service);
    return peer;
}

TEST(questions_about_a_request) {
    seen s = {0};
    weft_peer *peer = make((weft_service_opts){.ctx = &s}, &(weft_peer_opts){.extras = true});
    kit_say(peer, CALL("\"a\\u0062\"", "look", "{\"flag\":false,\"_meta\":{\"x\":\"y\",\"weft/deadlineMs\":70}}"), 1000);
    CHECK_STR(s.id, "\"a\\u0062\""); /* as it came */
    CHECK_STR(s.meta, "y");
    CHECK_INT(s.deadline, 1070);
    CHECK(!s.flag && !s.notification && s.service);
    kit_say(peer, "{\"jsonrpc\":\"2.0\",\"method\":\"look\"}\n", 1000);
    CHECK_STR(s.id, "");
    CHECK_STR(s.meta, "none");
    CHECK(s.deadline == INT64_MAX && s.flag && s.notification);
    weft_peer_free(peer);
}

static int verdict(void *ctx, const weft_identity *who, const weft_method *method) {
    (void) ctx, (void) who;
    return strcmp(method->name, "look") == 0 ? 0 : strcmp(method->name, "change") == 0 ? -EACCES : -EPERM;
}

/* It replaces the question about the scope; it is not asked in addition. */
TEST(authorize_decides) {
    seen s = {0};
    weft_peer *peer = make((weft_service_opts){.ctx = &s, .authorize = verdict}, NULL);
    kit_say(peer, CALL("1", "look", "{}"), 0);
    CHECK_SAYS(peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n");
    kit_say(peer, CALL("2", "change", "{}"), 0);
    CHECK_SAYS(peer,
               "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":403,\"message\":\"Not permitted\",\"data\":{\"reason\":"
               "\"forbidden\"}}}\n");
    kit_say(peer, CALL("3", "scoped", "{}"), 0);
    CHECK_SAYS(peer, "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":401,\"message\":\"Not authenticated\",\"data\":{"
                     "\"reason\":\"unauthorized\"}}}\n");
    CHECK_INT(s.runs, 1);
    weft_peer_free(peer);
}

TEST(scopes_are_whole_words) {
    static const struct {
        const char *scopes;
        bool may;
    } rows[] = {{"*", true},       {"admin", true},  {"read admin", true},     {"admin read", true},
                {"", false},       {"adm", false},   {"administrator", false}, {"xadmin", false},
                {"* read", false}, {"ADMIN", false}, {"read,admin", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        seen s = {0};
        weft_identity who = {.scopes = rows[i].scopes, .authenticated = true};
        weft_peer *peer = make((weft_service_opts){.ctx = &s}, &(weft_peer_opts){.identity = &who});
        test_row(rows[i].scopes);
        kit_say(peer, CALL("1", "scoped", "{}"), 0);
        CHECK_INT(s.runs, rows[i].may);
        weft_peer_free(peer);
    }
    test_row(NULL);
}

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer, (void) answer;
    *(int *) ctx = r;
}

TEST(the_default_timeout_of_calls) {
    int r = 1;
    weft_call_opts opts = {.on_answer = on_answer, .ctx = &r};
    weft_peer *peer = make((weft_service_opts){.limits.call_timeout_ms = 50}, NULL);
    CHECK_INT(weft_peer_tick(peer, 1000), 0);
    CHECK_INT(weft_call_start(peer, "x", weft_none(), &opts, NULL), 0);
    CHECK_INT(weft_peer_deadline(peer), 1050);
    weft_peer_tick(peer, 1049);
    CHECK_INT(r, 1);
    weft_peer_tick(peer, 1050);
    CHECK_INT(r, -ETIMEDOUT);
    weft_peer_free(peer);
    peer = make((weft_service_opts){.limits.call_timeout_ms = -1}, NULL);
    CHECK_INT(weft_call_start(peer, "x", weft_none(), &opts, NULL), 0);
    CHECK(weft_peer_deadline(peer) == INT64_MAX);
    weft_peer_free(peer);
}

static void change(weft_peer *peer, const char *key, int64_t now) {
    char text[200];
    snprintf(text, sizeof text, CALL("1", "change", "{\"_meta\":{\"weft/idempotencyKey\":\"%s\"}}"), key);
    kit_say(peer, text, now);
}

/* Kept for a time, and so many of them. */
TEST(answers_kept_for_a_retry) {
    seen s = {0};
    weft_peer *peer = make((weft_service_opts){.ctx = &s, .limits = {.idempotent_ms = 100, .max_idempotent = 2}},
                           &(weft_peer_opts){.extras = true});
    change(peer, "a", 1000);
    change(peer, "a", 1099);
    CHECK_INT(s.runs, 1);
    change(peer, "a", 1100); /* its time is over */
    CHECK_INT(s.runs, 2);
    change(peer, "b", 1100);
    change(peer, "a", 1100);
    change(peer, "b", 1100);
    CHECK_INT(s.runs, 3);
    change(peer, "c", 1100); /* the oldest goes */
    CHECK_INT(s.runs, 4);
    change(peer, "c", 1100);
    CHECK_INT(s.runs, 4);
    change(peer, "a", 1100);
    CHECK_INT(s.runs, 5);
    weft_peer_free(peer);
}

/* Exactly so many at once, another when its share of the minute has passed. */
TEST(rate_at_its_border) {
    static const struct {
        const char *transport;
        bool limited;
    } rows[] = {{"tcp", true}, {"", true}, {"unix", false}, {"", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        seen s = {0};
        weft_identity who = {
            .transport = rows[i].transport, .address = "10.0.0.1", .authenticated = true, .local = !rows[i].limited};
        weft_peer *peer =
            make((weft_service_opts){.ctx = &s, .limits.rate_per_minute = 60}, &(weft_peer_opts){.identity = &who});
        test_row(rows[i].transport);
        for (int n = 0; n < 61; n++)
            kit_say(peer, CALL("1", "look", "{}"), 1000);
        CHECK_INT(s.runs, rows[i].limited ? 60 : 61);
        kit_say(peer, CALL("1", "look", "{}"), 1999);
        CHECK_INT(s.runs, rows[i].limited ? 60 : 62);
        kit_say(peer, CALL("1", "look", "{}"), 2000);
        CHECK_INT(s.runs, rows[i].limited ? 61 : 63);
        weft_peer_free(peer);
    }
    test_row(NULL);
}

/* A rate so high that it means none must not become one by overflowing. */
TEST(the_highest_rate) {
    seen s = {0};
    weft_identity who = {.transport = "tcp", .address = "10.0.0.1", .authenticated = true};
    weft_peer *peer =
        make((weft_service_opts){.ctx = &s, .limits.rate_per_minute = INT64_MAX}, &(weft_peer_opts){.identity = &who});
    for (int n = 0; n < 100; n++)
        kit_say(peer, CALL("1", "look", "{}"), 1000 + n);
    CHECK_INT(s.runs, 100);
    weft_peer_free(peer);
}

/* clang-format off */
TEST_MAIN(
    CASE(questions_about_a_request)
    CASE(authorize_decides)
    CASE(scopes_are_whole_words)
    CASE(the_default_timeout_of_calls)
    CASE(answers_kept_for_a_retry)
    CASE(rate_at_its_border)
    CASE(the_highest_rate)
)
