/* What we ask of a server: queued until it is ready, sent, perhaps in several pages or rounds, and told once.
 *
 *   QUEUED ──send_request()──▶ SENT ──on_request_answer()──▶ OVER          SENT ──input is wanted──▶ ASKING ──▶ SENT
 *   any ──weft__mcp_finish()──▶ OVER ──weft__mcp_tell_over()──▶ freed, when the peer does not know it any more either */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mcp_private.h"
#include "write.h"

#define TIMEOUT_MS 60000
/* A request that makes progress may take long, and not for ever. */
#define MOST_MS (60 * 60 * 1000)
/* Bytes of what we ask. */
#define MAX_PARAMS (8u << 20)

/* ---- memory ---- */

void weft__mcp_request_free(weft_mcp_request *request) {
    const weft_alloc *alloc = request->mcp->alloc;
    weft__free(alloc, request->method);
    weft_doc_free(request->params);
    weft_doc_free(request->cursor);
    weft_doc_free(request->asked);
    weft_doc_free(request->result);
    weft_doc_free(request->error);
    weft__buf_done(&request->items, alloc);
    weft__buf_done(&request->inputs, alloc);
    weft__buf_done(&request->headers, alloc);
    weft__free(alloc, request);
}

weft_mcp_request *weft__mcp_by_call(const weft_mcp_server *server, int64_t call) {
    for (weft_link *link = server->requests.next; call && link != &server->requests; link = link->next)
        if (WEFT_CONTAINER(link, weft_mcp_request, link)->call == call)
            return WEFT_CONTAINER(link, weft_mcp_request, link);
    return NULL;
}

weft_mcp_request *weft__mcp_by_number(const weft_mcp_server *server, uint64_t number) {
    for (weft_link *link = server->requests.next; link != &server->requests; link = link->next)
        if (WEFT_CONTAINER(link, weft_mcp_request, link)->number == number)
            return WEFT_CONTAINER(link, weft_mcp_request, link);
    return NULL;
}

/* ---- the end ---- */

static bool has_others(const weft_mcp_server *server) {
    for (weft_link *link = server->requests.next; link != &server->requests; link = link->next)
        if (!WEFT_CONTAINER(link, weft_mcp_request, link)->internal)
            return true;
    return false;
}

static void end_request(weft_mcp_request *request) {
    weft_mcp_server *server = request->server;
    weft_mcp *mcp = request->mcp;
    request->state = WEFT_MCP_OVER;
    request->call = 0;
    weft__timer_stop(mcp->loop, &request->timer);
    weft__mcp_unask(server, request);
    weft__list_remove(&request->link);
    server->request_count--;
    /* A server of the older era does not say for which request it asks: what it asks is over with the last of them. */
    if (!request->internal && server->ask_count && !has_others(server))
        weft__mcp_unask(server, NULL);
    weft__list_push(&mcp->over, &request->link);
    weft__later(mcp->loop, &mcp->later);
}

void weft__mcp_finish(weft_mcp_request *request, int r, const char *format, ...) {
    va_list args;
    if (request->state == WEFT_MCP_OVER)
        return;
    request->r = r;
    va_start(args, format);
    vsnprintf(request->why, sizeof request->why, format, args);
    va_end(args);
    end_request(request);
}

static void finish_some(weft_mcp_server *server, bool all, int r, const char *why) {
    for (weft_link *link = server->requests.next, *next; link != &server->requests; link = next) {
        weft_mcp_request *request = WEFT_CONTAINER(link, weft_mcp_request, link);
        next = link->next;
        if (all || request->state != WEFT_MCP_QUEUED || request->internal)
            weft__mcp_finish(request, r, "%s", why);
    }
}

void weft__mcp_finish_all(weft_mcp_server *server, int r, const char *why) {
    finish_some(server, true, r, why);
}

void weft__mcp_finish_sent(weft_mcp_server *server, int r, const char *why) {
    finish_some(server, false, r, why);
}

