/* The routes of AIWG's web interface. */
#include "aiwg_web.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aiwg_machine.h"
#include "alloc.h"
#include "buf.h"
#include "descent.h"
#include "http_query.h"
#include "loop.h"
#include "write.h"

#define JSON "application/json"
#define CANCEL "/api/cancel/"
#define OUTPUT "/sse/output/"
#define HISTORY_DEFAULT 20

/* Somebody who follows. */
typedef struct web_stream {
    weft_link link;
    weft_http *http;
    weft_aiwg_web *web;
    char loop[WEFT_AIWG_LOOP_ID + 1]; /* whose output; "": events */
    bool gone;
} web_stream;

struct weft_aiwg_web {
    const weft_hub *hub;
    const weft_alloc *alloc;
    bool token;
    weft_link streams;
    size_t count;
    weft_later sweep; /* streams whose connection has ended */
};

/* ---- answering ---- */

static void answer_val(const weft_aiwg_web *web, weft_http *http, int status, weft_val value) {
    char *text;
    size_t len;
    if (weft_to_text(value, web->alloc, &text, &len) < 0) {
        weft_http_answer(http, 503, JSON, (weft_bytes){"{}", 2});
        return;
    }
    weft_http_answer(http, status, JSON, (weft_bytes){text, len});
    weft_text_free(text, web->alloc);
}

static void answer_error(const weft_aiwg_web *web, weft_http *http, int status, const char *error) {
    answer_val(web, http, status, WEFT_OBJ({"error", weft_str(error)}));
}

static weft_val raw_of(const weft_buf *text) {
    return weft_raw(weft__buf_head(text), weft__buf_len(text));
}

/* ---- who asks ---- */

/* A page is let in by its origin, which the server has compared with its own; what a browser says of itself must not
 * contradict that. */
static bool is_other_site(const weft_http *http) {
    const char *site = weft_http_header(http, "Sec-Fetch-Site");
    return site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
}

static bool may_ask(const weft_aiwg_web *web, const weft_http *http, const char *scope) {
    const weft_identity *who = weft_http_identity(http);
    if (web->token)
        return weft_has_scope(who, scope);
    return weft__connection_of_user(who->address, who->port, geteuid());
}

/* true: it may; otherwise it was answered. */
static bool admit(weft_aiwg_web *web, weft_http *http, const char *scope, bool people) {
    const weft_hub_host *host = web->hub->host;
    if (web->hub->stopping || !web->hub->loops)
        answer_error(web, http, 503, "Supervisor not initialized");
    else if (is_other_site(http))
        answer_error(web, http, 403, "Forbidden");
    else if (!may_ask(web, http, scope))
        answer_error(web, http, 401, "Unauthorized");
    else if (people && host->is_agent && host->is_agent(host->ctx, weft_http_identity(http)))
        answer_error(web, http, 403, "Not for agents");
    else
        return true;
    return false;
}

/* ---- looking ---- */

static void on_web_status(weft_http *http, void *ctx) {
    weft_aiwg_web *web = ctx;
    weft_aiwg_loops_state state;
    weft_buf circuit = {0};
    if (!admit(web, http, WEFT_READ, false))
        return;
    weft__aiwg_loops_state(web->hub->loops, &state);
    if (weft__aiwg_loops_write_circuit(web->hub->loops, &circuit) < 0)
        answer_error(web, http, 503, "out of memory");
    else
        answer_val(
            web, http, 200,
            WEFT_OBJ(
                {"status", weft_str("healthy")}, {"uptime", weft_int(web->hub->host->uptime_s(web->hub->host->ctx))},
                {"concurrency", WEFT_OBJ({"used", weft_uint(state.running)}, {"max", weft_int(state.limits.max_running)})},
                {"queue", WEFT_OBJ({"depth", weft_uint(state.queued)}, {"max", weft_int(state.limits.max_queue)})},
                {"circuit", raw_of(&circuit)},
                {"budget", WEFT_OBJ({"used", weft_num(state.spent)}, {"limit", weft_num(state.budget)})}));
    weft__buf_done(&circuit, web->alloc);
}

