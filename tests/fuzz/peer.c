/* The peer fed with anything, in pieces of any size, while its user replies, calls, cancels and lets time pass.
 *
 * The first byte chooses the framing, the second the peer's options, the third seeds what the user does and how the rest,
 * which is what the other side sends, is cut. What must hold: all that comes out is framed as it should be and is JSON,
 * every call completes exactly once, nothing is left allocated, and how the bytes were cut changes nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

#include "frame.h"
#include "fuzz_memory.h"
#include "link.h"

#define MAX_KEPT 16
#define MAX_CALLS 32

/* ---- the user ---- */

typedef struct user {
    weft_peer *peer;
    uint32_t random;
    int64_t now;
    weft_req *kept[MAX_KEPT];
    size_t kept_count;
    struct call {
        int64_t id;
        int completed;
    } calls[MAX_CALLS];
    size_t call_count;
    weft_buf out; /* all that the peer said */
    bool closed;  /* it said good-bye, or broke off: the last frame may be that */
    bool quiet;   /* only answers: for comparing */
} user;

static unsigned pick(user *u, unsigned below) {
    u->random = u->random * 1664525 + 1013904223;
    return (u->random >> 16) % below;
}

static int echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

static int keep(weft_req *req, const weft_json *params, void *ctx) {
    user *u = ctx;
    (void) params;
    if (u->quiet || u->kept_count == MAX_KEPT || weft_req_is_notification(req))
        return weft_refuse(req, 503, "full", "full");
    u->kept[u->kept_count++] = req;
    return 0;
}

static void give_up(weft_req *req, int why, void *ctx) {
    (void) why, (void) ctx;
    weft_fail(req, WEFT_CANCELLED, "", weft_none());
}

static int watch(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    if (((user *) ctx)->quiet)
        return weft_reply(req, weft_null());
    if (!weft_req_is_notification(req))
        weft_req_on_cancel(req, give_up, ctx);
    return 0;
}

struct two {
    const char *s;
    int64_t n;
};
static const weft_param two_params[] = {WEFT_MUST(struct two, s, str, ""), WEFT_MAY(struct two, n, int, ""), {0}};

static int bind(weft_req *req, const weft_json *params, void *ctx) {
    struct two two = {0};
    (void) ctx;
    int r = weft_bind(req, two_params, params, &two);
    return r < 0 ? r : weft_reply(req, WEFT_OBJ({"s", weft_str(two.s)}, {"n", weft_int(two.n)}));
}

static int parts(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    weft_part(req, weft_copy(params));
    return weft_reply(req, weft_none());
}

static int broken(weft_req *req, const weft_json *params, void *ctx) {
    (void) req, (void) params, (void) ctx;
    return -EIO;
}

static const weft_method methods[] = {{"e", echo},  {"k", keep, .flags = WEFT_ROW_CHANGES},
                                      {"w", watch}, {"b", bind, two_params, .flags = WEFT_ROW_CHANGES},
                                      {"p", parts}, {"x", broken},
                                      {0}};

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer;
    require(++*(int *) ctx == 1);
    require((r < 0) == (answer == NULL));
    if (answer)
        require((answer->result != NULL) != (answer->error != NULL));
}

static void on_part(weft_peer *peer, const weft_json *part, void *ctx) {
    (void) peer;
    require(part != NULL && *(int *) ctx == 0);
}

static void start_call(user *u) {
    struct call *call = &u->calls[u->call_count];
    if (u->call_count == MAX_CALLS)
        return;
    weft_call_opts opts = {.on_answer = on_answer, .ctx = &call->completed, .timeout_ms = 1 + pick(u, 50)};
    if (pick(u, 2))
        opts.on_part = on_part;
    if (weft_call_start(u->peer, "m", WEFT_OBJ({"a", weft_int(1)}), &opts, &call->id) >= 0)
        u->call_count++;
}

static void start_batch(user *u) {
    weft_batch *batch;
    if (u->call_count + 2 > MAX_CALLS || weft_batch_new(u->peer, &batch) < 0)
        return;
    for (int i = 0; i < 2; i++) {
        struct call *call = &u->calls[u->call_count];
        weft_call_opts opts = {.on_answer = on_answer, .ctx = &call->completed};
        if (weft_batch_call(batch, "m", weft_none(), &opts, &call->id) >= 0)
            u->call_count++;
    }
    weft_batch_notify(batch, "n", weft_none());
    if (pick(u, 4))
        weft_batch_send(batch);
    else
        weft_batch_free(batch);
}

static void answer_kept(user *u) {
    if (!u->kept_count)
        return;
    weft_req *req = u->kept[--u->kept_count];
    weft_part(req, weft_str("part"));
    if (pick(u, 2))
        weft_reply(req, weft_bool(true));
    else
        weft_fail(req, 1, "no", weft_null());
}

static void take_output(user *u, size_t most) {
    weft_bytes out = weft_peer_output(u->peer);
    size_t n = out.len < most ? out.len : most;
    require(weft__buf_put(&u->out, NULL, out.data, n) == 0);
    weft_peer_sent(u->peer, n);
}

static void act(user *u) {
    switch (pick(u, 10)) {
    case 0:
        start_call(u);
        break;
    case 1:
        start_batch(u);
        break;
    case 2:
        if (u->call_count)
            weft_cancel(u->peer, u->calls[pick(u, (unsigned) u->call_count)].id);
        break;
    case 3:
    case 4:
        answer_kept(u);
        break;
    case 5:
        u->now += pick(u, 40);
        if (weft_peer_tick(u->peer, u->now) < 0)
            u->closed = true;
        break;
    case 6:
        weft_notify(u->peer, "n", WEFT_ARR(weft_str("\xff")));
        break;
    default:
        take_output(u, pick(u, 2) ? SIZE_MAX : pick(u, 100));
        break;
    }
}

