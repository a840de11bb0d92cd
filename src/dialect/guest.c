/* A guest: one connection, what it watches and which words it understands. */
#include "feed_private.h"

#include <errno.h>
#include <string.h>

/* ---- which dialect ---- */

/* A connection may choose its dialect at any time; looking again costs a comparison of two short names. */
size_t weft__guest_dialect(weft_guest *guest) {
    const weft_dialects *all = guest->feed->dialects;
    const char *name = weft_peer_identity(guest->peer)->dialect;
    const weft_dialect *known = weft__dialects_at(all, guest->dialect);
    if (known && strcmp(known->name, name) == 0)
        return guest->dialect;
    for (guest->dialect = 0; (known = weft__dialects_at(all, guest->dialect)); guest->dialect++)
        if (strcmp(known->name, name) == 0)
            return guest->dialect;
    return guest->dialect = WEFT_DIALECTS;
}

/* ---- watching sessions ---- */

static uint32_t hash_of(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char) *name) * 16777619u;
    return hash;
}

static weft_watched *find(const weft_guest *guest, const char *session) {
    uint32_t hash = hash_of(session);
    for (size_t i = 0; i < guest->watch_count; i++)
        if (guest->watches[i].hash == hash && strcmp(guest->watches[i].session, session) == 0)
            return &guest->watches[i];
    return NULL;
}

static int make_room(weft_guest *guest) {
    if (guest->watch_count < guest->watch_cap)
        return 0;
    size_t cap = guest->watch_cap ? guest->watch_cap * 2 : 4;
    weft_watched *watches = weft__resize(guest->feed->alloc, guest->watches, cap * sizeof *watches);
    if (!watches)
        return -ENOMEM;
    guest->watches = watches;
    guest->watch_cap = cap;
    return 0;
}

int weft__guest_watch(weft_guest *guest, const char *session) {
    if (find(guest, session))
        return 0;
    if (guest->watch_count == WEFT_FEED_WATCHES)
        return -ENOSPC;
    char *copy = make_room(guest) < 0 ? NULL : weft__strndup(guest->feed->alloc, session, strlen(session));
    if (!copy)
        return -ENOMEM;
    guest->watches[guest->watch_count++] =
        (weft_watched){.hash = hash_of(session), .since = guest->feed->told, .session = copy};
    return 0;
}

/* In the order in which they came, the oldest first. */
static void forget(weft_guest *guest, weft_watched *watched) {
    weft__free(guest->feed->alloc, watched->session);
    size_t behind = (size_t) (guest->watches + guest->watch_count - (watched + 1));
    memmove(watched, watched + 1, behind * sizeof *watched);
    guest->watch_count--;
}

void weft__guest_unwatch(weft_guest *guest, const char *session) {
    weft_watched *watched = find(guest, session);
    if (watched)
        forget(guest, watched);
}

bool weft__guest_hears(const weft_guest *guest, const char *session, uint64_t gseq) {
    const weft_watched *watched = find(guest, session);
    return watched && (!gseq || gseq > watched->since);
}

bool weft__guest_watches(const weft_guest *guest, const char *session) {
    return find(guest, session) != NULL;
}

int weft__guest_started(weft_guest *guest, const char *session) {
    char *copy = weft__strndup(guest->feed->alloc, session, strlen(session));
    if (!copy)
        return -ENOMEM;
    weft__free(guest->feed->alloc, guest->session);
    guest->session = copy;
    if (guest->watch_count == WEFT_FEED_WATCHES && !find(guest, session))
        forget(guest, guest->watches);
    return weft__guest_watch(guest, session);
}

const char *weft__guest_session(const weft_guest *guest) {
    return guest->session;
}

/* ---- coming and going ---- */

weft_guest *weft__guest_of(const weft_feed *feed, weft_peer *peer) {
    void *data = feed && feed->opened ? weft_peer_data(peer) : NULL;
    return data == (feed ? feed->peer_data : NULL) ? NULL : data;
}

void weft__guest_lose(weft_guest *guest) {
    weft_feed *feed = guest->feed;
    if (guest->lost)
        return;
    guest->lost = true;
    weft__hearing_stop(&guest->words);
    weft__guest_unsubscribe(guest);
    weft__list_remove(&guest->link);
    weft__list_push(&feed->lost, &guest->link);
    weft__later(weft__engine_loop(feed->hub->engine), &feed->bury);
}

void weft__guest_free(weft_guest *guest) {
    const weft_alloc *alloc = guest->feed->alloc;
    weft_peer_set_data(guest->peer, guest->feed->peer_data);
    weft__list_remove(&guest->link);
    weft__hearing_stop(&guest->words);
    weft__guest_unsubscribe(guest);
    while (guest->watch_count)
        weft__free(alloc, guest->watches[--guest->watch_count].session);
    weft__free(alloc, guest->watches);
    weft__free(alloc, guest->session);
    weft__free(alloc, guest);
}

void weft__feed_open(weft_feed *feed, weft_peer *peer) {
    weft_guest *guest = weft__zalloc(feed->alloc, sizeof *guest);
    if (!guest) {
        /* It would never hear anything, and never know. */
        weft_peer_close(peer, WEFT_FEED_CLOSE, "out of memory");
        weft_peer_free(peer);
        return;
    }
    feed->peer_data = feed->opened ? feed->peer_data : weft_peer_data(peer);
    feed->opened = true;
    guest->feed = feed;
    guest->peer = peer;
    guest->dialect = WEFT_DIALECTS;
    weft__list_push(&feed->guests, &guest->link);
    weft__hearing_init(&guest->words, guest, false);
    weft__hearing_init(&guest->events, guest, true);
    weft__hearing_leave(&guest->words, feed->told);
    weft__hearing_drain(&guest->words);
    weft_peer_set_data(peer, guest);
}

void weft__feed_close(weft_feed *feed, weft_peer *peer) {
    weft_guest *guest = weft__guest_of(feed, peer);
    if (guest)
        weft__guest_free(guest);
}

void weft__feed_drain(weft_feed *feed, weft_peer *peer) {
    weft_guest *guest = weft__guest_of(feed, peer);
    if (!guest || guest->lost)
        return;
    weft__hearing_drain(&guest->words);
    if (!guest->lost)
        weft__hearing_drain(&guest->events);
}
