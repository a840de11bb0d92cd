/* What a server asks of a person: a form, a page to go to, or what a model would say. A server of the older era asks in the
 * middle of a request of ours; one of the modern era answers that it needs input, and is asked again with it.
 *
 * Sampling has no model here. A person is shown what the server wants to ask one, and writes the answer or declines; a
 * program that answers questions may do it too. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "form.h"
#include "mcp_private.h"
#include "write.h"

#define LONGEST_URL 8192
#define LONGEST_ID 1024
#define LARGEST_SAMPLING (256u * 1024) /* bytes of what is asked: it goes into the journal */
#define LONGEST_TITLE 1000
#define MOST_INPUTS WEFT_MCP_ASKS /* of one answer */

/* What is filled in for a model: one text. */
static const char sampling_schema[] =
    "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\",\"title\":\"Answer\"}},\"required\":[\"text\"]}";

void **weft__mcp_ask_data(weft_mcp_ask *ask) {
    return &ask->data;
}

/* ---- roots ---- */

int weft__mcp_put_roots(const weft_mcp *mcp, weft_buf *out) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    const char *name = strrchr(mcp->opts.folder, '/');
    weft_buf uri = {0};
    int r = weft__buf_put(&uri, mcp->alloc, "file://", 7);
    for (const char *p = mcp->opts.folder; r >= 0 && *p; p++) {
        char escape[4];
        snprintf(escape, sizeof escape, "%%%02X", (unsigned char) *p);
        r = strchr(plain, *p) ? weft__buf_put(&uri, mcp->alloc, p, 1) : weft__buf_put(&uri, mcp->alloc, escape, 3);
    }
    weft_val root = WEFT_OBJ({"uri", weft_strn(weft__buf_head(&uri), weft__buf_len(&uri))},
                             {"name", weft_str(name && name[1] ? name + 1 : "/")});
    weft_val value = WEFT_OBJ({"roots", weft_arr(&root, 1)});
    if (r >= 0)
        r = weft__write_val(out, mcp->alloc, &value);
    weft__buf_done(&uri, mcp->alloc);
    return r;
}

/* ---- what may be asked ---- */

static bool is_web_page(const char *url) {
    return strlen(url) <= LONGEST_URL && (strncasecmp(url, "https://", 8) == 0 || strncasecmp(url, "http://", 7) == 0);
}

static const char *why_no_elicitation(const weft_json *params, char room[WEFT_FORM_WHY]) {
    const char *mode = weft_get_str(params, "mode", "form"), *id = weft_get_str(params, "elicitationId", "-");
    weft_json schema = weft_get(params, "requestedSchema");
    if (strcmp(mode, "form") == 0)
        return weft__form_check(&schema, room) < 0 ? room : NULL;
    if (strcmp(mode, "url") != 0)
        return "there is no such mode of elicitation here";
    if (!is_web_page(weft_get_str(params, "url", "")))
        return "a person can be sent to http and https only";
    return !*id || strlen(id) > LONGEST_ID ? "its elicitationId must have 1 to 1024 bytes" : NULL;
}

static const char *why_not_asked(const weft_mcp_server *server, const weft_json *params, bool sampling,
                                 char room[WEFT_FORM_WHY]) {
    weft_json messages = weft_get(params, "messages");
    if (server->ask_count >= WEFT_MCP_ASKS)
        return "too many questions are open";
    if (!sampling)
        return why_no_elicitation(params, room);
    if (server->mcp->opts.no_sampling)
        return "there is no model to ask here";
    return weft_typeof(&messages) != WEFT_ARRAY || params->len > LARGEST_SAMPLING
               ? "its messages are not a list, or too large"
               : NULL;
}

/* ---- asking ---- */

static weft_mcp_ask *new_ask(weft_mcp_server *server, bool sampling) {
    weft_mcp_ask *ask = weft__zalloc(server->mcp->alloc, sizeof *ask);
    if (!ask)
        return NULL;
    ask->server = server;
    ask->sampling = sampling;
    weft__list_push(&server->asks, &ask->link);
    server->ask_count++;
    return ask;
}

static void free_ask(weft_mcp_ask *ask) {
    weft_mcp_server *server = ask->server;
    weft__list_remove(&ask->link);
    server->ask_count--;
    weft__free(server->mcp->alloc, ask->key);
    weft__free(server->mcp->alloc, ask);
    weft__mcp_used(server);
}

static weft_val copy_if(const weft_json *object, const char *name, bool wanted) {
    weft_json value = weft_get(object, name);
    return wanted && value.text && weft_typeof(&value) != WEFT_NULL ? weft_copy(&value) : weft_none();
}

/* The last thing that a model is to be told. */
static const char *last_message(const weft_json *params) {
    weft_json messages = weft_get(params, "messages"), last = {0};
    for (weft_iter it = weft_iterate(&messages); weft_next(&it);)
        last = it.value;
    weft_json content = weft_get(&last, "content");
    weft_json first = weft_typeof(&content) == WEFT_ARRAY ? weft_at(&content, 0) : content;
    return weft_get_str(&first, "text", "");
}

