/* weft_peer_free() inside every kind of callback, over every framing: nothing is touched afterwards (the sanitizers say),
 * nothing leaks, and every call completes exactly once. */
#include "peer_kit.h"

typedef enum where {
    NOWHERE,
    IN_HANDLER,
    IN_HANDLER_AFTER_REPLY,
    IN_NOTIFICATION,
    IN_UNKNOWN_NOTIFICATION,
    IN_ANSWER,
    IN_ERROR_ANSWER,
    IN_PART,
    IN_CANCEL,
    IN_RAW,
    IN_DRAIN,
    IN_OUTPUT_OF_NOTIFY,
    IN_OUTPUT_OF_CALL,
    IN_OUTPUT_OF_REPLY,
    IN_OUTPUT_OF_BATCH,
    IN_OUTPUT_OF_CANCEL,
    IN_OUTPUT_OF_SHARED,
    IN_OUTPUT_OF_CLOSE,
    IN_LOG_OF_NOTIFY,
    IN_LOG_OF_CALL,
    IN_LOG_OF_REPLY,
    IN_TIMEOUT,
    IN_EOF,
    IN_OWN_CANCEL,
    IN_BATCH_ITEM,
    WHERES,
} where;

static const char *const names[WHERES] = {
    [NOWHERE] = "nowhere",
    [IN_HANDLER] = "a handler",
    [IN_HANDLER_AFTER_REPLY] = "a handler that has answered",
    [IN_NOTIFICATION] = "a notification's handler",
    [IN_UNKNOWN_NOTIFICATION] = "on_notification",
    [IN_ANSWER] = "on_answer with a result",
    [IN_ERROR_ANSWER] = "on_answer with an error",
    [IN_PART] = "on_part",
    [IN_CANCEL] = "on_cancel",
    [IN_RAW] = "on_raw",
    [IN_DRAIN] = "on_drain",
    [IN_OUTPUT_OF_NOTIFY] = "on_output of weft_notify",
    [IN_OUTPUT_OF_CALL] = "on_output of weft_call_start",
    [IN_OUTPUT_OF_REPLY] = "on_output of a late weft_reply",
    [IN_OUTPUT_OF_BATCH] = "on_output of weft_batch_send",
    [IN_OUTPUT_OF_CANCEL] = "on_output of weft_cancel",
    [IN_OUTPUT_OF_SHARED] = "on_output of weft_shared_send",
    [IN_OUTPUT_OF_CLOSE] = "on_output of weft_peer_close",
    [IN_LOG_OF_NOTIFY] = "on_message of weft_notify",
    [IN_LOG_OF_CALL] = "on_message of weft_call_start",
    [IN_LOG_OF_REPLY] = "on_message of a late weft_reply",
    [IN_TIMEOUT] = "on_answer of a time-out",
    [IN_EOF] = "on_answer at the end",
    [IN_OWN_CANCEL] = "on_answer of weft_cancel",
    [IN_BATCH_ITEM] = "a handler in the middle of a batch",
};

typedef struct fixture {
    test_memory memory;
    where where;
    weft_service *service;
    weft_peer *peer;  /* the one that is freed; NULL once it is */
    weft_peer *other; /* who talks to it */
    weft_req *later;
    int calls, completed;
    bool armed;
} fixture;

static void strike(fixture *f, where here) {
    if (here != NOWHERE && f->where == here && f->armed)
        f->peer = weft_peer_free(f->peer);
}

static int now(weft_req *req, const weft_json *params, void *ctx) {
    fixture *f = ctx;
    (void) params;
    CHECK(f->peer != NULL); /* nothing arrives at a peer that is gone */
    if (weft_req_is_notification(req)) {
        strike(f, IN_NOTIFICATION);
        return 0;
    }
    strike(f, IN_HANDLER);
    strike(f, IN_BATCH_ITEM);
    int r = weft_reply(req, weft_str("done"));
    strike(f, IN_HANDLER_AFTER_REPLY);
    return r;
}

