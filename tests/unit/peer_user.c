/* What a program that builds on the library does with a peer, and does wrong. Only public headers. */
#include <weft/weft.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"
#include "peer_kit.h"

/* ---- a second answer ---- */

static weft_req *kept;
static int second;

static int answer_twice(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    weft_reply(req, weft_int(1));
    second = weft_reply(req, weft_int(2));
    kept = req;
    return 0;
}

static int keep_it(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    kept = req;
    return 0;
}

static const weft_method twice_methods[] = {
    {.name = "twice", .handler = answer_twice}, {.name = "keep", .handler = keep_it}, {0}};

static void check_said(weft_peer *peer, const char *want) {
    char *text = kit_take(peer, NULL);
    CHECK_STR(text, want);
    free(text);
}

TEST(a_second_answer_is_an_error) {
    weft_service *service;
    weft_peer *peer;
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = twice_methods}, &service) == 0);
    REQUIRE(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
    kit_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"twice\"}\n", 0);
    CHECK_INT(second, -EALREADY);
    check_said(peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n");
    weft_req *stale = kept;
    CHECK_INT(weft_reply(stale, weft_int(3)), -EALREADY);

    kit_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"keep\"}\n", 0);
    CHECK_INT(weft_reply(stale, weft_int(4)), -EALREADY); /* its memory is that of request 2 now */
    CHECK_INT(weft_fail(stale, 1, "no", weft_none()), -EALREADY);
    CHECK_INT(weft_part(stale, weft_int(4)), -EPIPE);
    CHECK(weft_req_peer(stale) == NULL && weft_req_id(stale).len == 0 && *weft_req_method(stale) == '\0');
    CHECK(!weft_req_params(stale) && !weft_req_is_notification(stale));
    CHECK_STR(weft_req_identity(stale)->name, "");
    weft_req_on_cancel(stale, NULL, NULL);
    CHECK_INT(weft_peer_output(peer).len, 0);
    weft_req *second_kept = kept;
    CHECK_INT(weft_reply(second_kept, weft_int(5)), 0);
    check_said(peer, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":5}\n");
    for (int i = 0; i < 1000; i++) {
        kit_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"keep\"}\n", 0);
        CHECK_INT(weft_reply(second_kept, weft_int(6)), -EALREADY);
        CHECK_INT(weft_reply(kept, weft_int(7)), 0);
        check_said(peer, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":7}\n");
    }
    weft_peer_free(peer);
    CHECK_INT(weft_reply(second_kept, weft_int(8)), -EALREADY);
    weft_service_unref(service);
}

/* ---- rows that cannot be ---- */

static const char *const words[] = {"slow", "fast", NULL};

TEST(rows_that_are_refused) {
    static const weft_example bad_example[] = {{.name = "one", .params = "{"}, {0}};
    static const weft_example odd_example[] = {{.name = "one", .params = " 1"}, {0}};
    static const weft_param bad_enum[] = {{.name = "n", .type = WEFT_PARAM_int, .one_of = words}, {0}};
    static const weft_param wide[] = {{.name = NULL, .offset = WEFT_PARAMS_MAX + 1}};
    static weft_param many[WEFT_PARAMS_ROWS + 2];
    static const struct {
        const char *what;
        weft_method row;
        int r;
    } rows[] = {
        {"no handler", {.name = "x"}, -EINVAL},
        {"a kept name", {.name = "rpc.x", .handler = keep_it}, -EINVAL},
        {"an empty name", {.name = "", .handler = keep_it}, -EINVAL},
        {"a result that is no JSON", {.name = "x", .handler = keep_it, .result = "{type:string}"}, -EINVAL},
        {"a params_schema that is none", {.name = "x", .handler = keep_it, .params_schema = "{\"type\":1}"}, -EINVAL},
        {"an example that is no JSON", {.name = "x", .handler = keep_it, .examples = bad_example}, -EINVAL},
        {"an example with a number for params", {.name = "x", .handler = keep_it, .examples = odd_example}, -EINVAL},
        {"words for a number", {.name = "x", .handler = keep_it, .params = bad_enum}, -EINVAL},
        {"a large struct", {.name = "x", .handler = keep_it, .params = wide}, -EMSGSIZE},
        {"many rows", {.name = "x", .handler = keep_it, .params = many}, -EMSGSIZE},
        {"our own of rpc.discover", {.name = "rpc.discover", .handler = keep_it}, 0},
    };
    for (size_t i = 0; i <= WEFT_PARAMS_ROWS; i++)
        many[i] = (weft_param){.name = "p"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_service *service = NULL;
        const weft_method table[] = {rows[i].row, {0}};
        test_row(rows[i].what);
        CHECK_INT(weft_service_new(&(weft_service_opts){.methods = table}, &service), rows[i].r);
        CHECK(!service == (rows[i].r < 0));
        weft_service_unref(service);
    }
    test_row(NULL);
}

