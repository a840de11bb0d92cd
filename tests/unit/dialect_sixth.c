/* A dialect that the hub does not have, in one file: what it takes to add one. The hub's own would have a line in
 * src/app/wiring.c besides; here that line is the list "wiring" below. */
#include "schemas.h"
#include "suites/dialect.h"
#include "transport.h"

/* ---- methods ---- */

struct greet_params {
    const char *name;
};
static const weft_param greet_params[] = {
    WEFT_MUST(struct greet_params, name, str, "who is there"),
    {0},
};
static const weft_error_row greet_errors[] = {{-32602, "Invalid params", "invalidParams"}, {0}};

/* Whoever asks for capitals is told everything so. */
static int greet(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    struct greet_params in = {0};
    int r = weft_bind(req, greet_params, params, &in);
    if (r < 0)
        return r;
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    bool loud = weft_get_bool(params, "loud", false);
    r = client && loud ? weft__hub_client_speak(client, "sixth", "LOUD") : 0;
    return r < 0 ? r : weft_reply(req, WEFT_OBJ({"hello", weft_str(in.name)}));
}

static const weft_method sixth_methods[] = {
    {.name = "initialize",
     .handler = greet,
     .params = greet_params,
     .help = "say who you are",
     .result = S_OF(S_IS("hello", S_STRING), "\"hello\""),
     .errors = greet_errors,
     .scope = "read",
     .flags = WEFT_DECIDES},
    {0},
};

/* ---- events ---- */

static const char *const sixth_variants[] = {"quiet", "LOUD", NULL};

static void sixth_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    (void) hub;
    if (strcmp(event->type, "task.completed") == 0)
        weft__render_notify(rendering, NULL, weft__render_variant(rendering) ? "DONE" : "done",
                            WEFT_OBJ({"task", weft_str(weft__render_text(rendering, data, "taskId", ""))}));
    else if (strcmp(event->type, "session.output") == 0)
        weft__render_notify(rendering, weft__render_text(rendering, data, "sessionId", ""), "said",
                            WEFT_OBJ({"text", weft_str(weft__render_text(rendering, data, "text", ""))}));
}

/* ---- the table ---- */

static bool sixth_endpoint(const weft_scheme *scheme, const char *path) {
    return strcmp(scheme->name, "ws") == 0 && strcmp(path, "/sixth") == 0;
}

static bool sixth_claims(const weft_json *params) {
    return weft_get(params, "name").text != NULL;
}

static const weft_dialect weft__sixth = {.name = "sixth",
                                         .methods = sixth_methods,
                                         .endpoint = sixth_endpoint,
                                         .claims = sixth_claims,
                                         .render = sixth_render,
                                         .variants = sixth_variants};
static const weft_dialect *const wiring[] = {&weft__sixth, &weft__aiwg, &weft__cdev, &weft__hub_methods, NULL};

DIALECT_SUITE(sixth)

TEST(beside_the_others) {
    hub_world w;
    hub_client a, b;
    CHECK_INT(hub_init(&w, &(hub_opts){.dialects = wiring}), 0);
    CHECK_STR(weft__dialects_endpoint(w.dialects, &weft__transport_named(NULL, "ws")->scheme, "/sixth"), "sixth");
    CHECK_STR(weft__dialects_endpoint(w.dialects, &weft__transport_named(NULL, "ws")->scheme, "/ws"), "cdev");
    hub_connect(&w, "sixth", &a);
    hub_connect(&w, "cdev", &b);
    hub_say(&b, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"name\":\"b\",\"loud\":true}}");
    HUB_TOLD(&b, "\"result\":{\"hello\":\"b\"}");
    hub_say(&a, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"task.submit\",\"params\":{\"prompt\":\"x\"}}");
    HUB_TOLD(&a, "\"id\":2,\"result\":{\"taskId\":\"task-0000\"");
    hub_end(hub_run(&w, "task-0000"), &(weft_run_end){.ok = true});
    HUB_TOLD(&a, "{\"jsonrpc\":\"2.0\",\"method\":\"done\",\"params\":{\"task\":\"task-0000\"}}");
    HUB_TOLD(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"DONE\",\"params\":{\"task\":\"task-0000\"}}");
    hub_disconnect(&a);
    hub_disconnect(&b);
    hub_done(&w);
}

TEST_MAIN(CASE(dialect_sixth) CASE(beside_the_others))
