/* What every transport must do, whatever carries its bytes. Joining it is one line, and its name in the list of cases:
 *
 *     LINK_SUITE(unix, .listen = "unix:/tmp/x.sock")
 *     LINK_MAIN(CASE(link_unix))
 *
 * The server runs on the client's loop, or in a child that is this same program (exec). Nothing sleeps; a guard ends a test
 * in which nothing happens any more. */
#ifndef SUITES_LINK_H
#define SUITES_LINK_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <weft/weft.h>

#include "client.h"
#include "connect_fds.h"
#include "harness.h"

/* Nothing here takes a tenth of it, also under a sanitizer on a busy machine. */
#define LINK_GUARD_MS 60000
#define LINK_MANY 1000
#define LINK_LARGE (1 << 20)

typedef struct link_kind {
    const char *name;
    const char *listen;  /* NULL: the server is the child that connect starts */
    const char *connect; /* NULL: the URL the server says it listens at */
    bool no_push;        /* the server cannot speak unasked */
    bool lazy;           /* an idle connection may end without a word: the next is made when it is needed */
    bool stays_open;     /* the server does not see us leave: the descriptors are the process's */
    bool once;           /* there is only one such endpoint in a process: it cannot be reached a second time */
    weft_tls_opts server_tls, client_tls;
    const weft_framing *framing;
    const weft_transport *const *transports;   /* besides libweft's own; or NULL */
    void (*open)(int ret_fds[2]);              /* the client is given descriptors, in and out, in place of a URL; or NULL */
    void (*before)(const weft_server *server); /* make the endpoint reachable; may be NULL */
    void (*after)(void);
} link_kind;

typedef struct link_scene {
    const link_kind *kind;
    weft_loop *loop;
    weft_service *service, *client_service;
    weft_server *server;
    weft_peer *peer;
    weft_timer guard;
    bool late;
    weft_peer_state state;
    int why, connected, closed, drained, news, news_value;
} link_scene;

/* One call, and how often it completed. */
typedef struct link_call {
    int times, r, code, parts;
    int64_t value;
    size_t len;
} link_call;

#define LINK_SUITE(suite, ...)                                                                                              \
    TEST(link_##suite) {                                                                                                    \
        static const link_kind kind = {.name = #suite, __VA_ARGS__};                                                        \
        link_suite(&kind);                                                                                                  \
    }

/* Run the loop until something is so. */
#define LINK_UNTIL(scene, condition)                                                                                        \
    do {                                                                                                                    \
        while (!(condition) && !(scene)->late)                                                                              \
            weft_loop_once((scene)->loop, true);                                                                            \
        CHECK(condition);                                                                                                   \
    } while (0)

/* ---- the server ---- */

static struct link_server {
    int64_t noted, cancelled;
    weft_req *waiting;
} link_served;

static int link_echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

static int link_fail(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_fail(req, 4711, "not today", WEFT_OBJ({"why", weft_str("because")}));
}

static int link_note(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    weft_json by = weft_at(params, 0);
    link_served.noted += weft_int_of(&by, 1);
    return weft_reply(req, weft_null());
}

static int link_noted(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, WEFT_ARR(weft_int(link_served.noted)));
}

static int link_tell(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    weft_notify(weft_req_peer(req), "news", weft_copy(params));
    return weft_reply(req, weft_copy(params));
}

static void link_passed_on(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer;
    if (r < 0 || answer->error)
        weft_fail(ctx, 1, "the client did not answer", weft_none());
    else
        weft_reply(ctx, weft_copy(answer->result));
}

static int link_back(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_call_start(weft_req_peer(req), "twice", weft_copy(params),
                           &(weft_call_opts){.on_answer = link_passed_on, .ctx = req}, NULL);
}

static void link_unwanted(weft_req *req, int why, void *ctx) {
    (void) ctx;
    link_served.cancelled++;
    link_served.waiting = NULL;
    weft_fail(req, WEFT_CANCELLED, weft_strerror(why), weft_none());
}

