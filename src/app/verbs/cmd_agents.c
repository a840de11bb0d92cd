/* weft agents: who can do the work, who does it when nobody is named, and how to get the others. */
#include <limits.h>
#include <string.h>

#include "agents_here.h"
#include "agents_install.h"
#include "daemon.h"
#include "failure.h"
#include "hub_call.h"
#include "subcommand.h"
#include "table.h"

typedef struct settings {
    const char *url;
    bool reset, yes;
} settings;

/* ---- list ---- */

/* What it is and where, or how to get it. */
static const char *agent_words(const weft_json *agent, char *room, size_t size) {
    const char *about = weft_get_str(agent, "about", ""), *path = weft_get_str(agent, "path", "");
    const char *version = weft_get_str(agent, "version", "");
    if (!weft_get_bool(agent, "found", false))
        return weft_get_str(agent, "advice", "Its program is not there.");
    snprintf(room, size, "%s%s%s%s%s", about, *version ? " " : "", version, *about && *path ? ": " : "", path);
    return room;
}

static int add_agent_row(weft_table *table, const weft_json *agent) {
    char room[PATH_MAX + 256];
    const char *cells[] = {weft_get_bool(agent, "isDefault", false) ? "*" : "", weft_get_str(agent, "name", ""),
                           weft_get_str(agent, "driver", ""), weft_get_bool(agent, "found", false) ? "yes" : "no",
                           agent_words(agent, room, sizeof room)};
    int r = 0;
    for (size_t i = 0; i < sizeof cells / sizeof cells[0] && r >= 0; i++)
        r = weft__table_add(table, cells[i]);
    return r;
}

/* Of two that say which agent is the default, the choice counts more than the configuration. */
static void put_default(const weft_app *app, const weft_json *list) {
    const char *name = weft_get_str(list, "default", ""), *configured = weft_get_str(list, "configured", NULL);
    if (configured)
        fprintf(app->err.file,
                "\n* %s is the default agent, chosen with \"weft agents use\".\n"
                "The configuration says %s. Go back to that: weft agents use --reset\n",
                name, configured);
    else if (app->err.terminal)
        fputs("\n* is the default agent, as configured. Choose another: weft agents use NAME\n", app->err.file);
}

static weft_exit put_agents(weft_app *app, const weft_json *list) {
    static const char *const heads[] = {"", "AGENT", "DRIVER", "INSTALLED", "WHERE IT IS, OR HOW TO GET IT", NULL};
    weft_table table = {.heads = heads};
    weft_json agents = weft_get(list, "agents");
    int r = 0;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(list));
        return WEFT_DONE;
    }
    for (weft_iter it = weft_iterate(&agents); r >= 0 && weft_next(&it);)
        r = add_agent_row(&table, &it.value);
    if (r >= 0)
        weft__table_put(&table, &app->out);
    weft__table_done(&table);
    if (r >= 0)
        put_default(app, list);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

/* Is there a daemon of this folder that can be asked? We stand in the project's folder afterwards. */
static bool has_ready_daemon(weft_app *app) {
    pid_t pid = 0;
    return weft__daemon_find(app) == 1 && weft__daemon_holder(app->layout, &pid) == 1 &&
           (!pid || weft__daemon_is_ready(app->layout, pid));
}

static weft_exit list_agents(weft_app *app) {
    const settings *how = app->settings;
    WEFT_AUTO(weft_doc) here = NULL;
    WEFT_ANSWER answer = {0};
    if (how->url || has_ready_daemon(app)) {
        weft_exit status = weft__hub_call_once(app, how->url, "agent.list", weft_none(), &answer);
        return status ? status : put_agents(app, answer.result);
    }
    weft_exit status = weft__agents_here(app, &here);
    return status ? status : put_agents(app, weft_doc_root(here));
}

/* ---- use ---- */

