/* The hub's MCP servers as methods: a caller names a server of the configuration, never a program or a URL.
 *
 * Agents may see which servers there are, and nothing more: what they may use is handed to them in their sessions, where
 * they ask before they use it. Through the hub they would do it with a person's rights. Everything that may start a server
 * changes something, lists too. */
#include "mcp_rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "reply.h"
#include "schemas.h"

weft_mcp_server *weft__mcp_named(weft_req *req, const weft_hub *hub, const char *name) {
    weft_mcp_server *server = hub->mcp ? weft__mcp_find(hub->mcp, name) : NULL;
    char known[512] = "";
    size_t used = 0;
    if (server)
        return server;
    for (weft_mcp_server *at = hub->mcp ? weft__mcp_first(hub->mcp) : NULL; at; at = weft__mcp_next(hub->mcp, at)) {
        int n = snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", weft__mcp_spec(at)->name);
        used = n < 0 || (size_t) n >= sizeof known - used ? sizeof known - 1 : used + (size_t) n;
    }
    (void) weft__reply_error(weft__req_keep(req), 404, "mcpServerNotFound", "There is no MCP server %.100s; there %s%s%s",
                             name, used ? "are: " : "are none", known,
                             used ? "" : ". They are configured under mcp.servers");
    return NULL;
}

int weft__mcp_reply_failed(weft_req *req, const char *server, const weft_mcp_answer *answer) {
    const weft_error *error = answer->error;
    char message[700];
    if (!req)
        return 0;
    snprintf(message, sizeof message, "%.100s: %.500s", server, error ? error->message : answer->why);
    weft_val said = error ? WEFT_OBJ({"code", weft_int(error->code)}, {"message", weft_str(error->message)},
                                     {"data", error->data.text ? weft_copy(&error->data) : weft_none()})
                          : weft_none();
    return weft_fail(req, -32007, message,
                     WEFT_OBJ({"reason", weft_str("mcpServerError")}, {"server", weft_str(server)}, {"response", said},
                              {"why", error ? weft_none() : weft_str(answer->why)},
                              {"timedOut", answer->r == -ETIMEDOUT ? weft_bool(true) : weft_none()}));
}

int weft__mcp_reply_full(weft_req *req, const char *server, int r) {
    if (r == -ENOBUFS)
        return weft__reply_error(req, 429, "rateLimited", "Too many requests to %.100s are open", server);
    if (r == -EMSGSIZE)
        return weft__reply_error(req, 413, "tooLarge", "That is more than an MCP server is sent");
    return weft__reply_failure(req, r);
}

/* clang-format off */
#define S_MCP_SERVER S_OF( \
    S_IS("name", S_STRING) "," \
    S_IS("state", "{\"enum\":[\"idle\",\"starting\",\"ready\",\"failed\"]}") "," \
    S_IS("transport", S_STRING) "," \
    S_IS("command", S_STRING) "," \
    S_IS("url", S_STRING) "," \
    S_IS("protocolVersion", S_STRING) "," \
    S_IS("serverInfo", S_OBJECT) "," \
    S_IS("capabilities", S_OBJECT) "," \
    S_IS("instructions", S_STRING) "," \
    S_IS("pid", S_COUNT) "," \
    S_IS("error", S_STRING) "," \
    S_IS("openRequests", S_COUNT) "," \
    S_IS("openQuestions", S_COUNT) "," \
    S_IS("subscriptions", S_LIST(S_STRING)) "," \
    S_IS("log", S_LIST(S_STRING)), \
    "\"name\",\"state\",\"transport\",\"openRequests\",\"openQuestions\",\"subscriptions\"")
#define S_MCP_FAILED S_LIST(S_OF(S_IS("server", S_STRING) "," S_IS("error", S_STRING), "\"server\",\"error\""))
#define S_MCP_ITEM S_OF(S_IS("server", S_STRING), "\"server\"")
/* clang-format on */

#define ERROR_MCP                                                                                                           \
    { -32007, "The MCP server refused, failed or did not answer", "mcpServerError" }
#define ERROR_BUSY                                                                                                          \
    { 429, "Too many requests to this server are open", "rateLimited" }

#define ERROR_UNKNOWN                                                                                                       \
    { 404, "There is no MCP server of this name", "mcpServerNotFound" }

