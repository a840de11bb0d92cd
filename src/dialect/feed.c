/* The feed: one ear at the engine, and everybody who is to hear of it.
 *
 * An event that nobody hears is not rendered; one that thousands hear is rendered and encoded once. Sending never ends a
 * connection here and now: who cannot be told something is buried before the loop waits again. So the walk over those who
 * are live is safe. */
#include "feed.h"

#include <errno.h>
#include <string.h>

#include "feed_private.h"

/* Somebody who waits for a task. */
struct await {
    weft_link link;
    weft_on_task *on_event;
    void *ctx;
    char task[];
};

/* ---- waiting for a task ---- */

int weft__feed_await(weft_feed *feed, const char *task, weft_on_task *on_event, void *ctx) {
    size_t size = strlen(task) + 1;
    struct await *await = weft__alloc(feed->alloc, sizeof *await + size);
    if (!await)
        return -ENOMEM;
    await->on_event = on_event;
    await->ctx = ctx;
    memcpy(await->task, task, size);
    weft__list_push(&feed->awaits, &await->link);
    return 0;
}

static void end_await(weft_feed *feed, struct await *await) {
    weft__list_remove(&await->link);
    weft__free(feed->alloc, await);
}

static void tell_awaits(weft_feed *feed, const weft_event *event, const weft_json *data) {
    const char *task = weft__list_empty(&feed->awaits) ? NULL : weft_get_str(data, "taskId", NULL);
    if (!task)
        return;
    for (weft_link *at = feed->awaits.next; at != &feed->awaits;) {
        struct await *await = WEFT_CONTAINER(at, struct await, link);
        bool more = strcmp(await->task, task) != 0 || await->on_event(await->ctx, event, data);
        at = at->next;
        if (!more)
            end_await(feed, await);
    }
}

/* ---- an event ---- */

static int tell_event(weft_feed *feed, weft_guest *guest, const weft_event *event, const weft_json *data) {
    if (!weft__subscription_wants(guest, event, data))
        return 0;
    int r = feed->shared ? 0 : weft__subscription_share(feed, event, &feed->shared);
    if (r >= 0)
        r = weft__subscription_mark(guest, event->gseq);
    if (r >= 0)
        r = weft_shared_send(feed->shared, guest->peer);
    return r == -ENOTSUP || r == -EPIPE ? 0 : r;
}

/* Most events mean nothing to most dialects, and guests may be thousands: NULL before anything else is looked at. */
static weft_telling *words_for(weft_feed *feed, weft_guest *guest, const weft_event *event, const weft_json *data) {
    size_t dialect = weft__guest_dialect(guest);
    weft_telling *telling = dialect == WEFT_DIALECTS ? NULL : &feed->telling[dialect];
    return telling && weft__telling_render(telling, event, data) ? telling : NULL;
}

static void tell_one(weft_feed *feed, weft_hearing *hearing, const weft_event *event, const weft_json *data) {
    weft_guest *guest = hearing->guest;
    weft_telling *words = NULL;
    if (guest->failing || event->gseq <= hearing->at)
        return;
    if (!hearing->raw && !(words = words_for(feed, guest, event, data)))
        return;
    if (weft_peer_full(guest->peer)) {
        weft__hearing_leave(hearing, event->gseq - 1);
        return;
    }
    int r = words ? weft__telling_send(words, guest) : tell_event(feed, guest, event, data);
    if (r < 0)
        guest->failing = feed->failing = true;
}

/* Only after the walk, because losing a guest takes both its hearings out of the list. */
static void lose_failing(weft_feed *feed) {
    if (!feed->failing)
        return;
    feed->failing = false;
    for (weft_link *at = feed->guests.next; at != &feed->guests;) {
        weft_guest *guest = WEFT_CONTAINER(at, weft_guest, link);
        at = at->next;
        if (guest->failing)
            weft__guest_lose(guest);
    }
}

static void tell_all(weft_feed *feed, const weft_event *event, const weft_json *data) {
    for (weft_link *at = feed->live.next; at != &feed->live;) {
        weft_hearing *hearing = WEFT_CONTAINER(at, weft_hearing, link);
        at = at->next;
        tell_one(feed, hearing, event, data);
    }
    lose_failing(feed);
}

