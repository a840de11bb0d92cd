/* A client: a peer with a connection that is looked after. This file is the policy, one connection is client_wire.c, and how
 * to reach an endpoint is the transport's row.
 *
 * CONNECTING   ──ready──▶ CONNECTED      weft__client_ready()
 *              ──failed─▶ DISCONNECTED   weft__client_lost()      when it may try again, else CLOSED
 * CONNECTED    ──lost───▶ DISCONNECTED   weft__client_lost()      likewise
 * DISCONNECTED ──time───▶ CONNECTING     on_begin_connecting()
 *
 * The user's callbacks run from the loop only, and any of them may free the peer: whoever calls one holds a reference to the
 * client and looks at client->peer afterwards. */
#include "client.h"
#include "client_events.h"
#include "client_http.h"
#include "connect_fds.h"
#include "http_client.h"
#include "signing.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Long enough for a name server that is slow and a TLS handshake over a bad line, short enough for somebody who waits. */
#define CONNECT_MS 10000

/* A connection this old was a good one: the next failure is the first again. A server that accepts and hangs up at once
 * does not count as one that lives. */
#define LIVED_MS 1000

/* WebSocket's code for a normal end (RFC 6455 section 7.4.1). */
#define NORMAL_CLOSURE 1000

#define TO(state) (1u << (state))

static const unsigned moves[] = {
    [WEFT_PEER_CONNECTING] = TO(WEFT_PEER_CONNECTED) | TO(WEFT_PEER_DISCONNECTED) | TO(WEFT_PEER_CLOSED),
    [WEFT_PEER_CONNECTED] = TO(WEFT_PEER_DISCONNECTED) | TO(WEFT_PEER_CLOSED),
    [WEFT_PEER_DISCONNECTED] = TO(WEFT_PEER_CONNECTING) | TO(WEFT_PEER_CLOSED),
    [WEFT_PEER_CLOSED] = 0,
};

static const weft_carrier carrier;

weft_client *weft__client_of(const weft_peer *peer) {
    return weft__peer_carrier(peer, &carrier);
}

weft_client *weft__client_ref(weft_client *client) {
    client->refs++;
    return client;
}

void weft__client_unref(weft_client *client) {
    const weft_alloc *alloc = client->loop->alloc;
    if (--client->refs)
        return;
    weft__tls_ctx_unref(client->tls);
    weft__url_done(&client->url, alloc);
    weft__given_close(&client->given);
    weft__free(alloc, client->authority);
    weft__free(alloc, client->target);
    weft__free(alloc, client->token);
    weft__signing_free(client->signing, alloc);
    weft__free(alloc, client->more);
    weft_loop *loop = client->loop;
    loop->lingering -= client->let_go;
    weft__free(alloc, client);
    weft__loop_leave(loop);
}

int64_t weft__client_timeout(const weft_client *client) {
    return client->opts.timeout_ms ? client->opts.timeout_ms : CONNECT_MS;
}

void weft__client_trouble(weft_client *client, const char *format, ...) {
    va_list args;
    if (*client->trouble)
        return;
    va_start(args, format);
    vsnprintf(client->trouble, sizeof client->trouble, format, args);
    va_end(args);
}

/* ---- state ---- */

/* Without a connection nothing else keeps the loop waiting for us. */
static void hold_loop(weft_client *client, bool hold) {
    if (client->held == hold)
        return;
    client->held = hold;
    if (hold)
        weft_loop_hold(client->loop);
    else
        weft_loop_release(client->loop);
}

void weft__client_want_events(weft_client *client, bool wanted) {
    client->opts.events = wanted;
    if (client->state == WEFT_PEER_CONNECTED)
        hold_loop(client, wanted);
}

/* May free the peer. */
static void set_state(weft_client *client, weft_peer_state state, int why) {
    assert(moves[client->state] & TO(state));
    client->state = state;
    client->why = why;
    /* Events may come as long as we are connected, also while the server lets the connection for calls go. */
    bool events = client->opts.events && client->transport->scheme.flags & WEFT_LAZY;
    hold_loop(client,
              state == WEFT_PEER_CONNECTING || state == WEFT_PEER_DISCONNECTED || (state == WEFT_PEER_CONNECTED && events));
    if (client->opts.on_state)
        client->opts.on_state(client->peer, state, why, client->opts.data);
    /* What its user called first, to show a token for instance, goes out before what the subscriptions ask. */
    if (!client->peer || client->state != state)
        return;
    if (state == WEFT_PEER_CONNECTED)
        weft__subs_connected(client);
    else if (state != WEFT_PEER_CONNECTING)
        weft__subs_lost(client, why, state == WEFT_PEER_CLOSED);
}