static int later(weft_req *req, const weft_json *params, void *ctx) {
    fixture *f = ctx;
    (void) params;
    if (f->later)
        return weft_reply(req, weft_null());
    f->later = req;
    return 0;
}

static void on_cancel(weft_req *req, int why, void *ctx) {
    (void) why;
    strike(ctx, IN_CANCEL);
    weft_fail(req, WEFT_CANCELLED, "gone", weft_none());
}

static int watch(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    weft_req_on_cancel(req, on_cancel, ctx);
    return 0;
}

static const weft_method methods[] = {{"now", now}, {"later", later}, {"watch", watch}, {0}};

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    fixture *f = ctx;
    (void) peer;
    f->completed++;
    if (r >= 0)
        strike(f, answer->error ? IN_ERROR_ANSWER : IN_ANSWER);
    strike(f, r == -ETIMEDOUT ? IN_TIMEOUT : r == -ECONNRESET ? IN_EOF : r == -ECANCELED ? IN_OWN_CANCEL : NOWHERE);
}

static void on_part(weft_peer *peer, const weft_json *part, void *ctx) {
    (void) peer, (void) part;
    strike(ctx, IN_PART);
}

static void on_notification(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    (void) peer, (void) method, (void) params;
    strike(data, IN_UNKNOWN_NOTIFICATION);
}

static bool on_raw(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    (void) peer, (void) body, (void) binary;
    strike(data, IN_RAW);
    return false;
}

static void on_output(weft_peer *peer, void *data) {
    fixture *f = data;
    (void) peer;
    CHECK(f->peer != NULL);
    if (f->where >= IN_OUTPUT_OF_NOTIFY && f->where <= IN_OUTPUT_OF_CLOSE)
        strike(f, f->where);
}

static void on_drain(weft_peer *peer, void *data) {
    (void) peer;
    strike(data, IN_DRAIN);
}

static void on_message(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text) {
    fixture *f = ctx;
    (void) text;
    if (outgoing && peer == f->peer && f->where >= IN_LOG_OF_NOTIFY && f->where <= IN_LOG_OF_REPLY)
        strike(f, f->where);
}

static bool set_up(fixture *f, where here, const kit_framing *framing) {
    *f = (fixture){.where = here};
    test_memory_init(&f->memory, 0);
    weft_service_opts service = {
        .methods = methods, .ctx = f, .alloc = &f->memory.alloc, .on_message = on_message, .limits.out_soft = 300};
    weft_peer_opts opts = {.framing = framing->server,
                           .deflate = framing->deflate,
                           .data = f,
                           .on_notification = on_notification,
                           .on_raw = here == IN_RAW ? on_raw : NULL,
                           .on_output = on_output,
                           .on_drain = on_drain};
    if (!CHECK_INT(weft_service_new(&service, &f->service), 0) || !CHECK_INT(weft_peer_new(f->service, &opts, &f->peer), 0))
        return false;
    return CHECK_INT(
        weft_peer_new(NULL, &(weft_peer_opts){.framing = framing->client, .deflate = framing->deflate}, &f->other), 0);
}

/* A text of the other side. */
static void say(fixture *f, const char *text) {
    if (!f->peer)
        return;
    weft_peer_send_raw(f->other, (weft_bytes){text, strlen(text)}, false);
    size_t len;
    char *bytes = kit_take(f->other, &len);
    weft_peer_feed(f->peer, bytes, len, 1);
    free(bytes);
}

static void call(fixture *f) {
    weft_call_opts opts = {.on_answer = on_answer, .ctx = f, .timeout_ms = 1000, .on_part = on_part};
    if (f->peer && weft_call_start(f->peer, "m", weft_none(), &opts, NULL) >= 0)
        f->calls++;
}

static void send_batch(fixture *f) {
    weft_batch *batch;
    weft_call_opts opts = {.on_answer = on_answer, .ctx = f, .timeout_ms = 1000};
    if (!f->peer || weft_batch_new(f->peer, &batch) < 0)
        return;
    f->calls += weft_batch_call(batch, "m", weft_none(), &opts, NULL) >= 0;
    f->calls += weft_batch_call(batch, "m", weft_none(), &opts, NULL) >= 0;
    weft_batch_send(batch);
}

