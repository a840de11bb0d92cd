/* Putting together what browsers are given, and the methods login.code and hub.whoami. */
#include "serve_web.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "dashboard.h"
#include "descent.h"
#include "failure.h"
#include "hub.h"
#include "private_file.h"
#include "reply.h"
#include "token_file.h"
#include "transport.h"

/* 256 sessions of 150 bytes, and room for as many more. */
#define MAX_KEPT (128 * 1024)

struct weft_serve_web {
    weft_serve_web_opts opts;
    weft_dashboard *dashboard;
    weft_method methods[2]; /* the service borrows them */
};

/* ---- sessions over a restart ---- */

static void keep_sessions(void *ctx, const char *text) {
    const weft_serve_web *self = ctx;
    char path[PATH_MAX], why[WEFT_TRUST_WHY] = "";
    int r = weft__state_path(self->opts.app->layout, "logins", "txt", path, why);
    if (r >= 0 && (r = weft__private_replace(path, text, strlen(text))) < 0)
        snprintf(why, sizeof why, "%.300s, where it is kept who is logged in: %s", path, weft__private_why(r));
    if (r < 0)
        weft__warn(self->opts.app, "weft serve: %s", why);
}

/* Without them everybody logs in once more. */
static int read_sessions(const weft_serve_web *self, char *ret) {
    char path[PATH_MAX], why[WEFT_TRUST_WHY] = "";
    int r = weft__state_path(self->opts.app->layout, "logins", "txt", path, why);
    if (r >= 0 && (r = weft__private_read(path, ret, MAX_KEPT)) < 0 && r != -ENOENT)
        weft__warn(self->opts.app, "weft serve: %s, where it is kept who is logged in: %s", path, weft__private_why(r));
    return r;
}

/* "weft open" hands the link to a program as an argument, which every user of the machine can read. So a link is good only
 * for a browser of our own user, or of root's, who forwards ports of containers; and not for an agent. Whose browser it is
 * on another machine cannot be known, and is not asked. */
static bool may_use_link(void *ctx, const weft_identity *who) {
    int64_t user = weft__connection_user(who->address, who->port);
    (void) ctx;
    return (user < 0 || user == 0 || user == (int64_t) geteuid()) && weft__connection_of_agent(who->address, who->port) != 1;
}

static int add_login(weft_serve_web *self) {
    weft_login_opts opts = {
        .home = "/", .on_keep = self->opts.held ? keep_sessions : NULL, .may_use_code = may_use_link, .ctx = self};
    char *kept = self->opts.held ? weft__zalloc(NULL, MAX_KEPT) : NULL;
    if (kept && read_sessions(self, kept) >= 0)
        opts.kept = kept;
    int r = weft_server_login(self->opts.server, &opts);
    weft__free(NULL, kept);
    return r;
}

/* A folder that cannot be opened is a mistake of whoever set it; the program's own files are there. */
static int add_dashboard(weft_serve_web *self) {
    const char *folder = self->opts.how->web;
    int r = weft__dashboard_new(self->opts.server, folder, &self->dashboard);
    if (r >= 0 || !folder || self->dashboard)
        return r;
    weft__warn(self->opts.app, "weft serve: web: %s: %s; the dashboard is the program's own", folder, weft_strerror(r));
    return weft__dashboard_new(self->opts.server, NULL, &self->dashboard);
}

/* ---- links ---- */

/* Somebody who listens everywhere is also here. */
static const char *host_to_open(const char *host) {
    if (strcmp(host, "0.0.0.0") == 0)
        return "127.0.0.1";
    return strcmp(host, "::") == 0 ? "::1" : host;
}

static bool write_address(const char *text, char ret[WEFT_LINK_SIZE]) {
    weft_url url;
    if (weft__transport_parse(NULL, text, NULL, &url, NULL) < 0)
        return false;
    bool web = url.scheme->flags & WEFT_OVER_HTTP, secure = url.scheme->flags & WEFT_OVER_TLS;
    const char *host = host_to_open(url.host);
    if (web)
        snprintf(ret, WEFT_LINK_SIZE, strchr(host, ':') ? "%s://[%s]:%d/" : "%s://%s:%d/", secure ? "https" : "http", host,
                 url.port);
    weft__url_done(&url, NULL);
    return web;
}

int weft__serve_web_address(const weft_server *server, char ret[WEFT_LINK_SIZE]) {
    const char *url;
    for (size_t i = 0; (url = weft_server_url(server, i)); i++)
        if (write_address(url, ret))
            return 0;
    return -ENOENT;
}

int weft__serve_web_link(const weft_serve_web *self, const char *token_name, char ret[WEFT_LINK_SIZE]) {
    char code[WEFT_LOGIN_CODE];
    int r = weft__serve_web_address(self->opts.server, ret);
    if (r < 0 || !self->opts.token)
        return r;
    r = weft_server_login_code(self->opts.server, token_name, WEFT_LINK_MS, code);
    if (r < 0)
        return r;
    size_t len = strlen(ret);
    snprintf(ret + len, WEFT_LINK_SIZE - len, "login?code=%s", code);
    return 0;
}

