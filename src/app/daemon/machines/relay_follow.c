/* Following one hub: its events from the position that is stored, into a journal that is a copy.
 *
 *     dials ──connected──▶ says hello ──accepted──▶ subscribes ──resumed──▶ follows ──lost──▶ dials
 *                                    ──refused──▶ waits, dials             ──gap──▶ the copy begins anew
 *
 * Events are stored with the position behind them, in one append: after a crash the hub tells from there, and nothing is
 * there twice. What comes while an append is under way is the next one. The hub is not trusted with names and sizes: what
 * does not fit is refused, as if the hub could not be reached. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "events.h"
#include "failure.h"
#include "relay_private.h"
#include "time_text.h"
#include "write.h"

#define FULL_BYTES ((size_t) 4 << 20) /* waiting to be stored: then the hub is not read from */
#define AGAIN_MS 1000
#define REFUSED_MS 15000 /* a token may be given the scope meanwhile */

/* An append under way. */
struct relay_append {
    relay_hub *hub; /* NULL: it is gone */
    uint64_t number, after;
};

/* ---- the position ---- */

bool weft__relay_in_chain(const relay_hub *hub, const char *epoch) {
    for (size_t i = 0; i < hub->chain_count; i++)
        if (strcmp(hub->chain[i], epoch) == 0)
            return true;
    return false;
}

int weft__relay_write_position(const relay_hub *hub, weft_buf *out) {
    weft_val chain[RELAY_CHAIN];
    for (size_t i = 0; i < hub->chain_count; i++)
        chain[i] = weft_str(hub->chain[i]);
    weft_val value = WEFT_OBJ({"epoch", weft_str(hub->epoch)}, {"after", weft_uint(hub->after)},
                              {"chain", weft_arr(chain, hub->chain_count)});
    return weft__write_val(out, NULL, &value);
}

static bool read_chain(relay_hub *hub, const weft_json *chain) {
    size_t n = 0;
    for (weft_iter it = weft_iterate(chain); weft_next(&it); n++) {
        const char *epoch = weft_str_of(&it.value, "");
        if (n == RELAY_CHAIN || strlen(epoch) > WEFT_EPOCH)
            return false;
        snprintf(hub->chain[n], sizeof hub->chain[n], "%s", epoch);
    }
    hub->chain_count = n;
    return true;
}

void weft__relay_read_position(relay_hub *hub, const weft_json *data) {
    weft_json chain = weft_get(data, "chain");
    snprintf(hub->epoch, sizeof hub->epoch, "%s", weft_get_str(data, "epoch", ""));
    hub->after = hub->stored = (uint64_t) weft_get_int(data, "after", 0);
    read_chain(hub, &chain);
}

/* ---- being away ---- */

static void set_trouble(relay_hub *hub, const char *why) {
    bool same = strcmp(hub->trouble, why) == 0;
    snprintf(hub->trouble, sizeof hub->trouble, "%s", why);
    if (same)
        return;
    weft__stamp(weft__time_now(), hub->since);
    if (*why)
        weft__warn(hub->relay->opts.app, "weft serve: hub %s: %s; what is known of it is served", hub->name, why);
    else
        weft__warn(hub->relay->opts.app, "weft serve: hub %s: followed", hub->name);
}

/* The connection is of no more use; another one follows. */
static void leave_hub(relay_hub *hub, const char *why, int64_t after_ms) {
    set_trouble(hub, why);
    hub->connected = hub->following = false;
    hub->failed_for_now = true;
    weft__timer_set(hub->relay->opts.loop, &hub->again, weft__loop_fresh_now(hub->relay->opts.loop) + after_ms);
}

static void begin_copy_anew(relay_hub *hub, const char *why) {
    weft_relay *relay = hub->relay;
    hub->following = false;
    if (relay->anew)
        return;
    relay->anew = true;
    weft__warn(relay->opts.app, "weft serve: hub %s: %s: the copy begins anew, and clients are told so", hub->name, why);
    relay->opts.on_anew(relay->opts.ctx);
}

/* ---- storing ---- */

static void send_batch(relay_hub *hub);
static void ask_known_on(relay_hub *hub);

static void forget_batch(relay_hub *hub) {
    weft__buf_done(&hub->text, NULL);
    hub->count = 0;
}

