/* Peers on real transports. An endpoint is a URL everywhere:
 *
 *     unix:/run/echo.sock   tcp://host:port   tls://host:port   ws://host:port/path   wss://...   http://host:port/path
 *     https://...   stdio:   exec:program arg "quoted arg"   mem:name (inside one loop)
 *
 * A server answers any number of endpoints with one service; a client is a weft_peer that a loop looks after. libuv does the
 * work and is not part of this interface. Nothing here prints or exits, and nothing installs a signal handler, except
 * weft_serve(), weft_server_run() and weft_signal_new(). What may be called from which thread: <weft/loop.h>. */
#ifndef WEFT_NET_H
#define WEFT_NET_H

#include <weft/loop.h>
#include <weft/peer.h>
#include <weft/sign.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- TLS ---- */

/* PEM files. A server needs cert and key; with ca it demands a client certificate signed by it (mTLS). A client verifies the
 * server against ca or, when NULL, the system's roots, and its name against the host. */
typedef struct weft_tls_opts {
    const char *cert;
    const char *key;
    const char *ca;
    const char *server_name; /* client: the name to expect instead of the URL's host */
    bool insecure;           /* client: do not verify; for tests and first contact only */
    WEFT_ROOM(8);
} weft_tls_opts;

/* ---- server ---- */

typedef struct weft_header {
    const char *name; /* NULL ends a list */
    const char *value;
} weft_header;

typedef struct weft_server weft_server;
typedef struct weft_http weft_http; /* one HTTP request being answered by a route */

typedef struct weft_token {
    const char *token;           /* NULL without a digest ends a list */
    const char *name;            /* for identity.name */
    const char *scopes;          /* for identity.scopes; NULL: "*" */
    const unsigned char *digest; /* the token's SHA-256, 32 bytes, where the token itself is not known any more */
    int64_t expires_at; /* seconds since 1970; from then on it is refused and its connections are closed. 0: never */
    WEFT_ROOM(4);
} weft_token;

/* How one endpoint is served. Zero means the default. */
typedef struct weft_listen_opts {
    weft_tls_opts tls;
    const weft_token *tokens;   /* network transports: one of these must be shown, or a client certificate where tls.ca
                                   is set; NULL: no token is needed. Copied; of a token only its digest is kept */
    const char *const *hosts;   /* Host names accepted besides loopback's, NULL-terminated; "*" accepts any. Copied */
    const char *const *origins; /* Origins accepted besides none and the server's own; "*" accepts any. Copied */
    const char *dialect;        /* what connections speak until something decides otherwise */
    size_t max_body;            /* an inbound message, where that is less than the service's limits: 0 no other limit */
    size_t dialect_max_body;    /* the same, until something decides that the connection speaks another dialect */
    const char *id_header;      /* WebSocket: the answer to the handshake names the connection in this header, with 32
                                   random hexadecimal digits. At most 64 bytes; NULL: no such header. Copied */
    bool token_later;           /* WebSocket: who shows no token at all may connect, is answered 401 to every method without
                                   WEFT_ROW_OPEN, and has auth_ms to show one there */
    bool any_uid;               /* unix: accept peers of other users too */
    weft_style style;
    bool no_batch;
    bool lenient;
    WEFT_ROOM(8);
} weft_listen_opts;

typedef struct weft_server_opts {
    weft_service *service;            /* referenced; required */
    size_t max_connections;           /* from the network: 10,000; and as many on Unix sockets */
    size_t max_connections_per_uid;   /* on Unix sockets: 4,096 */
    size_t max_strangers;             /* of max_connections, those that have not shown a token where one is asked for:
                                         1,024, at most half. When all these places are taken the oldest goes */
    size_t max_strangers_per_address; /* of one address, of IPv6 one /64: 64; then its oldest goes */
    size_t max_memory;                /* bytes in the buffers of all connections: 512 MiB; then the largest is closed,
                                         strangers first */
    int64_t auth_ms;                  /* time to show a token: 5 s */
    int64_t head_ms;                  /* time for an HTTP head: 10 s */
    int64_t body_ms;                  /* an HTTP body must bring 1 KiB a second, looked at this often: 60 s */
    int64_t grace_ms;                 /* graceful stop: 10 s */
    void *data;                       /* also weft_peer_data() of the server's peers */
    /* A connection is ready for messages, or has ended. data is the server's, here and in the next two. May be NULL. */
    void (*on_open)(weft_server *server, weft_peer *peer, void *data);
    void (*on_close)(weft_server *server, weft_peer *peer, int why, void *data);
    /* A client that was reading too slowly has caught up: go on streaming to it. May be NULL. */
    void (*on_drain)(weft_server *server, weft_peer *peer, void *data);
    /* Something a person should read: a refused connection, a failed accept. One line. May be NULL. */
    void (*on_note)(weft_server *server, const char *line, void *data);
    /* Every body before it is looked at as JSON; see weft_peer_opts. data is the peer's. May be NULL. */
    bool (*on_raw)(weft_peer *peer, weft_bytes body, bool binary, void *data);
    /* The client will send no more. true: it may still listen, keep the connection until weft_peer_free(). NULL or false:
     * what it asked for is answered, then it is closed. data is the peer's. */
    bool (*on_eof)(weft_peer *peer, void *data);
    WEFT_ROOM(8);
} weft_server_opts;

