/* Their requests: each is answered exactly once, now or later.
 *
 * running ──reply in the handler──▶ answered          weft__req_finish()
 *         ──handler returns───────▶ open              weft__req_defer()
 * open    ──reply───────────────▶ answered            weft__req_finish()
 *         ──cancel, deadline────▶ told, or answered for the handler     weft__req_abandon()
 *         ──connection ends─────▶ told, its answer goes nowhere         weft__req_abandon_all()
 *
 * The memory stays until the handler has let go of it: it returned after answering, or it answered later. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doc.h"
#include "encode.h"
#include "gate.h"
#include "hint.h"
#include "meter.h"
#include "row_schemas.h"
#include "send.h"
#include "trace.h"
#include "utf8.h"

/* ---- writing the answer ---- */

static WEFT_ALWAYS_INLINE int write_outcome(weft_buf *out, const weft_alloc *alloc, weft_bytes id,
                                            const weft_outcome *outcome) {
    if (WEFT_RARELY(outcome->code))
        return weft__write_error(out, alloc, id, outcome->code, outcome->message, outcome->value);
    return weft__write_result(out, alloc, id, outcome->value);
}

static const weft_member too_large_data[] = {
    {"reason", {.kind = WEFT_VAL_STR, .len = 8, .as = {.s = "tooLarge"}}},
};
static const weft_val too_large_value = {.kind = WEFT_VAL_OBJ, .len = 1, .as = {.members = too_large_data}};
static const weft_outcome too_large = {413, "The answer is too large", &too_large_value};
static const weft_outcome too_many = {.code = 429, .message = "Too many requests are waiting for an answer"};
static const weft_outcome no_memory = {.code = WEFT_INTERNAL_ERROR, .message = "Out of memory"};
static const weft_member unwritable_data[] = {
    {"reason", {.kind = WEFT_VAL_STR, .len = 13, .as = {.s = "invalidResult"}}},
};
static const weft_val unwritable_value = {.kind = WEFT_VAL_OBJ, .len = 1, .as = {.members = unwritable_data}};
static const weft_outcome unwritable = {WEFT_INTERNAL_ERROR, "The answer cannot be written as JSON", &unwritable_value};

static WEFT_ALWAYS_INLINE int send_alone(weft_req *req, const weft_outcome *outcome) {
    weft_peer *peer = req->peer;
    weft_sending sending;
    size_t hint = outcome->value ? weft__result_hint(req->id, outcome->value) : 0;
    int r = weft__send_begin(peer, hint, &sending);
    if (WEFT_RARELY(r < 0))
        return r;
    r = write_outcome(&peer->out, peer->service->alloc, req->id, outcome);
    req->bytes_out = weft__buf_len(&peer->out) - sending.body;
    if (r >= 0 && outcome != &too_large && req->bytes_out > peer->service->limits.max_answer)
        r = -EMSGSIZE;
    if (WEFT_LIKELY(r >= 0))
        return weft__send_end(peer, &sending);
    weft__send_undo(peer, &sending);
    return r;
}

static WEFT_NOINLINE int send_in_batch(weft_req *req, const weft_outcome *outcome) {
    weft_buf *out = weft__batch_in_text(req->batch);
    const weft_alloc *alloc = req->service->alloc;
    size_t before = weft__buf_len(out);
    int r = weft__buf_put(out, alloc, before ? "," : "[", 1);
    if (r >= 0)
        r = write_outcome(out, alloc, req->id, outcome);
    /* The excuse itself always fits: there are at most max_batch of them. */
    if (r >= 0 && outcome != &too_large && weft__buf_len(out) > req->service->limits.max_answer)
        r = -EMSGSIZE;
    if (r < 0)
        out->end = out->start + before;
    req->bytes_out = weft__buf_len(out) - before - (r >= 0);
    return r;
}

static WEFT_ALWAYS_INLINE int send_outcome(weft_req *req, const weft_outcome *outcome) {
    return WEFT_RARELY(req->batch) ? send_in_batch(req, outcome) : send_alone(req, outcome);
}