static int link_wait(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    weft_req_on_cancel(req, link_unwanted, NULL);
    link_served.waiting = req;
    return 0;
}

static int link_was_cancelled(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, WEFT_ARR(weft_int(link_served.cancelled)));
}

static int link_count(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    int64_t to = weft_get_int(params, "to", 0);
    for (int64_t i = 1; i <= to; i++)
        weft_part(req, weft_int(i));
    return weft_reply(req, WEFT_ARR(weft_int(to)));
}

static int link_die(weft_req *req, const weft_json *params, void *ctx) {
    (void) req, (void) params, (void) ctx;
    _exit(3);
}

static const weft_method link_methods[] = {
    {"echo", link_echo, .help = ""},   {"fail", link_fail, .help = ""},
    {"note", link_note, .help = ""},   {"noted", link_noted, .help = ""},
    {"tell", link_tell, .help = ""},   {"back", link_back, .help = ""},
    {"wait", link_wait, .help = ""},   {"was_cancelled", link_was_cancelled, .help = ""},
    {"count", link_count, .help = ""}, {0},
};
static const weft_method link_child_only = {"die", link_die, .help = ""};

/* This program as the server at the other end of exec:. */
static int link_child(void) {
    weft_loop *loop;
    weft_service *service;
    weft_server *server;
    if (weft_loop_new(NULL, &loop) < 0 || weft_service_new(&(weft_service_opts){.methods = link_methods}, &service) < 0 ||
        weft_service_add(service, &link_child_only) < 0 ||
        weft_server_new(loop, &(weft_server_opts){.service = service}, &server) < 0 ||
        weft_server_listen(server, "stdio:", NULL) < 0)
        return 1;
    weft_loop_run(loop);
    weft_server_free(server);
    weft_service_unref(service);
    weft_loop_run(loop);
    weft_loop_free(loop);
    return 0;
}

#define LINK_MAIN(...)                                                                                                      \
    int main(int argc, char **argv) {                                                                                       \
        static const test_case cases[] = {__VA_ARGS__};                                                                     \
        if (argc == 2 && strcmp(argv[1], "--child") == 0)                                                                   \
            return link_child();                                                                                            \
        return test_main(argc, argv, cases, sizeof cases / sizeof cases[0]);                                                \
    }

/* ---- the client ---- */

static int link_twice(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    weft_json value = weft_at(params, 0);
    return weft_reply(req, WEFT_ARR(weft_int(2 * weft_int_of(&value, 0))));
}

static const weft_method link_client_methods[] = {{"twice", link_twice, .help = ""}, {0}};

static void link_on_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    link_scene *s = data;
    (void) peer;
    s->state = state;
    s->why = why;
    s->connected += state == WEFT_PEER_CONNECTED;
    s->closed += state == WEFT_PEER_CLOSED;
}

static void link_on_notification(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    link_scene *s = data;
    (void) peer;
    weft_json value = weft_at(params, 0);
    s->news += strcmp(method, "news") == 0;
    s->news_value = (int) weft_int_of(&value, 0);
}

static void link_on_drain(weft_peer *peer, void *data) {
    (void) peer;
    ((link_scene *) data)->drained++;
}

/* The first item of a result, and the length of its text. */
static void link_on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    link_call *call = ctx;
    (void) peer;
    call->times++;
    call->r = r;
    if (r < 0)
        return;
    call->code = answer->error ? answer->error->code : 0;
    weft_json first = answer->result ? weft_at(answer->result, 0) : (weft_json){0};
    call->value = weft_int_of(&first, -1);
    call->len = first.len;
}

static void link_on_part(weft_peer *peer, const weft_json *part, void *ctx) {
    link_call *call = ctx;
    (void) peer;
    call->parts++;
    call->value = weft_int_of(part, -1);
}

