/* The life of a server: started when somebody needs it, ended when nobody does for a while, and left to rest for longer and
 * longer while it fails. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "mcp_private.h"
#include "visible.h"
#include "write.h"

#define IDLE_MS (5 * 60 * 1000)
#define LOOK_MS 1000 /* until a server that is in use is looked at again */

const char *const weft__mcp_transports[] = {"auto", "stdio", "http", "sse", NULL};
static const char *const states[] = {"idle", "starting", "ready", "failed"};

/* ---- telling ---- */

void weft__mcp_tell(const weft_mcp_server *server, const char *type, weft_val data) {
    const weft_mcp_opts *opts = &server->mcp->opts;
    if (opts->host->on_event)
        opts->host->on_event(opts->ctx, type, data);
}

void weft__mcp_log(weft_mcp_server *server, const char *text, size_t len) {
    const weft_alloc *alloc = server->mcp->alloc;
    weft_buf line = {0};
    while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    if (!len)
        return;
    char *kept = weft__visible_put(&line, alloc, (weft_bytes){text, len}, WEFT_MCP_LINE) < 0
                     ? NULL
                     : weft__strndup(alloc, weft__buf_head(&line), weft__buf_len(&line));
    weft__buf_done(&line, alloc);
    if (!kept)
        return; /* without memory there is less to show */
    weft__free(alloc, server->lines[server->line_next]);
    server->lines[server->line_next] = kept;
    server->line_next = (server->line_next + 1) % WEFT_MCP_LINES;
}

/* Of the modern era, who it is stands beside the result. */
static weft_json server_info(const weft_mcp_server *server) {
    weft_json info = server->info ? *weft_doc_root(server->info) : (weft_json){0};
    weft_json said = weft_get(&info, "serverInfo"), meta = weft_get(&info, "_meta");
    return said.text ? said : weft_get(&meta, "io.modelcontextprotocol/serverInfo");
}

/* ---- starting ---- */

static void wait_for_server(weft_mcp_server *server, int64_t ms) {
    weft__timer_set(server->mcp->loop, &server->timer, weft__add_ms(weft__loop_fresh_now(server->mcp->loop), ms));
}

static const weft_mcp_wire *usual_wire(const weft_mcp_spec *spec) {
    return spec->transport == WEFT_MCP_STDIO ? &weft__mcp_stdio
           : spec->transport == WEFT_MCP_SSE ? &weft__mcp_sse
                                             : &weft__mcp_http;
}

static void start_server(weft_mcp_server *server) {
    server->state = WEFT_MCP_STARTING;
    server->flooded = false;
    server->refused = 0;
    server->wire = server->wire ? server->wire : usual_wire(server->spec);
    int r = weft__mcp_new_service(server);
    if (r >= 0)
        r = server->wire->open(server);
    if (r < 0 && server->state == WEFT_MCP_STARTING)
        weft__mcp_failed(server, -ECONNREFUSED, "%s could not be started: %s", server->spec->name, weft_strerror(r));
}

void weft__mcp_need(weft_mcp_server *server) {
    if (server->state == WEFT_MCP_IDLE && !server->mcp->ended)
        start_server(server);
}

static int64_t idle_ms(const weft_mcp_server *server) {
    int64_t said = server->spec->idle_ms;
    return said < 0 ? 0 : said ? said : IDLE_MS;
}

void weft__mcp_used(weft_mcp_server *server) {
    if (server->state == WEFT_MCP_READY)
        wait_for_server(server, idle_ms(server));
}

