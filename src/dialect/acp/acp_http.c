/* The routes of /acp for Streamable HTTP: POST initialize makes a connection, further POSTs are its messages and answered
 * with 202, GET is a stream of what the hub says, DELETE ends it. */
#include "acp_http.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "acp.h"
#include "alloc.h"
#include "list.h"

static void answer_text(weft_http *http, int status, const char *text) {
    weft_http_answer(http, status, "text/plain", (weft_bytes){text, strlen(text)});
}

static void answer_nothing(weft_http *http, int status) {
    weft_http_answer(http, status, NULL, (weft_bytes){0});
}

static bool is_ready(const weft_acp_http *all, weft_http *http) {
    bool ready = all->hub->clients && !all->hub->stopping;
    if (!ready)
        answer_text(http, 503, "The hub is starting or stopping");
    return ready;
}

/* NULL after an answer. */
static weft_acp_connection *connection_of(const weft_acp_http *all, weft_http *http) {
    const char *id = weft_http_header(http, ACP_CONNECTION_HEADER);
    weft_acp_connection *found = id ? weft__acp_connection_find(all, id, weft_http_identity(http)) : NULL;
    if (!id)
        answer_text(http, 400, "Missing " ACP_CONNECTION_HEADER);
    else if (!found)
        answer_text(http, 404, "Unknown " ACP_CONNECTION_HEADER);
    return found;
}

/* ---- POST ---- */

static bool is_json(const weft_http *http) {
    static const char json[] = "application/json";
    const char *type = weft_http_header(http, "Content-Type");
    size_t len = type ? strcspn(type, "; \t") : 0;
    return len == sizeof json - 1 && strncasecmp(type, json, len) == 0;
}

static void answer_initialized(weft_http *http, weft_acp_connection *connection, const char *answer, size_t len) {
    const weft_header headers[] = {{ACP_CONNECTION_HEADER, weft__acp_connection_id(connection)}, {0}};
    bool refused = memmem(answer, len, "\"error\":", 8) && !memmem(answer, len, "\"result\":", 9);
    weft_http_answer_opts opts = {.status = refused ? 400 : 200,
                                  .type = "application/json",
                                  .headers = refused ? NULL : headers,
                                  .body = {answer, len}};
    weft_http_answer_with(http, &opts);
    if (refused)
        weft__acp_connection_free(connection);
}

static void initialize_connection(weft_acp_http *all, weft_http *http) {
    weft_acp_connection *connection = NULL;
    char *answer = NULL;
    size_t len = 0;
    int r = weft__acp_connection_new(all, weft_http_identity(http), &connection);
    if (r >= 0)
        r = weft__acp_connection_feed(connection, weft_http_identity(http), weft_http_body(http), &(weft_acp_asks){0});
    if (r >= 0)
        r = weft__acp_connection_first(connection, &answer, &len);
    if (answer)
        answer_initialized(http, connection, answer, len);
    else
        answer_text(http, r == -ENOBUFS ? 429 : 503, r == -ENOBUFS ? "Too many connections" : "It could not be initialized");
    if (!answer && connection)
        weft__acp_connection_free(connection);
    weft__free(all->hub->alloc, answer);
}

/* What belongs to a session says so in its head as well. NULL: all is well. */
static const char *judge_session(const char *header, const char *params) {
    if (params && !header)
        return "Missing " ACP_SESSION_HEADER;
    return params && strcmp(header, params) != 0 ? "Mismatched " ACP_SESSION_HEADER : NULL;
}

static void feed_connection(weft_acp_http *all, weft_http *http, const weft_json *message) {
    weft_json about = weft_pointer(message, "/params/sessionId"), id = weft_get(message, "id");
    const char *session = weft_http_header(http, ACP_SESSION_HEADER), *method = weft_get_str(message, "method", NULL);
    weft_acp_connection *connection = connection_of(all, http);
    if (!connection)
        return;
    const char *wrong = method ? judge_session(session, weft_str_of(&about, NULL)) : NULL;
    if (wrong) {
        answer_text(http, 400, wrong);
        return;
    }
    /* That a session was loaded is said behind its past, where a client reads that. One that opens the session's stream only
     * afterwards reads it on the connection's. */
    weft_acp_asks asks = {.session = session, .if_read = method && strcmp(method, "session/load") == 0};
    if (method && id.text)
        asks.id = (weft_bytes){id.text, id.len};
    int r = weft__acp_connection_feed(connection, weft_http_identity(http), weft_http_body(http), &asks);
    if (r == -ENOBUFS)
        answer_text(http, 429, "Too many answers are due");
    else if (r < 0) {
        weft__acp_connection_free(connection);
        answer_text(http, 503, "The connection cannot go on");
    } else
        answer_nothing(http, 202);
}

