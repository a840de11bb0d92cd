/* What a peer offers: methods as rows, and the requests that arrive at them.
 *
 * A row is the only place where a method is described. Dispatch, -32602 answers that name the field, rpc.discover, the
 * command line's help and the documentation all come from it. */
#ifndef WEFT_METHOD_H
#define WEFT_METHOD_H

#include <weft/json.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_peer weft_peer;
typedef struct weft_req weft_req; /* one request waiting for its answer, or a notification being delivered */

/* Handle one request or notification. params is borrowed and absent when the message had none. Answer now with weft_reply()
 * or weft_fail(), or return 0 without answering, keep req and answer later. A negative return without an answer becomes
 * -32603. Notifications go to the same handler; answering one does nothing and succeeds, and req is gone on return. */
typedef int weft_handler(weft_req *req, const weft_json *params, void *ctx);

/* ---- params tables ---- */

typedef enum weft_param_type {
    WEFT_PARAM_any,  /* weft_json */
    WEFT_PARAM_str,  /* const char * */
    WEFT_PARAM_int,  /* int64_t */
    WEFT_PARAM_num,  /* double */
    WEFT_PARAM_bool, /* bool */
    WEFT_PARAM_obj,  /* weft_json */
    WEFT_PARAM_arr,  /* weft_json */
} weft_param_type;

enum {
    WEFT_REQUIRED = 1 << 0,
    WEFT_NONEMPTY = 1 << 1, /* str, arr: at least one character or item */
    WEFT_NULLABLE = 1 << 2, /* null counts as absent */
    WEFT_ALIAS = 1 << 3, /* another name of the row above it, for callers that spell it so: it counts as that row where that
                            is required, is not looked at where that is there, has no position and is not shown */
    WEFT_RANGE = 1 << 4, /* min and max count: of an int or num, of the characters of a str, of the items of an arr.
                            INT64_MIN and INT64_MAX are no limit */
};

/* One row of a params table; a row with a NULL name ends it. Positional params fill the rows in order. A table that ends
 * with WEFT_END(struct ...) is bound before the handler runs: weft_req_params(). Another is only checked then, and the
 * handler calls weft_bind(). */
typedef struct weft_param {
    const char *name;
    weft_param_type type;
    size_t offset; /* of the field in the caller's struct */
    unsigned flags;
    const char *help;
    const char *const *one_of; /* str: one of these, ends with NULL; NULL: anything */
    int64_t min, max;          /* with WEFT_RANGE */
    WEFT_ROOM(2);
} weft_param;

/* What a field of each kind is; the macros below do not compile for a field of another type. */
#define WEFT_FIELD_any weft_json
#define WEFT_FIELD_str const char *
#define WEFT_FIELD_int int64_t
#define WEFT_FIELD_num double
#define WEFT_FIELD_bool bool
#define WEFT_FIELD_obj weft_json
#define WEFT_FIELD_arr weft_json
#if defined(__cplusplus)
extern "C++" {
template <typename Is, typename Want> struct weft_field_type_;
template <typename Same> struct weft_field_type_<Same, Same> { char is_right; };
}
#define WEFT_FIELD(type_, field, want)                                                                                      \
    (offsetof(type_, field) + 0 * sizeof(weft_field_type_<decltype(((type_ *) 0)->field), want>))
#elif defined(__GNUC__)
#define WEFT_FIELD(type_, field, want)                                                                                      \
    (offsetof(type_, field) + 0 * sizeof(struct {                                                                           \
                                  unsigned the_field_is_of_another_type                                                     \
                                      : __builtin_types_compatible_p(__typeof__(((type_ *) 0)->field), want)                \
                                        ? 1                                                                                 \
                                        : -1;                                                                               \
                              }))
#else
#define WEFT_FIELD(type_, field, want) (offsetof(type_, field) + 0 / (sizeof(((type_ *) 0)->field) == sizeof(want)))
#endif

/* A field that must be there, one that may, one of a few words, one within limits; another name of the field above; and the
 * end, with the struct that all of them are fields of. clang-format takes the braces for a block. */
