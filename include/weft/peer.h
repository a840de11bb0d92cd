/* A JSON-RPC 2.0 peer without I/O: no descriptor, no clock, no randomness. Both sides call, notify, stream and cancel.
 *
 * Bytes, time and ids are arguments, so that the same peer runs on any loop and under a test's virtual time:
 *
 *     r   = weft_peer_feed(peer, data, len, now_ms);     0 go on, <0 send what is left and close
 *     out = weft_peer_output(peer);                      borrowed until the next call on this peer
 *           weft_peer_sent(peer, n);
 *           weft_peer_tick(peer, now_ms);                not before weft_peer_deadline(peer)
 *
 * Callbacks may queue, never feed. A completion never runs inside the call that started it, and it runs exactly once.
 *
 * weft_connect() and the server in <weft/net.h> do the I/O for you. Nothing here is thread-safe: one peer, one thread. */
#ifndef WEFT_PEER_H
#define WEFT_PEER_H

#include <weft/gate.h>
#include <weft/method.h>
#include <weft/schema.h>
#include <weft/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the service: methods and limits shared by any number of peers ---- */

typedef struct weft_service weft_service;

/* Zero means the default in the comment. */
typedef struct weft_limits {
    size_t max_body;          /* an inbound message, also when inflated: 32 MiB; never over 64 MiB */
    size_t max_body_stranger; /* the same before authentication: 1 MiB */
    size_t max_batch;         /* items: 1000 */
    size_t max_answer;        /* bytes of one answer or of a batch's answers: 25 MiB */
    size_t out_soft;          /* queued output at which streams pause and reading stops: 1 MiB */
    size_t out_hard;          /* queued output at which the connection is closed: 8 MiB */
    size_t max_calls;         /* our calls waiting for an answer: 65,536 */
    size_t max_requests;      /* their requests waiting for ours: 65,536 */
    size_t max_idempotent;    /* stored answers: 4096, and 16 MiB of them */
    int64_t call_timeout_ms;  /* 30 s; <0 none */
    int64_t ping_ms;          /* silence after which a framing that can ping does: 25 s; <0 never */
    int64_t pong_ms;          /* how long the answer may take: 10 s */
    int64_t idempotent_ms;    /* how long an answer is kept for a retry: 10 min */
    int64_t rate_per_minute;  /* requests of one network client, not on Unix sockets and stdio: 0 no limit. Over it they are
                                 answered 429, or with the code of the row's error with the reason "rateLimited" */
    WEFT_ROOM(8);
} weft_limits;

typedef struct weft_service_opts {
    const weft_method *methods; /* ends with a NULL name; borrowed for the service's life */
    void *ctx;                  /* for handlers whose row has none */
    const char *title;          /* for rpc.discover */
    const char *version;
    const char *description;          /* for rpc.discover, Markdown; NULL: none */
    const weft_method *notifications; /* what the service tells its clients, for rpc.discover (x-notifications): rows without
                                         a handler. Ends with a NULL name; borrowed for the service's life; NULL: none */
    weft_limits limits;
    const weft_alloc *alloc;
    /* May this caller call this method? NULL: its identity must have the row's scope. 0 yes, -EACCES forbidden (answered
     * 403), -EPERM not authenticated (answered 401). */
    int (*authorize)(void *ctx, const weft_identity *who, const weft_method *method);
    /* Asked before each handler and told of each answer: <weft/gate.h>. Ends with NULL; borrowed for the service's life. */
    const weft_gate *const *gates;
    /* The clock of now_ms in microseconds, to measure how long requests take. NULL: milliseconds will do. */
    int64_t (*now_us)(void *ctx);
    /* Keep figures about each method: weft_service_measures(). They want now_us. */
    bool measure;
    /* A weft_service_call() is over where none was: call weft_service_deliver() soon, not from here. Not used once the
     * service belongs to a weft_server. */
    void (*on_ready)(void *ctx);
    /* Check each result against the schema of its row, and answer -32603 (data.reason "invalidResult") in place of one that
     * does not fit. It costs more than most handlers do: for tests and debugging. */
    bool check_results;
    /* Error messages name what they are about, as AIWG's do: "Method not found: NAME", "Missing required parameter: NAME".
     * Codes and data are the same. */
    bool named_errors;
    /* Every message in and out, for a log. NULL: none. Tokens and auth members are not removed here. */
    void (*on_message)(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text);
    WEFT_ROOM(8);
} weft_service_opts;

