/* From an event to notifications: a dialect renders it once for all who are live, or for one who catches up. What is
 * rendered for all is encoded once per framing and sent to each. */
#include <errno.h>
#include <string.h>

#include "feed_private.h"

/* Somebody live who watches this. The same session is asked for line after line. */
static bool anybody_watches(weft_telling *telling, const char *session) {
    weft_feed *feed = telling->feed;
    if (telling->asked && strcmp(telling->asked, session) == 0)
        return telling->answer;
    telling->asked = weft__free(feed->alloc, telling->asked);
    telling->answer = false;
    for (weft_link *at = feed->live.next; at != &feed->live && !telling->answer; at = at->next) {
        weft_hearing *hearing = WEFT_CONTAINER(at, weft_hearing, link);
        telling->answer = !hearing->raw && weft__guest_dialect(hearing->guest) == telling->dialect &&
                          weft__guest_hears(hearing->guest, session, telling->gseq);
    }
    telling->asked = weft__strndup(feed->alloc, session, strlen(session));
    return telling->answer;
}

bool weft__heard(weft_telling *telling, const char *session) {
    if (!session)
        return true;
    return telling->guest ? weft__guest_hears(telling->guest, session, telling->gseq) : anybody_watches(telling, session);
}

static int make_room(weft_telling *telling) {
    if (telling->count < telling->cap)
        return 0;
    size_t cap = telling->cap ? telling->cap * 2 : 4;
    weft_told *told = weft__resize(telling->feed->alloc, telling->told, cap * sizeof *told);
    if (!told)
        return -ENOMEM;
    telling->told = told;
    telling->cap = cap;
    return 0;
}

static int keep(weft_telling *telling, const char *session, const char *method, weft_val params) {
    const weft_alloc *alloc = telling->feed->alloc;
    weft_told told = {0};
    int r = make_room(telling);
    if (r >= 0 && session && !(told.session = weft__strndup(alloc, session, strlen(session))))
        r = -ENOMEM;
    if (r >= 0)
        r = weft_shared_new(telling->feed->hub->service, method, params, &told.shared);
    if (r < 0) {
        weft__free(alloc, told.session);
        return r;
    }
    telling->told[telling->count++] = told;
    return 0;
}

/* Who cannot be told anything, and who has gone, has missed nothing. */
static int forgive(int r) {
    return r == -ENOTSUP || r == -EPIPE ? 0 : r;
}

void weft__tell(weft_telling *telling, const char *session, const char *method, weft_val params) {
    if (telling->r < 0 || !weft__heard(telling, session))
        return;
    telling->r =
        telling->guest ? forgive(weft_notify(telling->guest->peer, method, params)) : keep(telling, session, method, params);
}

static const weft_dialect *dialect_of(const weft_telling *telling) {
    return weft__dialects_at(telling->feed->dialects, telling->dialect);
}

static void render(weft_telling *telling, const weft_event *event, const weft_json *data) {
    telling->done = true;
    telling->gseq = event->gseq;
    dialect_of(telling)->render(telling->feed->hub, telling, event, data);
}

bool weft__telling_render(weft_telling *telling, const weft_event *event, const weft_json *data) {
    if (!telling->done && dialect_of(telling)->render)
        render(telling, event, data);
    return telling->count || telling->r < 0;
}

int weft__telling_send(const weft_telling *telling, weft_guest *guest) {
    int r = telling->r;
    for (size_t i = 0; r >= 0 && i < telling->count; i++) {
        const weft_told *told = &telling->told[i];
        if (!told->session || weft__guest_hears(guest, told->session, telling->gseq))
            r = forgive(weft_shared_send(told->shared, guest->peer));
    }
    return r;
}

int weft__telling_alone(weft_guest *guest, const weft_event *event, const weft_json *data) {
    weft_telling telling = {.feed = guest->feed, .guest = guest, .dialect = weft__guest_dialect(guest)};
    const weft_dialect *dialect = weft__dialects_at(guest->feed->dialects, telling.dialect);
    if (dialect && dialect->render)
        render(&telling, event, data);
    return telling.r;
}

void weft__telling_reset(weft_telling *telling) {
    const weft_alloc *alloc = telling->feed->alloc;
    for (size_t i = 0; i < telling->count; i++) {
        weft_shared_free(telling->told[i].shared);
        weft__free(alloc, telling->told[i].session);
    }
    telling->asked = weft__free(alloc, telling->asked);
    telling->count = 0;
    telling->done = false;
    telling->r = 0;
}

/* A beat is no event: who does not listen at the moment does not need it later. */
void weft__telling_beat(weft_feed *feed, size_t dialect) {
    weft_telling *telling = &feed->telling[dialect];
    weft__telling_reset(telling);
    telling->gseq = feed->told;
    dialect_of(telling)->beat(feed->hub, telling);
    for (weft_link *at = feed->guests.next; at != &feed->guests; at = at->next) {
        weft_guest *guest = WEFT_CONTAINER(at, weft_guest, link);
        if (guest->words.state == WEFT_HEARING_LIVE && weft__guest_dialect(guest) == dialect && !weft_peer_full(guest->peer))
            weft__telling_send(telling, guest);
    }
    weft__telling_reset(telling);
}
