/* weft mcp: the hub's MCP servers, and what they have. */
#include <stdio.h>
#include <string.h>

#include "failure.h"
#include "hub_call.h"
#include "params.h"
#include "subcommand.h"
#include "table.h"

/* No request to a server takes longer. */
#define LONGEST_MS ((int64_t) 65 * 60 * 1000)

typedef struct settings {
    const char *url;
    bool log;
} settings;

/* ---- showing ---- */

static int add_row(weft_table *table, const char *const *cells) {
    int r = 0;
    for (; *cells && r >= 0; cells++)
        r = weft__table_add(table, *cells);
    return r;
}

static void put_safe_line(const weft_app *app, const char *text) {
    weft__put_text(&app->out, text, strlen(text));
    fputc('\n', app->out.file);
}

/* A table of a list, and below it which servers could not be asked. */
static weft_exit show_list(const weft_app *app, const weft_json *result, const char *list, const char *const *heads,
                           int (*add)(weft_table *table, const weft_json *item)) {
    weft_table table = {.heads = heads};
    weft_json items = weft_get(result, list), failed = weft_get(result, "failed");
    int r = 0;
    for (weft_iter it = weft_iterate(&items); r >= 0 && weft_next(&it);)
        r = add(&table, &it.value);
    if (table.count)
        weft__table_put(&table, &app->out);
    weft__table_done(&table);
    for (weft_iter it = weft_iterate(&failed); weft_next(&it);)
        weft__warn(app, "%s: %s", weft_get_str(&it.value, "server", ""), weft_get_str(&it.value, "error", ""));
    return weft_count(&failed) ? WEFT_FAILED : WEFT_DONE;
}

/* What is said of a thing: its first line. */
static const char *first_line(const weft_json *item, char room[200]) {
    const char *text = weft_get_str(item, "description", weft_get_str(item, "title", ""));
    snprintf(room, 200, "%.*s", (int) (strcspn(text, "\n") < 160 ? strcspn(text, "\n") : 160), text);
    return room;
}

/* A server has a limit of its own, and people who are asked take their time. */
static weft_exit call_mcp(weft_app *app, const char *method, weft_val params, weft_answer *ret) {
    const settings *how = app->settings;
    if (!app->reach.timeout_ms)
        app->reach.timeout_ms = LONGEST_MS;
    return weft__hub_call_once(app, how->url, method, params, ret);
}

/* ---- list ---- */

static int add_mcp_server(weft_table *table, const weft_json *server) {
    weft_json info = weft_get(server, "serverInfo");
    const char *place = weft_get_str(server, "url", weft_get_str(server, "command", ""));
    return add_row(table,
                   (const char *const[]){weft_get_str(server, "name", ""), weft_get_str(server, "state", ""),
                                         weft_get_str(server, "transport", ""), weft_get_str(server, "protocolVersion", ""),
                                         weft_get_str(&info, "name", ""), place, NULL});
}

static void put_server_notes(const weft_app *app, const weft_json *servers) {
    for (weft_iter it = weft_iterate(servers); weft_next(&it);) {
        const char *error = weft_get_str(&it.value, "error", NULL);
        weft_json log = weft_get(&it.value, "log");
        if (error)
            weft__warn(app, "%s: %s", weft_get_str(&it.value, "name", ""), error);
        for (weft_iter line = weft_iterate(&log); weft_next(&line);)
            put_safe_line(app, weft_str_of(&line.value, ""));
    }
}

static weft_exit list_mcp_servers(weft_app *app) {
    static const char *const heads[] = {"SERVER", "IS", "BY", "VERSION", "NAME", "WHERE", NULL};
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit failed = call_mcp(app, "mcp/servers",
                                WEFT_OBJ({"server", app->arg_count ? weft_str(app->args[0]) : weft_none()},
                                         {"log", how->log ? weft_bool(true) : weft_none()}),
                                &answer);
    if (failed)
        return failed;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(answer.result));
        return WEFT_DONE;
    }
    weft_json servers = weft_get(answer.result, "servers");
    if (!weft_count(&servers))
        fputs("no MCP servers are configured (mcp.servers)\n", app->err.file);
    show_list(app, answer.result, "servers", heads, add_mcp_server);
    put_server_notes(app, &servers);
    return WEFT_DONE;
}

/* ---- tools, resources, prompts ---- */

