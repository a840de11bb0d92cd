/* initialize, authenticate, and which agent a connection's sessions are for. */
#include <string.h>

#include "acp.h"
#include "reply.h"

#define PROTOCOL 1

/* ---- initialize ---- */

struct initialize_params {
    int64_t protocolVersion;
    weft_json oldVersion, clientCapabilities, oldCapabilities, clientInfo;
};
const weft_param weft__acp_initialize_params[] = {
    {"protocolVersion", WEFT_PARAM_int, offsetof(struct initialize_params, protocolVersion), WEFT_REQUIRED,
     "the newest version of ACP that the client speaks"},
    WEFT_ALSO(struct initialize_params, oldVersion, any, "protocol_version"),
    WEFT_ALSO(struct initialize_params, oldCapabilities, any, "client_capabilities"),
    {"clientCapabilities", WEFT_PARAM_obj, offsetof(struct initialize_params, clientCapabilities), WEFT_NULLABLE,
     "what the client can do"},
    {"clientInfo", WEFT_PARAM_obj, offsetof(struct initialize_params, clientInfo), WEFT_NULLABLE, "what the client is"},
    WEFT_END(struct initialize_params),
};

/* MCP's versions are dates, and cdev has none. */
bool weft__acp_claims(const weft_json *params) {
    weft_json version = weft_get(params, "protocolVersion");
    return weft_typeof(&version) == WEFT_NUMBER || weft_get(params, "protocol_version").text ||
           weft_get(params, "client_capabilities").text;
}

bool weft__acp_is_old(const weft_hub *hub, weft_req *req) {
    const weft_hub_client *client = weft__acp_client_of(hub, req);
    return client && weft__hub_client_form(client, "acp") == ACP_OLD;
}

static int reply_in_old(const weft_hub *hub, weft_req *req, weft_val result) {
    weft_buf out = {0};
    int r = weft__acp_put_old(hub->alloc, weft__acp_old_value, result, &out);
    r = r < 0 ? weft__reply_failure(req, r) : weft_reply(req, weft_raw(weft__buf_head(&out), weft__buf_len(&out)));
    weft__buf_done(&out, hub->alloc);
    return r;
}

int weft__acp_reply(const weft_hub *hub, weft_req *req, weft_val result) {
    return req && weft__acp_is_old(hub, req) ? reply_in_old(hub, req, result) : weft__reply_val(req, result);
}

static weft_val supported_flag(void) {
    return weft_obj(NULL, 0);
}

/* Which form it begins with. One that says nothing of positions keeps those that it asked for before. */
static int choose_form(const weft_hub *hub, weft_req *req, const struct initialize_params *in) {
    weft_hub_client *client = weft__acp_client_of(hub, req);
    weft_json positions = weft_pointer(&in->clientCapabilities, "/_meta/weft~1positions");
    bool old = in->oldVersion.text || in->oldCapabilities.text;
    acp_variant wanted = old ? ACP_OLD : weft_bool_of(&positions, false) ? ACP_POSITIONS : ACP_PLAIN;
    acp_variant has = client ? (acp_variant) weft__hub_client_form(client, "acp") : ACP_PLAIN;
    bool keeps = !client || wanted == has || (wanted == ACP_PLAIN && has == ACP_POSITIONS);
    return keeps ? 0 : weft__hub_client_use_form(client, "acp", weft__acp_variants[wanted]);
}

