/* One message goes where it belongs: a request to its method, an answer to the call that waits for it, and what is neither
 * gets the error that the specification names. */
#include <errno.h>
#include <string.h>

#include "encode.h"
#include "gate.h"
#include "hint.h"
#include "meter.h"
#include "scan.h"

/* Longer names cannot be registered sensibly, and one that is written with escapes must be decoded to be compared. */
#define MAX_METHOD 256

/* Without memory for a request nobody can be answered: close, rather than let callers wait. */
static void no_request(weft_peer *peer, struct weft_batch_in *batch) {
    peer->status = -ENOMEM;
    if (batch)
        weft__batch_in_answered(batch, peer);
}

void weft__answer_error(weft_peer *peer, struct weft_batch_in *batch, weft_bytes id, int code, const char *message,
                        const char *reason, const char *detail) {
    weft_req *req = weft__req_new(peer);
    if (!req) {
        no_request(peer, batch);
        return;
    }
    req->id = id.len ? id : (weft_bytes){"null", 4};
    req->batch = batch;
    weft_val data = WEFT_OBJ({"reason", weft_str(reason)}, {"detail", weft_str_or_none(detail)});
    weft__req_finish(req, &(weft_outcome){.code = code, .message = message, .value = reason ? &data : NULL});
}

/* ---- messages that the peer itself understands ---- */

static bool name_is(weft_bytes name, const char *text) {
    return name.len == strlen(text) && memcmp(name.data, text, name.len) == 0;
}

static void cancel_by_id(weft_peer *peer, weft_json id) {
    weft_req *req = id.text ? weft__req_by_id(peer, (weft_bytes){id.text, id.len}) : NULL;
    if (req)
        weft__req_abandon(req, -ECANCELED);
}

static bool take_progress(weft_peer *peer, const weft_json *params, const char *token_name) {
    weft_json token = weft_get(params, token_name);
    weft_json value = weft_get(params, "value");
    int64_t id = weft_int_of(&token, 0);
    return id > 0 && weft__calls_part(peer, id, value.text ? &value : params) > 0;
}

/* LSP, ACP and MCP have three names for cancelling and two for progress. true: it was one of them. */
static bool take_builtin(weft_peer *peer, weft_bytes method, const weft_json *params) {
    if (method.data[0] == '$' && method.len > 2) {
        if (name_is(method, "$/cancelRequest"))
            return cancel_by_id(peer, weft_get(params, "id")), true;
        if (name_is(method, "$/cancel_request"))
            return cancel_by_id(peer, weft_get(params, "requestId")), true;
        return name_is(method, "$/progress") && take_progress(peer, params, "token");
    }
    if (method.data[0] != 'n')
        return false;
    if (name_is(method, "notifications/cancelled"))
        return cancel_by_id(peer, weft_get(params, "requestId")), true;
    return name_is(method, "notifications/progress") && take_progress(peer, params, "progressToken");
}

/* ---- requests and notifications ---- */

static void tell_unknown(weft_peer *peer, weft_bytes method, const weft_json *params) {
    if (!peer->on_notification)
        return;
    char name[MAX_METHOD + 1];
    memcpy(name, method.data, method.len);
    name[method.len] = '\0';
    peer->on_notification(peer, name, params, peer->data);
}

/* The handler has returned without answering. true: it is seen to. A notification is over, and only a gate, or what kept it
 * for one, wants to hear of it. */
static WEFT_NOINLINE bool see_to_unanswered(weft_req *req, int r) {
    bool over = req->flags & REQ_NOTIFICATION;
    if (over && !(req->flags & REQ_UNUSUAL))
        return false;
    if (r < 0)
        weft__req_finish(req, &(weft_outcome){.code = WEFT_INTERNAL_ERROR, .message = "Internal error"});
    else if (over)
        weft__req_finish(req, &(weft_outcome){0});
    else
        weft__req_defer(req, false);
    return true;
}

/* Run a request or notification through its handler and see to what the handler left undone. */
static inline void run_handler(weft_req *req, const weft_json *params) {
    const weft_method *row = req->row;
    req->flags |= REQ_IN_HANDLER;
    int r = row->handler(weft__req_handle(req), params, row->ctx ? row->ctx : req->service->ctx);
    req->flags &= ~(unsigned) REQ_IN_HANDLER;
    if (WEFT_RARELY(!(req->flags & REQ_ANSWERED)) && see_to_unanswered(req, r))
        return;
    if (WEFT_RARELY(req->batch))
        weft__batch_in_answered(req->batch, req->peer);
    weft__req_release(req);
}

/* true: the params are bound to memory; false: the request has been answered. in_handler keeps it alive when the refusal is
 * written. */
static bool bind_params(weft_req *req, const weft_json *params, weft_params_memory *memory) {
    req->flags |= REQ_IN_HANDLER;
    int r = weft__params_bind(req, req->row, params, memory);
    if (r < 0 && !(req->flags & REQ_ANSWERED)) /* a string could not be decoded for want of memory */
        weft_refuse(req, WEFT_INTERNAL_ERROR, "Internal error", "outOfMemory");
    req->flags &= ~(unsigned) REQ_IN_HANDLER;
    if (r < 0)
        weft__req_release(req);
    return r >= 0;
}

/* What most requests of a bare service do not meet: a deadline, a params table, an idempotency key. */
static bool pass_checks(weft_req *req, const weft_json *params, weft_params_memory *memory) {
    if (req->meta.data)
        weft__req_read_deadline(req);
    if (req->row->timeout_ms > 0)
        weft__req_limit(req, req->row->timeout_ms);
    if (req->deadline <= req->peer->now) {
        weft_refuse(req, WEFT_CANCELLED, "The deadline of the request has passed", "deadlineExceeded");
        return false;
    }
    if ((req->row->params || req->row->params_schema) && !bind_params(req, params, memory))
        return false;
    return !(req->row->flags & WEFT_ROW_CHANGES) || !req->meta.data || weft__idempotent_begin(req) == 0;
}