/* ---- the methods ---- */

/* Nobody gets more by a link than what its caller has: who shows a token gets a link for that token, and only who is on the
 * Unix socket, and so is the user, one for the token of the first start. */
static int make_login_code(weft_req *req, const weft_json *params, void *ctx) {
    const weft_serve_web *self = ctx;
    const weft_identity *who = weft_req_identity(req);
    char link[WEFT_LINK_SIZE], expires[WEFT_STAMP];
    (void) params;
    int r = weft__serve_web_link(self, who->local ? "token" : who->name, link);
    if (r == -ENOENT && weft__serve_web_address(self->opts.server, link) < 0)
        return weft__reply_error(req, 404, "noDashboard", "this hub does not listen on http or ws, so it has no dashboard");
    if (r == -ENOENT)
        return weft__reply_error(req, 403, "noToken", "a link can be made only for a token, and this caller showed none");
    if (r < 0)
        return weft__reply_error(req, 503, "noRandom", "the link: %s", weft_strerror(r));
    int64_t until = ((int64_t) time(NULL) + WEFT_LINK_MS / 1000) * 1000;
    return weft_reply(req, WEFT_OBJ({"url", weft_str(link)},
                                    {"expiresAt", self->opts.token ? weft__stamp_val(until, expires) : weft_none()}));
}

static int answer_whoami(weft_req *req, const weft_json *params, void *ctx) {
    const weft_identity *who = weft_req_identity(req);
    char text[WEFT_WHO], folder[PATH_MAX];
    weft_val scopes[16];
    size_t count = 0;
    (void) params, (void) ctx;
    for (const char *at = who->scopes; count < 16 && *(at += strspn(at, " ")); at += strcspn(at, " "))
        scopes[count++] = weft_strn(at, strcspn(at, " "));
    const char *here = getcwd(folder, sizeof folder), *slash = here ? strrchr(here, '/') : NULL;
    return weft_reply(req, WEFT_OBJ({"name", weft_str(weft__who(who, text))}, {"scopes", weft_arr(scopes, count)},
                                    {"version", weft_str(weft_version())},
                                    {"project", slash ? weft_str(slash[1] ? slash + 1 : "/") : weft_none()},
                                    {"folder", weft_str_or_none(here)}));
}

static const weft_error_row code_errors[] = {WEFT_ERROR_AGENT,
                                             {404, "The hub has no dashboard", "noDashboard"},
                                             {403, "The caller showed no token", "noToken"},
                                             {503, "The system has no random bytes", "noRandom"},
                                             {0}};

static const weft_error_row whoami_errors[] = {WEFT_ERROR_PARAMS, {0}};

const weft_method weft__web_rows[] = {
    {.name = "login.code",
     .handler = make_login_code,
     .params = weft__no_params,
     .help = "a link to the dashboard that logs a browser in, once, as the caller",
     .scope = WEFT_READ,
     .result = "{\"type\":\"object\",\"properties\":{\"url\":{\"type\":\"string\"},\"expiresAt\":{\"type\":\"string\"}}}",
     .errors = code_errors,
     .flags = WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "hub.whoami",
     .handler = answer_whoami,
     .params = weft__no_params,
     .help = "who the caller is to the hub, what it may do, and which project this is",
     .scope = WEFT_READ,
     .result =
         "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"scopes\":{\"type\":\"array\",\"items\":{"
         "\"type\":\"string\"}},\"version\":{\"type\":\"string\"},\"project\":{\"type\":\"string\"},\"folder\":{"
         "\"type\":\"string\"}}}",
     .errors = whoami_errors,
     .flags = WEFT_ROW_STRICT},
    {0},
};

static int add_web_methods(weft_serve_web *self) {
    int r = 0;
    memcpy(self->methods, weft__web_rows, sizeof self->methods);
    for (size_t i = 0; r >= 0 && weft__web_rows[i].name; i++) {
        self->methods[i].ctx = self;
        r = weft_service_add(weft_server_service(self->opts.server), &self->methods[i]);
    }
    return r;
}

/* ---- beginning and end ---- */

int weft__serve_web_new(const weft_serve_web_opts *opts, weft_serve_web **ret) {
    weft_serve_web *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->opts = *opts;
    *ret = self; /* routes and rows that were added before one failed need what is there */
    int r = add_login(self);
    if (r >= 0)
        r = add_dashboard(self);
    return r < 0 ? r : add_web_methods(self);
}

weft_serve_web *weft__serve_web_free(weft_serve_web *self) {
    if (!self)
        return NULL;
    weft__dashboard_free(self->dashboard);
    return weft__free(NULL, self);
}
