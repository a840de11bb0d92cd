/* Telling connections what happened: once for all who keep up, and for each who does not from the store, from where it
 * stopped, until it has caught up. Nobody is told anything that is not durable, and nobody misses anything in between.
 *
 * A connection hears what its dialect renders, and besides, when it subscribed, the events themselves. */
#ifndef WEFT_FEED_H
#define WEFT_FEED_H

#include "hub.h"

/* Sessions a connection may watch, and so subscriptions: as guarantees.md has it. */
#define WEFT_FEED_WATCHES 1024

/* One connection, as weft_peer_data() of the server's peers. */
typedef struct weft_conn weft_conn;

int weft__feed_new(weft_hub *hub, const weft_dialects *dialects, weft_feed **ret);
weft_feed *weft__feed_free(weft_feed *feed);

/* For weft_server_opts: on_open, on_close and on_drain. Peers whose transport cannot be told anything (an HTTP POST) are
 * fine. */
void weft__feed_open(weft_feed *feed, weft_peer *peer);
void weft__feed_close(weft_feed *feed, weft_peer *peer);
void weft__feed_drain(weft_feed *feed, weft_peer *peer);

/* NULL for a peer the feed does not know. */
weft_conn *weft__conn_of(weft_peer *peer);
/* Logs of a session go to those who watch it. -ENOSPC: too many. 0 also when it does already. */
int weft__conn_watch(weft_conn *conn, const char *session);
void weft__conn_unwatch(weft_conn *conn, const char *session);
bool weft__conn_watches(const weft_conn *conn, const char *session);
/* The session this connection started last; NULL: none. */
const char *weft__conn_session(const weft_conn *conn);

/* From a renderer: a notification to every connection of this dialect, or, with a session, to those that watch it. */
void weft__tell(weft_telling *telling, const char *session, const char *method, weft_val params);

/* The events themselves, as notifications "event" {gseq, seq, stream, type, time, data}. */
typedef struct weft_subscription_spec {
    const char *epoch;        /* NULL: this one */
    uint64_t after;           /* gseq */
    bool live;                /* from now on, not from a position */
    const char *task;         /* only events about this task; NULL: any */
    const char *session;      /* only about this session; NULL: any */
    const char *const *types; /* that begin with one of these; NULL: all */
    size_t type_count;
} weft_subscription_spec;
/* r 0 resumed from the position (or live from head); a weft_gap: it cannot be, and nothing was subscribed; <0. Replaces the
 * connection's subscription. No event is delivered before done has returned. */
typedef void weft_subscribed(void *ctx, int r, uint64_t head, uint64_t trimmed);
int weft__conn_subscribe(weft_conn *conn, const weft_subscription_spec *spec, weft_subscribed *done, void *ctx);
void weft__conn_unsubscribe(weft_conn *conn);

#endif
