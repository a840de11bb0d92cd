/* Telling connections what happened: once for all who keep up, and for each who does not from the store, from where it
 * stopped, until it has caught up. Nobody is told anything that is not durable, and nobody misses anything in between: who
 * cannot be told everything is closed with a code that means "come back and resume".
 *
 * A connection hears what its dialect renders, and besides, when it subscribed, the events themselves. */
#ifndef WEFT_FEED_H
#define WEFT_FEED_H

#include "hub.h"

/* Sessions a connection may watch, and types a subscription may name. */
#define WEFT_FEED_WATCHES 1024
/* WebSocket's "try again later" (the registry of RFC 6455): what was missed is in the store. */
#define WEFT_FEED_CLOSE 1013

/* One connection that can be told something. It is weft_peer_data() of its peer from weft__feed_open() on. */
typedef struct weft_guest weft_guest;

/* After the engine is ready. */
int weft__feed_new(weft_hub *hub, const weft_dialects *dialects, weft_feed **ret);
/* Before the engine goes. Connections stay, and are told nothing any more. Returns NULL. */
weft_feed *weft__feed_free(weft_feed *feed);

/* For weft_server_opts: on_open, on_close and on_drain. Peers whose transport cannot be told anything (an HTTP POST) are
 * fine. All peers have the same weft_peer_data() when they are opened. */
void weft__feed_open(weft_feed *feed, weft_peer *peer);
void weft__feed_close(weft_feed *feed, weft_peer *peer);
void weft__feed_drain(weft_feed *feed, weft_peer *peer);

/* Hear of everything that happens to a task, before connections do, until on_event returns false. Called with NULLs when the
 * feed goes. -ENOMEM. */
typedef bool weft_on_task(void *ctx, const weft_event *event, const weft_json *data);
int weft__feed_await(weft_feed *feed, const char *task, weft_on_task *on_event, void *ctx);

/* NULL for a peer the feed does not know. */
weft_guest *weft__guest_of(const weft_feed *feed, weft_peer *peer);
/* It cannot be told everything: close it soon, so that it comes back. Nothing is said to it any more. */
void weft__guest_lose(weft_guest *guest);
/* Logs of a session go to those who watch it, from now on. -ENOSPC: too many. 0 also when it does already. */
int weft__guest_watch(weft_guest *guest, const char *session);
void weft__guest_unwatch(weft_guest *guest, const char *session);
bool weft__guest_watches(const weft_guest *guest, const char *session);
/* It started this session: it watches it, instead of the one it watches longest if those are too many. -ENOMEM. */
int weft__guest_started(weft_guest *guest, const char *session);
/* The session this connection started last; NULL: none. */
const char *weft__guest_session(const weft_guest *guest);

/* From a renderer: a notification to every connection of this dialect, or, with a session, to those that watch it. */
void weft__tell(weft_telling *telling, const char *session, const char *method, weft_val params);
/* Would anybody hear that? For renderers that have much to do before they can tell it. */
bool weft__heard(weft_telling *telling, const char *session);

/* The events themselves, as notifications "event" {gseq, seq, stream, type, time, data}. */
typedef struct weft_subscription_spec {
    const char *epoch;        /* NULL: this one */
    uint64_t after;           /* gseq; 0: everything that is kept */
    bool live;                /* from now on, not from a position */
    const char *task;         /* only events about this task; NULL: any */
    const char *session;      /* only about this session or its tasks; NULL: any */
    const char *const *types; /* that begin with one of these; NULL: all */
    size_t type_count;
} weft_subscription_spec;
/* r 0 resumed from the position (or live from head); a weft_gap: it cannot be, and nothing is subscribed; <0, -ECANCELED
 * when something else was subscribed or the connection ended meanwhile. No event is delivered before done has returned. */
typedef void weft_subscribed(void *ctx, int r, uint64_t head);
/* Replaces the guest's subscription. Everything is copied. */
int weft__guest_subscribe(weft_guest *guest, const weft_subscription_spec *spec, weft_subscribed *done, void *ctx);
void weft__guest_unsubscribe(weft_guest *guest);

#endif