static int ask_host(weft_mcp_ask *ask, const weft_json *params) {
    const weft_mcp_opts *opts = &ask->server->mcp->opts;
    const char *name = ask->server->spec->name, *message = weft_get_str(params, "message", "");
    bool form = strcmp(weft_get_str(params, "mode", "form"), "form") == 0, sampling = ask->sampling;
    char title[LONGEST_TITLE + 128];
    if (sampling)
        snprintf(title, sizeof title, "The MCP server %.64s asks what a model would answer: %.*s", name, LONGEST_TITLE - 30,
                 last_message(params));
    else
        snprintf(title, sizeof title, "The MCP server %.64s asks: %.*s", name, LONGEST_TITLE, message);
    weft_val detail = WEFT_OBJ({"server", weft_str(name)}, {"mode", weft_str(form || sampling ? "form" : "url")},
                               {"message", sampling ? weft_str(title) : copy_if(params, "message", true)},
                               {"requestedSchema", sampling ? weft_raw(sampling_schema, sizeof sampling_schema - 1)
                                                            : copy_if(params, "requestedSchema", form)},
                               {"url", copy_if(params, "url", !form && !sampling)},
                               {"elicitationId", copy_if(params, "elicitationId", !form && !sampling)},
                               {"sampling", sampling ? weft_copy(params) : weft_none()});
    return opts->host->ask ? opts->host->ask(opts->ctx, ask, title, detail) : -EOPNOTSUPP;
}

/* ---- answering ---- */

/* A person's text may be anything that the form's check let through; here it is a string. */
static weft_val sampled(const weft_json *content, weft_member message[4], weft_member text[2]) {
    text[0] = (weft_member){"type", weft_str("text")};
    text[1] = (weft_member){"text", copy_if(content, "text", true)};
    message[0] = (weft_member){"role", weft_str("assistant")};
    message[1] = (weft_member){"content", weft_obj(text, 2)};
    message[2] = (weft_member){"model", weft_str("person")};
    message[3] = (weft_member){"stopReason", weft_str("endTurn")};
    return weft_obj(message, 4);
}

static weft_val elicited(const char *option, const weft_json *content, weft_member members[4]) {
    bool accepted = option && strcmp(option, "accept") == 0;
    members[0] = (weft_member){"action", weft_str(accepted ? "accept" : option ? "decline" : "cancel")};
    members[1] = (weft_member){"content", accepted && content ? weft_copy(content) : weft_none()};
    return weft_obj(members, 2);
}

static int put_response(weft_mcp_request *request, const char *key, size_t key_len, weft_val value) {
    weft_buf *out = &request->inputs;
    const weft_alloc *alloc = request->mcp->alloc;
    int r = weft__buf_len(out) ? weft__buf_put(out, alloc, ",", 1) : 0;
    if (r >= 0)
        r = weft__buf_put(out, alloc, key, key_len);
    if (r >= 0)
        r = weft__buf_put(out, alloc, ":", 1);
    return r < 0 ? r : weft__write_val(out, alloc, &value);
}

static void answer_request(weft_mcp_request *request, const char *key, bool refused, weft_val value) {
    if (refused) {
        weft__mcp_finish(request, -ECANCELED, "a person declined what the server asked for");
        return;
    }
    if (put_response(request, key, strlen(key), value) < 0)
        weft__mcp_finish(request, -ENOMEM, "out of memory");
    else if (--request->missing == 0)
        weft__mcp_send_again(request);
}

void weft__mcp_answered(weft_mcp_ask *ask, const char *option, const weft_json *content) {
    weft_member members[4], text[2];
    bool accepted = option && strcmp(option, "accept") == 0, refused = ask->sampling && (!accepted || !content);
    weft_val value =
        ask->sampling ? (refused ? weft_none() : sampled(content, members, text)) : elicited(option, content, members);
    weft_req *req = ask->req;
    weft_mcp_request *request = ask->request;
    char *key = ask->key;
    const weft_alloc *alloc = ask->server->mcp->alloc;
    ask->key = NULL;
    if (req)
        weft_req_on_cancel(req, NULL, NULL);
    free_ask(ask);
    if (req && refused)
        (void) weft_fail(req, -1, "User rejected sampling request", weft_none());
    else if (req)
        (void) weft_reply(req, value);
    else
        answer_request(request, key, refused, value);
    weft__free(alloc, key);
}

/* ---- of the older era ---- */

/* The server no longer waits, or is gone. */
static void on_ask_cancelled(weft_req *req, int why, void *ctx) {
    weft_mcp_ask *ask = ctx;
    const weft_mcp_opts *opts = &ask->server->mcp->opts;
    (void) why;
    if (opts->host->unask)
        opts->host->unask(opts->ctx, ask);
    free_ask(ask);
    (void) weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
}

