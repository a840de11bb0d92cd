/* Followers: first what was stored, page by page, then what is being stored, with neither gap nor double where the two meet.
 *
 * The meeting is a comparison, not a buffer: while a follow replays it reads only up to store->told, what the owner's thread
 * has been told of, and lets live events pass. When a page ends at told there is nothing between it and the next live event,
 * because both come from this one thread, and the follow is live.
 *
 *     replaying ──page ends at told──▶ live           on_replay_page()       any ──gap, error, close, free──▶ over
 *     live      ──events not in hand─▶ replaying      read_on_live()
 *
 * Events come from deliveries, our own appends' and other writers'. Where one has a hole before it, or brings no events, the
 * followers read what is missing. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "hash.h"
#include "pack.h"
#include "store_kind.h"

enum state { REPLAYING, LIVE, OVER };

struct weft_follow {
    weft_link link;
    weft_store *store;
    const weft_follower *follower;
    void *ctx;
    enum state state;
    bool reading;     /* a page is under way and will come back here */
    bool started;     /* on_start has run */
    uint32_t hash;    /* of the stream's name */
    weft_query query; /* after: the last position seen */
    char strings[];
};

static void free_follow(weft_follow *follow) {
    weft__list_remove(&follow->link);
    weft__free(follow->store->alloc, follow);
}

/* It is over, and says so once. The memory goes when nothing points to it any more: see weft__follow_sweep(). */
static void end_follow(weft_follow *follow, int why) {
    if (follow->state == OVER)
        return;
    follow->state = OVER;
    if (follow->follower->on_end)
        follow->follower->on_end(follow->ctx, why);
}

static void on_replay_page(void *ctx, int r, const weft_page *page);

static int request_page(weft_follow *follow) {
    if (!follow->reading) {
        follow->query.until = follow->store->told;
        int r = weft__store_read(follow->store, &follow->query, on_replay_page, follow);
        if (r < 0)
            return r;
    }
    follow->reading = true;
    follow->state = REPLAYING;
    return 0;
}

static void start_follow(weft_follow *follow, const weft_page *page) {
    if (follow->started)
        return;
    follow->started = true;
    if (follow->follower->on_start)
        follow->follower->on_start(follow->ctx, page);
}

static void deliver_to_follower(weft_follow *follow, const weft_event *events, size_t count) {
    const weft_event *last = &events[count - 1];
    follow->query.after = follow->query.stream ? last->seq : last->gseq;
    follow->follower->on_events(follow->ctx, events, count);
}

static void become_live(weft_follow *follow) {
    follow->state = LIVE;
    if (follow->follower->on_live)
        follow->follower->on_live(follow->ctx);
}

/* One position after each callback that may have changed the state: freed. */
static void on_replay_page(void *ctx, int r, const weft_page *page) {
    weft_follow *follow = ctx;
    uint64_t until = follow->query.until;
    follow->reading = false;
    if (follow->state == OVER)
        return;
    if (r != 0) {
        end_follow(follow, r);
        return;
    }
    start_follow(follow, page);
    /* Nothing was told yet, and a query up to nothing is one for everything: what the page has comes live. */
    bool nothing = until == 0;
    if (follow->state == REPLAYING && !follow->reading && page->count && !nothing)
        deliver_to_follower(follow, page->events, page->count);
    if (follow->state != REPLAYING || follow->reading)
        return;
    /* From here on the position is one of this run. */
    follow->query.epoch = NULL;
    if ((!page->more || nothing) && until == follow->store->told)
        become_live(follow);
    else if ((r = request_page(follow)) < 0)
        end_follow(follow, r);
}

