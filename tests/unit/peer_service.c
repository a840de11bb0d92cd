/* The service that peers share: methods that come and go while calls are open, one notification for many, and the document
 * that describes it all. */
#include "peer_kit.h"

typedef struct record {
    weft_req *kept;
    int ran;
} record;

static int keep(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    ((record *) ctx)->kept = req;
    return 0;
}

static int count(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return weft_reply(req, weft_int(++((record *) ctx)->ran));
}

static weft_service *the_service;
/* A method that takes itself away while it runs. */
static int leave(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    CHECK_INT(weft_service_remove(the_service, "leave"), 0);
    return weft_reply(req, weft_str("gone"));
}

/* ---- coming and going ---- */

TEST(methods_come_and_go) {
    record rec = {0};
    test_memory memory;
    weft_peer *peer;
    test_memory_init(&memory, 0);
    weft_method methods[] = {{"keep", keep}, {"leave", leave}, {0}};
    const weft_method counting = {"count", count, .ctx = &rec};
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = methods, .ctx = &rec, .alloc = &memory.alloc}, &the_service) ==
            0);
    REQUIRE(weft_peer_new(the_service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
    static const char ask[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"count\"}\n";

    kit_say(peer, ask, 0);
    CHECK_SAYS(
        peer,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"Method not found\",\"data\":{\"reason\":"
        "\"methodNotFound\"}}}\n");
    CHECK_INT(weft_service_add(the_service, &counting), 0);
    CHECK_INT(weft_service_add(the_service, &counting), -EEXIST);
    CHECK(weft_service_find(the_service, "count") == &counting);
    kit_say(peer, ask, 0);
    CHECK_SAYS(peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n");

    /* A request that is open when its method goes is answered all the same. */
    kit_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"keep\"}\n", 0);
    CHECK_INT(weft_service_remove(the_service, "keep"), 0);
    CHECK_INT(weft_service_remove(the_service, "keep"), -ENOENT);
    kit_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"keep\"}\n", 0);
    char *text = kit_take(peer, NULL);
    CHECK(strstr(text, "-32601") != NULL);
    free(text);
    REQUIRE(rec.kept != NULL);
    CHECK_STR(weft_req_method(rec.kept), "keep");
    CHECK_INT(weft_reply(rec.kept, weft_bool(true)), 0);
    CHECK_SAYS(peer, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":true}\n");

    kit_say(peer,
            "[{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"leave\"},{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"count\"}]\n",
            0);
    CHECK_SAYS(peer, "[{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":\"gone\"},{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":2}]\n");
    CHECK(weft_service_find(the_service, "leave") == NULL);
    weft_peer_free(peer);
    weft_service_unref(the_service);
    CHECK_INT(memory.live, 0);
}

TEST(a_thousand_methods) {
    enum { MANY = 1000 };
    static char names[MANY][16];
    static weft_method rows[MANY];
    record rec = {0};
    REQUIRE(weft_service_new(&(weft_service_opts){.ctx = &rec}, &the_service) == 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "m%d", i);
        rows[i] = (weft_method){names[i], count};
        CHECK_INT(weft_service_add(the_service, &rows[i]), 0);
    }
    for (int i = 0; i < MANY; i += 2)
        CHECK_INT(weft_service_remove(the_service, names[i]), 0);
    for (int i = 0; i < MANY; i++)
        CHECK(weft_service_find(the_service, names[i]) == (i % 2 ? &rows[i] : NULL));
    for (int i = 0; i < MANY; i += 2)
        CHECK_INT(weft_service_add(the_service, &rows[i]), 0);
    for (int i = 0; i < MANY; i++)
        CHECK(weft_service_find(the_service, names[i]) == &rows[i]);
    weft_service_unref(the_service);
}

/* ---- answers kept for a retry ---- */

static int refuse(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_fail(req, (int) weft_get_int(params, "code", 1), weft_get_str(params, "m", ""), weft_none());
}

/* A kept error is read again when the retry comes; each length puts its last string somewhere else in its memory. */
TEST(kept_errors) {
    static const weft_method methods[] = {{"refuse", refuse, .flags = WEFT_ROW_CHANGES}, {0}};
    weft_service *service;
    weft_peer *peer;
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = methods}, &service) == 0);
    REQUIRE(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
    for (int len = 0; len < 70; len++) {
        char line[300], want[300];
        for (int round = 1; round <= 2; round++) {
            snprintf(line, sizeof line,
                     "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"refuse\",\"params\":{\"m\":\"%.*s\",\"_meta\":{\"weft/"
                     "idempotencyKey\":\"%d\"}}}\n",
                     round, len, "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm", len);
            snprintf(want, sizeof want, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":1,\"message\":\"%.*s\"}}\n",
                     round, len, "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm");
            CHECK_INT(kit_say(peer, line, 0), 0);
            CHECK_SAYS(peer, want);
        }
    }
    weft_peer_free(peer);
    weft_service_unref(service);
}

