/* weft runner: run tasks of a hub on another machine; and which machines a hub has. */
#include <string.h>

#include "endpoint.h"
#include "failure.h"
#include "hub_call.h"
#include "plain_name.h"
#include "runners.h"
#include "serve.h"
#include "table.h"
#include "time_text.h"

/* ---- list ---- */

static const char *join_names(const weft_json *names, char *ret, size_t size) {
    size_t used = 0;
    *ret = '\0';
    for (weft_iter it = weft_iterate(names); used < size && weft_next(&it);)
        used += (size_t) snprintf(ret + used, size - used, "%s%s", used ? " " : "", weft_str_of(&it.value, ""));
    return ret;
}

static int add_runner_row(weft_table *table, const weft_json *runner) {
    char agents[256], labels[256], slots[64], since[WEFT_TIME_TEXT];
    weft_json agent_names = weft_get(runner, "agents"), label_names = weft_get(runner, "labels");
    bool connected = weft_get_bool(runner, "connected", false), here = weft_get_bool(runner, "hasProject", false);
    snprintf(slots, sizeof slots, "%lld of %lld", (long long) weft_get_int(runner, "running", 0),
             (long long) weft_get_int(runner, "slots", 0));
    const char *cells[] = {weft_get_str(runner, "name", ""),
                           !connected ? "away"
                           : here     ? "connected"
                                      : "connected, without this project",
                           slots,
                           join_names(&agent_names, agents, sizeof agents),
                           join_names(&label_names, labels, sizeof labels),
                           weft__time_shown(since, weft_get_str(runner, "since", NULL), "")};
    int r = 0;
    for (size_t i = 0; i < sizeof cells / sizeof cells[0] && r >= 0; i++)
        r = weft__table_add(table, cells[i]);
    return r;
}

static weft_exit list_runners(weft_app *app) {
    static const char *const heads[] = {"RUNNER", "STATE", "RUNNING", "AGENTS", "LABELS", "SINCE", NULL};
    const weft_serve_settings *how = app->settings;
    weft_table table = {.heads = heads};
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call_once(app, how->url, "runner.list", weft_none(), &answer);
    if (status)
        return status;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(answer.result));
        return WEFT_DONE;
    }
    weft_json runners = weft_get(answer.result, "runners");
    int r = 0;
    for (weft_iter it = weft_iterate(&runners); r >= 0 && weft_next(&it);)
        r = add_runner_row(&table, &it.value);
    if (r >= 0 && weft_count(&runners))
        weft__table_put(&table, &app->out);
    else if (r >= 0)
        fputs("no runner is connected; start one on another machine: weft runner URL\n", app->err.file);
    weft__table_done(&table);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

/* ---- being one ---- */

/* As the hub has it. */
static bool is_runner_word(const char *text) {
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char) text[i] <= ' ' || text[i] == 0x7f || text[i] == '@')
            return false;
    return len && len <= WEFT_RUNNER_NAME;
}

static bool are_names(const weft_texts *texts) {
    for (size_t i = 0; i < texts->count; i++)
        if (!is_runner_word(texts->items[i]))
            return false;
    return true;
}

static weft_exit be_runner(weft_app *app) {
    weft_serve_settings *how = app->settings;
    weft_texts name = {.items = {how->runner_name}, .count = how->runner_name != NULL};
    if (!weft__is_url(app->args[0]))
        return weft__misused(app, "\"%s\" is not a URL; give the hub's, for example wss://hub.example:16180/ws",
                             app->args[0]);
    if (!are_names(&name) || !are_names(&how->runner_labels) || !are_names(&how->runner_agents) ||
        !are_names(&how->runner_folders))
        return weft__misused(app, "names must be 1 to %d characters without blanks and \"@\"", WEFT_RUNNER_NAME);
    if (how->runner_slots > WEFT_RUNNER_SLOTS)
        return weft__misused(app, "--slots must be at most %d", WEFT_RUNNER_SLOTS);
    how->hub_url = app->args[0];
    app->args++;
    app->arg_count--;
    return weft__serve_run(app);
}

static weft_exit run_runner(weft_app *app) {
    bool lists = !app->arg_count || strcmp(app->args[0], "list") == 0;
    if (app->arg_count > 1)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[1]);
    return lists ? list_runners(app) : be_runner(app);
}

static const weft_option options[] = {
    WEFT_OPTION(weft_serve_settings, runner_name, text, "name", 0, "NAME",
                "what to call this machine (default: its host name); who shows a token with a name has that"),
    WEFT_OPTION(weft_serve_settings, runner_labels, list, "label", 0, "LABEL", "what it can be chosen by"),
    WEFT_OPTION(weft_serve_settings, runner_agents, list, "agent", 0, "NAME",
                "offer this agent of the configuration here (default: the usual one)"),
    WEFT_OPTION(weft_serve_settings, runner_slots, number, "slots", 0, "N",
                "tasks at a time (default: tasks.max_running of the configuration)"),
    WEFT_OPTION(weft_serve_settings, runner_folders, list, "folder", 0, "NAME",
                "only for a project whose folder at the hub has this name (default: any)"),
    WEFT_URL_OPTION(weft_serve_settings),
    {0},
};

static const char *const examples[] = {
    "weft token add box --scope runner >token",
    "at the hub: a token for that machine, which is called box",
    "weft runner wss://hub.example:16180/ws --token-file token --label gpu",
    "run tasks of that hub here, in this folder",
    "weft task submit --runner box 'run the tests'",
    "at the hub: give that machine a task",
    "weft runner list",
    "at the hub: which machines there are",
    NULL,
};

const weft_verb weft__runner_verb = {
    .name = "runner",
    .help = "run tasks of a hub on this machine, or list a hub's machines",
    .usage = "[list | URL]",
    .examples = examples,
    .about =
        "What runs here is said by the configuration here: the hub chooses among the agents that are offered, and the\n"
        "folder is this one. When the hub cannot be reached, what runs goes on; what happens is kept in .weft and told\n"
        "when it is there again. Make a token for each machine at the hub. \"weft doctor\" here says how it is with the "
        "hub;\n"
        "\"weft task diff\" at the hub shows what a task changed here.\n",
    .options = options,
    .settings_size = sizeof(weft_serve_settings),
    .reaches = true,
    .run = run_runner,
};