static void on_event(weft_ear *ear, const weft_event *event, const weft_json *data) {
    weft_feed *feed = WEFT_CONTAINER(ear, weft_feed, ear);
    feed->told = event->gseq;
    tell_awaits(feed, event, data);
    if (weft__list_empty(&feed->live))
        return;
    tell_all(feed, event, data);
    feed->shared = weft_shared_free(feed->shared);
    for (size_t i = 0; weft__dialects_at(feed->dialects, i); i++)
        weft__telling_reset(&feed->telling[i]);
}

/* ---- guests that cannot be told everything ---- */

static void bury(weft_later *later) {
    weft_feed *feed = WEFT_CONTAINER(later, weft_feed, bury);
    while (!weft__list_empty(&feed->lost)) {
        weft_guest *guest = WEFT_CONTAINER(feed->lost.next, weft_guest, link);
        weft_peer *peer = guest->peer;
        weft__guest_free(guest);
        weft_peer_close(peer, WEFT_FEED_CLOSE, "reconnect and resume");
        weft_peer_free(peer);
    }
}

/* ---- beats ---- */

static void set_beat(weft_telling *telling) {
    weft_loop *loop = weft__engine_loop(telling->feed->hub->engine);
    int64_t every = weft__dialects_at(telling->feed->dialects, telling->dialect)->beat_ms;
    weft__timer_set(loop, &telling->beat, weft__loop_fresh_now(loop) + every);
}

static void on_beat(weft_timer *timer) {
    weft_telling *telling = WEFT_CONTAINER(timer, weft_telling, beat);
    weft__telling_beat(telling->feed, telling->dialect);
    set_beat(telling);
}

/* ---- life ---- */

int weft__feed_new(weft_hub *hub, const weft_dialects *dialects, weft_feed **ret) {
    const weft_dialect *dialect;
    weft_feed *feed = weft__zalloc(hub->alloc, sizeof *feed);
    if (!feed)
        return -ENOMEM;
    feed->hub = hub;
    feed->dialects = dialects;
    feed->alloc = hub->alloc;
    feed->ear.on_event = on_event;
    feed->told = weft__store_head(weft__engine_store(hub->engine));
    weft__list_init(&feed->guests);
    weft__list_init(&feed->live);
    weft__list_init(&feed->lost);
    weft__list_init(&feed->awaits);
    weft__later_init(&feed->bury, bury);
    for (size_t i = 0; (dialect = weft__dialects_at(dialects, i)); i++) {
        feed->telling[i].feed = feed;
        feed->telling[i].dialect = i;
        weft__timer_init(&feed->telling[i].beat, on_beat);
        if (dialect->beat && dialect->beat_ms > 0)
            set_beat(&feed->telling[i]);
    }
    weft__engine_hear(hub->engine, &feed->ear);
    *ret = feed;
    return 0;
}

static void end_awaits(weft_feed *feed) {
    while (!weft__list_empty(&feed->awaits)) {
        struct await *await = WEFT_CONTAINER(feed->awaits.next, struct await, link);
        await->on_event(await->ctx, NULL, NULL);
        end_await(feed, await);
    }
}

weft_feed *weft__feed_free(weft_feed *feed) {
    if (!feed)
        return NULL;
    weft_loop *loop = weft__engine_loop(feed->hub->engine);
    weft__ear_remove(&feed->ear);
    weft__later_cancel(&feed->bury);
    end_awaits(feed);
    while (!weft__list_empty(&feed->guests))
        weft__guest_free(WEFT_CONTAINER(feed->guests.next, weft_guest, link));
    while (!weft__list_empty(&feed->lost))
        weft__guest_free(WEFT_CONTAINER(feed->lost.next, weft_guest, link));
    for (size_t i = 0; weft__dialects_at(feed->dialects, i); i++) {
        weft__timer_stop(loop, &feed->telling[i].beat);
        weft__free(feed->alloc, feed->telling[i].told);
    }
    weft__free(feed->alloc, feed);
    return NULL;
}
