/* May this caller call this method now? Asked before a handler runs; the answers are data, so that every gate refuses in the
 * same form: a code, a sentence, data.reason. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "error_row.h"
#include "gate.h"
#include "meter.h"
#include "trace.h"
#include "utf8.h"

#define MAX_UNKNOWN 200 /* bytes of a method's name that an error repeats */

bool weft_has_scope(const weft_identity *who, const char *scope) {
    const char *scopes = who && who->scopes ? who->scopes : "";
    if (!scope || !*scope || strcmp(scopes, "*") == 0)
        return true;
    size_t len = strlen(scope);
    for (const char *at = scopes; (at = strstr(at, scope)); at += len)
        if ((at == scopes || at[-1] == ' ') && (at[len] == '\0' || at[len] == ' '))
            return true;
    return false;
}

static int default_authorize(const weft_identity *who, const weft_method *row) {
    if (weft_has_scope(who, row->scope))
        return 0;
    return who->authenticated ? -EACCES : -EPERM;
}

static int refuse_unauthorized(weft_outcome *ret) {
    static const weft_member data[] = {{"reason", {.kind = WEFT_VAL_STR, .len = 12, .as = {.s = "unauthorized"}}}};
    static const weft_val value = {.kind = WEFT_VAL_OBJ, .len = 1, .as = {.members = data}};
    *ret = (weft_outcome){401, "Not authenticated", &value};
    return -EACCES;
}

static int refuse_forbidden(weft_outcome *ret) {
    static const weft_member data[] = {{"reason", {.kind = WEFT_VAL_STR, .len = 9, .as = {.s = "forbidden"}}}};
    static const weft_val value = {.kind = WEFT_VAL_OBJ, .len = 1, .as = {.members = data}};
    *ret = (weft_outcome){403, "Not permitted", &value};
    return -EACCES;
}

/* Strangers do not learn which methods there are. */
static bool is_stranger(const weft_peer *peer, const weft_method *row) {
    return peer->locked && !peer->identity->authenticated && (!row || !(row->flags & WEFT_ROW_OPEN));
}

/* 0 pass, or <0 after the refusal is in *ret (a static text each). */
static int ask_scope(weft_req *req, weft_outcome *ret) {
    const weft_service *service = req->service;
    const weft_identity *who = weft_req_identity(req);
    int r = service->authorize ? service->authorize(service->ctx, who, req->row) : default_authorize(who, req->row);
    if (r >= 0)
        return 0;
    return r == -EPERM ? refuse_unauthorized(ret) : refuse_forbidden(ret);
}

static void refuse_rate(weft_req *req, int64_t wait_ms) {
    req->service->stats.rate_limited++;
    weft_fail(req, weft__row_code(req->row, "rateLimited", 429), "Too many requests",
              WEFT_OBJ({"reason", weft_str("rateLimited")}, {"retryAfterMs", weft_int(wait_ms)}));
}

/* ---- the user's gates ---- */

static bool gate_concerns(unsigned flags, const weft_method *row) {
    return ((row ? row->flags : 0) | WEFT_GATE_ALL) & (flags ? flags : WEFT_GATE_ALL);
}

static void note_gated(weft_req *req, const weft_msg *msg) {
    req->gate = req->service->gates;
    req->message = msg->text;
    req->name = msg->method;
    if (!req->service->tells)
        return;
    req->flags |= REQ_GATED;
    req->began_us = req->service->meter ? req->service->meter->began_us : weft__peer_now_us(req->peer);
    req->bytes_in = msg->text.len;
    req->bytes_out = 0;
    req->gone = req->excuse = 0;
    weft_trace trace;
    req->trace_id[0] = '\0';
    if ((req->meta.data || req->peer->trace) && weft_req_trace(req, &trace))
        weft__trace_id(trace.traceparent, req->trace_id);
}

/* A gate said no; it may have answered already. */
static void refuse_gated(weft_req *req, int r) {
    weft_outcome outcome = {.code = WEFT_INTERNAL_ERROR, .message = "Internal error"};
    if (req->flags & REQ_ANSWERED) {
        weft__req_release(req);
        return;
    }
    if (r == -EPERM)
        refuse_unauthorized(&outcome);
    else if (r == -EACCES)
        refuse_forbidden(&outcome);
    weft__req_finish(req, &outcome);
}

