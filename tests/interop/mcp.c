/* A client of MCP's Streamable HTTP (revision 2025-06-18) in its shortest form, to see that libweft has what it takes: a
 * session's id from an answer's header in every later request, and answers as server-sent events.
 *
 *     interop_mcp URL TOOL ARGUMENTS [listen]
 *
 * Prints one line of JSON for each answer and each notification. Exit status 1 when something fails. */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

static void print(weft_val value) {
    char *text;
    size_t len;
    if (weft_to_text(value, NULL, &text, &len) < 0)
        return;
    printf("%.*s\n", (int) len, text);
    weft_text_free(text, NULL);
}

typedef struct session {
    char id[200];
    int streams; /* answers that came as events */
} session;

static void on_reply(weft_peer *peer, const weft_http_reply *reply, void *data) {
    session *self = data;
    weft_bytes id = weft_http_reply_header(reply, "mcp-session-id");
    weft_bytes type = weft_http_reply_header(reply, "content-type");
    self->streams += type.len >= 17 && memcmp(type.data, "text/event-stream", 17) == 0;
    if (*self->id || !id.len)
        return;
    snprintf(self->id, sizeof self->id, "%.*s", (int) id.len, id.data);
    const weft_header headers[] = {{"Mcp-Session-Id", self->id}, {"Mcp-Protocol-Version", "2025-06-18"}, {0}};
    weft_peer_set_headers(peer, headers);
}

static void on_notification(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    (void) peer, (void) data;
    print(WEFT_OBJ({"notification", weft_str(method)}, {"params", weft_copy(params)}));
}

static int call(weft_peer *peer, const char *method, weft_val params) {
    WEFT_ANSWER answer = {0};
    int r = weft_call(peer, method, params, &answer);
    if (r < 0)
        fprintf(stderr, "%s: %s: %s\n", method, weft_strerror(r), weft_peer_trouble(peer));
    else if (answer.error)
        fprintf(stderr, "%s: %s\n", method, answer.error->message);
    else
        print(WEFT_OBJ({"result", weft_copy(answer.result)}));
    return r < 0 || answer.error ? -1 : 0;
}

int main(int argc, char **argv) {
    WEFT_AUTO(weft_peer) peer = NULL;
    session self = {0};
    weft_trouble trouble = {""};
    if (argc < 4)
        return 2;
    weft_connect_opts opts = {.no_batch = true, .data = &self, .on_reply = on_reply, .on_notification = on_notification};
    if (weft_connect_with(argv[1], &opts, &peer, &trouble) < 0)
        return fprintf(stderr, "%s\n", trouble.text), 1;
    weft_val empty = weft_raw("{}", 2);
    int r = call(peer, "initialize",
                 WEFT_OBJ({"protocolVersion", weft_str("2025-06-18")}, {"capabilities", empty},
                          {"clientInfo", WEFT_OBJ({"name", weft_str("weft")}, {"version", weft_str(weft_version())})}));
    if (r >= 0)
        r = weft_notify(peer, "notifications/initialized", weft_none());
    if (r >= 0 && argc > 4)
        r = weft_peer_listen(peer); /* what the server says unasked; it wants the session's id there, too */
    if (r >= 0)
        r = call(peer, "tools/list", weft_none());
    if (r >= 0)
        r = call(peer, "tools/call",
                 WEFT_OBJ({"name", weft_str(argv[2])}, {"arguments", weft_raw(argv[3], strlen(argv[3]))}));
    print(WEFT_OBJ({"session", weft_bool(*self.id != '\0')}, {"streams", weft_int(self.streams)}));
    return r < 0;
}
