/* One hearing of one guest: live with all the others as long as its connection takes everything, otherwise from the store.
 *
 *     off ──start──▶ catching ──caught up──▶ live ──full──▶ behind ──drained──▶ catching
 *                             ──full──▶ behind                          any ──stop──▶ off
 *
 * Where replay and live meet there is neither gap nor double: the store's follow ends its replay at the last event that
 * anybody has been told of, hearing->at is the last one said, and those who are live skip what is not after it. */
#include <assert.h>
#include <errno.h>

#include "feed_private.h"

/* A page is at most this far over what fits; it is read again from where the connection was full. */
#define PAGE_BYTES (128 * 1024)

static weft_store *store_of(const weft_hearing *hearing) {
    return weft__engine_store(hearing->guest->feed->hub->engine);
}

static void go_live(weft_hearing *hearing) {
    hearing->follow = weft__follow_free(hearing->follow);
    hearing->state = WEFT_HEARING_LIVE;
    weft__list_push(&hearing->guest->feed->live, &hearing->link);
}

/* ---- what the store says ---- */

static void on_start(void *ctx, const weft_page *page) {
    weft_hearing *hearing = ctx;
    if (hearing->raw)
        weft__subscription_done(hearing->guest, 0, page->head);
}

static int say(weft_hearing *hearing, const weft_event *event) {
    weft_guest *guest = hearing->guest;
    weft_doc *doc;
    if (hearing->raw && !weft__subscription_reads(guest))
        return weft__subscription_wants(guest, event, NULL) ? weft__subscription_tell(guest, event) : 0;
    int r = weft_doc_parse(event->data.data, event->data.len, guest->feed->alloc, &doc);
    if (r < 0)
        return r;
    if (!hearing->raw)
        r = weft__telling_alone(guest, event, weft_doc_root(doc));
    else if (weft__subscription_wants(guest, event, weft_doc_root(doc)))
        r = weft__subscription_tell(guest, event);
    weft_doc_free(doc);
    return r;
}

static void on_events(void *ctx, const weft_event *events, size_t count) {
    weft_hearing *hearing = ctx;
    for (size_t i = 0; i < count; i++) {
        if (weft_peer_full(hearing->guest->peer)) {
            weft__hearing_leave(hearing, hearing->at);
            return;
        }
        if (say(hearing, &events[i]) < 0) {
            weft__guest_lose(hearing->guest);
            return;
        }
        hearing->at = events[i].gseq;
    }
}

static void on_live(void *ctx) {
    go_live(ctx);
}

/* Before it began, that is an answer; afterwards something it should have heard is gone. */
static void on_end(void *ctx, int why) {
    weft_hearing *hearing = ctx;
    weft_guest *guest = hearing->guest;
    hearing->follow = NULL;
    hearing->state = WEFT_HEARING_OFF;
    if (hearing->raw && guest->done)
        weft__subscription_done(guest, why, weft__store_head(store_of(hearing)));
    else if (why != -ECANCELED)
        weft__guest_lose(guest);
}

static const weft_follower follower = {on_start, on_events, on_live, on_end};

/* ---- moving ---- */

void weft__hearing_init(weft_hearing *hearing, weft_guest *guest, bool raw) {
    weft__list_init(&hearing->link);
    hearing->guest = guest;
    hearing->raw = raw;
}

int weft__hearing_start(weft_hearing *hearing, const weft_query *query) {
    assert(hearing->state == WEFT_HEARING_OFF || hearing->state == WEFT_HEARING_BEHIND);
    char stream[WEFT_STREAM_NAME];
    weft_query paged = *query;
    paged.max_bytes = PAGE_BYTES;
    if (hearing->raw)
        weft__subscription_judge(hearing->guest, &paged, stream);
    else
        paged.oldest = true;
    hearing->at = query->after;
    int r = weft__store_follow(store_of(hearing), &paged, &follower, hearing, &hearing->follow);
    if (r >= 0)
        hearing->state = WEFT_HEARING_CATCHING;
    return r;
}

void weft__hearing_stop(weft_hearing *hearing) {
    weft__list_remove(&hearing->link);
    hearing->follow = weft__follow_free(hearing->follow);
    hearing->state = WEFT_HEARING_OFF;
}

void weft__hearing_leave(weft_hearing *hearing, uint64_t at) {
    weft__hearing_stop(hearing);
    hearing->state = WEFT_HEARING_BEHIND;
    hearing->at = at;
}

void weft__hearing_drain(weft_hearing *hearing) {
    if (hearing->state != WEFT_HEARING_BEHIND)
        return;
    if (hearing->at >= hearing->guest->feed->told)
        go_live(hearing);
    else if (weft__hearing_start(hearing, &(weft_query){.after = hearing->at}) < 0)
        weft__guest_lose(hearing->guest);
}
