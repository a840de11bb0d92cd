/* Asking one MCP server: a request is handed on, and what comes back is handed back. That it was asked, by whom and with
 * which outcome goes into the journal; what was asked and answered does not. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mcp_rows.h"
#include "reply.h"

#define LONGEST_MS ((int64_t) 60 * 60 * 1000)
#define SHOWN_NAME 256

typedef struct asked_call {
    const weft_hub *hub;
    weft_req *req; /* NULL: nobody wants to know */
    weft_mcp_request *request;
    int64_t began_ms;
    const char *method; /* static */
    bool cancelled;
    bool recorded;
    char by[WEFT_WHO];
    char server[128];
    char name[SHOWN_NAME]; /* of the tool, the resource or the prompt */
} asked_call;

/* ---- the answer ---- */

static const char *outcome_of(const asked_call *asking, const weft_mcp_answer *answer) {
    if (asking->cancelled)
        return "cancelled";
    if (answer->r < 0 || answer->error)
        return "error";
    return weft_get_bool(answer->result, "isError", false) ? "toolError" : "ok";
}

static void record_asking(const asked_call *asking, const weft_mcp_answer *answer) {
    const weft_hub *hub = asking->hub;
    int64_t ms = weft_loop_now(weft__engine_loop(hub->engine)) - asking->began_ms;
    char error[300] = "";
    if (answer->error || answer->r < 0)
        snprintf(error, sizeof error, "%.290s", answer->error ? answer->error->message : answer->why);
    (void) weft__engine_append(hub->engine, WEFT_STREAM_MCP, "mcp.called",
                               WEFT_OBJ({"server", weft_str(asking->server)}, {"method", weft_str(asking->method)},
                                        {"name", *asking->name ? weft_str(asking->name) : weft_none()},
                                        {"by", weft_str(asking->by)}, {"ms", weft_int(ms)},
                                        {"outcome", weft_str(outcome_of(asking, answer))},
                                        {"error", *error ? weft_str(error) : weft_none()}),
                               NULL, NULL);
}

static void on_asked(void *ctx, const weft_mcp_answer *answer) {
    asked_call *asking = ctx;
    weft_req *req = asking->req;
    if (asking->recorded)
        record_asking(asking, answer);
    if (req)
        weft_req_on_cancel(req, NULL, NULL);
    if (asking->cancelled && req)
        (void) weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
    else if (answer->r < 0 || answer->error)
        (void) weft__mcp_reply_failed(req, asking->server, answer);
    else
        (void) weft__reply_val(req, weft_copy(answer->result));
    weft__free(asking->hub->alloc, asking);
}

static void on_asking_progress(void *ctx, const weft_json *progress) {
    const asked_call *asking = ctx;
    weft_json done = weft_get(progress, "progress"), total = weft_get(progress, "total"),
              message = weft_get(progress, "message");
    if (asking->req)
        (void) weft_part(asking->req,
                         WEFT_OBJ({"progress", weft_copy(&done)}, {"total", total.text ? weft_copy(&total) : weft_none()},
                                  {"message", message.text ? weft_copy(&message) : weft_none()}));
}

/* The caller does not wait any more: neither does the server need to go on. The answer follows, from on_asked(). */
static void on_asking_cancelled(weft_req *req, int why, void *ctx) {
    asked_call *asking = ctx;
    (void) req, (void) why;
    asking->cancelled = true;
    weft__mcp_cancel(asking->request);
}

/* ---- asking ---- */

typedef struct ask_order {
    const char *server, *method, *name;
    weft_val params;
    int64_t timeout_ms;
    bool recorded;
} ask_order;