int weft__store_follow(weft_store *store, const weft_query *query, const weft_follower *follower, void *ctx,
                       weft_follow **ret) {
    size_t stream = weft__pack_size(query->stream), epoch = weft__pack_size(query->epoch);
    size_t aside = weft__pack_size(query->aside), but = weft__pack_size(query->but), most = WEFT_STORE_NAME + 1;
    if (stream > most || epoch > most || aside > most || but > most)
        return -EINVAL;
    weft_follow *follow = weft__zalloc(store->alloc, sizeof *follow + stream + epoch + aside + but);
    if (!follow)
        return -ENOMEM;
    follow->store = store;
    follow->follower = follower;
    follow->ctx = ctx;
    follow->query = *query;
    char *at = follow->strings;
    follow->query.stream = weft__pack(&at, query->stream);
    follow->query.epoch = weft__pack(&at, query->epoch);
    follow->query.aside = weft__pack(&at, query->aside);
    follow->query.but = weft__pack(&at, query->but);
    follow->hash = stream ? weft__hash(follow->query.stream) : 0;
    weft__list_push(&store->follows, &follow->link);
    int r = request_page(follow);
    if (r < 0) {
        free_follow(follow);
        return r;
    }
    *ret = follow;
    return 0;
}

weft_follow *weft__follow_free(weft_follow *follow) {
    if (!follow)
        return NULL;
    follow->state = OVER;
    if (!follow->store->dispatching && !follow->reading)
        free_follow(follow);
    return NULL;
}

static bool wants_event(const weft_follow *follow, const weft_event *event, uint32_t hash) {
    return !follow->query.stream || (follow->hash == hash && strcmp(follow->query.stream, event->stream) == 0);
}

/* Deliver the events it wants in runs, because an append mostly is of one stream. */
static void tell_follower(weft_follow *follow, const weft_event *events, const uint32_t *hashes, size_t count) {
    size_t i = 0;
    while (i < count && follow->state == LIVE) {
        size_t first = i;
        while (i < count && wants_event(follow, &events[i], hashes[i]))
            i++;
        if (i > first)
            deliver_to_follower(follow, events + first, i - first);
        else
            i++;
    }
}

static void tell_followers(weft_store *store, const weft_event *events, size_t count) {
    uint32_t hashes[WEFT_STORE_EVENTS];
    for (size_t i = 0; i < count; i++)
        hashes[i] = weft__hash(events[i].stream);
    /* Followers are added at the end and removed only by the sweep, so the walk is safe whatever the callbacks do. */
    for (weft_link *link = store->follows.next; link != &store->follows; link = link->next)
        tell_follower(WEFT_CONTAINER(link, weft_follow, link), events, hashes, count);
}

/* Those that replay come to it by themselves: they are not live before they have read up to told. */
static void read_on_live(weft_store *store) {
    for (weft_link *link = store->follows.next; link != &store->follows; link = link->next) {
        weft_follow *follow = WEFT_CONTAINER(link, weft_follow, link);
        int r = follow->state == LIVE ? request_page(follow) : 0;
        if (r < 0)
            end_follow(follow, r);
    }
}

void weft__follow_tell(weft_store *store, const weft_delivery *delivery) {
    const weft_event *events = delivery->events;
    size_t count = delivery->count;
    assert(count <= WEFT_STORE_EVENTS);
    for (; count && events->gseq <= store->told; count--)
        events++;
    if (delivery->upto <= store->told)
        return;
    bool follows_on = count && events->gseq == store->told + 1;
    store->told = delivery->upto;
    if (weft__list_empty(&store->follows))
        return;
    if (follows_on)
        tell_followers(store, events, count);
    else
        read_on_live(store);
}

void weft__follow_sweep(weft_store *store) {
    for (weft_link *link = store->follows.next; link != &store->follows;) {
        weft_follow *follow = WEFT_CONTAINER(link, weft_follow, link);
        link = link->next;
        if (follow->state == OVER && !follow->reading)
            free_follow(follow);
    }
}

void weft__follow_end_all(weft_store *store) {
    store->dispatching = true;
    for (weft_link *link = store->follows.next; link != &store->follows; link = link->next)
        end_follow(WEFT_CONTAINER(link, weft_follow, link), -ECANCELED);
    store->dispatching = false;
    weft__follow_sweep(store);
}
