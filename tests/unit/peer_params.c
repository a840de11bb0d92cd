/* Params that are bound once, before the handler: what the handler finds, how long it is there, and what cannot be bound. */
#include "peer_kit.h"

struct order {
    const char *what;
    int64_t count;
    bool urgent;
    weft_json more;
};
static const weft_param order_params[] = {
    {"what", WEFT_PARAM_str, offsetof(struct order, what), WEFT_REQUIRED | WEFT_NONEMPTY, "what to send"},
    WEFT_ALSO(struct order, what, str, "thing"),
    {"count", WEFT_PARAM_int, offsetof(struct order, count), WEFT_NULLABLE, "how many"},
    WEFT_ALSO(struct order, count, int, "number"),
    WEFT_ALSO(struct order, count, int, "amount"),
    {"urgent", WEFT_PARAM_bool, offsetof(struct order, urgent), 0, "at once"},
    {"more", WEFT_PARAM_obj, offsetof(struct order, more), 0, "anything"},
    WEFT_END(struct order),
};
static const weft_param checked_params[] = {
    {"what", WEFT_PARAM_str, offsetof(struct order, what), WEFT_REQUIRED, "what to send"}, {0}};
static const struct order usual = {.count = 7, .urgent = true};

static weft_req *kept;
static int ran;

static int answer_order(weft_req *req, const weft_json *params, void *ctx) {
    const struct order *in = weft_req_params(req);
    (void) params, (void) ctx;
    ran++;
    return weft_reply(req, WEFT_ARR(weft_str(in->what), weft_int(in->count), weft_bool(in->urgent),
                                    in->more.text ? weft_copy(&in->more) : weft_null()));
}

static int answer_checked(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, weft_bool(weft_req_params(req) == NULL));
}

static int answer_later(weft_req *req, const weft_json *params, void *ctx) {
    struct order *in = weft_req_params(req);
    (void) params, (void) ctx;
    in->count = -1; /* it is the handler's own */
    kept = req;
    return 0;
}

static const weft_method strict = {"strict", answer_order, order_params, .flags = WEFT_ROW_STRICT, .defaults = &usual};
static const weft_method lenient = {"lenient", answer_order, order_params};

static int answer_routed(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    int r = weft_req_pass_on(req, weft_get_bool(params, "urgent", false) ? &strict : &lenient, params, NULL);
    CHECK(weft_req_params(req) == NULL);
    return r;
}

static const weft_method methods[] = {
    {"order", answer_order, order_params, .defaults = &usual},
    {"later", answer_later, order_params},
    {"checked", answer_checked, checked_params},
    {"free", answer_checked},
    {"routed", answer_routed},
    {0},
};

static const struct {
    const char *name, *method, *params, *says;
} rows[] = {
    {"named", "order", "{\"count\":3,\"what\":\"a\\u0042\",\"more\":{\"x\":1}}", "\"result\":[\"aB\",3,true,{\"x\":1}]"},
    {"positional", "order", "[\"a\",null,false]", "\"result\":[\"a\",7,false,null]"},
    {"the last counts", "order", "{\"what\":1,\"what\":\"b\"}", "\"result\":[\"b\",7,true,null]"},
    {"by another name", "order", "{\"thing\":\"a\",\"number\":2}", "\"result\":[\"a\",2,true,null]"},
    {"by both", "order", "{\"thing\":5,\"what\":\"a\",\"count\":3,\"amount\":2}", "\"result\":[\"a\",3,true,null]"},
    {"null is not there", "order", "{\"what\":\"a\",\"count\":null,\"amount\":2}", "\"result\":[\"a\",2,true,null]"},
    {"wrong by another name", "order", "{\"thing\":5}", "\"path\":\"/thing\""},
    {"another name has no place", "order", "[\"a\",2,false,{},1]", "there are at most 4"},
    {"another name is known", "routed", "{\"thing\":\"a\",\"urgent\":true,\"amount\":1}", "\"result\":[\"a\",1,true,null]"},
    {"missing", "order", "{}", "\"path\":\"/what\""},
    {"absent", "order", NULL, "\"path\":\"/what\""},
    {"wrong", "order", "{\"what\":\"a\",\"count\":1.5}", "\"path\":\"/count\""},
    {"checked only", "checked", "{\"what\":\"a\"}", "\"result\":true"},
    {"no table", "free", "{}", "\"result\":true"},
    {"passed on", "routed", "{\"what\":\"a\"}", "\"result\":[\"a\",0,false,null]"},
    {"passed on, other defaults", "routed", "{\"what\":\"a\",\"urgent\":true}", "\"result\":[\"a\",7,true,null]"},
    {"passed on, wrong", "routed", "{\"what\":5}", "\"path\":\"/what\""},
    {"passed on, strict", "routed", "{\"what\":\"a\",\"urgent\":true,\"cuont\":1}", "did you mean \\\"count\\\"?"},
    {"passed on, not strict", "routed", "{\"what\":\"a\",\"cuont\":1}", "\"result\":[\"a\",0,false,null]"},
};

