/* The inside of the HTTP server, for the files of this folder only.
 *
 * One request at a time on a connection: while one is being answered nothing more is read, so pipelined requests are
 * answered in order by themselves.
 *
 *   HEAD ──judged──▶ BODY ──whole──▶ BUSY ──answered──▶ HEAD        weft__web_answer()
 *   HEAD ──upgrade, event stream──▶ (a peer takes the stream)       weft__web_become()
 *   any  ──refused, Connection: close──▶ DONE                                                        */
#ifndef WEFT_HTTP_SERVER_H
#define WEFT_HTTP_SERVER_H

#include "http1.h"
#include "server.h"

enum weft_web_state { WEFT_WEB_HEAD, WEFT_WEB_BODY, WEFT_WEB_BUSY, WEFT_WEB_DONE };

enum weft_web_kind {
    WEFT_WEB_NOTHING, /* no such path */
    WEFT_WEB_HEALTH,
    WEFT_WEB_RPC,    /* messages by POST */
    WEFT_WEB_EVENTS, /* server-sent events */
    WEFT_WEB_SOCKET, /* WebSocket */
    WEFT_WEB_ROUTE,
    WEFT_WEB_OPTIONS,
};

/* HTTP's share of a connection. */
typedef struct weft_web {
    weft_buf in;   /* came and was not used yet */
    weft_buf out;  /* answers */
    weft_buf body; /* of a chunked request */
    weft_chunked chunked;
    size_t scanned;     /* bytes of in that do not hold the end of a head */
    size_t body_len;    /* by Content-Length */
    uint64_t body_came; /* bytes since body_until was set */
    int64_t body_until; /* when the next of them are counted */
    size_t body_max;    /* what this caller may send */
    weft_peer *rpc;     /* takes the messages of POSTs; NULL until the first */
    uint64_t rpc_auth;  /* whose it is: the token's id */
    const weft_endpoint *rpc_endpoint;
    weft_http *http;              /* with a route that has not answered yet */
    char trace[WEFT_TRACEPARENT]; /* of the messages under way: the header traceparent; "": none */
    char *origin;                 /* of the request under way, to be told that it may read the answer; NULL: none */
    unsigned char state;
    unsigned char kind;
    bool keep_alive, head_only, by_chunks;
    bool packed;       /* the body is gzip */
    bool takes_packed; /* the answer may be */
    bool became;       /* a peer has taken the stream */
    bool taking;       /* on_web_bytes() works in it */
    bool rested;       /* something was answered since the time for the next head was set */
} weft_web;

/* What a head asks for, and what becomes of it. */
typedef struct weft_asked {
    const weft_http_head *head;
    weft_bytes path, query, host, origin, protocol;
    weft_endpoint *endpoint; /* by whose rules */
    enum weft_web_kind kind;
    const struct weft_route *route;
    const weft_auth *auth; /* the token that was shown; NULL: none was needed or a certificate did */
    uint64_t session;      /* the login that stands for it; 0: none */
    bool own_origin;       /* the page that asks is one of ours */
    bool authenticated;
    const char *reason; /* of a refusal */
    char extra[200];    /* headers of a refusal */
} weft_asked;

/* ---- http_server.c ---- */

int weft__web_new(weft_conn *conn);
/* Harmless when there is none. */
void weft__web_free(weft_conn *conn);
/* The connection ends: nobody waits for the answers under way. */
void weft__web_abandon(weft_conn *conn);
/* The server stops: close now or after the answer under way. */
void weft__web_leave(weft_conn *conn, bool now);
/* Let a peer take the stream: what was answered before goes first, then head, then what the peer says. */
int weft__web_become(weft_conn *conn, const weft_conn_peer *how, weft_bytes head);

/* ---- http_server_head.c ---- */

/* Check host, origin, path, method and token. 0 fine, or the status to refuse with. */
int weft__web_judge(weft_conn *conn, const weft_http_head *head, weft_asked *ret);
/* Who is asking. See weft__conn_identity(). */
void weft__web_identity(weft_conn *conn, const weft_asked *asked, weft_origin *origin, char *name, weft_identity *ret);

/* ---- http_server_answer.c ---- */

/* Answer the request under way and be ready for the next. type may be NULL: no body. extra is more headers, each ending in
 * CRLF, or NULL. */
int weft__web_answer(weft_conn *conn, int status, const char *type, const char *extra, weft_bytes body);
/* Only the head of an answer, for one that comes in parts. length is the header that says how it ends, with its CRLF. */
int weft__web_head(weft_conn *conn, int status, const char *type, const char *extra, const char *length);
/* The answer is complete: ready for the next request, or done. */
void weft__web_answered(weft_conn *conn);
/* Refuse it with a JSON body that says why. */
void weft__web_refuse(weft_conn *conn, int status, const char *reason, const char *extra);
/* The Date header's value. */
const char *weft__server_date(weft_server *server);

/* ---- http_server_rpc.c, http_server_ws.c, sse.c, route.c ---- */

/* Hand a body to the connection's peer; answered now or later. body as in weft__peer_body(). */
void weft__web_rpc(weft_conn *conn, char *body, size_t len);
/* Make ready for a POST by this caller. */
int weft__web_rpc_prepare(weft_conn *conn, const weft_asked *asked);
/* If all of it is answered, answer. */
void weft__web_rpc_check(weft_conn *conn);
/* 0 it is a WebSocket now, or the status to refuse with (asked->reason, extra). */
int weft__web_upgrade(weft_conn *conn, weft_asked *asked);
int weft__web_events(weft_conn *conn, weft_asked *asked);
void weft__sse_keep_alive(weft_conn *conn);
/* From within a route's handler: the connection is an event stream, and on_open was told of its peer. <0: nothing has
 * changed, or -EPIPE: it has ended. */
int weft__web_stream(weft_conn *conn, const weft_identity *who, weft_peer **ret);

typedef struct weft_route {
    struct weft_route *next;
    char *method;
    char *path; /* a "*" at the end stands for anything */
    weft_route_handler *handler;
    void *ctx;
} weft_route;

/* Exact paths before patterns, the longest pattern first. NULL: none; *ret_allow then lists the methods the path has. */
const weft_route *weft__route_find(const weft_server *server, weft_bytes method, weft_bytes path, char *ret_allow,
                                   size_t size);
bool weft__route_public(const weft_server *server, weft_bytes path);
void weft__routes_done(weft_server *server);
/* Remember the head of a request for its route. */
int weft__http_new(weft_conn *conn, const weft_asked *asked, weft_http **ret);
void weft__http_call(weft_http *http, weft_bytes body);
/* The connection has gone. */
void weft__http_orphan(weft_http *http);

/* ---- http_stream.c ---- */

/* Is the request under way answered in parts? And is that an event stream, which never ends by itself? */
bool weft__http_streams(const weft_web *web);
bool weft__http_streams_events(const weft_web *web);
/* Some of it was sent: perhaps there is room again. */
void weft__http_sent(weft_conn *conn);

/* ---- small helpers ---- */

static inline bool weft__bytes_are(weft_bytes bytes, const char *text) {
    return bytes.len == strlen(text) && memcmp(bytes.data, text, bytes.len) == 0;
}

#endif