WEFT_API int weft_server_new(weft_loop *loop, const weft_server_opts *opts, weft_server **ret);
/* Serve one more endpoint. -EADDRINUSE: somebody answers there; a stale Unix socket is replaced. Port 0 takes a free port.
 * -ESHUTDOWN: the server was stopped. opts may be NULL. */
WEFT_API int weft_server_listen(weft_server *server, const char *url, const weft_listen_opts *opts);
/* Serve this URL no more, as weft_server_url() has it, nor any other on the same socket; who is connected there is closed.
 * The memory of an endpoint is kept until the server is freed. -ENOENT: there is none. */
WEFT_API int weft_server_unlisten(weft_server *server, const char *url);
/* Replace the Host names and the origins that all endpoints accept, as in weft_listen_opts. -ENOMEM: nothing has changed. */
WEFT_API int weft_server_allow(weft_server *server, const char *const *hosts, const char *const *origins);
/* Replace the tokens of all endpoints that ask for one; an empty list lets nobody in. Connections that showed a token which
 * is not among them any more, or has another name or other scopes now, are closed before the loop waits again. -ENOMEM:
 * nothing has changed. */
WEFT_API int weft_server_tokens(weft_server *server, const weft_token *tokens);
/* The endpoint's URL with the port that was taken, in the order of weft_server_listen(); NULL past the end. Borrowed. */
WEFT_API const char *weft_server_url(const weft_server *server, size_t index);
/* Stop accepting: who connects is refused, who is connected stays. weft_server_stop() ends these too. */
WEFT_API void weft_server_refuse(weft_server *server);
/* Make the Unix sockets again whose files somebody has removed or replaced by something that is no socket in use;
 * connections stay. 1 some were made, 0 none was missing; -EADDRINUSE another listens there by now, -EAGAIN it is too soon
 * after the last time, or why one cannot be made. */
WEFT_API int weft_server_renew(weft_server *server);
/* Why the last weft_server_listen() failed, as a sentence ("unix:/run/x.sock: somebody answers there already"); "" if none
 * has. Borrowed: the next one overwrites it. */
WEFT_API const char *weft_server_trouble(const weft_server *server);
/* Run the server's loop until SIGINT or SIGTERM, then stop gracefully; a second signal ends it at once. weft_server_stop()
 * from a callback ends it, too, whatever else is on the loop. 0, at once if it has stopped already, or <0: the signals
 * cannot be handled; -EDEADLK from a callback of this loop. The server is still to be freed. */
WEFT_API int weft_server_run(weft_server *server);
/* Stop accepting, let open requests finish for at most grace_ms, say good-bye, close. on_stopped may be NULL. A server that
 * stops already, or has stopped, forgets this on_stopped. It cannot listen again (-ESHUTDOWN). */
WEFT_API void weft_server_stop(weft_server *server, void (*on_stopped)(weft_server *server, void *ctx), void *ctx);
/* Close everything at once and free. */
WEFT_API weft_server *weft_server_free(weft_server *server);
WEFT_API void weft_server_freep(weft_server **server);

WEFT_API size_t weft_server_clients(const weft_server *server);
/* Bytes in the buffers of all connections, which max_memory limits. */
WEFT_API size_t weft_server_memory(const weft_server *server);
WEFT_API weft_service *weft_server_service(const weft_server *server);
WEFT_API weft_loop *weft_server_loop(const weft_server *server);
/* Tell every connected client, or those that keep() chooses. Encoded once. The number told, or <0. */
WEFT_API int weft_server_broadcast(weft_server *server, const char *method, weft_val params,
                                   bool (*keep)(weft_peer *peer, void *ctx), void *ctx);

