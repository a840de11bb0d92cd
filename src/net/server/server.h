/* The inside of a server, for the files of this folder only.
 *
 *   server     has endpoints (what was asked for) and listeners (sockets); several endpoints may share a listener
 *   listener   accepts, refuses, and makes connections
 *   conn       one connection: a stream, and a peer on it as soon as messages may come. On HTTP listeners a weft_web is
 * there first, until an upgrade or an event stream puts a peer in its place (http_server.h)
 *
 * Endpoints and listeners live as long as the server's memory; that lives until its last connection is closed. */
#ifndef WEFT_SERVER_H
#define WEFT_SERVER_H

#include "address.h"
#include "auth.h"
#include "stream.h"
#include "tally.h"
#include "transport.h"
#include "unix_socket.h"
#include "url.h"

/* A name may resolve to more than one address (localhost to two); nobody serves on more than these under one name. */
#define WEFT_LISTENER_SOCKETS 4

typedef struct weft_conn weft_conn;
typedef struct weft_listener weft_listener;
typedef struct weft_endpoint weft_endpoint;

struct weft_endpoint {
    weft_server *server;
    weft_listener *listener;
    weft_endpoint *next; /* on the same listener */
    weft_url url;
    const weft_transport *transport;
    char *text; /* of the URL, with the port that was taken */
    weft_auths tokens;
    char **hosts, **origins; /* NULL-terminated, or NULL */
    char *dialect;
    char *id_header;                   /* NULL: none */
    size_t max_body, dialect_max_body; /* 0: as the service has it */
    weft_style style;
    bool any_uid, token_later, no_batch, lenient;
};

/* Where a connection is counted: admission.h. */
typedef struct weft_conn_place {
    weft_tallied *count; /* among its like, in server->strangers or by_uid; NULL: nowhere */
    weft_link by_age;    /* in server->strangers_by_age while it is a stranger */
    int64_t since;
    bool taken, local, stranger;
} weft_conn_place;

typedef struct weft_accepting {
    uv_poll_t poll;
    weft_listener *listener;
    int fd;         /* -1: closed */
    bool closing;   /* its handle is still the loop's */
    char bound[64]; /* its address, as a Host header would have it */
} weft_accepting;

struct weft_listener {
    weft_link link;
    weft_server *server;
    weft_endpoint *endpoints; /* at least one; the first one's rules hold where no other's do */
    weft_tls_ctx *tls;
    bool http;
    bool demands_certificate;
    bool closed; /* weft_server_unlisten() */
    int port;
    weft_unix_socket socket;  /* unix: */
    struct weft_local *local; /* stdio:, mem: */
    size_t count;
    weft_accepting sockets[WEFT_LISTENER_SOCKETS];
};

/* Everybody who comes is handed on instead of being served. fd is taken, and NULL returned; or why it is not. The bytes are
 * as they came, also where the endpoint has TLS. */
struct weft_refusal;
struct weft_origin;
typedef const struct weft_refusal *weft_take(void *ctx, const weft_listener *listener, const struct weft_origin *origin,
                                             int fd);