static int add_mcp_tool(weft_table *table, const weft_json *tool) {
    char about[200];
    return add_row(table, (const char *const[]){weft_get_str(tool, "server", ""), weft_get_str(tool, "name", ""),
                                                first_line(tool, about), NULL});
}

static int add_mcp_resource(weft_table *table, const weft_json *resource) {
    return add_row(table, (const char *const[]){weft_get_str(resource, "server", ""),
                                                weft_get_str(resource, "uri", weft_get_str(resource, "uriTemplate", "")),
                                                weft_get_str(resource, "name", ""), NULL});
}

static weft_exit list_of_kind(weft_app *app, const char *method, weft_answer *ret) {
    weft_exit failed =
        call_mcp(app, method, WEFT_OBJ({"server", app->arg_count ? weft_str(app->args[0]) : weft_none()}), ret);
    if (!failed && app->common.json)
        weft__put_line(&app->out, weft_copy(ret->result));
    return failed;
}

static weft_exit list_mcp_tools(weft_app *app) {
    static const char *const heads[] = {"SERVER", "TOOL", "ABOUT", NULL};
    WEFT_ANSWER answer = {0};
    weft_exit failed = list_of_kind(app, "mcp/tools", &answer);
    return failed || app->common.json ? failed : show_list(app, answer.result, "tools", heads, add_mcp_tool);
}

static weft_exit list_mcp_resources(weft_app *app) {
    static const char *const heads[] = {"SERVER", "RESOURCE", "NAME", NULL}, *const template_heads[] = {"SERVER", "TEMPLATE",
                                                                                                        "NAME", NULL};
    WEFT_ANSWER answer = {0};
    weft_exit failed = list_of_kind(app, "mcp/resources", &answer);
    if (failed || app->common.json)
        return failed;
    weft_exit status = show_list(app, answer.result, "resources", heads, add_mcp_resource);
    weft_json templates = weft_get(answer.result, "resourceTemplates");
    if (weft_count(&templates)) {
        weft_val both = WEFT_OBJ({"resourceTemplates", weft_copy(&templates)});
        char *text;
        size_t len;
        WEFT_AUTO(weft_doc) doc = NULL;
        if (weft_to_text(both, NULL, &text, &len) >= 0) {
            if (weft_doc_parse(text, len, NULL, &doc) >= 0)
                show_list(app, weft_doc_root(doc), "resourceTemplates", template_heads, add_mcp_resource);
            weft_text_free(text, NULL);
        }
    }
    return status;
}

static weft_exit list_mcp_prompts(weft_app *app) {
    static const char *const heads[] = {"SERVER", "PROMPT", "ABOUT", NULL};
    WEFT_ANSWER answer = {0};
    weft_exit failed = list_of_kind(app, "mcp/prompts", &answer);
    return failed || app->common.json ? failed : show_list(app, answer.result, "prompts", heads, add_mcp_tool);
}

/* ---- call, read, prompt ---- */

/* Text as it is, whatever else in one line that says what it is. */
static void put_content(const weft_app *app, const weft_json *content) {
    weft_json resource = weft_get(content, "resource");
    const weft_json *from = resource.text ? &resource : content;
    const char *text = weft_get_str(from, "text", NULL);
    if (text) {
        weft__put_text(&app->out, text, strlen(text));
        fputs(*text && text[strlen(text) - 1] == '\n' ? "" : "\n", app->out.file);
        return;
    }
    weft_json data = weft_get(from, "data"), blob = weft_get(from, "blob");
    size_t size = (data.len > blob.len ? data.len : blob.len) / 4 * 3;
    char line[700];
    snprintf(line, sizeof line, "[%.40s %.100s %.500s %zu bytes]", weft_get_str(content, "type", "resource"),
             weft_get_str(from, "mimeType", ""), weft_get_str(from, "uri", ""), size);
    put_safe_line(app, line);
}

static void put_contents(const weft_app *app, const weft_json *result, const char *name) {
    weft_json list = weft_get(result, name);
    for (weft_iter it = weft_iterate(&list); weft_next(&it);)
        put_content(app, &it.value);
}

