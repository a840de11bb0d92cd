/* initialize, initialized, shutdown: what a client and the hub tell each other about themselves. Both spellings are read and
 * both are answered, because cdev's plan, its server and its app differ. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "cdev.h"
#include "reply.h"
#include "write.h"

#define PROTOCOL "1.0" /* as the original's server answers */

struct initialize_params {
    weft_json protocolVersion, clientInfo, client_info, capabilities;
};
const weft_param weft__cdev_initialize_params[] = {
    {"client_info", WEFT_PARAM_obj, offsetof(struct initialize_params, client_info), WEFT_NULLABLE,
     "the client's name and version"},
    {"capabilities", WEFT_PARAM_obj, offsetof(struct initialize_params, capabilities), WEFT_NULLABLE,
     "notifications: names as you want them, \"event/claude_log\" for instance; parallel: true for runs side by side"},
    {"clientInfo", WEFT_PARAM_obj, offsetof(struct initialize_params, clientInfo), WEFT_NULLABLE, "the same as client_info"},
    {"protocolVersion", WEFT_PARAM_any, offsetof(struct initialize_params, protocolVersion), WEFT_NULLABLE,
     "the version that the client speaks; the answer has the hub's"},
    WEFT_END(struct initialize_params),
};

/* ---- whose it is ---- */

/* 2024-11-05: the versions of MCP look so. */
static bool is_date(const char *text) {
    static const char shape[] = "dddd-dd-dd";
    for (size_t i = 0; i < sizeof shape; i++)
        if (shape[i] == 'd' ? !isdigit((unsigned char) text[i]) : shape[i] != text[i])
            return false;
    return true;
}

/* A number is ACP's version and a date is MCP's; snake_case versions and capabilities are those of an older ACP. */
bool weft__cdev_claims(const weft_json *params) {
    weft_json version = weft_get(params, "protocolVersion");
    if (weft_get(params, "protocol_version").text || weft_get(params, "client_capabilities").text)
        return false;
    return weft_typeof(&version) != WEFT_NUMBER && !is_date(weft_str_of(&version, ""));
}

/* ---- what it wants ---- */

static bool list_has_prefix(const weft_json *capabilities, const char *name, const char *what, size_t len) {
    weft_json list = weft_get(capabilities, name);
    for (weft_iter it = weft_iterate(&list); weft_typeof(&list) == WEFT_ARRAY && weft_next(&it);)
        if (strncmp(weft_str_of(&it.value, ""), what, len) == 0)
            return true;
    return false;
}

static bool wants_event_names(const weft_json *capabilities) {
    return list_has_prefix(capabilities, "notifications", "event/", 6);
}

static bool wants_parallel(const weft_json *capabilities) {
    return weft_get_bool(capabilities, "parallel", false) ||
           list_has_prefix(capabilities, "features", "parallel", sizeof "parallel");
}

/* What it hears already stays as it is: a new subscription would begin now. */
static int set_up_client(weft_hub_client *client, const weft_json *capabilities) {
    size_t variant = wants_event_names(capabilities) ? CDEV_EVENT : CDEV_PLAIN;
    unsigned flags = weft__hub_client_flags(client) & ~(unsigned) CDEV_PARALLEL;
    weft__hub_client_set_flags(client, flags | CDEV_INITIALIZED | (wants_parallel(capabilities) ? CDEV_PARALLEL : 0));
    if (weft__hub_client_variant(client) == variant)
        return 0;
    return weft__hub_client_speak(client, "cdev", weft__cdev_variants[variant]);
}

/* ---- what there is ---- */

static int put_json_piece(weft_buf *out, const weft_alloc *alloc, const char *text) {
    return weft__buf_put(out, alloc, text, strlen(text));
}

static int write_names(weft_buf *out, const weft_alloc *alloc, const weft_agents *agents) {
    int r = put_json_piece(out, alloc, "[");
    for (size_t i = 0; r >= 0 && i < agents->count; i++) {
        r = i ? put_json_piece(out, alloc, ",") : 0;
        if (r >= 0)
            r = weft__write_str(out, alloc, agents->list[i].name, strlen(agents->list[i].name));
    }
    return r < 0 ? r : put_json_piece(out, alloc, "]");
}