static WEFT_COLD int send_again(weft_req *req, const weft_outcome *outcome) {
    req->excuse = outcome->code;
    req->flags |= REQ_EXCUSED;
    return send_outcome(req, outcome);
}

/* An answer that cannot be given is replaced by one that says so. */
static WEFT_COLD int excuse_failure(weft_req *req, int r) {
    int second = 0;
    if (r == -EMSGSIZE)
        r = second = send_again(req, &too_large);
    else if (r == -ENOMEM)
        second = send_again(req, &no_memory);
    else if (r == -EINVAL)
        second = send_again(req, &unwritable);
    if (second == -ENOMEM && req->peer && !req->peer->status)
        weft__send_fail(req->peer, -ENOMEM); /* a caller must not wait for ever: without memory for one line, close */
    return r;
}

static WEFT_ALWAYS_INLINE int send_or_excuse(weft_req *req, const weft_outcome *outcome) {
    int r = send_outcome(req, outcome);
    return WEFT_RARELY(r < 0) ? excuse_failure(req, r) : r;
}

/* ---- keeping the answer for a retry ---- */

static void store_outcome(weft_req *req, const weft_outcome *outcome) {
    weft_buf text = {0};
    const weft_alloc *alloc = req->service->alloc;
    static const char empty_id[] = "{\"jsonrpc\":\"2.0\",\"id\":null,";
    if (write_outcome(&text, alloc, (weft_bytes){"null", 4}, outcome) < 0)
        weft__idempotent_forget(req);
    else
        weft__idempotent_store(req, (weft_bytes){text.data + sizeof empty_id - 1, text.end - sizeof empty_id});
    weft__buf_done(&text, alloc);
}

/* ---- the life of a request ---- */

static WEFT_NOINLINE void unlink_deferred(weft_req *req) {
    if (!req->peer)
        return;
    weft__list_remove(&req->link);
    weft__heap_remove(&req->peer->due, &req->timed.due);
    req->peer->open_requests--;
    req->service->stats.open--;
    if (req->flags & REQ_SOON)
        weft__held_answered(req->peer, req->soon_bytes);
    req->flags &= ~(unsigned) REQ_SOON;
}

static inline void unlink_open(weft_req *req) {
    if (req->flags & REQ_DEFERRED)
        unlink_deferred(req);
}

/* The handler is done with it. */
static inline void release_outside_handler(weft_req *req) {
    if (!(req->flags & REQ_IN_HANDLER))
        weft__req_release(req);
}

static WEFT_ALWAYS_INLINE int deliver_outcome(weft_req *req, const weft_outcome *outcome, bool gated) {
    int r = 0;
    weft_peer *peer = req->peer;
    bool alone = peer && !peer->quiet; /* neither feed nor tick sees to it that the peer outlives what its callbacks do */
    if (WEFT_RARELY(alone))
        weft__peer_enter(peer);
    req->flags |= REQ_ANSWERED;
    if (WEFT_RARELY(!peer))
        r = -EPIPE;
    else if (WEFT_LIKELY(!(req->flags & REQ_NOTIFICATION))) {
        weft_stats *stats = &req->service->stats;
        stats->answers++;
        stats->errors += outcome->code != 0;
        r = send_or_excuse(req, outcome);
        if (WEFT_RARELY(req->service->meter))
            weft__meter_answered(req, outcome);
    }
    if (WEFT_RARELY(req->batch)) {
        weft__batch_in_answered(req->batch, peer);
        req->batch = NULL;
    }
    if (gated && (req->flags & REQ_GATED) && peer)
        weft__gate_ended(req, outcome->code, 0);
    if (WEFT_RARELY(alone))
        weft__peer_leave(peer);
    return r;
}

/* The same where it is rare, or where gates want to hear of it. */
static WEFT_NOINLINE int deliver_unusual(weft_req *req, const weft_outcome *outcome) {
    return deliver_outcome(req, outcome, true);
}