/* Nobody compiles its schema: rpc.discover would hand on what is no JSON. */
TEST(notifications_that_are_refused) {
    static const weft_method told[] = {{.name = "news", .params_schema = "{type:string}"}, {0}};
    weft_service *service;
    CHECK_INT(weft_service_new(&(weft_service_opts){.notifications = told}, &service), -EINVAL);
}

/* ---- answers that cannot be written ---- */

#define TOO_DEEP 200

static int answer_oddly(weft_req *req, const weft_json *params, void *ctx) {
    weft_json which = weft_at(params, 0);
    weft_val deep[TOO_DEEP] = {weft_int(1)};
    (void) ctx;
    for (int i = 1; i < TOO_DEEP; i++)
        deep[i] = weft_arr(&deep[i - 1], 1);
    const weft_val results[] = {
        WEFT_OBJ({NULL, weft_int(1)}), deep[TOO_DEEP - 1],          weft_arr(NULL, 2), weft_obj(NULL, 2), weft_raw("", 0),
        WEFT_ARR(weft_raw("", 0)),     WEFT_ARR(weft_raw(NULL, 3)),
    };
    if (which.len)
        return weft_reply(req, results[weft_int_of(&which, 0)]);
    return weft_fail(req, 1, "no", results[0]);
}

/* Whoever asked gets an answer all the same. */
TEST(an_answer_that_cannot_be_written) {
    static const weft_method methods[] = {{.name = "odd", .handler = answer_oddly}, {0}};
    static const char excuse[] = "\"error\":{\"code\":-32603,\"message\":\"The answer cannot be written as JSON\","
                                 "\"data\":{\"reason\":\"invalidResult\"}}}";
    weft_service *service;
    weft_peer *peer;
    char ask[200], want[400];
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = methods}, &service) == 0);
    REQUIRE(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
    for (int i = 0; i < 6; i++) {
        snprintf(ask, sizeof ask, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"odd\",\"params\":[%d]}\n", i, i);
        snprintf(want, sizeof want, "{\"jsonrpc\":\"2.0\",\"id\":%d,%s\n", i, excuse);
        kit_say(peer, ask, 0);
        check_said(peer, want);
    }
    kit_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"odd\",\"params\":[6]}\n", 0);
    check_said(peer, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":[null]}\n");
    kit_say(peer, "[{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"odd\"},{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"none\"}]\n",
            0);
    snprintf(want, sizeof want,
             "[{\"jsonrpc\":\"2.0\",\"id\":8,%s,"
             "{\"jsonrpc\":\"2.0\",\"id\":9,\"error\":{\"code\":-32601,\"message\":\"Method not "
             "found\",\"data\":{\"reason\":\"methodNotFound\"}}}]\n",
             excuse);
    check_said(peer, want);
    weft_peer_free(peer);
    weft_service_unref(service);
}

/* ---- what is not sent ---- */