/* ---- one notification for many ---- */

typedef struct listener {
    char heard[3][64];
    int count;
} listener;

static void on_notification(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    listener *e = data;
    (void) peer;
    CHECK_STR(method, "news");
    if (e->count < 3)
        snprintf(e->heard[e->count], sizeof e->heard[0], "%.*s", (int) params->len, params->text);
    e->count++;
}

static void share(size_t padding, bool spoken_before) {
    weft_service *service;
    weft_shared *shared;
    weft_peer *from[KIT_FRAMINGS], *to[KIT_FRAMINGS];
    listener listeners[KIT_FRAMINGS] = {0};
    char *text = malloc(padding + 1);
    memset(text, ' ', padding);
    text[padding] = '\0';
    weft_service_new(NULL, &service);
    for (size_t i = 0; i < KIT_FRAMINGS; i++) {
        const kit_framing *f = &kit_framings[i];
        weft_peer_new(service, &(weft_peer_opts){.framing = f->server, .deflate = f->deflate}, &from[i]);
        weft_peer_new(
            NULL,
            &(weft_peer_opts){
                .framing = f->client, .deflate = f->deflate, .data = &listeners[i], .on_notification = on_notification},
            &to[i]);
        /* A framing that is detected must have heard something to know what it is. */
        if (spoken_before || f->server == &weft_detect) {
            weft_notify(to[i], "hello", weft_none());
            CHECK_INT(kit_pass(to[i], from[i], 1000, 0), 0);
        }
    }
    if (CHECK_INT(weft_shared_new(service, "news", WEFT_ARR(weft_int(1), weft_str(text)), &shared), 0)) {
        for (int round = 0; round < 2; round++)
            for (size_t i = 0; i < KIT_FRAMINGS; i++)
                CHECK_INT(weft_shared_send(shared, from[i]), 0);
        weft_shared_free(shared);
    }
    for (size_t i = 0; i < KIT_FRAMINGS; i++) {
        weft_notify(from[i], "news", WEFT_ARR(weft_int(2)));
        CHECK_INT(kit_pass(from[i], to[i], 7, 0), 0);
        CHECK_INT(listeners[i].count, 3);
        CHECK(strncmp(listeners[i].heard[0], "[1,\"", 4) == 0 && strcmp(listeners[i].heard[0], listeners[i].heard[1]) == 0);
        CHECK_STR(listeners[i].heard[2], "[2]");
        weft_peer_free(from[i]);
        weft_peer_free(to[i]);
    }
    free(text);
    weft_service_unref(service);
}

TEST(shared_over_every_framing) {
    static const size_t sizes[] = {0, 100, 200, 2000, 70000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char row[64];
        snprintf(row, sizeof row, "%zu bytes", sizes[i]);
        test_row(row);
        share(sizes[i], false);
        share(sizes[i], true);
    }
    test_row(NULL);
}