static void tell_request(weft_mcp_request *request) {
    weft_error error = {0};
    weft_json whole = request->error ? *weft_doc_root(request->error) : (weft_json){0};
    weft_mcp_answer answer = {.r = request->r, .why = request->why};
    if (request->error) {
        error.code = (int) weft_get_int(&whole, "code", WEFT_INTERNAL_ERROR);
        error.message = weft_get_str(&whole, "message", "");
        error.data = weft_get(&whole, "data");
        answer.error = &error;
    }
    if (request->result)
        answer.result = weft_doc_root(request->result);
    if (request->done)
        request->done(request->ctx, &answer);
    else if (request->on_over)
        request->on_over(request);
}

void weft__mcp_tell_over(weft_later *later) {
    weft_mcp *mcp = WEFT_CONTAINER(later, weft_mcp, later);
    while (!weft__list_empty(&mcp->over)) {
        weft_mcp_request *request = WEFT_CONTAINER(mcp->over.next, weft_mcp_request, link);
        weft__list_remove(&request->link);
        tell_request(request);
        request->told = true;
        if (!request->open)
            weft__mcp_request_free(request);
    }
}

/* ---- sending ---- */

static int put_member(weft_buf *out, const weft_alloc *alloc, const char *name, weft_val value) {
    weft_val key = weft_str(name);
    int r = weft__buf_len(out) > 1 ? weft__buf_put_text(out, alloc, ",") : 0;
    if (r >= 0)
        r = weft__write_val(out, alloc, &key);
    if (r >= 0)
        r = weft__buf_put_text(out, alloc, ":");
    return r < 0 ? r : weft__write_val(out, alloc, &value);
}

static int put_meta(weft_buf *out, const weft_mcp_request *request) {
    const weft_mcp_server *server = request->server;
    weft_member able[3], modes[2], info[3];
    bool modern = server->era == WEFT_MCP_IS_MODERN;
    char token[32];
    snprintf(token, sizeof token, "weft-%llu", (unsigned long long) request->number);
    weft_val meta = WEFT_OBJ(
        {"progressToken", request->on_progress ? weft_str(token) : weft_none()},
        {"io.modelcontextprotocol/protocolVersion", modern ? weft_str(WEFT_MCP_MODERN) : weft_none()},
        {"io.modelcontextprotocol/clientInfo", modern ? weft__mcp_client_info(info) : weft_none()},
        {"io.modelcontextprotocol/clientCapabilities", modern ? weft__mcp_capabilities(server, able, modes) : weft_none()},
        {"io.modelcontextprotocol/logLevel", modern ? weft_str("info") : weft_none()});
    return modern || request->on_progress ? put_member(out, request->mcp->alloc, "_meta", meta) : 0;
}

/* The inputs that were asked for, and the state exactly as it came. */
static int put_inputs(weft_buf *out, const weft_mcp_request *request) {
    const weft_alloc *alloc = request->mcp->alloc;
    if (!request->asked)
        return 0;
    weft_json state = weft_get(weft_doc_root(request->asked), "requestState");
    int r = weft__buf_put_text(out, alloc, weft__buf_len(out) > 1 ? ",\"inputResponses\":{" : "\"inputResponses\":{");
    if (r >= 0)
        r = weft__buf_put(out, alloc, weft__buf_head(&request->inputs), weft__buf_len(&request->inputs));
    if (r >= 0)
        r = weft__buf_put_text(out, alloc, "}");
    return r < 0 || !state.text ? r : put_member(out, alloc, "requestState", weft_copy(&state));
}

static int put_params(weft_buf *out, const weft_mcp_request *request) {
    const weft_alloc *alloc = request->mcp->alloc;
    const weft_json *params = request->params ? weft_doc_root(request->params) : &(weft_json){0};
    int r = weft__buf_put_text(out, alloc, "{");
    for (weft_iter it = weft_iterate(params); r >= 0 && weft_next(&it);) {
        r = weft__buf_len(out) > 1 ? weft__buf_put_text(out, alloc, ",") : 0;
        if (r >= 0)
            r = weft__buf_put(out, alloc, it.name.text, it.name.len);
        if (r >= 0)
            r = weft__buf_put_text(out, alloc, ":");
        if (r >= 0)
            r = weft__buf_put(out, alloc, it.value.text, it.value.len);
    }
    if (r >= 0 && request->cursor)
        r = put_member(out, alloc, "cursor", weft_copy(weft_doc_root(request->cursor)));
    if (r >= 0)
        r = put_inputs(out, request);
    if (r >= 0)
        r = put_meta(out, request);
    return r < 0 ? r : weft__buf_put_text(out, alloc, "}");
}

