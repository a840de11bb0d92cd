/* Telling where a daemon is and what to do with it. */
#include "serve_tell.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "daemon_folder.h"
#include "failure.h"
#include "transport.h"
#include "wiring.h"

/* Of the commands to try, so that what is said of them stands in a column. */
#define VERBS_WIDTH 33

static unsigned flags_of(const char *url) {
    const weft_transport *transport = weft__transport_of(NULL, url);
    return transport ? transport->scheme.flags : 0;
}

/* The first of a transport that has these flags, and of the others that were asked about none. */
static const char *url_with(const weft_server *server, unsigned flags, unsigned asked) {
    const char *url;
    for (size_t i = 0; (url = weft_server_url(server, i)); i++)
        if ((flags_of(url) & asked) == flags)
            return url;
    return NULL;
}

static const char *url_of_http(const weft_server *server) {
    return url_with(server, WEFT_OVER_HTTP, WEFT_OVER_HTTP | WEFT_UPGRADES);
}

/* The file the token is in, for people and their scripts. */
static const char *token_path(const weft_serve_facts *facts) {
    return facts->how->token_file ? facts->how->token_file : facts->app->layout->token;
}

bool weft__serve_publish(const weft_serve_facts *facts) {
    const weft_app *app = facts->app;
    weft_val urls[WEFT_MAX_TEXTS + 1];
    char folder[PATH_MAX], dashboard[WEFT_LINK_SIZE];
    size_t count = 0;
    int r = -ENOENT;
    bool web = weft__serve_web_address(facts->server, dashboard) >= 0;
    for (const char *url; count <= WEFT_MAX_TEXTS && (url = weft_server_url(facts->server, count)); count++)
        urls[count] = weft_str(url);
    weft_val about = WEFT_OBJ({"pid", weft_int(getpid())}, {"version", weft_str(weft_version())},
                              {"folder", weft_str(getcwd(folder, sizeof folder))}, {"urls", weft_arr(urls, count)},
                              {"unix", weft_str_or_none(url_with(facts->server, WEFT_KNOWS_USER, WEFT_KNOWS_USER))},
                              {"http", weft_str_or_none(url_of_http(facts->server))},
                              {"ws", weft_str_or_none(url_with(facts->server, WEFT_UPGRADES, WEFT_UPGRADES))},
                              {"dashboard", web ? weft_str(dashboard) : weft_none()},
                              {"tokenFile", facts->token ? weft_str(token_path(facts)) : weft_none()},
                              {"waitsFor", weft_str_or_none(facts->waits_for)},
                              {"agent", WEFT_OBJ({"name", weft_str(facts->agent)}, {"driver", weft_str(facts->driver)})});
    if (facts->held) {
        r = weft__daemon_folder_publish(app->layout, about);
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

/* A link that logs in, once. Where standard error is a file the link is in it, and soon good for nothing. */
static void say_dashboard(const weft_serve_facts *facts, FILE *to) {
    char link[WEFT_LINK_SIZE];
    if (weft__serve_web_link(facts->web, "token", link) < 0)
        return;
    fprintf(to, "\nThe dashboard:\n    %s\n", link);
    if (facts->token)
        fprintf(to, "The link logs one browser in, once, within %d minutes.\n\"%s open\" makes another.\n",
                WEFT_LINK_MS / 60000, program_invocation_name);
}

/* The rest of the world has no weft. */
static void say_curl(const weft_serve_facts *facts, FILE *to) {
    const char *http = url_of_http(facts->server);
    if (!http)
        return;
    fputs("\nAny other program may ask too, for example:\n    curl -H 'Content-Type: application/json' \\\n      ", to);
    if (facts->token)
        fprintf(to, "-H \"Authorization: Bearer $(cat %s)\" \\\n      ", token_path(facts));
    fprintf(to, "%s-d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.list\"}' \\\n      %s\n",
            flags_of(http) & WEFT_OVER_TLS ? "-k " : "", http);
}

static void say_call(const weft_serve_facts *facts, FILE *to, const char *url) {
    bool shows = facts->token && !(flags_of(url) & WEFT_KNOWS_USER);
    fprintf(to, "    %s call %s%s%s%s task.submit prompt=hello\n", program_invocation_name, shows ? "--token-file " : "",
            shows ? token_path(facts) : "", shows ? " " : "", url);
}

/* Only the demo is known to ask. Others may, or may do what they like: a program as it is configured never asks. */
void weft__serve_say_verbs(FILE *to, const char *agent, const char *driver) {
    const weft_driver *row = weft__driver_named(driver);
    bool demo = row && row->built_in, cli = row && row->never_asks, asks = row && !demo && !cli;
    char answers[128];
    snprintf(answers, sizeof answers, "%s%.64s%s", cli ? "runs " : "", demo ? "an agent" : agent,
             cli ? " with it" : " answers");
    const char *const rows[][2] = {
        {"task submit --wait \"hello\"", answers},
        {demo   ? "task submit --wait \"write a file\""
         : asks ? "answer"
                : NULL,
         demo ? "it asks first" : "what it asks for, if it asks"},
        {"task list", "what was done"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i][0])
            fprintf(to, "    %s %-*s  # %s\n", program_invocation_name, VERBS_WIDTH, rows[i][0], rows[i][1]);
}

static void say_agent(const weft_serve_facts *facts, FILE *to) {
    if (facts->relays)
        return;
    const weft_driver *row = weft__driver_named(facts->driver);
    bool demo = row && row->built_in, cli = row && row->never_asks;
    fprintf(to, "The agent is \"%s\"%s.\n\"%s agents\" shows the others.\n", facts->agent,
            demo  ? ", which is built in and costs nothing"
            : cli ? ", a program that asks nothing"
                  : "",
            program_invocation_name);
}

void weft__serve_say_what_next(const weft_serve_facts *facts) {
    FILE *to = facts->app->err.file;
    say_where(facts, to);
    if (facts->on_stdio)
        return;
    say_dashboard(facts, to);
    fprintf(to, "\nTry, in another terminal%s:\n", facts->held ? " in this folder" : "");
    if (facts->held) {
        weft__serve_say_verbs(to, facts->agent, facts->driver);
        say_agent(facts, to);
    } else {
        say_call(facts, to, weft_server_url(facts->server, 0));
    }
    say_curl(facts, to);
    fputs("\nCtrl-C stops it.\n", to);
    fflush(to);
}