TEST(shared_meets_a_full_queue) {
    weft_service *service;
    weft_shared *shared;
    weft_peer *peer;
    REQUIRE(weft_service_new(&(weft_service_opts){.limits = {.out_soft = 100, .out_hard = 200}}, &service) == 0);
    REQUIRE(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
    REQUIRE(weft_shared_new(service, "news", weft_none(), &shared) == 0);
    int r = 0;
    for (int i = 0; i < 100 && r == 0; i++)
        r = weft_shared_send(shared, peer);
    CHECK_INT(r, -ENOBUFS);
    CHECK(weft_peer_full(peer));
    CHECK_INT(weft_peer_tick(peer, 1), -ENOBUFS);
    CHECK_INT(weft_shared_send(shared, peer), -EPIPE);
    weft_shared_free(shared);
    weft_peer_free(peer);
    weft_service_unref(service);
}

/* ---- the document ---- */

struct point {
    const char *name;
    int64_t x;
    weft_json more;
};
static const weft_param point_params[] = {
    WEFT_MUST(struct point, name, str, "what it is called"),
    WEFT_MAY(struct point, x, int, "how far \"right\""),
    {"more", WEFT_PARAM_obj, offsetof(struct point, more), WEFT_NULLABLE, NULL},
    {0},
};
static const weft_error_row point_errors[] = {{-32001, "no such point", "pointNotFound"}, {0}};
static const weft_method described[] = {
    {"point.move", count, point_params, "moves \\ a point", .result = "{\"type\":\"integer\"}", .errors = point_errors},
    {"any", count},
    {"secret", count, .flags = WEFT_ROW_HIDDEN},
    {0},
};

/* The rules of OpenRPC that a document breaks easily: what is required, and of which type. */
static void check_method(const weft_json *method) {
    weft_json name = weft_get(method, "name"), params = weft_get(method, "params"), errors = weft_get(method, "errors");
    weft_json result_name = weft_pointer(method, "/result/name"), schema = weft_pointer(method, "/result/schema");
    CHECK_INT(weft_typeof(&name), WEFT_STRING);
    CHECK_INT(weft_typeof(&params), WEFT_ARRAY);
    CHECK_INT(weft_typeof(&result_name), WEFT_STRING);
    CHECK(weft_typeof(&schema) == WEFT_OBJECT || weft_typeof(&schema) == WEFT_BOOL);
    bool optional = false;
    for (weft_iter it = weft_iterate(&params); weft_next(&it);) {
        weft_json param_name = weft_get(&it.value, "name"), param_schema = weft_get(&it.value, "schema");
        bool required = weft_get_bool(&it.value, "required", false);
        CHECK_INT(weft_typeof(&param_name), WEFT_STRING);
        CHECK(weft_typeof(&param_schema) == WEFT_OBJECT || weft_typeof(&param_schema) == WEFT_BOOL);
        CHECK(!(optional && required)); /* required ones come first */
        optional = optional || !required;
    }
    for (weft_iter it = weft_iterate(&errors); weft_next(&it);) {
        CHECK(weft_get_int(&it.value, "code", 0) != 0);
        CHECK(weft_get_str(&it.value, "message", NULL) != NULL);
    }
}

TEST(openrpc_document) {
    weft_service *service;
    weft_doc *doc;
    char *text;
    size_t len;
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = described, .title = "a \"title\"", .version = "1.2"},
                             &service) == 0);
    REQUIRE(weft_service_discover(service, &text, &len) == 0);
    REQUIRE(weft_doc_parse(text, len, NULL, &doc) == 0);
    const weft_json *root = weft_doc_root(doc);
    weft_json title = weft_pointer(root, "/info/title"), version = weft_pointer(root, "/info/version");
    weft_json methods = weft_get(root, "methods"), move = {0};
    CHECK_STR(weft_get_str(root, "openrpc", ""), "1.2.6");
    CHECK_STR(weft_str_of(&title, ""), "a \"title\"");
    CHECK_STR(weft_str_of(&version, ""), "1.2");
    for (weft_iter it = weft_iterate(&methods); weft_next(&it);) {
        check_method(&it.value);
        CHECK(strcmp(weft_get_str(&it.value, "name", ""), "secret") != 0);
        if (strcmp(weft_get_str(&it.value, "name", ""), "point.move") == 0)
            move = it.value;
    }
    CHECK_INT(weft_count(&methods), 3); /* with rpc.discover itself */
    weft_json type = weft_pointer(&move, "/params/1/schema/type"), code = weft_pointer(&move, "/errors/0/code");
    CHECK_STR(weft_str_of(&type, ""), "integer");
    weft_json null_too = weft_pointer(&move, "/params/2/schema/type/1");
    CHECK_STR(weft_str_of(&null_too, ""), "null");
    CHECK_INT(weft_int_of(&code, 0), -32001);
    weft_doc_free(doc);
    weft_text_free(text, NULL);
    weft_service_unref(service);
}

TEST(discover_answers_the_document) {
    weft_service *service;
    weft_peer *peer;
    char *text, *want;
    size_t len;
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = described}, &service) == 0);
    REQUIRE(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
    REQUIRE(weft_service_discover(service, &text, &len) == 0);
    want = malloc(len + 64);
    sprintf(want, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":%.*s}\n", (int) len, text);
    kit_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"rpc.discover\"}\n", 0);
    CHECK_SAYS(peer, want);
    free(want);
    weft_text_free(text, NULL);
    weft_peer_free(peer);
    weft_service_unref(service);
}

TEST_MAIN(CASE(methods_come_and_go) CASE(a_thousand_methods) CASE(kept_errors) CASE(shared_over_every_framing)
              CASE(shared_meets_a_full_queue) CASE(openrpc_document) CASE(discover_answers_the_document))