static void on_request_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx);

static void start_timer(weft_mcp_request *request) {
    int64_t now = weft__loop_fresh_now(request->mcp->loop), due = weft__add_ms(now, request->timeout_ms);
    if (request->timeout_ms >= 0)
        weft__timer_set(request->mcp->loop, &request->timer, due < request->latest ? due : request->latest);
}

static void send_request(weft_mcp_request *request) {
    weft_mcp_server *server = request->server;
    weft_buf params = {0};
    weft_call_opts opts = {.on_answer = on_request_answer, .ctx = request, .timeout_ms = -1};
    int r = put_params(&params, request);
    if (r >= 0 && server->era == WEFT_MCP_IS_MODERN && strcmp(request->method, "tools/call") == 0 && request->params)
        r = weft__mcp_param_headers(server, weft_doc_root(request->params), &request->headers);
    if (r >= 0)
        r = weft_call_start(server->peer, request->method,
                            weft__buf_len(&params) > 2 ? weft_raw(weft__buf_head(&params), weft__buf_len(&params))
                                                       : weft_none(),
                            &opts, &request->call);
    weft__buf_done(&params, request->mcp->alloc);
    if (r < 0) {
        weft__mcp_finish(request, r, "it could not be sent: %s", weft_strerror(r));
        return;
    }
    request->open++;
    request->state = WEFT_MCP_SENT;
    start_timer(request);
}

void weft__mcp_send_again(weft_mcp_request *request) {
    weft_mcp_server *server = request->server;
    if (server->state == WEFT_MCP_READY)
        send_request(request);
    else
        weft__mcp_finish(request, -ECONNRESET, "the server has ended");
}

void weft__mcp_requeue(weft_mcp_request *request) {
    request->state = WEFT_MCP_QUEUED;
    request->call = 0;
    request->again = true;
}

/* ---- the tools, which calls need ---- */

static void on_tools_known(weft_mcp_request *request) {
    weft_mcp_server *server = request->server;
    if (!server)
        return;
    server->lists_tools = false;
    for (weft_link *link = server->requests.next; link != &server->requests; link = link->next)
        WEFT_CONTAINER(link, weft_mcp_request, link)->needs_tools = false; /* also when they cannot be known */
    if (server->state == WEFT_MCP_READY)
        weft__mcp_send_waiting(server);
}

/* What a tool's result must be, and what must be said in headers, is in the list of tools. */
static bool waits_for_tools(weft_mcp_request *request) {
    weft_mcp_server *server = request->server;
    if (!request->needs_tools || server->tools || !weft__mcp_has_capability(server, "/capabilities/tools"))
        return false;
    if (server->lists_tools)
        return true;
    server->lists_tools = weft__mcp_request_own(server, "tools/list", weft_none(), on_tools_known) != NULL;
    return server->lists_tools;
}

void weft__mcp_send_waiting(weft_mcp_server *server) {
    for (weft_link *link = server->requests.next, *next; link != &server->requests; link = next) {
        weft_mcp_request *request = WEFT_CONTAINER(link, weft_mcp_request, link);
        if (request->state == WEFT_MCP_QUEUED && !waits_for_tools(request)) {
            next = link->next;
            send_request(request);
        } else
            next = link->next;
    }
}

/* ---- answers ---- */

static void finish_with_result(weft_mcp_request *request, const weft_json *result) {
    int r = weft_doc_keep(result, request->mcp->alloc, &request->result);
    weft__mcp_finish(request, r < 0 ? r : 0, "%s", r < 0 ? weft_strerror(r) : "");
}

