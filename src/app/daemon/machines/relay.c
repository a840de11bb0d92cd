/* A relay's life, and whose copy its journal is. relay_follow.c follows a hub, relay_forward.c asks it. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "failure.h"
#include "hub.h"
#include "hubs_file.h"
#include "relay_private.h"
#include "reply.h"
#include "schemas.h"
#include "write.h"

/* ---- what was typed ---- */

static weft_exit set_hub(relay_hub *hub, const weft_app *app, const char *name, size_t len, const char *url,
                         const char *token_file, const char *cacert) {
    snprintf(hub->name, sizeof hub->name, "%.*s", (int) (len <= WEFT_RELAY_NAME ? len : 0), name);
    if (!weft__hubs_is_name(hub->name))
        return weft__misused(app,
                             "--relay: a relay's hubs have names of 1 to %d letters, digits, dashes and underscores: %.*s",
                             WEFT_RELAY_NAME, (int) len, name);
    hub->url = weft__strndup(NULL, url, strlen(url));
    return hub->url && weft__copy_or_null(NULL, token_file, &hub->token_file) >= 0 &&
                   weft__copy_or_null(NULL, cacert, &hub->cacert) >= 0
               ? WEFT_DONE
               : weft__fail(app, WEFT_FAILED, NULL, "out of memory");
}

static weft_exit find_named(relay_hub *hub, const weft_relay_opts *opts, const char *name) {
    const weft_app *app = opts->app;
    weft_hub_rows *rows = weft__alloc(NULL, sizeof *rows);
    weft_exit status = rows ? weft__hubs_load(app, rows) : weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    const weft_hub_row *row = status == WEFT_DONE ? weft__hubs_find(rows, name) : NULL;
    if (row)
        status = set_hub(hub, app, name, strlen(name), row->url, *row->token_file ? row->token_file : NULL,
                         *row->cacert ? row->cacert : opts->ca);
    else if (status == WEFT_DONE)
        status = weft__misused(app, "--relay %s: not a URL, and \"weft hubs\" knows no hub of this name", name);
    weft__free(NULL, rows);
    return status;
}

/* NAME, NAME=URL, or a URL, whose hub is then called "hub". */
static weft_exit read_hub(relay_hub *hub, const weft_relay_opts *opts, const char *text) {
    const char *equals = strchr(text, '=');
    weft_url url;
    if (weft__is_url(text) || (equals && weft__is_url(equals + 1))) {
        bool named = !weft__is_url(text) || (equals && weft__is_url(equals + 1));
        const char *place = named ? equals + 1 : text;
        weft_exit status = weft__url_check(opts->app, place, &url);
        if (status)
            return status;
        weft__url_done(&url, NULL);
        return named ? set_hub(hub, opts->app, text, (size_t) (equals - text), place, opts->token_file, opts->ca)
                     : set_hub(hub, opts->app, "hub", 3, place, opts->token_file, opts->ca);
    }
    return find_named(hub, opts, text);
}

static weft_exit read_hubs(weft_relay *relay) {
    const weft_texts *texts = &relay->opts.hubs;
    if (texts->count > WEFT_RELAY_HUBS)
        return weft__misused(relay->opts.app, "--relay: at most %d hubs", WEFT_RELAY_HUBS);
    for (size_t i = 0; i < texts->count; i++) {
        relay_hub *hub = &relay->hubs[relay->count++];
        hub->relay = relay;
        weft__relay_hub_init(hub);
        weft_exit status = read_hub(hub, &relay->opts, texts->items[i]);
        if (status)
            return status;
        for (size_t j = 0; j < i; j++)
            if (strcmp(relay->hubs[j].name, hub->name) == 0)
                return weft__misused(relay->opts.app, "--relay: two hubs are called %s; write NAME=URL", hub->name);
    }
    for (size_t i = 0; relay->count > 1 && i < relay->count; i++)
        snprintf(relay->hubs[i].prefix, sizeof relay->hubs[i].prefix, "%s:", relay->hubs[i].name);
    return WEFT_DONE;
}

/* ---- whose copy it is ---- */

/* One document, waited for: nothing else happens yet. */
struct reading {
    bool done;
    int r;
    weft_buf text;
};

static void on_document(void *ctx, int r, const weft_page *page) {
    struct reading *reading = ctx;
    reading->done = true;
    reading->r = r < 0 ? r : 0;
    if (r == 0 && page->count)
        reading->r = weft__buf_put(&reading->text, NULL, page->events[0].data.data, page->events[0].data.len);
    if (r == 0 && page->count && reading->r >= 0)
        reading->r = 1;
}

static void await_store(weft_store *store, const bool *done) {
    while (!*done) {
        struct pollfd ready = {.fd = weft__store_fd(store), .events = POLLIN};
        poll(&ready, 1, -1);
        weft__store_dispatch(store);
    }
}