/* opts may be NULL. Errors as of weft_service_add(), for the first row that is refused; notifications are looked at, too. */
WEFT_API int weft_service_new(const weft_service_opts *opts, weft_service **ret);
WEFT_API weft_service *weft_service_ref(weft_service *service);
WEFT_API weft_service *weft_service_unref(weft_service *service);
WEFT_API void weft_service_freep(weft_service **service); /* the same, for WEFT_AUTO() */
/* Add or remove a method while peers are connected. The row is borrowed and must outlive its registration.
 * -EEXIST, -ENOENT, -EMSGSIZE (over WEFT_PARAMS_MAX or WEFT_PARAMS_ROWS). -EINVAL: it has no name or no handler, a name that
 * the protocol keeps for itself ("rpc."), a params_schema that cannot be compiled, a result or an example that is no JSON,
 * or an example whose params are neither an array nor an object. */
WEFT_API int weft_service_add(weft_service *service, const weft_method *method);
WEFT_API int weft_service_remove(weft_service *service, const char *name);
WEFT_API const weft_method *weft_service_find(weft_service *service, const char *name);
/* Change the limits while peers are connected. A peer keeps its max_body until its identity changes; a rate begins to count
 * for clients that connect after there was none. */
WEFT_API void weft_service_set_limits(weft_service *service, const weft_limits *limits);
/* The OpenRPC 1.2.6 document of the visible methods. Owned: free it with weft_text_free() and the service's allocator. It
 * ends in NUL; ret_len may be NULL. rpc.discover answers the same. */
WEFT_API int weft_service_discover(weft_service *service, char **ret, size_t *ret_len);

/* Counters since the service was made. */
typedef struct weft_stats {
    uint64_t requests, notifications, batches, answers, errors, calls;
    uint64_t parse_errors, stray_answers, too_large, rate_limited, cancelled, expired;
    uint64_t bytes_in, bytes_out;
    uint64_t notifications_out; /* that we sent */
    uint64_t replayed;          /* answers that were kept and given again to a retry */
    uint64_t open;              /* requests that wait for their answer now */
} weft_stats;
WEFT_API const weft_stats *weft_service_stats(const weft_service *service);
/* By method and by error: <weft/stats.h>. NULL: opts.measure was not set. Borrowed; it changes with every message. */
WEFT_API const weft_measures *weft_service_measures(weft_service *service);

/* ---- the peer ---- */

/* How messages lie in the byte stream. */
typedef struct weft_framing weft_framing;
WEFT_API extern const weft_framing weft_ndjson;           /* one text per line */
WEFT_API extern const weft_framing weft_content_length;   /* LSP's headers */
WEFT_API extern const weft_framing weft_detect;           /* either: decided by the first bytes, answered in kind */
WEFT_API extern const weft_framing weft_websocket;        /* RFC 6455 after the handshake, our side is the server */
WEFT_API extern const weft_framing weft_websocket_client; /* and our side is the client */

/* Under which names cancelling and progress travel. Incoming, all of them are understood. */
typedef enum weft_style {
    WEFT_STYLE_LSP, /* $/cancelRequest {id}, $/progress {token, value} */
    WEFT_STYLE_ACP, /* $/cancel_request {requestId}, $/progress */
    WEFT_STYLE_MCP, /* notifications/cancelled {requestId}, notifications/progress {progressToken, ...} */
} weft_style;