static void finish_with_error(weft_mcp_request *request, const weft_error *error) {
    char *text;
    size_t len;
    weft_val value = WEFT_OBJ({"code", weft_int(error->code)}, {"message", weft_str(error->message)},
                              {"data", error->data.text ? weft_copy(&error->data) : weft_none()});
    int r = weft_to_text(value, request->mcp->alloc, &text, &len);
    if (r >= 0) {
        r = weft_doc_parse(text, len, request->mcp->alloc, &request->error);
        weft_text_free(text, request->mcp->alloc);
    }
    weft__mcp_finish(request, r < 0 ? r : 0, "%s", r < 0 ? weft_strerror(r) : "");
}

static int put_list(weft_buf *out, const weft_mcp_request *request, weft_bytes items) {
    const weft_alloc *alloc = request->mcp->alloc;
    int r = weft__buf_put_text(out, alloc, "{\"");
    if (r >= 0)
        r = weft__buf_put_text(out, alloc, request->list);
    if (r >= 0)
        r = weft__buf_put_text(out, alloc, "\":");
    if (r >= 0)
        r = weft__buf_put(out, alloc, items.data, items.len);
    return r < 0 ? r : weft__buf_put_text(out, alloc, "}");
}

/* The tools are kept, and those that must not be used are in neither list. */
static int keep_if_tools(weft_mcp_request *request, weft_buf *items) {
    weft_mcp_server *server = request->server;
    weft_doc *doc;
    if (strcmp(request->method, "tools/list") != 0)
        return 0;
    int r = weft_doc_parse(weft__buf_head(items), weft__buf_len(items), request->mcp->alloc, &doc);
    if (r < 0)
        return r;
    r = weft__mcp_keep_tools(server, weft_doc_root(doc));
    weft_doc_free(doc);
    weft__buf_done(items, request->mcp->alloc);
    const weft_json *kept = r < 0 ? NULL : weft_doc_root(server->tools);
    return r < 0 ? r : weft__buf_put(items, request->mcp->alloc, kept->text, kept->len);
}

/* All pages as one result: {"tools":[...]}. */
static void finish_list(weft_mcp_request *request) {
    const weft_alloc *alloc = request->mcp->alloc;
    weft_buf items = {0}, out = {0};
    int r = weft__buf_put_text(&items, alloc, "[");
    if (r >= 0)
        r = weft__buf_put(&items, alloc, weft__buf_head(&request->items), weft__buf_len(&request->items));
    if (r >= 0)
        r = weft__buf_put_text(&items, alloc, "]");
    if (r >= 0)
        r = keep_if_tools(request, &items);
    if (r >= 0)
        r = put_list(&out, request, (weft_bytes){weft__buf_head(&items), weft__buf_len(&items)});
    if (r >= 0)
        r = weft_doc_parse(weft__buf_head(&out), weft__buf_len(&out), alloc, &request->result);
    weft__buf_done(&items, alloc);
    weft__buf_done(&out, alloc);
    weft__mcp_finish(request, r < 0 ? r : 0, "%s", r < 0 ? weft_strerror(r) : "");
}

static int keep_items(weft_mcp_request *request, const weft_json *items) {
    int r = 0;
    for (weft_iter it = weft_iterate(items); r >= 0 && weft_next(&it);) {
        if (weft_typeof(&it.value) != WEFT_OBJECT)
            continue;
        r = weft__buf_len(&request->items) + it.value.len >= WEFT_MCP_LIST ? -EMSGSIZE : 0;
        if (r >= 0 && weft__buf_len(&request->items))
            r = weft__buf_put_text(&request->items, request->mcp->alloc, ",");
        if (r >= 0)
            r = weft__buf_put(&request->items, request->mcp->alloc, it.value.text, it.value.len);
    }
    return r;
}