static void on_batch_stored(void *ctx, int r, const weft_event *events, size_t count, bool repeat) {
    struct relay_append *append = ctx;
    relay_hub *hub = append->hub;
    uint64_t number = append->number, after = append->after;
    (void) events, (void) count, (void) repeat;
    weft__free(NULL, append);
    if (!hub)
        return;
    hub->append = NULL;
    hub->sending = 0;
    if (r < 0) { /* what came behind it has no place either: all of it is told again */
        char why[RELAY_TROUBLE];
        snprintf(why, sizeof why, "what it says cannot be stored: %s", weft_strerror(r));
        forget_batch(hub);
        hub->after = hub->stored;
        leave_hub(hub, why, AGAIN_MS);
        weft__relay_release(hub, UINT64_MAX);
        return;
    }
    hub->stored = after;
    if (hub->count)
        send_batch(hub);
    else if (hub->connected)
        ask_known_on(hub);
    if (hub->paused && hub->peer && weft__buf_len(&hub->text) < FULL_BYTES) {
        hub->paused = false;
        weft_peer_pause(hub->peer, false);
    }
    weft__relay_release(hub, number);
}

static void place_events(const relay_hub *hub, weft_event *ret) {
    const char *text = weft__buf_head(&hub->text);
    for (size_t i = 0; i < hub->count; i++) {
        const relay_event *event = &hub->events[i];
        ret[i] = (weft_event){.stream = text + event->stream,
                              .type = text + event->type,
                              .data = {text + event->data, event->len},
                              .time_ms = event->time_ms};
    }
}

static int append_batch(relay_hub *hub, struct relay_append *append) {
    weft_event *events = weft__alloc(NULL, RELAY_BATCH * sizeof *events);
    weft_buf position = {0};
    char key[sizeof RELAY_HUB_DOCUMENT + WEFT_RELAY_NAME];
    snprintf(key, sizeof key, "%s%s", RELAY_HUB_DOCUMENT, hub->name);
    int r = events ? weft__relay_write_position(hub, &position) : -ENOMEM;
    if (r >= 0) {
        place_events(hub, events);
        weft_document document = {.key = key, .data = {weft__buf_head(&position), weft__buf_len(&position)}};
        r = weft__store_append(
            weft__engine_store(hub->relay->engine),
            &(weft_append){.events = events, .count = hub->count, .documents = &document, .document_count = 1},
            on_batch_stored, append);
    }
    weft__buf_done(&position, NULL);
    weft__free(NULL, events);
    return r;
}

static void send_batch(relay_hub *hub) {
    struct relay_append *append = weft__alloc(NULL, sizeof *append);
    int r = append ? 0 : -ENOMEM;
    if (append) {
        *append = (struct relay_append){hub, hub->filling, hub->after};
        r = append_batch(hub, append);
    }
    if (r < 0) {
        weft__free(NULL, append);
        append = weft__alloc(NULL, sizeof *append);
        if (append) {
            *append = (struct relay_append){hub, hub->filling, hub->after};
            on_batch_stored(append, r, NULL, 0, false);
        } else
            leave_hub(hub, weft_strerror(-ENOMEM), AGAIN_MS);
        return;
    }
    hub->append = append;
    hub->sending = hub->filling++;
    forget_batch(hub);
}

static void flush_due(weft_later *later) {
    relay_hub *hub = WEFT_CONTAINER(later, relay_hub, flush);
    if (hub->count && !hub->append)
        send_batch(hub);
}

/* ---- an event ---- */

/* About that hub's own process, or about what is not copied with it: values of collections, outcomes of requests. */
static bool is_left_out(const char *type) {
    static const char *const begins[] = {"hub.", "doc.", "request.", "context.", "lease.", "relay."};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncmp(type, begins[i], strlen(begins[i])) == 0)
            return true;
    return strcmp(type, WEFT_REMOVED) == 0;
}

static bool is_word(const char *text) {
    size_t len = strlen(text);
    if (!len || len > WEFT_STORE_NAME - WEFT_RELAY_NAME - 1)
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char) text[i] <= ' ' || text[i] == 0x7f)
            return false;
    return true;
}

/* The offset of a text with its NUL. */
static int put_word(relay_hub *hub, const char *before, const char *prefix, const char *text, size_t *ret) {
    *ret = weft__buf_len(&hub->text);
    int r = weft__buf_put_text(&hub->text, NULL, before);
    if (r >= 0)
        r = weft__buf_put_text(&hub->text, NULL, prefix);
    return r < 0 ? r : weft__buf_put(&hub->text, NULL, text, strlen(text) + 1);
}

