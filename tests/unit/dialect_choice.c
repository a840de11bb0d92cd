/* Which dialect a connection speaks: its endpoint says so, until a method decides it for good. */
#include "hub_client.h"
#include "transport.h"

/* Two that are told apart by what initialize carries, as ACP and MCP are; and one that never claims. */
static bool claims_number(const weft_json *params) {
    weft_json version = weft_get(params, "version");
    return weft_typeof(&version) == WEFT_NUMBER;
}

static bool claims_anything(const weft_json *params) {
    return weft_get(params, "version").text != NULL;
}

static int answer_name(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, weft_str(weft_req_identity(req)->dialect));
}

static void render_one(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    (void) hub, (void) data;
    weft__render_notify(rendering, NULL, "one", WEFT_OBJ({"type", weft_str(event->type)}));
}

static void render_two(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    (void) hub, (void) data;
    weft__render_notify(rendering, NULL, "two", WEFT_OBJ({"type", weft_str(event->type)}));
}

static bool is_one_endpoint(const weft_scheme *scheme, const char *path) {
    return strcmp(scheme->name, "ws") == 0 && strcmp(path, "/one") == 0;
}

static bool is_two_endpoint(const weft_scheme *scheme, const char *path) {
    (void) path;
    return strcmp(scheme->name, "ws") == 0;
}

static const weft_param need_version[] = {
    {"version", WEFT_PARAM_any, 0, WEFT_REQUIRED, "of the protocol"},
    {"extra", WEFT_PARAM_int, sizeof(weft_json), 0, "a number"},
    {0},
};
static const weft_method one_methods[] = {
    {.name = "initialize", .handler = answer_name, .params = need_version, .flags = WEFT_DECIDES}, {0}};
static const weft_method two_methods[] = {{.name = "initialize", .handler = answer_name, .flags = WEFT_DECIDES},
                                          {.name = "begin", .handler = answer_name, .flags = WEFT_DECIDES},
                                          {0}};
static const weft_method plain_methods[] = {{.name = "initialize", .handler = answer_name}, {0}};
static const weft_dialect one = {
    .name = "one", .methods = one_methods, .endpoint = is_one_endpoint, .claims = claims_number, .render = render_one};
static const weft_dialect two = {
    .name = "two", .methods = two_methods, .endpoint = is_two_endpoint, .claims = claims_anything, .render = render_two};
static const weft_dialect plain = {.name = "plain", .methods = plain_methods};
static const weft_dialect *const both[] = {&one, &two, NULL};

#define INITIALIZE(id, params) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"initialize\",\"params\":{" params "}}"

static const weft_scheme *scheme_named(const char *name) {
    return &weft__transport_named(NULL, name)->scheme;
}