/* 1 with a doc, 0 there is none, <0. */
static int read_document(weft_store *store, const char *key, weft_doc **ret) {
    struct reading reading = {0};
    weft_query query = {.stream = key, .documents = true, .oldest = true};
    int r = weft__store_read(store, &query, on_document, &reading);
    if (r >= 0)
        await_store(store, &reading.done);
    r = r < 0 ? r : reading.r;
    if (r > 0)
        r = weft_doc_parse(weft__buf_head(&reading.text), weft__buf_len(&reading.text), NULL, ret);
    weft__buf_done(&reading.text, NULL);
    return r < 0 ? r : reading.r;
}

struct writing {
    bool done;
    int r;
};

static void on_written(void *ctx, int r, const weft_event *events, size_t count, bool repeat) {
    struct writing *writing = ctx;
    (void) events, (void) count, (void) repeat;
    *writing = (struct writing){true, r};
}

static int write_names(const weft_relay *relay, weft_buf *out) {
    weft_val names[WEFT_RELAY_HUBS];
    for (size_t i = 0; i < relay->count; i++)
        names[i] = weft_str(relay->hubs[i].name);
    weft_val value = WEFT_OBJ({"hubs", weft_arr(names, relay->count)});
    return weft__write_val(out, NULL, &value);
}

static int claim_empty(const weft_relay *relay, weft_store *store) {
    struct writing writing = {0};
    weft_buf text = {0};
    int r = write_names(relay, &text);
    weft_document document = {.key = RELAY_DOCUMENT, .data = {weft__buf_head(&text), weft__buf_len(&text)}};
    if (r >= 0)
        r = weft__store_append(store, &(weft_append){.documents = &document, .document_count = 1}, on_written, &writing);
    if (r >= 0)
        await_store(store, &writing.done);
    weft__buf_done(&text, NULL);
    return r < 0 ? r : writing.r;
}

int weft__relay_is_copy(weft_store *store) {
    WEFT_AUTO(weft_doc) doc = NULL;
    return read_document(store, RELAY_DOCUMENT, &doc);
}

static bool is_of_these(const weft_relay *relay, const weft_json *data) {
    weft_json names = weft_get(data, "hubs");
    if (weft_count(&names) != relay->count)
        return false;
    for (size_t i = 0; i < relay->count; i++) {
        bool found = false;
        for (weft_iter it = weft_iterate(&names); weft_next(&it);)
            found |= strcmp(weft_str_of(&it.value, ""), relay->hubs[i].name) == 0;
        if (!found)
            return false;
    }
    return true;
}

static int read_positions(weft_relay *relay, weft_store *store) {
    int r = 0;
    for (size_t i = 0; i < relay->count && r >= 0; i++) {
        char key[sizeof RELAY_HUB_DOCUMENT + WEFT_RELAY_NAME];
        WEFT_AUTO(weft_doc) doc = NULL;
        snprintf(key, sizeof key, "%s%s", RELAY_HUB_DOCUMENT, relay->hubs[i].name);
        r = read_document(store, key, &doc);
        if (r > 0)
            weft__relay_read_position(&relay->hubs[i], weft_doc_root(doc));
    }
    return r < 0 ? r : 0;
}

weft_exit weft__relay_claim(weft_relay *relay, weft_store *store) {
    WEFT_AUTO(weft_doc) doc = NULL;
    int r = read_document(store, RELAY_DOCUMENT, &doc);
    if (r == 0 && weft__store_head(store))
        return weft__fail(relay->opts.app, WEFT_USAGE, "Start the relay in a folder of its own.",
                          "the journal of this folder is a hub's own, not a relay's copy");
    if (r > 0 && !is_of_these(relay, weft_doc_root(doc)))
        return WEFT_BUSY;
    r = r < 0 ? r : r == 0 ? claim_empty(relay, store) : read_positions(relay, store);
    return r < 0 ? weft__fail(relay->opts.app, WEFT_FAILED, NULL, "the relay's journal: %s", weft_strerror(r)) : WEFT_DONE;
}

/* ---- what others ask ---- */

int weft__relay_about(const weft_relay *relay, char **ret, size_t *ret_len) {
    weft_member members[WEFT_RELAY_HUBS][7];
    weft_val hubs[WEFT_RELAY_HUBS];
    for (size_t i = 0; i < relay->count; i++) {
        const relay_hub *hub = &relay->hubs[i];
        uint64_t behind = hub->head > hub->stored ? hub->head - hub->stored : 0;
        const weft_member of[] = {{"name", weft_str(hub->name)},
                                  {"url", weft_strn(hub->url, strcspn(hub->url, "?"))},
                                  {"state", weft_str(hub->following ? "following" : "away")},
                                  {"since", weft_str(hub->since)},
                                  {"behind", weft_uint(hub->count || hub->append ? behind : 0)},
                                  {"at", weft_uint(hub->after)},
                                  {"trouble", weft__text_or_none(hub->trouble)}};
        memcpy(members[i], of, sizeof of);
        hubs[i] = weft_obj(members[i], sizeof of / sizeof of[0]);
    }
    return weft_to_text(WEFT_OBJ({"hubs", weft_arr(hubs, relay->count)}), NULL, ret, ret_len);
}