static int put_stream(relay_hub *hub, const char *stream, size_t *ret) {
    size_t n = sizeof WEFT_STREAM_SESSION - 1;
    bool of_session = strncmp(stream, WEFT_STREAM_SESSION, n) == 0;
    return put_word(hub, of_session ? WEFT_STREAM_SESSION : "", of_session ? hub->prefix : "",
                    of_session ? stream + n : stream, ret);
}

static int keep_event(relay_hub *hub, const char *stream, const char *type, const weft_json *params) {
    weft_json data = weft_get(params, "data");
    relay_event event = {.time_ms = weft__time_get(params, "time")};
    if (!is_word(stream) || weft_typeof(&data) == WEFT_ABSENT)
        return -EBADMSG;
    int r = put_stream(hub, stream, &event.stream);
    if (r >= 0)
        r = put_word(hub, "", "", type, &event.type);
    event.data = weft__buf_len(&hub->text);
    if (r >= 0)
        r = weft__relay_put_ids(&hub->text, &data, hub->prefix, strcmp(type, "task.imported") == 0);
    event.len = weft__buf_len(&hub->text) - event.data;
    if (r >= 0)
        hub->events[hub->count++] = event;
    return r;
}

static void on_relay_notification(weft_peer *peer, const char *method, const weft_json *params, void *ctx) {
    relay_hub *hub = ctx;
    if (!hub->following || strcmp(method, "event") != 0)
        return;
    int64_t gseq = weft_get_int(params, "gseq", 0);
    const char *type = weft_get_str(params, "type", ""), *stream = weft_get_str(params, "stream", "");
    int r = gseq <= 0 || !is_word(type) ? -EBADMSG : 0;
    if (r == 0 && (uint64_t) gseq <= hub->after)
        return;
    if (r == 0 && hub->count == RELAY_BATCH)
        r = -ENOBUFS; /* cannot be: it is not read from */
    if (r == 0 && !is_left_out(type))
        r = keep_event(hub, stream, type, params);
    if (r < 0) {
        char why[RELAY_TROUBLE];
        snprintf(why, sizeof why, "event %" PRId64 ": %s", gseq, r == -EBADMSG ? "it is none" : weft_strerror(r));
        hub->count = 0;
        weft__buf_done(&hub->text, NULL);
        hub->after = hub->stored;
        leave_hub(hub, why, r == -EBADMSG ? REFUSED_MS : AGAIN_MS);
        return;
    }
    hub->after = (uint64_t) gseq;
    if (hub->after > hub->head)
        hub->head = hub->after;
    if (!hub->count)
        return;
    if (!hub->append && hub->count == RELAY_BATCH)
        send_batch(hub);
    else
        weft__later(hub->relay->opts.loop, &hub->flush);
    if (!hub->paused && hub->append && (hub->count == RELAY_BATCH || weft__buf_len(&hub->text) >= FULL_BYTES)) {
        hub->paused = true;
        weft_peer_pause(peer, true);
    }
}

/* ---- subscribing ---- */

static bool takes_answer(relay_hub *hub, int r, const weft_answer *answer) {
    if (r < 0 || !hub->connected)
        return false; /* it is lost, and tried again */
    if (!answer->error)
        return true;
    const char *reason = weft_get_str(&answer->error->data, "reason", "");
    bool old = answer->error->code == WEFT_METHOD_NOT_FOUND;
    bool soon = strcmp(reason, "relayNotReady") == 0 || answer->error->code == 503;
    leave_hub(hub, old ? "it cannot be followed: it is no hub, or an older one" : answer->error->message,
              soon ? AGAIN_MS : REFUSED_MS);
    return false;
}

static void subscribe_events(relay_hub *hub, bool kept);
static void ask_known(relay_hub *hub, int64_t after);