TEST(params_that_are_not_sent) {
    static const struct {
        const char *what;
        weft_val params;
        const char *want; /* NULL: -EINVAL */
    } rows[] = {
        {"none", {.kind = WEFT_VAL_NONE}, ""},
        {"null", {.kind = WEFT_VAL_NULL}, ""},
        {"raw null", {.kind = WEFT_VAL_RAW, .len = 6, .as = {.s = "  null"}}, ""},
        {"a number", {.kind = WEFT_VAL_INT, .as = {.i = 1}}, NULL},
        {"a string", {.kind = WEFT_VAL_STR, .len = 1, .as = {.s = "x"}}, NULL},
        {"true", {.kind = WEFT_VAL_BOOL, .as = {.b = true}}, NULL},
        {"raw number", {.kind = WEFT_VAL_RAW, .len = 1, .as = {.s = "1"}}, NULL},
        {"raw nothing", {.kind = WEFT_VAL_RAW, .len = 0, .as = {.s = ""}}, NULL},
        {"an array", {.kind = WEFT_VAL_ARR}, ",\"params\":[]"},
        {"an object", {.kind = WEFT_VAL_OBJ}, ",\"params\":{}"},
        {"raw array", {.kind = WEFT_VAL_RAW, .len = 4, .as = {.s = " [1]"}}, ",\"params\": [1]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_peer *peer;
        char want[128];
        test_row(rows[i].what);
        REQUIRE(weft_peer_new(NULL, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
        CHECK_INT(weft_notify(peer, "n", rows[i].params), rows[i].want ? 0 : -EINVAL);
        CHECK_INT(weft_call_start(peer, "c", rows[i].params, &(weft_call_opts){0}, NULL), rows[i].want ? 0 : -EINVAL);
        CHECK_INT(weft_peer_open_calls(peer), rows[i].want != NULL);
        snprintf(want, sizeof want,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"n\"%s}\n{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"c\"%s}\n",
                 rows[i].want ? rows[i].want : "", 1, rows[i].want ? rows[i].want : "");
        check_said(peer, rows[i].want ? want : "");
        weft_peer_free(peer);
    }
    test_row(NULL);
}

TEST(names_that_are_null) {
    weft_peer *peer;
    weft_service *service;
    weft_shared *shared;
    weft_doc *doc;
    char *text;
    size_t len;
    REQUIRE(weft_service_new(NULL, &service) == 0);
    REQUIRE(weft_peer_new(service, NULL, &peer) == 0);
    CHECK_INT(weft_notify(peer, NULL, weft_none()), -EINVAL);
    CHECK_INT(weft_call_start(peer, NULL, weft_none(), &(weft_call_opts){0}, NULL), -EINVAL);
    CHECK_INT(weft_shared_new(service, NULL, weft_none(), &shared), -EINVAL);
    CHECK_INT(weft_notify(peer, "", weft_none()), -EINVAL); /* we would refuse it */
    CHECK_INT(weft_call_start(peer, "", weft_none(), NULL, NULL), -EINVAL);
    CHECK_INT(weft_shared_new(service, "", weft_none(), &shared), -EINVAL);
    CHECK_INT(weft_notify(peer, "n", weft_none()), 0);
    weft_peer_sent(peer, 1000000); /* more than there was */
    CHECK_INT(weft_peer_output(peer).len, 0);
    CHECK_INT(weft_service_call(service, NULL, NULL, weft_none(), NULL, NULL, NULL), -EINVAL);
    CHECK(weft_service_find(service, NULL) == NULL);
    CHECK_INT(weft_service_remove(service, NULL), -ENOENT);
    CHECK_INT(weft_service_add(service, &(weft_method){.handler = keep_it}), -EINVAL);
    REQUIRE(weft_doc_parse("{\"a\":1}", 7, NULL, &doc) == 0);
    CHECK_INT(weft_get(weft_doc_root(doc), NULL).len, 0);
    CHECK_INT(weft_pointer(weft_doc_root(doc), NULL).len, 0);
    CHECK_INT(weft_get_int(weft_doc_root(doc), NULL, 7), 7);
    weft_iter it = weft_iterate(weft_doc_root(doc));
    CHECK(weft_next(&it) && !weft_name_is(&it, NULL));
    CHECK_INT(weft_to_text(WEFT_OBJ({NULL, weft_int(1)}), NULL, &text, &len), -EINVAL);
    CHECK(weft_loop_free(NULL) == NULL && weft_timer_free(NULL) == NULL && weft_signal_free(NULL) == NULL);
    CHECK(weft_builder_free(NULL) == NULL && weft_peer_free(NULL) == NULL && weft_server_free(NULL) == NULL);
    CHECK_INT(weft_connect(NULL, &peer), -EINVAL);
    weft_doc_free(doc);
    weft_peer_free(peer);
    weft_service_unref(service);
}

static int bound_without;

static int bind_nothing(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    bound_without = weft_bind(req, NULL, params, NULL);
    CHECK_INT(weft_bind_at(req, NULL, NULL, params, NULL), -EINVAL);
    CHECK_INT(weft_req_pass_on(req, NULL, params, NULL), -EINVAL);
    return weft_reply(req, weft_none());
}

/* Options mean the defaults; texts are none; what may be left out of the outputs may be NULL. */
TEST(options_and_outputs_that_are_null) {
    static const weft_method methods[] = {{.name = "bind", .handler = bind_nothing}, {0}};
    WEFT_AUTO(weft_loop) loop = NULL;
    WEFT_AUTO(weft_service) service = NULL;
    WEFT_AUTO(weft_server) server = NULL;
    WEFT_AUTO(weft_batch) batch = NULL;
    WEFT_AUTO(weft_shared) shared = NULL;
    WEFT_AUTO(weft_signatures) signatures = NULL;
    weft_peer *peer;
    weft_doc *doc;
    weft_schema *schema;
    weft_server *none;
    char *text, signature[WEFT_AUTH_MAX];
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = methods}, &service) == 0);
    CHECK_INT(weft_server_new(loop, NULL, &none), -EINVAL);
    CHECK_INT(weft_server_new(loop, &(weft_server_opts){0}, &none), -EINVAL);
    REQUIRE(weft_server_new(loop, &(weft_server_opts){.service = service}, &server) == 0);
    CHECK_INT(weft_server_listen(server, NULL, NULL), -EINVAL);
    CHECK_INT(weft_server_unlisten(server, NULL), -ENOENT);
    CHECK_INT(weft_server_route(server, NULL, "/", NULL, NULL), -EINVAL);
    CHECK_INT(weft_server_public(server, NULL), -EINVAL);
    REQUIRE(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
    CHECK_INT(weft_call_start(peer, "c", weft_none(), NULL, NULL), 0);
    CHECK_INT(weft_batch_new(peer, &batch), 0);
    CHECK_INT(weft_batch_call(batch, "c", weft_none(), NULL, NULL), 0);
    batch = weft_batch_free(batch);
    CHECK_INT(weft_shared_new(service, "n", weft_none(), &shared), 0);
    CHECK_INT(weft_service_call(service, NULL, "bind", weft_none(), NULL, NULL, NULL), -EINVAL);
    CHECK_INT(weft_service_add(service, NULL), -EINVAL);
    weft_service_set_limits(service, NULL);
    kit_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"bind\"}\n", 0);
    CHECK_INT(bound_without, -EINVAL);
    CHECK_INT(weft_to_text(weft_int(1), NULL, &text, NULL), 0);
    CHECK_STR(text, "1");
    weft_text_free(text, NULL);
    CHECK_INT(weft_service_discover(service, &text, NULL), 0);
    CHECK(strlen(text) > 100 && text[strlen(text) - 1] == '}');
    weft_text_free(text, NULL);
    CHECK_INT(weft_doc_parse(NULL, 2, NULL, &doc), -EINVAL);
    CHECK_INT(weft_schema_compile(NULL, 2, NULL, &schema, NULL), -EINVAL);
    CHECK_INT(weft_signatures_new(NULL, &signatures), 0);
    CHECK_INT(weft_sign(NULL, 0, NULL, (weft_bytes){0}, (weft_bytes){0}, (weft_bytes){0}, signature, sizeof signature),
              -EINVAL);
    weft_answer_done(NULL);
    weft_schema_report_done(NULL);
    CHECK(!weft_has_scope(NULL, "x") && !weft_has_scope(&(weft_identity){0}, "x") && weft_has_scope(NULL, NULL));
    CHECK(weft_has_scope(&(weft_identity){.scopes = "read work"}, "")); /* nothing to have; it once looked for ever */
    weft_peer_free(peer);
}