/* ---- HTTP routes on ws:// and http:// endpoints ---- */

/* By default a path answers what its URL's scheme says: ws:// upgrades, http:// takes POSTs of messages and batches and
 * serves notifications as server-sent events to GET with Accept: text/event-stream; /health is always there. Two endpoints
 * with one host and port share the listener and are told apart by path. */
typedef void weft_route_handler(weft_http *http, void *ctx);
/* A path that ends with "*" stands for everything that begins like it. Where an endpoint has tokens, routes need one too. */
WEFT_API int weft_server_route(weft_server *server, const char *method, const char *path, weft_route_handler *handler,
                               void *ctx);
/* This path needs no token: a login page. weft_http_identity() says whether one was shown. */
WEFT_API int weft_server_public(weft_server *server, const char *path);
/* Pages log in: GET /login is a form for a token, POST /login takes it and gives the browser a cookie in exchange, POST
 * /logout ends that. The cookie is a random name of a session that only this server knows, by its digest and in memory; it
 * counts as the token did, and no longer than that. It is HttpOnly and SameSite=Strict, and Secure with TLS. A request with
 * it that is not a GET or HEAD, or that opens a WebSocket, must come from a page of this server itself (Origin or
 * Sec-Fetch-Site). */
typedef struct weft_login_opts {
    const char *home;    /* the page to go to after logging in; NULL: /login, which then says who is logged in. Copied */
    int64_t session_s;   /* how long a session lasts: 7 days */
    size_t max_sessions; /* 256; then the oldest ends */
    /* Sessions that shall outlive the server: it says what to keep whenever one begins or ends, and is told when it starts
     * again. The text has digests only: nobody can log in with it. Both may be NULL. */
    const char *kept; /* what on_keep was told last; lines that make no sense are passed over. Not kept itself */
    void (*on_keep)(void *ctx, const char *text);
    /* May this caller log in by a code? What it is asked about may still be wrong. NULL: everybody may. */
    bool (*may_use_code)(void *ctx, const weft_identity *who);
    void *ctx;
    WEFT_ROOM(8);
} weft_login_opts;
/* opts may be NULL. -EALREADY. */
WEFT_API int weft_server_login(weft_server *server, const weft_login_opts *opts);
/* A code that logs one page in, once: GET /login?code=CODE gives the browser a session as the token of this name would. 128
 * random bits as hexadecimal digits, kept only as a digest; counts for so many milliseconds, and not after the token's end.
 * At most 16 wait at a time, then the oldest is forgotten. -ENOENT: no endpoint asks for a token of this name; -ENOTCONN:
 * pages cannot log in here; -EIO: no random bytes. */
#define WEFT_LOGIN_CODE 33
WEFT_API int weft_server_login_code(weft_server *server, const char *token_name, int64_t for_ms, char ret[WEFT_LOGIN_CODE]);
/* What was asked. All of it is borrowed until http is taken; what is not there is NULL or has no bytes, a query is "". */
WEFT_API const char *weft_http_method(const weft_http *http);
WEFT_API const char *weft_http_path(const weft_http *http);
/* Without a token that was shown in it, so that it can be logged. */
WEFT_API const char *weft_http_query(const weft_http *http);
WEFT_API const char *weft_http_header(const weft_http *http, const char *name);
WEFT_API weft_bytes weft_http_body(const weft_http *http);
WEFT_API const weft_identity *weft_http_identity(const weft_http *http);
/* Answer; http is taken. type is the Content-Type. body is copied; 204 and 304 have none. -EINVAL: a status outside 200 to
 * 599 or a type with a control character; the client got a 500. -EALREADY: weft_http_begin() had begun another answer, which
 * ends with this. -EPIPE the connection has gone. A HEAD is answered like a GET; its body is left out. */
WEFT_API int weft_http_answer(weft_http *http, int status, const char *type, weft_bytes body);