static void client_on_notification(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    weft_client *client = weft__client_of(peer);
    if (!client || weft__subs_take(client, method, params))
        return;
    if (client->opts.on_notification)
        client->opts.on_notification(peer, method, params, data);
}

/* ---- the peer's deadlines and calls ---- */

void weft__client_schedule(weft_client *client) {
    weft__timer_set(client->loop, &client->tick, weft_peer_deadline(client->peer));
}

static void on_client_tick(weft_timer *timer) {
    weft_client *client = weft__client_ref(WEFT_CONTAINER(timer, weft_client, tick));
    weft_peer *peer = client->peer;
    int r = weft_peer_tick(peer, weft_loop_now(client->loop));
    bool ready = client->peer && client->wire && client->wire->ready;
    if (ready && r < 0)
        weft__client_lost(client, client->wire, r);
    else if (ready)
        weft__wire_flush(client->wire);
    /* A peer that is broken and has no connection to lose has nothing to look after either. */
    if (client->peer && (ready || r >= 0))
        weft__client_schedule(client);
    weft__client_unref(client);
}

/* A message was queued outside of feeding, or could not be because the queue is full: then the peer's status says so, and
 * its next tick, which is due at once. */
static void client_on_output(weft_peer *peer, void *data) {
    (void) data;
    weft_client *client = weft__client_of(peer);
    if (!client)
        return; /* it is being freed, and says good-bye */
    weft__client_schedule(client);
    if (client->wire && client->wire->ready)
        weft__wire_flush(client->wire);
    else if (client->state == WEFT_PEER_CONNECTED && !client->wire)
        weft__later(client->loop, &client->begin);
}

/* ---- connecting ---- */

static void forget_addresses(weft_client *client) {
    if (client->addresses)
        uv_freeaddrinfo(client->addresses);
    client->addresses = client->next_address = NULL;
}

/* With several addresses each gets its share of the time, so that a silent first one leaves some for the others. */
static int64_t share_of_time(const weft_client *client) {
    int64_t now = weft_loop_now(client->loop);
    int64_t left = 1;
    for (const struct addrinfo *next = client->next_address; next; next = next->ai_next)
        left++;
    return client->give_up == INT64_MAX ? INT64_MAX : now + (client->give_up - now) / left;
}

static void open_wire(weft_client *client) {
    weft_wire *wire;
    int r = weft__wire_new(client, &wire);
    if (r < 0) {
        weft__client_lost(client, NULL, r);
        return;
    }
    client->wire = wire;
    weft__timer_set(client->loop, &client->attempt, share_of_time(client));
    r = client->transport->begin(wire);
    if (r < 0)
        weft__client_lost(client, wire, r);
}

static void on_begin_connecting(weft_later *later) {
    weft_client *client = weft__client_ref(WEFT_CONTAINER(later, weft_client, begin));
    int64_t timeout = weft__client_timeout(client);
    client->trouble[0] = '\0';
    client->give_up = timeout < 0 ? INT64_MAX : weft__after(weft_loop_now(client->loop), timeout);
    /* A lazy transport between two connections is as good as connected, and its user hears nothing. */
    if (client->state == WEFT_PEER_DISCONNECTED)
        set_state(client, WEFT_PEER_CONNECTING, 0);
    if (client->peer && !client->wire)
        open_wire(client);
    weft__client_unref(client);
}

static void on_events_again(weft_timer *timer) {
    weft__events_again(WEFT_CONTAINER(timer, weft_client, events_again));
}

/* It is time to try again, or the attempt took too long. */
static void on_attempt(weft_timer *timer) {
    weft_client *client = WEFT_CONTAINER(timer, weft_client, attempt);
    if (client->wire)
        weft__client_lost(client, client->wire, -ETIMEDOUT);
    else
        weft__later(client->loop, &client->begin);
}

void weft__client_ready(weft_client *client, weft_wire *wire) {
    weft__client_ref(client);
    forget_addresses(client);
    weft__timer_stop(client->loop, &client->attempt);
    client->connected_at = weft_loop_now(client->loop);
    int r = weft__peer_online(client->peer, wire->deflate, client->connected_at);
    if (r == 0 && client->transport->scheme.flags & WEFT_LAZY) {
        weft__http_client_again(weft__peer_framing_state(client->peer));
        weft__events_prepare(client);
    }
    if (r < 0)
        weft__client_lost(client, wire, r);
    else if (client->state != WEFT_PEER_CONNECTED)
        set_state(client, WEFT_PEER_CONNECTED, 0);
    if (weft__wire_current(wire)) {
        weft__client_schedule(client);
        weft__wire_flush(wire);
        if (client->opts.events && client->transport->scheme.flags & WEFT_LAZY)
            weft__events_again(client);
    }
    weft__client_unref(client);
}