/* The version is ours, whatever was asked for: a client that does not speak it ends the connection. */
int weft__acp_on_initialize(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct initialize_params *in = weft_req_params(req);
    (void) params;
    int r = choose_form(hub, req, in);
    if (r < 0)
        return r;
    bool old = weft__acp_is_old(hub, req);
    weft_hub_client *client = weft__acp_client_of(hub, req);
    if (client)
        weft__hub_client_set_flags(client, old ? 0 : weft__acp_offers(&in->clientCapabilities));
    weft_val weft = WEFT_OBJ({"positions", weft_bool(true)}, {"agentOf", weft_str("_meta[\"" ACP_META_AGENT "\"]")},
                             {"promptQueue", weft_bool(true)}, {"sharedSessions", weft_bool(true)});
    weft_val prompts =
        WEFT_OBJ({"image", weft_bool(false)}, {"audio", weft_bool(false)}, {"embeddedContext", weft_bool(true)});
    weft_val sessions = WEFT_OBJ({"list", supported_flag()}, {"delete", supported_flag()}, {"resume", supported_flag()},
                                 {"close", supported_flag()});
    weft_val able = WEFT_OBJ({"loadSession", weft_bool(true)}, {"promptCapabilities", prompts},
                             {"mcpCapabilities", WEFT_OBJ({"http", weft_bool(true)}, {"sse", weft_bool(true)})},
                             {"sessionCapabilities", sessions}, {"_meta", WEFT_OBJ({"weft", weft})});
    weft_val info =
        WEFT_OBJ({"name", weft_str("weft")}, {"title", weft_str("Weft")}, {"version", weft_str(hub->host->version)});
    return weft__acp_reply(
        hub, req,
        WEFT_OBJ({"protocolVersion", old ? weft_str(ACP_OLD_PROTOCOL) : weft_int(PROTOCOL)}, {"agentCapabilities", able},
                 {"authMethods", old ? WEFT_ARR(weft_str("none")) : weft_arr(NULL, 0)}, {"agentInfo", info}));
}

/* ---- authenticate ---- */

struct authenticate_params {
    const char *methodId;
};
const weft_param weft__acp_authenticate_params[] = {
    WEFT_MUST(struct authenticate_params, methodId, str, "one of the authMethods"),
    WEFT_ALSO(struct authenticate_params, methodId, str, "method_id"),
    WEFT_END(struct authenticate_params),
};

/* Whoever is connected has shown who it is. The agents behind the hub are logged in by their own programs. */
int weft__acp_on_authenticate(weft_req *req, const weft_json *params, void *ctx) {
    const struct authenticate_params *in = weft_req_params(req);
    (void) params, (void) ctx;
    return weft__reply_invalid(req, "/methodId",
                               "there is no way to log in named \"%.200s\"; \"weft agents\" says how an agent is logged in",
                               in->methodId);
}

/* ---- the agent ---- */

struct hello_params {
    const char *agent, *client;
};
const weft_param weft__acp_hello_params[] = {
    {"agent", WEFT_PARAM_str, offsetof(struct hello_params, agent), WEFT_NULLABLE | WEFT_NONEMPTY,
     "the agent of the sessions that this connection makes; the default when absent"},
    {"client", WEFT_PARAM_str, offsetof(struct hello_params, client), WEFT_NULLABLE | WEFT_NONEMPTY,
     "a name of the client's own, the same when it comes back: up to 64 letters, digits and dashes"},
    WEFT_END(struct hello_params),
};

static bool is_client_name(const char *name) {
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-");
    return !name[len] && len <= ACP_CLIENT_NAME;
}

/* What "weft acp" says before its editor says anything. */
int weft__acp_on_hello(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct hello_params *in = weft_req_params(req);
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    (void) params;
    if (in->agent && !weft__agent_find(weft__engine_agents(hub->engine), in->agent))
        return weft__reply_no_agent(req, hub, WEFT_INVALID_PARAMS, "agentNotConfigured", "/agent", in->agent);
    if (in->client && !is_client_name(in->client))
        return weft__reply_invalid(req, "/client", "the name has up to %d letters, digits and dashes", ACP_CLIENT_NAME);
    int r = client && in->agent ? weft__hub_client_use_agent(client, in->agent) : 0;
    if (r >= 0 && client && in->client)
        r = weft__hub_client_set_name(client, in->client);
    return r < 0 ? r : weft__acp_reply(hub, req, WEFT_OBJ({"agent", weft_str_or_none(in->agent)}));
}