/* The struct of params lies here, on the stack, until the handler has returned. */
static WEFT_NOINLINE void start_checked(weft_req *req, const weft_json *params) {
    weft_params_memory memory;
    if (pass_checks(req, params, &memory))
        run_handler(req, params);
}

/* It has been let in. */
static inline void start_admitted(weft_req *req, const weft_json *params) {
    if (WEFT_RARELY(req->meta.data || req->row->params || req->row->timeout_ms || req->row->params_schema))
        start_checked(req, params);
    else
        run_handler(req, params);
}

static WEFT_NOINLINE void take_unknown_notification(weft_peer *peer, weft_bytes method, const weft_json *params,
                                                    struct weft_batch_in *batch) {
    if (peer->service->meter)
        weft__meter_of(peer->service, NULL)->notifications++;
    bool stranger = peer->locked && !peer->identity->authenticated;
    if (!stranger && !take_builtin(peer, method, params))
        tell_unknown(peer, method, params);
    if (batch)
        weft__batch_in_answered(batch, peer);
}

static WEFT_ALWAYS_INLINE void start_request(weft_peer *peer, const weft_msg *msg, weft_bytes method,
                                             struct weft_batch_in *batch) {
    weft_doc doc = {.arena = {.alloc = peer->service->alloc}};
    weft_json params = weft__json_of(msg->params, &doc);
    const weft_method *row = weft__methods_resolve(&peer->service->methods, method.data, method.len);
    weft_req *req = NULL;
    if (WEFT_RARELY(!row && msg->kind == WEFT_MSG_NOTIFICATION))
        take_unknown_notification(peer, method, &params, batch);
    else if (WEFT_RARELY(!(req = weft__req_new(peer))))
        no_request(peer, batch);
    if (WEFT_LIKELY(req)) {
        req->row = row;
        req->id = msg->id;
        req->params = msg->params;
        req->meta = msg->meta;
        req->doc = &doc;
        req->batch = batch;
        req->flags = msg->kind == WEFT_MSG_NOTIFICATION ? REQ_NOTIFICATION : 0;
        if (WEFT_RARELY(peer->service->meter))
            weft__meter_begin(req, msg->text.len);
        if (WEFT_LIKELY(weft__gate_open(peer, row)) || weft__gate_admit(req, msg, &params))
            start_admitted(req, &params);
    }
    if (WEFT_RARELY(doc.arena.blocks))
        weft__arena_done(&doc.arena);
}

/* A name with escapes is decoded to be looked up; one that is too long names nothing. */
static WEFT_COLD void start_odd(weft_peer *peer, const weft_msg *msg, struct weft_batch_in *batch) {
    char decoded[MAX_METHOD + 1];
    weft_bytes method = {"", 0};
    if (msg->method.len <= MAX_METHOD)
        method = (weft_bytes){decoded, weft__unescape(msg->method.data, msg->method.len, decoded)};
    start_request(peer, msg, method, batch);
}

int weft_req_continue(weft_req *handle) {
    weft_req *req = weft__req_of(handle);
    if (!req)
        return -EALREADY;
    weft_peer *peer = req->peer;
    if (req->flags & REQ_IN_HANDLER)
        return -EINVAL; /* before() has not returned yet, or no gate has it */
    if (peer && !req->message.data && !(req->flags & REQ_ANSWERED))
        return -EALREADY; /* it has passed: its handler has it */
    req->on_cancel = NULL;
    if (!peer || (req->flags & REQ_ANSWERED)) {
        weft__req_release(req);
        return -ECANCELED;
    }
    weft_doc doc = {.arena = {.alloc = peer->service->alloc}};
    weft_json params = weft__json_of(req->params, &doc);
    weft__peer_enter(peer);
    weft__peer_fresh_now(peer);
    req->doc = &doc;
    if (weft__gate_resume(req, &params))
        start_admitted(req, &params);
    weft__arena_done(&doc.arena);
    weft__peer_leave(peer);
    return 0;
}

static void take_answer(weft_peer *peer, const weft_msg *msg, struct weft_batch_in *batch) {
    weft_doc doc = {.arena = {.alloc = peer->service->alloc}};
    weft__calls_answer(peer, msg, &doc);
    weft__arena_done(&doc.arena);
    if (batch)
        weft__batch_in_answered(batch, peer);
}

void weft__dispatch(weft_peer *peer, const weft_msg *msg, struct weft_batch_in *batch) {
    weft_stats *stats = &peer->service->stats;
    switch (__builtin_expect(msg->kind, WEFT_MSG_REQUEST)) {
    case WEFT_MSG_REQUEST:
    case WEFT_MSG_NOTIFICATION:
        *(msg->kind == WEFT_MSG_REQUEST ? &stats->requests : &stats->notifications) += 1;
        if (WEFT_RARELY(msg->method_escaped || msg->method.len > MAX_METHOD))
            start_odd(peer, msg, batch);
        else
            start_request(peer, msg, msg->method, batch);
        break;
    case WEFT_MSG_ANSWER:
        take_answer(peer, msg, batch);
        break;
    case WEFT_MSG_INVALID:
    case WEFT_MSG_BATCH:
        if (msg->no_method && weft__calls_wait_for(peer, msg->id))
            take_answer(peer, msg, batch); /* with neither result nor error: no better one will come */
        else
            weft__answer_error(peer, batch, msg->id, WEFT_INVALID_REQUEST, "Invalid Request", "invalidRequest", msg->why);
        break;
    }
}
