/* The connection with an agent: initialize, calls, and what it sends. Everything that an agent may send besides, or get
 * wrong, ends here: lines that are no messages are counted and not answered, unknown notifications are ignored, unknown
 * requests are refused (the library does), and what belongs to another session or to history is not passed on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "acp_private.h"
#include "connect_fds.h"
#include "visible.h"

#define PROTOCOL 1

/* A Node program on a busy machine, with a cold disk, still has to answer within this. */
#define INITIALIZE_MS 60000
/* Of its ways to log in, so many are named, and so many bytes of each name. */
#define MOST_AUTH 8
#define LONGEST_AUTH 80
/* Bytes of all that is said of them. */
#define LARGEST_AUTH (32 * 1024)
/* What ACP's own SDK accepts. A prompt may be as large. */
#define LARGEST (32 * 1024 * 1024)

/* ---- ending it ---- */

void weft__acp_fail(weft_driver_process *process, bool retryable, const char *what, const char *why) {
    weft__acp_decide_all(process, retryable, "protocolError", "%s %s%s%s", process->agent->name, what, why,
                         process->noise ? "; it wrote lines to its standard output that are no messages: is it an ACP agent?"
                                        : "");
    weft__acp_leave(process);
}

bool weft__acp_check(weft_driver_process *process, const char *method, const weft_json *result) {
    char why[WEFT_SHAPE_WHY], what[WEFT_SHAPE_WHY + 80];
    int r = weft__acp_fits(process, method, result, why);
    if (r < 0) {
        snprintf(what, sizeof what, "answered %s with something that cannot be used: %s", method, why);
        weft__acp_fail(process, r == -ENOMEM, what, "");
    }
    return r == 0;
}

/* ---- calls ---- */

/* A peer that is freed inside a callback completes its calls when that returns, so an open call holds the session. */
static void on_session_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_driver_session *session = ctx;
    (void) peer;
    session->call = 0;
    session->on_answer(session, r, answer);
    weft__acp_session_release(session);
}

int weft__acp_call(weft_driver_session *session, const char *method, weft_val params, weft_acp_on_answer *then,
                   int64_t timeout_ms) {
    weft_call_opts opts = {.on_answer = on_session_answer, .ctx = session, .timeout_ms = timeout_ms};
    session->on_answer = then;
    int r = weft_call_start(session->process->peer, method, params, &opts, &session->call);
    if (r >= 0)
        weft__acp_session_hold(session);
    else if (r != -ENOTCONN)
        weft__acp_fail(session->process, true, "could not be sent ", method);
    return r == -ENOTCONN ? 0 : r;
}

/* ---- initialize ---- */

static bool has_session_capability(const weft_json *result, const char *name) {
    weft_json all = weft_pointer(result, "/agentCapabilities/sessionCapabilities"), one = weft_get(&all, name);
    return weft_typeof(&one) == WEFT_OBJECT || weft_bool_of(&one, false);
}

static void read_capabilities(weft_driver_process *process, const weft_json *result) {
    weft_json load = weft_pointer(result, "/agentCapabilities/loadSession"),
              logout = weft_pointer(result, "/agentCapabilities/auth/logout");
    process->can_logout = weft_typeof(&logout) == WEFT_OBJECT || weft_bool_of(&logout, false);
    process->can_load = weft_bool_of(&load, false);
    weft_json mcp = weft_pointer(result, "/agentCapabilities/mcpCapabilities");
    process->can_http = weft_get_bool(&mcp, "http", false);
    process->can_sse = weft_get_bool(&mcp, "sse", false);
    process->can_resume = has_session_capability(result, "resume");
    process->can_close = has_session_capability(result, "close");
    process->can_list = has_session_capability(result, "list");
    process->can_delete = has_session_capability(result, "delete");
}

/* For people, should it not be logged in; without memory there is less to say. */
static void read_auth(weft_driver_process *process, const weft_json *result) {
    weft_json list = weft_get(result, "authMethods");
    size_t count = 0;
    if (weft_typeof(&list) == WEFT_ARRAY && list.len <= LARGEST_AUTH)
        (void) weft__buf_put(&process->methods, process->alloc, list.text, list.len);
    for (weft_iter it = weft_iterate(&list); count < MOST_AUTH && weft_next(&it);) {
        weft_json name = weft_get(&it.value, "name");
        weft_bytes text;
        if (weft_bytes_of(&name, &text) < 0 || !text.len)
            continue;
        if (count++ && weft__buf_put(&process->auth, process->alloc, ", ", 2) < 0)
            return;
        if (weft__visible_put(&process->auth, process->alloc, text, LONGEST_AUTH) < 0)
            return;
    }
}

