/* A transport: how a client reaches an endpoint and how a server serves it. One row per scheme, at the end of a file of its
 * own (transport_*.c); connect.c has the table of them. A new transport is a new file and a line there.
 *
 * A wire (client.h) is one attempt at one connection. begin() gets it a descriptor; a handshake, where there is one, runs on
 * the wire's stream before the peer sees a byte. A listener (server.h) accepts connections until it is closed. */
#ifndef WEFT_TRANSPORT_H
#define WEFT_TRANSPORT_H

#include <weft/peer.h>

#include "url.h"

struct weft_wire;
struct weft_listener;

enum {
    WEFT_OVER_TLS = 1 << 0,   /* the stream is wrapped in TLS */
    WEFT_OVER_HTTP = 1 << 1,  /* requests have heads: a token can be shown, and several endpoints can share a port */
    WEFT_LAZY = 1 << 2,       /* the other side may close between messages without being lost: connect again when needed */
    WEFT_NETWORK = 1 << 3,    /* it has a host and a port, and who comes may be a stranger */
    WEFT_KNOWS_USER = 1 << 4, /* the kernel knows whose process is at the other end */
    WEFT_UPGRADES = 1 << 5,   /* over HTTP: the path is a WebSocket's */
};

/* What a client and a server say to each other before the peer sees a byte. */
typedef struct weft_handshake {
    /* Put the handshake's first bytes into wire->out. -ENOMEM and others end the attempt. */
    int (*hello)(struct weft_wire *wire);
    /* Look at what came back, n bytes from the beginning of the answer. >0 how many of them were the handshake, it is done;
     * 0 more is needed; <0 refused, with a sentence set by weft__wire_trouble(). */
    int (*hear)(struct weft_wire *wire, const char *data, size_t n);
} weft_handshake;

typedef struct weft_transport {
    const char *name;
    weft_scheme scheme;
    unsigned flags;
    /* What a client's bytes mean when the caller does not say otherwise; NULL: weft_ndjson, and the caller may choose. A
     * server without HTTP finds out by looking. */
    const weft_framing *framing;
    const weft_handshake *handshake; /* of a client; NULL: there is none */
    /* Start connecting. 0 under way: weft__wire_start() was called or will be. <0 it failed; what was begun is undone. Does
     * not block. */
    int (*begin)(struct weft_wire *wire);
    /* The wire is being let go: end what it has beside its stream. May be NULL. */
    void (*end)(struct weft_wire *wire);
    /* Open what accepts: call weft__listener_accept_on() for each socket, or weft__listener_serve() for who comes another
     * way. <0 it failed; weft__listener_close() follows. NULL: nobody can listen there. */
    int (*listen)(struct weft_listener *listener, const weft_url *url);
} weft_transport;

const weft_transport *weft__transport(weft_scheme scheme);

/* What rows have in common. */
int weft__begin_unix(struct weft_wire *wire);
int weft__begin_tcp(struct weft_wire *wire);
int weft__begin_stdio(struct weft_wire *wire);
int weft__begin_exec(struct weft_wire *wire);
void weft__end_exec(struct weft_wire *wire);
int weft__begin_mem(struct weft_wire *wire);
extern const weft_handshake weft__ws_handshake;

#endif