static void take_page(weft_mcp_request *request, const weft_json *result) {
    weft_json items = weft_get(result, request->list), next = weft_get(result, "nextCursor");
    int r = weft_typeof(&items) == WEFT_ARRAY ? keep_items(request, &items) : -EBADMSG;
    request->cursor = weft_doc_free(request->cursor);
    if (r >= 0 && weft_typeof(&next) == WEFT_STRING && ++request->pages >= WEFT_MCP_PAGES)
        r = -EMSGSIZE;
    if (r >= 0 && weft_typeof(&next) == WEFT_STRING)
        r = weft_doc_keep(&next, request->mcp->alloc, &request->cursor);
    if (r == -EMSGSIZE)
        weft__mcp_finish(request, r, "the list of the server is longer than is read here");
    else if (r == -EBADMSG)
        weft__mcp_finish(request, r, "the answer of the server has no list \"%s\"", request->list);
    else if (r < 0)
        weft__mcp_finish(request, r, "%s", weft_strerror(r));
    else if (request->cursor)
        weft__mcp_send_again(request);
    else
        finish_list(request);
}

static void take_complete(weft_mcp_request *request, const weft_json *result) {
    char why[WEFT_MCP_WHY] = "";
    int r = 0;
    if (request->list) {
        take_page(request, result);
        return;
    }
    if (weft_typeof(result) != WEFT_OBJECT)
        r = -EBADMSG, snprintf(why, sizeof why, "the answer of the server is not an object");
    else if (strcmp(request->method, "tools/call") == 0)
        r = weft__mcp_check_result(request->server, weft_doc_root(request->params), result, why);
    if (r < 0)
        weft__mcp_finish(request, r, "%s", *why ? why : weft_strerror(r));
    else
        finish_with_result(request, result);
}

static void take_result(weft_mcp_request *request, const weft_json *result) {
    bool modern = request->server->era == WEFT_MCP_IS_MODERN;
    const char *type = modern ? weft_get_str(result, "resultType", "complete") : "complete";
    char why[WEFT_MCP_WHY] = "";
    int r = 0;
    if (strcmp(type, "complete") == 0) {
        take_complete(request, result);
        return;
    }
    if (strcmp(type, "input_required") != 0)
        r = -EBADMSG, snprintf(why, sizeof why, "the server answered with the resultType \"%.40s\"", type);
    else if (++request->rounds > WEFT_MCP_ROUNDS)
        r = -EMSGSIZE, snprintf(why, sizeof why, "the server asks for input again and again");
    else
        r = weft__mcp_ask_inputs(request, result, why);
    if (r < 0)
        weft__mcp_finish(request, r, "%s", *why ? why : weft_strerror(r));
}

static void take_answer(weft_mcp_request *request, int r, const weft_answer *answer) {
    request->call = 0;
    if (r == -ECONNRESET || r == -ENOTCONN)
        return; /* the wire is about to say how it ended: weft__mcp_failed() */
    weft__timer_stop(request->mcp->loop, &request->timer);
    weft__mcp_used(request->server);
    if (r == -EMSGSIZE)
        weft__mcp_finish(request, r, "%s sent a message of more than 32 MiB", request->server->spec->name);
    else if (r < 0)
        weft__mcp_finish(request, r, "%s", r == -EBADMSG ? "the answer of the server is not valid" : weft_strerror(r));
    else if (request->r < 0) /* the wire has failed it, and said why */
        end_request(request);
    else if (answer->error)
        finish_with_error(request, answer->error);
    else {
        weft__backoff_reset(&request->server->backoff);
        take_result(request, answer->result);
    }
}

/* A peer that is freed inside a callback completes its calls when that returns: then the request is over already, or was
 * sent again to another. */
static void on_request_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_mcp_request *request = ctx;
    request->open--;
    if (request->told && !request->open)
        weft__mcp_request_free(request);
    else if (!request->told && request->state == WEFT_MCP_SENT && peer == request->server->peer)
        take_answer(request, r, answer);
}

/* ---- asking ---- */

static void on_request_due(weft_timer *timer) {
    weft_mcp_request *request = WEFT_CONTAINER(timer, weft_mcp_request, timer);
    weft_mcp_server *server = request->server;
    bool late = weft__loop_fresh_now(request->mcp->loop) >= request->latest;
    if (server->ask_count && !late) { /* a person takes as long as it takes */
        start_timer(request);
        return;
    }
    int64_t call = request->call;
    weft__mcp_finish(request, -ETIMEDOUT, "the server did not answer in time");
    if (call && server->peer)
        weft_cancel(server->peer, call);
}