static WEFT_NOINLINE int finish_unusual(weft_req *req, const weft_outcome *outcome) {
    if (!(req->flags & REQ_ANSWERED))
        unlink_open(req);
    /* What the handler came to is kept for a retry, also when the caller of this run was told something else meanwhile. */
    if (req->idempotent)
        store_outcome(req, outcome);
    int r = req->flags & REQ_ANSWERED ? 0 : deliver_unusual(req, outcome);
    release_outside_handler(req);
    return r;
}

static WEFT_ALWAYS_INLINE int finish_request(weft_req *req, const weft_outcome *outcome) {
    if (WEFT_RARELY(req->flags & REQ_UNUSUAL))
        return finish_unusual(req, outcome);
    int r = req->flags & REQ_ANSWERED ? 0 : deliver_outcome(req, outcome, false);
    release_outside_handler(req);
    return r;
}

int weft__req_finish(weft_req *req, const weft_outcome *outcome) {
    return finish_request(req, outcome);
}

int weft__req_finish_kept(weft_req *req, weft_bytes outcome) {
    /* The text is `"result":VALUE` or `"error":VALUE`: hand the value through as it is. */
    static const char result[] = "\"result\":";
    req->service->stats.replayed++;
    if (memcmp(outcome.data, result, sizeof result - 1) == 0) {
        weft_val value = weft_raw(outcome.data + sizeof result - 1, outcome.len - (sizeof result - 1));
        return weft__req_finish(req, &(weft_outcome){.value = &value});
    }
    weft_doc doc = {.arena = {.alloc = req->service->alloc}};
    weft_json error = {outcome.data + 8, outcome.len - 8, &doc};
    weft_json data = weft_get(&error, "data");
    weft_val value = data.text ? weft_copy(&data) : weft_none();
    weft_outcome again = {
        .code = (int) weft_get_int(&error, "code", WEFT_INTERNAL_ERROR),
        .message = weft_get_str(&error, "message", ""),
        .value = &value,
    };
    int r = weft__req_finish(req, &again);
    weft__arena_done(&doc.arena);
    return r;
}

/* ---- progress tokens ---- */

static weft_bytes span_of(weft_json value) {
    weft_type type = weft_typeof(&value);
    return type == WEFT_STRING || type == WEFT_NUMBER ? (weft_bytes){value.text, value.len} : (weft_bytes){0};
}

/* Where the caller said that parts should go: LSP's tokens in params, MCP's in params._meta. */
static void find_progress_token(weft_req *req) {
    static const char *const names[] = {"partialResultToken", "workDoneToken"};
    weft_json params = {req->params.data, req->params.len, NULL}, of[2];
    weft_json meta = {req->meta.data, req->meta.len, NULL};
    req->flags |= REQ_TOKEN_KNOWN;
    if (!params.text || *params.text != '{')
        return;
    weft__get_all(&params, names, 2, of);
    req->token = span_of(of[0].len ? of[0] : of[1]);
    if (!req->token.len && meta.text) {
        req->token = span_of(weft_get(&meta, "progressToken"));
        if (req->token.len && req->peer->style == WEFT_STYLE_MCP)
            req->flags |= REQ_MCP_TOKEN;
    }
}

/* ---- answering later ---- */

void weft__req_read_deadline(weft_req *req) {
    weft_json meta = {req->meta.data, req->meta.len, req->doc};
    weft_json within = req->deadline == INT64_MAX ? weft_get(&meta, "weft/deadlineMs") : (weft_json){0};
    if (!within.text)
        return;
    int64_t ms = weft_int_of(&within, INT64_MAX);
    if (ms < INT64_MAX - req->peer->now)
        req->deadline = req->peer->now + (ms > 0 ? ms : 0);
}

void weft__req_limit(weft_req *req, int64_t ms) {
    int64_t now = req->peer->now, latest = ms < INT64_MAX - now ? now + ms : INT64_MAX;
    req->deadline = latest < req->deadline ? latest : req->deadline;
}