/* clang-format off */
#define WEFT_ROW_(name_, kind_, at, flags_, help_, one_of_, min_, max_) \
    {name_, kind_, at, flags_, help_, one_of_, min_, max_, {0}}
#define WEFT_MUST(type_, field, kind, help_) \
    WEFT_ROW_(#field, WEFT_PARAM_##kind, WEFT_FIELD(type_, field, WEFT_FIELD_##kind), WEFT_REQUIRED, help_, NULL, 0, 0)
#define WEFT_MAY(type_, field, kind, help_) \
    WEFT_ROW_(#field, WEFT_PARAM_##kind, WEFT_FIELD(type_, field, WEFT_FIELD_##kind), 0, help_, NULL, 0, 0)
#define WEFT_MUST_BE(type_, field, words, help_) \
    WEFT_ROW_(#field, WEFT_PARAM_str, WEFT_FIELD(type_, field, WEFT_FIELD_str), WEFT_REQUIRED, help_, words, 0, 0)
#define WEFT_MAY_BE(type_, field, words, help_) \
    WEFT_ROW_(#field, WEFT_PARAM_str, WEFT_FIELD(type_, field, WEFT_FIELD_str), 0, help_, words, 0, 0)
#define WEFT_MUST_IN(type_, field, kind, min_, max_, help_) \
    WEFT_ROW_(#field, WEFT_PARAM_##kind, WEFT_FIELD(type_, field, WEFT_FIELD_##kind), WEFT_REQUIRED | WEFT_RANGE, help_, NULL, \
              min_, max_)
#define WEFT_MAY_IN(type_, field, kind, min_, max_, help_) \
    WEFT_ROW_(#field, WEFT_PARAM_##kind, WEFT_FIELD(type_, field, WEFT_FIELD_##kind), WEFT_RANGE, help_, NULL, min_, max_)
#define WEFT_ALSO(type_, field, kind, name_) \
    WEFT_ROW_(name_, WEFT_PARAM_##kind, WEFT_FIELD(type_, field, WEFT_FIELD_##kind), WEFT_ALIAS, NULL, NULL, 0, 0)
#define WEFT_END(type_) WEFT_ROW_(NULL, WEFT_PARAM_any, sizeof(type_), 0, NULL, NULL, 0, 0)
/* clang-format on */
/* A table has at most this many rows. */
#define WEFT_PARAMS_ROWS 64
/* A struct of params is at most this large; a method with a larger one cannot be registered. */
#define WEFT_PARAMS_MAX 512

/* An error that a method documents. */
typedef struct weft_error_row {
    int code;
    const char *message;
    const char *reason; /* stable camelCase name in data.reason, or NULL */
    const char *name;   /* of "invalidParams": what the method's protocol calls it, in data.code of what the library answers
                           about params; NULL: nothing */
    WEFT_ROOM(1);
} weft_error_row;

enum {
    WEFT_ROW_CHANGES = 1 << 0, /* it changes something: an idempotency key is honoured, a client does not retry it blindly */
    WEFT_ROW_HIDDEN = 1 << 1,  /* not listed by rpc.discover */
    WEFT_ROW_OPEN = 1 << 2,    /* may be called before authentication */
    WEFT_ROW_SOON = 1 << 3,    /* it is answered soon, though not in the handler (it is being stored, say): what the same
                              connection asks behind it waits for that answer, so that answers come in order and see what
                              was changed. With WEFT_ROW_CHANGES, others that have both do not wait for it: they are stored
                              together. The items of one batch never wait for each other */
    WEFT_ROW_STRICT = 1 << 4,  /* a member of named params that the table does not have is refused with -32602 (data.reason
                              "unknownParam", data.path), so that a mistyped option is not ignored. "_meta" and the tokens
                              of weft_part() are always allowed. Needs params */
    WEFT_ROW_UNCOUNTED = 1 << 5,  /* limits.rate_per_minute does not count it for who has its scope: such callers are held
                               back otherwise, by weft_peer_pause() for example */
    WEFT_ROW_OWN_FLAGS = 1 << 16, /* from this one on, flags mean what the program wants */
};

/* A call as it may look, for rpc.discover. Texts are JSON. */
typedef struct weft_example {
    const char *name;   /* NULL ends a list */
    const char *help;   /* one line; NULL: none */
    const char *params; /* an array or an object; NULL: none */
    const char *result; /* NULL: of a notification */
    WEFT_ROOM(2);
} weft_example;

/* One of several rows that a name stands for, where it depends on who asks which one answers. */
typedef struct weft_form {
    const char *name; /* of the protocol, say; NULL ends a list of them */
    const struct weft_method *row;
    WEFT_ROOM(2);
} weft_form;

typedef struct weft_method {
    const char *name;
    weft_handler *handler;
    const weft_param *params;     /* NULL: anything goes, the handler looks for itself */
    const char *help;             /* one line */
    const char *scope;            /* what the caller's identity must have; NULL: nothing */
    const char *result;           /* JSON Schema of the result as text; NULL: any */
    const weft_error_row *errors; /* ends with code 0; may be NULL */
    unsigned flags;
    void *ctx;            /* handed to the handler; NULL: the service's */
    const void *defaults; /* what the struct of WEFT_END holds where params say nothing; NULL: zeroes */
    int64_t timeout_ms;   /* a request of a peer that is not answered by then is answered as if its caller's deadline had
                             passed (-32800, data.reason "deadlineExceeded"); 0: it may take as long as it likes */
    const char *params_schema; /* JSON Schema of the params as text, for what a table cannot say; NULL: none. They are
                                  checked after the table: the first misfit is answered with -32602 (data.reason
                                  "invalidParams", data.path, data.keywordLocation, and data.errors if there are several).
                                  Positional params are checked by the names of the table, absent ones as {} */
    const weft_form *forms;    /* for a row without params whose handler hands on to one of these: rpc.discover shows their
                                  params and results. NULL: it stands for itself */
    const char *description;   /* more than a line, Markdown; NULL: help is all */
    const weft_example *examples; /* NULL: none */
    WEFT_ROOM(6);
} weft_method;

/* The struct that the params were bound to by the method's table, which ends with WEFT_END. Yours to change until the
 * handler returns, and gone then with the strings in it. NULL: the table ends otherwise. */
WEFT_API void *weft_req_params(weft_req *req);

/* Read params into a struct by the table. Absent optional fields are left as they are; of duplicate members the last one
 * counts. 0, or <0 after -32602 has been answered naming the field (data.reason "invalidParams", data.path): just return
 * what it returns. The table is the method's own, which has been checked already, or another. */
WEFT_API int weft_bind(weft_req *req, const weft_param *table, const weft_json *params, void *ret_struct);
/* The same for a value within the params, an object or an array: at is its place (a JSON Pointer such as "/address"), which
 * the answer's data.path begins with ("/address/zip"). An absent value has no members. */
WEFT_API int weft_bind_at(weft_req *req, const char *at, const weft_param *table, const weft_json *value, void *ret_struct);
/* Hand a request on to another row, from within a handler: params are checked and bound by that row's table and
 * WEFT_ROW_STRICT, then its handler runs with this ctx. Return what it returns. */
WEFT_API int weft_req_pass_on(weft_req *req, const weft_method *row, const weft_json *params, void *ctx);

/* ---- answering ---- */

#define WEFT_PARSE_ERROR (-32700)
#define WEFT_INVALID_REQUEST (-32600)
#define WEFT_METHOD_NOT_FOUND (-32601)
#define WEFT_INVALID_PARAMS (-32602)
#define WEFT_INTERNAL_ERROR (-32603)
#define WEFT_CANCELLED (-32800)

/* Answer. req is taken, whatever comes back: 0 queued; -EPIPE the caller has gone; -ENOMEM (then an error was answered in
 * its place if at all possible); -EINVAL: this cannot be written (weft_to_text()), and -32603 (data.reason "invalidResult")
 * was answered in its place; -EALREADY it was answered before, and this is not sent. An answer over limits.max_answer is
 * replaced by 413 (data.reason "tooLarge"). What has been answered is known until the service goes, unless more than 16,384
 * requests were open at once. A message that is NULL is "", a code that is 0 is -32603. */
WEFT_API int weft_reply(weft_req *req, weft_val result);
WEFT_API int weft_fail(weft_req *req, int code, const char *message, weft_val data);
/* The same with the message in the form of printf(), at most WEFT_MESSAGE_MAX bytes of it. */
#define WEFT_MESSAGE_MAX 1024
WEFT_API int weft_failf(weft_req *req, int code, weft_val data, const char *format, ...) WEFT_PRINTF(4, 5);
/* The same with data {"reason": reason}. */
WEFT_API int weft_refuse(weft_req *req, int code, const char *message, const char *reason);

/* Send part of the answer ahead of it, to a caller that asked for parts (weft_call_opts.on_part, or the LSP and MCP tokens
 * partialResultToken, workDoneToken, _meta.progressToken). 1 sent, 0 nobody asked, -EAGAIN the caller reads too slowly:
 * wait for on_drain, -EPIPE gone. */
WEFT_API int weft_part(weft_req *req, weft_val part);

/* ---- asking about a request ---- */

/* Who is calling: what the transport knows. Strings are never NULL. Borrowed from the connection. */
typedef struct weft_identity {
    const char *transport; /* "unix", "tcp", "tls", "ws", "wss", "http", "https", "stdio", "exec", "mem" */
    const char *dialect;   /* what the connection speaks; "" until something decided it */
    const char *name;      /* of the token or the certificate's subject; "" unknown */
    const char *scopes;    /* space-separated; "*" is every scope */
    const char *address;   /* of the other end, for people; "" unknown */
    int64_t uid;           /* of a Unix-socket peer; -1 unknown */
    int64_t pid;           /* likewise */
    bool authenticated;
    int64_t port;         /* of the other end; 0 unknown */
    bool local;           /* not from a network: rate limits are not for it */
    const char *endpoint; /* the URL of the server by which it came in, as weft_server_url() has it; "" unknown */
    WEFT_ROOM(6);
} weft_identity;

/* Does this caller have the scope? NULL: there is nothing to have. */
WEFT_API bool weft_has_scope(const weft_identity *who, const char *scope);

WEFT_API weft_peer *weft_req_peer(weft_req *req);
WEFT_API const weft_identity *weft_req_identity(weft_req *req);
/* "" when no method has the name that was called. */
WEFT_API const char *weft_req_method(weft_req *req);
/* The text of the id as it came, empty for a notification. Borrowed. */
WEFT_API weft_bytes weft_req_id(weft_req *req);
WEFT_API bool weft_req_is_notification(weft_req *req);
/* When the caller stops waiting, in the peer's milliseconds; INT64_MAX when it did not say. */
WEFT_API int64_t weft_req_deadline(weft_req *req);
/* A member of params._meta; absent if there is none. Only before the handler returns. */
WEFT_API weft_json weft_req_meta(weft_req *req, const char *name);

/* W3C trace context: which trace of its caller's a request belongs to. */
#define WEFT_TRACEPARENT 56 /* "00-" 32 digits "-" 16 digits "-" 2 digits, and a NUL */
#define WEFT_TRACESTATE 513 /* as much as others must pass on */
typedef struct weft_trace {
    char traceparent[WEFT_TRACEPARENT];
    char tracestate[WEFT_TRACESTATE]; /* "": none */
} weft_trace;
/* What the request says in params._meta.traceparent and tracestate, otherwise the header traceparent of its HTTP request.
 * What is malformed is as if it were not there: false, and *ret is empty. Only before the handler returns. */
WEFT_API bool weft_req_trace(weft_req *req, weft_trace *ret);

/* Hear once that an answer is no longer wanted: -ECANCELED the caller cancelled, -ETIMEDOUT its deadline passed, -EPIPE the
 * connection has gone. The request must still be answered, with what there is or with weft_fail(): its memory, and that of
 * its service, is kept until then. Without this a cancelled request is answered -32800 by the library, and the handler's
 * later answer is dropped; it must come all the same. */
typedef void weft_on_cancel(weft_req *req, int why, void *ctx);
WEFT_API void weft_req_on_cancel(weft_req *req, weft_on_cancel *on_cancel, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
