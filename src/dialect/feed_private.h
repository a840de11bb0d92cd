/* The inside of the feed, for its files.
 *
 * A guest has two hearings: its dialect's words and, when it subscribed, the events themselves. Each is at a position of its
 * own and moves on by the same rules, in hearing.c. */
#ifndef WEFT_FEED_PRIVATE_H
#define WEFT_FEED_PRIVATE_H

#include "buf.h"
#include "feed.h"
#include "loop.h"

/* Room for WEFT_STREAM_SESSION and the id of a session. */
#define WEFT_STREAM_NAME 64

typedef enum weft_hearing_state {
    WEFT_HEARING_OFF,
    WEFT_HEARING_LIVE,     /* told with all the others */
    WEFT_HEARING_BEHIND,   /* its connection is full: it waits until that has drained */
    WEFT_HEARING_CATCHING, /* told from the store */
} weft_hearing_state;

typedef struct weft_hearing {
    weft_link link; /* in feed->live while it is */
    weft_guest *guest;
    bool raw; /* the events themselves */
    weft_hearing_state state;
    uint64_t at; /* all up to this gseq has been said, or is none of its business; not kept up while live */
    weft_follow *follow;
} weft_hearing;

/* What a subscription lets through. One block of memory with its strings behind it. */
typedef struct weft_filter {
    const char *task, *session; /* NULL: any */
    size_t type_count;          /* 0: all */
    const char *types[];
} weft_filter;

typedef struct weft_watched {
    uint32_t hash;
    uint64_t since; /* what happened up to this gseq is not logged to it */
    char *session;
} weft_watched;

struct weft_guest {
    weft_link link; /* in feed->guests, or feed->lost */
    weft_feed *feed;
    weft_peer *peer;
    weft_hearing words, events;
    size_t dialect; /* index in the list; WEFT_DIALECTS: none. See weft__guest_dialect() */
    weft_filter *filter;
    weft_subscribed *done; /* waits to hear how subscribing went; NULL: nobody does */
    void *done_ctx;
    weft_watched *watches;
    size_t watch_count, watch_cap;
    char *session;  /* that it started last */
    bool positions; /* server-sent events: each event is told with its position as its id */
    bool failing;   /* it could not be told something: lost as soon as the others have been */
    bool lost;      /* will be closed before the loop waits again */
};

/* One notification that is ready to be sent. */
typedef struct weft_told {
    weft_shared *shared;
    char *session; /* NULL: for everybody */
} weft_told;

/* What one dialect has to say about one event. */
struct weft_telling {
    weft_feed *feed;
    weft_guest *guest; /* only to this one; NULL: to all that are live, as told */
    size_t dialect;
    uint64_t gseq;
    int r;     /* the first failure */
    bool done; /* it was rendered already */
    weft_told *told;
    size_t count, cap;
    char *asked; /* the last session somebody was looked for, and whether there was one */
    bool answer;
    weft_timer beat; /* of those in the feed */
};

struct weft_feed {
    weft_hub *hub;
    const weft_dialects *dialects;
    const weft_alloc *alloc;
    weft_ear ear;
    uint64_t told; /* the last event heard */
    weft_link guests, live, lost, awaits;
    weft_later bury;
    void *peer_data; /* what peers have as theirs before they are guests */
    bool opened;
    bool failing;                        /* some guest is */
    weft_telling telling[WEFT_DIALECTS]; /* about the event of the moment */
    weft_shared *shared;                 /* the event itself, likewise; NULL: nobody wanted it yet */
};

/* ---- guest.c ---- */

/* Index of the dialect it speaks at the moment; WEFT_DIALECTS: none that is known. */
size_t weft__guest_dialect(weft_guest *guest);
/* Does it watch that, and since before this? gseq 0: at all. */
bool weft__guest_hears(const weft_guest *guest, const char *session, uint64_t gseq);
/* Forget it. Its peer stays. */
void weft__guest_free(weft_guest *guest);

/* ---- hearing.c ---- */

void weft__hearing_init(weft_hearing *hearing, weft_guest *guest, bool raw);
/* From this position on: at once with the others when that is where they are, otherwise from the store. Whether something is
 * missing is judged by what it would have heard: of a subscription, what its filter lets through; of a dialect's words,
 * nothing, because nobody can resume them and what is kept is all there is to say. */
int weft__hearing_start(weft_hearing *hearing, const weft_query *query);
void weft__hearing_stop(weft_hearing *hearing);
/* Its connection is full: all after this gseq comes later. */
void weft__hearing_leave(weft_hearing *hearing, uint64_t at);
/* There is room again. */
void weft__hearing_drain(weft_hearing *hearing);

/* ---- subscription.c ---- */

/* Whether it must look into an event's data to know what it wants. */
bool weft__subscription_reads(const weft_guest *guest);
/* data may be NULL if it does not read it. */
bool weft__subscription_wants(const weft_guest *guest, const weft_event *event, const weft_json *data);
/* Of which sessions' streams it wants everything: in aside and but of the query. stream has WEFT_STREAM_NAME bytes. */
void weft__subscription_judge(const weft_guest *guest, weft_query *query, char *stream);
/* The store's answer: whoever waits for it is told once. */
void weft__subscription_done(weft_guest *guest, int r, uint64_t head);
/* The notification of an event, for everybody. */
int weft__subscription_share(weft_feed *feed, const weft_event *event, weft_shared **ret);
int weft__subscription_tell(weft_guest *guest, const weft_event *event);
/* Say the position of what is told next, where it is told with positions. */
int weft__subscription_mark(weft_guest *guest, uint64_t gseq);
/* The same filter from now on. */
int weft__guest_go_live(weft_guest *guest, weft_subscribed *done, void *ctx);

/* ---- telling.c ---- */

/* Render it for all who are live, unless that is done. False: the dialect has nothing to say about it. */
bool weft__telling_render(weft_telling *telling, const weft_event *event, const weft_json *data);
/* Send what was rendered to one of them. */
int weft__telling_send(const weft_telling *telling, weft_guest *guest);
/* Render it for one alone. */
int weft__telling_alone(weft_guest *guest, const weft_event *event, const weft_json *data);
/* Nothing has been said yet. */
void weft__telling_reset(weft_telling *telling);
void weft__telling_beat(weft_feed *feed, size_t dialect);

#endif
