/* Our calls: each completes exactly once.
 *
 * waiting ──answer──▶ answered   weft__calls_answer()      waiting ──deadline──▶ expired  weft__calls_expire()
 *         ──cancel──▶ cancelled  weft_cancel()                     ──close────▶ lost     weft__calls_fail_all()
 *
 * Correlation is a map from id to call; there are no other states. */
#include "call.h"

#include <errno.h>
#include <string.h>

#include "encode.h"
#include "send.h"

#define FIRST_CAP 16

typedef struct call {
    weft_timed timed;
    int64_t id;
    int64_t timeout_ms; /* <0: none */
    weft_on_answer *on_answer;
    void (*on_part)(weft_peer *peer, const weft_json *part, void *ctx);
    void (*on_misfit)(weft_peer *peer, const weft_schema_report *report, void *ctx);
    const weft_schema *schema; /* of the result; NULL: any */
    void *ctx;
} call;

/* Open addressing by id. Ids rise by one, so a power-of-two table with linear probing has almost no collisions. */
struct weft_calls {
    call **slots;
    size_t cap;
    size_t count;
    int64_t last_id;
};

/* ---- the map ---- */

static size_t call_slot(const struct weft_calls *calls, int64_t id) {
    return (size_t) id & (calls->cap - 1);
}

static size_t find_call_slot(const struct weft_calls *calls, int64_t id) {
    size_t i = call_slot(calls, id);
    while (calls->slots[i] && calls->slots[i]->id != id)
        i = (i + 1) & (calls->cap - 1);
    return i;
}

static int grow_calls(struct weft_calls *calls, const weft_alloc *alloc) {
    struct weft_calls larger = *calls;
    larger.cap = calls->cap ? calls->cap * 2 : FIRST_CAP;
    larger.slots = weft__zalloc(alloc, larger.cap * sizeof *larger.slots);
    if (!larger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < calls->cap; i++)
        if (calls->slots[i])
            larger.slots[find_call_slot(&larger, calls->slots[i]->id)] = calls->slots[i];
    weft__free(alloc, calls->slots);
    *calls = larger;
    return 0;
}

/* Close the gap, so that no lookup ends before what it looks for. */
static void remove_at(struct weft_calls *calls, size_t gap) {
    size_t mask = calls->cap - 1;
    calls->slots[gap] = NULL;
    calls->count--;
    for (size_t i = (gap + 1) & mask; calls->slots[i]; i = (i + 1) & mask) {
        size_t home = call_slot(calls, calls->slots[i]->id);
        if (((i - home) & mask) < ((i - gap) & mask))
            continue;
        calls->slots[gap] = calls->slots[i];
        calls->slots[i] = NULL;
        gap = i;
    }
}

/* ---- starting ---- */

static int make_room_for_call(weft_peer *peer) {
    const weft_alloc *alloc = peer->service->alloc;
    if (!peer->calls && !(peer->calls = weft__zalloc(alloc, sizeof *peer->calls)))
        return -ENOMEM;
    struct weft_calls *calls = peer->calls;
    if (calls->count >= peer->service->limits.max_calls)
        return -ENOBUFS;
    return calls->count * 2 < calls->cap ? 0 : grow_calls(calls, alloc);
}

static int set_timer(weft_peer *peer, call *c) {
    if (c->timeout_ms < 0)
        return 0;
    return weft__heap_set(&peer->due, peer->service->alloc, &c->timed.due, weft__after(peer->now, c->timeout_ms));
}

static void forget_call(weft_peer *peer, size_t slot) {
    call *c = peer->calls->slots[slot];
    weft__heap_remove(&peer->due, &c->timed.due);
    remove_at(peer->calls, slot);
}

int weft__call_open(weft_peer *peer, const weft_call_opts *opts, int64_t *ret_id) {
    if (peer->ended || peer->status)
        return -ENOTCONN;
    if (peer->framing->flags & WEFT_FRAMING_NO_CALLS)
        return -ENOTSUP;
    weft__peer_fresh_now(peer);
    int r = make_room_for_call(peer);
    if (r < 0)
        return r;
    call *c = weft__zalloc(peer->service->alloc, sizeof *c);
    if (!c)
        return -ENOMEM;
    int64_t timeout = opts->timeout_ms ? opts->timeout_ms : peer->service->limits.call_timeout_ms;
    c->timed.kind = WEFT_TIMED_CALL;
    c->id = ++peer->calls->last_id;
    c->timeout_ms = timeout;
    c->on_answer = opts->on_answer;
    c->on_part = opts->on_part;
    c->on_misfit = opts->on_misfit;
    c->schema = opts->result_schema;
    c->ctx = opts->ctx;
    r = set_timer(peer, c);
    if (r < 0) {
        weft__free(peer->service->alloc, c);
        return r;
    }
    peer->calls->slots[find_call_slot(peer->calls, c->id)] = c;
    peer->calls->count++;
    *ret_id = c->id;
    return 0;
}