TEST(an_endpoint_has_a_dialect) {
    static const weft_dialect *const all[] = {&weft__aiwg, &weft__cdev, &weft__hub_methods, NULL};
    static const struct {
        const char *scheme, *path, *dialect;
    } rows[] = {
        {"unix", "", "aiwg"},  {"tcp", "", "aiwg"},      {"tls", "", "aiwg"},
        {"stdio", "", "aiwg"}, {"http", "/rpc", "aiwg"}, {"https", "/", "aiwg"},
        {"ws", "/ws", "cdev"}, {"wss", "/any", "cdev"},  {"mem", "", "aiwg"},
    };
    weft_hub hub = {0};
    weft_dialects *dialects = NULL;
    CHECK_INT(weft__dialects_new(all, &hub, NULL, &dialects), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_STR(weft__dialects_endpoint(dialects, scheme_named(rows[i].scheme), rows[i].path), rows[i].dialect);
    weft__dialects_free(dialects);
    CHECK_INT(weft__dialects_new(both, &hub, NULL, &dialects), 0);
    CHECK_STR(weft__dialects_endpoint(dialects, scheme_named("ws"), "/one"), "one"); /* both do: the first of the list */
    CHECK_STR(weft__dialects_endpoint(dialects, scheme_named("ws"), "/two"), "two");
    CHECK_STR(weft__dialects_endpoint(dialects, scheme_named("unix"), ""), "");
    weft__dialects_free(dialects);
}

TEST(initialize_decides_once) {
    hub_world w;
    hub_client a, b, c;
    CHECK_INT(hub_init(&w, &(hub_opts){.dialects = both}), 0);
    hub_connect(&w, "two", &a);
    hub_connect(&w, "two", &b);
    hub_connect(&w, "", &c);
    hub_happen(&w, "notice", "x");
    HUB_TOLD(&a, "\"method\":\"two\"");
    HUB_TOLD(&b, "\"method\":\"two\"");
    hub_say(&a, INITIALIZE(1, "\"version\":1"));
    HUB_TOLD(&a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"one\"}"); /* the first of the list that claims it */
    hub_say(&b, INITIALIZE(1, "\"version\":\"2025-01-01\""));
    HUB_TOLD(&b, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"two\"}");
    hub_happen(&w, "notice", "y");
    HUB_TOLD(&a, "\"method\":\"one\"");
    HUB_TOLD(&b, "\"method\":\"two\"");
    HUB_SILENT(&c);
    /* The same again is for the dialect to judge; another is refused, and nothing changes. */
    hub_say(&a, INITIALIZE(2, "\"version\":2"));
    HUB_TOLD(&a, "\"id\":2,\"result\":\"one\"");
    hub_say(&a, INITIALIZE(3, "\"version\":\"2025-01-01\""));
    HUB_TOLD(&a,
             "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32600,\"message\":\"This connection speaks one already; "
             "open another one to speak two\",\"data\":{\"reason\":\"dialectDecided\"}}}");
    hub_say(&a, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"begin\"}");
    HUB_TOLD(&a, "\"reason\":\"dialectDecided\"");
    hub_happen(&w, "notice", "z");
    HUB_TOLD(&a, "\"method\":\"one\"");
    HUB_SILENT(&a);
    /* A row of one dialect alone decides as well. */
    hub_say(&c, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"begin\"}");
    HUB_TOLD(&c, "\"id\":5,\"result\":\"two\"");
    hub_disconnect(&a);
    hub_disconnect(&b);
    hub_disconnect(&c);
    hub_done(&w);
}

TEST(what_is_refused_decides_nothing) {
    hub_world w;
    hub_client a;
    CHECK_INT(hub_init(&w, &(hub_opts){.dialects = both}), 0);
    hub_connect(&w, "one", &a);
    hub_say(&a, INITIALIZE(1, "\"version\":1,\"extra\":\"no number\"")); /* claimed, and not right */
    HUB_TOLD(&a, "\"path\":\"/extra\"");
    hub_say(&a, INITIALIZE(2, "")); /* nobody claims it: it is for what the connection speaks */
    HUB_TOLD(&a, "\"path\":\"/version\"");
    hub_say(&a, INITIALIZE(3, "\"version\":\"2025-01-01\""));
    HUB_TOLD(&a, "\"id\":3,\"result\":\"two\"");
    hub_disconnect(&a);
    hub_done(&w);
}

/* An HTTP POST has a peer that is no client: it is answered by what it carries. */
TEST(a_single_request_decides_nothing) {
    static const char ask[] = INITIALIZE(1, "\"version\":1") "\n" INITIALIZE(2, "\"version\":\"x\"") "\n";
    hub_world w;
    weft_peer *peer = NULL;
    CHECK_INT(hub_init(&w, &(hub_opts){.dialects = both}), 0);
    CHECK_INT(weft_peer_new(w.service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer), 0);
    CHECK_INT(weft_peer_feed(peer, ask, strlen(ask), 1), 0);
    weft_bytes out = weft_peer_output(peer);
    CHECK(memmem(out.data, out.len, "\"id\":1,\"result\"", 15) && memmem(out.data, out.len, "\"id\":2,\"result\"", 15));
    CHECK(!memmem(out.data, out.len, "\"error\"", 7));
    weft_peer_free(peer);
    hub_done(&w);
}

TEST(rows_of_one_name_decide_all_or_none) {
    weft_dialects *none;
    CHECK_INT(weft__dialects_new((const weft_dialect *const[]){&one, &plain, NULL}, NULL, NULL, &none), -EINVAL);
}

TEST_MAIN(CASE(an_endpoint_has_a_dialect) CASE(initialize_decides_once) CASE(what_is_refused_decides_nothing)
              CASE(a_single_request_decides_nothing) CASE(rows_of_one_name_decide_all_or_none))