static const weft_error_row servers_errors[] = {WEFT_ERROR_PARAMS, ERROR_UNKNOWN, {0}};
static const weft_error_row ask_errors[] = {
    WEFT_ERROR_PARAMS,   WEFT_ERROR_AGENT,
    ERROR_UNKNOWN,       ERROR_MCP,
    ERROR_BUSY,          {413, "That is more than an MCP server is sent", "tooLarge"},
    WEFT_ERROR_STOPPING, {0},
};

static const weft_method methods[] = {
    {.name = "mcp/servers",
     .handler = weft__mcp_servers,
     .params = weft__mcp_servers_params,
     .help = "the MCP servers of the configuration, and how they are",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("servers", S_LIST(S_MCP_SERVER)), "\"servers\""),
     .errors = servers_errors,
     .flags = WEFT_ROW_STRICT | WEFT_EARLY},
    {.name = "mcp/tools",
     .handler = weft__mcp_tools,
     .params = weft__mcp_list_params,
     .help = "the tools of an MCP server, or of all",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("tools", S_LIST(S_MCP_ITEM)) "," S_IS("failed", S_MCP_FAILED), "\"tools\",\"failed\""),
     .errors = ask_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_EARLY | WEFT_FOR_PEOPLE},
    {.name = "mcp/call",
     .handler = weft__mcp_call_tool,
     .params = weft__mcp_call_params,
     .help = "call a tool of an MCP server; its progress comes as parts of the answer",
     .scope = WEFT_WORK,
     .result = S_OBJECT,
     .errors = ask_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_EARLY | WEFT_FOR_PEOPLE},
    {.name = "mcp/resources",
     .handler = weft__mcp_resources,
     .params = weft__mcp_list_params,
     .help = "the resources and resource templates of an MCP server, or of all",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("resources", S_LIST(S_MCP_ITEM)) "," S_IS("resourceTemplates",
                                                                   S_LIST(S_MCP_ITEM)) "," S_IS("failed", S_MCP_FAILED),
                    "\"resources\",\"resourceTemplates\",\"failed\""),
     .errors = ask_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_EARLY | WEFT_FOR_PEOPLE},
    {.name = "mcp/read",
     .handler = weft__mcp_read,
     .params = weft__mcp_read_params,
     .help = "read a resource of an MCP server",
     .scope = WEFT_WORK,
     .result = S_OBJECT,
     .errors = ask_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_EARLY | WEFT_FOR_PEOPLE},
    {.name = "mcp/subscribe",
     .handler = weft__mcp_follow,
     .params = weft__mcp_follow_params,
     .help = "tell changes of a resource as events (mcp.resourceUpdated), until it is unsubscribed or the daemon stops",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("subscribed", S_TRUE), "\"subscribed\""),
     .errors = ask_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_EARLY | WEFT_FOR_PEOPLE},
    {.name = "mcp/unsubscribe",
     .handler = weft__mcp_unfollow,
     .params = weft__mcp_follow_params,
     .help = "no longer tell changes of a resource",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("unsubscribed", S_BOOL), "\"unsubscribed\""),
     .errors = ask_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_EARLY | WEFT_FOR_PEOPLE},
    {.name = "mcp/prompts",
     .handler = weft__mcp_prompts,
     .params = weft__mcp_list_params,
     .help = "the prompts of an MCP server, or of all",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("prompts", S_LIST(S_MCP_ITEM)) "," S_IS("failed", S_MCP_FAILED), "\"prompts\",\"failed\""),
     .errors = ask_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_EARLY | WEFT_FOR_PEOPLE},
    {.name = "mcp/prompt",
     .handler = weft__mcp_prompt,
     .params = weft__mcp_prompt_params,
     .help = "a prompt of an MCP server, filled in",
     .scope = WEFT_WORK,
     .result = S_OBJECT,
     .errors = ask_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_EARLY | WEFT_FOR_PEOPLE},
    {.name = "mcp/complete",
     .handler = weft__mcp_complete,
     .params = weft__mcp_complete_params,
     .help = "what an argument of a prompt or of a resource template may be, as an MCP server suggests",
     .scope = WEFT_WORK,
     .result = S_OBJECT,
     .errors = ask_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_EARLY | WEFT_FOR_PEOPLE},
    {0},
};

const weft_dialect weft__mcp_rows = {.name = "mcp", .methods = methods};