void weft__mcp_ready(weft_mcp_server *server) {
    weft_json who = server_info(server);
    server->state = WEFT_MCP_READY;
    server->opening = 0;
    server->error[0] = '\0';
    wait_for_server(server, idle_ms(server));
    weft__mcp_tell(server, "mcp.started",
                   WEFT_OBJ({"server", weft_str(server->spec->name)}, {"transport", weft_str(server->wire->name)},
                            {"protocolVersion", weft_str(server->version)},
                            {"serverInfo", who.text && who.len <= 4096 ? weft_copy(&who) : weft_none()}));
    if (server->wire->listen)
        server->wire->listen(server);
    if (server->state == WEFT_MCP_READY)
        weft__mcp_hear(server);
    if (server->state == WEFT_MCP_READY)
        weft__mcp_send_waiting(server);
}

/* ---- ending ---- */

static void hang_up_server(weft_mcp_server *server) {
    weft_peer *peer = server->peer;
    weft__mcp_unask(server, NULL); /* into what is still being sent */
    server->peer = NULL;
    server->opening = 0;
    server->listening = NULL;
    server->lists_tools = false;
    if (server->line)
        server->wire->close(server);
    server->line = NULL;
    weft_peer_free(peer);
    server->service = weft_service_unref(server->service);
    server->tools = weft_doc_free(server->tools);
    server->pid = 0;
    weft__later_cancel(&server->fail);
    weft__timer_stop(server->mcp->loop, &server->timer);
    for (weft_link *link = server->uris.next; link != &server->uris; link = link->next)
        WEFT_CONTAINER(link, weft_mcp_uri, link)->asked = false;
}

void weft__mcp_failed(weft_mcp_server *server, int r, const char *format, ...) {
    va_list args;
    if (server->state != WEFT_MCP_STARTING && server->state != WEFT_MCP_READY)
        return;
    va_start(args, format);
    vsnprintf(server->error, sizeof server->error, format, args);
    va_end(args);
    server->state = WEFT_MCP_RESTING;
    weft__mcp_finish_all(server, r, server->error);
    hang_up_server(server);
    weft__mcp_log(server, server->error, strlen(server->error));
    weft__mcp_tell(server, "mcp.failed",
                   WEFT_OBJ({"server", weft_str(server->spec->name)}, {"error", weft_str(server->error)}));
    wait_for_server(server, weft__backoff_next(&server->backoff, weft__any_number()));
}

void weft__mcp_begin_again(weft_mcp_server *server) {
    if (server->state != WEFT_MCP_STARTING && server->state != WEFT_MCP_READY)
        return;
    server->state = WEFT_MCP_RESTING;
    weft__mcp_finish_sent(server, -ECONNRESET, "the session of the server was lost");
    hang_up_server(server);
    if (server->mcp->ended)
        server->state = WEFT_MCP_IDLE;
    else
        start_server(server);
}

static void end_server(weft_mcp_server *server, const char *reason) {
    bool was = server->state == WEFT_MCP_READY;
    if (server->state == WEFT_MCP_IDLE)
        return;
    server->state = WEFT_MCP_IDLE;
    hang_up_server(server);
    if (was)
        weft__mcp_tell(server, "mcp.ended",
                       WEFT_OBJ({"server", weft_str(server->spec->name)}, {"reason", weft_str(reason)}));
}

/* Is there a reason to keep it? Listening to changes that nobody asked for is none. */
static bool is_server_busy(const weft_mcp_server *server) {
    return server->request_count > (server->listening != NULL) || server->uri_count;
}

static void on_server_due(weft_timer *timer) {
    weft_mcp_server *server = WEFT_CONTAINER(timer, weft_mcp_server, timer);
    if (server->state == WEFT_MCP_STARTING)
        weft__mcp_negotiate_late(server);
    else if (server->state == WEFT_MCP_RESTING) {
        server->state = WEFT_MCP_IDLE;
        if (is_server_busy(server))
            weft__mcp_need(server);
    } else if (server->state == WEFT_MCP_READY && is_server_busy(server))
        wait_for_server(server, LOOK_MS);
    else if (server->state == WEFT_MCP_READY) {
        weft__mcp_finish_all(server, -ECANCELED, "the server is ended");
        end_server(server, "idle");
    }
}

