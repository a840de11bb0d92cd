/* The REST endpoints that cdev had before JSON-RPC: a table of paths and the methods behind them. A request becomes a call
 * of the method, with the same checks and the same answer; an error is {"error": message, "code", "data"} with a status. */
#include "cdev_rest.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "cdev.h"
#include "http_query.h"
#include "loop.h"
#include "path_gate.h"
#include "write.h"

#define JSON "application/json"

typedef struct rest_row {
    const char *verb, *path, *method;
    const char *echo; /* a param that the old answer had as well; NULL: none */
} rest_row;

static const rest_row rows[] = {
    {"POST", "/api/claude/run", "agent/run", "prompt"},
    {"POST", "/api/claude/stop", "agent/stop"},
    {"POST", "/api/claude/respond", "agent/respond"},
    {"GET", "/api/status", "status/get"},
    {"GET", "/api/claude/sessions", "session/list"},
    {"GET", "/api/claude/sessions/messages", "session/messages"},
    {"GET", "/api/claude/sessions/elements", "session/elements"},
    {"GET", "/api/git/status", "git/status"},
    {"GET", "/api/git/diff", "git/diff"},
    {"GET", "/api/file", "file/get"},
    {"GET", "/api/files/list", "file/list"},
};

/* One request, until its method has answered. */
typedef struct rest_call {
    weft_hub *hub;
    weft_http *http;
    const rest_row *row;
    weft_doc *said;   /* the value of the param that is echoed; NULL: none */
    weft_timer timer; /* for methods that have a time limit: nobody else ends a call without a connection */
    int64_t id;
    bool expired;
} rest_call;

/* ---- answering ---- */

static const struct {
    int code, status;
} statuses[] = {
    {WEFT_PARSE_ERROR, 400},    {WEFT_INVALID_REQUEST, 400}, {WEFT_METHOD_NOT_FOUND, 404},
    {WEFT_INVALID_PARAMS, 400}, {WEFT_CANCELLED, 504},       {CDEV_BUSY, 409},
    {CDEV_IDLE, 409},           {CDEV_NO_AGENT, 400},        {CDEV_NO_FILE, 404},
    {CDEV_NO_SESSION, 404},
};

/* The signature that a gate wants is missing or wrong; its code means something else in this dialect. */
static bool is_about_signature(const weft_error *error) {
    const char *reason = weft_get_str(&error->data, "reason", "");
    return strncmp(reason, "signature", 9) == 0 || strcmp(reason, "keyUnknown") == 0;
}

/* Codes of failures that any method can meet are statuses already. A folder without a repository has no git status. */
static int http_status_of(const weft_error *error) {
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i].code == error->code)
            return statuses[i].status;
    if (error->code == CDEV_GIT_FAILED && strcmp(weft_get_str(&error->data, "cause", ""), "noRepository") == 0)
        return 404;
    if (is_about_signature(error))
        return 401;
    return error->code >= 400 && error->code < 600 ? error->code : 500;
}

static void answer_json(weft_http *http, const weft_alloc *alloc, int status, weft_val value) {
    char *text;
    size_t len;
    if (weft_to_text(value, alloc, &text, &len) < 0) {
        weft_http_answer(http, 503, NULL, (weft_bytes){0});
        return;
    }
    weft_http_answer_with(
        http, &(weft_http_answer_opts){.status = status, .type = JSON, .cache = "no-store", .body = {text, len}});
    weft_text_free(text, alloc);
}

static void answer_problem(weft_http *http, const weft_alloc *alloc, int status, const char *message) {
    answer_json(http, alloc, status, WEFT_OBJ({"error", weft_str(message)}));
}

static void answer_error(const rest_call *call, const weft_error *error) {
    weft_json path = weft_get(&error->data, "path");
    answer_json(call->http, call->hub->alloc, http_status_of(error),
                WEFT_OBJ({"error", weft_str(error->message)}, {"code", weft_int(error->code)},
                         {"path", path.text ? weft_copy(&path) : weft_none()},
                         {"data", error->data.text ? weft_copy(&error->data) : weft_none()}));
}

