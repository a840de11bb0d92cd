/* One subscription: live with all the others as long as its connection takes everything, otherwise from the store.
 *
 *     off ──start──▶ replaying ──caught up──▶ live ──full──▶ paused ──drained──▶ replaying
 *                              ──full──▶ paused                           any ──stop──▶ off
 *
 * Where replay and live meet there is neither gap nor double: the store's follow ends its replay at the last event that
 * anybody has been told of, subscription->at is the last position said, and those that are live skip what is not after it.
 *
 * The two classes differ in the replay only. A log says every event. A state remembers the last one it wants and says it
 * when the replay has caught up; where the connection is full by then, the next replay begins right before that event. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hub_clients_private.h"
#include "link.h"

/* A page is at most this far over what fits; it is read again from where the connection was full. */
#define PAGE_BYTES (128 * 1024)

static weft_engine *engine_of(const weft_subscription *subscription) {
    return subscription->client->clients->hub->engine;
}

static weft_store *store_of(const weft_subscription *subscription) {
    return weft__engine_store(engine_of(subscription));
}

static bool follows_stream(const weft_subscription *subscription) {
    return subscription->source && subscription->source->stream;
}

static uint64_t position_of(const weft_subscription *subscription, const weft_event *event) {
    return follows_stream(subscription) ? event->seq : event->gseq;
}

/* ---- what is said ---- */

bool weft__subscription_hears(const weft_subscription *subscription, const char *session, uint64_t gseq) {
    if (subscription->source)
        return session && strcmp(subscription->source->session, session) == 0;
    return !session || weft__hub_client_hears(subscription->client, session, gseq);
}

int weft__subscription_wants(const weft_subscription *subscription, const weft_event *event, const weft_json *data) {
    const weft_event_source *source = subscription->source;
    int r = source ? weft__source_wants(source, engine_of(subscription), event, data) : 1;
    if (r <= 0 || position_of(subscription, event) <= subscription->at)
        return r < 0 ? r : 0;
    return !subscription->rendering || weft__rendering_render(subscription->rendering, event, data);
}

int weft__subscription_mark(weft_subscription *subscription, uint64_t gseq) {
    char line[WEFT_EPOCH + 40];
    if (!subscription->marks)
        return 0;
    int n = snprintf(line, sizeof line, "id: %s:%" PRIu64 "\n", weft__store_epoch(store_of(subscription)), gseq);
    int r = weft__peer_put(subscription->client->peer, line, (size_t) n);
    return r == -EPIPE ? 0 : r;
}

static int send_shared(weft_subscription *subscription, weft_shared *shared, uint64_t gseq) {
    int r = weft__subscription_mark(subscription, gseq);
    return r < 0 ? r : weft__forgive(weft_shared_send(shared, subscription->client->peer));
}

int weft__subscription_send(weft_subscription *subscription, const weft_event *event) {
    weft_shared *shared;
    if (subscription->rendering)
        return weft__rendering_send(subscription->rendering, subscription);
    int r = weft__event_form(subscription->client->clients, event, subscription->id, &shared);
    if (r < 0)
        return r;
    return shared ? send_shared(subscription, shared, event->gseq) : weft__event_tell(subscription, event);
}

/* ---- from the store ---- */

static bool shows_data(const weft_subscription *subscription) {
    return subscription->computation && !weft__computation_kind(subscription->computation)->raw;
}

/* 1: it wants this one; the doc is owned, NULL where nobody needs it. */
static int read_stored(const weft_subscription *subscription, const weft_event *event, weft_doc **ret) {
    const weft_event_source *source = subscription->source;
    bool reads = subscription->rendering || shows_data(subscription) || weft__source_reads(source);
    *ret = NULL;
    if (source && !weft__source_may_want(source, event))
        return 0;
    int r = reads ? weft_doc_parse(event->data.data, event->data.len, subscription->client->clients->alloc, ret) : 0;
    if (r < 0)
        return r;
    return source ? weft__source_wants(source, engine_of(subscription), event, *ret ? weft_doc_root(*ret) : NULL) : 1;
}

/* A dialect's words begin with what is kept; what a session said before that is missing, and must not look as if it had not
 * been said. Without memory nobody knows. */
