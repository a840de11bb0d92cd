/* The commands of the time before JSON-RPC. Each is a call of a method, with the same checks; what comes of it is an event
 * of the old form, {"event", "timestamp", "payload", "request_id"}. As in the original, a command whose effect is told by
 * other events has no answer of its own when it went well. */
#include "cdev_old.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "cdev.h"
#include "reply.h"

#define REQUEST_ID 128 /* bytes of a request_id that come back; a longer one does not */

/* One command, until its method has answered. The connection may go before. */
typedef struct old_call old_call;
typedef struct old_command {
    const char *name, *method;
    const char *fails;  /* the code of an error */
    const char *answer; /* the event when it went well; NULL: none */
    void (*on_result)(const old_call *call, weft_hub_client *client, const weft_json *result);
} old_command;

struct old_call {
    weft_hub *hub;
    uint64_t client;
    const old_command *command;
    weft_doc *payload; /* NULL: it has none */
    char request_id[REQUEST_ID];
};

/* ---- events ---- */

static void send_event(const weft_hub *hub, weft_hub_client *client, const char *name, weft_val payload,
                       const char *request_id) {
    char time[WEFT_STAMP], *text;
    size_t len;
    int r = weft_to_text(WEFT_OBJ({"event", weft_str(name)},
                                  {"timestamp", weft_str(weft__stamp(weft__engine_now(hub->engine), time))},
                                  {"payload", payload}, {"request_id", weft_str_or_none(*request_id ? request_id : NULL)}),
                         hub->alloc, &text, &len);
    if (r < 0) {
        weft__hub_client_lose(client); /* it waits for an answer */
        return;
    }
    weft_peer_send_raw(weft__hub_client_peer(client), (weft_bytes){text, len}, false);
    weft_text_free(text, hub->alloc);
}

static void send_error(const weft_hub *hub, weft_hub_client *client, const char *code, const char *message,
                       const char *request_id, weft_val details) {
    send_event(hub, client, "error",
               WEFT_OBJ({"code", weft_str(code)}, {"message", weft_str(message)},
                        {"request_id", weft_str_or_none(*request_id ? request_id : NULL)}, {"details", details}),
               request_id);
}

/* ---- what came of a command ---- */

static const char *payload_text(const old_call *call, const char *name) {
    return call->payload ? weft_get_str(weft_doc_root(call->payload), name, "") : "";
}

static void show_result(const old_call *call, weft_hub_client *client, const weft_json *result) {
    send_event(call->hub, client, call->command->answer, weft_copy(result), call->request_id);
}

static void note_started(const old_call *call, weft_hub_client *client, const weft_json *result) {
    (void) call;
    (void) weft__hub_client_started(client, weft_get_str(result, "session_id", ""));
}

static void start_watching(const old_call *call, weft_hub_client *client, const weft_json *result) {
    const char *session = weft_get_str(result, "session_id", "");
    if (weft__hub_client_watch(client, session) < 0)
        send_error(call->hub, client, "WATCH_FAILED", "Too many sessions are watched", call->request_id, weft_none());
    else
        send_event(call->hub, client, call->command->answer,
                   WEFT_OBJ({"session_id", weft_str(session)}, {"watching", weft_bool(true)}), call->request_id);
}

/* Which it was is known until it is not watched any more. */
static void stop_watching(const old_call *call, weft_hub_client *client, const weft_json *result) {
    const char *session = weft__hub_client_watched(client);
    (void) result;
    send_event(call->hub, client, call->command->answer,
               WEFT_OBJ({"session_id", weft_str(session ? session : "")}, {"watching", weft_bool(false)},
                        {"reason", weft_str("client_request")}),
               call->request_id);
    weft__hub_client_unwatch_all(client);
}

static const old_command commands[] = {
    {"run_claude", "agent/run", "CLAUDE_ERROR", NULL, note_started},
    {"stop_claude", "agent/stop", "CLAUDE_ERROR", NULL, NULL},
    {"respond_to_claude", "agent/respond", "CLAUDE_ERROR", NULL, NULL},
    {"get_status", "status/get", "INTERNAL_ERROR", "status_response", show_result},
    {"get_file", "file/get", "FILE_NOT_FOUND", "file_content", show_result},
    {"watch_session", "session/get", "WATCH_FAILED", "session_watch_started", start_watching},
    {"unwatch_session", "status/get", "INTERNAL_ERROR", "session_watch_stopped", stop_watching},
};

/* A file that is not there is said in the event that would have had it. */
static void show_failure(const old_call *call, weft_hub_client *client, const weft_error *error) {
    bool invalid = error->code == WEFT_INVALID_PARAMS;
    if (error->code == CDEV_NO_FILE)
        send_event(call->hub, client, call->command->answer,
                   WEFT_OBJ({"path", weft_str(payload_text(call, "path"))}, {"encoding", weft_str("")},
                            {"truncated", weft_bool(false)}, {"size", weft_int(0)}, {"error", weft_str(error->message)}),
                   call->request_id);
    else
        send_error(call->hub, client, invalid ? "INVALID_PAYLOAD" : call->command->fails, error->message, call->request_id,
                   error->data.text ? weft_copy(&error->data) : weft_none());
}