struct weft_server {
    weft_take *take; /* NULL: they are served */
    void *take_ctx;
    size_t refs; /* the user's, each connection's, each listening handle's */
    weft_loop *loop;
    const weft_alloc *alloc;
    weft_service *service;
    weft_server_opts opts; /* no zeroes left */
    weft_endpoint **endpoints;
    size_t endpoint_count;
    weft_link listeners;
    weft_link conns; /* until closed completely */
    size_t conn_count;
    size_t client_count; /* those with a peer that was told to the user */
    size_t local_count, network_count, stranger_count;
    weft_tally by_uid, strangers;
    weft_link strangers_by_age; /* the oldest first */
    int64_t full_noted_at;      /* when it was last said that strangers have to go */
    size_t held;                /* bytes in the buffers of all connections */
    weft_later relief;          /* held is over its limit */
    weft_timer rest;            /* from accepting: there were no descriptors */
    weft_brake brake;
    uint64_t last_auth; /* the last id that was given to a token */
    weft_later revoke;  /* connections whose tokens do not count any more are to be closed */
    weft_timer expiry;  /* a token expires */
    int spare_fd;       /* given up for a moment to tell somebody that there are no descriptors left */
    struct weft_route *routes;
    struct weft_public *publics;
    struct weft_gzip *gzip;     /* NULL: nobody has needed it */
    struct weft_logins *logins; /* NULL: pages cannot log in */
    weft_timer timer;           /* the grace time of a stop */
    weft_later stopped;
    weft_later called; /* calls without a connection are over: weft_service_call() */
    weft_later turn;   /* requests have come: weft__service_settle() */
    bool stopping, freed, resting;
    bool has_stopped;               /* on_stopped has run */
    bool running;                   /* inside weft_server_run(), which ends when the server has stopped or is freed */
    bool listening;                 /* inside weft_server_listen(): notes are about it */
    char trouble[WEFT_TROUBLE_MAX]; /* why the last one failed; "": it did not */
    void (*on_stopped)(weft_server *server, void *ctx);
    void *stopped_ctx;
    int64_t date_second; /* of date, which changes once a second */
    char date[40];
};

struct weft_conn {
    weft_stream stream;
    weft_peer *peer;         /* NULL: none yet, or none any more */
    size_t held;             /* bytes in its buffers, as far as they have been counted */
    int64_t auth_until;      /* when it must have shown who it is; INT64_MAX: it has, or need not */
    bool told : 1;           /* on_open was called */
    bool events : 1;         /* the peer only sends (server-sent events) */
    bool ending : 1;         /* no more bytes come, but the peer still holds some of them back to keep their order */
    bool leaving : 1;        /* it closes as soon as everything is answered and sent */
    weft_endpoint *endpoint; /* by whose rules it is served */
    struct weft_web *web;    /* HTTP; NULL: bytes belong to the peer */
    weft_buf *last;          /* what the peer left to be sent when it went */
    weft_link link;
    weft_conn_place place;
    uint64_t auth;    /* the id of the token that was shown last; 0: none */
    uint64_t session; /* the id of the login that was shown for it; 0: none */
};

static inline weft_server *weft__conn_server(const weft_conn *conn) {
    return conn->endpoint->server;
}

/* ---- server.c ---- */

void weft__server_note(weft_server *server, const char *format, ...) WEFT_PRINTF(2, 3);
weft_server *weft__server_ref(weft_server *server);
void weft__server_unref(weft_server *server);
/* A connection has gone: a server that is stopping may be done. */
void weft__server_left(weft_server *server);

/* For a server that only hands on. */
void weft__server_take(weft_server *server, weft_take *take, void *ctx);

/* ---- server_endpoint.c ---- */

int weft__endpoint_new(weft_server *server, const char *url, const weft_listen_opts *opts, weft_endpoint **ret);
weft_endpoint *weft__endpoint_free(weft_endpoint *endpoint);
/* Write its URL with this port. -ENOMEM. */
int weft__endpoint_name(weft_endpoint *endpoint, int port);

/* ---- server_tokens.c ---- */

/* Give the tokens their ids, and watch when they expire. */
void weft__tokens_number(weft_server *server, weft_auths *auths);
void weft__tokens_watch(weft_server *server);
/* When a token of this name was last shown, or now if a connection that showed it is open. Seconds since 1970; 0: not since
 * this server began. */
int64_t weft__server_token_seen(const weft_server *server, const char *name);
/* Close who showed a token that does not count any more. */
void weft__tokens_revoke(weft_later *later);
void weft__tokens_expired(weft_timer *timer);
/* Seconds since 1970. */
int64_t weft__wall_now(void);

/* ---- listener.c, listener_net.c ---- */