bool weft__call_undo(weft_peer *peer, int64_t id) {
    size_t slot = find_call_slot(peer->calls, id);
    call *c = peer->calls->slots[slot];
    if (!c)
        return false;
    forget_call(peer, slot);
    weft__free(peer->service->alloc, c);
    return true;
}

int weft__call_write(weft_peer *peer, weft_buf *out, int64_t id, const char *method, const weft_val *params,
                     const weft_call_opts *opts) {
    int64_t timeout = opts->timeout_ms ? opts->timeout_ms : peer->service->limits.call_timeout_ms;
    weft_extras extras = {
        .progress_token = opts->on_part ? id : 0,
        .token_in_params = peer->style == WEFT_STYLE_LSP,
        .deadline_ms = peer->extras && opts->send_deadline && timeout > 0 ? timeout : 0,
        .idempotency_key = peer->extras ? opts->idempotency_key : NULL,
    };
    return weft__request_write(peer, out, id, method, params, &extras);
}

static int send_call(weft_peer *peer, const char *method, const weft_val *params, const weft_call_opts *opts,
                     int64_t *ret_id) {
    int64_t id;
    weft_sending sending;
    int r = weft__call_open(peer, opts, &id);
    if (r < 0)
        return r;
    r = weft__send_begin(peer, 0, &sending);
    if (r >= 0) {
        r = weft__call_write(peer, &peer->out, id, method, params, opts);
        if (r >= 0)
            r = weft__send_end(peer, &sending);
        else
            weft__send_undo(peer, &sending);
    }
    if (r < 0) {
        weft__call_undo(peer, id);
        return r;
    }
    peer->service->stats.calls++;
    if (ret_id)
        *ret_id = id;
    return 0;
}

/* Sending calls on_message and on_output, and either may free the peer. */
int weft_call_start(weft_peer *peer, const char *method, weft_val params, const weft_call_opts *opts, int64_t *ret_id) {
    static const weft_call_opts none;
    opts = opts ? opts : &none;
    weft__peer_enter(peer);
    int r = send_call(peer, method, &params, opts, ret_id);
    weft__peer_leave(peer);
    return r;
}

static int send_notification(weft_peer *peer, const char *method, const weft_val *params) {
    weft_sending sending;
    if (peer->ended)
        return -ENOTCONN;
    if (peer->framing->flags & WEFT_FRAMING_NO_NOTES)
        return -ENOTSUP;
    int r = weft__send_begin(peer, 0, &sending);
    if (r < 0)
        return r;
    r = weft__request_write(peer, &peer->out, 0, method, params, NULL);
    if (r >= 0) {
        peer->service->stats.notifications_out++;
        return weft__send_end(peer, &sending);
    }
    weft__send_undo(peer, &sending);
    return r;
}

int weft_notify(weft_peer *peer, const char *method, weft_val params) {
    weft__peer_enter(peer);
    int r = send_notification(peer, method, &params);
    weft__peer_leave(peer);
    return r;
}

/* ---- completing ---- */

static int check_result(weft_peer *peer, const call *done, const weft_json *result) {
    WEFT_SCHEMA_REPORT report = {0};
    int r = weft_schema_check(done->schema, result, done->on_misfit ? &report : NULL);
    if (r == -EBADMSG && done->on_misfit)
        done->on_misfit(peer, &report, done->ctx);
    return r;
}

/* The call is out of the map before its callback runs: whatever that does, this completion was the one. */
static void complete_call(weft_peer *peer, size_t slot, int r, const weft_answer *answer) {
    call done = *peer->calls->slots[slot];
    call *c = peer->calls->slots[slot];
    forget_call(peer, slot);
    weft__free(peer->service->alloc, c);
    if (r >= 0 && done.schema && answer->result)
        r = check_result(peer, &done, answer->result);
    answer = r < 0 ? NULL : answer;
    if (done.on_answer)
        done.on_answer(peer, r, answer, done.ctx);
}

static size_t slot_with(const weft_peer *peer, int64_t id) {
    if (!peer->calls || !peer->calls->cap)
        return SIZE_MAX;
    size_t slot = find_call_slot(peer->calls, id);
    return peer->calls->slots[slot] ? slot : SIZE_MAX;
}

static int read_error(const weft_json *error, weft_answer *ret) {
    weft_json code = weft_get(error, "code");
    weft_json message = weft_get(error, "message");
    if (weft_typeof(&code) != WEFT_NUMBER)
        return -EBADMSG;
    int64_t number = weft_int_of(&code, 0);
    ret->error_.code = number >= INT32_MIN && number <= INT32_MAX ? (int) number : 0;
    ret->error_.message = weft_str_of(&message, "");
    ret->error_.data = weft_get(error, "data");
    ret->error = &ret->error_;
    return 0;
}

