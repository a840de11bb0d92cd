/* How a value of a stream reaches one client: tinyvex/data, or pieces of its text in tinyvex/transitionChunk where it is
 * long.
 *
 * Pieces are sent as far as the connection has room and go on when it has drained. A client has one value in pieces at a
 * time, so that what it costs in memory is one value, however many streams it follows. */
#include <errno.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "hub_clients_private.h"
#include "tinyvex.h"
#include "utf8.h"

/* A client is told at most so often that values were skipped. */
#define SKIPS_MS 5000

/* ---- the value ---- */

static void write_digest(weft_bytes text, char ret[WEFT_DIGEST + 1]) {
    unsigned char hash[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *) text.data, text.len, hash);
    for (size_t i = 0; i < WEFT_DIGEST / 2; i++)
        snprintf(ret + 2 * i, 3, "%02x", hash[i]);
}

int weft__value_new(const weft_alloc *alloc, uint64_t seq, weft_bytes text, bool state, weft_value **ret) {
    weft_value *value = weft__alloc(alloc, sizeof *value + text.len);
    if (!value)
        return -ENOMEM;
    *value = (weft_value){.refs = 1, .seq = seq, .len = text.len};
    memcpy(value->text, text.data, text.len);
    if (state)
        write_digest(text, value->digest);
    *ret = value;
    return 0;
}

weft_value *weft__value_unref(const weft_alloc *alloc, weft_value *value) {
    if (value && --value->refs == 0)
        weft__free(alloc, value);
    return NULL;
}

const char *weft__journal_text(const weft_hub *hub, uint64_t seq, const char *digest, char *text) {
    const char *epoch = weft__store_epoch(weft__engine_store(hub->engine));
    if (digest && *digest)
        snprintf(text, WEFT_JOURNAL, "%s.%" PRIu64 ".%s", epoch, seq, digest);
    else
        snprintf(text, WEFT_JOURNAL, "%s", epoch);
    return text;
}

/* ---- whole ---- */

/* Bytes of one piece. */
static size_t most_of(const weft_subscription *subscription) {
    size_t bytes = subscription->client->clients->hub->chunk_bytes;
    return bytes ? bytes : TINYVEX_CHUNK;
}

bool weft__value_is_long(const weft_subscription *subscription, size_t len) {
    return len > most_of(subscription);
}

bool weft__value_fits(const weft_subscription *subscription, size_t len) {
    const weft_hub_client *client = subscription->client;
    return !weft_peer_full(client->peer) && !subscription->sending &&
           !(weft__value_is_long(subscription, len) && client->transfer);
}

void weft__value_forms_done(weft_value_forms *forms) {
    while (forms->count)
        weft_shared_free(forms->of[--forms->count].shared);
}

static weft_shared *find_form(const weft_value_forms *forms, const char *id) {
    for (size_t i = 0; i < forms->count; i++)
        if (strcmp(forms->of[i].id, id) == 0)
            return forms->of[i].shared;
    return NULL;
}

/* Encode it for all who have this id. */
static int make_form(const weft_subscription *subscription, weft_val params, weft_value_forms *forms) {
    weft_shared **made = &forms->of[forms->count].shared;
    int r = weft_shared_new(subscription->client->clients->hub->service, "tinyvex/data", params, made);
    if (r < 0)
        return r;
    forms->of[forms->count++].id = subscription->id;
    return weft_shared_send(*made, subscription->client->peer);
}

int weft__value_send(weft_subscription *subscription, uint64_t seq, weft_bytes text, const char *digest,
                     weft_value_forms *forms) {
    char journal[WEFT_JOURNAL];
    weft_shared *shared = forms ? find_form(forms, subscription->id) : NULL;
    if (shared)
        return weft__forgive(weft_shared_send(shared, subscription->client->peer));
    weft_val params =
        WEFT_OBJ({"subId", weft_str(subscription->id)}, {"seq", weft_uint(seq)}, {"value", weft_raw(text.data, text.len)},
                 {"journal", weft_str(weft__journal_text(subscription->client->clients->hub, seq, digest, journal))});
    bool shares = forms && forms->count < WEFT_EVENT_FORMS;
    return weft__forgive(shares ? make_form(subscription, params, forms)
                                : weft_notify(subscription->client->peer, "tinyvex/data", params));
}

