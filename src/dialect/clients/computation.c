/* One computation for all who follow the same stream: the same name with the same params, in canonical form. It is made with
 * the first subscription and goes with the last.
 *
 * A log: each event that touches the stream is shown once, and sent to those that are live. Who is behind is told from the
 * store (subscription.c).
 *
 * A state: events only mark it. Before the loop waits again it is computed, once, and sent to everybody if it is another
 * text than before. Its position is that of the last event that touched it. Who has no room gets the latest value when there
 * is some; what it missed in between is counted and told.
 *
 * Where there is no newer value, because it is too long or cannot be read, those that have the last one are told that it is
 * old.
 *
 *     waiting ──value──▶ live, told the value unless the client has it ──full──▶ owes the latest ──drained──▶ told */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hub_clients_private.h"
#include "tinyvex.h"

/* Streams that are followed at a time, over all connections: each event asks all of them. */
#define MOST_COMPUTATIONS 65536
/* Of one value, as of one answer; and of all that are kept to compare the next with. */
#define VALUE_BYTES ((size_t) 25 << 20)
#define ALL_VALUES_BYTES ((size_t) 256 << 20)
/* A long value is computed less often: for each piece that it is sent in so much time passes, but not more than a second. */
#define PIECE_MS 10
#define MOST_PACE_MS 1000
/* When it cannot be computed, and when too much is being read at the moment. */
#define AGAIN_MS 1000
#define BUSY_MS 50
/* Who waits for a value is told after this long that there is none; who is live, that the value is old. */
#define COMPUTE_MS 10000

struct weft_computing {
    weft_computation *computation; /* NULL: it is gone */
    const weft_alloc *alloc;
    uint64_t touched; /* by the last event that the value will show */
    weft_buf out;
};

struct weft_computation {
    weft_node node;
    weft_link link; /* in clients->computations */
    weft_hub_clients *clients;
    const weft_stream_kind *kind;
    weft_doc *params;
    weft_event_source *source;
    weft_link live, waiting;
    size_t members; /* subscriptions, and those who walk over them */
    uint64_t touched;
    /* Of a state: */
    weft_value *value;
    weft_computing *computing;
    bool dirty;
    int tries;  /* in which there was no memory, or too much was being read */
    int failed; /* why there is no newer value than the one that was told; 0: it is as it should be */
    weft_later soon;
    weft_timer timer;
    int64_t not_before;
    char key[];
};

static weft_loop *loop_of(const weft_computation *computation) {
    return weft__engine_loop(computation->clients->hub->engine);
}

const weft_stream_kind *weft__computation_kind(const weft_computation *computation) {
    return computation->kind;
}

const weft_json *weft__computation_params(const weft_computation *computation) {
    return weft_doc_root(computation->params);
}

weft_link *weft__computation_live(weft_computation *computation) {
    return &computation->live;
}

static void set_value(weft_computation *computation, weft_value *value) {
    weft_hub_clients *clients = computation->clients;
    clients->value_bytes -= computation->value ? computation->value->len : 0;
    weft__value_unref(clients->alloc, computation->value);
    computation->value = value;
    clients->value_bytes += value ? value->len : 0;
}

static void free_computation(weft_computation *computation) {
    weft_hub_clients *clients = computation->clients;
    if (computation->computing)
        computation->computing->computation = NULL;
    weft__map_remove(&clients->by_stream, &computation->node);
    weft__list_remove(&computation->link);
    weft__later_cancel(&computation->soon);
    weft__timer_stop(loop_of(computation), &computation->timer);
    set_value(computation, NULL);
    weft_doc_free(computation->params);
    weft__free(clients->alloc, computation->source);
    weft__free(clients->alloc, computation);
}

static void drop_member(weft_computation *computation) {
    if (--computation->members == 0)
        free_computation(computation);
}

/* ---- telling a state ---- */

static bool owes(const weft_subscription *subscription) {
    const weft_value *value = subscription->computation->value;
    return value && (subscription->owes_first || value->seq > subscription->known);
}

static int send_state(weft_subscription *subscription, weft_value *value, weft_value_forms *forms) {
    int r = weft__value_tell_skipped(subscription);
    if (r < 0)
        return r;
    subscription->known = value->seq;
    subscription->owes_first = false;
    if (!weft__value_is_long(subscription, value->len))
        return weft__value_send(subscription, value->seq, (weft_bytes){value->text, value->len}, value->digest, forms);
    value->refs++;
    return weft__transfer_begin(subscription, value);
}