static void on_relay_subscribed(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    relay_hub *hub = ctx;
    (void) peer;
    if (!takes_answer(hub, r, answer))
        return;
    if (strcmp(weft_get_str(answer->result, "epoch", ""), hub->epoch) != 0 ||
        !weft_get_bool(answer->result, "resumed", false)) {
        const char *reason = weft_get_str(answer->result, "reason", "");
        if (!hub->stored && !hub->after && strcmp(reason, "trimmed") == 0) {
            ask_known(hub, 0);
            return;
        }
        begin_copy_anew(hub, strcmp(reason, "trimmed") == 0 ? "it has removed events that were not copied yet"
                                                            : "it does not know this position any more");
        return;
    }
    uint64_t head = (uint64_t) weft_get_int(answer->result, "head", 0);
    hub->head = head > hub->head ? head : hub->head;
    hub->following = true;
    set_trouble(hub, "");
}

/* kept: whatever is left of the journal. Otherwise nothing may be missing; from the very beginning neither, but for the
 * first event of every journal, a start of its hub, which is not copied: behind 0 a hub tells what is left. */
static void subscribe_events(relay_hub *hub, bool kept) {
    uint64_t after = kept || hub->after ? hub->after : 1;
    int r =
        weft_call_start(hub->peer, "event.subscribe", WEFT_OBJ({"after", weft_uint(after)}, {"epoch", weft_str(hub->epoch)}),
                        &(weft_call_opts){.on_answer = on_relay_subscribed, .ctx = hub, .timeout_ms = -1}, NULL);
    if (r < 0)
        leave_hub(hub, weft_strerror(r), AGAIN_MS);
}

/* ---- a journal whose beginning is gone ---- */

/* They have no position: should we end before all of this is stored, it begins again, and changes nothing. */
static int take_known(relay_hub *hub, const weft_json *events) {
    int r = 0;
    for (weft_iter it = weft_iterate(events); r >= 0 && weft_next(&it);) {
        const char *type = weft_get_str(&it.value, "type", ""), *stream = weft_get_str(&it.value, "stream", "");
        if (!is_word(type) || hub->count == RELAY_BATCH)
            return -EBADMSG;
        r = keep_event(hub, stream, type, &it.value);
    }
    return r;
}

static void ask_known_on(relay_hub *hub) {
    int64_t next = hub->known_next;
    hub->known_next = -1;
    if (next > 0)
        ask_known(hub, next);
    else if (next == 0)
        subscribe_events(hub, true);
}

static void on_relay_known(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    relay_hub *hub = ctx;
    (void) peer;
    if (!takes_answer(hub, r, answer))
        return;
    weft_json events = weft_get(answer->result, "events");
    int64_t next = weft_get_int(answer->result, "next", 0);
    r = next && next <= hub->known_after ? -EBADMSG : take_known(hub, &events);
    if (r < 0) {
        forget_batch(hub);
        leave_hub(hub, "its answer to relay.known cannot be understood", REFUSED_MS);
        return;
    }
    hub->known_next = next;
    if (hub->count && !hub->append) /* the next page when this one is stored */
        send_batch(hub);
    else if (!hub->count)
        ask_known_on(hub);
}

static void ask_known(relay_hub *hub, int64_t after) {
    hub->known_after = after;
    int r = weft_call_start(hub->peer, "relay.known", WEFT_OBJ({"after", weft_int(after)}),
                            &(weft_call_opts){.on_answer = on_relay_known, .ctx = hub}, NULL);
    if (r < 0)
        leave_hub(hub, weft_strerror(r), AGAIN_MS);
}

static void on_relay_hello(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    relay_hub *hub = ctx;
    (void) peer;
    if (!takes_answer(hub, r, answer))
        return;
    const char *epoch = weft_get_str(answer->result, "epoch", "");
    weft_json chain = weft_get(answer->result, "chain");
    if (!*epoch || strlen(epoch) > WEFT_EPOCH || !read_chain(hub, &chain)) {
        leave_hub(hub, "its answer to relay.hello cannot be understood", REFUSED_MS);
        return;
    }
    if (weft__relay_in_chain(hub, weft__store_epoch(weft__engine_store(hub->relay->engine)))) {
        leave_hub(hub, "it follows this relay: a relay cannot follow itself", REFUSED_MS);
        return;
    }
    if (*hub->epoch && strcmp(hub->epoch, epoch) != 0) {
        begin_copy_anew(hub, "it has begun a new journal");
        return;
    }
    snprintf(hub->epoch, sizeof hub->epoch, "%s", epoch);
    subscribe_events(hub, false);
}

