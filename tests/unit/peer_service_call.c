/* Rows that are called without a connection: the answers are those that a peer gets, and they come once, later, whatever
 * happens to the service meanwhile. */
#include "peer_kit.h"

typedef struct world {
    test_memory memory;
    weft_service *service;
    weft_req *open; /* kept by "later" */
    int ready;      /* how often on_ready was called */
    int cancelled;  /* what "later" was told */
    int gated;      /* requests that the gate saw */
} world;

typedef struct called {
    world *w;
    int count;
    int r;
    char text[512]; /* the result, or "code message data" */
    bool again, leave;
} called;

/* ---- methods ---- */

static int answer_echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, WEFT_OBJ({"who", weft_str(weft_req_identity(req)->name)},
                                    {"said", params->text ? weft_copy(params) : weft_null()}));
}

static void on_cancel(weft_req *req, int why, void *ctx) {
    (void) req;
    ((world *) ctx)->cancelled = why;
}

static int answer_later(weft_req *req, const weft_json *params, void *ctx) {
    world *w = ctx;
    w->open = req;
    if (weft_get_bool(params, "listen", false))
        weft_req_on_cancel(req, on_cancel, w);
    return 0;
}

static int answer_close(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    weft_peer *peer = weft_req_peer(req);
    bool answers = weft_get_bool(params, "answer", false);
    if (answers)
        weft_reply(req, weft_str("closed"));
    weft_peer_free(peer);
    return answers ? 0 : -EPIPE;
}

/* Nobody hears of it where no connection is. */
static int answer_notify(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, weft_int(weft_notify(weft_req_peer(req), "news", weft_none())));
}

/* The last reference goes while the handler runs. */
static int answer_unref(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    world *w = ctx;
    w->service = weft_service_unref(w->service);
    return weft_reply(req, weft_null());
}

struct text {
    const char *text;
};
static const weft_param text_params[] = {{"text", WEFT_PARAM_str, offsetof(struct text, text), WEFT_REQUIRED, "what to say"},
                                         WEFT_END(struct text)};

static const weft_method methods[] = {
    {"echo", answer_echo},
    {"text", answer_echo, text_params, .flags = WEFT_ROW_STRICT},
    {"secret", answer_echo, .scope = "admin"},
    {"later", answer_later, .flags = WEFT_ROW_SOON | WEFT_ROW_CHANGES},
    {"close", answer_close},
    {"notify", answer_notify},
    {"unref", answer_unref},
    {0},
};

static int count_gated(void *ctx, const weft_gate_request *request) {
    world *w = ctx;
    w->gated++;
    weft_json no = weft_get(&request->params, "no");
    return no.text ? (weft_refuse(request->req, 451, "Not for you", "refused"), -EACCES) : 0;
}

/* ---- the world ---- */

static weft_gate gate = {.name = "count", .before = count_gated};
static const weft_gate *const gates[] = {&gate, NULL};
static const weft_identity ann = {.transport = "http", .name = "ann", .scopes = "read", .authenticated = true};

static void on_ready(void *ctx) {
    ((world *) ctx)->ready++;
}

static int open_world(world *w, long fail_at, weft_limits limits) {
    *w = (world){0};
    test_memory_init(&w->memory, fail_at);
    gate.ctx = w;
    return weft_service_new(
        &(weft_service_opts){
            .methods = methods, .ctx = w, .gates = gates, .limits = limits, .on_ready = on_ready, .alloc = &w->memory.alloc},
        &w->service);
}

static void close_world(world *w) {
    weft_service_unref(w->service);
    CHECK_INT(w->memory.live, 0);
}

static void on_called(void *ctx, int r, const weft_answer *answer) {
    called *c = ctx;
    c->count++;
    c->r = r;
    if (r == 0 && answer->result)
        snprintf(c->text, sizeof c->text, "%.*s", (int) answer->result->len, answer->result->text);
    else if (r == 0)
        snprintf(c->text, sizeof c->text, "%d %s %.*s", answer->error->code, answer->error->message,
                 (int) answer->error->data.len, answer->error->data.text ? answer->error->data.text : "");
    if (c->again && c->count == 1)
        weft_service_call(c->w->service, &ann, "echo", weft_none(), on_called, c, NULL);
    if (c->leave)
        c->w->service = weft_service_unref(c->w->service);
}

