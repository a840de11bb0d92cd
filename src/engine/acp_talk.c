/* The conversation of a run with its agent: initialize, a session, one prompt. Everything that an agent may send besides, or
 * get wrong, ends here: lines that are no messages are counted and not answered, unknown notifications are ignored, unknown
 * requests are refused (the library does), and what belongs to another session or to history is not passed on. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "acp_run.h"
#include "connect_fds.h"
#include "visible.h"

#define PROTOCOL 1

/* A Node program on a busy machine, with a cold disk, still has to answer within this. */
#define INITIALIZE_MS 60000
/* Of its ways to log in, so many are named, and so many bytes of each name. */
#define MOST_AUTH 8
#define LONGEST_AUTH 80
/* Agents log in, start MCP servers and replay their history before they answer. */
#define OPEN_MS 120000
/* What ACP's own SDK accepts. A prompt may be as large. */
#define LARGEST (32 * 1024 * 1024)

/* ---- ending it ---- */

static void fail(weft_run *run, bool retryable, const char *what, const char *why) {
    weft__acp_decide(run, retryable, "protocolError", "%s %s%s%s", run->agent->name, what, why,
                     run->noise ? "; it wrote lines to its standard output that are no messages: is it an ACP agent?" : "");
    weft__acp_leave(run);
}

/* A call that got no result: false, and the run has ended. A lost connection is not the end: how the process ends says more
 * (see on_state). */
static bool check(weft_run *run, int r, const weft_answer *answer, const char *method) {
    if (run->freed || run->state >= WEFT_ACP_LEAVING || r == -ECONNRESET || r == -ENOTCONN || r == -ECANCELED)
        return false;
    if (r >= 0 && answer->result)
        return true;
    if (r >= 0) {
        weft__acp_decide_error(run, method, answer->error);
        weft__acp_leave(run);
    } else if (r == -ETIMEDOUT)
        fail(run, true, "did not answer in time: ", method);
    else
        fail(run, true, "gave no proper answer to ", method);
    return false;
}

/* A peer that is freed inside a callback completes its calls when that returns, so an open call holds the run. */
static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_run *run = ctx;
    (void) peer;
    run->on_answer(run, r, answer);
    weft__acp_release(run);
}

/* One at a time. */
static int call(weft_run *run, const char *method, weft_val params, weft_acp_on_answer *then, int64_t timeout_ms) {
    weft_call_opts opts = {.on_answer = on_answer, .ctx = run, .timeout_ms = timeout_ms};
    run->on_answer = then;
    int r = weft_call_start(run->peer, method, params, &opts, NULL);
    if (r >= 0)
        weft__acp_hold(run);
    else if (r != -ENOTCONN)
        fail(run, true, "could not be sent ", method);
    return r;
}

/* ---- the prompt ---- */

static void on_prompted(weft_run *run, int r, const weft_answer *answer) {
    if (!check(run, r, answer, "session/prompt"))
        return;
    weft__acp_decide_stop(run, weft_get_str(answer->result, "stopReason", ""));
    weft__acp_leave(run);
}

static void send_prompt(weft_run *run) {
    run->state = WEFT_ACP_PROMPTING;
    weft_val text = WEFT_OBJ({"type", weft_str("text")}, {"text", weft_str(run->prompt)});
    weft_val params = WEFT_OBJ({"sessionId", weft_str(run->session)}, {"prompt", weft_arr(&text, 1)});
    call(run, "session/prompt", params, on_prompted, -1);
    run->prompt = weft__free(run->alloc, run->prompt);
}

/* ---- the session ---- */

static void begin_turn(weft_run *run) {
    weft__acp_hold(run);
    run->host.on_session(run->ctx, run->can_load || run->can_resume ? run->session : NULL);
    if (!run->freed && run->state == WEFT_ACP_OPENING)
        send_prompt(run);
    weft__acp_release(run);
}

static void on_opened(weft_run *run, int r, const weft_answer *answer) {
    if (!check(run, r, answer, "session/new"))
        return;
    const char *id = weft_get_str(answer->result, "sessionId", "");
    run->session = *id ? weft__strndup(run->alloc, id, strlen(id)) : NULL;
    if (run->session)
        begin_turn(run);
    else
        fail(run, false, "did not name the session that it opened", "");
}