static void tell_state(weft_subscription *subscription, weft_value_forms *forms) {
    weft_hub_client *client = subscription->client;
    weft_value *value = subscription->computation->value;
    if (client->lost || client->failing || !owes(subscription) || !weft__value_fits(subscription, value->len))
        return;
    if (send_state(subscription, value, forms) < 0)
        client->failing = client->clients->failing = true;
}

/* A newer value takes the place of one that is being sent in pieces. But not twice in a row: who reads slowly would never
 * have a whole one. */
static void supersede(weft_subscription *subscription) {
    if (!subscription->sending)
        return;
    subscription->skipped++;
    if (!subscription->superseded)
        weft__transfer_end(subscription);
}

/* Another value comes before this one was told. */
static void count_skipped(weft_computation *computation) {
    for (weft_link *at = computation->live.next; at != &computation->live; at = at->next) {
        weft_subscription *subscription = WEFT_CONTAINER(at, weft_subscription, live);
        subscription->skipped += owes(subscription);
    }
}

static void tell_everybody(weft_computation *computation) {
    weft_value_forms forms = {.count = 0};
    for (weft_link *at = computation->live.next; at != &computation->live; at = at->next) {
        weft_subscription *subscription = WEFT_CONTAINER(at, weft_subscription, live);
        supersede(subscription);
        tell_state(subscription, &forms);
    }
    weft__value_forms_done(&forms);
}

void weft__computation_catch_up(weft_subscription *subscription) {
    if (subscription->state == WEFT_SUBSCRIPTION_LIVE)
        tell_state(subscription, NULL);
    if (subscription->client->failing)
        weft__hub_client_lose(subscription->client);
}

const char *weft__subscription_digest(const weft_subscription *subscription) {
    const weft_computation *computation = subscription->computation;
    bool has = computation && computation->value && subscription->state == WEFT_SUBSCRIPTION_LIVE && !owes(subscription);
    return has ? computation->value->digest : NULL;
}

/* ---- there is no newer value ---- */

static const char *code_of_failure(int r) {
    if (r == -EMSGSIZE)
        return TVX_REJECTED;
    return r == -EBUSY ? TVX_TIMEOUT : TVX_RESUME_FAILED;
}

/* It stays as it is until the next value comes: said once, also where there is no room for a value. */
static void tell_failed(weft_subscription *subscription) {
    char message[96];
    weft_hub_client *client = subscription->client;
    int failed = subscription->computation->failed;
    if (!failed || client->lost || client->failing)
        return;
    if (failed == -EMSGSIZE)
        snprintf(message, sizeof message, "The value is too long; the last one is old");
    else
        snprintf(message, sizeof message, "The value cannot be computed: %s; the last one is old", weft_strerror(failed));
    if (weft__value_tell_error(subscription, code_of_failure(failed), message, weft_none()) < 0)
        client->failing = client->clients->failing = true;
}

static void note_failure(weft_computation *computation, int r) {
    if (computation->failed == r)
        return;
    computation->failed = r;
    for (weft_link *at = computation->live.next; at != &computation->live; at = at->next)
        tell_failed(WEFT_CONTAINER(at, weft_subscription, live));
    weft__hub_clients_lose_failing(computation->clients);
}

/* ---- those that wait for a value ---- */

/* A digest does not say so where another value was told since: by the subscription that this one replaces. */
static bool has_value(const weft_subscription *subscription, const weft_value *value) {
    bool resumed = subscription->has_position && !subscription->gap;
    const char *digest = subscription->replaces ? NULL : subscription->has_digest;
    return resumed && (value->seq <= subscription->at || (digest && strcmp(digest, value->digest) == 0));
}

static void serve_waiting(weft_subscription *subscription) {
    weft_computation *computation = subscription->computation;
    const weft_value *value = computation->value;
    bool same = has_value(subscription, value);
    uint64_t start = subscription->has_position && !subscription->gap ? subscription->at : value->seq - (value->seq > 0);
    weft__list_remove(&subscription->live);
    weft__list_push(&computation->live, &subscription->live);
    subscription->state = WEFT_SUBSCRIPTION_LIVE;
    subscription->known = same ? value->seq : 0;
    subscription->owes_first = !same;
    subscription->has_digest = weft__free(computation->clients->alloc, subscription->has_digest);
    weft__subscription_finish(subscription, subscription->gap, start);
    if (subscription->state != WEFT_SUBSCRIPTION_LIVE)
        return;
    tell_state(subscription, NULL);
    tell_failed(subscription);
}