static void send_shared(fixture *f) {
    weft_shared *shared;
    if (!f->peer || weft_shared_new(f->service, "n", weft_none(), &shared) < 0)
        return;
    weft_shared_send(shared, f->peer);
    weft_shared_free(shared);
}

/* Everything that a peer can meet, in an order in which each of the places comes up. */
static void live(fixture *f) {
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"k\",\"method\":\"later\"}");
    say(f, "[{\"jsonrpc\":\"2.0\",\"id\":\"l\",\"method\":\"watch\"},{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"later\"}]");
    call(f);
    call(f);
    f->armed = f->where != IN_OUTPUT_OF_CALL && f->where != IN_OUTPUT_OF_REPLY && f->where != IN_OUTPUT_OF_BATCH &&
               f->where != IN_OUTPUT_OF_CANCEL && f->where != IN_OUTPUT_OF_SHARED && f->where != IN_OUTPUT_OF_CLOSE &&
               f->where != IN_LOG_OF_CALL && f->where != IN_LOG_OF_REPLY;
    if (f->peer)
        weft_notify(f->peer, "n", weft_none());
    f->armed = f->armed || f->where == IN_OUTPUT_OF_CALL || f->where == IN_LOG_OF_CALL;
    call(f);
    f->armed = f->armed || f->where == IN_OUTPUT_OF_BATCH;
    send_batch(f);
    f->armed = f->armed || f->where == IN_OUTPUT_OF_SHARED;
    send_shared(f);
    say(f, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"now\"},{\"jsonrpc\":\"2.0\",\"method\":\"now\"},{\"jsonrpc\":\"2."
           "0\",\"id\":2,"
           "\"method\":\"now\"}]");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"now\"}");
    say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"nobody/knows\"}");
    say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"$/progress\",\"params\":{\"token\":1,\"value\":2}}");
    if (f->peer)
        weft_peer_sent(f->peer, weft_peer_output(f->peer).len);
    if (f->peer)
        weft_peer_feed(f->peer, "", 0, 1);
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":1,\"message\":\"no\"}}");
    say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":\"l\"}}");
    f->armed = f->armed || f->where == IN_OUTPUT_OF_REPLY || f->where == IN_LOG_OF_REPLY;
    if (f->later)
        weft_reply(f->later, weft_str("late")), f->later = NULL;
    f->armed = f->armed || f->where == IN_OUTPUT_OF_CANCEL;
    if (f->peer)
        weft_cancel(f->peer, 3);
    if (f->peer)
        weft_peer_tick(f->peer, 5000);
    call(f);
    f->armed = true;
    if (f->peer)
        weft_peer_close(f->peer, 1000, "");
    if (f->peer)
        weft_peer_eof(f->peer);
}

static void free_in(where here, const kit_framing *framing) {
    fixture f;
    if (!set_up(&f, here, framing))
        return;
    live(&f);
    bool freed = !f.peer;
    bool silent = here == IN_OUTPUT_OF_CLOSE && framing->server != &weft_websocket; /* nothing is said at the end */
    CHECK_INT(freed, here != NOWHERE && !silent);
    weft_peer_free(f.peer);
    weft_peer_free(f.other);
    if (f.later)
        weft_reply(f.later, weft_null());
    CHECK_INT(f.completed, f.calls);
    weft_service_unref(f.service);
    CHECK_INT(f.memory.live, 0);
}

TEST(anywhere) {
    for (size_t i = 0; i < KIT_FRAMINGS; i++)
        for (where here = NOWHERE; here < WHERES; here++) {
            char row[120];
            snprintf(row, sizeof row, "%s, in %s", kit_framings[i].name, names[here]);
            test_row(row);
            free_in(here, &kit_framings[i]);
        }
    test_row(NULL);
}

TEST_MAIN(CASE(anywhere))