static void await_event(weft_subscription *subscription, const weft_event *event) {
    static const char prefix[] = WEFT_STREAM_SESSION;
    bool words = subscription->rendering && !subscription->source;
    if (!words || subscription->awaited || strncmp(event->stream, prefix, sizeof prefix - 1) != 0)
        return;
    subscription->awaited = weft__strndup(subscription->client->clients->alloc, event->stream, strlen(event->stream));
    subscription->awaited_seq = event->seq;
}

static void await_nothing(weft_subscription *subscription) {
    subscription->awaited = weft__free(subscription->client->clients->alloc, subscription->awaited);
}

/* The same session and task as in the event that follows. */
static int say_missed(weft_subscription *subscription, const weft_event *event, const weft_json *data) {
    weft_event missed = *event;
    if (!subscription->awaited || strcmp(subscription->awaited, event->stream) != 0)
        return 0;
    await_nothing(subscription);
    missed.type = WEFT_MISSED;
    return event->seq > subscription->awaited_seq ? weft__rendering_alone(subscription, &missed, data) : 0;
}

/* 1 said, or not for it; 0 it is being said in pieces, and the subscription has paused. */
static int say_stored(weft_subscription *subscription, const weft_event *event) {
    weft_doc *doc;
    int r = read_stored(subscription, event, &doc);
    bool wanted = r > 0;
    if (wanted && subscription->awaited) {
        r = say_missed(subscription, event, doc ? weft_doc_root(doc) : NULL);
        wanted = r >= 0;
    }
    if (wanted && subscription->computation)
        r = weft__computation_say(subscription, event, doc ? weft_doc_root(doc) : NULL);
    else if (wanted)
        r = subscription->rendering ? weft__rendering_alone(subscription, event, weft_doc_root(doc))
                                    : weft__event_tell(subscription, event);
    weft_doc_free(doc);
    return r < 0 || (wanted && subscription->computation) ? r : 1;
}

static void forget_latest(weft_subscription *subscription) {
    subscription->latest = weft_shared_free(subscription->latest);
}

/* All up to here has been said. */
void weft__subscription_pause_at(weft_subscription *subscription, uint64_t at) {
    weft__list_remove(&subscription->live);
    subscription->follow = weft__follow_free(subscription->follow);
    subscription->state = WEFT_SUBSCRIPTION_PAUSED;
    subscription->at = at;
    forget_latest(subscription);
}

static int say_page(weft_subscription *subscription, const weft_event *events, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (weft_peer_full(subscription->client->peer)) {
            for (size_t next = i; next < count; next++)
                await_event(subscription, &events[next]);
            weft__subscription_pause_at(subscription, subscription->at);
            return 0;
        }
        int r = say_stored(subscription, &events[i]);
        if (r <= 0)
            return r;
        subscription->at = position_of(subscription, &events[i]);
    }
    return 0;
}

/* Only the last of a page that is wanted is of interest. */
static int keep_latest(weft_subscription *subscription, const weft_event *events, size_t count) {
    int r = 0;
    for (size_t i = count; i-- > 0 && r == 0;) {
        weft_doc *doc;
        r = read_stored(subscription, &events[i], &doc);
        weft_doc_free(doc);
        if (r <= 0)
            continue;
        forget_latest(subscription);
        r = weft__event_share(subscription->client->clients, &events[i], subscription->id, &subscription->latest);
        subscription->latest_at = position_of(subscription, &events[i]);
        subscription->latest_gseq = events[i].gseq;
        r = r < 0 ? r : 1;
    }
    subscription->at = position_of(subscription, &events[count - 1]);
    return r;
}

static void on_stored_events(void *ctx, const weft_event *events, size_t count) {
    weft_subscription *subscription = ctx;
    int r = subscription->class == WEFT_CLASS_STATE ? keep_latest(subscription, events, count)
                                                    : say_page(subscription, events, count);
    if (r < 0)
        weft__hub_client_lose(subscription->client);
}

/* Somebody who waits until it has caught up. */
struct catch_up {
    weft_link link;
    weft_caught_up *done;
    void *ctx;
};

void weft__catch_ups_tell(const weft_alloc *alloc, weft_link *list, int r) {
    while (!weft__list_empty(list)) {
        struct catch_up *first = WEFT_CONTAINER(list->next, struct catch_up, link);
        weft_caught_up *done = first->done;
        void *ctx = first->ctx;
        weft__list_remove(&first->link);
        weft__free(alloc, first);
        done(ctx, r);
    }
}

void weft__catch_ups_move(weft_link *from, weft_link *to) {
    while (!weft__list_empty(from)) {
        weft_link *first = from->next;
        weft__list_remove(first);
        weft__list_push(to, first);
    }
}

