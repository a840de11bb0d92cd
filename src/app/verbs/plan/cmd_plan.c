/* weft plan: a request as tasks that depend on each other, made by the planner and run by the executors. */
#include <string.h>

#include "failure.h"
#include "hub_call.h"
#include "plan_verb.h"
#include "subcommand.h"
#include "table.h"
#include "time_text.h"

static weft_exit ask_hub(weft_app *app, const char *method, weft_val params, weft_answer *ret) {
    const weft_plan_settings *how = app->settings;
    app->reach.timeout_ms = how->timeout_ms;
    return weft__hub_call_once(app, how->url, method, params, ret);
}

/* ---- list, show, cancel ---- */

static int add_plan(weft_table *table, const weft_json *plan) {
    char age[WEFT_TIME_TEXT] = "", tasks[64];
    weft_json counts = weft_get(plan, "counts");
    int64_t created = weft__time_get(plan, "createdAt");
    if (created)
        weft__duration(age, weft__time_now() - created);
    snprintf(tasks, sizeof tasks, "%lld of %lld", (long long) weft_get_int(&counts, "completed", 0),
             (long long) weft_get_int(plan, "taskCount", 0));
    const char *cells[] = {weft_get_str(plan, "id", ""), weft_get_str(plan, "state", ""), tasks, age,
                           weft_get_str(plan, "request", "")};
    int r = 0;
    for (size_t i = 0; i < sizeof cells / sizeof cells[0] && r >= 0; i++)
        r = weft__table_add(table, cells[i]);
    return r;
}

static weft_exit list_plans(weft_app *app) {
    static const char *const heads[] = {"ID", "STATE", "DONE", "AGE", "REQUEST", NULL};
    const weft_plan_settings *how = app->settings;
    weft_table table = {.heads = heads};
    WEFT_ANSWER answer = {0};
    weft_exit status =
        ask_hub(app, "plan.list", WEFT_OBJ({"limit", how->limit ? weft_int(how->limit) : weft_none()}), &answer);
    if (status)
        return status;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(answer.result));
        return WEFT_DONE;
    }
    weft_json plans = weft_get(answer.result, "plans");
    int r = 0;
    for (weft_iter it = weft_iterate(&plans); r >= 0 && weft_next(&it);)
        r = add_plan(&table, &it.value);
    if (r >= 0 && table.count)
        weft__table_put(&table, &app->out);
    else if (r >= 0 && app->err.terminal)
        fputs("none; make one: weft plan 'add a README'\n", app->err.file);
    weft__table_done(&table);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

static weft_exit show_plan(weft_app *app) {
    WEFT_ANSWER answer = {0};
    weft_exit status = ask_hub(app, "plan.get", WEFT_OBJ({"planId", weft_str(app->args[0])}), &answer);
    if (status)
        return status;
    weft_json plan = weft_get(answer.result, "plan");
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(&plan));
        return WEFT_DONE;
    }
    bool ran = weft__time_get(&plan, "startedAt") != 0;
    if (weft__plan_put(app, &plan, ran) < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    if (app->err.terminal)
        fprintf(app->err.file, ran ? "  What a task said: weft task get AS --output\n" : "  Run it: weft plan run %s\n",
                app->args[0]);
    return WEFT_DONE;
}

static weft_exit cancel_plan(weft_app *app) {
    WEFT_ANSWER answer = {0};
    weft_exit status = ask_hub(app, "plan.cancel", WEFT_OBJ({"planId", weft_str(app->args[0])}), &answer);
    if (status)
        return status;
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        fprintf(app->err.file, "%s is %s\n", app->args[0], weft_get_str(answer.result, "state", "cancelled"));
    return WEFT_DONE;
}

/* ---- the verb ---- */

static const weft_subcommand subcommands[] = {
    {"list", " limit timeout url ", NULL, 0, 0, list_plans, .help = "plans, and how far they are"},
    {"show", " timeout url ", "which plan?", 1, 1, show_plan, .usage = "ID",
     .help = "one plan, with what became of its tasks"},
    {"run", " run time-limit timeout url ", "which plan?", 1, 1, weft__plan_run_word, .usage = "ID",
     .help = "run a plan that was made before"},
    {"cancel", " timeout url ", "which plan?", 1, 1, cancel_plan, .usage = "ID",
     .help = "end it: running tasks are cancelled, the others are skipped"},
    {0},
};