static int ask_server(weft_req *req, const weft_hub *hub, const ask_order *order) {
    weft_mcp_server *server = weft__mcp_named(req, hub, order->server);
    asked_call *asking = server ? weft__zalloc(hub->alloc, sizeof *asking) : NULL;
    if (!server)
        return 0;
    if (!asking)
        return -ENOMEM;
    asking->hub = hub;
    asking->method = order->method;
    asking->recorded = order->recorded;
    asking->began_ms = weft_loop_now(weft__engine_loop(hub->engine));
    snprintf(asking->server, sizeof asking->server, "%s", order->server);
    snprintf(asking->name, sizeof asking->name, "%.255s", order->name ? order->name : "");
    weft__who(weft_req_identity(req), asking->by);
    weft_mcp_call call = {.method = order->method,
                          .params = order->params,
                          .timeout_ms = order->timeout_ms,
                          .done = on_asked,
                          .on_progress = on_asking_progress,
                          .ctx = asking};
    int r = weft__mcp_request(server, &call, &asking->request);
    if (r < 0) {
        weft__free(hub->alloc, asking);
        return weft__mcp_reply_full(weft__req_keep(req), order->server, r);
    }
    asking->req = weft__req_keep(req);
    if (asking->req)
        weft_req_on_cancel(asking->req, on_asking_cancelled, asking);
    return 0;
}

