#include "past_gate.h"

#include <errno.h>

#include "alloc.h"
#include "reply.h"

/* A request that waits. */
typedef struct parked {
    weft_link link;
    weft_req *req;
} parked;

/* Nothing is asked any more: requests go straight to their handlers. */
static void open_for_good(weft_past_gate *gate) {
    for (weft_method *row = gate->rows; row->name; row++)
        row->flags &= ~(unsigned) WEFT_ASKS_PAST;
}

static int refuse_unread(weft_req *req, int r) {
    weft__reply_error(req, 503, "storageFailed", "What happened before the last start cannot be read: %s", weft_strerror(r));
    return r;
}

static bool needs_no_past(const weft_gate_request *request) {
    const weft_json *params = &request->params;
    if (!(request->method->flags & WEFT_EARLY) || weft_typeof(params) == WEFT_ARRAY)
        return false;
    weft_json session = weft_get(params, "sessionId"), meta = weft_get(params, "_meta");
    return !session.text && !meta.text;
}

static int park(weft_past_gate *gate, weft_req *req) {
    parked *made = weft__alloc(gate->hub->alloc, sizeof *made);
    if (!made)
        return refuse_unread(req, -ENOMEM);
    made->req = req;
    weft__list_push(&gate->parked, &made->link);
    if (!gate->resuming && weft__list_empty(&gate->waiter.link))
        weft__engine_await_past(gate->hub->engine, &gate->waiter);
    return 1;
}

static int ask_past(void *ctx, const weft_gate_request *request) {
    weft_past_gate *gate = ctx;
    int r = weft__engine_past(gate->hub->engine);
    bool others = !weft__list_empty(&gate->parked) || gate->resuming;
    if (r == 0 && !others)
        open_for_good(gate);
    if (!others && (r == 0 || needs_no_past(request)))
        return 0;
    return r == 0 || r == -EAGAIN ? park(gate, request->req) : refuse_unread(request->req, r);
}

/* Those that come while others are let pass are behind them. */
static void on_past(weft_past_waiter *waiter, int r) {
    weft_past_gate *gate = WEFT_CONTAINER(waiter, weft_past_gate, waiter);
    gate->resuming = true;
    while (!weft__list_empty(&gate->parked)) {
        parked *first = WEFT_CONTAINER(gate->parked.next, parked, link);
        weft_req *req = first->req;
        weft__list_remove(&first->link);
        weft__free(gate->hub->alloc, first);
        if (r < 0)
            refuse_unread(req, r);
        else
            weft_req_continue(req);
    }
    gate->resuming = false;
}

void weft__past_gate_init(weft_past_gate *gate, const weft_hub *hub, weft_method *rows) {
    *gate = (weft_past_gate){.gate = {.name = "past", .before = ask_past, .ctx = gate, .flags = WEFT_ASKS_PAST},
                             .hub = hub,
                             .rows = rows,
                             .waiter = {.on_past = on_past}};
    weft__list_init(&gate->parked);
    weft__list_init(&gate->waiter.link);
    for (weft_method *row = rows; row->name; row++)
        row->flags |= WEFT_ASKS_PAST;
}

/* The engine has gone before, and with it everybody who waited. */
void weft__past_gate_done(weft_past_gate *gate) {
    while (!weft__list_empty(&gate->parked)) {
        parked *first = WEFT_CONTAINER(gate->parked.next, parked, link);
        weft__list_remove(&first->link);
        weft__free(gate->hub->alloc, first);
    }
}