typedef struct weft_peer_opts {
    const weft_framing *framing;   /* NULL: weft_detect when serving bytes, otherwise as the transport has it */
    const weft_identity *identity; /* copied; NULL: nobody in particular, unauthenticated */
    weft_style style;
    bool no_batch;    /* refuse batches with one -32600 (ACP, MCP) */
    bool lenient;     /* accept messages without "jsonrpc" */
    bool eager;       /* lines: act on what is whole although its line has not ended; some servers end no line */
    bool locked;      /* answer 401 to every method without WEFT_ROW_OPEN until the identity is authenticated */
    bool extras;      /* the other side knows params._meta["weft/deadlineMs"] and ["weft/idempotencyKey"] */
    bool gzip;        /* Content-Length and HTTP: say that we read gzip. It is used from when the other side has said so */
    unsigned deflate; /* WebSocket: permessage-deflate was negotiated; 9..15 is the window for what we send */
    size_t max_body;  /* an inbound message, where that is less than the service's limits; 0: no other limit */
    size_t dialect_max_body; /* the same, until identity.dialect changes */
    uint64_t seed;           /* unpredictable; masks of a WebSocket client come from it */
    /* Sign what we call and notify: the value of its auth member as text into ret, for a message with these parts as they
     * stand in it. The text's length, or <0: then nothing is sent. NULL: nothing is signed. <weft/sign.h> */
    int (*sign)(void *ctx, weft_bytes method, weft_bytes id, weft_bytes params, char *ret, size_t size);
    void *sign_ctx;
    void *data; /* yours: weft_peer_data() */
    /* A notification that no method row takes. Borrowed. */
    void (*on_notification)(weft_peer *peer, const char *method, const weft_json *params, void *data);
    /* Every body before it is looked at as JSON; true: it was taken, and is not. For protocols that are not JSON-RPC. */
    bool (*on_raw)(weft_peer *peer, weft_bytes body, bool binary, void *data);
    /* Output appeared where there was none: flush soon. Never called from feed or tick. */
    void (*on_output)(weft_peer *peer, void *data);
    /* Queued output fell below the soft limit again after weft_peer_full(). Runs at the end of weft_peer_feed() or
     * weft_peer_tick(), when what came in meanwhile has had its turn: who streams here can be cancelled. */
    void (*on_drain)(weft_peer *peer, void *data);
    WEFT_ROOM(8);
} weft_peer_opts;

/* service may be NULL for a peer that only calls; otherwise the peer holds a reference. */
WEFT_API int weft_peer_new(weft_service *service, const weft_peer_opts *opts, weft_peer **ret);
/* Complete every open call with -ECONNRESET, tell open requests -EPIPE, free everything. Safe inside callbacks. */
WEFT_API weft_peer *weft_peer_free(weft_peer *peer);
WEFT_API void weft_peer_freep(weft_peer **peer);

/* Bytes from the other side. 0 go on; -ECONNRESET it said good-bye, other <0 it broke the protocol: in both cases send
 * what output there is, then close. Bytes are kept unread while the output is over the soft limit (weft_peer_full()) or it
 * is paused; weft_peer_deadline() says when they can be taken, and weft_peer_tick() takes them. */
WEFT_API int weft_peer_feed(weft_peer *peer, const void *data, size_t len, int64_t now_ms);
/* There will be no more bytes. 0: it ended between messages; -EPROTO in the middle of one. Open calls fail -ECONNRESET;
 * open requests may still be answered, unless weft_peer_free() comes first. */
WEFT_API int weft_peer_eof(weft_peer *peer);
WEFT_API weft_bytes weft_peer_output(weft_peer *peer);
/* So many bytes of the output have been sent. */
WEFT_API void weft_peer_sent(weft_peer *peer, size_t n);
/* Do what is due: calls and requests expire, input that was kept unread is taken, and after it on_drain runs. 0 go on;
 * -ETIMEDOUT: the other side is dead, close; other <0 as of weft_peer_feed(). */
