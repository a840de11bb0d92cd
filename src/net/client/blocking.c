/* Clients for programs without a loop: each brings a private one, and these functions drive it until what they wait for has
 * happened. They never run inside one of its callbacks, where the loop is running already. */
#include <errno.h>
#include <stdio.h>

#include "client.h"

/* What a blocking function waits for: it goes on while this says true. */
typedef bool still_waiting(const weft_client *client, const void *ctx);

typedef struct alarm_clock {
    weft_timer timer;
    bool rang;
} alarm_clock;

static void on_alarm(weft_timer *timer) {
    WEFT_CONTAINER(timer, alarm_clock, timer)->rang = true;
}

void weft__loop_run_out(weft_loop *loop) {
    /* A lookup goes on until the resolver answers; weft_loop_free() knows how to leave it alone. */
    while (weft_loop_once(loop, false) > 0 && !weft__loop_only_lookups(loop))
        weft_loop_once(loop, true);
}

/* Begin a blocking function: the client stays until leave_blocking(), whatever its callbacks do. */
static int enter_blocking(const weft_peer *peer, weft_client **ret) {
    weft_client *client = weft__client_of(peer);
    if (!client || !client->own_loop)
        return -EINVAL;
    if (client->driven || client->loop->turning)
        return -EDEADLK;
    weft__peer_now(client->peer, weft__loop_fresh_now(client->loop));
    *ret = weft__client_ref(client);
    return 0;
}

/* A callback may have freed the peer; the loop it was running on could not be freed then, so it is now. */
static void leave_blocking(weft_client *client) {
    weft_loop *loop = client->peer ? NULL : client->loop;
    if (loop)
        weft__loop_run_out(loop);
    weft__client_unref(client);
    weft_loop_free(loop);
}

/* Run the loop while there is something to wait for. 1 it has happened, 0 time is up, -ECONNRESET a callback freed the peer.
 */
static int drive_loop(weft_client *client, still_waiting *waiting, const void *ctx, int64_t timeout_ms) {
    weft_loop *loop = client->loop;
    alarm_clock alarm = {.rang = timeout_ms == 0};
    weft__timer_init(&alarm.timer, on_alarm);
    if (timeout_ms > 0)
        weft__timer_set(loop, &alarm.timer, weft__after(weft_loop_now(loop), timeout_ms));
    weft__client_schedule(client);
    client->driven = true;
    weft_loop_hold(loop);
    do
        weft_loop_once(loop, !alarm.rang);
    while (client->peer && waiting(client, ctx) && !alarm.rang);
    weft_loop_release(loop);
    client->driven = false;
    weft__timer_stop(loop, &alarm.timer);
    if (!client->peer)
        return -ECONNRESET;
    return !waiting(client, ctx);
}

/* ---- connecting ---- */

static bool is_connecting(const weft_client *client, const void *ctx) {
    (void) ctx;
    return client->state == WEFT_PEER_CONNECTING || client->state == WEFT_PEER_DISCONNECTED;
}

/* Until it is ready, or will never be. When it keeps trying, the time for one attempt is the time for all of them. */
static int wait_until_connected(weft_client *client) {
    int64_t timeout = client->opts.reconnect ? weft__client_timeout(client) : -1;
    int r = drive_loop(client, is_connecting, NULL, timeout);
    if (r < 0)
        return r;
    if (client->state == WEFT_PEER_CONNECTED)
        return 0;
    return client->why < 0 ? client->why : -ETIMEDOUT;
}

static int connect_on_own_loop(weft_loop *loop, const char *url, const weft_connect_opts *opts, weft_peer **ret,
                               weft_trouble *ret_trouble) {
    weft_peer *peer;
    weft_client *client;
    int r = weft_connect_on(loop, url, opts, &peer, ret_trouble);
    if (r < 0) {
        weft_loop_free(loop);
        return r;
    }
    weft__client_of(peer)->own_loop = true;
    r = enter_blocking(peer, &client);
    if (r == 0)
        r = wait_until_connected(client);
    if (r < 0 && ret_trouble)
        snprintf(ret_trouble->text, sizeof ret_trouble->text, "%s", client->trouble);
    if (r < 0 && client->peer) {
        client->driven = true; /* leave_blocking() ends the loop, below */
        weft_peer_free(peer);
    }
    leave_blocking(client);
    if (r == 0)
        *ret = peer;
    return r;
}