/* ---- params ---- */

typedef struct order {
    const char *speed;
    int64_t count;
    double share;
    const char *note;
    weft_json tags;
    weft_json address;
} order;
static const weft_param order_params[] = {WEFT_MUST_BE(order, speed, words, "How fast"),
                                          WEFT_MUST_IN(order, count, int, 1, 10, "How many"),
                                          WEFT_MAY_IN(order, share, num, 0, 1, "Of all"),
                                          WEFT_MAY_IN(order, note, str, INT64_MIN, 4, "A few characters"),
                                          WEFT_MAY_IN(order, tags, arr, 1, INT64_MAX, "Words"),
                                          WEFT_MAY(order, address, any, "Where to"),
                                          WEFT_END(order)};
typedef struct address {
    const char *zip;
    int64_t number;
} address;
static const weft_param address_params[] = {WEFT_MUST_IN(address, zip, str, 5, 5, "Five digits"),
                                            WEFT_MAY(address, number, int, "Of the house"), WEFT_END(address)};

static int take_order(weft_req *req, const weft_json *params, void *ctx) {
    const order *o = weft_req_params(req);
    address to = {0};
    (void) params, (void) ctx;
    int r = o->address.text ? weft_bind_at(req, "/address", address_params, &o->address, &to) : 0;
    return r < 0 ? r : weft_reply(req, weft_str(to.zip ? to.zip : "taken"));
}