/* The handler will answer later: the text that the request lies in is about to go. */
static int keep_id(weft_req *req) {
    if (!(req->flags & REQ_TOKEN_KNOWN))
        find_progress_token(req);
    char *kept = weft__alloc(req->service->alloc, req->id.len + req->token.len + 1);
    if (!kept)
        return -ENOMEM;
    if (req->id.len)
        memcpy(kept, req->id.data, req->id.len);
    if (req->token.len)
        memcpy(kept + req->id.len, req->token.data, req->token.len);
    weft__free(req->service->alloc, req->kept);
    req->kept = kept;
    req->id.data = kept;
    req->token.data = kept + req->id.len;
    return 0;
}

static void move_span(weft_bytes *span, const char *from, const char *to) {
    if (span->data)
        span->data = to + (span->data - from);
}

/* A gate has taken it over: its handler will want all of it. */
static int keep_message(weft_req *req) {
    const char *from = req->message.data;
    char *kept = weft__alloc(req->service->alloc, req->message.len + WEFT_SLACK);
    if (!kept)
        return -ENOMEM;
    memcpy(kept, from, req->message.len);
    memset(kept + req->message.len, 0, WEFT_SLACK);
    weft_bytes *const spans[] = {&req->id, &req->params, &req->meta, &req->name, &req->message};
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++)
        move_span(spans[i], from, kept);
    req->kept = kept;
    return 0;
}

static int keep_open(weft_req *req, bool whole) {
    weft_peer *peer = req->peer;
    int r = 0;
    if (req->deadline != INT64_MAX)
        r = weft__heap_set(&peer->due, req->service->alloc, &req->timed.due, req->deadline);
    if (r >= 0)
        r = whole ? keep_message(req) : keep_id(req);
    if (r < 0) {
        weft__heap_remove(&peer->due, &req->timed.due);
        return r;
    }
    weft__list_push(&peer->requests, &req->link);
    peer->open_requests++;
    req->service->stats.open++;
    if (req->row && (req->row->flags & WEFT_ROW_SOON)) {
        req->flags |= REQ_SOON;
        req->soon_bytes = req->params.len;
        weft__held_begun(peer, req->row, req->soon_bytes);
    }
    return 0;
}

/* It is open already, because a gate had it. What its handler has seen is not needed any more; without memory for the few
 * bytes that are, all of it stays. */
static int defer_again(weft_req *req, bool whole) {
    req->doc = NULL;
    req->bound = NULL;
    if (whole)
        return 0;
    keep_id(req);
    req->message = req->name = req->params = req->meta = (weft_bytes){0};
    return 0;
}

int weft__req_defer(weft_req *req, bool whole) {
    if (req->flags & REQ_DEFERRED)
        return defer_again(req, whole);
    weft_service *service = weft_service_ref(req->service);
    if (service->meter)
        weft__meter_defer(req);
    if (req->peer->uncarried) {
        req->flags |= REQ_UNCARRIED;
        service->inner_refs++;
    }
    bool many = req->peer->open_requests >= service->limits.max_requests;
    int r = many ? -ENOBUFS : keep_open(req, whole);
    if (r < 0) {
        /* It cannot be kept: answer now. The handler's own answer, which still comes, will find it answered. */
        deliver_unusual(req, many ? &too_many : &no_memory);
        req->peer = NULL;
        req->id = req->token = (weft_bytes){0};
    }
    req->flags |= REQ_DEFERRED;
    if (r < 0 || !whole)
        req->message = req->name = req->params = req->meta = (weft_bytes){0};
    req->doc = NULL;
    req->bound = NULL;
    if (r < 0 && req->on_cancel)
        weft__req_abandon(req, -ECANCELED); /* may free it */
    return r;
}

/* ---- cancelling ---- */

static const weft_outcome *excuse_outcome(int why) {
    static const weft_member deadline_data[] = {
        {"reason", {.kind = WEFT_VAL_STR, .len = 16, .as = {.s = "deadlineExceeded"}}}};
    static const weft_outcome cancelled = {.code = WEFT_CANCELLED, .message = "Request cancelled"};
    static const weft_val deadline_value = {.kind = WEFT_VAL_OBJ, .len = 1, .as = {.members = deadline_data}};
    static const weft_outcome expired = {WEFT_CANCELLED, "The deadline of the request has passed", &deadline_value};
    return why == -ETIMEDOUT ? &expired : &cancelled;
}