int weft_connect_with(const char *url, const weft_connect_opts *opts, weft_peer **ret, weft_trouble *ret_trouble) {
    weft_loop *loop;
    int r = weft_loop_new(NULL, &loop);
    return r < 0 ? r : connect_on_own_loop(loop, url, opts, ret, ret_trouble);
}

int weft_connect(const char *url, weft_peer **ret) {
    return weft_connect_with(url, NULL, ret, NULL);
}

/* ---- calling ---- */

typedef struct waiting_call {
    const weft_call_opts *opts;
    weft_answer *ret;
    bool done;
    int r;
} waiting_call;

static void on_awaited_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    waiting_call *call = ctx;
    call->done = true;
    call->r = r < 0 || !call->ret ? r : weft__answer_keep(answer, weft__peer_alloc(peer), call->ret);
}

static void on_part(weft_peer *peer, const weft_json *part, void *ctx) {
    const waiting_call *call = ctx;
    call->opts->on_part(peer, part, call->opts->ctx);
}

static void on_call_misfit(weft_peer *peer, const weft_schema_report *report, void *ctx) {
    const waiting_call *call = ctx;
    call->opts->on_misfit(peer, report, call->opts->ctx);
}

static bool is_call_open(const weft_client *client, const void *ctx) {
    (void) client;
    return !((const waiting_call *) ctx)->done;
}

static int start_awaited_call(weft_client *client, const char *method, weft_val params, waiting_call *call) {
    weft_call_opts opts = call->opts ? *call->opts : (weft_call_opts){0};
    if (client->state == WEFT_PEER_CLOSED)
        return -ENOTCONN;
    opts.on_answer = on_awaited_answer;
    opts.on_part = opts.on_part ? on_part : NULL;
    opts.on_misfit = opts.on_misfit ? on_call_misfit : NULL;
    opts.ctx = call;
    return weft_call_start(client->peer, method, params, &opts, NULL);
}

int weft_call_with(weft_peer *peer, const char *method, weft_val params, const weft_call_opts *opts, weft_answer *ret) {
    weft_client *client;
    waiting_call call = {.opts = opts, .ret = ret};
    int r = enter_blocking(peer, &client);
    if (r < 0)
        return r;
    r = start_awaited_call(client, method, params, &call);
    /* Every call completes once, also when the peer is freed meanwhile: this ends. */
    if (r >= 0)
        drive_loop(client, is_call_open, &call, -1);
    leave_blocking(client);
    return r < 0 ? r : call.r;
}

int weft_call(weft_peer *peer, const char *method, weft_val params, weft_answer *ret) {
    return weft_call_with(peer, method, params, NULL, ret);
}

/* ---- waiting ---- */

static bool is_quiet(const weft_client *client, const void *ctx) {
    return client->delivered == *(const uint64_t *) ctx && client->state != WEFT_PEER_CLOSED;
}

int weft_wait(weft_peer *peer, int64_t timeout_ms) {
    weft_client *client;
    int r = enter_blocking(peer, &client);
    if (r < 0)
        return r;
    uint64_t before = client->delivered;
    r = client->state == WEFT_PEER_CLOSED ? -ENOTCONN : drive_loop(client, is_quiet, &before, timeout_ms);
    if (r > 0 && client->delivered == before)
        r = client->why;
    leave_blocking(client);
    return r;
}

static bool is_unsent(const weft_client *client, const void *ctx) {
    (void) ctx;
    bool queued = weft_peer_output(client->peer).len > 0;
    bool under_way = client->wire && weft__wire_unsent(client->wire);
    return client->state != WEFT_PEER_CLOSED && (queued || under_way);
}

int weft_flush(weft_peer *peer, int64_t timeout_ms) {
    weft_client *client;
    int r = enter_blocking(peer, &client);
    if (r < 0)
        return r;
    if (client->state != WEFT_PEER_CLOSED && is_unsent(client, NULL))
        r = drive_loop(client, is_unsent, NULL, timeout_ms) == 0 ? -ETIMEDOUT : 0;
    if (!client->peer || client->state == WEFT_PEER_CLOSED)
        r = -ENOTCONN;
    leave_blocking(client);
    return r;
}