/* ---- losing it ---- */

uint32_t weft__any_number(void) {
    uint32_t number;
    return getrandom(&number, sizeof number, 0) == (ssize_t) sizeof number ? number : UINT32_MAX / 2;
}

static void try_connecting_later(weft_client *client) {
    int64_t now = weft_loop_now(client->loop);
    weft__timer_set(client->loop, &client->attempt, now + weft__backoff_next(&client->backoff, weft__any_number()));
}

/* A server that does not want us will not change its mind in a second. */
static bool will_try_again(const weft_client *client, int why) {
    return client->opts.reconnect && why != -EACCES && why != -EOPNOTSUPP;
}

/* Complete what was waiting, tell the user. Calls made while there was no connection wait for the next, if there is one. */
static void report_loss(weft_client *client, bool was_connected, int why) {
    bool again = will_try_again(client, why);
    weft__peer_offline(client->peer);
    if (was_connected || !again)
        weft__peer_reset(client->peer, was_connected ? -ECONNRESET : -ENOTCONN, NULL, again);
    weft__later_cancel(&client->begin); /* a call made again meanwhile does not make the next attempt come sooner */
    if (client->peer && !again)
        weft_peer_eof(client->peer); /* from now on calls are refused when they are made */
    if (client->peer)
        set_state(client, again ? WEFT_PEER_DISCONNECTED : WEFT_PEER_CLOSED, why);
    if (client->peer && client->state == WEFT_PEER_DISCONNECTED)
        try_connecting_later(client);
}

static void give_up(weft_client *client, bool was_ready, int why) {
    weft__events_stop(client);
    forget_addresses(client);
    if (was_ready && weft_loop_now(client->loop) - client->connected_at >= LIVED_MS)
        weft__backoff_reset(&client->backoff);
    weft__client_trouble(client, "%s: %s", client->endpoint, weft_strerror(why));
    report_loss(client, client->state == WEFT_PEER_CONNECTED, why);
}

/* HTTP: the server closed a connection on which nothing was going on. The next one is opened when it is needed. */
static void go_idle(weft_client *client) {
    weft__peer_offline(client->peer);
    if (weft_peer_output(client->peer).len > 0)
        weft__later(client->loop, &client->begin);
}

void weft__client_lost(weft_client *client, weft_wire *wire, int why) {
    weft__client_ref(client);
    bool was_ready = wire && wire->ready;
    bool ended = was_ready && (why == 0 || why == -ECONNRESET);
    bool idle = ended && client->transport->scheme.flags & WEFT_LAZY && weft__http_harmless_end(client, why == 0);
    weft__timer_stop(client->loop, &client->attempt);
    if (client->wire)
        weft__wire_let_go(client->wire, was_ready && why < 0);
    if (!client->peer)
        ; /* a callback freed it */
    else if (idle)
        go_idle(client);
    else if (!was_ready && client->next_address)
        open_wire(client);
    else
        give_up(client, was_ready, why ? why : -ECONNRESET);
    weft__client_unref(client);
}

/* ---- freeing ---- */

/* Say good-bye if somebody is there to hear it. With calls still open nobody waits for the other side to finish them. */
static void leave_politely(weft_client *client) {
    weft_wire *wire = client->wire;
    bool politely = wire->ready && weft_peer_open_calls(client->peer) == 0;
    if (politely)
        weft_peer_close(client->peer, NORMAL_CLOSURE, "");
    else if (wire->ready)
        weft__stream_flush(&wire->stream);
    if (client->wire)
        weft__wire_let_go(client->wire, politely);
}

static void on_client_free(weft_peer *peer, void *data) {
    weft_client *client = data;
    (void) peer;
    if (client->wire)
        leave_politely(client);
    weft__events_stop(client);
    weft__subs_leave(client);
    client->peer = NULL;
    client->state = WEFT_PEER_CLOSED;
    client->let_go = true;
    client->loop->lingering++;
    forget_addresses(client);
    weft__later_cancel(&client->begin);
    weft__timer_stop(client->loop, &client->attempt);
    weft__timer_stop(client->loop, &client->tick);
    hold_loop(client, false);
    /* A private loop goes with its client, unless it is running: then whoever runs it sees to that. */
    weft_loop *loop = client->loop, *own = client->own_loop && !client->driven ? loop : NULL;
    if (own)
        weft__loop_run_out(own);
    weft__client_unref(client);
    if (own)
        weft_loop_free(own);
    else
        weft__loop_settle(loop);
}