/* Into the object that the method has answered. */
static void answer_result(const rest_call *call, const weft_json *result) {
    const weft_alloc *alloc = call->hub->alloc;
    weft_buf text = {0};
    int r = weft__buf_put(&text, alloc, result->text, result->len - 1);
    if (r >= 0)
        r = weft__buf_put(&text, alloc, ",", 1);
    if (r >= 0)
        r = weft__write_str(&text, alloc, call->row->echo, strlen(call->row->echo));
    if (r >= 0)
        r = weft__buf_put(&text, alloc, ":", 1);
    if (r >= 0)
        r = weft__buf_put(&text, alloc, weft_doc_root(call->said)->text, weft_doc_root(call->said)->len);
    if (r >= 0)
        r = weft__buf_put(&text, alloc, "}", 1);
    answer_json(call->http, alloc, 200, r < 0 ? weft_copy(result) : weft_raw(weft__buf_head(&text), weft__buf_len(&text)));
    weft__buf_done(&text, alloc);
}

static void free_rest_call(rest_call *call) {
    weft_doc_free(call->said);
    weft__free(call->hub->alloc, call);
}

static void on_rest_called(void *ctx, int r, const weft_answer *answer) {
    rest_call *call = ctx;
    const weft_alloc *alloc = call->hub->alloc;
    weft__timer_stop(weft__engine_loop(call->hub->engine), &call->timer);
    if (r < 0)
        answer_problem(call->http, alloc, call->expired ? 504 : 503,
                       call->expired ? "It took too long" : "The daemon is stopping, or short of memory");
    else if (answer->error)
        answer_error(call, answer->error);
    else if (call->said)
        answer_result(call, answer->result);
    else
        answer_json(call->http, alloc, 200, weft_copy(answer->result));
    free_rest_call(call);
}

static void on_expired(weft_timer *timer) {
    rest_call *call = WEFT_CONTAINER(timer, rest_call, timer);
    call->expired = true;
    weft_service_cancel(call->hub->service, call->id);
}

/* ---- asking ---- */