static void on_web_loops(weft_http *http, void *ctx) {
    weft_aiwg_web *web = ctx;
    weft_buf running = {0}, queued = {0};
    if (!admit(web, http, WEFT_READ, false))
        return;
    int r = weft__aiwg_loops_write(web->hub->loops, &running, WEFT_AIWG_RUNNING, false);
    if (r >= 0)
        r = weft__aiwg_loops_write(web->hub->loops, &queued, WEFT_AIWG_QUEUED, false);
    if (r < 0)
        answer_error(web, http, 503, "out of memory");
    else
        answer_val(web, http, 200, WEFT_OBJ({"running", raw_of(&running)}, {"queued", raw_of(&queued)}));
    weft__buf_done(&running, web->alloc);
    weft__buf_done(&queued, web->alloc);
}

static int64_t read_limit(const weft_aiwg_web *web, const weft_http *http) {
    const char *query = weft_http_query(http), *name;
    char *value, *text = weft__strndup(web->alloc, query, strlen(query));
    int64_t limit = HISTORY_DEFAULT;
    for (char *rest = text; text && weft__query_next(&rest, &name, &value);)
        if (strcmp(name, "limit") == 0)
            limit = strtoll(value, NULL, 10);
    weft__free(web->alloc, text);
    return limit;
}

static void on_web_history(weft_http *http, void *ctx) {
    weft_aiwg_web *web = ctx;
    weft_buf text = {0};
    if (!admit(web, http, WEFT_READ, false))
        return;
    if (weft__aiwg_loops_write_history(web->hub->loops, &text, read_limit(web, http)) < 0)
        answer_error(web, http, 503, "out of memory");
    else
        answer_val(web, http, 200, raw_of(&text));
    weft__buf_done(&text, web->alloc);
}

static void on_web_resources(weft_http *http, void *ctx) {
    weft_aiwg_web *web = ctx;
    weft_aiwg_machine is;
    weft_aiwg_loops_state state;
    if (!admit(web, http, WEFT_READ, false))
        return;
    weft__aiwg_machine(&is);
    weft__aiwg_loops_state(web->hub->loops, &state);
    answer_val(
        web, http, 200,
        WEFT_OBJ({"cpu", WEFT_OBJ({"cores", weft_int(is.cores)},
                                  {"loadAvg", WEFT_ARR(weft_num(is.load[0]), weft_num(is.load[1]), weft_num(is.load[2]))})},
                 {"memory", WEFT_OBJ({"totalMb", weft_int(is.total_mb)}, {"freeMb", weft_int(is.free_mb)},
                                     {"percentUsed", weft_num(is.memory_percent)})},
                 {"queueDepth", weft_uint(state.queued)},
                 {"budgetRemaining", state.budget > 0 ? weft_num(state.budget - state.spent) : weft_str("unlimited")}));
}

/* ---- doing ---- */

static void submit_loop(weft_aiwg_web *web, weft_http *http, const weft_json *body) {
    char why[WEFT_AIWG_LOOP_WHY] = "";
    weft_aiwg_loop_place place;
    weft_json cost = weft_get(body, "estimatedCostUsd");
    weft_aiwg_loop_spec spec = {.id = weft_get_str(body, "loopId", NULL),
                                .prompt = weft_get_str(body, "prompt", ""),
                                .priority = weft_get_int(body, "priority", 0),
                                .cost_usd = weft_num_of(&cost, 0)};
    spec.id = spec.id && *spec.id ? spec.id : NULL;
    if (!*spec.prompt) {
        answer_error(web, http, 400, "Missing required field: prompt");
        return;
    }
    int r = weft__aiwg_loops_submit(web->hub->loops, &spec, &place, why);
    if (r < 0)
        answer_error(web, http, r == -EPERM ? 422 : 503, *why ? why : weft_strerror(r));
    else
        answer_val(web, http, 201,
                   WEFT_OBJ({"loopId", weft_str(place.id)}, {"queued", weft_bool(place.position > 0)},
                            {"position", weft_int(place.position)}));
}

