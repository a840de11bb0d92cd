/* cdev-client [--protocol auto|jsonrpc|rest] HOST:PORT PROMPT: run an agent and show what it says.
 *
 * A client of cdev that works with servers of both generations. It tries initialize; where the answer's features have
 * "jsonrpc" it goes on with that, otherwise with REST and the events of the old WebSocket. The token is WEFT_TOKEN's, or
 * what is in .weft/token. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#define INITIALIZE_MS 5000 /* a server that does not know it may say nothing at all */

typedef struct run {
    bool posted;
    char session[128]; /* of our run; "": not known yet */
    char ended[128];   /* that became idle last */
} run;

/* Both generations say the same, one in params and one in payload. */
static void show(run *self, const char *name, const weft_json *said) {
    const char *session = weft_get_str(said, "session_id", "");
    if (*self->session && *session && strcmp(session, self->session) != 0)
        return;
    if (strcmp(name, "claude_log") == 0)
        printf("%s\n", weft_get_str(said, "line", ""));
    else if (strcmp(name, "claude_status") == 0 && strcmp(weft_get_str(said, "state", ""), "idle") == 0)
        snprintf(self->ended, sizeof self->ended, "%s", session);
}

/* A run that is very short may have ended before we know its name. */
static bool is_over(const run *self) {
    return strcmp(self->ended, self->session) == 0;
}

static void on_notification(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    (void) peer;
    show(data, method, params);
}

/* A message of the old protocol, or the answer of a POST: neither is JSON-RPC. */
static bool on_raw(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    run *self = data;
    weft_doc *doc = NULL;
    (void) peer, (void) binary;
    if (weft_doc_parse(body.data, body.len, NULL, &doc) < 0)
        return false;
    weft_json payload = weft_get(weft_doc_root(doc), "payload");
    const char *event = weft_get_str(weft_doc_root(doc), "event", NULL),
               *error = weft_get_str(weft_doc_root(doc), "error", NULL);
    bool taken = !weft_get(weft_doc_root(doc), "jsonrpc").text;
    if (event)
        show(self, event, &payload);
    else if (taken && error)
        fprintf(stderr, "cdev-client: %s\n", error);
    else if (taken)
        snprintf(self->session, sizeof self->session, "%s", weft_get_str(weft_doc_root(doc), "session_id", ""));
    self->posted |= taken && !event;
    weft_doc_free(doc);
    return taken;
}

static bool has_jsonrpc(const weft_answer *answer) {
    weft_json features = answer->result ? weft_pointer(answer->result, "/capabilities/features") : (weft_json){0};
    for (weft_iter it = weft_iterate(&features); weft_next(&it);)
        if (strcmp(weft_str_of(&it.value, ""), "jsonrpc") == 0)
            return true;
    return false;
}

/* 1 it speaks JSON-RPC, 0 it does not, <0 there is nobody. */
static int detect(weft_peer *peer) {
    WEFT_ANSWER answer = {0};
    weft_val client = WEFT_OBJ({"name", weft_str("cdev-client")}, {"version", weft_str(weft_version())});
    int r = weft_call_with(peer, "initialize", WEFT_OBJ({"client_info", client}, {"capabilities", weft_obj(NULL, 0)}),
                           &(weft_call_opts){.timeout_ms = INITIALIZE_MS}, &answer);
    return r == -ETIMEDOUT ? 0 : r < 0 ? r : has_jsonrpc(&answer);
}

static int run_jsonrpc(run *self, weft_peer *peer, const char *prompt) {
    WEFT_ANSWER answer = {0};
    int r = weft_call(peer, "agent/run", WEFT_OBJ({"prompt", weft_str(prompt)}), &answer);
    if (r >= 0 && answer.error)
        fprintf(stderr, "cdev-client: %s (%d)\n", answer.error->message, answer.error->code);
    else if (r >= 0)
        snprintf(self->session, sizeof self->session, "%s", weft_get_str(answer.result, "session_id", ""));
    return r;
}

static int run_rest(run *self, weft_peer *events, const char *host, const weft_connect_opts *opts, const char *prompt) {
    static const char hello[] = "{\"command\":\"get_status\"}"; /* from here on events come in the old form */
    char url[256], *body = NULL;
    size_t len = 0;
    WEFT_AUTO(weft_peer) post = NULL;
    snprintf(url, sizeof url, "http://%s/api/claude/run", host);
    int r = weft_peer_send_raw(events, (weft_bytes){hello, sizeof hello - 1}, false);
    if (r >= 0)
        r = weft_flush(events, INITIALIZE_MS);
    if (r >= 0)
        r = weft_connect_with(url, opts, &post, NULL);
    if (r >= 0)
        r = weft_to_text(WEFT_OBJ({"prompt", weft_str(prompt)}), NULL, &body, &len);
    if (r >= 0)
        r = weft_peer_send_raw(post, (weft_bytes){body, len}, false);
    while (r >= 0 && !self->posted)
        r = weft_wait(post, -1);
    weft_text_free(body, NULL);
    return r;
}

static const char *read_token(char room[256]) {
    FILE *file = getenv("WEFT_TOKEN") ? NULL : fopen(".weft/token", "r");
    if (!file)
        return getenv("WEFT_TOKEN");
    bool got = fgets(room, 256, file) != NULL;
    fclose(file);
    room[got ? strcspn(room, "\n") : 0] = '\0';
    return room;
}

int main(int argc, char **argv) {
    bool chosen = argc == 5 && strcmp(argv[1], "--protocol") == 0;
    const char *protocol = chosen ? argv[2] : "auto", *host = argv[argc > 2 ? argc - 2 : 0], *prompt = argv[argc - 1];
    static run self;
    char token[256], url[256];
    weft_connect_opts opts = {
        .token = read_token(token), .data = &self, .on_notification = on_notification, .on_raw = on_raw};
    WEFT_AUTO(weft_peer) peer = NULL;
    if (!chosen && argc != 3)
        return fprintf(stderr, "usage: cdev-client [--protocol auto|jsonrpc|rest] HOST:PORT PROMPT\n"), 2;
    snprintf(url, sizeof url, "ws://%s/ws", host);
    int r = weft_connect_with(url, &opts, &peer, NULL), jsonrpc = strcmp(protocol, "jsonrpc") == 0;
    if (r >= 0 && strcmp(protocol, "auto") == 0)
        r = jsonrpc = detect(peer);
    if (r >= 0)
        fprintf(stderr, "cdev-client: %s\n", jsonrpc ? "JSON-RPC" : "REST");
    if (r >= 0)
        r = jsonrpc ? run_jsonrpc(&self, peer, prompt) : run_rest(&self, peer, host, &opts, prompt);
    while (r >= 0 && *self.session && !is_over(&self))
        r = weft_wait(peer, -1);
    if (r < 0)
        fprintf(stderr, "cdev-client: %s\n", weft_strerror(r));
    return r < 0 || !*self.session;
}