static void say_relay_hello(relay_hub *hub) {
    int r = weft_call_start(hub->peer, "relay.hello",
                            WEFT_OBJ({"epoch", weft_str(weft__store_epoch(weft__engine_store(hub->relay->engine)))}),
                            &(weft_call_opts){.on_answer = on_relay_hello, .ctx = hub}, NULL);
    if (r < 0)
        leave_hub(hub, weft_strerror(r), AGAIN_MS);
}

/* ---- connecting ---- */

static void on_relay_shown(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    relay_hub *hub = ctx;
    (void) peer;
    if (r >= 0 && answer->error && answer->error->code != WEFT_METHOD_NOT_FOUND)
        leave_hub(hub, answer->error->message, REFUSED_MS);
    else if (r >= 0)
        say_relay_hello(hub);
}

static void on_relay_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    relay_hub *hub = data;
    const char *trouble = *weft_peer_trouble(peer) ? weft_peer_trouble(peer) : weft_strerror(why);
    hub->connected = state == WEFT_PEER_CONNECTED;
    hub->known_next = -1;
    if (state != WEFT_PEER_CONNECTED)
        hub->following = hub->paused = false;
    if (state == WEFT_PEER_CONNECTED && weft__target_shows_by_call(&hub->target))
        weft__target_show(peer, &hub->target, on_relay_shown, hub);
    else if (state == WEFT_PEER_CONNECTED)
        say_relay_hello(hub);
    else if (state == WEFT_PEER_CLOSED && !hub->failed_for_now)
        leave_hub(hub, trouble, REFUSED_MS);
    else if (state == WEFT_PEER_DISCONNECTED)
        set_trouble(hub, trouble);
}

int weft__relay_dial(relay_hub *hub) {
    weft_relay *relay = hub->relay;
    weft_trouble trouble = {""};
    hub->failed_for_now = false;
    weft__target_done(&hub->target);
    hub->target = (weft_target){0};
    relay->opts.app->reach.token_file = hub->token_file; /* read now: it may have been replaced */
    relay->opts.app->reach.cacert = hub->cacert;
    weft_exit status = weft__target_of(relay->opts.app, hub->url, &hub->target);
    relay->opts.app->reach = (weft_reach){0};
    if (status != WEFT_DONE) {
        leave_hub(hub, "its token cannot be read", REFUSED_MS);
        return 0;
    }
    weft_connect_opts opts = weft__target_opts(relay->opts.app, &hub->target, NULL);
    opts.reconnect = true;
    opts.data = hub;
    opts.on_state = on_relay_state;
    opts.on_notification = on_relay_notification;
    int r = weft_connect_on(relay->opts.loop, hub->target.url, &opts, &hub->peer, &trouble);
    if (r < 0)
        leave_hub(hub, *trouble.text ? trouble.text : weft_strerror(r), REFUSED_MS);
    return r;
}

static void on_relay_again(weft_timer *timer) {
    relay_hub *hub = WEFT_CONTAINER(timer, relay_hub, again);
    if (hub->append) { /* its position is known when it is over */
        weft__timer_set(hub->relay->opts.loop, timer, weft__loop_fresh_now(hub->relay->opts.loop) + AGAIN_MS);
        return;
    }
    hub->peer = weft_peer_free(hub->peer);
    forget_batch(hub);
    hub->after = hub->stored;
    weft__relay_release(hub, UINT64_MAX);
    if (!hub->relay->anew)
        weft__relay_dial(hub);
}

void weft__relay_hub_init(relay_hub *hub) {
    weft__later_init(&hub->flush, flush_due);
    weft__timer_init(&hub->again, on_relay_again);
    weft__list_init(&hub->held);
    weft__list_init(&hub->calls);
    hub->filling = 1;
    hub->known_next = -1;
    snprintf(hub->trouble, sizeof hub->trouble, "not connected yet");
    weft__stamp(weft__time_now(), hub->since);
}

void weft__relay_hub_done(relay_hub *hub) {
    hub->failed_for_now = true;
    hub->connected = hub->following = false;
    hub->peer = weft_peer_free(hub->peer); /* what it was asked is answered */
    if (hub->append)
        hub->append->hub = NULL;
    hub->append = NULL;
    weft__relay_release(hub, UINT64_MAX);
    weft__later_cancel(&hub->flush);
    weft__timer_stop(hub->relay->opts.loop, &hub->again);
    forget_batch(hub);
    weft__target_done(&hub->target);
    hub->target = (weft_target){0};
}