static void on_web_submit(weft_http *http, void *ctx) {
    weft_aiwg_web *web = ctx;
    weft_bytes body = weft_http_body(http);
    weft_doc *doc = NULL;
    if (!admit(web, http, WEFT_WORK, false))
        return;
    int r = body.len ? weft_doc_parse(body.data, body.len, web->alloc, &doc) : 0;
    if (r == -ENOMEM)
        answer_error(web, http, 503, "out of memory");
    else if (r < 0)
        answer_error(web, http, 400, "Invalid JSON body");
    else
        submit_loop(web, http, doc ? weft_doc_root(doc) : &(weft_json){0});
    weft_doc_free(doc);
}

/* The last part of a path. false: it is no id of a loop, or is encoded. */
static bool read_loop_id(const weft_http *http, const char *prefix, char ret[WEFT_AIWG_LOOP_ID + 1]) {
    const char *id = weft_http_path(http) + strlen(prefix);
    if (!*id || strlen(id) > WEFT_AIWG_LOOP_ID)
        return false;
    snprintf(ret, WEFT_AIWG_LOOP_ID + 1, "%s", id);
    return true;
}

static void on_web_cancel(weft_http *http, void *ctx) {
    weft_aiwg_web *web = ctx;
    char id[WEFT_AIWG_LOOP_ID + 1] = "";
    if (!admit(web, http, WEFT_WORK, true))
        return;
    bool cancelled = read_loop_id(http, CANCEL, id) && weft__aiwg_loops_cancel(web->hub->loops, id, "web");
    answer_val(web, http, 200, WEFT_OBJ({"cancelled", weft_bool(cancelled)}, {"loopId", weft_str(id)}));
}

/* ---- following ---- */

static void end_stream(web_stream *stream) {
    weft_aiwg_web *web = stream->web;
    weft__list_remove(&stream->link);
    web->count--;
    weft_http_end(stream->http);
    weft__free(web->alloc, stream);
}

static void sweep_streams(weft_later *later) {
    weft_aiwg_web *web = WEFT_CONTAINER(later, weft_aiwg_web, sweep);
    for (weft_link *link = web->streams.next, *next; link != &web->streams; link = next) {
        next = link->next;
        if (WEFT_CONTAINER(link, web_stream, link)->gone)
            end_stream(WEFT_CONTAINER(link, web_stream, link));
    }
}

static void drop_stream(web_stream *stream) {
    stream->gone = true;
    weft__later(weft__engine_loop(stream->web->hub->engine), &stream->web->sweep);
}

static void on_stream_gone(weft_http *http, void *ctx) {
    (void) http;
    drop_stream(ctx);
}

/* A stream that is not read ends: whoever it was reconnects, and has missed what it did not read. */
static void write_stream(web_stream *stream, weft_bytes text) {
    if (!stream->gone && weft_http_write(stream->http, text) < 0)
        drop_stream(stream);
}

static void follow(weft_aiwg_web *web, weft_http *http, const char *loop) {
    char hello[WEFT_AIWG_LOOP_ID + 32];
    web_stream *stream = web->count < WEFT_AIWG_WEB_STREAMS ? weft__zalloc(web->alloc, sizeof *stream) : NULL;
    if (!stream) {
        answer_error(web, http, 503, "Too many streams");
        return;
    }
    *stream = (web_stream){.http = http, .web = web};
    snprintf(stream->loop, sizeof stream->loop, "%s", loop);
    weft__list_init(&stream->link);
    int n = snprintf(hello, sizeof hello, *loop ? ":connected to %s\n\n" : ":connected%s\n\n", loop);
    weft_http_answer_opts opts = {.type = "text/event-stream", .cache = "no-cache", .body = {hello, (size_t) n}};
    if (weft_http_begin(http, &opts, &(weft_http_stream){.on_gone = on_stream_gone, .ctx = stream}) < 0) {
        weft__free(web->alloc, stream);
        answer_error(web, http, 503, "out of memory");
        return;
    }
    weft__list_push(&web->streams, &stream->link);
    web->count++;
}

static void on_web_events(weft_http *http, void *ctx) {
    if (admit(ctx, http, WEFT_READ, false))
        follow(ctx, http, "");
}

static void on_web_output(weft_http *http, void *ctx) {
    char id[WEFT_AIWG_LOOP_ID + 1];
    if (!admit(ctx, http, WEFT_READ, false))
        return;
    if (read_loop_id(http, OUTPUT, id))
        follow(ctx, http, id);
    else
        answer_error(ctx, http, 404, "Not found");
}