void weft__req_abandon(weft_req *req, int why) {
    weft_on_cancel *on_cancel = req->on_cancel;
    req->on_cancel = NULL;
    req->service->stats.cancelled += why == -ECANCELED;
    req->service->stats.expired += why == -ETIMEDOUT;
    req->gone = why;
    if (req->peer)
        weft__heap_remove(&req->peer->due, &req->timed.due);
    if (on_cancel)
        on_cancel(weft__req_handle(req), why, req->cancel_ctx); /* may answer, and with that free it */
    else if (req->peer) {
        unlink_open(req);
        deliver_unusual(req, excuse_outcome(why));
        req->peer = NULL;
    }
}

void weft__req_abandon_all(weft_peer *peer, int why) {
    while (!weft__list_empty(&peer->requests)) {
        weft_req *req = WEFT_CONTAINER(peer->requests.next, weft_req, link);
        unlink_open(req);
        if (req->batch) {
            weft__batch_in_answered(req->batch, NULL);
            req->batch = NULL;
        }
        if (req->flags & REQ_GATED)
            weft__gate_ended(req, 0, why);
        if (req->flags & REQ_MEASURED)
            weft__meter_lost(req);
        req->peer = NULL;
        weft__req_abandon(req, why);
    }
}

weft_req *weft__req_by_id(weft_peer *peer, weft_bytes id) {
    for (weft_link *at = peer->requests.next; at != &peer->requests; at = at->next) {
        weft_req *req = WEFT_CONTAINER(at, weft_req, link);
        if (req->id.len == id.len && memcmp(req->id.data, id.data, id.len) == 0)
            return req;
    }
    return NULL;
}

/* ---- public ---- */

/* The request of a handle, for the one answer; NULL: it has been given. */
static weft_req *take_request(weft_req *handle) {
    weft_req *req = weft__req_of(handle);
    if (!req || (req->flags & REQ_TAKEN))
        return NULL;
    req->flags |= REQ_TAKEN;
    return req;
}

int weft_reply(weft_req *handle, weft_val result) {
    weft_req *req = weft__req_of(handle);
    if (WEFT_RARELY(!req || (req->flags & REQ_TAKEN)))
        return -EALREADY;
    if (result.kind == WEFT_VAL_NONE)
        result.kind = WEFT_VAL_NULL;
    if (WEFT_RARELY(req->service->check_results) && weft__row_schemas_misfit(req, &result))
        return -EBADMSG;
    req->flags |= REQ_TAKEN;
    return finish_request(req, &(weft_outcome){.value = &result}); /* in place: nearly every answer is given here */
}

int weft_fail(weft_req *handle, int code, const char *message, weft_val data) {
    weft_req *req = take_request(handle);
    if (!req)
        return -EALREADY;
    return weft__req_finish(
        req, &(weft_outcome){.code = code ? code : WEFT_INTERNAL_ERROR, .message = message ? message : "", .value = &data});
}

int weft_failf(weft_req *req, int code, weft_val data, const char *format, ...) {
    char message[WEFT_MESSAGE_MAX + 8]; /* with what comes behind a cut, which says whether it is one */
    va_list args;
    va_start(args, format);
    int n = format ? vsnprintf(message, sizeof message, format, args) : -1;
    va_end(args);
    if (n < 0)
        return weft_fail(req, code, "", data);
    message[weft__utf8_fit(message, strlen(message), WEFT_MESSAGE_MAX)] = '\0'; /* not in the middle of a character */
    return weft_fail(req, code, message, data);
}

int weft_refuse(weft_req *req, int code, const char *message, const char *reason) {
    return weft_fail(req, code, message, WEFT_OBJ({"reason", weft_str(reason)}));
}