TEST(limits_and_paths_of_params) {
    static const weft_method methods[] = {
        {.name = "order", .handler = take_order, .params = order_params, .flags = WEFT_ROW_STRICT}, {0}};
    static const struct {
        const char *params, *says, *path;
    } rows[] = {
        {"{\"speed\":\"slow\",\"count\":1}", "\"taken\"", NULL},
        {"[\"fast\",10,0.5,\"vier\",[1]]", "\"taken\"", NULL},
        {"{\"speed\":\"warp\",\"count\":1}", "speed must be one of \\\"slow\\\", \\\"fast\\\"", "/speed"},
        {"[\"warp\",1]", "speed must be one of", "/0"},
        {"[\"slow\",0]", "count must be 1 to 10", "/1"},
        {"[\"slow\"]", "count is missing", "/1"},
        {"{\"speed\":\"slow\",\"count\":11}", "count must be 1 to 10", "/count"},
        {"{\"speed\":\"slow\",\"count\":1,\"share\":1.01}", "share must be 0 to 1", "/share"},
        {"{\"speed\":\"slow\",\"count\":1,\"share\":1e999}", "share must be a number", "/share"},
        {"{\"speed\":\"slow\",\"count\":1,\"note\":\"\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F\"}", "\"taken\"", NULL},
        {"{\"speed\":\"slow\",\"count\":1,\"note\":\"fuenf\"}", "note must have at most 4 characters", "/note"},
        {"{\"speed\":\"slow\",\"count\":1,\"tags\":[]}", "tags must have at least 1 items", "/tags"},
        {"{\"speed\":\"slow\",\"count\":1,\"address\":{\"zip\":\"12345\"}}", "\"12345\"", NULL},
        {"{\"speed\":\"slow\",\"count\":1,\"address\":{\"zip\":\"1\"}}", "address/zip must have 5 to 5", "/address/zip"},
        {"{\"speed\":\"slow\",\"count\":1,\"address\":{}}", "address/zip is missing", "/address/zip"},
        {"{\"speed\":\"slow\",\"count\":1,\"address\":[\"12345\",\"x\"]}", "address/number must be an integer",
         "/address/1"},
        {"{\"speed\":\"slow\",\"count\":1,\"address\":7}", "address must be an object", "/address"},
    };
    weft_service *service;
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = methods}, &service) == 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_peer *peer;
        char line[256], path[64];
        test_row(rows[i].params);
        REQUIRE(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
        snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"order\",\"params\":%s}\n", rows[i].params);
        kit_say(peer, line, 0);
        char *said = kit_take(peer, NULL);
        snprintf(path, sizeof path, "\"path\":\"%s\"", rows[i].path ? rows[i].path : "");
        if (!CHECK(strstr(said, rows[i].says)) || !CHECK(!rows[i].path || strstr(said, path)))
            fprintf(stderr, "%s", said);
        free(said);
        weft_peer_free(peer);
    }
    test_row(NULL);
    weft_service_unref(service);
}

static int fail_formatted(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    if (weft_typeof(params) != WEFT_ARRAY)
        return weft_failf(req, 7, weft_none(), "no %s of %d", "such thing", 3);
    char text[3 * WEFT_MESSAGE_MAX];
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xC3\xA4", 3); /* ends between two of its bytes unless it is cut well */
    return weft_failf(req, 0, weft_none(), "x%s", text);
}

static int fail_without_format(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    int (*failf)(weft_req *, int, weft_val, const char *, ...) = weft_failf; /* compilers know what its format must be */
    return failf(req, 7, weft_none(), ctx);
}

TEST(a_message_with_a_format) {
    static const weft_method methods[] = {
        {.name = "f", .handler = fail_formatted}, {.name = "none", .handler = fail_without_format}, {0}};
    weft_service *service;
    weft_peer *peer;
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = methods}, &service) == 0);
    REQUIRE(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
    kit_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"f\"}\n", 0);
    check_said(peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":7,\"message\":\"no such thing of 3\"}}\n");
    kit_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"f\",\"params\":[]}\n", 0);
    char *said = kit_take(peer, NULL);
    CHECK(strstr(said, "\xEF\xBF\xBD") == NULL);
    CHECK(strstr(said, "\"code\":-32603") && strlen(said) < WEFT_MESSAGE_MAX + 100);
    free(said);
    kit_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"none\"}\n", 0);
    check_said(peer, "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":7,\"message\":\"\"}}\n");
    weft_peer_free(peer);
    weft_service_unref(service);
}

/* ---- the builder ---- */

static void check_built(weft_builder *b, const char *want) {
    weft_val value;
    char *text = NULL;
    size_t len = 0;
    REQUIRE(weft_builder_val(b, &value) == 0);
    CHECK_INT(weft_to_text(value, NULL, &text, &len), 0);
    CHECK_TEXT(text, len, want);
    weft_text_free(text, NULL);
}

