/* A server for the tests with other people's programs: what they can do that examples/spec-server has no method for.
 *
 *     interop_server [--tls-cert FILE --tls-key FILE [--tls-ca FILE]] [--token T] [--origin O] [--any-host] [--no-batch]
 *                    [--max-body N] URL...
 *
 * Nothing here is clever on purpose: a failure should be the library's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

typedef struct state {
    weft_server *server;
    weft_loop *loop;
    weft_req *kept[1024]; /* of "keep", until "release" */
    size_t kept_count;
    int64_t notified; /* how many "count_me" notifications came */
    int64_t cancelled;
} state;

static int echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

static int nothing(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, weft_null());
}

static int fail(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_fail(req, (int) weft_get_int(params, "code", -32050), weft_get_str(params, "message", "as you wished"),
                     weft_copy(params));
}

static int broken(weft_req *req, const weft_json *params, void *ctx) {
    (void) req, (void) params, (void) ctx;
    return -EIO;
}

static void give_up(weft_req *req, int why, void *ctx) {
    state *all = ctx;
    all->cancelled++;
    weft_fail(req, WEFT_CANCELLED, why == -ECANCELED ? "cancelled" : "gone", weft_none());
}

/* Answered only once the caller does not want it any more. */
static int wait_for_cancel(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    if (!weft_req_is_notification(req))
        weft_req_on_cancel(req, give_up, ctx);
    return 0;
}

/* Kept without hearing of cancellation: the library answers -32800 by itself. */
static int keep(weft_req *req, const weft_json *params, void *ctx) {
    state *all = ctx;
    (void) params;
    if (all->kept_count == sizeof all->kept / sizeof all->kept[0])
        return -ENOBUFS;
    if (!weft_req_is_notification(req))
        all->kept[all->kept_count++] = req;
    return 0;
}

/* Answer what "keep" kept, the last first. */
static int release(weft_req *req, const weft_json *params, void *ctx) {
    state *all = ctx;
    int64_t count = (int64_t) all->kept_count;
    (void) params;
    while (all->kept_count)
        weft_reply(all->kept[--all->kept_count], weft_str("released"));
    return weft_reply(req, weft_int(count));
}

static int count(weft_req *req, const weft_json *params, void *ctx) {
    int64_t to = weft_get_int(params, "to", 3);
    (void) ctx;
    for (int64_t i = 1; i <= to; i++) {
        int r = weft_part(req, WEFT_OBJ({"at", weft_int(i)}));
        if (r < 0)
            return r;
    }
    return weft_reply(req, weft_int(to));
}

static void pass_on(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_req *req = ctx;
    (void) peer;
    if (r < 0)
        weft_fail(req, WEFT_INTERNAL_ERROR, weft_strerror(r), weft_none());
    else if (answer->error)
        weft_fail(req, answer->error->code, answer->error->message, weft_copy(&answer->error->data));
    else
        weft_reply(req, weft_copy(answer->result));
}

/* {method, params}: call the caller, and answer what it answers. */
static int callback(weft_req *req, const weft_json *params, void *ctx) {
    weft_json inner = weft_get(params, "params");
    (void) ctx;
    if (weft_req_is_notification(req))
        return 0;
    return weft_call_start(weft_req_peer(req), weft_get_str(params, "method", ""),
                           inner.text ? weft_copy(&inner) : weft_none(), &(weft_call_opts){.on_answer = pass_on, .ctx = req},
                           NULL);
}

static int big(weft_req *req, const weft_json *params, void *ctx) {
    size_t size = (size_t) weft_get_int(params, "size", 1 << 20);
    char *text = malloc(size + 1);
    (void) ctx;
    if (!text)
        return -ENOMEM;
    memset(text, 'x', size);
    int r = weft_reply(req, weft_strn(text, size));
    free(text);
    return r;
}