int weft_part(weft_req *handle, weft_val part) {
    weft_req *req = weft__req_of(handle);
    weft_peer *peer = req ? req->peer : NULL;
    if (!peer)
        return -EPIPE;
    if (!(req->flags & REQ_TOKEN_KNOWN))
        find_progress_token(req);
    if (!req->token.len || (peer->framing->flags & WEFT_FRAMING_NO_NOTES) || (req->flags & REQ_NOTIFICATION) ||
        (req->flags & REQ_ANSWERED))
        return 0;
    if (weft_peer_full(peer))
        return -EAGAIN;
    weft_val token = weft_raw(req->token.data, req->token.len);
    int r = (req->flags & REQ_MCP_TOKEN)
                ? weft_notify(peer, "notifications/progress",
                              WEFT_OBJ({"progressToken", token}, {"progress", weft_uint(++req->parts)}, {"value", part}))
                : weft_notify(peer, "$/progress", WEFT_OBJ({"token", token}, {"value", part}));
    return r < 0 ? r : 1;
}

weft_peer *weft_req_peer(weft_req *handle) {
    weft_req *req = weft__req_of(handle);
    return req ? req->peer : NULL;
}

const weft_identity *weft_req_identity(weft_req *handle) {
    weft_req *req = weft__req_of(handle);
    static const weft_identity nobody = {"", "", "", "", "", -1, -1, false, .endpoint = ""};
    if (req && (req->flags & REQ_OWN_IDENTITY))
        return req->identity;
    return req && req->peer ? weft_peer_identity(req->peer) : &nobody;
}

int weft_req_set_identity(weft_req *handle, const weft_identity *identity) {
    weft_req *req = weft__req_of(handle);
    if (!req)
        return -EALREADY;
    weft_identity *copy = weft__identity_copy(identity, req->service->alloc);
    if (!copy)
        return -ENOMEM;
    if (req->flags & REQ_OWN_IDENTITY)
        weft__free(req->service->alloc, req->identity);
    req->identity = copy;
    req->flags |= REQ_OWN_IDENTITY;
    return 0;
}

const char *weft_req_method(weft_req *handle) {
    weft_req *req = weft__req_of(handle);
    return req && req->row ? req->row->name : "";
}

weft_bytes weft_req_id(weft_req *handle) {
    weft_req *req = weft__req_of(handle);
    return req ? req->id : (weft_bytes){0};
}

bool weft_req_is_notification(weft_req *handle) {
    weft_req *req = weft__req_of(handle);
    return req && (req->flags & REQ_NOTIFICATION);
}

int64_t weft_req_deadline(weft_req *handle) {
    weft_req *req = weft__req_of(handle);
    return req ? req->deadline : INT64_MAX;
}

weft_json weft_req_meta(weft_req *handle, const char *name) {
    weft_req *req = weft__req_of(handle);
    weft_json meta = req ? (weft_json){req->meta.data, req->meta.len, req->doc} : (weft_json){0};
    return meta.text ? weft_get(&meta, name) : (weft_json){0};
}

void weft__peer_set_trace(weft_peer *peer, const char *traceparent) {
    peer->trace = traceparent;
}

static bool take_trace_member(weft_req *req, const char *name, bool (*take)(weft_bytes text, char *ret), char *ret) {
    weft_json value = weft_req_meta(req, name);
    const char *text = weft_typeof(&value) == WEFT_STRING ? weft_str_of(&value, "") : "";
    return take((weft_bytes){text, strlen(text)}, ret);
}

bool weft_req_trace(weft_req *handle, weft_trace *ret) {
    weft_req *req = weft__req_of(handle);
    const char *header = req && req->peer ? req->peer->trace : NULL;
    *ret = (weft_trace){0};
    if (req && req->meta.data && take_trace_member(req, "traceparent", weft__trace_parent, ret->traceparent))
        return take_trace_member(req, "tracestate", weft__trace_state, ret->tracestate), true;
    return header && weft__trace_parent((weft_bytes){header, strlen(header)}, ret->traceparent);
}

void weft_req_on_cancel(weft_req *handle, weft_on_cancel *on_cancel, void *ctx) {
    weft_req *req = weft__req_of(handle);
    if (!req)
        return;
    req->on_cancel = on_cancel;
    req->cancel_ctx = ctx;
}
