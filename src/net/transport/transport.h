/* A transport: how a client reaches an endpoint and how a server serves it. One row per scheme, at the end of a file of its
 * own (transport_*.c); transports.c has the table of them. A new transport is a new file and a line there: whatever else
 * wants to know something of a scheme asks its row.
 *
 * A wire (client.h) is one attempt at one connection. begin() gets it a descriptor; a handshake, where there is one, runs on
 * the wire's stream before the peer sees a byte. A listener (server.h) accepts connections until it is closed. */
#ifndef WEFT_TRANSPORT_H
#define WEFT_TRANSPORT_H

#include <weft/peer.h>

#include "url.h"

struct weft_wire;
struct weft_listener;

/* weft_scheme.flags */
enum {
    WEFT_OVER_TLS = 1 << 0,   /* the stream is wrapped in TLS */
    WEFT_OVER_HTTP = 1 << 1,  /* requests have heads: a token can be shown, and several endpoints can share a port */
    WEFT_LAZY = 1 << 2,       /* the other side may close between messages without being lost: connect again when needed */
    WEFT_NETWORK = 1 << 3,    /* it has a host and a port, and who comes may be a stranger */
    WEFT_KNOWS_USER = 1 << 4, /* the kernel knows whose process is at the other end */
    WEFT_UPGRADES = 1 << 5,   /* over HTTP: the path is a WebSocket's */
    WEFT_BARE_PATH = 1 << 6,  /* a path without a scheme means this one; one row has it */
    WEFT_IN_LOOP = 1 << 7,    /* only for parts of one program: nobody else can come */
    WEFT_ENDS = 1 << 8,       /* what has ended has ended: it cannot be connected to again */
    WEFT_OUR_STDIO = 1 << 9,  /* our own standard input and output: nothing else may be said there */
};

/* What a client and a server say to each other before the peer sees a byte. */
typedef struct weft_handshake {
    /* Put the handshake's first bytes into wire->out. -ENOMEM and others end the attempt. */
    int (*hello)(struct weft_wire *wire);
    /* Look at what came back, n bytes from the beginning of the answer. >0 how many of them were the handshake, it is done;
     * 0 more is needed; <0 refused, with a sentence set by weft__client_trouble(). */
    int (*hear)(struct weft_wire *wire, const char *data, size_t n);
} weft_handshake;

typedef struct weft_transport {
    weft_scheme scheme;
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

/* libweft's own, NULL-terminated. */
extern const weft_transport *const weft__transports[];

/* By the name of its scheme, or the one that a URL or a path belongs to. more is looked through first; NULL: there is
 * nothing but libweft's own. NULL: there is none. */
const weft_transport *weft__transport_named(const weft_transport *const *more, const char *name);
const weft_transport *weft__transport_of(const weft_transport *const *more, const char *url);
/* Find the transport and take its URL apart, as weft__url_parse() does. Free with weft__url_done(). */
int weft__transport_parse(const weft_transport *const *more, const char *text, const weft_alloc *alloc, weft_url *ret,
                          const char **ret_why);
/* The transport that a URL was parsed for. */
const weft_transport *weft__transport(const weft_url *url);
/* One request and one answer at a time, by HTTP: no WebSocket. */
bool weft__is_http(const weft_scheme *scheme);

/* What rows have in common. */
int weft__begin_unix(struct weft_wire *wire);
int weft__begin_tcp(struct weft_wire *wire);
int weft__begin_stdio(struct weft_wire *wire);
int weft__begin_exec(struct weft_wire *wire);
void weft__end_exec(struct weft_wire *wire);
int weft__begin_mem(struct weft_wire *wire);
extern const weft_handshake weft__ws_handshake;

#endif
