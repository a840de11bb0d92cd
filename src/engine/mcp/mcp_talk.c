/* The conversation with a server: which era it is of, what it can do, and what it says unasked.
 *
 * The era is found out by server/discover, which only the modern one has. Whatever else than a proper answer to it comes
 * back, or nothing, is followed by initialize. The verdict is kept for as long as the server is configured.
 *
 * A server may notify as it likes, within limits; it may ask for little: ping, roots, elicitation and sampling. Everything
 * else is refused by the library. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mcp_private.h"

/* A Node program on a busy machine, with a cold disk. */
#define PROBE_MS 15000
#define INITIALIZE_MS 60000
/* Changes of resources that are told in one second; the rest is not kept. */
#define MOST_UPDATES 64
#define LONGEST_URI 8192
#define SECOND_MS 1000

static const char *const legacy_versions[] = {WEFT_MCP_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"};

/* ---- who we are ---- */

weft_val weft__mcp_client_info(weft_member members[3]) {
    members[0] = (weft_member){"name", weft_str("weft")};
    members[1] = (weft_member){"title", weft_str("Weft")};
    members[2] = (weft_member){"version", weft_str(weft_version())};
    return weft_obj(members, 3);
}

weft_val weft__mcp_capabilities(const weft_mcp_server *server, weft_member members[3], weft_member modes[2]) {
    modes[0] = (weft_member){"form", weft_obj(NULL, 0)};
    modes[1] = (weft_member){"url", weft_obj(NULL, 0)};
    members[0] = (weft_member){"roots", weft_obj(NULL, 0)};
    members[1] = (weft_member){"elicitation", weft_obj(modes, 2)};
    members[2] = (weft_member){"sampling", server->mcp->opts.no_sampling ? weft_none() : weft_obj(NULL, 0)};
    return weft_obj(members, 3);
}

/* ---- negotiating ---- */

bool weft__mcp_has_capability(const weft_mcp_server *server, const char *pointer) {
    weft_json found = weft_pointer(server->info ? weft_doc_root(server->info) : &(weft_json){0}, pointer);
    return weft_typeof(&found) == WEFT_OBJECT || weft_bool_of(&found, false);
}

static int send_opening(weft_mcp_server *server, const char *method, weft_val params, weft_on_answer *then, int64_t ms) {
    weft_call_opts opts = {.on_answer = then, .ctx = server, .timeout_ms = -1};
    weft__timer_set(server->mcp->loop, &server->timer, weft__add_ms(weft__loop_fresh_now(server->mcp->loop), ms));
    return weft_call_start(server->peer, method, params, &opts, &server->opening);
}

static int keep_info(weft_mcp_server *server, const weft_json *result, const char *version) {
    weft_doc *info;
    int r = weft_doc_keep(result, server->mcp->alloc, &info);
    if (r < 0)
        return r;
    weft_doc_free(server->info);
    server->info = info;
    snprintf(server->version, sizeof server->version, "%s", version);
    return 0;
}

static const char *known_version(const char *said) {
    for (size_t i = 0; i < sizeof legacy_versions / sizeof legacy_versions[0]; i++)
        if (strcmp(said, legacy_versions[i]) == 0)
            return legacy_versions[i];
    return NULL;
}

/* Statuses by which a server of 2024-11-05 says that nothing is posted here. */
static bool wants_older_transport(const weft_mcp_server *server) {
    return server->wire == &weft__mcp_http && server->spec->transport == WEFT_MCP_AUTO &&
           (server->refused == 400 || server->refused == 404 || server->refused == 405);
}

static void refuse_initialized(weft_mcp_server *server, const weft_error *error) {
    if (wants_older_transport(server)) {
        server->wire = &weft__mcp_sse;
        server->era = WEFT_MCP_IS_LEGACY;
        weft__mcp_begin_again(server);
    } else
        weft__mcp_failed(server, -ECONNREFUSED, "%s refused to begin: %.200s", server->spec->name, error->message);
}

/* An answer to what negotiates. The wire says how a connection ended that has. */
static bool is_for_us(const weft_mcp_server *server, const weft_peer *peer, int r) {
    return peer == server->peer && server->state == WEFT_MCP_STARTING && r != -ECONNRESET && r != -ENOTCONN;
}

static void on_mcp_initialized(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_mcp_server *server = ctx;
    if (!is_for_us(server, peer, r))
        return;
    if (r < 0 || answer->error) {
        if (r < 0)
            weft__mcp_failed(server, -ECONNREFUSED, "%s gave no valid answer to initialize", server->spec->name);
        else
            refuse_initialized(server, answer->error);
        return;
    }
    const char *version = known_version(weft_get_str(answer->result, "protocolVersion", ""));
    if (!version)
        weft__mcp_failed(server, -ECONNREFUSED, "%s speaks no version of MCP that is known here", server->spec->name);
    else if (keep_info(server, answer->result, version) < 0 ||
             weft_notify(peer, "notifications/initialized", weft_none()) < 0)
        weft__mcp_failed(server, -ENOMEM, "out of memory");
    else {
        server->era = WEFT_MCP_IS_LEGACY;
        weft__mcp_ready(server);
    }
}

static int send_initialize(weft_mcp_server *server) {
    weft_member able[3], modes[2], info[3];
    server->version[0] = '\0';
    server->refused = 0;
    return send_opening(server, "initialize",
                        WEFT_OBJ({"protocolVersion", weft_str(WEFT_MCP_LEGACY)},
                                 {"capabilities", weft__mcp_capabilities(server, able, modes)},
                                 {"clientInfo", weft__mcp_client_info(info)}),
                        on_mcp_initialized, INITIALIZE_MS);
}

static void fall_back(weft_mcp_server *server) {
    server->era = WEFT_MCP_IS_LEGACY;
    int r = send_initialize(server);
    if (r < 0)
        weft__mcp_failed(server, -ECONNREFUSED, "%s could not be asked: %s", server->spec->name, weft_strerror(r));
}

static bool has_modern(const weft_json *versions) {
    for (weft_iter it = weft_iterate(versions); weft_typeof(versions) == WEFT_ARRAY && weft_next(&it);)
        if (strcmp(weft_str_of(&it.value, ""), WEFT_MCP_MODERN) == 0)
            return true;
    return false;
}

static void on_discovered(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_mcp_server *server = ctx;
    if (!is_for_us(server, peer, r) || server->era == WEFT_MCP_IS_LEGACY)
        return; /* or it came when initialize was under way */
    weft_json versions = r >= 0 && answer->result ? weft_get(answer->result, "supportedVersions") : (weft_json){0};
    if (!has_modern(&versions)) {
        fall_back(server);
        return;
    }
    if (keep_info(server, answer->result, WEFT_MCP_MODERN) < 0) {
        weft__mcp_failed(server, -ENOMEM, "out of memory");
        return;
    }
    server->era = WEFT_MCP_IS_MODERN;
    weft__mcp_ready(server);
}

static int send_discover(weft_mcp_server *server) {
    weft_member able[3], modes[2], info[3];
    int64_t said = server->mcp->opts.probe_ms;
    snprintf(server->version, sizeof server->version, "%s", WEFT_MCP_MODERN);
    weft_val meta = WEFT_OBJ({"io.modelcontextprotocol/protocolVersion", weft_str(WEFT_MCP_MODERN)},
                             {"io.modelcontextprotocol/clientInfo", weft__mcp_client_info(info)},
                             {"io.modelcontextprotocol/clientCapabilities", weft__mcp_capabilities(server, able, modes)});
    return send_opening(server, "server/discover", WEFT_OBJ({"_meta", meta}), on_discovered, said > 0 ? said : PROBE_MS);
}

int weft__mcp_negotiate(weft_mcp_server *server) {
    return server->era == WEFT_MCP_IS_LEGACY || server->wire == &weft__mcp_sse ? send_initialize(server)
                                                                               : send_discover(server);
}

void weft__mcp_negotiate_late(weft_mcp_server *server) {
    if (server->era == WEFT_MCP_UNKNOWN && server->opening && server->peer)
        fall_back(server);
    else
        weft__mcp_failed(server, -ETIMEDOUT, "%s did not answer in time when it was started", server->spec->name);
}

/* ---- what changes ---- */

static const char *const lists[] = {"tools", "prompts", "resources"};

void weft__mcp_tell_changes(weft_timer *timer) {
    weft_mcp_server *server = WEFT_CONTAINER(timer, weft_mcp_server, events);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (server->changed & 1u << i)
            weft__mcp_tell(server, "mcp.listChanged",
                           WEFT_OBJ({"server", weft_str(server->spec->name)}, {"list", weft_str(lists[i])}));
    server->changed = 0;
    server->updates = 0;
}

static void tell_soon(weft_mcp_server *server) {
    if (server->events.due == INT64_MAX)
        weft__timer_set(server->mcp->loop, &server->events,
                        weft__add_ms(weft__loop_fresh_now(server->mcp->loop), SECOND_MS));
}

static int take_list_change(weft_mcp_server *server, weft_req *req, size_t which) {
    server->changed |= 1u << which;
    if (which == 0)
        server->tools = weft_doc_free(server->tools);
    tell_soon(server);
    return weft_reply(req, weft_null());
}

static int on_tools_changed(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return take_list_change(ctx, req, 0);
}

static int on_prompts_changed(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return take_list_change(ctx, req, 1);
}

static int on_resources_changed(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return take_list_change(ctx, req, 2);
}

static bool is_wanted(const weft_mcp_server *server, const char *uri) {
    for (weft_link *link = server->uris.next; link != &server->uris; link = link->next)
        if (strncmp(uri, WEFT_CONTAINER(link, weft_mcp_uri, link)->text,
                    strlen(WEFT_CONTAINER(link, weft_mcp_uri, link)->text)) == 0)
            return true; /* the URI may be of a part of what was asked for */
    return false;
}

static int on_resource_updated(weft_req *req, const weft_json *params, void *ctx) {
    weft_mcp_server *server = ctx;
    const char *uri = weft_get_str(params, "uri", "");
    if (*uri && strlen(uri) <= LONGEST_URI && is_wanted(server, uri) && server->updates++ < MOST_UPDATES)
        weft__mcp_tell(server, "mcp.resourceUpdated",
                       WEFT_OBJ({"server", weft_str(server->spec->name)}, {"uri", weft_str(uri)}));
    tell_soon(server);
    return weft_reply(req, weft_null());
}

/* ---- what it says besides ---- */

static int on_ping(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, weft_obj(NULL, 0));
}