WEFT_API int weft_peer_tick(weft_peer *peer, int64_t now_ms);
/* When weft_peer_tick() is next needed; INT64_MAX: never. */
WEFT_API int64_t weft_peer_deadline(const weft_peer *peer);
/* Say good-bye if the framing has a word for it (WebSocket: a close frame with this code). */
WEFT_API int weft_peer_close(weft_peer *peer, int code, const char *reason);

/* Queue bytes as one message of the framing, whatever they are. binary matters on a WebSocket only. */
WEFT_API int weft_peer_send_raw(weft_peer *peer, weft_bytes body, bool binary);

/* Output is over the soft limit: do not read from this peer, do not stream to it. */
WEFT_API bool weft_peer_full(const weft_peer *peer);
/* Take no more messages from it for a while: bytes that come are kept unread, and a transport stops reading. For a program
 * that passes them on to somebody slower. */
WEFT_API void weft_peer_pause(weft_peer *peer, bool paused);
/* Requests of theirs that we have not answered yet. */
WEFT_API size_t weft_peer_open_requests(const weft_peer *peer);
WEFT_API size_t weft_peer_open_calls(const weft_peer *peer);
WEFT_API void *weft_peer_data(const weft_peer *peer);
WEFT_API void weft_peer_set_data(weft_peer *peer, void *data);
WEFT_API const weft_identity *weft_peer_identity(const weft_peer *peer);
/* Who it turned out to be, once a token was shown or a dialect chosen. Copied. */
WEFT_API int weft_peer_set_identity(weft_peer *peer, const weft_identity *identity);
/* Under which names cancelling and progress travel from now on, once initialize has settled it. */
WEFT_API void weft_peer_set_style(weft_peer *peer, weft_style style);
/* Never NULL: a peer that was made without one has an empty one. Borrowed. */
WEFT_API weft_service *weft_peer_service(const weft_peer *peer);

/* ---- calling ---- */

typedef struct weft_error {
    int code;
    const char *message;
    weft_json data; /* absent if there is none */
} weft_error;

/* What came back. Exactly one of result and error is there. What you hand to weft_call() is all zero to begin with, and may
 * be used again for the next call: that forgets the answer before. */
typedef struct weft_answer {
    const weft_json *result;
    const weft_error *error;
    weft_doc *doc_; /* ours */
    weft_json result_;
    weft_error error_;
    WEFT_ROOM(2);
} weft_answer;
/* Free what a blocking weft_call() put there. */
WEFT_API void weft_answer_done(weft_answer *answer);
#if defined(__GNUC__)
#define WEFT_ANSWER __attribute__((cleanup(weft_answer_done))) weft_answer
#endif

/* r is 0 and answer says what the other side said, or r < 0 and answer is NULL: -ETIMEDOUT, -ECANCELED, -ECONNRESET,
 * -EBADMSG (the answer was no answer). Borrowed. */
typedef void weft_on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx);

typedef struct weft_call_opts {
    weft_on_answer *on_answer; /* NULL: nobody is told; weft_call() has its own */
    void *ctx;
    int64_t timeout_ms; /* 0: the service's default; <0: none */
    /* Parts sent ahead of the answer; asks for them in the request (needs named or no params). Restarts the timeout. */
    void (*on_part)(weft_peer *peer, const weft_json *part, void *ctx);
    const char *idempotency_key; /* sent only to peers with extras; to them it needs named or no params */
    /* What the result must be; borrowed until on_answer has run. One that does not fit: on_answer gets -EBADMSG, or -E2BIG
     * if it is too much to check. */
    const weft_schema *result_schema;
    /* Why it does not fit, just before on_answer. Borrowed. NULL: not told. */
    void (*on_misfit)(weft_peer *peer, const weft_schema_report *report, void *ctx);
    bool send_deadline; /* tell the other side how long we wait; likewise */
    WEFT_ROOM(8);
} weft_call_opts;