TEST(values_that_grow) {
    WEFT_AUTO(weft_builder) b = NULL;
    weft_val value;
    REQUIRE(weft_builder_new(NULL, &b) == 0);
    CHECK_INT(weft_builder_val(b, &value), -EINVAL); /* nothing yet */
    weft_builder_object(b, NULL);
    weft_builder_add(b, "a", weft_int(1));
    weft_builder_add(b, "left out", weft_none());
    weft_builder_array(b, "list");
    for (int i = 0; i < 3; i++)
        weft_builder_add(b, NULL, WEFT_OBJ({"i", weft_int(i)}));
    weft_builder_end(b);
    CHECK_INT(weft_builder_val(b, &value), -EINVAL); /* not whole: kept, it may become so */
    weft_builder_object(b, "empty");
    weft_builder_end(b);
    weft_builder_end(b);
    check_built(b, "{\"a\":1,\"list\":[{\"i\":0},{\"i\":1},{\"i\":2}],\"empty\":{}}");
    weft_builder_add(b, NULL, weft_int(2)); /* there is one value */
    CHECK_INT(weft_builder_val(b, &value), -EINVAL);
    weft_builder_reset(b);
    weft_builder_add(b, NULL, weft_str("alone"));
    check_built(b, "\"alone\"");
    static const char *const wrong[] = {"named in an array", "unnamed in an object", "ended twice", "too deep"};
    for (int i = 0; i < 4; i++) {
        test_row(wrong[i]);
        weft_builder_reset(b);
        if (i == 0)
            weft_builder_array(b, NULL), weft_builder_add(b, "n", weft_int(1)), weft_builder_end(b);
        else if (i == 1)
            weft_builder_object(b, NULL), weft_builder_add(b, NULL, weft_int(1)), weft_builder_end(b);
        else if (i == 2)
            weft_builder_array(b, NULL), weft_builder_end(b), weft_builder_end(b);
        for (int depth = 0; i == 3 && depth < 129; depth++)
            weft_builder_array(b, NULL);
        CHECK_INT(weft_builder_val(b, &value), -EINVAL);
    }
    test_row(NULL);
}

TEST(a_builder_without_memory) {
    for (long at = 1; at < 20; at++) {
        test_memory memory;
        weft_builder *b = NULL;
        weft_val value;
        test_memory_init(&memory, at);
        int r = weft_builder_new(&memory.alloc, &b);
        if (r == 0) {
            weft_builder_array(b, NULL);
            for (int i = 0; i < 1000; i++)
                weft_builder_add(b, NULL, weft_str("a text of some length"));
            weft_builder_end(b);
            r = weft_builder_val(b, &value);
        }
        CHECK(r == 0 || r == -ENOMEM);
        weft_builder_free(b);
        CHECK_INT(memory.live, 0);
        if (r == 0)
            return;
    }
    CHECK(false); /* it never had enough */
}

/* ---- discovery ---- */

TEST(what_is_discovered) {
    static const weft_example examples[] = {
        {.name = "one", .help = "Just one", .params = "{\"speed\":\"slow\",\"count\":1}", .result = "\"taken\""},
        {.name = "by position", .params = "[\"fast\",2]", .result = "\"taken\""},
        {0}};
    static const weft_param odd[] = {
        {.name = "first", .type = WEFT_PARAM_int}, {.name = "last", .type = WEFT_PARAM_int, .flags = WEFT_REQUIRED}, {0}};
    static const weft_error_row no_words[] = {{.code = 409}, {0}};
    static const weft_method methods[] = {{.name = "order",
                                           .handler = take_order,
                                           .params = order_params,
                                           .help = "Order something",
                                           .description = "It comes *soon*.",
                                           .examples = examples},
                                          {.name = "order.odd", .handler = take_order, .params = odd, .errors = no_words},
                                          {0}};
    static const weft_method told[] = {{.name = "order.sent", .help = "It is on its way", .params = address_params}, {0}};
    static const struct {
        const char *pointer, *want;
    } rows[] = {
        {"/info/description", "\"All about orders\""},
        {"/methods/0/description", "\"It comes *soon*.\""},
        {"/methods/0/paramStructure", "\"either\""},
        {"/methods/1/paramStructure",
         "\"by-name\""}, /* what is required comes last in its table, and first in the document */
        {"/methods/1/params/0/name", "\"last\""},
        {"/methods/1/errors/0/message", "\"\""},
        {"/methods/0/params/0/schema/enum", "[\"slow\",\"fast\"]"},
        {"/methods/0/params/1/schema", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":10}"},
        {"/methods/0/params/2/schema", "{\"type\":\"number\",\"minimum\":0,\"maximum\":1}"},
        {"/methods/0/params/3/schema/maxLength", "4"},
        {"/methods/0/params/4/schema/minItems", "1"},
        {"/methods/0/examples/0", "{\"name\":\"one\",\"summary\":\"Just "
                                  "one\",\"params\":[{\"name\":\"speed\",\"value\":\"slow\"},{\"name\":\"count\","
                                  "\"value\":1}],\"result\":{\"name\":\"result\",\"value\":\"taken\"}}"},
        {"/methods/0/examples/1/params/1", "{\"name\":\"count\",\"value\":2}"},
        {"/x-notifications/0/name", "\"order.sent\""},
        {"/x-notifications/0/summary", "\"It is on its way\""},
        {"/x-notifications/0/params/1/schema",
         "{\"type\":\"integer\",\"minimum\":-9223372036854775808,\"maximum\":9223372036854775807}"},
    };
    weft_service *service;
    weft_doc *doc = NULL;
    char *text;
    size_t len;
    REQUIRE(
        weft_service_new(&(weft_service_opts){.methods = methods, .notifications = told, .description = "All about orders"},
                         &service) == 0);
    REQUIRE(weft_service_discover(service, &text, &len) == 0);
    REQUIRE(weft_doc_parse(text, len, NULL, &doc) == 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_json is = weft_pointer(weft_doc_root(doc), rows[i].pointer);
        test_row(rows[i].pointer);
        CHECK_TEXT(is.text, is.len, rows[i].want);
    }
    test_row(NULL);
    weft_doc_free(doc);
    weft_text_free(text, NULL);
    weft_service_unref(service);
}