static bool is_plan_id(const char *text) {
    return strncmp(text, "plan_", 5) == 0 && !strpbrk(text, " \t\n");
}

/* "run plan_00000001" is a word and an id; "run the tests" is a request. A lone word that looks mistyped is one. */
static bool names_word(const weft_app *app) {
    for (const weft_subcommand *word = subcommands; word->name; word++)
        if (strcmp(word->name, app->args[0]) == 0)
            return app->arg_count == 1 || is_plan_id(app->args[1]);
    return false;
}

static const char *mistyped_word(const weft_app *app) {
    weft_suggestion suggestion = {.typed = app->args[0]};
    if (app->arg_count > 2 || (app->arg_count == 2 && !is_plan_id(app->args[1])) || strchr(app->args[0], ' '))
        return NULL;
    for (const weft_subcommand *word = subcommands; word->name; word++)
        weft__suggest(&suggestion, word->name);
    return suggestion.best;
}

static weft_exit run_verb(weft_app *app) {
    const weft_plan_settings *how = app->settings;
    if (!app->arg_count || names_word(app))
        return weft__subcommand_run(app);
    const char *meant = mistyped_word(app);
    if (meant)
        return weft__misused(app, "unknown subcommand \"%s\"; did you mean \"%s\"?", app->args[0], meant);
    return how->limit ? weft__misused(app, "--limit belongs to \"list\"") : weft__plan_request(app);
}

static const weft_option options[] = {
    WEFT_OPTION(weft_plan_settings, run, flag, "run", 'r', NULL, "run the plan at once, without asking"),
    WEFT_OPTION(weft_plan_settings, max_tasks, number, "max-tasks", 'm', "N",
                "how many tasks the plan may have (default 100)"),
    WEFT_OPTION(weft_plan_settings, time_limit_ms, time, "time-limit", 'l', "TIME",
                "how long the plan may run: 90s, 10m, 2h; a bare number is seconds"),
    WEFT_OPTION(weft_plan_settings, limit, number, "limit", 'n', "N", "how many plans to list, newest first (default 50)"),
    WEFT_OPTION(weft_plan_settings, timeout_ms, time, "timeout", 't', "TIME", "how long to wait here; the plan runs on"),
    WEFT_URL_OPTION(weft_plan_settings),
    {0},
};

static const char *const examples[] = {
    "weft plan 'add a README'",
    "make a plan, show it, and ask whether to run it",
    "weft plan 'add a README' --run --max-tasks 5 --time-limit 10m",
    "make one and run it at once",
    "weft plan @request.md --json",
    "the request from a file; print the plan as JSON and do not run it",
    "weft plan list",
    "plans and how far they are",
    "weft plan show plan_00000001",
    "one plan, with what became of its tasks",
    "weft plan run plan_00000001",
    "run one that was made before",
    "weft plan cancel plan_00000001",
    "end it: tasks that run are cancelled, the others are skipped",
    NULL,
};

const weft_verb weft__plan_verb = {
    .name = "plan",
    .help = "plan a request as tasks, and run them",
    .usage = "REQUEST...",
    .subcommands = subcommands,
    .usual = "list",
    .examples = examples,
    .about =
        "The planner (an agent, unless the configuration names another) makes the plan; the executors do its tasks, in\n"
        "the order of what they need and several at a time. A task that fails takes those with it that need it; the\n"
        "others go on. A plan goes on when this ends and when the hub is restarted.\n\n"
        "The first Ctrl-C cancels the plan and waits for its end; the second does not wait any longer. Without a\n"
        "terminal nothing is asked: a plan without --run is shown and does not run. With --json the plan is printed\n"
        "when it has ended.\n\n"
        "exit status: 0 the plan completed (or was made), 1 a task failed or the plan was cancelled, 5 no such plan,\n"
        "6 too many run, 7 its time limit or --timeout was reached, 8 refused otherwise, 130 Ctrl-C\n",
    .options = options,
    .settings_size = sizeof(weft_plan_settings),
    .reaches = true,
    .run = run_verb,
};