static int take_question(weft_mcp_server *server, weft_req *req, const weft_json *params, bool sampling) {
    char room[WEFT_FORM_WHY];
    if (weft_req_is_notification(req))
        return 0;
    if (server->era == WEFT_MCP_IS_MODERN)
        return weft_fail(req, WEFT_METHOD_NOT_FOUND, "Method not found", weft_none());
    const char *why = why_not_asked(server, params, sampling, room);
    if (why)
        return weft_fail(req, sampling && server->mcp->opts.no_sampling ? WEFT_METHOD_NOT_FOUND : WEFT_INVALID_PARAMS, why,
                         weft_none());
    weft_mcp_ask *ask = new_ask(server, sampling);
    if (!ask)
        return -ENOMEM;
    ask->req = req;
    if (ask_host(ask, params) < 0) {
        free_ask(ask);
        return weft_fail(req, WEFT_INTERNAL_ERROR, "Nobody can be asked now", weft_none());
    }
    weft_req_on_cancel(req, on_ask_cancelled, ask);
    return 0;
}

int weft__mcp_on_sampling(weft_req *req, const weft_json *params, void *ctx) {
    return take_question(ctx, req, params, true);
}

int weft__mcp_on_elicitation(weft_req *req, const weft_json *params, void *ctx) {
    return take_question(ctx, req, params, false);
}

void weft__mcp_unask(weft_mcp_server *server, const weft_mcp_request *request) {
    const weft_mcp_opts *opts = &server->mcp->opts;
    for (weft_link *link = server->asks.next, *next; link != &server->asks; link = next) {
        weft_mcp_ask *ask = WEFT_CONTAINER(link, weft_mcp_ask, link);
        weft_req *req = ask->req;
        next = link->next;
        if (request && ask->request != request)
            continue;
        if (opts->host->unask)
            opts->host->unask(opts->ctx, ask);
        if (req)
            weft_req_on_cancel(req, NULL, NULL);
        free_ask(ask);
        if (req)
            (void) weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
    }
}

/* ---- of the modern era ---- */

static int answer_with_roots(weft_mcp_request *request, const weft_json *key) {
    weft_buf out = {0};
    int r = weft__mcp_put_roots(request->mcp, &out);
    if (r >= 0)
        r = put_response(request, key->text, key->len, weft_raw(weft__buf_head(&out), weft__buf_len(&out)));
    weft__buf_done(&out, request->mcp->alloc);
    return r;
}

static int ask_input(weft_mcp_request *request, const weft_json *key, const weft_json *input, char why[WEFT_MCP_WHY]) {
    weft_mcp_server *server = request->server;
    const char *method = weft_get_str(input, "method", "");
    weft_json params = weft_get(input, "params");
    char room[WEFT_FORM_WHY];
    bool sampling = strcmp(method, "sampling/createMessage") == 0;
    if (strcmp(method, "roots/list") == 0)
        return answer_with_roots(request, key);
    const char *not = sampling || strcmp(method, "elicitation/create") == 0 ? why_not_asked(server, &params, sampling, room)
                                                                            : "there is nothing of this kind here";
    snprintf(why, WEFT_MCP_WHY, "the server asks for %.60s, but %s", method, not ? not : "nobody can be asked now");
    if (not )
        return -EBADMSG;
    weft_mcp_ask *ask = new_ask(server, sampling);
    if (!ask)
        return -ENOMEM;
    ask->request = request;
    ask->key = weft__strndup(server->mcp->alloc, key->text, key->len);
    int r = ask->key ? ask_host(ask, &params) : -ENOMEM;
    if (r < 0)
        free_ask(ask);
    else
        request->missing++;
    return r;
}

int weft__mcp_ask_inputs(weft_mcp_request *request, const weft_json *result, char why[WEFT_MCP_WHY]) {
    weft_json inputs = weft_get(result, "inputRequests");
    static const char *const may[] = {"tools/call", "resources/read", "prompts/get"};
    bool allowed = false;
    for (size_t i = 0; i < sizeof may / sizeof may[0]; i++)
        allowed |= strcmp(request->method, may[i]) == 0;
    if (!allowed || (inputs.text && weft_typeof(&inputs) != WEFT_OBJECT) || weft_count(&inputs) > MOST_INPUTS) {
        snprintf(why, WEFT_MCP_WHY, "the server asks for input where or as it must not");
        return -EBADMSG;
    }
    request->asked = weft_doc_free(request->asked);
    weft__buf_done(&request->inputs, request->mcp->alloc);
    int r = weft_doc_keep(result, request->mcp->alloc, &request->asked);
    request->state = WEFT_MCP_ASKING;
    request->missing = 1; /* until all are asked */
    for (weft_iter it = weft_iterate(&inputs); r >= 0 && weft_next(&it);)
        r = ask_input(request, &it.name, &it.value, why);
    if (r >= 0 && --request->missing == 0)
        weft__mcp_send_again(request);
    return r;
}