static void link_start(link_scene *s, const char *method, weft_val params, link_call *call, int64_t *ret_id) {
    *call = (link_call){0};
    int r = weft_call_start(s->peer, method, params, &(weft_call_opts){.on_answer = link_on_answer, .ctx = call}, ret_id);
    CHECK_INT(r, 0);
}

/* ---- a scene ---- */

static void link_on_guard(weft_timer *timer) {
    WEFT_CONTAINER(timer, link_scene, guard)->late = true;
}

static int link_serve(link_scene *s) {
    int r = weft_server_new(s->loop, &(weft_server_opts){.service = s->service}, &s->server);
    if (r >= 0)
        r = weft_server_listen(s->server, s->kind->listen, &(weft_listen_opts){.tls = s->kind->server_tls});
    if (r >= 0 && s->kind->before)
        s->kind->before(s->server);
    return r;
}

static int link_connect(link_scene *s, bool reconnect) {
    const char *url = s->kind->connect || !s->server ? s->kind->connect : weft_server_url(s->server, 0);
    weft_connect_opts opts = {
        .service = s->client_service,
        .tls = s->kind->client_tls,
        .framing = s->kind->framing,
        .reconnect = reconnect,
        .data = s,
        .on_state = link_on_state,
        .on_notification = link_on_notification,
        .on_drain = link_on_drain,
    };
    if (!s->kind->open)
        return weft_connect_on(s->loop, url, &opts, &s->peer, NULL);
    int fds[2];
    s->kind->open(fds);
    return weft__connect_fds(s->loop, fds[0], fds[1], &opts, &s->peer);
}

static void link_begin(link_scene *s, const link_kind *kind) {
    *s = (link_scene){.kind = kind};
    link_served = (struct link_server){0};
    CHECK_INT(weft_loop_new(NULL, &s->loop), 0);
    s->loop->transports = kind->transports;
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = link_methods}, &s->service), 0);
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = link_client_methods}, &s->client_service), 0);
    weft__timer_init(&s->guard, link_on_guard);
    weft__timer_set(s->loop, &s->guard, weft_loop_now(s->loop) + LINK_GUARD_MS);
    weft_loop_hold(s->loop);
    if (kind->listen)
        CHECK_INT(link_serve(s), 0);
}

static void link_end(link_scene *s) {
    s->peer = weft_peer_free(s->peer);
    s->server = weft_server_free(s->server);
    weft__timer_stop(s->loop, &s->guard);
    weft_loop_release(s->loop);
    weft_service_unref(s->client_service);
    weft_service_unref(s->service);
    weft_loop_run(s->loop);
    weft_loop_free(s->loop);
    if (s->kind->after)
        s->kind->after();
}

/* What happens when the other side goes away without a word. */
static void link_kill_server(link_scene *s) {
    if (s->kind->listen)
        s->server = weft_server_free(s->server);
    else
        weft_notify(s->peer, "die", weft_none());
}

/* ---- the scenes; each is given a client that has begun to connect ---- */

static void link_calls(link_scene *s) {
    link_call call;
    link_start(s, "echo", WEFT_ARR(weft_int(7)), &call, NULL);
    LINK_UNTIL(s, call.times);
    CHECK_INT(call.r, 0);
    CHECK_INT(call.value, 7);
    CHECK_INT(s->state, WEFT_PEER_CONNECTED);
    CHECK_INT(s->connected, 1);
}

static void link_errors(link_scene *s) {
    link_call call;
    link_start(s, "fail", weft_none(), &call, NULL);
    LINK_UNTIL(s, call.times);
    CHECK_INT(call.r, 0);
    CHECK_INT(call.code, 4711);
    link_start(s, "there is none", weft_none(), &call, NULL);
    LINK_UNTIL(s, call.times);
    CHECK_INT(call.code, WEFT_METHOD_NOT_FOUND);
}