int weft__answer_of(const weft_msg *msg, weft_doc *doc, weft_answer *ret) {
    weft_json error = weft__json_of(msg->error, doc);
    ret->result_ = weft__json_of(msg->result, doc);
    if (!msg->proper)
        return -EBADMSG;
    if (error.text)
        return read_error(&error, ret);
    ret->result = &ret->result_;
    return 0;
}

static size_t slot_of_answer(const weft_peer *peer, weft_bytes text) {
    weft_json id = weft__json_of(text, NULL);
    return weft_typeof(&id) == WEFT_NUMBER ? slot_with(peer, weft_int_of(&id, 0)) : SIZE_MAX;
}

bool weft__calls_wait_for(const weft_peer *peer, weft_bytes id) {
    return slot_of_answer(peer, id) != SIZE_MAX;
}

void weft__calls_answer(weft_peer *peer, const weft_msg *msg, weft_doc *doc) {
    size_t slot = slot_of_answer(peer, msg->id);
    if (slot == SIZE_MAX) {
        peer->service->stats.stray_answers++;
        return;
    }
    weft_answer answer = {0};
    int r = weft__answer_of(msg, doc, &answer);
    complete_call(peer, slot, r, r < 0 ? NULL : &answer);
}

static size_t only_slot(const weft_peer *peer) {
    size_t slot = 0;
    if (!peer->calls || peer->calls->count != 1)
        return SIZE_MAX;
    while (!peer->calls->slots[slot])
        slot++;
    return slot;
}

/* Where the id comes behind the result and several calls are open, nobody knows which of them was answered: then it is a
 * message like others, and its sender is told that it was too large. */
bool weft__calls_too_large(weft_peer *peer, const char *text) {
    weft_bytes span;
    if (!weft__msg_begins_answer(text, &span))
        return false;
    size_t slot = span.len ? slot_of_answer(peer, span) : only_slot(peer);
    if (slot != SIZE_MAX)
        complete_call(peer, slot, -EMSGSIZE, NULL);
    else
        peer->service->stats.stray_answers++;
    return slot != SIZE_MAX || span.len || !peer->calls || !peer->calls->count;
}

int weft__calls_part(weft_peer *peer, int64_t token, const weft_json *part) {
    size_t slot = slot_with(peer, token);
    if (slot == SIZE_MAX || !peer->calls->slots[slot]->on_part)
        return 0;
    call *c = peer->calls->slots[slot];
    set_timer(peer, c); /* it is in the heap already, so this cannot fail */
    c->on_part(peer, part, c->ctx);
    return 1;
}

void weft__calls_fail_all(weft_peer *peer, int why) {
    /* A callback may start another call, or cancel one, which moves others to slots that were looked at already; only those
     * that are open now are failed, and the table is looked through until none of them is left. */
    int64_t last = peer->calls ? peer->calls->last_id : 0;
    for (bool some = peer->calls; some;) {
        some = false;
        for (size_t i = 0; i < peer->calls->cap;) {
            const call *c = peer->calls->slots[i];
            bool open = c && c->id <= last;
            if (open)
                complete_call(peer, i, why, NULL); /* and look again: another may have moved here */
            else
                i++;
            some |= open;
        }
    }
}

/* Tell the other side under the name it knows. */
static void notify_cancel(weft_peer *peer, int64_t id) {
    switch (peer->style) {
    case WEFT_STYLE_ACP:
        weft_notify(peer, "$/cancel_request", WEFT_OBJ({"requestId", weft_int(id)}));
        break;
    case WEFT_STYLE_MCP:
        weft_notify(peer, "notifications/cancelled", WEFT_OBJ({"requestId", weft_int(id)}));
        break;
    default:
        weft_notify(peer, "$/cancelRequest", WEFT_OBJ({"id", weft_int(id)}));
        break;
    }
}

void weft__calls_expire(weft_peer *peer, weft_timed *timed) {
    call *c = WEFT_CONTAINER(timed, call, timed);
    int64_t id = c->id;
    peer->service->stats.expired++;
    if (peer->extras) /* others did not ask for notifications and may not know this one */
        notify_cancel(peer, id);
    complete_call(peer, find_call_slot(peer->calls, id), -ETIMEDOUT, NULL);
}

size_t weft__calls_count(const weft_peer *peer) {
    return peer->calls ? peer->calls->count : 0;
}

void weft__calls_done(weft_peer *peer) {
    if (!peer->calls)
        return;
    weft__free(peer->service->alloc, peer->calls->slots);
    peer->calls = weft__free(peer->service->alloc, peer->calls);
}

int weft_cancel(weft_peer *peer, int64_t id) {
    size_t slot = slot_with(peer, id);
    if (slot == SIZE_MAX)
        return -ENOENT;
    weft__peer_enter(peer);
    notify_cancel(peer, id);
    complete_call(peer, find_call_slot(peer->calls, id), -ECANCELED, NULL);
    weft__peer_leave(peer);
    return 0;
}
