/* Telling where a daemon is and what to do with it. */
#include "serve_tell.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "home.h"
#include "say.h"

static const char *url_with(const weft_server *server, const char *scheme) {
    const char *url;
    for (size_t i = 0; (url = weft_server_url(server, i)); i++)
        if (strncmp(url, scheme, strlen(scheme)) == 0)
            return url;
    return NULL;
}

/* The file the token is in, for people and their scripts. */
static const char *token_path(const weft_serve_facts *facts) {
    return facts->how->token_file ? facts->how->token_file : facts->app->layout->token;
}

bool weft__serve_publish(const weft_serve_facts *facts) {
    const weft_app *app = facts->app;
    weft_val urls[WEFT_MAX_TEXTS + 1];
    char folder[PATH_MAX];
    size_t count = 0;
    int r = -ENOENT;
    for (const char *url; count <= WEFT_MAX_TEXTS && (url = weft_server_url(facts->server, count)); count++)
        urls[count] = weft_str(url);
    weft_val about = WEFT_OBJ({"pid", weft_int(getpid())}, {"version", weft_str(weft_version())},
                              {"folder", weft_str(getcwd(folder, sizeof folder))}, {"urls", weft_arr(urls, count)},
                              {"unix", weft_str_or_none(url_with(facts->server, "unix:"))},
                              {"http", weft_str_or_none(url_with(facts->server, "http"))},
                              {"ws", weft_str_or_none(url_with(facts->server, "ws"))},
                              {"tokenFile", facts->token ? weft_str(token_path(facts)) : weft_none()});
    if (facts->held) {
        r = weft__home_publish(app->layout, about);
        if (r < 0)
            weft__warn(app, "weft serve: %s: %s", app->layout->endpoint, weft_strerror(r));
    }
    if (app->common.json && !facts->on_stdio)
        weft__put_line(&app->out, about);
    return r >= 0;
}

/* ---- for people ---- */

static void say_where(const weft_serve_facts *facts, FILE *to) {
    const char *url;
    for (size_t i = 0; (url = weft_server_url(facts->server, i)); i++)
        fprintf(to, "listening on %s\n", url);
}

static void say_curl(const weft_serve_facts *facts, FILE *to) {
    const char *http = url_with(facts->server, "http");
    if (!http)
        return;
    fputs("    curl -H 'Content-Type: application/json' ", to);
    if (facts->token)
        fprintf(to, "-H \"Authorization: Bearer $(cat %s)\" ", token_path(facts));
    fprintf(to, "%s-d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.list\"}' %s\n",
            strncmp(http, "https", 5) == 0 ? "-k " : "", http);
}

/* The page that needs no token. */
static void say_page(const weft_serve_facts *facts, FILE *to) {
    const char *http = url_with(facts->server, "http");
    const char *authority = http ? strstr(http, "//") : NULL;
    if (!authority)
        return;
    size_t len = (size_t) (authority - http) + 2 + strcspn(authority + 2, "/");
    fprintf(to, "and open %.*s/health\n", (int) len, http);
}

static void say_call(const weft_serve_facts *facts, FILE *to, const char *url) {
    bool shows = facts->token && strncmp(url, "unix:", 5) != 0;
    fprintf(to, "    %s call %s%s%s%s task.submit prompt=hello\n", program_invocation_name, shows ? "--token-file " : "",
            shows ? token_path(facts) : "", shows ? " " : "", url);
}

/* The first works at once, the second asks for permission: that is what a hub is for. */
static void say_verbs(const weft_serve_facts *facts, FILE *to) {
    const char *program = program_invocation_name, *agent = facts->how->agents.fallback;
    fprintf(to, "    %s task submit --wait \"hello\"%*s# runs on the agent \"%s\"; \"weft agents\" shows the others\n",
            program, 8, "", agent);
    fprintf(to, "    %s task submit --wait \"write a file\" # asks before it does\n", program);
}

void weft__serve_say_what_next(const weft_serve_facts *facts) {
    FILE *to = facts->app->err.file;
    say_where(facts, to);
    if (facts->on_stdio)
        return;
    fprintf(to, "\nTry, in another terminal%s:\n", facts->held ? " in this folder" : "");
    if (facts->held)
        say_verbs(facts, to);
    else
        say_call(facts, to, weft_server_url(facts->server, 0));
    say_curl(facts, to);
    say_page(facts, to);
    fputs("Ctrl-C stops it.\n", to);
    fflush(to);
}