static void link_notifies(link_scene *s) {
    link_call call;
    CHECK_INT(weft_notify(s->peer, "note", WEFT_ARR(weft_int(20))), 0);
    CHECK_INT(weft_notify(s->peer, "note", WEFT_ARR(weft_int(3))), 0);
    link_start(s, "noted", weft_none(), &call, NULL);
    LINK_UNTIL(s, call.times);
    CHECK_INT(call.value, 23);
}

static void link_is_notified(link_scene *s) {
    link_call call;
    link_start(s, "tell", WEFT_ARR(weft_int(5)), &call, NULL);
    LINK_UNTIL(s, call.times && s->news);
    CHECK_INT(s->news, 1);
    CHECK_INT(s->news_value, 5);
}

static void link_is_called(link_scene *s) {
    link_call call;
    link_start(s, "back", WEFT_ARR(weft_int(21)), &call, NULL);
    LINK_UNTIL(s, call.times);
    CHECK_INT(call.code, 0);
    CHECK_INT(call.value, 42);
}

static void link_batches(link_scene *s) {
    link_call calls[3] = {0};
    weft_batch *batch;
    REQUIRE(weft_batch_new(s->peer, &batch) == 0);
    for (int i = 0; i < 3; i++)
        weft_batch_call(batch, i == 1 ? "fail" : "echo", WEFT_ARR(weft_int(i)),
                        &(weft_call_opts){.on_answer = link_on_answer, .ctx = &calls[i]}, NULL);
    weft_batch_notify(batch, "note", WEFT_ARR(weft_int(1)));
    CHECK_INT(weft_batch_send(batch), 0);
    LINK_UNTIL(s, calls[0].times && calls[1].times && calls[2].times);
    CHECK_INT(calls[0].value, 0);
    CHECK_INT(calls[1].code, 4711);
    CHECK_INT(calls[2].value, 2);
}

static void link_carries_large(link_scene *s) {
    link_call call;
    char *text = malloc(LINK_LARGE);
    memset(text, 'x', LINK_LARGE);
    link_start(s, "echo", WEFT_ARR(weft_strn(text, LINK_LARGE - 64)), &call, NULL);
    LINK_UNTIL(s, call.times);
    CHECK_INT(call.r, 0);
    CHECK_INT(call.len, LINK_LARGE - 64 + 2);
    free(text);
}

static void link_pipelines(link_scene *s) {
    link_call *calls = calloc(LINK_MANY, sizeof *calls);
    for (int i = 0; i < LINK_MANY; i++)
        link_start(s, "echo", WEFT_ARR(weft_int(i)), &calls[i], NULL);
    LINK_UNTIL(s, weft_peer_open_calls(s->peer) == 0);
    for (int i = 0; i < LINK_MANY; i++) {
        CHECK_INT(calls[i].times, 1);
        CHECK_INT(calls[i].value, i);
    }
    free(calls);
}

static void link_cancels(link_scene *s) {
    link_call call, asked;
    int64_t id;
    link_start(s, "wait", weft_none(), &call, &id);
    LINK_UNTIL(s, s->state == WEFT_PEER_CONNECTED);
    CHECK_INT(weft_cancel(s->peer, id), 0);
    CHECK_INT(weft_cancel(s->peer, id), -ENOENT);
    CHECK_INT(call.r, -ECANCELED);
    link_start(s, "was_cancelled", weft_none(), &asked, NULL);
    LINK_UNTIL(s, asked.times);
    CHECK_INT(asked.value, 1);
    CHECK_INT(call.times, 1);
}