static weft_exit call_mcp_tool(weft_app *app) {
    WEFT_ANSWER answer = {0};
    WEFT_AUTO(weft_doc) arguments = NULL;
    weft_exit failed = weft__params_read(app, app->args + 2, &arguments);
    if (!failed)
        failed = call_mcp(app, "mcp/call",
                          WEFT_OBJ({"server", weft_str(app->args[0])}, {"tool", weft_str(app->args[1])},
                                   {"arguments", arguments ? weft_copy(weft_doc_root(arguments)) : weft_none()}),
                          &answer);
    if (failed)
        return failed;
    bool wrong = weft_get_bool(answer.result, "isError", false);
    weft_json content = weft_get(answer.result, "content"), structured = weft_get(answer.result, "structuredContent");
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else if (!weft_count(&content) && structured.text)
        weft__put_line(&app->out, weft_copy(&structured));
    else
        put_contents(app, answer.result, "content");
    return wrong ? WEFT_REFUSED : WEFT_DONE;
}

static weft_exit read_mcp_resource(weft_app *app) {
    WEFT_ANSWER answer = {0};
    weft_exit failed =
        call_mcp(app, "mcp/read", WEFT_OBJ({"server", weft_str(app->args[0])}, {"uri", weft_str(app->args[1])}), &answer);
    if (failed)
        return failed;
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        put_contents(app, answer.result, "contents");
    return WEFT_DONE;
}

static void put_messages(const weft_app *app, const weft_json *result) {
    weft_json list = weft_get(result, "messages");
    for (weft_iter it = weft_iterate(&list); weft_next(&it);) {
        weft_json content = weft_get(&it.value, "content");
        const char *role = weft_get_str(&it.value, "role", "");
        weft__put_text(&app->out, role, strlen(role));
        fputs(": ", app->out.file);
        put_content(app, &content);
    }
}

static weft_exit get_mcp_prompt(weft_app *app) {
    WEFT_ANSWER answer = {0};
    WEFT_AUTO(weft_doc) arguments = NULL;
    weft_exit failed = weft__params_read(app, app->args + 2, &arguments);
    if (!failed)
        failed = call_mcp(app, "mcp/prompt",
                          WEFT_OBJ({"server", weft_str(app->args[0])}, {"prompt", weft_str(app->args[1])},
                                   {"arguments", arguments ? weft_copy(weft_doc_root(arguments)) : weft_none()}),
                          &answer);
    if (failed)
        return failed;
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        put_messages(app, answer.result);
    return WEFT_DONE;
}

/* ---- the verb ---- */

#define ANY 64

static const weft_subcommand subcommands[] = {
    {"list", " url log ", NULL, 0, 1, list_mcp_servers, .usage = "[SERVER]", .help = "the servers, and how they are"},
    {"tools", " url ", NULL, 0, 1, list_mcp_tools, .usage = "[SERVER]", .help = "the tools of all servers, or of one"},
    {"call", " url ", "which server and which tool?", 2, ANY, call_mcp_tool, .usage = "SERVER TOOL [ARGUMENTS]",
     .help = "call a tool, and print what it answers"},
    {"resources", " url ", NULL, 0, 1, list_mcp_resources, .usage = "[SERVER]",
     .help = "the resources of all servers, or of one"},
    {"read", " url ", "which server and which resource?", 2, 2, read_mcp_resource, .usage = "SERVER URI",
     .help = "print a resource"},
    {"prompts", " url ", NULL, 0, 1, list_mcp_prompts, .usage = "[SERVER]", .help = "the prompts of all servers, or of one"},
    {"prompt", " url ", "which server and which prompt?", 2, ANY, get_mcp_prompt, .usage = "SERVER PROMPT [ARGUMENTS]",
     .help = "print a prompt with these arguments"},
    {0},
};

static weft_exit run_mcp(weft_app *app) {
    return weft__subcommand_run(app);
}

static const weft_option options[] = {
    WEFT_URL_OPTION(settings),
    WEFT_OPTION(settings, log, flag, "log", 'l', NULL, "also the last lines of each server's log"),
    {0},
};

static const char *const examples[] = {
    "weft mcp",
    "the MCP servers, and how they are",
    "weft mcp tools files",
    "the tools of one of them",
    "weft mcp call files read_file path=README.md",
    "call a tool; its arguments are name=value pairs or one JSON object",
    "weft mcp resources",
    "what can be read",
    "weft mcp read files file:///srv/notes.txt",
    "read a resource",
    "weft mcp prompts",
    "the prompts that servers offer",
    "weft mcp prompt files summary path=README.md",
    "one of them, filled in",
    NULL,
};

const weft_verb weft__mcp_verb = {
    .name = "mcp",
    .help = "MCP servers: their tools, resources and prompts",
    .subcommands = subcommands,
    .usual = "list",
    .examples = examples,
    .about = "Servers are in the configuration, under mcp.servers. One is started when it is needed.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_mcp,
};