/* Queue a request. on_answer runs exactly once: with a result, with the peer's error, or with why there is none; -EMSGSIZE:
 * the answer was a line over max_body (where its id comes behind the result, only if no other call is open).
 * params is an object or an array; weft_none(), null and an absent value are left out. -EINVAL: params of another kind or
 * that cannot be written, or no method; -ENOBUFS: too many calls open or output over the hard limit. Nothing was sent then,
 * and on_answer will not run. opts may be NULL: nobody is told of the answer. */
WEFT_API int weft_call_start(weft_peer *peer, const char *method, weft_val params, const weft_call_opts *opts,
                             int64_t *ret_id);
/* Give up a call: on_answer runs with -ECANCELED before this returns, the other side is told. -ENOENT: it is over already.
 */
WEFT_API int weft_cancel(weft_peer *peer, int64_t id);
/* Queue a notification. -ENOTSUP on a transport that carries answers only (an HTTP POST). */
WEFT_API int weft_notify(weft_peer *peer, const char *method, weft_val params);

/* Several calls and notifications in one message. Each call completes on its own. Send or free it before its peer. */
typedef struct weft_batch weft_batch;
WEFT_API int weft_batch_new(weft_peer *peer, weft_batch **ret);
WEFT_API int weft_batch_call(weft_batch *batch, const char *method, weft_val params, const weft_call_opts *opts,
                             int64_t *ret_id);
WEFT_API int weft_batch_notify(weft_batch *batch, const char *method, weft_val params);
/* Queue it. The batch is taken. On failure its calls complete with the same error. An empty batch sends nothing. */
WEFT_API int weft_batch_send(weft_batch *batch);
WEFT_API weft_batch *weft_batch_free(weft_batch *batch);
WEFT_API void weft_batch_freep(weft_batch **batch);

/* Send the same notification to many: encoded once per framing. */
typedef struct weft_shared weft_shared;
WEFT_API int weft_shared_new(weft_service *service, const char *method, weft_val params, weft_shared **ret);
WEFT_API int weft_shared_send(weft_shared *shared, weft_peer *peer);
WEFT_API weft_shared *weft_shared_free(weft_shared *shared);
WEFT_API void weft_shared_freep(weft_shared **shared);

/* ---- calling a row without a connection ---- */

/* What came of weft_service_call(): r is 0 and answer is what a peer would have been sent, or r < 0 and answer is NULL:
 * -ECANCELED, -ENOMEM. Borrowed. */
typedef void weft_on_called(void *ctx, int r, const weft_answer *answer);
/* Call a method of this service as if who (copied; NULL: nobody in particular) had sent the request: the same gates, scope,
 * rate limit and checks, the same answers. For REST, rules, timers. The handler may run within this call; on_called, which
 * is required, runs exactly once, later, from weft_service_deliver(), or with -ECANCELED from weft_service_unref() when the
 * last reference goes first. What cannot be sent where no connection is, parts and notifications, is not. *ret_id, which may
 * be NULL, is for weft_service_cancel(). -ENOBUFS: max_calls are open; -ENOMEM; -ESHUTDOWN: the service is going; then
 * on_called does not run. */
WEFT_API int weft_service_call(weft_service *service, const weft_identity *who, const char *method, weft_val params,
                               weft_on_called *on_called, void *ctx, int64_t *ret_id);
/* Give it up: the handler is told as if a caller had cancelled, on_called gets -ECANCELED. -ENOENT: it is over already, and
 * on_called has run or will run with the answer. */
WEFT_API int weft_service_cancel(weft_service *service, int64_t id);
/* Run the callbacks of calls that are over; how many. A weft_server does it by itself; without one,
 * weft_service_opts.on_ready says when. */
WEFT_API int weft_service_deliver(weft_service *service);

#ifdef __cplusplus
}
#endif
#endif
