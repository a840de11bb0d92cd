/* A client over HTTP with headers of its own, and answers that come as server-sent events. */
#include "net_world.h"
#include "post.h"

#define BYTES(text) ((weft_bytes){text, strlen(text)})

typedef struct scene {
    world *w;
    weft_peer *peer;
    char seen[200]; /* what the server saw: its X-Session */
    char session[50];
    int replies, status, answers, r, notes, listeners, closed;
    bool deaf;         /* the server has no stream beside the calls */
    weft_http *stream; /* it, until the server ends it */
    long result;
} scene;

/* The server: every call is answered with a stream of a notification and the answer, unless it asks for something else. */
static void answer_call(weft_http *http, void *ctx) {
    scene *s = ctx;
    const char *session = weft_http_header(http, "x-session");
    weft_bytes body = weft_http_body(http);
    snprintf(s->seen, sizeof s->seen, "%s %s", weft_http_method(http), session ? session : "-");
    static const weft_header headers[] = {{"X-Session", "abc"}, {0}};
    if (body.len && memmem(body.data, body.len, "redirect", 8)) {
        static const weft_header there[] = {{"Location", "/elsewhere"}, {0}};
        weft_http_answer_with(http, &(weft_http_answer_opts){.status = 307, .headers = there});
        return;
    }
    CHECK_INT(weft_http_begin(http, &(weft_http_answer_opts){.type = "text/event-stream", .headers = headers}, NULL), 0);
    weft_http_write(http, BYTES(": hello\n\nid: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"note\"}\n\n"));
    weft_doc *doc = NULL;
    if (body.len)
        CHECK_INT(weft_doc_parse(body.data, body.len, NULL, &doc), 0);
    char text[200];
    snprintf(text, sizeof text, "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%lld,\"result\":%d}\r\n\r\n",
             (long long) (doc ? weft_get_int(weft_doc_root(doc), "id", 0) : 0), 42);
    weft_doc_free(doc);
    weft_http_write(http, BYTES(text));
    weft_http_end(http);
}

/* The stream beside the calls, which only a session may have. */
static void answer_listener(weft_http *http, void *ctx) {
    scene *s = ctx;
    const char *session = weft_http_header(http, "x-session"), *accept = weft_http_header(http, "accept");
    s->listeners++;
    CHECK(accept && strcmp(accept, "text/event-stream") == 0);
    if (!session || strcmp(session, "abc") != 0 || s->deaf) {
        weft_http_answer(http, s->deaf ? 405 : 400, "text/plain", BYTES("no"));
        return;
    }
    CHECK_INT(weft_http_begin(http, &(weft_http_answer_opts){.type = "text/event-stream"}, NULL), 0);
    weft_http_write(http, BYTES("data: {\"jsonrpc\":\"2.0\",\"method\":\"note\"}\n\n"));
    s->stream = http;
}

static void on_reply(weft_peer *peer, const weft_http_reply *reply, void *data) {
    scene *s = data;
    weft_bytes session = weft_http_reply_header(reply, "x-session");
    s->replies++;
    s->status = weft_http_reply_status(reply);
    CHECK(weft_http_reply_header(reply, "none").data == NULL);
    if (!session.len)
        return;
    snprintf(s->session, sizeof s->session, "%.*s", (int) session.len, session.data);
    const weft_header headers[] = {{"X-Session", s->session}, {0}};
    CHECK_INT(weft_peer_set_headers(peer, headers), 0);
}

static void on_note(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    (void) peer, (void) params;
    ((scene *) data)->notes += strcmp(method, "note") == 0;
}

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    scene *s = ctx;
    (void) peer;
    s->answers++;
    s->r = r;
    s->result = r >= 0 && answer->result ? (long) weft_int_of(answer->result, 0) : 0;
}

static void call(scene *s, const char *method) {
    int answers = s->answers;
    CHECK_INT(weft_call_start(s->peer, method, weft_none(), &(weft_call_opts){.on_answer = on_answer, .ctx = s}, NULL), 0);
    WORLD_UNTIL(s->w, s->answers == answers + 1);
}

static void on_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    (void) peer, (void) why;
    ((scene *) data)->closed += state == WEFT_PEER_CLOSED;
}