static int64_t client_now(void *data) {
    return weft__loop_fresh_now(((const weft_client *) data)->loop);
}

static void on_client_resume(weft_peer *peer, void *data) {
    weft_client *client = data;
    (void) peer;
    if (client->wire && client->wire->ready)
        weft__wire_resume(client->wire);
}

static const weft_carrier carrier = {.free = on_client_free, .now = client_now, .resume = on_client_resume};

/* ---- making ---- */

/* What goes into an HTTP head must not end it. */
static bool fits_in_head(const char *text) {
    for (; text && *text; text++)
        if ((unsigned char) *text <= ' ' || *text == 0x7f)
            return false;
    return true;
}

static int check_token(weft_client *client, const char *token) {
    if (!(client->transport->scheme.flags & WEFT_OVER_HTTP))
        return 0;
    if (fits_in_head(token)) /* path and query are visible ASCII, or the URL was refused */
        return 0;
    weft__client_trouble(client, "a token must not contain spaces or control characters");
    return -EINVAL;
}

/* The Host header: brackets around IPv6, no port when it is the scheme's own. */
static int make_authority(weft_client *client) {
    const weft_url *url = &client->url;
    bool v6 = strchr(url->host, ':');
    bool usual = url->port == url->scheme->port;
    size_t size = strlen(url->host) + sizeof "[]:65535";
    client->authority = weft__alloc(client->loop->alloc, size);
    if (!client->authority)
        return -ENOMEM;
    int n = snprintf(client->authority, size, v6 ? "[%s]" : "%s", url->host);
    if (!usual)
        snprintf(client->authority + n, size - (size_t) n, ":%d", url->port);
    return 0;
}

static int copy_opts(weft_client *client, const weft_connect_opts *opts) {
    const weft_alloc *alloc = client->loop->alloc;
    client->opts = *opts;
    client->opts.token = NULL;
    client->opts.tls = (weft_tls_opts){0};
    client->opts.headers = NULL;
    client->opts.sign_key = NULL;
    int r = opts->sign_key ? weft__signing_new(opts->sign_key, alloc, &client->signing) : 0;
    if (r == -EINVAL)
        weft__client_trouble(client, "this cannot be a key for signatures: it needs %d to %d bytes, and a plain id",
                             WEFT_SECRET_MIN, WEFT_SECRET_MAX);
    if (r < 0)
        return r;
    r = weft__headers_text(opts->headers, alloc, &client->more);
    if (r == -EINVAL)
        weft__client_trouble(client, "a header has a name or a value that cannot be sent, or is the protocol's own");
    if (r < 0 || !opts->token)
        return r;
    client->token = weft__strndup(alloc, opts->token, strlen(opts->token));
    client->opts.token = client->token;
    return client->token ? 0 : -ENOMEM;
}

static int make_tls(weft_client *client, const weft_tls_opts *opts) {
    char why[WEFT_TLS_WHY] = "";
    unsigned flags = client->transport->scheme.flags;
    if (!(flags & WEFT_OVER_TLS))
        return 0;
    int r = weft__tls_client(opts, flags & WEFT_OVER_HTTP, client->loop->alloc, &client->tls, why);
    if (r < 0)
        weft__client_trouble(client, "%s", why);
    return r;
}

/* Everything that can be said before a packet is sent. */
static int prepare_client(weft_client *client, const char *url, const weft_connect_opts *opts) {
    const weft_alloc *alloc = client->loop->alloc;
    const char *why = "there is no URL";
    int r = url ? weft__transport_parse(client->loop->transports, url, alloc, &client->url, &why) : -EINVAL;
    if (r < 0) {
        weft__client_trouble(client, "%s", why);
        return r;
    }
    size_t shown = weft__url_shown(url, client->url.scheme);
    snprintf(client->endpoint, sizeof client->endpoint, "%.*s", (int) (shown < INT_MAX ? shown : INT_MAX), url);
    client->transport = weft__transport(&client->url);
    r = check_token(client, opts->token);
    if (r == 0)
        r = copy_opts(client, opts);
    if (r == 0)
        r = make_authority(client);
    if (r == 0)
        r = make_tls(client, &opts->tls);
    return r;
}