/* It may be chosen before it is installed, but then the next task fails. */
static void warn_missing(weft_connection *connection, const char *name) {
    WEFT_ANSWER answer = {0};
    if (weft__connection_try(connection, "agent.list", weft_none(), &answer) < 0 || answer.error)
        return;
    weft_json agents = weft_get(answer.result, "agents");
    for (weft_iter it = weft_iterate(&agents); weft_next(&it);)
        if (strcmp(weft_get_str(&it.value, "name", ""), name) == 0 && !weft_get_bool(&it.value, "found", true))
            weft__warn(connection->app, "It is not installed yet. %s", weft_get_str(&it.value, "advice", ""));
}

static weft_exit use_on(weft_app *app, weft_connection *connection, const char *name) {
    WEFT_ANSWER answer = {0};
    weft_exit status =
        weft__hub_call(connection, "agent.use", WEFT_OBJ({"agent", name ? weft_str(name) : weft_null()}), &answer);
    if (status)
        return status;
    const char *now = weft_get_str(answer.result, "default", "");
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else if (name)
        fprintf(app->err.file, "%s is the default from now on, also after a restart\n", name);
    else
        fprintf(app->err.file, "the default is as configured again: %s\n", now);
    warn_missing(connection, now);
    return WEFT_DONE;
}

static weft_exit use_agent(weft_app *app) {
    const settings *how = app->settings;
    const char *name = app->arg_count ? app->args[0] : NULL;
    weft_connection connection;
    if (!name == !how->reset)
        return weft__misused(app, name ? "a name or --reset, not both" : "which agent, or --reset?");
    weft_exit status = weft__hub_call_open(app, how->url, &connection);
    if (status == WEFT_DONE)
        status = use_on(app, &connection, name);
    weft__connection_done(&connection);
    return status;
}

/* ---- logout ---- */

static weft_exit logout_agent(weft_app *app) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status =
        weft__hub_call_once(app, how->url, "agent.logout", WEFT_OBJ({"agent", weft_str(app->args[0])}), &answer);
    if (status)
        return status;
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        fprintf(app->err.file, "%s is logged out\n", app->args[0]);
    return WEFT_DONE;
}

/* ---- install ---- */

static weft_exit install_by_name(weft_app *app) {
    const settings *how = app->settings;
    return weft__agents_install(app, app->args[0], how->yes);
}

/* ---- the verb ---- */

static const weft_subcommand subcommands[] = {
    {"list", " url ", NULL, 0, 0, list_agents, .help = "which agents there are, and the default"},
    {"use", " reset url ", NULL, 0, 1, use_agent, .usage = "NAME|--reset",
     .help = "make an agent the default, or the configured one again"},
    {"install", " yes ", "which agent?", 1, 1, install_by_name, .usage = "NAME",
     .help = "download an agent with npm into a folder of your own"},
    {"logout", " url ", "which agent?", 1, 1, logout_agent, .usage = "NAME", .help = "log the agent out of its provider"},
    {0},
};

static weft_exit run_agents(weft_app *app) {
    return weft__subcommand_run(app);
}

static const weft_option options[] = {
    WEFT_OPTION(settings, reset, flag, "reset", 0, NULL, "the agent of the configuration is the default again"),
    WEFT_OPTION(settings, yes, flag, "yes", 'y', NULL, "do not ask before downloading"),
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft agents",
    "list them: which is the default, which are installed, how to get the others",
    "weft agents install gemini",
    "downloads it with npm into a folder of your own, after asking",
    "weft agents use gemini",
    "for every task that names no agent, from now on",
    "weft agents use --reset",
    "as the configuration says",
    "weft agents logout codex",
    "you log in again when it is next used",
    NULL,
};

const weft_verb weft__agents_verb = {
    .name = "agents",
    .help = "show which agents there are, install one, choose the default",
    .subcommands = subcommands,
    .usual = "list",
    .examples = examples,
    .about = "The demo agent is the default until another is chosen, so that nothing costs money without your consent. "
             "Without a hub the\n"
             "list comes from the configuration and what is installed here.\n"
             "\n"
             "The agents that come with Weft are found in the folders of PATH, but never in the project's own, nor in any\n"
             "node_modules. \"install\" fetches the version that this Weft was tried with, and runs no scripts of packages; "
             "delete\n"
             "the folder that it names to be rid of it.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_agents,
};