/* The length of a string, so that a large one need not come back. */
static int length(weft_req *req, const weft_json *params, void *ctx) {
    weft_json value = weft_typeof(params) == WEFT_OBJECT ? weft_get(params, "s") : weft_at(params, 0);
    weft_bytes text = {0};
    (void) ctx;
    int r = weft_bytes_of(&value, &text);
    return r < 0 ? r : weft_reply(req, weft_uint(text.len));
}

/* {times}: that many notifications to the caller, then the answer. */
static int tell_me(weft_req *req, const weft_json *params, void *ctx) {
    int64_t times = weft_get_int(params, "times", 1);
    int r = 0;
    (void) ctx;
    for (int64_t i = 1; i <= times && r >= 0; i++)
        r = weft_notify(weft_req_peer(req), "told", WEFT_OBJ({"n", weft_int(i)}));
    return r < 0 ? r : weft_reply(req, weft_int(times));
}

static int publish(weft_req *req, const weft_json *params, void *ctx) {
    state *all = ctx;
    int told = weft_server_broadcast(all->server, "message", weft_copy(params), NULL, NULL);
    return told < 0 ? told : weft_reply(req, weft_int(told));
}

static int count_me(weft_req *req, const weft_json *params, void *ctx) {
    state *all = ctx;
    (void) params;
    return weft_reply(req, weft_int(weft_req_is_notification(req) ? ++all->notified : all->notified));
}

static int whoami(weft_req *req, const weft_json *params, void *ctx) {
    const weft_identity *who = weft_req_identity(req);
    (void) params, (void) ctx;
    return weft_reply(req, WEFT_OBJ({"transport", weft_str(who->transport)}, {"name", weft_str(who->name)},
                                    {"scopes", weft_str(who->scopes)}, {"authenticated", weft_bool(who->authenticated)}));
}

static int report(weft_req *req, const weft_json *params, void *ctx) {
    state *all = ctx;
    const weft_stats *stats = weft_service_stats(weft_server_service(all->server));
    (void) params;
    return weft_reply(req, WEFT_OBJ({"clients", weft_uint(weft_server_clients(all->server))},
                                    {"cancelled", weft_int(all->cancelled)}, {"notified", weft_int(all->notified)},
                                    {"requests", weft_uint(stats->requests)}, {"strays", weft_uint(stats->stray_answers)}));
}

/* Close the caller's connection from inside its own request. */
static int hang_up(weft_req *req, const weft_json *params, void *ctx) {
    weft_peer *peer = weft_req_peer(req);
    (void) params, (void) ctx;
    int r = weft_reply(req, weft_str("bye"));
    weft_peer_close(peer, 4001, "as you wished");
    weft_peer_free(peer);
    return r;
}

static int stop(weft_req *req, const weft_json *params, void *ctx) {
    state *all = ctx;
    (void) params;
    int r = weft_reply(req, weft_bool(true));
    weft_server_stop(all->server, NULL, NULL);
    return r;
}

typedef struct settings {
    weft_listen_opts listen;
    weft_token tokens[2];
    const char *hosts[2], *origins[2];
    size_t max_body;
    char **urls;
} settings;

static const char *value_of(char ***at, const char *name) {
    if (strcmp(**at, name) != 0 || !(*at)[1])
        return NULL;
    return *++*at;
}

static int read_arguments(char **argv, settings *ret) {
    char **at = argv + 1;
    const char *value;
    for (; *at && strncmp(*at, "--", 2) == 0; at++) {
        if (strcmp(*at, "--any-host") == 0)
            ret->hosts[0] = "*", ret->listen.hosts = ret->hosts;
        else if (strcmp(*at, "--no-batch") == 0)
            ret->listen.no_batch = true;
        else if ((value = value_of(&at, "--origin")))
            ret->origins[0] = value, ret->listen.origins = ret->origins;
        else if ((value = value_of(&at, "--token")))
            ret->tokens[0] = (weft_token){.token = value, .name = "tester"}, ret->listen.tokens = ret->tokens;
        else if ((value = value_of(&at, "--max-body")))
            ret->max_body = strtoul(value, NULL, 10);
        else if ((value = value_of(&at, "--tls-cert")))
            ret->listen.tls.cert = value;
        else if ((value = value_of(&at, "--tls-key")))
            ret->listen.tls.key = value;
        else if ((value = value_of(&at, "--tls-ca")))
            ret->listen.tls.ca = value;
        else
            return -1;
    }
    ret->urls = at;
    return *at ? 0 : -1;
}