static int on_roots(weft_req *req, const weft_json *params, void *ctx) {
    const weft_mcp_server *server = ctx;
    weft_buf out = {0};
    (void) params;
    int r = weft__mcp_put_roots(server->mcp, &out);
    if (r >= 0)
        r = weft_reply(req, weft_raw(weft__buf_head(&out), weft__buf_len(&out)));
    weft__buf_done(&out, server->mcp->alloc);
    return r;
}

static int on_log_message(weft_req *req, const weft_json *params, void *ctx) {
    weft_mcp_server *server = ctx;
    weft_json data = weft_get(params, "data");
    const char *level = weft_get_str(params, "level", "info"), *text = weft_str_of(&data, NULL);
    char line[2 * WEFT_MCP_LINE];
    int len = (int) (text ? strlen(text) : data.len);
    snprintf(line, sizeof line, "%.20s: %.*s", level, len < WEFT_MCP_LINE ? len : WEFT_MCP_LINE,
             text        ? text
             : data.text ? data.text
                         : "");
    weft__mcp_log(server, line, strlen(line));
    return weft_reply(req, weft_null());
}

/* A request's token is its number as text, which is none of the peer's own. */
static int on_mcp_progress(weft_req *req, const weft_json *params, void *ctx) {
    weft_mcp_server *server = ctx;
    const char *token = weft_get_str(params, "progressToken", "");
    unsigned long long number = 0;
    weft_mcp_request *request = sscanf(token, "weft-%20llu", &number) == 1 ? weft__mcp_by_number(server, number) : NULL;
    if (request)
        weft__mcp_progress(request, params);
    return weft_reply(req, weft_null());
}