static void take_initialized(weft_driver_process *process, int r, const weft_answer *answer) {
    if (process->freed || process->state >= WEFT_ACP_LEAVING || r == -ECONNRESET || r == -ENOTCONN || r == -ECANCELED)
        return;
    if (r >= 0 && answer->error) {
        for (weft_link *link = process->sessions.next; link != &process->sessions; link = link->next)
            weft__acp_decide_error(WEFT_CONTAINER(link, weft_driver_session, link), "initialize", answer->error);
        weft__acp_leave(process);
    } else if (r < 0)
        weft__acp_fail(process, true, r == -ETIMEDOUT ? "did not answer in time: " : "gave no valid answer to ",
                       "initialize");
    else if (!weft__acp_check(process, "initialize", answer->result))
        return;
    else if (weft_get_int(answer->result, "protocolVersion", -1) != PROTOCOL)
        weft__acp_fail(process, false, "does not speak version 1 of ACP", "");
    else {
        read_capabilities(process, answer->result);
        read_auth(process, answer->result);
        process->state = WEFT_ACP_READY;
        weft__acp_sessions_open(process);
        weft__acp_requests_send(process);
    }
}

static void on_initialized(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer;
    take_initialized(ctx, r, answer);
    weft__acp_release(ctx);
}

static const weft_passage *find_passage(const weft_driver_process *process, const char *method) {
    for (const weft_passage *row = process->passages; row && row->method; row++)
        if (strcmp(row->method, method) == 0)
            return row;
    return NULL;
}

static weft_val offers_method(const weft_driver_process *process, const char *method) {
    return weft_bool(find_passage(process, method) != NULL);
}

static int call_initialize(weft_driver_process *process) {
    weft_val fs = WEFT_OBJ({"readTextFile", offers_method(process, "fs/read_text_file")},
                           {"writeTextFile", offers_method(process, "fs/write_text_file")});
    weft_val elicitation = WEFT_OBJ({"form", weft_obj(NULL, 0)}, {"url", weft_obj(NULL, 0)});
    weft_val options = WEFT_OBJ({"configOptions", WEFT_OBJ({"boolean", weft_obj(NULL, 0)})});
    weft_val able = WEFT_OBJ({"fs", fs}, {"terminal", offers_method(process, "terminal/create")},
                             {"elicitation", elicitation}, {"session", options});
    weft_val info = WEFT_OBJ({"name", weft_str("weft")}, {"title", weft_str("Weft")}, {"version", weft_str(weft_version())});
    int64_t most = process->agent->timeout_ms; /* a task does not wait longer for its beginning than for its end */
    weft_call_opts opts = {
        .on_answer = on_initialized, .ctx = process, .timeout_ms = most > 0 && most < INITIALIZE_MS ? most : INITIALIZE_MS};
    int r = weft_call_start(
        process->peer, "initialize",
        WEFT_OBJ({"protocolVersion", weft_int(PROTOCOL)}, {"clientCapabilities", able}, {"clientInfo", info}), &opts, NULL);
    if (r >= 0)
        weft__acp_hold(process);
    return r;
}

/* ---- what the agent says ---- */

static int on_update(weft_req *req, const weft_json *params, void *ctx) {
    weft_driver_session *session = weft__acp_session_of(ctx, params);
    weft_json update = weft_get(params, "update");
    bool proper = weft_get_str(&update, "sessionUpdate", NULL);
    if (proper && session) {
        weft__acp_session_hold(session);
        weft__acp_state_update(session, &update);
        if (!session->closed && !session->replaying)
            session->host->on_update(session->ctx, &update);
        weft__acp_session_release(session);
    }
    return weft_reply(req, weft_null());
}

/* What a turn asks of its client goes to whoever has a row for it. Outside of a turn there is nobody to ask for. */
static int take_request(weft_driver_process *process, weft_req *req, const weft_json *params, const char *method) {
    const weft_passage *row = find_passage(process, method);
    weft_driver_session *session = weft__acp_session_of(process, params);
    if (!row || !session || session->turn != WEFT_ACP_PROMPTING || !session->host->on_request)
        return weft_fail(req, WEFT_METHOD_NOT_FOUND, "Method not found", weft_none());
    weft__acp_session_hold(session);
    int r = session->host->on_request(session->ctx, row, req, params);
    weft__acp_session_release(session);
    return r;
}

#define TAKES(name, method)                                                                                                 \
    static int name(weft_req *req, const weft_json *params, void *ctx) {                                                    \
        return take_request(ctx, req, params, method);                                                                      \
    }
TAKES(on_read_file, "fs/read_text_file")
TAKES(on_write_file, "fs/write_text_file")
TAKES(on_terminal_create, "terminal/create")
TAKES(on_terminal_output, "terminal/output")
TAKES(on_terminal_wait, "terminal/wait_for_exit")
TAKES(on_terminal_kill, "terminal/kill")
TAKES(on_terminal_release, "terminal/release")