/* ---- in a foreign loop ---- */

typedef struct feed {
    weft_req *req;
    int parts, cancelled;
} feed;

static void on_feed_cancel(weft_req *req, int why, void *ctx) {
    feed *f = ctx;
    f->cancelled = why;
    f->req = NULL;
    weft_fail(req, WEFT_CANCELLED, "stopped", weft_none());
}

/* As the header says: until -EAGAIN, then wait for on_drain. */
static void pour(feed *f) {
    while (f->req && weft_part(f->req, weft_str("some text that fills the output")) > 0)
        f->parts++;
}

static int start_feed(weft_req *req, const weft_json *params, void *ctx) {
    feed *f = ctx;
    (void) params;
    f->req = req;
    weft_req_on_cancel(req, on_feed_cancel, f);
    pour(f);
    return 0;
}

static void on_feed_drain(weft_peer *peer, void *data) {
    (void) peer;
    pour(data);
}

static const weft_method feed_methods[] = {
    {.name = "feed", .handler = start_feed}, {.name = "twice", .handler = answer_twice}, {0}};
static const char cancel_line[] = "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":1}}\n";
static const char feed_line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"feed\",\"params\":{\"partialResultToken\":1}}\n";

/* What is said while the stream has filled the output is heard before the stream goes on. */
TEST(a_stream_is_cancelled_without_a_transport) {
    feed f = {0};
    weft_service *service;
    weft_peer *peer;
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = feed_methods, .ctx = &f, .limits = {.out_soft = 1000}},
                             &service) == 0);
    weft_peer_opts opts = {.framing = &weft_ndjson, .on_drain = on_feed_drain, .data = &f};
    REQUIRE(weft_peer_new(service, &opts, &peer) == 0);
    CHECK_INT(weft_peer_feed(peer, feed_line, sizeof feed_line - 1, 5), 0);
    CHECK(weft_peer_full(peer) && f.parts > 5);
    CHECK_INT(weft_peer_feed(peer, cancel_line, sizeof cancel_line - 1, 5), 0); /* kept */
    CHECK_INT(f.cancelled, 0);
    int before = f.parts;
    weft_peer_sent(peer, weft_peer_output(peer).len);
    CHECK_INT(f.parts, before);
    CHECK_INT(weft_peer_deadline(peer), 5); /* it does not look idle */
    CHECK_INT(weft_peer_tick(peer, 6), 0);
    CHECK_INT(f.cancelled, -ECANCELED);
    CHECK_INT(f.parts, before);
    CHECK(weft_peer_deadline(peer) > 6);
    check_said(peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32800,\"message\":\"stopped\"}}\n");
    weft_peer_free(peer);
    weft_service_unref(service);
}