static int on_ignored(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, weft_null());
}

const weft_method weft__mcp_methods[] = {
    {.name = "ping", .handler = on_ping, .help = ""},
    {.name = "roots/list", .handler = on_roots, .help = ""},
    {.name = "sampling/createMessage", .handler = weft__mcp_on_sampling, .help = ""},
    {.name = "elicitation/create", .handler = weft__mcp_on_elicitation, .help = ""},
    {.name = "notifications/message", .handler = on_log_message, .help = ""},
    {.name = "notifications/progress", .handler = on_mcp_progress, .help = ""},
    {.name = "notifications/tools/list_changed", .handler = on_tools_changed, .help = ""},
    {.name = "notifications/prompts/list_changed", .handler = on_prompts_changed, .help = ""},
    {.name = "notifications/resources/list_changed", .handler = on_resources_changed, .help = ""},
    {.name = "notifications/resources/updated", .handler = on_resource_updated, .help = ""},
    {.name = "notifications/elicitation/complete", .handler = on_ignored, .help = ""},
    {.name = "notifications/subscriptions/acknowledged", .handler = on_ignored, .help = ""},
    {0},
};

/* ---- limits of all it sends ---- */

/* Here a message is being read or written, so that nothing can be freed. A message over the limit is thrown away by the
 * framing and answered by the library; it may have been what somebody waits for. */