static void serve_all_waiting(weft_computation *computation) {
    while (computation->value && !weft__list_empty(&computation->waiting))
        serve_waiting(WEFT_CONTAINER(computation->waiting.next, weft_subscription, live));
    weft__hub_clients_lose_failing(computation->clients);
}

static void fail_all_waiting(weft_computation *computation, int r) {
    while (!weft__list_empty(&computation->waiting)) {
        weft_subscription *first = WEFT_CONTAINER(computation->waiting.next, weft_subscription, live);
        weft__list_remove(&first->live);
        weft__subscription_fail(first, r);
    }
}

/* ---- computing ---- */

static void schedule(weft_computation *computation) {
    int64_t now = weft_loop_now(loop_of(computation));
    if (computation->computing)
        return;
    if (now < computation->not_before)
        weft__timer_set(loop_of(computation), &computation->timer, computation->not_before);
    else
        weft__later(loop_of(computation), &computation->soon);
}

static void compute_again(weft_computation *computation, int64_t after_ms) {
    computation->dirty = true;
    computation->not_before = weft_loop_now(loop_of(computation)) + after_ms;
    schedule(computation);
}

static int64_t pace_of(size_t len) {
    size_t ms = len / TINYVEX_CHUNK * PIECE_MS;
    return ms < MOST_PACE_MS ? (int64_t) ms : MOST_PACE_MS;
}

static int take_value(weft_computation *computation, const weft_computing *computing) {
    weft_bytes text = {weft__buf_head(&computing->out), weft__buf_len(&computing->out)};
    const weft_value *old = computation->value;
    weft_value *value;
    computation->not_before = weft_loop_now(loop_of(computation)) + pace_of(text.len);
    if (old && old->len == text.len && memcmp(old->text, text.data, text.len) == 0)
        return 0;
    if (text.len > VALUE_BYTES || computation->clients->value_bytes + text.len > ALL_VALUES_BYTES)
        return -EMSGSIZE;
    int r = weft__value_new(computation->clients->alloc, computing->touched, text, true, &value);
    if (r < 0)
        return r;
    count_skipped(computation);
    set_value(computation, value);
    tell_everybody(computation);
    return 0;
}

static void finish_computing(weft_computation *computation, const weft_computing *computing, int r) {
    if (r >= 0)
        r = take_value(computation, computing);
    if (r >= 0)
        computation->failed = 0;
    serve_all_waiting(computation);
    bool soon = (r == -EBUSY || r == -ENOMEM) && ++computation->tries < COMPUTE_MS / BUSY_MS;
    if (!soon)
        computation->tries = 0;
    if (soon)
        compute_again(computation, BUSY_MS);
    else if (r < 0) {
        fail_all_waiting(computation, r);
        note_failure(computation, r);
        compute_again(computation, AGAIN_MS);
    } else if (computation->dirty)
        schedule(computation);
}

weft_buf *weft__computing_out(weft_computing *computing) {
    return &computing->out;
}

void weft__computing_done(weft_computing *computing, int r) {
    weft_computation *computation = computing->computation;
    if (computation) {
        computation->members++;
        computation->computing = NULL;
        weft__timer_stop(loop_of(computation), &computation->timer);
        finish_computing(computation, computing, r);
        drop_member(computation);
    }
    weft__buf_done(&computing->out, computing->alloc);
    weft__free(computing->alloc, computing);
}

static void start_computing(weft_computation *computation) {
    const weft_alloc *alloc = computation->clients->alloc;
    weft_computing *computing = weft__zalloc(alloc, sizeof *computing);
    if (!computing) {
        compute_again(computation, BUSY_MS);
        return;
    }
    *computing = (weft_computing){.computation = computation, .alloc = alloc, .touched = computation->touched};
    computation->computing = computing;
    computation->dirty = false;
    weft__timer_set(loop_of(computation), &computation->timer, weft_loop_now(loop_of(computation)) + COMPUTE_MS);
    computation->kind->compute(computation->clients->hub, weft_doc_root(computation->params), computing);
}

static void compute_soon(weft_later *later) {
    weft_computation *computation = WEFT_CONTAINER(later, weft_computation, soon);
    computation->members++;
    serve_all_waiting(computation);
    if (computation->dirty && !computation->computing)
        start_computing(computation);
    drop_member(computation);
}