typedef struct weft_http_answer_opts {
    int status;                 /* 0: 200 */
    const char *type;           /* Content-Type; NULL: none is said */
    const weft_header *headers; /* more of them; NULL: none. Not those that say how long the answer is and how it ends:
                                   Content-Length, Transfer-Encoding, Connection, Date, Content-Type, ETag, Cache-Control */
    const char *cache;          /* Cache-Control; NULL: none is said */
    const char *etag;           /* names this content: a digest or a version, without quotes. A client that shows that it has
                                   it (If-None-Match) is answered 304 without a body. NULL: none */
    weft_bytes body;            /* copied */
    WEFT_ROOM(8);
} weft_http_answer_opts;
/* The same with headers. -EINVAL: also a header without a value, or a header or an etag with a character that does not
 * belong there; the client got a 500. opts may be NULL. */
WEFT_API int weft_http_answer_with(weft_http *http, const weft_http_answer_opts *opts);

/* Answer in parts: begin, write as often as there is something, end. In HTTP/1.1 the parts are chunks; with the type
 * "text/event-stream" they are server-sent events. The callbacks may be NULL and never run inside one of these calls. */
typedef struct weft_http_stream {
    /* So much has been sent that there is room again. */
    void (*on_drain)(weft_http *http, void *ctx);
    /* The connection has ended, also when the client has only ended its half. weft_http_end() is still to be called, here or
     * later. */
    void (*on_gone)(weft_http *http, void *ctx);
    void *ctx;
    WEFT_ROOM(4);
} weft_http_stream;
/* Send the head; opts->body is the first part. http stays the caller's, until weft_http_end() or, if this fails, until
 * weft_http_answer(). -EINVAL, -ENOMEM as above, and nothing was sent; -EALREADY it has begun; -EPIPE the connection has
 * gone. opts and stream may be NULL. */
WEFT_API int weft_http_begin(weft_http *http, const weft_http_answer_opts *opts, const weft_http_stream *stream);
/* Send a part, which is copied. 0; 1 queued, and more than 1 MiB waits to be sent: wait for on_drain. -ENOBUFS 8 MiB wait,
 * -ENOMEM: nothing was queued. -EINVAL it has not begun; -EPIPE the connection has gone. */
WEFT_API int weft_http_write(weft_http *http, weft_bytes part);
/* The answer is complete; http is taken. -EINVAL it had not begun: the client got a 500. */
WEFT_API int weft_http_end(weft_http *http);

/* ---- client ---- */

typedef enum weft_peer_state {
    WEFT_PEER_CONNECTING,
    WEFT_PEER_CONNECTED,
    WEFT_PEER_DISCONNECTED, /* will try again, unless reconnect is off */
    WEFT_PEER_CLOSED,
} weft_peer_state;

/* The head of an answer that a client over HTTP got. Borrowed until the callback returns. */
typedef struct weft_http_reply weft_http_reply;
WEFT_API int weft_http_reply_status(const weft_http_reply *reply);
/* The value of a header, case does not matter; {NULL, 0}: it is not there. */
WEFT_API weft_bytes weft_http_reply_header(const weft_http_reply *reply, const char *name);

/* Over HTTP all calls of a peer share one connection: each is a POST, sent at once, and the answers come in the same order.
 * One that takes long holds up those behind it. For calls side by side take a peer each, or ws://. */
typedef struct weft_connect_opts {
    weft_service *service;       /* methods the other side may call; NULL: none */
    const weft_framing *framing; /* byte streams: NULL is NDJSON */
    weft_tls_opts tls;
    const char *token;             /* shown as Authorization: Bearer, where the transport has HTTP */
    const weft_sign_key *sign_key; /* sign every call and notification with it: <weft/sign.h>; NULL: none. Copied. It is
                                   signed when it is made: one that waits long for a connection is too old when it arrives */
    int64_t timeout_ms;            /* for connecting: 10 s; <0 none */
    bool reconnect;                /* keep trying: after 100 ms, twice as long each time, at most 16 s, +-50 %; a refusal
                                      (-EACCES, -EOPNOTSUPP) is final */
    bool events;                   /* http: also listen to server-sent events, on a connection of their own */
    const weft_header *headers; /* http and ws: sent with every request; NULL: none. Not those of the protocol itself: Host,
                                   Content-Length, Content-Type, Accept, Connection, Upgrade, Sec-WebSocket-*. Copied */
    bool no_deflate;            /* WebSocket: do not offer compression */
    bool gzip;                  /* http, and byte streams with Content-Length headers: say that we read gzip, and send it for
                                   messages of 1 KiB and more once the other side has said that it does. Not for servers that
                                   would compress server-sent events */
    weft_style style;
    bool no_batch; /* refuse batches with one -32600 (ACP, MCP) */
    bool lenient;
    bool extras;
    bool quiet_stderr; /* exec: the child's stderr goes to /dev/null, not to ours */
    bool same_user;    /* unix: only if the process that listens is this user's or root's; otherwise -EACCES */
    void *data;
    void (*on_state)(weft_peer *peer, weft_peer_state state, int why, void *data);
    void (*on_notification)(weft_peer *peer, const char *method, const weft_json *params, void *data);
    void (*on_drain)(weft_peer *peer, void *data);
    /* http: an answer begins. Its messages come afterwards, one or, as server-sent events, any number. Redirects are not
     * followed. */
    void (*on_reply)(weft_peer *peer, const weft_http_reply *reply, void *data);
    bool (*on_raw)(weft_peer *peer, weft_bytes body, bool binary, void *data); /* see weft_peer_opts */
    bool (*on_eof)(weft_peer *peer, void *data); /* the other side will send no more; true: keep it, see weft_server_opts */
    WEFT_ROOM(8);
} weft_connect_opts;

