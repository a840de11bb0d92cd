/* Gates: what stands between a request and its handler, and hears how it ended.
 *
 * A signature check, a schema check, an access log or a histogram is one gate: a table with two functions, named in
 * weft_service_opts.gates. The rate limit and authentication of the connection come first; then the gates are asked in the
 * order of the list; then scope and params are checked and the handler runs. Requests and notifications pass one by one,
 * those of a batch too. A service without gates pays nothing for them. */
#ifndef WEFT_GATE_PUBLIC_H
#define WEFT_GATE_PUBLIC_H

#include <weft/method.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A request before its handler. All of it is borrowed until before() returns. text and len of a weft_json are the bytes as
 * they came, so that a signature can be computed over them. */
typedef struct weft_gate_request {
    weft_req *req;
    const weft_method *method; /* NULL: there is none of this name; once all gates let it pass it is answered -32601 */
    const weft_identity *identity;
    weft_json message; /* the whole request: weft_get(&request->message, "auth") finds members beside the usual ones */
    weft_bytes name;   /* of the method, as it stands between its quotes */
    weft_bytes id;     /* as it came; empty for a notification */
    weft_json params;  /* absent if there are none */
} weft_gate_request;

/* How a request ended. Borrowed. */
typedef struct weft_gate_outcome {
    weft_req *req; /* for whoever kept it from before(); nothing may be done with it any more */
    const weft_method *method;
    const weft_identity *identity;
    weft_bytes name;
    weft_bytes id;
    bool notification;
    int code; /* 0 a result, otherwise the code of the error that was answered */
    int lost; /* 0 the caller waited for it; -ECANCELED or -ETIMEDOUT it had given up; -EPIPE its connection had gone */
    int64_t duration_us;  /* by weft_service_opts.now_us, otherwise by the peer's milliseconds */
    size_t bytes_in;      /* of the request's text, without framing */
    size_t bytes_out;     /* of the answer's text; 0: none was written */
    const char *trace_id; /* 32 digits, of weft_req_trace(); "": it had none */
} weft_gate_outcome;

typedef struct weft_gate {
    const char *name; /* for people */
    /* 0 let it pass. <0 refuse it: after weft_fail() or weft_refuse(), or without an answer, then -EPERM is answered 401,
     * -EACCES 403 and anything else -32603. 1 take it over: the gate keeps req and later lets it pass with
     * weft_req_continue() or answers it. Must not block. NULL: everything passes. */
    int (*before)(void *ctx, const weft_gate_request *request);
    /* Called once for every request and notification, also for those that were refused before this gate was asked. Must not
     * answer or call back into the request. NULL: not told. */
    void (*after)(void *ctx, const weft_gate_outcome *outcome);
    void *ctx;
    unsigned flags; /* only for methods that have one of these flags; 0: for all, and for names that no method has */
    WEFT_ROOM(4);
} weft_gate;

/* Let a request pass that a gate has taken over: the next gates are asked, then its handler runs, within this call. Never
 * from before() itself (-EINVAL), and once (-EALREADY); otherwise req is taken, whatever comes back: 0; -ECANCELED: nobody
 * waits for it any more, it was not run. weft_req_on_cancel() tells the gate of that earlier. */
WEFT_API int weft_req_continue(weft_req *req);

/* This request is somebody's who is not, or not only, who its connection is: whoever signed it, say. For gates, from
 * before(): later gates, the scope check and the handler see this identity (copied), other requests of the connection do
 * not. -ENOMEM. */
WEFT_API int weft_req_set_identity(weft_req *req, const weft_identity *identity);

#ifdef __cplusplus
}
#endif
#endif