/* ---- in pieces ---- */

/* The next piece ends before a code point, not within one. */
static size_t piece_at(const weft_value *value, size_t from, size_t most) {
    size_t left = value->len - from;
    return left <= most ? left : weft__utf8_fit(value->text + from, left, most);
}

static size_t count_pieces(const weft_value *value, size_t most) {
    size_t count = 0;
    for (size_t at = 0; at < value->len; at += piece_at(value, at, most))
        count++;
    return count;
}

static int send_piece(weft_subscription *subscription) {
    const weft_value *value = subscription->sending;
    char transition[24], journal[WEFT_JOURNAL];
    size_t len = piece_at(value, subscription->sent_bytes, most_of(subscription));
    bool last = subscription->sent_parts + 1 == subscription->parts;
    snprintf(transition, sizeof transition, "%" PRIu64, subscription->transition);
    weft__journal_text(subscription->client->clients->hub, value->seq, value->digest, journal);
    int r =
        weft_notify(subscription->client->peer, "tinyvex/transitionChunk",
                    WEFT_OBJ({"subId", weft_str(subscription->id)}, {"seq", weft_uint(value->seq)},
                             {"chunk", weft_strn(value->text + subscription->sent_bytes, len)},
                             {"part", weft_uint(subscription->sent_parts + 1)}, {"total", weft_uint(subscription->parts)},
                             {"transitionId", weft_str(transition)}, {"journal", last ? weft_str(journal) : weft_none()}));
    subscription->sent_bytes += len;
    subscription->sent_parts++;
    return weft__forgive(r);
}

void weft__transfer_end(weft_subscription *subscription) {
    weft_hub_client *client = subscription->client;
    if (!subscription->sending)
        return;
    subscription->superseded = subscription->sent_parts < subscription->parts;
    subscription->sending = weft__value_unref(client->clients->alloc, subscription->sending);
    client->transfer = NULL;
}

int weft__transfer_go_on(weft_subscription *subscription) {
    while (subscription->sent_parts < subscription->parts) {
        if (weft_peer_full(subscription->client->peer))
            return 0;
        int r = send_piece(subscription);
        if (r < 0)
            return r;
    }
    weft__transfer_end(subscription);
    return 1;
}

int weft__transfer_begin(weft_subscription *subscription, weft_value *value) {
    weft_hub_client *client = subscription->client;
    subscription->sending = value;
    subscription->sent_bytes = subscription->sent_parts = 0;
    subscription->parts = count_pieces(value, most_of(subscription));
    subscription->transition = ++client->transitions;
    client->transfer = subscription;
    return weft__transfer_go_on(subscription);
}

/* ---- what is wrong ---- */

int weft__value_tell_error(weft_subscription *subscription, const char *code, const char *message, weft_val data) {
    return weft__forgive(weft_notify(subscription->client->peer, "tinyvex/error",
                                     WEFT_OBJ({"subId", weft_str(subscription->id)}, {"code", weft_str(code)},
                                              {"message", weft_str(message)}, {"data", data})));
}

int weft__value_tell_skipped(weft_subscription *subscription) {
    int64_t now = weft_loop_now(weft__engine_loop(subscription->client->clients->hub->engine));
    uint64_t skipped = subscription->skipped;
    bool told = subscription->skips_told_ms && now - subscription->skips_told_ms < SKIPS_MS;
    if (!skipped || told)
        return 0;
    subscription->skipped = 0;
    subscription->skips_told_ms = now ? now : 1;
    return weft__value_tell_error(subscription, TVX_BACKPRESSURE, "Values were skipped because this connection reads slowly",
                                  WEFT_OBJ({"skipped", weft_uint(skipped)}));
}