/* A line that is neither a request nor an answer was not meant for us: a greeting, a warning of a runtime, a stack trace. An
 * error in return would only confuse an agent that did not ask anything. */
static bool is_message(const weft_json *line) {
    weft_json method = weft_get(line, "method"), id = weft_get(line, "id");
    weft_json result = weft_get(line, "result"), error = weft_get(line, "error");
    return weft_typeof(&method) == WEFT_STRING || (id.text && (result.text || error.text));
}

/* ACP has no batches: the library refuses one with -32600, and the process ends, because what the agent waits for or owes us
 * may be in it. An array without a message in it is a line like any other. */
static bool is_batch(const weft_json *line) {
    for (weft_iter it = weft_iterate(line); weft_typeof(line) == WEFT_ARRAY && weft_next(&it);)
        if (weft_typeof(&it.value) == WEFT_OBJECT && is_message(&it.value))
            return true;
    return false;
}

static bool on_raw(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    static const char usual[] = "{\"jsonrpc\":\"2.0\",";
    weft_driver_process *process = data;
    WEFT_AUTO(weft_doc) doc = NULL;
    (void) peer, (void) binary;
    if (body.len > sizeof usual && memcmp(body.data, usual, sizeof usual - 1) == 0)
        return false; /* meant for us, and need not be looked through twice */
    int r = weft_doc_parse(body.data, body.len, process->alloc, &doc);
    if (r == -ENOMEM || (r == 0 && is_message(weft_doc_root(doc))))
        return false;
    if (r == 0 && is_batch(weft_doc_root(doc))) {
        process->batched = true;
        weft__later(process->loop, &process->later);
        return false;
    }
    process->noise++;
    return true;
}

/* ---- the connection ---- */

/* A message over the limit is thrown away by the framing, and the library says so to the agent. It may have been the answer
 * that we wait for, so this is the end; not here, though, where a message is being written. */
static void on_message(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text) {
    weft_driver_process *process = ctx;
    (void) peer, (void) text;
    if (outgoing && process->service && weft_service_stats(process->service)->too_large && process->state < WEFT_ACP_LEAVING)
        weft__later(process->loop, &process->later);
}

static void fail_for_message(weft_later *later) {
    weft_driver_process *process = WEFT_CONTAINER(later, weft_driver_process, later);
    if (process->state < WEFT_ACP_LEAVING)
        weft__acp_fail(process, false,
                       process->batched ? "sent a batch of messages, which ACP does not have"
                                        : "sent a message of more than 32 MiB",
                       "");
}

/* Its output has ended, by its process or before it. */
static void on_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    (void) peer, (void) why;
    if (state == WEFT_PEER_CLOSED)
        weft__acp_leave(data);
}

static const weft_method methods[] = {
    {.name = "session/update", .handler = on_update, .help = ""},
    {.name = "session/request_permission", .handler = weft__acp_ask, .help = ""},
    {.name = "fs/read_text_file", .handler = on_read_file, .help = ""},
    {.name = "fs/write_text_file", .handler = on_write_file, .help = ""},
    {.name = "terminal/create", .handler = on_terminal_create, .help = ""},
    {.name = "terminal/output", .handler = on_terminal_output, .help = ""},
    {.name = "terminal/wait_for_exit", .handler = on_terminal_wait, .help = ""},
    {.name = "terminal/kill", .handler = on_terminal_kill, .help = ""},
    {.name = "terminal/release", .handler = on_terminal_release, .help = ""},
    {.name = "elicitation/create", .handler = weft__acp_elicit, .help = ""},
    {.name = "elicitation/complete", .handler = weft__acp_on_elicited, .help = ""},
    {0},
};

void weft__acp_talk_init(weft_driver_process *process) {
    weft__later_init(&process->later, fail_for_message);
}

int weft__acp_talk(weft_driver_process *process, int in, int out) {
    weft_service_opts service = {
        .methods = methods,
        .ctx = process,
        .alloc = process->alloc,
        .limits = {.max_body = LARGEST, .out_hard = 2 * LARGEST},
        .on_message = on_message,
    };
    weft_connect_opts opts = {
        .style = WEFT_STYLE_ACP, .no_batch = true, .lenient = true, .data = process, .on_state = on_state, .on_raw = on_raw};
    int r = weft_service_new(&service, &process->service);
    opts.service = process->service;
    if (r < 0) {
        close(in);
        close(out);
        return r;
    }
    r = weft__connect_fds(process->loop, in, out, &opts, &process->peer);
    if (r < 0)
        return r;
    weft_peer_pause(process->peer, true); /* until the host knows of the process */
    return call_initialize(process);
}