#define MOST_NOTIFICATIONS 16

static weft_val notification_names(weft_val room[MOST_NOTIFICATIONS]) {
    size_t count = 0;
    for (; weft__cdev_notifications[count] && count < MOST_NOTIFICATIONS; count++)
        room[count] = weft_str(weft__cdev_notifications[count]);
    return weft_arr(room, count);
}

static weft_val suggested_timeouts(void) {
    static const weft_member room[] = {{"default", {.kind = WEFT_VAL_INT, .as.i = 30000}},
                                       {"read", {.kind = WEFT_VAL_INT, .as.i = CDEV_READ_MS}},
                                       {"git", {.kind = WEFT_VAL_INT, .as.i = CDEV_GIT_MS}}};
    return weft_obj(room, sizeof room / sizeof room[0]);
}

static int answer_initialize(weft_req *req, const weft_hub *hub, weft_bytes names, weft_bytes pending) {
    weft_val agents = weft_raw(names.data, names.len), room[MOST_NOTIFICATIONS], yes = weft_bool(true);
    weft_val server = WEFT_OBJ({"name", weft_str("weft")}, {"version", weft_str(hub->host->version)});
    weft_val features = WEFT_ARR(weft_str("jsonrpc"), weft_str("batch"), weft_str("parallel"), weft_str("sessions"),
                                 weft_str("transcript"), weft_str("permissions"), weft_str("heartbeat"));
    char workspace[CDEV_WORKSPACE];
    return weft_reply(
        req, WEFT_OBJ({"protocolVersion", weft_str(PROTOCOL)}, {"serverInfo", server}, {"server_info", server},
                      {"capabilities",
                       WEFT_OBJ({"agents", agents}, {"supportedAgents", agents}, {"features", features},
                                {"agent", WEFT_OBJ({"run", yes}, {"stop", yes}, {"respond", yes}, {"sessions", yes},
                                                   {"sessionWatch", yes})},
                                {"git", WEFT_OBJ({"status", yes}, {"diff", yes})},
                                {"file", WEFT_OBJ({"get", yes}, {"list", yes}, {"maxFileSize", weft_int(WEFT_FILE_READ)})},
                                {"notifications", notification_names(room)}, {"timeouts", suggested_timeouts()})},
                      {"workspace_id", weft_str(weft__cdev_workspace(hub, workspace))},
                      {"pending", weft_raw(pending.data, pending.len)}));
}

static weft_bytes buf_bytes(const weft_buf *buf) {
    return (weft_bytes){weft__buf_head(buf), weft__buf_len(buf)};
}

/* No dialect of the hub has claimed it, so it came here. */
static int refuse_protocol(weft_req *req) {
    return weft__reply_invalid(req, "/protocolVersion",
                               "this endpoint speaks cdev " PROTOCOL ", not the protocol with this version");
}

int weft__cdev_initialize(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct initialize_params *in = weft_req_params(req);
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    weft_buf names = {0}, pending = {0};
    if (!weft__cdev_claims(params))
        return refuse_protocol(req);
    if (client && hub->host->show)
        hub->host->show(hub->host->ctx);
    int r = client ? set_up_client(client, &in->capabilities) : 0;
    if (r >= 0)
        r = write_names(&names, hub->alloc, weft__engine_agents(hub->engine));
    if (r >= 0)
        r = weft__cdev_write_pending(hub, NULL, &pending);
    if (r >= 0)
        r = answer_initialize(req, hub, buf_bytes(&names), buf_bytes(&pending));
    weft__buf_done(&names, hub->alloc);
    weft__buf_done(&pending, hub->alloc);
    return r;
}

int weft__cdev_initialized(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    (void) ctx;
    return weft_reply(req, weft_null());
}

/* The hub is everybody's: a client that shuts down ends its own part. daemon.stop stops the daemon. */
int weft__cdev_shutdown(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    (void) params;
    if (client)
        weft__hub_client_unwatch_all(client);
    return weft_reply(req, WEFT_OBJ({"status", weft_str("ok")}, {"success", weft_bool(true)}));
}