/* A page from the same host and port as the WebSocket, so that a browser has the right Origin. */
static void page(weft_http *http, void *ctx) {
    static const char html[] =
        "<!doctype html><title>weft</title><pre id=out></pre><script>\n"
        "const out = document.getElementById('out');\n"
        "const say = text => { out.textContent += text + '\\n'; };\n"
        "const ws = new WebSocket(`ws://${location.host}/ws`);\n"
        "ws.onopen = () => ws.send(JSON.stringify({jsonrpc: '2.0', id: 1, method: 'echo', params: ['h\\u00e9llo']}));\n"
        "ws.onclose = event => say(`closed ${event.code} ${event.reason}`);\n"
        "ws.onerror = () => say('error');\n"
        "const next = {\n"
        "  1: () => ws.send(JSON.stringify({jsonrpc: '2.0', id: 2, method: 'length', params: ['y'.repeat(1000000)]})),\n"
        "  2: () => ws.send(new Blob([JSON.stringify({jsonrpc: '2.0', id: 3, method: 'big', params: {size: 1000000}})])),\n"
        "  3: () => ws.send(JSON.stringify({jsonrpc: '2.0', id: 4, method: 'tell_me', params: {times: 3}})),\n"
        "  4: () => ws.send(JSON.stringify({jsonrpc: '2.0', id: 5, method: 'hang_up'})),\n"
        "};\n"
        "ws.onmessage = event => {\n"
        "  const message = JSON.parse(event.data);\n"
        "  const text = JSON.stringify(message.result ?? message.params);\n"
        "  say(`${message.id ?? message.method} ${text.length > 99 ? text.length : text}`);\n"
        "  next[message.id]?.();\n"
        "};\n"
        "</script>\n";
    (void) ctx;
    weft_http_answer(http, 200, "text/html; charset=utf-8", (weft_bytes){html, sizeof html - 1});
}

static int serve(state *all, const settings *how) {
    int r = weft_server_route(all->server, "GET", "/page", page, NULL);
    for (char **url = how->urls; *url && r >= 0; url++) {
        r = weft_server_listen(all->server, *url, &how->listen);
        if (r < 0)
            fprintf(stderr, "interop_server: %s: %s\n", *url, weft_strerror(r));
    }
    for (size_t i = 0; r >= 0 && weft_server_url(all->server, i); i++)
        fprintf(stderr, "listening on %s\n", weft_server_url(all->server, i));
    return r < 0 ? r : weft_loop_run(all->loop);
}

/* A row with everything that a row can say. */
typedef struct order {
    const char *item, *speed, *note;
    int64_t count, any_count;
    double share;
    bool gift;
    weft_json tags, address;
} order;
static const char *const speeds[] = {"slow", "fast", NULL};
static const weft_param order_params[] = {
    WEFT_MUST_IN(order, item, str, 1, 8, "what"),
    WEFT_MAY_BE(order, speed, speeds, "how fast"),
    WEFT_MAY_IN(order, note, str, INT64_MIN, 4, "a few characters"),
    WEFT_MAY_IN(order, count, int, -3, 10, "how many"),
    WEFT_MAY(order, any_count, int, "any integer"),
    WEFT_MAY_IN(order, share, num, 0, 1, "of all"),
    WEFT_MAY(order, gift, bool, "wrapped"),
    WEFT_MAY_IN(order, tags, arr, 1, 2, "words"),
    WEFT_MAY(order, address, obj, "where to"),
    WEFT_END(order),
};
static const weft_param sent_params[] = {WEFT_MUST(order, item, str, "what"), WEFT_MAY(order, count, int, "how many"),
                                         WEFT_END(order)};
