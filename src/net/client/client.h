/* The inside of a client, for the files of this folder only.
 *
 * A client is policy: the state its user sees, when to try again, the peer and its calls. A wire is one connection, from the
 * first system call to the last; it belongs to its client until it is let go, and then ends by itself while the client may
 * already have another. Both are counted, because a callback may free the peer at any time. */
#ifndef WEFT_CLIENT_H
#define WEFT_CLIENT_H

#include <netdb.h>

#include "backoff.h"
#include "exec.h"
#include "http_client.h"
#include "link.h"
#include "stdfd.h"
#include "stream.h"
#include "transport.h"
#include "url.h"

typedef struct weft_client weft_client;
typedef struct weft_wire weft_wire;

/* Descriptors that somebody else opened and a wire has not taken yet; -1: none. */
typedef struct weft_given {
    int in, out;
} weft_given;

struct weft_client {
    size_t refs;     /* the peer's, each wire's, each callback's under way */
    weft_peer *peer; /* NULL: freed by its user; nothing is told any more */
    weft_loop *loop;
    bool own_loop;          /* blocking.c: nobody else drives it */
    bool let_go;            /* its user has freed the peer */
    bool driven;            /* the loop is being run by a blocking function right now */
    weft_connect_opts opts; /* of its strings only the token is kept, ours */
    char *token;
    struct weft_signing *signing; /* NULL: nothing is signed */
    weft_url url;
    char endpoint[128]; /* the URL without its query, or its beginning, for people */
    const weft_transport *transport;
    weft_given given;
    weft_tls_ctx *tls;
    char *authority; /* host:port as it stands in a Host header */
    char *target;    /* HTTP: path and query */
    char *more;      /* HTTP: the user's headers as text; NULL: none */
    weft_http_client_opts http;

    weft_peer_state state;
    int why;                    /* the last failure */
    weft_wire *wire;            /* NULL: none */
    struct weft_events *events; /* HTTP: listening to server-sent events; NULL: not */
    bool events_may_fail;       /* asked for by weft_peer_listen(): a server that has none is no failure */
    weft_backoff events_backoff;
    weft_timer events_again;
    struct sockaddr_storage address; /* where they come from */
    socklen_t address_size;
    struct addrinfo *addresses, *next_address;
    weft_backoff backoff;
    weft_later begin;   /* start connecting */
    weft_timer attempt; /* connecting takes too long, or it is time to try again */
    int64_t connected_at;
    int64_t give_up;    /* when the attempt as a whole has taken too long */
    weft_timer tick;    /* the peer's deadlines */
    bool held;          /* the loop is kept alive while there is no connection yet */
    uint64_t delivered; /* times something came in, for weft_wait() */
    weft_link subs;     /* subscriptions (subscribe.c) */
    uint64_t sub_count; /* how many there were, for their ids */
    uint64_t sub_round; /* how often all of them were told something */
    char trouble[WEFT_TROUBLE_MAX];
};

struct weft_wire {
    weft_stream stream;
    weft_client *client;
    unsigned holds;    /* what still needs this memory: the client, the stream, a lookup, a child */
    bool has_stream;   /* the stream was initialised: on_closed will come */
    bool ready;        /* the handshake is over, the peer takes the bytes */
    unsigned deflate;  /* agreed on by the handshake */
    char key[25];      /* Sec-WebSocket-Key */
    weft_buf out;      /* a handshake going out; later what the peer left to be sent */
    weft_buf in;       /* a handshake coming in */
    weft_later resume; /* the peer can take more of what it has been given */
    weft_timer timer;  /* the transport's own */
    uv_getaddrinfo_t *lookup;
    weft_child *child;
    weft_stdio *stdio;
    bool ended, exited; /* exec: the bytes, the process */
};

/* ---- client.c ---- */

weft_client *weft__client_of(const weft_peer *peer); /* NULL: not a client's */
weft_client *weft__client_ref(weft_client *client);
void weft__client_unref(weft_client *client);
/* From the kernel, for jitter. */
uint32_t weft__any_number(void);
/* How long connecting may take; <0 for ever. */
int64_t weft__client_timeout(const weft_client *client);
/* Say what went wrong, for people. The first sentence about an attempt stays: it is nearest to the cause. */
void weft__client_trouble(weft_client *client, const char *format, ...) WEFT_PRINTF(2, 3);
/* The wire is ready for messages. */
void weft__client_ready(weft_client *client, weft_wire *wire);
/* The wire has ended: 0 by a clean end, else why. */
void weft__client_lost(weft_client *client, weft_wire *wire, int why);
/* After anything that may have started a call: when is the peer due next? */
void weft__client_schedule(weft_client *client);

/* ---- subscribe.c ---- */

/* The connection is there, is lost, or (for_good) will not come back. May free the peer. */
void weft__subs_connected(weft_client *client);
void weft__subs_lost(weft_client *client, int why, bool for_good);
/* The peer is being freed: they are told nothing any more. */
void weft__subs_leave(weft_client *client);
/* true: the notification was for one of them. */
bool weft__subs_take(weft_client *client, const char *method, const weft_json *params);

/* ---- connect_process.c ---- */

extern const weft_transport weft__given_transport;
void weft__given_close(weft_given *given);

/* ---- blocking.c ---- */

/* The peer of a private loop is gone: let what is closing close. */
void weft__loop_run_out(weft_loop *loop);

/* Whether server-sent events are wanted: if so, they keep the loop alive while it is connected. */
void weft__client_want_events(weft_client *client, bool wanted);

/* ---- client_wire.c ---- */

int weft__wire_new(weft_client *client, weft_wire **ret);
/* Carry bytes over this connected or connecting socket, or pair of descriptors; they are taken. */
int weft__wire_start(weft_wire *wire, int in, int out, bool connecting);
/* The client is done with it: send what the peer left, when that makes sense, close, free. */
void weft__wire_let_go(weft_wire *wire, bool politely);
/* Is it still its client's? */
static inline bool weft__wire_current(const weft_wire *wire) {
    return wire->client->wire == wire;
}
/* Output appeared. */
void weft__wire_flush(weft_wire *wire);
/* The user's pause is over. */
void weft__wire_resume(weft_wire *wire);
/* TLS: bytes that have left the peer but not us. */
bool weft__wire_unsent(const weft_wire *wire);
/* exec: the child's bytes have ended; the process will follow, or time is up. */
void weft__wait_for_exit(weft_wire *wire);
/* One of the things that keep a wire's memory is gone. */
void weft__wire_gone(weft_wire *wire);

#endif