static old_call *free_old_call(old_call *call) {
    weft_doc_free(call->payload);
    return weft__free(call->hub->alloc, call);
}

static void on_old_called(void *ctx, int r, const weft_answer *answer) {
    old_call *call = ctx;
    weft_hub_client *client = call->hub->clients ? weft__hub_clients_find(call->hub->clients, call->client) : NULL;
    if (client && r < 0)
        send_error(call->hub, client, "INTERNAL_ERROR", weft_strerror(r), call->request_id, weft_none());
    else if (client && answer->error)
        show_failure(call, client, answer->error);
    else if (client && call->command->on_result)
        call->command->on_result(call, client, answer->result);
    free_old_call(call);
}

/* ---- taking one ---- */

static const old_command *find_command(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* A session is not named by stop_claude: it is the connection's, and a call has no connection. */
static weft_val params_of(const old_call *call, weft_peer *peer, weft_member room[1]) {
    const weft_session *session;
    if (strcmp(call->command->method, "agent/stop") != 0)
        return call->payload ? weft_copy(weft_doc_root(call->payload)) : weft_obj(NULL, 0);
    session = weft__cdev_session(call->hub, peer);
    room[0] = (weft_member){"session_id", weft_str_or_none(session ? session->id : NULL)};
    return weft_obj(room, 1);
}

static int keep_command(old_call *call, const weft_json *message) {
    weft_json payload = weft_get(message, "payload");
    const char *request_id = weft_get_str(message, "request_id", "");
    if (strlen(request_id) < REQUEST_ID)
        memcpy(call->request_id, request_id, strlen(request_id) + 1);
    return weft_typeof(&payload) == WEFT_OBJECT ? weft_doc_keep(&payload, call->hub->alloc, &call->payload) : 0;
}

static void start_command(weft_hub *hub, weft_peer *peer, weft_hub_client *client, const weft_json *message) {
    const char *name = weft_get_str(message, "command", "");
    weft_member room[1];
    weft_identity who = *weft_peer_identity(peer);
    old_call *call = weft__zalloc(hub->alloc, sizeof *call);
    if (!call) {
        weft__hub_client_lose(client);
        return;
    }
    *call = (old_call){.hub = hub, .client = weft__hub_client_number(client), .command = find_command(name)};
    who.dialect = weft__cdev.name;
    int r = keep_command(call, message);
    if (r >= 0 && !call->command)
        send_error(hub, client, "UNKNOWN_COMMAND", "Unknown command", call->request_id,
                   WEFT_OBJ({"command", weft_str(name)}));
    else if (r >= 0)
        r = weft_service_call(hub->service, &who, call->command->method, params_of(call, peer, room), on_old_called, call,
                              NULL);
    if (r < 0)
        send_error(hub, client, "INTERNAL_ERROR", weft_strerror(r), call->request_id, weft_none());
    if (r < 0 || !call->command)
        free_old_call(call);
}

/* Without looking at it as JSON: nearly everything that comes is a message of JSON-RPC, and it says so early. */
static bool may_be_command(weft_bytes body) {
    static const char ours[] = "\"command\"", theirs[] = "\"jsonrpc\"";
    size_t at = 0, start = body.len < 64 ? body.len : 64;
    while (at < body.len && isspace((unsigned char) body.data[at]))
        at++;
    return at < body.len && body.data[at] == '{' && !memmem(body.data, start, theirs, sizeof theirs - 1) &&
           memmem(body.data, body.len, ours, sizeof ours - 1);
}

static bool is_command(const weft_json *message) {
    weft_json command = weft_get(message, "command");
    return weft_typeof(&command) == WEFT_STRING && !weft_get(message, "jsonrpc").text && !weft_get(message, "method").text;
}

bool weft__cdev_old_take(weft_hub *hub, weft_peer *peer, weft_bytes body) {
    weft_doc *doc;
    weft_hub_client *client = hub->clients ? weft__hub_client_of(hub->clients, peer) : NULL;
    if (!client || strcmp(weft_peer_identity(peer)->dialect, weft__cdev.name) != 0 || !may_be_command(body) ||
        weft_doc_parse(body.data, body.len, hub->alloc, &doc) < 0)
        return false;
    bool taken = is_command(weft_doc_root(doc));
    int r = 0;
    if (taken && !(weft__hub_client_flags(client) & CDEV_INITIALIZED) && weft__hub_client_variant(client) != CDEV_OLD)
        r = weft__hub_client_speak(client, weft__cdev.name, weft__cdev_variants[CDEV_OLD]);
    if (taken && r >= 0)
        start_command(hub, peer, client, weft_doc_root(doc));
    else if (taken)
        weft__hub_client_lose(client);
    weft_doc_free(doc);
    return taken;
}