static int call(called *c, const char *method, const char *params, int64_t *ret_id) {
    weft_val value = params ? weft_raw(params, strlen(params)) : weft_none();
    return weft_service_call(c->w->service, &ann, method, value, on_called, c, ret_id);
}

/* ---- the same answers ---- */

static void check_same(world *w, const char *method, const char *params) {
    called c = {.w = w};
    weft_peer *peer;
    char line[512];
    REQUIRE(weft_peer_new(w->service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &ann}, &peer) == 0);
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"%s%s}\n", method,
             params ? ",\"params\":" : "", params ? params : "");
    kit_say(peer, line, 0);
    char *said = kit_take(peer, NULL);
    CHECK_INT(call(&c, method, params, NULL), 0);
    CHECK_INT(c.count, 0); /* never from within */
    CHECK_INT(weft_service_deliver(w->service), 1);
    CHECK_INT(c.count, 1);
    CHECK_INT(c.r, 0);
    weft_doc *doc;
    REQUIRE(weft_doc_parse(said, strlen(said), NULL, &doc) == 0);
    weft_json result = weft_get(weft_doc_root(doc), "result"), error = weft_get(weft_doc_root(doc), "error");
    weft_json data = weft_get(&error, "data");
    char want[512];
    if (result.text)
        snprintf(want, sizeof want, "%.*s", (int) result.len, result.text);
    else
        snprintf(want, sizeof want, "%d %s %.*s", (int) weft_get_int(&error, "code", 0), weft_get_str(&error, "message", ""),
                 (int) data.len, data.text ? data.text : "");
    CHECK_STR(c.text, want);
    weft_doc_free(doc);
    free(said);
    weft_peer_free(peer);
}

TEST(answers_are_those_of_a_peer) {
    static const struct {
        const char *method, *params;
    } rows[] = {
        {"echo", "{\"a\":[1,\"\\u00e4\"]}"},
        {"echo", NULL},
        {"text", "{\"text\":\"x\"}"},
        {"text", "{\"text\":1}"},
        {"text", "{\"text\":\"x\",\"txet\":1}"},
        {"text", "[\"x\"]"},
        {"none", "{}"},
        {"secret", "{}"},
        {"echo", "{\"no\":1}"},
        {"echo", "5"},
        {"rpc.discover", NULL},
    };
    world w;
    REQUIRE(open_world(&w, 0, (weft_limits){0}) == 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].params ? rows[i].params : rows[i].method);
        check_same(&w, rows[i].method, rows[i].params);
    }
    test_row(NULL);
    CHECK_INT(w.gated, 2 * (sizeof rows / sizeof rows[0] - 1)); /* what is no request meets no gate */
    CHECK_INT(w.ready, sizeof rows / sizeof rows[0]);
    close_world(&w);
}

TEST(the_rate_limit_counts_them) {
    world w;
    called c = {.w = &w};
    REQUIRE(open_world(&w, 0, (weft_limits){.rate_per_minute = 2}) == 0);
    for (int i = 0; i < 3; i++)
        CHECK_INT(call(&c, "echo", NULL, NULL), 0);
    CHECK_INT(w.ready, 1); /* for all of them */
    CHECK_INT(weft_service_deliver(w.service), 3);
    CHECK(strstr(c.text, "rateLimited") != NULL);
    close_world(&w);
}

/* ---- later ---- */

TEST(answers_come_later) {
    world w;
    called c = {.w = &w, .again = true};
    REQUIRE(open_world(&w, 0, (weft_limits){0}) == 0);
    CHECK_INT(call(&c, "later", "{}", NULL), 0);
    CHECK_INT(weft_service_deliver(w.service), 0);
    CHECK_INT(weft_reply(w.open, weft_str("now")), 0);
    CHECK_INT(w.ready, 1);
    CHECK_INT(c.count, 0);
    CHECK_INT(weft_service_deliver(w.service), 1); /* and calls again, which is for the next round */
    CHECK_STR(c.text, "\"now\"");
    CHECK_INT(weft_service_deliver(w.service), 1);
    CHECK_INT(c.count, 2);
    CHECK_INT(weft_service_deliver(w.service), 0);
    CHECK_INT(call(&c, "notify", NULL, NULL), 0);
    weft_service_deliver(w.service);
    CHECK_INT(atoi(c.text), -ENOTSUP);
    close_world(&w);
}