static int ask(weft_peer *peer, const char *method, const char *params) {
    char line[512];
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"%s%s}\n", method,
             params ? ",\"params\":" : "", params ? params : "");
    return kit_say(peer, line, 1);
}

static int open_peer(test_memory *memory, long fail_at, weft_service **service, weft_peer **peer) {
    test_memory_init(memory, fail_at);
    *peer = NULL;
    *service = NULL;
    int r = weft_service_new(&(weft_service_opts){.methods = methods, .alloc = &memory->alloc}, service);
    return r < 0 ? r : weft_peer_new(*service, &(weft_peer_opts){.framing = &weft_ndjson}, peer);
}

TEST(params_are_bound_once) {
    test_memory memory;
    weft_service *service;
    weft_peer *peer;
    REQUIRE(open_peer(&memory, 0, &service, &peer) == 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        ask(peer, rows[i].method, rows[i].params);
        char *said = kit_take(peer, NULL);
        if (!CHECK(strstr(said, rows[i].says) != NULL))
            printf("%s", said);
        free(said);
    }
    test_row(NULL);
    weft_peer_free(peer);
    weft_service_unref(service);
    CHECK_INT(memory.live, 0);
}

TEST(they_are_gone_when_the_handler_has_returned) {
    test_memory memory;
    weft_service *service;
    weft_peer *peer;
    REQUIRE(open_peer(&memory, 0, &service, &peer) == 0);
    ask(peer, "later", "{\"what\":\"a\"}");
    REQUIRE(kept != NULL);
    CHECK(weft_req_params(kept) == NULL);
    weft_reply(kept, weft_null());
    weft_peer_free(peer);
    weft_service_unref(service);
}

TEST(a_struct_has_a_limit) {
    static const weft_param largest[] = {{NULL, WEFT_PARAM_any, WEFT_PARAMS_MAX, 0, NULL}};
    static const weft_param larger[] = {{NULL, WEFT_PARAM_any, WEFT_PARAMS_MAX + 1, 0, NULL}};
    static const weft_method fits = {"fits", answer_checked, largest}, too_large = {"too large", answer_checked, larger};
    static const weft_method list[] = {{"too large", answer_checked, larger}, {0}};
    weft_service *service = NULL;
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = list}, &service), -EMSGSIZE);
    REQUIRE(weft_service_new(NULL, &service) == 0);
    CHECK_INT(weft_service_add(service, &fits), 0);
    CHECK_INT(weft_service_add(service, &too_large), -EMSGSIZE);
    weft_service_unref(service);
}

/* Without memory for a string the handler does not run, and the caller is told. */
TEST(memory_fails) {
    bool failed = true;
    for (long fail_at = 1; failed && fail_at < 100; fail_at++) {
        test_memory memory;
        weft_service *service;
        weft_peer *peer;
        ran = 0;
        if (open_peer(&memory, fail_at, &service, &peer) == 0) {
            int r = ask(peer, "order", "{\"what\":\"a\\u0042\"}");
            char *said = kit_take(peer, NULL);
            CHECK(ran == (strstr(said, "\"result\":[\"aB\"") || strstr(said, "memory")));
            CHECK(*said || r < 0);
            free(said);
        }
        failed = memory.count >= fail_at;
        weft_peer_free(peer);
        weft_service_unref(service);
        CHECK_INT(memory.live, 0);
    }
    CHECK(!failed);
}

TEST_MAIN(CASE(params_are_bound_once) CASE(they_are_gone_when_the_handler_has_returned) CASE(a_struct_has_a_limit)
              CASE(memory_fails))
