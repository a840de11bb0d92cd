/* Calling a row without a connection: for REST, rules and whatever else is not a peer. The request goes the way of every
 * other, through a peer that nobody carries: it has the caller's identity, takes one request and holds one answer. So gates,
 * checks and answers are the same, and nothing of them is written twice.
 *
 * open ──answer written──▶ ready      on_answer_written()       ready ──weft_service_deliver()──▶ over
 *      ──peer freed──────▶ ready      on_peer_freed()
 *      ──cancel──────────▶ ready      weft_service_cancel()
 *      ──service freed───▶ over       weft__service_calls_end()
 */
#include <errno.h>

#include "call.h"
#include "encode.h"
#include "request.h"
#include "scan.h"
#include "send.h"

typedef struct service_call {
    weft_link link; /* in open or ready */
    weft_service *service;
    weft_peer *peer;
    int64_t id;
    weft_on_called *on_called;
    void *ctx;
    int r; /* 0, or why there is no answer */
    bool ready;
} service_call;

struct weft_service_calls {
    weft_link open, ready;
    size_t count;
    int64_t last_id;
};

static const weft_bytes only_id = {"1", 1};

static int need_service_calls(weft_service *service) {
    if (service->calls)
        return 0;
    service->calls = weft__zalloc(service->alloc, sizeof *service->calls);
    if (!service->calls)
        return -ENOMEM;
    weft__list_init(&service->calls->open);
    weft__list_init(&service->calls->ready);
    return 0;
}

void weft__service_calls_done(weft_service *service) {
    service->calls = weft__free(service->alloc, service->calls);
}

void weft__service_set_wake(weft_service *service, void (*wake)(void *ctx), void *ctx) {
    service->wake = wake;
    service->wake_ctx = ctx;
}

void weft__service_unset_wake(weft_service *service, const void *ctx) {
    if (service->wake_ctx == ctx)
        weft__service_set_wake(service, NULL, NULL);
}

static void wake_service(weft_service *service) {
    if (service->wake)
        service->wake(service->wake_ctx);
    else if (service->on_ready)
        service->on_ready(service->ctx);
}

/* It is over; who asked is told by weft_service_deliver(). */
static void make_ready(service_call *call) {
    weft_service *service = call->service;
    if (call->ready)
        return;
    call->ready = true;
    bool first = weft__list_empty(&service->calls->ready);
    weft__list_remove(&call->link);
    weft__list_push(&service->calls->ready, &call->link);
    if (first)
        wake_service(service);
}

static int64_t time_ms(const weft_service *service) {
    return service->now_us ? service->now_us(service->ctx) / 1000 : 0;
}

/* ---- the peer's carrier ---- */

static int64_t now_of(void *carrier) {
    return time_ms(((service_call *) carrier)->service);
}

/* A handler has closed the connection, as it would have another. What it answered before that counts. */
static void on_peer_freed(weft_peer *peer, void *carrier) {
    service_call *call = carrier;
    if (!weft__buf_len(weft__peer_out(peer)))
        call->r = -ECONNRESET;
    make_ready(call);
}

static const weft_carrier carrier_table = {.free = on_peer_freed, .now = now_of};

/* The peer has no data: a program that keeps its own things there must not find ours. */
static void on_answer_written(weft_peer *peer, void *data) {
    service_call *call = weft__peer_carrier(peer, &carrier_table);
    (void) data;
    if (call)
        make_ready(call);
}

/* ---- starting ---- */

/* The peer holds a reference to the service, as every peer does. Those of calls are counted, so that it is noticed when
 * there are no others. It is there until the call is over, whoever frees it before. */
static int make_call_peer(service_call *call, const weft_identity *who) {
    weft_peer_opts opts = {.framing = &weft__body, .identity = who, .on_output = on_answer_written};
    int r = weft_peer_new(call->service, &opts, &call->peer);
    if (r < 0)
        return r;
    call->peer->uncarried = true;
    weft__peer_enter(call->peer);
    weft__peer_set_carrier(call->peer, &carrier_table, call);
    call->service->inner_refs++;
    return 0;
}

static void free_service_call(service_call *call) {
    weft_service *service = call->service;
    service->calls->count--;
    weft__list_remove(&call->link);
    if (call->peer) {
        service->inner_refs--;
        weft__peer_set_carrier(call->peer, NULL, NULL);
        weft_peer_free(call->peer);
        weft__peer_leave(call->peer);
    }
    weft__free(service->alloc, call);
}