TEST(calls_are_cancelled) {
    world w;
    called c = {.w = &w};
    int64_t id = 0, other = 0;
    REQUIRE(open_world(&w, 0, (weft_limits){0}) == 0);
    CHECK_INT(weft_service_cancel(w.service, 1), -ENOENT);
    CHECK_INT(call(&c, "later", "{}", &id), 0);
    CHECK_INT(weft_service_cancel(w.service, id + 1), -ENOENT);
    CHECK_INT(weft_service_cancel(w.service, id), 0);
    CHECK_INT(weft_service_cancel(w.service, id), -ENOENT);
    CHECK_INT(c.count, 0);
    CHECK_INT(weft_service_deliver(w.service), 1);
    CHECK_INT(c.r, -ECANCELED);
    CHECK_INT(weft_reply(w.open, weft_null()), 0); /* nobody hears it */

    /* A handler that wants to know is told, and may take its time. */
    CHECK_INT(call(&c, "later", "{\"listen\":true}", &id), 0);
    CHECK_INT(weft_service_cancel(w.service, id), 0);
    CHECK_INT(w.cancelled, -ECANCELED);
    CHECK_INT(weft_service_deliver(w.service), 1);
    CHECK_INT(c.r, -ECANCELED);
    CHECK_INT(weft_reply(w.open, weft_null()), -EPIPE);

    /* What is answered already is not cancelled any more. */
    CHECK_INT(call(&c, "echo", NULL, &other), 0);
    CHECK_INT(weft_service_cancel(w.service, other), -ENOENT);
    CHECK_INT(weft_service_deliver(w.service), 1);
    CHECK_INT(c.r, 0);
    CHECK_INT(c.count, 3);
    close_world(&w);
}

/* ---- the service goes ---- */

TEST(the_service_is_freed_first) {
    world w;
    called open = {.w = &w}, ready = {.w = &w}, kept = {.w = &w};
    REQUIRE(open_world(&w, 0, (weft_limits){0}) == 0);
    CHECK_INT(call(&open, "later", "{}", NULL), 0);
    weft_req *first = w.open;
    CHECK_INT(call(&kept, "later", "{\"listen\":true}", NULL), 0);
    CHECK_INT(call(&ready, "echo", NULL, NULL), 0);
    w.service = weft_service_unref(w.service);
    CHECK_INT(open.count, 1);
    CHECK_INT(open.r, -ECANCELED);
    CHECK_INT(kept.r, -ECANCELED);
    CHECK_INT(w.cancelled, -EPIPE);
    CHECK_INT(ready.count, 1);
    CHECK_INT(ready.r, 0); /* its answer was there */
    /* Handlers that still work hold the memory, as they do when a connection goes. */
    CHECK(w.memory.live > 0);
    CHECK_INT(weft_reply(first, weft_null()), -EPIPE);
    CHECK_INT(weft_reply(w.open, weft_null()), -EPIPE);
    close_world(&w);
}

TEST(the_service_is_freed_by_a_callback) {
    world w;
    called c = {.w = &w, .leave = true}, other = {.w = &w};
    REQUIRE(open_world(&w, 0, (weft_limits){0}) == 0);
    CHECK_INT(call(&c, "echo", NULL, NULL), 0);
    CHECK_INT(call(&other, "later", NULL, NULL), 0);
    CHECK_INT(weft_service_deliver(w.service), 1);
    CHECK_INT(c.count, 1);
    CHECK_INT(other.r, -ECANCELED);
    weft_reply(w.open, weft_null());
    close_world(&w);

    /* By a handler: the call is over when it returns. */
    c = (called){.w = &w};
    REQUIRE(open_world(&w, 0, (weft_limits){0}) == 0);
    CHECK_INT(call(&c, "unref", NULL, NULL), 0);
    CHECK_INT(c.count, 1);
    close_world(&w);
}