/* It was found out in the middle of a message. */
static void fail_for_reason(weft_later *later) {
    weft_mcp_server *server = WEFT_CONTAINER(later, weft_mcp_server, fail);
    weft__mcp_failed(server, -EMSGSIZE,
                     server->flooded ? "%s sent too many messages" : "%s sent a message of more than 32 MiB",
                     server->spec->name);
}

/* ---- all of them ---- */

static int add_server(weft_mcp *mcp, const weft_mcp_spec *spec) {
    weft_mcp_server *server = weft__zalloc(mcp->alloc, sizeof *server);
    if (!server)
        return -ENOMEM;
    server->mcp = mcp;
    server->spec = spec;
    weft__list_init(&server->requests);
    weft__list_init(&server->asks);
    weft__list_init(&server->uris);
    weft__timer_init(&server->timer, on_server_due);
    weft__timer_init(&server->events, weft__mcp_tell_changes);
    weft__later_init(&server->fail, fail_for_reason);
    weft__list_push(&mcp->servers, &server->link);
    return 0;
}

static void drop_server(weft_mcp_server *server, const char *why) {
    weft_mcp *mcp = server->mcp;
    weft__mcp_finish_all(server, -ECANCELED, why);
    end_server(server, "configuration");
    weft__timer_stop(mcp->loop, &server->timer);
    weft__timer_stop(mcp->loop, &server->events);
    for (weft_link *link = mcp->over.next; link != &mcp->over; link = link->next)
        if (WEFT_CONTAINER(link, weft_mcp_request, link)->server == server)
            WEFT_CONTAINER(link, weft_mcp_request, link)->server = NULL;
    while (!weft__list_empty(&server->uris)) {
        weft_mcp_uri *uri = WEFT_CONTAINER(server->uris.next, weft_mcp_uri, link);
        weft__list_remove(&uri->link);
        weft__free(mcp->alloc, uri);
    }
    for (size_t i = 0; i < WEFT_MCP_LINES; i++)
        weft__free(mcp->alloc, server->lines[i]);
    weft_doc_free(server->info);
    weft__list_remove(&server->link);
    weft__free(mcp->alloc, server);
}