static void scene_open(scene *s, const weft_connect_opts *more) {
    char url[64];
    *s = (scene){.w = world_new(NULL, NULL)};
    CHECK_INT(weft_server_listen(s->w->server, "http://127.0.0.1:0/rpc", NULL), 0);
    CHECK_INT(weft_server_route(s->w->server, "POST", "/mcp", answer_call, s), 0);
    CHECK_INT(weft_server_route(s->w->server, "DELETE", "/mcp", answer_call, s), 0);
    CHECK_INT(weft_server_route(s->w->server, "GET", "/mcp", answer_listener, s), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/mcp", world_port(s->w, 0));
    weft_connect_opts opts = *more;
    opts.data = s;
    opts.on_reply = on_reply;
    opts.on_notification = on_note;
    opts.on_state = on_state;
    CHECK_INT(weft_connect_on(s->w->loop, url, &opts, &s->peer, NULL), 0);
}

static void scene_close(scene *s) {
    s->peer = weft_peer_free(s->peer);
    world_free(s->w);
}

TEST(an_answer_as_events) {
    scene s;
    static const weft_header headers[] = {{"X-Session", "first"}, {0}};
    scene_open(&s, &(weft_connect_opts){.headers = headers});
    call(&s, "one");
    CHECK_INT(s.r, 0);
    CHECK_INT(s.result, 42);
    CHECK_INT(s.notes, 1);
    CHECK_INT(s.replies, 1);
    CHECK_INT(s.status, 200);
    CHECK_STR(s.seen, "POST first");
    /* What the server gave is sent from now on. */
    call(&s, "two");
    CHECK_INT(s.result, 42);
    CHECK_STR(s.seen, "POST abc");
    CHECK_INT(weft_peer_set_headers(s.peer, NULL), 0);
    call(&s, "three");
    CHECK_STR(s.seen, "POST -");
    CHECK_INT(s.notes, 3);
    scene_close(&s);
}

/* A session's id comes with the first answer; only then is there something to listen to. */
TEST(listens_once_there_is_a_session) {
    scene s;
    scene_open(&s, &(weft_connect_opts){0});
    call(&s, "initialize");
    CHECK_INT(s.notes, 1);
    CHECK_INT(s.listeners, 0);
    CHECK_INT(weft_peer_listen(s.peer), 0);
    CHECK_INT(weft_peer_listen(s.peer), 0);
    WORLD_UNTIL(s.w, s.notes == 2);
    CHECK_INT(s.listeners, 1);
    /* When the server ends it, it is asked for again, with the same headers. */
    weft_http_end(s.stream);
    WORLD_UNTIL(s.w, s.notes == 3);
    CHECK_INT(s.listeners, 2);
    call(&s, "another");
    CHECK_INT(s.result, 42);
    weft_http_end(s.stream);
    scene_close(&s);
}

/* The calls go on, whether it has none or wants another header. */
TEST(a_server_without_events_is_no_failure) {
    for (int deaf = 0; deaf < 2; deaf++) {
        scene s;
        scene_open(&s, &(weft_connect_opts){0});
        s.deaf = deaf;
        if (deaf)
            call(&s, "initialize");
        CHECK_INT(weft_peer_listen(s.peer), 0);
        int status = deaf ? 405 : 400;
        WORLD_UNTIL(s.w, s.status == status);
        call(&s, "one");
        CHECK_INT(s.result, 42);
        CHECK_INT(s.listeners, 1);
        CHECK_INT(s.closed, 0);
        /* And it may be asked again. */
        s.deaf = false;
        CHECK_INT(weft_peer_listen(s.peer), 0);
        WORLD_UNTIL(s.w, s.listeners == 2 && s.stream);
        weft_http_end(s.stream);
        scene_close(&s);
    }
}

TEST(only_clients_over_http_listen) {
    scene s;
    weft_peer *peer = NULL;
    scene_open(&s, &(weft_connect_opts){0});
    CHECK_INT(weft_server_listen(s.w->server, "mem:there", NULL), 0);
    CHECK_INT(weft_connect_on(s.w->loop, "mem:there", NULL, &peer, NULL), 0);
    CHECK_INT(weft_peer_listen(peer), -ENOTSUP);
    weft_peer_free(peer);
    scene_close(&s);
}

TEST(redirects_are_not_followed) {
    scene s;
    scene_open(&s, &(weft_connect_opts){0});
    call(&s, "redirect");
    CHECK(s.r < 0);
    CHECK_INT(s.status, 307);
    CHECK(strstr(weft_peer_trouble(s.peer), "307") != NULL);
    scene_close(&s);
}

TEST(headers_that_cannot_be) {
    static const weft_header rows[][2] = {
        {{"X", "a\r\nY: b"}, {0}}, {{"X\n", "a"}, {0}},
        {{"X Y", "a"}, {0}},       {{"", "a"}, {0}},
        {{"X", NULL}, {0}},        {{"Content-Length", "3"}, {0}},
        {{"host", "h"}, {0}},      {{"Sec-WebSocket-Key", "k"}, {0}},
    };
    scene s;
    scene_open(&s, &(weft_connect_opts){0});
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_peer *peer = NULL;
        weft_trouble trouble = {""};
        weft_connect_opts opts = {.headers = rows[i]};
        test_row(rows[i][0].name);
        CHECK_INT(weft_connect_on(s.w->loop, "http://127.0.0.1:1/", &opts, &peer, &trouble), -EINVAL);
        CHECK(strstr(trouble.text, "header") != NULL);
        CHECK_INT(weft_peer_set_headers(s.peer, rows[i]), -EINVAL);
    }
    test_row(NULL);
    call(&s, "still works");
    CHECK_INT(s.result, 42);
    scene_close(&s);
}

typedef struct posted {
    int done, r, status;
} posted;

static void on_done(void *ctx, int r, int status, const char *why) {
    (void) why;
    *(posted *) ctx = (posted){1, r, status};
}

TEST(other_methods) {
    scene s;
    char url[64];
    posted p = {0};
    weft_post *post;
    static const weft_header headers[] = {{"X-Session", "gone"}, {0}};
    scene_open(&s, &(weft_connect_opts){0});
    snprintf(url, sizeof url, "http://127.0.0.1:%d/mcp", world_port(s.w, 0));
    weft_post_opts opts = {.url = url, .method = "DELETE", .headers = headers, .on_done = on_done, .ctx = &p};
    CHECK_INT(weft__post_new(s.w->loop, &opts, &post), 0);
    WORLD_UNTIL(s.w, p.done);
    CHECK_INT(p.status, 200);
    CHECK_STR(s.seen, "DELETE gone");
    weft__post_free(post);
    opts.method = "DEL ETE";
    CHECK_INT(weft__post_new(s.w->loop, &opts, &post), -EINVAL);
    scene_close(&s);
}

/* clang-format off */
TEST_MAIN(
    CASE(an_answer_as_events)
    CASE(listens_once_there_is_a_session)
    CASE(a_server_without_events_is_no_failure)
    CASE(only_clients_over_http_listen)
    CASE(redirects_are_not_followed)
    CASE(headers_that_cannot_be)
    CASE(other_methods)
)