/* A client that is lost has not been told everything. An answer that waits for that would say that it was, and so waits
 * until nobody hears it any more. */
static void end_catch_ups(weft_subscription *subscription) {
    if (subscription->client->lost)
        weft__catch_ups_move(&subscription->catch_ups, &subscription->client->left);
    else
        weft__catch_ups_tell(subscription->client->clients->alloc, &subscription->catch_ups, -ECANCELED);
}

static void go_live(weft_subscription *subscription) {
    subscription->follow = weft__follow_free(subscription->follow);
    await_nothing(subscription);
    subscription->state = WEFT_SUBSCRIPTION_LIVE;
    weft_computation *computation = subscription->computation;
    weft_rendering *rendering = subscription->rendering;
    weft_link *live = computation ? weft__computation_live(computation)
                      : rendering ? &rendering->live
                                  : &subscription->client->clients->live;
    weft__list_push(live, &subscription->live);
    if (rendering)
        subscription->client->clients->heard |= (uint32_t) 1 << rendering->index;
    weft__catch_ups_tell(subscription->client->clients->alloc, &subscription->catch_ups, 0);
}

int weft__subscription_catch_up(weft_subscription *subscription, weft_caught_up *done, void *ctx) {
    if (subscription->state == WEFT_SUBSCRIPTION_LIVE) {
        done(ctx, 0);
        return 0;
    }
    struct catch_up *made = weft__zalloc(subscription->client->clients->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->done = done;
    made->ctx = ctx;
    weft__list_push(&subscription->catch_ups, &made->link);
    return 0;
}

static void on_caught_up(void *ctx) {
    weft_subscription *subscription = ctx;
    if (subscription->latest && weft_peer_full(subscription->client->peer)) {
        weft__subscription_pause_at(subscription, subscription->latest_at - 1);
        return;
    }
    int r = subscription->latest ? send_shared(subscription, subscription->latest, subscription->latest_gseq) : 0;
    forget_latest(subscription);
    if (r < 0)
        weft__hub_client_lose(subscription->client);
    else
        go_live(subscription);
}

/* Whoever waits for the store's answer is told once. */
void weft__subscription_finish(weft_subscription *subscription, int r, uint64_t head) {
    weft_subscribed *done = subscription->done;
    subscription->done = NULL;
    if (done)
        done(subscription->done_ctx, r, head);
}

/* Nothing was subscribed, unless whoever waited for it goes on from now. */
void weft__subscription_fail(weft_subscription *subscription, int r) {
    weft_hub_client *client = subscription->client;
    weft__subscription_finish(subscription, r, weft__store_head(store_of(subscription)));
    if (client->lost || subscription->state != WEFT_SUBSCRIPTION_OFF)
        return;
    client->subscription_count--;
    weft__subscription_free(subscription);
}

/* The stream's last position is known: begin there. */
static void start_at_head(weft_subscription *subscription, uint64_t head) {
    subscription->seeks = false;
    subscription->follow = weft__follow_free(subscription->follow);
    subscription->state = WEFT_SUBSCRIPTION_OFF;
    int r = weft__subscription_start(subscription, &(weft_query){.after = head});
    if (r < 0)
        weft__subscription_fail(subscription, r);
}

static void on_start(void *ctx, const weft_page *page) {
    weft_subscription *subscription = ctx;
    if (subscription->seeks)
        start_at_head(subscription, page->head);
    else if (subscription->computation)
        weft__subscription_finish(subscription, subscription->gap, subscription->at);
    else
        weft__subscription_finish(subscription, 0, page->head);
}

/* What is new may be trimmed before it is read, but hardly so often in a row. */
#define MOST_ANEW 100

/* The client's position cannot be gone on from: the stream begins anew, with all that is kept of it or from now on. */
static void begin_anew(weft_subscription *subscription, int gap) {
    bool whole = weft__computation_kind(subscription->computation)->whole;
    uint64_t head = weft__store_head(store_of(subscription));
    bool again = subscription->anew++ < MOST_ANEW;
    subscription->gap = subscription->gap ? subscription->gap : gap;
    int r =
        again ? weft__subscription_start(subscription, &(weft_query){.after = whole ? 0 : head, .oldest = whole}) : -EBUSY;
    if (r < 0)
        weft__subscription_fail(subscription, r);
}

/* Before it began, that is an answer; afterwards something it should have heard is gone. */
static void on_subscription_end(void *ctx, int why) {
    weft_subscription *subscription = ctx;
    subscription->follow = NULL;
    subscription->state = WEFT_SUBSCRIPTION_OFF;
    if (subscription->done && subscription->computation && why > 0)
        begin_anew(subscription, why);
    else if (subscription->done)
        weft__subscription_fail(subscription, why);
    else if (why != -ECANCELED)
        weft__hub_client_lose(subscription->client);
}

static const weft_follower follower = {on_start, on_stored_events, on_caught_up, on_subscription_end};

/* ---- moving ---- */

int weft__subscription_start(weft_subscription *subscription, const weft_query *query) {
    assert(subscription->state == WEFT_SUBSCRIPTION_OFF || subscription->state == WEFT_SUBSCRIPTION_PAUSED);
    char name[WEFT_STREAM_NAME];
    weft_query paged = *query;
    paged.max_bytes = PAGE_BYTES;
    weft__source_query(subscription->source, engine_of(subscription), &paged, name);
    subscription->at = query->after;
    int r = weft__store_follow(store_of(subscription), &paged, &follower, subscription, &subscription->follow);
    if (r >= 0)
        subscription->state = WEFT_SUBSCRIPTION_REPLAYING;
    return r;
}

int weft__subscription_go_live(weft_subscription *subscription, weft_subscribed *done, void *ctx) {
    if (subscription->client->lost)
        return -EPIPE;
    int r = weft__subscription_start(subscription, &(weft_query){.after = weft__store_head(store_of(subscription))});
    if (r < 0)
        return r;
    subscription->done = done;
    subscription->done_ctx = ctx;
    return 0;
}

void weft__subscription_pause(weft_subscription *subscription, const weft_event *event) {
    await_event(subscription, event);
    weft__subscription_pause_at(subscription, position_of(subscription, event) - 1);
}

void weft__subscription_resume(weft_subscription *subscription) {
    if (subscription->state != WEFT_SUBSCRIPTION_PAUSED || subscription->sending)
        return;
    /* Where the stream ends only the store knows. */
    if (!follows_stream(subscription) && subscription->at >= subscription->client->clients->told)
        go_live(subscription);
    else if (weft__subscription_start(subscription, &(weft_query){.after = subscription->at}) < 0)
        weft__hub_client_lose(subscription->client);
}

void weft__subscription_begin(weft_subscription *subscription, uint64_t at) {
    weft__subscription_pause_at(subscription, at);
    weft__subscription_resume(subscription);
}

void weft__subscription_stop(weft_subscription *subscription) {
    weft__list_remove(&subscription->live);
    subscription->follow = weft__follow_free(subscription->follow);
    subscription->state = WEFT_SUBSCRIPTION_OFF;
    forget_latest(subscription);
    weft__transfer_end(subscription);
    weft__calls_end(subscription);
    end_catch_ups(subscription);
    weft__subscription_finish(subscription, -ECANCELED, subscription->client->clients->told);
}

/* ---- life ---- */

int weft__subscription_new(weft_hub_client *client, const char *id, weft_event_source *source, weft_subscription **ret) {
    const weft_alloc *alloc = client->clients->alloc;
    weft_subscription *subscription = weft__zalloc(alloc, sizeof *subscription);
    char *copy = subscription && id ? weft__strndup(alloc, id, strlen(id)) : NULL;
    if (!subscription || (id && !copy)) {
        weft__free(alloc, subscription);
        weft__free(alloc, source);
        return -ENOMEM;
    }
    subscription->client = client;
    subscription->since = client->clients->told;
    subscription->id = copy;
    subscription->source = source;
    weft__list_init(&subscription->link);
    weft__list_init(&subscription->live);
    weft__list_init(&subscription->calls);
    weft__list_init(&subscription->catch_ups);
    *ret = subscription;
    return 0;
}

weft_subscription *weft__subscription_free(weft_subscription *subscription) {
    if (!subscription)
        return NULL;
    const weft_alloc *alloc = subscription->client->clients->alloc;
    weft__list_remove(&subscription->link);
    weft__subscription_stop(subscription);
    weft__computation_leave(subscription);
    weft__free(alloc, subscription->source);
    weft__free(alloc, subscription->awaited);
    weft__free(alloc, subscription->has_digest);
    weft__free(alloc, subscription->id);
    weft__free(alloc, subscription);
    return NULL;
}