/* The other side is who we chose to call: its answers may be large, and what we offer we offer to it. */
static int make_client_peer(weft_client *client) {
    const weft_connect_opts *opts = &client->opts;
    const weft_transport *transport = client->transport;
    const weft_framing *framing = transport->framing ? transport->framing : opts->framing ? opts->framing : &weft_ndjson;
    bool http = framing == &weft__http_client;
    weft_identity identity = {
        .transport = transport->scheme.name,
        .local = !(transport->scheme.flags & WEFT_NETWORK),
        .dialect = "",
        .name = "",
        .scopes = "*",
        .address = client->endpoint,
        .uid = -1,
        .pid = -1,
        .authenticated = true,
    };
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t) sizeof seed)
        return -EIO;
    int r = weft_peer_new(opts->service,
                          &(weft_peer_opts){
                              .eager = !opts->on_raw,                  /* what passes through is left as it comes */
                              .framing = http ? &weft__body : framing, /* weft__http_prepare() gives it its own */
                              .identity = &identity,
                              .style = opts->style,
                              .no_batch = opts->no_batch,
                              .lenient = opts->lenient,
                              .extras = opts->extras,
                              .seed = seed,
                              .gzip = opts->gzip,
                              .sign = client->signing ? weft__signing_sign : NULL,
                              .sign_ctx = client->signing,
                              .data = opts->data,
                              .on_notification = client_on_notification,
                              .on_raw = opts->on_raw,
                              .on_drain = opts->on_drain,
                              .on_output = client_on_output,
                          },
                          &client->peer);
    if (r < 0)
        return r;
    r = http ? weft__http_prepare(client) : 0;
    if (r < 0) {
        client->peer = weft_peer_free(client->peer);
        return r;
    }
    weft__peer_set_carrier(client->peer, &carrier, client);
    weft__peer_offline(client->peer);
    return 0;
}

static weft_client *new_client(weft_loop *loop) {
    weft_client *client = weft__zalloc(loop->alloc, sizeof *client);
    if (!client)
        return NULL;
    client->refs = 1;
    client->loop = loop;
    weft__loop_join(loop);
    client->given = (weft_given){-1, -1};
    weft__list_init(&client->subs);
    weft__later_init(&client->begin, on_begin_connecting);
    weft__timer_init(&client->attempt, on_attempt);
    weft__timer_init(&client->tick, on_client_tick);
    weft__timer_init(&client->events_again, on_events_again);
    return client;
}

/* The rest, when r says that it could be prepared. CONNECTING is told from the loop, like everything else. */
static int begin_client(weft_client *client, int r, weft_peer **ret, weft_trouble *ret_trouble) {
    if (r == 0)
        r = make_client_peer(client);
    if (r < 0) {
        if (ret_trouble)
            snprintf(ret_trouble->text, sizeof ret_trouble->text, "%s", client->trouble);
        weft__client_unref(client);
        return r;
    }
    client->state = WEFT_PEER_DISCONNECTED;
    hold_loop(client, true);
    weft__later(client->loop, &client->begin);
    *ret = client->peer;
    return 0;
}

int weft_connect_on(weft_loop *loop, const char *url, const weft_connect_opts *opts, weft_peer **ret,
                    weft_trouble *ret_trouble) {
    static const weft_connect_opts defaults;
    weft_client *client = new_client(loop);
    if (!client)
        return -ENOMEM;
    opts = opts ? opts : &defaults;
    return begin_client(client, prepare_client(client, url, opts), ret, ret_trouble);
}

int weft__connect_fds(weft_loop *loop, int in, int out, const weft_connect_opts *opts, weft_peer **ret) {
    weft_client *client = new_client(loop);
    weft_given given = {in, out};
    if (!client) {
        weft__given_close(&given);
        return -ENOMEM;
    }
    client->given = given;
    client->transport = &weft__given_transport;
    snprintf(client->endpoint, sizeof client->endpoint, "%s", client->transport->scheme.name);
    int r = copy_opts(client, opts);
    client->opts.reconnect = false;
    return begin_client(client, r, ret, NULL);
}

weft_loop *weft_peer_loop(const weft_peer *peer) {
    const weft_client *client = weft__client_of(peer);
    return client ? client->loop : NULL;
}

const char *weft_peer_trouble(const weft_peer *peer) {
    const weft_client *client = weft__client_of(peer);
    return client ? client->trouble : "";
}