/* A peer that holds the service too: its end ends the calls. */
TEST(a_peer_holds_the_service) {
    world w;
    called c = {.w = &w};
    weft_peer *peer;
    REQUIRE(open_world(&w, 0, (weft_limits){0}) == 0);
    REQUIRE(weft_peer_new(w.service, NULL, &peer) == 0);
    CHECK_INT(call(&c, "later", NULL, NULL), 0);
    w.service = weft_service_unref(w.service);
    CHECK_INT(c.count, 0);
    weft_peer_free(peer);
    CHECK_INT(c.r, -ECANCELED);
    weft_reply(w.open, weft_null());
    close_world(&w);
}

/* ---- limits and trouble ---- */

TEST(there_is_a_limit) {
    world w;
    called c = {.w = &w};
    REQUIRE(open_world(&w, 0, (weft_limits){.max_calls = 2}) == 0);
    CHECK_INT(call(&c, "echo", NULL, NULL), 0);
    CHECK_INT(call(&c, "echo", NULL, NULL), 0);
    CHECK_INT(call(&c, "echo", NULL, NULL), -ENOBUFS);
    CHECK_INT(weft_service_deliver(w.service), 2);
    CHECK_INT(call(&c, "echo", NULL, NULL), 0);
    CHECK_INT(weft_service_deliver(w.service), 1);
    CHECK_INT(c.count, 3);
    close_world(&w);
}

TEST(a_handler_closes_the_connection) {
    world w;
    called c = {.w = &w};
    REQUIRE(open_world(&w, 0, (weft_limits){0}) == 0);
    CHECK_INT(call(&c, "close", "{}", NULL), 0);
    CHECK_INT(weft_service_deliver(w.service), 1);
    CHECK_INT(c.r, -ECONNRESET);
    CHECK_INT(call(&c, "close", "{\"answer\":true}", NULL), 0);
    CHECK_INT(weft_service_deliver(w.service), 1);
    CHECK_STR(c.text, "\"closed\"");
    close_world(&w);
}

TEST(memory_fails) {
    static const char *const params[] = {"{\"text\":\"\\u0041\"}", "{}"};
    static const char *const names[] = {"text", "later"};
    for (size_t i = 0; i < 2; i++) {
        bool failed = true;
        for (long fail_at = 1; failed && fail_at < 200; fail_at++) {
            world w;
            called c = {.w = &w};
            if (open_world(&w, fail_at, (weft_limits){0}) == 0) {
                int r = call(&c, names[i], params[i], NULL);
                if (w.open)
                    weft_reply(w.open, weft_null());
                weft_service_deliver(w.service);
                CHECK_INT(c.count, r >= 0); /* told once if it was taken, and not at all if not */
            }
            failed = w.memory.count >= fail_at;
            close_world(&w);
        }
        CHECK(!failed);
    }
}

/* ---- with a server ---- */

TEST(a_server_delivers_by_itself) {
    world w;
    called c = {.w = &w};
    weft_loop *loop;
    weft_server *server, *before;
    REQUIRE(open_world(&w, 0, (weft_limits){0}) == 0);
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    /* One that goes first takes nothing along. */
    REQUIRE(weft_server_new(loop, &(weft_server_opts){.service = w.service}, &before) == 0);
    REQUIRE(weft_server_new(loop, &(weft_server_opts){.service = w.service}, &server) == 0);
    weft_server_free(before);
    while (weft_loop_once(loop, false) > 0)
        ;
    CHECK_INT(call(&c, "echo", "[1]", NULL), 0);
    CHECK_INT(c.count, 0);
    while (!c.count)
        weft_loop_once(loop, true);
    CHECK_STR(c.text, "{\"who\":\"ann\",\"said\":[1]}");
    CHECK_INT(w.ready, 0);
    CHECK_INT(call(&c, "later", NULL, NULL), 0);
    weft_server_free(server);
    weft_reply(w.open, weft_null());
    while (weft_loop_once(loop, false) > 0)
        ;
    weft_loop_free(loop);
    CHECK_INT(weft_service_deliver(w.service), 1);
    CHECK_INT(c.count, 2);
    close_world(&w);
}

TEST_MAIN(CASE(answers_are_those_of_a_peer) CASE(the_rate_limit_counts_them) CASE(answers_come_later)
              CASE(calls_are_cancelled) CASE(the_service_is_freed_first) CASE(the_service_is_freed_by_a_callback)
                  CASE(a_peer_holds_the_service) CASE(there_is_a_limit) CASE(a_handler_closes_the_connection)
                      CASE(memory_fails) CASE(a_server_delivers_by_itself))