static void link_loses_server(link_scene *s) {
    link_call call, after;
    link_start(s, "wait", weft_none(), &call, NULL);
    link_start(s, "echo", WEFT_ARR(weft_int(1)), &after, NULL);
    if (!s->kind->no_push)
        LINK_UNTIL(s, after.times);
    else
        LINK_UNTIL(s, s->state == WEFT_PEER_CONNECTED);
    link_kill_server(s);
    LINK_UNTIL(s, s->closed);
    CHECK_INT(call.times, 1);
    CHECK_INT(call.r, -ECONNRESET);
    CHECK_INT(s->why < 0, 1);
    CHECK(*weft_peer_trouble(s->peer));
    weft_call_opts opts = {.on_answer = link_on_answer, .ctx = &after};
    CHECK_INT(weft_call_start(s->peer, "echo", weft_none(), &opts, NULL), -ENOTCONN);
    weft_loop_once(s->loop, false);
    CHECK_INT(call.times, 1);
}

static void link_leaves(link_scene *s) {
    link_call call;
    link_start(s, "wait", weft_none(), &call, NULL);
    LINK_UNTIL(s, s->state == WEFT_PEER_CONNECTED);
    s->peer = weft_peer_free(s->peer);
    CHECK_INT(call.times, 1);
    CHECK_INT(call.r, -ECONNRESET);
    CHECK_INT(s->closed, 0);
    if (!s->server || s->kind->stays_open)
        return;
    /* A server may take it for half a connection that still waits for its answer: the answer finds nobody, which is
     * harmless. */
    LINK_UNTIL(s, link_served.waiting || link_served.cancelled || weft_server_clients(s->server) == 0);
    if (link_served.waiting)
        weft_reply(link_served.waiting, weft_null());
    LINK_UNTIL(s, weft_server_clients(s->server) == 0);
}

static void link_leaves_while_connecting(link_scene *s) {
    link_call call;
    link_start(s, "echo", weft_none(), &call, NULL);
    weft_loop_once(s->loop, false);
    s->peer = weft_peer_free(s->peer);
    CHECK_INT(call.times, 1);
}

static void link_free_inside(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    link_on_answer(peer, r, answer, ctx);
    weft_peer_free(peer);
}

static void link_leaves_inside_callback(link_scene *s) {
    link_call first = {0}, second;
    weft_call_opts opts = {.on_answer = link_free_inside, .ctx = &first};
    CHECK_INT(weft_call_start(s->peer, "echo", weft_none(), &opts, NULL), 0);
    link_start(s, "wait", weft_none(), &second, NULL);
    LINK_UNTIL(s, first.times);
    s->peer = NULL;
    LINK_UNTIL(s, second.times);
    CHECK_INT(first.times, 1);
    CHECK_INT(second.r, -ECONNRESET);
}

/* More than the soft limit is queued before anybody reads: we are told to stop, and to go on. */
static void link_feels_back_pressure(link_scene *s) {
    link_call call;
    char text[4096];
    int64_t sent = 0;
    uint32_t random = 1; /* so that compressing it does not help */
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char) ('A' + ((random = random * 1664525 + 1013904223) >> 24) % 26);
    LINK_UNTIL(s, s->state == WEFT_PEER_CONNECTED);
    for (; sent < 2048 && !weft_peer_full(s->peer); sent++)
        weft_notify(s->peer, "note", WEFT_ARR(weft_int(1), weft_strn(text, sizeof text)));
    CHECK(weft_peer_full(s->peer));
    LINK_UNTIL(s, s->drained);
    CHECK(!weft_peer_full(s->peer));
    link_start(s, "noted", weft_none(), &call, NULL);
    LINK_UNTIL(s, call.times);
    CHECK_INT(call.value, sent);
}

static void link_takes_parts(link_scene *s) {
    link_call call = {0};
    weft_call_opts opts = {.on_answer = link_on_answer, .on_part = link_on_part, .ctx = &call};
    CHECK_INT(weft_call_start(s->peer, "count", WEFT_OBJ({"to", weft_int(100)}), &opts, NULL), 0);
    LINK_UNTIL(s, call.times);
    CHECK_INT(call.parts, 100);
    CHECK_INT(call.value, 100);
}

enum { LINK_PUSH = 1 << 0 }; /* needs a server that speaks unasked */

