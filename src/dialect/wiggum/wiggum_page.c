/* Between pages of the preview and whoever looks at them: navigate and refresh are told to the pages, and what pages say
 * (console, error, updateNavigationState) is stored and told to the others, so that a person or an agent can see it. A page
 * is a stranger's program: what it says is cut, and beyond so much in a second it is only counted. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loop.h"
#include "reply.h"
#include "utf8.h"
#include "wiggum.h"

#define PAGE_TEXT 8192 /* bytes of a message, of its arguments, of a stack */
#define PAGE_BURST 100 /* things that pages may say at once, */
#define PAGE_PER_S 20  /* and in a second after that */

/* ---- how much ---- */

/* A bucket for all pages: what is stored costs the disk, whoever says it. */
static bool may_say(weft_hub *hub) {
    int64_t now = weft_loop_now(weft__engine_loop(hub->engine)), since = now - hub->preview.at_ms;
    int64_t more = hub->preview.at_ms ? since * PAGE_PER_S / 1000 : PAGE_BURST;
    if (more > 0) {
        hub->preview.room = hub->preview.room + more < PAGE_BURST ? hub->preview.room + more : PAGE_BURST;
        hub->preview.at_ms = now;
    }
    if (hub->preview.room > 0) {
        hub->preview.room--;
        return true;
    }
    hub->preview.dropped++;
    return false;
}

static weft_val client_number(const weft_hub *hub, const weft_req *req) {
    const weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer((weft_req *) (uintptr_t) req));
    return client ? weft_uint(weft__hub_client_number(client)) : weft_none();
}

static weft_val cut_text(const char *text) {
    return text ? weft_strn(text, weft__utf8_fit(text, strlen(text), PAGE_TEXT)) : weft_none();
}

/* Members that are the same for all: who said it, and how much was lost before it. */
#define PAGE_MEMBERS 12
typedef struct said_members {
    weft_member list[PAGE_MEMBERS];
    size_t count;
} said_members;

static void add_said(said_members *said, const char *name, weft_val value) {
    if (value.kind && said->count < PAGE_MEMBERS)
        said->list[said->count++] = (weft_member){name, value};
}

static int store_said(weft_hub *hub, weft_req *req, const char *type, said_members *said) {
    uint64_t dropped = hub->preview.dropped;
    if (!may_say(hub))
        return weft__reply_error(req, 429, "rateLimited", "The pages say too much; this is not kept");
    add_said(said, "client", client_number(hub, req));
    if (dropped)
        add_said(said, "dropped", weft_uint(dropped));
    int r = weft__engine_append(hub->engine, WEFT_STREAM_PREVIEW, type, weft_obj(said->list, said->count), NULL, NULL);
    if (r < 0)
        return weft__reply_failure(weft__req_keep(req), r);
    hub->preview.dropped = 0;
    return weft__reply_val(weft__req_keep(req), weft_obj(NULL, 0));
}

/* ---- what pages say ---- */

struct console_params {
    const char *level, *message, *url;
    weft_json args;
};
const weft_param weft__wiggum_console_params[] = {
    {"message", WEFT_PARAM_str, offsetof(struct console_params, message), WEFT_REQUIRED, "what was logged, as text"},
    {"level", WEFT_PARAM_str, offsetof(struct console_params, level), WEFT_NULLABLE,
     "log (when absent), info, warn, error, ..."},
    {"args", WEFT_PARAM_arr, offsetof(struct console_params, args), WEFT_NULLABLE, "what was logged, as values"},
    {"url", WEFT_PARAM_str, offsetof(struct console_params, url), WEFT_NULLABLE, "of the page"},
    WEFT_END(struct console_params),
};

int weft__wiggum_console(weft_req *req, const weft_json *params, void *ctx) {
    const struct console_params *in = weft_req_params(req);
    const char *level = in->level && strlen(in->level) <= 32 ? in->level : "log";
    said_members said = {0};
    (void) params;
    add_said(&said, "level", weft_str(level));
    add_said(&said, "message", cut_text(in->message));
    add_said(&said, "args", in->args.text && in->args.len <= PAGE_TEXT ? weft_copy(&in->args) : weft_none());
    add_said(&said, "url", cut_text(in->url));
    return store_said(ctx, req, "preview.console", &said);
}