/* Requests that were kept are answered by ticks alone, and half a message does not keep a loop busy. */
TEST(kept_input_shows_in_the_deadline) {
    weft_service *service;
    weft_peer *peer;
    int answers = 0, rounds = 0;
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = feed_methods, .limits = {.out_soft = 200}}, &service) == 0);
    REQUIRE(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
    for (int i = 0; i < 50; i++)
        kit_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"twice\"}\n", 3);
    kit_say(peer, "{\"jsonrpc\":\"2.0\",", 3);
    while (rounds++ < 1000) {
        char *text = kit_take(peer, NULL);
        for (const char *p = text; (p = strstr(p, "\"result\"")); p++)
            answers++;
        free(text);
        if (weft_peer_deadline(peer) > 3)
            break;
        CHECK_INT(weft_peer_tick(peer, 3), 0);
    }
    CHECK_INT(answers, 50);
    CHECK(rounds > 5 && rounds < 100);
    weft_peer_pause(peer, true);
    kit_say(peer, "\"id\":9,\"method\":\"twice\"}\n", 4);
    CHECK(weft_peer_deadline(peer) > 4);
    weft_peer_pause(peer, false);
    CHECK_INT(weft_peer_deadline(peer), 4);
    CHECK_INT(weft_peer_tick(peer, 4), 0);
    check_said(peer, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":1}\n");
    weft_peer_free(peer);
    weft_service_unref(service);
}

/* ---- and on a real one ---- */

typedef struct reader {
    weft_loop *loop;
    int64_t id;
    int parts, r;
    bool done, cancelled;
} reader;

static void on_feed_part(weft_peer *peer, const weft_json *part, void *ctx) {
    reader *self = ctx;
    (void) part;
    if (++self->parts == 2000) {
        self->cancelled = weft_notify(peer, "$/cancelRequest", WEFT_OBJ({"id", weft_int(self->id)})) == 0;
        CHECK(self->cancelled);
    }
}

static void on_feed_end(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    reader *self = ctx;
    (void) peer;
    self->done = true;
    self->r = r == 0 && answer->error ? answer->error->code : r;
    weft_loop_stop(self->loop);
}

static void on_server_drain(weft_server *server, weft_peer *peer, void *data) {
    (void) server, (void) peer;
    pour(data);
}

static void on_too_long(weft_timer *timer, void *ctx) {
    (void) timer;
    weft_loop_stop(ctx);
}

static void stream_over(const char *url) {
    feed f = {0};
    reader self = {0};
    weft_service *service;
    weft_server *server;
    weft_peer *peer;
    weft_timer *limit;
    test_row(url);
    REQUIRE(weft_loop_new(NULL, &self.loop) == 0);
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = feed_methods, .ctx = &f, .limits = {.out_soft = 20000}},
                             &service) == 0);
    weft_server_opts opts = {.service = service, .on_drain = on_server_drain, .data = &f};
    REQUIRE(weft_server_new(self.loop, &opts, &server) == 0);
    REQUIRE(weft_server_listen(server, url, NULL) == 0);
    REQUIRE(weft_connect_on(self.loop, weft_server_url(server, 0), NULL, &peer, NULL) == 0);
    CHECK_INT(
        weft_call_start(peer, "feed", weft_none(),
                        &(weft_call_opts){.on_answer = on_feed_end, .on_part = on_feed_part, .ctx = &self, .timeout_ms = -1},
                        &self.id),
        0);
    REQUIRE(weft_timer_new(self.loop, on_too_long, self.loop, &limit) == 0);
    weft_timer_start(limit, 20000, 0);
    weft_loop_run(self.loop);
    CHECK(self.done && self.cancelled);
    CHECK_INT(self.r, WEFT_CANCELLED);
    CHECK_INT(f.cancelled, -ECANCELED);
    weft_timer_free(limit);
    weft_peer_free(peer);
    weft_server_free(server);
    weft_loop_free(self.loop);
    weft_service_unref(service);
}

/* The server fills the output whenever there is room; what the client says meanwhile is heard all the same. */
TEST(a_stream_is_cancelled_on_a_transport) {
    char url[64];
    snprintf(url, sizeof url, "unix:/tmp/weft-peer-user-%ld.sock", (long) getpid());
    stream_over("mem:pour");
    stream_over(url);
    stream_over("tcp://127.0.0.1:0");
    stream_over("ws://127.0.0.1:0/");
    test_row(NULL);
}

TEST_MAIN(CASE(a_second_answer_is_an_error) CASE(rows_that_are_refused) CASE(notifications_that_are_refused)
              CASE(an_answer_that_cannot_be_written) CASE(params_that_are_not_sent) CASE(names_that_are_null)
                  CASE(options_and_outputs_that_are_null) CASE(limits_and_paths_of_params) CASE(a_message_with_a_format)
                      CASE(values_that_grow) CASE(a_builder_without_memory) CASE(what_is_discovered)
                          CASE(a_stream_is_cancelled_without_a_transport) CASE(kept_input_shows_in_the_deadline)
                              CASE(a_stream_is_cancelled_on_a_transport))