static const struct link_row {
    const char *name;
    void (*run)(link_scene *s);
    unsigned needs;
} link_rows[] = {
    {"calls", link_calls, 0},
    {"is refused", link_errors, 0},
    {"notifies", link_notifies, 0},
    {"is notified", link_is_notified, LINK_PUSH},
    {"is called", link_is_called, LINK_PUSH},
    {"sends a batch", link_batches, 0},
    {"carries a mebibyte", link_carries_large, 0},
    {"has a thousand calls answered once each", link_pipelines, 0},
    {"cancels", link_cancels, LINK_PUSH},
    {"loses the server during a call", link_loses_server, 0},
    {"leaves during a call", link_leaves, 0},
    {"leaves while connecting", link_leaves_while_connecting, 0},
    {"leaves inside a callback", link_leaves_inside_callback, 0},
    {"feels back-pressure", link_feels_back_pressure, 0},
    {"takes parts", link_takes_parts, LINK_PUSH},
};

/* Back after the server was away: what was called meanwhile is answered. */
static void link_comes_back(const link_kind *kind) {
    link_scene s;
    link_call before, during;
    link_begin(&s, kind);
    link_kind fixed = *kind;
    char url[200];
    snprintf(url, sizeof url, "%s", kind->connect ? kind->connect : weft_server_url(s.server, 0));
    fixed.listen = fixed.connect = url;
    s.kind = &fixed;
    CHECK_INT(link_connect(&s, true), 0);
    link_start(&s, "echo", WEFT_ARR(weft_int(1)), &before, NULL);
    LINK_UNTIL(&s, before.times);
    s.server = weft_server_free(s.server);
    LINK_UNTIL(&s, kind->lazy ? !weft__client_of(s.peer)->wire : s.state == WEFT_PEER_DISCONNECTED);
    link_start(&s, "echo", WEFT_ARR(weft_int(2)), &during, NULL);
    CHECK_INT(link_serve(&s), 0);
    LINK_UNTIL(&s, during.times);
    CHECK_INT(during.value, 2);
    CHECK_INT(during.times, 1);
    CHECK_INT(s.connected, kind->lazy ? 1 : 2);
    s.kind = kind;
    link_end(&s);
}

/* Nobody there: one CLOSED, and the call that was waiting completes once. */
static void link_finds_nobody(const link_kind *kind) {
    link_scene s;
    link_call call;
    char url[200];
    link_begin(&s, kind);
    snprintf(url, sizeof url, "%s", kind->connect ? kind->connect : weft_server_url(s.server, 0));
    s.server = weft_server_free(s.server);
    link_kind gone = *kind;
    gone.connect = url;
    s.kind = &gone;
    CHECK_INT(link_connect(&s, false), 0);
    link_start(&s, "echo", weft_none(), &call, NULL);
    LINK_UNTIL(&s, s.closed);
    CHECK_INT(call.times, 1);
    CHECK_INT(call.r, -ENOTCONN);
    CHECK(s.why == -ECONNREFUSED || s.why == -ENOENT);
    CHECK_INT(s.connected, 0);
    s.kind = kind;
    link_end(&s);
}

static void link_row(const link_kind *kind, const char *what) {
    char row[120];
    snprintf(row, sizeof row, "%s %s", kind->name, what);
    test_row(row);
}

static void link_suite(const link_kind *kind) {
    for (size_t i = 0; i < sizeof link_rows / sizeof link_rows[0]; i++) {
        link_scene s;
        if (link_rows[i].needs & LINK_PUSH && kind->no_push)
            continue;
        link_row(kind, link_rows[i].name);
        link_begin(&s, kind);
        CHECK_INT(link_connect(&s, false), 0);
        if (s.peer)
            link_rows[i].run(&s);
        link_end(&s);
    }
    if (!kind->listen || kind->once)
        return;
    link_row(kind, "comes back");
    link_comes_back(kind);
    link_row(kind, "finds nobody");
    link_finds_nobody(kind);
}

#endif