struct hello {
    const char *epoch;
};
static const weft_param hello_params[] = {
    WEFT_MUST(struct hello, epoch, str, "the journal of the relay that asks"),
    WEFT_END(struct hello),
};

/* Until a relay knows what its own hubs are copies of, it may be that one of them follows the caller. */
static bool knows_its_hubs(const weft_relay *relay) {
    for (size_t i = 0; i < relay->count; i++)
        if (!relay->hubs[i].chain_count)
            return false;
    return true;
}

static bool follows(const weft_relay *relay, const char *epoch) {
    for (size_t i = 0; relay && i < relay->count; i++)
        if (weft__relay_in_chain(&relay->hubs[i], epoch))
            return true;
    return false;
}

static int answer_hello(weft_req *req, const weft_json *params, void *ctx) {
    const weft_relay_hello *self = ctx;
    const weft_relay *relay = self->relay;
    const struct hello *in = weft_req_params(req);
    const char *epoch = weft__store_epoch(weft__engine_store(self->engine));
    weft_val chain[RELAY_CHAIN];
    size_t n = 0;
    (void) params;
    if (strcmp(in->epoch, epoch) == 0 || follows(relay, in->epoch))
        return weft__reply_error(req, 409, "relayLoop", "a relay cannot follow itself, not by way of others either");
    if (relay && !knows_its_hubs(relay))
        return weft__reply_error(req, 503, "relayNotReady",
                                 "it is a relay that has not reached its own hubs yet, or two relays follow each other");
    chain[n++] = weft_str(epoch);
    for (size_t i = 0; relay && i < relay->count; i++)
        for (size_t j = 0; j < relay->hubs[i].chain_count && n < RELAY_CHAIN; j++)
            chain[n++] = weft_str(relay->hubs[i].chain[j]);
    if (n == RELAY_CHAIN)
        return weft__reply_error(req, 409, "relayLoop", "too many relays follow one another");
    return weft_reply(
        req, WEFT_OBJ({"epoch", weft_str(epoch)}, {"version", weft_str(weft_version())}, {"chain", weft_arr(chain, n)}));
}

static const weft_error_row hello_errors[] = {
    {409, "It follows the caller, or is the caller", "relayLoop"},
    {503, "It is a relay that does not know yet whom it follows", "relayNotReady"},
    {0},
};

const weft_method weft__relay_hello_row = {
    .name = "relay.hello",
    .handler = answer_hello,
    .params = hello_params,
    .help = "from a relay: may it follow this hub? Its events come by event.subscribe then",
    .scope = WEFT_READ,
    .result =
        "{\"type\":\"object\",\"properties\":{\"epoch\":{\"type\":\"string\"},\"version\":{\"type\":\"string\"},"
        "\"chain\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},\"required\":[\"epoch\",\"version\",\"chain\"]}",
    .errors = hello_errors,
};

/* ---- life ---- */

const weft_gate *weft__relay_gate(weft_relay *relay) {
    return &relay->gate;
}

weft_exit weft__relay_new(const weft_relay_opts *opts, weft_relay **ret) {
    weft_relay *relay = weft__zalloc(NULL, sizeof *relay);
    if (!relay)
        return weft__fail(opts->app, WEFT_FAILED, NULL, "out of memory");
    relay->opts = *opts;
    relay->gate = (weft_gate){.name = "relay", .before = weft__relay_before, .ctx = relay};
    weft_exit status = read_hubs(relay);
    if (status)
        weft__relay_free(relay);
    else
        *ret = relay;
    return status;
}

int weft__relay_start(weft_relay *relay, weft_engine *engine) {
    int r = 0;
    relay->engine = engine;
    for (size_t i = 0; i < relay->count && r != -ENOMEM; i++)
        r = weft__relay_dial(&relay->hubs[i]);
    return r == -ENOMEM ? r : 0;
}

void weft__relay_stop(weft_relay *relay) {
    for (size_t i = 0; relay && i < relay->count; i++)
        weft__relay_hub_done(&relay->hubs[i]);
}

weft_relay *weft__relay_free(weft_relay *relay) {
    weft__relay_stop(relay);
    for (size_t i = 0; relay && i < relay->count; i++) {
        weft__free(NULL, relay->hubs[i].url);
        weft__free(NULL, relay->hubs[i].token_file);
        weft__free(NULL, relay->hubs[i].cacert);
    }
    return weft__free(NULL, relay);
}