static void open_new(weft_run *run) {
    run->session = weft__free(run->alloc, run->session);
    call(run, "session/new", WEFT_OBJ({"cwd", weft_str(run->folder)}, {"mcpServers", weft_arr(NULL, 0)}), on_opened,
         OPEN_MS);
}

/* It does not know the session any more, or cannot go on with it. Whoever asked is better served by a new one, and is told.
 */
static void open_new_instead(weft_run *run) {
    static const char text[] = "weft: the agent could not go on with its earlier session; this is a new one\n";
    weft__acp_hold(run);
    run->host.on_output(run->ctx, WEFT_RUN_STDERR, (weft_bytes){text, sizeof text - 1});
    if (!run->freed && run->state == WEFT_ACP_OPENING)
        open_new(run);
    weft__acp_release(run);
}

static void on_opened_again(weft_run *run, int r, const weft_answer *answer) {
    run->replaying = false;
    bool refused = r >= 0 && answer->error && answer->error->code != -32000;
    if (refused && !run->freed && run->state == WEFT_ACP_OPENING)
        open_new_instead(run);
    else if (check(run, r, answer, "session/load"))
        begin_turn(run);
}

/* Resuming is preferred: it replays nothing. */
static void open_again(weft_run *run) {
    run->replaying = true;
    call(run, run->can_resume ? "session/resume" : "session/load",
         WEFT_OBJ({"sessionId", weft_str(run->session)}, {"cwd", weft_str(run->folder)}, {"mcpServers", weft_arr(NULL, 0)}),
         on_opened_again, OPEN_MS);
}

/* ---- initialize ---- */

static void read_capabilities(weft_run *run, const weft_json *result) {
    weft_json load = weft_pointer(result, "/agentCapabilities/loadSession");
    weft_json resume = weft_pointer(result, "/agentCapabilities/sessionCapabilities/resume");
    run->can_load = weft_bool_of(&load, false);
    run->can_resume = weft_typeof(&resume) == WEFT_OBJECT || weft_bool_of(&resume, false);
}

/* For people, should it not be logged in; without memory there is less to say. */
static void read_auth(weft_run *run, const weft_json *result) {
    weft_json list = weft_get(result, "authMethods");
    size_t count = 0;
    for (weft_iter it = weft_iterate(&list); count < MOST_AUTH && weft_next(&it);) {
        weft_json name = weft_get(&it.value, "name");
        weft_bytes text;
        if (weft_text(&name, &text) < 0 || !text.len)
            continue;
        if (count++ && weft__buf_put(&run->auth, run->alloc, ", ", 2) < 0)
            return;
        if (weft__visible_put(&run->auth, run->alloc, text, LONGEST_AUTH) < 0)
            return;
    }
}

static void on_initialized(weft_run *run, int r, const weft_answer *answer) {
    if (!check(run, r, answer, "initialize"))
        return;
    if (weft_get_int(answer->result, "protocolVersion", -1) != PROTOCOL) {
        fail(run, false, "does not speak version 1 of ACP", "");
        return;
    }
    read_capabilities(run, answer->result);
    read_auth(run, answer->result);
    run->state = WEFT_ACP_OPENING;
    if (run->session && (run->can_load || run->can_resume))
        open_again(run);
    else
        open_new(run);
}

static int initialize(weft_run *run) {
    weft_val fs = WEFT_OBJ({"readTextFile", weft_bool(false)}, {"writeTextFile", weft_bool(false)});
    weft_val info = WEFT_OBJ({"name", weft_str("weft")}, {"title", weft_str("Weft")}, {"version", weft_str(weft_version())});
    int64_t most = run->agent->timeout_ms; /* a task does not wait longer for its beginning than for its end */
    return call(run, "initialize",
                WEFT_OBJ({"protocolVersion", weft_int(PROTOCOL)},
                         {"clientCapabilities", WEFT_OBJ({"fs", fs}, {"terminal", weft_bool(false)})}, {"clientInfo", info}),
                on_initialized, most > 0 && most < INITIALIZE_MS ? most : INITIALIZE_MS);
}

/* ---- what the agent says ---- */

static bool is_ours(const weft_run *run, const weft_json *params) {
    return !run->session || strcmp(weft_get_str(params, "sessionId", run->session), run->session) == 0;
}