/* The gate answers later or lets it pass later: all of the message is needed then. */
static void take_over(weft_req *req) {
    if (req->meta.data)
        weft__req_read_deadline(req);
    weft__req_defer(req, true);
}

static bool ask_gates(weft_req *req, const weft_json *params) {
    weft_gate_request request = {.req = weft__req_handle(req),
                                 .method = req->row,
                                 .message = weft__json_of(req->message, req->doc),
                                 .name = req->name,
                                 .id = req->id,
                                 .params = *params};
    int r = 0;
    req->flags |= REQ_IN_HANDLER; /* it stays while gates look at it, also when one has answered it */
    while (r == 0 && *req->gate && !(req->flags & REQ_ANSWERED)) {
        const weft_gate *gate = *req->gate++;
        request.identity = weft_req_identity(req); /* one that has checked a signature may have changed it */
        r = gate->before && gate_concerns(gate->flags, req->row) ? gate->before(gate->ctx, &request) : 0;
    }
    req->flags &= ~(unsigned) REQ_IN_HANDLER;
    bool passed = r == 0 && !(req->flags & REQ_ANSWERED);
    if (r > 0 && !(req->flags & REQ_ANSWERED))
        take_over(req);
    else if (!passed)
        refuse_gated(req, r);
    return passed;
}

void weft__gate_ended(weft_req *req, int code, int lost) {
    weft_gate_outcome outcome = {.req = weft__req_handle(req),
                                 .method = req->row,
                                 .identity = weft_req_identity(req),
                                 .name = req->row ? (weft_bytes){req->row->name, strlen(req->row->name)} : req->name,
                                 .id = req->id,
                                 .notification = req->flags & REQ_NOTIFICATION,
                                 .code = req->excuse ? req->excuse : code,
                                 .lost = req->gone ? req->gone : lost,
                                 .duration_us = weft__peer_now_us(req->peer) - req->began_us,
                                 .bytes_in = req->bytes_in,
                                 .bytes_out = req->bytes_out,
                                 .trace_id = req->trace_id};
    req->flags &= ~(unsigned) REQ_GATED;
    for (const weft_gate *const *gate = req->service->gates; *gate; gate++)
        if ((*gate)->after && gate_concerns((*gate)->flags, req->row))
            (*gate)->after((*gate)->ctx, &outcome);
}

/* ---- the way in ---- */

static void refuse_unknown(weft_req *req, weft_bytes method) {
    char message[MAX_UNKNOWN + 32] = "Method not found";
    if (req->service->named_errors && method.len)
        snprintf(message, sizeof message, "Method not found: %.*s",
                 (int) weft__utf8_fit(method.data, method.len, MAX_UNKNOWN), method.data);
    weft_refuse(req, WEFT_METHOD_NOT_FOUND, message, "methodNotFound");
}

/* method: as it was called, where that is still known. */
static bool ask_rest(weft_req *req, weft_bytes method, const weft_json *params) {
    weft_outcome refusal;
    if (req->gate && !ask_gates(req, params))
        return false;
    if (!req->row)
        refuse_unknown(req, method);
    else if (ask_scope(req, &refusal) >= 0)
        return true;
    else
        weft__req_finish(req, &refusal);
    return false;
}

static bool is_counted(const weft_req *req) {
    const weft_method *row = req->row;
    return !row || !(row->flags & WEFT_ROW_UNCOUNTED) || is_stranger(req->peer, row) ||
           !weft_has_scope(req->peer->identity, row->scope);
}

bool weft__gate_admit(weft_req *req, const weft_msg *msg, const weft_json *params) {
    weft_peer *peer = req->peer;
    weft_outcome refusal;
    req->gate = NULL;
    if (peer->service->gates && gate_concerns(peer->service->gate_flags, req->row))
        note_gated(req, msg);
    int64_t wait_ms = peer->bucket && is_counted(req) ? weft__rate_take(peer) : 0;
    if (wait_ms) {
        refuse_rate(req, wait_ms);
        return false;
    }
    if (is_stranger(peer, req->row)) {
        refuse_unauthorized(&refusal);
        weft__req_finish(req, &refusal);
        return false;
    }
    return ask_rest(req, msg->method, params);
}

bool weft__gate_resume(weft_req *req, const weft_json *params) {
    return ask_rest(req, (weft_bytes){0}, params);
}