#define MUST(type, field, help)                                                                                             \
    { #field, WEFT_PARAM_str, offsetof(type, field), WEFT_REQUIRED | WEFT_NONEMPTY, help }
#define SERVER_HELP "its name in the configuration"

struct mcp_call {
    const char *server, *tool;
    weft_json arguments;
    int64_t timeoutMs;
};
const weft_param weft__mcp_call_params[] = {
    MUST(struct mcp_call, server, SERVER_HELP),
    MUST(struct mcp_call, tool, "the name of the tool"),
    {"arguments", WEFT_PARAM_obj, offsetof(struct mcp_call, arguments), WEFT_NULLABLE, "what the tool is given"},
    {"timeoutMs", WEFT_PARAM_int, offsetof(struct mcp_call, timeoutMs), WEFT_NULLABLE,
     "how long it may take without progress; as configured when absent"},
    WEFT_END(struct mcp_call),
};

int weft__mcp_call_tool(weft_req *req, const weft_json *params, void *ctx) {
    const struct mcp_call *in = weft_req_params(req);
    weft_json timeout = weft_get(params, "timeoutMs");
    if (weft_typeof(&timeout) == WEFT_NUMBER && (in->timeoutMs < 1 || in->timeoutMs > LONGEST_MS))
        return weft__reply_invalid(req, "/timeoutMs", "timeoutMs must be from 1 to %lld", (long long) LONGEST_MS);
    weft_val given = in->arguments.text ? weft_copy(&in->arguments) : weft_obj(NULL, 0);
    return ask_server(req, ctx,
                      &(ask_order){.server = in->server,
                                   .method = "tools/call",
                                   .name = in->tool,
                                   .params = WEFT_OBJ({"name", weft_str(in->tool)}, {"arguments", given}),
                                   .timeout_ms = in->timeoutMs,
                                   .recorded = true});
}

struct mcp_uri {
    const char *server, *uri;
};
const weft_param weft__mcp_read_params[] = {
    MUST(struct mcp_uri, server, SERVER_HELP),
    MUST(struct mcp_uri, uri, "of the resource"),
    WEFT_END(struct mcp_uri),
};

int weft__mcp_read(weft_req *req, const weft_json *params, void *ctx) {
    const struct mcp_uri *in = weft_req_params(req);
    (void) params;
    return ask_server(req, ctx,
                      &(ask_order){.server = in->server,
                                   .method = "resources/read",
                                   .name = in->uri,
                                   .params = WEFT_OBJ({"uri", weft_str(in->uri)}),
                                   .recorded = true});
}

struct mcp_prompt {
    const char *server, *prompt;
    weft_json arguments;
};
const weft_param weft__mcp_prompt_params[] = {
    MUST(struct mcp_prompt, server, SERVER_HELP),
    MUST(struct mcp_prompt, prompt, "the name of the prompt"),
    {"arguments", WEFT_PARAM_obj, offsetof(struct mcp_prompt, arguments), WEFT_NULLABLE, "texts to fill it in with"},
    WEFT_END(struct mcp_prompt),
};

int weft__mcp_prompt(weft_req *req, const weft_json *params, void *ctx) {
    const struct mcp_prompt *in = weft_req_params(req);
    (void) params;
    return ask_server(
        req, ctx,
        &(ask_order){.server = in->server,
                     .method = "prompts/get",
                     .name = in->prompt,
                     .params = WEFT_OBJ({"name", weft_str(in->prompt)},
                                        {"arguments", in->arguments.text ? weft_copy(&in->arguments) : weft_none()}),
                     .recorded = true});
}

struct mcp_complete {
    const char *server, *prompt, *uri, *argument, *value;
    weft_json arguments;
};
const weft_param weft__mcp_complete_params[] = {
    MUST(struct mcp_complete, server, SERVER_HELP),
    MUST(struct mcp_complete, argument, "the name of the argument"),
    {"value", WEFT_PARAM_str, offsetof(struct mcp_complete, value), WEFT_NULLABLE, "what was typed of it so far"},
    {"prompt", WEFT_PARAM_str, offsetof(struct mcp_complete, prompt), WEFT_NULLABLE | WEFT_NONEMPTY,
     "the prompt that it belongs to"},
    {"uri", WEFT_PARAM_str, offsetof(struct mcp_complete, uri), WEFT_NULLABLE | WEFT_NONEMPTY,
     "or the template of resources"},
    {"arguments", WEFT_PARAM_obj, offsetof(struct mcp_complete, arguments), WEFT_NULLABLE,
     "the other arguments, as far as they are known"},
    WEFT_END(struct mcp_complete),
};

int weft__mcp_complete(weft_req *req, const weft_json *params, void *ctx) {
    const struct mcp_complete *in = weft_req_params(req);
    (void) params;
    if (!in->prompt == !in->uri)
        return weft__reply_invalid(req, "/prompt", "prompt or uri is needed, and only one of them");
    weft_val ref = in->prompt ? WEFT_OBJ({"type", weft_str("ref/prompt")}, {"name", weft_str(in->prompt)})
                              : WEFT_OBJ({"type", weft_str("ref/resource")}, {"uri", weft_str(in->uri)});
    weft_val argument = WEFT_OBJ({"name", weft_str(in->argument)}, {"value", weft_str(in->value ? in->value : "")});
    weft_val context = in->arguments.text ? WEFT_OBJ({"arguments", weft_copy(&in->arguments)}) : weft_none();
    return ask_server(req, ctx,
                      &(ask_order){.server = in->server,
                                   .method = "completion/complete",
                                   .params = WEFT_OBJ({"ref", ref}, {"argument", argument}, {"context", context})});
}

/* ---- changes of resources ---- */

const weft_param weft__mcp_follow_params[] = {
    MUST(struct mcp_uri, server, SERVER_HELP),
    MUST(struct mcp_uri, uri, "of the resource, at most 8192 bytes"),
    WEFT_END(struct mcp_uri),
};

int weft__mcp_follow(weft_req *req, const weft_json *params, void *ctx) {
    const struct mcp_uri *in = weft_req_params(req);
    (void) params;
    weft_mcp_server *server = weft__mcp_named(req, ctx, in->server);
    if (!server)
        return 0;
    if (strlen(in->uri) > 8192)
        return weft__reply_invalid(req, "/uri", "the URI is too long");
    int r = weft__mcp_subscribe(server, in->uri);
    if (r < 0 && r != -EALREADY)
        return weft__mcp_reply_full(req, in->server, r);
    return weft_reply(req, WEFT_OBJ({"subscribed", weft_bool(true)}));
}

int weft__mcp_unfollow(weft_req *req, const weft_json *params, void *ctx) {
    const struct mcp_uri *in = weft_req_params(req);
    (void) params;
    weft_mcp_server *server = weft__mcp_named(req, ctx, in->server);
    if (!server)
        return 0;
    int r = weft__mcp_unsubscribe(server, in->uri);
    return weft_reply(req, WEFT_OBJ({"unsubscribed", weft_bool(r >= 0)}));
}