static const weft_example order_examples[] = {
    {.name = "by name",
     .help = "all of it",
     .params = "{\"item\": \"tea\",\n \"speed\": \"fast\"}",
     .result = "{\"item\":\"tea\"}"},
    {.name = "by position", .params = "[\"tea\", \"slow\", \"now\", 2]", .result = "{\"item\":\"tea\"}"},
    {0}};
static const weft_example sent_examples[] = {{.name = "sent", .params = "{\"item\":\"tea\"}"}, {0}};
static const weft_error_row order_errors[] = {{409, "Sold out", "soldOut"}, {410, NULL, NULL}, {0}};
static const weft_method told[] = {{.name = "order_sent",
                                    .params = sent_params,
                                    .help = "it is on its way",
                                    .description = "Told once for each order.",
                                    .examples = sent_examples},
                                   {0}};

static int take_order(weft_req *req, const weft_json *params, void *ctx) {
    const order *want = weft_req_params(req);
    (void) params, (void) ctx;
    return weft_reply(req, WEFT_OBJ({"item", weft_str(want->item)}));
}

static const weft_method methods[] = {
    {"echo", echo, .help = "the params as they came"},
    {"nothing", nothing, .help = "null"},
    {"fail", fail, .help = "an error with the code and message given, and the params as data"},
    {"broken", broken, .help = "a handler that fails"},
    {"wait", wait_for_cancel, .help = "answers when it is cancelled"},
    {"keep", keep, .help = "answers when release is called"},
    {"release", release, .help = "answers what is kept"},
    {.name = "order",
     .handler = take_order,
     .params = order_params,
     .help = "order something",
     .description = "It comes *soon*.",
     .result = "{\"type\": \"object\",\n \"required\": [\"item\"], \"properties\": {\"item\": {\"type\": \"string\"}}}",
     .errors = order_errors,
     .examples = order_examples},
    {"count", count, .help = "parts, then the answer"},
    {"callback", callback, .help = "calls the caller"},
    {"big", big, .help = "a string of that size"},
    {"length", length, .help = "how long a string is"},
    {"tell_me", tell_me, .help = "notifications"},
    {"publish", publish, .help = "tell everybody"},
    {"count_me", count_me, .help = "how often it was notified"},
    {"whoami", whoami, .help = "the caller's identity"},
    {"report", report, .help = "counters"},
    {"hang_up", hang_up, .help = "closes the connection"},
    {"stop", stop, .help = "stops the server gracefully"},
    {0},
};

int main(int argc, char **argv) {
    settings how = {0};
    state all = {0};
    weft_service *service = NULL;
    (void) argc;
    if (read_arguments(argv, &how) < 0)
        return fprintf(stderr, "usage: see the top of server.c\n"), 2;
    weft_service_opts opts = {.methods = methods,
                              .ctx = &all,
                              .title = "interop",
                              .version = WEFT_VERSION,
                              .description = "What the *tests* need.",
                              .notifications = told};
    opts.limits.max_body = opts.limits.max_body_stranger = how.max_body;
    int r = weft_loop_new(NULL, &all.loop);
    if (r >= 0)
        r = weft_service_new(&opts, &service);
    if (r >= 0)
        r = weft_server_new(all.loop, &(weft_server_opts){.service = service, .grace_ms = 1000}, &all.server);
    if (r >= 0)
        r = serve(&all, &how);
    weft_server_free(all.server);
    while (all.kept_count)
        weft_reply(all.kept[--all.kept_count], weft_null());
    weft_service_unref(service);
    weft_loop_free(all.loop);
    return r < 0;
}
