/* How a client reaches an endpoint: one row per scheme. A new transport is a new row, and a line in the table of connect.c.
 *
 * A wire (client.h) is one attempt at one connection. begin() gets it a descriptor; a handshake, where there is one, runs on
 * the wire's stream before the peer sees a byte. */
#ifndef WEFT_TRANSPORT_H
#define WEFT_TRANSPORT_H

#include <weft/peer.h>

#include "url.h"

struct weft_wire;

enum {
    WEFT_OVER_TLS = 1 << 0,  /* the stream is wrapped in TLS */
    WEFT_OVER_HTTP = 1 << 1, /* requests have heads: a token can be shown */
    WEFT_LAZY = 1 << 2,      /* the other side may close between messages without being lost: connect again when needed */
};

typedef struct weft_transport {
    const char *name;
    weft_scheme scheme;
    unsigned flags;
    /* What the bytes mean when the caller does not say otherwise; NULL: weft_ndjson, and the caller may choose. */
    const weft_framing *framing;
    /* Start connecting. 0 under way: weft__wire_start() was called or will be. <0 it failed; what was begun is undone. Does
     * not block. */
    int (*begin)(struct weft_wire *wire);
    /* Put the handshake's first bytes into wire->out. NULL: there is no handshake. -ENOMEM and others end the attempt. */
    int (*hello)(struct weft_wire *wire);
    /* Look at what came back, n bytes from the beginning of the answer. >0 how many of them were the handshake, it is done;
     * 0 more is needed; <0 refused, with a sentence set by weft__wire_trouble(). */
    int (*hear)(struct weft_wire *wire, const char *data, size_t n);
    /* The wire is being let go: end what it has beside its stream. May be NULL. */
    void (*end)(struct weft_wire *wire);
} weft_transport;

const weft_transport *weft__transport(weft_scheme scheme);

/* The rows' functions. */
int weft__begin_unix(struct weft_wire *wire);
int weft__begin_tcp(struct weft_wire *wire);
int weft__begin_stdio(struct weft_wire *wire);
int weft__begin_exec(struct weft_wire *wire);
void weft__end_exec(struct weft_wire *wire);
int weft__begin_mem(struct weft_wire *wire);
int weft__hello_ws(struct weft_wire *wire);
int weft__hear_ws(struct weft_wire *wire, const char *data, size_t n);

#endif