static bool same_texts(const char *const *a, const char *const *b) {
    size_t i = 0;
    if (!a || !b)
        return a == b;
    for (; a[i] && b[i]; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return a[i] == b[i];
}

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_headers(const weft_header *a, const weft_header *b) {
    if (!a || !b)
        return a == b;
    for (; a->name && b->name; a++, b++)
        if (strcmp(a->name, b->name) != 0 || strcmp(a->value, b->value) != 0)
            return false;
    return !a->name && !b->name;
}

/* Who gets it and for how long it is kept do not make it another. */
static bool is_same_server(const weft_mcp_spec *a, const weft_mcp_spec *b) {
    return strcmp(a->name, b->name) == 0 && a->transport == b->transport && same_texts(a->argv, b->argv) &&
           same_texts(a->env, b->env) && same_text(a->url, b->url) && same_headers(a->headers, b->headers);
}

static const weft_mcp_spec *find_spec(const weft_mcp_specs *specs, const char *name) {
    for (size_t i = 0; i < specs->count; i++)
        if (strcmp(specs->list[i].name, name) == 0)
            return &specs->list[i];
    return NULL;
}

int weft__mcp_set(weft_mcp *mcp, const weft_mcp_specs *specs, bool no_sampling) {
    int r = 0;
    mcp->opts.no_sampling = no_sampling;
    for (weft_link *link = mcp->servers.next, *next; link != &mcp->servers; link = next) {
        weft_mcp_server *server = WEFT_CONTAINER(link, weft_mcp_server, link);
        const weft_mcp_spec *now = find_spec(specs, server->spec->name);
        next = link->next;
        if (now && is_same_server(now, server->spec))
            server->spec = now;
        else
            drop_server(server, "the configuration of the server has changed");
    }
    for (size_t i = 0; r >= 0 && i < specs->count && i < WEFT_MCP_SERVERS; i++)
        if (!weft__mcp_find(mcp, specs->list[i].name))
            r = add_server(mcp, &specs->list[i]);
    return r;
}

int weft__mcp_new(const weft_mcp_opts *opts, weft_mcp **ret) {
    weft_mcp *mcp = weft__zalloc(opts->alloc, sizeof *mcp);
    if (!mcp)
        return -ENOMEM;
    mcp->opts = *opts;
    mcp->loop = opts->loop;
    mcp->alloc = opts->alloc;
    weft__list_init(&mcp->servers);
    weft__list_init(&mcp->leaving);
    weft__list_init(&mcp->ending);
    weft__list_init(&mcp->over);
    weft__later_init(&mcp->later, weft__mcp_tell_over);
    *ret = mcp;
    return 0;
}

void weft__mcp_end(weft_mcp *mcp) {
    mcp->ended = true;
    for (weft_link *link = mcp->servers.next; link != &mcp->servers; link = link->next) {
        weft_mcp_server *server = WEFT_CONTAINER(link, weft_mcp_server, link);
        weft__mcp_finish_all(server, -ECANCELED, "the daemon stops");
        end_server(server, "daemonStopped");
    }
}

weft_mcp *weft__mcp_free(weft_mcp *mcp) {
    if (!mcp)
        return NULL;
    weft__mcp_end(mcp);
    while (!weft__list_empty(&mcp->servers))
        drop_server(WEFT_CONTAINER(mcp->servers.next, weft_mcp_server, link), "the daemon stops");
    weft__later_cancel(&mcp->later);
    weft__mcp_tell_over(&mcp->later);
    weft__mcp_stdio_kill(mcp);
    weft__mcp_http_forget(mcp);
    if (mcp->tls)
        weft__tls_ctx_unref(mcp->tls);
    return weft__free(mcp->alloc, mcp);
}

weft_mcp_server *weft__mcp_next(const weft_mcp *mcp, const weft_mcp_server *server) {
    weft_link *next = server->link.next;
    return next == &mcp->servers ? NULL : WEFT_CONTAINER(next, weft_mcp_server, link);
}

weft_mcp_server *weft__mcp_first(const weft_mcp *mcp) {
    return weft__list_empty(&mcp->servers) ? NULL : WEFT_CONTAINER(mcp->servers.next, weft_mcp_server, link);
}

weft_mcp_server *weft__mcp_find(const weft_mcp *mcp, const char *name) {
    weft_mcp_server *server = weft__mcp_first(mcp);
    while (server && strcmp(server->spec->name, name) != 0)
        server = weft__mcp_next(mcp, server);
    return server;
}

const weft_mcp_spec *weft__mcp_spec(const weft_mcp_server *server) {
    return server->spec;
}

/* ---- resources that somebody wants to hear of ---- */

static weft_mcp_uri *find_uri(const weft_mcp_server *server, const char *text) {
    for (weft_link *link = server->uris.next; link != &server->uris; link = link->next)
        if (strcmp(WEFT_CONTAINER(link, weft_mcp_uri, link)->text, text) == 0)
            return WEFT_CONTAINER(link, weft_mcp_uri, link);
    return NULL;
}

static void hear_if_ready(weft_mcp_server *server) {
    if (server->state == WEFT_MCP_READY)
        weft__mcp_hear(server);
    else
        weft__mcp_need(server);
}

int weft__mcp_subscribe(weft_mcp_server *server, const char *text) {
    size_t size = strlen(text) + 1;
    if (find_uri(server, text))
        return -EALREADY;
    if (server->uri_count >= WEFT_MCP_URIS)
        return -ENOBUFS;
    weft_mcp_uri *uri = weft__alloc(server->mcp->alloc, sizeof *uri + size);
    if (!uri)
        return -ENOMEM;
    uri->asked = false;
    memcpy(uri->text, text, size);
    weft__list_push(&server->uris, &uri->link);
    server->uri_count++;
    hear_if_ready(server);
    return 0;
}

int weft__mcp_unsubscribe(weft_mcp_server *server, const char *text) {
    weft_mcp_uri *uri = find_uri(server, text);
    if (!uri)
        return -ENOENT;
    weft__list_remove(&uri->link);
    server->uri_count--;
    if (server->state == WEFT_MCP_READY && uri->asked)
        weft__mcp_hear_no_more(server, uri->text);
    weft__free(server->mcp->alloc, uri);
    return 0;
}

/* ---- describing ---- */

static weft_val copy_small(const weft_json *object, const char *name) {
    weft_json value = weft_get(object, name);
    return value.text && value.len <= 65536 ? weft_copy(&value) : weft_none();
}

/* Only the program and only the place: arguments, variables, headers and queries are where people put their keys. */
static void show_place(const weft_mcp_spec *spec, char *ret, size_t size) {
    const char *text = spec->url ? spec->url : spec->argv ? spec->argv[0] : "", *at = spec->url ? strstr(text, "://") : NULL;
    const char *user = at ? strchr(at + 3, '@') : NULL, *slash = at ? strchr(at + 3, '/') : NULL;
    if (user && (!slash || user < slash))
        snprintf(ret, size, "%.*s%.*s", (int) (at + 3 - text), text, (int) strcspn(user + 1, "?#"), user + 1);
    else
        snprintf(ret, size, "%.*s", spec->url ? (int) strcspn(text, "?#") : (int) strlen(text), text);
}

static size_t list_lines(const weft_mcp_server *server, weft_val lines[WEFT_MCP_LINES]) {
    size_t count = 0;
    for (size_t i = 0; i < WEFT_MCP_LINES; i++) {
        const char *line = server->lines[(server->line_next + i) % WEFT_MCP_LINES];
        if (line)
            lines[count++] = weft_str(line);
    }
    return count;
}

int weft__mcp_describe(const weft_mcp_server *server, bool log, weft_buf *out) {
    const weft_json *info = server->info ? weft_doc_root(server->info) : &(weft_json){0};
    const weft_mcp_spec *spec = server->spec;
    weft_val lines[WEFT_MCP_LINES], uris[WEFT_MCP_URIS];
    size_t count = 0;
    char place[1024];
    bool failed = server->state == WEFT_MCP_IDLE && *server->error; /* it has rested, and nobody has asked since */
    weft_json who = server_info(server);
    show_place(spec, place, sizeof place);
    for (weft_link *link = server->uris.next; link != &server->uris; link = link->next)
        uris[count++] = weft_str(WEFT_CONTAINER(link, weft_mcp_uri, link)->text);
    weft_val value =
        WEFT_OBJ({"name", weft_str(spec->name)}, {"state", weft_str(failed ? "failed" : states[server->state])},
                 {"transport", weft_str(server->wire ? server->wire->name : weft__mcp_transports[spec->transport])},
                 {spec->url ? "url" : "command", weft_str(place)},
                 {"protocolVersion", server->info ? weft_str(server->version) : weft_none()},
                 {"serverInfo", who.text && who.len <= 4096 ? weft_copy(&who) : weft_none()},
                 {"capabilities", copy_small(info, "capabilities")}, {"instructions", copy_small(info, "instructions")},
                 {"pid", server->pid ? weft_int(server->pid) : weft_none()},
                 {"error", *server->error ? weft_str(server->error) : weft_none()},
                 {"openRequests", weft_uint(server->request_count - (server->listening != NULL))},
                 {"openQuestions", weft_uint(server->ask_count)}, {"subscriptions", weft_arr(uris, count)},
                 {"log", log ? weft_arr(lines, list_lines(server, lines)) : weft_none()});
    return weft__write_val(out, server->mcp->alloc, &value);
}