void weft__aiwg_web_event(weft_aiwg_web *web, const char *name, const char *data, size_t len) {
    weft_buf text = {0};
    int r = web->count ? weft__buf_put(&text, web->alloc, "event: ", 7) : -ENOENT;
    if (r >= 0)
        r = weft__buf_put(&text, web->alloc, name, strlen(name));
    if (r >= 0)
        r = weft__buf_put(&text, web->alloc, "\ndata: ", 7);
    if (r >= 0)
        r = weft__buf_put(&text, web->alloc, data, len);
    if (r >= 0)
        r = weft__buf_put(&text, web->alloc, "\n\n", 2);
    for (weft_link *link = web->streams.next; r >= 0 && link != &web->streams; link = link->next) {
        web_stream *stream = WEFT_CONTAINER(link, web_stream, link);
        if (!*stream->loop)
            write_stream(stream, (weft_bytes){weft__buf_head(&text), weft__buf_len(&text)});
    }
    weft__buf_done(&text, web->alloc);
}

void weft__aiwg_web_output(weft_aiwg_web *web, const char *loop, weft_bytes chunk) {
    weft_buf text = {0};
    weft_val value = WEFT_OBJ({"loopId", weft_str(loop)}, {"chunk", weft_strn(chunk.data, chunk.len)});
    int r = web->count ? weft__buf_put(&text, web->alloc, "data: ", 6) : -ENOENT;
    if (r >= 0)
        r = weft__write_val(&text, web->alloc, &value);
    if (r >= 0)
        r = weft__buf_put(&text, web->alloc, "\n\n", 2);
    for (weft_link *link = web->streams.next; r >= 0 && link != &web->streams; link = link->next) {
        web_stream *stream = WEFT_CONTAINER(link, web_stream, link);
        if (strcmp(stream->loop, loop) == 0)
            write_stream(stream, (weft_bytes){weft__buf_head(&text), weft__buf_len(&text)});
    }
    weft__buf_done(&text, web->alloc);
}

/* ---- life ---- */

static void on_web_home(weft_http *http, void *ctx) {
    static const char text[] =
        "AIWG's web interface, served by Weft: /api/status, /api/loops, /api/history, /api/resources,\n"
        "/api/submit, /api/cancel/LOOP, /sse/events, /sse/output/LOOP. \"weft open\" opens Weft's own "
        "dashboard.\n";
    (void) ctx;
    weft_http_answer(http, 200, "text/plain; charset=utf-8", (weft_bytes){text, sizeof text - 1});
}

static const struct {
    const char *verb, *path;
    weft_route_handler *handler;
} web_rows[] = {
    {"GET", "/", on_web_home},
    {"GET", "/api/status", on_web_status},
    {"GET", "/api/loops", on_web_loops},
    {"GET", "/api/history", on_web_history},
    {"GET", "/api/resources", on_web_resources},
    {"POST", "/api/submit", on_web_submit},
    {"POST", CANCEL "*", on_web_cancel},
    {"GET", "/sse/events", on_web_events},
    {"GET", OUTPUT "*", on_web_output},
};

int weft__aiwg_web_new(const weft_hub *hub, weft_server *server, bool token, weft_aiwg_web **ret) {
    weft_aiwg_web *web = weft__zalloc(hub->alloc, sizeof *web);
    int r = web ? 0 : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < sizeof web_rows / sizeof web_rows[0]; i++)
        r = weft_server_route(server, web_rows[i].verb, web_rows[i].path, web_rows[i].handler, web);
    if (r < 0) {
        weft__free(hub->alloc, web);
        return r;
    }
    web->hub = hub;
    web->alloc = hub->alloc;
    web->token = token;
    weft__list_init(&web->streams);
    weft__later_init(&web->sweep, sweep_streams);
    *ret = web;
    return 0;
}

weft_aiwg_web *weft__aiwg_web_free(weft_aiwg_web *web) {
    if (!web)
        return NULL;
    weft__later_cancel(&web->sweep);
    while (!weft__list_empty(&web->streams))
        end_stream(WEFT_CONTAINER(web->streams.next, web_stream, link));
    return weft__free(web->alloc, web);
}