/* Serve this endpoint: on a listener that is there already, or on a new one. opts is what the user said. */
int weft__listener_join(weft_endpoint *endpoint, const weft_listen_opts *opts);
/* The file of its Unix socket is gone: make it again. 1 it was made, 0 it is there; -EAGAIN no place for a socket yet. */
int weft__listener_renew(weft_listener *listener);
/* Stop accepting. */
void weft__listener_close(weft_listener *listener);
void weft__listener_free(weft_listener *listener);
/* Resolve, bind and listen: fills sockets and port. */
int weft__listener_bind_net(weft_listener *listener, const weft_url *url);
/* An address without its port, as text. */
int weft__address_text(const struct sockaddr *address, socklen_t len, char *ret, size_t size);
/* Somebody has connected: serve or refuse. fd is taken. */
void weft__listener_serve(weft_listener *listener, int fd);
/* Begin accepting on a listening socket, which is taken. */
int weft__listener_accept_on(weft_listener *listener, int fd);
/* Accept again after a rest; and end the rest without accepting, harmless when there is none. */
void weft__listener_resume(weft_timer *timer);
void weft__listener_end_rest(weft_server *server);

/* ---- conn.c ---- */

/* Who is at the other end of a descriptor, as far as the system knows. */
typedef struct weft_origin {
    int64_t uid, pid;           /* -1: not known; pid also when that process has ended */
    int64_t port;               /* 0 for a Unix socket */
    char address[WEFT_ADDRESS]; /* "" for a Unix socket */
    char group[WEFT_ADDRESS];   /* what counts as one address: see weft__address_group() */
} weft_origin;
void weft__origin_of(int fd, weft_origin *ret);

/* Begin serving a descriptor, or a pair of them. They and the place are taken, also on failure. */
int weft__conn_new(weft_listener *listener, int in, int out, weft_conn_place *place);
/* What the transport knows about the other end. Strings point into origin and name (WEFT_CONN_NAME bytes). */
#define WEFT_CONN_NAME 256
void weft__conn_identity(weft_conn *conn, weft_origin *origin, char *name, weft_identity *ret);

/* Give the connection a peer. From here on the stream is the peer's. */
typedef struct weft_conn_peer {
    const weft_framing *framing;
    const weft_identity *identity;
    unsigned deflate;
    bool locked;
    void (*on_output)(weft_peer *peer, void *data); /* NULL: the connection's own */
} weft_conn_peer;
int weft__conn_attach(weft_conn *conn, const weft_conn_peer *how);
int weft__conn_peer_new(weft_conn *conn, const weft_conn_peer *how, weft_peer **ret);
/* Feed it bytes, send what comes out, see whether it is over. */
void weft__conn_feed(weft_conn *conn, char *data, size_t len);
/* Tell on_open; the peer is a client now. */
void weft__conn_tell_open(weft_conn *conn);
/* Tell on_close, if on_open was told: it is none any more, although the connection stays. */
void weft__conn_tell_close(weft_conn *conn, int why);
/* Whoever it was, it is not a stranger any more. */
void weft__conn_known(weft_conn *conn);
/* End it: on_close, the peer freed, the stream finished (politely) or closed. */
void weft__conn_close(weft_conn *conn, int why, bool politely);
/* If there is more to say about an end than errno does, say it. */
void weft__conn_note_end(weft_conn *conn, int why);
/* The server stops: leave now, or as soon as nothing is open. */
void weft__conn_leave(weft_conn *conn, bool now);
/* A token that is shown on a connection which is open already (conn_auth.c). -EACCES: it is wrong; -EBUSY: too many were;
 * -ENOMEM. */
int weft__conn_show_token(weft_peer *peer, weft_bytes token);
/* It is a stranger again, and has auth_ms to show another one. -ENOMEM. */
int weft__conn_forget_token(weft_peer *peer);
/* A connection's peer's connection; NULL: the peer is not a server's. */
weft_conn *weft__conn_of(const weft_peer *peer);
/* Where a stream is that belongs to no protocol yet: on_closed is the same for all. */
void weft__conn_on_closed(weft_stream *stream);

/* ---- conn_auth.c ---- */

/* The method by which byte streams show a token. */
extern const weft_method weft__auth_method;

#endif