/* ---- one conversation ---- */

typedef struct plan {
    const weft_framing *framing;
    unsigned deflate;
    uint8_t options;
    const char *bytes;
    size_t len;
} plan;

static const struct {
    const weft_framing *framing;
    unsigned deflate;
} framings[] = {{&weft_ndjson, 0},    {&weft_content_length, 0}, {&weft_detect, 0},
                {&weft_websocket, 0}, {&weft_websocket, 12},     {&weft_websocket_client, 0}};

static weft_peer *make(weft_service *service, const plan *p) {
    weft_peer *peer;
    weft_identity who = {"tcp", "", "", "", "", -1, -1, (p->options & 64) != 0};
    weft_peer_opts opts = {.framing = p->framing,
                           .deflate = p->deflate,
                           .identity = &who,
                           .style = (weft_style) (p->options % 3),
                           .no_batch = p->options & 4,
                           .lenient = p->options & 8,
                           .locked = p->options & 16,
                           .extras = p->options & 32};
    require(weft_peer_new(service, &opts, &peer) == 0);
    return peer;
}

/* Feed it all, in pieces of at most `piece` bytes (0: of random sizes, with the user acting between them). */
static void converse(user *u, const plan *p, size_t piece) {
    for (size_t at = 0; at < p->len && !u->closed;) {
        size_t n = piece ? piece : 1 + pick(u, 40);
        n = n < p->len - at ? n : p->len - at;
        if (weft_peer_feed(u->peer, p->bytes + at, n, u->now) < 0)
            u->closed = true;
        at += n;
        if (!piece && !u->closed)
            act(u);
        while (!u->closed && weft_peer_full(u->peer)) {
            take_output(u, SIZE_MAX);
            if (weft_peer_feed(u->peer, "", 0, u->now) < 0)
                u->closed = true;
        }
    }
    if (!u->closed)
        weft_peer_eof(u->peer);
    take_output(u, SIZE_MAX);
}

static void finish(user *u) {
    weft_peer_free(u->peer);
    while (u->kept_count)
        answer_kept(u);
    for (size_t i = 0; i < u->call_count; i++)
        require(u->calls[i].completed == 1);
}

static weft_service *serve(user *u) {
    weft_service *service;
    weft_service_opts opts = {
        .methods = methods,
        .ctx = u,
        .alloc = &counting,
        .measure = true,
        .limits = {.out_soft = 2000, .max_body_stranger = 5000, .max_batch = 20, .max_answer = 20000, .max_requests = 8}};
    require(weft_service_new(&opts, &service) == 0);
    return service;
}

/* ---- looking at what came out ---- */

static bool see_body(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    weft_doc *doc;
    (void) peer, (void) data;
    require(!binary);
    require(weft_doc_parse(body.data, body.len, NULL, &doc) == 0);
    weft_doc_free(doc);
    return true;
}

static const weft_framing *mirror(const plan *p, const char *in_use) {
    if (p->framing == &weft_websocket)
        return &weft_websocket_client;
    if (p->framing == &weft_websocket_client)
        return &weft_websocket;
    return strcmp(in_use, weft_content_length.name) == 0 ? &weft_content_length : &weft_ndjson;
}

static void check_output(const user *u, const plan *p, const weft_framing *framing) {
    weft_peer *reader;
    weft_identity who = {"tcp", "", "", "", "", -1, -1, true};
    size_t len = weft__buf_len(&u->out);
    if (!len)
        return;
    weft_peer_opts opts = {.framing = framing, .deflate = p->deflate, .identity = &who, .on_raw = see_body};
    require(weft_peer_new(NULL, &opts, &reader) == 0);
    int r = weft_peer_feed(reader, weft__buf_head(&u->out), len, 0);
    require(r == 0 || r == -ECONNRESET); /* a close frame is a good-bye */
    require(r < 0 || weft_peer_eof(reader) == 0);
    weft_peer_free(reader);
}

static void play(const plan *p, uint32_t seed) {
    user u = {.random = seed, .now = 1};
    weft_service *service = serve(&u);
    u.peer = make(service, p);
    converse(&u, p, 0);
    const weft_framing *framing = mirror(p, weft__peer_framing_name(u.peer));
    finish(&u);
    weft_service_unref(service);
    check_output(&u, p, framing);
    weft__buf_done(&u.out, NULL);
    require(live == 0);
}

/* Without a user the answers depend on the bytes alone. */
static void compare(const plan *p, size_t piece) {
    user whole = {.quiet = true}, cut = {.quiet = true};
    weft_service *one = serve(&whole), *two = serve(&cut);
    whole.peer = make(one, p);
    cut.peer = make(two, p);
    converse(&whole, p, p->len ? p->len : 1);
    converse(&cut, p, piece);
    require(weft__buf_len(&whole.out) == weft__buf_len(&cut.out));
    require(!weft__buf_len(&cut.out) ||
            memcmp(weft__buf_head(&whole.out), weft__buf_head(&cut.out), weft__buf_len(&cut.out)) == 0);
    finish(&whole);
    finish(&cut);
    weft_service_unref(one);
    weft_service_unref(two);
    weft__buf_done(&whole.out, NULL);
    weft__buf_done(&cut.out, NULL);
    require(live == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3)
        return 0;
    size_t kind = data[0] % (sizeof framings / sizeof framings[0]);
    plan p = {.framing = framings[kind].framing,
              .deflate = framings[kind].deflate,
              .options = data[1],
              .bytes = (const char *) data + 3,
              .len = size - 3};
    play(&p, data[2]);
    compare(&p, 1 + data[2] % 16);
    return 0;
}