static void take_message(weft_acp_http *all, weft_http *http, const weft_json *message) {
    static const char batch[] =
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"Invalid Request\","
        "\"data\":{\"reason\":\"invalidRequest\",\"detail\":\"batches are not part of this protocol\"}}}";
    weft_json id = weft_get(message, "id"), version = weft_pointer(message, "/params/protocolVersion");
    bool begins = strcmp(weft_get_str(message, "method", ""), "initialize") == 0;
    bool known = weft_http_header(http, ACP_CONNECTION_HEADER) != NULL;
    if (weft_typeof(message) == WEFT_ARRAY)
        weft_http_answer(http, 400, "application/json", (weft_bytes){batch, sizeof batch - 1});
    else if (weft_typeof(message) != WEFT_OBJECT)
        answer_text(http, 400, "This is not a message");
    else if (begins && (known || !id.text || weft_typeof(&id) == WEFT_NULL))
        answer_text(http, 400, known ? "This connection is initialized" : "initialize must have an id");
    else if (begins && weft_typeof(&version) != WEFT_NUMBER) /* elsewhere it would be another's, or the older form's */
        answer_text(http, 400, "protocolVersion must be a number");
    else if (begins)
        initialize_connection(all, http);
    else
        feed_connection(all, http, message);
}

static void on_post(weft_http *http, void *ctx) {
    weft_acp_http *all = ctx;
    weft_bytes body = weft_http_body(http);
    weft_doc *doc = NULL;
    if (!is_ready(all, http))
        return;
    if (!is_json(http)) {
        answer_text(http, 415, "Messages are application/json");
        return;
    }
    int r = weft_doc_parse(body.data, body.len, all->hub->alloc, &doc);
    if (r < 0)
        answer_text(http, r == -ENOMEM ? 503 : 400, r == -ENOMEM ? "Out of memory" : "This is not JSON");
    else
        take_message(all, http, weft_doc_root(doc));
    weft_doc_free(doc);
}

/* ---- GET, DELETE ---- */

static bool wants_event_stream(const weft_http *http) {
    const char *accept = weft_http_header(http, "Accept");
    return accept && strcasestr(accept, "text/event-stream");
}

static void on_get(weft_http *http, void *ctx) {
    weft_acp_http *all = ctx;
    if (!is_ready(all, http))
        return;
    if (!wants_event_stream(http)) {
        answer_text(http, 406, "This is a stream of text/event-stream, or a WebSocket");
        return;
    }
    weft_acp_connection *connection = connection_of(all, http);
    int r = connection ? weft__acp_connection_stream(connection, weft_http_header(http, ACP_SESSION_HEADER), http) : 0;
    if (r == -EBUSY)
        answer_text(http, 409, "Somebody reads this stream already");
    else if (r < 0)
        answer_text(http, r == -ENOBUFS ? 429 : 503, r == -ENOBUFS ? "Too many streams" : "It could not be opened");
}

static void on_delete(weft_http *http, void *ctx) {
    weft_acp_http *all = ctx;
    weft_acp_connection *connection = is_ready(all, http) ? connection_of(all, http) : NULL;
    if (!connection)
        return;
    weft__acp_connection_free(connection);
    answer_nothing(http, 202);
}

/* ---- life ---- */

int weft__acp_http_new(weft_hub *hub, weft_server *server, weft_acp_http **ret) {
    weft_acp_http *all = weft__zalloc(hub->alloc, sizeof *all);
    if (!all)
        return -ENOMEM;
    all->hub = hub;
    weft__list_init(&all->connections);
    int r = weft_server_route(server, "POST", "/acp", on_post, all);
    if (r >= 0)
        r = weft_server_route(server, "GET", "/acp", on_get, all);
    if (r >= 0)
        r = weft_server_route(server, "DELETE", "/acp", on_delete, all);
    *ret = all; /* also when that failed: some routes may have it */
    return r;
}

weft_acp_http *weft__acp_http_free(weft_acp_http *all) {
    if (!all)
        return NULL;
    weft__acp_connections_end(all);
    return weft__free(all->hub->alloc, all);
}