struct error_params {
    const char *message, *url, *stack;
    int64_t line, column;
};
const weft_param weft__wiggum_error_params[] = {
    {"message", WEFT_PARAM_str, offsetof(struct error_params, message), WEFT_REQUIRED, "what went wrong in the page"},
    {"url", WEFT_PARAM_str, offsetof(struct error_params, url), WEFT_NULLABLE, "of the page or the script"},
    {"line", WEFT_PARAM_int, offsetof(struct error_params, line), WEFT_NULLABLE, "in the script"},
    {"column", WEFT_PARAM_int, offsetof(struct error_params, column), WEFT_NULLABLE, "in the line"},
    {"stack", WEFT_PARAM_str, offsetof(struct error_params, stack), WEFT_NULLABLE, "the calls that led there"},
    WEFT_END(struct error_params),
};

int weft__wiggum_error(weft_req *req, const weft_json *params, void *ctx) {
    const struct error_params *in = weft_req_params(req);
    said_members said = {0};
    (void) params;
    add_said(&said, "message", cut_text(in->message));
    add_said(&said, "url", cut_text(in->url));
    add_said(&said, "line", in->line > 0 ? weft_int(in->line) : weft_none());
    add_said(&said, "column", in->column > 0 ? weft_int(in->column) : weft_none());
    add_said(&said, "stack", cut_text(in->stack));
    return store_said(ctx, req, "preview.error", &said);
}

struct state_params {
    const char *url;
    bool canGoBack, canGoForward;
};
const weft_param weft__wiggum_state_params[] = {
    {"url", WEFT_PARAM_str, offsetof(struct state_params, url), WEFT_REQUIRED, "where the page is"},
    {"canGoBack", WEFT_PARAM_bool, offsetof(struct state_params, canGoBack), WEFT_NULLABLE,
     "its history has something before"},
    {"canGoForward", WEFT_PARAM_bool, offsetof(struct state_params, canGoForward), WEFT_NULLABLE, "and something behind"},
    WEFT_END(struct state_params),
};

int weft__wiggum_state(weft_req *req, const weft_json *params, void *ctx) {
    const struct state_params *in = weft_req_params(req);
    said_members said = {0};
    (void) params;
    add_said(&said, "url", cut_text(in->url));
    add_said(&said, "canGoBack", weft_bool(in->canGoBack));
    add_said(&said, "canGoForward", weft_bool(in->canGoForward));
    return store_said(ctx, req, "preview.state", &said);
}

/* ---- what they are told ---- */

struct url_params {
    const char *url;
};
const weft_param weft__wiggum_url_params[] = {
    {"url", WEFT_PARAM_str, offsetof(struct url_params, url), WEFT_REQUIRED | WEFT_NONEMPTY, "a path of the preview"},
    WEFT_END(struct url_params),
};

static int refuse_url(weft_req *req, int r) {
    return weft__reply_error(req, WIGGUM_NAVIGATION_FAILED, "navigationFailed", "%s",
                             r == -EXDEV ? "The URL is of another origin; only paths are of the preview"
                                         : "This is not a URL of the preview");
}

int weft__wiggum_navigate(weft_req *req, const weft_json *params, void *ctx) {
    weft_hub *hub = ctx;
    const struct url_params *in = weft_req_params(req);
    char path[WIGGUM_URL], who[WEFT_WHO];
    (void) params;
    int r = weft__wiggum_path(in->url, path);
    if (r < 0)
        return refuse_url(req, r);
    r = weft__engine_append(hub->engine, WEFT_STREAM_PREVIEW, "preview.navigate",
                            WEFT_OBJ({"url", weft_str(in->url)}, {"by", weft_str(weft__who(weft_req_identity(req), who))},
                                     {"client", client_number(hub, req)}),
                            NULL, NULL);
    if (r < 0)
        return weft__reply_failure(weft__req_keep(req), r);
    return weft__reply_val(weft__req_keep(req), WEFT_OBJ({"url", weft_str(in->url)}));
}

int weft__wiggum_refresh(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    char who[WEFT_WHO];
    (void) params;
    int r = weft__engine_append(
        hub->engine, WEFT_STREAM_PREVIEW, "preview.refresh",
        WEFT_OBJ({"by", weft_str(weft__who(weft_req_identity(req), who))}, {"client", client_number(hub, req)}), NULL, NULL);
    return r < 0 ? weft__reply_failure(weft__req_keep(req), r) : weft__reply_val(weft__req_keep(req), weft_obj(NULL, 0));
}