void weft__mcp_progress(weft_mcp_request *request, const weft_json *params) {
    if (request->state != WEFT_MCP_SENT)
        return;
    start_timer(request);
    if (request->on_progress)
        request->on_progress(request->ctx, params);
}

static int read_params(weft_mcp_request *request, weft_val params) {
    const weft_alloc *alloc = request->mcp->alloc;
    char *text;
    size_t len;
    if (params.kind == WEFT_VAL_NONE)
        return 0;
    int r = weft_to_text(params, alloc, &text, &len);
    if (r < 0)
        return r;
    r = len > MAX_PARAMS ? -EMSGSIZE : weft_doc_parse(text, len, alloc, &request->params);
    weft_text_free(text, alloc);
    return r;
}

static int new_request(weft_mcp_server *server, const weft_mcp_call *call, weft_mcp_request **ret) {
    weft_mcp *mcp = server->mcp;
    if (server->request_count >= WEFT_MCP_REQUESTS || mcp->ended)
        return mcp->ended ? -ESHUTDOWN : -ENOBUFS;
    weft_mcp_request *request = weft__zalloc(mcp->alloc, sizeof *request);
    if (!request)
        return -ENOMEM;
    request->mcp = mcp;
    request->server = server;
    request->number = ++mcp->last_request;
    request->list = call->list;
    request->done = call->done;
    request->ctx = call->ctx;
    request->on_progress = call->on_progress;
    request->needs_tools = strcmp(call->method, "tools/call") == 0;
    request->timeout_ms = call->timeout_ms ? call->timeout_ms : server->spec->timeout_ms;
    request->timeout_ms = request->timeout_ms ? request->timeout_ms : TIMEOUT_MS;
    request->latest = weft__add_ms(weft__loop_fresh_now(mcp->loop), MOST_MS);
    weft__timer_init(&request->timer, on_request_due);
    weft__list_init(&request->link);
    request->method = weft__strndup(mcp->alloc, call->method, strlen(call->method));
    int r = request->method ? read_params(request, call->params) : -ENOMEM;
    if (r < 0) {
        weft__mcp_request_free(request);
        return r;
    }
    weft__list_push(&server->requests, &request->link);
    server->request_count++;
    *ret = request;
    return 0;
}

int weft__mcp_request(weft_mcp_server *server, const weft_mcp_call *call, weft_mcp_request **ret) {
    weft_mcp_request *request;
    int r = new_request(server, call, &request);
    if (r < 0)
        return r;
    start_timer(request);
    weft__mcp_used(server);
    if (server->state == WEFT_MCP_READY)
        weft__mcp_send_waiting(server);
    else
        weft__mcp_need(server);
    if (ret)
        *ret = request;
    return 0;
}

/* Not sent from here: whoever asks is looking at what was sent. Lists are put together for us as for others. */
weft_mcp_request *weft__mcp_request_own(weft_mcp_server *server, const char *method, weft_val params,
                                        void (*on_over)(weft_mcp_request *request)) {
    weft_mcp_request *request;
    weft_mcp_call call = {.method = method, .params = params, .list = strcmp(method, "tools/list") == 0 ? "tools" : NULL};
    if (new_request(server, &call, &request) < 0)
        return NULL;
    request->internal = true;
    request->on_over = on_over;
    if (strcmp(method, "subscriptions/listen") == 0) {
        request->timeout_ms = -1;
        request->latest = INT64_MAX;
    }
    send_request(request);
    return request;
}

void weft__mcp_cancel(weft_mcp_request *request) {
    weft_mcp_server *server = request->server;
    int64_t call = request->call;
    if (request->state == WEFT_MCP_OVER)
        return;
    weft__mcp_finish(request, -ECANCELED, "it was cancelled");
    if (call && server->peer)
        weft_cancel(server->peer, call);
}