static void tell_late(weft_computation *computation) {
    for (weft_link *at = computation->live.next; at != &computation->live; at = at->next) {
        weft_subscription *subscription = WEFT_CONTAINER(at, weft_subscription, live);
        if (!weft_peer_full(subscription->client->peer))
            weft__value_tell_error(subscription, TVX_TIMEOUT, "The value takes long to compute; the last one is old",
                                   weft_none());
    }
}

static void on_computation_timer(weft_timer *timer) {
    weft_computation *computation = WEFT_CONTAINER(timer, weft_computation, timer);
    if (!computation->computing) {
        compute_soon(&computation->soon);
        return;
    }
    computation->members++;
    fail_all_waiting(computation, -ETIMEDOUT);
    tell_late(computation);
    drop_member(computation);
}

/* ---- telling a log ---- */

static int send_log(weft_subscription *subscription, const weft_event *event, weft_bytes text, weft_value_forms *forms) {
    weft_value *value;
    if (!weft__value_fits(subscription, text.len)) {
        weft__subscription_pause_at(subscription, event->gseq - 1);
        return 0;
    }
    if (!weft__value_is_long(subscription, text.len)) {
        int r = weft__value_send(subscription, event->gseq, text, NULL, forms);
        return r < 0 ? r : 1;
    }
    int r = weft__value_new(subscription->client->clients->alloc, event->gseq, text, false, &value);
    if (r >= 0)
        r = weft__transfer_begin(subscription, value);
    if (r == 0)
        weft__subscription_pause_at(subscription, event->gseq - 1);
    return r;
}

int weft__computation_say(weft_subscription *subscription, const weft_event *event, const weft_json *data) {
    const weft_computation *computation = subscription->computation;
    const weft_hub_clients *clients = computation->clients;
    weft_buf text = {0};
    int r = computation->kind->show(clients->hub, weft_doc_root(computation->params), event, data, &text);
    if (r > 0)
        r = send_log(subscription, event, (weft_bytes){weft__buf_head(&text), weft__buf_len(&text)}, NULL);
    else if (r == 0)
        r = 1;
    weft__buf_done(&text, clients->alloc);
    return r;
}

static void tell_member(weft_subscription *subscription, const weft_event *event, int r, weft_bytes text,
                        weft_value_forms *forms) {
    weft_hub_client *client = subscription->client;
    if (client->lost || client->failing || event->gseq <= subscription->at)
        return;
    if (r > 0)
        r = send_log(subscription, event, text, forms);
    if (r < 0)
        client->failing = client->clients->failing = true;
}

static void tell_log(weft_computation *computation, const weft_event *event, const weft_json *data) {
    const weft_hub_clients *clients = computation->clients;
    weft_value_forms forms = {.count = 0};
    weft_buf text = {0};
    int r = computation->kind->show(clients->hub, weft_doc_root(computation->params), event, data, &text);
    for (weft_link *at = computation->live.next; r != 0 && at != &computation->live;) {
        weft_subscription *subscription = WEFT_CONTAINER(at, weft_subscription, live);
        at = at->next;
        tell_member(subscription, event, r, (weft_bytes){weft__buf_head(&text), weft__buf_len(&text)}, &forms);
    }
    weft__value_forms_done(&forms);
    weft__buf_done(&text, clients->alloc);
}

/* ---- events ---- */

/* Without memory to know whether a log is touched, those who follow it may have missed something. A state is computed. */
static void tell_unknown(weft_computation *computation) {
    for (weft_link *at = computation->live.next; at != &computation->live; at = at->next) {
        weft_hub_client *client = WEFT_CONTAINER(at, weft_subscription, live)->client;
        client->failing = client->clients->failing = true;
    }
}

void weft__computations_event(weft_hub_clients *clients, const weft_event *event, const weft_json *data) {
    for (weft_link *at = clients->computations.next; at != &clients->computations; at = at->next) {
        weft_computation *computation = WEFT_CONTAINER(at, weft_computation, link);
        bool is_state = computation->kind->class == WEFT_CLASS_STATE;
        if (!is_state && weft__list_empty(&computation->live))
            continue;
        if (!weft__source_may_want(computation->source, event))
            continue;
        int r = weft__source_wants(computation->source, clients->hub->engine, event, data);
        if (r == 0)
            continue;
        computation->touched = event->gseq;
        if (is_state) {
            computation->dirty = true;
            schedule(computation);
        } else if (r > 0)
            tell_log(computation, event, data);
        else
            tell_unknown(computation);
    }
}