static int on_update(weft_req *req, const weft_json *params, void *ctx) {
    weft_run *run = ctx;
    weft_json update = weft_get(params, "update");
    bool proper = weft_get_str(&update, "sessionUpdate", NULL);
    if (proper && !run->freed && !run->replaying && run->state < WEFT_ACP_LEAVING && is_ours(run, params)) {
        weft__acp_hold(run);
        run->host.on_update(run->ctx, &update);
        weft__acp_release(run);
    }
    return weft_reply(req, weft_null());
}

/* A line that is neither a request nor an answer was not meant for us: a greeting, a warning of a runtime, a stack trace. An
 * error in return would only confuse an agent that did not ask anything. */
static bool is_message(const weft_json *line) {
    weft_json method = weft_get(line, "method"), id = weft_get(line, "id");
    weft_json result = weft_get(line, "result"), error = weft_get(line, "error");
    return weft_typeof(&method) == WEFT_STRING || (id.text && (result.text || error.text));
}

/* ACP has no batches: the library refuses one with -32600, and the run ends, because what the agent waits for or owes us may
 * be in it. An array without a message in it is a line like any other. */
static bool is_batch(const weft_json *line) {
    for (weft_iter it = weft_iterate(line); weft_typeof(line) == WEFT_ARRAY && weft_next(&it);)
        if (weft_typeof(&it.value) == WEFT_OBJECT && is_message(&it.value))
            return true;
    return false;
}

static bool on_raw(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    static const char usual[] = "{\"jsonrpc\":\"2.0\",";
    weft_run *run = data;
    WEFT_AUTO(weft_doc) doc = NULL;
    (void) peer, (void) binary;
    if (body.len > sizeof usual && memcmp(body.data, usual, sizeof usual - 1) == 0)
        return false; /* meant for us, and need not be looked through twice */
    int r = weft_doc_parse(body.data, body.len, run->alloc, &doc);
    if (r == -ENOMEM || (r == 0 && is_message(weft_doc_root(doc))))
        return false;
    if (r == 0 && is_batch(weft_doc_root(doc))) {
        run->batched = true;
        weft__later(run->loop, &run->later);
        return false;
    }
    run->noise++;
    return true;
}

/* ---- the connection ---- */

/* A message over the limit is thrown away by the framing, and the library says so to the agent. It may have been the answer
 * that we wait for, so this is the end; not here, though, where a message is being written. */
static void on_message(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text) {
    weft_run *run = ctx;
    (void) peer, (void) text;
    if (outgoing && run->service && weft_service_stats(run->service)->too_large && run->state < WEFT_ACP_LEAVING)
        weft__later(run->loop, &run->later);
}

static void on_later(weft_later *later) {
    weft_run *run = WEFT_CONTAINER(later, weft_run, later);
    if (run->state < WEFT_ACP_LEAVING)
        fail(run, false,
             run->batched ? "sent a batch of messages, which ACP does not have" : "sent a message of more than 32 MiB", "");
}

/* Its output has ended, by its process or before it. */
static void on_state(weft_peer *peer, weft_state state, int why, void *data) {
    (void) peer, (void) why;
    if (state == WEFT_CLOSED)
        weft__acp_leave(data);
}

static const weft_method methods[] = {
    {.name = "session/update", .handler = on_update, .help = ""},
    {.name = "session/request_permission", .handler = weft__acp_ask, .help = ""},
    {0},
};

void weft__acp_talk_init(weft_run *run) {
    weft__later_init(&run->later, on_later);
}

int weft__acp_talk(weft_run *run, int in, int out) {
    weft_service_opts service = {
        .methods = methods,
        .ctx = run,
        .alloc = run->alloc,
        .limits = {.max_body = LARGEST, .out_hard = 2 * LARGEST},
        .on_message = on_message,
    };
    weft_connect_opts opts = {
        .style = WEFT_STYLE_ACP, .no_batch = true, .lenient = true, .data = run, .on_state = on_state, .on_raw = on_raw};
    int r = weft_service_new(&service, &run->service);
    opts.service = run->service;
    if (r < 0) {
        close(in);
        close(out);
        return r;
    }
    r = weft__connect_fds(run->loop, in, out, &opts, &run->peer);
    if (r < 0)
        return r;
    weft_peer_pause(run->peer, true); /* until the host knows of the process */
    return initialize(run);
}