/* What is answered at once is written while the peer is quiet, and so is why nothing could be. */
static int send_request(service_call *call, const char *method, const weft_val *params) {
    const weft_alloc *alloc = call->service->alloc;
    weft_buf text = {0};
    int r = weft__write_request(&text, alloc, 1, method, params, NULL);
    int sent = r < 0 ? 0 : weft__peer_body(call->peer, weft__buf_head(&text), weft__buf_len(&text), time_ms(call->service));
    weft__buf_done(&text, alloc);
    bool answered = weft__buf_len(weft__peer_out(call->peer)) > 0;
    if (sent < 0 && !answered)
        call->r = sent;
    if (sent < 0 || answered)
        make_ready(call);
    return r;
}

static int start_service_call(service_call *call, const weft_identity *who, const char *method, const weft_val *params) {
    int r = make_call_peer(call, who);
    return r < 0 ? r : send_request(call, method, params);
}

int weft_service_call(weft_service *service, const weft_identity *who, const char *method, weft_val params,
                      weft_on_called *on_called, void *ctx, int64_t *ret_id) {
    if (!on_called)
        return -EINVAL;
    int r = service->closing ? -ESHUTDOWN : need_service_calls(service);
    if (r >= 0 && service->calls->count >= service->limits.max_calls)
        r = -ENOBUFS;
    if (r < 0)
        return r;
    service_call *call = weft__zalloc(service->alloc, sizeof *call);
    if (!call)
        return -ENOMEM;
    int64_t id = ++service->calls->last_id;
    *call = (service_call){.service = service, .id = id, .on_called = on_called, .ctx = ctx};
    weft__list_push(&service->calls->open, &call->link);
    service->calls->count++;
    weft_service_ref(service); /* the handler may give back the last one */
    r = start_service_call(call, who, method, &params);
    if (r < 0)
        free_service_call(call);
    else if (ret_id)
        *ret_id = id;
    weft_service_unref(service);
    return r;
}

/* ---- ending ---- */

/* The answer as it was written, taken apart in place. */
static int read_answer(service_call *call, weft_doc *doc, weft_answer *ret) {
    weft_buf *out = weft__peer_out(call->peer);
    const char *text = weft__buf_head(out), *rest;
    weft_msg msg;
    if (call->r < 0)
        return call->r;
    if (!text || !weft__buf_len(out)) /* it could not be written: the peer knows why */
        return weft__peer_status(call->peer) < 0 ? weft__peer_status(call->peer) : -EBADMSG;
    *weft__buf_tail(out) = '\0';
    int r = weft__msg_parse(text, WEFT_MAX_DEPTH, false, &msg, &rest);
    return r < 0 ? r : weft__answer_of(&msg, doc, ret);
}

static void deliver_call(service_call *call) {
    weft_doc doc = {.arena = {.alloc = call->service->alloc}};
    weft_answer answer = {0};
    int r = read_answer(call, &doc, &answer);
    weft__list_remove(&call->link); /* whatever the callback does, this was the one */
    call->on_called(call->ctx, r, r < 0 ? NULL : &answer);
    weft__arena_done(&doc.arena);
    free_service_call(call);
}

/* Those that are ready now. What becomes ready meanwhile has its turn in the next round, so that a call made again from its
 * callback does not keep the program here. */
static int deliver_ready(weft_service *service) {
    weft_link now;
    int count = 0;
    weft__list_init(&now);
    while (!weft__list_empty(&service->calls->ready)) {
        weft_link *link = service->calls->ready.next;
        weft__list_remove(link);
        weft__list_push(&now, link);
    }
    for (; !weft__list_empty(&now); count++)
        deliver_call(WEFT_CONTAINER(now.next, service_call, link));
    return count;
}

int weft_service_deliver(weft_service *service) {
    if (!service->calls)
        return 0;
    weft_service_ref(service); /* a callback may give back the last one */
    int count = deliver_ready(service);
    weft_service_unref(service);
    return count;
}

int weft_service_cancel(weft_service *service, int64_t id) {
    service_call *found = NULL;
    for (weft_link *at = service->calls ? service->calls->open.next : NULL; at && at != &service->calls->open && !found;
         at = at->next) {
        service_call *call = WEFT_CONTAINER(at, service_call, link);
        found = call->id == id ? call : NULL;
    }
    if (!found)
        return -ENOENT;
    found->r = -ECANCELED;
    weft_req *req = weft__req_by_id(found->peer, only_id);
    if (req)
        weft__req_abandon(req, -ECANCELED);
    make_ready(found);
    return 0;
}

void weft__service_calls_end(weft_service *service) {
    struct weft_service_calls *calls = service->calls;
    service->closing = true;
    while (!weft__list_empty(&calls->open)) {
        service_call *call = WEFT_CONTAINER(calls->open.next, service_call, link);
        call->r = -ECANCELED;
        call->ready = true;
        weft__list_remove(&call->link);
        weft__list_push(&calls->ready, &call->link);
    }
    deliver_ready(service);
}