/* Why something did not work, as a sentence; untouched on success. */
#define WEFT_TROUBLE_MAX 256
typedef struct weft_trouble {
    char text[WEFT_TROUBLE_MAX];
} weft_trouble;

/* The last failure of a client's connection as a sentence ("the server refused the token (401 Unauthorized)"); "" if there
 * was none. Borrowed: the next attempt overwrites it. */
WEFT_API const char *weft_peer_trouble(const weft_peer *peer);

/* Other headers than those of weft_connect_opts, for what is sent from now on: a session's id that the server gave, or
 * around one call. -EINVAL: a header that cannot be; -ENOTSUP: this peer is no client over HTTP. Nothing has changed then.
 */
WEFT_API int weft_peer_set_headers(weft_peer *peer, const weft_header *headers);
/* http: listen to server-sent events from now on, with the headers there are now: what weft_connect_opts.events does from
 * the start, for a server that first gives a session's id (MCP). 0 also when it listens already. A server that refuses has
 * no events: on_reply has heard its status, and the client goes on without. -ENOTSUP: this peer is no client over HTTP;
 * -ENOTCONN: it is closed. */
WEFT_API int weft_peer_listen(weft_peer *peer);

/* Connect and wait until it is ready. The peer brings a loop of its own; only the blocking functions below drive it. opts
 * and ret_trouble, which says why there is no peer, may be NULL, here and below. */
WEFT_API int weft_connect(const char *url, weft_peer **ret);
WEFT_API int weft_connect_with(const char *url, const weft_connect_opts *opts, weft_peer **ret, weft_trouble *ret_trouble);
/* Begin connecting on a loop; on_state says how it went, always from the loop. Calls made before are sent once connected.
 * When the connection is lost, open calls complete with -ECONNRESET; calls made while there is none wait for the next, or
 * complete with -ENOTCONN when there will be none. weft_peer_free() closes it, the loop finishes the closing. <0 and
 * ret_trouble: what can be said at once, a bad URL; what comes later is asked from weft_peer_trouble(). */
WEFT_API int weft_connect_on(weft_loop *loop, const char *url, const weft_connect_opts *opts, weft_peer **ret,
                             weft_trouble *ret_trouble);
/* Call and wait. ret may be NULL. Only on peers from weft_connect() and weft_connect_with(); -EDEADLK inside a
 * callback of one. On failure ret is as it was. */
WEFT_API int weft_call(weft_peer *peer, const char *method, weft_val params, weft_answer *ret);
WEFT_API int weft_call_with(weft_peer *peer, const char *method, weft_val params, const weft_call_opts *opts,
                            weft_answer *ret);
/* Deliver what arrives for at most this long (-1 for ever). 1 something was delivered, 0 time is up, <0 the connection
 * ended. */
WEFT_API int weft_wait(weft_peer *peer, int64_t timeout_ms);
/* Send everything queued, or fail. */
WEFT_API int weft_flush(weft_peer *peer, int64_t timeout_ms);
WEFT_API weft_loop *weft_peer_loop(const weft_peer *peer);

/* ---- the shortest server ---- */

/* Serve methods at an endpoint until SIGINT or SIGTERM; then stop gracefully. opts may be NULL. */
WEFT_API int weft_serve(const char *url, const weft_method *methods, const weft_service_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