static void on_any_message(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text) {
    weft_mcp_server *server = ctx;
    int64_t minute = weft_loop_now(server->mcp->loop) / 60000;
    (void) peer, (void) text;
    if (outgoing) {
        if (server->service && weft_service_stats(server->service)->too_large)
            weft__later(server->mcp->loop, &server->fail);
        return;
    }
    if (minute != server->minute)
        server->begun = 0;
    server->minute = minute;
    if (++server->begun <= WEFT_MCP_PER_MINUTE)
        return;
    server->flooded = true;
    weft__later(server->mcp->loop, &server->fail);
}

int weft__mcp_new_service(weft_mcp_server *server) {
    weft_service_opts opts = {
        .methods = weft__mcp_methods,
        .ctx = server,
        .alloc = server->mcp->alloc,
        .limits = {.max_body = WEFT_MCP_LARGEST,
                   .max_body_stranger = WEFT_MCP_LARGEST,
                   .out_hard = 2 * (size_t) WEFT_MCP_LARGEST,
                   .max_requests = 4 * WEFT_MCP_ASKS,
                   .max_calls = 2 * WEFT_MCP_REQUESTS},
        .on_message = on_any_message,
    };
    server->service = weft_service_unref(server->service);
    return weft_service_new(&opts, &server->service);
}

/* ---- what we want to hear ---- */

static void ask_quietly(weft_mcp_server *server, const char *method, weft_val params) {
    (void) weft__mcp_request_own(server, method, params, NULL); /* one that is not told hears less */
}

static void subscribe_all(weft_mcp_server *server) {
    if (!weft__mcp_has_capability(server, "/capabilities/resources/subscribe"))
        return;
    for (weft_link *link = server->uris.next; link != &server->uris; link = link->next) {
        weft_mcp_uri *uri = WEFT_CONTAINER(link, weft_mcp_uri, link);
        if (!uri->asked)
            ask_quietly(server, "resources/subscribe", WEFT_OBJ({"uri", weft_str(uri->text)}));
        uri->asked = true;
    }
}

/* The stream has ended, by the server or because we want to hear of more. Not again at once: it may refuse for good. */
static void on_listen_over(weft_mcp_request *request) {
    weft_mcp_server *server = request->server;
    if (!server || server->listening != request)
        return;
    server->listening = NULL;
    if (server->listen_again && server->state == WEFT_MCP_READY)
        weft__mcp_hear(server);
}

static void listen_anew(weft_mcp_server *server) {
    weft_val uris[WEFT_MCP_URIS];
    size_t count = 0;
    for (weft_link *link = server->uris.next; link != &server->uris; link = link->next) {
        WEFT_CONTAINER(link, weft_mcp_uri, link)->asked = true;
        uris[count++] = weft_str(WEFT_CONTAINER(link, weft_mcp_uri, link)->text);
    }
    bool tools = weft__mcp_has_capability(server, "/capabilities/tools/listChanged"),
         prompts = weft__mcp_has_capability(server, "/capabilities/prompts/listChanged"),
         resources = weft__mcp_has_capability(server, "/capabilities/resources/listChanged");
    weft_val what = WEFT_OBJ({"toolsListChanged", tools ? weft_bool(true) : weft_none()},
                             {"promptsListChanged", prompts ? weft_bool(true) : weft_none()},
                             {"resourcesListChanged", resources ? weft_bool(true) : weft_none()},
                             {"resourceSubscriptions", count ? weft_arr(uris, count) : weft_none()});
    server->listen_again = false;
    if (tools || prompts || resources || count)
        server->listening =
            weft__mcp_request_own(server, "subscriptions/listen", WEFT_OBJ({"notifications", what}), on_listen_over);
}

void weft__mcp_hear(weft_mcp_server *server) {
    if (server->era != WEFT_MCP_IS_MODERN) {
        subscribe_all(server);
        return;
    }
    if (!server->listening) {
        listen_anew(server);
        return;
    }
    server->listen_again = true;
    weft__mcp_cancel(server->listening);
}

void weft__mcp_hear_no_more(weft_mcp_server *server, const char *uri) {
    if (server->era == WEFT_MCP_IS_MODERN)
        weft__mcp_hear(server);
    else
        ask_quietly(server, "resources/unsubscribe", WEFT_OBJ({"uri", weft_str(uri)}));
}