static const weft_method *find_method(const char *name) {
    for (const weft_method *row = weft__cdev.methods; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

static void start_rest_call(weft_hub *hub, weft_http *http, const rest_row *row, weft_val params, const weft_json *body) {
    const weft_method *method = find_method(row->method);
    weft_json said = row->echo && body ? weft_get(body, row->echo) : (weft_json){0};
    weft_identity who = *weft_http_identity(http);
    weft_loop *loop = weft__engine_loop(hub->engine);
    rest_call *call = weft__zalloc(hub->alloc, sizeof *call);
    if (!call) {
        weft_http_answer(http, 503, NULL, (weft_bytes){0});
        return;
    }
    who.dialect = weft__cdev.name;
    *call = (rest_call){.hub = hub, .http = http, .row = row};
    weft__timer_init(&call->timer, on_expired);
    int r = said.text ? weft_doc_keep(&said, hub->alloc, &call->said) : 0;
    if (r >= 0)
        r = weft_service_call(hub->service, &who, method->name, params, on_rest_called, call, &call->id);
    if (r < 0) {
        free_rest_call(call);
        answer_problem(http, hub->alloc, r == -ENOBUFS ? 429 : 503, weft_strerror(r));
        return;
    }
    if (method->timeout_ms > 0)
        weft__timer_set(loop, &call->timer, weft__loop_fresh_now(loop) + method->timeout_ms);
}

static bool is_number(const char *text) {
    text += *text == '-';
    size_t digits = strspn(text, "0123456789");
    return digits && digits < 19 && !text[digits] && (*text != '0' || digits == 1);
}

static const weft_param *find_param(const weft_param *table, const char *name) {
    while (table && table->name && strcmp(table->name, name) != 0)
        table++;
    return table && table->name ? table : NULL;
}

/* A member for each pair that the method has a param for. A token comes this way too, and other things that are not ours. */
static int write_query(const weft_alloc *alloc, char *query, const weft_param *table, weft_buf *out) {
    const char *name;
    char *value;
    bool first = true;
    int r = weft__buf_put(out, alloc, "{", 1);
    while (r >= 0 && weft__query_next(&query, &name, &value)) {
        const weft_param *param = find_param(table, name);
        if (!param)
            continue;
        bool number = param->type == WEFT_PARAM_int && is_number(value);
        r = first ? 0 : weft__buf_put(out, alloc, ",", 1);
        first = false;
        if (r >= 0)
            r = weft__write_str(out, alloc, name, strlen(name));
        if (r >= 0)
            r = weft__buf_put(out, alloc, ":", 1);
        if (r >= 0)
            r = number ? weft__buf_put(out, alloc, value, strlen(value)) : weft__write_str(out, alloc, value, strlen(value));
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "}", 1);
}

static void ask_with_query(weft_hub *hub, weft_http *http, const rest_row *row) {
    const char *text = weft_http_query(http);
    char *query = weft__strndup(hub->alloc, text, strlen(text));
    weft_buf params = {0};
    int r = query ? write_query(hub->alloc, query, find_method(row->method)->params, &params) : -ENOMEM;
    if (r < 0)
        weft_http_answer(http, 503, NULL, (weft_bytes){0});
    else
        start_rest_call(hub, http, row, weft_raw(weft__buf_head(&params), weft__buf_len(&params)), NULL);
    weft__buf_done(&params, hub->alloc);
    weft__free(hub->alloc, query);
}

static bool is_blank(weft_bytes text) {
    for (size_t i = 0; i < text.len; i++)
        if (!isspace((unsigned char) text.data[i]))
            return false;
    return true;
}

static void ask_with_body(weft_hub *hub, weft_http *http, const rest_row *row) {
    weft_bytes body = weft_http_body(http);
    weft_doc *doc = NULL;
    int r = is_blank(body) ? 0 : weft_doc_parse(body.data, body.len, hub->alloc, &doc);
    if (r == -ENOMEM)
        weft_http_answer(http, 503, NULL, (weft_bytes){0});
    else if (r < 0 || (doc && weft_typeof(weft_doc_root(doc)) != WEFT_OBJECT))
        answer_problem(http, hub->alloc, 400, "Invalid JSON: the body must be an object");
    else
        start_rest_call(hub, http, row, doc ? weft_copy(weft_doc_root(doc)) : weft_obj(NULL, 0),
                        doc ? weft_doc_root(doc) : NULL);
    weft_doc_free(doc);
}

static void on_rest(weft_http *http, void *ctx) {
    weft_hub *hub = ctx;
    const char *path = weft_http_path(http);
    const rest_row *row = rows;
    while (strcmp(row->path, path) != 0) /* the server has found the route by it */
        row++;
    if (!hub->clients || hub->stopping)
        answer_problem(http, hub->alloc, 503, hub->stopping ? "The daemon is stopping" : "The daemon is starting");
    else if (strcmp(row->verb, "GET") == 0)
        ask_with_query(hub, http, row);
    else
        ask_with_body(hub, http, row);
}

/* The same as rpc.discover, for tools that read a URL. */
static void on_openrpc(weft_http *http, void *ctx) {
    weft_hub *hub = ctx;
    char *text;
    size_t len;
    if (!weft__path_may(hub, http, "rpc.discover"))
        return;
    if (!hub->service || weft_service_discover(hub->service, &text, &len) < 0) {
        weft_http_answer(http, 503, NULL, (weft_bytes){0});
        return;
    }
    weft_http_answer(http, 200, JSON, (weft_bytes){text, len});
    weft_text_free(text, hub->alloc);
}

int weft__cdev_rest_routes(weft_hub *hub, weft_server *server) {
    int r = 0;
    for (size_t i = 0; r >= 0 && i < sizeof rows / sizeof rows[0]; i++)
        r = weft_server_route(server, rows[i].verb, rows[i].path, on_rest, hub);
    if (r >= 0)
        r = weft_server_route(server, "GET", "/openrpc.json", on_openrpc, hub);
    return r < 0 ? r : weft_server_route(server, "GET", "/api/rpc/discover", on_openrpc, hub);
}