bool weft__computations_idle(const weft_hub_clients *clients) {
    for (const weft_link *at = clients->computations.next; at != &clients->computations; at = at->next) {
        const weft_computation *computation = WEFT_CONTAINER(at, weft_computation, link);
        if (computation->dirty || computation->computing)
            return false;
    }
    return true;
}

/* ---- coming and going ---- */

static int fill_computation(weft_computation *made, const char *params) {
    const weft_alloc *alloc = made->clients->alloc;
    int r = weft_doc_parse(params, strlen(params), alloc, &made->params);
    if (r < 0)
        return r;
    made->source = made->kind->source(weft_doc_root(made->params), alloc);
    return made->source ? 0 : -ENOMEM;
}

static int make_computation(weft_hub_clients *clients, const weft_stream_kind *kind, const char *key, const char *params,
                            weft_computation **ret) {
    size_t size = strlen(key) + 1;
    if (clients->by_stream.count >= MOST_COMPUTATIONS)
        return -ENOBUFS;
    weft_computation *made = weft__zalloc(clients->alloc, sizeof *made + size);
    if (!made)
        return -ENOMEM;
    made->clients = clients;
    made->kind = kind;
    made->touched = clients->told;
    made->dirty = kind->class == WEFT_CLASS_STATE;
    memcpy(made->key, key, size);
    weft__list_init(&made->link);
    weft__list_init(&made->live);
    weft__list_init(&made->waiting);
    weft__later_init(&made->soon, compute_soon);
    weft__timer_init(&made->timer, on_computation_timer);
    int r = fill_computation(made, params);
    if (r < 0) {
        free_computation(made);
        return r;
    }
    weft__map_put(&clients->by_stream, &made->node, made->key);
    weft__list_push(&clients->computations, &made->link);
    *ret = made;
    return 0;
}

/* "name params" */
static char *make_key(const weft_alloc *alloc, const char *name, const char *params) {
    size_t name_len = strlen(name), size = strlen(params) + 1;
    char *key = weft__alloc(alloc, name_len + 1 + size);
    if (key) {
        memcpy(key, name, name_len);
        key[name_len] = ' ';
        memcpy(key + name_len + 1, params, size);
    }
    return key;
}

int weft__computation_join(weft_subscription *subscription, const weft_stream_kind *kind, const char *params) {
    weft_hub_clients *clients = subscription->client->clients;
    weft_computation *computation = NULL;
    char *key = make_key(clients->alloc, kind->name, params);
    if (!key)
        return -ENOMEM;
    const weft_node *node = weft__map_find(&clients->by_stream, key);
    int r = 0;
    if (node)
        computation = WEFT_CONTAINER(node, weft_computation, node);
    else
        r = make_computation(clients, kind, key, params, &computation);
    weft__free(clients->alloc, key);
    if (r < 0)
        return r;
    computation->members++;
    subscription->computation = computation;
    subscription->source = computation->source;
    subscription->class = kind->class;
    return 0;
}

void weft__computation_leave(weft_subscription *subscription) {
    weft_computation *computation = subscription->computation;
    if (!computation)
        return;
    weft__list_remove(&subscription->live);
    subscription->computation = NULL;
    subscription->source = NULL;
    drop_member(computation);
}

static int judge_position(const weft_hub_clients *clients, const weft_subscription_spec *spec) {
    const weft_store *store = weft__engine_store(clients->hub->engine);
    if (spec->live)
        return 0;
    if (spec->epoch && strcmp(spec->epoch, weft__store_epoch(store)) != 0)
        return WEFT_GAP_EPOCH;
    return spec->after > weft__store_head(store) ? WEFT_GAP_FUTURE : 0;
}

int weft__computation_await(weft_subscription *subscription, const weft_subscription_spec *spec) {
    weft_computation *computation = subscription->computation;
    const weft_alloc *alloc = computation->clients->alloc;
    subscription->gap = judge_position(computation->clients, spec);
    subscription->has_position = !spec->live;
    subscription->at = spec->after;
    if (spec->digest && !(subscription->has_digest = weft__strndup(alloc, spec->digest, strlen(spec->digest))))
        return -ENOMEM;
    weft__list_push(&computation->waiting, &subscription->live);
    weft__later(loop_of(computation), &computation->soon);
    return 0;
}
